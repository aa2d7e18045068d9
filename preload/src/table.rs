//! Finds the host's datatypes by their handles.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};

use ddtc::committed::Committed;
use ddtc::kind::Direction;
use ddtc_hosts::policy::{Call, Class};

use crate::atomic_ref::AtomicRef;
use crate::counted::Uses;
use crate::element_type::ElementType;
use crate::evidence::Evidence;
use crate::host::{HandleWord, Host};
use crate::kin::Kin;
use crate::policy::Rules;
use crate::relative::ADDRESSES;
use crate::reserve;
use crate::served::Served;
use crate::slots::{Entry, Table};
use crate::spending;
use crate::wire_type::WireType;

/// `TypeEntry::size` of types that are the host's business: predefined ones and those that we cannot decode.
const PASSED: i64 = -1;

/// Nanoseconds that compiling a layout takes.
const COMPILE: u64 = 10_000;
/// Nanoseconds that the first compile of a process takes (60,000 to 200,000; Zen 3).
const FIRST: u64 = 100_000;

/// Bit of `TypeEntry::ready`: the library moves the type otherwise than we do, so it is the library's.
const ENDED: u8 = 1 << 7;

/// When a type is compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// When its uses in this process have paid for that, sooner if types that are alike have gained,
    /// but not while other work has used up the time budget.
    Own,
    /// When its uses have moved enough bytes, whatever the time budget says. So two ranks that have
    /// decoded their types at the same message also compile them at the same message. Nothing is
    /// compiled after memory has run out.
    OfBothRanks,
}

/// A host's type. Entries live forever; one is used again for another type when its own is gone.
#[repr(align(64))]
pub(crate) struct TypeEntry {
    /// The bound handle, 0 if none.
    handle: AtomicU64,
    /// Packed bytes of one instance, or `PASSED`.
    size: AtomicI64,
    /// Calls in which some payloads are converted, a bit each.
    calls: AtomicU32,
    /// Payloads of messages that are converted, see `ddtc_hosts::policy`.
    payloads: AtomicU64,
    /// The place of its layout class in `Class::ALL`, or past its end.
    class: AtomicU8,
    /// Times of its layout; null where nothing is timed.
    evidence: AtomicRef<Evidence>,
    /// What is known of types that are alike, null where nothing is; and the bytes that this one has moved in messages.
    kin: AtomicRef<Kin>,
    moved: AtomicU64,
    /// Whether its displacements are absolute addresses.
    absolute: AtomicBool,
    /// Directions of which it is settled how their calls are served, a bit each; or [`ENDED`].
    ready: AtomicU8,
    /// Written before the handle is bound, taken after it is unbound.
    committed: UnsafeCell<Option<Committed>>,
    /// Stands for it in messages.
    pub(crate) wire_type: WireType,
    /// Stands for it where an element of one named type must.
    pub(crate) element_type: ElementType,
    /// Whether requests inside the host are served.
    pub(crate) served: Served,
    /// Uses of the type, while they are counted.
    pub(crate) uses: Uses,
}

// SAFETY: all fields but `committed` are Sync. `committed` is written only by the one owner of an entry: the free list hands an entry to one thread,
// and the host runs one delete callback per attribute, which unbinds the entry first. Readers reach it through a bound handle, or as an attribute, whose type the program
// holds during the call: freeing a type while another thread packs with it is erroneous in MPI.
unsafe impl Sync for TypeEntry {}

/// Result of a lookup.
pub(crate) enum Found {
    /// A type that we convert.
    Convert(&'static TypeEntry),
    /// A type that is left to the host.
    Pass,
    /// Not seen yet.
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
            evidence: AtomicRef::none(),
            kin: AtomicRef::none(),
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
    /// Packed bytes of one instance; positive for entries that convert.
    #[inline]
    pub(crate) fn size(&self) -> i64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Payloads of messages that are converted.
    #[inline]
    pub(crate) fn payloads(&self) -> u64 {
        self.payloads.load(Ordering::Relaxed)
    }

    /// Returns the times of its layout.
    #[inline]
    pub(crate) fn evidence(&self) -> Option<&'static Evidence> {
        self.evidence.load()
    }

    /// Returns what is known of types that are alike.
    #[inline]
    fn kin(&self) -> Option<&'static Kin> {
        self.kin.load()
    }

    /// A message of so many bytes is about to be sent or received.
    #[inline]
    pub(crate) fn moves(&self, bytes: u64) {
        // Threads may lose one another's: nothing but the moment of a decoding hangs on it.
        self.moved.store(self.moved.load(Ordering::Relaxed).saturating_add(bytes), Ordering::Relaxed);
    }

    /// Returns the nanoseconds that converting a message of so many bytes saves at least.
    #[inline]
    pub(crate) fn saves(&self, bytes: u64) -> u64 {
        // By a table: such messages gain 1.3 times, and take hosts a quarter of a nanosecond a byte and more.
        self.evidence().and_then(|evidence| evidence.saves(bytes)).unwrap_or(bytes / 16)
    }

    /// Returns the nanoseconds that moving a request of so many bytes inside the host saves at least.
    #[inline]
    pub(crate) fn spares(&self, bytes: u64) -> u64 {
        let untimed = || match self.rules().class {
            // The host takes four times as long, half a nanosecond a byte and more.
            Class::BlocksShort | Class::TableShort => bytes / 4,
            _ => 0,
        };
        self.evidence().and_then(|evidence| evidence.spares(bytes)).unwrap_or_else(untimed)
    }

    /// Says whether a request of so many bytes gains inside the host: by what was timed, or by its class.
    #[inline]
    pub(crate) fn gains_inside(&self, bytes: u64) -> bool {
        match self.evidence() {
            Some(evidence) if evidence.is_ahead(bytes) => true,
            Some(evidence) if evidence.is_even(bytes) => false,
            _ => self.served.gains(bytes),
        }
    }

    /// Says whether a buffer at this address is one of the type's: a null buffer only is where displacements are absolute addresses.
    #[inline]
    pub(crate) fn takes(&self, buf: *const c_void) -> bool {
        !buf.is_null() || self.absolute.load(Ordering::Relaxed)
    }

    /// Says whether it is one run of bytes, whatever the count.
    #[inline]
    pub(crate) fn is_a_run(&self) -> bool {
        self.class.load(Ordering::Relaxed) == u8::MAX
    }

    /// Says whether some payloads of it are converted in such calls.
    #[inline]
    pub(crate) fn converts(&self, call: Call) -> bool {
        self.calls.load(Ordering::Relaxed) >> call as u32 & 1 != 0
    }

    /// Returns its layout class.
    #[inline]
    pub(crate) fn class(&self) -> Class {
        let class = Class::ALL.get(usize::from(self.class.load(Ordering::Relaxed)));
        class.copied().unwrap_or(Class::Dense)
    }

    /// Returns the policy's rules for it.
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            class: self.class(),
            calls: self.calls.load(Ordering::Relaxed),
            messages: self.payloads(),
            evidence: self.evidence(),
            kin: self.kin(),
        }
    }

    /// Says whether calls of a direction that move so many bytes are converted: in mode `lazy` they compile the layout once all calls have moved enough, and
    /// until then they are the host's.
    ///
    /// # Safety
    /// As [`TypeEntry::committed`].
    #[inline]
    pub(crate) unsafe fn ready(&self, direction: Direction, bytes: u64) -> bool {
        // SAFETY: as the caller promises.
        unsafe { self.ready_at(direction, bytes, Pace::Own) }
    }

    /// As [`TypeEntry::ready`], at this pace.
    ///
    /// # Safety
    /// As [`TypeEntry::committed`].
    #[inline]
    pub(crate) unsafe fn ready_at(&self, direction: Direction, bytes: u64, pace: Pace) -> bool {
        // SAFETY: as the caller promises.
        self.is_ready(direction) || unsafe { self.get_ready(direction, bytes, pace) }
    }

    /// Says whether it is settled how calls of a direction are served.
    #[inline]
    pub(crate) fn is_ready(&self, direction: Direction) -> bool {
        self.ready.load(Ordering::Relaxed) >> direction as u8 & 1 != 0
    }

    /// # Safety
    /// As [`TypeEntry::committed`].
    #[cold]
    unsafe fn get_ready(&self, direction: Direction, bytes: u64, pace: Pace) -> bool {
        if self.ready.load(Ordering::Relaxed) & ENDED != 0 {
            return false;
        }
        // Short runs take hosts four times as long as long ones and more: they pay for a compile as much sooner.
        let short =
            matches!(self.rules().class, Class::StridedShort | Class::BlocksShort | Class::TableShort);
        // Where types that are alike gain, it was decoded because it pays for both.
        let hoped = pace == Pace::Own && {
            let moved = self.moved.load(Ordering::Relaxed);
            self.evidence().is_some_and(|evidence| evidence.hoped() != 0)
                || self.kin().is_some_and(|kin| kin.promises(bytes, moved, FIRST))
        };
        let bytes = if hoped { u64::MAX } else { bytes.saturating_mul(if short { 4 } else { 1 }) };
        let may_compile = || match pace {
            Pace::Own => hoped || spending::allows(COMPILE),
            Pace::OfBothRanks => !reserve::is_short(),
        };
        // SAFETY: as the caller promises.
        let settled = unsafe { self.committed() }
            // Of a layout that was compiled before, and in other modes, nothing is to be spent.
            .is_some_and(|c| {
                c.settled(direction, 0)
                    || may_compile() && {
                        let (settled, nanos) = spending::timed(|| c.settled(direction, bytes));
                        if settled && let Some(kin) = self.kin() {
                            kin.compiled(nanos);
                        }
                        settled
                    }
            });
        let bit = 1 << direction as u8;
        // Another thread may have ended it since it was asked for.
        if settled && self.ready.fetch_or(bit, Ordering::Relaxed) & ENDED != 0 {
            self.ready.fetch_and(!bit, Ordering::Relaxed);
            return false;
        }
        settled
    }

    /// Converts nothing of the type any more. Calls that are being converted in other threads, and
    /// requests that were made before, end as they began.
    fn end(&self) {
        self.ready.store(ENDED, Ordering::Relaxed);
        self.calls.store(0, Ordering::Relaxed);
        self.payloads.store(0, Ordering::Relaxed);
        self.evidence.store(None);
        self.served.end();
    }

    /// Returns the committed type of an entry that converts.
    ///
    /// # Safety
    /// Nobody may retire the entry while the reference lives: it is bound and its type is held, or it is the
    /// attribute of a type that lives, or it is the caller's own.
    #[inline]
    pub(crate) unsafe fn committed(&self) -> Option<&Committed> {
        // SAFETY: only `retire` and `entry` write, to an entry that is their caller's own.
        unsafe { (*self.committed.get()).as_ref() }
    }
}

static TYPES: Table<TypeEntry> = Table::new();

/// Looks up the type of a handle.
#[inline]
pub(crate) fn find(handle: u64) -> Found {
    match TYPES.find(handle) {
        None => Found::Unknown,
        Some(entry) if entry.size() > 0 => Found::Convert(entry),
        Some(_) => Found::Pass,
    }
}

/// Returns the entry of a type, converted or not; `None`: it is not decoded.
#[inline]
pub(crate) fn known(host: &Host, datatype: HandleWord) -> Option<&'static TypeEntry> {
    TYPES.find(datatype & host.mask)
}

/// Returns a new entry for a type, not bound to a handle yet; `None` leaves the type to the host.
pub(crate) fn entry(committed: Option<Committed>, rules: Rules) -> &'static TypeEntry {
    let entry = TYPES.take();
    // An empty type has nothing to convert.
    let size = committed.as_ref().map(|c| c.datatype().size()).filter(|&s| s > 0);
    entry.size.store(size.unwrap_or(PASSED), Ordering::Relaxed);
    entry.calls.store(if size.is_some() { rules.calls } else { 0 }, Ordering::Relaxed);
    entry.payloads.store(rules.messages, Ordering::Relaxed);
    let class = Class::ALL.iter().position(|&c| c == rules.class);
    entry.class.store(class.map_or(u8::MAX, |at| at as u8), Ordering::Relaxed);
    let absolute = committed.as_ref().is_some_and(|c| c.datatype().true_lb() >= ADDRESSES);
    entry.absolute.store(absolute, Ordering::Relaxed);
    entry.evidence.store(rules.evidence);
    entry.kin.store(rules.kin);
    entry.moved.store(0, Ordering::Relaxed);
    entry.ready.store(0, Ordering::Relaxed);
    entry.wire_type.reset();
    entry.element_type.reset();
    entry.uses.reset();
    // SAFETY: the entry came from the free list, so this thread owns it, and it is not bound.
    unsafe {
        entry.served.reset();
        *entry.committed.get() = committed;
    }
    entry
}

/// Binds an entry that its caller owns to a handle; readers find it from now on.
pub(crate) fn bind(entry: &'static TypeEntry, handle: u64) {
    TYPES.bind(entry, handle, false);
}

/// Ends an entry: unbinds it, frees what it holds and gives it back.
///
/// # Safety
/// The caller must own the entry: its type is gone, or it was never bound, so no thread reads what it
/// holds. It must not be used afterwards.
pub(crate) unsafe fn retire(entry: &'static TypeEntry) {
    TYPES.unbind(entry);
    // SAFETY: the caller owns the entry, and it is not bound.
    let committed = unsafe { (*entry.committed.get()).take() };
    // SAFETY: the same.
    unsafe { entry.served.reset() };
    if let Some(kin) = entry.kin() {
        kin.ended(entry.moved.load(Ordering::Relaxed));
    }
    if let Some(committed) = &committed {
        entry.uses.fold(committed);
    }
    // Its kernels may go back to the arena here: outside the lock.
    drop(committed);
    TYPES.give_back(entry);
}

/// Ends the conversion of all bound types of these constructors ([`Datatype::structural_hash`]).
///
/// [`Datatype::structural_hash`]: ddtc::datatype::Datatype::structural_hash
pub(crate) fn end_all(structural_hash: u128) {
    TYPES.each(|entry| {
        // SAFETY: nothing is bound or unbound meanwhile, and what is bound is not written.
        let committed = unsafe { entry.committed() };
        if committed.is_some_and(|c| c.datatype().structural_hash() == structural_hash) {
            entry.end();
        }
    });
}

/// Folds the uses of what is bound, which goes on being counted.
pub(crate) fn fold_all() {
    TYPES.each(|entry| {
        // SAFETY: nothing is bound or unbound meanwhile, and what is bound is not written.
        if let Some(committed) = unsafe { entry.committed() } {
            entry.uses.fold(committed);
        }
    });
}

/// Unbinds every handle: the host's values mean nothing after its finalization. Entries of types that had an attribute are given
/// back by its delete callback, whenever the host runs it. Folds the uses of what was bound.
pub(crate) fn forget_all() {
    TYPES.forget_all(|entry| {
        // SAFETY: the entry was bound until now, under the lock that is still held. An entry is retired only after
        // it was unbound under that lock, so its type is still there.
        if let Some(committed) = unsafe { entry.committed() } {
            entry.uses.fold(committed);
        }
    });
}
