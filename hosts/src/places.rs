//! Compares where an MPI library moves the bytes of a datatype with the definition.
//!
//! The bytes that are moved say where they came from: byte `i` of a pattern is a digit of `i`, and
//! the library moves one pattern for each digit. So no two places can be taken for one another. The
//! library is given memory of this module, never the program's: all instances, on both sides a
//! reserve of as much as they span and more, and then inaccessible pages. A library that writes to
//! other places writes into the reserve, which is compared, too.
#![allow(unsafe_code)] // Calls the functions of an MPI library.

use std::ffi::{c_int, c_void};

use ddtc::datatype::{Datatype, Named};
use ddtc::exec::interp;
use ddtc::kind::Direction;

use crate::faults;
use crate::fenced::Fenced;
use crate::policy::Library;

/// `MPI_Pack` of a library, with handles in 64-bit words (see [`crate::abi`]).
pub type PackFn =
    unsafe extern "C-unwind" fn(*const c_void, c_int, u64, *mut c_void, c_int, *mut c_int, u64) -> c_int;
/// `MPI_Unpack` of a library.
pub type UnpackFn =
    unsafe extern "C-unwind" fn(*const c_void, c_int, *mut c_int, *mut c_void, c_int, u64, u64) -> c_int;

/// Maximum number of bytes of the memory that a comparison maps for the instances and their reserve.
pub const MAX_BYTES: i128 = 256 << 20;
/// Bytes of reserve on each side in addition to what the instances span.
const RESERVE: i128 = 4 << 10;
/// Base of the digits of places. Digits are 1 and more, since memory that nobody wrote is 0.
const BASE: usize = 255;

/// Instances of a datatype in an MPI library, and the functions that move them.
#[derive(Clone, Copy, Debug)]
pub struct Instances<'t> {
    /// The library, whose known faults explain a difference.
    pub library: Library,
    /// The datatype by the definition.
    pub datatype: &'t Datatype,
    /// Number of instances.
    pub count: u64,
    /// The library's committed handle of the datatype.
    pub handle: u64,
    /// A communicator of the library.
    pub comm: u64,
    /// True lower bound and true extent as the library has them, if they were asked for.
    pub claimed: Option<(i64, i64)>,
    /// `MPI_Pack` of the library.
    pub pack: PackFn,
    /// `MPI_Unpack` of the library.
    pub unpack: UnpackFn,
}

/// A difference between the library and the definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Description of what differs, for a message.
    pub what: String,
    /// All that differs are bytes inside of elements that the library is known to lose.
    pub is_lost_bytes: bool,
}

/// Result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The library moves the bytes as the definition says.
    Same,
    /// It does not.
    Different(Difference),
    /// Nothing was compared: too many bytes, no memory for them, or the library returned an error.
    NotCompared,
}

/// Memory of all instances, and the displacement of its first byte.
struct Frame {
    low: i128,
    len: usize,
}

/// What the library made of one pattern, and what the definition makes of it.
struct Round {
    found: Fenced,
    expected: Fenced,
    /// How far the library moved its position.
    moved: usize,
}

/// Number of digits that tell `places` places apart.
fn digits(places: usize) -> u32 {
    (1..).find(|&n| BASE.checked_pow(n).is_none_or(|all| all >= places)).unwrap_or(1)
}

/// Writes digit `k` of its place into each byte: all digits in order, each `BASE` to the power of `k`
/// times, and the same again.
fn fill(bytes: &mut [u8], k: u32) {
    let times = BASE.pow(k);
    let period = BASE * times;
    for (digit, equal) in (1..=BASE as u8).zip(bytes.chunks_mut(times)) {
        equal.fill(digit);
    }
    for filled in (period..bytes.len()).step_by(period) {
        let len = period.min(bytes.len() - filled);
        bytes.copy_within(..len, filled);
    }
}

impl Instances<'_> {
    /// Moves all instances by the library, and compares.
    ///
    /// # Safety
    /// The functions must be the library's, which is initialized, the handle a committed datatype of it
    /// that is what `datatype` says, and the communicator a valid one.
    pub unsafe fn compare(&self, direction: Direction) -> Outcome {
        // SAFETY: as the caller promises.
        unsafe { self.compared(direction) }.unwrap_or(Outcome::NotCompared)
    }

    /// `None`: nothing can be compared.
    unsafe fn compared(&self, direction: Direction) -> Option<Outcome> {
        let total =
            usize::try_from(self.datatype.size()).ok()?.checked_mul(usize::try_from(self.count).ok()?)?;
        if total == 0 || total as i128 > MAX_BYTES {
            return None;
        }
        let frame = self.frame()?;
        let places = match direction {
            Direction::Pack => frame.len,
            Direction::Unpack => total,
        };
        let mut differs_in_lost_bytes = false;
        for k in 0..digits(places) {
            // SAFETY: as the caller promises.
            let mut round = unsafe { self.round(direction, &frame, total, k) }?;
            if round.moved != total {
                let what = format!("the position moved by {}, not {total}", round.moved);
                return Some(Outcome::Different(Difference { what, is_lost_bytes: false }));
            }
            if round.found[..] != round.expected[..] {
                differs_in_lost_bytes |= self.forgive(direction, &frame, &mut round);
            }
            if let Some(at) = first_difference(&round.found, &round.expected) {
                // SAFETY: as the caller promises.
                let what = unsafe { self.describe(direction, &frame, total, &round, at) };
                return Some(Outcome::Different(Difference { what, is_lost_bytes: false }));
            }
        }
        Some(if differs_in_lost_bytes {
            let what = "bytes inside of elements are lost".to_owned();
            Outcome::Different(Difference { what, is_lost_bytes: true })
        } else {
            Outcome::Same
        })
    }

    /// Memory for all instances with a reserve on both sides. `None`: that is too much.
    ///
    /// A library that steps wrongly from one instance to the next, or inside of an instance, stays
    /// within the span and the extent of an instance for each instance.
    fn frame(&self) -> Option<Frame> {
        let t = self.datatype;
        let last = i128::from(self.count.checked_sub(1)?) * i128::from(t.extent());
        let (mut low, mut high) = (i128::from(t.true_lb()), i128::from(t.true_ub()));
        if let Some((lb, extent)) = self.claimed {
            low = low.min(i128::from(lb));
            high = high.max(i128::from(lb) + i128::from(extent));
        }
        let step = high - low + i128::from(t.extent()).abs();
        let reserve = i128::from(self.count).checked_mul(step)?.checked_add(RESERVE)?;
        let (low, high) = (low + last.min(0) - reserve, high + last.max(0) + reserve);
        // Displacement 0 keeps its alignment at the begin of a page.
        let low = low - low.rem_euclid(64);
        (high - low <= MAX_BYTES).then_some(Frame { low, len: (high - low) as usize })
    }

    /// Moves the pattern of digit `k` by the library and by the definition.
    unsafe fn round(&self, direction: Direction, frame: &Frame, total: usize, k: u32) -> Option<Round> {
        let (count, size) = (c_int::try_from(self.count).ok()?, c_int::try_from(total).ok()?);
        let (mut user, mut packed) = (Fenced::new(frame.len)?, Fenced::new(total)?);
        let mut position: c_int = 0;
        // The type's displacement 0, which may lie outside of the memory.
        let origin = |user: *mut u8| user.wrapping_offset(-frame.low as isize).cast::<c_void>();
        let (mut expected, code);
        match direction {
            Direction::Pack => {
                fill(&mut user, k);
                expected = Fenced::new(total)?;
                let mut rest = &mut expected[..];
                self.each(frame, &mut |at, len, _, _| {
                    let (bytes, behind) = std::mem::take(&mut rest).split_at_mut(len);
                    bytes.copy_from_slice(&user[at..at + len]);
                    rest = behind;
                })?;
                let (from, to) = (origin(user.as_mut_ptr()), packed.as_mut_ptr().cast());
                // SAFETY: the library's function, type and communicator, as the caller promises; the
                // memory covers all instances, and the packed bytes have room.
                code =
                    unsafe { (self.pack)(from, count, self.handle, to, size, &raw mut position, self.comm) };
            }
            Direction::Unpack => {
                fill(&mut packed, k);
                expected = Fenced::new(frame.len)?;
                self.each(frame, &mut |at, len, offset, _| {
                    expected[at..at + len].copy_from_slice(&packed[offset..offset + len]);
                })?;
                let (from, to) = (packed.as_ptr().cast(), origin(user.as_mut_ptr()));
                // SAFETY: as above.
                code = unsafe {
                    (self.unpack)(from, size, &raw mut position, to, count, self.handle, self.comm)
                };
            }
        }
        let found = match direction {
            Direction::Pack => packed,
            Direction::Unpack => user,
        };
        let moved = usize::try_from(position).unwrap_or(usize::MAX);
        (code == 0).then_some(Round { found, expected, moved })
    }

    /// Calls `f(place in the memory, length, packed offset, basic type)` for each entry of the type map,
    /// in packing order.
    fn each(&self, frame: &Frame, f: &mut dyn FnMut(usize, usize, usize, Named)) -> Option<()> {
        let mut offset = 0;
        interp::for_each(self.datatype, self.count, &mut |displacement, len, named| {
            f((i128::from(displacement) - frame.low) as usize, len, offset, named);
            offset += len;
        })
        .ok()
    }

    /// Takes what the library lost inside of elements for what was expected, if it is known to lose
    /// that. Says whether anything differed there.
    fn forgive(&self, direction: Direction, frame: &Frame, round: &mut Round) -> bool {
        let mut differs = false;
        let (found, expected) = (&round.found, &mut round.expected);
        let _ = self.each(frame, &mut |at, len, offset, named| {
            let at = match direction {
                Direction::Pack => offset,
                Direction::Unpack => at,
            };
            for i in (0..len).filter(|&i| faults::loses(self.library, named, i)) {
                differs |= expected[at + i] != found[at + i];
                expected[at + i] = found[at + i];
            }
        });
        differs
    }

    /// Says which bytes are where they should not be.
    unsafe fn describe(
        &self,
        direction: Direction,
        frame: &Frame,
        total: usize,
        round: &Round,
        at: usize,
    ) -> String {
        let different = round.found.iter().zip(round.expected.iter()).filter(|(a, b)| a != b).count();
        // All digits of the byte that stands there, and of the one that should.
        let places = frame.len.max(total);
        let (mut found, mut expected) = (Some(0), Some(0));
        for k in 0..digits(places) {
            // SAFETY: as the caller promises.
            let round = unsafe { self.round(direction, frame, total, k) };
            let add = |sum: Option<usize>, byte: Option<u8>| {
                Some(sum? + usize::from(byte?.checked_sub(1)?) * BASE.pow(k))
            };
            found = add(found, round.as_ref().map(|r| r.found[at]));
            expected = add(expected, round.as_ref().map(|r| r.expected[at]));
        }
        let named = |place: Option<usize>| match (place, direction) {
            (None, _) => "nothing".to_owned(),
            (Some(place), Direction::Pack) => format!("displacement {}", frame.low + place as i128),
            (Some(place), Direction::Unpack) => format!("packed byte {place}"),
        };
        let (found, expected) = (named(found), named(expected));
        match direction {
            Direction::Pack => {
                format!("{different} bytes; packed byte {at} is that of {found} instead of {expected}")
            }
            Direction::Unpack => format!(
                "{different} bytes; at displacement {} is {found} instead of {expected}",
                frame.low + at as i128
            ),
        }
    }
}

fn first_difference(found: &[u8], expected: &[u8]) -> Option<usize> {
    // Whole memory is compared first, which is many times faster.
    if found == expected { None } else { found.iter().zip(expected).position(|(a, b)| a != b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Family;

    const MPICH: Library = Library { family: Family::Mpich, version: [5, 0, 2] };

    /// The handle of a planted library is a number of `PLANTED`.
    const PLANTED: [&str; 4] = ["right", "steps", "loses", "writes behind"];

    /// The places of 4 vectors of 3 ints, of which a library that steps wrongly takes instances 5 bytes
    /// nearer, and one that loses bytes leaves out the last bytes of 16.
    fn entries(handle: u64) -> Vec<(isize, usize)> {
        let step = if PLANTED[handle as usize] == "steps" { 67 } else { 72 };
        let len = if PLANTED[handle as usize] == "loses" { 10 } else { 16 };
        (0..4).flat_map(|i| (0..3).map(move |k| (i * step + k * 24 - 6, len))).collect()
    }

    unsafe extern "C-unwind" fn pack(
        user: *const c_void,
        _: c_int,
        handle: u64,
        packed: *mut c_void,
        _: c_int,
        position: *mut c_int,
        _: u64,
    ) -> c_int {
        for (i, (at, len)) in entries(handle).into_iter().enumerate() {
            // SAFETY: all entries lie in the memory of the test.
            unsafe {
                packed
                    .cast::<u8>()
                    .add(16 * i)
                    .copy_from_nonoverlapping(user.cast::<u8>().wrapping_offset(at), len);
            }
        }
        // SAFETY: a number to write to.
        unsafe { *position += 12 * 16 };
        0
    }

    unsafe extern "C-unwind" fn unpack(
        packed: *const c_void,
        _: c_int,
        position: *mut c_int,
        user: *mut c_void,
        _: c_int,
        handle: u64,
        _: u64,
    ) -> c_int {
        for (i, (at, len)) in entries(handle).into_iter().enumerate() {
            // SAFETY: all entries lie in the memory of the test.
            unsafe {
                user.cast::<u8>()
                    .wrapping_offset(at)
                    .copy_from_nonoverlapping(packed.cast::<u8>().add(16 * i), len);
            }
        }
        // SAFETY: a number to write to, and a byte of the reserve.
        unsafe {
            *position += 12 * 16;
            if PLANTED[handle as usize] == "writes behind" {
                *user.cast::<u8>().wrapping_offset(1000) = 1;
            }
        }
        0
    }

    fn compared(planted: &str, direction: Direction) -> Outcome {
        let t: Datatype = "hindexed([1,1,1],[-6,18,42],long_double)".parse().unwrap();
        let t = Datatype::resized(0, 72, &t).unwrap();
        let handle = PLANTED.iter().position(|&p| p == planted).unwrap() as u64;
        let (library, datatype, claimed) = (MPICH, &t, None);
        let instances = Instances { library, datatype, count: 4, handle, comm: 0, claimed, pack, unpack };
        // SAFETY: functions that know the handle and ask for nothing else.
        unsafe { instances.compare(direction) }
    }

    fn different(planted: &str, direction: Direction) -> (String, bool) {
        match compared(planted, direction) {
            Outcome::Different(Difference { what, is_lost_bytes }) => (what, is_lost_bytes),
            other => panic!("{planted} {direction}: {other:?}"),
        }
    }

    #[test]
    fn a_library_that_is_right_is_the_same() {
        assert_eq!(Direction::BOTH.map(|d| compared("right", d)), [Outcome::Same, Outcome::Same]);
    }

    #[test]
    fn wrong_places_are_named() {
        let (what, is_lost) = different("steps", Direction::Pack);
        assert!(!is_lost);
        assert!(
            what.ends_with("packed byte 48 is that of displacement 61 instead of displacement 66"),
            "{what}"
        );
        let (what, is_lost) = different("steps", Direction::Unpack);
        assert!(!is_lost);
        assert!(what.ends_with("at displacement 61 is packed byte 48 instead of nothing"), "{what}");
    }

    #[test]
    fn a_write_beyond_all_instances_is_a_difference() {
        assert_eq!(compared("writes behind", Direction::Pack), Outcome::Same);
        let (what, is_lost) = different("writes behind", Direction::Unpack);
        assert!(!is_lost && what.starts_with("1 bytes; at displacement 1000 is packed byte 0"), "{what}");
    }

    #[test]
    fn lost_bytes_of_elements_are_told_apart() {
        for direction in Direction::BOTH {
            assert!(different("loses", direction).1, "{direction}");
        }
    }

    #[test]
    fn types_at_addresses_are_compared_and_long_ones_are_not() {
        let frame = |text: &str, count| {
            let datatype: &Datatype = &text.parse().unwrap();
            let (library, claimed) = (MPICH, None);
            let instances = Instances { library, datatype, count, handle: 0, comm: 0, claimed, pack, unpack };
            instances.frame().map(|f| (f.low, f.len))
        };
        let address = 1_i64 << 46;
        let (low, len) = frame(&format!("hindexed([1,2],[{address},{}],int)", address + 64), 1).unwrap();
        assert!(low < i128::from(address) && low + len as i128 > i128::from(address) + 72);
        assert!(len < 1 << 20);
        assert!(frame(&format!("hindexed([1,1],[0,{address}],int)"), 1).is_none());
        assert!(frame("contiguous(2000000,double)", 64).is_none());
        // A library that steps by -27 instead of 9 stays inside.
        let (low, _) = frame("contiguous(3,resized(6,-9,contiguous(4,byte)))", 40).unwrap();
        assert!(low <= -27 * 40);
    }
}
