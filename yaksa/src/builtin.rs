//! The types and operations that the interface has by fixed numbers.
//!
//! What C has by several names is one type here, by size and sign: the numbers of `int` and `int32_t` name the same. A byte is an unsigned integer of 8 bits,
//! since MPI's bytes come in by that number and are combined bit by bit.

use ddtc::internal::datatype::Named;
use ddtc::internal::kind::Op;
use ddtc::internal::process::Lazy;

use crate::node::{Node, Ref, Shape};

/// Numbers of predefined types are below this one; 0 is the null type.
pub(crate) const TYPES: u64 = 57;

/// Bytes of C's `wchar_t`, `long`, `size_t`, pointers and `int_fast16_t`, `int_fast32_t`, as the C compilers of these targets have them.
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

const LONG: usize = size_of::<std::ffi::c_long>();
/// glibc makes them as wide as a register; musl and others 4 bytes.
const FAST: usize = if cfg!(target_env = "gnu") { 8 } else { 4 };

/// The named type of a number from 1 on.
const NAMED: [Named; TYPES as usize - 1] = [
    Named::CBool,
    Named::Char,
    Named::SignedChar,
    Named::UnsignedChar,
    Named::Wchar,
    // int8_t to int64_t, uint8_t to uint64_t.
    integer(1, true),
    integer(2, true),
    integer(4, true),
    integer(8, true),
    integer(1, false),
    integer(2, false),
    integer(4, false),
    integer(8, false),
    // int, short, long, long long, each with its unsigned.
    integer(4, true),
    integer(4, false),
    integer(2, true),
    integer(2, false),
    integer(LONG, true),
    integer(LONG, false),
    integer(8, true),
    integer(8, false),
    // The fast ones, then the least ones.
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
    // byte, intmax_t, uintmax_t, size_t, intptr_t, uintptr_t, ptrdiff_t.
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

static ALL: Lazy<Vec<Ref>> = Lazy::new(|| {
    let mut all = vec![Node::empty()];
    for (i, &named) in NAMED.iter().enumerate() {
        // What is of one named type is one node.
        let made = NAMED[..i].iter().position(|other| *other == named).map(|first| all[first + 1].clone());
        all.push(made.unwrap_or_else(|| Node::named(named).forever()));
    }
    all
});

/// Returns the predefined type of a number.
#[inline]
pub(crate) fn node(number: u64) -> Option<&'static Ref> {
    if number < TYPES { ALL.get(number as usize) } else { None }
}

/// Returns the node of a named type: that of its numbers, or one of its own.
pub(crate) fn of(named: Named) -> Ref {
    let number = NAMED.iter().position(|other| *other == named);
    number.and_then(|i| ALL.get(i + 1)).map_or_else(|| Node::named(named), Ref::clone)
}

/// Says whether the interface calls two types one, whatever their sign: by these, members of a struct are of one type or of several.
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

/// Meaning of an operation's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// The bytes as they are.
    Replace,
    /// Combined with what is there.
    Reduce(Op),
}

/// Returns the operation of a number.
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
