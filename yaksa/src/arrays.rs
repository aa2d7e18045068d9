//! Arrays of arguments: a few numbers lie in one allocation of their own; long arrays are shared with the trees of ddtc that are made of them.

use std::sync::Arc;

use crate::abi::{Code, Result};

/// Arrays of up to so many numbers are copied where a tree is made of them.
const FEW: usize = 32;

/// `values`, each `unit` times.
fn times(values: &[isize], unit: i64, into: &mut Vec<i64>) -> Result<()> {
    if unit == 1 {
        into.extend(values.iter().map(|&d| d as i64));
        return Ok(());
    }
    // Whether any overflowed is looked at once: the loop has no branch.
    let mut over = false;
    into.extend(values.iter().map(|&d| {
        let (bytes, overflowed) = (d as i64).overflowing_mul(unit);
        over |= overflowed;
        bytes
    }));
    if over { Err(Code::Internal) } else { Ok(()) }
}

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

/// Displacements, in bytes.
#[derive(Clone, Debug)]
pub(crate) enum Places {
    Few(Box<[i64]>),
    Many(Arc<[i64]>),
}

impl Places {
    /// Displacements in units of so many bytes.
    pub(crate) fn new(at: &[isize], unit: i64) -> Result<Places> {
        if at.len() > FEW {
            return shared(at, unit).map(Places::Many);
        }
        let mut all = Vec::with_capacity(at.len());
        times(at, unit, &mut all)?;
        Ok(Places::Few(all.into()))
    }

    /// One displacement.
    pub(crate) fn one(at: i64) -> Places {
        Places::Few(Box::new([at]))
    }

    #[inline]
    pub(crate) fn at(&self) -> &[i64] {
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

/// Blocks: as many lengths as displacements in bytes.
#[derive(Clone, Debug)]
pub(crate) enum Blocks {
    /// First all lengths.
    Few(Box<[i64]>),
    Many {
        lengths: Arc<[i64]>,
        at: Arc<[i64]>,
    },
}

impl Blocks {
    /// Blocks at displacements in units of so many bytes. Both are of one length.
    pub(crate) fn new(lengths: &[isize], at: &[isize], unit: i64) -> Result<Blocks> {
        if at.len() > FEW {
            return Ok(Blocks::Many { lengths: shared(lengths, 1)?, at: shared(at, unit)? });
        }
        let mut all = Vec::with_capacity(lengths.len() + at.len());
        times(lengths, 1, &mut all)?;
        times(at, unit, &mut all)?;
        Ok(Blocks::Few(all.into()))
    }

    /// Lengths and displacements.
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
