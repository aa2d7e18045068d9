//! Performance variables, with their sessions and handles.
//!
//! A handle of a counter, aggregate or timer counts from zero, independently of other handles of
//! the variable, and advances only while it is started. A variable of class level is read as it is.
//! Pack and unpack calls are counted only while a session or a report is open: a session holds a
//! [`Counting`].

use std::collections::HashSet;

use super::{Kind, Value, invalid, item, ready};
use crate::calls::{self, Counting, Totals};
use crate::engine::Counters;
use crate::error::{Error, ErrorClass, Result};
use crate::kind::{Direction, Op, Operation};
use crate::object::table::{Found, Table};
use crate::object::{self, Handle, runtime};
use crate::process::Mutex;

/// Class of a performance variable. The discriminants are the values of the standard ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Class {
    /// Current utilization of a resource.
    Level = 2,
    /// Number of events.
    Counter = 7,
    /// Sum over events.
    Aggregate = 8,
    /// Sum of the times of events, in seconds.
    Timer = 9,
}

/// A performance variable.
#[derive(Clone, Copy, Debug)]
pub struct Performance {
    /// Name of the variable, unique within its class.
    pub name: &'static str,
    /// Description of what the variable measures.
    pub description: &'static str,
    /// Class of the variable.
    pub class: Class,
    raw: fn(&Snapshot) -> u64,
    /// Whether the variable may change when ddtc is preloaded under another MPI library, by the
    /// messages and the packing of the program. If false, the variable counts only uses of ddtc's
    /// own interface.
    pub of_messages: bool,
}

impl Performance {
    /// Returns the variable with `of_messages` set to false, for variables that never change when
    /// ddtc is preloaded under another MPI library.
    const fn of_its_own_calls(self) -> Performance {
        Performance { of_messages: false, ..self }
    }

    /// Returns the type of the variable: `MPI_DOUBLE` for seconds and `MPI_UNSIGNED_LONG_LONG`
    /// otherwise.
    pub fn kind(&self) -> Kind {
        if self.class == Class::Timer { Kind::Double } else { Kind::UnsignedLongLong }
    }

    /// Returns true if the variable is always active, so that it cannot be started, stopped,
    /// written or reset.
    pub fn is_continuous(&self) -> bool {
        self.class == Class::Level
    }

    /// Returns the value of the variable since the start of the process.
    pub fn total(&self) -> Value {
        self.show((self.raw)(&Snapshot::take()))
    }

    fn show(&self, raw: u64) -> Value {
        if self.class == Class::Timer { Value::Double(raw as f64 / 1e9) } else { Value::Unsigned(raw) }
    }
}

struct Snapshot {
    engine: Counters,
    calls: Totals,
    types: u64,
}

impl Snapshot {
    fn take() -> Snapshot {
        Snapshot { engine: runtime::counters(), calls: calls::totals(), types: object::live() }
    }
}

const fn variable(
    name: &'static str,
    class: Class,
    raw: fn(&Snapshot) -> u64,
    description: &'static str,
) -> Performance {
    Performance { name, description, class, raw, of_messages: true }
}

/// Returns the index in [`Totals`] of the counters for calls that pack to or unpack from
/// external32.
fn external32(direction: Direction) -> usize {
    crate::kind::Kind { direction, operation: Operation::External32 }.index()
}

/// Returns the index in [`Totals`] of the counters for reductions. All reduction operations share
/// these counters.
fn reductions() -> usize {
    let operation = Operation::Reduce(Op::Sum);
    crate::kind::Kind { direction: Direction::Unpack, operation }.index()
}

/// All performance variables.
pub const PERFORMANCE: [Performance; 25] = [
    variable("ddtc_commits", Class::Counter, |s| s.engine.commits, "Datatypes committed."),
    variable("ddtc_compiles", Class::Counter, |s| s.engine.compiles, "Kernels compiled."),
    variable("ddtc_compile_time", Class::Timer, |s| s.engine.compile_nanos, "Seconds spent compiling."),
    variable(
        "ddtc_refusals",
        Class::Counter,
        |s| s.engine.refusals,
        "Layouts that are interpreted because the schedule refuses them.",
    ),
    variable(
        "ddtc_fallbacks",
        Class::Counter,
        |s| s.engine.fallbacks,
        "Compiles that failed, so that the layout is interpreted.",
    ),
    variable("ddtc_mismatches", Class::Counter, |s| s.engine.mismatches, "Differences found in check mode."),
    variable(
        "ddtc_cache_hits",
        Class::Counter,
        |s| s.engine.cache.type_hits + s.engine.cache.nest_hits,
        "Commits for which the cache had the layout.",
    ),
    variable(
        "ddtc_cache_misses",
        Class::Counter,
        |s| s.engine.cache.misses,
        "Commits for which a new layout was made.",
    ),
    variable(
        "ddtc_cache_evictions",
        Class::Counter,
        |s| s.engine.cache.evictions,
        "Layouts that the cache dropped to free memory.",
    ),
    variable("ddtc_cache_bytes", Class::Level, |s| s.engine.cached_bytes, "Bytes that the cache holds."),
    variable(
        "ddtc_code_bytes",
        Class::Level,
        |s| s.engine.code_bytes,
        "Bytes of executable memory that count towards the limit, with those of dropped code whose segment is still mapped.",
    ),
    variable("ddtc_types", Class::Level, |s| s.types, "Derived datatypes that exist now.").of_its_own_calls(),
    variable("ddtc_pack_calls", Class::Counter, |s| s.calls.calls[0], "Calls that packed."),
    variable("ddtc_unpack_calls", Class::Counter, |s| s.calls.calls[1], "Calls that unpacked."),
    variable("ddtc_pack_bytes", Class::Aggregate, |s| s.calls.bytes[0], "Bytes packed."),
    variable("ddtc_unpack_bytes", Class::Aggregate, |s| s.calls.bytes[1], "Bytes unpacked."),
    variable(
        "ddtc_own_pages",
        Class::Counter,
        |s| s.engine.own_pages,
        "Kernels on pages of their own: the system refused a memfd.",
    ),
    variable(
        "ddtc_pack_external32_calls",
        Class::Counter,
        |s| s.calls.calls[external32(Direction::Pack)],
        "Calls that packed in external32.",
    )
    .of_its_own_calls(),
    variable(
        "ddtc_unpack_external32_calls",
        Class::Counter,
        |s| s.calls.calls[external32(Direction::Unpack)],
        "Calls that unpacked from external32.",
    )
    .of_its_own_calls(),
    variable(
        "ddtc_pack_external32_bytes",
        Class::Aggregate,
        |s| s.calls.bytes[external32(Direction::Pack)],
        "Bytes packed in external32.",
    )
    .of_its_own_calls(),
    variable(
        "ddtc_unpack_external32_bytes",
        Class::Aggregate,
        |s| s.calls.bytes[external32(Direction::Unpack)],
        "Bytes unpacked from external32.",
    )
    .of_its_own_calls(),
    variable(
        "ddtc_reduce_calls",
        Class::Counter,
        |s| s.calls.calls[reductions()],
        "Calls that combined values with those in user memory, by any operation.",
    )
    .of_its_own_calls(),
    variable(
        "ddtc_reduce_bytes",
        Class::Aggregate,
        |s| s.calls.bytes[reductions()],
        "Bytes combined with those in user memory.",
    )
    .of_its_own_calls(),
    variable(
        "ddtc_copy_calls",
        Class::Counter,
        |s| s.calls.copies,
        "Calls that copied from layout to layout, or combined there.",
    )
    .of_its_own_calls(),
    variable("ddtc_copy_bytes", Class::Aggregate, |s| s.calls.copied, "Bytes copied from layout to layout.")
        .of_its_own_calls(),
];

#[derive(Debug)]
struct Session {
    handles: Mutex<HashSet<Handle>>,
    _counting: Counting,
}

/// A handle of a performance variable: its session, the index of the variable, and what the handle
/// has measured.
#[derive(Debug)]
struct PvarHandle {
    session: Handle,
    index: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Amount that was measured before the handle was last started.
    sum: u64,
    /// Raw value of the variable when the handle was last started, if it is started now.
    since: Option<u64>,
}

impl State {
    fn value(&self, raw: u64) -> u64 {
        self.since.map_or(self.sum, |since| self.sum.wrapping_add(raw.wrapping_sub(since)))
    }
}

static SESSIONS: Table<Session> = Table::new(0xd3);
static HANDLES: Table<PvarHandle> = Table::new(0xd4);
static OPEN: Mutex<Option<HashSet<Handle>>> = Mutex::new(None);

/// Handles to which a start, stop or reset applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// One handle.
    One(Handle),
    /// All handles of the session that can be changed (`MPI_T_PVAR_ALL_HANDLES`).
    All,
}

/// Opens a session (`MPI_T_pvar_session_create`).
///
/// # Errors
/// Class `ToolNotInitialized`; class `NoMem` if all handles are in use.
pub fn open_session() -> Result<Handle> {
    ready("t_pvar_session_create")?;
    let session = SESSIONS.insert(|_| Session { handles: Mutex::default(), _counting: Counting::start() })?;
    OPEN.lock().get_or_insert_default().insert(session);
    Ok(session)
}

/// Closes a session and frees all its handles (`MPI_T_pvar_session_free`).
///
/// # Errors
/// Classes `ToolNotInitialized` and `ToolInvalidSession`.
pub fn close_session(session: Handle) -> Result<()> {
    const CALL: &str = "t_pvar_session_free";
    session_of(CALL, session)?;
    drop_session(session);
    OPEN.lock().get_or_insert_default().remove(&session);
    Ok(())
}

fn drop_session(session: Handle) {
    if let Some(session) = SESSIONS.remove(session) {
        for handle in session.handles.lock().drain() {
            HANDLES.remove(handle);
        }
    }
}

pub(super) fn free_all() {
    for session in OPEN.lock().take().into_iter().flatten() {
        drop_session(session);
    }
}

fn session_of(operation: &'static str, session: Handle) -> Result<Found<Session>> {
    ready(operation)?;
    SESSIONS.get(session).ok_or_else(|| {
        let rule = "must be a session that was not freed";
        Error::new(ErrorClass::ToolInvalidSession, operation, "session", session, rule)
    })
}

/// Returns what a handle has measured, with its session and the index of its variable. The handle
/// must belong to `session`.
///
/// # Errors
/// The errors of [`performance_of`].
fn pvar_handle(operation: &'static str, session: Handle, handle: Handle) -> Result<Found<PvarHandle>> {
    session_of(operation, session)?;
    HANDLES.get(handle).filter(|m| m.session == session).ok_or_else(|| invalid(operation, handle))
}

/// Allocates a handle of the performance variable with index `index` in a session
/// (`MPI_T_pvar_handle_alloc`).
///
/// # Errors
/// Classes `ToolNotInitialized`, `ToolInvalidSession` and `ToolInvalidIndex`; class `NoMem` if all
/// handles are in use.
pub fn alloc_performance(session: Handle, index: i32) -> Result<Handle> {
    const CALL: &str = "t_pvar_handle_alloc";
    let owner = session_of(CALL, session)?;
    item(CALL, &PERFORMANCE, index)?;
    let handle =
        HANDLES.insert(|_| PvarHandle { session, index: index as usize, state: Mutex::default() })?;
    owner.handles.lock().insert(handle);
    Ok(handle)
}

/// Frees a handle of a performance variable (`MPI_T_pvar_handle_free`).
///
/// # Errors
/// The errors of [`performance_of`].
pub fn free_performance(session: Handle, handle: Handle) -> Result<()> {
    const CALL: &str = "t_pvar_handle_free";
    pvar_handle(CALL, session, handle)?;
    HANDLES.remove(handle).ok_or_else(|| invalid(CALL, handle))?;
    session_of(CALL, session)?.handles.lock().remove(&handle);
    Ok(())
}

/// Returns the performance variable that a handle names.
///
/// # Errors
/// Classes `ToolNotInitialized` and `ToolInvalidSession`; class `ToolInvalidHandle` if the handle
/// names no variable, was freed, or belongs to another session.
pub fn performance_of(
    operation: &'static str,
    session: Handle,
    handle: Handle,
) -> Result<&'static Performance> {
    let pvar = pvar_handle(operation, session, handle)?;
    PERFORMANCE.get(pvar.index).ok_or_else(|| invalid(operation, handle))
}

/// Calls `change(state, raw value of the variable)` for one handle or for all handles of the
/// session. Of all handles, those of variables that are always active are left out.
///
/// # Errors
/// The errors of [`performance_of`]; class `class` for one handle of a variable that is always
/// active.
fn for_each_handle(
    operation: &'static str,
    session: Handle,
    target: Target,
    class: ErrorClass,
    change: impl Fn(&mut State, u64),
) -> Result<()> {
    let owner = session_of(operation, session)?;
    let handles = match target {
        Target::One(handle) => {
            let variable = performance_of(operation, session, handle)?;
            if variable.is_continuous() {
                let rule = "the variable is always active and cannot be changed";
                return Err(Error::new(class, operation, "handle", variable.name, rule));
            }
            vec![handle]
        }
        Target::All => owner.handles.lock().iter().copied().collect(),
    };
    let now = Snapshot::take();
    for handle in handles {
        if let (Some(pvar), Ok(variable)) = (HANDLES.get(handle), performance_of(operation, session, handle))
            && !variable.is_continuous()
        {
            change(&mut pvar.state.lock(), (variable.raw)(&now));
        }
    }
    Ok(())
}

/// Starts one handle or all (`MPI_T_pvar_start`). The measurement continues from its last value. A
/// handle that is started already does not change.
///
/// # Errors
/// The errors of [`performance_of`]; class `ToolNoStartStop` for one handle of a variable that is
/// always active.
pub fn start_performance(session: Handle, target: Target) -> Result<()> {
    for_each_handle("t_pvar_start", session, target, ErrorClass::ToolNoStartStop, |state, raw| {
        state.since = state.since.or(Some(raw));
    })
}

/// Stops one handle or all (`MPI_T_pvar_stop`). The values stay.
///
/// # Errors
/// The errors of [`start_performance`].
pub fn stop_performance(session: Handle, target: Target) -> Result<()> {
    for_each_handle("t_pvar_stop", session, target, ErrorClass::ToolNoStartStop, |state, raw| {
        state.sum = state.value(raw);
        state.since = None;
    })
}

/// Sets the values of one handle or all to zero, whether or not they are started
/// (`MPI_T_pvar_reset`).
///
/// # Errors
/// The errors of [`performance_of`]; class `ToolNoWrite` for one handle of a variable that is
/// always active.
pub fn reset_performance(session: Handle, target: Target) -> Result<()> {
    for_each_handle("t_pvar_reset", session, target, ErrorClass::ToolNoWrite, |state, raw| {
        *state = State { sum: 0, since: state.since.map(|_| raw) };
    })
}

/// Sets the value of a handle (`MPI_T_pvar_write`). The value of a timer is a number of seconds.
///
/// # Errors
/// The errors of [`reset_performance`]; class `ToolInvalid` for a value that is not of the
/// variable's type, and for seconds that are negative or not a number.
pub fn write_performance(session: Handle, handle: Handle, value: &Value) -> Result<()> {
    const CALL: &str = "t_pvar_write";
    let sum = match (performance_of(CALL, session, handle)?.kind(), value) {
        (Kind::UnsignedLongLong, &Value::Unsigned(n)) => n,
        (Kind::Double, &Value::Double(seconds)) if seconds >= 0.0 => (seconds * 1e9) as u64,
        _ => {
            let rule = "must be a value of the variable's type, not negative";
            return Err(Error::new(ErrorClass::ToolInvalid, CALL, "buf", format!("{value:?}"), rule));
        }
    };
    for_each_handle(CALL, session, Target::One(handle), ErrorClass::ToolNoWrite, |state, raw| {
        *state = State { sum, since: state.since.map(|_| raw) };
    })
}

/// Returns the value of a handle (`MPI_T_pvar_read`).
///
/// # Errors
/// The errors of [`performance_of`].
pub fn read_performance(session: Handle, handle: Handle) -> Result<Value> {
    const CALL: &str = "t_pvar_read";
    let variable = performance_of(CALL, session, handle)?;
    let raw = (variable.raw)(&Snapshot::take());
    if variable.is_continuous() {
        return Ok(variable.show(raw));
    }
    let pvar = pvar_handle(CALL, session, handle)?;
    let value = pvar.state.lock().value(raw);
    Ok(variable.show(value))
}

/// Returns the value of a handle and sets it to zero (`MPI_T_pvar_readreset`), without losing
/// events in between.
///
/// # Errors
/// The errors of [`reset_performance`].
pub fn read_reset_performance(session: Handle, handle: Handle) -> Result<Value> {
    const CALL: &str = "t_pvar_readreset";
    let variable = performance_of(CALL, session, handle)?;
    if variable.is_continuous() {
        let rule = "the variable is always active and cannot be changed";
        return Err(Error::new(ErrorClass::ToolNoWrite, CALL, "handle", variable.name, rule));
    }
    let pvar = pvar_handle(CALL, session, handle)?;
    let mut state = pvar.state.lock();
    let raw = (variable.raw)(&Snapshot::take());
    let value = state.value(raw);
    *state = State { sum: 0, since: state.since.map(|_| raw) };
    Ok(variable.show(value))
}
