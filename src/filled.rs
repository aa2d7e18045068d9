//! Arrays that a caller lends to be filled. Their memory need not be initialized, because arrays
//! that a C program passes are not.

#![allow(unsafe_code)] // Entries are read as values after values were written to them.

use std::mem::MaybeUninit;

/// An array that is filled from its start, like a vector of fixed capacity. Entries beyond the
/// capacity are dropped.
pub struct Filled<'a, T> {
    places: &'a mut [MaybeUninit<T>],
    /// Number of entries. The first `len` places are initialized.
    len: usize,
}

impl<'a, T: Copy> Filled<'a, T> {
    /// Returns an array without entries, whose capacity is the length of `places`.
    pub fn new(places: &'a mut [MaybeUninit<T>]) -> Filled<'a, T> {
        Filled { places, len: 0 }
    }

    /// Returns an array without entries over memory that is initialized. A place that is never
    /// written keeps its value.
    pub fn over(entries: &'a mut [T]) -> Filled<'a, T> {
        let (at, n) = (entries.as_mut_ptr().cast(), entries.len());
        // SAFETY: a `MaybeUninit<T>` has the layout of a `T`. Only this module writes to the
        // places, and it writes only values, so all entries are initialized when the borrow ends.
        Filled::new(unsafe { std::slice::from_raw_parts_mut(at, n) })
    }

    /// Returns the same array with its capacity limited to `n` entries. Entries that were already
    /// written are kept, even if there are more than `n`.
    pub fn limited(self, n: usize) -> Filled<'a, T> {
        let n = n.clamp(self.len, self.places.len());
        Filled { places: &mut self.places[..n], len: self.len }
    }

    /// Returns the number of entries written so far.
    #[inline]
    pub fn count(&self) -> usize {
        self.len
    }

    /// Returns how many more entries fit into the array.
    #[inline]
    pub fn room(&self) -> usize {
        self.places.len() - self.len
    }

    /// Returns the entries written so far.
    #[inline]
    pub fn entries(&mut self) -> &mut [T] {
        // SAFETY: the first `len` places are initialized.
        unsafe { self.places[..self.len].assume_init_mut() }
    }

    /// Converts the array into the entries written so far, which stay usable for as long as their
    /// memory is borrowed.
    #[inline]
    pub fn into_entries(self) -> &'a mut [T] {
        // SAFETY: the first `len` places are initialized.
        unsafe { self.places[..self.len].assume_init_mut() }
    }

    /// Appends an entry, or drops it if the array is full.
    #[inline]
    pub fn push(&mut self, value: T) {
        if let Some(place) = self.places.get_mut(self.len) {
            place.write(value);
            self.len += 1;
        }
    }

    /// Appends the first `n` values, or fewer if `values` has fewer or the array becomes full.
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

    /// Appends `n` entries, or as many as fit. Each call of `next` returns the next `N` entries.
    /// Those of the last call that are not needed are dropped.
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

    /// Appends `n` entries, or as many as fit. Each of them is what `next` returns for the entry
    /// `distance` places before it.
    ///
    /// # Panics
    /// Panics if the array has fewer than `distance` entries, or if `distance` is 0.
    #[inline]
    pub fn extend_from_before(&mut self, distance: usize, n: usize, next: impl Fn(T) -> T) {
        let n = n.min(self.room());
        assert!(distance > 0, "an entry is not made of itself");
        let list = &mut self.places[self.len - distance..self.len + n];
        for k in distance..list.len() {
            // SAFETY: place `k - distance` is either one of the `distance` entries before the loop,
            // which are initialized, or a place that this loop has already written.
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
