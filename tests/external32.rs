//! Tests of conversion to and from external32 (MPI 5.0, 14.5.2): the bytes of each named type are
//! compared with bytes that were written by hand, and the rules for whole datatypes are checked.

use ddtc::internal::datatype::{Class, Datatype, Named};
use ddtc::internal::exec::interp::external32;
use ddtc::internal::fuzzing::check_datatype;
use ddtc::internal::kind::{Direction, Kind, Operation};
use ddtc::internal::methods::*;
use ddtc::{Committed, Config, Engine, Error, ErrorClass, Mode, internal::target::Level};

fn committed(text: &str) -> Committed {
    ddtc::commit(&text.parse().unwrap()).unwrap()
}

/// Packs one instance of `t`, which lies at the start of `user`, as external32 and returns the
/// packed bytes. Also checks that unpacking these bytes and packing the result again gives the same
/// bytes.
fn packed(t: &Committed, user: &[u8]) -> Result<Vec<u8>, Error> {
    let applied = t.for_operation(Operation::External32).unwrap();
    let mut packed = vec![0; applied.packed_size(1).unwrap() as usize];
    applied.pack(user, 0, 1, &mut packed)?;
    let mut back = vec![0; user.len()];
    applied.unpack(&packed, 0, 1, &mut back).unwrap();
    let mut again = vec![0; packed.len()];
    applied.pack(&back, 0, 1, &mut again)?;
    assert_eq!(again, packed, "{t:?}: unpacked and packed again");
    Ok(packed)
}

/// Returns one value of a named type in two forms: the bytes in memory, and the bytes in
/// external32.
fn by_hand(named: Named) -> (Vec<u8>, Vec<u8>) {
    let sized = |value: i128, size: i64| value.to_ne_bytes()[..size as usize].to_vec();
    let big = |value: i128, size: i64| value.to_be_bytes()[16 - size as usize..].to_vec();
    let float = |size: i64, extended: bool, external: bool| -> Vec<u8> {
        // Choose the big-endian bytes of the number -1.5 in the format of this size.
        let bytes: Vec<u8> = match size {
            2 => vec![0xbe, 0x00],
            4 => vec![0xbf, 0xc0, 0, 0],
            8 => [vec![0xbf, 0xf8], vec![0; 6]].concat(),
            _ if extended && !external => [vec![0; 6], vec![0xbf, 0xff, 0xc0], vec![0; 7]].concat(),
            _ => [vec![0xbf, 0xff, 0x80], vec![0; 13]].concat(),
        };
        if external { bytes } else { bytes.into_iter().rev().collect() }
    };
    let x87 = cfg!(target_arch = "x86_64")
        && matches!(named, Named::LongDouble | Named::CLongDoubleComplex | Named::CxxLongDoubleComplex);
    let (size, external) = (named.size(), named.external32_size());
    match named.class() {
        Class::Integer => (sized(-2, size), big(-2, external)),
        Class::Unsigned | Class::Byte | Class::Packed => (sized(0x41, size), big(0x41, external)),
        Class::Character | Class::Logical => (sized(1, size), big(1, external)),
        Class::Float => (float(size, x87, false), float(external, x87, true)),
        Class::Complex => {
            let twice = |half: Vec<u8>| [half.clone(), half].concat();
            (twice(float(size / 2, x87, false)), twice(float(external / 2, x87, true)))
        }
        Class::Pair => {
            let (mut user, mut packed) = (vec![0; named.extent() as usize], Vec::new());
            for &(part, at) in named.parts() {
                let (bytes, external) = by_hand(part);
                user[at as usize..][..bytes.len()].copy_from_slice(&bytes);
                packed.extend(external);
            }
            (user, packed)
        }
        _ => (Vec::new(), Vec::new()), // The legacy markers of bounds have no bytes.
    }
}

#[test]
fn every_named_type_by_hand() {
    for &named in Named::ALL {
        let (user, want) = by_hand(named);
        assert_eq!(want.len() as i64, named.external32_size(), "{named}");
        let t = ddtc::commit(&Datatype::named(named)).unwrap();
        assert_eq!(packed(&t, &user).unwrap(), want, "{named}");
        assert_eq!(external32::pack(t.datatype(), 1, &user, 0), (want, Ok(())), "{named}");
    }
}

/// Tests sizes in external32. The table in MPI 5.0, table 14.2, gives the sizes of basic types, of
/// which some differ from the sizes on this machine. Pairs have no padding in external32.
#[test]
fn sizes_are_those_of_the_table() {
    let size =
        |text: &str| committed(text).for_operation(Operation::External32).unwrap().packed_size(1).unwrap();
    for (text, bytes) in [
        ("long", 4),
        ("unsigned_long", 4),
        ("wchar", 2),
        ("long_double", 16),
        ("c_long_double_complex", 32),
        ("aint", 8),
        ("count", 8),
        ("offset", 8),
        ("logical", 4),
        ("short_int", 6),
        ("long_int", 8),
        ("long_double_int", 20),
        ("f90_real(6, 30)", 4),
        ("f90_complex(15, 300)", 16),
        ("f90_integer(18)", 8),
        ("struct([2, 1], [0, 16], [long, char])", 9),
    ] {
        assert_eq!(size(text), bytes, "{text}");
    }
}

#[test]
fn a_structure_by_hand() {
    let t = committed("resized(0, 32, struct([1, 1, 2], [0, 8, 24], [int, long, short]))");
    let mut user = [0xaa; 64];
    for (at, (int, long)) in [(0, (1_i32, -1_i64)), (32, (2, 3))] {
        user[at..at + 4].copy_from_slice(&int.to_ne_bytes());
        user[at + 8..at + 16].copy_from_slice(&long.to_ne_bytes());
        user[at + 24..at + 28].copy_from_slice(&[1, 2, 3, 4]);
    }
    let applied = t.for_operation(Operation::External32).unwrap();
    let mut packed = [0; 24];
    applied.pack(&user, 0, 2, &mut packed).unwrap();
    let want = [0, 0, 0, 1, 255, 255, 255, 255, 2, 1, 4, 3, 0, 0, 0, 2, 0, 0, 0, 3, 2, 1, 4, 3];
    assert_eq!(packed, want);
}

#[test]
fn the_first_value_that_does_not_fit_is_named() {
    let t = committed("struct([1, 3], [0, 8], [int, long])");
    let mut user = vec![0; 64];
    user[32 + 24..32 + 32].copy_from_slice(&(1_i64 << 31).to_ne_bytes());
    let applied = t.for_operation(Operation::External32).unwrap();
    let mut packed = [7; 32];
    let error = applied.pack(&user, 0, 2, &mut packed).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Conversion);
    let text = error.to_string();
    assert!(text.contains("element = 7 (MPI_LONG at displacement 56)"), "{text}");
    // The elements before the one that does not fit are packed, and the bytes after them are
    // unchanged.
    assert_eq!((packed[27], &packed[28..]), (0, &[7; 4][..]));
    // Unsigned numbers of 2^32 and more, and wide characters of 2^16 and more, do not fit into
    // external32.
    for (text, value) in [("unsigned_long", 1_u64 << 32), ("wchar", 0x10000)] {
        let t = committed(text);
        let error = packed_error(&t, &value.to_ne_bytes());
        assert_eq!(error.class(), ErrorClass::Conversion, "{error}");
    }
}

fn packed_error(t: &Committed, user: &[u8]) -> Error {
    packed(t, user).unwrap_err()
}

#[test]
fn ranges_stop_at_whole_values() {
    let t = committed("struct([1, 2], [0, 8], [int, long_double])");
    let applied = t.for_operation(Operation::External32).unwrap();
    let user = [0; 128];
    let mut part = [0; 30];
    assert_eq!(applied.pack_range(&user, 0, 2, 0, &mut part), Ok(20));
    assert_eq!(applied.pack_range(&user, 0, 2, 20, &mut part), Ok(20));
    assert_eq!(applied.pack_range(&user, 0, 2, 20, &mut part[..15]), Ok(0));
    assert_eq!(applied.pack_range(&user, 0, 2, 72, &mut part), Ok(0));
    for (at, rule) in [(3, "as 0 does"), (21, "as 20 does"), (73, "must not lie past the 72")] {
        let error = applied.pack_range(&user, 0, 2, at, &mut part).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Arg);
        assert!(error.to_string().contains(rule), "{error}");
    }
}

#[test]
fn nothing_is_written_where_a_side_is_too_short() {
    let applied = committed("vector(2, 1, 2, long)").for_operation(Operation::External32).unwrap();
    let mut packed = [7; 8];
    let class = |done: Result<usize, Error>| done.unwrap_err().class();
    assert_eq!(class(applied.pack(&[0; 23], 0, 1, &mut packed)), ErrorClass::Buffer);
    assert_eq!(class(applied.pack(&[0; 24], 0, 1, &mut packed[..7])), ErrorClass::Truncate);
    let mut user = [7; 24];
    assert_eq!(class(applied.unpack(&[0; 7], 0, 1, &mut user)), ErrorClass::Truncate);
    assert_eq!((packed, user), ([7; 8], [7; 24]));
}

#[test]
fn bytes_have_no_handle() {
    let error = committed("int").for_operation(Operation::Bytes).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Arg);
}

/// Tests that a commit makes nothing for external32. The conversion is compiled when it is needed
/// for the first time, if it only swaps the bytes of all values.
#[test]
fn kinds_cost_nothing_until_they_are_asked_for() {
    let engine = Engine::new(Config { mode: Mode::Commit, both_directions: true, ..Config::default() });
    let t = engine.commit(&"vector(100, 3, 7, double)".parse().unwrap()).unwrap();
    let before = engine.counters();
    let applied = t.for_operation(Operation::External32).unwrap();
    assert_eq!(engine.counters().compiles, before.compiles);
    assert_eq!(applied.schedule(Direction::Pack), "not compiled yet");
    assert!(applied.kernel(Direction::Pack).is_some());
    assert!(applied.schedule(Direction::Pack).contains("swap.8"), "{}", applied.schedule(Direction::Pack));
    assert!(engine.counters().cached_bytes > before.cached_bytes);
    // Values of type `long` must be checked one by one, so by design their conversion has no
    // kernel.
    let long = engine.commit(&"vector(100, 3, 7, long)".parse().unwrap()).unwrap();
    let applied = long.for_operation(Operation::External32).unwrap();
    assert!(applied.kernel(Direction::Pack).is_none());
    assert!(applied.schedule(Direction::Pack).contains("one by one"));
    assert_eq!((engine.counters().fallbacks, engine.counters().refusals), (0, 1));
}

/// Tests which layouts share the kernel for external32: those whose values are converted in the
/// same way, such as `int` and `float`, but not `int` and `short`. Layouts with `long` have no
/// kernel.
#[test]
fn classes_share_layouts() {
    let engine = Engine::new(Config::default());
    let served = |text: &str| {
        let applied =
            engine.commit(&text.parse().unwrap()).unwrap().for_operation(Operation::External32).unwrap();
        applied.kernel(Direction::Pack).map(std::sync::Arc::as_ptr)
    };
    let int = served("vector(9, 1, 2, int)");
    assert!(int.is_some());
    assert_eq!(int, served("vector(9, 1, 2, float)"));
    assert_ne!(int, served("vector(9, 1, 2, short)"));
    assert_eq!(served("vector(9, 1, 2, long)"), None);
}

/// Tests each named type, except the markers of bounds, in several small datatypes, at each level,
/// and through all oracles.
#[test]
fn all_types_in_small_shapes() {
    for &named in Named::ALL.iter().filter(|n| !n.is_marker()) {
        for shape in [
            format!("contiguous(5, {named})"),
            format!("vector(3, 2, -4, {named})"),
            format!("vector(4, 3, 1, {named})"),
            format!("struct([2, 1, 3], [100, 0, 200], [{named}, char, {named}])"),
            format!("hindexed([1, 2, 1], [7, 300, 100], {named})"),
        ] {
            for level in Level::available() {
                let t: Datatype = shape.parse().unwrap();
                check_datatype(&t, 3, level).unwrap_or_else(|m| panic!("{shape} at {level}: {m}"));
            }
        }
    }
}

/// Tests that calls and bytes are counted by kind. Calls with conversion to or from external32 have
/// counters of their own.
#[test]
fn calls_are_counted_by_kind() {
    let t = committed("vector(3, 1, 2, long)");
    let applied = t.for_operation(Operation::External32).unwrap();
    let counting = ddtc::internal::calls::Counting::start();
    let before = ddtc::internal::calls::totals();
    let (mut user, mut packed) = ([0; 40], [0; 12]);
    applied.pack(&user, 0, 1, &mut packed).unwrap();
    applied.unpack(&packed, 0, 1, &mut user).unwrap();
    let after = ddtc::internal::calls::totals();
    drop(counting);
    let pack = Kind { direction: Direction::Pack, operation: Operation::External32 }.index();
    // Other tests may convert at the same time, so the counters can be higher than this test alone
    // makes them.
    assert!(after.calls[pack] > before.calls[pack] && after.bytes[pack] >= before.bytes[pack] + 12);
    assert!(after.calls[pack + 1] > before.calls[pack + 1]);
    let report = ddtc::internal::tool::report();
    assert!(report.contains("ddtc_pack_external32_calls") && report.contains("ddtc_unpack_external32_bytes"));
}
