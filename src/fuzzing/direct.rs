//! Check of copies from one layout to another: the fused nest, its plans and its kernels must have
//! the same result as packing and unpacking by the type map.

use super::case::{Case, Check, Mismatch, ensure};
use super::choices::Choices;
use super::emitters::Emitters;
use super::generate::{Budget, datatype};
use super::guard::{self, Edge, Rig, Side};
use super::reductions;
use crate::code::emit::{self, Emitter, X64};
use crate::committed::Committed;
use crate::datatype::{Datatype, Named};
use crate::engine::Engine;
use crate::exec::interp::{self, reduce};
use crate::kind::Direction;
use crate::lower::Bytes;
use crate::nest::{self, Byte, Disjoint, LoopNest, Normal, Visit};
use crate::normalize::{self, Normalized};
use crate::plan::{self, Plan};
use crate::refine::{self, Refined};
use crate::target::{Arch, Target};
use crate::{legalize, lower, schedule};

/// Maximum number of bytes of the stream that one check copies.
const MAX_STREAM_BYTES: u64 = 64 << 10;

/// Copy from the layout of the case `from` to that of the case `to`: the first `bytes` bytes of the
/// packed stream of `from` go to the memory of `to`. `want` is that memory after the copy.
struct Pair<'a> {
    from: &'a Case,
    to: Case,
    bytes: u64,
    want: Vec<u8>,
}

/// Returns the memory of `to` after `stream`, the first bytes of its packed stream, was unpacked by
/// the type map. Returns none if more than 1 MiB lies between displacement 0 and the first mapped
/// byte, because the slice for the unpacking begins at displacement 0.
fn unpacked(to: &Case, stream: &[u8]) -> Option<Vec<u8>> {
    let before = to.images(Direction::Unpack)[0][0];
    let ahead = usize::try_from(to.low()).unwrap_or(0);
    if ahead > 1 << 20 {
        return None;
    }
    let mut memory = [&vec![0; ahead], before].concat();
    let origin = to.low().min(0).unsigned_abs() as usize;
    interp::unpack_range(to.datatype(), to.count(), stream, &mut memory, origin, 0).ok()?;
    memory.drain(..ahead);
    Some(memory)
}

/// Returns a datatype for the memory to which data of type `t` are copied: `t` itself, a vector of
/// `t`, bytes, `t` with half its extent, or a random datatype.
fn partner(t: &Datatype, c: &mut Choices<'_>) -> Datatype {
    let other = match c.below(6) {
        0 => Ok(t.clone()),
        1 => Datatype::vector(c.within(1, 3), c.within(1, 2), c.within(2, 4), t),
        2 => Ok(Datatype::named(Named::Byte)),
        3 => Datatype::resized(t.lb(), t.extent() / 2, t),
        _ => Ok(datatype(c, &Budget::small())),
    };
    other.unwrap_or_else(|_| t.clone())
}

impl<'a> Pair<'a> {
    /// Returns the copy to another layout of all bytes that `from` packs, or of the first part of
    /// them. Returns none if there is nothing to copy, or if it would take much memory.
    fn new(from: &'a Case, c: &mut Choices<'_>) -> Option<Pair<'a>> {
        let all = from.packed_len() as u64;
        let to = partner(from.datatype(), c);
        if all == 0 || all > MAX_STREAM_BYTES || to.size() == 0 {
            return None;
        }
        let to = Case::new(&to, all.div_ceil(to.size() as u64)).ok()?;
        // The copy may end inside an element. A message consists of whole elements, but a part of a
        // message may end anywhere and takes the same code paths.
        let bytes = if c.chance(64) { 1 + c.below(all) } else { all };
        let want = unpacked(&to, &from.images(Direction::Pack)[1][1][..bytes as usize])?;
        Some(Pair { from, to, bytes, want })
    }

    fn cases(&self) -> [&Case; 2] {
        [self.from, &self.to]
    }

    /// Returns the memory of the case `to` after the first `bytes` bytes have been copied to it.
    fn after(&self, bytes: u64) -> Check<Vec<u8>> {
        if bytes == self.bytes {
            return Ok(self.want.clone());
        }
        unpacked(&self.to, &self.from.images(Direction::Pack)[1][1][..bytes as usize])
            .ok_or_else(|| Mismatch::new("interp", "part of what it unpacked before".to_owned()))
    }

    fn shown(&self) -> String {
        let [a, b] = self.cases().map(|case| format!("{} of {}", case.count(), case.datatype()));
        format!("{} bytes from {a}\nto {b}", self.bytes)
    }

    /// Checks refinement, normalization, and the plans for every target, in both directions. If
    /// there are emitters, also checks that code can be generated.
    fn stages(&self, targets: &[Target], emitters: Emitters<'_>) -> Check {
        let normal = |case: &Case| -> Check<Normalized> {
            let t = case.datatype();
            let lowered = lower::lower(t, Bytes).map_err(Mismatch::error("lower"))?;
            normalize::normalize(&lowered, t.arguments()).map_err(Mismatch::error("normalize"))
        };
        let (a, b) = (normal(self.from)?, normal(&self.to)?);
        // A nest from memory to memory has a user side and a packed side, and either of the two
        // layouts may be its user side. If refinement refuses the pair of layouts, there is nothing
        // to check.
        for direction in Direction::BOTH {
            let (user, packed) = if direction == Direction::Pack { (&a, &b) } else { (&b, &a) };
            let made = refine::refine(&user.nest, &packed.nest).map_err(Mismatch::error("refine"))?;
            let Ok(Refined { nest, period, still }) = made else { continue };
            nest.verify().map_err(|e| Mismatch::new("refine", format!("{e}\n{nest}")))?;
            let periods = self.bytes / period;
            if periods == 0 {
                continue;
            }
            // One instance of the nest copies one period of the stream. Evaluate as many instances
            // as the copy has whole periods. If `still` is true, every period has the same
            // addresses on both sides, so one instance suffices.
            let count = if still { 1 } else { periods };
            let case = FusedCase {
                pair: self,
                direction,
                origins: [user.origin, packed.origin],
                want: self.after(periods * period)?,
            };
            let mut visits = Vec::new();
            nest.visit(count, |v| visits.push(v));
            case.visits("refine", &visits, &nest)?;
            // Normalization may move the origins of both sides. The normal nest must copy the same
            // bytes, and if it claims that copies do not overlap (`disjoint_when`), that must be
            // true.
            let made = normalize::normalize(&nest, 1000).map_err(Mismatch::error("normalize"))?;
            made.nest.verify().map_err(|e| Mismatch::new("normalize", format!("{e}\n{}", made.nest)))?;
            let case = FusedCase {
                origins: [case.origins[0] + made.origin, case.origins[1] + made.packed_origin],
                ..case
            };
            visits.clear();
            made.nest.visit(count, |v| visits.push(v));
            case.visits("normalize", &visits, &made.nest)?;
            case.disjoint(&visits, made.nest.disjoint_when(direction), count)?;
            targets.iter().try_for_each(|&target| case.plans(&made.nest, count, target, emitters))?;
        }
        Ok(())
    }

    /// Checks the copies of an engine, with inaccessible pages around both memories and in their
    /// gaps.
    fn engine(&self, stage: &'static str, engine: &Engine, rig: &mut Rig) -> Check {
        let commit = |case: &Case| engine.commit(case.datatype()).map_err(Mismatch::error("commit"));
        let (from, to) = (commit(self.from)?, commit(&self.to)?);
        let direct = from.direct(&to).map_err(Mismatch::error("commit"))?;
        let [source, target] =
            [(self.from, Direction::Pack), (&self.to, Direction::Unpack)].map(|(case, direction)| Side {
                bytes: case.images(direction)[0][0],
                low: case.low(),
                mapped: case.mapped(),
                count: case.count(),
            });
        for edge in Edge::BOTH {
            let got = rig.copy(&direct, source, target, self.bytes, edge);
            ensure(got == self.want, stage, || {
                let first = got.iter().zip(&self.want).position(|(a, b)| a != b);
                format!("a copy differs at byte {first:?}: {}\n{}", direct.schedule(), self.shown())
            })
            .map_err(|m| m.with_direction(Direction::Pack, Some(engine.config().level)))?;
        }
        Ok(())
    }
}

/// A nest from one memory to the other, and the result of copying its whole periods. A period is
/// the part of the stream that one instance of the nest copies.
struct FusedCase<'a> {
    pair: &'a Pair<'a>,
    /// Pack if the source of the copy is the user side of the nest, otherwise unpack.
    direction: Direction,
    /// Displacements in the two layouts at which user offset 0 and packed offset 0 of the nest lie.
    origins: [i64; 2],
    /// The written memory after the whole periods have been copied.
    want: Vec<u8>,
}

impl FusedCase<'_> {
    /// Takes a value for the source and a value for the target of the copy. Returns first the one
    /// for the user side of the nest, and then the one for its packed side.
    fn sides<T>(&self, from: T, to: T) -> (T, T) {
        if self.direction == Direction::Pack { (from, to) } else { (to, from) }
    }

    /// Returns the indices of user offset 0 and packed offset 0 in the bytes of the two memories.
    fn places(&self) -> (i64, i64) {
        let (user, packed) = self.sides(self.pair.from.low(), self.pair.to.low());
        (self.origins[0] - user, self.origins[1] - packed)
    }

    fn judge(&self, stage: &'static str, got: &[u8], shown: &dyn std::fmt::Display) -> Check {
        ensure(got == self.want, stage, || {
            let first = got.iter().zip(&self.want).position(|(a, b)| a != b);
            format!("byte {first:?} of the target differs\n{}\n{shown}", self.pair.shown())
        })
        .map_err(|m| m.with_direction(self.direction, None))
    }

    /// Checks a nest by its leaf copies: carries out the copies that `visits` lists, and compares
    /// the memory of the target with what it must be.
    fn visits(&self, stage: &'static str, visits: &[Visit], shown: &dyn std::fmt::Display) -> Check {
        let source = self.pair.from.images(Direction::Pack)[0][0];
        let mut target = self.pair.to.images(Direction::Unpack)[0][0].to_vec();
        let (user, packed) = self.places();
        for v in visits {
            for i in 0..v.n as i64 {
                let (u, p) = ((user + v.at.user + i) as usize, (packed + v.at.packed + i) as usize);
                let (from, to) = if self.direction == Direction::Pack { (u, p) } else { (p, u) };
                target[to] = source[from];
            }
        }
        self.judge(stage, &target, shown)
    }

    /// Checks the claim `known` of a nest that its copies do not overlap on the side that it
    /// writes.
    fn disjoint(&self, visits: &[Visit], known: Disjoint, count: u64) -> Check {
        let mut written: Vec<i64> = visits
            .iter()
            .flat_map(|v| {
                let at = if self.direction == Direction::Pack { v.at.packed } else { v.at.user };
                (0..v.n as i64).map(move |i| at + i)
            })
            .collect();
        written.sort_unstable();
        let twice = written.windows(2).any(|w| w[0] == w[1]);
        ensure(!(known.holds(count) && twice), "disjoint", || {
            format!("{known:?}, but {count} periods overlap\n{}", self.pair.shown())
        })
    }

    /// Checks the plan for a target, evaluated one operation at a time, and that every emitter can
    /// generate code for it. If the schedule refuses the nest, there is no plan to check.
    fn plans(
        &self,
        nest: &LoopNest<Normal, Byte, nest::MemorySide>,
        count: u64,
        target: Target,
        emitters: Emitters<'_>,
    ) -> Check {
        let Ok(plan) = schedule::schedule(nest, self.direction, target) else { return Ok(()) };
        let at =
            |stage| move |e| Mismatch::error(stage)(e).with_direction(self.direction, Some(target.level()));
        plan.verify().map_err(at("schedule"))?;
        self.plan("schedule", &plan, count)?;
        let legal = legalize::legalize(&plan, 8).map_err(at("legalize"))?;
        legal.verify().map_err(at("legalize"))?;
        self.plan("legalize", &legal, count)?;
        let templates = target.on(Arch::X86_64).ok().and_then(X64::new);
        let templates = templates.as_ref().map(|x64| x64 as &dyn Emitter);
        for emitter in emitters.with_templates(templates) {
            emit::emit(emitter, &legal).map_err(at("emit"))?;
        }
        Ok(())
    }

    fn plan<P: plan::Phase>(&self, stage: &'static str, plan: &Plan<P>, count: u64) -> Check {
        let source = self.pair.from.images(Direction::Pack)[0][0].to_vec();
        let target = self.pair.to.images(Direction::Unpack)[0][0].to_vec();
        let (mut user, mut packed) = self.sides(source, target);
        let places = self.places();
        plan.eval_between(count, (&mut user, places.0), (&mut packed, places.1));
        let (_, got) = self.sides(user, packed);
        self.judge(stage, &got, plan)
    }
}

/// Checks by evaluation the nests and plans that the stages of the compiler make for a copy from
/// `case` to another layout. No engine runs.
pub(super) fn stages(case: &Case, target: Target, c: &mut Choices<'_>) -> Check {
    Pair::new(case, c).map_or(Ok(()), |pair| pair.stages(&[target], Emitters::None))
}

/// Checks copies from `case` to another layout: the results of the stages by evaluation, and the
/// copies that each engine makes. Also checks reductions into another layout.
pub(super) fn check(
    case: &Case,
    engines: &[(&'static str, &Engine)],
    targets: &[Target],
    emitters: Emitters<'_>,
    rig: &mut Rig,
    c: &mut Choices<'_>,
) -> Check {
    if let Some(pair) = Pair::new(case, c) {
        pair.stages(targets, emitters)?;
        engines.iter().try_for_each(|(stage, engine)| pair.engine(stage, engine, rig))?;
    }
    combined(case, engines, rig, c)
}

/// Copies from one case to the other as many bytes as both packed streams have, and checks the
/// result.
pub(super) fn copies((from, a): (&Case, &Committed), (to, b): (&Case, &Committed)) -> Check {
    let direct = a.direct(b).map_err(Mismatch::error("commit"))?;
    let bytes = from.packed_len().min(to.packed_len());
    let [[source, _], [_, stream]] = from.images(Direction::Pack);
    let mut got = to.images(Direction::Unpack)[0][0].to_vec();
    let Some(want) = unpacked(to, &stream[..bytes]) else { return Ok(()) };
    guard::copied(
        &direct,
        (source, from.low(), from.count()),
        (&mut got, to.low(), to.count()),
        bytes as u64,
    );
    ensure(got == want, "direct", || {
        format!(
            "{} of {}\nto {} of {}\n{}",
            from.count(),
            from.datatype(),
            to.count(),
            to.datatype(),
            direct.schedule()
        )
    })
}

/// Checks reductions from one layout into another layout of the same signature, in all engines. The
/// datatype has the structure of the case's datatype and basic types on which the operation is
/// defined.
fn combined(case: &Case, engines: &[(&'static str, &Engine)], rig: &mut Rig, c: &mut Choices<'_>) -> Check {
    // Choose an operation, a datatype `t` on which it is defined, and the two sides of the
    // reduction. Both sides have the same number of `t`, so their signatures are equal: both are
    // instances of `t`, or the instances of one side are vectors of two `t`. In the last case, the
    // extent of the target is half that of `t`, so that data of neighbouring instances may overlap.
    // Then some values of the target get several contributions.
    let count = case.count().min(4);
    let (t, op) = reductions::chosen(case.datatype(), count, c);
    let twice = |t: &Datatype| Datatype::vector(2, 1, 3, t);
    let sides = match c.below(4) {
        0 => Ok((t.clone(), count, t.clone(), count)),
        1 => twice(&t).map(|to| (t.clone(), 2 * count, to, count)),
        2 => twice(&t).map(|from| (from, count, t.clone(), 2 * count)),
        _ => Datatype::resized(t.lb(), t.extent() / 2, &t).map(|to| (t.clone(), count, to, count)),
    };
    let Ok((from, from_count, to, to_count)) = sides else { return Ok(()) };
    let (Ok(from), Ok(to)) = (Case::new(&from, from_count), Case::new(&to, to_count)) else { return Ok(()) };
    let stream = from.images(Direction::Pack)[1][1];
    if stream.is_empty() || stream.len() as u64 > MAX_STREAM_BYTES {
        return Ok(());
    }
    // `want` is the memory of the target after the reference interpreter has combined the packed
    // stream of the source with it. `loose` marks the bytes whose bits are undefined, because an
    // operation made a NaN there or had such bytes as input. `origin` is the index of displacement
    // 0 in the memory. It may be negative, if the memory begins after displacement 0, because the
    // interpreter takes `origin` as a signed number.
    let (before, origin) = (to.images(Direction::Unpack)[0][0], to.low().wrapping_neg() as usize);
    let mut want = before.to_vec();
    let loose = reduce::unpack(op, to.datatype(), to_count, stream, &mut want, origin);
    // Each engine makes the same reduction from the memory of the source, which is not packed, and
    // must write the same bytes. Both memories end at an inaccessible page, so that an access
    // beyond their ends is noticed. Bytes that `loose` marks are not compared.
    for (stage, engine) in engines {
        let commit = |case: &Case| engine.commit(case.datatype()).map_err(Mismatch::error("commit"));
        let (a, b) = (commit(&from)?, commit(&to)?);
        let direct = a.direct_reduce(&b, op).map_err(Mismatch::error("commit"))?;
        let side =
            |case: &'_ Case, direction| (case.images(direction)[0][0].to_vec(), case.low(), case.count());
        let (source, target) = (side(&from, Direction::Pack), side(&to, Direction::Unpack));
        let source = Side { bytes: &source.0, low: source.1, mapped: from.mapped(), count: source.2 };
        let target = Side { bytes: &target.0, low: target.1, mapped: to.mapped(), count: target.2 };
        let got = rig.copy(&direct, source, target, stream.len() as u64, Edge::Back);
        let differs = (0..got.len()).find(|&i| got[i] != want[i] && !loose[i]);
        ensure(differs.is_none(), stage, || {
            let (a, b) = (from.datatype(), to.datatype());
            format!(
                "{op}: byte {differs:?} differs: {}\n{from_count} of {a}\nwith {to_count} of {b}",
                direct.schedule()
            )
        })
        .map_err(|m| m.with_direction(Direction::Unpack, Some(engine.config().level)))?;
    }
    Ok(())
}
