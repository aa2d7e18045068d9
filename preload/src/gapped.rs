//! Staged bytes with a gap in them, for Open MPI.
//!
//! Where both ends of a message are contiguous its ob1 fetches or takes as many bytes as were sent, and never compares them with what is expected
//! (RGET and PUT): a message that is longer than the receive overwrites what stands behind it. Derived types with gaps never take that path, and what is
//! staged must not either, on either side: a sender's stand-in protects receivers that do not convert, a receiver's its staging buffer. So there a
//! stand-in has two runs, the second of a few bytes, with a hole between them. Packed bytes are written without the hole, and its end is copied behind it.
//!
//! A message of such a type is cut into pieces at whole basic elements of the stand-in, bytes, and so anywhere inside elements of the receiver's type. An
//! Open MPI that does not convert joins the two halves of an element in 16 bytes: types with wider ones (`long double _Complex`) are sent as these, or by
//! the host.

use ddtc::datatype::{Combiner, Datatype};

use crate::guard::guard;
use crate::host::{HandleWord, Host};
use crate::own_types;

/// Bytes between the two runs: no fewer than the second one has, so that its two places do not overlap.
const HOLE: usize = 32;
/// Bytes of the second run, where runs are of bytes.
const TAIL: i64 = 16;

/// Where the packed bytes of an element of a stand-in stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gap {
    /// Packed bytes of an element.
    size: usize,
    /// How many of them are behind the hole: none where there is none.
    tail: usize,
}

/// Stands in the place of a type for the host: elements, their type, and where its gap is.
#[derive(Clone, Copy)]
pub(crate) struct StandIn {
    pub(crate) count: i64,
    pub(crate) datatype: HandleWord,
    pub(crate) gap: Gap,
}

impl StandIn {
    /// One without a gap.
    pub(crate) fn contiguous((count, datatype): (i64, HandleWord)) -> StandIn {
        StandIn { count, datatype, gap: Gap::NONE }
    }
}

impl Gap {
    pub(crate) const NONE: Gap = Gap { size: 0, tail: 0 };

    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self.tail == 0
    }

    /// Returns the bytes of memory for so many packed bytes, whole elements.
    #[inline]
    pub(crate) fn memory(self, packed: u64) -> u64 {
        if self.is_none() { packed } else { packed + packed / self.size as u64 * HOLE as u64 }
    }

    /// Returns where an element of `size` packed bytes begins, in bytes from that of number 0.
    #[inline]
    pub(crate) fn place(self, element: i64, size: i64) -> usize {
        (element * if self.is_none() { size } else { size + HOLE as i64 }) as usize
    }

    /// Returns the last bytes in memory of `size` packed bytes that end with an element: how far from their first they begin, and how many, at most `max_bytes`.
    pub(crate) fn end(self, elements: i64, size: i64, max_bytes: usize) -> (usize, usize) {
        let end = self.place(elements, size);
        let bytes = if self.is_none() { max_bytes.min(end) } else { max_bytes.min(self.tail) };
        (end - bytes, bytes)
    }

    /// Opens the gap of an element that was packed at `at`.
    ///
    /// # Safety
    /// The element and its hole must be in memory that may be written.
    #[inline]
    pub(crate) unsafe fn open(self, at: *mut u8) {
        if self.is_none() {
            return;
        }
        let end = at.wrapping_add(self.size - self.tail);
        // SAFETY: as the caller promises; the hole is no shorter than the second run, as `stand_in`
        // sees to, so the two places do not overlap.
        unsafe { end.wrapping_add(HOLE).copy_from_nonoverlapping(end, self.tail) }
    }

    /// Closes the gap of an element at `at`, to be unpacked. What was behind the hole stays there too.
    ///
    /// # Safety
    /// As [`Gap::open`].
    #[inline]
    pub(crate) unsafe fn close(self, at: *mut u8) {
        if self.is_none() {
            return;
        }
        let end = at.wrapping_add(self.size - self.tail);
        // SAFETY: as in `open`.
        unsafe { end.copy_from_nonoverlapping(end.wrapping_add(HOLE), self.tail) }
    }
}

/// Says whether a type has basic elements of more than `joined` bytes, which a receiver cannot join from two pieces.
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

/// Returns a stand-in of `count` elements of `size` bytes, each in two runs of a basic type of `width` bytes; `None`: the call is the host's.
pub(crate) fn stand_in(
    host: &Host,
    count: i64,
    size: i64,
    (basic, width): (HandleWord, i64),
) -> Option<StandIn> {
    // A division takes as long as packing a short message.
    let (n, rest) = if width == 1 { (size, 0) } else { (size / width, size % width) };
    let behind = if width == 1 { TAIL.min(n / 2) } else { 1 };
    // One element has no place for a gap, and a second run longer than the hole would overlap
    // itself.
    if n < 2 || rest != 0 || behind * width > HOLE as i64 {
        return None;
    }
    let gap = Gap { size: usize::try_from(size).ok()?, tail: (behind * width) as usize };
    let key = size as u128 | u128::from(basic) << 64;
    if let Some(known) = own_types::near(key) {
        return Some(StandIn { count, datatype: known, gap });
    }
    let made = own_types::known(key).or_else(|| {
        let runs = [(basic, (n - behind).try_into().ok()?), (basic, behind.try_into().ok()?)];
        let made = guard(|| {
            own_types::structure(host, &runs, &[0, (n - behind) as isize * width as isize + HOLE as isize])
        });
        own_types::keep(host, key, own_types::commit(host, made??)?)
    })?;
    own_types::keep_near(key, made.handle());
    Some(StandIn { count, datatype: made.handle(), gap })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_bytes_are_parted_and_joined() {
        let gap = Gap { size: 50, tail: 16 };
        assert_eq!((gap.memory(150), gap.place(2, 50)), (150 + 96, 164));
        let packed: Vec<u8> = (1..=50).collect();
        let mut memory = [packed.clone(), vec![0; 32]].concat();
        // SAFETY: room for an element and its hole.
        unsafe { gap.open(memory.as_mut_ptr()) };
        assert_eq!((&memory[..34], &memory[66..]), (&packed[..34], &packed[34..]));
        memory[34..66].fill(0);
        // SAFETY: as above.
        unsafe { gap.close(memory.as_mut_ptr()) };
        assert_eq!(memory[..50], packed);
        assert_eq!((Gap::NONE.memory(7), Gap::NONE.place(3, 7)), (7, 21));
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
