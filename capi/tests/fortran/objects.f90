! Tests in Fortran of window accessors, attributes with callbacks, names, packing, MPI_BOTTOM, large
! counts, external32, reductions and errors.
module callbacks
  use mpi
  implicit none
  integer :: copied = 0, deleted = 0, refuse = 0
contains
  subroutine copy(oldtype, type_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    integer :: oldtype, type_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    integer :: bytes, code
    call MPI_TYPE_SIZE(oldtype, bytes, code)
    if (bytes /= 12 .or. extra_state /= 99 .or. type_keyval == MPI_KEYVAL_INVALID) stop 20
    copied = copied + 1
    attribute_val_out = attribute_val_in + 1000
    flag = attribute_val_in /= 5
    ierror = refuse
  end subroutine

  subroutine delete(datatype, type_keyval, attribute_val, extra_state, ierror)
    integer :: datatype, type_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    if (datatype == MPI_DATATYPE_NULL .or. type_keyval == MPI_KEYVAL_INVALID .or. extra_state /= 99) stop 21
    if (attribute_val == 0) stop 22
    deleted = deleted + 1
    ierror = MPI_SUCCESS
  end subroutine
end module

program objects
  use callbacks
  use mpi
  implicit none
  integer :: t, d, k, n, combiner, code, position, keyval, plain, status(MPI_STATUS_SIZE)
  integer :: lengths(4), types(4), source(64), packed(64), back(64)
  integer(MPI_ADDRESS_KIND) :: stride, places(4), value, lb, extent, at(2)
  integer(MPI_COUNT_KIND) :: large(3), ni, na, nc, nd
  ! These variables are changed through MPI_BOTTOM. The compiler cannot see that, so they are
  ! volatile (MPI 5.0, 19.1.17).
  integer, volatile :: first(3)
  double precision, volatile :: second(2)
  logical :: flag
  character(len=MPI_MAX_OBJECT_NAME) :: name
  character(len=MPI_MAX_ERROR_STRING) :: text

  call MPI_INIT(code)
  call MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD, MPI_ERRORS_RETURN, code)
  source = (/ (7 * k, k = 1, 64) /)

  ! The window accessors read four entries at a time, without allocation.
  call MPI_TYPE_INDEXED(6, (/ 1, 2, 3, 4, 5, 6 /), (/ 0, 10, 20, 30, 40, 50 /), MPI_INTEGER, t, code)
  call MPI_TYPE_ENVELOPE(t, n, combiner, code)
  call check(n == 6 .and. combiner == MPI_INDEXED, 1)
  lengths = -9
  places = -9
  types = -9
  stride = -9
  call MPI_TYPE_CONTENTS(t, 4, 4, lengths, stride, places, types, code)
  call check(all(lengths == (/ 5, 6, -9, -9 /)) .and. all(places == (/ 40, 50, -9, -9 /)), 2)
  call check(all(types == (/ MPI_INTEGER, -9, -9, -9 /)) .and. stride == -9, 3)
  call MPI_TYPE_CONTENTS(t, 0, 0, lengths, stride, places, types, code)
  call check(code == MPI_ERR_COUNT, 4)
  call MPI_TYPE_FREE(t, code)
  call MPI_TYPE_VECTOR(2, 1, 4, MPI_REAL, d, code)
  call MPI_TYPE_CREATE_STRUCT(3, (/ 1, 1, 2 /), (/ 0_MPI_ADDRESS_KIND, 8_MPI_ADDRESS_KIND, 64_MPI_ADDRESS_KIND /), &
    (/ MPI_INTEGER, d, MPI_REAL /), t, code)
  call MPI_TYPE_CONTENTS(t, 1, 4, lengths, stride, places, types, code)
  call check(lengths(2) == 2 .and. places(1) == 8 .and. types(2) == MPI_REAL .and. types(1) /= d, 5)
  call MPI_TYPE_FREE(types(1), code)
  call check(code == MPI_SUCCESS .and. types(1) == MPI_DATATYPE_NULL, 6)
  call MPI_TYPE_FREE(t, code)
  call MPI_TYPE_FREE(d, code)

  ! Attributes whose callbacks are Fortran procedures.
  call MPI_TYPE_CREATE_KEYVAL(copy, delete, keyval, 99_MPI_ADDRESS_KIND, code)
  call MPI_TYPE_CREATE_KEYVAL(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, plain, 0_MPI_ADDRESS_KIND, code)
  call MPI_TYPE_VECTOR(3, 1, 2, MPI_INTEGER, t, code)
  call MPI_TYPE_SET_ATTR(t, keyval, 41_MPI_ADDRESS_KIND, code)
  call MPI_TYPE_SET_ATTR(t, plain, -3_MPI_ADDRESS_KIND, code)
  call MPI_TYPE_DUP(t, d, code)
  call MPI_TYPE_GET_ATTR(d, keyval, value, flag, code)
  call check(flag .and. value == 1041 .and. copied == 1, 7)
  call MPI_TYPE_GET_ATTR(d, plain, value, flag, code)
  call check(flag .and. value == -3, 8)
  call MPI_TYPE_FREE(d, code)
  call check(deleted == 1, 9)
  call MPI_TYPE_SET_ATTR(t, keyval, 5_MPI_ADDRESS_KIND, code)
  call check(deleted == 2, 10)
  call MPI_TYPE_DUP(t, d, code)
  call MPI_TYPE_GET_ATTR(d, keyval, value, flag, code)
  call check(.not. flag .and. copied == 2, 11)
  call MPI_TYPE_FREE(d, code)
  refuse = 77
  call MPI_TYPE_DUP(t, d, code)
  call check(code == 77 .and. d == MPI_DATATYPE_NULL, 12)
  call MPI_TYPE_DELETE_ATTR(t, keyval, code)
  call check(deleted == 3, 13)
  call MPI_TYPE_FREE_KEYVAL(keyval, code)
  call check(keyval == MPI_KEYVAL_INVALID, 14)
  ! The keyval `plain` is still in use, so it lives until its attribute is deleted.
  k = plain
  call MPI_TYPE_FREE_KEYVAL(plain, code)
  call MPI_TYPE_GET_ATTR(t, k, value, flag, code)
  call check(code == MPI_SUCCESS .and. flag .and. value == -3, 140)
  call MPI_TYPE_DELETE_ATTR(t, k, code)
  call MPI_TYPE_GET_ATTR(t, k, value, flag, code)
  call check(code == MPI_ERR_KEYVAL, 141)

  ! Tests the names of derived and predefined types.
  call MPI_TYPE_SET_NAME(t, 'every second', code)
  call MPI_TYPE_GET_NAME(t, name, n, code)
  call check(n == 12 .and. name == 'every second', 15)
  call MPI_TYPE_GET_NAME(MPI_DOUBLE_PRECISION, name, n, code)
  call check(name == 'MPI_DOUBLE_PRECISION', 16)

  ! Tests packing and unpacking, sizes, bounds and statuses.
  call MPI_TYPE_COMMIT(t, code)
  position = 0
  call MPI_PACK(source, 2, t, packed, 256, position, MPI_COMM_WORLD, code)
  call check(code == MPI_SUCCESS .and. position == 24, 17)
  call check(all(packed(1:6) == source((/ 1, 3, 5, 6, 8, 10 /))), 18)
  back = -1
  position = 0
  call MPI_UNPACK(packed, 24, position, back, 2, t, MPI_COMM_WORLD, code)
  call check(back(8) == source(8) .and. back(2) == -1, 19)
  call MPI_TYPE_GET_EXTENT(t, lb, extent, code)
  call check(lb == 0 .and. extent == 20, 20)
  call MPI_PACK_SIZE(2, t, MPI_COMM_WORLD, n, code)
  call check(n == 24, 21)
  call MPI_STATUS_SET_ELEMENTS(status, t, 9, code)
  call MPI_GET_ELEMENTS(status, t, n, code)
  call check(n == 9, 22)
  call MPI_GET_COUNT(status, t, n, code)
  call check(n == 3, 23)
  call MPI_TYPE_FREE(t, code)

  ! Tests a type that consists of separate objects. Its displacements are absolute addresses, and
  ! the buffer is MPI_BOTTOM.
  first = (/ 1, 2, 3 /)
  second = (/ 4d0, 5d0 /)
  call MPI_GET_ADDRESS(first, at(1), code)
  call MPI_GET_ADDRESS(second, at(2), code)
  call check(MPI_AINT_DIFF(MPI_AINT_ADD(at(1), 4_MPI_ADDRESS_KIND), at(1)) == 4, 24)
  call MPI_TYPE_CREATE_STRUCT(2, (/ 3, 2 /), at, (/ MPI_INTEGER, MPI_DOUBLE_PRECISION /), t, code)
  call MPI_TYPE_COMMIT(t, code)
  position = 0
  call MPI_PACK(MPI_BOTTOM, 1, t, packed, 256, position, MPI_COMM_WORLD, code)
  call check(code == MPI_SUCCESS .and. position == 28 .and. all(packed(1:3) == first), 25)
  first = 0
  second = 0
  position = 0
  call MPI_UNPACK(packed, 28, position, MPI_BOTTOM, 1, t, MPI_COMM_WORLD, code)
  call check(all(first == (/ 1, 2, 3 /)) .and. second(2) == 5d0, 26)
  call MPI_TYPE_FREE(t, code)

  ! Tests a type that a constructor with large counts built. MPI_TYPE_GET_ENVELOPE is refused for
  ! this type. MPI_TYPE_GET_ENVELOPE_C and MPI_TYPE_GET_CONTENTS_C decode it.
  call MPI_TYPE_VECTOR_C(3_MPI_COUNT_KIND, 1_MPI_COUNT_KIND, 2_MPI_COUNT_KIND, MPI_INTEGER, t, code)
  call MPI_TYPE_GET_ENVELOPE(t, lengths(1), lengths(2), lengths(3), combiner, code)
  call check(code == MPI_ERR_TYPE, 27)
  call MPI_TYPE_GET_ENVELOPE_C(t, ni, na, nc, nd, combiner, code)
  call check(ni == 0 .and. na == 0 .and. nc == 3 .and. nd == 1 .and. combiner == MPI_COMBINER_VECTOR, 28)
  call MPI_TYPE_GET_CONTENTS_C(t, ni, na, nc, nd, lengths, places, large, types, code)
  call check(all(large == (/ 3, 1, 2 /)) .and. types(1) == MPI_INTEGER, 29)
  call MPI_TYPE_FREE(t, code)

  ! Tests a type of MPI_TYPE_CREATE_F90_REAL, and a subarray in Fortran order.
  call MPI_TYPE_CREATE_F90_REAL(15, 307, t, code)
  call MPI_TYPE_SIZE(t, n, code)
  call check(n == 8, 30)
  call MPI_TYPE_CREATE_SUBARRAY(2, (/ 4, 3 /), (/ 2, 2 /), (/ 1, 1 /), MPI_ORDER_FORTRAN, MPI_INTEGER, t, code)
  call MPI_TYPE_COMMIT(t, code)
  position = 0
  call MPI_PACK(source, 1, t, packed, 256, position, MPI_COMM_WORLD, code)
  call check(all(packed(1:4) == source((/ 6, 7, 10, 11 /))), 31)
  call MPI_TYPE_FREE(t, code)

  ! external32: every other INTEGER is packed in big-endian order and unpacked again.
  call MPI_TYPE_VECTOR(3, 1, 2, MPI_INTEGER, d, code)
  call MPI_TYPE_COMMIT(d, code)
  call MPI_PACK_EXTERNAL_SIZE('external32', 2, d, value, code)
  call check(value == 24, 35)
  value = 0
  call MPI_PACK_EXTERNAL('external32', source, 1, d, packed, 256_MPI_ADDRESS_KIND, value, code)
  call check(value == 12 .and. transfer(packed(2), 1) == ishft(iand(source(3), 255), 24), 36)
  back = 0
  value = 0
  call MPI_UNPACK_EXTERNAL('external32 ', packed, 256_MPI_ADDRESS_KIND, value, back, 1, d, code)
  call check(value == 12 .and. all(back(1:5:2) == source(1:5:2)) .and. back(2) == 0, 37)
  call MPI_PACK_EXTERNAL('internal', source, 1, d, packed, 256_MPI_ADDRESS_KIND, value, code)
  call check(code == MPI_ERR_UNSUPPORTED_DATAREP, 38)

  ! Reductions of the elements that a type contains, with both forms of the call. An operation that
  ! is not defined for these elements is refused.
  back = 1
  call MPI_REDUCE_LOCAL(source, back, 1, d, MPI_SUM, code)
  call check(code == MPI_SUCCESS .and. all(back(1:5:2) == source(1:5:2) + 1) .and. back(2) == 1, 39)
  call MPI_REDUCE_LOCAL_C(source, back, 1_MPI_COUNT_KIND, d, MPI_REPLACE, code)
  call check(code == MPI_SUCCESS .and. all(back(1:5:2) == source(1:5:2)), 45)
  call MPI_REDUCE_LOCAL(source, back, 1, d, MPI_MINLOC, code)
  call check(code == MPI_ERR_OP, 46)
  call MPI_TYPE_FREE(d, code)

  ! Tests errors that are returned to the program.
  d = t
  call MPI_TYPE_FREE(d, code)
  call check(code == MPI_ERR_TYPE, 32)
  call MPI_TYPE_CONTIGUOUS(-1, MPI_INTEGER, t, code)
  call check(code == MPI_ERR_COUNT, 33)
  call MPI_ERROR_STRING(code, text, n, code)
  call check(index(text, 'count = -1') > 0, 34)
  call MPI_FINALIZE(code)
  write (*, '(A)') 'done'

contains
  subroutine check(condition, number)
    logical, intent(in) :: condition
    integer, intent(in) :: number
    if (.not. condition) then
      write (*, *) 'check', number, 'failed; code', code
      stop 1
    end if
  end subroutine
end program
