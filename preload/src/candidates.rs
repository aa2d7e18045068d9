//! Types that the program has committed and that are not decoded: what their uses have cost the host so far.
//!
//! A type may be used once, and to decode it costs more than a small call. So in mode `lazy` a commit only notes the handle here. Each call that could
//! be converted adds the least that it costs the bare host, and the type is decoded ([`crate::types::adopt`]) once that is at most 2 % of the sum.
//!
//! A slot belongs to the handles of one hash, and holds the one that was committed last. So sums are not exact: a handle may have been given to another
//! type since, a type may lose its slot to another, threads may mix two types. Nothing hangs on a sum but the moment of decoding: what is
//! decoded is tied to its type by an attribute of the host's, as every kernel and verdict is. A handle in a slot is one whose commit was seen, and no
//! [`MPI_Type_free`](crate::wrap) since: so the host can be asked about it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use crate::host::{HandleWord, Host};

/// Slots: more than programs use at a time, few enough to stay in a cache.
const SLOTS: usize = 2048;

/// What a decoding costs at most, as a part of what the type's uses have cost the host.
const PART: u64 = 50;
/// Nanoseconds that a type costs beside its constructors, and for each of their arguments (docs/PERFORMANCE.md, "A type used once").
const DECODE: u64 = 1500;
const DECODE_ARGUMENT: u64 = 15;
/// Arguments that a constructor costs as much as, beside its own.
pub(crate) const CONSTRUCTOR: u64 = 50;

/// What a use costs the host beside its bytes, at least.
#[derive(Clone, Copy)]
pub(crate) enum Use {
    /// A pack or unpack.
    Pack,
    /// A message, or more.
    Call,
    /// What makes a persistent request: many calls.
    Persistent,
}

impl Use {
    /// Of a function of MPI.
    pub(crate) const fn of(name: &str) -> Use {
        let (name, end) = (name.as_bytes(), *b"_init");
        let mut at = 0;
        while at + end.len() <= name.len() {
            // The name of a large form goes on behind it.
            let (_, rest) = name.split_at(at);
            if rest[0] == end[0]
                && rest[1] == end[1]
                && rest[2] == end[2]
                && rest[3] == end[3]
                && rest[4] == end[4]
            {
                return Use::Persistent;
            }
            at += 1;
        }
        Use::Call
    }

    /// Nanoseconds of a use of so many bytes.
    fn cost(self, bytes: u64) -> u64 {
        // Short blocks cost hosts 0.2 to 3 ns a byte, long ones are copied at 0.1.
        let moved = bytes / 4;
        match self {
            Use::Pack => 30 + moved,
            Use::Call => 200 + moved,
            Use::Persistent => (200 + moved).saturating_mul(1000),
        }
    }
}

#[repr(align(32))]
struct Slot {
    /// 0 if none.
    handle: AtomicU64,
    /// Bytes of an instance; 0 if they were not asked for.
    size: AtomicI64,
    /// Nanoseconds that uses have cost the host.
    spent: AtomicU64,
    /// What they must have cost before the type is looked at again.
    needed: AtomicU64,
}

static CANDIDATES: [Slot; SLOTS] = [const {
    Slot {
        handle: AtomicU64::new(0),
        size: AtomicI64::new(0),
        spent: AtomicU64::new(0),
        needed: AtomicU64::new(0),
    }
}; SLOTS];

#[inline]
fn slot(handle: u64) -> &'static Slot {
    // Handles are small integers or addresses: Fibonacci hashing spreads both.
    &CANDIDATES[(handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.ilog2())) as usize]
}

/// A type was committed, or the host has accepted it as committed.
#[inline]
pub(crate) fn note(handle: u64) {
    let slot = slot(handle);
    slot.handle.store(handle, Relaxed);
    slot.size.store(0, Relaxed);
    slot.spent.store(0, Relaxed);
    slot.needed.store(DECODE * PART, Relaxed);
}

/// A type is about to be freed: nothing is asked about it from now on.
#[inline]
pub(crate) fn forget(handle: u64) {
    let _ = slot(handle).handle.compare_exchange(handle, 0, Relaxed, Relaxed);
}

/// All handles lose their meaning.
pub(crate) fn forget_all() {
    CANDIDATES.iter().for_each(|slot| slot.handle.store(0, Relaxed));
}

/// Whether a handle is that of a committed type, for all that was seen, which is not decoded.
#[inline]
pub(crate) fn has(handle: u64) -> bool {
    slot(handle).handle.load(Relaxed) == handle && handle != 0
}

/// Adds a use of `count` instances of a type that has a slot. How many arguments of its constructors may be decoded now, each constructor as [`CONSTRUCTOR`] more; `None`: none yet.
pub(crate) fn used(host: &Host, datatype: HandleWord, count: i64, used: Use, at_once: bool) -> Option<u64> {
    let slot = slot(datatype & host.mask);
    let mut size = slot.size.load(Relaxed);
    if size == 0 {
        size = bytes(host, datatype)?;
        slot.size.store(size, Relaxed);
    }
    let bytes =
        size.checked_mul(count).and_then(|bytes| u64::try_from(bytes).ok()).filter(|&bytes| bytes > 0)?;
    let spent = slot.spent.load(Relaxed).saturating_add(used.cost(bytes));
    slot.spent.store(spent, Relaxed);
    if at_once {
        return Some(u64::MAX);
    }
    (spent >= slot.needed.load(Relaxed)).then(|| (spent / PART - DECODE.min(spent / PART)) / DECODE_ARGUMENT)
}

/// Decoding was given up because the type has more arguments than its uses pay for.
pub(crate) fn costs_more(handle: u64) {
    let slot = slot(handle);
    // What was tried in vain is part of what must be paid: each trial is worth half of the next one.
    slot.needed.store(slot.spent.load(Relaxed).saturating_mul(2), Relaxed);
}

/// Bytes of an instance of a committed type of the program's, as the host says.
pub(crate) fn bytes(host: &Host, datatype: HandleWord) -> Option<i64> {
    let mut size = 0i64;
    // SAFETY: a type that the host has accepted as committed and the program holds, a number to write to.
    let code = unsafe { host.f.type_size_x.or(host.f.type_size_c)?(datatype, &raw mut size) };
    (code == 0 && size > 0).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    // One test: the slots are global.
    #[test]
    fn a_handle_is_known_from_its_commit_to_its_end() {
        assert!(!has(0) && !has(77));
        note(77);
        assert!(has(77));
        forget(76);
        assert!(has(77));
        forget(77);
        assert!(!has(77));
        // Whoever has the hash of another takes its slot over.
        let other = (1..1 << 20).find(|&h| std::ptr::eq(slot(h), slot(77)) && h != 77).expect("few slots");
        note(77);
        note(other);
        assert!(!has(77) && has(other));
        forget_all();
        assert!(!has(other));
    }

    #[test]
    fn decoding_is_paid_for() {
        // A vector has 4 arguments.
        let vector = (DECODE + (CONSTRUCTOR + 4) * DECODE_ARGUMENT) * PART;
        assert!(Use::Call.cost(64 << 10) * 8 > vector && Use::Call.cost(64) * 100 < vector);
        assert!(Use::Persistent.cost(8) > vector);
    }
}
