//! Stage `load`: makes a kernel of compiled code. It writes new code into a slot of the arena, and
//! fills the addresses of this process into the template of the context.
//!
//! New code arrives as bytes and not as a function in memory, because emitting is a separate stage
//! that runs before loading. Emitting needs no executable memory, so code for any target can be
//! emitted, listed and compared on any machine.
//!
//! The bytes are placed in one of two ways. Code of templates is written to its slot directly.
//! Bytes that Cranelift has emitted are copied through a `JITModule`, which is the means that
//! cranelift-jit itself has to place such bytes. The module asks its memory provider for the
//! alignment, permissions and branch protection of the target, so the arena need not know these.
//! This detour costs only 0.7 us (AMD Zen 4, measured with a prototype).
//!
//! Each load makes a new module. A module that is kept would grow with every function and free
//! nothing, while a module for one function is dropped and only the slot remains. The module sees
//! the writable address of the slot, the kernel gets the executable address.
//!
//! cranelift-jit reads one environment variable, `PERF_BUILDID_DIR`. If this variable is set,
//! cranelift-jit appends names and addresses of functions to `/tmp/perf-PID.map`. The file is
//! useless here, because perf sees the executable addresses of kernels and the file contains the
//! writable ones.

#[cfg(feature = "cranelift")]
mod module;

use crate::code::arena::{Arena, Draft};
use crate::code::kernel::{Code, CompiledCode, Context, Kernel, ModuleTarget, Text};
use crate::error::Result;
#[cfg(feature = "cranelift")]
use module::by_module;

/// Makes a kernel of `code`. New code is placed in `arena` and made executable; if `target` is
/// given, it is placed through a module of Cranelift. Code that is already executable is used as it
/// is. The addresses of this process are filled into the template of the context.
///
/// # Errors
/// Class `NoMem` if the arena is full or the system refuses memory. Class `Arg` if
/// [`Arena::allocate`] refuses the length of the code, which must not be zero, or its alignment.
/// Class `Other` if [`Draft::seal`] cannot flush the instruction cache. Class `Intern` if a module
/// of Cranelift is used and cannot place the code (see `by_module`).
pub fn load(code: CompiledCode, arena: &Arena, target: Option<&ModuleTarget>) -> Result<Kernel> {
    let text = match code.text {
        Text::Sealed(code) => code,
        Text::New { bytes, alignment } => Code::new(placed(&bytes, alignment, arena, target)?.seal()?),
    };
    Ok(Kernel::new(text, Context::from_template(code.context)))
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
