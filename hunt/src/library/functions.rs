//! The MPI functions that the fuzzer calls, with their names and C types.

use std::ffi::{CStr, c_char, c_int, c_void};

use ddtc_hosts::abi::queries::{ContentsFn, EnvelopeFn, LargeContentsFn, LargeEnvelopeFn};

pub(super) type CopyFn =
    unsafe extern "C" fn(u64, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
pub(super) type DeleteFn = unsafe extern "C" fn(u64, c_int, *mut c_void, *mut c_void) -> c_int;

macro_rules! functions {
    ($($field:ident $name:literal $type:ty;)*) => {
        /// Functions of the library. A function is `None` if the library does not have its symbol.
        #[derive(Debug)]
        pub(super) struct Functions {
            $(pub(super) $field: Option<$type>,)*
        }

        impl Functions {
            pub(super) fn find(lookup: &dyn Fn(&CStr) -> *mut c_void) -> Functions {
                Functions {
                    $($field: {
                        let name = const {
                            match CStr::from_bytes_with_nul(concat!("MPI_", $name, "\0").as_bytes()) {
                                Ok(name) => name,
                                Err(_) => panic!("a name"),
                            }
                        };
                        // SAFETY: a null pointer becomes None, which has the same representation.
                        // Any other pointer is the address of the function of that name, whose C
                        // type the MPI standard fixes. Handles are passed as 64-bit words (see
                        // `abi`).
                        unsafe { std::mem::transmute::<*mut c_void, Option<$type>>(lookup(name)) }
                    },)*
                }
            }
        }
    };
}

/// The C type of an MPI function with the given argument types.
macro_rules! call {
    ($($arg:ty),* $(,)?) => { unsafe extern "C" fn($($arg),*) -> c_int };
}

type Word = u64;
type In = *const c_void;
type Out = *mut c_void;
type Ints = *const c_int;
type Int = *mut c_int;
type Counts = *const i64;

functions! {
    init "Init" call!(Int, Out);
    finalize "Finalize" call!();
    set_errhandler "Comm_set_errhandler" call!(Word, Word);
    error_class "Error_class" call!(c_int, Int);
    commit "Type_commit" call!(Out);
    free "Type_free" call!(Out);
    dup "Type_dup" call!(Word, Out);
    contiguous "Type_contiguous" call!(c_int, Word, Out);
    vector "Type_vector" call!(c_int, c_int, c_int, Word, Out);
    hvector "Type_create_hvector" call!(c_int, c_int, isize, Word, Out);
    indexed "Type_indexed" call!(c_int, Ints, Ints, Word, Out);
    hindexed "Type_create_hindexed" call!(c_int, Ints, *const isize, Word, Out);
    indexed_block "Type_create_indexed_block" call!(c_int, c_int, Ints, Word, Out);
    hindexed_block "Type_create_hindexed_block" call!(c_int, c_int, *const isize, Word, Out);
    structure "Type_create_struct" call!(c_int, Ints, *const isize, In, Out);
    subarray "Type_create_subarray" call!(c_int, Ints, Ints, Ints, c_int, Word, Out);
    darray "Type_create_darray"
        call!(c_int, c_int, c_int, Ints, Ints, Ints, Ints, c_int, Word, Out);
    resized "Type_create_resized" call!(Word, isize, isize, Out);
    f90_real "Type_create_f90_real" call!(c_int, c_int, Out);
    f90_complex "Type_create_f90_complex" call!(c_int, c_int, Out);
    f90_integer "Type_create_f90_integer" call!(c_int, Out);
    value_index "Type_get_value_index" call!(Word, Word, Out);
    contiguous_c "Type_contiguous_c" call!(i64, Word, Out);
    vector_c "Type_vector_c" call!(i64, i64, i64, Word, Out);
    hvector_c "Type_create_hvector_c" call!(i64, i64, i64, Word, Out);
    indexed_c "Type_indexed_c" call!(i64, Counts, Counts, Word, Out);
    hindexed_c "Type_create_hindexed_c" call!(i64, Counts, Counts, Word, Out);
    indexed_block_c "Type_create_indexed_block_c" call!(i64, i64, Counts, Word, Out);
    hindexed_block_c "Type_create_hindexed_block_c" call!(i64, i64, Counts, Word, Out);
    structure_c "Type_create_struct_c" call!(i64, Counts, Counts, In, Out);
    subarray_c "Type_create_subarray_c" call!(c_int, Counts, Counts, Counts, c_int, Word, Out);
    darray_c "Type_create_darray_c"
        call!(c_int, c_int, c_int, Counts, Ints, Ints, Ints, c_int, Word, Out);
    resized_c "Type_create_resized_c" call!(Word, i64, i64, Out);
    size "Type_size" call!(Word, Int);
    size_x "Type_size_x" call!(Word, *mut i64);
    extent "Type_get_extent" call!(Word, *mut isize, *mut isize);
    true_extent "Type_get_true_extent" call!(Word, *mut isize, *mut isize);
    envelope "Type_get_envelope" EnvelopeFn;
    envelope_c "Type_get_envelope_c" LargeEnvelopeFn;
    contents "Type_get_contents" ContentsFn;
    contents_c "Type_get_contents_c" LargeContentsFn;
    create_keyval "Type_create_keyval" call!(CopyFn, DeleteFn, Int, Out);
    free_keyval "Type_free_keyval" call!(Int);
    set_attr "Type_set_attr" call!(Word, c_int, Out);
    get_attr "Type_get_attr" call!(Word, c_int, Out, Int);
    delete_attr "Type_delete_attr" call!(Word, c_int);
    set_name "Type_set_name" call!(Word, *const c_char);
    get_name "Type_get_name" call!(Word, *mut c_char, Int);
    pack "Pack" call!(In, c_int, Word, Out, c_int, Int, Word);
    unpack "Unpack" call!(In, c_int, Int, Out, c_int, Word, Word);
    pack_size "Pack_size" call!(c_int, Word, Word, Int);
    pack_external "Pack_external" call!(*const c_char, In, c_int, Word, Out, isize, *mut isize);
    unpack_external "Unpack_external" call!(*const c_char, In, isize, *mut isize, Out, c_int, Word);
    pack_external_size "Pack_external_size" call!(*const c_char, c_int, Word, *mut isize);
    sendrecv "Sendrecv" call!(In, c_int, Word, c_int, c_int, Out, c_int, Word, c_int, c_int, Word, Out);
    isend "Isend" call!(In, c_int, Word, c_int, c_int, Word, Out);
    send "Send" call!(In, c_int, Word, c_int, c_int, Word);
    irecv "Irecv" call!(Out, c_int, Word, c_int, c_int, Word, Out);
    recv "Recv" call!(Out, c_int, Word, c_int, c_int, Word, Out);
    wait "Wait" call!(Out, Out);
    get_count "Get_count" call!(In, Word, Int);
    get_elements "Get_elements" call!(In, Word, Int);
    get_elements_x "Get_elements_x" call!(In, Word, *mut i64);
    allgather "Allgather" call!(In, c_int, Word, Out, c_int, Word, Word);
    alltoallw "Alltoallw" call!(In, Ints, Ints, In, Out, Ints, Ints, In, Word);
    gather "Gather" call!(In, c_int, Word, Out, c_int, Word, c_int, Word);
    scatter "Scatter" call!(In, c_int, Word, Out, c_int, Word, c_int, Word);
    win_create "Win_create" call!(Out, isize, c_int, Word, Word, Out);
    win_set_errhandler "Win_set_errhandler" call!(Word, Word);
    win_free "Win_free" call!(Out);
    win_fence "Win_fence" call!(c_int, Word);
    put "Put" call!(In, c_int, Word, c_int, isize, c_int, Word, Word);
    get "Get" call!(Out, c_int, Word, c_int, isize, c_int, Word, Word);
    accumulate "Accumulate" call!(In, c_int, Word, c_int, isize, c_int, Word, Word, Word);
}

impl Functions {
    /// Returns the name of a function that the library lacks and without which nothing can be
    /// checked. Returns none if the library has all these functions.
    pub(super) fn absent(&self) -> Option<&'static str> {
        let needed = [
            (self.init.is_some(), "Init"),
            (self.commit.is_some(), "Type_commit"),
            (self.free.is_some(), "Type_free"),
            (self.size.is_some(), "Type_size"),
            (self.extent.is_some(), "Type_get_extent"),
            (self.pack.is_some(), "Pack"),
            (self.unpack.is_some(), "Unpack"),
        ];
        needed.into_iter().find(|(there, _)| !there).map(|(_, name)| name)
    }
}
