//! Test whether ddtc will see the completion of every request that is started now.
//!
//! Two things prevent that: a loaded object that may complete requests by calls that do not reach
//! ddtc ([`objects`]), and a library that comes before ddtc in the loader's search order and
//! defines functions of MPI, so that the program's calls reach that library instead of ddtc.
//!
//! The Fortran library of MPICH and its derivatives contains two bindings. The binding of `mpi_f08`
//! completes requests by the `PMPI_` names, so ddtc does not see these calls; if an object that
//! refers to this binding is loaded, [`objects`] reports that object. The binding of `mpif.h` and
//! `use mpi` is built to call C by the `MPI_` names. This module tests that by calling each
//! function of the binding that starts, completes or frees a request, or queries its state, with a
//! request that has no peer. If each of these calls reaches a wrapper of ddtc, ddtc sees all
//! completions that go through the binding.

use std::ffi::{CStr, CString, c_int, c_void};

use ddtc::internal::process::Awaited;
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

/// Functions for which [`may_be_covered`] tests whether the program's calls reach ddtc. They start,
/// complete, query or free the requests of nonblocking and persistent messages. Not every such
/// function is listed (`MPI_Issend` is not).
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

/// Returns true if, as far as is known already, ddtc will see the completion of every request that
/// is started now. Unlike [`covered`], it examines no newly loaded objects and calls no functions
/// of Fortran bindings.
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

/// Returns true if ddtc will see the completion of every request that is started now. Examines
/// newly loaded objects, and tests newly loaded Fortran bindings by calls of their functions. May
/// be called only between the initialization and the finalization of the world.
pub(crate) fn covered(host: &'static Host) -> bool {
    gpu::refresh_now();
    may_be_covered(host) && (reasons() & BINDING == 0 || follow(host))
}

/// Tests the loaded Fortran bindings that were not tested yet. Returns true if all calls of their
/// functions reach ddtc; otherwise ends the conversion of nonblocking operations.
#[cold]
fn follow(host: &'static Host) -> bool {
    let Some(_inside) = Inside::enter() else { return false };
    let bindings = objects::unproven();
    // If C handles are not integers, a binding must translate Fortran's handles. Intel MPI's
    // binding for the standard ABI does not translate all of them and crashes. So if C handles are
    // not integers, no binding is called, and nonblocking operations are bypassed.
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

/// Kind of an argument of a Fortran function about requests. All arguments are passed by reference.
#[derive(Clone, Copy)]
enum Argument {
    /// Number of requests that are passed, which is 1 in all test calls of bindings.
    Count,
    Request,
    Status,
    /// Integer or logical to which the Fortran function writes a result, for example its error
    /// code.
    Out,
}
use Argument::{Count, Out, Request, Status as Stat};

/// Fortran functions that start, complete, query or free a request, each with its name without
/// `mpi_` and the kinds of its arguments (MPI 5.0, 3.7.3, 3.7.5, 3.7.6 and 3.9).
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

/// Returns true if each function of [`FUNCTIONS`] that a binding defines, in each spelling of its
/// name, calls a wrapper of ddtc. Also returns true if the binding is no longer loaded.
fn arrives(host: &'static Host, binding: &str) -> bool {
    let Some(opened) = Opened::loaded(binding) else {
        // If the binding is not among the loaded objects either, the program has unloaded it since
        // it was found.
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
        // SAFETY: `function` is the binding's function of one of these names. The MPI standard
        // fixes its arguments, and `arguments` has their kinds.
        functions.into_iter().all(|function| unsafe { tried(host, function, arguments) } == Some(true))
    })
}

/// Request for testing a binding: a persistent receive from `MPI_PROC_NULL`, which is complete as
/// soon as it is started. The request is entered into ddtc's table of requests without a staging
/// buffer, so that ddtc counts the calls of its wrappers that are passed the request
/// ([`requests::arrived`]).
struct Probe {
    host: &'static Host,
    handle: HandleWord,
}

impl Probe {
    fn new(host: &'static Host) -> Option<Probe> {
        let abi = host.abi?;
        let mut word: HandleWord = 0;
        // SAFETY: a receive of 0 elements of `MPI_PACKED` from `MPI_PROC_NULL` on `MPI_COMM_SELF`
        // writes nothing to its buffer, so any pointer may be passed as the buffer. `word` has 8
        // bytes, which is room for the handle of the request in every ABI.
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

    /// Removes the request from ddtc's table of requests, and frees the request. `freed`: the
    /// function under test has freed the request already.
    fn end(self, freed: bool) {
        requests::find_all(std::iter::once(self.handle), Asks::Ends, |_| ())
            .into_iter()
            .for_each(|found| drop(found.take()));
        if freed {
            return;
        }
        let (mut word, mut status) = (self.handle, Status::new());
        // SAFETY: `self.handle` is a request that `Probe::new` has made and that was not freed. It
        // may be active or inactive; both functions accept either. `word` has 8 bytes, which is
        // room for a handle of every ABI, and `status` has room for a status of every ABI.
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

/// Calls a Fortran function with a test request. Returns true if the call reaches a wrapper of ddtc
/// exactly once; `None` if no test request can be made.
///
/// # Safety
/// `function` must be a Fortran function whose arguments have the kinds `arguments`.
unsafe fn tried(host: &'static Host, function: *mut c_void, arguments: &[Argument]) -> Option<bool> {
    type Ref = *mut c_void;
    let probe = Probe::new(host)?;
    let handle = i64::from(probe.handle as i32);
    // Each argument gets memory of its own: 8 bytes for the count or the request, and 128 bytes for
    // a status or a result, which is enough for Fortran integers of 4 and 8 bytes and for a Fortran
    // status.
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
    // pointer in `at` points to separate memory that is long enough for its kind of argument. No
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
