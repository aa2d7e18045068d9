//! Parameters: the constants of a plan that go to the context, so that layouts of one shape share code.
//!
//! A plan without straight-line moves is loops around calls; nothing in its code depends on the values of its trips, strides
//! and offsets. Those become context words in a fixed order, and what is left is the plan's [`Shape`]. A plan with moves keeps
//! its constants in the code, where they are displacements of the accesses; only its tables are words.

use super::{At, Legal, Op, Plan};
use crate::kind::Direction;
use crate::micro::Micro;
use crate::target::Target;

/// Words of one operation of a parametric plan. Offsets come first, so that every kind finds them at the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs, reason = "each word is the field of the operation that it is named after")]
pub enum Word {
    AtUser = 0,
    AtPacked = 1,
    /// Loop, strided call, pattern, transpose (outer): user stride. Table, rows, blocks: number of rows.
    StepUser = 2,
    /// Loop, strided call, transpose (outer), table, rows: packed stride.
    StepPacked = 3,
    /// Loop: packed bytes of all iterations (of one instance, where the trip carries the count). Strided, rows: block length. Transpose: inner packed stride.
    Len = 4,
    /// Strided, pattern: number of blocks. Transpose: outer trip. Guard: limit. Table, rows, blocks: address of the (first) column.
    Trip = 5,
    /// Blocks: address of the second column. Table: address behind the column. Pattern: address of the table. Transpose: inner trip.
    Second = 6,
    /// Blocks: address of the third column. Transpose: inner user stride.
    Third = 7,
}

/// Words that every operation of a parametric plan has.
pub const WORDS: u32 = 8;

/// What the code of a parametric plan depends on: two plans of one shape have one code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    direction: Direction,
    target: Target,
    root: (u32, u32),
    ops: Box<[ShapeOp]>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ShapeOp {
    /// Whether the offset is zero on each side: zero offsets cost no code.
    moved: (bool, bool),
    kind: ShapeKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ShapeKind {
    Loop { counted: bool, body: (u32, u32) },
    Table { width: usize, body: (u32, u32) },
    Strided { n_counted: bool, len_counted: bool, micro: Micro },
    Rows { micro: Micro },
    Blocks { micro: Micro },
    Pattern { counted: bool, micro: Micro },
    Transpose { counted: [bool; 2], micro: Micro },
    Guard { then: (u32, u32), otherwise: (u32, u32) },
}

impl Plan<Legal> {
    /// Whether the constants of the plan go to its context.
    pub fn is_parametric(&self) -> bool {
        !self.ops.iter().any(|op| matches!(op, Op::Move { .. }))
    }

    /// The shape of a parametric plan.
    pub fn shape(&self) -> Option<Shape> {
        let body = |b: super::Body| (b.start, b.len);
        let ops = self.ops.iter().map(|op| {
            let kind = match op {
                Op::Move { .. } => return None,
                Op::Loop { trip, body: b, .. } => ShapeKind::Loop { counted: trip.per_count, body: body(*b) },
                Op::Table { slot, body: b, .. } => {
                    ShapeKind::Table { width: self.columns[*slot as usize].width(), body: body(*b) }
                }
                Op::Strided { n, len, micro, .. } => {
                    ShapeKind::Strided { n_counted: n.per_count, len_counted: len.per_count, micro: *micro }
                }
                Op::Rows { micro, .. } => ShapeKind::Rows { micro: *micro },
                Op::Pattern { n, micro, .. } => ShapeKind::Pattern { counted: n.per_count, micro: *micro },
                Op::Transpose { trips, micro, .. } => {
                    ShapeKind::Transpose { counted: trips.map(|t| t.per_count), micro: *micro }
                }
                Op::Guard { then, otherwise, .. } => {
                    ShapeKind::Guard { then: body(*then), otherwise: body(*otherwise) }
                }
                Op::Blocks { micro, .. } => ShapeKind::Blocks { micro: *micro },
            };
            let At { user, packed } = op.at();
            Some(ShapeOp { moved: (user != 0, packed != 0), kind })
        });
        let ops = ops.collect::<Option<Box<[ShapeOp]>>>()?;
        Some(Shape { direction: self.direction, target: self.target, root: body(self.root), ops })
    }

    /// The context words: [`WORDS`] per operation of a parametric plan, else one table address per slot.
    pub fn words(&self) -> Vec<u64> {
        let address = |slot: u32| self.columns[slot as usize].as_ptr() as u64;
        if !self.is_parametric() {
            return (0..self.columns.len() as u32).map(address).collect();
        }
        let rows = |slot: u32| self.columns[slot as usize].len() as u64;
        let mut words = Vec::with_capacity(self.ops.len() * WORDS as usize);
        for op in &self.ops {
            let mut w = [0_u64; WORDS as usize];
            let mut put = |word: Word, value: u64| w[word as usize] = value;
            put(Word::AtUser, op.at().user as u64);
            put(Word::AtPacked, op.at().packed as u64);
            match op {
                Op::Move { .. } => {}
                Op::Loop { trip, step, .. } => {
                    put(Word::StepUser, step.user as u64);
                    put(Word::StepPacked, step.packed as u64);
                    put(Word::Len, (step.packed as u64).wrapping_mul(trip.k));
                }
                Op::Strided { n, step, len, .. } => {
                    put(Word::StepUser, step.user as u64);
                    put(Word::StepPacked, step.packed as u64);
                    put(Word::Len, len.k);
                    put(Word::Trip, n.k);
                }
                Op::Table { slot, packed, .. } => {
                    put(Word::StepPacked, *packed as u64);
                    put(Word::Trip, address(*slot));
                    put(Word::Second, address(*slot) + self.columns[*slot as usize].bytes() as u64);
                }
                Op::Rows { slot, packed, len, .. } => {
                    put(Word::StepUser, rows(*slot));
                    put(Word::StepPacked, *packed as u64);
                    put(Word::Len, *len);
                    put(Word::Trip, address(*slot));
                }
                Op::Transpose { trips: [outer, inner], steps: [o, i], .. } => {
                    put(Word::StepUser, o.user as u64);
                    put(Word::StepPacked, o.packed as u64);
                    put(Word::Trip, outer.k);
                    put(Word::Second, inner.k);
                    put(Word::Third, i.user as u64);
                    put(Word::Len, i.packed as u64);
                }
                Op::Guard { limit, .. } => put(Word::Trip, *limit),
                Op::Pattern { n, step, slot, .. } => {
                    put(Word::StepUser, step.user as u64);
                    put(Word::Trip, n.k);
                    put(Word::Second, address(*slot));
                }
                Op::Blocks { slots: [u, p, l], .. } => {
                    put(Word::StepUser, rows(*u));
                    put(Word::Trip, address(*u));
                    put(Word::Second, address(*p));
                    put(Word::Third, address(*l));
                }
            }
            words.extend(w);
        }
        words
    }
}
