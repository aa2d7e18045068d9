//! Writing of contents: passes the numbers of a combiner on in the order of the three arrays for
//! numbers (integers, addresses and large counts).

use super::Constants;
use crate::datatype::{Combiner, Distribution, Order};
use crate::filled::Filled;

/// Receiver of the arguments of a combiner. The arguments of each array arrive in the order of that
/// array.
pub(super) trait Sink {
    /// Receives a single number for the array of integers: an order, the number of dimensions of a
    /// subarray, an argument of an f90 type, or a distribution of a darray or its argument.
    fn integer(&mut self, value: i64);
    /// Receives numbers for the array of integers: the counts of the small form and, of a darray in
    /// both forms, the size, rank, number of dimensions and `psizes`.
    fn integers(&mut self, values: &[i64]);
    fn addresses(&mut self, values: &[i64]);
    fn large_counts(&mut self, values: &[i64]);
}

/// Passes each number of a combiner to `sink`, for the array to which it belongs. `large` selects
/// the large form.
pub(super) fn put(combiner: &Combiner, large: bool, constants: &Constants, sink: &mut impl Sink) {
    let counts = |sink: &mut dyn Sink, values: &[i64]| {
        if large { sink.large_counts(values) } else { sink.integers(values) }
    };
    let addresses = |sink: &mut dyn Sink, values: &[i64]| {
        if large { sink.large_counts(values) } else { sink.addresses(values) }
    };
    let order_value = |order: &Order| match order {
        Order::C => i64::from(constants.order_c),
        Order::Fortran => i64::from(constants.order_fortran),
    };
    // The order within each array is that of MPI 5.0, section 5.1.13. Constants and the lengths of
    // arrays are passed on like other numbers.
    match combiner {
        Combiner::Named(_) | Combiner::Dup { .. } | Combiner::Bounds { .. } | Combiner::ValueIndex { .. } => {
        }
        Combiner::Contiguous { count, .. } => counts(sink, &[*count]),
        Combiner::Vector { count, blocklength, stride, .. } => counts(sink, &[*count, *blocklength, *stride]),
        Combiner::Hvector { count, blocklength, stride, .. } => {
            counts(sink, &[*count, *blocklength]);
            addresses(sink, &[*stride]);
        }
        Combiner::Indexed { blocklengths, displacements, .. } => {
            counts(sink, &[blocklengths.len() as i64]);
            counts(sink, blocklengths);
            counts(sink, displacements);
        }
        Combiner::Hindexed { blocklengths, displacements, .. }
        | Combiner::Struct { blocklengths, displacements, .. } => {
            counts(sink, &[blocklengths.len() as i64]);
            counts(sink, blocklengths);
            addresses(sink, displacements);
        }
        Combiner::IndexedBlock { blocklength, displacements, .. } => {
            counts(sink, &[displacements.len() as i64, *blocklength]);
            counts(sink, displacements);
        }
        Combiner::HindexedBlock { blocklength, displacements, .. } => {
            counts(sink, &[displacements.len() as i64, *blocklength]);
            addresses(sink, displacements);
        }
        Combiner::Subarray { sizes, subsizes, starts, order, .. } => {
            sink.integer(sizes.len() as i64);
            counts(sink, sizes);
            counts(sink, subsizes);
            counts(sink, starts);
            sink.integer(order_value(order));
        }
        Combiner::Darray { size, rank, gsizes, distribs, dargs, psizes, order, .. } => {
            sink.integers(&[*size, *rank, gsizes.len() as i64]);
            counts(sink, gsizes);
            for distribution in distribs.iter() {
                sink.integer(i64::from(match distribution {
                    Distribution::Block => constants.distribute_block,
                    Distribution::Cyclic => constants.distribute_cyclic,
                    Distribution::None => constants.distribute_none,
                }));
            }
            for darg in dargs.iter() {
                sink.integer(darg.unwrap_or(i64::from(constants.distribute_dflt_darg)));
            }
            sink.integers(psizes);
            sink.integer(order_value(order));
        }
        Combiner::F90Real { p, r } | Combiner::F90Complex { p, r } => {
            sink.integer(p.unwrap_or(i64::from(constants.undefined)));
            sink.integer(r.unwrap_or(i64::from(constants.undefined)));
        }
        Combiner::F90Integer { r } => sink.integer(*r),
        Combiner::Resized { lb, extent, .. } => addresses(sink, &[*lb, *extent]),
    }
}

/// Sink that counts the entries of each array.
#[derive(Default)]
pub(super) struct Lengths {
    pub(super) integers: usize,
    pub(super) addresses: usize,
    pub(super) large_counts: usize,
}

impl Sink for Lengths {
    fn integer(&mut self, _: i64) {
        self.integers += 1;
    }
    fn integers(&mut self, values: &[i64]) {
        self.integers += values.len();
    }
    fn addresses(&mut self, values: &[i64]) {
        self.addresses += values.len();
    }
    fn large_counts(&mut self, values: &[i64]) {
        self.large_counts += values.len();
    }
}

/// Sink that fills arrays, which must be long enough.
pub(super) struct Fill<'a> {
    pub(super) integers: Filled<'a, i32>,
    pub(super) addresses: Filled<'a, i64>,
    pub(super) large_counts: Filled<'a, i64>,
    /// An integer that did not fit in 32 bits, if there was one.
    pub(super) too_large: Option<i64>,
}

impl Sink for Fill<'_> {
    fn integer(&mut self, value: i64) {
        self.integers(&[value]);
    }
    fn integers(&mut self, values: &[i64]) {
        // The loop narrows the values and collects the bits that were lost. It has no branch per
        // entry, so that it is vectorized.
        let mut lost = 0;
        self.integers.extend(
            values.len(),
            values.iter().map(|&value| {
                let narrow = value as i32;
                lost |= value ^ i64::from(narrow);
                narrow
            }),
        );
        if lost != 0 {
            self.too_large = values.iter().copied().rfind(|&v| i32::try_from(v).is_err());
        }
    }
    fn addresses(&mut self, values: &[i64]) {
        self.addresses.extend(values.len(), values.iter().copied());
    }
    fn large_counts(&mut self, values: &[i64]) {
        self.large_counts.extend(values.len(), values.iter().copied());
    }
}

/// Sink that finds out whether a number that it receives through `integers` does not fit in an int.
/// Numbers that it receives through `integer`, among them the distributions of a darray and their
/// arguments, are ignored.
pub(super) struct LargeCountCheck(pub(super) bool);

impl Sink for LargeCountCheck {
    fn integer(&mut self, _: i64) {}
    fn integers(&mut self, values: &[i64]) {
        // A value fits in an int exactly if the unsigned sum of the value and 2^31 is below 2^32.
        let bits = values.iter().fold(0u64, |m, &v| m | v.wrapping_add(1 << 31) as u64);
        self.0 |= bits >> 32 != 0;
    }
    fn addresses(&mut self, _: &[i64]) {}
    fn large_counts(&mut self, _: &[i64]) {}
}
