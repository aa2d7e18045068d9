//! Copies from layout to layout: the joint nest of a pair, made by the first who asks, compiled by the first call that gains by it.

use std::sync::Arc;

use super::{Engine, Mode};
use crate::cache::Cached;
use crate::error::Result;
use crate::kind::{Direction, Kind};
use crate::layout::{CompiledLayout, Joint, JointNest, Tier};
use crate::nest::{self, Leaf, LoopNest, Normal};
use crate::normalize::{self, Normalized};
use crate::refine::{self, Refined};
use crate::schedule::Planned;

use super::explain::Trace;

/// Leaves of nests that are joined and have plans then.
pub(crate) trait Joined: Cached + Planned<nest::MemorySide> {}

impl<L: Cached + Planned<nest::MemorySide>> Joined for L {}

impl Engine {
    /// Returns the copy from the first of `layouts` to the second.
    ///
    /// # Errors
    /// Class `NoMem`.
    pub(crate) fn joint<L: Cached>(&self, layouts: [&Arc<CompiledLayout<L>>; 2]) -> Result<Arc<Joint<L>>> {
        if let Some(joint) = self.0.cache.joint(layouts) {
            return Ok(joint);
        }
        let nest = self.join(layouts.map(|layout| layout.nest()), &mut Trace::silent())?;
        Ok(self.0.cache.keep_joint(layouts, Joint::new(nest)))
    }

    /// Returns the joint nest of two normal ones, or why there is none.
    pub(super) fn join<L: Leaf>(
        &self,
        [from, to]: [&LoopNest<Normal, L>; 2],
        trace: &mut Trace,
    ) -> Result<std::result::Result<JointNest<L>, &'static str>> {
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
        Ok(Ok(JointNest { nest, direction, origins: [of_from, of_to], period, still }))
    }

    /// Returns how `joint`, that of `layouts`, serves a call of `bytes` bytes: none where the bytes go through a buffer.
    pub(crate) fn serve_joint<'j, L: Joined>(
        &self,
        layouts: [&Arc<CompiledLayout<L>>; 2],
        joint: &'j Joint<L>,
        bytes: u64,
    ) -> Option<(&'j JointNest<L>, &'j Tier)> {
        let nest = joint.nest().ok()?;
        let served = match self.config().mode {
            Mode::Off | Mode::Interpret => None,
            Mode::Lazy if !joint.reaches_threshold(bytes, self.config().lazy_threshold) => joint.served(),
            Mode::Lazy | Mode::Commit => {
                if joint.served().is_none() {
                    let kind = Kind { direction: nest.direction, operation: layouts[0].operation() };
                    joint.serve(|| self.compile(&nest.nest, kind));
                    self.0.cache.update_joint_charge(layouts);
                }
                joint.served()
            }
        };
        served.map(|tier| (nest, tier))
    }
}

/// Which side is whose: tables stand on the user side, so the layout with more rows is that; of two without, the one of more nodes, for what
/// is dense serves best as the packed one. Where values are combined the user side is the one that is written.
fn direction<L: Leaf>(from: &LoopNest<Normal, L>, to: &LoopNest<Normal, L>) -> Direction {
    let weight = |nest: &LoopNest<Normal, L>| {
        let rows: usize = nest.nodes().iter().map(|node| node.rows()).sum();
        (rows, nest.nodes().len())
    };
    if L::IDEMPOTENT && weight(from) >= weight(to) { Direction::Pack } else { Direction::Unpack }
}

/// Two things of source and target as those of user and packed side, or back.
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
