//! Emission for x86-64 by instruction templates: one pass over the plan, in microseconds.
//!
//! Plans are loops over two pointers around accesses and calls; what Cranelift finds out about them (lifetimes, registers,
//! encodings) is known here beforehand. The code is the same shape as Cranelift's: rotated loops, bumped pointers, offsets in
//! the accesses. Two things it has and Cranelift does not: 32-byte accesses, and outer loops whose pointers stay in memory so
//! that inner ones have registers.
//!
//! Registers: `rax` and the first vector register carry bytes, `r10` and `r11` addresses that are used at once. The rest hold pointers and ends of loops,
//! innermost first; with calls in the plan only registers that calls preserve do. Calling convention: System V.

mod encode;
mod inst;
mod loops;
#[cfg(test)]
mod tests;

use std::ops::Range;

use super::{CompiledCode, Emitter, Listing, MAX_CODE, context};
use crate::error::{Error, Result};
use crate::kind::Direction;
use crate::micro::Micro;
use crate::plan::{At, Body, Legal, Op, Plan, Trip, WORDS, Word};
use crate::target::Level;

use inst::{Inst, Label, Math, Mem, Operand, Piece, Reg, Vex, When};

/// The emitter by templates, for kernels of one CPU level.
#[derive(Clone, Copy, Debug)]
pub struct X64 {
    level: Level,
}

impl X64 {
    /// An emitter for `level`: code for any machine of that level that passes arguments as System V says.
    pub fn new(level: Level) -> X64 {
        X64 { level }
    }

    /// The same, where this process can run its code.
    pub fn for_host(level: Level) -> Option<X64> {
        cfg!(all(target_arch = "x86_64", unix)).then_some(X64 { level })
    }
}

impl Emitter for X64 {
    fn name(&self) -> &'static str {
        "x64"
    }

    fn widest_access(&self) -> u32 {
        self.level.widest_access()
    }

    fn emit(&self, plan: &Plan<Legal>) -> Result<CompiledCode> {
        let (list, labels) = Function::of(plan)?;
        let bytes = encode::encode(&list, labels)?;
        if bytes.len() > MAX_CODE {
            return Err(Error::internal("emit", "the code is larger than a kernel may be"));
        }
        Ok(CompiledCode { bytes, alignment: 32, context: context(plan) })
    }

    fn listing(&self, plan: &Plan<Legal>) -> Result<Listing> {
        let (list, _) = Function::of(plan)?;
        let mut code = String::new();
        for inst in &list {
            let indent = if matches!(inst, Inst::Here(_)) { "" } else { "    " };
            code += &format!("{indent}{inst}\n");
        }
        Ok(Listing { ir: String::new(), code })
    }
}

/// Where a value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Reg(Reg),
    /// Eight bytes of the frame, by number.
    Slot(u32),
}

/// The two addresses that code works on.
#[derive(Clone, Copy, Debug)]
struct Pointers {
    user: Place,
    packed: Place,
}

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
/// Registers that a plan without calls has for its loops, those first that cost no saving.
const FREE: [Reg; 8] = [Reg::R8, Reg::R9, Reg::RBX, Reg::RBP, Reg::R12, Reg::R13, Reg::R14, Reg::R15];
/// Registers that a call preserves.
const PRESERVED: [Reg; 6] = [Reg::RBX, Reg::RBP, Reg::R12, Reg::R13, Reg::R14, Reg::R15];

/// One kernel in the making.
struct Function<'a> {
    plan: &'a Plan<Legal>,
    /// Whether constants are context words.
    parametric: bool,
    code: Vec<Inst>,
    labels: u32,
    /// Registers that may hold values, and how many of them do.
    pool: &'static [Reg],
    taken: usize,
    /// Most of them that ever did.
    most_taken: usize,
    /// Slots in use, and the most that ever were.
    slots: u32,
    most_slots: u32,
    /// Bytes at the bottom of the frame for arguments of calls.
    outgoing: u32,
    count: Place,
    context: Place,
    wide: bool,
}

impl<'a> Function<'a> {
    /// The instructions of `plan`, and the number of their labels.
    fn of(plan: &'a Plan<Legal>) -> Result<(Vec<Inst>, u32)> {
        let calls = plan
            .ops()
            .iter()
            .any(|op| !matches!(op, Op::Move { .. } | Op::Loop { .. } | Op::Table { .. } | Op::Guard { .. }));
        let long = plan.ops().iter().any(|op| matches!(op, Op::Transpose { .. }));
        let mut f = Function {
            plan,
            parametric: plan.is_parametric(),
            code: Vec::with_capacity(2 * plan.ops().len() + 64),
            labels: 0,
            pool: if calls { &PRESERVED } else { &FREE },
            taken: 0,
            most_taken: 0,
            slots: 0,
            most_slots: 0,
            outgoing: if long { 16 } else { 0 },
            count: Place::Reg(Reg::RDX),
            context: Place::Reg(Reg::RCX),
            wide: false,
        };
        let mut base = Pointers { user: Place::Reg(Reg::RDI), packed: Place::Reg(Reg::RSI) };
        if calls {
            // A call leaves nothing of the arguments: they move to where it does not reach.
            for (place, from) in
                [(&mut f.context, Reg::RCX), (&mut base.user, Reg::RDI), (&mut base.packed, Reg::RSI)]
            {
                let reg = f.pool[f.taken];
                f.taken += 1;
                f.code.push(Inst::Copy(reg, from));
                *place = Place::Reg(reg);
            }
            f.most_taken = f.taken;
            f.slots = 1;
            f.most_slots = 1;
            f.count = Place::Slot(0);
            f.put(f.count, Reg::RDX);
        }
        f.body(plan.root(), base, At::ZERO, true)?;
        Ok(f.framed(calls))
    }

    /// The code between what a function begins and ends with.
    fn framed(self, calls: bool) -> (Vec<Inst>, u32) {
        let saved: Vec<Reg> =
            self.pool[..self.most_taken].iter().copied().filter(|r| r.is_callee_saved()).collect();
        let mut frame = (8 * self.most_slots + self.outgoing) as i32;
        // At a call the stack is at a multiple of 16; a function starts 8 beyond one.
        if calls && (frame + 8 * saved.len() as i32 + 8) % 16 != 0 {
            frame += 8;
        }
        let mut code = Vec::with_capacity(self.code.len() + 2 * saved.len() + 4);
        code.extend(saved.iter().map(|&r| Inst::Push(r)));
        if frame > 0 {
            code.push(Inst::Math(Math::Sub, Reg::RSP, Operand::Imm(frame)));
        }
        code.extend(self.code);
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

    /// Emits `body` for an iteration that is `at` from `base`. If the pointers are `spent`, nothing behind the body needs them.
    fn body(&mut self, body: Body, base: Pointers, at: At, spent: bool) -> Result<()> {
        let range = body.range();
        let (mut i, last) = (range.start, range.end);
        while i < last {
            let run = self.moves(i..last, at);
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

    /// The moves that `range` begins with, at their places in an iteration that is `at` from its base.
    fn moves(&self, range: Range<usize>, at: At) -> Vec<(At, u32)> {
        let moves = self.plan.ops()[range].iter().map_while(|op| match op {
            Op::Move { at: own, len } => Some((at + *own, *len)),
            _ => None,
        });
        moves.collect()
    }

    fn op(&mut self, i: usize, base: Pointers, at: At, spent: bool) -> Result<()> {
        let op = &self.plan.ops()[i];
        let held = (self.taken, self.slots);
        match op {
            Op::Loop { .. } | Op::Table { .. } => self.repeated(i, base, at, spent)?,
            Op::Guard { limit, then, otherwise } => {
                let (slow, done) = (self.label(), self.label());
                let limit = self.value(i, Word::Trip, *limit as i64, Reg::R11);
                let count = self.get(self.count, Reg::RAX);
                self.code.push(Inst::Math(Math::Cmp, count, Operand::Reg(limit)));
                self.code.push(Inst::Jump(When::Above, slow));
                self.body(*then, base, at, false)?;
                self.code.extend([Inst::Jump(When::Always, done), Inst::Here(slow)]);
                self.body(*otherwise, base, at, false)?;
                self.code.push(Inst::Here(done));
            }
            _ => {
                let (micro, args) = self.arguments(op)?;
                self.call(i, base, at + if self.parametric { At::ZERO } else { op.at() }, micro, &args);
            }
        }
        (self.taken, self.slots) = held;
        Ok(())
    }

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

    /// Calls `micro`. Nothing that lives across a call is in a register of arguments.
    fn call(&mut self, i: usize, base: Pointers, at: At, micro: Micro, args: &[Arg]) {
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
    fn start(&mut self, i: usize, base: Place, k: i64, (word, own): (Word, i64), to: Reg) {
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
    fn value(&mut self, i: usize, word: Word, k: i64, to: Reg) -> Reg {
        let inst = if self.parametric {
            Inst::Load(to, self.word(i as u32 * WORDS + word as u32))
        } else {
            Inst::Set(to, k)
        };
        self.code.push(inst);
        to
    }

    /// A trip of operation `i` in `to`, times the instance count where it carries that.
    fn trip(&mut self, i: usize, word: Word, trip: Trip, to: Reg) {
        self.value(i, word, trip.k as i64, to);
        if trip.per_count {
            let count = self.operand(self.count);
            self.code.push(Inst::Mul(to, count));
        }
    }

    /// The address of the column in `slot`, as used by operation `i`, in `to`.
    fn table(&mut self, i: usize, word: Word, slot: u32, to: Reg) {
        let index = if self.parametric { i as u32 * WORDS + word as u32 } else { slot };
        let mem = self.word(index);
        self.code.push(Inst::Load(to, mem));
    }

    /// Moves in order. Packing, two of 8 bytes that go to one place are two loads and one store: stores bound such code.
    fn accesses(&mut self, moves: &[(At, u32)], base: Pointers) -> Result<()> {
        let mut rest = moves;
        while let [(at, len), others @ ..] = rest {
            rest = others;
            match others {
                [(next, 8), others @ ..]
                    if *len == 8
                        && self.plan.direction() == Direction::Pack
                        && next.packed == at.packed.wrapping_add(8) =>
                {
                    rest = others;
                    let vex = Vex(self.plan.level() >= Level::Avx2);
                    let low = self.reach(base.user, at.user, Reg::R10);
                    self.code.push(Inst::TakeLow(vex, low));
                    let high = self.reach(base.user, next.user, Reg::R10);
                    self.code.push(Inst::TakeHigh(vex, high));
                    let packed = self.reach(base.packed, at.packed, Reg::R11);
                    self.code.push(Inst::Put(if vex.0 { Piece::B16Vex } else { Piece::B16 }, packed));
                }
                _ => self.access(*len, base, *at)?,
            }
        }
        Ok(())
    }

    /// One load and one store.
    fn access(&mut self, len: u32, base: Pointers, at: At) -> Result<()> {
        let level = self.plan.level();
        let vex = level >= Level::Avx2;
        let piece = match len {
            1 => Piece::B1,
            2 => Piece::B2,
            4 => Piece::B4,
            8 => Piece::B8,
            16 if vex => Piece::B16Vex,
            16 => Piece::B16,
            32 if vex => Piece::B32,
            64 if level >= Level::Avx512 => Piece::B64,
            _ => return Err(Error::internal("emit", format!("access of {len} bytes"))),
        };
        self.wide |= matches!(piece, Piece::B32 | Piece::B64);
        let user = self.reach(base.user, at.user, Reg::R10);
        let packed = self.reach(base.packed, at.packed, Reg::R11);
        let (from, to) = match self.plan.direction() {
            Direction::Pack => (user, packed),
            Direction::Unpack => (packed, user),
        };
        self.code.extend([Inst::Take(piece, from), Inst::Put(piece, to)]);
        Ok(())
    }

    /// `base + k` as memory, by way of `scratch` where it must.
    fn reach(&mut self, base: Place, k: i64, scratch: Reg) -> Mem {
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

    /// Context word `index`. The context is always in a register.
    fn word(&self, index: u32) -> Mem {
        let Place::Reg(base) = self.context else { return self.slot(0) };
        Mem { base, disp: 8 * index as i32 }
    }

    fn rows(&self, slot: u32) -> Result<i64> {
        let column = self.plan.columns().get(slot as usize);
        column.map(|c| c.len() as i64).ok_or_else(|| Error::internal("emit", "slot without a column"))
    }

    fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// A place for a value: a register if that leaves `reserve` others, else a slot.
    fn alloc(&mut self, reserve: usize) -> Place {
        if self.taken + reserve < self.pool.len() {
            self.taken += 1;
            self.most_taken = self.most_taken.max(self.taken);
            return Place::Reg(self.pool[self.taken - 1]);
        }
        self.slots += 1;
        self.most_slots = self.most_slots.max(self.slots);
        Place::Slot(self.slots - 1)
    }

    fn slot(&self, slot: u32) -> Mem {
        Mem { base: Reg::RSP, disp: (self.outgoing + 8 * slot) as i32 }
    }

    fn operand(&self, place: Place) -> Operand {
        match place {
            Place::Reg(r) => Operand::Reg(r),
            Place::Slot(s) => Operand::Mem(self.slot(s)),
        }
    }

    /// The value of `place` in a register: its own, or `scratch`.
    fn get(&mut self, place: Place, scratch: Reg) -> Reg {
        match place {
            Place::Reg(r) => r,
            Place::Slot(_) => {
                self.get_into(place, scratch);
                scratch
            }
        }
    }

    fn get_into(&mut self, place: Place, to: Reg) {
        match place {
            Place::Reg(r) if r == to => {}
            Place::Reg(r) => self.code.push(Inst::Copy(to, r)),
            Place::Slot(s) => self.code.push(Inst::Load(to, self.slot(s))),
        }
    }

    fn put(&mut self, place: Place, from: Reg) {
        match place {
            Place::Reg(r) if r == from => {}
            Place::Reg(r) => self.code.push(Inst::Copy(r, from)),
            Place::Slot(s) => self.code.push(Inst::Store(self.slot(s), from)),
        }
    }

    /// `place += k`, by way of `r11` where `k` is long.
    fn add(&mut self, place: Place, k: i64) {
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
    fn math(&mut self, op: Math, place: Place, operand: Operand) {
        self.code.push(match place {
            Place::Reg(r) => Inst::Math(op, r, operand),
            Place::Slot(s) => Inst::MathAt(op, self.slot(s), operand),
        });
    }
}
