//! Loops in Cranelift's representation. The loops are rotated, which means that the condition is
//! tested at the end of a turn. They advance a user pointer and a packed pointer, and one of the
//! two is compared with an end address.
//!
//! The packed pointer usually serves as the loop counter, because in a packed stream it advances in
//! every iteration. In a fused copy, the packed side is a second layout, in which a loop may have
//! step 0. The user pointer is then compared instead. A loop whose trip carries the instance count
//! is skipped if it has no iterations. Loops with constant trips need no such check, because empty
//! loops do not reach a plan.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, MemFlagsData, Value, types};

use super::{Builder, Pointers};
use crate::error::{Error, Result};
use crate::micro::TableIndex;
use crate::plan::{Body, Field, Moving, Offsets, Quantity};

impl Pointers {
    /// Returns the pointer that is compared with an end address: that of the side `moving`.
    fn counter(self, moving: Moving) -> Value {
        moving.choose(self.user, self.packed)
    }
}

/// Returns the side that serves as the counter of a loop, and the number of bytes by which one
/// iteration advances on that side.
fn counted(step: Offsets) -> Result<(Moving, i64)> {
    let moving =
        Moving::from_step(step).ok_or_else(|| Error::internal("emit", "loop that moves on neither side"))?;
    Ok((moving, moving.choose(step.user, step.packed)))
}

impl Builder<'_, '_> {
    /// Emits a loop of `trip` iterations of `body`, with `unroll` iterations in each turn. The
    /// first iteration is at `start`.
    pub(super) fn counted_loop(
        &mut self,
        start: Pointers,
        trip: Quantity,
        step: Offsets,
        unroll: u32,
        body: Body,
    ) -> Result<()> {
        let (moving, bytes) = counted(step)?;
        if trip.per_count {
            return self.run_time_loop(start, trip, step, unroll, body);
        }
        // The trip is a constant. Emit the full turns first: as a loop if there are several,
        // otherwise as straight-line code. Then write out the iterations that remain.
        let (rounds, rest) = (trip.k / u64::from(unroll), trip.k % u64::from(unroll));
        let mut here = start;
        match rounds {
            0 => {}
            1 => {
                self.iterations(here, step, unroll, body)?;
                here = self.moved(here, Offsets::ZERO.step(step, i64::from(unroll)));
            }
            _ => {
                let bytes = bytes.wrapping_mul((rounds * u64::from(unroll)) as i64);
                let end = self.b.ins().iadd_imm_s(here.counter(moving), bytes);
                here = self.rotated(here, end, step, unroll, body)?;
            }
        }
        self.iterations(here, step, rest as u32, body)
    }

    fn run_time_loop(
        &mut self,
        start: Pointers,
        trip: Quantity,
        step: Offsets,
        unroll: u32,
        body: Body,
    ) -> Result<()> {
        // Compute the number of iterations and the address at which the counting side ends.
        let k = self.constant(trip.k as i64);
        let n = if trip.k == 1 { self.count } else { self.b.ins().imul(k, self.count) };
        let (moving, once) = counted(step)?;
        let bytes = self.b.ins().imul_imm_s(n, once);
        let end = self.b.ins().iadd(start.counter(moving), bytes);
        if unroll == 1 {
            self.guarded(start, end, step, 1, body)?;
            return Ok(());
        }
        // The loop is unrolled by a power of two, so a mask gives the number of iterations that do
        // not fill a turn. The first loop makes the full turns, and the second loop makes the
        // remaining iterations one by one.
        let rest = self.b.ins().band_imm_u(n, i64::from(unroll) - 1);
        let rest_bytes = self.b.ins().imul_imm_s(rest, once);
        let main_end = self.b.ins().isub(end, rest_bytes);
        let here = self.guarded(start, main_end, step, unroll, body)?;
        self.guarded(here, end, step, 1, body)?;
        Ok(())
    }

    /// Emits a rotated loop that is skipped if it has no iterations, and returns the pointers after
    /// it.
    fn guarded(
        &mut self,
        start: Pointers,
        end: Value,
        step: Offsets,
        unroll: u32,
        body: Body,
    ) -> Result<Pointers> {
        let (enter, done) = (self.b.create_block(), self.b.create_block());
        let user = self.b.append_block_param(done, types::I64);
        let packed = self.b.append_block_param(done, types::I64);
        let (moving, _) = counted(step)?;
        let some = self.b.ins().icmp(IntCC::NotEqual, start.counter(moving), end);
        let skip = [BlockArg::Value(start.user), BlockArg::Value(start.packed)];
        self.b.ins().brif(some, enter, &[], done, &skip);
        self.b.switch_to_block(enter);
        let after = self.rotated(start, end, step, unroll, body)?;
        self.b.ins().jump(done, &[BlockArg::Value(after.user), BlockArg::Value(after.packed)]);
        self.b.switch_to_block(done);
        Ok(Pointers { user, packed })
    }

    /// Emits a rotated loop, which makes at least one turn, and returns the pointers after it.
    fn rotated(
        &mut self,
        start: Pointers,
        end: Value,
        step: Offsets,
        unroll: u32,
        body: Body,
    ) -> Result<Pointers> {
        let (head, done) = (self.b.create_block(), self.b.create_block());
        let user = self.b.append_block_param(head, types::I64);
        let packed = self.b.append_block_param(head, types::I64);
        self.b.ins().jump(head, &[BlockArg::Value(start.user), BlockArg::Value(start.packed)]);
        self.b.switch_to_block(head);
        let here = Pointers { user, packed };
        self.iterations(here, step, unroll, body)?;
        let next = self.moved(here, Offsets::ZERO.step(step, i64::from(unroll)));
        let (moving, _) = counted(step)?;
        let more = self.b.ins().icmp(IntCC::NotEqual, next.counter(moving), end);
        let again = [BlockArg::Value(next.user), BlockArg::Value(next.packed)];
        self.b.ins().brif(more, head, &again, done, &[]);
        self.b.switch_to_block(done);
        Ok(next)
    }

    fn iterations(&mut self, base: Pointers, step: Offsets, n: u32, body: Body) -> Result<()> {
        (0..i64::from(n)).try_for_each(|i| self.body(body, base, Offsets::ZERO.step(step, i)))
    }

    /// Emits the loop `i`, whose strides and length are context words.
    pub(super) fn parametric_loop(
        &mut self,
        i: usize,
        start: Pointers,
        (trip, step): (Quantity, Offsets),
        body: Body,
    ) -> Result<()> {
        let (moving, _) = counted(step)?;
        let mut bytes = self.value(i, Field::Bytes)?;
        if trip.per_count {
            bytes = self.b.ins().imul(bytes, self.count);
        }
        let end = self.b.ins().iadd(start.counter(moving), bytes);
        if trip.per_count {
            let (enter, done) = (self.b.create_block(), self.b.create_block());
            let some = self.b.ins().icmp(IntCC::NotEqual, start.counter(moving), end);
            self.b.ins().brif(some, enter, &[], done, &[]);
            self.b.switch_to_block(enter);
            self.parametric_rotated(i, start, (moving, end), body)?;
            self.b.ins().jump(done, &[]);
            self.b.switch_to_block(done);
            return Ok(());
        }
        self.parametric_rotated(i, start, (moving, end), body)
    }

    fn parametric_rotated(
        &mut self,
        i: usize,
        start: Pointers,
        (moving, end): (Moving, Value),
        body: Body,
    ) -> Result<()> {
        let (head, done) = (self.b.create_block(), self.b.create_block());
        let user = self.b.append_block_param(head, types::I64);
        let packed = self.b.append_block_param(head, types::I64);
        self.b.ins().jump(head, &[BlockArg::Value(start.user), BlockArg::Value(start.packed)]);
        self.b.switch_to_block(head);
        self.body(body, Pointers { user, packed }, Offsets::ZERO)?;
        // The strides are loaded from the context in every turn. This costs less than keeping them
        // in registers across the calls of the body.
        let (user_step, packed_step) = (self.value(i, Field::UserStep)?, self.value(i, Field::PackedStep)?);
        let next_user = self.b.ins().iadd(user, user_step);
        let next_packed = self.b.ins().iadd(packed, packed_step);
        let next = Pointers { user: next_user, packed: next_packed };
        let more = self.b.ins().icmp(IntCC::NotEqual, next.counter(moving), end);
        let again = [BlockArg::Value(next_user), BlockArg::Value(next_packed)];
        self.b.ins().brif(more, head, &again, done, &[]);
        self.b.switch_to_block(done);
        Ok(())
    }

    /// Emits table loop `i`, which runs `body` once for each row of column `table`.
    pub(super) fn table_loop(
        &mut self,
        i: usize,
        start: Pointers,
        table: TableIndex,
        body: Body,
    ) -> Result<()> {
        let column = self.plan.column(table).ok_or_else(|| Error::internal("emit", "no such column"))?;
        let (rows, width) = (column.len() as i64, column.width() as i64);
        let table = self.value(i, Field::Rows)?;
        let end = if self.operands.parametric() {
            self.value(i, Field::RowsEnd)?
        } else {
            self.b.ins().iadd_imm_s(table, rows * width)
        };
        let (head, done) = (self.b.create_block(), self.b.create_block());
        let row = self.b.append_block_param(head, types::I64);
        let packed = self.b.append_block_param(head, types::I64);
        self.b.ins().jump(head, &[BlockArg::Value(table), BlockArg::Value(start.packed)]);
        self.b.switch_to_block(head);
        let flags = MemFlagsData::trusted();
        let displacement = if width == 4 {
            self.b.ins().sload32(flags, row, 0)
        } else {
            self.b.ins().load(types::I64, flags, row, 0)
        };
        let user = self.b.ins().iadd(start.user, displacement);
        self.body(body, Pointers { user, packed }, Offsets::ZERO)?;
        let next_row = self.b.ins().iadd_imm_s(row, width);
        let packed_step = self.value(i, Field::PackedStep)?;
        let next_packed = self.b.ins().iadd(packed, packed_step);
        let more = self.b.ins().icmp(IntCC::NotEqual, next_row, end);
        let again = [BlockArg::Value(next_row), BlockArg::Value(next_packed)];
        self.b.ins().brif(more, head, &again, done, &[]);
        self.b.switch_to_block(done);
        Ok(())
    }
}
