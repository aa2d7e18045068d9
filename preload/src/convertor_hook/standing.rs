//! The test whether a thread is in a call of the program or in Open MPI's progress, by the
//! functions on its stack.

use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};

use ddtc::process::{Awaited, Mutex};

use crate::loader::loads;
use crate::scopes::behind;

/// Maximum number of frames of a stack. Nothing is known of a deeper stack.
const FRAMES: usize = 96;

/// Returns the address of Open MPI's function that makes requests progress; 0 if it is not found.
fn progress() -> usize {
    static AT: Awaited<usize> = Awaited::new();
    *AT.get_or_init(|| behind("opal_progress").addr())
}

/// Returns true if a function of MPI is on the stack and Open MPI's progress is not. Returns false
/// if the stack cannot be read to its end.
pub(crate) fn in_a_call_of_the_program() -> bool {
    is_in(|name| name.starts_with(b"PMPI_") || name.starts_with(b"MPI_"))
}

/// Returns true if a function whose name satisfies `is_one` is on the stack and Open MPI's progress
/// is not. Returns false if the stack has [`FRAMES`] frames or more, or if the progress function is
/// not known.
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
type Function = (usize, &'static [u8]);

#[derive(Default)]
struct Known {
    unloads: u64,
    functions: HashMap<usize, Option<Function>>,
}

/// Functions of frames that were looked up, by the address in the frame. They are forgotten when an
/// object is unloaded. `dladdr` takes at least 10 us for one frame (in an MPI library, Zen 3), and
/// the same calls come again: eleven commits in Open MPI's own initialization look at the stack.
static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
/// Maximum number of frames that are kept in [`KNOWN`].
const MOST: usize = 1024;

/// Returns the function that contains an address of a frame. `unloads`: number of objects that were
/// unloaded so far.
fn function(frame: *mut c_void, unloads: u64) -> Option<Function> {
    if let Some(known) = KNOWN.lock().as_ref().filter(|known| known.unloads == unloads)
        && let Some(known) = known.functions.get(&frame.addr())
    {
        return *known;
    }
    // Without the lock, because `dladdr` waits for a thread that is loading an object.
    let found = look(frame);
    let mut known = KNOWN.lock();
    let known = known.get_or_insert_default();
    if known.unloads != unloads || known.functions.len() >= MOST {
        *known = Known { unloads, functions: HashMap::new() };
    }
    known.functions.insert(frame.addr(), found);
    found
}

/// Returns the function that contains an address of a frame, by a question to the loader.
fn look(frame: *mut c_void) -> Option<Function> {
    // SAFETY: all zero is a valid `Dl_info`, which `dladdr` fills in.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `dladdr` takes any address. The address in a frame is the one to which a call
    // returns, which may be the first after the function. The call itself lies before it.
    let known = unsafe { libc::dladdr(frame.wrapping_byte_sub(1), &raw mut info) } != 0;
    if !known || info.dli_sname.is_null() {
        return None;
    }
    // SAFETY: a C string of the object that contains the frame's address. That object is loaded,
    // since the frame is on this thread's stack. [`KNOWN`] keeps the string only until an object is
    // unloaded.
    Some((info.dli_saddr.addr(), unsafe { CStr::from_ptr(info.dli_sname) }.to_bytes()))
}
