//! Reports of what ddtc did for the program. They are written at the end of each epoch, before an
//! abort, and every few seconds in between.
//!
//! `DDTC_REPORT` names the file of a report for each process ([`ddtc_hosts::report`]), and
//! `DDTC_RECORD` names the file of a corpus of the program's types. Every rank writes its own
//! files, and the ranks do not communicate for this, because a preload library that is perhaps
//! loaded in only one of many ranks must not wait for the others.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ddtc::internal::engine::Counters;
use ddtc::internal::files;
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc::internal::object::runtime;
use ddtc::internal::process::{Awaited, Mutex, to_stderr};
use ddtc_hosts::bypass::Bypass;
use ddtc_hosts::profile::Profile;
use ddtc_hosts::report::{COUNTS, Report, TypeRow};
use ddtc_hosts::tried::TrialStatus;

use crate::counted::{self, REFUSALS, Row, Rows, rows, short};
use crate::guard::{PANICS, guard};
use crate::hook::HookReport;
use crate::hooks::{self, hook};
use crate::host::{Host, others, profiling_names};
use crate::measured;
use crate::policy::policy;
use crate::reentrancy::Inside;
use crate::settings::settings;
use crate::spawned::is_spawned;
use crate::warn::warn;
use crate::{check, fortran_bridge, layers, objects, outcome, overhead_budget, reserve, table, types};

/// Returns this process's rank in the job and the number of ranks, or `None` if the rank is not
/// known. The numbers come from `MPI_COMM_WORLD` while it can be used, and afterwards from its last
/// answer. If there is no answer yet, they come from the launcher's environment variables; if these
/// give only the rank, the number of ranks is taken to be 2.
pub(crate) fn rank(host: &Host) -> Option<(i32, i32)> {
    /// Rank and size that `MPI_COMM_WORLD` had at the last successful query.
    static KNOWN: Mutex<Option<(i32, i32)>> = Mutex::new(None);
    let asked = host.with_world(|| {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: `with_world` runs this closure only while the world is initialized. The other
        // arguments are pointers to local integers.
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

/// Suffix of a report's name by which the user selects the JSON format.
const JSON: &str = ".json";

/// Returns the path of this process's file for the name that the user has given. `%r` in the name
/// is replaced by the rank, or by `pid` and the process id if the rank is not known, and `%p` is
/// replaced by the process id. If the job has several ranks and the name has no `%r`, the rank is
/// appended. If the process was spawned by another MPI program and the name has no `%p`, the
/// process id is appended. A suffix `.json` stays at the end of the path.
fn file(name: &Path, place: Option<(i32, i32)>, spawned: bool) -> PathBuf {
    let name = name.to_string_lossy();
    let (text, ending) = name.strip_suffix(JSON).map_or((&*name, ""), |text| (text, JSON));
    let pid = std::process::id();
    let (rank, size) = place.map_or((format!("pid{pid}"), 1), |(rank, size)| (rank.to_string(), size));
    let mut path = text.replace("%r", &rank).replace("%p", &pid.to_string());
    if size > 1 && !text.contains("%r") {
        let _ = write!(path, ".{rank}");
    }
    if spawned && !text.contains("%p") {
        let _ = write!(path, ".spawned-{pid}");
    }
    path.push_str(ending);
    PathBuf::from(path)
}

/// Occasion on which a report is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// End of an epoch.
    End,
    /// Before the program ends without finalizing, as by `MPI_Abort`, or while sessions that may
    /// never be finalized are still open.
    Abort,
    /// Every few seconds, in case the program is killed later. Then reports are written only to
    /// files, not to standard error.
    Between,
}

/// Writes the report and the record at the end of an epoch, if the user has asked for them. The
/// counts are not reset, so a later epoch writes the sums of all epochs so far.
pub(crate) fn write(host: &'static Host) {
    if settings().counting() {
        let _ = written(host, Moment::End).map_err(said);
    }
}

/// Writes the report and the record with the counts so far, if the user has asked for them. Called
/// if the program is about to end without finalizing, or may do so.
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

/// Time after the first counted call at which the first intermediate report is written. An
/// intermediate report covers the counts so far. Each further one is written at twice the time of
/// the one before, until they are [`OFTEN`] apart.
const FIRST: Duration = Duration::from_millis(250);
/// Maximum time between two intermediate reports, unless [`SHARE`] requires a longer pause.
const OFTEN: Duration = Duration::from_secs(3);
/// Minimum pause after an intermediate report, as a multiple of the time that it took to write the
/// report. So writing takes at most about 2 % of the program's time.
const SHARE: u32 = 50;

/// Writes an intermediate report and record if the last ones are old enough (at first a fraction of
/// a second, later some seconds), so that a program that is killed later leaves recent ones. Called
/// after calls were counted.
pub(crate) fn from_time_to_time(host: &'static Host) {
    static BEGAN: Awaited<Instant> = Awaited::new();
    /// Time at which the next intermediate report is due, in nanoseconds after `BEGAN`. It is
    /// `u64::MAX` while a thread writes a report, and for good after a report could not be written.
    static NEXT: AtomicU64 = AtomicU64::new(FIRST.as_nanos() as u64);
    let began = BEGAN.get_or_init(|| {
        is_spawned(host);
        Instant::now()
    });
    let (now, next) = (began.elapsed(), NEXT.load(Relaxed));
    if host.abi.is_none() {
        // ddtc does not know the ABI of this MPI library, so it converts none of its calls. The
        // report is about the MPI library whose calls are converted.
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
    // If a file cannot be written, no further report is tried before the end, and the error is
    // reported only then.
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
            let report = report(host, place, moment);
            let is_json = name.as_os_str().as_encoded_bytes().ends_with(JSON.as_bytes());
            let text = if is_json { report.json() } else { report.text() };
            outcome = save(file(name, place, spawned), &text);
        } else if moment != Moment::Between {
            let _ = to_stderr(report(host, place, moment).text().as_bytes());
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

/// Returns the report of this process.
fn report(host: &'static Host, place: Option<(i32, i32)>, moment: Moment) -> Report {
    types::configured();
    let unseen = fortran_bridge::unseen(host);
    let hook = hook(host).map(|hook| hook.report()).unwrap_or_default();
    let notes = notes(host, unseen, &hook);
    let rows = rows();
    let (c, config) = (runtime::counters(), runtime::config());
    let place = place.map_or(String::new(), |(rank, size)| format!("rank {rank} of {size}, "));
    let abi = host.abi.map_or("unknown ABI", |a| a.name);
    let mut types: Vec<TypeRow> = Vec::new();
    for row in sorted(&rows).into_iter().chain(rows.rest()) {
        let is_rest = rows.rest().is_some_and(|rest| std::ptr::eq(rest, row));
        types.push(of_type(host, row, if is_rest { REST.to_owned() } else { named(row) }));
    }
    Report {
        ranks: 1,
        unfinished: (moment != Moment::End).into(),
        process: format!("{place}process {}", std::process::id()),
        libraries: vec![format!("{} ({abi})", host.version)],
        modes: vec![config.mode.to_string()],
        targets: vec![config.level.name().to_owned()],
        totals: totals(&types, &c, &hook),
        notes,
        types,
    }
}

/// Returns the rows of all types that have a row of their own, in descending order of the bytes
/// that compiled code has packed and unpacked.
#[inline(never)]
fn sorted(rows: &Rows) -> Vec<&Row> {
    let mut sorted: Vec<&Row> = rows.of_types().collect();
    sorted.sort_by_key(|row| std::cmp::Reverse(row.bytes.iter().chain(&row.inside).sum::<u64>()));
    sorted
}

/// Returns what a user should know of a release of the MPI library that was not tried or was wrong.
fn untried(host: &Host) -> Option<String> {
    match host.trial_status {
        _ if host.abi.is_none() => None,
        _ if !host.profile.stages => {
            (!Profile::moves_inside(&host.library)).then(|| Profile::NOTHING_MOVES.to_owned())
        }
        _ if host.is_restricted() => Some(format!(
            "converted in a process that is connected to another job: {}, which were right with the transport between jobs",
            host.kinds.get()
        )),
        TrialStatus::Tried { .. } if !host.kinds.get().is_empty() => None,
        // Without a message that would be converted, the proofs were not read.
        status if !host.proofs.is_empty() => {
            let (grant, asked) = (host.grant.get()?, host.asked());
            Some(if asked.is_empty() { grant.words.clone() } else { status.in_words(&host.library, asked) })
        }
        status => Some(status.in_words(&host.library, host.asked())),
    }
}

/// Returns the notes of the report, which name circumstances that a user should know of, such as
/// calls that are not converted and why.
#[inline(never)]
fn notes(host: &'static Host, unseen: bool, hook: &HookReport) -> Vec<String> {
    let mut notes = Vec::new();
    if unseen {
        notes.push("Fortran calls are not seen, because the Fortran functions of this MPI library do not call its C functions".to_owned());
    }
    notes.extend(untried(host));
    notes.extend(host.layers.notes().chain(layers::hidden(profiling_names())));
    notes.extend_from_slice(&hook.notes);
    let others = others().into_iter();
    notes.extend(others.map(|v| format!("calls of this MPI library are not converted: {v}")));
    notes.extend(objects::bypass_reason().map(|why| format!("nonblocking calls are bypassed: {why}")));
    if reserve::is_short() {
        notes.push("memory ran out: since then all calls are bypassed".to_owned());
    }
    notes.extend(REFUSALS.lock().iter().map(|why| format!("type bypassed: {why}")));
    notes
}

/// Returns the name and the value of each total of this process. Bypass reasons are included if
/// they have occurred.
#[inline(never)]
fn totals(types: &[TypeRow], c: &Counters, hook: &HookReport) -> Vec<(Cow<'static, str>, u64)> {
    let mut sums = [0; COUNTS.len()];
    for row in types {
        sums.iter_mut().zip(row.counts).for_each(|(sum, n)| *sum += n);
    }
    let [_, packs, unpacks, bytes_packed, bytes_unpacked, pack_us, unpack_us, ..] = sums;
    let totals = [
        ("calls_converted", counted::CALLS_CONVERTED.get()),
        ("calls_bypassed", Bypass::ALL.iter().map(|&why| outcome::calls(why)).sum()),
        ("packs", packs),
        ("unpacks", unpacks),
        ("bytes_packed", bytes_packed),
        ("bytes_unpacked", bytes_unpacked),
        ("pack_us", pack_us),
        ("unpack_us", unpack_us),
        ("messages_packed", counted::MESSAGES_PACKED.get()),
        ("messages_unpacked", counted::MESSAGES_UNPACKED.get()),
        ("messages_over_staging_limit", counted::OVER_STAGING_LIMIT.get()),
        ("hook_pieces_packed", counted::HOOK_PIECES[0].get()),
        ("hook_pieces_unpacked", counted::HOOK_PIECES[1].get()),
        ("hook_bytes_packed", counted::HOOK_BYTES[0].get()),
        ("hook_bytes_unpacked", counted::HOOK_BYTES[1].get()),
        ("hook_bytes_copied", counted::HOOK_BYTES_COPIED.get()),
        ("hook_types_unseen", hook.types_unseen),
        ("hook_types_different", hook.types_different),
        ("types_bypassed", counted::TYPES_BYPASSED.get()),
        ("types_misplaced", counted::TYPES_MISPLACED.get()),
        ("saved_us", overhead_budget::saved_micros()),
        ("overhead_us", overhead_budget::spent_micros()),
        ("commits", c.commits),
        ("layouts", c.cached_layouts),
        ("compiles", c.compiles),
        ("compile_us", c.compile_nanos / 1000),
        ("code_bytes", c.code_bytes),
        ("cache_hits", c.cache.type_hits + c.cache.nest_hits),
        ("cache_misses", c.cache.misses),
        ("interpreted_by_design", c.refusals),
        ("fallbacks", c.fallbacks),
        ("own_pages", c.own_pages),
        ("panics", PANICS.load(Relaxed)),
        ("checks", check::CHECKS.load(Relaxed)),
        ("faults_of_ddtc", check::OURS.load(Relaxed)),
        ("known_faults_of_mpi", check::KNOWN.load(Relaxed)),
        ("other_differences_of_mpi", check::OTHER.load(Relaxed)),
    ];
    let reasons = Bypass::ALL.iter().map(|&why| (why.name(), outcome::calls(why))).filter(|&(_, n)| n > 0);
    totals.into_iter().chain(reasons).map(|(name, n)| (name.into(), n)).collect()
}

/// Returns the row of one type in the report.
#[inline(never)]
fn of_type(host: &'static Host, row: &Row, name: String) -> TypeRow {
    let t = &row.datatype;
    let schedules = Direction::BOTH.iter().zip(&row.schedule);
    let schedules = schedules.filter(|(d, _)| row.calls[**d as usize] + row.inside[**d as usize] > 0);
    let [packs, unpacks] = row.calls;
    let [bytes_packed, bytes_unpacked] = row.bytes;
    let [pack_us, unpack_us] = row.nanos.map(|nanos| nanos / 1000);
    let [hook_packed, hook_unpacked] = row.inside;
    let measured = measured::known(row.layout);
    TypeRow {
        name,
        size: t.size(),
        true_extent: t.true_extent(),
        class: row.class.name().to_owned(),
        hash: format!("{:08x}", t.structural_hash() >> 96),
        counts: [
            row.commits,
            packs,
            unpacks,
            bytes_packed,
            bytes_unpacked,
            pack_us,
            unpack_us,
            hook_packed,
            hook_unpacked,
        ],
        schedules: schedules.map(|(d, schedule)| format!("{d}: {}", short(schedule))).collect(),
        timings: measured.map(|e| e.lines(policy(host).set(row.class))).unwrap_or_default(),
    }
}

/// Name of the row that all types without a row of their own share.
const REST: &str = "other types: more than have rows";

/// Returns the name of a type's row in the report: the type as text, cut after 160 characters, with
/// a prefix if the displacements of the program's type are absolute addresses.
fn named(row: &Row) -> String {
    let kind = if row.absolute { "at addresses: " } else { "" };
    format!("{kind}{}", short(&row.datatype.to_string()))
}

/// Returns the text of a corpus file with the program's types, in descending order of the bytes
/// that compiled code has packed and unpacked.
fn corpus(host: &Host, rows: &Rows) -> String {
    let mut out = format!("# Types of process {} under {}.\n", std::process::id(), host.version);
    for (i, r) in sorted(rows).into_iter().enumerate() {
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
