//! Families of micro-kernels as data, and calls of micro-kernels, in which each argument has a
//! role. A family is all micro-kernels of one C signature and one meaning.
//!
//! A family states in one place how its code is called, which arguments it takes in which order,
//! which micro-kernels exist, what a call means, and which conditions a call must fulfil. Plans,
//! their text form and their verifier, the context of a kernel, both emitters and precompiled code
//! therefore know only roles and need no code for each family.

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
    /// Address in the user's buffer at which the call begins.
    User,
    /// Address in the packed stream at which the call begins.
    Packed,
    /// Number of iterations of the loop over blocks, rows of a table, or instances of a layout. If
    /// a micro-kernel has two nested loops, it is the number of iterations of the outer one.
    Iterations,
    /// Distance from one iteration to the next in the user's buffer.
    UserStep,
    /// Distance from one iteration to the next in the packed stream.
    PackedStep,
    /// Number of iterations of the inner of two nested loops.
    InnerIterations,
    /// Distance from one iteration of the inner loop to the next in the user's buffer.
    InnerUserStep,
    /// Distance from one iteration of the inner loop to the next in the packed stream.
    InnerPackedStep,
    /// Number of bytes of a block.
    Length,
    /// Table with the offset of every block in the user's buffer.
    UserOffsets,
    /// Table with the offset of every block in the packed stream.
    PackedOffsets,
    /// Table with the number of bytes of every block.
    Lengths,
    /// Table of the permutation that moves the bytes of one instance of a small layout.
    Permutation,
}

impl Role {
    /// Returns the word that stands for the role in the text forms of plans and calls.
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

    /// Returns true for the roles of the two addresses, in the user's buffer and in the packed
    /// stream, which every call has.
    pub fn is_address(self) -> bool {
        matches!(self, Role::User | Role::Packed)
    }

    /// Returns true if `argument` is of the kind that this role takes. The two addresses of a call
    /// are not among its arguments, so the roles `User` and `Packed` take no argument.
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

/// Value of the argument that a call of a micro-kernel has for one role.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Argument {
    /// Number of iterations or of bytes. If the quantity counts per instance, the number that the
    /// code gets is the constant of the quantity times the instance count.
    Number(Quantity),
    /// Distance in bytes.
    Step(i64),
    /// Index of a table of the plan.
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

/// Index of a table in a plan, which is the compiler's list of moves, loops and calls. The table
/// has the same index in the context, from which the code of the plan reads the addresses of its
/// tables.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TableIndex(u32);

impl TableIndex {
    /// Returns the index of the table at `place` in the plan's list of tables, counted from 0.
    pub fn new(place: usize) -> TableIndex {
        TableIndex(place as u32)
    }

    /// Returns the index of the table as a number, counted from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the table at this index of `tables`, or `None` if the list is too short.
    pub fn find(self, tables: &[Table]) -> Option<&Table> {
        tables.get(self.index())
    }
}

impl fmt::Display for TableIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Table that the code of a plan reads at run time. The code finds the table's address in its
/// context, a table of constants and addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Table {
    /// Offsets or lengths in bytes.
    Column(Column),
    /// Permutation with its masks.
    Permutation(Arc<Permutation>),
}

impl Table {
    /// Returns the address of the first byte of the table. The address is valid as long as a clone
    /// of the table lives.
    pub fn as_ptr(&self) -> *const u8 {
        match self {
            Table::Column(column) => column.as_ptr(),
            Table::Permutation(permutation) => permutation.as_ptr(),
        }
    }

    /// Returns the number of bytes of memory that the table takes.
    pub fn bytes(&self) -> usize {
        match self {
            Table::Column(column) => column.bytes(),
            Table::Permutation(_) => size_of::<Permutation>(),
        }
    }

    /// Returns the column of offsets or lengths, or `None` if the table is a permutation.
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

/// Call of a micro-kernel in a plan (the compiler's list of moves, loops and calls), with all of
/// its arguments except the two addresses. The plan states the addresses separately, as it does for
/// each of its operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    callee: Micro,
    /// The arguments of the call, in ascending order of their roles.
    arguments: Arc<[(Role, Argument)]>,
}

impl Call {
    /// Returns a call of the micro-kernel `callee`; the order of `arguments` does not matter. This
    /// function checks nothing; [`Call::verify`] does.
    pub fn new(callee: Micro, arguments: impl IntoIterator<Item = (Role, Argument)>) -> Call {
        let mut arguments: SmallVec<[_; 8]> = arguments.into_iter().collect();
        arguments.sort_unstable_by_key(|a| a.0);
        Call { callee, arguments: Arc::from(&arguments[..]) }
    }

    /// Returns the micro-kernel that is called.
    pub fn callee(&self) -> Micro {
        self.callee
    }

    /// Returns the arguments of the call, in ascending order of their roles.
    pub fn arguments(&self) -> &[(Role, Argument)] {
        &self.arguments
    }

    /// Returns the argument that the call has for `role`, or `None` if the call has no such
    /// argument.
    pub fn argument(&self, role: Role) -> Option<Argument> {
        self.arguments.iter().find(|a| a.0 == role).map(|a| a.1)
    }

    /// Returns true if the argument for `role` is a number that is multiplied by the instance
    /// count.
    pub fn carries_count(&self, role: Role) -> bool {
        matches!(self.argument(role), Some(Argument::Number(n)) if n.per_count)
    }

    /// Returns the column (table of offsets or lengths) in `tables` to which the argument for
    /// `role` refers, or `None` if there is no such argument or it refers to no column.
    pub fn column<'t>(&self, tables: &'t [Table], role: Role) -> Option<&'t Column> {
        let Argument::Table(i) = self.argument(role)? else { return None };
        i.find(tables)?.column()
    }

    /// Checks that the arguments are those that the called micro-kernel takes, and that the
    /// arguments fulfil the conditions of its family.
    ///
    /// # Errors
    /// Returns the rule that the call breaks.
    pub fn verify(&self, tables: &[Table]) -> Result<(), &'static str> {
        // The arguments of the call are sorted by role. Their roles must therefore be equal to the
        // sorted roles of the micro-kernel's parameters without the addresses.
        let mut roles: Vec<Role> = self.callee.parameters().to_vec();
        roles.retain(|r| !r.is_address());
        roles.sort_unstable();
        let given = self.arguments.iter().map(|a| a.0);
        if !given.eq(roles) || self.arguments.iter().any(|&(role, a)| !role.takes(a)) {
            return Err("other arguments than its micro-kernel takes");
        }
        // Each argument is checked by itself: numbers are not 0, a length is the one for which the
        // called micro-kernel is made, and table indices refer to tables of the right kind.
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
                Argument::Table(i) => match (i.find(tables), role) {
                    (Some(Table::Permutation(_)), Role::Permutation) => {}
                    (Some(Table::Column(_)), role) if role != Role::Permutation => {}
                    _ => return Err("no table, or one of another kind"),
                },
            }
        }
        // At most one argument may be a number that is multiplied by the instance count. The family
        // then checks its own conditions for a single instance.
        if counted > 1 {
            return Err("call that carries the instance count twice");
        }
        let family = self.callee.family();
        (family.check)(&Actual { call: self, tables, count: 1 })
    }

    /// Calls `f(offset, bytes)` for every block that the call moves for `count` instances,
    /// according to the family's definition. If the order in which blocks are moved matters, the
    /// blocks come in this order. Otherwise they come in an order in which blocks with overlapping
    /// destinations would leave other bytes than the loops for which the call stands.
    ///
    /// # Panics
    /// If an argument that the family reads is missing or of the wrong kind, or if a column is too
    /// short, which [`Call::verify`] excludes.
    pub fn blocks(&self, tables: &[Table], count: u64, f: &mut dyn FnMut(Offsets, u64)) {
        (self.callee.family().blocks)(&Actual { call: self, tables, count }, f);
    }
}

/// Arguments of a call of a micro-kernel for a certain number of instances. The functions of a
/// [`Family`] get the arguments of a call in this form.
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

    /// Returns the number of iterations or bytes for `role`, for all instances.
    ///
    /// # Panics
    /// If the call has no argument for this role, or one that is not a number. The methods that
    /// return other kinds of arguments panic in the same way.
    pub fn number(&self, role: Role) -> u64 {
        let Argument::Number(n) = self.argument(role) else { panic!("{} is no number", role.name()) };
        n.for_count(self.count)
    }

    /// Returns true if the argument for `role` is a number that is multiplied by the instance
    /// count.
    pub fn carries_count(&self, role: Role) -> bool {
        self.call.carries_count(role)
    }

    /// Returns the distance in bytes that the call has as the argument for `role`. Panics if the
    /// call has no such distance.
    pub fn step(&self, role: Role) -> i64 {
        let Argument::Step(k) = self.argument(role) else { panic!("{} is no step", role.name()) };
        k
    }

    /// Returns the distances in bytes from one iteration to the next: in the user's buffer for the
    /// role `user`, and in the packed stream for the role `packed`. Panics if the call lacks one of
    /// the distances.
    pub fn steps(&self, user: Role, packed: Role) -> Offsets {
        Offsets::new(self.step(user), self.step(packed))
    }

    /// Returns the column (table of offsets or lengths) that the call has as the argument for
    /// `role`. Panics if the call has no such column.
    pub fn column(&self, role: Role) -> &Column {
        self.call.column(self.tables, role).unwrap_or_else(|| panic!("{} is no column", role.name()))
    }

    /// Returns the permutation of the call. Panics if the call has no permutation.
    pub fn permutation(&self) -> &Permutation {
        let Argument::Table(i) = self.argument(Role::Permutation) else { panic!("no table") };
        let Some(Table::Permutation(permutation)) = i.find(self.tables) else { panic!("no permutation") };
        permutation
    }
}

/// Family of micro-kernels: one algorithm, with code for several block lengths, kinds of tables,
/// directions and levels of instruction sets.
pub struct Family {
    /// Name of the family in the text forms of plans, in listings of machine code and in reports.
    /// Two families with the same name are equal.
    pub name: &'static str,
    /// Whether each function is made for one direction, packing or unpacking. Otherwise the same
    /// function serves both directions, and the caller exchanges source and destination.
    pub directed: bool,
    /// Returns the roles of the parameters of the family's C functions for a direction, in the
    /// order of the parameters.
    pub parameters: fn(Direction) -> &'static [Role],
    /// Writes the part of a micro-kernel's name that stands for the variant with this number,
    /// including its leading dot.
    pub variant: fn(u8, &mut fmt::Formatter<'_>) -> fmt::Result,
    /// Returns what a micro-kernel of the variant with this number does with the bytes of a block:
    /// it copies, reverses or combines them.
    pub transform: fn(u8) -> Transform,
    /// Returns the address of the code of a micro-kernel; 0 if the architecture of this build has
    /// no such code.
    pub address: fn(Micro) -> usize,
    /// Checks the conditions of this family for a call, beyond those on the kinds of arguments,
    /// which [`Call::verify`] checks for all families.
    pub check: fn(&Actual<'_>) -> Result<(), &'static str>,
    /// Calls the given function with the offsets and the length of every block that a call moves
    /// ([`Call::blocks`]).
    pub blocks: fn(&Actual<'_>, &mut dyn FnMut(Offsets, u64)),
    /// Returns the call that moves a loop over equal blocks, if this family moves the blocks of
    /// this loop faster than the family `strided`, which can move any such loop. Otherwise it
    /// returns `None`.
    pub takes: fn(&Repeated) -> Option<Call>,
}

/// What a micro-kernel does with the bytes of a block on their way from the source to the
/// destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transform {
    /// Bytes are copied as they are.
    Copied,
    /// The block is divided into units of this number of bytes, and the bytes of each unit are
    /// reversed.
    Reversed(u8),
    /// The block consists of values, which are combined with the values at their destination.
    Combined(Op, Value),
    /// All bytes of the block are reversed: the block is a single unit, which may have any size.
    Mirrored,
}

impl Transform {
    /// Returns true if a call of a micro-kernel with this transform may occur in a plan for
    /// `operation`. A plain copy may occur in plans for `Bytes`, for `External32`, and for the
    /// reduction `Replace`, but for no other reduction. In a plan for `External32`, a plain copy
    /// moves the values that need no conversion. Any other transform may occur only in plans for
    /// the operation to which it belongs.
    pub fn serves(self, operation: Operation) -> bool {
        match (self, operation) {
            (Transform::Copied, Operation::Reduce(op)) => op == Op::Replace,
            (Transform::Copied, _) => true,
            _ => self.operation() == operation,
        }
    }

    /// Returns the operation of a plan, such as `External32`, to which the transform belongs.
    fn operation(self) -> Operation {
        match self {
            Transform::Copied => Operation::Bytes,
            Transform::Reversed(_) | Transform::Mirrored => Operation::External32,
            Transform::Combined(op, _) => Operation::Reduce(op),
        }
    }
}

/// Innermost loop over equal blocks at constant steps. The module `schedule`, which makes plans,
/// finds such loops and offers them to the families of micro-kernels ([`Family::takes`]).
///
/// Invariant of a family that takes such a loop: the destination has the same bytes at the end as
/// if the blocks had been moved one after the other, even if destinations overlap.
#[derive(Clone, Copy, Debug)]
pub struct Repeated {
    /// Direction in which the loop moves bytes.
    pub direction: Direction,
    /// Level of the target of the plan.
    pub level: Level,
    /// Number of blocks.
    pub n: Quantity,
    /// Distances from one block to the next.
    pub step: Offsets,
    /// Number of bytes of a block.
    pub len: Quantity,
}

impl Family {
    /// Writes nothing. This is the function [`Family::variant`] of families without variants.
    pub(super) fn plain(_: u8, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    /// Returns [`Transform::Copied`]. This is the function [`Family::transform`] of families that
    /// move bytes as they are.
    pub(super) fn copied(_: u8) -> Transform {
        Transform::Copied
    }

    /// Returns `None`. This is the function [`Family::takes`] of families that the module
    /// `schedule`, which makes plans, chooses by other means.
    pub(super) fn nothing(_: &Repeated) -> Option<Call> {
        None
    }

    /// Accepts every call. This is the function [`Family::check`] of families that have no
    /// conditions of their own.
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

    /// A plain copy does not change the values of the packed stream. The only reduction that a
    /// plain copy serves is therefore `replace`.
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

    /// Permutations and columns (tables of offsets or lengths) are both tables, but each fits only
    /// the roles that take this kind of table.
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

    /// Two families are equal if their names are equal, so every family must have a name of its
    /// own. The debug form of a family is its name.
    #[test]
    fn families_show_their_names() {
        for family in FAMILIES {
            assert_eq!(format!("{family:?}"), family.name);
            assert_eq!(FAMILIES.iter().filter(|other| *other == family).count(), 1, "{}", family.name);
        }
    }
}
