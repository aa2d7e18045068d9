//! The part of [`Buffers`] that works on values: conversions between representations, and
//! reductions. It needs the feature `operations`.

use super::Buffers;
use crate::kind::Op;
use crate::micro::resize::{Blocks, Conversion};
use crate::micro::{Direction, reduce, resize};
use crate::nest::{Leaf, Offsets, Value};

/// Most bytes of a value that [`Buffers::convert`] moves.
pub const LONGEST_VALUE: usize = 16;

/// Most bytes of a value that [`Buffers::combine`] combines.
const LONGEST_COMBINED: usize = 64;

/// Blocks of values that are combined with those in user memory: block `i` of `n` at `at + i * step`, of `units` values that lie one after the
/// other.
#[derive(Clone, Copy, Debug)]
pub struct Combined {
    /// The operation.
    pub op: Op,
    /// The value.
    pub value: Value,
    /// Of the first block.
    pub at: Offsets,
    /// Number of blocks.
    pub n: u64,
    /// From one block to the next.
    pub step: Offsets,
    /// Values of a block.
    pub units: u64,
    /// Bytes of a value on the packed side: without padding inside in a stream, as in user memory in a second layout.
    pub packed: i64,
}

/// Blocks of values that are handed to somebody: block `i` of `n` at `at + i * step`, of `units` values one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Handed {
    /// The value.
    pub value: Value,
    /// Of the first block.
    pub at: Offsets,
    /// Number of blocks.
    pub n: u64,
    /// From one block to the next.
    pub step: Offsets,
    /// Values of a block.
    pub units: u64,
}

/// The element of an array as a compiler has it, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    /// From one element to the next.
    pub extent: usize,
    /// Its alignment, at most 16.
    pub alignment: usize,
}

/// Bytes of a row of elements that is copied to where it is aligned.
pub(super) const STAGE: usize = 4096;

/// As any element is aligned.
#[repr(align(64))]
struct Stage([u8; STAGE]);

impl Stage {
    /// One for each side.
    fn two() -> (Stage, Stage) {
        (Stage([0; STAGE]), Stage([0; STAGE]))
    }
}

impl Buffers {
    /// Moves `n` blocks of `units` values, in order, each converted, up to the first that does not fit: how many those are.
    pub fn resized<C: Conversion>(
        &self,
        (user, packed): (i64, i64),
        n: u64,
        (user_stride, packed_stride): (i64, i64),
        units: u64,
    ) -> u64 {
        let (user, packed) = (self.user(user), self.packed(packed));
        let ((dst, dst_stride), (src, src_stride)) = match self.direction {
            Direction::Pack => ((packed, packed_stride), (user, user_stride)),
            Direction::Unpack => ((user, user_stride), (packed, packed_stride)),
        };
        let blocks = Blocks { dst, src, n, dst_stride, src_stride, units };
        // SAFETY: the blocks are valid by the contract of `new`, and so is the level.
        unsafe { resize::function::<C>(self.level)(&blocks) }
    }

    /// Moves one value of so many bytes on each side, as `convert` makes the bytes of the one side from those of the other; nothing is
    /// moved where it fails.
    ///
    /// # Panics
    /// If a side has more than [`LONGEST_VALUE`] bytes.
    pub fn convert<E>(
        &self,
        (user, packed): (i64, i64),
        (user_len, packed_len): (usize, usize),
        convert: impl FnOnce(&[u8], &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (user, packed) = (self.user(user), self.packed(packed));
        let ((src, from), (dst, to)) = match self.direction {
            Direction::Pack => ((user, user_len), (packed, packed_len)),
            Direction::Unpack => ((packed, packed_len), (user, user_len)),
        };
        let (mut old, mut new) = ([0; LONGEST_VALUE], [0; LONGEST_VALUE]);
        let (old, new) = (&mut old[..from], &mut new[..to]);
        // SAFETY: a block of the source, valid by the contract of `new`; it fits, and nobody else has the array.
        unsafe { std::ptr::copy_nonoverlapping(src, old.as_mut_ptr(), from) };
        convert(old, new)?;
        // SAFETY: a block of the destination, in the same way.
        unsafe { std::ptr::copy_nonoverlapping(new.as_ptr(), dst, to) };
        Ok(())
    }

    /// Combines values of the packed side with those in user memory, in order, whatever the direction of the handle says.
    pub fn combine(&self, run: &Combined) {
        let Combined { op, value, at, n, step, units, packed } = *run;
        // A pair comes alone, and what has padding on one side has no runs.
        let alone = value.user() != value.packed() || reduce::is_pair(value);
        let inner = Offsets::new(value.user(), packed);
        match reduce::function(op, value, self.level) {
            Some(f) if !alone => {
                let (user, src) = (self.user(at.user), self.packed(at.packed));
                // SAFETY: the blocks are valid by the contract of `new`, and so is the level.
                unsafe { f(user, src, n, step.user, step.packed, units * packed as u64) };
            }
            Some(f) if units == 1 => {
                let (user, src) = (self.user(at.user), self.packed(at.packed));
                // SAFETY: the same.
                unsafe { f(user, src, n, step.user, step.packed, packed as u64) };
            }
            Some(f) => {
                for i in 0..n as i64 {
                    let at = at.step(step, i);
                    let (user, src) = (self.user(at.user), self.packed(at.packed));
                    // SAFETY: the same.
                    unsafe { f(user, src, units, inner.user, inner.packed, packed as u64) };
                }
            }
            None => {
                for i in 0..n as i64 {
                    let at = at.step(step, i);
                    (0..units as i64).for_each(|k| self.combine_one(op, value, at.step(inner, k), packed));
                }
            }
        }
    }

    /// Combines one value by the meaning of the operation.
    fn combine_one(&self, op: Op, value: Value, at: Offsets, packed: i64) {
        let (mut new, mut old) = ([0; LONGEST_COMBINED], [0; LONGEST_COMBINED]);
        let (new, old) = (&mut new[..packed as usize], &mut old[..value.user() as usize]);
        let (user, src) = (self.user(at.user), self.packed(at.packed));
        // SAFETY: one value on both sides, valid by the contract of `new`; it fits, and nobody else has the arrays.
        unsafe {
            std::ptr::copy_nonoverlapping(src, new.as_mut_ptr(), new.len());
            std::ptr::copy_nonoverlapping(user, old.as_mut_ptr(), old.len());
        }
        reduce::meaning::combine(op, value, new, old);
        for (start, end) in reduce::meaning::written(op, value) {
            // SAFETY: bytes of the value in user memory, padding left out.
            unsafe {
                std::ptr::copy_nonoverlapping(old[start..end].as_ptr(), user.wrapping_add(start), end - start)
            };
        }
    }

    /// Calls `f(packed values, user values, number)` for rows of values, in order. Both are arrays of elements: where they lie so in memory, aligned,
    /// those themselves, else copies; what `f` makes of the user's values is written back, but for padding.
    ///
    /// # Panics
    /// If an element has more than a few dozen bytes.
    pub fn hand_on(&self, run: &Handed, element: Element, f: &mut dyn FnMut(*const u8, *mut u8, u64)) {
        let Handed { value, at, n, step, units } = *run;
        let Element { extent, alignment } = element;
        let (user_len, packed_len) = (value.user() as usize, value.packed() as usize);
        let in_place = user_len == extent && packed_len == extent;
        let aligned = |p: *mut u8| p.addr().is_multiple_of(alignment);
        // Room that the first row asks for which needs it.
        let mut stages: Option<(Stage, Stage)> = None;
        for i in 0..n as i64 {
            let block = at.step(step, i);
            let (user, packed) = (self.user(block.user), self.packed(block.packed));
            if in_place && aligned(user) && aligned(packed) {
                f(packed, user, units);
                continue;
            }
            let (new, old) = stages.get_or_insert_with(Stage::two);
            let at_once = (STAGE / extent) as u64;
            let mut first = 0;
            while first < units {
                let m = at_once.min(units - first);
                let place = |k: u64| block + value.span((first + k) as i64);
                for k in 0..m {
                    let (from, to) = (place(k), k as usize * extent);
                    let (user, packed) = (self.user(from.user), self.packed(from.packed));
                    let tail = reduce::meaning::written(Op::Minloc, value)[1];
                    let index = tail.1 - tail.0;
                    // SAFETY: one value on both sides, valid by the contract of `new`, goes to an element of its own; the index of a pair to
                    // where it lies in memory.
                    unsafe {
                        let (new, old) = (new.0[to..].as_mut_ptr(), old.0[to..].as_mut_ptr());
                        std::ptr::copy_nonoverlapping(user, old, user_len);
                        std::ptr::copy_nonoverlapping(packed, new, packed_len - index);
                        let (source, target) = (packed.add(packed_len - index), new.add(user_len - index));
                        std::ptr::copy_nonoverlapping(source, target, index);
                    }
                }
                f(new.0.as_ptr(), old.0.as_mut_ptr(), m);
                for k in 0..m {
                    let (user, from) = (self.user(place(k).user), k as usize * extent);
                    for (start, end) in reduce::meaning::written(Op::Minloc, value) {
                        let made = &old.0[from + start..from + end];
                        // SAFETY: bytes of the value in user memory, padding left out.
                        unsafe {
                            std::ptr::copy_nonoverlapping(made.as_ptr(), user.wrapping_add(start), made.len())
                        };
                    }
                }
                first += m;
            }
        }
    }
}
