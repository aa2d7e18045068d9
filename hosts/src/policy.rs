//! Policies: tables of the calls that get faster if their data are packed by compiled code first.
//!
//! There is one table for each MPI library and version. It maps call, layout class and payload to
//! yes or no. The shipped tables convert only combinations that got clearly faster on every machine
//! that was measured. `ddtc tune` measures the user's machine and writes a file with a table that
//! the preload library reads. The class of a layout is computed from its normal nest, so equal
//! layouts have the same class, however they were constructed. Payloads are distinguished by powers
//! of two.

use std::fmt;
use std::path::PathBuf;

use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;
use ddtc::internal::nest::{LoopNest, Node, Normal};

/// Class of layouts that the datatype engines of MPI libraries move at similar speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// One contiguous run of bytes for any count, so nothing has to be packed.
    Dense,
    /// Loops over one run of less than [`MIN_LONG_RUN`] bytes, as in vectors and subarrays.
    StridedShort,
    /// Loops over one run of [`MIN_LONG_RUN`] bytes or more.
    StridedLong,
    /// Several runs per iteration, as in structures, with less than [`MIN_LONG_RUN`] bytes on
    /// average.
    BlocksShort,
    /// Several runs per iteration, with [`MIN_LONG_RUN`] bytes or more on average.
    BlocksLong,
    /// Many displacements that follow no stride, as in indexed types, with runs of less than
    /// [`MIN_LONG_RUN`] bytes on average.
    TableShort,
    /// Many displacements that follow no stride, with runs of [`MIN_LONG_RUN`] bytes or more on
    /// average.
    TableLong,
}

/// Minimum length of a long run, in bytes: a cache line.
pub const MIN_LONG_RUN: i64 = 64;

impl Class {
    /// All classes that a policy decides about.
    pub const ALL: [Class; 6] = [
        Class::StridedShort,
        Class::StridedLong,
        Class::BlocksShort,
        Class::BlocksLong,
        Class::TableShort,
        Class::TableLong,
    ];

    /// Returns the name of the class in tables.
    pub fn name(self) -> &'static str {
        match self {
            Class::Dense => "dense",
            Class::StridedShort => "strided-short",
            Class::StridedLong => "strided-long",
            Class::BlocksShort => "blocks-short",
            Class::BlocksLong => "blocks-long",
            Class::TableShort => "table-short",
            Class::TableLong => "table-long",
        }
    }

    /// Returns the class of a layout.
    pub fn from_nest(nest: &LoopNest<Normal>) -> Class {
        Class::and_run(nest).0
    }

    /// Returns the class of a layout and the average length of its runs in bytes, which is given as
    /// 0 for a dense layout.
    pub fn and_run(nest: &LoopNest<Normal>) -> (Class, u64) {
        let (mut bytes, mut runs, mut leaves, mut table) = (0i128, 0i128, 0usize, false);
        for node in nest.nodes() {
            match node {
                Node::Copy { n, .. } if n.per_count => return (Class::Dense, 0),
                Node::Copy { n, .. } => {
                    leaves += 1;
                    runs += 1;
                    bytes += i128::from(n.k);
                }
                Node::Blocks { len, .. } => {
                    leaves += 2;
                    runs += len.len() as i128;
                    bytes += len.iter().map(i128::from).sum::<i128>();
                    table |= len.len() > MAX_STRUCT_BLOCKS;
                }
                Node::Table { displacements, .. } => table |= displacements.len() > MAX_STRUCT_BLOCKS,
                Node::Loop { .. } => {}
            }
        }
        if runs == 0 {
            return (Class::Dense, 0);
        }
        let run = u64::try_from(bytes / runs).unwrap_or(u64::MAX);
        let class = match (table, leaves > 1, run >= MIN_LONG_RUN.unsigned_abs()) {
            (true, _, false) => Class::TableShort,
            (true, _, true) => Class::TableLong,
            (false, true, false) => Class::BlocksShort,
            (false, true, true) => Class::BlocksLong,
            (false, false, false) => Class::StridedShort,
            (false, false, true) => Class::StridedLong,
        };
        (class, run)
    }
}

/// Returns true if a layout has at most one loop besides that over the instances of a call, as a
/// vector or a structure has.
pub fn has_one_loop(nest: &LoopNest<Normal>) -> bool {
    let loops = nest.nodes().iter().filter(|node| matches!(node, Node::Loop { trip, .. } if !trip.per_count));
    loops.count() <= 1
}

/// Kinds of calls that a policy decides about separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// Messages between two ranks.
    Message,
    /// `MPI_Bcast`, with its nonblocking and persistent forms.
    Bcast,
    /// `MPI_Gather` and `MPI_Gatherv`, with their nonblocking and persistent forms.
    Gather,
    /// `MPI_Scatter` and `MPI_Scatterv`, with their nonblocking and persistent forms.
    Scatter,
    /// `MPI_Allgather`, with its nonblocking and persistent forms.
    Allgather,
    /// `MPI_Alltoall` and `MPI_Alltoallv`, with their nonblocking and persistent forms.
    Alltoall,
    /// `MPI_Alltoallw`, with its nonblocking and persistent forms.
    Alltoallw,
    /// Neighbourhood collective calls with one datatype for all neighbours on each side.
    Neighbor,
    /// `MPI_Neighbor_alltoallw`, with its nonblocking and persistent forms.
    NeighborAlltoallw,
    /// Writes to a file.
    FileWrite,
    /// Reads from a file.
    FileRead,
    /// Puts into a window: `MPI_Put` and `MPI_Rput`.
    Put,
    /// Gets from a window by `MPI_Rget`, which returns a request. `MPI_Get` returns none and is not
    /// converted.
    Get,
    /// Messages that would otherwise be packed first, but whose bytes compiled code moves inside
    /// Open MPI, by Open MPI's convertor hook.
    Inside,
}

impl Call {
    /// All kinds of calls, in the order of their discriminants.
    pub const ALL: [Call; 14] = [
        Call::Message,
        Call::Bcast,
        Call::Gather,
        Call::Scatter,
        Call::Allgather,
        Call::Alltoall,
        Call::Alltoallw,
        Call::Neighbor,
        Call::NeighborAlltoallw,
        Call::FileWrite,
        Call::FileRead,
        Call::Put,
        Call::Get,
        Call::Inside,
    ];

    /// Returns true if all ranks of a communicator or of a neighbourhood make the call. Calls on
    /// files are never counted among these.
    pub fn is_collective(self) -> bool {
        (Call::Bcast..=Call::NeighborAlltoallw).contains(&self)
    }

    /// Returns the name of the call in tables. Rows about messages are written without a name.
    pub fn name(self) -> &'static str {
        match self {
            Call::Message => "message",
            Call::Bcast => "bcast",
            Call::Gather => "gather",
            Call::Scatter => "scatter",
            Call::Allgather => "allgather",
            Call::Alltoall => "alltoall",
            Call::Alltoallw => "alltoallw",
            Call::Neighbor => "neighbor",
            Call::NeighborAlltoallw => "neighbor-alltoallw",
            Call::FileWrite => "file-write",
            Call::FileRead => "file-read",
            Call::Put => "put",
            Call::Get => "get",
            Call::Inside => "inside",
        }
    }
}

/// Name of a call that has rows in tables of earlier versions. These rows are skipped, because the
/// conversion of that call gained nothing and was removed.
const FORMER: &str = "accumulate";

/// The shipped tables, one for each family of MPI libraries, in the format of users' tables.
const SHIPPED: &str = include_str!("policy.txt");

/// Maximum number of irregular blocks that are classified like the members of a structure. A layout
/// with a `Blocks` or `Table` node of more rows belongs to a table class.
const MAX_STRUCT_BLOCKS: usize = 16;

/// A policy: for each call and layout class, the set of payloads that are converted. Bit `k` of a
/// set stands for payloads of `2^k` to `2^(k+1) - 1` bytes. The payload of a message, or of a call
/// on a file or window, is the number of all its bytes. The payload of a collective call is the
/// number of bytes that one rank sends to another, on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    sets: [[u64; Class::ALL.len()]; Call::ALL.len()],
}

impl Policy {
    /// Policy by which nothing is converted in any call.
    pub const NONE: Policy = Policy { sets: [[0; Class::ALL.len()]; Call::ALL.len()] };
    /// Policy by which everything is packed first, except dense layouts. In no call does compiled
    /// code move the bytes inside Open MPI instead.
    pub const ALL: Policy = {
        let mut sets = [[u64::MAX; Class::ALL.len()]; Call::ALL.len()];
        sets[Call::Inside as usize] = [0; Class::ALL.len()];
        Policy { sets }
    };

    /// Returns the set of payloads that are converted in messages with layouts of a class.
    pub fn set(&self, class: Class) -> u64 {
        self.payloads(Call::Message, class)
    }

    /// Returns the set of payloads that are converted in calls of a kind with layouts of a class.
    #[inline]
    pub fn payloads(&self, call: Call, class: Class) -> u64 {
        Class::ALL.iter().position(|&c| c == class).map_or(0, |i| self.sets[call as usize][i])
    }

    /// Returns true if anything is converted in calls of a kind: any payload of any layout class.
    #[inline]
    pub fn any(&self, call: Call) -> bool {
        self.sets[call as usize] != [0; Class::ALL.len()]
    }

    /// Returns a copy of this policy in which `set` is the set of payloads that are converted in
    /// messages with layouts of a class.
    #[must_use]
    pub fn with(self, class: Class, set: u64) -> Policy {
        self.with_call(Call::Message, class, set)
    }

    /// Returns a copy of this policy in which `set` is the set of payloads that are converted in
    /// calls of a kind with layouts of a class.
    #[must_use]
    pub fn with_call(mut self, call: Call, class: Class, set: u64) -> Policy {
        if let Some(i) = Class::ALL.iter().position(|&c| c == class) {
            self.sets[call as usize][i] = set;
        }
        self
    }

    /// Returns true if a set of payloads contains a payload of `bytes` bytes.
    #[inline]
    pub fn has(set: u64, bytes: u64) -> bool {
        bytes > 0 && set >> bytes.ilog2() & 1 != 0
    }

    /// Returns the set of all payloads from `bytes` upwards. `bytes` is rounded down to a power of
    /// two and must not be 0.
    pub const fn from(bytes: u64) -> u64 {
        u64::MAX << bytes.ilog2()
    }

    /// Returns the shipped policy of a family of MPI libraries, which is used if the user has no
    /// table. It converts what gets clearly faster, beyond the noise, on every machine with a
    /// record. benches/record/POLICY.md compares the records and states the rule. A test generates
    /// `policy.txt` from the records.
    pub fn shipped(table: &str) -> Policy {
        // A test ensures that the shipped tables can be parsed.
        Policy::parse(SHIPPED, table).ok().flatten().unwrap_or(Policy::NONE)
    }

    /// Parses the text of a file, and returns the table of `library`; `None` if the file has none.
    ///
    /// A file consists of lines. `library NAME` begins a table. `CLASS none` or `CLASS FROM-TO ...`
    /// is a row about messages. `FROM` and `TO` are numbers of bytes and powers of two. Payloads
    /// from `FROM` to less than twice `TO` are converted; if `TO` is missing, there is no upper
    /// bound. If the name of another call ([`Call::name`]) stands before the class, the row is
    /// about that call. Calls and classes without a row are not converted. `#` begins a comment.
    ///
    /// # Errors
    /// A line has none of these forms. The error names the number of the first such line.
    pub fn parse(text: &str, library: &str) -> Result<Option<Policy>> {
        // `current` is the table of the last line `library`, to which rows are added, and `seen`
        // says whether it is the table that was asked for. At the next line `library`, that table
        // moves to `found`. If a file has several tables of one name, the first of them counts.
        let (mut found, mut current, mut seen) = (None, None, false);
        for (i, line) in text.lines().enumerate() {
            let refuse = |rule: &'static str| {
                Error::new(ErrorClass::Arg, "policy", format!("line {}", i + 1), line.trim(), rule)
            };
            let line = line.split('#').next().unwrap_or("").trim();
            let Some((head, rest)) = line.split_once(char::is_whitespace) else {
                if line.is_empty() {
                    continue;
                }
                return Err(refuse("must be `library NAME`, `CLASS none` or `CLASS FROM-TO ...`"));
            };
            if head == "library" {
                found = found.or(current.take().filter(|_| seen));
                seen = rest.trim() == library;
                current = Some(Policy::NONE);
                continue;
            }
            if head == FORMER {
                continue;
            }
            // What remains is a row. If its first word is the name of a call and two more words
            // follow, the class is the second word; otherwise the first word must be a class, and
            // the row is about messages.
            let call = Call::ALL.into_iter().find(|c| c.name() == head);
            let (call, head, rest) = match call.zip(rest.trim().split_once(char::is_whitespace)) {
                Some((call, (class, rest))) => (call, class, rest),
                None => (Call::Message, head, rest),
            };
            let class = Class::ALL.iter().find(|c| c.name() == head);
            let class = class.ok_or_else(|| {
                refuse("must begin with `library`, a layout class, or a call and a layout class")
            })?;
            let set = parse_set(rest).ok_or_else(|| {
                refuse("must be `none` or ranges FROM-TO of powers of two, the last one perhaps without TO")
            })?;
            let policy = current.take().ok_or_else(|| refuse("must follow a line `library NAME`"))?;
            current = Some(policy.with_call(call, *class, set));
        }
        Ok(found.or(current.filter(|_| seen)))
    }
}

/// Returns a set of payloads in words, as documents and `ddtc doctor` print it, for example
/// `256 B to 512 KiB`, `from 16 KiB` or `none`. The number after "to" is the smallest larger
/// payload that is not in the set.
pub fn payloads(set: u64) -> String {
    let bytes = |k: u32| match k {
        0..10 => (1u64 << k, "B"),
        10..20 => (1 << (k - 10), "KiB"),
        20..30 => (1 << (k - 20), "MiB"),
        _ => (1 << (k - 30), "GiB"),
    };
    let words = runs(set).map(|(first, end)| match (bytes(first), end) {
        ((from, unit), 64) => format!("from {from} {unit}"),
        ((from, unit), end) => match bytes(end) {
            (to, same) if same == unit => format!("{from} to {to} {unit}"),
            (to, other) => format!("{from} {unit} to {to} {other}"),
        },
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "none".to_owned() } else { words.join(" and ") }
}

/// Returns the runs of consecutive bits that are set: for each run, the index of its first bit and
/// the index after its last bit.
fn runs(set: u64) -> impl Iterator<Item = (u32, u32)> {
    let mut k = 0;
    std::iter::from_fn(move || {
        k += set.checked_shr(k)?.trailing_zeros();
        let first = (k < 64).then_some(k)?;
        k += (set >> k).trailing_ones();
        Some((first, k))
    })
}

fn parse_set(text: &str) -> Option<u64> {
    if text.trim() == "none" {
        return Some(0);
    }
    let power = |word: &str| word.parse::<u64>().ok().filter(|n| n.is_power_of_two());
    let mut set = 0;
    for range in text.split_whitespace() {
        let (from, to) = range.split_once('-')?;
        let from = power(from)?.ilog2();
        let to = if to.is_empty() { 63 } else { power(to)?.ilog2() };
        if to < from {
            return None;
        }
        set |= (u64::MAX << from) & (u64::MAX >> (63 - to));
    }
    Some(set)
}

/// Writes the policy as rows of a file. For messages, every layout class gets a row. For other
/// calls, a class gets a row only if something is converted in it.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for call in Call::ALL {
            for class in Class::ALL {
                let set = self.payloads(call, class);
                match call {
                    Call::Message => write!(f, "{:<14}", class.name())?,
                    _ if set == 0 => continue,
                    _ => write!(f, "{:<18} {:<14}", call.name(), class.name())?,
                }
                for (first, end) in runs(set) {
                    let to = if end == 64 { String::new() } else { (1u64 << (end - 1)).to_string() };
                    write!(f, " {}-{to}", 1u64 << first)?;
                }
                writeln!(f, "{}", if set == 0 { " none" } else { "" })?;
            }
        }
        Ok(())
    }
}

/// Family of MPI libraries: the releases of one implementation of MPI, or all libraries that are in
/// no other family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// MPICH itself, without the libraries that are derived from it.
    Mpich,
    /// Intel MPI.
    Intel,
    /// Open MPI.
    OpenMpi,
    /// Any other library, including those derived from MPICH, except Intel MPI.
    Other,
}

impl Family {
    /// Returns the name of the family in tables.
    pub fn name(self) -> &'static str {
        match self {
            Family::Mpich => "mpich",
            Family::Intel => "intel",
            Family::OpenMpi => "openmpi",
            Family::Other => "other",
        }
    }
}

/// An MPI library: family and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Library {
    /// Family of the library.
    pub family: Family,
    /// Major, minor and patch level.
    pub version: [u32; 3],
    /// Whether it is MPICH with its old device, ch3, which distributions built until MPICH 3.4.
    pub is_ch3: bool,
    /// Whether it is a preliminary form of this release, such as 5.0.0b1 and 6.0.0rc2.
    pub is_preliminary: bool,
}

impl Library {
    /// Returns a library of this family and version that is not MPICH with the device ch3.
    pub const fn new(family: Family, version: [u32; 3]) -> Library {
        Library { family, version, is_ch3: false, is_preliminary: false }
    }

    /// Returns the family and version that the text of `MPI_Get_library_version` shows.
    pub fn from_version_text(text: &str) -> Library {
        // Libraries derived from MPICH mention MPICH too, after their own name. So only a text that
        // begins with its name is that of MPICH itself. A text may also keep MPICH's first line and
        // name a device that is not MPICH's, as that of ParaStation MPI (`psp`).
        let has_other_device = text.contains(", device ") && !text.contains(", device ch");
        let family = if text.contains("Intel(R) MPI") {
            Family::Intel
        } else if text.starts_with("MPICH Version") && !has_other_device {
            Family::Mpich
        } else if text.starts_with("Open MPI") {
            Family::OpenMpi
        } else {
            Family::Other
        };
        // The release is split at every character that is not a digit, and its numbers are taken up
        // to the first empty part. So a suffix such as "rc1" is ignored.
        let mut version = [0; 3];
        let release = Library::release(text).unwrap_or("");
        let numbers = release.split(|c: char| !c.is_ascii_digit());
        for (part, place) in numbers.map_while(|part| part.parse().ok()).zip(&mut version) {
            *place = part;
        }
        let suffix = release.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let is_preliminary = ["a", "b", "rc"].iter().any(|start| suffix.starts_with(start));
        let is_ch3 = text.contains(", device ch3");
        Library { is_ch3, is_preliminary, ..Library::new(family, version) }
    }

    /// Returns the release in the text of `MPI_Get_library_version`: the first word that begins
    /// with a digit, or with a `v` before the digit, without the `v` and without punctuation after
    /// it.
    pub fn release(text: &str) -> Option<&str> {
        let mut words = text.split([' ', '\t', '\n', ',', ':']).map(|word| word.trim_start_matches('v'));
        words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    }
}

/// Writes the name of the library's table in a user's file, such as `mpich-5.0.2`.
impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.version;
        write!(f, "{}-{major}.{minor}.{patch}", self.family.name())
    }
}

/// Returns the path of the user's table: `ddtc/policy` in the configuration folder. `config` is the
/// value of `XDG_CONFIG_HOME`, and `home` that of `HOME`, whose folder `.config` is used if
/// `config` is missing or no absolute path. `None` if neither gives an absolute path.
pub fn file(config: Option<&str>, home: Option<&str>) -> Option<PathBuf> {
    let there = |v: Option<&str>| v.filter(|v| v.starts_with('/')).map(PathBuf::from);
    let folder = there(config).or_else(|| there(home).map(|home| home.join(".config")))?;
    Some(folder.join("ddtc/policy"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ddtc::internal::datatype::Datatype;
    use ddtc::internal::lower::{Bytes, lower};
    use ddtc::internal::normalize::normalize;

    fn nest(text: &str) -> LoopNest<Normal> {
        let t: Datatype = text.parse().unwrap();
        normalize(&lower(&t, Bytes).unwrap(), 1).unwrap().nest
    }

    fn class(text: &str) -> Class {
        Class::from_nest(&nest(text))
    }

    #[test]
    fn loops_of_the_normal_form_are_counted() {
        let one = |text| has_one_loop(&nest(text));
        assert!(one("vector(100, 1, 128, double)") && one("struct([1, 1], [0, 16], [int, double])"));
        assert!(one("hvector(10, 1, 8000, vector(100, 1, 10, double))"), "the loops are joined");
        assert!(!one("hvector(10, 1, 9000, vector(100, 1, 10, double))"));
        // The loops of a structure of two vectors do not lie in each other, but there are two.
        let vectors = "struct([1, 1], [0, 80000], [vector(99, 1, 10, double), vector(88, 1, 10, int)])";
        assert!(!one(vectors));
    }

    #[test]
    fn every_family_measured_has_a_shipped_table() {
        for family in [Family::Mpich, Family::Intel, Family::OpenMpi] {
            assert_eq!(Policy::parse(SHIPPED, family.name()).map(|p| p.is_some()), Ok(true), "{family:?}");
            let policy = Policy::shipped(family.name());
            assert!(policy.any(Call::Message) && policy.any(Call::Bcast), "{family:?}");
        }
        assert_eq!(Policy::shipped("other"), Policy::NONE);
    }

    #[test]
    fn classes_are_those_of_layouts_not_of_constructors() {
        for (text, expected) in [
            ("contiguous(7,double)", Class::Dense),
            ("vector(4,3,3,int)", Class::Dense),
            ("vector(4,1,2,double)", Class::StridedShort),
            ("indexed([1,1,1],[0,5,10],int)", Class::StridedShort),
            ("vector(4,8,16,double)", Class::StridedLong),
            ("subarray([8,8,8],[4,4,4],[0,0,0],C,double)", Class::StridedShort),
            ("resized(0,32,struct([1,1,3],[0,8,16],[int,double,float]))", Class::BlocksShort),
            ("struct([100,70],[0,1000],[char,char])", Class::BlocksLong),
        ] {
            assert_eq!(class(text), expected, "{text}");
        }
        let list: Vec<String> = (0..100).map(|i| (i * i + i % 3 * 2).to_string()).collect();
        assert_eq!(class(&format!("indexed_block(1,[{}],double)", list.join(","))), Class::TableShort);
    }

    #[test]
    fn tables_are_read_as_written() {
        let policy = Policy::NONE
            .with(Class::StridedShort, Policy::from(4096))
            .with(Class::TableLong, 0b1_0111_0000_0000)
            .with_call(Call::Bcast, Class::BlocksShort, Policy::from(256));
        let text = format!("# by hand\nlibrary mpich-5.0.2\n{}library openmpi-5.0.11\n{policy}", Policy::ALL);
        assert_eq!(Policy::parse(&text, "openmpi-5.0.11"), Ok(Some(policy)));
        assert_eq!(Policy::parse(&text, "mpich-5.0.2"), Ok(Some(Policy::ALL)));
        assert_eq!(Policy::parse(&text, "intel-2021.18.0"), Ok(None));
        assert!(policy.to_string().contains("table-long     256-1024 4096-4096\n"), "{policy}");
        assert!(policy.to_string().ends_with("bcast              blocks-short   256-\n"), "{policy}");
        assert!(policy.any(Call::Bcast) && !policy.any(Call::Gather));
        assert!(Call::ALL.iter().enumerate().all(|(i, &call)| call as usize == i));
        assert!(
            Policy::has(policy.set(Class::TableLong), 300)
                && !Policy::has(policy.set(Class::TableLong), 2048)
        );
        assert!(Policy::ALL.any(Call::Get) && !Policy::ALL.any(Call::Inside));
        assert!(!Policy::has(u64::MAX, 0) && !Policy::has(Policy::ALL.set(Class::Dense), 100));
        for (text, line) in [
            ("strided-short none", "line 1"),
            ("library x\nstrided 1-2", "line 2"),
            ("library x\n\nstrided-long 3-8", "line 3"),
            ("library x\nstrided-long 8-4", "line 2"),
            ("nonsense", "line 1"),
            ("library x\nbcast none", "line 2"),
            ("library x\nbcast strided 1-2", "line 2"),
        ] {
            assert_eq!(Policy::parse(text, "x").unwrap_err().argument(), line, "{text}");
        }
    }

    #[test]
    fn payloads_have_words() {
        let words = |text: &str| payloads(parse_set(text).unwrap());
        for (text, expected) in [
            ("256-262144", "256 B to 512 KiB"),
            ("16384-65536", "16 to 128 KiB"),
            ("16384-", "from 16 KiB"),
            ("1-", "from 1 B"),
            ("16384-16384 1048576-1048576", "16 to 32 KiB and 1 to 2 MiB"),
            ("none", "none"),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
        assert_eq!(payloads(1 << 63), "from 8589934592 GiB");
    }

    #[test]
    fn tables_of_earlier_versions_are_read() {
        let table = "library mpich-5.0.2\nput blocks-short 1-\naccumulate blocks-short 32-32\n";
        let policy = Policy::parse(table, "mpich-5.0.2").unwrap().unwrap();
        assert!(policy.any(Call::Put));
        assert!(Policy::parse("library mpich-5.0.2\naccumulator blocks-short 1-\n", "mpich-5.0.2").is_err());
    }

    #[test]
    fn libraries_and_files_have_names() {
        for (text, name) in [
            ("MPICH Version: 5.0.2", "mpich-5.0.2"),
            ("Intel(R) MPI Library 2021.18 for Linux* OS", "intel-2021.18.0"),
            ("Open MPI v5.0.11, package: Open MPI x@y", "openmpi-5.0.11"),
            ("MPICH Version:\t4.2.0rc1", "mpich-4.2.0"),
            ("HPE MPI 2.26", "other-2.26.0"),
            ("Nobody's MPI", "other-0.0.0"),
        ] {
            assert_eq!(Library::from_version_text(text).to_string(), name);
        }
        // Libraries that are derived from MPICH. The texts are in the form of `queries::version`.
        for (text, name) in [
            ("MPI VERSION : CRAY MPICH version 8.1.25.17 (ANL base 3.4a2)", "other-8.1.25"),
            ("MPI VERSION : CRAY MPICH version 9.0.0.113 (ANL base 4.1.2)", "other-9.0.0"),
            ("MVAPICH2 Version : 2.3.7", "other-2.3.7"),
            ("MVAPICH Version: 4.0, device ch4:ucx", "other-4.0.0"),
            ("=== ParaStation MPI 5.10.0 ===", "other-5.10.0"),
            ("MPICH Version: 3.4.2, device psp", "other-3.4.2"),
        ] {
            assert_eq!(Library::from_version_text(text).to_string(), name);
        }
        for device in ["ch3:nemesis", "ch4:ofi,ucx"] {
            let text = format!("MPICH Version: 3.4.2, device {device}");
            assert_eq!(Library::from_version_text(&text).family, Family::Mpich, "{device}");
        }
        assert_eq!(Library::release("MPICH Version:\t4.2.0rc1"), Some("4.2.0rc1"));
        assert_eq!(Library::release("Open MPI v5.0.11, package: Open MPI x@y"), Some("5.0.11"));
        assert_eq!(Library::release("Nobody's MPI"), None);
        assert_eq!(file(Some("/c"), Some("/h")), Some("/c/ddtc/policy".into()));
        assert_eq!(file(Some("relative"), Some("/h")), Some("/h/.config/ddtc/policy".into()));
        assert_eq!(file(None, None), None);
    }
}
