//! Times the host's packing and our kernel on a buffer of the program's, for [`crate::evidence`].

use std::ffi::{c_int, c_void};
use std::time::Instant;

use ddtc::committed::Committed;
use ddtc::kind::Direction;
use ddtc_hosts::faults::are_same_but_lost;

use crate::host::{HandleWord, Host};
use crate::pool::Buffer;
use crate::run::run;
use crate::times::{PART, Times};

/// How often each is timed without an interruption; the least counts.
const ROUNDS: usize = 3;
/// How often at most, with those that were interrupted.
const MOST: usize = 2 * ROUNDS;
/// Nanoseconds of the host's packing from which a round that shows it to be slow by far is not repeated.
const LONG: u64 = 50_000;

/// How often another thread took the core from this one.
fn interruptions() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: memory of that type, zeroed, which is a value of it should the call fail.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init().ru_nivcsw
    }
}

/// Times of one round: nanoseconds of the host, of ours and of a copy, and whether it was interrupted.
struct Round {
    nanos: [u64; 3],
    interrupted: bool,
}

/// The least of some rounds. One that was interrupted can say that a side is fast, never that it is slow: where more processes run than there are cores, a core
/// is away for longer than all that is timed here.
fn least(mut round: impl FnMut() -> Option<Round>) -> Option<[u64; 3]> {
    let mut least = [u64::MAX; 3];
    let mut left = ROUNDS;
    for _ in 0..MOST {
        let Round { nanos, interrupted } = round()?;
        for (least, now) in least.iter_mut().zip(nanos) {
            *least = now.min(*least);
        }
        if !interrupted {
            let [theirs, ours, _] = nanos;
            left -= 1;
            // Ours is never slow enough to save a round that speaks against it.
            if left == 0 || theirs >= LONG && theirs / 2 > ours {
                break;
            }
        }
    }
    Some(least)
}

/// Memory that has been written: a page that is new costs more than the bytes that are packed into it, and whoever is the first would pay for it.
fn touched(bytes: u64) -> Option<Buffer> {
    let buffer = Buffer::get(bytes)?;
    // SAFETY: memory of that many bytes, which nobody else knows.
    unsafe { buffer.at().cast::<u8>().write_bytes(0, bytes as usize) };
    Some(buffer)
}

/// Result of timing a type.
pub(crate) enum Timing {
    /// Both packed the same bytes, in these times.
    Same(Times),
    /// The host packed other bytes than our kernel, and not only bytes inside of elements that it is
    /// known to lose.
    Different,
    /// The host does not pack the type, or there is no memory.
    Failed,
}

/// Times a part of a buffer: whole instances, at most [`PART`] bytes unless one has more. The buffer is
/// read. What both packed is compared.
///
/// # Safety
/// As `MPI_Pack` of the same elements: the type must be one that the host has accepted as committed, and `committed` what it is.
pub(crate) unsafe fn times(
    host: &'static Host,
    user: *mut c_void,
    count: i64,
    datatype: HandleWord,
    committed: &Committed,
) -> Timing {
    let mut is_different = false;
    // SAFETY: as the caller promises.
    let found = unsafe { timed(host, user, count, datatype, committed, &mut is_different) };
    match found {
        _ if is_different => Timing::Different,
        Some(times) => Timing::Same(times),
        None => Timing::Failed,
    }
}

/// As [`times`]. `None` with `is_different` set: the bytes differ.
///
/// # Safety
/// As [`times`].
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
        // Ours first: what is not in the cache is its loss.
        let start = Instant::now();
        // SAFETY: as the caller promises; the buffer has room.
        unsafe { run(committed, Direction::Pack, user.cast(), count, packed.at().cast()) };
        let ours = nanos(start);
        let (mut position, out): (c_int, *mut c_void) = (0, more.at());
        let start = Instant::now();
        // SAFETY: as the caller promises; the buffer has room.
        let code = unsafe { pack(user, elements, datatype, out, room, &raw mut position, host.myself) };
        let theirs = nanos(start);
        if code != 0 || position != room {
            return None;
        }
        if !is_compared {
            is_compared = true;
            // SAFETY: two buffers of that many bytes, which were just packed into.
            let [ours, theirs] = [&packed, &more].map(|buffer| unsafe {
                std::slice::from_raw_parts(buffer.at().cast::<u8>(), bytes as usize)
            });
            *is_different = !are_same_but_lost(host.library, committed.datatype(), count, ours, theirs);
            if *is_different {
                return None;
            }
        }
        let start = Instant::now();
        // SAFETY: two buffers of that many bytes.
        unsafe { more.at().cast::<u8>().copy_from_nonoverlapping(packed.at().cast(), bytes as usize) };
        let copy = nanos(start);
        Some(Round { nanos: [theirs, ours, copy], interrupted: interruptions() != before })
    };
    let least = host.with_world(|| least(rounds)).flatten()?;
    let [theirs, ours, copy] = least.map(|nanos| u32::try_from(nanos).unwrap_or(u32::MAX));
    Some(Times { bytes: u32::try_from(bytes).ok()?, host: theirs, ours, copy })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least of these rounds, and how many of them were asked for.
    fn of(rounds: &[([u64; 3], bool)]) -> (Option<[u64; 3]>, usize) {
        let mut asked = 0;
        let found = least(|| {
            asked += 1;
            rounds.get(asked - 1).map(|&(nanos, interrupted)| Round { nanos, interrupted })
        });
        (found, asked)
    }

    #[test]
    fn what_was_interrupted_does_not_count_as_slow() {
        let quiet = [8000, 1000, 400];
        let cut = |at: usize| (std::array::from_fn(|n| quiet[n] + if n == at { 4_000_000 } else { 0 }), true);
        // Ours, the host and the copy lose the core in turn; what is left says the same as without.
        let rounds = [cut(1), cut(0), cut(2), (quiet, false), (quiet, false), (quiet, false)];
        assert_eq!(of(&rounds), (Some(quiet), 6));
        // Machines that do not say who was interrupted: a slow round of ours alone decides nothing.
        assert_eq!(of(&[(cut(1).0, false), (quiet, false), (quiet, false)]), (Some(quiet), 3));
        // Never without an end, and a host that is slow by far is not waited for again.
        assert_eq!(of(&[cut(0); 9]), (Some([4_008_000, 1000, 400]), MOST));
        let slow = [6_600_000, 20_000, 9000];
        assert_eq!(of(&[(slow, false)]), (Some(slow), 1));
        assert_eq!(of(&[(quiet, false)]), (None, 2));
    }

    #[test]
    fn what_is_timed_has_its_pages() {
        // More than the pool of other tests has.
        let bytes = 3 << 20;
        let new = Buffer::get(bytes).unwrap();
        let old = touched(bytes).unwrap();
        let there = |buffer: &Buffer| {
            let mut pages = vec![0u8; bytes as usize / 4096];
            // SAFETY: memory of that many bytes, from a page's start; a byte for each page.
            let code = unsafe { libc::mincore(buffer.at(), bytes as usize, pages.as_mut_ptr()) };
            assert_eq!(code, 0);
            pages.iter().filter(|page| *page & 1 != 0).count()
        };
        assert!(there(&old) == 768 && there(&new) < 768);
    }

    #[test]
    fn a_thread_that_loses_its_core_is_told() {
        // More threads than cores, all of them busy.
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
