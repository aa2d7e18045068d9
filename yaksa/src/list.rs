//! The pieces of memory that instances of a type consist of, from any piece on.
//!
//! The order is that of the packed stream, the pieces are those that the rule counts ([`crate::node`]), and every place of the list is found by
//! division or binary search. Nothing recurses on the stack.

use crate::node::{Node, Shape};

/// Takes the pieces of a list, in order, until it says that it wants no more.
pub(crate) trait Pieces {
    /// `length` bytes at `at`.
    fn one(&mut self, at: i64, length: i64) -> bool;

    /// `n` of them, `step` bytes apart.
    #[inline]
    fn run(&mut self, at: i64, length: i64, step: i64, n: u64) -> bool {
        let mut at = at;
        for _ in 0..n {
            if !self.one(at, length) {
                return false;
            }
            at = at.wrapping_add(step);
        }
        true
    }

    /// One each at displacements from `at`.
    #[inline]
    fn scattered(&mut self, at: i64, length: i64, places: &[i64]) -> bool {
        places.iter().all(|d| self.one(at.wrapping_add(*d), length))
    }
}

/// A part of a list that is still to be listed.
#[derive(Clone, Copy)]
enum Open<'n> {
    /// Copies of a type, one extent apart, from an address on.
    Copies { node: &'n Node, at: i64, left: u64 },
    /// The blocks of one copy of a type, from a block on.
    Blocks { node: &'n Node, at: i64, next: usize },
}

/// A list that is being made.
struct Lister<'n> {
    stack: Vec<Open<'n>>,
    /// Pieces to pass first.
    skip: u64,
}

/// Gives `take` the pieces of `count` instances at `at`, from piece `from` on.
pub(crate) fn list(node: &Node, at: i64, count: u64, from: u64, take: &mut impl Pieces) {
    let mut lister = Lister { stack: vec![Open::Copies { node, at, left: count }], skip: from };
    while let Some(open) = lister.stack.pop() {
        let more = match open {
            Open::Copies { node, at, left } => lister.copies(node, at, left, take),
            Open::Blocks { node, at, next } => lister.blocks(node, at, next, take),
        };
        if !more {
            return;
        }
    }
}

/// An instance that is listed without being taken apart further.
#[derive(Clone, Copy)]
enum Leaf<'n> {
    /// Equal pieces at equal distances.
    Run { first: i64, length: i64, step: i64, n: u64 },
    /// Blocks at displacements, each one piece or nothing.
    Flat(&'n Node),
}

impl<'n> Leaf<'n> {
    /// An instance of `node`, where it is one.
    #[inline]
    fn of(node: &'n Node) -> Option<Leaf<'n>> {
        if node.facts.dense() {
            // A single piece, whatever it consists of.
            return None;
        }
        let node = match node.shape() {
            Shape::Bounded { child } => child,
            _ => node,
        };
        match node.shape() {
            Shape::Strided { count, length, stride, child } => {
                let facts = &child.facts;
                let one = facts.dense() && (*length == 1 || facts.contiguous());
                one.then_some(Leaf::Run {
                    first: facts.true_lb,
                    length: *length * facts.size,
                    step: *stride,
                    n: *count as u64,
                })
            }
            _ => node.is_flat().then_some(Leaf::Flat(node)),
        }
    }

    /// `copies` of it from `at` on, `extent` apart.
    #[inline]
    fn take(self, mut at: i64, extent: i64, copies: u64, take: &mut impl Pieces) -> bool {
        for _ in 0..copies {
            let more = match self {
                Leaf::Run { first, length, step, n } => take.run(at.wrapping_add(first), length, step, n),
                Leaf::Flat(node) => flat(node, at, 0, take),
            };
            if !more {
                return false;
            }
            at = at.wrapping_add(extent);
        }
        true
    }
}

/// The blocks of a flat node at `at`, from block `next` on.
#[inline]
fn flat(node: &Node, at: i64, next: usize, take: &mut impl Pieces) -> bool {
    match node.shape() {
        Shape::Blocks { length, at: places, child } => {
            let at = at.wrapping_add(child.facts.true_lb);
            let places = places.at().get(next..).unwrap_or_default();
            take.scattered(at, length * child.facts.size, places)
        }
        Shape::Listed { blocks, child } => {
            let at = at.wrapping_add(child.facts.true_lb);
            let (lengths, places) = blocks.both();
            let mut all = lengths.iter().zip(places).skip(next).filter(|(length, _)| **length > 0);
            all.all(|(length, d)| take.one(at.wrapping_add(*d), length * child.facts.size))
        }
        Shape::Struct { blocks, children } => {
            let (lengths, places) = blocks.both();
            let all = lengths.iter().zip(places).zip(children).skip(next);
            let mut all = all.map(|((length, d), child)| (length * child.facts.size, d, child.facts.true_lb));
            all.all(|(bytes, d, lb)| bytes == 0 || take.one(at.wrapping_add(*d).wrapping_add(lb), bytes))
        }
        _ => true,
    }
}

impl<'n> Lister<'n> {
    /// A block of copies: listed at once where it is a single piece, else put on top, to be listed next.
    #[inline]
    fn block(&mut self, node: &'n Node, at: i64, length: i64, take: &mut impl Pieces) -> bool {
        let facts = &node.facts;
        if length <= 0 || facts.size == 0 {
            return true;
        }
        if self.skip == 0 && facts.dense() && (length == 1 || facts.contiguous()) {
            return take.one(at.wrapping_add(facts.true_lb), length * facts.size);
        }
        if self.skip == 0
            && let Some(leaf) = Leaf::of(node)
        {
            return leaf.take(at, facts.extent, length as u64, take);
        }
        self.stack.push(Open::Copies { node, at, left: length as u64 });
        true
    }

    fn copies(&mut self, node: &'n Node, mut at: i64, mut left: u64, take: &mut impl Pieces) -> bool {
        let facts = &node.facts;
        if left == 0 || facts.pieces() == 0 {
            return true;
        }
        if facts.contiguous() {
            let passed = self.skip > 0;
            self.skip = self.skip.saturating_sub(1);
            return passed
                || take.one(at.wrapping_add(facts.true_lb), (left as i64).wrapping_mul(facts.size));
        }
        let passed = left.min(self.skip / facts.pieces());
        self.skip -= passed * facts.pieces();
        (at, left) = (at.wrapping_add(facts.extent.wrapping_mul(passed as i64)), left - passed);
        if left == 0 {
            return true;
        }
        if facts.dense() {
            return take.run(at.wrapping_add(facts.true_lb), facts.size, facts.extent, left);
        }
        if self.skip == 0
            && let Some(leaf) = Leaf::of(node)
        {
            return leaf.take(at, facts.extent, left, take);
        }
        self.stack.push(Open::Copies { node, at: at.wrapping_add(facts.extent), left: left - 1 });
        self.one(node, at, take)
    }

    /// One copy, after the pieces that are to be passed, which are fewer than it has.
    fn one(&mut self, node: &'n Node, at: i64, take: &mut impl Pieces) -> bool {
        let next = match node.shape() {
            _ if self.skip == 0 => 0,
            Shape::Empty | Shape::Copies { .. } | Shape::Bounded { .. } => 0,
            // Parts with a gap: each is a piece.
            Shape::Named(_) => std::mem::take(&mut self.skip) as usize,
            Shape::Strided { length, child, .. } => {
                let each = child.facts.block(*length).0.max(1);
                let next = self.skip / each;
                self.skip %= each;
                next as usize
            }
            Shape::Blocks { .. } | Shape::Listed { .. } | Shape::Struct { .. } => {
                let before = node.before();
                // The last one that begins there or before: empty blocks come first.
                let next = before.partition_point(|&start| start <= self.skip) - 1;
                self.skip -= before[next];
                next
            }
        };
        self.blocks(node, at, next, take)
    }

    fn blocks(&mut self, node: &'n Node, at: i64, mut next: usize, take: &mut impl Pieces) -> bool {
        if self.skip == 0 && node.is_flat() {
            return flat(node, at, next, take);
        }
        let depth = self.stack.len();
        let blocks = node.blocks_listed();
        // Until a block is on top, which comes first.
        while self.stack.len() == depth {
            let more = match node.shape() {
                Shape::Empty => return true,
                Shape::Copies { count, child } => return self.block(child, at, *count, take),
                Shape::Bounded { child } => return self.block(child, at, 1, take),
                Shape::Named(named) => match named.pieces().get(next) {
                    Some(&(d, length)) => take.one(at.wrapping_add(d), length),
                    None => return true,
                },
                Shape::Strided { count, length, stride, child } => {
                    let facts = &child.facts;
                    if self.skip == 0 && facts.dense() && (*length == 1 || facts.contiguous()) {
                        // Blocks of one piece: nothing to be remembered.
                        let first =
                            at.wrapping_add(facts.true_lb).wrapping_add(stride.wrapping_mul(next as i64));
                        let left = (*count as u64).saturating_sub(next as u64);
                        return take.run(first, *length * facts.size, *stride, left);
                    }
                    if self.skip == 0
                        && let Some(leaf) = Leaf::of(child)
                    {
                        return (next as i64..*count).all(|i| {
                            leaf.take(
                                at.wrapping_add(stride.wrapping_mul(i)),
                                facts.extent,
                                *length as u64,
                                take,
                            )
                        });
                    }
                    if next as i64 >= *count {
                        return true;
                    }
                    self.block(child, at.wrapping_add(stride.wrapping_mul(next as i64)), *length, take)
                }
                Shape::Blocks { .. } | Shape::Listed { .. } | Shape::Struct { .. } => {
                    if next >= blocks {
                        return true;
                    }
                    let (child, length, d) = node.block(next);
                    self.block(child, at.wrapping_add(d), length, take)
                }
            };
            if !more {
                return false;
            }
            next += 1;
        }
        // Below the block on top.
        self.stack.insert(depth, Open::Blocks { node, at, next });
        true
    }
}

/// Returns the pieces that are whole in the first `bytes` packed bytes of one instance, which has more, and the bytes of those.
pub(crate) fn within(node: &Node, bytes: i64) -> (u64, i64) {
    let (mut node, mut pieces, mut left) = (node, 0, bytes);
    loop {
        // The type that the end lies in copies of, behind which nothing is whole.
        let inside = match node.shape() {
            _ if node.facts.dense() => None,
            Shape::Empty => None,
            Shape::Named(named) => {
                for &(_, length) in named.pieces() {
                    if length > left {
                        break;
                    }
                    (pieces, left) = (pieces + 1, left - length);
                }
                None
            }
            Shape::Copies { child, .. } | Shape::Bounded { child } => Some(&**child),
            Shape::Strided { length, child, .. } => {
                let block = length * child.facts.size;
                pieces += (left / block) as u64 * child.facts.block(*length).0;
                left %= block;
                Some(&**child)
            }
            Shape::Blocks { .. } | Shape::Listed { .. } | Shape::Struct { .. } => {
                let mut inside = None;
                for i in 0..node.blocks_listed() {
                    let (child, length, _) = node.block(i);
                    let block = length * child.facts.size;
                    if block > left {
                        inside = Some(child);
                        break;
                    }
                    pieces += child.facts.block(length).0;
                    left -= block;
                }
                inside
            }
        };
        // Copies without gaps are one piece, which is cut.
        let Some(child) = inside.filter(|child| !child.facts.contiguous()) else {
            return (pieces, bytes - left);
        };
        pieces += (left / child.facts.size) as u64 * child.facts.pieces();
        left %= child.facts.size;
        node = child;
    }
}
