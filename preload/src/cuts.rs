//! Ends of elements in Open MPI's description of a type: the places where Open MPI's own mover ends
//! the pieces that it sends.
//!
//! Open MPI describes a type by elements, which are blocks of one basic type, in loops. Its sender
//! never cuts a basic element, and a receiver joins the two halves of an element in a buffer of 16
//! bytes, whatever the size of the element. So compiled code must cut what it sends where Open MPI
//! would cut it. The elements of a description are not those of the program's type: neighbouring
//! elements of several types may be described as bytes.

/// Entry of a description, 32 bytes: an element, the beginning of a loop, or its end.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) flags: u16,
    /// Number of the basic type, or [`LOOP`] or [`END`].
    pub(crate) kind: u16,
    /// Of an element, its number of blocks. Of the beginning and the end of a loop, the number of
    /// entries of the loop, without the beginning.
    pub(crate) count: u32,
    /// Of an element, the number of basic elements in a block. Of the beginning of a loop, the
    /// number of iterations, in the lower half.
    pub(crate) length: u64,
    /// Of the end of a loop, the packed bytes of an iteration.
    pub(crate) extent: i64,
    pub(crate) displacement: i64,
}

const _: () = assert!(size_of::<Entry>() == 32);

/// Kinds of entries that are no basic type, and the kinds of the basic types that every version
/// has.
pub(crate) const LOOP: u16 = 0;
pub(crate) const END: u16 = 1;
const BASIC: std::ops::RangeInclusive<u16> = 4..=26;

/// Number of kinds, from 0 on, for which the size of the basic type is read.
pub(crate) const KINDS: usize = 27;

/// Maximum depth of nested loops.
const DEEPEST: usize = 32;

/// Stretch of the packed stream: elements of one size, or the iterations of a loop.
#[derive(Debug, PartialEq, Eq)]
struct Stretch {
    /// Offset in the body that the stretch belongs to.
    start: u64,
    /// Bytes of an element, or of an iteration.
    each: u64,
    /// Stretches of an iteration; none if the stretch consists of elements.
    body: Option<Box<[Stretch]>>,
}

/// Ends of the elements in the packed stream of the instances of a type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cuts {
    /// Bytes of an instance.
    size: u64,
    body: Box<[Stretch]>,
}

impl Cuts {
    /// Reads a description, without the entry that ends it, of a type of `size` bytes. `sizes`:
    /// bytes of each basic type, by its kind. None: this is no description of such a type.
    pub(crate) fn of(entries: &[Entry], sizes: &[u64; KINDS], size: u64) -> Option<Cuts> {
        let (body, bytes) = body(entries, sizes, 0)?;
        (bytes == size && size > 0).then(|| Cuts { size, body: body.into() })
    }

    /// Returns the last end of an element at or before a position in the packed stream.
    #[inline]
    pub(crate) fn before(&self, position: u64) -> u64 {
        if let [Stretch { each, body: None, .. }] = &*self.body {
            // Every instance consists of whole elements of one size, so its beginning does not
            // matter.
            return position - position % each;
        }
        let mut rest = position % self.size;
        let mut body = &self.body;
        loop {
            let after = body.partition_point(|stretch| stretch.start <= rest);
            let Some(stretch) = after.checked_sub(1).and_then(|last| body.get(last)) else { break };
            rest = (rest - stretch.start) % stretch.each;
            match &stretch.body {
                Some(inner) => body = inner,
                None => break,
            }
        }
        // Now `rest` is the number of bytes of an element that lie before the position.
        position - rest
    }

    /// Returns true if all elements are of one size.
    #[cfg(test)]
    fn is_even(&self) -> bool {
        matches!(&*self.body, [Stretch { body: None, .. }])
    }
}

/// Returns the stretches of a body and its bytes. Neighbouring elements of one size are one
/// stretch. None: the entries are no description.
fn body(entries: &[Entry], sizes: &[u64; KINDS], depth: usize) -> Option<(Vec<Stretch>, u64)> {
    let (mut stretches, mut start, mut at) = (Vec::<Stretch>::new(), 0u64, 0);
    while let Some(entry) = entries.get(at) {
        let (each, inner, bytes) = if entry.kind == LOOP {
            let end = at.checked_add(entry.count as usize)?;
            let (inner, bytes) =
                body(entries.get(at + 1..end)?, sizes, depth + 1).filter(|_| depth < DEEPEST)?;
            // The entry that ends the loop says how many bytes an iteration has.
            let last = entries.get(end).filter(|last| last.kind == END && last.extent as u64 == bytes)?;
            if last.count != entry.count {
                return None;
            }
            at = end + 1;
            let all = bytes.checked_mul(u64::from(entry.length as u32))?;
            match &inner[..] {
                // If iterations consist of elements of one size, the loop is a stretch of such
                // elements.
                [Stretch { each, body: None, .. }] => (*each, None, all),
                _ => (bytes, Some(inner.into_boxed_slice()), all),
            }
        } else {
            let size = *sizes.get(usize::from(entry.kind)).filter(|_| BASIC.contains(&entry.kind))?;
            if size == 0 || size > 64 {
                return None;
            }
            at += 1;
            (size, None, size.checked_mul(entry.length)?.checked_mul(u64::from(entry.count))?)
        };
        if bytes == 0 {
            return None;
        }
        match stretches.last() {
            Some(last) if last.body.is_none() && inner.is_none() && last.each == each => {}
            _ => stretches.push(Stretch { start, each, body: inner }),
        }
        start = start.checked_add(bytes)?;
    }
    (!stretches.is_empty()).then_some((stretches, start))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: u16 = 6;
    const DOUBLE: u16 = 16;
    const BYTE: u16 = 9;

    fn sizes() -> [u64; KINDS] {
        let mut sizes = [0; KINDS];
        for (kind, size) in [(INT, 4), (DOUBLE, 8), (BYTE, 1)] {
            sizes[usize::from(kind)] = size;
        }
        sizes
    }

    fn element(kind: u16, count: u32, length: u64) -> Entry {
        Entry { kind, count, length, ..Entry::default() }
    }

    fn ends(cuts: &Cuts, to: u64) -> Vec<u64> {
        let mut ends: Vec<u64> = (0..=to).map(|position| cuts.before(position)).collect();
        ends.dedup();
        ends
    }

    #[test]
    fn equal_elements_are_one_stretch() {
        let cuts = Cuts::of(&[element(INT, 3, 2), element(INT, 1, 1)], &sizes(), 28).unwrap();
        assert!(cuts.is_even());
        assert_eq!(ends(&cuts, 12), [0, 4, 8, 12]);
        // A loop over such elements belongs to the same stretch, too.
        let ring =
            [Entry { kind: LOOP, count: 2, length: 5 | 7 << 32, ..Entry::default() }, element(INT, 1, 2)];
        let end = Entry { kind: END, count: 2, extent: 8, ..Entry::default() };
        let cuts = Cuts::of(&[ring[0], ring[1], end, element(INT, 1, 1)], &sizes(), 44).unwrap();
        assert!(cuts.is_even());
    }

    #[test]
    fn elements_of_several_sizes_end_where_each_ends() {
        // {int, 2 doubles, 3 bytes}
        let one = [element(INT, 1, 1), element(DOUBLE, 1, 2), element(BYTE, 1, 3)];
        let cuts = Cuts::of(&one, &sizes(), 23).unwrap();
        assert_eq!(ends(&cuts, 28), [0, 4, 12, 20, 21, 22, 23, 27]);
        // Three times {int, double}, then an int.
        let ring = Entry { kind: LOOP, count: 3, length: 3, ..Entry::default() };
        let end = Entry { kind: END, count: 3, extent: 12, ..Entry::default() };
        let cuts = Cuts::of(
            &[ring, element(INT, 1, 1), element(DOUBLE, 1, 1), end, element(INT, 1, 1)],
            &sizes(),
            40,
        );
        let cuts = cuts.unwrap();
        assert!(!cuts.is_even());
        assert_eq!(ends(&cuts, 52), [0, 4, 12, 16, 24, 28, 36, 40, 44, 52]);
    }

    #[test]
    fn what_is_no_description_is_refused() {
        let all = sizes();
        assert_eq!(Cuts::of(&[], &all, 0), None);
        assert_eq!(Cuts::of(&[element(INT, 1, 1)], &all, 8), None);
        assert_eq!(Cuts::of(&[element(27, 1, 1)], &all, 4), None);
        assert_eq!(Cuts::of(&[element(INT, 0, 1)], &all, 0), None);
        assert_eq!(Cuts::of(&[element(INT, u32::MAX, u64::MAX / 4)], &all, 4), None);
        let ring = |items, length| Entry { kind: LOOP, count: items, length, ..Entry::default() };
        let end = |items, extent| Entry { kind: END, count: items, extent, ..Entry::default() };
        assert!(Cuts::of(&[ring(2, 2), element(INT, 1, 1), end(2, 4)], &all, 8).is_some());
        for wrong in [
            [ring(1, 2), element(INT, 1, 1), end(2, 4)],
            [ring(3, 2), element(INT, 1, 1), end(2, 4)],
            [ring(2, 2), element(INT, 1, 1), end(2, 5)],
            [ring(2, 2), element(INT, 1, 1), end(1, 4)],
            [ring(2, 0), element(INT, 1, 1), end(2, 4)],
            [ring(0, 2), element(INT, 1, 1), end(2, 4)],
        ] {
            assert_eq!(Cuts::of(&wrong, &all, 8), None, "{wrong:?}");
        }
    }
}
