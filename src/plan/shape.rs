//! Shapes of plans. A plan is parametric if its constants are not in its code but in its context.
//! The shape of a parametric plan has all properties on which its code depends, so plans of equal
//! shape share code.

use super::{Body, Legal, Moving, Offsets, Plan, PlanOp, Words};
use crate::kind::Direction;
use crate::micro::Role;
use crate::target::Target;

/// Maximum number of operations for which a plan with moves has a shape. Larger plans with moves do
/// not share code, so that the stored shapes stay small.
const MAX_SHARED_OPS: usize = 64;

/// Properties on which the code of a parametric plan depends. Callees are context words, so the
/// shape of a call describes only the form of its arguments, and not its direction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    target: Target,
    root: Body,
    ops: Box<[ShapeOp]>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ShapeOp {
    /// Whether the user offset and the packed offset differ from zero. Zero offsets need no code.
    moved: (bool, bool),
    kind: ShapeKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ShapeKind {
    Move {
        direction: Direction,
        len: u32,
        packed: i64,
    },
    Permute {
        direction: Direction,
        words: Words,
        packed: i64,
    },
    Loop {
        counted: bool,
        moving: Option<Moving>,
        body: Body,
    },
    Table {
        width: usize,
        body: Body,
    },
    Call {
        /// Whether the packed address is the first parameter.
        packed_first: bool,
        /// Bit mask of the parameters that are multiples of the instance count.
        counted: u16,
        parameters: usize,
    },
    Guard {
        then: Body,
        otherwise: Body,
    },
}

impl Plan<Legal> {
    /// Returns the shape of a parametric plan. The result is `None` for other plans, and for plans
    /// with moves and more than `MAX_SHARED_OPS` operations.
    pub fn shape(&self) -> Option<Shape> {
        if !self.is_parametric() {
            return None;
        }
        let ops = self.ops.iter().map(|op| {
            let kind = match op {
                PlanOp::Move { .. } | PlanOp::Permute { .. } if self.ops.len() > MAX_SHARED_OPS => {
                    return None;
                }
                PlanOp::Move { at, len } => {
                    ShapeKind::Move { direction: self.direction(), len: *len, packed: at.packed }
                }
                PlanOp::Permute { at, words } => {
                    ShapeKind::Permute { direction: self.direction(), words: *words, packed: at.packed }
                }
                PlanOp::Loop { trip, step, body, .. } => {
                    ShapeKind::Loop { counted: trip.per_count, moving: Moving::from_step(*step), body: *body }
                }
                PlanOp::Table { table, body, .. } => {
                    ShapeKind::Table { width: self.column(*table)?.width(), body: *body }
                }
                PlanOp::Call { call, .. } => {
                    let parameters = call.callee().parameters();
                    let bits = parameters.iter().enumerate().filter(|(_, role)| call.carries_count(**role));
                    ShapeKind::Call {
                        packed_first: parameters.first() == Some(&Role::Packed),
                        counted: bits.fold(0, |mask, (bit, _)| mask | 1 << bit),
                        parameters: parameters.len(),
                    }
                }
                PlanOp::Guard { then, otherwise, .. } => {
                    ShapeKind::Guard { then: *then, otherwise: *otherwise }
                }
            };
            let Offsets { user, packed } = op.offsets();
            Some(ShapeOp { moved: (user != 0, packed != 0), kind })
        });
        let ops = ops.collect::<Option<Box<[ShapeOp]>>>()?;
        Some(Shape { target: self.target, root: self.root, ops })
    }
}
