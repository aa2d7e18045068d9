//! Tests of the printed kernels. An interpreter of PTX runs the kernels on sparse memory, and the
//! bytes that they move are compared with the type map.
//!
//! In each case, user memory consists of the mapped bytes of the datatype and of nothing else.
//! Packed memory consists of the bytes of the range that is moved. The table of a layout is a third
//! piece of memory. So the interpreter refuses a kernel that accesses a gap, a packed byte before
//! or after the range, or an entry before or after the table.

#[allow(dead_code, reason = "the stand-in uses the rest")]
mod interpreter;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use ddtc::internal::corpus;
use ddtc::internal::datatype::{Datatype, TypeMap};
use ddtc::internal::fuzzing::{Budget, Choices, datatype};
use ddtc::internal::kind::Direction;
use ddtc_gpu::index::{Chain, Divisor, MAX_WORD, Values, offset_32, offset_64};
use ddtc_gpu::kernel::{Addresses, Kernel, Mover, THREADS, launches};
use ddtc_gpu::selection::{Selection, select};

use interpreter::{Memory, Module};

/// Maximum number of packed bytes in one case of [`check`].
const MAX_BYTES: u64 = 8 << 10;

/// Value of each byte that no kernel has written yet.
const POISON: u8 = 0xa5;

/// Base addresses of the user's buffer and of the packed bytes, and address of the table. A case
/// may add a small offset to one of the first two addresses, to test another alignment.
const USER: u64 = 1 << 40;
const PACKED: u64 = 0x7000_0000_0000;
const TABLE: u64 = 0x6000_0000_0000;

fn pattern(i: u64) -> u8 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Returns the layout of `t` for kernels, or `None` if no kernel moves the bytes of `t`.
fn mover(t: &Datatype) -> Option<Box<dyn Mover>> {
    match select("test", &ddtc::commit(t).unwrap()) {
        Ok(Selection::Kernels(mover)) => Some(mover),
        Ok(Selection::Nothing | Selection::Run { .. }) | Err(_) => None,
    }
}

/// Returns the displacement of every packed byte of `count` instances, from the type map.
fn displacements(t: &Datatype, count: u64) -> Vec<i64> {
    TypeMap::instances(t, count)
        .flat_map(|(named, at)| (0..named.size()).map(move |byte| at + byte))
        .collect()
}

/// Arguments of one call that packs or unpacks: the layout, the displacements of its packed bytes,
/// the addresses of both sides, and the range of packed bytes that is moved.
struct Call<'s> {
    mover: &'s dyn Mover,
    places: &'s [i64],
    user: u64,
    packed: u64,
    range: Range<u64>,
}

impl Call<'_> {
    fn addresses(&self) -> Addresses {
        Addresses { user: self.user, packed: self.packed, table: TABLE }
    }

    fn variant(&self) -> usize {
        self.mover.variant(&self.addresses(), &self.range)
    }

    /// Returns the kernel that makes the call in the direction `direction`.
    fn kernel(&self, direction: Direction) -> Kernel {
        self.mover.kernel(self.variant(), direction)
    }

    /// Returns user memory that consists of the mapped bytes of the instances. The mapped byte that
    /// belongs to packed byte `i` gets the value `value(i)`.
    fn user_memory(&self, value: impl Fn(u64) -> u8) -> Memory {
        let mut bytes = BTreeMap::new();
        for (i, &at) in self.places.iter().enumerate() {
            bytes.insert(self.user.wrapping_add(at as u64), value(i as u64));
        }
        let (mut memory, mut run, mut start) = (Memory::default(), Vec::new(), 0);
        for (&at, &byte) in &bytes {
            if !run.is_empty() && at != start + run.len() as u64 {
                memory.add(start, std::mem::take(&mut run));
            }
            if run.is_empty() {
                start = at;
            }
            run.push(byte);
        }
        memory.add(start, run);
        memory
    }

    /// Moves the bytes of the call with the kernel whose PTX text is `text`, or with the kernel
    /// that ddtc prints if `text` is `None`. Then compares user memory, the packed bytes and the
    /// table with what they should contain. Returns a message if the interpreter refuses the kernel
    /// or if a byte is wrong.
    fn check(&self, direction: Direction, text: Option<&str>) -> Result<(), String> {
        let printed = self.kernel(direction).text;
        let module = Module::parse(text.unwrap_or(&printed))?;
        let len = self.range.end - self.range.start;
        // One byte of user memory may belong to several packed bytes. So the value of a byte
        // depends on its place in user memory, not on its position in the packed stream.
        let place = |i: u64| pattern(self.places[i as usize] as u64 ^ 0x5555);
        let packed: Vec<u8> = match direction {
            Direction::Pack => vec![POISON; len as usize],
            Direction::Unpack => (0..len).map(pattern).collect(),
        };
        let mut memory = match direction {
            Direction::Pack => self.user_memory(place),
            Direction::Unpack => self.user_memory(|_| POISON),
        };
        memory.add(self.packed, packed);
        let table: Vec<u8> = self.mover.table().iter().flat_map(|entry| entry.to_le_bytes()).collect();
        if !table.is_empty() {
            memory.add(TABLE, table.clone());
        }
        for launch in launches(self.mover, self.variant(), self.addresses(), self.range.clone()) {
            let sizes = module.parameters();
            let values = launch.parameters.values();
            assert_eq!(values.len(), sizes.len(), "one value for each parameter");
            let bytes = values.iter().zip(sizes).map(|(v, &size)| v.to_le_bytes()[..size as usize].to_vec());
            module.run(&mut memory, launch.blocks, THREADS, &bytes.collect::<Vec<_>>())?;
        }
        if !table.is_empty() && memory.bytes(TABLE, table.len() as u64)? != table {
            return Err("the table has changed".to_owned());
        }
        for i in 0..self.places.len() as u64 {
            let at = self.user.wrapping_add(self.places[i as usize] as u64);
            let inside = self.range.contains(&i);
            let user = memory.bytes(at, 1)?[0];
            let expected = match (direction, inside) {
                (Direction::Pack, _) => place(i),
                (Direction::Unpack, true) => pattern(i - self.range.start),
                (Direction::Unpack, false) => POISON,
            };
            if user != expected {
                return Err(format!("byte {i} is {user:#x} in user memory, not {expected:#x}"));
            }
            if inside && direction == Direction::Pack {
                let byte = memory.bytes(self.packed + (i - self.range.start), 1)?[0];
                if byte != expected {
                    return Err(format!("packed byte {i} is {byte:#x}, not {expected:#x}"));
                }
            }
        }
        Ok(())
    }
}

/// What the cases of one test have covered: the number of layouts, the number of calls that
/// unpacked, and the names of the kernels that packed.
#[derive(Default)]
struct Seen {
    layouts: u32,
    unpacked: u32,
    kernels: BTreeSet<String>,
}

impl Seen {
    /// Checks that for each of `parts` a kernel was seen whose name contains this part.
    fn contains(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.kernels.iter().any(|name| name.contains(part)), "{part}: {:?}", self.kernels);
        }
    }
}

/// Returns a number of instances of `t`, from 1 to 5, whose packed bytes are at most [`MAX_BYTES`].
fn instances(t: &Datatype) -> u64 {
    (MAX_BYTES / t.size() as u64).clamp(1, 5)
}

/// Packs and unpacks instances of `t` as [`check_count`] does. Datatypes that are too large or have
/// no bytes are skipped.
fn check(t: &Datatype, seen: &mut Seen, skew: u64) {
    if t.size() > 0 && t.size() as u64 <= MAX_BYTES {
        check_count(t, instances(t), seen, skew);
    }
}

/// Packs and unpacks `count` instances of `t` by a kernel and checks the moved bytes, with four
/// choices of the range and of the addresses of the two buffers:
///
/// * All packed bytes, where both addresses are aligned to the layout's unit.
/// * A part of the packed bytes, where both addresses are aligned.
/// * All packed bytes, where the address in user memory lies `skew` bytes after an aligned address.
/// * A part of the packed bytes, where the packed address lies `skew` bytes after an aligned one.
///
/// Datatypes that no kernel serves are skipped.
fn check_count(t: &Datatype, count: u64, seen: &mut Seen, skew: u64) {
    let Some(mover) = mover(t) else { return };
    let loops = mover.loops();
    let places = displacements(t, count);
    let total = places.len() as u64;
    seen.layouts += 1;
    // If the user's buffer begins at the address `aligned`, the address of the layout's first byte
    // is aligned, whatever the displacement of this byte is.
    let aligned = USER.wrapping_sub(loops.start() as u64);
    let part = total / 3..total - total / 5;
    let unit = u64::from(loops.unit());
    let in_units = part.start / unit * unit..part.end / unit * unit;
    for (user, packed, range) in [
        (aligned, PACKED, 0..total),
        (aligned, PACKED + unit * 3, in_units),
        (aligned + skew, PACKED, 0..total),
        (aligned, PACKED + skew, part),
    ] {
        let call = Call { mover: &*mover, places: &places, user, packed, range };
        if call.range.is_empty() {
            continue;
        }
        let name = call.kernel(Direction::Pack).name;
        let failed =
            |e| panic!("{t}, {count} instances, {:?} at {user:#x}, {packed:#x}, {name}: {e}", call.range);
        call.check(Direction::Pack, None).unwrap_or_else(failed);
        if loops.is_disjoint(count) {
            seen.unpacked += 1;
            call.check(Direction::Unpack, None).unwrap_or_else(failed);
        }
        seen.kernels.insert(name);
    }
}

/// Checks every datatype of the corpus that a kernel serves, if the datatype is small enough to be
/// interpreted.
#[test]
fn the_corpus() {
    let mut seen = Seen::default();
    for (i, entry) in corpus::application().into_iter().chain(corpus::corner()).enumerate() {
        check(&entry.datatype, &mut seen, 1 << (i % 4));
    }
    assert!(seen.layouts > 40 && seen.unpacked > 80, "{} layouts, {} unpacked", seen.layouts, seen.unpacked);
    seen.contains(&["strided_", "list_words_", "list_blocks_"]);
}

/// Checks random datatypes. Every datatype with bytes is either one run of bytes or served by a
/// kernel.
#[test]
fn random_types() {
    let mut seen = Seen::default();
    for seed in 0..1000 {
        let mut choices = Choices::from_seed(seed);
        let t = datatype(&mut choices, &Budget::small());
        if let Err(error) = select("test", &ddtc::commit(&t).unwrap()) {
            panic!("{t}: {error}");
        }
        check(&t, &mut seen, 1 << (seed % 5));
    }
    assert!(
        seen.layouts > 200 && seen.unpacked > 300,
        "{} layouts, {} unpacked",
        seen.layouts,
        seen.unpacked
    );
    seen.contains(&["strided_", "list_words_", "list_blocks_"]);
}

/// Returns a random datatype that consists of a run of bytes in a chain of up to three nested
/// loops. Every loop leaves gaps between its iterations, and may have a negative stride.
fn chain(c: &mut Choices<'_>) -> Datatype {
    let byte = Datatype::of::<u8>();
    let unit = 1 << c.below(5);
    let run = unit * c.pick(&[1, 1, 1, 2, 3, 4, 7]);
    let mut t = Datatype::contiguous(run, &byte).unwrap();
    let mut span = run;
    for _ in 0..c.below(4) {
        let trip = c.pick(&[2, 3, 5, 8, 13]);
        let stride = span + unit * c.pick(&[1, 1, 3, 6]);
        let backwards = if c.chance(40) { -1 } else { 1 };
        t = Datatype::hvector(trip, 1, stride * backwards, &t).unwrap();
        span = stride * trip;
        if t.size() > 4000 {
            break;
        }
    }
    Datatype::resized(0, span + unit * c.pick(&[0, 1, 5]), &t).unwrap()
}

/// Checks random chains of nested loops. Together these chains must cover all widths of words, each
/// number of divisions from 0 to 4, sums of 32 bits, and sums of 64 bits.
#[test]
fn chains_of_loops() {
    let mut seen = Seen::default();
    for seed in 0..200 {
        check(&chain(&mut Choices::from_seed(seed)), &mut seen, 1 << (seed % 5));
    }
    for width in [16, 8, 4, 2, 1] {
        for sums in [32, 64] {
            let shape =
                |divisions| seen.kernels.contains(&format!("ddtc_strided_{width}_{divisions}_{sums}_pack"));
            assert!((0..=4).any(shape), "{width} bytes, sums of {sums} bits");
        }
    }
    seen.contains(&["_0_32_", "_1_32_", "_2_32_", "_3_32_", "_4_32_"]);
    assert!(seen.layouts > 100, "{} layouts", seen.layouts);
}

/// Returns a random datatype with blocks at random places in user memory. The blocks have equal
/// lengths or not, and are repeated by up to three nested loops, which may have negative strides.
/// Every block begins at a multiple of `unit` bytes.
fn blocks(c: &mut Choices<'_>, unit: i64) -> Datatype {
    let byte = Datatype::of::<u8>();
    let are_equal = c.chance(50);
    let (number, length) = (c.pick(&[2, 3, 5, 17, 40]), c.pick(&[1, 1, 2, 3, 8, 40]));
    let (mut at, mut list) = (0, Vec::new());
    for _ in 0..number {
        at += unit * c.pick(&[1, 2, 3, 9]);
        let length = if are_equal { length } else { c.pick(&[1, 2, 5, 30, 70]) };
        list.push((unit * length, at));
        at += unit * length;
    }
    if c.chance(30) {
        list.reverse();
    }
    let (lengths, displacements): (Vec<i64>, Vec<i64>) = list.into_iter().unzip();
    let mut t = Datatype::hindexed(&lengths, &displacements, &byte).unwrap();
    let mut span = at;
    for _ in 0..c.below(3) {
        let trip = c.pick(&[2, 3, 5]);
        let stride = span + unit * c.pick(&[1, 2, 7]);
        let backwards = if c.chance(30) { -1 } else { 1 };
        t = Datatype::hvector(trip, 1, stride * backwards, &t).unwrap();
        span = stride * trip;
        if t.size() > 4000 {
            break;
        }
    }
    Datatype::resized(0, span + unit * c.pick(&[0, 1, 5]), &t).unwrap()
}

/// Checks random lists of blocks. Together they must cover the kernel `list` with all widths of
/// words, with blocks of one word and of several words, and with sums of 32 and of 64 bits.
#[test]
fn lists_of_blocks() {
    let mut seen = Seen::default();
    for seed in 0..300 {
        let c = &mut Choices::from_seed(seed);
        check(&blocks(c, 1 << (seed % 5)), &mut seen, 1 << (seed % 4));
    }
    for width in [16, 8, 4, 2, 1] {
        seen.contains(&[&format!("list_words_{width}_"), &format!("list_blocks_{width}_")]);
    }
    seen.contains(&["_0_32_", "_1_32_", "_2_32_", "_1_64_", "_2_64_"]);
    assert!(seen.layouts > 200, "{} layouts", seen.layouts);
}

/// Returns a random datatype with blocks of different lengths, some of them longer than a piece.
/// They are too irregular for the kernel `list`. The blocks are repeated by up to two nested loops.
/// Every block begins at a multiple of `unit` bytes.
fn irregular(c: &mut Choices<'_>, unit: i64) -> Datatype {
    let byte = Datatype::of::<u8>();
    let (mut at, mut lengths, mut displacements) = (0, Vec::new(), Vec::new());
    let mut units = 0;
    while units <= 1024 {
        // The first block has one unit. So the lengths have no greater common divisor than the
        // unit.
        let length = if units == 0 { 1 } else { c.pick(&[1, 2, 5, 30, 31, 33, 70, 600]) };
        at += unit * c.pick(&[1, 2, 9]);
        lengths.push(unit * length);
        displacements.push(at);
        at += unit * length;
        units += length;
    }
    let backwards = if c.chance(30) { -1 } else { 1 };
    let mut t = Datatype::hindexed(&lengths, &displacements, &byte).unwrap();
    let mut span = at;
    for _ in 0..c.below(3) {
        let stride = span + unit * c.pick(&[1, 2, 7]);
        t = Datatype::hvector(2, 1, stride * backwards, &t).unwrap();
        span = stride * 2;
        if t.size() > 8000 {
            break;
        }
    }
    Datatype::resized(0, span + unit * c.pick(&[0, 1, 5]), &t).unwrap()
}

/// Checks random irregular lists of blocks. Together they must cover the kernel `pieces` with all
/// widths of words, and with sums of 32 and of 64 bits.
#[test]
fn irregular_blocks() {
    let mut seen = Seen::default();
    for seed in 0..30 {
        let c = &mut Choices::from_seed(seed);
        check_count(&irregular(c, 1 << (seed % 5)), 1 + seed % 2, &mut seen, 1 << (seed % 4));
    }
    for width in [16, 8, 4, 2, 1] {
        seen.contains(&[&format!("pieces_{width}_")]);
    }
    seen.contains(&["_0_32_", "_1_32_", "_2_32_", "_64_"]);
    assert_eq!(seen.layouts, 30);
}

/// Returns transposes of elements of `element` bytes: their datatype, and a number of instances.
/// The elements have `rows` rows and `columns` columns in user memory, and the rows are `gap`
/// elements longer than that. `batch` is the number of transposes. The loop over the instances is
/// the loop over the columns if `by_column` is true, and the loop over the transposes otherwise.
fn transposes(element: i64, [rows, columns, gap, batch]: [i64; 4], by_column: bool) -> (Datatype, u64) {
    let pitch = (columns + gap) * element;
    let matrix = pitch * rows + 3 * element;
    let one = Datatype::contiguous(element, &Datatype::of::<u8>()).unwrap();
    let column = Datatype::hvector(rows, 1, pitch, &one).unwrap();
    if by_column {
        let all = Datatype::hvector(batch, 1, matrix, &column).unwrap();
        (Datatype::resized(0, element, &all).unwrap(), columns as u64)
    } else {
        let all = Datatype::hvector(columns, 1, element, &column).unwrap();
        (Datatype::resized(0, matrix, &all).unwrap(), batch as u64)
    }
}

/// Checks transposes of elements of each width. The numbers of rows and columns are just below, at
/// or just above multiples of the side of a tile.
#[test]
fn transposes_by_tiles() {
    for element in [16, 8, 4, 2, 1] {
        let mut seen = Seen::default();
        for (sizes, by_column) in [
            ([32, 32, 1, 1], true),
            ([33, 64, 7, 1], true),
            ([65, 47, 0, 1], true),
            ([32, 33, 2, 2], true),
            ([35, 37, 5, 2], false),
            ([64, 31, 1, 2], true),
            ([40, 32, 1, 3], false),
        ] {
            let (t, count) = transposes(element, sizes, by_column);
            check_count(&t, count, &mut seen, if element == 1 { 3 } else { element as u64 / 2 });
        }
        assert_eq!(seen.layouts, 7);
        seen.contains(&[&format!("tile_{element}_"), "strided_1_"]);
    }
}

/// A range of the packed stream that lies in few columns of one large transpose is moved by the
/// kernel `strided`. If it lies in more columns, the launch of the kernel `tile` leaves out the
/// other columns.
#[test]
fn ranges_of_transposes() {
    let (t, count) = transposes(8, [40, 200, 1, 2], false);
    let (mover, places) = (mover(&t).unwrap(), displacements(&t, count));
    let column = 40 * 8;
    for (range, name, blocks) in [
        (60 * column + 16..91 * column, "ddtc_strided_8", 5),
        (60 * column + 16..91 * column + 8, "ddtc_tile_8", 1),
        (60 * column + 16..93 * column + 8, "ddtc_tile_8", 2),
        (190 * column + 16..201 * column, "ddtc_tile_8", 7),
    ] {
        let call = Call { mover: &*mover, places: &places, user: USER, packed: PACKED, range };
        let launch = mover.launch(call.variant(), &call.addresses(), call.range.clone());
        assert!(call.kernel(Direction::Pack).name.starts_with(name), "{:?}", call.range);
        assert_eq!(launch.blocks[0], blocks, "{:?}", call.range);
        for direction in Direction::BOTH {
            call.check(direction, None).unwrap_or_else(|e| panic!("{:?}: {e}", call.range));
        }
    }
}

fn parse(text: &str) -> Datatype {
    text.parse().unwrap()
}

/// Checks layouts whose instances together span more than 4 GiB. For some of these layouts the
/// kernel has sums of 32 bits, and for the others it needs sums of 64 bits.
#[test]
fn extents_beyond_4_gib() {
    let mut seen = Seen::default();
    for text in [
        "hvector(5, 1, 2147483648, vector(3, 1, 2, double))",
        "hvector(5, 1, 2147483656, vector(3, 1, 2, double))",
        "hvector(3, 1, 4294967296, double)",
        "hvector(3, 1, 4294967304, hvector(2, 1, 1073741824, double))",
        "hvector(3, 1, -6000000000, hvector(2, 1, 24, double))",
        "hvector(7, 1, 1000000000, hvector(2, 3, 40, int))",
        "resized(0, 3000000000, hvector(4, 1, 24, double))",
        "resized(0, 1500000000, hvector(4, 1, 24, double))",
        "resized(0, 3000000000, hindexed([8, 8, 8], [0, 40, 2000000000], byte))",
        "resized(0, 1500000000, hindexed([8, 8, 8], [1400000000, 40, 0], byte))",
        "hvector(3, 1, -6000000000, hindexed([16, 16, 16], [0, 40, 4000000000], byte))",
    ] {
        check(&parse(text), &mut seen, 4);
    }
    let lists = Datatype::resized(0, 5_000_000_000, &irregular(&mut Choices::from_seed(3), 8)).unwrap();
    check_count(&lists, 2, &mut seen, 4);
    check_count(
        &parse("resized(0, 40000000000, hvector(37, 1, 8, hvector(35, 1, 1000000000, double)))"),
        2,
        &mut seen,
        4,
    );
    assert_eq!(seen.layouts, 13);
    seen.contains(&["strided_8_1_64_", "strided_8_1_32_", "list_words_8_0_64_", "list_words_8_0_32_"]);
    seen.contains(&["list_blocks_8_1_64_", "pieces_8_1_64_", "tile_8_"]);
}

/// Checks transfers whose number of words is just below, at or just above the number of words that
/// one block of threads moves, and some other numbers. This is done for every width of words, for
/// the kernels `strided` and `list`.
#[test]
fn tails() {
    for (strided, list, width, turns) in [
        (
            "resized(0, 48, contiguous(16, byte))",
            "resized(0, 112, hindexed_block(16, [80, 16, 48], byte))",
            16,
            1,
        ),
        ("resized(0, 24, double)", "resized(0, 56, hindexed_block(1, [40, 8, 24], double))", 8, 1),
        ("resized(0, 12, int)", "resized(0, 28, hindexed_block(1, [20, 4, 12], int))", 4, 4),
        ("resized(0, 6, short)", "resized(0, 14, hindexed_block(1, [10, 2, 6], short))", 2, 8),
        ("resized(0, 3, byte)", "resized(0, 7, hindexed_block(1, [5, 1, 3], byte))", 1, 8),
    ] {
        let block = u64::from(THREADS) * turns;
        for (text, words_each) in [(strided, 1), (list, 3)] {
            let t = parse(text);
            let mover = mover(&t).expect(text);
            for words in [1, 2, 255, 256, 257, block - 1, block, block + 1, block + 256, 2 * block] {
                let places = displacements(&t, words.div_ceil(words_each));
                let range = 0..words * width;
                let user = USER.wrapping_sub(mover.loops().start() as u64);
                let call = Call { mover: &*mover, places: &places, user, packed: PACKED, range };
                let name = call.kernel(Direction::Pack).name;
                assert!(name.contains(&format!("_{width}_0_32_")), "{name}");
                for direction in Direction::BOTH {
                    call.check(direction, None).unwrap_or_else(|e| panic!("{words} words of {text}: {e}"));
                }
            }
        }
    }
}

/// A call whose offsets do not fit into 32 bits is split into several launches. Each launch must
/// begin where the launch before it ends, and its indices must be small enough for the divisions.
/// The index arithmetic of the kernel `strided` must agree with plain divisions.
#[test]
fn launches_of_huge_calls() {
    let t = parse("resized(0, 64, hvector(2, 3, 20, int))");
    let strided = mover(&t).unwrap();
    let count: u64 = 900_000_000;
    let bytes = 24 * count;
    let range = 8..bytes - 4;
    let addresses = Addresses { user: USER, packed: PACKED, table: 0 };
    let variant = strided.variant(&addresses, &range);
    assert_eq!(variant, 2);
    let mut next = range.start;
    let mut number = 0;
    for launch in launches(&*strided, variant, addresses, range.clone()) {
        number += 1;
        let [user, packed, first, words, stride, multiplier1, shift1, step1, multiplier2, shift2, step2] =
            *launch.parameters.values()
        else {
            panic!("two divisions")
        };
        assert_eq!(packed, PACKED + next - 8);
        assert!(words > 0 && launch.bytes == words * 4);
        assert!(first + launch.blocks.iter().map(|&b| u64::from(b)).product::<u64>() * 1024 < MAX_WORD);
        let division =
            |multiplier, shift, step| (Divisor { multiplier: multiplier as u32, shift: shift as u32 }, step);
        let divisions = vec![division(multiplier1, shift1, step1), division(multiplier2, shift2, step2)];
        let wide = Chain { stride, divisions };
        let divisions = wide.divisions.iter().map(|&(divisor, step)| (divisor, step as u32)).collect();
        let narrow = Chain { stride: stride as u32, divisions };
        for i in [0, 1, 7, words / 2, words - 1] {
            let word = (first + i) as u32;
            let byte = next + i * 4;
            let (instance, inside) = (byte / 24, byte % 24);
            let expected = USER + instance * 64 + inside / 12 * 20 + inside % 12;
            assert_eq!(user + offset_32(&mut Values, word, &narrow), expected, "byte {byte}");
            assert_eq!(user.wrapping_add(offset_64(&mut Values, word, &wide)), expected);
        }
        next += launch.bytes;
    }
    assert_eq!(next, range.end);
    assert!(number >= 13, "{number}");
}

/// A layout that no kernel serves is refused, and the error names the rule that the layout breaks.
#[test]
fn refusals() {
    for (text, rule) in [
        ("resized(0, 1800000000, contiguous(1500000000, byte))", "at most 1 GiB"),
        ("hindexed([8, 900000000, 900000000], [0, 16, 1000000000], byte)", "at most 1 GiB"),
        ("hindexed([8, 16, 8], [0, 40, 6000000000], byte)", "within 4 GiB"),
        (
            "hvector(2, 1, 30000000000, hvector(2, 1, 10000000000, hvector(2, 1, 3000000000, hvector(20000000, 1, 64, hindexed([1, 2], [0, 8], byte)))))",
            "at most 16777216 blocks",
        ),
    ] {
        let error = select("test", &ddtc::commit(&parse(text)).unwrap()).unwrap_err();
        assert!(error.to_string().contains(rule), "{text}: {error}");
    }
    for text in ["resized(0, 4, double)", "resized(0, 4, hindexed([8, 8], [0, 12], byte))"] {
        assert!(!mover(&parse(text)).unwrap().loops().is_disjoint(2), "{text}");
    }
}

/// A change of the PTX text of a kernel. It replaces the first occurrence of `from` by `to`.
struct Mutation {
    name: &'static str,
    from: &'static str,
    to: &'static str,
}

/// Returns the mutation with the name `name` that replaces `from` by `to`.
const fn mutation(name: &'static str, from: &'static str, to: &'static str) -> Mutation {
    Mutation { name, from, to }
}

/// Changes that make every kernel wrong that moves words of 8 bytes and divides at least once. The
/// tests must find each change in each of these kernels.
const MUTATIONS: [Mutation; 8] = [
    mutation("low instead of high half", "mul.hi.u32", "mul.lo.u32"),
    mutation("load without tail predicate", "@%p0 ld.global", "ld.global"),
    mutation("store without tail predicate", "@%p0 st.global", "st.global"),
    mutation("store of another width", "st.global.u64", "st.global.u32"),
    mutation("load of another width", "ld.global.u64", "ld.global.u16"),
    mutation("no user address", "ld.param.u64 %d0, [user]", "mov.u32 %r0, %tid.x"),
    mutation("thread instead of block", "%ctaid.x", "%tid.x"),
    mutation("sum of 32 bits for an address", "add.u64", "add.u32"),
];

/// Changes that make the kernel `strided` wrong.
const STRIDED_MUTATIONS: [Mutation; 6] = [
    mutation("wrong number of threads", ", 256, ", ", 255, "),
    mutation("one word too many", "setp.lt.u32", "setp.le.u32"),
    mutation("multiplier as shift", "[shift1]", "[multiplier1]"),
    mutation("wrong step", "[step1]", "[stride]"),
    mutation("wrong width of the packed side", ", 8, %d", ", 4, %d"),
    mutation("unknown instruction", "add.u64", "sub.u64"),
];

/// Changes that make the kernel `list` wrong.
const LIST_MUTATIONS: [Mutation; 9] = [
    mutation("wrong size of an entry of the table", ", 4, %d", ", 8, %d"),
    mutation("packed bytes as the table", "[table]", "[packed]"),
    mutation("another table that is written", "ld.global.nc.u32", "ld.global.nc.u64"),
    mutation("another divisor", "[multiplier_rows]", "[multiplier_length]"),
    mutation("another number of rows", "[rows]", "[length]"),
    mutation("a sum in place of a remainder", "sub.u32", "add.u32"),
    mutation("wrong width of a word in a block", "mov.u32 %r24, 8;", "mov.u32 %r24, 4;"),
    mutation("one word too many", "setp.lt.u32", "setp.le.u32"),
    mutation("wrong step", "[step1]", "[stride]"),
];

/// Changes that make the kernel `pieces` wrong.
const PIECES_MUTATIONS: [Mutation; 14] = [
    mutation("wrong size of an entry of the table", ", 4, %d", ", 8, %d"),
    mutation("user memory as the table", "[table]", "[user]"),
    mutation("another divisor", "[multiplier_rows]", "[multiplier1]"),
    mutation("another number of rows", "[rows]", "[first]"),
    mutation("wrong step", "[step1]", "[stride]"),
    mutation("a range that begins late", "min.u32", "max.u32"),
    mutation("a range that ends late", "max.u32", "min.u32"),
    mutation("another position as the beginning", "[begin]", "[end]"),
    mutation("another number of bytes in an iteration", "[bytes]", "[end]"),
    mutation("a sum in place of a remainder", "sub.u32", "add.u32"),
    mutation("twice as many lanes", ", 15;", ", 31;"),
    mutation("half as many lanes", ", 15;", ", 7;"),
    mutation("groups that overlap", ", 16, ", ", 8, "),
    mutation("one word too many", "setp.lt.u32", "setp.le.u32"),
];

/// Changes that make the kernel `tile` wrong, and those of [`MUTATIONS`] that concern it.
const TILE_MUTATIONS: [Mutation; 19] = [
    mutation("no barrier", "    bar.sync 0;\n", ""),
    mutation("a barrier that not all threads reach", "bar.sync 0;", "@%p0 bar.sync 0;"),
    mutation("another pitch at one place", ", 33, ", ", 32, "),
    mutation("shared memory that is too small", "tile[8448]", "tile[8192]"),
    mutation("no address of shared memory", ", tile;", ", 0;"),
    mutation("another width in shared memory", "st.shared.u64", "st.shared.u32"),
    mutation("a load from global memory in place of shared memory", "ld.shared.u64", "ld.global.u64"),
    mutation("store to shared memory without a predicate", "@%p4 st.shared", "st.shared"),
    mutation("another dimension of the grid", "%ctaid.y", "%ctaid.x"),
    mutation("another transpose of the batch", "%ctaid.z", "%ctaid.y"),
    mutation("too few columns", "[columns]", "[rows]"),
    mutation("too many rows", "[rows]", "[columns]"),
    mutation("another stride in user memory", "[user_y]", "[user_z]"),
    mutation("another stride in the packed stream", "[packed_x]", "[packed_z]"),
    mutation("another beginning of the range", "[begin]", "[bytes]"),
    mutation("another length of the range", "[bytes]", "[begin]"),
    mutation("a sum in place of a difference", "sub.u32", "add.u32"),
    mutation("thread instead of block", "%ctaid.x", "%tid.x"),
    mutation("sum of 32 bits for an address", "add.u64", "add.u32"),
];

/// A case for mutations: a datatype, a number of instances, a range of packed bytes, and changes of
/// the kernel that moves this range.
struct Mutated {
    text: String,
    count: u64,
    range: Range<u64>,
    kernel: &'static str,
    mutations: Vec<&'static Mutation>,
}

fn mutated() -> Vec<Mutated> {
    let all = |own: &'static [Mutation]| MUTATIONS.iter().chain(own).collect();
    vec![
        Mutated {
            text: "resized(0, 80, hvector(3, 1, 24, double))".to_owned(),
            count: 201,
            range: 0..201 * 24,
            kernel: "ddtc_strided_8_1_32_",
            mutations: all(&STRIDED_MUTATIONS),
        },
        Mutated {
            text:
                "resized(0, 4000, hvector(3, 1, 1320, hindexed_block(2, [600, 0, 320, 1000, 800], double)))"
                    .to_owned(),
            count: 29,
            range: 8..29 * 240 - 16,
            kernel: "ddtc_list_blocks_8_1_32_",
            mutations: all(&LIST_MUTATIONS),
        },
        Mutated {
            text: format!(
                "resized(0, 30000, hvector(2, 1, 14000, hindexed([{}], [{}], double)))",
                "1, 2, 140, 20, 500, 64, 65, 40, 250", "0, 16, 48, 2000, 2200, 7000, 8000, 10000, 10400"
            ),
            count: 2,
            range: 16..4 * 1082 * 8 - 119 * 8,
            kernel: "ddtc_pieces_8_1_32_",
            mutations: all(&PIECES_MUTATIONS),
        },
        Mutated {
            text: "resized(0, 20000, hvector(37, 1, 8, hvector(35, 1, 400, double)))".to_owned(),
            count: 2,
            range: 40..2 * 35 * 37 * 8 - 8,
            kernel: "ddtc_tile_8_",
            mutations: TILE_MUTATIONS.iter().collect(),
        },
    ]
}

#[test]
fn mutations_are_found() {
    let mut missed = Vec::new();
    for Mutated { text, count, range, kernel, mutations } in mutated() {
        let t = parse(&text);
        let (mover, places) = (mover(&t).expect(&text), displacements(&t, count));
        let call = Call { mover: &*mover, places: &places, user: USER, packed: PACKED, range };
        let mut rules: HashMap<String, &str> = HashMap::new();
        for direction in Direction::BOTH {
            let printed = call.kernel(direction);
            assert!(printed.name.starts_with(kernel), "{}", printed.name);
            call.check(direction, Some(&printed.text)).unwrap_or_else(|e| panic!("{text}: {e}"));
            for Mutation { name, from, to } in &mutations {
                let changed = printed.text.replacen(from, to, 1);
                assert!(changed != printed.text, "{name}: {} has no {from}", printed.name);
                match call.check(direction, Some(&changed)) {
                    Err(found) => _ = rules.insert(found, name),
                    Ok(()) => missed.push(format!("{}: {name}", printed.name)),
                }
            }
        }
        assert!(rules.len() > mutations.len() / 2, "{rules:#?}");
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Makes three kinds of small changes at every place of a kernel's text, and returns the changed
/// texts, each with a description. A change leaves out one instruction, leaves out the predicate of
/// one instruction, or adds 8 to one constant. With a smaller number, a position that is a multiple
/// of 8 bytes could be on the same side of a limit as before.
fn changes(text: &str) -> Vec<(String, String)> {
    let (head, body) = text.split_once("{\n").expect("a body");
    let lines: Vec<&str> = body.lines().collect();
    let mut changes = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let instruction = line.trim();
        if instruction.starts_with('.') || matches!(instruction, "ret;" | "}") {
            continue;
        }
        let mut replaced = vec![String::new()];
        if let Some((_, unguarded)) = instruction.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
            replaced.push(unguarded.to_owned());
        }
        let words: Vec<&str> = instruction.trim_end_matches(';').split(' ').collect();
        for (at, word) in words.iter().enumerate() {
            if let Ok(constant) = word.trim_end_matches(',').parse::<u64>() {
                let mut words = words.clone();
                let comma = if word.ends_with(',') { "," } else { "" };
                let changed = format!("{}{comma}", constant + 8);
                words[at] = &changed;
                replaced.push(words.join(" ") + ";");
            }
        }
        for new in replaced {
            let mut lines = lines.clone();
            lines[i] = &new;
            changes.push((
                format!("{new:?} in place of {instruction:?}"),
                format!("{head}{{\n{}\n", lines.join("\n")),
            ));
        }
    }
    changes
}

/// Every instruction, every predicate and every constant of the kernels matters: a change of any of
/// them is found.
#[test]
fn changes_of_every_instruction_are_found() {
    let mut missed = Vec::new();
    for Mutated { text, count, range, .. } in mutated() {
        let t = parse(&text);
        let (mover, places) = (mover(&t).expect(&text), displacements(&t, count));
        let call = Call { mover: &*mover, places: &places, user: USER, packed: PACKED, range };
        for direction in Direction::BOTH {
            let printed = call.kernel(direction);
            let changes = changes(&printed.text);
            assert!(changes.len() > 25, "{}", printed.name);
            for (what, changed) in changes {
                if call.check(direction, Some(&changed)).is_ok() {
                    missed.push(format!("{}: {what}", printed.name));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Changes kernels of other shapes than the kernels of [`mutated`], and checks that each change is
/// found. A change concerns kernels whose threads move several words, kernels with vector loads and
/// stores, or kernels with sums of 64 bits.
#[test]
fn mutations_of_other_shapes_are_found() {
    for (text, name, from, to) in [
        ("resized(0, 12, int)", "turns that overlap", ", 512;", ", 256;"),
        ("resized(0, 12, int)", "a turn that is left out", ", 768;", ", 512;"),
        ("resized(0, 48, contiguous(16, byte))", "halves exchanged", "{%d7, %d8}", "{%d8, %d7}"),
        ("hvector(3, 1, -24, double)", "32 bits of a long sum", "mad.lo.u64", "mad.lo.u32"),
        ("hvector(3, 1, -24, double)", "a register that is not set", "cvt.u64.u32 %d8", "cvt.u64.u32 %d6"),
    ] {
        let t = parse(text);
        let mover = mover(&t).expect(text);
        let places = displacements(&t, 2100);
        let range = 0..places.len() as u64;
        let user = USER.wrapping_sub(mover.loops().start() as u64);
        let call = Call { mover: &*mover, places: &places, user, packed: PACKED, range };
        let printed = call.kernel(Direction::Pack).text;
        call.check(Direction::Pack, Some(&printed)).unwrap();
        let changed = printed.replacen(from, to, 1);
        assert_ne!(changed, printed, "{name}: no {from} in\n{printed}");
        call.check(Direction::Pack, Some(&changed)).expect_err(name);
    }
}
