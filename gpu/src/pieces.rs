//! The kernel `pieces`. It moves layouts of blocks whose lengths differ, which nested loops repeat.
//!
//! The blocks are cut into pieces of at most [`MAX_PIECE`] bytes. [`LANES`] threads move a piece
//! together. A table has the position of each piece in the packed stream and its offset in user
//! memory, so that no thread has to search for its piece. At most two pieces of a launch are moved
//! in part: the one in which the range of the launch begins and the one in which it ends.

use std::ops::Range;

use ddtc::internal::kind::Direction;
use ddtc::internal::nest::Disjoint;

use crate::index::{Arithmetic, Chain, Split, part_of_piece};
use crate::kernel::{Addresses, Kernel, Launch, Mover, Parameters, THREADS};
use crate::loops::{Loop, Loops, MAX_ITERATION, chain};
use crate::ptx::{self, Printer, Type, Word};
use crate::rows::Rows;

/// Number of threads that move a piece together.
pub const LANES: u32 = 16;

/// Maximum number of bytes in a piece.
pub const MAX_PIECE: u32 = 512;

/// Maximum number of words that a thread loads before it stores the first of them.
const IN_FLIGHT: usize = 4;

/// Maximum number of packed bytes that one launch moves. Positions and indices of pieces are
/// counted from the beginning of the iteration of the outermost loop in which the launch begins.
/// Such an iteration has at most [`MAX_ITERATION`] bytes. So all positions and indices, and those
/// that the threads after the last piece compute, are less than
/// [`MAX_WORD`](crate::index::MAX_WORD).
const MAX_BYTES: u64 = MAX_ITERATION / 2;

/// Properties that identify a kernel, together with its direction (pack or unpack). The text of a
/// kernel depends on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    /// Width of a word in bytes.
    pub width: u32,
    /// Number of loops except the outermost. Each of them needs one division.
    pub divisions: usize,
    /// Whether the sums of the loops have 64 bits. They have 32 bits otherwise.
    pub wide: bool,
}

impl Shape {
    /// Returns the kernel that has this shape and moves bytes in the direction `direction`.
    ///
    /// The parameters of the kernel are, in this order: the address in user memory (64 bits), the
    /// address of the packed bytes (64 bits), the address of the table (64 bits), the index of the
    /// first piece (32 bits), the positions in the packed stream at which the launch begins and
    /// ends (32 bits each), the number of packed bytes in an iteration of the innermost loop (32
    /// bits), the division by the number of pieces in such an iteration, and the chain of loops.
    pub fn kernel(self, direction: Direction) -> Kernel {
        let Shape { width, divisions, wide } = self;
        let sums = if wide { 64 } else { 32 };
        let name = format!("ddtc_pieces_{width}_{divisions}_{sums}_{}", ptx::direction(direction));
        let mut printer = Printer::default();
        let (user, packed) = (printer.global("user"), printer.global("packed"));
        let table = printer.global("table");
        let first = printer.parameter("first", Type::Word);
        let begin = printer.parameter("begin", Type::Word);
        let end = printer.parameter("end", Type::Word);
        let bytes = printer.parameter("bytes", Type::Word);
        let rows = printer.split("rows");
        let chain = printer.chain(divisions, wide);
        // Find the piece of the thread, and the number of the thread among the threads of the
        // piece.
        let (in_grid, in_block) = (printer.special("%ctaid.x"), printer.special("%tid.x"));
        let group = printer.shift_right_constant(in_block, LANES.ilog2());
        let lane = printer.mask(in_block, LANES - 1);
        let index = printer.scale(in_grid, THREADS / LANES, group);
        let index = printer.add(index, first);
        let entry = |printer: &mut Printer, index| printer.entry(table, index);
        let part = part_of_piece(&mut printer, index, rows, bytes, (begin, end), entry);
        // Compute the position of the thread's first word, and both addresses of this word. After
        // the last piece of the launch, the parts are empty.
        let offset = printer.offset_of_place(part.place, &chain, wide);
        let user = printer.add_long(user, offset);
        let user = printer.address(lane, width, user);
        let position = printer.scale(lane, width, part.begin);
        let moved = printer.subtract(position, begin);
        let packed = printer.address(moved, 1, packed);
        let steps: Vec<u32> = (0..MAX_PIECE).step_by((LANES * width) as usize).collect();
        for steps in steps.chunks(IN_FLIGHT) {
            let words: Vec<Word> = steps
                .iter()
                .map(|&step| {
                    let position = printer.add_constant(position, step);
                    let inside = printer.is_less(position, part.end);
                    let (user, packed) =
                        (printer.add_constant(user, step), printer.add_constant(packed, step));
                    Word { inside, user, packed }
                })
                .collect();
            printer.move_words(width, direction, &words);
        }
        printer.finish(name)
    }
}

/// A layout of blocks whose lengths differ, which nested loops repeat.
#[derive(Clone, Debug)]
pub struct Pieces {
    /// Two entries for each piece of an iteration of the innermost loop, and one entry more: the
    /// position of the piece in the packed stream, counted from the beginning of the iteration, and
    /// its offset in user memory. The last entry is the number of packed bytes in the iteration.
    table: Vec<u32>,
    rows: Split<u32>,
    loops: Loops,
    chain: Chain<u32, u64>,
}

impl Pieces {
    /// Returns the layout in which the nested loops `loops` repeat the blocks `rows`. The innermost
    /// loop comes first in `loops`, and the outermost loop last. The first byte of the layout lies
    /// `start` bytes after the address of the user's buffer. Returns `None` if one iteration of the
    /// outermost loop has too many bytes.
    pub(crate) fn new(start: i64, rows: &Rows, loops: Vec<Loop>, disjoint: Disjoint) -> Option<Pieces> {
        let loops = Loops::new(start, loops, rows.innermost(), disjoint)?;
        let (mut table, mut position) = (Vec::new(), 0);
        for piece in rows.pieces(u64::from(MAX_PIECE)) {
            table.extend([position, piece.offset as u32]);
            position += piece.bytes as u32;
        }
        let pieces = table.len() as u32 / 2;
        table.push(position);
        Some(Pieces { table, rows: Split::new(pieces), chain: chain(loops.list()), loops })
    }

    /// Returns the shape of the kernel that moves the layout in words of `width` bytes.
    pub fn shape(&self, width: u32) -> Shape {
        Shape { width, divisions: self.chain.divisions.len(), wide: self.loops.is_wide() }
    }

    /// Returns the number of packed bytes in an iteration of the innermost loop.
    fn bytes(&self) -> u32 {
        *self.table.last().expect("a table has a last entry")
    }

    /// Returns the index of the piece that has the packed byte at the position `position`, and the
    /// position is counted from the beginning of an iteration of the outermost loop.
    fn piece(&self, position: u64) -> u64 {
        let (iteration, inside) =
            (position / u64::from(self.bytes()), (position % u64::from(self.bytes())) as u32);
        let pieces = self.table.as_chunks::<2>().0;
        let after = pieces.partition_point(|&[position, _]| position <= inside);
        iteration * u64::from(self.rows.number) + after as u64 - 1
    }
}

impl Mover for Pieces {
    fn loops(&self) -> &Loops {
        &self.loops
    }

    fn table(&self) -> &[u32] {
        &self.table
    }

    fn kernel(&self, variant: usize, direction: Direction) -> Kernel {
        self.shape(1 << variant).kernel(direction)
    }

    fn launch(&self, _variant: usize, addresses: &Addresses, range: Range<u64>) -> Launch {
        let part = self.loops.part(addresses.user, range, MAX_BYTES);
        let end = part.first + part.bytes;
        let first = self.piece(part.first);
        let pieces = self.piece(end - 1) + 1 - first;
        let mut parameters = Parameters::new(&[part.user, addresses.packed, addresses.table, first]);
        parameters.extend(&[part.first, end, u64::from(self.bytes())]);
        parameters.split(self.rows);
        parameters.chain(&self.chain);
        let blocks = (pieces as u32).div_ceil(THREADS / LANES);
        Launch { blocks: [blocks, 1, 1], parameters, bytes: part.bytes }
    }
}
