//! Timing of packing by the MPI library and by ddtc's kernel, on a buffer of the program. The times
//! are kept in [`crate::measured`].

use std::ffi::{c_int, c_void};
use std::time::Instant;

use ddtc::internal::committed::Committed;
use ddtc::internal::kind::Direction;
use ddtc_hosts::faults::are_same_but_lost;

use crate::host::{HandleWord, Host};
use crate::pool::Buffer;
use crate::run::run;
use crate::times::{PART, ROUNDS, Times};

/// Maximum number of rounds of one timing, including those that were interrupted.
const MAX_ROUNDS: u64 = 2 * ROUNDS;
/// Minimum nanoseconds for ending a timing early. An uninterrupted round ends the timing at once if
/// the MPI library's packing takes at least this long in it and ddtc's kernel takes less than half
/// as long as the MPI library.
const EARLY_END_NANOS: u64 = 50_000;

/// Returns how many times another thread has taken the core from this thread (involuntary context
/// switches). The number is 0 if the system does not count them.
fn interruptions() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is memory of the type that `getrusage` writes. If the call fails, the memory
    // is zeroed as before, and zeroes are a valid `rusage`.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init().ru_nivcsw
    }
}

/// Times of one round in nanoseconds, and whether the round was interrupted. The times are those of
/// packing by the MPI library, of packing by ddtc's kernel, and of a copy of the packed bytes.
struct Round {
    nanos: [u64; 3],
    interrupted: bool,
}

/// Repeats rounds until enough of them were not interrupted, at most [`MAX_ROUNDS`] times, and
/// returns the minimum of each time over all rounds. Returns `None` if a round fails.
///
/// A short time counts even if its round was interrupted. But an interrupted round is not one of
/// the [`ROUNDS`] that may show that the MPI library or ddtc's kernel is slow: if more processes
/// run than there are cores, this thread may lose its core for longer than everything that is timed
/// here takes. If all [`MAX_ROUNDS`] rounds are interrupted, their minimum is returned.
fn min_times(mut round: impl FnMut() -> Option<Round>) -> Option<[u64; 3]> {
    let mut minima = [u64::MAX; 3];
    let mut left = ROUNDS;
    for _ in 0..MAX_ROUNDS {
        let Round { nanos, interrupted } = round()?;
        for (minima, now) in minima.iter_mut().zip(nanos) {
            *minima = now.min(*minima);
        }
        if !interrupted {
            let [theirs, ours, _] = nanos;
            left -= 1;
            // Only a slow MPI library ends the timing early. A round in which ddtc's kernel is slow
            // is repeated, because this thread may have lost its core without the system counting
            // it.
            if left == 0 || theirs >= EARLY_END_NANOS && theirs / 2 > ours {
                break;
            }
        }
    }
    Some(minima)
}

/// Returns a buffer of at least `bytes` bytes whose pages have been written to. The first write to
/// a new page takes longer than packing the bytes that go there, and its time would be added to
/// that of the MPI library or the kernel, whichever packs into the page.
fn touched(bytes: u64) -> Option<Buffer> {
    let buffer = Buffer::get(bytes)?;
    // SAFETY: the buffer has at least `bytes` bytes of memory, and nobody else has its address yet.
    unsafe { buffer.address().cast::<u8>().write_bytes(0, bytes as usize) };
    Some(buffer)
}

/// Result of timing a type.
pub(crate) enum Timing {
    /// The MPI library and ddtc's kernel packed the same bytes, except for bytes inside elements
    /// that the MPI library is known to lose. The times are those that both took.
    Same(Times),
    /// The bytes that the MPI library packed differ from those of ddtc's kernel, and not only in
    /// bytes inside elements that the MPI library is known to lose.
    Different,
    /// There are no times: the type or the buffer has no bytes, the part has more than `INT_MAX`
    /// bytes, there is no memory for the packed bytes, the world is not initialized or is being
    /// finalized, or the `MPI_Pack` of the MPI library is missing, fails, or packs another number
    /// of bytes.
    Failed,
}

/// Times the packing of the first instances of a buffer: as many whole instances as have at most
/// [`PART`] bytes together, at least one, and at most `count`. The buffer is only read. The bytes
/// that the MPI library has packed are compared with those that ddtc's kernel has packed.
///
/// # Safety
/// As for `MPI_Pack` of the same elements: the `count` elements at `user` must be readable, and
/// nobody may write to them during the call. The MPI library must have accepted `datatype` as
/// committed, and `committed` must be the compiled form of `datatype`.
pub(crate) unsafe fn times(
    host: &'static Host,
    user: *mut c_void,
    count: i64,
    datatype: HandleWord,
    committed: &Committed,
) -> Timing {
    let mut is_different = false;
    // SAFETY: `timed` requires the same of its caller as this function does.
    let found = unsafe { timed(host, user, count, datatype, committed, &mut is_different) };
    match found {
        _ if is_different => Timing::Different,
        Some(times) => Timing::Same(times),
        None => Timing::Failed,
    }
}

/// Does the work of [`times`]. Returns `None` where `times` returns [`Timing::Failed`]. If the
/// packed bytes differ, sets `is_different` and returns `None`.
///
/// # Safety
/// As for [`times`].
unsafe fn timed(
    host: &'static Host,
    user: *mut c_void,
    count: i64,
    datatype: HandleWord,
    committed: &Committed,
    is_different: &mut bool,
) -> Option<Times> {
    let size = u64::try_from(committed.datatype().size()).ok().filter(|&size| size > 0)?;
    let count = (PART / size).clamp(1, u64::try_from(count).ok().filter(|&count| count > 0)?);
    let bytes = size.checked_mul(count)?;
    let (packed, more) = (touched(bytes)?, touched(bytes)?);
    let (room, elements) = (c_int::try_from(bytes).ok()?, c_int::try_from(count).ok()?);
    let clock = (0..5).map(|_| Instant::now().elapsed().as_nanos() as u64).min()?;
    let nanos = |start: Instant| (start.elapsed().as_nanos() as u64).saturating_sub(clock);
    let pack = host.counted.pack?;
    let mut is_compared = false;
    let rounds = || {
        let before = interruptions();
        // ddtc's kernel packs first, so the time to bring the elements into the cache is part of
        // the kernel's time.
        let start = Instant::now();
        // SAFETY: the caller promises that the elements can be read and that nobody writes to them.
        // `packed` has room for `bytes` bytes, which is the size of `count` instances. It was just
        // allocated, so it does not overlap the elements, and nobody else uses it.
        unsafe { run(committed, Direction::Pack, user.cast(), count, packed.address().cast()) };
        let ours = nanos(start);
        let (mut position, out): (c_int, *mut c_void) = (0, more.address());
        let start = Instant::now();
        // SAFETY: the caller promises that the elements can be read and that the MPI library has
        // accepted `datatype` as committed. `more` has room for `room` bytes, and nobody else uses
        // it. The communicator is `MPI_COMM_SELF`, which is valid because the rounds run in
        // `with_world`, while the world is initialized.
        let code = unsafe { pack(user, elements, datatype, out, room, &raw mut position, host.myself) };
        let theirs = nanos(start);
        if code != 0 || position != room {
            return None;
        }
        if !is_compared {
            is_compared = true;
            // SAFETY: each buffer has at least `bytes` bytes, all of which `touched` has written.
            // Nobody writes to them while the slices live, which is until the end of this
            // comparison.
            let [ours, theirs] = [&packed, &more].map(|buffer| unsafe {
                std::slice::from_raw_parts(buffer.address().cast::<u8>(), bytes as usize)
            });
            *is_different = !are_same_but_lost(host.library, committed.datatype(), count, ours, theirs);
            if *is_different {
                return None;
            }
        }
        let start = Instant::now();
        // SAFETY: two different buffers, each with at least `bytes` bytes, which nobody else uses.
        unsafe {
            more.address().cast::<u8>().copy_from_nonoverlapping(packed.address().cast(), bytes as usize)
        };
        let copy = nanos(start);
        Some(Round { nanos: [theirs, ours, copy], interrupted: interruptions() != before })
    };
    let minima = host.with_world(|| min_times(rounds)).flatten()?;
    let [theirs, ours, copy] = minima.map(|nanos| u32::try_from(nanos).unwrap_or(u32::MAX));
    Some(Times { bytes: u32::try_from(bytes).ok()?, host: theirs, ours, copy })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of [`min_times`] for these rounds, and the number of rounds that it has
    /// run.
    fn result_of(rounds: &[([u64; 3], bool)]) -> (Option<[u64; 3]>, usize) {
        let mut asked = 0;
        let found = min_times(|| {
            asked += 1;
            rounds.get(asked - 1).map(|&(nanos, interrupted)| Round { nanos, interrupted })
        });
        (found, asked)
    }

    #[test]
    fn what_was_interrupted_does_not_count_as_slow() {
        let quiet = [8000, 1000, 400];
        let cut = |at: usize| (std::array::from_fn(|n| quiet[n] + if n == at { 4_000_000 } else { 0 }), true);
        // In each of the first three rounds, one of the three steps (ddtc's kernel, the MPI
        // library, the copy) takes much longer, because another thread takes the core. The result
        // is the same as without these rounds.
        let rounds = [cut(1), cut(0), cut(2), (quiet, false), (quiet, false), (quiet, false)];
        assert_eq!(result_of(&rounds), (Some(quiet), 6));
        // On machines that do not report interruptions, one slow round of ddtc's kernel has no
        // effect.
        assert_eq!(result_of(&[(cut(1).0, false), (quiet, false), (quiet, false)]), (Some(quiet), 3));
        // The rounds end even if all are interrupted. If the MPI library is slow by far, there is
        // only one round.
        assert_eq!(result_of(&[cut(0); 9]), (Some([4_008_000, 1000, 400]), MAX_ROUNDS as usize));
        let slow = [6_600_000, 20_000, 9000];
        assert_eq!(result_of(&[(slow, false)]), (Some(slow), 1));
        assert_eq!(result_of(&[(quiet, false)]), (None, 2));
    }

    #[test]
    fn what_is_timed_has_its_pages() {
        // This buffer is larger than all buffers that other tests leave in the pool.
        let bytes = 3 << 20;
        let new = Buffer::get(bytes).unwrap();
        let old = touched(bytes).unwrap();
        let there = |buffer: &Buffer| {
            let mut pages = vec![0u8; bytes as usize / 4096];
            // SAFETY: the buffer has `bytes` bytes and begins at the start of a page, because the
            // pool aligns buffers of 4 KiB and more to 4096 bytes. `pages` has one byte for each of
            // its pages.
            let code = unsafe { libc::mincore(buffer.address(), bytes as usize, pages.as_mut_ptr()) };
            assert_eq!(code, 0);
            pages.iter().filter(|page| *page & 1 != 0).count()
        };
        assert!(there(&old) == 768 && there(&new) < 768);
    }

    #[test]
    fn a_thread_that_loses_its_core_is_told() {
        // Keeps all cores busy: one thread more than there are cores runs, besides this thread. So
        // this thread must lose its core at some time.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..=cores {
                scope.spawn(|| {
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let before = interruptions();
            while interruptions() == before {
                std::hint::spin_loop();
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}
