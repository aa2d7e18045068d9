//! The type map: the ordered list of (basic type, displacement) that is the meaning of a datatype,
//! produced lazily.
//!
//! The entries of every constructor follow from its definition in MPI 5.0 sections 5.1.2 to 5.1.4,
//! which says at which displacements the copies of its children are, and in which order. For
//! subarray and darray, global array indices are enumerated. This module must be usable as the
//! reference for the rest of the compiler. It therefore uses no nests (the compiler's intermediate
//! representation), no bounds other than the extents that the definitions name, and no expansions
//! other than the named type that an f90 type stands for. The stack is explicit.
//!
//! Invariant: subtrees without data are never entered. To get from one entry to the next takes at
//! most depth + 1 moves up the tree and depth + 1 moves down, and the time to pass over the entries
//! of argument arrays that have no data.

use super::combiner::{Combiner, Distribution, Order};
use super::{Datatype, Named};

/// Position among the copies of children that one constructor places, or among the parts of a named
/// type.
enum Cursor {
    /// Copy `copy` of block `block`.
    Blocks { block: i64, copy: i64 },
    /// Position in the local array of a subarray or darray, which consists of the elements that it
    /// selects.
    Array(Box<LocalArray>),
    /// Index of the next basic part of a named type.
    Parts(usize),
}

/// A datatype whose entries are being listed, with the displacement of its origin and the position
/// of its next child or part.
struct Visit<'a> {
    datatype: &'a Datatype,
    /// Displacement of the datatype's origin. Arithmetic on origins wraps: the displacement of an
    /// entry is known to fit in 64 bits, but an origin on the way to the entry need not fit.
    origin: i64,
    cursor: Cursor,
}

/// One dimension of a local array, the elements that a subarray or darray selects from a global
/// array.
struct Dimension {
    /// Number of local elements along this dimension.
    local: i64,
    /// Distance in bytes between neighbours along this dimension in the global array.
    stride: i64,
    global: GlobalIndex,
}

/// Rule by which an index into the local array becomes an index into the global array.
enum GlobalIndex {
    /// Subarray: local index `k` is global index `start + k`.
    Shifted { start: i64 },
    /// Darray: the local elements are those of blocks `r`, `r + psize` and so on, each of `darg`
    /// elements.
    Cyclic { darg: i64, psize: i64, r: i64 },
}

impl Dimension {
    fn displacement(&self, k: i64) -> i64 {
        let global = match self.global {
            GlobalIndex::Shifted { start } => start + k,
            GlobalIndex::Cyclic { darg, psize, r } => (k / darg * psize + r) * darg + k % darg,
        };
        global.wrapping_mul(self.stride)
    }
}

/// Counter over the elements that a subarray or darray selects. It has a digit for each dimension,
/// and the first digit is that of the dimension that varies fastest.
struct LocalArray {
    dimensions: Vec<Dimension>,
    index: Vec<i64>,
    done: bool,
}

impl LocalArray {
    fn new(
        order: Order,
        extent: i64,
        sizes: &[i64],
        dimension: impl Fn(usize) -> (i64, GlobalIndex),
    ) -> LocalArray {
        let mut stride = extent;
        let mut dimensions = Vec::with_capacity(sizes.len());
        for i in 0..sizes.len() {
            let d = match order {
                Order::C => sizes.len() - 1 - i,
                Order::Fortran => i,
            };
            let (local, global) = dimension(d);
            dimensions.push(Dimension { local, stride, global });
            stride = stride.wrapping_mul(sizes[d]);
        }
        let done = dimensions.iter().any(|d| d.local == 0);
        LocalArray { index: vec![0; sizes.len()], dimensions, done }
    }

    /// Returns the local array of a subarray or darray, and `None` for other constructors.
    fn from_combiner(combiner: &Combiner) -> Option<LocalArray> {
        match combiner {
            Combiner::Subarray { sizes, subsizes, starts, order, oldtype } => {
                Some(LocalArray::new(*order, oldtype.extent(), sizes, |d| {
                    (subsizes[d], GlobalIndex::Shifted { start: starts[d] })
                }))
            }
            Combiner::Darray { rank, gsizes, distribs, dargs, psizes, order, oldtype, .. } => {
                // The process grid is row-major: its last coordinate varies fastest.
                let mut coordinates = vec![0; psizes.len()];
                let mut rest = *rank;
                for d in (0..psizes.len()).rev() {
                    (coordinates[d], rest) = (rest % psizes[d], rest / psizes[d]);
                }
                Some(LocalArray::new(*order, oldtype.extent(), gsizes, |d| {
                    let (gsize, psize, r) = (gsizes[d], psizes[d], coordinates[d]);
                    let darg = match (distribs[d], dargs[d]) {
                        (Distribution::None, _) => gsize,
                        (_, Some(darg)) => darg,
                        (Distribution::Block, None) => gsize / psize + i64::from(gsize % psize > 0),
                        (Distribution::Cyclic, None) => 1,
                    };
                    // The process owns `darg` elements of every full round of blocks, and its share
                    // of the last round, which may be incomplete.
                    let (darg, psize, r) = (i128::from(darg), i128::from(psize), i128::from(r));
                    let (rounds, rest) =
                        (i128::from(gsize) / (darg * psize), i128::from(gsize) % (darg * psize));
                    let local = rounds * darg + (rest - r * darg).clamp(0, darg);
                    // A block that is longer than the array has the same elements as one block of
                    // the whole array.
                    let darg = darg.min(i128::from(gsize)) as i64;
                    (local as i64, GlobalIndex::Cyclic { darg, psize: psize as i64, r: r as i64 })
                }))
            }
            _ => None,
        }
    }

    fn displacement(&self) -> i64 {
        let each = self.dimensions.iter().zip(&self.index).map(|(d, &k)| d.displacement(k));
        each.fold(0, i64::wrapping_add)
    }

    /// Returns the number of local elements from the current one to the last one.
    fn remaining(&self) -> i64 {
        if self.done {
            return 0;
        }
        let digits = self.dimensions.iter().zip(&self.index).rev();
        let (all, before) =
            digits.fold((1, 0), |(all, before), (d, k)| (all * d.local, before * d.local + k));
        all - before
    }

    /// Advances by `n` >= 1 local elements.
    fn advance(&mut self, n: i64) {
        let mut carry = n;
        for (d, k) in self.dimensions.iter().zip(&mut self.index) {
            let sum = i128::from(*k) + i128::from(carry);
            *k = (sum % i128::from(d.local)) as i64;
            carry = (sum / i128::from(d.local)) as i64;
            if carry == 0 {
                return;
            }
        }
        self.done = true;
    }
}

/// Returns block `i` of a constructor: its child, the number of copies of the child, and the
/// displacement of the first copy. Returns `None` after the last block.
pub(super) fn block(combiner: &Combiner, i: i64) -> Option<(&Datatype, i64, i64)> {
    let at = usize::try_from(i).ok()?;
    let one = |child, copies| if i == 0 { Some((child, copies, 0)) } else { None };
    match combiner {
        Combiner::Dup { oldtype } | Combiner::Resized { oldtype, .. } | Combiner::Bounds { oldtype, .. } => {
            one(oldtype, 1)
        }
        Combiner::Contiguous { count, oldtype } => one(oldtype, *count),
        Combiner::Vector { count, blocklength, stride, oldtype } => (i < *count)
            .then(|| (oldtype, *blocklength, i.wrapping_mul(*stride).wrapping_mul(oldtype.extent()))),
        Combiner::Hvector { count, blocklength, stride, oldtype, .. } => {
            (i < *count).then(|| (oldtype, *blocklength, i.wrapping_mul(*stride)))
        }
        Combiner::Indexed { blocklengths, displacements, oldtype } => {
            Some((oldtype, *blocklengths.get(at)?, displacements[at].wrapping_mul(oldtype.extent())))
        }
        Combiner::Hindexed { blocklengths, displacements, oldtype, .. } => {
            Some((oldtype, *blocklengths.get(at)?, displacements[at]))
        }
        Combiner::IndexedBlock { blocklength, displacements, oldtype } => {
            Some((oldtype, *blocklength, displacements.get(at)?.wrapping_mul(oldtype.extent())))
        }
        Combiner::HindexedBlock { blocklength, displacements, oldtype } => {
            Some((oldtype, *blocklength, *displacements.get(at)?))
        }
        Combiner::Struct { blocklengths, displacements, types, .. } => {
            Some((types.get(at)?, *blocklengths.get(at)?, displacements[at]))
        }
        Combiner::ValueIndex { value, index } => match i {
            0 => Some((value, 1, 0)),
            // A pair has the layout of a C structure: the index begins at the first multiple of the
            // index's alignment at or after the end of the value.
            1 => Some((
                index,
                1,
                (value.size() + index.alignment() - 1) / index.alignment() * index.alignment(),
            )),
            _ => None,
        },
        Combiner::Named(_)
        | Combiner::F90Real { .. }
        | Combiner::F90Complex { .. }
        | Combiner::F90Integer { .. }
        | Combiner::Subarray { .. }
        | Combiner::Darray { .. } => None,
    }
}

impl<'a> Visit<'a> {
    fn new(datatype: &'a Datatype, origin: i64) -> Visit<'a> {
        let cursor = match LocalArray::from_combiner(datatype.combiner()) {
            Some(local) => Cursor::Array(Box::new(local)),
            None if datatype.basic().is_some() => Cursor::Parts(0),
            None => Cursor::Blocks { block: 0, copy: 0 },
        };
        Visit { datatype, origin, cursor }
    }

    /// Passes over copies of children as long as `skip` covers them, and subtracts their bytes from
    /// `skip`. Returns the next copy that holds more than `skip` bytes of data, with its origin.
    fn next_child(&mut self, skip: &mut u64) -> Option<(&'a Datatype, i64)> {
        let combiner = self.datatype.combiner();
        // Returns how many whole copies of `bytes` bytes `skip` covers, at most `available`, and
        // subtracts their bytes from `skip`. Mostly there is nothing to skip, and `available` is
        // then not computed.
        let mut skip_copies = |bytes: i64, available: &dyn Fn() -> i64| {
            if *skip < bytes as u64 {
                return 0;
            }
            let passed = (*skip / bytes as u64).min(available().max(0) as u64);
            *skip -= passed * bytes as u64;
            passed as i64
        };
        match &mut self.cursor {
            Cursor::Parts(_) => None,
            Cursor::Array(local) => {
                let oldtype = combiner.children().next()?;
                let passed = skip_copies(oldtype.size(), &|| local.remaining());
                if passed > 0 {
                    local.advance(passed);
                }
                if local.done {
                    return None;
                }
                let displacement = local.displacement();
                local.advance(1);
                Some((oldtype, self.origin.wrapping_add(displacement)))
            }
            Cursor::Blocks { block: i, copy } => loop {
                let (child, copies, displacement) = block(combiner, *i)?;
                if child.size() > 0 {
                    *copy += skip_copies(child.size(), &|| copies - *copy);
                    if *copy < copies {
                        let step = copy.wrapping_mul(child.extent());
                        *copy += 1;
                        return Some((child, self.origin.wrapping_add(displacement).wrapping_add(step)));
                    }
                }
                (*i, *copy) = (*i + 1, 0);
                // The blocks of a vector are equal, so any number of them is passed over in one
                // step.
                if let Combiner::Vector { count, .. } | Combiner::Hvector { count, .. } = combiner {
                    *i += skip_copies(copies * child.size(), &|| *count - *i);
                }
            },
        }
    }
}

/// Lazy iterator over the type map: `(basic type, displacement in bytes)` in packing order. A pair
/// type gives an entry for each of its two parts, and a marker gives none.
pub struct TypeMap<'a> {
    datatype: &'a Datatype,
    /// Number of instances that have not been started. `origin` is the origin of the next instance.
    instances: u64,
    origin: i64,
    stack: Vec<Visit<'a>>,
    /// Number of bytes of data that are still to be passed over.
    skip: u64,
}

impl<'a> TypeMap<'a> {
    /// Returns the type map of one instance.
    pub fn new(datatype: &'a Datatype) -> TypeMap<'a> {
        TypeMap::instances(datatype, 1)
    }

    /// Returns the type map of `count` instances, one extent apart. A displacement is exact if it
    /// fits in 64 bits, and wraps otherwise.
    pub fn instances(datatype: &'a Datatype, count: u64) -> TypeMap<'a> {
        let instances = if datatype.size() == 0 { 0 } else { count };
        TypeMap { datatype, instances, origin: 0, stack: Vec::new(), skip: 0 }
    }

    /// Passes over the next `bytes` bytes of data. If they end inside an entry, `next` still
    /// returns this entry, and the result is the number of its bytes that were passed over.
    /// Otherwise the result is 0. The time depends on the number of blocks, not on `bytes`.
    pub fn skip_bytes(&mut self, bytes: u64) -> u64 {
        self.skip = bytes;
        while let Some(inside) = self.step() {
            if let Some(inside) = inside {
                return inside;
            }
        }
        0
    }

    /// Makes one move towards the next entry. Returns `None` if there is no entry left,
    /// `Some(None)` if more moves are needed, and `Some(Some(b))` if the next part of the visit on
    /// top of the stack is the next entry. `b` is the number of bytes to skip at the start of this
    /// entry.
    fn step(&mut self) -> Option<Option<u64>> {
        let Some(visit) = self.stack.last_mut() else {
            // No instance is being visited. Pass over whole instances as long as `skip` covers
            // them, and start the next one.
            let size = self.datatype.size().max(1) as u64;
            let passed = (self.skip / size).min(self.instances);
            self.skip -= passed * size;
            self.instances -= passed;
            self.origin = self.origin.wrapping_add((passed as i64).wrapping_mul(self.datatype.extent()));
            if self.instances == 0 {
                return None;
            }
            self.stack.push(Visit::new(self.datatype, self.origin));
            self.instances -= 1;
            self.origin = self.origin.wrapping_add(self.datatype.extent());
            return Some(None);
        };
        if let Cursor::Parts(part) = &mut visit.cursor {
            // The visit on top of the stack is that of a named type. Its next part is the next
            // entry, unless `skip` covers the whole part.
            let Some((basic, _)) = visit.datatype.basic().and_then(|n| n.parts().get(*part)) else {
                self.stack.pop();
                return Some(None);
            };
            let size = basic.size() as u64;
            if self.skip >= size {
                self.skip -= size;
                *part += 1;
                return Some(None);
            }
            return Some(Some(std::mem::take(&mut self.skip)));
        }
        match visit.next_child(&mut self.skip) {
            Some((child, origin)) => {
                // If this child is the last one of its visit, the visit could be removed now. It
                // stays, because this is simpler.
                self.stack.push(Visit::new(child, origin));
            }
            None => {
                self.stack.pop();
            }
        }
        Some(None)
    }
}

impl Iterator for TypeMap<'_> {
    type Item = (Named, i64);

    fn next(&mut self) -> Option<(Named, i64)> {
        loop {
            self.step()?;
            let Some(visit) = self.stack.last_mut() else { continue };
            if let Cursor::Parts(part) = &mut visit.cursor
                && let Some(&(basic, displacement)) =
                    visit.datatype.basic().and_then(|n| n.parts().get(*part))
            {
                *part += 1;
                return Some((basic, visit.origin.wrapping_add(displacement)));
            }
        }
    }
}

impl Datatype {
    /// Returns the type map of one instance, in packing order. The entries are produced lazily.
    pub(crate) fn type_map(&self) -> TypeMap<'_> {
        TypeMap::new(self)
    }

    /// Returns the named type of a leaf, which is the type itself or the named type that an f90
    /// type stands for. Returns `None` for a node with children.
    pub(crate) fn basic(&self) -> Option<Named> {
        match self.combiner() {
            Combiner::Named(n) => Some(*n),
            Combiner::F90Real { .. } | Combiner::F90Complex { .. } | Combiner::F90Integer { .. } => {
                self.expansion().and_then(Datatype::basic)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From any entry on, passing over any number of bytes leads to the entry that the whole list
    /// has there, past the ends of arrays too.
    #[test]
    fn bytes_are_passed_over_from_any_entry() {
        let double = Datatype::of::<f64>();
        let array = Datatype::subarray(&[3, 4], &[2, 3], &[1, 0], Order::C, &double).unwrap();
        let tail = Datatype::vector(2, 1, 3, &Datatype::of::<i32>()).unwrap();
        let pieces = [(1, 0, array.clone()), (1, 200, tail), (2, 400, array)];
        let lengths = pieces.each_ref().map(|p| p.0);
        let displacements = pieces.each_ref().map(|p| p.1);
        let types = pieces.map(|p| p.2);
        let t = Datatype::structure(&lengths, &displacements, &types).unwrap();
        // Each entry with the number of packed bytes before it.
        let mut bytes = 0;
        let entries: Vec<_> = TypeMap::instances(&t, 2)
            .map(|(basic, displacement)| {
                bytes += basic.size() as u64;
                (basic, displacement, bytes - basic.size() as u64)
            })
            .collect();
        for used in 0..=entries.len() {
            let begin = entries.get(used).map_or(bytes, |e| e.2);
            // Under Miri all distances take more than seven minutes. Miri is there to check memory
            // accesses, for which every seventh distance suffices.
            for skip in (0..=bytes - begin + 8).step_by(if cfg!(miri) { 7 } else { 1 }) {
                let mut map = TypeMap::instances(&t, 2);
                assert_eq!(map.by_ref().take(used).count(), used);
                let inside = map.skip_bytes(skip);
                let expected = entries.iter().find(|e| e.2 + e.0.size() as u64 > begin + skip);
                assert_eq!(inside, expected.map_or(0, |e| begin + skip - e.2), "{used} {skip}");
                assert_eq!(map.next(), expected.map(|e| (e.0, e.1)), "{used} {skip}");
            }
        }
    }
}
