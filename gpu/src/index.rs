//! Index arithmetic of one thread of a kernel: it computes where the bytes that the thread moves
//! lie in user memory and in the packed stream.
//!
//! The arithmetic is written once, with the operations of the trait [`Arithmetic`]. There are two
//! implementations of the trait. [`Values`] does the operations with numbers on the host, and the
//! printer of [`ptx`](crate::ptx) prints one instruction for each operation. So the host and the
//! kernel cannot disagree about a formula.
//!
//! # Chains of loops
//!
//! Every layout has a chain of nested loops, of which loop 0 is the innermost. The kernels
//! `strided`, `list` and `pieces` compute offsets from this chain. The item with the index `w`,
//! which is a word or an iteration of the innermost loop, lies at this offset in user memory:
//!
//! ```text
//! w * s_0 + q_1 * c_1 + q_2 * c_2 + ..      q_0 = w, q_i = q_(i-1) / n_(i-1)
//!                                           c_i = s_i - n_(i-1) * s_(i-1)
//! ```
//!
//! In the formula, loop `i` has `n_i` iterations that are `s_i` bytes apart, and a quotient is
//! rounded down. A thread does a division by a constant with one multiplication and one shift
//! ([`Divisor`]).
//!
//! # Tables
//!
//! The layouts of the kernels `list` and `pieces` have a table of blocks inside of the innermost
//! loop. A thread finds the iteration of this loop, and the row of the table, by a division with
//! remainder ([`Split`]). It then reads the row from the table and adds the offset of the
//! iteration.

/// Exclusive upper limit of the indices that a kernel divides, such as indices of words and of
/// rows. A [`Divisor`] gives the exact quotient for all indices below this limit.
pub const MAX_WORD: u64 = 1 << 31;

/// The operations from which the index arithmetic of a thread is built. All of them wrap on
/// overflow.
pub trait Arithmetic {
    /// A value of 32 bits.
    type Word: Copy;
    /// A value of 64 bits.
    type Long: Copy;

    /// Returns the constant `value`.
    fn constant(&mut self, value: u32) -> Self::Word;
    /// Returns the lower 32 bits of `a + b`.
    fn add(&mut self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Returns the lower 32 bits of `a - b`.
    fn subtract(&mut self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Returns the smaller of the two values `a` and `b`, which have no sign.
    fn minimum(&mut self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Returns the larger of the two values `a` and `b`, which have no sign.
    fn maximum(&mut self, a: Self::Word, b: Self::Word) -> Self::Word;
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

/// Divisor for indices below [`MAX_WORD`], in the form of a multiplier and a shift
/// (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisor<W> {
    /// Factor by which a division multiplies the index. The division then uses the upper 32 bits of
    /// the product.
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

/// Divisor of a division with remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split<W> {
    /// The divisor, in the form of a multiplier and a shift.
    pub divisor: Divisor<W>,
    /// The divisor as a plain number.
    pub number: W,
}

impl Split<u32> {
    /// Returns the divisor `n` for a division with remainder. The number `n` must be at least 2 and
    /// less than [`MAX_WORD`].
    pub fn new(n: u32) -> Split<u32> {
        Split { divisor: Divisor::new(n), number: n }
    }
}

/// Returns the quotient of `index` divided by `by`, rounded down, and the remainder.
pub fn split<A: Arithmetic>(a: &mut A, index: A::Word, by: Split<A::Word>) -> (A::Word, A::Word) {
    let quotient = divide(a, index, by.divisor);
    let whole = a.multiply(quotient, by.number);
    (quotient, a.subtract(index, whole))
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

/// Returns the offset in user memory of the item with the index `word`. The sums of the computation
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

/// Returns the offset in user memory of the item with the index `word`. The sums of the computation
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

/// Place of a word whose offset is the sum of two parts: the offset of an iteration of the
/// innermost loop, and an offset inside of this iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<W> {
    /// Index of the iteration of the innermost loop.
    pub iteration: W,
    /// Offset from the beginning of the iteration in bytes.
    pub offset: W,
}

/// Returns the place of the word with the index `word` in a layout of blocks that have equal
/// lengths. An iteration of the innermost loop has `rows` blocks. `words` is the number of words in
/// a block, together with the width of a word in bytes, or `None` if a block is one word. `entry`
/// returns the offset of the block with a given index from the beginning of the iteration.
pub fn place_in_list<A: Arithmetic>(
    a: &mut A,
    word: A::Word,
    words: Option<(Split<A::Word>, u32)>,
    rows: Split<A::Word>,
    entry: impl FnOnce(&mut A, A::Word) -> A::Word,
) -> Place<A::Word> {
    let Some((words, width)) = words else {
        let (iteration, row) = split(a, word, rows);
        return Place { iteration, offset: entry(a, row) };
    };
    let (block, inside) = split(a, word, words);
    let (iteration, row) = split(a, block, rows);
    let (width, start) = (a.constant(width), entry(a, row));
    Place { iteration, offset: a.multiply_add(inside, width, start) }
}

/// The part of a piece that a launch of the kernel `pieces` moves. The part is empty if `end` is
/// not greater than `begin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<W> {
    /// Place of the first byte of the part in user memory.
    pub place: Place<W>,
    /// Position of the first byte of the part in the packed stream.
    pub begin: W,
    /// Position in the packed stream at which the part ends.
    pub end: W,
}

/// Returns the part of the piece with the index `index` that lies in the range `begin..end` of the
/// packed stream. An iteration of the innermost loop has `rows` pieces and `bytes` packed bytes.
/// All positions, and the index of the piece, are counted from the same iteration.
///
/// `entry` returns an entry of a table with two entries for each piece of an iteration and one
/// entry after the last piece. Entry `2 * i` is the position of piece `i` in the packed stream,
/// counted from the beginning of the iteration, and entry `2 * i + 1` is the offset of the piece in
/// user memory. The entry after the last piece is the number of packed bytes in an iteration.
pub fn part_of_piece<A: Arithmetic>(
    a: &mut A,
    index: A::Word,
    rows: Split<A::Word>,
    bytes: A::Word,
    (begin, end): (A::Word, A::Word),
    mut entry: impl FnMut(&mut A, A::Word) -> A::Word,
) -> Part<A::Word> {
    let (iteration, row) = split(a, index, rows);
    let one = a.constant(1);
    let first = a.add(row, row);
    let second = a.add(first, one);
    let third = a.add(second, one);
    let (packed, user, next) = (entry(a, first), entry(a, second), entry(a, third));
    let position = a.multiply_add(iteration, bytes, packed);
    let next = a.multiply_add(iteration, bytes, next);
    let begin = a.maximum(position, begin);
    let end = a.minimum(next, end);
    let skipped = a.subtract(begin, position);
    Part { place: Place { iteration, offset: a.add(user, skipped) }, begin, end }
}

/// Returns the offset in user memory of the element with the indices `indices` in three nested
/// loops, whose strides are `strides`.
pub fn offset_of_element<A: Arithmetic>(a: &mut A, indices: [A::Word; 3], strides: [A::Long; 3]) -> A::Long {
    let [x, y, z] = indices.map(|index| a.widen(index));
    let sum = a.multiply_long(x, strides[0]);
    let sum = a.multiply_add_long(y, strides[1], sum);
    a.multiply_add_long(z, strides[2], sum)
}

/// Returns the position in the packed stream of the element with the indices `indices` in three
/// nested loops. `strides` has the number of packed bytes from one iteration of each loop to the
/// next.
pub fn position_of_element<A: Arithmetic>(
    a: &mut A,
    indices: [A::Word; 3],
    strides: [A::Word; 3],
) -> A::Word {
    let sum = a.multiply(indices[0], strides[0]);
    let sum = a.multiply_add(indices[1], strides[1], sum);
    a.multiply_add(indices[2], strides[2], sum)
}

/// Implementation of the operations that computes with numbers on the host.
pub struct Values;

impl Arithmetic for Values {
    type Word = u32;
    type Long = u64;

    fn constant(&mut self, value: u32) -> u32 {
        value
    }

    fn add(&mut self, a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }

    fn subtract(&mut self, a: u32, b: u32) -> u32 {
        a.wrapping_sub(b)
    }

    fn minimum(&mut self, a: u32, b: u32) -> u32 {
        a.min(b)
    }

    fn maximum(&mut self, a: u32, b: u32) -> u32 {
        a.max(b)
    }

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
                assert_eq!(split(&mut Values, word, Split::new(n)), (word / n, word % n), "{word} % {n}");
            }
        }
    }
}
