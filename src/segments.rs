//! Segments: the contiguous pieces of user memory that some instances of a layout consist of, in
//! type-map order.
//!
//! A runtime passes a list of segments to `writev` or to a network card. Two neighbouring pieces of
//! the stream touch if the first ends in user memory where the second begins. Pieces that touch are
//! one segment, even if they belong to different blocks, iterations or instances. Neighbours in
//! descending order of addresses never touch. A byte that several entries share is listed once for
//! each of these entries. Every segment has at least one byte.
//!
//! The segments divide the packed stream in the same way as user memory, so each segment has a
//! first packed byte. All facts that depend on neither the instance count nor the address are in
//! [`Runs`], which is made once for a layout in O(nodes + rows). After that, any question about
//! segments is answered in O(depth * log n), where n is the maximum number of nodes in a body or
//! rows in a node. Listing segments also takes some time for each listed segment. No state is kept
//! between calls.

mod list;
mod runs;

use std::mem::MaybeUninit;

use crate::error::{Error, ErrorClass, Result};
use crate::filled::Filled;
use crate::nest::{LoopNest, Node, Normal};

pub use runs::Runs;

use runs::iterations;

/// A contiguous piece of user memory. Its layout is that of POSIX's `struct iovec` on machines
/// where addresses and sizes have 64 bits.
///
/// ```
/// use ddtc::Segment;
///
/// let segment = Segment { at: 24, len: 16 };
/// assert_eq!(segment.end(), 40);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment {
    /// Position of the first byte, relative to displacement 0 of the first instance. In a list that
    /// [`Segments::based`] returned for an address, the position is an address.
    pub at: i64,
    /// Number of bytes, which is at least 1.
    pub len: u64,
}

impl Segment {
    /// Returns the offset or address of the byte after the last one.
    ///
    /// ```
    /// use ddtc::Segment;
    ///
    /// let segment = Segment { at: 24, len: 16 };
    /// assert_eq!(segment.end(), 40);
    /// ```
    #[inline]
    pub fn end(self) -> i64 {
        self.at.wrapping_add_unsigned(self.len)
    }
}

/// The segments of some instances of a layout, made by [`Committed::segments`]. They are numbered
/// from 0 in the order in which they are packed.
///
/// Segments are computed when a method is called, and are not stored.
///
/// ```
/// use ddtc::{Datatype, Segment};
///
/// let columns = ddtc::commit(&Datatype::vector(3, 2, 4, &Datatype::of::<f64>())?)?;
/// let segments = columns.segments(1)?;
/// let mut list = vec![Segment::default(); segments.len() as usize];
/// segments.fill(0, &mut list)?;
/// assert_eq!(list.iter().map(|segment| segment.at).collect::<Vec<_>>(), [0, 32, 64]);
/// # Ok::<(), ddtc::Error>(())
/// ```
///
/// [`Committed::segments`]: crate::Committed::segments
#[derive(Clone, Copy, Debug)]
pub struct Segments<'l> {
    nest: &'l LoopNest<Normal>,
    runs: &'l Runs,
    count: u64,
    /// User offset, or address, of offset 0 of the nest.
    base: i64,
    /// Number of segments, and number of packed bytes.
    len: u64,
    bytes: u64,
}

impl<'l> Segments<'l> {
    /// Returns the segments of `count` instances of `nest`. `runs` are the runs of that nest, and
    /// `origin` is the user offset of offset 0 of the nest. The caller must know that all user
    /// offsets fit in 64 bits.
    ///
    /// # Errors
    /// Class `Count` if the packed bytes do not fit in 63 bits. There are no more segments than
    /// packed bytes, so the number of segments then fits too.
    pub(crate) fn new(
        nest: &'l LoopNest<Normal>,
        runs: &'l Runs,
        count: u64,
        origin: i64,
    ) -> Result<Segments<'l>> {
        let bytes = (nest.size() as u64).checked_mul(count).filter(|&bytes| i64::try_from(bytes).is_ok());
        let Some(bytes) = bytes else {
            let rule = "count times the size of the datatype must fit 63 bits";
            return Err(Error::new(ErrorClass::Count, "segments", "count", count, rule));
        };
        let len = match nest.body(nest.root()) {
            [root] if bytes > 0 => runs.node(nest.root().start as usize).gaps(iterations(root, count)) + 1,
            _ => 0,
        };
        Ok(Segments { nest, runs, count, base: origin, len, bytes })
    }

    /// Returns the segments with `address` added to each [`Segment::at`]. If `address` is the
    /// address of displacement 0 of the first instance, positions become addresses.
    ///
    /// ```
    /// use ddtc::{Datatype, Segment};
    ///
    /// let columns = ddtc::commit(&Datatype::vector(4, 2, 3, &Datatype::of::<f64>())?)?;
    /// let segments = columns.segments(1)?;
    /// let mut list = [Segment::default(); 2];
    /// segments.based(0x1000).fill(0, &mut list)?;
    /// assert_eq!((list[0].at, list[1].at), (0x1000, 0x1018));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    pub fn based(self, address: i64) -> Segments<'l> {
        Segments { base: self.base.wrapping_add(address), ..self }
    }

    /// Returns the runs of the layout, from which its segments are found.
    pub(crate) fn runs(&self) -> &'l Runs {
        self.runs
    }

    /// Returns the number of segments.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let columns = ddtc::commit(&Datatype::vector(4, 2, 3, &Datatype::of::<f64>())?)?;
    /// let segments = columns.segments(1)?;
    /// assert_eq!(segments.len(), 4);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether there is no segment, because the count or the size of the datatype is 0.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let nothing = ddtc::commit(&Datatype::contiguous(0, &Datatype::of::<f64>())?)?;
    /// assert!(nothing.segments(1)?.is_empty());
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of packed bytes of all segments.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let columns = ddtc::commit(&Datatype::vector(4, 2, 3, &Datatype::of::<f64>())?)?;
    /// let segments = columns.segments(1)?;
    /// assert_eq!(segments.bytes(), 64);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes the segments from number `index` on to `out`, until `out` is full or there are no
    /// more segments. Returns the number of segments written.
    ///
    /// ```
    /// use ddtc::{Datatype, Segment};
    ///
    /// let columns = ddtc::commit(&Datatype::vector(4, 2, 3, &Datatype::of::<f64>())?)?;
    /// let segments = columns.segments(1)?;
    /// let mut list = [Segment::default(); 8];
    /// assert_eq!(segments.fill(1, &mut list)?, 3);
    /// assert_eq!(list[0], Segment { at: 24, len: 16 });
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// Class `Arg` for an index past [`Segments::len`]; in this case nothing is written. Class
    /// `NoMem` if there is no memory for the levels of a very deep datatype; in this case some
    /// segments may have been written.
    pub fn fill(&self, index: u64, out: &mut [Segment]) -> Result<usize> {
        self.list(index, Filled::over(out)).map(|segments| segments.len())
    }

    /// Writes the segments as [`Segments::fill`] does, to memory that need not be initialized, and
    /// returns them.
    ///
    /// # Errors
    /// The errors are those of [`Segments::fill`].
    pub(crate) fn fill_uninit<'o>(
        &self,
        index: u64,
        out: &'o mut [MaybeUninit<Segment>],
    ) -> Result<&'o mut [Segment]> {
        self.list(index, Filled::new(out))
    }

    fn list<'o>(&self, index: u64, out: Filled<'o, Segment>) -> Result<&'o mut [Segment]> {
        if index > self.len {
            return Err(past_end("index", index, self.len, "segments"));
        }
        let mut out = out.limited(usize::try_from(self.len - index).unwrap_or(usize::MAX));
        if out.room() > 0 {
            list::list(self, index, &mut out)?;
        }
        Ok(out.into_entries())
    }

    /// Fills `out` with the segments from packed byte `offset` on. The first segment begins at that
    /// byte.
    ///
    /// # Errors
    /// The errors are those of [`Segments::fill`]; class `Arg` is for an offset past
    /// [`Segments::bytes`].
    pub(crate) fn fill_from(&self, offset: u64, out: &mut [Segment]) -> Result<usize> {
        self.list_from(offset, Filled::over(out)).map(|segments| segments.len())
    }

    /// Writes the segments as [`Segments::fill_from`] does, to memory that need not be initialized,
    /// and returns them.
    ///
    /// # Errors
    /// The errors are those of [`Segments::fill_from`].
    pub(crate) fn fill_from_uninit<'o>(
        &self,
        offset: u64,
        out: &'o mut [MaybeUninit<Segment>],
    ) -> Result<&'o mut [Segment]> {
        self.list_from(offset, Filled::new(out))
    }

    fn list_from<'o>(&self, offset: u64, out: Filled<'o, Segment>) -> Result<&'o mut [Segment]> {
        let (index, within) = self.find(offset)?;
        let segments = self.list(index, out)?;
        if let Some(first) = segments.first_mut() {
            *first = Segment { at: first.at.wrapping_add_unsigned(within), len: first.len - within };
        }
        Ok(segments)
    }

    /// Finds the longest sequence of whole segments from `index` on that has at most `max_bytes`
    /// bytes. Returns the number of segments and the number of bytes in them.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let columns = ddtc::commit(&Datatype::vector(4, 2, 3, &Datatype::of::<f64>())?)?;
    /// let segments = columns.segments(1)?;
    /// // Two whole segments of 16 bytes fit into 40 bytes.
    /// assert_eq!(segments.within(0, 40)?, (2, 32));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// Class `Arg` if `index` is larger than [`Segments::len`].
    pub fn within(&self, index: u64, max_bytes: u64) -> Result<(u64, u64)> {
        let start = self.start(index)?;
        let limit = start.saturating_add(max_bytes);
        if limit >= self.bytes {
            return Ok((self.len - index, self.bytes - start));
        }
        // The segment that contains the first byte beyond the limit does not fit as a whole.
        let end = self.index(limit);
        Ok((end - index, self.start(end)? - start))
    }

    /// Returns the index of the segment that contains packed byte `offset`, and how many bytes of
    /// the segment come before that byte. For the end of the stream, these are [`Segments::len`]
    /// and 0.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let columns = ddtc::commit(&Datatype::vector(4, 2, 3, &Datatype::of::<f64>())?)?;
    /// let segments = columns.segments(1)?;
    /// // Packed byte 20 lies in segment 1, at its byte 4.
    /// assert_eq!(segments.find(20)?, (1, 4));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// Class `Arg` if `offset` is larger than [`Segments::bytes`].
    pub fn find(&self, offset: u64) -> Result<(u64, u64)> {
        if offset >= self.bytes {
            let end = (offset == self.bytes).then_some((self.len, 0));
            return end.ok_or_else(|| past_end("offset", offset, self.bytes, "packed bytes"));
        }
        let index = self.index(offset);
        Ok((index, offset - self.start(index)?))
    }

    /// Returns the first packed byte of segment `index`; for [`Segments::len`] this is the end of
    /// the stream.
    ///
    /// # Errors
    /// Class `Arg` for an index past [`Segments::len`].
    pub(crate) fn start(&self, index: u64) -> Result<u64> {
        if index >= self.len {
            let end = (index == self.len).then_some(self.bytes);
            return end.ok_or_else(|| past_end("index", index, self.len, "segments"));
        }
        let (mut body, mut packed, mut run) = (self.nest.root(), 0, index);
        // Descend to the node and the iteration in which segment `index` begins. At each level,
        // `run` is the number of that segment, counted from the start of the node or iteration. If
        // `run` is 0, the segment begins where the node or iteration begins.
        while run > 0 {
            let i = self.runs.first_node(self.nest, body, run);
            let (node, runs) = (&self.nest.nodes()[i], self.runs.node(i));
            run -= self.runs.before(body, i);
            packed += node.offsets().packed;
            if run == 0 {
                break;
            }
            let k = runs.first_iteration(iterations(node, self.count), run);
            run -= runs.before(k);
            match node {
                Node::Loop { step, body: inner, .. } => {
                    (body, packed) = (*inner, packed + k as i64 * step.packed)
                }
                Node::Table { packed: piece, body: inner, .. } => {
                    (body, packed) = (*inner, packed + k as i64 * piece);
                }
                Node::Blocks { packed: starts, .. } => {
                    packed += starts.get(k as usize);
                    break;
                }
                Node::Copy { .. } => break,
            }
        }
        Ok(packed as u64)
    }

    /// Returns the index of the segment that contains packed byte `offset`. This is the number of
    /// gaps before that byte, including a gap directly before it.
    fn index(&self, offset: u64) -> u64 {
        let (mut body, mut rest, mut index) = (self.nest.root(), offset as i64, 0);
        loop {
            // At each level, find the node that contains the byte, and the iteration or row of that
            // node. Add the number of gaps before this iteration or row, and continue inside it
            // with the rest of the offset.
            let start = body.start as usize;
            let k = match body.len {
                1 => 0,
                n => {
                    partition_point(n.into(), |k| {
                        self.nest.nodes()[start + k as usize].offsets().packed <= rest
                    }) - 1
                }
            };
            let i = start + k as usize;
            let (node, runs) = (&self.nest.nodes()[i], self.runs.node(i));
            index += self.runs.before(body, i);
            rest -= node.offsets().packed;
            let (k, piece, inner) = match node {
                Node::Loop { step, body, .. } => (rest / step.packed, step.packed, *body),
                Node::Table { packed, body, .. } => (rest / packed, *packed, *body),
                Node::Blocks { packed, .. } => {
                    let row = packed.partition_point(|start| start <= rest) - 1;
                    return index + runs.before(row as u64);
                }
                Node::Copy { .. } => return index,
            };
            index += runs.before(k as u64);
            (body, rest) = (inner, rest - k * piece);
        }
    }

    /// Returns an iterator over the segments from `index` on. The iterator is cheaper than a
    /// separate search for each segment. The iterator is empty if `index` is past
    /// [`Segments::len`].
    pub(crate) fn cursor(&self, index: u64) -> Cursor<'l> {
        let left = self.len.saturating_sub(index);
        Cursor {
            segments: *self,
            next: self.len - left,
            listed: [Segment::default(); LISTED],
            given: 0,
            end: 0,
        }
    }
}

/// Number of segments that a [`Cursor`] lists at once.
const LISTED: usize = 64;

/// An iterator over segments in order, from `Segments::cursor`.
#[derive(Clone, Debug)]
pub struct Cursor<'l> {
    segments: Segments<'l>,
    /// Index of the first segment after those in `listed`.
    next: u64,
    listed: [Segment; LISTED],
    /// The entries `given..end` of `listed` have not been returned yet.
    given: usize,
    end: usize,
}

impl Iterator for Cursor<'_> {
    /// The only error is a lack of memory for a very deep datatype. After this error the cursor is
    /// at the same position as before.
    type Item = Result<Segment>;

    #[inline]
    fn next(&mut self) -> Option<Result<Segment>> {
        if self.given == self.end {
            match self.segments.fill(self.next, &mut self.listed) {
                Ok(n) => (self.given, self.end, self.next) = (0, n, self.next + n as u64),
                Err(error) => return Some(Err(error)),
            }
        }
        let segment = self.listed[..self.end].get(self.given)?;
        self.given += 1;
        Some(Ok(*segment))
    }
}

/// Returns the number of leading indices below `n` for which `before` is true.
#[inline]
fn partition_point(n: u64, before: impl Fn(u64) -> bool) -> u64 {
    let (mut from, mut n) = (0, n);
    while n > 0 {
        let half = n / 2;
        if before(from + half) {
            from += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    from
}

#[cold]
fn past_end(argument: &'static str, value: u64, end: u64, of: &str) -> Error {
    let rule = format!("must not lie past the {end} {of}");
    Error::new(ErrorClass::Arg, "segments", argument, value, rule)
}

#[cfg(test)]
mod tests;
