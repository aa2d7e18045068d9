//! Explanations of what the pipeline does with one datatype: the text of every stage, with its
//! time.

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

/// Name, time and result of one stage in an [`Explanation`].
#[derive(Clone, Debug)]
pub struct Stage {
    /// The name of the stage, from [`super::STAGES`].
    pub name: &'static str,
    /// How long the stage took.
    pub time: Duration,
    /// The text form of the result of the stage. It is empty if the result is machine code.
    pub text: String,
    /// Whether the text equals that of the stage before, except for the first line, which names the
    /// phase. False if the text is empty.
    pub unchanged: bool,
}

/// Result of every stage of the pipeline for one datatype, one kind and one target.
#[derive(Clone, Debug, Default)]
pub struct Explanation {
    /// The stages that ran, in order.
    pub stages: Vec<Stage>,
    /// The stages that could not run for this target, with the reason for each.
    pub missing: Vec<(&'static str, String)>,
    /// User offset in bytes that normalization took out of the nest. For a copy between two layouts
    /// it is the offset of the source.
    pub origin: i64,
    /// The reason why there is no kernel, if the scheduler refused the nest or the two layouts of a
    /// copy could not be fused.
    pub refusal: Option<&'static str>,
    /// The code as text, in the form in which the emitter shows it.
    pub listing: Listing,
    /// The machine code. This vector is empty if there is no code or if the kernel is precompiled.
    /// For a target that this machine cannot run, the vector is empty unless the code was newly
    /// emitted.
    pub code: Vec<u8>,
    /// One line that describes the chosen schedule.
    pub schedule: String,
}

/// Observer of the stages. A collecting trace keeps the results of the stages for an explanation;
/// any other trace only logs how long each stage took.
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

    /// Runs a stage and logs its name and time. A collecting trace also keeps the text of the
    /// result.
    ///
    /// # Errors
    /// Returns the error of the stage. A stage that failed is neither logged nor collected.
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

    /// Makes the listing of the machine code and keeps the listing, if this is a collecting trace.
    /// If `make` fails, there is no listing.
    pub(super) fn listing(&mut self, make: impl FnOnce() -> Result<Listing>) {
        if self.stages.is_some() {
            self.code = make().ok();
        }
    }
}

/// Result of a stage that can be shown to a reader as text.
pub(super) trait Shown {
    /// Returns the text form. The default is empty, for machine code and datatypes.
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
            Err(refusal) => format!("interpreted: {}\n", refusal.reason),
        }
    }
}
impl Shown for crate::datatype::Datatype {}
impl Shown for crate::code::kernel::CompiledCode {}
impl Shown for crate::code::kernel::Kernel {}

#[cfg(any(test, feature = "internal"))]
impl Engine {
    /// Runs every stage on `t` for `target` and returns the result of each. No layout is put into
    /// the cache. For a target that this machine cannot run, no code is loaded.
    ///
    /// # Errors
    /// Returns the error of the stage that failed.
    pub(crate) fn explain(&self, t: &Datatype, kind: impl Into<Kind>, target: Target) -> Result<Explanation> {
        let kind = kind.into();
        match kind.operation {
            Operation::Bytes => self.explain_leaves(t, Bytes, kind, target),
            operation => self.explain_leaves(t, Values(operation), kind, target),
        }
    }

    /// Explains a copy from `from` to `to`: the stages of each of the two datatypes up to its
    /// normal nest, and then the stages of the fused nest.
    ///
    /// # Errors
    /// Returns the error of the stage that failed.
    pub(crate) fn explain_copy(&self, from: &Datatype, to: &Datatype, target: Target) -> Result<Explanation> {
        let mut trace = Trace::collecting();
        let [from, to] = [self.nest(from, Bytes, &mut trace)?, self.nest(to, Bytes, &mut trace)?];
        let mut out = Explanation { origin: from.origin, ..Explanation::default() };
        match self.fuse([&from.nest, &to.nest], &mut trace)? {
            Err(reason) => {
                out.refusal = Some(reason);
                out.stages = trace.stages.unwrap_or_default();
                Ok(out)
            }
            Ok(fused) => self.explain_nest(&fused.nest, fused.direction.into(), target, (trace, out)),
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

    /// Runs the stages after normalization and completes the explanation `out` with them.
    ///
    /// # Errors
    /// Returns the error of the stage that failed.
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
