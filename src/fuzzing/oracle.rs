//! Checks of everything that one datatype must satisfy: text, type map, the output of every stage,
//! every engine, ranges, and refused slices.
//!
//! Like the engine, this module imports every stage, because it judges them.

use std::ops::Range;

use super::case::{Case, Check, Mismatch, ensure};
use super::choices::Choices;
use super::emitters::Emitters;
use super::guard::{Edge, Rig, noted};
use super::hostile::round_trip;
use super::panics::caught;
use super::reserved::RangeCase;
use super::{direct, reductions, segments, streams, values, wire};
use crate::code::emit::{self, Emitter, X64};
use crate::code::kernel::{CompiledCode, Context, Text};
use crate::datatype::Datatype;
use crate::engine::{Config, Engine, Mode};
use crate::error::Error;
use crate::kind::Direction;
use crate::lower::Bytes;
use crate::nest::{self, Disjoint, LoopNest, Lowered, Normal, Phase};
use crate::plan::Word;
use crate::target::{Accesses, Arch, Level, Target};
use crate::{legalize, lower, normalize, schedule};

/// Result of a check that found nothing wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Number of kernels that were compiled and compared, summed over CPU levels and directions.
    pub kernels: u64,
    /// Number of schedules that were refused by design, summed over CPU levels and directions.
    pub refusals: u64,
}

/// Maximum length in bytes of a stream that [`Oracle::check_large`] moves as a whole.
const WHOLE: u64 = 32 << 20;
/// Length in bytes of the pieces of longer streams that [`Oracle::check_large`] moves. The piece
/// around byte 2^31 has twice this length.
const PIECE: u64 = 100_003;

/// Function that is called at the start of each step of a check.
type Watch = dyn FnMut(&str, usize, usize) + Send;

/// Runs all checks of a datatype at a given list of CPU levels. Its engines keep their caches from
/// one datatype to the next.
pub struct Oracle {
    interpreter: Engine,
    compilers: Vec<Engine>,
    /// Engines that generate code by Cranelift, one for each CPU level that is checked. Empty if
    /// Cranelift is not compiled in.
    general: Vec<Engine>,
    /// Engines that use precompiled code for plans for which it exists, one for each CPU level that
    /// is checked.
    shortcut: Vec<Engine>,
    rig: Rig,
    /// Called at the start of each step with its name, the number of steps that are done, and the
    /// number of all steps.
    watch: Box<Watch>,
    /// The Cranelift emitter with its verifier turned on. None if Cranelift is not compiled in.
    cranelift: Option<Result<Box<dyn Emitter>, Error>>,
}

#[cfg(feature = "cranelift")]
fn cranelift() -> Option<Result<Box<dyn Emitter>, Error>> {
    Some(emit::Cranelift::for_host(true).map(|c| Box::new(c) as Box<dyn Emitter>))
}

#[cfg(not(feature = "cranelift"))]
fn cranelift() -> Option<Result<Box<dyn Emitter>, Error>> {
    None
}

/// Returns the Cranelift emitter if it is compiled in. Returns a mismatch if it could not be made.
fn general(cranelift: &Option<Result<Box<dyn Emitter>, Error>>) -> Result<Option<&dyn Emitter>, Mismatch> {
    match cranelift {
        None => Ok(None),
        Some(Ok(emitter)) => Ok(Some(&**emitter)),
        Some(Err(e)) => Err(Mismatch::new("emit", e.to_string())),
    }
}

impl Oracle {
    /// Returns an oracle that checks at `levels`, all of which this machine must support.
    pub fn new(levels: &[Level]) -> Oracle {
        // The cache of each engine is so small that layouts are evicted from it.
        let config = |mode, level, precompiled, native| Config {
            mode,
            level,
            precompiled,
            native,
            both_directions: true,
            // With threshold 0, kernels for parts of a range are compiled when the first byte of a
            // part is moved.
            lazy_threshold: 0,
            cache_bytes: 256 << 10,
            ..Config::default()
        };
        let engines = |precompiled, native| {
            levels
                .iter()
                .map(|&level| Engine::new(config(Mode::Commit, level, precompiled, native)))
                .collect()
        };
        let top = levels.last().copied().unwrap_or(Level::Baseline);
        Oracle {
            interpreter: Engine::new(config(Mode::Interpret, top, false, true)),
            compilers: engines(false, true),
            general: if cfg!(feature = "cranelift") { engines(false, false) } else { Vec::new() },
            shortcut: engines(true, true),
            rig: Rig::default(),
            watch: Box::new(|_, _, _| {}),
            cranelift: cranelift(),
        }
    }

    /// Returns this oracle with a function that [`Oracle::check`] and [`Oracle::check_large`] call
    /// at the start of each step. Its arguments are the name of the step, the number of steps that
    /// are done, and the number of all steps.
    pub fn watched(self, watch: impl FnMut(&str, usize, usize) + Send + 'static) -> Oracle {
        Oracle { watch: Box::new(watch), ..self }
    }

    /// Checks everything about `count` instances of `t`. `cuts` decides how the packed stream is
    /// cut into ranges.
    ///
    /// # Errors
    /// The first property that does not hold, or a panic in any stage.
    pub fn check(&mut self, t: &Datatype, count: u64, cuts: &mut Choices<'_>) -> Check<Verdict> {
        let note = format!("; test engines\n; counts {count}\n{t}\n");
        let checked = noted(&note, || caught(|| self.all(t, count, cuts)));
        checked.unwrap_or_else(|panic| Err(Mismatch::new("panic", panic)))
    }

    /// Checks the engines only, on reserved address space. This is for datatypes that span more
    /// than some megabytes. Streams of up to 32 MiB are moved as a whole and by three pieces; of
    /// longer streams, the two ends, a piece in the middle and, if the stream is that long, one
    /// around byte 2^31 are moved.
    ///
    /// Returns false for layouts that do not fit into the address space. These are committed only.
    ///
    /// # Errors
    /// As [`Oracle::check`].
    pub fn check_large(&mut self, t: &Datatype, count: u64) -> Check<bool> {
        // Commit the datatype to every engine. Then move each range by every engine in both
        // directions, and compare the segments around some bytes of the range with the type map.
        let note = format!("; test engines\n; counts {count}\n{t}\n");
        noted(&note, || {
            let engines = self.compilers.iter().map(|e| ("compiled", e));
            let engines = engines.chain(self.shortcut.iter().map(|e| ("precompiled", e)));
            let engines: Vec<_> = engines.map(|(stage, e)| (stage, e, e.commit(t))).collect();
            let interpreted = ("walk", &self.interpreter, self.interpreter.commit(t));
            let ranges = ranges(t, count);
            let (mut done, steps) = (0, ranges.len() * 2 * (engines.len() + 1));
            for range in ranges {
                let Some(mut case) = RangeCase::new(t, count, range.clone())? else { return Ok(false) };
                for direction in Direction::BOTH {
                    for (stage, engine, committed) in engines.iter().chain([&interpreted]) {
                        (self.watch)(&format!("{direction} of {range:?}: {stage}"), done, steps);
                        done += 1;
                        let failed = |e: &Error| Mismatch::new("commit", e.to_string());
                        let checked = case.check(stage, committed.as_ref().map_err(failed)?, direction);
                        checked.map_err(|m| m.with_direction(direction, Some(engine.config().level)))?;
                        no_fallback(engine)?;
                    }
                }
                let segments = interpreted.2.as_ref().ok().map(|committed| committed.segments(count));
                let Some(segments) = segments else { continue };
                let segments = segments.map_err(Mismatch::error("segments"))?;
                segments::ends(&segments)?;
                for offset in [range.start, range.start / 3 + range.end * 2 / 3, range.end - 1] {
                    segments::check_around(&segments, t, count, offset, 4000)?;
                }
            }
            Ok(true)
        })
    }

    /// Returns upper estimates for [`Oracle::check_large`]: the memory that it needs, and the
    /// memory that all of its steps read or write, both in bytes.
    ///
    /// # Errors
    /// If the type map contradicts the size of `t`.
    pub fn large(&self, t: &Datatype, count: u64) -> Check<(u64, u64)> {
        let steps = 2 * (self.compilers.len() + self.shortcut.len() + 1) as u64;
        let (mut needed, mut touched) = (0, 0_u64);
        for range in ranges(t, count) {
            let memory = RangeCase::memory(t, count, range)?;
            needed = memory.max(needed);
            touched = touched.saturating_add(memory.saturating_mul(steps));
        }
        Ok((needed, touched))
    }

    /// Checks ranges only, through one engine that `cuts` selects: a compiling one or the one that
    /// only interprets. `cuts` also selects the pieces of the packed stream. There are fewer than
    /// 12 pieces, and they may overlap.
    ///
    /// # Errors
    /// As [`Oracle::check`].
    pub fn check_ranges(&mut self, t: &Datatype, count: u64, cuts: &mut Choices<'_>) -> Check {
        let case = Case::new(t, count)?;
        let n = case.packed_len();
        let which = cuts.below(self.compilers.len() as u64 + 1) as usize;
        let engine = self.compilers.get(which).unwrap_or(&self.interpreter);
        let committed = engine.commit(t).map_err(Mismatch::error("commit"))?;
        let pieces: Vec<Range<usize>> = (0..cuts.below(12))
            .map(|_| {
                let start = cuts.below(n as u64 + 1) as usize;
                start..start + cuts.below((n - start) as u64 + 1) as usize
            })
            .collect();
        let edge = cuts.pick(&Edge::BOTH);
        let note = format!("; ranges {pieces:?}\n; counts {count}\n{t}\n");
        noted(&note, || {
            case.ranges(&committed, &mut self.rig, &pieces, edge)?;
            case.segments(&committed.segments(count).map_err(Mismatch::error("segments"))?, cuts)
        })
    }

    /// Does the work of [`Oracle::check`]: all checks of one datatype.
    fn all(&mut self, t: &Datatype, count: u64, cuts: &mut Choices<'_>) -> Check<Verdict> {
        let steps = 4 + self.compilers.len();
        (self.watch)("text and type map", 0, steps);
        text(t)?;
        round_trip(t)?;
        wire::round_trip(t)?;
        streams::check(t, count, &mut Choices::from_seed(t.structural_hash() as u64))?;
        let case = Case::new(t, count)?;
        (self.watch)("nests", 1, steps);
        // Check the lowered and the normal nest, by the bytes that they move and by their text. If
        // the normal form is unique, normalizing it again must change nothing.
        let lowered = lower::lower(t, Bytes).map_err(Mismatch::error("lower"))?;
        lowered.verify().map_err(|e| Mismatch::new("lower", format!("{e}\n{lowered}")))?;
        case.nest("lower", &lowered, 0)?;
        let normal = normalize::normalize(&lowered, t.arguments()).map_err(Mismatch::error("normalize"))?;
        let (nest, moved) = (&normal.nest, normal.origin);
        nest.verify().map_err(|e| Mismatch::new("normalize", format!("{e}\n{lowered}\n{nest}")))?;
        case.nest("normalize", nest, moved).map_err(|m| {
            let detail = format!("{}\nfrom\n{lowered}", m.detail);
            Mismatch { detail, ..m }
        })?;
        ensure(t.size() == 0 || t.type_map().next().is_some_and(|e| e.1 == moved), "normalize", || {
            format!("origin {moved} is not the displacement of the first entry\n{lowered}\n{nest}")
        })?;
        if normal.unique {
            idempotent(nest, t.arguments())?;
        }
        nest_text(&lowered)?;
        nest_text(nest)?;
        disjoint(&case, nest)?;
        // Now check the plans and the compiled code of every level, and then the engine that only
        // interprets nests.
        let mut verdict = Verdict::default();
        let pieces = pieces(&case, cuts);
        for i in 0..self.compilers.len() {
            (self.watch)(&format!("plans and code for {}", self.compilers[i].config().level), 2 + i, steps);
            self.level(&case, i, nest, moved, &pieces, &mut verdict)?;
        }
        (self.watch)("interpreted nest", steps - 2, steps);
        let interpreted = self.interpreter.commit(t).map_err(Mismatch::error("commit"))?;
        case.committed("walk", &interpreted, &mut self.rig)?;
        case.slices(&interpreted)?;
        case.segments(&interpreted.segments(count).map_err(Mismatch::error("segments"))?, cuts)?;
        for pieces in &pieces {
            case.ranges(&interpreted, &mut self.rig, pieces, Edge::Back)?;
        }
        (self.watch)("operations and copies", steps - 1, steps);
        self.values(&case, cuts)?;
        Ok(verdict)
    }

    /// Checks leaf operations on values, and copies from layout to layout.
    fn values(&mut self, case: &Case, cuts: &mut Choices<'_>) -> Check {
        let emitters = Emitters::All(general(&self.cranelift)?);
        let levels: Vec<Level> = self.compilers.iter().map(|e| e.config().level).collect();
        let engines =
            [("compiled", &self.compilers), ("cranelift", &self.general), ("precompiled", &self.shortcut)];
        let engines = engines.into_iter().flat_map(|(stage, all)| all.iter().map(move |e| (stage, e)));
        let engines: Vec<_> = engines.chain([("apply", &self.interpreter)]).collect();
        values::check(case, &engines, &levels, emitters, &mut self.rig, cuts)?;
        reductions::check(case, &engines, &levels, emitters, &mut self.rig, cuts)?;
        let targets: Vec<Target> = Target::available().filter(|t| levels.contains(&t.level())).collect();
        direct::check(case, &engines, &targets, emitters, &mut self.rig, cuts)?;
        engines.iter().try_for_each(|(_, engine)| no_fallback(engine))
    }

    /// Checks the plans and the code for one CPU level, and the engines that compile for that
    /// level.
    fn level(
        &mut self,
        case: &Case,
        which: usize,
        nest: &LoopNest<Normal>,
        moved: i64,
        pieces: &[Vec<Range<usize>>],
        verdict: &mut Verdict,
    ) -> Check {
        let engine = &self.compilers[which];
        let level = engine.config().level;
        let cranelift = general(&self.cranelift)?;
        // Check the plans for targets with the machine's extensions and for targets without them.
        // The engines only compile for targets with them.
        let targets = Target::available().filter(|t| t.level() == level);
        for (target, direction) in targets.flat_map(|t| Direction::BOTH.map(|d| (t, d))) {
            // The template emitter only produces the bytes of x86-64 code, so it can be checked on
            // a machine of any architecture.
            let templates = target.on(Arch::X86_64).ok().and_then(X64::new);
            let templates = templates.as_ref().map(|x64| x64 as &dyn Emitter);
            let at = |stage| move |e: Error| Mismatch::error(stage)(e).with_direction(direction, Some(level));
            let plan = match schedule::schedule(nest, direction, target) {
                Ok(plan) => plan,
                Err(_) => {
                    verdict.refusals += 1;
                    continue;
                }
            };
            verdict.kernels += 1;
            plan.verify().map_err(at("schedule"))?;
            case.plan("schedule", &plan, moved)?;
            // Legalize the plan for every width of accesses. Generate code with the emitters that
            // use accesses of that width.
            let permuting = Accesses { widest: 64, permutes: target.includes(Level::Avx512) };
            for accesses in [8.into(), 16.into(), 32.into(), 64.into(), permuting] {
                let legal = legalize::legalize(&plan, accesses).map_err(at("legalize"))?;
                legal.verify().map_err(at("legalize"))?;
                case.plan("legalize", &legal, moved)?;
                let emitters = Emitters::All(cranelift).with_templates(templates);
                for emitter in emitters.filter(|e| e.accesses() == accesses) {
                    let code = emit::emit(emitter, &legal).map_err(at("emit"))?;
                    addresses(&code).map_err(|m| m.with_direction(direction, Some(level)))?;
                }
            }
        }
        // Last, run the code with buffers between inaccessible pages: first code compiled by
        // templates, then by Cranelift, then precompiled code.
        let committed = engine.commit(case.datatype()).map_err(Mismatch::error("commit"))?;
        case.committed("compiled", &committed, &mut self.rig)?;
        case.slices(&committed)?;
        for pieces in pieces.iter().take(4) {
            case.ranges(&committed, &mut self.rig, pieces, Edge::Front)?;
        }
        no_fallback(engine)?;
        if let Some(engine) = self.general.get(which) {
            let general = engine.commit(case.datatype()).map_err(Mismatch::error("commit"))?;
            for pieces in pieces.iter().take(4) {
                case.ranges(&general, &mut self.rig, pieces, Edge::Back)?;
            }
            case.committed("cranelift", &general, &mut self.rig)?;
            no_fallback(engine)?;
        }
        let precompiled = self.shortcut[which].commit(case.datatype()).map_err(Mismatch::error("commit"))?;
        if Direction::BOTH.iter().any(|&d| precompiled.schedule(d).starts_with("precompiled")) {
            case.committed("precompiled", &precompiled, &mut self.rig)?;
        }
        no_fallback(&self.shortcut[which])
    }
}

/// Returns the ranges of the packed stream of `count` instances of `t` that [`Oracle::check_large`]
/// moves.
fn ranges(t: &Datatype, count: u64) -> Vec<Range<u64>> {
    let stream = (t.size() as u64).saturating_mul(count);
    let (middle, third, edge) = (stream / 2, stream / 3, 1_u64 << 31);
    let mut ranges = if stream <= WHOLE {
        vec![0..stream, third + 1..stream * 2 / 3 + 1, stream - third..stream, 0..third]
    } else {
        vec![0..PIECE, edge - PIECE..edge + PIECE, middle - 5..middle + PIECE, stream - PIECE..stream]
    };
    ranges.retain(|range| range.end <= stream && !range.is_empty());
    ranges
}

/// Checks that the engine never had to fall back to the interpreter of nests.
fn no_fallback(engine: &Engine) -> Check {
    let fallbacks = engine.counters().fallbacks;
    ensure(fallbacks == 0, "compiled", || format!("{fallbacks} compiles failed"))
}

/// Checks everything about `count` instances of `t` at one CPU level, with new engines, which are
/// datatype compilers with their own caches. The ranges into which the packed stream is cut are
/// random, but depend only on the datatype and the count.
///
/// # Errors
/// As [`Oracle::check`].
pub fn check_datatype(t: &Datatype, count: u64, level: Level) -> Check<Verdict> {
    let seed = t.structural_hash() as u64 ^ count;
    Oracle::new(&[level]).check(t, count, &mut Choices::from_seed(seed))
}

/// Checks that compiled code contains no address of a table or of a function that it calls. These
/// addresses must be only in the context of the code.
fn addresses(code: &CompiledCode) -> Check {
    let Text::New { bytes, .. } = &code.text else { return Ok(()) };
    for (i, word) in code.context.words.iter().enumerate() {
        if !matches!(word, Word::Constant(_)) {
            let address = Context::from_template(code.context.clone()).word(i).to_ne_bytes();
            let found = bytes.windows(8).any(|window| *window == address);
            ensure(!found, "emit", || format!("the address of {word:?} is in the code"))?;
        }
    }
    Ok(())
}

/// Checks that the text notation of a datatype reads back as the same datatype, in both of its
/// forms.
fn text(t: &Datatype) -> Check {
    for text in [t.to_string(), format!("{t:#}")] {
        let back: Datatype = text.parse().map_err(|e| Mismatch::new("text", format!("{text}\n{e}")))?;
        ensure(back == *t && back.structural_hash() == t.structural_hash(), "text", || {
            format!("{text} reads back as {back}")
        })?;
        let same = (back.lb(), back.extent(), back.signature()) == (t.lb(), t.extent(), t.signature());
        ensure(same, "text", || format!("{text} reads back with other bounds or signature"))?;
    }
    Ok(())
}

/// Checks that normalizing a normal nest once more changes nothing.
pub(super) fn idempotent(nest: &LoopNest<Normal>, arguments: u64) -> Check {
    let again: LoopNest<Lowered> =
        LoopNest::new(nest.nodes().to_vec(), nest.root(), nest.size(), nest.extent());
    let again = normalize::normalize(&again, arguments).map_err(Mismatch::error("normalize"))?;
    ensure(again.nest == *nest && again.origin == 0, "normalize", || {
        format!("is not idempotent: origin {}\n{nest}\nbecomes\n{}", again.origin, again.nest)
    })
}

/// Checks that the text of a nest reads back as a nest of the same meaning. For a normal nest, also
/// checks that the nest read back prints as the same text. Texts with elided columns do not read
/// back and are skipped.
fn nest_text<P: nest::Phase>(nest: &LoopNest<P>) -> Check {
    let text = nest.to_string();
    if text.contains(" ... ") {
        return Ok(());
    }
    let back: LoopNest<P> = text.parse().map_err(|e| Mismatch::new("text", format!("{e}\n{text}")))?;
    let visits = |nest: &LoopNest<P>| {
        let mut visits = Vec::new();
        nest.visit(1, |v| visits.push(v));
        visits
    };
    let bounds = (back.size(), back.extent()) == (nest.size(), nest.extent());
    // A lowered nest may contain bodies that its root does not reach. They are not in the nest that
    // is read back. A body that is used once from the root and once from an unreachable body is
    // shared in the first nest, but not in the second one, so the texts of the two nests may
    // differ.
    let same = P::NAME != Normal::NAME || back.to_string() == text;
    ensure(bounds && same && visits(&back) == visits(nest), "text", || format!("{text}reads back as\n{back}"))
}

/// Checks the claim of a normal nest that its instances overlap or do not overlap in user memory.
pub(super) fn disjoint(case: &Case, nest: &LoopNest<Normal>) -> Check {
    let known = nest.disjoint();
    let wrong = match known {
        Disjoint::UpTo(_) => known.holds(case.count()) && case.overlaps(),
        Disjoint::No => case.count() >= 2 && !case.overlaps(),
        Disjoint::Unknown => false,
    };
    ensure(!wrong, "disjoint", || {
        format!("{known:?}, but {} instances overlap: {}\n{nest}", case.count(), case.overlaps())
    })
}

/// Returns ways to cut the packed stream. The first has cuts at random places, with the pieces in
/// random order. For a short stream, there is also one way for each offset, with a single cut at
/// that offset; half of these ways move the second piece first.
fn pieces(case: &Case, c: &mut Choices<'_>) -> Vec<Vec<Range<usize>>> {
    let n = case.packed_len();
    let mut ways = Vec::new();
    let mut at: Vec<usize> = (0..1 + c.below(5)).map(|_| c.below(n as u64 + 1) as usize).collect();
    at.extend([0, n]);
    at.sort_unstable();
    let mut pieces: Vec<Range<usize>> = at.windows(2).map(|w| w[0]..w[1]).collect();
    for i in (1..pieces.len()).rev() {
        pieces.swap(i, c.below(i as u64 + 1) as usize);
    }
    ways.push(pieces);
    if n <= 48 {
        ways.extend(
            (0..=n).map(|cut| if cut % 2 == 0 { vec![0..cut, cut..n] } else { vec![cut..n, 0..cut] }),
        );
    }
    ways
}
