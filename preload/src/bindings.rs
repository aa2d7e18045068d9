//! Whether every completion of a request that is started now will be seen.
//!
//! It is not where an object completes past this library (`objects`), or another library stands before it. The Fortran binding of
//! MPICH's family is one library with two bindings: that of `mpif.h` and `use mpi`, built to call C by the `MPI_` names, and that of `mpi_f08`, which
//! completes by the `PMPI_` ones. Nobody who refers to the second is loaded, or `objects` has said so; the first is called here, each of its functions that
//! start, complete or free, with a request to nobody: it is followed if all calls arrive.

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

/// Names that start or complete requests which this library converts.
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

/// Says whether every completion of a request that is started now may be seen, as far as is known without a call.
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

/// Says whether every completion of a request that is started now will be seen. Asked between the initialization and the finalization of the
/// world.
pub(crate) fn covered(host: &'static Host) -> bool {
    gpu::refresh_now();
    may_be_covered(host) && (reasons() & BINDING == 0 || follow(host))
}

/// Calls the bindings that were loaded; whether they are all followed.
#[cold]
fn follow(host: &'static Host) -> bool {
    let Some(_inside) = Inside::enter() else { return false };
    let bindings = objects::unproven();
    // Where handles are not integers, bindings translate them: Intel's for the standard ABI does not everywhere, and crashes.
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

/// Argument of a Fortran function, always by reference.
#[derive(Clone, Copy)]
enum Argument {
    /// Number of requests: one.
    Count,
    Request,
    Status,
    /// A number or a logical that is written.
    Out,
}
use Argument::{Count, Out, Request, Status as Stat};

/// The functions of Fortran that start, complete or free a request, without `MPI_` (MPI 5.0, 3.7.3, 3.7.5, 3.7.6 and 3.9).
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

/// Whether every call of a binding's functions, in every spelling that it has, comes to this library.
fn arrives(host: &'static Host, binding: &str) -> bool {
    let Some(opened) = Opened::loaded(binding) else {
        // The program has closed it.
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
        // SAFETY: a function of that name in the binding, whose arguments the standard fixes.
        functions.into_iter().all(|function| unsafe { tried(host, function, arguments) } == Some(true))
    })
}

/// A receive from nobody, which is complete as soon as it is started, known to this library as one of its own.
struct Probe {
    host: &'static Host,
    handle: HandleWord,
}

impl Probe {
    fn new(host: &'static Host) -> Option<Probe> {
        let abi = host.abi?;
        let mut word: HandleWord = 0;
        // SAFETY: no element of a named type from the null process, on the communicator of this process; a word has room for any handle.
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

    /// Frees the request unless the function under test has.
    fn end(self, freed: bool) {
        requests::find_all(std::iter::once(self.handle), Asks::Nothing)
            .into_iter()
            .for_each(|found| drop(found.take()));
        if freed {
            return;
        }
        let (mut word, mut status) = (self.handle, Status::new());
        // SAFETY: a request of ours that lives, active or not; a word has room for any handle.
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

/// Whether a call of this Fortran function comes to this library.
///
/// # Safety
/// The function must take these arguments.
unsafe fn tried(host: &'static Host, function: *mut c_void, arguments: &[Argument]) -> Option<bool> {
    type Ref = *mut c_void;
    let probe = Probe::new(host)?;
    let handle = i64::from(probe.handle as i32);
    // Room for Fortran integers and statuses of any width.
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
    // SAFETY: as the caller promises; every argument is a reference to memory of its own that is long enough.
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
