//! The cache of layouts, which looks up a datatype first by its structural hash and then by its
//! normal nest.
//!
//! The first level answers "has this constructor tree been seen before?" without lowering the tree.
//! The second level finds equal layouts that were built differently. Target and mode belong to the
//! engine that owns the cache, so neither is part of the key. The leaf operation is part of the
//! key, since the nest depends on it. Hashes only select candidates: the trees and nests themselves
//! are compared, so a collision of hashes costs time and cannot return the wrong layout.
//!
//! The cache also holds three other tables:
//!
//! * pairs of layouts, for copies from one layout to another. The key of a pair is the addresses of
//!   both layouts, and the pair does not keep the layouts alive;
//! * code by the shape of its plan. Layouts that differ only in the constants, tables and addresses
//!   in their contexts share code;
//! * numbers of bytes moved by layouts that differ only in distances of 64 KiB or more. A type of
//!   absolute addresses gets a new layout whenever its objects are allocated at other places. If
//!   the earlier layouts moved many bytes, the next layout will probably be used often too.
//!
//! A capacity in bytes bounds the size. When it is exceeded, the least recently used layouts and
//! pairs that nothing else holds are dropped. Layouts that committed types hold are not dropped. A
//! layout can also hold another layout, whose instances are the iterations of one of its loops or
//! tables (`Part::Iterations`); the held layout is not dropped either.

mod layout_map;
mod pairs;
mod totals;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use crate::code::kernel::Code;
use crate::datatype::Datatype;
use crate::kind::{Direction, Operation};
use crate::layout::{CompiledLayout, FusedCopy, PlacedLayout};
use crate::nest::{LoopNest, Normal};
use crate::plan::Shape;
use crate::process::{Guard, Mutex};

pub use layout_map::Cached;
use layout_map::State;

/// Maximum number of shapes whose code is kept for sharing. The code of one shape has about 1 KiB.
const MAX_SHAPES: usize = 1024;

/// Number of counters for bytes moved by layouts that differ only in distances of 64 KiB or more.
///
/// Layouts whose hashes select the same counter are treated as if they differed only in such
/// distances. If they do not, the only effect is that a layout is compiled earlier.
const NEAR_SLOTS: usize = 256;

/// Numbers of hits, misses and evictions since the cache was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Look-ups that were answered by the structural hash, and commits for which the caller already
    /// had the layout.
    pub type_hits: u64,
    /// Look-ups that found a layout by its normal nest. Either the structural hash of a datatype
    /// had found nothing, or the look-up was for the iterations of a loop or table, for which only
    /// a nest exists.
    pub nest_hits: u64,
    /// Look-ups that found nothing and inserted a new layout.
    pub misses: u64,
    /// Layouts and pairs of layouts that were dropped because of the capacity, or because a compile
    /// had failed with class `NoMem`.
    pub evictions: u64,
}

/// The two-level cache of one engine.
#[derive(Debug)]
pub struct Cache {
    state: Mutex<State>,
    /// Code by the shape of its plan. Later kernels of that shape share it.
    shapes: Mutex<HashMap<Shape, Code, Xxh3DefaultBuilder>>,
    /// Bytes moved by layouts that differ only in distances of 64 KiB or more. The hash modulo
    /// [`NEAR_SLOTS`] selects an entry, which has one counter per direction.
    near: Box<[[AtomicU64; 2]]>,
    capacity: usize,
}

impl Cache {
    /// Returns an empty cache with a capacity of about `capacity` bytes. Layouts that committed
    /// types hold count towards this number, but are kept even if together they exceed it.
    pub fn new(capacity: usize) -> Cache {
        let near = (0..NEAR_SLOTS).map(|_| Default::default()).collect();
        Cache { state: Mutex::default(), shapes: Mutex::default(), near, capacity }
    }

    fn state(&self) -> Guard<'_, State> {
        // Every update leaves the maps consistent at each step, so the state is still usable if a
        // thread panicked while it held the lock.
        self.state.lock()
    }

    /// Looks up the layout of a datatype that equals `t`, under `operation`, by its structural
    /// hash. Returns none if no such datatype is known.
    pub fn by_type<L: Cached>(&self, t: &Datatype, operation: Operation) -> Option<PlacedLayout<L>> {
        let mut state = self.state();
        let (map, totals) = L::layouts(&mut state);
        map.by_type(totals, t, operation)
    }

    /// Counts a hit of the first level on `layout`, for a caller that already has the layout and
    /// does not look it up.
    pub fn found<L: Cached>(&self, layout: &Arc<CompiledLayout<L>>) {
        let mut state = self.state();
        let (map, totals) = L::layouts(&mut state);
        map.found(totals, layout);
    }

    /// Returns the layout of a nest that equals `nest`, under `operation`, and makes the layout if
    /// there is none. If `t` is given, later calls of [`Cache::by_type`] with an equal datatype
    /// find the layout.
    pub fn by_nest<L: Cached>(
        &self,
        t: Option<&Datatype>,
        nest: LoopNest<Normal, L>,
        operation: Operation,
        origin: i64,
    ) -> PlacedLayout<L> {
        let mut state = self.state();
        let (map, totals) = L::layouts(&mut state);
        let placed = map.by_nest(totals, t, nest, operation, origin);
        state.evict(self.capacity);
        placed
    }

    /// Drops all code that is kept for sharing, and all layouts and pairs that nothing else holds.
    /// The engine calls this method when a compile has failed with class `NoMem`, for example
    /// because executable memory has run out.
    ///
    /// A layout may hold another layout of this cache, whose instances are the iterations of one of
    /// its loops or tables (`Part::Iterations`). The held layout is not dropped by this call, even
    /// if the layout that holds it is. The next call of this method, or the next eviction, can drop
    /// it.
    pub fn clear(&self) {
        self.shapes().clear();
        let mut state = self.state();
        state.searched = 0;
        state.evict(0);
    }

    /// Updates the charged size of `layout` after it got a kernel, a part or its list of segments,
    /// and evicts other layouts if the capacity is now exceeded.
    pub fn update_charge<L: Cached>(&self, layout: &Arc<CompiledLayout<L>>) {
        let mut state = self.state();
        let (map, totals) = L::layouts(&mut state);
        map.update_charge(totals, layout);
        state.evict(self.capacity);
    }

    /// Returns the fused copy from the first of `layouts` to the second, if it is known.
    pub fn fused_copy<L: Cached>(&self, layouts: [&Arc<CompiledLayout<L>>; 2]) -> Option<Arc<FusedCopy<L>>> {
        let mut state = self.state();
        let (pairs, totals) = L::pairs(&mut state);
        pairs.get(totals, layouts)
    }

    /// Inserts `fused` for the pair of `layouts` and returns it. If another thread has inserted a
    /// fused copy for this pair in the meantime, returns the fused copy of that thread. The pair
    /// does not keep the layouts alive.
    pub fn insert_fused_copy<L: Cached>(
        &self,
        layouts: [&Arc<CompiledLayout<L>>; 2],
        fused: FusedCopy<L>,
    ) -> Arc<FusedCopy<L>> {
        let mut state = self.state();
        let (pairs, totals) = L::pairs(&mut state);
        let fused = pairs.insert(totals, layouts, fused);
        state.evict(self.capacity);
        fused
    }

    /// Updates the charged size of the pair of `layouts` after the pair got its kernel, and evicts
    /// layouts and pairs if the capacity is now exceeded.
    pub fn update_fused_copy_charge<L: Cached>(&self, layouts: [&Arc<CompiledLayout<L>>; 2]) {
        let mut state = self.state();
        let (pairs, totals) = L::pairs(&mut state);
        pairs.update_charge(totals, layouts);
        state.evict(self.capacity);
    }

    /// Counts `bytes` bytes that a layout with this [`near_hash`](LoopNest::near_hash) moved in
    /// `direction`. Returns the number of bytes that all layouts of the same counter have moved so
    /// far, including these `bytes` bytes and those of layouts that have been evicted.
    pub fn moved_near(&self, near_hash: u64, direction: Direction, bytes: u64) -> u64 {
        let slot = &self.near[near_hash as usize % NEAR_SLOTS][direction as usize];
        slot.fetch_add(bytes, Relaxed).saturating_add(bytes)
    }

    /// Returns code that serves every plan of `shape`, if such code is kept.
    pub fn code(&self, shape: &Shape) -> Option<Code> {
        self.shapes().get(shape).cloned()
    }

    /// Keeps `code` so that later kernels of `shape` share it, unless the cache already has code
    /// for `MAX_SHAPES` shapes.
    pub fn share(&self, shape: Shape, code: Code) {
        let mut shapes = self.shapes();
        // There are few shapes, since a shape is a nesting of loops around calls of micro-kernels.
        // The bound is for programs that generate datatypes of many forms.
        if shapes.len() < MAX_SHAPES {
            shapes.insert(shape, code);
        }
    }

    fn shapes(&self) -> Guard<'_, HashMap<Shape, Code, Xxh3DefaultBuilder>> {
        self.shapes.lock()
    }

    /// Returns the numbers of hits, misses and evictions since the cache was made.
    pub fn counters(&self) -> CacheCounters {
        self.state().totals.counters
    }

    /// Returns the charged bytes of the layouts and pairs that the cache holds.
    pub fn bytes(&self) -> usize {
        self.state().totals.bytes
    }

    /// Returns the number of layouts that the cache holds, without the pairs.
    pub fn layouts(&self) -> usize {
        self.state().layouts()
    }
}
