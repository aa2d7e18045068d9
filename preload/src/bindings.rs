//! Test whether this library will see the completion of every request that is started now.
//!
//! Two things prevent that: a loaded object that may complete requests by calls that do not reach
//! this library (`objects`), and a library that comes before this one in the loader's search order
//! and takes the calls.
//!
//! The Fortran library of MPICH and its derivatives contains two bindings. The binding of `mpi_f08`
//! completes requests by the `PMPI_` names, which are not seen; if an object that refers to it is
//! loaded, `objects` reports that object. The binding of `mpif.h` and `use mpi` is built to call C
//! by the `MPI_` names. This module tests that by calling each function of the binding that starts,
//! completes or frees a request, with a request that has no peer. If all these calls reach the
//! wrappers, the binding is harmless.

use std::ffi::{CStr, CString, c_int, c_void};

use ddtc::process::Awaited;
use ddtc_hosts::bypass::Bypass;
use ddtc_hosts::policy::Call;

use crate::gpu;
use crate::guard::guard;
use crate::handles::handle_at;
use crate::host::{HandleWord, Host};
use crate::loader::{Opened, loaded_objects};
use crate::objects;
use crate::outcome::bypassed;
use crate::reentrancy::Inside;
use crate::requests::{self, Asks, Operation};
use crate::scopes::ours;
use crate::slow_path::{BINDING, BYPASS, reasons};
use crate::staged::Staged;
use crate::status::Status;

/// Functions that start or complete requests which this library converts.
const CALLS: [&CStr; 17] = [
    c"MPI_Isend",
    c"MPI_Irecv",
    c"MPI_Imrecv",
    c"MPI_Send_init",
    c"MPI_Recv_init",
    c"MPI_Start",
    c"MPI_Startall",
    c"MPI_Wait",
    c"MPI_Test",
    c"MPI_Waitany",
    c"MPI_Testany",
    c"MPI_Waitall",
    c"MPI_Testall",
    c"MPI_Waitsome",
    c"MPI_Testsome",
    c"MPI_Request_get_status",
    c"MPI_Request_free",
];

/// Returns true if, as far as is known already, this library will see the completion of every
/// request that is started now. Unlike [`covered`], it examines no newly loaded objects and calls
/// no binding.
pub(crate) fn may_be_covered(host: &Host) -> bool {
    if reasons() & BYPASS != 0 {
        return bypassed(Bypass::UnseenCompletion).unwrap_or(false);
    }
    static FIRST: Awaited<bool> = Awaited::new();
    *FIRST.get_or_init(|| {
        let all = CALLS.iter().all(|name| ours(name));
        let seen = all && !host.layers.take(Call::Message);
        seen && host.f.request_get_status.is_some() && host.f.test_cancelled.is_some()
    })
}

/// Returns true if this library will see the completion of every request that is started now.
/// Examines newly loaded objects, and tries newly loaded Fortran bindings. May be called only
/// between the initialization and the finalization of the world.
pub(crate) fn covered(host: &'static Host) -> bool {
    gpu::refresh_now();
    may_be_covered(host) && (reasons() & BINDING == 0 || follow(host))
}

/// Tries the Fortran bindings that were loaded and not tried yet. Returns true if all their calls
/// reach this library; otherwise ends the conversion of nonblocking operations.
#[cold]
fn follow(host: &'static Host) -> bool {
    let Some(_inside) = Inside::enter() else { return false };
    let bindings = objects::unproven();
    // If C handles are not integers, a binding has to translate Fortran's handles. Intel MPI's
    // binding for the standard ABI does not do so everywhere and crashes, so no such binding is
    // called.
    let integers = host.abi.is_some_and(|abi| abi.handle_bytes == size_of::<c_int>());
    let all = || bindings.iter().all(|binding| arrives(host, binding));
    let followed = integers && host.with_world(|| guard(all)).flatten().unwrap_or(false);
    if followed {
        objects::tried(&bindings);
    } else {
        objects::bypass(format!("calls of {} do not all arrive in ddtc", bindings.join(", ")));
    }
    followed
}

/// Kind of an argument of a Fortran function. All arguments are passed by reference.
#[derive(Clone, Copy)]
enum Argument {
    /// Number of requests, which is 1 in all calls here.
    Count,
    Request,
    Status,
    /// An integer or logical that the function writes.
    Out,
}
use Argument::{Count, Out, Request, Status as Stat};

/// Fortran functions that start, complete, ask about or free a request: names without `MPI_`, and
/// arguments (MPI 5.0, 3.7.3, 3.7.5, 3.7.6 and 3.9).
const FUNCTIONS: [(&str, &[Argument]); 15] = [
    ("start", &[Request, Out]),
    ("startall", &[Count, Request, Out]),
    ("wait", &[Request, Stat, Out]),
    ("test", &[Request, Out, Stat, Out]),
    ("waitany", &[Count, Request, Out, Stat, Out]),
    ("testany", &[Count, Request, Out, Out, Stat, Out]),
    ("waitall", &[Count, Request, Stat, Out]),
    ("testall", &[Count, Request, Out, Stat, Out]),
    ("waitsome", &[Count, Request, Out, Out, Stat, Out]),
    ("testsome", &[Count, Request, Out, Out, Stat, Out]),
    ("request_get_status", &[Request, Out, Stat, Out]),
    ("request_get_status_any", &[Count, Request, Out, Out, Stat, Out]),
    ("request_get_status_all", &[Count, Request, Out, Stat, Out]),
    ("request_get_status_some", &[Count, Request, Out, Out, Stat, Out]),
    ("request_free", &[Request, Out]),
];

/// Returns true if each function of [`FUNCTIONS`] that a binding defines, in each spelling, calls a
/// wrapper of this library. Also true if the binding is no longer loaded.
fn arrives(host: &'static Host, binding: &str) -> bool {
    let Some(opened) = Opened::loaded(binding) else {
        // If the object is not in the list either, the program has unloaded it meanwhile.
        return !loaded_objects().iter().any(|object| object == binding);
    };
    FUNCTIONS.iter().all(|&(name, arguments)| {
        let upper = name.to_uppercase();
        let spellings =
            ["mpi_", "pmpi_"].map(|prefix| ["", "_", "__"].map(|suffix| format!("{prefix}{name}{suffix}")));
        let names = spellings.into_iter().flatten().chain([format!("MPI_{upper}"), format!("PMPI_{upper}")]);
        let mut functions: Vec<*mut c_void> = names
            .filter_map(|name| CString::new(name).ok())
            .map(|name| opened.function(binding, &name))
            .filter(|function| !function.is_null())
            .collect();
        functions.sort_unstable();
        functions.dedup();
        // SAFETY: `function` is the binding's function of this name, whose arguments the MPI
        // standard fixes and `FUNCTIONS` lists.
        functions.into_iter().all(|function| unsafe { tried(host, function, arguments) } == Some(true))
    })
}

/// A persistent receive from `MPI_PROC_NULL`, which is complete as soon as it is started. It is
/// entered into this library's table of requests without a staging buffer, so that the table counts
/// the calls that arrive with it ([`requests::arrived`]).
struct Probe {
    host: &'static Host,
    handle: HandleWord,
}

impl Probe {
    fn new(host: &'static Host) -> Option<Probe> {
        let abi = host.abi?;
        let mut word: HandleWord = 0;
        // SAFETY: a receive of 0 elements of `MPI_PACKED` from `MPI_PROC_NULL` on `MPI_COMM_SELF`,
        // so the buffer is never written and any pointer will do. `word` has 8 bytes, which is room
        // for the handle of the request in every ABI.
        let (code, handle) = unsafe {
            let at: *mut c_void = (&raw mut word).cast();
            let made = host.counted.recv_init?(at, 0, host.packed, abi.proc_null, 0, host.myself, at);
            (made, handle_at(host, at) & host.mask)
        };
        if code != 0 || handle == host.request_null {
            return None;
        }
        requests::put(handle, Operation::persistent(Staged::new(host, 0)));
        Some(Probe { host, handle })
    }

    /// Removes the request from the table, and frees it unless the function under test has done so
    /// (`freed`).
    fn end(self, freed: bool) {
        requests::find_all(std::iter::once(self.handle), Asks::Nothing)
            .into_iter()
            .for_each(|found| drop(found.take()));
        if freed {
            return;
        }
        let (mut word, mut status) = (self.handle, Status::new());
        // SAFETY: `self.handle` is a request that `Probe::new` made and nobody has freed, active or
        // inactive; both functions accept either. `word` has 8 bytes, which is room for a handle of
        // every ABI, and `status` for a status of every ABI.
        unsafe {
            if let Some(wait) = self.host.f.wait {
                wait((&raw mut word).cast(), (&raw mut status).cast());
            }
            if let Some(request_free) = self.host.f.request_free {
                request_free((&raw mut word).cast());
            }
        }
    }
}

/// Returns true if a call of this Fortran function reaches a wrapper of this library exactly once;
/// `None` if no request can be made for the test.
///
/// # Safety
/// `function` must be a Fortran function that takes these arguments.
unsafe fn tried(host: &'static Host, function: *mut c_void, arguments: &[Argument]) -> Option<bool> {
    type Ref = *mut c_void;
    let probe = Probe::new(host)?;
    let handle = i64::from(probe.handle as i32);
    // Each argument gets memory of its own: 8 bytes for the count and the request, 128 bytes for
    // any other, which is enough for Fortran integers of 4 and 8 bytes and for a Fortran status.
    let (mut count, mut request, mut room) = (1i64, handle, [[0u64; 16]; 6]);
    let at: Vec<Ref> = arguments
        .iter()
        .zip(&mut room)
        .map(|(argument, room)| match argument {
            Count => (&raw mut count).cast(),
            Request => (&raw mut request).cast(),
            Stat | Out => room.as_mut_ptr().cast(),
        })
        .collect();
    let before = requests::arrived();
    // SAFETY: the caller promises that `function` takes these arguments, all by reference. Each
    // pointer in `at` is to memory of its own that is long enough for its kind of argument. No
    // entry of `FUNCTIONS` has fewer than two or more than six arguments.
    unsafe {
        match at[..] {
            [a, b] => std::mem::transmute::<Ref, unsafe extern "C-unwind" fn(Ref, Ref)>(function)(a, b),
            [a, b, c] => {
                std::mem::transmute::<Ref, unsafe extern "C-unwind" fn(Ref, Ref, Ref)>(function)(a, b, c)
            }
            [a, b, c, d] => {
                std::mem::transmute::<Ref, unsafe extern "C-unwind" fn(Ref, Ref, Ref, Ref)>(function)(
                    a, b, c, d,
                );
            }
            [a, b, c, d, e] => {
                std::mem::transmute::<Ref, unsafe extern "C-unwind" fn(Ref, Ref, Ref, Ref, Ref)>(function)(
                    a, b, c, d, e,
                );
            }
            [a, b, c, d, e, f] => {
                std::mem::transmute::<Ref, unsafe extern "C-unwind" fn(Ref, Ref, Ref, Ref, Ref, Ref)>(
                    function,
                )(a, b, c, d, e, f);
            }
            _ => {}
        }
    }
    let arrived = requests::arrived() == before + 1;
    probe.end(request as i32 != handle as i32);
    Some(arrived)
}
