//! The context of a plan's kernel: where each constant, table and callee of an operation stands.
//!
//! A plan without straight-line moves is loops around calls; nothing in its code depends on the values of its trips, steps and offsets. Those are words
//! of the context, one after the other, operation by operation; so layouts of one [`super::Shape`] share code. A plan with moves keeps
//! its constants in the code, where they are displacements of the accesses, unless it moves parts of objects that lie anywhere
//! ([`Plan::is_parametric`]): then the user offset of a move is a word too. Tables and callees are words in either case: code has no address.
//!
//! Invariant: the words of a call are its offsets, its callee, and its arguments in the order of the callee's parameters. Precompiled code
//! relies on it.

use super::{Body, Legal, Moving, Op, Plan};
use crate::micro::{Argument, Micro, Role, Table, TableIndex};
use crate::nest::MIN_OBJECT_DISTANCE;

/// A constant of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The user offset of the operation.
    UserOffset,
    /// Its packed offset.
    PackedOffset,
    /// Micro-kernel that it calls.
    Callee,
    /// An argument of a call.
    Argument(Role),
    /// User step of a loop.
    UserStep,
    /// Packed step of a loop or table loop.
    PackedStep,
    /// Bytes of all iterations of a loop on the side that moves ([`Moving`]); of one instance, where the trip carries the count.
    Bytes,
    /// Address of the column of a table loop.
    Rows,
    /// Address behind it.
    RowsEnd,
    /// Most instances for the first side of a guard.
    Limit,
}

/// Content of a context word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A number.
    Constant(i64),
    /// The address of a table.
    Table(TableIndex),
    /// The address behind a table.
    TableEnd(TableIndex),
    /// The address of a micro-kernel.
    Callee(Micro),
}

/// A context before its addresses are known: plain data, which an object writer could turn into relocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// The words in order.
    pub words: Vec<Word>,
    /// Tables that [`Word::Table`] names.
    pub tables: Vec<Table>,
}

/// Where code finds a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// In itself.
    Immediate(i64),
    /// In a context word.
    Word(u32),
}

/// Calls `f` for the constants of `op` in the order of their words.
fn fields(op: &Op, mut f: impl FnMut(Field, Word)) {
    if !matches!(op, Op::Guard { .. }) {
        f(Field::UserOffset, Word::Constant(op.at().user));
    }
    if !matches!(op, Op::Move { .. } | Op::Permute { .. } | Op::Guard { .. }) {
        f(Field::PackedOffset, Word::Constant(op.at().packed));
    }
    match op {
        // Where it goes in the stream is a matter of lengths, which the code depends on anyway.
        Op::Move { .. } | Op::Permute { .. } => {}
        Op::Guard { limit, .. } => f(Field::Limit, Word::Constant(*limit as i64)),
        Op::Loop { trip, step, .. } => {
            f(Field::UserStep, Word::Constant(step.user));
            f(Field::PackedStep, Word::Constant(step.packed));
            let moved = Moving::from_step(*step).map_or(0, |moving| moving.choose(step.user, step.packed));
            f(Field::Bytes, Word::Constant(moved.wrapping_mul(trip.k as i64)));
        }
        Op::Table { table, packed, .. } => {
            f(Field::PackedStep, Word::Constant(*packed));
            f(Field::Rows, Word::Table(*table));
            f(Field::RowsEnd, Word::TableEnd(*table));
        }
        Op::Call { call, .. } => {
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

/// Most words of an operation: those of a call of eight parameters.
const MAX_WORDS: usize = 9;

/// Where the constants of a plan stand.
#[derive(Clone, Debug)]
pub struct Operands<'p> {
    plan: &'p Plan<Legal>,
    /// The first word of every operation, where constants are words.
    starts: Option<Vec<u32>>,
    /// The words, where they are tables and callees only.
    words: Vec<Word>,
}

impl Plan<Legal> {
    /// Says whether the constants of the plan are context words: if it has no moves, or some body has parts so far from each other, and in no regular
    /// distance, that they are of several objects. Other layouts of the same objects then share its code.
    pub fn is_parametric(&self) -> bool {
        let moves = self.ops.iter().any(|op| matches!(op, Op::Move { .. } | Op::Permute { .. }));
        let scattered = |op: &Op| match op {
            Op::Guard { then, otherwise, .. } => self.is_scattered(*then) || self.is_scattered(*otherwise),
            Op::Loop { body, .. } | Op::Table { body, .. } => self.is_scattered(*body),
            Op::Call { .. } | Op::Move { .. } | Op::Permute { .. } => false,
        };
        !moves || self.is_scattered(self.root) || self.ops.iter().any(scattered)
    }

    /// Whether the operations of `body` lie at far distances that are not all the same, as rows of a matrix would.
    fn is_scattered(&self, body: Body) -> bool {
        let ops = self.body(body);
        let distances =
            ops.iter().zip(ops.iter().skip(1)).map(|(op, next)| next.at().user.wrapping_sub(op.at().user));
        let mut far =
            distances.filter(|distance| distance.unsigned_abs() >= MIN_OBJECT_DISTANCE.unsigned_abs());
        far.next().is_some_and(|first| {
            far.next().is_none_or(|next| next != first || far.any(|other| other != first))
        })
    }

    /// Returns the context that its code reads.
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

    /// The words of a plan whose constants stand in the code: tables and callees.
    fn addresses(&self) -> Vec<Word> {
        let mut words: Vec<Word> =
            (0..self.tables.len()).map(|place| Word::Table(TableIndex::new(place))).collect();
        for op in &self.ops {
            if let Op::Call { call, .. } = op
                && !words.contains(&Word::Callee(call.callee()))
            {
                words.push(Word::Callee(call.callee()));
            }
        }
        words
    }

    /// Returns where its constants stand.
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
    /// Says whether constants are words.
    pub fn parametric(&self) -> bool {
        self.starts.is_some()
    }

    /// Returns where constant `field` of operation `i` stands; none if it has no such constant.
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
            // An offset of zero costs no code.
            (_, Word::Constant(0)) if matches!(field, Field::UserOffset | Field::PackedOffset) => {
                Operand::Immediate(0)
            }
            (Some(starts), _) => Operand::Word(starts[i] + at),
            (None, Word::Constant(k)) => Operand::Immediate(k),
            (None, word) => Operand::Word(self.words.iter().position(|w| *w == word)? as u32),
        })
    }
}
