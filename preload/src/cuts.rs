//! Positions in packed bytes at which the basic elements of a type end according to Open MPI's
//! description of the type. Open MPI's own mover ends the pieces that it sends at these positions.
//!
//! Open MPI describes a type by elements, which are blocks of one basic type, and by loops around
//! them. Its sender never cuts a basic element. If compiled code cut one, Open MPI's receiver
//! would join the two halves in a buffer of 16 bytes, whatever the size of the element. So compiled
//! code must cut what it sends where Open MPI would cut it. The elements of a description are not
//! those of the program's type, because Open MPI may describe neighbouring elements of several
//! types as bytes.

/// Entry of Open MPI's description of a type, 32 bytes long: an element, the beginning of a loop,
/// or the end of a loop.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) flags: u16,
    /// Kind of the entry: [`LOOP`], [`END`], or the number of the element's basic type in Open MPI.
    pub(crate) kind: u16,
    /// If the entry is an element, its number of blocks. If the entry is the beginning or the end
    /// of a loop, the number of entries of the loop, including its end but not its beginning.
    pub(crate) count: u32,
    /// If the entry is an element, the number of basic elements in each block. If the entry is the
    /// beginning of a loop, the number of iterations, in the lower half.
    pub(crate) length: u64,
    /// If the entry is the end of a loop, the packed bytes of one iteration.
    pub(crate) extent: i64,
    pub(crate) displacement: i64,
}

const _: () = assert!(size_of::<Entry>() == 32);

/// Kind of an [`Entry`] that is the beginning of a loop.
pub(crate) const LOOP: u16 = 0;
/// Kind of an [`Entry`] that is the end of a loop.
pub(crate) const END: u16 = 1;
/// Kinds of the entries that are elements: the numbers of the basic types that every version of
/// Open MPI has.
const BASIC: std::ops::RangeInclusive<u16> = 4..=26;

/// Length of the table that holds the size of each basic type. The index of the table is the kind
/// of an [`Entry`], and all kinds in [`BASIC`] are less than this number.
pub(crate) const KINDS: usize = 27;

/// Maximum depth of nested loops. A description with deeper loops is refused.
const DEEPEST: usize = 32;

/// Stretch of the packed stream: neighbouring elements of the same size, or all iterations of a
/// loop.
#[derive(Debug, PartialEq, Eq)]
struct Stretch {
    /// Number of packed bytes between the beginning of the body and the beginning of the stretch.
    /// The body is one instance of the type, or one iteration of the loop around the stretch.
    start: u64,
    /// Packed bytes of each element of the stretch, or of each iteration if the stretch is a loop.
    each: u64,
    /// Stretches of one iteration if the stretch is a loop; `None` if the stretch consists of
    /// elements.
    body: Option<Box<[Stretch]>>,
}

/// Positions at which basic elements end in the packed stream of the instances of a type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cuts {
    /// Packed bytes of one instance.
    size: u64,
    body: Box<[Stretch]>,
}

impl Cuts {
    /// Reads Open MPI's description of a type of `size` bytes. `entries`: the entries of the
    /// description, without the last one, which only ends it. `sizes`: bytes of each basic type, by
    /// its kind. Returns `None` if the entries do not describe a type of that size.
    pub(crate) fn from_entries(entries: &[Entry], sizes: &[u64; KINDS], size: u64) -> Option<Cuts> {
        let (body, bytes) = body(entries, sizes, 0)?;
        (bytes == size && size > 0).then(|| Cuts { size, body: body.into() })
    }

    /// Returns the last end of an element at or before a position in the packed stream.
    #[inline]
    pub(crate) fn before(&self, position: u64) -> u64 {
        if let [Stretch { each, body: None, .. }] = &*self.body {
            // Every instance consists of whole elements of the same size, so the position of the
            // instance's beginning has no effect on the result.
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
        // Now `rest` is the number of bytes between the last end of an element and the position.
        position - rest
    }

    /// Returns true if all elements have the same size.
    #[cfg(test)]
    fn is_even(&self) -> bool {
        matches!(&*self.body, [Stretch { body: None, .. }])
    }
}

/// Returns the stretches of a body (one instance, or one iteration of a loop) and the packed bytes
/// of the body. Neighbouring elements of the same size form one stretch. Returns `None` if the
/// entries are not a valid description.
fn body(entries: &[Entry], sizes: &[u64; KINDS], depth: usize) -> Option<(Vec<Stretch>, u64)> {
    let (mut stretches, mut start, mut at) = (Vec::<Stretch>::new(), 0u64, 0);
    while let Some(entry) = entries.get(at) {
        let (each, inner, bytes) = if entry.kind == LOOP {
            let end = at.checked_add(entry.count as usize)?;
            let iteration = entries.get(at + 1..end)?;
            let (inner, bytes) = (depth < DEEPEST).then(|| body(iteration, sizes, depth + 1)).flatten()?;
            // The entry that ends the loop contains the number of packed bytes of an iteration. It
            // must be equal to the number that was computed from the iteration's elements.
            let last = entries.get(end).filter(|last| last.kind == END && last.extent as u64 == bytes)?;
            if last.count != entry.count {
                return None;
            }
            at = end + 1;
            let all = bytes.checked_mul(u64::from(entry.length as u32))?;
            match &inner[..] {
                // If all elements of an iteration have the same size, the whole loop is one stretch
                // of such elements.
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
        let cuts = Cuts::from_entries(&[element(INT, 3, 2), element(INT, 1, 1)], &sizes(), 28).unwrap();
        assert!(cuts.is_even());
        assert_eq!(ends(&cuts, 12), [0, 4, 8, 12]);
        // A loop over elements of one size is also part of the stretch that consists of its
        // neighbouring elements of that size.
        let ring =
            [Entry { kind: LOOP, count: 2, length: 5 | 7 << 32, ..Entry::default() }, element(INT, 1, 2)];
        let end = Entry { kind: END, count: 2, extent: 8, ..Entry::default() };
        let cuts = Cuts::from_entries(&[ring[0], ring[1], end, element(INT, 1, 1)], &sizes(), 44).unwrap();
        assert!(cuts.is_even());
    }

    #[test]
    fn elements_of_several_sizes_end_where_each_ends() {
        // {int, 2 doubles, 3 bytes}
        let one = [element(INT, 1, 1), element(DOUBLE, 1, 2), element(BYTE, 1, 3)];
        let cuts = Cuts::from_entries(&one, &sizes(), 23).unwrap();
        assert_eq!(ends(&cuts, 28), [0, 4, 12, 20, 21, 22, 23, 27]);
        // Three times {int, double}, then an int.
        let ring = Entry { kind: LOOP, count: 3, length: 3, ..Entry::default() };
        let end = Entry { kind: END, count: 3, extent: 12, ..Entry::default() };
        let cuts = Cuts::from_entries(
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
        assert_eq!(Cuts::from_entries(&[], &all, 0), None);
        assert_eq!(Cuts::from_entries(&[element(INT, 1, 1)], &all, 8), None);
        assert_eq!(Cuts::from_entries(&[element(27, 1, 1)], &all, 4), None);
        assert_eq!(Cuts::from_entries(&[element(INT, 0, 1)], &all, 0), None);
        assert_eq!(Cuts::from_entries(&[element(INT, u32::MAX, u64::MAX / 4)], &all, 4), None);
        let ring = |items, length| Entry { kind: LOOP, count: items, length, ..Entry::default() };
        let end = |items, extent| Entry { kind: END, count: items, extent, ..Entry::default() };
        assert!(Cuts::from_entries(&[ring(2, 2), element(INT, 1, 1), end(2, 4)], &all, 8).is_some());
        for wrong in [
            [ring(1, 2), element(INT, 1, 1), end(2, 4)],
            [ring(3, 2), element(INT, 1, 1), end(2, 4)],
            [ring(2, 2), element(INT, 1, 1), end(2, 5)],
            [ring(2, 2), element(INT, 1, 1), end(1, 4)],
            [ring(2, 0), element(INT, 1, 1), end(2, 4)],
            [ring(0, 2), element(INT, 1, 1), end(2, 4)],
        ] {
            assert_eq!(Cuts::from_entries(&wrong, &all, 8), None, "{wrong:?}");
        }
    }
}
