//! Conversion of messages: packing before a send, and unpacking after a receive.
//!
//! A converted message travels as `MPI_PACKED`, which matches any type, or as another substitute
//! datatype if the MPI library needs one ([`crate::substitute`]). The peer can receive either, so
//! the peer need not convert the message, and ddtc need not be loaded there. Messages are converted
//! only if the MPI library's own `MPI_Pack` writes raw bytes without a header, and only under MPI
//! libraries with which conversion was tried, for which a proof permits it ([`crate::proof`]), or
//! for which the user asks for it (`DDTC_POLICY=all`, `DDTC_UNPROVEN`). The conversion does not
//! check the communicator, rank and tag: they are passed to the MPI library as they are, and the
//! MPI library reports errors in them.

use std::ffi::{c_int, c_void};
use std::time::Instant;

use ddtc::internal::committed::Committed;
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc_hosts::bypass::Bypass;

use crate::deciding::{Approved, decided};
use crate::decision::Purpose;
use crate::gapped::{Gap, Substitute};
use crate::guard::guard;
use crate::host::{HandleWord, Host};
use crate::outcome::{bypassed, converted};
use crate::partial_element::{self, Origin, RefusedMessage};
use crate::pool::Buffer;
use crate::run::run;
use crate::slow_path::{CHECK, COUNT, PERF, reasons};
use crate::status::{self, Mark};
use crate::substitute::substitute;
use crate::table::{self, Found, TypeEntry};
use crate::user_buffer::UserBuffer;
use crate::{check, counted, overhead_budget, perf};

/// Returns the table entry of the type with this handle, if the type is converted. Returns `None`
/// if `datatype` is 0, which stands for a handle that the program may have freed.
fn entry_of(host: &Host, datatype: HandleWord) -> Option<&'static TypeEntry> {
    match table::find(datatype & host.mask) {
        Found::Convert(entry) if datatype != 0 => Some(entry),
        _ => None,
    }
}

/// Packed message, or packed origin of a one-sided operation.
pub(crate) struct Packed {
    /// Arguments that the MPI library gets instead of the program's buffer, count and datatype.
    pub(crate) replacement: UserBuffer,
    /// Memory of the packed bytes, which must live until the MPI library has sent them.
    pub(crate) buffer: Buffer,
}

/// Packs a message, or the origin of a one-sided operation, if it is to be converted. `max_bytes`:
/// maximum number of bytes that the call of the MPI library can carry.
///
/// # Safety
/// As for `MPI_Send`: if the MPI library's own call would succeed, the buffer must have the
/// elements that the arguments name.
#[inline]
pub(crate) unsafe fn pack(
    host: &'static Host,
    given: UserBuffer,
    peer: c_int,
    max_bytes: i64,
    purpose: Purpose,
) -> Option<Packed> {
    let Approved { entry, bytes, plan } =
        decided(host, given, Some(peer), max_bytes, purpose, Direction::Pack)?;
    guard(|| {
        // SAFETY: the entry is that of a type that is an argument of this call. So the entry is
        // bound to that type, and nobody retires the entry while the reference lives, because the
        // program holds the type during the call.
        let committed = unsafe { entry.committed() }?;
        let t = committed.datatype();
        let Some(Substitute { count, datatype, gap }) =
            substitute(plan, purpose, host, entry, t, given.count, bytes)
        else {
            return bypassed(Bypass::NoSubstitute);
        };
        let buffer = Buffer::get(gap.memory(bytes as u64))?;
        overhead_budget::saved(entry.saves(bytes as u64));
        let packed: *mut u8 = buffer.address().cast();
        let buffers = PackBuffers { user: given.buf.cast(), count: given.count as u64, packed };
        // SAFETY: the caller promises that the program's buffer has the elements that the arguments
        // name, and the entry is that of the buffer's type. The staging buffer is this call's own,
        // and has `gap.memory(bytes)` bytes: room for the packed bytes and the gap.
        unsafe {
            buffers.pack(host, committed, given.datatype, Some(entry));
            gap.open(packed);
        }
        converted();
        Some(Packed {
            replacement: UserBuffer { buf: buffer.address(), count, datatype, entry: None },
            buffer,
        })
    })?
}

/// Data about a pack or unpack that has just ended, for [`PackBuffers::observe`].
struct Observed {
    /// The type's handle; 0 if the program may have freed the type.
    datatype: HandleWord,
    /// The type's entry; `None` if the program may have freed the type.
    entry: Option<&'static TypeEntry>,
    direction: Direction,
    /// Number of packed bytes that were packed or unpacked.
    bytes: u64,
    /// Time at which the pack or unpack began.
    start: Instant,
}

/// The program's buffer and the packed buffer of one pack or unpack.
pub(crate) struct PackBuffers {
    pub(crate) user: *mut u8,
    pub(crate) count: u64,
    pub(crate) packed: *mut u8,
}

impl PackBuffers {
    /// Packs `user` into `packed`. Also counts and checks the pack if that is switched on.
    /// `datatype`: the type's handle, or 0 if the program may have freed the handle.
    ///
    /// # Safety
    /// As for `Committed::pack_raw`. The entry must be that of the type.
    #[inline]
    pub(crate) unsafe fn pack(
        &self,
        host: &'static Host,
        committed: &Committed,
        datatype: HandleWord,
        entry: Option<&'static TypeEntry>,
    ) {
        let watch = reasons();
        if watch & (COUNT | CHECK | PERF) == 0 {
            // SAFETY: as the caller promises.
            return unsafe { committed.pack_raw(self.user, self.count, self.packed) };
        }
        let start = Instant::now();
        // SAFETY: as the caller promises.
        unsafe { run(committed, Direction::Pack, self.user, self.count, self.packed) };
        counted::MESSAGES_PACKED.add();
        let observed =
            Observed { datatype, entry, direction: Direction::Pack, bytes: self.bytes(committed), start };
        // SAFETY: as the caller promises; the bytes were just packed.
        unsafe { self.observe(host, committed, observed) };
    }

    /// Unpacks the whole instances in `packed` to `user`. Also counts and checks the unpack if that
    /// is switched on. `datatype`: as in [`PackBuffers::pack`].
    ///
    /// # Safety
    /// As for `Committed::unpack_raw`.
    pub(crate) unsafe fn unpack(&self, host: &'static Host, committed: &Committed, datatype: HandleWord) {
        let start = (reasons() & (COUNT | CHECK | PERF) != 0).then(Instant::now);
        // SAFETY: as the caller promises.
        unsafe { run(committed, Direction::Unpack, self.user, self.count, self.packed) };
        if let Some(start) = start {
            counted::MESSAGES_UNPACKED.add();
            let (entry, bytes) = (entry_of(host, datatype), self.bytes(committed));
            let observed = Observed { datatype, entry, direction: Direction::Unpack, bytes, start };
            // SAFETY: as the caller promises; the bytes were just unpacked.
            unsafe { self.observe(host, committed, observed) };
        }
    }

    /// Returns the packed bytes of the instances.
    fn bytes(&self, committed: &Committed) -> u64 {
        self.count * committed.datatype().size() as u64
    }

    /// Checks a pack or unpack that has just ended, counts it, and names its kernel for perf. Each
    /// of the three is done only if it is switched on.
    ///
    /// # Safety
    /// As for [`PackBuffers::pack`] or [`PackBuffers::unpack`], and the bytes must already have
    /// been packed or unpacked.
    #[cold]
    unsafe fn observe(&self, host: &'static Host, committed: &Committed, observed: Observed) {
        let Observed { datatype, entry, direction, bytes, start } = observed;
        let (watch, nanos) = (reasons(), start.elapsed().as_nanos() as u64);
        if watch & CHECK != 0 && datatype != 0 && self.count > 0 {
            let comm = host.myself;
            let PackBuffers { user, count, packed } = *self;
            let checked = check::Checked { host, committed, datatype, direction, user, count, packed, comm };
            // SAFETY: as the caller promises.
            host.with_world(|| unsafe { checked.compare() });
        }
        if watch & COUNT != 0 {
            match entry {
                Some(entry) => entry.uses.count(direction, bytes, nanos),
                None => counted::count_in_row(committed, direction, bytes, nanos),
            }
        }
        if watch & PERF != 0 {
            perf::name(committed, direction);
        }
    }
}

/// Mark at the end of a staging buffer before a receive. If the mark is still there after the
/// receive, the message is taken not to have filled the buffer. The 16 bytes are arbitrary, so that
/// a message is unlikely to end with them. A buffer of n < 16 bytes is marked with the first n of
/// these bytes, which a message ends with more easily.
const UNTOUCHED: u128 = 0x9d5c_2e71_a8f3_064b_c7e9_1d38_52fa_6b90;

/// Staging buffer of packed bytes that replaces the program's buffer in a call of the MPI library.
///
/// If the call receives, the MPI library writes packed bytes to the staging buffer, which are
/// unpacked to the program's buffer afterwards. If the call sends, the program's buffer is packed
/// into the staging buffer before the call, or at every start of a persistent operation. A
/// `Staging` owns its kernels, because the program may free the type before the operation is
/// complete.
pub(crate) struct Staging {
    buffer: Buffer,
    committed: Committed,
    user: *mut u8,
    count: u64,
    bytes: i64,
    datatype: HandleWord,
    /// Arguments that the MPI library gets for the staging buffer: the number of elements, the
    /// substitute datatype, and the gap in each element.
    replacement: Substitute,
    origin: Origin,
}

// SAFETY: a pointer to the program's buffer is among the fields. That buffer is reserved for the
// operation from its start to its completion, and any thread may complete the operation. So the
// buffer may be used from any thread.
unsafe impl Send for Staging {}

impl Staging {
    /// Returns the arguments that the MPI library gets instead of the program's buffer.
    pub(crate) fn replacement(&self) -> UserBuffer {
        let Substitute { count, datatype, .. } = self.replacement;
        UserBuffer { buf: self.buffer.address(), count, datatype, entry: None }
    }

    /// Returns how many bytes of the limit on all staging buffers this staging buffer takes.
    pub(crate) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Returns the memory of the staging buffer.
    pub(crate) fn buffer(&self) -> *mut c_void {
        self.buffer.address()
    }

    /// Returns the program's buffer.
    pub(crate) fn user(&self) -> *mut u8 {
        self.user
    }

    /// Returns the number of packed bytes of the whole buffer.
    pub(crate) fn bytes(&self) -> i64 {
        self.bytes
    }

    /// Returns the mark for the status of an operation that fills this buffer. The mark shows
    /// whether the MPI library has written the status.
    pub(crate) fn mark(&self) -> Mark {
        if self.origin == Origin::File { Mark::past(self.bytes) } else { Mark::Source }
    }

    /// Packs all of the program's buffer into the staging buffer: the bytes that are sent from
    /// there, or the bytes that a receive into the same buffer overwrites. Returns false if packing
    /// panicked, else true.
    ///
    /// # Safety
    /// As for `Committed::pack_raw` with the program's buffer.
    pub(crate) unsafe fn fill(&self, host: &'static Host) -> bool {
        let buffers =
            PackBuffers { user: self.user, count: self.count, packed: self.buffer.address().cast() };
        // SAFETY: as the caller promises; the staging buffer has room for the packed bytes and the
        // gap.
        let filled = guard(|| unsafe {
            self.moved(host, &buffers, Direction::Pack);
            self.replacement.gap.open(buffers.packed);
        });
        filled.is_some()
    }

    /// Returns the address of the last bytes of `elements` elements that begin at `at`, and the
    /// number of these last bytes, which is at most the length of the mark. An element is the whole
    /// message, or one instance of the type; `size` is its number of packed bytes.
    fn end(&self, at: *mut u8, elements: i64, size: i64) -> (*mut u8, usize) {
        let (place, bytes) = self.replacement.gap.end(elements, size, size_of_val(&UNTOUCHED));
        (at.wrapping_add(place), bytes)
    }

    /// Marks the end of `elements` elements before a receive of them, so that [`Staging::came`] can
    /// determine whether all of them came. `at`, `elements` and `size`: as in [`Staging::end`].
    ///
    /// # Safety
    /// The elements must lie in the staging buffer, and nobody else may use the staging buffer.
    pub(crate) unsafe fn mark_end(&self, at: *mut u8, elements: i64, size: i64) {
        let (end, bytes) = self.end(at, elements, size);
        // SAFETY: the place is inside the elements, which lie in the staging buffer, as the caller
        // promises.
        unsafe { end.copy_from_nonoverlapping(UNTOUCHED.to_ne_bytes().as_ptr(), bytes) }
    }

    /// Returns true if a receive that the MPI library reports as an error has brought all elements,
    /// as it does if the message was longer than the receive. The mark at the end of the elements
    /// is then overwritten. `at`, `elements` and `size`: as in [`Staging::end`].
    ///
    /// # Safety
    /// As for [`Staging::mark_end`]. Before the receive, `mark_end` must have been called for the
    /// same elements, or all bytes of the elements must have been written.
    pub(crate) unsafe fn came(&self, at: *mut u8, elements: i64, size: i64) -> bool {
        let (end, bytes) = self.end(at, elements, size);
        // SAFETY: the place is inside the elements, and was written before the receive, as the
        // caller promises.
        unsafe { std::slice::from_raw_parts(end, bytes) != &UNTOUCHED.to_ne_bytes()[..bytes] }
    }

    /// Marks the end of the staging buffer before a message is received into it.
    ///
    /// # Safety
    /// The MPI library must not have been given the staging buffer yet, or must be done with it.
    pub(crate) unsafe fn expect(&self) {
        // SAFETY: the staging buffer has room for the message; nobody else uses it, as the caller
        // promises.
        unsafe { self.mark_end(self.buffer.address().cast(), 1, self.bytes) }
    }

    /// Unpacks the staging buffer after a receive that has failed, if a message has filled the
    /// buffer: a message that was too long for the receive. Without ddtc the beginning of such a
    /// message would be in the program's buffer, so the program must find it there. Nothing is
    /// unpacked after a read from a file.
    ///
    /// # Safety
    /// [`Staging::expect`] or [`Staging::fill`] must have been called before the receive. The
    /// program's buffer must be as `Committed::unpack_raw` requires.
    pub(crate) unsafe fn unpack_truncated(&self, host: &'static Host) {
        // SAFETY: as the caller promises. If the mark at the end of the buffer is gone, the message
        // has filled the buffer.
        unsafe {
            if self.origin != Origin::File && self.came(self.buffer.address().cast(), 1, self.bytes) {
                self.unpacked(host);
            }
        }
    }

    /// Unpacks all of the staging buffer to the program's buffer.
    ///
    /// # Safety
    /// All packed bytes must have come. As for `Committed::unpack_raw` with the program's buffer.
    pub(crate) unsafe fn unpacked(&self, host: &'static Host) {
        let buffers =
            PackBuffers { user: self.user, count: self.count, packed: self.buffer.address().cast() };
        // SAFETY: as the caller promises; the staging buffer has room for the packed bytes and the
        // gap.
        let _ = guard(|| unsafe {
            self.replacement.gap.close(buffers.packed);
            self.moved(host, &buffers, Direction::Unpack);
        });
    }

    /// Returns the gap in each element of the staging buffer.
    pub(crate) fn gap(&self) -> Gap {
        self.replacement.gap
    }

    /// Returns the packed bytes of one instance.
    pub(crate) fn size(&self) -> i64 {
        self.committed.datatype().size()
    }

    /// Returns the bytes from one instance to the next in the program's buffer.
    pub(crate) fn extent(&self) -> i64 {
        self.committed.datatype().extent()
    }

    /// Packs or unpacks `buffers`, which hold instances of this buffer's type.
    ///
    /// # Safety
    /// As for `Committed::pack_raw` or `Committed::unpack_raw`, according to `direction`.
    pub(crate) unsafe fn moved(&self, host: &'static Host, buffers: &PackBuffers, direction: Direction) {
        // SAFETY: as the caller promises.
        unsafe {
            match direction {
                Direction::Pack => {
                    let entry = entry_of(host, self.datatype);
                    buffers.pack(host, &self.committed, self.datatype, entry);
                }
                Direction::Unpack => buffers.unpack(host, &self.committed, self.datatype),
            }
        }
    }

    /// Forgets the type's handle, which the program may free from now on.
    pub(crate) fn forget_handle(&mut self) {
        self.datatype = 0;
    }

    /// Unpacks exactly the bytes that were received, which may end inside an instance. If they end
    /// inside a basic element, and the MPI library would have refused a message of that length that
    /// is received with the program's own type, returns the error.
    ///
    /// # Safety
    /// `at` must point to the status of a completed and successful receive into this staging
    /// buffer, and the program's buffer must have the elements that the arguments of the receive
    /// name.
    pub(crate) unsafe fn unpack(&self, host: &'static Host, at: *mut c_void) -> Option<RefusedMessage> {
        guard(|| {
            // SAFETY: `at` points to a status, as the caller promises.
            let mut received = unsafe { status::bytes(host, at, self.bytes) } as u64;
            let datatype = self.committed.datatype();
            let size = datatype.size() as u64;
            // Most messages fill the buffer, so their instances are counted without a division,
            // which takes as long as a short message.
            let whole = if received == self.bytes as u64 { self.count } else { received / size };
            let mut refused = None;
            if received > whole * size {
                let (bytes, before) = (received - whole * size, whole * size);
                // SAFETY: `at` points to the status of the receive, as the caller promises.
                let (taken, error) =
                    unsafe { partial_element::examine(host, datatype, bytes, before, self.origin, at) };
                (received, refused) = (before + taken, error);
            }
            let packed = self.buffer.address().cast::<u8>();
            // SAFETY: the staging buffer has room for the message and its gap.
            unsafe { self.replacement.gap.close(packed) };
            let watch = reasons() & (COUNT | CHECK | PERF);
            let start = (watch != 0).then(Instant::now);
            // SAFETY: the MPI library has written `received` bytes, which are at most `self.bytes`.
            // So the `whole` instances, and the one after them if the bytes end inside it, are
            // among those that the receive named. The program's buffer has room for all of these,
            // as the caller promises.
            unsafe {
                if whole > 0 {
                    run(&self.committed, Direction::Unpack, self.user, whole, packed);
                }
                if received > whole * size {
                    let rest = packed.wrapping_add((whole * size) as usize);
                    let range = whole * size..received;
                    self.committed.range_raw(Direction::Unpack, self.user, whole + 1, rest, range);
                }
            }
            if let Some(start) = start {
                counted::MESSAGES_UNPACKED.add();
                let buffers = PackBuffers { user: self.user, count: whole, packed };
                let (datatype, entry) = (self.datatype, entry_of(host, self.datatype));
                let observed =
                    Observed { datatype, entry, direction: Direction::Unpack, bytes: received, start };
                // SAFETY: the bytes of the whole instances were just unpacked between these
                // buffers.
                unsafe { buffers.observe(host, &self.committed, observed) };
            }
            refused
        })?
    }
}

/// Makes a staging buffer for a buffer of a call, if the buffer is to be converted. Packs nothing
/// yet. `peer`: the rank that the call names; `None` if it does not name a single rank.
/// `max_bytes`: maximum number of bytes that the call of the MPI library can carry. `direction`:
/// the direction in which the call moves the bytes of the buffer.
///
/// # Safety
/// As for `MPI_Recv`.
#[inline]
pub(crate) unsafe fn stage(
    host: &'static Host,
    given: UserBuffer,
    peer: Option<c_int>,
    max_bytes: i64,
    origin: Origin,
    purpose: Purpose,
    direction: Direction,
) -> Option<Box<Staging>> {
    let Approved { entry, bytes, plan } = decided(host, given, peer, max_bytes, purpose, direction)?;
    guard(|| {
        // SAFETY: the entry is that of a type that is an argument of this call. So the entry is
        // bound to that type, and nobody retires the entry while the reference lives, because the
        // program holds the type during the call.
        let committed = unsafe { entry.committed() }?.clone();
        let UserBuffer { buf, count, datatype, .. } = given;
        let t = committed.datatype();
        let Some(replacement) = substitute(plan, purpose, host, entry, t, count, bytes) else {
            return bypassed(Bypass::NoSubstitute);
        };
        let buffer = Buffer::get(replacement.gap.memory(bytes as u64))?;
        overhead_budget::saved(entry.saves(bytes as u64));
        let (user, count) = (buf.cast(), count as u64);
        // A file call may still bypass the buffer after it has found where the file ends, so the
        // buffer is not counted as converted here.
        if !matches!(purpose, Purpose::File { .. }) {
            converted();
        }
        Some(Box::new(Staging { buffer, committed, user, count, bytes, datatype, replacement, origin }))
    })?
}
