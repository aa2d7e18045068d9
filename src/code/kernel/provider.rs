//! The memory of a Cranelift module: one slot of the arena.

use std::io;
use std::sync::Arc;

use cranelift_jit::{BranchProtection, JITMemoryKind, JITMemoryProvider};
use cranelift_module::ModuleResult;

use crate::code::arena::{Arena, Draft};
use crate::error::{Error, Result};
use crate::process::Mutex;

/// Memory of the one function of a Cranelift module: a slot of the arena. Clones share it, because the module owns its own.
#[derive(Clone, Debug)]
pub struct Provider {
    arena: Arena,
    /// The slot, or why there is none.
    taken: Arc<Mutex<Option<Result<Draft>>>>,
}

impl Provider {
    /// Returns a provider that will take one slot from `arena`.
    pub fn new(arena: Arena) -> Provider {
        Provider { arena, taken: Arc::default() }
    }

    /// Takes out the slot that the module has written to.
    ///
    /// # Errors
    /// What the arena said when it refused; `Intern` when the module has not asked yet.
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

    // The draft owns the slot and outlives the module: nothing to free and nothing to protect here.
    unsafe fn free_memory(&mut self) {}

    fn finalize(&mut self, _protection: BranchProtection) -> ModuleResult<()> {
        Ok(())
    }
}
