//! Calls: what a micro-kernel is given, in the order of its C signature (`src/micro/`), where both emitters find it.

use super::{Legal, Op, Plan, Trip, Word};
use crate::kind::Direction;
use crate::micro::Micro;

/// An argument of a micro-kernel, 64 bits. The word is its place in the context of a parametric plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    /// The user address of the call.
    User,
    /// The packed address of the call.
    Packed,
    /// A constant.
    Value(Word, i64),
    /// A trip, times the instance count where it carries that.
    Trip(Word, Trip),
    /// The address of the column in a slot.
    Table(Word, u32),
}

impl Plan<Legal> {
    /// The micro-kernel that operation `i` calls, with its arguments; none if that is no call or names no column.
    pub fn call(&self, i: usize) -> Option<(Micro, Vec<Arg>)> {
        use Arg::{Packed, Table, User, Value};
        let pack = self.direction() == Direction::Pack;
        let rows = |slot: &u32| Some(self.columns().get(*slot as usize)?.len() as i64);
        Some(match self.ops().get(i)? {
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
                let (n, len) = (Value(Word::StepUser, rows(slot)?), Value(Word::Len, *len as i64));
                let packed = Value(Word::StepPacked, *packed);
                (*micro, vec![User, Packed, n, Table(Word::Trip, *slot), packed, len])
            }
            Op::Blocks { slots: [u, p, l], micro, .. } => {
                let n = Value(Word::StepUser, rows(u)?);
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
            Op::Move { .. } | Op::Loop { .. } | Op::Table { .. } | Op::Guard { .. } => return None,
        })
    }
}
