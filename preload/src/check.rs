//! `DDTC_CHECK=1`: packs and unpacks against the interpreter and against the host's own.
//!
//! The interpreter is the definition: what differs from it is put right and is our fault. The host is
//! then asked to move a pattern in memory of its own ([`ddtc_hosts::places`]). What it does otherwise is
//! either a fault of it that we know, or worth a look. Each difference is named with type, places and a
//! C program that shows it.

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

pub(crate) static CHECKS: AtomicU64 = AtomicU64::new(0);
pub(crate) static OURS: AtomicU64 = AtomicU64::new(0);
pub(crate) static KNOWN: AtomicU64 = AtomicU64::new(0);
pub(crate) static OTHER: AtomicU64 = AtomicU64::new(0);

/// Unpacks into a larger span are not compared: they would need as much memory again.
const MOST: i128 = 256 << 20;
/// Bytes of a type's text or program that are shown.
const MOST_TEXT: usize = 16 << 10;
/// Differences of a kind that are shown.
const SHOWN: u64 = 4;

/// A call that was just converted.
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

/// A buffer that covers all instances of an unpack and nothing else: a type at absolute addresses is far from displacement 0.
struct Scratch {
    bytes: Vec<u8>,
    /// The displacement of its first byte.
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

    /// Returns the bytes of a piece of the type map.
    fn piece(&mut self, displacement: i64, len: usize) -> &mut [u8] {
        let at = (displacement - self.low) as usize;
        &mut self.bytes[at..at + len]
    }
}

impl Checked<'_> {
    /// Compares.
    ///
    /// # Safety
    /// The call must have been valid and be just done.
    pub(crate) unsafe fn compare(&self) {
        CHECKS.fetch_add(1, Relaxed);
        // SAFETY: as the caller promises.
        unsafe {
            match self.direction {
                Direction::Pack => self.compare_pack(),
                Direction::Unpack => self.compare_unpack(),
            }
        }
    }

    /// # Safety
    /// As [`Checked::compare`], of a pack.
    unsafe fn compare_pack(&self) {
        let t = self.committed.datatype();
        let total = t.size() as usize * self.count as usize;
        let mut expected = Vec::with_capacity(total);
        let _ = interp::for_each(t, self.count, &mut |displacement, len, _| {
            let piece = self.user.wrapping_offset(displacement as isize);
            // SAFETY: a piece of the type map, which the program says is readable.
            expected.extend_from_slice(unsafe { std::slice::from_raw_parts(piece, len) });
        });
        // SAFETY: the bytes that were just packed.
        let ours = unsafe { std::slice::from_raw_parts_mut(self.packed, total) };
        self.judge(ours, &expected);
        ours.copy_from_slice(&expected);
        // SAFETY: as the caller promises.
        unsafe { self.compare_theirs() };
    }

    /// # Safety
    /// As [`Checked::compare`], of an unpack.
    unsafe fn compare_unpack(&self) {
        let t = self.committed.datatype();
        let total = t.size() as usize * self.count as usize;
        let (Some(mut expected), Some(mut ours)) = (Scratch::of(t, self.count), Scratch::of(t, self.count))
        else {
            return;
        };
        // SAFETY: the packed bytes that were just read.
        let mut stream = unsafe { std::slice::from_raw_parts(self.packed, total) };
        // What is in the user's buffer, in the same frame; gaps are not looked at.
        let _ = interp::for_each(t, self.count, &mut |displacement, len, _| {
            let (bytes, rest) = stream.split_at(len);
            stream = rest;
            expected.piece(displacement, len).copy_from_slice(bytes);
            // SAFETY: a piece of the type map, which was just unpacked.
            let found =
                unsafe { std::slice::from_raw_parts(self.user.wrapping_offset(displacement as isize), len) };
            ours.piece(displacement, len).copy_from_slice(found);
        });
        if self.judge(&ours.bytes, &expected.bytes) {
            let _ = interp::for_each(t, self.count, &mut |displacement, len, _| {
                let to = self.user.wrapping_offset(displacement as isize);
                // SAFETY: as above.
                unsafe { std::ptr::copy_nonoverlapping(expected.piece(displacement, len).as_ptr(), to, len) };
            });
        }
        // SAFETY: as the caller promises.
        unsafe { self.compare_theirs() };
    }

    /// Compares what the host moves, in memory of its own, with the definition.
    ///
    /// # Safety
    /// As [`Checked::compare`].
    unsafe fn compare_theirs(&self) {
        let Checked { host, committed, datatype: handle, direction, count, comm, .. } = *self;
        let (Some(pack), Some(unpack)) = (host.counted.pack, host.counted.unpack) else { return };
        let (library, datatype, claimed) = (host.library, committed.datatype(), None);
        let instances = Instances { library, datatype, count, handle, comm, claimed, pack, unpack };
        // SAFETY: the host's own functions, and type and communicator of a call that was just valid.
        if let Outcome::Different(different) = unsafe { instances.compare(direction) } {
            // Lost bytes inside of elements do not explain other places.
            let known = if different.is_lost_bytes { faults::of } else { faults::misplaces };
            let difference = Difference { host, datatype, count, direction };
            difference.is_theirs(known(library, datatype), || different.what);
        }
    }

    /// Whether what we moved differs from the definition; reports it.
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

/// Instances that two sides moved differently.
pub(crate) struct Difference<'a> {
    pub(crate) host: &'a Host,
    pub(crate) datatype: &'a Datatype,
    pub(crate) count: u64,
    pub(crate) direction: Direction,
}

impl Difference<'_> {
    /// We differ from the definition, or where there is none from the host.
    pub(crate) fn is_ours(&self, what: impl FnOnce() -> String) {
        self.say(&OURS, "a fault of ddtc", what);
    }

    /// The host differs from the definition. `fault`: the known one that explains it.
    pub(crate) fn is_theirs(&self, fault: Option<&Fault>, what: impl FnOnce() -> String) {
        match fault {
            Some(fault) => self.say(&KNOWN, &format!("a known fault of the host: {}", fault.text), what),
            None => {
                let who = format!("the host ({}) differs from the definition", self.host.version);
                self.say(&OTHER, &who, what);
            }
        }
    }

    /// Counts it, and says the first few.
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
