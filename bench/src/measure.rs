//! Times of several variants of the same work, for example several ways to pack a layout. Their
//! batches take turns, and the median of all batches of a variant counts.
//!
//! Interleaving exposes all variants to the same drift of the clock and of other work on the
//! machine. The order rotates, so that no variant always follows the same other one. Data are warm
//! as far as they fit the caches, since each batch repeats calls on one buffer.

use std::time::{Duration, Instant};

/// Extent of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Approximate time of a batch, in which one variant is called until this time has passed.
    pub(crate) batch: Duration,
    /// Number of batches for each variant.
    pub(crate) rounds: usize,
    /// Number of commits that are timed.
    pub(crate) commits: usize,
    /// Number of different addresses (places) of its buffers at which a small layout is measured.
    pub(crate) places: usize,
    /// Maximum number of different addresses (places) of its buffers at which a large layout is
    /// measured.
    pub(crate) places_of_large: usize,
}

impl Effort {
    /// Effort for recorded times.
    pub(crate) const FULL: Effort =
        Effort { batch: Duration::from_micros(400), rounds: 25, commits: 7, places: 20, places_of_large: 5 };
    /// Effort for a quick look.
    pub(crate) const QUICK: Effort =
        Effort { batch: Duration::from_micros(60), rounds: 7, commits: 3, places: 5, places_of_large: 1 };

    /// Returns the number of places at which a layout with buffers of `bytes` bytes is measured.
    /// Small layouts have `places` places. The buffers of all places are kept until the last place
    /// is measured. So large layouts have only as many places as fit in 512 MiB together, at least
    /// one and at most `places_of_large`.
    pub(crate) fn places_for(self, small: bool, bytes: usize) -> usize {
        const KEPT: usize = 512 << 20;
        if small { self.places } else { (KEPT / bytes.max(1)).clamp(1, self.places_of_large) }
    }

    /// Returns the effort for each place of the buffers if a layout is measured at `places` places.
    /// The rounds of `self` are divided among the places, but if there are several, each has at
    /// least three rounds.
    pub(crate) fn of_a_place(self, places: usize) -> Effort {
        Effort { rounds: if places > 1 { self.rounds.div_ceil(places).max(3) } else { self.rounds }, ..self }
    }
}

/// A batch with fewer calls than this begins with one additional call that is not timed. Otherwise
/// the time of the batch would depend on what the batch before it left in the caches. For example,
/// a C loop that runs after another C loop finds its index lists in the cache, but compiled code
/// does not, because it has lists of its own. For a list of 350 KB this made 0.1 to 0.2 of the time
/// of a call.
const ALONE: u32 = 8;

/// Returns the nanoseconds of one call of each of the variants `0..n`, as medians of their batches.
/// `run(v, times)` must call variant `v` `times` times.
pub(crate) fn interleaved(n: usize, effort: Effort, mut run: impl FnMut(usize, u32)) -> Vec<f64> {
    let mut repeats = vec![1u32; n];
    for (v, repeats) in repeats.iter_mut().enumerate() {
        run(v, 1);
        // Double the number of calls in a batch until the batch is long enough to be timed. These
        // calls also warm up caches and branch predictors.
        loop {
            let time = timed(|| run(v, *repeats));
            if time * 2 >= effort.batch || *repeats >= 1 << 24 {
                let per_call = time.as_secs_f64() / f64::from(*repeats);
                *repeats = (effort.batch.as_secs_f64() / per_call.max(1e-10))
                    .clamp(1.0, f64::from(1u32 << 24)) as u32;
                break;
            }
            *repeats *= 2;
        }
    }
    // The batches of the variants take turns. Each round, which has one batch of each variant,
    // begins with a different variant.
    let mut samples = vec![Vec::with_capacity(effort.rounds); n];
    for round in 0..effort.rounds {
        for turn in 0..n {
            let v = (turn + round) % n;
            if repeats[v] < ALONE {
                run(v, 1);
            }
            let time = timed(|| run(v, repeats[v]));
            samples[v].push(time.as_secs_f64() * 1e9 / f64::from(repeats[v]));
        }
    }
    samples.iter_mut().map(|s| median(s)).collect()
}

fn timed(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

/// Returns the median of `samples`, and sorts them. Returns NaN if there are none.
pub(crate) fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    match samples.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => samples[n / 2],
        n => (samples[n / 2 - 1] + samples[n / 2]) / 2.0,
    }
}

/// The times of one variant at several places of the buffers: their median, and their range without
/// the lowest and the highest tenth. The times that are left out may be due to other work of the
/// machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) low: f64,
    pub(crate) middle: f64,
    pub(crate) high: f64,
}

impl Spread {
    /// Returns the median and the range of `times`, which it sorts. If there are no times, both are
    /// NaN.
    pub(crate) fn from_times(times: &mut [f64]) -> Spread {
        let middle = median(times);
        let aside = times.len() / 10;
        let end = |i: usize| times.get(i).copied().unwrap_or(f64::NAN);
        Spread { low: end(aside), middle, high: end(times.len().saturating_sub(aside + 1)) }
    }
}

/// Returns the geometric mean of the finite positive numbers in `values`, or NaN if there are none.
pub(crate) fn geometric_mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut n) = (0.0, 0u32);
    for value in values.into_iter().filter(|v| v.is_finite() && *v > 0.0) {
        sum += value.ln();
        n += 1;
    }
    if n == 0 { f64::NAN } else { (sum / f64::from(n)).exp() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middle_values() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&mut []).is_nan());
        assert!((geometric_mean([1.0, 4.0, f64::NAN]) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn spreads_by_hand() {
        let mut twenty: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        assert_eq!(Spread::from_times(&mut twenty), Spread { low: 3.0, middle: 10.5, high: 18.0 });
        assert_eq!(Spread::from_times(&mut [7.0]), Spread { low: 7.0, middle: 7.0, high: 7.0 });
    }

    #[test]
    fn a_batch_of_few_calls_has_one_before_it() {
        let effort = Effort { batch: Duration::from_micros(1), rounds: 3, ..Effort::QUICK };
        let mut calls = 0;
        interleaved(2, effort, |_, n| {
            calls += n;
            std::thread::sleep(Duration::from_micros(50));
        });
        // A variant is called twice before the rounds, to find that a batch needs only one call.
        // Then each of the three rounds calls it once without timing it and once in the timed
        // batch.
        assert_eq!(calls, 2 * (2 + 3 * 2));
    }

    #[test]
    fn every_variant_runs_and_in_turn() {
        let effort = Effort { batch: Duration::from_micros(1), rounds: 3, ..Effort::QUICK };
        let mut seen = Vec::new();
        let times = interleaved(3, effort, |v, _| seen.push(v));
        assert_eq!(times.len(), 3);
        seen.dedup();
        assert!(seen.ends_with(&[0, 1, 2, 1, 2, 0, 2, 0, 1]), "{seen:?}");
    }
}
