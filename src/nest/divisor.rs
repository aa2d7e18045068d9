//! Division by a number that is known long before the dividend. A multiplication and a shift
//! replace the division.
//!
//! Granlund and Montgomery, Division by Invariant Integers using Multiplication (PLDI 1994),
//! theorem 4.2: if `2^l >= d`, dividends have 63 bits, and `m` is the smallest integer that is at
//! least `2^(63 + l) / d`, then the quotient is `floor(n * m / 2^(63 + l))`.

/// A divisor for dividends below 2^63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Divisor {
    /// `2^(63 + shift) / d`, rounded up.
    factor: u64,
    shift: u32,
}

impl Divisor {
    /// Prepares the division by `d`.
    ///
    /// # Panics
    /// If `d` is 0 or larger than 2^63.
    pub(super) fn new(d: u64) -> Divisor {
        assert!(d > 0 && d <= 1 << 63, "no divisor of 63-bit numbers");
        let shift = d.next_power_of_two().trailing_zeros();
        // The factor fits in 64 bits. If `d` is a power of two, the factor is 2^63. Otherwise
        // `d > 2^(shift - 1)`, so the factor is less than 2^64.
        let factor = (1_u128 << (63 + shift)).div_ceil(d.into()) as u64;
        Divisor { factor, shift }
    }

    /// Returns `n / d`, for `n` below 2^63.
    #[inline(always)]
    pub(super) fn quotient(&self, n: u64) -> u64 {
        debug_assert!(n < 1 << 63, "a dividend of 64 bits");
        ((u128::from(n << 1) * u128::from(self.factor)) >> 64) as u64 >> self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_division() {
        let ends = |i: u32| [(1_u64 << i).wrapping_sub(1), 1 << i, (1 << i) + 1];
        let powers = (0..63).flat_map(ends);
        let divisors = (1..1000).chain(powers.clone()).filter(|&d| d > 0);
        for d in divisors {
            let by = Divisor::new(d);
            let most = (1 << 63) - 1;
            let multiples = [1, 2, 3, 1000, most / d / 2, most / d].map(|k| d.saturating_mul(k).min(most));
            let near = multiples.into_iter().flat_map(|n| [n.saturating_sub(1), n, (n + 1).min(most)]);
            for n in near.chain(powers.clone()).chain(0..100).chain([most - 1, most]) {
                assert_eq!(by.quotient(n), n / d, "{n} / {d}");
            }
        }
    }
}
