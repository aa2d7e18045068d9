//! Fused copies from one layout to another. The map finds a fused copy by its two layouts, but does
//! not keep either layout alive.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use super::totals::Totals;
use crate::layout::{CompiledLayout, FusedCopy};
use crate::nest::Leaf;

/// Key of a pair: the addresses of the source layout and the target layout.
pub(super) type Key = [usize; 2];

/// Map of pairs by the addresses of their two layouts.
#[derive(Debug)]
pub struct Pairs<L>(HashMap<Key, PairEntry<L>, Xxh3DefaultBuilder>);

impl<L> Default for Pairs<L> {
    fn default() -> Self {
        Pairs(HashMap::default())
    }
}

#[derive(Debug)]
struct PairEntry<L> {
    /// Both layouts, held weakly. A weak reference keeps the memory of a dropped layout allocated,
    /// so no new layout can get its address while this entry exists, and the key stays unambiguous.
    layouts: [Weak<CompiledLayout<L>>; 2],
    fused: Arc<FusedCopy<L>>,
    last_used: u64,
    /// Bytes that `Totals::bytes` currently contains for this pair.
    charged: usize,
}

fn key<L>(layouts: [&Arc<CompiledLayout<L>>; 2]) -> Key {
    layouts.map(|layout| Arc::as_ptr(layout) as usize)
}

impl<L: Leaf> Pairs<L> {
    /// Size of an entry in bytes, in addition to the nest, code and tables of the fused copy. It
    /// contains the structs of two layouts, whose memory the weak references keep allocated even
    /// after the layouts have been dropped.
    const ENTRY: usize =
        size_of::<(Key, PairEntry<L>)>() + size_of::<FusedCopy<L>>() + 2 * size_of::<CompiledLayout<L>>();

    pub(super) fn get(
        &mut self,
        totals: &mut Totals,
        layouts: [&Arc<CompiledLayout<L>>; 2],
    ) -> Option<Arc<FusedCopy<L>>> {
        let entry = self.0.get_mut(&key(layouts))?;
        entry.last_used = totals.tick();
        Some(Arc::clone(&entry.fused))
    }

    /// Inserts `fused` for the pair of `layouts` and returns it. If the pair has an entry already,
    /// returns the fused copy of that entry.
    pub(super) fn insert(
        &mut self,
        totals: &mut Totals,
        layouts: [&Arc<CompiledLayout<L>>; 2],
        fused: FusedCopy<L>,
    ) -> Arc<FusedCopy<L>> {
        let last_used = totals.tick();
        let entry = self.0.entry(key(layouts)).or_insert_with(|| {
            let charged = Self::ENTRY + fused.bytes();
            totals.bytes += charged;
            PairEntry { layouts: layouts.map(Arc::downgrade), fused: Arc::new(fused), last_used, charged }
        });
        Arc::clone(&entry.fused)
    }

    /// Updates the charged size of the pair of `layouts`, if the pair has an entry.
    pub(super) fn update_charge(&mut self, totals: &mut Totals, layouts: [&Arc<CompiledLayout<L>>; 2]) {
        if let Some(entry) = self.0.get_mut(&key(layouts)) {
            let now = Self::ENTRY + entry.fused.bytes();
            totals.bytes = totals.bytes - entry.charged + now;
            entry.charged = now;
        }
    }

    /// Returns the key of each pair whose fused copy only this map holds, with the time of its last
    /// use. If one of the two layouts has been dropped, the pair cannot be found any more. Its time
    /// is then given as 0, so that it is evicted first.
    pub(super) fn free(&self) -> impl Iterator<Item = (u64, Key)> {
        let alone = self.0.iter().filter(|(_, entry)| Arc::strong_count(&entry.fused) == 1);
        alone.map(|(&key, entry)| {
            let gone = entry.layouts.iter().any(|layout| layout.strong_count() == 0);
            (if gone { 0 } else { entry.last_used }, key)
        })
    }

    /// Drops the pair with this key and counts an eviction. Returns false if there is none.
    pub(super) fn remove(&mut self, totals: &mut Totals, key: Key) -> bool {
        let Some(entry) = self.0.remove(&key) else { return false };
        totals.bytes -= entry.charged;
        totals.counters.evictions += 1;
        true
    }
}
