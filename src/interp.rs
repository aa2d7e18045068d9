//! The oracle: packs and unpacks by walking the type map, one basic value at a time.
//!
//! By definition (MPI 5.0 sections 5.1 and 5.2): packed order is type-map order, instance after instance; unpacking assigns in
//! that order, so the last of overlapping entries wins. Slow on purpose, in safe code, and without a line in common with
//! lowering or anything behind it.

pub mod external32;
pub mod reduce;

use std::ops::Range;

use crate::datatype::{Datatype, Named, TypeMap};
use crate::error::{Error, ErrorClass, Result};

/// Calls `f(displacement, length, basic type)` for every entry of `count` instances in packing order, in bytes.
///
/// # Errors
/// An instance that reaches beyond 64-bit displacements; `f` is not called then.
pub fn for_each(t: &Datatype, count: u64, f: &mut dyn FnMut(i64, usize, Named)) -> Result<()> {
    span(t, count)?;
    for (basic, displacement) in TypeMap::instances(t, count) {
        f(displacement, basic.size() as usize, basic);
    }
    Ok(())
}

/// The segments of packed bytes `range` of `count` instances, as displacement and length: every basic value, joined with those before it that
/// it lies just behind of. Those that the range begins or ends in are cut.
///
/// # Errors
/// As [`for_each`], and for a range past the end of the stream.
pub fn segments(t: &Datatype, count: u64, range: Range<u64>) -> Result<Vec<(i64, u64)>> {
    span(t, count)?;
    let mut list: Vec<(i64, u64)> = Vec::new();
    pieces(t, count, range.start, (range.end - range.start) as usize, &mut |displacement, _, len| {
        match list.last_mut() {
            Some((at, bytes)) if at.wrapping_add(*bytes as i64) == displacement => *bytes += len as u64,
            _ => list.push((displacement, len as u64)),
        }
        Ok(())
    })?;
    Ok(list)
}

/// Packs `count` instances whose displacement 0 is `user[origin]` into the start of `packed`.
///
/// # Errors
/// `packed` too short, or data outside `user`; nothing is written then.
pub fn pack(t: &Datatype, count: u64, user: &[u8], origin: usize, packed: &mut [u8]) -> Result<()> {
    let total = total(t, count, packed.len())?;
    pack_range(t, count, user, origin, 0, &mut packed[..total])
}

/// Unpacks `count` instances from the start of `packed` into `user`, displacement 0 at `user[origin]`.
///
/// # Errors
/// As [`pack`]; nothing is written then.
pub fn unpack(t: &Datatype, count: u64, packed: &[u8], user: &mut [u8], origin: usize) -> Result<()> {
    let total = total(t, count, packed.len())?;
    unpack_range(t, count, &packed[..total], user, origin, 0)
}

/// Packs bytes `[offset, offset + packed.len())` of the packed stream of `count` instances.
///
/// # Errors
/// A range past the end of the stream, or data outside `user`; nothing is written then.
pub fn pack_range(
    t: &Datatype,
    count: u64,
    user: &[u8],
    origin: usize,
    offset: u64,
    packed: &mut [u8],
) -> Result<()> {
    inside(t, count, user.len(), origin)?;
    pieces(t, count, offset, packed.len(), &mut |from, at, len| {
        let start = place(origin, from, len, user.len())?;
        packed[at..at + len].copy_from_slice(&user[start..start + len]);
        Ok(())
    })
}

/// Unpacks `packed`, which is bytes `[offset, offset + packed.len())` of the packed stream of `count` instances.
///
/// # Errors
/// As [`pack_range`]; nothing is written then.
pub fn unpack_range(
    t: &Datatype,
    count: u64,
    packed: &[u8],
    user: &mut [u8],
    origin: usize,
    offset: u64,
) -> Result<()> {
    inside(t, count, user.len(), origin)?;
    pieces(t, count, offset, packed.len(), &mut |to, at, len| {
        let start = place(origin, to, len, user.len())?;
        user[start..start + len].copy_from_slice(&packed[at..at + len]);
        Ok(())
    })
}

/// `f(displacement, position in the range, length)` for the entries of a range of the packed stream.
pub fn pieces(
    t: &Datatype,
    count: u64,
    offset: u64,
    len: usize,
    f: &mut dyn FnMut(i64, usize, usize) -> Result<()>,
) -> Result<()> {
    let stream = i128::from(t.size()) * i128::from(count);
    if i128::from(offset) + len as i128 > stream {
        let rule = format!("must lie inside the packed stream of {stream} bytes");
        return Err(Error::new(ErrorClass::Arg, "interp", "range", format!("{offset} + {len}"), rule));
    }
    if len == 0 {
        return Ok(());
    }
    let mut map = TypeMap::instances(t, count);
    let mut inside = map.skip_bytes(offset) as usize;
    let mut at = 0;
    for (basic, displacement) in map {
        let piece = (basic.size() as usize - inside).min(len - at);
        f(displacement.wrapping_add(inside as i64), at, piece)?;
        (at, inside) = (at + piece, 0);
        if at == len {
            break;
        }
    }
    Ok(())
}

/// Displacements of the first byte and after the last byte of data of all instances; `None` without data.
fn span(t: &Datatype, count: u64) -> Result<Option<(i64, i64)>> {
    if count == 0 || t.size() == 0 {
        return Ok(None);
    }
    let last = i128::from(count - 1).checked_mul(i128::from(t.extent()));
    let ends =
        last.map(|last| (i128::from(t.true_lb()) + last.min(0), i128::from(t.true_ub()) + last.max(0)));
    match ends.map(|(low, high)| (i64::try_from(low), i64::try_from(high))) {
        Some((Ok(low), Ok(high))) => Ok(Some((low, high))),
        _ => Err(Error::new(
            ErrorClass::ValueTooLarge,
            "interp",
            "count",
            count,
            "displacements of all instances must fit in 64 bits",
        )),
    }
}

fn inside(t: &Datatype, count: u64, len: usize, origin: usize) -> Result<()> {
    let Some((low, high)) = span(t, count)? else { return Ok(()) };
    let origin_wide = origin as i128;
    if origin_wide + i128::from(low) < 0 || origin_wide + i128::from(high) > len as i128 {
        let rule =
            format!("data from {low} to {high} around the origin must lie inside the buffer of {len} bytes");
        return Err(Error::new(ErrorClass::Buffer, "interp", "origin", origin, rule));
    }
    Ok(())
}

fn total(t: &Datatype, count: u64, len: usize) -> Result<usize> {
    let stream = i128::from(t.size()) * i128::from(count);
    usize::try_from(stream).ok().filter(|&s| s <= len).ok_or_else(|| {
        let rule = format!("must hold the packed stream of {stream} bytes");
        Error::new(ErrorClass::Truncate, "interp", "packed", format!("{len} bytes"), rule)
    })
}

/// Index of a displacement; the whole piece is inside by `inside`, checked again because the type map is computed apart.
fn place(origin: usize, displacement: i64, len: usize, buffer: usize) -> Result<usize> {
    let start = origin as i128 + i128::from(displacement);
    if start < 0 || start + len as i128 > buffer as i128 {
        return Err(Error::internal("interp", format!("entry at {displacement} outside the true bounds")));
    }
    Ok(start as usize)
}
