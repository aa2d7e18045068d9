//! Counters of pack and unpack calls: a shard per thread, counted only while somebody asks for it.
//!
//! Two shared atomics would cost half of a small call. A call therefore reads one flag that nobody writes in the meantime; while
//! a [`Counting`] is open it also adds to a shard that its own thread alone writes. A thread that ends hands its counts on.
//! Invariant: [`totals`] never decreases.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::kind::Kind;
use crate::process::{Guard, Mutex, is_inconsistent};

/// Calls and bytes of every kind while calls were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Calls by [`Kind::index`]: pack, unpack, then those of other operations.
    pub calls: [u64; Kind::COUNT],
    /// Packed bytes by the same.
    pub bytes: [u64; Kind::COUNT],
    /// Calls that copied from layout to layout, or combined there.
    pub copies: u64,
    /// Bytes of their streams.
    pub copied: u64,
    /// Parts of ranges that were moved by kernels rather than walked.
    pub parts: u64,
}

impl Totals {
    fn add(&mut self, shard: &Shard) {
        for kind in 0..Kind::COUNT {
            self.calls[kind] = self.calls[kind].wrapping_add(shard.calls[kind].load(Relaxed));
            self.bytes[kind] = self.bytes[kind].wrapping_add(shard.bytes[kind].load(Relaxed));
        }
        self.copies = self.copies.wrapping_add(shard.copies.load(Relaxed));
        self.copied = self.copied.wrapping_add(shard.copied.load(Relaxed));
        self.parts = self.parts.wrapping_add(shard.parts.load(Relaxed));
    }
}

/// Values of [`Counting`] that live.
static COUNTINGS: AtomicUsize = AtomicUsize::new(0);
static SHARDS: Mutex<Shards> = Mutex::new(Shards {
    live: Vec::new(),
    ended: Totals { calls: [0; Kind::COUNT], bytes: [0; Kind::COUNT], copies: 0, copied: 0, parts: 0 },
});

#[derive(Debug)]
struct Shards {
    live: Vec<Arc<Shard>>,
    ended: Totals,
}

/// Written by one thread, read by all; a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard {
    calls: [AtomicU64; Kind::COUNT],
    bytes: [AtomicU64; Kind::COUNT],
    copies: AtomicU64,
    copied: AtomicU64,
    parts: AtomicU64,
}

/// Only the thread that owns the shard writes it.
fn add(cell: &AtomicU64, n: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(n), Relaxed);
}

/// A thread's shard; folds it into the total when the thread ends.
struct OwnShard(Arc<Shard>);

thread_local! {
    static OWN_SHARD: OwnShard = {
        let shard = Arc::new(Shard::default());
        shards().live.push(Arc::clone(&shard));
        OwnShard(shard)
    };
}

impl Drop for OwnShard {
    fn drop(&mut self) {
        if is_inconsistent() {
            // The lock may be taken for good.
            return;
        }
        let mut shards = shards();
        shards.ended.add(&self.0);
        shards.live.retain(|s| !Arc::ptr_eq(s, &self.0));
    }
}

fn shards() -> Guard<'static, Shards> {
    // Plain sums: no holder leaves them half done.
    SHARDS.lock()
}

/// Switches counting on: calls are counted while any value of this type lives.
#[derive(Debug)]
pub struct Counting(());

impl Counting {
    /// Starts counting, or keeps on what others have started.
    pub fn start() -> Counting {
        COUNTINGS.fetch_add(1, Relaxed);
        Counting(())
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        COUNTINGS.fetch_sub(1, Relaxed);
    }
}

/// Says whether calls are counted.
#[inline]
pub(crate) fn counting() -> bool {
    COUNTINGS.load(Relaxed) != 0
}

/// Counts one call of `bytes` packed bytes.
#[cold]
pub(crate) fn count(kind: Kind, bytes: u64) {
    // A thread whose shard is gone already, in a destructor, goes uncounted.
    let _ = OWN_SHARD.try_with(|own| {
        add(&own.0.calls[kind.index()], 1);
        add(&own.0.bytes[kind.index()], bytes);
    });
}

/// Counts one call that copies `bytes` bytes from layout to layout. What of them goes through a buffer is counted as packed and unpacked too.
#[cold]
pub(crate) fn count_copy(bytes: u64) {
    let _ = OWN_SHARD.try_with(|own| {
        add(&own.0.copies, 1);
        add(&own.0.copied, bytes);
    });
}

/// Counts one part of a range that a kernel moves.
#[cold]
pub(crate) fn count_part() {
    let _ = OWN_SHARD.try_with(|own| add(&own.0.parts, 1));
}

/// Sums over all threads, since the process began.
pub fn totals() -> Totals {
    let shards = shards();
    let mut totals = shards.ended;
    for shard in &shards.live {
        totals.add(shard);
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Direction;

    #[test]
    fn threads_keep_their_counts_after_their_end() {
        let before = totals();
        let counting_on = Counting::start();
        assert!(counting());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| count(Direction::Unpack.into(), 7)));
            }
        });
        drop(counting_on);
        let after = totals();
        assert!(after.calls[1] - before.calls[1] >= 400);
        assert!(after.bytes[1] - before.bytes[1] >= 2800);
    }
}
