//! Comparison of the places from and to which an MPI library moves the bytes of a datatype with
//! those of the datatype's definition.
//!
//! Each byte that is moved shows where it came from: byte `i` of a pattern holds one digit of the
//! number `i`, and the library moves one pattern for each digit. So no two places can be confused.
//!
//! The library works on memory of this module and never on the program's. That memory has room for
//! all instances, and a reserve on each side that is larger than the span of all instances. An
//! inaccessible page lies at each end. The reserve is compared too, so a write to a wrong place in
//! the reserve is found.
#![allow(unsafe_code)] // Calls the functions of an MPI library.

use std::ffi::{c_int, c_void};

use ddtc::internal::datatype::{Datatype, Named};
use ddtc::internal::exec::interp;
use ddtc::internal::kind::Direction;

use crate::faults;
use crate::fenced::Fenced;
use crate::policy::Library;

/// C type of `MPI_Pack`, with handles as 64-bit words (see [`crate::abi`]).
pub type PackFn =
    unsafe extern "C-unwind" fn(*const c_void, c_int, u64, *mut c_void, c_int, *mut c_int, u64) -> c_int;
/// C type of `MPI_Unpack`, with handles as 64-bit words (see [`crate::abi`]).
pub type UnpackFn =
    unsafe extern "C-unwind" fn(*const c_void, c_int, *mut c_int, *mut c_void, c_int, u64, u64) -> c_int;

/// Maximum size of the memory that a comparison maps for the instances and their reserve, in bytes.
pub const MAX_BYTES: i128 = 256 << 20;
/// Bytes of reserve on each side in addition to the span of all instances.
const RESERVE: i128 = 4 << 10;
/// Base of the number system in which places are written. Its digits are 1 to 255, because 0 marks
/// memory that was not written.
const BASE: usize = 255;

/// Instances of a datatype in an MPI library, and the library's functions that move them.
#[derive(Clone, Copy, Debug)]
pub struct Instances<'t> {
    /// The MPI library. It decides which differences are known faults.
    pub library: Library,
    /// The datatype, whose type map is taken for right.
    pub datatype: &'t Datatype,
    /// Number of instances.
    pub count: u64,
    /// The library's committed handle of the datatype.
    pub handle: u64,
    /// A communicator of the library.
    pub comm: u64,
    /// True lower bound and true extent according to the library; `None` if it was not asked.
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
    /// True if the only differences are in bytes inside elements that the library is known to lose.
    pub is_lost_bytes: bool,
}

/// Result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The library moves all bytes as the type map says.
    Same,
    /// The library moves some byte otherwise.
    Different(Difference),
    /// Nothing was compared: there are no bytes or too many, memory is lacking, or the library
    /// returned an error.
    NotCompared,
}

/// Size of the memory for all instances and their reserve, in bytes, and the displacement of its
/// first byte from the origin of the first instance.
struct Frame {
    low: i128,
    len: usize,
}

/// Result of moving one pattern.
struct Round {
    /// Contents of the memory to which the library writes, as they are after the call.
    found: Fenced,
    /// Contents that this memory must have according to the type map.
    expected: Fenced,
    /// Number of bytes by which the library advanced the position.
    moved: usize,
}

/// Returns the number of digits that suffice to give `places` places different numbers.
fn digits(places: usize) -> u32 {
    (1..).find(|&n| BASE.checked_pow(n).is_none_or(|all| all >= places)).unwrap_or(1)
}

/// Writes digit `k` of each byte's place into the byte. The result is a periodic pattern: all
/// digits in ascending order, each repeated `BASE` to the power of `k` times.
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
    /// Moves all instances by the library's function, and compares the result with the type map.
    ///
    /// # Safety
    /// `pack` and `unpack` must be the functions of an initialized MPI library, `handle` a
    /// committed datatype of that library that is equal to `datatype`, and `comm` a valid
    /// communicator of it.
    pub unsafe fn compare(&self, direction: Direction) -> Outcome {
        // SAFETY: the caller keeps the contract of `compare`, which is that of `compared`.
        unsafe { self.compared(direction) }.unwrap_or(Outcome::NotCompared)
    }

    /// As [`Instances::compare`], with `None` if nothing can be compared.
    ///
    /// # Safety
    /// As [`Instances::compare`].
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
            // SAFETY: the caller keeps the contract of `compare`, which is that of `round`.
            let mut round = unsafe { self.round(direction, &frame, total, k) }?;
            if round.moved != total {
                let what = format!("the position moved by {}, not {total}", round.moved);
                return Some(Outcome::Different(Difference { what, is_lost_bytes: false }));
            }
            if round.found[..] != round.expected[..] {
                differs_in_lost_bytes |= self.exempt_lost_bytes(direction, &frame, &mut round);
            }
            if let Some(at) = first_difference(&round.found, &round.expected) {
                // SAFETY: the caller keeps the contract of `compare`, which is that of `describe`.
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

    /// Returns the size and place of the memory for all instances with a reserve on both sides;
    /// `None` if the size is more than [`MAX_BYTES`].
    ///
    /// The reserve on each side has [`RESERVE`] bytes and, for each instance, the length of an
    /// instance plus the absolute value of the extent. The length of an instance includes the true
    /// bounds according to the library ([`Instances::claimed`]). A library that takes a wrong step
    /// between or inside instances errs by at most that number of bytes for each instance, so its
    /// accesses stay in the reserve.
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
        // The first byte of the memory is at the beginning of a page. Its displacement is rounded
        // down to a multiple of 64, so that displacement 0 is aligned to 64 bytes.
        let low = low - low.rem_euclid(64);
        (high - low <= MAX_BYTES).then_some(Frame { low, len: (high - low) as usize })
    }

    /// Moves the pattern of digit `k` once by the library's function and once by the type map.
    /// `total` is the number of bytes of all instances. Returns `None` if memory is lacking, a
    /// number is too large for the library's functions, or the library returns an error.
    ///
    /// # Safety
    /// As [`Instances::compare`].
    unsafe fn round(&self, direction: Direction, frame: &Frame, total: usize, k: u32) -> Option<Round> {
        let (count, size) = (c_int::try_from(self.count).ok()?, c_int::try_from(total).ok()?);
        let (mut user, mut packed) = (Fenced::new(frame.len)?, Fenced::new(total)?);
        let mut position: c_int = 0;
        // Address of displacement 0 of the first instance, which may lie outside of the memory.
        let origin = |user: *mut u8| user.wrapping_offset(-frame.low as isize).cast::<c_void>();
        let (mut expected, code);
        match direction {
            Direction::Pack => {
                fill(&mut user, k);
                expected = Fenced::new(total)?;
                let mut rest = &mut expected[..];
                self.for_each_entry(frame, &mut |at, len, _, _| {
                    let (bytes, after) = std::mem::take(&mut rest).split_at_mut(len);
                    bytes.copy_from_slice(&user[at..at + len]);
                    rest = after;
                })?;
                let (from, to) = (origin(user.as_mut_ptr()), packed.as_mut_ptr().cast());
                // SAFETY: the caller promises that function, datatype and communicator belong to
                // one initialized library. The memory covers all instances, and `packed` has room
                // for `size` bytes.
                code =
                    unsafe { (self.pack)(from, count, self.handle, to, size, &raw mut position, self.comm) };
            }
            Direction::Unpack => {
                fill(&mut packed, k);
                expected = Fenced::new(frame.len)?;
                self.for_each_entry(frame, &mut |at, len, offset, _| {
                    expected[at..at + len].copy_from_slice(&packed[offset..offset + len]);
                })?;
                let (from, to) = (packed.as_ptr().cast(), origin(user.as_mut_ptr()));
                // SAFETY: the caller promises that function, datatype and communicator belong to
                // one initialized library. The memory covers all instances, and `packed` has `size`
                // bytes.
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

    /// Calls `f` for each entry of the type map of all instances, in packing order. The arguments
    /// are the offset of the entry in the memory, its length in bytes, its offset in the packed
    /// bytes, and its basic type.
    fn for_each_entry(&self, frame: &Frame, f: &mut dyn FnMut(usize, usize, usize, Named)) -> Option<()> {
        let mut offset = 0;
        interp::for_each(self.datatype, self.count, &mut |displacement, len, named| {
            f((i128::from(displacement) - frame.low) as usize, len, offset, named);
            offset += len;
        })
        .ok()
    }

    /// Makes the bytes that the library is known to lose inside elements equal, by copying them
    /// from `round.found` to `round.expected`. Returns true if any of these bytes differed.
    fn exempt_lost_bytes(&self, direction: Direction, frame: &Frame, round: &mut Round) -> bool {
        let mut differs = false;
        let (found, expected) = (&round.found, &mut round.expected);
        let _ = self.for_each_entry(frame, &mut |at, len, offset, named| {
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

    /// Returns a description of the difference at byte `at` of `round`. It says how many bytes
    /// differ in all, from which place byte `at` came, and from which place it should have come.
    ///
    /// # Safety
    /// As [`Instances::compare`].
    unsafe fn describe(
        &self,
        direction: Direction,
        frame: &Frame,
        total: usize,
        round: &Round,
        at: usize,
    ) -> String {
        let different = round.found.iter().zip(round.expected.iter()).filter(|(a, b)| a != b).count();
        // One pattern shows one digit of a place. So the pattern of every digit is moved, to find
        // out from which place the byte at `at` came and from which place it should have come.
        let places = frame.len.max(total);
        let (mut found, mut expected) = (Some(0), Some(0));
        for k in 0..digits(places) {
            // SAFETY: the caller keeps the contract of `compare`, which is that of `round`.
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
    // Comparing the slices as a whole is many times faster than comparing byte by byte.
    if found == expected { None } else { found.iter().zip(expected).position(|(a, b)| a != b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Family;

    const MPICH: Library = Library::new(Family::Mpich, [5, 0, 2]);

    /// Imitated MPI libraries, right and with planted faults. A handle is the index of one of them.
    const PLANTED: [&str; 4] = ["right", "steps", "loses", "writes after"];

    /// Returns the displacements and lengths of the elements of a datatype as one of the imitated
    /// libraries moves them: 3 elements of 16 bytes in each of 4 instances. The library "steps"
    /// places instances 5 bytes closer to each other, and the library "loses" moves only the first
    /// 10 bytes of each element.
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
            // SAFETY: the packed bytes have 16 bytes for each entry, and all entries lie in the
            // memory for the instances and their reserve.
            unsafe {
                packed
                    .cast::<u8>()
                    .add(16 * i)
                    .copy_from_nonoverlapping(user.cast::<u8>().wrapping_offset(at), len);
            }
        }
        // SAFETY: `position` points to the caller's `c_int`.
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
            // SAFETY: the packed bytes have 16 bytes for each entry, and all entries lie in the
            // memory for the instances and their reserve.
            unsafe {
                user.cast::<u8>()
                    .wrapping_offset(at)
                    .copy_from_nonoverlapping(packed.cast::<u8>().add(16 * i), len);
            }
        }
        // SAFETY: `position` points to the caller's `c_int`. Displacement 1000 lies in the reserve
        // of more than 4096 bytes after the instances.
        unsafe {
            *position += 12 * 16;
            if PLANTED[handle as usize] == "writes after" {
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
        // SAFETY: `pack` and `unpack` above accept the handle and use no other property of the
        // datatype or communicator.
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
        assert_eq!(compared("writes after", Direction::Pack), Outcome::Same);
        let (what, is_lost) = different("writes after", Direction::Unpack);
        assert!(!is_lost && what.starts_with("1 bytes; at displacement 1000 is packed byte 0"), "{what}");
    }

    #[test]
    fn lost_bytes_of_elements_are_distinguished() {
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
        // In this type, the right step from instance to instance is 9 bytes, but MPICH steps by -27
        // bytes. The memory must contain all 40 instances at that step too.
        let (low, _) = frame("contiguous(3,resized(6,-9,contiguous(4,byte)))", 40).unwrap();
        assert!(low <= -27 * 40);
    }
}
