//! Exports for the segments of committed datatypes. Segments are the contiguous pieces of user
//! memory that instances occupy. They are listed as arrays of `struct iovec`.

use std::ffi::c_void;

use ddtc::internal::committed::Committed;
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;
use ddtc::internal::object;
use ddtc::internal::segments::{Segment, Segments};

use crate::arguments::{Out, Type, export, handle, natural, out, output};
use crate::embed::{committed, has_data};

/// Returns `value`, the index of a segment or of a packed byte. Returns an error of class `Arg` if
/// it is negative or larger than `end`, the number of segments or bytes. In the message, `of` says
/// what is counted.
fn up_to(call: &'static str, argument: &'static str, value: i64, end: u64, of: &str) -> Result<u64> {
    u64::try_from(value).ok().filter(|&value| value <= end).ok_or_else(|| {
        Error::new(ErrorClass::Arg, call, argument, value, format!("must be from 0 to the {end} {of}"))
    })
}

/// Returns a maximum number of bytes. The value -1 stands for no limit and gives `u64::MAX`. Any
/// other negative value is an error of class `Arg`.
fn budget(call: &'static str, argument: &'static str, value: i64) -> Result<u64> {
    if value < -1 {
        let rule = "must be -1, which means no limit, or not negative";
        return Err(Error::new(ErrorClass::Arg, call, argument, value, rule));
    }
    Ok(value as u64)
}

/// Returns the segments of `count` instances at address `user`. The count and the span of the
/// instances are checked as for packing.
///
/// # Safety
/// The conditions are those of [`committed`].
unsafe fn placed<'a>(
    call: &'static str,
    pointer: *const Committed,
    user: *const c_void,
    count: i64,
) -> Result<Segments<'a>> {
    // SAFETY: the conditions of `committed` are those that the caller of this function promises.
    let committed = unsafe { committed(call, pointer)? };
    let count = natural(call, "count", count)?;
    has_data(call, committed, user, count)?;
    Ok(committed.segments(count)?.based(user.addr() as i64))
}

/// Returns the segments of `count` instances without an address, for functions that only count
/// segments.
///
/// # Safety
/// The conditions are those of [`committed`].
unsafe fn counted<'a>(call: &'static str, pointer: *const Committed, count: i64) -> Result<Segments<'a>> {
    // SAFETY: the conditions of `committed` are those that the caller of this function promises.
    let committed = unsafe { committed(call, pointer)? };
    committed.segments(natural(call, "count", count)?)
}

/// Calls `ask` with the segments of one instance of a datatype. Fails with class `Type` if the
/// datatype is not committed.
fn one<T>(call: &'static str, datatype: Type, ask: impl FnOnce(Segments<'_>) -> Result<T>) -> Result<T> {
    object::with(call, handle(datatype), |o| {
        let committed = o.committed()?.ok_or_else(|| {
            Error::new(ErrorClass::Type, call, "datatype", handle(datatype), "must be committed")
        })?;
        ask(committed.segments(1)?)
    })?
}

/// Writes the number of whole segments from `index` on that fit in `budget` bytes, and the number
/// of bytes in these segments.
fn within(
    segments: &Segments<'_>,
    index: u64,
    budget: u64,
    (len, bytes): (Out<i64>, Out<i64>),
) -> Result<()> {
    let (n, held) = segments.within(index, budget)?;
    len.set(n as i64);
    bytes.set(held as i64);
    Ok(())
}

export! {
    fn ddtc_type_iov_len(datatype: Type, max_iov_bytes: i64, iov_len: *mut i64, actual_iov_bytes: *mut i64) {
        const CALL: &str = "type_iov_len";
        let places = (out(CALL, "iov_len", iov_len)?, out(CALL, "actual_iov_bytes", actual_iov_bytes)?);
        let budget = budget(CALL, "max_iov_bytes", max_iov_bytes)?;
        one(CALL, datatype, |segments| within(&segments, 0, budget, places))?;
        Ok(())
    }

    fn ddtc_type_iov(
        datatype: Type, iov_offset: i64, iov: *mut Segment, max_iov_len: i64, actual_iov_len: *mut i64,
    ) {
        const CALL: &str = "type_iov";
        let len = out(CALL, "actual_iov_len", actual_iov_len)?;
        let iov = output(CALL, "iov", iov, ("max_iov_len", max_iov_len))?;
        let n = one(CALL, datatype, |segments| {
            let first = up_to(CALL, "iov_offset", iov_offset, segments.len(), "segments")?;
            segments.fill_uninit(first, iov).map(|segments| segments.len())
        })?;
        len.set(n as i64);
        Ok(())
    }

    fn ddtc_committed_segments(
        pointer: *const Committed, user: *const c_void, count: i64, first: i64, iov: *mut Segment, max: i64,
        len: *mut i64,
    ) {
        const CALL: &str = "committed_segments";
        let (len, iov) = (out(CALL, "len", len)?, output(CALL, "iov", iov, ("max", max))?);
        let segments = placed(CALL, pointer, user, count)?;
        let first = up_to(CALL, "first", first, segments.len(), "segments")?;
        len.set(segments.fill_uninit(first, iov)?.len() as i64);
        Ok(())
    }

    fn ddtc_committed_segments_from(
        pointer: *const Committed, user: *const c_void, count: i64, offset: i64, iov: *mut Segment, max: i64,
        len: *mut i64, bytes: *mut i64,
    ) {
        const CALL: &str = "committed_segments_from";
        let (len, bytes) = (out(CALL, "len", len)?, out(CALL, "bytes", bytes)?);
        let iov = output(CALL, "iov", iov, ("max", max))?;
        let segments = placed(CALL, pointer, user, count)?;
        let offset = up_to(CALL, "offset", offset, segments.bytes(), "packed bytes")?;
        let listed = segments.fill_from_uninit(offset, iov)?;
        len.set(listed.len() as i64);
        bytes.set(listed.iter().map(|segment| segment.len).sum::<u64>() as i64);
        Ok(())
    }

    fn ddtc_committed_segments_within(
        pointer: *const Committed, count: i64, first: i64, max_bytes: i64, len: *mut i64, bytes: *mut i64,
    ) {
        const CALL: &str = "committed_segments_within";
        let places = (out(CALL, "len", len)?, out(CALL, "bytes", bytes)?);
        let budget = budget(CALL, "max_bytes", max_bytes)?;
        let segments = counted(CALL, pointer, count)?;
        within(&segments, up_to(CALL, "first", first, segments.len(), "segments")?, budget, places)?;
        Ok(())
    }

    fn ddtc_committed_segment_at(
        pointer: *const Committed, count: i64, offset: i64, index: *mut i64, skip: *mut i64,
    ) {
        const CALL: &str = "committed_segment_at";
        let (index, skip) = (out(CALL, "index", index)?, out(CALL, "skip", skip)?);
        let segments = counted(CALL, pointer, count)?;
        let (found, before) = segments.find(up_to(CALL, "offset", offset, segments.bytes(), "packed bytes")?)?;
        index.set(found as i64);
        skip.set(before as i64);
        Ok(())
    }

    fn ddtc_committed_segment_offset(pointer: *const Committed, count: i64, index: i64, offset: *mut i64) {
        const CALL: &str = "committed_segment_offset";
        let offset = out(CALL, "offset", offset)?;
        let segments = counted(CALL, pointer, count)?;
        offset.set(segments.start(up_to(CALL, "index", index, segments.len(), "segments")?)? as i64);
        Ok(())
    }
}
