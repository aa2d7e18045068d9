//! Substitute datatypes for Open MPI that have a gap in the staged bytes.
//!
//! If both ends of a message are contiguous, ob1 of Open MPI may read or write as many bytes as
//! were sent (its RGET and PUT protocols), and never compares their number with the number that the
//! receiver expects. A message that is longer than the receive then overwrites the memory after the
//! receive buffer. Open MPI never moves derived types with gaps by these protocols, and must not
//! move staged bytes by them either. A gap in the sender's substitute datatype protects receivers
//! that do not convert, and a gap in the receiver's substitute datatype protects its staging
//! buffer. So under Open MPI the substitute datatype of a message, or of an instance in a
//! collective call, has two runs with a hole between them, and the second run has only a few bytes.
//! The packed bytes are written without the hole, and then their last bytes are copied to the place
//! after the hole.
//!
//! Open MPI cuts a message of a substitute datatype with a gap into pieces between whole basic
//! elements of that datatype. These basic elements are usually bytes, so a piece may end anywhere
//! inside an element of the receiver's type. If the receiver does not convert, its Open MPI joins
//! the two halves of the element in a buffer of 16 bytes, which is too short for wider elements
//! (`long double _Complex`). So a type with wider elements is sent as these elements, or its
//! message is bypassed.

use ddtc::internal::datatype::{Combiner, Datatype};
use ddtc::internal::methods::*;

use crate::guard::guard;
use crate::host::{HandleWord, Host};
use crate::own_types;

/// Length in bytes of the hole between the two runs of a substitute datatype. The second run is no
/// longer than the hole. So the bytes of the second run can be copied from the place directly after
/// the first run to the place after the hole without an overlap.
const HOLE: usize = 32;
/// Maximum length in bytes of the second run of a substitute datatype whose basic elements are
/// bytes.
const TAIL: i64 = 16;

/// Lengths that give the place of the gap in each element of a substitute datatype.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gap {
    /// Number of packed bytes of an element of the substitute datatype; 0 if it has no hole.
    size: usize,
    /// Number of packed bytes of an element that are after its hole; 0 if the element has no hole.
    tail: usize,
}

/// Arguments that the MPI library gets for a staging buffer: the number of elements, the substitute
/// datatype, and the gap in each element.
#[derive(Clone, Copy)]
pub(crate) struct Substitute {
    pub(crate) count: i64,
    pub(crate) datatype: HandleWord,
    pub(crate) gap: Gap,
}

impl Substitute {
    /// Returns a substitute without a gap, from the number of elements and their datatype.
    pub(crate) fn contiguous((count, datatype): (i64, HandleWord)) -> Substitute {
        Substitute { count, datatype, gap: Gap::NONE }
    }
}

impl Gap {
    pub(crate) const NONE: Gap = Gap { size: 0, tail: 0 };

    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self.tail == 0
    }

    /// Returns the number of bytes that `packed` packed bytes take in a staging buffer, holes
    /// included. If there is a gap, `packed` is the packed size of a whole number of elements.
    #[inline]
    pub(crate) fn memory(self, packed: u64) -> u64 {
        if self.is_none() { packed } else { packed + packed / self.size as u64 * HOLE as u64 }
    }

    /// Returns the offset in bytes from element 0 to the element with index `element` in a staging
    /// buffer whose elements have `size` packed bytes each.
    #[inline]
    pub(crate) fn offset(self, element: i64, size: i64) -> usize {
        (element * if self.is_none() { size } else { size + HOLE as i64 }) as usize
    }

    /// Returns the place of the last bytes of `elements` elements of `size` packed bytes in a
    /// staging buffer: the offset of these bytes from the first element, and their number. The
    /// number is at most `max_bytes`, and at most the number of bytes after the last hole.
    pub(crate) fn end(self, elements: i64, size: i64, max_bytes: usize) -> (usize, usize) {
        let end = self.offset(elements, size);
        let bytes = if self.is_none() { max_bytes.min(end) } else { max_bytes.min(self.tail) };
        (end - bytes, bytes)
    }

    /// Opens the gap in an element that was packed without the gap at `at`: copies the bytes that
    /// belong after the gap to their place.
    ///
    /// # Safety
    /// The element and its hole must be in memory that may be read and written.
    #[inline]
    pub(crate) unsafe fn open(self, at: *mut u8) {
        if self.is_none() {
            return;
        }
        let end = at.wrapping_add(self.size - self.tail);
        // SAFETY: the element and its hole may be written, as the caller promises. The hole is no
        // shorter than the second run, as `substitute` ensures, so the two places do not overlap.
        unsafe { end.wrapping_add(HOLE).copy_from_nonoverlapping(end, self.tail) }
    }

    /// Closes the gap of an element at `at`, so that the element can be unpacked: copies the bytes
    /// after the hole to the place before the hole. The bytes after the hole keep their values.
    ///
    /// # Safety
    /// The element and its hole must be in memory that may be read and written.
    #[inline]
    pub(crate) unsafe fn close(self, at: *mut u8) {
        if self.is_none() {
            return;
        }
        let end = at.wrapping_add(self.size - self.tail);
        // SAFETY: the element and its hole may be written, as the caller promises. The hole is no
        // shorter than the second run, as `substitute` ensures, so the two places do not overlap.
        unsafe { end.copy_from_nonoverlapping(end.wrapping_add(HOLE), self.tail) }
    }
}

/// Returns true if a type has basic elements of more than `joined` bytes. If the MPI library cuts a
/// message inside such an element, a receiver that does not convert cannot join the two pieces of
/// the element.
pub(crate) fn has_wide_elements(t: &Datatype, joined: i64) -> bool {
    let wide = |t: &Datatype| match t.combiner() {
        Combiner::Named(named) => named.pieces().iter().any(|&(_, bytes)| bytes > joined),
        Combiner::F90Real { .. } | Combiner::F90Complex { .. } | Combiner::F90Integer { .. } => {
            t.size() > joined
        }
        _ => false,
    };
    t.nodes().any(wide)
}

/// Returns a substitute of `count` elements of `size` packed bytes each. The datatype of an element
/// has two runs with a hole between them. Both runs consist of elements of the basic type `basic`,
/// of `width` bytes each. Returns `None` if there is no such datatype; then the buffer is bypassed.
pub(crate) fn substitute(
    host: &Host,
    count: i64,
    size: i64,
    (basic, width): (HandleWord, i64),
) -> Option<Substitute> {
    // If the basic elements are bytes, the division is avoided, since it takes as long as packing a
    // short message.
    let (n, rest) = if width == 1 { (size, 0) } else { (size / width, size % width) };
    let after_gap = if width == 1 { TAIL.min(n / 2) } else { 1 };
    // An element that is a single basic element has no place for a gap. If the second run were
    // longer than the hole, the places between which its bytes are copied would overlap.
    if n < 2 || rest != 0 || after_gap * width > HOLE as i64 {
        return None;
    }
    let gap = Gap { size: usize::try_from(size).ok()?, tail: (after_gap * width) as usize };
    let key = size as u128 | u128::from(basic) << 64;
    if let Some(known) = own_types::near(key) {
        return Some(Substitute { count, datatype: known, gap });
    }
    let made = own_types::known(key).or_else(|| {
        let runs = [(basic, (n - after_gap).try_into().ok()?), (basic, after_gap.try_into().ok()?)];
        let made = guard(|| {
            own_types::structure(host, &runs, &[0, (n - after_gap) as isize * width as isize + HOLE as isize])
        });
        own_types::keep(host, key, own_types::commit(host, made??)?)
    })?;
    own_types::keep_near(key, made.handle());
    Some(Substitute { count, datatype: made.handle(), gap })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_bytes_are_parted_and_joined() {
        let gap = Gap { size: 50, tail: 16 };
        assert_eq!((gap.memory(150), gap.offset(2, 50)), (150 + 96, 164));
        let packed: Vec<u8> = (1..=50).collect();
        let mut memory = [packed.clone(), vec![0; 32]].concat();
        // SAFETY: `memory` has room for an element of 50 bytes and its hole of 32.
        unsafe { gap.open(memory.as_mut_ptr()) };
        assert_eq!((&memory[..34], &memory[66..]), (&packed[..34], &packed[34..]));
        memory[34..66].fill(0);
        // SAFETY: `memory` has room for an element of 50 bytes and its hole of 32.
        unsafe { gap.close(memory.as_mut_ptr()) };
        assert_eq!(memory[..50], packed);
        assert_eq!((Gap::NONE.memory(7), Gap::NONE.offset(3, 7)), (7, 21));
    }

    #[test]
    fn wide_elements_are_found_wherever_they_are() {
        for (text, wide) in [
            ("vector(4,1,2,c_double_complex)", false),
            ("vector(4,1,2,long_double)", false),
            ("struct([1,1],[0,8],[int,vector(2,1,2,c_long_double_complex)])", true),
            ("contiguous(3,complex32)", true),
        ] {
            assert_eq!(has_wide_elements(&text.parse().unwrap(), 16), wide, "{text}");
        }
    }
}
