//! The cache of layouts: first by the structural hash of a datatype, then by its normal nest.
//!
//! The first level answers "have I seen this constructor tree?" without lowering it; the second finds equal layouts that were
//! built differently. Target and mode belong to the engine that owns the cache, so neither is part of the key; the leaf operation is, since
//! the nest depends on it. Hashes only select: trees and nests are compared, so a collision costs time and never a wrong byte.
//!
//! Beside them pairs of layouts, for copies from the one to the other: by the addresses of both, which are held weakly. And code by the shape of its plan: layouts that differ only in what a context holds share code.
//!
//! A byte capacity bounds what is kept beyond need: past it the least recently used layouts that no committed type holds are
//! dropped. What committed types hold is never dropped.

mod pairs;
mod shelf;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use crate::column::Column;
use crate::datatype::Datatype;
use crate::kernel::{Code, Kernel};
use crate::kind::{Direction, Operation};
use crate::nest::{Byte, Leaf, LoopNest, Normal};
use crate::plan::Shape;
use crate::process::{Awaited, Guard, Mutex, Once};
use crate::segments::Runs;

pub use pairs::{Joint, JointNest};
pub use shelf::Cached;
use shelf::State;

/// Most shapes whose code is kept for sharing (about 1 KiB each).
const MAX_SHAPES: usize = 1024;

/// How calls of one direction are served.
#[derive(Clone, Debug)]
pub enum Tier {
    /// Compiled.
    Kernel {
        /// The code.
        kernel: Arc<Kernel>,
        /// One line on what was chosen.
        schedule: Arc<str>,
    },
    /// Walked, because the schedule refused the nest (by design) or a stage failed (a fallback).
    Walk {
        /// Why.
        reason: Arc<str>,
        /// Whether this is a fallback: something failed that should not.
        fallback: bool,
    },
}

impl Tier {
    /// The kernel, if there is one.
    pub fn kernel(&self) -> Option<&Arc<Kernel>> {
        match self {
            Tier::Kernel { kernel, .. } => Some(kernel),
            Tier::Walk { .. } => None,
        }
    }
}

/// What serves a part of a layout: whole iterations of a loop, or whole rows, that a range of the packed stream has.
#[derive(Debug)]
pub enum Part {
    /// The layout itself, an iteration as an instance.
    Own,
    /// The layout of one iteration, which is its instance.
    Iterations(Arc<Layout>),
    /// Rows of blocks as equal pieces of so many bytes, at these displacements: the table that the layout's plan has.
    Pieces(Column, u64),
    /// Rows of blocks sorted by length within buckets, as the layout's plan has them: user offsets, packed offsets, lengths.
    Buckets([Column; 3]),
    /// Nothing but the walker.
    Walked,
}

impl Part {
    /// The columns that it reads.
    fn columns(&self) -> &[Column] {
        match self {
            Part::Pieces(column, _) => std::slice::from_ref(column),
            Part::Buckets(columns) => columns,
            Part::Own | Part::Iterations(_) | Part::Walked => &[],
        }
    }
}

/// A part while nobody has asked for it often enough to be made, and after.
#[derive(Debug, Default)]
pub struct PartSlot {
    /// Packed bytes that were walked in it.
    moved: AtomicU64,
    part: Awaited<Part>,
}

impl PartSlot {
    /// The part; the call that reaches `threshold` bytes makes it by `make`, and others need not wait.
    pub fn get(&self, bytes: u64, threshold: u64, make: impl FnOnce() -> Part) -> Option<&Part> {
        if let Some(part) = self.part.get() {
            return Some(part);
        }
        reaches(&self.moved, bytes, threshold).then(|| self.part.get_or_init(make))
    }
}

/// Adds `bytes` to `moved`; whether that is what reaches `threshold`. A threshold of 0 is reached by the first byte.
fn reaches(moved: &AtomicU64, bytes: u64, threshold: u64) -> bool {
    let before = moved.fetch_add(bytes, Relaxed);
    before < threshold.max(1) && before.saturating_add(bytes) >= threshold
}

/// Most nodes of a nest whose parts are served apart: a slot takes a node's room once more.
const MAX_PARTS: usize = 4096;

/// A normal nest at origin 0 under one leaf operation, with its kernels: what equal layouts share.
#[derive(Debug)]
pub struct Layout<L = Byte> {
    nest: LoopNest<Normal, L>,
    operation: Operation,
    served: [Awaited<Tier>; 2],
    /// Bytes moved so far in mode `Lazy`, per direction.
    moved: [AtomicU64; 2],
    /// A slot for each node, once a range was asked for.
    parts: Once<Box<[PartSlot]>>,
    /// Where segments begin, once they were asked for.
    runs: Once<Box<Runs>>,
    /// Hash of the nest, kept because hashing 10^6 rows takes a millisecond.
    hash: u64,
    /// Bytes of the nest.
    bytes: usize,
}

impl<L: Leaf> Layout<L> {
    fn new(nest: LoopNest<Normal, L>, operation: Operation, hash: u64) -> Layout<L> {
        let bytes = nest.bytes_stored() + size_of::<Layout<L>>();
        let (served, moved, parts, runs) = Default::default();
        Layout { nest, operation, served, moved, parts, runs, hash, bytes }
    }

    /// The canonical nest.
    pub fn nest(&self) -> &LoopNest<Normal, L> {
        &self.nest
    }

    /// The hash of its nest.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// What happens to its leaves.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// How calls of `direction` are served, once that is decided.
    pub fn served(&self, direction: Direction) -> Option<&Tier> {
        self.served[direction as usize].get()
    }

    /// The same, deciding it with `compile` if nobody has: concurrent callers wait and get the one result. A child does not wait for a
    /// compile of its parent's.
    pub fn serve(&self, direction: Direction, compile: impl FnOnce() -> Tier) -> &Tier {
        self.served[direction as usize].get_or_init(compile)
    }

    /// Counts a call of `bytes` bytes; whether it is the one that reaches `threshold`. Exactly one is: the others need not wait.
    pub(crate) fn moves(&self, direction: Direction, bytes: u64, threshold: u64) -> bool {
        reaches(&self.moved[direction as usize], bytes, threshold)
    }

    /// The same for a part of a range of another layout, where that has moved enough to gain by a kernel: whether it is the first call at all, or reaches
    /// `threshold`. The layout's own calls count in the same number, so either may be the one that reaches it.
    pub(crate) fn begins(&self, direction: Direction, bytes: u64, threshold: u64) -> bool {
        let before = self.moved[direction as usize].fetch_add(bytes, Relaxed);
        before == 0 || (before < threshold && before.saturating_add(bytes) >= threshold)
    }

    /// Its kernels, as far as there are any.
    pub fn kernels(&self) -> impl Iterator<Item = &Arc<Kernel>> + Clone {
        Direction::BOTH.into_iter().filter_map(|d| self.served(d)?.kernel())
    }

    /// Bytes of nest, code, tables, and what serves parts. Layouts of iterations are layouts of their own.
    fn bytes(&self) -> usize {
        let kernels = self.kernels().map(|k| k.code().len() + k.context_bytes()).sum::<usize>();
        let slots = self.parts.get().map_or(&[][..], |slots| slots);
        let parts = slots.iter().filter_map(|slot| slot.part.get());
        let own = |column: &&Column| !self.kernels().any(|kernel| kernel.shared(column).is_some());
        let columns = parts.flat_map(Part::columns).filter(own).map(Column::bytes).sum::<usize>();
        let runs = self.runs.get().map_or(0, |runs| runs.bytes_stored());
        self.bytes + kernels + size_of_val(slots) + columns + runs
    }
}

impl Layout {
    /// The slot of the part that node `i` is; none in nests of very many nodes.
    pub fn part(&self, i: usize) -> Option<&PartSlot> {
        let n = self.nest.nodes().len();
        let slots = || (0..n).map(|_| PartSlot::default()).collect();
        (n <= MAX_PARTS).then(|| self.parts.get_or_init(slots))?.get(i)
    }

    /// The part that node `i` is, if somebody has made it.
    pub fn made_part(&self, i: usize) -> Option<&Part> {
        self.parts.get()?.get(i)?.part.get()
    }

    /// Where its segments begin, if [`Layout::keep_runs`] was told.
    #[inline]
    pub(crate) fn runs(&self) -> Option<&Runs> {
        self.runs.get().map(Box::as_ref)
    }

    /// Keeps where its segments begin, unless somebody else has.
    pub(crate) fn keep_runs(&self, runs: Runs) -> &Runs {
        let runs = Box::new(runs);
        self.runs.get_or_init(|| runs)
    }
}

/// A layout and the user offset in bytes of its datatype.
#[derive(Debug)]
pub struct PlacedLayout<L = Byte> {
    /// What is shared.
    pub layout: Arc<Layout<L>>,
    /// What is the datatype's own.
    pub origin: i64,
}

impl<L> Clone for PlacedLayout<L> {
    fn clone(&self) -> Self {
        PlacedLayout { layout: Arc::clone(&self.layout), origin: self.origin }
    }
}

/// What the cache did, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Look-ups answered by the structural hash.
    pub type_hits: u64,
    /// Look-ups answered by the normal nest.
    pub nest_hits: u64,
    /// Look-ups that made a new layout.
    pub misses: u64,
    /// Layouts dropped because of the capacity.
    pub evictions: u64,
}

/// The two-level cache of one engine.
#[derive(Debug)]
pub struct Cache {
    state: Mutex<State>,
    /// Code by the shape of its plan, which later kernels of that shape share.
    shapes: Mutex<HashMap<Shape, Code, Xxh3DefaultBuilder>>,
    capacity: usize,
}

impl Cache {
    /// A cache that keeps at most about `capacity` bytes beyond what committed types hold.
    pub fn new(capacity: usize) -> Cache {
        Cache { state: Mutex::default(), shapes: Mutex::default(), capacity }
    }

    fn state(&self) -> Guard<'_, State> {
        // Every update leaves the maps consistent at each step, so a panicking holder has broken nothing.
        self.state.lock()
    }

    /// The layout of an equal datatype seen before under `operation`.
    pub fn by_type<L: Cached>(&self, t: &Datatype, operation: Operation) -> Option<PlacedLayout<L>> {
        let mut state = self.state();
        let (shelf, totals) = L::shelf(&mut state);
        shelf.by_type(totals, t, operation)
    }

    /// The layout of an equal nest under `operation`, made if there is none; remembers that `t`, if there is one, leads to it.
    pub fn by_nest<L: Cached>(
        &self,
        t: Option<&Datatype>,
        nest: LoopNest<Normal, L>,
        operation: Operation,
        origin: i64,
    ) -> PlacedLayout<L> {
        let mut state = self.state();
        let (shelf, totals) = L::shelf(&mut state);
        let placed = shelf.by_nest(totals, t, nest, operation, origin);
        state.evict(self.capacity);
        placed
    }

    /// Drops every layout that no committed type holds: executable memory has run out.
    pub fn clear(&self) {
        self.shapes().clear();
        let mut state = self.state();
        state.searched = 0;
        state.evict(0);
    }

    /// Brings the byte count up to date after `layout` got a kernel or a part, and drops what the capacity does not allow.
    pub fn settle<L: Cached>(&self, layout: &Arc<Layout<L>>) {
        let mut state = self.state();
        let (shelf, totals) = L::shelf(&mut state);
        shelf.settle(totals, layout);
        state.evict(self.capacity);
    }

    /// What copies from the first of `layouts` to the second, if that is known.
    pub fn joint<L: Cached>(&self, layouts: [&Arc<Layout<L>>; 2]) -> Option<Arc<Joint<L>>> {
        let mut state = self.state();
        let (pairs, totals) = L::pairs(&mut state);
        pairs.get(totals, layouts)
    }

    /// Remembers `joint` for `layouts`, or returns what somebody else did. It keeps neither of them.
    pub fn keep_joint<L: Cached>(&self, layouts: [&Arc<Layout<L>>; 2], joint: Joint<L>) -> Arc<Joint<L>> {
        let mut state = self.state();
        let (pairs, totals) = L::pairs(&mut state);
        let joint = pairs.insert(totals, layouts, joint);
        state.evict(self.capacity);
        joint
    }

    /// As [`Cache::settle`], after the pair of `layouts` got its kernel.
    pub fn settle_joint<L: Cached>(&self, layouts: [&Arc<Layout<L>>; 2]) {
        let mut state = self.state();
        let (pairs, totals) = L::pairs(&mut state);
        pairs.settle(totals, layouts);
        state.evict(self.capacity);
    }

    /// Code that serves every plan of `shape`.
    pub fn code(&self, shape: &Shape) -> Option<Code> {
        self.shapes().get(shape).cloned()
    }

    /// Lets later kernels of `shape` share `code`.
    pub fn share(&self, shape: Shape, code: Code) {
        let mut shapes = self.shapes();
        // Shapes are few: nesting times micro-kernels. The bound is for programs that generate datatypes.
        if shapes.len() < MAX_SHAPES {
            shapes.insert(shape, code);
        }
    }

    fn shapes(&self) -> Guard<'_, HashMap<Shape, Code, Xxh3DefaultBuilder>> {
        self.shapes.lock()
    }

    /// Counters since the cache was made.
    pub fn counters(&self) -> CacheCounters {
        self.state().totals.counters
    }

    /// Bytes of the layouts held.
    pub fn bytes(&self) -> usize {
        self.state().totals.bytes
    }

    /// Number of layouts held.
    pub fn layouts(&self) -> usize {
        self.state().layouts()
    }
}
