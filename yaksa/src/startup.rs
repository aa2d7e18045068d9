//! Beginning and end. Both are counted: the library runs from the first start to the end that matches it.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ddtc::internal::process::{self, Mutex};

use crate::abi::{Result, export, require};
use crate::{info, received, table};

static STARTS: AtomicU64 = AtomicU64::new(0);

/// Held by whoever starts or ends: what the last end takes with it is gone before another start is told that the library runs.
static TURN: Mutex<()> = Mutex::new(());

/// Whether it was said that GPU buffers are not for this library.
static SAID: AtomicBool = AtomicBool::new(false);

/// Whether the library runs.
#[inline]
pub(crate) fn running() -> Result<()> {
    require(STARTS.load(Ordering::Acquire) > 0)
}

/// Runtimes that give out device memory.
const GPUS: [&str; 3] = ["libcuda.so", "libamdhip64.so", "libze_loader.so"];

/// The GPU runtime that this process has loaded, if there is one.
fn gpu() -> Option<&'static str> {
    unsafe extern "C" fn look(object: *mut libc::dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
        // SAFETY: `found` is the place below, and the loader's record is valid during the call.
        let (name, found) = unsafe { ((*object).dlpi_name, &mut *found.cast::<Option<&'static str>>()) };
        if name.is_null() {
            return 0;
        }
        // SAFETY: the loader's names are C strings.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        let file = name.rsplit(|&b| b == b'/').next().unwrap_or(name);
        *found = found.or_else(|| GPUS.into_iter().find(|gpu| file.starts_with(gpu.as_bytes())));
        0
    }
    let mut found: Option<&'static str> = None;
    // SAFETY: the callback takes that place, and is called only during this call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    found
}

export! {
    fn yaksa_init(hints: *mut c_void) {
        info::usable(hints)?;
        let before = {
            let _turn = TURN.lock();
            STARTS.fetch_add(1, Ordering::AcqRel)
        };
        if before == 0
            && let Some(gpu) = gpu()
            && !SAID.swap(true, Ordering::Relaxed)
        {
            let text = format!(
                "ddtc (libyaksa.so.0): {gpu} is loaded, but GPU buffers are not supported: they must not be passed to MPI\n"
            );
            // Nobody to tell that there is nobody to tell.
            let _ = process::to_stderr(text.as_bytes());
        }
        Ok(())
    }

    fn yaksa_finalize() {
        let turn = TURN.lock();
        let ended = STARTS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
        require(ended.is_ok())?;
        let gone = (ended == Ok(1)).then(|| (table::emptied(), received::emptied()));
        drop(turn);
        // Outside of the turn: there may be many.
        drop(gone);
        Ok(())
    }
}
