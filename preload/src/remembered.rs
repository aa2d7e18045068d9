//! Evidence of earlier runs: a file for each machine and MPI library, read once and written by the first ranks at the end: what one sends others
//! receive, so each knows of other types.
//!
//! What was timed on another machine, by another version of the host or of this library, says nothing: the first line of the file names all of them, and the
//! file's name has their hash.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__cpuid;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use ddtc::files;
use ddtc::process::Awaited;

use crate::host::Host;
use crate::settings::{Choice, settings};
use crate::spending;
use crate::times::Times;
use crate::warn::warn;

/// Most lines of a file: those of this run come first. Each process that uses a type twice reads all of them, 850 in 40 us (Zen 3).
const MOST: usize = 2048;
/// Bytes of a line.
const LINE: usize = 64;
/// Bytes of a line's layout.
const LAYOUT: usize = 16;

/// A layout, or types that are alike by what they have in common; a size class, and its times.
pub(crate) type Row = (u64, usize, Times);

/// The lines of a file, ascending. A process that starts looks a few up, of which the others may be thousands: they stay as they are.
struct Remembered {
    text: String,
    /// Bytes of the first line.
    head: usize,
}

impl Remembered {
    const NOTHING: Remembered = Remembered { text: String::new(), head: 0 };

    /// Of a file that begins with this line; the number of a line that is none.
    fn new(text: String, head: &str) -> Result<Remembered, usize> {
        let rest = text.strip_prefix(head).and_then(|rest| rest.strip_prefix('\n')).ok_or(1usize)?;
        let lines = rest.len() / LINE;
        // Whatever has no such lines is cut somewhere, or has a longer one.
        if rest.len() % LINE != 0 || lines > MOST {
            return Err(lines.min(MOST) + 2);
        }
        Ok(Remembered { head: text.len() - rest.len(), text })
    }

    /// The lines, by their bytes: a line may end within a letter of a file that is none.
    fn lines(&self) -> &[[u8; LINE]] {
        self.text.as_bytes()[self.head..].as_chunks().0
    }

    /// The rows of a layout; the number of a line that is none.
    fn of(&self, layout: u64) -> Result<Vec<(usize, Times)>, usize> {
        let (name, lines) = (format!("{layout:016x}"), self.lines());
        let from = lines.partition_point(|line| &line[..LAYOUT] < name.as_bytes());
        let own = lines.iter().zip(2usize..).skip(from).take_while(|(l, _)| l[..LAYOUT] == *name.as_bytes());
        own.map(|(line, number)| row(line).map(|(_, class, times)| (class, times)).ok_or(number)).collect()
    }

    /// All rows that are some.
    fn rows(&self) -> impl Iterator<Item = Row> {
        self.lines().iter().filter_map(row)
    }
}

/// A line `LAYOUT CLASS BYTES HOST OURS COPY`, all of one length: a hash in hexadecimal, a binary logarithm, bytes, and nanoseconds.
fn row(line: &[u8; LINE]) -> Option<Row> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let mut words = line.split(' ');
    let layout = u64::from_str_radix(words.next()?, 16).ok()?;
    let mut number = || words.next()?.parse::<u32>().ok();
    let class = number()? as usize;
    let times = Times { bytes: number()?, host: number()?, ours: number()?, copy: number()? };
    words.next().is_none().then_some((layout, class, times))
}

/// Such lines, ascending.
fn lines(mut rows: Vec<Row>) -> String {
    rows.sort_unstable_by_key(|&(layout, class, _)| (layout, class));
    let mut text = String::with_capacity(rows.len() * LINE);
    for (layout, class, Times { bytes, host, ours, copy }) in rows {
        let _ = writeln!(text, "{layout:016x} {class:02} {bytes:010} {host:010} {ours:010} {copy:010}");
    }
    text
}

/// Times of a layout by size classes, as an earlier run found them.
pub(crate) fn of(host: &Host, layout: u64) -> Vec<(usize, Times)> {
    static SAID: AtomicBool = AtomicBool::new(false);
    remembered(host).of(layout).unwrap_or_else(|line| {
        if let Some((path, _)) = place(host)
            && !SAID.swap(true, Relaxed)
        {
            not_ours(path, line);
        }
        Vec::new()
    })
}

fn remembered(host: &Host) -> &'static Remembered {
    static REMEMBERED: Awaited<Remembered> = Awaited::new();
    REMEMBERED.get_or_init(|| {
        let start = Instant::now();
        let read = place(host).as_ref().map_or(Remembered::NOTHING, |(path, head)| read(path, head));
        spending::exempt(start.elapsed().as_nanos() as u64);
        read
    })
}

/// The file and its first line; `None`: nothing is remembered.
fn place(host: &Host) -> &'static Option<(PathBuf, String)> {
    static PLACE: Awaited<Option<(PathBuf, String)>> = Awaited::new();
    PLACE.get_or_init(|| find_place(host))
}

fn find_place(host: &Host) -> Option<(PathBuf, String)> {
    if !settings().remember || settings().policy != Choice::Measure {
        return None;
    }
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
    let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let head = format!(
        "ddtc evidence 5, {} {}, {}, machine {} {}",
        env!("CARGO_PKG_VERSION"),
        settings().config.level.name(),
        host.version,
        machine.trim(),
        processor(),
    );
    let mut hash = DefaultHasher::new();
    head.hash(&mut hash);
    Some((cache.join("ddtc").join(format!("evidence-{:016x}", hash.finish())), head))
}

/// Family, model and stepping of the processor, as it says itself. Its name takes four such questions, each of which costs 15 us in a virtual machine (Zen 3).
#[cfg(target_arch = "x86_64")]
fn processor() -> String {
    format!("{:08x}", __cpuid(1).eax)
}

/// The name of the processor, as the system says of its first core. Of each core more is asked: 50 us for two, and there may be hundreds.
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

fn read(path: &Path, head: &str) -> Remembered {
    let text = match files::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Remembered::NOTHING,
        Err(error) => {
            if is_told(&error, settings().report.is_some()) {
                warn(format_args!("{}: {error}; layouts are timed anew", path.display()));
            }
            return Remembered::NOTHING;
        }
    };
    Remembered::new(text, head).unwrap_or_else(|line| {
        not_ours(path, line);
        Remembered::NOTHING
    })
}

/// Says whether the user learns of an error of a file in the home folder. A home that cannot be read or
/// written is usual on compute nodes, so it is named only in a run with a report. A file that breaks a
/// rule of [`files`] is always named: somebody may have put it there.
pub(crate) fn is_told(error: &std::io::Error, reported: bool) -> bool {
    reported || error.kind() == std::io::ErrorKind::InvalidInput
}

fn not_ours(path: &Path, line: usize) {
    warn(format_args!("{}: line {line} is not of this file's form; layouts are timed anew", path.display()));
}

/// Ranks of a job that keep what they know.
pub(crate) const KEEPING: i32 = 4;

/// Writes what a process knows, if it has learnt something: [`KEEPING`] of a job do. What another one writes at the same moment may be lost, and is learnt again.
pub(crate) fn keep(host: &Host, known: &[Row]) {
    // A process that has used no type reads nothing for it.
    if known.is_empty() {
        return;
    }
    let Some((path, head)) = place(host) else { return };
    let before = remembered(host);
    let is_new = |&(layout, class, times): &Row| {
        let same = |&(at, old): &(usize, Times)| at == class && old.bytes == times.bytes;
        !before.of(layout).unwrap_or_default().iter().any(same)
    };
    if !known.iter().any(is_new) {
        return;
    }
    let mine: HashSet<u64> = known.iter().map(|&(layout, ..)| layout).collect();
    let there = read(path, head);
    let old = there.rows().filter(|(layout, ..)| !mine.contains(layout));
    let text = format!("{head}\n{}", lines(known.iter().copied().chain(old).take(MOST).collect()));
    let made = path.parent().map(std::fs::create_dir_all).transpose();
    if let Err(error) = made.and_then(|_| files::replace(path, &text))
        && is_told(&error, settings().report.is_some())
    {
        warn(format_args!("{}: {error}; what was timed is not kept", path.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "ddtc evidence 5, x";

    fn times(bytes: u32) -> Times {
        Times { bytes, host: u32::MAX, ours: 800, copy: 0 }
    }

    fn file(lines: &str) -> Result<Remembered, usize> {
        Remembered::new(format!("{HEAD}\n{lines}"), HEAD)
    }

    #[test]
    fn a_home_that_cannot_be_written_is_named_in_reported_runs_alone() {
        let folder = files::temporary_folder("ddtc-remembered").unwrap();
        std::fs::write(folder.join("home"), "").unwrap();
        let inside_a_file = folder.join("home/evidence");
        let error = files::replace(&inside_a_file, "").unwrap_err();
        assert_eq!((is_told(&error, false), is_told(&error, true)), (false, true));
        std::os::unix::fs::symlink(folder.join("home"), folder.join("link")).unwrap();
        let error = files::replace(&folder.join("link"), "").unwrap_err();
        assert!(is_told(&error, false), "{error}");
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
        assert_eq!(found.of(255), Ok(vec![(2, times(3)), (16, times(1))]));
        assert_eq!(found.of(u64::MAX), Ok(vec![(3, times(2))]));
        assert_eq!((found.of(0), found.of(254)), (Ok(vec![(39, times(4))]), Ok(vec![])));
        assert_eq!(found.rows().count(), 4);
        assert_eq!(file("").unwrap().of(0), Ok(vec![]));
        assert_eq!(Remembered::NOTHING.of(0), Ok(vec![]));
    }

    #[test]
    fn what_is_no_such_file_is_named_by_its_line() {
        let one = lines(vec![(255, 16, times(1))]);
        let wrong = |text: String| Remembered::new(text, HEAD).map(|_| ()).unwrap_err();
        assert_eq!(wrong(String::new()), 1);
        assert_eq!(wrong(format!("ddtc evidence 4, x\n{one}")), 1);
        assert_eq!(wrong(format!("{HEAD}{one}")), 1);
        assert_eq!(wrong(format!("{HEAD}\n{one}{}", &one[1..])), 3);
        assert_eq!(wrong(format!("{HEAD}\n{}", one.repeat(MOST + 1))), MOST + 2);
        // A line that is none is found when it is looked up.
        for (from, to) in [(" 16 ", " 1x "), ("16", "\u{e9}"), ("\n", "0"), ("0800 ", "0800x")] {
            let found = file(&format!("{one}{}", one.replace(from, to))).unwrap();
            assert_eq!(found.of(255), Err(3), "{from:?}");
        }
    }
}
