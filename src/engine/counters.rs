//! Counters of commits and compiles. Calls of pack and unpack are counted in the module `calls`,
//! and only while somebody has asked for that.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::cache::CacheCounters;

/// Counters of an engine: events since it was made, and what it holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of commits.
    pub commits: u64,
    /// Number of compiles that gave a kernel.
    pub compiles: u64,
    /// Number of kernels whose code was emitted and loaded. The other kernels are precompiled or
    /// share code of the same shape.
    pub emitted: u64,
    /// Nanoseconds spent on the compiles that gave a kernel.
    pub compile_nanos: u64,
    /// Number of compiles in which the scheduler refused the nest by design, so that there is no
    /// kernel. A nest can be refused once for each direction.
    pub refusals: u64,
    /// Number of compiles that failed. A nest whose compile failed is interpreted.
    pub fallbacks: u64,
    /// Number of calls for which check mode found a difference.
    pub mismatches: u64,
    /// Number of pieces of code that got pages of their own, because the system refused a memfd.
    /// Several kernels can share one piece of code.
    pub own_pages: u64,
    /// Number of bytes of executable memory that count towards [`Config::arena_bytes`]. Dropped
    /// code still counts as long as the segment of memory that contained it is mapped. Code on
    /// pages of its own counts only until it is dropped.
    ///
    /// [`Config::arena_bytes`]: super::Config::arena_bytes
    pub code_bytes: u64,
    /// Estimated bytes of memory of the layouts and pairs of layouts in the cache, which count
    /// towards the cache's capacity.
    pub cached_bytes: u64,
    /// Number of layouts that the cache holds.
    pub cached_layouts: u64,
    /// Numbers of hits, misses and evictions of the cache.
    pub cache: CacheCounters,
}

impl Counters {
    /// All counters are zero.
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

    /// Returns the sum of the counters of two engines, counter by counter.
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

    /// Returns the counters that remain when the engine no longer exists: all but the bytes of code
    /// and the bytes and layouts in the cache, which are set to 0.
    #[must_use]
    pub fn history(self) -> Counters {
        Counters { code_bytes: 0, cached_bytes: 0, cached_layouts: 0, ..self }
    }
}

/// Atomic counters of events, shared by all threads that use an engine. A [`Counters`] value is a
/// copy of them.
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

    /// Returns counters that are different multiples of `n`, so that a mix-up of two of them shows.
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
