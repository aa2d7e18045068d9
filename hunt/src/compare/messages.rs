//! Checks of messages from the process to itself. One side uses the datatype. The other side uses
//! either the same datatype, or a partner with the same signature whose values are stored without
//! gaps. The entries of a send buffer may overlap, those of a receive buffer may not.

use super::pack::{area, gathered, memory, scattered};
use super::values::{BEFORE, STREAM, USER, patterned, stream_values};
use super::{Class, Compared, Context, Order, Report, byte, first_difference, partner, plain_bytes};
use crate::library::{Area, Received};
use crate::subject::Map;

pub(super) fn run(context: &mut Context<'_>, report: &mut Report<'_>, map: &Map) {
    let Some((flat, n, free)) = partner::flat(context.library, map) else { return };
    out(context, report, map, (flat, n));
    if !map.overlaps {
        into(context, report, map, (flat, n));
        both(context, report, map);
    }
    if free {
        let _ = context.library.free(flat);
    }
}

type Partner = (crate::library::Handle, u64);

/// Value of the bytes of a receive buffer before the message arrives. It differs from the value of
/// the guard bytes around the buffer.
const EMPTY: u8 = 0x5a;

/// Returns a receive buffer for the values of `map` stored without gaps. All its bytes are
/// [`EMPTY`].
pub(super) fn stream_buffer(map: &Map) -> Area {
    let mut buffer = Area::new(0, map.size as i64, 0xa5);
    buffer.data_mut().fill(EMPTY);
    buffer
}

/// Compares `got`, a buffer without gaps into which a message arrived, with the expected bytes, and
/// checks that the guard bytes around the buffer are unchanged.
pub(super) fn arrived(
    report: &mut Report<'_>,
    map: &Map,
    (from, got): (&Area, &Area),
    want: &[u8],
    kind: &str,
) {
    let source = from.all();
    let values = (!plain_bytes(map)).then(|| stream_values(map));
    let matters = |i: usize| values.as_ref().is_none_or(|v| v[i]);
    if let Some(i) = first_difference(got.data(), want, matters) {
        let shown = |v: u8| byte("the byte", i as i64, v);
        let shown = (shown(want[i]), shown(got.data()[i]));
        let before = vec![EMPTY; want.len()];
        let order = Order::Stream { from: 0, len: want.len() };
        let compared = Compared { want, got: got.data(), before: &before, source, order };
        report.add_bytes((kind, Class::Bug, "message"), shown, &compared, matters);
    }
    if got.guards().into_iter().flatten().any(|&b| b != 0xa5) {
        report.add_stray(
            ("outside", Class::Bug, "gap"),
            "beyond",
            "no byte outside the true bounds is changed",
            "bytes outside the true bounds are changed",
        );
    }
}

fn out(context: &Context<'_>, report: &mut Report<'_>, map: &Map, (flat, n): Partner) {
    let (library, count, t) = (context.library, report.subject.count, report.subject.root().handle);
    let from = area(map, USER);
    let want = gathered(map, from.data());
    let mut to = stream_buffer(map);
    match library.exchange((&from, count, t), (&mut to, n, flat)) {
        Err(refusal) => report.refused(refusal),
        Ok(received) => {
            counted(report, received, n);
            arrived(report, map, (&from, &to), &want, "sent");
        }
    }
}

fn counted(report: &mut Report<'_>, received: Received, n: u64) {
    if received.count != Some(n as i64) {
        let got = received.count.map_or("MPI_UNDEFINED".to_owned(), |n| n.to_string());
        report.add(
            "count-of-whole",
            Class::Bug,
            "elements",
            format!("MPI_Get_count gives {n}"),
            format!("MPI_Get_count gives {got}"),
        );
    }
}

fn into(context: &Context<'_>, report: &mut Report<'_>, map: &Map, (flat, n): Partner) {
    let (library, count, t) = (context.library, report.subject.count, report.subject.root().handle);
    let mut from = Area::new(0, map.size as i64, 0xa5);
    patterned(STREAM, from.data_mut());
    let mut to = area(map, BEFORE);
    let mut want = to.data().to_vec();
    scattered(map, from.data(), &mut want);
    match library.send_and_receive((&from, n, flat), (&mut to, count, t)) {
        Err(refusal) => report.refused(refusal),
        Ok(received) => {
            counted(report, received, count);
            memory(report, map, &to, &want, ("received", Class::Bug, "message"));
        }
    }
}

fn both(context: &Context<'_>, report: &mut Report<'_>, map: &Map) {
    let (library, count, t) = (context.library, report.subject.count, report.subject.root().handle);
    let from = area(map, USER);
    let mut to = area(map, BEFORE);
    let mut want = to.data().to_vec();
    scattered(map, &gathered(map, from.data()), &mut want);
    match library.exchange((&from, count, t), (&mut to, count, t)) {
        Err(refusal) => report.refused(refusal),
        Ok(_) => memory(report, map, &to, &want, ("sent-to-itself", Class::Bug, "message")),
    }
}
