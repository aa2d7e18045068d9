//! Type signatures: the sequence of basic types of a type map, as a length and a hash that compose
//! without expansion.
//!
//! The hash of a sequence s1..sn is the polynomial sum of `symbol(si) * B^(n-i)` modulo the
//! Mersenne prime 2^127 - 1, where a symbol is the hash of the name of a basic type. `B^n` takes
//! one multiplication for each set bit of n after the first, so concatenation and n-fold repetition
//! cost O(log n): a type that would unfold to 2^40 elements costs no more than its constructors.
//! Equal sequences have equal signatures, however they were built.
//!
//! The base is a constant, so that every process computes the same hashes. Two different sequences
//! of n elements have equal hashes with a probability of at most n / 2^127, unless somebody
//! computed them to collide, which is possible. In this crate, a hash therefore decides what is
//! reported about signatures and whether a copy between two layouts is refused, but never which
//! bytes are moved. (The preload library also looks up by this hash the dense type that it passes
//! to the MPI library in place of a datatype.)
//!
//! Source: MPI 5.0 section 5.1 (type signature), Karp-Rabin fingerprints.

use std::fmt;

use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::named::{Class, Named};

const P: u128 = (1 << 127) - 1;
/// Base of the polynomial: a number of 126 bits without structure, the first 32 hexadecimal digits
/// of pi after the point.
const BASE: u128 = 0x243f_6a88_85a3_08d3_1319_8a2e_0370_7344;

const fn add(a: u128, b: u128) -> u128 {
    // Both numbers are below 2^127, so their sum fits in 128 bits.
    let sum = a + b;
    if sum >= P { sum - P } else { sum }
}

const fn multiply(a: u128, b: u128) -> u128 {
    const LOW: u128 = u64::MAX as u128;
    let (a1, a0) = (a >> 64, a & LOW);
    let (b1, b0) = (b >> 64, b & LOW);
    // Since a1 and b1 are below 2^63, the sum of the cross products fits in 128 bits.
    let cross = a1 * b0 + a0 * b1;
    let (low, carry) = (a0 * b0).overflowing_add(cross << 64);
    let high = a1 * b1 + (cross >> 64) + carry as u128;
    // Add the bits from 2^127 on to those below, since 2^127 is 1 modulo P. `high` is below 2^126.
    let folded = (low & P) + ((high << 1) | (low >> 127));
    let folded = (folded & P) + (folded >> 127);
    if folded >= P { folded - P } else { folded }
}

/// `BASE^(2^k)` for the number `k` of every bit that a length can have.
const POWERS: [u128; 63] = {
    let mut powers = [BASE; 63];
    let mut k = 1;
    while k < powers.len() {
        powers[k] = multiply(powers[k - 1], powers[k - 1]);
        k += 1;
    }
    powers
};

/// Returns `BASE^length`, by which a hash is multiplied when `length` elements follow.
fn power(length: i64) -> u128 {
    let mut result = 1;
    let mut left = length.max(0) as u64;
    while left > 0 {
        let square = POWERS[left.trailing_zeros() as usize];
        result = if result == 1 { square } else { multiply(result, square) };
        left &= left - 1;
    }
    result
}

/// Length and composable 128-bit hash of a sequence of basic types.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature {
    length: i64,
    /// Low and high half of the hash. A `u128` would make a node of a datatype 8 bytes larger
    /// because of its alignment. The hash is a residue modulo 2^127 - 1, so it leaves bit 127 free.
    /// This bit is set if an element is `MPI_BYTE` or `MPI_PACKED`.
    hash: [u64; 2],
}

/// Bit of the high half of the hash that is set if an element of the sequence is `MPI_BYTE` or
/// `MPI_PACKED`.
const UNTYPED: u64 = 1 << 63;

impl Signature {
    /// Signature of the empty sequence.
    pub const EMPTY: Signature = Signature { length: 0, hash: [0; 2] };

    fn new(length: i64, hash: u128) -> Signature {
        Signature { length, hash: [hash as u64, (hash >> 64) as u64] }
    }

    /// Returns the signature of a named type. The sequence has one element for a basic type, two
    /// for a pair and none for a marker.
    pub fn from_named(named: Named) -> Signature {
        if let [(part, 0)] = named.parts()
            && *part == named
        {
            let symbol = xxh3_128_with_seed(named.text_name().as_bytes(), 0x6464_7463) % P;
            let untyped = matches!(named.class(), Class::Byte | Class::Packed);
            return Signature::new(1, symbol).or_untyped(untyped);
        }
        named.parts().iter().fold(Signature::EMPTY, |s, &(part, _)| s.then(&Signature::from_named(part)))
    }

    /// Returns the number of basic elements.
    pub fn length(&self) -> i64 {
        self.length
    }

    /// Returns the hash of the sequence, which is below 2^127 and the same in every process, build
    /// and version.
    pub fn hash(&self) -> u128 {
        u128::from(self.hash[1] & !UNTYPED) << 64 | u128::from(self.hash[0])
    }

    /// Returns true if an element is `MPI_BYTE` or `MPI_PACKED`, whose contents a signature does
    /// not describe.
    pub fn has_untyped(&self) -> bool {
        self.hash[1] & UNTYPED != 0
    }

    fn or_untyped(mut self, untyped: bool) -> Signature {
        self.hash[1] |= if untyped { UNTYPED } else { 0 };
        self
    }

    /// Returns the signature of this sequence followed by `next`. The length saturates at
    /// `i64::MAX`, which no type can exceed, because every element has at least one byte and the
    /// sizes of types are checked.
    #[must_use]
    pub fn then(&self, next: &Signature) -> Signature {
        match self.length {
            0 => *next,
            _ => self.then_with_power(&WithPower::from_signature(*next)),
        }
    }

    /// Returns the signature of this sequence followed by another one, for which the power of the
    /// base has already been computed.
    pub(crate) fn then_with_power(&self, WithPower { signature: next, power }: &WithPower) -> Signature {
        let hash = add(multiply(self.hash(), *power), next.hash());
        Signature::new(self.length.saturating_add(next.length), hash)
            .or_untyped(self.has_untyped() || next.has_untyped())
    }

    /// Returns the signature of this sequence repeated `times` times, or of the empty sequence if
    /// `times <= 0`.
    #[must_use]
    pub fn repeat(&self, times: i64) -> Signature {
        match times {
            1 => return *self,
            _ if times <= 0 || self.length == 0 => return Signature::EMPTY,
            _ => {}
        }
        // Binary exponentiation. In step k, `doubled` is the hash of this sequence repeated 2^k
        // times, and `hash` is the hash of as many repetitions as the k lowest bits of `times` say.
        // `doubled_power` and `hash_power` are the powers of the base for the lengths of these
        // sequences.
        let (mut hash, mut hash_power) = (0, 1);
        let (mut doubled, mut doubled_power) = (self.hash(), power(self.length));
        let mut left = times;
        while left > 0 {
            if left & 1 == 1 {
                hash = add(multiply(doubled, hash_power), hash);
                hash_power = multiply(hash_power, doubled_power);
            }
            left >>= 1;
            if left > 0 {
                doubled = add(multiply(doubled, doubled_power), doubled);
                doubled_power = multiply(doubled_power, doubled_power);
            }
        }
        Signature::new(self.length.saturating_mul(times), hash).or_untyped(self.has_untyped())
    }
}

/// A signature and a power of the base of the hash. When the signature is appended to another one,
/// the hash of the other one is multiplied by this power.
#[derive(Clone, Copy)]
pub(crate) struct WithPower {
    signature: Signature,
    power: u128,
}

impl WithPower {
    pub(crate) fn from_signature(signature: Signature) -> WithPower {
        WithPower { signature, power: power(signature.length) }
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let untyped = if self.has_untyped() { ", untyped" } else { "" };
        write!(f, "Signature({} elements, {:032x}{untyped})", self.length, self.hash())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplication_against_shift_and_add() {
        let slow = |a: u128, b: u128| {
            (0..127).rev().fold(0, |r, i| add(add(r, r), if b >> i & 1 == 1 { a } else { 0 }))
        };
        let values =
            [0, 1, 2, P - 1, P - 2, BASE, 1 << 126, (1 << 64) - 1, 1 << 64, 0x1234_5678_9abc_def0 << 60];
        for a in values {
            for b in values {
                assert_eq!(multiply(a, b), slow(a, b), "{a:x} {b:x}");
            }
        }
    }

    #[test]
    fn composition() {
        let (i, d) = (Signature::from_named(Named::Int), Signature::from_named(Named::Double));
        let id = i.then(&d);
        assert_eq!(id.repeat(3), id.then(&id).then(&id));
        assert_eq!(i.then(&d.then(&i)), id.then(&i));
        assert_ne!(id, d.then(&i));
        assert_eq!(id.repeat(0), Signature::EMPTY);
        assert_eq!(id.repeat(-1), Signature::EMPTY);
        assert_eq!(i.repeat(1 << 40).length(), 1 << 40);
        assert_eq!(i.repeat(1 << 40), i.repeat(1 << 39).repeat(2));
        assert_eq!(Signature::from_named(Named::DoubleInt), d.then(&i));
        assert_eq!(Signature::from_named(Named::Lb), Signature::EMPTY);
        let byte = Signature::from_named(Named::Byte);
        assert!(
            byte.has_untyped() && Signature::from_named(Named::Packed).has_untyped() && !id.has_untyped()
        );
        assert!(id.then(&byte).repeat(9).then(&i).has_untyped() && i.then(&byte).has_untyped());
        assert!(!byte.repeat(0).has_untyped() && !byte.repeat(0).then(&id).has_untyped());
        for &n in Named::ALL {
            for &m in Named::ALL {
                if n < m && n.parts().len() == 1 {
                    assert_ne!(Signature::from_named(n), Signature::from_named(m), "{n} {m}");
                }
            }
        }
    }
}
