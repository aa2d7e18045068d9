//! Table of the converted operations whose requests the MPI library has not completed yet.
//!
//! The key of an operation is the handle of its request. A handle identifies a request only while
//! the request is pending, because MPI libraries give one shared handle to all sends that are
//! complete at once, and give the handle of a freed request to a new request at once. So the table
//! contains only pending operations, and persistent operations until their requests are freed.
//!
//! An operation stays in the table while a call lets the MPI library complete its request. The
//! reason is that the program's error handler may leave that call by an exception or a jump, so
//! that the call never returns (see [`crate::calls`]). Within the call the MPI library may complete
//! the request and give its handle to a new request of another thread, for which ddtc has perhaps
//! staged nothing. So completing calls of other threads do not find an operation that is not
//! persistent while a call is completing it, and the completing call itself finds the operation
//! again by a serial number after the MPI library has returned.
//!
//! A thread may call `MPI_Request_get_status` for a request that another thread starts, completes
//! or frees at the same time. ddtc lets the MPI library carry out only one of the two calls at a
//! time. Otherwise the received bytes might be unpacked twice, or by nobody, or after the request
//! was reported as complete. While a call *holds* the operation, because it starts, completes or
//! frees the request, a report of another thread says that the operation is not complete, without
//! asking the MPI library. While a call *reports* on the operation, a call that holds it waits. This
//! is short, because a report does not block.
//!
//! While a thread unpacks or starts an operation that another thread may know, the operation is out
//! of the table, and the table has a [`Mark`] for it. Completing calls of other threads then wait,
//! and reports say that the operation is not complete.
//!
//! No lock is held during a call of the MPI library.

mod freed;

use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{c_int, c_void};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ddtc::internal::process::{SpinGuard, SpinLock, is_inconsistent};
use smallvec::SmallVec;

use freed::Freed;
pub(crate) use freed::{drain, finish, finish_freed, free, unpack_left};

use crate::host::{HandleWord, Host};
use crate::partial_element::RefusedMessage;
use crate::staged::Staged;
use crate::status::{self, Status};

/// Converted operation that has a request.
pub(crate) struct Operation {
    pub(crate) staged: Staged,
    pub(crate) persistent: bool,
    /// True if the operation is a send and a receive under one request (`MPI_Isendrecv`). The send,
    /// the receive or both may be converted.
    exchange: bool,
    /// True if the program has started the operation, even if the start failed, and the operation
    /// is not completed. Operations that are not persistent are always active.
    pub(crate) active: bool,
    /// True if the last start of a persistent collective operation may have failed. No status shows
    /// the failure: the status is empty after the operation has completed and also while the
    /// request is inactive. When a doubtful operation completes, only those bytes are unpacked that
    /// have arrived according to the marks in the staging buffers.
    pub(crate) is_doubtful: bool,
    /// Communicator of the operation; 0 if it is not known (`MPI_Imrecv`); [`NO_COMM`] for an
    /// operation on a window.
    pub(crate) comm: u64,
    /// Unique serial number in the table; 0 before the operation is in the table.
    serial: u64,
    /// Thread ([`me`]) that is in a call which starts, completes or frees the request; 0 if no
    /// thread is in such a call. During the call the MPI library may already have given the handle
    /// of an operation that is not persistent to another request.
    held_by: usize,
    /// True while a call holds the operation to start it.
    is_starting: bool,
    /// Threads that are in a call which reports on the request and does not change it.
    reporters: SmallVec<[usize; 2]>,
}

/// In place of a communicator: the operation belongs to none. No handle has this value.
pub(crate) const NO_COMM: u64 = u64::MAX;

/// Effect of an MPI call on the requests whose handles it is passed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// The call reports on requests and changes none of them (`MPI_Request_get_status`).
    Reports,
    /// The call completes or frees requests (`MPI_Wait`, `MPI_Request_free`).
    Ends,
    /// The call starts persistent requests (`MPI_Start`).
    Starts,
}

impl Operation {
    fn new(staged: Staged, persistent: bool, exchange: bool) -> Box<Operation> {
        let mut operation = Box::new(Operation {
            staged,
            persistent,
            exchange,
            active: !persistent,
            is_doubtful: false,
            comm: 0,
            serial: 0,
            held_by: 0,
            is_starting: false,
            reporters: SmallVec::new(),
        });
        operation.staged.forget_handles();
        operation
    }

    /// Returns an operation that is not persistent. The call that makes the operation also starts
    /// it.
    pub(crate) fn once(staged: Staged) -> Box<Operation> {
        Operation::new(staged, false, false)
    }

    /// Returns a persistent operation, which is not started yet.
    pub(crate) fn persistent(staged: Staged) -> Box<Operation> {
        Operation::new(staged, true, false)
    }

    /// Returns an operation of a call that starts a send and a receive under one request.
    pub(crate) fn exchange(staged: Staged) -> Box<Operation> {
        Operation::new(staged, false, true)
    }

    /// Records that a call of the program is about to start the operation. The operation is active
    /// from now on, and stays so if the start fails. A call that later completes the inactive
    /// request returns an empty status, which makes ddtc unpack no message. Collective operations
    /// have no status, so they are doubtful until the start has succeeded.
    pub(crate) fn begin_start(&mut self) {
        self.active = true;
        self.is_doubtful = self.unpacks() && !self.receives();
    }

    /// Returns true if the operation receives a message. The completion of the operation then reads
    /// the length of the message from a status.
    pub(crate) fn receives(&self) -> bool {
        self.staged.receives()
    }

    /// Returns true if the completion of the operation unpacks bytes.
    pub(crate) fn unpacks(&self) -> bool {
        self.staged.unpacks()
    }

    /// Unpacks the received bytes of an operation that has completed with success. Does nothing if
    /// the operation is inactive or was cancelled. Returns the error if the MPI library would have
    /// refused the message.
    ///
    /// # Safety
    /// `at` must point to the status with which the operation has completed, and the program's
    /// buffer must still belong to the operation.
    unsafe fn unpack_completed(&self, host: &Host, at: *mut c_void) -> Option<RefusedMessage> {
        // Only messages can have been cancelled. The status of a collective operation contains
        // nothing but an error.
        // SAFETY: `at` points to the status of a completed receive, as the caller promises.
        let cancelled = || self.receives() && unsafe { status::cancelled(host, at) };
        if !self.active || cancelled() {
            return None;
        }
        if self.is_doubtful {
            // SAFETY: the operation has completed or is inactive, so the MPI library does not write
            // to the staging buffers. The program's buffer still belongs to the operation, as the
            // caller promises.
            unsafe { self.staged.unpack_truncated() };
            return None;
        }
        // SAFETY: `at` points to the status of the completion, and the program's buffer still
        // belongs to the operation. The caller promises both, and `Staged::unpack` requires both.
        unsafe { self.staged.unpack(at) }
    }

    /// Records that a call of this thread no longer holds the operation or reports on it.
    fn release(&mut self, asker: usize) {
        if self.held_by == asker {
            (self.held_by, self.is_starting) = (0, false);
        }
        self.reporters.retain(|reporter| *reporter != asker);
    }

    /// Returns true if ddtc must call `MPI_Request_get_status` right after the start, to find out
    /// whether the operation is complete already. MPI libraries give one shared handle to all sends
    /// and collective operations that are complete at once, so an operation that is complete
    /// already cannot be put into the table. A receive or an exchange has a handle of its own until
    /// the program completes it.
    pub(crate) fn may_be_done_at_once(&self) -> bool {
        !(self.persistent || self.exchange || self.receives())
    }
}

/// Copy of those properties of an operation in the table that a call about the request needs. A
/// `Found` owns nothing.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    /// Index of the operation's request among the handles of the call.
    pub(crate) index: usize,
    pub(crate) handle: u64,
    serial: u64,
    pub(crate) persistent: bool,
    pub(crate) active: bool,
    /// True if the operation receives a message ([`Operation::receives`]).
    pub(crate) receives: bool,
    /// True if the completion of the operation unpacks bytes ([`Operation::unpacks`]).
    pub(crate) unpacks: bool,
}

impl Found {
    fn new(index: usize, handle: u64, operation: &Operation) -> Found {
        let (receives, unpacks) = (operation.receives(), operation.unpacks());
        let Operation { persistent, active, serial, .. } = *operation;
        Found { index, handle, serial, persistent, active, receives, unpacks }
    }

    /// Takes the operation out of the table. Returns `None` if it was taken out before, by another
    /// thread or for an error handler. Returns `None` in an inconsistent child too (the child of a
    /// fork that may have left locks taken).
    pub(crate) fn take(self) -> Option<Box<Operation>> {
        take(self.handle, self.serial)
    }

    /// Does what [`Found::take`] does. Until the returned mark is dropped, the operation counts as
    /// not complete for reports of other threads, and other calls of other threads wait.
    pub(crate) fn take_marked(self) -> Option<(Box<Operation>, Mark)> {
        if is_inconsistent() {
            return None;
        }
        let mut table = table_without_mark(|mark| mark.serial == self.serial);
        let table = table.as_mut()?;
        let operation = table.take(self.handle, self.serial)?;
        table.marks.push(Marked { handle: self.handle, serial: self.serial, thread: me() });
        table.count();
        Some((operation, Mark(self.serial)))
    }
}

/// Takes the operation with this handle and this serial number out of the table, as
/// [`Found::take`] does.
fn take(handle: u64, serial: u64) -> Option<Box<Operation>> {
    if is_inconsistent() {
        return None;
    }
    let mut table = table_without_mark(|mark| mark.serial == serial);
    let table = table.as_mut()?;
    let taken = table.take(handle, serial);
    table.count();
    taken
}

/// State of an operation after a call about its request.
pub(crate) enum Completion {
    /// The call has completed the operation with success and this status.
    Done(*mut c_void),
    /// The call has told the program, in this status, that the operation is complete, but has not
    /// completed the request (`MPI_Request_get_status`). If ddtc refuses the message now, the call
    /// that completes the request must refuse it again.
    Seen(*mut c_void),
    /// The operation has ended, and no status reports its success.
    Failed,
    Pending,
}

/// Hasher of handles, which are small integers or addresses.
#[derive(Default)]
struct HandleHasher(u64);

impl Hasher for HandleHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(u64::from(b)));
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

/// Converted operations by the handle of their request. All accesses are under the lock of
/// [`TABLE`], which is never held during a call of the MPI library.
#[derive(Default)]
struct RequestTable {
    live: HashMap<u64, Box<Operation>, BuildHasherDefault<HandleHasher>>,
    /// Operations whose handle the MPI library has given to another operation while they were in
    /// the table, by serial number. The call that has completed such an operation takes the
    /// operation out after the MPI library has returned. If the program completed the operation by
    /// a call that ddtc does not see, the operation stays here.
    displaced: HashMap<u64, Box<Operation>>,
    /// Requests that the program freed while they were active.
    freed: Vec<Freed>,
    /// Operations of freed requests that were left to the finalization of the MPI library.
    left: Vec<Operation>,
    /// Operations that a thread has taken out of the table to unpack or to start them.
    marks: Vec<Marked>,
    /// Last serial number that was given: the number of operations that were ever in the table.
    serials: u64,
}

/// Operation that a thread has taken out of the table to unpack or to start it.
struct Marked {
    handle: u64,
    serial: u64,
    thread: usize,
}

/// Right of a thread to unpack or start the operation with this serial number. While the value
/// lives, the operation is in `marks` of [`RequestTable`].
pub(crate) struct Mark(u64);

impl Drop for Mark {
    fn drop(&mut self) {
        if let Some(table) = table().as_mut() {
            table.marks.retain(|mark| mark.serial != self.0);
            table.count();
        }
    }
}

/// Number of operations in the table: those in `live`, `freed` and `marks` of [`RequestTable`],
/// without those in `displaced`. Written under the lock of [`TABLE`], read without the lock.
static LIVE: AtomicUsize = AtomicUsize::new(0);
/// Number of requests in the table that the program freed while they were active. Written under the
/// lock of [`TABLE`], read without the lock.
static FREED: AtomicUsize = AtomicUsize::new(0);
/// The table and its lock; `None` before the first converted operation of an epoch.
static TABLE: SpinLock<Option<RequestTable>> = SpinLock::new(None);

fn table() -> SpinGuard<Option<RequestTable>> {
    TABLE.lock()
}

/// Takes the lock of the table when no other thread has a mark for which `concerns` returns true.
fn table_without_mark(concerns: impl Fn(&Marked) -> bool) -> SpinGuard<Option<RequestTable>> {
    let me = me();
    loop {
        let table = table();
        let waits = |table: &RequestTable| table.marks.iter().any(|mark| mark.thread != me && concerns(mark));
        if !table.as_ref().is_some_and(waits) {
            return table;
        }
        // A thread that has a mark waits for no other thread, so this loop ends.
        drop(table);
        std::thread::yield_now();
    }
}

impl RequestTable {
    fn take(&mut self, handle: u64, serial: u64) -> Option<Box<Operation>> {
        match self.live.entry(handle) {
            Entry::Occupied(entry) if entry.get().serial == serial => Some(entry.remove()),
            _ => self.displaced.remove(&serial),
        }
    }

    /// Updates [`LIVE`] and [`FREED`] after a change of the table.
    fn count(&self) {
        LIVE.store(self.live.len() + self.freed.len() + self.marks.len(), Ordering::Release);
        FREED.store(self.freed.len(), Ordering::Release);
    }
}

/// Converted operations whose requests are passed to one call. Most calls have one of them.
pub(crate) type Operations = SmallVec<[Found; 2]>;

/// Returns true if the table has any request that is pending, persistent, or was freed while
/// active.
#[inline]
pub(crate) fn live() -> bool {
    LIVE.load(Ordering::Acquire) != 0
}

thread_local! {
    /// Number of calls of this thread that [`arrived`] counts.
    static ARRIVED: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of calls of this thread that were passed a request whose operation in the
/// table has nothing staged. [`crate::bindings`] makes requests of this kind, to find out whether
/// the calls of a Fortran binding reach ddtc's wrappers.
pub(crate) fn arrived() -> u64 {
    ARRIVED.try_with(Cell::get).unwrap_or(0)
}

/// Returns a number that identifies this thread: never 0, and different from that of every other
/// living thread. All threads whose thread-local storage is already destroyed share `usize::MAX`.
pub(crate) fn me() -> usize {
    ARRIVED.try_with(|arrived| std::ptr::from_ref(arrived).addr()).unwrap_or(usize::MAX)
}

/// Maximum time that a call waits for reports of other threads. A report does not block, but a
/// program may have left it by a jump, and then nothing shows that it has ended until that thread
/// calls MPI again.
const MAX_REPORT_TIME: Duration = Duration::from_secs(1);

/// Returns the operations in the table for the handles of a call. Leaves out operations that are not
/// persistent and that a call of another thread is completing or freeing, because their handles may
/// already belong to other requests.
///
/// If the call changes the requests, it holds the operations from now on, until they are released
/// ([`release_all`]) or finished. The function first waits until no other thread reports on them.
/// Later calls of this thread still find the operations, because the thread may leave this call by
/// an exception or a jump.
///
/// If the call reports on the requests, `held` is called with the index of each operation that a
/// call of another thread holds, unless the operation is inactive and is not being started. These
/// operations are left out. The call reports on the others until they are released.
pub(crate) fn find_all(
    handles: impl Iterator<Item = u64> + Clone,
    asks: Asks,
    mut held: impl FnMut(usize),
) -> Operations {
    let mut found = Operations::new();
    // In an inconsistent child the operations are the parent's, and a thread that the child does
    // not have may hold the lock.
    if is_inconsistent() {
        return found;
    }
    let (mut arrived, me) = (false, me());
    let is_marked = |table: &RequestTable, handle: u64| {
        table.marks.iter().any(|mark| mark.thread != me && mark.handle == handle)
    };
    let mut since = None;
    loop {
        let mut guard = table();
        let Some(table) = guard.as_mut() else { break };
        let (mut must_wait, mut is_reported) = (false, false);
        for (index, handle) in handles.clone().enumerate() {
            if is_marked(table, handle) {
                match asks {
                    Asks::Reports => held(index),
                    // A thread that has a mark waits for no other thread, so this wait ends.
                    Asks::Ends | Asks::Starts => must_wait = true,
                }
                continue;
            }
            let Some(operation) = table.live.get_mut(&handle) else { continue };
            let is_held = ![0, me].contains(&operation.held_by);
            match asks {
                Asks::Reports if is_held && (operation.active || operation.is_starting) => {
                    held(index);
                    continue;
                }
                Asks::Reports => operation.reporters.push(me),
                Asks::Ends | Asks::Starts if is_held && !operation.persistent => continue,
                Asks::Ends | Asks::Starts => {
                    (operation.held_by, operation.is_starting) = (me, asks == Asks::Starts);
                    is_reported |= operation.reporters.iter().any(|&reporter| reporter != me);
                }
            }
            found.push(Found::new(index, handle, operation));
            arrived |= operation.staged.is_empty();
        }
        must_wait |= is_reported && since.get_or_insert_with(Instant::now).elapsed() < MAX_REPORT_TIME;
        if !must_wait {
            break;
        }
        found.clear();
        arrived = false;
        drop(guard);
        std::thread::yield_now();
    }
    if arrived {
        let _ = ARRIVED.try_with(|arrived| arrived.set(arrived.get() + 1));
    }
    found
}

/// Releases operations that a call of the thread `asker` holds or reports on, because the call has
/// ended or was abandoned. Operations that are finished are not changed, and none is if `asker` is 0.
pub(crate) fn release_all(operations: &[Found], asker: usize) {
    if operations.is_empty() || asker == 0 || is_inconsistent() {
        return;
    }
    let mut table = table();
    let Some(table) = table.as_mut() else { return };
    for found in operations {
        let live = table.live.get_mut(&found.handle).filter(|operation| operation.serial == found.serial);
        if let Some(operation) = live.or_else(|| table.displaced.get_mut(&found.serial)) {
            operation.release(asker);
        }
    }
}

/// Puts an operation into the table under `handle`, for the first time or again.
pub(crate) fn put(handle: u64, mut operation: Box<Operation>) {
    let mut table = table();
    let table = table.get_or_insert_default();
    if operation.serial == 0 {
        table.serials += 1;
        operation.serial = table.serials;
    }
    if let Some(displaced) = table.live.insert(handle, operation) {
        // The MPI library may still write to the staging buffer of the displaced operation.
        table.displaced.insert(displaced.serial, displaced);
    }
    table.count();
}

/// Records that persistent operations were started with success.
pub(crate) fn are_started(operations: &[Found]) {
    if is_inconsistent() {
        return;
    }
    let mut table = table();
    let Some(table) = table.as_mut() else { return };
    for found in operations {
        let operation = table.live.get_mut(&found.handle);
        if let Some(operation) = operation.filter(|operation| operation.serial == found.serial) {
            operation.is_doubtful = false;
        }
    }
}

/// Takes an operation that has ended out of the table and unpacks the bytes that it has received. A
/// persistent operation is put back as inactive. An operation whose message is refused before its
/// request is completed ([`Completion::Seen`]) is put back as active. Does nothing for
/// [`Completion::Pending`], and for [`Completion::Seen`] if the operation unpacks nothing or is
/// inactive. Returns the error if the MPI library would have refused the message.
///
/// # Safety
/// The status in `end` must be that of the operation's completion. If `end` is
/// [`Completion::Failed`], the operation must have ended. The program's buffer must still belong to
/// the operation.
pub(crate) unsafe fn finish_operation(
    host: &'static Host,
    found: Found,
    end: Completion,
) -> Option<RefusedMessage> {
    // Whether a report is about a persistent operation that is active, only the table and, for a
    // receive, the status show: the request is reported as complete while it is inactive too.
    // SAFETY: for a receive, the status in `Completion::Seen` is one that the MPI library has
    // written, as the caller promises.
    let is_inactive = |at| unsafe { found.receives && host.abi.is_some_and(|abi| status::is_empty(abi, at)) };
    let (mut operation, mark) = match end {
        Completion::Pending => return None,
        Completion::Seen(at) if !found.unpacks || !found.active || found.persistent && is_inactive(at) => {
            release_all(&[found], me());
            return None;
        }
        // No other thread may use the request of an operation that is not persistent while a call
        // completes it, so such an operation needs no mark.
        Completion::Done(_) | Completion::Failed if !found.persistent => (found.take()?, None),
        Completion::Done(_) | Completion::Failed | Completion::Seen(_) => {
            let (operation, mark) = found.take_marked()?;
            (operation, Some(mark))
        }
    };
    let (mut refused, mut again) = (None, false);
    match end {
        Completion::Failed if operation.active => {
            // SAFETY: the operation has ended, as the caller promises, so the MPI library
            // no longer writes to the staging buffer. The program's buffer still belongs to the
            // operation, as the caller promises.
            unsafe { operation.staged.unpack_truncated() };
        }
        Completion::Done(at) | Completion::Seen(at) => {
            // SAFETY: `at` points to the status of the operation's completion, and the program's
            // buffer still belongs to the operation: the caller promises both.
            refused = unsafe { operation.unpack_completed(host, at) };
            if !operation.persistent {
                refused = refused.map(|refused| refused.of_request(host));
            }
            again = refused.is_some() && matches!(end, Completion::Seen(_));
        }
        Completion::Failed | Completion::Pending => {}
    }
    if operation.persistent || again {
        operation.active = again;
        operation.release(me());
        put(found.handle, operation);
    }
    drop(mark);
    refused
}

/// Returns true if a request is complete according to `MPI_Request_get_status` of the MPI library.
/// The request does not change. Must not be called for a pending receive: if the receive has
/// failed, MPICH and Intel MPI raise its error in `MPI_Request_get_status`, and Intel MPI calls the
/// error handler of another communicator.
///
/// # Safety
/// `handle` must be that of a request of the MPI library that is not freed.
pub(crate) unsafe fn complete(host: &Host, handle: HandleWord) -> bool {
    let mut own = Status::new();
    // SAFETY: the caller promises the handle; `own` is large enough for a status of any ABI.
    unsafe { answers(host, handle, (&raw mut own).cast()) }
}

/// Returns true if a request is complete according to `MPI_Request_get_status` of the MPI library,
/// and then writes the request's status to `status`. Like [`complete`], this function must not be
/// called for a pending receive.
///
/// # Safety
/// As [`complete`]. `status` must point to writable memory for a status.
unsafe fn answers(host: &Host, handle: HandleWord, status: *mut c_void) -> bool {
    let Some(get_status) = host.f.request_get_status else { return false };
    let mut flag = 0;
    // SAFETY: the caller promises a request that is not freed and memory for a status; `flag` is a
    // local integer.
    let code = unsafe { get_status(handle, &raw mut flag, status) };
    code == 0 && flag != 0
}

/// Returns true if an operation is known to have ended: the handle `now` of its request is null, or
/// `persistent` is true and the request is inactive. The error code of a call is not used. For a
/// persistent request that must not be passed to [`inactive`], the caller sets `persistent` to
/// false, and the operation counts as not ended unless the handle is null.
///
/// # Safety
/// `now` must be the null handle, or that of a request of the MPI library that is not freed.
pub(crate) unsafe fn has_ended(host: &Host, now: HandleWord, persistent: bool) -> bool {
    // SAFETY: if the handle is not null, the request is not freed, as the caller promises.
    now == host.request_null || persistent && unsafe { inactive(host, now) }
}

/// Returns true if a persistent request is inactive: `MPI_Request_get_status` of the MPI library
/// then reports it as complete, with an empty status.
///
/// # Safety
/// As [`complete`].
pub(crate) unsafe fn inactive(host: &Host, handle: HandleWord) -> bool {
    let mut status = Status::new();
    let at: *mut c_void = (&raw mut status).cast();
    // SAFETY: the caller promises the handle. `at` points to `status`, which is large enough for a
    // status of any ABI, and is read only after the MPI library has written it.
    unsafe { answers(host, handle, at) && host.abi.is_some_and(|abi| status::is_empty(abi, at)) }
}

/// Handles and serial numbers of persistent operations.
pub(crate) type Persistent = SmallVec<[(u64, u64); 2]>;

/// Returns the inactive persistent operations of a communicator.
pub(crate) fn inactive_of(comm: u64) -> Persistent {
    let table = table();
    let live = table.iter().flat_map(|table| &table.live);
    let of_comm = live.filter(|(_, operation)| operation.comm == comm && !operation.active);
    of_comm.map(|(&handle, operation)| (handle, operation.serial)).collect()
}

/// Forgets inactive persistent operations, because the communicator that they belong to was
/// disconnected. MPICH frees their requests then, so a new request may get their handle.
pub(crate) fn forget(operations: Persistent) {
    for (handle, serial) in operations {
        drop(take(handle, serial));
    }
}

/// Returns a bound that separates the operations that are in the table from later ones.
pub(crate) fn bound() -> Bound {
    Bound(table().as_ref().map_or(0, |table| table.serials))
}

/// Largest serial number of some operations.
pub(crate) struct Bound(u64);

impl Bound {
    /// Bound of all operations.
    pub(crate) const ALL: Bound = Bound(u64::MAX);
}

/// Forgets all operations up to a bound. Called after the MPI library was finalized for its last
/// user. From then on the handles of their requests have no meaning, and no call can complete them.
pub(crate) fn end_epoch(Bound(last): Bound) {
    let mut table = table();
    let Some(table) = table.as_mut() else { return };
    let old: Vec<_> = table.live.extract_if(|_, operation| operation.serial <= last).collect();
    let displaced: Vec<_> = table.displaced.extract_if(|serial, _| *serial <= last).collect();
    // The operations may still use their staging buffers, because a session whose opening ddtc has
    // not seen may go on. So the buffers are never freed.
    std::mem::forget((old, displaced));
    freed::forget(&mut table.freed, last);
    table.count();
}

/// Returns true if the class of an error code is `MPI_ERR_IN_STATUS`.
pub(crate) fn in_status(host: &Host, code: c_int) -> bool {
    let Some(abi) = host.abi.filter(|_| code != 0) else { return false };
    let mut class = code;
    if let Some(error_class) = host.f.error_class {
        // SAFETY: the MPI library has returned `code`, and `class` is a local integer.
        unsafe { error_class(code, &raw mut class) };
    }
    class == abi.err_in_status
}
