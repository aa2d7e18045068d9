//! Emission for x86-64 by instruction templates, in one pass over the plan, which takes
//! microseconds.
//!
//! A plan consists of accesses and calls, with loops around them that advance two pointers.
//! Cranelift has to find out lifetimes, registers and encodings by analysis. For code of such plans
//! they are known beforehand, so templates suffice. The code has the same form as that of
//! Cranelift: rotated loops, pointers that advance, offsets in the accesses. In three respects it
//! differs from Cranelift's code: it has accesses of 32 and 64 bytes, it has permutations of words,
//! and outer loops keep their pointers in memory if inner loops need the registers.
//!
//! The bytes that are moved go through `rax`, or through `zmm0` or its lower part. Permutations
//! also use `zmm1` to `zmm7` and the mask registers `k1` to `k6`. `r10` and `r11` hold addresses
//! and constants that the next instructions use. Other registers form a pool, from which loops take
//! registers for their pointers and end addresses. Each loop leaves registers for the loops inside
//! it. If the plan has calls, the pool contains only registers that calls preserve. The calling
//! convention is that of the System V ABI.

mod calls;
mod encode;
mod inst;
mod locations;
mod loops;
mod permute;
#[cfg(test)]
mod tests;

use std::ops::Range;

use super::{Emitter, Listing};
use crate::error::{Error, Result};
use crate::kind::Direction;
use crate::plan::{Body, Field, Legal, Offsets, Operand as Constant, Operands, Plan, PlanOp, Words};
use crate::target::{Accesses, Arch, Level, Target};

use inst::{Inst, Label, Math, Mem, Operand, Piece, Reg, Vex, When};
use locations::Location;
use permute::Constants;

/// Emitter by templates, for kernels of one target.
#[derive(Clone, Copy, Debug)]
pub struct X64 {
    target: Target,
}

impl X64 {
    /// Returns an emitter for `target`, or none if the architecture of the target is not x86-64.
    /// This machine need not run the target. The code runs on machines of the target that use the
    /// calling convention of the System V ABI.
    pub fn new(target: Target) -> Option<X64> {
        (target.arch() == Arch::X86_64).then_some(X64 { target })
    }

    /// Returns an emitter for `target`, or none if this process cannot run its code.
    pub fn for_host(target: Target) -> Option<X64> {
        X64::new(target).filter(|_| cfg!(unix) && target.runs())
    }
}

impl Emitter for X64 {
    fn accesses(&self) -> Accesses {
        let level = self.target.level();
        Accesses { widest: level.widest_access(), permutes: level.includes(Level::Avx512) }
    }

    fn code(&self, plan: &Plan<Legal>) -> Result<(Vec<u8>, u32)> {
        let (list, labels) = Function::instructions(plan)?;
        Ok((encode::encode(&list, labels)?, 32))
    }

    fn listing(&self, plan: &Plan<Legal>) -> Result<Listing> {
        let (list, _) = Function::instructions(plan)?;
        let mut code = String::new();
        for inst in &list {
            let indent = if matches!(inst, Inst::Here(_)) { "" } else { "    " };
            code += &format!("{indent}{inst}\n");
        }
        Ok(Listing { code, ..Listing::default() })
    }
}

/// Locations of the two addresses that the emitted code works on: one in the user's buffer, one on
/// the packed side.
#[derive(Clone, Copy, Debug)]
struct Pointers {
    user: Location,
    packed: Location,
}

/// What a move or a permutation accesses. A move is a load and a store of `len` bytes.
#[derive(Clone, Copy, Debug)]
struct Access<'a> {
    /// The user offset, or the context word that contains it.
    user: Constant,
    packed: i64,
    len: u32,
    /// For a permutation, the places of its words in user memory.
    words: Option<&'a Words>,
}

/// Length in bytes of the shortest gap between moved bytes that must not be read. In a shorter gap,
/// each byte is on the same page as a moved byte before or after the gap, so it can be read. A gap
/// of this length may contain a whole page, which may not be mapped.
const GAP: i64 = 4096;

/// Returns true if 16 bytes at `user` may be read although only the first 8 of them are moved. This
/// is so if one of `moves` moves bytes that begin after these 16, and the gap between the first 8
/// bytes and those bytes is shorter than [`GAP`].
fn is_followed(moves: &[Access<'_>], user: i64) -> bool {
    let follows = |at: &Access| match at.user {
        Constant::Immediate(next) => (16..GAP + 8).contains(&next.wrapping_sub(user)),
        Constant::Word(_) => false,
    };
    moves.iter().any(follows)
}

/// Registers for the loops of a plan without calls. A function need not save the first two, because
/// the ABI lets it overwrite them.
const FREE: [Reg; 8] = [Reg::R8, Reg::R9, Reg::RBX, Reg::RBP, Reg::R12, Reg::R13, Reg::R14, Reg::R15];
/// Registers that a call preserves, for a plan with calls.
const PRESERVED: [Reg; 6] = [Reg::RBX, Reg::RBP, Reg::R12, Reg::R13, Reg::R14, Reg::R15];

/// State of the emission of one kernel.
struct Function<'a> {
    plan: &'a Plan<Legal>,
    operands: Operands<'a>,
    code: Vec<Inst>,
    labels: u32,
    /// Registers that may hold values, in the order in which they are taken. The next field,
    /// `taken`, is the number of registers that are taken now.
    pool: &'static [Reg],
    taken: usize,
    /// Maximum of `taken` so far.
    max_taken: usize,
    /// Number of slots of the stack frame that are in use. The next field, `max_slots`, is the
    /// maximum of this number so far.
    slots: u32,
    max_slots: u32,
    /// Number of bytes at the bottom of the stack frame that are reserved for arguments of calls.
    outgoing: u32,
    count: Location,
    context: Reg,
    wide: bool,
    /// Constants that are in vector registers and mask registers at this point of the code,
    /// whatever path led to it.
    known: Constants,
}

impl<'a> Function<'a> {
    /// Returns the instructions of `plan` and the number of their labels.
    fn instructions(plan: &'a Plan<Legal>) -> Result<(Vec<Inst>, u32)> {
        let parameters = plan.ops().iter().filter_map(|op| match op {
            PlanOp::Call { call, .. } => Some(call.callee().parameters().len()),
            _ => None,
        });
        let most = parameters.max();
        let calls = most.is_some();
        let on_stack = most.unwrap_or(0).saturating_sub(calls::ARGUMENTS.len()) as u32;
        let mut f = Function {
            plan,
            operands: plan.operands(),
            code: Vec::with_capacity(2 * plan.ops().len() + 64),
            labels: 0,
            pool: if calls { &PRESERVED } else { &FREE },
            taken: 0,
            max_taken: 0,
            slots: 0,
            max_slots: 0,
            outgoing: (8 * on_stack).next_multiple_of(16),
            count: Location::Reg(Reg::RDX),
            context: Reg::RCX,
            wide: false,
            known: Constants::default(),
        };
        let mut base = Pointers { user: Location::Reg(Reg::RDI), packed: Location::Reg(Reg::RSI) };
        if calls {
            // The plan has calls, which may overwrite the registers in which the kernel received
            // its arguments. Move the context and both addresses to registers that calls preserve,
            // and the count to a slot of the stack frame.
            let [context, user, packed, ..] = PRESERVED;
            let moved = [(context, Reg::RCX), (user, Reg::RDI), (packed, Reg::RSI)];
            f.code.extend(moved.map(|(to, from)| Inst::Copy(to, from)));
            f.context = context;
            base = Pointers { user: Location::Reg(user), packed: Location::Reg(packed) };
            (f.taken, f.max_taken) = (moved.len(), moved.len());
            (f.slots, f.max_slots) = (1, 1);
            f.count = Location::Slot(0);
            f.put(f.count, Reg::RDX);
        }
        f.body(plan.root(), base, Offsets::ZERO, true)?;
        Ok(f.framed(calls))
    }

    /// Adds a prologue before the code so far and an epilogue after it. Returns the finished code
    /// and the number of its labels.
    fn framed(self, calls: bool) -> (Vec<Inst>, u32) {
        let saved: Vec<Reg> =
            self.pool[..self.max_taken].iter().copied().filter(|r| r.is_callee_saved()).collect();
        let mut frame = (8 * self.max_slots + self.outgoing) as i32;
        // At a call, the stack pointer must be a multiple of 16. At the entry of a function it is 8
        // less than a multiple of 16, because the call has pushed the return address.
        if calls && (frame + 8 * saved.len() as i32 + 8) % 16 != 0 {
            frame += 8;
        }
        let below = (frame > 0).then_some(Inst::Math(Math::Sub, Reg::RSP, Operand::Imm(frame)));
        let mut code = self.code;
        code.splice(0..0, saved.iter().map(|&r| Inst::Push(r)).chain(below));
        if self.wide {
            code.push(Inst::ZeroUpper);
        }
        if frame > 0 {
            code.push(Inst::Math(Math::Add, Reg::RSP, Operand::Imm(frame)));
        }
        code.extend(saved.iter().rev().map(|&r| Inst::Pop(r)));
        code.push(Inst::Return);
        (code, self.labels)
    }

    /// Emits `body` for an iteration that is at offset `at` from `base`. If `spent` is true, no
    /// code after the body needs the pointers of `base`, so the code of the body may change them.
    fn body(&mut self, body: Body, base: Pointers, at: Offsets, spent: bool) -> Result<()> {
        let range = body.range();
        let (mut i, last) = (range.start, range.end);
        while i < last {
            let run = self.moves(i..last, at)?;
            if run.is_empty() {
                self.op(i, base, at, spent && i + 1 == last)?;
                i += 1;
            } else {
                self.accesses(&run, base)?;
                i += run.len();
            }
        }
        Ok(())
    }

    /// Returns the moves and permutations at the start of `range`, up to the first operation of
    /// another kind. The offsets in the result are those of an iteration that begins at offset `at`
    /// from its base.
    fn moves(&self, range: Range<usize>, at: Offsets) -> Result<Vec<Access<'a>>> {
        let missing = || Error::internal("emit", "a move has no place");
        let moves = range.map_while(|i| match &self.plan.ops()[i] {
            op @ (PlanOp::Move { .. } | PlanOp::Permute { .. }) => {
                let (len, words) = match op {
                    PlanOp::Move { len, .. } => (*len, None),
                    PlanOp::Permute { words, .. } => (Words::BYTES, Some(words)),
                    _ => return None,
                };
                let Offsets { user, packed } = at + op.offsets();
                // Only parametric plans have user offsets that are context words. Such plans are
                // not unrolled, so `at` is zero and the context word is the whole offset.
                let user = match self.operands.get(i, Field::UserOffset) {
                    Some(Constant::Immediate(_)) => Some(Constant::Immediate(user)),
                    word => word,
                };
                Some(user.map(|user| Access { user, packed, len, words }).ok_or_else(missing))
            }
            _ => None,
        });
        moves.collect()
    }

    /// Emits operation `i`, which is neither a move nor a permutation, for an iteration that is at
    /// offset `at` from `base`. Registers and slots that the operation takes are free again
    /// afterwards.
    fn op(&mut self, i: usize, base: Pointers, at: Offsets, spent: bool) -> Result<()> {
        let op = &self.plan.ops()[i];
        let saved = (self.taken, self.slots);
        match op {
            PlanOp::Loop { .. } | PlanOp::Table { .. } => self.repeated(i, base, at, spent)?,
            PlanOp::Guard { then, otherwise, .. } => {
                let (slow, done) = (self.label(), self.label());
                self.value(i, Field::Limit, Reg::R11)?;
                let count = self.get(self.count, Reg::RAX);
                self.code.push(Inst::Math(Math::Cmp, count, Operand::Reg(Reg::R11)));
                self.code.push(Inst::Jump(When::Above, slow));
                // Each branch starts with the constants that are in registers before the guard.
                // After the guard, either branch may have run, so no constant counts as being in a
                // register.
                let known = self.known;
                self.body(*then, base, at, false)?;
                self.code.extend([Inst::Jump(When::Always, done), Inst::Here(slow)]);
                self.known = known;
                self.body(*otherwise, base, at, false)?;
                self.code.push(Inst::Here(done));
                self.known = Constants::default();
            }
            PlanOp::Call { at: own, call } => {
                self.call(i, call, base, at + if self.operands.parametric() { Offsets::ZERO } else { *own })?;
            }
            PlanOp::Move { .. } | PlanOp::Permute { .. } => {}
        }
        (self.taken, self.slots) = saved;
        Ok(())
    }

    /// Emits `moves` in order. When packing, two successive moves of 8 bytes to adjacent packed
    /// offsets become two loads and one store of 16 bytes, because the number of stores limits the
    /// speed of such code.
    fn accesses(&mut self, moves: &[Access<'_>], base: Pointers) -> Result<()> {
        let mut rest = moves;
        while let [at, others @ ..] = rest {
            rest = others;
            if let Some(words) = at.words {
                self.permute(base, *at, words);
                continue;
            }
            match others {
                [next, others @ ..]
                    if [at.len, next.len] == [8, 8]
                        && self.plan.direction() == Direction::Pack
                        && next.packed == at.packed.wrapping_add(8) =>
                {
                    rest = others;
                    let vex = Vex(self.plan.target().includes(Level::Avx2));
                    let low = self.placed(base.user, at.user, Reg::R10);
                    self.code.push(Inst::TakeLow(vex, low));
                    let high = self.placed(base.user, next.user, Reg::R10);
                    self.code.push(match next.user {
                        Constant::Immediate(user) if vex.0 && is_followed(others, user) => {
                            Inst::JoinHigh(high)
                        }
                        _ => Inst::TakeHigh(vex, high),
                    });
                    let packed = self.reach(base.packed, at.packed, Reg::R11);
                    self.code.push(Inst::Put(if vex.0 { Piece::B16Vex } else { Piece::B16 }, packed));
                }
                _ => self.access(base, *at)?,
            }
        }
        Ok(())
    }

    /// Emits one load and one store.
    fn access(&mut self, base: Pointers, at: Access<'_>) -> Result<()> {
        let target = self.plan.target();
        let vex = target.includes(Level::Avx2);
        let piece = match at.len {
            1 => Piece::B1,
            2 => Piece::B2,
            4 => Piece::B4,
            8 => Piece::B8,
            16 if vex => Piece::B16Vex,
            16 => Piece::B16,
            32 if vex => Piece::B32,
            64 if target.includes(Level::Avx512) => Piece::B64,
            len => return Err(Error::internal("emit", format!("access of {len} bytes"))),
        };
        self.wide |= matches!(piece, Piece::B32 | Piece::B64);
        let user = self.placed(base.user, at.user, Reg::R10);
        let packed = self.reach(base.packed, at.packed, Reg::R11);
        let (from, to) = match self.plan.direction() {
            Direction::Pack => (user, packed),
            Direction::Unpack => (packed, user),
        };
        self.code.extend([Inst::Take(piece, from), Inst::Put(piece, to)]);
        Ok(())
    }

    /// Returns the memory operand for `base` plus `offset`, which is a constant or a context word.
    /// If the address has to be computed or loaded first, this is done in the register `scratch`.
    fn placed(&mut self, base: Location, offset: Constant, scratch: Reg) -> Mem {
        match offset {
            Constant::Immediate(k) => self.reach(base, k, scratch),
            Constant::Word(index) => {
                let base = self.operand(base);
                self.code.push(Inst::Load(scratch, self.word(index)));
                self.code.push(Inst::Math(Math::Add, scratch, base));
                Mem { base: scratch, disp: 0 }
            }
        }
    }

    /// Returns the memory operand for `base + k`. The register `scratch` is overwritten if `base`
    /// is not in a register or `k` does not fit into 32 bits.
    fn reach(&mut self, base: Location, k: i64, scratch: Reg) -> Mem {
        match i32::try_from(k) {
            Ok(disp) => Mem { base: self.get(base, scratch), disp },
            Err(_) => {
                self.code.push(Inst::Set(scratch, k));
                let base = self.operand(base);
                self.code.push(Inst::Math(Math::Add, scratch, base));
                Mem { base: scratch, disp: 0 }
            }
        }
    }

    fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }
}
