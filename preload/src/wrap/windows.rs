//! Wrappers of one-sided operations and of the calls that complete them.
//!
//! Converted puts are packed before the call. Converted gets with a request (`MPI_Rget`) are
//! unpacked when they are complete. Only the origin is converted; the arguments for the target stay
//! the program's. Gets without a request (`MPI_Get`) are not converted, because they would have to
//! be unpacked in the call that ends their epoch.

use std::ffi::{c_int, c_void};

use ddtc::internal::count::Count;
use ddtc_hosts::policy::Call;

use super::nonblocking::before;
use crate::call_memory::{self, start};
use crate::forms::{Form, Forms, forward};
use crate::gpu;
use crate::handles::{NO_HOST, handle_at, missing};
use crate::host::{HandleWord, Host, host};
use crate::requests::{self, Operation};
use crate::signatures::{Displacement, Handle, In, Int, Out};
use crate::staged::Staged;
use crate::table::TypeEntry;
use crate::user_buffer::UserBuffer;
use crate::windows::{self, covered, may_convert};

type PutFn<N> = unsafe extern "C-unwind" fn(In, N, Handle, Int, Displacement, N, Handle, Handle) -> c_int;
type RputFn<N> =
    unsafe extern "C-unwind" fn(In, N, Handle, Int, Displacement, N, Handle, Handle, Out) -> c_int;
type RgetFn<N> =
    unsafe extern "C-unwind" fn(Out, N, Handle, Int, Displacement, N, Handle, Handle, Out) -> c_int;

/// Arguments of a one-sided operation.
#[derive(Clone, Copy)]
struct Operands {
    origin: UserBuffer,
    /// Rank of the target.
    target: Int,
    /// Buffer at the target. Its address is null because it is not known at the origin.
    there: UserBuffer,
    win: Handle,
}

impl Operands {
    #[inline]
    fn new<N: Count>(
        origin: In,
        count: N,
        datatype: Handle,
        target: Int,
        target_count: N,
        target_type: Handle,
        win: Handle,
        entry: Option<&'static TypeEntry>,
    ) -> Operands {
        let there = UserBuffer {
            buf: std::ptr::null_mut(),
            count: target_count.wide(),
            datatype: target_type,
            entry: None,
        };
        Operands {
            origin: UserBuffer { buf: origin.cast_mut(), count: count.wide(), datatype, entry },
            target,
            there,
            win,
        }
    }

    /// Packs the origin of a put that makes no request. Returns the staged call and the origin for
    /// the MPI library.
    ///
    /// # Safety
    /// The operands must be those of the program's call: if the MPI library would accept the call,
    /// the origin may be read.
    #[inline]
    unsafe fn staged(&self, host: &'static Host, max_bytes: i64) -> (Staged, UserBuffer) {
        let mut staged = Staged::new(host, max_bytes);
        if !may_convert(host, Call::Put, self.origin, self.there) {
            return (staged, self.origin);
        }
        // SAFETY: the operands are those of the program's call, as the caller promises.
        let replacement = unsafe { staged.origin(self.origin, self.target) };
        if staged.is_empty() {
            return (staged, self.origin);
        }
        gpu::refresh_now();
        // `refresh_now` has examined the objects that were loaded since the last examination. If
        // one of them may complete operations without a call that ddtc sees, this call is bypassed.
        if covered() { (staged, replacement) } else { (Staged::new(host, max_bytes), self.origin) }
    }

    /// Stages a put or get that makes a request. Returns the staged call and the origin for the MPI
    /// library.
    ///
    /// # Safety
    /// As [`Operands::staged`].
    #[inline]
    unsafe fn requested(
        &self,
        host: &'static Host,
        call: Call,
        max_bytes: i64,
        request: *mut c_void,
    ) -> (Staged, UserBuffer) {
        if !may_convert(host, call, self.origin, self.there) {
            return (Staged::new(host, max_bytes), self.origin);
        }
        let (staged, replacement) = before(host, request, max_bytes, self.origin, |staged| match call {
            // SAFETY: the operands are those of the program's call, as the caller promises.
            Call::Get => unsafe { staged.fetch(self.origin, self.target, self.win & host.mask) },
            // SAFETY: the operands are those of the program's call, as the caller promises.
            _ => unsafe { staged.origin(self.origin, self.target) },
        });
        if staged.is_empty() || covered() {
            (staged, replacement)
        } else {
            (Staged::new(host, max_bytes), self.origin)
        }
    }

    /// Runs the MPI library's call of a put that makes no request. Keeps the put's staging buffer
    /// until a later call completes the operation.
    fn put(&self, host: &Host, staged: Staged, call: impl FnOnce() -> c_int) -> c_int {
        let (code, staged) = staged.putting(call);
        if let Some(buffer) = staged.and_then(Staged::into_packed) {
            windows::sent(self.win & host.mask, self.target, buffer);
        }
        code
    }
}

/// Puts from the origin. If the origin is converted, it is packed first.
///
/// # Safety
/// As `MPI_Put` (MPI 5.0, 12.3.1).
#[inline]
pub(super) unsafe fn put<N: Count>(
    host: &'static Host,
    forms: Forms<PutFn<c_int>, PutFn<i64>>,
    origin: In,
    count: N,
    datatype: Handle,
    target: Int,
    at: Displacement,
    target_count: N,
    target_type: Handle,
    win: Handle,
) -> c_int {
    let operands =
        Operands::new(origin, count, datatype, target, target_count, target_type, win, forms.entries[0]);
    let there = operands.there.count;
    // SAFETY: the arguments are those of the program's call. The MPI library gets them unchanged,
    // except that `o` is the program's origin or the staging buffer that replaces it.
    unsafe {
        let (staged, o) = operands.staged(host, forms.max_bytes::<N>());
        operands.put(host, staged, || {
            forward!(N, forms, host, (o.buf)[o.count](o.datatype)(target)(at)[there](target_type)(win))
        })
    }
}

/// Puts from the origin, and makes a request. If the origin is converted, it is packed first.
///
/// # Safety
/// As `MPI_Rput` (MPI 5.0, 12.3.5).
#[inline]
pub(super) unsafe fn rput<N: Count>(
    host: &'static Host,
    forms: Forms<RputFn<c_int>, RputFn<i64>>,
    origin: In,
    count: N,
    datatype: Handle,
    target: Int,
    at: Displacement,
    target_count: N,
    target_type: Handle,
    win: Handle,
    request: Out,
) -> c_int {
    let operands =
        Operands::new(origin, count, datatype, target, target_count, target_type, win, forms.entries[0]);
    let there = operands.there.count;
    // SAFETY: the arguments are those of the program's call, so `request` is null or writable, and
    // `before` stages nothing if it is null. The MPI library gets the arguments unchanged, except
    // that `o` is the program's origin or the staging buffer that replaces it.
    unsafe {
        let (staged, o) = operands.requested(host, Call::Put, forms.max_bytes::<N>(), request);
        start(host, (request, requests::NO_COMM), staged, Operation::once, || {
            forward!(
                N,
                forms,
                host,
                (o.buf)[o.count](o.datatype)(target)(at)[there](target_type)(win)(request)
            )
        })
    }
}

/// Gets to the origin, and makes a request. If the origin is converted, the MPI library gets to a
/// staging buffer, which is unpacked when the get is complete.
///
/// # Safety
/// As `MPI_Rget` (MPI 5.0, 12.3.5).
#[inline]
pub(super) unsafe fn rget<N: Count>(
    host: &'static Host,
    forms: Forms<RgetFn<c_int>, RgetFn<i64>>,
    origin: Out,
    count: N,
    datatype: Handle,
    target: Int,
    at: Displacement,
    target_count: N,
    target_type: Handle,
    win: Handle,
    request: Out,
) -> c_int {
    let operands =
        Operands::new(origin, count, datatype, target, target_count, target_type, win, forms.entries[0]);
    let there = operands.there.count;
    // SAFETY: the arguments are those of the program's call, so `request` is null or writable, and
    // `before` stages nothing if it is null. The MPI library gets the arguments unchanged, except
    // that `o` is the program's origin or the staging buffer that replaces it.
    unsafe {
        let (staged, o) = operands.requested(host, Call::Get, forms.max_bytes::<N>(), request);
        start(host, (request, requests::NO_COMM), staged, Operation::once, || {
            forward!(
                N,
                forms,
                host,
                (o.buf)[o.count](o.datatype)(target)(at)[there](target_type)(win)(request)
            )
        })
    }
}

/// Runs a call that completes operations on a window: the operations with one target if `target` is
/// that target's rank, else all.
///
/// # Safety
/// `call` must complete these operations if it succeeds.
#[inline]
unsafe fn end(
    host: &'static Host,
    win: HandleWord,
    target: Option<c_int>,
    call: impl FnOnce() -> c_int,
) -> c_int {
    if !windows::any() {
        return call();
    }
    let ending = windows::ending(win & host.mask, target);
    // SAFETY: `ending` has the operations on this window and target, which `call` completes if it
    // succeeds, as the caller promises.
    unsafe { call_memory::epoch(host, ending, call) }
}

/// # Safety
/// As `MPI_Win_fence` (MPI 5.0, 12.5.1).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Win_fence(assertion: c_int, win: HandleWord) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(fence) = host.next.win_fence else { return missing(host) };
    // SAFETY: the arguments are the program's, unchanged. A fence without `MPI_MODE_NOPRECEDE`
    // completes all operations of this process on the window.
    unsafe {
        if host.abi.is_some_and(|abi| assertion & abi.mode_noprecede != 0) {
            // A fence with `MPI_MODE_NOPRECEDE` completes no operation.
            return fence(assertion, win);
        }
        end(host, win, None, || fence(assertion, win))
    }
}

/// Makes the wrappers of calls that complete operations on a window: the operations with one rank
/// if the call takes a rank, else all.
macro_rules! ends {
    ($($name:ident $field:ident $section:literal ($($rank:ident)?);)*) => {$(
        #[doc = concat!("# Safety\nAs `", stringify!($name), "` (MPI 5.0, ", $section, ").")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($rank: c_int,)? win: HandleWord) -> c_int {
            let Some(host) = host() else { return NO_HOST };
            let Some(call) = host.next.$field else { return missing(host) };
            let (target, _) = (None::<c_int>$(.or(Some($rank)))?, ());
            // SAFETY: the arguments are the program's, unchanged. The call completes, at the
            // origin, all operations on the window, or those with the rank that the call takes.
            unsafe { end(host, win, target, || call($($rank,)? win)) }
        }
    )*};
}

ends! {
    MPI_Win_flush win_flush "12.5.4" (rank);
    MPI_Win_flush_local win_flush_local "12.5.4" (rank);
    MPI_Win_flush_all win_flush_all "12.5.4" ();
    MPI_Win_flush_local_all win_flush_local_all "12.5.4" ();
    MPI_Win_unlock win_unlock "12.5.3" (rank);
    MPI_Win_unlock_all win_unlock_all "12.5.3" ();
    MPI_Win_complete win_complete "12.5.2" ();
}

/// # Safety
/// As `MPI_Win_free` (MPI 5.0, 12.2.5).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Win_free(win: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(free) = host.next.win_free else { return missing(host) };
    // The window is forgotten before the call, because once the window is freed, the MPI library
    // may give the same handle to a window of another thread.
    // SAFETY: the argument is the program's, unchanged. If it is not null, it points to a handle.
    unsafe {
        // The program may have freed requests of operations on this window before their completion.
        // Operations that have completed meanwhile are finished now, while the window exists.
        requests::drain(host);
        let handle = if win.is_null() { 0 } else { handle_at(host, win) & host.mask };
        match windows::freeing(handle) {
            Some(freeing) => call_memory::freeing(freeing, || free(win)),
            None => free(win),
        }
    }
}
