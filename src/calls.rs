//! Counters of pack and unpack calls: one shard per thread, updated only while somebody has asked
//! for counts.
//!
//! If each call updated two atomics that all threads share, this would take half the time of a
//! small call. A call therefore only reads one number, which is written only when counting starts
//! or stops. While a [`Counting`] exists, the call also adds to a shard that only its own thread
//! writes. The counts of a thread that ends are added to a common sum.
//!
//! Invariant: [`totals`] never decreases.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::kind::Kind;
use crate::process::{Guard, Mutex, is_inconsistent};

/// Counts of calls and packed bytes for each kind of transfer. A call is included only if it was
/// made while counting was on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of calls of each kind, indexed by [`Kind::index`]: first pack and unpack of bytes,
    /// then the other operations.
    pub calls: [u64; Kind::COUNT],
    /// Number of packed bytes of each kind, indexed by [`Kind::index`].
    pub bytes: [u64; Kind::COUNT],
    /// Number of calls to move data from one layout directly to another, where the values are
    /// stored or combined with those already there. A call is counted before it moves anything, so
    /// a call that fails afterwards is included.
    pub copies: u64,
    /// Number of bytes of the calls that are counted in `copies`, measured as packed bytes.
    pub copied: u64,
    /// Number of parts of ranges of the packed stream for which the engine had prepared something:
    /// a compiled kernel that moved the part, or tables by which the interpreter moves rows of
    /// blocks as pieces of equal length or in another order. What is left of a range is moved by
    /// interpreting the nest of the datatype as it is.
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

/// Number of existing values of [`Counting`].
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

/// Counters of one thread, which only that thread writes and every thread may read. The alignment
/// keeps other data off the cache lines of the counters.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard {
    calls: [AtomicU64; Kind::COUNT],
    bytes: [AtomicU64; Kind::COUNT],
    copies: AtomicU64,
    copied: AtomicU64,
    parts: AtomicU64,
}

/// Adds `n` to a counter. Only the thread that owns the shard writes to it, so a load and a store
/// suffice.
fn add(cell: &AtomicU64, n: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(n), Relaxed);
}

/// A thread's shard. When the thread ends, its counts are added to the sum of ended threads.
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
            // This process was forked while another thread may have held the lock, which then
            // nobody would release here.
            return;
        }
        let mut shards = shards();
        shards.ended.add(&self.0);
        shards.live.retain(|s| !Arc::ptr_eq(s, &self.0));
    }
}

fn shards() -> Guard<'static, Shards> {
    // `lock` succeeds even after a holder of the lock has panicked. This is safe, because the
    // shards hold plain sums, which no holder leaves half updated.
    SHARDS.lock()
}

/// Keeps counting switched on: calls are counted while any value of this type exists.
#[derive(Debug)]
pub struct Counting(());

impl Counting {
    /// Switches counting on, or keeps it on if it already is.
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

/// Returns true while calls are counted.
#[inline]
pub(crate) fn counting() -> bool {
    COUNTINGS.load(Relaxed) != 0
}

/// Counts one call of `kind` that moves `bytes` packed bytes.
#[cold]
pub(crate) fn count(kind: Kind, bytes: u64) {
    // A call is not counted if it is made by a destructor that runs at the end of the thread, after
    // the shard was dropped.
    let _ = OWN_SHARD.try_with(|own| {
        add(&own.0.calls[kind.index()], 1);
        add(&own.0.bytes[kind.index()], bytes);
    });
}

/// Counts one call to copy `bytes` bytes from one layout to another. It is counted before the copy,
/// which may still fail. The bytes that go through a buffer on their way are also counted as packed
/// and as unpacked.
#[cold]
pub(crate) fn count_copy(bytes: u64) {
    let _ = OWN_SHARD.try_with(|own| {
        add(&own.0.copies, 1);
        add(&own.0.copied, bytes);
    });
}

/// Counts one part of a range of the packed stream, which was moved by a kernel or is about to be
/// moved by the interpreter with prepared rows of blocks.
#[cold]
pub(crate) fn count_part() {
    let _ = OWN_SHARD.try_with(|own| add(&own.0.parts, 1));
}

/// Returns the sums over all threads since the process began, including threads that have ended.
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
