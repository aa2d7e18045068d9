//! The plan IR: how the bytes of a nest are moved. Order, units, unrolling and micro-kernels are explicit.
//!
//! A plan is a flat vector of operations with bodies as in [`crate::nest`]. Moves are straight-line; loops advance two
//! pointers; calls hand a whole innermost loop to a precompiled micro-kernel. Phases: [`Scheduled`] (moves of any length) and
//! [`Legal`] (every move is one load and one store that the target has). Source: docs/IR.md, section "Plan".

mod context;
mod eval;
mod shape;
mod text;
mod verify;
mod words;

use std::fmt;
use std::marker::PhantomData;

use crate::column::Column;
use crate::kind::{Direction, Kind};
use crate::micro::{Call, Table, TableIndex};
pub use crate::nest::{Body, Offsets, Quantity};
use crate::target::Target;
pub use context::{Field, Operand, Operands, Template, Word};
pub use shape::Shape;
pub use words::Words;

mod sealed {
    pub trait Sealed {}
}

/// Phase of a plan.
pub trait Phase: sealed::Sealed + Copy + fmt::Debug + 'static {
    /// The name used in the text form.
    const NAME: &'static str;
}

/// The phase that `schedule` produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled;
/// The phase that `legalize` produces: ready for emission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Legal;

impl sealed::Sealed for Scheduled {}
impl sealed::Sealed for Legal {}
impl Phase for Scheduled {
    const NAME: &'static str = "scheduled";
}
impl Phase for Legal {
    const NAME: &'static str = "legal";
}

/// Most straight-line moves in one kernel (prototype on AMD Zen 4: 64 copies cost 257 us and 1.7 KB of code, 2,300 cost 5.5 ms).
pub const MAX_MOVES: usize = 64;
/// Most bytes that the straight-line moves of one kernel move, in whole vectors: [`MAX_MOVES`] of 96.
pub const MAX_MOVED: u64 = 6 << 10;

/// One operation. Offsets are relative to the iteration that contains it; a call's block `i` is at `at + i * strides`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// `trip` iterations of `body`, `unroll` of them per trip through the loop.
    Loop {
        /// Offset of iteration 0.
        at: Offsets,
        /// Number of iterations.
        trip: Quantity,
        /// Strides in bytes.
        step: Offsets,
        /// Iterations per trip through the emitted loop, at least 1.
        unroll: u32,
        /// Body of one iteration.
        body: Body,
    },
    /// `body` once per row of a column: user offset `at.user + row`, packed offset `at.packed + i * packed`.
    Table {
        /// Offset added to every iteration.
        at: Offsets,
        /// The table that is the column.
        table: TableIndex,
        /// Packed stride in bytes.
        packed: i64,
        /// Body of one iteration.
        body: Body,
    },
    /// Copies `len` bytes (straight-line). In the legal phase `len` is a power of two of at most 64. A pack may read past the mapped
    /// bytes of one block into a gap; a later move of the same iteration then writes the right bytes over it.
    Move {
        /// Offsets of both sides.
        at: Offsets,
        /// Bytes.
        len: u32,
    },
    /// Copies 64 packed bytes whose words lie near each other on the user's side, all of them before what follows. In the legal phase only, for
    /// emitters that permute. A pack reads the bytes between the lowest word and the highest too.
    Permute {
        /// Offset of the lowest word, and of the packed bytes.
        at: Offsets,
        /// Places of the words.
        words: Words,
    },
    /// Hands a whole innermost loop to a micro-kernel.
    Call {
        /// Offset that the arguments are relative to.
        at: Offsets,
        /// Callee and arguments.
        call: Call,
    },
    /// `then` for at most `limit` instances, `otherwise` for more: for orders that need disjoint entries.
    Guard {
        /// Largest instance count for `then`.
        limit: u64,
        /// The reordered operations.
        then: Body,
        /// Operations in type-map order.
        otherwise: Body,
    },
}

impl Op {
    /// Returns the body of a loop or table.
    pub fn body(&self) -> Option<Body> {
        match self {
            Op::Loop { body, .. } | Op::Table { body, .. } => Some(*body),
            _ => None,
        }
    }

    /// Returns the offset of the operation.
    pub fn at(&self) -> Offsets {
        match self {
            Op::Loop { at, .. }
            | Op::Table { at, .. }
            | Op::Move { at, .. }
            | Op::Permute { at, .. }
            | Op::Call { at, .. } => *at,
            Op::Guard { .. } => Offsets::ZERO,
        }
    }
}

/// The side whose address tells when a loop is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moving {
    /// The packed one, which always moves along a stream.
    Packed,
    /// The user's, where a second layout has several iterations in one place.
    User,
}

impl Moving {
    /// That of a loop of steps `step`; none where neither moves.
    pub fn from_step(step: Offsets) -> Option<Moving> {
        if step.packed != 0 { Some(Moving::Packed) } else { (step.user != 0).then_some(Moving::User) }
    }

    /// Returns the step, or address, of that side.
    pub fn choose<T>(self, user: T, packed: T) -> T {
        match self {
            Moving::Packed => packed,
            Moving::User => user,
        }
    }
}

/// A plan in phase `P` for one kind and target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan<P> {
    ops: Vec<Op>,
    root: Body,
    tables: Vec<Table>,
    kind: Kind,
    target: Target,
    phase: PhantomData<P>,
}

impl<P: Phase> Plan<P> {
    /// Returns a plan from its parts; calls and table loops name `tables` by index. Check it with [`Plan::verify`].
    pub fn new(ops: Vec<Op>, root: Body, tables: Vec<Table>, kind: impl Into<Kind>, target: Target) -> Self {
        Self { ops, root, tables, kind: kind.into(), target, phase: PhantomData }
    }

    /// Returns all operations, bodies before the operations that use them.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Returns the outermost body.
    pub fn root(&self) -> Body {
        self.root
    }

    /// Returns the operations of `body`.
    pub fn body(&self, body: Body) -> &[Op] {
        &self.ops[body.range()]
    }

    /// Returns the tables that the kernel reads through its context.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Returns the column of a table loop.
    pub fn column(&self, table: TableIndex) -> Option<&Column> {
        table.of(&self.tables)?.column()
    }

    /// Returns the kind of transfer that it does.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Pack or unpack.
    pub fn direction(&self) -> Direction {
        self.kind.direction
    }

    /// Returns the target that it was made for.
    pub fn target(&self) -> Target {
        self.target
    }
}

impl<P: Phase> Plan<P> {
    /// One line for tables: the calls and the shape of the loops around them.
    pub fn summary(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut moves = 0;
        let mut loops = 0;
        for op in &self.ops {
            match op {
                Op::Move { .. } | Op::Permute { .. } => moves += 1,
                Op::Loop { .. } | Op::Table { .. } => loops += 1,
                Op::Guard { .. } => {}
                Op::Call { call, .. } => {
                    let name = call.callee().to_string();
                    if !parts.contains(&name) {
                        parts.push(name);
                    }
                }
            }
        }
        if moves > 0 {
            parts.push(format!("{moves} moves"));
        }
        if loops > 0 {
            parts.push(format!("{loops} loops"));
        }
        if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
    }
}
