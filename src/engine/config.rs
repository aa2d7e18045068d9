//! Configuration of an engine: the mode, the limits, and what is compiled when.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorClass, Result};
use crate::target::Level;

/// When datatypes are compiled, if at all.
///
/// ```
/// use ddtc::{Config, Mode};
///
/// let mode: Mode = "lazy".parse()?;
/// let config = Config::default().mode(mode);
/// assert_eq!(mode, Mode::Lazy);
/// # Ok::<(), ddtc::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Nothing is compiled, and each pack and unpack follows the type map. A commit prepares and
    /// caches the layout nevertheless. This mode serves to switch ddtc off and to find faults.
    Off,
    /// Layouts are interpreted; nothing is ever compiled.
    Interpret,
    /// A layout is interpreted until one direction has moved [`Config::lazy_threshold`] bytes. The
    /// call that reaches this number compiles the layout for its direction. Layouts that differ
    /// only in distances of 64 KiB or more share one count of bytes.
    Lazy,
    /// A layout is compiled for packing at commit. It is compiled for unpacking at the first unpack
    /// or, with [`Config::both_directions`], at commit as well.
    Commit,
}

impl Mode {
    /// All modes. The index of a mode is its integer value in control variables.
    pub(crate) const ALL: [Mode; 4] = [Mode::Off, Mode::Interpret, Mode::Lazy, Mode::Commit];

    /// Returns the name of the mode in `DDTC_MODE`, in control variables and on the command line.
    pub(crate) fn name(self) -> &'static str {
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

/// Maximum number of threads for one call.
pub(crate) const MAX_THREADS: usize = 1024;

/// Configuration of an [`Engine`](super::Engine). The type is its own builder: each method sets one
/// value and returns the configuration.
///
/// ```
/// use ddtc::{Config, Datatype, Engine, Mode};
///
/// let config = Config::default().mode(Mode::Lazy).lazy_threshold(1 << 20).cache_bytes(8 << 20);
/// let engine = Engine::new(config);
/// let pairs = engine.commit(&Datatype::vector(100, 2, 4, &Datatype::of::<f64>())?)?;
/// assert_eq!(pairs.packed_size(1)?, 1600);
/// # Ok::<(), ddtc::Error>(())
/// ```
// The fields are public only for the other crates of the workspace, which read all of them and set
// those that are meant for tests. Programs build a configuration with the methods, so that a new
// field breaks no program.
#[derive(Clone, Debug)]
pub struct Config {
    #[doc(hidden)]
    pub mode: Mode,
    /// CPU level of kernels and micro-kernels. [`Engine::new`](super::Engine::new) replaces a level
    /// that this machine cannot run, so the machine can always run the level of an engine.
    #[doc(hidden)]
    pub level: Level,
    /// Whether precompiled code is used for plans that are one call or one loop around a call. If
    /// not, code is emitted for every kernel.
    #[doc(hidden)]
    pub precompiled: bool,
    /// Whether code is emitted by templates on machines that have them. If not, all emitted code
    /// comes from Cranelift.
    #[doc(hidden)]
    pub native: bool,
    #[doc(hidden)]
    pub both_directions: bool,
    #[doc(hidden)]
    pub lazy_threshold: u64,
    #[doc(hidden)]
    pub cache_bytes: usize,
    #[doc(hidden)]
    pub arena_bytes: usize,
    #[doc(hidden)]
    pub threads: usize,
    #[doc(hidden)]
    pub parallel_bytes: u64,
    #[doc(hidden)]
    pub stream_bytes: u64,
    #[doc(hidden)]
    pub check: bool,
}

/// Declares the builder methods of [`Config`], each of which sets the field of its name.
macro_rules! setters {
    ($($(#[$attribute:meta])* $field:ident: $of:ty;)*) => {
        impl Config {
            $(
                $(#[$attribute])*
                #[must_use]
                pub fn $field(self, $field: $of) -> Config {
                    Config { $field, ..self }
                }
            )*
        }
    };
}

setters! {
    /// Sets when datatypes are compiled; the default is [`Mode::Commit`].
    ///
    /// ```
    /// use ddtc::{Config, Mode};
    ///
    /// let config = Config::default().mode(Mode::Interpret);
    /// ```
    mode: Mode;

    /// Sets whether a commit compiles a layout for both directions. By default, a layout is
    /// compiled for unpacking at the first unpack.
    ///
    /// ```
    /// let config = ddtc::Config::default().both_directions(true);
    /// ```
    both_directions: bool;

    /// Sets the number of bytes after which a layout is compiled in [`Mode::Lazy`]; the default is
    /// 80 KiB. Each direction of a layout has its own count of bytes. Layouts that differ only in
    /// distances of 64 KiB or more share their counts.
    ///
    /// ```
    /// use ddtc::{Config, Mode};
    ///
    /// let config = Config::default().mode(Mode::Lazy).lazy_threshold(1 << 20);
    /// ```
    lazy_threshold: u64;

    /// Sets the number of bytes above which the cache drops layouts; the default is 64 MiB. All
    /// layouts in the cache count towards this number, including those of committed datatypes. Only
    /// layouts that no committed datatype uses are dropped. The least recently used layouts are
    /// dropped first, until at most three quarters of this number of bytes are in use.
    ///
    /// ```
    /// let config = ddtc::Config::default().cache_bytes(8 << 20);
    /// ```
    cache_bytes: usize;

    /// Sets the maximum number of bytes of executable memory; the default is 256 MiB. A datatype
    /// whose code does not fit is interpreted.
    ///
    /// ```
    /// let config = ddtc::Config::default().arena_bytes(16 << 20);
    /// ```
    arena_bytes: usize;

    /// Sets the number of threads for one pack or unpack of at least [`Config::parallel_bytes`]
    /// bytes. With 1, the default, no call starts a thread. An engine uses at most 1024 threads,
    /// and takes a larger number as 1024.
    ///
    /// A call is split only if it moves all packed bytes of its instances and the datatype has been
    /// compiled for its direction. Unpacking is split only if it is known that no entries of the
    /// instances overlap. Conversions and reductions are not split.
    ///
    /// ```
    /// let config = ddtc::Config::default().threads(4).parallel_bytes(64 << 20);
    /// ```
    threads: usize;

    /// Sets the minimum number of packed bytes of a call that is split over threads; the default is
    /// 32 MiB.
    ///
    /// ```
    /// let config = ddtc::Config::default().threads(4).parallel_bytes(64 << 20);
    /// ```
    parallel_bytes: u64;

    /// Sets the minimum number of packed bytes for which packing uses stores that bypass the
    /// caches. With [`u64::MAX`], the default, packing never uses them. Such stores are faster if
    /// the packed bytes do not fit in the last-level cache and nothing on this machine reads them
    /// soon.
    ///
    /// If a call is split over threads, the number applies to the piece of each thread. Ordinary
    /// stores are still used for blocks at irregular offsets and for data that is moved in steps of
    /// less than 4 KiB. They are also used for all data in [`Mode::Off`] and in conversions.
    ///
    /// ```
    /// let config = ddtc::Config::default().stream_bytes(256 << 20);
    /// ```
    stream_bytes: u64;

    /// Sets whether the nests and plans that the stages of compilation make are verified, and
    /// whether every pack, unpack, range and copy is compared with what the type map defines. The
    /// comparison covers the bytes of the type map, not those between them. Reductions are not
    /// compared. A difference is counted, logged and corrected.
    ///
    /// ```
    /// let config = ddtc::Config::default().check(true);
    /// ```
    check: bool;
}

impl Default for Config {
    fn default() -> Self {
        Config {
            mode: Mode::Commit,
            level: Level::detect(),
            precompiled: true,
            native: true,
            both_directions: false,
            // Emitting a kernel takes about 5 us. Compared with the interpreter of nests, a kernel
            // saves between 10 ns (dense doubles) and 130 ns (short rows) per KiB, so it pays off
            // after 40 to 500 KiB (Sapphire Rapids, 2026-11). With a lower value, layouts that are
            // hardly used are compiled too. With a higher value, more bytes are interpreted before
            // an often used layout is compiled.
            lazy_threshold: 80 << 10,
            cache_bytes: 64 << 20,
            arena_bytes: 256 << 20,
            threads: 1,
            // Starting and joining a thread takes as long as moving about one megabyte.
            parallel_bytes: 32 << 20,
            // The library does not know whether the packed bytes will be read from the cache soon,
            // so it never writes past the caches unless the program asks for it.
            stream_bytes: u64::MAX,
            check: false,
        }
    }
}
