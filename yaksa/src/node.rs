//! Node, the structure in which this library stores a datatype. It has the size and bounds that
//! callers ask for, the arguments of the type's constructor, and the child types.
//!
//! A node must be small and quick to make, because most types of a program are never used, and many
//! are made anew for every message. It has at most 128 bytes and is one allocation; its arrays are
//! further allocations.
//!
//! **Bounds.** The lower bound of a type is the minimum of the lower bounds of all copies of its
//! child types, and its upper bound is the maximum of their upper bounds. There are two exceptions.
//! First, a constructor may set other bounds ([`Shape::Bounded`]). Second, a struct is padded at
//! its end if its members have different types. (Some types count as the same type here, see
//! [`crate::builtin::same`].) There are no sticky bounds like those of `MPI_LB` and `MPI_UB`.
//!
//! **Pieces** are the contiguous parts of user memory that `yaksa_iov` lists for one instance of a
//! type. (An instance is one of the `count` repetitions in a call.) Pieces that touch each other in
//! memory are joined only in two cases, which are examined for each constructor separately:
//!
//! * The copies of a child in one block are one piece if each copy is one piece and begins where
//!   the copy before it ends. Otherwise the pieces of each copy are listed separately.
//! * The blocks of one constructor are one piece if each block is one piece and begins where the
//!   block before it ends. Otherwise the pieces of each block are listed separately. (Blocks
//!   without data are ignored.)
//!
//! For most types, a piece does not extend over two instances, even if their data touch. So two
//! instances have exactly twice as many pieces as one. MPICH relies on this: it computes the number
//! of pieces of one instance as half of the number for two instances. The exceptions are types that
//! are contiguous for any count, and types without data: for these, `yaksa_iov` lists one piece for
//! all instances together.
//!
//! **Invariants.** The size, the bounds and the displacements of the data of a node fit in 64 bits;
//! otherwise its construction fails. An instance has at most as many pieces as bytes.

mod compiled;
mod shared;
mod tree;
mod yaksa_form;

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

/// Size, bounds and number of pieces of a type. They are stored so that calls which ask for them
/// need not read the arguments of the type's constructor. All fields except `listing` are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) size: i64,
    pub(crate) lb: i64,
    pub(crate) extent: i64,
    pub(crate) true_lb: i64,
    pub(crate) true_extent: i64,
    listing: Listing,
}

/// Number of contiguous pieces of memory that one instance of a type occupies. The highest bit is
/// set if the instance is dense: its data are one run of bytes without gaps, in the order of the
/// packed data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listing(u64);

impl Listing {
    const DENSE: u64 = 1 << 63;
    const NONE: Listing = Listing(Listing::DENSE);

    /// Encodes the number of contiguous pieces of one instance of a type. If `dense` is true, the
    /// instance has one piece and `pieces` is ignored.
    fn new(dense: bool, pieces: u64) -> Listing {
        Listing(if dense { Listing::DENSE | 1 } else { pieces })
    }
}

/// Properties of a type that callers cannot ask for: its depth, its alignment, and a count of
/// pieces that were copied one by one.
#[derive(Debug)]
struct Marks {
    /// Number of child types on the longest path from this type down to a predefined type. The
    /// count stops at the maximum of a `u8`.
    depth: u8,
    /// Strictest alignment of a basic element of the type, in bytes. The highest bit ([`FLAT`])
    /// marks a flat type: its constructor lists displacements, and each of its blocks is one
    /// contiguous piece of memory or empty.
    alignment: u8,
    /// 0 if [`Node::begin_by_pieces`] has not been called for the type. Otherwise this is 1 plus a
    /// sum: the number of contiguous pieces in all instances of those later calls for which that
    /// function has returned true.
    listed: AtomicU16,
}

/// Arguments of the constructor of a type. Displacements and strides are in bytes. Block lengths
/// and counts are not negative.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Type without data, whose lower bound and extent are 0.
    Empty,
    /// Predefined type of MPI. A serialized type from another process may contain predefined types
    /// for which yaksa's interface has no handle.
    Named(Named),
    /// `count` copies of the child type, one extent of the child apart.
    Copies { count: i64, child: Ref },
    /// `count` blocks, whose first bytes are `stride` bytes apart. Each block consists of `length`
    /// copies of the child type.
    Strided { count: i64, length: i64, stride: i64, child: Ref },
    /// One block at each of the displacements `at`. Each block consists of `length` copies of the
    /// child type.
    Blocks { length: i64, at: Places, child: Ref },
    /// Blocks at displacements. Each block has its own length, which is the number of copies of the
    /// child type in it.
    Listed { blocks: Blocks, child: Ref },
    /// Struct: blocks at displacements. Each block has its own length and its own child type.
    Struct { blocks: Blocks, children: Box<[Ref]> },
    /// Data of the child type, with another lower bound or extent.
    Bounded { child: Ref },
}

/// Data about a type that are computed only when a call first needs them.
#[derive(Debug)]
pub(crate) struct Extra {
    pub(crate) datatype: Once<Datatype>,
    /// Prefix sums over the blocks of the constructor, if it lists displacements: entry `i` has the
    /// number of contiguous pieces and of packed bytes in all blocks before block `i`. The last
    /// entry has the totals over all blocks.
    before: Once<Box<[Before]>>,
    /// Place at which a call stopped before the end of the packed data, after it had copied pieces
    /// one by one. If there were several such calls, this is the place of the last one. A call that
    /// begins at this place is taken for the next part of the same message, and removes the value
    /// from this field. The field is `None` if no call has stopped before the end since then.
    pub(crate) cursor: Mutex<Option<Cursor>>,
    /// Offset of the cursor in the packed data; 0 if there is no cursor. A call reads this number
    /// without a lock, and locks the cursor only if the packed range of the call begins at this
    /// offset. So calls for other parts of the data need not wait for the lock. The number may be
    /// out of date. Then a call may lock the cursor in vain or not use it, which costs only time.
    pub(crate) cursor_offset: AtomicU64,
    pub(crate) compiled: Compiled,
}

/// Sums over all blocks of a constructor that come before a given block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    pub(crate) pieces: u64,
    /// Number of packed bytes.
    pub(crate) bytes: i64,
}

/// Position of a byte of data in the list of contiguous pieces of memory that some instances of a
/// type occupy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// Index of the piece that contains the byte.
    pub(crate) piece: u64,
    /// Number of bytes of that piece before the byte.
    pub(crate) inside: i64,
}

/// Offset of a byte in the packed data, and the position of the same byte in the list of contiguous
/// pieces of user memory. The position depends only on the type and the offset, and not on the
/// count, the buffer or the direction of a call. The byte lies inside its piece, so
/// `position.inside` is less than the length of the piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) offset: u64,
    pub(crate) position: Position,
}

/// Datatype as this library stores it: its size and bounds, the arguments of its constructor, and
/// what was computed for it later.
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

/// Bit in `Marks::alignment` that marks a flat type. The constructor of a flat type lists
/// displacements, and each of its blocks is one contiguous piece of memory or empty.
const FLAT: u8 = 0x80;

/// Maximum number of contiguous pieces of a type that the calls after its first call copy one by
/// one. The pieces of all instances of these calls are added up, even if a call moves only a part
/// of them. A call that would exceed the maximum uses a layout of ddtc, which must be built from
/// the type first. Building a layout is called lowering. Calls that use the stored cursor
/// ([`Extra::cursor`]) are not counted, and copy piece by piece in any case.
///
/// Copying this many pieces takes 2 to 4 us. Lowering a small type takes about as long if the
/// machine code of the lowering passes is in the caches, and 20 to 60 us if it is not. It was also
/// measured what happens if only the first call copies its pieces one by one, so that the second
/// call lowers the type. For 19 of 21 layouts for which a call takes less than 5 us in yaksa, the
/// second call then took more than three times as long as in yaksa (Zen 3, 2026-11-30,
/// `tests/runtime/bench first`).
const MAX_LISTED: u16 = 2048;

/// Maximum depth of nested types that are dropped recursively. Types that are nested more deeply
/// are dropped with an explicit list of nodes, because recursion could overflow the stack.
const SHALLOW: u8 = 64;

/// Returns the result of checked arithmetic. `None` means that the result does not fit in 64 bits.
/// In this case the function fails with [`Code::Internal`].
fn fits<T>(value: Option<T>) -> Result<T> {
    value.ok_or(Code::Internal)
}

impl Facts {
    /// Properties of a type without data, whose bounds are all 0.
    const EMPTY: Facts =
        Facts { size: 0, lb: 0, extent: 0, true_lb: 0, true_extent: 0, listing: Listing::NONE };

    /// Returns true if the data of one instance are one run of bytes without gaps, in the order of
    /// the packed data.
    #[inline]
    pub(crate) fn dense(&self) -> bool {
        self.listing.0 & Listing::DENSE != 0
    }

    /// Returns the number of contiguous pieces of memory that one instance of the type occupies; 0
    /// if the type has no data.
    #[inline]
    pub(crate) fn pieces(&self) -> u64 {
        self.listing.0 & !Listing::DENSE
    }

    /// Returns true if any number of consecutive instances of the type is one contiguous run of
    /// bytes.
    #[inline]
    pub(crate) fn contiguous(&self) -> bool {
        self.dense() && self.extent == self.size
    }

    /// Returns the number of contiguous pieces of memory in a block of `length` copies of the type,
    /// and whether the block is one run of bytes. A block without data has no pieces and counts as
    /// a run.
    #[inline]
    pub(crate) fn block(&self, length: i64) -> (u64, bool) {
        match length {
            _ if self.size == 0 || length <= 0 => (0, true),
            1 => (self.pieces(), self.dense()),
            _ if self.contiguous() => (1, true),
            _ => (self.pieces().wrapping_mul(length as u64), false),
        }
    }

    /// Returns the size and bounds of a type that consists of `copies` copies of the type that
    /// `self` describes. The lowest copy is at displacement `first` and the highest at `last`, both
    /// in bytes. The field `listing` of the result is not valid, and the caller must set it.
    /// Returns `None` if a size or bound does not fit in 64 bits.
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

    /// Returns the minimum and the maximum displacement in a block of `length` >= 1 copies of the
    /// type. The displacements are those of the copies relative to the first copy, in bytes.
    /// Returns `None` if they do not fit in 64 bits.
    fn reach(&self, length: i64) -> Option<(i64, i64)> {
        let tail = (length - 1).checked_mul(self.extent)?;
        Some((tail.min(0), tail.max(0)))
    }
}

/// Counter of the contiguous pieces of memory in a sequence of blocks. [`Sequence::push`] adds the
/// blocks one by one.
struct Sequence {
    pieces: u64,
    dense: bool,
    /// Displacement of the first byte after the last block that was added.
    end: i64,
    /// Whether each block that was added is one contiguous piece of memory or empty.
    flat: bool,
}

impl Sequence {
    const EMPTY: Sequence = Sequence { pieces: 0, dense: true, end: 0, flat: true };

    /// Adds a block of `length` copies of a type at displacement `at`. `child` has the size, the
    /// bounds and the number of pieces of that type.
    ///
    /// The arithmetic wraps around on overflow, which does no harm. The callers compute the size
    /// and the bounds of the new type from the same blocks by checked arithmetic. If that
    /// arithmetic overflows, the construction of the type fails and the `Sequence` is not used.
    /// Otherwise the number of pieces does not overflow, because it is at most the size. `end` may
    /// overflow, but only for a block that is not one run of bytes. After such a block, `dense` is
    /// false, and `end` is not used any more.
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

    /// Returns [`FLAT`], the bit that marks a flat type, if `flat` is true, else 0.
    #[inline]
    fn flat(flat: bool) -> u8 {
        if flat { FLAT } else { 0 }
    }

    /// Returns true if the type is flat: its constructor lists displacements, and each of its
    /// blocks is one contiguous piece of memory or empty.
    #[inline]
    pub(crate) fn is_flat(&self) -> bool {
        self.marks.alignment & FLAT != 0
    }

    /// Returns a new node. `depth` is the maximum depth of its child types, and `alignment` is
    /// their strictest alignment. This function and the functions that it calls are always inlined,
    /// so that the compiler writes the node directly to its final place in memory.
    #[inline(always)]
    fn above(facts: Facts, (depth, alignment): (u8, u8), shape: Shape) -> Ref {
        Node::make(facts, (depth.saturating_add(1), alignment), shape)
    }

    /// Returns the depth and the alignment of this type. [`Node::above`] needs them to make a type
    /// that has this type as a child.
    fn marks(&self) -> (u8, u8) {
        (self.marks.depth, self.marks.alignment & !FLAT)
    }

    /// Decides whether a call that packs or unpacks data of `count` instances, without a reduction,
    /// should copy the contiguous pieces one by one. Returns true for the first such call for this
    /// type. Later, it returns true as long as the pieces of all later calls that it has counted
    /// are at most [`MAX_LISTED`].
    ///
    /// For this purpose, each call of this function after the first one adds the pieces of all its
    /// `count` instances to a sum in the node, even if the caller moves only a part of their data.
    /// If the new sum would be larger than the maximum, the sum stays as it is and the result is
    /// false.
    ///
    /// The caller does not ask this function about a call that uses the stored cursor
    /// ([`Extra::cursor`]). Such a call is taken for the next part of a message, and is copied
    /// piece by piece without being counted.
    #[inline]
    pub(crate) fn begin_by_pieces(&self, count: u64) -> bool {
        let now = match self.marks.listed.load(Relaxed) {
            0 => 1,
            before => self.facts.pieces().saturating_mul(count).saturating_add(u64::from(before)),
        };
        let by_pieces = now <= u64::from(MAX_LISTED) + 1;
        if by_pieces {
            // The load and the store are not one atomic step, so a thread may overwrite the sum
            // that another thread has stored. This is permitted, because the sum need not be exact.
            self.marks.listed.store(now as u16, Relaxed);
        }
        by_pieces
    }

    /// Returns a type without data, whose bounds are all 0.
    pub(crate) fn empty() -> Ref {
        Node::make(Facts::EMPTY, (0, 1), Shape::Empty)
    }

    /// Returns a new node for the predefined type `named`.
    pub(crate) fn named(named: Named) -> Ref {
        let t = Datatype::named(named);
        // Only pair types, such as `MPI_SHORT_INT`, have more than one part, and there may be a gap
        // between the two parts.
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

    /// Returns a type that consists of `count` >= 1 copies of `child`, one extent apart. `child`
    /// must have data. Fails if a size or bound does not fit in 64 bits.
    pub(crate) fn copies(count: i64, child: Ref) -> Result<Ref> {
        let c = &child.facts;
        let (first, last) = fits(c.reach(count))?;
        let mut facts = fits(c.placed(count, first, last))?;
        let (pieces, dense) = c.block(count);
        facts.listing = Listing::new(dense, pieces);
        Ok(Node::above(facts, child.marks(), Shape::Copies { count, child }))
    }

    /// Returns a type of `count` >= 1 blocks, which are `stride` bytes apart. Each block has
    /// `length` >= 1 copies of `child`, which must have data. Fails if a size or bound does not fit
    /// in 64 bits.
    pub(crate) fn strided(count: i64, length: i64, stride: i64, child: Ref) -> Result<Ref> {
        let c = &child.facts;
        let (first, last) = fits(c.reach(length))?;
        // `first` and `last` are the displacements of the lowest and the highest copy in the first
        // block. They are now extended to all blocks: `tail`, the displacement of the last block,
        // is added to `last` if it is positive, else to `first`.
        let tail = fits((count - 1).checked_mul(stride))?;
        let first = fits(first.checked_add(tail.min(0)))?;
        let last = fits(last.checked_add(tail.max(0)))?;
        let mut facts = fits(c.placed(fits(count.checked_mul(length))?, first, last))?;
        let (pieces, dense) = c.block(length);
        let dense = dense && (count == 1 || stride == length.wrapping_mul(c.size));
        facts.listing = Listing::new(dense, if dense { 1 } else { pieces * count as u64 });
        Ok(Node::above(facts, child.marks(), Shape::Strided { count, length, stride, child }))
    }

    /// Returns a type with one block at each of the displacements `places`, which must not be
    /// empty. Each block has `length` >= 1 copies of `child`, which must have data. Fails if a size
    /// or bound does not fit in 64 bits.
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

    /// Returns a type of blocks at displacements. Each block has its own length, which is the
    /// number of copies of `child` in it. `child` must have data, and at least one length must not
    /// be 0. Fails if a size or bound does not fit in 64 bits.
    pub(crate) fn listed(blocks: Blocks, child: Ref) -> Result<Ref> {
        let c = &child.facts;
        let (lengths, at) = blocks.both();
        let (mut first, mut last, mut copies, mut longest) = (i64::MAX, i64::MIN, 0i64, 0);
        // `over` becomes true if a sum overflows. It is tested only once, after the loop.
        let mut over = false;
        let mut add = |a: i64, b: i64| {
            let (sum, overflowed) = a.overflowing_add(b);
            over |= overflowed;
            sum
        };
        let (listing, flat) = if c.contiguous() && lengths.iter().all(|&length| length > 0) {
            // The child is contiguous, so every block is one contiguous piece of memory, whatever
            // its length. The loop need not count the pieces of each block.
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
        // The loops above computed the products `(length - 1) * extent` without a test for
        // overflow. If the product for the longest block fits in 64 bits, so do the products for
        // all other blocks.
        if over || c.reach(longest).is_none() {
            return Err(Code::Internal);
        }
        let mut facts = fits(c.placed(copies, first, last))?;
        facts.listing = listing;
        let (depth, alignment) = child.marks();
        Ok(Node::above(facts, (depth, alignment | Node::flat(flat)), Shape::Listed { blocks, child }))
    }

    /// Returns a struct type, whose member `i` is a block of copies of `children[i]`. At least one
    /// member must have data. If `padded` is true, the extent is rounded up to a multiple of the
    /// strictest alignment of its basic elements. Fails if a size or bound does not fit in 64 bits.
    pub(crate) fn structure(blocks: Blocks, children: Box<[Ref]>, padded: bool) -> Result<Ref> {
        let (mut all, mut facts) =
            (Sequence::EMPTY, Facts { lb: i64::MAX, true_lb: i64::MAX, ..Facts::EMPTY });
        // Here, members with block length 0 affect only the depth of the new type. (The caller may
        // have considered them when it chose `padded`.) A member with a positive block length whose
        // type has no data affects the bounds, too, but not the true bounds.
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
            // `placed` fails if a bound of the block does not fit in 64 bits. So the upper bounds
            // below, `lb + extent` and `true_lb + true_extent`, cannot overflow.
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

    /// Returns a type with the data of `child`, the lower bound `lb` and the extent `extent`. If
    /// `child` already has these bounds, this is `child` itself, else a new node. Fails if the
    /// upper bound does not fit in 64 bits.
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

    /// Returns the data about the type that are computed only when a call needs them. The first
    /// call of this function makes the [`Extra`] for these data, with all its fields empty.
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

    /// Returns the data about the type that are computed only when a call needs them; `None` if no
    /// call has needed any of these data yet.
    #[inline]
    pub(crate) fn made_extra(&self) -> Option<&Extra> {
        self.extra.get().map(|extra| &**extra)
    }

    /// Returns the `Datatype` of ddtc that is equivalent to this node: it has the same elements and
    /// the same bounds. The first call makes the `Datatype`, which is a tree of constructors.
    pub(crate) fn datatype(&self) -> Result<&Datatype> {
        tree::datatype(self)
    }

    /// Returns the child types, that is, the types from which the constructor made this type.
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

    /// Returns the number of blocks, if the constructor lists their displacements. Returns 0 for
    /// other constructors, for example for a vector.
    pub(crate) fn blocks_listed(&self) -> usize {
        match &self.shape {
            Shape::Blocks { at, .. } => at.displacements().len(),
            Shape::Listed { blocks, .. } | Shape::Struct { blocks, .. } => blocks.both().0.len(),
            _ => 0,
        }
    }

    /// Returns the child type, the length (number of copies) and the displacement in bytes of block
    /// `i` of a constructor that lists displacements. For any other constructor, the length is 0.
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

    /// Returns prefix sums over the blocks of a constructor that lists displacements. Entry `i` has
    /// the number of contiguous pieces and of packed bytes in the blocks before block `i`, and the
    /// last entry has the totals over all blocks.
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
        // `get_or_init` runs its closure in a fork section: a fork of the process waits for the
        // closure, so that the child does not inherit a half-made value. Computing the sums may
        // take long, so they are computed before `get_or_init` is called, and no fork waits for
        // them. If two threads compute the sums at the same time, one of the two results is
        // dropped.
        let known = &self.extra().before;
        match known.get() {
            Some(sums) => sums,
            None => {
                let sums = count();
                known.get_or_init(|| sums)
            }
        }
    }

    /// Finds the block that contains packed byte `byte` of one instance. Returns the child type of
    /// that block, and the sums over all blocks before it. The constructor must list displacements,
    /// and an instance must have more than `byte` bytes.
    pub(crate) fn block_at(&self, byte: i64) -> (&Node, Before) {
        let before = self.before();
        // The byte is in the last block that has at most `byte` packed bytes before it. An empty
        // block is never the last such block, because the next entry of `before` has the same
        // number of bytes.
        let i = before.partition_point(|before| before.bytes <= byte) - 1;
        (self.block(i).0, before[i])
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.marks.depth <= SHALLOW {
            return;
        }
        // The type is nested deeply, so recursion could overflow the stack, and its nodes are
        // dropped in a loop instead. `dying` holds the constructor arguments, including the
        // children, of the nodes that are being dropped.
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
