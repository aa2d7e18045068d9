//! Times over several places of the buffers, that is, with buffers at several addresses. The time
//! for few bytes depends on which cache lines the buffers share, and the time for many bytes on the
//! pages that hold them.

use ddtc::internal::kind::Direction;

use crate::measure::{Effort, Spread, interleaved};
use crate::native::Subject;

/// Returns the times of one call of each of the variants `timed` of `subject`, for pack and unpack,
/// over `places` places of its buffers.
pub(crate) fn over_places(
    subject: &mut Subject,
    timed: &[usize],
    places: usize,
    effort: Effort,
) -> [Vec<Spread>; 2] {
    let effort = effort.of_a_place(places);
    let mut samples = [(); 2].map(|()| vec![Vec::with_capacity(places); timed.len()]);
    let mut kept = Vec::new();
    for place in 0..places {
        if place > 0 {
            kept.push(subject.relocate(place));
        }
        for direction in Direction::BOTH {
            let medians = interleaved(timed.len(), effort, |i, n| subject.run(timed[i], direction, n));
            let of_all = samples[direction as usize].iter_mut().zip(medians);
            of_all.for_each(|(samples, nanoseconds)| samples.push(nanoseconds));
        }
    }
    samples.map(|mut samples| samples.iter_mut().map(|times| Spread::from_times(times)).collect())
}
