//! The window accessors of the 1996 proposal (merged TMC/NEC): the top of a datatype, a few entries at a time, into arrays of fixed size.
//!
//! For callers that cannot allocate, Fortran's above all. A window borrows from the datatype: its cost is that of the entries in
//! it. Numbers are in the units of the constructor. Seven combiners are known; f90 and value_index types are basic, and
//! what the proposal never saw (dup, resized, subarray, ...) is refused by name.

use std::slice::from_ref;

use crate::datatype::{Combiner, Datatype};
use crate::error::{Error, ErrorClass, Result};

/// The combiners of the proposal.
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

/// Result of `MPI_Type_contents`; arrays that a combiner does not name stay untouched.
#[derive(Clone, Copy, Debug)]
pub struct Window<'t> {
    /// The combiner.
    pub combiner: Early,
    /// Block lengths.
    pub blocklengths: &'t [i64],
    /// The one stride: elements for vector, bytes for hvector.
    pub stride: Option<i64>,
    /// Displacements: elements for indexed, bytes for hindexed and struct.
    pub displacements: &'t [i64],
    /// The one old type, or those of struct.
    pub types: &'t [Datatype],
}

/// `MPI_Type_envelope`: the count argument of the constructor (1 for basic) and the combiner.
///
/// # Errors
/// Class `Type` for a combiner that the proposal does not know; `ValueTooLarge` for a count above `i32::MAX`.
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
            let rule = "is a combiner that the window accessors do not know";
            return Err(Error::new(ErrorClass::Type, call, "combiner", other.kind().mpi_name(), rule));
        }
    })
}

/// `MPI_Type_contents`: the entries `start .. start + count` as far as there are any. `start` matters to indexed, hindexed and
/// struct only.
///
/// # Errors
/// As [`envelope`]; class `Arg` for a negative `start`, `Count` for a `count` that is not positive.
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
        // Basic: the type itself.
        _ => Window { types: from_ref(t), ..empty },
    })
}
