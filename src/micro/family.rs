//! Families of micro-kernels as data, and calls of them: each argument has a role.
//!
//! A family says in one place what its code is called, what it is given and in which order, which instances exist, what a call means, and what
//! must hold for it. Plans, their text and their verifier, the context of a kernel, both emitters and precompiled code know roles, never families.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Micro, Permutation};
use crate::column::Column;
use crate::kind::{Direction, Op, Operation};
use crate::nest::{Offsets, Quantity, Value};
use crate::target::Level;

/// Role of an argument of a micro-kernel. Steps, lengths and the entries of tables are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    /// Address of the call in the user's buffer.
    User,
    /// Address of the call in the packed stream.
    Packed,
    /// Number of blocks, rows or instances; of iterations of the outer of two loops.
    Iterations,
    /// From one iteration to the next in the user's buffer.
    UserStep,
    /// From one iteration to the next in the packed stream.
    PackedStep,
    /// Number of iterations of the inner of two loops.
    InnerIterations,
    /// As [`Role::UserStep`], of the inner loop.
    InnerUserStep,
    /// As [`Role::PackedStep`], of the inner loop.
    InnerPackedStep,
    /// Bytes of a block.
    Length,
    /// Offset of every block in the user's buffer.
    UserOffsets,
    /// Offset of every block in the packed stream.
    PackedOffsets,
    /// Bytes of every block.
    Lengths,
    /// The permutation that moves an instance.
    Permutation,
}

impl Role {
    /// Returns the word of the text form.
    pub fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Packed => "packed",
            Role::Iterations => "trip",
            Role::UserStep => "user-step",
            Role::PackedStep => "packed-step",
            Role::InnerIterations => "inner-trip",
            Role::InnerUserStep => "inner-user-step",
            Role::InnerPackedStep => "inner-packed-step",
            Role::Length => "length",
            Role::UserOffsets => "user-offsets",
            Role::PackedOffsets => "packed-offsets",
            Role::Lengths => "lengths",
            Role::Permutation => "permutation",
        }
    }

    /// Says whether it is one of the two addresses, which every call has.
    pub fn is_address(self) -> bool {
        matches!(self, Role::User | Role::Packed)
    }

    /// Whether `argument` is of the kind that the role has.
    fn takes(self, argument: Argument) -> bool {
        match self {
            Role::User | Role::Packed => false,
            Role::Iterations | Role::InnerIterations | Role::Length => {
                matches!(argument, Argument::Number(_))
            }
            Role::UserStep | Role::PackedStep | Role::InnerUserStep | Role::InnerPackedStep => {
                matches!(argument, Argument::Step(_))
            }
            Role::UserOffsets | Role::PackedOffsets | Role::Lengths | Role::Permutation => {
                matches!(argument, Argument::Table(_))
            }
        }
    }
}

/// The argument of one role.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Argument {
    /// A number of iterations or bytes, times the instance count where it carries that.
    Number(Quantity),
    /// A distance in bytes.
    Step(i64),
    /// A table of the plan.
    Table(TableIndex),
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Argument::Number(n) => n.fmt(f),
            Argument::Step(k) => k.fmt(f),
            Argument::Table(i) => write!(f, "table {i}"),
        }
    }
}

/// The place of a table among those of a plan and of its context.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TableIndex(u32);

impl TableIndex {
    /// That of table `place` of a plan.
    pub fn new(place: usize) -> TableIndex {
        TableIndex(place as u32)
    }

    /// Returns its place, from 0.
    pub fn place(self) -> usize {
        self.0 as usize
    }

    /// Returns the table there, if there is one.
    pub fn of(self, tables: &[Table]) -> Option<&Table> {
        tables.get(self.place())
    }
}

impl fmt::Display for TableIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A table that code reads through its context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Table {
    /// Offsets or lengths in bytes.
    Column(Column),
    /// A permutation with its masks.
    Permutation(Arc<Permutation>),
}

impl Table {
    /// Returns the address of its first byte; valid while a clone lives.
    pub fn as_ptr(&self) -> *const u8 {
        match self {
            Table::Column(column) => column.as_ptr(),
            Table::Permutation(permutation) => permutation.as_ptr(),
        }
    }

    /// Returns the bytes of storage.
    pub fn bytes(&self) -> usize {
        match self {
            Table::Column(column) => column.bytes(),
            Table::Permutation(_) => size_of::<Permutation>(),
        }
    }

    /// Returns the column, unless it is a permutation.
    pub fn column(&self) -> Option<&Column> {
        match self {
            Table::Column(column) => Some(column),
            Table::Permutation(_) => None,
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Table::Column(column) => write!(f, "{} rows of i{}", column.len(), 8 * column.width()),
            Table::Permutation(permutation) => permutation.fmt(f),
        }
    }
}

/// A call of a micro-kernel: all of its arguments but the addresses, which the plan gives every operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    callee: Micro,
    /// Ascending by role.
    arguments: Arc<[(Role, Argument)]>,
}

impl Call {
    /// Returns a call of `callee` with `arguments` in any order. Check it with [`Call::verify`].
    pub fn new(callee: Micro, arguments: impl IntoIterator<Item = (Role, Argument)>) -> Call {
        let mut arguments: SmallVec<[_; 8]> = arguments.into_iter().collect();
        arguments.sort_unstable_by_key(|a| a.0);
        Call { callee, arguments: Arc::from(&arguments[..]) }
    }

    /// Returns the micro-kernel that is called.
    pub fn callee(&self) -> Micro {
        self.callee
    }

    /// Returns the arguments, ascending by role.
    pub fn arguments(&self) -> &[(Role, Argument)] {
        &self.arguments
    }

    /// Returns the argument of `role`.
    pub fn argument(&self, role: Role) -> Option<Argument> {
        self.arguments.iter().find(|a| a.0 == role).map(|a| a.1)
    }

    /// Says whether the argument of `role` is a multiple of the instance count.
    pub fn carries_count(&self, role: Role) -> bool {
        matches!(self.argument(role), Some(Argument::Number(n)) if n.per_count)
    }

    /// Returns the column that `role` names in `tables`.
    pub fn column<'t>(&self, tables: &'t [Table], role: Role) -> Option<&'t Column> {
        let Argument::Table(i) = self.argument(role)? else { return None };
        i.of(tables)?.column()
    }

    /// Checks that these are the arguments that the callee takes, and what its family asks of them.
    ///
    /// # Errors
    /// The rule that does not hold.
    pub fn verify(&self, tables: &[Table]) -> Result<(), &'static str> {
        let mut roles: Vec<Role> = self.callee.parameters().to_vec();
        roles.retain(|r| !r.is_address());
        roles.sort_unstable();
        let given = self.arguments.iter().map(|a| a.0);
        if !given.eq(roles) || self.arguments.iter().any(|&(role, a)| !role.takes(a)) {
            return Err("other arguments than its micro-kernel takes");
        }
        let mut counted = 0;
        for &(role, argument) in self.arguments.iter() {
            match argument {
                Argument::Number(n) if n.k == 0 => return Err("call that moves nothing"),
                Argument::Number(n) => {
                    counted += u32::from(n.per_count);
                    let made = self.callee.made_for().is_none_or(|len| n.is(len));
                    if role == Role::Length && !made {
                        return Err("micro-kernel made for another length");
                    }
                }
                Argument::Step(_) => {}
                Argument::Table(i) => match (i.of(tables), role) {
                    (Some(Table::Permutation(_)), Role::Permutation) => {}
                    (Some(Table::Column(_)), role) if role != Role::Permutation => {}
                    _ => return Err("no table, or one of another kind"),
                },
            }
        }
        if counted > 1 {
            return Err("call that carries the instance count twice");
        }
        let family = self.callee.family();
        (family.check)(&Actual { call: self, tables, count: 1 })
    }

    /// Calls `f(offset, bytes)` for every block that the call moves for `count` instances, by the meaning of its family: in order where order
    /// matters, else in the order in which an overlap would show.
    ///
    /// # Panics
    /// If the call does not verify.
    pub fn blocks(&self, tables: &[Table], count: u64, f: &mut dyn FnMut(Offsets, u64)) {
        (self.callee.family().blocks)(&Actual { call: self, tables, count }, f);
    }
}

/// The arguments of a call for some number of instances, as a family reads them.
pub struct Actual<'a> {
    call: &'a Call,
    tables: &'a [Table],
    count: u64,
}

impl Actual<'_> {
    /// Returns the micro-kernel that is called.
    pub fn callee(&self) -> Micro {
        self.call.callee
    }

    fn argument(&self, role: Role) -> Argument {
        self.call.argument(role).unwrap_or_else(|| panic!("call without {}", role.name()))
    }

    /// Returns a number of iterations or bytes.
    ///
    /// # Panics
    /// If the call has no such number; the same for the other arguments.
    pub fn number(&self, role: Role) -> u64 {
        let Argument::Number(n) = self.argument(role) else { panic!("{} is no number", role.name()) };
        n.at(self.count)
    }

    /// Says whether a number is a multiple of the instance count.
    pub fn carries_count(&self, role: Role) -> bool {
        self.call.carries_count(role)
    }

    /// Returns a distance in bytes.
    pub fn step(&self, role: Role) -> i64 {
        let Argument::Step(k) = self.argument(role) else { panic!("{} is no step", role.name()) };
        k
    }

    /// Both steps of an iteration.
    pub fn steps(&self, user: Role, packed: Role) -> Offsets {
        Offsets::new(self.step(user), self.step(packed))
    }

    /// Returns a column.
    pub fn column(&self, role: Role) -> &Column {
        self.call.column(self.tables, role).unwrap_or_else(|| panic!("{} is no column", role.name()))
    }

    /// Returns the permutation.
    pub fn permutation(&self) -> &Permutation {
        let Argument::Table(i) = self.argument(Role::Permutation) else { panic!("no table") };
        let Some(Table::Permutation(permutation)) = i.of(self.tables) else { panic!("no permutation") };
        permutation
    }
}

/// A family of micro-kernels: one algorithm, made for several lengths, tables, directions and levels.
pub struct Family {
    /// Its name in plans, listings and reports.
    pub name: &'static str,
    /// Whether its code goes one way only; otherwise the caller exchanges the sides.
    pub directed: bool,
    /// The parameters of its C functions, in order.
    pub parameters: fn(Direction) -> &'static [Role],
    /// Writes the meaning of a variant's number: a part of the name, with its dot.
    pub variant: fn(u8, &mut fmt::Formatter<'_>) -> fmt::Result,
    /// Returns the transform of a block's bytes on their way, by the number of the variant.
    pub transform: fn(u8) -> Transform,
    /// Address of the code; 0 where the machine that this was built for has none.
    pub address: fn(Micro) -> usize,
    /// Checks a call beyond the kinds of its arguments.
    pub check: fn(&Actual<'_>) -> Result<(), &'static str>,
    /// The blocks that a call moves ([`Call::blocks`]).
    pub blocks: fn(&Actual<'_>, &mut dyn FnMut(Offsets, u64)),
    /// The call that moves a loop over equal blocks, if such loops are better moved by this family than by `strided`, which moves any.
    pub takes: fn(&Repeated) -> Option<Call>,
}

/// Transform of a block's bytes on their way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transform {
    /// Nothing.
    Copied,
    /// In units of so many bytes, which end on the other side in reverse order.
    Reversed(u8),
    /// Values, combined with those at their destination.
    Combined(Op, Value),
    /// They end in reverse order: a block is one unit, of whatever size.
    Mirrored,
}

impl Transform {
    /// Says whether it may stand in a plan for `operation`: a copy only where values end as they were.
    pub fn serves(self, operation: Operation) -> bool {
        match (self, operation) {
            (Transform::Copied, Operation::Reduce(op)) => op == Op::Replace,
            (Transform::Copied, _) => true,
            _ => self.operation() == operation,
        }
    }

    /// The operation that it belongs to.
    fn operation(self) -> Operation {
        match self {
            Transform::Copied => Operation::Bytes,
            Transform::Reversed(_) | Transform::Mirrored => Operation::External32,
            Transform::Combined(op, _) => Operation::Reduce(op),
        }
    }
}

/// An innermost loop over equal blocks, as the schedule finds it: what a family is asked to take ([`Family::takes`]).
///
/// Invariant of what takes it: the bytes at the end are those of the blocks moved one after the other, where destinations overlap too.
#[derive(Clone, Copy, Debug)]
pub struct Repeated {
    /// Which way.
    pub direction: Direction,
    /// Of the target.
    pub level: Level,
    /// Number of blocks.
    pub n: Quantity,
    /// From one block to the next.
    pub step: Offsets,
    /// Bytes of a block.
    pub len: Quantity,
}

impl Family {
    /// For families without variants.
    pub(super) fn plain(_: u8, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    /// For families that move bytes as they are.
    pub(super) fn copied(_: u8) -> Transform {
        Transform::Copied
    }

    /// For families that the schedule chooses by other means.
    pub(super) fn nothing(_: &Repeated) -> Option<Call> {
        None
    }

    /// For families that ask nothing more.
    pub(super) fn anything(_: &Actual<'_>) -> Result<(), &'static str> {
        Ok(())
    }
}

impl PartialEq for Family {
    fn eq(&self, other: &Family) -> bool {
        self.name == other.name
    }
}

impl Eq for Family {}

impl Hash for Family {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::micro::{FAMILIES, permute};
    use crate::target::Target;

    /// A copy leaves values as they were in the stream, which of all reductions only `replace` asks for.
    #[test]
    fn a_copy_serves_no_sum() {
        for op in Op::ALL {
            let served = Transform::Copied.serves(Operation::Reduce(op));
            assert_eq!(served, op == Op::Replace, "{op}");
        }
        assert!(
            Transform::Copied.serves(Operation::Bytes) && Transform::Copied.serves(Operation::External32)
        );
        assert!(!Transform::Mirrored.serves(Operation::Bytes));
    }

    /// A pattern and a column are tables both, and each is one for its own roles alone.
    #[test]
    fn tables_are_of_the_kind_that_a_role_takes() {
        let part = |user, packed| permute::Part { user, packed, len: 8, unit: 1 };
        let target = Target::new(Level::Avx512).with_vbmi();
        let pattern = Permutation::new(&[part(0, 8), part(16, 0)], 24, target).unwrap();
        let column = Table::Column(Column::from(vec![0, 8]));
        let call = permute::call(Direction::Pack, Quantity::fixed(3), (&pattern, TableIndex::new(0)));
        assert_eq!(call.verify(&[Table::Permutation(Arc::new(pattern))]), Ok(()));
        assert!(call.verify(std::slice::from_ref(&column)).is_err() && call.verify(&[]).is_err());
    }

    /// Keys and calls are shown with the family's name, by which families are told apart.
    #[test]
    fn families_show_their_names() {
        for family in FAMILIES {
            assert_eq!(format!("{family:?}"), family.name);
            assert_eq!(FAMILIES.iter().filter(|other| *other == family).count(), 1, "{}", family.name);
        }
    }
}
