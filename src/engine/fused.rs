//! Copies from one layout to another. The fused nest of a pair of layouts is made when the first
//! such copy is requested, and compiled by the first call that justifies a compile.

use std::sync::Arc;

use super::{Engine, Mode};
use crate::cache::Cached;
use crate::error::Result;
use crate::kind::{Direction, Kind};
use crate::layout::{CompiledLayout, FusedCopy, FusedNest, Tier};
use crate::nest::{self, Leaf, LoopNest, Normal};
use crate::normalize::{self, Normalized};
use crate::refine::{self, Refined};
use crate::schedule::Planned;

use super::explain::Trace;

/// Kind of leaf for which the nests of two layouts can be fused and the fused nest can be compiled.
pub(crate) trait Fusible: Cached + Planned<nest::MemorySide> {}

impl<L: Cached + Planned<nest::MemorySide>> Fusible for L {}

impl Engine {
    /// Returns the fused copy from the first of `layouts` to the second, from the cache or newly
    /// made.
    ///
    /// # Errors
    /// Returns class `NoMem` if there is no memory for the fused nest, and otherwise only errors
    /// that are faults of ddtc.
    pub(crate) fn fused_copy<L: Cached>(
        &self,
        layouts: [&Arc<CompiledLayout<L>>; 2],
    ) -> Result<Arc<FusedCopy<L>>> {
        if let Some(fused) = self.0.cache.fused_copy(layouts) {
            return Ok(fused);
        }
        let nest = self.fuse(layouts.map(|layout| layout.nest()), &mut Trace::silent())?;
        Ok(self.0.cache.insert_fused_copy(layouts, FusedCopy::new(nest)))
    }

    /// Fuses two normal nests over the same packed stream into one nest from memory to memory. If
    /// the nests cannot be fused, or if they move nothing, returns the reason as `Ok(Err(_))`.
    ///
    /// # Errors
    /// Returns the error of the stage that failed: class `NoMem`, or a fault of ddtc.
    pub(super) fn fuse<L: Leaf>(
        &self,
        [from, to]: [&LoopNest<Normal, L>; 2],
        trace: &mut Trace,
    ) -> Result<std::result::Result<FusedNest<L>, &'static str>> {
        let direction = direction(from, to);
        let (user, packed) = sides(direction, from, to);
        let Refined { nest, period, still } = match trace.stage("refine", || refine::refine(user, packed))? {
            Ok(refined) => refined,
            Err(refusal) => return Ok(Err(refusal.reason)),
        };
        if period == 0 {
            return Ok(Err("nothing is moved"));
        }
        self.check(|| nest.verify())?;
        let entries = nest.nodes().iter().map(|node| 1 + node.rows() as u64).sum();
        let Normalized { nest, origin, packed_origin, .. } =
            trace.stage("normalize", || normalize::normalize(&nest, entries))?;
        self.check(|| nest.verify())?;
        let (of_from, of_to) = sides(direction, origin, packed_origin);
        Ok(Ok(FusedNest { nest, direction, origins: [of_from, of_to], period, still }))
    }

    /// Returns how `fused` serves a call of `bytes` bytes, and compiles it first if the mode asks
    /// for that. `layouts` must be the pair that `fused` was made for. Returns none if the layouts
    /// could not be fused or if nothing is compiled yet; the caller then copies through a buffer.
    /// Without a number of bytes, the pair is compiled in every mode that compiles.
    pub(crate) fn serve_fused_copy<'f, L: Fusible>(
        &self,
        layouts: [&Arc<CompiledLayout<L>>; 2],
        fused: &'f FusedCopy<L>,
        bytes: Option<u64>,
    ) -> Option<(&'f FusedNest<L>, &'f Tier)> {
        let nest = fused.nest().ok()?;
        if let Some(tier) = fused.served() {
            return Some((nest, tier));
        }
        let kind = Kind { direction: nest.direction, operation: layouts[0].operation() };
        let compile = || self.compile(&nest.nest, kind);
        let tier = match (self.config().mode, bytes) {
            (Mode::Off | Mode::Interpret, _) => None,
            (Mode::Lazy, Some(bytes)) => {
                let has_reached = fused.has_reached(bytes, self.config().lazy_threshold);
                has_reached.then(|| fused.try_serve(compile)).flatten()
            }
            (Mode::Lazy | Mode::Commit, _) => Some(fused.serve(compile)),
        }?;
        self.0.cache.update_fused_copy_charge(layouts);
        Some((nest, tier))
    }
}

/// Decides which of the two layouts is the user side of the fused nest: the source (`Pack`) or the
/// target (`Unpack`).
///
/// Tables are possible on the user side only, so the layout with more rows, in tables and blocks,
/// becomes the user side. If both have the same number of rows, the layout with more nodes becomes
/// the user side, since a dense layout serves best as the packed side. If the numbers of nodes are
/// equal too, the source becomes the user side. When values are combined, the user side must be the
/// side that is written, which is the target.
fn direction<L: Leaf>(from: &LoopNest<Normal, L>, to: &LoopNest<Normal, L>) -> Direction {
    let weight = |nest: &LoopNest<Normal, L>| {
        let rows: usize = nest.nodes().iter().map(|node| node.rows()).sum();
        (rows, nest.nodes().len())
    };
    if L::IDEMPOTENT && weight(from) >= weight(to) { Direction::Pack } else { Direction::Unpack }
}

/// Converts a pair (source, target) to a pair (user side, packed side), or a pair (user side,
/// packed side) to a pair (source, target). In both cases, the two members are exchanged if
/// `direction` is `Unpack`.
fn sides<T>(direction: Direction, first: T, second: T) -> (T, T) {
    match direction {
        Direction::Pack => (first, second),
        Direction::Unpack => (second, first),
    }
}

impl<L: Leaf> super::explain::Shown for std::result::Result<Refined<L>, refine::Refusal> {
    fn shown(&self) -> String {
        match self {
            Ok(refined) => refined.nest.to_string(),
            Err(refusal) => format!("through a buffer: {}\n", refusal.reason),
        }
    }
}

impl<L: Leaf> super::explain::Shown for Normalized<L, nest::MemorySide> {
    fn shown(&self) -> String {
        self.nest.to_string()
    }
}
