//! Fused copies. A fused copy is a pair of layouts with the nest that moves data directly from one
//! to the other, and with the kernel for this nest.

use std::sync::atomic::AtomicU64;

use super::{Tier, has_reached};
use crate::kind::Direction;
use crate::nest::{self, Byte, Leaf, LoopNest, Normal};
use crate::process::Awaited;

/// The nest that copies from one layout to another.
#[derive(Debug)]
pub struct FusedNest<L = Byte> {
    /// The nest. One instance of it is a joint period: the shortest part of the packed stream that
    /// consists of whole root iterations of both layouts.
    pub nest: LoopNest<Normal, L, nest::MemorySide>,
    /// Direction of the copy: pack if the source is the user side of the nest, unpack if the target
    /// is the user side.
    pub direction: Direction,
    /// Offsets in bytes that normalization took out of the source and of the target.
    pub origins: [i64; 2],
    /// Number of packed bytes in one joint period. It is never 0.
    pub period: u64,
    /// Whether every period moves the same bytes between the same places. If so, it suffices to
    /// execute one period, unless values are combined.
    pub still: bool,
}

/// A pair of layouts with the way in which bytes get from the first layout to the second: directly
/// by a fused nest, or through a buffer if the layouts could not be fused.
#[derive(Debug)]
pub struct FusedCopy<L = Byte> {
    nest: Result<FusedNest<L>, &'static str>,
    served: Awaited<Tier>,
    moved: AtomicU64,
}

impl<L: Leaf> FusedCopy<L> {
    /// Makes the pair from its fused nest, or from the reason why the layouts could not be fused.
    /// In the second case, the bytes go through a buffer.
    pub fn new(nest: Result<FusedNest<L>, &'static str>) -> FusedCopy<L> {
        FusedCopy { nest, served: Awaited::default(), moved: AtomicU64::new(0) }
    }

    /// Returns the fused nest, or the reason why the layouts could not be fused.
    pub fn nest(&self) -> Result<&FusedNest<L>, &'static str> {
        self.nest.as_ref().map_err(|reason| *reason)
    }

    /// Returns how the pair is served, once this is decided.
    pub fn served(&self) -> Option<&Tier> {
        self.served.get()
    }

    /// Returns how the pair is served. If this is not decided yet, `compile` decides it.
    pub fn serve(&self, compile: impl FnOnce() -> Tier) -> &Tier {
        self.served.get_or_init(compile)
    }

    /// Does what [`FusedCopy::serve`] does, unless another thread of this process is deciding how
    /// the pair is served. Then it returns none, and the caller need not wait.
    pub(crate) fn try_serve(&self, compile: impl FnOnce() -> Tier) -> Option<&Tier> {
        self.served.try_get_or_init(compile)
    }

    /// Counts `bytes` bytes of a call. Returns true if the sum has reached `threshold`, so that the
    /// fused nest should be compiled.
    pub(crate) fn has_reached(&self, bytes: u64, threshold: u64) -> bool {
        has_reached(&self.moved, bytes, threshold)
    }

    /// Returns the number of bytes that the nest of the pair, its code and its tables occupy.
    pub(crate) fn bytes(&self) -> usize {
        let nest = self.nest.as_ref().map_or(0, |fused| fused.nest.bytes_stored());
        let kernel = self.served().and_then(Tier::kernel);
        nest + kernel.map_or(0, |kernel| kernel.code().len() + kernel.context_bytes())
    }
}
