//! The pipeline from a datatype to a kernel. An engine is a value with its own mode, CPU level,
//! capacities, arena, cache and counters.
//!
//! Apart from tests, the test support in `fuzzing` and the re-exports in `internal`, this is the
//! only module that imports passes and executors. A commit flows through the methods `layout`,
//! `placed`, `nest`, `serve`, `compile`, `kernel`, `plan`, `code` and `load` of [`Engine`], in this
//! order. Each stage of a commit is one line in one of these methods. Two of the [`STAGES`] are not
//! part of a commit: the method `decode` runs the stage of that name, and the method `fuse` runs
//! `refine`. A stage is timed and logged under its name. In check mode and in debug builds, the
//! nests and plans that the stages make are verified.

mod config;
mod counters;
mod explain;
#[cfg(feature = "copies")]
mod fused;
mod parts;
#[cfg(feature = "operations")]
mod values;

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use crate::cache::{Cache, Cached};
use crate::code::arena::Arena;
use crate::code::kernel::{CompiledCode, Kernel, Text};
use crate::code::{emit, load};
use crate::datatype::Datatype;
use crate::error::{Error, ErrorClass, Result};
use crate::exec::{interp, nest_interpreter};
use crate::kind::{Direction, Kind, Operation};
use crate::layout::{CompiledLayout, PlacedLayout, Tier};
use crate::lower::{Bytes, Leaves};
use crate::micro::Buffers;
use crate::nest::{LoopNest, Normal, Side};
use crate::normalize::Normalized;
use crate::plan::{Legal, Plan};
use crate::process::Once;
use crate::schedule::Planned;
use crate::segments::Runs;
use crate::target::{Level, Target};
use crate::{decode, legalize, lower, normalize, schedule};

pub(crate) use config::MAX_THREADS;
pub use config::{Config, Mode};
pub use counters::Counters;
pub use explain::{Explanation, Stage};
#[cfg(feature = "copies")]
pub(crate) use fused::Fusible;
#[cfg(feature = "operations")]
pub(crate) use values::Place;

use counters::Tally;
use explain::Trace;
use parts::Compiled;

/// Names of the stages, in their order. Modules, log lines, timing labels, filetest commands and
/// CLI verbs use the same names.
pub const STAGES: [&str; 8] =
    ["decode", "lower", "refine", "normalize", "schedule", "legalize", "emit", "load"];

/// A datatype compiler with its own configuration, cache and executable memory. All clones of an
/// engine share these.
///
/// [`crate::commit`] uses the engine of the process. A library that needs other limits creates its
/// own:
///
/// ```
/// use ddtc::{Config, Datatype, Engine, Mode};
///
/// let engine = Engine::new(Config::default().mode(Mode::Lazy).arena_bytes(16 << 20));
/// let column = engine.commit(&Datatype::vector(4, 1, 8, &Datatype::of::<f64>())?)?;
/// assert_eq!(column.packed_size(1)?, 32);
/// # Ok::<(), ddtc::Error>(())
/// ```
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    config: Config,
    arena: Arena,
    cache: Cache,
    tally: Tally,
    emission: Once<Result<emit::Emission>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("config", &self.0.config).field("counters", &self.counters()).finish()
    }
}

impl Default for Engine {
    fn default() -> Self {
        Engine::new(Config::default())
    }
}

impl Engine {
    /// Returns an engine with the configuration `config`. The engine uses hardly any memory before
    /// the first commit.
    ///
    /// ```
    /// use ddtc::{Config, Engine};
    ///
    /// let engine = Engine::new(Config::default().threads(2));
    /// ```
    pub fn new(mut config: Config) -> Engine {
        // Code for a level that this machine does not support would execute instructions that the
        // processor does not have, which is undefined behaviour. Safe code can set the field
        // `level`, so the check belongs here.
        if !config.level.runs() {
            config.level = Level::detect();
        }
        config.threads = config.threads.min(MAX_THREADS);
        let arena = Arena::new(config.arena_bytes);
        let cache = Cache::new(config.cache_bytes);
        Engine(Arc::new(Inner { config, arena, cache, tally: Tally::default(), emission: Once::new() }))
    }

    /// Returns the engine of the process, which [`crate::commit`] uses. It is created at the first
    /// use and has the default configuration.
    ///
    /// ```
    /// use ddtc::{Datatype, Engine};
    ///
    /// let double = Engine::global().commit(&Datatype::of::<f64>())?;
    /// assert_eq!(double.packed_size(2)?, 16);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    pub fn global() -> &'static Engine {
        static GLOBAL: Once<Engine> = Once::new();
        GLOBAL.get_or_init(Engine::default)
    }

    /// Returns the configuration with which the engine was created.
    ///
    /// ```
    /// use ddtc::{Config, Engine};
    ///
    /// let engine = Engine::new(Config::default().threads(2));
    /// let checked = Engine::new(engine.config().clone().check(true));
    /// ```
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Returns the number of clones of this engine, including those that committed types hold.
    pub(crate) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Returns true if `self` and `other` are clones of one engine, and so share its cache.
    pub(crate) fn is_same(&self, other: &Engine) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the counters of this engine: events since it was made, and what it holds now.
    pub(crate) fn counters(&self) -> Counters {
        let mut c = self.0.tally.read();
        c.cache = self.0.cache.counters();
        c.cached_bytes = self.0.cache.bytes() as u64;
        c.cached_layouts = self.0.cache.layouts() as u64;
        let arena = self.0.arena.usage();
        (c.code_bytes, c.own_pages) = (arena.charged as u64, arena.own_pages);
        c
    }

    /// Decodes the datatype that `handle` names in an MPI library (MPI 5.0, 5.1.13). `host` asks
    /// that library for envelopes and contents.
    ///
    /// # Errors
    /// Returns the error that the MPI library reported, or an error that says what is wrong with an
    /// envelope or its contents. Time and memory are bounded in both cases.
    pub(crate) fn decode<I: decode::Introspect>(&self, host: &mut I, handle: &I::Handle) -> Result<Datatype> {
        Trace::silent().stage("decode", || decode::decode(host, handle))
    }

    /// Returns the layout of `t` from the cache, or makes it. In [`Mode::Commit`], this method also
    /// compiles the layout for packing; it compiles it for unpacking too if the configuration asks
    /// for both directions. The stages of a commit are the methods from this one down to
    /// [`Engine::load`].
    ///
    /// # Errors
    /// Returns class `NoMem` if there is no memory for the nest, and otherwise only errors that are
    /// faults of ddtc. A failure to compile is no error: the layout is then interpreted, and a
    /// counter is incremented.
    pub(crate) fn layout(&self, t: &Datatype) -> Result<PlacedLayout> {
        self.0.tally.commits();
        let placed = self.placed(t, Operation::Bytes, Bytes)?;
        if self.0.config.mode == Mode::Commit {
            self.serve(&placed.layout, Direction::Pack);
            if self.0.config.both_directions {
                self.serve(&placed.layout, Direction::Unpack);
            }
        }
        Ok(placed)
    }

    /// Counts a commit and a cache hit for a datatype. The caller already knows that its layout is
    /// `layout`, so nothing is looked up.
    pub(crate) fn found(&self, layout: &Arc<CompiledLayout>) {
        self.0.tally.commits();
        self.0.cache.found(layout);
    }

    /// Returns the layout of `t` under `operation` from the cache, or makes it without compiling
    /// it.
    fn placed<V: Leaves<Leaf: Cached>>(
        &self,
        t: &Datatype,
        operation: Operation,
        leaves: V,
    ) -> Result<PlacedLayout<V::Leaf>> {
        if let Some(placed) = self.0.cache.by_type(t, operation) {
            return Ok(placed);
        }
        let Normalized { nest, origin, .. } = self.nest(t, leaves, &mut Trace::silent())?;
        Ok(self.0.cache.by_nest(Some(t), nest, operation, origin))
    }

    /// Lowers and normalizes `t`, and returns its normal nest.
    pub(crate) fn nest<V: Leaves>(
        &self,
        t: &Datatype,
        leaves: V,
        trace: &mut Trace,
    ) -> Result<Normalized<V::Leaf>> {
        let nest = trace.stage("lower", || lower::lower(t, leaves))?;
        self.check(|| nest.verify())?;
        let normalized = trace.stage("normalize", || normalize::normalize(&nest, t.arguments()))?;
        self.check(|| normalized.nest.verify())?;
        Ok(normalized)
    }

    /// Returns how a call of `bytes` bytes in `direction` is served, and compiles `layout` first if
    /// the mode asks for it. Returns none if that has not been decided, and the caller then
    /// interprets the nest. This is the case in the modes that never compile, and in [`Mode::Lazy`]
    /// before the layout is compiled.
    ///
    /// If `bytes` is `None`, this method compiles now in every mode that compiles, and waits if
    /// another thread is compiling the layout. In [`Mode::Commit`] it does the same whatever
    /// `bytes` is.
    pub(crate) fn serve_call<'l, L: Cached + Planned>(
        &self,
        layout: &'l Arc<CompiledLayout<L>>,
        direction: Direction,
        bytes: Option<u64>,
    ) -> Option<&'l Tier> {
        match self.0.config.mode {
            Mode::Off | Mode::Interpret => None,
            Mode::Lazy => match (layout.served(direction), bytes) {
                (None, Some(bytes)) if self.has_moved(layout, direction, bytes) => {
                    self.try_serve(layout, direction)
                }
                (None, None) => Some(self.serve(layout, direction)),
                (served, _) => served,
            },
            Mode::Commit => Some(self.serve(layout, direction)),
        }
    }

    /// Counts a call of `bytes` bytes for a layout that is not compiled yet. Returns true if the
    /// layout should be compiled. That is so if the bytes of this layout have reached the lazy
    /// threshold. It is also so if the bytes that all layouts of the same `near_hash` have moved
    /// together have reached the threshold; such layouts differ only in distances of 64 KiB or
    /// more. A call of no bytes compiles only if the threshold is 0.
    fn has_moved<L: Cached>(&self, layout: &CompiledLayout<L>, direction: Direction, bytes: u64) -> bool {
        let threshold = self.0.config.lazy_threshold;
        if bytes == 0 && threshold > 0 {
            return false;
        }
        // The shared counter must not wrap around, so a call adds at most the threshold to it,
        // which suffices to reach the threshold.
        let near = |hash| self.0.cache.moved_near(hash, direction, bytes.min(threshold)) >= threshold;
        let bytes = if layout.near_hash().is_some_and(near) { bytes.max(threshold) } else { bytes };
        layout.has_reached(direction, bytes, threshold)
    }

    /// Returns how calls of `layout` in `direction` are served. If that has not been decided yet,
    /// this method compiles the layout. If several threads call it at the same time, one of them
    /// compiles and the others wait for the result.
    pub(crate) fn serve<'l, L: Cached + Planned>(
        &self,
        layout: &'l Arc<CompiledLayout<L>>,
        direction: Direction,
    ) -> &'l Tier {
        if let Some(tier) = layout.served(direction) {
            return tier;
        }
        let tier = layout.serve(direction, || self.compile_layout(layout, direction));
        self.0.cache.update_charge(layout);
        tier
    }

    /// Does what [`Engine::serve`] does, unless another thread is compiling the layout. Then it
    /// returns none, and the caller need not wait.
    pub(crate) fn try_serve<'l, L: Cached + Planned>(
        &self,
        layout: &'l Arc<CompiledLayout<L>>,
        direction: Direction,
    ) -> Option<&'l Tier> {
        let tier = layout.try_serve(direction, || self.compile_layout(layout, direction))?;
        self.0.cache.update_charge(layout);
        Some(tier)
    }

    fn compile_layout<L: Planned>(&self, layout: &CompiledLayout<L>, direction: Direction) -> Tier {
        self.compile(layout.nest(), Kind { direction, operation: layout.operation() })
    }

    /// Compiles a normal nest. Returns the kernel, or the reason why the nest is interpreted
    /// instead. Counts and logs which of the two happened.
    fn compile<L: Planned<S>, S: Side>(&self, nest: &LoopNest<Normal, L, S>, kind: Kind) -> Tier {
        let start = Instant::now();
        let mut made = self.kernel(nest, kind, &mut Trace::silent());
        if made.as_ref().is_err_and(|e| e.class() == ErrorClass::NoMem) {
            // Drop the layouts that nothing uses, together with their code, and try once more. A
            // layout whose instances are the iterations of another layout may survive this call;
            // see `Cache::clear`.
            self.0.cache.clear();
            made = self.kernel(nest, kind, &mut Trace::silent());
        }
        let nanos = start.elapsed().as_nanos() as u64;
        match made {
            Ok(Ok((kernel, schedule))) => {
                self.0.tally.compiled(nanos);
                tracing::debug!(target: "ddtc", %kind, nanos, code = kernel.code().len(), %schedule, "compiled");
                Tier::Kernel { kernel, schedule: schedule.into() }
            }
            Ok(Err(refusal)) => {
                self.0.tally.refused();
                tracing::debug!(target: "ddtc", %kind, reason = refusal.reason, "interpreted: the schedule refuses the nest");
                Tier::Interpreted { reason: refusal.reason.into(), fallback: false }
            }
            Err(error) => {
                self.0.tally.fell_back();
                tracing::warn!(target: "ddtc", %kind, %error, "interpreted: the compile failed");
                Tier::Interpreted { reason: error.to_string().into(), fallback: true }
            }
        }
    }

    /// Compiles a normal nest to a kernel. Also returns one line that describes the kernel.
    /// `Ok(Err(_))` means that the scheduler refused the nest by design.
    ///
    /// # Errors
    /// Returns the error of the stage that failed.
    pub(crate) fn kernel<L: Planned<S>, S: Side>(
        &self,
        nest: &LoopNest<Normal, L, S>,
        kind: Kind,
        trace: &mut Trace,
    ) -> Result<std::result::Result<(Arc<Kernel>, String), schedule::Refusal>> {
        let emission = self.emission()?;
        let (plan, summary) = match self.plan(nest, kind, emission, trace)? {
            Ok(made) => made,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let code = self.code(&plan, emission, trace)?;
        let kernel = self.load(code, emission, trace)?;
        let how = describe_kernel(&kernel, &summary);
        Ok(Ok((Arc::new(kernel), how)))
    }

    /// Schedules and legalizes a normal nest for `emission`. Also returns one line that describes
    /// the plan. `Ok(Err(_))` means that the scheduler refused the nest by design.
    fn plan<L: Planned<S>, S: Side>(
        &self,
        nest: &LoopNest<Normal, L, S>,
        kind: Kind,
        emission: &emit::Emission,
        trace: &mut Trace,
    ) -> Result<std::result::Result<(Plan<Legal>, String), schedule::Refusal>> {
        let made = trace.stage("schedule", || Ok(schedule::schedule(nest, kind, emission.target())))?;
        let plan = match made {
            Ok(plan) => plan,
            Err(refusal) => return Ok(Err(refusal)),
        };
        self.check(|| plan.verify())?;
        let legal = trace.stage("legalize", || legalize::legalize(&plan, emission.accesses()))?;
        self.check(|| legal.verify())?;
        Ok(Ok((legal, plan.summary())))
    }

    /// Emits the code of `plan`, or takes code of the same shape from the cache. A collecting
    /// `trace` also gets the listing of the code.
    fn code(&self, plan: &Plan<Legal>, emission: &emit::Emission, trace: &mut Trace) -> Result<CompiledCode> {
        trace.listing(|| emission.listing(plan));
        trace.stage("emit", || emission.emit(plan, |shape| self.0.cache.code(shape)))
    }

    /// Loads `code` and returns the kernel. The machine must be able to run the code. If `code`
    /// comes with the shape of its plan, the code is offered to the cache, so that later kernels
    /// for plans of that shape can share it.
    fn load(&self, mut code: CompiledCode, emission: &emit::Emission, trace: &mut Trace) -> Result<Kernel> {
        let (new, shape) = (matches!(code.text, Text::New { .. }), code.shape.take());
        let kernel = trace.stage("load", || load::load(code, &self.0.arena, emission.module_target()))?;
        if new {
            self.0.tally.emitted();
        }
        if let Some(shape) = shape {
            self.0.cache.share(shape, kernel.shared_code());
        }
        Ok(kernel)
    }

    /// Returns the target that this engine compiles for: the configured level on this machine.
    pub(crate) fn target(&self) -> Target {
        Target::host(self.0.config.level)
    }

    fn emission(&self) -> Result<&emit::Emission> {
        self.0.emission.get_or_init(|| self.emission_for(self.target())).as_ref().map_err(Error::clone)
    }

    fn emission_for(&self, target: Target) -> Result<emit::Emission> {
        let Config { native, check, precompiled, .. } = self.0.config;
        emit::Emission::new(target, native, check, precompiled)
    }

    fn check(&self, verify: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.0.config.check || cfg!(debug_assertions) { verify() } else { Ok(()) }
    }

    /// Moves the packed bytes `range` of `count` instances by interpreting the nest, without
    /// kernels.
    pub(crate) fn interpret(&self, layout: &CompiledLayout, memory: &Buffers, count: u64, range: Range<u64>) {
        nest_interpreter::interpret(layout.nest(), memory, count, range);
    }

    /// Moves `count` whole instances by interpreting the nest, without kernels.
    pub(crate) fn interpret_whole(&self, layout: &CompiledLayout, memory: &Buffers, count: u64) {
        nest_interpreter::interpret_whole(layout.nest(), memory, count);
    }

    /// Moves the packed bytes `range` of `count` instances. If the mode compiles, whole iterations
    /// of loops inside the range are moved by kernels.
    pub(crate) fn range(
        &self,
        layout: &Arc<CompiledLayout>,
        memory: &Buffers,
        count: u64,
        range: Range<u64>,
    ) {
        match self.0.config.mode {
            Mode::Off | Mode::Interpret => {
                nest_interpreter::range(layout.nest(), memory, count, range, &nest_interpreter::Plain)
            }
            Mode::Lazy | Mode::Commit => self.range_compiled(layout, memory, count, range),
        }
    }

    /// Moves a range like [`Engine::range`], for callers that know that the mode compiles.
    #[inline]
    pub(crate) fn range_compiled(
        &self,
        layout: &Arc<CompiledLayout>,
        memory: &Buffers,
        count: u64,
        range: Range<u64>,
    ) {
        let parts = Compiled { engine: self, layout, slots: layout.slots(), makes: true };
        nest_interpreter::range(layout.nest(), memory, count, range, &parts);
    }

    /// Returns the loop over a single copy that contains the whole `range`. Returns none if no such
    /// loop contains the range. The search needs the slots that a layout has for its nodes; if
    /// these slots do not exist yet, the method also returns none. Call this only for layouts that
    /// contain such a loop.
    #[inline(always)]
    pub(crate) fn strip(layout: &CompiledLayout, range: Range<u64>) -> Option<nest_interpreter::Strip<'_>> {
        let slots = layout.made_slots();
        nest_interpreter::Strip::find(layout.nest(), range, |i| Some(slots.get(i)?.descent()))
    }

    /// Moves the packed bytes `range` of `count` instances with the kernels that exist already.
    /// This method compiles nothing. It interprets the parts of the nest that no kernel can move.
    pub(crate) fn range_made(
        &self,
        layout: &Arc<CompiledLayout>,
        memory: &Buffers,
        count: u64,
        range: Range<u64>,
    ) {
        if layout.has_strips()
            && let Some(strip) = Engine::strip(layout, range.clone())
        {
            return strip.run(memory);
        }
        let parts = Compiled { engine: self, layout, slots: layout.made_slots(), makes: false };
        nest_interpreter::range(layout.nest(), memory, count, range, &parts);
    }

    /// Returns the table of the places where the segments of `layout` begin. The first call for a
    /// layout computes the table and keeps it with the layout.
    ///
    /// # Errors
    /// Returns class `NoMem` if there is no memory for the table.
    #[inline]
    pub(crate) fn runs<'l>(&self, layout: &'l Arc<CompiledLayout>) -> Result<&'l Runs> {
        layout.runs().map_or_else(|| self.find_runs(layout), Ok)
    }

    #[cold]
    fn find_runs<'l>(&self, layout: &'l Arc<CompiledLayout>) -> Result<&'l Runs> {
        let runs = layout.keep_runs(Runs::new(layout.nest())?);
        self.0.cache.update_charge(layout);
        Ok(runs)
    }

    /// Calls `f(displacement, position in the range, length)` for every basic piece of the packed
    /// range, in packing order, according to the definition of the type map. Check mode uses these
    /// pieces as the reference. All three numbers are in bytes.
    pub(crate) fn define(
        &self,
        t: &Datatype,
        count: u64,
        range: Range<u64>,
        f: &mut dyn FnMut(i64, usize, usize),
    ) -> Result<()> {
        let len = (range.end - range.start) as usize;
        interp::pieces(t, count, range.start, len, &mut |displacement, at, len| {
            f(displacement, at, len);
            Ok(())
        })
    }

    /// Counts a call for which check mode has found a difference.
    pub(crate) fn mismatch(&self) {
        self.0.tally.mismatched();
    }
}

/// Returns one line that describes how `kernel` moves bytes. `summary` describes the plan of the
/// kernel.
fn describe_kernel(kernel: &Kernel, summary: &str) -> String {
    format!("{}{summary}", if kernel.is_precompiled() { "precompiled " } else { "" })
}
