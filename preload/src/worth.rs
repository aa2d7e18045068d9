//! Estimate of whether decoding a type pays.
//!
//! A type is decoded when conversions of its later uses are expected to save as much time as
//! decoding costs. It is not known in advance how often a type will be used again. If nothing is
//! known about similar types, two guesses replace that knowledge. First, the type is expected to
//! transfer as many bytes again as it has transferred so far. Second, a conversion is expected to
//! save the minimum time that the use costs the MPI library. Decoding then begins when the uses
//! have cost as much as decoding does, or at most twice as much, because uses are only looked at
//! when their cost has doubled. So a type that is not used again after it was decoded has cost at
//! most three times what it had to cost (the rule for the ski rental problem). If similar types
//! were freed before ([`crate::similar`]), their mean number of bytes replaces the first guess. If
//! their conversion was timed, the measured gain replaces the second guess.
//!
//! The estimate reads no clock. It uses measured times only for messages about which each rank
//! decides by itself. Suppose that the messages of a type must be converted by both ranks or by
//! neither. If both ranks use the type in the same way, and know the same about similar types, both
//! decode it at the same message.

/// Nanoseconds that decoding a type costs if calls follow each other, without the cost of the
/// arguments of its constructors: 1400 on a Zen 4 (docs/history/performance.md, "A type used
/// once"). On an Emerald Rapids a vector, subarray or flat structure takes 2200 to 5300 ns. If an
/// equal type is found by its arguments, it takes 600 to 900 ns, or 2000 ns for a structure under
/// Open MPI. Until the uses of a type have cost the MPI library this many nanoseconds, the type is
/// not even compared with similar types. If the constant is too small, types that are freed soon
/// are decoded in vain. If it is too large, a few more messages are bypassed before a type is
/// decoded.
pub(crate) const DECODE: u64 = 1500;
/// Nanoseconds that decoding a type costs for each argument of its constructors. Measured: 8 to 32
/// on an Emerald Rapids under MPICH and Intel MPI, and up to 64 under Open MPI
/// (docs/history/performance.md, "A type used once").
const DECODE_ARGUMENT: u64 = 15;
/// Number of arguments whose decoding costs as much as a constructor does without its own
/// arguments. Each constructor of a type counts as this number of additional arguments.
pub(crate) const CONSTRUCTOR: u64 = 50;
/// Minimum nanoseconds that each block of a list-like type (with an indexed or struct combiner)
/// costs the MPI library, in addition to the cost of the block's bytes. Measured: 6 under Open MPI
/// to 24 under Intel MPI (3225 blocks of 4 B, Zen 3).
pub(crate) const BLOCK: u64 = 4;
/// Estimated nanoseconds that compiling a layout in both directions costs, for the cheapest
/// kernels. Measured: 8700 for lists of 250 blocks (Emerald Rapids, 2026-11-29); the first
/// compilation in a process takes 60000 and more (Zen 3). Without this estimate, such lists took
/// 1.3 times as long under MPICH, if they were new for each step of the program and used 20 times
/// in it.
pub(crate) const COMPILE: u64 = 10_000;
/// Maximum number of times that the required saving of a type is doubled. As long as the gain of
/// similar types is not known, the required saving is doubled for each similar type that was
/// decoded in vain. The count of these types starts again when a similar type is freed after it was
/// compiled (`SimilarityClass::vain`). ScaLAPACK's LU makes 1100 types and frees each after one or
/// two uses, so most types that are decoded there are never converted. With 9 doublings,
/// SPECFEM3D_mt was never converted under Intel MPI and took 9 times as long (Emerald Rapids).
pub(crate) const MAX_DOUBLINGS: u64 = 6;
/// Number of times that the required saving of a type is doubled if conversions of similar types
/// gained nothing. Then only a type that is used for a long time is decoded, to find out whether it
/// differs from the similar types. With 6 doublings, LAMMPS_full, whose receives gain nothing, took
/// 1.11 to 1.24 times as long as without ddtc (MPICH and Intel MPI, Emerald Rapids).
pub(crate) const DOUBLINGS_WITHOUT_GAIN: u64 = 9;

/// Returns the estimated nanoseconds that decoding a type with `arguments` arguments costs. Each
/// constructor counts as [`CONSTRUCTOR`] additional arguments.
pub(crate) fn cost(arguments: u64) -> u64 {
    arguments.saturating_mul(DECODE_ARGUMENT).saturating_add(DECODE)
}

/// Returns the maximum number of arguments of a type that can be decoded in `nanos` nanoseconds.
pub(crate) fn arguments(nanos: u64) -> u64 {
    nanos.saturating_sub(DECODE) / DECODE_ARGUMENT
}

/// Facts for an estimate of the time that conversions of a type's later uses save.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlook {
    /// Number of bytes that all uses of the type have transferred so far, including the present
    /// use.
    pub(crate) moved: u64,
    /// Mean number of bytes that a similar type has transferred until it was freed; 0 if no similar
    /// type was freed.
    pub(crate) mean: u64,
    /// Number of bytes that the present use of the type transfers.
    pub(crate) bytes: u64,
    /// Nanoseconds that a conversion would save in the present use of the type.
    pub(crate) saves: u64,
}

impl Outlook {
    /// Returns the nanoseconds that conversions of the later uses are expected to save.
    ///
    /// A type is expected to transfer as many bytes in all as similar types did. Once the type has
    /// transferred more bytes than that, it is expected to go on and to transfer as many bytes
    /// again as it has transferred beyond the mean of the similar types.
    pub(crate) fn saves(&self) -> u64 {
        let later = self.mean.abs_diff(self.moved);
        let all = u128::from(later) * u128::from(self.saves) / u128::from(self.bytes.max(1));
        u64::try_from(all).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of the use at which a type is decoded. Each use has 4000 bytes and costs
    /// 1200 ns, a conversion saves `saves` nanoseconds, and decoding costs `cost` nanoseconds.
    /// Similar types were used `mean` times.
    fn decoded_at(cost: u64, mean: u64, saves: u64) -> Option<u64> {
        let outlook = |n: u64| Outlook { moved: n * 4000, mean: mean * 4000, bytes: 4000, saves };
        (1..1000).find(|&n| outlook(n).saves() >= cost)
    }

    #[test]
    fn a_type_is_decoded_when_that_pays() {
        // If no similar type is known, the type is decoded when its uses have cost as much as
        // decoding does.
        assert_eq!([1200, 12_000].map(|cost| decoded_at(cost, 0, 1200)), [Some(1), Some(10)]);
        // Similar types were used 20 times. The type is decoded at its first use if the remaining
        // uses pay for decoding. Otherwise it is decoded after it has been used for much longer
        // than the similar types.
        assert_eq!(decoded_at(12_000, 20, 1200), Some(1));
        assert_eq!(decoded_at(20 * 1200, 20, 1200), Some(40));
        // Similar types were used only once or twice, and this type is used more often.
        assert_eq!([1, 2].map(|mean| decoded_at(2400, mean, 1200)), [Some(3), Some(4)]);
        // Each use costs 1200 ns, and a conversion saves only a tenth of that.
        assert_eq!(decoded_at(12_000, 20, 120), Some(120));
    }

    #[test]
    fn numbers_of_any_size_are_estimated() {
        let outlook = Outlook { moved: u64::MAX, mean: 0, bytes: 0, saves: u64::MAX };
        assert_eq!(outlook.saves(), u64::MAX);
        assert_eq!([0, DECODE, cost(77)].map(arguments), [0, 0, 77]);
    }
}
