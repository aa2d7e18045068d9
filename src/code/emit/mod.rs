//! Emission: a legal plan becomes machine code, in safe Rust.
//!
//! What the code looks like is decided in the plan and here, not by an optimizer: rotated loops over two bumped pointers, constant
//! offsets folded into the accesses. Code has no address in it: tables and micro-kernels are words of its context, so it has no relocation
//! either. Two emitters stand behind one trait:
//! [`Cranelift`] for every target that it has, the general path, and [`X64`], which writes x86-64 by templates in a
//! twentieth of the time. Tests run the same plans through both. Plans that are one call, possibly in a loop, have precompiled code.

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

/// Largest code of one kernel in bytes; the schedule's limits keep kernels below it.
pub const MAX_CODE: usize = 16 << 10;

/// Turns plans into machine code.
pub trait Emitter: Send + Sync {
    /// The accesses that moves may become.
    fn accesses(&self) -> Accesses;

    /// The machine code of `plan` and its alignment in bytes.
    ///
    /// # Errors
    /// `Intern` when the plan breaks a rule or code cannot be made: always our fault, and the caller falls back.
    fn code(&self, plan: &Plan<Legal>) -> Result<(Vec<u8>, u32)>;

    /// Returns the result of [`Emitter::code`] as text for people.
    ///
    /// # Errors
    /// As [`Emitter::code`].
    fn listing(&self, plan: &Plan<Legal>) -> Result<Listing>;

    /// The target by which a module places the code; none where code goes into its slot as it is.
    fn module_target(&self) -> Option<&ModuleTarget> {
        None
    }
}

/// Code as text.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The emitter's own representation; empty where it has none.
    pub ir: String,
    /// The instructions.
    pub code: String,
    /// The words of the context that are no numbers, a line each.
    pub context: String,
    /// Whether there is precompiled code for the plan.
    pub precompiled: bool,
}

/// The stage for one target: an emitter for new code, precompiled code, and code of a shape that somebody knows.
pub struct Emission {
    target: Target,
    /// Or why there is none.
    emitter: std::result::Result<Box<dyn Emitter>, String>,
    /// Whether plans go to precompiled code, which is there for the machine that this runs on.
    precompiled: bool,
    runs: bool,
}

impl Emission {
    /// For `target`: by templates where there are some and `native` asks for them, else through Cranelift, which verifies its input if
    /// `verifier` says so. Without `precompiled` every plan has code of its own.
    ///
    /// Templates write code for any machine, Cranelift for this one: of some targets that this machine does not run there is no code
    /// ([`Emission::missing`]).
    ///
    /// # Errors
    /// When Cranelift does not support the machine; class `Unsupported` where it is not compiled in (feature `cranelift`).
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

    /// Returns the target of its code.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Returns why there is no code for the target; none where there is.
    pub fn missing(&self) -> Option<&str> {
        self.emitter.as_ref().err().map(String::as_str)
    }

    fn emitter(&self) -> Result<&dyn Emitter> {
        match &self.emitter {
            Ok(emitter) => Ok(&**emitter),
            Err(missing) => Err(Error::internal("emit", missing.clone())),
        }
    }

    /// Returns the accesses that moves may become: those of the emitter, or where there is none the plain ones of the target.
    pub fn accesses(&self) -> Accesses {
        self.emitter().map_or(self.target.level().widest_access().into(), Emitter::accesses)
    }

    /// Returns the target by which a module places the code; none where code goes into its slot as it is.
    pub fn module_target(&self) -> Option<&ModuleTarget> {
        self.emitter().ok()?.module_target()
    }

    /// Returns the code of `plan` with its context: precompiled, else what `of_shape` knows, else new.
    ///
    /// # Errors
    /// As [`Emitter::code`]; where there is no emitter.
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

    /// Returns the result of [`Emitter::code`] for `plan`, and the context, as text for people.
    ///
    /// # Errors
    /// As [`Emission::emit`].
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

/// The emitter of every machine.
#[cfg(feature = "cranelift")]
fn general(verifier: bool) -> Result<Box<dyn Emitter>> {
    Ok(Box::new(Cranelift::for_host(verifier)?))
}

#[cfg(not(feature = "cranelift"))]
fn general(_verifier: bool) -> Result<Box<dyn Emitter>> {
    let rule = "must be on where there are templates: Cranelift is not compiled in (feature `cranelift`)";
    Err(Error::new(crate::error::ErrorClass::Unsupported, "emit", "native", false, rule))
}

/// New code of `plan` by `emitter`, with its context.
///
/// # Errors
/// As [`Emitter::code`].
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

    /// Code goes through a module where Cranelift makes it, and nowhere else; for another machine only templates make some.
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
        // A listing says that there is precompiled code for a plan where there is some, on the machine that it is for.
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
