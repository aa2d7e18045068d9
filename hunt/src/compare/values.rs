//! Test data: patterns for calls that only move bytes, and values for calls that interpret the
//! bytes. Also identifies the padding bytes inside values.

use std::cell::Cell;

use ddtc::internal::datatype::{Class, Named};

use crate::subject::Map;

/// Returns byte `i` of the pattern of `seed`. Each group of eight consecutive bytes comes from one
/// 64-bit number, which is computed from the seed and the position of the group.
pub(crate) fn pattern(seed: u64, i: usize) -> u8 {
    let mixed = (i as u64 / 8 + 1 + (seed << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)) >> (i % 8 * 8)) as u8
}

/// Seeds of three patterns: `USER` for user memory that is packed or sent, `STREAM` for streams,
/// and `BEFORE` for memory before a call writes to it.
pub(crate) const USER: u64 = 1;
pub(crate) const STREAM: u64 = 2;
pub(crate) const BEFORE: u64 = 3;

/// Returns a byte that depends on all bits of a number (the finalizer of splitmix64).
fn mixed(n: u64) -> u8 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (n ^ (n >> 31)) as u8
}

std::thread_local! {
    /// Number that selects one of several sets of test patterns and values, so that a check can be
    /// repeated with other bytes. It is 0 outside of [`salted`].
    static SALT: Cell<u64> = const { Cell::new(0) };
}

/// Runs a function with other patterns and values than usual. Each number `salt` above 0 selects a
/// different set of them.
pub(crate) fn salted(salt: u64, run: impl FnOnce()) {
    SALT.set(salt);
    run();
    SALT.set(0);
}

pub(crate) fn patterned(seed: u64, bytes: &mut [u8]) {
    bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = pattern(seed, i));
    let salt = SALT.get();
    if salt > 0 {
        // The bits for one salt and position are independent of those for all others. So if a byte
        // differs from the expected byte by the same bits in every run of a check, this cannot be
        // chance.
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte ^= mixed((salt << 56) ^ (seed << 48) ^ i as u64);
        }
    }
}

/// Returns true if a basic type has padding bytes, which belong to no value. On x86-64, a long
/// double has 16 bytes, but its value takes only 10 of them.
pub(crate) fn has_padding(named: Named) -> bool {
    cfg!(target_arch = "x86_64")
        && matches!(named, Named::LongDouble | Named::CLongDoubleComplex | Named::CxxLongDoubleComplex)
}

/// Returns true if byte `i` of a value of `named` belongs to the value.
pub(crate) fn is_value(named: Named, i: usize) -> bool {
    !has_padding(named) || i % 16 < 10
}

/// Returns, for each byte of the packed stream of `map`, whether it belongs to a value. The other
/// bytes are padding inside values.
pub(crate) fn stream_values(map: &Map) -> Vec<bool> {
    map.entries.iter().flat_map(|&(_, len, named)| (0..len).map(move |i| is_value(named, i))).collect()
}

/// Returns, for each byte of the memory from `map.low` on, whether it is in a gap or belongs to a
/// value. The other bytes are padding inside values.
pub(crate) fn memory_values(map: &Map) -> Vec<bool> {
    let mut matters = vec![true; map.mapped.len()];
    for &(at, len, named) in map.entries.iter().filter(|e| has_padding(e.2)) {
        let at = (at - map.low) as usize;
        (0..len).for_each(|i| matters[at + i] = is_value(named, i));
    }
    matters
}

/// Returns the bytes of the `i`th value of type `named`. Every representation of the type holds
/// this value exactly.
pub(crate) fn value(named: Named, i: usize) -> Vec<u8> {
    let i = i + 37 * SALT.get() as usize;
    let size = named.size() as usize;
    let small = (i % 101 + 1) as u8;
    let mut bytes = vec![0; size];
    if size == 0 {
        // A marker has size 0 and no value.
        return bytes;
    }
    match named.class() {
        Class::Float => bytes = real(size, has_padding(named), i),
        Class::Complex => {
            bytes = real(size / 2, has_padding(named), i);
            bytes.extend(real(size / 2, has_padding(named), i + 1));
        }
        Class::Logical => bytes[0] = (i % 2) as u8,
        // Characters of one byte and untyped bytes are moved unchanged, so any byte is a valid
        // value.
        Class::Character if size > 1 => bytes[0] = small,
        Class::Byte | Class::Packed | Class::Character => bytes.fill(small),
        _ => bytes[0] = small,
    }
    bytes
}

/// Returns one of the numbers 16.0, 1.5, -16.0 and -1.5, which `i` selects, in little-endian order
/// and `size` bytes. The format is x87's extended format if `x87` is true, else an IEEE format.
fn real(size: usize, x87: bool, i: usize) -> Vec<u8> {
    let (negative, large) = (i % 2 == 1, i.is_multiple_of(3));
    let exponent: i32 = if large { 4 } else { 0 };
    // Widths of exponent and fraction, in bits.
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
