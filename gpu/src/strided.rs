//! The kernel `strided` seen from the host: which words a launch moves, and with which parameters.
//! A word is what a thread moves by one load and one store: 16, 8, 4, 2 or 1 bytes.

use std::ops::Range;

use ddtc::internal::nest::Disjoint;

use crate::index::{Chain, Divisor, MAX_WORD};

/// Threads of a block.
pub const THREADS: u32 = 256;

/// Widths of words in bytes.
pub const WIDTHS: [u32; 5] = [16, 8, 4, 2, 1];

/// Maximum number of words that a launch moves. The words of a launch are counted from the
/// beginning of the outermost iteration that contains its first word, and one iteration has at most
/// this many words. So the index of every word is less than [`MAX_WORD`].
const MAX_WORDS: u64 = MAX_WORD / 2;

/// Upper limit (exclusive) of offsets in sums of 32 bits.
const NARROW: u64 = 1 << 32;

/// Returns how many words of `width` bytes a thread moves: 8 to 16 bytes in all.
pub const fn words_per_thread(width: u32) -> u32 {
    match width {
        16 | 8 => 1,
        4 => 4,
        _ => 8,
    }
}

/// A loop of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Number of iterations. That of the outermost loop is not used, since it depends on the number
    /// of instances.
    pub trip: u64,
    /// Distance in bytes of two iterations in user memory.
    pub stride: i64,
}

/// Identifies a kernel: everything that its text depends on, except for the direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Width of a word in bytes.
    pub width: u32,
    /// Number of divisions in the index arithmetic of a word.
    pub divisions: usize,
    /// Whether the sums of the index arithmetic have 64 bits instead of 32.
    pub wide: bool,
}

/// A layout that is one run of bytes in loops.
#[derive(Clone, Debug)]
pub struct Strided {
    start: i64,
    run: u64,
    /// From the innermost to the outermost; at least one.
    loops: Vec<Loop>,
    /// Packed bytes of one iteration of the outermost loop.
    iteration: u64,
    unit: u32,
    wide: bool,
    /// Number of iterations of the outermost loop whose offsets fit into the sums of one launch.
    reach: u64,
    disjoint: Disjoint,
}

/// Parameters of one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Address in user memory that the offsets of the words are relative to.
    pub user: u64,
    /// Address of the first packed byte of the launch.
    pub packed: u64,
    /// Index of the first word. Word 0 is the first word of the outermost iteration that begins at
    /// `user`.
    pub first: u32,
    /// Number of words.
    pub words: u32,
}

impl Launch {
    /// Returns the number of blocks of threads.
    pub fn blocks(&self, width: u32) -> u32 {
        self.words.div_ceil(THREADS * words_per_thread(width))
    }
}

/// Returns the largest power of two that divides `x`, up to 16.
fn power(x: u64) -> u32 {
    1 << x.trailing_zeros().min(4)
}

impl Strided {
    /// Returns the layout of a run of `run` bytes in `loops`, from the innermost to the outermost,
    /// whose first byte is `start` bytes after the address of the buffer.
    pub(crate) fn new(start: i64, run: u64, loops: Vec<Loop>, disjoint: Disjoint) -> Strided {
        let (outer, inner) = loops.split_last().expect("the instance count is a loop");
        let iteration = inner.iter().fold(run, |bytes, l| bytes * l.trip);
        let unit = loops.iter().map(|l| power(l.stride as u64)).chain([power(run)]).min().expect("a run");
        // An iteration whose strides are not negative lies at offsets from 0 to its span.
        let span = inner
            .iter()
            .fold(run, |span, l| span.saturating_add((l.trip - 1).saturating_mul(l.stride.unsigned_abs())));
        let forward = loops.iter().all(|l| l.stride >= 0);
        let step = outer.stride.unsigned_abs();
        let wide = !forward || span > NARROW / 2 || step > NARROW / 2;
        let reach = if wide || step == 0 { u64::MAX } else { 1 + (NARROW - span) / step };
        Strided { start, run, iteration, unit, wide, reach, disjoint, loops }
    }

    /// Returns the largest width of words that every word of the layout is aligned to, if the first
    /// byte is.
    pub fn unit(&self) -> u32 {
        self.unit
    }

    /// Returns the offset of the first byte from the address of the buffer.
    pub fn start(&self) -> i64 {
        self.start
    }

    /// Returns whether no byte of user memory belongs to two packed bytes of `count` instances.
    pub fn is_disjoint(&self, count: u64) -> bool {
        self.disjoint.holds(count)
    }

    /// Returns the loops over words of `width` bytes, from the innermost to the outermost.
    fn word_loops(&self, width: u32) -> Vec<Loop> {
        let words = self.run / u64::from(width);
        let run = (words > 1).then_some(Loop { trip: words, stride: i64::from(width) });
        run.into_iter().chain(self.loops.iter().copied()).collect()
    }

    /// Returns which kernel moves words of `width` bytes.
    pub fn shape(&self, width: u32) -> Shape {
        Shape { width, divisions: self.word_loops(width).len() - 1, wide: self.wide }
    }

    /// Returns the strides for words of `width` bytes. A kernel with sums of 32 bits uses only the
    /// lower half of each.
    pub fn chain(&self, width: u32) -> Chain<u32, u64> {
        let loops = self.word_loops(width);
        let divisions = loops.windows(2).map(|pair| {
            let [inner, outer] = pair else { unreachable!("a window of two") };
            let whole = (inner.trip as i64).wrapping_mul(inner.stride);
            (Divisor::new(inner.trip as u32), outer.stride.wrapping_sub(whole) as u64)
        });
        Chain { stride: loops[0].stride as u64, divisions: divisions.collect() }
    }

    /// Returns the width of the words that move the packed bytes `range`, for a buffer at `user`
    /// and for packed bytes from `packed` on: the largest width to which both sides, the layout and
    /// the ends of the range are aligned.
    pub fn width(&self, user: u64, packed: u64, range: &Range<u64>) -> u32 {
        let places = user.wrapping_add(self.start as u64) | packed | range.start | range.end;
        power(places).min(self.unit)
    }

    /// Returns the launches that move the packed bytes `range` with words of `width` bytes, for a
    /// buffer at `user` and for packed bytes from `packed` on. The width must divide `unit` and
    /// both ends of the range.
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
