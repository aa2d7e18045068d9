//! Configuration of an engine.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorClass, Result};
use crate::target::Level;

/// Mode of commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Nothing: calls, ranges too, go by the definition of the type map. For embedders that switch ddtc off, and for hunting bugs.
    Off,
    /// The normal nest is walked; nothing is ever compiled.
    Interpret,
    /// Walked until a direction has moved [`Config::lazy_threshold`] bytes, then compiled by the call that crosses it.
    Lazy,
    /// Compiled at commit (pack; unpack then too, or on its first use).
    Commit,
}

impl Mode {
    /// All modes, in the order of their integer values in control variables.
    pub const ALL: [Mode; 4] = [Mode::Off, Mode::Interpret, Mode::Lazy, Mode::Commit];

    /// Returns the name used in `DDTC_MODE`, control variables and the CLI.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Off => "off",
            Mode::Interpret => "interpret",
            Mode::Lazy => "lazy",
            Mode::Commit => "commit",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(s: &str) -> Result<Mode> {
        Mode::ALL.into_iter().find(|m| m.name() == s).ok_or_else(|| {
            Error::new(ErrorClass::Arg, "config", "mode", s, "must be off, interpret, lazy or commit")
        })
    }
}

/// Configuration of an [`Engine`](super::Engine).
#[derive(Clone, Debug)]
pub struct Config {
    /// Mode of commits.
    pub mode: Mode,
    /// CPU level of kernels and micro-kernels; must be one that this machine runs.
    pub level: Level,
    /// Use precompiled code for plans that are one call; without it every kernel is emitted.
    pub precompiled: bool,
    /// Emit by templates on machines that have them; without it all code comes from Cranelift.
    pub native: bool,
    /// Compile both directions at commit (otherwise unpack is compiled on its first use).
    pub both_directions: bool,
    /// Bytes that one direction of a layout moves in mode `Lazy` before it is compiled.
    pub lazy_threshold: u64,
    /// Bytes of nests, code and tables that the cache keeps beyond what committed types hold.
    pub cache_bytes: usize,
    /// Bytes of executable memory; past it commits fall back to the walker.
    pub arena_bytes: usize,
    /// Threads for one pack or unpack of at least [`Config::parallel_bytes`]: 1, the default, never starts one.
    pub threads: usize,
    /// Packed bytes from which a call is split over threads.
    pub parallel_bytes: u64,
    /// Packed bytes from which a pack stores past the caches; `u64::MAX`, the default, never does. Pays where the payload is larger
    /// than the last-level cache and nobody on this machine reads it soon.
    pub stream_bytes: u64,
    /// Verify every stage, and compare every pack, unpack and range with the definition of the type map: the bytes that the call maps, not those around
    /// them. A difference is counted, logged and put right. Who calls [`Kernel::entry`](crate::Kernel::entry) itself is on his own.
    pub check: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            mode: Mode::Commit,
            level: Level::detect(),
            precompiled: true,
            native: true,
            both_directions: false,
            // Emission costs some 5 us, and a kernel saves 10 (dense doubles) to 130 ns (short rows) a KiB over the walker: it pays after 40 to
            // 500 KiB (Sapphire Rapids, 2026-11).
            lazy_threshold: 80 << 10,
            cache_bytes: 64 << 20,
            arena_bytes: 256 << 20,
            threads: 1,
            // Starting and joining a thread costs as much as moving about a megabyte.
            parallel_bytes: 32 << 20,
            // Whether the reader takes the packed bytes from cache is not known here.
            stream_bytes: u64::MAX,
            check: false,
        }
    }
}
