//! Scalar reference of reductions: combines two values given as bytes. This code defines the
//! meaning of every micro-kernel of the family `reduce`, and it combines the values for which there
//! is no micro-kernel.
//!
//! Results on integers are computed in 128 bits and truncated to the size of the values, which
//! gives the same as arithmetic that wraps around. Numbers in the formats binary16 and binary128
//! and in the extended format of the x87 are computed by `rustc_apfloat`.

use rustc_apfloat::Float;
use rustc_apfloat::ieee::{Half, Quad, X87DoubleExtended};

use super::real::{Real, product};
use crate::kind::Op;
use crate::nest::{Leaf, Number, Value, ValueClass};

/// Number of bytes of a number in the extended format of the x87, without its padding.
const X87: usize = 10;

/// Computes `old = op(new, old)` for one value of the class `value`. `old` has the form of user
/// memory; `new` may have the same form, or lack the padding inside. Padding inside `old` is not
/// changed, except by `Replace`. Whether the operation is defined for the class is not checked:
/// characters, truth values and bits are combined like unsigned integers. Real numbers are changed
/// only by sum, product, minimum, maximum and `Replace`, and complex numbers only by sum, product
/// and `Replace`. Pairs are changed only by `Minloc` and `Maxloc`, and these two operations change
/// no other values. Values of the classes `Swap` and `Resize` are not changed.
///
/// `old` must have exactly the bytes of the value in user memory.
///
/// # Panics
/// May panic if `new` or `old` is shorter than a value of this class.
pub fn combine(op: Op, value: Value, new: &[u8], old: &mut [u8]) {
    match value.class() {
        _ if op == Op::NoOp => {}
        ValueClass::Native(_) if op == Op::Replace => old.copy_from_slice(&new[..old.len()]),
        ValueClass::Native(number) => combined(op, number, new, old),
        ValueClass::Pair([value_part, index_part]) if op.is_location() => {
            pair(op, [value_part, index_part], new, old, value.user() as usize);
        }
        ValueClass::Pair(_) | ValueClass::Swap | ValueClass::Resize(_) => {}
    }
}

/// Returns which bytes of a value in user memory the operation `op` writes: up to two ranges, each
/// as its start and its end. Ranges that are not used are empty.
pub(in crate::micro) fn written(op: Op, value: Value) -> [(usize, usize); 2] {
    let user = value.user() as usize;
    match value.class() {
        _ if op == Op::NoOp => [(0, 0); 2],
        ValueClass::Native(_) if op == Op::Replace => [(0, user), (0, 0)],
        ValueClass::Pair([(number, size), (_, index)]) => {
            let size = if number == Number::Extended { X87 } else { usize::from(size) };
            [(0, size), (user - usize::from(index), user)]
        }
        ValueClass::Native(Number::Extended) => [(0, X87), (0, 0)],
        ValueClass::Native(Number::ExtendedComplex) => [(0, X87), (user / 2, user / 2 + X87)],
        _ => [(0, user), (0, 0)],
    }
}

fn pair(op: Op, parts: [(Number, u8); 2], new: &[u8], old: &mut [u8], user: usize) {
    let [(number, size), (index, index_size)] = parts;
    let (size, index_size) = (usize::from(size), usize::from(index_size));
    let (new_value, old_value) = (&new[..size], &old[..size]);
    let (new_index, old_index) = (&new[new.len() - index_size..], &old[user - index_size..user]);
    let better = match op {
        Op::Minloc => less(number, new_value, old_value),
        _ => less(number, old_value, new_value),
    };
    let index_only = !better && equal(number, new_value, old_value) && less(index, new_index, old_index);
    if better {
        let size = if number == Number::Extended { X87 } else { size };
        old[..size].copy_from_slice(&new[..size]);
    }
    if better || index_only {
        old[user - index_size..user].copy_from_slice(new_index);
    }
}

/// Returns the integer whose bytes are `bytes`, in this machine's byte order, extended to 128 bits.
fn wide(bytes: &[u8], signed: bool) -> u128 {
    let mut all = [0; 16];
    if cfg!(target_endian = "little") {
        all[..bytes.len()].copy_from_slice(bytes);
    } else {
        all[16 - bytes.len()..].copy_from_slice(bytes);
    }
    let number = u128::from_ne_bytes(all);
    let unused = 128 - 8 * bytes.len() as u32;
    match signed {
        true => ((number << unused) as i128 >> unused) as u128,
        false => number,
    }
}

fn put(number: u128, bytes: &mut [u8]) {
    let (all, len) = (number.to_ne_bytes(), bytes.len());
    bytes.copy_from_slice(if cfg!(target_endian = "little") { &all[..len] } else { &all[16 - len..] });
}

fn integer(op: Op, signed: bool, new: u128, old: u128) -> u128 {
    let new_is_less = if signed { (new as i128) < old as i128 } else { new < old };
    let truth = |t: bool| u128::from(t);
    match op {
        Op::Sum => new.wrapping_add(old),
        Op::Prod => new.wrapping_mul(old),
        Op::Min => {
            if new_is_less {
                new
            } else {
                old
            }
        }
        Op::Max => {
            if new_is_less {
                old
            } else {
                new
            }
        }
        Op::Band => new & old,
        Op::Bor => new | old,
        Op::Bxor => new ^ old,
        Op::Land => truth(new != 0 && old != 0),
        Op::Lor => truth(new != 0 || old != 0),
        Op::Lxor => truth((new != 0) != (old != 0)),
        Op::Minloc | Op::Maxloc | Op::NoOp => old,
        Op::Replace => new,
    }
}

fn real<R: Real>(op: Op, new: R, old: R) -> R {
    match op {
        Op::Sum => new.plus(old),
        Op::Prod => new.times(old),
        _ => old,
    }
}

/// Calls the macro `$f` with the Rust type that computes in the format of a number. The kind and
/// the size of the number determine the format. `$f` computes with the bytes `$new` and `$old` of
/// two values and stores the result.
macro_rules! by_format {
    ($number:expr, $size:expr, $new:expr, $old:expr, $f:ident, $otherwise:expr) => {
        match ($number, $size) {
            (Number::Extended | Number::ExtendedComplex, _) => $f!(X87DoubleExtended, $new, $old),
            (_, 2) => $f!(Half, $new, $old),
            (_, 4) => $f!(f32, $new, $old),
            (_, 8) => $f!(f64, $new, $old),
            (_, 16) => $f!(Quad, $new, $old),
            _ => $otherwise,
        }
    };
}

/// Conversion between a real number of some format and its bytes.
trait Format: Real {
    fn from_bytes(bytes: &[u8]) -> Self;
    fn put(self, bytes: &mut [u8]);
}

macro_rules! formats {
    ($($t:ident $bits:ident $bytes:expr;)*) => {$(
        impl Format for $t {
            fn from_bytes(bytes: &[u8]) -> $t {
                $t::from_bits(wide(&bytes[..$bytes], false) as $bits)
            }
            fn put(self, bytes: &mut [u8]) {
                put(self.to_bits().into(), &mut bytes[..$bytes]);
            }
        }
    )*};
}
formats! { f32 u32 4; f64 u64 8; Half u128 2; Quad u128 16; X87DoubleExtended u128 X87; }

fn combined(op: Op, number: Number, new: &[u8], old: &mut [u8]) {
    let size = old.len();
    match number {
        Number::Int | Number::Uint | Number::Logical | Number::Bits | Number::Character => {
            // Values of all these kinds are combined as integers of the value's size. `Minloc` and
            // `Maxloc` leave `old` as it is.
            let signed = number == Number::Int;
            put(integer(op, signed, wide(&new[..size], signed), wide(old, signed)), old);
        }
        // The result of a minimum or maximum is one of the two values, whose bytes are taken
        // without a conversion.
        Number::Float | Number::Extended if matches!(op, Op::Min | Op::Max) => {
            let taken = if op == Op::Min { less(number, new, old) } else { less(number, old, new) };
            let size = if number == Number::Extended { X87 } else { size };
            if taken {
                old[..size].copy_from_slice(&new[..size]);
            }
        }
        // Sums and products are computed in the format of the numbers. Other operations leave `old`
        // as it is.
        Number::Float | Number::Extended => {
            macro_rules! one {
                ($t:ident, $new:expr, $old:expr) => {
                    real(op, $t::from_bytes($new), $t::from_bytes($old)).put($old)
                };
            }
            by_format!(number, size, new, old, one, ());
        }
        // The real and the imaginary part are numbers of half the size. A product combines all four
        // parts of two complex numbers; sums are computed part by part.
        Number::Complex | Number::ExtendedComplex => {
            let half = size / 2;
            let ((re, im), (old_re, old_im)) = ((&new[..half], &new[half..size]), old.split_at_mut(half));
            macro_rules! two {
                ($t:ident, $new:expr, $old:expr) => {{
                    let (x, y) = (
                        [$t::from_bytes(re), $t::from_bytes(im)],
                        [$t::from_bytes(old_re), $t::from_bytes(old_im)],
                    );
                    let [re, im] = match op {
                        Op::Prod => product(x, y),
                        _ => [real(op, x[0], y[0]), real(op, x[1], y[1])],
                    };
                    re.put(old_re);
                    im.put(old_im);
                }};
            }
            by_format!(number, half, new, old, two, ());
        }
    }
}

/// Returns true if the number with the bytes `a` is less than the number with the bytes `b`. A NaN
/// is neither less than another number nor greater.
fn less(number: Number, a: &[u8], b: &[u8]) -> bool {
    macro_rules! compared {
        ($t:ident, $a:expr, $b:expr) => {
            $t::from_bytes($a) < $t::from_bytes($b)
        };
    }
    match number {
        Number::Int => (wide(a, true) as i128) < wide(b, true) as i128,
        Number::Float | Number::Extended => by_format!(number, a.len(), a, b, compared, false),
        _ => wide(a, false) < wide(b, false),
    }
}

fn equal(number: Number, a: &[u8], b: &[u8]) -> bool {
    macro_rules! compared {
        ($t:ident, $a:expr, $b:expr) => {
            $t::from_bytes($a) == $t::from_bytes($b)
        };
    }
    match number {
        Number::Float | Number::Extended => by_format!(number, a.len(), a, b, compared, false),
        _ => a == b,
    }
}
