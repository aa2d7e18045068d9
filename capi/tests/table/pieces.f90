! Parts of the generated Fortran files that are written by hand, each after a line with its name:
! beginnings and ends of files, parts whose place a line `text NAME` of names.txt gives, and bodies
! of procedures. If a body uses `code` and does not mention ierror, the generator adds a call that
! returns `code` through ierror. If a body mentions neither, the procedure succeeds, unless it has a
! communicator that does not exist.
!: ddtc_c
! ddtc_c.f90 - interfaces of the functions of ddtc.h that ddtc_mpi.f90 calls, by iso_c_binding.
!
! Handles are type(c_ptr), except for those of info objects and error handlers, which are
! integer(c_intptr_t). Addresses are integer(c_intptr_t), and counts integer(c_int64_t). Arguments,
! errors and ownership are those of ddtc.h.
!
! This file is generated. capi/tests/table/names.txt in ddtc's sources says from which files.
module ddtc_c
  use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_intptr_t, c_ptr, c_funptr, c_char, c_double
  implicit none
  private :: c_int, c_int64_t, c_intptr_t, c_ptr, c_funptr, c_char, c_double
!: head
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
!: declarations
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
!: foot
end module ddtc_mpi

module mpi
  use ddtc_mpi
  implicit none
end module mpi
!: helpers
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
!: MPI_Init
    integer :: code
    ! The library must know the values that this compiler stores for .TRUE. and .FALSE.
    code = ddtc_set_fortran_booleans(transfer(.true., 0), transfer(.false., 0))
    if (code == 0) code = ddtc_mpi_set(DDTC_MPI_STATE, 1)
!: MPI_Init_thread
    provided = MPI_THREAD_MULTIPLE
    call MPI_Init(ierror)
!: MPI_Query_thread
    provided = MPI_THREAD_MULTIPLE
!: MPI_Initialized
    integer :: code, state
    state = 0
    code = ddtc_mpi_get(DDTC_MPI_STATE, state)
    flag = state > 0
!: MPI_Finalized
    integer :: code, state
    state = 0
    code = ddtc_mpi_get(DDTC_MPI_STATE, state)
    flag = state > 1
!: MPI_Finalize
    integer :: code
    code = ddtc_mpi_set(DDTC_MPI_STATE, 2)
    if (code == 0) code = ddtc_t_report()
!: MPI_Abort
    call finish(known(comm, 'MPI_Abort'), 'MPI_Abort', ierror, comm)
    ! A process can return only the low 8 bits of a code. If these are 0, it returns 1, because 0
    ! would mean success.
    if (errorcode /= 0 .and. iand(errorcode, 255) == 0) stop 1
    stop errorcode
!: MPI_Comm_rank
    rank = 0
!: MPI_Comm_size
    size = 1
!: MPI_Barrier
!: MPI_Comm_get_attr
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
!: MPI_Attr_get
    integer(MPI_ADDRESS_KIND) :: value
    call MPI_Comm_get_attr(comm, keyval, value, flag, ierror)
    if (flag) attribute_val = int(value)
!: MPI_Get_version
    version = MPI_VERSION
    subversion = MPI_SUBVERSION
!: MPI_Get_library_version
    character(kind=c_char), pointer :: text(:)
    call c_f_pointer(ddtc_version_string(), text, [MPI_MAX_LIBRARY_VERSION_STRING])
    resultlen = 0
    do while (text(resultlen + 1) /= c_null_char)
      resultlen = resultlen + 1
    end do
    call from_c(text, resultlen, version)
!: MPI_Get_processor_name
    name = 'localhost'
    resultlen = 9
!: MPI_Comm_call_errhandler
    integer :: code
    code = known(comm, 'MPI_Comm_call_errhandler')
    if (code == 0) call raise(comm, errorcode, 'MPI_Comm_call_errhandler')
!: MPI_Info_get_string
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
!: MPI_Info_get
    integer :: length
    length = valuelen
    call MPI_Info_get_string(info, key, length, value, flag, ierror)
!: MPI_Info_get_valuelen
    integer :: length
    character :: nothing
    length = 0
    call MPI_Info_get_string(info, key, length, nothing, flag, ierror)
    if (flag) valuelen = length
!: MPI_Info_get_nthkey
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
!: MPI_Get_address
    integer :: code
    code = ddtc_get_address(location, address)
!: MPI_Status_set_elements
    call set_received(status, datatype, int(count, MPI_COUNT_KIND), 'MPI_Status_set_elements', ierror)
!: MPI_Status_set_elements_c
    call set_received(status, datatype, int(count, MPI_COUNT_KIND), 'MPI_Status_set_elements_c', ierror)
!: MPI_Status_set_elements_x
    call set_received(status, datatype, int(count, MPI_COUNT_KIND), 'MPI_Status_set_elements_x', ierror)
!: MPI_Status_get_source
    source = status(MPI_SOURCE)
!: MPI_Status_set_source
    status(MPI_SOURCE) = source
!: MPI_Status_get_tag
    tag = status(MPI_TAG)
!: MPI_Status_set_tag
    status(MPI_TAG) = tag
!: MPI_Status_get_error
    error = status(MPI_ERROR)
!: MPI_Status_set_error
    status(MPI_ERROR) = error
!: MPI_Status_set_cancelled
    status(6) = merge(1, 0, flag)
!: MPI_Test_cancelled
    flag = status(6) /= 0
!: MPI_Type_dup
    type(c_ptr) :: old, new
    integer :: code
    newtype = MPI_DATATYPE_NULL
    code = ddtc_type_fromint(oldtype, old)
    if (code == 0) code = ddtc_type_dup(old, new)
    if (code == 0) code = ddtc_type_toint(new, newtype)
!: MPI_Type_free
    type(c_ptr) :: handle
    integer :: code
    code = ddtc_type_fromint(datatype, handle)
    if (code == 0) code = ddtc_type_free(handle)
    if (code == 0) datatype = MPI_DATATYPE_NULL
!: MPI_Type_get_contents
    type(c_ptr), allocatable :: handles(:)
    type(c_ptr) :: handle
    integer(MPI_COUNT_KIND) :: n(4)
    integer :: code, combiner
    allocate (handles(max(max_datatypes, 1)))
    code = ddtc_type_fromint(datatype, handle)
    if (code == 0) code = ddtc_type_get_contents(handle, max_integers, max_addresses, max_datatypes, array_of_integers, &
      array_of_addresses, handles)
    if (code == 0) code = ddtc_type_get_envelope_c(handle, n(1), n(2), n(3), n(4), combiner)
    if (code == 0) call give_all(code, n(4), handles, array_of_datatypes)
!: MPI_Type_get_contents_c
    type(c_ptr), allocatable :: handles(:)
    type(c_ptr) :: handle
    integer(MPI_COUNT_KIND) :: n(4)
    integer :: code, combiner
    allocate (handles(max(max_datatypes, 1_MPI_COUNT_KIND)))
    code = ddtc_type_fromint(datatype, handle)
    if (code == 0) code = ddtc_type_get_contents_c(handle, max_integers, max_addresses, max_large_counts, max_datatypes, &
      array_of_integers, array_of_addresses, array_of_large_counts, handles)
    if (code == 0) code = ddtc_type_get_envelope_c(handle, n(1), n(2), n(3), n(4), combiner)
    if (code == 0) call give_all(code, n(4), handles, array_of_datatypes)
!: MPI_Type_contents
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
!: MPI_Address
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
!: MPI_Type_extent
    integer(MPI_ADDRESS_KIND) :: lb, wide
    integer :: code
    call MPI_Type_get_extent(datatype, lb, wide, code)
    if (code == 0) extent = merge(int(wide), MPI_UNDEFINED, abs(wide) <= huge(extent))
    if (present(ierror)) ierror = code
!: MPI_Type_lb
    integer(MPI_ADDRESS_KIND) :: lb, extent
    integer :: code
    call MPI_Type_get_extent(datatype, lb, extent, code)
    if (code == 0) displacement = merge(int(lb), MPI_UNDEFINED, abs(lb) <= huge(displacement))
    if (present(ierror)) ierror = code
!: MPI_Type_ub
    integer(MPI_ADDRESS_KIND) :: lb, extent
    integer :: code
    call MPI_Type_get_extent(datatype, lb, extent, code)
    if (code == 0) displacement = merge(int(lb + extent), MPI_UNDEFINED, abs(lb + extent) <= huge(displacement))
    if (present(ierror)) ierror = code
!: MPI_Wtick
    answer = 1d-9
!: MPI_Aint_add
    answer = base + disp
!: MPI_Aint_diff
    answer = addr1 - addr2
!: sizeof
  ! Returns the size in bytes of a variable of any numeric type. For an array, this is the size of
  ! one element.
  subroutine MPI_Sizeof(x, size, ierror)
    class(*), intent(in) :: x(..)
    integer, intent(out) :: size
    integer, intent(out), optional :: ierror
    size = int(storage_size(x) / 8)
    if (present(ierror)) ierror = MPI_SUCCESS
  end subroutine
!: attributes
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
!: status
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
!: info
  ! Blanks before and after a key or a value do not belong to it (MPI 5.0, chapter 10).
