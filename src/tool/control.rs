//! Control variables: the configuration of later commits, and the destination of the report.

use std::collections::HashSet;

use super::{Kind, MODES, SWITCHES, TARGETS, Value, invalid, item, ready, report};
use crate::engine::{Config, Mode};
use crate::error::{Error, ErrorClass, Result};
use crate::object::Handle;
use crate::object::runtime;
use crate::object::table::Table;
use crate::process::Mutex;
use crate::target::Level;

/// A control variable. Every control variable may be written at any time, and a write concerns only
/// this process.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// Name of the variable, unique among control variables.
    pub name: &'static str,
    /// Description of what the variable controls.
    pub description: &'static str,
    /// Type of the variable.
    pub kind: Kind,
    /// Index in [`super::ENUMERATIONS`] of the names of its values; none if they have no names.
    pub enumeration: Option<usize>,
    /// Whether the variable is meant for tuning instead of for every user.
    pub tuning: bool,
    setting: Setting,
}

#[derive(Clone, Copy, Debug)]
enum Setting {
    Mode,
    LazyThreshold,
    CacheCapacity,
    ArenaCapacity,
    Both,
    Check,
    Target,
    Report,
    Threads,
    ParallelBytes,
    StreamBytes,
}

const fn control(
    name: &'static str,
    setting: Setting,
    kind: Kind,
    enumeration: Option<usize>,
    tuning: bool,
    description: &'static str,
) -> Control {
    Control { name, description, kind, enumeration, tuning, setting }
}

/// All control variables.
pub const CONTROLS: [Control; 11] = [
    control(
        "ddtc_mode",
        Setting::Mode,
        Kind::Int,
        Some(MODES),
        false,
        "What a commit does: nothing, interpret, compile when used enough, compile. For later commits.",
    ),
    control(
        "ddtc_lazy_threshold",
        Setting::LazyThreshold,
        Kind::Uint64,
        None,
        true,
        "Bytes that one direction of a layout moves in mode lazy before it is compiled.",
    ),
    control(
        "ddtc_cache_capacity",
        Setting::CacheCapacity,
        Kind::Uint64,
        None,
        true,
        "Bytes of layouts, code and tables above which those that no committed type holds are dropped.",
    ),
    control(
        "ddtc_arena_capacity",
        Setting::ArenaCapacity,
        Kind::Uint64,
        None,
        true,
        "Maximum bytes of executable memory; when it is used up, layouts of new commits are interpreted.",
    ),
    control(
        "ddtc_both_directions",
        Setting::Both,
        Kind::Int,
        Some(SWITCHES),
        true,
        "Whether a commit compiles unpack, too, which is otherwise compiled at its first use.",
    ),
    control(
        "ddtc_check",
        Setting::Check,
        Kind::Int,
        Some(SWITCHES),
        false,
        "Whether every stage is verified and every pack and unpack compared with the definition of the type map.",
    ),
    control(
        "ddtc_target",
        Setting::Target,
        Kind::Int,
        Some(TARGETS),
        true,
        "CPU level of kernels; at most what this machine runs.",
    ),
    control(
        "ddtc_report",
        Setting::Report,
        Kind::Char(1024),
        None,
        false,
        "Where the report goes when it is written: nowhere if empty, - for standard error, else a file.",
    ),
    control(
        "ddtc_threads",
        Setting::Threads,
        Kind::Uint64,
        None,
        true,
        "Threads for one pack or unpack of ddtc_parallel_bytes or more; 1 never starts one. For later commits.",
    ),
    control(
        "ddtc_parallel_bytes",
        Setting::ParallelBytes,
        Kind::Uint64,
        None,
        true,
        "Packed bytes from which a call is split over threads. For later commits.",
    ),
    control(
        "ddtc_stream_bytes",
        Setting::StreamBytes,
        Kind::Uint64,
        None,
        true,
        "Packed bytes from which a pack stores past the caches; by default never. For later commits.",
    ),
];

const TAG: u8 = 0xd2;
static HANDLES: Table<usize> = Table::new(TAG);
static OPEN: Mutex<Option<HashSet<Handle>>> = Mutex::new(None);

/// Allocates a handle of the control variable with index `index` (`MPI_T_cvar_handle_alloc`).
///
/// # Errors
/// Classes `ToolNotInitialized` and `ToolInvalidIndex`; class `NoMem` if all handles are in use.
pub fn alloc_control(index: i32) -> Result<Handle> {
    const CALL: &str = "t_cvar_handle_alloc";
    ready(CALL)?;
    item(CALL, &CONTROLS, index)?;
    let handle = HANDLES.insert(|_| index as usize)?;
    OPEN.lock().get_or_insert_default().insert(handle);
    Ok(handle)
}

/// Frees a handle of a control variable (`MPI_T_cvar_handle_free`).
///
/// # Errors
/// The errors of [`control_of`].
pub fn free_control(handle: Handle) -> Result<()> {
    const CALL: &str = "t_cvar_handle_free";
    ready(CALL)?;
    HANDLES.remove(handle).ok_or_else(|| invalid(CALL, handle))?;
    OPEN.lock().get_or_insert_default().remove(&handle);
    Ok(())
}

pub(super) fn free_all() {
    for handle in OPEN.lock().take().into_iter().flatten() {
        HANDLES.remove(handle);
    }
}

/// Returns the control variable that a handle names.
///
/// # Errors
/// Class `ToolNotInitialized`; class `ToolInvalidHandle` if the handle names none or was freed.
pub fn control_of(operation: &'static str, handle: Handle) -> Result<&'static Control> {
    ready(operation)?;
    let index = HANDLES.get(handle).ok_or_else(|| invalid(operation, handle))?;
    CONTROLS.get(**index).ok_or_else(|| invalid(operation, handle))
}

/// Returns the current value of a control variable.
pub fn read_control(control: &Control) -> Value {
    let config = runtime::config();
    let index = |i: Option<usize>| Value::Int(i.map_or(-1, |i| i as i32));
    match control.setting {
        Setting::Mode => index(Mode::ALL.iter().position(|&m| m == config.mode)),
        Setting::Target => index(Level::ALL.iter().position(|&l| l == config.level)),
        Setting::LazyThreshold => Value::Unsigned(config.lazy_threshold),
        Setting::CacheCapacity => Value::Unsigned(config.cache_bytes as u64),
        Setting::ArenaCapacity => Value::Unsigned(config.arena_bytes as u64),
        Setting::Both => Value::Int(i32::from(config.both_directions)),
        Setting::Check => Value::Int(i32::from(config.check)),
        Setting::Report => Value::Text(report::destination()),
        Setting::Threads => Value::Unsigned(config.threads as u64),
        Setting::ParallelBytes => Value::Unsigned(config.parallel_bytes),
        Setting::StreamBytes => Value::Unsigned(config.stream_bytes),
    }
}

/// Sets the value of a control variable (`MPI_T_cvar_write`).
///
/// # Errors
/// Class `ToolInvalid` for a value of another type, or one that the variable cannot have. If there
/// is an error, nothing changes.
pub fn write_control(control: &Control, value: &Value) -> Result<()> {
    let refuse = |rule: &str| {
        let shown = match value {
            Value::Int(i) => i.to_string(),
            Value::Unsigned(u) => u.to_string(),
            Value::Double(d) => d.to_string(),
            Value::Text(t) => t.clone(),
        };
        Error::new(ErrorClass::ToolInvalid, "t_cvar_write", control.name, shown, rule.to_owned())
    };
    let set = |change: &dyn Fn(&mut Config)| {
        runtime::configure(|config| {
            change(config);
            Ok(())
        })
        .map_err(|error| refuse(error.rule()))
    };
    let fits = |n: u64| usize::try_from(n).ok().filter(|&n| isize::try_from(n).is_ok());
    let size = |n: u64| fits(n).ok_or_else(|| refuse("must fit in the address space"));
    // Each branch below checks the value for one variable before it changes anything. Modes, levels
    // and switches arrive as indices in their enumerations.
    match (control.setting, value) {
        (Setting::Report, Value::Text(to)) => {
            report::set_destination(to);
            Ok(())
        }
        (Setting::LazyThreshold, &Value::Unsigned(n)) => set(&|c| c.lazy_threshold = n),
        (Setting::ParallelBytes, &Value::Unsigned(n)) => set(&|c| c.parallel_bytes = n),
        (Setting::StreamBytes, &Value::Unsigned(n)) => set(&|c| c.stream_bytes = n),
        (Setting::Threads, &Value::Unsigned(n)) => {
            // A number that does not fit is refused like any other number that is too large.
            set(&|c| c.threads = usize::try_from(n).unwrap_or(usize::MAX))
        }
        (Setting::CacheCapacity, &Value::Unsigned(n)) => {
            let n = size(n)?;
            set(&|c| c.cache_bytes = n)
        }
        (Setting::ArenaCapacity, &Value::Unsigned(n)) => {
            let n = size(n)?;
            set(&|c| c.arena_bytes = n)
        }
        (setting, &Value::Int(i)) => {
            let index = usize::try_from(i).map_err(|_| refuse("must be a value of the enumeration"))?;
            let rule = "must be a value of the enumeration";
            match setting {
                Setting::Mode => {
                    let mode = *Mode::ALL.get(index).ok_or_else(|| refuse(rule))?;
                    set(&|c| c.mode = mode)
                }
                Setting::Target => {
                    let level = *Level::ALL.get(index).ok_or_else(|| refuse(rule))?;
                    set(&|c| c.level = level)
                }
                Setting::Both if index < 2 => set(&|c| c.both_directions = index == 1),
                Setting::Check if index < 2 => set(&|c| c.check = index == 1),
                _ => Err(refuse(rule)),
            }
        }
        _ => Err(refuse("must have the type of the variable")),
    }
}
