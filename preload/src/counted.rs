//! Counts what was done for the program, only while a report or a record asks for it. `report` writes it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ddtc::committed::Committed;
use ddtc::datatype::Datatype;
use ddtc::kind::Direction;
use ddtc::process::{Guard, Lazy, Mutex};
use ddtc_hosts::policy::Class;

use crate::relative::relative;
use crate::settings::settings;
use crate::slow_path::{COUNT, watched_for};

/// A number of events of this process.
pub(crate) struct Counter(AtomicU64);

impl Counter {
    const fn new() -> Counter {
        Counter(AtomicU64::new(0))
    }

    /// One more; the number before it.
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

/// Calls of the program that succeeded and of which something was converted.
pub(crate) static CALLS_CONVERTED: Counter = Counter::new();
/// Staging buffers packed and unpacked, while they are counted.
pub(crate) static MESSAGES_PACKED: Counter = Counter::new();
pub(crate) static MESSAGES_UNPACKED: Counter = Counter::new();
/// Messages bypassed because the limit on the memory for staging buffers was reached.
pub(crate) static OVER_STAGING_LIMIT: Counter = Counter::new();
/// Types that are never converted, because they could not be decoded, compiled or given an
/// attribute.
pub(crate) static TYPES_BYPASSED: Counter = Counter::new();
/// Those of [`TYPES_BYPASSED`] whose bytes the MPI library does not move as their definition says.
pub(crate) static TYPES_MISPLACED: Counter = Counter::new();

/// Pieces of requests that compiled code moved inside the MPI library, and their bytes, by
/// direction.
pub(crate) static HOOK_PIECES: [Counter; 2] = [const { Counter::new() }; 2];
pub(crate) static HOOK_BYTES: [Counter; 2] = [const { Counter::new() }; 2];
/// Bytes that compiled code copied from buffer to buffer inside the MPI library.
pub(crate) static HOOK_BYTES_COPIED: Counter = Counter::new();

/// Counts a piece of a request of a type, while anything is counted.
#[inline]
pub(crate) fn inside(uses: &Uses, direction: Direction, bytes: u64) {
    if watched_for(COUNT) {
        let d = direction as usize;
        HOOK_PIECES[d].more(1);
        HOOK_BYTES[d].more(bytes);
        uses.inside[d].fetch_add(bytes, Relaxed);
    }
}

/// Counts bytes that were copied from buffer to buffer inside the MPI library, while anything is
/// counted.
pub(crate) fn copied_inside(bytes: u64) {
    if watched_for(COUNT) {
        HOOK_BYTES_COPIED.more(bytes);
    }
}

/// Uses of one type, per direction.
pub(crate) struct Uses {
    calls: [AtomicU64; 2],
    bytes: [AtomicU64; 2],
    nanos: [AtomicU64; 2],
    /// Bytes that moved inside the host.
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

    /// Counts a call.
    pub(crate) fn count(&self, direction: Direction, bytes: u64, nanos: u64) {
        let d = direction as usize;
        self.calls[d].fetch_add(1, Relaxed);
        self.bytes[d].fetch_add(bytes, Relaxed);
        self.nanos[d].fetch_add(nanos, Relaxed);
    }

    /// Moves the counts to the row of the type.
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

/// One datatype of the program, by its tree.
pub(crate) struct Row {
    pub(crate) datatype: Datatype,
    /// Of absolute addresses: the datatype is one of that layout, from 0 up.
    pub(crate) absolute: bool,
    pub(crate) class: Class,
    /// The hash of its layout.
    pub(crate) layout: u64,
    pub(crate) commits: u64,
    pub(crate) calls: [u64; 2],
    pub(crate) bytes: [u64; 2],
    pub(crate) nanos: [u64; 2],
    /// Bytes that moved inside the host.
    pub(crate) inside: [u64; 2],
    pub(crate) schedule: [String; 2],
}

/// Rows kept; the types of a program that makes more are counted in the totals alone.
const MOST_ROWS: usize = 4096;

#[derive(Default)]
pub(crate) struct Rows {
    rows: HashMap<Datatype, Row>,
    order: Vec<Datatype>,
    /// Where uses of types without a row go.
    rest: Option<Row>,
}

impl Rows {
    fn row(&mut self, committed: &Committed) -> &mut Row {
        let relative = relative(committed.datatype());
        let t = relative.as_ref().unwrap_or(committed.datatype());
        let new = |t: &Datatype| Row {
            datatype: t.clone(),
            absolute: relative.is_some(),
            class: Class::of(committed.nest()),
            layout: committed.near_hash(),
            commits: 0,
            calls: [0; 2],
            bytes: [0; 2],
            nanos: [0; 2],
            inside: [0; 2],
            schedule: [String::new(), String::new()],
        };
        if !self.rows.contains_key(t) {
            if self.rows.len() >= MOST_ROWS {
                return self.rest.get_or_insert_with(|| new(t));
            }
            self.order.push(t.clone());
        }
        self.rows.entry(t.clone()).or_insert_with(|| new(t))
    }

    /// Returns the row of the uses of types without a row.
    pub(crate) fn rest(&self) -> Option<&Row> {
        self.rest.as_ref()
    }

    /// Returns those of one type each.
    pub(crate) fn of_types(&self) -> impl Iterator<Item = &Row> {
        self.order.iter().filter_map(|t| self.rows.get(t))
    }
}

static ROWS: Lazy<Mutex<Rows>> = Lazy::new(Mutex::default);
pub(crate) static REFUSALS: Mutex<Vec<String>> = Mutex::new(Vec::new());

pub(crate) fn rows() -> Guard<'static, Rows> {
    ROWS.lock()
}

/// Counts a pack or unpack in the row of its type. Used for operations that the program may
/// complete after it has freed the type, when the type's entry may already be another type's.
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

/// A type was committed or first met.
pub(crate) fn adopted(committed: &Committed) {
    if settings().counting() {
        rows().row(committed).commits += 1;
    }
}

/// A type is never converted.
pub(crate) fn refused(error: &ddtc::Error) {
    name(|| error.to_string());
}

/// A type is never converted, because the MPI library does not move it as its definition says.
pub(crate) fn bypassed_for_map(t: &Datatype, why: &str) {
    TYPES_MISPLACED.add();
    name(|| format!("{why}: {}", short(&t.to_string())));
}

/// Keeps why a type is never converted, for the first 16 types.
fn name(what: impl FnOnce() -> String) {
    if settings().counting() {
        let mut refusals = REFUSALS.lock();
        if refusals.len() < 16 {
            refusals.push(what());
        }
    }
}

/// Returns a line's worth of a text.
pub(crate) fn short(text: &str) -> String {
    const MOST: usize = 160;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}
