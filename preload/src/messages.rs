//! Messages: what is packed before a send, and what is unpacked after a receive.
//!
//! A converted message travels as `MPI_PACKED`, which matches any type, so the peer need not convert, nor have this library. That
//! holds only where the host's own `MPI_Pack` gives headerless raw bytes, on hosts where it was tried, and decides nothing about
//! errors: communicator, rank and tag go to the host as they are.

use std::ffi::{c_int, c_void};
use std::time::Instant;

use ddtc::committed::Committed;
use ddtc::kind::Direction;
use ddtc_hosts::bypass::Bypass;

use crate::deciding::{Approved, decided};
use crate::decision::Purpose;
use crate::gapped::{Gap, StandIn};
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
use crate::{check, counted, perf};

/// The entry of a handle, 0 if it may be freed.
fn entry_of(host: &Host, datatype: HandleWord) -> Option<&'static TypeEntry> {
    match table::find(datatype & host.mask) {
        Found::Convert(entry) if datatype != 0 => Some(entry),
        _ => None,
    }
}

/// A packed message.
pub(crate) struct Packed {
    /// Arguments for the host.
    pub(crate) replacement: UserBuffer,
    /// Memory that must live until the host has sent it.
    pub(crate) buffer: Buffer,
}

/// Packs a message, or the origin of a one-sided operation, if it is to be converted.
///
/// # Safety
/// As `MPI_Send`: if the host would succeed, the buffer is what the arguments say.
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
        // SAFETY: the entry is bound, and the program holds the type during the call.
        let committed = unsafe { entry.committed() }?;
        let t = committed.datatype();
        let Some(StandIn { count, datatype, gap }) =
            substitute(plan, purpose, host, entry, t, given.count, bytes)
        else {
            return bypassed(Bypass::NoSubstitute);
        };
        let buffer = Buffer::get(gap.memory(bytes as u64))?;
        let packed: *mut u8 = buffer.at().cast();
        let buffers = PackBuffers { user: given.buf.cast(), count: given.count as u64, packed };
        // SAFETY: memory as the caller promises; the buffer has room for the packed bytes and the gap.
        unsafe {
            buffers.pack(host, committed, given.datatype, Some(entry));
            gap.open(packed);
        }
        converted();
        Some(Packed { replacement: UserBuffer { buf: buffer.at(), count, datatype, entry: None }, buffer })
    })?
}

/// A pack or unpack that was just made, for [`PackBuffers::observe`].
struct Observed {
    /// The type's handle; 0 if the program may have freed the type.
    datatype: HandleWord,
    /// The type's entry; none if the program may have freed the type.
    entry: Option<&'static TypeEntry>,
    direction: Direction,
    /// Packed bytes that were moved.
    bytes: u64,
    start: Instant,
}

/// The user's buffer and the packed buffer of one call, which packs the first into the second.
pub(crate) struct PackBuffers {
    pub(crate) user: *mut u8,
    pub(crate) count: u64,
    pub(crate) packed: *mut u8,
}

impl PackBuffers {
    /// Packs; counts and checks the call where that is switched on. `datatype` is the type's handle, 0 if it may be freed.
    ///
    /// # Safety
    /// As `Committed::pack_raw`; the entry must be that of the type.
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
        // SAFETY: as the caller promises; the bytes were just written.
        unsafe { self.observe(host, committed, observed) };
    }

    /// Unpacks whole instances; counts and checks the call where that is switched on.
    ///
    /// # Safety
    /// As `Committed::unpack_raw`.
    pub(crate) unsafe fn unpack(&self, host: &'static Host, committed: &Committed, datatype: HandleWord) {
        let start = (reasons() & (COUNT | CHECK | PERF) != 0).then(Instant::now);
        // SAFETY: as the caller promises.
        unsafe { run(committed, Direction::Unpack, self.user, self.count, self.packed) };
        if let Some(start) = start {
            counted::MESSAGES_UNPACKED.add();
            let (entry, bytes) = (entry_of(host, datatype), self.bytes(committed));
            let observed = Observed { datatype, entry, direction: Direction::Unpack, bytes, start };
            // SAFETY: as the caller promises; the bytes were just read.
            unsafe { self.observe(host, committed, observed) };
        }
    }

    /// Returns the packed bytes of the instances.
    fn bytes(&self, committed: &Committed) -> u64 {
        self.count * committed.datatype().size() as u64
    }

    /// Checks, counts and names the kernel of a call that was just made, each where it is switched on.
    ///
    /// # Safety
    /// As [`PackBuffers::pack`], after it.
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

/// Marks the end of a staging buffer until a message has come: 16 bytes that no message has by chance.
const UNTOUCHED: u128 = 0x9d5c_2e71_a8f3_064b_c7e9_1d38_52fa_6b90;

/// A buffer of packed bytes that stands for the user's: the host receives into it and they are unpacked to the user's, or what is there is
/// packed into it at every start. Owns its kernels: the type may be freed before the message comes.
pub(crate) struct Staging {
    buffer: Buffer,
    committed: Committed,
    user: *mut u8,
    count: u64,
    bytes: i64,
    datatype: HandleWord,
    /// Elements and type for the host.
    replacement: StandIn,
    origin: Origin,
}

// SAFETY: the program's buffer belongs to the operation from its start to its completion, whichever thread completes it.
unsafe impl Send for Staging {}

impl Staging {
    /// Returns the arguments for the host instead of the user's buffer.
    pub(crate) fn replacement(&self) -> UserBuffer {
        let StandIn { count, datatype, .. } = self.replacement;
        UserBuffer { buf: self.buffer.at(), count, datatype, entry: None }
    }

    /// Returns the bytes that its buffer counts for.
    pub(crate) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Returns its memory.
    pub(crate) fn buffer(&self) -> *mut c_void {
        self.buffer.at()
    }

    /// Returns the program's buffer.
    pub(crate) fn user(&self) -> *mut u8 {
        self.user
    }

    /// Returns the bytes of the message.
    pub(crate) fn bytes(&self) -> i64 {
        self.bytes
    }

    /// Returns how the status of what comes into it is marked.
    pub(crate) fn mark(&self) -> Mark {
        if self.origin == Origin::File { Mark::past(self.bytes) } else { Mark::Source }
    }

    /// Packs all of the program's buffer: what is sent from it, or what an answer is received over. Whether that was done.
    ///
    /// # Safety
    /// As `Committed::pack_raw` for the user's buffer.
    pub(crate) unsafe fn fill(&self, host: &'static Host) -> bool {
        let buffers = PackBuffers { user: self.user, count: self.count, packed: self.buffer.at().cast() };
        // SAFETY: as the caller promises; the buffer has room.
        let filled = guard(|| unsafe {
            self.moved(host, &buffers, Direction::Pack);
            self.replacement.gap.open(buffers.packed);
        });
        filled.is_some()
    }

    /// Where the last bytes of `elements` elements from `at` on stand, each of the message as a whole or of an instance of the type.
    fn end(&self, at: *mut u8, elements: i64, size: i64) -> (*mut u8, usize) {
        let (place, bytes) = self.replacement.gap.end(elements, size, size_of_val(&UNTOUCHED));
        (at.wrapping_add(place), bytes)
    }

    /// Before a receive of these elements: marks their end, so that [`Staging::came`] can tell whether all of them came.
    ///
    /// # Safety
    /// They must be in the buffer, and nobody else may use it.
    pub(crate) unsafe fn mark_end(&self, at: *mut u8, elements: i64, size: i64) {
        let (end, bytes) = self.end(at, elements, size);
        // SAFETY: as the caller promises.
        unsafe { end.copy_from_nonoverlapping(UNTOUCHED.to_ne_bytes().as_ptr(), bytes) }
    }

    /// After a receive that the host calls an error: whether all elements came, as of a message that was longer.
    ///
    /// # Safety
    /// As [`Staging::mark_end`], which must have been called before the receive, or all of them written.
    pub(crate) unsafe fn came(&self, at: *mut u8, elements: i64, size: i64) -> bool {
        let (end, bytes) = self.end(at, elements, size);
        // SAFETY: as the caller promises.
        unsafe { std::slice::from_raw_parts(end, bytes) != &UNTOUCHED.to_ne_bytes()[..bytes] }
    }

    /// Before a receive of a message.
    ///
    /// # Safety
    /// The host must not have been given the buffer, or be done with it.
    pub(crate) unsafe fn expect(&self) {
        // SAFETY: the buffer has room for the message; nobody else uses it, as the caller promises.
        unsafe { self.mark_end(self.buffer.at().cast(), 1, self.bytes) }
    }

    /// After a receive that the host calls an error: what a message that was too long has left in the buffer is the program's, as on the bare host.
    ///
    /// # Safety
    /// [`Staging::expect`] or [`Staging::fill`] must have been called before the receive; as `Committed::unpack_raw` for the user's buffer.
    pub(crate) unsafe fn unpack_truncated(&self, host: &'static Host) {
        // SAFETY: as the caller promises.
        unsafe {
            if self.origin != Origin::File && self.came(self.buffer.at().cast(), 1, self.bytes) {
                self.unpacked(host);
            }
        }
    }

    /// Unpacks all of the buffer to the program's.
    ///
    /// # Safety
    /// All of it must have come; as `Committed::unpack_raw` for the user's buffer.
    pub(crate) unsafe fn unpacked(&self, host: &'static Host) {
        let buffers = PackBuffers { user: self.user, count: self.count, packed: self.buffer.at().cast() };
        // SAFETY: as the caller promises.
        let _ = guard(|| unsafe {
            self.replacement.gap.close(buffers.packed);
            self.moved(host, &buffers, Direction::Unpack);
        });
    }

    /// Returns where the packed bytes stand.
    pub(crate) fn gap(&self) -> Gap {
        self.replacement.gap
    }

    /// Packed bytes of one instance.
    pub(crate) fn size(&self) -> i64 {
        self.committed.datatype().size()
    }

    /// Returns the bytes from an instance to the next.
    pub(crate) fn extent(&self) -> i64 {
        self.committed.datatype().extent()
    }

    /// Packs or unpacks `buffers`, which are of this type.
    ///
    /// # Safety
    /// As `Committed::pack_raw` and `Committed::unpack_raw`.
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

    /// From now on the type's handle may be freed.
    pub(crate) fn forget_handle(&mut self) {
        self.datatype = 0;
    }

    /// Unpacks exactly what was received, which may end inside an instance; the error if the host would have refused its end.
    ///
    /// # Safety
    /// `status` must be that of a completed and successful receive into this buffer, and the user's buffer must be what the
    /// receive said.
    pub(crate) unsafe fn unpack(&self, host: &'static Host, at: *mut c_void) -> Option<RefusedMessage> {
        guard(|| {
            // SAFETY: a status, as the caller promises.
            let mut received = unsafe { status::bytes(host, at, self.bytes) } as u64;
            let datatype = self.committed.datatype();
            let size = datatype.size() as u64;
            // Most fill the buffer, and a division takes as long as a short message.
            let whole = if received == self.bytes as u64 { self.count } else { received / size };
            let mut refused = None;
            if received > whole * size {
                let (bytes, before) = (received - whole * size, whole * size);
                // SAFETY: as above.
                let (taken, error) =
                    unsafe { partial_element::examine(host, datatype, bytes, before, self.origin, at) };
                (received, refused) = (before + taken, error);
            }
            let packed = self.buffer.at().cast::<u8>();
            // SAFETY: the buffer has room for the message and its gap.
            unsafe { self.replacement.gap.close(packed) };
            let watch = reasons() & (COUNT | CHECK | PERF);
            let start = (watch != 0).then(Instant::now);
            // SAFETY: the host has written that many bytes; they are of the instances that the receive named.
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
                // SAFETY: as above.
                unsafe { buffers.observe(host, &self.committed, observed) };
            }
            refused
        })?
    }
}

/// Stages a buffer if it is to be converted. `peer`: none where no one rank is named. `max_bytes`: bytes that the host's call can carry.
///
/// # Safety
/// As `MPI_Recv`.
#[inline]
pub(crate) unsafe fn stage(
    host: &'static Host,
    given: UserBuffer,
    peer: Option<c_int>,
    max_bytes: i64,
    origin: Origin,
    purpose: Purpose,
) -> Option<Box<Staging>> {
    let direction = if matches!(purpose, Purpose::Send(_)) { Direction::Pack } else { Direction::Unpack };
    let Approved { entry, bytes, plan } = decided(host, given, peer, max_bytes, purpose, direction)?;
    guard(|| {
        // SAFETY: the entry is bound, and the program holds the type when it calls.
        let committed = unsafe { entry.committed() }?.clone();
        let UserBuffer { buf, count, datatype, .. } = given;
        let t = committed.datatype();
        let Some(replacement) = substitute(plan, purpose, host, entry, t, count, bytes) else {
            return bypassed(Bypass::NoSubstitute);
        };
        let buffer = Buffer::get(replacement.gap.memory(bytes as u64))?;
        let (user, count) = (buf.cast(), count as u64);
        // A file call may still bypass the buffer, when it knows where the file ends.
        if !matches!(purpose, Purpose::File { .. }) {
            converted();
        }
        Some(Box::new(Staging { buffer, committed, user, count, bytes, datatype, replacement, origin }))
    })?
}
