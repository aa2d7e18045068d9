//! Calls that combine the moved elements with those at the destination: `there = op(moved, there)`.
//! The elements are combined one after the other in the order of the packed stream.

use ddtc::internal::kind::{Direction, Op};
use ddtc::internal::methods::*;

use crate::abi::{Code, Result};
use crate::call::Call;
use crate::compile::{committed, reduction};
use crate::node::Facts;
use crate::recent::with_node;

/// Maximum number of bytes that are packed before they are combined with the destination.
const CHUNK: u64 = 16 << 10;

/// Combines the moved elements with those at the destination by `op`. Fails with [`Code::Internal`]
/// if the range begins inside an element, and with [`Code::NotSupported`] if `op` is not defined
/// for a type of the elements.
///
/// # Safety
/// `call` must have been checked, and the bytes of its range must be valid in the instances at
/// `call.user` and at `call.packed`: initialized and readable on both sides, and writable at the
/// destination. The two sides must not overlap.
pub(crate) unsafe fn combine(call: &Call, facts: &Facts, op: Op) -> Result<()> {
    let range = call.range.clone();
    with_node(call.ty, |node| {
        let t = node.datatype()?;
        // A reduction needs the value of an element, so the range must not begin inside one.
        if t.whole_elements(range.start as i64) as u64 != range.start {
            return Err(Code::Internal);
        }
        match call.direction {
            Direction::Unpack => {
                let applied = reduction(node, op, false)?;
                // SAFETY: `range` lies inside the stream, since the call has been checked, and
                // begins and ends between elements. The caller promises that the packed bytes can
                // be read, and the elements of the instances read and written.
                unsafe { applied.range_raw(Direction::Unpack, call.user, call.count, call.packed, range)? };
                Ok(())
            }
            // The engine has reductions only for unpacking. Here the packed stream is the
            // destination. The type is contiguous, so the two sides can change roles: the user's
            // instances are unpacked as if they were a packed stream, and `to` is the address of the
            // instances as which the bytes of the real stream are treated.
            Direction::Pack if facts.contiguous() => {
                let start = range.start as i64;
                let from = call.user.wrapping_offset(facts.true_lb.wrapping_add(start) as isize);
                let to =
                    call.packed.wrapping_offset(start.wrapping_add(facts.true_lb).wrapping_neg() as isize);
                let applied = reduction(node, op, false)?;
                // SAFETY: `range` lies inside the stream and between elements. Both `from` and the
                // instances at `to` are the bytes that the caller vouches for: byte k of the stream
                // of the instances at `to` is byte k - start at `call.packed`.
                unsafe { applied.range_raw(Direction::Unpack, to, call.count, from, range)? };
                Ok(())
            }
            Direction::Pack => {
                // The destination is the stream again, but the user's instances have gaps. The
                // instances are packed in chunks of whole elements. Each chunk is then unpacked to
                // the stream with the reduction. For this step, the stream counts as instances of a
                // type without gaps.
                let (applied, committed) = (reduction(node, op, true)?, committed(node)?);
                let to = call.packed.wrapping_sub(range.start as usize);
                let mut chunk = [0u8; CHUNK as usize];
                let mut at = range.start;
                while at < range.end {
                    let most = range.end.min(at + CHUNK);
                    let end = if most == range.end { most } else { t.whole_elements(most as i64) as u64 };
                    // SAFETY: `at..end` lies inside `range` and is at most `CHUNK` bytes long, so
                    // it fits in `chunk`. The caller vouches for these bytes of the instances at
                    // `user`. The type of `applied` has the elements of the stream without gaps, so
                    // its bytes `at..end` at `to` are those of the caller's packed memory.
                    unsafe {
                        committed.range_raw(
                            Direction::Pack,
                            call.user,
                            call.count,
                            chunk.as_mut_ptr(),
                            at..end,
                        );
                        applied.range_raw(Direction::Unpack, to, call.count, chunk.as_mut_ptr(), at..end)?;
                    }
                    at = end;
                }
                Ok(())
            }
        }
    })?
}
