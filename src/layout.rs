//! The compiled layout, the central object of the library: a normal nest under one leaf operation,
//! with the kernels, parts and segments that are added to it over time.
//!
//! A layout is made once and shared by all datatypes with the same meaning. It only stores data and
//! makes no decisions: the engine compiles the kernels that calls need, and the cache finds and
//! evicts layouts. Everything that is added later is made only once. The first caller that needs
//! segments makes them, and the same holds for kernels in mode `Commit`. Parts, and kernels in mode
//! `Lazy`, are usually made by the call that makes the number of bytes moved reach a threshold. A
//! caller can also request them in advance.

mod fused;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::code::kernel::Kernel;
use crate::column::Column;
use crate::kind::{Direction, Operation};
use crate::nest::{Body, Byte, Descent, Disjoint, EqualPieces, Leaf, LoopNest, Node, Normal};
use crate::process::{Awaited, Once};
use crate::segments::Runs;

pub use fused::{FusedCopy, FusedNest};

/// The way in which calls of one direction are served.
#[derive(Clone, Debug)]
pub enum Tier {
    /// Calls are served by compiled code.
    Kernel {
        /// The code.
        kernel: Arc<Kernel>,
        /// Summary of the plan in one line.
        schedule: Arc<str>,
    },
    /// Calls are served by interpreting the nest, because the scheduler refused the nest (by
    /// design) or a stage failed.
    Interpreted {
        /// The reason, for reports.
        reason: Arc<str>,
        /// Whether interpreting is only a fallback because a stage failed unexpectedly.
        fallback: bool,
    },
}

impl Tier {
    /// Returns the kernel, if there is one.
    pub fn kernel(&self) -> Option<&Arc<Kernel>> {
        match self {
            Tier::Kernel { kernel, .. } => Some(kernel),
            Tier::Interpreted { .. } => None,
        }
    }
}

/// The means by which whole iterations or rows of a node are moved if a range of the packed stream
/// contains them.
#[derive(Debug)]
pub enum Part {
    /// The layout itself, because an iteration of the node is an instance of the layout.
    Own,
    /// The layout of one iteration of the node. The instances of that layout are the iterations.
    Iterations(Arc<CompiledLayout>),
    /// All rows of a `Blocks` node, cut into equal pieces. The tables of the pieces come from a
    /// plan that unpacks only this node. If a kernel of the layout has an equal table, that table
    /// is shared.
    Pieces(Vec<EqualPieces>),
    /// All rows of a `Blocks` node, sorted within buckets by the power of two that covers their
    /// length, as in a plan that unpacks only this node. The columns have user offsets, packed
    /// offsets and lengths. If a kernel of the layout has an equal column, that column is shared.
    Buckets([Column; 3]),
    /// Nothing: the interpreter of nests moves the bytes of the node.
    Interpreted,
}

impl Part {
    /// Returns the columns that the part reads.
    fn columns(&self) -> impl Iterator<Item = &Column> {
        let (pieces, columns): (&[EqualPieces], &[Column]) = match self {
            Part::Pieces(pieces) => (pieces, &[]),
            Part::Buckets(columns) => (&[], columns),
            Part::Own | Part::Iterations(_) | Part::Interpreted => (&[], &[]),
        };
        // Neighbouring entries may share one table, which must be counted only once.
        let tables = pieces.chunk_by(|a, b| a.user.as_ptr() == b.user.as_ptr()).map(|of_one| &of_one[0].user);
        tables.chain(columns)
    }
}

/// Slot for the part of one node of a layout. The part is made when ranges have moved enough bytes
/// of this node, or in advance.
#[derive(Debug)]
pub struct PartSlot {
    descent: Descent,
    /// Kernels of the layout whose instances are the iterations of the node, one for each
    /// direction. A kernel is stored here when a range uses it for the first time, or when it is
    /// made in advance.
    kernels: [Once<Arc<Kernel>>; 2],
    /// Number of packed bytes of the node that ranges have moved before the part is made. Each call
    /// of [`PartSlot::get`] adds its argument `bytes`, but at most the threshold. A call whose
    /// argument is `None` adds nothing.
    moved: AtomicU64,
    part: Awaited<Part>,
}

impl PartSlot {
    fn new(nest: &LoopNest<Normal>, i: usize) -> PartSlot {
        let (kernels, moved, part) = Default::default();
        PartSlot { descent: Descent::new(nest, i), kernels, moved, part }
    }

    /// Returns the facts about the node that are needed to find a packed byte inside it.
    #[inline(always)]
    pub fn descent(&self) -> &Descent {
        &self.descent
    }

    /// Returns the kernel for iterations, if [`PartSlot::keep_kernel`] has been called.
    #[inline]
    pub fn kernel(&self, direction: Direction) -> Option<&Arc<Kernel>> {
        self.kernels[direction as usize].get()
    }

    /// Stores the kernel for iterations, unless one is stored already, and returns the stored
    /// kernel.
    pub fn keep_kernel(&self, direction: Direction, kernel: &Arc<Kernel>) -> &Arc<Kernel> {
        self.kernels[direction as usize].get_or_init(|| Arc::clone(kernel))
    }

    /// Returns the part, if it has been made.
    pub fn made(&self) -> Option<&Part> {
        self.part.get()
    }

    /// Returns the part, if it has been made. Otherwise adds `bytes` to the number of bytes moved
    /// so far. If this number has reached `threshold`, makes the part by `make`, unless another
    /// thread is making it. Returns `None` in all other cases.
    ///
    /// If `bytes` is `None`, makes the part now, or waits for the thread that is making it.
    pub fn get(&self, bytes: Option<u64>, threshold: u64, make: impl FnOnce() -> Part) -> Option<&Part> {
        if let Some(part) = self.part.get() {
            return Some(part);
        }
        let Some(bytes) = bytes else { return Some(self.part.get_or_init(make)) };
        has_reached(&self.moved, bytes, threshold).then(|| self.part.try_get_or_init(make)).flatten()
    }
}

/// Adds `bytes` to `moved` and returns true if the sum has reached `threshold`. Every call after
/// that returns true as well, so that a child process makes a kernel that a thread of its parent
/// was making when it forked. Callers make it by [`Awaited::try_get_or_init`], so that only one
/// thread makes it and the others need not wait.
fn has_reached(moved: &AtomicU64, bytes: u64, threshold: u64) -> bool {
    // At most the threshold is added at once, so that the sum does not wrap around.
    let before = moved.fetch_add(bytes.min(threshold), Relaxed);
    before.saturating_add(bytes) >= threshold
}

/// Maximum number of nodes of a nest that has slots for parts. A slot takes almost three times as
/// much memory as a node.
const MAX_PARTS: usize = 4096;

/// A normal nest at origin 0 under one leaf operation, with its kernels. All datatypes with an
/// equal nest under the same operation share one compiled layout.
#[derive(Debug)]
pub struct CompiledLayout<L = Byte> {
    nest: LoopNest<Normal, L>,
    operation: Operation,
    served: [Awaited<Tier>; 2],
    /// Number of bytes in each direction that were counted in mode `Lazy` to decide when to
    /// compile: bytes that calls have moved, and bytes that were given to `Committed::settled`,
    /// which moves none. A call adds at most the lazy threshold. It adds the whole threshold if
    /// layouts of the same `near_hash` have reached the threshold together.
    moved: [AtomicU64; 2],
    /// One slot for each node of the nest. The slots are made when a range of the packed stream is
    /// moved for the first time, or when the parts are made in advance.
    parts: Once<Box<[PartSlot]>>,
    /// Whether the nest has a loop whose body is a single copy.
    strips: bool,
    /// Runs of the nest, from which segments are found. They are made when segments are requested
    /// for the first time.
    runs: Once<Box<Runs>>,
    /// Result of the overlap analysis of the nest, kept because the analysis sorts all rows.
    disjoint: Once<Disjoint>,
    /// Hash of the nest, kept because hashing 10^6 rows takes a millisecond.
    hash: u64,
    /// Hash of the nest in which far distances count as equal ([`LoopNest::near_hash`]). It is 0 if
    /// the nest has no such hash.
    near: u64,
    /// Number of bytes that the nest and this object occupy.
    bytes: usize,
}

impl<L: Leaf> CompiledLayout<L> {
    /// Makes a layout without kernels; `hash` is the hash of its nest.
    pub(crate) fn new(nest: LoopNest<Normal, L>, operation: Operation, hash: u64) -> CompiledLayout<L> {
        let bytes = nest.bytes_stored() + size_of::<CompiledLayout<L>>();
        let near = nest.near_hash().unwrap_or(0);
        let copied = |body: Body| matches!(nest.body(body), [Node::Copy { .. }]);
        let strips = nest.nodes().iter().any(|n| matches!(n, Node::Loop { body, .. } if copied(*body)));
        let (served, moved, parts, runs, disjoint) = Default::default();
        CompiledLayout { nest, operation, served, moved, parts, strips, runs, disjoint, hash, near, bytes }
    }

    /// Returns the canonical nest.
    pub fn nest(&self) -> &LoopNest<Normal, L> {
        &self.nest
    }

    /// Returns the hash of the nest.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns [`LoopNest::near_hash`] of the nest. Layouts of the same objects at other addresses
    /// have the same hash.
    pub(crate) fn near_hash(&self) -> Option<u64> {
        (self.near != 0).then_some(self.near)
    }

    /// Returns true if the nest has a loop whose body is a single copy, so that a range may lie
    /// inside such a loop.
    #[inline]
    pub(crate) fn has_strips(&self) -> bool {
        self.strips
    }

    /// Returns [`LoopNest::disjoint`] of the nest, which the first call computes.
    pub(crate) fn disjoint(&self) -> Disjoint {
        if let Some(&known) = self.disjoint.get() {
            return known;
        }
        // The analysis may take long, so it runs before the short work that makes a `Once`.
        let known = self.nest.disjoint();
        *self.disjoint.get_or_init(|| known)
    }

    /// Returns the operation on the leaves.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Returns how calls of `direction` are served, once this is decided.
    pub fn served(&self, direction: Direction) -> Option<&Tier> {
        self.served[direction as usize].get()
    }

    /// Returns how calls of `direction` are served. If this is not decided yet, `compile` decides
    /// it. Concurrent callers wait for the result of a single call of `compile`. After a fork, the
    /// child process does not wait for a compile that was running in its parent.
    pub fn serve(&self, direction: Direction, compile: impl FnOnce() -> Tier) -> &Tier {
        self.served[direction as usize].get_or_init(compile)
    }

    /// Does what [`CompiledLayout::serve`] does, unless another thread of this process is deciding
    /// how calls are served. Then it returns none, and the caller need not wait.
    pub(crate) fn try_serve(&self, direction: Direction, compile: impl FnOnce() -> Tier) -> Option<&Tier> {
        self.served[direction as usize].try_get_or_init(compile)
    }

    /// Counts `bytes` bytes of a call. Returns true if the sum has reached `threshold`, so that the
    /// layout should be compiled.
    pub(crate) fn has_reached(&self, direction: Direction, bytes: u64, threshold: u64) -> bool {
        has_reached(&self.moved[direction as usize], bytes, threshold)
    }

    /// Returns the kernels that have been compiled so far, for both directions.
    pub fn kernels(&self) -> impl Iterator<Item = &Arc<Kernel>> + Clone {
        Direction::BOTH.into_iter().filter_map(|d| self.served(d)?.kernel())
    }

    /// Returns the number of bytes that the layout occupies: its nest, its code and tables, and the
    /// slots and columns of its parts. The layouts whose instances are iterations of this layout
    /// are separate layouts, so they are not included.
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
    /// Returns one slot for each node of the nest, and makes the slots if there are none yet. A
    /// nest with more than `MAX_PARTS` nodes has no slots.
    #[inline]
    pub fn slots(&self) -> &[PartSlot] {
        let nodes = self.nest.nodes();
        let make = || (0..nodes.len()).map(|i| PartSlot::new(&self.nest, i)).collect();
        if nodes.len() <= MAX_PARTS { self.parts.get_or_init(make) } else { &[] }
    }

    /// Returns the slots, if they have been made.
    #[inline]
    pub fn made_slots(&self) -> &[PartSlot] {
        self.parts.get().map_or(&[], |slots| slots)
    }

    /// Returns the runs of the nest, from which segments are found, if
    /// [`CompiledLayout::keep_runs`] has been called.
    #[inline]
    pub(crate) fn runs(&self) -> Option<&Runs> {
        self.runs.get().map(Box::as_ref)
    }

    /// Stores the runs of the nest, unless runs are stored already, and returns the stored runs.
    pub(crate) fn keep_runs(&self, runs: Runs) -> &Runs {
        let runs = Box::new(runs);
        self.runs.get_or_init(|| runs)
    }
}

/// A layout together with the user offset in bytes at which it lies in one datatype.
#[derive(Debug)]
pub struct PlacedLayout<L = Byte> {
    /// The shared layout.
    pub layout: Arc<CompiledLayout<L>>,
    /// User offset in bytes that the datatype adds to every address of the layout.
    pub origin: i64,
}

impl<L> Clone for PlacedLayout<L> {
    fn clone(&self) -> Self {
        PlacedLayout { layout: Arc::clone(&self.layout), origin: self.origin }
    }
}
