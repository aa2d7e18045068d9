//! The reference interpreter: packs and unpacks a datatype by iterating over its type map, one
//! basic value at a time. Everything else is tested against it.
//!
//! It follows the definitions of MPI 5.0, sections 5.1 and 5.2: the packed order is the order of
//! the type map, instance after instance. Unpacking assigns in that order, so the last of several
//! overlapping entries wins. The code is slow on purpose. It is safe Rust, and shares no code with
//! lowering or any later stage of the compiler.

#[cfg(feature = "operations")]
pub mod external32;
#[cfg(feature = "operations")]
pub mod reduce;

use std::ops::Range;

use crate::datatype::{Datatype, Named, TypeMap};
use crate::error::{Error, ErrorClass, Result};

/// Calls `f(displacement, length, basic type)` for every entry of the type map of `count`
/// instances, in packing order. Displacement and length are in bytes.
///
/// # Errors
/// Class `ValueTooLarge` if an instance has displacements that do not fit in 64 bits; `f` is not
/// called then.
pub fn for_each(t: &Datatype, count: u64, f: &mut dyn FnMut(i64, usize, Named)) -> Result<()> {
    span(t, count)?;
    for (basic, displacement) in TypeMap::instances(t, count) {
        f(displacement, basic.size() as usize, basic);
    }
    Ok(())
}

/// Returns the segments of user memory that the packed bytes `range` of `count` instances occupy,
/// each as displacement and length in bytes, in packing order. A basic value that begins where the
/// segment before it ends extends that segment. If the range contains only a part of a value, only
/// that part counts. The range must not end before it starts.
///
/// # Errors
/// As [`for_each`], and class `Arg` for a range that ends after the end of the stream.
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

/// Packs `count` instances into the start of `packed`. Displacement 0 of the first instance is
/// `user[origin]`.
///
/// # Errors
/// Class `Truncate` if `packed` is too short; nothing is written then. Otherwise as
/// [`pack_range`].
pub fn pack(t: &Datatype, count: u64, user: &[u8], origin: usize, packed: &mut [u8]) -> Result<()> {
    let total = total(t, count, packed.len())?;
    pack_range(t, count, user, origin, 0, &mut packed[..total])
}

/// Unpacks `count` instances from the start of `packed` into `user`. Displacement 0 of the first
/// instance is `user[origin]`.
///
/// # Errors
/// Class `Truncate` if `packed` is too short; nothing is written then. Otherwise as
/// [`unpack_range`].
pub fn unpack(t: &Datatype, count: u64, packed: &[u8], user: &mut [u8], origin: usize) -> Result<()> {
    let total = total(t, count, packed.len())?;
    unpack_range(t, count, &packed[..total], user, origin, 0)
}

/// Packs bytes `[offset, offset + packed.len())` of the packed stream of `count` instances.
/// Displacement 0 of the first instance is `user[origin]`.
///
/// # Errors
/// Class `ValueTooLarge` if displacements do not fit in 64 bits, class `Buffer` for data outside
/// `user`, and class `Arg` for a range that ends after the end of the stream; nothing is written
/// then. Class `Intern`, after which a part may be written, if an entry of the type map lies
/// outside the true bounds.
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
        let start = buffer_index(origin, from, len, user.len())?;
        packed[at..at + len].copy_from_slice(&user[start..start + len]);
        Ok(())
    })
}

/// Unpacks `packed`, which is bytes `[offset, offset + packed.len())` of the packed stream of
/// `count` instances. Displacement 0 of the first instance is `user[origin]`.
///
/// # Errors
/// As [`pack_range`].
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
        let start = buffer_index(origin, to, len, user.len())?;
        user[start..start + len].copy_from_slice(&packed[at..at + len]);
        Ok(())
    })
}

/// Calls `f(displacement, position in the range, length)` in packing order for the `len` packed
/// bytes from `offset` on, once for each basic value. Values that begin before or end after the
/// range are cut to the part inside.
///
/// # Errors
/// Class `Arg` for a range that ends after the end of the stream, without a call of `f`; and the
/// first error that `f` returns.
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

/// Returns the displacements of the first byte and one past the last byte of the data of all
/// instances, or `None` if there are no data. Returns an error if they do not fit in 64 bits.
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

/// Returns an error unless all data of `count` instances lie inside a buffer of `len` bytes, in
/// which displacement 0 is at index `origin`.
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

/// Returns the number of bytes of the packed stream, or an error if it is more than `len`.
fn total(t: &Datatype, count: u64, len: usize) -> Result<usize> {
    let stream = i128::from(t.size()) * i128::from(count);
    usize::try_from(stream).ok().filter(|&s| s <= len).ok_or_else(|| {
        let rule = format!("must hold the packed stream of {stream} bytes");
        Error::new(ErrorClass::Truncate, "interp", "packed", format!("{len} bytes"), rule)
    })
}

/// Returns the index in the buffer of a piece of `len` bytes at a displacement. The callers have
/// checked by the true bounds, with `inside`, that the data of the whole call lie in the buffer.
/// But the type map is computed independently of the true bounds, so every piece is checked again.
fn buffer_index(origin: usize, displacement: i64, len: usize, buffer: usize) -> Result<usize> {
    let start = origin as i128 + i128::from(displacement);
    if start < 0 || start + len as i128 > buffer as i128 {
        return Err(Error::internal("interp", format!("entry at {displacement} outside the true bounds")));
    }
    Ok(start as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Datatype {
        crate::corpus::datatype(text).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    /// Results that were computed by hand: a datatype, the number of instances, the index of
    /// displacement 0 in a buffer with the bytes 0, 1, 2 and so on, and the packed bytes.
    const PACKED: &[(&str, u64, usize, &[u8])] = &[
        ("short", 2, 1, &[1, 2, 3, 4]),
        ("contiguous(0, int)", 3, 0, &[]),
        ("vector(2, 1, 2, short)", 2, 0, &[0, 1, 4, 5, 6, 7, 10, 11]),
        ("resized(0, 5, short)", 3, 0, &[0, 1, 5, 6, 10, 11]),
        // The order of the packed bytes is that of the type map and not of the addresses, and the
        // extent may be negative.
        ("hindexed([1, 2], [5, 0], short)", 1, 0, &[5, 6, 0, 1, 2, 3]),
        ("resized(0, -2, short)", 3, 6, &[6, 7, 4, 5, 2, 3]),
        ("struct([1, 1], [0, 4], [char, int])", 1, 2, &[2, 6, 7, 8, 9]),
    ];

    #[test]
    fn packs_and_unpacks_by_hand() {
        let user: Vec<u8> = (0..16).collect();
        for &(text, count, origin, expected) in PACKED {
            let t = of(text);
            let mut packed = vec![0xee; expected.len() + 1];
            pack(&t, count, &user, origin, &mut packed).unwrap();
            assert_eq!(packed, [expected, &[0xee]].concat(), "{text}");
            // Unpacking writes the bytes to where they came from, and writes no others.
            let mut back = vec![0xee; 16];
            unpack(&t, count, expected, &mut back, origin).unwrap();
            let wanted = (0..16).map(|b| if expected.contains(&b) { b } else { 0xee });
            assert_eq!(back, wanted.collect::<Vec<u8>>(), "{text}");
            // Packing or unpacking any range of the stream moves just that part.
            for (start, end) in (0..=expected.len()).flat_map(|s| (s..=expected.len()).map(move |e| (s, e))) {
                let mut part = vec![0xee; end - start];
                pack_range(&t, count, &user, origin, start as u64, &mut part).unwrap();
                assert_eq!(part, expected[start..end], "{text} {start}..{end}");
                let mut back = vec![0xee; 16];
                unpack_range(&t, count, &part, &mut back, origin, start as u64).unwrap();
                assert_eq!(back.iter().filter(|&&b| b != 0xee).count(), part.len(), "{text} {start}..{end}");
                assert!(part.iter().all(|&b| back[usize::from(b)] == b), "{text} {start}..{end}");
            }
        }
    }

    #[test]
    fn the_last_of_overlapping_entries_wins() {
        let mut user = [0xee; 5];
        unpack(&of("hvector(3, 1, 1, short)"), 1, &[1, 2, 3, 4, 5, 6], &mut user, 0).unwrap();
        assert_eq!(user, [1, 3, 5, 6, 0xee]);
    }

    #[test]
    fn segments_join_what_touches() {
        let t = of("hindexed([1, 1, 1], [0, 2, 6], short)");
        assert_eq!(segments(&t, 1, 0..6).unwrap(), [(0, 4), (6, 2)]);
        assert_eq!(segments(&t, 1, 1..5).unwrap(), [(1, 3), (6, 1)]);
    }

    #[test]
    fn refusals_write_nothing() {
        let (t, user) = (of("vector(2, 1, 2, short)"), [7; 6]);
        let mut packed = [0xee; 4];
        // Each of these calls must fail. The reasons are, in order: the data end after the user's
        // buffer because of the origin, the same because the buffer is shorter, the packed buffer
        // is too short, the range ends after the stream, displacements do not fit in 64 bits.
        assert!(pack(&t, 1, &user, 1, &mut packed).is_err());
        assert!(pack(&t, 1, &user[..5], 0, &mut packed).is_err());
        assert!(pack(&t, 1, &user, 0, &mut packed[..3]).is_err());
        assert!(pack_range(&t, 1, &user, 0, 1, &mut packed).is_err());
        assert!(for_each(&of("resized(0, 4611686018427387904, int)"), 4, &mut |_, _, _| panic!()).is_err());
        assert_eq!(packed, [0xee; 4]);
        let mut user = [7; 6];
        assert!(unpack(&t, 1, &[1, 2, 3], &mut user, 0).is_err());
        assert!(unpack(&t, 1, &[1, 2, 3, 4], &mut user, 1).is_err());
        assert_eq!(user, [7; 6]);
    }
}
