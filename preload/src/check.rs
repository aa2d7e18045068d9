//! Comparison of converted calls with the interpreter of datatypes and with the MPI library, for
//! `DDTC_CHECK=1`.
//!
//! The interpreter ([`ddtc::exec::interp`]) is the definition: if the bytes that compiled code
//! moved differ from it, they are corrected, and the difference is a fault of this library. Then
//! the MPI library is asked to move a pattern in memory of the check ([`ddtc_hosts::places`]). If
//! it differs from the definition, that is either a known fault of it or worth investigating. Each
//! difference is reported with the type, the places and a C program that shows it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ddtc::committed::Committed;
use ddtc::datatype::Datatype;
use ddtc::exec::interp;
use ddtc::kind::Direction;
use ddtc_hosts::faults::{self, Fault};
use ddtc_hosts::places::{Instances, Outcome};

use crate::host::{HandleWord, Host};
use crate::reproducer::reproducer;
use crate::warn::warn;

/// Number of calls that were checked, including unpacks that span too much memory to be compared.
pub(crate) static CHECKS: AtomicU64 = AtomicU64::new(0);
/// Number of differences that are faults of this library.
pub(crate) static OURS: AtomicU64 = AtomicU64::new(0);
/// Number of differences that a known fault of the MPI library explains.
pub(crate) static KNOWN: AtomicU64 = AtomicU64::new(0);
/// Number of other differences between the MPI library and the definition.
pub(crate) static OTHER: AtomicU64 = AtomicU64::new(0);

/// Maximum span in bytes of the instances of an unpack that is compared with the definition. The
/// comparison allocates two buffers of that size.
const MOST: i128 = 256 << 20;
/// Maximum length in bytes of a type's text, and of a C program, that is shown in full.
const MOST_TEXT: usize = 16 << 10;
/// Maximum number of differences of each kind that are shown. All are counted.
const SHOWN: u64 = 4;

/// A pack or unpack that was just converted.
pub(crate) struct Checked<'a> {
    pub(crate) host: &'a Host,
    pub(crate) committed: &'a Committed,
    pub(crate) datatype: HandleWord,
    pub(crate) direction: Direction,
    pub(crate) user: *mut u8,
    pub(crate) count: u64,
    pub(crate) packed: *mut u8,
    pub(crate) comm: HandleWord,
}

/// A buffer that covers the span of all instances of an unpack and nothing else, because a type of
/// absolute addresses lies far from displacement 0.
struct Scratch {
    bytes: Vec<u8>,
    /// Displacement of the first byte of the buffer.
    low: i64,
}

impl Scratch {
    fn of(t: &Datatype, count: u64) -> Option<Scratch> {
        let last = i128::from(count - 1) * i128::from(t.extent());
        let low = i128::from(t.true_lb()) + last.min(0);
        let high = i128::from(t.true_ub()) + last.max(0);
        let low = (high - low <= MOST).then(|| i64::try_from(low).ok())??;
        Some(Scratch { bytes: vec![0xA5; (high - i128::from(low)) as usize], low })
    }

    /// Returns the bytes of a contiguous piece of the type map.
    fn piece(&mut self, displacement: i64, len: usize) -> &mut [u8] {
        let at = (displacement - self.low) as usize;
        &mut self.bytes[at..at + len]
    }
}

impl Checked<'_> {
    /// Compares the bytes that the call moved, first with the definition and then with the MPI
    /// library. Bytes that differ from the definition are corrected.
    ///
    /// # Safety
    /// The call must have been valid, and must have just returned, so that its buffers are still
    /// what its arguments say.
    pub(crate) unsafe fn compare(&self) {
        CHECKS.fetch_add(1, Relaxed);
        // SAFETY: both functions require the same of their caller as this one does, and each is
        // called for its own direction.
        unsafe {
            match self.direction {
                Direction::Pack => self.compare_pack(),
                Direction::Unpack => self.compare_unpack(),
            }
        }
    }

    /// Compares the packed bytes of a pack, and corrects them if they differ.
    ///
    /// # Safety
    /// As [`Checked::compare`], for a pack.
    unsafe fn compare_pack(&self) {
        let t = self.committed.datatype();
        let total = t.size() as usize * self.count as usize;
        let mut expected = Vec::with_capacity(total);
        let _ = interp::for_each(t, self.count, &mut |displacement, len, _| {
            let piece = self.user.wrapping_offset(displacement as isize);
            // SAFETY: the piece belongs to the type map of a buffer that the call was allowed to
            // read.
            expected.extend_from_slice(unsafe { std::slice::from_raw_parts(piece, len) });
        });
        // SAFETY: the call has just packed `total` bytes to this address, so they are initialized
        // and may be written.
        let ours = unsafe { std::slice::from_raw_parts_mut(self.packed, total) };
        self.judge(ours, &expected);
        ours.copy_from_slice(&expected);
        // SAFETY: the caller promises what `compare_theirs` requires.
        unsafe { self.compare_theirs() };
    }

    /// Compares the bytes of the user's buffer after an unpack, and corrects them if they differ.
    /// Does nothing if the instances span more than [`MOST`] bytes.
    ///
    /// # Safety
    /// As [`Checked::compare`], for an unpack.
    unsafe fn compare_unpack(&self) {
        let t = self.committed.datatype();
        let total = t.size() as usize * self.count as usize;
        let (Some(mut expected), Some(mut ours)) = (Scratch::of(t, self.count), Scratch::of(t, self.count))
        else {
            return;
        };
        // SAFETY: the call has just read `total` packed bytes from this address.
        let mut stream = unsafe { std::slice::from_raw_parts(self.packed, total) };
        // `ours` gets the bytes of the type map from the user's buffer, `expected` the packed bytes
        // at the same places. Both hold the same fill value in the gaps, so gaps of the user's
        // buffer are not compared.
        let _ = interp::for_each(t, self.count, &mut |displacement, len, _| {
            let (bytes, rest) = stream.split_at(len);
            stream = rest;
            expected.piece(displacement, len).copy_from_slice(bytes);
            // SAFETY: the piece belongs to the type map of the user's buffer, which the call has
            // just written.
            let found =
                unsafe { std::slice::from_raw_parts(self.user.wrapping_offset(displacement as isize), len) };
            ours.piece(displacement, len).copy_from_slice(found);
        });
        if self.judge(&ours.bytes, &expected.bytes) {
            let _ = interp::for_each(t, self.count, &mut |displacement, len, _| {
                let to = self.user.wrapping_offset(displacement as isize);
                // SAFETY: the piece belongs to the type map of the user's buffer, to which the call
                // was allowed to write, and `expected` is separate memory.
                unsafe { std::ptr::copy_nonoverlapping(expected.piece(displacement, len).as_ptr(), to, len) };
            });
        }
        // SAFETY: the caller promises what `compare_theirs` requires.
        unsafe { self.compare_theirs() };
    }

    /// Compares the bytes that the MPI library moves, in memory of the check, with the definition.
    unsafe fn compare_theirs(&self) {
        let Checked { host, committed, datatype: handle, direction, count, comm, .. } = *self;
        let (Some(pack), Some(unpack)) = (host.counted.pack, host.counted.unpack) else { return };
        let (library, datatype, claimed) = (host.library, committed.datatype(), None);
        let instances = Instances { library, datatype, count, handle, comm, claimed, pack, unpack };
        // SAFETY: the functions are those of the MPI library, and the datatype and the communicator
        // are those of a call that was valid just now.
        if let Outcome::Different(different) = unsafe { instances.compare(direction) } {
            // If other places than lost bytes inside elements differ, a fault that only loses bytes
            // does not explain the difference.
            let known = if different.is_lost_bytes { faults::of } else { faults::misplaces };
            let difference = Difference { host, datatype, count, direction };
            difference.is_theirs(known(library, datatype), || different.what);
        }
    }

    /// Returns true if the bytes that compiled code moved differ from the definition, and reports
    /// the difference.
    fn judge(&self, found: &[u8], expected: &[u8]) -> bool {
        let Some(at) = found.iter().zip(expected).position(|(a, b)| a != b) else { return false };
        let what = || {
            let end = (at + 16).min(expected.len());
            let different = found.iter().zip(expected).filter(|(a, b)| a != b).count();
            let (found, expected) = (&found[at..end], &expected[at..end]);
            format!("{different} bytes, first at {at}: {found:02x?} instead of {expected:02x?}")
        };
        let Checked { host, committed, count, direction, .. } = *self;
        Difference { host, datatype: committed.datatype(), count, direction }.is_ours(what);
        true
    }
}

/// A call whose bytes two implementations moved differently.
pub(crate) struct Difference<'a> {
    pub(crate) host: &'a Host,
    pub(crate) datatype: &'a Datatype,
    pub(crate) count: u64,
    pub(crate) direction: Direction,
}

impl Difference<'_> {
    /// Reports a fault of this library: its bytes differ from the definition or, where a caller has
    /// no definition to compare with, from the MPI library.
    pub(crate) fn is_ours(&self, what: impl FnOnce() -> String) {
        self.say(&OURS, "a fault of ddtc", what);
    }

    /// Reports that the MPI library differs from the definition. `fault` is the known fault of the
    /// library that explains the difference, if there is one.
    pub(crate) fn is_theirs(&self, fault: Option<&Fault>, what: impl FnOnce() -> String) {
        match fault {
            Some(fault) => self.say(&KNOWN, &format!("a known fault of the host: {}", fault.text), what),
            None => {
                let who = format!("the host ({}) differs from the definition", self.host.version);
                self.say(&OTHER, &who, what);
            }
        }
    }

    /// Counts the difference, and describes the first [`SHOWN`] of each kind on standard error.
    fn say(&self, counter: &AtomicU64, who: &str, what: impl FnOnce() -> String) {
        if counter.fetch_add(1, Relaxed) >= SHOWN {
            return;
        }
        let Difference { datatype: t, count, direction, .. } = *self;
        let mut program = reproducer(t, count, direction);
        if program.len() > MOST_TEXT {
            program = format!("(a C program of {} bytes)", program.len());
        }
        let mut text = t.to_string();
        if text.len() > MOST_TEXT {
            let cut = (0..=MOST_TEXT / 2).rev().find(|&n| text.is_char_boundary(n)).unwrap_or(0);
            text = format!("{}... ({} bytes)", &text[..cut], text.len());
        }
        let what = what();
        warn(format_args!("check: {direction} of {count} instances: {who}; {what}\ntype {text}\n{program}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_at_addresses_is_compared_too() {
        let at = |text: &str, count| {
            let t: Datatype = text.parse().unwrap();
            Scratch::of(&t, count).map(|s| (s.bytes.len(), s.low))
        };
        let address = 1_i64 << 46;
        let far = format!("hindexed([1,2],[{address},{}],int)", address + 64);
        assert_eq!(at(&far, 1), Some((72, address)));
        assert_eq!(at("vector(3,1,2,int)", 2), Some((40, 0)));
        assert_eq!(at("hvector(3,1,-8,int)", 1), Some((20, -16)));
        assert_eq!(at(&format!("hindexed([1,1],[0,{address}],int)"), 1), None, "too far apart");
        let mut scratch = Scratch::of(&far.parse().unwrap(), 1).unwrap();
        scratch.piece(address + 68, 4).fill(7);
        assert_eq!(scratch.bytes[68..], [7; 4]);
    }
}
