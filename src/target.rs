//! Targets for which code is made, and the cost constants of the schedule.
//!
//! A target is plain data. Any machine can plan and legalize for any target, and can write its code
//! by templates if there are templates for it. Only running the code requires that this machine is
//! such a target ([`Target::runs`]). Micro-kernels and code through Cranelift exist for the
//! architecture that the library was built for.

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
    /// x86-64, also called AMD64.
    X86_64,
    /// AArch64, the 64-bit execution state of Arm.
    Aarch64,
    /// Any other architecture, with portable micro-kernels and code through Cranelift.
    Other,
}

impl Arch {
    /// Architecture that the library was built for.
    pub const HOST: Arch = if cfg!(target_arch = "x86_64") {
        Arch::X86_64
    } else if cfg!(target_arch = "aarch64") {
        Arch::Aarch64
    } else {
        Arch::Other
    };
}

/// Instruction set level of kernels and micro-kernels: a set of extensions that code may use
/// without further checks.
///
/// Levels are not ordered. [`Level::includes`] says whether machines of one level run code of
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Portable code, compiled for what every machine of the architecture has (SSE2 on x86-64).
    Baseline,
    /// AArch64 with Advanced SIMD, which every such machine has. Loops of this level use its
    /// instructions for pairs, permutations and tables.
    Neon,
    /// x86-64 with AVX2, BMI1, BMI2 and FMA (a part of x86-64-v3).
    Avx2,
    /// x86-64 with the extensions of [`Level::Avx2`] and with AVX-512 F, BW, DQ and VL (a part of
    /// x86-64-v4).
    Avx512,
}

impl Level {
    /// All levels, in the order of their constants in the C ABI.
    pub const ALL: [Level; 4] = [Level::Baseline, Level::Avx2, Level::Avx512, Level::Neon];

    /// Returns the architecture to which the extensions of the level belong, or none for portable
    /// code.
    pub fn arch(self) -> Option<Arch> {
        match self {
            Level::Baseline => None,
            Level::Neon => Some(Arch::Aarch64),
            Level::Avx2 | Level::Avx512 => Some(Arch::X86_64),
        }
    }

    /// Returns true if a machine of this level runs code of level `other`.
    pub const fn includes(self, other: Level) -> bool {
        match other {
            Level::Baseline => true,
            Level::Neon => matches!(self, Level::Neon),
            Level::Avx2 => matches!(self, Level::Avx2 | Level::Avx512),
            Level::Avx512 => matches!(self, Level::Avx512),
        }
    }

    /// Returns the highest level that this machine runs.
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

    /// Returns true if this machine runs code of the level.
    pub fn runs(self) -> bool {
        Level::detect().includes(self)
    }

    /// Returns the levels that this machine runs, in the order of [`Level::ALL`].
    pub fn available() -> impl Iterator<Item = Level> {
        let host = Level::detect();
        Level::ALL.into_iter().filter(move |&l| host.includes(l))
    }

    /// Returns `wanted` if it is given, otherwise the level that the environment variable
    /// `DDTC_TARGET` names, or the highest level of this machine if the variable is not set.
    ///
    /// # Errors
    /// Class `Arg` if this machine does not run the level, or if `DDTC_TARGET` is used and is not
    /// the name of a level or not text in UTF-8.
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

    /// Returns the width in bytes of the widest access in code of the level.
    pub fn widest_access(self) -> u32 {
        match self {
            Level::Baseline | Level::Neon => 16,
            Level::Avx2 => 32,
            Level::Avx512 => 64,
        }
    }

    /// Returns the name of the level in `DDTC_TARGET`, logs and records.
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

/// Rule of the error messages about names of levels.
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

/// Machine that code is made for: an architecture, a level of its extensions, and further
/// extensions on which a choice depends.
///
/// The text form is the name of the level, with the suffix `+vbmi` if the machine has that
/// extension: `avx512+vbmi`. It does not contain the architecture, which for the level `baseline`
/// is read as that of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    arch: Arch,
    level: Level,
    /// Whether the machine has AVX-512 VBMI, which permutes bytes.
    vbmi: bool,
}

impl Target {
    /// Returns a target of `level` without further extensions. For portable code, its architecture
    /// is the one that the library was built for.
    pub fn new(level: Level) -> Target {
        Target { arch: level.arch().unwrap_or(Arch::HOST), level, vbmi: false }
    }

    /// Returns this target with AVX-512 VBMI if its level is [`Level::Avx512`]; targets of other
    /// levels are returned unchanged.
    pub fn with_vbmi(self) -> Target {
        Target { vbmi: self.level == Level::Avx512, ..self }
    }

    /// Returns this target on the architecture `arch`. Only the architecture of a target with
    /// portable code can change.
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

    /// Returns a target of `level` with the further extensions of this machine, if this machine
    /// runs the level, and otherwise without any.
    pub fn host(level: Level) -> Target {
        let target = Target::new(level);
        #[cfg(target_arch = "x86_64")]
        if level.runs() && std::is_x86_feature_detected!("avx512vbmi") {
            return target.with_vbmi();
        }
        target
    }

    /// Returns the architecture of the target.
    pub fn arch(self) -> Arch {
        self.arch
    }

    /// Returns the level of the target.
    pub fn level(self) -> Level {
        self.level
    }

    /// Returns true if one instruction picks bytes from a vector of 64 bytes: with AVX-512 VBMI, or
    /// by the table look-ups of Advanced SIMD.
    pub fn permutes_bytes(self) -> bool {
        self.vbmi || self.level == Level::Neon
    }

    /// Returns true if machines of this target run code of `level`.
    pub fn includes(self, level: Level) -> bool {
        self.level.includes(level)
    }

    /// Returns true if this machine runs code for the target.
    pub fn runs(self) -> bool {
        self.arch == Arch::HOST && self.level.runs() && (!self.vbmi || Target::host(self.level).vbmi)
    }

    /// Returns the targets whose code this machine runs: its levels without further extensions,
    /// followed by those with them.
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

/// Accesses that an emitter can write for moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accesses {
    /// Width in bytes of the widest access, 8 to 64.
    pub widest: u32,
    /// Whether one permutation can move the words of 64 packed bytes.
    pub permutes: bool,
}

impl From<u32> for Accesses {
    /// Returns accesses of at most `widest` bytes, without permutations.
    fn from(widest: u32) -> Accesses {
        Accesses { widest, permutes: false }
    }
}

/// Cost constants of the schedule. Each has its reason, and most that were measured have the
/// machine and the date.
///
/// A wrong value costs speed but does not change the bytes that are moved. Times are those of the
/// machine named; Zen 4, Zen 5, Sapphire Rapids and Emerald Rapids are microarchitectures of
/// x86-64.
pub mod cost {
    use crate::kind::Direction;

    /// Maximum length of a copy that is written inline, in units of the widest access of the level.
    /// A longer copy is a call of a micro-kernel, except in a loop within [`WRITTEN_LOOP`].
    ///
    /// Zen 4, 2026-11: a call of `memcpy` takes 1.4 ns for 64 to 128 B, while inline moves of 16 B
    /// take 1.1 ns for 64 B and 2.2 ns for 128 B. A wider move takes no longer than a narrow one.
    /// Zen 5, 2026-11: structs with runs of 100, 70 and 86 B pack about twice as fast with moves of
    /// 32 and 64 B as by a call over columns.
    pub const INLINE_MOVES: u64 = 6;
    /// Maximum number of bytes of a node, such as a whole loop, that is written out as
    /// straight-line code, in units of the widest access of the level.
    ///
    /// Sapphire Rapids, 2026-11: a call and the set-up of its loop cost 3 to 5 ns, as much as about
    /// 24 moves of 32 B: 12 blocks of 40 B pack in 7.2 ns instead of 10.9 ns. Zen 4: a call costs
    /// as much as 12 to 16 moves of 16 B.
    pub const STRAIGHT_MOVES: u64 = 24;
    /// Maximum number of bytes that a loop moves if its body is written out as moves although a
    /// block has 128 bytes or more: a multiple of the widest access, up to eight of these. A loop
    /// that moves more is a call.
    ///
    /// Sapphire Rapids, 2026-11, as a ratio to the time of a loop in C: 16 blocks of 256 B pack in
    /// 1.05 instead of 1.11, and 64 of them in 1.01 to 1.14 instead of 1.20 to 1.34. Blocks of 64 B
    /// neither gain nor lose.
    pub const WRITTEN_LOOP: u64 = 16 << 10;
    /// Maximum number of blocks of a row for which the row is a loop of moves inside the loop over
    /// rows, for blocks of up to 16 bytes. A longer row is one call. [`DENSE_ROW`] is the limit for
    /// dense blocks.
    ///
    /// Sapphire Rapids, 2026-11: 16 rows of 32 doubles pack in 91 ns instead of 260 ns, and 16 rows
    /// of 128 doubles in 1060 ns instead of 1220 ns, where the doubles of a row are 272 B apart.
    /// The set-up of a call costs 4 to 25 ns.
    pub const ROW: u64 = 128;
    /// As [`ROW`], for blocks of 17 to 64 bytes. Rows of 33 to 63 bytes a block are always calls
    /// when packing, because micro-kernels make full vectors of these.
    ///
    /// Emerald Rapids, 2026-11: 11 rows of 44 blocks of 32 B, 64 B apart, pack in 190 ns instead of
    /// 350 ns. Relative to calls, 3 rows of blocks of 20 to 64 B take 0.80 to 1.04 of the time with
    /// 32 blocks a row, 0.87 to 1.07 with 64 blocks, and the same time with 96 blocks.
    pub const WIDE_ROW: u64 = 64;
    /// As [`ROW`], when packing blocks of up to 32 bytes at a distance of at most twice their
    /// length, because micro-kernels make full vectors of these.
    ///
    /// Sapphire Rapids, 2026-11-21: 16 rows of 48 doubles take 128 ns instead of 135 ns, but 16
    /// rows of 64 doubles take 171 ns instead of 152 ns.
    pub const DENSE_ROW: u64 = 48;
    /// Maximum number of rows of an irregular struct that are written out. With more rows, one call
    /// over three columns is as fast.
    pub const STRAIGHT_ROWS: usize = 48;
    /// Maximum number of long rows (all longer than [`INLINE_BYTES`]) that become one copy call
    /// each, instead of one call over columns.
    pub const LONG_ROWS: usize = 16;
    /// Number of bytes above which a row is long. This is the length of the longest copy that is
    /// written inline with moves of 16 bytes.
    pub const INLINE_BYTES: u64 = 96;
    /// Time for one row in the micro-kernel for blocks of varying length, in tenths of a
    /// nanosecond. It is mostly a mispredicted branch.
    ///
    /// Xeon (Sapphire Rapids class), 2026-11-20: 10 ns a row for the datatype `LAMMPS_full`.
    pub const IRREGULAR_ROW: u64 = 80;

    /// Returns the time for one row of `len` bytes in the micro-kernel for tables, in tenths of a
    /// nanosecond.
    ///
    /// Xeon (Sapphire Rapids class), 2026-11-20: 0.25 ns for 4 B, 0.74 ns for 12 B, and 0.9 ns for
    /// 24 B, with all data in the second-level cache.
    pub fn table_row(len: u64) -> u64 {
        match len {
            0..=8 => 3,
            9..=16 => 7,
            _ => 9 * len.div_ceil(32),
        }
    }
    /// Minimum number of irregular rows that are sorted by length within buckets, at the levels
    /// `baseline` and `avx2`, which have no masks.
    ///
    /// Sapphire Rapids with AVX2, 2026-11: the branch predictor learns the lengths of 2000 blocks
    /// of 1 to 64 B (2.5 ns a row), but not those of 8000 (5.9 ns a row, and 2.3 ns in buckets).
    pub const BUCKETED_ROWS: usize = 4096;
    /// Number of rows that are sorted together. They are few enough that their cache lines stay in
    /// the first-level cache.
    pub const BUCKET: usize = 256;
    /// Maximum number of pieces into which a row is cut, on average over the rows. It bounds the
    /// size of the table.
    pub const MAX_PIECES: u64 = 16;
    /// Minimum number of consecutive rows that are cut into pieces of their own length if the rows
    /// before or after them have another divisor. The search looks at this many rows together. A
    /// folded repetition of rows has at least this many rows, too.
    ///
    /// Emerald Rapids, 2026-11: six lists of 16384 rows, of 24 B and of 8 B, pack in 92 us with one
    /// call for each length, and in 101 us if all rows are cut into pieces of 8 B.
    pub const STRETCH_ROWS: usize = 64;
    /// Minimum length of a piece, in bytes.
    pub const MIN_PIECE: u64 = 4;
    /// Maximum number of runs for which a loop over values is split into one call for each run. The
    /// loop goes through memory once for each of these calls.
    ///
    /// The value is not tuned. One call for each run of each iteration costs about 5 ns (Zen 4,
    /// 2026-11), while structs of three runs, with one struct every 32 B, move at 5.6 GB/s run by
    /// run.
    pub const VALUE_RUNS: usize = 8;
    /// Minimum number of iterations, if this is a constant, of a loop over a small body for which a
    /// permutation is called instead of unrolled moves.
    pub const PERMUTED_TRIP: u64 = 8;
    /// Maximum number of rows in a body that is moved by a permutation, which has to fit into a
    /// window of 64 bytes.
    pub const PERMUTED_ROWS: usize = 32;
    /// Minimum number of iterations of both loops of a transpose, if the number is a constant.
    pub const TRANSPOSED_TRIP: u64 = 4;
    /// Maximum absolute stride in bytes of a transpose: of the outer loop in user memory, and of
    /// the inner loop on the packed side. Elements must be shorter than this. With larger strides
    /// than a cache line, tiles do not share lines.
    ///
    /// Emerald Rapids, 2026-11: 4 by 4 elements of 64 B take 20 ns as a transpose, and 6 ns by the
    /// best loop.
    pub const TRANSPOSED_STRIDE: u64 = 64;
    /// Minimum number of stores that one permutation must replace when packing.
    ///
    /// Emerald Rapids, 2026-11: 64 packed bytes of words of 8 B, 16 B apart, pack in 0.64 ns by a
    /// permutation and in 1.02 ns by four stores; with blocks of 16 B, 32 B apart, the times are
    /// 0.64 ns and 0.81 ns. If user memory is misaligned, they are 0.89 ns and 1.02 ns for the
    /// words, and 0.9 ns and 0.9 ns for the blocks.
    pub const PERMUTED_PACK: u32 = 4;
    /// Minimum number of stores that one permutation must replace when unpacking. Two stores under
    /// masks cost as much as four plain stores, or as eight if they cross cache lines.
    ///
    /// Emerald Rapids, 2026-11: 64 packed bytes of words of 8 B, 16 B apart, unpack in 0.81 ns
    /// instead of 1.53 ns; misaligned, they take 1.53 ns instead of 1.62 ns.
    pub const PERMUTED_UNPACK: u32 = 8;
    /// Number by which [`PERMUTED_UNPACK`] is larger for words of 4 bytes if their indices and
    /// masks are used for a single permutation.
    ///
    /// Emerald Rapids, 2026-11: 16 blocks of 12 B unpack in 12.7 ns by three permutations of
    /// different forms, and in 10.7 ns without these; 16 blocks of 4 B unpack in 4.3 ns by one
    /// permutation, and in 6.4 ns without it.
    pub const PERMUTED_FORM: u32 = 4;
    /// Maximum length in bytes of near blocks for which a loop is written out in permutations, when
    /// packing. Near blocks are whole words of 4 bytes with gaps between them, and begin at most
    /// twice their length apart.
    pub const NEAR_PACK: u64 = 16;
    /// Maximum length in bytes of near blocks for which a loop is written out in permutations, when
    /// unpacking. With longer blocks, a store under a mask replaces too few plain stores.
    pub const NEAR_UNPACK: u64 = 12;
    /// Number of near blocks in one turn of a loop that is written out in permutations. So many
    /// blocks make whole permutations, which have at most three forms.
    pub const NEAR_BLOCKS: u64 = 16;

    /// Returns the maximum number of packed bytes of a loop over near blocks for which it is
    /// written out in permutations. The blocks have `len` bytes and are `step` bytes apart. Longer
    /// loops are calls.
    ///
    /// Emerald Rapids, 2026-11: packing 8 B by 16 B takes 0.58 to 0.68 of the time of a call for
    /// 256 B, 0.68 to 1.01 for 1 KiB, and 0.73 to 1.17 for 2 KiB; 4 B by 8 B are alike. Packing 12
    /// B by 24 B and 8 B by 12 B, of which no micro-kernel makes full vectors, takes 0.47 to 0.62
    /// for 1 KiB and 0.38 to 0.74 for 16 KiB. Unpacking 8 B by 16 B takes 0.33 to 0.36 for 256 B,
    /// 0.46 to 0.96 for 2 KiB, and 0.48 to 1.12 for 4 KiB.
    pub fn near(direction: Direction, len: u64, step: u64) -> u64 {
        let odd = len < 16 && !(len.is_power_of_two() && step.is_multiple_of(len));
        match direction {
            Direction::Pack if odd => 16 << 10,
            Direction::Pack => 1 << 10,
            Direction::Unpack => 2 << 10,
        }
    }
    /// Number of moves of 16 bytes in one turn of an unrolled loop. Zen 4, 2026-11: for blocks of 8
    /// B, unrolling 4 to 8 times pays, and 16 times adds nothing.
    pub const UNROLLED_MOVES: u32 = 8;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_two_architectures_include_neither_the_other() {
        let included = |level: Level| Level::ALL.map(|other| level.includes(other));
        // The columns are baseline, avx2, avx512 and neon.
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
