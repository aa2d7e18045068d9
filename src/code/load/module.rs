//! Placement of code that Cranelift emitted, through a module of cranelift-jit.

use cranelift_codegen::ir::Signature;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Module, ModuleError, default_libcall_names};

use crate::code::arena::{Arena, Draft};
use crate::code::kernel::{ModuleTarget, Provider};
use crate::error::{Error, Result};

/// Places the code `bytes` for the target `isa` in a slot of `arena`, at an address that is a
/// multiple of `alignment` bytes.
///
/// # Errors
/// The error of the arena if it refuses a slot. Class `Intern` if the target asks for
/// position-independent code, if the module fails, or if the function is not at the start of its
/// slot.
pub(super) fn by_module(bytes: &[u8], alignment: u32, arena: &Arena, isa: &ModuleTarget) -> Result<Draft> {
    if isa.flags().is_pic() {
        return Err(Error::internal("load", "the target must not ask for position-independent code"));
    }
    // Let the provider give the module its memory. The provider keeps the slot, so that this
    // function can take it at the end.
    let provider = Provider::new(arena.clone());
    let mut builder = JITBuilder::with_isa(isa.clone(), default_libcall_names());
    builder.memory_provider(Box::new(provider.clone()));
    let mut module = JITModule::new(builder);
    // If the arena refused a slot, return the error of the arena, which keeps its class. Any other
    // failure is a fault of ddtc.
    let failed = |e: ModuleError| {
        provider.take().err().unwrap_or_else(|| Error::internal("load", format!("module: {e}")))
    };
    // Define one anonymous function without relocations. The module copies the bytes into the slot.
    let function =
        module.declare_anonymous_function(&Signature::new(isa.default_call_conv())).map_err(failed)?;
    module.define_function_bytes(function, u64::from(alignment.max(1)), bytes, &[]).map_err(failed)?;
    module.finalize_definitions().map_err(failed)?;
    let written = module.get_finalized_function(function);
    // The slot stays with the provider when the module is dropped. A kernel is entered at the start
    // of its slot, so the function must begin there.
    drop(module);
    let mut draft = provider.take()?;
    if draft.as_mut_ptr().cast_const() != written {
        return Err(Error::internal("load", "the function is not at the start of its slot"));
    }
    Ok(draft)
}
