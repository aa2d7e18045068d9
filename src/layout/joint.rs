//! Pairs of layouts: the nest from the one to the other, and what serves it.

use std::sync::atomic::AtomicU64;

use super::{Tier, reaches_threshold};
use crate::kind::Direction;
use crate::nest::{self, Byte, Leaf, LoopNest, Normal};
use crate::process::Awaited;

/// The nest from one layout to another.
#[derive(Debug)]
pub struct JointNest<L = Byte> {
    /// One instance is a joint period.
    pub nest: LoopNest<Normal, L, nest::MemorySide>,
    /// Pack where the source is the user side, unpack where the target is.
    pub direction: Direction,
    /// Offsets in bytes that its normalization took out: of the source, of the target.
    pub origins: [i64; 2],
    /// Bytes of the stream in a joint period, not 0.
    pub period: u64,
    /// Whether one period does what any number does.
    pub still: bool,
}

/// A pair of layouts, and how bytes get from the first to the second.
#[derive(Debug)]
pub struct Joint<L = Byte> {
    nest: Result<JointNest<L>, &'static str>,
    served: Awaited<Tier>,
    moved: AtomicU64,
}

impl<L: Leaf> Joint<L> {
    /// Returns a pair whose joint nest is `nest`, or that goes through a buffer for a reason.
    pub fn new(nest: Result<JointNest<L>, &'static str>) -> Joint<L> {
        Joint { nest, served: Awaited::default(), moved: AtomicU64::new(0) }
    }

    /// Returns the joint nest, or why there is none.
    pub fn nest(&self) -> Result<&JointNest<L>, &'static str> {
        self.nest.as_ref().map_err(|reason| *reason)
    }

    /// Returns how it is served, once that is decided.
    pub fn served(&self) -> Option<&Tier> {
        self.served.get()
    }

    /// Returns the tier, which `compile` decides if nobody has.
    pub fn serve(&self, compile: impl FnOnce() -> Tier) -> &Tier {
        self.served.get_or_init(compile)
    }

    /// Counts a call of `bytes` bytes; whether it is the one that reaches_threshold `threshold`.
    pub(crate) fn reaches_threshold(&self, bytes: u64, threshold: u64) -> bool {
        reaches_threshold(&self.moved, bytes, threshold)
    }

    /// Returns the bytes of nest, code and tables.
    pub(crate) fn bytes(&self) -> usize {
        let nest = self.nest.as_ref().map_or(0, |joint| joint.nest.bytes_stored());
        let kernel = self.served().and_then(Tier::kernel);
        nest + kernel.map_or(0, |kernel| kernel.code().len() + kernel.context_bytes())
    }
}
