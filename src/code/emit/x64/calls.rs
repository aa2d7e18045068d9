//! Emission of calls of micro-kernels, and of loads of the constants that a plan has in its code or
//! in its context.

use super::inst::{Inst, Math, Mem, Operand as Source, Reg};
use super::permute::Constants;
use super::{Function, Location, Pointers};
use crate::error::{Error, Result};
use crate::micro::{Argument, Call, Role};
use crate::plan::{Field, Offsets, Operand, Quantity};

/// Registers of the first six arguments (System V ABI). Further arguments are at the bottom of the
/// caller's stack frame.
pub(super) const ARGUMENTS: [Reg; 6] = [Reg::RDI, Reg::RSI, Reg::RDX, Reg::RCX, Reg::R8, Reg::R9];

impl Function<'_> {
    /// Emits a call of the micro-kernel of operation `i`. The registers of arguments are
    /// overwritten; no value that is needed after the call is in one of them.
    pub(super) fn call(&mut self, i: usize, call: &Call, base: Pointers, at: Offsets) -> Result<()> {
        // Compute the arguments from the last to the first. So each argument after the sixth is
        // computed in `rax` and stored in the stack frame before the registers of the first six are
        // written. Another order would be right, too: no argument is computed from one of these
        // registers, because addresses, the instance count and the context are in registers that
        // calls preserve or in the stack frame.
        for (n, &role) in call.callee().parameters().iter().enumerate().rev() {
            let reg = ARGUMENTS.get(n).copied();
            let to = reg.unwrap_or(Reg::RAX);
            match role {
                Role::User => self.start(i, base.user, at.user, Field::UserOffset, to),
                Role::Packed => self.start(i, base.packed, at.packed, Field::PackedOffset, to),
                role => match call.argument(role) {
                    Some(Argument::Number(n)) => self.number(i, Field::Argument(role), n, to)?,
                    _ => self.value(i, Field::Argument(role), to)?,
                },
            }
            if reg.is_none() {
                let disp = 8 * (n - ARGUMENTS.len()) as i32;
                self.code.push(Inst::Store(Mem { base: Reg::RSP, disp }, to));
            }
        }
        match self.operands.get(i, Field::Callee) {
            Some(Operand::Word(index)) => {
                self.code.push(Inst::Call(self.word(index), call.callee()));
                // The micro-kernel may change vector registers and mask registers, so no constants
                // count as being in them.
                self.known = Constants::default();
            }
            _ => return Err(Error::internal("emit", "a callee is a word of the context")),
        }
        Ok(())
    }

    /// Emits `to = base + k`.
    pub(super) fn moved(&mut self, base: Location, k: i64, to: Reg) {
        match (base, i32::try_from(k)) {
            (Location::Reg(r), Ok(0)) if r == to => {}
            (Location::Reg(r), Ok(0)) => self.code.push(Inst::Copy(to, r)),
            (Location::Reg(r), Ok(disp)) if r != to => {
                self.code.push(Inst::Address(to, Mem { base: r, disp }))
            }
            _ => {
                self.get_into(base, to);
                self.add(Location::Reg(to), k);
            }
        }
    }

    /// Emits code that computes `base + k` in the register `to`. If the offset `own` of operation
    /// `i` is a context word, the code adds that word, too.
    pub(super) fn start(&mut self, i: usize, base: Location, k: i64, own: Field, to: Reg) {
        self.moved(base, k, to);
        if let Some(Operand::Word(index)) = self.operands.get(i, own) {
            let mem = self.word(index);
            self.code.push(Inst::Math(Math::Add, to, Source::Mem(mem)));
        }
    }

    /// Emits code that loads the constant `field` of operation `i` into `to`.
    pub(super) fn value(&mut self, i: usize, field: Field, to: Reg) -> Result<()> {
        let inst = match self.operands.get(i, field) {
            Some(Operand::Word(index)) => Inst::Load(to, self.word(index)),
            Some(Operand::Immediate(k)) => Inst::Set(to, k),
            None => return Err(Error::internal("emit", format!("operation {i} has no {field:?}"))),
        };
        self.code.push(inst);
        Ok(())
    }

    /// Emits code that loads the number `n` of operation `i` into `to`. If `n` stands for a number
    /// per instance, the code multiplies it by the instance count.
    pub(super) fn number(&mut self, i: usize, field: Field, n: Quantity, to: Reg) -> Result<()> {
        self.value(i, field, to)?;
        if n.per_count {
            let count = self.operand(self.count);
            self.code.push(Inst::Mul(to, count));
        }
        Ok(())
    }

    /// Emits the same code as [`Function::start`], but with the result in `place`, which may be a
    /// slot of the stack frame.
    pub(super) fn start_in(&mut self, i: usize, base: Location, k: i64, own: Field, place: Location) {
        let to = if let Location::Reg(r) = place { r } else { Reg::RAX };
        self.start(i, base, k, own, to);
        self.put(place, to);
    }

    /// Returns the memory of context word `index`.
    pub(super) fn word(&self, index: u32) -> Mem {
        Mem { base: self.context, disp: 8 * index as i32 }
    }
}
