//! Envelope and contents: the place of each constructor argument in the arrays of
//! `MPI_Type_get_contents`, for writing and for reading.
//!
//! Source: MPI-2.0 section 8.6, MPI 5.0 section 5.1.13. The arguments of every combiner have one
//! place in the small form and one in the large form. The small form puts counts into the integers
//! and byte displacements into the addresses. The large form of a `_c` constructor puts counts,
//! displacements, sizes and bounds into the large counts, while ndims, order and darray's size,
//! rank, distributions and grid stay integers. `put` writes a combiner and `take` reads one, with
//! the same calls in the same order.

mod put;
mod take;

use std::mem::MaybeUninit;

use super::combiner::Combiner;
use super::{Datatype, Named};
use crate::error::{Error, ErrorClass, Result};
use crate::filled::Filled;

/// Combiner of a datatype, as `MPI_Type_get_envelope` returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is MPI_COMBINER_ and its name")]
pub enum CombinerKind {
    Named,
    Dup,
    Contiguous,
    Vector,
    HvectorInteger,
    Hvector,
    Indexed,
    HindexedInteger,
    Hindexed,
    IndexedBlock,
    HindexedBlock,
    StructInteger,
    Struct,
    Subarray,
    Darray,
    F90Real,
    F90Complex,
    F90Integer,
    Resized,
    ValueIndex,
}

/// Kind, MPI's name and value of every combiner. The standard ABI has no values for the three
/// legacy kinds (`HvectorInteger`, `HindexedInteger` and `StructInteger`), and leaves values above
/// 16384 to others, so the values of these kinds are our own.
const KINDS: [(CombinerKind, &str, i32); 20] = [
    (CombinerKind::Named, "MPI_COMBINER_NAMED", 101),
    (CombinerKind::Dup, "MPI_COMBINER_DUP", 102),
    (CombinerKind::Contiguous, "MPI_COMBINER_CONTIGUOUS", 103),
    (CombinerKind::Vector, "MPI_COMBINER_VECTOR", 104),
    (CombinerKind::HvectorInteger, "MPI_COMBINER_HVECTOR_INTEGER", 20105),
    (CombinerKind::Hvector, "MPI_COMBINER_HVECTOR", 105),
    (CombinerKind::Indexed, "MPI_COMBINER_INDEXED", 106),
    (CombinerKind::HindexedInteger, "MPI_COMBINER_HINDEXED_INTEGER", 20107),
    (CombinerKind::Hindexed, "MPI_COMBINER_HINDEXED", 107),
    (CombinerKind::IndexedBlock, "MPI_COMBINER_INDEXED_BLOCK", 108),
    (CombinerKind::HindexedBlock, "MPI_COMBINER_HINDEXED_BLOCK", 109),
    (CombinerKind::StructInteger, "MPI_COMBINER_STRUCT_INTEGER", 20110),
    (CombinerKind::Struct, "MPI_COMBINER_STRUCT", 110),
    (CombinerKind::Subarray, "MPI_COMBINER_SUBARRAY", 111),
    (CombinerKind::Darray, "MPI_COMBINER_DARRAY", 112),
    (CombinerKind::F90Real, "MPI_COMBINER_F90_REAL", 113),
    (CombinerKind::F90Complex, "MPI_COMBINER_F90_COMPLEX", 114),
    (CombinerKind::F90Integer, "MPI_COMBINER_F90_INTEGER", 115),
    (CombinerKind::Resized, "MPI_COMBINER_RESIZED", 116),
    (CombinerKind::ValueIndex, "MPI_COMBINER_VALUE_INDEX", 117),
];

impl CombinerKind {
    /// Returns an iterator over all combiners.
    pub fn all() -> impl Iterator<Item = CombinerKind> {
        KINDS.iter().map(|k| k.0)
    }

    /// Returns MPI's name of the combiner.
    pub fn mpi_name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// Returns the value in the MPI 5.0 standard ABI or, for the three legacy kinds that the ABI
    /// lacks, a value of our own.
    pub fn abi_value(self) -> i32 {
        KINDS[self as usize].2
    }

    /// Returns true if types of this kind are predefined and therefore never freed: named types,
    /// and the unnamed f90 and value_index types.
    pub fn is_predefined(self) -> bool {
        use CombinerKind as K;
        matches!(self, K::Named | K::F90Real | K::F90Complex | K::F90Integer | K::ValueIndex)
    }
}

/// Integer constants inside the contents, whose values differ between MPI libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is MPI_ and its name")]
pub struct Constants {
    pub order_c: i32,
    pub order_fortran: i32,
    pub distribute_block: i32,
    pub distribute_cyclic: i32,
    pub distribute_none: i32,
    pub distribute_dflt_darg: i32,
    pub undefined: i32,
}

impl Constants {
    /// Values of the MPI 5.0 standard ABI. The default distribution argument is 19, so it cannot be
    /// distinguished from a block size of 19.
    pub const ABI: Constants = Constants {
        order_c: 12,
        order_fortran: 15,
        distribute_none: 16,
        distribute_block: 17,
        distribute_cyclic: 18,
        distribute_dflt_darg: 19,
        undefined: -32766,
    };

    /// Values of the ABI, except that the default distribution argument is the lowest int. This
    /// value is not a block size, and no program would pass it for a dimension whose argument is
    /// ignored.
    pub const OWN: Constants = Constants { distribute_dflt_darg: i32::MIN, ..Constants::ABI };
}

/// Result of `MPI_Type_get_envelope_c`: the combiner, and the lengths of the four arrays. The
/// lengths are signed, because a library may return anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Kind of the constructor.
    pub combiner: CombinerKind,
    /// Number of integer arguments.
    pub integers: i64,
    /// Number of address arguments.
    pub addresses: i64,
    /// Number of large-count arguments, which is positive exactly for nodes of `_c` constructors.
    pub large_counts: i64,
    /// Number of datatype arguments.
    pub datatypes: i64,
}

impl Envelope {
    /// Returns the number of arguments of all four kinds. A negative number counts as 0.
    pub fn arguments(&self) -> u64 {
        let kinds = [self.integers, self.addresses, self.large_counts, self.datatypes];
        kinds.into_iter().map(|n| n.max(0) as u64).sum()
    }
}

/// Result of `MPI_Type_get_contents_c`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the arrays of the call")]
pub struct Contents<H> {
    pub integers: Vec<i32>,
    pub addresses: Vec<i64>,
    pub large_counts: Vec<i64>,
    pub datatypes: Vec<H>,
}

impl Combiner {
    /// Returns the combiner's kind. `Bounds`, which is not a constructor of MPI, has the kind of
    /// the type below it.
    pub fn kind(&self) -> CombinerKind {
        use CombinerKind as K;
        match self {
            Combiner::Named(_) => K::Named,
            Combiner::Dup { .. } => K::Dup,
            Combiner::Contiguous { .. } => K::Contiguous,
            Combiner::Vector { .. } => K::Vector,
            Combiner::Hvector { legacy: true, .. } => K::HvectorInteger,
            Combiner::Hvector { legacy: false, .. } => K::Hvector,
            Combiner::Indexed { .. } => K::Indexed,
            Combiner::Hindexed { legacy: true, .. } => K::HindexedInteger,
            Combiner::Hindexed { legacy: false, .. } => K::Hindexed,
            Combiner::IndexedBlock { .. } => K::IndexedBlock,
            Combiner::HindexedBlock { .. } => K::HindexedBlock,
            Combiner::Struct { legacy: true, .. } => K::StructInteger,
            Combiner::Struct { legacy: false, .. } => K::Struct,
            Combiner::Subarray { .. } => K::Subarray,
            Combiner::Darray { .. } => K::Darray,
            Combiner::F90Real { .. } => K::F90Real,
            Combiner::F90Complex { .. } => K::F90Complex,
            Combiner::F90Integer { .. } => K::F90Integer,
            Combiner::Resized { .. } => K::Resized,
            // `Bounds` is never on top of `Bounds`, so this takes one step.
            Combiner::Bounds { oldtype, .. } => match oldtype.combiner() {
                Combiner::Bounds { .. } => K::Dup,
                inner => inner.kind(),
            },
            Combiner::ValueIndex { .. } => K::ValueIndex,
        }
    }

    /// Returns true if a count does not fit into the integers of the small form. The size, rank and
    /// grid of a darray are tested like counts, although they are integers in the large form too.
    pub(crate) fn needs_large_counts(&self) -> bool {
        let mut wide = put::LargeCountCheck(false);
        put::put(self, false, &Constants::OWN, &mut wide);
        wide.0
    }
}

impl Datatype {
    /// Returns the node that a constructor call of MPI made: the node below a [`Combiner::Bounds`],
    /// or else the node itself.
    pub(crate) fn constructed(&self) -> &Datatype {
        match self.combiner() {
            Combiner::Bounds { oldtype, .. } => oldtype,
            _ => self,
        }
    }

    /// Returns the result of `MPI_Type_get_envelope_c`. For a large-count node, the lengths are
    /// those of the large form, and for any other node those of the small form. The time is
    /// constant, or proportional to the number of dimensions for a darray.
    pub(crate) fn envelope(&self) -> Envelope {
        let node = self.constructed();
        let mut lengths = put::Lengths::default();
        put::put(node.combiner(), node.is_large_count(), &Constants::OWN, &mut lengths);
        Envelope {
            combiner: node.combiner().kind(),
            integers: lengths.integers as i64,
            addresses: lengths.addresses as i64,
            large_counts: lengths.large_counts as i64,
            datatypes: node.combiner().children().len() as i64,
        }
    }

    /// Writes the contents (`MPI_Type_get_contents_c`) into arrays that are at least as long as the
    /// envelope says, with one copy of each array. The datatypes of the contents are not written:
    /// they are `constructed().combiner().children()`, in order.
    ///
    /// # Errors
    /// Returns an error of class `Type` for a named type, of class `Arg` for an array that is
    /// shorter than the envelope says, and of class `ValueTooLarge` for an integer that does not
    /// fit in 32 bits. The arrays are unchanged, except that an error of class `ValueTooLarge` is
    /// found only after all of them have been written.
    pub(crate) fn contents_into(
        &self,
        constants: &Constants,
        integers: &mut [i32],
        addresses: &mut [i64],
        large_counts: &mut [i64],
    ) -> Result<()> {
        let arrays = (Filled::over(integers), Filled::over(addresses), Filled::over(large_counts));
        self.fill_contents(constants, arrays)
    }

    /// Writes the contents as [`Datatype::contents_into`] does, into memory that need not be
    /// initialized. After success, as many entries of each array are initialized as the envelope
    /// says.
    ///
    /// # Errors
    /// Returns the errors that [`Datatype::contents_into`] returns.
    pub(crate) fn contents_into_uninit(
        &self,
        constants: &Constants,
        integers: &mut [MaybeUninit<i32>],
        addresses: &mut [MaybeUninit<i64>],
        large_counts: &mut [MaybeUninit<i64>],
    ) -> Result<()> {
        let arrays = (Filled::new(integers), Filled::new(addresses), Filled::new(large_counts));
        self.fill_contents(constants, arrays)
    }

    fn fill_contents(
        &self,
        constants: &Constants,
        (integers, addresses, large_counts): (Filled<'_, i32>, Filled<'_, i64>, Filled<'_, i64>),
    ) -> Result<()> {
        const CALL: &str = "get_contents";
        let node = self.constructed();
        if let Combiner::Named(n) = node.combiner() {
            let rule = "a named predefined datatype has no contents";
            return Err(Error::new(ErrorClass::Type, CALL, "datatype", n, rule));
        }
        let envelope = self.envelope();
        for (argument, available, required) in [
            ("max_integers", integers.room(), envelope.integers),
            ("max_addresses", addresses.room(), envelope.addresses),
            ("max_large_counts", large_counts.room(), envelope.large_counts),
        ] {
            if (available as i64) < required {
                let rule = format!("must be at least the envelope's {required}");
                return Err(Error::new(ErrorClass::Arg, CALL, argument, available, rule));
            }
        }
        // The arrays are long enough, so the only possible failure is an integer that does not fit
        // in 32 bits. In the large form, this can still be the size, rank, number of dimensions,
        // grid or a distribution argument of a darray, for example.
        let mut fill = put::Fill { integers, addresses, large_counts, too_large: None };
        put::put(node.combiner(), node.is_large_count(), constants, &mut fill);
        match fill.too_large {
            Some(value) => {
                let rule = "must fit the int of the contents";
                Err(Error::new(ErrorClass::ValueTooLarge, CALL, "array_of_integers", value, rule))
            }
            None => Ok(()),
        }
    }

    /// Returns the contents in newly allocated arrays. The errors are those of
    /// [`Datatype::contents_into`].
    pub(crate) fn contents(&self, constants: &Constants) -> Result<Contents<Datatype>> {
        let envelope = self.envelope();
        let mut contents = Contents {
            integers: vec![0; envelope.integers as usize],
            addresses: vec![0; envelope.addresses as usize],
            large_counts: vec![0; envelope.large_counts as usize],
            datatypes: self.constructed().combiner().children().cloned().collect(),
        };
        let Contents { integers, addresses, large_counts, .. } = &mut contents;
        self.contents_into(constants, integers, addresses, large_counts)?;
        Ok(contents)
    }

    /// Calls the constructor that an envelope and contents describe.
    ///
    /// # Errors
    /// Returns an error if an array does not have the length that the combiner asks for, or if an
    /// order or distribution is not among `constants`. Also returns the error of a constructor that
    /// refuses its arguments.
    pub(crate) fn from_contents(
        kind: CombinerKind,
        contents: Contents<Datatype>,
        constants: &Constants,
    ) -> Result<Datatype> {
        let large = !contents.large_counts.is_empty();
        let mut take = take::Take {
            kind,
            constants,
            large,
            integers: &contents.integers,
            addresses: &contents.addresses,
            large_counts: &contents.large_counts,
            datatypes: contents.datatypes,
        };
        let combiner = take.combiner()?;
        take.finish()?;
        let t = Datatype::new(combiner)?;
        Ok(if large { t.with_large_count() } else { t })
    }
}

/// Returns the named type of a node. A [`Combiner::Bounds`] on top of the named type is ignored.
/// Returns `None` for any other type.
pub fn named_of(t: &Datatype) -> Option<Named> {
    match t.constructed().combiner() {
        Combiner::Named(n) => Some(*n),
        _ => None,
    }
}
