//! The central object: a normal nest under one leaf operation, with the kernels, parts and segments that it gets in its life.
//!
//! A layout is made once and shared by all datatypes of one meaning. It holds; it decides nothing: the engine compiles what it asks for, and the cache
//! finds it again and lets it go. Everything in it that is made later is made once, by whoever comes first.

mod joint;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::code::kernel::Kernel;
use crate::column::Column;
use crate::kind::{Direction, Operation};
use crate::nest::{Body, Byte, Descent, EqualPieces, Leaf, LoopNest, Node, Normal};
use crate::process::{Awaited, Once};
use crate::segments::Runs;

pub use joint::{Joint, JointNest};

/// How calls of one direction are served.
#[derive(Clone, Debug)]
pub enum Tier {
    /// Compiled.
    Kernel {
        /// The code.
        kernel: Arc<Kernel>,
        /// One line on what was chosen.
        schedule: Arc<str>,
    },
    /// Walked, because the schedule refused the nest (by design) or a stage failed (a fallback).
    Walk {
        /// Why.
        reason: Arc<str>,
        /// Whether this is a fallback: something failed that should not.
        fallback: bool,
    },
}

impl Tier {
    /// Returns the kernel, if there is one.
    pub fn kernel(&self) -> Option<&Arc<Kernel>> {
        match self {
            Tier::Kernel { kernel, .. } => Some(kernel),
            Tier::Walk { .. } => None,
        }
    }
}

/// Serves a part of a layout: whole iterations of a loop, or whole rows, that a range of the packed stream has.
#[derive(Debug)]
pub enum Part {
    /// The layout itself, an iteration as an instance.
    Own,
    /// The layout of one iteration, which is its instance.
    Iterations(Arc<CompiledLayout>),
    /// Rows of blocks as equal pieces, all of them: the tables that the layout's plan has.
    Pieces(Vec<EqualPieces>),
    /// Rows of blocks sorted by length within buckets, as the layout's plan has them: user offsets, packed offsets, lengths.
    Buckets([Column; 3]),
    /// Nothing but the walker.
    Walked,
}

impl Part {
    /// The columns that it reads.
    fn columns(&self) -> impl Iterator<Item = &Column> {
        let (pieces, columns): (&[EqualPieces], &[Column]) = match self {
            Part::Pieces(pieces) => (pieces, &[]),
            Part::Buckets(columns) => (&[], columns),
            Part::Own | Part::Iterations(_) | Part::Walked => (&[], &[]),
        };
        // Several may go by one table.
        let tables = pieces.chunk_by(|a, b| a.user.as_ptr() == b.user.as_ptr()).map(|of_one| &of_one[0].user);
        tables.chain(columns)
    }
}

/// A part while nobody has asked for it often enough to be made, and after.
#[derive(Debug)]
pub struct PartSlot {
    descent: Descent,
    /// Kernels of which an iteration is an instance, found through the part.
    kernels: [Once<Arc<Kernel>>; 2],
    /// Packed bytes that were walked in it.
    moved: AtomicU64,
    part: Awaited<Part>,
}

impl PartSlot {
    fn new(nest: &LoopNest<Normal>, i: usize) -> PartSlot {
        let (kernels, moved, part) = Default::default();
        PartSlot { descent: Descent::new(nest, i), kernels, moved, part }
    }

    /// Returns how ranges descend at its node.
    #[inline(always)]
    pub fn descent(&self) -> &Descent {
        &self.descent
    }

    /// Returns the kernel of iterations, if [`PartSlot::keep_kernel`] was told.
    #[inline]
    pub fn kernel(&self, direction: Direction) -> Option<&Arc<Kernel>> {
        self.kernels[direction as usize].get()
    }

    /// Keeps the kernel that the layout of iterations has decided on for good.
    pub fn keep_kernel(&self, direction: Direction, kernel: &Arc<Kernel>) -> &Arc<Kernel> {
        self.kernels[direction as usize].get_or_init(|| Arc::clone(kernel))
    }

    /// Returns the part, if somebody has made it.
    pub fn made(&self) -> Option<&Part> {
        self.part.get()
    }

    /// Returns the part; the call that reaches `threshold` bytes makes it by `make`, and others need not wait.
    pub fn get(&self, bytes: u64, threshold: u64, make: impl FnOnce() -> Part) -> Option<&Part> {
        if let Some(part) = self.part.get() {
            return Some(part);
        }
        reaches_threshold(&self.moved, bytes, threshold).then(|| self.part.get_or_init(make))
    }
}

/// Adds `bytes` to `moved`; whether that is what reaches `threshold`. A threshold of 0 is reached by the first byte.
fn reaches_threshold(moved: &AtomicU64, bytes: u64, threshold: u64) -> bool {
    let before = moved.fetch_add(bytes, Relaxed);
    before < threshold.max(1) && before.saturating_add(bytes) >= threshold
}

/// Most nodes of a nest whose parts are served apart: a slot takes the room of four.
const MAX_PARTS: usize = 4096;

/// A normal nest at origin 0 under one leaf operation, with its kernels: what equal layouts share.
#[derive(Debug)]
pub struct CompiledLayout<L = Byte> {
    nest: LoopNest<Normal, L>,
    operation: Operation,
    served: [Awaited<Tier>; 2],
    /// Bytes moved so far in mode `Lazy`, per direction.
    moved: [AtomicU64; 2],
    /// A slot for each node, once a range was asked for.
    parts: Once<Box<[PartSlot]>>,
    /// Whether there are loops of copies.
    strips: bool,
    /// Where segments begin, once they were asked for.
    runs: Once<Box<Runs>>,
    /// Hash of the nest, kept because hashing 10^6 rows takes a millisecond.
    hash: u64,
    /// Hash of the nest but for far distances; 0 if it has none.
    near: u64,
    /// Bytes of the nest.
    bytes: usize,
}

impl<L: Leaf> CompiledLayout<L> {
    /// Returns a layout that nothing serves yet; `hash` is that of its nest.
    pub(crate) fn new(nest: LoopNest<Normal, L>, operation: Operation, hash: u64) -> CompiledLayout<L> {
        let bytes = nest.bytes_stored() + size_of::<CompiledLayout<L>>();
        let near = nest.near_hash().unwrap_or(0);
        let copied = |body: Body| matches!(nest.body(body), [Node::Copy { .. }]);
        let strips = nest.nodes().iter().any(|n| matches!(n, Node::Loop { body, .. } if copied(*body)));
        let (served, moved, parts, runs) = Default::default();
        CompiledLayout { nest, operation, served, moved, parts, strips, runs, hash, near, bytes }
    }

    /// Returns the canonical nest.
    pub fn nest(&self) -> &LoopNest<Normal, L> {
        &self.nest
    }

    /// Returns the hash of its nest.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns [`LoopNest::near_hash`] of its nest: what it has in common with layouts of the same objects elsewhere.
    pub(crate) fn near_hash(&self) -> Option<u64> {
        (self.near != 0).then_some(self.near)
    }

    /// Says whether a range of it may lie in a loop of copies.
    #[inline]
    pub(crate) fn has_strips(&self) -> bool {
        self.strips
    }

    /// Returns the operation on its leaves.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Returns how calls of `direction` are served, once that is decided.
    pub fn served(&self, direction: Direction) -> Option<&Tier> {
        self.served[direction as usize].get()
    }

    /// Returns the tier, which `compile` decides if nobody has: concurrent callers wait and get the one result. A child does not wait for a
    /// compile of its parent's.
    pub fn serve(&self, direction: Direction, compile: impl FnOnce() -> Tier) -> &Tier {
        self.served[direction as usize].get_or_init(compile)
    }

    /// Counts a call of `bytes` bytes; whether it is the one that reaches `threshold`. Exactly one is: the others need not wait.
    pub(crate) fn reaches_threshold(&self, direction: Direction, bytes: u64, threshold: u64) -> bool {
        reaches_threshold(&self.moved[direction as usize], bytes, threshold)
    }

    /// Says whether a part of a range of another layout has moved enough to gain by a kernel: whether it is the first call at all, or reaches
    /// `threshold`. The layout's own calls count in the same number, so either may be the one that reaches it.
    pub(crate) fn begins_or_reaches_threshold(
        &self,
        direction: Direction,
        bytes: u64,
        threshold: u64,
    ) -> bool {
        let before = self.moved[direction as usize].fetch_add(bytes, Relaxed);
        before == 0 || (before < threshold && before.saturating_add(bytes) >= threshold)
    }

    /// Returns its kernels, as far as there are any.
    pub fn kernels(&self) -> impl Iterator<Item = &Arc<Kernel>> + Clone {
        Direction::BOTH.into_iter().filter_map(|d| self.served(d)?.kernel())
    }

    /// Returns the bytes of nest, code, tables, and what serves parts. Layouts of iterations are layouts of their own.
    pub(crate) fn bytes(&self) -> usize {
        let kernels = self.kernels().map(|k| k.code().len() + k.context_bytes()).sum::<usize>();
        let slots = self.parts.get().map_or(&[][..], |slots| slots);
        let parts = slots.iter().filter_map(|slot| slot.part.get());
        let own = |column: &&Column| !self.kernels().any(|kernel| kernel.shared(column).is_some());
        let columns = parts.flat_map(Part::columns).filter(own).map(Column::bytes).sum::<usize>();
        let runs = self.runs.get().map_or(0, |runs| runs.bytes_stored());
        self.bytes + kernels + size_of_val(slots) + columns + runs
    }
}

impl CompiledLayout {
    /// Returns the slots of the parts that its nodes are; none in nests of very many nodes.
    #[inline]
    pub fn slots(&self) -> &[PartSlot] {
        let nodes = self.nest.nodes();
        let make = || (0..nodes.len()).map(|i| PartSlot::new(&self.nest, i)).collect();
        if nodes.len() <= MAX_PARTS { self.parts.get_or_init(make) } else { &[] }
    }

    /// Returns the slots of the parts that its nodes are, if somebody has made them.
    #[inline]
    pub fn made_slots(&self) -> &[PartSlot] {
        self.parts.get().map_or(&[], |slots| slots)
    }

    /// Returns where its segments begin, if [`CompiledLayout::keep_runs`] was told.
    #[inline]
    pub(crate) fn runs(&self) -> Option<&Runs> {
        self.runs.get().map(Box::as_ref)
    }

    /// Keeps where its segments begin, unless somebody else has.
    pub(crate) fn keep_runs(&self, runs: Runs) -> &Runs {
        let runs = Box::new(runs);
        self.runs.get_or_init(|| runs)
    }
}

/// A layout and the user offset in bytes of its datatype.
#[derive(Debug)]
pub struct PlacedLayout<L = Byte> {
    /// The shared layout.
    pub layout: Arc<CompiledLayout<L>>,
    /// Offset in bytes that is the datatype's own.
    pub origin: i64,
}

impl<L> Clone for PlacedLayout<L> {
    fn clone(&self) -> Self {
        PlacedLayout { layout: Arc::clone(&self.layout), origin: self.origin }
    }
}
