//! Kernels: native code in the arena together with the tables and constants that it reads.
//!
//! Code and context are apart so that layouts which differ only in tables, strides or counts share code. This is the only
//! place where an address becomes a function.
#![allow(unsafe_code)] // The one transmute from sealed code to a function, and the call through it.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use cranelift_jit::{BranchProtection, JITMemoryKind, JITMemoryProvider};
use cranelift_module::ModuleResult;

use crate::arena::{Arena, Draft, Slot};
use crate::column::Column;
use crate::error::{Error, Result};
use crate::plan::{Legal, Plan};

mod stock;

/// What compiled code looks like to its caller: `(user, packed, count, context)`.
///
/// `user` is the buffer address of the call as MPI means it (displacement 0 of instance 0, null with absolute
/// displacements), `packed` the first packed byte, `count` the number of instances, `context` the words of a [`Context`].
pub type Entry = unsafe extern "C" fn(*mut u8, *mut u8, u64, *const u64);

/// What code reaches at run time: word `i` lies at `context + 8 * i`. A word is a constant or the address of a table.
#[derive(Clone, Debug, Default)]
pub struct Context {
    words: Box<[u64]>,
    /// Owners of the tables whose addresses are among the words.
    columns: Vec<Column>,
}

impl Context {
    /// A context of `words`; those that are addresses point into `columns`, which live as long as the context.
    pub fn new(words: Vec<u64>, columns: Vec<Column>) -> Context {
        Context { words: words.into_boxed_slice(), columns }
    }

    /// Address of word 0; dangling but never read where there are no words.
    pub fn as_ptr(&self) -> *const u64 {
        self.words.as_ptr()
    }

    /// The words in order.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Bytes held: words and tables. Tables shared with others are counted too.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.words) + self.columns.iter().map(Column::bytes).sum::<usize>()
    }
}

/// What the emitter hands to the loader: finished machine code without relocations, and its context.
#[derive(Clone, Debug)]
pub struct CompiledCode {
    /// Machine code; position independent by construction.
    pub bytes: Vec<u8>,
    /// Alignment that the code asks for, in bytes.
    pub alignment: u32,
    /// What the code reads.
    pub context: Context,
}

/// A compiled kernel. The last one that shares a slot gives it back to the arena.
pub struct Kernel {
    /// Shared by kernels of one shape, whose contexts differ; none for stock code.
    slot: Option<Arc<Slot>>,
    context: Context,
    entry: Entry,
}

impl Kernel {
    /// A kernel of sealed code that follows the convention of [`Entry`].
    ///
    /// Nothing is run or read here; that code and context belong together is what [`Kernel::call`] asks of its caller.
    pub fn new(slot: Slot, context: Context) -> Kernel {
        // SAFETY: a function pointer must not be null, and a slot's address is not. Calling it is unsafe in its own right.
        let entry = unsafe { std::mem::transmute::<*const u8, Entry>(slot.address().as_ptr().cast_const()) };
        Kernel { slot: Some(Arc::new(slot)), context, entry }
    }

    /// A kernel of the same code with another context. Nothing is run or read here either.
    pub(crate) fn with_context(&self, context: Context) -> Kernel {
        Kernel { slot: self.slot.clone(), context, entry: self.entry }
    }

    /// The stock kernel for `plan`, if its shape has one: no code is generated for it.
    pub fn stock(plan: &Plan<Legal>) -> Option<Kernel> {
        let (entry, context) = stock::of(plan)?;
        Some(Kernel { slot: None, context, entry })
    }

    /// Runs the kernel on `count` instances.
    ///
    /// # Safety
    /// Code and context must have been made by this crate for one plan, or the context for another plan of the same shape. Every
    /// mapped byte of `count` instances of the plan's layout at `user` must be valid (readable to pack, writable to unpack),
    /// `packed` must be valid for all packed bytes (writable to pack, readable to unpack), and the two must not overlap.
    /// Nobody else may write the bytes read, or touch the bytes written, during the call.
    #[inline]
    pub unsafe fn call(&self, user: *mut u8, packed: *mut u8, count: u64) {
        // SAFETY: the code is sealed and lives as long as `self`; the rest is what the caller promises.
        unsafe { (self.entry)(user, packed, count, self.context.as_ptr()) }
    }

    /// The entry point, for embedders that call without this crate; valid while the kernel lives.
    pub fn entry(&self) -> Entry {
        self.entry
    }

    /// The context to pass to [`Kernel::entry`]; valid while the kernel lives.
    pub fn context(&self) -> *const u64 {
        self.context.as_ptr()
    }

    /// Bytes of tables and constants behind the context.
    pub fn context_bytes(&self) -> usize {
        self.context.bytes()
    }

    /// The machine code in the arena; empty for stock kernels.
    pub fn code(&self) -> &[u8] {
        self.slot.as_ref().map_or(&[], |slot| slot.code())
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("entry", &(self.entry as *const ()))
            .field("code_bytes", &self.code().len())
            .field("context_bytes", &self.context.bytes())
            .finish()
    }
}

/// Memory of the one function of a Cranelift module: a slot of the arena. Clones share it, because the module owns its own.
#[derive(Clone, Debug)]
pub struct Provider {
    arena: Arena,
    /// The slot, or why there is none.
    taken: Arc<Mutex<Option<Result<Draft>>>>,
}

impl Provider {
    /// A provider that will take one slot from `arena`.
    pub fn new(arena: Arena) -> Provider {
        Provider { arena, taken: Arc::default() }
    }

    /// Takes out the slot that the module has written to.
    ///
    /// # Errors
    /// What the arena said when it refused; `Intern` when the module has not asked yet.
    pub fn take(&self) -> Result<Draft> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.unwrap_or_else(|| Err(Error::internal("load", "the module asked for no memory")))
    }
}

impl JITMemoryProvider for Provider {
    fn allocate(&mut self, size: usize, align: u64, kind: JITMemoryKind) -> io::Result<*mut u8> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
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

const _: () = {
    const fn assert_send_sync<T: Send + Sync>() {}
    assert_send_sync::<Kernel>();
};

#[cfg(test)]
mod tests;
