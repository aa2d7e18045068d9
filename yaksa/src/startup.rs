//! Functions that start and end the library (`yaksa_init` and `yaksa_finalize`). A program may call
//! `yaksa_init` several times. The library runs until `yaksa_finalize` has succeeded as often as
//! `yaksa_init`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ddtc::internal::process::{self, Mutex};

use crate::abi::{Result, export, require};
use crate::{info, received, table};

/// Number of calls of `yaksa_init` without a matching call of `yaksa_finalize`. The library runs
/// while this number is greater than 0.
static STARTS: AtomicU64 = AtomicU64::new(0);

/// Lock that `yaksa_init` and `yaksa_finalize` hold while they change [`STARTS`]. The call of
/// `yaksa_finalize` that sets `STARTS` to 0 also removes all types from the table of handles and
/// from the cache of received types, while it still holds the lock. So when a later call of
/// `yaksa_init` returns, neither the table nor the cache has any of these types. The types
/// themselves are dropped after the lock has been released.
static TURN: Mutex<()> = Mutex::new(());

/// True once a call of `yaksa_init` in this process has begun to look for what this library does
/// not support: certain versions of MPICH, and any GPU runtime. Each process looks only once.
static LOOKED: AtomicBool = AtomicBool::new(false);

/// First and last release series of MPICH for which this library is made, as major and minor
/// version.
const MPICH: ((u32, u32), (u32, u32)) = ((4, 0), (5, 0));

/// Checks that the library runs. Fails with [`Code::Internal`](crate::abi::Code::Internal) if
/// `yaksa_init` has not been called, or if `yaksa_finalize` has succeeded as often as `yaksa_init`.
#[inline]
pub(crate) fn running() -> Result<()> {
    require(STARTS.load(Ordering::Acquire) > 0)
}

/// Beginnings of the file names of the GPU runtimes: libraries that allocate memory of a GPU.
const GPUS: [&str; 3] = ["libcuda.so", "libamdhip64.so", "libze_loader.so"];

/// Returns the name of a GPU runtime that this process has loaded; `None` if it has loaded none.
/// The name has no version: it is `libcuda.so` and not `libcuda.so.1`.
fn gpu() -> Option<&'static str> {
    unsafe extern "C" fn look(object: *mut libc::dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
        // SAFETY: `found` is the address of the variable `found` below, which nothing else accesses
        // during the call. `object` is a record of the loader that is valid during the call.
        let (name, found) = unsafe { ((*object).dlpi_name, &mut *found.cast::<Option<&'static str>>()) };
        if name.is_null() {
            return 0;
        }
        // SAFETY: the name is not null, and the loader's names are C strings that are valid during
        // the call.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        let file = name.rsplit(|&b| b == b'/').next().unwrap_or(name);
        *found = found.or_else(|| GPUS.into_iter().find(|gpu| file.starts_with(gpu.as_bytes())));
        0
    }
    let mut found: Option<&'static str> = None;
    // SAFETY: `look` has the type that the loader requires and does not unwind. It gets the address
    // of `found`, with the type that it expects, and is called only during this call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    found
}

/// Returns the version of MPICH in `text`, which is what `MPI_Get_library_version` has returned;
/// `None` if the text is that of another MPI library.
fn version(text: &str) -> Option<&str> {
    text.split_once("MPICH Version:")?.1.split_whitespace().next()
}

/// Returns true if this library supports the version `version` of MPICH. Returns false if it does
/// not, or if `version` does not begin with two numbers that a dot separates.
fn fits(version: &str) -> bool {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>());
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (MPICH.0..=MPICH.1).contains(&(major, minor)),
        _ => false,
    }
}

/// Returns the version of MPICH in this process if this library is not made for that version.
/// Returns `None` if the library is made for that version, or if the process has a different MPI
/// library or none.
fn strange_mpich() -> Option<String> {
    /// Size in bytes of the buffer for the text: `MPI_MAX_LIBRARY_VERSION_STRING` of MPICH.
    const ROOM: usize = 8192;
    type Function = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
    // SAFETY: `RTLD_DEFAULT` is a handle that `dlsym` accepts, and the name is a C string. `dlsym`
    // searches the objects that this process has loaded into its global scope.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"PMPI_Get_library_version".as_ptr()) };
    if address.is_null() {
        return None;
    }
    // SAFETY: the address is not null and is that of `PMPI_Get_library_version`, whose type the MPI
    // standard fixes (MPI 5.0, 9.1.1).
    let function = unsafe { std::mem::transmute::<*mut c_void, Function>(address) };
    let (mut text, mut length) = (vec![0_u8; ROOM], 0);
    // SAFETY: `text` has as many bytes as MPICH may write, and more than other MPI libraries write.
    // `length` is an `int` to write to. The function may be called before `MPI_Init` has returned.
    if unsafe { function(text.as_mut_ptr().cast(), &raw mut length) } != 0 {
        return None;
    }
    text.truncate(usize::try_from(length).ok()?);
    let text = String::from_utf8_lossy(&text);
    version(&text).filter(|version| !fits(version)).map(str::to_owned)
}

/// Looks for two things that this library does not support: a version of MPICH for which it is not
/// made, and a GPU runtime. Writes a line to standard error for each of them that this process has
/// loaded.
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
        // If standard error is closed, nobody can read the warnings, so a failure to write them is
        // ignored.
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
        // If this call has ended the library, `gone` holds all derived types whose handles the
        // program has not freed, and the types in the cache of `received.rs`. There may be many of
        // them, and dropping them takes long. So they are dropped only after the lock `TURN` is
        // released, and no other thread waits for the lock meanwhile.
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
