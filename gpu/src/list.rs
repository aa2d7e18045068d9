//! The kernel `list`. It moves layouts that consist of nested loops around a table of blocks. The
//! blocks have equal lengths and lie at arbitrary offsets. The table has one entry of 32 bits for
//! each block: its offset in user memory.

use std::ops::Range;

use ddtc::internal::kind::Direction;
use ddtc::internal::nest::Disjoint;

use crate::index::{Arithmetic, Chain, Place, Split, place_in_list};
use crate::kernel::{Addresses, Kernel, Launch, Mover};
use crate::loops::{Loop, Loops, chain};
use crate::ptx;
use crate::rows::Rows;
use crate::words::{self, Share};

/// Properties on which the text of a kernel `list` depends. The text also depends on the direction
/// (pack or unpack), and on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    /// Number of bytes that a thread moves by one load and one store, which is the width of a word.
    pub width: u32,
    /// Whether each block has several words. If this is false, each block is one word.
    pub several: bool,
    /// Number of nested loops, not counting the outermost one. To compute an offset, a thread
    /// divides once for each of them.
    pub divisions: usize,
    /// Whether a thread computes the offset of a loop iteration in user memory with 64 bits.
    /// Otherwise it computes this offset with 32 bits.
    pub wide: bool,
}

impl Shape {
    /// Returns the kernel of this shape that packs or unpacks, as `direction` says.
    ///
    /// The parameters of the kernel are, in this order:
    ///
    /// * the four parameters that `words::kernel` declares,
    /// * the address of the table (64 bits),
    /// * if a block has several words, the parameters that `Printer::split` declares for a division
    ///   by the number of words in a block,
    /// * the parameters that `Printer::split` declares for a division by the number of blocks in an
    ///   iteration of the innermost loop, and
    /// * the parameters that `Printer::chain` declares for the nested loops.
    pub fn kernel(self, direction: Direction) -> Kernel {
        let Shape { width, several, divisions, wide } = self;
        let (words, sums) = (if several { "blocks" } else { "words" }, if wide { 64 } else { 32 });
        let name = format!("ddtc_list_{words}_{width}_{divisions}_{sums}_{}", ptx::direction(direction));
        words::kernel(
            name,
            Share::new(width),
            direction,
            |printer| {
                let table = printer.global("table");
                let words = several.then(|| (printer.split("length"), width));
                (table, words, printer.split("rows"), printer.chain(divisions, wide))
            },
            |printer, (table, words, rows, chain), word| {
                let entry = |printer: &mut ptx::Printer, row| printer.entry(*table, row);
                let Place { iteration, offset } = place_in_list(printer, word, *words, *rows, entry);
                let inside = printer.widen(offset);
                printer.offset_in_iteration((iteration, inside), chain, wide)
            },
        )
    }
}

/// A layout that consists of nested loops around a table of blocks of equal lengths.
#[derive(Clone, Debug)]
pub struct List {
    /// Number of bytes in a block.
    length: u64,
    /// The table of the layout. It has the offset in user memory of each block of one iteration of
    /// the innermost loop, in bytes from the beginning of the iteration.
    table: Vec<u32>,
    rows: Split<u32>,
    loops: Loops,
    chain: Chain<u32, u64>,
}

impl List {
    /// Returns the layout that consists of the nested loops `loops` around the blocks `rows`. The
    /// blocks must not have more than [`MAX_ITERATION`](crate::loops::MAX_ITERATION) bytes in
    /// total, and must lie within 4 GiB of user memory. The innermost loop comes first in `loops`,
    /// and the outermost loop last. The first byte of the layout lies `start` bytes after the
    /// address of the user's buffer. Returns `None` if there is not enough host memory for the
    /// table.
    pub(crate) fn new(start: i64, rows: &Rows, loops: Vec<Loop>, disjoint: Disjoint) -> Option<List> {
        let length = rows.common_length();
        let mut table = Vec::new();
        table.try_reserve_exact(rows.number_of_pieces(length) as usize).ok()?;
        table.extend(rows.pieces(length).map(|piece| piece.offset as u32));
        let loops = Loops::new(start, loops, rows.innermost(), disjoint);
        let chain = chain(loops.in_kernel());
        Some(List { length, rows: Split::new(table.len() as u32), table, chain, loops })
    }

    /// Returns the properties of the kernel that moves the layout in words of `width` bytes.
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
        let mut launch = words::launch(&self.loops, addresses, range, Share::new(1 << variant));
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
