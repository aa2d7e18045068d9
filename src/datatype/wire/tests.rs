use super::*;
use crate::datatype::{Datatype, Named};
use crate::error::{Error, ErrorClass};
use xxhash_rust::xxh3::xxh3_64;

fn t(text: &str) -> Datatype {
    text.parse().unwrap()
}

/// Returns a wire form with the given hash and nodes, as another program would write it.
fn form(hash: u128, nodes: &[u8]) -> Vec<u8> {
    let mut form = b"ddtw\x01\0\0\0".to_vec();
    form.extend(((HEADER + nodes.len() + CHECKSUM) as u64).to_le_bytes());
    form.extend(hash.to_le_bytes());
    form.extend(nodes);
    form.extend(xxh3_64(&form).to_le_bytes());
    form
}

/// Node of an `int`, which is the first node of many forms in these tests.
const INT: &[u8] = b"\x01\x04\x04\x03int";

fn refused(nodes: &[u8]) -> Error {
    Datatype::from_wire(&form(0, nodes)).unwrap_err()
}

#[test]
fn by_hand() {
    let check = |text: &str, nodes: &[u8]| {
        let t = t(text);
        assert_eq!(t.to_wire().unwrap(), form(t.structural_hash(), nodes), "{text}");
        assert_eq!(Datatype::from_wire(&form(t.structural_hash(), nodes)), Ok(t), "{text}");
    };
    let after_int = |n: u8, rest: &[u8]| [&[n], INT, rest].concat();
    check("int", &after_int(1, &[]));
    check("dup(int)", &after_int(2, &[2, 1]));
    // As signed varints, 3 and -3 are written as 6 and 5, and 100 as 200, which takes two bytes.
    check("vector(3, 100, -3, int)", &after_int(2, &[4, 1, 6, 0xc8, 0x01, 5]));
    check("hindexed([1, 2], [0, -300], int)", &after_int(2, &[8, 1, 2, 1, 1, 2, 2, 0, 0, 0xd4, 0xfe]));
    check("resized(-1, 64, int)", &after_int(2, &[19, 1, 1, 0x80, 0x01]));
    check("subarray([9], [3], [1], Fortran, int)", &after_int(2, &[14, 1, 1, 1, 1, 9, 1, 3, 1, 1]));
    check(
        "darray(2, 1, [9], [cyclic], [3], [2], C, int)",
        &after_int(2, &[15, 1, 0, 4, 2, 1, 1, 9, 1, 2, 5, 1, 3]),
    );
    check("f90_integer(9)", b"\x02\x01\x04\x04\x08integer4\x12\x01\x12");
    // A child that is shared is written once.
    let shared = t("dup(int)");
    let pair = Datatype::structure(&[1, 2], &[0, 8], &[shared.clone(), shared]).unwrap();
    let nodes = after_int(3, &[2, 1, 12, 2, 1, 1, 2, 1, 0, 8, 1, 1, 1]);
    assert_eq!(pair.to_wire().unwrap(), form(pair.structural_hash(), &nodes));
    let back = Datatype::from_wire(&form(pair.structural_hash(), &nodes)).unwrap();
    let children: Vec<usize> = back.combiner().children().map(Datatype::id).collect();
    assert!(back == pair && children[0] == children[1]);
    // A node of a large-count constructor has 0x80 added to its tag.
    let large = t("contiguous(2, int)").with_large_count();
    let read = Datatype::from_wire(&form(large.structural_hash(), &after_int(2, &[0x83, 1, 4]))).unwrap();
    assert!(read == large && read.is_large_count());
}

#[test]
fn every_truncation_and_every_changed_byte_is_refused() {
    for text in [
        "int",
        "struct([1, 2], [0, 8], [dup(char), f90_real(6, undefined)])",
        "darray(4, 1, [10], [block], [default], [4], C, value_index(short, uint64_t))",
        "bounds(-8, 64, hindexed_block(2, [1000000, 5], resized(0, 9, int)))",
    ] {
        let whole = t(text).to_wire().unwrap();
        for end in 0..whole.len() {
            let e = Datatype::from_wire(&whole[..end]).unwrap_err();
            assert_eq!(
                (e.class(), e.argument()),
                (ErrorClass::Truncate, format!("byte {end}").as_str()),
                "{text}: {e}"
            );
        }
        for at in 0..whole.len() {
            // Under Miri, which is thousands of times slower, only one bit of each byte is changed.
            for bit in if cfg!(miri) { at % 8..at % 8 + 1 } else { 0..8 } {
                let mut changed = whole.clone();
                changed[at] ^= 1 << bit;
                assert!(Datatype::from_wire(&changed).is_err(), "{text}: bit {bit} of byte {at}");
            }
        }
        assert_eq!(Datatype::from_wire(&[&whole[..], &[0]].concat()).unwrap_err().class(), ErrorClass::Arg);
    }
}

#[test]
fn refusals_name_byte_and_rule() {
    let check = |e: Error, class, argument: &str, rule: &str| {
        assert_eq!((e.class(), e.argument(), e.operation()), (class, argument, "from_wire"), "{e}");
        assert!(e.rule().contains(rule), "{e}");
    };
    let int = |rest: &[u8]| refused(&[&[2], INT, rest].concat());
    let arg = ErrorClass::Arg;
    check(Datatype::from_wire(b"MPI_").unwrap_err(), arg, "byte 0", "begin a wire form");
    let mut future = t("int").to_wire().unwrap();
    future[4] = 2;
    check(Datatype::from_wire(&future).unwrap_err(), ErrorClass::Unsupported, "byte 4", "must be 1");
    check(refused(&[0]), arg, "byte 32", "must have a node");
    check(refused(&[1, 99]), arg, "byte 33", "tag of a constructor");
    check(refused(&[0xff; 10]), arg, "byte 32", "64 bits at most");
    check(refused(&[0x81, 0, 1]), arg, "byte 32", "zero byte");
    check(refused(&[100, 2]), arg, "byte 32", "must fit in the 1 bytes");
    check(refused(&[1, 1, 4]), arg, "byte 34", "must fit in the 1 bytes");
    check(refused(&[&[1], INT, &[0]].concat()), arg, "byte 40", "no more nodes");
    check(refused(&[&[1], INT].concat()), arg, "byte 16", "hash of the datatype");
    // A node that is not part of the root does not change its hash, but is refused.
    check(refused(&[&[2], INT, INT].concat()), arg, "byte 32", "exactly one form");
    // A named type is refused if it has another size or alignment on the writer's machine, or if
    // its name is not the one that the reader uses. An f90 type is refused if it stands for another
    // named type here.
    check(
        refused(b"\x01\x01\x08\x04\x03int"),
        ErrorClass::Type,
        "byte 34",
        "must have the 4 bytes aligned to 4",
    );
    check(
        refused(b"\x01\x01\x04\x08\x03int"),
        ErrorClass::Type,
        "byte 34",
        "must have the 4 bytes aligned to 4",
    );
    check(
        refused(b"\x01\x01\x04\x04\x03fnt"),
        ErrorClass::Type,
        "byte 34",
        "named type that this library has",
    );
    check(
        refused(b"\x01\x01\x08\x08\x0dlong_long_int"),
        ErrorClass::Type,
        "byte 34",
        "named type that this library has",
    );
    check(int(&[18, 1, 36]), ErrorClass::Type, "byte 40", "must stand for integer8");
    // Distances that lead to no node are refused, and so are arrays with a bad width or too many
    // entries, and bad values of a darray, subarray or f90 type.
    check(int(&[2, 0]), arg, "byte 41", "from 1 to 1");
    check(int(&[2, 2]), arg, "byte 41", "from 1 to 1");
    check(int(&[12, 1, 1, 1, 1, 0, 1, 0xff]), arg, "byte 46", "from 1 to 1");
    check(int(&[8, 1, 3, 3, 0, 0, 0]), arg, "byte 43", "width of 1, 2, 4 or 8");
    check(int(&[8, 1, 2, 8, 0, 0]), arg, "byte 44", "must fit in the 2 bytes");
    check(
        int(&[8, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        arg,
        "byte 42",
        "must fit in the 0 bytes",
    );
    check(int(&[14, 1, 2, 1, 1, 9, 1, 3, 1, 1]), arg, "byte 42", "storage order");
    check(int(&[15, 1, 0, 4, 2, 1, 1, 9, 1, 2, 3, 1, 3]), arg, "byte 50", "must be a distribution");
    check(int(&[16, 1, 4]), arg, "byte 42", "which of p and r");
    // The error of a constructor keeps its class. A mark for large counts is refused if the node
    // has no large-count constructor, and its absence is refused if a count needs one.
    check(int(&[3, 1, 1]), ErrorClass::Count, "byte 40, count of contiguous", "must not be negative");
    check(int(&[0x82, 1]), arg, "byte 40", "large-count");
    check(int(&[3, 1, 0x80, 0x80, 0x80, 0x80, 0x20]), arg, "byte 40", "large-count");
    // Bounds that the two ints have already.
    let same_bounds = [&[3], INT, &[3, 1, 4], &[0x94, 1, 0, 16]].concat();
    check(refused(&same_bounds), arg, "byte 43", "large-count");
}

#[test]
fn widths_are_the_fewest_that_hold_all() {
    let bytes = |places: &[i64]| {
        let t = Datatype::hindexed_block(1, places, &Datatype::named(Named::Char)).unwrap();
        assert_eq!(Datatype::from_wire(&t.to_wire().unwrap()), Ok(t.clone()));
        t.wire_size().unwrap()
    };
    let one = bytes(&[0, 0, 0, 0]);
    for (value, width) in [
        (-128, 1),
        (127, 1),
        (128, 2),
        (-129, 2),
        (-32768, 2),
        (32768, 4),
        (i64::from(i32::MIN), 4),
        (i64::from(i32::MAX) + 1, 8),
        (i64::MIN / 2, 8),
    ] {
        assert_eq!(bytes(&[0, 0, value, 0]), one + 4 * (width - 1), "{value}");
    }
}
