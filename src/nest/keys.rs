//! A hash for keys of a few words, such as bodies, addresses, nodes and hashes. It takes one
//! multiplication per word. General hash functions have a set-up cost that pays off only for long
//! input.
//!
//! The hash is meant for maps that live within one pass over one datatype and are not visible
//! outside. It spreads ordinary keys well, but offers no protection against keys that are chosen to
//! collide.

use std::hash::{BuildHasherDefault, Hasher};

/// Hasher factory for the maps of a pass.
pub(crate) type BuildKeyHasher = BuildHasherDefault<KeyHasher>;

/// An odd multiplier whose bits have no regular pattern: the digits of the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hash state for a key of a few words.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    #[inline(always)]
    fn write_u64(&mut self, word: u64) {
        // Combine both halves of the product, because hash maps use both the lowest and the highest
        // bits.
        let product = u128::from(self.0.rotate_left(32) ^ word) * u128::from(FACTOR);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    #[inline(always)]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    #[inline(always)]
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    #[inline(always)]
    fn write_u128(&mut self, words: u128) {
        self.write_u64(words as u64);
        self.write_u64((words >> 64) as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use super::BuildKeyHasher;
    use crate::nest::Body;

    /// Tests that the hashes of different bodies, and of addresses at regular distances, differ in
    /// the bits that hash maps use.
    #[test]
    fn keys_spread() {
        let spread = |hashes: &[u64]| {
            let n = hashes.len();
            let low: HashSet<u64> = hashes.iter().map(|hash| hash % n.next_power_of_two() as u64).collect();
            let high: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            assert!(low.len() > n / 2 && high.len() > 100, "{} and {} of {n}", low.len(), high.len());
        };
        let of = BuildKeyHasher::default();
        for len in [1, 2, 3, 16] {
            let bodies: Vec<u64> = (0..4096).map(|i| of.hash_one(Body { start: i * len, len })).collect();
            spread(&bodies);
        }
        for step in [16_usize, 64, 208, 4096] {
            spread(&(0..4096).map(|i| of.hash_one(0x5555_5555_0010 + i * step)).collect::<Vec<u64>>());
        }
    }
}
