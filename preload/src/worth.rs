//! Estimate of whether decoding a type pays.
//!
//! A type is decoded when conversions of its later uses are expected to save as much time as
//! decoding costs. It is not known in advance how often a type will be used again. If nothing is
//! known of similar types, the type is expected to move as many bytes again as it has moved so far,
//! and a conversion is expected to save the minimum that the use costs the MPI library. Decoding
//! then begins when the uses have cost as much as decoding does, so that a type which is not used
//! again has cost at most twice what it had to (the rule for the ski rental problem). If similar
//! types were freed before ([`crate::similar`]), their mean number of bytes replaces the first
//! guess, and if their conversion was timed, the measured gain replaces the second guess.
//!
//! No clock is asked. Measured times count only for messages about which each rank decides by itself.
//! So two ranks that use a type alike decode it at the same message if both must convert it or neither.

/// Nanoseconds that decoding a type costs, without the arguments of its constructors, if calls follow
/// each other: 1400 on a Zen 4 (docs/records/performance.md, "A type used once"). On an Emerald Rapids a
/// new vector, subarray or flat structure took 2200 to 4400, and one that is known 600 to 900. If the constant is too small, types that are freed soon are
/// decoded in vain; if it is too large, a few more messages are bypassed first.
const DECODE: u64 = 1500;
/// Nanoseconds that decoding costs for each argument of a constructor: 8 to 32 on an Emerald Rapids
/// under MPICH and Intel MPI, up to 64 under Open MPI (docs/records/performance.md, "A type used
/// once").
const DECODE_ARGUMENT: u64 = 15;
/// Number of additional arguments that a constructor counts as: decoding it costs as much as
/// decoding that many arguments, besides its own arguments.
pub(crate) const CONSTRUCTOR: u64 = 50;
/// Minimum nanoseconds that each block of a list costs the MPI library, in addition to its bytes.
/// Measured: 6 under Open MPI to 24 under Intel MPI (3225 blocks of 4 B, Zen 3).
pub(crate) const BLOCK: u64 = 4;
/// Estimate of the nanoseconds that compiling a layout costs, of the cheapest kernels. The first compile
/// of a process takes 60 us and more (Zen 3). If the constant is too small, types whose layouts are new
/// each time are decoded although they are freed before that has paid.
pub(crate) const COMPILE: u64 = 10_000;
/// Factor between the cost of decoding and the saving that must be expected before a type is
/// decoded, if the gain of conversions was timed. It is more than 1 because packing was timed, and
/// messages gain less than packing does.
pub(crate) const MARGIN: u64 = 2;
/// Maximum number of times that the saving which is asked for is doubled. It is doubled for each type of
/// the class that was decoded in vain. ScaLAPACK's LU makes 1100 layouts and frees each after one or two
/// uses, so most types that are decoded there are never converted.
pub(crate) const MAX_DOUBLINGS: u64 = 6;
/// Divisor for types of which similar types gained nothing: a conversion is expected to save the
/// cost of the use divided by this number. That is so little that only a type which is used for
/// long is decoded to see whether it differs. With 64 instead, LAMMPS_full, whose receives gain nothing,
/// took 1.11 to 1.24 times as long as without (MPICH and Intel MPI, Emerald Rapids).
pub(crate) const NOTHING: u64 = 512;
/// Nanoseconds that the uses of a type must have cost before it is compared with similar types. The
/// comparison takes a call of the MPI library, and no decoding costs less than this number.
pub(crate) const MIN: u64 = DECODE;
/// As [`MIN`], for a type that was used once. Many types are used once (ScaLAPACK's LU makes 1100
/// layouts), and the call of the MPI library, 0.1 to 0.2 us, must be a small part of what the use
/// costs.
pub(crate) const MIN_ONCE: u64 = 4000;

/// Returns the nanoseconds that decoding a type with `arguments` arguments costs. Each constructor
/// counts as [`CONSTRUCTOR`] additional arguments.
pub(crate) fn cost(arguments: u64) -> u64 {
    arguments.saturating_mul(DECODE_ARGUMENT).saturating_add(DECODE)
}

/// Returns the number of arguments that can be decoded in `nanos` nanoseconds.
pub(crate) fn arguments(nanos: u64) -> u64 {
    nanos.saturating_sub(DECODE) / DECODE_ARGUMENT
}

/// Expectation of what conversions of a type's later uses save.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlook {
    /// Bytes that the uses of the type have moved so far, this one included.
    pub(crate) moved: u64,
    /// Mean number of bytes that similar types have moved until they were freed; 0: none was freed.
    pub(crate) mean: u64,
    /// Bytes that this use moves.
    pub(crate) bytes: u64,
    /// Nanoseconds that a conversion of this use saves.
    pub(crate) saves: u64,
}

impl Outlook {
    /// Returns the nanoseconds that conversions of the later uses are expected to save.
    ///
    /// A type is expected to move as many bytes in all as similar types did. Once it has moved more
    /// than that, it is expected to go on for as long as it has outlived them.
    pub(crate) fn saves(&self) -> u64 {
        let later = self.mean.abs_diff(self.moved);
        let all = u128::from(later) * u128::from(self.saves) / u128::from(self.bytes.max(1));
        u64::try_from(all).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of the use at which a type is decoded, of uses of 4000 bytes that cost
    /// 1200 ns each, if decoding costs `cost` nanoseconds.
    fn decoded_at(cost: u64, mean: u64, saves: u64) -> Option<u64> {
        let outlook = |n: u64| Outlook { moved: n * 4000, mean: mean * 4000, bytes: 4000, saves };
        (1..1000).find(|&n| outlook(n).saves() >= cost)
    }

    #[test]
    fn a_type_is_decoded_when_that_pays() {
        // If no similar type is known, a type is decoded when its uses have cost as much as
        // decoding does.
        assert_eq!([1200, 12_000].map(|cost| decoded_at(cost, 0, 1200)), [Some(1), Some(10)]);
        // Similar types were used 20 times. A type is decoded at once if the uses that are left pay
        // for that, otherwise when it has been used for much longer than the similar types.
        assert_eq!(decoded_at(12_000, 20, 1200), Some(1));
        assert_eq!(decoded_at(20 * 1200, 20, 1200), Some(40));
        // Similar types were used once or twice.
        assert_eq!([1, 2].map(|mean| decoded_at(2400, mean, 1200)), [Some(3), Some(4)]);
        // A conversion saves little.
        assert_eq!(decoded_at(12_000, 20, 120), Some(120));
    }

    #[test]
    fn numbers_of_any_size_are_estimated() {
        let outlook = Outlook { moved: u64::MAX, mean: 0, bytes: 0, saves: u64::MAX };
        assert_eq!(outlook.saves(), u64::MAX);
        assert_eq!([0, MIN, cost(77)].map(arguments), [0, 0, 77]);
    }
}
