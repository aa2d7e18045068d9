//! Memory provider for a module of cranelift-jit, which gives the module one slot of the arena.

use std::io;
use std::sync::Arc;

use cranelift_jit::{BranchProtection, JITMemoryKind, JITMemoryProvider};
use cranelift_module::ModuleResult;

use crate::code::arena::{Arena, Draft};
use crate::error::{Error, Result};
use crate::process::Mutex;

/// Memory provider for a module of cranelift-jit with a single function. The memory is a slot of
/// the arena. Clones of a provider share the slot: the module owns one clone, and the loader takes
/// the slot from another one afterwards.
#[derive(Clone, Debug)]
pub struct Provider {
    arena: Arena,
    /// The slot, or the error with which the arena refused it. The value is none before the module
    /// has asked for memory, and after [`Provider::take`].
    taken: Arc<Mutex<Option<Result<Draft>>>>,
}

impl Provider {
    /// Returns a provider that will take a slot from `arena` when the module asks for memory.
    pub fn new(arena: Arena) -> Provider {
        Provider { arena, taken: Arc::default() }
    }

    /// Returns the slot that the module has written to, and removes it from the provider.
    ///
    /// # Errors
    /// The error of the arena if it refused the slot. Class `Intern` if the module has not asked
    /// for memory, or if the slot was taken before.
    pub fn take(&self) -> Result<Draft> {
        let taken = self.taken.lock().take();
        taken.unwrap_or_else(|| Err(Error::internal("load", "the module asked for no memory")))
    }
}

impl JITMemoryProvider for Provider {
    fn allocate(&mut self, size: usize, align: u64, kind: JITMemoryKind) -> io::Result<*mut u8> {
        let mut taken = self.taken.lock();
        if taken.is_some() || !matches!(kind, JITMemoryKind::Executable) {
            return Err(io::Error::other("a kernel is one function and has no data"));
        }
        let mut draft = self.arena.allocate(size, align);
        let start = match &mut draft {
            Ok(draft) => Ok(draft.as_mut_ptr()),
            Err(e) => Err(io::Error::other(e.to_string())),
        };
        *taken = Some(draft);
        start
    }

    // The slot belongs to the draft, which outlives the module. So there is nothing to free here,
    // and nothing to protect in `finalize`: `Draft::seal` does that.
    unsafe fn free_memory(&mut self) {}

    fn finalize(&mut self, _protection: BranchProtection) -> ModuleResult<()> {
        Ok(())
    }
}
