//! The loops of a layout. They repeat its innermost part, which is a run of contiguous bytes or a
//! table of blocks.
//!
//! The outermost loop of a layout repeats the instances of a call. So the number of its iterations
//! is not known before the call, and a long transfer is split at iterations of this loop.

use std::ops::Range;

use ddtc::internal::nest::Disjoint;

use crate::index::{Chain, Divisor};

/// Maximum number of packed bytes in one iteration of the outermost loop of a layout. With this
/// limit, one iteration has at most half as many words as [`MAX_WORD`](crate::index::MAX_WORD),
/// even if a word has only 1 byte.
pub const MAX_ITERATION: u64 = 1 << 30;

/// Upper limit (exclusive) of the offsets that sums of 32 bits can represent.
const NARROW: u64 = 1 << 32;

/// One loop of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Number of iterations of the loop. For the outermost loop of a layout, it is the number of
    /// iterations for each instance. Kernels do not use this number, since the outermost loop has
    /// as many times more iterations as a call has instances.
    pub trip: u64,
    /// Distance in user memory from the beginning of one iteration to the beginning of the next, in
    /// bytes.
    pub stride: i64,
}

/// The innermost part of a layout, which the loops repeat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Innermost {
    /// Number of packed bytes.
    pub(crate) bytes: u64,
    /// Number of bytes of user memory from the first mapped byte to the end of the last one.
    pub(crate) span: u64,
    /// The largest power of two, up to 16, that divides the lengths of all blocks and the distances
    /// between them.
    pub(crate) unit: u32,
}

/// The loops of a layout, and what follows from them.
#[derive(Clone, Debug)]
pub struct Loops {
    start: i64,
    /// The loops, from the innermost to the outermost. There is at least one loop.
    list: Vec<Loop>,
    /// Number of packed bytes in one iteration of the outermost loop.
    iteration: u64,
    unit: u32,
    wide: bool,
    /// Maximum number of iterations of the outermost loop in one launch. With more iterations, an
    /// offset might not fit into the sums of the kernel.
    reach: u64,
    disjoint: Disjoint,
}

/// The first part of a range of packed bytes. One launch moves this part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Address in user memory to which a kernel adds offsets. It belongs to the beginning of the
    /// iteration of the outermost loop in which the part begins.
    pub user: u64,
    /// Number of packed bytes from the beginning of this iteration to the part.
    pub first: u64,
    /// Number of packed bytes in the part.
    pub bytes: u64,
}

/// Returns the largest power of two, up to 16, that divides `x`.
pub(crate) fn power(x: u64) -> u32 {
    1 << x.trailing_zeros().min(4)
}

/// Returns the strides of the nested loops `loops`, in the form in which a kernel gets them as
/// parameters: the stride of the innermost loop and, for each other loop, a divisor and a step. The
/// step is the stride of that loop, less the distance by which all iterations of the next inner
/// loop advance. A kernel with sums of 32 bits uses only the lower 32 bits of each stride and of
/// each step.
pub(crate) fn chain(loops: &[Loop]) -> Chain<u32, u64> {
    let divisions = loops.windows(2).map(|pair| {
        let [inner, outer] = pair else { unreachable!("a window of two") };
        let whole = (inner.trip as i64).wrapping_mul(inner.stride);
        (Divisor::new(inner.trip as u32), outer.stride.wrapping_sub(whole) as u64)
    });
    Chain { stride: loops[0].stride as u64, divisions: divisions.collect() }
}

impl Loops {
    /// Returns the loops `list`, which repeat the part `innermost` of a layout. The innermost loop
    /// comes first in `list`, and the outermost loop last. All offsets of the layout are counted
    /// from its first byte, which lies `start` bytes after the address of the user's buffer.
    /// Returns `None` if one iteration of the outermost loop has more than [`MAX_ITERATION`] packed
    /// bytes.
    pub(crate) fn new(
        start: i64,
        list: Vec<Loop>,
        innermost: Innermost,
        disjoint: Disjoint,
    ) -> Option<Loops> {
        let (outer, inner) = list.split_last().expect("the instance count is a loop");
        let iteration = inner
            .iter()
            .try_fold(innermost.bytes, |bytes, l| bytes.checked_mul(l.trip))
            .filter(|&bytes| bytes <= MAX_ITERATION)?;
        let strides = list.iter().map(|l| power(l.stride as u64));
        let unit = strides.fold(innermost.unit, u32::min);
        // `span` is the length of one iteration of the outermost loop in user memory. If no stride
        // is negative, all bytes of the iteration lie at offsets from 0 to `span`.
        let span = inner.iter().fold(innermost.span, |span, l| {
            span.saturating_add((l.trip - 1).saturating_mul(l.stride.unsigned_abs()))
        });
        let forward = list.iter().all(|l| l.stride >= 0);
        let step = outer.stride.unsigned_abs();
        let wide = !forward || span > NARROW / 2 || step > NARROW / 2;
        let reach = if wide || step == 0 { u64::MAX } else { 1 + (NARROW - span) / step };
        Some(Loops { start, iteration, unit, wide, reach, disjoint, list })
    }

    /// Returns the loops, from the innermost to the outermost.
    pub fn list(&self) -> &[Loop] {
        &self.list
    }

    /// Returns the number of packed bytes in one iteration of the outermost loop.
    pub fn iteration(&self) -> u64 {
        self.iteration
    }

    /// Returns the largest width of words, in bytes, for which every word of the layout is aligned
    /// if the first byte of the layout is aligned.
    pub fn unit(&self) -> u32 {
        self.unit
    }

    /// Returns true if the sums of a kernel's index arithmetic must have 64 bits, and false if 32
    /// bits suffice.
    pub fn is_wide(&self) -> bool {
        self.wide
    }

    /// Returns the offset of the layout's first byte from the address of the user's buffer, in
    /// bytes.
    pub fn start(&self) -> i64 {
        self.start
    }

    /// Returns true if it is known that all packed bytes of `count` instances belong to different
    /// bytes of user memory.
    pub fn is_disjoint(&self, count: u64) -> bool {
        self.disjoint.holds(count)
    }

    /// Returns the width, in bytes, of the words in which the packed bytes `range` are moved.
    /// `user` is the address of the user's buffer, and `packed` is the address of the first packed
    /// byte of the range. The result is the largest width that the layout allows and to which the
    /// layout's first byte in user memory, the address `packed`, and both ends of the range are
    /// aligned.
    pub fn width(&self, user: u64, packed: u64, range: &Range<u64>) -> u32 {
        let first = user.wrapping_add(self.start as u64);
        power(first | packed | range.start | range.end).min(self.unit)
    }

    /// Returns the part of the packed bytes `range` that a single launch can move, from the
    /// beginning of the range. It has at most `max_bytes` bytes. `user` is the address of the
    /// user's buffer.
    pub fn part(&self, user: u64, range: Range<u64>, max_bytes: u64) -> Part {
        let (outer, first) = (range.start / self.iteration, range.start % self.iteration);
        let stride = self.list.last().map_or(0, |l| l.stride) as u64;
        let reached = outer.saturating_add(self.reach).saturating_mul(self.iteration);
        let end = reached.min(range.end).min(range.start.saturating_add(max_bytes));
        Part {
            user: user.wrapping_add(self.start as u64).wrapping_add(outer.wrapping_mul(stride)),
            first,
            bytes: end - range.start,
        }
    }
}
