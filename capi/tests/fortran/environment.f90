! Tests in Fortran of the functions that a program needs in addition to the datatype functions:
! info objects, error handlers, error codes that the program adds, statuses and inquiries.
module handlers
  use mpi
  implicit none
  integer :: handled = 0, last_code = 0, last_comm = 0
contains
  subroutine handler(comm, error_code)
    integer :: comm, error_code
    handled = handled + 1
    last_code = error_code
    last_comm = comm
  end subroutine
end module

program environment
  use handlers
  use mpi
  implicit none
  integer :: code, n, m, info, copy, mine, other, class, own, t, v, position, status(MPI_STATUS_SIZE), packed(64), source(8)
  integer(MPI_COUNT_KIND) :: large
  integer(MPI_ADDRESS_KIND) :: value
  logical :: flag
  double precision :: started
  character(len=MPI_MAX_INFO_VAL) :: text
  character(len=MPI_MAX_INFO_KEY) :: key
  character(len=4) :: short
  character(len=MPI_MAX_ERROR_STRING) :: message
  character(len=MPI_MAX_OBJECT_NAME) :: name
  character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
  character(len=MPI_MAX_PROCESSOR_NAME) :: processor

  call MPI_INITIALIZED(flag, code)
  call check(.not. flag, 1)
  call MPI_INIT_THREAD(MPI_THREAD_SINGLE, n, code)
  call check(n == MPI_THREAD_MULTIPLE, 2)
  call MPI_INITIALIZED(flag, code)
  call check(flag, 3)
  call MPI_FINALIZED(flag, code)
  call check(.not. flag, 4)
  call MPI_IS_THREAD_MAIN(flag, code)
  call check(flag, 5)
  call MPI_QUERY_THREAD(n, code)
  call check(n == MPI_THREAD_MULTIPLE, 6)
  call MPI_GET_VERSION(n, m, code)
  call check(n == MPI_VERSION .and. m == MPI_SUBVERSION .and. n == 5, 7)
  call MPI_GET_LIBRARY_VERSION(version, n, code)
  call check(n == len_trim(version) .and. version(1:4) == 'ddtc', 8)
  call MPI_GET_PROCESSOR_NAME(processor, n, code)
  call check(n == len_trim(processor), 9)
  started = MPI_WTIME()
  call check(MPI_WTIME() >= started .and. MPI_WTICK() > 0d0, 10)
  call MPI_BARRIER(MPI_COMM_WORLD, code)
  call check(code == MPI_SUCCESS, 11)

  ! Error handlers that the program creates.
  call MPI_COMM_GET_ERRHANDLER(MPI_COMM_WORLD, other, code)
  call check(other == MPI_ERRORS_ARE_FATAL, 12)
  call MPI_COMM_CREATE_ERRHANDLER(handler, mine, code)
  call MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD, mine, code)
  call MPI_TYPE_CONTIGUOUS(-1, MPI_INTEGER, t, code)
  call check(code == MPI_ERR_COUNT .and. handled == 1 .and. last_code == code .and. last_comm == MPI_COMM_SELF, 13)
  position = 0
  call MPI_PACK(source, -1, MPI_INTEGER, packed, 256, position, MPI_COMM_WORLD, code)
  call check(code == MPI_ERR_COUNT .and. handled == 2 .and. last_comm == MPI_COMM_WORLD, 14)
  call MPI_PACK(source, 1, MPI_INTEGER, packed, 256, position, MPI_COMM_NULL, code)
  call check(code == MPI_ERR_COMM .and. handled == 3 .and. last_comm == MPI_COMM_SELF, 15)
  call MPI_COMM_CALL_ERRHANDLER(MPI_COMM_WORLD, MPI_ERR_DIMS, code)
  call check(code == MPI_SUCCESS .and. handled == 4 .and. last_code == MPI_ERR_DIMS, 16)
  call MPI_ERRHANDLER_FREE(mine, code)
  call check(mine == MPI_ERRHANDLER_NULL, 17)
  call MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD, MPI_ERRORS_RETURN, code)
  call MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL, code)
  call check(code == MPI_ERR_ERRHANDLER .and. handled == 4, 18)
  call MPI_COMM_RANK(MPI_COMM_NULL, n, code)
  call MPI_ERROR_STRING(code, message, n, code)
  call check(index(message, 'must be MPI_COMM_WORLD') > 0, 19)

  ! Tests error classes, codes and strings that the program adds.
  call MPI_ADD_ERROR_CLASS(class, code)
  call MPI_ADD_ERROR_CODE(class, own, code)
  call MPI_ADD_ERROR_STRING(own, 'of my own', code)
  call MPI_ERROR_CLASS(own, n, code)
  call check(n == class .and. class > MPI_ERR_LASTCODE, 20)
  call MPI_ERROR_STRING(own, message, n, code)
  call check(n == 9 .and. message == 'of my own', 21)
  call MPI_COMM_GET_ATTR(MPI_COMM_WORLD, MPI_LASTUSEDCODE, value, flag, code)
  call check(flag .and. value == own, 22)
  call MPI_REMOVE_ERROR_CODE(own, code)
  call check(code == MPI_ERR_ARG, 23)
  call MPI_REMOVE_ERROR_STRING(own, code)
  call MPI_REMOVE_ERROR_CODE(own, code)
  call MPI_REMOVE_ERROR_CLASS(class, code)
  call check(code == MPI_SUCCESS, 24)

  ! Tests info objects. Blanks before and after a key or a value are not part of it.
  call MPI_INFO_CREATE(info, code)
  call check(info /= MPI_INFO_NULL, 25)
  call MPI_INFO_SET(info, '  colour ', ' dark blue  ', code)
  call MPI_INFO_SET(info, 'empty', ' ', code)
  call MPI_INFO_GET_NKEYS(info, n, code)
  call check(n == 2, 26)
  call MPI_INFO_GET_NTHKEY(info, 0, key, code)
  call check(key == 'colour', 27)
  n = MPI_MAX_INFO_VAL
  call MPI_INFO_GET_STRING(info, 'colour', n, text, flag, code)
  call check(flag .and. n == 9 .and. text == 'dark blue', 28)
  n = 4
  call MPI_INFO_GET_STRING(info, 'colour', n, short, flag, code)
  call check(flag .and. n == 9 .and. short == 'dark', 29)
  n = 0
  short = 'keep'
  call MPI_INFO_GET_STRING(info, 'colour', n, short, flag, code)
  call check(flag .and. n == 9 .and. short == 'keep', 30)
  call MPI_INFO_GET(info, 'colour', 2, short, flag, code)
  call check(flag .and. short == 'da', 31)
  call MPI_INFO_GET_VALUELEN(info, ' empty', n, flag, code)
  call check(flag .and. n == 0, 32)
  n = 77
  call MPI_INFO_GET_VALUELEN(info, 'absent', n, flag, code)
  call check(.not. flag .and. n == 77, 33)
  call MPI_INFO_DUP(info, copy, code)
  call MPI_INFO_DELETE(info, 'colour', code)
  call MPI_INFO_DELETE(info, 'colour', code)
  call check(code == MPI_ERR_INFO_NOKEY, 34)
  call MPI_INFO_GET_NKEYS(copy, n, code)
  call check(n == 2, 35)
  call MPI_INFO_FREE(info, code)
  call MPI_INFO_FREE(copy, code)
  call check(info == MPI_INFO_NULL .and. copy == MPI_INFO_NULL, 36)
  call MPI_INFO_CREATE_ENV(info, code)
  call MPI_INFO_GET_NKEYS(info, n, code)
  call check(code == MPI_SUCCESS .and. n == 0, 37)
  call MPI_INFO_FREE(info, code)
  call MPI_INFO_SET(MPI_INFO_ENV, 'a', 'b', code)
  call check(code == MPI_ERR_INFO, 38)

  ! Tests statuses. MPI_STATUS_SET_ELEMENTS takes the number of basic elements, not of instances.
  call MPI_TYPE_CONTIGUOUS(10, MPI_2INTEGER, t, code)
  call MPI_STATUS_SET_ELEMENTS(status, t, 40, code)
  call MPI_GET_COUNT(status, t, n, code)
  call check(n == 2, 39)
  call MPI_STATUS_SET_ELEMENTS_X(status, t, 41_MPI_COUNT_KIND, code)
  call MPI_GET_ELEMENTS(status, t, n, code)
  call MPI_GET_COUNT(status, t, m, code)
  call check(n == 41 .and. m == MPI_UNDEFINED, 40)
  call MPI_STATUS_SET_ELEMENTS_C(status, MPI_DOUBLE_PRECISION, 5000000000_MPI_COUNT_KIND, code)
  call MPI_GET_ELEMENTS_X(status, MPI_DOUBLE_PRECISION, large, code)
  call check(large == 5000000000_MPI_COUNT_KIND, 41)
  call MPI_GET_COUNT_C(status, MPI_DOUBLE_PRECISION, large, code)
  call check(large == 5000000000_MPI_COUNT_KIND, 42)
  call MPI_GET_ELEMENTS_C(status, MPI_REAL, large, code)
  call check(large == 10000000000_MPI_COUNT_KIND, 43)
  call MPI_STATUS_SET_ELEMENTS(status, t, -1, code)
  call check(code == MPI_ERR_COUNT, 44)
  call MPI_STATUS_SET_ELEMENTS_X(status, t, huge(large), code)
  call check(code == MPI_ERR_VALUE_TOO_LARGE, 45)
  call MPI_TYPE_FREE(t, code)
  call MPI_STATUS_SET_SOURCE(status, 3, code)
  call MPI_STATUS_SET_TAG(status, 4, code)
  call MPI_STATUS_SET_ERROR(status, MPI_ERR_TRUNCATE, code)
  call check(status(MPI_SOURCE) == 3 .and. status(MPI_TAG) == 4 .and. status(MPI_ERROR) == MPI_ERR_TRUNCATE, 46)
  call MPI_STATUS_GET_SOURCE(status, n, code)
  call MPI_STATUS_GET_TAG(status, m, code)
  call MPI_STATUS_GET_ERROR(status, v, code)
  call check(n == 3 .and. m == 4 .and. v == MPI_ERR_TRUNCATE, 47)
  call MPI_STATUS_SET_CANCELLED(status, .true., code)
  call MPI_TEST_CANCELLED(status, flag, code)
  call check(flag, 48)

  ! A duplicate of a predefined type is committed. If a type has two names, MPI_TYPE_GET_NAME always
  ! returns the same one.
  source = (/ 1, 2, 3, 4, 5, 6, 7, 8 /)
  call MPI_TYPE_DUP(MPI_COMPLEX4, t, code)
  position = 0
  call MPI_PACK(source, 2, t, packed, 256, position, MPI_COMM_WORLD, code)
  call check(code == MPI_SUCCESS .and. position == 8 .and. packed(2) == 2, 49)
  call MPI_TYPE_FREE(t, code)
  call MPI_TYPE_GET_NAME(MPI_LONG_LONG, name, n, code)
  call check(name == 'MPI_LONG_LONG_INT' .and. MPI_LONG_LONG == MPI_LONG_LONG_INT, 50)
  call MPI_TYPE_GET_NAME(MPI_C_FLOAT_COMPLEX, name, n, code)
  call check(name == 'MPI_C_COMPLEX' .and. MPI_C_COMPLEX == MPI_C_FLOAT_COMPLEX, 51)

  ! MPI_SIZEOF returns the size of a scalar variable, and for an array the size of one element.
  call MPI_SIZEOF(started, n, code)
  call check(n == 8, 52)
  call MPI_SIZEOF(source, n, code)
  call check(n == 4, 53)
  call MPI_SIZEOF((1.0, 2.0), n, code)
  call check(n == 8, 54)
  call MPI_SIZEOF(reshape((/ 1_MPI_COUNT_KIND, 2_MPI_COUNT_KIND /), (/ 1, 2 /)), n, code)
  call check(n == 8, 55)

  call MPI_FINALIZE(code)
  call MPI_FINALIZED(flag, code)
  call check(flag, 56)
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
