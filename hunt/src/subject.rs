//! The datatype of a case, in the library and in ddtc: the handles of all nodes, the tree with the
//! library's bounds, and the type map of that tree.

use std::collections::HashMap;

use ddtc::internal::datatype::{Combiner, Datatype, Named};
use ddtc::internal::exec::interp;
use ddtc::internal::fuzzing::rebuilt;
use ddtc::internal::methods::*;

use crate::library::{Answer, Bounds, Handle, Library, Refusal};

/// A node of a datatype tree, which was built in the library.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The node in the original tree of the case, with the bounds of the definition instead of the
    /// library's.
    pub(crate) plain: Datatype,
    /// The node with the bounds that follow from the definitions if its children have the bounds
    /// that the library gives them.
    pub(crate) defined: Datatype,
    /// The node with the bounds that the library gives it. Checks that move bytes compute the
    /// expected bytes from this datatype.
    pub(crate) judged: Datatype,
    pub(crate) handle: Handle,
    pub(crate) bounds: Bounds,
}

/// A datatype in the library. It is freed by [`Subject::free`].
#[derive(Debug)]
pub(crate) struct Subject {
    /// The nodes of the datatype tree, each after its children. The last node is the datatype
    /// itself.
    pub(crate) nodes: Vec<Node>,
    pub(crate) count: u64,
    map: std::cell::OnceCell<Option<Map>>,
}

/// The type map of all instances of a datatype. The datatype is small enough for its bytes to be
/// moved.
#[derive(Debug)]
pub(crate) struct Map {
    /// Displacement, number of bytes and basic type of each entry, in packing order.
    pub(crate) entries: Vec<(i64, usize, Named)>,
    /// `low` is the minimum of 0 and the lowest mapped displacement. `high` is the maximum of 0 and
    /// the end of the highest mapped byte.
    pub(crate) low: i64,
    pub(crate) high: i64,
    /// Number of bytes of the stream.
    pub(crate) size: usize,
    /// Whether a byte is mapped more than once.
    pub(crate) overlaps: bool,
    /// For each byte from displacement `low` to displacement `high`, whether an entry of the type
    /// map has it.
    pub(crate) mapped: Vec<bool>,
}

/// Bytes are moved only if the stream has at most `LARGEST` bytes and no mapped byte is more than
/// `WIDEST` bytes from displacement 0.
const LARGEST: i64 = 256 << 10;
const WIDEST: i64 = 1 << 20;

impl Subject {
    /// Builds the datatype `t` and all its nodes in the MPI library.
    ///
    /// # Errors
    /// Returns the node that the library refused, and the library's error. If bounds that are
    /// computed from the library's bounds do not fit in 64 bits, the error has class 0. Nodes that
    /// were already built are freed.
    pub(crate) fn build(library: &Library, t: &Datatype, count: u64) -> Result<Subject, (Datatype, Refusal)> {
        let mut subject = Subject { nodes: Vec::new(), count, map: std::cell::OnceCell::new() };
        let mut handles: HashMap<usize, Handle> = HashMap::new();
        // Each node is built from the handles of its children. In the expected tree, the node then
        // has the bounds that the library returned, so that a wrong node does not make all nodes
        // above it look wrong.
        let mut refused = None;
        let built = rebuilt(t, &mut |node, combiner| {
            let children: Vec<Handle> =
                node.combiner().children().map(|child| handles[&child.id()]).collect();
            let made = library.construct(&combiner, node.is_large_count(), &children);
            let (handle, bounds) = match made.and_then(|h| Ok((h, library.bounds(h)?))) {
                Ok(made) => made,
                Err(refusal) => {
                    refused = Some((node.clone(), refusal));
                    return None;
                }
            };
            handles.insert(node.id(), handle);
            let mut defined = Datatype::new(combiner).ok()?;
            if node.is_large_count() {
                defined = defined.with_large_count();
            }
            let judged = Datatype::bounds(bounds.lb, bounds.extent, &defined).ok()?;
            let node = Node { plain: node.clone(), defined, judged: judged.clone(), handle, bounds };
            subject.nodes.push(node);
            Some(judged)
        });
        match (built, refused) {
            (Some(_), _) => Ok(subject),
            (None, Some(refused)) => {
                subject.free(library);
                Err(refused)
            }
            (None, None) => {
                subject.free(library);
                // Bounds that are computed from the library's bounds do not fit in 64 bits, so
                // nothing more can be judged.
                Err((t.clone(), Refusal { call: "", class: 0 }))
            }
        }
    }

    /// Returns the node of the datatype itself.
    pub(crate) fn root(&self) -> &Node {
        &self.nodes[self.nodes.len() - 1]
    }

    /// Returns the node that was built for `plain`, a node of the original tree.
    pub(crate) fn node(&self, plain: &Datatype) -> Option<&Node> {
        self.nodes.iter().find(|n| n.plain.id() == plain.id())
    }

    /// Frees the handles of all nodes that are not predefined.
    pub(crate) fn free(self, library: &Library) {
        for node in &self.nodes {
            if !is_predefined(&node.plain) {
                let _ = library.free(node.handle);
            }
        }
    }

    /// Commits the datatype.
    pub(crate) fn commit(&self, library: &Library) -> Answer<()> {
        library.commit(self.root().handle)
    }

    /// Returns the type map of all instances, or none if it is too large for the checks that move
    /// bytes.
    pub(crate) fn map(&self) -> Option<&Map> {
        self.map.get_or_init(|| Map::new(&self.root().judged, self.count)).as_ref()
    }
}

/// Returns true if a datatype is predefined. A predefined datatype must never be freed.
pub(crate) fn is_predefined(t: &Datatype) -> bool {
    t.combiner().kind().is_predefined()
}

impl Map {
    /// Returns the map of `count` instances of `t`, or none if it is too large for moving bytes.
    pub(crate) fn new(t: &Datatype, count: u64) -> Option<Map> {
        let size = t.size().checked_mul(i64::try_from(count).ok()?)?;
        let reach = t.extent().checked_abs()?.checked_mul(i64::try_from(count).ok()?)?;
        let far = [t.true_lb().checked_abs()?, t.true_ub().checked_abs()?, reach].into_iter().max()?;
        if size > LARGEST || far > WIDEST {
            return None;
        }
        let mut entries = Vec::new();
        interp::for_each(t, count, &mut |at, len, named| entries.push((at, len, named))).ok()?;
        let low = entries.iter().map(|e| e.0).min().unwrap_or(0).min(0);
        let high = entries.iter().map(|e| e.0 + e.1 as i64).max().unwrap_or(0).max(0);
        let mut mapped = vec![false; (high - low) as usize];
        let mut overlaps = false;
        for &(at, len, _) in &entries {
            let at = (at - low) as usize;
            for byte in &mut mapped[at..at + len] {
                overlaps |= std::mem::replace(byte, true);
            }
        }
        Some(Map { entries, low, high, size: size as usize, overlaps, mapped })
    }

    /// Returns the map of the same elements stored without gaps.
    pub(crate) fn flat(&self) -> Map {
        let mut next = 0;
        let entries = self.entries.iter().map(|&(_, len, named)| {
            next += len as i64;
            (next - len as i64, len, named)
        });
        let entries = entries.collect();
        let (high, mapped) = (self.size as i64, vec![true; self.size]);
        Map { entries, low: 0, high, size: self.size, overlaps: false, mapped }
    }

    /// Returns true if the map has at least one entry for whose basic type `is` returns true.
    pub(crate) fn any(&self, is: impl Fn(Named) -> bool) -> bool {
        self.entries.iter().any(|e| is(e.2))
    }
}

/// Returns true if a datatype has an element of two parts: a value with an index, such as
/// `MPI_DOUBLE_INT`.
pub(crate) fn has_pairs(t: &Datatype) -> bool {
    t.nodes().any(|n| match n.combiner() {
        Combiner::Named(n) => n.parts().len() > 1,
        Combiner::ValueIndex { .. } => true,
        _ => false,
    })
}
