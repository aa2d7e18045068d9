//! Ranges of the handles of named types, for MPI libraries whose handles are addresses of objects.
//! The handle of a derived type lies in none of these ranges.

use ddtc::internal::datatype::Named;

use crate::loader;

/// Range that contains no handle of a type. A range is the first handle and the distance from it to
/// the last handle.
pub(crate) const NO_RANGE: (u64, u64) = (u64::MAX, 0);

/// Returns two ranges of handles of named types. Each range is the first handle and the distance
/// from it to the last handle. If fewer than two ranges are found, [`NO_RANGE`] takes the place of
/// each missing range. `named` must be sorted by handle, and the handles must be addresses of
/// objects: those of the MPI library, or copies of some of them in the program (copy relocations).
///
/// Each range reaches from the first to the last of these handles in one segment of a loaded
/// object. If there are more than two such segments, those with the most handles are taken. Derived
/// types are made in allocated memory, which lies in no segment, so no handle of a derived type is
/// in a range.
pub(crate) fn within_segments(named: &[(u64, Named)]) -> [(u64, u64); 2] {
    let mut ranges: Vec<(usize, (u64, u64))> = Vec::new();
    for segment in loader::segments() {
        let before = |address| named.partition_point(|&(handle, _)| handle < address);
        let handles = &named[before(segment.start)..before(segment.end)];
        if let (Some(&(first, _)), Some(&(last, _))) = (handles.first(), handles.last()) {
            ranges.push((handles.len(), (first, last - first)));
        }
    }
    ranges.sort_unstable_by_key(|&(count, _)| std::cmp::Reverse(count));
    let mut ranges = ranges.into_iter().map(|(_, range)| range);
    std::array::from_fn(|_| ranges.next().unwrap_or(NO_RANGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_types_in_a_segment_are_a_range_and_allocated_memory_is_in_none() {
        static OBJECTS: [u64; 64] = [1; 64];
        let named: Vec<_> =
            OBJECTS[3..60].iter().map(|o| (std::ptr::from_ref(o) as u64, Named::Int)).collect();
        let ranges = within_segments(&named);
        let is_named = |handle: u64| ranges.iter().any(|&(first, span)| handle.wrapping_sub(first) <= span);
        assert!(named.iter().all(|&(handle, _)| is_named(handle)));
        let (large, small) = (Box::new([0u64; 1 << 16]), Box::new(0u64));
        let others = [
            &raw const large[0],
            &raw const *small,
            &raw const OBJECTS[2],
            &raw const OBJECTS[60],
            std::ptr::null(),
        ];
        assert!(!others.iter().any(|other| is_named(other.addr() as u64)));
        // All these objects lie in one segment, so only one range is found. A named type in
        // allocated memory gives no range.
        assert_eq!(ranges, [(named[0].0, named[named.len() - 1].0 - named[0].0), NO_RANGE]);
        assert_eq!(within_segments(&[(small.as_ref() as *const u64 as u64, Named::Int)]), [NO_RANGE; 2]);
    }
}
