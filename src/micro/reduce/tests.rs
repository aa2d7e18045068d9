//! Tests of reductions. Every function is compared with the scalar reference, on buffers between
//! guard pages. The results of the scalar reference itself are checked by hand in
//! `tests/reduce.rs`.

use super::*;
use crate::micro::testing::{Guarded, span};

/// Returns all pairs of an operation and a class of values for which there is a micro-kernel, with
/// its function for every level that the machine has.
fn functions() -> impl Iterator<Item = (Op, Value, Level, Function)> {
    LIST.into_iter().flat_map(|(op, cell)| {
        Level::available().map(move |level| (op, cell.value(), level, get(op, cell, level).unwrap()))
    })
}

#[test]
fn every_value_has_one_cell() {
    for (i, &(op, cell)) in LIST.iter().enumerate() {
        assert_eq!(Cell::from_class(cell.value()), Some(cell));
        assert_eq!(LIST.iter().position(|&known| known == (op, cell)), Some(i), "{op} {cell:?} twice");
        // Entries of the list `HOT` have code of their own at every level; for entries of `COLD`,
        // all levels share one function.
        for level in Level::available() {
            let own = with_code!(level, I => hot::<I>(op, cell));
            assert_eq!(own.is_some(), is_hot(op, cell), "{op} {cell:?} at {level}");
        }
    }
    // There is code for all arithmetic, bitwise and logical operations on integers of every size.
    for size in [1, 2, 4, 8, 16] {
        for op in Op::ALL.into_iter().filter(|op| !op.is_location() && *op < Op::Minloc) {
            assert!(function(op, Value::number(crate::nest::Number::Int, size), Level::Baseline).is_some());
        }
    }
}

/// Returns `len` bytes that hold small and large numbers. Some of the numbers are equal, and some
/// are NaN.
fn numbers(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|i| match (i / 16 + seed) % 5 {
            0 => 0,
            1 => (i * 37 + seed * 101) as u8,
            2 => [1, 0, 0, 0, 0, 0, 0xf0, 0x3f][i % 8],
            3 => [0, 0, 0xc0, 0xff, 0, 0, 0xf8, 0xff][i % 8],
            _ => (i * 91 % 7) as u8,
        })
        .collect()
}

/// Returns true if two results `a` and `b` of the operation are equal. In sums and products of
/// floating-point and complex numbers, NaNs whose bits differ count as equal.
fn alike(op: Op, value: Value, a: &[u8], b: &[u8]) -> bool {
    let nan = |bytes: &[u8]| match bytes.len() {
        4 => f32::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        _ => f64::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
    };
    let part = match value.class() {
        crate::nest::ValueClass::Native(crate::nest::Number::Float) => value.user() as usize,
        crate::nest::ValueClass::Native(crate::nest::Number::Complex) => value.user() as usize / 2,
        _ => return a == b,
    };
    let loose = matches!(op, Op::Sum | Op::Prod);
    a == b || loose && a.chunks(part).zip(b.chunks(part)).all(|(a, b)| a == b || nan(a) && nan(b))
}

#[test]
fn every_function_every_stride_between_guard_pages() {
    let mut areas = (Guarded::new(64 << 10), Guarded::new(64 << 10));
    for (op, value, level, f) in functions() {
        let (user, packed) = (value.user(), value.packed());
        for units in if is_pair(value) { vec![1] } else { vec![1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 35] } {
            let (dst_len, src_len) = (units * user, units * packed);
            // The strides are such that destination blocks have gaps between them, follow each
            // other backwards, overlap by whole values or by single bytes, or all lie in one place.
            for ds in [dst_len, dst_len + 3, 2 * dst_len, -dst_len, user, 0, 1] {
                for (ss, n) in [(src_len, 9), (src_len, 20), (src_len + 8, 4), (-src_len, 3), (0, 2)] {
                    let ((d_span, d), (s_span, s)) =
                        (span(n, ds, dst_len as u64), span(n, ss, src_len as u64));
                    let (before, source) = (numbers(d_span, 1), numbers(s_span, 2));
                    let mut want = before.clone();
                    for i in 0..n as i64 {
                        for k in 0..units {
                            let from = s as i64 + i * ss + k * packed;
                            let to = (d as i64 + i * ds + k * user) as usize;
                            let new = &source[from as usize..(from + packed) as usize];
                            meaning::combine(op, value, new, &mut want[to..to + user as usize]);
                        }
                    }
                    for back in [false, true] {
                        let (dst, src) = (areas.0.edge(back, d_span), areas.1.edge(back, s_span));
                        dst.copy_from_slice(&before);
                        src.copy_from_slice(&source);
                        let (to, from) = (dst.as_mut_ptr().wrapping_add(d), src.as_ptr().wrapping_add(s));
                        // SAFETY: both areas contain all blocks at these strides.
                        unsafe { f(to, from, n, ds, ss, src_len as u64) };
                        let got = dst.to_vec();
                        let what =
                            || format!("{op} of {n} blocks of {units} {value} by ({ds}, {ss}) at {level}");
                        // If neighbouring values overlap each other partly, a NaN spreads to the
                        // values around it.
                        let apart = ds % user == 0;
                        let same = if apart {
                            want.chunks(user as usize)
                                .zip(got.chunks(user as usize))
                                .all(|(a, b)| alike(op, value, a, b))
                        } else {
                            want == got || is_real(value) && matches!(op, Op::Sum | Op::Prod)
                        };
                        assert!(same, "{}\n{want:x?}\n{got:x?}", what());
                    }
                }
            }
        }
    }
}

fn is_real(value: Value) -> bool {
    use crate::nest::{Number, ValueClass};
    matches!(value.class(), ValueClass::Native(Number::Float | Number::Complex))
}

/// The padding inside a pair, between its value and its index, is neither read nor written, on
/// either side.
#[test]
fn padding_inside_is_left_alone() {
    let value = Cell::Int2Int4.value();
    let f = function(Op::Maxloc, value, Level::Baseline).unwrap();
    let pair = |value: i16, padding: [u8; 2], index: i32| {
        [&value.to_ne_bytes()[..], &padding, &index.to_ne_bytes()].concat()
    };
    let mut user = pair(3, [9, 9], 7);
    let packed = [&5_i16.to_ne_bytes()[..], &1_i32.to_ne_bytes()].concat();
    // SAFETY: one pair lies on both sides, of 8 bytes in user memory and of 6 bytes on the packed
    // side.
    unsafe { f(user.as_mut_ptr(), packed.as_ptr(), 1, 0, 0, 6) };
    assert_eq!(user, pair(5, [9, 9], 1));
    // Combine the pair in user memory with another pair, whose source is not a packed stream but
    // user memory, so that it has padding too. As the values are equal, the smaller index is taken.
    let other = pair(5, [1, 1], 0);
    // SAFETY: one pair of 8 bytes lies on both sides.
    unsafe { f(user.as_mut_ptr(), other.as_ptr(), 1, 0, 0, 8) };
    assert_eq!(user, pair(5, [9, 9], 0));
}

/// Limits the size of the code of all reductions, measured by the symbols of a program. `.ci/run`
/// writes the path of the optimized program `ddtc` to the environment variable `DDTC_BUDGET_OF`.
/// The limit for this program is 64 KiB. Without this variable, the test measures its own program.
/// In the test profile, the limit for the test's own program is 320 KiB.
#[test]
fn code_has_a_budget() {
    let named = std::env::var_os("DDTC_BUDGET_OF").map(std::path::PathBuf::from);
    let budget = if cfg!(debug_assertions) && named.is_none() { 320 << 10 } else { 64 << 10 };
    let program = named.unwrap_or_else(|| std::env::current_exe().unwrap());
    let output = std::process::Command::new("nm").args(["-S", "-C"]).arg(program).output().expect("nm");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let ours = |line: &&str| {
        !line.contains("tests::")
            && (line.contains("micro::reduce::Functions>::function::entry")
                || line.contains("micro::reduce::alone"))
    };
    let sizes = text.lines().filter(ours).filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words.len() > 3).then(|| usize::from_str_radix(words[1], 16).unwrap())
    });
    let (functions, bytes) = sizes.fold((0, 0), |(n, sum), size| (n + 1, sum + size));
    // The linker may have merged equal functions.
    assert!(functions > LIST.len() / 2, "{functions} functions");
    assert!(bytes <= budget, "{functions} functions of {bytes} bytes");
}

/// `Replace` writes all bytes of a value that contains padding; operations that combine two values
/// do not change the padding.
#[test]
#[cfg(target_arch = "x86_64")]
fn written_bytes_by_hand() {
    use crate::datatype::Named;

    let [long, complex] = [Named::LongDouble, Named::CLongDoubleComplex].map(Value::native);
    assert_eq!(meaning::written(Op::Replace, long), [(0, 16), (0, 0)]);
    assert_eq!(meaning::written(Op::Sum, long), [(0, 10), (0, 0)]);
    assert_eq!(meaning::written(Op::Sum, complex), [(0, 10), (16, 26)]);
    assert_eq!(meaning::written(Op::Replace, complex), [(0, 32), (0, 0)]);
    assert_eq!(meaning::written(Op::NoOp, long), [(0, 0); 2]);
    assert_eq!(meaning::written(Op::Maxloc, Value::native(Named::ShortInt)), [(0, 2), (4, 8)]);
}

/// C23, Annex G.5.2: the product of two complex numbers is corrected to an infinity only if both
/// parts of the plain result are NaN.
#[test]
fn products_with_infinities_by_hand() {
    let infinity = f64::INFINITY;
    let product = |x, y| real::product::<f64>(x, y);
    assert_eq!(product([1.0, 2.0], [3.0, 5.0]), [-7.0, 11.0]);
    // If one part of a factor is infinite, the product is infinite, whatever the other part of this
    // factor is.
    assert_eq!(product([infinity, f64::NAN], [2.0, 0.0])[0], infinity);
    // If only one part of the result of the plain formula is a NaN, the result is not corrected.
    let [real, imaginary] = product([infinity, infinity], [2.0, 3.0]);
    assert!(real.is_nan() && imaginary == infinity, "{real} {imaginary}");
}
