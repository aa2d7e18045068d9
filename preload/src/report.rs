//! Writes what was done for the program, at the end of each epoch, before an abort, and every few seconds.
//!
//! `DDTC_REPORT` is a table per process, `DDTC_RECORD` a corpus of the program's types. Nothing is communicated: a preload
//! library in one rank of many must not wait for the others, so every rank writes its own file.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ddtc::engine::{Counters, Mode};
use ddtc::files;
use ddtc::kind::Direction;
use ddtc::object::runtime;
use ddtc::process::{Awaited, Mutex, to_stderr};
use ddtc_hosts::bypass::{Bypass, OFF, UNFINISHED, sentence};

use crate::counted::{self, REFUSALS, Row, Rows, rows, short};
use crate::evidence;
use crate::guard::{PANICS, guard};
use crate::hook::HookReport;
use crate::hooks::{self, hook};
use crate::host::{Host, others, profiling_names};
use crate::policy::policy;
use crate::reentrancy::Inside;
use crate::settings::settings;
use crate::warn::warn;
use crate::{check, fortran_bridge, layers, objects, outcome, reserve, spending, table, types};

/// Returns this process's rank in the job and the number of ranks, as far as they can be known: by
/// the world, while it is up and afterwards, or else by the launcher's variables.
pub(crate) fn rank(host: &Host) -> Option<(i32, i32)> {
    /// What the world said when it was last asked.
    static KNOWN: Mutex<Option<(i32, i32)>> = Mutex::new(None);
    let asked = host.with_world(|| {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: the world is valid during this call; numbers to write to.
        let codes = unsafe {
            (host.f.comm_rank?(host.world, &raw mut rank), host.f.comm_size?(host.world, &raw mut size))
        };
        (codes == (0, 0)).then_some((rank, size))
    });
    let mut known = KNOWN.lock();
    *known = asked.flatten().or(*known);
    if known.is_some() {
        return *known;
    }
    let number = |names: &[&str]| names.iter().find_map(|n| std::env::var(n).ok()?.parse::<i32>().ok());
    let rank = number(&["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"])?;
    Some((rank, number(&["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"]).unwrap_or(2)))
}

/// Says whether another MPI program started this process by `MPI_Comm_spawn`. It has ranks of its own
/// then, which are also ranks of that program.
///
/// The first answer is kept, since the communicator of the parent may be freed later.
fn is_spawned(host: &Host) -> bool {
    static SPAWNED: Awaited<bool> = Awaited::new();
    *SPAWNED.get_or_init(|| {
        let mut parent: u64 = 0;
        // SAFETY: room for a handle of either width, and the world is initialized.
        let ask = || Some(unsafe { host.f.comm_get_parent?((&raw mut parent).cast()) });
        host.with_world(ask).flatten() == Some(0) && parent & host.mask != host.comm_null
    })
}

/// The file of this process: `%r` is its rank, `%p` its process id; without `%r` the ranks of a larger
/// job append theirs. A process that was spawned appends its process id, unless the name has it.
fn file(name: &Path, place: Option<(i32, i32)>, spawned: bool) -> PathBuf {
    let text = name.to_string_lossy();
    let pid = std::process::id();
    let (rank, size) = place.map_or((format!("pid{pid}"), 1), |(rank, size)| (rank.to_string(), size));
    let mut path = text.replace("%r", &rank).replace("%p", &pid.to_string());
    if size > 1 && !text.contains("%r") {
        let _ = write!(path, ".{rank}");
    }
    if spawned && !text.contains("%p") {
        let _ = write!(path, ".spawned-{pid}");
    }
    PathBuf::from(path)
}

/// When a report is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// At the end of an epoch.
    End,
    /// Before the program ends itself.
    Abort,
    /// Now and then, for a program that is killed: to files alone.
    Between,
}

/// Writes report and record at the end of an epoch, if asked for. Counts go on: a later epoch writes the sums again.
pub(crate) fn write(host: &'static Host) {
    if settings().counting() {
        let _ = written(host, Moment::End).map_err(said);
    }
}

/// Writes them for a program that is about to end without finalizing.
#[cold]
pub(crate) fn so_far(host: &'static Host) {
    if settings().counting()
        && host.abi.is_some()
        && let Some(_inside) = Inside::enter()
    {
        guard(|| {
            fold_all(host);
            let _ = written(host, Moment::Abort).map_err(said);
        });
    }
}

/// The first time between the first call and a report of what was so far. Each is twice as far from the first call as the one before, up to [`OFTEN`].
const FIRST: Duration = Duration::from_millis(250);
/// The time between two reports.
const OFTEN: Duration = Duration::from_secs(3);
/// How many times as long as it took to write one nothing is written: the program's time is its own.
const SHARE: u32 = 50;

/// Writes them if the last ones are some seconds old: a program that is killed leaves those. Called where calls are counted.
pub(crate) fn from_time_to_time(host: &'static Host) {
    static BEGAN: Awaited<Instant> = Awaited::new();
    /// Nanoseconds after that; while one is written, the end of time.
    static NEXT: AtomicU64 = AtomicU64::new(FIRST.as_nanos() as u64);
    let began = BEGAN.get_or_init(|| {
        is_spawned(host);
        Instant::now()
    });
    let (now, next) = (began.elapsed(), NEXT.load(Relaxed));
    if host.abi.is_none() {
        // Nothing is known of it, and the report is that of the library whose calls are converted.
        return;
    }
    if now.as_nanos() < u128::from(next) || NEXT.compare_exchange(next, u64::MAX, Relaxed, Relaxed).is_err() {
        return;
    }
    let well = Inside::enter().and_then(|_inside| {
        guard(|| {
            fold_all(host);
            written(host, Moment::Between).is_ok()
        })
    });
    // What cannot be written is said at the end.
    if well != Some(false) {
        let after = began.elapsed();
        let pause = now.min(OFTEN).max((after - now) * SHARE);
        NEXT.store((after + pause).as_nanos() as u64, Relaxed);
    }
}

fn fold_all(host: &Host) {
    table::fold_all();
    hooks::fold_all(host);
}

fn written(host: &'static Host, moment: Moment) -> Result<(), (PathBuf, io::Error)> {
    let place = rank(host);
    let spawned = is_spawned(host);
    let mut outcome = Ok(());
    if let Some(name) = &settings().report {
        let to_errors = name.as_os_str() == "-";
        if !to_errors {
            outcome = save(file(name, place, spawned), &text(host, place, moment));
        } else if moment != Moment::Between {
            let _ = to_stderr(text(host, place, moment).as_bytes());
        }
    }
    if let Some(name) = &settings().record {
        let text = corpus(host, &rows());
        outcome = outcome.and(save(file(name, place, spawned), &text));
    }
    outcome
}

fn save(path: PathBuf, text: &str) -> Result<(), (PathBuf, io::Error)> {
    files::replace(&path, text).map_err(|error| (path, error))
}

fn said((path, error): (PathBuf, io::Error)) {
    warn(format_args!("{}: {error}", path.display()));
}

/// The report: lines `name value`, then one line per type. `ddtc preload --report` adds up those of all ranks.
fn text(host: &'static Host, place: Option<(i32, i32)>, moment: Moment) -> String {
    types::configured();
    let unseen = fortran_bridge::unseen(host);
    // From here on nobody is called.
    let rows = rows();
    let (c, config) = (runtime::counters(), runtime::config());
    let place = place.map_or(String::new(), |(rank, size)| format!(", rank {rank} of {size}"));
    let mut out = format!("ddtc report{place}, process {}\n", std::process::id());
    let converted = |d: Direction| rows.all().map(|r| r.calls[d as usize]).sum::<u64>();
    let (packs, unpacks) = (converted(Direction::Pack), converted(Direction::Unpack));
    let inside: u64 = counted::PIECES.iter().map(counted::Counter::get).sum();
    if packs + unpacks + inside == 0 {
        let why = if config.mode == Mode::Off { OFF.to_owned() } else { sentence(outcome::calls) };
        let _ = writeln!(out, "{why}");
    }
    let abi = host.abi.map_or("unknown ABI", |a| a.name);
    let _ = writeln!(out, "host {} ({abi})", host.version);
    let _ = writeln!(out, "mode {}, target {}", config.mode, config.level.name());
    if unseen {
        let _ = writeln!(out, "note this host's Fortran calls bypass its C functions and are not seen");
    }
    for note in host.layers.notes().chain(layers::hidden(profiling_names())) {
        let _ = writeln!(out, "note {note}");
    }
    let hook = hook(host).map(|hook| hook.report()).unwrap_or_default();
    for note in &hook.notes {
        let _ = writeln!(out, "note {note}");
    }
    for version in others() {
        let _ = writeln!(out, "note calls for a second MPI library are not converted: {version}");
    }
    if let Some(why) = objects::bypass_reason() {
        let _ = writeln!(out, "note nonblocking calls are this host's: {why}");
    }
    if reserve::is_short() {
        let _ = writeln!(out, "note memory ran out: since then all calls are this host's");
    }
    if moment != Moment::End {
        let _ = writeln!(out, "{UNFINISHED}");
    }
    totals(&mut out, [packs, unpacks], &c, &hook);
    for refusal in REFUSALS.lock().iter() {
        let _ = writeln!(out, "note left to the host: {refusal}");
    }
    types_of(&mut out, host, &rows);
    out
}

/// Lines `name value`: totals of the process, of which so many calls were converted.
fn totals(out: &mut String, converted: [u64; 2], c: &Counters, hook: &HookReport) {
    let totals = [
        ("pack_calls", converted[0]),
        ("unpack_calls", converted[1]),
        ("messages_packed", counted::SENT.get()),
        ("messages_unpacked", counted::RECEIVED.get()),
        ("messages_past_the_cap", counted::PAST_THE_CAP.get()),
        ("inside_pieces_packed", counted::PIECES[0].get()),
        ("inside_pieces_unpacked", counted::PIECES[1].get()),
        ("inside_bytes_packed", counted::INSIDE[0].get()),
        ("inside_bytes_unpacked", counted::INSIDE[1].get()),
        ("inside_bytes_copied", counted::COPIED.get()),
        ("inside_types_unseen", hook.types_unseen),
        ("inside_types_different", hook.types_different),
        ("calls_left_to_host", Bypass::ALL.iter().map(|&why| outcome::calls(why)).sum()),
        ("types_left_to_host", counted::TYPES_LEFT.get()),
        ("types_left_wrong_map", counted::TYPES_WRONG.get()),
        ("spent_us", spending::micros()),
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
        if name == "calls_left_to_host" {
            for why in Bypass::ALL.into_iter().filter(|&why| outcome::calls(why) > 0) {
                let _ = writeln!(out, "{} {}", why.name(), outcome::calls(why));
            }
        }
    }
}

/// One line per type, those of most bytes first.
fn types_of(out: &mut String, host: &'static Host, rows: &Rows) {
    let _ = writeln!(
        out,
        "{:>8} {:>10} {:>14} {:>12} {:>10} {:>14} {:>12}  type",
        "commits", "packs", "pack_bytes", "pack_us", "unpacks", "unpack_bytes", "unpack_us"
    );
    let mut sorted: Vec<&Row> = rows.of_types().collect();
    sorted.sort_by_key(|r| std::cmp::Reverse(r.bytes.iter().chain(&r.inside).sum::<u64>()));
    for r in sorted.into_iter().chain(rows.rest()) {
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
            if rows.rest().is_some_and(|rest| std::ptr::eq(rest, r)) { REST.to_owned() } else { named(r) },
        );
        for (d, schedule) in Direction::BOTH.iter().zip(&r.schedule) {
            if r.calls[*d as usize] + r.inside[*d as usize] > 0 {
                let _ = writeln!(out, "    {d}: {}", short(schedule));
            }
        }
        if r.inside != [0; 2] {
            let [packed, unpacked] = r.inside;
            let _ = writeln!(out, "    inside this host: {packed} bytes packed, {unpacked} unpacked");
        }
        if let Some(evidence) = evidence::known(r.layout) {
            out.push_str(&evidence.lines(policy(host).set(r.class)));
        }
    }
}

/// Name of the row of all types that have none of their own.
const REST: &str = "other types: more than have rows";

/// A type's text, and what tells it from others that begin as it does.
fn named(r: &Row) -> String {
    let t = &r.datatype;
    let kind = if r.absolute { "at addresses: " } else { "" };
    format!(
        "{kind}{}  [{} of {} bytes, {}, {:08x}]",
        short(&t.to_string()),
        t.size(),
        t.true_extent(),
        r.class.name(),
        t.structural_hash() >> 96
    )
}

/// The program's types as a corpus file, most used first.
fn corpus(host: &Host, rows: &Rows) -> String {
    let mut out = format!("# Types of process {} under {}.\n", std::process::id(), host.version);
    let mut sorted: Vec<&Row> = rows.of_types().collect();
    sorted.sort_by_key(|r| std::cmp::Reverse(r.bytes.iter().chain(&r.inside).sum::<u64>()));
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
