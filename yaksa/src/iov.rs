//! Functions that list the contiguous pieces of memory which instances of a type occupy, as arrays
//! of `iovec`.
//!
//! A type that is contiguous for any count is listed as one piece, and so is a type without data.
//! For all other types, the number of pieces is the number of pieces of one instance times the
//! number of instances. The pieces are listed in the order of their packed bytes. Each piece
//! consists of whole basic elements.

use std::ffi::{c_char, c_void};

use crate::abi::{Code, Result, export, out, require};
use crate::list::{self, Pieces};
use crate::node::Facts;
use crate::recent::{facts, with_facts, with_node};
use crate::startup::running;

/// Returns the number of contiguous pieces of memory that `count` instances of a type occupy.
/// Instances of a type without data count as one empty piece. Fails with [`Code::Internal`] if the
/// number does not fit in a `usize`.
fn number(facts: &Facts, count: usize) -> Result<usize> {
    if facts.contiguous() || facts.size == 0 {
        return Ok(1);
    }
    usize::try_from(facts.pieces()).ok().and_then(|n| n.checked_mul(count)).ok_or(Code::Internal)
}

/// Returns the number of packed bytes of `count` instances of a type. Fails with [`Code::Internal`]
/// if this number does not fit in 63 bits.
fn packed(facts: &Facts, count: usize) -> Result<i64> {
    i64::try_from(count).ok().and_then(|n| n.checked_mul(facts.size)).ok_or(Code::Internal)
}

/// Receiver that writes pieces to the `iovec` array of the caller. The next piece is written to
/// `next`, and there is room for `left` pieces from there on. `left` is not 0 when a piece is
/// written.
struct List {
    next: *mut libc::iovec,
    left: usize,
}

impl list::Pieces for List {
    #[inline]
    fn one(&mut self, at: i64, length: i64) -> bool {
        let piece = libc::iovec {
            iov_base: std::ptr::with_exposed_provenance_mut::<c_void>(at as usize),
            iov_len: length as usize,
        };
        // SAFETY: `yaksa_iov` makes this value with room for `left` entries, and uses it only if
        // `left` is not 0. When `left` becomes 0, this function returns false, and the enumeration
        // passes no further piece. `write_unaligned` requires no alignment.
        unsafe {
            self.next.write_unaligned(piece);
            self.next = self.next.wrapping_add(1);
        }
        self.left -= 1;
        self.left > 0
    }
}

export! {
    fn yaksa_iov_len(count: usize, ty: u64, length: *mut usize) {
        let length = out(length)?;
        running()?;
        length.set(with_facts(ty, |facts| number(facts, count))??);
        Ok(())
    }

    fn yaksa_iov_len_max(count: usize, ty: u64, max_bytes: usize, length: *mut usize, bytes: *mut usize) {
        let (length, bytes) = (out(length)?, out(bytes)?);
        running()?;
        let facts = facts(ty)?;
        let total = packed(&facts, count)?;
        if max_bytes as u64 >= total as u64 {
            length.set(number(&facts, count)?);
            bytes.set(total as usize);
        } else if facts.contiguous() {
            length.set(0);
            bytes.set(0);
        } else {
            // `max_bytes` is less than `total`, the number of packed bytes of all instances. So
            // packed byte `max_bytes` belongs to one of the instances, and the size of the type, by
            // which the next line divides, is not 0.
            let (whole, rest) = (max_bytes as i64 / facts.size, max_bytes as i64 % facts.size);
            let (pieces, inside) = with_node(ty, |node| list::within(node, rest))?;
            length.set((whole as u64 * facts.pieces() + pieces) as usize);
            bytes.set((whole * facts.size + inside) as usize);
        }
        Ok(())
    }

    fn yaksa_iov(
        buffer: *const c_char, count: usize, ty: u64, from: usize, list: *mut libc::iovec, max: usize,
        actual: *mut usize,
    ) {
        let actual = out(actual)?;
        running()?;
        let facts = facts(ty)?;
        let total = number(&facts, count)?;
        let bytes = packed(&facts, count)?;
        let room = max.min(total.saturating_sub(from));
        require(room == 0 || !list.is_null())?;
        let mut pieces = List { next: list, left: room };
        let at = buffer.expose_provenance() as i64;
        if room > 0 {
            if facts.contiguous() || facts.size == 0 {
                pieces.one(at.wrapping_add(facts.true_lb), bytes);
            } else {
                with_node(ty, |node| {
                    list::list(node, at, count as u64, from as u64, &mut pieces);
                })?;
            }
        }
        actual.set(room - pieces.left);
        Ok(())
    }
}
