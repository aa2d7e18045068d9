//! Tests of layouts at and beyond the limits of the kernels: long instances, deep nesting, long
//! lists of blocks, and lists for which there is no memory.

mod calls;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use calls::{Call, PACKED, displacements, mover, parse};
use ddtc::internal::corpus;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::error::ErrorClass;
use ddtc::internal::kind::Direction;
use ddtc_gpu::selection::{Selection, select};

/// Checks layouts with a loop whose iterations have more than 1 GiB, so that a launch moves only a
/// part of an instance. A type map of so many bytes would take too long. So each case has a
/// function in place of the type map. The function returns the displacement of the packed byte at a
/// given position. Only some ranges of the packed bytes are moved. These ranges lie around the
/// beginning, the middle and the end of an instance, and around the positions 2^30 and 2^32. The
/// end of an instance is also the beginning of the next one.
#[test]
fn instances_beyond_1_gib() {
    const RUN: i64 = 1_500_000_000;
    const ODD: i64 = 1_500_000_001;
    type Place = fn(i64) -> i64;
    let cases: [(&str, &str, Place); 8] = [
        // Long runs.
        ("resized(0, 1800000000, contiguous(1500000000, byte))", "strided_16_0_32", |p| {
            p / RUN * 1_800_000_000 + p % RUN
        }),
        ("resized(0, 1800000000, contiguous(1500000001, byte))", "strided_1_0_32", |p| {
            p / ODD * 1_800_000_000 + p % ODD
        }),
        // Nested loops around short runs. The two outer loops have iterations of more than 1 GiB,
        // so each launch moves bytes of only one such iteration. One of these loops has a negative
        // stride, and the other is the loop over the instances.
        (
            "resized(0, 7000000000, hvector(2, 1, -3000000000, hvector(60000000, 3, 40, double)))",
            "strided_8_1_32",
            |p| {
                let (outer, p) = (p / 1_440_000_000, p % 1_440_000_000);
                outer / 2 * 7_000_000_000 - outer % 2 * 3_000_000_000 + p / 24 * 40 + p % 24
            },
        ),
        // The columns of a matrix of 40 rows.
        (
            "resized(0, 3200000000, hvector(10000000, 1, 8, hvector(40, 1, 80000000, double)))",
            "tile_8",
            |p| {
                let (matrix, p) = (p / 3_200_000_000, p % 3_200_000_000);
                matrix * 3_200_000_000 + p / 320 * 8 + p / 8 % 40 * 80_000_000 + p % 8
            },
        ),
        // Loops around a list of blocks.
        (
            "resized(0, 4000000000, hvector(60000000, 1, 64, hindexed([8, 16], [0, 24], byte)))",
            "list_words_8_0_32",
            |p| {
                let (outer, p) = (p / 1_440_000_000, p % 1_440_000_000);
                let inside = if p % 24 < 8 { p % 24 } else { p % 24 + 16 };
                outer * 4_000_000_000 + p / 24 * 64 + inside
            },
        ),
        // Lists with long blocks. In the first list, all blocks lie within 4 GiB. In the second and
        // the third list, offsets in user memory do not fit into 32 bits. In the third list,
        // positions in the packed stream do not fit into 32 bits either.
        (
            "resized(0, 3000000000, hindexed([8, 900000000, 900000000], [0, 16, 1000000000], byte))",
            "pieces_8_0_64",
            |p| {
                let (outer, p) = (p / 1_800_000_008, p % 1_800_000_008);
                outer * 3_000_000_000
                    + if p < 8 {
                        p
                    } else if p < 900_000_008 {
                        p + 8
                    } else {
                        p + 99_999_992
                    }
            },
        ),
        (
            "resized(0, 7000000000, hindexed([1200000000, 8], [0, 6000000000], byte))",
            "pieces_far_8_0_64",
            |p| {
                let (outer, p) = (p / 1_200_000_008, p % 1_200_000_008);
                outer * 7_000_000_000 + if p < 1_200_000_000 { p } else { p + 4_800_000_000 }
            },
        ),
        (
            "hvector(2, 1, -9000000000, hindexed([8, 5000000000], [6000000000, 0], byte))",
            "pieces_far_8_0_64",
            |p| {
                let (outer, p) = (p / 5_000_000_008, p % 5_000_000_008);
                outer / 2 * 15_000_000_008 - outer % 2 * 9_000_000_000
                    + if p < 8 { p + 6_000_000_000 } else { p - 8 }
            },
        ),
    ];
    for (text, name, place) in cases {
        let t = parse(text);
        let mover = mover(&t).expect(text);
        let (size, unit) = (t.size() as u64, u64::from(mover.loops().unit()));
        for middle in [2000, size / 2, (1 << 30) + 8, (1 << 32) + 8, size, size + 4096] {
            // Test three kinds of ranges, with about 2000, 24000 and 600 bytes. A range of about
            // 2000 bytes has fewer than 32 columns of the matrix, so the kernel `tile` does not
            // move it. A range of about 600 bytes begins 3 bytes after an aligned position, so the
            // widest words are not aligned.
            for (half, ragged) in [(1000, 0), (12_000, 0), (300, 3)] {
                let begin = middle.saturating_sub(half) / unit * unit + ragged;
                let range = begin..(middle + half).min(2 * size) / unit * unit;
                if range.is_empty() {
                    continue;
                }
                let (places, from): (Vec<i64>, u64) =
                    (range.clone().map(|position| place(position as i64)).collect(), begin);
                let packed = PACKED + ragged;
                let call = Call { from, packed, ..Call::whole(&*mover, &places, range) };
                let printed = call.kernel(Direction::Pack).name;
                let is_short = half == 1000 && name.starts_with("tile");
                assert!(ragged > 0 || is_short || printed.contains(name), "{text}: {printed}");
                for direction in Direction::BOTH {
                    let checked = call.check(direction, None);
                    checked.unwrap_or_else(|e| panic!("{:?} of {text}, {printed}: {e}", call.range));
                }
            }
        }
    }
}

/// Checks transposes with two columns in each iteration of the host loops. A launch stays within
/// such an iteration. So the kernel `strided` must move them, even if a transfer of several
/// instances has 32 columns and more.
#[test]
fn few_columns_inside_of_host_loops() {
    let text = "resized(0, 4000000000, hvector(2, 1, 16, hvector(30, 1, 128000064, hvector(2000000, 16, 64, byte))))";
    let t = parse(text);
    let mover = mover(&t).expect(text);
    assert_eq!((mover.loops().in_kernel().len(), mover.loops().list().len()), (3, 4));
    let call = Call::whole(&*mover, &[], 0..16 * t.size() as u64);
    let name = call.kernel(Direction::Pack).name;
    assert!(name.starts_with("ddtc_strided_16_"), "{name}");
}

/// Checks that only one datatype of the corpus is refused. An instance of this datatype has 2^41
/// blocks and 8 TiB. Each other datatype has no bytes, is one contiguous run, or is moved by a
/// kernel. (`random_types` in `kernels.rs` checks this for random datatypes.)
#[test]
fn the_whole_corpus_is_served() {
    let mut refused = Vec::new();
    for entry in corpus::application().into_iter().chain(corpus::corner()) {
        if let Err(error) = select("test", &ddtc::commit(&entry.datatype).unwrap()) {
            assert!(entry.datatype.size() > 1 << 42, "{}: {error}", entry.name);
            refused.push(entry.name);
        }
    }
    assert_eq!(refused, ["dag.40"]);
}

/// Returns a datatype of `levels` nested structures. Each structure has two members: a vector of
/// two elements, and the structure of the next inner level. The strides and distances have no
/// period, so that normalization finds no loop over the levels.
fn nested(levels: i64) -> Datatype {
    let vector = |stride| Datatype::hvector(2, 1, stride, &Datatype::of::<f64>()).unwrap();
    let mut t = vector(24);
    for level in 0..levels {
        let places = [0, 100_000 + 8 * (level * level * 7 % 997)];
        let first = vector(16 + 8 * (level * level * level % 1009));
        t = Datatype::structure(&[1, 1], &places, &[first, t]).unwrap();
    }
    t
}

/// Checks datatypes of thousands of nested constructors. Nothing may recurse once for each level,
/// because the stack of the thread would be too short. (Normalization does not keep the levels of
/// these two datatypes, so their nests are not deep.)
#[test]
fn thousands_of_levels() {
    let test = || {
        for t in [nested(5000), corpus::datatype("@deep(20000)").unwrap()] {
            let (mover, places) = (mover(&t).expect("a kernel"), displacements(&t, 1));
            let range = 0..places.len() as u64;
            let call = Call::whole(&*mover, &places, range);
            call.check(Direction::Pack, None).unwrap();
            call.check(Direction::Unpack, None).unwrap();
        }
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(test).unwrap().join().unwrap();
}

/// Allocator of this program. A test can make it fail ([`LARGE_LEFT`]).
struct Scarce;

thread_local! {
    /// Number of allocations of at least [`LARGE`] bytes that still succeed in this thread. Later
    /// allocations of this size fail. `None` means that all allocations succeed.
    static LARGE_LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Minimum size, in bytes, of the allocations that [`LARGE_LEFT`] counts.
const LARGE: usize = 64 << 10;

// SAFETY: the memory is that of the system's allocator, which satisfies the contract. Returning
// null reports a failure.
unsafe impl GlobalAlloc for Scarce {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LARGE
            && let Some(left) = LARGE_LEFT.get()
        {
            if left == 0 {
                return std::ptr::null_mut();
            }
            LARGE_LEFT.set(Some(left - 1));
        }
        // SAFETY: the caller does what the contract of the allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller does what the contract of the allocator requires. All memory of this
        // allocator is memory of the system's allocator.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Scarce = Scarce;

/// Checks each kernel that has a table. If there is no memory for the list of blocks or for the
/// table, `select` must return the error `NoMem`. Each large allocation fails in turn.
#[test]
fn tables_without_memory() {
    let places: Vec<i64> = (0..50_000).map(|i| i * 24 + i * i % 7).collect();
    let list = Datatype::hindexed_block(8, &places, &Datatype::of::<u8>()).unwrap();
    let pieces = parse("hindexed([8, 100000000], [0, 16], byte)");
    let far = parse("hindexed([8, 100000000], [0, 5000000000], byte)");
    for (t, name, allocations) in [(list, "list", 2), (pieces, "pieces", 1), (far, "pieces_far", 1)] {
        let committed = ddtc::commit(&t).unwrap();
        let mut failed = 0;
        loop {
            LARGE_LEFT.set(Some(failed));
            let selected = select("test", &committed);
            LARGE_LEFT.set(None);
            match selected {
                Err(error) => assert_eq!(error.class(), ErrorClass::NoMem, "{error}"),
                Ok(Selection::Kernels(mover)) => {
                    assert!(mover.kernel(0, Direction::Pack).name.contains(name));
                    break;
                }
                Ok(other) => panic!("{other:?}"),
            }
            failed += 1;
        }
        assert!(failed >= allocations, "{name}: {failed} allocations");
    }
}

/// Checks that layouts whose lists of blocks are too long are refused, and that the error names the
/// length of the list and the limit. Also checks that layouts whose instances overlap are
/// recognized.
#[test]
fn refusals() {
    for (text, list) in [
        (
            "hvector(2, 1, 30000000000, hvector(2, 1, 10000000000, hvector(2, 1, 3000000000, hvector(200000000, 1, 64, hindexed([1, 2], [0, 8], byte)))))",
            "a list of 400000000 blocks",
        ),
        ("hindexed([8, 200000000000], [0, 16], byte)", "a list that counts as 390625001 blocks"),
    ] {
        let error = select("test", &ddtc::commit(&parse(text)).unwrap()).unwrap_err().to_string();
        assert!(error.contains(list) && error.contains("at most 268435456 blocks"), "{text}: {error}");
    }
    for text in ["resized(0, 4, double)", "resized(0, 4, hindexed([8, 8], [0, 12], byte))"] {
        assert!(!mover(&parse(text)).unwrap().loops().is_disjoint(2), "{text}");
    }
}
