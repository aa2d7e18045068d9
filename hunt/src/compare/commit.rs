//! Checks of datatypes as objects: a datatype must keep working if its parts are freed, if it is
//! committed again or duplicated, and if a thousand other datatypes are live.

use super::pack::{area, gathered};
use super::values::{USER, stream_values};
use super::{Class, Compared, Context, Order, Report, byte, first_difference};
use crate::library::{Answer, Handle, Library};
use crate::subject::{Map, Subject, is_predefined};
use ddtc::internal::methods::*;

/// Minimum number of handles that are live when a datatype is checked among many others. This
/// number is more than the first handle table of any library can hold.
const MIN_LIVE_HANDLES: usize = 1100;

pub(super) fn run(context: &mut Context<'_>, report: &mut Report<'_>) {
    let library = context.library;
    if is_predefined(&report.subject.root().plain) {
        return;
    }
    if let Err(refusal) = named_and_again(library, report) {
        report.refused(refusal);
    }
    let Some(map) = report.subject.map().filter(|m| m.size > 0) else { return };
    if let Err(refusal) = orphaned(library, report, map) {
        report.refused(refusal);
    }
    let some = context.thorough || report.subject.root().plain.structural_hash().is_multiple_of(512);
    if some && let Err(refusal) = among_many(library, report, map) {
        report.refused(refusal);
    }
}

fn named_and_again(library: &Library, report: &mut Report<'_>) -> Answer<()> {
    let t = report.subject.root().handle;
    let fresh = library.name(t)?;
    if !fresh.is_empty() {
        let got = format!("the name of a new datatype is `{fresh}`");
        report.add("fresh-name", Class::Bug, "name", "a new datatype has no name", got);
    }
    library.set_name(t, c"ddtc")?;
    let name = library.name(t)?;
    if name != "ddtc" {
        let clause = |name: &str| format!("the name is `{name}`");
        report.add("name", Class::Bug, "name", clause("ddtc"), clause(&name));
    }
    library.commit(t)
}

/// Packs user memory with the handle `t`, and reports a difference of the given kind if the packed
/// bytes are not those that the definition of the datatype gives.
fn packs(library: &Library, report: &mut Report<'_>, map: &Map, t: Handle, kind: &str) -> Answer<()> {
    let from = area(map, USER);
    let want = gathered(map, from.data());
    let mut stream = vec![0xee; want.len() + 64];
    let mut position = 0;
    library.pack(&from, report.subject.count, t, &mut stream, &mut position)?;
    let values = stream_values(map);
    if position != want.len() {
        let clause = |bytes: usize| format!("MPI_Pack writes {bytes} bytes");
        report.add(kind, Class::Bug, "commit", clause(want.len()), clause(position));
    } else if let Some(i) = first_difference(&stream, &want, |i| values[i]) {
        let shown = |v: u8| byte("the packed byte", i as i64, v);
        let shown = (shown(want[i]), shown(stream[i]));
        let order = Order::Stream { from: 0, len: want.len() };
        let compared = Compared { want: &want, got: &stream, before: &[], source: from.all(), order };
        report.add_bytes((kind, Class::Bug, "commit"), shown, &compared, |i| values[i]);
    }
    Ok(())
}

/// Returns true if the handle `t`, which is that of the datatype itself, packs according to the
/// definition. If even this handle packs wrongly, wrong bytes of its duplicate or of an equal
/// datatype prove nothing about how the library handles objects.
fn is_sound(library: &Library, report: &Report<'_>, map: &Map, t: Handle) -> bool {
    let mut tried = Report::new(report.subject, report.check);
    packs(library, &mut tried, map, t, "").is_ok() && tried.found.is_empty()
}

/// Checks that a datatype packs correctly if its parts, which are the datatypes from which it was
/// built, were freed before it was committed. Then checks its duplicate after the datatype itself
/// was freed.
fn orphaned(library: &Library, report: &mut Report<'_>, map: &Map) -> Answer<()> {
    if !is_sound(library, report, map, report.subject.root().handle) {
        return Ok(());
    }
    let plain = report.subject.root().plain.clone();
    let Ok(built) = Subject::build(library, &plain, report.subject.count) else { return Ok(()) };
    let t = built.root().handle;
    for node in &built.nodes[..built.nodes.len() - 1] {
        if !is_predefined(&node.plain) {
            library.free(node.handle)?;
        }
    }
    library.commit(t)?;
    let copy = library.dup(t)?;
    packs(library, report, map, t, "packed-without-parts")?;
    library.free(t)?;
    packs(library, report, map, copy, "packed-duplicate")?;
    library.free(copy)
}

/// Builds many equal datatypes and checks two of them, the last one and the one in the middle,
/// while all are live.
fn among_many(library: &Library, report: &mut Report<'_>, map: &Map) -> Answer<()> {
    if !is_sound(library, report, map, report.subject.root().handle) {
        return Ok(());
    }
    let plain = report.subject.root().plain.clone();
    let mut live = Vec::new();
    while live.len() * plain.nodes().count().max(1) < MIN_LIVE_HANDLES {
        let Ok(built) = Subject::build(library, &plain, report.subject.count) else { break };
        built.commit(library)?;
        live.push(built);
    }
    for which in [live.len().saturating_sub(1), live.len() / 2] {
        if let Some(t) = live.get(which).map(|s| s.root().handle) {
            packs(library, report, map, t, "packed-among-many")?;
        }
    }
    live.into_iter().for_each(|s| s.free(library));
    Ok(())
}
