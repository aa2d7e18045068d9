//! Faults in nests that copy from one layout directly to another, and in the plans of these nests.
//! To judge the result of such a copy, the bytes are packed and unpacked by the type map.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ddtc::internal::exec::interp;
use ddtc::internal::kind::Direction;
use ddtc::internal::nest::{Byte, LoopNest, MemorySide, Phase, Visit};
use ddtc::internal::normalize::{Normalized, normalize};
use ddtc::internal::plan::{self, Plan};
use ddtc::internal::refine::refine;
use ddtc::internal::schedule::schedule;
use ddtc::internal::target::{Level, Target};

use super::nests::{meaning, nest_faults};
use super::plans::plan_faults;
use super::{normal, parse};

/// Pairs of a source layout and a target layout that can be refined into one nest, because their
/// packed streams can be matched. The pairs contain loops, tables on either side, blocks, matrices,
/// and layouts that repeat themselves.
const PAIRS: [[&str; 2]; 6] = [
    ["vector(6, 1, 2, int)", "vector(4, 1, 3, int)"],
    ["indexed_block(2, [0, 5, 9, 30], int)", "vector(4, 2, 5, int)"],
    ["hvector(3, 1, 100, vector(2, 1, 3, int))", "indexed([1, 3, 2], [0, 5, 9], int)"],
    ["resized(0, 32, struct([1, 1, 3], [0, 8, 16], [int, double, float]))", "vector(3, 2, 3, int)"],
    ["contiguous(5, resized(0, 8, vector(4, 1, 6, double)))", "vector(5, 4, 5, double)"],
    ["vector(4, 1, 3, double)", "hvector(2, 2, 24, double)"],
];

/// Number of common periods of both layouts that each test copies. After a common period, both
/// layouts repeat themselves.
const PERIODS: u64 = 3;

struct Judge {
    source: Vec<u8>,
    want: Vec<u8>,
    origins: [i64; 2],
    direction: Direction,
}

impl Judge {
    fn right(&self, run: impl FnOnce(&mut [u8], &mut [u8])) -> bool {
        let (mut source, mut target) = (self.source.clone(), vec![0x55; self.want.len()]);
        let (user, packed) = if self.direction == Direction::Pack {
            (&mut source, &mut target)
        } else {
            (&mut target, &mut source)
        };
        catch_unwind(AssertUnwindSafe(|| run(user, packed))).is_ok()
            && target == self.want
            && source == self.source
    }

    fn nest<P: Phase>(&self, nest: &LoopNest<P, Byte, MemorySide>, origins: [i64; 2]) -> bool {
        self.right(|user, packed| {
            nest.visit(PERIODS, |Visit { at, n, .. }| {
                for i in 0..n as i64 {
                    let u = (origins[0] + at.user + i) as usize;
                    let p = (origins[1] + at.packed + i) as usize;
                    match self.direction {
                        Direction::Pack => packed[p] = user[u],
                        Direction::Unpack => user[u] = packed[p],
                    }
                }
            });
        })
    }

    fn nests<P: Phase>(&self, what: &str, nest: &LoopNest<P, Byte, MemorySide>, origins: [i64; 2]) -> usize {
        assert!(self.nest(nest, origins), "{what}\n{nest}");
        let sound = meaning(nest);
        let mut faults = nest_faults(nest);
        faults.retain(|(_, faulty)| meaning(faulty) != sound);
        for (fault, faulty) in &faults {
            let caught = faulty.verify().is_err() || !self.nest(faulty, origins);
            assert!(caught, "not caught: {fault}\n{what}\n{faulty}");
        }
        faults.len()
    }

    fn plan(&self, plan: &Plan<plan::Scheduled>) -> bool {
        let [user_at, packed_at] = self.origins;
        self.right(|user, packed| plan.eval_between(PERIODS, (user, user_at), (packed, packed_at)))
    }
}

#[test]
fn refine_and_what_follows() {
    let (mut nests, mut plans, mut harmless) = (0, 0, 0);
    for [from, to] in PAIRS {
        let types = [from, to].map(parse);
        let [a, b] = types.each_ref().map(normal);
        for direction in Direction::BOTH {
            let (user, packed) = if direction == Direction::Pack { (&a, &b) } else { (&b, &a) };
            let refined = refine(&user.nest, &packed.nest).unwrap().unwrap();
            // Compute by the type map what a copy of `PERIODS` common periods must do: pack the
            // bytes of these periods from the source, and unpack them into the target. Then judge
            // the refined nest before and after normalization, and its plans.
            let bytes = (refined.period * PERIODS) as usize;
            let spans = types.each_ref().map(|t| {
                let count = bytes.div_ceil(t.size() as usize) as u64;
                (count, (t.true_ub() + (count as i64 - 1) * t.extent()) as usize)
            });
            let source: Vec<u8> = (0..spans[0].1).map(|i| (i * 37 + i / 256) as u8).collect();
            let (mut stream, mut want) = (vec![0; bytes], vec![0x55; spans[1].1]);
            interp::pack_range(&types[0], spans[0].0, &source, 0, 0, &mut stream).unwrap();
            interp::unpack_range(&types[1], spans[1].0, &stream, &mut want, 0, 0).unwrap();
            let origins = [user.origin, packed.origin];
            let Normalized { nest, origin, packed_origin, .. } = normalize(&refined.nest, 100).unwrap();
            let judge =
                Judge { source, want, origins: [origins[0] + origin, origins[1] + packed_origin], direction };
            let what = format!("{direction} {from} to {to}");
            nests += judge.nests(&what, &refined.nest, origins);
            nests += judge.nests(&what, &nest, judge.origins);
            for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
                let plan = schedule(&nest, direction, Target::new(level)).unwrap();
                plan.verify().unwrap();
                assert!(judge.plan(&plan), "{what}\n{plan}");
                for (fault, faulty) in plan_faults(&plan) {
                    // Bytes that a copy moves in excess can be overwritten by a later copy of the
                    // same plan. So a fault in a length may have no effect.
                    if fault.starts_with("length") && faulty.verify().is_ok() && judge.plan(&faulty) {
                        harmless += 1;
                        continue;
                    }
                    let caught = faulty.verify().is_err() || !judge.plan(&faulty);
                    assert!(caught, "not caught: {fault}\n{what}\n{faulty}");
                    plans += 1;
                }
            }
        }
    }
    assert!(
        nests > 300 && plans > 300 && harmless * 8 < plans,
        "{nests} of nests, {plans} and {harmless} of plans"
    );
}
