//! The nested loops of a layout. The body of the innermost loop is a run of contiguous bytes or a
//! table of blocks.
//!
//! The outermost loop repeats the instances of a call that packs or unpacks. So its trip count is
//! not known before the call. A long transfer is split into launches that each cover a limited
//! number of iterations of the outermost loop.
//!
//! The indices of a kernel have 32 bits. If one iteration of the outermost loop has too many bytes
//! for such indices, only the inner loops are *loops of the kernel*: their strides are parameters
//! of the kernel. The loops around them are the *host loops*. The host computes the address at
//! which one iteration of the host loops begins, and a launch moves bytes of one such iteration
//! only. As many loops as possible are loops of the kernel. So an iteration of the host loops has
//! more than 1 GiB, and a transfer needs few launches.

use std::ops::Range;

use ddtc::internal::nest::Disjoint;

use crate::index::{Chain, Divisor};

/// Maximum number of packed bytes in one iteration of a kernel's outermost loop. The host itself
/// handles a loop whose iterations are longer. With this limit, even if a word has only 1 byte, the
/// number of words in an iteration is at most half of [`MAX_WORD`](crate::index::MAX_WORD). The
/// divisions of a kernel are exact for all indices below `MAX_WORD`. There is one exception: the
/// iterations of the kernel `pieces` may be longer, because it counts pieces, not words.
pub const MAX_ITERATION: u64 = 1 << 30;

/// Exclusive upper limit, in bytes, of the offsets in user memory that a kernel can compute with
/// 32-bit arithmetic.
const NARROW: u64 = 1 << 32;

/// One of the nested loops of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Number of iterations of the loop. For the outermost loop of a layout, it is the number of
    /// iterations for each instance: in a call, this loop has `trip` times as many iterations as
    /// there are instances. Kernels do not use the trip count of the outermost loop.
    pub trip: u64,
    /// Distance in user memory from the beginning of one iteration to the beginning of the next, in
    /// bytes.
    pub stride: i64,
}

/// Properties of the body of a layout's innermost loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Innermost {
    /// Number of packed bytes of one execution of the body.
    pub(crate) bytes: u64,
    /// Number of bytes of user memory from the lowest byte that the body moves to the end of the
    /// highest one.
    pub(crate) span: u64,
    /// The largest power of two, up to 16, that divides the lengths of all blocks of the body and
    /// the distances between these blocks.
    pub(crate) unit: u32,
}

/// The nested loops of a layout, with properties that are computed from them once.
#[derive(Clone, Debug)]
pub struct Loops {
    start: i64,
    /// The loops, from the innermost to the outermost. There is at least one loop.
    list: Vec<Loop>,
    /// Number of loops of the kernel, which are the first ones of `list`. The others are the host
    /// loops. At least one loop is a loop of the kernel.
    in_kernel: usize,
    /// Number of packed bytes in one iteration of the kernel's outermost loop.
    iteration: u64,
    unit: u32,
    wide: bool,
    /// Maximum number of iterations of the outermost loop of the kernel in one launch. With more
    /// iterations, an offset in user memory might be too large for the kernel's 32-bit arithmetic.
    /// The value `u64::MAX` means that there is no limit: the kernel computes with 64 bits, or the
    /// stride of that loop is 0.
    reach: u64,
    disjoint: Disjoint,
}

/// The packed bytes that one launch moves. They are the first bytes of a longer range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Address in user memory to which the kernel adds the offsets that it computes. It is the
    /// address at which an iteration of the kernel's outermost loop begins: the iteration in which
    /// the launch begins.
    pub user: u64,
    /// Position in the packed stream of the first byte of the launch. The position is counted from
    /// the beginning of the iteration of the kernel's outermost loop in which the launch begins.
    pub first: u64,
    /// Number of packed bytes that the launch moves.
    pub bytes: u64,
}

/// Returns the largest power of two, up to 16, that divides `x`.
pub(crate) fn power(x: u64) -> u32 {
    1 << x.trailing_zeros().min(4)
}

/// Converts the nested loops `loops`, the innermost first, into the parameters of a kernel: the
/// stride of the innermost loop and, for each other loop, a divisor and a step. The divisor is the
/// trip count of the next inner loop. The step is `s - n * t`. Here `s` is the stride of the loop,
/// and `n` and `t` are the trip count and the stride of the next inner loop. A kernel with 32-bit
/// arithmetic uses only the lower 32 bits of the stride and of the steps.
pub(crate) fn chain(loops: &[Loop]) -> Chain<u32, u64> {
    let divisions = loops.windows(2).map(|pair| {
        let [inner, outer] = pair else { unreachable!("a window of two") };
        let whole = (inner.trip as i64).wrapping_mul(inner.stride);
        (Divisor::new(inner.trip as u32), outer.stride.wrapping_sub(whole) as u64)
    });
    Chain { stride: loops[0].stride as u64, divisions: divisions.collect() }
}

impl Loops {
    /// Describes the nested loops `list`, whose body is `innermost`. The innermost loop comes first
    /// in `list`, and the outermost loop last. The first byte of the layout lies `start` bytes
    /// after the address of the user's buffer, and all offsets of the layout are counted from this
    /// byte.
    pub(crate) fn new(start: i64, list: Vec<Loop>, innermost: Innermost, disjoint: Disjoint) -> Loops {
        let (mut iteration, mut in_kernel) = (innermost.bytes, 1);
        for inner in &list[..list.len() - 1] {
            match iteration.checked_mul(inner.trip).filter(|&bytes| bytes <= MAX_ITERATION) {
                Some(bytes) => (iteration, in_kernel) = (bytes, in_kernel + 1),
                None => break,
            }
        }
        let strides = list.iter().map(|l| power(l.stride as u64));
        let unit = strides.fold(innermost.unit, u32::min);
        let (outer, inner) = list[..in_kernel].split_last().expect("the kernel knows a loop");
        // `span` is the number of bytes of user memory over which one iteration of the outermost
        // loop of the kernel extends. If no stride is negative, the offsets of all bytes of the
        // iteration are at least 0 and less than `span`.
        let span = inner.iter().fold(innermost.span, |span, l| {
            span.saturating_add((l.trip - 1).saturating_mul(l.stride.unsigned_abs()))
        });
        let forward = list[..in_kernel].iter().all(|l| l.stride >= 0);
        let step = outer.stride.unsigned_abs();
        let wide = !forward || span > NARROW / 2 || step > NARROW / 2;
        let reach = if wide || step == 0 { u64::MAX } else { 1 + (NARROW - span) / step };
        Loops { start, in_kernel, iteration, unit, wide, reach, disjoint, list }
    }

    /// Returns the loops, from the innermost to the outermost.
    pub fn list(&self) -> &[Loop] {
        &self.list
    }

    /// Returns the loops of the kernel, from the innermost to the outermost. The other loops of the
    /// layout are host loops, which the host itself handles.
    pub fn in_kernel(&self) -> &[Loop] {
        &self.list[..self.in_kernel]
    }

    /// Returns the number of packed bytes in one iteration of the kernel's outermost loop.
    pub fn iteration(&self) -> u64 {
        self.iteration
    }

    /// Returns the maximum width, in bytes, of the words in which the layout can be moved. If the
    /// first byte of the layout is aligned to this width, all words of this width are aligned.
    pub fn unit(&self) -> u32 {
        self.unit
    }

    /// Returns true if kernels must compute offsets in user memory with 64-bit arithmetic, and
    /// false if 32 bits suffice.
    pub fn is_wide(&self) -> bool {
        self.wide
    }

    /// Returns the offset of the layout's first byte from the address of the user's buffer, in
    /// bytes.
    pub fn start(&self) -> i64 {
        self.start
    }

    /// Returns true if all packed bytes of `count` instances are known to belong to different bytes
    /// of user memory.
    pub fn is_disjoint(&self, count: u64) -> bool {
        self.disjoint.holds(count)
    }

    /// Returns the width, in bytes, of the words in which a kernel moves the packed bytes `range`.
    /// `user` is the address of the user's buffer, and `packed` is the address of the first packed
    /// byte of the range. The result is at most [`Loops::unit`]. It is the largest power of two up
    /// to this limit that divides the address of the layout's first byte in user memory, the
    /// address `packed`, and both ends of the range.
    pub fn width(&self, user: u64, packed: u64, range: &Range<u64>) -> u32 {
        let first = user.wrapping_add(self.start as u64);
        power(first | packed | range.start | range.end).min(self.unit)
    }

    /// Returns the first packed bytes of `range`: as many as a single launch can move, and at most
    /// `max_bytes`. `user` is the address of the user's buffer.
    pub fn part(&self, user: u64, range: Range<u64>, max_bytes: u64) -> Part {
        let (in_kernel, host) = self.list.split_at(self.in_kernel);
        let outermost = in_kernel[self.in_kernel - 1];
        // `bytes` is the number of packed bytes in one iteration of the host loops, and `inside` is
        // the position of the first byte of the range within the iteration that contains it.
        // Without host loops, all bytes belong to a single iteration.
        let bytes = if host.is_empty() { u64::MAX } else { self.iteration * outermost.trip };
        let (mut index, inside) = (range.start / bytes, range.start % bytes);
        let mut user = user.wrapping_add(self.start as u64);
        for (i, l) in host.iter().enumerate() {
            // The last host loop is the outermost loop of the layout. Its `trip` is the number of
            // iterations for one instance only. So do not divide by `trip`: the whole rest of
            // `index` is the iteration of this loop.
            let trip = if i + 1 < host.len() { l.trip } else { u64::MAX };
            user = user.wrapping_add((index % trip).wrapping_mul(l.stride as u64));
            index /= trip;
        }
        let (outer, first) = (inside / self.iteration, inside % self.iteration);
        user = user.wrapping_add(outer.wrapping_mul(outermost.stride as u64));
        let reached = outer.saturating_add(self.reach).saturating_mul(self.iteration).min(bytes) - inside;
        let left = range.end - range.start;
        Part { user, first, bytes: reached.min(left).min(max_bytes) }
    }
}
