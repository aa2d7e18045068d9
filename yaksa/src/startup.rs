//! Beginning and end. Both are counted: the library runs from the first start to the end that matches it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ddtc::internal::process::{self, Mutex};

use crate::abi::{Result, export, require};
use crate::{info, received, table};

static STARTS: AtomicU64 = AtomicU64::new(0);

/// Held by whoever starts or ends: what the last end takes with it is gone before another start is told that the library runs.
static TURN: Mutex<()> = Mutex::new(());

/// Whether the first start has looked for what this library is not made for.
static LOOKED: AtomicBool = AtomicBool::new(false);

/// First and last series of MPICH, major and minor version, that this library is made for.
const MPICH: ((u32, u32), (u32, u32)) = ((4, 0), (5, 0));

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

/// Returns the version in the text by which MPICH names itself.
fn version(text: &str) -> Option<&str> {
    text.split_once("MPICH Version:")?.1.split_whitespace().next()
}

/// Says whether this library is made for a version of MPICH. It is not for a text that is not a version.
fn fits(version: &str) -> bool {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>());
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (MPICH.0..=MPICH.1).contains(&(major, minor)),
        _ => false,
    }
}

/// Returns the version of the MPICH in this process if this library is not made for it, and nothing for any other MPI library or none.
fn strange_mpich() -> Option<String> {
    /// Bytes that MPICH's `MPI_MAX_LIBRARY_VERSION_STRING` promises.
    const ROOM: usize = 8192;
    type Function = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
    // SAFETY: a C string. The function is found in whatever the process has loaded for all, or not at all.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"PMPI_Get_library_version".as_ptr()) };
    if address.is_null() {
        return None;
    }
    // SAFETY: every MPI library has this function with this type, and it may be called before the end of `MPI_Init`.
    let function = unsafe { std::mem::transmute::<*mut c_void, Function>(address) };
    let (mut text, mut length) = (vec![0_u8; ROOM], 0);
    // SAFETY: the room is as large as MPICH asks for, and larger than other MPI libraries do.
    if unsafe { function(text.as_mut_ptr().cast(), &raw mut length) } != 0 {
        return None;
    }
    text.truncate(usize::try_from(length).ok()?);
    let text = String::from_utf8_lossy(&text);
    version(&text).filter(|version| !fits(version)).map(str::to_owned)
}

/// Writes a line to standard error for each thing about this process that this library is not made for.
fn look() {
    let mut text = String::new();
    if let Some(version) = strange_mpich() {
        let ((first, _), (last, minor)) = MPICH;
        text += &format!(
            "ddtc (libyaksa.so.0): this is MPICH {version}, and this library is made for MPICH {first}.0 to {last}.{minor}: \
             use a newer version of ddtc, or MPICH's own yaksa\n"
        );
    }
    if let Some(gpu) = gpu() {
        text += &format!(
            "ddtc (libyaksa.so.0): {gpu} is loaded, but GPU buffers are not supported: they must not be passed to MPI\n"
        );
    }
    if !text.is_empty() {
        // If standard error is closed there is nobody to tell.
        let _ = process::to_stderr(text.as_bytes());
    }
}

export! {
    fn yaksa_init(hints: *mut c_void) {
        info::usable(hints)?;
        let before = {
            let _turn = TURN.lock();
            STARTS.fetch_add(1, Ordering::AcqRel)
        };
        if before == 0 && !LOOKED.swap(true, Ordering::Relaxed) {
            look();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mpich_is_known_by_its_version() {
        assert_eq!(version("MPICH Version:      5.0.1\nMPICH Release date: x\n"), Some("5.0.1"));
        assert_eq!(version("Open MPI v5.0.8"), None);
        for (version, fitting) in [
            ("4.0.2", true),
            ("4.3", true),
            ("5.0.1", true),
            ("5.0.0b1", true),
            ("5.1.0", false),
            ("3.4", false),
            ("unreleased", false),
        ] {
            assert_eq!(fits(version), fitting, "{version}");
        }
    }
}
