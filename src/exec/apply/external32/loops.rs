//! Conversions of external32 that have a loop of their own: integers of 8 and 4 bytes that
//! external32 represents in 4 and 2 bytes, and the x87 `long double`, which is binary128 in
//! external32. The rare x87 values (denormal numbers, infinities, NaNs, and encodings that x87
//! processors refuse) are left to `converted`.
//!
//! Values on the user side are in the byte order of this machine. Values in the packed stream are
//! big-endian.

use std::marker::PhantomData;

use super::{QUAD, X87, converted};
use crate::kind::Direction;
use crate::micro::Buffers;
use crate::micro::resize::Conversion;
use crate::nest::{Leaf, Number, Value};

/// Type of the function [`Buffers::resized`] for one conversion. The function returns the number of
/// values before the first one that does not fit; if all fit, this is the number of all values.
pub(super) type Loop = fn(&Buffers, (i64, i64), u64, (i64, i64), u64) -> u64;

/// Returns the loop that converts in `direction` numbers of the kind `number` that have the sizes
/// of `value` on the two sides, or none if there is no such loop.
pub(super) fn find(number: Number, value: Value, direction: Direction) -> Option<Loop> {
    let sizes = (value.user(), value.packed());
    macro_rules! by_direction {
        ($out:ty, $back:ty) => {
            Some(match direction {
                Direction::Pack => Buffers::resized::<$out>,
                Direction::Unpack => Buffers::resized::<$back>,
            })
        };
    }
    match (number, sizes) {
        (Number::Float | Number::Complex | Number::ExtendedComplex, _) => None,
        (Number::Extended, (16, 16)) => by_direction!(Outward, Inward),
        (Number::Extended, _) => None,
        (Number::Int, (8, 4)) => by_direction!(Narrow<i64, i32>, Widen<i32, i64>),
        (Number::Int, (4, 2)) => by_direction!(Narrow<i32, i16>, Widen<i16, i32>),
        (Number::Int, _) => None,
        (_, (8, 4)) => by_direction!(Narrow<u64, u32>, Widen<u32, u64>),
        (_, (4, 2)) => by_direction!(Narrow<u32, u16>, Widen<u16, u32>),
        _ => None,
    }
}

/// Conversion, from memory to the packed stream, of integers that are shorter in the stream: `W` is
/// the type in memory, `N` that in the stream.
struct Narrow<W, N>(PhantomData<(W, N)>);

/// Conversion in the opposite direction of `Narrow`, from the stream to memory. Every value fits.
struct Widen<N, W>(PhantomData<(N, W)>);

macro_rules! integers {
    ($($wide:ty, $wide_bits:ty => $narrow:ty, $narrow_bits:ty;)*) => {$(
        impl Conversion for Narrow<$wide, $narrow> {
            type From = $wide_bits;
            type To = $narrow_bits;

            #[inline(always)]
            fn fits(value: $wide_bits) -> bool {
                value as $narrow as $wide as $wide_bits == value
            }

            #[inline(always)]
            fn converted(value: $wide_bits) -> $narrow_bits {
                (value as $narrow_bits).to_be()
            }
        }

        impl Conversion for Widen<$narrow, $wide> {
            type From = $narrow_bits;
            type To = $wide_bits;
            const ALWAYS: bool = true;

            #[inline(always)]
            fn fits(_: $narrow_bits) -> bool {
                true
            }

            #[inline(always)]
            fn converted(value: $narrow_bits) -> $wide_bits {
                <$narrow_bits>::from_be(value) as $narrow as $wide as $wide_bits
            }
        }
    )*};
}
integers! {
    i64, u64 => i32, u32;
    u64, u64 => u32, u32;
    i32, u32 => i16, u16;
    u32, u32 => u16, u16;
}

/// Conversion of the x87 `long double`, in the low 10 of 16 bytes, to binary128.
struct Outward;

impl Conversion for Outward {
    type From = u128;
    type To = u128;
    const ALWAYS: bool = true;

    #[inline(always)]
    fn fits(_: u128) -> bool {
        true
    }

    #[inline(always)]
    fn converted(value: u128) -> u128 {
        outward(value).to_be()
    }
}

/// Conversion of binary128 to the x87 `long double`.
struct Inward;

impl Conversion for Inward {
    type From = u128;
    type To = u128;
    const ALWAYS: bool = true;

    #[inline(always)]
    fn fits(_: u128) -> bool {
        true
    }

    #[inline(always)]
    fn converted(value: u128) -> u128 {
        inward(u128::from_be(value))
    }
}

/// Number of fraction bits that binary128 has in addition to those of the x87 format.
const MORE: u32 = QUAD.fraction - X87.fraction;
/// Leading bit of an x87 significand, which is the digit before the point.
const LEADING: u64 = 1 << 63;
/// Exponent field of infinities and NaNs, in the x87 format and in binary128.
const TOP: u16 = 0x7fff;

/// Converts an x87 value to binary128, both given as bits. Zeros and normal numbers need no
/// rounding, as binary128 has more bits; every other value is left to `rare`.
#[inline(always)]
fn outward(x87: u128) -> u128 {
    let (significand, power) = (x87 as u64, (x87 >> 64) as u16);
    let normal = significand & LEADING != 0 && !matches!(power & TOP, 0 | TOP);
    if normal || significand == 0 && power & TOP == 0 {
        return u128::from(power) << QUAD.fraction | u128::from(significand & !LEADING) << MORE;
    }
    rare(x87, true)
}

/// Converts a binary128 value to the x87 format, both given as bits, rounded to nearest, ties to
/// even. Zeros and normal numbers are converted here; every other value is left to `rare`.
#[inline(always)]
fn inward(quad: u128) -> u128 {
    let (power, fraction) = ((quad >> QUAD.fraction) as u16, quad & ((1 << QUAD.fraction) - 1));
    if matches!(power & TOP, 0 | TOP) {
        return if quad << 1 == 0 { u128::from(power) << 64 } else { rare(quad, false) };
    }
    let kept = LEADING | (fraction >> MORE) as u64;
    let (rest, half) = (fraction & ((1 << MORE) - 1), 1 << (MORE - 1));
    let up = rest > half || rest == half && kept & 1 == 1;
    // If the largest significand is rounded up, `kept` overflows to 0. The result is then the next
    // exponent with the smallest normal significand. If there is no larger finite exponent, the
    // result is an infinity. In both cases only the leading bit of the significand is set, which
    // the last line does.
    let (kept, carry) = kept.overflowing_add(up.into());
    u128::from(power + u16::from(carry)) << 64 | u128::from(kept | LEADING)
}

/// Converts a value that is neither zero nor a normal number by `converted`, the slower function
/// for all values. `out` selects the conversion from x87 to binary128.
#[cold]
fn rare(bits: u128, out: bool) -> u128 {
    if out { converted(bits, &X87, &QUAD) } else { converted(bits, &QUAD, &X87) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::Choices;

    #[test]
    fn both_ways_are_the_conversion_of_all_values() {
        let edges =
            |bits: u32| [0, 1, 2, 3, (1 << bits) - 1, (1 << bits) - 2, 1 << (bits - 1), 1 << (bits - 2)];
        let powers = [0, 1, 2, 0x3fff, 0x4000, 0x7ffd, 0x7ffe, 0x7fff];
        let mut c = Choices::from_seed(32);
        let mut random = || u128::from(c.below(u64::MAX)) << 64 | u128::from(c.below(u64::MAX));
        let mut seen = 0;
        let mut compare = |x87: u128, quad: u128| {
            assert_eq!(outward(x87), converted(x87, &X87, &QUAD), "{x87:#x}");
            assert_eq!(inward(quad), converted(quad, &QUAD, &X87), "{quad:#x}");
            seen += 1;
        };
        for sign in [0, 0x8000] {
            for power in powers {
                for high in edges(64) {
                    compare(0xbad << 80 | (sign | power) << 64 | high, (sign | power) << 112 | high << 48);
                    for low in edges(MORE) {
                        compare(
                            (sign | power) << 64 | high ^ low,
                            (sign | power) << 112 | high >> 1 << MORE | low,
                        );
                    }
                }
                for _ in 0..200 {
                    let (high, low) = (random(), random());
                    compare((sign | power) << 64 | high >> 64, (sign | power) << 112 | low >> 16);
                }
            }
        }
        for _ in 0..20_000 {
            compare(random(), random());
        }
        assert!(seen > 20_000);
    }

    #[test]
    fn integers_by_hand() {
        type Signed = Narrow<i64, i32>;
        assert!(Signed::fits(-1i64 as u64) && Signed::fits(i64::from(i32::MIN) as u64));
        assert!(!Signed::fits(1 << 31) && !Signed::fits(1 << 32) && !Signed::fits(1 << 63));
        assert_eq!(Signed::converted(-2i64 as u64), 0xffff_fffe_u32.to_be());
        type Unsigned = Narrow<u64, u32>;
        assert!(Unsigned::fits(u32::MAX.into()) && !Unsigned::fits(1 << 32) && !Unsigned::fits(u64::MAX));
        assert_eq!(Widen::<i32, i64>::converted((-2i32 as u32).to_be()), -2i64 as u64);
        assert_eq!(Widen::<u32, u64>::converted(u32::MAX.to_be()), u64::from(u32::MAX));
        assert!(Narrow::<u32, u16>::fits(0xffff) && !Narrow::<u32, u16>::fits(0x1_0000));
    }
}
