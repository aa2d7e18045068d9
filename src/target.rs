//! Targets: what code is made for, and the cost constants of the schedule.
//!
//! A target is data. Any machine plans, legalizes and writes templates for any target; only running the code asks whether this machine is one
//! ([`Target::runs`]). Micro-kernels and Cranelift exist for the architecture that the library was built for.

mod family;

use std::env::VarError;
use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorClass, Result};
use crate::process::{NO_TEXT, cut};

pub use family::Family;

/// Instruction set architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arch {
    /// AMD64.
    X86_64,
    /// Arm's 64-bit state.
    Aarch64,
    /// Any other: portable micro-kernels, code through Cranelift.
    Other,
}

impl Arch {
    /// The architecture that the library was built for.
    pub const HOST: Arch = if cfg!(target_arch = "x86_64") {
        Arch::X86_64
    } else if cfg!(target_arch = "aarch64") {
        Arch::Aarch64
    } else {
        Arch::Other
    };
}

/// Instruction set level of kernels and micro-kernels: a bundle of extensions that code may use without asking.
///
/// Levels have no order; [`Level::includes`] tells whether code for one runs where another does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Portable code, compiled for what every machine of the architecture has (SSE2 on x86-64).
    Baseline,
    /// aarch64 with Advanced SIMD, which every such machine has: loops written for its pairs, permutations and tables.
    Neon,
    /// x86-64 with AVX2, BMI1/2, FMA (x86-64-v3).
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ, VL (x86-64-v4).
    Avx512,
}

impl Level {
    /// All levels, in the order of their constants in the C ABI.
    pub const ALL: [Level; 4] = [Level::Baseline, Level::Avx2, Level::Avx512, Level::Neon];

    /// Returns the architecture whose extensions it names; none for portable code.
    pub fn arch(self) -> Option<Arch> {
        match self {
            Level::Baseline => None,
            Level::Neon => Some(Arch::Aarch64),
            Level::Avx2 | Level::Avx512 => Some(Arch::X86_64),
        }
    }

    /// Says whether a machine of this level runs code of level `other`.
    pub const fn includes(self, other: Level) -> bool {
        match other {
            Level::Baseline => true,
            Level::Neon => matches!(self, Level::Neon),
            Level::Avx2 => matches!(self, Level::Avx2 | Level::Avx512),
            Level::Avx512 => matches!(self, Level::Avx512),
        }
    }

    /// Returns the level of this machine.
    pub fn detect() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            if std::is_x86_feature_detected!("avx2")
                && std::is_x86_feature_detected!("bmi1")
                && std::is_x86_feature_detected!("bmi2")
                && std::is_x86_feature_detected!("fma")
            {
                if std::is_x86_feature_detected!("avx512f")
                    && std::is_x86_feature_detected!("avx512bw")
                    && std::is_x86_feature_detected!("avx512dq")
                    && std::is_x86_feature_detected!("avx512vl")
                {
                    return Level::Avx512;
                }
                return Level::Avx2;
            }
        }
        if cfg!(target_arch = "aarch64") { Level::Neon } else { Level::Baseline }
    }

    /// Says whether this machine runs it.
    pub fn runs(self) -> bool {
        Level::detect().includes(self)
    }

    /// Returns the levels that this machine runs, in the order of [`Level::ALL`].
    pub fn available() -> impl Iterator<Item = Level> {
        let host = Level::detect();
        Level::ALL.into_iter().filter(move |&l| host.includes(l))
    }

    /// Returns the level to use: `wanted`, or the one that `DDTC_TARGET` names, or the highest of this machine.
    ///
    /// # Errors
    /// Class `Arg` if `DDTC_TARGET` is no level, or the machine does not run the level.
    pub fn asked(wanted: Option<Level>) -> Result<Level> {
        let level = match (wanted, std::env::var("DDTC_TARGET")) {
            (Some(level), _) => level,
            (None, Ok(name)) => name.parse().map_err(|_| {
                Error::new(ErrorClass::Arg, "target", "DDTC_TARGET", cut(name.as_ref()), NAMES)
            })?,
            (None, Err(VarError::NotUnicode(value))) => {
                return Err(Error::new(ErrorClass::Arg, "target", "DDTC_TARGET", cut(&value), NO_TEXT));
            }
            (None, Err(VarError::NotPresent)) => Level::detect(),
        };
        if !level.runs() {
            let rule = format!("must be a level that this machine runs: its highest is {}", Level::detect());
            return Err(Error::new(ErrorClass::Arg, "target", "level", level.name(), rule));
        }
        Ok(level)
    }

    /// Returns the widest access in bytes that code of the level has.
    pub fn widest_access(self) -> u32 {
        match self {
            Level::Baseline | Level::Neon => 16,
            Level::Avx2 => 32,
            Level::Avx512 => 64,
        }
    }

    /// Returns the name used in `DDTC_TARGET`, logs and records.
    pub fn name(self) -> &'static str {
        match self {
            Level::Baseline => "baseline",
            Level::Neon => "neon",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The rule on names of levels.
const NAMES: &str = "must be baseline, avx2, avx512 or neon";

impl FromStr for Level {
    type Err = Error;

    fn from_str(s: &str) -> Result<Level> {
        Level::ALL
            .into_iter()
            .find(|l| l.name() == s)
            .ok_or_else(|| Error::new(ErrorClass::Arg, "target", "level", s, NAMES))
    }
}

/// Machine that code is made for: an architecture, a level of its extensions, and the extensions beyond the level that a choice depends on.
///
/// Prints and reads as the level's name, with `+vbmi` where it has that: `avx512+vbmi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    arch: Arch,
    level: Level,
    /// AVX-512 VBMI: permutations of bytes.
    vbmi: bool,
}

impl Target {
    /// Returns a machine of `level` without any extension beyond it; of portable code, one like this.
    pub fn new(level: Level) -> Target {
        Target { arch: level.arch().unwrap_or(Arch::HOST), level, vbmi: false }
    }

    /// Returns the target with AVX-512 VBMI, where the level is one that has such machines.
    pub fn with_vbmi(self) -> Target {
        Target { vbmi: self.level == Level::Avx512, ..self }
    }

    /// Returns the target for an architecture whose level is portable code.
    ///
    /// # Errors
    /// Class `Arg` if the level belongs to another architecture.
    pub fn on(self, arch: Arch) -> Result<Target> {
        if self.level.arch().is_some_and(|own| own != arch) {
            let rule = format!("must be the one that level {} belongs to", self.level);
            return Err(Error::new(ErrorClass::Arg, "target", "architecture", format!("{arch:?}"), rule));
        }
        Ok(Target { arch, ..self })
    }

    /// Code of `level` for this machine: with its other extensions, if it runs the level.
    pub fn host(level: Level) -> Target {
        let target = Target::new(level);
        #[cfg(target_arch = "x86_64")]
        if level.runs() && std::is_x86_feature_detected!("avx512vbmi") {
            return target.with_vbmi();
        }
        target
    }

    /// Returns its architecture.
    pub fn arch(self) -> Arch {
        self.arch
    }

    /// Returns its level.
    pub fn level(self) -> Level {
        self.level
    }

    /// Says whether bytes of a 64-byte vector are permuted by one instruction.
    pub fn permutes_bytes(self) -> bool {
        self.vbmi || self.level == Level::Neon
    }

    /// Says whether it runs code of `level`.
    pub fn includes(self, level: Level) -> bool {
        self.level.includes(level)
    }

    /// Says whether this machine runs its code.
    pub fn runs(self) -> bool {
        self.arch == Arch::HOST && self.level.runs() && (!self.vbmi || Target::host(self.level).vbmi)
    }

    /// Returns the targets whose code this machine runs.
    pub fn available() -> impl Iterator<Item = Target> {
        let plain = Level::available().map(Target::new);
        plain.chain(Level::available().map(Target::host).filter(|t| t.vbmi))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.level, if self.vbmi { "+vbmi" } else { "" })
    }
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(s: &str) -> Result<Target> {
        match s.strip_suffix("+vbmi") {
            Some("avx512") => Ok(Target::new(Level::Avx512).with_vbmi()),
            _ => s.parse().map(Target::new).map_err(|_| {
                let rule = "must be baseline, avx2, avx512, avx512+vbmi or neon";
                Error::new(ErrorClass::Arg, "target", "target", s, rule)
            }),
        }
    }
}

/// Accesses that an emitter has for bytes that move in straight lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accesses {
    /// The widest in bytes, 8 to 64.
    pub widest: u32,
    /// Whether words of 64 packed bytes move by one permutation.
    pub permutes: bool,
}

impl From<u32> for Accesses {
    /// Accesses of at most `widest` bytes, and no permutations.
    fn from(widest: u32) -> Accesses {
        Accesses { widest, permutes: false }
    }
}

/// Cost constants of the schedule: each with its reason, and where it was measured the machine and the date.
pub mod cost {
    use crate::kind::Direction;

    /// Longest copy that is written inline, in the widest moves of the level; longer ones call a micro-kernel. Zen4, 2026-11: a call of memcpy
    /// costs 1.4 ns at 64 to 128 B, inline 16-byte moves 1.1 ns at 64 B and 2.2 ns at 128 B. Wider moves take no longer each: structs of
    /// runs of 100, 70 and 86 B pack about twice as fast with 32 and 64 bytes a move as by a call over columns (Zen 5, 2026-11).
    pub const INLINE_MOVES: u64 = 6;
    /// Most of the widest moves that replace a whole loop. Sapphire Rapids, 2026-11: a call and its loop set-up cost 3 to 5 ns, as
    /// much as some 24 moves of 32 bytes (12 blocks of 40 B pack in 7.2 instead of 10.9 ns); Zen4: as 12 to 16 of 16 bytes.
    pub const STRAIGHT_MOVES: u64 = 24;
    /// Longest loop in bytes that is written out around moves of 128 bytes to eight whole vectors, where longer ones are a call. Sapphire
    /// Rapids, 2026-11: 16 blocks of 256 B pack in 1.05 instead of 1.11 of the C loop's time, 64 of them in 1.01 to 1.14 instead of
    /// 1.20 to 1.34; nothing is lost or gained with blocks of 64 B.
    pub const WRITTEN_LOOP: u64 = 16 << 10;
    /// Longest row, in blocks of up to 16 bytes, that is a loop of moves inside the loop over rows, where longer ones are a call each.
    /// Sapphire Rapids, 2026-11: 16 rows of 32 doubles at 272 B pack in 91 instead of 260 ns, of 128 in 1060 instead of 1220; setting up a
    /// call costs 4 to 25 ns.
    pub const ROW: u64 = 128;
    /// Longest such row of blocks of 17 to 64 bytes, but for packing those of 33 to 63, of which micro-kernels make full vectors: 11 rows of 44 blocks of 32 B by 64 pack in
    /// 190 instead of 350 ns, 3 rows of 32 of 20 to 64 B take 0.80 to 1.04 of the time of calls, of 64 0.87 to 1.07, of 96 as long (Emerald Rapids, 2026-11).
    pub const WIDE_ROW: u64 = 64;
    /// Longest such row for packing blocks at up to twice their length, of which micro-kernels make full vectors: 16 rows of 48 doubles 128 instead of
    /// 135 ns, of 64 171 instead of 152.
    pub const DENSE_ROW: u64 = 48;
    /// Most rows of an irregular struct that are written out: beyond it one call over three columns is as fast.
    pub const STRAIGHT_ROWS: usize = 48;
    /// Most long rows (each beyond [`INLINE_BYTES`]) that become one copy call each instead of a call over columns.
    pub const LONG_ROWS: usize = 16;
    /// Bytes beyond which a row is long: the longest copy that is written inline with moves of 16 bytes.
    pub const INLINE_BYTES: u64 = 96;
    /// Time of one row of the block micro-kernel with lengths that vary, in tenths of a nanosecond: a mispredicted branch.
    /// Xeon (Sapphire Rapids class), 2026-11-20: 10 ns a row on LAMMPS_full.
    pub const IRREGULAR_ROW: u64 = 80;

    /// Returns the time of one row of the table micro-kernel with blocks of `len` bytes, in tenths of a nanosecond. Xeon (Sapphire Rapids
    /// class), 2026-11-20: 0.25 ns at 4 B, 0.74 ns at 12 B, 0.9 ns at 24 B, all in the second-level cache.
    pub fn table_row(len: u64) -> u64 {
        match len {
            0..=8 => 3,
            9..=16 => 7,
            _ => 9 * len.div_ceil(32),
        }
    }
    /// Fewest irregular rows that are sorted by length within buckets, at levels without masks. Sapphire Rapids, 2026-11, AVX2: 2000
    /// blocks of 1 to 64 B are learned by the branch predictor (2.5 ns a row), 8000 are not (5.9 ns, 2.3 in buckets).
    pub const BUCKETED_ROWS: usize = 4096;
    /// Rows that are sorted together: few enough for their lines to stay in the first-level cache.
    pub const BUCKET: usize = 256;
    /// Most pieces per block on average: bounds the table.
    pub const MAX_PIECES: u64 = 16;
    /// Fewest rows that are cut into pieces of their own length where the lengths of those beside them have another divisor: six lists of 16384, 24 B and 8 B, pack in
    /// 92 instead of 101 us with a call for each length (Emerald Rapids, 2026-11). As many as are
    /// looked at together.
    pub const STRETCH_ROWS: usize = 64;
    /// Shortest piece in bytes.
    pub const MIN_PIECE: u64 = 4;
    /// Most runs of a loop over values that goes run by run, each with one call: memory is gone through once for each. Not tuned: a call for each
    /// run of each iteration costs some 5 ns (Zen 4, 2026-11), a struct of three runs by 32 B goes at 5.6 GB/s run by run.
    pub const VALUE_RUNS: usize = 8;
    /// Fewest iterations of a small body for which a permutation is called instead of unrolled moves.
    pub const PERMUTED_TRIP: u64 = 8;
    /// Most rows of a body that is moved by permutation: what fits a window of 64 bytes.
    pub const PERMUTED_ROWS: usize = 32;
    /// Fewest iterations of either loop of a transpose.
    pub const TRANSPOSED_TRIP: u64 = 4;
    /// Largest stride in bytes of the outer loop of a transpose, and more than its longest element: beyond a cache line, tiles share no lines. 4 by 4 elements of 64 B
    /// take 20 ns as a transpose, 6 by the best loop (Emerald Rapids, 2026-11).
    pub const TRANSPOSED_STRIDE: u64 = 64;
    /// Fewest stores that one permutation replaces, packing. Emerald Rapids, 2026-11: 64 B of 8 B words at 16 B pack in 0.64 ns by a permutation and in 1.02 by
    /// four stores, of 16 B blocks at 32 B in 0.64 and 0.81; misaligned 0.89 and 1.02, 0.9 and 0.9.
    pub const PERMUTED_PACK: u32 = 4;
    /// Fewest stores that one permutation replaces, unpacking: two stores under masks cost as much as four plain ones, and where they cross lines as eight.
    /// Emerald Rapids, 2026-11: 64 B of 8 B words at 16 B unpack in 0.81 instead of 1.53 ns, misaligned in 1.53 instead of 1.62.
    pub const PERMUTED_UNPACK: u32 = 8;
    /// As many more for words of 4 bytes whose indices and masks are made for one permutation alone. Emerald Rapids, 2026-11: 16 blocks of 12 B by
    /// three permutations, each of another form, unpack in 12.7 instead of 10.7 ns, 16 of 4 B by one in 4.3 instead of 6.4.
    pub const PERMUTED_FORM: u32 = 4;
    /// Longest near blocks, those in whole words at steps up to twice their length, of which a loop is written out in permutations, packing.
    pub const NEAR_PACK: u64 = 16;
    /// The same, unpacking: of longer ones a store under a mask replaces too few.
    pub const NEAR_UNPACK: u64 = 12;
    /// Near blocks in a turn of such a loop: whole permutations, and at most three forms of them.
    pub const NEAR_BLOCKS: u64 = 16;

    /// Returns the longest loop in bytes over near blocks of `len` bytes, `step` apart, that is written out in permutations where longer ones are a call.
    /// Emerald Rapids, 2026-11, over the call: packing 8 B by 16, 256 B in 0.58 to 0.68 of its time, 1 KiB 0.68 to 1.01, 2 KiB 0.73 to 1.17, 4 B by 8 alike;
    /// packing 12 B by 24 and 8 B by 12, of which no micro-kernel makes full vectors, 1 KiB 0.47 to 0.62, 16 KiB 0.38 to 0.74; unpacking
    /// 8 B by 16, 256 B in 0.33 to 0.36, 2 KiB 0.46 to 0.96, 4 KiB 0.48 to 1.12.
    pub fn near(direction: Direction, len: u64, step: u64) -> u64 {
        let odd = len < 16 && !(len.is_power_of_two() && step.is_multiple_of(len));
        match direction {
            Direction::Pack if odd => 16 << 10,
            Direction::Pack => 1 << 10,
            Direction::Unpack => 2 << 10,
        }
    }
    /// 16-byte moves per trip of an unrolled loop. Zen4, 2026-11: unrolling 4 to 8 pays for 8 B blocks, 16 adds nothing.
    pub const UNROLLED_MOVES: u32 = 8;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_two_architectures_include_neither_the_other() {
        let included = |level: Level| Level::ALL.map(|other| level.includes(other));
        // Columns: baseline, avx2, avx512, neon.
        assert_eq!(included(Level::Baseline), [true, false, false, false]);
        assert_eq!(included(Level::Avx2), [true, true, false, false]);
        assert_eq!(included(Level::Avx512), [true, true, true, false]);
        assert_eq!(included(Level::Neon), [true, false, false, true]);
    }

    #[test]
    fn targets_read_as_they_print() {
        for text in ["baseline", "avx2", "avx512", "avx512+vbmi", "neon"] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
        for text in ["avx2+vbmi", "+vbmi", "avx512+", "sse9"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_level_stays_with_its_architecture() {
        let portable = Target::new(Level::Baseline);
        assert_eq!(portable.arch(), Arch::HOST);
        assert_eq!(portable.on(Arch::Other).unwrap().arch(), Arch::Other);
        assert!(Target::new(Level::Neon).on(Arch::X86_64).is_err());
        assert!(Target::available().all(Target::runs));
        let foreign = if Arch::HOST == Arch::X86_64 { Arch::Aarch64 } else { Arch::X86_64 };
        assert!(!portable.on(foreign).unwrap().runs());
    }
}
