//! A stream of choices, which is the only source of randomness of the generators.
//!
//! A generator asks for small numbers. The stream takes them from the bytes that a fuzzer or
//! proptest supplies, or from a seed. When the bytes are used up, every further choice is the
//! lowest one, so every generator ends, and short inputs give small values. The same bytes always
//! give the same value.

/// A stream of choices.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    source: Source<'a>,
}

#[derive(Clone, Debug)]
enum Source<'a> {
    Bytes(&'a [u8]),
    /// State of the generator SplitMix64.
    Seed(u64),
}

impl<'a> Choices<'a> {
    /// Returns the stream of the choices that `bytes` contain. When the bytes are used up, every
    /// further choice is the lowest one.
    pub fn from_bytes(bytes: &'a [u8]) -> Choices<'a> {
        Choices { source: Source::Bytes(bytes) }
    }

    /// Returns an endless stream of choices from a seed, by SplitMix64 (Steele, Lea, Flood 2014).
    pub fn from_seed(seed: u64) -> Choices<'static> {
        Choices { source: Source::Seed(seed) }
    }

    /// Returns whether a stream of bytes is used up. A stream from a seed never is.
    pub fn exhausted(&self) -> bool {
        matches!(self.source, Source::Bytes([]))
    }

    /// Returns the next byte.
    pub fn byte(&mut self) -> u8 {
        match &mut self.source {
            Source::Bytes(bytes) => match bytes.split_first() {
                Some((&first, rest)) => {
                    *bytes = rest;
                    first
                }
                None => 0,
            },
            Source::Seed(_) => self.word() as u8,
        }
    }

    /// Returns the next 64 bits.
    pub fn word(&mut self) -> u64 {
        match &mut self.source {
            Source::Bytes(_) => {
                let mut word = [0; 8];
                word.fill_with(|| self.byte());
                u64::from_le_bytes(word)
            }
            Source::Seed(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = *state;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                z ^ (z >> 31)
            }
        }
    }

    /// Returns a number below `n`, or 0 if `n` is 0. From a stream of bytes it takes as few bytes
    /// as can represent `n - 1`.
    pub fn below(&mut self, n: u64) -> u64 {
        let Some(top) = n.checked_sub(1) else { return 0 };
        let bytes = (64 - top.leading_zeros()).div_ceil(8);
        let value = match self.source {
            Source::Seed(_) => self.word(),
            Source::Bytes(_) => (0..bytes).fold(0, |v, _| v << 8 | u64::from(self.byte())),
        };
        value % n
    }

    /// Returns a number of the interval `[lo, hi]`. Returns `lo` if the interval is empty, or if
    /// `hi - lo` does not fit in 63 bits or is the largest number that does.
    pub fn within(&mut self, lo: i64, hi: i64) -> i64 {
        let width = hi.checked_sub(lo).filter(|w| *w > 0 && *w < i64::MAX).unwrap_or(0);
        lo + self.below(width as u64 + 1) as i64
    }

    /// Returns true with probability `n / 256`.
    pub fn chance(&mut self, n: u8) -> bool {
        // A stream of bytes that is used up gives the byte 0, for which the result is false.
        self.byte() > 255 - n
    }

    /// Returns one of `items`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dry_streams_answer_with_the_lowest_choice() {
        let mut c = Choices::from_bytes(&[255, 7]);
        assert!(!c.exhausted());
        assert_eq!(c.below(256), 255);
        assert_eq!(c.below(5), 2);
        assert!(c.exhausted());
        assert_eq!((c.below(9), c.within(-3, 8), c.chance(255), c.pick(&[4, 5])), (0, -3, false, 4));
        assert_eq!((c.below(0), c.within(3, 2), c.within(i64::MIN, i64::MAX)), (0, 3, i64::MIN));
    }

    #[test]
    fn seeds_repeat_and_spread() {
        let take = |seed| {
            let mut c = Choices::from_seed(seed);
            (0..100).map(|_| c.below(10)).collect::<Vec<_>>()
        };
        assert_eq!(take(1), take(1));
        assert_ne!(take(1), take(2));
        assert!((0..10).all(|n| take(3).contains(&n)));
    }
}
