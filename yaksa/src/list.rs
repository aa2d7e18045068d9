//! The pieces of memory that instances of a type consist of, from any piece on.
//!
//! The order is that of the packed stream, the pieces are those that the rule counts ([`crate::node`]), and every place of the list is found by
//! division or binary search. Nothing recurses on the stack.

use crate::node::{Node, Shape};

/// What is still to be listed.
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

/// Calls `take(address, length)` for the pieces of `count` instances at `at`, from piece `from` on, until it says false.
pub(crate) fn list(node: &Node, at: i64, count: u64, from: u64, take: &mut impl FnMut(i64, i64) -> bool) {
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

impl<'n> Lister<'n> {
    /// A block of copies: listed at once where it is a single piece, else put on top, to be listed next.
    #[inline]
    fn block(
        &mut self,
        node: &'n Node,
        at: i64,
        length: i64,
        take: &mut impl FnMut(i64, i64) -> bool,
    ) -> bool {
        let facts = &node.facts;
        if length <= 0 || facts.size == 0 {
            return true;
        }
        if self.skip == 0 && facts.dense() && (length == 1 || facts.contiguous()) {
            return take(at.wrapping_add(facts.true_lb), length * facts.size);
        }
        self.stack.push(Open::Copies { node, at, left: length as u64 });
        true
    }

    fn copies(
        &mut self,
        node: &'n Node,
        mut at: i64,
        mut left: u64,
        take: &mut impl FnMut(i64, i64) -> bool,
    ) -> bool {
        let facts = &node.facts;
        if left == 0 || facts.pieces() == 0 {
            return true;
        }
        if facts.contiguous() {
            let passed = self.skip > 0;
            self.skip = self.skip.saturating_sub(1);
            return passed || take(at.wrapping_add(facts.true_lb), (left as i64).wrapping_mul(facts.size));
        }
        let passed = left.min(self.skip / facts.pieces());
        self.skip -= passed * facts.pieces();
        (at, left) = (at.wrapping_add(facts.extent.wrapping_mul(passed as i64)), left - passed);
        if left == 0 {
            return true;
        }
        if facts.dense() {
            while left > 0 {
                if !take(at.wrapping_add(facts.true_lb), facts.size) {
                    return false;
                }
                (at, left) = (at.wrapping_add(facts.extent), left - 1);
            }
            return true;
        }
        self.stack.push(Open::Copies { node, at: at.wrapping_add(facts.extent), left: left - 1 });
        self.one(node, at, take)
    }

    /// One copy, after the pieces that are to be passed, which are fewer than it has.
    fn one(&mut self, node: &'n Node, at: i64, take: &mut impl FnMut(i64, i64) -> bool) -> bool {
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
            Shape::Blocks { .. } | Shape::Listed { .. } | Shape::Struct(_) => {
                let before = node.before();
                // The last one that begins there or before: empty blocks come first.
                let next = before.partition_point(|&start| start <= self.skip) - 1;
                self.skip -= before[next];
                next
            }
        };
        self.blocks(node, at, next, take)
    }

    fn blocks(
        &mut self,
        node: &'n Node,
        at: i64,
        mut next: usize,
        take: &mut impl FnMut(i64, i64) -> bool,
    ) -> bool {
        let depth = self.stack.len();
        let blocks = node.blocks_listed();
        // Until a block is on top, which comes first.
        while self.stack.len() == depth {
            let more = match node.shape() {
                Shape::Empty => return true,
                Shape::Copies { count, child } => return self.block(child, at, *count, take),
                Shape::Bounded { child } => return self.block(child, at, 1, take),
                Shape::Named(named) => match named.pieces().get(next) {
                    Some(&(d, length)) => take(at.wrapping_add(d), length),
                    None => return true,
                },
                Shape::Strided { count, length, stride, child } => {
                    let facts = &child.facts;
                    if self.skip == 0 && facts.dense() && (*length == 1 || facts.contiguous()) {
                        // Blocks of one piece: nothing to be remembered.
                        let (mut to, bytes) = (at.wrapping_add(facts.true_lb), *length * facts.size);
                        to = to.wrapping_add(stride.wrapping_mul(next as i64));
                        for _ in next as i64..*count {
                            if !take(to, bytes) {
                                return false;
                            }
                            to = to.wrapping_add(*stride);
                        }
                        return true;
                    }
                    if next as i64 >= *count {
                        return true;
                    }
                    self.block(child, at.wrapping_add(stride.wrapping_mul(next as i64)), *length, take)
                }
                Shape::Blocks { .. } | Shape::Listed { .. } | Shape::Struct(_) => {
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

/// The pieces that are whole in the first `bytes` packed bytes of one instance, which has more, and the bytes of those.
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
            Shape::Blocks { .. } | Shape::Listed { .. } | Shape::Struct(_) => {
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
