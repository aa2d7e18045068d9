//! Checks of receives whose message is shorter than the receive buffer, or equally long. They
//! compare the numbers of instances and basic elements that the library counts, and the bytes that
//! arrived.

use super::pack::{area, scattered};
use super::values::{BEFORE, STREAM, patterned};
use super::{Class, Context, Report};
use crate::library::Area;
use crate::subject::{Map, has_pairs};

pub(super) fn run(context: &mut Context<'_>, report: &mut Report<'_>, map: &Map) {
    if map.overlaps {
        // MPI forbids a receive into overlapping entries, however short the message is (MPI 5.0,
        // section 5.1.11).
        return;
    }
    let total = map.entries.len();
    // The message lengths in elements: 0, 1, half of all, all but one, all, and lengths around the
    // end of the first instance.
    let instance = total / (report.subject.count.max(1) as usize);
    let mut lengths = vec![0, 1, total / 2, total - 1, total, instance, instance + 1];
    lengths.retain(|&n| n <= total);
    lengths.sort_unstable();
    lengths.dedup();
    for elements in lengths {
        partial(context, report, map, elements);
    }
}

/// Sends the first `elements` basic elements of the map and receives them into `count` instances of
/// the datatype.
fn partial(context: &Context<'_>, report: &mut Report<'_>, map: &Map, elements: usize) {
    let (library, count, root) = (context.library, report.subject.count, report.subject.root());
    let (t, judged) = (root.handle, root.judged.clone());
    let bytes: usize = map.entries[..elements].iter().map(|e| e.1).sum();
    // The sender has the values stored without gaps, and sends them with a datatype that is built
    // for the first `elements` entries of the type map. A message without elements is sent as zero
    // units of `MPI_PACKED`.
    let sent = Map {
        entries: map.entries[..elements].to_vec(),
        low: 0,
        high: 0,
        size: bytes,
        overlaps: false,
        mapped: Vec::new(),
    };
    let mut from = Area::new(0, bytes as i64, 0xa5);
    patterned(STREAM, from.data_mut());
    let mut to = area(map, BEFORE);
    let mut want = to.data().to_vec();
    scattered(map, from.data(), &mut want);
    let flat = match elements {
        0 => library.named(ddtc::internal::datatype::Named::Packed).map(|h| (h, 0, false)),
        _ => super::partner::flat(library, &sent),
    };
    let Some((out, n, free)) = flat else { return };
    let received = library.exchange((&from, n, out), (&mut to, count, t));
    if free {
        let _ = library.free(out);
    }
    let received = match received {
        Ok(received) => received,
        Err(refusal) => return report.refused(refusal),
    };
    // `MPI_Get_count` gives the number of instances if the message consists of whole instances, and
    // `MPI_UNDEFINED` otherwise.
    let whole = (bytes as i64 % judged.size() == 0).then(|| bytes as i64 / judged.size());
    let shown = |n: Option<i64>| n.map_or("MPI_UNDEFINED".to_owned(), |n| n.to_string());
    let after = format!("after a message of {elements} basic elements");
    if received.count != whole {
        let (want, got) = (shown(whole), shown(received.count));
        report.add(
            "count",
            Class::Bug,
            "elements",
            format!("MPI_Get_count gives {want} {after}"),
            format!("MPI_Get_count gives {got} {after}"),
        );
    }
    // `MPI_Get_elements` and, if the library has it, `MPI_Get_elements_x` give the number of basic
    // elements. The standard can be read so that a pair counts as one element or as two.
    let counted = match library.elements(&received, t) {
        Ok(counted) => counted,
        Err(refusal) => return report.refused(refusal),
    };
    let elements = Some(elements as i64);
    let wrong = [Some(counted.0), counted.1].into_iter().flatten().find(|e| *e != elements);
    if let Some(got) = wrong {
        let pairs = has_pairs(&judged);
        let (kind, class, rule) = match pairs {
            true => ("elements-of-pairs", Class::Open, "pairs"),
            false => ("elements", Class::Bug, "elements"),
        };
        report.add(
            kind,
            class,
            rule,
            format!("MPI_Get_elements gives {} {after}", shown(elements)),
            format!("MPI_Get_elements gives {} {after}", shown(got)),
        );
    }
    super::pack::memory(report, map, &to, &want, ("received", Class::Bug, "message"));
}
