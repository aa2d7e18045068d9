//! Maps from datatypes and nests to layouts, separately for each kind of leaf, and the choice of
//! the layouts to evict when the cache is full.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use super::pairs::{self, Pairs};
use super::totals::Totals;
use crate::datatype::Datatype;
use crate::kind::Operation;
use crate::layout::{CompiledLayout, PlacedLayout};
use crate::nest::{Byte, Leaf, LoopNest, Normal, Value};

/// Maximum number of datatype trees that are kept for one layout.
///
/// A program that describes its data by absolute addresses makes a new tree for a known layout
/// every time, so the number needs a bound.
const MAX_KEYS: usize = 64;

/// Key of the first level: the structural hash of a datatype, and the leaf operation.
type Key = (u128, Operation);

/// Everything in a cache that its lock guards.
#[derive(Debug, Default)]
pub struct State {
    bytes: LayoutMap<Byte>,
    values: LayoutMap<Value>,
    byte_pairs: Pairs<Byte>,
    value_pairs: Pairs<Value>,
    pub(super) totals: Totals,
    /// Total size in bytes up to which [`State::evict`] does not search for something to drop. If a
    /// search ended with a total size above the capacity, this field is set to that size plus an
    /// eighth of the capacity. Otherwise it is 0.
    pub(super) searched: usize,
}

/// Layout or pair that may be evicted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Free {
    /// A layout, named by the hash of its nest and its address.
    Layout(u64, usize),
    /// A pair of layouts, named by its key.
    Pair(pairs::Key),
}

/// Map of the layouts of one kind of leaf, with both levels of the cache.
#[derive(Debug)]
pub struct LayoutMap<L> {
    types: HashMap<Key, (Datatype, PlacedLayout<L>), Xxh3DefaultBuilder>,
    nests: HashMap<u64, Vec<LayoutEntry<L>>, Xxh3DefaultBuilder>,
}

impl<L> Default for LayoutMap<L> {
    fn default() -> Self {
        LayoutMap { types: HashMap::default(), nests: HashMap::default() }
    }
}

#[derive(Debug)]
struct LayoutEntry<L> {
    layout: Arc<CompiledLayout<L>>,
    last_used: u64,
    /// First-level keys that lead to this layout, oldest first.
    keys: VecDeque<Key>,
    /// Estimated bytes of the datatype trees that are kept for `keys`.
    kept: usize,
    /// Bytes that `Totals::bytes` currently contains for this layout and its trees.
    charged: usize,
}

/// Kind of leaf whose layouts a cache holds: bytes or values.
pub trait Cached: Leaf {
    /// Returns the map of layouts with these leaves, and the totals of the cache.
    fn layouts(state: &mut State) -> (&mut LayoutMap<Self>, &mut Totals);
    /// Returns the map of fused pairs of layouts with these leaves, and the totals of the cache.
    fn pairs(state: &mut State) -> (&mut Pairs<Self>, &mut Totals);
}

impl Cached for Byte {
    fn layouts(state: &mut State) -> (&mut LayoutMap<Byte>, &mut Totals) {
        (&mut state.bytes, &mut state.totals)
    }

    fn pairs(state: &mut State) -> (&mut Pairs<Byte>, &mut Totals) {
        (&mut state.byte_pairs, &mut state.totals)
    }
}

impl Cached for Value {
    fn layouts(state: &mut State) -> (&mut LayoutMap<Value>, &mut Totals) {
        (&mut state.values, &mut state.totals)
    }

    fn pairs(state: &mut State) -> (&mut Pairs<Value>, &mut Totals) {
        (&mut state.value_pairs, &mut state.totals)
    }
}

impl<L: Leaf> LayoutMap<L> {
    pub(super) fn by_type(
        &mut self,
        totals: &mut Totals,
        t: &Datatype,
        operation: Operation,
    ) -> Option<PlacedLayout<L>> {
        totals.tick();
        let (known, placed) = self.types.get(&(t.structural_hash(), operation))?;
        if known != t {
            return None;
        }
        let placed = placed.clone();
        self.use_again(totals, &placed.layout);
        Some(placed)
    }

    pub(super) fn found(&mut self, totals: &mut Totals, layout: &Arc<CompiledLayout<L>>) {
        totals.tick();
        self.use_again(totals, layout);
    }

    /// Counts a hit of the first level on `layout`, and sets the time of its last use to now.
    fn use_again(&mut self, totals: &mut Totals, layout: &Arc<CompiledLayout<L>>) {
        totals.counters.type_hits += 1;
        if let Some(entry) = self.find(layout) {
            entry.last_used = totals.clock;
        }
    }

    pub(super) fn by_nest(
        &mut self,
        totals: &mut Totals,
        t: Option<&Datatype>,
        nest: LoopNest<Normal, L>,
        operation: Operation,
        origin: i64,
    ) -> PlacedLayout<L> {
        // The second level: look for a layout with an equal nest under the same operation, and
        // insert one if there is none.
        let hash = nest_hash(&nest);
        totals.tick();
        let bucket = self.nests.entry(hash).or_default();
        let known = bucket.iter().position(|h| h.layout.operation() == operation && *h.layout.nest() == nest);
        let i = match known {
            Some(i) => {
                totals.counters.nest_hits += 1;
                i
            }
            None => {
                totals.counters.misses += 1;
                let layout = Arc::new(CompiledLayout::new(nest, operation, hash));
                let charged = layout.bytes();
                totals.bytes += charged;
                bucket.push(LayoutEntry { layout, last_used: 0, keys: VecDeque::new(), kept: 0, charged });
                bucket.len() - 1
            }
        };
        let entry = &mut bucket[i];
        entry.last_used = totals.clock;
        let placed = PlacedLayout { layout: Arc::clone(&entry.layout), origin };
        // Let the first level find the layout by `t` from now on. If a different datatype already
        // has the same key, that datatype keeps its entry. If the layout now has too many trees,
        // the oldest tree is removed. The trees are charged to the layout.
        if let Some((t, key)) = t.map(|t| (t, (t.structural_hash(), operation)))
            && let Entry::Vacant(slot) = self.types.entry(key)
        {
            slot.insert((t.clone(), placed.clone()));
            entry.keys.push_back(key);
            let mut kept = entry.kept.saturating_add(tree_bytes(t));
            if entry.keys.len() > MAX_KEYS
                && let Some(oldest) = entry.keys.pop_front()
                && let Some((t, _)) = self.types.remove(&oldest)
            {
                kept = kept.saturating_sub(tree_bytes(&t));
            }
            totals.bytes = totals.bytes.saturating_sub(entry.kept).saturating_add(kept);
            entry.charged = entry.charged.saturating_sub(entry.kept).saturating_add(kept);
            entry.kept = kept;
        }
        placed
    }

    /// Updates the charged size of `layout`, if this map has it.
    pub(super) fn update_charge(&mut self, totals: &mut Totals, layout: &Arc<CompiledLayout<L>>) {
        if let Some(entry) = self.find(layout) {
            let now = entry.layout.bytes().saturating_add(entry.kept);
            totals.bytes = totals.bytes - entry.charged + now;
            entry.charged = now;
        }
    }

    fn find(&mut self, layout: &Arc<CompiledLayout<L>>) -> Option<&mut LayoutEntry<L>> {
        let bucket = self.nests.get_mut(&layout.hash())?;
        bucket.iter_mut().find(|h| Arc::ptr_eq(&h.layout, layout))
    }

    /// Returns the layouts that may be evicted because nothing but this map holds them. Each layout
    /// is given by the time of its last use, its hash and its address. The map itself holds each
    /// layout once, and once more for each of its keys.
    ///
    /// A layout of this map can hold another layout of this map, whose instances are the iterations
    /// of one of its loops or tables (`Part::Iterations`). The held layout may be evicted only
    /// after the layout that holds it has been dropped.
    fn free(&self) -> impl Iterator<Item = (u64, u64, usize)> {
        let entries =
            self.nests.iter().flat_map(|(&hash, bucket)| bucket.iter().map(move |entry| (hash, entry)));
        entries
            .filter(|(_, entry)| Arc::strong_count(&entry.layout) == 1 + entry.keys.len())
            .map(|(hash, entry)| (entry.last_used, hash, Arc::as_ptr(&entry.layout) as usize))
    }

    /// Drops the layout with this hash and address, together with its keys, and counts an eviction.
    /// Returns false if there is none.
    fn remove(&mut self, totals: &mut Totals, hash: u64, address: usize) -> bool {
        let Some(bucket) = self.nests.get_mut(&hash) else { return false };
        let Some(i) = bucket.iter().position(|h| Arc::as_ptr(&h.layout) as usize == address) else {
            return false;
        };
        let entry = bucket.swap_remove(i);
        if bucket.is_empty() {
            self.nests.remove(&hash);
        }
        for key in &entry.keys {
            self.types.remove(key);
        }
        totals.bytes -= entry.charged;
        totals.counters.evictions += 1;
        true
    }
}

impl State {
    /// Returns the number of layouts in both maps.
    pub(super) fn layouts(&self) -> usize {
        let count = |n: usize, bucket: usize| n + bucket;
        let bytes = self.bytes.nests.values().map(Vec::len).fold(0, count);
        self.values.nests.values().map(Vec::len).fold(bytes, count)
    }

    /// Drops layouts and pairs that nothing else holds, least recently used first, until the total
    /// size is at most three quarters of `capacity` bytes or no such layout or pair is left. Does
    /// nothing if the total size does not exceed `capacity`, or does not exceed `searched`, the
    /// size up to which a search would be futile. Layouts that become free only during this call
    /// are not dropped.
    pub(super) fn evict(&mut self, capacity: usize) {
        if self.totals.bytes <= capacity.max(self.searched) {
            return;
        }
        let layouts = self.bytes.free().chain(self.values.free());
        let layouts = layouts.map(|(used, hash, address)| (used, Free::Layout(hash, address)));
        let pairs =
            self.byte_pairs.free().chain(self.value_pairs.free()).map(|(used, key)| (used, Free::Pair(key)));
        let mut free: Vec<(u64, Free)> = layouts.chain(pairs).collect();
        free.sort_unstable();
        for (_, free) in free {
            // A quarter of the capacity is freed at once. Otherwise a full cache would search for
            // something to evict at every commit.
            if self.totals.bytes <= capacity - capacity / 4 {
                break;
            }
            match free {
                // A key or hash does not say which of the two maps has the pair or layout, so both
                // maps are tried. Addresses are unique among all layouts, so at most one of the
                // maps has it.
                Free::Pair(key) => {
                    if !self.byte_pairs.remove(&mut self.totals, key) {
                        self.value_pairs.remove(&mut self.totals, key);
                    }
                }
                Free::Layout(hash, address) => {
                    if !self.bytes.remove(&mut self.totals, hash, address) {
                        self.values.remove(&mut self.totals, hash, address);
                    }
                }
            }
        }
        // Committed types may hold layouts that together are larger than the capacity. The next
        // search then waits until the total has grown by an eighth of the capacity, so that not
        // every commit searches in vain.
        let bytes = self.totals.bytes;
        self.searched = if bytes > capacity { bytes.saturating_add(capacity / 8) } else { 0 };
    }
}

/// Estimates the bytes of memory of a datatype tree that is kept for comparisons: 8 for each
/// argument, and 256 for its nodes and its map entry. The estimate may be too high, since trees can
/// share nodes.
fn tree_bytes(t: &Datatype) -> usize {
    usize::try_from(t.arguments().saturating_mul(8)).unwrap_or(usize::MAX).saturating_add(256)
}

/// Returns the hash of `nest`, which is the key of the second level.
fn nest_hash<L: Leaf>(nest: &LoopNest<Normal, L>) -> u64 {
    use std::hash::BuildHasher;
    Xxh3DefaultBuilder::new().hash_one(nest)
}
