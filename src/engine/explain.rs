//! Explains to people what the pipeline did to one datatype: the text of every stage with its time.

use std::time::{Duration, Instant};

use super::{Engine, describe_kernel};
use crate::code::emit::Listing;
use crate::code::kernel::Text;
use crate::datatype::Datatype;
use crate::error::Result;
use crate::kind::{Kind, Operation};
use crate::lower::{Bytes, Leaves, Values};
use crate::nest::{Leaf, LoopNest, Normal, Side};
use crate::schedule::Planned;
use crate::target::Target;

/// One stage of an [`Explanation`].
#[derive(Clone, Debug)]
pub struct Stage {
    /// The stage's one name.
    pub name: &'static str,
    /// How long it took.
    pub time: Duration,
    /// The text form of what it made; empty where that is machine code.
    pub text: String,
    /// Whether the text is the same as the one before it, but for the name of the phase.
    pub unchanged: bool,
}

/// Every stage of one datatype for one kind.
#[derive(Clone, Debug, Default)]
pub struct Explanation {
    /// Stages in order, those that there are.
    pub stages: Vec<Stage>,
    /// Stages that cannot be shown for this target, and why.
    pub missing: Vec<(&'static str, String)>,
    /// User offset in bytes that normalization took out of the nest.
    pub origin: i64,
    /// Why the nest is walked, if the schedule refused it.
    pub refusal: Option<&'static str>,
    /// The code as text, as the emitter shows it.
    pub listing: Listing,
    /// The machine code.
    pub code: Vec<u8>,
    /// One line on the schedule chosen.
    pub schedule: String,
}

/// Collects stages, or only logs them.
pub(crate) struct Trace {
    stages: Option<Vec<Stage>>,
    code: Option<Listing>,
}

impl Trace {
    pub(crate) fn silent() -> Trace {
        Trace { stages: None, code: None }
    }

    fn collecting() -> Trace {
        Trace { stages: Some(Vec::new()), code: None }
    }

    /// Runs one stage under its name.
    pub(super) fn stage<T: Shown>(
        &mut self,
        name: &'static str,
        run: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let start = Instant::now();
        let made = run()?;
        let time = start.elapsed();
        tracing::trace!(target: "ddtc", stage = name, micros = time.as_micros() as u64);
        if let Some(stages) = &mut self.stages {
            let text = made.shown();
            let body = |s: &str| s.split_once('\n').map_or(String::new(), |(_, b)| b.to_owned());
            let unchanged =
                stages.last().is_some_and(|s: &Stage| !text.is_empty() && body(&s.text) == body(&text));
            stages.push(Stage { name, time, text, unchanged });
        }
        Ok(made)
    }

    /// Collects the listing of the machine code, when somebody reads it.
    pub(super) fn listing(&mut self, make: impl FnOnce() -> Result<Listing>) {
        if self.stages.is_some() {
            self.code = make().ok();
        }
    }
}

/// Text of a stage's result for people; empty for machine code.
pub(super) trait Shown {
    /// The text.
    fn shown(&self) -> String {
        String::new()
    }
}

impl<P: crate::nest::Phase, L: Leaf> Shown for crate::nest::LoopNest<P, L> {
    fn shown(&self) -> String {
        self.to_string()
    }
}
impl<L: Leaf> Shown for crate::normalize::Normalized<L> {
    fn shown(&self) -> String {
        self.nest.to_string()
    }
}
impl<P: crate::plan::Phase> Shown for crate::plan::Plan<P> {
    fn shown(&self) -> String {
        self.to_string()
    }
}
impl<T: Shown> Shown for std::result::Result<T, crate::schedule::Refusal> {
    fn shown(&self) -> String {
        match self {
            Ok(made) => made.shown(),
            Err(refusal) => format!("walked: {}\n", refusal.reason),
        }
    }
}
impl Shown for crate::datatype::Datatype {}
impl Shown for crate::code::kernel::CompiledCode {}
impl Shown for crate::code::kernel::Kernel {}

impl Engine {
    /// Runs every stage on `t` for `target` and keeps what each made. No layout is cached, and nothing is loaded for a target that this
    /// machine does not run.
    ///
    /// # Errors
    /// The error of the stage that failed.
    pub(crate) fn explain(&self, t: &Datatype, kind: impl Into<Kind>, target: Target) -> Result<Explanation> {
        let kind = kind.into();
        match kind.operation {
            Operation::Bytes => self.explain_leaves(t, Bytes, kind, target),
            operation => self.explain_leaves(t, Values(operation), kind, target),
        }
    }

    /// Explains a copy from `from` to `to`: the stages of both, and what joins them.
    ///
    /// # Errors
    /// The error of the stage that failed.
    pub(crate) fn explain_copy(&self, from: &Datatype, to: &Datatype, target: Target) -> Result<Explanation> {
        let mut trace = Trace::collecting();
        let [from, to] = [self.nest(from, Bytes, &mut trace)?, self.nest(to, Bytes, &mut trace)?];
        let mut out = Explanation { origin: from.origin, ..Explanation::default() };
        match self.join([&from.nest, &to.nest], &mut trace)? {
            Err(reason) => {
                out.refusal = Some(reason);
                out.stages = trace.stages.unwrap_or_default();
                Ok(out)
            }
            Ok(joint) => self.explain_nest(&joint.nest, joint.direction.into(), target, (trace, out)),
        }
    }

    fn explain_leaves<V: Leaves<Leaf: Planned>>(
        &self,
        t: &Datatype,
        leaves: V,
        kind: Kind,
        target: Target,
    ) -> Result<Explanation> {
        let mut trace = Trace::collecting();
        let normalized = self.nest(t, leaves, &mut trace)?;
        let out = Explanation { origin: normalized.origin, ..Explanation::default() };
        self.explain_nest(&normalized.nest, kind, target, (trace, out))
    }

    /// Explains the stages after normalization.
    fn explain_nest<L: Planned<S>, S: Side>(
        &self,
        nest: &LoopNest<Normal, L, S>,
        kind: Kind,
        target: Target,
        (mut trace, mut out): (Trace, Explanation),
    ) -> Result<Explanation> {
        let emission = self.emission_for(target)?;
        match self.plan(nest, kind, &emission, &mut trace)? {
            Err(refusal) => out.refusal = Some(refusal.reason),
            Ok((plan, summary)) => {
                out.schedule = summary;
                if let Some(why) = emission.missing() {
                    out.missing.push(("emit", why.to_owned()));
                } else {
                    let code = self.code(&plan, &emission, &mut trace)?;
                    if target.runs() {
                        let kernel = self.load(code, &emission, &mut trace)?;
                        out.code = kernel.code().to_vec();
                        out.schedule = describe_kernel(&kernel, &out.schedule);
                    } else if let Text::New { bytes, .. } = code.text {
                        out.code = bytes;
                    }
                }
                if !target.runs() {
                    out.missing.push(("load", format!("this machine does not run {target}")));
                }
            }
        }
        out.stages = trace.stages.unwrap_or_default();
        out.listing = trace.code.unwrap_or_default();
        Ok(out)
    }
}
