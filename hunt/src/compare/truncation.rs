//! Checks of messages that are longer than the receive buffer. The receive must return an error of
//! class `MPI_ERR_TRUNCATE` and write only what its datatype maps.
//!
//! The sender and the receiver each use either the datatype of the case, or a partner with the same
//! values stored without gaps. The first run of a transfer has accessible memory for the whole
//! message around the receive buffer, so that a write outside the buffer is seen. If no byte is
//! written there, the same transfer runs again with an inaccessible page at one edge of the buffer,
//! either before or after it.

use super::values::{BEFORE, STREAM, patterned};
use super::{Check, Class, Context, Report, partner};
use crate::library::{Answer, Area, Handle, Library, Refusal};
use crate::subject::Map;
use ddtc::internal::methods::*;

/// Sizes of the receive buffer in bytes. 0 stands for one instance. The others are a page, and two
/// sizes at which libraries use different protocols. A receive has as many whole instances as fit
/// in the size, but at least one.
pub(crate) const RECEIVE_SIZES: [usize; 4] = [0, 4 << 10, 64 << 10, 160 << 10];
/// Number of accessible bytes on each side of the receive buffer beyond those that the whole
/// message could fill.
const SLACK: usize = 64;

/// One end of the message.
struct End {
    handle: Handle,
    count: u64,
    map: Map,
    free: bool,
}

impl End {
    /// Returns true if this end is one contiguous piece of memory. MPI libraries have special paths
    /// for transfers between two contiguous ends.
    fn is_contiguous(&self) -> bool {
        self.map.entries.windows(2).all(|e| e[0].0 + e[0].1 as i64 == e[1].0)
    }
}

pub(super) fn run(context: &mut Context<'_>, report: &mut Report<'_>, map: &Map) {
    if map.overlaps {
        return;
    }
    let size = report.subject.root().judged.size() as usize;
    let hash = report.subject.root().plain.structural_hash();
    for (i, bytes) in RECEIVE_SIZES.into_iter().enumerate() {
        // Every receive of this check maps new pages of memory, and a large receive takes as long
        // as ten cases. So larger receives are checked for fewer datatypes.
        let some = context.thorough || hash.is_multiple_of([2, 8, 32, 64][i]);
        if !some {
            continue;
        }
        let counts = ((bytes / size).max(1), (bytes / size).max(1) + (bytes / size / 2).max(1));
        for sides in 0..4 {
            if let Err(refusal) = one(context.library, report, counts, sides, hash) {
                return report.refused(refusal);
            }
            // One bug is sufficient, so the remaining buffer sizes and combinations of sender and
            // receiver are not checked.
            if report.found.iter().any(|d| d.check == Check::Truncation && d.class == Class::Bug) {
                return;
            }
        }
    }
}

/// Returns the sender's or receiver's end of a message of `count` instances. It uses the datatype
/// itself or, if `flat` is true, a datatype of the same values without gaps. Returns none if the
/// type map is too large to be touched or has overlaps, or if the datatype without gaps cannot be
/// made.
fn end(library: &Library, report: &Report<'_>, count: usize, flat: bool) -> Option<End> {
    let root = report.subject.root();
    let map = Map::new(&root.judged, count as u64).filter(|map| !map.overlaps)?;
    if !flat {
        return Some(End { handle: root.handle, count: count as u64, map, free: false });
    }
    let (handle, n, free) = partner::flat(library, &map)?;
    Some(End { handle, count: n, map: map.flat(), free })
}

/// Checks one combination of sender and receiver. `received` is the number of instances in the
/// receive buffer, and `sent` the number in the message. If bit 0 of `sides` is set, the sender
/// uses values without gaps; if bit 1 is set, the receiver does.
fn one(
    library: &Library,
    report: &mut Report<'_>,
    (received, sent): (usize, usize),
    sides: usize,
    hash: u128,
) -> Answer<()> {
    let Some(to) = end(library, report, received, sides & 2 != 0) else { return Ok(()) };
    if let Some(from) = end(library, report, sent, sides & 1 != 0) {
        between(library, report, &from, &to, hash)?;
        if from.free {
            let _ = library.free(from.handle);
        }
    }
    if to.free {
        let _ = library.free(to.handle);
    }
    Ok(())
}

fn between(library: &Library, report: &mut Report<'_>, from: &End, to: &End, hash: u128) -> Answer<()> {
    let contiguous = from.is_contiguous() && to.is_contiguous();
    let what = if contiguous { "beyond-contiguous" } else { "beyond" };
    let mut data = Area::new(from.map.low, from.map.high, 0xa5);
    patterned(STREAM, data.data_mut());
    let (low, high) = (from.map.low.min(to.map.low), from.map.high.max(to.map.high));
    let reach = (high - low).max(from.map.size as i64) as usize;
    // The receive is posted before or after the send. In each of these orders there are two
    // transfers. The first has accessible memory on both sides of the receive buffer, and the
    // second has an inaccessible page at one edge of it.
    for posted in [false, true] {
        for fence in [None, Some(false), Some(true)] {
            // A transfer with an inaccessible page at each of the two edges of the receive buffer
            // would take twice the time, so only one edge is checked for each datatype. The hash of
            // the datatype selects the edge, so each edge is checked for about half of the
            // datatypes.
            if fence.is_some_and(|after| after == hash.is_multiple_of(2)) {
                continue;
            }
            let slack = if fence.is_none() { reach + SLACK } else { 0 };
            let mut area = Area::fenced(to.map.low, to.map.high, 0xa5, [slack; 2], fence.unwrap_or(true));
            patterned(BEFORE, area.data_mut());
            let before = area.data().to_vec();
            let class = library.truncated(
                posted,
                (&data, from.count, from.handle),
                (&mut area, to.count, to.handle),
            )?;
            if class != library.truncate_class() {
                let kind = if class == 0 { "unnoticed" } else { "class" };
                let got = match class {
                    0 => "the receive returns MPI_SUCCESS".to_owned(),
                    class => Refusal { call: "the receive", class }.to_string(),
                };
                report.add(
                    kind,
                    Class::Quality,
                    "truncated",
                    "the receive returns an error of class MPI_ERR_TRUNCATE",
                    got,
                );
            }
            let [ahead, after] = area.guards();
            let changed = |bytes: &[u8]| bytes.iter().any(|&b| b != 0xa5);
            if let Some(side) = [("before", ahead), ("after", after)].into_iter().find(|s| changed(s.1)) {
                let wrong = side.1.iter().filter(|&&b| b != 0xa5).count();
                let got = format!(
                    "a message of {} bytes into a receive buffer for {} bytes changes {wrong} bytes {} the buffer",
                    from.map.size, to.map.size, side.0
                );
                let what = (what, Class::Bug, "beyond");
                report.add_stray(what, "beyond", "no byte outside the receive buffer is changed", got);
                return Ok(());
            }
            let gap = |i: &usize| !to.map.mapped[*i] && area.data()[*i] != before[*i];
            if let Some(i) = (0..before.len()).find(gap) {
                let at = to.map.low + i as i64;
                let shown = |v: u8| super::byte("the gap byte at displacement", at, v);
                let what = ("gap", Class::Bug, "beyond");
                report.add_stray(what, "in a gap", shown(before[i]), shown(area.data()[i]));
                return Ok(());
            }
        }
    }
    Ok(())
}
