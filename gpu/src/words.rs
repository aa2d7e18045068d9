//! The part that the kernels `strided` and `list` share: a thread moves words that are chosen by
//! their index in the packed stream. The two kernels differ in the arithmetic that computes the
//! offset of a word in user memory from this index.

use std::ops::Range;

use ddtc::internal::kind::Direction;

use crate::index::{Arithmetic, MAX_WORD};
use crate::kernel::{Addresses, Kernel, Launch, Parameters, THREADS};
use crate::loops::Loops;
use crate::ptx::{Printer, Register, Type, Word};

/// Maximum number of words that one launch moves. Word indices are counted from the beginning of
/// the iteration of the outermost loop that contains the first word of the launch. Such an
/// iteration has at most `MAX_WORD / 2` words. So the indices of all words, and those that the
/// threads after the last word compute, are less than [`MAX_WORD`].
const MAX_WORDS: u64 = MAX_WORD / 4;

/// Returns the number of words of `width` bytes that one thread moves. Together these words have 8
/// to 16 bytes.
pub(crate) const fn words_per_thread(width: u32) -> u32 {
    match width {
        16 | 8 => 1,
        4 => 4,
        _ => 8,
    }
}

/// Returns a launch that moves the first bytes of the range `range` in words of `width` bytes. The
/// parameters of the launch are those that [`kernel`] declares before it calls `declare`.
pub(crate) fn launch(loops: &Loops, addresses: &Addresses, range: Range<u64>, width: u32) -> Launch {
    let words = u64::from(width);
    let part = loops.part(addresses.user, range, MAX_WORDS * words);
    let (first, words) = (part.first / words, part.bytes / words);
    let blocks = (words as u32).div_ceil(THREADS * words_per_thread(width));
    let parameters = Parameters::new(&[part.user, addresses.packed, first, words]);
    Launch { blocks: [blocks, 1, 1], parameters, bytes: part.bytes }
}

/// Prints the kernel `name`, which moves words of `width` bytes in the direction `direction`.
///
/// The parameters of the kernel are, in this order: the address in user memory (64 bits), the
/// address of the packed bytes (64 bits), the index of the first word (32 bits), the number of
/// words (32 bits), and the parameters that `declare` declares. `offset` prints the computation of
/// the offset of the word with a given index. The index is counted from the place in user memory to
/// which the address belongs.
pub(crate) fn kernel<P>(
    name: String,
    width: u32,
    direction: Direction,
    declare: impl FnOnce(&mut Printer) -> P,
    offset: impl Fn(&mut Printer, &P, Register) -> Register,
) -> Kernel {
    let mut printer = Printer::default();
    let (user, packed) = (printer.global("user"), printer.global("packed"));
    let first = printer.parameter("first", Type::Word);
    let words = printer.parameter("words", Type::Word);
    let declared = declare(&mut printer);
    // A thread moves one word in each turn, and has `turns` turns. In every turn, neighbouring
    // threads move neighbouring words of the packed stream.
    let turns = words_per_thread(width);
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
