//! The context of a plan's kernel: where each constant, table and callee of an operation stands.
//!
//! A plan without straight-line moves is loops around calls; nothing in its code depends on the values of its trips, steps and offsets. Those are words
//! of the context, one after the other, operation by operation; so layouts of one [`super::Shape`] share code. A plan with moves keeps
//! its constants in the code, where they are displacements of the accesses. Tables and callees are words in either case: code has no address.
//!
//! Invariant: the words of a call are its offsets, its callee, and its arguments in the order of the callee's parameters. Precompiled code
//! relies on it.

use smallvec::{SmallVec, smallvec};

use super::{Legal, Op, Plan};
use crate::micro::{Argument, Micro, Role, Table};

/// A constant of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The user offset of the operation.
    UserOffset,
    /// Its packed offset.
    PackedOffset,
    /// What it calls.
    Callee,
    /// An argument of a call.
    Argument(Role),
    /// User step of a loop.
    UserStep,
    /// Packed step of a loop or table loop.
    PackedStep,
    /// Packed bytes of all iterations of a loop; of one instance, where the trip carries the count.
    Bytes,
    /// Address of the column of a table loop.
    Rows,
    /// Address behind it.
    RowsEnd,
    /// Most instances for the first side of a guard.
    Limit,
}

/// What a context word will hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A number.
    Constant(i64),
    /// The address of a table.
    Table(u32),
    /// The address behind a table.
    TableEnd(u32),
    /// The address of a micro-kernel.
    Callee(Micro),
}

/// A context before its addresses are known: plain data, which an object writer could turn into relocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// The words in order.
    pub words: Vec<Word>,
    /// What [`Word::Table`] names.
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

type Fields = SmallVec<[(Field, Word); 8]>;

/// The constants of `op` in the order of their words.
fn fields(op: &Op) -> Fields {
    let at = op.at();
    let offsets =
        [(Field::UserOffset, Word::Constant(at.user)), (Field::PackedOffset, Word::Constant(at.packed))];
    match op {
        Op::Move { .. } => SmallVec::new(),
        Op::Guard { limit, .. } => smallvec![(Field::Limit, Word::Constant(*limit as i64))],
        Op::Loop { trip, step, .. } => {
            let mut fields = Fields::from_slice(&offsets);
            fields.push((Field::UserStep, Word::Constant(step.user)));
            fields.push((Field::PackedStep, Word::Constant(step.packed)));
            fields.push((Field::Bytes, Word::Constant(step.packed.wrapping_mul(trip.k as i64))));
            fields
        }
        Op::Table { table, packed, .. } => {
            let mut fields = Fields::from_slice(&offsets);
            fields.push((Field::PackedStep, Word::Constant(*packed)));
            fields.push((Field::Rows, Word::Table(*table)));
            fields.push((Field::RowsEnd, Word::TableEnd(*table)));
            fields
        }
        Op::Call { call, .. } => {
            let mut fields = Fields::from_slice(&offsets);
            fields.push((Field::Callee, Word::Callee(call.callee())));
            fields.extend(call.callee().parameters().iter().filter_map(|&role| {
                let word = match call.argument(role)? {
                    Argument::Number(n) => Word::Constant(n.k as i64),
                    Argument::Step(k) => Word::Constant(k),
                    Argument::Table(i) => Word::Table(i),
                };
                Some((Field::Argument(role), word))
            }));
            fields
        }
    }
}

/// Where the constants of a plan stand.
#[derive(Clone, Debug)]
pub struct Operands<'p> {
    plan: &'p Plan<Legal>,
    /// The first word of every operation, where constants are words.
    starts: Option<Vec<u32>>,
    words: Vec<Word>,
}

impl Plan<Legal> {
    /// Whether the constants of the plan are context words.
    pub fn is_parametric(&self) -> bool {
        !self.ops.iter().any(|op| matches!(op, Op::Move { .. }))
    }

    /// Where its constants stand.
    pub fn operands(&self) -> Operands<'_> {
        let mut words: Vec<Word> = Vec::new();
        let starts = self.is_parametric().then(|| {
            let mut starts = Vec::with_capacity(self.ops.len());
            for op in &self.ops {
                starts.push(words.len() as u32);
                words.extend(fields(op).into_iter().map(|(_, word)| word));
            }
            starts
        });
        if starts.is_none() {
            words.extend((0..self.tables.len() as u32).map(Word::Table));
            for op in &self.ops {
                if let Op::Call { call, .. } = op
                    && !words.contains(&Word::Callee(call.callee()))
                {
                    words.push(Word::Callee(call.callee()));
                }
            }
        }
        Operands { plan: self, starts, words }
    }
}

impl Operands<'_> {
    /// Whether constants are words.
    pub fn parametric(&self) -> bool {
        self.starts.is_some()
    }

    /// Where constant `field` of operation `i` stands; none if it has no such constant.
    pub fn get(&self, i: usize, field: Field) -> Option<Operand> {
        let fields = fields(self.plan.ops.get(i)?);
        let at = fields.iter().position(|f| f.0 == field)?;
        let word = fields[at].1;
        Some(match (&self.starts, word) {
            // An offset of zero costs no code.
            (_, Word::Constant(0)) if matches!(field, Field::UserOffset | Field::PackedOffset) => {
                Operand::Immediate(0)
            }
            (Some(starts), _) => Operand::Word(starts[i] + at as u32),
            (None, Word::Constant(k)) => Operand::Immediate(k),
            (None, word) => Operand::Word(self.words.iter().position(|w| *w == word)? as u32),
        })
    }

    /// The context.
    pub fn template(self) -> Template {
        Template { words: self.words, tables: self.plan.tables.clone() }
    }
}
