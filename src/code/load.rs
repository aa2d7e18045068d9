//! Stage `load`: makes a kernel of compiled code. It writes new code into a slot, and fills the
//! addresses of this process into the template of the context.
//!
//! Bytes that Cranelift has produced are copied through a `JITModule`, for three reasons. First,
//! emitting and loading are two stages, so that code for any target can be emitted, listed and
//! compared on any machine; what arrives here is bytes. Second, the module is the means that
//! cranelift-jit itself has to place such bytes: it asks its memory provider for the alignment,
//! permissions and branch protection of the target, which the arena therefore need not know. Third,
//! it costs only 0.7 us (AMD Zen 4, measured with a prototype), and only if Cranelift emitted the
//! code: code of templates is written to its slot directly.
//!
//! Each load makes a new module. A module that is kept grows with every function and frees nothing,
//! while a new one leaves only the slot. The module sees the writable address of the slot, the
//! kernel gets the executable one.
//!
//! cranelift-jit reads one environment variable, `PERF_BUILDID_DIR`. If it is set, names and
//! addresses of functions are appended to `/tmp/perf-PID.map`. These are the writable addresses,
//! which are useless for perf here.

#[cfg(feature = "cranelift")]
mod module;

use crate::code::arena::{Arena, Draft};
use crate::code::kernel::{Code, CompiledCode, Context, Kernel, ModuleTarget, Text};
use crate::error::Result;
#[cfg(feature = "cranelift")]
use module::by_module;

/// Places new code in `arena`, seals it, and fills in the addresses of its context. The code goes
/// through a module of Cranelift if there is a `target` for one. Code that is already sealed is
/// used as it is.
///
/// # Errors
/// Class `NoMem` if the arena is full or the system refuses memory. Class `Arg` if
/// [`Arena::allocate`] refuses the length of the code, which must not be zero, or its alignment.
/// Class `Other` if [`Draft::seal`] cannot flush the instruction cache. Class `Intern` if the code
/// or the target breaks a rule of the module.
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
