//! load: compiled code becomes a kernel. New code goes into a slot; the template of the context gets its addresses.
//!
//! Bytes that Cranelift has finished are copied by way of a `JITModule`, for three reasons. Emitting and loading are two stages, so that code for any target
//! is emitted, listed and compared on any machine, and what arrives here is bytes. The module is cranelift-jit's own way to place such bytes: it asks the
//! memory behind it for the alignment, permissions and branch protection of its target, which the arena then need not know. It costs 0.7 us (AMD Zen 4,
//! prototype) and only where Cranelift serves, since code of templates is written to its slot as it is.
//!
//! The module is a fresh one: a long-lived one grows with every function and frees nothing, a fresh one leaves only the slot behind. It sees the writable
//! address of the slot; the kernel gets the executable one.
//!
//! cranelift-jit reads one environment variable, `PERF_BUILDID_DIR`: when it is set, names and addresses of functions are
//! appended to `/tmp/perf-PID.map` (by the writable address, which is of no use to perf here).

#[cfg(feature = "cranelift")]
mod module;

use crate::code::arena::{Arena, Draft};
use crate::code::kernel::{Code, CompiledCode, Context, Kernel, ModuleTarget, Text};
use crate::error::Result;
#[cfg(feature = "cranelift")]
use module::by_module;

/// Places new code in `arena`, by a module where it is for a target of Cranelift's, seals it, and resolves the context.
///
/// # Errors
/// `NoMem` when the arena is full or the system refuses memory; `Intern` when the code or the target breaks a rule.
pub fn load(code: CompiledCode, arena: &Arena, target: Option<&ModuleTarget>) -> Result<Kernel> {
    let text = match code.text {
        Text::Sealed(code) => code,
        Text::New { bytes, alignment } => Code::new(placed(&bytes, alignment, arena, target)?.seal()?),
    };
    Ok(Kernel::new(text, Context::of(code.context)))
}

fn placed(bytes: &[u8], alignment: u32, arena: &Arena, target: Option<&ModuleTarget>) -> Result<Draft> {
    match target {
        Some(isa) => by_module(bytes, alignment, arena, isa),
        None => {
            let mut draft = arena.allocate(bytes.len(), u64::from(alignment.max(1)))?;
            draft.write(bytes);
            Ok(draft)
        }
    }
}

#[cfg(not(feature = "cranelift"))]
fn by_module(_bytes: &[u8], _alignment: u32, _arena: &Arena, none: &ModuleTarget) -> Result<Draft> {
    match *none {}
}
