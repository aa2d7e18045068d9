//! Requests of converted messages that the host has not completed yet.
//!
//! A handle says little: hosts give all small sends one handle, and freed values come back at once. So only requests that the host
//! calls pending are here, each under a value that is its own while it is pending; an entry is taken out before the host is
//! asked to complete it and put back if it is still pending. Entries of persistent requests stay until these are freed. No lock is
//! held across a call of the host.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ddtc::process::{Latch, Latched, is_inconsistent};
use smallvec::SmallVec;

use crate::guard::guard;
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
}

impl Operation {
    fn new(staged: Staged, persistent: bool, exchange: bool) -> Box<Operation> {
        let mut operation = Box::new(Operation { staged, persistent, exchange, active: !persistent });
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
    /// Requests that the program freed while they were active.
    freed: Vec<(u64, Box<Operation>)>,
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

/// Operations that a call has taken out of the table: which of its handles, and the handle. Most calls have one.
pub(crate) type Taken = SmallVec<[(usize, u64, Box<Operation>); 2]>;

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

/// Takes out the operations of many handles.
pub(crate) fn take_all(handles: impl Iterator<Item = u64>) -> Taken {
    let mut taken = Taken::new();
    // Those of an inconsistent child are its parent's, and the table may be locked for good.
    if is_inconsistent() {
        return taken;
    }
    if let Some(table) = table().as_mut() {
        for (i, handle) in handles.enumerate() {
            if let Some(operation) = table.live.remove(&handle) {
                taken.push((i, handle, operation));
            }
        }
        table.count();
    }
    if taken.iter().any(|(_, _, operation)| operation.staged.is_empty()) {
        let _ = ARRIVED.try_with(|arrived| arrived.set(arrived.get() + 1));
    }
    taken
}

/// Puts an operation in, or back.
pub(crate) fn put(handle: u64, operation: Box<Operation>) {
    let mut table = table();
    let table = table.get_or_insert_default();
    // A stale owner of the value, which only a program that completes requests past this library leaves behind.
    let stale = table.live.insert(handle, operation);
    table.count();
    // The host may still write there.
    std::mem::forget(stale);
}

/// Draws the consequences of how an operation came out; returns the error if the host would have refused its message.
///
/// # Safety
/// The operation must be that of the handle, and a status that of its completion.
pub(crate) unsafe fn settle(
    host: &'static Host,
    handle: u64,
    mut operation: Box<Operation>,
    end: Completion,
) -> Option<RefusedMessage> {
    let (mut refused, seen) = (None, matches!(end, Completion::Seen(_)));
    if matches!(end, Completion::Failed) && operation.active {
        // SAFETY: the host is done with it; the program's buffer belongs to the receive until this call returns.
        unsafe { operation.staged.unpack_truncated() };
    }
    match end {
        Completion::Pending => put(handle, operation),
        Completion::Failed if !operation.persistent => {}
        Completion::Failed => {
            operation.active = false;
            put(handle, operation);
        }
        Completion::Done(at) | Completion::Seen(at) => {
            // A collective call has nothing in its status but an error, and is never cancelled.
            // SAFETY: the status of a completed receive, as the caller promises.
            let cancelled = || operation.receives() && unsafe { status::cancelled(host, at) };
            if operation.active && !cancelled() {
                // SAFETY: as above; the program's buffer belongs to the receive until this call returns.
                refused = unsafe { operation.staged.unpack(at) };
            }
            if !operation.persistent {
                refused = refused.map(|refused| refused.of_request(host));
            }
            let again = seen && refused.is_some();
            if operation.persistent || again {
                operation.active = again;
                put(handle, operation);
            }
        }
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

/// A nonblocking operation was started. Complete sends and collective calls are done with: they may all have one handle. The handle of a
/// receive, or of an exchange, is its own until the program has completed it.
///
/// # Safety
/// The request must be that of the operation.
pub(crate) unsafe fn started(host: &'static Host, handle: u64, operation: Box<Operation>) {
    // SAFETY: as the caller promises.
    if operation.receives() || operation.exchange || !unsafe { complete(host, handle) } {
        put(handle, operation);
    } else {
        // SAFETY: no message is received, so no status is read; the buffers are the operation's.
        let _ = unsafe { operation.staged.unpack(std::ptr::null_mut()) };
    }
}

/// The program freed an active request: the host keeps it until it has completed.
pub(crate) fn free(handle: u64, operation: Box<Operation>) {
    let mut table = table();
    let table = table.get_or_insert_default();
    table.freed.push((handle, operation));
    table.count();
}

/// Takes out the freed requests: nobody else may ask for them meanwhile.
fn take_freed() -> Vec<(u64, Box<Operation>)> {
    let mut table = table();
    let Some(table) = table.as_mut() else { return Vec::new() };
    let freed = std::mem::take(&mut table.freed);
    table.count();
    freed
}

/// Finishes freed requests that have completed. Returns how many have not.
#[inline]
pub(crate) fn drain(host: &'static Host) -> usize {
    if FREED.load(Ordering::Acquire) == 0 { 0 } else { drain_some(host) }
}

#[cold]
fn drain_some(host: &'static Host) -> usize {
    if host.abi.is_none() {
        // Those that were freed are another library's.
        return 0;
    }
    let (mut own, mut pending) = (Status::new(), Vec::new());
    for (handle, mut operation) in take_freed() {
        let (mut word, mut flag): (HandleWord, c_int) = (handle, 0);
        let at: *mut c_void = (&raw mut own).cast();
        // SAFETY: a request that the program gave up and the host still has; a word has room for any handle.
        let code = host.f.test.map(|test| unsafe { test((&raw mut word).cast(), &raw mut flag, at) });
        let now = word & host.mask;
        if code == Some(0) && flag == 0 {
            pending.push((handle, operation));
            continue;
        }
        if code != Some(0) && now != host.request_null && !operation.persistent {
            // The operation goes on. A further question would raise its error again, and the
            // program has given it up.
            // SAFETY: the request lives, and nobody else has it.
            unsafe { release(host, handle) };
            operation.staged.retire();
            continue;
        }
        operation.persistent = false;
        // SAFETY: as above; the status is that of the completion.
        unsafe {
            // The program gave the request up: there is nobody to tell.
            let _ = settle(
                host,
                handle,
                operation,
                if code == Some(0) { Completion::Done(at) } else { Completion::Failed },
            );
            if now != host.request_null {
                release(host, handle);
            }
        }
    }
    let left = pending.len();
    let mut table = table();
    let table = table.get_or_insert_default();
    table.freed.append(&mut pending);
    table.count();
    left
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
    let _ = guard(|| {
        let start = Instant::now();
        while drain(host) > 0 {
            if start.elapsed() > PATIENCE {
                for (handle, operation) in take_freed() {
                    let mut word: HandleWord = handle;
                    // What cancelling an exchange would do, nobody says.
                    if operation.receives()
                        && !operation.exchange
                        && let Some(cancel) = host.f.cancel
                    {
                        // SAFETY: a request of the host that nobody else has.
                        unsafe { cancel((&raw mut word).cast()) };
                    }
                    // SAFETY: as above.
                    unsafe { release(host, handle) };
                    // The host may still use the buffer.
                    std::mem::forget(operation);
                }
            }
        }
    });
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
