//! The kernel `tile`. It moves transposes, such as the columns of a matrix that is stored by rows.
//! In such a layout, elements that follow each other in the packed stream are far apart in user
//! memory. The loop that steps from an element to its neighbour in user memory is not the innermost
//! one.
//!
//! A block of threads moves a tile of 32 x 32 elements through shared memory. Each transfer has two
//! sides: user memory and the packed stream. The block reads the tile in the order of one side and
//! writes it in the order of the other side, so that neighbouring threads access neighbouring
//! elements on both sides. An element has three coordinates. Elements with neighbouring `x` are
//! neighbours in user memory, and elements with neighbouring `y` are neighbours in the packed
//! stream. If the layout is a batch of several transposes, `z` is the index of the transpose.
//!
//! The kernel `strided` moves a transfer of such a layout if its addresses or its range are not
//! aligned to elements, or if it has fewer than 32 elements along `x`.

use std::ops::Range;

use ddtc::internal::kind::Direction;

use crate::index::{Arithmetic, offset_of_element, position_of_element};
use crate::kernel::{Addresses, Kernel, Launch, Mover, Parameters, THREADS, WIDTHS};
use crate::loops::{Loops, MAX_ITERATION};
use crate::ptx::{self, Printer, Register, Space, Type};
use crate::strided::Strided;

/// Number of elements along each side of a tile.
pub const SIDE: u32 = 32;

/// Distance in shared memory, in elements, from one row of a tile to the next. It is one more than
/// [`SIDE`], so that the elements of a column lie in different banks of shared memory.
const PITCH: u32 = SIDE + 1;

/// Number of rows of a tile that the threads of a block move at the same time, one element by each
/// thread.
const ROWS: u32 = THREADS / SIDE;

/// Maximum number of blocks in the second and in the third dimension of a grid.
const MAX_BLOCKS: u64 = 65535;

/// Maximum number of packed bytes that one launch moves. A launch counts positions in the packed
/// stream from the beginning of the iteration of the kernel's outermost loop in which the launch
/// begins. Since an iteration has at most [`MAX_ITERATION`] bytes, the positions of all elements
/// that the launch moves fit into 32 bits.
const MAX_BYTES: u64 = MAX_ITERATION;

/// Number of elements along one of the three coordinates `x`, `y` and `z`, and the distances
/// between neighbouring elements along this coordinate.
#[derive(Clone, Copy, Debug)]
struct Axis {
    /// Number of elements. It is `None` if the kernel's outermost loop counts this coordinate,
    /// because the trip count of this loop usually depends on the number of instances of a call.
    number: Option<u64>,
    /// Distance in user memory, in bytes, between elements whose coordinates differ by one.
    user: i64,
    /// Distance in the packed stream, in bytes, between elements whose coordinates differ by one.
    packed: u64,
}

/// A layout that is one transpose or a batch of transposes.
#[derive(Clone, Debug)]
pub struct Tile {
    x: Axis,
    y: Axis,
    z: Axis,
    /// Number of bytes in an element.
    element: u32,
    /// The same layout in the form in which the kernel `strided` moves it.
    strided: Strided,
}

/// Returns the kernel `tile` that moves elements of `width` bytes in the direction `direction`.
///
/// The parameters of the kernel are, in this order:
///
/// * the address in user memory to which offsets are added (64 bits),
/// * the address of the first packed byte that the launch moves (64 bits),
/// * the position in the packed stream at which the launch begins (32 bits),
/// * the number of packed bytes that the launch moves (32 bits),
/// * the numbers of elements along `x` and along `y` (32 bits each),
/// * the distances in user memory between neighbouring elements along `x`, `y` and `z`, in bytes
///   (64 bits each), and
/// * the distances in the packed stream between neighbouring elements along `x`, `y` and `z`, in
///   bytes (32 bits each).
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
    // A thread moves several elements of the tile, one for each entry of `turns`. When the block
    // accesses user memory, `lane` is the coordinate `x` of the element within the tile, and the
    // entry of `turns` is its coordinate `y`. So the threads of a warp access elements with
    // neighbouring `x`. When the block accesses the packed stream, `lane` is `y` and the entry of
    // `turns` is `x`. So the threads of a warp access elements with neighbouring `y`.
    let turns: Vec<Register> = (0..SIDE / ROWS).map(|turn| printer.add_constant(row, turn * ROWS)).collect();
    let element = |printer: &mut Printer, is_user: bool, turn: Register| {
        let inside = if is_user { [lane, turn] } else { [turn, lane] };
        let [x, y] = [0, 1].map(|i| printer.add(corner[i], inside[i]));
        let (in_columns, in_rows) = (printer.is_less(x, columns), printer.is_less(y, rows));
        // The position and the offset of an element are sums with one term for each coordinate. The
        // elements that a thread accesses on one side differ in only one coordinate. Add the term
        // of this coordinate last, so that the sum of the other two terms is the same for all these
        // elements. The assembler can then compute that sum only once.
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
    // Read the elements in the order of the side that is read, which is user memory when packing,
    // and store them in shared memory. All loads of a thread come before its first store, so that
    // their latencies overlap.
    let reads_user = direction == Direction::Pack;
    let read: Vec<Element> = turns.iter().map(|&turn| element(&mut printer, reads_user, turn)).collect();
    let loaded: Vec<Vec<Register>> =
        read.iter().map(|e| printer.load(Space::Global, width, e.inside, e.address)).collect();
    for (e, values) in read.iter().zip(&loaded) {
        printer.store(Space::Shared, width, e.inside, e.slot, values);
    }
    // After the barrier, every element of the tile is in shared memory. Write the elements in the
    // order of the destination.
    printer.barrier();
    let written: Vec<Element> = turns.iter().map(|&turn| element(&mut printer, !reads_user, turn)).collect();
    for e in written {
        let values = printer.load(Space::Shared, width, e.inside, e.slot);
        printer.store(Space::Global, width, e.inside, e.address, &values);
    }
    printer.finish(format!("ddtc_tile_{width}_{}", ptx::direction(direction)))
}

/// Registers that a thread needs to move one element between global memory and shared memory.
struct Element {
    /// Predicate register that is true if the launch moves the element.
    inside: Register,
    /// Register with the address of the element in global memory: in user memory or in the packed
    /// bytes.
    address: Register,
    /// Register with the address of the element's slot in shared memory.
    slot: Register,
}

impl Tile {
    /// Returns the layout `strided` as a layout of transposes, or `None` if the kernel `tile`
    /// cannot move it. The conditions are:
    ///
    /// * The kernel has two or three nested loops around a run of bytes, which is an element.
    /// * The number of bytes in an element is one of [`WIDTHS`] and divides all strides.
    /// * The innermost loop, which counts the coordinate `y`, has at least [`SIDE`] iterations.
    /// * The stride of another loop is the number of bytes in an element. This loop counts the
    ///   coordinate `x`. It has at least [`SIDE`] iterations, unless it is the outermost loop of
    ///   the layout: the trip count of this loop depends on the call, so [`Tile::variant`] counts
    ///   the columns of each transfer.
    /// * The numbers of blocks along `y` and `z` do not exceed [`MAX_BLOCKS`]. The number along `z`
    ///   is not checked if the kernel's outermost loop counts `z`.
    pub(crate) fn new(strided: &Strided) -> Option<Tile> {
        let (loops, element) = (strided.loops(), strided.run());
        let width = WIDTHS.into_iter().find(|&width| u64::from(width) == element)?;
        let list = loops.in_kernel();
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
        // If the layout is a single transpose, `z` is a loop with one iteration.
        let z = axes.pop().unwrap_or(Axis { number: Some(1), user: 0, packed: 0 });
        let side = u64::from(SIDE);
        // If there are host loops, a launch stays within one of their iterations. So it has at most
        // as many columns as `x` has iterations, even if `x` is the kernel's outermost loop.
        let has_host_loops = list.len() < loops.list().len();
        let columns = x.number.or(list.last().filter(|_| has_host_loops).map(|l| l.trip));
        let are_long = y.number.is_some_and(|n| n >= side) && columns.is_none_or(|n| n >= side);
        let fit = y.number.is_some_and(|n| n.div_ceil(side) <= MAX_BLOCKS)
            && z.number.is_none_or(|n| n <= MAX_BLOCKS);
        (are_long && fit).then(|| Tile { x, y, z, element: width, strided: strided.clone() })
    }

    /// Returns the number of bytes in an element.
    pub fn element(&self) -> u32 {
        self.element
    }

    /// Returns a range of coordinates `x` that contains all elements in the range `begin..end` of
    /// the packed stream. The positions `begin` and `end` are counted from the beginning of the
    /// iteration of the kernel's outermost loop in which the range begins.
    fn columns(&self, begin: u64, end: u64) -> Range<u64> {
        let iteration = self.loops().iteration();
        match self.x.number {
            None => 0..end.div_ceil(iteration),
            // The kernel's outermost loop counts `z`, and the packed range lies within one of its
            // iterations, which is a single transpose.
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

    /// Returns the number of kernels for each direction. The first of them are the kernels
    /// `strided` for the different widths of words, and the last one is the kernel `tile`.
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
        // If the kernel's outermost loop counts `z`, each iteration of this loop needs one block in
        // the third dimension of the grid. A launch may begin in the middle of an iteration and end
        // in the middle of another one. So limit the launch to the bytes of `MAX_BLOCKS - 1`
        // iterations. Then the launch touches at most `MAX_BLOCKS` iterations.
        let max_bytes = match self.z.number {
            None => MAX_BYTES.min((MAX_BLOCKS - 1) * iteration),
            Some(_) => MAX_BYTES,
        };
        let part = self.loops().part(addresses.user, range, max_bytes);
        let end = part.first + part.bytes;
        // The kernel counts coordinates `x` and positions in the packed stream from the first
        // column that has elements of the launch. So adjust the address and the position.
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
