//! Tests of reductions while unpacking (MPI 5.0, 6.9): some results are compared with results that
//! were computed by hand, some calls must be refused, and each operation on each type for which it
//! is defined is compared with the reference interpreter.

use ddtc::internal::committed::{Committed, CommittedOperation};
use ddtc::internal::datatype::{Datatype, Named};
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::error::ErrorClass;
use ddtc::internal::exec::interp::reduce;
use ddtc::internal::kind::{Direction, Kind, Op, Operation};
use ddtc::internal::methods::*;
use ddtc::internal::target::Level;

fn committed(text: &str) -> Committed {
    ddtc::commit(&text.parse().unwrap()).unwrap()
}

fn applied(text: &str, op: Op) -> CommittedOperation {
    committed(text).for_operation(Operation::Reduce(op)).unwrap()
}

macro_rules! bytes {
    ($($values:expr),* $(,)?) => {{
        let mut all = Vec::new();
        $(all.extend_from_slice(&$values.to_ne_bytes());)*
        all
    }};
}

/// Returns the contents of `user` after `packed` was unpacked into it with the reduction `op`.
/// Checks that the contents are the same at each level, with and without compiled code.
fn unpacked(text: &str, op: Op, packed: &[u8], user: &[u8], count: u64) -> Vec<u8> {
    let t: Datatype = text.parse().unwrap();
    let mut results = Vec::new();
    for level in Level::available() {
        for mode in [Mode::Commit, Mode::Interpret] {
            let engine = Engine::new(Config { level, mode, ..Config::default() });
            let applied = engine.commit(&t).unwrap().for_operation(Operation::Reduce(op)).unwrap();
            let mut user = user.to_vec();
            assert_eq!(applied.unpack(packed, 0, count, &mut user), Ok(packed.len()));
            results.push(user);
        }
    }
    assert!(results.windows(2).all(|w| w[0] == w[1]), "{text}: {op}: {results:?}");
    results.swap_remove(0)
}

#[test]
fn a_strided_sum_by_hand() {
    let user = bytes![1.5_f64, -1.0_f64, 2.5_f64, -1.0_f64, 10.0_f64];
    let packed = bytes![0.25_f64, 100.0_f64, -10.0_f64];
    let want = bytes![1.75_f64, -1.0_f64, 102.5_f64, -1.0_f64, 0.0_f64];
    assert_eq!(unpacked("vector(3, 1, 2, double)", Op::Sum, &packed, &user, 1), want);
}

/// Tests a type map in which several entries lie in one place. Each of these entries contributes to
/// the result, in the order of the type map, as the definition of reductions requires.
#[test]
fn an_element_named_three_times_gets_three_contributions() {
    let packed =
        bytes![1_i32, 2_i32, 3_i32, 10_i32, 20_i32, 30_i32, 100_i32, 200_i32, 300_i32, 5_i32, 6_i32, 7_i32];
    let user = bytes![1000_i32, 2000_i32, 3000_i32];
    let want = bytes![1116_i32, 2228_i32, 3340_i32];
    assert_eq!(unpacked("vector(4, 3, 0, int)", Op::Sum, &packed, &user, 1), want);
    // The additions must be in the order of the type map. Floating-point addition is not
    // associative, so another order would give another result.
    let (big, small) = (1e16_f64, 1.0_f64);
    let packed = bytes![big, small, -big];
    assert_eq!(unpacked("vector(3, 1, 0, double)", Op::Sum, &packed, &bytes![0.0_f64], 1), bytes![0.0_f64]);
    let packed = bytes![big, -big, small];
    assert_eq!(unpacked("vector(3, 1, 0, double)", Op::Sum, &packed, &bytes![0.0_f64], 1), bytes![1.0_f64]);
}

/// Tests a type whose rows overlap in part: row `i` covers the elements `user[i..i + 3]`.
#[test]
fn partial_overlaps_add_up() {
    let packed: Vec<u8> = (1..=12_i32).flat_map(i32::to_ne_bytes).collect();
    let got = unpacked("vector(4, 3, 1, int)", Op::Sum, &packed, &[0; 24], 1);
    assert_eq!(got, bytes![1_i32, 6_i32, 15_i32, 24_i32, 20_i32, 12_i32]);
    // This type has five rows of 40 values. Each row begins one element after the beginning of the
    // previous row.
    let packed: Vec<u8> = (0..5 * 40).flat_map(|_| 1.0_f32.to_ne_bytes()).collect();
    let got = unpacked("vector(5, 40, 1, float)", Op::Sum, &packed, &[0; 44 * 4], 1);
    let want: Vec<u8> = (0..44).flat_map(|i| (5.min(i + 1).min(44 - i) as f32).to_ne_bytes()).collect();
    assert_eq!(got, want);
}

#[test]
fn integers_wrap() {
    for (text, op, packed, user, want) in [
        ("int", Op::Sum, bytes![i32::MAX], bytes![2_i32], bytes![i32::MIN + 1]),
        ("unsigned_char", Op::Prod, vec![200], vec![3], vec![88]),
        ("int64_t", Op::Prod, bytes![i64::MIN], bytes![-1_i64], bytes![i64::MIN]),
        ("integer16", Op::Sum, bytes![i128::MAX], bytes![1_i128], bytes![i128::MIN]),
        ("short", Op::Min, bytes![-5_i16], bytes![4_i16], bytes![-5_i16]),
        ("unsigned_short", Op::Min, bytes![-5_i16], bytes![4_i16], bytes![4_i16]),
        ("int8_t", Op::Max, vec![0x80], vec![0x7f], vec![0x7f]),
        ("uint8_t", Op::Max, vec![0x80], vec![0x7f], vec![0x80]),
        ("byte", Op::Bxor, vec![0xf0], vec![0xff], vec![0x0f]),
        ("integer", Op::Band, bytes![0x0ff0_i32], bytes![0x00ff_i32], bytes![0x00f0_i32]),
    ] {
        assert_eq!(unpacked(text, op, &packed, &user, 1), want, "{op} of {text}");
    }
}

/// Tests logical operations: any value that is not 0 counts as true, and the result is 0 or 1 (MPI
/// 5.0, 6.9.2, like the operators of C).
#[test]
fn logical_operations_give_one_or_zero() {
    let (packed, user) = (bytes![0_i32, 0_i32, 6_i32, 6_i32], bytes![0_i32, 256_i32, 0_i32, 1_i32]);
    for (op, want) in [(Op::Land, [0, 0, 0, 1]), (Op::Lor, [0, 1, 1, 1]), (Op::Lxor, [0, 1, 1, 0])] {
        let want: Vec<u8> = want.iter().flat_map(|&w: &i32| w.to_ne_bytes()).collect();
        for text in ["contiguous(4, int)", "contiguous(4, logical)"] {
            assert_eq!(unpacked(text, op, &packed, &user, 1), want, "{op} of {text}");
        }
    }
}

/// Tests minimum and maximum with NaN. They behave as `if (in < inout) inout = in`: a NaN in user
/// memory stays, and a NaN in the packed bytes does not replace a number.
#[test]
fn comparisons_with_no_number_keep_what_is_there() {
    let nan = f64::NAN;
    for op in [Op::Min, Op::Max] {
        let got = unpacked(
            "contiguous(3, double)",
            op,
            &bytes![nan, 1.0_f64, -0.0_f64],
            &bytes![2.0_f64, nan, 0.0_f64],
            1,
        );
        assert_eq!(got, bytes![2.0_f64, nan, 0.0_f64], "{op}");
    }
    let sum = unpacked(
        "contiguous(2, float)",
        Op::Sum,
        &bytes![f32::INFINITY, f32::NAN],
        &bytes![f32::NEG_INFINITY, 1.0_f32],
        1,
    );
    let value = |i: usize| f32::from_ne_bytes(sum[4 * i..4 * i + 4].try_into().unwrap());
    assert!(value(0).is_nan() && value(1).is_nan());
}

/// Tests that reductions raise the floating-point exception for invalid operations only where the
/// definition does, since a program may ask for a signal at this exception. The values are such
/// that an operation on the gaps between blocks, or on wrong parts of the packed bytes, may raise
/// it: the low half of each double is the high half of a signaling NaN, and each float is infinite.
#[test]
fn ordinary_numbers_raise_no_exception() {
    unsafe extern "C" {
        safe fn feclearexcept(exceptions: i32) -> i32;
        safe fn fetestexcept(exceptions: i32) -> i32;
    }
    // FE_INVALID has this value on x86-64 and aarch64.
    let invalid = 1;
    let doubles = f64::from_bits(0x3FF0_0000_7FF0_0001).to_ne_bytes().repeat(64);
    let floats = f32::INFINITY.to_ne_bytes().repeat(64);
    for (text, packed, one) in [
        ("vector(64, 1, 2, double)", &doubles, bytes![1.0_f64]),
        ("vector(64, 1, 2, float)", &floats, bytes![1.0_f32]),
    ] {
        for op in [Op::Sum, Op::Prod, Op::Min, Op::Max] {
            feclearexcept(invalid);
            unpacked(text, op, packed, &one.repeat(127), 1);
            assert_eq!(fetestexcept(invalid), 0, "{text}: {op}");
        }
    }
}

#[test]
fn complex_numbers() {
    let (packed, user) = (bytes![1.0_f64, 2.0_f64], bytes![3.0_f64, -4.0_f64]);
    assert_eq!(unpacked("c_double_complex", Op::Sum, &packed, &user, 1), bytes![4.0_f64, -2.0_f64]);
    assert_eq!(unpacked("double_complex", Op::Prod, &packed, &user, 1), bytes![11.0_f64, 2.0_f64]);
    // The product (inf + nan i) * (1 + 1i) is infinite in C (C23, G.5.2), although the plain
    // formula gives NaN.
    let got = unpacked("c_complex", Op::Prod, &bytes![f32::INFINITY, f32::NAN], &bytes![1.0_f32, 1.0_f32], 1);
    assert!(got.chunks(4).any(|part| f32::from_ne_bytes(part.try_into().unwrap()).is_infinite()), "{got:?}");
}

#[test]
fn formats_that_rust_has_not() {
    // In the format binary16, the sum 1 + 2^-11 is half way between two values and is rounded to
    // the even one, which is 1. The sum 65504 + 16 is rounded to infinity.
    let half = |packed: u16, user: u16| {
        u16::from_ne_bytes(unpacked("real2", Op::Sum, &bytes![packed], &bytes![user], 1).try_into().unwrap())
    };
    assert_eq!((half(0x3c00, 0x1000), half(0x3c01, 0x1000), half(0x7bff, 0x4c00)), (0x3c00, 0x3c02, 0x7c00));
    // Check the format binary128 with the operations 1 + 1 and 1.5 * 2.
    let quad = |op, a: u128, b: u128| {
        u128::from_ne_bytes(unpacked("real16", op, &bytes![a], &bytes![b], 1).try_into().unwrap())
    };
    let one: u128 = 0x3fff << 112;
    assert_eq!(quad(Op::Sum, one, one), 0x4000 << 112);
    assert_eq!(quad(Op::Prod, one | 1 << 111, 0x4000 << 112), 0x4000 << 112 | 1 << 111);
    assert_eq!(quad(Op::Max, one, one | 1), one | 1);
}

/// Tests reductions of C's `long double`. The padding bytes of its values in user memory must not
/// change.
#[cfg(all(target_arch = "x86_64", not(windows)))]
#[test]
fn x87_numbers() {
    let number = |high: u16, low: u64, padding: u8| {
        [&low.to_le_bytes()[..], &high.to_le_bytes(), &[padding; 6]].concat()
    };
    let (one, two) = (number(0x3fff, 1 << 63, 1), number(0x4000, 1 << 63, 2));
    for (op, high, low) in
        [(Op::Sum, 0x4000, 3 << 62), (Op::Prod, 0x4000, 1 << 63), (Op::Min, 0x3fff, 1 << 63)]
    {
        assert_eq!(unpacked("long_double", op, &one, &two, 1), number(high, low, 2), "{op}");
    }
}

#[test]
fn locations_by_hand() {
    // In memory the pairs of value and index lie 16 bytes apart. In the packed bytes they have no
    // padding.
    let user = bytes![5.0_f64, 3_i32, -1_i32, 5.0_f64, 3_i32, -1_i32, f64::NAN, 9_i32, -1_i32];
    let packed = bytes![5.0_f64, 2_i32, 6.0_f64, 1_i32, 0.0_f64, 0_i32];
    let want = bytes![5.0_f64, 2_i32, -1_i32, 5.0_f64, 3_i32, -1_i32, f64::NAN, 9_i32, -1_i32];
    assert_eq!(unpacked("contiguous(3, double_int)", Op::Minloc, &packed, &user, 1), want);
    let want = bytes![5.0_f64, 2_i32, -1_i32, 6.0_f64, 1_i32, -1_i32, f64::NAN, 9_i32, -1_i32];
    assert_eq!(unpacked("contiguous(3, double_int)", Op::Maxloc, &packed, &user, 1), want);
    // The pairs of the next type, which are of `short` and `int64_t`, are not of a named type.
    let (user, packed) = (bytes![1_u16, 0_u16, 0_i32, 7_i64], bytes![9_i16, 3_i64]);
    let user = &user[..16];
    let got = unpacked("value_index(short, int64_t)", Op::Maxloc, &packed, user, 1);
    assert_eq!(got, bytes![9_u16, 0_u16, 0_i32, 3_i64]);
}

#[test]
fn replace_and_no_op() {
    let (user, packed) = (vec![7; 24], bytes![1_i16, 2_i32, 3_i16, 4_i32]);
    let text = "contiguous(2, short_int)";
    let got = unpacked(text, Op::Replace, &packed, &user[..16], 1);
    assert_eq!(
        got,
        [&bytes![1_i16][..], &[7, 7], &bytes![2_i32], &bytes![3_i16], &[7, 7], &bytes![4_i32]].concat()
    );
    assert_eq!(unpacked(text, Op::NoOp, &packed, &user[..16], 1), &user[..16]);
}

#[test]
fn what_is_not_defined_is_refused_before_anything_is_written() {
    let t = committed("struct([2, 1], [0, 8], [int, char])");
    let error = t.for_operation(Operation::Reduce(Op::Sum)).unwrap_err();
    assert_eq!((error.class(), error.operation(), error.argument()), (ErrorClass::Op, "sum", "element"));
    assert_eq!(error.value(), "2 (MPI_CHAR at displacement 8)");
    assert!(error.rule().contains("MPI_SUM is defined"), "{error}");
    // Packing with a reduction has no meaning, so it is refused and changes neither side.
    let sum = applied("vector(2, 1, 2, int)", Op::Sum);
    let mut packed = [7; 8];
    let error = sum.pack(&[0; 12], 0, 1, &mut packed).unwrap_err();
    assert_eq!((error.class(), packed), (ErrorClass::Op, [7; 8]));
    let mut user = [7; 12];
    let class = |done: ddtc::Result<usize>| done.unwrap_err().class();
    assert_eq!(class(sum.unpack(&[0; 7], 0, 1, &mut user)), ErrorClass::Truncate);
    assert_eq!(class(sum.unpack(&[0; 8], 0, 1, &mut user[..11])), ErrorClass::Buffer);
    assert_eq!(class(sum.unpack_range(&[0; 8], 0, 1, 3, &mut user)), ErrorClass::Arg);
    assert_eq!(user, [7; 12]);
}

#[test]
fn ranges_combine_each_value_once() {
    let t = committed("vector(4, 1, 2, short)");
    let sum = t.for_operation(Operation::Reduce(Op::Sum)).unwrap();
    let (packed, mut user) =
        (bytes![1_i16, 2_i16, 3_i16, 4_i16], bytes![10_i16, 0_i16, 10_i16, 0_i16, 10_i16, 0_i16, 10_i16]);
    let mut at = 0;
    for room in [3, 4, 9] {
        let end = packed.len().min(at + room);
        at += sum.unpack_range(&packed[at..end], 0, 1, at as u64, &mut user).unwrap();
    }
    assert_eq!(user, bytes![11_i16, 0_i16, 12_i16, 0_i16, 13_i16, 0_i16, 14_i16]);
}

/// Tests that a commit makes nothing for reductions, and that types share a kernel if an operation
/// treats their values alike.
#[test]
fn reductions_cost_nothing_until_they_are_asked_for() {
    let engine = Engine::new(Config { mode: Mode::Commit, both_directions: true, ..Config::default() });
    let t = engine.commit(&"vector(100, 3, 7, double)".parse().unwrap()).unwrap();
    let before = engine.counters();
    let sum = t.for_operation(Operation::Reduce(Op::Sum)).unwrap();
    assert_eq!(engine.counters().compiles, before.compiles);
    assert!(sum.kernel(Direction::Unpack).is_some());
    assert!(
        sum.schedule(Direction::Unpack).contains("reduce.sum.float8"),
        "{}",
        sum.schedule(Direction::Unpack)
    );
    assert!(sum.kernel(Direction::Pack).is_none());
    let kernel = |text: &str, op| {
        let applied =
            engine.commit(&text.parse().unwrap()).unwrap().for_operation(Operation::Reduce(op)).unwrap();
        applied.kernel(Direction::Unpack).map(std::sync::Arc::as_ptr)
    };
    let int = kernel("vector(9, 1, 2, int)", Op::Sum);
    assert!(int.is_some());
    assert_eq!(int, kernel("vector(9, 1, 2, unsigned)", Op::Sum));
    assert_ne!(int, kernel("vector(9, 1, 2, unsigned)", Op::Min));
    // Types whose format has no micro-kernel are combined value by value, by design.
    assert_eq!(kernel("vector(9, 1, 2, real16)", Op::Sum), None);
    assert_eq!(engine.counters().fallbacks, 0);
}

/// Tests each operation on each type for which it is defined, in several small datatypes, against
/// the reference interpreter.
#[test]
fn all_operations_on_all_types() {
    let pattern = |seed: usize, len: usize| -> Vec<u8> {
        (0..len).map(|i| (i * 31 + seed * 17 + i / 7) as u8).collect()
    };
    let mut pairs = 0;
    for op in Op::ALL {
        for &named in Named::ALL.iter().filter(|n| op.takes(**n)) {
            for shape in [
                format!("{named}"),
                format!("contiguous(5, {named})"),
                format!("vector(3, 2, 3, {named})"),
                format!("vector(3, 2, 1, {named})"),
                format!("hindexed([1, 2, 1], [0, 300, 100], {named})"),
                format!("hvector(3, 2, 5, {named})"),
            ] {
                let t: Datatype = shape.parse().unwrap();
                let span = (t.true_ub() + t.extent()).max(2 * t.true_ub()) as usize;
                let (packed, before) = (pattern(1, 2 * t.size() as usize), pattern(2, span));
                let mut want = before.clone();
                let loose = reduce::unpack(op, &t, 2, &packed, &mut want, 0);
                let got = unpacked(&shape, op, &packed, &before, 2);
                let wrong = (0..span).find(|&i| got[i] != want[i] && !loose[i]);
                assert_eq!(wrong, None, "{op} of {shape}\n{packed:x?}\n{before:x?}\n{want:x?}\n{got:x?}");
                between(&t, op, &pattern(3, span), &before);
            }
            pairs += 1;
        }
    }
    assert!(pairs > 300, "{pairs} pairs of operation and type");
}

/// Checks that combining directly from a buffer of the same layout gives the same bytes as two
/// steps: packing that buffer, and unpacking the packed bytes with the operation.
fn between(t: &Datatype, op: Op, from: &[u8], before: &[u8]) {
    let mut packed = vec![0; 2 * t.size() as usize];
    ddtc::internal::exec::interp::pack(t, 2, from, 0, &mut packed).unwrap();
    let (mut want, mut got) = (before.to_vec(), before.to_vec());
    let loose = reduce::unpack(op, t, 2, &packed, &mut want, 0);
    for level in Level::available() {
        got.copy_from_slice(before);
        let engine = Engine::new(Config { level, ..Config::default() });
        let applied = engine.commit(t).unwrap().for_operation(Operation::Reduce(op)).unwrap();
        // SAFETY: the caller passes `from` and `before` with all bytes of two instances, and `got`
        // is as long as `before`. `from` and `got` are separate, and nothing else accesses them
        // during the call.
        unsafe { applied.combine_raw(from.as_ptr(), 2, got.as_mut_ptr()) }.unwrap();
        let wrong = (0..got.len()).find(|&i| got[i] != want[i] && !loose[i]);
        assert_eq!(wrong, None, "{op} of {t} at {level}");
    }
}

/// Tests that a user's function for a reduction gets each element once, in order, in arrays that
/// are aligned for the type. This must also hold if the elements lie apart or unaligned in memory.
#[test]
fn functions_get_aligned_arrays() {
    for (text, element) in [
        ("vector(3, 700, 701, int)", Named::Int),
        ("hvector(3, 700, 2811, int)", Named::Int),
        ("vector(40, 1, 2, double_int)", Named::DoubleInt),
        ("contiguous(30, short_int)", Named::ShortInt),
    ] {
        let t: Datatype = text.parse().unwrap();
        let by = ddtc::commit(&t).unwrap().by_function().unwrap().unwrap();
        assert_eq!(by.element(), element);
        let packed: Vec<u8> = (0..=t.size()).map(|i| (i * 7) as u8).collect();
        let mut user = vec![0xee; t.true_ub() as usize];
        let (mut rows, alignment) = (0, element.alignment() as usize);
        // SAFETY: `packed` has the packed bytes of one instance from its second byte on, and `user`
        // has all bytes of one instance. The function accesses only elements at the addresses that
        // it gets, and copies the pieces of each element.
        unsafe {
            let f = &mut |new: *const u8, old: *mut u8, n: u64| {
                assert!(new.addr().is_multiple_of(alignment) && old.addr().is_multiple_of(alignment));
                for i in 0..n as usize {
                    for &(at, size) in element.pieces() {
                        let at = i * element.extent() as usize + at as usize;
                        std::ptr::copy_nonoverlapping(new.add(at), old.add(at), size as usize);
                    }
                }
                rows += n;
            };
            by.unpack_raw(packed.as_ptr().add(1), 1, user.as_mut_ptr(), f).unwrap();
        }
        assert_eq!(rows as i64 * element.size(), t.size(), "{text}");
        let mut want = vec![0xee; user.len()];
        ddtc::internal::exec::interp::unpack(&t, 1, &packed[1..], &mut want, 0).unwrap();
        assert!(user == want, "{text}");
    }
    assert!(committed("contiguous(0, int)").by_function().unwrap().is_none());
    let error = committed("struct([1, 1], [0, 8], [int, long])").by_function().unwrap_err();
    assert_eq!((error.class(), error.value()), (ErrorClass::Op, "1 (MPI_LONG at displacement 8)"));
}

#[test]
fn calls_are_counted_as_one_class() {
    let sum = applied("vector(3, 1, 2, int)", Op::Sum);
    let max = applied("vector(3, 1, 2, int)", Op::Max);
    let counting = ddtc::internal::calls::Counting::start();
    let before = ddtc::internal::calls::totals();
    let mut user = [0; 20];
    sum.unpack(&[0; 12], 0, 1, &mut user).unwrap();
    max.unpack(&[0; 12], 0, 1, &mut user).unwrap();
    let after = ddtc::internal::calls::totals();
    drop(counting);
    let kind = Kind { direction: Direction::Unpack, operation: Operation::Reduce(Op::Prod) }.index();
    // Other tests may reduce at the same time, so the counters can be higher than this test alone
    // makes them.
    assert!(after.calls[kind] >= before.calls[kind] + 2 && after.bytes[kind] >= before.bytes[kind] + 24);
    let report = ddtc::internal::tool::report();
    assert!(report.contains("ddtc_reduce_calls") && report.contains("ddtc_reduce_bytes"), "{report}");
}
