//! Comparison of converted calls with the interpreter of datatypes and with the MPI library
//! (`DDTC_CHECK=1`).
//!
//! After a call was converted, the bytes that compiled code has packed or unpacked are compared
//! with those of the interpreter ([`ddtc::internal::exec::interp`]), whose result is by definition
//! the right result. Bytes that differ are corrected, and the difference is counted as a fault of
//! ddtc. Then the MPI library packs or unpacks a pattern in memory of the check, not of the program
//! ([`ddtc_hosts::places`]). If its result differs from the definition, the MPI library has either
//! a known fault or one that is worth investigating. The first differences of each kind are
//! reported with the type, the places and a C program that shows the difference.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ddtc::internal::committed::Committed;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::exec::interp;
use ddtc::internal::kind::Direction;
use ddtc_hosts::faults::{self, Fault};
use ddtc_hosts::places::{Instances, Outcome};

use crate::host::{HandleWord, Host};
use crate::reproducer::reproducer;
use crate::warn::warn;

/// Number of converted packs and unpacks that were checked, and of pieces of requests that were
/// checked in Open MPI's convertor hook ([`crate::convertor_hook`], `DDTC_HOOK=check`). An unpack
/// that spans more than [`MAX_SPAN`] bytes is counted too, although it is not compared.
pub(crate) static CHECKS: AtomicU64 = AtomicU64::new(0);
/// Number of checks in which the bytes differed by a fault of ddtc.
pub(crate) static OURS: AtomicU64 = AtomicU64::new(0);
/// Number of checks in which a known fault of the MPI library explains that its bytes differ from
/// the definition of the type.
pub(crate) static KNOWN: AtomicU64 = AtomicU64::new(0);
/// Number of checks in which the MPI library's bytes differ from the definition of the type, and no
/// known fault of the MPI library explains the difference.
pub(crate) static OTHER: AtomicU64 = AtomicU64::new(0);

/// Maximum number of bytes that the instances of an unpack may span. Longer unpacks are not
/// compared with the definition, because the comparison allocates two buffers as long as the span.
const MAX_SPAN: i128 = 256 << 20;
/// Maximum length in bytes up to which the report of a difference shows the type's text in full, or
/// the C program that shows the difference.
const MAX_TEXT: usize = 16 << 10;
/// Maximum number of differences of each kind (fault of ddtc, known fault of the MPI library, any
/// other difference) that are written to standard error. All differences are counted.
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

/// Buffer that covers exactly the span of all instances of an unpack. The buffer does not begin at
/// displacement 0, because the span of a type with absolute addresses lies far from there.
struct Scratch {
    bytes: Vec<u8>,
    /// Displacement in the type map that the first byte of `bytes` stands for.
    low: i64,
}

impl Scratch {
    fn new(t: &Datatype, count: u64) -> Option<Scratch> {
        let last = i128::from(count - 1) * i128::from(t.extent());
        let low = i128::from(t.true_lb()) + last.min(0);
        let high = i128::from(t.true_ub()) + last.max(0);
        let low = (high - low <= MAX_SPAN).then(|| i64::try_from(low).ok())??;
        Some(Scratch { bytes: vec![0xA5; (high - i128::from(low)) as usize], low })
    }

    /// Returns the bytes of the buffer that stand for a contiguous piece of the type map: `len`
    /// bytes from `displacement` on.
    fn piece(&mut self, displacement: i64, len: usize) -> &mut [u8] {
        let at = (displacement - self.low) as usize;
        &mut self.bytes[at..at + len]
    }
}

impl Checked<'_> {
    /// Compares the bytes that the call has packed or unpacked with the definition, and corrects
    /// bytes that differ. Then compares the MPI library with the definition.
    ///
    /// # Safety
    /// The call must have been valid, and must have just returned, so that its arguments still
    /// describe its buffers.
    pub(crate) unsafe fn compare(&self) {
        CHECKS.fetch_add(1, Relaxed);
        // SAFETY: both functions require of their caller what this function requires, and each is
        // called only for its own direction.
        unsafe {
            match self.direction {
                Direction::Pack => self.compare_pack(),
                Direction::Unpack => self.compare_unpack(),
            }
        }
    }

    /// Compares the bytes that a pack has written with the definition, and corrects them if they
    /// differ. Then compares the MPI library with the definition.
    ///
    /// # Safety
    /// As [`Checked::compare`], for a pack.
    unsafe fn compare_pack(&self) {
        let t = self.committed.datatype();
        let total = t.size() as usize * self.count as usize;
        let mut expected = Vec::with_capacity(total);
        let _ = interp::for_each(t, self.count, &mut |displacement, len, _| {
            let piece = self.user.wrapping_offset(displacement as isize);
            // SAFETY: the piece lies in the type map of the user's buffer, which the call was
            // allowed to read.
            expected.extend_from_slice(unsafe { std::slice::from_raw_parts(piece, len) });
        });
        // SAFETY: the call has just packed `total` bytes to `self.packed`, so these bytes are
        // initialized and may be written.
        let ours = unsafe { std::slice::from_raw_parts_mut(self.packed, total) };
        self.judge(ours, &expected);
        ours.copy_from_slice(&expected);
        // SAFETY: the caller promises what `compare_theirs` requires.
        unsafe { self.compare_theirs() };
    }

    /// Compares the bytes of the user's buffer after an unpack with the definition, and corrects
    /// them if they differ. Then compares the MPI library with the definition. Does nothing if the
    /// instances span more than [`MAX_SPAN`] bytes.
    ///
    /// # Safety
    /// As [`Checked::compare`], for an unpack.
    unsafe fn compare_unpack(&self) {
        let t = self.committed.datatype();
        let total = t.size() as usize * self.count as usize;
        let (Some(mut expected), Some(mut ours)) = (Scratch::new(t, self.count), Scratch::new(t, self.count))
        else {
            return;
        };
        // SAFETY: the call has just read `total` packed bytes from `self.packed`.
        let mut stream = unsafe { std::slice::from_raw_parts(self.packed, total) };
        // `ours` gets the bytes that the call has unpacked to the user's buffer. `expected` gets
        // the packed bytes at the same places, where the call should have put them. Both buffers
        // hold the same fill value in the gaps of the type, so gaps are not compared.
        let _ = interp::for_each(t, self.count, &mut |displacement, len, _| {
            let (bytes, rest) = stream.split_at(len);
            stream = rest;
            expected.piece(displacement, len).copy_from_slice(bytes);
            // SAFETY: the piece lies in the type map of the user's buffer, which the call has just
            // written.
            let found =
                unsafe { std::slice::from_raw_parts(self.user.wrapping_offset(displacement as isize), len) };
            ours.piece(displacement, len).copy_from_slice(found);
        });
        if self.judge(&ours.bytes, &expected.bytes) {
            let _ = interp::for_each(t, self.count, &mut |displacement, len, _| {
                let to = self.user.wrapping_offset(displacement as isize);
                // SAFETY: the piece lies in the type map of the user's buffer, to which the call
                // was allowed to write, and `expected` is separate memory.
                unsafe { std::ptr::copy_nonoverlapping(expected.piece(displacement, len).as_ptr(), to, len) };
            });
        }
        // SAFETY: the caller promises what `compare_theirs` requires.
        unsafe { self.compare_theirs() };
    }

    /// Lets the MPI library pack or unpack in memory that the check has allocated, and compares the
    /// result with the definition.
    ///
    /// # Safety
    /// The call must have been valid and must have just returned.
    unsafe fn compare_theirs(&self) {
        let Checked { host, committed, datatype: handle, direction, count, comm, .. } = *self;
        let (Some(pack), Some(unpack)) = (host.counted.pack, host.counted.unpack) else { return };
        let (library, datatype, claimed) = (host.library, committed.datatype(), None);
        let instances = Instances { library, datatype, count, handle, comm, claimed, pack, unpack };
        // SAFETY: the functions are those of the MPI library, and the datatype and the communicator
        // are those of a call that was valid just now.
        if let Outcome::Different(different) = unsafe { instances.compare(direction) } {
            // Some faults of the MPI library only lose bytes inside elements. They explain the
            // difference only if nothing but bytes of this kind is different. Otherwise only the
            // faults that move bytes to wrong places are considered.
            let known = if different.is_lost_bytes { faults::find } else { faults::misplaces };
            let difference = Difference { host, datatype, count, direction };
            difference.is_theirs(known(library, datatype), || different.what);
        }
    }

    /// Returns true if the bytes of compiled code (`found`) differ from the definition
    /// (`expected`), and reports the difference as a fault of ddtc.
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

/// A pack or unpack of `count` instances for which two implementations have given different bytes.
pub(crate) struct Difference<'a> {
    pub(crate) host: &'a Host,
    pub(crate) datatype: &'a Datatype,
    pub(crate) count: u64,
    pub(crate) direction: Direction,
}

impl Difference<'_> {
    /// Reports a fault of ddtc: the result of compiled code differs from the definition or, if the
    /// definition does not fix this part of the result (the lengths of a message's pieces), from
    /// the result of the MPI library.
    pub(crate) fn is_ours(&self, what: impl FnOnce() -> String) {
        self.say(&OURS, "a fault of ddtc", what);
    }

    /// Reports that the MPI library differs from the definition. `fault` is the known fault of the
    /// MPI library that explains the difference; `None` if no known fault explains it.
    pub(crate) fn is_theirs(&self, fault: Option<&Fault>, what: impl FnOnce() -> String) {
        match fault {
            Some(fault) => {
                self.say(&KNOWN, &format!("a known fault of the MPI library: {}", fault.text), what)
            }
            None => {
                let who = format!("the MPI library ({}) differs from the definition", self.host.version);
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
        if program.len() > MAX_TEXT {
            program = format!("(a C program of {} bytes)", program.len());
        }
        let mut text = t.to_string();
        if text.len() > MAX_TEXT {
            let cut = (0..=MAX_TEXT / 2).rev().find(|&n| text.is_char_boundary(n)).unwrap_or(0);
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
            Scratch::new(&t, count).map(|s| (s.bytes.len(), s.low))
        };
        let address = 1_i64 << 46;
        let far = format!("hindexed([1,2],[{address},{}],int)", address + 64);
        assert_eq!(at(&far, 1), Some((72, address)));
        assert_eq!(at("vector(3,1,2,int)", 2), Some((40, 0)));
        assert_eq!(at("hvector(3,1,-8,int)", 1), Some((20, -16)));
        assert_eq!(at(&format!("hindexed([1,1],[0,{address}],int)"), 1), None, "too far apart");
        let mut scratch = Scratch::new(&far.parse().unwrap(), 1).unwrap();
        scratch.piece(address + 68, 4).fill(7);
        assert_eq!(scratch.bytes[68..], [7; 4]);
    }
}
