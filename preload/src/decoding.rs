//! Costs of decoding a type here.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Nanoseconds that a type costs beside its constructors, and for each of their arguments, where calls follow each other (docs/records/performance.md,
/// "A type used once").
const DECODE: u64 = 1500;
const DECODE_ARGUMENT: u64 = 15;
/// Parts in which [`factor`] is counted, and the most that it is.
pub(crate) const ONCE: u64 = 16;
const MOST: u64 = 32 * ONCE;
static FACTOR: AtomicU64 = AtomicU64::new(ONCE);
/// Arguments that a constructor costs as much as, beside its own.
pub(crate) const CONSTRUCTOR: u64 = 50;

/// Returns the nanoseconds of a decoding where calls follow each other, of so many arguments, each constructor as [`CONSTRUCTOR`] more.
pub(crate) fn nanos(arguments: u64) -> u64 {
    arguments.saturating_mul(DECODE_ARGUMENT).saturating_add(DECODE)
}

/// Returns how many arguments are decoded in so many nanoseconds.
pub(crate) fn arguments(nanos: u64) -> u64 {
    nanos.saturating_sub(DECODE) / DECODE_ARGUMENT
}

/// Returns how many times that decoding takes here, by what it took so far: between the calls of a program that computes, caches have forgotten host and library.
pub(crate) fn factor() -> u64 {
    FACTOR.load(Relaxed)
}

/// A type whose constructors have so many arguments was decoded in so many nanoseconds.
pub(crate) fn took(arguments: u64, nanos: u64) {
    static AGAIN: AtomicBool = AtomicBool::new(false);
    // The first one makes what all need.
    if AGAIN.swap(true, Relaxed) {
        FACTOR.store(followed(FACTOR.load(Relaxed), arguments, nanos), Relaxed);
    }
}

/// A factor after one more decoding: a quarter of the way to what that says, so that one which lost its core counts little.
fn followed(factor: u64, arguments: u64, nanos: u64) -> u64 {
    let expected = self::nanos(arguments.saturating_add(CONSTRUCTOR));
    (3 * factor + (ONCE.saturating_mul(nanos) / expected).clamp(ONCE, MOST)) / 4
}

#[cfg(test)]
mod tests {
    use ddtc_hosts::profile;

    use super::*;
    use crate::use_kind::UseKind;

    #[test]
    fn it_is_as_slow_as_it_was() {
        let often = |nanos, n| (0..n).fold(ONCE, |factor, _| followed(factor, 4, nanos));
        assert_eq!(often(DECODE, 50), ONCE);
        let cold = often(10 * super::nanos(CONSTRUCTOR + 4), 50);
        assert!((9 * ONCE..=10 * ONCE).contains(&cold), "{cold}");
        assert!(often(1 << 40, 1) <= 9 * ONCE && often(1 << 40, 50) <= MOST);
        assert!(followed(cold, 4, 0) < cold);
    }

    #[test]
    fn uses_pay_for_it() {
        // A vector has 4 arguments.
        let vector = super::nanos(CONSTRUCTOR + 4) * 2;
        let cost = |used: UseKind, bytes| used.cost(&profile::INTEL.costs, bytes);
        assert!(cost(UseKind::Call, 64 << 10) > vector && cost(UseKind::Call, 64) * 20 < vector);
        assert!(cost(UseKind::Persistent, 8) > vector);
        assert_eq!([0, DECODE, super::nanos(77)].map(arguments), [0, 0, 77]);
    }
}
