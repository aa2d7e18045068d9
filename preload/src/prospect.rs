//! Expectations by what became of types of one size and extent: the next one is likely to be of the same layout.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use ddtc::datatype::Datatype;

use crate::relative::ADDRESSES;
use crate::slots::spread;

/// Expectation of a type, by what became of the last one of its size and extent: it is likely to be of the same layout.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prospect {
    /// None was decoded, and it is no run of bytes.
    Unknown,
    /// Of a layout that is converted.
    Good,
    /// Of one that is left to the host.
    Poor,
    /// Of one of which nothing was known.
    New,
}

/// Prospects by the hash of size and extent. Nothing but the moment of decoding hangs on them.
static PROSPECTS: [AtomicU8; 1024] = [const { AtomicU8::new(Prospect::Unknown as u8) }; 1024];

impl Prospect {
    const ALL: [Prospect; 4] = [Prospect::Unknown, Prospect::Good, Prospect::Poor, Prospect::New];

    /// Returns the cost that uses must reach as a multiple of the usual one, as a fraction.
    pub(crate) fn factor(self) -> (u64, u64) {
        match self {
            Prospect::Unknown => (1, 1),
            Prospect::Good => (1, 4),
            Prospect::Poor => (64, 1),
            // A layout that is new each time is compiled each time too.
            Prospect::New => (4, 1),
        }
    }
}

fn place(size: i64, extent: i64) -> &'static AtomicU8 {
    let word = size as u64 ^ (extent as u64).rotate_left(32);
    &PROSPECTS[spread(word, 64 - PROSPECTS.len().ilog2())]
}

pub(crate) fn expected(size: i64, extent: i64) -> Prospect {
    match Prospect::ALL[usize::from(place(size, extent).load(Relaxed))] {
        // Contiguous, most likely.
        Prospect::Unknown if size == extent => Prospect::Poor,
        prospect => prospect,
    }
}

/// A type was decoded, or its layout timed.
pub(crate) fn found(t: &Datatype, prospect: Prospect) {
    let (size, extent) = (t.size(), telling(t.lb(), t.extent()));
    // One more layout of types that were converted so far.
    if prospect != Prospect::New || expected(size, extent) != Prospect::Good {
        place(size, extent).store(prospect as u8, Relaxed);
    }
}

/// Returns what an extent tells of a layout: nothing of one of absolute addresses, where it is how far objects lie apart.
pub(crate) fn telling(lb: i64, extent: i64) -> i64 {
    if lb >= ADDRESSES { 0 } else { extent }
}
