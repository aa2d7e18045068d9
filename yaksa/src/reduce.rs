//! Packing and unpacking with a reduction: each moved element is combined with the element that is
//! already at its destination. The result, `op(moved, old)`, replaces this old element. The
//! elements are combined one after the other in the order of the packed data.

use ddtc::internal::kind::{Direction, Op};
use ddtc::internal::methods::*;

use crate::abi::{Code, Result};
use crate::call::Call;
use crate::compile::{committed, reduction};
use crate::node::Facts;
use crate::recent::with_node;

/// Maximum number of bytes that are packed to a temporary buffer before they are combined with the
/// destination.
const CHUNK: u64 = 16 << 10;

/// Packs or unpacks the bytes of a call, and combines each moved element with the element at its
/// destination by `op`. Fails with [`Code::Internal`] if the range begins inside an element, and
/// with [`Code::NotSupported`] if `op` is not defined for the basic type of one of the elements.
///
/// # Safety
/// The arguments in `call` must have been checked, as [`Call`] says. The bytes to be moved are in
/// one of two memories, the instances at `call.user` and the packed data at `call.packed`, and are
/// combined with the bytes in the other one. In both memories, these bytes must be initialized and
/// readable, and those at the destination also writable. The two memories must not overlap.
pub(crate) unsafe fn combine(call: &Call, facts: &Facts, op: Op) -> Result<()> {
    let range = call.range.clone();
    with_node(call.ty, |node| {
        let t = node.datatype()?;
        // A reduction needs the whole value of each element, so the range must not begin inside an
        // element.
        if t.whole_elements(range.start as i64) as u64 != range.start {
            return Err(Code::Internal);
        }
        match call.direction {
            Direction::Unpack => {
                let applied = reduction(node, op, false)?;
                // SAFETY: the call has been checked, so `range` lies inside the packed bytes of all
                // instances. It begins and ends between elements. The caller promises that the
                // packed bytes can be read, and the elements of the instances read and written.
                unsafe { applied.range_raw(Direction::Unpack, call.user, call.count, call.packed, range)? };
                Ok(())
            }
            // ddtc has reductions only for unpacking, from packed data to instances of a type. Here
            // the source is instances, and the destination is packed data. But the type is
            // contiguous, so instances and packed data have the same layout, and can be exchanged:
            // user memory (`from`) is passed as if it were packed data, and packed memory (`to`) as
            // if it were instances.
            //
            // The first byte at `call.packed` is packed byte `start` of all instances. So `to` is
            // the address for which byte `start` of the instances lies at `call.packed`.
            Direction::Pack if facts.contiguous() => {
                let start = range.start as i64;
                let from = call.user.wrapping_offset(facts.true_lb.wrapping_add(start) as isize);
                let to =
                    call.packed.wrapping_offset(start.wrapping_add(facts.true_lb).wrapping_neg() as isize);
                let applied = reduction(node, op, false)?;
                // SAFETY: `range` lies inside the packed bytes of all instances, and begins and
                // ends between elements. The bytes at `from` and those of the instances at `to` are
                // valid by the promise of the caller: packed byte k of the instances at `to` is
                // byte k - start at `call.packed`.
                unsafe { applied.range_raw(Direction::Unpack, to, call.count, from, range)? };
                Ok(())
            }
            Direction::Pack => {
                // ddtc has reductions only for unpacking, from packed data to instances of a type.
                // Here the source is instances with gaps, which cannot be passed as packed data. So
                // the loop packs a chunk of whole elements to a temporary buffer, and then unpacks
                // the chunk to the destination with the reduction. For the second step, the
                // destination, which is packed memory, is treated as instances of a type without
                // gaps.
                let (applied, committed) = (reduction(node, op, true)?, committed(node)?);
                let to = call.packed.wrapping_sub(range.start as usize);
                let mut chunk = [0u8; CHUNK as usize];
                let mut at = range.start;
                while at < range.end {
                    let most = range.end.min(at + CHUNK);
                    let end = if most == range.end { most } else { t.whole_elements(most as i64) as u64 };
                    // SAFETY: `at..end` lies inside `range` and is at most `CHUNK` bytes long, so
                    // it fits in `chunk`. The caller promises that these bytes are valid in the
                    // instances at `user`. The type of `applied` has the same elements as `node`,
                    // but no gaps, so its packed bytes `at..end` at `to` are bytes of the caller's
                    // packed memory.
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
