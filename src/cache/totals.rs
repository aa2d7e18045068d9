//! Clock, charged bytes and counters of a cache, which all of its maps share.

use super::CacheCounters;

/// Clock, charged bytes and counters over the layouts and pairs of all kinds of leaves.
#[derive(Debug, Default)]
pub struct Totals {
    pub(super) clock: u64,
    pub(super) bytes: usize,
    pub(super) counters: CacheCounters,
}

impl Totals {
    /// Advances the clock by one and returns the new time. Only the order of times matters: the
    /// layout with the smaller time was used less recently.
    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}
