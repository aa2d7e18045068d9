//! The kernel `list`. It moves layouts of blocks that have equal lengths and lie at arbitrary
//! offsets, which nested loops repeat. A table has the offset of each block, in 32 bits.

use std::ops::Range;

use ddtc::internal::kind::Direction;
use ddtc::internal::nest::Disjoint;

use crate::index::{Chain, Split, place_in_list};
use crate::kernel::{Addresses, Kernel, Launch, Mover};
use crate::loops::{Loop, Loops, chain};
use crate::ptx;
use crate::rows::Rows;
use crate::words;

/// Properties that identify a kernel, together with its direction (pack or unpack). The text of a
/// kernel depends on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    /// Width of a word in bytes.
    pub width: u32,
    /// Whether a block has several words. Otherwise a block is one word.
    pub several: bool,
    /// Number of loops except the outermost. Each of them needs one division.
    pub divisions: usize,
    /// Whether the sums of the loops have 64 bits. They have 32 bits otherwise.
    pub wide: bool,
}

impl Shape {
    /// Returns the kernel that has this shape and moves bytes in the direction `direction`.
    ///
    /// After the parameters that `words::kernel` declares, the kernel has these: the address of the
    /// table (64 bits), the division by the number of words in a block if a block has several
    /// words, the division by the number of blocks in an iteration of the innermost loop, and the
    /// chain of loops.
    pub fn kernel(self, direction: Direction) -> Kernel {
        let Shape { width, several, divisions, wide } = self;
        let (words, sums) = (if several { "blocks" } else { "words" }, if wide { 64 } else { 32 });
        let name = format!("ddtc_list_{words}_{width}_{divisions}_{sums}_{}", ptx::direction(direction));
        words::kernel(
            name,
            width,
            direction,
            |printer| {
                let table = printer.global("table");
                let words = several.then(|| (printer.split("length"), width));
                (table, words, printer.split("rows"), printer.chain(divisions, wide))
            },
            |printer, (table, words, rows, chain), word| {
                let entry = |printer: &mut ptx::Printer, row| printer.entry(*table, row);
                let place = place_in_list(printer, word, *words, *rows, entry);
                printer.offset_of_place(place, chain, wide)
            },
        )
    }
}

/// A layout of blocks that have equal lengths, which nested loops repeat.
#[derive(Clone, Debug)]
pub struct List {
    /// Number of bytes in a block.
    length: u64,
    /// Offset of each block of an iteration of the innermost loop from the beginning of this
    /// iteration, in bytes.
    table: Vec<u32>,
    rows: Split<u32>,
    loops: Loops,
    chain: Chain<u32, u64>,
}

impl List {
    /// Returns the layout in which the nested loops `loops` repeat the blocks `rows`. The innermost
    /// loop comes first in `loops`, and the outermost loop last. The first byte of the layout lies
    /// `start` bytes after the address of the user's buffer. Returns `None` if one iteration of the
    /// outermost loop has too many bytes.
    pub(crate) fn new(start: i64, rows: &Rows, loops: Vec<Loop>, disjoint: Disjoint) -> Option<List> {
        let loops = Loops::new(start, loops, rows.innermost(), disjoint)?;
        let length = rows.common_length();
        let offsets = rows.pieces(length).map(|piece| piece.offset as u32);
        let table: Vec<u32> = offsets.collect();
        let chain = chain(loops.list());
        Some(List { length, rows: Split::new(table.len() as u32), table, chain, loops })
    }

    /// Returns the shape of the kernel that moves the layout in words of `width` bytes.
    pub fn shape(&self, width: u32) -> Shape {
        Shape {
            width,
            several: self.length > u64::from(width),
            divisions: self.chain.divisions.len(),
            wide: self.loops.is_wide(),
        }
    }
}

impl Mover for List {
    fn loops(&self) -> &Loops {
        &self.loops
    }

    fn table(&self) -> &[u32] {
        &self.table
    }

    fn kernel(&self, variant: usize, direction: Direction) -> Kernel {
        self.shape(1 << variant).kernel(direction)
    }

    fn launch(&self, variant: usize, addresses: &Addresses, range: Range<u64>) -> Launch {
        let mut launch = words::launch(&self.loops, addresses, range, 1 << variant);
        launch.parameters.extend(&[addresses.table]);
        let words = self.length >> variant;
        if words > 1 {
            launch.parameters.split(Split::new(words as u32));
        }
        launch.parameters.split(self.rows);
        launch.parameters.chain(&self.chain);
        launch
    }
}
