//! Index arithmetic of one thread of a kernel. It computes where the bytes that the thread moves
//! lie in user memory and in the packed stream.
//!
//! The arithmetic is written once, with the operations of the trait [`Arithmetic`]. There are two
//! implementations of the trait. [`Values`] computes with numbers on the host, and `Printer` in
//! [`ptx`](crate::ptx) prints one PTX instruction for each operation. So the host and the kernel
//! cannot disagree about a formula.
//!
//! # Chains of loops
//!
//! Every layout has a chain of nested loops, of which loop 0 is the innermost. The kernels
//! `strided`, `list` and `pieces` compute offsets in user memory from this chain, by the formula
//! below. For `strided`, `w` is the index of a word, and the formula gives the offset of this word.
//! For `list` and `pieces`, `w` is the index of an iteration of the innermost loop, and the formula
//! gives the offset at which this iteration begins:
//!
//! ```text
//! w * s_0 + q_1 * c_1 + q_2 * c_2 + ..      q_0 = w, q_i = q_(i-1) / n_(i-1)
//!                                           c_i = s_i - n_(i-1) * s_(i-1)
//! ```
//!
//! The sum on the left is the offset. In the formula, `n_i` is the trip count of loop `i`, and
//! `s_i` is its stride in bytes. Quotients are rounded down. The constants `c_i`, which are called
//! steps, are computed on the host. A thread divides by a trip count with one multiplication and
//! one shift ([`Divisor`]).
//!
//! # Tables
//!
//! In the layouts that the kernels `list` and `pieces` move, the body of the innermost loop is a
//! table of blocks. A thread divides, with remainder, the index of its block by the number of
//! blocks in the table ([`Split`]). The quotient is the iteration of the innermost loop, and the
//! remainder is the row of the table. The thread then reads the row from the table and adds the
//! offset of the iteration.

/// Exclusive upper limit of the indices that a kernel divides, such as the indices of words and of
/// blocks. A [`Divisor`] gives the exact quotient for all indices below this limit.
pub const MAX_WORD: u64 = 1 << 31;

/// The operations from which the index arithmetic of a thread is built. A result that does not fit
/// into its type wraps around.
pub trait Arithmetic {
    /// An unsigned value of 32 bits.
    type Word: Copy;
    /// An unsigned value of 64 bits.
    type Long: Copy;

    /// Returns the constant `value`.
    fn constant(&mut self, value: u32) -> Self::Word;
    /// Returns the lower 32 bits of `a + b`.
    fn add(&mut self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Returns the lower 32 bits of `a - b`.
    fn subtract(&mut self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Returns the smaller of the two unsigned values `a` and `b`.
    fn minimum(&mut self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Returns the larger of the two unsigned values `a` and `b`.
    fn maximum(&mut self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Returns the upper 32 bits of the 64-bit product `a * b`.
    fn multiply_high(&mut self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Returns `a` shifted right by `by` bits, where `by` is less than 32.
    fn shift_right(&mut self, a: Self::Word, by: Self::Word) -> Self::Word;
    /// Returns the lower 32 bits of `a * b`.
    fn multiply(&mut self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Returns the lower 32 bits of `a * b + c`.
    fn multiply_add(&mut self, a: Self::Word, b: Self::Word, c: Self::Word) -> Self::Word;
    /// Returns the unsigned 32-bit value `a`, extended to 64 bits with zeros.
    fn widen(&mut self, a: Self::Word) -> Self::Long;
    /// Returns the 64-bit value whose lower half is `low` and whose upper half is `high`.
    fn join(&mut self, low: Self::Word, high: Self::Word) -> Self::Long;
    /// Returns the lower 64 bits of `a + b`.
    fn add_long(&mut self, a: Self::Long, b: Self::Long) -> Self::Long;
    /// Returns the lower 64 bits of `a * b`.
    fn multiply_long(&mut self, a: Self::Long, b: Self::Long) -> Self::Long;
    /// Returns the lower 64 bits of `a * b + c`.
    fn multiply_add_long(&mut self, a: Self::Long, b: Self::Long, c: Self::Long) -> Self::Long;
}

/// A divisor for indices below [`MAX_WORD`], represented by a multiplier and a shift, so that a
/// division becomes a multiplication and a shift (Granlund and Montgomery, "Division by invariant
/// integers using multiplication", 1994).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisor<W> {
    /// Factor by which the index is multiplied. The division continues with the upper 32 bits of
    /// the 64-bit product.
    pub multiplier: W,
    /// Number of bits by which the upper half of the product of index and multiplier is shifted to
    /// the right, to give the quotient. It is less than 32.
    pub shift: W,
}

impl Divisor<u32> {
    /// Returns the multiplier and the shift for a division by `n`. The number `n` must be at least
    /// 2 and less than [`MAX_WORD`].
    pub fn new(n: u32) -> Divisor<u32> {
        debug_assert!(n >= 2 && u64::from(n) < MAX_WORD);
        // With l = ceil(log2 n), the multiplier ceil(2^(31 + l) / n) gives the exact quotient for
        // all indices of 31 bits, and the multiplier fits into 32 bits.
        let l = 32 - (n - 1).leading_zeros();
        let multiplier = (1u64 << (31 + l)).div_ceil(u64::from(n));
        Divisor { multiplier: multiplier as u32, shift: l - 1 }
    }
}

/// Returns `word / by`, rounded down.
fn divide<A: Arithmetic>(a: &mut A, word: A::Word, by: Divisor<A::Word>) -> A::Word {
    let high = a.multiply_high(word, by.multiplier);
    a.shift_right(high, by.shift)
}

/// A divisor for divisions that compute both the quotient and the remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split<W> {
    /// The divisor, represented by a multiplier and a shift. It is used to compute the quotient.
    pub divisor: Divisor<W>,
    /// The divisor as a plain number. It is used to compute the remainder.
    pub number: W,
}

impl Split<u32> {
    /// Returns the representation of the divisor `n` for divisions with remainder. The number `n`
    /// must be at least 2 and less than [`MAX_WORD`].
    pub fn new(n: u32) -> Split<u32> {
        Split { divisor: Divisor::new(n), number: n }
    }
}

/// Returns the pair `(index / by, index % by)`, where the quotient is rounded down.
pub fn split<A: Arithmetic>(a: &mut A, index: A::Word, by: Split<A::Word>) -> (A::Word, A::Word) {
    let quotient = divide(a, index, by.divisor);
    let whole = a.multiply(quotient, by.number);
    (quotient, a.subtract(index, whole))
}

/// Strides of nested loops, in the form in which a kernel gets them as parameters: the stride of
/// the innermost loop and, for each other loop, a divisor and a step. The divisor of loop `i` is
/// the trip count of loop `i - 1`, which is the next inner loop. The step of loop `i` is the value
/// `c_i` of the formula in this module's documentation: `s_i - n_(i-1) * s_(i-1)`, where `s` stands
/// for strides and `n` for trip counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain<W, S> {
    /// Stride of the innermost loop in user memory, in bytes.
    pub stride: S,
    /// The divisor and the step, in bytes, of every loop except the innermost. The list begins with
    /// the second innermost loop and ends with the outermost loop.
    pub divisions: Vec<(Divisor<W>, S)>,
}

/// Returns the offset in user memory of the item with the index `word`. The item is a word for the
/// kernel `strided`, and an iteration of the innermost loop for `list` and `pieces`. All results
/// are computed modulo 2^32. So the offset itself must be at least 0 and less than 2^32, but
/// intermediate results may be negative or larger.
pub fn offset_32<A: Arithmetic>(a: &mut A, word: A::Word, chain: &Chain<A::Word, A::Word>) -> A::Long {
    let mut sum = a.multiply(word, chain.stride);
    let mut quotient = word;
    for &(divisor, step) in &chain.divisions {
        quotient = divide(a, quotient, divisor);
        sum = a.multiply_add(quotient, step, sum);
    }
    a.widen(sum)
}

/// Returns the offset in user memory of the item with the index `word`. The item is a word for the
/// kernel `strided`, and an iteration of the innermost loop for `list` and `pieces`. The sums and
/// products have 64 bits. This is needed if a stride is negative or if offsets do not fit into 32
/// bits.
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

/// Place of a word in user memory. The offset of the word is the sum of the offset of an iteration
/// of the innermost loop and an offset inside of this iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<W> {
    /// Index of the iteration of the innermost loop to which the word belongs.
    pub iteration: W,
    /// Offset of the word from the beginning of the iteration, in bytes.
    pub offset: W,
}

/// Returns the place of the word with the index `word` in a layout of blocks that all have the same
/// length. `rows` is the number of blocks in an iteration of the innermost loop. `words` is a pair
/// of the number of words in a block and the width of a word in bytes, or `None` if a block is one
/// word. `entry` returns the entry of the layout's table for the block with a given index: the
/// offset of the block from the beginning of the iteration.
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

/// The bytes of one piece that one launch of the kernel `pieces` moves. A piece is a section of a
/// block of contiguous bytes. The launch may move all bytes of the piece, only some of them, or
/// none. It moves none if `end` is not greater than `begin`. [`part_of_piece`] says how positions
/// in the packed stream are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<W, L> {
    /// Index of the iteration of the innermost loop to which the piece belongs.
    pub iteration: W,
    /// Offset in user memory of the first moved byte of the piece, counted from the beginning of
    /// the iteration.
    pub offset: L,
    /// Position in the packed stream of the first moved byte of the piece.
    pub begin: W,
    /// Position in the packed stream after the last moved byte of the piece.
    pub end: W,
}

/// Numbers from which a thread of the kernel `pieces` computes where its piece lies in the packed
/// stream. `rows` and `bytes` describe the table of the layout, and `origin` and `end` describe the
/// launch. [`part_of_piece`] says how positions in the packed stream are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceTable<W> {
    /// Number of pieces in an iteration of the innermost loop.
    pub rows: Split<W>,
    /// Number of packed bytes in an iteration of the innermost loop, modulo 2^32.
    pub bytes: W,
    /// Position in the packed stream, modulo 2^32, at which an iteration of the kernel's outermost
    /// loop begins: the iteration in which the launch begins. The position may be negative.
    pub origin: W,
    /// Position in the packed stream after the last byte of the launch.
    pub end: W,
}

/// Returns the bytes of the piece with the index `index` that a launch moves. The index is counted
/// from the beginning of the iteration of the kernel's outermost loop in which the launch begins.
///
/// Positions in the packed stream are counted so that the first byte of the launch has the position
/// `max_piece`, which is the maximum number of bytes in a piece. If the launch begins in the middle
/// of a piece, the piece begins at a smaller position, but not at a negative one. A launch has so
/// few bytes that all positions of its pieces are less than 2^31. Therefore it suffices to compute
/// positions modulo 2^32: intermediate results may wrap around, and the table has only the lower 32
/// bits of positions and of numbers of bytes.
///
/// `entry` returns an entry of the layout's table. The table describes one iteration of the
/// innermost loop. For each piece, it has first the position in the packed stream and then the
/// offset in user memory. The position takes one entry. The offset takes one entry or, if `is_far`
/// is true, two entries, the lower half first. Positions and offsets are counted from the beginning
/// of the iteration. The last entry of the table has the number of packed bytes in the iteration.
pub fn part_of_piece<A: Arithmetic>(
    a: &mut A,
    index: A::Word,
    table: PieceTable<A::Word>,
    (max_piece, is_far): (A::Word, bool),
    mut entry: impl FnMut(&mut A, A::Word) -> A::Word,
) -> Part<A::Word, A::Long> {
    let (iteration, row) = split(a, index, table.rows);
    let one = a.constant(1);
    let mut at = a.add(row, row);
    if is_far {
        at = a.add(at, row);
    }
    let packed = entry(a, at);
    let mut following = |a: &mut A| {
        at = a.add(at, one);
        entry(a, at)
    };
    let low = following(a);
    let user = if is_far {
        let high = following(a);
        a.join(low, high)
    } else {
        a.widen(low)
    };
    let next = following(a);
    let start = a.multiply_add(iteration, table.bytes, table.origin);
    let position = a.add(start, packed);
    let next = a.add(start, next);
    let begin = a.maximum(position, max_piece);
    let end = a.minimum(next, table.end);
    let skipped = a.subtract(begin, position);
    let skipped = a.widen(skipped);
    Part { iteration, offset: a.add_long(user, skipped), begin, end }
}

/// Returns the offset in user memory of the element with the coordinates `indices`. `strides[i]` is
/// the distance in user memory, in bytes, between two elements that differ by one in coordinate `i`
/// and agree in the other two.
pub fn offset_of_element<A: Arithmetic>(a: &mut A, indices: [A::Word; 3], strides: [A::Long; 3]) -> A::Long {
    let [x, y, z] = indices.map(|index| a.widen(index));
    let sum = a.multiply_long(x, strides[0]);
    let sum = a.multiply_add_long(y, strides[1], sum);
    a.multiply_add_long(z, strides[2], sum)
}

/// Returns the position in the packed stream of the element with the coordinates `indices`.
/// `strides[i]` is the distance in the packed stream, in bytes, between two elements that differ by
/// one in coordinate `i` and agree in the other two.
pub fn position_of_element<A: Arithmetic>(
    a: &mut A,
    indices: [A::Word; 3],
    strides: [A::Word; 3],
) -> A::Word {
    let sum = a.multiply(indices[0], strides[0]);
    let sum = a.multiply_add(indices[1], strides[1], sum);
    a.multiply_add(indices[2], strides[2], sum)
}

/// Implementation of [`Arithmetic`] that computes with numbers on the host.
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

    fn join(&mut self, low: u32, high: u32) -> u64 {
        u64::from(high) << 32 | u64::from(low)
    }

    fn add_long(&mut self, a: u64, b: u64) -> u64 {
        a.wrapping_add(b)
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

    /// Checks that quotients and remainders are exact. Each divisor is tested with 0, with the
    /// largest permitted index, and with indices just below, at and just above several multiples of
    /// the divisor.
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
