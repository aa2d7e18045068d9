//! Test whether a thread runs inside an MPI call of the program or inside Open MPI's progress
//! function (`opal_progress`). The names of the functions on the thread's stack decide.

use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};

use ddtc::internal::process::{Awaited, Mutex};

use crate::loader::loads;
use crate::scopes::after_ours;

/// Maximum number of frames that are read of a thread's stack. If the stack has this many frames or
/// more, [`is_in`] returns false, because Open MPI's progress function may be in a frame that was
/// not read.
const FRAMES: usize = 96;

/// Returns the address of `opal_progress`, the function of Open MPI that makes requests progress.
/// Returns 0 if no loaded object has this function.
fn progress() -> usize {
    static AT: Awaited<usize> = Awaited::new();
    *AT.get_or_init(|| after_ours("opal_progress").addr())
}

/// Returns true if a function of MPI is on this thread's stack and Open MPI's progress function is
/// not. Returns false if the whole stack cannot be read, or if the progress function was not found.
pub(crate) fn in_a_call_of_the_program() -> bool {
    is_in(|name| name.starts_with(b"PMPI_") || name.starts_with(b"MPI_"))
}

/// Returns true if a function whose name satisfies `is_one` is on this thread's stack and Open
/// MPI's progress function is not. Returns false if the stack has [`FRAMES`] frames or more, or if
/// the progress function was not found.
pub(crate) fn is_in(is_one: impl Fn(&[u8]) -> bool) -> bool {
    let progress = progress();
    let mut frames = [std::ptr::null_mut(); FRAMES];
    // SAFETY: the array has room for `FRAMES` addresses.
    let n = unsafe { libc::backtrace(frames.as_mut_ptr(), FRAMES as c_int) };
    let Some(frames) = frames.get(..n.max(0) as usize).filter(|f| f.len() < FRAMES && progress != 0) else {
        return false;
    };
    let (mut called, (_, unloads)) = (false, loads());
    for &frame in frames {
        let Some((start, name)) = function(frame, unloads) else { continue };
        if start == progress {
            return false;
        }
        called |= is_one(name);
    }
    called
}

/// Address at which a function begins, and its exported name.
type NamedFunction = (usize, &'static [u8]);

#[derive(Default)]
struct Known {
    unloads: u64,
    functions: HashMap<usize, Option<NamedFunction>>,
}

/// Results of earlier look-ups of the functions on a stack. The key is the return address in the
/// stack frame. All results are dropped when an object is unloaded. They are kept because `dladdr`
/// takes at least 10 us for one frame (in an MPI library, Zen 3) and the same frames are looked up
/// again: during Open MPI's own initialization, eleven commits of types examine the stack.
static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
/// Maximum number of look-up results in [`KNOWN`]. When one more result is to be added, all results
/// are dropped first.
const MAX_KNOWN: usize = 1024;

/// Returns the function that contains the return address `frame`, from [`KNOWN`] or from the
/// dynamic linker. Returns `None` if no exported function contains it. `unloads`: number of objects
/// that were unloaded so far.
fn function(frame: *mut c_void, unloads: u64) -> Option<NamedFunction> {
    if let Some(known) = KNOWN.lock().as_ref().filter(|known| known.unloads == unloads)
        && let Some(known) = known.functions.get(&frame.addr())
    {
        return *known;
    }
    // `dladdr` is called without the lock of `KNOWN`, because `dladdr` waits while another thread
    // loads an object.
    let found = look(frame);
    let mut known = KNOWN.lock();
    let known = known.get_or_insert_default();
    if known.unloads != unloads || known.functions.len() >= MAX_KNOWN {
        *known = Known { unloads, functions: HashMap::new() };
    }
    known.functions.insert(frame.addr(), found);
    found
}

/// Returns the function that contains the return address `frame`, from the dynamic linker.
fn look(frame: *mut c_void) -> Option<NamedFunction> {
    // SAFETY: all zero is a valid `Dl_info`, which `dladdr` fills in.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `dladdr` takes any address. `frame` is the address to which a call returns, which may
    // be the first address after the calling function. The call instruction lies before `frame`, so
    // one byte less is an address in the calling function.
    let known = unsafe { libc::dladdr(frame.wrapping_byte_sub(1), &raw mut info) } != 0;
    if !known || info.dli_sname.is_null() {
        return None;
    }
    // SAFETY: `dli_sname` is a C string in the object that contains the frame's address. That
    // object is loaded, since the frame is on this thread's stack. [`KNOWN`] keeps the string only
    // until an object is unloaded.
    Some((info.dli_saddr.addr(), unsafe { CStr::from_ptr(info.dli_sname) }.to_bytes()))
}
