//! Code of a target of Cranelift's, placed by a module.

use cranelift_codegen::ir::Signature;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Module, ModuleError, default_libcall_names};

use crate::code::arena::{Arena, Draft};
use crate::code::kernel::{ModuleTarget, Provider};
use crate::error::{Error, Result};

/// Places code of `isa` in a slot of `arena`.
///
/// # Errors
/// What the arena says when it refuses; `Intern` when the target or the module breaks a rule.
pub(super) fn by_module(bytes: &[u8], alignment: u32, arena: &Arena, isa: &ModuleTarget) -> Result<Draft> {
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
