//! Evidence of earlier runs: a file for each machine and MPI library, read once and written by the first rank at the end.
//!
//! What was timed on another machine, by another version of the host or of this library, says nothing: the first line of the file names all of them, and the
//! file's name has their hash.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read as _;
use std::path::PathBuf;
use std::time::Instant;

use ddtc::files;
use ddtc::process::Awaited;

use crate::host::Host;
use crate::settings::{Choice, settings};
use crate::spending;
use crate::times::Times;
use crate::warn::warn;

/// Most lines of a file: those of this run come first.
const MOST: usize = 8192;

/// Layouts, size classes and times, ascending: a process that starts reads hundreds, and looks a few up.
type Remembered = Vec<(u64, usize, Times)>;

/// Times of a layout by size classes, as an earlier run found them.
pub(crate) fn of(host: &Host, layout: u64) -> Vec<(usize, Times)> {
    of_layout(remembered(host), layout).map(|&(_, class, times)| (class, times)).collect()
}

fn of_layout(all: &Remembered, layout: u64) -> impl Iterator<Item = &(u64, usize, Times)> {
    let from = all.partition_point(|&(at, ..)| at < layout);
    all.iter().skip(from).take_while(move |&&(at, ..)| at == layout)
}

fn remembered(host: &Host) -> &'static Remembered {
    static REMEMBERED: Awaited<Remembered> = Awaited::new();
    REMEMBERED.get_or_init(|| {
        let start = Instant::now();
        let read = place(host).map_or_else(Remembered::new, |(path, head)| read(&path, &head));
        spending::forgive(start.elapsed().as_nanos() as u64);
        read
    })
}

/// The file and its first line; `None`: nothing is remembered.
fn place(host: &Host) -> Option<(PathBuf, String)> {
    if !settings().remember || settings().policy != Choice::Measure {
        return None;
    }
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = first_core();
    let cpu = cpu.lines().find(|line| line.starts_with("model name") || line.starts_with("CPU part"));
    let head = format!(
        "ddtc evidence 2, {} {}, {}, machine {} {}",
        env!("CARGO_PKG_VERSION"),
        settings().config.level.name(),
        host.version,
        text("/etc/machine-id").trim(),
        cpu.and_then(|line| line.split_once(':')).map_or("", |(_, name)| name.trim()),
    );
    let mut hash = DefaultHasher::new();
    head.hash(&mut hash);
    Some((cache.join("ddtc").join(format!("evidence-{:016x}", hash.finish())), head))
}

/// What the system says of its first core, or more. It asks each core of which it is to say something: 50 us for two, and there may be hundreds.
fn first_core() -> String {
    let mut start = [0; 1024];
    let file = std::fs::File::open("/proc/cpuinfo");
    let length = file.and_then(|mut file| file.read(&mut start)).unwrap_or(0);
    String::from_utf8_lossy(start.get(..length).unwrap_or_default()).into_owned()
}

fn read(path: &std::path::Path, head: &str) -> Remembered {
    let text = match files::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Remembered::new(),
        Err(error) => {
            warn(format_args!("{}: {error}; layouts are timed anew", path.display()));
            return Remembered::new();
        }
    };
    parse(&text, head).unwrap_or_else(|line| {
        warn(format_args!(
            "{}: line {line} is not of this file's form; layouts are timed anew",
            path.display()
        ));
        Remembered::new()
    })
}

/// Lines `LAYOUT CLASS BYTES HOST OURS COPY`: a hash in hexadecimal, a binary logarithm, bytes, and nanoseconds. The number of a line that is none.
fn parse(text: &str, head: &str) -> Result<Remembered, usize> {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    if first != head {
        return Err(1);
    }
    let mut found = Remembered::with_capacity(rest.len() / 32);
    for (line, number) in rest.lines().take(MOST).zip(2usize..) {
        let one = || {
            let mut words = line.split_ascii_whitespace();
            let layout = u64::from_str_radix(words.next()?, 16).ok()?;
            let mut number = || words.next()?.parse::<u32>().ok();
            let class = number()? as usize;
            let times = Times { bytes: number()?, host: number()?, ours: number()?, copy: number()? };
            words.next().is_none().then_some((layout, class, times))
        };
        found.push(one().ok_or(number)?);
    }
    found.sort_unstable_by_key(|&(layout, class, _)| (layout, class));
    Ok(found)
}

/// Writes what a process knows - layouts, size classes, times - if it has learnt something. One process of a job does.
pub(crate) fn keep(host: &Host, known: &[(u64, usize, Times)]) {
    let Some((path, head)) = place(host) else { return };
    let before = remembered(host);
    let new = |&&(layout, class, _): &&(u64, usize, Times)| {
        !of_layout(before, layout).any(|&(_, at, _)| at == class)
    };
    if !known.iter().any(|row| new(&row)) {
        return;
    }
    let mine: std::collections::HashSet<u64> = known.iter().map(|&(layout, ..)| layout).collect();
    let old = before.iter().filter(|(layout, ..)| !mine.contains(layout)).copied();
    let mut text = head + "\n";
    for (layout, class, Times { bytes, host, ours, copy }) in known.iter().copied().chain(old).take(MOST) {
        let _ = writeln!(text, "{layout:016x} {class} {bytes} {host} {ours} {copy}");
    }
    let made = path.parent().map(std::fs::create_dir_all).transpose();
    if let Err(error) = made.and_then(|_| files::replace(&path, &text)) {
        warn(format_args!("{}: {error}; what was timed is not kept", path.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_core_has_a_name() {
        assert!(first_core().lines().any(|l| l.starts_with("model name") || l.starts_with("CPU part")));
    }

    #[test]
    fn lines_are_times() {
        let head = "ddtc evidence 2, x";
        let times = Times { bytes: 65536, host: 9000, ours: 800, copy: 90 };
        let found = parse(&format!("{head}\n00000000000000ff 16 65536 9000 800 90\n"), head).unwrap();
        assert_eq!(found, [(255, 16, times)]);
        let more = format!("{head}\nff 16 1 2 3 4\n0 3 1 2 3 4\nff 2 1 2 3 4\n");
        let more = parse(&more, head).unwrap();
        let classes = |layout| of_layout(&more, layout).map(|&(_, class, _)| class).collect::<Vec<_>>();
        assert_eq!((classes(255), classes(0), classes(1)), (vec![2, 16], vec![3], vec![]));
        for (text, line) in [
            ("", 1),
            ("ddtc evidence 2, y\n", 1),
            ("ddtc evidence 2, x\nff 1 2 3 4\n", 2),
            ("ddtc evidence 2, x\nff 1 2 3 4 5\nxx 1 2 3 4 5\n", 3),
        ] {
            assert_eq!(parse(text, head).unwrap_err(), line, "{text:?}");
        }
    }
}
