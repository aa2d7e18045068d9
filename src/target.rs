//! Targets for which code is made, and the cost constants of the schedule.
//!
//! A target is plain data, so any machine can plan and legalize for any target. If there are
//! instruction templates for a target, any machine can also emit its code by these. Code runs only
//! on a machine that has the architecture and the instructions of the target ([`Target::runs`]).
//! Micro-kernels, and emission through Cranelift, exist only for the architecture that the library
//! was built for.

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
    /// AArch64 with Advanced SIMD, which every AArch64 machine has. Micro-kernels of this level use
    /// the instructions of Advanced SIMD for pairs, permutations and table look-ups.
    Neon,
    /// x86-64 with AVX2, BMI1, BMI2 and FMA (a part of x86-64-v3).
    Avx2,
    /// x86-64 with the extensions of [`Level::Avx2`] and with AVX-512 F, BW, DQ and VL (a part of
    /// x86-64-v4).
    Avx512,
}

impl Level {
    /// All levels, in the order of the constants that the C interface has for them.
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
    /// Class `Arg` if this machine does not run the level. Also class `Arg` if `wanted` is none and
    /// the value of `DDTC_TARGET` is not the name of a level or not text in UTF-8.
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

/// Text of error messages that says which names of levels are allowed.
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

/// Kind of machine that code is made for: an architecture, a level (a set of instruction set
/// extensions), and further extensions on which a choice in the compiler depends.
///
/// The text form is the name of the level, with the suffix `+vbmi` if the machine has that
/// extension: `avx512+vbmi`. The text does not contain the architecture. When the level `baseline`
/// is parsed, the architecture is that for which the library was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    arch: Arch,
    level: Level,
    /// Whether the machine has AVX-512 VBMI, which permutes bytes.
    vbmi: bool,
}

impl Target {
    /// Returns a target of `level` without further extensions. If `level` is portable, the
    /// architecture of the target is the one that the library was built for.
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

    /// Returns a target of `level`. If this machine runs the level, the target has the further
    /// extensions of this machine, otherwise it has none.
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

    /// Returns true if the target has an instruction that picks any bytes from a vector of 64
    /// bytes. AVX-512 VBMI has one, and so has Advanced SIMD (table look-ups).
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

    /// Returns the targets whose code this machine runs. First come its levels without further
    /// extensions, then the levels with the further extensions of this machine, if it has any for
    /// them.
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
    /// Whether the emitter has permutations, each of which moves 64 packed bytes as words of 4 or 8
    /// bytes.
    pub permutes: bool,
}

impl From<u32> for Accesses {
    /// Returns accesses of at most `widest` bytes, without permutations.
    fn from(widest: u32) -> Accesses {
        Accesses { widest, permutes: false }
    }
}

/// Cost constants of the stage `schedule`. The comment of a constant gives its reason. Where the
/// value was measured, it usually gives the machine and the date.
///
/// A wrong value costs speed but does not change the bytes that are moved. Times were measured on
/// the machine that is named before them; Zen 4, Zen 5, Sapphire Rapids and Emerald Rapids are
/// microarchitectures of x86-64.
pub mod cost {
    use crate::kind::Direction;

    /// Maximum length of a copy that is written inline as moves, in units of the widest access of
    /// the level. A longer copy becomes a call of a micro-kernel, which is a precompiled loop.
    /// Loops that [`WRITTEN_LOOP`] allows are an exception.
    ///
    /// The limit counts moves and not bytes, because a wide move takes no longer than a narrow one.
    /// On Zen 4 (2026-11), a call of `memcpy` takes 1.4 ns for 64 to 128 B. Inline moves of 16 B
    /// take 1.1 ns for 64 B, which are 4 moves, and 2.2 ns for 128 B, which are 8 moves. So a call
    /// becomes faster than moves somewhere between 4 and 8 moves. On Zen 5 (2026-11), structs with
    /// runs of 100, 70 and 86 B pack about twice as fast with moves of 32 and 64 B as by one call
    /// of the micro-kernel that reads the rows from columns.
    pub const INLINE_MOVES: u64 = 6;
    /// Maximum size of a node of the nest, such as a whole loop, that is written out as
    /// straight-line code instead of becoming a call. The unit is the widest access of the level.
    /// Each copy in the node counts as its length, rounded up to whole units.
    ///
    /// Sapphire Rapids, 2026-11: a call and the set-up of its loop cost 3 to 5 ns, as much as about
    /// 24 moves of 32 B. 12 blocks of 40 B pack in 7.2 ns by straight-line code and in 10.9 ns by a
    /// call. Zen 4: a call costs as much as 12 to 16 moves of 16 B.
    pub const STRAIGHT_MOVES: u64 = 24;
    /// Maximum number of bytes that a loop over long blocks may move to become a loop of moves. A
    /// loop that moves more becomes a call of a micro-kernel. A long block here has at least 128
    /// bytes and at most eight times the width of the widest access, and its length is a multiple
    /// of that width.
    ///
    /// Sapphire Rapids, 2026-11, times relative to a loop in C: 16 blocks of 256 B take 1.05 by a
    /// loop of moves and 1.11 by a call, and 64 such blocks take 1.01 to 1.14 and 1.20 to 1.34,
    /// when packing. Blocks of 64 B take the same time either way.
    pub const WRITTEN_LOOP: u64 = 16 << 10;
    /// Maximum number of blocks in a row that becomes a loop of moves. A row is an inner loop over
    /// blocks, inside a loop over rows, as in a matrix. A row of more blocks becomes one call of a
    /// micro-kernel. This limit is for blocks of up to 16 bytes; for blocks that lie close
    /// together, [`DENSE_ROW`] is the limit when packing.
    ///
    /// Sapphire Rapids, 2026-11: 16 rows of 32 doubles pack in 91 ns by loops of moves and in 260
    /// ns by calls, and 16 rows of 128 doubles in 1060 ns and 1220 ns. The doubles of a row are 272
    /// B apart. The set-up of a call costs 4 to 25 ns.
    pub const ROW: u64 = 128;
    /// Maximum number of blocks in a row that becomes a loop of moves, as [`ROW`], but for blocks
    /// of 17 to 64 bytes. When packing, rows with blocks of 33 to 63 bytes always become calls,
    /// because micro-kernels gather such blocks into full vectors.
    ///
    /// Emerald Rapids, 2026-11: 11 rows of 44 blocks of 32 B, 64 B apart, pack in 190 ns by loops
    /// of moves and in 350 ns by calls. For 3 rows of blocks of 20 to 64 B, loops of moves take
    /// 0.80 to 1.04 of the time of calls with 32 blocks in a row, 0.87 to 1.07 with 64 blocks, and
    /// the same time with 96 blocks.
    pub const WIDE_ROW: u64 = 64;
    /// Maximum number of blocks in a row that becomes a loop of moves, as [`ROW`], but for packing
    /// blocks of up to 32 bytes that begin at most twice their length apart. The limit is lower
    /// because micro-kernels gather such blocks into full vectors.
    ///
    /// Sapphire Rapids, 2026-11-21: 16 rows of 48 doubles take 128 ns by loops of moves and 135 ns
    /// by calls, but 16 rows of 64 doubles take 171 ns and 152 ns.
    pub const DENSE_ROW: u64 = 48;
    /// Maximum number of rows that are written out as moves if the rows have irregular offsets and
    /// lengths, as in a struct. With more rows, one call that reads user offsets, packed offsets
    /// and lengths from three columns is as fast.
    pub const STRAIGHT_ROWS: usize = 48;
    /// Maximum number of irregular rows that are each copied by a call of their own, if all rows
    /// are longer than [`INLINE_BYTES`]. Neighbouring rows of one length and at a constant step
    /// share a call. The alternative is one call that moves all rows and reads their offsets and
    /// lengths from columns.
    pub const LONG_ROWS: usize = 16;
    /// Length in bytes above which a row counts as long for [`LONG_ROWS`]. It equals the length of
    /// the longest copy that is written inline with moves of 16 bytes ([`INLINE_MOVES`]).
    pub const INLINE_BYTES: u64 = 96;
    /// Time that the schedule assumes for one row in the micro-kernel for blocks of varying length,
    /// in tenths of a nanosecond. Most of this time is the cost of a mispredicted branch. Irregular
    /// rows are cut into equal pieces only if the pieces of a row take less time than this
    /// ([`table_row`]), so with a lower value fewer lists of rows are cut.
    ///
    /// The value stands for 8 ns. The one recorded measurement is higher: 10 ns a row for the
    /// datatype `LAMMPS_full` on a Xeon of the Sapphire Rapids class, 2026-11-20. No record says
    /// why the value is lower.
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
    /// Minimum number of irregular rows for which rows are sorted within buckets of [`BUCKET`]
    /// rows, by the power of two that covers their length, so that the branches on the lengths are
    /// predicted. Only the levels `baseline` and `avx2`, which have no masked accesses, sort rows.
    ///
    /// Sapphire Rapids with AVX2, 2026-11: the branch predictor learns the lengths of 2000 blocks
    /// of 1 to 64 B (2.5 ns a row), but not those of 8000 blocks (5.9 ns a row unsorted, and 2.3 ns
    /// if sorted within buckets).
    pub const BUCKETED_ROWS: usize = 4096;
    /// Number of rows in a bucket. Within each bucket, irregular rows are sorted by the power of
    /// two that covers their length. So few rows are sorted together that their cache lines stay in
    /// the first-level cache.
    pub const BUCKET: usize = 256;
    /// Maximum number of equal pieces into which irregular rows are cut, on average per row. The
    /// limit bounds the size of the table, which has an entry for each piece.
    pub const MAX_PIECES: u64 = 16;
    /// Minimum number of rows for which the search for stretches separates rows from their
    /// neighbours. A stretch is a group of consecutive irregular rows that are cut into pieces of
    /// one length, which is a common divisor of their lengths. A stretch ends where the next row
    /// would lower this divisor, if the stretch has at least this many rows. It also ends before at
    /// least this many rows of one length that is larger than the divisor. Other stretches, such as
    /// the last one, may have fewer rows. The value must not exceed `CHUNK_ROWS` in
    /// `src/nest/rows.rs`, the number of rows that the search examines at a time. If a stretch
    /// consists of repetitions of the same rows, which then share a table, each repetition has at
    /// least this many rows, too.
    ///
    /// Emerald Rapids, 2026-11: six lists of 16384 rows, with elements of 24 B and of 8 B, pack in
    /// 92 us if each list has pieces of its own length, and in 101 us if all rows are cut into
    /// pieces of 8 B.
    pub const STRETCH_ROWS: usize = 64;
    /// Minimum length of a piece, in bytes.
    pub const MIN_PIECE: u64 = 4;
    /// Maximum number of runs in the body of a loop over values that is split into one call per
    /// run. A run is a contiguous group of values. Each call moves its run for all iterations, so
    /// the loop goes through memory once per run.
    ///
    /// The value is not tuned. Zen 4, 2026-11: without the split there would be a call for each run
    /// of each iteration, which costs about 5 ns. With the split, structs of three runs, with one
    /// struct every 32 B, move at 5.6 GB/s.
    pub const VALUE_RUNS: usize = 8;
    /// Minimum number of iterations for which a loop over a small body becomes a call of a
    /// micro-kernel that permutes bytes, instead of moves. There is no minimum if the number
    /// depends on the instance count.
    pub const PERMUTED_TRIP: u64 = 8;
    /// Maximum number of rows in the body of a loop that is moved by calling a permutation. The
    /// body must also fit into a vector, which has at most 64 bytes.
    pub const PERMUTED_ROWS: usize = 32;
    /// Minimum number of iterations of each of the two loops of a transpose. There is no minimum
    /// for a loop whose number of iterations depends on the instance count.
    pub const TRANSPOSED_TRIP: u64 = 4;
    /// Maximum absolute stride in bytes of the two loops of a transpose: of the outer loop in user
    /// memory, and of the inner loop on the packed side. Elements must be shorter than this. With
    /// strides longer than a cache line, neighbouring elements are in different cache lines, so
    /// moving the matrix in tiles gains nothing.
    ///
    /// Emerald Rapids, 2026-11: 4 by 4 elements of 64 B take 20 ns as a transpose, and 6 ns by the
    /// best loop.
    pub const TRANSPOSED_STRIDE: u64 = 64;
    /// Minimum number of stores that one permutation must replace when packing.
    ///
    /// Emerald Rapids, 2026-11: eight words of 8 B that are 16 B apart, so 64 packed bytes, pack in
    /// 0.64 ns by a permutation and in 1.02 ns by four stores. Four blocks of 16 B that are 32 B
    /// apart take 0.64 ns and 0.81 ns. If user memory is misaligned, the times are 0.89 ns and 1.02
    /// ns for the words, and 0.9 ns and 0.9 ns for the blocks.
    pub const PERMUTED_PACK: u32 = 4;
    /// Minimum number of stores that one permutation must replace when unpacking. Two stores under
    /// masks cost as much as four plain stores, or as eight if they cross cache lines.
    ///
    /// Emerald Rapids, 2026-11: eight words of 8 B that are 16 B apart unpack in 0.81 ns by a
    /// permutation and in 1.53 ns by plain stores. If user memory is misaligned, the times are 1.53
    /// ns and 1.62 ns.
    pub const PERMUTED_UNPACK: u32 = 8;
    /// Number that is added to [`PERMUTED_UNPACK`] for words of 4 bytes if their indices and masks
    /// serve only one permutation, because loading these must then pay with that permutation.
    ///
    /// Emerald Rapids, 2026-11: 16 blocks of 12 B unpack in 12.7 ns by three permutations with
    /// different indices and masks, and in 10.7 ns by plain moves. 16 blocks of 4 B unpack in 4.3
    /// ns by one permutation, and in 6.4 ns by plain moves.
    pub const PERMUTED_FORM: u32 = 4;
    /// Maximum length in bytes of the blocks in a loop that becomes permutations, when packing. The
    /// blocks must be near: they have gaps between them and begin at most twice their length apart,
    /// and blocks and gaps consist of whole words of 4 bytes.
    pub const NEAR_PACK: u64 = 16;
    /// Maximum length in bytes of the blocks in a loop that becomes permutations, when unpacking.
    /// The blocks must be near, as for [`NEAR_PACK`]. With longer blocks, a store under a mask
    /// replaces too few plain stores.
    pub const NEAR_UNPACK: u64 = 12;
    /// Number of near blocks (see [`NEAR_PACK`]) in one turn of a loop of permutations. The bytes
    /// of 16 such blocks fill whole permutations of 64 bytes, with at most three different sets of
    /// indices and masks, for which an emitter has registers.
    pub const NEAR_BLOCKS: u64 = 16;

    /// Returns the maximum number of packed bytes of a loop over near blocks (see [`NEAR_PACK`])
    /// that becomes permutations. The blocks have `len` bytes and begin `step` bytes apart. A loop
    /// that moves more bytes becomes a call, or a loop of moves if it is a row that [`ROW`] or
    /// [`DENSE_ROW`] allows.
    ///
    /// Emerald Rapids, 2026-11: times of permutations, relative to a call, for loops of several
    /// numbers of packed bytes. Packing blocks of 8 B with step 16 B takes 0.58 to 0.68 for 256 B,
    /// 0.68 to 1.01 for 1 KiB, and 0.73 to 1.17 for 2 KiB; blocks of 4 B with step 8 B behave
    /// alike. For blocks of 12 B with step 24 B and of 8 B with step 12 B, no micro-kernel gathers
    /// full vectors; packing these takes 0.47 to 0.62 for 1 KiB and 0.38 to 0.74 for 16 KiB.
    /// Unpacking blocks of 8 B with step 16 B takes 0.33 to 0.36 for 256 B, 0.46 to 0.96 for 2 KiB,
    /// and 0.48 to 1.12 for 4 KiB.
    pub fn near(direction: Direction, len: u64, step: u64) -> u64 {
        let odd = len < 16 && !(len.is_power_of_two() && step.is_multiple_of(len));
        match direction {
            Direction::Pack if odd => 16 << 10,
            Direction::Pack => 1 << 10,
            Direction::Unpack => 2 << 10,
        }
    }
    /// Number of moves of 16 bytes in one turn of an unrolled loop. Zen 4, 2026-11: for blocks of 8
    /// B, unrolling 4 to 8 times is faster, and unrolling 16 times is no faster than that.
    pub const UNROLLED_MOVES: u32 = 8;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_two_architectures_include_neither_the_other() {
        let included = |level: Level| Level::ALL.map(|other| level.includes(other));
        // The four results are for the levels baseline, avx2, avx512 and neon, in this order.
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
