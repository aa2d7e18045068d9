! ddtc_mpi.f90 - MPI's names for Fortran, implemented by ddtc, by iso_c_binding.
!
! Compile ddtc_c.f90 and then this file with the program. This file has the module ddtc_mpi, and the
! module mpi, which has the same contents under the usual name. Handles are default INTEGERs,
! addresses INTEGER(MPI_ADDRESS_KIND), and large counts INTEGER(MPI_COUNT_KIND). The last argument,
! ierror, is optional.
!
! MPI_TYPE_HVECTOR, MPI_TYPE_HINDEXED and MPI_TYPE_STRUCT of MPI-1 take INTEGER addresses, and their
! datatypes decode with the combiners MPI_COMBINER_*_INTEGER. The contents of a datatype return all
! addresses as INTEGER(MPI_ADDRESS_KIND). MPI_TYPE_ENVELOPE and MPI_TYPE_CONTENTS are the window
! accessors of a proposal of 1996. MPI_TYPE_CONTENTS returns a part (window) of the arguments of a
! type's constructor.
!
! The program is the only process, and there is no communication. Each call means the same as in
! ddtc_mpi.h. MPI defines no Fortran binding of the tool interface.
!
! This file is generated. capi/tests/table/names.txt in ddtc's sources says from which files.
module ddtc_mpi
  use, intrinsic :: iso_c_binding
  use ddtc_c
  implicit none
  private :: c_int, c_int64_t, c_intptr_t, c_ptr, c_null_ptr, c_funptr, c_funloc, c_char, c_null_char, c_double, c_f_pointer

  integer, parameter :: MPI_ADDRESS_KIND = c_intptr_t
  integer, parameter :: MPI_COUNT_KIND = c_int64_t
  integer, parameter :: MPI_OFFSET_KIND = c_int64_t
  integer, parameter :: MPI_INTEGER_KIND = c_int
  logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .false.
  logical, parameter :: MPI_ASYNC_PROTECTS_NONBLOCKING = .false.
  integer, parameter :: MPI_STATUS_SIZE = 8
  integer, parameter :: MPI_SOURCE = 1
  integer, parameter :: MPI_TAG = 2
  integer, parameter :: MPI_ERROR = 3
  integer, parameter :: MPI_VERSION = 5
  integer, parameter :: MPI_SUBVERSION = 0
  integer, parameter :: MPI_COMM_NULL = 256
  integer, parameter :: MPI_COMM_WORLD = 257
  integer, parameter :: MPI_COMM_SELF = 258
  integer, parameter :: MPI_OP_NULL = 32
  integer, parameter :: MPI_SUM = 33
  integer, parameter :: MPI_MIN = 34
  integer, parameter :: MPI_MAX = 35
  integer, parameter :: MPI_PROD = 36
  integer, parameter :: MPI_BAND = 40
  integer, parameter :: MPI_BOR = 41
  integer, parameter :: MPI_BXOR = 42
  integer, parameter :: MPI_LAND = 48
  integer, parameter :: MPI_LOR = 49
  integer, parameter :: MPI_LXOR = 50
  integer, parameter :: MPI_MINLOC = 56
  integer, parameter :: MPI_MAXLOC = 57
  integer, parameter :: MPI_REPLACE = 60
  integer, parameter :: MPI_NO_OP = 61
  integer, parameter :: MPI_GROUP_NULL = 264
  integer, parameter :: MPI_GROUP_EMPTY = 265
  integer, parameter :: MPI_WIN_NULL = 272
  integer, parameter :: MPI_FILE_NULL = 280
  integer, parameter :: MPI_SESSION_NULL = 288
  integer, parameter :: MPI_MESSAGE_NULL = 296
  integer, parameter :: MPI_MESSAGE_NO_PROC = 297
  integer, parameter :: MPI_INFO_NULL = 304
  integer, parameter :: MPI_INFO_ENV = 305
  integer, parameter :: MPI_ERRHANDLER_NULL = 320
  integer, parameter :: MPI_ERRORS_ARE_FATAL = 321
  integer, parameter :: MPI_ERRORS_ABORT = 322
  integer, parameter :: MPI_ERRORS_RETURN = 323
  integer, parameter :: MPI_REQUEST_NULL = 384
  integer, parameter :: MPI_DATATYPE_NULL = 512
  integer, parameter :: MPI_AINT = 513
  integer, parameter :: MPI_COUNT = 514
  integer, parameter :: MPI_OFFSET = 515
  integer, parameter :: MPI_PACKED = 519
  integer, parameter :: MPI_SHORT = 520
  integer, parameter :: MPI_INT = 521
  integer, parameter :: MPI_LONG = 522
  integer, parameter :: MPI_LONG_LONG = 523
  integer, parameter :: MPI_UNSIGNED_SHORT = 524
  integer, parameter :: MPI_UNSIGNED = 525
  integer, parameter :: MPI_UNSIGNED_LONG = 526
  integer, parameter :: MPI_UNSIGNED_LONG_LONG = 527
  integer, parameter :: MPI_FLOAT = 528
  integer, parameter :: MPI_C_FLOAT_COMPLEX = 530
  integer, parameter :: MPI_CXX_FLOAT_COMPLEX = 531
  integer, parameter :: MPI_DOUBLE = 532
  integer, parameter :: MPI_C_DOUBLE_COMPLEX = 534
  integer, parameter :: MPI_CXX_DOUBLE_COMPLEX = 535
  integer, parameter :: MPI_LOGICAL = 536
  integer, parameter :: MPI_INTEGER = 537
  integer, parameter :: MPI_REAL = 538
  integer, parameter :: MPI_COMPLEX = 539
  integer, parameter :: MPI_DOUBLE_PRECISION = 540
  integer, parameter :: MPI_DOUBLE_COMPLEX = 541
  integer, parameter :: MPI_CHARACTER = 542
  integer, parameter :: MPI_LONG_DOUBLE = 544
  integer, parameter :: MPI_C_LONG_DOUBLE_COMPLEX = 548
  integer, parameter :: MPI_CXX_LONG_DOUBLE_COMPLEX = 549
  integer, parameter :: MPI_FLOAT_INT = 552
  integer, parameter :: MPI_DOUBLE_INT = 553
  integer, parameter :: MPI_LONG_INT = 554
  integer, parameter :: MPI_2INT = 555
  integer, parameter :: MPI_SHORT_INT = 556
  integer, parameter :: MPI_LONG_DOUBLE_INT = 557
  integer, parameter :: MPI_2REAL = 560
  integer, parameter :: MPI_2DOUBLE_PRECISION = 561
  integer, parameter :: MPI_2INTEGER = 562
  integer, parameter :: MPI_C_BOOL = 568
  integer, parameter :: MPI_CXX_BOOL = 569
  integer, parameter :: MPI_WCHAR = 572
  integer, parameter :: MPI_INT8_T = 576
  integer, parameter :: MPI_UINT8_T = 577
  integer, parameter :: MPI_CHAR = 579
  integer, parameter :: MPI_SIGNED_CHAR = 580
  integer, parameter :: MPI_UNSIGNED_CHAR = 581
  integer, parameter :: MPI_BYTE = 583
  integer, parameter :: MPI_INT16_T = 584
  integer, parameter :: MPI_UINT16_T = 585
  integer, parameter :: MPI_INT32_T = 592
  integer, parameter :: MPI_UINT32_T = 593
  integer, parameter :: MPI_INT64_T = 600
  integer, parameter :: MPI_UINT64_T = 601
  integer, parameter :: MPI_LOGICAL1 = 704
  integer, parameter :: MPI_INTEGER1 = 705
  integer, parameter :: MPI_LOGICAL2 = 712
  integer, parameter :: MPI_INTEGER2 = 713
  integer, parameter :: MPI_REAL2 = 714
  integer, parameter :: MPI_LOGICAL4 = 720
  integer, parameter :: MPI_INTEGER4 = 721
  integer, parameter :: MPI_REAL4 = 722
  integer, parameter :: MPI_COMPLEX4 = 723
  integer, parameter :: MPI_LOGICAL8 = 728
  integer, parameter :: MPI_INTEGER8 = 729
  integer, parameter :: MPI_REAL8 = 730
  integer, parameter :: MPI_COMPLEX8 = 731
  integer, parameter :: MPI_LOGICAL16 = 736
  integer, parameter :: MPI_INTEGER16 = 737
  integer, parameter :: MPI_REAL16 = 738
  integer, parameter :: MPI_COMPLEX16 = 739
  integer, parameter :: MPI_COMPLEX32 = 747
  integer, parameter :: MPI_LB = 3840
  integer, parameter :: MPI_UB = 3841
  integer, parameter :: MPI_LONG_LONG_INT = 523
  integer, parameter :: MPI_C_COMPLEX = 530
  integer, parameter :: MPI_SUCCESS = 0
  integer, parameter :: MPI_ERR_BUFFER = 1
  integer, parameter :: MPI_ERR_COUNT = 2
  integer, parameter :: MPI_ERR_TYPE = 3
  integer, parameter :: MPI_ERR_TAG = 4
  integer, parameter :: MPI_ERR_COMM = 5
  integer, parameter :: MPI_ERR_RANK = 6
  integer, parameter :: MPI_ERR_REQUEST = 7
  integer, parameter :: MPI_ERR_ROOT = 8
  integer, parameter :: MPI_ERR_GROUP = 9
  integer, parameter :: MPI_ERR_OP = 10
  integer, parameter :: MPI_ERR_TOPOLOGY = 11
  integer, parameter :: MPI_ERR_DIMS = 12
  integer, parameter :: MPI_ERR_ARG = 13
  integer, parameter :: MPI_ERR_UNKNOWN = 14
  integer, parameter :: MPI_ERR_TRUNCATE = 15
  integer, parameter :: MPI_ERR_OTHER = 16
  integer, parameter :: MPI_ERR_INTERN = 17
  integer, parameter :: MPI_ERR_PENDING = 18
  integer, parameter :: MPI_ERR_IN_STATUS = 19
  integer, parameter :: MPI_ERR_ACCESS = 20
  integer, parameter :: MPI_ERR_AMODE = 21
  integer, parameter :: MPI_ERR_ASSERT = 22
  integer, parameter :: MPI_ERR_BAD_FILE = 23
  integer, parameter :: MPI_ERR_BASE = 24
  integer, parameter :: MPI_ERR_CONVERSION = 25
  integer, parameter :: MPI_ERR_DISP = 26
  integer, parameter :: MPI_ERR_DUP_DATAREP = 27
  integer, parameter :: MPI_ERR_FILE_EXISTS = 28
  integer, parameter :: MPI_ERR_FILE_IN_USE = 29
  integer, parameter :: MPI_ERR_FILE = 30
  integer, parameter :: MPI_ERR_INFO_KEY = 31
  integer, parameter :: MPI_ERR_INFO_NOKEY = 32
  integer, parameter :: MPI_ERR_INFO_VALUE = 33
  integer, parameter :: MPI_ERR_INFO = 34
  integer, parameter :: MPI_ERR_IO = 35
  integer, parameter :: MPI_ERR_KEYVAL = 36
  integer, parameter :: MPI_ERR_LOCKTYPE = 37
  integer, parameter :: MPI_ERR_NAME = 38
  integer, parameter :: MPI_ERR_NO_MEM = 39
  integer, parameter :: MPI_ERR_NOT_SAME = 40
  integer, parameter :: MPI_ERR_NO_SPACE = 41
  integer, parameter :: MPI_ERR_NO_SUCH_FILE = 42
  integer, parameter :: MPI_ERR_PORT = 43
  integer, parameter :: MPI_ERR_QUOTA = 44
  integer, parameter :: MPI_ERR_READ_ONLY = 45
  integer, parameter :: MPI_ERR_RMA_ATTACH = 46
  integer, parameter :: MPI_ERR_RMA_CONFLICT = 47
  integer, parameter :: MPI_ERR_RMA_RANGE = 48
  integer, parameter :: MPI_ERR_RMA_SHARED = 49
  integer, parameter :: MPI_ERR_RMA_SYNC = 50
  integer, parameter :: MPI_ERR_SERVICE = 51
  integer, parameter :: MPI_ERR_SIZE = 52
  integer, parameter :: MPI_ERR_SPAWN = 53
  integer, parameter :: MPI_ERR_UNSUPPORTED_DATAREP = 54
  integer, parameter :: MPI_ERR_UNSUPPORTED_OPERATION = 55
  integer, parameter :: MPI_ERR_WIN = 56
  integer, parameter :: MPI_ERR_RMA_FLAVOR = 57
  integer, parameter :: MPI_ERR_PROC_ABORTED = 58
  integer, parameter :: MPI_ERR_VALUE_TOO_LARGE = 59
  integer, parameter :: MPI_ERR_SESSION = 60
  integer, parameter :: MPI_ERR_ERRHANDLER = 61
  integer, parameter :: MPI_ERR_ABI = 62
  integer, parameter :: MPI_ERR_LASTCODE = 16383
  integer, parameter :: MPI_ANY_SOURCE = -1
  integer, parameter :: MPI_ANY_TAG = -2
  integer, parameter :: MPI_PROC_NULL = -3
  integer, parameter :: MPI_ROOT = -4
  integer, parameter :: MPI_UNDEFINED = -32766
  integer, parameter :: MPI_KEYVAL_INVALID = 0
  integer, parameter :: MPI_TAG_UB = 501
  integer, parameter :: MPI_IO = 502
  integer, parameter :: MPI_HOST = 503
  integer, parameter :: MPI_WTIME_IS_GLOBAL = 504
  integer, parameter :: MPI_APPNUM = 505
  integer, parameter :: MPI_LASTUSEDCODE = 506
  integer, parameter :: MPI_UNIVERSE_SIZE = 507
  integer, parameter :: MPI_WIN_FLAVOR_CREATE = 311
  integer, parameter :: MPI_WIN_FLAVOR_ALLOCATE = 312
  integer, parameter :: MPI_WIN_FLAVOR_DYNAMIC = 313
  integer, parameter :: MPI_WIN_FLAVOR_SHARED = 314
  integer, parameter :: MPI_WIN_UNIFIED = 321
  integer, parameter :: MPI_WIN_SEPARATE = 322
  integer, parameter :: MPI_WIN_BASE = 601
  integer, parameter :: MPI_WIN_DISP_UNIT = 602
  integer, parameter :: MPI_WIN_SIZE = 603
  integer, parameter :: MPI_WIN_CREATE_FLAVOR = 604
  integer, parameter :: MPI_WIN_MODEL = 605
  integer, parameter :: MPI_THREAD_SINGLE = 0
  integer, parameter :: MPI_THREAD_FUNNELED = 1024
  integer, parameter :: MPI_THREAD_SERIALIZED = 2048
  integer, parameter :: MPI_THREAD_MULTIPLE = 4096
  integer, parameter :: MPI_ORDER_C = 12
  integer, parameter :: MPI_ORDER_FORTRAN = 15
  integer, parameter :: MPI_DISTRIBUTE_NONE = 16
  integer, parameter :: MPI_DISTRIBUTE_BLOCK = 17
  integer, parameter :: MPI_DISTRIBUTE_CYCLIC = 18
  integer, parameter :: MPI_DISTRIBUTE_DFLT_DARG = 19
  integer, parameter :: MPI_TYPECLASS_INTEGER = 192
  integer, parameter :: MPI_TYPECLASS_REAL = 193
  integer, parameter :: MPI_TYPECLASS_COMPLEX = 194
  integer, parameter :: MPI_IDENT = 201
  integer, parameter :: MPI_CONGRUENT = 202
  integer, parameter :: MPI_SIMILAR = 203
  integer, parameter :: MPI_UNEQUAL = 204
  integer, parameter :: MPI_MAX_PROCESSOR_NAME = 255
  integer, parameter :: MPI_MAX_ERROR_STRING = 511
  integer, parameter :: MPI_MAX_INFO_KEY = 255
  integer, parameter :: MPI_MAX_INFO_VAL = 1023
  integer, parameter :: MPI_MAX_OBJECT_NAME = 127
  integer, parameter :: MPI_MAX_LIBRARY_VERSION_STRING = 8191
  integer, parameter :: MPI_COMBINER_NAMED = 101
  integer, parameter :: MPI_COMBINER_DUP = 102
  integer, parameter :: MPI_COMBINER_CONTIGUOUS = 103
  integer, parameter :: MPI_COMBINER_VECTOR = 104
  integer, parameter :: MPI_COMBINER_HVECTOR = 105
  integer, parameter :: MPI_COMBINER_INDEXED = 106
  integer, parameter :: MPI_COMBINER_HINDEXED = 107
  integer, parameter :: MPI_COMBINER_INDEXED_BLOCK = 108
  integer, parameter :: MPI_COMBINER_HINDEXED_BLOCK = 109
  integer, parameter :: MPI_COMBINER_STRUCT = 110
  integer, parameter :: MPI_COMBINER_SUBARRAY = 111
  integer, parameter :: MPI_COMBINER_DARRAY = 112
  integer, parameter :: MPI_COMBINER_F90_REAL = 113
  integer, parameter :: MPI_COMBINER_F90_COMPLEX = 114
  integer, parameter :: MPI_COMBINER_F90_INTEGER = 115
  integer, parameter :: MPI_COMBINER_RESIZED = 116
  integer, parameter :: MPI_COMBINER_VALUE_INDEX = 117
  integer, parameter :: MPI_COMBINER_HVECTOR_INTEGER = 20105
  integer, parameter :: MPI_COMBINER_HINDEXED_INTEGER = 20107
  integer, parameter :: MPI_COMBINER_STRUCT_INTEGER = 20110
  integer, parameter :: MPI_BASIC = 1501
  integer, parameter :: MPI_CONTIG = 1502
  integer, parameter :: MPI_VECTOR = 1503
  integer, parameter :: MPI_HVECTOR = 1504
  integer, parameter :: MPI_INDEXED = 1505
  integer, parameter :: MPI_HINDEXED = 1506
  integer, parameter :: MPI_STRUCT = 1507

  ! Variable that a program passes as the buffer if the displacements of the datatype are absolute
  ! addresses. The procedures recognize this variable by its address.
  integer, save, target :: MPI_BOTTOM
  ! Stand for a status, or for an array of statuses, that the program does not want. Like
  ! MPI_BOTTOM, these variables are identified by their addresses. Since there is no communication,
  ! no procedure fills the status of a message.
  integer, save, target :: MPI_STATUS_IGNORE(MPI_STATUS_SIZE), MPI_STATUSES_IGNORE(MPI_STATUS_SIZE, 1)

  abstract interface
    subroutine MPI_Comm_errhandler_function(comm, error_code)
      integer :: comm, error_code
    end subroutine
    subroutine MPI_Type_copy_attr_function(oldtype, type_keyval, extra_state, attribute_val_in, attribute_val_out, flag, &
        ierror)
      import :: MPI_ADDRESS_KIND
      integer :: oldtype, type_keyval, ierror
      integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
      logical :: flag
    end subroutine
    subroutine MPI_Type_delete_attr_function(datatype, type_keyval, attribute_val, extra_state, ierror)
      import :: MPI_ADDRESS_KIND
      integer :: datatype, type_keyval, ierror
      integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    end subroutine
  end interface

  private :: finish, raise, known, take_all, give_all, to_c, from_c, buffer, ddtc_mpi_bytes, set_received, WIDE
  integer, parameter :: WIDE = c_intptr_t
  private :: ddtc_elements_size, ddtc_errhandler_call, ddtc_errhandler_create, ddtc_errhandler_free, &
    ddtc_errhandler_get, ddtc_errhandler_set, ddtc_error_add_class, ddtc_error_add_code, ddtc_error_add_string, &
    ddtc_error_class, ddtc_error_remove_class, ddtc_error_remove_code, ddtc_error_remove_string, ddtc_error_string, &
    ddtc_get_address, ddtc_get_count, ddtc_get_count_c, ddtc_get_elements, ddtc_get_elements_c, ddtc_get_elements_x, &
    ddtc_info_create, ddtc_info_delete, ddtc_info_dup, ddtc_info_free, ddtc_info_get_nkeys, ddtc_info_get_nthkey, &
    ddtc_info_get_string, ddtc_info_set, ddtc_mpi_attribute, ddtc_mpi_explain, ddtc_mpi_get, ddtc_mpi_set, &
    ddtc_mpi_wtime, ddtc_pack, ddtc_pack_c, ddtc_pack_external, ddtc_pack_external_c, ddtc_pack_external_size, &
    ddtc_pack_external_size_c, ddtc_pack_size, ddtc_pack_size_c, ddtc_reduce_local, ddtc_reduce_local_c, &
    ddtc_set_fortran_booleans, ddtc_t_report, ddtc_type_commit, ddtc_type_contents, ddtc_type_contiguous, &
    ddtc_type_contiguous_c, ddtc_type_create_darray, ddtc_type_create_darray_c, ddtc_type_create_f90_complex, &
    ddtc_type_create_f90_integer, ddtc_type_create_f90_real, ddtc_type_create_hindexed, &
    ddtc_type_create_hindexed_block, ddtc_type_create_hindexed_block_c, ddtc_type_create_hindexed_c, &
    ddtc_type_create_hvector, ddtc_type_create_hvector_c, ddtc_type_create_indexed_block, &
    ddtc_type_create_indexed_block_c, ddtc_type_create_keyval_f, ddtc_type_create_resized, &
    ddtc_type_create_resized_c, ddtc_type_create_struct, ddtc_type_create_struct_c, ddtc_type_create_subarray, &
    ddtc_type_create_subarray_c, ddtc_type_delete_attr, ddtc_type_dup, ddtc_type_envelope, ddtc_type_free, &
    ddtc_type_free_keyval, ddtc_type_fromint, ddtc_type_get_attr, ddtc_type_get_contents, ddtc_type_get_contents_c, &
    ddtc_type_get_envelope, ddtc_type_get_envelope_c, ddtc_type_get_extent, ddtc_type_get_extent_c, &
    ddtc_type_get_extent_x, ddtc_type_get_name, ddtc_type_get_true_extent, ddtc_type_get_true_extent_c, &
    ddtc_type_get_true_extent_x, ddtc_type_get_value_index, ddtc_type_hindexed_integer, ddtc_type_hvector_integer, &
    ddtc_type_indexed, ddtc_type_indexed_c, ddtc_type_match_size, ddtc_type_set_attr, ddtc_type_set_name, &
    ddtc_type_size, ddtc_type_size_c, ddtc_type_size_x, ddtc_type_struct_integer, ddtc_type_toint, ddtc_type_vector, &
    ddtc_type_vector_c, ddtc_unpack, ddtc_unpack_c, ddtc_unpack_external, ddtc_unpack_external_c, &
    ddtc_version_string, DDTC_ERRHANDLER_COMM, DDTC_ERRHANDLER_FORTRAN, DDTC_MPI_STATE, DDTC_MPI_THREAD_MAIN

contains

  ! Converts n INTEGERs into handles. The result is 0, or the error of the first INTEGER that names
  ! no datatype.
  function take_all(n, datatypes, handles) result(code)
    integer(MPI_COUNT_KIND), intent(in) :: n
    integer, intent(in) :: datatypes(*)
    type(c_ptr), allocatable, intent(out) :: handles(:)
    integer(MPI_COUNT_KIND) :: k
    integer :: code
    code = 0
    allocate (handles(max(n, 1_MPI_COUNT_KIND)))
    do k = 1, n
      if (code == 0) code = ddtc_type_fromint(datatypes(k), handles(k))
    end do
  end function

  ! Converts into INTEGERs the n handles that a call returned. Does nothing if the call failed, that
  ! is, if code is not 0. An error of a conversion is returned in code.
  subroutine give_all(code, n, handles, datatypes)
    integer, intent(inout) :: code
    integer(MPI_COUNT_KIND), intent(in) :: n
    type(c_ptr), intent(in) :: handles(*)
    integer, intent(inout) :: datatypes(*)
    integer(MPI_COUNT_KIND) :: k
    do k = 1, n
      if (code == 0) code = ddtc_type_toint(handles(k), datatypes(k))
    end do
  end subroutine

  ! Returns code in ierror. If code is an error, what follows depends on the error handler in force.
  ! A handler that the program created is called with the communicator comm, or with MPI_COMM_SELF
  ! if comm is missing or invalid. A predefined handler either ends the program or does nothing.
  subroutine finish(code, call, ierror, comm)
    integer, intent(in) :: code
    character(len=*), intent(in) :: call
    integer, intent(out), optional :: ierror
    integer, intent(in), optional :: comm
    integer :: object
    if (present(ierror)) ierror = code
    if (code == 0) return
    object = MPI_COMM_SELF
    if (present(comm) .and. code /= MPI_ERR_COMM) object = comm
    call raise(object, code, call)
  end subroutine

  subroutine raise(comm, code, name)
    integer, intent(in) :: comm, code
    character(len=*), intent(in) :: name
    character(kind=c_char) :: text(MPI_MAX_ERROR_STRING + 1)
    integer :: fatal, n, dummy
    fatal = 0
    dummy = ddtc_errhandler_call(DDTC_ERRHANDLER_COMM, int(comm, WIDE), code, fatal)
    if (fatal == 0) return
    dummy = ddtc_error_string(code, text, n)
    write (*, *) name, ': ', text(1:n)
    stop 1
  end subroutine

  ! Returns MPI_SUCCESS for MPI_COMM_WORLD and MPI_COMM_SELF, which are the only communicators, and
  ! otherwise MPI_ERR_COMM, for which it records a message.
  function known(comm, name) result(code)
    integer, intent(in) :: comm
    character(len=*), intent(in) :: name
    integer :: code, dummy
    code = merge(MPI_SUCCESS, MPI_ERR_COMM, comm == MPI_COMM_WORLD .or. comm == MPI_COMM_SELF)
    if (code /= 0) dummy = ddtc_mpi_explain(code, to_c(name), to_c('comm'), to_c('another handle'), &
      to_c('must be MPI_COMM_WORLD or MPI_COMM_SELF'))
  end function

  function to_c(string) result(text)
    character(len=*), intent(in) :: string
    character(kind=c_char) :: text(len_trim(string) + 1)
    integer :: k
    do k = 1, len_trim(string)
      text(k) = string(k:k)
    end do
    text(size(text)) = c_null_char
  end function

  subroutine from_c(text, n, string)
    character(kind=c_char), intent(in) :: text(*)
    integer, intent(in) :: n
    character(len=*), intent(out) :: string
    integer :: k
    string = ' '
    do k = 1, min(n, len(string))
      string(k:k) = text(k)
    end do
  end subroutine

  ! Returns the address of a buffer, or null for MPI_BOTTOM.
  function buffer(location) result(pointer)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: location
    type(*), intent(in) :: location
    type(c_ptr) :: pointer
    integer(c_intptr_t) :: address, bottom
    integer :: code
    code = ddtc_get_address(location, address)
    code = ddtc_get_address(MPI_BOTTOM, bottom)
    if (address == bottom) address = 0
    pointer = transfer(address, c_null_ptr)
  end function

  ! ---- Errors -----------------------------------------------------------------------------------------------------

  subroutine MPI_Error_class(errorcode, errorclass, ierror)
    integer, intent(in) :: errorcode
    integer, intent(inout) :: errorclass
    integer, intent(out), optional :: ierror
    call finish(ddtc_error_class(errorcode, errorclass), 'MPI_Error_class', ierror)
  end subroutine

  subroutine MPI_Error_string(errorcode, string, resultlen, ierror)
    integer, intent(in) :: errorcode
    character(len=*), intent(inout) :: string
    integer, intent(inout) :: resultlen
    integer, intent(out), optional :: ierror
    character(kind=c_char) :: c_string(MPI_MAX_ERROR_STRING + 1)
    integer :: code
    code = ddtc_error_string(errorcode, c_string, resultlen)
    if (code == 0) call from_c(c_string, resultlen, string)
    call finish(code, 'MPI_Error_string', ierror)
  end subroutine

  subroutine MPI_Add_error_class(errorclass, ierror)
    integer, intent(inout) :: errorclass
    integer, intent(out), optional :: ierror
    call finish(ddtc_error_add_class(errorclass), 'MPI_Add_error_class', ierror)
  end subroutine

  subroutine MPI_Add_error_code(errorclass, errorcode, ierror)
    integer, intent(in) :: errorclass
    integer, intent(inout) :: errorcode
    integer, intent(out), optional :: ierror
    call finish(ddtc_error_add_code(errorclass, errorcode), 'MPI_Add_error_code', ierror)
  end subroutine

  subroutine MPI_Add_error_string(errorcode, string, ierror)
    integer, intent(in) :: errorcode
    character(len=*), intent(in) :: string
    integer, intent(out), optional :: ierror
    call finish(ddtc_error_add_string(errorcode, to_c(string)), 'MPI_Add_error_string', ierror)
  end subroutine

  subroutine MPI_Remove_error_class(errorclass, ierror)
    integer, intent(in) :: errorclass
    integer, intent(out), optional :: ierror
    call finish(ddtc_error_remove_class(errorclass), 'MPI_Remove_error_class', ierror)
  end subroutine

  subroutine MPI_Remove_error_code(errorcode, ierror)
    integer, intent(in) :: errorcode
    integer, intent(out), optional :: ierror
    call finish(ddtc_error_remove_code(errorcode), 'MPI_Remove_error_code', ierror)
  end subroutine

  subroutine MPI_Remove_error_string(errorcode, ierror)
    integer, intent(in) :: errorcode
    integer, intent(out), optional :: ierror
    call finish(ddtc_error_remove_string(errorcode), 'MPI_Remove_error_string', ierror)
  end subroutine

  subroutine MPI_Comm_create_errhandler(comm_errhandler_fn, errhandler, ierror)
    procedure(MPI_Comm_errhandler_function) :: comm_errhandler_fn
    integer, intent(inout) :: errhandler
    integer, intent(out), optional :: ierror
    integer(WIDE) :: c_errhandler
    integer :: code
    code = ddtc_errhandler_create(DDTC_ERRHANDLER_FORTRAN, c_funloc(comm_errhandler_fn), c_errhandler)
    if (code == 0) errhandler = int(c_errhandler)
    call finish(code, 'MPI_Comm_create_errhandler', ierror)
  end subroutine

  subroutine MPI_Comm_set_errhandler(comm, errhandler, ierror)
    integer, intent(in) :: comm, errhandler
    integer, intent(out), optional :: ierror
    integer :: code
    code = known(comm, 'MPI_Comm_set_errhandler')
    if (code == 0) code = ddtc_errhandler_set(DDTC_ERRHANDLER_COMM, int(errhandler, WIDE))
    call finish(code, 'MPI_Comm_set_errhandler', ierror, comm)
  end subroutine

  subroutine MPI_Comm_get_errhandler(comm, errhandler, ierror)
    integer, intent(in) :: comm
    integer, intent(inout) :: errhandler
    integer, intent(out), optional :: ierror
    integer(WIDE) :: c_errhandler
    integer :: code
    code = known(comm, 'MPI_Comm_get_errhandler')
    if (code == 0) code = ddtc_errhandler_get(DDTC_ERRHANDLER_COMM, c_errhandler)
    if (code == 0) errhandler = int(c_errhandler)
    call finish(code, 'MPI_Comm_get_errhandler', ierror, comm)
  end subroutine

  subroutine MPI_Comm_call_errhandler(comm, errorcode, ierror)
    integer, intent(in) :: comm, errorcode
    integer, intent(out), optional :: ierror
    integer :: code
    code = known(comm, 'MPI_Comm_call_errhandler')
    if (code == 0) call raise(comm, errorcode, 'MPI_Comm_call_errhandler')
    call finish(code, 'MPI_Comm_call_errhandler', ierror, comm)
  end subroutine

  subroutine MPI_Errhandler_free(errhandler, ierror)
    integer, intent(inout) :: errhandler
    integer, intent(out), optional :: ierror
    integer(WIDE) :: c_errhandler
    integer :: code
    c_errhandler = errhandler
    code = ddtc_errhandler_free(c_errhandler)
    if (code == 0) errhandler = int(c_errhandler)
    call finish(code, 'MPI_Errhandler_free', ierror)
  end subroutine

  ! ---- One process ------------------------------------------------------------------------------------------------

  subroutine MPI_Init(ierror)
    integer, intent(out), optional :: ierror
    integer :: code
    ! The library must know the values that this compiler stores for .TRUE. and .FALSE.
    code = ddtc_set_fortran_booleans(transfer(.true., 0), transfer(.false., 0))
    if (code == 0) code = ddtc_mpi_set(DDTC_MPI_STATE, 1)
    call finish(code, 'MPI_Init', ierror)
  end subroutine

  ! Any thread may call MPI, whatever level of thread support is required.
  subroutine MPI_Query_thread(provided, ierror)
    integer, intent(inout) :: provided
    integer, intent(out), optional :: ierror
    provided = MPI_THREAD_MULTIPLE
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine

  subroutine MPI_Init_thread(required, provided, ierror)
    integer, intent(in) :: required
    integer, intent(inout) :: provided
    integer, intent(out), optional :: ierror
    provided = MPI_THREAD_MULTIPLE
    call MPI_Init(ierror)
  end subroutine

  ! Returns whether this thread called MPI_Init.
  subroutine MPI_Is_thread_main(flag, ierror)
    logical, intent(inout) :: flag
    integer, intent(out), optional :: ierror
    integer :: c_flag, code
    c_flag = 0
    code = ddtc_mpi_get(DDTC_MPI_THREAD_MAIN, c_flag)
    flag = c_flag /= 0
    call finish(code, 'MPI_Is_thread_main', ierror)
  end subroutine

  ! Writes a report if the control variable ddtc_report asks for one.
  subroutine MPI_Finalize(ierror)
    integer, intent(out), optional :: ierror
    integer :: code
    code = ddtc_mpi_set(DDTC_MPI_STATE, 2)
    if (code == 0) code = ddtc_t_report()
    call finish(code, 'MPI_Finalize', ierror)
  end subroutine

  subroutine MPI_Initialized(flag, ierror)
    logical, intent(inout) :: flag
    integer, intent(out), optional :: ierror
    integer :: code, state
    state = 0
    code = ddtc_mpi_get(DDTC_MPI_STATE, state)
    flag = state > 0
    call finish(code, 'MPI_Initialized', ierror)
  end subroutine

  subroutine MPI_Finalized(flag, ierror)
    logical, intent(inout) :: flag
    integer, intent(out), optional :: ierror
    integer :: code, state
    state = 0
    code = ddtc_mpi_get(DDTC_MPI_STATE, state)
    flag = state > 1
    call finish(code, 'MPI_Finalized', ierror)
  end subroutine

  subroutine MPI_Abort(comm, errorcode, ierror)
    integer, intent(in) :: comm, errorcode
    integer, intent(out), optional :: ierror
    call finish(known(comm, 'MPI_Abort'), 'MPI_Abort', ierror, comm)
    ! A process can return only the low 8 bits of a code. If these are 0, it returns 1, because 0
    ! would mean success.
    if (errorcode /= 0 .and. iand(errorcode, 255) == 0) stop 1
    stop errorcode
  end subroutine

  subroutine MPI_Comm_rank(comm, rank, ierror)
    integer, intent(in) :: comm
    integer, intent(inout) :: rank
    integer, intent(out), optional :: ierror
    rank = 0
    call finish(known(comm, 'MPI_Comm_rank'), 'MPI_Comm_rank', ierror, comm)
  end subroutine

  subroutine MPI_Comm_size(comm, size, ierror)
    integer, intent(in) :: comm
    integer, intent(inout) :: size
    integer, intent(out), optional :: ierror
    size = 1
    call finish(known(comm, 'MPI_Comm_size'), 'MPI_Comm_size', ierror, comm)
  end subroutine

  subroutine MPI_Barrier(comm, ierror)
    integer, intent(in) :: comm
    integer, intent(out), optional :: ierror
    call finish(known(comm, 'MPI_Barrier'), 'MPI_Barrier', ierror, comm)
  end subroutine

  subroutine MPI_Comm_get_attr(comm, comm_keyval, attribute_val, flag, ierror)
    integer, intent(in) :: comm, comm_keyval
    integer(MPI_ADDRESS_KIND), intent(inout) :: attribute_val
    logical, intent(inout) :: flag
    integer, intent(out), optional :: ierror
    type(c_ptr) :: place
    integer, pointer :: value
    integer :: code, found
    found = 0
    code = known(comm, 'MPI_Comm_get_attr')
    if (code == 0) code = ddtc_mpi_attribute(comm_keyval, place, found)
    flag = found /= 0
    if (flag) then
      call c_f_pointer(place, value)
      attribute_val = value
    end if
    call finish(code, 'MPI_Comm_get_attr', ierror, comm)
  end subroutine

  function MPI_Wtime() result(answer)
    double precision :: answer
    answer = ddtc_mpi_wtime()
  end function

  function MPI_Wtick() result(answer)
    double precision :: answer
    answer = 1d-9
  end function

  ! Returns the size in bytes of a variable of any numeric type. For an array, this is the size of
  ! one element.
  subroutine MPI_Sizeof(x, size, ierror)
    class(*), intent(in) :: x(..)
    integer, intent(out) :: size
    integer, intent(out), optional :: ierror
    size = int(storage_size(x) / 8)
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine

  subroutine MPI_Get_processor_name(name, resultlen, ierror)
    character(len=*), intent(inout) :: name
    integer, intent(inout) :: resultlen
    integer, intent(out), optional :: ierror
    name = 'localhost'
    resultlen = 9
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine

  subroutine MPI_Get_version(version, subversion, ierror)
    integer, intent(inout) :: version, subversion
    integer, intent(out), optional :: ierror
    version = MPI_VERSION
    subversion = MPI_SUBVERSION
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine

  subroutine MPI_Get_library_version(version, resultlen, ierror)
    character(len=*), intent(inout) :: version
    integer, intent(inout) :: resultlen
    integer, intent(out), optional :: ierror
    character(kind=c_char), pointer :: text(:)
    call c_f_pointer(ddtc_version_string(), text, [MPI_MAX_LIBRARY_VERSION_STRING])
    resultlen = 0
    do while (text(resultlen + 1) /= c_null_char)
      resultlen = resultlen + 1
    end do
    call from_c(text, resultlen, version)
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine

  ! ---- Info: what a program puts in; nothing here takes hints -----------------------------------------------------

  ! Blanks before and after a key or a value do not belong to it (MPI 5.0, chapter 10).

  subroutine MPI_Info_create(info, ierror)
    integer, intent(inout) :: info
    integer, intent(out), optional :: ierror
    integer(WIDE) :: c_info
    integer :: code
    code = ddtc_info_create(c_info)
    if (code == 0) info = int(c_info)
    call finish(code, 'MPI_Info_create', ierror)
  end subroutine

  subroutine MPI_Info_create_env(info, ierror)
    integer, intent(inout) :: info
    integer, intent(out), optional :: ierror
    call MPI_Info_dup(MPI_INFO_ENV, info, ierror)
  end subroutine

  subroutine MPI_Info_dup(info, newinfo, ierror)
    integer, intent(in) :: info
    integer, intent(inout) :: newinfo
    integer, intent(out), optional :: ierror
    integer(WIDE) :: c_newinfo
    integer :: code
    code = ddtc_info_dup(int(info, WIDE), c_newinfo)
    if (code == 0) newinfo = int(c_newinfo)
    call finish(code, 'MPI_Info_dup', ierror)
  end subroutine

  subroutine MPI_Info_free(info, ierror)
    integer, intent(inout) :: info
    integer, intent(out), optional :: ierror
    integer(WIDE) :: c_info
    integer :: code
    c_info = info
    code = ddtc_info_free(c_info)
    if (code == 0) info = int(c_info)
    call finish(code, 'MPI_Info_free', ierror)
  end subroutine

  subroutine MPI_Info_set(info, key, value, ierror)
    integer, intent(in) :: info
    character(len=*), intent(in) :: key, value
    integer, intent(out), optional :: ierror
    call finish(ddtc_info_set(int(info, WIDE), to_c(adjustl(key)), to_c(adjustl(value))), 'MPI_Info_set', ierror)
  end subroutine

  subroutine MPI_Info_delete(info, key, ierror)
    integer, intent(in) :: info
    character(len=*), intent(in) :: key
    integer, intent(out), optional :: ierror
    call finish(ddtc_info_delete(int(info, WIDE), to_c(adjustl(key))), 'MPI_Info_delete', ierror)
  end subroutine

  ! On entry, buflen is the number of characters wanted, or 0; on return, that of the whole value.
  subroutine MPI_Info_get_string(info, key, buflen, value, flag, ierror)
    integer, intent(in) :: info
    character(len=*), intent(in) :: key
    integer, intent(inout) :: buflen
    character(len=*), intent(inout) :: value
    logical, intent(inout) :: flag
    integer, intent(out), optional :: ierror
    character(kind=c_char) :: text(MPI_MAX_INFO_VAL + 1)
    integer :: code, found, room, dummy
    found = 0
    room = MPI_MAX_INFO_VAL + 1
    code = merge(MPI_ERR_ARG, MPI_SUCCESS, buflen < 0)
    if (code /= 0) dummy = ddtc_mpi_explain(code, to_c('MPI_Info_get_string'), to_c('buflen'), to_c('below 0'), &
      to_c('must not be negative'))
    if (code == 0) code = ddtc_info_get_string(int(info, WIDE), to_c(adjustl(key)), room, text, found)
    flag = found /= 0
    if (flag) then
      if (buflen > 0) call from_c(text, min(buflen, room - 1), value)
      buflen = room - 1
    end if
    call finish(code, 'MPI_Info_get_string', ierror)
  end subroutine

  subroutine MPI_Info_get(info, key, valuelen, value, flag, ierror)
    integer, intent(in) :: info
    character(len=*), intent(in) :: key
    integer, intent(in) :: valuelen
    character(len=*), intent(inout) :: value
    logical, intent(inout) :: flag
    integer, intent(out), optional :: ierror
    integer :: length
    length = valuelen
    call MPI_Info_get_string(info, key, length, value, flag, ierror)
  end subroutine

  subroutine MPI_Info_get_valuelen(info, key, valuelen, flag, ierror)
    integer, intent(in) :: info
    character(len=*), intent(in) :: key
    integer, intent(inout) :: valuelen
    logical, intent(inout) :: flag
    integer, intent(out), optional :: ierror
    integer :: length
    character :: nothing
    length = 0
    call MPI_Info_get_string(info, key, length, nothing, flag, ierror)
    if (flag) valuelen = length
  end subroutine

  subroutine MPI_Info_get_nkeys(info, nkeys, ierror)
    integer, intent(in) :: info
    integer, intent(inout) :: nkeys
    integer, intent(out), optional :: ierror
    call finish(ddtc_info_get_nkeys(int(info, WIDE), nkeys), 'MPI_Info_get_nkeys', ierror)
  end subroutine

  subroutine MPI_Info_get_nthkey(info, n, key, ierror)
    integer, intent(in) :: info, n
    character(len=*), intent(inout) :: key
    integer, intent(out), optional :: ierror
    character(kind=c_char) :: text(MPI_MAX_INFO_KEY + 1)
    integer :: code, length
    code = ddtc_info_get_nthkey(int(info, WIDE), n, text)
    if (code == 0) then
      length = 0
      do while (text(length + 1) /= c_null_char)
        length = length + 1
      end do
      call from_c(text, length, key)
    end if
    call finish(code, 'MPI_Info_get_nthkey', ierror)
  end subroutine

  ! ---- Datatypes --------------------------------------------------------------------------------------------------

  subroutine MPI_Type_contiguous(count, oldtype, newtype, ierror)
    integer, intent(in) :: count, oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_contiguous(count, c_oldtype, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_contiguous', ierror)
  end subroutine

  subroutine MPI_Type_contiguous_c(count, oldtype, newtype, ierror)
    integer(MPI_COUNT_KIND), intent(in) :: count
    integer, intent(in) :: oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_contiguous_c(count, c_oldtype, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_contiguous_c', ierror)
  end subroutine

  subroutine MPI_Type_vector(count, blocklength, stride, oldtype, newtype, ierror)
    integer, intent(in) :: count, blocklength, stride, oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_vector(count, blocklength, stride, c_oldtype, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_vector', ierror)
  end subroutine

  subroutine MPI_Type_vector_c(count, blocklength, stride, oldtype, newtype, ierror)
    integer(MPI_COUNT_KIND), intent(in) :: count, blocklength, stride
    integer, intent(in) :: oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_vector_c(count, blocklength, stride, c_oldtype, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_vector_c', ierror)
  end subroutine

  subroutine MPI_Type_create_hvector(count, blocklength, stride, oldtype, newtype, ierror)
    integer, intent(in) :: count, blocklength
    integer(MPI_ADDRESS_KIND), intent(in) :: stride
    integer, intent(in) :: oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_create_hvector(count, blocklength, stride, c_oldtype, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_hvector', ierror)
  end subroutine

  subroutine MPI_Type_create_hvector_c(count, blocklength, stride, oldtype, newtype, ierror)
    integer(MPI_COUNT_KIND), intent(in) :: count, blocklength, stride
    integer, intent(in) :: oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_create_hvector_c(count, blocklength, stride, c_oldtype, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_hvector_c', ierror)
  end subroutine

  subroutine MPI_Type_indexed(count, array_of_blocklengths, array_of_displacements, oldtype, newtype, ierror)
    integer, intent(in) :: count, array_of_blocklengths(*), array_of_displacements(*), oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_indexed(count, array_of_blocklengths, array_of_displacements, c_oldtype, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_indexed', ierror)
  end subroutine

  subroutine MPI_Type_indexed_c(count, array_of_blocklengths, array_of_displacements, oldtype, newtype, ierror)
    integer(MPI_COUNT_KIND), intent(in) :: count, array_of_blocklengths(*), array_of_displacements(*)
    integer, intent(in) :: oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_indexed_c(count, array_of_blocklengths, array_of_displacements, c_oldtype, &
      c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_indexed_c', ierror)
  end subroutine

  subroutine MPI_Type_create_hindexed(count, array_of_blocklengths, array_of_displacements, oldtype, newtype, ierror)
    integer, intent(in) :: count, array_of_blocklengths(*)
    integer(MPI_ADDRESS_KIND), intent(in) :: array_of_displacements(*)
    integer, intent(in) :: oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_create_hindexed(count, array_of_blocklengths, array_of_displacements, c_oldtype, &
      c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_hindexed', ierror)
  end subroutine

  subroutine MPI_Type_create_hindexed_c(count, array_of_blocklengths, array_of_displacements, oldtype, newtype, ierror)
    integer(MPI_COUNT_KIND), intent(in) :: count, array_of_blocklengths(*), array_of_displacements(*)
    integer, intent(in) :: oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_create_hindexed_c(count, array_of_blocklengths, array_of_displacements, &
      c_oldtype, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_hindexed_c', ierror)
  end subroutine

  subroutine MPI_Type_create_indexed_block(count, blocklength, array_of_displacements, oldtype, newtype, ierror)
    integer, intent(in) :: count, blocklength, array_of_displacements(*), oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_create_indexed_block(count, blocklength, array_of_displacements, c_oldtype, &
      c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_indexed_block', ierror)
  end subroutine

  subroutine MPI_Type_create_indexed_block_c(count, blocklength, array_of_displacements, oldtype, newtype, ierror)
    integer(MPI_COUNT_KIND), intent(in) :: count, blocklength, array_of_displacements(*)
    integer, intent(in) :: oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_create_indexed_block_c(count, blocklength, array_of_displacements, c_oldtype, &
      c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_indexed_block_c', ierror)
  end subroutine

  subroutine MPI_Type_create_hindexed_block(count, blocklength, array_of_displacements, oldtype, newtype, ierror)
    integer, intent(in) :: count, blocklength
    integer(MPI_ADDRESS_KIND), intent(in) :: array_of_displacements(*)
    integer, intent(in) :: oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_create_hindexed_block(count, blocklength, array_of_displacements, c_oldtype, &
      c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_hindexed_block', ierror)
  end subroutine

  subroutine MPI_Type_create_hindexed_block_c(count, blocklength, array_of_displacements, oldtype, newtype, ierror)
    integer(MPI_COUNT_KIND), intent(in) :: count, blocklength, array_of_displacements(*)
    integer, intent(in) :: oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_create_hindexed_block_c(count, blocklength, array_of_displacements, c_oldtype, &
      c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_hindexed_block_c', ierror)
  end subroutine

  subroutine MPI_Type_create_struct(count, array_of_blocklengths, array_of_displacements, array_of_types, newtype, &
      ierror)
    integer, intent(in) :: count, array_of_blocklengths(*)
    integer(MPI_ADDRESS_KIND), intent(in) :: array_of_displacements(*)
    integer, intent(in) :: array_of_types(*)
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr), allocatable :: c_array_of_types(:)
    type(c_ptr) :: c_newtype
    integer :: code
    code = take_all(int(count, MPI_COUNT_KIND), array_of_types, c_array_of_types)
    if (code == 0) code = ddtc_type_create_struct(count, array_of_blocklengths, array_of_displacements, &
      c_array_of_types, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_struct', ierror)
  end subroutine

  subroutine MPI_Type_create_struct_c(count, array_of_blocklengths, array_of_displacements, array_of_types, newtype, &
      ierror)
    integer(MPI_COUNT_KIND), intent(in) :: count, array_of_blocklengths(*), array_of_displacements(*)
    integer, intent(in) :: array_of_types(*)
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr), allocatable :: c_array_of_types(:)
    type(c_ptr) :: c_newtype
    integer :: code
    code = take_all(int(count, MPI_COUNT_KIND), array_of_types, c_array_of_types)
    if (code == 0) code = ddtc_type_create_struct_c(count, array_of_blocklengths, array_of_displacements, &
      c_array_of_types, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_struct_c', ierror)
  end subroutine

  subroutine MPI_Type_create_subarray(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order, oldtype, &
      newtype, ierror)
    integer, intent(in) :: ndims, array_of_sizes(*), array_of_subsizes(*), array_of_starts(*), order, oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_create_subarray(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order, &
      c_oldtype, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_subarray', ierror)
  end subroutine

  subroutine MPI_Type_create_subarray_c(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order, oldtype, &
      newtype, ierror)
    integer, intent(in) :: ndims
    integer(MPI_COUNT_KIND), intent(in) :: array_of_sizes(*), array_of_subsizes(*), array_of_starts(*)
    integer, intent(in) :: order, oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_create_subarray_c(ndims, array_of_sizes, array_of_subsizes, array_of_starts, &
      order, c_oldtype, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_subarray_c', ierror)
  end subroutine

  subroutine MPI_Type_create_darray(size, rank, ndims, array_of_gsizes, array_of_distribs, array_of_dargs, &
      array_of_psizes, order, oldtype, newtype, ierror)
    integer, intent(in) :: size, rank, ndims, array_of_gsizes(*), array_of_distribs(*), array_of_dargs(*), &
      array_of_psizes(*), order, oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_create_darray(size, rank, ndims, array_of_gsizes, array_of_distribs, &
      array_of_dargs, array_of_psizes, order, c_oldtype, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_darray', ierror)
  end subroutine

  subroutine MPI_Type_create_darray_c(size, rank, ndims, array_of_gsizes, array_of_distribs, array_of_dargs, &
      array_of_psizes, order, oldtype, newtype, ierror)
    integer, intent(in) :: size, rank, ndims
    integer(MPI_COUNT_KIND), intent(in) :: array_of_gsizes(*)
    integer, intent(in) :: array_of_distribs(*), array_of_dargs(*), array_of_psizes(*), order, oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_create_darray_c(size, rank, ndims, array_of_gsizes, array_of_distribs, &
      array_of_dargs, array_of_psizes, order, c_oldtype, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_darray_c', ierror)
  end subroutine

  subroutine MPI_Type_create_resized(oldtype, lb, extent, newtype, ierror)
    integer, intent(in) :: oldtype
    integer(MPI_ADDRESS_KIND), intent(in) :: lb, extent
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_create_resized(c_oldtype, lb, extent, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_resized', ierror)
  end subroutine

  subroutine MPI_Type_create_resized_c(oldtype, lb, extent, newtype, ierror)
    integer, intent(in) :: oldtype
    integer(MPI_COUNT_KIND), intent(in) :: lb, extent
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_create_resized_c(c_oldtype, lb, extent, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_resized_c', ierror)
  end subroutine

  subroutine MPI_Type_create_f90_real(p, r, newtype, ierror)
    integer, intent(in) :: p, r
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_newtype
    integer :: code
    code = ddtc_type_create_f90_real(p, r, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_f90_real', ierror)
  end subroutine

  subroutine MPI_Type_create_f90_complex(p, r, newtype, ierror)
    integer, intent(in) :: p, r
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_newtype
    integer :: code
    code = ddtc_type_create_f90_complex(p, r, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_f90_complex', ierror)
  end subroutine

  subroutine MPI_Type_create_f90_integer(r, newtype, ierror)
    integer, intent(in) :: r
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_newtype
    integer :: code
    code = ddtc_type_create_f90_integer(r, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_create_f90_integer', ierror)
  end subroutine

  subroutine MPI_Type_get_value_index(value_type, index_type, pair_type, ierror)
    integer, intent(in) :: value_type, index_type
    integer, intent(inout) :: pair_type
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_value_type, c_index_type, c_pair_type
    integer :: code
    code = ddtc_type_fromint(value_type, c_value_type)
    if (code == 0) code = ddtc_type_fromint(index_type, c_index_type)
    if (code == 0) code = ddtc_type_get_value_index(c_value_type, c_index_type, c_pair_type)
    if (code == 0) code = ddtc_type_toint(c_pair_type, pair_type)
    call finish(code, 'MPI_Type_get_value_index', ierror)
  end subroutine

  subroutine MPI_Type_match_size(typeclass, size, datatype, ierror)
    integer, intent(in) :: typeclass, size
    integer, intent(inout) :: datatype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_match_size(typeclass, size, c_datatype)
    if (code == 0) code = ddtc_type_toint(c_datatype, datatype)
    call finish(code, 'MPI_Type_match_size', ierror)
  end subroutine

  subroutine MPI_Type_dup(oldtype, newtype, ierror)
    integer, intent(in) :: oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: old, new
    integer :: code
    newtype = MPI_DATATYPE_NULL
    code = ddtc_type_fromint(oldtype, old)
    if (code == 0) code = ddtc_type_dup(old, new)
    if (code == 0) code = ddtc_type_toint(new, newtype)
    call finish(code, 'MPI_Type_dup', ierror)
  end subroutine

  subroutine MPI_Type_commit(datatype, ierror)
    integer, intent(in) :: datatype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_type_commit(c_datatype)
    call finish(code, 'MPI_Type_commit', ierror)
  end subroutine

  subroutine MPI_Type_free(datatype, ierror)
    integer, intent(inout) :: datatype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: handle
    integer :: code
    code = ddtc_type_fromint(datatype, handle)
    if (code == 0) code = ddtc_type_free(handle)
    if (code == 0) datatype = MPI_DATATYPE_NULL
    call finish(code, 'MPI_Type_free', ierror)
  end subroutine

  subroutine MPI_Type_size(datatype, size, ierror)
    integer, intent(in) :: datatype
    integer, intent(inout) :: size
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_type_size(c_datatype, size)
    call finish(code, 'MPI_Type_size', ierror)
  end subroutine

  subroutine MPI_Type_size_c(datatype, size, ierror)
    integer, intent(in) :: datatype
    integer(MPI_COUNT_KIND), intent(inout) :: size
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_type_size_c(c_datatype, size)
    call finish(code, 'MPI_Type_size_c', ierror)
  end subroutine

  subroutine MPI_Type_size_x(datatype, size, ierror)
    integer, intent(in) :: datatype
    integer(MPI_COUNT_KIND), intent(inout) :: size
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_type_size_x(c_datatype, size)
    call finish(code, 'MPI_Type_size_x', ierror)
  end subroutine

  subroutine MPI_Type_get_extent(datatype, lb, extent, ierror)
    integer, intent(in) :: datatype
    integer(MPI_ADDRESS_KIND), intent(inout) :: lb, extent
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_type_get_extent(c_datatype, lb, extent)
    call finish(code, 'MPI_Type_get_extent', ierror)
  end subroutine

  subroutine MPI_Type_get_extent_c(datatype, lb, extent, ierror)
    integer, intent(in) :: datatype
    integer(MPI_COUNT_KIND), intent(inout) :: lb, extent
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_type_get_extent_c(c_datatype, lb, extent)
    call finish(code, 'MPI_Type_get_extent_c', ierror)
  end subroutine

  subroutine MPI_Type_get_extent_x(datatype, lb, extent, ierror)
    integer, intent(in) :: datatype
    integer(MPI_COUNT_KIND), intent(inout) :: lb, extent
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_type_get_extent_x(c_datatype, lb, extent)
    call finish(code, 'MPI_Type_get_extent_x', ierror)
  end subroutine

  subroutine MPI_Type_get_true_extent(datatype, true_lb, true_extent, ierror)
    integer, intent(in) :: datatype
    integer(MPI_ADDRESS_KIND), intent(inout) :: true_lb, true_extent
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_type_get_true_extent(c_datatype, true_lb, true_extent)
    call finish(code, 'MPI_Type_get_true_extent', ierror)
  end subroutine

  subroutine MPI_Type_get_true_extent_c(datatype, true_lb, true_extent, ierror)
    integer, intent(in) :: datatype
    integer(MPI_COUNT_KIND), intent(inout) :: true_lb, true_extent
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_type_get_true_extent_c(c_datatype, true_lb, true_extent)
    call finish(code, 'MPI_Type_get_true_extent_c', ierror)
  end subroutine

  subroutine MPI_Type_get_true_extent_x(datatype, true_lb, true_extent, ierror)
    integer, intent(in) :: datatype
    integer(MPI_COUNT_KIND), intent(inout) :: true_lb, true_extent
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_type_get_true_extent_x(c_datatype, true_lb, true_extent)
    call finish(code, 'MPI_Type_get_true_extent_x', ierror)
  end subroutine

  subroutine MPI_Type_set_name(datatype, type_name, ierror)
    integer, intent(in) :: datatype
    character(len=*), intent(in) :: type_name
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_type_set_name(c_datatype, to_c(type_name))
    call finish(code, 'MPI_Type_set_name', ierror)
  end subroutine

  subroutine MPI_Type_get_name(datatype, type_name, resultlen, ierror)
    integer, intent(in) :: datatype
    character(len=*), intent(inout) :: type_name
    integer, intent(inout) :: resultlen
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    character(kind=c_char) :: c_type_name(MPI_MAX_ERROR_STRING + 1)
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_type_get_name(c_datatype, c_type_name, resultlen)
    if (code == 0) call from_c(c_type_name, resultlen, type_name)
    call finish(code, 'MPI_Type_get_name', ierror)
  end subroutine

  subroutine MPI_Type_get_envelope(datatype, num_integers, num_addresses, num_datatypes, combiner, ierror)
    integer, intent(in) :: datatype
    integer, intent(inout) :: num_integers, num_addresses, num_datatypes, combiner
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_type_get_envelope(c_datatype, num_integers, num_addresses, num_datatypes, combiner)
    call finish(code, 'MPI_Type_get_envelope', ierror)
  end subroutine

  subroutine MPI_Type_get_envelope_c(datatype, num_integers, num_addresses, num_large_counts, num_datatypes, &
      combiner, ierror)
    integer, intent(in) :: datatype
    integer(MPI_COUNT_KIND), intent(inout) :: num_integers, num_addresses, num_large_counts, num_datatypes
    integer, intent(inout) :: combiner
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_type_get_envelope_c(c_datatype, num_integers, num_addresses, num_large_counts, &
      num_datatypes, combiner)
    call finish(code, 'MPI_Type_get_envelope_c', ierror)
  end subroutine

  subroutine MPI_Type_get_contents(datatype, max_integers, max_addresses, max_datatypes, array_of_integers, &
      array_of_addresses, array_of_datatypes, ierror)
    integer, intent(in) :: datatype, max_integers, max_addresses, max_datatypes
    integer, intent(inout) :: array_of_integers(*)
    integer(MPI_ADDRESS_KIND), intent(inout) :: array_of_addresses(*)
    integer, intent(inout) :: array_of_datatypes(*)
    integer, intent(out), optional :: ierror
    type(c_ptr), allocatable :: handles(:)
    type(c_ptr) :: handle
    integer(MPI_COUNT_KIND) :: n(4)
    integer :: code, combiner
    allocate (handles(max(max_datatypes, 1)))
    code = ddtc_type_fromint(datatype, handle)
    if (code == 0) code = ddtc_type_get_contents(handle, max_integers, max_addresses, max_datatypes, &
      array_of_integers, &
      array_of_addresses, handles)
    if (code == 0) code = ddtc_type_get_envelope_c(handle, n(1), n(2), n(3), n(4), combiner)
    if (code == 0) call give_all(code, n(4), handles, array_of_datatypes)
    call finish(code, 'MPI_Type_get_contents', ierror)
  end subroutine

  subroutine MPI_Type_get_contents_c(datatype, max_integers, max_addresses, max_large_counts, max_datatypes, &
      array_of_integers, array_of_addresses, array_of_large_counts, array_of_datatypes, ierror)
    integer, intent(in) :: datatype
    integer(MPI_COUNT_KIND), intent(in) :: max_integers, max_addresses, max_large_counts, max_datatypes
    integer, intent(inout) :: array_of_integers(*)
    integer(MPI_ADDRESS_KIND), intent(inout) :: array_of_addresses(*)
    integer(MPI_COUNT_KIND), intent(inout) :: array_of_large_counts(*)
    integer, intent(inout) :: array_of_datatypes(*)
    integer, intent(out), optional :: ierror
    type(c_ptr), allocatable :: handles(:)
    type(c_ptr) :: handle
    integer(MPI_COUNT_KIND) :: n(4)
    integer :: code, combiner
    allocate (handles(max(max_datatypes, 1_MPI_COUNT_KIND)))
    code = ddtc_type_fromint(datatype, handle)
    if (code == 0) code = ddtc_type_get_contents_c(handle, max_integers, max_addresses, max_large_counts, &
      max_datatypes, &
      array_of_integers, array_of_addresses, array_of_large_counts, handles)
    if (code == 0) code = ddtc_type_get_envelope_c(handle, n(1), n(2), n(3), n(4), combiner)
    if (code == 0) call give_all(code, n(4), handles, array_of_datatypes)
    call finish(code, 'MPI_Type_get_contents_c', ierror)
  end subroutine

  subroutine MPI_TYPE_NULL_COPY_FN(oldtype, type_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    integer :: oldtype, type_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    flag = .false.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine MPI_TYPE_DUP_FN(oldtype, type_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    integer :: oldtype, type_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    attribute_val_out = attribute_val_in
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine MPI_TYPE_NULL_DELETE_FN(datatype, type_keyval, attribute_val, extra_state, ierror)
    integer :: datatype, type_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    ierror = MPI_SUCCESS
  end subroutine

  subroutine MPI_Type_create_keyval(type_copy_attr_fn, type_delete_attr_fn, type_keyval, extra_state, ierror)
    procedure(MPI_Type_copy_attr_function) :: type_copy_attr_fn
    procedure(MPI_Type_delete_attr_function) :: type_delete_attr_fn
    integer, intent(inout) :: type_keyval
    integer(MPI_ADDRESS_KIND), intent(in) :: extra_state
    integer, intent(out), optional :: ierror
    call finish(ddtc_type_create_keyval_f(c_funloc(type_copy_attr_fn), c_funloc(type_delete_attr_fn), type_keyval, &
      extra_state), 'MPI_Type_create_keyval', ierror)
  end subroutine

  subroutine MPI_Type_free_keyval(type_keyval, ierror)
    integer, intent(inout) :: type_keyval
    integer, intent(out), optional :: ierror
    call finish(ddtc_type_free_keyval(type_keyval), 'MPI_Type_free_keyval', ierror)
  end subroutine

  subroutine MPI_Type_set_attr(datatype, type_keyval, attribute_val, ierror)
    integer, intent(in) :: datatype, type_keyval
    integer(MPI_ADDRESS_KIND), intent(in) :: attribute_val
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_type_set_attr(c_datatype, type_keyval, attribute_val)
    call finish(code, 'MPI_Type_set_attr', ierror)
  end subroutine

  subroutine MPI_Type_get_attr(datatype, type_keyval, attribute_val, flag, ierror)
    integer, intent(in) :: datatype, type_keyval
    integer(MPI_ADDRESS_KIND), intent(inout) :: attribute_val
    logical, intent(inout) :: flag
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: c_flag, code
    code = ddtc_type_fromint(datatype, c_datatype)
    c_flag = 0
    if (code == 0) code = ddtc_type_get_attr(c_datatype, type_keyval, attribute_val, c_flag)
    flag = c_flag /= 0
    call finish(code, 'MPI_Type_get_attr', ierror)
  end subroutine

  subroutine MPI_Type_delete_attr(datatype, type_keyval, ierror)
    integer, intent(in) :: datatype, type_keyval
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_type_delete_attr(c_datatype, type_keyval)
    call finish(code, 'MPI_Type_delete_attr', ierror)
  end subroutine

  ! ---- The window accessors of 1996 -------------------------------------------------------------------------------

  subroutine MPI_Type_envelope(datatype, count, combiner, ierror)
    integer, intent(in) :: datatype
    integer, intent(inout) :: count, combiner
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_type_envelope(c_datatype, count, combiner)
    call finish(code, 'MPI_Type_envelope', ierror)
  end subroutine

  subroutine MPI_Type_contents(datatype, start, count, array_blocklens, stride, array_disps, array_types, ierror)
    integer, intent(in) :: datatype, start, count
    integer, intent(inout) :: array_blocklens(*)
    integer(MPI_ADDRESS_KIND), intent(inout) :: stride, array_disps(*)
    integer, intent(inout) :: array_types(*)
    integer, intent(out), optional :: ierror
    type(c_ptr), allocatable :: handles(:)
    type(c_ptr) :: handle
    integer(MPI_COUNT_KIND) :: filled
    integer :: code, all, combiner
    allocate (handles(max(count, 1)))
    code = ddtc_type_fromint(datatype, handle)
    if (code == 0) code = ddtc_type_contents(handle, start, count, array_blocklens, stride, array_disps, handles)
    if (code == 0) code = ddtc_type_envelope(handle, all, combiner)
    if (code == 0) then
      filled = 1
      if (combiner == MPI_STRUCT) filled = max(0, min(count, all - start))
      call give_all(code, filled, handles, array_types)
    end if
    call finish(code, 'MPI_Type_contents', ierror)
  end subroutine

  ! ---- Addresses, pack, status ------------------------------------------------------------------------------------

  subroutine MPI_Get_address(location, address, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: location
    type(*), intent(in) :: location
    integer(MPI_ADDRESS_KIND), intent(inout) :: address
    integer, intent(out), optional :: ierror
    integer :: code
    code = ddtc_get_address(location, address)
    call finish(code, 'MPI_Get_address', ierror)
  end subroutine

  pure function MPI_Aint_add(base, disp) result(answer)
    integer(MPI_ADDRESS_KIND), intent(in) :: base, disp
    integer(MPI_ADDRESS_KIND) :: answer
    answer = base + disp
  end function

  pure function MPI_Aint_diff(addr1, addr2) result(answer)
    integer(MPI_ADDRESS_KIND), intent(in) :: addr1, addr2
    integer(MPI_ADDRESS_KIND) :: answer
    answer = addr1 - addr2
  end function

  subroutine MPI_Pack(inbuf, incount, datatype, outbuf, outsize, position, comm, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: inbuf, outbuf
    type(*), intent(in) :: inbuf
    integer, intent(in) :: incount, datatype
    type(*) :: outbuf
    integer, intent(in) :: outsize
    integer, intent(inout) :: position
    integer, intent(in) :: comm
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = known(comm, 'MPI_Pack')
    if (code == 0) code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_pack(buffer(inbuf), incount, c_datatype, buffer(outbuf), outsize, position)
    call finish(code, 'MPI_Pack', ierror, comm)
  end subroutine

  subroutine MPI_Unpack(inbuf, insize, position, outbuf, outcount, datatype, comm, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: inbuf, outbuf
    type(*), intent(in) :: inbuf
    integer, intent(in) :: insize
    integer, intent(inout) :: position
    type(*) :: outbuf
    integer, intent(in) :: outcount, datatype, comm
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = known(comm, 'MPI_Unpack')
    if (code == 0) code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_unpack(buffer(inbuf), insize, position, buffer(outbuf), outcount, c_datatype)
    call finish(code, 'MPI_Unpack', ierror, comm)
  end subroutine

  subroutine MPI_Pack_size(incount, datatype, comm, size, ierror)
    integer, intent(in) :: incount, datatype, comm
    integer, intent(inout) :: size
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = known(comm, 'MPI_Pack_size')
    if (code == 0) code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_pack_size(incount, c_datatype, size)
    call finish(code, 'MPI_Pack_size', ierror, comm)
  end subroutine

  subroutine MPI_Pack_c(inbuf, incount, datatype, outbuf, outsize, position, comm, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: inbuf, outbuf
    type(*), intent(in) :: inbuf
    integer(MPI_COUNT_KIND), intent(in) :: incount
    integer, intent(in) :: datatype
    type(*) :: outbuf
    integer(MPI_COUNT_KIND), intent(in) :: outsize
    integer(MPI_COUNT_KIND), intent(inout) :: position
    integer, intent(in) :: comm
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = known(comm, 'MPI_Pack_c')
    if (code == 0) code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_pack_c(buffer(inbuf), incount, c_datatype, buffer(outbuf), outsize, position)
    call finish(code, 'MPI_Pack_c', ierror, comm)
  end subroutine

  subroutine MPI_Unpack_c(inbuf, insize, position, outbuf, outcount, datatype, comm, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: inbuf, outbuf
    type(*), intent(in) :: inbuf
    integer(MPI_COUNT_KIND), intent(in) :: insize
    integer(MPI_COUNT_KIND), intent(inout) :: position
    type(*) :: outbuf
    integer(MPI_COUNT_KIND), intent(in) :: outcount
    integer, intent(in) :: datatype, comm
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = known(comm, 'MPI_Unpack_c')
    if (code == 0) code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_unpack_c(buffer(inbuf), insize, position, buffer(outbuf), outcount, c_datatype)
    call finish(code, 'MPI_Unpack_c', ierror, comm)
  end subroutine

  subroutine MPI_Pack_size_c(incount, datatype, comm, size, ierror)
    integer(MPI_COUNT_KIND), intent(in) :: incount
    integer, intent(in) :: datatype, comm
    integer(MPI_COUNT_KIND), intent(inout) :: size
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = known(comm, 'MPI_Pack_size_c')
    if (code == 0) code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_pack_size_c(incount, c_datatype, size)
    call finish(code, 'MPI_Pack_size_c', ierror, comm)
  end subroutine

  ! These functions have no communicator, so their errors go to the handler of MPI_COMM_SELF.
  subroutine MPI_Reduce_local(inbuf, inoutbuf, count, datatype, op, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: inbuf, inoutbuf
    type(*), intent(in) :: inbuf
    type(*) :: inoutbuf
    integer, intent(in) :: count, datatype, op
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype, c_op
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    c_op = transfer(int(op, WIDE), c_null_ptr)
    if (code == 0) code = ddtc_reduce_local(buffer(inbuf), buffer(inoutbuf), count, c_datatype, c_op)
    call finish(code, 'MPI_Reduce_local', ierror)
  end subroutine

  subroutine MPI_Reduce_local_c(inbuf, inoutbuf, count, datatype, op, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: inbuf, inoutbuf
    type(*), intent(in) :: inbuf
    type(*) :: inoutbuf
    integer(MPI_COUNT_KIND), intent(in) :: count
    integer, intent(in) :: datatype, op
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype, c_op
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    c_op = transfer(int(op, WIDE), c_null_ptr)
    if (code == 0) code = ddtc_reduce_local_c(buffer(inbuf), buffer(inoutbuf), count, c_datatype, c_op)
    call finish(code, 'MPI_Reduce_local_c', ierror)
  end subroutine

  subroutine MPI_Pack_external(datarep, inbuf, incount, datatype, outbuf, outsize, position, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: inbuf, outbuf
    character(len=*), intent(in) :: datarep
    type(*), intent(in) :: inbuf
    integer, intent(in) :: incount, datatype
    type(*) :: outbuf
    integer(MPI_ADDRESS_KIND), intent(in) :: outsize
    integer(MPI_ADDRESS_KIND), intent(inout) :: position
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_pack_external(to_c(datarep), buffer(inbuf), incount, c_datatype, buffer(outbuf), &
      outsize, position)
    call finish(code, 'MPI_Pack_external', ierror)
  end subroutine

  subroutine MPI_Pack_external_c(datarep, inbuf, incount, datatype, outbuf, outsize, position, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: inbuf, outbuf
    character(len=*), intent(in) :: datarep
    type(*), intent(in) :: inbuf
    integer(MPI_COUNT_KIND), intent(in) :: incount
    integer, intent(in) :: datatype
    type(*) :: outbuf
    integer(MPI_COUNT_KIND), intent(in) :: outsize
    integer(MPI_COUNT_KIND), intent(inout) :: position
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_pack_external_c(to_c(datarep), buffer(inbuf), incount, c_datatype, buffer(outbuf), &
      outsize, position)
    call finish(code, 'MPI_Pack_external_c', ierror)
  end subroutine

  subroutine MPI_Unpack_external(datarep, inbuf, insize, position, outbuf, outcount, datatype, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: inbuf, outbuf
    character(len=*), intent(in) :: datarep
    type(*), intent(in) :: inbuf
    integer(MPI_ADDRESS_KIND), intent(in) :: insize
    integer(MPI_ADDRESS_KIND), intent(inout) :: position
    type(*) :: outbuf
    integer, intent(in) :: outcount, datatype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_unpack_external(to_c(datarep), buffer(inbuf), insize, position, buffer(outbuf), &
      outcount, c_datatype)
    call finish(code, 'MPI_Unpack_external', ierror)
  end subroutine

  subroutine MPI_Unpack_external_c(datarep, inbuf, insize, position, outbuf, outcount, datatype, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: inbuf, outbuf
    character(len=*), intent(in) :: datarep
    type(*), intent(in) :: inbuf
    integer(MPI_COUNT_KIND), intent(in) :: insize
    integer(MPI_COUNT_KIND), intent(inout) :: position
    type(*) :: outbuf
    integer(MPI_COUNT_KIND), intent(in) :: outcount
    integer, intent(in) :: datatype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_unpack_external_c(to_c(datarep), buffer(inbuf), insize, position, buffer(outbuf), &
      outcount, c_datatype)
    call finish(code, 'MPI_Unpack_external_c', ierror)
  end subroutine

  subroutine MPI_Pack_external_size(datarep, incount, datatype, size, ierror)
    character(len=*), intent(in) :: datarep
    integer, intent(in) :: incount, datatype
    integer(MPI_ADDRESS_KIND), intent(inout) :: size
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_pack_external_size(to_c(datarep), incount, c_datatype, size)
    call finish(code, 'MPI_Pack_external_size', ierror)
  end subroutine

  subroutine MPI_Pack_external_size_c(datarep, incount, datatype, size, ierror)
    character(len=*), intent(in) :: datarep
    integer(MPI_COUNT_KIND), intent(in) :: incount
    integer, intent(in) :: datatype
    integer(MPI_COUNT_KIND), intent(inout) :: size
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_pack_external_size_c(to_c(datarep), incount, c_datatype, size)
    call finish(code, 'MPI_Pack_external_size_c', ierror)
  end subroutine

  ! Returns the number of received bytes that a status records. As in C, elements 4 and 5 of the
  ! status hold this number of 64 bits, the low half first. Element 6 says whether the operation was
  ! cancelled.
  function ddtc_mpi_bytes(status) result(bytes)
    integer, intent(in) :: status(MPI_STATUS_SIZE)
    integer(MPI_COUNT_KIND) :: bytes
    bytes = iand(int(status(4), MPI_COUNT_KIND), 4294967295_MPI_COUNT_KIND)
    bytes = ior(ishft(int(status(5), MPI_COUNT_KIND), 32), bytes)
  end function

  ! Sets the number of received bytes in a status to the size of the first `count` basic elements of
  ! a type. After an error the status is unchanged.
  subroutine set_received(status, datatype, count, name, ierror)
    integer, intent(inout) :: status(MPI_STATUS_SIZE)
    integer, intent(in) :: datatype
    integer(MPI_COUNT_KIND), intent(in) :: count
    character(len=*), intent(in) :: name
    integer, intent(out), optional :: ierror
    type(c_ptr) :: handle
    integer(MPI_COUNT_KIND) :: bytes
    integer :: code
    code = ddtc_type_fromint(datatype, handle)
    if (code == 0) code = ddtc_elements_size(handle, count, bytes)
    if (code == 0) then
      status(4) = transfer(iand(bytes, 4294967295_MPI_COUNT_KIND), 0)
      status(5) = int(ishft(bytes, -32))
    end if
    call finish(code, name, ierror)
  end subroutine

  subroutine MPI_Status_set_elements(status, datatype, count, ierror)
    integer, intent(inout) :: status(MPI_STATUS_SIZE)
    integer, intent(in) :: datatype, count
    integer, intent(out), optional :: ierror
    call set_received(status, datatype, int(count, MPI_COUNT_KIND), 'MPI_Status_set_elements', ierror)
  end subroutine

  subroutine MPI_Status_set_elements_c(status, datatype, count, ierror)
    integer, intent(inout) :: status(MPI_STATUS_SIZE)
    integer, intent(in) :: datatype
    integer(MPI_COUNT_KIND), intent(in) :: count
    integer, intent(out), optional :: ierror
    call set_received(status, datatype, int(count, MPI_COUNT_KIND), 'MPI_Status_set_elements_c', ierror)
  end subroutine

  subroutine MPI_Status_set_elements_x(status, datatype, count, ierror)
    integer, intent(inout) :: status(MPI_STATUS_SIZE)
    integer, intent(in) :: datatype
    integer(MPI_COUNT_KIND), intent(in) :: count
    integer, intent(out), optional :: ierror
    call set_received(status, datatype, int(count, MPI_COUNT_KIND), 'MPI_Status_set_elements_x', ierror)
  end subroutine

  subroutine MPI_Get_elements(status, datatype, count, ierror)
    integer, intent(in) :: status(MPI_STATUS_SIZE), datatype
    integer, intent(inout) :: count
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_get_elements(c_datatype, ddtc_mpi_bytes(status), count)
    call finish(code, 'MPI_Get_elements', ierror)
  end subroutine

  subroutine MPI_Get_elements_c(status, datatype, count, ierror)
    integer, intent(in) :: status(MPI_STATUS_SIZE), datatype
    integer(MPI_COUNT_KIND), intent(inout) :: count
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_get_elements_c(c_datatype, ddtc_mpi_bytes(status), count)
    call finish(code, 'MPI_Get_elements_c', ierror)
  end subroutine

  subroutine MPI_Get_elements_x(status, datatype, count, ierror)
    integer, intent(in) :: status(MPI_STATUS_SIZE), datatype
    integer(MPI_COUNT_KIND), intent(inout) :: count
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_get_elements_x(c_datatype, ddtc_mpi_bytes(status), count)
    call finish(code, 'MPI_Get_elements_x', ierror)
  end subroutine

  subroutine MPI_Get_count(status, datatype, count, ierror)
    integer, intent(in) :: status(MPI_STATUS_SIZE), datatype
    integer, intent(inout) :: count
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_get_count(c_datatype, ddtc_mpi_bytes(status), count)
    call finish(code, 'MPI_Get_count', ierror)
  end subroutine

  subroutine MPI_Get_count_c(status, datatype, count, ierror)
    integer, intent(in) :: status(MPI_STATUS_SIZE), datatype
    integer(MPI_COUNT_KIND), intent(inout) :: count
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_datatype
    integer :: code
    code = ddtc_type_fromint(datatype, c_datatype)
    if (code == 0) code = ddtc_get_count_c(c_datatype, ddtc_mpi_bytes(status), count)
    call finish(code, 'MPI_Get_count_c', ierror)
  end subroutine

  subroutine MPI_Status_get_source(status, source, ierror)
    integer, intent(in) :: status(MPI_STATUS_SIZE)
    integer, intent(inout) :: source
    integer, intent(out), optional :: ierror
    source = status(MPI_SOURCE)
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine

  subroutine MPI_Status_set_source(status, source, ierror)
    integer, intent(inout) :: status(MPI_STATUS_SIZE)
    integer, intent(in) :: source
    integer, intent(out), optional :: ierror
    status(MPI_SOURCE) = source
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine

  subroutine MPI_Status_get_tag(status, tag, ierror)
    integer, intent(in) :: status(MPI_STATUS_SIZE)
    integer, intent(inout) :: tag
    integer, intent(out), optional :: ierror
    tag = status(MPI_TAG)
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine

  subroutine MPI_Status_set_tag(status, tag, ierror)
    integer, intent(inout) :: status(MPI_STATUS_SIZE)
    integer, intent(in) :: tag
    integer, intent(out), optional :: ierror
    status(MPI_TAG) = tag
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine

  subroutine MPI_Status_get_error(status, error, ierror)
    integer, intent(in) :: status(MPI_STATUS_SIZE)
    integer, intent(inout) :: error
    integer, intent(out), optional :: ierror
    error = status(MPI_ERROR)
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine

  subroutine MPI_Status_set_error(status, error, ierror)
    integer, intent(inout) :: status(MPI_STATUS_SIZE)
    integer, intent(in) :: error
    integer, intent(out), optional :: ierror
    status(MPI_ERROR) = error
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine

  subroutine MPI_Status_set_cancelled(status, flag, ierror)
    integer, intent(inout) :: status(MPI_STATUS_SIZE)
    logical, intent(in) :: flag
    integer, intent(out), optional :: ierror
    status(6) = merge(1, 0, flag)
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine

  subroutine MPI_Test_cancelled(status, flag, ierror)
    integer, intent(in) :: status(MPI_STATUS_SIZE)
    logical, intent(inout) :: flag
    integer, intent(out), optional :: ierror
    flag = status(6) /= 0
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine

  ! ---- Deprecated and removed names of MPI-1 ----------------------------------------------------------------------

  subroutine MPI_Address(location, address, ierror)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: location
    type(*), intent(in) :: location
    integer, intent(inout) :: address
    integer, intent(out), optional :: ierror
    integer(MPI_ADDRESS_KIND) :: wide
    integer :: code
    code = ddtc_get_address(location, wide)
    ! If the address does not fit in an INTEGER, the result is MPI_UNDEFINED, with an error.
    if (wide > huge(address) .or. wide < -huge(address)) then
      address = MPI_UNDEFINED
      code = MPI_ERR_VALUE_TOO_LARGE
    else
      address = int(wide)
    end if
    call finish(code, 'MPI_Address', ierror)
  end subroutine

  subroutine MPI_Attr_get(comm, keyval, attribute_val, flag, ierror)
    integer, intent(in) :: comm, keyval
    integer, intent(inout) :: attribute_val
    logical, intent(inout) :: flag
    integer, intent(out), optional :: ierror
    integer(MPI_ADDRESS_KIND) :: value
    call MPI_Comm_get_attr(comm, keyval, value, flag, ierror)
    if (flag) attribute_val = int(value)
  end subroutine

  subroutine MPI_Errhandler_create(function, errhandler, ierror)
    procedure(MPI_Comm_errhandler_function) :: function
    integer, intent(inout) :: errhandler
    integer, intent(out), optional :: ierror
    call MPI_Comm_create_errhandler(function, errhandler, ierror)
  end subroutine

  subroutine MPI_Errhandler_set(comm, errhandler, ierror)
    integer, intent(in) :: comm, errhandler
    integer, intent(out), optional :: ierror
    call MPI_Comm_set_errhandler(comm, errhandler, ierror)
  end subroutine

  subroutine MPI_Errhandler_get(comm, errhandler, ierror)
    integer, intent(in) :: comm
    integer, intent(inout) :: errhandler
    integer, intent(out), optional :: ierror
    call MPI_Comm_get_errhandler(comm, errhandler, ierror)
  end subroutine

  subroutine MPI_Type_hvector(count, blocklength, stride, oldtype, newtype, ierror)
    integer, intent(in) :: count, blocklength, stride, oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_hvector_integer(count, blocklength, stride, c_oldtype, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_hvector', ierror)
  end subroutine

  subroutine MPI_Type_hindexed(count, array_of_blocklengths, array_of_displacements, oldtype, newtype, ierror)
    integer, intent(in) :: count, array_of_blocklengths(*), array_of_displacements(*), oldtype
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr) :: c_oldtype, c_newtype
    integer :: code
    code = ddtc_type_fromint(oldtype, c_oldtype)
    if (code == 0) code = ddtc_type_hindexed_integer(count, array_of_blocklengths, array_of_displacements, c_oldtype, &
      c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_hindexed', ierror)
  end subroutine

  subroutine MPI_Type_struct(count, array_of_blocklengths, array_of_displacements, array_of_types, newtype, ierror)
    integer, intent(in) :: count, array_of_blocklengths(*), array_of_displacements(*), array_of_types(*)
    integer, intent(inout) :: newtype
    integer, intent(out), optional :: ierror
    type(c_ptr), allocatable :: c_array_of_types(:)
    type(c_ptr) :: c_newtype
    integer :: code
    code = take_all(int(count, MPI_COUNT_KIND), array_of_types, c_array_of_types)
    if (code == 0) code = ddtc_type_struct_integer(count, array_of_blocklengths, array_of_displacements, &
      c_array_of_types, c_newtype)
    if (code == 0) code = ddtc_type_toint(c_newtype, newtype)
    call finish(code, 'MPI_Type_struct', ierror)
  end subroutine

  subroutine MPI_Type_extent(datatype, extent, ierror)
    integer, intent(in) :: datatype
    integer, intent(inout) :: extent
    integer, intent(out), optional :: ierror
    integer(MPI_ADDRESS_KIND) :: lb, wide
    integer :: code
    call MPI_Type_get_extent(datatype, lb, wide, code)
    if (code == 0) extent = merge(int(wide), MPI_UNDEFINED, abs(wide) <= huge(extent))
    if (present(ierror)) ierror = code
  end subroutine

  subroutine MPI_Type_lb(datatype, displacement, ierror)
    integer, intent(in) :: datatype
    integer, intent(inout) :: displacement
    integer, intent(out), optional :: ierror
    integer(MPI_ADDRESS_KIND) :: lb, extent
    integer :: code
    call MPI_Type_get_extent(datatype, lb, extent, code)
    if (code == 0) displacement = merge(int(lb), MPI_UNDEFINED, abs(lb) <= huge(displacement))
    if (present(ierror)) ierror = code
  end subroutine

  subroutine MPI_Type_ub(datatype, displacement, ierror)
    integer, intent(in) :: datatype
    integer, intent(inout) :: displacement
    integer, intent(out), optional :: ierror
    integer(MPI_ADDRESS_KIND) :: lb, extent
    integer :: code
    call MPI_Type_get_extent(datatype, lb, extent, code)
    if (code == 0) displacement = merge(int(lb + extent), MPI_UNDEFINED, abs(lb + extent) <= huge(displacement))
    if (present(ierror)) ierror = code
  end subroutine

end module ddtc_mpi

module mpi
  use ddtc_mpi
  implicit none
end module mpi
