//! Predefined types and operations, which have fixed handles in yaksa's interface.
//!
//! Integer types of C that have the same size and sign are one type here: for example, the handles
//! of `int` and `int32_t` name the same type. Each character type is a type of its own, though, and
//! so are `wchar_t` and `_Bool`.
//!
//! The handle `YAKSA_TYPE__BYTE`, which MPICH passes for `MPI_BYTE`, stands for an unsigned integer
//! of 8 bits. The reason is that bitwise reductions must work on `MPI_BYTE`.

use ddtc::internal::datatype::Named;
use ddtc::internal::kind::Op;
use ddtc::internal::process::Lazy;

use crate::node::{Node, Ref, Shape};

/// Number of handles of predefined types. These handles are the numbers from 0 to 56. Handle 0 is
/// that of the null type, which is counted too.
pub(crate) const TYPES: u64 = 57;

/// Returns the integer type that has a size of `bytes` bytes and is signed if `signed` is true. A
/// size other than 1, 2 and 4 is treated as 8.
const fn integer(bytes: usize, signed: bool) -> Named {
    match (bytes, signed) {
        (1, true) => Named::Int8,
        (2, true) => Named::Int16,
        (4, true) => Named::Int32,
        (_, true) => Named::Int64,
        (1, false) => Named::Uint8,
        (2, false) => Named::Uint16,
        (4, false) => Named::Uint32,
        (_, false) => Named::Uint64,
    }
}

/// Size of C's `long` on the target, in bytes.
const LONG: usize = size_of::<std::ffi::c_long>();
/// Size of `int_fast16_t` and `int_fast32_t` in bytes. glibc makes these types as wide as a
/// register; musl and other C libraries give them 4 bytes.
const FAST: usize = if cfg!(target_env = "gnu") { 8 } else { 4 };

/// Predefined types in the order of their handles. Entry 0 has handle 1.
const NAMED: [Named; TYPES as usize - 1] = [
    Named::CBool,
    Named::Char,
    Named::SignedChar,
    Named::UnsignedChar,
    Named::Wchar,
    // The next handles are those of int8_t to int64_t, then of uint8_t to uint64_t.
    integer(1, true),
    integer(2, true),
    integer(4, true),
    integer(8, true),
    integer(1, false),
    integer(2, false),
    integer(4, false),
    integer(8, false),
    // The next handles are those of int, short, long and long long, each followed by its unsigned
    // variant.
    integer(4, true),
    integer(4, false),
    integer(2, true),
    integer(2, false),
    integer(LONG, true),
    integer(LONG, false),
    integer(8, true),
    integer(8, false),
    // The next 16 handles are four groups: int_fast, uint_fast, int_least and uint_least. In each
    // group, the numbers of bits in the names are 8, 16, 32 and 64.
    integer(1, true),
    integer(FAST, true),
    integer(FAST, true),
    integer(8, true),
    integer(1, false),
    integer(FAST, false),
    integer(FAST, false),
    integer(8, false),
    integer(1, true),
    integer(2, true),
    integer(4, true),
    integer(8, true),
    integer(1, false),
    integer(2, false),
    integer(4, false),
    integer(8, false),
    // The next handles are those of byte, intmax_t, uintmax_t, size_t, intptr_t, uintptr_t and
    // ptrdiff_t.
    integer(1, false),
    integer(8, true),
    integer(8, false),
    integer(8, false),
    integer(8, true),
    integer(8, false),
    integer(8, true),
    Named::Float,
    Named::Double,
    Named::LongDouble,
    Named::CFloatComplex,
    Named::CDoubleComplex,
    Named::CLongDoubleComplex,
    Named::FloatInt,
    Named::DoubleInt,
    Named::LongInt,
    Named::TwoInt,
    Named::ShortInt,
    Named::LongDoubleInt,
];

/// Nodes of the null type and of all predefined types. The index is the type handle.
static ALL: Lazy<Vec<Ref>> = Lazy::new(|| {
    let mut all = vec![Node::empty()];
    for (i, &named) in NAMED.iter().enumerate() {
        // Handles that stand for the same predefined type share one node.
        let made = NAMED[..i].iter().position(|other| *other == named).map(|first| all[first + 1].clone());
        all.push(made.unwrap_or_else(|| Node::named(named).forever()));
    }
    all
});

/// Returns the node of the predefined type, or of the null type, that has the handle `number`.
/// Returns `None` for any other handle.
#[inline]
pub(crate) fn node(number: u64) -> Option<&'static Ref> {
    if number < TYPES { ALL.get(number as usize) } else { None }
}

/// Returns a node for a predefined type of ddtc. If the type has one or more handles in this
/// library, this is the node that these handles share. Otherwise it is a new node.
pub(crate) fn node_of(named: Named) -> Ref {
    let number = NAMED.iter().position(|other| *other == named);
    number.and_then(|i| ALL.get(i + 1)).map_or_else(|| Node::named(named), Ref::clone)
}

/// Returns true if two types count as one type when a struct is constructed: if they have the same
/// node, or if they are integers of the same size, even with different signs. A struct whose
/// members all count as one type is not padded.
pub(crate) fn same(a: &Ref, b: &Ref) -> bool {
    let kind = |node: &Node| match node.shape() {
        Shape::Named(Named::Int8 | Named::Uint8) => 1,
        Shape::Named(Named::Int16 | Named::Uint16) => 2,
        Shape::Named(Named::Int32 | Named::Uint32) => 4,
        Shape::Named(Named::Int64 | Named::Uint64) => 8,
        _ => 0,
    };
    Ref::same(a, b) || (kind(a) > 0 && kind(a) == kind(b))
}

/// What a call that packs or unpacks does with the data at the destination: it replaces them or
/// combines them with the moved data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// The moved bytes replace the bytes at the destination.
    Replace,
    /// The moved elements are combined with the elements at the destination by a reduction
    /// operation, such as a sum.
    Reduce(Op),
}

/// Returns the operation that the interface encodes as `number`, such as 2 for `YAKSA_OP__SUM`;
/// `None` if there is no such operation.
#[inline]
pub(crate) fn operation(number: u64) -> Option<Operation> {
    let op = match number {
        0 => Op::Max,
        1 => Op::Min,
        2 => Op::Sum,
        3 => Op::Prod,
        4 => Op::Land,
        5 => Op::Band,
        6 => Op::Lor,
        7 => Op::Bor,
        8 => Op::Lxor,
        9 => Op::Bxor,
        10 => return Some(Operation::Replace),
        _ => return None,
    };
    Some(Operation::Reduce(op))
}
