//! Counters of the commit path. Calls of committed kernels are counted elsewhere, and only while that is asked for.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::cache::CacheCounters;

/// Counts what an engine did since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls of commit.
    pub commits: u64,
    /// Kernels compiled.
    pub compiles: u64,
    /// Of those, kernels whose code had to be emitted; the others share code of their shape.
    pub emitted: u64,
    /// Nanoseconds spent compiling them.
    pub compile_nanos: u64,
    /// Nests that the schedule refused and that are walked by design.
    pub refusals: u64,
    /// Compiles that failed and were replaced by the walker.
    pub fallbacks: u64,
    /// Differences found in check mode.
    pub mismatches: u64,
    /// Kernels on pages of their own, because the system refused a memfd.
    pub own_pages: u64,
    /// Bytes of executable memory in use.
    pub code_bytes: u64,
    /// Bytes that the cache holds.
    pub cached_bytes: u64,
    /// Layouts that the cache holds.
    pub cached_layouts: u64,
    /// Hits, misses and evictions of the cache.
    pub cache: CacheCounters,
}

impl Counters {
    /// Nothing done.
    pub const ZERO: Counters = Counters {
        commits: 0,
        compiles: 0,
        emitted: 0,
        compile_nanos: 0,
        refusals: 0,
        fallbacks: 0,
        mismatches: 0,
        own_pages: 0,
        code_bytes: 0,
        cached_bytes: 0,
        cached_layouts: 0,
        cache: CacheCounters { type_hits: 0, nest_hits: 0, misses: 0, evictions: 0 },
    };

    /// Sums of two engines.
    #[must_use]
    pub fn plus(&self, other: &Counters) -> Counters {
        Counters {
            commits: self.commits + other.commits,
            compiles: self.compiles + other.compiles,
            emitted: self.emitted + other.emitted,
            compile_nanos: self.compile_nanos + other.compile_nanos,
            refusals: self.refusals + other.refusals,
            fallbacks: self.fallbacks + other.fallbacks,
            mismatches: self.mismatches + other.mismatches,
            own_pages: self.own_pages + other.own_pages,
            code_bytes: self.code_bytes + other.code_bytes,
            cached_bytes: self.cached_bytes + other.cached_bytes,
            cached_layouts: self.cached_layouts + other.cached_layouts,
            cache: CacheCounters {
                type_hits: self.cache.type_hits + other.cache.type_hits,
                nest_hits: self.cache.nest_hits + other.cache.nest_hits,
                misses: self.cache.misses + other.cache.misses,
                evictions: self.cache.evictions + other.cache.evictions,
            },
        }
    }

    /// Returns the counters without what an engine holds now: those that remain after its end.
    #[must_use]
    pub fn history(self) -> Counters {
        Counters { code_bytes: 0, cached_bytes: 0, cached_layouts: 0, ..self }
    }
}

/// The shared atomics behind [`Counters`].
#[derive(Default)]
pub(super) struct Tally {
    commits: AtomicU64,
    compiles: AtomicU64,
    emitted: AtomicU64,
    compile_nanos: AtomicU64,
    refusals: AtomicU64,
    fallbacks: AtomicU64,
    mismatches: AtomicU64,
}

impl Tally {
    pub(super) fn commits(&self) {
        self.commits.fetch_add(1, Relaxed);
    }

    pub(super) fn compiled(&self, nanos: u64) {
        self.compiles.fetch_add(1, Relaxed);
        self.compile_nanos.fetch_add(nanos, Relaxed);
    }

    pub(super) fn emitted(&self) {
        self.emitted.fetch_add(1, Relaxed);
    }

    pub(super) fn refused(&self) {
        self.refusals.fetch_add(1, Relaxed);
    }

    pub(super) fn fell_back(&self) {
        self.fallbacks.fetch_add(1, Relaxed);
    }

    pub(super) fn mismatched(&self) {
        self.mismatches.fetch_add(1, Relaxed);
    }

    pub(super) fn read(&self) -> Counters {
        Counters {
            commits: self.commits.load(Relaxed),
            compiles: self.compiles.load(Relaxed),
            emitted: self.emitted.load(Relaxed),
            compile_nanos: self.compile_nanos.load(Relaxed),
            refusals: self.refusals.load(Relaxed),
            fallbacks: self.fallbacks.load(Relaxed),
            mismatches: self.mismatches.load(Relaxed),
            ..Counters::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters that differ from each other: multiples of `n`.
    fn numbered(n: u64) -> Counters {
        Counters {
            commits: n,
            compiles: 2 * n,
            emitted: 3 * n,
            compile_nanos: 4 * n,
            refusals: 5 * n,
            fallbacks: 6 * n,
            mismatches: 7 * n,
            own_pages: 15 * n,
            code_bytes: 8 * n,
            cached_bytes: 9 * n,
            cached_layouts: 10 * n,
            cache: CacheCounters { type_hits: 11 * n, nest_hits: 12 * n, misses: 13 * n, evictions: 14 * n },
        }
    }

    #[test]
    fn every_counter_is_summed() {
        assert_eq!(numbered(100).plus(&numbered(7)), numbered(107));
        assert_eq!(numbered(3).plus(&Counters::ZERO), numbered(3));
        assert_eq!(Counters::ZERO, numbered(0));
    }

    #[test]
    fn what_an_engine_holds_is_no_history() {
        let kept = Counters { code_bytes: 0, cached_bytes: 0, cached_layouts: 0, ..numbered(5) };
        assert_eq!(numbered(5).history(), kept);
    }
}
