//! Sums over everything in a cache: its clock, its bytes, what it did.

use super::CacheCounters;

/// Sums over the layouts of all leaves.
#[derive(Debug, Default)]
pub struct Totals {
    pub(super) clock: u64,
    pub(super) bytes: usize,
    pub(super) counters: CacheCounters,
}

impl Totals {
    /// Returns the next moment.
    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}
