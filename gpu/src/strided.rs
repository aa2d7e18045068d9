//! The part of the kernel `strided` that the host does: it computes which words each launch moves,
//! and the parameters of the launch. A word is the unit of data that a thread moves by one load and
//! one store. It has 16, 8, 4, 2 or 1 bytes.

use std::ops::Range;

use ddtc::internal::nest::Disjoint;

use crate::index::{Chain, Divisor, MAX_WORD};

/// Number of threads in a block.
pub const THREADS: u32 = 256;

/// Widths that a word may have, in bytes.
pub const WIDTHS: [u32; 5] = [16, 8, 4, 2, 1];

/// Maximum number of words that one launch moves. Word indices are counted from the beginning of
/// the iteration of the outermost loop that contains the first word of the launch. Such an
/// iteration has at most this many words too. So the first index of a launch is less than this
/// number, and every index is less than twice this number, which is [`MAX_WORD`].
const MAX_WORDS: u64 = MAX_WORD / 2;

/// Upper limit (exclusive) of the offsets that sums of 32 bits can represent.
const NARROW: u64 = 1 << 32;

/// Returns the number of words of `width` bytes that one thread moves. Together these words have 8
/// to 16 bytes.
pub const fn words_per_thread(width: u32) -> u32 {
    match width {
        16 | 8 => 1,
        4 => 4,
        _ => 8,
    }
}

/// One loop of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Number of iterations of the loop. This number is not used for the outermost loop of a
    /// layout, since the iterations of the outermost loop depend on the number of instances.
    pub trip: u64,
    /// Distance in user memory from the beginning of one iteration to the beginning of the next, in
    /// bytes.
    pub stride: i64,
}

/// Properties that identify a kernel, together with its direction (pack or unpack). The text of a
/// kernel depends on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Width of a word in bytes.
    pub width: u32,
    /// Number of divisions in the index arithmetic of a word.
    pub divisions: usize,
    /// Whether the sums of the index arithmetic have 64 bits. They have 32 bits otherwise.
    pub wide: bool,
}

/// A layout that consists of one run of contiguous bytes, which nested loops repeat.
#[derive(Clone, Debug)]
pub struct Strided {
    start: i64,
    run: u64,
    /// The loops around the run, from the innermost to the outermost. There is at least one loop.
    loops: Vec<Loop>,
    /// Number of packed bytes in one iteration of the outermost loop.
    iteration: u64,
    unit: u32,
    wide: bool,
    /// Maximum number of iterations of the outermost loop in one launch. With more iterations, an
    /// offset might not fit into the sums of the kernel.
    reach: u64,
    disjoint: Disjoint,
}

/// The parameters that distinguish one launch of a kernel from other launches of the same call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Address in user memory to which the kernel adds the offset of each word.
    pub user: u64,
    /// Address of the first packed byte that the launch moves.
    pub packed: u64,
    /// Index of the first word that the launch moves. The word with index 0 lies at the address
    /// `user`, and is the first word of an iteration of the outermost loop.
    pub first: u32,
    /// Number of words that the launch moves.
    pub words: u32,
}

impl Launch {
    /// Returns the number of blocks of threads in the launch, if a word has `width` bytes.
    pub fn blocks(&self, width: u32) -> u32 {
        self.words.div_ceil(THREADS * words_per_thread(width))
    }
}

/// Returns the largest power of two, up to 16, that divides `x`.
fn power(x: u64) -> u32 {
    1 << x.trailing_zeros().min(4)
}

impl Strided {
    /// Returns the layout in which the nested loops `loops` repeat a run of `run` contiguous bytes.
    /// The innermost loop comes first in `loops`, and the outermost loop last. The first byte of
    /// the layout lies `start` bytes after the address of the user's buffer.
    pub(crate) fn new(start: i64, run: u64, loops: Vec<Loop>, disjoint: Disjoint) -> Strided {
        let (outer, inner) = loops.split_last().expect("the instance count is a loop");
        let iteration = inner.iter().fold(run, |bytes, l| bytes * l.trip);
        let unit = loops.iter().map(|l| power(l.stride as u64)).chain([power(run)]).min().expect("a run");
        // `span` is the length of one iteration of the outermost loop in user memory. If no stride
        // is negative, all bytes of the iteration lie at offsets from 0 to `span`.
        let span = inner
            .iter()
            .fold(run, |span, l| span.saturating_add((l.trip - 1).saturating_mul(l.stride.unsigned_abs())));
        let forward = loops.iter().all(|l| l.stride >= 0);
        let step = outer.stride.unsigned_abs();
        let wide = !forward || span > NARROW / 2 || step > NARROW / 2;
        let reach = if wide || step == 0 { u64::MAX } else { 1 + (NARROW - span) / step };
        Strided { start, run, iteration, unit, wide, reach, disjoint, loops }
    }

    /// Returns the largest width of words, in bytes, for which every word of the layout is aligned
    /// if the first byte of the layout is aligned.
    pub fn unit(&self) -> u32 {
        self.unit
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

    /// Returns the loops over words of `width` bytes, from the innermost to the outermost. If a run
    /// has several words, then the innermost of these loops is the one over the words of a run.
    /// There is always at least one loop, and the trip count of the outermost one means nothing.
    pub fn word_loops(&self, width: u32) -> Vec<Loop> {
        let words = self.run / u64::from(width);
        let run = (words > 1).then_some(Loop { trip: words, stride: i64::from(width) });
        run.into_iter().chain(self.loops.iter().copied()).collect()
    }

    /// Returns the shape of the kernel that moves the layout in words of `width` bytes.
    pub fn shape(&self, width: u32) -> Shape {
        Shape { width, divisions: self.word_loops(width).len() - 1, wide: self.wide }
    }

    /// Returns the strides of the layout for words of `width` bytes, in the form in which a kernel
    /// gets them as parameters: the stride of the innermost loop and, for each other loop, a
    /// divisor and a step. The step is the stride of that loop, less the distance by which all
    /// iterations of the next inner loop advance. A kernel with sums of 32 bits uses only the lower
    /// 32 bits of each stride and of each step.
    pub fn chain(&self, width: u32) -> Chain<u32, u64> {
        let loops = self.word_loops(width);
        let divisions = loops.windows(2).map(|pair| {
            let [inner, outer] = pair else { unreachable!("a window of two") };
            let whole = (inner.trip as i64).wrapping_mul(inner.stride);
            (Divisor::new(inner.trip as u32), outer.stride.wrapping_sub(whole) as u64)
        });
        Chain { stride: loops[0].stride as u64, divisions: divisions.collect() }
    }

    /// Returns the width, in bytes, of the words in which the packed bytes `range` are moved.
    /// `user` is the address of the user's buffer, and `packed` is the address of the first packed
    /// byte of the range. The result is the largest width that the layout allows and to which the
    /// layout's first byte in user memory, the address `packed`, and both ends of the range are
    /// aligned.
    pub fn width(&self, user: u64, packed: u64, range: &Range<u64>) -> u32 {
        let places = user.wrapping_add(self.start as u64) | packed | range.start | range.end;
        power(places).min(self.unit)
    }

    /// Returns the launches that move the packed bytes `range` in words of `width` bytes. `user` is
    /// the address of the user's buffer, and `packed` is the address of the first packed byte of
    /// the range. The width must divide [`Strided::unit`] and both ends of the range.
    pub fn launches(
        &self,
        user: u64,
        packed: u64,
        range: Range<u64>,
        width: u32,
    ) -> impl Iterator<Item = Launch> + use<> {
        let width = u64::from(width);
        let (iteration, reach) = (self.iteration, self.reach);
        let stride = self.loops.last().map_or(0, |l| l.stride) as u64;
        let base = user.wrapping_add(self.start as u64);
        let mut at = range.start;
        std::iter::from_fn(move || {
            if at >= range.end {
                return None;
            }
            let (outer, inside) = (at / iteration, at % iteration);
            let reached = outer.saturating_add(reach).saturating_mul(iteration);
            let end = reached.min(range.end).min(at + MAX_WORDS * width);
            let launch = Launch {
                user: base.wrapping_add(outer.wrapping_mul(stride)),
                packed: packed.wrapping_add(at - range.start),
                first: (inside / width) as u32,
                words: ((end - at) / width) as u32,
            };
            at = end;
            Some(launch)
        })
    }
}
