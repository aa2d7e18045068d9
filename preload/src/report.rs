//! What was done for the program, written at the end of each epoch.
//!
//! `DDTC_REPORT` is a table per process, `DDTC_RECORD` a corpus of the program's types. Nothing is communicated: a preload
//! library in one rank of many must not wait for the others, so every rank writes its own file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use ddtc::files;
use ddtc::kind::Direction;
use ddtc::object::runtime;
use ddtc::process::to_stderr;

use crate::counted::{self, REFUSALS, Row, Rows, rows};
use crate::guard::PANICS;
use crate::host::Host;
use crate::settings::settings;
use crate::warn::warn;
use crate::{check, fortran_bridge, types};

/// Where this process stands in the job: rank and number of ranks, as far as they can be known.
fn rank(host: &Host) -> Option<(i32, i32)> {
    let (mut up, mut down) = (0, 0);
    // SAFETY: numbers to write to; both may be asked at any time (MPI 5.0, 11.4.1).
    unsafe {
        host.f.initialized?(&raw mut up);
        host.f.finalized?(&raw mut down);
    }
    if up != 0 && down == 0 {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: the world is valid between the two.
        let codes = unsafe {
            (host.f.comm_rank?(host.world, &raw mut rank), host.f.comm_size?(host.world, &raw mut size))
        };
        return (codes == (0, 0)).then_some((rank, size));
    }
    // Only sessions: what the launcher says.
    let number = |names: &[&str]| names.iter().find_map(|n| std::env::var(n).ok()?.parse::<i32>().ok());
    let rank = number(&["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"])?;
    Some((rank, number(&["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"]).unwrap_or(2)))
}

/// The file of this process: `%r` is its rank, `%p` its process id; without `%r` the ranks of a larger job append theirs.
fn file(name: &Path, place: Option<(i32, i32)>) -> PathBuf {
    let text = name.to_string_lossy();
    let pid = std::process::id();
    let (rank, size) = place.map_or((format!("pid{pid}"), 1), |(rank, size)| (rank.to_string(), size));
    let mut path = text.replace("%r", &rank).replace("%p", &pid.to_string());
    if size > 1 && !text.contains("%r") {
        let _ = write!(path, ".{rank}");
    }
    PathBuf::from(path)
}

/// Writes report and record, if asked for. Counts go on: a later epoch writes the sums again.
pub(crate) fn write(host: &'static Host) {
    if !settings().counting() {
        return;
    }
    let place = rank(host);
    if let Some(name) = &settings().report {
        let text = table(host, place);
        if name.as_os_str() == "-" {
            let _ = to_stderr(text.as_bytes());
        } else {
            save(&file(name, place), &text);
        }
    }
    if let Some(name) = &settings().record {
        let text = corpus(host, &rows());
        save(&file(name, place), &text);
    }
}

fn save(path: &Path, text: &str) {
    if let Err(error) = files::replace(path, text) {
        warn(format_args!("{}: {error}", path.display()));
    }
}

/// The report: lines `name value`, then one line per type. `ddtc preload --report` adds up those of all ranks.
fn table(host: &'static Host, place: Option<(i32, i32)>) -> String {
    types::configured();
    let unseen = fortran_bridge::unseen(host);
    // From here on nobody is called.
    let rows = rows();
    let (c, config) = (runtime::counters(), runtime::config());
    let place = place.map_or(String::new(), |(rank, size)| format!(", rank {rank} of {size}"));
    let mut out = format!("ddtc report{place}, process {}\n", std::process::id());
    let abi = host.abi.map_or("unknown ABI", |a| a.name);
    let _ = writeln!(out, "host {} ({abi})", host.version);
    let _ = writeln!(out, "mode {}, target {}", config.mode, config.level.name());
    if unseen {
        let _ = writeln!(out, "note this host's Fortran calls bypass its C functions and are not seen");
    }
    let converted = |d: Direction| rows.all().map(|r| r.calls[d as usize]).sum::<u64>();
    let totals = [
        ("pack_calls", converted(Direction::Pack)),
        ("unpack_calls", converted(Direction::Unpack)),
        ("messages_packed", counted::SENT.get()),
        ("messages_unpacked", counted::RECEIVED.get()),
        ("messages_past_the_cap", counted::PAST_THE_CAP.get()),
        ("calls_left_to_host", counted::PASSED.get()),
        ("types_left_to_host", counted::TYPES_LEFT.get()),
        ("commits", c.commits),
        ("layouts", c.cached_layouts),
        ("compiles", c.compiles),
        ("compile_us", c.compile_nanos / 1000),
        ("code_bytes", c.code_bytes),
        ("cache_hits", c.cache.type_hits + c.cache.nest_hits),
        ("cache_misses", c.cache.misses),
        ("walked_by_design", c.refusals),
        ("fallbacks", c.fallbacks),
        ("own_pages", c.own_pages),
        ("panics", PANICS.load(Relaxed)),
        ("checks", check::CHECKS.load(Relaxed)),
        ("faults_of_ddtc", check::OURS.load(Relaxed)),
        ("known_faults_of_host", check::KNOWN.load(Relaxed)),
        ("other_differences_of_host", check::OTHER.load(Relaxed)),
    ];
    for (name, value) in totals {
        let _ = writeln!(out, "{name} {value}");
    }
    for refusal in REFUSALS.lock().iter() {
        let _ = writeln!(out, "note left to the host: {refusal}");
    }
    let _ = writeln!(
        out,
        "{:>8} {:>10} {:>14} {:>12} {:>10} {:>14} {:>12}  type",
        "commits", "packs", "pack_bytes", "pack_us", "unpacks", "unpack_bytes", "unpack_us"
    );
    for r in rows.all() {
        let _ = writeln!(
            out,
            "{:>8} {:>10} {:>14} {:>12} {:>10} {:>14} {:>12}  {}",
            r.commits,
            r.calls[0],
            r.bytes[0],
            r.nanos[0] / 1000,
            r.calls[1],
            r.bytes[1],
            r.nanos[1] / 1000,
            short(&r.datatype.to_string()),
        );
        for (d, schedule) in Direction::BOTH.iter().zip(&r.schedule) {
            if r.calls[*d as usize] > 0 {
                let _ = writeln!(out, "    {d}: {}", short(schedule));
            }
        }
    }
    out
}

/// A line's worth of a text.
fn short(text: &str) -> String {
    const MOST: usize = 160;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

/// The program's types as a corpus file, most used first.
fn corpus(host: &Host, rows: &Rows) -> String {
    let mut out = format!("# Types of process {} under {}.\n", std::process::id(), host.version);
    let mut sorted: Vec<&Row> = rows.of_types().collect();
    sorted.sort_by_key(|r| std::cmp::Reverse(r.bytes[0] + r.bytes[1]));
    for (i, r) in sorted.into_iter().enumerate() {
        let calls = r.calls[0] + r.calls[1];
        let size = u64::try_from(r.datatype.size()).unwrap_or(0).max(1);
        let count = (r.bytes[0] + r.bytes[1]).checked_div(calls * size).unwrap_or(1).max(1);
        let _ = writeln!(
            out,
            "\n# {} commits, {} packs of {} bytes, {} unpacks of {} bytes",
            r.commits, r.calls[0], r.bytes[0], r.calls[1], r.bytes[1]
        );
        let _ = writeln!(out, "type_{} = {count} of {}", i + 1, r.datatype);
    }
    out
}
