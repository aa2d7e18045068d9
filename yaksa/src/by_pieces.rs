//! Packing and unpacking by copying the contiguous pieces of user memory one by one, as `list.rs`
//! enumerates them. The first call that packs or unpacks a type without a reduction always works in
//! this way. So a type that is used only once, without a reduction, needs only the node that its
//! constructor made: no `Datatype` of ddtc, no hash for a cache, no layout and no compiled code. If
//! the type has few pieces, a limited number of later calls also copy piece by piece.
//!
//! MPICH packs a long message in parts, by one call of this library for each part. When a call has
//! copied a part piece by piece, the node stores the position at which the part ended. If the next
//! part begins at this position, it is also copied piece by piece, and no search for its first
//! piece is needed.

use std::sync::atomic::Ordering::Relaxed;

use ddtc::internal::kind::Direction;

use crate::call::Call;
use crate::list;
use crate::node::{Cursor, Node, Position};

/// Decides whether a call copies the pieces of its type one by one. If so, returns the position at
/// which it begins: that of the first byte of its packed range. Returns `None` if the bytes must be
/// moved by ddtc's interpreter or by compiled code instead.
#[inline]
fn start(node: &Node, call: &Call) -> Option<Position> {
    let start = call.range.start;
    // The call may continue a message that an earlier call has begun. It is taken for the next part
    // of such a message if it begins at the stored cursor, which is never at packed byte 0.
    if start > 0 {
        let next = node.made_extra().filter(|extra| extra.cursor_offset.load(Relaxed) == start);
        let next = next.and_then(|extra| {
            let mut cursor = extra.cursor.lock();
            let next = cursor.take_if(|cursor| cursor.offset == start);
            extra.cursor_offset.store(cursor.map_or(0, |cursor| cursor.offset), Relaxed);
            next
        });
        if let Some(Cursor { position, .. }) = next {
            debug_assert_eq!(position, list::find_position(node, start as i64));
            return Some(position);
        }
    }
    node.begin_by_pieces(call.count).then(|| list::find_position(node, start as i64))
}

/// Moves the bytes of a call by copying contiguous pieces one by one, and returns true, in three
/// cases:
///
/// * The call is the first one that packs or unpacks its type without a reduction.
/// * The pieces of this call and those that were counted for earlier calls are few
///   ([`Node::begin_by_pieces`]).
/// * The call begins at the stored cursor ([`crate::node::Extra::cursor`]). This is the place where
///   the last call that copied a part piece by piece ended.
///
/// In all other cases, the function moves nothing and returns false.
///
/// # Safety
/// The arguments in `call` must have been checked, as [`Call`] says. `node` must be the type of the
/// call, and must not be contiguous. The bytes to be moved are in one of two memories, the
/// instances at `call.user` and the packed data at `call.packed`, and are moved to the other one.
/// They must be readable and initialized at the source, and writable at the destination. The two
/// memories must not overlap.
#[inline]
pub(crate) unsafe fn try_move(call: &Call, node: &Node) -> bool {
    let Some(start) = start(node, call) else {
        return false;
    };
    let bytes = (call.range.end - call.range.start) as i64;
    let mut mover = Mover {
        direction: call.direction,
        packed: call.packed,
        left: start.inside + bytes,
        moved: start.inside,
        passed: 0,
    };
    let at = call.user.expose_provenance() as i64;
    list::list(node, at, call.count, start.piece, &mut mover);
    // The product `call.count * size` is the number of packed bytes of all instances. The arguments
    // were checked before the call, and that check has shown that the product fits in 63 bits.
    if call.range.end < call.count * node.facts.size as u64 {
        let position = Position { piece: start.piece + mover.passed, inside: mover.moved };
        let extra = node.extra();
        let mut cursor = extra.cursor.lock();
        *cursor = Some(Cursor { offset: call.range.end, position });
        extra.cursor_offset.store(call.range.end, Relaxed);
    }
    true
}

/// Receiver that copies each contiguous piece of a call as soon as the enumeration of `list.rs` has
/// given it the piece. Only [`try_move`] makes a `Mover`. The caller of `try_move` promises that
/// all bytes to be moved are valid both in user memory and in packed memory.
struct Mover {
    direction: Direction,
    /// Address in packed memory of the next byte to be moved.
    packed: *mut u8,
    /// Number of packed bytes from the beginning of the next piece to the end of the packed range
    /// of the call.
    left: i64,
    /// Number of bytes to be skipped at the beginning of the next piece. For the first piece, these
    /// are the bytes that precede the packed range of the call. For all other pieces this is 0.
    ///
    /// When all bytes of the range have been moved, the field has a last use. If the range ends
    /// inside a piece, it is the number of bytes of that piece before the end of the range. The
    /// next part of the message begins after these bytes.
    moved: i64,
    /// Number of pieces whose last byte this call has moved.
    passed: u64,
}

/// Length in bytes of the blocks that a loop copies. It is either a constant, for which the
/// compiler emits short code, or a variable.
trait Length: Copy {
    /// Copies a block of `self` bytes. The addresses need not be aligned.
    ///
    /// # Safety
    /// The bytes of the block at `from` must be initialized and readable, and those at `to` must be
    /// writable. The two blocks may overlap.
    unsafe fn copy(self, from: *const u8, to: *mut u8);
}

/// Constant length of `N` bytes, for which the compiler emits a few loads and stores.
#[derive(Clone, Copy)]
struct Fixed<const N: usize>;

impl<const N: usize> Length for Fixed<N> {
    #[inline]
    unsafe fn copy(self, from: *const u8, to: *mut u8) {
        // SAFETY: the caller promises that `N` bytes at `from` can be read and as many at `to`
        // written. Arrays of bytes need no alignment. The whole block is read before any of it is
        // written, so the blocks may overlap.
        unsafe { to.cast::<[u8; N]>().write(from.cast::<[u8; N]>().read()) }
    }
}

/// Length in bytes that is known only at run time.
#[derive(Clone, Copy)]
struct Any(usize);

/// Copies the first `N` bytes and the last `N` bytes of a block of `length` bytes. If `length` is
/// at most `2 * N`, this copies the whole block. The two parts may overlap.
///
/// # Safety
/// The requirements of [`Length::copy`] must hold for `length` bytes, and `length` must be at least
/// `N`.
#[inline]
unsafe fn both_ends<const N: usize>(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the first and the last `N` bytes lie inside the block. The caller promises that the
    // block can be read at `from` and written at `to`. Arrays of bytes need no alignment. Both
    // reads come before the writes, so the blocks may overlap.
    unsafe {
        let first = from.cast::<[u8; N]>().read();
        let last = from.add(length - N).cast::<[u8; N]>().read();
        to.cast::<[u8; N]>().write(first);
        to.add(length - N).cast::<[u8; N]>().write(last);
    }
}

impl Length for Any {
    #[inline]
    unsafe fn copy(self, from: *const u8, to: *mut u8) {
        // Blocks of at most 64 bytes are frequent. For them, a call of `memmove` would take longer
        // than the loads and stores of `both_ends`.
        // SAFETY: the caller promises that the block can be read at `from` and written at `to`. In
        // each case, the length of the block is at least the `N` of `both_ends`. `ptr::copy` allows
        // the two blocks to overlap.
        unsafe {
            match self.0 {
                8..=16 => both_ends::<8>(from, to, self.0),
                17..=32 => both_ends::<16>(from, to, self.0),
                33..=64 => both_ends::<32>(from, to, self.0),
                4..=7 => both_ends::<4>(from, to, self.0),
                2..=3 => both_ends::<2>(from, to, self.0),
                _ => std::ptr::copy(from, to, self.0),
            }
        }
    }
}

/// Evaluates the expression `$result`, in which the variable `$length` is a [`Length`] of `$bytes`
/// bytes. `$length` is a [`Fixed`] for the sizes of the usual basic types and for small multiples
/// of them, otherwise an [`Any`].
macro_rules! with_length {
    ($bytes:expr, $length:ident => $result:expr) => {
        with_length!($bytes, $length => $result, 1 2 4 8 12 16 24 32)
    };
    ($bytes:expr, $length:ident => $result:expr, $($fixed:literal)*) => {
        match $bytes {
            $($fixed => { let $length = Fixed::<$fixed>; $result })*
            bytes => { let $length = Any(bytes as usize); $result }
        }
    };
}

/// Copies `n` blocks of the given length. Neighbouring blocks are `from_step` bytes apart at the
/// source, and `to_step` bytes apart at the destination.
///
/// # Safety
/// The requirements of [`Length::copy`] must hold for each of the blocks.
#[inline]
unsafe fn strided<L: Length>(
    length: L,
    (mut from, from_step): (*const u8, isize),
    (mut to, to_step): (*mut u8, isize),
    n: u64,
) {
    for _ in 0..n {
        // SAFETY: in iteration `i`, `from` and `to` are the addresses of block `i`. The caller
        // promises that the block can be read at `from` and written at `to`.
        unsafe { length.copy(from, to) };
        (from, to) = (from.wrapping_offset(from_step), to.wrapping_offset(to_step));
    }
}

impl Mover {
    /// Returns how many of the next `n` pieces, which have `length` bytes each, lie completely in
    /// the rest of the packed range of the call. Counts these pieces as moved; the caller must copy
    /// them.
    #[inline]
    fn pass(&mut self, length: i64, n: u64) -> u64 {
        let whole = (n as i64).saturating_mul(length) <= self.left;
        let n = if whole { n } else { (self.left / length) as u64 };
        self.left -= n as i64 * length;
        self.passed += n;
        n
    }

    /// Copies a part of a contiguous piece: those of its bytes that are in the packed range of the
    /// call. The piece contains the beginning or the end of that range. Returns false if no bytes
    /// of the range remain to be moved.
    #[cold]
    fn cut(&mut self, at: i64, length: i64) -> bool {
        let end = length.min(self.left);
        let (user, n) = (self.user(at.wrapping_add(self.moved)), end - self.moved);
        debug_assert!(n > 0, "the bytes that were moved lie inside the piece");
        let packed = self.advance(n);
        // SAFETY: one side is a part of a piece of user memory of the call, and the other side is
        // the packed bytes that belong to it. The caller of `try_move` promises that both are
        // valid.
        unsafe {
            match self.direction {
                Direction::Pack => Any(n as usize).copy(user, packed),
                Direction::Unpack => Any(n as usize).copy(packed, user),
            }
        }
        if end == length {
            (self.left, self.moved, self.passed) = (self.left - length, 0, self.passed + 1);
        } else {
            (self.left, self.moved) = (0, end);
        }
        self.left > 0
    }

    /// Returns the address `at` in user memory as a pointer.
    #[inline]
    fn user(&self, at: i64) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(at as usize)
    }

    /// Returns the address of the next byte in packed memory, and advances this address by `n`
    /// bytes.
    #[inline]
    fn advance(&mut self, n: i64) -> *mut u8 {
        let packed = self.packed;
        self.packed = packed.wrapping_offset(n as isize);
        packed
    }
}

impl list::Pieces for Mover {
    #[inline]
    fn one(&mut self, at: i64, length: i64) -> bool {
        if self.moved > 0 || length > self.left {
            return self.cut(at, length);
        }
        (self.left, self.passed) = (self.left - length, self.passed + 1);
        let (user, packed) = (self.user(at), self.advance(length));
        let (from, to): (*const u8, _) = match self.direction {
            Direction::Pack => (user, packed),
            Direction::Unpack => (packed, user),
        };
        // SAFETY: one side is a piece of user memory of the call, and the other side is the packed
        // bytes that belong to it. The caller of `try_move` promises that both are valid.
        unsafe {
            match length {
                4 => Fixed::<4>.copy(from, to),
                8 => Fixed::<8>.copy(from, to),
                length => Any(length as usize).copy(from, to),
            }
        }
        self.left > 0
    }

    #[inline]
    fn run(&mut self, mut at: i64, length: i64, step: i64, mut n: u64) -> bool {
        if self.moved > 0 && n > 0 {
            if !self.cut(at, length) {
                return false;
            }
            (at, n) = (at.wrapping_add(step), n - 1);
        }
        let whole = self.pass(length, n);
        let user = (self.user(at), step as isize);
        let packed = (self.advance(length.wrapping_mul(whole as i64)), length as isize);
        // SAFETY: one side is `whole` pieces of user memory of the call, and the other side is the
        // packed bytes that belong to them. The caller of `try_move` promises that both are valid.
        unsafe {
            match self.direction {
                Direction::Pack => {
                    with_length!(length, l => strided(l, (user.0, user.1), packed, whole));
                }
                Direction::Unpack => {
                    with_length!(length, l => strided(l, (packed.0, packed.1), user, whole));
                }
            }
        }
        if whole < n && self.left > 0 {
            return self.cut(at.wrapping_add(step.wrapping_mul(whole as i64)), length);
        }
        self.left > 0
    }

    #[inline]
    fn scattered(&mut self, at: i64, length: i64, mut places: &[i64]) -> bool {
        if self.moved > 0
            && let [first, others @ ..] = places
        {
            if !self.cut(at.wrapping_add(*first), length) {
                return false;
            }
            places = others;
        }
        let whole = self.pass(length, places.len() as u64) as usize;
        let (user, mut packed) = (self.user(at), self.advance(length.wrapping_mul(whole as i64)));
        let (places, others) = places.split_at(whole);
        let step = length as isize;
        // SAFETY: one side is the pieces of user memory of the call at `places`, and the other side
        // is the packed bytes that belong to them. The caller of `try_move` promises that both are
        // valid.
        unsafe {
            match self.direction {
                Direction::Pack => with_length!(length, l => {
                    for &place in places {
                        l.copy(user.wrapping_offset(place as isize), packed);
                        packed = packed.wrapping_offset(step);
                    }
                }),
                Direction::Unpack => with_length!(length, l => {
                    for &place in places {
                        l.copy(packed, user.wrapping_offset(place as isize));
                        packed = packed.wrapping_offset(step);
                    }
                }),
            }
        }
        if let [first, ..] = others
            && self.left > 0
        {
            return self.cut(at.wrapping_add(*first), length);
        }
        self.left > 0
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use ddtc::internal::datatype::Named;
    use ddtc::internal::methods::*;

    use super::*;
    use crate::arrays::{Blocks, Places};
    use crate::compile;
    use crate::node::Ref;

    /// Type that is tested: a function that makes a new node of this type, and the displacement and
    /// length in bytes of each contiguous piece of one instance, in the order of the packed bytes.
    type Case = (fn() -> Ref, Vec<(usize, usize)>);

    fn blocks(lengths: &[isize], at: &[isize]) -> Blocks {
        Blocks::new(lengths, at, 1).unwrap()
    }

    /// Returns a type of three floats at the displacements 0, 8 and 16, with an extent of 20 bytes.
    fn floats() -> Ref {
        Node::strided(3, 1, 8, Node::named(Named::Float)).unwrap()
    }

    fn case(make: fn() -> Ref, pieces: &[(usize, usize)]) -> Case {
        (make, pieces.to_vec())
    }

    fn cases() -> Vec<Case> {
        vec![
            case(floats, &[(0, 4), (8, 4), (16, 4)]),
            // Two copies of the type `floats`.
            case(|| Node::copies(2, floats()).unwrap(), &[0, 8, 16, 20, 28, 36].map(|at| (at, 4))),
            // Two copies of the type `floats`, 64 bytes apart. The extent of the new type is 128
            // bytes.
            case(
                || Node::bounded(Node::strided(2, 1, 64, floats()).unwrap(), 0, 128).unwrap(),
                &[0, 8, 16, 64, 72, 80].map(|at| (at, 4)),
            ),
            // The next two test types are made of blocks of equal length at listed displacements. A
            // block has 12 bytes in the first type, and 72 bytes in the second.
            case(
                || Node::blocks(3, Places::new(&[40, 0, 21], 1).unwrap(), Node::named(Named::Float)).unwrap(),
                &[(40, 12), (0, 12), (21, 12)],
            ),
            case(
                || Node::blocks(9, Places::new(&[100, 0], 1).unwrap(), Node::named(Named::Double)).unwrap(),
                &[(100, 72), (0, 72)],
            ),
            // The next two test types are made of blocks of different lengths at listed
            // displacements. Only the second type has an empty block.
            case(
                || Node::listed(blocks(&[1, 5, 2], &[60, 0, 30]), Node::named(Named::Int32)).unwrap(),
                &[(60, 4), (0, 20), (30, 8)],
            ),
            case(
                || Node::listed(blocks(&[3, 0, 7], &[50, 90, 2]), Node::named(Named::Int16)).unwrap(),
                &[(50, 6), (2, 14)],
            ),
            // Blocks at displacements. Each block is one copy of the type `floats`.
            case(
                || Node::blocks(1, Places::new(&[32, 0], 1).unwrap(), floats()).unwrap(),
                &[32, 40, 48, 0, 8, 16].map(|at| (at, 4)),
            ),
            // A struct of five members: a byte, a copy of the type `floats`, doubles with block
            // length 0, an `MPI_SHORT_INT`, which has a gap between the short and the int, and 33
            // bytes.
            case(
                || {
                    let [byte, double, pair] =
                        [Named::Uint8, Named::Double, Named::ShortInt].map(Node::named);
                    let children = Box::new([byte.clone(), floats(), double, pair, byte]);
                    Node::structure(blocks(&[1, 1, 0, 1, 33], &[1, 4, 0, 32, 40]), children, true).unwrap()
                },
                &[(1, 1), (4, 4), (12, 4), (20, 4), (32, 2), (36, 4), (40, 33)],
            ),
        ]
    }

    /// User memory with `count` instances of a tested type, and the packed bytes of these instances
    /// as the test computes them without the library.
    struct Memory {
        count: u64,
        user: Vec<u8>,
        stream: Vec<u8>,
        /// Entry `i` is the index in `user` of packed byte `i`.
        at: Vec<usize>,
    }

    impl Memory {
        fn new((make, pieces): &Case, count: u64) -> Memory {
            let extent = make().facts.extent as usize;
            let instance =
                |i: usize| pieces.iter().flat_map(move |&(at, n)| i * extent + at..i * extent + at + n);
            let at: Vec<usize> = (0..count as usize).flat_map(instance).collect();
            let user: Vec<u8> = (0..*at.iter().max().unwrap() + 1).map(|i| (i * 7 + 1) as u8).collect();
            let stream = at.iter().map(|&i| user[i]).collect();
            Memory { count, user, stream, at }
        }

        /// Packs a range of the packed bytes with the type `to_pack`, unpacks the same range with
        /// the type `to_unpack`, and compares all bytes with the expected ones. Returns false if
        /// `try_move` does so for packing or for unpacking, that is, if it does not copy piece by
        /// piece.
        fn moves(&mut self, [to_pack, to_unpack]: [&Node; 2], range: Range<usize>) -> bool {
            let wide = range.start as u64..range.end as u64;
            let mut packed = vec![0xee; range.len() + 1];
            let call = |direction, user: &mut [u8], packed: &mut [u8]| Call {
                direction,
                user: user.as_mut_ptr(),
                packed: packed.as_mut_ptr(),
                count: self.count,
                range: wide.clone(),
                ty: 0,
            };
            let mut back = vec![0x5a; self.user.len()];
            let mut source = self.stream[range.clone()].to_vec();
            let pack = call(Direction::Pack, &mut self.user, &mut packed);
            let unpack = call(Direction::Unpack, &mut back, &mut source);
            // SAFETY: `user` and `back` contain the instances, and `packed` and `source` have at
            // least as many bytes as the range. No two of these vectors overlap.
            let moved = unsafe { [try_move(&pack, to_pack), try_move(&unpack, to_unpack)] };
            if moved != [true, true] {
                return false;
            }
            assert_eq!((&packed[..range.len()], packed[range.len()]), (&self.stream[range.clone()], 0xee));
            let mut expected = vec![0x5a; self.user.len()];
            range.for_each(|i| expected[self.at[i]] = self.stream[i]);
            assert_eq!(back, expected);
            true
        }
    }

    /// Returns true if the node has neither a `Datatype` of ddtc nor a committed type made from a
    /// `Datatype`.
    fn is_bare(node: &Node) -> bool {
        node.made_extra()
            .is_none_or(|extra| extra.datatype.get().is_none() && extra.compiled.committed.get().is_none())
    }

    /// Number of instances that together have more than `MAX_LISTED` contiguous pieces, for every
    /// tested type.
    const MANY: u64 = 1100;

    #[test]
    fn the_first_call_needs_only_the_node() {
        for case in cases() {
            for count in [MANY, 2 * MANY] {
                let (mut memory, nodes) = (Memory::new(&case, count), [case.0(), case.0()]);
                let all = 0..memory.stream.len();
                assert!(memory.moves([&nodes[0], &nodes[1]], all.clone()));
                assert!(nodes.iter().all(|node| node.made_extra().is_none()));
                // The instances have more than `MAX_LISTED` pieces. So a later call for the same
                // number of instances does not copy piece by piece, whether it is for all packed
                // bytes or for a part of them.
                assert!(!memory.moves([&nodes[0], &nodes[1]], all.clone()));
                assert!(!memory.moves([&nodes[0], &nodes[1]], 0..1));
                assert!(!memory.moves([&nodes[0], &nodes[1]], 1..all.end));
            }
        }
    }

    #[test]
    fn parts_in_order_are_one_call() {
        for case in cases() {
            let mut memory = Memory::new(&case, 3);
            let total = memory.stream.len();
            for size in 1..total {
                let nodes = [case.0(), case.0()];
                for start in (0..total).step_by(size) {
                    let part = start..total.min(start + size);
                    assert!(memory.moves([&nodes[0], &nodes[1]], part.clone()), "{part:?}");
                }
                assert!(nodes.iter().all(|node| is_bare(node)));
                assert!(nodes.iter().all(|node| node.extra().cursor.lock().is_none()));
            }
        }
    }

    #[test]
    fn the_first_part_may_be_anywhere() {
        for case in cases() {
            let mut memory = Memory::new(&case, 2);
            let total = memory.stream.len();
            for start in 0..total {
                for end in start + 1..=total {
                    let nodes = [case.0(), case.0()];
                    assert!(memory.moves([&nodes[0], &nodes[1]], start..end), "{start}..{end}");
                    assert!(nodes.iter().all(|node| is_bare(node)));
                }
            }
        }
    }

    #[test]
    fn only_the_next_part_belongs_to_a_call() {
        let case = &cases()[1];
        let (mut memory, nodes) = (Memory::new(case, MANY), [case.0(), case.0()]);
        let end = memory.stream.len();
        let mut moves = |part| memory.moves([&nodes[0], &nodes[1]], part);
        assert!(moves(0..10));
        assert!(!moves(0..10) && !moves(11..20) && !moves(30..end));
        assert!(moves(10..30) && moves(30..31));
        assert!(!moves(30..40));
        assert!(moves(31..end));
        assert!(!moves(31..end) && !moves(0..end));
    }

    /// After the first call, up to 2048 pieces (`MAX_LISTED`) may be copied one by one. For a type
    /// of 3 pieces, this suffices for 682 calls, which copy 2046 pieces. The calls for the parts of
    /// one message count together as one call.
    #[test]
    fn types_of_few_pieces_are_lowered_late() {
        let case = &cases()[0];
        let (mut memory, nodes) = (Memory::new(case, 1), [case.0(), case.0()]);
        let mut moves = |part| memory.moves([&nodes[0], &nodes[1]], part);
        for _ in 0..=681 {
            assert!(moves(0..12));
        }
        assert!(moves(0..5) && moves(5..6) && moves(6..12));
        assert!(!moves(0..12) && !moves(0..5) && !moves(5..6));
        assert!(nodes.iter().all(|node| is_bare(node)));
    }

    #[test]
    fn elements_end_where_the_tree_says() {
        for (make, _) in cases() {
            let node = make();
            for bytes in 0..3 * node.facts.size {
                let expected = make().datatype().unwrap().whole_elements(bytes);
                assert_eq!(list::whole_elements(&node, bytes), expected, "{bytes} of {node:?}");
            }
        }
    }

    /// The first call compiles no code, even if it packs more than 80 KiB. The calls after it use
    /// the interpreter until they have packed 80 KiB in total.
    #[test]
    fn code_is_compiled_80_kib_after_the_first_call() {
        let node = Node::strided(5000, 1, 24, Node::named(Named::Double)).unwrap();
        let (mut user, mut packed) = (vec![1u8; 3 * 120_000], vec![0u8; 120_000]);
        let (user, packed) = (user.as_mut_ptr(), packed.as_mut_ptr());
        let call =
            |count| Call { direction: Direction::Pack, user, packed, count, range: 0..40_000 * count, ty: 0 };
        // SAFETY: three instances lie inside `user`, and 120 000 packed bytes inside `packed`.
        assert!(unsafe { try_move(&call(3), &node) } && is_bare(&node));
        let committed = compile::committed(&node).unwrap();
        let compiled = || !committed.schedule(Direction::Pack).starts_with("not compiled yet");
        for expected in [false, false, true] {
            assert!(!compiled());
            // SAFETY: one instance lies inside `user`, and its packed bytes inside `packed`.
            assert!(!unsafe { try_move(&call(1), &node) });
            // SAFETY: one instance lies inside `user`, and its 40 000 packed bytes lie inside
            // `packed`.
            unsafe { committed.range_raw(Direction::Pack, user, 1, packed, 0..40_000) };
            assert_eq!(compiled(), expected);
        }
    }
}
