//! Storage of the arrays that constructors of types take: block lengths and displacements. They
//! belong to a node, which is how this library stores a type. A node may later be converted to a
//! `Datatype` of ddtc. Then a short array is copied, and a long array is shared by the node and the
//! `Datatype`.

use std::sync::Arc;

use crate::abi::{Code, Result};

/// Maximum number of blocks of a constructor whose arrays are copied when the type is converted to
/// a `Datatype` of ddtc. The arrays of constructors with more blocks are shared with the
/// `Datatype`.
const MAX_COPIED_ENTRIES: usize = 32;

/// Appends each value times `unit` to `into`. Fails with [`Code::Internal`] if a product does not
/// fit in 64 bits.
fn times(values: &[isize], unit: i64, into: &mut Vec<i64>) -> Result<()> {
    if unit == 1 {
        into.extend(values.iter().map(|&d| d as i64));
        return Ok(());
    }
    // `over` is tested only once, after the loop, so that the loop has no branch.
    let mut over = false;
    into.extend(values.iter().map(|&d| {
        let (bytes, overflowed) = (d as i64).overflowing_mul(unit);
        over |= overflowed;
        bytes
    }));
    if over { Err(Code::Internal) } else { Ok(()) }
}

/// Returns a shared array of the values, each multiplied by `unit`. Fails with [`Code::Internal`]
/// if a product does not fit in 64 bits.
fn shared(values: &[isize], unit: i64) -> Result<Arc<[i64]>> {
    if unit == 1 {
        return Ok(values.iter().map(|&d| d as i64).collect());
    }
    let mut over = false;
    let all = values.iter().map(|&d| {
        let (bytes, overflowed) = (d as i64).overflowing_mul(unit);
        over |= overflowed;
        bytes
    });
    let all = all.collect();
    if over { Err(Code::Internal) } else { Ok(all) }
}

/// Displacements of blocks, in bytes.
#[derive(Clone, Debug)]
pub(crate) enum Places {
    Few(Box<[i64]>),
    Many(Arc<[i64]>),
}

impl Places {
    /// Stores the displacements `at`, which are given in units of `unit` bytes. Fails with
    /// [`Code::Internal`] if a displacement in bytes does not fit in 64 bits.
    pub(crate) fn new(at: &[isize], unit: i64) -> Result<Places> {
        if at.len() > MAX_COPIED_ENTRIES {
            return shared(at, unit).map(Places::Many);
        }
        let mut all = Vec::with_capacity(at.len());
        times(at, unit, &mut all)?;
        Ok(Places::Few(all.into()))
    }

    /// Stores the single displacement `at`, which is given in bytes.
    pub(crate) fn one(at: i64) -> Places {
        Places::Few(Box::new([at]))
    }

    #[inline]
    pub(crate) fn displacements(&self) -> &[i64] {
        match self {
            Places::Few(at) => at,
            Places::Many(at) => at,
        }
    }

    pub(crate) fn shared(&self) -> Arc<[i64]> {
        match self {
            Places::Few(at) => at.as_ref().into(),
            Places::Many(at) => Arc::clone(at),
        }
    }
}

impl From<Arc<[i64]>> for Places {
    fn from(at: Arc<[i64]>) -> Places {
        Places::Many(at)
    }
}

/// Lengths and displacements of blocks. A length is a number of copies, and a displacement is in
/// bytes.
#[derive(Clone, Debug)]
pub(crate) enum Blocks {
    /// At most [`MAX_COPIED_ENTRIES`] blocks. The array has all lengths, followed by all
    /// displacements.
    Few(Box<[i64]>),
    Many {
        lengths: Arc<[i64]>,
        at: Arc<[i64]>,
    },
}

impl Blocks {
    /// Stores the lengths and displacements of blocks. The displacements `at` are given in units of
    /// `unit` bytes. Both arrays must have the same number of entries. Fails with
    /// [`Code::Internal`] if a displacement in bytes does not fit in 64 bits.
    pub(crate) fn new(lengths: &[isize], at: &[isize], unit: i64) -> Result<Blocks> {
        if at.len() > MAX_COPIED_ENTRIES {
            return Ok(Blocks::Many { lengths: shared(lengths, 1)?, at: shared(at, unit)? });
        }
        let mut all = Vec::with_capacity(lengths.len() + at.len());
        times(lengths, 1, &mut all)?;
        times(at, unit, &mut all)?;
        Ok(Blocks::Few(all.into()))
    }

    /// Returns the lengths of all blocks, and their displacements in bytes.
    #[inline]
    pub(crate) fn both(&self) -> (&[i64], &[i64]) {
        match self {
            Blocks::Few(all) => all.split_at(all.len() / 2),
            Blocks::Many { lengths, at } => (lengths, at),
        }
    }

    pub(crate) fn shared(&self) -> (Arc<[i64]>, Arc<[i64]>) {
        match self {
            Blocks::Few(_) => {
                let (lengths, at) = self.both();
                (lengths.into(), at.into())
            }
            Blocks::Many { lengths, at } => (Arc::clone(lengths), Arc::clone(at)),
        }
    }
}
