//! Normalization: brings a nest into its canonical form. The canonical form and the leaf operation
//! together are the key of the layout cache.
//!
//! There is one pass from the leaves up. A body is rewritten after the bodies inside it, so every
//! rewrite finds normal children, and the time is linear in the size of the nest. [`REWRITES`] is
//! the ordered list; each rewrite has a file that begins with `A --> B` and says when it applies.
//! Normal bodies are interned: equal bodies are stored once, so two bodies are equal exactly if
//! they have the same node indices. Therefore rerolling compares two loops in O(1), and two tables
//! in the time that a comparison of their columns takes.
//!
//! Inlining a body into a list with other nodes copies the body. A budget (48 bytes per constructor
//! argument + 64 KiB) bounds the bytes that are copied, including rows. If the budget does not
//! suffice, bodies that only one node uses are inlined before they are rewritten, which costs
//! nothing. All other bodies that are executed once remain in unit loops. The nest is still
//! correct, but fewer datatypes of equal meaning then have equal nests ([`Normalized::unique`]).
//! Time and memory are linear in the number of arguments.

mod absorb;
mod collapse;
mod drop_empty;
mod fold_copy;
mod hoist;
mod inline_unit;
mod merge_copies;
mod period;
mod reroll;
mod table;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::column::{try_reserve, try_with_capacity};
use crate::error::{Error, Result};
use crate::nest::keys::BuildKeyHasher;
use crate::nest::{
    Body, Byte, Leaf, LoopNest, Lowered, Node, Normal, Offsets, Quantity, Side, Stream, reserve_nodes,
};

/// The rewrites of one body in the order in which they are applied, with the names of
/// docs/PASSES.md. `period` is also tried before all other rewrites, to find bodies that as a whole
/// are repetitions.
pub const REWRITES: [&str; 10] = [
    "drop_empty",
    "inline_unit",
    "table",
    "fold_copy",
    "collapse",
    "merge_copies",
    "absorb",
    "period",
    "reroll",
    "hoist",
];

/// Maximum number of passes over one list. Each pass can find one more level of loops in a list.
/// The layouts of real programs need two or three passes.
const MAX_PASSES: usize = 16;

/// A normal nest at origin 0, and the offsets by which it was moved there.
#[derive(Clone, Debug)]
pub struct Normalized<L = Byte, S = Stream> {
    /// The canonical nest.
    pub nest: LoopNest<Normal, L, S>,
    /// User offset in bytes that must be added to every address of the nest.
    pub origin: i64,
    /// Offset in bytes that was taken out on the packed side. It is zero for a stream, which starts
    /// with its first entry.
    pub packed_origin: i64,
    /// Whether the budget for inlining sufficed. If not, the form of the nest depends on which
    /// bodies the budget paid for. Even if it sufficed, datatypes of equal meaning can have
    /// different nests: for example, a table over a loop is not the same nest as the list of all
    /// blocks of that table.
    pub unique: bool,
}

/// Brings a lowered nest into normal form. The budget for inlining grows with `arguments`, the
/// number of constructor arguments of the datatype.
///
/// # Errors
/// The class is `NoMem` if there is no memory for the nest. Any other error is a fault of ddtc.
pub fn normalize<L: Leaf, S: Side>(
    nest: &LoopNest<Lowered, L, S>,
    arguments: u64,
) -> Result<Normalized<L, S>> {
    // If the budget does not suffice, normalize once more. In this second run, the bodies that are
    // used only once are inlined before any rewrite, which costs nothing.
    let first = normalize_with(nest, arguments, &Bodies::default())?;
    if first.unique {
        return Ok(first);
    }
    let used_once = inline_unit::used_once(nest);
    if used_once.is_empty() {
        return Ok(first);
    }
    drop(first);
    Ok(Normalized { unique: false, ..normalize_with(nest, arguments, &used_once)? })
}

/// Normalizes a nest. The bodies in `inlined` are inlined into the nodes that use them before any
/// rewrite.
fn normalize_with<L: Leaf, S: Side>(
    nest: &LoopNest<Lowered, L, S>,
    arguments: u64,
    inlined: &Bodies<()>,
) -> Result<Normalized<L, S>> {
    let mut n = Normalizer::new(arguments);
    let mut bodies: Vec<Body> = try_with_capacity("normalize", nest.nodes().len() + 1)?;
    bodies.extend(nest.nodes().iter().filter_map(Node::body));
    bodies.push(nest.root());
    bodies.sort_unstable_by_key(|b| (b.start + b.len, b.start));
    bodies.dedup();
    let mut done: Bodies<Inner> = HashMap::default();
    // Iterate over the bodies in ascending order of their ends. A body ends before the node that
    // uses it, so inner bodies come before the bodies around them.
    for body in bodies {
        if !inlined.contains_key(&body) {
            let parts = n.gather(nest, body, inlined, &done)?;
            let inner = n.rewrite(parts)?;
            done.insert(body, inner);
        }
    }
    let root = done.get(&nest.root()).copied().unwrap_or_default();
    let Offsets { user: origin, packed: packed_origin } = root.base;
    let unique = !n.refused;
    Ok(Normalized { nest: n.compact(root.body, nest.size(), nest.extent())?, origin, packed_origin, unique })
}

/// Map from bodies to a property, or a set of bodies.
type Bodies<T> = HashMap<Body, T, BuildKeyHasher>;

/// A rewritten body: its interned nodes, and the offset that was hoisted out of them.
#[derive(Clone, Copy, Debug, Default)]
struct Inner {
    body: Body,
    base: Offsets,
}

/// State of one normalization: the nest under construction, with its interned bodies.
pub(crate) struct Normalizer<L> {
    nodes: Vec<Node<L>>,
    /// Prefix sums of the cost of copying rows: entry `i` is the cost of all nodes before node `i`.
    copy_costs: Vec<u64>,
    interned: HashMap<Vec<Node<L>>, Body, BuildKeyHasher>,
    /// Bytes that inlining may still copy.
    budget: u64,
    /// Whether the budget was too small at least once.
    refused: bool,
}

impl<L: Leaf> Normalizer<L> {
    fn new(arguments: u64) -> Self {
        let budget = arguments.saturating_mul(48).saturating_add(64 << 10);
        Self { nodes: Vec::new(), copy_costs: vec![0], interned: HashMap::default(), budget, refused: false }
    }

    fn body(&self, body: Body) -> &[Node<L>] {
        &self.nodes[body.range()]
    }

    /// Returns the cost of copying the rows of a body; the nodes themselves are not included.
    fn body_copy_cost(&self, body: Body) -> u64 {
        let range = body.range();
        self.copy_costs[range.end] - self.copy_costs[range.start]
    }

    /// Takes `bytes` bytes from the budget and returns true. If fewer bytes are left, takes nothing
    /// and returns false.
    fn spend(&mut self, bytes: u64) -> bool {
        let ok = bytes <= self.budget;
        self.budget -= if ok { bytes } else { 0 };
        self.refused |= !ok;
        ok
    }

    /// Collects the nodes of a lowered body, and replaces the bodies of these nodes by their
    /// rewritten forms. A node whose body is in `inlined` is replaced by the nodes of that body.
    fn gather<S: Side>(
        &self,
        nest: &LoopNest<Lowered, L, S>,
        body: Body,
        inlined: &Bodies<()>,
        done: &Bodies<Inner>,
    ) -> Result<Vec<Node<L>>> {
        let mut parts = try_with_capacity("normalize", body.len as usize)?;
        // Each entry of the stack has the remaining nodes of the body itself, or of a body that is
        // being inlined into it, and the offset to add to these nodes.
        let mut stack = vec![(nest.body(body), Offsets::ZERO)];
        while let Some((nodes, at)) = stack.pop() {
            let Some((node, rest)) = nodes.split_first() else { continue };
            if !rest.is_empty() {
                stack.push((rest, at));
            }
            if drop_empty::applies(node) {
                continue;
            }
            if let Some((inner, _, body)) = inline_unit::unit_body(node)
                && inlined.contains_key(&body)
            {
                stack.push((nest.body(body), at + inner));
                continue;
            }
            let mut node = node.placed(at + node.offsets());
            if let Node::Loop { at, body, .. } | Node::Table { at, body, .. } = &mut node {
                let inner =
                    done.get(body).ok_or_else(|| Error::internal("normalize", "body out of order"))?;
                (*at, *body) = (*at + inner.base, inner.body);
            }
            if !drop_empty::applies(&node) {
                try_reserve("normalize", &mut parts, 1)?;
                parts.push(node);
            }
        }
        Ok(parts)
    }

    /// Rewrites a list of nodes whose own bodies are normal, and interns the result.
    fn rewrite(&mut self, mut parts: Vec<Node<L>>) -> Result<Inner> {
        if let Some((p, step)) = period::find_in_parts(self, &parts) {
            let trip = (parts.len() / p) as u64;
            parts.truncate(p);
            let inner = self.rewrite_parts(parts)?;
            let list = self.loop_over_body(trip, step, inner)?;
            return self.intern(list);
        }
        self.rewrite_parts(parts)
    }

    /// Rewrites a list of nodes that is not a repetition of a shorter list, and interns the result.
    fn rewrite_parts(&mut self, mut parts: Vec<Node<L>>) -> Result<Inner> {
        if let [_] = &parts[..]
            && let Some(node) = parts.pop()
        {
            return self.rewrite_single(node);
        }
        let list = inline_unit::rewrite(self, parts, Normalizer::simplify)?;
        let list = self.rewrite_list(list)?;
        self.intern(list)
    }

    /// Rewrites a body of one node whose own body is normal.
    fn rewrite_single(&mut self, node: Node<L>) -> Result<Inner> {
        if let Some((at, _, body)) = inline_unit::unit_body(&node) {
            return Ok(Inner { body, base: at });
        }
        let mut list = Vec::with_capacity(1);
        self.simplify(node, &mut list)?;
        let list = self.rewrite_list(list)?;
        self.intern(list)
    }

    /// Returns the body that consists of one normal node. A unit loop is replaced by its body.
    fn single_normal(&mut self, node: Node<L>) -> Result<Inner> {
        match inline_unit::unit_body(&node) {
            Some((at, _, body)) => Ok(Inner { body, base: at }),
            None => self.intern(vec![node]),
        }
    }

    /// Rewrites a single node whose body is normal, and appends the resulting nodes to `out`.
    fn simplify(&mut self, node: Node<L>, out: &mut Vec<Node<L>>) -> Result<()> {
        if drop_empty::applies(&node) {
            return Ok(());
        }
        if let Some(node) = table::rewrite(self, node, out)? {
            let node = fold_copy::rewrite(self, node);
            out.push(collapse::rewrite(self, node));
        }
        Ok(())
    }

    /// Rewrites a list of simplified nodes as a whole: merges neighbours, and turns repetitions
    /// into loops and tables.
    fn rewrite_list(&mut self, list: Vec<Node<L>>) -> Result<Vec<Node<L>>> {
        let mut list = merge_copies::rewrite(self, list)?;
        // A loop that rerolling has made may in turn be absorbed by its neighbours or rerolled with
        // them. So repeat these rewrites until the list no longer gets shorter, but at most
        // `MAX_PASSES` times.
        for _ in 0..MAX_PASSES {
            let before = list.len();
            list = absorb::rewrite(self, list)?;
            list = period::rewrite(self, list)?;
            list = reroll::rewrite(self, list)?;
            if list.len() == before {
                break;
            }
        }
        Ok(list)
    }

    /// Returns the simplified loop over `list`, for the rewrites that make loops.
    fn loop_over_list(&mut self, trip: u64, step: Offsets, list: Vec<Node<L>>) -> Result<Vec<Node<L>>> {
        let inner = self.intern(list)?;
        self.loop_over_body(trip, step, inner)
    }

    /// Returns the simplified loop over a body that has been rewritten already.
    fn loop_over_body(
        &mut self,
        trip: u64,
        step: Offsets,
        Inner { body, base }: Inner,
    ) -> Result<Vec<Node<L>>> {
        let mut out = Vec::with_capacity(1);
        let node = Node::Loop { at: base, trip: Quantity::fixed(trip), step, body };
        self.simplify(node, &mut out)?;
        Ok(out)
    }

    /// Hoists the offset of the first node out of the list, and interns the list.
    fn intern(&mut self, mut list: Vec<Node<L>>) -> Result<Inner> {
        let base = hoist::rewrite(&mut list);
        // `entry` hashes the list only once for both look-up and insertion. This matters because
        // hashing a long column takes as long as copying it.
        let body = match self.interned.entry(list) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                let list = place.key();
                reserve_nodes("normalize", &mut self.nodes, list)?;
                let body = Body { start: self.nodes.len() as u32, len: list.len() as u32 };
                try_reserve("normalize", &mut self.copy_costs, list.len())?;
                let mut total = self.copy_costs.last().copied().unwrap_or_default();
                for node in list {
                    self.nodes.push(node.clone());
                    total = inline_unit::copy_cost(node).saturating_add(total);
                    self.copy_costs.push(total);
                }
                *place.insert(body)
            }
        };
        Ok(Inner { body, base })
    }

    /// Copies `root` and all bodies inside it into a new vector, children first and each body once,
    /// so that equal nests become equal vectors.
    fn compact<S: Side>(&self, root: Body, size: i64, extent: i64) -> Result<LoopNest<Normal, L, S>> {
        let mut placed: Bodies<Body> = HashMap::default();
        let mut nodes: Vec<Node<L>> = Vec::new();
        let mut stack = vec![(root, false)];
        while let Some((body, expanded)) = stack.pop() {
            if placed.contains_key(&body) {
                continue;
            }
            if !expanded {
                stack.push((body, true));
                // The children are pushed in reverse order, so that the first child is placed
                // first.
                stack.extend(self.body(body).iter().rev().filter_map(Node::body).map(|b| (b, false)));
                continue;
            }
            let start = nodes.len() as u32;
            try_reserve("normalize", &mut nodes, body.len as usize)?;
            for node in self.body(body) {
                let mut node = node.clone();
                if let Node::Loop { body, .. } | Node::Table { body, .. } = &mut node {
                    *body = placed[body];
                }
                nodes.push(node);
            }
            placed.insert(body, Body { start, len: body.len });
        }
        Ok(LoopNest::new(nodes, placed[&root], size, extent))
    }
}
