//! Where values live: registers as far as they go, then the frame.

use super::Function;
use super::inst::{Inst, Math, Mem, Operand, Reg};

/// Where a value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Reg(Reg),
    /// Eight bytes of the frame, by number.
    Slot(u32),
}

impl Function<'_> {
    /// A place for a value: a register if that leaves `reserve` others, else a slot.
    pub(super) fn alloc(&mut self, reserve: usize) -> Place {
        if self.taken + reserve < self.pool.len() {
            self.taken += 1;
            self.most_taken = self.most_taken.max(self.taken);
            return Place::Reg(self.pool[self.taken - 1]);
        }
        self.slots += 1;
        self.most_slots = self.most_slots.max(self.slots);
        Place::Slot(self.slots - 1)
    }

    pub(super) fn slot(&self, slot: u32) -> Mem {
        Mem { base: Reg::RSP, disp: (self.outgoing + 8 * slot) as i32 }
    }

    pub(super) fn operand(&self, place: Place) -> Operand {
        match place {
            Place::Reg(r) => Operand::Reg(r),
            Place::Slot(s) => Operand::Mem(self.slot(s)),
        }
    }

    /// The value of `place` in a register: its own, or `scratch`.
    pub(super) fn get(&mut self, place: Place, scratch: Reg) -> Reg {
        match place {
            Place::Reg(r) => r,
            Place::Slot(_) => {
                self.get_into(place, scratch);
                scratch
            }
        }
    }

    pub(super) fn get_into(&mut self, place: Place, to: Reg) {
        match place {
            Place::Reg(r) if r == to => {}
            Place::Reg(r) => self.code.push(Inst::Copy(to, r)),
            Place::Slot(s) => self.code.push(Inst::Load(to, self.slot(s))),
        }
    }

    pub(super) fn put(&mut self, place: Place, from: Reg) {
        match place {
            Place::Reg(r) if r == from => {}
            Place::Reg(r) => self.code.push(Inst::Copy(r, from)),
            Place::Slot(s) => self.code.push(Inst::Store(self.slot(s), from)),
        }
    }

    /// `place += k`, by way of `r11` where `k` is long.
    pub(super) fn add(&mut self, place: Place, k: i64) {
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

    /// Arithmetic on a place with a register or a constant.
    pub(super) fn math(&mut self, op: Math, place: Place, operand: Operand) {
        self.code.push(match place {
            Place::Reg(r) => Inst::Math(op, r, operand),
            Place::Slot(s) => Inst::MathAt(op, self.slot(s), operand),
        });
    }
}
