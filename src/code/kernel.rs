//! Kernels: native code in the arena together with the tables and constants that it reads.
//!
//! Code and context are apart so that layouts which differ only in tables, strides or counts share code. This is the only
//! room of the library where an address becomes a function.
#![allow(unsafe_code)] // The transmutes to functions, of sealed code and of a micro-kernel's address in a context, and the calls through them.

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

/// The target of code that a module places.
#[cfg(feature = "cranelift")]
pub type ModuleTarget = cranelift_codegen::isa::OwnedTargetIsa;
/// Target of a Cranelift module in builds without Cranelift: there is none.
#[cfg(not(feature = "cranelift"))]
pub type ModuleTarget = std::convert::Infallible;

pub use precompiled::{Counted, Form};

/// Function type of compiled code: `(user, packed, count, context)`.
///
/// `user` is the buffer address of the call as MPI means it (displacement 0 of instance 0, null with absolute
/// displacements), `packed` the first packed byte, `count` the number of instances, `context` the words of a [`Context`].
pub type Entry = unsafe extern "C" fn(*mut u8, *mut u8, u64, *const u64);

/// Words that code reads at run time: word `i` lies at `context + 8 * i`. A word is a constant or the address of a table.
///
/// Stored as whole cache lines, the first word kept for the entry point of a kernel: a call that needs few words reads one line.
#[derive(Clone, Debug)]
pub struct Context {
    lines: Box<[Line]>,
    len: usize,
    /// Owners of the tables whose addresses are among the words.
    tables: Vec<Table>,
}

/// A cache line of words.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u64; 8]);

impl Context {
    /// Returns the context that `template` describes, with its addresses in this process.
    pub fn of(template: Template) -> Context {
        let Template { words, tables } = template;
        let words = words.iter().map(|word| match *word {
            Word::Constant(k) => k as u64,
            Word::Table(i) => tables[i.place()].as_ptr() as u64,
            Word::TableEnd(i) => tables[i.place()].as_ptr() as u64 + tables[i.place()].bytes() as u64,
            Word::Callee(micro) => micro.address() as u64,
        });
        let (len, lines) = (words.len(), Context::lines(words));
        Context { lines, len, tables }
    }

    /// Returns a context of `words`; those that are addresses of tables point into `tables`, which live as long as the context.
    pub fn new(words: &[u64], tables: Vec<Table>) -> Context {
        Context { lines: Context::lines(words.iter().copied()), len: words.len(), tables }
    }

    /// The lines of `words`, the first word of all left for the entry point.
    fn lines(words: impl ExactSizeIterator<Item = u64>) -> Box<[Line]> {
        let mut lines = vec![Line([0; 8]); words.len() / 8 + 1].into_boxed_slice();
        for (i, word) in words.enumerate() {
            lines[(i + 1) / 8].0[(i + 1) % 8] = word;
        }
        lines
    }

    /// Word `i`.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn word(&self, i: usize) -> u64 {
        assert!(i < self.len, "no such word");
        self.lines[(i + 1) / 8].0[(i + 1) % 8]
    }

    /// Returns the number of words.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Says whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes held: words and tables. Tables shared with others are counted too.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.lines) + self.tables.iter().map(Table::bytes).sum::<usize>()
    }
}

impl Default for Context {
    fn default() -> Context {
        Context::new(&[], Vec::new())
    }
}

/// Address for a call: the entry point, and behind it the context. Points into a [`Kernel`] and is valid as long as that lives.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct EntryPoint(NonNull<u64>);

impl EntryPoint {
    /// Returns its address.
    pub fn as_ptr(self) -> *mut u64 {
        self.0.as_ptr()
    }

    /// Returns the one at an address that [`EntryPoint::as_ptr`] gave.
    pub fn from_ptr(address: *mut u64) -> Option<EntryPoint> {
        NonNull::new(address).map(EntryPoint)
    }

    /// Runs the kernel on `count` instances.
    ///
    /// # Safety
    /// The kernel must live; code and context must have been made by this crate for one plan, or the context for another plan of
    /// the same shape. Every mapped byte of `count` instances of the plan's layout at `user` must be valid (readable to pack,
    /// writable to unpack), `packed` must be valid for all packed bytes (writable to pack, readable to unpack), and the two must
    /// not overlap. Nobody else may write the bytes read, or touch the bytes written, during the call.
    #[inline]
    pub unsafe fn call(self, user: *mut u8, packed: *mut u8, count: u64) {
        let words = self.as_ptr().cast_const();
        // SAFETY: a live kernel's context begins with its entry, which `Kernel::new` put there, and its words follow; the
        // code is sealed and lives as long as the kernel; the rest is what the caller promises.
        unsafe { (*words.cast::<Entry>())(user, packed, count, words.add(1)) }
    }
}

/// Result of emission for the loader: code, and the template of its context.
#[derive(Clone, Debug)]
pub struct CompiledCode {
    /// The code.
    pub text: Text,
    /// The shape whose other plans can share it, if it is new and has one.
    pub shape: Option<Shape>,
    /// Template of the context that it will read.
    pub context: Template,
}

/// Code, placed or yet to be placed.
#[derive(Clone, Debug)]
pub enum Text {
    /// New machine code without relocations.
    New {
        /// Machine code; position independent by construction.
        bytes: Vec<u8>,
        /// Alignment that the code asks for, in bytes.
        alignment: u32,
    },
    /// Code that exists: precompiled, or of another kernel of the same shape.
    Sealed(Code),
}

/// Sealed code without a context. The last one that shares a slot gives it back to the arena.
#[derive(Clone)]
pub struct Code {
    /// None for precompiled code.
    slot: Option<Arc<Slot>>,
    entry: Entry,
}

impl Code {
    /// Returns the code in a sealed slot, which follows the convention of [`Entry`].
    pub fn new(slot: Slot) -> Code {
        // SAFETY: a function pointer must not be null, and a slot's address is not. Calling it is unsafe in its own right.
        let entry = unsafe { std::mem::transmute::<*const u8, Entry>(slot.address().as_ptr().cast_const()) };
        Code { slot: Some(Arc::new(slot)), entry }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}", self.entry as *const ())
    }
}

/// A compiled kernel: code with its context. Kernels of one shape share code.
pub struct Kernel {
    code: Code,
    /// Its first word is the entry.
    context: Context,
}

impl Kernel {
    /// Returns a kernel of `code` that reads `context`.
    ///
    /// Nothing is run or read here; that code and context belong together is what [`EntryPoint::call`] asks of its caller.
    pub fn new(code: Code, mut context: Context) -> Kernel {
        context.lines[0].0[0] = code.entry as usize as u64;
        Kernel { code, context }
    }

    /// Returns the code, for other kernels of the same shape.
    pub fn shared_code(&self) -> Code {
        self.code.clone()
    }

    /// Says whether its code is part of this library.
    pub fn is_precompiled(&self) -> bool {
        self.code.slot.is_none()
    }

    /// Returns the address for calls of this kernel; valid while it lives.
    pub fn entry_point(&self) -> EntryPoint {
        EntryPoint(NonNull::from(&*self.context.lines).cast())
    }

    /// Runs the kernel on `count` instances.
    ///
    /// # Safety
    /// As [`EntryPoint::call`].
    #[inline]
    pub unsafe fn call(&self, user: *mut u8, packed: *mut u8, count: u64) {
        // SAFETY: the kernel lives; the rest is what the caller promises.
        unsafe { self.entry_point().call(user, packed, count) }
    }

    /// Runs the kernel on `count` instances, the first at these offsets of a call's memory.
    pub(crate) fn run(&self, memory: &Buffers, at: Offsets, count: u64) {
        let (user, packed) = memory.at(at.user, at.packed);
        // SAFETY: whoever made the handle vouches that it is used for blocks of the layout and the range that the buffers were made
        // for (`Buffers::new`), and these instances are such blocks.
        unsafe { self.call(user, packed, count) }
    }

    /// Returns the column among the tables of this kernel that equals `column`, so that it is kept once.
    pub fn shared(&self, column: &Column) -> Option<Column> {
        let mut own = self.context.tables.iter().filter_map(Table::column);
        own.find(|own| *own == column).cloned()
    }

    /// Returns the entry point, for embedders that call without this crate; valid while the kernel lives.
    pub fn entry(&self) -> Entry {
        self.code.entry
    }

    /// Returns the context to pass to [`Kernel::entry`]; valid while the kernel lives.
    pub fn context(&self) -> *const u64 {
        self.entry_point().as_ptr().wrapping_add(1)
    }

    /// Returns the bytes of tables and constants behind the context.
    pub fn context_bytes(&self) -> usize {
        self.context.bytes()
    }

    /// Returns the machine code in the arena; empty where it is precompiled.
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
