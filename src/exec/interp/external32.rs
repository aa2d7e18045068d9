//! Reference implementation of external32 by its definition (MPI 5.0, 14.5.2): converts one basic
//! value at a time, by its sign, exponent and digits.
//!
//! Compiled code, micro-kernels and the executor of values are tested against it, and it shares no
//! code with them.

use std::ops::Range;

use crate::datatype::{Class, Datatype, Named, TypeMap};
use crate::kind::Direction;

/// Value of a floating-point format: the number `(-1)^negative * digits * 2^exponent`, an infinity,
/// or a NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Real {
    Finite {
        negative: bool,
        digits: u128,
        exponent: i32,
    },
    Infinite {
        negative: bool,
    },
    /// A NaN. The payload has its most significant bit first; that bit is set if the NaN is quiet.
    Nan {
        negative: bool,
        payload: [bool; 112],
    },
}

/// Floating-point format. The bits of a value are passed as one integer, in which the highest bit
/// that the format uses is the sign.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Format {
    /// IEEE format with this number of exponent bits and of fraction bits.
    Ieee(i32, usize),
    X87,
}

/// Returns the format of a floating-point number of `size` bytes, which is x87's if `x87` is true.
pub(super) fn format(size: usize, x87: bool) -> Format {
    match size {
        _ if x87 => Format::X87,
        2 => Format::Ieee(5, 10),
        4 => Format::Ieee(8, 23),
        8 => Format::Ieee(11, 52),
        _ => Format::Ieee(15, 112),
    }
}

/// Returns the payload of a NaN: the low `fraction` bits of `bits`, the most significant one first,
/// followed by zeros.
fn payload(bits: u128, fraction: usize) -> [bool; 112] {
    let mut payload = [false; 112];
    for (i, bit) in payload.iter_mut().enumerate().take(fraction) {
        *bit = bits >> (fraction - 1 - i) & 1 == 1;
    }
    payload
}

/// Returns the value that `bits` stand for. x87's unnormal numbers, pseudo-infinities and
/// pseudo-NaNs are read as the default NaN of its processors, which is negative and quiet.
pub(super) fn read(bits: u128, format: Format) -> Real {
    let (width, fraction) = match format {
        Format::Ieee(width, fraction) => (width, fraction),
        Format::X87 => (15, 63),
    };
    let explicit = usize::from(format == Format::X87);
    let low = bits & ((1 << fraction) - 1);
    let leading = bits >> fraction & 1 == 1;
    let power = (bits >> (fraction + explicit)) as i32 & ((1 << width) - 1);
    let negative = bits >> (fraction + explicit) >> width & 1 == 1;
    let bias = (1 << (width - 1)) - 1;
    if explicit == 1 && power != 0 && !leading {
        return Real::Nan { negative: true, payload: payload(1 << (fraction - 1), fraction) };
    }
    if power == (1 << width) - 1 {
        return match low {
            0 => Real::Infinite { negative },
            _ => Real::Nan { negative, payload: payload(low, fraction) },
        };
    }
    let whole = if explicit == 1 { leading } else { power != 0 };
    let digits = low | u128::from(whole) << fraction;
    Real::Finite { negative, digits, exponent: power.max(1) - bias - fraction as i32 }
}

/// Returns the bits of a value in a format, rounded to nearest, ties to even. A number that is too
/// large becomes an infinity. A NaN whose kept payload would be zero becomes quiet.
pub(super) fn write(real: Real, format: Format) -> u128 {
    let (width, fraction) = match format {
        Format::Ieee(width, fraction) => (width, fraction),
        Format::X87 => (15, 63),
    };
    let explicit = usize::from(format == Format::X87);
    let bias = (1 << (width - 1)) - 1;
    let top = (1_u128 << width) - 1;
    let join = |negative: bool, power: u128, low: u128| {
        // The x87 format stores the digit before the point. This digit is 1 except for zero and
        // denormal numbers, whose exponent field is 0.
        let leading = u128::from(explicit == 1 && power != 0) << fraction;
        (u128::from(negative) << width | power) << (fraction + explicit) | leading | low
    };
    match real {
        Real::Infinite { negative } => join(negative, top, 0),
        Real::Nan { negative, payload } => {
            let kept = payload[..fraction].iter().fold(0, |bits, &bit| bits << 1 | u128::from(bit));
            join(negative, top, if kept == 0 { 1 << (fraction - 1) } else { kept })
        }
        Real::Finite { negative, digits: 0, .. } => join(negative, 0, 0),
        Real::Finite { negative, mut digits, mut exponent } => {
            // Shift out the low digits that the format has no place for, or that lie below its
            // smallest exponent. `rest` keeps these, so that the rounding below is exact.
            let smallest = 1 - bias - fraction as i32;
            let mut rest = Vec::new();
            while digits >> (fraction + 1) != 0 || exponent < smallest {
                rest.push(digits & 1 == 1);
                digits >>= 1;
                exponent += 1;
            }
            while digits >> fraction == 0 && exponent > smallest {
                digits <<= 1;
                exponent -= 1;
            }
            // Round up if the dropped digits are more than half a unit of the last place, or
            // exactly half of it and the last digit is odd. A carry out of the top digit moves the
            // exponent.
            let half = rest.last().copied().unwrap_or(false);
            let beyond = rest.iter().rev().skip(1).any(|&bit| bit);
            if half && (beyond || digits & 1 == 1) {
                digits += 1;
                if digits >> (fraction + 1) != 0 {
                    digits >>= 1;
                    exponent += 1;
                }
            }
            // A number without the digit in front of the point is zero or denormal, and has
            // exponent field 0.
            let power = if digits >> fraction == 0 { 0 } else { exponent + bias + fraction as i32 };
            if power >= (1 << width) - 1 {
                return join(negative, top, 0);
            }
            join(negative, power as u128, digits & ((1 << fraction) - 1))
        }
    }
}

/// Whether `long double` of C has the x87 format in this build.
pub(super) const X87: bool = cfg!(all(target_arch = "x86_64", not(windows)));

/// Returns what an entry of the type map consists of: the number of values (two for a complex
/// number, otherwise one), the bytes of a value in memory and in external32, and whether its format
/// in memory is x87's.
fn values(basic: Named) -> (usize, usize, usize, bool) {
    let n = if basic.class() == Class::Complex { 2 } else { 1 };
    let extended =
        matches!(basic, Named::LongDouble | Named::CLongDoubleComplex | Named::CxxLongDoubleComplex);
    (n, basic.size() as usize / n, basic.external32_size() as usize / n, X87 && extended)
}

/// Converts the bytes of one value from memory to external32, where it has `size` bytes. Returns
/// none if the value does not fit.
fn outward(basic: Named, bytes: &[u8], size: usize, x87: bool) -> Option<Vec<u8>> {
    let bits = bytes.iter().rev().fold(0_u128, |bits, &byte| bits << 8 | u128::from(byte));
    let out = converted(basic, bits, (bytes.len(), x87), (size, false))?;
    Some(out.to_be_bytes()[16 - size..].to_vec())
}

/// Converts the bytes of one value from external32 to memory, where it has `size` bytes. Returns
/// none if the value does not fit.
fn inward(basic: Named, bytes: &[u8], size: usize, x87: bool) -> Option<Vec<u8>> {
    let bits = bytes.iter().fold(0_u128, |bits, &byte| bits << 8 | u128::from(byte));
    let out = converted(basic, bits, (bytes.len(), false), (size, x87))?;
    Some(out.to_le_bytes()[..size].to_vec())
}

/// Converts the bits of one value from a format of `from` bytes to one of `to` bytes. If the two
/// formats have the same size, and both or neither of them are x87's, the bits stay as they are.
/// Signed integers are converted by their sign and magnitude. Returns none if an integer does not
/// fit.
fn converted(
    basic: Named,
    bits: u128,
    (from, from_x87): (usize, bool),
    (to, to_x87): (usize, bool),
) -> Option<u128> {
    if from == to && from_x87 == to_x87 {
        return Some(bits);
    }
    let limit = |size: usize| if size == 16 { u128::MAX } else { (1 << (8 * size)) - 1 };
    match basic.class() {
        Class::Float | Class::Complex => Some(write(read(bits, format(from, from_x87)), format(to, to_x87))),
        Class::Integer => {
            let negative = bits >> (8 * from - 1) & 1 == 1;
            let magnitude = if negative { limit(from) - bits + 1 } else { bits };
            let most = limit(to) / 2 + u128::from(negative);
            let out = if negative { limit(to) - (magnitude - 1).min(limit(to)) } else { magnitude };
            (magnitude <= most).then_some(out)
        }
        _ => (bits <= limit(to)).then_some(bits),
    }
}

/// Rule that is stated in the error for a value that does not fit into the bytes that it has at the
/// destination (external32 or user memory).
pub const UNFIT: &str = "must fit the size that external32 has for it";

/// Position of one value in a packed external32 stream and in memory. A value is a basic element,
/// or one of the two parts of a complex number.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Basic type of the element that the value belongs to. An element of a complex type consists
    /// of two values.
    pub basic: Named,
    /// Index of the element among the basic elements of all instances.
    pub element: u128,
    /// Displacement of the element in bytes, relative to displacement 0 of the first instance.
    pub displacement: i64,
    /// Offset of the value from the start of its element in user memory, in bytes.
    pub within: i64,
    /// Offset of the first byte of the value in the packed stream.
    pub at: u64,
    /// Number of bytes of the value in user memory.
    pub user: usize,
    /// Number of bytes of the value in the packed stream.
    pub packed: usize,
    x87: bool,
}

impl Place {
    /// Converts the value to external32 if `direction` is a pack, and from external32 otherwise.
    /// `bytes` are its bytes at the source. Returns its bytes at the destination, or none if it
    /// does not fit.
    pub fn converted(&self, direction: Direction, bytes: &[u8]) -> Option<Vec<u8>> {
        match direction {
            Direction::Pack => outward(self.basic, bytes, self.packed, self.x87),
            Direction::Unpack => inward(self.basic, bytes, self.user, self.x87),
        }
    }
}

/// Returns, in packing order, the values that lie completely inside the bytes `range` of an
/// external32 stream of instances of `t`. One instance has `size` bytes in that stream.
pub fn places(t: &Datatype, size: u64, range: Range<u64>) -> impl Iterator<Item = Place> {
    let instance = range.start.checked_div(size).unwrap_or(0);
    let count = range.end.div_ceil(size.max(1));
    let mut map = TypeMap::instances(t, count);
    map.skip_bytes(instance * t.size() as u64);
    let first = u128::from(instance) * t.signature().length() as u128;
    let mut next = instance * size;
    let values = map.zip(first..).flat_map(move |((basic, displacement), element)| {
        let (n, user, packed, x87) = values(basic);
        let at = next;
        next += (n * packed) as u64;
        (0..n).map(move |k| {
            let (within, at) = ((k * user) as i64, at + (k * packed) as u64);
            Place { basic, element, displacement, within, at, user, packed, x87 }
        })
    });
    values
        .skip_while(move |place| place.at < range.start)
        .take_while(move |place| place.at + place.packed as u64 <= range.end)
}

/// Result of packing or unpacking. The error is the index, among the basic elements of all
/// instances, of the element with the first value that does not fit.
pub type Fit = Result<(), u64>;

/// Packs `count` instances to external32, and returns the bytes up to the first value that does not
/// fit. Displacement 0 of the first instance is `user[origin]`.
///
/// The bytes in `user` are read as little-endian, so the result is right only on little-endian
/// machines.
///
/// # Panics
/// If data lie outside `user`, which the caller has to make large enough for the true bounds.
pub fn pack(t: &Datatype, count: u64, user: &[u8], origin: usize) -> (Vec<u8>, Fit) {
    let mut packed = Vec::new();
    for (i, (basic, displacement)) in TypeMap::instances(t, count).enumerate() {
        let (n, size, external, x87) = values(basic);
        for k in 0..n {
            let at = (origin as i64 + displacement) as usize + k * size;
            match outward(basic, &user[at..at + size], external, x87) {
                Some(bytes) => packed.extend(bytes),
                None => return (packed, Err(i as u64)),
            }
        }
    }
    (packed, Ok(()))
}

/// Unpacks `count` instances from the external32 bytes `packed` into `user`, as far as the first
/// value that does not fit. As with [`pack`], the machine must be little-endian.
///
/// # Panics
/// If data lie outside `user`, or if `packed` is too short.
pub fn unpack(t: &Datatype, count: u64, packed: &[u8], user: &mut [u8], origin: usize) -> Fit {
    let mut next = 0;
    for (i, (basic, displacement)) in TypeMap::instances(t, count).enumerate() {
        let (n, size, external, x87) = values(basic);
        for k in 0..n {
            let at = (origin as i64 + displacement) as usize + k * size;
            match inward(basic, &packed[next..next + external], size, x87) {
                Some(bytes) => user[at..at + size].copy_from_slice(&bytes),
                None => return Err(i as u64),
            }
            next += external;
        }
    }
    Ok(())
}
