//! Construction of datatypes from Open MPI's descriptions of types. It is needed for types that the
//! program never passes to a call that ddtc sees: Open MPI makes some types inside a call, and
//! Fortran programs commit types where ddtc does not see it.
//!
//! A description is a sequence of elements and loops of elements. An element consists of blocks of
//! one basic type. The bounds in a description are exact in bytes, but its basic types may differ
//! from those of the program. So a datatype of bytes is made from the description. Its normal nest
//! is that of any other datatype of the same layout.

use std::sync::atomic::{AtomicU8, Ordering};

use ddtc::internal::datatype::{Datatype, Named};
use ddtc::internal::methods::*;

use super::layout::layout;
use crate::cuts::{END, Entry, KINDS, LOOP};

/// Offset, in a type of Open MPI, of five words: size, true lower bound, true upper bound, lower
/// bound, upper bound.
const BOUNDS: u64 = 24;
/// Maximum number of entries of a description that is read, without the entry that ends it. There
/// is a limit because all entries are compared at each request of a type that is known only by its
/// description.
pub(crate) const MAX_ENTRIES: usize = 4096;
/// Maximum depth of nested loops in a description from which a datatype is made.
const DEEPEST: usize = 32;

/// Meaning of the two counts that an element of Open MPI's description of a type has. It differs
/// between releases of Open MPI; [`super::proof::prove`] determines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Order {
    /// Of the two counts in an element of Open MPI's description, the one with 32 bits is the
    /// number of blocks, and the one with 64 bits is the number of basic elements in a block.
    Blocks = 1,
    /// Of the two counts in an element of Open MPI's description, the one with 64 bits is the
    /// number of blocks, and the one with 32 bits is the number of basic elements in a block.
    Lengths = 2,
}

impl Order {
    pub(crate) const BOTH: [Order; 2] = [Order::Blocks, Order::Lengths];
}

/// The [`Order`] that the proof has found, as a number; 0 if it has found none or was not made yet.
static ORDER: AtomicU8 = AtomicU8::new(0);

/// Returns the meaning of an element's two counts; `None` unless the proof has found that Open
/// MPI's descriptions are understood.
#[inline]
pub(crate) fn order() -> Option<Order> {
    let order = ORDER.load(Ordering::Relaxed);
    Order::BOTH.into_iter().find(|&o| o as u8 == order)
}

pub(crate) fn understood(order: Order) {
    ORDER.store(order as u8, Ordering::Relaxed);
}

/// The parts of Open MPI's structure of a type that determine where the bytes of an instance are.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    /// Size, true lower bound, true upper bound, lower bound and upper bound of the type, in bytes.
    pub(crate) bounds: [i64; 5],
    /// The entries of the description, including the entry that ends it.
    pub(crate) entries: &'a [Entry],
}

impl View<'_> {
    pub(crate) fn size(&self) -> u64 {
        self.bounds[0].max(0) as u64
    }

    /// Returns a hash, which is equal for equal views. Only the bounds, the number of entries and
    /// six of the entries are hashed. That suffices because views with equal hashes are compared as
    /// a whole.
    pub(crate) fn hash(&self) -> u64 {
        let n = self.entries.len();
        let some = [0, 1, n / 3, n / 2, n.saturating_sub(3), n.saturating_sub(2)];
        let words = some.into_iter().filter_map(|at| self.entries.get(at)).flat_map(meaning);
        words
            .chain(self.bounds.map(|b| b as u64))
            .chain([n as u64])
            .fold(0, |hash: u64, word| (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(crate) fn is(&self, other: &View<'_>) -> bool {
        let (ours, theirs) = (self.entries, other.entries);
        self.bounds == other.bounds
            && ours.len() == theirs.len()
            && ours.iter().zip(theirs).all(|(a, b)| meaning(a) == meaning(b))
    }
}

/// Returns the parts of an entry of a description that have a meaning. Open MPI does not write the
/// other words of the entries that begin and end a loop, so these words may hold anything.
#[inline]
fn meaning(entry: &Entry) -> [u64; 4] {
    let (length, extent) = match entry.kind {
        LOOP => (u64::from(entry.length as u32), 0),
        END => (0, entry.extent),
        _ => (entry.length, entry.extent),
    };
    let kind = u64::from(entry.count) << 32 | u64::from(entry.flags) << 16 | u64::from(entry.kind);
    [kind, length, extent as u64, entry.displacement as u64]
}

/// Returns the view of a type of Open MPI; `None` if the type's description has more than
/// [`MAX_ENTRIES`] entries or is not laid out as expected.
///
/// # Safety
/// `datatype` must be the address of a committed type of Open MPI that lives as long as the view.
/// The [`layout`] must be proven, or at least its offset `optimized`.
#[inline]
pub(crate) unsafe fn view<'a>(datatype: u64) -> Option<View<'a>> {
    // SAFETY: the caller promises a type of Open MPI, which has the header of its description,
    // three words, at the offset `optimized`. The five words from `BOUNDS` on lie before that
    // offset, in the same structure.
    let (bounds, [room, used, entries]) = unsafe {
        let bounds = *((datatype + BOUNDS) as *const [i64; 5]);
        (bounds, *((datatype + u64::from(layout().optimized)) as *const [u64; 3]))
    };
    if used == 0 || used > MAX_ENTRIES as u64 || used > room || entries == 0 || entries % 8 != 0 {
        return None;
    }
    // SAFETY: `entries` is the address of `used` entries, at least one, and of the entry that ends
    // them after these: Open MPI has committed the type, and its own mover reads that last entry.
    // The caller promises that the type, which owns the entries, lives as long as the view.
    let entries = unsafe { std::slice::from_raw_parts(entries as *const Entry, used as usize + 1) };
    Some(View { bounds, entries })
}

/// Returns a datatype of bytes that has the layout of a view; `None` if the description is not
/// understood, or does not agree with the bounds in the view. `sizes`: bytes of each basic type, by
/// its kind.
pub(crate) fn datatype(view: &View<'_>, sizes: &[u64; KINDS], order: Order) -> Option<Datatype> {
    let [size, true_lb, true_ub, lb, ub] = view.bounds;
    let (end, entries) = view.entries.split_last()?;
    if end.kind != END || end.extent != size {
        return None;
    }
    let t = body(entries, sizes, order, 0)?;
    let t = Datatype::resized(lb, ub.checked_sub(lb)?, &t).ok()?;
    ([t.size(), t.true_lb(), t.true_ub()] == [size, true_lb, true_ub]).then_some(t)
}

/// Returns a datatype that is made from the entries of one loop body or of the whole description: a
/// structure with one member for each element and each inner loop.
fn body(entries: &[Entry], sizes: &[u64; KINDS], order: Order, depth: usize) -> Option<Datatype> {
    let byte = Datatype::named(Named::Byte);
    let (mut places, mut lengths, mut members, mut at) = (Vec::new(), Vec::new(), Vec::new(), 0);
    while let Some(entry) = entries.get(at) {
        if entry.kind == LOOP {
            let end = at.checked_add(entry.count as usize)?;
            let iteration = entries.get(at + 1..end)?;
            let inner = (depth < DEEPEST).then(|| body(iteration, sizes, order, depth + 1)).flatten()?;
            let last = entries.get(end).filter(|last| last.kind == END && last.count == entry.count)?;
            // In the entry that ends a loop, the extent is the number of packed bytes of an
            // iteration. In the entry that begins the loop, the displacement is the distance
            // between iterations.
            if last.extent != inner.size() {
                return None;
            }
            let iterations = i64::from(entry.length as u32);
            members.push(Datatype::hvector(iterations, 1, entry.displacement, &inner).ok()?);
            places.push(0);
            lengths.push(1);
            at = end + 1;
            continue;
        }
        at += 1;
        let size = *sizes.get(usize::from(entry.kind)).filter(|_| entry.kind > END)?;
        let (blocks, length) = match order {
            Order::Blocks => (u64::from(entry.count), entry.length),
            Order::Lengths => (entry.length, u64::from(entry.count)),
        };
        let bytes = i64::try_from(length.checked_mul(size)?).ok()?;
        let blocks = i64::try_from(blocks).ok()?;
        places.push(entry.displacement);
        if blocks == 1 || bytes == entry.extent {
            lengths.push(bytes.checked_mul(blocks)?);
            members.push(byte.clone());
        } else {
            members.push(Datatype::hvector(blocks, bytes, entry.extent, &byte).ok()?);
            lengths.push(1);
        }
    }
    if members.iter().all(|member| *member == byte) {
        return Datatype::hindexed(&lengths, &places, &byte).ok();
    }
    Datatype::structure(&lengths, &places, &members).ok()
}

#[cfg(test)]
mod tests {
    use ddtc::internal::engine::{Config, Engine};

    use super::*;

    const INT: u16 = 6;
    const DOUBLE: u16 = 16;

    fn sizes() -> [u64; KINDS] {
        let mut sizes = [0; KINDS];
        sizes[usize::from(INT)] = 4;
        sizes[usize::from(DOUBLE)] = 8;
        sizes
    }

    fn element(kind: u16, count: u32, length: u64, extent: i64, displacement: i64) -> Entry {
        Entry { flags: 0x136, kind, count, length, extent, displacement }
    }

    /// Returns the entry that begins a loop. Its words without a meaning hold arbitrary values.
    fn ring(items: u32, iterations: u64, apart: i64) -> Entry {
        Entry {
            flags: 0,
            kind: LOOP,
            count: items,
            length: 0x55 << 32 | iterations,
            extent: -1,
            displacement: apart,
        }
    }

    fn end(items: u32, bytes: i64) -> Entry {
        Entry {
            flags: 0,
            kind: END,
            count: items,
            length: 0x1122_3344_ffff_ffff,
            extent: bytes,
            displacement: 0,
        }
    }

    fn read(bounds: [i64; 5], entries: &[Entry]) -> Option<Datatype> {
        datatype(&View { bounds, entries }, &sizes(), Order::Blocks)
    }

    fn named(named: Named) -> Datatype {
        Datatype::named(named)
    }

    /// Returns true if both datatypes have the same layout: equal normal nests, and equal origins.
    fn same_layout(described: &Datatype, t: &Datatype) -> bool {
        let engine = Engine::new(Config::default());
        let [a, b] = [described, t].map(|t| engine.commit(t).unwrap());
        a.shares_layout(&b) && a.origin() == b.origin()
    }

    #[test]
    fn blocks_are_a_vector() {
        let t = read([24, 0, 48, 0, 48], &[element(INT, 3, 2, 20, 0), end(1, 24)]).unwrap();
        assert!(same_layout(&t, &Datatype::vector(3, 2, 5, &named(Named::Int)).unwrap()));
        // In this description the 32-bit count and the 64-bit count of the description above are
        // exchanged. Read in the order `Blocks`, it describes a type that does not agree with its
        // bounds, so it is refused. Read in the order `Lengths`, it describes the same type as the
        // one above.
        let view = View { bounds: [24, 0, 48, 0, 48], entries: &[element(INT, 2, 3, 20, 0), end(1, 24)] };
        assert!(datatype(&view, &sizes(), Order::Blocks).is_none());
        assert!(datatype(&view, &sizes(), Order::Lengths).is_some());
    }

    #[test]
    fn loops_hold_members() {
        let members = [element(INT, 1, 1, 4, 4), element(DOUBLE, 1, 2, 16, 16)];
        let entries =
            [ring(3, 4, 80), members[0], members[1], end(3, 20), element(INT, 2, 1, 8, 400), end(5, 88)];
        let t = read([88, 4, 412, -8, 512], &entries).unwrap();
        let types = [named(Named::Int), named(Named::Double)];
        let pair = Datatype::structure(&[1, 2], &[4, 16], &types).unwrap();
        let pairs = Datatype::hvector(4, 1, 80, &pair).unwrap();
        let ints = Datatype::vector(2, 1, 2, &types[0]).unwrap();
        let all = Datatype::structure(&[1, 1], &[0, 400], &[pairs, ints]).unwrap();
        let all = Datatype::resized(-8, 520, &all).unwrap();
        assert!(same_layout(&t, &all));
        assert_eq!((t.lb(), t.extent()), (all.lb(), all.extent()));
    }

    #[test]
    fn what_says_something_else_is_refused() {
        let good = [element(INT, 3, 2, 20, 0), end(1, 24)];
        assert!(read([24, 0, 48, 0, 48], &good).is_some());
        for bounds in
            [[20, 0, 48, 0, 48], [24, 4, 48, 0, 48], [24, 0, 52, 0, 48], [24, 0, 48, i64::MIN, i64::MAX]]
        {
            assert!(read(bounds, &good).is_none(), "{bounds:?}");
        }
        // Descriptions that are refused, in this order: a description without its end; a loop
        // without its end; a loop whose end has another number of bytes; an element of an unknown
        // basic type; a loop that is longer than its description.
        for entries in [
            &good[..1],
            &[ring(2, 2, 40), good[0], good[1]],
            &[ring(2, 2, 40), good[0], end(2, 20), end(3, 48)],
            &[element(90, 3, 2, 20, 0), end(1, 24)],
            &[ring(9, 2, 40), good[0], end(2, 24), end(3, 48)],
        ] {
            let size = entries.last().map_or(0, |end| end.extent);
            assert!(read([size, 0, 88, 0, 88], entries).is_none(), "{entries:?}");
        }
    }

    #[test]
    fn views_are_alike_by_what_they_say() {
        let bounds = [48, 0, 88, 0, 88];
        let entries = [ring(2, 2, 40), element(INT, 3, 2, 20, 0), end(2, 24), end(3, 48)];
        let view = View { bounds, entries: &entries };
        let mut others = entries;
        others[0].extent = 7;
        others[0].length = 0x66 << 32 | 2;
        others[3].length = 1;
        let other = View { bounds, entries: &others };
        assert!(view.is(&other) && view.hash() == other.hash());
        others[1].displacement = 4;
        assert!(!view.is(&View { bounds, entries: &others }));
        assert!(!view.is(&View { bounds: [48, 0, 88, 0, 92], entries: &entries }));
    }
}
