//! Counters of the conversions that were made for the program, and of the types that are bypassed.
//! The counters of refused staging buffers and of bypassed types are always updated. All others are
//! updated only if a report or a record is requested, those of messages also while conversions are
//! checked or shown to a profiler. The module `report` writes the counters out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ddtc::internal::committed::Committed;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc::internal::process::{Guard, Lazy, Mutex};
use ddtc_hosts::policy::Class;

use crate::relative::relative;
use crate::settings::settings;
use crate::slow_path::{COUNT, watched_for};

/// Counter of events or bytes in this process.
pub(crate) struct Counter(AtomicU64);

impl Counter {
    const fn new() -> Counter {
        Counter(AtomicU64::new(0))
    }

    /// Adds 1 to the counter, and returns its value before the addition.
    pub(crate) fn add(&self) -> u64 {
        self.0.fetch_add(1, Relaxed)
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn more(&self, by: u64) {
        self.0.fetch_add(by, Relaxed);
    }
}

/// Counter of the program's calls that have succeeded and in which at least one buffer was
/// converted.
pub(crate) static CALLS_CONVERTED: Counter = Counter::new();
/// Counter of messages that compiled code has packed. It is updated only while conversions are
/// counted, checked or shown to a profiler.
pub(crate) static MESSAGES_PACKED: Counter = Counter::new();
/// Counter of messages that compiled code has unpacked. It is updated under the same conditions as
/// [`MESSAGES_PACKED`].
pub(crate) static MESSAGES_UNPACKED: Counter = Counter::new();
/// Counter of failed requests for a staging buffer, which fail because of the limit on staging
/// buffers or for lack of memory. A message that needs a staging buffer and does not get it is
/// bypassed.
pub(crate) static OVER_STAGING_LIMIT: Counter = Counter::new();
/// Counter of types that are bypassed for one of three reasons: the type could not be decoded or
/// compiled, it could not be given an attribute, or the MPI library was found to copy other bytes
/// than those of the type map.
pub(crate) static TYPES_BYPASSED: Counter = Counter::new();

/// Counter of types that are bypassed because the MPI library was found to copy other bytes than
/// those of the type map. If that is found when the type is decoded, [`TYPES_BYPASSED`] counts the
/// type too. If it is found by a later pack, only this counter counts the type.
pub(crate) static TYPES_MISPLACED: Counter = Counter::new();

/// Counters of the pieces of requests that compiled code has packed or unpacked in Open MPI's
/// convertor hook, for each direction.
pub(crate) static HOOK_PIECES: [Counter; 2] = [const { Counter::new() }; 2];
/// Counters of the bytes of the pieces that [`HOOK_PIECES`] counts, for each direction.
pub(crate) static HOOK_BYTES: [Counter; 2] = [const { Counter::new() }; 2];

/// Counts a piece of a request that compiled code has packed or unpacked in Open MPI's convertor
/// hook. `uses` are the counts of the request's type. Does nothing unless a report or a record is
/// requested.
#[inline]
pub(crate) fn inside(uses: &Uses, direction: Direction, bytes: u64) {
    if watched_for(COUNT) {
        let d = direction as usize;
        HOOK_PIECES[d].more(1);
        HOOK_BYTES[d].more(bytes);
        uses.inside[d].fetch_add(bytes, Relaxed);
    }
}

/// Counter of the bytes that compiled code has copied from buffer to buffer in Open MPI's convertor
/// hook.
pub(crate) static HOOK_BYTES_COPIED: Counter = Counter::new();

/// Counts a copy of `bytes` bytes from buffer to buffer in Open MPI's convertor hook. Does nothing
/// unless a report or a record is requested.
pub(crate) fn copied_inside(bytes: u64) {
    if watched_for(COUNT) {
        HOOK_BYTES_COPIED.more(bytes);
    }
}

/// Counts of the conversions of one type for each direction, since the counts were last added to
/// the type's [`Row`].
pub(crate) struct Uses {
    calls: [AtomicU64; 2],
    bytes: [AtomicU64; 2],
    nanos: [AtomicU64; 2],
    /// Bytes of the type that compiled code has packed or unpacked in Open MPI's convertor hook.
    inside: [AtomicU64; 2],
}

impl Uses {
    pub(crate) const fn new() -> Uses {
        Uses {
            calls: [const { AtomicU64::new(0) }; 2],
            bytes: [const { AtomicU64::new(0) }; 2],
            nanos: [const { AtomicU64::new(0) }; 2],
            inside: [const { AtomicU64::new(0) }; 2],
        }
    }

    pub(crate) fn reset(&self) {
        self.all().for_each(|n| n.store(0, Relaxed));
    }

    fn all(&self) -> impl Iterator<Item = &AtomicU64> {
        self.calls.iter().chain(&self.bytes).chain(&self.nanos).chain(&self.inside)
    }

    /// Counts a call that packed or unpacked `bytes` bytes in `nanos` nanoseconds.
    pub(crate) fn count(&self, direction: Direction, bytes: u64, nanos: u64) {
        let d = direction as usize;
        self.calls[d].fetch_add(1, Relaxed);
        self.bytes[d].fetch_add(bytes, Relaxed);
        self.nanos[d].fetch_add(nanos, Relaxed);
    }

    /// Adds the counts to the type's [`Row`] and then sets them to 0.
    pub(crate) fn fold(&self, committed: &Committed) {
        if self.all().all(|n| n.load(Relaxed) == 0) {
            return;
        }
        let mut rows = rows();
        let row = rows.row(committed);
        for d in Direction::BOTH {
            let i = d as usize;
            row.calls[i] += self.calls[i].swap(0, Relaxed);
            row.bytes[i] += self.bytes[i].swap(0, Relaxed);
            row.nanos[i] += self.nanos[i].swap(0, Relaxed);
            row.inside[i] += self.inside[i].swap(0, Relaxed);
            row.schedule[i] = committed.schedule(d);
        }
    }
}

/// Counts of one datatype of the program. Types with equal trees of constructors share a row of the
/// report.
pub(crate) struct Row {
    pub(crate) datatype: Datatype,
    /// True if the displacements of the program's type are absolute addresses. `datatype` is then
    /// the type of the same layout whose smallest displacement is 0 (see `relative`).
    pub(crate) absolute: bool,
    pub(crate) class: Class,
    /// Hash of the layout ([`Committed::near_hash`]).
    pub(crate) layout: u64,
    pub(crate) commits: u64,
    pub(crate) calls: [u64; 2],
    pub(crate) bytes: [u64; 2],
    pub(crate) nanos: [u64; 2],
    /// Bytes of the type that compiled code has packed or unpacked in Open MPI's convertor hook,
    /// for each direction.
    pub(crate) inside: [u64; 2],
    pub(crate) schedule: [String; 2],
}

/// Maximum number of types that have a [`Row`] of their own. All further types share one row, which
/// is included in the totals of the report.
const MAX_ROWS: usize = 4096;

/// Rows of all types of the program.
#[derive(Default)]
pub(crate) struct Rows {
    rows: HashMap<Datatype, Row>,
    order: Vec<Datatype>,
    /// Row that all types without a row of their own share.
    rest: Option<Row>,
}

impl Rows {
    fn row(&mut self, committed: &Committed) -> &mut Row {
        let relative = relative(committed.datatype());
        let t = relative.as_ref().unwrap_or(committed.datatype());
        let new = |t: &Datatype| Row {
            datatype: t.clone(),
            absolute: relative.is_some(),
            class: Class::from_nest(committed.nest()),
            layout: committed.near_hash(),
            commits: 0,
            calls: [0; 2],
            bytes: [0; 2],
            nanos: [0; 2],
            inside: [0; 2],
            schedule: [String::new(), String::new()],
        };
        if !self.rows.contains_key(t) {
            if self.rows.len() >= MAX_ROWS {
                return self.rest.get_or_insert_with(|| new(t));
            }
            self.order.push(t.clone());
        }
        self.rows.entry(t.clone()).or_insert_with(|| new(t))
    }

    /// Returns the row that all types without a row of their own share, or `None` if all types have
    /// one.
    pub(crate) fn rest(&self) -> Option<&Row> {
        self.rest.as_ref()
    }

    /// Returns the rows that each count one type, in the order in which the rows were made.
    pub(crate) fn of_types(&self) -> impl Iterator<Item = &Row> {
        self.order.iter().filter_map(|t| self.rows.get(t))
    }
}

static ROWS: Lazy<Mutex<Rows>> = Lazy::new(Mutex::default);
/// Lines of the report about types that are bypassed, each with the reason. There are at most 16
/// lines.
pub(crate) static REFUSALS: Mutex<Vec<String>> = Mutex::new(Vec::new());

pub(crate) fn rows() -> Guard<'static, Rows> {
    ROWS.lock()
}

/// Counts a pack or unpack in the row of its type. Used for operations that the program may
/// complete after it has freed the type. At that time the entry of the type may already be used for
/// another type.
pub(crate) fn count_in_row(committed: &Committed, direction: Direction, bytes: u64, nanos: u64) {
    let mut rows = rows();
    let (row, d) = (rows.row(committed), direction as usize);
    row.calls[d] += 1;
    row.bytes[d] += bytes;
    row.nanos[d] += nanos;
    if row.schedule[d].is_empty() {
        row.schedule[d] = committed.schedule(direction);
    }
}

/// Counts, in the row of a type, that the type was decoded at its commit or at a later use.
pub(crate) fn adopted(committed: &Committed) {
    if settings().counting() {
        rows().row(committed).commits += 1;
    }
}

/// Records a line for the report about a type that is bypassed because of `error`.
pub(crate) fn refused(error: &ddtc::Error) {
    name(|| error.to_string());
}

/// Counts a type that is bypassed because the MPI library was found to copy other bytes than those
/// of the type map. Records a line about the type for the report, with `why`, the difference that
/// was found.
pub(crate) fn bypassed_for_map(t: &Datatype, why: &str) {
    TYPES_MISPLACED.add();
    name(|| format!("{why}: {}", short(&t.to_string())));
}

/// Adds a line about a bypassed type to [`REFUSALS`], unless there are 16 lines already or neither
/// a report nor a record is requested.
fn name(what: impl FnOnce() -> String) {
    if settings().counting() {
        let mut refusals = REFUSALS.lock();
        if refusals.len() < 16 {
            refusals.push(what());
        }
    }
}

/// Returns the text, shortened to 160 characters and "..." if it is longer than that.
pub(crate) fn short(text: &str) -> String {
    const MAX_CHARS: usize = 160;
    match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}
