//! Kernels. A kernel is native code together with its context: the constants, and the addresses of
//! tables and micro-kernels, that the code reads at run time. The code is in the arena, or is part
//! of this library (precompiled code).
//!
//! Code and context are separate, so that layouts that differ only in tables, strides or counts
//! share code. This is the only module of the library in which an address becomes a function.
#![allow(unsafe_code)] // Addresses of sealed code and of micro-kernels become functions.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::code::arena::Slot;
use crate::column::Column;
use crate::micro::{Buffers, Table};
use crate::nest::Offsets;
use crate::plan::{Shape, Template, Word};

mod precompiled;
#[cfg(feature = "cranelift")]
mod provider;

#[cfg(feature = "cranelift")]
pub use provider::Provider;

/// Cranelift's description of a target, for code that a module of cranelift-jit places in memory.
#[cfg(feature = "cranelift")]
pub type ModuleTarget = cranelift_codegen::isa::OwnedTargetIsa;
/// Cranelift's description of a target. In builds without Cranelift, no code is placed by a module
/// of Cranelift, so this type has no values.
#[cfg(not(feature = "cranelift"))]
pub type ModuleTarget = std::convert::Infallible;

pub use precompiled::{Counted, Form};

/// Function type of compiled code. The arguments are `(user, packed, count, context)`.
///
/// `user` is the buffer address in the sense of MPI: the address of displacement 0 of instance 0,
/// or null if displacements are absolute addresses. `packed` is the address of the first packed
/// byte. In a fused copy, which copies from one layout to another, it is an address in the memory
/// of the second layout. `count` is the number of instances, and `context` is the address of the
/// words of a [`Context`].
pub type Entry = unsafe extern "C" fn(*mut u8, *mut u8, u64, *const u64);

/// Words that code reads at run time. Word `i` is at the address `context + 8 * i`. A word is a
/// constant, the address of a table or of its end, or the address of a micro-kernel.
///
/// The words are stored in whole cache lines, and the first 8 bytes are reserved for the address of
/// the kernel's code. So a call of a kernel whose code needs up to seven words reads one cache
/// line.
#[derive(Clone, Debug)]
pub struct Context {
    lines: Box<[Line]>,
    len: usize,
    /// Owners of the tables whose addresses are among the words.
    tables: Vec<Table>,
}

/// A cache line of eight words.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u64; 8]);

impl Context {
    /// Returns the context that `template` describes. Places for tables and micro-kernels are
    /// filled with their addresses in this process.
    pub fn from_template(template: Template) -> Context {
        let Template { words, tables } = template;
        let words = words.iter().map(|word| match *word {
            Word::Constant(k) => k as u64,
            Word::Table(i) => tables[i.index()].as_ptr() as u64,
            Word::TableEnd(i) => tables[i.index()].as_ptr() as u64 + tables[i.index()].bytes() as u64,
            Word::Callee(micro) => micro.address() as u64,
        });
        let (len, lines) = (words.len(), Context::lines(words));
        Context { lines, len, tables }
    }

    /// Returns a context of `words`. The context keeps `tables` as long as it lives, so words that
    /// are addresses of tables should point into these.
    pub fn new(words: &[u64], tables: Vec<Table>) -> Context {
        Context { lines: Context::lines(words.iter().copied()), len: words.len(), tables }
    }

    /// Returns cache lines that contain `words`. The first 8 bytes of the first line are left for
    /// the address of the kernel's code.
    fn lines(words: impl ExactSizeIterator<Item = u64>) -> Box<[Line]> {
        let mut lines = vec![Line([0; 8]); words.len() / 8 + 1].into_boxed_slice();
        for (i, word) in words.enumerate() {
            lines[(i + 1) / 8].0[(i + 1) % 8] = word;
        }
        lines
    }

    /// Returns word `i`.
    ///
    /// # Panics
    /// Panics if the context has no word `i`.
    pub fn word(&self, i: usize) -> u64 {
        assert!(i < self.len, "no such word");
        self.lines[(i + 1) / 8].0[(i + 1) % 8]
    }

    /// Returns the number of words.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the context has no words.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of bytes of the words and tables of the context. Tables that other
    /// contexts share are counted, too.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.lines) + self.tables.iter().map(Table::bytes).sum::<usize>()
    }
}

impl Default for Context {
    fn default() -> Context {
        Context::new(&[], Vec::new())
    }
}

/// Address by which a kernel is called. It points into a [`Kernel`]: to a word with the address of
/// the code, which is followed by the words of the context. It is valid as long as the kernel
/// lives.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct EntryPoint(NonNull<u64>);

impl EntryPoint {
    /// Returns the address as a pointer.
    pub fn as_ptr(self) -> *mut u64 {
        self.0.as_ptr()
    }

    /// Returns the entry point at an address that [`EntryPoint::as_ptr`] returned, or none for a
    /// null pointer.
    pub fn from_ptr(address: *mut u64) -> Option<EntryPoint> {
        NonNull::new(address).map(EntryPoint)
    }

    /// Runs the kernel on `count` instances.
    ///
    /// # Safety
    /// * The value must come from [`Kernel::entry_point`], possibly by way of
    ///   [`EntryPoint::as_ptr`], and the kernel must still live.
    /// * The code and the context of the kernel must have been made by this crate for one plan, or
    ///   for two plans of the same shape, and this machine must run the target of that plan.
    /// * Every mapped byte of `count` instances of the layout of the context's plan at `user` must
    ///   be valid: readable for a pack, writable for an unpack.
    /// * All packed bytes at `packed`, or in a fused copy all bytes of the second layout that are
    ///   moved, must be valid: writable for a pack, readable for an unpack.
    /// * User memory and packed bytes must not overlap.
    /// * During the call, nobody else may write the bytes that are read, or access the bytes that
    ///   are written.
    #[inline]
    pub unsafe fn call(self, user: *mut u8, packed: *mut u8, count: u64) {
        let words = self.as_ptr().cast_const();
        // SAFETY: the caller vouches that `self` points to the context of a live kernel. Its first
        // word is the entry that `Kernel::new` stored there, and the other words follow. The code
        // is sealed and lives as long as the kernel. The remaining conditions of the code are those
        // of this function's `# Safety` section.
        unsafe { (*words.cast::<Entry>())(user, packed, count, words.add(1)) }
    }
}

/// Result of the stage `emit` and input of the stage `load`: code, and the template of its context.
#[derive(Clone, Debug)]
pub struct CompiledCode {
    /// The code.
    pub text: Text,
    /// Shape of the plan, if the code is new and other plans of that shape can share it.
    pub shape: Option<Shape>,
    /// Template of the context that the code will read. It is a context whose addresses are not
    /// filled in yet.
    pub context: Template,
}

/// Machine code, either new or already in executable memory.
#[derive(Clone, Debug)]
pub enum Text {
    /// New machine code without relocations.
    New {
        /// The bytes of the code, which is position independent by construction.
        bytes: Vec<u8>,
        /// Alignment that the code needs, in bytes.
        alignment: u32,
    },
    /// Code that is already in executable memory: precompiled code, or the code of another kernel
    /// whose plan has the same shape.
    Sealed(Code),
}

/// Executable code without a context. Clones share the slot that contains the code, and the last
/// clone returns the slot to the arena.
#[derive(Clone)]
pub struct Code {
    /// The slot of the arena that contains the code; none for precompiled code.
    slot: Option<Arc<Slot>>,
    entry: Entry,
}

impl Code {
    /// Returns the code in `slot`. If this code is ever called, it must take the arguments of
    /// [`Entry`].
    pub fn new(slot: Slot) -> Code {
        // SAFETY: source and result have the same size, and a function pointer must not be null:
        // the address of a slot is a `NonNull`. To call the function is unsafe by itself (`Entry`
        // is an unsafe function type).
        let entry = unsafe { std::mem::transmute::<*const u8, Entry>(slot.address().as_ptr().cast_const()) };
        Code { slot: Some(Arc::new(slot)), entry }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}", self.entry as *const ())
    }
}

/// A compiled kernel: code with its context. Kernels whose plans have the same shape can share
/// code.
pub struct Kernel {
    code: Code,
    /// The context of the code. The first 8 bytes of its first cache line are the address of
    /// `code`.
    context: Context,
}

impl Kernel {
    /// Returns a kernel of `code` that reads `context`.
    ///
    /// This function neither runs the code nor reads the context. So it need not know that the two
    /// belong together; this is a condition of [`EntryPoint::call`].
    pub fn new(code: Code, mut context: Context) -> Kernel {
        context.lines[0].0[0] = code.entry as usize as u64;
        Kernel { code, context }
    }

    /// Returns the code, for other kernels of the same shape.
    pub fn shared_code(&self) -> Code {
        self.code.clone()
    }

    /// Returns true if the code is part of this library instead of being in an arena.
    pub fn is_precompiled(&self) -> bool {
        self.code.slot.is_none()
    }

    /// Returns the address by which this kernel is called. The address is valid as long as the
    /// kernel lives.
    pub fn entry_point(&self) -> EntryPoint {
        EntryPoint(NonNull::from(&*self.context.lines).cast())
    }

    /// Runs the kernel on `count` instances.
    ///
    /// # Safety
    /// The conditions of [`EntryPoint::call`]. The first of them is met by this function, because
    /// it calls the entry point of `self`, which lives during the call.
    #[inline]
    pub unsafe fn call(&self, user: *mut u8, packed: *mut u8, count: u64) {
        // SAFETY: `self` is borrowed, so the kernel lives. The caller vouches for the other
        // conditions of `EntryPoint::call`, which are those of this function.
        unsafe { self.entry_point().call(user, packed, count) }
    }

    /// Runs the kernel on `count` instances in the buffers `memory`. The first of them is at the
    /// offsets `at`.
    pub(crate) fn run(&self, memory: &Buffers, at: Offsets, count: u64) {
        let (user, packed) = memory.addresses(at.user, at.packed);
        // SAFETY: `self` is borrowed, so the kernel lives. The caller of the unsafe `Buffers::new`
        // vouched that its buffers are valid, do not overlap, and are accessed by nobody else, and
        // that the handle is used only for blocks of the layout and range that the buffers were
        // made for. These instances are such blocks.
        unsafe { self.call(user, packed, count) }
    }

    /// Returns the column among the tables of this kernel whose entries equal those of `column`, or
    /// none if there is no such column. A caller that uses the returned column need not keep a
    /// second copy of the entries.
    pub fn shared(&self, column: &Column) -> Option<Column> {
        let mut own = self.context.tables.iter().filter_map(Table::column);
        own.find(|own| *own == column).cloned()
    }

    /// Returns the function of the kernel, for embedders that call the function without this crate.
    /// The function is valid as long as the kernel lives.
    pub fn entry(&self) -> Entry {
        self.code.entry
    }

    /// Returns the address to pass as `context` to the function that [`Kernel::entry`] returns. The
    /// address is valid as long as the kernel lives.
    pub fn context(&self) -> *const u64 {
        self.entry_point().as_ptr().wrapping_add(1)
    }

    /// Returns the number of bytes of the context: its words, and the tables whose addresses are
    /// among the words.
    pub fn context_bytes(&self) -> usize {
        self.context.bytes()
    }

    /// Returns the machine code in the arena. The slice is empty if the code is precompiled.
    pub fn code(&self) -> &[u8] {
        self.code.slot.as_ref().map_or(&[], |slot| slot.code())
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("entry", &self.code)
            .field("code_bytes", &self.code().len())
            .field("context_bytes", &self.context.bytes())
            .finish()
    }
}

const _: () = {
    const fn assert_send_sync<T: Send + Sync>() {}
    assert_send_sync::<Kernel>();
};

#[cfg(test)]
mod tests;
