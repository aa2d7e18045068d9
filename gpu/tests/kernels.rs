//! Tests of the printed kernels. An interpreter of PTX runs each kernel, and the bytes that it
//! moves are compared with MPI's type map.

mod calls;

use std::collections::BTreeSet;

use calls::interpreter::{Memory, Module};
use calls::{Call, PACKED, USER, displacements, mover, parse};
use ddtc::internal::corpus;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::fuzzing::{Budget, Choices, datatype};
use ddtc::internal::kind::Direction;
use ddtc_gpu::index::{Chain, Divisor, MAX_WORD, Values, offset_32, offset_64};
use ddtc_gpu::kernel::{Addresses, Mover, THREADS, launches};
use ddtc_gpu::per_element::{self, PerElement};
use ddtc_gpu::selection::select;

/// Maximum number of packed bytes in a test case of [`check`].
const MAX_BYTES: u64 = 8 << 10;

/// Coverage of one test: the number of layouts that were tested, the number of transfers that were
/// unpacked, and the names of the kernels that packed.
#[derive(Default)]
struct Seen {
    layouts: u32,
    unpacked: u32,
    kernels: BTreeSet<String>,
}

impl Seen {
    /// Checks that each string of `parts` is contained in the name of at least one kernel that was
    /// run.
    fn contains(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.kernels.iter().any(|name| name.contains(part)), "{part}: {:?}", self.kernels);
        }
    }
}

/// Returns the largest number of instances of `t`, from 1 to 5, that together have at most
/// [`MAX_BYTES`] packed bytes. One instance must not have more than [`MAX_BYTES`].
fn instances(t: &Datatype) -> u64 {
    (MAX_BYTES / t.size() as u64).clamp(1, 5)
}

/// Packs and unpacks up to 5 instances of `t`, and checks the moved bytes as [`check_count`] does.
/// Does nothing if `t` has no bytes or more than [`MAX_BYTES`].
fn check(t: &Datatype, seen: &mut Seen, skew: u64) {
    if t.size() > 0 && t.size() as u64 <= MAX_BYTES {
        check_count(t, instances(t), seen, skew);
    }
}

/// Packs and unpacks `count` instances of `t` by a kernel, and checks the moved bytes. This is done
/// with four choices of the packed range and of the addresses of the two buffers. "Aligned" means
/// that the widest words that the layout allows can be moved:
///
/// * All packed bytes. Both buffers are aligned.
/// * A middle part of the packed bytes. Both buffers and both ends of the range are aligned.
/// * All packed bytes. The user's buffer begins `skew` bytes after an aligned address.
/// * A middle part of the packed bytes. The packed bytes begin `skew` bytes after an aligned
///   address, and the ends of the range need not be aligned.
///
/// Does nothing if no kernel moves the datatype `t`. Unpacking is left out if two packed bytes may
/// belong to the same byte of user memory.
fn check_count(t: &Datatype, count: u64, seen: &mut Seen, skew: u64) {
    let Some(mover) = mover(t) else { return };
    let loops = mover.loops();
    let places = displacements(t, count);
    let total = places.len() as u64;
    seen.layouts += 1;
    // If the user's buffer begins at the address `aligned`, then the layout's first byte lies at
    // the aligned address `USER`, whatever the displacement of this byte is.
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
        let call = Call { user, packed, ..Call::whole(&*mover, &places, range) };
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

/// Packs and unpacks instances of `t` by the kernel `per_element`, and checks the moved bytes. The
/// elements are as wide as the alignment of the layout allows. This is done with all packed bytes,
/// and with a middle part of them. Does nothing if the layout of `t` is not one run of bytes in
/// nested loops, or if [`check`] would do nothing.
fn check_per_element(t: &Datatype, seen: &mut Seen) {
    let size = t.size() as u64;
    let Some(mover) = (1..=MAX_BYTES).contains(&size).then(|| mover(t)).flatten() else { return };
    let unit = mover.loops().unit();
    let Some(per_element) = PerElement::new(&*mover, unit) else { return };
    let count = instances(t);
    let (places, elements) = (displacements(t, count), size * count / u64::from(unit));
    seen.layouts += 1;
    for part in [0..elements, elements / 3..elements - elements / 5] {
        let range = part.start * u64::from(unit)..part.end * u64::from(unit);
        let call = Call::whole(&per_element, &places, range);
        let name = call.kernel(Direction::Pack).name;
        let failed = |e| panic!("{t}, {count} instances, {:?}, {name}: {e}", call.range);
        call.check(Direction::Pack, None).unwrap_or_else(failed);
        if per_element.loops().is_disjoint(count) {
            seen.unpacked += 1;
            call.check(Direction::Unpack, None).unwrap_or_else(failed);
        }
        seen.kernels.insert(name);
    }
}

/// Checks the kernel `per_element`, which only the benchmark program `judge` launches: with the
/// nested loops of ddtc's corpus, with random nested loops, and with transposes. Together they must
/// cover elements of all widths, and all numbers of loops that random layouts have.
#[test]
fn one_thread_per_element() {
    let mut seen = Seen::default();
    for entry in corpus::application().into_iter().chain(corpus::corner()) {
        check_per_element(&entry.datatype, &mut seen);
    }
    let of_corpus = seen.layouts;
    for seed in 0..200 {
        check_per_element(&chain(&mut Choices::from_seed(seed)), &mut seen);
    }
    for element in [16, 8, 4, 2, 1] {
        check_per_element(&transposes(element, [33, 64, 7, 1], true).0, &mut seen);
        check_per_element(&transposes(element, [3, 5, 1, 2], false).0, &mut seen);
        seen.contains(&[&format!("per_element_{element}_")]);
    }
    seen.contains(&["_1_pack", "_2_pack", "_3_pack", "_4_pack"]);
    assert!(of_corpus > 15 && seen.unpacked > 200, "{of_corpus} of the corpus, {} unpacked", seen.unpacked);
}

/// Checks that the kernel `per_element` divides with 64 bits if an operand has more than 32. The
/// case has a loop whose iterations have 2^32 elements each, and moves some elements of the first
/// iteration. If the threads divided with 32 bits, they would divide by 0.
#[test]
fn divisions_of_more_than_32_bits() {
    let text = per_element::kernel(8, 1, Direction::Pack).text;
    let elements = 300u64;
    let bytes: Vec<u8> = (0..elements * 8).map(|i| i as u8 ^ (i >> 8) as u8).collect();
    let run = |text: &str| {
        let mut memory = Memory::default();
        memory.add(USER, bytes.clone());
        memory.add(PACKED, vec![0; bytes.len()]);
        let long = |value: u64| value.to_le_bytes().to_vec();
        let word = |value: u64| (value as u32).to_le_bytes().to_vec();
        let parameters = [long(USER), long(PACKED), word(0), word(elements), long(1 << 32), long(12_345)];
        Module::parse(text)?.run(&mut memory, [2, 1, 1], THREADS, &parameters)?;
        Ok::<_, String>(memory.bytes(PACKED, elements * 8)?.to_vec())
    };
    assert_eq!(run(&text).unwrap(), bytes);
    let short = text.replace("4294967296", "8589934592");
    assert!(run(&short).unwrap_err().contains("a division by zero"));
}

/// Checks every datatype of ddtc's corpus that a kernel moves, except datatypes with more than
/// [`MAX_BYTES`] packed bytes. The interpreter would take too long for these.
#[test]
fn the_corpus() {
    let mut seen = Seen::default();
    for (i, entry) in corpus::application().into_iter().chain(corpus::corner()).enumerate() {
        check(&entry.datatype, &mut seen, 1 << (i % 4));
    }
    assert!(seen.layouts > 40 && seen.unpacked > 80, "{} layouts, {} unpacked", seen.layouts, seen.unpacked);
    seen.contains(&["strided_", "list_words_", "list_blocks_"]);
}

/// Checks random datatypes. None of them may be refused: each must be empty, be one contiguous run,
/// or be moved by a kernel.
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

/// Returns a random datatype that consists of up to three nested loops around a run of bytes. Every
/// loop leaves gaps between its iterations, and may have a negative stride.
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

/// Checks random nested loops. Together they must cover kernels for all widths of words, kernels
/// with each number of divisions from 0 to 4, and kernels that compute offsets with 32 bits and
/// with 64 bits. The name of a kernel has these three numbers in this order.
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

/// Returns a random datatype of blocks with random gaps between them. In about half of the cases
/// all blocks have the same length, and in some cases the blocks are listed in descending order. Up
/// to two nested loops, whose strides may be negative, repeat the blocks. The lengths and offsets
/// of all blocks are multiples of `unit` bytes.
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
/// words, with blocks of one word and blocks of several words, and with offsets that are computed
/// with 32 bits and with 64 bits.
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

/// Returns a random datatype of blocks of different lengths, which the kernel `pieces` moves. (The
/// kernel `list` would need more than 1024 entries in its table.) Some blocks may be longer than
/// 512 bytes, and are moved in several pieces. Up to two nested loops repeat the blocks. The
/// lengths and offsets of all blocks are multiples of `unit` bytes.
fn irregular(c: &mut Choices<'_>, unit: i64) -> Datatype {
    let byte = Datatype::of::<u8>();
    let (mut at, mut lengths, mut displacements) = (0, Vec::new(), Vec::new());
    let mut units = 0;
    while units <= 1024 {
        // The first block has `unit` bytes, so the greatest common divisor of all lengths is
        // `unit`.
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

/// Checks random lists of blocks of different lengths. Together they must cover the kernel `pieces`
/// with all widths of words, and with offsets that are computed with 32 bits and with 64 bits.
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

/// Returns a datatype and a number of its instances that together transpose `batch` matrices. Each
/// matrix has `rows` rows and `columns` columns of elements of `element` bytes, and is stored by
/// rows. After each row there is a gap of `gap` elements. If `by_column` is true, an instance is
/// one column of each matrix. Otherwise an instance is one whole matrix.
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

/// Checks transposes of elements of 16, 8, 4, 2 and 1 bytes. Many of the numbers of rows and
/// columns are just below, at or just above multiples of 32, which is the number of elements along
/// a side of a tile.
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

/// Checks ranges that contain only some columns of a large transpose. If a range lies in fewer than
/// 32 columns of one transpose, the kernel `strided` must move it. If it lies in more columns of
/// one transpose, the grid of the kernel `tile` must cover only these columns. If it extends into
/// the next transpose of the batch, the grid must cover all columns.
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
        let call = Call::whole(&*mover, &places, range);
        let launch = mover.launch(call.variant(), &call.addresses(), call.range.clone());
        assert!(call.kernel(Direction::Pack).name.starts_with(name), "{:?}", call.range);
        assert_eq!(launch.blocks[0], blocks, "{:?}", call.range);
        for direction in Direction::BOTH {
            call.check(direction, None).unwrap_or_else(|e| panic!("{:?}: {e}", call.range));
        }
    }
}

/// Checks the launches of long transfers by the kernel `tile`. A launch moves at most 1 GiB of
/// packed bytes. If each iteration of the outermost loop is one transpose, a launch also moves
/// bytes of at most 65535 transposes, because a grid has at most 65535 blocks in its third
/// dimension.
#[test]
fn launches_of_many_transposes() {
    let addresses = Addresses { user: USER, packed: PACKED, table: 0 };
    for (element, sizes, by_column, grids) in [
        (4, [32, 10_000_000, 0, 1], true, [[262_144, 1, 1], [50_356, 1, 1]]),
        (1, [32, 32, 1, 100_000], false, [[1, 1, 65_534], [1, 1, 34_466]]),
    ] {
        let (t, count) = transposes(element, sizes, by_column);
        let (mover, range) = (mover(&t).unwrap(), 0..count * t.size() as u64);
        let variant = mover.variant(&addresses, &range);
        assert_eq!(mover.kernel(variant, Direction::Pack).name, format!("ddtc_tile_{element}_pack"));
        let all: Vec<_> = launches(&*mover, variant, addresses, range.clone()).collect();
        assert_eq!(all.iter().map(|launch| launch.blocks).collect::<Vec<_>>(), grids);
        assert_eq!(all.iter().map(|launch| launch.bytes).sum::<u64>(), range.end);
    }
}

/// Checks layouts whose instances together extend over more than 4 GiB of user memory. For some of
/// these layouts the kernel computes offsets with 32 bits, and for others it needs 64 bits.
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

/// Checks how the kernels `strided` and `list` end a transfer that does not fill its last block of
/// threads. For every width of words, it tests numbers of words just below, at and just above the
/// number that one block of threads moves, and some other numbers.
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
                let call = Call::whole(&*mover, &places, range);
                let name = call.kernel(Direction::Pack).name;
                assert!(name.contains(&format!("_{width}_0_32_")), "{name}");
                for direction in Direction::BOTH {
                    call.check(direction, None).unwrap_or_else(|e| panic!("{words} words of {text}: {e}"));
                }
            }
        }
    }
}

/// Checks the launches of a transfer that is split because its offsets do not fit into 32 bits.
/// Each launch must begin where the launch before it ends. The word indices of its threads must be
/// less than `MAX_WORD`, because a kernel divides only indices below this limit exactly. The
/// offsets that the index arithmetic of the kernel `strided` computes must agree with offsets that
/// are computed by ordinary divisions.
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
