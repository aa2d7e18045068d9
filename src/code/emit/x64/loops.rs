//! Loops of x86-64. The loops are rotated, which means that the condition is tested at the end of a
//! turn. They advance a user pointer and a packed pointer, and one of the two is compared with an
//! end address.
//!
//! The packed pointer usually serves as the loop counter, because in a packed stream it advances in
//! every iteration. In a fused copy, the packed side is a second layout, in which a loop may have
//! step 0. The user pointer is then compared instead. A loop whose trip carries the instance count
//! is skipped if it has no iterations. Loops with constant trips need no such check, because empty
//! loops do not reach a plan.

use super::inst::{Inst, Label, Math, Mem, Operand, Reg, When};
use super::permute::Constants;
use super::{Function, Location, Pointers};
use crate::error::{Error, Result};
use crate::micro::TableIndex;
use crate::plan::{Body, Field, Moving, Offsets, Operand as Constant, PlanOp, Quantity};

impl Function<'_> {
    /// Emits the loop or table loop `i` of the plan.
    pub(super) fn repeated(&mut self, i: usize, base: Pointers, at: Offsets, spent: bool) -> Result<()> {
        match &self.plan.ops()[i] {
            PlanOp::Loop { step, .. } if Moving::from_step(*step).is_none() => {
                Err(Error::internal("emit", "loop that moves on neither side"))
            }
            PlanOp::Loop { trip, step, body, .. } if self.operands.parametric() => {
                // Loops of parametric plans are not unrolled. Unrolling would gain nothing, because
                // their bodies consist of calls, or of moves that are far from each other.
                let once = LoopBody { step: *step, unroll: 1, body: *body };
                self.parametric_loop(i, base, at, spent, (*trip, once))
            }
            PlanOp::Loop { at: own, trip, step, unroll, body } => {
                let at = at + *own;
                let once = LoopBody { step: *step, unroll: (*unroll).max(1), body: *body };
                if trip.per_count {
                    self.run_time_loop(i, base, at, spent, (*trip, once))
                } else if trip.k < 2 * u64::from(once.unroll) {
                    self.iterations(base, at, once, trip.k as u32)
                } else {
                    self.counted_loop(i, base, at, spent, (trip.k, once))
                }
            }
            PlanOp::Table { table, packed, body, .. } => {
                self.table_loop(i, base, at, spent, (*table, *packed, *body))
            }
            _ => Err(Error::internal("emit", "no loop")),
        }
    }

    /// Returns the maximum number of registers that the loops in `body` can use.
    fn needs(&self, body: Body) -> usize {
        let ops = &self.plan.ops()[body.range()];
        let need = |op: &PlanOp| match op {
            PlanOp::Loop { trip, body, unroll, .. } => {
                3 + usize::from(trip.per_count && *unroll > 1) + self.needs(*body)
            }
            PlanOp::Table { body, .. } => 5 + self.needs(*body),
            PlanOp::Guard { then, otherwise, .. } => self.needs(*then).max(self.needs(*otherwise)),
            _ => 0,
        };
        ops.iter().map(need).max().unwrap_or(0)
    }

    /// Emits code that computes the two addresses at which operation `i` starts, and returns the
    /// pointers that hold them. If `spent` is true, the pointers of `base` are overwritten with
    /// these addresses. Otherwise the new pointers have locations of their own.
    fn begin(&mut self, i: usize, base: Pointers, at: Offsets, spent: bool, reserve: usize) -> Pointers {
        let mut side = |base: Location, k: i64, own: Field| {
            let place = if spent { base } else { self.alloc(reserve) };
            self.start_in(i, base, k, own, place);
            place
        };
        let user = side(base.user, at.user, Field::UserOffset);
        let packed = side(base.packed, at.packed, Field::PackedOffset);
        Pointers { user, packed }
    }

    /// Emits a loop whose number of iterations `k` is a constant that suffices for at least two
    /// turns.
    fn counted_loop(
        &mut self,
        i: usize,
        base: Pointers,
        at: Offsets,
        spent: bool,
        (k, once): (u64, LoopBody),
    ) -> Result<()> {
        let reserve = self.needs(once.body);
        let here = self.begin(i, base, at, spent, reserve);
        let end = self.alloc(reserve);
        let unroll = u64::from(once.unroll);
        // Compute the address at which the full turns end, each of which has `unroll` iterations.
        // The iterations that remain are written out after the loop.
        let (rounds, rest) = (k / unroll, k % unroll);
        let bytes = once.counted().wrapping_mul((rounds * unroll) as i64);
        let to = if let Location::Reg(r) = end { r } else { Reg::RAX };
        self.moved(once.counter(here), bytes, to);
        self.put(end, to);
        self.rotated(i, here, end, once)?;
        self.iterations(here, Offsets::ZERO, once, rest as u32)
    }

    /// Emits a loop whose number of iterations depends on the instance count.
    fn run_time_loop(
        &mut self,
        i: usize,
        base: Pointers,
        at: Offsets,
        spent: bool,
        (trip, once): (Quantity, LoopBody),
    ) -> Result<()> {
        let reserve = self.needs(once.body);
        let here = self.begin(i, base, at, spent, reserve);
        let end = self.alloc(reserve);
        // Compute the end address. `rax` receives the number of iterations. `r10` first receives
        // the number of bytes by which all iterations together advance the pointer that is
        // compared, and then the end address of that pointer.
        self.get_into(self.count, Reg::RAX);
        self.multiply(Reg::RAX, Reg::RAX, trip.k as i64);
        self.multiply(Reg::R10, Reg::RAX, once.counted());
        let start = self.operand(once.counter(here));
        self.code.push(Inst::Math(Math::Add, Reg::R10, start));
        self.put(end, Reg::R10);
        if once.unroll == 1 {
            return self.guarded(i, here, end, once);
        }
        if !once.unroll.is_power_of_two() {
            return Err(Error::internal("emit", "unrolled by no power of two"));
        }
        // The first loop makes the full turns, and the second loop makes the remaining iterations
        // one by one.
        let main_end = self.alloc(reserve);
        self.code.push(Inst::Math(Math::And, Reg::RAX, Operand::Imm(once.unroll as i32 - 1)));
        self.multiply(Reg::RAX, Reg::RAX, once.counted());
        self.code.push(Inst::Math(Math::Sub, Reg::R10, Operand::Reg(Reg::RAX)));
        self.put(main_end, Reg::R10);
        self.guarded(i, here, main_end, once)?;
        self.guarded(i, here, end, LoopBody { unroll: 1, ..once })
    }

    /// Emits code for `to = from * k`. A `k` that does not fit into 32 bits is first loaded into
    /// `r11`.
    fn multiply(&mut self, to: Reg, from: Reg, k: i64) {
        match i32::try_from(k) {
            Ok(1) if to == from => {}
            Ok(1) => self.code.push(Inst::Copy(to, from)),
            Ok(k) => self.code.push(Inst::MulBy(to, from, k)),
            Err(_) => {
                self.code.push(Inst::Set(Reg::R11, k));
                self.get_into(Location::Reg(from), to);
                self.code.push(Inst::Mul(to, Operand::Reg(Reg::R11)));
            }
        }
    }

    /// Emits turns of loop `i` that are repeated until the counting pointer is at `end`. If the
    /// pointer is at `end` from the start, no turn is executed.
    fn guarded(&mut self, i: usize, here: Pointers, end: Location, once: LoopBody) -> Result<()> {
        let (done, known) = (self.label(), self.known);
        self.compare(once.counter(here), end);
        self.code.push(Inst::Jump(When::Equal, done));
        self.rotated(i, here, end, once)?;
        self.code.push(Inst::Here(done));
        // If the loop body never ran, the registers of constants still have their contents from
        // before the loop. If these differ from the contents after the loop, the contents are
        // unknown here.
        if self.known != known {
            self.known = Constants::default();
        }
        Ok(())
    }

    /// Emits turns of loop `i` that are repeated until the counting pointer is at `end`. At least
    /// one turn is executed.
    fn rotated(&mut self, i: usize, here: Pointers, end: Location, once: LoopBody) -> Result<()> {
        let head = self.head(once.body);
        self.iterations(here, Offsets::ZERO, once, once.unroll)?;
        let next = Offsets::ZERO.step(once.step, i64::from(once.unroll));
        self.advance(i, Field::UserStep, next.user, here.user);
        self.advance(i, Field::PackedStep, next.packed, here.packed);
        self.compare(once.counter(here), end);
        self.code.push(Inst::Jump(When::NotEqual, head));
        Ok(())
    }

    /// Emits code that loads the constants that all turns of a loop over `body` need, and then the
    /// label to which the loop jumps back. Returns that label.
    fn head(&mut self, body: Body) -> Label {
        self.constants_of(body);
        let head = self.label();
        self.code.push(Inst::Here(head));
        head
    }

    /// Emits `n` iterations of `once`. If the body consists only of moves and permutations, those
    /// of all iterations are emitted as one list, so that moves of neighbouring iterations can
    /// share a store.
    fn iterations(&mut self, base: Pointers, at: Offsets, once: LoopBody, n: u32) -> Result<()> {
        let iterations = (0..i64::from(n)).map(|i| at.step(once.step, i));
        let mut moves = Vec::new();
        for at in iterations.clone() {
            moves.extend(self.moves(once.body.range(), at)?);
        }
        if moves.len() == once.body.len as usize * n as usize {
            return self.accesses(&moves, base);
        }
        iterations.into_iter().try_for_each(|at| self.body(once.body, base, at, false))
    }

    fn compare(&mut self, a: Location, b: Location) {
        let a = self.get(a, Reg::RAX);
        let b = self.operand(b);
        self.code.push(Inst::Math(Math::Cmp, a, b));
    }

    /// Emits a loop whose strides and length are context words.
    fn parametric_loop(
        &mut self,
        i: usize,
        base: Pointers,
        at: Offsets,
        spent: bool,
        (trip, once): (Quantity, LoopBody),
    ) -> Result<()> {
        let reserve = self.needs(once.body);
        let here = self.begin(i, base, at, spent, reserve);
        let end = self.alloc(reserve);
        self.number(i, Field::Bytes, trip, Reg::RAX)?;
        let start = self.operand(once.counter(here));
        self.code.push(Inst::Math(Math::Add, Reg::RAX, start));
        self.put(end, Reg::RAX);
        if trip.per_count { self.guarded(i, here, end, once) } else { self.rotated(i, here, end, once) }
    }

    /// Emits code for `place += k`. In a parametric plan, the code adds the context word for
    /// `field` of operation `i` instead of `k`.
    fn advance(&mut self, i: usize, field: Field, k: i64, place: Location) {
        let Some(Constant::Word(index)) = self.operands.get(i, field) else { return self.add(place, k) };
        let mem = self.word(index);
        match place {
            Location::Reg(_) => self.math(Math::Add, place, Operand::Mem(mem)),
            Location::Slot(_) => {
                self.code.push(Inst::Load(Reg::RAX, mem));
                self.math(Math::Add, place, Operand::Reg(Reg::RAX));
            }
        }
    }

    /// Emits a table loop, which runs `body` once for each row of column `table`.
    fn table_loop(
        &mut self,
        i: usize,
        base: Pointers,
        at: Offsets,
        spent: bool,
        (table, packed_step, body): (TableIndex, i64, Body),
    ) -> Result<()> {
        let column = self.plan.column(table).ok_or_else(|| Error::internal("emit", "no such column"))?;
        let (rows, width) = (column.len() as i64, column.width() as i64);
        let parametric = self.operands.parametric();
        let at = if parametric { at } else { at + self.plan.ops()[i].offsets() };
        let reserve = self.needs(body);
        let start = self.begin(i, base, at, spent, reserve);
        let [row, end, user] = [0; 3].map(|_| self.alloc(reserve));
        // Set up the pointer to the current row of the column, and the address of the end of the
        // column.
        self.value(i, Field::Rows, Reg::RAX)?;
        self.put(row, Reg::RAX);
        if parametric {
            self.value(i, Field::RowsEnd, Reg::RAX)?;
        } else {
            self.add(Location::Reg(Reg::RAX), rows * width);
        }
        self.put(end, Reg::RAX);
        let head = self.head(body);
        // Load the displacement of the row, which has 4 or 8 bytes, and add it to the user address
        // of the table loop.
        let base = self.get(row, Reg::RAX);
        let mem = Mem { base, disp: 0 };
        self.code.push(if width == 4 { Inst::LoadSigned(Reg::RAX, mem) } else { Inst::Load(Reg::RAX, mem) });
        let table_base = self.operand(start.user);
        self.code.push(Inst::Math(Math::Add, Reg::RAX, table_base));
        self.put(user, Reg::RAX);
        self.body(body, Pointers { user, packed: start.packed }, Offsets::ZERO, false)?;
        self.add(row, width);
        self.advance(i, Field::PackedStep, packed_step, start.packed);
        self.compare(row, end);
        self.code.push(Inst::Jump(When::NotEqual, head));
        Ok(())
    }
}

/// One turn of a loop: `unroll` iterations of `body`, which are `step` apart.
#[derive(Clone, Copy)]
pub(super) struct LoopBody {
    step: Offsets,
    unroll: u32,
    body: Body,
}

impl LoopBody {
    fn moving(self) -> Moving {
        Moving::from_step(self.step).unwrap_or(Moving::Packed)
    }

    /// Returns the location of the counting pointer, which is compared with an end address.
    fn counter(self, here: Pointers) -> Location {
        self.moving().choose(here.user, here.packed)
    }

    /// Returns the number of bytes by which an iteration advances the counting pointer, which is
    /// compared with an end address.
    fn counted(self) -> i64 {
        self.moving().choose(self.step.user, self.step.packed)
    }
}
