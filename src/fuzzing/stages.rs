//! Checks of one datatype that are cheap enough for millions of cases: the stages by evaluation
//! only, or the code of a single engine.
//!
//! [`Oracle`](super::Oracle) checks everything about a datatype. Here each case has one target and
//! one leaf operation, which its choices select, and the number of cases makes up for that.

use super::case::{Case, Check, Mismatch, ensure};
use super::choices::Choices;
use super::guard::{Edge, Rig, noted};
use super::oracle::{disjoint, idempotent};
use super::panics::caught;
use super::{direct, reductions, values};
use crate::datatype::Datatype;
use crate::engine::{Config, Engine, Mode};
use crate::kind::Direction;
use crate::lower::Bytes;
use crate::target::{Accesses, Level, Target};
use crate::{legalize, lower, normalize, schedule};

/// Checks byte by byte against the type map what the stages make of `count` instances of `t`.
/// Lowering and normalization are checked in both directions, scheduling and legalization for one
/// target in one direction. Some cases also check external32, a reduction, or the fused nest of a
/// copy to another layout. Nothing is compiled.
///
/// # Errors
/// The first property that does not hold, or a panic in any stage.
pub fn check_stages(t: &Datatype, count: u64, c: &mut Choices<'_>) -> Check {
    caught(|| {
        let case = Case::new(t, count)?;
        let target = target(c);
        bytes(&case, target, c)?;
        match c.below(16) {
            15 => values::stages(&case, target),
            14 => reductions::stages(&case, target, c),
            12 | 13 => direct::stages(&case, target, c),
            _ => Ok(()),
        }
    })
    .unwrap_or_else(|panic| Err(Mismatch::new("panic", panic)))
}

/// Returns any target, whether or not this machine has it. This is possible because plans are only
/// evaluated here, not run.
fn target(c: &mut Choices<'_>) -> Target {
    let target = Target::new(c.pick(&Level::ALL));
    if c.chance(128) { target.with_vbmi() } else { target }
}

/// Checks the stages for one leaf operation: moving bytes unchanged.
fn bytes(case: &Case, target: Target, c: &mut Choices<'_>) -> Check {
    let t = case.datatype();
    let lowered = lower::lower(t, Bytes).map_err(Mismatch::error("lower"))?;
    lowered.verify().map_err(|e| Mismatch::new("lower", format!("{e}\n{lowered}")))?;
    case.nest("lower", &lowered, 0)?;
    let normal = normalize::normalize(&lowered, t.arguments()).map_err(Mismatch::error("normalize"))?;
    let (nest, moved) = (&normal.nest, normal.origin);
    nest.verify().map_err(|e| Mismatch::new("normalize", format!("{e}\n{lowered}\n{nest}")))?;
    case.nest("normalize", nest, moved)?;
    ensure(t.size() == 0 || t.type_map().next().is_some_and(|e| e.1 == moved), "normalize", || {
        format!("origin {moved} is not the displacement of the first entry\n{lowered}\n{nest}")
    })?;
    if normal.unique && c.chance(32) {
        idempotent(nest, t.arguments())?;
    }
    disjoint(case, nest)?;
    // The checks so far found no fault in the nest. Now check its plan in one direction, before and
    // after it is legalized for one width of accesses.
    let direction = c.pick(&Direction::BOTH);
    let Ok(plan) = schedule::schedule(nest, direction, target) else { return Ok(()) };
    let at = |stage| move |e| Mismatch::error(stage)(e).with_direction(direction, Some(target.level()));
    plan.verify().map_err(at("schedule"))?;
    case.plan("schedule", &plan, moved)?;
    let permutes = target.includes(Level::Avx512) && c.chance(128);
    let accesses = Accesses { widest: c.pick(&[8, 16, 32, 64]), permutes };
    let legal = legalize::legalize(&plan, accesses).map_err(at("legalize"))?;
    legal.verify().map_err(at("legalize"))?;
    case.plan("legalize", &legal, moved)
}

/// Engines for all CPU levels of this machine and for all emitters, with small caches.
pub struct Compilers {
    engines: Vec<Engine>,
    rig: Rig,
}

impl Default for Compilers {
    fn default() -> Compilers {
        let levels: Vec<Level> = Level::available().collect();
        let config = |level, native, precompiled| Config {
            mode: Mode::Commit,
            level,
            native,
            precompiled,
            both_directions: true,
            lazy_threshold: 0,
            cache_bytes: 64 << 10,
            ..Config::default()
        };
        // Generating code by templates takes a twentieth of the time that Cranelift takes. So
        // engines with templates appear more often in the list from which a case draws its engine.
        let of = |native, precompiled| {
            levels.iter().map(move |&level| Engine::new(config(level, native, precompiled)))
        };
        let engines = of(true, false).chain(of(true, false)).chain(of(true, true));
        let general = of(false, false).filter(|_| cfg!(feature = "cranelift"));
        Compilers { engines: engines.chain(general).collect(), rig: Rig::default() }
    }
}

impl Compilers {
    /// Commits `t` to one of the engines, and moves `count` instances in both directions, with
    /// buffers that have an inaccessible page at their front or at their back edge. Sometimes
    /// checks two ranges as well.
    ///
    /// # Errors
    /// As [`check_stages`]. An access to an inaccessible page ends the process.
    pub fn check(&mut self, t: &Datatype, count: u64, c: &mut Choices<'_>) -> Check {
        let Compilers { engines, rig } = self;
        let engine = &engines[c.below(engines.len() as u64) as usize];
        let edge = c.pick(&Edge::BOTH);
        let note = format!("; test engines\n; counts {count}\n{t}\n");
        let checked = noted(&note, || {
            caught(|| {
                let case = Case::new(t, count)?;
                let committed = engine.commit(t).map_err(Mismatch::error("commit"))?;
                case.whole("compiled", &committed, rig, edge)?;
                if c.chance(32) {
                    let n = case.packed_len();
                    let cut = c.below(n as u64 + 1) as usize;
                    case.ranges(&committed, rig, &[cut..n, 0..cut], edge)?;
                }
                let fallbacks = engine.counters().fallbacks;
                ensure(fallbacks == 0, "compiled", || format!("{fallbacks} compiles failed"))
            })
        });
        checked.unwrap_or_else(|panic| Err(Mismatch::new("panic", panic)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::{Budget, datatype, instances};

    #[test]
    fn some_random_datatypes() {
        let mut compilers = Compilers::default();
        for seed in 0..3000 {
            let mut c = Choices::from_seed(seed);
            let t = datatype(&mut c, &Budget::tiny());
            let count = instances(&mut c).min(3);
            check_stages(&t, count, &mut c).unwrap_or_else(|m| panic!("{count} of {t}\n{m}"));
            if seed % 8 == 0 {
                compilers.check(&t, count, &mut c).unwrap_or_else(|m| panic!("{count} of {t}\n{m}"));
            }
        }
    }
}
