//! The kernel `pieces`. It moves layouts that consist of nested loops around a list of blocks of
//! different lengths.
//!
//! A piece is a section of a block with at most [`MAX_PIECE`] bytes, and each piece is moved by a
//! group of [`LANES`] threads. A table has the position of each piece in the packed stream and its
//! offset in user memory, so that no thread has to search for its piece. A launch moves all bytes
//! of its pieces, except that the packed range to be moved may begin in the middle of the first
//! piece and end in the middle of the last one.

use std::ops::Range;

use ddtc::internal::kind::Direction;
use ddtc::internal::nest::Disjoint;

use crate::index::{Arithmetic, Chain, Split, part_of_piece};
use crate::kernel::{Addresses, Kernel, Launch, Mover, Parameters, THREADS};
use crate::loops::{Loop, Loops, MAX_ITERATION, chain};
use crate::ptx::{self, Printer, Type, Word};
use crate::rows::Rows;

/// Number of threads that together move one piece of a block.
pub const LANES: u32 = 16;

/// Maximum number of bytes in a piece, which is a section of a block.
pub const MAX_PIECE: u32 = 512;

/// Maximum number of words that a thread loads before it stores the first of them. The latencies of
/// these loads overlap.
const IN_FLIGHT: usize = 4;

/// Maximum number of packed bytes that one launch moves. A launch counts positions in the packed
/// stream, and indices of pieces, from the beginning of the iteration of the outermost loop that
/// contains its first byte. Since an iteration has at most [`MAX_ITERATION`] bytes, all these
/// positions and indices are less than [`MAX_WORD`](crate::index::MAX_WORD). This also holds for
/// those that surplus threads of the last block compute for pieces after the end.
const MAX_BYTES: u64 = MAX_ITERATION / 2;

/// Properties on which the text of a kernel `pieces` depends. The text also depends on the
/// direction (pack or unpack), and on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    /// Number of bytes that a thread moves by one load and one store, which is the width of a word.
    pub width: u32,
    /// Number of nested loops, not counting the outermost one. To compute an offset, a thread
    /// divides once for each of them.
    pub divisions: usize,
    /// Whether a thread computes the offset of a loop iteration in user memory with 64 bits.
    /// Otherwise it computes this offset with 32 bits.
    pub wide: bool,
}

impl Shape {
    /// Returns the kernel with these properties that packs or unpacks, as `direction` says.
    ///
    /// The parameters of the kernel are, in this order:
    ///
    /// * the address in user memory to which offsets are added (64 bits),
    /// * the address of the first packed byte that the launch moves (64 bits),
    /// * the address of the table (64 bits),
    /// * the index of the first piece (32 bits),
    /// * the positions in the packed stream at which the launch begins and ends (32 bits each),
    /// * the number of packed bytes in an iteration of the innermost loop (32 bits),
    /// * the parameters that `Printer::split` declares for a division by the number of pieces in
    ///   such an iteration, and
    /// * the parameters that `Printer::chain` declares for the nested loops.
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
        // Compute the index of the piece that the thread helps to move, and the number `lane` of
        // the thread among the threads that move this piece.
        let (in_grid, in_block) = (printer.special("%ctaid.x"), printer.special("%tid.x"));
        let group = printer.shift_right_constant(in_block, LANES.ilog2());
        let lane = printer.mask(in_block, LANES - 1);
        let index = printer.scale(in_grid, THREADS / LANES, group);
        let index = printer.add(index, first);
        let entry = |printer: &mut Printer, index| printer.entry(table, index);
        let part = part_of_piece(&mut printer, index, rows, bytes, (begin, end), entry);
        // Compute the position of the thread's first word in the packed stream, and the addresses
        // of this word in user memory and in the packed bytes. Surplus threads of the last block
        // have pieces after the end of the launch. For them `part` has no bytes, so they move
        // nothing.
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

/// A layout that consists of nested loops around a list of blocks of different lengths.
#[derive(Clone, Debug)]
pub struct Pieces {
    /// The table that the kernel reads. It describes one iteration of the innermost loop, and has
    /// two entries for each piece: the position of the piece in the packed stream, and its offset
    /// in user memory. Both are counted from the beginning of the iteration. One more entry at the
    /// end has the number of packed bytes in the iteration.
    table: Vec<u32>,
    rows: Split<u32>,
    loops: Loops,
    chain: Chain<u32, u64>,
}

impl Pieces {
    /// Returns the layout that consists of the nested loops `loops` around the blocks `rows`. The
    /// innermost loop comes first in `loops`, and the outermost loop last. The first byte of the
    /// layout lies `start` bytes after the address of the user's buffer. Returns `None` if one
    /// iteration of the outermost loop has more than [`MAX_ITERATION`] packed bytes.
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

    /// Returns the properties of the kernel that moves the layout in words of `width` bytes.
    pub fn shape(&self, width: u32) -> Shape {
        Shape { width, divisions: self.chain.divisions.len(), wide: self.loops.is_wide() }
    }

    /// Returns the number of packed bytes in an iteration of the innermost loop.
    fn bytes(&self) -> u32 {
        *self.table.last().expect("a table has a last entry")
    }

    /// Returns the index of the piece that contains the packed byte at `position`. The index and
    /// the position are counted from the beginning of the same iteration of the outermost loop.
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
