//! The kernel `tile`. It moves transposes: layouts of single elements in which the loop with the
//! smallest stride in user memory is not the innermost loop of the packed stream.
//!
//! A block of threads moves a tile of 32 x 32 elements by way of shared memory. It reads the tile
//! in the order of one side and writes it in the order of the other side, so that neighbouring
//! threads access neighbouring elements on both sides. The elements of a tile have two coordinates:
//! `x` counts along user memory, and `y` counts along the packed stream. A third coordinate, `z`,
//! counts the transposes of a batch.
//!
//! A transfer whose addresses or range are not aligned to elements, or that has too few elements
//! along `x`, is moved by the kernel `strided`.

use std::ops::Range;

use ddtc::internal::kind::Direction;

use crate::index::{Arithmetic, offset_of_element, position_of_element};
use crate::kernel::{Addresses, Kernel, Launch, Mover, Parameters, THREADS, WIDTHS};
use crate::loops::{Loops, MAX_ITERATION};
use crate::ptx::{self, Printer, Register, Space, Type};
use crate::strided::Strided;

/// Number of elements along each side of a tile.
pub const SIDE: u32 = 32;

/// Number of elements from one row of a tile to the next in shared memory. It is one more than
/// [`SIDE`], so that the elements of a column lie in different banks of shared memory.
const PITCH: u32 = SIDE + 1;

/// Number of rows of a tile that the threads of a block move at a time.
const ROWS: u32 = THREADS / SIDE;

/// Maximum number of blocks in the second and in the third dimension of a grid.
const MAX_BLOCKS: u64 = 65535;

/// Maximum number of packed bytes that one launch moves. Positions are counted from the beginning
/// of the iteration of the outermost loop in which the launch begins. Such an iteration has at most
/// [`MAX_ITERATION`] bytes. So the positions of all elements that are moved fit into 32 bits.
const MAX_BYTES: u64 = MAX_ITERATION;

/// One of the three coordinates of an element.
#[derive(Clone, Copy, Debug)]
struct Axis {
    /// Number of elements. It is not known for the outermost loop of a layout, where it is `None`.
    number: Option<u64>,
    /// Distance in user memory in bytes.
    user: i64,
    /// Distance in the packed stream in bytes.
    packed: u64,
}

/// A layout that consists of transposes.
#[derive(Clone, Debug)]
pub struct Tile {
    x: Axis,
    y: Axis,
    z: Axis,
    /// Number of bytes in an element.
    element: u32,
    /// The same layout for the kernel `strided`.
    strided: Strided,
}

/// Returns the kernel for elements of `width` bytes that moves bytes in the direction `direction`.
///
/// The parameters of the kernel are, in this order: the address in user memory and the address of
/// the packed bytes (64 bits each), the position in the packed stream at which the launch begins
/// and the number of its packed bytes (32 bits each), the number of elements along `x` and along
/// `y` (32 bits each), the distances in user memory from one element to the next along `x`, `y` and
/// `z` (64 bits each), and the distances in the packed stream (32 bits each).
pub fn kernel(width: u32, direction: Direction) -> Kernel {
    let mut printer = Printer::default();
    let user = printer.global("user");
    let packed = printer.global("packed");
    let [begin, bytes, columns, rows] =
        ["begin", "bytes", "columns", "rows"].map(|name| printer.parameter(name, Type::Word));
    let user_strides = ["user_x", "user_y", "user_z"].map(|name| printer.parameter(name, Type::Long));
    let strides = ["packed_x", "packed_y", "packed_z"].map(|name| printer.parameter(name, Type::Word));
    let tile = printer.shared("tile", SIDE * PITCH * width);
    let in_block = printer.special("%tid.x");
    let lane = printer.mask(in_block, SIDE - 1);
    let row = printer.shift_right_constant(in_block, SIDE.ilog2());
    let [x, y, z] = ["%ctaid.x", "%ctaid.y", "%ctaid.z"].map(|name| printer.special(name));
    let corner = [x, y].map(|block| printer.multiply_constant(block, SIDE));
    // A thread moves an element in each turn. On the side of user memory, the threads of a warp
    // have neighbouring `x`, and on the side of the packed stream they have neighbouring `y`.
    let turns: Vec<Register> = (0..SIDE / ROWS).map(|turn| printer.add_constant(row, turn * ROWS)).collect();
    let element = |printer: &mut Printer, is_user: bool, turn: Register| {
        let inside = if is_user { [lane, turn] } else { [turn, lane] };
        let [x, y] = [0, 1].map(|i| printer.add(corner[i], inside[i]));
        let (in_columns, in_rows) = (printer.is_less(x, columns), printer.is_less(y, rows));
        // The last coordinate is the one that differs between the turns of a thread. So the
        // assembler finds that the sums over the other two are the same in all turns.
        let order = if is_user { [2, 0, 1] } else { [2, 1, 0] };
        let coordinates = order.map(|i| [x, y, z][i]);
        let position = position_of_element(printer, coordinates, order.map(|i| strides[i]));
        let moved = printer.subtract(position, begin);
        let in_range = printer.is_less(moved, bytes);
        let in_tile = printer.both(in_columns, in_rows);
        let slot = printer.scale(inside[0], PITCH, inside[1]);
        let address = match is_user {
            true => {
                let offset = offset_of_element(printer, coordinates, order.map(|i| user_strides[i]));
                printer.add_long(user, offset)
            }
            false => printer.address(moved, 1, packed),
        };
        Element { inside: printer.both(in_tile, in_range), address, slot: printer.scale(slot, width, tile) }
    };
    // Read the elements in the order of one side, and keep them in shared memory. All loads of a
    // thread come before its first store.
    let reads_user = direction == Direction::Pack;
    let read: Vec<Element> = turns.iter().map(|&turn| element(&mut printer, reads_user, turn)).collect();
    let loaded: Vec<Vec<Register>> =
        read.iter().map(|e| printer.load(Space::Global, width, e.inside, e.address)).collect();
    for (e, values) in read.iter().zip(&loaded) {
        printer.store(Space::Shared, width, e.inside, e.slot, values);
    }
    // After the barrier, every element of the tile is in shared memory. Write the elements in the
    // order of the other side.
    printer.barrier();
    let written: Vec<Element> = turns.iter().map(|&turn| element(&mut printer, !reads_user, turn)).collect();
    for e in written {
        let values = printer.load(Space::Shared, width, e.inside, e.slot);
        printer.store(Space::Global, width, e.inside, e.address, &values);
    }
    printer.finish(format!("ddtc_tile_{width}_{}", ptx::direction(direction)))
}

/// Registers of an element that a thread reads from one side or writes to the other.
struct Element {
    /// Register with a predicate. It is true if the launch moves the element.
    inside: Register,
    /// Register with the address of the element on this side.
    address: Register,
    /// Register with the address of the element in shared memory.
    slot: Register,
}

impl Tile {
    /// Returns the layout `strided` as a layout of transposes, if it is one. It must have two or
    /// three loops around an element whose width is a width of words. The innermost loop is `y`.
    /// Another loop must have elements next to each other in user memory, and is `x`. Both must
    /// have at least [`SIDE`] iterations, if the number of their iterations is known.
    pub(crate) fn new(strided: &Strided) -> Option<Tile> {
        let (loops, element) = (strided.loops(), strided.run());
        let width = WIDTHS.into_iter().find(|&width| u64::from(width) == element)?;
        let list = loops.list();
        if loops.unit() != width || !(2..=3).contains(&list.len()) {
            return None;
        }
        let mut packed = element;
        let mut axes: Vec<Axis> = Vec::new();
        for (i, l) in list.iter().enumerate() {
            let number = (i + 1 < list.len()).then_some(l.trip);
            axes.push(Axis { number, user: l.stride, packed });
            packed = packed.saturating_mul(number.unwrap_or(1));
        }
        let y = axes.remove(0);
        let x = axes.remove(axes.iter().position(|axis| axis.user == element as i64)?);
        // Without a batch, `z` is a loop with one iteration.
        let z = axes.pop().unwrap_or(Axis { number: Some(1), user: 0, packed: 0 });
        let side = u64::from(SIDE);
        let are_long = y.number.is_some_and(|n| n >= side) && x.number.is_none_or(|n| n >= side);
        let fit = y.number.is_some_and(|n| n.div_ceil(side) <= MAX_BLOCKS)
            && z.number.is_none_or(|n| n <= MAX_BLOCKS);
        (are_long && fit).then(|| Tile { x, y, z, element: width, strided: strided.clone() })
    }

    /// Returns the number of bytes in an element.
    pub fn element(&self) -> u32 {
        self.element
    }

    /// Returns the coordinates `x` of the elements in the range `begin..end` of the packed stream.
    /// The range is counted from the beginning of an iteration of the outermost loop, and begins in
    /// this iteration.
    fn columns(&self, begin: u64, end: u64) -> Range<u64> {
        let iteration = self.loops().iteration();
        match self.x.number {
            None => 0..end.div_ceil(iteration),
            // The outermost loop is `z`, and the range lies in one iteration of it.
            Some(_) if self.z.number.is_none() && end <= iteration => {
                begin / self.x.packed..end.div_ceil(self.x.packed)
            }
            Some(number) => 0..number,
        }
    }
}

impl Mover for Tile {
    fn loops(&self) -> &Loops {
        self.strided.loops()
    }

    /// Returns the number of variants: those of the kernel `strided`, and the kernel `tile`.
    fn variants(&self) -> usize {
        self.strided.variants() + 1
    }

    fn kernel(&self, variant: usize, direction: Direction) -> Kernel {
        if variant == self.strided.variants() {
            return kernel(self.element, direction);
        }
        self.strided.kernel(variant, direction)
    }

    fn variant(&self, addresses: &Addresses, range: &Range<u64>) -> usize {
        let begin = range.start % self.loops().iteration();
        let columns = self.columns(begin, begin + (range.end - range.start));
        let are_long = columns.end - columns.start >= u64::from(SIDE);
        match self.loops().width(addresses.user, addresses.packed, range) == self.element && are_long {
            true => self.strided.variants(),
            false => self.strided.variant(addresses, range),
        }
    }

    fn launch(&self, variant: usize, addresses: &Addresses, range: Range<u64>) -> Launch {
        if variant < self.strided.variants() {
            return self.strided.launch(variant, addresses, range);
        }
        let iteration = self.loops().iteration();
        // If the outermost loop is `z`, a grid has one block in its third dimension for each
        // iteration, and the first of the iterations may be moved in part.
        let max_bytes = match self.z.number {
            None => MAX_BYTES.min((MAX_BLOCKS - 1) * iteration),
            Some(_) => MAX_BYTES,
        };
        let part = self.loops().part(addresses.user, range, max_bytes);
        let end = part.first + part.bytes;
        // The kernel counts columns, and positions in the packed stream, from the first column.
        let columns = self.columns(part.first, end);
        let user = part.user.wrapping_add(columns.start * u64::from(self.element));
        let begin = part.first - columns.start * self.x.packed;
        let (columns, bytes) = (columns.end - columns.start, part.bytes);
        let rows = self.y.number.expect("the innermost loop is not the outermost");
        let batch = self.z.number.unwrap_or(end.div_ceil(iteration));
        let mut parameters = Parameters::new(&[user, addresses.packed, begin, bytes, columns, rows]);
        parameters.extend(&[self.x, self.y, self.z].map(|axis| axis.user as u64));
        parameters.extend(&[self.x, self.y, self.z].map(|axis| axis.packed));
        let blocks = [columns.div_ceil(u64::from(SIDE)), rows.div_ceil(u64::from(SIDE)), batch];
        Launch { blocks: blocks.map(|n| n as u32), parameters, bytes: part.bytes }
    }
}
