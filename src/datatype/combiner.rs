//! Combiners: the constructor that made a datatype, with exactly its arguments.
//!
//! The names of the arguments are those of MPI 5.0 (mainly sections 5.1.2 to 5.1.4) without the
//! prefix `array_of_`. Their order is that of the standard, except that datatypes are last, and the
//! lengths of arrays are left out. Displacements and strides are in elements (extents of `oldtype`)
//! or, in the constructors whose names begin with `h` and in struct, resized and bounds, in bytes.
//! The legacy flag marks the MPI-1 Fortran forms whose addresses were default INTEGERs
//! (`MPI_COMBINER_HVECTOR_INTEGER`, `MPI_COMBINER_HINDEXED_INTEGER`,
//! `MPI_COMBINER_STRUCT_INTEGER`). These forms mean the same as those without the flag, which is
//! kept so that decoding a datatype gives back the form that built it.

use std::sync::Arc;

use super::Datatype;
use super::named::Named;

/// Storage order of a multi-dimensional array, an argument of [`Datatype::subarray`] and
/// [`Datatype::darray`]. MPI has only these two orders.
///
/// ```
/// use ddtc::{Datatype, Order};
///
/// let double = Datatype::of::<f64>();
/// let c = Datatype::subarray(&[2, 3], &[2, 1], &[0, 0], Order::C, &double)?;
/// let fortran = Datatype::subarray(&[3, 2], &[1, 2], &[0, 0], Order::Fortran, &double)?;
/// assert_eq!((c.true_ub(), fortran.true_ub()), (4 * 8, 4 * 8));
/// # Ok::<(), ddtc::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Row-major: the last dimension is contiguous.
    C,
    /// Column-major: the first dimension is contiguous.
    Fortran,
}

/// Distribution of one dimension of an array over the process grid, an argument of
/// [`Datatype::darray`]. MPI has only these distributions.
///
/// ```
/// use ddtc::{Datatype, Distribution, Order};
///
/// let own = |how, block| Datatype::darray(2, 0, &[8], &[how], &[block], &[2], Order::C, &Datatype::of::<u8>());
/// assert_eq!(own(Distribution::Block, None)?.true_ub(), 4);
/// assert_eq!(own(Distribution::Cyclic, Some(2))?.true_ub(), 6);
/// # Ok::<(), ddtc::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Each process has one block of consecutive elements.
    Block,
    /// Blocks are assigned to the processes in turn.
    Cyclic,
    /// The dimension is not distributed.
    None,
}

/// A constructor with its arguments.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "fields are the arguments of the constructor that the variant names")]
pub enum Combiner {
    /// A named predefined datatype.
    Named(Named),
    /// `MPI_Type_dup`.
    Dup { oldtype: Datatype },
    /// `MPI_Type_contiguous`.
    Contiguous { count: i64, oldtype: Datatype },
    /// `MPI_Type_vector`; stride in extents of `oldtype`.
    Vector { count: i64, blocklength: i64, stride: i64, oldtype: Datatype },
    /// `MPI_Type_create_hvector`; stride in bytes.
    Hvector { count: i64, blocklength: i64, stride: i64, oldtype: Datatype, legacy: bool },
    /// `MPI_Type_indexed`; displacements in extents of `oldtype`.
    Indexed { blocklengths: Arc<[i64]>, displacements: Arc<[i64]>, oldtype: Datatype },
    /// `MPI_Type_create_hindexed`; displacements in bytes.
    Hindexed { blocklengths: Arc<[i64]>, displacements: Arc<[i64]>, oldtype: Datatype, legacy: bool },
    /// `MPI_Type_create_indexed_block`; displacements in extents of `oldtype`.
    IndexedBlock { blocklength: i64, displacements: Arc<[i64]>, oldtype: Datatype },
    /// `MPI_Type_create_hindexed_block`; displacements in bytes.
    HindexedBlock { blocklength: i64, displacements: Arc<[i64]>, oldtype: Datatype },
    /// `MPI_Type_create_struct`; displacements in bytes.
    Struct { blocklengths: Arc<[i64]>, displacements: Arc<[i64]>, types: Arc<[Datatype]>, legacy: bool },
    /// `MPI_Type_create_subarray`.
    Subarray { sizes: Arc<[i64]>, subsizes: Arc<[i64]>, starts: Arc<[i64]>, order: Order, oldtype: Datatype },
    /// `MPI_Type_create_darray`; a distribution argument of `None` is `MPI_DISTRIBUTE_DFLT_DARG`.
    Darray {
        size: i64,
        rank: i64,
        gsizes: Arc<[i64]>,
        distribs: Arc<[Distribution]>,
        dargs: Arc<[Option<i64>]>,
        psizes: Arc<[i64]>,
        order: Order,
        oldtype: Datatype,
    },
    /// `MPI_Type_create_f90_real`; `None` is `MPI_UNDEFINED`.
    F90Real { p: Option<i64>, r: Option<i64> },
    /// `MPI_Type_create_f90_complex`; `None` is `MPI_UNDEFINED`.
    F90Complex { p: Option<i64>, r: Option<i64> },
    /// `MPI_Type_create_f90_integer`.
    F90Integer { r: i64 },
    /// `MPI_Type_create_resized`, in bytes: replaces the markers of `oldtype` by a marker at each
    /// bound.
    Resized { lb: i64, extent: i64, oldtype: Datatype },
    /// Bounds in bytes that an MPI library gave to a datatype. This is not a constructor of MPI:
    /// the envelope shows the combiner of `oldtype`.
    Bounds { lb: i64, extent: i64, oldtype: Datatype },
    /// An unnamed pair type of `MPI_Type_get_value_index`.
    ValueIndex { value: Datatype, index: Datatype },
}

/// An argument of a constructor. The variants correspond to the types of arguments in MPI's
/// interface.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// A count, block length, stride, bound, size or rank.
    Number(i64),
    /// A number; `None` is `MPI_UNDEFINED`.
    Optional(Option<i64>),
    /// An array whose C type is `int` in both the small and the large-count form of the
    /// constructor.
    Integers(&'a [i64]),
    /// An array of counts, or of displacements in elements. Its C type is `int`, or `MPI_Count` in
    /// the large-count form.
    Counts(&'a [i64]),
    /// An array of displacements in bytes. Its C type is `MPI_Aint`, or `MPI_Count` in the
    /// large-count form.
    Addresses(&'a [i64]),
    /// The distribution of each dimension of a darray.
    Distributions(&'a [Distribution]),
    /// The argument of each distribution of a darray; `None` is `MPI_DISTRIBUTE_DFLT_DARG`.
    Defaults(&'a [Option<i64>]),
    /// A storage order.
    Order(Order),
    /// A datatype.
    Type(&'a Datatype),
    /// An array of datatypes.
    Types(&'a [Datatype]),
}

impl Combiner {
    /// Returns the arguments with their names in the standard, without the prefix `array_of_` (and
    /// without the suffix `_type` for value_index). They are in the order of the standard, except
    /// that datatypes are last and the lengths of arrays are left out. Every printed form of a
    /// datatype is made from this list. A named datatype has no arguments.
    pub fn parameters(&self) -> Vec<(&'static str, Argument<'_>)> {
        use Argument as A;
        // List the arguments that are not datatypes first, each with its type in MPI's interface.
        let mut list = match self {
            Combiner::Named(_) | Combiner::Dup { .. } | Combiner::ValueIndex { .. } => Vec::new(),
            Combiner::Contiguous { count, .. } => vec![("count", A::Number(*count))],
            Combiner::Vector { count, blocklength, stride, .. }
            | Combiner::Hvector { count, blocklength, stride, .. } => vec![
                ("count", A::Number(*count)),
                ("blocklength", A::Number(*blocklength)),
                ("stride", A::Number(*stride)),
            ],
            Combiner::Indexed { blocklengths, displacements, .. } => {
                vec![("blocklengths", A::Counts(blocklengths)), ("displacements", A::Counts(displacements))]
            }
            Combiner::Hindexed { blocklengths, displacements, .. }
            | Combiner::Struct { blocklengths, displacements, .. } => {
                vec![
                    ("blocklengths", A::Counts(blocklengths)),
                    ("displacements", A::Addresses(displacements)),
                ]
            }
            Combiner::IndexedBlock { blocklength, displacements, .. } => {
                vec![("blocklength", A::Number(*blocklength)), ("displacements", A::Counts(displacements))]
            }
            Combiner::HindexedBlock { blocklength, displacements, .. } => {
                vec![("blocklength", A::Number(*blocklength)), ("displacements", A::Addresses(displacements))]
            }
            Combiner::Subarray { sizes, subsizes, starts, order, .. } => vec![
                ("sizes", A::Counts(sizes)),
                ("subsizes", A::Counts(subsizes)),
                ("starts", A::Counts(starts)),
                ("order", A::Order(*order)),
            ],
            Combiner::Darray { size, rank, gsizes, distribs, dargs, psizes, order, .. } => vec![
                ("size", A::Number(*size)),
                ("rank", A::Number(*rank)),
                ("gsizes", A::Counts(gsizes)),
                ("distribs", A::Distributions(distribs)),
                ("dargs", A::Defaults(dargs)),
                ("psizes", A::Integers(psizes)),
                ("order", A::Order(*order)),
            ],
            Combiner::F90Real { p, r } | Combiner::F90Complex { p, r } => {
                vec![("p", A::Optional(*p)), ("r", A::Optional(*r))]
            }
            Combiner::F90Integer { r } => vec![("r", A::Number(*r))],
            Combiner::Resized { lb, extent, .. } | Combiner::Bounds { lb, extent, .. } => {
                vec![("lb", A::Number(*lb)), ("extent", A::Number(*extent))]
            }
        };
        match self {
            // Append the datatypes. All constructors but these two have a single one, or none.
            Combiner::Struct { types, .. } => list.push(("types", A::Types(types))),
            Combiner::ValueIndex { value, index } => {
                list.extend([("value", A::Type(value)), ("index", A::Type(index))]);
            }
            _ => list.extend(self.children().map(|t| ("oldtype", A::Type(t)))),
        }
        list
    }

    /// Returns the name of the constructor or named type in the text notation.
    pub fn text_name(&self) -> &'static str {
        match self {
            Combiner::Named(n) => n.text_name(),
            Combiner::Dup { .. } => "dup",
            Combiner::Contiguous { .. } => "contiguous",
            Combiner::Vector { .. } => "vector",
            Combiner::Hvector { legacy: false, .. } => "hvector",
            Combiner::Hvector { legacy: true, .. } => "hvector_integer",
            Combiner::Indexed { .. } => "indexed",
            Combiner::Hindexed { legacy: false, .. } => "hindexed",
            Combiner::Hindexed { legacy: true, .. } => "hindexed_integer",
            Combiner::IndexedBlock { .. } => "indexed_block",
            Combiner::HindexedBlock { .. } => "hindexed_block",
            Combiner::Struct { legacy: false, .. } => "struct",
            Combiner::Struct { legacy: true, .. } => "struct_integer",
            Combiner::Subarray { .. } => "subarray",
            Combiner::Darray { .. } => "darray",
            Combiner::F90Real { .. } => "f90_real",
            Combiner::F90Complex { .. } => "f90_complex",
            Combiner::F90Integer { .. } => "f90_integer",
            Combiner::Resized { .. } => "resized",
            Combiner::Bounds { .. } => "bounds",
            Combiner::ValueIndex { .. } => "value_index",
        }
    }

    /// Returns the datatype arguments in the constructor's order.
    pub fn children(&self) -> impl ExactSizeIterator<Item = &Datatype> + DoubleEndedIterator {
        let (slice, pair): (&[Datatype], Option<(&Datatype, &Datatype)>) = match self {
            Combiner::Named(_)
            | Combiner::F90Real { .. }
            | Combiner::F90Complex { .. }
            | Combiner::F90Integer { .. } => (&[], None),
            Combiner::Dup { oldtype }
            | Combiner::Contiguous { oldtype, .. }
            | Combiner::Vector { oldtype, .. }
            | Combiner::Hvector { oldtype, .. }
            | Combiner::Indexed { oldtype, .. }
            | Combiner::Hindexed { oldtype, .. }
            | Combiner::IndexedBlock { oldtype, .. }
            | Combiner::HindexedBlock { oldtype, .. }
            | Combiner::Subarray { oldtype, .. }
            | Combiner::Darray { oldtype, .. }
            | Combiner::Resized { oldtype, .. }
            | Combiner::Bounds { oldtype, .. } => (std::slice::from_ref(oldtype), None),
            Combiner::Struct { types, .. } => (types, None),
            Combiner::ValueIndex { value, index } => (&[], Some((value, index))),
        };
        let n = pair.map_or(slice.len(), |_| 2);
        (0..n).map(move |i| match pair {
            Some((value, _)) if i == 0 => value,
            Some((_, index)) => index,
            None => &slice[i],
        })
    }

    /// Returns the number of arguments: every number and every datatype is one argument. For a
    /// constructor of MPI, it is the sum of the integers, addresses and datatypes of the envelope
    /// in the small form.
    pub fn arguments(&self) -> u64 {
        let n = match self {
            Combiner::Named(_) => 0,
            Combiner::Dup { .. } | Combiner::F90Integer { .. } => 1,
            Combiner::Contiguous { .. } | Combiner::F90Real { .. } | Combiner::F90Complex { .. } => 2,
            Combiner::ValueIndex { .. } => 2,
            Combiner::Resized { .. } | Combiner::Bounds { .. } => 3,
            Combiner::Vector { .. } | Combiner::Hvector { .. } => 4,
            Combiner::Indexed { displacements, .. } | Combiner::Hindexed { displacements, .. } => {
                2 * displacements.len() + 2
            }
            Combiner::IndexedBlock { displacements, .. } | Combiner::HindexedBlock { displacements, .. } => {
                displacements.len() + 3
            }
            Combiner::Struct { types, .. } => 3 * types.len() + 1,
            Combiner::Subarray { sizes, .. } => 3 * sizes.len() + 3,
            Combiner::Darray { gsizes, .. } => 4 * gsizes.len() + 5,
        };
        n as u64
    }
}
