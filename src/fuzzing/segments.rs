//! Checks of segments against the type map: all segments of a small layout, and the segments around
//! some bytes of a large layout.

use std::ops::Range;

use super::case::{Case, Check, Mismatch, ensure};
use super::choices::Choices;
use crate::datatype::Datatype;
use crate::error::Result;
use crate::exec::interp;
use crate::segments::{Segment, Segments};

const STAGE: &str = "segments";

/// Value of an array entry that was not written.
const UNWRITTEN: Segment = Segment { at: i64::MIN, len: u64::MAX };

/// Returns the segments of a packed range by definition. The last one is cut at the end of the
/// range.
fn defined(t: &Datatype, count: u64, range: Range<u64>) -> Check<Vec<Segment>> {
    let listed = interp::segments(t, count, range).map_err(Mismatch::error("interp"))?;
    Ok(listed.into_iter().map(|(at, len)| Segment { at, len }).collect())
}

/// Returns the segments that `fill` writes into an array of `room` entries. Checks that `fill`
/// writes only as many segments as it returns, and nothing after the array.
fn filled(room: usize, fill: impl FnOnce(&mut [Segment]) -> Result<usize>) -> Check<Vec<Segment>> {
    let mut list = vec![UNWRITTEN; room + 1];
    let n = fill(&mut list[..room]).map_err(Mismatch::error(STAGE))?;
    ensure(n <= room && list[n..].iter().all(|s| *s == UNWRITTEN), STAGE, || {
        format!("{n} segments into an array of {room}, more written")
    })?;
    list.truncate(n);
    Ok(list)
}

/// Returns a mismatch if `found` differs from `expected`.
fn same<T: PartialEq + std::fmt::Debug>(found: T, expected: T, what: impl FnOnce() -> String) -> Check {
    ensure(found == expected, STAGE, || format!("{}: {found:?}, not {expected:?}", what()))
}

/// Checks the segments around packed byte `offset`, which must lie inside the stream: of the
/// segment with this byte, the part that lies at most `window` bytes before the byte; and all
/// segments of the `window` bytes that begin with the byte.
pub(super) fn check_around(s: &Segments<'_>, t: &Datatype, count: u64, offset: u64, window: u64) -> Check {
    let error = Mismatch::error(STAGE);
    let (index, within) = s.find(offset).map_err(&error)?;
    let start = s.start(index).map_err(&error)?;
    same(start + within, offset, || format!("byte {offset}, {within} in segment {index} from byte {start}"))?;
    let end = s.bytes().min(offset + window);
    // Check that the segment begins at `start` and not earlier: the byte before it must be the last
    // one of another segment. If the segment begins farther away than the window, check instead
    // that it reaches back to the window's start, since there may be too many bytes to list.
    let near = start.max(offset.saturating_sub(window));
    let mut before = defined(t, count, near.saturating_sub(1)..end)?;
    if near > 0 {
        let first = before[0];
        same(first.len > 1, near > start, || {
            format!("begins at byte {near}, {within} in segment {index}: {first:?}")
        })?;
        before[0] = Segment { at: first.at + 1, len: first.len - 1 };
        before.retain(|s| s.len > 0);
    }
    for (from, expected) in [(near, before), (offset, defined(t, count, offset..end)?)] {
        let mut found = filled(expected.len(), |list| s.fill_from(from, list))?;
        let bytes: u64 = found.iter().map(|s| s.len).sum();
        if let Some(last) = found.last_mut() {
            last.len -= bytes.checked_sub(end - from).ok_or_else(|| Mismatch::new(STAGE, "too few bytes"))?;
        }
        same(&found, &expected, || format!("bytes {from} to {end}"))?;
        let mut last = from;
        for (i, segment) in (index..).zip(&expected) {
            // Ask for the segments that fit into a limit of bytes. The first limit just suffices
            // for the segments before `segment`. The second one is one byte too few to include
            // `segment` as well.
            for bytes in [last - start, last + segment.len - 1 - start] {
                let whole = if i == index { 0 } else { last - start };
                same(s.within(index, bytes), Ok((i - index, whole)), || {
                    format!("{bytes} bytes from segment {index}")
                })?;
            }
            last += segment.len;
            same(s.find(last - 1).map(|found| found.0), Ok(i), || format!("byte {}", last - 1))?;
            if last < end {
                same(s.start(i + 1), Ok(last), || format!("start of segment {}", i + 1))?;
            }
        }
    }
    Ok(())
}

/// Checks what the methods of [`Segments`] return at the end of the stream, and that they refuse
/// positions after the end and write nothing.
pub(super) fn ends(s: &Segments<'_>) -> Check {
    let (len, bytes) = (s.len(), s.bytes());
    same((s.find(bytes), s.start(len), s.within(len, 9)), (Ok((len, 0)), Ok(bytes), Ok((0, 0))), || {
        "at the end".to_owned()
    })?;
    let mut list = [UNWRITTEN; 2];
    let past = [
        s.fill(len + 1, &mut list).is_err(),
        s.fill_from(bytes + 1, &mut list).is_err(),
        s.find(bytes + 1).is_err(),
        s.start(len + 1).is_err(),
        s.within(len + 1, 0).is_err(),
    ];
    same((past, list), ([true; 5], [UNWRITTEN; 2]), || "past the end".to_owned())?;
    let nothing = (s.fill(len, &mut list), s.fill_from(bytes, &mut list), s.fill(0, &mut []));
    same((nothing, list), ((Ok(0), Ok(0), Ok(0)), [UNWRITTEN; 2]), || "nothing to write".to_owned())
}

impl Case {
    /// Checks the segments of the case: the whole list, and then the surroundings of every byte of
    /// a short stream, or of some bytes of a long one that `cuts` chooses.
    ///
    /// # Errors
    /// The first difference from the type map.
    pub fn segments(&self, s: &Segments<'_>, cuts: &mut Choices<'_>) -> Check {
        let (t, count, bytes) = (self.datatype(), self.count(), self.packed_len() as u64);
        let all = defined(t, count, 0..bytes)?;
        same((s.len(), s.bytes()), (all.len() as u64, bytes), || format!("number and bytes of {s:?}"))?;
        let found = filled(all.len() + 2, |list| s.fill(0, list))?;
        let different = all.iter().zip(&found).position(|(a, b)| a != b);
        ensure(found == all, STAGE, || {
            let i = different.unwrap_or(all.len().min(found.len()));
            format!("segment {i} of {}: {:?}, not {:?}\n{s:?}", all.len(), found.get(i), all.get(i))
        })?;
        let by_cursor = s.cursor(0).collect::<Result<Vec<Segment>>>().map_err(Mismatch::error(STAGE))?;
        ensure(by_cursor == all, STAGE, || "the cursor gives others".to_owned())?;
        ends(s)?;
        if bytes <= 48 {
            return (0..bytes).try_for_each(|offset| check_around(s, t, count, offset, 1 + cuts.below(20)));
        }
        for _ in 0..8 {
            let from = cuts.below(all.len() as u64) as usize;
            let room = 1 + cuts.below((all.len() - from) as u64) as usize;
            let found = filled(room, |list| s.fill(from as u64, list))?;
            ensure(found == all[from..from + room], STAGE, || format!("{room} from segment {from}\n{s:?}"))?;
            check_around(s, t, count, cuts.below(bytes), 1 + cuts.below(400))?;
        }
        Ok(())
    }
}
