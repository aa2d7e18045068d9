//! The plan IR, which says how the bytes of a nest are moved. Order, units, unrolling and
//! micro-kernels are explicit.
//!
//! A plan is a flat vector of operations, with bodies as in [`crate::nest`]. Moves are
//! straight-line code, loops advance two pointers, and calls hand a whole innermost loop to a
//! precompiled micro-kernel. Phases: [`Scheduled`] (moves of any length) and [`Legal`] (every move
//! is one load and one store that the target has). Source: docs/IR.md, section "Plan".

mod context;
// Only tests evaluate plans, those of the workspace included.
#[cfg(any(test, feature = "internal"))]
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

/// Phase of a plan, as a marker type.
pub trait Phase: sealed::Sealed + Copy + fmt::Debug + 'static {
    /// Name of the phase in the text form.
    const NAME: &'static str;
}

/// The phase that `schedule` produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled;
/// The phase that `legalize` produces, which is ready for emission.
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

/// Maximum number of straight-line moves in one kernel (a prototype on AMD Zen 4 took 257 us and
/// 1.7 KB of code for 64 copies, and 5.5 ms for 2,300).
pub const MAX_MOVES: usize = 64;
/// Maximum total number of bytes of the straight-line moves of one kernel, where the length of each
/// move is rounded up to whole vectors. This is enough for [`MAX_MOVES`] moves of 96 bytes.
pub const MAX_MOVED: u64 = 6 << 10;

/// One operation. Its offsets are relative to the iteration that contains the operation. The family
/// of its micro-kernel determines which blocks a call moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanOp {
    /// Repeats `body` `trip` times, with `unroll` iterations per turn of the emitted loop.
    Loop {
        /// Offset of iteration 0.
        at: Offsets,
        /// Number of iterations.
        trip: Quantity,
        /// Strides in bytes.
        step: Offsets,
        /// Iterations per turn of the emitted loop, at least 1.
        unroll: u32,
        /// Body of one iteration.
        body: Body,
    },
    /// Executes `body` once for each row of a column, at user offset `at.user + row` and at packed
    /// offset `at.packed + i * packed`.
    Table {
        /// Offset added to every iteration.
        at: Offsets,
        /// Index of the column among the tables of the plan.
        table: TableIndex,
        /// Packed stride in bytes.
        packed: i64,
        /// Body of one iteration.
        body: Body,
    },
    /// Copies `len` bytes by straight-line code. In the legal phase `len` is a power of two of at
    /// most 64.
    Move {
        /// Offsets of both sides.
        at: Offsets,
        /// Number of bytes.
        len: u32,
    },
    /// Copies 64 packed bytes whose words lie near each other on the user's side. It is complete
    /// before the next operation begins. Permutations exist only in the legal phase, for emitters
    /// that support them. Packing also reads the bytes between the lowest and the highest word.
    Permute {
        /// Offset of the lowest word, and of the packed bytes.
        at: Offsets,
        /// Places of the words on the user's side.
        words: Words,
    },
    /// Calls a micro-kernel for a whole innermost loop.
    Call {
        /// Offset that the arguments are relative to.
        at: Offsets,
        /// Micro-kernel and arguments.
        call: Call,
    },
    /// Executes `then` if there are at most `limit` instances, and `otherwise` if there are more.
    /// The operations in `then` do not follow type-map order, which is correct only if no two
    /// entries overlap.
    Guard {
        /// Maximum instance count for `then`.
        limit: u64,
        /// The reordered operations.
        then: Body,
        /// Operations in type-map order.
        otherwise: Body,
    },
}

impl PlanOp {
    /// Returns the body of a loop or table.
    pub fn body(&self) -> Option<Body> {
        match self {
            PlanOp::Loop { body, .. } | PlanOp::Table { body, .. } => Some(*body),
            _ => None,
        }
    }

    /// Returns the offset of the operation.
    pub fn offsets(&self) -> Offsets {
        match self {
            PlanOp::Loop { at, .. }
            | PlanOp::Table { at, .. }
            | PlanOp::Move { at, .. }
            | PlanOp::Permute { at, .. }
            | PlanOp::Call { at, .. } => *at,
            PlanOp::Guard { .. } => Offsets::ZERO,
        }
    }
}

/// Side whose address decides when a loop ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moving {
    /// The packed side. In a stream, every loop advances on this side.
    Packed,
    /// The user's side. The address on this side decides only for a loop whose iterations all have
    /// the same packed offset. There are such loops only if the packed side is a second layout.
    User,
}

impl Moving {
    /// Returns the side whose address is compared with an end address after each iteration of a
    /// loop with step `step`. This is the packed side if its step is not 0, and otherwise the
    /// user's side. The result is `None` if both steps are 0.
    pub fn from_step(step: Offsets) -> Option<Moving> {
        if step.packed != 0 { Some(Moving::Packed) } else { (step.user != 0).then_some(Moving::User) }
    }

    /// Returns `user` or `packed`, whichever belongs to this side.
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
    ops: Vec<PlanOp>,
    root: Body,
    tables: Vec<Table>,
    kind: Kind,
    target: Target,
    phase: PhantomData<P>,
}

impl<P: Phase> Plan<P> {
    /// Makes a plan of its parts. The calls and table loops in `ops` name the `tables` by index.
    /// This function checks nothing; [`Plan::verify`] checks a plan.
    pub fn new(
        ops: Vec<PlanOp>,
        root: Body,
        tables: Vec<Table>,
        kind: impl Into<Kind>,
        target: Target,
    ) -> Self {
        Self { ops, root, tables, kind: kind.into(), target, phase: PhantomData }
    }

    /// Returns all operations, bodies before the operations that use them.
    pub fn ops(&self) -> &[PlanOp] {
        &self.ops
    }

    /// Returns the outermost body.
    pub fn root(&self) -> Body {
        self.root
    }

    /// Returns the operations of `body`.
    pub fn body(&self, body: Body) -> &[PlanOp] {
        &self.ops[body.range()]
    }

    /// Returns the tables that the kernel reads through its context.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Returns the column of a table loop, or `None` if the table is not a column.
    pub fn column(&self, table: TableIndex) -> Option<&Column> {
        table.find(&self.tables)?.column()
    }

    /// Returns the kind of transfer that the plan does.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the direction of the transfer: pack or unpack.
    pub fn direction(&self) -> Direction {
        self.kind.direction
    }

    /// Returns the target that the plan was made for.
    pub fn target(&self) -> Target {
        self.target
    }
}

impl<P: Phase> Plan<P> {
    /// Returns a summary in one line: the micro-kernels that are called, and the numbers of moves
    /// and loops.
    pub fn summary(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut moves = 0;
        let mut loops = 0;
        for op in &self.ops {
            match op {
                PlanOp::Move { .. } | PlanOp::Permute { .. } => moves += 1,
                PlanOp::Loop { .. } | PlanOp::Table { .. } => loops += 1,
                PlanOp::Guard { .. } => {}
                PlanOp::Call { call, .. } => {
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
