//! Checks of packing and unpacking. Each moves all instances in one call. Packing is also checked
//! with two calls in a row, of which the second continues at the position where the first ended.
//!
//! The packed format is the library's own. Packed bytes that differ from those of the type map are
//! therefore classified as open if they unpack to the values that were packed. Streams for the
//! check of unpacking are packed by the library itself, from values that are stored without gaps.

use super::values::{BEFORE, STREAM, USER, memory_values, patterned, stream_values};
use super::{Class, Compared, Context, Order, Report, byte, first_difference, plain_bytes};
use crate::library::Area;
use crate::subject::Map;

/// Returns the packed bytes that the values in `memory` must give according to the type map.
pub(super) fn gathered(map: &Map, memory: &[u8]) -> Vec<u8> {
    let mut stream = Vec::with_capacity(map.size);
    for &(at, len, _) in &map.entries {
        let at = (at - map.low) as usize;
        stream.extend_from_slice(&memory[at..at + len]);
    }
    stream
}

/// Stores the packed bytes `stream` in `memory`, at the places that the type map defines.
pub(super) fn scattered(map: &Map, stream: &[u8], memory: &mut [u8]) {
    let mut next = 0;
    for &(at, len, _) in &map.entries {
        let (at, end) = ((at - map.low) as usize, (next + len).min(stream.len()));
        memory[at..at + (end - next)].copy_from_slice(&stream[next..end]);
        next = end;
    }
}

/// Returns user memory for the type map `map`, filled with the pattern that belongs to `seed`.
pub(super) fn area(map: &Map, seed: u64) -> Area {
    let mut area = Area::new(map.low, map.high, 0xa5);
    patterned(seed, area.data_mut());
    area
}

/// Compares user memory to which a call wrote with its expected contents: mapped bytes, gaps, and
/// the guards around the memory. The memory had the pattern of [`BEFORE`] before the call, and
/// `want` contains the bytes that the call must have moved.
pub(super) fn memory(report: &mut Report<'_>, map: &Map, got: &Area, want: &[u8], what: (&str, Class, &str)) {
    if got.guards().into_iter().flatten().any(|&b| b != 0xa5) {
        report.add_stray(
            ("outside", Class::Bug, "gap"),
            "beyond",
            "no byte outside the true bounds is changed",
            "bytes outside the true bounds are changed",
        );
    }
    if got.data() == want {
        return;
    }
    let values = (!plain_bytes(map)).then(|| memory_values(map));
    let matters = |i: usize| values.as_ref().is_none_or(|v| v[i]);
    // Padding bytes of a long double, which belong to no value, are not compared here. The check
    // `pack` reports whether the library keeps them.
    let Some(i) = first_difference(got.data(), want, matters) else { return };
    let at = map.low + i as i64;
    let (kind, class, rule) = if map.mapped[i] { what } else { ("gap", Class::Bug, "gap") };
    let place = if map.mapped[i] { "the byte at displacement" } else { "the gap byte at displacement" };
    let shown = (byte(place, at, want[i]), byte(place, at, got.data()[i]));
    let before = area(map, BEFORE);
    let (got, before, order) = (got.data(), before.data(), Order::Memory(map));
    let compared = Compared { want, got, before, source: want, order };
    report.add_bytes((kind, class, rule), shown, &compared, matters);
}

/// Returns the library's packed stream of all instances and its length. Returns none if the library
/// refuses a call. Also checks that the result of `MPI_Pack_size` is not smaller than the size of
/// the values.
fn packed(
    context: &Context<'_>,
    report: &mut Report<'_>,
    map: &Map,
    from: &Area,
) -> Option<(Vec<u8>, usize)> {
    let (library, count) = (context.library, report.subject.count);
    let t = report.subject.root().handle;
    let bound = match library.pack_size(count, t) {
        Ok(bound) => bound,
        Err(refusal) => {
            report.refused(refusal);
            return None;
        }
    };
    if bound < map.size as i64 {
        let want = format!("MPI_Pack_size gives at least {}", map.size);
        report.add("pack-size", Class::Bug, "pack-size", want, format!("MPI_Pack_size gives {bound}"));
    }
    let mut stream = vec![0xee; (bound.max(map.size as i64)) as usize];
    let mut position = 0;
    if let Err(refusal) = library.pack(from, count, t, &mut stream, &mut position) {
        report.refused(refusal);
        return None;
    }
    Some((stream, position))
}

/// The check `pack`.
pub(super) fn pack(context: &mut Context<'_>, report: &mut Report<'_>, map: &Map) {
    let from = area(map, USER);
    let want = gathered(map, from.data());
    compiled(context, report, map, &from, &want);
    let Some((stream, position)) = packed(context, report, map, &from) else { return };
    let values = (!plain_bytes(map)).then(|| stream_values(map));
    let matters = |i: usize| values.as_ref().is_none_or(|v| v[i]);
    let got = &stream[..position.min(stream.len())];
    let written = |bytes: usize| format!("MPI_Pack writes {bytes} bytes");
    let differs = match got.len() == want.len() {
        false => Some(written(got.len())),
        true => first_difference(got, &want, matters).map(|i| byte("the packed byte", i as i64, got[i])),
    };
    if let Some(shown) = differs {
        let wanted = match got.len() == want.len() {
            true => first_difference(got, &want, matters)
                .map_or(String::new(), |i| byte("the packed byte", i as i64, want[i])),
            false => written(want.len()),
        };
        // If unpacking the unexpected bytes gives the values that were packed, the library only
        // uses another packed format, which is not a bug.
        if comes_back(context, report, map, (&stream, position), &from) {
            report.add("format", Class::Open, "format", wanted, shown);
        } else {
            let order = Order::Stream { from: 0, len: want.len() };
            let compared = Compared { want: &want, got, before: &[], source: from.all(), order };
            report.add_bytes(("packed", Class::Bug, "packed"), (wanted, shown), &compared, matters);
        }
        return;
    }
    if values.is_some() && got != want {
        let text = "the bytes of a long double that hold no value are packed unchanged";
        report.add("padding", Class::Open, "format", text, "other bytes are packed in their place");
    }
    pieces(context, report, map, &from, &stream[..position]);
}

/// Returns the clause that states the position after the last call of `MPI_Pack` or `MPI_Unpack`.
fn at_end(position: usize) -> String {
    format!("the position after the last call is {position}")
}

/// Checks that packing twice in a row, from a position that is not 0, gives the same stream twice.
fn pieces(context: &Context<'_>, report: &mut Report<'_>, map: &Map, from: &Area, whole: &[u8]) {
    let (count, node) = (report.subject.count, report.subject.root());
    // This check packs the same instance twice, so it runs only for a count of 1. With a larger
    // count, the second instance lies one extent after the first in the same area.
    if count != 1 || whole.len() < 2 {
        return;
    }
    let (library, t) = (context.library, node.handle);
    // This buffer gets the packed stream of the datatype twice in a row, after 5 bytes that must
    // stay unchanged.
    let mut stream = vec![0xee; 2 * whole.len() + 5];
    let mut position = 5;
    for _ in 0..2 {
        if let Err(refusal) = library.pack(from, count, t, &mut stream, &mut position) {
            report.refused(refusal);
            return;
        }
    }
    let want = [&[0xee; 5], whole, whole].concat();
    let values = (!plain_bytes(map)).then(|| stream_values(map));
    let matters = |i: usize| i < 5 || values.as_ref().is_none_or(|v| v[(i - 5) % whole.len()]);
    if position != want.len() {
        report.add("position", Class::Bug, "position", at_end(want.len()), at_end(position));
    } else if let Some(i) = first_difference(&stream, &want, matters) {
        let shown = |v: u8| byte("the packed byte", i as i64, v);
        let shown = (shown(want[i]), shown(stream[i]));
        let order = Order::Stream { from: 5, len: whole.len() };
        let compared = Compared { want: &want, got: &stream, before: &[], source: from.all(), order };
        report.add_bytes(("packed-at-position", Class::Bug, "packed"), shown, &compared, matters);
    }
}

/// Returns true if the library unpacks its own packed stream to the values that were packed.
fn comes_back(
    context: &Context<'_>,
    report: &mut Report<'_>,
    map: &Map,
    (stream, end): (&[u8], usize),
    from: &Area,
) -> bool {
    if map.overlaps {
        return comes_flat(context, map, stream, from);
    }
    let mut to = area(map, BEFORE);
    let mut want = to.data().to_vec();
    for &(at, len, _) in &map.entries {
        let at = (at - map.low) as usize;
        want[at..at + len].copy_from_slice(&from.data()[at..at + len]);
    }
    let (mut position, count) = (0, report.subject.count);
    let t = report.subject.root().handle;
    if context.library.unpack(stream, &mut position, &mut to, count, t).is_err() || position != end {
        return false;
    }
    let values = memory_values(map);
    first_difference(to.data(), &want, |i| values[i]).is_none()
}

/// Returns true if unpacking the library's packed stream into memory without gaps gives the right
/// values. This is used for datatypes with overlapping entries, because MPI does not allow
/// unpacking into them. Also returns true if no datatype of the same values without gaps can be
/// made, with which to unpack.
fn comes_flat(context: &Context<'_>, map: &Map, stream: &[u8], from: &Area) -> bool {
    let want = gathered(map, from.data());
    let Some((flat, n, free)) = super::partner::flat(context.library, map) else { return true };
    let mut to = Area::new(0, map.size as i64, 0xa5);
    let mut position = 0;
    let done = context.library.unpack(stream, &mut position, &mut to, n, flat);
    if free {
        let _ = context.library.free(flat);
    }
    let values = stream_values(map);
    done.is_ok() && first_difference(to.data(), &want, |i| values[i]).is_none()
}

/// Checks that compiled code packs what the definition says. A difference here is a fault of ddtc,
/// and not of the library.
fn compiled(context: &mut Context<'_>, report: &mut Report<'_>, map: &Map, from: &Area, want: &[u8]) {
    let t = &report.subject.root().judged;
    let Ok(committed) = context.engine.commit(t) else { return };
    let mut stream = vec![0; map.size];
    let origin = (-map.low) as usize;
    let done = committed.pack(from.data(), origin, report.subject.count, &mut stream);
    context.compiled += 1;
    if done != Ok(map.size) || stream != want {
        report.add(
            "ddtc",
            Class::Bug,
            "packed",
            "compiled code of ddtc packs the bytes of the type map",
            "it packs other bytes, which is a fault of ddtc",
        );
    }
}

/// The check `unpack`.
pub(super) fn unpack(context: &mut Context<'_>, report: &mut Report<'_>, map: &Map) {
    if map.overlaps {
        // Unpacking into overlapping entries is erroneous in MPI, so every result is right.
        return;
    }
    let mut flat = vec![0; map.size];
    patterned(STREAM, &mut flat);
    let (library, count, t) = (context.library, report.subject.count, report.subject.root().handle);
    // The library itself packs the stream that it unpacks below, from the same values stored
    // without gaps.
    let Some(stream) = super::partner::stream(library, map, &flat) else { return };
    let mut to = area(map, BEFORE);
    let mut want = to.data().to_vec();
    scattered(map, &flat, &mut want);
    let mut position = 0;
    if let Err(refusal) = library.unpack(&stream, &mut position, &mut to, count, t) {
        report.refused(refusal);
        return;
    }
    if position != stream.len() {
        report.add("position", Class::Bug, "position", at_end(stream.len()), at_end(position));
    }
    memory(report, map, &to, &want, ("unpacked", Class::Bug, "packed"));
}
