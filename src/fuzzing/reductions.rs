//! Check of reductions: compiled code, the executor of values (`apply`) and evaluated plans must
//! give the same results as the reference interpreter, which shares no code with them, also where
//! entries overlap.

use std::ops::Range;

use super::case::{Case, Check, Mismatch, ensure, patterned, seeds};
use super::choices::Choices;
use super::emitters::Emitters;
use super::guard::{Edge, Rig, Run, Subject};
use super::shrink::retyped;
use super::values;
use crate::code::emit::{self, Emitter, X64};
use crate::committed::CommittedOperation;
use crate::datatype::{Class, Datatype, Named};
use crate::engine::Engine;
use crate::error::ErrorClass;
use crate::exec::interp::reduce::{self, Loose};
use crate::kind::{Direction, Kind, Op, Operation};
use crate::lower::Reduced;
use crate::nest::{LoopNest, Normal, Value};
use crate::plan::{self, Plan};
use crate::target::{Arch, Level, Target};
use crate::{legalize, lower, normalize, schedule};

/// Maximum number of bytes of user memory of a datatype that [`chosen`] makes by replacing the
/// basic types of another one.
const MAX_USER_BYTES: i64 = 1 << 20;

/// A case under a reduction: the packed stream, user memory before and after, and the bytes of user
/// memory whose bits are not defined.
struct Reduction {
    op: Op,
    case: Case,
    nest: LoopNest<Normal, Value>,
    moved: i64,
    stream: Vec<u8>,
    before: Vec<u8>,
    after: Vec<u8>,
    loose: Loose,
}

/// Returns a type with the structure of `t`, and an operation that is defined on this type. If none
/// is found, returns `t` and an operation that is defined on any type.
pub(super) fn chosen(t: &Datatype, count: u64, c: &mut Choices<'_>) -> (Datatype, Op) {
    let anything = c.pick(&[Op::Replace, Op::NoOp]);
    let op = c.pick(&Op::ALL);
    let taken: Vec<Named> = Named::ALL.iter().copied().filter(|&n| op.takes(n)).collect();
    let new = match c.below(4) {
        // The type as it is.
        0 => Some(t.clone()),
        // Replace every basic type by a type of the same size on which the operation is defined. If
        // there is none of that size, take a type of another size on which it is defined.
        1 => {
            let turn = c.below(97) as usize;
            retyped(t, &|named| {
                let same: Vec<Named> = taken.iter().copied().filter(|n| n.size() == named.size()).collect();
                let list = if same.is_empty() { &taken } else { &same };
                list[(named as usize + turn) % list.len()]
            })
        }
        // Replace all basic types by the same one.
        _ => {
            let one = c.pick(&taken);
            retyped(t, &|_| one)
        }
    };
    let small = |t: &Datatype| {
        let (low, high) = (i128::from(t.true_lb()), i128::from(t.true_ub()));
        high - low + i128::from(t.extent()).abs() * i128::from(count) < i128::from(MAX_USER_BYTES)
    };
    match new.filter(|new| small(new) && new.check_reduction(op).is_ok()) {
        Some(new) => (new, op),
        None => (t.clone(), anything),
    }
}

/// Returns random bytes. If `tame` is a size, values of this size that follow each other without
/// gaps become numbers of similar magnitude. Sums of such numbers are rounded, so they show whether
/// code adds in the same order and precision as the reference interpreter. Of two random numbers,
/// one is usually so much smaller that adding it changes nothing.
fn bytes(seed: u64, len: usize, tame: Option<usize>) -> Vec<u8> {
    let mut bytes = patterned(seed, len);
    if let Some(size) = tame {
        for last in bytes.chunks_exact_mut(size).filter_map(|value| value.last_mut()) {
            *last = *last & 0x80 | 0x3f;
        }
    }
    bytes
}

impl Reduction {
    /// Returns the case of `count` instances of `t` under the reduction `op`. Its expected result
    /// is computed from the definition of the operation. Also checks the lowered and the normal
    /// nest.
    fn new(t: &Datatype, op: Op, count: u64, tame: bool) -> Check<Reduction> {
        let case = Case::new(t, count)?;
        let lowered = lower::lower(t, Reduced(op)).map_err(Mismatch::error("lower"))?;
        lowered.verify().map_err(Mismatch::error("lower"))?;
        let normal = normalize::normalize(&lowered, t.arguments()).map_err(Mismatch::error("normalize"))?;
        normal.nest.verify().map_err(Mismatch::error("normalize"))?;
        ensure(normal.nest.size() == t.size(), "lower", || "another packed size than that of bytes".into())?;
        let size = t.type_map().next().map(|(basic, _)| match basic.class() {
            Class::Complex => basic.size() as usize / 2,
            _ => basic.size() as usize,
        });
        let size = size.filter(|_| tame);
        let stream = bytes(seeds::PACKED, case.packed_len(), size);
        let before = bytes(seeds::BEFORE, case.mapped().len(), size);
        let mut after = before.clone();
        let loose = reduce::unpack(op, t, count, &stream, &mut after, case.low().wrapping_neg() as usize);
        Ok(Reduction { op, case, nest: normal.nest, moved: normal.origin, stream, before, after, loose })
    }

    fn kind(&self) -> Kind {
        Kind { direction: Direction::Unpack, operation: Operation::Reduce(self.op) }
    }

    /// Returns the index of the first byte of user memory that differs from the definition, except
    /// for bytes whose bits are not defined.
    fn wrong(&self, user: &[u8]) -> Option<usize> {
        (0..user.len()).find(|&i| user[i] != self.after[i] && !self.loose[i])
    }

    /// Checks the plan for a target, evaluated one operation at a time, and that every emitter can
    /// generate code for it. If the schedule refuses the nest, there is no plan to check.
    fn plans(&self, target: Target, emitters: Emitters<'_>) -> Check {
        let Ok(plan) = schedule::schedule(&self.nest, self.kind(), target) else { return Ok(()) };
        let at = |stage| {
            move |e| Mismatch::error(stage)(e).with_direction(Direction::Unpack, Some(target.level()))
        };
        plan.verify().map_err(at("schedule"))?;
        self.plan("schedule", &plan)?;
        let legal = legalize::legalize(&plan, 8).map_err(at("legalize"))?;
        legal.verify().map_err(at("legalize"))?;
        self.plan("legalize", &legal)?;
        let templates = target.on(Arch::X86_64).ok().and_then(X64::new);
        let templates = templates.as_ref().map(|x64| x64 as &dyn Emitter);
        for emitter in emitters.with_templates(templates) {
            emit::emit(emitter, &legal).map_err(at("emit"))?;
        }
        Ok(())
    }

    fn plan<P: plan::Phase>(&self, stage: &'static str, plan: &Plan<P>) -> Check {
        let (mut user, mut packed) = (self.before.clone(), self.stream.clone());
        let origin = self.moved.wrapping_sub(self.case.low()) as usize;
        plan.eval(self.case.count(), &mut user, origin, &mut packed);
        let wrong = self.wrong(&user);
        ensure(wrong.is_none() && packed == self.stream, stage, || {
            format!("{}: another byte {wrong:?} than by definition\n{plan}", self.op)
        })
        .map_err(|m| m.with_direction(Direction::Unpack, Some(plan.target().level())))
    }

    /// Checks the reductions of an engine: by whole calls, with an inaccessible page before or
    /// after the buffers; by ranges that begin and end between values; and that packing is refused.
    fn engine(&self, stage: &'static str, engine: &Engine, rig: &mut Rig, c: &mut Choices<'_>) -> Check {
        let committed = engine.commit(self.case.datatype()).map_err(Mismatch::error("commit"))?;
        let applied =
            committed.for_operation(Operation::Reduce(self.op)).map_err(Mismatch::error("commit"))?;
        let level = Some(engine.config().level);
        let pieces = values::pieces(&self.nest, &self.case, c);
        for (edge, pieces) in [(Edge::Front, None), (Edge::Back, None), (Edge::Back, Some(&pieces[..]))] {
            self.guarded(stage, &applied, rig, edge, pieces)
                .map_err(|m| m.with_direction(Direction::Unpack, level))?;
        }
        let refused = applied.pack(&[], 0, 0, &mut []);
        ensure(refused.is_err_and(|e| e.class() == ErrorClass::Op), stage, || "packed".into())
    }

    fn guarded(
        &self,
        stage: &'static str,
        applied: &CommittedOperation,
        rig: &mut Rig,
        edge: Edge,
        pieces: Option<&[Range<usize>]>,
    ) -> Check {
        let run = Run {
            direction: Direction::Unpack,
            count: self.case.count(),
            user: &self.before,
            low: self.case.low(),
            mapped: self.case.mapped(),
            packed: &self.stream,
            pieces,
            edge,
        };
        let (user, packed) = rig.run(Subject::Applied(applied), &run);
        let wrong = self.wrong(&user);
        ensure(wrong.is_none() && packed == self.stream, stage, || {
            let how = applied.schedule(Direction::Unpack);
            format!("{} differs at user byte {wrong:?}; pieces {pieces:?}; {how}", self.op)
        })
    }
}

/// Checks by evaluation the plan that the stages of the compiler make for a reduction on one
/// target. The reduction is on the type of `case`, or on a type with the same structure and other
/// basic types. No engine runs.
pub(super) fn stages(case: &Case, target: Target, c: &mut Choices<'_>) -> Check {
    let (t, op) = chosen(case.datatype(), case.count(), c);
    let judged =
        Reduction::new(&t, op, case.count(), c.chance(128)).and_then(|r| r.plans(target, Emitters::None));
    judged.map_err(|m| named(m, &t, op))
}

fn named(mut mismatch: Mismatch, t: &Datatype, op: Op) -> Mismatch {
    mismatch.detail = format!("{op} on\n{t}\n{}", mismatch.detail);
    mismatch
}

/// Checks a reduction by the plans of all targets of `levels` and by all `engines`. The reduction
/// is on the type of `case`, or on a type with the same structure and other basic types.
pub(super) fn check(
    case: &Case,
    engines: &[(&'static str, &Engine)],
    levels: &[Level],
    emitters: Emitters<'_>,
    rig: &mut Rig,
    c: &mut Choices<'_>,
) -> Check {
    let (t, op) = chosen(case.datatype(), case.count(), c);
    let tame = c.chance(128);
    let mut all = || {
        let reduction = Reduction::new(&t, op, case.count(), tame)?;
        for target in Target::available().filter(|t| levels.contains(&t.level())) {
            reduction.plans(target, emitters)?;
        }
        engines.iter().try_for_each(|(stage, engine)| reduction.engine(stage, engine, rig, c))
    };
    all().map_err(|m| named(m, &t, op))
}
