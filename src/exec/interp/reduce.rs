//! Reference implementation of reductions by their definition (MPI 5.0, 6.9.2 to 6.9.5): computes
//! `user = op(packed, user)` for one entry after the other, in the order of the type map.
//!
//! Compiled code, micro-kernels and the executor of values are tested against it, and it shares no
//! code with them. Integers are combined by their sign and magnitude, floating-point numbers by
//! their sign, exponent and digits. If an operation makes a NaN, the bits of that NaN are not
//! defined. So the results mark the bytes that depend on the bits of a NaN.

use std::cmp::Ordering::{self, Equal, Greater, Less};

use super::external32::{Format, Real, X87, format, read, write};
use crate::datatype::{Class, Datatype, Named, TypeMap};
use crate::kind::Op;

/// For each byte of user memory, whether its bits are undefined: true if an operation made a NaN
/// there, or computed the value from bytes that were undefined already.
pub type Loose = Vec<bool>;

/// Combines `count` instances from the start of `packed` into `user`, where displacement 0 of the
/// first instance is `user[origin]`. Returns the bytes whose bits are not defined. Values are read
/// as little-endian, so the result is right only on little-endian machines.
///
/// # Panics
/// If data lie outside `user`, `packed` is too short, or `op` is not defined for an entry. For
/// `Minloc` and `Maxloc` also if an entry has no index after it.
pub fn unpack(op: Op, t: &Datatype, count: u64, packed: &[u8], user: &mut [u8], origin: usize) -> Loose {
    let mut loose = vec![false; user.len()];
    let mut next = 0;
    let mut entries = TypeMap::instances(t, count);
    while let Some((basic, displacement)) = entries.next() {
        let at = (origin as i64 + displacement) as usize;
        let size = basic.size() as usize;
        let new = &packed[next..next + size];
        next += size;
        // MINLOC and MAXLOC take two entries at a time, a value and its index. The index of the
        // smaller or larger value wins; for equal values it is the smaller index.
        if matches!(op, Op::Minloc | Op::Maxloc) {
            let (index, displacement) = entries.next().expect("an index after a value");
            let index_at = (origin as i64 + displacement) as usize;
            let index_size = index.size() as usize;
            let new_index = &packed[next..next + index_size];
            next += index_size;
            let (value, old_index) =
                (user[at..at + size].to_vec(), user[index_at..index_at + index_size].to_vec());
            let order = compare(basic, new, &value);
            let better = order == Some(if op == Op::Minloc { Less } else { Greater });
            let sooner = order == Some(Equal) && compare(index, new_index, &old_index) == Some(Less);
            // A comparison with bytes that are not defined may have either result. If the user's
            // value or index has undefined bytes, record all bytes of both as undefined.
            let any = (at..at + size).chain(index_at..index_at + index_size).any(|i| loose[i]);
            if better {
                put(basic, user, at, new);
            }
            if better || sooner {
                put(index, user, index_at, new_index);
            }
            for i in (at..at + size).chain(index_at..index_at + index_size) {
                loose[i] |= any;
            }
            continue;
        }
        if op == Op::NoOp {
            continue;
        }
        if op == Op::Replace {
            user[at..at + size].copy_from_slice(new);
            loose[at..at + size].fill(false);
            continue;
        }
        // Every other operation combines one packed entry with the same entry in user memory. A
        // complex number is added part by part, but multiplied as a whole.
        let old = user[at..at + size].to_vec();
        let parts = if basic.class() == Class::Complex { 2 } else { 1 };
        let mut out = old.clone();
        let mut no_number = false;
        if basic.class() == Class::Complex && op == Op::Prod {
            no_number = product(basic, new, &old, &mut out);
        } else {
            for k in 0..parts {
                let part = k * size / parts..(k + 1) * size / parts;
                no_number |= combine(op, basic, &new[part.clone()], &old[part.clone()], &mut out[part]);
            }
        }
        let taint = no_number || loose[at..at + size].contains(&true);
        put(basic, user, at, &out);
        loose[at..at + size].fill(taint);
    }
    loose
}

/// Returns true if the type consists of one or two numbers in the x87 format: `long double` of C
/// and its complex types. Each number occupies 16 bytes, 10 of which hold the value.
fn extended(basic: Named) -> bool {
    X87 && matches!(basic, Named::LongDouble | Named::CLongDoubleComplex | Named::CxxLongDoubleComplex)
}

/// Writes the bytes of a value to user memory, except for padding inside the value.
fn put(basic: Named, user: &mut [u8], at: usize, bytes: &[u8]) {
    for (i, &byte) in bytes.iter().enumerate() {
        if !extended(basic) || i % 16 < 10 {
            user[at + i] = byte;
        }
    }
}

/// Returns little-endian bytes as one number.
fn bits(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u128::from(byte))
}

/// Returns the floating-point format of a number of this length, and its bits without padding.
fn real(basic: Named, bytes: &[u8]) -> (Format, u128) {
    let all = bits(bytes);
    (format(bytes.len(), extended(basic)), if extended(basic) { all & ((1 << 80) - 1) } else { all })
}

/// Returns whether an integer is negative, and its magnitude.
fn integer(basic: Named, bytes: &[u8]) -> (bool, u128) {
    let value = bits(bytes);
    let negative = basic.class() == Class::Integer && bytes.last().is_some_and(|&byte| byte >= 128);
    // In two's complement, the magnitude of a negative number is 2^n minus its n bits, read as an
    // unsigned number.
    let missing = if bytes.len() == 16 { value.wrapping_neg() } else { (1 << (8 * bytes.len())) - value };
    (negative, if negative { missing } else { value })
}

/// Compares two values by their meaning. Returns none if one of them is a NaN.
fn compare(basic: Named, a: &[u8], b: &[u8]) -> Option<Ordering> {
    match basic.class() {
        Class::Float => {
            let ((f, a), (_, b)) = (real(basic, a), real(basic, b));
            order(read(a, f), read(b, f))
        }
        _ => Some(match (integer(basic, a), integer(basic, b)) {
            ((true, a), (true, b)) => b.cmp(&a),
            ((false, a), (false, b)) => a.cmp(&b),
            ((true, _), _) => Less,
            _ => Greater,
        }),
    }
}

/// Compares two floating-point values. Returns none if one of them is a NaN; zeros are equal,
/// whatever their signs.
fn order(a: Real, b: Real) -> Option<Ordering> {
    let negative = |r| match r {
        Real::Finite { negative, digits, .. } => negative && digits != 0,
        Real::Infinite { negative } | Real::Nan { negative, .. } => negative,
    };
    let zero = |r| matches!(r, Real::Finite { digits: 0, .. });
    let magnitude = |r| match r {
        Real::Finite { digits, exponent, .. } => {
            // Normalize the number so that its first digit is bit 127; then the exponents are
            // compared first and the digits next.
            let up = digits.leading_zeros();
            Some((exponent - up as i32, digits << up))
        }
        _ => None,
    };
    match (a, b) {
        (Real::Nan { .. }, _) | (_, Real::Nan { .. }) => None,
        _ if zero(a) && zero(b) => Some(Equal),
        _ if zero(a) => Some(if negative(b) { Greater } else { Less }),
        _ if zero(b) => Some(if negative(a) { Less } else { Greater }),
        _ if negative(a) != negative(b) => Some(if negative(a) { Less } else { Greater }),
        _ => {
            let order = match (magnitude(a), magnitude(b)) {
                (None, None) => Equal,
                (None, _) => Greater,
                (_, None) => Less,
                (Some(a), Some(b)) => a.cmp(&b),
            };
            Some(if negative(a) { order.reverse() } else { order })
        }
    }
}

/// Returns the sum of two floating-point values. The last digit of the result is 1 if there are
/// nonzero digits after it that were dropped, so that a later rounding is the same as for the exact
/// sum. Returns none if the sum is a NaN.
fn sum(a: Real, b: Real) -> Option<Real> {
    use Real::{Finite, Infinite, Nan};
    match (a, b) {
        (Nan { .. }, _) | (_, Nan { .. }) => None,
        (Infinite { negative: x }, Infinite { negative: y }) => (x == y).then_some(a),
        (Infinite { .. }, _) => Some(a),
        (_, Infinite { .. }) => Some(b),
        (Finite { negative: x, digits: 0, exponent }, Finite { negative: y, digits: 0, .. }) => {
            Some(Finite { negative: x && y, digits: 0, exponent })
        }
        (Finite { digits: 0, .. }, _) => Some(b),
        (_, Finite { digits: 0, .. }) => Some(a),
        (Finite { negative: x, digits: m, exponent: e }, Finite { negative: y, digits: n, exponent: g }) => {
            // Shift the digits of both numbers so that the first digit of each is bit 125, which
            // leaves room for the sum. Then shift the number with the smaller exponent down to the
            // larger exponent. If any digit that this shifts out is 1, the last digit becomes 1.
            let up = |digits: u128, exponent: i32| {
                let up = digits.leading_zeros() as i32 - 2;
                if up >= 0 { (digits << up, exponent - up) } else { panic!("too many digits") }
            };
            let ((m, e), (n, g)) = (up(m, e), up(n, g));
            let ((x, m, e), (y, n, g)) = if e >= g { ((x, m, e), (y, n, g)) } else { ((y, n, g), (x, m, e)) };
            let down = (e - g).min(127) as u32;
            let rest = u128::from(n & ((1 << down) - 1) != 0);
            let n = n >> down | rest;
            Some(match x == y {
                true => Finite { negative: x, digits: m + n, exponent: e },
                false if m == n => Finite { negative: false, digits: 0, exponent: e },
                false if m > n => Finite { negative: x, digits: m - n, exponent: e },
                false => Finite { negative: y, digits: n - m, exponent: e },
            })
        }
    }
}

/// Returns the product of two floating-point values. As in `sum`, the last digit of the result is 1
/// if nonzero digits after it were dropped. Returns none if the product is a NaN.
fn times(a: Real, b: Real) -> Option<Real> {
    use Real::{Finite, Infinite, Nan};
    match (a, b) {
        (Nan { .. }, _) | (_, Nan { .. }) => None,
        (Infinite { negative: x }, Infinite { negative: y }) => Some(Infinite { negative: x != y }),
        (Infinite { negative: x }, Finite { negative: y, digits, .. })
        | (Finite { negative: y, digits, .. }, Infinite { negative: x }) => {
            (digits != 0).then_some(Infinite { negative: x != y })
        }
        (Finite { negative: x, digits: m, exponent: e }, Finite { negative: y, digits: n, exponent: g }) => {
            // Multiply as on paper, in halves of 64 bits.
            let (m1, m0, n1, n0) = (m >> 64, m & u128::from(u64::MAX), n >> 64, n & u128::from(u64::MAX));
            let middle = m1 * n0 + ((m0 * n0) >> 64);
            let (middle, carry) = middle.overflowing_add(m0 * n1);
            let high = m1 * n1 + (middle >> 64) + (u128::from(carry) << 64);
            let low = middle << 64 | ((m0 * n0) & u128::from(u64::MAX));
            // Keep as many digits as fit into 126 bits. The last digit of the result becomes 1 if a
            // dropped digit was 1.
            let (mut high, mut low, mut exponent, mut rest) = (high, low, e + g, false);
            while high != 0 || low >> 126 != 0 {
                rest |= low & 1 == 1;
                low = low >> 1 | high << 127;
                high >>= 1;
                exponent += 1;
            }
            Some(Finite { negative: x != y, digits: low | u128::from(rest), exponent })
        }
    }
}

/// Combines a number of the packed side, `new`, with one of the user's side, `old`, and writes the
/// result to `out`. The number is a whole value or one part of a complex value. Returns true if the
/// operation made a NaN. The bits of that NaN are not defined.
fn combine(op: Op, basic: Named, new: &[u8], old: &[u8], out: &mut [u8]) -> bool {
    let size = out.len();
    if matches!(basic.class(), Class::Float | Class::Complex) {
        let ((f, a), (_, b)) = (real(basic, new), real(basic, old));
        let (a, b) = (read(a, f), read(b, f));
        let made = match op {
            Op::Sum => sum(a, b),
            Op::Prod => times(a, b),
            Op::Min | Op::Max => {
                let wanted = if op == Op::Min { Less } else { Greater };
                let taken = if order(a, b) == Some(wanted) { new } else { old };
                out.copy_from_slice(taken);
                // The result is a copy of one of the operands. So its bits are defined even if that
                // operand is a NaN.
                return false;
            }
            _ => panic!("{op} of {basic}"),
        };
        let Some(made) = made else {
            out[..size].fill(0xff);
            return true;
        };
        out.copy_from_slice(&write(made, f).to_le_bytes()[..size]);
        return false;
    }
    let truth = |bytes: &[u8]| bytes.iter().any(|&byte| byte != 0);
    let ((x, a), (y, b)) = (integer(basic, new), integer(basic, old));
    let signed =
        |negative: bool, magnitude: u128| if negative { magnitude.wrapping_neg() } else { magnitude };
    let bytes: Vec<u8> = match op {
        Op::Sum => signed(x, a).wrapping_add(signed(y, b)).to_le_bytes()[..size].to_vec(),
        Op::Prod => signed(x != y, a.wrapping_mul(b)).to_le_bytes()[..size].to_vec(),
        Op::Min if compare(basic, new, old) == Some(Less) => new.to_vec(),
        Op::Max if compare(basic, new, old) == Some(Greater) => new.to_vec(),
        Op::Min | Op::Max => old.to_vec(),
        Op::Band => new.iter().zip(old).map(|(a, b)| a & b).collect(),
        Op::Bor => new.iter().zip(old).map(|(a, b)| a | b).collect(),
        Op::Bxor => new.iter().zip(old).map(|(a, b)| a ^ b).collect(),
        Op::Land => one_if(truth(new) && truth(old), size),
        Op::Lor => one_if(truth(new) || truth(old), size),
        Op::Lxor => one_if(truth(new) != truth(old), size),
        Op::Minloc | Op::Maxloc | Op::Replace | Op::NoOp => panic!("{op} of {basic}"),
    };
    out.copy_from_slice(&bytes);
    false
}

fn one_if(true_: bool, size: usize) -> Vec<u8> {
    u128::from(true_).to_le_bytes()[..size].to_vec()
}

/// Computes a complex product by the plain formula, with every step rounded. Returns true if a part
/// of the product is a NaN. The bits of the product are then not defined, because C may return an
/// infinity instead.
fn product(basic: Named, new: &[u8], old: &[u8], out: &mut [u8]) -> bool {
    let half = out.len() / 2;
    let rounded = |made: Option<Real>, f: Format| made.map(|made| read(write(made, f), f));
    let part = |bytes: &[u8], k: usize| {
        let (f, bits) = real(basic, &bytes[k * half..(k + 1) * half]);
        (f, read(bits, f))
    };
    let ((f, a), (_, b), (_, c), (_, d)) = (part(new, 0), part(new, 1), part(old, 0), part(old, 1));
    let minus = |r: Real| match r {
        Real::Finite { negative, digits, exponent } => Real::Finite { negative: !negative, digits, exponent },
        Real::Infinite { negative } => Real::Infinite { negative: !negative },
        nan => nan,
    };
    let joined = |x: Option<Real>, y: Option<Real>| rounded(sum(x?, y?), f);
    let re = joined(rounded(times(a, c), f), rounded(times(b, d), f).map(minus));
    let im = joined(rounded(times(a, d), f), rounded(times(b, c), f));
    for (made, bytes) in [re, im].into_iter().zip(out.chunks_exact_mut(half)) {
        match made {
            Some(made) => bytes.copy_from_slice(&write(made, f).to_le_bytes()[..half]),
            None => bytes.fill(0xff),
        }
    }
    re.is_none() || im.is_none()
}
