//! The C functions that this library puts before the host's: those with counts from the rows of
//! `ddtc_hosts::counted_calls`, in both forms from one function here; the others by hand.
//!
//! Handles are taken as 64-bit registers, so one set of symbols serves every ABI: on the 64-bit ELF targets of MPI an `int` handle
//! arrives in the lower half of the same register or stack slot.
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
mod windows;

use arguments::{ArgumentTypes, is_hosts, looked, looked_at, raised_on, value};
use collective::{all, each, neighbour, rooted};
use pack::at_once;

use std::ffi::{c_int, c_void};

use ddtc::count::Count;
use ddtc_hosts::counted_calls::{Completion, CountedCall, Role};
use ddtc_hosts::for_each_counted_call;
use ddtc_hosts::policy::Call;

use crate::candidates;
use crate::forms::Forms;
use crate::handles::{NO_HOST, On, handle_at, missing};
use crate::hook::committing;
use crate::hooks::attend_in_call;
use crate::host::{HandleWord, Host, host, known};
use crate::outcome::Counted;
use crate::signatures::argument;
use crate::slow_path::{COUNT, UNSEEN, watched_for};
use crate::table::{self, Found, TypeEntry};
use crate::{counting, types};

/// Makes the two functions of every row: the host's at once if the policy converts no type of the call, else what wraps it; counted while calls are.
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
                    // SAFETY: the caller's arguments, in the form that it has used.
                    return unsafe { theirs($($argument),*) };
                }
            }
            // SAFETY: the caller's arguments.
            return unsafe { looked_into($($argument),*) };

            // Functions of their own: a call that is the host's by its handles saves no register and jumps there, and one that is the host's after a look keeps nothing.
            #[inline(never)]
            unsafe extern "C-unwind" fn looked_into($($argument: argument!($n, $role)),*) -> c_int {
                let Some(host) = host() else { return NO_HOST };
                attend_in_call(host);
                if let Some(call) = Counted::begin() {
                    // SAFETY: the caller's arguments.
                    return unsafe { counted(host, call, $($argument),*) };
                }
                let looked = looked!(host, ROW, $($argument: $role),*);
                if !looked.is_wanted() && let Some(theirs) = host.direct.$form {
                    // SAFETY: the caller's arguments, in the form that it has used.
                    return unsafe { theirs($($argument),*) };
                }
                // SAFETY: the caller's arguments.
                unsafe { converting(host, looked.is_wanted(), looked.entries(), $($argument),*) }
            }

            #[cold]
            unsafe fn counted(host: &'static Host, call: Counted, $($argument: argument!($n, $role)),*) -> c_int {
                let looked = looked!(host, ROW, $($argument: $role),*);
                if !looked.is_wanted() && let Some(theirs) = host.direct.$form {
                    // SAFETY: the caller's arguments, in the form that it has used.
                    return unsafe { theirs($($argument),*) };
                }
                // SAFETY: the caller's arguments.
                let code = unsafe { converting(host, looked.is_wanted(), looked.entries(), $($argument),*) };
                // SAFETY: the caller's arguments.
                let looked_at = || unsafe { looked_at(host, ROW.call, &[$(value!($argument $role)),*]) };
                counting::end(host, call, code, looked_at);
                code
            }

            #[inline(never)]
            unsafe fn converting(host: &'static Host, wanted: bool, entries: [Option<&'static TypeEntry>; 2], $($argument: argument!($n, $role)),*) -> c_int {
                let on = raised_on!(host, $($argument: $role),*);
                let (small, large) = (host.next_counted.$small, host.next_counted.$large);
                let forms = Forms { small, large, call: ROW.call, wanted, entries, on };
                // SAFETY: the caller's arguments.
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
        // SAFETY: the caller's argument, which the host refuses.
        return unsafe { type_commit(datatype) };
    }
    // SAFETY: a handle of the caller's, whatever its value.
    let handle = unsafe { handle_at(host, datatype) };
    // SAFETY: the caller's argument.
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
        // Before the host may give the value to a type of another thread.
        // SAFETY: a handle of the caller's, whatever its value.
        let handle = unsafe { handle_at(host, datatype) } & host.mask;
        if !candidates::forget(handle) {
            // SAFETY: the caller's arguments.
            return unsafe { free_other(host, handle, datatype) };
        }
    }
    // SAFETY: the caller's arguments.
    unsafe { type_free(datatype) }
}

/// As [`MPI_Type_free`], of a type whose slot is not the one of its handle. A function of its own, so that the other saves no register.
///
/// # Safety
/// As `MPI_Type_free`; `handle` must be the masked handle at `datatype`.
#[cold]
#[inline(never)]
unsafe fn free_other(host: &'static Host, handle: u64, datatype: *mut c_void) -> c_int {
    candidates::forget_other(handle);
    // SAFETY: the caller's arguments.
    host.next.type_free.map_or(missing(host), |type_free| unsafe { type_free(datatype) })
}

/// # Safety
/// As `MPI_Type_dup` (MPI 5.0, 5.1.10).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Type_dup(oldtype: HandleWord, newtype: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(type_dup) = host.next.type_dup else { return missing(host) };
    // SAFETY: the caller's arguments.
    let code = unsafe { type_dup(oldtype, newtype) };
    let old = oldtype & host.mask;
    // A committed type's duplicate is committed.
    if code == 0 && !newtype.is_null() {
        if let Found::Convert(_) = table::find(old) {
            // It brought its entry along.
            // SAFETY: the host has written a handle there.
            types::adopt(host, unsafe { handle_at(host, newtype) }, u64::MAX);
        } else if candidates::has(old) {
            // SAFETY: as above.
            types::committed(host, unsafe { handle_at(host, newtype) });
        }
    }
    code
}
