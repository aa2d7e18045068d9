//! Emission: a legal plan becomes machine code, in safe Rust.
//!
//! What the code looks like is decided in the plan and here, not by an optimizer: rotated loops over two bumped pointers, constant
//! offsets folded into the accesses, calls of micro-kernels by address, no relocation. Two emitters stand behind one trait:
//! [`Cranelift`] for every target that it has, the general path, and [`X64`], which writes x86-64 by templates in a
//! twentieth of the time. Tests run the same plans through both.

mod cranelift;
mod x64;

use cranelift_codegen::isa::OwnedTargetIsa;

use crate::error::Result;
use crate::kernel::{CompiledCode, Context};
use crate::plan::{Legal, Plan};
use crate::target::Target;

pub use cranelift::Cranelift;
pub use x64::X64;

/// Largest code of one kernel in bytes; the schedule's limits keep kernels below it.
pub const MAX_CODE: usize = 16 << 10;

/// What turns plans into machine code.
pub trait Emitter: Send + Sync {
    /// The widest access in bytes that moves may have.
    fn widest_access(&self) -> u32;

    /// Emits the code and context of `plan`.
    ///
    /// # Errors
    /// `Intern` when the plan breaks a rule or code cannot be made: always our fault, and the caller falls back.
    fn emit(&self, plan: &Plan<Legal>) -> Result<CompiledCode>;

    /// What [`Emitter::emit`] makes, for people.
    ///
    /// # Errors
    /// As [`Emitter::emit`].
    fn listing(&self, plan: &Plan<Legal>) -> Result<Listing>;

    /// The target by which a module places the code; none where code goes into its slot as it is.
    fn module_target(&self) -> Option<&OwnedTargetIsa> {
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
}

/// The emitter of this machine for `target`: by templates where there is one and `native` asks for it, else Cranelift, which
/// verifies its input if `verifier` says so.
///
/// # Errors
/// When Cranelift does not support the machine.
pub fn for_host(target: Target, native: bool, verifier: bool) -> Result<Box<dyn Emitter>> {
    match X64::for_host(target).filter(|_| native) {
        Some(x64) => Ok(Box::new(x64)),
        None => Ok(Box::new(Cranelift::for_host(verifier)?)),
    }
}

/// The context of `plan`: all that a kernel needs when code of the plan's shape exists already.
pub fn context(plan: &Plan<Legal>) -> Context {
    Context::new(&plan.words(), plan.columns().to_vec())
}
