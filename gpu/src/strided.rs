//! The kernel `strided`. It moves layouts that consist of one run of contiguous bytes, which nested
//! loops repeat.

use std::ops::Range;

use ddtc::internal::kind::Direction;
use ddtc::internal::nest::Disjoint;

use crate::index::Chain;
use crate::kernel::{Addresses, Kernel, Launch, Mover};
use crate::loops::{Innermost, Loop, Loops, chain, power};
use crate::{ptx, words};

/// Maximum number of divisions in the index arithmetic of the kernel. The outermost loop, which is
/// the loop over the instances, needs no division. Inside of it there are at most four loops, which
/// need one division each. A run of bytes that consists of several words needs one division too.
pub const MAX_DIVISIONS: usize = 5;

/// Properties that identify a kernel, together with its direction (pack or unpack). The text of a
/// kernel depends on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    /// Width of a word in bytes.
    pub width: u32,
    /// Number of divisions in the index arithmetic of a word.
    pub divisions: usize,
    /// Whether the sums of the index arithmetic have 64 bits. They have 32 bits otherwise.
    pub wide: bool,
}

impl Shape {
    /// Returns the kernel that has this shape and moves bytes in the direction `direction`. After
    /// the parameters that `words::kernel` declares, the kernel has those of the chain of loops.
    pub fn kernel(self, direction: Direction) -> Kernel {
        let Shape { width, divisions, wide } = self;
        let sums = if wide { 64 } else { 32 };
        let name = format!("ddtc_strided_{width}_{divisions}_{sums}_{}", ptx::direction(direction));
        words::kernel(
            name,
            width,
            direction,
            |printer| printer.chain(divisions, wide),
            |printer, chain, word| printer.offset(word, chain, wide),
        )
    }
}

/// A layout that consists of one run of contiguous bytes, which nested loops repeat.
#[derive(Clone, Debug)]
pub struct Strided {
    run: u64,
    /// The loops around the run.
    loops: Loops,
    /// The strides of the loops over words, for each width of words. The index of an entry is the
    /// base-2 logarithm of the width in bytes.
    chains: Vec<Chain<u32, u64>>,
}

impl Strided {
    /// Returns the layout in which the nested loops `loops` repeat a run of `run` contiguous bytes.
    /// The innermost loop comes first in `loops`, and the outermost loop last. The first byte of
    /// the layout lies `start` bytes after the address of the user's buffer. Returns `None` if one
    /// iteration of the outermost loop has too many bytes.
    pub(crate) fn new(start: i64, run: u64, loops: Vec<Loop>, disjoint: Disjoint) -> Option<Strided> {
        let innermost = Innermost { bytes: run, span: run, unit: power(run) };
        let loops = Loops::new(start, loops, innermost, disjoint)?;
        // If a run has several words, then the innermost of the loops over words is the one over
        // the words of a run.
        let chains = (0..=loops.unit().ilog2()).map(|log| {
            let words = run >> log;
            let run = (words > 1).then_some(Loop { trip: words, stride: 1 << log });
            chain(&run.into_iter().chain(loops.list().iter().copied()).collect::<Vec<_>>())
        });
        Some(Strided { run, chains: chains.collect(), loops })
    }

    /// Returns the number of bytes in a run.
    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    /// Returns the shape of the kernel that moves the layout in words of `width` bytes.
    pub fn shape(&self, width: u32) -> Shape {
        Shape { width, divisions: self.chain(width).divisions.len(), wide: self.loops.is_wide() }
    }

    /// Returns the strides of the layout for words of `width` bytes.
    pub fn chain(&self, width: u32) -> &Chain<u32, u64> {
        &self.chains[width.ilog2() as usize]
    }
}

impl Mover for Strided {
    fn loops(&self) -> &Loops {
        &self.loops
    }

    fn kernel(&self, variant: usize, direction: Direction) -> Kernel {
        self.shape(1 << variant).kernel(direction)
    }

    fn launch(&self, variant: usize, addresses: &Addresses, range: Range<u64>) -> Launch {
        let mut launch = words::launch(&self.loops, addresses, range, 1 << variant);
        launch.parameters.chain(&self.chains[variant]);
        launch
    }
}
