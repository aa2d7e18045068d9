//! Locations of values. A value is in a register as long as registers are free, and otherwise in a
//! slot of the stack frame.

use super::Function;
use super::inst::{Inst, Math, Mem, Operand, Reg};

/// Location of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    Reg(Reg),
    /// Number of an 8-byte slot of the stack frame.
    Slot(u32),
}

impl Function<'_> {
    /// Returns a location for a value: a register if at least `reserve` other registers remain
    /// free, and otherwise a slot of the stack frame.
    pub(super) fn alloc(&mut self, reserve: usize) -> Location {
        if self.taken + reserve < self.pool.len() {
            self.taken += 1;
            self.max_taken = self.max_taken.max(self.taken);
            return Location::Reg(self.pool[self.taken - 1]);
        }
        self.slots += 1;
        self.max_slots = self.max_slots.max(self.slots);
        Location::Slot(self.slots - 1)
    }

    pub(super) fn slot(&self, slot: u32) -> Mem {
        Mem { base: Reg::RSP, disp: (self.outgoing + 8 * slot) as i32 }
    }

    pub(super) fn operand(&self, place: Location) -> Operand {
        match place {
            Location::Reg(r) => Operand::Reg(r),
            Location::Slot(s) => Operand::Mem(self.slot(s)),
        }
    }

    /// Returns a register that holds the value of `place`. If the value is in a slot of the stack
    /// frame, it is first loaded into `scratch`.
    pub(super) fn get(&mut self, place: Location, scratch: Reg) -> Reg {
        match place {
            Location::Reg(r) => r,
            Location::Slot(_) => {
                self.get_into(place, scratch);
                scratch
            }
        }
    }

    pub(super) fn get_into(&mut self, place: Location, to: Reg) {
        match place {
            Location::Reg(r) if r == to => {}
            Location::Reg(r) => self.code.push(Inst::Copy(to, r)),
            Location::Slot(s) => self.code.push(Inst::Load(to, self.slot(s))),
        }
    }

    pub(super) fn put(&mut self, place: Location, from: Reg) {
        match place {
            Location::Reg(r) if r == from => {}
            Location::Reg(r) => self.code.push(Inst::Copy(r, from)),
            Location::Slot(s) => self.code.push(Inst::Store(self.slot(s), from)),
        }
    }

    /// Emits code for `place += k`. A `k` that does not fit into 32 bits is first loaded into
    /// `r11`.
    pub(super) fn add(&mut self, place: Location, k: i64) {
        if k == 0 {
            return;
        }
        let operand = match i32::try_from(k) {
            Ok(k) => Operand::Imm(k),
            Err(_) => {
                self.code.push(Inst::Set(Reg::R11, k));
                Operand::Reg(Reg::R11)
            }
        };
        self.math(Math::Add, place, operand);
    }

    /// Emits arithmetic on the value in `place`. If `place` is a slot of the stack frame, the
    /// operand must be a register or a constant.
    pub(super) fn math(&mut self, op: Math, place: Location, operand: Operand) {
        self.code.push(match place {
            Location::Reg(r) => Inst::Math(op, r, operand),
            Location::Slot(s) => Inst::MathAt(op, self.slot(s), operand),
        });
    }
}
