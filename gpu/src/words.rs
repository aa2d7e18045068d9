//! Code that the kernels `strided`, `list` and `per_element` have in common. Neighbouring threads
//! of these kernels move neighbouring words of the packed stream. The kernels differ in how a
//! thread computes the offset of a word in user memory from the word's index in the packed stream,
//! and in the number of words that a thread moves ([`Share`]).

use std::ops::Range;

use ddtc::internal::kind::Direction;

use crate::index::{Arithmetic, MAX_WORD};
use crate::kernel::{Addresses, Kernel, Launch, Parameters, THREADS};
use crate::loops::Loops;
use crate::ptx::{Printer, Register, Type, Word};

/// Maximum number of words that one launch moves. A word is the unit that a thread moves by one
/// load and one store.
///
/// A kernel divides indices of words, and its divisions are exact only for indices that are less
/// than [`MAX_WORD`]. The indices are counted from the beginning of the iteration of the kernel's
/// outermost loop in which the launch begins. An iteration has at most `MAX_WORD / 2` words, so the
/// index of the first word of the launch is less than this number. The indices of all words of the
/// launch are less than `3 * MAX_WORD / 4`. Surplus threads of the last block, which have no word
/// to move, compute slightly larger indices. These are less than [`MAX_WORD`] too.
const MAX_WORDS: u64 = MAX_WORD / 4;

/// The words that one thread of a kernel moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// Number of bytes in a word.
    width: u32,
    /// Number of words.
    words: u32,
}

impl Share {
    /// Returns the share of a thread of the kernels `strided` and `list`, for words of `width`
    /// bytes. The words of the share together have 8 to 16 bytes.
    pub(crate) const fn new(width: u32) -> Share {
        let words = match width {
            16 | 8 => 1,
            4 => 4,
            _ => 8,
        };
        Share { width, words }
    }

    /// Returns the share that consists of a single word of `width` bytes.
    pub(crate) const fn single(width: u32) -> Share {
        Share { width, words: 1 }
    }
}

/// Returns a launch that moves the beginning of the packed bytes `range`: as many bytes as a single
/// launch can move. Each thread moves the share `share`. The launch has only the values of the
/// first four parameters of the kernel, which [`kernel`] lists. The caller must append the values
/// of the other parameters.
pub(crate) fn launch(loops: &Loops, addresses: &Addresses, range: Range<u64>, share: Share) -> Launch {
    let words = u64::from(share.width);
    let part = loops.part(addresses.user, range, MAX_WORDS * words);
    let (first, words) = (part.first / words, part.bytes / words);
    let blocks = (words as u32).div_ceil(THREADS * share.words);
    let parameters = Parameters::new(&[part.user, addresses.packed, first, words]);
    Launch { blocks: [blocks, 1, 1], parameters, bytes: part.bytes }
}

/// Returns the kernel `name`, whose threads each move the share `share` in the direction
/// `direction`.
///
/// The kernel has these four parameters, followed by the parameters that `declare` declares:
///
/// * the address in user memory to which offsets are added (64 bits),
/// * the address of the first packed byte that the launch moves (64 bits),
/// * the index of the first word that the launch moves (32 bits), and
/// * the number of words that the launch moves (32 bits).
///
/// `offset` prints the instructions that compute the offset of a word in user memory from the index
/// of the word. Index 0 is the first word of the iteration of the kernel's outermost loop in which
/// the launch begins. The first parameter is the address in user memory at which this iteration
/// begins.
pub(crate) fn kernel<P>(
    name: String,
    share: Share,
    direction: Direction,
    declare: impl FnOnce(&mut Printer) -> P,
    offset: impl Fn(&mut Printer, &P, Register) -> Register,
) -> Kernel {
    let mut printer = Printer::default();
    let (user, packed) = (printer.global("user"), printer.global("packed"));
    let first = printer.parameter("first", Type::Word);
    let words = printer.parameter("words", Type::Word);
    let declared = declare(&mut printer);
    // A thread moves `turns` words, one in each turn. In one turn, neighbouring threads move
    // neighbouring words. So the words of one thread are [`THREADS`] words apart in the packed
    // stream.
    let Share { width, words: turns } = share;
    let (in_grid, in_block) = (printer.special("%ctaid.x"), printer.special("%tid.x"));
    let index = printer.scale(in_grid, THREADS * turns, in_block);
    let places: Vec<Word> = (0..turns)
        .map(|turn| {
            let index = if turn == 0 { index } else { printer.add_constant(index, turn * THREADS) };
            let inside = printer.is_less(index, words);
            let word = printer.add(index, first);
            let offset = offset(&mut printer, &declared, word);
            let user = printer.add_long(user, offset);
            Word { inside, user, packed: printer.address(index, width, packed) }
        })
        .collect();
    printer.move_words(width, direction, &places);
    printer.finish(name)
}
