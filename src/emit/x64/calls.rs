//! Calls of micro-kernels, and the values that a plan keeps in its code or in its context.

use super::inst::{Inst, Math, Mem, Operand, Reg};
use super::{Function, Place, Pointers};
use crate::error::{Error, Result};
use crate::kind::Direction;
use crate::micro::Micro;
use crate::plan::{At, Op, Trip, WORDS, Word};

/// An argument of a micro-kernel.
#[derive(Clone, Copy)]
enum Arg {
    User,
    Packed,
    Value(Word, i64),
    Trip(Word, Trip),
    Table(Word, u32),
}

/// Registers of the first six arguments (System V); the others lie at the bottom of the frame.
const ARGUMENTS: [Reg; 6] = [Reg::RDI, Reg::RSI, Reg::RDX, Reg::RCX, Reg::R8, Reg::R9];
impl Function<'_> {
    /// What the micro-kernel of a call is given.
    fn arguments(&self, op: &Op) -> Result<(Micro, Vec<Arg>)> {
        use Arg::{Packed, Table, User, Value};
        let pack = self.plan.direction() == Direction::Pack;
        Ok(match op {
            Op::Strided { n, step, len, micro, .. } => {
                let (user, packed) = (Value(Word::StepUser, step.user), Value(Word::StepPacked, step.packed));
                let (n, len) = (Arg::Trip(Word::Trip, *n), Arg::Trip(Word::Len, *len));
                let args = if pack {
                    [Packed, User, n, packed, user, len]
                } else {
                    [User, Packed, n, user, packed, len]
                };
                (*micro, args.to_vec())
            }
            Op::Rows { slot, packed, len, micro, .. } => {
                let (n, len) = (Value(Word::StepUser, self.rows(*slot)?), Value(Word::Len, *len as i64));
                let packed = Value(Word::StepPacked, *packed);
                (*micro, vec![User, Packed, n, Table(Word::Trip, *slot), packed, len])
            }
            Op::Blocks { slots: [u, p, l], micro, .. } => {
                let n = Value(Word::StepUser, self.rows(*u)?);
                let tables = [Table(Word::Trip, *u), Table(Word::Second, *p), Table(Word::Third, *l)];
                (*micro, [[User, Packed, n], tables].concat())
            }
            Op::Pattern { n, step, slot, micro, .. } => {
                let (n, user) = (Arg::Trip(Word::Trip, *n), Value(Word::StepUser, step.user));
                (*micro, vec![User, Packed, n, user, Table(Word::Second, *slot)])
            }
            Op::Transpose { trips: [outer, inner], steps: [o, s], micro, .. } => {
                let (outer, inner) = (Arg::Trip(Word::Trip, *outer), Arg::Trip(Word::Second, *inner));
                let (outer_user, outer_packed) =
                    (Value(Word::StepUser, o.user), Value(Word::StepPacked, o.packed));
                let (inner_user, inner_packed) = (Value(Word::Third, s.user), Value(Word::Len, s.packed));
                // Rows of the source become columns of the destination: the inner loop runs along the packed side.
                let args = if pack {
                    [Packed, User, inner, outer, outer_packed, inner_user, inner_packed, outer_user]
                } else {
                    [User, Packed, outer, inner, inner_user, outer_packed, outer_user, inner_packed]
                };
                (*micro, args.to_vec())
            }
            Op::Move { .. } | Op::Loop { .. } | Op::Table { .. } | Op::Guard { .. } => {
                return Err(Error::internal("emit", "no call"));
            }
        })
    }

    /// Calls the micro-kernel of operation `i`. Nothing that lives across a call is in a register of arguments.
    pub(super) fn call(&mut self, i: usize, base: Pointers, at: At) -> Result<()> {
        let (micro, args) = self.arguments(&self.plan.ops()[i])?;
        // Those on the stack first: they go through a register.
        for (n, &arg) in args.iter().enumerate().rev() {
            let reg = ARGUMENTS.get(n).copied();
            let to = reg.unwrap_or(Reg::RAX);
            self.argument(i, base, at, arg, to);
            if reg.is_none() {
                let disp = 8 * (n - ARGUMENTS.len()) as i32;
                self.code.push(Inst::Store(Mem { base: Reg::RSP, disp }, to));
            }
        }
        self.code.extend([Inst::Micro(Reg::RAX, micro), Inst::Call(Reg::RAX)]);
        Ok(())
    }

    fn argument(&mut self, i: usize, base: Pointers, at: At, arg: Arg, to: Reg) {
        match arg {
            Arg::User => self.start(i, base.user, at.user, (Word::AtUser, self.plan.ops()[i].at().user), to),
            Arg::Packed => {
                self.start(i, base.packed, at.packed, (Word::AtPacked, self.plan.ops()[i].at().packed), to)
            }
            Arg::Value(word, k) => {
                self.value(i, word, k, to);
            }
            Arg::Trip(word, trip) => self.trip(i, word, trip, to),
            Arg::Table(word, slot) => self.table(i, word, slot, to),
        }
    }

    /// `to = base + k`, and in a parametric plan also the operation's own offset, unless that is zero.
    pub(super) fn start(&mut self, i: usize, base: Place, k: i64, (word, own): (Word, i64), to: Reg) {
        match (base, i32::try_from(k)) {
            (Place::Reg(r), Ok(0)) if r == to => {}
            (Place::Reg(r), Ok(0)) => self.code.push(Inst::Copy(to, r)),
            (Place::Reg(r), Ok(disp)) if r != to => self.code.push(Inst::Address(to, Mem { base: r, disp })),
            _ => {
                self.get_into(base, to);
                self.add(Place::Reg(to), k);
            }
        }
        if self.parametric && own != 0 {
            let mem = self.word(i as u32 * WORDS + word as u32);
            self.code.push(Inst::Math(Math::Add, to, Operand::Mem(mem)));
        }
    }

    /// A constant of operation `i` in `to`: a context word if the plan is parametric, else `k` itself.
    pub(super) fn value(&mut self, i: usize, word: Word, k: i64, to: Reg) -> Reg {
        let inst = if self.parametric {
            Inst::Load(to, self.word(i as u32 * WORDS + word as u32))
        } else {
            Inst::Set(to, k)
        };
        self.code.push(inst);
        to
    }

    /// A trip of operation `i` in `to`, times the instance count where it carries that.
    pub(super) fn trip(&mut self, i: usize, word: Word, trip: Trip, to: Reg) {
        self.value(i, word, trip.k as i64, to);
        if trip.per_count {
            let count = self.operand(self.count);
            self.code.push(Inst::Mul(to, count));
        }
    }

    /// The address of the column in `slot`, as used by operation `i`, in `to`.
    pub(super) fn table(&mut self, i: usize, word: Word, slot: u32, to: Reg) {
        let index = if self.parametric { i as u32 * WORDS + word as u32 } else { slot };
        let mem = self.word(index);
        self.code.push(Inst::Load(to, mem));
    }

    /// Context word `index`. The context is always in a register.
    pub(super) fn word(&self, index: u32) -> Mem {
        let Place::Reg(base) = self.context else { return self.slot(0) };
        Mem { base, disp: 8 * index as i32 }
    }

    pub(super) fn rows(&self, slot: u32) -> Result<i64> {
        let column = self.plan.columns().get(slot as usize);
        column.map(|c| c.len() as i64).ok_or_else(|| Error::internal("emit", "slot without a column"))
    }
}
