//! Index arithmetic of one thread of a kernel: it computes the offset in user memory of one word of
//! the packed stream.
//!
//! The arithmetic is written once, with the operations of the trait [`Arithmetic`]. There are two
//! implementations of the trait. [`Values`] does the operations with numbers on the host, and the
//! printer of [`ptx`](crate::ptx) prints one instruction for each operation. So the host and the
//! kernel cannot disagree about a formula.
//!
//! A layout is a chain of nested loops, of which loop 0 is the innermost. The word with the index
//! `w` in the packed stream lies at this offset in user memory:
//!
//! ```text
//! w * s_0 + q_1 * c_1 + q_2 * c_2 + ..      q_0 = w, q_i = q_(i-1) / n_(i-1)
//!                                           c_i = s_i - n_(i-1) * s_(i-1)
//! ```
//!
//! In the formula, loop `i` has `n_i` iterations that are `s_i` bytes apart, and a quotient is
//! rounded down. A thread does a division by a constant with one multiplication and one shift
//! ([`Divisor`]).

/// Exclusive upper limit of word indices. A kernel divides such an index by trip counts of loops,
/// and a [`Divisor`] gives the exact quotient for all indices below this limit.
pub const MAX_WORD: u64 = 1 << 31;

/// The operations from which the index arithmetic of a thread is built. All of them wrap on
/// overflow.
pub trait Arithmetic {
    /// A value of 32 bits.
    type Word: Copy;
    /// A value of 64 bits.
    type Long: Copy;

    /// Returns the upper 32 bits of the product `a * b`, which has 64 bits.
    fn multiply_high(&mut self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Returns `a` shifted right by `by` bits, where `by` is less than 32.
    fn shift_right(&mut self, a: Self::Word, by: Self::Word) -> Self::Word;
    /// Returns the lower 32 bits of `a * b`.
    fn multiply(&mut self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Returns the lower 32 bits of `a * b + c`.
    fn multiply_add(&mut self, a: Self::Word, b: Self::Word, c: Self::Word) -> Self::Word;
    /// Returns the 32-bit value `a`, which has no sign, as a value of 64 bits.
    fn widen(&mut self, a: Self::Word) -> Self::Long;
    /// Returns the lower 64 bits of `a * b`.
    fn multiply_long(&mut self, a: Self::Long, b: Self::Long) -> Self::Long;
    /// Returns the lower 64 bits of `a * b + c`.
    fn multiply_add_long(&mut self, a: Self::Long, b: Self::Long, c: Self::Long) -> Self::Long;
}

/// Divisor for indices of words below [`MAX_WORD`], in the form of a multiplier and a shift
/// (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisor<W> {
    /// Factor by which a division multiplies the index of the word. The division then uses the
    /// upper 32 bits of the product.
    pub multiplier: W,
    /// Number of bits by which a division shifts the upper half of the product to the right. It is
    /// less than 32.
    pub shift: W,
}

impl Divisor<u32> {
    /// Returns the multiplier and the shift for a division by `n`. The number `n` must be at least
    /// 2 and less than [`MAX_WORD`].
    pub fn new(n: u32) -> Divisor<u32> {
        debug_assert!(n >= 2 && u64::from(n) < MAX_WORD);
        // With l = ceil(log2 n), the multiplier ceil(2^(31 + l) / n) gives the exact quotient for
        // all words of 31 bits, and the multiplier fits into 32 bits.
        let l = 32 - (n - 1).leading_zeros();
        let multiplier = (1u64 << (31 + l)).div_ceil(u64::from(n));
        Divisor { multiplier: multiplier as u32, shift: l - 1 }
    }
}

/// Returns the quotient of `word` divided by the divisor `by`, rounded down.
fn divide<A: Arithmetic>(a: &mut A, word: A::Word, by: Divisor<A::Word>) -> A::Word {
    let high = a.multiply_high(word, by.multiplier);
    a.shift_right(high, by.shift)
}

/// Strides of a chain of nested loops, in the form in which a kernel gets them as parameters: the
/// stride of the innermost loop and, for each other loop `i`, a divisor and a step. The divisor is
/// the number of iterations of the next inner loop. The step is the `c_i` of the formula in the
/// module's documentation: the stride of loop `i`, less the distance by which all iterations of the
/// next inner loop advance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain<W, S> {
    /// Stride of the innermost loop in bytes.
    pub stride: S,
    /// The divisor of each loop except the innermost, with the step of that loop in bytes. The
    /// second innermost loop comes first, and the outermost loop last.
    pub divisions: Vec<(Divisor<W>, S)>,
}

/// Returns the offset in user memory of the word with the index `word`. The sums of the computation
/// have 32 bits. So every offset must be at least 0 and less than 2^32, but partial sums may wrap.
pub fn offset_32<A: Arithmetic>(a: &mut A, word: A::Word, chain: &Chain<A::Word, A::Word>) -> A::Long {
    let mut sum = a.multiply(word, chain.stride);
    let mut quotient = word;
    for &(divisor, step) in &chain.divisions {
        quotient = divide(a, quotient, divisor);
        sum = a.multiply_add(quotient, step, sum);
    }
    a.widen(sum)
}

/// Returns the offset in user memory of the word with the index `word`. The sums of the computation
/// have 64 bits, which is needed if strides are negative or long.
pub fn offset_64<A: Arithmetic>(a: &mut A, word: A::Word, chain: &Chain<A::Word, A::Long>) -> A::Long {
    let long = a.widen(word);
    let mut sum = a.multiply_long(long, chain.stride);
    let mut quotient = word;
    for &(divisor, step) in &chain.divisions {
        quotient = divide(a, quotient, divisor);
        let long = a.widen(quotient);
        sum = a.multiply_add_long(long, step, sum);
    }
    sum
}

/// Implementation of the operations that computes with numbers on the host.
pub struct Values;

impl Arithmetic for Values {
    type Word = u32;
    type Long = u64;

    fn multiply_high(&mut self, a: u32, b: u32) -> u32 {
        ((u64::from(a) * u64::from(b)) >> 32) as u32
    }

    fn shift_right(&mut self, a: u32, by: u32) -> u32 {
        a >> by
    }

    fn multiply(&mut self, a: u32, b: u32) -> u32 {
        a.wrapping_mul(b)
    }

    fn multiply_add(&mut self, a: u32, b: u32, c: u32) -> u32 {
        a.wrapping_mul(b).wrapping_add(c)
    }

    fn widen(&mut self, a: u32) -> u64 {
        u64::from(a)
    }

    fn multiply_long(&mut self, a: u64, b: u64) -> u64 {
        a.wrapping_mul(b)
    }

    fn multiply_add_long(&mut self, a: u64, b: u64, c: u64) -> u64 {
        a.wrapping_mul(b).wrapping_add(c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each tested divisor, checks that the quotients of words just below, at and just above
    /// several multiples of the divisor are exact. Word 0 and the largest word are tested too.
    #[test]
    fn quotients_are_exact() {
        let last = (MAX_WORD - 1) as u32;
        let powers = (1..31).flat_map(|bit| [(1u32 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        let divisors = (2..2000).chain(powers).chain([last, last - 1, last / 2, last / 3, 641, 6_700_417]);
        for n in divisors.filter(|&n| n >= 2) {
            let by = Divisor::new(n);
            assert!(by.shift < 32);
            let multiples = [1, 2, 3, last / n / 2, last / n].map(|k| k.saturating_mul(n));
            let near = multiples.into_iter().flat_map(|m| [m.wrapping_sub(1), m, m.wrapping_add(1)]);
            for word in near.chain([0, last]).filter(|&word| word <= last) {
                assert_eq!(divide(&mut Values, word, by), word / n, "{word} / {n}");
            }
        }
    }
}
