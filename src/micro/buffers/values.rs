//! Methods of [`Buffers`] that work on values instead of bytes: conversions between
//! representations, and reductions. They need the feature `operations`.

use super::Buffers;
use crate::kind::Op;
use crate::micro::resize::{Blocks, Conversion};
use crate::micro::{Direction, reduce, resize};
use crate::nest::{Leaf, Offsets, Value};

/// Maximum number of bytes, in user memory and in packed memory, of a value that
/// [`Buffers::convert`] converts.
pub const LONGEST_VALUE: usize = 16;

/// Maximum number of bytes of a value that [`Buffers::combine`] combines without a micro-kernel.
const LONGEST_COMBINED: usize = 64;

/// Blocks of values on the packed side that [`Buffers::combine`] combines with values in user
/// memory. Block `i` of the `n` blocks lies at `at + i * step` and has `units` values, which follow
/// each other directly.
#[derive(Clone, Copy, Debug)]
pub struct Combined {
    /// Operation by which the values are combined.
    pub op: Op,
    /// Class of the values.
    pub value: Value,
    /// Offsets of the first block, in user memory and in packed memory.
    pub at: Offsets,
    /// Number of blocks.
    pub n: u64,
    /// Distance in bytes from one block to the next, in user memory and in packed memory.
    pub step: Offsets,
    /// Number of values in a block.
    pub units: u64,
    /// Number of bytes of a value on the packed side. If the packed side is the packed stream of a
    /// call, a value has no padding inside. In a transfer between two layouts, the packed side is
    /// the memory of the second layout, where a value has the same form as in user memory.
    pub packed: i64,
}

/// Blocks of values that [`Buffers::hand_on`] passes to a function of its caller. Block `i` of the
/// `n` blocks lies at `at + i * step` and has `units` values, which follow each other directly.
#[derive(Clone, Copy, Debug)]
pub struct Handed {
    /// Class of the values.
    pub value: Value,
    /// Offsets of the first block, in user memory and in packed memory.
    pub at: Offsets,
    /// Number of blocks.
    pub n: u64,
    /// Distance in bytes from one block to the next, in user memory and in packed memory.
    pub step: Offsets,
    /// Number of values in a block.
    pub units: u64,
}

/// Extent and alignment, in bytes, of the elements of an array as a compiler lays it out.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    /// Distance from one element to the next.
    pub extent: usize,
    /// Alignment of the element, at most 16.
    pub alignment: usize,
}

/// Number of bytes of a stage, which is a temporary buffer. The values of one side are copied into
/// a stage if they do not lie in memory as an aligned array of elements.
pub(super) const STAGE: usize = 4096;

/// Temporary buffer for values, whose alignment suffices for any type of element.
#[repr(align(64))]
struct Stage([u8; STAGE]);

impl Stage {
    /// Returns two temporary buffers: one for values of the packed side, and one for values of the
    /// user side.
    fn two() -> (Stage, Stage) {
        (Stage([0; STAGE]), Stage([0; STAGE]))
    }
}

impl Buffers {
    /// Moves `n` blocks of `units` values, in order, and converts each value as `C` defines. Stops
    /// before the first value that the destination cannot hold, and returns the number of values
    /// before it.
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
        // SAFETY: by the contract of `new`, the blocks are valid and the machine runs `self.level`,
        // for which the function is looked up.
        unsafe { resize::function::<C>(self.level)(&blocks) }
    }

    /// Moves one value, which has `user_len` bytes in user memory and `packed_len` bytes in packed
    /// memory. `convert` makes the bytes of the destination from the bytes of the source.
    ///
    /// # Errors
    /// Returns the error of `convert`; in this case nothing is moved.
    ///
    /// # Panics
    /// If the value has more than [`LONGEST_VALUE`] bytes on one of the two sides.
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
        // SAFETY: `src` is a block of `from` bytes on the source side, readable by the contract of
        // `new`. `old` is a slice of `from` bytes of a local array, which overlaps nothing else.
        unsafe { std::ptr::copy_nonoverlapping(src, old.as_mut_ptr(), from) };
        convert(old, new)?;
        // SAFETY: `dst` is a block of `to` bytes on the destination side, writable by the contract
        // of `new`. `new` is a slice of `to` bytes of a local array, which overlaps nothing else.
        unsafe { std::ptr::copy_nonoverlapping(new.as_ptr(), dst, to) };
        Ok(())
    }

    /// Combines the values of the packed side that `run` describes with the values in user memory,
    /// in order. The user side is always the destination; the direction of the handle does not
    /// matter.
    ///
    /// # Panics
    /// If there is no micro-kernel for the operation and the class of values, and a value has more
    /// than 64 bytes on one side.
    pub fn combine(&self, run: &Combined) {
        let Combined { op, value, at, n, step, units, packed } = *run;
        // Pairs of a value and an index, and values with padding on one side only, are passed to
        // the micro-kernel as blocks of a single value each.
        let alone = value.user() != value.packed() || reduce::is_pair(value);
        let inner = Offsets::new(value.user(), packed);
        match reduce::function(op, value, self.level) {
            Some(f) if !alone => {
                let (user, src) = (self.user(at.user), self.packed(at.packed));
                // SAFETY: by the contract of `new`, the blocks are valid and the machine runs
                // `self.level`, for which `f` was looked up. A block has `units` whole values, of
                // the same number of bytes on both sides.
                unsafe { f(user, src, n, step.user, step.packed, units * packed as u64) };
            }
            Some(f) if units == 1 => {
                let (user, src) = (self.user(at.user), self.packed(at.packed));
                // SAFETY: by the contract of `new`, the blocks are valid and the machine runs
                // `self.level`, for which `f` was looked up. Each block is one value of `packed`
                // bytes on the packed side.
                unsafe { f(user, src, n, step.user, step.packed, packed as u64) };
            }
            Some(f) => {
                for i in 0..n as i64 {
                    let at = at.step(step, i);
                    let (user, src) = (self.user(at.user), self.packed(at.packed));
                    // SAFETY: by the contract of `new`, the blocks are valid and the machine runs
                    // `self.level`, for which `f` was looked up. The blocks of this call are the
                    // `units` values of block `i`, one value each.
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

    /// Combines one value at the offsets `at` by the scalar reference of the operation, without a
    /// micro-kernel.
    fn combine_one(&self, op: Op, value: Value, at: Offsets, packed: i64) {
        let (mut new, mut old) = ([0; LONGEST_COMBINED], [0; LONGEST_COMBINED]);
        let (new, old) = (&mut new[..packed as usize], &mut old[..value.user() as usize]);
        let (user, src) = (self.user(at.user), self.packed(at.packed));
        // SAFETY: the value has `packed` bytes on the packed side and `value.user()` bytes on the
        // user side, which are readable by the contract of `new`. `new` and `old` are slices of
        // these lengths of two local arrays, which overlap nothing else.
        unsafe {
            std::ptr::copy_nonoverlapping(src, new.as_mut_ptr(), new.len());
            std::ptr::copy_nonoverlapping(user, old.as_mut_ptr(), old.len());
        }
        reduce::meaning::combine(op, value, new, old);
        for (start, end) in reduce::meaning::written(op, value) {
            // SAFETY: `start..end` are the bytes that the operation writes, inside the value in
            // user memory, which is writable by the contract of `new`. The source is a slice of a
            // local array.
            unsafe {
                std::ptr::copy_nonoverlapping(old[start..end].as_ptr(), user.wrapping_add(start), end - start)
            };
        }
    }

    /// Passes the values of the blocks `run` to the function `f`, several values in each call and
    /// in order. `f` gets the address of packed values, the address of user values, and the number
    /// of values. Both addresses point to arrays whose elements have the form `element`. If the
    /// values lie in memory as aligned arrays of this form, `f` gets the addresses of the values
    /// themselves. Otherwise `f` gets copies of a limited number of values at a time. The bytes
    /// that `f` leaves in the copy of the user's values are then written back, except for padding.
    ///
    /// `element.extent` must be at least the size of a value in user memory and on the packed side,
    /// and at most 4096, the bytes of a stage.
    ///
    /// # Panics
    /// If values have to be copied and `element.extent` is 0.
    pub fn hand_on(&self, run: &Handed, element: Element, f: &mut dyn FnMut(*const u8, *mut u8, u64)) {
        let Handed { value, at, n, step, units } = *run;
        let Element { extent, alignment } = element;
        let (user_len, packed_len) = (value.user() as usize, value.packed() as usize);
        let in_place = user_len == extent && packed_len == extent;
        let aligned = |p: *mut u8| p.addr().is_multiple_of(alignment);
        // Temporary buffers for copies of values. The first block whose values have to be copied
        // creates them.
        let mut stages: Option<(Stage, Stage)> = None;
        for i in 0..n as i64 {
            let block = at.step(step, i);
            let (user, packed) = (self.user(block.user), self.packed(block.packed));
            if in_place && aligned(user) && aligned(packed) {
                f(packed, user, units);
                continue;
            }
            // The values of this block do not form an aligned array of elements. Copy up to
            // `at_once` values at a time from both sides into the temporary buffers `new` and
            // `old`, call `f` on these buffers, and write the user's values back.
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
                    // SAFETY: `new` and `old` begin at element `k` of their stages, `to` bytes from
                    // the start, where `extent` bytes follow that hold a value of either form. The
                    // value is readable on both sides by the contract of `new`. The index of a
                    // pair, its last `index` packed bytes, goes to where it lies in a pair in user
                    // memory.
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
                        // SAFETY: `start..end` are bytes of the value in user memory without its
                        // padding, writable by the contract of `new`. The source is a slice of the
                        // stage.
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
