//! Pairs of layouts: what copies from the one to the other, found by both without keeping either alive.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use super::totals::Totals;
use crate::layout::{CompiledLayout, Joint};
use crate::nest::Leaf;

/// Addresses of two layouts.
pub(super) type Key = [usize; 2];

/// Pairs by the addresses of their layouts.
#[derive(Debug)]
pub struct Pairs<L>(HashMap<Key, PairEntry<L>, Xxh3DefaultBuilder>);

impl<L> Default for Pairs<L> {
    fn default() -> Self {
        Pairs(HashMap::default())
    }
}

#[derive(Debug)]
struct PairEntry<L> {
    /// Held weakly: no layout has the address of one that is gone while somebody remembers that.
    layouts: [Weak<CompiledLayout<L>>; 2],
    joint: Arc<Joint<L>>,
    last_used: u64,
    /// Bytes that `Totals::bytes` counts for it.
    charged: usize,
}

fn key<L>(layouts: [&Arc<CompiledLayout<L>>; 2]) -> Key {
    layouts.map(|layout| Arc::as_ptr(layout) as usize)
}

impl<L: Leaf> Pairs<L> {
    /// Bytes of an entry beside the joint: itself, and the room of two layouts that may be gone.
    const ENTRY: usize =
        size_of::<(Key, PairEntry<L>)>() + size_of::<Joint<L>>() + 2 * size_of::<CompiledLayout<L>>();

    pub(super) fn get(
        &mut self,
        totals: &mut Totals,
        layouts: [&Arc<CompiledLayout<L>>; 2],
    ) -> Option<Arc<Joint<L>>> {
        let entry = self.0.get_mut(&key(layouts))?;
        entry.last_used = totals.tick();
        Some(Arc::clone(&entry.joint))
    }

    /// Remembers `joint`, or returns what somebody else did.
    pub(super) fn insert(
        &mut self,
        totals: &mut Totals,
        layouts: [&Arc<CompiledLayout<L>>; 2],
        joint: Joint<L>,
    ) -> Arc<Joint<L>> {
        let last_used = totals.tick();
        let entry = self.0.entry(key(layouts)).or_insert_with(|| {
            let charged = Self::ENTRY + joint.bytes();
            totals.bytes += charged;
            PairEntry { layouts: layouts.map(Arc::downgrade), joint: Arc::new(joint), last_used, charged }
        });
        Arc::clone(&entry.joint)
    }

    /// Counts the pair of `layouts` anew, if it is held.
    pub(super) fn update_charge(&mut self, totals: &mut Totals, layouts: [&Arc<CompiledLayout<L>>; 2]) {
        if let Some(entry) = self.0.get_mut(&key(layouts)) {
            let now = Self::ENTRY + entry.joint.bytes();
            totals.bytes = totals.bytes - entry.charged + now;
            entry.charged = now;
        }
    }

    /// Pairs that nobody else holds, and when each was used last: those of a layout that is gone, never.
    pub(super) fn free(&self) -> impl Iterator<Item = (u64, Key)> {
        let alone = self.0.iter().filter(|(_, entry)| Arc::strong_count(&entry.joint) == 1);
        alone.map(|(&key, entry)| {
            let gone = entry.layouts.iter().any(|layout| layout.strong_count() == 0);
            (if gone { 0 } else { entry.last_used }, key)
        })
    }

    /// Drops the pair of that key; false if there is none.
    pub(super) fn remove(&mut self, totals: &mut Totals, key: Key) -> bool {
        let Some(entry) = self.0.remove(&key) else { return false };
        totals.bytes -= entry.charged;
        totals.counters.evictions += 1;
        true
    }
}
