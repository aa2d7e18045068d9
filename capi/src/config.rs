//! Exports for the configuration, the version, the log hook, and the state of the MPI functions
//! that `ddtc_mpi.h` implements.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::fmt::Write;
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::time::Instant;

use ddtc::internal::engine::{Config, Mode};
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;
use ddtc::internal::object::runtime;
use ddtc::internal::process::{Mutex, Once, later, section};
use ddtc::internal::target::Level;
use tracing::field::{Field, Visit};
use tracing::span;

use crate::arguments::{Out, export, out};
use crate::handlers;

/// `ddtc_config` of ddtc.h. New fields are added only at the end, and `struct_size` tells which of
/// them the caller knows. The structure has no padding, so that its bytes can be copied.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CConfig {
    struct_size: usize,
    mode: c_int,
    target: c_int,
    both_directions: c_int,
    check: c_int,
    lazy_threshold: u64,
    cache_bytes: u64,
    arena_bytes: u64,
    threads: u64,
    parallel_bytes: u64,
    stream_bytes: u64,
}

/// The accepted sizes of the structure in bytes. The first is the size in earlier versions, where
/// the structure ends before the first field that a later version added. The second is the present
/// size.
const SIZES: [usize; 2] = [offset_of!(CConfig, stream_bytes), size_of::<CConfig>()];

/// Returns the index of `one` in `all`, or -1 if it is not there. The index is the value of the
/// corresponding constant in ddtc.h.
fn index<T: PartialEq>(all: &[T], one: &T) -> c_int {
    all.iter().position(|x| x == one).map_or(-1, |i| i as c_int)
}

/// Returns the entry of `all` whose constant in ddtc.h has the value `i`, or an error of class
/// `Arg` if there is no such constant.
fn pick<T: Copy>(argument: &'static str, all: &[T], i: c_int, rule: &'static str) -> Result<T> {
    let one = usize::try_from(i).ok().and_then(|i| all.get(i)).copied();
    one.ok_or_else(|| Error::new(ErrorClass::Arg, "configure", argument, i, rule))
}

/// Returns a configuration as the C structure of ddtc.h.
fn to_c(config: &Config) -> CConfig {
    CConfig {
        struct_size: size_of::<CConfig>(),
        mode: index(&Mode::ALL, &config.mode),
        target: index(&Level::ALL, &config.level),
        both_directions: c_int::from(config.both_directions),
        check: c_int::from(config.check),
        lazy_threshold: config.lazy_threshold,
        cache_bytes: config.cache_bytes as u64,
        arena_bytes: config.arena_bytes as u64,
        threads: config.threads as u64,
        parallel_bytes: config.parallel_bytes,
        stream_bytes: config.stream_bytes,
    }
}

/// Returns the address of the caller's structure and its number of bytes, which is one of
/// [`SIZES`].
///
/// # Errors
/// Class `Arg` if `config` is null or if its `struct_size` is not one of [`SIZES`].
///
/// # Safety
/// `config` must be null or point to a structure whose field `struct_size` is readable. The whole
/// structure must have at least as many readable bytes as this field says. For as long as the
/// result is used, these bytes must stay valid, and be writable if the result is written to.
unsafe fn sized(call: &'static str, config: *mut CConfig) -> Result<(Out<CConfig>, usize)> {
    // SAFETY: the caller promises that `config` is null or points at least to the field
    // `struct_size`, with which every version of the structure begins. Only this field is read
    // here.
    let (size, config) =
        unsafe { (out(call, "config", config.cast::<usize>())?.get(), out(call, "config", config)?) };
    if !SIZES.contains(&size) {
        let [earlier, all] = SIZES;
        let rule = format!("must be sizeof(ddtc_config): {all}, or {earlier} of an earlier version");
        return Err(Error::new(ErrorClass::Arg, call, "struct_size", size, rule));
    }
    Ok((config, size))
}

/// Returns a number of bytes that fits in an `isize`, or an error of class `Arg`.
fn bytes(argument: &'static str, n: u64) -> Result<usize> {
    usize::try_from(n)
        .ok()
        .filter(|&n| isize::try_from(n).is_ok())
        .ok_or_else(|| Error::new(ErrorClass::Arg, "configure", argument, n, "must fit in the address space"))
}

export! {
    fn ddtc_config_get(config: *mut CConfig) {
        let (place, size) = sized("config_get", config)?;
        place.set_start(&CConfig { struct_size: size, ..to_c(&runtime::config()) }, size);
        Ok(())
    }

    fn ddtc_configure(config: *const CConfig) {
        let (place, size) = sized("configure", config.cast_mut())?;
        Ok(runtime::configure(|config| {
            // The fields that the caller's version of the structure lacks keep their values.
            let new = place.get_start(to_c(config), size);
            config.mode = pick("mode", &Mode::ALL, new.mode, "must be a DDTC_MODE_ constant")?;
            config.level = pick("target", &Level::ALL, new.target, "must be a DDTC_TARGET_ constant")?;
            config.both_directions = new.both_directions != 0;
            config.check = new.check != 0;
            config.lazy_threshold = new.lazy_threshold;
            config.cache_bytes = bytes("cache_bytes", new.cache_bytes)?;
            config.arena_bytes = bytes("arena_bytes", new.arena_bytes)?;
            config.threads = usize::try_from(new.threads.max(1)).unwrap_or(usize::MAX);
            config.parallel_bytes = new.parallel_bytes;
            config.stream_bytes = new.stream_bytes;
            Ok(())
        })?)
    }

    fn ddtc_version(major: *mut c_int, minor: *mut c_int, patch: *mut c_int) {
        let parts = [
            (out("version", "major", major)?, env!("CARGO_PKG_VERSION_MAJOR")),
            (out("version", "minor", minor)?, env!("CARGO_PKG_VERSION_MINOR")),
            (out("version", "patch", patch)?, env!("CARGO_PKG_VERSION_PATCH")),
        ];
        for (place, text) in parts {
            place.set(text.parse().unwrap_or(0));
        }
        Ok(())
    }

    fn ddtc_set_log(log: Option<LogFunction>, context: *mut c_void, level: c_int) {
        let level = match level {
            // Without a function, there is nothing that the level could choose.
            _ if log.is_none() => tracing::Level::ERROR,
            1 => tracing::Level::ERROR,
            2 => tracing::Level::WARN,
            3 => tracing::Level::INFO,
            4 => tracing::Level::DEBUG,
            5 => tracing::Level::TRACE,
            _ => {
                let rule = "must be from DDTC_LOG_ERROR to DDTC_LOG_TRACE";
                return Err(Error::new(ErrorClass::Arg, "set_log", "level", level, rule).into());
            }
        };
        let hook = log.map(|function| Arc::new(Hook { function, context: context.expose_provenance(), level }));
        let old = std::mem::replace(&mut *HOOK.lock(), hook);
        drop(old);
        // `tracing` takes locks in the two calls below. A fork waits for the end of this section,
        // so that a child process does not inherit a lock that is held. This cannot deadlock,
        // because the calls reach only the subscriber `Log`, whose `enabled` calls nothing of the
        // program.
        let _section = section();
        // `Log` is the only subscriber that this copy of the library ever sets. Setting it again at
        // a later call fails and has no effect.
        let _ = tracing::subscriber::set_global_default(Log);
        tracing::callsite::rebuild_interest_cache();
        Ok(())
    }
}

/// Returns the name and version of the library as a static string (see `ddtc_version_string` in
/// ddtc.h).
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ddtc_version_string() -> *const c_char {
    concat!("ddtc ", env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The embedder's function for log lines: `ddtc_log_function` of ddtc.h.
type LogFunction = unsafe extern "C" fn(*mut c_void, c_int, *const c_char);

/// The embedder's log function, its context as a number, and the least urgent level that the
/// function receives.
struct Hook {
    function: LogFunction,
    context: usize,
    level: tracing::Level,
}

/// The log hook in force, or none while logging is off.
static HOOK: Mutex<Option<Arc<Hook>>> = Mutex::new(None);

/// Subscriber that passes each event to the embedder's log function as one line.
struct Log;

/// Text of an event: the message and its fields, separated by blanks.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let separator = if self.0.is_empty() { "" } else { " " };
        // Writing to a `String` cannot fail, so the result is ignored.
        let _ = match field.name() {
            "message" => write!(self.0, "{separator}{value:?}"),
            name => write!(self.0, "{separator}{name}={value:?}"),
        };
    }
}

/// Returns the log hook in force. The lock is released before the function returns.
fn hook() -> Option<Arc<Hook>> {
    HOOK.lock().clone()
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        hook().is_some_and(|h| *metadata.level() <= h.level)
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let Some(told) = hook() else { return };
        let level = match *event.metadata().level() {
            tracing::Level::ERROR => 1,
            tracing::Level::WARN => 2,
            tracing::Level::INFO => 3,
            tracing::Level::DEBUG => 4,
            tracing::Level::TRACE => 5,
        };
        let mut line = Line(String::new());
        event.record(&mut line);
        let Ok(line) = std::ffi::CString::new(line.0.replace('\0', " ")) else { return };
        // The log function may call the library, so it is not called while other threads, or its
        // own call, would wait for what this thread is making.
        later(move || {
            // An earlier line may have made the embedder replace the log function. If another
            // thread replaces it after this check, the old function is called once more, which
            // ddtc.h permits.
            let Some(hook) = hook().filter(|hook| Arc::ptr_eq(hook, &told)) else { return };
            // SAFETY: the embedder passed this function with this context to `ddtc_set_log`, to be
            // called from any thread that logs. `line` is a NUL-terminated string that lives until
            // after the call. `hook` released the lock, so the function may call the library.
            unsafe {
                (hook.function)(std::ptr::with_exposed_provenance_mut(hook.context), level, line.as_ptr());
            }
        });
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// State of the program: 0 before `MPI_Init`, 1 after it, 2 after `MPI_Finalize`. The functions of
/// `ddtc_mpi.h` are inline, so a value that all translation units share must be in the library.
static STATE: AtomicI32 = AtomicI32::new(0);

thread_local! {
    /// True if this thread called `MPI_Init`. `MPI_Is_thread_main` returns this value.
    static MAIN: Cell<bool> = const { Cell::new(false) };
}

fn no_such(which: c_int) -> Error {
    Error::new(ErrorClass::Arg, "mpi", "which", which, "must be a DDTC_MPI_ constant")
}

export! {
    fn ddtc_mpi_set(which: c_int, value: c_int) {
        match which {
            0 => handlers::set_returning(value != 0)?,
            1 => {
                STATE.store(value, Relaxed);
                if value == 1 {
                    MAIN.with(|main| main.set(true));
                }
            }
            _ => return Err(no_such(which).into()),
        }
        Ok(())
    }

    fn ddtc_mpi_get(which: c_int, value: *mut c_int) {
        let value = out("mpi", "value", value)?;
        value.set(match which {
            0 => c_int::from(handlers::returning()),
            1 => STATE.load(Relaxed),
            2 => c_int::from(MAIN.try_with(Cell::get).unwrap_or(false)),
            _ => return Err(no_such(which).into()),
        });
        Ok(())
    }
}

/// Returns the seconds since the first call of this function (see `ddtc_mpi_wtime` in ddtc.h).
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ddtc_mpi_wtime() -> f64 {
    static START: Once<Instant> = Once::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}
