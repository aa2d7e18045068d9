//! Conversion to and from external32 (MPI 5.0, 14.5.2): big-endian numbers, integers in two's
//! complement, the formats of IEEE 754, and the sizes of table 14.2.
//!
//! Values of class `Swap` differ between memory and external32 only in the order of their bytes, so
//! micro-kernels swap or copy them. The other values are converted one at a time. The classes that
//! occur on usual machines have a loop of their own (`loops`), which is selected once for a run.
//! The rules are:
//!
//! * An integer keeps its value or is refused.
//! * A floating-point number is rounded to nearest, ties to even. A number that is too large
//!   becomes an infinity.
//! * A NaN keeps its sign, whether it is quiet, and the leading bits of its payload. If all kept
//!   bits are zero, the NaN becomes quiet; its encoding would otherwise be that of an infinity.
//! * The encodings that x87 processors refuse (unnormal numbers, pseudo-infinities, pseudo-NaNs)
//!   become the default NaN of these processors.

mod loops;

use rustc_apfloat::ieee::{Double, Half, Quad, Single, X87DoubleExtended};
use rustc_apfloat::{Float, FloatConvert, Round};

use super::{Run, Unfit};
use crate::kind::Direction;
use crate::micro::Buffers;
use crate::nest::{Leaf, Number, Offsets, ValueClass};

/// Converts the values of a run in the direction of `memory`.
pub(super) fn run(memory: &Buffers, run: &Run) -> Result<(), Unfit> {
    let Run { at, n, step, units, value } = *run;
    let unit = value.user();
    match value.class() {
        ValueClass::Swap => {
            let (steps, len) = ((step.user, step.packed), units * unit as u64);
            if unit == 1 || cfg!(target_endian = "big") {
                memory.strided(at.user, at.packed, n, steps, len);
            } else {
                memory.swapped((at.user, at.packed), n, steps, len, unit as u64);
            }
            Ok(())
        }
        ValueClass::Resize(number) => {
            let Some(convert) = loops::find(number, value, memory.direction()) else {
                return one_by_one(memory, run, number);
            };
            let (at, steps) = ((at.user, at.packed), (step.user, step.packed));
            let done = convert(memory, at, n, steps, units);
            if done == n * units { Ok(()) } else { Err(unfit(run, done)) }
        }
        ValueClass::Native(_) | ValueClass::Pair(_) => {
            Err(Unfit { at: Offsets::ZERO, rule: "a value that external32 has not" })
        }
    }
}

/// Returns the error for value number `value` of a run, with the position of that value.
#[cold]
fn unfit(run: &Run, value: u64) -> Unfit {
    let (block, k) = (value / run.units, value % run.units);
    Unfit { at: run.at.step(run.step, block as i64) + run.value.span(k as i64), rule: UNFIT }
}

const UNFIT: &str = "must fit the size that external32 has for it";

/// Converts the values of a run one by one, for number formats and sizes without a specialized
/// loop. The position of each value is computed by `unfit`, the function that also makes the error
/// if the value does not fit.
fn one_by_one(memory: &Buffers, run: &Run, number: Number) -> Result<(), Unfit> {
    let lengths = (run.value.user() as usize, run.value.packed() as usize);
    for value in 0..run.n * run.units {
        let at = unfit(run, value).at;
        let convert = |old: &[u8], new: &mut [u8]| resized(number, memory.direction(), old, new);
        memory.convert((at.user, at.packed), lengths, convert).map_err(|rule| Unfit { at, rule })?;
    }
    Ok(())
}

/// Returns `bytes` as a number. If `native` is true, they are in the byte order of this machine, as
/// in the user's buffer; otherwise they are big-endian, as in the packed stream.
fn number_of(bytes: &[u8], native: bool) -> u128 {
    let mut wide = [0; 16];
    if native && cfg!(target_endian = "little") {
        wide[..bytes.len()].copy_from_slice(bytes);
        return u128::from_le_bytes(wide);
    }
    wide[16 - bytes.len()..].copy_from_slice(bytes);
    u128::from_be_bytes(wide)
}

/// Writes the low bytes of `value` to `bytes`. If `native` is true, they are written in the byte
/// order of this machine, otherwise big-endian.
fn put(value: u128, bytes: &mut [u8], native: bool) {
    let len = bytes.len();
    if native && cfg!(target_endian = "little") {
        bytes.copy_from_slice(&value.to_le_bytes()[..len]);
    } else {
        bytes.copy_from_slice(&value.to_be_bytes()[16 - len..]);
    }
}

/// Converts one value from the bytes `old` to the bytes `new`. The value has different sizes or
/// formats on the two sides. Returns the broken rule if an integer does not fit.
fn resized(number: Number, direction: Direction, old: &[u8], new: &mut [u8]) -> Result<(), &'static str> {
    let pack = direction == Direction::Pack;
    let bits = number_of(old, pack);
    let (from, to) = (8 * old.len() as u32, 8 * new.len() as u32);
    let value = match number {
        Number::Float | Number::Extended => {
            let of = |bits, native| match (number, bits) {
                (Number::Extended, _) if native => &X87,
                (_, 16) => &HALF,
                (_, 32) => &SINGLE,
                (_, 64) => &DOUBLE,
                _ => &QUAD,
            };
            converted(bits, of(from, pack), of(to, !pack))
        }
        Number::Int => integer(bits, from, to, true)?,
        _ => integer(bits, from, to, false)?,
    };
    put(value, new, !pack);
    Ok(())
}

/// Converts an integer of `from` bits to `to` bits, extended by its sign if `signed` is true.
/// Returns an error if it does not fit.
fn integer(bits: u128, from: u32, to: u32, signed: bool) -> Result<u128, &'static str> {
    let extended = |value: u128, size: u32| match signed {
        true => ((value << (128 - size)) as i128 >> (128 - size)) as u128,
        false => value << (128 - size) >> (128 - size),
    };
    let value = extended(bits, from);
    if extended(value, to) == value { Ok(value) } else { Err(UNFIT) }
}

/// A floating-point format: the number of bits of its exponent and fraction, and the arithmetic
/// that converts from it.
struct Format {
    exponent: u32,
    /// Number of bits of the fraction, which are the bits after the point. The x87 format also
    /// stores the bit before the point; that bit is not counted here.
    fraction: u32,
    leading: bool,
    /// Conversion of the bits of a value that is neither an infinity nor a NaN to another format.
    convert: fn(u128, &Format) -> u128,
}

static HALF: Format = Format { exponent: 5, fraction: 10, leading: false, convert: finite::<Half> };
static SINGLE: Format = Format { exponent: 8, fraction: 23, leading: false, convert: finite::<Single> };
static DOUBLE: Format = Format { exponent: 11, fraction: 52, leading: false, convert: finite::<Double> };
static QUAD: Format = Format { exponent: 15, fraction: 112, leading: false, convert: finite::<Quad> };
static X87: Format =
    Format { exponent: 15, fraction: 63, leading: true, convert: finite::<X87DoubleExtended> };

/// Converts the bits of a finite value from the format `F` to the format `to`, rounded to nearest,
/// ties to even.
fn finite<F>(bits: u128, to: &Format) -> u128
where
    F: Float
        + FloatConvert<Half>
        + FloatConvert<Single>
        + FloatConvert<Double>
        + FloatConvert<Quad>
        + FloatConvert<X87DoubleExtended>,
{
    fn to_bits<F: FloatConvert<T>, T: Float>(value: F) -> u128 {
        value.convert_r(Round::NearestTiesToEven, &mut false).value.to_bits()
    }
    let value = F::from_bits(bits);
    match (to.fraction, to.leading) {
        (10, _) => to_bits::<F, Half>(value),
        (23, _) => to_bits::<F, Single>(value),
        (52, _) => to_bits::<F, Double>(value),
        (112, _) => to_bits::<F, Quad>(value),
        _ => to_bits::<F, X87DoubleExtended>(value),
    }
}

impl Format {
    /// Returns the number of bits of the fraction together with the leading bit, if the format has
    /// an explicit one.
    fn significand(&self) -> u32 {
        self.fraction + u32::from(self.leading)
    }

    /// Returns the bits, in this format, of an infinity or NaN with the given sign and payload.
    /// Payload 0 gives the infinity.
    fn special(&self, sign: u128, payload: u128) -> u128 {
        let (exponent, leading) = ((1 << self.exponent) - 1, u128::from(self.leading) << self.fraction);
        sign << (self.exponent + self.significand()) | exponent << self.significand() | leading | payload
    }
}

/// Converts the bits of a floating-point value, which may also be an infinity or a NaN, from one
/// format to another.
fn converted(bits: u128, from: &Format, to: &Format) -> u128 {
    let width = from.exponent + from.significand();
    // An x87 value occupies 10 of 16 bytes. Drop the padding in the other 6 bytes.
    let bits = if width < 127 { bits & ((1 << (width + 1)) - 1) } else { bits };
    let sign = bits >> width;
    let exponent = bits >> from.significand() & ((1 << from.exponent) - 1);
    let payload = bits & ((1 << from.fraction) - 1);
    if from.leading && exponent != 0 && bits >> from.fraction & 1 == 0 {
        // The processor refuses this encoding. Its default NaN is negative and quiet.
        return to.special(1, 1 << (to.fraction - 1));
    }
    // Finite values are converted by the function `convert` of their format. What follows handles
    // infinities and NaNs. An infinity keeps its sign. A NaN keeps the leading bits of its payload.
    // If all kept bits are 0, its quiet bit is set, because it would otherwise be an infinity.
    if exponent != (1 << from.exponent) - 1 {
        return (from.convert)(bits, to);
    }
    if payload == 0 {
        return to.special(sign, 0);
    }
    let kept = match to.fraction.checked_sub(from.fraction) {
        Some(more) => payload << more,
        None => payload >> (from.fraction - to.fraction),
    };
    to.special(sign, if kept == 0 { 1 << (to.fraction - 1) } else { kept })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each pair of an x87 value and a binary128 value is the same number, and is converted in both
    /// directions.
    #[test]
    fn x87_by_hand() {
        let one = (0x3fff_8000_0000_0000_0000, 0x3fff << 112);
        let third = (0x3ffd_aaaa_aaaa_aaaa_aaab, 0x3ffd_5555_5555_5555_5556_0000_0000_0000);
        let least = (1, 1 << 49);
        let least_normal = (0x0001_8000_0000_0000_0000, 1 << 112);
        let largest = (0x7ffe_ffff_ffff_ffff_ffff, 0x7ffe_ffff_ffff_ffff_fffe_0000_0000_0000);
        let infinity = (0x7fff_8000_0000_0000_0000, 0x7fff << 112);
        let quiet = (0x7fff_c000_0000_0000_0123, 0x7fff_8000_0000_0000_0246_0000_0000_0000);
        let signalling = (0xffff_8000_0000_0000_0001, 0xffff_0000_0000_0000_0002_0000_0000_0000);
        for (x87, quad) in [(0, 0), one, third, least, least_normal, largest, infinity, quiet, signalling] {
            assert_eq!(converted(x87, &X87, &QUAD), quad, "{x87:#x}");
            assert_eq!(converted(quad, &QUAD, &X87), x87, "{quad:#x}");
            // Bytes 10 to 15 of a `long double` are padding and may hold anything.
            assert_eq!(converted(0xdead << 80 | x87, &X87, &QUAD), quad, "{x87:#x} with padding");
        }
    }

    /// Conversions between binary128 and the formats that some machines have for `long double` or
    /// shorter numbers: binary64, binary32 and binary16. Each pair is the same number and is
    /// converted in both directions.
    #[test]
    fn narrow_formats_by_hand() {
        let quad = |exponent: u128, fraction: u128| exponent << 112 | fraction;
        let double = [
            (0, 0),
            (0x3ff << 52, quad(0x3fff, 0)),
            (0xbfd5_5555_5555_5555, quad(0xbffd, 0x5_5555_5555_5555 << 60)),
            // The smallest denormal number, the smallest normal number, and the largest finite
            // number.
            (1, quad(0x3fff - 1074, 0)),
            (1 << 52, quad(0x3fff - 1022, 0)),
            (0x7fef_ffff_ffff_ffff, quad(0x43fe, 0xf_ffff_ffff_ffff << 60)),
            (0xfff << 52, quad(0xffff, 0)),
            (0x7ff8_0000_0000_0123, quad(0x7fff, 0x8_0000_0000_0123 << 60)),
        ];
        let single = [(0x3f80_0000, quad(0x3fff, 0)), (0xc049_0fdb, quad(0xc000, 0x49_0fdb << 89))];
        let half =
            [(0x3c00, quad(0x3fff, 0)), (0x8001, quad(0x8000 | (0x3fff - 24), 0)), (0x7c00, quad(0x7fff, 0))];
        for (format, values) in [(&DOUBLE, &double[..]), (&SINGLE, &single), (&HALF, &half)] {
            for &(narrow, wide) in values {
                assert_eq!(converted(narrow, format, &QUAD), wide, "{narrow:#x}");
                assert_eq!(converted(wide, &QUAD, format), narrow, "{wide:#x}");
            }
        }
        // A number half way between two doubles is rounded to the one whose last bit is 0, and a
        // number above the largest double becomes an infinity.
        assert_eq!(converted(quad(0x3fff, 1 << 59), &QUAD, &DOUBLE), 0x3ff << 52);
        assert_eq!(converted(quad(0x3fff, 3 << 59), &QUAD, &DOUBLE), (0x3ff << 52) + 2);
        assert_eq!(converted(quad(0x43ff, 0), &QUAD, &DOUBLE), 0x7ff << 52);
    }

    #[test]
    fn binary128_is_rounded_to_nearest_even() {
        let one: u128 = 0x3fff << 112;
        let x87 = |quad| converted(quad, &QUAD, &X87) as u64;
        let half = 1 << 48;
        assert_eq!(x87(one | half), 1 << 63);
        assert_eq!(x87(one | half | 1), (1 << 63) + 1);
        assert_eq!(x87(one | 1 << 49 | half), (1 << 63) + 2);
        // A number above the largest x87 number becomes an infinity. A number that is rounded up to
        // a power of two gets the next exponent.
        assert_eq!(converted((0x7fff << 112) - 1, &QUAD, &X87), 0x7fff_8000_0000_0000_0000);
        assert_eq!(converted((0x4000 << 112) - 1, &QUAD, &X87), 0x4000_8000_0000_0000_0000);
        // Half of the smallest denormal number becomes zero, and a little more than half becomes
        // that number.
        assert_eq!(converted(1 << 48, &QUAD, &X87), 0);
        assert_eq!(converted(1 << 48 | 1, &QUAD, &X87), 1);
    }

    #[test]
    fn encodings_that_are_no_values_are_the_default_nan() {
        let nan = 0xffff << 112 | 1 << 111;
        let [unnormal, pseudo_infinity, pseudo_nan] =
            [0x3fff_4000_0000_0000_0000, 0x7fff << 64, 0x7fff << 64 | 1]
                .map(|bits| converted(bits, &X87, &QUAD));
        assert_eq!([unnormal, pseudo_infinity, pseudo_nan], [nan; 3]);
        // A denormal number whose leading bit is set is the smallest normal number.
        assert_eq!(converted(1 << 63, &X87, &QUAD), 1 << 112);
        // A NaN whose payload would be cut to zero stays a NaN and becomes quiet.
        assert_eq!(converted(0x7fff << 112 | 1, &QUAD, &X87), 0x7fff_c000_0000_0000_0000);
    }

    /// Values that no specialized loop converts, as bytes: in the order of this machine on the user
    /// side and big-endian on the packed side. Both directions are checked.
    #[test]
    fn values_by_hand() {
        let check = |number, native: &[u8], external: &[u8]| {
            let (mut packed, mut user) = (vec![0xaa; external.len()], vec![0xaa; native.len()]);
            assert_eq!(resized(number, Direction::Pack, native, &mut packed), Ok(()));
            assert_eq!(resized(number, Direction::Unpack, external, &mut user), Ok(()));
            assert!(packed == external && user == native, "{number:?}: {packed:02x?} and {user:02x?}");
        };
        check(Number::Int, &(-2_i64).to_ne_bytes(), &[0xff, 0xff, 0xff, 0xfe]);
        check(Number::Int, &0x0102_i16.to_ne_bytes(), &[0, 0, 1, 2]);
        check(Number::Uint, &0x8000_0001_u64.to_ne_bytes(), &[0x80, 0, 0, 1]);
        let three = 0x4000_8000_u128 << 96;
        let quad = three.to_be_bytes();
        check(Number::Float, &3_f64.to_ne_bytes(), &quad);
        check(Number::Extended, &0x4000_c000_0000_0000_0000_u128.to_ne_bytes(), &quad);
        check(Number::Float, &three.to_ne_bytes(), &3_f32.to_be_bytes());
        let refused = resized(Number::Int, Direction::Pack, &(1_i64 << 31).to_ne_bytes(), &mut [0; 4]);
        assert_eq!(refused, Err(UNFIT));
    }

    #[test]
    fn integers_fit_or_are_refused() {
        let int = |value: i64, to| integer(value as u64 as u128, 64, to, true);
        assert_eq!(int(i32::MAX.into(), 32), Ok(i32::MAX as u128));
        assert_eq!(int(-1, 32), Ok(u128::MAX));
        assert!(int(1 << 31, 32).is_err() && int(i64::from(i32::MIN) - 1, 32).is_err());
        assert_eq!(integer(u32::MAX.into(), 64, 32, false), Ok(u32::MAX.into()));
        assert!(integer(1 << 32, 64, 32, false).is_err());
        assert_eq!(integer(0x8000_0000, 32, 64, true), Ok(u128::MAX << 31));
    }
}
