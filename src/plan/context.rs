//! The context of a kernel: the words from which its code reads constants and the addresses of
//! tables and callees. This module decides for each constant of a plan whether it is in the code or
//! in a context word.
//!
//! A plan without straight-line moves consists of loops around calls. Its code does not depend on
//! the values of trips, steps and offsets. It depends only on which offsets are zero, and on which
//! side the end of each loop is tested. Trips, steps and offsets are therefore words of the
//! context, in the order of the operations, and layouts of one [`super::Shape`] share code. A plan
//! with moves has its constants in the code, as displacements of the accesses. If it moves parts of
//! objects that may lie anywhere ([`Plan::is_parametric`]), the user offset of each move is a
//! context word instead. The addresses of tables and callees are always context words, because code
//! contains no addresses.
//!
//! Invariant: the words of a call are its offsets, then its callee, and then its arguments in the
//! order of the callee's parameters. Precompiled code relies on this.

use super::{Body, Legal, Moving, Plan, PlanOp};
use crate::micro::{Argument, Micro, Role, Table, TableIndex};
use crate::nest::MIN_OBJECT_DISTANCE;

/// Names of the constants that an operation can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// User offset of the operation.
    UserOffset,
    /// Packed offset of the operation.
    PackedOffset,
    /// Micro-kernel that the operation calls.
    Callee,
    /// Argument of a call, by its role.
    Argument(Role),
    /// User step of a loop.
    UserStep,
    /// Packed step of a loop or table loop.
    PackedStep,
    /// Number of bytes by which all iterations of a loop together advance on the side that decides
    /// when the loop ends ([`Moving`]). If the trip is a multiple of the instance count, this is
    /// the number of bytes for one instance.
    Bytes,
    /// Address of the column of a table loop, which is a loop over the rows of a column.
    Rows,
    /// Address after the column of a table loop.
    RowsEnd,
    /// Maximum instance count for which a guard chooses its first body.
    Limit,
}

/// Contents of a context word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A number that is known when the plan is made.
    Constant(i64),
    /// The address of a table.
    Table(TableIndex),
    /// Address after the end of a table.
    TableEnd(TableIndex),
    /// The address of a micro-kernel.
    Callee(Micro),
}

/// A context in which names stand for the addresses that are not known yet. A template is plain
/// data, so a program that writes object files could turn these names into relocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// The words in order.
    pub words: Vec<Word>,
    /// Tables that [`Word::Table`] and [`Word::TableEnd`] name by index.
    pub tables: Vec<Table>,
}

/// Place from which code gets a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The constant is in the code.
    Immediate(i64),
    /// The constant is the context word with this index.
    Word(u32),
}

/// Calls `f` for every constant of `op`, in the order of their context words.
fn fields(op: &PlanOp, mut f: impl FnMut(Field, Word)) {
    if !matches!(op, PlanOp::Guard { .. }) {
        f(Field::UserOffset, Word::Constant(op.offsets().user));
    }
    if !matches!(op, PlanOp::Move { .. } | PlanOp::Permute { .. } | PlanOp::Guard { .. }) {
        f(Field::PackedOffset, Word::Constant(op.offsets().packed));
    }
    match op {
        // The packed offset of a move is not a word; it is in the code. In a stream, this offset
        // follows from lengths that are in the code anyway. Between two layouts, the offset is part
        // of the shape.
        PlanOp::Move { .. } | PlanOp::Permute { .. } => {}
        PlanOp::Guard { limit, .. } => f(Field::Limit, Word::Constant(*limit as i64)),
        PlanOp::Loop { trip, step, .. } => {
            f(Field::UserStep, Word::Constant(step.user));
            f(Field::PackedStep, Word::Constant(step.packed));
            let moved = Moving::from_step(*step).map_or(0, |moving| moving.choose(step.user, step.packed));
            f(Field::Bytes, Word::Constant(moved.wrapping_mul(trip.k as i64)));
        }
        PlanOp::Table { table, packed, .. } => {
            f(Field::PackedStep, Word::Constant(*packed));
            f(Field::Rows, Word::Table(*table));
            f(Field::RowsEnd, Word::TableEnd(*table));
        }
        PlanOp::Call { call, .. } => {
            f(Field::Callee, Word::Callee(call.callee()));
            for &role in call.callee().parameters() {
                match call.argument(role) {
                    Some(Argument::Number(n)) => f(Field::Argument(role), Word::Constant(n.k as i64)),
                    Some(Argument::Step(k)) => f(Field::Argument(role), Word::Constant(k)),
                    Some(Argument::Table(i)) => f(Field::Argument(role), Word::Table(i)),
                    None => {}
                }
            }
        }
    }
}

/// Maximum number of context words of an operation. A call whose callee has eight parameters has
/// this many words.
const MAX_WORDS: usize = 9;

/// Locations of the constants of a plan. Each constant is either in the code or in a context word.
#[derive(Clone, Debug)]
pub struct Operands<'p> {
    plan: &'p Plan<Legal>,
    /// Index of the first context word of every operation. It is `None` if constants are in the
    /// code.
    starts: Option<Vec<u32>>,
    /// Context words of a plan that has its constants in the code: the addresses of its tables and
    /// of its callees. It is empty if all constants are context words.
    words: Vec<Word>,
}

impl Plan<Legal> {
    /// Returns true if the constants of the plan are context words. This is so in two cases. In the
    /// first, the plan has no moves. In the second, the operations of some body lie at far and
    /// irregular distances, so that they seem to belong to several objects; a single far distance
    /// counts as irregular too. Layouts of the same objects at other addresses then share the code.
    pub fn is_parametric(&self) -> bool {
        let moves = self.ops.iter().any(|op| matches!(op, PlanOp::Move { .. } | PlanOp::Permute { .. }));
        let scattered = |op: &PlanOp| match op {
            PlanOp::Guard { then, otherwise, .. } => {
                self.is_scattered(*then) || self.is_scattered(*otherwise)
            }
            PlanOp::Loop { body, .. } | PlanOp::Table { body, .. } => self.is_scattered(*body),
            PlanOp::Call { .. } | PlanOp::Move { .. } | PlanOp::Permute { .. } => false,
        };
        !moves || self.is_scattered(self.root) || self.ops.iter().any(scattered)
    }

    /// Returns true if operations of `body` lie at far distances that are irregular. Several far
    /// distances that are all equal are regular, as between the rows of a matrix. A single far
    /// distance is irregular.
    fn is_scattered(&self, body: Body) -> bool {
        let ops = self.body(body);
        let distances = ops
            .iter()
            .zip(ops.iter().skip(1))
            .map(|(op, next)| next.offsets().user.wrapping_sub(op.offsets().user));
        let mut far =
            distances.filter(|distance| distance.unsigned_abs() >= MIN_OBJECT_DISTANCE.unsigned_abs());
        far.next().is_some_and(|first| {
            far.next().is_none_or(|next| next != first || far.any(|other| other != first))
        })
    }

    /// Returns the template of the context that the code reads.
    pub fn template(&self) -> Template {
        let mut words = Vec::new();
        if self.is_parametric() {
            words.reserve(self.ops.len() * MAX_WORDS);
            self.ops.iter().for_each(|op| fields(op, |_, word| words.push(word)));
        } else {
            words = self.addresses();
        }
        Template { words, tables: self.tables.clone() }
    }

    /// Returns the context words of a plan that has its constants in the code. These words are the
    /// addresses of tables and callees.
    fn addresses(&self) -> Vec<Word> {
        let mut words: Vec<Word> =
            (0..self.tables.len()).map(|place| Word::Table(TableIndex::new(place))).collect();
        for op in &self.ops {
            if let PlanOp::Call { call, .. } = op
                && !words.contains(&Word::Callee(call.callee()))
            {
                words.push(Word::Callee(call.callee()));
            }
        }
        words
    }

    /// Returns where code finds each constant of the plan.
    pub fn operands(&self) -> Operands<'_> {
        if !self.is_parametric() {
            return Operands { plan: self, starts: None, words: self.addresses() };
        }
        let starts = self.ops.iter().scan(0, |next, op| {
            let start = *next;
            fields(op, |_, _| *next += 1);
            Some(start)
        });
        Operands { plan: self, starts: Some(starts.collect()), words: Vec::new() }
    }
}

impl Operands<'_> {
    /// Returns true if constants are context words.
    pub fn parametric(&self) -> bool {
        self.starts.is_some()
    }

    /// Returns the place of the constant `field` of operation `i`, or `None` if the operation has
    /// no such constant. The result is also `None` for the end of the column of a table loop
    /// ([`Field::RowsEnd`]) if constants are in the code.
    pub fn get(&self, i: usize, field: Field) -> Option<Operand> {
        let (mut next, mut found) = (0, None);
        fields(self.plan.ops.get(i)?, |own, word| {
            if own == field {
                found = Some((next, word));
            }
            next += 1;
        });
        let (at, word) = found?;
        Some(match (&self.starts, word) {
            // An offset of zero needs no code, so it is not read from the context.
            (_, Word::Constant(0)) if matches!(field, Field::UserOffset | Field::PackedOffset) => {
                Operand::Immediate(0)
            }
            (Some(starts), _) => Operand::Word(starts[i] + at),
            (None, Word::Constant(k)) => Operand::Immediate(k),
            (None, word) => Operand::Word(self.words.iter().position(|w| *w == word)? as u32),
        })
    }
}
