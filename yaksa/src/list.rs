//! Enumeration of the contiguous pieces of memory that instances of a type occupy. The enumeration
//! can begin at any piece.
//!
//! The pieces are enumerated in the order of their packed bytes. The module comment of
//! [`crate::node`] has the rules that determine which bytes are one piece. If the enumeration does
//! not begin at piece 0, divisions and binary searches find its first piece. A type may be nested
//! deeply, so an explicit stack replaces recursion.

use crate::node::{Node, Position, Shape};

/// Receiver to which an enumeration passes contiguous pieces of memory, in the order of their
/// packed bytes. Each method returns false if the receiver wants no further pieces.
pub(crate) trait Pieces {
    /// Receives one piece: `length` bytes at address `at`.
    fn one(&mut self, at: i64, length: i64) -> bool;

    /// Receives `n` pieces of `length` bytes each. The first piece is at address `at`, and the
    /// addresses of neighbouring pieces differ by `step` bytes.
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

    /// Receives one piece of `length` bytes at each of the displacements `places`, which are
    /// relative to address `at`.
    #[inline]
    fn scattered(&mut self, at: i64, length: i64, places: &[i64]) -> bool {
        places.iter().all(|d| self.one(at.wrapping_add(*d), length))
    }
}

/// Part of a type whose contiguous pieces remain to be enumerated.
#[derive(Clone, Copy)]
enum Open<'n> {
    /// `left` copies of a type, one extent apart. The first copy is at address `at`.
    Copies { node: &'n Node, at: i64, left: u64 },
    /// The blocks of one copy of a type, from block `next` on. The copy is at address `at`.
    Blocks { node: &'n Node, at: i64, next: usize },
}

/// State of an enumeration of contiguous pieces: the parts of the type that remain, and the number
/// of pieces to be skipped in these parts.
struct Lister<'n> {
    /// Parts of the type that remain. The part on top of the stack is enumerated first.
    stack: Vec<Open<'n>>,
    /// Number of pieces that are still to be skipped before the first one is passed to the
    /// receiver.
    skip: u64,
}

/// Enumerates the contiguous pieces of memory that `count` instances of a type occupy. The first
/// instance is at address `at`. Passes the pieces to `take`, from piece `from` on, until there are
/// no more or `take` returns false.
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

/// Type whose instances are enumerated by a simple loop over contiguous pieces, without the stack.
#[derive(Clone, Copy)]
enum Leaf<'n> {
    /// Each instance has `n` pieces of `length` bytes. Neighbouring pieces are `step` bytes apart,
    /// and `first` is the displacement of the first piece.
    Run { first: i64, length: i64, step: i64, n: u64 },
    /// Type whose constructor lists displacements. The block at each displacement is one contiguous
    /// piece or empty.
    Flat(&'n Node),
}

impl<'n> Leaf<'n> {
    /// Returns the [`Leaf`] for a type. Returns `None` if instances of the type cannot be
    /// enumerated without the stack, or if an instance is dense, that is, one run of bytes.
    #[inline]
    fn from_node(node: &'n Node) -> Option<Leaf<'n>> {
        if node.facts.dense() {
            // An instance without gaps is a single piece, whatever its constructor is. `Lister`
            // enumerates such instances without a `Leaf`.
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

    /// Passes the contiguous pieces of `copies` instances to `take`. The first instance is at
    /// address `at`, and neighbouring instances are `extent` bytes apart. Returns false if `take`
    /// wants no further pieces.
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

/// Passes the blocks of one instance of a flat type to `take`, from block `next` on, and skips
/// empty blocks. In a flat type the constructor lists displacements, and each block is one
/// contiguous piece or empty. The instance is at address `at`. Returns false if `take` wants no
/// further pieces.
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
    /// Enumerates the contiguous pieces of a block of `length` copies of a type. The block is at
    /// address `at`. If pieces are to be skipped, the block is pushed on the stack, so that it is
    /// enumerated next. Otherwise, if the block is a single piece or its type is a [`Leaf`], the
    /// pieces are passed to `take` immediately. All other blocks are pushed on the stack, too. A
    /// block without data is ignored. Returns false if `take` wants no further pieces.
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

    /// Enumerates the contiguous pieces of `left` copies of a type, one extent apart. The first
    /// copy is at address `at`. Returns false if `take` wants no further pieces.
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
        // The type is not contiguous, so no piece extends over two copies. All copies have the same
        // number of pieces. So a division finds the copy that contains the first piece that is not
        // skipped.
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

    /// Enumerates the contiguous pieces of one copy of a type at address `at`, except the first
    /// `skip` pieces. The copy must have more than `skip` pieces. Returns false if `take` wants no
    /// further pieces.
    fn one(&mut self, node: &'n Node, at: i64, take: &mut impl Pieces) -> bool {
        let next = match node.shape() {
            _ if self.skip == 0 => 0,
            Shape::Empty | Shape::Copies { .. } | Shape::Bounded { .. } => 0,
            // A predefined type has at most two pieces, and two only if it is a pair with a gap
            // between its two parts. At least one piece is skipped here, and the type has more
            // pieces than are skipped. So it has two pieces, and the first one is skipped.
            Shape::Named(_) => std::mem::take(&mut self.skip) as usize,
            Shape::Strided { length, child, .. } | Shape::Blocks { length, child, .. } => {
                let each = child.facts.block(*length).0.max(1);
                let next = self.skip / each;
                self.skip %= each;
                next as usize
            }
            // Each block is one contiguous piece or empty, and there are as many pieces as blocks.
            // So no block is empty, and the number of blocks to skip is the number of pieces to
            // skip.
            Shape::Listed { .. } | Shape::Struct { .. }
                if node.is_flat() && node.facts.pieces() == node.blocks_listed() as u64 =>
            {
                std::mem::take(&mut self.skip) as usize
            }
            Shape::Listed { .. } | Shape::Struct { .. } => {
                let before = node.before();
                // The first piece that is not skipped is in the last block that has at most `skip`
                // pieces before it. An empty block is never the last such block, because the next
                // entry of `before` has the same number of pieces.
                let next = before.partition_point(|before| before.pieces <= self.skip) - 1;
                self.skip -= before[next].pieces;
                next
            }
        };
        self.blocks(node, at, next, take)
    }

    /// Enumerates the contiguous pieces of the blocks of one copy of a type, from block `next` on.
    /// The copy is at address `at`. Returns false if `take` wants no further pieces.
    fn blocks(&mut self, node: &'n Node, at: i64, mut next: usize, take: &mut impl Pieces) -> bool {
        if self.skip == 0 && node.is_flat() {
            return flat(node, at, next, take);
        }
        let depth = self.stack.len();
        let blocks = node.blocks_listed();
        // The loop ends as soon as a block has been pushed on the stack, because the pieces of that
        // block must be enumerated before those of the blocks after it.
        while self.stack.len() == depth {
            // Each iteration enumerates block `next`. But if the blocks are equally spaced, have
            // equal contents, and can be enumerated without the stack, one iteration enumerates all
            // remaining blocks.
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
                        // Each block is a single contiguous piece. So the remaining blocks are
                        // pieces of equal length at equal distances, and one call of `run` passes
                        // all of them to `take`.
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
        // The remaining blocks are inserted below the block that was pushed on the stack, so that
        // they are enumerated after that block.
        self.stack.insert(depth, Open::Blocks { node, at, next });
        true
    }
}

/// Returns the position of packed byte `offset`: the index of the contiguous piece of user memory
/// that contains the byte, and the number of bytes of that piece that precede the byte. The type
/// must have data. It must not be contiguous: this function counts the pieces of each instance
/// separately, but all instances of a contiguous type together are one piece.
pub(crate) fn find_position(node: &Node, offset: i64) -> Position {
    let (whole, rest) = (offset / node.facts.size, offset % node.facts.size);
    let (pieces, bytes) = if rest == 0 { (0, 0) } else { within(node, rest) };
    Position { piece: whole as u64 * node.facts.pieces() + pieces, inside: rest - bytes }
}

/// Rounds `bytes`, a number of packed bytes of instances of a type, down to a boundary between
/// basic elements. The type must have data. A pair is one element, and so is a complex number.
pub(crate) fn whole_elements(node: &Node, bytes: i64) -> i64 {
    let (mut node, mut left) = (node, bytes);
    // The loop descends from the type through its child types to the element that contains the byte
    // at offset `bytes` of the packed data. At the start of each iteration, `node` is the type that
    // has been reached. The byte lies in a sequence of copies of `node`, at offset `left` in their
    // packed data.
    //
    // Every copy consists of whole elements. So the copies before the byte are skipped, and only
    // the offset of the byte inside its own copy remains. If this offset is 0, `bytes` is a
    // boundary between elements.
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

/// Returns the number of contiguous pieces of memory that lie completely in the first `bytes`
/// packed bytes of one instance of a type, and the total length of these pieces in bytes. An
/// instance must have more than `bytes` packed bytes.
pub(crate) fn within(node: &Node, bytes: i64) -> (u64, i64) {
    // The loop descends from the type through its child types to the piece that contains the byte
    // at offset `bytes` of the packed data. It counts the pieces before this byte. At the start of
    // each iteration, the byte is at offset `left` in the packed data of a copy of `node`, and
    // `pieces` is the number of pieces before that copy.
    //
    // Each iteration has two steps. The first step finds the block of `node` that contains the
    // byte, and adds the pieces of all blocks before it to `pieces`. The second step finds the copy
    // in this block that contains the byte, and adds the pieces of all copies before it in the
    // block. The next iteration continues inside this copy.
    let (mut node, mut pieces, mut left) = (node, 0, bytes);
    loop {
        // Type of the copy that contains the byte, or `None` if the search stops at this node. In
        // the second case, `pieces` has counted all pieces before the byte.
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
        // If the child is contiguous, the copies in a block are one piece. This piece contains the
        // byte at offset `bytes`, so it does not lie completely in the first `bytes` packed bytes
        // and is not counted.
        let Some(child) = inside.filter(|child| !child.facts.contiguous()) else {
            return (pieces, bytes - left);
        };
        pieces += (left / child.facts.size) as u64 * child.facts.pieces();
        left %= child.facts.size;
        node = child;
    }
}
