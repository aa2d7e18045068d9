! Test with the Fortran example of MPI-2.0, section 8.6 (LARGE = 1000). The code is that of the
! standard, but inside of a subroutine that gets the type as an argument.
program decoding
  use mpi
  implicit none
  integer :: vector, outer, many, k, ierr
  integer :: lengths(2), places_small(2), types(2), ones(600), twos(600)
  integer(MPI_ADDRESS_KIND) :: places(2)

  call MPI_INIT(ierr)
  call MPI_TYPE_VECTOR(3, 1, 2, MPI_DOUBLE_PRECISION, vector, ierr)
  lengths = (/ 1, 4 /)
  places = (/ 0, 8 /)
  types = (/ MPI_INTEGER, vector /)
  call MPI_TYPE_CREATE_STRUCT(2, lengths, places, types, outer, ierr)
  call large_sequence(outer)
  call MPI_TYPE_FREE(outer, ierr)

  ! The constructors of MPI-1 in Fortran take addresses as INTEGERs. Decoding nevertheless returns
  ! these addresses in the array of addresses.
  places_small = (/ 0, 8 /)
  call MPI_TYPE_STRUCT(2, lengths, places_small, types, outer, ierr)
  call large_sequence(outer)
  call MPI_TYPE_FREE(outer, ierr)
  call MPI_TYPE_HVECTOR(5, 2, 64, MPI_REAL, outer, ierr)
  call large_sequence(outer)
  call MPI_TYPE_FREE(outer, ierr)
  call MPI_TYPE_HINDEXED(2, lengths, places_small, MPI_CHARACTER, outer, ierr)
  call large_sequence(outer)
  call MPI_TYPE_FREE(outer, ierr)
  call MPI_TYPE_FREE(vector, ierr)

  ones = 1
  twos = (/ (2 * k, k = 1, 600) /)
  call MPI_TYPE_INDEXED(499, ones, twos, MPI_INTEGER, many, ierr)
  call large_sequence(many)
  call MPI_TYPE_FREE(many, ierr)
  if (command_argument_count() > 0) then
    call MPI_TYPE_INDEXED(500, ones, twos, MPI_INTEGER, many, ierr)
    call large_sequence(many)
  end if
  call MPI_FINALIZE(ierr)
end program

! This subroutine has implicit typing, like the example in the standard.
subroutine large_sequence(argument)
      use mpi
      integer :: argument
      PARAMETER (LARGE = 1000)
      INTEGER TYPE, NI, NA, ND, COMBINER, I(LARGE), D(LARGE), IERROR
      INTEGER(KIND=MPI_ADDRESS_KIND) A(LARGE)
!     CONSTRUCT DATATYPE TYPE (NOT SHOWN)
      TYPE = argument
      CALL MPI_TYPE_GET_ENVELOPE(TYPE, NI, NA, ND, COMBINER, IERROR)
      IF ((NI .GT. LARGE) .OR. (NA .GT. LARGE) .OR. (ND .GT. LARGE)) THEN
        WRITE (*, *) "NI, NA, OR ND = ", NI, NA, ND, &
        " RETURNED BY MPI_TYPE_GET_ENVELOPE IS LARGER THAN LARGE = ", LARGE
        CALL MPI_ABORT(MPI_COMM_WORLD, 99)
      ENDIF
      CALL MPI_TYPE_GET_CONTENTS(TYPE, NI, NA, ND, I, A, D, IERROR)
      write (*, '(A,4(1X,I0))') 'envelope', NI, NA, ND, COMBINER
      write (*, '(A,3(1X,I0))') 'integers', I(1:min(NI, 3))
      write (*, '(A,2(1X,I0))') 'addresses', A(1:min(NA, 2))
      call free_all(ND, D)
end subroutine

subroutine free_all(nd, d)
  use mpi
  implicit none
  integer, intent(in) :: nd
  integer, intent(inout) :: d(*)
  integer :: k, ni, na, n, combiner, ierr
  do k = 1, nd
    call MPI_TYPE_GET_ENVELOPE(d(k), ni, na, n, combiner, ierr)
    if (combiner == MPI_COMBINER_NAMED) then
      write (*, '(A,1X,L1)') 'named', d(k) == MPI_INTEGER .or. d(k) == MPI_REAL .or. d(k) == MPI_CHARACTER
    else
      write (*, '(A,1X,I0)') 'derived', combiner
      call MPI_TYPE_FREE(d(k), ierr)
    end if
  end do
end subroutine
