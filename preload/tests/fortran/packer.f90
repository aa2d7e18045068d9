! Packs and unpacks with a strided type through implicit interfaces, as programs do that use
! mpif.h. With the macro SESSIONS, a session is opened and closed before each pack.
program packer
  implicit none
  external mpi_init, mpi_finalize, mpi_type_vector, mpi_type_commit, mpi_type_free, mpi_pack, mpi_unpack, host_handles
  integer :: world, dp, t, ierr, position, i, j, k, n, wrong
  double precision :: a(200), b(200), c(200)
#ifdef SESSIONS
  external mpi_session_init, mpi_session_finalize, session_handles
  integer :: session, info, handler
  call session_handles(info, handler)
#endif
  call mpi_init(ierr)
  call host_handles(world, dp)
  wrong = 0
  do i = 1, 200
    a(i) = i
  end do
  do n = 4, 13
    call mpi_type_vector(n, 2, 5, dp, t, ierr)
    call mpi_type_commit(t, ierr)
    do k = 1, 5
      b = 0
      c = -1
#ifdef SESSIONS
      call mpi_session_init(info, handler, session, ierr)
      if (ierr /= 0) wrong = wrong + 1
      call mpi_session_finalize(session, ierr)
      if (ierr /= 0) wrong = wrong + 1
#endif
      position = 0
      call mpi_pack(a, 1, t, b, 1600, position, world, ierr)
      if (ierr /= 0 .or. position /= 16 * n) wrong = wrong + 1
      position = 0
      call mpi_unpack(b, 1600, position, c, 1, t, world, ierr)
      if (ierr /= 0 .or. position /= 16 * n) wrong = wrong + 1
      do i = 1, n
        do j = 1, 2
          if (b(2 * (i - 1) + j) /= a(5 * (i - 1) + j)) wrong = wrong + 1
          if (c(5 * (i - 1) + j) /= a(5 * (i - 1) + j)) wrong = wrong + 1
        end do
        if (i < n .and. c(5 * i) /= -1d0) wrong = wrong + 1
      end do
    end do
    call mpi_type_free(t, ierr)
  end do
  call mpi_finalize(ierr)
  print '(a,i0)', 'wrong ', wrong
end program
