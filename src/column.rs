//! Columns: immutable integer tables that take 4 bytes per entry if every value fits into them, and
//! 8 otherwise.
//!
//! The displacement tables of nests (ddtc's intermediate representation of what a datatype moves),
//! the rows of their blocks, and the tables that compiled code reads at run time are all columns,
//! so a table is stored once and shared by reference. [`Column::build`] allocates the entries by
//! `try_with_capacity`, so that a type too large for the available memory causes an error instead
//! of an abort. The conversions from a `Vec` or an iterator abort if memory is short.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, ErrorClass, Result};

/// Returns an empty vector with a capacity of `n` entries. `stage` is the operation that an error
/// message names.
///
/// # Errors
/// Returns an error of class `NoMem` if the memory cannot be allocated.
pub(crate) fn try_with_capacity<T>(stage: &'static str, n: usize) -> Result<Vec<T>> {
    let mut v = Vec::new();
    try_reserve(stage, &mut v, n)?;
    Ok(v)
}

/// Reserves capacity for `n` more entries, growing as `Vec` does. The errors are those of
/// [`try_with_capacity`].
pub(crate) fn try_reserve<T>(stage: &'static str, v: &mut Vec<T>, n: usize) -> Result<()> {
    // A vector that has no memory yet gets exactly the requested capacity.
    let asked = if v.capacity() == 0 { v.try_reserve_exact(n) } else { v.try_reserve(n) };
    asked.map_err(|_| {
        let rule = "there must be memory for what the datatype's arguments describe";
        Error::new(ErrorClass::NoMem, stage, "entries", v.len().saturating_add(n), rule)
    })
}

/// An immutable table of signed integers. Cloning shares the entries.
///
/// The width is canonical: a column is `I32` exactly if every value fits in 32 bits, so equal
/// tables are equal values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// Every value fits in 32 bits.
    I32(Arc<Entries<i32>>),
    /// At least one value does not fit in 32 bits.
    I64(Arc<Entries<i64>>),
}

/// Entries of a column, with their hash once it has been computed. The hash is stored because a
/// long column is part of a hashed key more than once.
pub struct Entries<T> {
    values: Box<[T]>,
    /// 0 until the hash is computed. Threads that compute it at the same time find the same value.
    hash: AtomicU64,
}

impl<T> Deref for Entries<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<T> From<Vec<T>> for Entries<T> {
    fn from(values: Vec<T>) -> Self {
        Entries { values: values.into_boxed_slice(), hash: AtomicU64::new(0) }
    }
}

impl<T> FromIterator<T> for Entries<T> {
    fn from_iter<I: IntoIterator<Item = T>>(iter: I) -> Self {
        Entries::from(iter.into_iter().collect::<Vec<T>>())
    }
}

impl<T: PartialEq> PartialEq for Entries<T> {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl<T: Eq> Eq for Entries<T> {}

impl<T: fmt::Debug> fmt::Debug for Entries<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values.fmt(f)
    }
}

impl<T: bytemuck::NoUninit> Entries<T> {
    /// Returns the hash of the entries, which is never 0. The first call computes it.
    fn hashed(&self) -> u64 {
        let known = self.hash.load(Relaxed);
        if known != 0 {
            return known;
        }
        let hash = xxh3_64(bytemuck::cast_slice(&self.values)).max(1);
        self.hash.store(hash, Relaxed);
        hash
    }
}

impl Hash for Column {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(match self {
            Column::I32(v) => v.hashed(),
            Column::I64(v) => v.hashed(),
        });
    }
}

impl Column {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        match self {
            Column::I32(v) => v.len(),
            Column::I64(v) => v.len(),
        }
    }

    /// Returns true if the column has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of leading entries of an ascending column for which `before` returns
    /// true.
    pub fn partition_point(&self, before: impl Fn(i64) -> bool) -> usize {
        match self {
            Column::I32(entries) => entries.partition_point(|&entry| before(entry.into())),
            Column::I64(entries) => entries.partition_point(|&entry| before(entry)),
        }
    }

    /// Returns entry `i`.
    ///
    /// # Panics
    /// Panics if `i >= len()`.
    pub fn get(&self, i: usize) -> i64 {
        match self {
            Column::I32(v) => i64::from(v[i]),
            Column::I64(v) => v[i],
        }
    }

    /// Compares the entries in the range `these` with those in the range `other`. Returns true if
    /// both ranges have the same length and each entry in `other` is larger by `by` than the
    /// corresponding entry in `these`. In a column of 64-bit entries, this is tested modulo 2^64.
    ///
    /// # Panics
    /// Panics if the ranges have the same length and one of them ends after the last entry of the
    /// column.
    pub fn repeats(&self, these: Range<usize>, other: Range<usize>, by: i64) -> bool {
        // The loops have no early exit, because an exit would prevent their vectorization.
        fn wide<T: Copy + Into<i64>>(these: &[T], other: &[T], by: i64) -> bool {
            let pairs = these.iter().zip(other);
            pairs.fold(0, |all, (&a, &b)| all | b.into().wrapping_sub(a.into()) ^ by) == 0
        }
        // Computes the differences in 32 bits. `b - a` overflows exactly if `a` and `b` have
        // different signs and the wrapped difference has the sign of `a`; then `signs` becomes
        // negative.
        fn narrow(these: &[i32], other: &[i32], by: i32) -> bool {
            let pairs = these.iter().zip(other);
            let (all, signs) = pairs.fold((0, 0), |(all, signs), (&a, &b)| {
                let difference = b.wrapping_sub(a);
                (all | difference ^ by, signs | (a ^ b) & (b ^ difference))
            });
            all == 0 && signs >= 0
        }
        these.len() == other.len()
            && match (self, i32::try_from(by)) {
                (Column::I32(v), Ok(by)) => narrow(&v[these], &v[other], by),
                (Column::I32(v), Err(_)) => wide(&v[these], &v[other], by),
                (Column::I64(v), _) => wide(&v[these], &v[other], by),
            }
    }

    /// Returns an iterator over the entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = i64> + DoubleEndedIterator + Clone + '_ {
        (0..self.len()).map(|i| self.get(i))
    }

    /// Returns the size of all entries in bytes.
    pub fn bytes(&self) -> usize {
        self.len() * self.width()
    }

    /// Returns the size of one entry in bytes: 4 or 8.
    pub fn width(&self) -> usize {
        match self {
            Column::I32(_) => 4,
            Column::I64(_) => 8,
        }
    }

    /// Returns the address of the first entry, for tables that compiled code reads. It stays valid
    /// as long as any clone of the column exists.
    pub fn as_ptr(&self) -> *const u8 {
        match self {
            Column::I32(v) => v.as_ptr().cast(),
            Column::I64(v) => v.as_ptr().cast(),
        }
    }
}

impl Column {
    /// Returns a column whose entries are `values`.
    ///
    /// The values are usually small, so a first pass writes them as 32-bit entries and finds out in
    /// the same loop whether all of them fit. Only if they do not is there a second pass. The
    /// values are not collected in between, because most of the cost of 10^6 rows is touching
    /// memory for the first time.
    ///
    /// # Errors
    /// Returns an error of class `NoMem` if the memory for the entries cannot be allocated.
    pub fn build<I: ExactSizeIterator<Item = i64> + Clone>(values: I) -> Result<Column> {
        let mut narrow = try_with_capacity("column", values.len())?;
        // The loop has no early exit, because an exit would prevent its vectorization.
        let mut high = 0;
        narrow.extend(values.clone().map(|v| {
            high |= v ^ i64::from(v as i32);
            v as i32
        }));
        if high == 0 {
            return Ok(Column::from(narrow));
        }
        drop(narrow);
        let mut wide = try_with_capacity("column", values.len())?;
        wide.extend(values);
        Ok(Column::I64(Arc::new(wide.into())))
    }
}

impl From<Vec<i32>> for Column {
    fn from(values: Vec<i32>) -> Self {
        Column::I32(Arc::new(values.into()))
    }
}

impl From<Vec<i64>> for Column {
    fn from(values: Vec<i64>) -> Self {
        if values.iter().all(|&v| i32::try_from(v).is_ok()) {
            Column::I32(Arc::new(values.iter().map(|&v| v as i32).collect()))
        } else {
            Column::I64(Arc::new(values.into()))
        }
    }
}

impl FromIterator<i64> for Column {
    fn from_iter<I: IntoIterator<Item = i64>>(iter: I) -> Self {
        Column::from(iter.into_iter().collect::<Vec<i64>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_is_canonical() {
        let small: Column = vec![1, -2, i64::from(i32::MAX)].into();
        assert!(matches!(small, Column::I32(_)));
        let wide: Column = vec![1, i64::from(i32::MAX) + 1].into();
        assert!(matches!(wide, Column::I64(_)));
        assert_eq!(wide.iter().collect::<Vec<_>>(), [1, i64::from(i32::MAX) + 1]);
        assert_eq!((small.bytes(), wide.bytes()), (12, 16));
    }

    #[test]
    fn entries_repeat_elsewhere() {
        for far in [100, 1 << 40] {
            let column = Column::from(vec![3, -7, 5, 3 + far, far - 7, 5 + far, 9]);
            assert!(
                column.repeats(0..3, 3..6, far)
                    && column.repeats(0..7, 0..7, 0)
                    && column.repeats(1..1, 2..2, 5)
            );
            let others = [(0..3, 3..6, far + 1), (0..3, 4..7, far), (0..3, 3..5, far), (0..4, 3..7, far)];
            assert!(others.into_iter().all(|(these, other, by)| !column.repeats(these, other, by)));
        }
        // These pairs of entries have differences that do not fit in 32 bits. The 32-bit value to
        // which such a difference wraps must not be taken for it.
        let (min, max) = (i64::from(i32::MIN), i64::from(i32::MAX));
        let ends = Column::from(vec![min, max, max, min]);
        for (from, to) in [(0, 1), (1, 0), (2, 3)] {
            let by = ends.get(to) - ends.get(from);
            assert!(ends.repeats(from..from + 1, to..to + 1, by), "{by}");
            assert!(!ends.repeats(from..from + 1, to..to + 1, i64::from(by as i32)), "{by}");
        }
    }
}
