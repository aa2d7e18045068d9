//! Enumeration of the contiguous pieces of memory that instances of a type occupy. It can begin at
//! any piece.
//!
//! The pieces come in the order of the packed stream. The module comment of [`crate::node`] has the
//! rule for their number. The first piece is found by divisions and binary searches. An explicit
//! stack replaces recursion.

use crate::node::{Node, Position, Shape};

/// Receiver of pieces in the order of the list. Each method returns false if the receiver wants no
/// further pieces.
pub(crate) trait Pieces {
    /// Takes a piece of `length` bytes at address `at`.
    fn one(&mut self, at: i64, length: i64) -> bool;

    /// Takes `n` pieces of `length` bytes. The first is at address `at`, and they are `step` bytes
    /// apart.
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

    /// Takes one piece of `length` bytes at each of the displacements `places` relative to `at`.
    #[inline]
    fn scattered(&mut self, at: i64, length: i64, places: &[i64]) -> bool {
        places.iter().all(|d| self.one(at.wrapping_add(*d), length))
    }
}

/// Part of a list that remains to be enumerated.
#[derive(Clone, Copy)]
enum Open<'n> {
    /// `left` copies of a type, one extent apart, the first of them at `at`.
    Copies { node: &'n Node, at: i64, left: u64 },
    /// The blocks from block `next` on of one copy of a type. The copy is at `at`.
    Blocks { node: &'n Node, at: i64, next: usize },
}

/// State of an enumeration: the parts that remain, and the number of pieces to be skipped in them.
struct Lister<'n> {
    /// Parts that remain. The part on top of the stack is enumerated first.
    stack: Vec<Open<'n>>,
    /// Number of pieces that are still to be skipped.
    skip: u64,
}

/// Passes the pieces of `count` instances at `at` to `take`, from piece `from` on, until there are
/// no more or `take` wants no more.
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

/// Instance whose pieces are enumerated without the stack.
#[derive(Clone, Copy)]
enum Leaf<'n> {
    /// Equal pieces at equal distances. `first` is the displacement of the first piece.
    Run { first: i64, length: i64, step: i64, n: u64 },
    /// Node whose blocks are at displacements. Each block is one piece or empty.
    Flat(&'n Node),
}

impl<'n> Leaf<'n> {
    /// Returns an instance of `node` as a leaf; `None` if the instance cannot be enumerated without
    /// the stack, or is dense.
    #[inline]
    fn from_node(node: &'n Node) -> Option<Leaf<'n>> {
        if node.facts.dense() {
            // A dense instance is a single piece, whatever its constructor is. `Lister` handles it.
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

    /// Passes the pieces of `copies` instances to `take`. The first is at `at`, and they are
    /// `extent` bytes apart. Returns false if `take` wants no more.
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

/// Passes the blocks of a flat node at `at` to `take`, beginning with block `next` and without
/// empty blocks. Returns false if `take` wants no more.
#[inline]
fn flat(node: &Node, at: i64, next: usize, take: &mut impl Pieces) -> bool {
    match node.shape() {
        Shape::Blocks { length, at: places, child } => {
            let at = at.wrapping_add(child.facts.true_lb);
            let places = places.displacements().get(next..).unwrap_or_default();
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
    /// Enumerates a block of `length` copies at `at`. If nothing is to be skipped, and the block is
    /// a single piece or its copies are leaves, its pieces are passed on at once. Otherwise the
    /// block is pushed on the stack, so that it is enumerated next. Returns false if `take` wants
    /// no more.
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
            && let Some(leaf) = Leaf::from_node(node)
        {
            return leaf.take(at, facts.extent, length as u64, take);
        }
        self.stack.push(Open::Copies { node, at, left: length as u64 });
        true
    }

    /// Enumerates `left` copies of `node`, one extent apart, the first of them at `at`. Returns
    /// false if `take` wants no more.
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
        // The copies are listed separately and all have the same number of pieces, so a division
        // finds the copy that contains the first wanted piece.
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
            && let Some(leaf) = Leaf::from_node(node)
        {
            return leaf.take(at, facts.extent, left, take);
        }
        // The first copy is enumerated now. The other copies are pushed on the stack for later.
        self.stack.push(Open::Copies { node, at: at.wrapping_add(facts.extent), left: left - 1 });
        self.one(node, at, take)
    }

    /// Enumerates one copy, except the first `skip` pieces. The copy must have more than `skip`
    /// pieces. Returns false if `take` wants no more.
    fn one(&mut self, node: &'n Node, at: i64, take: &mut impl Pieces) -> bool {
        let next = match node.shape() {
            _ if self.skip == 0 => 0,
            Shape::Empty | Shape::Copies { .. } | Shape::Bounded { .. } => 0,
            // This is a pair with a gap between its parts, so each part is one piece.
            Shape::Named(_) => std::mem::take(&mut self.skip) as usize,
            Shape::Strided { length, child, .. } | Shape::Blocks { length, child, .. } => {
                let each = child.facts.block(*length).0.max(1);
                let next = self.skip / each;
                self.skip %= each;
                next as usize
            }
            // Each block is one piece, and none is empty.
            Shape::Listed { .. } | Shape::Struct { .. }
                if node.is_flat() && node.facts.pieces() == node.blocks_listed() as u64 =>
            {
                std::mem::take(&mut self.skip) as usize
            }
            Shape::Listed { .. } | Shape::Struct { .. } => {
                let before = node.before();
                // The wanted piece is in the last block with at most `skip` pieces before it. An
                // empty block has the same sums as the block after it, so the last such block is
                // never empty.
                let next = before.partition_point(|before| before.pieces <= self.skip) - 1;
                self.skip -= before[next].pieces;
                next
            }
        };
        self.blocks(node, at, next, take)
    }

    /// Enumerates the blocks of one copy of `node` at `at`, from block `next` on. Returns false if
    /// `take` wants no more.
    fn blocks(&mut self, node: &'n Node, at: i64, mut next: usize, take: &mut impl Pieces) -> bool {
        if self.skip == 0 && node.is_flat() {
            return flat(node, at, next, take);
        }
        let depth = self.stack.len();
        let blocks = node.blocks_listed();
        // The loop ends as soon as a block was pushed on the stack, because its pieces come before
        // those of the blocks after it.
        while self.stack.len() == depth {
            // Each turn enumerates block `next`. If all remaining blocks are alike and need no
            // stack, one turn enumerates all of them.
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
                        // Each block is a single piece, so the remaining blocks form one run of
                        // pieces.
                        let first =
                            at.wrapping_add(facts.true_lb).wrapping_add(stride.wrapping_mul(next as i64));
                        let left = (*count as u64).saturating_sub(next as u64);
                        return take.run(first, *length * facts.size, *stride, left);
                    }
                    if self.skip == 0
                        && let Some(leaf) = Leaf::from_node(child)
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
        // The remaining blocks go below the block that was pushed, so that they are enumerated
        // after it.
        self.stack.insert(depth, Open::Blocks { node, at, next });
        true
    }
}

/// Returns the position of byte `offset` of the packed stream. The type must have data, and must
/// not be contiguous, because all instances of a contiguous type together are one piece.
pub(crate) fn find_position(node: &Node, offset: i64) -> Position {
    let (whole, rest) = (offset / node.facts.size, offset % node.facts.size);
    let (pieces, bytes) = if rest == 0 { (0, 0) } else { within(node, rest) };
    Position { piece: whole as u64 * node.facts.pieces() + pieces, inside: rest - bytes }
}

/// Returns how many of the first `bytes` packed bytes of instances of a type belong to whole basic
/// elements. The type must have data. A pair is one element, and so is a complex number.
pub(crate) fn whole_elements(node: &Node, bytes: i64) -> i64 {
    let (mut node, mut left) = (node, bytes);
    // In each turn, byte `bytes` lies `left` packed bytes after the beginning of some copies of
    // `node`. The copies before the one that contains it consist of whole elements.
    loop {
        left %= node.facts.size;
        if left == 0 {
            return bytes;
        }
        node = match node.shape() {
            Shape::Empty | Shape::Named(_) => return bytes - left,
            Shape::Copies { child, .. }
            | Shape::Strided { child, .. }
            | Shape::Blocks { child, .. }
            | Shape::Listed { child, .. }
            | Shape::Bounded { child } => child,
            Shape::Struct { .. } => {
                let (child, before) = node.block_at(left);
                left -= before.bytes;
                child
            }
        };
    }
}

/// Returns the number of pieces that lie completely in the first `bytes` packed bytes of one
/// instance, and the total length of these pieces in bytes. The instance must have more than
/// `bytes` bytes.
pub(crate) fn within(node: &Node, bytes: i64) -> (u64, i64) {
    // The search descends from the root to the piece that contains packed byte `bytes`, called the
    // end. At the start of each turn, the end lies `left` packed bytes after the beginning of an
    // instance of `node`, and `pieces` is the number of pieces before that instance. The turn
    // counts the pieces of all blocks before the end, and then descends into the copy that contains
    // the end.
    let (mut node, mut pieces, mut left) = (node, 0, bytes);
    loop {
        // Type of the copy that contains the end, or `None` if the search stops at this node. No
        // piece that begins after the last counted one is complete, so nothing else needs counting
        // then.
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
            Shape::Strided { length, child, .. } | Shape::Blocks { length, child, .. } => {
                let block = length * child.facts.size;
                pieces += (left / block) as u64 * child.facts.block(*length).0;
                left %= block;
                Some(&**child)
            }
            Shape::Listed { .. } | Shape::Struct { .. } => {
                let (child, before) = node.block_at(left);
                (pieces, left) = (pieces + before.pieces, left - before.bytes);
                Some(child)
            }
        };
        // Contiguous copies are one piece, and the end cuts that piece.
        let Some(child) = inside.filter(|child| !child.facts.contiguous()) else {
            return (pieces, bytes - left);
        };
        pieces += (left / child.facts.size) as u64 * child.facts.pieces();
        left %= child.facts.size;
        node = child;
    }
}
