//! MPI's tool information interface for ddtc: control variables, performance variables with
//! sessions, categories and enumerations.
//!
//! This is the model of MPI 5.0, section 15.3 ("MPI_T"), without C: a C interface adds buffers and
//! strings. It can be used before any other part of ddtc and from any thread, between calls of
//! [`init`] and [`finalize`], which are counted. There are no events.
//!
//! Invariants, which tests check: only variables of type [`Kind::Int`] have an enumeration, no
//! enumeration is empty, and names are unique and not empty. Variables have only types of the
//! standard's table.

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

/// Type of a variable. Of the types that the standard allows for variables, these are the ones that
/// ddtc uses.
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
    /// `MPI_CHAR`: a NUL-terminated string in a buffer of this many bytes.
    Char(usize),
}

impl Kind {
    /// Returns the number of elements of a value, which for a string is the size of its buffer
    /// including the NUL.
    pub fn count(self) -> usize {
        if let Kind::Char(n) = self { n } else { 1 }
    }
}

/// Value of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Value of a variable of type [`Kind::Int`].
    Int(i32),
    /// Value of a variable of type [`Kind::Uint64`] or [`Kind::UnsignedLongLong`].
    Unsigned(u64),
    /// Value of a variable of type [`Kind::Double`].
    Double(f64),
    /// Value of a variable of type [`Kind::Char`], without the NUL.
    Text(String),
}

/// Names for all values of an integer variable.
#[derive(Clone, Copy, Debug)]
pub struct Enumeration {
    /// Name of the enumeration, unique among all enumerations.
    pub name: &'static str,
    /// Names of the values 0, 1, and so on. They are unique within the enumeration.
    pub items: &'static [&'static str],
}

/// Index in [`ENUMERATIONS`] of the names of the modes.
pub(crate) const MODES: usize = 0;
/// Index in [`ENUMERATIONS`] of the names of the CPU levels.
pub(crate) const TARGETS: usize = 1;
/// Index in [`ENUMERATIONS`] of the values of switches.
pub(crate) const SWITCHES: usize = 2;

/// All enumerations. The values are the indices in `Mode::ALL` and in `Level::ALL`, and 0 and 1 for
/// a switch.
pub const ENUMERATIONS: [Enumeration; 3] = [
    Enumeration { name: "ddtc_modes", items: &["off", "interpret", "lazy", "commit"] },
    Enumeration { name: "ddtc_targets", items: &["baseline", "avx2", "avx512", "neon"] },
    Enumeration { name: "ddtc_switches", items: &["no", "yes"] },
];

// The names in `ENUMERATIONS` are written out because it is a constant. Their numbers are compared
// with those of the modes and levels here, and a test compares the names themselves.
const _: () = assert!(ENUMERATIONS[MODES].items.len() == Mode::ALL.len());
const _: () = assert!(ENUMERATIONS[TARGETS].items.len() == Level::ALL.len());

/// Number of calls of [`init`] that have no matching [`finalize`] yet.
static OPEN: Mutex<u64> = Mutex::new(0);

/// Initializes the tool interface (`MPI_T_init_thread`). This may be done several times.
pub fn init() {
    *OPEN.lock() += 1;
}

/// Ends one initialization (`MPI_T_finalize`). The call that ends the last one frees all sessions
/// and handles.
///
/// # Errors
/// Class `ToolNotInitialized` if there is no matching call of [`init`].
pub fn finalize() -> Result<()> {
    let mut open = OPEN.lock();
    *open = open.checked_sub(1).ok_or_else(|| closed("t_finalize"))?;
    // Free everything while the lock is held, so that handles of a later `init` are not freed with
    // these.
    if *open == 0 {
        control::free_all();
        performance::free_all();
    }
    Ok(())
}

/// Returns without an error if the tool interface is initialized.
///
/// # Errors
/// Class `ToolNotInitialized` outside of [`init`] and [`finalize`].
pub fn ready(operation: &'static str) -> Result<()> {
    if *OPEN.lock() == 0 { Err(closed(operation)) } else { Ok(()) }
}

fn closed(operation: &'static str) -> Error {
    let rule = "the tool interface is not initialized";
    Error::new(ErrorClass::ToolNotInitialized, operation, "", "", rule)
}

/// Returns the entry of `all` with the index `index`.
///
/// # Errors
/// Class `ToolInvalidIndex` if there is no entry with this index.
pub fn item<'a, T>(operation: &'static str, all: &'a [T], index: i32) -> Result<&'a T> {
    usize::try_from(index).ok().and_then(|i| all.get(i)).ok_or_else(|| {
        let rule = format!("must be from 0 to {}", all.len() as i64 - 1);
        Error::new(ErrorClass::ToolInvalidIndex, operation, "index", index, rule)
    })
}

fn invalid(operation: &'static str, handle: impl std::fmt::Display) -> Error {
    let rule = "must be a handle that was not freed";
    Error::new(ErrorClass::ToolInvalidHandle, operation, "handle", handle, rule)
}

#[cfg(test)]
mod tests;
