//! The cache of layouts: first by the structural hash of a datatype, then by its normal nest.
//!
//! The first level answers "have I seen this constructor tree?" without lowering it; the second finds equal layouts that were
//! built differently. Target and mode belong to the engine that owns the cache, so neither is part of the key; the leaf operation is, since
//! the nest depends on it. Hashes only select: trees and nests are compared, so a collision costs time and never a wrong byte.
//!
//! Beside them pairs of layouts, for copies from the one to the other: by the addresses of both, which are held weakly. And code by the shape of its plan: layouts that differ only in what a context holds share code.
//!
//! And bytes moved by layouts that have all but far distances in common: types of absolute addresses are of another layout wherever their objects lie, and
//! what the last ones moved says that the next one will be used too.
//!
//! When the cache holds more bytes than its capacity, the least recently used layouts that no
//! committed type holds are dropped, down to three quarters of the capacity. What committed types
//! hold counts, but is never dropped.

mod pairs;
mod shelf;
mod totals;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use crate::code::kernel::Code;
use crate::datatype::Datatype;
use crate::kind::{Direction, Operation};
use crate::layout::{CompiledLayout, Joint, PlacedLayout};
use crate::nest::{LoopNest, Normal};
use crate::plan::Shape;
use crate::process::{Guard, Mutex};

pub use shelf::Cached;
use shelf::State;

/// Most shapes whose code is kept for sharing (about 1 KiB each).
const MAX_SHAPES: usize = 1024;

/// Slots of layouts that have all but far distances in common: those of one slot are taken for one another, which makes a compile early, and nothing else.
const NEAR_SLOTS: usize = 256;

/// Counts what the cache did since it was made.
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
    /// Bytes moved by layouts that are one but for far distances, by their hash, a direction each.
    near: Box<[[AtomicU64; 2]]>,
    capacity: usize,
}

impl Cache {
    /// Returns a cache that drops layouts when it holds more than `capacity` bytes.
    pub fn new(capacity: usize) -> Cache {
        let near = (0..NEAR_SLOTS).map(|_| Default::default()).collect();
        Cache { state: Mutex::default(), shapes: Mutex::default(), near, capacity }
    }

    fn state(&self) -> Guard<'_, State> {
        // Every update leaves the maps consistent at each step, so a panicking holder has broken nothing.
        self.state.lock()
    }

    /// Returns the layout of an equal datatype seen before under `operation`.
    pub fn by_type<L: Cached>(&self, t: &Datatype, operation: Operation) -> Option<PlacedLayout<L>> {
        let mut state = self.state();
        let (shelf, totals) = L::shelf(&mut state);
        shelf.by_type(totals, t, operation)
    }

    /// Counts a look-up that was answered by `layout` without asking for its datatype.
    pub fn found<L: Cached>(&self, layout: &Arc<CompiledLayout<L>>) {
        let mut state = self.state();
        let (shelf, totals) = L::shelf(&mut state);
        shelf.found(totals, layout);
    }

    /// Returns the layout of an equal nest under `operation`, made if there is none; remembers that `t`, if there is one, leads to it.
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
    pub fn settle<L: Cached>(&self, layout: &Arc<CompiledLayout<L>>) {
        let mut state = self.state();
        let (shelf, totals) = L::shelf(&mut state);
        shelf.settle(totals, layout);
        state.evict(self.capacity);
    }

    /// Returns the copy from the first of `layouts` to the second, if it is known.
    pub fn joint<L: Cached>(&self, layouts: [&Arc<CompiledLayout<L>>; 2]) -> Option<Arc<Joint<L>>> {
        let mut state = self.state();
        let (pairs, totals) = L::pairs(&mut state);
        pairs.get(totals, layouts)
    }

    /// Remembers `joint` for `layouts`, or returns what somebody else did. It keeps neither of them.
    pub fn keep_joint<L: Cached>(
        &self,
        layouts: [&Arc<CompiledLayout<L>>; 2],
        joint: Joint<L>,
    ) -> Arc<Joint<L>> {
        let mut state = self.state();
        let (pairs, totals) = L::pairs(&mut state);
        let joint = pairs.insert(totals, layouts, joint);
        state.evict(self.capacity);
        joint
    }

    /// As [`Cache::settle`], after the pair of `layouts` got its kernel.
    pub fn settle_joint<L: Cached>(&self, layouts: [&Arc<CompiledLayout<L>>; 2]) {
        let mut state = self.state();
        let (pairs, totals) = L::pairs(&mut state);
        pairs.settle(totals, layouts);
        state.evict(self.capacity);
    }

    /// Counts `bytes` bytes of a layout of that [`near_hash`](LoopNest::near_hash); returns those of all such layouts, evicted ones too.
    pub fn moved_near(&self, near_hash: u64, direction: Direction, bytes: u64) -> u64 {
        let slot = &self.near[near_hash as usize % NEAR_SLOTS][direction as usize];
        slot.fetch_add(bytes, Relaxed).saturating_add(bytes)
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

    /// Returns the bytes of the layouts held.
    pub fn bytes(&self) -> usize {
        self.state().totals.bytes
    }

    /// Returns the number of layouts held.
    pub fn layouts(&self) -> usize {
        self.state().layouts()
    }
}
