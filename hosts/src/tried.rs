//! Kinds of calls that are right when they are converted, for each release of an MPI library that
//! was tried.
//!
//! The results are data: `tried.txt` has a row for each run of the matrix of MPI libraries
//! (`preload/tests/hosts/matrix.rs`, docs/LIBRARIES.md). A run executes programs without the
//! preload library, and with it on all ranks, on the even ranks and on the odd ranks, and compares
//! the results. Which calls are converted under a library follows from its rows alone
//! ([`TrialStatus::find`]). How they are converted depends on the properties in the module
//! [`crate::profile`].

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::policy::{Call, Family, Library};
use crate::transport::Transport;

/// Kind of calls for which the matrix has a separate verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Messages between two ranks, except [`Kind::Exchanges`].
    Messages,
    /// `MPI_Isendrecv` and `MPI_Isendrecv_replace`.
    Exchanges,
    /// Blocking and nonblocking collective calls of all ranks of a communicator.
    Collectives,
    /// Blocking and nonblocking collective calls of neighbours.
    Neighbors,
    /// Persistent collective calls, including those of neighbours.
    Persistent,
    /// One-sided puts into windows, and gets from windows.
    Windows,
    /// Reads and writes of files.
    Files,
}

impl Kind {
    /// All kinds, in the order of the columns of `tried.txt`.
    pub const ALL: [Kind; 7] = [
        Kind::Messages,
        Kind::Exchanges,
        Kind::Collectives,
        Kind::Neighbors,
        Kind::Persistent,
        Kind::Windows,
        Kind::Files,
    ];

    /// Returns the name of the kind, which heads its column in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Messages => "messages",
            Kind::Exchanges => "exchanges",
            Kind::Collectives => "collectives",
            Kind::Neighbors => "neighbors",
            Kind::Persistent => "persistent",
            Kind::Windows => "windows",
            Kind::Files => "files",
        }
    }

    /// Returns the kind of a call of a policy. Persistent collective calls and exchanges have kinds
    /// of their own, for which callers ask separately. Returns `None` for [`Call::Inside`], the
    /// moves by compiled code inside Open MPI, because a test at run time tries these.
    pub fn from_call(call: Call) -> Option<Kind> {
        Some(match call {
            Call::Message => Kind::Messages,
            Call::Bcast
            | Call::Gather
            | Call::Scatter
            | Call::Allgather
            | Call::Alltoall
            | Call::Alltoallw => Kind::Collectives,
            Call::Neighbor | Call::NeighborAlltoallw => Kind::Neighbors,
            Call::FileWrite | Call::FileRead => Kind::Files,
            Call::Put | Call::Get => Kind::Windows,
            Call::Inside => return None,
        })
    }
}

/// Set of kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// Set that contains no kind.
    pub const NONE: Kinds = Kinds(0);
    /// Set that contains all kinds.
    pub const ALL: Kinds = Kinds((1 << Kind::ALL.len()) - 1);
    /// Kinds that a proof can permit ([`crate::proof`]).
    pub const PROVABLE: Kinds = Kinds::NONE.with(Kind::Messages).with(Kind::Collectives);

    /// Returns true if the kind is in the set.
    pub fn has(self, kind: Kind) -> bool {
        self.0 >> kind as u8 & 1 != 0
    }

    /// Returns true if no kind is in the set.
    pub fn is_empty(self) -> bool {
        self == Kinds::NONE
    }

    /// Returns the set with one more kind.
    #[must_use]
    pub const fn with(self, kind: Kind) -> Kinds {
        Kinds(self.0 | 1 << kind as u8)
    }

    /// Returns the kinds that are in both sets.
    pub fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 & other.0)
    }

    /// Returns the kinds that are in at least one of the two sets.
    #[must_use]
    pub fn or(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    /// Returns the kinds of this set that are not in the other set.
    #[must_use]
    pub fn without(self, other: Kinds) -> Kinds {
        Kinds(self.0 & !other.0)
    }
}

/// Writes the names of the kinds, separated by commas, or `nothing`.
impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = Kind::ALL.into_iter().filter(|&k| self.has(k)).map(Kind::name).collect();
        f.write_str(&if names.is_empty() { "nothing".to_owned() } else { names.join(", ") })
    }
}

/// Set of kinds of calls from which kinds can be removed while other threads read it.
#[derive(Debug)]
pub struct SharedKinds(AtomicU8);

impl SharedKinds {
    /// Returns a set with these kinds.
    pub fn new(kinds: Kinds) -> SharedKinds {
        SharedKinds(AtomicU8::new(kinds.0))
    }

    /// Returns the kinds that are in the set now.
    #[inline]
    pub fn get(&self) -> Kinds {
        Kinds(self.0.load(Ordering::Relaxed))
    }

    /// Removes all kinds that are not among `kinds`.
    pub fn restrict(&self, kinds: Kinds) {
        self.0.fetch_and(kinds.0, Ordering::Relaxed);
    }
}

/// Result of the matrix for one kind of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The results with the preload library equal those without it, whichever ranks convert.
    Right,
    /// The results are right without the preload library and different with it.
    Wrong,
    /// Without the preload library, the results are wrong or a signal ends the program.
    OwnFault,
    /// The library does not have such calls.
    Absent,
    /// Such calls were not run, or ddtc converted none of them.
    Untried,
}

impl Verdict {
    /// All verdicts.
    pub const ALL: [Verdict; 5] =
        [Verdict::Right, Verdict::Wrong, Verdict::OwnFault, Verdict::Absent, Verdict::Untried];

    /// Returns the word for the verdict in `tried.txt`.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Right => "right",
            Verdict::Wrong => "wrong",
            Verdict::OwnFault => "fault",
            Verdict::Absent => "absent",
            Verdict::Untried => "untried",
        }
    }
}

/// One run of the matrix: a library and a transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// Family and release, as the library's version text says.
    pub library: Library,
    /// Device of a library of MPICH's family, from its version text; `-` for other libraries.
    pub device: &'a str,
    /// Word for the transport between the ranks, such as `shared` or `tcp`.
    pub transport: &'a str,
    /// Date of the run, as year, month and day.
    pub date: &'a str,
    /// Verdicts in the order of [`Kind::ALL`].
    pub verdicts: [Verdict; Kind::ALL.len()],
}

impl<'a> Row<'a> {
    /// Returns the row in a line of `tried.txt`; `None` if the line is not a row.
    fn parse(line: &'a str) -> Option<Row<'a>> {
        let mut words = line.split_whitespace();
        let (family, release) = (words.next()?, words.next()?);
        let family =
            [Family::Mpich, Family::Intel, Family::OpenMpi].into_iter().find(|f| f.name() == family)?;
        let mut version = [0; 3];
        let mut parts = release.split('.');
        for place in &mut version {
            *place = parts.next()?.parse().ok()?;
        }
        let (device, transport, date) = (words.next()?, words.next()?, words.next()?);
        let mut verdicts = [Verdict::Absent; Kind::ALL.len()];
        for place in &mut verdicts {
            let word = words.next()?;
            *place = Verdict::ALL.into_iter().find(|verdict| verdict.name() == word)?;
        }
        let is_whole = parts.next().is_none() && words.next().is_none();
        let library = Library { is_ch3: device.starts_with("ch3"), ..Library::new(family, version) };
        is_whole.then_some(Row { library, device, transport, date, verdicts })
    }

    /// Returns the kinds that were right. If messages were not right, no kind counts as right,
    /// because the calls of all other kinds are taken to consist of messages.
    fn kinds(&self) -> Kinds {
        let right = Kind::ALL.into_iter().zip(self.verdicts).filter(|&(_, v)| v == Verdict::Right);
        let kinds = right.fold(Kinds::NONE, |kinds, (kind, _)| kinds.with(kind));
        if kinds.has(Kind::Messages) { kinds } else { Kinds::NONE }
    }
}

/// Results of the matrix of MPI libraries.
const TRIED: &str = include_str!("tried.txt");

/// Returns all rows of the matrix, in the order of the file.
pub fn rows() -> impl Iterator<Item = Row<'static>> {
    // A test ensures that every line is a row or a comment.
    TRIED.lines().filter(|line| !line.starts_with('#')).filter_map(Row::parse)
}

/// What the runs of the matrix show about an MPI library. The runs are the rows of `tried.txt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialStatus {
    /// The release was run, or at least two other releases of its series (major and minor version)
    /// were and messages were right in them.
    Tried {
        /// Kinds that are converted: those that were right in all runs of the release, or of the
        /// other releases of its series if the release was not run. If the transport is known and
        /// the release, or at least two of the others, were run with it, only these runs count.
        kinds: Kinds,
        /// Release that the user is told was tried: the library's own release if it was run,
        /// otherwise the newest release of its series that was run.
        on: Library,
    },
    /// The release was not run. At most one other release of its series was, or messages were wrong
    /// in one of them. Only `MPI_Pack` and `MPI_Unpack` are converted, unless the user asks for
    /// more.
    Untried {
        /// Kinds that are converted if the user asks for it: those that were right in all runs of
        /// `nearest`. If the transport is known and some of these runs used it, only those count.
        kinds: Kinds,
        /// Newest release of the library's family that was run and is older than this library; if
        /// there is none, the oldest release that was run. MPICH with the device ch3 counts as a
        /// family of its own.
        nearest: Library,
    },
    /// No release of the library's family was run, or the library is of no known family. MPICH with
    /// the device ch3 counts as a family of its own.
    Unknown,
}

impl TrialStatus {
    /// Returns what is known of a library with a transport. `transport` is `None` if the transport
    /// is not known.
    pub fn find(library: &Library, transport: Option<Transport>) -> TrialStatus {
        TrialStatus::from_rows(library, transport, rows)
    }

    /// Returns the same as [`TrialStatus::find`], but reads the rows that `rows` returns.
    fn from_rows<'a, I>(library: &Library, transport: Option<Transport>, rows: impl Fn() -> I) -> TrialStatus
    where
        I: Iterator<Item = Row<'a>>,
    {
        let is_related = |tried: &Library| (tried.family, tried.is_ch3) == (library.family, library.is_ch3);
        let releases = || rows().map(|row| row.library).filter(is_related);
        // `kinds` returns the kinds that were right in all runs of the releases for which `is_of`
        // returns true. If at least `enough` of these releases were run with the transport, only
        // their runs with it count.
        let kinds = |is_of: &dyn Fn(Library) -> bool, enough: usize| {
            let runs = || rows().filter(|row| is_of(row.library));
            let is_asked = |row: &Row| transport.is_none_or(|transport| transport.is_of(row.transport));
            let mut with_it: Vec<_> = runs().filter(is_asked).map(|row| row.library.version).collect();
            with_it.sort_unstable();
            with_it.dedup();
            let counts = |row: &Row| with_it.len() < enough || is_asked(row);
            runs().filter(counts).map(|row| row.kinds()).fold(Kinds::ALL, Kinds::and)
        };
        if releases().any(|tried| tried == *library) {
            return TrialStatus::Tried { kinds: kinds(&|tried| tried == *library, 1), on: *library };
        }
        // The release itself was not run. If two or more releases of its series were run, their
        // common results hold for it as well. One release with the transport does not suffice for
        // the results of that transport, because another release may behave differently with it.
        // If messages were wrong in one of these releases, this says nothing about the release,
        // because a fault of one release may be absent from another. A preliminary
        // release, such as 5.0.0b1, belongs to no series.
        let is_near = |tried: Library| {
            is_related(&tried) && tried.version[..2] == library.version[..2] && !library.is_preliminary
        };
        let newest = releases().filter(|&tried| is_near(tried)).max_by_key(|l| l.version);
        if let Some(on) = newest.filter(|on| releases().any(|tried| is_near(tried) && tried != *on))
            && let common = kinds(&is_near, 2)
            && common.has(Kind::Messages)
        {
            return TrialStatus::Tried { kinds: common, on };
        }
        // The runs of the series do not decide about the library, so it counts as untried. The
        // nearest older release shows what can be converted if the user asks for it.
        let older = releases().filter(|tried| tried.version < library.version).max_by_key(|l| l.version);
        match older.or_else(|| releases().min_by_key(|l| l.version)) {
            Some(nearest) => TrialStatus::Untried { kinds: kinds(&|tried| tried == nearest, 1), nearest },
            None => TrialStatus::Unknown,
        }
    }

    /// Returns a sentence about the library for its user: what is converted, and which release was
    /// tried. `asked` contains the kinds that are converted only because the user asks for it.
    pub fn in_words(self, library: &Library, asked: Kinds) -> String {
        match self {
            TrialStatus::Tried { kinds, .. } if kinds.is_empty() => {
                "only MPI_Pack and MPI_Unpack: messages were not right in a run of this release"
                    .to_owned()
            }
            TrialStatus::Untried { nearest, .. } if !asked.is_empty() => {
                format!("{library} was not tried; its calls are converted as those of {nearest}")
            }
            TrialStatus::Unknown if !asked.is_empty() => format!(
                "no release of this MPI library was tried; {asked} are converted because DDTC_POLICY is all"
            ),
            TrialStatus::Tried { kinds, on } if on == *library => format!("{kinds}: tried with this release"),
            TrialStatus::Tried { kinds, on } => {
                format!("{kinds}: tried with {on} and other releases of its series")
            }
            TrialStatus::Untried { kinds, nearest } => {
                let all = format!("; with DDTC_POLICY=all its calls are converted as those of {nearest}");
                format!(
                    "only MPI_Pack and MPI_Unpack: {library} was not tried; `ddtc tune` finds out what is right on this machine{}",
                    if kinds.is_empty() { "" } else { &all }
                )
            }
            TrialStatus::Unknown => {
                "only MPI_Pack and MPI_Unpack: no release of this MPI library was tried; `ddtc tune` finds out what is right on this machine"
                    .to_owned()
            }
        }
    }

    /// Returns the kinds of calls that are converted. `asked` is true if the user asks for
    /// conversions even under a release that was not tried, and there is a profile for it
    /// ([`crate::profile::Profile::find_untried`]).
    pub fn kinds(self, asked: bool) -> Kinds {
        match self {
            TrialStatus::Tried { kinds, .. } => kinds,
            TrialStatus::Untried { kinds, .. } if asked => kinds,
            TrialStatus::Unknown if asked => Kinds::PROVABLE,
            TrialStatus::Untried { .. } | TrialStatus::Unknown => Kinds::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    const ROWS: &str = "\
mpich 4.2.1 ch4:ofi shared 2026-11-29 right right right right right right right
mpich 4.2.3 ch4:ofi shared 2026-11-29 right fault right right wrong right right
mpich 4.2.3 ch4:ofi tcp    2026-11-29 right right right right right right fault
mpich 4.1.3 ch4:ofi shared 2026-11-29 right absent wrong right right right right
mpich 4.1.3 ch3:nemesis shared 2026-11-29 wrong absent right right right right right
mpich 4.4.1 ch4:ofi shared 2026-11-29 right right wrong right right right right
mpich 4.4.2 ch4:ofi shared 2026-11-29 right right right right right right right";

    fn over(transport: Option<Transport>, text: &str) -> TrialStatus {
        TrialStatus::from_rows(&Library::from_version_text(text), transport, || {
            ROWS.lines().filter_map(Row::parse)
        })
    }

    fn anywhere(text: &str) -> TrialStatus {
        over(None, text)
    }

    fn release(version: [u32; 3]) -> Library {
        Library::new(Family::Mpich, version)
    }

    #[test]
    fn every_line_is_a_row_or_a_comment() {
        let lines = TRIED.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(rows().count(), lines);
        assert!(lines > 0);
        let libraries: Vec<_> = rows().map(|row| (row.library.family as u8, row.library.version)).collect();
        assert!(libraries.is_sorted(), "{libraries:?}");
    }

    #[test]
    fn a_kind_is_converted_if_it_was_right_with_the_transport() {
        let kinds = |transport, text| over(Some(transport), text).kinds(false).to_string();
        let shared = kinds(Transport::Shared, "MPICH Version: 4.2.3");
        assert_eq!(shared, "messages, collectives, neighbors, windows, files");
        let network = kinds(Transport::Libfabric, "MPICH Version: 4.2.3");
        assert_eq!(network, "messages, exchanges, collectives, neighbors, persistent, windows");
        let not_run = kinds(Transport::Ucx, "MPICH Version: 4.2.3");
        assert_eq!(not_run, "messages, collectives, neighbors, windows");
        let series = kinds(Transport::Libfabric, "MPICH Version: 4.2.2");
        assert_eq!(series, not_run, "only one release of the series was run with it");
        let series = kinds(Transport::Shared, "MPICH Version: 4.2.2");
        assert_eq!(series, shared, "two releases of the series were run with it");
    }

    #[test]
    fn a_kind_is_converted_if_it_was_right_with_every_transport_where_none_is_known() {
        let TrialStatus::Tried { kinds, on } = anywhere("MPICH Version: 4.2.3") else { panic!() };
        assert_eq!(on, release([4, 2, 3]));
        assert_eq!(kinds.to_string(), "messages, collectives, neighbors, windows");
        let TrialStatus::Tried { kinds, .. } = anywhere("MPICH Version: 4.2.1") else { panic!() };
        assert_eq!(kinds, Kinds::ALL);
    }

    #[test]
    fn a_series_is_trusted_after_two_of_its_releases() {
        assert_eq!(anywhere("MPICH Version: 4.2.0"), anywhere("MPICH Version: 4.2.3"));
        for early in ["4.2.0rc1", "4.2.3b1", "4.2.0a2"] {
            let status = anywhere(&format!("MPICH Version: {early}"));
            assert!(matches!(status, TrialStatus::Untried { .. }), "{early}: {status:?}");
        }
        assert_eq!(anywhere("MPICH Version: 4.2.4"), anywhere("MPICH Version: 4.2.3"));
        assert!(
            !anywhere("MPICH Version: 4.4.0").kinds(true).has(Kind::Collectives),
            "right in one release alone"
        );
        for (text, nearest) in [
            ("MPICH Version: 4.1.2", [4, 1, 3]),
            ("MPICH Version: 4.3.0", [4, 2, 3]),
            ("MPICH Version: 4.5.0", [4, 4, 2]),
            ("MPICH Version: 3.4", [4, 1, 3]),
        ] {
            let status = anywhere(text);
            assert!(
                matches!(status, TrialStatus::Untried { nearest: n, .. } if n == release(nearest)),
                "{text}"
            );
            assert!(status.kinds(false).is_empty() && status.kinds(true).has(Kind::Messages), "{text}");
        }
        let TrialStatus::Tried { kinds, .. } = anywhere("MPICH Version: 4.1.3, device ch3:nemesis") else {
            panic!()
        };
        assert!(kinds.is_empty(), "messages were wrong");
        assert!(anywhere("MPICH Version: 4.2.3, device ch3:sock").kinds(false).is_empty());
        for text in ["Nobody's MPI 4.2.3", "Intel(R) MPI Library 2021.18"] {
            let status = anywhere(text);
            assert_eq!(status, TrialStatus::Unknown, "{text}");
            assert!(status.kinds(false).is_empty() && status.kinds(true) == Kinds::PROVABLE);
            let words = |asked| status.in_words(&Library::from_version_text(text), status.kinds(asked));
            assert!(words(false).starts_with("only MPI_Pack and MPI_Unpack: no release of this MPI library"));
            assert!(words(true).contains("; messages, collectives are converted because"), "{}", words(true));
        }
    }

    /// MPICH 4.0 is such a series: messages are wrong under 4.0.2, and right under 4.0.3.
    #[test]
    fn a_series_with_a_wrong_release_says_nothing_about_the_others() {
        const OLD: &str = "\
mpich 3.4.3 ch4:ofi shared 2026-11-29 right absent right right absent right right
mpich 4.0.2 ch4:ucx shared 2026-11-29 wrong fault right fault fault fault right
mpich 4.0.3 ch4:ofi shared 2026-11-29 right fault right right fault right right
mpich 4.0.3 ch4:ofi tcp    2026-11-29 right fault right right fault right right
mpich 4.0.3 ch4:ofi ucx    2026-11-29 wrong fault right right fault right right";
        let over = |transport, patch| {
            TrialStatus::from_rows(&release([4, 0, patch]), transport, || OLD.lines().filter_map(Row::parse))
        };
        let shared = Some(Transport::Shared);
        for (patch, nearest) in [(0, [3, 4, 3]), (1, [3, 4, 3]), (4, [4, 0, 3])] {
            let status = over(shared, patch);
            let is_nearest =
                matches!(status, TrialStatus::Untried { nearest: n, .. } if n == release(nearest));
            assert!(is_nearest, "4.0.{patch}: {status:?}");
            assert!(status.kinds(false).is_empty() && status.kinds(true).has(Kind::Messages), "{status:?}");
        }
        // Only one release of the series was run over libfabric, so the other one counts, too.
        let status = over(Some(Transport::Libfabric), 1);
        assert!(matches!(status, TrialStatus::Untried { .. }), "{status:?}");
        // A release that was run itself stays as it is.
        assert_eq!(over(shared, 2), TrialStatus::Tried { kinds: Kinds::NONE, on: release([4, 0, 2]) });
        assert!(over(shared, 3).kinds(false).has(Kind::Messages));
        // Nothing is promised of `DDTC_POLICY=all` if it would convert nothing.
        let words = |transport| over(transport, 4).in_words(&release([4, 0, 4]), Kinds::NONE);
        assert!(
            words(shared).ends_with("with DDTC_POLICY=all its calls are converted as those of mpich-4.0.3")
        );
        assert!(words(Some(Transport::Ucx)).ends_with("finds out what is right on this machine"));
    }

    /// The test of README's table (`tests/docs/libraries.rs`) has a list of these series, since it
    /// cannot use this crate.
    #[test]
    fn readme_has_the_series_under_which_nothing_is_staged() {
        let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
        let line = readme.lines().find(|line| line.contains("messages only inside the library")).unwrap();
        for row in rows() {
            let [major, minor, _] = row.library.version;
            let is_named =
                row.library.family == Family::OpenMpi && line.contains(&format!("Open MPI {major}.{minor}"));
            assert_eq!(is_named, !Profile::find(&row.library).stages, "{}", row.library);
        }
    }

    #[test]
    fn lines_that_are_no_rows_are_refused() {
        let row = ROWS.lines().next().unwrap();
        assert!(Row::parse(row).is_some());
        for (from, to) in [("mpich", "mpi"), ("4.2.1", "4.2"), ("4.2.1", "4.2.1.1"), ("right", "fine")] {
            assert_eq!(Row::parse(&row.replacen(from, to, 1)), None, "{to}");
        }
        assert_eq!(Row::parse(&format!("{row} right")), None);
        assert_eq!(Row::parse(row.rsplit_once(' ').unwrap().0), None);
    }

    #[test]
    fn every_call_of_a_policy_has_a_kind_but_what_moves_inside() {
        for call in Call::ALL {
            assert_eq!(Kind::from_call(call).is_none(), call == Call::Inside, "{call:?}");
        }
    }
}
