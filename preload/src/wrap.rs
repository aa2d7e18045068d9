//! Exported C functions that take the place of the MPI library's functions of the same names.
//!
//! The functions with counts are generated from the rows of `ddtc_hosts::counted_calls`. Each row
//! gives two exported functions, one with counts of type `int` and one with `MPI_Count`, and both
//! call the same generic function. All other wrappers are written by hand.
//!
//! Wrappers take handles as 64-bit integers, so one set of symbols serves every ABI: on the 64-bit
//! ELF targets of MPI, a handle of type `int` arrives in the lower half of the register or stack
//! slot that a pointer would arrive in.
#![allow(non_snake_case, reason = "the names of MPI")]
#![allow(clippy::too_many_arguments, reason = "the signatures of MPI")]

mod arguments;
mod blocking;
mod collective;
mod completion;
mod errors;
mod files;
mod lifetime;
mod nonblocking;
mod pack;
mod partitioned;
mod processes;
mod windows;

use arguments::{ArgumentTypes, is_hosts, looked, looked_at, raised_on, value};
use collective::{all, each, neighbour, rooted};
use pack::at_once;

use std::ffi::{c_int, c_void};

use ddtc::internal::count::Count;
use ddtc_hosts::counted_calls::{Completion, CountedCall, Role};
use ddtc_hosts::for_each_counted_call;
use ddtc_hosts::policy::Call;

use crate::forms::Forms;
use crate::handles::{NO_HOST, On, handle_at, missing};
use crate::hook::committing;
use crate::hooks::attend_in_call;
use crate::host::{HandleWord, Host, host, known};
use crate::hotness;
use crate::outcome::Counted;
use crate::signatures::argument;
use crate::slow_path::{COUNT, UNSEEN, watched_for};
use crate::table::{self, Found, TypeEntry};
use crate::{counting, types};

/// Defines the two exported functions of every row of `ddtc_hosts::counted_calls`.
///
/// An exported function first tries two fast ways. One is to pack at once (`at_once!`). The other
/// is to call the MPI library's function, if the handles of the types alone show that nothing is
/// converted (`is_hosts!`). Otherwise `looked_into` looks the types up, and calls the MPI library's
/// function if no type of the call may be converted. In all other cases, and if the MPI library
/// lacks this form of the function, `converting` calls the wrapper that the row names. While calls
/// are counted for the report, `counted` does the work of `looked_into`.
macro_rules! exported {
    ($(fn $name:ident, fn $name_c:ident: $small:ident, $large:ident, $section:literal, $call:ident $completion:ident $file:ident::$by:ident
       ($($argument:ident: $role:ident),*);)*) => {$(
        exported! { @form $small $large $small $name $name $section $call $completion $file::$by c_int ($($argument: $role),*) }
        exported! { @form $small $large $large $name $name_c $section $call $completion $file::$by i64 ($($argument: $role),*) }
    )*};
    (@form $small:ident $large:ident $form:ident $plain:ident $name:ident $section:literal $call:ident $completion:ident $file:ident::$by:ident
     $n:ident ($($argument:ident: $role:ident),*)) => {
        #[doc = concat!("# Safety\nAs `", stringify!($name), "` (MPI 5.0, ", $section, ").")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: argument!($n, $role)),*) -> c_int {
            const ROW: CountedCall = CountedCall {
                name: stringify!($plain),
                call: Call::$call,
                completion: Completion::$completion,
                arguments: &[$(Role::$role),*],
            };
            if let Some(host) = known() {
                if at_once!(host, $file::$by($($argument),*)) {
                    return 0;
                }
                if !watched_for(COUNT | UNSEEN)
                    && is_hosts!(host, ROW, $($argument: $role),*)
                    && let Some(theirs) = host.direct.$form
                {
                    // SAFETY: `theirs` is the next function of this name and form, a PMPI layer's
                    // or the MPI library's. It gets the program's arguments unchanged.
                    return unsafe { theirs($($argument),*) };
                }
            }
            // SAFETY: the arguments are the program's, unchanged.
            return unsafe { looked_into($($argument),*) };

            // The functions below are separate and not inlined. So a call that is bypassed by its
            // handles saves no registers and jumps to the MPI library, and a call that is bypassed
            // after its types were looked up keeps nothing on the stack.
            #[inline(never)]
            unsafe extern "C-unwind" fn looked_into($($argument: argument!($n, $role)),*) -> c_int {
                let Some(host) = host() else { return NO_HOST };
                attend_in_call(host);
                if let Some(call) = Counted::begin() {
                    // SAFETY: the arguments are the program's, unchanged.
                    return unsafe { counted(host, call, $($argument),*) };
                }
                let looked = looked!(host, ROW, $($argument: $role),*);
                if !looked.is_wanted() && let Some(theirs) = host.direct.$form {
                    // SAFETY: `theirs` is the next function of this name and form, a PMPI layer's
                    // or the MPI library's. It gets the program's arguments unchanged.
                    return unsafe { theirs($($argument),*) };
                }
                // SAFETY: the arguments are the program's, unchanged.
                unsafe { converting(host, looked.is_wanted(), looked.entries(), $($argument),*) }
            }

            #[cold]
            unsafe fn counted(host: &'static Host, call: Counted, $($argument: argument!($n, $role)),*) -> c_int {
                let looked = looked!(host, ROW, $($argument: $role),*);
                if !looked.is_wanted() && let Some(theirs) = host.direct.$form {
                    // SAFETY: `theirs` is the next function of this name and form, a PMPI layer's
                    // or the MPI library's. It gets the program's arguments unchanged.
                    return unsafe { theirs($($argument),*) };
                }
                // SAFETY: the arguments are the program's, unchanged.
                let code = unsafe { converting(host, looked.is_wanted(), looked.entries(), $($argument),*) };
                // SAFETY: the arguments are the program's. `counting::end` calls this closure only
                // if the call has returned success, so the MPI library has accepted them.
                let looked_at = || unsafe { looked_at(host, ROW.call, &[$(value!($argument $role)),*]) };
                counting::end(host, call, code, looked_at);
                code
            }

            #[inline(never)]
            unsafe fn converting(host: &'static Host, wanted: bool, entries: [Option<&'static TypeEntry>; 2], $($argument: argument!($n, $role)),*) -> c_int {
                let on = raised_on!(host, $($argument: $role),*);
                let (small, large) = (host.next_counted.$small, host.next_counted.$large);
                let forms = Forms { small, large, call: ROW.call, wanted, entries, on };
                // SAFETY: the arguments are the program's, unchanged.
                unsafe { $file::$by(host, forms, $($argument),*) }
            }
        }
    };
}

for_each_counted_call! { exported }

/// # Safety
/// As `MPI_Type_commit` (MPI 5.0, 5.1.9).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Type_commit(datatype: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(type_commit) = host.next.type_commit else { return missing(host) };
    if datatype.is_null() {
        // SAFETY: the argument is the program's, unchanged; the MPI library refuses a null pointer.
        return unsafe { type_commit(datatype) };
    }
    // SAFETY: `datatype` is not null, so it points to a handle of the program. The handle may have
    // any value.
    let handle = unsafe { handle_at(host, datatype) };
    // SAFETY: the argument is the program's, unchanged.
    let code = committing(host, handle, || unsafe { type_commit(datatype) });
    if code == 0 {
        types::committed(host, handle);
    }
    code
}

/// # Safety
/// As `MPI_Type_free` (MPI 5.0, 5.1.9).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Type_free(datatype: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(type_free) = host.next.type_free else { return missing(host) };
    if !datatype.is_null() {
        // The handle is forgotten before the call: once the type is freed, the MPI library may give
        // the same handle to a type of another thread.
        // SAFETY: `datatype` is not null, so it points to a handle of the program. The handle may
        // have any value.
        let handle = unsafe { handle_at(host, datatype) } & host.mask;
        if !hotness::forget(handle) {
            // SAFETY: the argument is the program's, and `handle` was read from it above.
            return unsafe { free_other(host, handle, datatype) };
        }
    }
    // SAFETY: the argument is the program's, unchanged.
    unsafe { type_free(datatype) }
}

/// Frees a type that [`hotness::forget`] has not forgotten: its handle may have a slot in the
/// overflow table of [`hotness`], because the first slot holds another handle or none, or its slot
/// has a back-off. This is a function of its own so that [`MPI_Type_free`] saves no registers in
/// the usual case.
///
/// # Safety
/// As `MPI_Type_free`; `handle` must be the masked handle at `datatype`.
#[cold]
#[inline(never)]
unsafe fn free_other(host: &'static Host, handle: u64, datatype: *mut c_void) -> c_int {
    hotness::forget_other(handle);
    host.next.type_free.map_or(missing(host), |type_free| {
        // SAFETY: the argument is the program's, unchanged.
        unsafe { type_free(datatype) }
    })
}

/// # Safety
/// As `MPI_Type_dup` (MPI 5.0, 5.1.10).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Type_dup(oldtype: HandleWord, newtype: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(type_dup) = host.next.type_dup else { return missing(host) };
    // SAFETY: the arguments are the program's, unchanged.
    let code = unsafe { type_dup(oldtype, newtype) };
    let old = oldtype & host.mask;
    // The duplicate of a committed type is committed too.
    if code == 0 && !newtype.is_null() {
        if let Found::Convert(_) = table::find(old) {
            // The old type is decoded. The copy callback of its attribute has given the new type an
            // entry, which `adopt` binds to the new handle.
            // SAFETY: `newtype` is not null and the call has succeeded, so the MPI library has
            // written a handle there.
            types::adopt(host, unsafe { handle_at(host, newtype) }, u64::MAX);
        } else if hotness::has(old) {
            // SAFETY: `newtype` is not null and the call has succeeded, so the MPI library has
            // written a handle there.
            types::committed(host, unsafe { handle_at(host, newtype) });
        }
    }
    code
}
