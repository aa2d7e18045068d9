//! Calls that move the pieces of a type one by one, as they are listed. The first call of a type
//! always does so. A type that is used only once therefore needs nothing but its node: no tree of
//! ddtc, no hash, no layout and no code. If the type has few pieces, some further calls do the same.
//!
//! MPICH moves a long message in parts, by one call of this library for each part. A part that
//! begins where the last part of a call by pieces ended belongs to that call. The node keeps the
//! position at which that part ended, so the next part need not find the piece from the
//! offset of the part.

use std::sync::atomic::Ordering::Relaxed;

use ddtc::internal::kind::Direction;

use crate::call::Call;
use crate::list;
use crate::node::{Cursor, Node, Position};

/// Returns the position of the first byte of a call if the call moves piece by piece. Returns
/// `None` if the layout of the type must move the bytes.
#[inline]
fn start(node: &Node, call: &Call) -> Option<Position> {
    let start = call.range.start;
    // The next part of a call never begins at 0.
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

/// Moves the bytes of a checked call piece by piece if the call is the first one of its type, if
/// few pieces of the type have been moved, or if the call moves the next part of such a call.
/// Otherwise moves nothing and returns false.
///
/// # Safety
/// `call` must have been checked, and `node` must be its type, which must not be contiguous. The
/// bytes of the range must be valid in the instances at `call.user` and at `call.packed`: readable
/// and initialized on the side from which they are moved, and writable on the other. The two sides
/// must not overlap.
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
    // The call has been checked, so the product fits in 63 bits.
    if call.range.end < call.count * node.facts.size as u64 {
        let position = Position { piece: start.piece + mover.passed, inside: mover.moved };
        let extra = node.extra();
        let mut cursor = extra.cursor.lock();
        *cursor = Some(Cursor { offset: call.range.end, position });
        extra.cursor_offset.store(call.range.end, Relaxed);
    }
    true
}

/// Receiver of pieces that copies each piece of a checked call as soon as the enumeration passes
/// it. Only [`try_move`] makes this value, and has the promise of its caller that all bytes of the
/// call are valid on both sides.
struct Mover {
    direction: Direction,
    /// Address in the packed stream of the next byte that is moved.
    packed: *mut u8,
    /// Number of bytes of the stream from the beginning of the next piece to the end of the call.
    left: i64,
    /// Number of bytes of the next piece that have been moved. Before the first piece, the part
    /// before this one has moved them. It is not 0 later only if the call ends inside a piece.
    moved: i64,
    /// Number of pieces of which the last byte has been moved.
    passed: u64,
}

/// Length of blocks that are copied.
trait Length: Copy {
    /// Copies a block of this length. The addresses need not be aligned.
    ///
    /// # Safety
    /// The bytes of the block at `from` must be initialized and readable, and those at `to` must be
    /// writable. The two blocks may overlap.
    unsafe fn copy(self, from: *const u8, to: *mut u8);
}

/// Length of `N` bytes, for which the compiler emits a few loads and stores.
#[derive(Clone, Copy)]
struct Fixed<const N: usize>;

impl<const N: usize> Length for Fixed<N> {
    #[inline]
    unsafe fn copy(self, from: *const u8, to: *mut u8) {
        // SAFETY: the caller promises that `N` bytes at `from` can be read and as many at `to`
        // written. Arrays of bytes need no alignment. The block is read whole before it is written,
        // so an overlap does no harm.
        unsafe { to.cast::<[u8; N]>().write(from.cast::<[u8; N]>().read()) }
    }
}

/// Any length, in bytes.
#[derive(Clone, Copy)]
struct Any(usize);

/// Copies `length` bytes as the first `N` bytes and the last `N` bytes, which may overlap.
///
/// # Safety
/// The promises of [`Length::copy`] must hold for `length` bytes, and `length` must be at least
/// `N`.
#[inline]
unsafe fn both_ends<const N: usize>(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the first and the last `N` bytes lie inside the block, which the caller promises to
    // be valid on both sides. Arrays of bytes need no alignment. Both reads come before the writes,
    // so an overlap does no harm.
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
        // Short blocks are frequent, and a call of `memmove` would take longer than to copy them.
        // SAFETY: the caller promises that the block is valid on both sides. In each case, the
        // length is at least that of the ends. `ptr::copy` allows an overlap.
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

/// Evaluates an expression with a [`Length`] of `$bytes` bytes: [`Fixed`] for the lengths of the
/// usual elements and of small groups of them, otherwise [`Any`].
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

/// Copies `n` blocks, whose addresses are `from_step` and `to_step` bytes apart.
///
/// # Safety
/// The promises of [`Length::copy`] must hold for each of the blocks.
#[inline]
unsafe fn strided<L: Length>(
    length: L,
    (mut from, from_step): (*const u8, isize),
    (mut to, to_step): (*mut u8, isize),
    n: u64,
) {
    for _ in 0..n {
        // SAFETY: in turn `i`, `from` and `to` are the addresses of the block `i`, which the caller
        // promises to be valid.
        unsafe { length.copy(from, to) };
        (from, to) = (from.wrapping_offset(from_step), to.wrapping_offset(to_step));
    }
}

impl Mover {
    /// Returns how many of the next `n` pieces, of `length` bytes each, end before the call does,
    /// and counts those as passed.
    #[inline]
    fn pass(&mut self, length: i64, n: u64) -> u64 {
        let whole = (n as i64).saturating_mul(length) <= self.left;
        let n = if whole { n } else { (self.left / length) as u64 };
        self.left -= n as i64 * length;
        self.passed += n;
        n
    }

    /// Copies the bytes of a piece that belong to the call: a piece of which the call before this
    /// one has moved the first bytes, or in which this call ends. Returns false if the call ends.
    #[cold]
    fn cut(&mut self, at: i64, length: i64) -> bool {
        let end = length.min(self.left);
        let (user, n) = (self.user(at.wrapping_add(self.moved)), end - self.moved);
        debug_assert!(n > 0, "the bytes that were moved lie inside the piece");
        let packed = self.advance(n);
        // SAFETY: one side is a part of a piece of the instances of the call, and the other side is
        // the same bytes of its packed stream. Both are valid (comment of `Mover`).
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

    /// Returns the address of the next byte in the packed stream, and advances it by `n` bytes.
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
        // SAFETY: one side is a piece of the instances of the call, and the other side is the same
        // bytes of its packed stream. Both are valid (comment of `Mover`).
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
        // SAFETY: one side is `whole` pieces of the instances of the call, and the other side is
        // the same bytes of its packed stream. Both are valid (comment of `Mover`).
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
        // SAFETY: one side is the pieces of the instances of the call at `places`, and the other
        // side is the same bytes of its packed stream. Both are valid (comment of `Mover`).
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

    /// Function that makes a type anew, and the displacements and lengths of the contiguous blocks
    /// of one instance in bytes, in the order of the packed stream.
    type Case = (fn() -> Ref, Vec<(usize, usize)>);

    fn blocks(lengths: &[isize], at: &[isize]) -> Blocks {
        Blocks::new(lengths, at, 1).unwrap()
    }

    /// Returns three floats at 0, 8 and 16, with an extent of 20 bytes.
    fn floats() -> Ref {
        Node::strided(3, 1, 8, Node::named(Named::Float)).unwrap()
    }

    fn case(make: fn() -> Ref, pieces: &[(usize, usize)]) -> Case {
        (make, pieces.to_vec())
    }

    fn cases() -> Vec<Case> {
        vec![
            case(floats, &[(0, 4), (8, 4), (16, 4)]),
            // Two copies of three floats.
            case(|| Node::copies(2, floats()).unwrap(), &[0, 8, 16, 20, 28, 36].map(|at| (at, 4))),
            // Two rows of three floats, with other bounds.
            case(
                || Node::bounded(Node::strided(2, 1, 64, floats()).unwrap(), 0, 128).unwrap(),
                &[0, 8, 16, 64, 72, 80].map(|at| (at, 4)),
            ),
            // Blocks of one length at displacements: 12 bytes each, and 72 bytes each.
            case(
                || Node::blocks(3, Places::new(&[40, 0, 21], 1).unwrap(), Node::named(Named::Float)).unwrap(),
                &[(40, 12), (0, 12), (21, 12)],
            ),
            case(
                || Node::blocks(9, Places::new(&[100, 0], 1).unwrap(), Node::named(Named::Double)).unwrap(),
                &[(100, 72), (0, 72)],
            ),
            // Blocks of different lengths at displacements, without and with an empty one.
            case(
                || Node::listed(blocks(&[1, 5, 2], &[60, 0, 30]), Node::named(Named::Int32)).unwrap(),
                &[(60, 4), (0, 20), (30, 8)],
            ),
            case(
                || Node::listed(blocks(&[3, 0, 7], &[50, 90, 2]), Node::named(Named::Int16)).unwrap(),
                &[(50, 6), (2, 14)],
            ),
            // Blocks at displacements that consist of three floats each.
            case(
                || Node::blocks(1, Places::new(&[32, 0], 1).unwrap(), floats()).unwrap(),
                &[32, 40, 48, 0, 8, 16].map(|at| (at, 4)),
            ),
            // A struct of a byte, three floats, no double, a pair with a gap, and 33 bytes.
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

    /// Memory of instances of a case, with their stream, which is packed by hand.
    struct Memory {
        count: u64,
        user: Vec<u8>,
        stream: Vec<u8>,
        /// Index in `user` of each byte of the stream.
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

        /// Packs and unpacks a range of the stream with two types, and compares all bytes. Returns
        /// false if one of the types has to be moved by its layout.
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
            // SAFETY: `user` and `back` contain the instances, and `packed` and `source` as many
            // bytes as the range has. No two of these vectors overlap.
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

    /// Returns true if the node has neither a tree nor anything that is made from a tree.
    fn is_bare(node: &Node) -> bool {
        node.made_extra()
            .is_none_or(|extra| extra.datatype.get().is_none() && extra.compiled.committed.get().is_none())
    }

    /// Number of instances that have more pieces than `MAX_LISTED`, for every case.
    const MANY: u64 = 1100;

    #[test]
    fn the_first_call_needs_only_the_node() {
        for case in cases() {
            for count in [MANY, 2 * MANY] {
                let (mut memory, nodes) = (Memory::new(&case, count), [case.0(), case.0()]);
                let all = 0..memory.stream.len();
                assert!(memory.moves([&nodes[0], &nodes[1]], all.clone()));
                assert!(nodes.iter().all(|node| node.made_extra().is_none()));
                // No later call of so many pieces moves them one by one, whether it is for the
                // whole stream or for a part.
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

    /// After the first call, a type of 3 pieces may move 2048 pieces, which are those of 682 calls.
    /// The parts of one message count as one call.
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

    /// A call of more than 80 KiB compiles nothing if it is the first one. The calls after it
    /// interpret the layout until 80 KiB have been moved again.
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
            // SAFETY: as above.
            assert!(!unsafe { try_move(&call(1), &node) });
            // SAFETY: as above, for one instance.
            unsafe { committed.range_raw(Direction::Pack, user, 1, packed, 0..40_000) };
            assert_eq!(compiled(), expected);
        }
    }
}
