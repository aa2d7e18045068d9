//! Table of the datatypes that the program has committed and ddtc has decoded. The key is the MPI
//! library's handle of the datatype.
//!
//! An entry holds the compiled type and the facts that decide whether buffers of the type are
//! converted. [`find`] and [`known`] look up an entry at every call with a derived type, without a
//! lock.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};

use ddtc::internal::committed::Committed;
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc_hosts::policy::{Call, Class};

use crate::atomic_ref::AtomicRef;
use crate::counted::Uses;
use crate::element_type::ElementType;
use crate::host::{HandleWord, Host};
use crate::measured::Measured;
use crate::overhead_budget;
use crate::policy::Rules;
use crate::relative::ADDRESSES;
use crate::reserve;
use crate::served::Served;
use crate::similar::SimilarityClass;
use crate::slots::{Entry, Table};
use crate::times::SHORT_BYTES;
use crate::wire_type::WireType;

/// Value of `TypeEntry::size` for types that are always bypassed: predefined types, empty types,
/// types that could not be decoded or compiled, and types whose bytes the MPI library moves to or
/// from other places than the definition of the type says.
const PASSED: i64 = -1;

/// Bit of `TypeEntry::ready` that is set when the type is not converted any more, because the MPI
/// library moves the bytes of the type to or from other places than ddtc does ([`end_all`]).
const ENDED: u8 = 1 << 7;

/// Entry for a datatype of the MPI library. Entries are never freed. When the datatype of an entry
/// is gone, the entry is reused for another datatype.
#[repr(align(64))]
pub(crate) struct TypeEntry {
    /// Handle that the entry is bound to, or 0 if it is bound to none.
    handle: AtomicU64,
    /// Packed bytes of one instance, or [`PASSED`].
    size: AtomicI64,
    /// Kinds of calls in which some payload of the type is converted: bit `call as u32` for each
    /// [`Call`].
    calls: AtomicU32,
    /// Set of the message lengths in bytes for which the type is converted: bit `n` stands for 2^n
    /// to 2^(n+1) - 1 bytes, as in [`ddtc_hosts::policy::Policy::has`].
    payloads: AtomicU64,
    /// Index of the layout class in `Class::ALL`, or `u8::MAX` for a dense layout, which
    /// `Class::ALL` does not contain.
    class: AtomicU8,
    /// Measured times of the type's layout, or null if layouts like this one are not timed.
    measured: AtomicRef<Measured>,
    /// Similarity class of the type, null if there is none.
    similar: AtomicRef<SimilarityClass>,
    /// Bytes that messages of the type have moved. They are passed to its similarity class when the
    /// entry is retired.
    moved: AtomicU64,
    /// True if the displacements of the type are absolute addresses, so that the program may use
    /// the type with `MPI_BOTTOM`.
    absolute: AtomicBool,
    /// Directions in which conversions are ready: it is settled whether a kernel or the interpreter
    /// of nests moves the bytes. Bit `direction as u8` stands for each direction. The value is
    /// [`ENDED`] if the type is not converted any more.
    ready: AtomicU8,
    /// The compiled type, or `None` if the type is always bypassed. This field is written before
    /// the entry is bound to a handle, and emptied after the entry is unbound.
    committed: UnsafeCell<Option<Committed>>,
    /// Datatype that replaces this one when packed bytes of this type are sent.
    pub(crate) wire_type: WireType,
    /// The single named type of all elements of this datatype, if there is one. The packed bytes of
    /// the datatype are then an array of the named type.
    pub(crate) element_type: ElementType,
    /// State of the type in Open MPI's convertor hook.
    pub(crate) served: Served,
    /// Counts of the type's uses for the report, written only while uses are counted.
    pub(crate) uses: Uses,
}

// SAFETY: all fields but `committed` are Sync. `committed` is written only by `entry` and `retire`,
// each for an entry that its caller alone owns: the free list hands an entry to one thread, and the
// MPI library runs the delete callback of an attribute once, which unbinds the entry before it
// takes `committed` out. Other threads read `committed` of an entry that they found by its bound
// handle or as an attribute. The program holds that type during the call, because MPI makes it
// erroneous to free a type while another thread packs with it, and a request that is under way
// inside Open MPI holds a reference to its type. So the entry is not retired meanwhile.
unsafe impl Sync for TypeEntry {}

/// Result of looking up the handle of a datatype in the table.
pub(crate) enum Found {
    /// The table has an entry, and the type can be converted.
    Convert(&'static TypeEntry),
    /// The table has an entry, and the type is always bypassed.
    Pass,
    /// The table has no entry: the type is not decoded, or its commit was not seen.
    Unknown,
}

impl Entry for TypeEntry {
    fn new() -> TypeEntry {
        TypeEntry {
            handle: AtomicU64::new(0),
            size: AtomicI64::new(PASSED),
            calls: AtomicU32::new(0),
            payloads: AtomicU64::new(0),
            class: AtomicU8::new(u8::MAX),
            measured: AtomicRef::none(),
            similar: AtomicRef::none(),
            moved: AtomicU64::new(0),
            absolute: AtomicBool::new(false),
            ready: AtomicU8::new(0),
            committed: UnsafeCell::new(None),
            wire_type: WireType::new(),
            element_type: ElementType::new(),
            served: Served::new(),
            uses: Uses::new(),
        }
    }

    fn handle(&self) -> &AtomicU64 {
        &self.handle
    }
}

impl TypeEntry {
    /// Returns the packed bytes of one instance: a positive number if the type can be converted,
    /// else [`PASSED`].
    #[inline]
    pub(crate) fn size(&self) -> i64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Returns the set of the message lengths in bytes for which the type is converted, as the bits
    /// that [`ddtc_hosts::policy::Policy::has`] reads.
    #[inline]
    pub(crate) fn payloads(&self) -> u64 {
        self.payloads.load(Ordering::Relaxed)
    }

    /// Returns the measured times of the type's layout; `None` if layouts like this one are not
    /// timed.
    #[inline]
    pub(crate) fn measured(&self) -> Option<&'static Measured> {
        self.measured.load()
    }

    /// Adds `bytes` to the bytes that messages of the type have moved. Called when a message is
    /// about to be sent or received.
    #[inline]
    pub(crate) fn moves(&self, bytes: u64) {
        // If two threads add at once, one of the two numbers may be lost. That is harmless, because
        // only the moments at which types are decoded or compiled depend on the sum.
        self.moved.store(self.moved.load(Ordering::Relaxed).saturating_add(bytes), Ordering::Relaxed);
    }

    /// Returns the minimum number of nanoseconds that the conversion of a message of `bytes` bytes
    /// saves.
    #[inline]
    pub(crate) fn saves(&self, bytes: u64) -> u64 {
        // If there are no measured times, the policy table decides. The messages that the table
        // converts become at least 1.3 times as fast, so about a quarter of their time is saved.
        self.measured().and_then(|measured| measured.saves(bytes)).unwrap_or(bytes / SHORT_BYTES / 4)
    }

    /// Returns the minimum number of nanoseconds that are saved if compiled code moves the bytes of
    /// a request of `bytes` bytes inside the MPI library.
    #[inline]
    pub(crate) fn spares(&self, bytes: u64) -> u64 {
        let untimed = || match self.rules().class {
            Class::BlocksShort | Class::TableShort => bytes / SHORT_BYTES,
            _ => 0,
        };
        self.measured().and_then(|measured| measured.spares(bytes)).unwrap_or_else(untimed)
    }

    /// Returns true if a request of `bytes` bytes gains if compiled code moves its bytes inside the
    /// MPI library. The measured times decide. If there are none, the layout does.
    #[inline]
    pub(crate) fn gains_inside(&self, bytes: u64) -> bool {
        let timed = self.measured().and_then(|measured| measured.packs_faster(bytes));
        timed.unwrap_or_else(|| self.served.gains(bytes))
    }

    /// Returns true if `buf` may be the address of a buffer of this type. A null pointer may be the
    /// address only if the displacements of the type are absolute addresses, because the null
    /// pointer is then `MPI_BOTTOM`.
    #[inline]
    pub(crate) fn takes(&self, buf: *const c_void) -> bool {
        !buf.is_null() || self.absolute.load(Ordering::Relaxed)
    }

    /// Returns true if the layout is dense: any number of instances is one contiguous run of bytes.
    #[inline]
    pub(crate) fn is_a_run(&self) -> bool {
        self.class.load(Ordering::Relaxed) == u8::MAX
    }

    /// Returns true if some payload of the type is converted in calls of the kind `call`.
    #[inline]
    pub(crate) fn converts(&self, call: Call) -> bool {
        self.calls.load(Ordering::Relaxed) >> call as u32 & 1 != 0
    }

    /// Returns the layout class.
    #[inline]
    pub(crate) fn class(&self) -> Class {
        let class = Class::ALL.get(usize::from(self.class.load(Ordering::Relaxed)));
        class.copied().unwrap_or(Class::Dense)
    }

    /// Returns the rules of the policy for the type.
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            class: self.class(),
            calls: self.calls.load(Ordering::Relaxed),
            messages: self.payloads(),
            measured: self.measured(),
            similar: self.similar.load(),
        }
    }

    /// Returns true if it is settled whether a kernel or the interpreter of nests moves the bytes
    /// of the type in this direction, so that calls may be converted. `bytes` is the number of
    /// bytes that the current call moves. In mode `lazy`, this function compiles the layout as soon
    /// as all calls in this direction together have moved enough bytes. Until then it returns
    /// false, and the calls are bypassed.
    ///
    /// # Safety
    /// Nobody may retire the entry during this call, as [`TypeEntry::committed`] requires.
    #[inline]
    pub(crate) unsafe fn ready(&self, direction: Direction, bytes: u64) -> bool {
        // SAFETY: `get_ready` requires the same of its caller as this function does.
        self.is_ready(direction) || unsafe { self.get_ready(direction, bytes) }
    }

    /// Returns true if it is settled already whether a kernel or the interpreter of nests moves the
    /// bytes of the type in this direction. Compiles nothing.
    #[inline]
    pub(crate) fn is_ready(&self, direction: Direction) -> bool {
        self.ready.load(Ordering::Relaxed) >> direction as u8 & 1 != 0
    }

    /// Settles whether a kernel or the interpreter of nests moves the bytes of the type in this
    /// direction, if enough bytes were moved. Returns true if it is settled.
    ///
    /// # Safety
    /// Nobody may retire the entry during this call, as [`TypeEntry::committed`] requires.
    #[cold]
    unsafe fn get_ready(&self, direction: Direction, bytes: u64) -> bool {
        if self.ready.load(Ordering::Relaxed) & ENDED != 0 {
            return false;
        }
        // MPI libraries take at least four times as long for short runs as for long runs of as many
        // bytes. So compiling a layout of short runs pays after a quarter of the bytes. If these
        // bytes did not count four times, vectors of 20 KB that are made for one use would take 4.6
        // times as long under Intel MPI (Emerald Rapids, 2026-11-29).
        let short =
            matches!(self.rules().class, Class::StridedShort | Class::BlocksShort | Class::TableShort);
        // If types of the similarity class gain by conversion, this type was decoded because the
        // gain was expected to pay for both decoding and compiling. So the type is compiled at
        // once.
        let is_expected_to_gain = self.measured().is_some_and(|measured| measured.expected_gains() != 0);
        let bytes =
            if is_expected_to_gain { u64::MAX } else { bytes.saturating_mul(if short { 4 } else { 1 }) };
        // SAFETY: the caller promises what `committed` requires.
        let is_compiled = unsafe { self.committed() }
            // `settled(direction, 0)` is true if the layout was compiled before, or if the mode is
            // not `lazy`. In these cases the call takes no time, so it needs no free memory, and
            // there is no time to count as spent. `overhead_budget::on` only counts the time of
            // the compile; it never refuses the compile.
            .is_some_and(|c| {
                c.settled(direction, 0)
                    || !reserve::is_short() && overhead_budget::on(|| c.settled(direction, bytes))
            });
        let bit = 1 << direction as u8;
        // Another thread may have ended the conversion of the type after `ENDED` was tested at the
        // beginning of this function.
        if is_compiled && self.ready.fetch_or(bit, Ordering::Relaxed) & ENDED != 0 {
            self.ready.fetch_and(!bit, Ordering::Relaxed);
            return false;
        }
        is_compiled
    }

    /// Ends the conversion of the type for all future calls. Calls that other threads are
    /// converting now, and requests that were made before, are finished as they were begun.
    fn end(&self) {
        self.ready.store(ENDED, Ordering::Relaxed);
        self.calls.store(0, Ordering::Relaxed);
        self.payloads.store(0, Ordering::Relaxed);
        self.measured.store(None);
        self.served.end();
    }

    /// Returns the compiled type, or `None` if the type is always bypassed.
    ///
    /// # Safety
    /// Nobody may retire the entry while the reference lives. That holds if the entry is bound and
    /// the program or a request of the MPI library holds its type, if the entry is the attribute of
    /// a type that lives, or if the entry is owned by the caller alone.
    #[inline]
    pub(crate) unsafe fn committed(&self) -> Option<&Committed> {
        // SAFETY: only `retire` and `entry` write to the cell, each to an entry that its caller
        // alone owns, and the caller of this function promises that nobody retires the entry while
        // the reference lives.
        unsafe { (*self.committed.get()).as_ref() }
    }
}

static TYPES: Table<TypeEntry> = Table::new();

/// Number of look-ups of types by their handles. A test reads it from outside (lookups.c).
#[cfg(debug_assertions)]
#[unsafe(export_name = "ddtc_type_lookups")]
pub static LOOKUPS: AtomicU64 = AtomicU64::new(0);

#[inline]
fn entry_of(handle: u64) -> Option<&'static TypeEntry> {
    #[cfg(debug_assertions)]
    LOOKUPS.fetch_add(1, Ordering::Relaxed);
    TYPES.find(handle)
}

/// Looks up a type by its masked handle.
#[inline]
pub(crate) fn find(handle: u64) -> Found {
    match entry_of(handle) {
        None => Found::Unknown,
        Some(entry) if entry.size() > 0 => Found::Convert(entry),
        Some(_) => Found::Pass,
    }
}

/// Returns the entry of a type, even if the type is always bypassed. Returns `None` if the type is
/// not decoded.
#[inline]
pub(crate) fn known(host: &Host, datatype: HandleWord) -> Option<&'static TypeEntry> {
    entry_of(datatype & host.mask)
}

/// Returns an entry for a type. The entry is not bound to a handle yet, and the caller owns it. If
/// `committed` is `None`, or if its type is empty, the type will always be bypassed.
pub(crate) fn entry(committed: Option<Committed>, rules: Rules) -> &'static TypeEntry {
    let entry = TYPES.take();
    // There is nothing to convert in an empty type.
    let size = committed.as_ref().map(|c| c.datatype().size()).filter(|&s| s > 0);
    entry.size.store(size.unwrap_or(PASSED), Ordering::Relaxed);
    entry.calls.store(if size.is_some() { rules.calls } else { 0 }, Ordering::Relaxed);
    entry.payloads.store(rules.messages, Ordering::Relaxed);
    let class = Class::ALL.iter().position(|&c| c == rules.class);
    entry.class.store(class.map_or(u8::MAX, |at| at as u8), Ordering::Relaxed);
    let absolute = committed.as_ref().is_some_and(|c| c.datatype().true_lb() >= ADDRESSES);
    entry.absolute.store(absolute, Ordering::Relaxed);
    entry.measured.store(rules.measured);
    entry.similar.store(rules.similar);
    entry.moved.store(0, Ordering::Relaxed);
    entry.ready.store(0, Ordering::Relaxed);
    entry.wire_type.reset();
    entry.element_type.reset();
    entry.uses.reset();
    // SAFETY: the entry came from the free list, so this thread alone owns the entry. The entry is
    // not bound to a handle, so no other thread can find it.
    unsafe {
        entry.served.reset();
        *entry.committed.get() = committed;
    }
    entry
}

/// Binds an entry that the caller owns to a masked handle. From then on [`find`] and [`known`] find
/// it.
pub(crate) fn bind(entry: &'static TypeEntry, handle: u64) {
    TYPES.bind(entry, handle, false);
}

/// Ends the use of an entry for its type: unbinds the entry, frees the values that it holds, and
/// puts it on the free list.
///
/// # Safety
/// The caller must own the entry. That is the case if its type is gone, or if the entry was never
/// bound, because then no other thread reads the values in it. The caller must not use the entry
/// afterwards.
pub(crate) unsafe fn retire(entry: &'static TypeEntry) {
    TYPES.unbind(entry);
    // SAFETY: the caller owns the entry, and it is not bound any more, so no other thread reads the
    // cell.
    let committed = unsafe { (*entry.committed.get()).take() };
    if let Some(class) = entry.similar.load() {
        let is_served = |direction| entry.is_ready(direction) || entry.served.by(direction).is_some();
        let is_converted = Direction::BOTH.into_iter().any(is_served);
        let size = committed.as_ref().map_or(0, |c| c.datatype().size().unsigned_abs());
        class.decoded_ended(entry.moved.load(Ordering::Relaxed), size, is_converted);
    }
    // SAFETY: the caller owns the entry, and it is not bound any more, so no other thread holds a
    // reference that `served` has returned.
    unsafe { entry.served.reset() };
    if let Some(committed) = &committed {
        entry.uses.fold(committed);
    }
    // This drop may give kernels back to the arena, so no lock is held here.
    drop(committed);
    TYPES.give_back(entry);
}

/// Ends the conversion of all types in the table whose constructors have this hash
/// ([`Datatype::structural_hash`]).
///
/// [`Datatype::structural_hash`]: ddtc::internal::datatype::Datatype::structural_hash
pub(crate) fn end_all(structural_hash: u128) {
    TYPES.for_each_bound(|entry| {
        // SAFETY: `Table::for_each_bound` holds the lock of the table during this closure. `retire`
        // writes to the cell of a bound entry only after it has unbound the entry under that lock,
        // so the entry is not retired while the reference lives.
        let committed = unsafe { entry.committed() };
        if committed.is_some_and(|c| c.datatype().structural_hash() == structural_hash) {
            entry.end();
        }
    });
}

/// Adds the use counts of all types in the table to the rows of the report and sets the counts to
/// 0. The types stay in the table, and their uses are counted from 0 on.
pub(crate) fn fold_all() {
    TYPES.for_each_bound(|entry| {
        // SAFETY: `Table::for_each_bound` holds the lock of the table during this closure. `retire`
        // writes to the cell of a bound entry only after it has unbound the entry under that lock,
        // so the entry is not retired while the reference lives.
        if let Some(committed) = unsafe { entry.committed() } {
            entry.uses.fold(committed);
        }
    });
}

/// Unbinds all entries from their handles and adds the use counts of their types to the rows of the
/// report. Called before the MPI library is finalized, because the handles mean nothing after that.
/// An entry that is an attribute of its type is given back by the attribute's delete callback,
/// whenever the MPI library runs that callback.
pub(crate) fn forget_all() {
    TYPES.forget_all(|entry| {
        // SAFETY: the entry was bound until now, and the lock under which it was unbound is still
        // held. `retire` takes that lock, to unbind the entry, before it writes to the cell, so the
        // entry is not retired while the reference lives.
        if let Some(committed) = unsafe { entry.committed() } {
            entry.uses.fold(committed);
        }
    });
}
