//! Check of external32: compiled code, the executor of values (`apply`) and evaluated plans must
//! give the same results as the reference interpreter, which shares no code with them.

use std::ops::Range;

use super::case::{Case, Check, Mismatch, ensure, patterned, seeds};
use super::choices::Choices;
use super::emitters::Emitters;
use super::guard::{Edge, Rig, Run, Subject};
use crate::code::emit::{self, Emitter, X64};
use crate::committed::CommittedOperation;
use crate::datatype::Datatype;
use crate::engine::Engine;
use crate::error::ErrorClass;
use crate::exec::interp::external32;
use crate::kind::{Direction, Kind, Operation};
use crate::lower::External32;
use crate::nest::{LoopNest, Normal, Value};
use crate::plan::{self, Plan};
use crate::target::{Arch, Level, Target};
use crate::{interval, legalize, lower, normalize, schedule};

/// A case in external32: a stream whose values all fit, and user memory before and after the stream
/// was unpacked.
pub(super) struct Values<'a> {
    case: &'a Case,
    nest: LoopNest<Normal, Value>,
    moved: i64,
    stream: Vec<u8>,
    before: Vec<u8>,
    after: Vec<u8>,
    /// The stream that results if the user memory `after` is packed again. If values do not fit, it
    /// ends before the first one. It may differ from `stream` where entries overlap.
    packed: Vec<u8>,
}

impl<'a> Values<'a> {
    /// Returns the external32 case of the instances of `case`, with the results that the definition
    /// requires.
    pub(super) fn new(case: &'a Case) -> Check<Values<'a>> {
        let (t, count) = (case.datatype(), case.count());
        let lowered = lower::lower(t, External32).map_err(Mismatch::error("lower"))?;
        lowered.verify().map_err(Mismatch::error("lower"))?;
        let normal = normalize::normalize(&lowered, t.arguments()).map_err(Mismatch::error("normalize"))?;
        normal.nest.verify().map_err(Mismatch::error("normalize"))?;
        let stream = patterned(seeds::PACKED, normal.nest.size() as usize * count as usize);
        let before = case.images(Direction::Unpack)[0][0].to_vec();
        let (mut after, origin) = (before.clone(), case.low().wrapping_neg() as usize);
        // No value is wider in external32 than in memory, so every value of the stream fits.
        let fit = external32::unpack(t, count, &stream, &mut after, origin);
        ensure(fit.is_ok(), "interp", || format!("value {fit:?} of a stream does not fit"))?;
        let (packed, fit) = external32::pack(t, count, &after, origin);
        // All unpacked values can be packed again, unless entries overlap: bytes of several values
        // may then form a value that does not fit.
        ensure(case.overlaps() || fit.is_ok() && packed.len() == stream.len(), "interp", || {
            format!("{} bytes of {} packed again: {fit:?}", packed.len(), stream.len())
        })?;
        Ok(Values { case, nest: normal.nest, moved: normal.origin, stream, before, after, packed })
    }

    /// Returns the directions in which all values fit.
    fn directions(&self) -> impl Iterator<Item = Direction> {
        let packs = self.packed.len() == self.stream.len();
        Direction::BOTH.into_iter().filter(move |&d| packs || d == Direction::Unpack)
    }

    /// Returns `[user memory, packed stream]` before the call in `direction`, and then both after
    /// it.
    fn images(&self, direction: Direction) -> [[&[u8]; 2]; 2] {
        match direction {
            Direction::Pack => [[&self.after, &self.stream], [&self.after, &self.packed]],
            Direction::Unpack => [[&self.before, &self.stream], [&self.after, &self.stream]],
        }
    }

    /// Checks the plans for a target, evaluated one operation at a time, and that every emitter can
    /// generate code for them. If the schedule refuses the nest for a direction, that direction is
    /// skipped.
    pub(super) fn plans(&self, target: Target, emitters: Emitters<'_>) -> Check {
        for direction in self.directions() {
            let kind = Kind { direction, operation: Operation::External32 };
            let Ok(plan) = schedule::schedule(&self.nest, kind, target) else { continue };
            let level = Some(target.level());
            let at = |stage| move |e| Mismatch::error(stage)(e).with_direction(direction, level);
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
        }
        Ok(())
    }

    fn plan<P: plan::Phase>(&self, stage: &'static str, plan: &Plan<P>) -> Check {
        let direction = plan.direction();
        let [[user, packed], want] = self.images(direction);
        let (mut user, mut packed) = (user.to_vec(), packed.to_vec());
        let origin = self.moved.wrapping_sub(self.case.low()) as usize;
        plan.eval(self.case.count(), &mut user, origin, &mut packed);
        ensure([&user[..], &packed] == want, stage, || format!("other bytes than by definition\n{plan}"))
            .map_err(|m| m.with_direction(direction, Some(plan.target().level())))
    }

    /// Checks the conversions of an engine: by whole calls, with an inaccessible page before or
    /// after the buffers; by ranges that begin and end between values; and with values that do not
    /// fit.
    pub(super) fn engine(
        &self,
        stage: &'static str,
        engine: &Engine,
        rig: &mut Rig,
        c: &mut Choices<'_>,
    ) -> Check {
        let committed = engine.commit(self.case.datatype()).map_err(Mismatch::error("commit"))?;
        let applied = committed.for_operation(Operation::External32).map_err(Mismatch::error("commit"))?;
        let level = Some(engine.config().level);
        let pieces = pieces(&self.nest, self.case, c);
        for direction in self.directions() {
            for (edge, pieces) in [(Edge::Front, None), (Edge::Back, None), (Edge::Back, Some(&pieces[..]))] {
                self.guarded(stage, &applied, rig, (direction, edge), pieces)
                    .map_err(|m| m.with_direction(direction, level))?;
            }
        }
        self.unfit(stage, &applied).map_err(|m| m.with_direction(Direction::Pack, level))
    }

    fn guarded(
        &self,
        stage: &'static str,
        applied: &CommittedOperation,
        rig: &mut Rig,
        (direction, edge): (Direction, Edge),
        pieces: Option<&[Range<usize>]>,
    ) -> Check {
        let [[user, packed], [want_user, want_packed]] = self.images(direction);
        let run = Run {
            direction,
            count: self.case.count(),
            user,
            low: self.case.low(),
            mapped: self.case.mapped(),
            packed,
            pieces,
            edge,
        };
        let (user, packed) = rig.run(Subject::Applied(applied), &run);
        ensure(user == want_user && packed == want_packed, stage, || {
            let first = |a: &[u8], b: &[u8]| a.iter().zip(b).position(|(a, b)| a != b);
            let (user, packed) = (first(&user, want_user), first(&packed, want_packed));
            let how = applied.schedule(direction);
            format!(
                "external32 differs at user byte {user:?}, packed byte {packed:?}; pieces {pieces:?}; {how}"
            )
        })
    }

    /// Packs arbitrary user memory: the values before the first one that does not fit are packed,
    /// and the error names that value.
    fn unfit(&self, stage: &'static str, applied: &CommittedOperation) -> Check {
        let (t, count): (&Datatype, u64) = (self.case.datatype(), self.case.count());
        let [[source, _], _] = self.case.images(Direction::Pack);
        let (low, mut packed) = (self.case.low(), vec![0; self.stream.len()]);
        let (want, fit) = external32::pack(t, count, source, low.wrapping_neg() as usize);
        if low > source.len() as i64 + (1 << 20) {
            // The slice for a pack must begin at displacement 0, so it would be very large here.
            return Ok(());
        }
        let ahead = vec![0; low.max(0) as usize];
        let slice = [&ahead[..], source].concat();
        let done = applied.pack(&slice, (-low).max(0) as usize, count, &mut packed);
        let same = packed[..want.len()] == want[..] && packed[want.len()..].iter().all(|&byte| byte == 0);
        let reported = match (&done, fit) {
            (Ok(n), Ok(())) => *n == want.len(),
            (Err(e), Err(i)) => {
                e.class() == ErrorClass::Conversion && e.value().starts_with(&format!("{i} ("))
            }
            _ => false,
        };
        ensure(same && reported, stage, || {
            format!("packing any bytes: {done:?}, must be {fit:?}; bytes same: {same}")
        })
    }
}

/// Returns pieces of the external32 stream of `case`, cut between values of `nest`. The pieces are
/// in reverse order, unless entries overlap: then the order decides which entry wins.
pub(super) fn pieces(nest: &LoopNest<Normal, Value>, case: &Case, c: &mut Choices<'_>) -> Vec<Range<usize>> {
    let count = case.count();
    let n = nest.size() as u64 * count;
    let mut cuts: Vec<u64> = (0..1 + c.below(4)).map(|_| c.below(n + 1)).collect();
    cuts.iter_mut().filter(|at| **at < n).for_each(|at| *at = interval::boundary(nest, count, *at));
    cuts.extend([0, n]);
    cuts.sort_unstable();
    let mut pieces: Vec<_> = cuts.windows(2).map(|w| w[0] as usize..w[1] as usize).collect();
    if !case.overlaps() {
        pieces.reverse();
    }
    pieces
}

/// Checks by evaluation the plans that the stages of the compiler make for external32, on one
/// target. No engine runs.
pub(super) fn stages(case: &Case, target: Target) -> Check {
    Values::new(case)?.plans(target, Emitters::None)
}

/// Checks external32 by the plans of all targets of `levels` and by all `engines`.
pub(super) fn check(
    case: &Case,
    engines: &[(&'static str, &Engine)],
    levels: &[Level],
    emitters: Emitters<'_>,
    rig: &mut Rig,
    c: &mut Choices<'_>,
) -> Check {
    let values = Values::new(case)?;
    for target in Target::available().filter(|t| levels.contains(&t.level())) {
        values.plans(target, emitters)?;
    }
    engines.iter().try_for_each(|(stage, engine)| values.engine(stage, engine, rig, c))
}
