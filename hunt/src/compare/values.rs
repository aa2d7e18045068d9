//! Bytes to move: patterns for calls that move bytes, values for those that look at them, and the bytes inside a value that mean nothing.

use std::cell::Cell;

use ddtc::internal::datatype::{Class, Named};

use crate::subject::Map;

/// Byte `i` of the pattern of `seed`: 64 bits of the seed and the place, mixed.
pub(crate) fn pattern(seed: u64, i: usize) -> u8 {
    let mixed = (i as u64 / 8 + 1 + (seed << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)) >> (i % 8 * 8)) as u8
}

/// Seeds of what is packed, of what a stream holds, and of what memory holds before.
pub(crate) const USER: u64 = 1;
pub(crate) const STREAM: u64 = 2;
pub(crate) const BEFORE: u64 = 3;

/// A byte of all bits of a number (the finalizer of splitmix64).
fn mixed(n: u64) -> u8 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (n ^ (n >> 31)) as u8
}

std::thread_local! {
    /// Added to the seeds of patterns and values.
    static SALT: Cell<u64> = const { Cell::new(0) };
}

/// Runs with other patterns and values than those of salt 0.
pub(crate) fn salted(salt: u64, run: impl FnOnce()) {
    SALT.set(salt);
    run();
    SALT.set(0);
}

pub(crate) fn patterned(seed: u64, bytes: &mut [u8]) {
    bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = pattern(seed, i));
    let salt = SALT.get();
    if salt > 0 {
        // Bits that have nothing to do with those of another salt or place: a difference of two bytes is never the same by chance.
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte ^= mixed((salt << 56) ^ (seed << 48) ^ i as u64);
        }
    }
}

/// Says whether a basic type has bytes that belong to no value: x87's long double has ten of its sixteen.
pub(crate) fn has_padding(named: Named) -> bool {
    cfg!(target_arch = "x86_64")
        && matches!(named, Named::LongDouble | Named::CLongDoubleComplex | Named::CxxLongDoubleComplex)
}

/// Says whether byte `i` of a value of `named` belongs to the value.
pub(crate) fn is_value(named: Named, i: usize) -> bool {
    !has_padding(named) || i % 16 < 10
}

/// Which bytes of a stream belong to values.
pub(crate) fn stream_values(map: &Map) -> Vec<bool> {
    map.entries.iter().flat_map(|&(_, len, named)| (0..len).map(move |i| is_value(named, i))).collect()
}

/// Which bytes of the memory, from `map.low` on, are gaps or belong to values.
pub(crate) fn memory_values(map: &Map) -> Vec<bool> {
    let mut matters = vec![true; map.mapped.len()];
    for &(at, len, named) in map.entries.iter().filter(|e| has_padding(e.2)) {
        let at = (at - map.low) as usize;
        (0..len).for_each(|i| matters[at + i] = is_value(named, i));
    }
    matters
}

/// Returns the bytes of a value of `named`, the `i`th: one that every representation holds exactly.
pub(crate) fn value(named: Named, i: usize) -> Vec<u8> {
    let i = i + 37 * SALT.get() as usize;
    let size = named.size() as usize;
    let small = (i % 101 + 1) as u8;
    let mut bytes = vec![0; size];
    if size == 0 {
        // A marker has no value.
        return bytes;
    }
    match named.class() {
        Class::Float => bytes = real(size, has_padding(named), i),
        Class::Complex => {
            bytes = real(size / 2, has_padding(named), i);
            bytes.extend(real(size / 2, has_padding(named), i + 1));
        }
        Class::Logical => bytes[0] = (i % 2) as u8,
        // Bytes of characters and of none go as they are.
        Class::Character if size > 1 => bytes[0] = small,
        Class::Byte | Class::Packed | Class::Character => bytes.fill(small),
        _ => bytes[0] = small,
    }
    bytes
}

/// Sixteen or one and a half, with either sign: sign, exponent and fraction of IEEE's formats, little-endian.
fn real(size: usize, x87: bool, i: usize) -> Vec<u8> {
    let (negative, large) = (i % 2 == 1, i.is_multiple_of(3));
    let exponent: i32 = if large { 4 } else { 0 };
    // Bits of exponent and fraction.
    let (width, fraction) = match size {
        2 => (5, 10),
        4 => (8, 23),
        8 => (11, 52),
        _ => (15, 112),
    };
    let biased = (exponent + (1 << (width - 1)) - 1) as u128;
    let bits: u128 = if x87 {
        let integer = if large { 1u128 << 63 } else { 3u128 << 62 };
        u128::from(negative) << 79 | biased << 64 | integer
    } else {
        let half = if large { 0 } else { 1u128 << (fraction - 1) };
        u128::from(negative) << (width + fraction) | biased << fraction | half
    };
    bits.to_le_bytes()[..size].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_they_say() {
        assert_eq!(value(Named::Double, 1), (-1.5f64).to_le_bytes());
        assert_eq!(value(Named::Float, 0), 16f32.to_le_bytes());
        assert_eq!(value(Named::Int, 4), 5i32.to_le_bytes());
        for &named in Named::ALL {
            assert_eq!(value(named, 7).len() as i64, named.size(), "{named}");
        }
    }
}
