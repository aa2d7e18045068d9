//! The window accessors of the proposal of 1996 (merged from those of TMC and NEC). They return the
//! outermost constructor of a datatype, and a few of its entries at a time, for arrays of fixed
//! size.
//!
//! They are for callers that cannot allocate, above all from Fortran. A window borrows from the
//! datatype and costs O(1); the caller copies the entries in it. Numbers are in the units of the
//! constructor. The proposal has seven combiners. f90 and value_index types count as basic, and
//! combiners that the proposal did not have (dup, resized, subarray and others) are refused with an
//! error that names them.

use std::slice::from_ref;

use crate::datatype::{Combiner, Datatype};
use crate::error::{Error, ErrorClass, Result};

/// The combiners of the proposal of 1996.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is MPI_ and its name")]
#[repr(i32)]
pub enum Early {
    Basic = 1501,
    Contig = 1502,
    Vector = 1503,
    Hvector = 1504,
    Indexed = 1505,
    Hindexed = 1506,
    Struct = 1507,
}

/// Result of `MPI_Type_contents`. Arrays that the combiner does not have are empty here, and the
/// caller should leave its own arrays for them unchanged.
#[derive(Clone, Copy, Debug)]
pub struct Window<'t> {
    /// The combiner.
    pub combiner: Early,
    /// Block lengths.
    pub blocklengths: &'t [i64],
    /// The stride of a vector in elements, or of an hvector in bytes.
    pub stride: Option<i64>,
    /// Displacements, in elements for indexed and in bytes for hindexed and struct.
    pub displacements: &'t [i64],
    /// The old type, or for a struct the old types in the window. For a basic type, this is the
    /// type itself.
    pub types: &'t [Datatype],
}

/// Returns the count argument of the constructor (1 for a basic type) and the combiner
/// (`MPI_Type_envelope`).
///
/// # Errors
/// Class `Type` for a combiner that the proposal does not have; class `ValueTooLarge` for a count
/// above `i32::MAX`.
pub fn envelope(t: &Datatype) -> Result<(i32, Early)> {
    const CALL: &str = "type_envelope";
    let (count, early) = top(CALL, t)?;
    let count = i32::try_from(count)
        .map_err(|_| Error::new(ErrorClass::ValueTooLarge, CALL, "count", count, "must fit an int"))?;
    Ok((count, early))
}

fn top(call: &'static str, t: &Datatype) -> Result<(i64, Early)> {
    Ok(match t.constructed().combiner() {
        Combiner::Named(_)
        | Combiner::F90Real { .. }
        | Combiner::F90Complex { .. }
        | Combiner::F90Integer { .. }
        | Combiner::ValueIndex { .. } => (1, Early::Basic),
        Combiner::Contiguous { count, .. } => (*count, Early::Contig),
        Combiner::Vector { count, .. } => (*count, Early::Vector),
        Combiner::Hvector { count, .. } => (*count, Early::Hvector),
        Combiner::Indexed { displacements, .. } => (displacements.len() as i64, Early::Indexed),
        Combiner::Hindexed { displacements, .. } => (displacements.len() as i64, Early::Hindexed),
        Combiner::Struct { displacements, .. } => (displacements.len() as i64, Early::Struct),
        other => {
            let rule = "must be a combiner that the window accessors know";
            return Err(Error::new(ErrorClass::Type, call, "combiner", other.kind().mpi_name(), rule));
        }
    })
}

/// Returns the entries `start .. start + count` of the datatype, as far as it has these
/// (`MPI_Type_contents`). `start` and `count` select entries of indexed, hindexed and struct types
/// only.
///
/// # Errors
/// Class `Type` for a combiner that the proposal does not have; class `Count` for a `count` that is
/// not positive; class `Arg` for a negative `start`.
pub fn window(t: &Datatype, start: i32, count: i32) -> Result<Window<'_>> {
    const CALL: &str = "type_contents";
    let (_, combiner) = top(CALL, t)?;
    if count <= 0 {
        return Err(Error::new(ErrorClass::Count, CALL, "count", count, "must be positive"));
    }
    if start < 0 {
        return Err(Error::new(ErrorClass::Arg, CALL, "start", start, "must not be negative"));
    }
    let (start, count) = (start as usize, count as usize);
    fn cut<T>(all: &[T], start: usize, count: usize) -> &[T] {
        let first = start.min(all.len());
        &all[first..first.saturating_add(count).min(all.len())]
    }
    let empty = Window { combiner, blocklengths: &[], stride: None, displacements: &[], types: &[] };
    Ok(match t.constructed().combiner() {
        Combiner::Contiguous { oldtype, .. } => Window { types: from_ref(oldtype), ..empty },
        Combiner::Vector { blocklength, stride, oldtype, .. }
        | Combiner::Hvector { blocklength, stride, oldtype, .. } => Window {
            blocklengths: from_ref(blocklength),
            stride: Some(*stride),
            types: from_ref(oldtype),
            ..empty
        },
        Combiner::Indexed { blocklengths, displacements, oldtype }
        | Combiner::Hindexed { blocklengths, displacements, oldtype, .. } => Window {
            blocklengths: cut(blocklengths, start, count),
            displacements: cut(displacements, start, count),
            types: from_ref(oldtype),
            ..empty
        },
        Combiner::Struct { blocklengths, displacements, types, .. } => Window {
            blocklengths: cut(blocklengths, start, count),
            displacements: cut(displacements, start, count),
            types: cut(types, start, count),
            ..empty
        },
        // Only basic types are left. The window of a basic type contains the type itself.
        _ => Window { types: from_ref(t), ..empty },
    })
}
