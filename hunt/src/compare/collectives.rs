//! Checks of collective and one-sided calls on `MPI_COMM_SELF`. One side of each transfer uses the
//! datatype of the case. The other side uses its partner, which is a datatype with the same
//! signature that stores the values without gaps. Also checks sums into a datatype of integers with
//! `MPI_Accumulate`.

use ddtc::internal::datatype::Named;
use ddtc::internal::methods::*;

use super::messages::{arrived, stream_buffer};
use super::pack::{area, gathered, memory, scattered};
use super::values::{BEFORE, STREAM, USER, patterned, value};
use super::{Class, Context, Report, partner};
use crate::library::{Area, Library};
use crate::subject::Map;

pub(super) fn run(context: &mut Context<'_>, report: &mut Report<'_>, map: &Map) {
    let library = context.library;
    let Some((flat, n, free)) = partner::flat(library, map) else { return };
    let (count, t) = (report.subject.count, report.subject.root().handle);
    let from = area(map, USER);
    let want = gathered(map, from.data());
    let mut stream = Area::new(0, map.size as i64, 0xa5);
    patterned(STREAM, stream.data_mut());
    let mut filled = area(map, BEFORE).data().to_vec();
    scattered(map, stream.data(), &mut filled);
    for (which, call) in Library::COLLECTIVES.iter().enumerate() {
        let kind = call.trim_start_matches("MPI_").to_lowercase();
        let mut to = stream_buffer(map);
        match library.collective(which, (&from, count, t), (&mut to, n, flat)) {
            Err(refusal) => report.refused(refusal),
            Ok(()) => arrived(report, map, (&from, &to), &want, &kind),
        }
        if !map.overlaps {
            let mut to = area(map, BEFORE);
            match library.collective(which, (&stream, n, flat), (&mut to, count, t)) {
                Err(refusal) => report.refused(refusal),
                Ok(()) => memory(report, map, &to, &filled, (&kind, Class::Bug, "message")),
            }
        }
    }
    // Creating a window takes as long as a hundred cases, so one-sided calls are checked for only
    // one datatype in 256, unless `thorough` is set.
    let some = context.thorough || report.subject.root().plain.structural_hash().is_multiple_of(256);
    if some && !map.overlaps && map.low >= -(1 << 12) {
        one_sided(context, report, map, (stream, &filled), (flat, n));
        sum(context, report, map);
    }
    if free {
        let _ = library.free(flat);
    }
}

type Partner = (crate::library::Handle, u64);

fn one_sided(
    context: &Context<'_>,
    report: &mut Report<'_>,
    map: &Map,
    (mut stream, filled): (Area, &[u8]),
    (flat, n): Partner,
) {
    let (library, count, t) = (context.library, report.subject.count, report.subject.root().handle);
    let mut target = area(map, BEFORE);
    match library.one_sided(0, (&mut stream, n, flat), (&mut target, count, t)) {
        Err(refusal) => report.refused(refusal),
        Ok(()) => memory(report, map, &target, filled, ("put", Class::Bug, "message")),
    }
    let mut target = area(map, USER);
    let want = gathered(map, target.data());
    let mut got = stream_buffer(map);
    match library.one_sided(1, (&mut got, n, flat), (&mut target, count, t)) {
        Err(refusal) => report.refused(refusal),
        Ok(()) => arrived(report, map, (&target, &got), &want, "get"),
    }
}

/// Checks `MPI_Accumulate` into a datatype whose entries all have one integer type and are aligned.
/// The caller guarantees that no two entries overlap. Does nothing for other datatypes.
fn sum(context: &Context<'_>, report: &mut Report<'_>, map: &Map) {
    let (library, count, t) = (context.library, report.subject.count, report.subject.root().handle);
    let named = map.entries[0].2;
    let summed = matches!(named, Named::Int | Named::Int64 | Named::Short | Named::Long);
    let fits = |e: &(i64, usize, Named)| e.2 == named && e.0 % named.alignment() == 0;
    if !summed || !map.entries.iter().all(fits) {
        return;
    }
    let Some(basic) = library.named(named) else { return };
    let size = named.size() as usize;
    let mut origin = Area::new(0, map.size as i64, 0xa5);
    let mut target = area(map, BEFORE);
    for (i, &(at, ..)) in map.entries.iter().enumerate() {
        origin.data_mut()[i * size..][..size].copy_from_slice(&value(named, i));
        target.data_mut()[(at - map.low) as usize..][..size].copy_from_slice(&value(named, 7));
    }
    let mut want = target.data().to_vec();
    for (i, &(at, ..)) in map.entries.iter().enumerate() {
        // Both addends are positive and less than 110, so their sum fits in the lowest byte of the
        // integer.
        want[(at - map.low) as usize] = value(named, i)[0] + value(named, 7)[0];
    }
    match library.one_sided(2, (&mut origin, map.entries.len() as u64, basic), (&mut target, count, t)) {
        Err(refusal) => report.refused(refusal),
        Ok(()) => memory(report, map, &target, &want, ("accumulate", Class::Bug, "message")),
    }
}
