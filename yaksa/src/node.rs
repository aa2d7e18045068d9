//! A type as this library keeps it: what callers ask for in numbers, the arguments of its constructor, its children. 128 bytes, made in one allocation
//! beside its arrays: most types of a program are never used, and many are made anew for every message.
//!
//! **Bounds** are the least and greatest of the copies' bounds: no marker sticks, and only a struct of several types is padded.
//!
//! **Pieces**: how many pieces one instance is listed as, by a rule that looks at a constructor and its children only. A block of copies without gaps between
//! them is one piece; other copies are listed one by one; where the blocks of a constructor follow each other without a gap, all of them are one
//! piece. So pieces are never joined across instances: callers take half of what they are told for two instances as the number for one.
//!
//! Invariant: sizes, bounds and displacements of data fit 64 bits or construction fails; an instance has at most as many pieces as bytes.

mod compiled;
mod shared;
mod tree;

use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use ddtc::internal::datatype::{Datatype, Named};
use ddtc::internal::methods::*;
use ddtc::internal::process::Once;

use crate::abi::{Code, Result};
use crate::arrays::{Blocks, Places};
use compiled::Compiled;
pub(crate) use compiled::Reduction;
use shared::Count;
pub(crate) use shared::Ref;

/// Facts of a type that need no look at its arguments. In bytes, but for the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) size: i64,
    pub(crate) lb: i64,
    pub(crate) extent: i64,
    pub(crate) true_lb: i64,
    pub(crate) true_extent: i64,
    listing: Listing,
}

/// How an instance is listed, in one word: the number of its pieces, and in the highest bit whether it is one ascending run of bytes without a gap, from
/// the true lower bound on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listing(u64);

impl Listing {
    const DENSE: u64 = 1 << 63;
    const NONE: Listing = Listing(Listing::DENSE);

    /// Of a run, which is one piece, or of so many pieces.
    fn new(dense: bool, pieces: u64) -> Listing {
        Listing(if dense { Listing::DENSE | 1 } else { pieces })
    }
}

/// Further properties of a node.
#[derive(Debug)]
struct Marks {
    /// Nodes below it, on the longest path; stays at its greatest value.
    depth: u8,
    /// Strictest alignment of an element; beside it, in the highest bit, whether each block at a displacement is one piece, or nothing.
    alignment: u8,
    /// Pieces that calls have moved one by one; stays at its greatest value.
    listed: AtomicU16,
}

/// The arguments of a constructor. Displacements and strides are in bytes, block lengths and counts not negative.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// No data.
    Empty,
    /// A predefined type.
    Named(Named),
    /// Copies one extent apart.
    Copies { count: i64, child: Ref },
    /// Blocks of one length, a stride apart.
    Strided { count: i64, length: i64, stride: i64, child: Ref },
    /// Blocks of one length at displacements.
    Blocks { length: i64, at: Places, child: Ref },
    /// Blocks of their own lengths.
    Listed { blocks: Blocks, child: Ref },
    /// Blocks of types of their own.
    Struct { blocks: Blocks, children: Box<[Ref]> },
    /// The child under other bounds.
    Bounded { child: Ref },
}

/// Parts of a node that are made once they are needed.
#[derive(Debug)]
pub(crate) struct Extra {
    pub(crate) datatype: Once<Datatype>,
    /// Pieces before each block, and one more entry for all.
    pub(crate) before: Once<Box<[u64]>>,
    pub(crate) compiled: Compiled,
}

/// A type.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) facts: Facts,
    pub(crate) count: Count,
    marks: Marks,
    shape: Shape,
    extra: Once<Box<Extra>>,
}

/// A program may hold millions of types: what one takes is kept in sight.
const _: () = assert!(size_of::<Node>() <= 128);

/// In the byte of an alignment.
const FLAT: u8 = 0x80;

/// Deeper trees are taken down without recursion.
const SHALLOW: u8 = 64;

fn fits<T>(value: Option<T>) -> Result<T> {
    value.ok_or(Code::Internal)
}

impl Facts {
    /// Those of no data: all bounds 0.
    const EMPTY: Facts =
        Facts { size: 0, lb: 0, extent: 0, true_lb: 0, true_extent: 0, listing: Listing::NONE };

    /// Says whether an instance is one ascending run of bytes without a gap.
    #[inline]
    pub(crate) fn dense(&self) -> bool {
        self.listing.0 & Listing::DENSE != 0
    }

    /// Returns the pieces of one instance, by the rule; 0 where there is no data.
    #[inline]
    pub(crate) fn pieces(&self) -> u64 {
        self.listing.0 & !Listing::DENSE
    }

    /// Says whether any number of instances is one run of bytes.
    #[inline]
    pub(crate) fn contiguous(&self) -> bool {
        self.dense() && self.extent == self.size
    }

    /// Returns the pieces of `length` copies, and whether they are one run.
    #[inline]
    pub(crate) fn block(&self, length: i64) -> (u64, bool) {
        match length {
            _ if self.size == 0 || length <= 0 => (0, true),
            1 => (self.pieces(), self.dense()),
            _ if self.contiguous() => (1, true),
            _ => (self.pieces().wrapping_mul(length as u64), false),
        }
    }

    /// Those of `copies` copies of a child of this, of which the least stands at `first` and the greatest at `last`; pieces are to be told.
    fn placed(&self, copies: i64, first: i64, last: i64) -> Option<Facts> {
        let lb = first.checked_add(self.lb)?;
        let ub = last.checked_add(self.lb.checked_add(self.extent)?)?;
        let true_lb = first.checked_add(self.true_lb)?;
        let true_ub = last.checked_add(self.true_lb.checked_add(self.true_extent)?)?;
        Some(Facts {
            size: self.size.checked_mul(copies)?,
            lb,
            extent: ub.checked_sub(lb)?,
            true_lb,
            true_extent: true_ub.checked_sub(true_lb)?,
            listing: Listing::NONE,
        })
    }

    /// How far the last of `length` >= 1 copies is from the first: the least and the greatest displacement.
    fn reach(&self, length: i64) -> Option<(i64, i64)> {
        let tail = (length - 1).checked_mul(self.extent)?;
        Some((tail.min(0), tail.max(0)))
    }
}

/// Blocks one after the other: how they are listed.
struct Sequence {
    pieces: u64,
    dense: bool,
    /// Where the data so far ends.
    end: i64,
    /// Whether each block is one piece, or nothing.
    flat: bool,
}

impl Sequence {
    const EMPTY: Sequence = Sequence { pieces: 0, dense: true, end: 0, flat: true };

    /// A block of `length` copies at `at`. What does not fit is found by others.
    #[inline]
    fn push(&mut self, child: &Facts, length: i64, at: i64) {
        let (pieces, dense) = child.block(length);
        if pieces == 0 {
            return;
        }
        let start = at.wrapping_add(child.true_lb);
        self.flat &= pieces == 1;
        self.dense &= dense && (self.pieces == 0 || start == self.end);
        self.pieces = self.pieces.wrapping_add(pieces);
        self.end = start.wrapping_add(length.wrapping_mul(child.size));
    }

    fn finish(&self) -> Listing {
        Listing::new(self.dense, self.pieces)
    }
}

impl Node {
    #[inline(always)]
    fn make(facts: Facts, (depth, alignment): (u8, u8), shape: Shape) -> Ref {
        let marks = Marks { depth, alignment, listed: AtomicU16::new(0) };
        Ref::new(Node { facts, count: Count::one(), marks, shape, extra: Once::new() })
    }

    /// The bit of a node whose blocks are such.
    #[inline]
    fn flat(flat: bool) -> u8 {
        if flat { FLAT } else { 0 }
    }

    /// Says whether each block at a displacement is one piece, or nothing.
    #[inline]
    pub(crate) fn is_flat(&self) -> bool {
        self.marks.alignment & FLAT != 0
    }

    /// A node above one of these marks. Always inlined, as what it calls: a node is written once, where it stays.
    #[inline(always)]
    fn above(facts: Facts, (depth, alignment): (u8, u8), shape: Shape) -> Ref {
        Node::make(facts, (depth.saturating_add(1), alignment), shape)
    }

    /// Returns the marks that a node above takes over.
    fn marks(&self) -> (u8, u8) {
        (self.marks.depth, self.marks.alignment & !FLAT)
    }

    /// Says whether a call that moves `count` instances does so piece by piece, and counts them: while no more than `most` have been, and once where an instance is
    /// listed blocks of one length, since to lower these takes longer than to go through them.
    #[inline]
    pub(crate) fn lists(&self, count: u64, most: u16) -> bool {
        let before = self.marks.listed.load(Relaxed);
        let now = u64::from(before).saturating_add(self.facts.pieces().saturating_mul(count));
        let shape = match &self.shape {
            Shape::Bounded { child } => &child.shape,
            shape => shape,
        };
        let equal = matches!(shape, Shape::Blocks { length, child, .. } if child.facts.block(*length).0 == 1);
        let lists = now <= u64::from(most) || (before == 0 && count == 1 && equal);
        if lists {
            // Two threads may count one: it is a measure.
            self.marks.listed.store(now.min(u64::from(u16::MAX)) as u16, Relaxed);
        }
        lists
    }

    /// No data, with all bounds 0.
    pub(crate) fn empty() -> Ref {
        Node::make(Facts::EMPTY, (0, 1), Shape::Empty)
    }

    /// Returns a predefined type.
    pub(crate) fn named(named: Named) -> Ref {
        let t = Datatype::named(named);
        // Only of a pair are there two parts, with a gap between them or not.
        let gap = named.pieces().windows(2).any(|parts| parts[0].0 + parts[0].1 != parts[1].0);
        let facts = Facts {
            size: t.size(),
            lb: t.lb(),
            extent: t.extent(),
            true_lb: t.true_lb(),
            true_extent: t.true_extent(),
            listing: if t.size() == 0 { Listing::NONE } else { Listing::new(!gap, 2) },
        };
        Node::make(facts, (0, t.alignment() as u8), Shape::Named(named))
    }

    /// `count` >= 1 copies of what has data.
    pub(crate) fn copies(count: i64, child: Ref) -> Result<Ref> {
        let c = &child.facts;
        let (first, last) = fits(c.reach(count))?;
        let mut facts = fits(c.placed(count, first, last))?;
        let (pieces, dense) = c.block(count);
        facts.listing = Listing::new(dense, pieces);
        Ok(Node::above(facts, child.marks(), Shape::Copies { count, child }))
    }

    /// `count` >= 1 blocks of `length` >= 1 copies of what has data.
    pub(crate) fn strided(count: i64, length: i64, stride: i64, child: Ref) -> Result<Ref> {
        let c = &child.facts;
        let (first, last) = fits(c.reach(length))?;
        let tail = fits((count - 1).checked_mul(stride))?;
        let first = fits(first.checked_add(tail.min(0)))?;
        let last = fits(last.checked_add(tail.max(0)))?;
        let mut facts = fits(c.placed(fits(count.checked_mul(length))?, first, last))?;
        let (pieces, dense) = c.block(length);
        let dense = dense && (count == 1 || stride == length.wrapping_mul(c.size));
        facts.listing = Listing::new(dense, if dense { 1 } else { pieces * count as u64 });
        Ok(Node::above(facts, child.marks(), Shape::Strided { count, length, stride, child }))
    }

    /// Blocks of `length` >= 1 copies of what has data, at least one.
    pub(crate) fn blocks(length: i64, places: Places, child: Ref) -> Result<Ref> {
        let c = &child.facts;
        let (low, high) = fits(c.reach(length))?;
        let (pieces, dense) = c.block(length);
        let bytes = fits(length.checked_mul(c.size))?;
        let at = places.at();
        let (mut first, mut last, mut follow) = (i64::MAX, i64::MIN, dense);
        let mut end = at.first().copied().unwrap_or(0);
        for &d in at.iter() {
            (first, last) = (first.min(d), last.max(d));
            follow &= d == end;
            end = d.wrapping_add(bytes);
        }
        let (first, last) = (fits(first.checked_add(low))?, fits(last.checked_add(high))?);
        let mut facts = fits(c.placed(fits(length.checked_mul(at.len() as i64))?, first, last))?;
        facts.listing = Listing::new(follow, pieces * at.len() as u64);
        let (depth, alignment) = child.marks();
        let marks = (depth, alignment | Node::flat(pieces == 1));
        Ok(Node::above(facts, marks, Shape::Blocks { length, at: places, child }))
    }

    /// Blocks of their own lengths, of which one is not 0, of what has data.
    pub(crate) fn listed(blocks: Blocks, child: Ref) -> Result<Ref> {
        let c = &child.facts;
        let (lengths, at) = blocks.both();
        let (mut first, mut last, mut copies, mut longest) = (i64::MAX, i64::MIN, 0i64, 0);
        // Whether anything overflowed is looked at once, at the end.
        let mut over = false;
        let mut add = |a: i64, b: i64| {
            let (sum, overflowed) = a.overflowing_add(b);
            over |= overflowed;
            sum
        };
        let (listing, flat) = if c.contiguous() && lengths.iter().all(|&length| length > 0) {
            // Every block is one piece: nothing to be decided, whatever its length.
            let (mut follow, mut end) = (true, at.first().copied().unwrap_or(0));
            for (&length, &d) in lengths.iter().zip(at) {
                let tail = (length - 1).wrapping_mul(c.extent);
                first = first.min(d);
                last = last.max(add(d, tail));
                copies = add(copies, length);
                longest = longest.max(length);
                follow &= d == end;
                end = d.wrapping_add(length.wrapping_mul(c.extent));
            }
            (Listing::new(follow, lengths.len() as u64), true)
        } else {
            let mut all = Sequence::EMPTY;
            for (&length, &d) in lengths.iter().zip(at) {
                if length > 0 {
                    let tail = (length - 1).wrapping_mul(c.extent);
                    first = first.min(add(d, tail.min(0)));
                    last = last.max(add(d, tail.max(0)));
                    copies = add(copies, length);
                    longest = longest.max(length);
                    all.push(c, length, d);
                }
            }
            (all.finish(), all.flat)
        };
        // The product that no other is greater than.
        if over || c.reach(longest).is_none() {
            return Err(Code::Internal);
        }
        let mut facts = fits(c.placed(copies, first, last))?;
        facts.listing = listing;
        let (depth, alignment) = child.marks();
        Ok(Node::above(facts, (depth, alignment | Node::flat(flat)), Shape::Listed { blocks, child }))
    }

    /// Members of which one has data; padded to the strictest alignment if `padded`.
    pub(crate) fn structure(blocks: Blocks, children: Box<[Ref]>, padded: bool) -> Result<Ref> {
        let (mut all, mut facts) =
            (Sequence::EMPTY, Facts { lb: i64::MAX, true_lb: i64::MAX, ..Facts::EMPTY });
        let (mut ub, mut true_ub, mut depth, mut alignment) = (i64::MIN, i64::MIN, 0, 1);
        let (lengths, at) = blocks.both();
        for ((&length, &d), child) in lengths.iter().zip(at).zip(&children) {
            let c = &child.facts;
            depth = depth.max(child.marks.depth);
            if length == 0 {
                continue;
            }
            let (low, high) = fits(c.reach(length))?;
            let low = fits(d.checked_add(low))?;
            let block = fits(c.placed(length, low, fits(d.checked_add(high))?))?;
            (facts.lb, ub) = (facts.lb.min(block.lb), ub.max(block.lb + block.extent));
            if block.size > 0 {
                facts.true_lb = facts.true_lb.min(block.true_lb);
                true_ub = true_ub.max(block.true_lb + block.true_extent);
            }
            facts.size = fits(facts.size.checked_add(block.size))?;
            alignment = alignment.max(child.marks().1);
            all.push(c, length, d);
        }
        facts.extent = fits(ub.checked_sub(facts.lb))?;
        if padded {
            let padding = facts.extent.wrapping_neg().rem_euclid(i64::from(alignment));
            facts.extent = fits(facts.extent.checked_add(padding))?;
            fits(facts.lb.checked_add(facts.extent))?;
        }
        facts.true_extent = fits(true_ub.checked_sub(facts.true_lb))?;
        facts.listing = all.finish();
        let marks = (depth, alignment | Node::flat(all.flat));
        Ok(Node::above(facts, marks, Shape::Struct { blocks, children }))
    }

    /// Returns the data of `child` under other bounds.
    pub(crate) fn bounded(child: Ref, lb: i64, extent: i64) -> Result<Ref> {
        if (child.facts.lb, child.facts.extent) == (lb, extent) {
            return Ok(child);
        }
        fits(lb.checked_add(extent))?;
        let facts = Facts { lb, extent, ..child.facts };
        Ok(Node::above(facts, child.marks(), Shape::Bounded { child }))
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) fn extra(&self) -> &Extra {
        self.extra.get_or_init(|| {
            Box::new(Extra { datatype: Once::new(), before: Once::new(), compiled: Compiled::new() })
        })
    }

    /// Returns the tree of ddtc with the same elements and bounds.
    pub(crate) fn datatype(&self) -> Result<&Datatype> {
        tree::datatype(self)
    }

    /// Returns the types that it is made of.
    pub(crate) fn children(&self) -> &[Ref] {
        match &self.shape {
            Shape::Empty | Shape::Named(_) => &[],
            Shape::Copies { child, .. }
            | Shape::Strided { child, .. }
            | Shape::Blocks { child, .. }
            | Shape::Listed { child, .. }
            | Shape::Bounded { child } => std::slice::from_ref(child),
            Shape::Struct { children, .. } => children,
        }
    }

    /// Returns the number of blocks that stand at displacements.
    pub(crate) fn blocks_listed(&self) -> usize {
        match &self.shape {
            Shape::Blocks { at, .. } => at.at().len(),
            Shape::Listed { blocks, .. } | Shape::Struct { blocks, .. } => blocks.both().0.len(),
            _ => 0,
        }
    }

    /// Type, length and displacement of such a block.
    #[inline]
    pub(crate) fn block(&self, i: usize) -> (&Node, i64, i64) {
        match &self.shape {
            Shape::Blocks { length, at, child } => (child, *length, at.at()[i]),
            Shape::Listed { blocks, child } => {
                let (lengths, at) = blocks.both();
                (child, lengths[i], at[i])
            }
            Shape::Struct { blocks, children } => {
                let (lengths, at) = blocks.both();
                (&children[i], lengths[i], at[i])
            }
            _ => (self, 0, 0),
        }
    }

    /// Returns the pieces before each such block, and one more entry for all.
    pub(crate) fn before(&self) -> &[u64] {
        let count = || {
            let mut sum = 0;
            let pieces = (0..self.blocks_listed()).map(|i| {
                let (child, length, _) = self.block(i);
                child.facts.block(length).0
            });
            let sums = pieces.map(|n| {
                sum += n;
                sum
            });
            std::iter::once(0).chain(sums).collect()
        };
        // Made outside of a section: it may be long, and making it twice does no harm.
        let known = &self.extra().before;
        match known.get() {
            Some(sums) => sums,
            None => {
                let sums = count();
                known.get_or_init(|| sums)
            }
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.marks.depth <= SHALLOW {
            return;
        }
        let mut dying = vec![std::mem::replace(&mut self.shape, Shape::Empty)];
        while let Some(shape) = dying.pop() {
            let children: Vec<Ref> = match shape {
                Shape::Empty | Shape::Named(_) => continue,
                Shape::Copies { child, .. }
                | Shape::Strided { child, .. }
                | Shape::Blocks { child, .. }
                | Shape::Listed { child, .. }
                | Shape::Bounded { child } => vec![child],
                Shape::Struct { children, .. } => children.into_vec(),
            };
            for mut child in children {
                // Whoever is the last owner takes it apart.
                if let Some(node) = child.alone() {
                    dying.push(std::mem::replace(&mut node.shape, Shape::Empty));
                }
            }
        }
    }
}
