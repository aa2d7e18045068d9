//! Checks of external32. Every value has exactly one external32 representation, so the packed bytes
//! themselves are compared.

use ddtc::internal::exec::interp;

use super::pack::area;
use super::values::{BEFORE, value};
use super::{Class, Compared, Context, Order, Report, byte, first_difference};
use crate::library::Area;
use crate::subject::Map;

/// Returns user memory in which every entry of the type map `map` has a value that both the native
/// representation and external32 can hold.
pub(super) fn valued(map: &Map) -> Area {
    let mut area = Area::new(map.low, map.high, 0xa5);
    for (i, &(at, _, named)) in map.entries.iter().enumerate() {
        let (at, value) = ((at - map.low) as usize, value(named, i));
        area.data_mut()[at..at + value.len()].copy_from_slice(&value);
    }
    area
}

pub(super) fn run(context: &mut Context<'_>, report: &mut Report<'_>, map: &Map) {
    let (library, count) = (context.library, report.subject.count);
    let (t, judged) = (report.subject.root().handle, report.subject.root().judged.clone());
    if map.overlaps {
        // Where values of different types overlap, the bytes need not be valid values, so such
        // datatypes are not checked.
        return;
    }
    let from = valued(map);
    let origin = (-map.low) as usize;
    let (want, fit) = interp::external32::pack(&judged, count, from.data(), origin);
    if fit.is_err() {
        return;
    }
    let bug = Class::Bug;
    // `MPI_Pack_external_size` and the number of packed bytes must equal the length of the stream
    // that the reference interpreter packs.
    match library.external_size(count, t) {
        Err(refusal) => return report.refused(refusal),
        Ok(size) if size != want.len() as i64 => {
            let clause = |bytes: i64| format!("MPI_Pack_external_size gives {bytes}");
            report.add("external-size", bug, "external32", clause(want.len() as i64), clause(size));
        }
        Ok(_) => {}
    }
    let mut stream = vec![0xee; want.len() + 64];
    match library.pack_external(&from, count, t, &mut stream) {
        Err(refusal) => return report.refused(refusal),
        Ok(end) if end != want.len() as i64 => {
            let clause = |bytes: i64| format!("MPI_Pack_external writes {bytes} bytes");
            return report.add("external-length", bug, "external32", clause(want.len() as i64), clause(end));
        }
        Ok(_) => {}
    }
    if let Some(i) = first_difference(&stream, &want, |_| true) {
        let shown = |v: u8| byte("the external32 byte", i as i64, v);
        let shown = (shown(want[i]), shown(stream[i]));
        let order = match want.len() == map.size {
            true => Order::Stream { from: 0, len: map.size },
            false => Order::Converted,
        };
        let compared = Compared { want: &want, got: &stream, before: &[], source: &want, order };
        report.add_bytes(("external-bytes", bug, "external32"), shown, &compared, |_| true);
    }
    // The library then unpacks the stream that the reference interpreter packed, whether its own
    // stream was right or not. The memory is compared with what the reference interpreter unpacks.
    let mut to = area(map, BEFORE);
    let mut expected = to.data().to_vec();
    if interp::external32::unpack(&judged, count, &want, &mut expected, origin).is_err() {
        return;
    }
    match library.unpack_external(&want, &mut to, count, t) {
        Err(refusal) => report.refused(refusal),
        Ok(_) => super::pack::memory(report, map, &to, &expected, ("external-unpacked", bug, "external32")),
    }
}
