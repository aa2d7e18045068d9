//! Profile cache: the measured times of earlier runs, in one file for each machine and MPI library.
//! A process reads the file once. At the end of a job its first [`KEEPING`] ranks write the file.
//! Several ranks write it, because the messages that one rank sends are received by other ranks, so
//! each rank has timed different types.
//!
//! Times from another machine, another version of the MPI library or another version of this
//! library are of no use. So the first line of the file names machine and versions, and the name of
//! the file contains a hash of that line.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__cpuid;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use ddtc::internal::files;
use ddtc::internal::process::Awaited;

use crate::host::Host;
use crate::overhead_budget;
use crate::settings::{Choice, settings};
use crate::times::Times;
use crate::warn::warn;

/// Maximum number of rows of a profile cache. If there are more, those of the run that writes the
/// file are kept first. There is a limit because each process that uses a type twice reads the
/// whole file; 850 rows take 40 us (Zen 3).
const MAX_ROWS: usize = 2048;
/// Length in bytes of the line of a row in the file, with its newline.
const LINE: usize = 64;
/// Number of bytes at the start of a row's line that hold the hash of the row's layout.
const LAYOUT: usize = 16;

/// Row of a profile cache: the hash of a layout or the key of a similarity class, then a size
/// class, and the measured times of that size class.
pub(crate) type Row = (u64, usize, Times);

/// Text of the file of a profile cache, whose rows are in ascending order. There are up to
/// [`MAX_ROWS`] rows, and a process looks up only a few of them. So a row is parsed only when it is
/// looked up.
struct ProfileCache {
    text: String,
    /// Length in bytes of the file's first line, with its newline.
    head: usize,
}

impl ProfileCache {
    const NOTHING: ProfileCache = ProfileCache { text: String::new(), head: 0 };

    /// Takes over the text of a file whose first line must be `head`.
    ///
    /// # Errors
    /// The number of a line that does not have the form of the file, counted from 1. If the length
    /// is not that of whole rows, or there are more than [`MAX_ROWS`] rows, the number is that of
    /// the line after the last whole row that is allowed.
    fn new(text: String, head: &str) -> Result<ProfileCache, usize> {
        let rest = text.strip_prefix(head).and_then(|rest| rest.strip_prefix('\n')).ok_or(1usize)?;
        let lines = rest.len() / LINE;
        // If the length is no multiple of a row's, the file was cut off, or some line has another
        // length.
        if rest.len() % LINE != 0 || lines > MAX_ROWS {
            return Err(lines.min(MAX_ROWS) + 2);
        }
        Ok(ProfileCache { head: text.len() - rest.len(), text })
    }

    /// Returns the lines of the rows, which are all lines after the first. They are byte arrays and
    /// not text, because in a damaged file a multi-byte character may extend over the end of a
    /// line.
    fn lines(&self) -> &[[u8; LINE]] {
        self.text.as_bytes()[self.head..].as_chunks().0
    }

    /// Returns the size classes and times that the file has for a layout.
    ///
    /// # Errors
    /// The number of a line of this layout that cannot be parsed, counted from 1.
    fn times_of(&self, layout: u64) -> Result<Vec<(usize, Times)>, usize> {
        let (name, lines) = (format!("{layout:016x}"), self.lines());
        let from = lines.partition_point(|line| &line[..LAYOUT] < name.as_bytes());
        let own = lines.iter().zip(2usize..).skip(from).take_while(|(l, _)| l[..LAYOUT] == *name.as_bytes());
        own.map(|(line, number)| row(line).map(|(_, class, times)| (class, times)).ok_or(number)).collect()
    }

    /// Returns all rows that can be parsed.
    fn rows(&self) -> impl Iterator<Item = Row> {
        self.lines().iter().filter_map(row)
    }
}

/// Parses a line of the form `LAYOUT CLASS BYTES HOST OURS COPY`. The words are a hash in
/// hexadecimal digits, the binary logarithm of the size class, the bytes of the part that was
/// timed, and three times in nanoseconds: those in which the MPI library and our kernel pack the
/// part, and that of a copy of the packed bytes ([`Times`]). All lines have one length. Returns
/// `None` for any other line.
fn row(line: &[u8; LINE]) -> Option<Row> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let mut words = line.split(' ');
    let layout = u64::from_str_radix(words.next()?, 16).ok()?;
    let mut number = || words.next()?.parse::<u32>().ok();
    let class = number()? as usize;
    let times = Times { bytes: number()?, host: number()?, ours: number()?, copy: number()? };
    words.next().is_none().then_some((layout, class, times))
}

/// Returns the text of the file's lines for these rows, in ascending order.
fn lines(mut rows: Vec<Row>) -> String {
    rows.sort_unstable_by_key(|&(layout, class, _)| (layout, class));
    let mut text = String::with_capacity(rows.len() * LINE);
    for (layout, class, Times { bytes, host, ours, copy }) in rows {
        let _ = writeln!(text, "{layout:016x} {class:02} {bytes:010} {host:010} {ours:010} {copy:010}");
    }
    text
}

/// Returns the times that earlier runs have measured for a layout, with their size classes.
/// `layout` may also be the key of a similarity class. If a line of the layout cannot be parsed,
/// warns once in a process and returns nothing.
pub(crate) fn times_of(host: &Host, layout: u64) -> Vec<(usize, Times)> {
    static SAID: AtomicBool = AtomicBool::new(false);
    cache(host).times_of(layout).unwrap_or_else(|line| {
        if let Some((path, _)) = file_and_head(host)
            && !SAID.swap(true, Relaxed)
        {
            not_ours(path, line);
        }
        Vec::new()
    })
}

/// Returns the content of the profile cache's file, which is read at the first call of this
/// function. The time for reading it is exempt from the overhead budget.
fn cache(host: &Host) -> &'static ProfileCache {
    static CACHE: Awaited<ProfileCache> = Awaited::new();
    CACHE.get_or_init(|| {
        let start = Instant::now();
        let read =
            file_and_head(host).as_ref().map_or(ProfileCache::NOTHING, |(path, head)| read(path, head));
        overhead_budget::exempt(start.elapsed().as_nanos() as u64);
        read
    })
}

/// Returns the path of the profile cache's file and the file's first line. Returns `None` if no
/// profile cache is used.
fn file_and_head(host: &Host) -> &'static Option<(PathBuf, String)> {
    static FILE_AND_HEAD: Awaited<Option<(PathBuf, String)>> = Awaited::new();
    FILE_AND_HEAD.get_or_init(|| find_file_and_head(host))
}

/// Determines the path and the first line that [`file_and_head`] returns. No profile cache is used
/// if `DDTC_PROFILE_CACHE=0` or a policy other than `measure` is set, or if neither
/// `XDG_CACHE_HOME` nor `HOME` is an absolute path.
fn find_file_and_head(host: &Host) -> Option<(PathBuf, String)> {
    if !settings().profile_cache || settings().policy != Choice::Measure {
        return None;
    }
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
    let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let head = format!(
        "ddtc measured 8, {} {}, {}, machine {} {}",
        env!("CARGO_PKG_VERSION"),
        settings().config.level.name(),
        host.version,
        machine.trim(),
        processor(),
    );
    let mut hash = DefaultHasher::new();
    head.hash(&mut hash);
    Some((cache.join("ddtc").join(format!("measured-{:016x}", hash.finish())), head))
}

/// Returns family, model and stepping of the processor from the `cpuid` instruction. The name of
/// the processor would take four `cpuid` instructions, each of which costs 15 us in a virtual
/// machine (Zen 3).
#[cfg(target_arch = "x86_64")]
fn processor() -> String {
    format!("{:08x}", __cpuid(1).eax)
}

/// Returns the name of the processor from the start of `/proc/cpuinfo`, which describes the first
/// core. The rest of that file is not read, because the system takes 50 us to write it for two
/// cores, and there may be hundreds.
#[cfg(not(target_arch = "x86_64"))]
fn processor() -> String {
    use std::io::Read as _;
    let mut start = [0; 1024];
    let file = std::fs::File::open("/proc/cpuinfo");
    let length = file.and_then(|mut file| file.read(&mut start)).unwrap_or(0);
    let text = String::from_utf8_lossy(start.get(..length).unwrap_or_default());
    let named = text.lines().find(|line| line.starts_with("model name") || line.starts_with("CPU part"));
    named.and_then(|line| line.split_once(':')).map_or("", |(_, name)| name.trim()).to_owned()
}

/// Reads the file of a profile cache, whose first line must be `head`. Returns no rows if the file
/// does not exist. If the file cannot be read, returns no rows and warns on the conditions of
/// [`should_warn`]. If the file does not have the right form, returns no rows and warns.
fn read(path: &Path, head: &str) -> ProfileCache {
    let text = match files::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return ProfileCache::NOTHING,
        Err(error) => {
            if should_warn(&error, settings().report.is_some()) {
                warn(format_args!("{}: {error}; layouts are measured again", path.display()));
            }
            return ProfileCache::NOTHING;
        }
    };
    ProfileCache::new(text, head).unwrap_or_else(|line| {
        not_ours(path, line);
        ProfileCache::NOTHING
    })
}

/// Returns true if the user is warned of this error, which reading or writing a file in the home
/// folder has returned. Home folders that cannot be read or written are usual on compute nodes, so
/// there is a warning only in a run with a report (`reported`). A file that breaks a rule of
/// [`files`], for example a link, always gets a warning, because somebody else may have put it
/// there.
pub(crate) fn should_warn(error: &std::io::Error, reported: bool) -> bool {
    reported || error.kind() == std::io::ErrorKind::InvalidInput
}

/// Warns that a line of a profile cache's file does not have the right form.
fn not_ours(path: &Path, line: usize) {
    warn(format_args!(
        "{}: line {line} does not have the form of this file; layouts are measured again",
        path.display()
    ));
}

/// Number of ranks of a job that write the profile cache: ranks 0 to `KEEPING - 1`.
pub(crate) const KEEPING: i32 = 4;

/// Writes the times that this process knows to the file of the profile cache, if any of them are
/// new. Only the first [`KEEPING`] ranks of a job call this function. Rows of other layouts that
/// are in the file by then are kept, as far as [`MAX_ROWS`] allows. If two processes write at the
/// same moment, the rows of one may be lost; a later run measures these times again.
pub(crate) fn keep(host: &Host, known: &[Row]) {
    // A process that has timed nothing returns before the file is read.
    if known.is_empty() {
        return;
    }
    let Some((path, head)) = file_and_head(host) else { return };
    let before = cache(host);
    let is_new = |&(layout, class, times): &Row| {
        let same = |&(at, old): &(usize, Times)| at == class && old.bytes == times.bytes;
        !before.times_of(layout).unwrap_or_default().iter().any(same)
    };
    if !known.iter().any(is_new) {
        return;
    }
    let mine: HashSet<u64> = known.iter().map(|&(layout, ..)| layout).collect();
    let there = read(path, head);
    let old = there.rows().filter(|(layout, ..)| !mine.contains(layout));
    let text = format!("{head}\n{}", lines(known.iter().copied().chain(old).take(MAX_ROWS).collect()));
    let made = path.parent().map(std::fs::create_dir_all).transpose();
    if let Err(error) = made.and_then(|_| files::replace(path, &text))
        && should_warn(&error, settings().report.is_some())
    {
        warn(format_args!("{}: {error}; the measured times are not kept for later runs", path.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "ddtc measured 8, x";

    fn times(bytes: u32) -> Times {
        Times { bytes, host: u32::MAX, ours: 800, copy: 0 }
    }

    fn file(lines: &str) -> Result<ProfileCache, usize> {
        ProfileCache::new(format!("{HEAD}\n{lines}"), HEAD)
    }

    #[test]
    fn a_home_that_cannot_be_written_is_named_in_reported_runs_alone() {
        let folder = files::temporary_folder("ddtc-profile-cache").unwrap();
        std::fs::write(folder.join("home"), "").unwrap();
        let inside_a_file = folder.join("home/measured");
        let error = files::replace(&inside_a_file, "").unwrap_err();
        assert_eq!((should_warn(&error, false), should_warn(&error, true)), (false, true));
        std::os::unix::fs::symlink(folder.join("home"), folder.join("link")).unwrap();
        let error = files::replace(&folder.join("link"), "").unwrap_err();
        assert!(should_warn(&error, false), "{error}");
    }

    #[test]
    fn the_processor_has_a_name() {
        let name = processor();
        assert!(!name.is_empty() && name.trim() == name && !name.contains('\0'), "{name:?}");
    }

    #[test]
    fn rows_are_found_by_their_layout() {
        let rows = [(255, 16, times(1)), (u64::MAX, 3, times(2)), (255, 2, times(3)), (0, 39, times(4))];
        let found = file(&lines(rows.to_vec())).unwrap();
        assert!(lines(rows.to_vec()).lines().all(|line| line.len() + 1 == LINE));
        assert_eq!(found.times_of(255), Ok(vec![(2, times(3)), (16, times(1))]));
        assert_eq!(found.times_of(u64::MAX), Ok(vec![(3, times(2))]));
        assert_eq!((found.times_of(0), found.times_of(254)), (Ok(vec![(39, times(4))]), Ok(vec![])));
        assert_eq!(found.rows().count(), 4);
        assert_eq!(file("").unwrap().times_of(0), Ok(vec![]));
        assert_eq!(ProfileCache::NOTHING.times_of(0), Ok(vec![]));
    }

    #[test]
    fn what_is_no_such_file_is_named_by_its_line() {
        let one = lines(vec![(255, 16, times(1))]);
        let wrong = |text: String| ProfileCache::new(text, HEAD).map(|_| ()).unwrap_err();
        assert_eq!(wrong(String::new()), 1);
        assert_eq!(wrong(format!("ddtc measured 7, x\n{one}")), 1);
        assert_eq!(wrong(format!("{HEAD}{one}")), 1);
        assert_eq!(wrong(format!("{HEAD}\n{one}{}", &one[1..])), 3);
        assert_eq!(wrong(format!("{HEAD}\n{}", one.repeat(MAX_ROWS + 1))), MAX_ROWS + 2);
        // A damaged line that has the right length is found only when it is looked up.
        for (from, to) in [(" 16 ", " 1x "), ("16", "\u{e9}"), ("\n", "0"), ("0800 ", "0800x")] {
            let found = file(&format!("{one}{}", one.replace(from, to))).unwrap();
            assert_eq!(found.times_of(255), Err(3), "{from:?}");
        }
    }
}
