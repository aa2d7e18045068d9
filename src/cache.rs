//! The cache of layouts: first by the structural hash of a datatype, then by its normal nest.
//!
//! The first level answers "have I seen this constructor tree?" without lowering it; the second finds equal layouts that were
//! built differently. Target and mode belong to the engine that owns the cache, kinds to the [`Layout`], so neither is part of
//! the key. Hashes only select: trees and nests are compared, so a collision costs time and never a wrong byte.
//!
//! Beside it, code by the shape of its plan: layouts that differ only in what a context holds share code.
//!
//! A byte capacity bounds what is kept beyond need: past it the least recently used layouts that no committed type holds are
//! dropped. What committed types hold is never dropped.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use crate::column::Column;
use crate::datatype::Datatype;
use crate::kernel::{Code, Kernel};
use crate::kind::Direction;
use crate::nest::{LoopNest, Normal};
use crate::plan::Shape;
use crate::process::{Awaited, Guard, Mutex, Once};
use crate::segments::Runs;

/// Most shapes whose code is kept for sharing (about 1 KiB each).
const MAX_SHAPES: usize = 1024;

/// Most trees that are remembered for one layout. A program that describes its data by absolute addresses makes a new tree of a known
/// layout every time.
const MAX_KEYS: usize = 64;

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

/// A normal nest at origin 0 with its kernels: what equal layouts share.
#[derive(Debug)]
pub struct Layout {
    nest: LoopNest<Normal>,
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

impl Layout {
    fn new(nest: LoopNest<Normal>, hash: u64) -> Layout {
        let bytes = nest.bytes_stored() + size_of::<Layout>();
        let (served, moved, parts, runs) = Default::default();
        Layout { nest, served, moved, parts, runs, hash, bytes }
    }

    /// The canonical nest.
    pub fn nest(&self) -> &LoopNest<Normal> {
        &self.nest
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

    /// The slot of the part that node `i` is; none in nests of very many nodes.
    pub fn part(&self, i: usize) -> Option<&PartSlot> {
        let n = self.nest.nodes().len();
        let slots = || (0..n).map(|_| PartSlot::default()).collect();
        (n <= MAX_PARTS).then(|| self.parts.get_or_init(slots))?.get(i)
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

    /// Counts a call of `bytes` bytes; whether it is the one that reaches `threshold`. Exactly one is: the others need not wait.
    pub(crate) fn moves(&self, direction: Direction, bytes: u64, threshold: u64) -> bool {
        reaches(&self.moved[direction as usize], bytes, threshold)
    }

    /// Bytes of nest, code and tables.
    fn bytes(&self) -> usize {
        let kernels = Direction::BOTH.iter().filter_map(|&d| self.served(d)?.kernel());
        let runs = self.runs().map_or(0, Runs::bytes_stored);
        self.bytes + runs + kernels.map(|k| k.code().len() + k.context_bytes()).sum::<usize>()
    }
}

/// A layout and the user offset in bytes of its datatype.
#[derive(Clone, Debug)]
pub struct PlacedLayout {
    /// What is shared.
    pub layout: Arc<Layout>,
    /// What is the datatype's own.
    pub origin: i64,
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

#[derive(Debug, Default)]
struct State {
    types: HashMap<u128, (Datatype, PlacedLayout), Xxh3DefaultBuilder>,
    nests: HashMap<u64, Vec<Held>, Xxh3DefaultBuilder>,
    clock: u64,
    bytes: usize,
    /// Bytes up to which looking for something to drop is in vain: the last search left that much, all of it in use.
    searched: usize,
    counters: CacheCounters,
}

#[derive(Debug)]
struct Held {
    layout: Arc<Layout>,
    last_used: u64,
    /// First-level keys that lead here.
    keys: VecDeque<u128>,
    /// Bytes of the trees kept for those keys.
    kept: usize,
    /// What `State::bytes` counts for it.
    counted: usize,
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

    /// The layout of an equal datatype seen before.
    pub fn by_type(&self, t: &Datatype) -> Option<PlacedLayout> {
        let mut state = self.state();
        state.clock += 1;
        let clock = state.clock;
        let State { types, nests, counters, .. } = &mut *state;
        let (known, placed) = types.get(&t.structural_hash())?;
        if known != t {
            return None;
        }
        let placed = placed.clone();
        counters.type_hits += 1;
        if let Some(held) = find(nests, &placed.layout) {
            held.last_used = clock;
        }
        Some(placed)
    }

    /// The layout of an equal nest, made if there is none; remembers that `t`, if there is one, leads to it.
    pub fn by_nest(&self, t: Option<&Datatype>, nest: LoopNest<Normal>, origin: i64) -> PlacedLayout {
        let hash = hash_of(&nest);
        let mut state = self.state();
        state.clock += 1;
        let clock = state.clock;
        let State { types, nests, counters, bytes, .. } = &mut *state;
        let bucket = nests.entry(hash).or_default();
        let i = match bucket.iter().position(|h| h.layout.nest == nest) {
            Some(i) => {
                counters.nest_hits += 1;
                i
            }
            None => {
                counters.misses += 1;
                let layout = Arc::new(Layout::new(nest, hash));
                let counted = layout.bytes();
                *bytes += counted;
                bucket.push(Held { layout, last_used: clock, keys: VecDeque::new(), kept: 0, counted });
                bucket.len() - 1
            }
        };
        let held = &mut bucket[i];
        held.last_used = clock;
        let placed = PlacedLayout { layout: Arc::clone(&held.layout), origin };
        if let Some((t, key)) = t.map(|t| (t, t.structural_hash()))
            && let Entry::Vacant(slot) = types.entry(key)
        {
            slot.insert((t.clone(), placed.clone()));
            held.keys.push_back(key);
            let mut kept = held.kept.saturating_add(bytes_of(t));
            if held.keys.len() > MAX_KEYS
                && let Some(oldest) = held.keys.pop_front()
                && let Some((t, _)) = types.remove(&oldest)
            {
                kept = kept.saturating_sub(bytes_of(&t));
            }
            *bytes = bytes.saturating_sub(held.kept).saturating_add(kept);
            held.counted = held.counted.saturating_sub(held.kept).saturating_add(kept);
            held.kept = kept;
        }
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

    /// Brings the byte count up to date after `layout` got a kernel, and drops what the capacity does not allow.
    pub fn settle(&self, layout: &Arc<Layout>) {
        let mut state = self.state();
        let State { nests, bytes, .. } = &mut *state;
        if let Some(held) = find(nests, layout) {
            let now = held.layout.bytes().saturating_add(held.kept);
            *bytes = *bytes - held.counted + now;
            held.counted = now;
        }
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
        self.state().counters
    }

    /// Bytes of the layouts held.
    pub fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// Number of layouts held.
    pub fn layouts(&self) -> usize {
        self.state().nests.values().map(Vec::len).sum()
    }
}

/// What keeping a tree for comparison costs: its arguments, its nodes, its entry. About: nodes may be shared with others.
fn bytes_of(t: &Datatype) -> usize {
    usize::try_from(t.arguments().saturating_mul(8)).unwrap_or(usize::MAX).saturating_add(256)
}

/// Key of the second level.
fn hash_of(nest: &LoopNest<Normal>) -> u64 {
    use std::hash::BuildHasher;
    Xxh3DefaultBuilder::new().hash_one(nest)
}

fn find<'a>(
    nests: &'a mut HashMap<u64, Vec<Held>, Xxh3DefaultBuilder>,
    layout: &Arc<Layout>,
) -> Option<&'a mut Held> {
    let bucket = nests.get_mut(&layout.hash)?;
    bucket.iter_mut().find(|h| Arc::ptr_eq(&h.layout, layout))
}

impl State {
    fn evict(&mut self, capacity: usize) {
        if self.bytes <= capacity.max(self.searched) {
            return;
        }
        // Free layouts, oldest first. References from the first level do not count as use.
        let mut free: Vec<(u64, u64, usize)> = Vec::new();
        for (&hash, bucket) in &self.nests {
            for held in bucket {
                if Arc::strong_count(&held.layout) == 1 + held.keys.len() {
                    free.push((held.last_used, hash, Arc::as_ptr(&held.layout) as usize));
                }
            }
        }
        free.sort_unstable();
        for (_, hash, address) in free {
            // A quarter is freed at once, so that a full cache does not search at every commit.
            if self.bytes <= capacity - capacity / 4 {
                break;
            }
            let Some(bucket) = self.nests.get_mut(&hash) else { continue };
            let Some(i) = bucket.iter().position(|h| Arc::as_ptr(&h.layout) as usize == address) else {
                continue;
            };
            let held = bucket.swap_remove(i);
            if bucket.is_empty() {
                self.nests.remove(&hash);
            }
            for key in &held.keys {
                self.types.remove(key);
            }
            self.bytes -= held.counted;
            self.counters.evictions += 1;
        }
        // Many committed types may need more than the capacity: they are not searched through at every commit.
        self.searched = if self.bytes > capacity { self.bytes.saturating_add(capacity / 8) } else { 0 };
    }
}
