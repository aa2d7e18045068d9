//! Tests that the properties which instruction sets declare are consistent. These tests run on any
//! machine.

use super::avx2::Avx2;
use super::{Isa, MadeFor};
use crate::micro::constant_length::misaligned;
use crate::micro::registers::{ALL, Lengths, Registers, by_length, has};
use crate::micro::{Direction, Micro, Width, rows, strided, transpose};
use crate::target::Level;

/// Properties that the instruction set of one level declares; `below` is the next lower level.
struct Says {
    made_for: MadeFor,
    below: Level,
    wide: usize,
    masked: Lengths,
    masked_up_to: usize,
}

fn says(level: Level) -> Says {
    with_isa!(level, I => Says {
        made_for: I::MADE_FOR,
        below: <<I as Isa>::Below as Isa>::LEVEL,
        wide: I::WIDE,
        masked: I::MASKED,
        masked_up_to: I::MASKED_UP_TO,
    })
}

#[test]
fn the_baseline_has_code_for_all_and_the_others_are_above_it() {
    assert_eq!(says(Level::Baseline).made_for.strided, ALL);
    assert_eq!(says(Level::Baseline).made_for.rows, ALL);
    assert_eq!(says(Level::Baseline).made_for.transposed, ALL);
    for level in Level::ALL {
        assert_eq!(with_isa!(level, I => I::LEVEL), level);
        let Says { made_for, below, wide, masked, masked_up_to } = says(level);
        assert_eq!(below == level, level == Level::Baseline, "{level}");
        assert!(wide >= says(below).wide && [16, 32, 64].contains(&wide), "{level}");
        // Every level has to have code for blocks of any length, which is listed as the length 0,
        // because no lower level would serve such blocks.
        assert!(has(made_for.strided, 0) && has(made_for.rows, 0), "{level}");
        // A masked store of a block reads as many bytes as the next power of two after the block's
        // length. The block that follows must be long enough to contain the excess bytes.
        assert!((1..=1024).all(|l: usize| !has(masked, l) || l.next_power_of_two() < 2 * l), "{level}");
        assert!(masked_up_to == 0 || masked_up_to >= 16, "{level}");
    }
}

#[test]
fn groups_are_whole_blocks_that_a_cursor_reaches() {
    for level in Level::ALL {
        let (gathered, aligned) = with_isa!(level, I => (I::GATHERED, I::ALIGNED));
        let (scattered, squares) = with_isa!(level, I => (I::SCATTERED, I::SQUARES));
        for (len, blocks) in gathered.iter().chain(scattered) {
            assert!([2, 4, 8].contains(blocks), "{level}: {blocks} blocks of {len}");
        }
        for &(len, align) in aligned {
            assert!(align.is_power_of_two() && by_length(gathered, len) > 0, "{level}: {len}");
        }
        for &(len, side) in squares {
            assert!(side.is_power_of_two() && transpose::LENGTHS.contains(&(len as u16)), "{level}: {len}");
        }
        assert_eq!(by_length(gathered, 5), 0, "{level}");
    }
}

#[test]
fn few_blocks_lead_to_aligned_stores() {
    // For blocks of 24 bytes, AVX2 aligns stores to 32 bytes. Each case is an address, and the
    // number of blocks between this address and the first aligned store; the number is 0 if no
    // store can be aligned.
    for (place, blocks) in [(0, 0), (8, 1), (16, 2), (24, 3), (32, 0), (4, 0), (40, 1), (63, 0)] {
        assert_eq!(misaligned::<Avx2, 24>(std::ptr::without_provenance_mut(place)), blocks, "{place}");
    }
    // If the first block of 32 bytes is misaligned, all blocks after it are misaligned by as many
    // bytes.
    assert_eq!(misaligned::<Avx2, 32>(std::ptr::without_provenance_mut(8)), 0);
}

#[test]
fn levels_without_better_code_are_served_by_those_below() {
    let strided = |len, level| strided::micro(len, Direction::Pack, level).level();
    let rows = |len, level| rows::micro(len, Width::I32, Direction::Pack, level).level();
    let transposed = |len, level| transpose::micro(len, Direction::Pack, level).unwrap().level();
    for (made, expected) in [
        (strided(8, Level::Avx512), Level::Avx512),
        (strided(36, Level::Avx512), Level::Avx2),
        (strided(128, Level::Avx512), Level::Avx512),
        (strided(33, Level::Avx512), Level::Avx512),
        (strided(36, Level::Neon), Level::Neon),
        (rows(24, Level::Avx512), Level::Avx2),
        (rows(64, Level::Avx512), Level::Avx512),
        (rows(25, Level::Avx512), Level::Avx512),
        (rows(12, Level::Neon), Level::Baseline),
        (rows(40, Level::Neon), Level::Neon),
        (transposed(8, Level::Avx512), Level::Avx512),
        (transposed(32, Level::Avx512), Level::Avx2),
        (transposed(12, Level::Avx512), Level::Baseline),
        (transposed(64, Level::Neon), Level::Neon),
        (transposed(2, Level::Neon), Level::Baseline),
    ] {
        assert_eq!(made, expected);
    }
}

/// Plans of compiled code and the interpreter of nests choose micro-kernels in different places. For
/// every length and level, both must choose one with the same function.
#[test]
fn plans_and_the_walker_choose_alike() {
    for level in Level::available() {
        for len in 0..=300 {
            assert_eq!(
                strided::micro(len, Direction::Pack, level).address(),
                strided::function(len, level) as usize
            );
            for direction in Direction::BOTH {
                for width in [Width::I32, Width::I64] {
                    let named = rows::micro(len, width, direction, level).address();
                    assert_eq!(named, rows::function(len, width, direction, level) as usize, "{len} {level}");
                }
            }
            let named = transpose::micro(len, Direction::Pack, level).map(Micro::address);
            assert_eq!(named, transpose::function(len, level).map(|f| f as usize), "{len} {level}");
        }
    }
}
