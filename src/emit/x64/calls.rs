//! Calls of micro-kernels, and the values that a plan keeps in its code or in its context.

use super::inst::{Inst, Math, Mem, Operand, Reg};
use super::{Function, Place, Pointers};
use crate::error::{Error, Result};
use crate::plan::{Arg, At, Trip, WORDS, Word};

/// Registers of the first six arguments (System V); the others lie at the bottom of the frame.
const ARGUMENTS: [Reg; 6] = [Reg::RDI, Reg::RSI, Reg::RDX, Reg::RCX, Reg::R8, Reg::R9];
impl Function<'_> {
    /// Calls the micro-kernel of operation `i`. Nothing that lives across a call is in a register of arguments.
    pub(super) fn call(&mut self, i: usize, base: Pointers, at: At) -> Result<()> {
        let (micro, args) = self.plan.call(i).ok_or_else(|| Error::internal("emit", "no call"))?;
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

    /// [`Function::start`] in a place that is not an argument's.
    pub(super) fn start_in(&mut self, i: usize, base: Place, k: i64, own: (Word, i64), place: Place) {
        let to = if let Place::Reg(r) = place { r } else { Reg::RAX };
        self.start(i, base, k, own, to);
        self.put(place, to);
    }

    /// Context word `index`.
    pub(super) fn word(&self, index: u32) -> Mem {
        Mem { base: self.context, disp: 8 * index as i32 }
    }

    pub(super) fn rows(&self, slot: u32) -> Result<i64> {
        let column = self.plan.columns().get(slot as usize);
        column.map(|c| c.len() as i64).ok_or_else(|| Error::internal("emit", "slot without a column"))
    }
}
