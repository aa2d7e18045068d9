//! Small layouts with which the benchmark program `judge` checks the bytes that each kernel moves.
//! Every kernel moves at least one of them, except the kernels `pieces_far`, whose layouts extend
//! over more than 4 GiB.

use ddtc::internal::datatype::Datatype;
use ddtc_gpu::selection::MAX_OUTER_LOOPS;
use ddtc_gpu::strided::MAX_DIVISIONS;

/// Distances in bytes from an aligned address to the first packed byte of a transfer. With these
/// distances, a layout that allows words of 16 bytes is moved in words of 16, 8, 4, 2 and 1 bytes.
pub(crate) const SKEWS: [u64; 5] = [0, 8, 4, 2, 1];

/// A layout, and the number of its instances.
pub(crate) type Instances = (Datatype, u64);

/// Returns the layouts with which the kernels are checked. Each layout is meant to be moved once
/// for each distance in [`SKEWS`]. Then every kernel moves at least one layout, except the kernels
/// `pieces_far`. A layout for these kernels extends over more than 4 GiB.
pub(crate) fn layouts() -> Vec<Instances> {
    let mut all = Vec::new();
    for unit in [1, 2, 4, 8, 16, 32] {
        for backwards in [false, true] {
            for loops in 0..MAX_DIVISIONS {
                all.push((looped(contiguous(unit), unit, loops, backwards), 5));
            }
            for loops in 0..MAX_OUTER_LOOPS {
                let places = [0, 3, 5, 9].map(|at| at * unit);
                let list = hindexed(&[unit; 4], &places);
                all.push((looped(list, 10 * unit, loops, backwards), 2));
            }
        }
        if unit <= 16 {
            // 37 columns of a matrix with 33 rows.
            let column = Datatype::hvector(33, 1, 40 * unit, &contiguous(unit)).expect("a datatype");
            all.push((Datatype::resized(0, unit, &column).expect("a datatype"), 37));
        }
    }
    for backwards in [false, true] {
        for loops in 0..MAX_OUTER_LOOPS {
            let (lengths, places) = ([16, 48, 800, 16_000], [0, 32, 96, 1008]);
            all.push((looped(hindexed(&lengths, &places), 17_024, loops, backwards), 1));
        }
    }
    all
}

fn contiguous(bytes: i64) -> Datatype {
    Datatype::contiguous(bytes, &Datatype::of::<u8>()).expect("a datatype")
}

fn hindexed(lengths: &[i64], places: &[i64]) -> Datatype {
    Datatype::hindexed(lengths, places, &Datatype::of::<u8>()).expect("a datatype")
}

/// Returns a datatype with `loops` nested loops around the datatype `t`, which extends over `span`
/// bytes. The strides are multiples of `span`, and are chosen so that no two loops can be merged.
/// If `backwards` is true, the outermost of the `loops` loops has a negative stride. If `loops` is
/// 0, the loop over the instances has a negative stride instead.
fn looped(mut t: Datatype, span: i64, loops: usize, backwards: bool) -> Datatype {
    let mut stride = 2 * span;
    for i in 1..=loops {
        let sign = if backwards && i == loops { -1 } else { 1 };
        t = Datatype::hvector(2, 1, sign * stride, &t).expect("a datatype");
        stride = 3 * stride + span;
    }
    let sign = if backwards && loops == 0 { -1 } else { 1 };
    Datatype::resized(0, sign * stride, &t).expect("a datatype")
}
