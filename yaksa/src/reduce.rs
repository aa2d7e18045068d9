//! Calls that combine what they move with what is there: `there = op(moved, there)`, element by element in the order of the stream.

use ddtc::internal::kind::{Direction, Op};
use ddtc::internal::methods::*;

use crate::abi::{Code, Result};
use crate::call::Call;
use crate::compile::{committed, reduction};
use crate::node::Facts;
use crate::recent::with_node;

/// Bytes of a stream that are packed before they are combined with another one.
const CHUNK: u64 = 16 << 10;

/// Combines by `op`.
///
/// # Safety
/// The caller of the export vouches for both sides.
pub(crate) unsafe fn combine(call: &Call, facts: &Facts, op: Op) -> Result<()> {
    let range = call.range.clone();
    with_node(call.ty, |node| {
        let t = node.datatype()?;
        // Half an element is no value.
        if t.whole_elements(range.start as i64) as u64 != range.start {
            return Err(Code::Internal);
        }
        match call.direction {
            Direction::Unpack => {
                let applied = reduction(node, op, false)?;
                // SAFETY: `range` lies inside the stream and between elements.
                unsafe { applied.range_raw(Direction::Unpack, call.user, call.count, call.packed, range)? };
                Ok(())
            }
            // The stream is what is written: as instances of this type, whose data begin where the stream does.
            Direction::Pack if facts.contiguous() => {
                let start = range.start as i64;
                let from = call.user.wrapping_offset(facts.true_lb.wrapping_add(start) as isize);
                let to =
                    call.packed.wrapping_offset(start.wrapping_add(facts.true_lb).wrapping_neg() as isize);
                let applied = reduction(node, op, false)?;
                // SAFETY: as above: byte k of the stream of the instances at `to` is byte k - start of the caller's.
                unsafe { applied.range_raw(Direction::Unpack, to, call.count, from, range)? };
                Ok(())
            }
            Direction::Pack => {
                let (applied, committed) = (reduction(node, op, true)?, committed(node)?);
                let to = call.packed.wrapping_sub(range.start as usize);
                let mut chunk = [0u8; CHUNK as usize];
                let mut at = range.start;
                while at < range.end {
                    let most = range.end.min(at + CHUNK);
                    let end = if most == range.end { most } else { t.whole_elements(most as i64) as u64 };
                    // SAFETY: the part of the range fits the chunk; the instances of the stream's own type at `to` are the
                    // caller's bytes of it.
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
