//! Where a thread stands: in a call of the program, or in the host's progress.

use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};

use ddtc::process::{Awaited, Mutex};

use crate::loader::loads;
use crate::scopes::behind;

/// Frames that are looked at.
const FRAMES: usize = 96;

/// The host's function that moves requests on.
fn progress() -> usize {
    static AT: Awaited<usize> = Awaited::new();
    *AT.get_or_init(|| behind("opal_progress").addr())
}

/// Whether a function of MPI is on the stack and the host's progress is not. What cannot be seen is no such place.
pub(crate) fn in_a_call_of_the_program() -> bool {
    is_in(|name| name.starts_with(b"PMPI_") || name.starts_with(b"MPI_"))
}

/// Whether a function of such a name is on the stack and the host's progress is not.
pub(crate) fn is_in(is_one: impl Fn(&[u8]) -> bool) -> bool {
    let progress = progress();
    let mut frames = [std::ptr::null_mut(); FRAMES];
    // SAFETY: an array with room for that many addresses.
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

/// Where a function begins, and its exported name.
type Function = (usize, &'static [u8]);

#[derive(Default)]
struct Known {
    unloads: u64,
    functions: HashMap<usize, Option<Function>>,
}

/// Functions of the frames that were looked at, by their addresses, as long as no object is unloaded: `dladdr` takes 10 us for one, and the same calls come again, eleven times
/// in Open MPI's own initialization.
static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
/// Frames that are remembered.
const MOST: usize = 1024;

/// The function that an address of a frame lies in.
fn function(frame: *mut c_void, unloads: u64) -> Option<Function> {
    if let Some(known) = KNOWN.lock().as_ref().filter(|known| known.unloads == unloads)
        && let Some(known) = known.functions.get(&frame.addr())
    {
        return *known;
    }
    // Not under the lock: it waits for who loads an object.
    let found = look(frame);
    let mut known = KNOWN.lock();
    let known = known.get_or_insert_default();
    if known.unloads != unloads || known.functions.len() >= MOST {
        *known = Known { unloads, functions: HashMap::new() };
    }
    known.functions.insert(frame.addr(), found);
    found
}

/// As [`function`], asked of the loader.
fn look(frame: *mut c_void) -> Option<Function> {
    // SAFETY: all zero is a valid Dl_info, which dladdr fills in.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: dladdr takes any address; the call lies before the address to which it returns.
    let known = unsafe { libc::dladdr(frame.wrapping_byte_sub(1), &raw mut info) } != 0;
    if !known || info.dli_sname.is_null() {
        return None;
    }
    // SAFETY: a C string of the object that the frame lies in. That object is loaded, since the
    // frame is on this thread's stack. [`KNOWN`] keeps the string only until an object is unloaded.
    Some((info.dli_saddr.addr(), unsafe { CStr::from_ptr(info.dli_sname) }.to_bytes()))
}
