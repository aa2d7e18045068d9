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
  integer(c_int), parameter :: DDTC_ERRHANDLER_COMM = 0
  integer(c_int), parameter :: DDTC_ERRHANDLER_FORTRAN = 8
  integer(c_int), parameter :: DDTC_MPI_STATE = 1
  integer(c_int), parameter :: DDTC_MPI_THREAD_MAIN = 2

  interface
    integer(c_int) function ddtc_elements_size(datatype, elements, bytes) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int64_t), value :: elements
      integer(c_int64_t), intent(inout) :: bytes
    end function
    integer(c_int) function ddtc_errhandler_call(kind, object, code, fatal) bind(C)
      import
      integer(c_int), value :: kind
      integer(c_intptr_t), value :: object
      integer(c_int), value :: code
      integer(c_int), intent(inout) :: fatal
    end function
    integer(c_int) function ddtc_errhandler_create(kind, function, errhandler) bind(C)
      import
      integer(c_int), value :: kind
      type(c_funptr), value :: function
      integer(c_intptr_t), intent(inout) :: errhandler
    end function
    integer(c_int) function ddtc_errhandler_free(errhandler) bind(C)
      import
      integer(c_intptr_t), intent(inout) :: errhandler
    end function
    integer(c_int) function ddtc_errhandler_get(kind, errhandler) bind(C)
      import
      integer(c_int), value :: kind
      integer(c_intptr_t), intent(inout) :: errhandler
    end function
    integer(c_int) function ddtc_errhandler_set(kind, errhandler) bind(C)
      import
      integer(c_int), value :: kind
      integer(c_intptr_t), value :: errhandler
    end function
    integer(c_int) function ddtc_error_add_class(errorclass) bind(C)
      import
      integer(c_int), intent(inout) :: errorclass
    end function
    integer(c_int) function ddtc_error_add_code(errorclass, errorcode) bind(C)
      import
      integer(c_int), value :: errorclass
      integer(c_int), intent(inout) :: errorcode
    end function
    integer(c_int) function ddtc_error_add_string(errorcode, string) bind(C)
      import
      integer(c_int), value :: errorcode
      character(kind=c_char), intent(in) :: string(*)
    end function
    integer(c_int) function ddtc_error_class(code, errorclass) bind(C)
      import
      integer(c_int), value :: code
      integer(c_int), intent(inout) :: errorclass
    end function
    integer(c_int) function ddtc_error_remove_class(errorclass) bind(C)
      import
      integer(c_int), value :: errorclass
    end function
    integer(c_int) function ddtc_error_remove_code(errorcode) bind(C)
      import
      integer(c_int), value :: errorcode
    end function
    integer(c_int) function ddtc_error_remove_string(errorcode) bind(C)
      import
      integer(c_int), value :: errorcode
    end function
    integer(c_int) function ddtc_error_string(code, string, resultlen) bind(C)
      import
      integer(c_int), value :: code
      character(kind=c_char), intent(inout) :: string(*)
      integer(c_int), intent(inout) :: resultlen
    end function
    integer(c_int) function ddtc_get_address(location, address) bind(C)
      import
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: location
      type(*), intent(in) :: location
      integer(c_intptr_t), intent(inout) :: address
    end function
    integer(c_int) function ddtc_get_count(datatype, bytes, count) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int64_t), value :: bytes
      integer(c_int), intent(inout) :: count
    end function
    integer(c_int) function ddtc_get_count_c(datatype, bytes, count) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int64_t), value :: bytes
      integer(c_int64_t), intent(inout) :: count
    end function
    integer(c_int) function ddtc_get_elements(datatype, bytes, count) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int64_t), value :: bytes
      integer(c_int), intent(inout) :: count
    end function
    integer(c_int) function ddtc_get_elements_c(datatype, bytes, count) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int64_t), value :: bytes
      integer(c_int64_t), intent(inout) :: count
    end function
    integer(c_int) function ddtc_get_elements_x(datatype, bytes, count) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int64_t), value :: bytes
      integer(c_int64_t), intent(inout) :: count
    end function
    integer(c_int) function ddtc_info_create(info) bind(C)
      import
      integer(c_intptr_t), intent(inout) :: info
    end function
    integer(c_int) function ddtc_info_delete(info, key) bind(C)
      import
      integer(c_intptr_t), value :: info
      character(kind=c_char), intent(in) :: key(*)
    end function
    integer(c_int) function ddtc_info_dup(info, newinfo) bind(C)
      import
      integer(c_intptr_t), value :: info
      integer(c_intptr_t), intent(inout) :: newinfo
    end function
    integer(c_int) function ddtc_info_free(info) bind(C)
      import
      integer(c_intptr_t), intent(inout) :: info
    end function
    integer(c_int) function ddtc_info_get_nkeys(info, nkeys) bind(C)
      import
      integer(c_intptr_t), value :: info
      integer(c_int), intent(inout) :: nkeys
    end function
    integer(c_int) function ddtc_info_get_nthkey(info, n, key) bind(C)
      import
      integer(c_intptr_t), value :: info
      integer(c_int), value :: n
      character(kind=c_char), intent(inout) :: key(*)
    end function
    integer(c_int) function ddtc_info_get_string(info, key, buflen, value, flag) bind(C)
      import
      integer(c_intptr_t), value :: info
      character(kind=c_char), intent(in) :: key(*)
      integer(c_int), intent(inout) :: buflen
      character(kind=c_char), intent(inout) :: value(*)
      integer(c_int), intent(inout) :: flag
    end function
    integer(c_int) function ddtc_info_set(info, key, value) bind(C)
      import
      integer(c_intptr_t), value :: info
      character(kind=c_char), intent(in) :: key(*)
      character(kind=c_char), intent(in) :: value(*)
    end function
    integer(c_int) function ddtc_mpi_attribute(keyval, value, flag) bind(C)
      import
      integer(c_int), value :: keyval
      type(c_ptr), intent(inout) :: value
      integer(c_int), intent(inout) :: flag
    end function
    integer(c_int) function ddtc_mpi_explain(code, call, argument, value, rule) bind(C)
      import
      integer(c_int), value :: code
      character(kind=c_char), intent(in) :: call(*)
      character(kind=c_char), intent(in) :: argument(*)
      character(kind=c_char), intent(in) :: value(*)
      character(kind=c_char), intent(in) :: rule(*)
    end function
    integer(c_int) function ddtc_mpi_get(which, value) bind(C)
      import
      integer(c_int), value :: which
      integer(c_int), intent(inout) :: value
    end function
    integer(c_int) function ddtc_mpi_set(which, value) bind(C)
      import
      integer(c_int), value :: which
      integer(c_int), value :: value
    end function
    real(c_double) function ddtc_mpi_wtime() bind(C)
      import
    end function
    integer(c_int) function ddtc_pack(inbuf, incount, datatype, outbuf, outsize, position) bind(C)
      import
      type(c_ptr), value :: inbuf
      integer(c_int), value :: incount
      type(c_ptr), value :: datatype
      type(c_ptr), value :: outbuf
      integer(c_int), value :: outsize
      integer(c_int), intent(inout) :: position
    end function
    integer(c_int) function ddtc_pack_c(inbuf, incount, datatype, outbuf, outsize, position) bind(C)
      import
      type(c_ptr), value :: inbuf
      integer(c_int64_t), value :: incount
      type(c_ptr), value :: datatype
      type(c_ptr), value :: outbuf
      integer(c_int64_t), value :: outsize
      integer(c_int64_t), intent(inout) :: position
    end function
    integer(c_int) function ddtc_pack_external(datarep, inbuf, incount, datatype, outbuf, outsize, position) bind(C)
      import
      character(kind=c_char), intent(in) :: datarep(*)
      type(c_ptr), value :: inbuf
      integer(c_int), value :: incount
      type(c_ptr), value :: datatype
      type(c_ptr), value :: outbuf
      integer(c_intptr_t), value :: outsize
      integer(c_intptr_t), intent(inout) :: position
    end function
    integer(c_int) function ddtc_pack_external_c(datarep, inbuf, incount, datatype, outbuf, outsize, position) bind(C)
      import
      character(kind=c_char), intent(in) :: datarep(*)
      type(c_ptr), value :: inbuf
      integer(c_int64_t), value :: incount
      type(c_ptr), value :: datatype
      type(c_ptr), value :: outbuf
      integer(c_int64_t), value :: outsize
      integer(c_int64_t), intent(inout) :: position
    end function
    integer(c_int) function ddtc_pack_external_size(datarep, incount, datatype, size) bind(C)
      import
      character(kind=c_char), intent(in) :: datarep(*)
      integer(c_int), value :: incount
      type(c_ptr), value :: datatype
      integer(c_intptr_t), intent(inout) :: size
    end function
    integer(c_int) function ddtc_pack_external_size_c(datarep, incount, datatype, size) bind(C)
      import
      character(kind=c_char), intent(in) :: datarep(*)
      integer(c_int64_t), value :: incount
      type(c_ptr), value :: datatype
      integer(c_int64_t), intent(inout) :: size
    end function
    integer(c_int) function ddtc_pack_size(incount, datatype, size) bind(C)
      import
      integer(c_int), value :: incount
      type(c_ptr), value :: datatype
      integer(c_int), intent(inout) :: size
    end function
    integer(c_int) function ddtc_pack_size_c(incount, datatype, size) bind(C)
      import
      integer(c_int64_t), value :: incount
      type(c_ptr), value :: datatype
      integer(c_int64_t), intent(inout) :: size
    end function
    integer(c_int) function ddtc_reduce_local(inbuf, inoutbuf, count, datatype, op) bind(C)
      import
      type(c_ptr), value :: inbuf
      type(c_ptr), value :: inoutbuf
      integer(c_int), value :: count
      type(c_ptr), value :: datatype
      type(c_ptr), value :: op
    end function
    integer(c_int) function ddtc_reduce_local_c(inbuf, inoutbuf, count, datatype, op) bind(C)
      import
      type(c_ptr), value :: inbuf
      type(c_ptr), value :: inoutbuf
      integer(c_int64_t), value :: count
      type(c_ptr), value :: datatype
      type(c_ptr), value :: op
    end function
    integer(c_int) function ddtc_set_fortran_booleans(logical_true, logical_false) bind(C)
      import
      integer(c_int), value :: logical_true
      integer(c_int), value :: logical_false
    end function
    integer(c_int) function ddtc_t_report() bind(C)
      import
    end function
    integer(c_int) function ddtc_type_commit(datatype) bind(C)
      import
      type(c_ptr), intent(inout) :: datatype
    end function
    integer(c_int) function ddtc_type_contents(datatype, start, count, blocklengths, stride, displacements, &
        types) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int), value :: start
      integer(c_int), value :: count
      integer(c_int), intent(inout) :: blocklengths(*)
      integer(c_intptr_t), intent(inout) :: stride
      integer(c_intptr_t), intent(inout) :: displacements(*)
      type(c_ptr), intent(inout) :: types(*)
    end function
    integer(c_int) function ddtc_type_contiguous(count, oldtype, newtype) bind(C)
      import
      integer(c_int), value :: count
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_contiguous_c(count, oldtype, newtype) bind(C)
      import
      integer(c_int64_t), value :: count
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_darray(size, rank, ndims, gsizes, distribs, dargs, psizes, order, &
        oldtype, newtype) bind(C)
      import
      integer(c_int), value :: size
      integer(c_int), value :: rank
      integer(c_int), value :: ndims
      integer(c_int), intent(in) :: gsizes(*)
      integer(c_int), intent(in) :: distribs(*)
      integer(c_int), intent(in) :: dargs(*)
      integer(c_int), intent(in) :: psizes(*)
      integer(c_int), value :: order
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_darray_c(size, rank, ndims, gsizes, distribs, dargs, psizes, order, &
        oldtype, newtype) bind(C)
      import
      integer(c_int), value :: size
      integer(c_int), value :: rank
      integer(c_int), value :: ndims
      integer(c_int64_t), intent(in) :: gsizes(*)
      integer(c_int), intent(in) :: distribs(*)
      integer(c_int), intent(in) :: dargs(*)
      integer(c_int), intent(in) :: psizes(*)
      integer(c_int), value :: order
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_f90_complex(p, r, newtype) bind(C)
      import
      integer(c_int), value :: p
      integer(c_int), value :: r
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_f90_integer(r, newtype) bind(C)
      import
      integer(c_int), value :: r
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_f90_real(p, r, newtype) bind(C)
      import
      integer(c_int), value :: p
      integer(c_int), value :: r
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_hindexed(count, blocklengths, displacements, oldtype, newtype) bind(C)
      import
      integer(c_int), value :: count
      integer(c_int), intent(in) :: blocklengths(*)
      integer(c_intptr_t), intent(in) :: displacements(*)
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_hindexed_block(count, blocklength, displacements, oldtype, newtype) bind(C)
      import
      integer(c_int), value :: count
      integer(c_int), value :: blocklength
      integer(c_intptr_t), intent(in) :: displacements(*)
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_hindexed_block_c(count, blocklength, displacements, oldtype, &
        newtype) bind(C)
      import
      integer(c_int64_t), value :: count
      integer(c_int64_t), value :: blocklength
      integer(c_int64_t), intent(in) :: displacements(*)
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_hindexed_c(count, blocklengths, displacements, oldtype, newtype) bind(C)
      import
      integer(c_int64_t), value :: count
      integer(c_int64_t), intent(in) :: blocklengths(*)
      integer(c_int64_t), intent(in) :: displacements(*)
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_hvector(count, blocklength, stride, oldtype, newtype) bind(C)
      import
      integer(c_int), value :: count
      integer(c_int), value :: blocklength
      integer(c_intptr_t), value :: stride
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_hvector_c(count, blocklength, stride, oldtype, newtype) bind(C)
      import
      integer(c_int64_t), value :: count
      integer(c_int64_t), value :: blocklength
      integer(c_int64_t), value :: stride
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_indexed_block(count, blocklength, displacements, oldtype, newtype) bind(C)
      import
      integer(c_int), value :: count
      integer(c_int), value :: blocklength
      integer(c_int), intent(in) :: displacements(*)
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_indexed_block_c(count, blocklength, displacements, oldtype, &
        newtype) bind(C)
      import
      integer(c_int64_t), value :: count
      integer(c_int64_t), value :: blocklength
      integer(c_int64_t), intent(in) :: displacements(*)
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_keyval_f(copy, del, keyval, extra_state) bind(C)
      import
      type(c_funptr), value :: copy
      type(c_funptr), value :: del
      integer(c_int), intent(inout) :: keyval
      integer(c_intptr_t), intent(in) :: extra_state
    end function
    integer(c_int) function ddtc_type_create_resized(oldtype, lb, extent, newtype) bind(C)
      import
      type(c_ptr), value :: oldtype
      integer(c_intptr_t), value :: lb
      integer(c_intptr_t), value :: extent
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_resized_c(oldtype, lb, extent, newtype) bind(C)
      import
      type(c_ptr), value :: oldtype
      integer(c_int64_t), value :: lb
      integer(c_int64_t), value :: extent
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_struct(count, blocklengths, displacements, types, newtype) bind(C)
      import
      integer(c_int), value :: count
      integer(c_int), intent(in) :: blocklengths(*)
      integer(c_intptr_t), intent(in) :: displacements(*)
      type(c_ptr), intent(in) :: types(*)
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_struct_c(count, blocklengths, displacements, types, newtype) bind(C)
      import
      integer(c_int64_t), value :: count
      integer(c_int64_t), intent(in) :: blocklengths(*)
      integer(c_int64_t), intent(in) :: displacements(*)
      type(c_ptr), intent(in) :: types(*)
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_subarray(ndims, sizes, subsizes, starts, order, oldtype, newtype) bind(C)
      import
      integer(c_int), value :: ndims
      integer(c_int), intent(in) :: sizes(*)
      integer(c_int), intent(in) :: subsizes(*)
      integer(c_int), intent(in) :: starts(*)
      integer(c_int), value :: order
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_create_subarray_c(ndims, sizes, subsizes, starts, order, oldtype, newtype) bind(C)
      import
      integer(c_int), value :: ndims
      integer(c_int64_t), intent(in) :: sizes(*)
      integer(c_int64_t), intent(in) :: subsizes(*)
      integer(c_int64_t), intent(in) :: starts(*)
      integer(c_int), value :: order
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_delete_attr(datatype, keyval) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int), value :: keyval
    end function
    integer(c_int) function ddtc_type_dup(oldtype, newtype) bind(C)
      import
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_envelope(datatype, count, combiner) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int), intent(inout) :: count
      integer(c_int), intent(inout) :: combiner
    end function
    integer(c_int) function ddtc_type_free(datatype) bind(C)
      import
      type(c_ptr), intent(inout) :: datatype
    end function
    integer(c_int) function ddtc_type_free_keyval(keyval) bind(C)
      import
      integer(c_int), intent(inout) :: keyval
    end function
    integer(c_int) function ddtc_type_fromint(integer, datatype) bind(C)
      import
      integer(c_int), value :: integer
      type(c_ptr), intent(inout) :: datatype
    end function
    integer(c_int) function ddtc_type_get_attr(datatype, keyval, value, flag) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int), value :: keyval
      integer(c_intptr_t), intent(inout) :: value
      integer(c_int), intent(inout) :: flag
    end function
    integer(c_int) function ddtc_type_get_contents(datatype, max_integers, max_addresses, max_datatypes, &
        array_of_integers, array_of_addresses, array_of_datatypes) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int), value :: max_integers
      integer(c_int), value :: max_addresses
      integer(c_int), value :: max_datatypes
      integer(c_int), intent(inout) :: array_of_integers(*)
      integer(c_intptr_t), intent(inout) :: array_of_addresses(*)
      type(c_ptr), intent(inout) :: array_of_datatypes(*)
    end function
    integer(c_int) function ddtc_type_get_contents_c(datatype, max_integers, max_addresses, max_large_counts, &
        max_datatypes, array_of_integers, array_of_addresses, array_of_large_counts, array_of_datatypes) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int64_t), value :: max_integers
      integer(c_int64_t), value :: max_addresses
      integer(c_int64_t), value :: max_large_counts
      integer(c_int64_t), value :: max_datatypes
      integer(c_int), intent(inout) :: array_of_integers(*)
      integer(c_intptr_t), intent(inout) :: array_of_addresses(*)
      integer(c_int64_t), intent(inout) :: array_of_large_counts(*)
      type(c_ptr), intent(inout) :: array_of_datatypes(*)
    end function
    integer(c_int) function ddtc_type_get_envelope(datatype, num_integers, num_addresses, num_datatypes, &
        combiner) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int), intent(inout) :: num_integers
      integer(c_int), intent(inout) :: num_addresses
      integer(c_int), intent(inout) :: num_datatypes
      integer(c_int), intent(inout) :: combiner
    end function
    integer(c_int) function ddtc_type_get_envelope_c(datatype, num_integers, num_addresses, num_large_counts, &
        num_datatypes, combiner) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int64_t), intent(inout) :: num_integers
      integer(c_int64_t), intent(inout) :: num_addresses
      integer(c_int64_t), intent(inout) :: num_large_counts
      integer(c_int64_t), intent(inout) :: num_datatypes
      integer(c_int), intent(inout) :: combiner
    end function
    integer(c_int) function ddtc_type_get_extent(datatype, lb, extent) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_intptr_t), intent(inout) :: lb
      integer(c_intptr_t), intent(inout) :: extent
    end function
    integer(c_int) function ddtc_type_get_extent_c(datatype, lb, extent) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int64_t), intent(inout) :: lb
      integer(c_int64_t), intent(inout) :: extent
    end function
    integer(c_int) function ddtc_type_get_extent_x(datatype, lb, extent) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int64_t), intent(inout) :: lb
      integer(c_int64_t), intent(inout) :: extent
    end function
    integer(c_int) function ddtc_type_get_name(datatype, name, resultlen) bind(C)
      import
      type(c_ptr), value :: datatype
      character(kind=c_char), intent(inout) :: name(*)
      integer(c_int), intent(inout) :: resultlen
    end function
    integer(c_int) function ddtc_type_get_true_extent(datatype, lb, extent) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_intptr_t), intent(inout) :: lb
      integer(c_intptr_t), intent(inout) :: extent
    end function
    integer(c_int) function ddtc_type_get_true_extent_c(datatype, lb, extent) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int64_t), intent(inout) :: lb
      integer(c_int64_t), intent(inout) :: extent
    end function
    integer(c_int) function ddtc_type_get_true_extent_x(datatype, lb, extent) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int64_t), intent(inout) :: lb
      integer(c_int64_t), intent(inout) :: extent
    end function
    integer(c_int) function ddtc_type_get_value_index(value, index, pair) bind(C)
      import
      type(c_ptr), value :: value
      type(c_ptr), value :: index
      type(c_ptr), intent(inout) :: pair
    end function
    integer(c_int) function ddtc_type_hindexed_integer(count, blocklengths, displacements, oldtype, newtype) bind(C)
      import
      integer(c_int), value :: count
      integer(c_int), intent(in) :: blocklengths(*)
      integer(c_int), intent(in) :: displacements(*)
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_hvector_integer(count, blocklength, stride, oldtype, newtype) bind(C)
      import
      integer(c_int), value :: count
      integer(c_int), value :: blocklength
      integer(c_int), value :: stride
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_indexed(count, blocklengths, displacements, oldtype, newtype) bind(C)
      import
      integer(c_int), value :: count
      integer(c_int), intent(in) :: blocklengths(*)
      integer(c_int), intent(in) :: displacements(*)
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_indexed_c(count, blocklengths, displacements, oldtype, newtype) bind(C)
      import
      integer(c_int64_t), value :: count
      integer(c_int64_t), intent(in) :: blocklengths(*)
      integer(c_int64_t), intent(in) :: displacements(*)
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_match_size(typeclass, size, datatype) bind(C)
      import
      integer(c_int), value :: typeclass
      integer(c_int), value :: size
      type(c_ptr), intent(inout) :: datatype
    end function
    integer(c_int) function ddtc_type_set_attr(datatype, keyval, value) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int), value :: keyval
      integer(c_intptr_t), value :: value
    end function
    integer(c_int) function ddtc_type_set_name(datatype, name) bind(C)
      import
      type(c_ptr), value :: datatype
      character(kind=c_char), intent(in) :: name(*)
    end function
    integer(c_int) function ddtc_type_size(datatype, size) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int), intent(inout) :: size
    end function
    integer(c_int) function ddtc_type_size_c(datatype, size) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int64_t), intent(inout) :: size
    end function
    integer(c_int) function ddtc_type_size_x(datatype, size) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int64_t), intent(inout) :: size
    end function
    integer(c_int) function ddtc_type_struct_integer(count, blocklengths, displacements, types, newtype) bind(C)
      import
      integer(c_int), value :: count
      integer(c_int), intent(in) :: blocklengths(*)
      integer(c_int), intent(in) :: displacements(*)
      type(c_ptr), intent(in) :: types(*)
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_toint(datatype, integer) bind(C)
      import
      type(c_ptr), value :: datatype
      integer(c_int), intent(inout) :: integer
    end function
    integer(c_int) function ddtc_type_vector(count, blocklength, stride, oldtype, newtype) bind(C)
      import
      integer(c_int), value :: count
      integer(c_int), value :: blocklength
      integer(c_int), value :: stride
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_type_vector_c(count, blocklength, stride, oldtype, newtype) bind(C)
      import
      integer(c_int64_t), value :: count
      integer(c_int64_t), value :: blocklength
      integer(c_int64_t), value :: stride
      type(c_ptr), value :: oldtype
      type(c_ptr), intent(inout) :: newtype
    end function
    integer(c_int) function ddtc_unpack(inbuf, insize, position, outbuf, outcount, datatype) bind(C)
      import
      type(c_ptr), value :: inbuf
      integer(c_int), value :: insize
      integer(c_int), intent(inout) :: position
      type(c_ptr), value :: outbuf
      integer(c_int), value :: outcount
      type(c_ptr), value :: datatype
    end function
    integer(c_int) function ddtc_unpack_c(inbuf, insize, position, outbuf, outcount, datatype) bind(C)
      import
      type(c_ptr), value :: inbuf
      integer(c_int64_t), value :: insize
      integer(c_int64_t), intent(inout) :: position
      type(c_ptr), value :: outbuf
      integer(c_int64_t), value :: outcount
      type(c_ptr), value :: datatype
    end function
    integer(c_int) function ddtc_unpack_external(datarep, inbuf, insize, position, outbuf, outcount, datatype) bind(C)
      import
      character(kind=c_char), intent(in) :: datarep(*)
      type(c_ptr), value :: inbuf
      integer(c_intptr_t), value :: insize
      integer(c_intptr_t), intent(inout) :: position
      type(c_ptr), value :: outbuf
      integer(c_int), value :: outcount
      type(c_ptr), value :: datatype
    end function
    integer(c_int) function ddtc_unpack_external_c(datarep, inbuf, insize, position, outbuf, outcount, datatype) bind(C)
      import
      character(kind=c_char), intent(in) :: datarep(*)
      type(c_ptr), value :: inbuf
      integer(c_int64_t), value :: insize
      integer(c_int64_t), intent(inout) :: position
      type(c_ptr), value :: outbuf
      integer(c_int64_t), value :: outcount
      type(c_ptr), value :: datatype
    end function
    type(c_ptr) function ddtc_version_string() bind(C)
      import
    end function
  end interface
end module ddtc_c
