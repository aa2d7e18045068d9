//! Staging buffers of one-sided operations, kept for each window until a call completes the
//! operations.
//!
//! The packed origin of a put must live until the program may use its own origin again: until a
//! fence, a flush (local or not), an unlock or the end of an access epoch (MPI 5.0, 12.5). After
//! the MPI library has accepted the put, the staging buffer with the packed origin is entered here
//! under its window and target. It is taken out before a call that completes the put, and dropped
//! after that call has succeeded.
//!
//! The staging buffer of a get with a request is unpacked by whichever of two calls comes first:
//! the call that completes the get's request, or a call that completes the operations on the
//! window.
//!
//! No lock of this module is held across a call of the MPI library.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use ddtc::internal::process::{Awaited, Mutex, is_inconsistent};
use ddtc_hosts::policy::Call;

use crate::gpu;
use crate::host::{HandleWord, Host};
use crate::hotness;
use crate::messages::Staging;
use crate::policy::policy;
use crate::pool::Buffer;
use crate::retired;
use crate::scopes::ours;
use crate::slow_path::{BYPASS, EPOCHS, FORTRAN, watched_for};
use crate::table;
use crate::user_buffer::UserBuffer;

/// Staging buffer of a get with a request. Unless `doubtful` is true, the buffer is unpacked only
/// once, by the first thread that finds that the get is complete.
pub(crate) struct Fetched {
    win: HandleWord,
    target: c_int,
    staging: Mutex<Option<Box<Staging>>>,
    unpacked: AtomicBool,
    /// True if a call that should have completed the get has ended with an error. From then on only
    /// the completion of the get's request shows that the MPI library no longer writes to the
    /// buffer.
    doubtful: AtomicBool,
}

impl Fetched {
    /// Creates the record of a get before the MPI library is called. The record does not keep the
    /// handle of the get's type, because the program may free the type before the get is complete.
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

    /// Returns how many bytes of the limits on staging buffers this staging buffer takes; 0 if the
    /// buffer was taken out to be unpacked.
    pub(crate) fn capacity(&self) -> usize {
        self.staging.lock().as_ref().map_or(0, |staging| staging.capacity())
    }

    /// Unpacks the bytes of the get, or waits until another thread that has begun to unpack them is
    /// done.
    ///
    /// # Safety
    /// A call that completes the get must have succeeded, and the program's origin buffer must
    /// still be valid.
    pub(crate) unsafe fn unpack(&self, host: &'static Host) {
        if self.doubtful.load(Ordering::Acquire) {
            // An earlier call that should have completed this get has failed. So it is not certain
            // that the later call, which has succeeded, has completed it, and more bytes may arrive
            // later. The buffer is unpacked now and is kept, so that it can be unpacked again when
            // the get's request has ended.
            if let Some(staging) = &*self.staging.lock() {
                // SAFETY: a call that completes the get has succeeded and the program's buffer is
                // valid, as the caller promises. The staging buffer is kept.
                unsafe { staging.unpacked(host) };
            }
            return;
        }
        // The lock of `staging` is released at the end of this statement, before the bytes are
        // unpacked.
        let staging = self.staging.lock().take();
        if let Some(staging) = staging {
            // SAFETY: a call that completes the get has succeeded and no earlier one has failed, so
            // the get is complete. The program's buffer is valid, as the caller promises.
            unsafe { staging.unpacked(host) };
            self.unpacked.store(true, Ordering::Release);
        }
        // If another thread has taken the staging buffer, that thread is unpacking it and waits for
        // no other thread, so this loop ends.
        while !self.unpacked() {
            std::thread::yield_now();
        }
    }

    fn unpacked(&self) -> bool {
        self.unpacked.load(Ordering::Acquire)
    }
}

/// Staged operations on one window, in a list for each target rank. Empty lists are kept, because a
/// target that was used once is usually used again.
struct Targets<T> {
    lists: BTreeMap<c_int, Vec<T>>,
    /// Number of operations in all lists.
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

    /// Returns the lists of one target, or of all targets if `target` is `None`.
    fn lists_of(&mut self, target: Option<c_int>) -> impl Iterator<Item = (c_int, &mut Vec<T>)> {
        let range = target.map_or(c_int::MIN..=c_int::MAX, |target| target..=target);
        self.lists.range_mut(range).map(|(&target, list)| (target, list))
    }

    /// Takes out the operations on one target, or on all targets if `target` is `None`.
    fn take(&mut self, target: Option<c_int>) -> Taken<T> {
        let lists = self.lists_of(target).filter(|(_, list)| !list.is_empty());
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

    /// Removes the operations for which `wanted` is false. Looks only at the operations on one
    /// target, or at those on all targets if `target` is `None`.
    fn retain(&mut self, target: Option<c_int>, mut wanted: impl FnMut(&T) -> bool) {
        let mut gone = 0;
        for (_, list) in self.lists_of(target) {
            let before = list.len();
            list.retain(&mut wanted);
            gone += before - list.len();
        }
        self.len -= gone;
    }
}

/// Operations that were taken out of [`Targets`], in a list for each target rank.
type Taken<T> = Vec<(c_int, Vec<T>)>;

/// Operations that are staged for one window.
struct Window {
    /// Staging buffers with the packed origins of puts.
    sent: Targets<Buffer>,
    /// Gets with a request. The references are weak, because the record of the request owns the
    /// get.
    fetched: Targets<Weak<Fetched>>,
}

/// Records of the windows for which an operation was staged. A record stays until its window is
/// freed.
static WINDOWS: Mutex<BTreeMap<HandleWord, Window>> = Mutex::new(BTreeMap::new());

/// Number of staged operations on all windows. It is read without the lock of [`WINDOWS`].
static STAGED: AtomicUsize = AtomicUsize::new(0);

/// Returns true if an operation is staged for any window.
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

    /// Calls `change`, which adds or removes staged operations of this window, and updates
    /// [`STAGED`]. The caller must hold the lock of [`WINDOWS`].
    fn change<T>(&mut self, change: impl FnOnce(&mut Window) -> T) -> T {
        let before = self.len();
        let result = change(self);
        // If the number of operations has decreased, the difference wraps around. The addition
        // wraps around too, so the sum is right.
        STAGED.fetch_add(self.len().wrapping_sub(before), Ordering::Relaxed);
        result
    }
}

/// Calls `change`, which adds or removes staged operations of the window `win`, and updates
/// [`STAGED`].
fn change<T>(win: HandleWord, change: impl FnOnce(&mut Window) -> T) -> T {
    WINDOWS.lock().entry(win).or_insert_with(Window::new).change(change)
}

/// Keeps the staging buffer with the packed origin of a put that the MPI library has accepted. The
/// MPI library may still read the buffer.
pub(crate) fn sent(win: HandleWord, target: c_int, buffer: Buffer) {
    change(win, |window| window.sent.push(target, buffer));
}

/// Enters a get under its window. The MPI library has accepted the get, and its request is not
/// complete yet.
pub(crate) fn fetching(fetched: &Arc<Fetched>) {
    let target = fetched.target;
    change(fetched.win, |window| {
        let waiting = &mut window.fetched;
        if waiting.lists_of(Some(target)).any(|(_, list)| list.len() == list.capacity()) {
            // The list is full. Before it grows, all gets whose requests have completed are removed
            // from it.
            waiting.retain(Some(target), |fetched| fetched.strong_count() > 0);
        }
        waiting.push(target, Arc::downgrade(fetched));
    });
}

/// Staged operations that a call on a window is about to complete.
pub(crate) struct Ending {
    sent: Taken<Buffer>,
    fetched: Vec<Arc<Fetched>>,
}

/// Takes the staging buffers of puts out of use for good, because the MPI library may still read
/// them.
fn retire(sent: Taken<Buffer>) {
    for buffer in sent.into_iter().flat_map(|(_, buffers)| buffers) {
        let bytes = buffer.capacity();
        retired::retire(buffer, bytes);
    }
}

/// Returns the staged operations that a call on a window is about to complete: the operations on
/// one target if `target` is a rank, otherwise the operations on all targets. Packed origins of
/// puts are taken out of the window. Gets stay in the window, because another thread's call may
/// complete them first.
pub(crate) fn ending(win: HandleWord, target: Option<c_int>) -> Ending {
    let mut ending = Ending { sent: Vec::new(), fetched: Vec::new() };
    if is_inconsistent() {
        return ending;
    }
    // `done` gets the references to gets that are unpacked already. If `done` holds the last
    // reference to a get, dropping the reference frees the get's buffer, which must not happen
    // under the lock.
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
    /// Unpacks the gets after the call on the window has succeeded. The packed origins of puts are
    /// dropped.
    ///
    /// # Safety
    /// The call on the window must have completed the operations in `self`.
    pub(crate) unsafe fn succeeded(self, host: &'static Host) {
        for fetched in &self.fetched {
            // SAFETY: the call has just completed the get, as the caller promises, and MPI forbids
            // the program to free the origin buffer before that. So the origin buffer is valid.
            unsafe { fetched.unpack(host) };
        }
    }

    /// Takes the packed origins of puts out of use for good, and makes the gets keep their staging
    /// buffers until their requests are complete. Called after the call on the window has ended
    /// with an error, because then even a later call on the window that succeeds does not prove
    /// that these operations have ended.
    pub(crate) fn failed(self) {
        retire(self.sent);
        self.fetched.iter().for_each(|fetched| fetched.doubtful.store(true, Ordering::Release));
    }
}

/// Forgets a window before the program's call that frees it, because after that call the MPI
/// library may give the same handle to another window. Returns the staged operations of the window.
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
    /// Called if the call that should have freed the window has ended with an error, so that the
    /// window still exists. Enters the gets of the window again, and takes the packed origins of
    /// its puts out of use for good.
    pub(crate) fn failed(mut self) {
        retire(self.window.sent.take(None));
        let fetched = self.window.fetched.take(None);
        let all = fetched.iter().flat_map(|(_, list)| list).filter_map(Weak::upgrade);
        all.for_each(|fetched| fetched.doubtful.store(true, Ordering::Release));
        change(self.win, |window| window.fetched.append(fetched));
    }
}

/// Forgets all windows after the last finalization of MPI, when no later call can complete the
/// operations that are still staged.
pub(crate) fn end_epoch() {
    let windows = std::mem::take(&mut *WINDOWS.lock());
    STAGED.fetch_sub(windows.values().map(Window::len).sum(), Ordering::Relaxed);
    // The MPI library may still use the staging buffers of these operations, so the buffers are
    // never freed.
    std::mem::forget(windows);
}

/// Returns true if ddtc sees every call that completes operations on windows. Two conditions must
/// hold: no loaded object may call the MPI library's own functions for that, and no library that
/// defines these functions comes before ddtc in the program's symbol look-up.
pub(crate) fn covered() -> bool {
    static FIRST: Awaited<bool> = Awaited::new();
    let ours = *FIRST.get_or_init(|| {
        // All objects that are loaded now must be examined before the first call is converted.
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

/// Returns true if a one-sided operation may be converted, as far as that is known before the
/// policy decides about the origin's type. That needs three things: the policy converts some type
/// in calls of the kind `call`, ddtc sees the completion of the operation, and origin and target
/// have the same number of bytes. To find the number of bytes, the MPI library is called only with
/// types that it would accept.
pub(crate) fn may_convert(host: &Host, call: Call, origin: UserBuffer, target: UserBuffer) -> bool {
    if host.abi.is_none() || !policy(host).any(call) {
        return false;
    }
    let bytes = bytes(origin);
    let entry =
        if target.datatype == origin.datatype { origin.entry } else { table::known(host, target.datatype) };
    covered() && bytes.is_some() && bytes == bytes_at(host, UserBuffer { entry, ..target })
}

/// Returns the number of packed bytes of a buffer. Returns `None` if the buffer's type is not
/// decoded or has no bytes, or if the number overflows.
fn bytes(given: UserBuffer) -> Option<i64> {
    given.entry.filter(|entry| entry.size() > 0)?.size().checked_mul(given.count)
}

/// Returns the number of packed bytes of a buffer whose type is decoded, a named type, or a type
/// that was committed and is not decoded. Returns `None` if the number is not known or overflows.
fn bytes_at(host: &Host, given: UserBuffer) -> Option<i64> {
    let handle = given.datatype & host.mask;
    if host.named(handle).is_none() {
        let undecoded = || hotness::bytes(host, given.datatype)?.checked_mul(given.count);
        return bytes(given).or_else(|| hotness::has(handle).then(undecoded)?);
    }
    let mut size = 0;
    // SAFETY: `handle` is the handle of a named type of the MPI library, and `size` is a local
    // integer, to which the function writes.
    let code = unsafe { host.f.type_size?(handle, &raw mut size) };
    (code == 0).then(|| i64::from(size).checked_mul(given.count)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    // This is a single test, because `WINDOWS` is global.
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
        // A put that was made while a call on the window was under way stays in the window. If that
        // call fails, the staging buffers of the puts that it should have completed are taken out
        // of use.
        put(1, 0);
        taken.failed();
        assert_eq!((len(&ending(1, Some(7))), staged()), (0, 3));
        assert_eq!((len(&ending(1, Some(0))), staged()), (1, 2));
        assert_eq!((len(&ending(1, None)), len(&ending(1, None)), len(&ending(9, None))), (1, 0, 0));
        freeing(2).unwrap().failed();
        assert!(!any() && freeing(2).is_some_and(|freeing| freeing.window.len() == 0));
        // Gets whose requests have completed are removed.
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
        // A get is returned to every call that may complete it, until one of them has unpacked it.
        assert_eq!((ending(1, Some(5)).fetched.len(), ending(1, None).fetched.len(), staged()), (1, 1, 1));
        waits.unpacked.store(true, Ordering::Release);
        assert_eq!((ending(1, None).fetched.len(), staged()), (0, 0));
        drop(freeing(1));
        assert!(WINDOWS.lock().is_empty());
    }
}
