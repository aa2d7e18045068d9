//! Index arithmetic of one thread: the user offset of a packed word.
//!
//! The arithmetic is written once, over the operations of the trait [`Arithmetic`]. [`Values`]
//! computes with it, and the printer of [`ptx`](crate::ptx) prints one instruction for each
//! operation. So the host and the kernel cannot disagree about a formula.
//!
//! A layout is a chain of loops, from the innermost to the outermost. Word `w` of the packed stream
//! lies at the user offset
//!
//! ```text
//! w * s_0 + q_1 * c_1 + q_2 * c_2 + ..      q_0 = w, q_i = q_(i-1) / n_(i-1)
//!                                           c_i = s_i - n_(i-1) * s_(i-1)
//! ```
//!
//! where loop `i` has `n_i` iterations that are `s_i` bytes apart. A division by a constant is one
//! multiplication and one shift ([`Divisor`]).

/// Upper limit (exclusive) of the words that a kernel divides.
pub const MAX_WORD: u64 = 1 << 31;

/// The operations of a thread. All of them wrap on overflow.
pub trait Arithmetic {
    /// A value of 32 bits.
    type Word: Copy;
    /// A value of 64 bits.
    type Long: Copy;

    /// Returns the upper 32 bits of the product of two words.
    fn multiply_high(&mut self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Returns `a` shifted right by `by` bits, where `by` is less than 32.
    fn shift_right(&mut self, a: Self::Word, by: Self::Word) -> Self::Word;
    /// Returns the lower 32 bits of `a * b`.
    fn multiply(&mut self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Returns the lower 32 bits of `a * b + c`.
    fn multiply_add(&mut self, a: Self::Word, b: Self::Word, c: Self::Word) -> Self::Word;
    /// Returns a word as a long value, without a sign.
    fn widen(&mut self, a: Self::Word) -> Self::Long;
    /// Returns the lower 64 bits of `a * b`.
    fn multiply_long(&mut self, a: Self::Long, b: Self::Long) -> Self::Long;
    /// Returns the lower 64 bits of `a * b + c`.
    fn multiply_add_long(&mut self, a: Self::Long, b: Self::Long, c: Self::Long) -> Self::Long;
}

/// Divisor of words below [`MAX_WORD`], as a multiplier and a shift (Granlund and Montgomery,
/// "Division by invariant integers using multiplication", 1994).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisor<W> {
    /// Multiplier. A division takes the upper 32 bits of the product of this number and the word.
    pub multiplier: W,
    /// Number of bits by which the upper half of the product is shifted right; less than 32.
    pub shift: W,
}

impl Divisor<u32> {
    /// Returns the divisor `n`. It must be at least 2 and less than [`MAX_WORD`].
    pub fn new(n: u32) -> Divisor<u32> {
        debug_assert!(n >= 2 && u64::from(n) < MAX_WORD);
        // With l = ceil(log2 n), the multiplier ceil(2^(31 + l) / n) is exact for words of 31 bits
        // and fits into 32 bits.
        let l = 32 - (n - 1).leading_zeros();
        let multiplier = (1u64 << (31 + l)).div_ceil(u64::from(n));
        Divisor { multiplier: multiplier as u32, shift: l - 1 }
    }
}

/// Returns the quotient of a word.
fn divide<A: Arithmetic>(a: &mut A, word: A::Word, by: Divisor<A::Word>) -> A::Word {
    let high = a.multiply_high(word, by.multiplier);
    a.shift_right(high, by.shift)
}

/// Strides of a chain of loops, in the form of a kernel's parameters: the innermost stride, and for
/// each further loop a divisor and the step `c_i` of the module's formula. Dividing by the divisor
/// gives the quotient `q_i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain<W, S> {
    /// Innermost stride in bytes.
    pub stride: S,
    /// Divisors and steps in bytes, from the second innermost loop to the outermost.
    pub divisions: Vec<(Divisor<W>, S)>,
}

/// Returns the user offset of a word, with sums of 32 bits. Every offset must be at least 0 and
/// less than 2^32; partial sums may wrap.
pub fn offset_32<A: Arithmetic>(a: &mut A, word: A::Word, chain: &Chain<A::Word, A::Word>) -> A::Long {
    let mut sum = a.multiply(word, chain.stride);
    let mut quotient = word;
    for &(divisor, step) in &chain.divisions {
        quotient = divide(a, quotient, divisor);
        sum = a.multiply_add(quotient, step, sum);
    }
    a.widen(sum)
}

/// Returns the user offset of a word, with sums of 64 bits. This is needed for strides that are
/// negative or long.
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

/// Does the operations on numbers, on the host.
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

    /// Quotients are exact just below, at and just above each tested multiple of a divisor, up to
    /// the largest word.
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
