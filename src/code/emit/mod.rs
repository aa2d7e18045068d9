//! Stage `emit`: makes machine code of a legal plan, in safe Rust.
//!
//! The form of the code is decided by the plan and by the emitters, not by an optimizer: loops are
//! rotated and advance two pointers, and constant offsets are folded into the accesses. The code
//! contains no addresses, so it needs no relocations. It reads the addresses of tables and
//! micro-kernels from the context, an array of words that is passed to each call.
//!
//! Two emitters implement the trait [`Emitter`]. `Cranelift` (feature `cranelift`) is the general
//! path, for every target that Cranelift has. [`X64`] writes code for x86-64 by instruction
//! templates, in about a twentieth of the time that Cranelift takes. Tests run the same plans
//! through both. Some plans consist of one call of a micro-kernel, possibly in a loop. For these
//! there is precompiled code, so they need no emitter.

#[cfg(feature = "cranelift")]
mod cranelift;
mod precompiled;
mod x64;

use crate::code::kernel::{Code, CompiledCode, ModuleTarget, Text};
use crate::error::{Error, Result};
use crate::plan::{Legal, Plan, Shape, Word};
use crate::target::{Accesses, Target};

#[cfg(feature = "cranelift")]
pub use cranelift::Cranelift;
pub use x64::X64;

/// Maximum size in bytes of the code of one kernel. The stage `schedule` limits the operations of a
/// plan so that kernels stay below this size.
pub const MAX_CODE: usize = 16 << 10;

/// An emitter, which makes machine code of plans for one target.
pub trait Emitter: Send + Sync {
    /// Returns the accesses that legalization may turn moves into.
    fn accesses(&self) -> Accesses;

    /// Returns the machine code of `plan` and its alignment in bytes.
    ///
    /// # Errors
    /// Class `Intern` if the plan breaks a rule or no code can be made for it. This is always a
    /// fault of ddtc, and the caller falls back to the interpreter of nests.
    fn code(&self, plan: &Plan<Legal>) -> Result<(Vec<u8>, u32)>;

    /// Returns the code that [`Emitter::code`] makes of `plan` as text for people.
    ///
    /// # Errors
    /// The errors of [`Emitter::code`], except that some emitters do not detect all of them when
    /// they make a listing.
    fn listing(&self, plan: &Plan<Legal>) -> Result<Listing>;

    /// Returns the target to pass to the stage `load`, which then places the code through a module
    /// of Cranelift. The result is none if the code is written to its slot directly.
    fn module_target(&self) -> Option<&ModuleTarget> {
        None
    }
}

/// Code of a plan as text.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The intermediate representation of the emitter; empty if it has none.
    pub ir: String,
    /// The instructions.
    pub code: String,
    /// Those words of the context that are addresses instead of numbers, one per line.
    pub context: String,
    /// Whether there is precompiled code for the plan.
    pub precompiled: bool,
}

/// The stage `emit` for one target. It uses precompiled code if there is some for the plan,
/// otherwise code that exists for another plan of the same shape, and otherwise an emitter.
pub struct Emission {
    target: Target,
    /// The emitter, or the reason why there is none.
    emitter: std::result::Result<Box<dyn Emitter>, String>,
    /// Whether plans may use precompiled code, which exists only for the machine that this process
    /// runs on.
    precompiled: bool,
    runs: bool,
}

impl Emission {
    /// Returns the stage for `target`. If there are instruction templates for the target and
    /// `native` is true, code is written by these templates, otherwise by Cranelift. Cranelift
    /// verifies its input if `verifier` is true. If `precompiled` is false, no plan uses
    /// precompiled code.
    ///
    /// Templates can write code for a target that this machine does not run, but Cranelift is used
    /// only for targets that it runs. So a target that this machine does not run may have no
    /// emitter; [`Emission::missing`] then returns the reason.
    ///
    /// # Errors
    /// Class `Intern` if Cranelift is needed and does not support this machine, and class
    /// `Unsupported` if Cranelift is needed and not compiled in (feature `cranelift`).
    pub fn new(target: Target, native: bool, verifier: bool, precompiled: bool) -> Result<Emission> {
        let runs = target.runs();
        let x64 = if runs { X64::for_host(target) } else { X64::new(target) };
        let emitter: std::result::Result<Box<dyn Emitter>, String> = match x64.filter(|_| native) {
            Some(x64) => Ok(Box::new(x64)),
            None if runs => Ok(general(verifier)?),
            None => Err(format!("Cranelift writes code for this machine alone, which does not run {target}")),
        };
        Ok(Emission { target, emitter, precompiled: precompiled && runs, runs })
    }

    /// Returns the target that the code is for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Returns the reason why there is no emitter for the target, or none if there is an emitter.
    pub fn missing(&self) -> Option<&str> {
        self.emitter.as_ref().err().map(String::as_str)
    }

    fn emitter(&self) -> Result<&dyn Emitter> {
        match &self.emitter {
            Ok(emitter) => Ok(&**emitter),
            Err(missing) => Err(Error::internal("emit", missing.clone())),
        }
    }

    /// Returns the accesses that legalization may turn moves into. These are the accesses of the
    /// emitter. If there is no emitter, they are those up to the widest access of the target,
    /// without permutations.
    pub fn accesses(&self) -> Accesses {
        self.emitter().map_or(self.target.level().widest_access().into(), Emitter::accesses)
    }

    /// Returns the target to pass to the stage `load`, which then places the code through a module
    /// of Cranelift. The result is none if the code is written to its slot directly, or if there is
    /// no emitter.
    pub fn module_target(&self) -> Option<&ModuleTarget> {
        self.emitter().ok()?.module_target()
    }

    /// Returns the code of `plan` with its context. If there is precompiled code for the plan, that
    /// code is used. Otherwise, if the plan has a shape and `of_shape` returns code for it, that
    /// code is used. Otherwise the emitter makes new code.
    ///
    /// # Errors
    /// The errors of [`Emitter::code`]; class `Intern` if new code is needed and there is no
    /// emitter, or if the new code is larger than [`MAX_CODE`].
    pub fn emit(
        &self,
        plan: &Plan<Legal>,
        of_shape: impl FnOnce(&Shape) -> Option<Code>,
    ) -> Result<CompiledCode> {
        let known = |code| CompiledCode { text: Text::Sealed(code), shape: None, context: plan.template() };
        if let Some(code) = self.precompiled.then(|| precompiled::code(plan)).flatten() {
            return Ok(known(code));
        }
        let shape = plan.shape();
        match shape.as_ref().and_then(of_shape) {
            Some(code) => Ok(known(code)),
            None => new(self.emitter()?, plan, shape),
        }
    }

    /// Returns the code that the emitter makes of `plan`, and the context, as text for people.
    ///
    /// # Errors
    /// The errors of [`Emitter::listing`]; class `Intern` if there is no emitter.
    pub fn listing(&self, plan: &Plan<Legal>) -> Result<Listing> {
        let mut context = String::new();
        for (i, word) in plan.template().words.iter().enumerate() {
            match word {
                Word::Constant(_) => {}
                Word::Table(table) => context += &format!("word {i} = table {table}\n"),
                Word::TableEnd(table) => context += &format!("word {i} = end of table {table}\n"),
                Word::Callee(micro) => context += &format!("word {i} = {micro}\n"),
            }
        }
        let precompiled = self.runs && precompiled::code(plan).is_some();
        Ok(Listing { context, precompiled, ..self.emitter()?.listing(plan)? })
    }
}

/// Returns the emitter that is used if there are no instruction templates for this machine or if
/// they are not wanted.
#[cfg(feature = "cranelift")]
fn general(verifier: bool) -> Result<Box<dyn Emitter>> {
    Ok(Box::new(Cranelift::for_host(verifier)?))
}

#[cfg(not(feature = "cranelift"))]
fn general(_verifier: bool) -> Result<Box<dyn Emitter>> {
    let rule = "must be on where there are templates: Cranelift is not compiled in (feature `cranelift`)";
    Err(Error::new(crate::error::ErrorClass::Unsupported, "emit", "native", false, rule))
}

/// Returns new code of `plan`, made by `emitter`, with its context.
///
/// # Errors
/// The errors of [`Emitter::code`]; class `Intern` if the code is larger than [`MAX_CODE`].
pub fn emit(emitter: &dyn Emitter, plan: &Plan<Legal>) -> Result<CompiledCode> {
    new(emitter, plan, plan.shape())
}

fn new(emitter: &dyn Emitter, plan: &Plan<Legal>, shape: Option<Shape>) -> Result<CompiledCode> {
    let (bytes, alignment) = emitter.code(plan)?;
    if bytes.len() > MAX_CODE {
        return Err(Error::internal("emit", "the code is larger than a kernel may be"));
    }
    Ok(CompiledCode { text: Text::New { bytes, alignment }, shape, context: plan.template() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Datatype;
    use crate::kind::Direction;
    use crate::legalize::legalize;
    use crate::lower::{Bytes, lower};
    use crate::normalize::normalize;
    use crate::schedule::schedule;
    use crate::target::{Arch, Level};

    /// Code is placed by a module of Cranelift exactly if Cranelift emits it. For a target that
    /// this machine does not run, an [`Emission`] has no emitter but the instruction templates.
    #[test]
    #[cfg(feature = "cranelift")]
    fn where_code_comes_from() {
        let here = Target::host(Level::detect());
        let general = Emission::new(here, false, false, false).unwrap();
        assert!(general.missing().is_none() && general.module_target().is_some());
        let elsewhere = Target::new(if here.arch() == Arch::Aarch64 { Level::Avx512 } else { Level::Neon });
        let none = Emission::new(elsewhere, false, false, false).unwrap();
        assert!(none.missing().is_some_and(|why| why.contains(&elsewhere.to_string())));
        assert!(none.module_target().is_none());
        // A listing says whether there is precompiled code for the plan. If this machine runs the
        // target, there is some for the vector below, but not for the irregular type.
        let listed = |emission: &Emission, text: &str| {
            let t: Datatype = text.parse().unwrap();
            let nest = normalize(&lower(&t, Bytes).unwrap(), t.arguments()).unwrap().nest;
            let plan = schedule(&nest, Direction::Pack, emission.target()).unwrap();
            emission.listing(&legalize(&plan, emission.accesses()).unwrap()).unwrap().precompiled
        };
        assert!(listed(&general, "vector(1000, 1, 2, double)"));
        assert!(!listed(&general, "resized(0, 4000, hindexed([12, 7], [0, 1000], char))"));
        let templates = Emission::new(Target::new(Level::Avx512), true, false, false).unwrap();
        assert!(templates.missing().is_none() && templates.module_target().is_none());
    }
}
