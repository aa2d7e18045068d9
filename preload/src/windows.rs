//! Windows: what is staged for one-sided operations until the call that completes them.
//!
//! What is put is packed into a buffer, which lives until the program may use its own again: until a fence, a flush, local or not, an
//! unlock or the end of an access epoch (MPI 5.0, 12.5). So it is entered here under window and target after the host has taken the call, taken out before a
//! call that completes it, and dropped after that has succeeded. A get with a request is unpacked when the first of the two happens: its request is completed,
//! or an operation of the window that completes it. No lock is held across a call of the host.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use ddtc::process::{Awaited, Mutex, is_inconsistent};
use ddtc_hosts::policy::Call;

use crate::candidates;
use crate::gpu;
use crate::host::{HandleWord, Host};
use crate::messages::Staging;
use crate::policy::policy;
use crate::pool::Buffer;
use crate::retired;
use crate::scopes::ours;
use crate::slow_path::{BYPASS, EPOCHS, FORTRAN, watched_for};
use crate::table;
use crate::user_buffer::UserBuffer;

/// Bytes of a get: unpacked once, by whoever learns first that they have come.
pub(crate) struct Fetched {
    win: HandleWord,
    target: c_int,
    staging: Mutex<Option<Box<Staging>>>,
    unpacked: AtomicBool,
    /// A call that should have completed the get ended with an error: only its request says when
    /// the MPI library is done with the buffer.
    doubtful: AtomicBool,
}

impl Fetched {
    /// The type's handle may be freed before it comes.
    pub(crate) fn new(win: HandleWord, target: c_int, mut staging: Box<Staging>) -> Fetched {
        staging.forget_handle();
        Fetched {
            win,
            target,
            staging: Mutex::new(Some(staging)),
            unpacked: AtomicBool::new(false),
            doubtful: AtomicBool::new(false),
        }
    }

    /// Returns the bytes that its buffer counts for.
    pub(crate) fn capacity(&self) -> usize {
        self.staging.lock().as_ref().map_or(0, |staging| staging.capacity())
    }

    /// Unpacks what has come, unless another thread does; returns when it is unpacked.
    ///
    /// # Safety
    /// The get must be complete, and the program's buffer what it said.
    pub(crate) unsafe fn unpack(&self, host: &'static Host) {
        if self.doubtful.load(Ordering::Acquire) {
            // The buffer stays until the request has ended; more may have come by then.
            if let Some(staging) = &*self.staging.lock() {
                // SAFETY: as the caller promises.
                unsafe { staging.unpacked(host) };
            }
            return;
        }
        // The lock is held for no longer than that.
        let staging = self.staging.lock().take();
        if let Some(staging) = staging {
            // SAFETY: as the caller promises.
            unsafe { staging.unpacked(host) };
            self.unpacked.store(true, Ordering::Release);
        }
        // The other thread is at work: it waits for nobody.
        while !self.unpacked() {
            std::thread::yield_now();
        }
    }

    fn unpacked(&self) -> bool {
        self.unpacked.load(Ordering::Acquire)
    }
}

/// Lists by the rank of their target; those that are empty stay, since a target that was used is used again.
struct Targets<T> {
    lists: BTreeMap<c_int, Vec<T>>,
    len: usize,
}

impl<T> Targets<T> {
    const fn new() -> Targets<T> {
        Targets { lists: BTreeMap::new(), len: 0 }
    }

    fn push(&mut self, target: c_int, item: T) {
        self.lists.entry(target).or_default().push(item);
        self.len += 1;
    }

    /// The lists of one target, or of all.
    fn of(&mut self, target: Option<c_int>) -> impl Iterator<Item = (c_int, &mut Vec<T>)> {
        let range = target.map_or(c_int::MIN..=c_int::MAX, |target| target..=target);
        self.lists.range_mut(range).map(|(&target, list)| (target, list))
    }

    /// Takes out what is there for one target, or all.
    fn take(&mut self, target: Option<c_int>) -> Taken<T> {
        let lists = self.of(target).filter(|(_, list)| !list.is_empty());
        let taken: Taken<T> = lists.map(|(target, list)| (target, std::mem::take(list))).collect();
        self.len -= taken.iter().map(|(_, list)| list.len()).sum::<usize>();
        taken
    }

    fn append(&mut self, taken: Taken<T>) {
        for (target, mut items) in taken {
            self.len += items.len();
            self.lists.entry(target).or_default().append(&mut items);
        }
    }

    /// Keeps what `wanted` says of one target, or of all.
    fn retain(&mut self, target: Option<c_int>, mut wanted: impl FnMut(&T) -> bool) {
        let mut gone = 0;
        for (_, list) in self.of(target) {
            let before = list.len();
            list.retain(&mut wanted);
            gone += before - list.len();
        }
        self.len -= gone;
    }
}

/// Operations that were taken out, by target.
type Taken<T> = Vec<(c_int, Vec<T>)>;

/// Operations that are staged for one window.
struct Window {
    /// Packed origins.
    sent: Targets<Buffer>,
    /// Owned by their requests.
    fetched: Targets<Weak<Fetched>>,
}

/// Windows that had something staged, until they are freed.
static WINDOWS: Mutex<BTreeMap<HandleWord, Window>> = Mutex::new(BTreeMap::new());

/// All that is in them, read without the lock.
static STAGED: AtomicUsize = AtomicUsize::new(0);

/// Says whether anything is staged.
#[inline]
pub(crate) fn any() -> bool {
    STAGED.load(Ordering::Relaxed) != 0
}

impl Window {
    const fn new() -> Window {
        Window { sent: Targets::new(), fetched: Targets::new() }
    }

    fn len(&self) -> usize {
        self.sent.len + self.fetched.len
    }

    /// Changes what is staged. Under the lock.
    fn change<T>(&mut self, change: impl FnOnce(&mut Window) -> T) -> T {
        let before = self.len();
        let result = change(self);
        // Wraps where it is less than before.
        STAGED.fetch_add(self.len().wrapping_sub(before), Ordering::Relaxed);
        result
    }
}

/// Changes what is staged for a window.
fn change<T>(win: HandleWord, change: impl FnOnce(&mut Window) -> T) -> T {
    WINDOWS.lock().entry(win).or_insert_with(Window::new).change(change)
}

/// A put was taken by the host, which may still read the buffer.
pub(crate) fn sent(win: HandleWord, target: c_int, buffer: Buffer) {
    change(win, |window| window.sent.push(target, buffer));
}

/// A get was taken by the host, and its request is not complete yet.
pub(crate) fn fetching(fetched: &Arc<Fetched>) {
    let target = fetched.target;
    change(fetched.win, |window| {
        let waiting = &mut window.fetched;
        if waiting.of(Some(target)).any(|(_, list)| list.len() == list.capacity()) {
            // Those whose requests have completed meanwhile.
            waiting.retain(Some(target), |fetched| fetched.strong_count() > 0);
        }
        waiting.push(target, Arc::downgrade(fetched));
    });
}

/// Operations that a call completes.
pub(crate) struct Ending {
    sent: Taken<Buffer>,
    fetched: Vec<Arc<Fetched>>,
}

/// Takes packed origins that the MPI library may still read out of use.
fn retire(sent: Taken<Buffer>) {
    for buffer in sent.into_iter().flat_map(|(_, buffers)| buffers) {
        let bytes = buffer.capacity();
        retired::retire(buffer, bytes);
    }
}

/// Before a call that completes the operations on a window, those with one target if `target` says so. Buffers are taken out, gets stay: another thread's
/// call may complete them first.
pub(crate) fn ending(win: HandleWord, target: Option<c_int>) -> Ending {
    let mut ending = Ending { sent: Vec::new(), fetched: Vec::new() };
    if is_inconsistent() {
        return ending;
    }
    // Whoever owns one last frees its buffer, which is not done under the lock.
    let mut done = Vec::new();
    let mut windows = WINDOWS.lock();
    let Some(window) = windows.get_mut(&win) else { return ending };
    window.change(|window| {
        ending.sent = window.sent.take(target);
        window.fetched.retain(target, |fetched| {
            let Some(fetched) = fetched.upgrade() else { return false };
            let waits = !fetched.unpacked();
            if waits { &mut ending.fetched } else { &mut done }.push(fetched);
            waits
        });
    });
    drop(windows);
    ending
}

impl Ending {
    /// The call has succeeded.
    ///
    /// # Safety
    /// It must complete these operations.
    pub(crate) unsafe fn succeeded(self, host: &'static Host) {
        for fetched in &self.fetched {
            // SAFETY: as the caller promises.
            unsafe { fetched.unpack(host) };
        }
    }

    /// The call ended with an error: a later call that succeeds does not prove that these
    /// operations have ended.
    pub(crate) fn failed(self) {
        retire(self.sent);
        self.fetched.iter().for_each(|fetched| fetched.doubtful.store(true, Ordering::Release));
    }
}

/// A window is about to be freed, and its handle may be that of another one as soon as it is: it is forgotten.
pub(crate) fn freeing(win: HandleWord) -> Option<Freeing> {
    if is_inconsistent() {
        return None;
    }
    let window = WINDOWS.lock().remove(&win)?;
    STAGED.fetch_sub(window.len(), Ordering::Relaxed);
    Some(Freeing { win, window })
}

/// Operations that were staged for a window that is being freed.
pub(crate) struct Freeing {
    win: HandleWord,
    window: Window,
}

impl Freeing {
    /// The call ended with an error.
    pub(crate) fn failed(mut self) {
        retire(self.window.sent.take(None));
        let fetched = self.window.fetched.take(None);
        let all = fetched.iter().flat_map(|(_, list)| list).filter_map(Weak::upgrade);
        all.for_each(|fetched| fetched.doubtful.store(true, Ordering::Release));
        change(self.win, |window| window.fetched.append(fetched));
    }
}

/// After the world's finalization: nobody will complete what is left.
pub(crate) fn end_epoch() {
    let windows = std::mem::take(&mut *WINDOWS.lock());
    STAGED.fetch_sub(windows.values().map(Window::len).sum(), Ordering::Relaxed);
    // The host may still have the buffers.
    std::mem::forget(windows);
}

/// Says whether every call that completes operations is seen: no object is loaded that may make one by the host's own functions, and no other
/// library stands before this one.
pub(crate) fn covered() -> bool {
    static FIRST: Awaited<bool> = Awaited::new();
    let ours = *FIRST.get_or_init(|| {
        // The objects that are loaded now are known before the first call is converted.
        gpu::refresh_now();
        let names = [
            c"MPI_Win_fence",
            c"MPI_Win_flush",
            c"MPI_Win_flush_local",
            c"MPI_Win_flush_all",
            c"MPI_Win_flush_local_all",
            c"MPI_Win_unlock",
            c"MPI_Win_unlock_all",
            c"MPI_Win_complete",
            c"MPI_Win_free",
        ];
        names.iter().all(|name| ours(name))
    });
    ours && !watched_for(BYPASS | FORTRAN | EPOCHS)
}

/// Says whether a call on a window may be converted, as far as is known without its origin's type: the policy has any, its completion is seen, and as many bytes are
/// meant at the target as at the origin. Nothing is asked that the host would refuse.
pub(crate) fn may_convert(host: &Host, call: Call, origin: UserBuffer, target: UserBuffer) -> bool {
    if host.abi.is_none() || !policy(host).any(call) {
        return false;
    }
    let bytes = bytes(origin);
    let entry =
        if target.datatype == origin.datatype { origin.entry } else { table::known(host, target.datatype) };
    covered() && bytes.is_some() && bytes == bytes_at(host, UserBuffer { entry, ..target })
}

/// Bytes of a buffer of a type that we convert.
fn bytes(given: UserBuffer) -> Option<i64> {
    given.entry.filter(|entry| entry.size() > 0)?.size().checked_mul(given.count)
}

/// Returns the bytes of a buffer that may be of a named type too.
fn bytes_at(host: &Host, given: UserBuffer) -> Option<i64> {
    let handle = given.datatype & host.mask;
    if host.named(handle).is_none() {
        let noted = || candidates::bytes(host, given.datatype)?.checked_mul(given.count);
        return bytes(given).or_else(|| candidates::has(handle).then(noted)?);
    }
    let mut size = 0;
    // SAFETY: a named type of the host's, a number to write to.
    let code = unsafe { host.f.type_size?(handle, &raw mut size) };
    (code == 0).then(|| i64::from(size).checked_mul(given.count)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    // One test: the list is global.
    #[test]
    fn buffers_go_with_the_call_that_completes_them() {
        let staged = || STAGED.load(Ordering::Relaxed);
        let put = |win, target| sent(win, target, Buffer::get(100).unwrap());
        for (win, target) in [(1, 0), (1, 0), (1, 3), (2, 0)] {
            put(win, target);
        }
        assert!(any() && staged() == 4);
        let taken = ending(1, Some(0));
        let len = |ending: &Ending| ending.sent.iter().map(|(_, list)| list.len()).sum::<usize>();
        assert_eq!((len(&taken), staged()), (2, 2));
        // What was put while the call was under way stays; what the call has failed to complete is
        // kept aside.
        put(1, 0);
        taken.failed();
        assert_eq!((len(&ending(1, Some(7))), staged()), (0, 3));
        assert_eq!((len(&ending(1, Some(0))), staged()), (1, 2));
        assert_eq!((len(&ending(1, None)), len(&ending(1, None)), len(&ending(9, None))), (1, 0, 0));
        freeing(2).unwrap().failed();
        assert!(!any() && freeing(2).is_some_and(|freeing| freeing.window.len() == 0));
        // Gets whose requests have completed leave no trace.
        let no = || AtomicBool::new(false);
        let fetched = || {
            let staging = Mutex::new(None);
            Arc::new(Fetched { win: 1, target: 5, staging, unpacked: no(), doubtful: no() })
        };
        let waits = fetched();
        fetching(&waits);
        for _ in 0..1000 {
            fetching(&fetched());
        }
        assert!(staged() < 10);
        assert_eq!(ending(1, Some(4)).fetched.len(), 0);
        // Whoever completes it first unpacks it: others still see it.
        assert_eq!((ending(1, Some(5)).fetched.len(), ending(1, None).fetched.len(), staged()), (1, 1, 1));
        waits.unpacked.store(true, Ordering::Release);
        assert_eq!((ending(1, None).fetched.len(), staged()), (0, 0));
        drop(freeing(1));
        assert!(WINDOWS.lock().is_empty());
    }
}
