//! load: compiled code becomes a kernel. New code goes into a slot; the template of the context gets its addresses.
//!
//! Code of a target of Cranelift's goes through a fresh `JITModule` over the arena: a long-lived one grows with every function and
//! frees nothing, a fresh one costs 0.7 us (AMD Zen 4, prototype) and leaves only the slot behind. The module sees the writable
//! address of the slot; the kernel gets the executable one. Code of our own needs nothing of a module and is written to its slot.
//!
//! cranelift-jit reads one environment variable, `PERF_BUILDID_DIR`: when it is set, names and addresses of functions are
//! appended to `/tmp/perf-PID.map` (by the writable address, which is of no use to perf here).

use cranelift_codegen::ir::Signature;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Module, ModuleError, default_libcall_names};

use crate::arena::{Arena, Draft};
use crate::error::{Error, Result};
use crate::kernel::{Code, CompiledCode, Context, Kernel, Provider, Text};

/// Places new code in `arena`, by a module where it is for a target of Cranelift's, seals it, and resolves the context.
///
/// # Errors
/// `NoMem` when the arena is full or the system refuses memory; `Intern` when the code or the target breaks a rule.
pub fn load(code: CompiledCode, arena: &Arena, target: Option<&OwnedTargetIsa>) -> Result<Kernel> {
    let text = match code.text {
        Text::Sealed(code) => code,
        Text::New { bytes, alignment } => Code::new(placed(&bytes, alignment, arena, target)?.seal()?),
    };
    Ok(Kernel::new(text, Context::of(code.context)))
}

fn placed(bytes: &[u8], alignment: u32, arena: &Arena, target: Option<&OwnedTargetIsa>) -> Result<Draft> {
    match target {
        Some(isa) => by_module(bytes, alignment, arena, isa),
        None => {
            let mut draft = arena.allocate(bytes.len(), u64::from(alignment.max(1)))?;
            draft.write(bytes);
            Ok(draft)
        }
    }
}

fn by_module(bytes: &[u8], alignment: u32, arena: &Arena, isa: &OwnedTargetIsa) -> Result<Draft> {
    if isa.flags().is_pic() {
        return Err(Error::internal("load", "the target must not ask for position-independent code"));
    }
    let provider = Provider::new(arena.clone());
    let mut builder = JITBuilder::with_isa(isa.clone(), default_libcall_names());
    builder.memory_provider(Box::new(provider.clone()));
    let mut module = JITModule::new(builder);
    // What the arena refused keeps its class; anything else is a fault of ours.
    let failed = |e: ModuleError| {
        provider.take().err().unwrap_or_else(|| Error::internal("load", format!("module: {e}")))
    };
    let function =
        module.declare_anonymous_function(&Signature::new(isa.default_call_conv())).map_err(failed)?;
    module.define_function_bytes(function, u64::from(alignment.max(1)), bytes, &[]).map_err(failed)?;
    module.finalize_definitions().map_err(failed)?;
    let written = module.get_finalized_function(function);
    drop(module);
    let mut draft = provider.take()?;
    if draft.as_mut_ptr().cast_const() != written {
        return Err(Error::internal("load", "the function is not at the start of its slot"));
    }
    Ok(draft)
}
