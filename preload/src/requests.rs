//! Requests of converted messages that the host has not completed yet.
//!
//! A handle identifies a request only while the request is pending: MPI libraries give all small
//! sends one handle, and they use the value of a freed handle again at once. So the table has pending
//! operations only, by handle. An operation stays in the table while the MPI library is called about
//! it, because that call may never return (see [`crate::calls`]). The library may complete the request
//! in that call and give its handle to a request of another thread, for which nothing need be staged.
//! So no call of another thread finds an operation that a call is completing, and after the call has
//! returned, it finds its operation by a serial number. Persistent operations stay until their requests are freed.
//! No lock is held across a call of the MPI library.

use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{c_int, c_void};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ddtc::process::{Latch, Latched, is_inconsistent};
use smallvec::SmallVec;

use crate::host::{HandleWord, Host};
use crate::partial_element::RefusedMessage;
use crate::staged::Staged;
use crate::status::{self, Status};

/// A converted operation.
pub(crate) struct Operation {
    pub(crate) staged: Staged,
    pub(crate) persistent: bool,
    /// A send and a receive under one request, of which either may be converted.
    exchange: bool,
    /// Started and not completed; always, unless it is persistent.
    pub(crate) active: bool,
    /// Number of the operation in the table, unique; 0 before the operation is in the table.
    serial: u64,
    /// Thread whose call completes or frees the request ([`me`]), so that its handle may already be
    /// another request's; 0 if none does.
    asked_by: usize,
}

/// Effect of a call on its requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// It leaves them as they are.
    Nothing,
    /// It completes them. The handle of a persistent request stays its own.
    Completes,
    /// It frees them.
    Frees,
}

impl Operation {
    fn new(staged: Staged, persistent: bool, exchange: bool) -> Box<Operation> {
        let mut operation =
            Box::new(Operation { staged, persistent, exchange, active: !persistent, serial: 0, asked_by: 0 });
        operation.staged.forget_handles();
        operation
    }

    pub(crate) fn once(staged: Staged) -> Box<Operation> {
        Operation::new(staged, false, false)
    }

    pub(crate) fn persistent(staged: Staged) -> Box<Operation> {
        Operation::new(staged, true, false)
    }

    /// Started by one call, a send and a receive from a process.
    pub(crate) fn exchange(staged: Staged) -> Box<Operation> {
        Operation::new(staged, false, true)
    }

    /// Says whether its completion needs a status.
    pub(crate) fn receives(&self) -> bool {
        self.staged.receives()
    }

    /// Says whether anything follows from its success.
    pub(crate) fn unpacks(&self) -> bool {
        self.staged.unpacks()
    }

    /// After its success: unpacks what came.
    ///
    /// # Safety
    /// The status must be that of its completion; the program's buffer must still belong to it.
    unsafe fn unpack_completed(&self, host: &Host, at: *mut c_void) -> Option<RefusedMessage> {
        // A collective call has nothing in its status but an error, and is never cancelled.
        // SAFETY: the status of a completed receive, as the caller promises.
        let cancelled = || self.receives() && unsafe { status::cancelled(host, at) };
        if !self.active || cancelled() {
            return None;
        }
        // SAFETY: as the caller promises.
        unsafe { self.staged.unpack(at) }
    }

    /// Returns true if the MPI library is to be asked, right after the start, whether the operation is
    /// complete already. MPI libraries give all complete sends and collective calls one handle, so a
    /// complete one cannot be in the table. A receive or an exchange has a handle of its own until
    /// the program completes it.
    pub(crate) fn may_be_done_at_once(&self) -> bool {
        !(self.persistent || self.exchange || self.receives())
    }
}

/// Copy of what a call must know of an operation in the table. Owns nothing.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    /// Index of the operation's request among the handles of the call.
    pub(crate) index: usize,
    pub(crate) handle: u64,
    serial: u64,
    pub(crate) persistent: bool,
    pub(crate) active: bool,
    /// As [`Operation::receives`].
    pub(crate) receives: bool,
    /// As [`Operation::unpacks`].
    pub(crate) unpacks: bool,
}

impl Found {
    fn new(index: usize, handle: u64, operation: &Operation) -> Found {
        let (receives, unpacks) = (operation.receives(), operation.unpacks());
        let Operation { persistent, active, serial, .. } = *operation;
        Found { index, handle, serial, persistent, active, receives, unpacks }
    }

    /// Takes the operation out of the table. Returns none if the operation was taken out before, by
    /// another thread or for an error handler, and in an inconsistent child.
    pub(crate) fn take(self) -> Option<Box<Operation>> {
        if is_inconsistent() {
            return None;
        }
        let mut table = table();
        let table = table.as_mut()?;
        let taken = match table.live.entry(self.handle) {
            Entry::Occupied(entry) if entry.get().serial == self.serial => Some(entry.remove()),
            _ => table.displaced.remove(&self.serial),
        };
        table.count();
        taken
    }
}

/// How an operation came out of a completion call.
pub(crate) enum Completion {
    /// Successfully, with this status.
    Done(*mut c_void),
    /// An operation whose end the program was told without completing the request: a message that is refused is refused again then.
    Seen(*mut c_void),
    Failed,
    Pending,
}

/// Hashes handles, which are small integers or addresses.
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

/// Converted operations by the handle of their request. Reached only under its lock, and never while the host is called.
#[derive(Default)]
struct RequestTable {
    live: HashMap<u64, Box<Operation>, BuildHasherDefault<HandleHasher>>,
    /// Operations whose handle the MPI library has given to another operation, by serial number. The
    /// call that has completed such an operation takes it out when it returns. If the program
    /// completed the operation by a call that ddtc does not see, it stays.
    displaced: HashMap<u64, Box<Operation>>,
    /// Requests that the program freed while they were active.
    freed: Vec<Freed>,
    /// Operations that were ever in the table.
    serials: u64,
}

/// A request that the program freed while it was active.
struct Freed {
    handle: u64,
    operation: Box<Operation>,
    /// A thread asks the MPI library about the request. If that call is abandoned, it is never asked
    /// again.
    asked: bool,
}

/// Requests in the table, and those of them that the program freed: written under its lock, read without it.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static FREED: AtomicUsize = AtomicUsize::new(0);
static TABLE: Latch<Option<RequestTable>> = Latch::new(None);

fn table() -> Latched<Option<RequestTable>> {
    TABLE.lock()
}

impl RequestTable {
    /// Says how many are here, after a change.
    fn count(&self) {
        LIVE.store(self.live.len() + self.freed.len(), Ordering::Release);
        FREED.store(self.freed.len(), Ordering::Release);
    }
}

/// Operations of one call. Most calls have one.
pub(crate) type Operations = SmallVec<[Found; 2]>;

/// Says whether any converted request is pending or persistent.
#[inline]
pub(crate) fn live() -> bool {
    LIVE.load(Ordering::Acquire) != 0
}

thread_local! {
    static ARRIVED: Cell<u64> = const { Cell::new(0) };
}

/// Returns how often a call of this thread came with a request that nothing is staged for, as bindings are tried with.
pub(crate) fn arrived() -> u64 {
    ARRIVED.try_with(Cell::get).unwrap_or(0)
}

/// Returns a number, not 0, that no other thread has while this one lives. All threads whose
/// thread-local storage is already destroyed share `usize::MAX`.
pub(crate) fn me() -> usize {
    ARRIVED.try_with(|arrived| std::ptr::from_ref(arrived).addr()).unwrap_or(usize::MAX)
}

/// Finds the operations of many handles, except those that a call of another thread is completing
/// or freeing: their handles may already be those of other requests. From now on calls of other
/// threads do not find what this call frees, or completes if it is not persistent, until it is
/// released ([`release_all`]) or put back. Calls of this thread find it, because the thread may have
/// left this call by an exception or a jump.
pub(crate) fn find_all(handles: impl Iterator<Item = u64>, asks: Asks) -> Operations {
    let mut found = Operations::new();
    // The operations belong to the parent of an inconsistent child, and the lock may be taken.
    if is_inconsistent() {
        return found;
    }
    let (mut arrived, me) = (false, me());
    if let Some(table) = table().as_mut() {
        for (index, handle) in handles.enumerate() {
            let operation = table.live.get_mut(&handle);
            if let Some(operation) = operation.filter(|operation| [0, me].contains(&operation.asked_by)) {
                found.push(Found::new(index, handle, operation));
                if asks == Asks::Frees || asks == Asks::Completes && !operation.persistent {
                    operation.asked_by = me;
                }
                arrived |= operation.staged.is_empty();
            }
        }
    }
    if arrived {
        let _ = ARRIVED.try_with(|arrived| arrived.set(arrived.get() + 1));
    }
    found
}

/// Lets calls of other threads find operations that a call of the thread `asker` was to complete and that are pending.
pub(crate) fn release_all(operations: &[Found], asker: usize) {
    if operations.is_empty() || asker == 0 || is_inconsistent() {
        return;
    }
    let mut table = table();
    let Some(table) = table.as_mut() else { return };
    for found in operations {
        let live = table.live.get_mut(&found.handle).filter(|operation| operation.serial == found.serial);
        if let Some(operation) = live.or_else(|| table.displaced.get_mut(&found.serial))
            && operation.asked_by == asker
        {
            operation.asked_by = 0;
        }
    }
}

/// Puts an operation in, or back.
pub(crate) fn put(handle: u64, mut operation: Box<Operation>) {
    operation.asked_by = 0;
    let mut table = table();
    let table = table.get_or_insert_default();
    if operation.serial == 0 {
        table.serials += 1;
        operation.serial = table.serials;
    }
    if let Some(displaced) = table.live.insert(handle, operation) {
        // The host may still write there.
        table.displaced.insert(displaced.serial, displaced);
    }
    table.count();
}

/// Draws the consequences of how an operation came out; returns the error if the host would have refused its message.
///
/// # Safety
/// A status must be that of the operation's completion. [`Completion::Failed`] may be said only of
/// an operation that has ended. The program's buffer must still belong to the operation.
pub(crate) unsafe fn settle(host: &'static Host, found: Found, end: Completion) -> Option<RefusedMessage> {
    if matches!(end, Completion::Pending) {
        return None;
    }
    let mut operation = found.take()?;
    let (mut refused, seen) = (None, matches!(end, Completion::Seen(_)));
    let mut again = false;
    match end {
        Completion::Failed if operation.active => {
            // SAFETY: the operation has ended, as the caller promises, so the host no longer writes
            // to the staging buffer. The program's buffer belongs to the receive until the call
            // returns.
            unsafe { operation.staged.unpack_truncated() };
        }
        Completion::Done(at) | Completion::Seen(at) => {
            // SAFETY: the status of its completion, and the program's buffer, as the caller
            // promises.
            refused = unsafe { operation.unpack_completed(host, at) };
            if !operation.persistent {
                refused = refused.map(|refused| refused.of_request(host));
            }
            again = seen && refused.is_some();
        }
        Completion::Failed | Completion::Pending => {}
    }
    if operation.persistent || again {
        operation.active = again;
        put(found.handle, operation);
    }
    refused
}

/// Says whether the host calls a request complete, asked without completing it. Not asked about pending receives: on MPICH and Intel
/// the answer raises the error of a receive that failed, in Intel on another communicator's handler.
///
/// # Safety
/// The request must be one of the host's that lives.
pub(crate) unsafe fn complete(host: &Host, handle: HandleWord) -> bool {
    let mut own = Status::new();
    // SAFETY: as the caller promises; a status to write to.
    unsafe { answers(host, handle, (&raw mut own).cast()) }
}

/// As [`complete`], with the status.
///
/// # Safety
/// As [`complete`]; `status` must be one to write to.
unsafe fn answers(host: &Host, handle: HandleWord, status: *mut c_void) -> bool {
    let Some(get_status) = host.f.request_get_status else { return false };
    let mut flag = 0;
    // SAFETY: a live request, a flag and a status to write to.
    let code = unsafe { get_status(handle, &raw mut flag, status) };
    code == 0 && flag != 0
}

/// Says whether a persistent request is inactive: complete, with an empty status.
///
/// # Safety
/// As [`complete`].
pub(crate) unsafe fn inactive(host: &Host, handle: HandleWord) -> bool {
    let mut status = Status::new();
    let at: *mut c_void = (&raw mut status).cast();
    // SAFETY: as the caller promises; a status to write to.
    unsafe { answers(host, handle, at) && host.abi.is_some_and(|abi| status::is_empty(abi, at)) }
}

/// The program freed an active request: the host keeps it until it has completed.
pub(crate) fn free(found: Found) {
    let Some(operation) = found.take() else { return };
    let mut table = table();
    let table = table.get_or_insert_default();
    table.freed.push(Freed { handle: found.handle, operation, asked: false });
    table.count();
}

/// Finishes freed requests that have completed. Returns how many have not.
#[inline]
pub(crate) fn drain(host: &'static Host) -> usize {
    if FREED.load(Ordering::Acquire) == 0 { 0 } else { drain_some(host) }
}

/// Marks the freed request at or after a place as asked about, and returns its place, handle and
/// serial number.
fn next_freed(from: usize) -> Option<(usize, u64, u64)> {
    let mut table = table();
    let freed = &mut table.as_mut()?.freed;
    let (at, next) = freed.iter_mut().enumerate().skip(from).find(|(_, freed)| !freed.asked)?;
    next.asked = true;
    Some((at, next.handle, next.operation.serial))
}

/// Takes out the freed request of a serial number, or lets others ask about it again.
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

#[cold]
fn drain_some(host: &'static Host) -> usize {
    let (Some(_), Some(test)) = (host.abi, host.f.test) else {
        // Those that were freed are another library's.
        return 0;
    };
    let mut own = Status::new();
    let at: *mut c_void = (&raw mut own).cast();
    let (mut pending, mut from) = (0, 0);
    while let Some((place, handle, serial)) = next_freed(from) {
        let (mut word, mut flag): (HandleWord, c_int) = (handle, 0);
        // SAFETY: a request that the program gave up and the host still has; a word has room for any handle.
        let code = unsafe { test((&raw mut word).cast(), &raw mut flag, at) };
        let now = word & host.mask;
        let is_pending = code == 0 && flag == 0;
        let Some(operation) = answered(serial, is_pending) else {
            (pending, from) = (pending + 1, place + 1);
            continue;
        };
        from = place;
        if code == 0 {
            // SAFETY: the status of a request that has completed; the program gave it up, so there
            // is nobody to tell of a message that is refused.
            let _ = unsafe { operation.unpack_completed(host, at) };
        } else if now == host.request_null || operation.persistent {
            // SAFETY: the host has ended the request, or the persistent operation of it, with this error, so it no
            // longer writes to the staging buffer. The program's buffer still belongs to the receive, which was not completed.
            unsafe { operation.staged.unpack_truncated() };
        } else {
            // The operation goes on. A further question would raise its error again, and the
            // program has given it up.
            operation.staged.retire();
        }
        if now != host.request_null {
            // SAFETY: the request lives, and nobody else has it.
            unsafe { release(host, handle) };
        }
    }
    pending
}

/// # Safety
/// The request must be one of the host's that lives and nobody else has.
unsafe fn release(host: &Host, handle: u64) {
    let mut handle: HandleWord = handle;
    if let Some(request_free) = host.f.request_free {
        // SAFETY: as the caller promises; a word has room for any handle.
        unsafe { request_free((&raw mut handle).cast()) };
    }
}

/// How long finalization waits for freed requests whose messages may never come.
const PATIENCE: Duration = Duration::from_secs(2);

/// Before finalization: completes what the program freed.
pub(crate) fn finish(host: &'static Host) {
    if !live() {
        return;
    }
    let start = Instant::now();
    while drain(host) > 0 {
        if start.elapsed() > PATIENCE {
            give_up(host);
        }
    }
}

/// Gives up the freed requests that have not completed.
#[cold]
fn give_up(host: &'static Host) {
    while let Some((_, handle, serial)) = next_freed(0) {
        let Some(operation) = answered(serial, false) else { continue };
        let may_cancel = operation.receives() && !operation.exchange;
        // The host may still use the buffer.
        std::mem::forget(operation);
        let mut word: HandleWord = handle;
        // SAFETY: a request of the host that nobody else has; a word has room for any handle.
        unsafe {
            // What cancelling an exchange would do, nobody says.
            if let Some(cancel) = host.f.cancel.filter(|_| may_cancel) {
                cancel((&raw mut word).cast());
            }
            release(host, handle);
        }
    }
}

/// After the world's finalization: handles mean nothing, and what was never completed is nobody's.
pub(crate) fn end_epoch() {
    if let Some(table) = table().take() {
        RequestTable::default().count();
        // Another session may still use the buffers.
        std::mem::forget(table);
    }
}

/// Says whether a code is `MPI_ERR_IN_STATUS`.
pub(crate) fn in_status(host: &Host, code: c_int) -> bool {
    let Some(abi) = host.abi.filter(|_| code != 0) else { return false };
    let mut class = code;
    if let Some(error_class) = host.f.error_class {
        // SAFETY: a code that the host gave, and a number to write to.
        unsafe { error_class(code, &raw mut class) };
    }
    class == abi.err_in_status
}
