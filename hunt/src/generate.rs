//! Generation of cases for a library. About half of the cases come from the generator of
//! [`ddtc::internal::fuzzing`] and from the corpus. The other half are small trees with corner
//! cases of the standard, called corners.
//!
//! A corner is a shape that libraries are known to handle wrongly or by separate code: strides of
//! -1, 0 and 1, empty datatypes, markers, negative extents, elements of 16 bytes, elements of two
//! parts, deep trees, long tables, and numbers above 2^31. Each case is a function of the seed, the
//! case number and the abilities of the library.

use ddtc::internal::datatype::{Combiner, Datatype, Named, Order};
use ddtc::internal::fuzzing::{Budget, Choices, datatype, instances, rebuilt};
use ddtc::internal::methods::*;

use crate::library::Library;

/// The library for which cases are generated. A case uses only constructors and types that this
/// library has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Means<'l> {
    pub(crate) library: &'l Library,
}

/// Returns the case with the number `case`: a datatype that the library of `means` can build, and a
/// number of instances. Returns none if the library cannot build the datatype.
pub(crate) fn case(means: Means<'_>, seed: u64, case: u64) -> Option<(Datatype, u64)> {
    let mut c = Choices::from_seed(
        seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ case.wrapping_mul(0x9e6c_63d0_876a_68ed) ^ 0x6875_6e74,
    );
    let (t, mut count) = match c.below(16) {
        // The cases with deep trees come early, with every depth at which libraries have a limit,
        // because some faults depend on the depth alone. But they are not the very first cases: a
        // case that ends a library costs as much time as thousands of other cases.
        _ if (NESTS..NESTS + DEPTHS.len() as u64).contains(&case) => {
            let leaf = Datatype::named(c.pick(&LEAVES));
            (deep(&mut c, leaf, DEPTHS[(case - NESTS) as usize])?, 1)
        }
        0..=6 => (datatype(&mut c, &Budget::small()), instances(&mut c)),
        7 => {
            let entries = corpus();
            let (t, count) = &entries[c.below(entries.len() as u64) as usize];
            (t.clone(), *count)
        }
        _ => (corner(&mut c, case > NESTS)?, c.pick(&[1, 1, 2, 3, 17, 0])),
    };
    if t.size().max(t.extent().saturating_abs()) > 4 << 10 {
        count = count.min(2);
    }
    let large = c.chance(32);
    Some((means.flagged(&means.buildable(&t)?, large)?, count))
}

/// Returns the entries of the corpus that are small enough to be used often.
fn corpus() -> &'static [(Datatype, u64)] {
    static ENTRIES: std::sync::OnceLock<Vec<(Datatype, u64)>> = std::sync::OnceLock::new();
    ENTRIES.get_or_init(|| {
        let entries =
            ddtc::internal::corpus::corner().into_iter().chain(ddtc::internal::corpus::application());
        let small = entries.filter(|e| e.datatype.size() <= 4 << 10 && e.datatype.arguments() <= 1 << 12);
        small.map(|e| (e.datatype, e.count.min(3))).collect()
    })
}

impl Means<'_> {
    /// Returns `t` changed so that the library can build it: `bounds` nodes become resized ones,
    /// legacy constructors become their successors, and types and constructors that the library
    /// lacks are replaced by another type. Returns none if ddtc cannot make the changed datatype.
    pub(crate) fn buildable(self, t: &Datatype) -> Option<Datatype> {
        let library = self.library;
        let spare = || Datatype::named(Named::Int);
        rebuilt(t, &mut |node, combiner| {
            let made = match combiner {
                Combiner::Named(n) if library.named(n).is_none() => spare(),
                // The standard defines packing units only for whole buffers (MPI 5.0, section 5.2),
                // and not for members of a datatype. So `MPI_BYTE` takes the place of `MPI_PACKED`.
                Combiner::Named(Named::Packed) => Datatype::named(Named::Byte),
                Combiner::Bounds { lb, extent, oldtype } => Datatype::resized(lb, extent, &oldtype).ok()?,
                Combiner::ValueIndex { .. } if !library.has_value_index() => spare(),
                Combiner::F90Real { .. } | Combiner::F90Complex { .. } | Combiner::F90Integer { .. }
                    if !library.has_kinds() =>
                {
                    spare()
                }
                // Each Fortran kind stands for a named type. If the library lacks that named type,
                // it lacks the kind too, and another type takes the place of the kind.
                Combiner::F90Real { .. } | Combiner::F90Complex { .. } => match node.expansion()?.basic() {
                    Some(n) if library.named(n).is_some() => node.clone(),
                    _ => spare(),
                },
                Combiner::Hvector { count, blocklength, stride, oldtype, .. } => {
                    Datatype::hvector(count, blocklength, stride, &oldtype).ok()?
                }
                Combiner::Hindexed { blocklengths, displacements, oldtype, .. } => {
                    Datatype::hindexed(&blocklengths, &displacements, &oldtype).ok()?
                }
                Combiner::Struct { blocklengths, displacements, types, .. } => {
                    Datatype::structure(&blocklengths, &displacements, &types).ok()?
                }
                combiner => Datatype::new(combiner).ok()?,
            };
            Some(made)
        })
    }

    /// Returns `t` with the large-count variant of every constructor if `large` is true and the
    /// library has these variants. Otherwise returns `t` unchanged, or none if `t` needs
    /// large-count constructors and the library lacks them.
    pub(crate) fn flagged(self, t: &Datatype, large: bool) -> Option<Datatype> {
        let has = self.library.has_large_counts();
        if !has || !large {
            return (has || !t.nodes().any(Datatype::is_large_count)).then(|| t.clone());
        }
        rebuilt(t, &mut |_, combiner| Some(Datatype::new(combiner).ok()?.with_large_count()))
    }
}

/// Basic types at the leaves of corner trees, which are small random datatypes with corner cases of
/// the standard.
const LEAVES: [Named; 16] = [
    Named::Int,
    Named::Char,
    Named::Double,
    Named::Short,
    Named::Byte,
    Named::LongDouble,
    Named::Real16,
    Named::Integer16,
    Named::Complex32,
    Named::DoubleComplex,
    Named::DoubleInt,
    Named::ShortInt,
    Named::LongInt,
    Named::LongDoubleInt,
    Named::Int64,
    Named::TwoInt,
];

/// Strides of random constructors. Many are near 0, because MPI libraries often have separate code
/// for strides of -1, 0 and 1.
const STRIDES: [i64; 12] = [-1, 0, 1, -1, 2, -2, 3, 4, 8, -8, 16, 7];

// Returns a random corner tree, which is a small datatype with corner cases of the standard. Deep
// trees and numbers above 2^31 end or hang some libraries, so they are made only if `dear` is true.
fn corner(c: &mut Choices<'_>, dear: bool) -> Option<Datatype> {
    let mut t = Datatype::named(c.pick(&LEAVES));
    match c.below(12) {
        0 if dear => {
            let levels = c.pick(&DEPTHS);
            return deep(c, t, levels);
        }
        1 => return table(c, &t),
        2 if dear => return huge(c, &t),
        _ => {}
    }
    for _ in 0..c.within(1, 4) {
        let next = step(c, &t).ok()?;
        if next.size() > 4 << 10 || next.extent().saturating_abs() > 64 << 10 || next.true_extent() > 64 << 10
        {
            break;
        }
        t = next;
    }
    Some(t)
}

fn few(c: &mut Choices<'_>) -> i64 {
    c.pick(&[1, 2, 3, 2, 5, 0, 8, 17])
}

// Returns `t` inside one random constructor with small arguments.
fn step(c: &mut Choices<'_>, t: &Datatype) -> ddtc::Result<Datatype> {
    let stride = c.pick(&STRIDES);
    match c.below(16) {
        0 => Datatype::contiguous(few(c), t),
        1 | 2 => Datatype::vector(few(c), c.pick(&[1, 1, 2, 0, 3]), stride, t),
        3 | 4 => {
            let by = c.pick(&[1, t.size().max(1), t.extent()]);
            Datatype::hvector(few(c), c.pick(&[1, 1, 2, 0]), stride.saturating_mul(by), t)
        }
        5 => {
            let n = c.within(0, 4);
            let lengths: Vec<i64> = (0..n).map(|_| c.pick(&[1, 0, 2, 1])).collect();
            let at: Vec<i64> = (0..n).map(|_| c.within(-9, 20)).collect();
            Datatype::indexed(&lengths, &at, t)
        }
        6 => {
            let n = c.within(0, 4);
            let lengths: Vec<i64> = (0..n).map(|_| c.pick(&[1, 0, 2, 1])).collect();
            let at: Vec<i64> = (0..n).map(|i| i * 24 + c.pick(&[0, 1, 3, -40, 8])).collect();
            Datatype::hindexed(&lengths, &at, t)
        }
        7 => {
            let at: Vec<i64> = (0..c.within(0, 5)).map(|i| 3 * i + c.within(-1, 1)).collect();
            Datatype::indexed_block(c.pick(&[1, 1, 2, 0]), &at, t)
        }
        8 => {
            let at: Vec<i64> = (0..c.within(0, 5)).map(|i| i * 40 + c.pick(&[0, 1, -2])).collect();
            Datatype::hindexed_block(c.pick(&[1, 1, 2, 0]), &at, t)
        }
        9..=11 => members(c, t),
        12 => {
            let (size, sub) = (c.within(1, 6), c.within(1, 3));
            let (size, sub) = (size.max(sub), sub);
            let start = c.within(0, size - sub);
            Datatype::subarray(&[size, 3], &[sub, 2], &[start, 1], c.pick(&[Order::C, Order::Fortran]), t)
        }
        13 => {
            let lb = c.pick(&[0, 0, -4, 3, -16, t.lb()]);
            let extent = c.pick(&[t.extent(), -t.extent(), 0, -8, 1, 4, 40, t.true_extent()]);
            Datatype::resized(lb, extent, t)
        }
        14 => {
            // There may be more processes than elements, so that some processes own no element of
            // this distributed array.
            let kind = c.pick(&[ddtc::Distribution::Block, ddtc::Distribution::Cyclic]);
            let (size, n) = (c.within(1, 4), c.within(1, 6));
            let rank = c.within(0, size - 1);
            Datatype::darray(size, rank, &[n], &[kind], &[None], &[size], Order::C, t)
        }
        _ => Ok(t.dup()),
    }
}

/// Returns a structure of random members. Each member is `t`, an empty member, a member with
/// markers, or another type.
fn members(c: &mut Choices<'_>, t: &Datatype) -> ddtc::Result<Datatype> {
    let empty = Datatype::contiguous(0, t)?;
    let other = Datatype::named(c.pick(&LEAVES));
    let marked = Datatype::resized(-8, 64, &other)?;
    let hollow = Datatype::resized(c.pick(&[0, -16]), 32, &empty)?;
    let n = c.within(1, 4);
    let (mut types, mut lengths, mut at) = (Vec::new(), Vec::new(), Vec::new());
    let mut next = c.pick(&[0, 0, 8, -24, 1]);
    for _ in 0..n {
        let member = match c.below(8) {
            0 => empty.clone(),
            1 => hollow.clone(),
            2 => marked.clone(),
            3 | 4 => other.clone(),
            _ => t.clone(),
        };
        at.push(next);
        next += member.true_extent() + c.pick(&[0, 0, 4, 8, 1, 100]);
        lengths.push(c.pick(&[1, 1, 1, 2, 0]));
        types.push(member);
    }
    Datatype::structure(&lengths, &at, &types)
}

/// Number of the first case with a deep tree. Random corner trees that are deep or have numbers
/// above 2^31 also come only after this case.
const NESTS: u64 = 400;

/// Depths of the deep trees, in constructors.
const DEPTHS: [u64; 7] = [40, 16, 8, 33, 20, 17, 15];

/// Returns a tree of `levels` nested constructors. The first few of these constructors contain
/// their child twice.
fn deep(c: &mut Choices<'_>, mut t: Datatype, levels: u64) -> Option<Datatype> {
    let doubled = c.below(8);
    for i in 0..levels {
        let next = match c.below(5) {
            _ if i < doubled => {
                let stride = t.true_extent() + c.within(0, 3) * t.alignment();
                Datatype::hvector(2, 1, stride, &t)
            }
            0 => Datatype::vector(1, 1, 1, &t),
            1 => Datatype::hindexed(&[1], &[c.pick(&[0, 8, 4])], &t),
            2 => Datatype::structure(&[1], &[0], std::slice::from_ref(&t)),
            3 => Datatype::hindexed_block(1, &[8], &t),
            _ => Ok(t.dup()),
        };
        t = next.ok()?;
    }
    Some(t)
}

/// Returns a datatype with a list of up to 257 displacements of blocks.
fn table(c: &mut Choices<'_>, t: &Datatype) -> Option<Datatype> {
    let n = c.pick(&[64, 255, 256, 257]);
    let n = n.min(4096 / t.size().max(1));
    let at: Vec<i64> = (0..n).map(|i| 3 * i + c.within(0, 1)).collect();
    match c.below(2) {
        0 => Datatype::indexed_block(1, &at, t).ok(),
        _ => Datatype::indexed(&vec![1; at.len()], &at, t).ok(),
    }
}

/// Returns a datatype with numbers around 2^31, so that sizes and bounds do not fit an int. Its
/// memory is never touched.
fn huge(c: &mut Choices<'_>, t: &Datatype) -> Option<Datatype> {
    let edge = (1i64 << 31) + c.within(-2, 2);
    let fits = edge.min(i64::from(i32::MAX));
    let n = if c.chance(128) { edge } else { fits };
    let made = match c.below(6) {
        0 => Datatype::contiguous(n, t),
        1 => Datatype::vector(n, 1, 2, t),
        2 => Datatype::hvector(2, n, c.pick(&[1 << 33, -(1 << 33), edge]), t),
        3 => Datatype::hindexed(&[n, 1], &[0, 1 << 40], t),
        4 => Datatype::structure(&[n, 1], &[-(1 << 35), 1 << 35], &[t.clone(), Datatype::named(Named::Char)]),
        _ => Datatype::resized(-(1 << 40), 1 << 41, t),
    }
    .ok()?;
    if c.chance(64) { step(c, &made).ok() } else { Some(made) }
}
