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
//! staged nothing. So calls of other threads do not find an operation while a call is completing
//! it, and the completing call itself finds the operation again by a serial number after the MPI
//! library has returned.
//!
//! While a thread unpacks an operation that another thread may be asking about, the operation is
//! out of the table, and the table has a [`Mark`] for it. Calls of other threads about its request
//! wait until the mark is gone, so that none of them reports the operation as complete before its
//! bytes are unpacked.
//!
//! No lock is held during a call of the MPI library.

use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{c_int, c_void};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ddtc::internal::process::{SpinGuard, SpinLock, is_inconsistent};
use smallvec::SmallVec;

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
    /// Number of times that the program has started the operation, if it is persistent.
    starts: u64,
    /// True while a call starts the operation. If the program leaves that call by a jump, the field
    /// stays true until the next start.
    starting: bool,
    /// Communicator of the operation; 0 if it is not known (`MPI_Imrecv`) or there is none.
    pub(crate) comm: u64,
    /// Unique serial number in the table; 0 before the operation is in the table.
    serial: u64,
    /// Thread ([`me`]) that is in a call which completes or frees the request; 0 if no thread is in
    /// such a call. During the call the MPI library may already have given the handle to another
    /// request.
    asked_by: usize,
    /// Thread ([`me`]) that is in a call which completes the request, if the operation is
    /// persistent; 0 if no thread is in such a call. Calls of other threads still find the
    /// operation.
    waited_by: usize,
}

/// Effect of an MPI call on the requests whose handles it is passed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// The call changes no request (`MPI_Request_get_status`).
    Nothing,
    /// The call completes requests (`MPI_Wait`). A persistent request keeps its handle.
    Completes,
    /// The call frees requests (`MPI_Request_free`).
    Frees,
}

impl Operation {
    fn new(staged: Staged, persistent: bool, exchange: bool) -> Box<Operation> {
        let mut operation = Box::new(Operation {
            staged,
            persistent,
            exchange,
            active: !persistent,
            is_doubtful: false,
            starts: 0,
            starting: false,
            comm: 0,
            serial: 0,
            asked_by: 0,
            waited_by: 0,
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
        self.starting = true;
        self.starts += 1;
    }

    /// Returns true if the operation is complete, according to a call that has reported its request
    /// as complete and that found the operation as `found`. The request of a persistent operation
    /// is reported as complete while it is inactive too. For a receive the caller has found out by
    /// the status that this is not so. For any other operation only the order of the calls shows
    /// it: no call may have been starting the operation.
    fn is_complete_for(&self, found: &Found) -> bool {
        let is_certain = found.receives || !self.starting && !found.starting;
        self.active && self.starts == found.starts && is_certain
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
    starts: u64,
    starting: bool,
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
        let Operation { persistent, active, serial, starts, starting, .. } = *operation;
        Found { index, handle, serial, starts, starting, persistent, active, receives, unpacks }
    }

    /// Takes the operation out of the table. Returns `None` if it was taken out before, by another
    /// thread or for an error handler. Returns `None` in an inconsistent child too (the child of a
    /// fork that may have left locks taken).
    pub(crate) fn take(self) -> Option<Box<Operation>> {
        take(self.handle, self.serial)
    }

    /// Does what [`Found::take`] does if `may` returns true for the operation. Until the returned
    /// mark is dropped, calls of other threads about the request wait.
    pub(crate) fn take_marked(self, may: impl FnOnce(&Operation) -> bool) -> Option<(Box<Operation>, Mark)> {
        if is_inconsistent() {
            return None;
        }
        let mut table = table_without_mark(|mark| mark.serial == self.serial);
        let table = table.as_mut()?;
        table.get(self.handle, self.serial).filter(|operation| may(operation))?;
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

/// Request that the program freed while it was active. The MPI library still has the request.
struct Freed {
    handle: u64,
    operation: Box<Operation>,
    /// True while a thread calls the MPI library to find out whether the request is complete. If
    /// the program leaves that call by an exception or a jump, the flag stays true, and no thread
    /// makes such a call for the request again.
    asked: bool,
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
    fn get(&self, handle: u64, serial: u64) -> Option<&Operation> {
        let live = self.live.get(&handle).filter(|operation| operation.serial == serial);
        live.or_else(|| self.displaced.get(&serial)).map(Box::as_ref)
    }

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

/// Returns the operations in the table for the handles of a call. Leaves out operations that a call
/// of another thread is completing or freeing, because their handles may already belong to other
/// requests.
///
/// An operation that this call frees, or completes if the operation is not persistent, is hidden
/// from calls of other threads from now on, until it is released ([`release_all`]) or put back
/// ([`put`]). Later calls of this thread still find it, because the thread may leave this call by
/// an exception or a jump.
pub(crate) fn find_all(handles: impl Iterator<Item = u64> + Clone, asks: Asks) -> Operations {
    let mut found = Operations::new();
    // In an inconsistent child the operations are the parent's, and a thread that the child does
    // not have may hold the lock.
    if is_inconsistent() {
        return found;
    }
    let (mut arrived, me) = (false, me());
    let mut table = table_without_mark(|mark| handles.clone().any(|handle| handle == mark.handle));
    if let Some(table) = table.as_mut() {
        for (index, handle) in handles.enumerate() {
            let operation = table.live.get_mut(&handle);
            if let Some(operation) = operation.filter(|operation| [0, me].contains(&operation.asked_by)) {
                found.push(Found::new(index, handle, operation));
                match asks {
                    Asks::Nothing => {}
                    Asks::Completes if operation.persistent => operation.waited_by = me,
                    Asks::Completes | Asks::Frees => operation.asked_by = me,
                }
                arrived |= operation.staged.is_empty();
            }
        }
    }
    drop(table);
    if arrived {
        let _ = ARRIVED.try_with(|arrived| arrived.set(arrived.get() + 1));
    }
    found
}

/// Makes operations visible to calls of other threads again. A call of the thread `asker` was to
/// complete or free these operations, and they are still pending.
pub(crate) fn release_all(operations: &[Found], asker: usize) {
    if operations.is_empty() || asker == 0 || is_inconsistent() {
        return;
    }
    let mut table = table();
    let Some(table) = table.as_mut() else { return };
    for found in operations {
        let live = table.live.get_mut(&found.handle).filter(|operation| operation.serial == found.serial);
        if let Some(operation) = live.or_else(|| table.displaced.get_mut(&found.serial)) {
            for thread in [&mut operation.asked_by, &mut operation.waited_by] {
                *thread = if *thread == asker { 0 } else { *thread };
            }
        }
    }
}

/// Puts an operation into the table under `handle`, for the first time or again.
pub(crate) fn put(handle: u64, mut operation: Box<Operation>) {
    operation.asked_by = 0;
    if operation.waited_by == me() {
        operation.waited_by = 0;
    }
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

/// Records that the call has returned that was to start persistent operations. `is_right` is true
/// if it is certain that it has started them.
pub(crate) fn end_start(handles: impl Iterator<Item = u64>, is_right: bool) {
    if is_inconsistent() {
        return;
    }
    let mut table = table();
    let Some(table) = table.as_mut() else { return };
    for handle in handles {
        if let Some(operation) = table.live.get_mut(&handle) {
            operation.starting = false;
            operation.is_doubtful &= !is_right;
        }
    }
}

/// Takes an operation that has ended out of the table and unpacks the bytes that it has received. A
/// persistent operation is put back as inactive. An operation whose message is refused before its
/// request is completed ([`Completion::Seen`]) is put back as active. Does nothing for
/// [`Completion::Pending`], and for [`Completion::Seen`] unless the operation unpacks bytes and is
/// certain to be complete. Returns the error if the MPI library would have refused the message.
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
    let mut own = Status::new();
    let (mut operation, mark, end) = match end {
        Completion::Pending => return None,
        // No other thread may use the request of an operation that is not persistent while a call
        // completes it, so such an operation needs no mark.
        Completion::Done(_) | Completion::Failed if !found.persistent => (found.take()?, None, end),
        Completion::Done(_) | Completion::Failed => {
            let (operation, mark) = found.take_marked(|_| true)?;
            (operation, Some(mark), end)
        }
        Completion::Seen(at) => {
            // SAFETY: `at` is a status of the call, as the caller promises.
            let (operation, mark, at) = unsafe { take_reported(host, found, at, &mut own)? };
            (operation, Some(mark), Completion::Seen(at))
        }
    };
    let (mut refused, seen) = (None, matches!(end, Completion::Seen(_)));
    let mut again = false;
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
            // Open MPI reports a request as complete, with an empty message, as soon as another
            // thread waits for it. So the call of that thread unpacks the message again.
            let is_waited_for = ![0, me()].contains(&operation.waited_by);
            again = seen && (refused.is_some() || is_waited_for);
        }
        Completion::Failed | Completion::Pending => {}
    }
    if operation.persistent || again {
        operation.active = again;
        put(found.handle, operation);
    }
    drop(mark);
    refused
}

/// Takes out an operation that a call has reported as complete, with the status `at`, but has not
/// completed. Returns the operation, its mark, and the status with which it is complete, which is
/// `at` or `own`. Returns `None` if the operation unpacks nothing, if it is not certain that it is
/// complete, or if its bytes are unpacked already.
///
/// # Safety
/// If the operation receives a message, `at` must point to the status that the call has written.
/// The request must not be freed.
unsafe fn take_reported(
    host: &Host,
    mut found: Found,
    mut at: *mut c_void,
    own: &mut Status,
) -> Option<(Box<Operation>, Mark, *mut c_void)> {
    let abi = host.abi.filter(|_| found.unpacks)?;
    loop {
        // The status of an inactive request is empty.
        // SAFETY: for a receive, `at` points to a status that the MPI library has written.
        if found.persistent && found.receives && unsafe { status::is_empty(abi, at) } {
            return None;
        }
        let mut starts = None;
        let taken = found.take_marked(|operation| {
            starts = Some(operation.starts);
            operation.is_complete_for(&found)
        });
        if let Some((operation, mark)) = taken {
            return Some((operation, mark, at));
        }
        found.starts = starts.filter(|&starts| found.receives && starts != found.starts)?;
        // Another thread has started the receive during the call. The status may be that of the
        // message before this start, or of the one after it. So the MPI library is asked again.
        at = (&raw mut *own).cast();
        // SAFETY: the request is not freed, as the caller promises, and `own` is large enough for a
        // status of any ABI.
        if !unsafe { answers(host, found.handle, at) } {
            return None;
        }
    }
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

/// Records that the program has freed an active request. ddtc frees the request in the MPI library
/// only after the request has completed ([`drain`]), or before finalization ([`finish`]).
pub(crate) fn free(found: Found) {
    let Some(operation) = found.take() else { return };
    let mut table = table();
    let table = table.get_or_insert_default();
    table.freed.push(Freed { handle: found.handle, operation, asked: false });
    table.count();
}

/// Looks for requests that the program freed while they were active and that have completed since.
/// Unpacks the received bytes of these requests, and frees the requests in the MPI library. Returns
/// the number of freed requests that this call has found to be pending. Requests that another
/// thread is testing meanwhile are not counted. The MPI library may raise the error of a freed
/// request during this call, so the program's error handler may run.
#[inline]
pub(crate) fn drain(host: &'static Host) -> usize {
    if FREED.load(Ordering::Acquire) == 0 { 0 } else { drain_some(host) }
}

/// Searches `RequestTable::freed`, from index `from` on, for the first request whose `asked` is
/// false, so that no other thread calls the MPI library about this request. Sets `asked`, and
/// returns the index, the handle and the serial number.
fn next_freed(from: usize) -> Option<(usize, u64, u64)> {
    let mut table = table();
    let freed = &mut table.as_mut()?.freed;
    let (at, next) = freed.iter_mut().enumerate().skip(from).find(|(_, freed)| !freed.asked)?;
    next.asked = true;
    Some((at, next.handle, next.operation.serial))
}

/// Records whether the freed request with this serial number is pending, according to the MPI
/// library. If the request is pending, another thread may call the MPI library about it again.
/// Otherwise the request is taken out of the table, and its operation is returned.
fn answered(serial: u64, is_pending: bool) -> Option<Box<Operation>> {
    let mut table = table();
    let table = table.as_mut()?;
    let at = table.freed.iter().position(|freed| freed.operation.serial == serial)?;
    if is_pending {
        table.freed[at].asked = false;
        return None;
    }
    let freed = table.freed.swap_remove(at);
    table.count();
    Some(freed.operation)
}

/// Does the work of [`drain`] if there are freed requests.
#[cold]
fn drain_some(host: &'static Host) -> usize {
    let (Some(_), Some(test)) = (host.abi, host.f.test) else {
        // ddtc converts no calls of this MPI library, so the freed requests are those of another
        // MPI library in the process.
        return 0;
    };
    let mut own = Status::new();
    let at: *mut c_void = (&raw mut own).cast();
    let (mut pending, mut from) = (0, 0);
    while let Some((place, handle, serial)) = next_freed(from) {
        let (mut word, mut flag): (HandleWord, c_int) = (handle, 0);
        // SAFETY: the program has freed this request by `MPI_Request_free`, which ddtc did not pass
        // on, so the MPI library still has the request. `word` has room for a handle of any ABI,
        // `at` points to memory for a status of any ABI.
        let code = unsafe { test((&raw mut word).cast(), &raw mut flag, at) };
        let now = word & host.mask;
        let is_pending = code == 0 && flag == 0;
        let Some(operation) = answered(serial, is_pending) else {
            (pending, from) = (pending + 1, place + 1);
            continue;
        };
        from = place;
        if code == 0 {
            // If ddtc refuses the message, no call can return the error to the program, because the
            // program has given the request up.
            // SAFETY: `at` points to the status with which `test` has completed the request. The
            // program's buffer belongs to the operation until the operation has completed.
            let _ = unsafe { operation.unpack_completed(host, at) };
        // SAFETY: `now` is the handle as `test` has left it, so it is null or the handle of a
        // request that is not freed, and no other thread frees the request.
        } else if unsafe { has_ended(host, now, operation.persistent) } {
            // SAFETY: `test` has ended the operation with an error, so the MPI library no longer
            // writes to the staging buffer. The program's buffer belongs to the operation until
            // the operation has completed.
            unsafe { operation.staged.unpack_truncated() };
        } else {
            // The operation goes on after the error. Testing it again would raise the same error
            // again, and the program has given the request up, so no thread tests it any more. The
            // MPI library keeps the request: Open MPI 5.0.11 ends the job if the operation of a
            // freed request completes after such an error.
            operation.staged.retire();
            continue;
        }
        if now != host.request_null {
            // SAFETY: `test` has left the handle valid. The program has given the request up, and
            // `answered` has taken its operation out of the table, so nobody else uses the handle.
            unsafe { release(host, handle) };
        }
    }
    pending
}

/// Frees a request in the MPI library by its `MPI_Request_free`.
///
/// # Safety
/// The handle must be that of a request of the MPI library that is not freed, and nobody else may
/// use the handle any more.
unsafe fn release(host: &Host, handle: u64) {
    let mut handle: HandleWord = handle;
    if let Some(request_free) = host.f.request_free {
        // SAFETY: the caller promises the handle; a `HandleWord` has room for a handle of any ABI.
        unsafe { request_free((&raw mut handle).cast()) };
    }
}

/// Completes the requests of a communicator that the program freed while they were active. Called
/// before the program disconnects the communicator: the MPI library would wait for the requests,
/// which are complete for it only after [`drain`] has freed them.
///
/// A request whose communicator is not known is one of `MPI_Imrecv`. It is waited for too, because
/// its message is on its way, so that it completes whatever this process does next.
pub(crate) fn finish_freed(host: &'static Host, comm: u64) {
    let is_left = || {
        let of_comm = |freed: &Freed| [0, comm].contains(&freed.operation.comm);
        table().as_ref().is_some_and(|table| table.freed.iter().any(of_comm))
    };
    while is_left() {
        drain(host);
    }
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

/// Maximum time that finalization waits for requests that the program freed while they were active.
/// The wait is limited because their messages may never come. The MPI library's own finalization
/// may return all the same.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(2);

/// Completes the requests that the program freed while they were active. Called before the MPI
/// library is finalized. After [`MAX_DRAIN_TIME`] the requests that are still pending are left to
/// the MPI library.
pub(crate) fn finish(host: &'static Host) {
    if !live() {
        return;
    }
    let start = Instant::now();
    while drain(host) > 0 {
        if start.elapsed() > MAX_DRAIN_TIME {
            leave(host);
        }
    }
}

/// Frees the requests that have not completed in the MPI library, as the program wanted, and keeps
/// their operations. The MPI library still receives their messages, as far as it does so without
/// ddtc, and [`unpack_left`] unpacks them after the finalization. The receives are not cancelled,
/// because their senders would then wait for ever. Requests that another thread is testing are left
/// as they are.
#[cold]
fn leave(host: &'static Host) {
    while let Some((_, handle, serial)) = next_freed(0) {
        let Some(operation) = answered(serial, false) else { continue };
        table().get_or_insert_default().left.push(*operation);
        // SAFETY: the program has freed the request, and ddtc has not freed it in the MPI library,
        // so the handle is valid. `answered` has taken the request out of `RequestTable::freed`, so
        // nobody else uses the handle.
        unsafe { release(host, handle) };
    }
}

/// Unpacks the messages of requests that the program freed and that have come completely while the
/// MPI library was finalized. Called after that.
pub(crate) fn unpack_left() {
    let left = table().as_mut().map(|table| std::mem::take(&mut table.left));
    for operation in left.into_iter().flatten() {
        // SAFETY: the MPI library was finalized, so the operation has ended or may have failed. The
        // program's buffer belongs to the operation until the finalization returns, because the
        // program cannot find out earlier that the message has come.
        unsafe { operation.staged.unpack_truncated() };
        // A session whose opening ddtc has not seen may go on, and the operation may still use its
        // staging buffers. So the buffers are never freed.
        std::mem::forget(operation);
    }
}

/// Forgets all operations. Called after the MPI library was finalized for its last user. From then
/// on the handles of requests have no meaning, and no call can complete the remaining operations.
pub(crate) fn end_epoch() {
    if let Some(table) = table().take() {
        RequestTable::default().count();
        // A session whose opening ddtc has not seen may go on, and its operations may still use
        // their staging buffers. So the buffers are never freed.
        std::mem::forget(table);
    }
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
