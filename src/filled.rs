//! Arrays that are lent to be filled, whose memory need not be initialized, as that of a C program is not.

#![allow(unsafe_code)] // Looks at entries as values once values were written to them.

use std::mem::MaybeUninit;

/// An array that is filled from its start, as a vector of fixed capacity. Entries beyond the capacity are dropped.
pub struct Filled<'a, T> {
    places: &'a mut [MaybeUninit<T>],
    /// The first `len` places have values.
    len: usize,
}

impl<'a, T: Copy> Filled<'a, T> {
    /// Returns an empty one over memory.
    pub fn new(places: &'a mut [MaybeUninit<T>]) -> Filled<'a, T> {
        Filled { places, len: 0 }
    }

    /// Returns an empty one over entries with values, which stay where nothing is written.
    pub fn over(entries: &'a mut [T]) -> Filled<'a, T> {
        let (at, n) = (entries.as_mut_ptr().cast(), entries.len());
        // SAFETY: a place has the layout of its entry. Only this module writes to the places, and it
        // writes values, so the entries have values when the borrow ends.
        Filled::new(unsafe { std::slice::from_raw_parts_mut(at, n) })
    }

    /// Returns the same with room for `n` entries at most.
    pub fn limited(self, n: usize) -> Filled<'a, T> {
        let n = n.clamp(self.len, self.places.len());
        Filled { places: &mut self.places[..n], len: self.len }
    }

    /// Returns how many entries there are.
    #[inline]
    pub fn count(&self) -> usize {
        self.len
    }

    /// Returns how many more entries there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        self.places.len() - self.len
    }

    /// Returns the entries.
    #[inline]
    pub fn entries(&mut self) -> &mut [T] {
        // SAFETY: the first `len` places have values.
        unsafe { self.places[..self.len].assume_init_mut() }
    }

    /// Returns the entries for as long as the memory is lent.
    #[inline]
    pub fn into_entries(self) -> &'a mut [T] {
        // SAFETY: the first `len` places have values.
        unsafe { self.places[..self.len].assume_init_mut() }
    }

    /// Appends an entry.
    #[inline]
    pub fn push(&mut self, value: T) {
        if let Some(place) = self.places.get_mut(self.len) {
            place.write(value);
            self.len += 1;
        }
    }

    /// Appends the first `n` values, or all if there are fewer.
    #[inline]
    pub fn extend(&mut self, n: usize, values: impl Iterator<Item = T>) {
        let mut written = 0;
        let end = self.len + n.min(self.room());
        for (place, value) in self.places[self.len..end].iter_mut().zip(values) {
            place.write(value);
            written += 1;
        }
        self.len += written;
    }

    /// Appends `n` entries, of which `next` makes `N` at a time.
    #[inline]
    pub fn extend_by_groups<const N: usize>(&mut self, n: usize, mut next: impl FnMut() -> [T; N]) {
        let n = n.min(self.room());
        let (groups, rest) = self.places[self.len..self.len + n].as_chunks_mut::<N>();
        groups.iter_mut().for_each(|places| *places = next().map(MaybeUninit::new));
        if !rest.is_empty() {
            for (place, value) in rest.iter_mut().zip(next()) {
                place.write(value);
            }
        }
        self.len += n;
    }

    /// Appends `n` entries, each made of the entry `distance` places before it.
    ///
    /// # Panics
    /// If there are fewer entries than `distance`, or `distance` is 0.
    #[inline]
    pub fn extend_from_before(&mut self, distance: usize, n: usize, next: impl Fn(T) -> T) {
        let n = n.min(self.room());
        assert!(distance > 0, "an entry is not made of itself");
        let list = &mut self.places[self.len - distance..self.len + n];
        for k in distance..list.len() {
            // SAFETY: one of the last `distance` entries, or a place that this loop has written.
            let before = unsafe { list[k - distance].assume_init() };
            list[k].write(next(before));
        }
        self.len += n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_are_the_entries() {
        let mut places = [MaybeUninit::uninit(); 12];
        let mut filled = Filled::new(&mut places);
        assert!(filled.entries().is_empty());
        filled.push(1);
        filled.extend(9, [2, 3].into_iter());
        filled.entries()[1] += 5;
        let mut group = [10, 20];
        filled.extend_by_groups(5, || {
            group = group.map(|x| x + 1);
            group
        });
        filled.extend_from_before(3, 3, |x| x * 2);
        assert_eq!((filled.count(), filled.room()), (11, 1));
        let expected = [1, 7, 3, 11, 21, 12, 22, 13, 24, 44, 26];
        assert_eq!(filled.entries(), expected);
        assert_eq!(filled.into_entries(), expected);
    }

    #[test]
    fn there_is_no_room_past_the_end() {
        let mut entries = [7; 4];
        let mut filled = Filled::over(&mut entries);
        filled.extend(3, 1..);
        filled.extend_from_before(1, 9, |x| x + 1);
        assert_eq!((filled.count(), filled.room()), (4, 0));
        filled.push(9);
        filled.extend(9, 0..9);
        filled.extend_by_groups(3, || [0]);
        filled.extend_from_before(4, 1, |x| x);
        assert_eq!(entries, [1, 2, 3, 4]);
        let mut filled = Filled::over(&mut entries).limited(1);
        filled.push(5);
        filled.push(6);
        assert_eq!((filled.limited(0).room(), entries), (0, [5, 2, 3, 4]));
        Filled::<u8>::new(&mut []).push(1);
    }
}
