//! The kernel `pieces`. It moves layouts that consist of nested loops around a list of blocks of
//! different lengths.
//!
//! A piece is a section of a block with at most [`MAX_PIECE`] bytes, and each piece is moved by a
//! group of [`LANES`] threads. A table has the position of each piece in the packed stream and its
//! offset in user memory, so that no thread has to search for its piece. A launch moves all bytes
//! of its pieces, with two exceptions: the packed bytes of the launch may begin in the middle of
//! its first piece, and may end in the middle of its last piece. In a transfer of several launches,
//! each boundary between two launches may lie in the middle of a piece.

use std::ops::Range;

use ddtc::internal::kind::Direction;
use ddtc::internal::nest::Disjoint;

use crate::index::{Arithmetic, Chain, PieceTable, Split, part_of_piece};
use crate::kernel::{Addresses, Kernel, Launch, Mover, Parameters, THREADS};
use crate::loops::{Loop, Loops, MAX_ITERATION, chain};
use crate::ptx::{self, Printer, Type, Word};
use crate::rows::{MAX_SPAN, Rows};

/// Number of threads that together move one piece of a block.
pub const LANES: u32 = 16;

/// Maximum number of bytes in a piece, which is a section of a block.
pub const MAX_PIECE: u32 = 512;

/// Maximum number of words that a thread loads before it stores the first of them. The latencies of
/// these loads overlap.
const IN_FLIGHT: usize = 4;

/// Maximum number of packed bytes that one launch moves.
///
/// A kernel divides indices of pieces, and its divisions are exact only for indices that are less
/// than [`MAX_WORD`](crate::index::MAX_WORD). The indices are counted from the beginning of the
/// iteration of the kernel's outermost loop in which the launch begins. The index of the first
/// piece of the launch is less than [`MAX_ITERATION`], for one of two reasons. Usually the
/// iteration has at most [`MAX_ITERATION`] bytes. A longer iteration goes through the table just
/// once, and the table has at most [`MAX_ROWS`](crate::rows::MAX_ROWS) pieces.
///
/// A launch moves at least one byte of each of its pieces. So the indices of all its pieces are
/// less than `MAX_ITERATION + MAX_BYTES`. Surplus threads of the last block, which have no piece to
/// move, compute slightly larger indices. These are less than `MAX_WORD` too.
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
    /// Number of bits of offsets in user memory.
    pub offsets: Offsets,
}

/// Number of bits of offsets in user memory in a kernel `pieces`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Offsets {
    /// The offsets of loop iterations and of pieces have 32 bits.
    Narrow,
    /// The offsets of loop iterations have 64 bits, and those of pieces in the table 32 bits.
    Wide,
    /// The offsets of loop iterations and of pieces have 64 bits.
    Far,
}

impl Shape {
    /// Returns the kernel of this shape that packs or unpacks, as `direction` says.
    ///
    /// The parameters of the kernel are, in this order:
    ///
    /// * the address in user memory to which offsets are added (64 bits),
    /// * the address of the first packed byte that the launch moves (64 bits),
    /// * the address of the table (64 bits),
    /// * the index of the first piece (32 bits),
    /// * the numbers `origin`, `end` and `bytes` of [`PieceTable`] (32 bits each),
    /// * the parameters that `Printer::split` declares for a division by the number of pieces in an
    ///   iteration of the innermost loop, and
    /// * the parameters that `Printer::chain` declares for the nested loops.
    pub fn kernel(self, direction: Direction) -> Kernel {
        let Shape { width, divisions, offsets } = self;
        let (wide, far) = (offsets != Offsets::Narrow, offsets == Offsets::Far);
        let (sums, kind) = (if wide { 64 } else { 32 }, if far { "far_" } else { "" });
        let name = format!("ddtc_pieces_{kind}{width}_{divisions}_{sums}_{}", ptx::direction(direction));
        let mut printer = Printer::default();
        let (user, packed) = (printer.global("user"), printer.global("packed"));
        let table = printer.global("table");
        let first = printer.parameter("first", Type::Word);
        let origin = printer.parameter("origin", Type::Word);
        let end = printer.parameter("end", Type::Word);
        let bytes = printer.parameter("bytes", Type::Word);
        let pieces = PieceTable { rows: printer.split("rows"), bytes, origin, end };
        let chain = printer.chain(divisions, wide);
        // Compute the index of the piece that the thread helps to move, and the number `lane` of
        // the thread among the threads that move this piece.
        let (in_grid, in_block) = (printer.special("%ctaid.x"), printer.special("%tid.x"));
        let group = printer.shift_right_constant(in_block, LANES.ilog2());
        let lane = printer.mask(in_block, LANES - 1);
        let index = printer.scale(in_grid, THREADS / LANES, group);
        let index = printer.add(index, first);
        let begin = printer.constant(MAX_PIECE);
        let entry = |printer: &mut Printer, index| printer.entry(table, index);
        let part = part_of_piece(&mut printer, index, pieces, (begin, far), entry);
        // Compute the position of the thread's first word in the packed stream, and the addresses
        // of this word in user memory and in the packed bytes. Surplus threads of the last block
        // compute indices of pieces that come after the last piece of the launch. For such a piece,
        // `part` has no bytes, so these threads move nothing.
        let offset = printer.offset_in_iteration((part.iteration, part.offset), &chain, wide);
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
    /// The table that the kernel reads ([`part_of_piece`]).
    table: Vec<u32>,
    /// Whether the table has offsets of 64 bits.
    is_far: bool,
    rows: Split<u32>,
    /// Number of packed bytes in an iteration of the innermost loop.
    bytes: u64,
    /// Entry `i` is the index of the first piece whose position in the packed stream is `i * 2^32`
    /// or more. The table has only the lower 32 bits of positions, so these indices say where the
    /// upper 32 bits change.
    halves: Vec<usize>,
    loops: Loops,
    chain: Chain<u32, u64>,
}

impl Pieces {
    /// Returns the layout that consists of the nested loops `loops` around the blocks `rows`. The
    /// innermost loop comes first in `loops`, and the outermost loop last. The first byte of the
    /// layout lies `start` bytes after the address of the user's buffer. The number of pieces
    /// ([`Pieces::number`]) must not be more than [`MAX_ROWS`](crate::rows::MAX_ROWS). Returns
    /// `None` if there is not enough host memory for the table.
    pub(crate) fn new(start: i64, rows: &Rows, loops: Vec<Loop>, disjoint: Disjoint) -> Option<Pieces> {
        let is_far = rows.span() > MAX_SPAN;
        let entries = if is_far { 3 } else { 2 };
        let pieces = Pieces::number(rows) as usize;
        let (mut table, mut halves, mut bytes) = (Vec::new(), Vec::new(), 0);
        table.try_reserve_exact(pieces * entries + 1).ok()?;
        for (i, piece) in rows.pieces(u64::from(MAX_PIECE)).enumerate() {
            if bytes >> 32 == halves.len() as u64 {
                halves.push(i);
            }
            let entry = [bytes as u32, piece.offset as u32, (piece.offset >> 32) as u32];
            table.extend_from_slice(&entry[..entries]);
            bytes += piece.bytes;
        }
        table.push(bytes as u32);
        let loops = Loops::new(start, loops, rows.innermost(), disjoint);
        let (rows, chain) = (Split::new(pieces as u32), chain(loops.in_kernel()));
        Some(Pieces { table, is_far, rows, bytes, halves, chain, loops })
    }

    /// Returns the number of pieces into which the blocks `rows` are cut.
    pub(crate) fn number(rows: &Rows) -> u64 {
        rows.number_of_pieces(u64::from(MAX_PIECE))
    }

    /// Returns the properties of the kernel that moves the layout in words of `width` bytes.
    pub fn shape(&self, width: u32) -> Shape {
        let offsets = match (self.is_far, self.loops.is_wide()) {
            (true, _) => Offsets::Far,
            (false, true) => Offsets::Wide,
            (false, false) => Offsets::Narrow,
        };
        Shape { width, divisions: self.chain.divisions.len(), offsets }
    }

    /// Returns the index of the piece that contains the packed byte at `position`. The index and
    /// the position are counted from the beginning of the same iteration of the kernel's outermost
    /// loop.
    fn piece(&self, position: u64) -> u64 {
        let (iteration, inside) = (position / self.bytes, position % self.bytes);
        // Search for the first piece that begins after `inside`. The piece before it contains the
        // byte. The table has only the lower 32 bits of positions. So search only among the pieces
        // whose positions have the same upper 32 bits as `inside`. The piece that contains the byte
        // may lie before all these pieces.
        let half = (inside >> 32) as usize;
        let of_half = |half: usize| self.halves.get(half).map_or(self.rows.number as usize, |&first| first);
        let (mut from, mut to) = (of_half(half), of_half(half + 1));
        let entries = if self.is_far { 3 } else { 2 };
        while from < to {
            let middle = from.midpoint(to);
            if self.table[middle * entries] <= inside as u32 {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        iteration * u64::from(self.rows.number) + from as u64 - 1
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
        let position = u64::from(MAX_PIECE);
        let origin = position.wrapping_sub(part.first);
        parameters.extend(&[origin, position + part.bytes, self.bytes]);
        parameters.split(self.rows);
        parameters.chain(&self.chain);
        let blocks = (pieces as u32).div_ceil(THREADS / LANES);
        Launch { blocks: [blocks, 1, 1], parameters, bytes: part.bytes }
    }
}
