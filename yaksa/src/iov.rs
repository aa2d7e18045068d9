//! Lists of the pieces of memory that instances consist of.
//!
//! What is contiguous for any count is one piece, whatever the count; otherwise there are as many pieces as instances times the pieces of one, in the order of
//! the packed stream, each of whole elements.

use std::ffi::{c_char, c_void};

use crate::abi::{Code, Result, export, out, require};
use crate::list::{self, Pieces};
use crate::node::Facts;
use crate::recent::{facts, with_facts, with_node};
use crate::startup::running;

/// Pieces of `count` instances. What has no data is one empty piece.
fn number(facts: &Facts, count: usize) -> Result<usize> {
    if facts.contiguous() || facts.size == 0 {
        return Ok(1);
    }
    usize::try_from(facts.pieces()).ok().and_then(|n| n.checked_mul(count)).ok_or(Code::Internal)
}

/// Packed bytes of `count` instances.
fn packed(facts: &Facts, count: usize) -> Result<i64> {
    i64::try_from(count).ok().and_then(|n| n.checked_mul(facts.size)).ok_or(Code::Internal)
}

/// Where pieces are written: room for `left` > 0 of them.
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
        // SAFETY: there is room, as whoever makes this vouches; nobody asks for a piece after the last one.
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
            // Fewer than all, so the instance that the end lies in is there.
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
