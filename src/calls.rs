//! Counters of pack and unpack calls: per-thread shards, counted only while somebody looks.
//!
//! Two shared atomics would cost half of a small call. A call therefore reads one flag that nobody writes in the meantime; while
//! a [`Look`] is open it also adds to a shard that its own thread alone writes. A thread that ends hands its counts on.
//! Invariant: [`totals`] never decreases.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::kind::Direction;
use crate::process::{Guard, Mutex};

/// Calls and bytes of both directions while somebody looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Calls by direction, pack first.
    pub calls: [u64; 2],
    /// Packed bytes by direction, pack first.
    pub bytes: [u64; 2],
}

impl Totals {
    fn add(&mut self, shard: &Shard) {
        for d in 0..2 {
            self.calls[d] = self.calls[d].wrapping_add(shard.calls[d].load(Relaxed));
            self.bytes[d] = self.bytes[d].wrapping_add(shard.bytes[d].load(Relaxed));
        }
    }
}

static LOOKS: AtomicUsize = AtomicUsize::new(0);
static SHARDS: Mutex<Shards> =
    Mutex::new(Shards { live: Vec::new(), gone: Totals { calls: [0; 2], bytes: [0; 2] } });

#[derive(Debug)]
struct Shards {
    live: Vec<Arc<Shard>>,
    gone: Totals,
}

/// Written by one thread, read by all; a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard {
    calls: [AtomicU64; 2],
    bytes: [AtomicU64; 2],
}

/// A thread's shard; folds it into the total when the thread ends.
struct Mine(Arc<Shard>);

thread_local! {
    static MINE: Mine = {
        let shard = Arc::new(Shard::default());
        shards().live.push(Arc::clone(&shard));
        Mine(shard)
    };
}

impl Drop for Mine {
    fn drop(&mut self) {
        let mut shards = shards();
        shards.gone.add(&self.0);
        shards.live.retain(|s| !Arc::ptr_eq(s, &self.0));
    }
}

fn shards() -> Guard<'static, Shards> {
    // Plain sums: no holder leaves them half done.
    SHARDS.lock()
}

/// Calls are counted while one of these lives.
#[derive(Debug)]
pub struct Look(());

impl Look {
    /// Starts counting, or keeps others' counting alive.
    pub fn open() -> Look {
        LOOKS.fetch_add(1, Relaxed);
        Look(())
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        LOOKS.fetch_sub(1, Relaxed);
    }
}

/// Whether anybody looks.
#[inline]
pub(crate) fn counting() -> bool {
    LOOKS.load(Relaxed) != 0
}

/// Counts one call of `bytes` packed bytes.
#[cold]
pub(crate) fn count(direction: Direction, bytes: u64) {
    // A thread whose shard is gone already, in a destructor, goes uncounted.
    let _ = MINE.try_with(|mine| {
        let d = direction as usize;
        let add = |cell: &AtomicU64, n: u64| cell.store(cell.load(Relaxed).wrapping_add(n), Relaxed);
        add(&mine.0.calls[d], 1);
        add(&mine.0.bytes[d], bytes);
    });
}

/// Sums over all threads, since the process began.
pub fn totals() -> Totals {
    let shards = shards();
    let mut totals = shards.gone;
    for shard in &shards.live {
        totals.add(shard);
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_keep_their_counts_after_their_end() {
        let before = totals();
        let look = Look::open();
        assert!(counting());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| count(Direction::Unpack, 7)));
            }
        });
        drop(look);
        let after = totals();
        assert!(after.calls[1] - before.calls[1] >= 400);
        assert!(after.bytes[1] - before.bytes[1] >= 2800);
    }
}
