//! Messages that are longer than the receive: an error of class `MPI_ERR_TRUNCATE`, and nothing is written but what the receive's datatype maps.
//!
//! Either side is the datatype or values one after the other. Around the receive lies memory that takes the whole message, so that what is
//! written there is seen; where nothing is, the same again with inaccessible pages at its edges, before it or behind it.

use super::values::{BEFORE, STREAM, patterned};
use super::{Check, Class, Context, Report, partner};
use crate::library::{Answer, Area, Handle, Library, Refusal};
use crate::subject::Map;
use ddtc::internal::methods::*;

/// Bytes that the receive is to have: one instance, a page, and what goes by other protocols.
pub(crate) const ROOMS: [usize; 4] = [0, 4 << 10, 64 << 10, 160 << 10];
/// Accessible bytes beyond all that the message maps.
const SLACK: usize = 64;

/// One end of the message.
struct End {
    handle: Handle,
    count: u64,
    map: Map,
    free: bool,
}

impl End {
    /// Whether it is one piece of memory: hosts have paths for two such ends.
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
    for (i, room) in ROOMS.into_iter().enumerate() {
        // Every receive takes pages of the system, and large ones as much as ten cases.
        let some = context.thorough || hash.is_multiple_of([2, 8, 32, 64][i]);
        if !some {
            continue;
        }
        let counts = ((room / size).max(1), (room / size).max(1) + (room / size / 2).max(1));
        for sides in 0..4 {
            if let Err(refusal) = one(context.library, report, counts, sides, hash) {
                return report.refused(refusal);
            }
            // One side and size tells.
            if report.found.iter().any(|d| d.check == Check::Truncation && d.class == Class::Bug) {
                return;
            }
        }
    }
}

/// The datatype, or its values one after the other.
fn end(library: &Library, report: &Report<'_>, count: usize, flat: bool) -> Option<End> {
    let root = report.subject.root();
    let map = Map::new(&root.judged, count as u64).filter(|map| !map.overlaps)?;
    if !flat {
        return Some(End { handle: root.handle, count: count as u64, map, free: false });
    }
    let (handle, n, free) = partner::flat(library, &map)?;
    Some(End { handle, count: n, map: map.flat(), free })
}

/// `counts` are the receive's instances and the message's; bit 0 of `sides` has values one after the other sent, bit 1 received.
fn one(
    library: &Library,
    report: &mut Report<'_>,
    (room, sent): (usize, usize),
    sides: usize,
    hash: u128,
) -> Answer<()> {
    let Some(to) = end(library, report, room, sides & 2 != 0) else { return Ok(()) };
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
    for posted in [false, true] {
        for fence in [None, Some(false), Some(true)] {
            // Two edges take twice the time: one of them tells, and another datatype has the other.
            if fence.is_some_and(|behind| behind == hash.is_multiple_of(2)) {
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
                    0 => "MPI_SUCCESS".to_owned(),
                    class => Refusal { call: "the receive", class }.to_string(),
                };
                report.add(kind, Class::Quality, "truncated", "an error of class MPI_ERR_TRUNCATE", got);
            }
            let [ahead, behind] = area.guards();
            let changed = |bytes: &[u8]| bytes.iter().any(|&b| b != 0xa5);
            if let Some(side) = [("before", ahead), ("behind", behind)].into_iter().find(|s| changed(s.1)) {
                let wrong = side.1.iter().filter(|&&b| b != 0xa5).count();
                let got = format!("of {} bytes for {}, {wrong} {} it", from.map.size, to.map.size, side.0);
                let what = (what, Class::Bug, "beyond");
                report.add_stray(what, "beyond", "nothing written beyond the receive", got);
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
