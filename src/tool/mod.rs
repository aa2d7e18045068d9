//! MPI's tool information interface over ddtc: control and performance variables, sessions, categories, enumerations.
//!
//! The model of MPI 5.0, 15.3 ("MPI_T"), free of C: a C surface adds buffers and strings. Usable
//! before anything else and from any thread; between [`init`] and [`finalize`], which are counted.
//! There are no events. Invariants, by test: enumerations only on integers, never empty, names
//! unique and not empty; variables only of the types of the standard's table.

mod category;
mod control;
mod performance;
mod report;

pub use category::{CATEGORIES, Category};
pub use control::{CONTROLS, Control, alloc_control, control_of, free_control, read_control, write_control};
pub use performance::{
    Class, PERFORMANCE, Performance, Target, alloc_performance, close_session, free_performance,
    open_session, performance_of, read_performance, read_reset_performance, reset_performance,
    start_performance, stop_performance, write_performance,
};
pub use report::{report, write_report};

use crate::engine::Mode;
use crate::error::{Error, ErrorClass, Result};
use crate::process::Mutex;
use crate::target::Level;

/// Type of a variable: those of the standard's table that ddtc uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `MPI_INT`.
    Int,
    /// `MPI_UINT64_T`.
    Uint64,
    /// `MPI_UNSIGNED_LONG_LONG`.
    UnsignedLongLong,
    /// `MPI_DOUBLE`.
    Double,
    /// `MPI_CHAR`: a NUL-terminated string in this many bytes.
    Char(usize),
}

impl Kind {
    /// Elements of a value, the NUL of a string included.
    pub fn count(self) -> usize {
        if let Kind::Char(n) = self { n } else { 1 }
    }
}

/// A value of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of [`Kind::Int`].
    Int(i32),
    /// Of [`Kind::Uint64`] and [`Kind::UnsignedLongLong`].
    Unsigned(u64),
    /// Of [`Kind::Double`].
    Double(f64),
    /// Of [`Kind::Char`], without NUL.
    Text(String),
}

/// A name for every value of an integer variable.
#[derive(Clone, Copy, Debug)]
pub struct Enumeration {
    /// Unique among enumerations.
    pub name: &'static str,
    /// Names of the values 0, 1, ...; unique in the enumeration.
    pub items: &'static [&'static str],
}

/// Index of the enumeration of modes.
pub(crate) const MODES: usize = 0;
/// Index of the enumeration of CPU levels.
pub(crate) const TARGETS: usize = 1;
/// Index of the enumeration of switches.
pub(crate) const SWITCHES: usize = 2;

/// All enumerations. Values are the constants of the configuration.
pub const ENUMERATIONS: [Enumeration; 3] = [
    Enumeration { name: "ddtc_modes", items: &["off", "interpret", "lazy", "commit"] },
    Enumeration { name: "ddtc_targets", items: &["baseline", "avx2", "avx512", "neon"] },
    Enumeration { name: "ddtc_switches", items: &["no", "yes"] },
];

// The items are spelled out because they are constants: they are the names that the values have elsewhere.
const _: () = assert!(ENUMERATIONS[MODES].items.len() == Mode::ALL.len());
const _: () = assert!(ENUMERATIONS[TARGETS].items.len() == Level::ALL.len());

/// Calls of `init` without their `finalize`.
static OPEN: Mutex<u64> = Mutex::new(0);

/// `MPI_T_init_thread`: any number of times.
pub fn init() {
    *OPEN.lock() += 1;
}

/// `MPI_T_finalize`: the last one frees all sessions and handles.
///
/// # Errors
/// Class `ToolNotInitialized` without an `init` for it.
pub fn finalize() -> Result<()> {
    let mut open = OPEN.lock();
    *open = open.checked_sub(1).ok_or_else(|| closed("t_finalize"))?;
    // Before the next `init`, whose handles are its own.
    if *open == 0 {
        control::free_all();
        performance::free_all();
    }
    Ok(())
}

/// Whether calls are possible.
///
/// # Errors
/// Class `ToolNotInitialized` outside `init` and `finalize`.
pub fn ready(operation: &'static str) -> Result<()> {
    if *OPEN.lock() == 0 { Err(closed(operation)) } else { Ok(()) }
}

fn closed(operation: &'static str) -> Error {
    let rule = "the tool interface is not initialized";
    Error::new(ErrorClass::ToolNotInitialized, operation, "", "", rule)
}

/// Returns an index that must be one of `all`.
///
/// # Errors
/// Class `ToolInvalidIndex`.
pub fn at<'a, T>(operation: &'static str, all: &'a [T], index: i32) -> Result<&'a T> {
    usize::try_from(index).ok().and_then(|i| all.get(i)).ok_or_else(|| {
        let rule = format!("must be from 0 to {}", all.len() as i64 - 1);
        Error::new(ErrorClass::ToolInvalidIndex, operation, "index", index, rule)
    })
}

fn invalid(operation: &'static str, handle: impl std::fmt::Display) -> Error {
    let rule = "does not name a handle, or was freed";
    Error::new(ErrorClass::ToolInvalidHandle, operation, "handle", handle, rule)
}

#[cfg(test)]
mod tests;
