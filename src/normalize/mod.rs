//! Normalization: the canonical meaning of a nest. Together with the kernel kind it is the cache key.
//!
//! One pass from the leaves up; a body is rewritten after the bodies inside it, so every rewrite sees normal children and
//! the whole is linear in the nest. [`REWRITES`] is the ordered list; each rewrite has a file with `A --> B`, its condition
//! and its source. Normal bodies are interned: two bodies are equal exactly when they are the same run of nodes, so the
//! comparisons of rerolling cost O(1).
//!
//! Inlining a body beside others copies it; a budget (48 bytes per constructor argument + 64 KiB) bounds that.
//! Past it unit loops stay: the nest is still correct, but no longer the only one of its meaning ([`Normalized::unique`]).

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

use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use crate::error::{Error, Result};
use crate::nest::{At, Body, LoopNest, Lowered, Node, Normal};

/// The rewrites of one body, in order, by the names used in docs/PASSES.md.
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

/// Most passes over one list. Each level of nesting found takes one, so layouts of programs need two or three.
const MAX_PASSES: usize = 16;

/// A normal nest at origin 0 and the user offset that was taken out of it.
#[derive(Clone, Debug)]
pub struct Normalized {
    /// The canonical nest.
    pub nest: LoopNest<Normal>,
    /// User offset in bytes that every address of the nest must be moved by.
    pub origin: i64,
    /// The same on the packed side, in bytes: zero for a stream, which starts with its first entry.
    pub packed_origin: i64,
    /// Whether the budget for inlining sufficed: if so, equal meanings have equal nests.
    pub unique: bool,
}

/// Brings a lowered nest into normal form; `arguments` is the number of constructor arguments that the budget is measured by.
///
/// # Errors
/// Only faults of ddtc (a nest that its verifier refuses).
pub fn normalize(nest: &LoopNest<Lowered>, arguments: u64) -> Result<Normalized> {
    let mut n = Normalizer::new(arguments);
    let mut bodies: Vec<Body> = nest.nodes().iter().filter_map(Node::body).collect();
    bodies.push(nest.root());
    bodies.sort_by_key(|b| (b.start + b.len, b.start));
    bodies.dedup();
    let mut done: HashMap<Body, Inner, Xxh3DefaultBuilder> = HashMap::default();
    // A body ends before its user, so ascending order of ends sees children first.
    for body in bodies {
        let inner = n.rewrite(nest.body(body), &done)?;
        done.insert(body, inner);
    }
    let root = done.get(&nest.root()).copied().unwrap_or_default();
    let At { user: origin, packed: packed_origin } = root.base;
    let unique = !n.refused;
    Ok(Normalized { nest: n.compact(root.body, nest.size(), nest.extent()), origin, packed_origin, unique })
}

/// A rewritten body: interned nodes and the offset hoisted out of them.
#[derive(Clone, Copy, Debug, Default)]
struct Inner {
    body: Body,
    base: At,
}

/// State of one normalization: the nest under construction with its interned bodies.
pub(crate) struct Normalizer {
    nodes: Vec<Node>,
    interned: HashMap<Vec<Node>, Body, Xxh3DefaultBuilder>,
    budget: usize,
    /// Whether the budget was once too small.
    refused: bool,
}

impl Normalizer {
    fn new(arguments: u64) -> Self {
        let bytes = arguments.saturating_mul(48).saturating_add(64 << 10);
        let budget = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<Node>();
        Self { nodes: Vec::new(), interned: HashMap::default(), budget, refused: false }
    }

    fn body(&self, body: Body) -> &[Node] {
        &self.nodes[body.range()]
    }

    /// Whether `n` more nodes may be copied into a body.
    fn spend(&mut self, n: usize) -> bool {
        let ok = n <= self.budget;
        self.budget -= if ok { n } else { 0 };
        self.refused |= !ok;
        ok
    }

    /// Rewrites one body, of `nodes` whose own bodies are done.
    fn rewrite(&mut self, nodes: &[Node], done: &HashMap<Body, Inner, Xxh3DefaultBuilder>) -> Result<Inner> {
        let mut parts = Vec::with_capacity(nodes.len());
        for node in nodes {
            let mut node = node.clone();
            let at = node.at();
            if let Node::Loop { body, .. } | Node::Table { body, .. } = &mut node {
                let inner =
                    done.get(body).ok_or_else(|| Error::internal("normalize", "body out of order"))?;
                *body = inner.body;
                *node.at_mut() = at + inner.base;
            }
            if !drop_empty::applies(&node) {
                parts.push(node);
            }
        }
        if let [node] = &parts[..]
            && let Some((at, _, body)) = inline_unit::once(node)
        {
            return Ok(Inner { body, base: at });
        }
        let list = self.parts(parts)?;
        Ok(self.close(list))
    }

    /// The rewrites of a list of nodes whose bodies are normal.
    fn parts(&mut self, mut parts: Vec<Node>) -> Result<Vec<Node>> {
        let repeated = period::of_parts(self, &parts);
        let trip = repeated.map(|(p, step)| ((parts.len() / p) as u64, step, parts.truncate(p)));
        let mut list = Vec::with_capacity(parts.len());
        for node in parts {
            self.simplify(node, &mut list);
        }
        let list = self.list(list)?;
        Ok(match trip {
            Some((trip, step, ())) => self.looped(trip, step, list),
            None => list,
        })
    }

    /// The rewrites of a single node whose body is normal; appends what is left of it.
    fn simplify(&mut self, node: Node, out: &mut Vec<Node>) {
        if drop_empty::applies(&node) {
            return;
        }
        let Some(node) = inline_unit::rewrite(self, node, out) else { return };
        let Some(node) = table::rewrite(self, node, out) else { return };
        let node = fold_copy::rewrite(self, node);
        out.push(collapse::rewrite(self, node));
    }

    /// The rewrites of a whole list of simplified nodes.
    fn list(&mut self, list: Vec<Node>) -> Result<Vec<Node>> {
        let mut list = merge_copies::rewrite(self, list)?;
        // What was rerolled may continue or repeat its neighbours in turn. Every pass but the last shortens the list.
        for _ in 0..MAX_PASSES {
            let before = list.len();
            list = absorb::rewrite(self, list);
            list = period::rewrite(self, list)?;
            list = reroll::rewrite(self, list)?;
            if list.len() == before {
                break;
            }
        }
        Ok(list)
    }

    /// A loop over `list`, simplified: used by the rewrites that make loops.
    fn looped(&mut self, trip: u64, step: At, list: Vec<Node>) -> Vec<Node> {
        let Inner { body, base } = self.close(list);
        let mut out = Vec::with_capacity(1);
        let node = Node::Loop { at: base, trip: crate::nest::Trip::fixed(trip), step, body };
        self.simplify(node, &mut out);
        out
    }

    /// Hoists the offset of the first node and interns the list.
    fn close(&mut self, mut list: Vec<Node>) -> Inner {
        let base = hoist::rewrite(&mut list);
        // One hash for both: that of a long column takes as long as copying it.
        let body = match self.interned.entry(list) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                let list = place.key();
                let body = Body { start: self.nodes.len() as u32, len: list.len() as u32 };
                self.nodes.extend(list.iter().cloned());
                *place.insert(body)
            }
        };
        Inner { body, base }
    }

    /// Copies what `root` reaches into a fresh vector, children first, each body once: equal nests become equal vectors.
    fn compact(&self, root: Body, size: i64, extent: i64) -> LoopNest<Normal> {
        let mut placed: HashMap<Body, Body, Xxh3DefaultBuilder> = HashMap::default();
        let mut nodes: Vec<Node> = Vec::new();
        let mut stack = vec![(root, false)];
        while let Some((body, expanded)) = stack.pop() {
            if placed.contains_key(&body) {
                continue;
            }
            if !expanded {
                stack.push((body, true));
                // Reversed so that the first child is placed first.
                stack.extend(self.body(body).iter().rev().filter_map(Node::body).map(|b| (b, false)));
                continue;
            }
            let start = nodes.len() as u32;
            for node in self.body(body) {
                let mut node = node.clone();
                if let Node::Loop { body, .. } | Node::Table { body, .. } = &mut node {
                    *body = placed[body];
                }
                nodes.push(node);
            }
            placed.insert(body, Body { start, len: body.len });
        }
        LoopNest::new(nodes, placed[&root], size, extent)
    }
}
