//! Words of a permutation. A permutation moves 64 packed bytes as words of 4 or 8 bytes, and this
//! module describes where these words lie in user memory.

/// Places in user memory of the words that make up 64 packed bytes. All words lie within 128 bytes
/// of user memory, and no two words are at the same place.
///
/// Places are counted in words from the lowest word, which has place 0. The lowest 64 bytes of the
/// span begin with a word, and the highest 64 bytes end with a word. Code that reads these two
/// areas therefore reads nothing before the lowest word or after the highest word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Words {
    unit: u8,
    places: [u8; 16],
}

impl Words {
    /// Number of packed bytes that the words make up.
    pub const BYTES: u32 = 64;
    /// Maximum number of user bytes from the start of the lowest word to the end of the highest.
    pub const MAX_SPAN: u32 = 2 * Words::BYTES;

    /// Makes the words of `unit` bytes, 4 or 8, from their user offsets in packed order. The
    /// offsets may be relative to any place. Also returns the smallest offset.
    ///
    /// The result is `None` if the words do not make up 64 bytes, if their distances are not
    /// multiples of `unit`, if they span more than [`Words::MAX_SPAN`] bytes, or if two words are
    /// at the same place.
    pub fn new(unit: u32, offsets: &[i64]) -> Option<(i64, Words)> {
        if !matches!(unit, 4 | 8) || offsets.len() != (Words::BYTES / unit) as usize {
            return None;
        }
        let lowest = *offsets.iter().min()?;
        let mut places = [0; 16];
        let mut taken = 0u32;
        for (place, offset) in places.iter_mut().zip(offsets) {
            let from = u32::try_from(offset.checked_sub(lowest)?).ok()?;
            let word = from / unit;
            if from % unit != 0 || from + unit > Words::MAX_SPAN || taken & 1 << word != 0 {
                return None;
            }
            taken |= 1 << word;
            *place = word as u8;
        }
        Some((lowest, Words { unit: unit as u8, places }))
    }

    /// Returns the number of bytes of a word: 4 or 8.
    pub fn unit(&self) -> u32 {
        self.unit.into()
    }

    /// Returns the place of every word in packed order, counted in words from the lowest.
    pub fn places(&self) -> &[u8] {
        &self.places[..(Words::BYTES / self.unit()) as usize]
    }

    /// Returns the number of user bytes from the start of the lowest word to the end of the
    /// highest: 64 to 128.
    pub fn span(&self) -> u32 {
        (u32::from(self.places().iter().copied().max().unwrap_or(0)) + 1) * self.unit()
    }
}

#[cfg(test)]
mod tests {
    use super::Words;

    #[test]
    fn words_lie_where_they_may_be_moved() {
        let every = |unit: u32, by: i64| -> Vec<i64> { (0..i64::from(64 / unit)).map(|i| i * by).collect() };
        let (lowest, words) = Words::new(8, &every(8, 16)).unwrap();
        assert_eq!((lowest, words.unit(), words.span()), (0, 8, 120));
        assert_eq!(words.places(), [0, 2, 4, 6, 8, 10, 12, 14]);
        // These offsets descend, so the last word is the lowest.
        let (lowest, words) = Words::new(4, &every(4, -8)).unwrap();
        assert_eq!((lowest, words.unit(), words.span()), (-120, 4, 124));
        assert_eq!(words.places()[..3], [30, 28, 26]);
        assert_eq!(Words::new(8, &every(8, 8)).map(|w| w.1.span()), Some(64));
        assert_eq!(Words::new(8, &[8, 0, 24, 32, 40, 48, 120, 56]).map(|w| w.1.span()), Some(128));
        for (unit, offsets) in [
            (8, every(8, 17)),
            (8, every(8, 24)),
            (8, every(8, 4)),
            (8, every(4, 8)),
            (4, every(8, 8)),
            (2, every(2, 2)),
            (16, every(16, 16)),
            (8, vec![0, 8, 16, 24, 32, 40, 48, 128 - 7]),
            (8, vec![0, 8, 16, 24, 32, 40, 48, 128]),
            (8, vec![0, 8, 16, 24, 32, 40, 48, 0]),
            (8, vec![i64::MIN, 8, 16, 24, 32, 40, 48, i64::MAX]),
        ] {
            assert_eq!(Words::new(unit, &offsets), None, "{unit} {offsets:?}");
        }
    }
}
