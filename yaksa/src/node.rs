//! Type as this library stores it: the size and bounds that callers ask for, the arguments of its
//! constructor, and its children. A node has at most 128 bytes and is one allocation, in addition
//! to those of its arrays. It is kept small because most types of a program are never used, and
//! many are made anew for every message.
//!
//! **Bounds** are the minimum of the lower bounds and the maximum of the upper bounds of all
//! copies. There are no sticky bounds like those of `MPI_LB` and `MPI_UB`. Only a struct with
//! members of several types is padded.
//!
//! **Pieces** are the contiguous parts in the list of one instance. Their number follows from a
//! rule that considers only a constructor and its children. A block of copies is one piece if there
//! are no gaps between them; otherwise its copies are listed one by one. If the blocks of a
//! constructor follow each other without a gap, all of them are one piece. So pieces are never
//! joined across instances, except those of a type that is contiguous for any count. MPICH relies
//! on this rule: it computes the number of pieces of one instance as half of the number for two
//! instances.
//!
//! Invariant: sizes, bounds and the displacements of data fit in 64 bits, or the construction
//! fails. An instance has at most as many pieces as bytes.

mod compiled;
mod shared;
mod tree;

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};

use ddtc::internal::datatype::{Datatype, Named};
use ddtc::internal::methods::*;
use ddtc::internal::process::{Mutex, Once};

use crate::abi::{Code, Result};
use crate::arrays::{Blocks, Places};
use compiled::Compiled;
pub(crate) use compiled::Reduction;
use shared::Count;
pub(crate) use shared::Ref;

/// Properties of a type that are stored so that its arguments need not be read. All numbers except
/// `listing` are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) size: i64,
    pub(crate) lb: i64,
    pub(crate) extent: i64,
    pub(crate) true_lb: i64,
    pub(crate) true_extent: i64,
    listing: Listing,
}

/// Number of pieces in the list of an instance. The highest bit is set if the instance is dense,
/// that is, one ascending run of bytes without a gap, which begins at the true lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listing(u64);

impl Listing {
    const DENSE: u64 = 1 << 63;
    const NONE: Listing = Listing(Listing::DENSE);

    /// Returns the listing of an instance. If `dense` is true, the instance has one piece and
    /// `pieces` is ignored.
    fn new(dense: bool, pieces: u64) -> Listing {
        Listing(if dense { Listing::DENSE | 1 } else { pieces })
    }
}

/// Further properties of a node.
#[derive(Debug)]
struct Marks {
    /// Number of nodes below this one on the longest path to a leaf. The count stops at its
    /// maximum.
    depth: u8,
    /// Strictest alignment of an element in bytes. The highest bit ([`FLAT`]) is set if the
    /// constructor lists displacements and the block at each displacement is one piece or empty.
    alignment: u8,
    /// 0 if no pack or unpack has moved bytes of the type. Otherwise 1 more than the number of pieces that
    /// calls after the first one have moved one by one.
    listed: AtomicU16,
}

/// Arguments of a constructor. Displacements and strides are in bytes. Block lengths and counts are
/// not negative.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Type without data, whose bounds are 0.
    Empty,
    /// Predefined type of MPI. A form from another process may contain types for which the
    /// interface has no number.
    Named(Named),
    /// Copies of a type, one extent apart.
    Copies { count: i64, child: Ref },
    /// Blocks of `length` copies each. The blocks are `stride` bytes apart.
    Strided { count: i64, length: i64, stride: i64, child: Ref },
    /// Blocks of `length` copies each, at the displacements `at`.
    Blocks { length: i64, at: Places, child: Ref },
    /// Blocks of different lengths at displacements.
    Listed { blocks: Blocks, child: Ref },
    /// Blocks that have different types and lengths, at displacements.
    Struct { blocks: Blocks, children: Box<[Ref]> },
    /// Data of the child, with other bounds.
    Bounded { child: Ref },
}

/// Parts of a node that are made when they are first needed.
#[derive(Debug)]
pub(crate) struct Extra {
    pub(crate) datatype: Once<Datatype>,
    /// Prefix sums: for each block at a displacement, the sums over all blocks before that block.
    /// The last entry has the sums over all blocks.
    before: Once<Box<[Before]>>,
    /// Position at which the last part of a call by pieces ended. `None` if that was the end of the
    /// stream, or if the next part has begun.
    pub(crate) cursor: Mutex<Option<Cursor>>,
    /// Offset of the cursor; 0 if there is none. It is read without the lock, so that parts of other
    /// calls need not lock the cursor. It may be out of date, which costs only time.
    pub(crate) cursor_offset: AtomicU64,
    pub(crate) compiled: Compiled,
}

/// Sums over the blocks before a block at a displacement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    pub(crate) pieces: u64,
    /// Packed bytes.
    pub(crate) bytes: i64,
}

/// Position of a byte in the list of pieces of some instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// Index of the piece that contains the byte.
    pub(crate) piece: u64,
    /// Number of bytes of that piece before the byte.
    pub(crate) inside: i64,
}

/// Offset of a byte in the packed stream, and the position of that byte in the list of pieces. The
/// position depends on the type and the offset only, and not on the count, the buffer or the
/// direction of a call. The byte lies inside its piece, so `position.inside` is less than the length
/// of the piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) offset: u64,
    pub(crate) position: Position,
}

/// Stored type: its properties, the arguments of its constructor, and the objects that were made
/// for it later.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) facts: Facts,
    pub(crate) count: Count,
    marks: Marks,
    shape: Shape,
    extra: Once<Box<Extra>>,
}

/// Limits the size of a node, because a program may hold millions of types.
const _: () = assert!(size_of::<Node>() <= 128);

/// Bit in `Marks::alignment` that marks a flat node, in which each block at a displacement is one
/// piece or empty.
const FLAT: u8 = 0x80;

/// Maximum number of pieces that the calls after the first one move one by one. After that, the
/// type is lowered. Moving this many pieces takes 2 to 4 us, about as long as lowering a small type
/// if the code of the passes is in the caches. If it is not, lowering takes 20 to 60 us: without
/// this limit, the second call took more than three times as long as in yaksa for 19 of 21 layouts
/// whose call takes less than 5 us there (Zen 3, 2026-11-30, `tests/runtime/bench first`).
const MAX_LISTED: u16 = 2048;

/// Maximum depth of trees that are dropped recursively. Deeper trees are dropped with an explicit
/// list of nodes, because recursion could overflow the stack.
const SHALLOW: u8 = 64;

/// Returns the value in `value`. `None` stands for a value that does not fit in 64 bits and becomes
/// the error [`Code::Internal`].
fn fits<T>(value: Option<T>) -> Result<T> {
    value.ok_or(Code::Internal)
}

impl Facts {
    /// Properties of a type without data, whose bounds are all 0.
    const EMPTY: Facts =
        Facts { size: 0, lb: 0, extent: 0, true_lb: 0, true_extent: 0, listing: Listing::NONE };

    /// Returns true if an instance is one ascending run of bytes without a gap.
    #[inline]
    pub(crate) fn dense(&self) -> bool {
        self.listing.0 & Listing::DENSE != 0
    }

    /// Returns the number of pieces of one instance; 0 if there are no data.
    #[inline]
    pub(crate) fn pieces(&self) -> u64 {
        self.listing.0 & !Listing::DENSE
    }

    /// Returns true if any number of instances is one run of bytes.
    #[inline]
    pub(crate) fn contiguous(&self) -> bool {
        self.dense() && self.extent == self.size
    }

    /// Returns the number of pieces of a block of `length` copies, and whether the block is one run
    /// of bytes. A block without data has no pieces and counts as a run.
    #[inline]
    pub(crate) fn block(&self, length: i64) -> (u64, bool) {
        match length {
            _ if self.size == 0 || length <= 0 => (0, true),
            1 => (self.pieces(), self.dense()),
            _ if self.contiguous() => (1, true),
            _ => (self.pieces().wrapping_mul(length as u64), false),
        }
    }

    /// Returns the properties of a type of `copies` copies, where `self` has the properties of one
    /// copy. The lowest copy is at `first` and the highest at `last`. The caller must set the
    /// listing. Returns `None` if a number does not fit in 64 bits.
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

    /// Returns the minimum and the maximum displacement of `length` >= 1 copies relative to the
    /// first one, in bytes; `None` if they do not fit in 64 bits.
    fn reach(&self, length: i64) -> Option<(i64, i64)> {
        let tail = (length - 1).checked_mul(self.extent)?;
        Some((tail.min(0), tail.max(0)))
    }
}

/// Listing of a sequence of blocks. [`Sequence::push`] adds the blocks one by one.
struct Sequence {
    pieces: u64,
    dense: bool,
    /// Displacement after the last byte of the blocks so far.
    end: i64,
    /// Whether each block so far is one piece or empty.
    flat: bool,
}

impl Sequence {
    const EMPTY: Sequence = Sequence { pieces: 0, dense: true, end: 0, flat: true };

    /// Adds a block of `length` copies at `at`. Overflow is not detected here: the callers check
    /// the same sums, and drop the result if one of them overflows.
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

    /// Returns the bit that marks a flat node if `flat` is true, else 0.
    #[inline]
    fn flat(flat: bool) -> u8 {
        if flat { FLAT } else { 0 }
    }

    /// Returns true if the constructor lists displacements, and the block at each displacement is
    /// one piece or empty.
    #[inline]
    pub(crate) fn is_flat(&self) -> bool {
        self.marks.alignment & FLAT != 0
    }

    /// Returns a node whose children have the maximum depth `depth` and the strictest alignment
    /// `alignment`. This function and those that it calls are always inlined, so that a node is
    /// written directly to its final place.
    #[inline(always)]
    fn above(facts: Facts, (depth, alignment): (u8, u8), shape: Shape) -> Ref {
        Node::make(facts, (depth.saturating_add(1), alignment), shape)
    }

    /// Returns the depth and the alignment of this node, which are needed to make a parent of it.
    fn marks(&self) -> (u8, u8) {
        (self.marks.depth, self.marks.alignment & !FLAT)
    }

    /// Returns true if a call that begins to move bytes of `count` instances should move them piece
    /// by piece: if it is the first call of the type, or if it and the calls after the first one
    /// have at most [`MAX_LISTED`] pieces. In the second case, counts the pieces of all `count`
    /// instances, even if the call moves only a part of their bytes.
    #[inline]
    pub(crate) fn begin_by_pieces(&self, count: u64) -> bool {
        let now = match self.marks.listed.load(Relaxed) {
            0 => 1,
            before => self.facts.pieces().saturating_mul(count).saturating_add(u64::from(before)),
        };
        let by_pieces = now <= u64::from(MAX_LISTED) + 1;
        if by_pieces {
            // Two threads may overwrite each other's count, which need not be exact.
            self.marks.listed.store(now as u16, Relaxed);
        }
        by_pieces
    }

    /// Returns a type without data, whose bounds are all 0.
    pub(crate) fn empty() -> Ref {
        Node::make(Facts::EMPTY, (0, 1), Shape::Empty)
    }

    /// Returns a predefined type.
    pub(crate) fn named(named: Named) -> Ref {
        let t = Datatype::named(named);
        // Only pairs have more than one part, and there may be a gap between the two parts.
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

    /// Returns `count` >= 1 copies of a child that has data.
    pub(crate) fn copies(count: i64, child: Ref) -> Result<Ref> {
        let c = &child.facts;
        let (first, last) = fits(c.reach(count))?;
        let mut facts = fits(c.placed(count, first, last))?;
        let (pieces, dense) = c.block(count);
        facts.listing = Listing::new(dense, pieces);
        Ok(Node::above(facts, child.marks(), Shape::Copies { count, child }))
    }

    /// Returns a type of `count` >= 1 blocks, which are `stride` bytes apart. Each block has
    /// `length` >= 1 copies of a child that has data.
    pub(crate) fn strided(count: i64, length: i64, stride: i64, child: Ref) -> Result<Ref> {
        let c = &child.facts;
        let (first, last) = fits(c.reach(length))?;
        // `first` and `last` are the displacements of the lowest and the highest copy in a block.
        // The displacement of the last block is added to `last` if the stride is positive, else to
        // `first`.
        let tail = fits((count - 1).checked_mul(stride))?;
        let first = fits(first.checked_add(tail.min(0)))?;
        let last = fits(last.checked_add(tail.max(0)))?;
        let mut facts = fits(c.placed(fits(count.checked_mul(length))?, first, last))?;
        let (pieces, dense) = c.block(length);
        let dense = dense && (count == 1 || stride == length.wrapping_mul(c.size));
        facts.listing = Listing::new(dense, if dense { 1 } else { pieces * count as u64 });
        Ok(Node::above(facts, child.marks(), Shape::Strided { count, length, stride, child }))
    }

    /// Returns a type of blocks at one or more displacements. Each block has `length` >= 1 copies
    /// of a child that has data.
    pub(crate) fn blocks(length: i64, places: Places, child: Ref) -> Result<Ref> {
        let c = &child.facts;
        let (low, high) = fits(c.reach(length))?;
        let (pieces, dense) = c.block(length);
        let bytes = fits(length.checked_mul(c.size))?;
        let at = places.displacements();
        // One pass over the displacements finds their minimum and maximum, and whether each block
        // begins where the block before it ends.
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

    /// Returns a type of blocks of different lengths, whose copies are those of a child that has
    /// data. At least one length must not be 0.
    pub(crate) fn listed(blocks: Blocks, child: Ref) -> Result<Ref> {
        let c = &child.facts;
        let (lengths, at) = blocks.both();
        let (mut first, mut last, mut copies, mut longest) = (i64::MAX, i64::MIN, 0i64, 0);
        // Overflow of sums is tested once at the end.
        let mut over = false;
        let mut add = |a: i64, b: i64| {
            let (sum, overflowed) = a.overflowing_add(b);
            over |= overflowed;
            sum
        };
        let (listing, flat) = if c.contiguous() && lengths.iter().all(|&length| length > 0) {
            // Every block is one piece, whatever its length, so the loop need not find out for each
            // block which pieces it has.
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
        // The products `(length - 1) * extent` were computed without a test. If the product of the
        // longest block fits in 64 bits, all others do.
        if over || c.reach(longest).is_none() {
            return Err(Code::Internal);
        }
        let mut facts = fits(c.placed(copies, first, last))?;
        facts.listing = listing;
        let (depth, alignment) = child.marks();
        Ok(Node::above(facts, (depth, alignment | Node::flat(flat)), Shape::Listed { blocks, child }))
    }

    /// Returns a struct. At least one member must have data. If `padded` is true, the extent is
    /// rounded up to a multiple of the strictest alignment of its elements.
    pub(crate) fn structure(blocks: Blocks, children: Box<[Ref]>, padded: bool) -> Result<Ref> {
        let (mut all, mut facts) =
            (Sequence::EMPTY, Facts { lb: i64::MAX, true_lb: i64::MAX, ..Facts::EMPTY });
        // Members without copies affect only the depth of the tree. Members without data affect the
        // bounds, but not the true bounds.
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
            // `placed` fails if a bound of the block overflows, so the sums of its bounds below
            // cannot.
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

    /// Returns `child` with the bounds `lb` and `extent`. If `child` already has these bounds,
    /// returns `child` itself, else a new node. Fails if the upper bound does not fit in 64 bits.
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

    /// Returns the parts that are made only when they are needed. At the first call, all of them
    /// are empty.
    pub(crate) fn extra(&self) -> &Extra {
        self.extra.get_or_init(|| {
            Box::new(Extra {
                datatype: Once::new(),
                before: Once::new(),
                cursor: Mutex::new(None),
                cursor_offset: AtomicU64::new(0),
                compiled: Compiled::new(),
            })
        })
    }

    /// Returns the parts that are made only when they are needed; `None` if no call has needed any
    /// of them.
    #[inline]
    pub(crate) fn made_extra(&self) -> Option<&Extra> {
        self.extra.get().map(|extra| &**extra)
    }

    /// Returns the tree of ddtc with the same elements and bounds. The first call makes that tree.
    pub(crate) fn datatype(&self) -> Result<&Datatype> {
        tree::datatype(self)
    }

    /// Returns the types from which the constructor made this type.
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

    /// Returns the number of displacements, each of which has one block; 0 if the constructor has
    /// no displacements.
    pub(crate) fn blocks_listed(&self) -> usize {
        match &self.shape {
            Shape::Blocks { at, .. } => at.displacements().len(),
            Shape::Listed { blocks, .. } | Shape::Struct { blocks, .. } => blocks.both().0.len(),
            _ => 0,
        }
    }

    /// Returns the type, the length and the displacement of the block at displacement number `i`.
    /// If the constructor has no displacements, the result has length 0.
    #[inline]
    pub(crate) fn block(&self, i: usize) -> (&Node, i64, i64) {
        match &self.shape {
            Shape::Blocks { length, at, child } => (child, *length, at.displacements()[i]),
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

    /// Returns the prefix sums of the blocks at displacements. Entry `i` has the sums over the
    /// blocks before the block at displacement number `i`, and the last entry those over all
    /// blocks.
    pub(crate) fn before(&self) -> &[Before] {
        let count = || {
            let mut sum = Before { pieces: 0, bytes: 0 };
            let sums = (0..self.blocks_listed()).map(|i| {
                let (child, length, _) = self.block(i);
                sum.pieces += child.facts.block(length).0;
                sum.bytes += length * child.facts.size;
                sum
            });
            std::iter::once(Before { pieces: 0, bytes: 0 }).chain(sums).collect()
        };
        // The sums are computed outside of a fork section, because that may take long. If two
        // threads compute the sums at the same time, one of the two results is dropped.
        let known = &self.extra().before;
        match known.get() {
            Some(sums) => sums,
            None => {
                let sums = count();
                known.get_or_init(|| sums)
            }
        }
    }

    /// Returns the type of the block at a displacement that contains packed byte `byte` of an
    /// instance, and the sums over the blocks before that block. The constructor must have
    /// displacements, and the instance must have more than `byte` bytes.
    pub(crate) fn block_at(&self, byte: i64) -> (&Node, Before) {
        let before = self.before();
        // The byte is in the last block with at most `byte` bytes before it. An empty block has the
        // same sums as the block after it, so the last such block is never empty.
        let i = before.partition_point(|before| before.bytes <= byte) - 1;
        (self.block(i).0, before[i])
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.marks.depth <= SHALLOW {
            return;
        }
        // The tree is deep, so its nodes are dropped in a loop. `dying` holds the constructor
        // arguments, including the children, of the nodes that are being dropped.
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
                // If this is the last reference to the child, its own children are moved to
                // `dying`. Then dropping the child does not recurse.
                if let Some(node) = child.alone() {
                    dying.push(std::mem::replace(&mut node.shape, Shape::Empty));
                }
            }
        }
    }
}
