//! Holds the layouts of the cache: by datatype and by nest, for each sort of leaves; says which of them go when it is full.

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

/// Most trees that are remembered for one layout. A program that describes its data by absolute addresses makes a new tree of a known
/// layout every time.
const MAX_KEYS: usize = 64;

/// A datatype under an operation: the structural hash of the one, and the other.
type Key = (u128, Operation);

/// All that a cache holds.
#[derive(Debug, Default)]
pub struct State {
    bytes: LayoutMap<Byte>,
    values: LayoutMap<Value>,
    byte_pairs: Pairs<Byte>,
    value_pairs: Pairs<Value>,
    pub(super) totals: Totals,
    /// Bytes up to which looking for something to drop is in vain: the last search left that much, all of it in use.
    pub(super) searched: usize,
}

/// Something that may be dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Free {
    /// A layout, by its hash and address.
    Layout(u64, usize),
    /// A pair of layouts.
    Pair(pairs::Key),
}

/// The layouts of one sort of leaves.
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
    /// First-level keys that lead here.
    keys: VecDeque<Key>,
    /// Bytes of the trees kept for those keys.
    kept: usize,
    /// Bytes that `Totals::bytes` counts for it.
    charged: usize,
}

/// Leaves whose layouts a cache holds.
pub trait Cached: Leaf {
    /// Where they stand.
    fn layouts(state: &mut State) -> (&mut LayoutMap<Self>, &mut Totals);
    /// Where pairs of them stand.
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

    /// Counts a look-up that was answered by `layout`, which is used now.
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

    /// Counts `layout` anew, if it is held.
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

    /// Layouts that nobody else holds: when each was used last, its hash, its address. References from the first level do not count as use.
    fn free(&self) -> impl Iterator<Item = (u64, u64, usize)> {
        let entries =
            self.nests.iter().flat_map(|(&hash, bucket)| bucket.iter().map(move |entry| (hash, entry)));
        entries
            .filter(|(_, entry)| Arc::strong_count(&entry.layout) == 1 + entry.keys.len())
            .map(|(hash, entry)| (entry.last_used, hash, Arc::as_ptr(&entry.layout) as usize))
    }

    /// Drops the layout of that hash and address; false if there is none.
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
    /// Layouts held.
    pub(super) fn layouts(&self) -> usize {
        let count = |n: usize, bucket: usize| n + bucket;
        let bytes = self.bytes.nests.values().map(Vec::len).fold(0, count);
        self.values.nests.values().map(Vec::len).fold(bytes, count)
    }

    /// Drops what the capacity does not allow and nobody holds, oldest first.
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
            // A quarter is freed at once, so that a full cache does not search at every commit.
            if self.totals.bytes <= capacity - capacity / 4 {
                break;
            }
            match free {
                // An address is that of one layout, here and below.
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
        // Many committed types may need more than the capacity: they are not searched through at every commit.
        let bytes = self.totals.bytes;
        self.searched = if bytes > capacity { bytes.saturating_add(capacity / 8) } else { 0 };
    }
}

/// Returns the bytes that a tree kept for comparison costs: its arguments, its nodes, its entry. About: nodes may be shared with others.
fn tree_bytes(t: &Datatype) -> usize {
    usize::try_from(t.arguments().saturating_mul(8)).unwrap_or(usize::MAX).saturating_add(256)
}

/// Key of the second level.
fn nest_hash<L: Leaf>(nest: &LoopNest<Normal, L>) -> u64 {
    use std::hash::BuildHasher;
    Xxh3DefaultBuilder::new().hash_one(nest)
}
