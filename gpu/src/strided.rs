//! The kernel `strided`. It moves layouts that consist of nested loops around one run of contiguous
//! bytes.

use std::ops::Range;

use ddtc::internal::kind::Direction;
use ddtc::internal::nest::Disjoint;

use crate::index::Chain;
use crate::kernel::{Addresses, Kernel, Launch, Mover};
use crate::loops::{Innermost, Loop, Loops, MAX_ITERATION, chain, power};
use crate::ptx;
use crate::words::{self, Share};

/// Maximum number of divisions by which a thread of the kernel `strided` computes the offset of a
/// word. The outermost loop, which is the loop over the instances, needs no division. Each of the
/// other loops, of which there are at most four, needs one division. If a run of bytes consists of
/// several words, the loop over these words needs one division too.
pub const MAX_DIVISIONS: usize = 5;

/// Properties on which the text of a kernel `strided` depends. The text also depends on the
/// direction (pack or unpack), and on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    /// Number of bytes that a thread moves by one load and one store, which is the width of a word.
    pub width: u32,
    /// Number of divisions by which a thread computes the offset of a word from its index.
    pub divisions: usize,
    /// Whether a thread computes offsets in user memory with 64 bits. Otherwise it computes them
    /// with 32 bits.
    pub wide: bool,
}

impl Shape {
    /// Returns the kernel of this shape that packs or unpacks, as `direction` says. Its parameters
    /// are the four that `words::kernel` declares, followed by those that `Printer::chain` declares
    /// for the nested loops.
    pub fn kernel(self, direction: Direction) -> Kernel {
        let Shape { width, divisions, wide } = self;
        let sums = if wide { 64 } else { 32 };
        let name = format!("ddtc_strided_{width}_{divisions}_{sums}_{}", ptx::direction(direction));
        words::kernel(
            name,
            Share::new(width),
            direction,
            |printer| printer.chain(divisions, wide),
            |printer, chain, word| printer.offset(word, chain, wide),
        )
    }
}

/// A layout that consists of nested loops around one run of contiguous bytes.
#[derive(Clone, Debug)]
pub struct Strided {
    /// Number of bytes in a run.
    run: u64,
    /// The nested loops around the run of bytes.
    loops: Loops,
    /// The nested loops as parameters of the kernel, once for each width of words. The entry with
    /// the index `i` is for words of `2^i` bytes.
    chains: Vec<Chain<u32, u64>>,
}

impl Strided {
    /// Returns the layout that consists of the nested loops `loops` around a run of `run`
    /// contiguous bytes. The innermost loop comes first in `loops`, and the outermost loop last.
    /// The first byte of the layout lies `start` bytes after the address of the user's buffer.
    pub(crate) fn new(start: i64, mut run: u64, mut loops: Vec<Loop>, disjoint: Disjoint) -> Strided {
        if run > MAX_ITERATION {
            // A run of more than [`MAX_ITERATION`] bytes may have too many words for the indices of
            // a kernel. So describe it as a loop around short runs, which can be split into several
            // launches.
            let short = power(run);
            loops.insert(0, Loop { trip: run / u64::from(short), stride: short.into() });
            run = short.into();
        }
        let innermost = Innermost { bytes: run, span: run, unit: power(run) };
        let loops = Loops::new(start, loops, innermost, disjoint);
        // The body of the kernel's innermost loop must be one word. If a run has several words, put
        // a loop over the words of the run inside of the loops of the layout.
        let chains = (0..=loops.unit().ilog2()).map(|log| {
            let words = run >> log;
            let run = (words > 1).then_some(Loop { trip: words, stride: 1 << log });
            chain(&run.into_iter().chain(loops.in_kernel().iter().copied()).collect::<Vec<_>>())
        });
        Strided { run, chains: chains.collect(), loops }
    }

    /// Returns the number of bytes in a run.
    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    /// Returns the properties of the kernel that moves the layout in words of `width` bytes.
    pub fn shape(&self, width: u32) -> Shape {
        Shape { width, divisions: self.chain(width).divisions.len(), wide: self.loops.is_wide() }
    }

    /// Returns the loops of the layout as parameters of the kernel that moves words of `width`
    /// bytes.
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
        let mut launch = words::launch(&self.loops, addresses, range, Share::new(1 << variant));
        launch.parameters.chain(&self.chains[variant]);
        launch
    }
}
