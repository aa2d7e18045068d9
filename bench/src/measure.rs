//! Time of interleaved variants: batches in turn, the median of all batches.
//!
//! Interleaving puts every variant under the same drift of clock and neighbours; the order rotates so that none always
//! follows the same other one. Data are warm as far as they fit the caches: each batch repeats one buffer.

use std::time::{Duration, Instant};

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// A batch repeats its variant until about this time has passed.
    pub(crate) batch: Duration,
    /// Batches of each variant.
    pub(crate) rounds: usize,
    /// Commits that are timed.
    pub(crate) commits: usize,
    /// Places of the buffers of a small layout.
    pub(crate) places: usize,
    /// Most places of the buffers of a large one.
    pub(crate) places_of_large: usize,
}

impl Effort {
    /// For recorded figures.
    pub(crate) const FULL: Effort =
        Effort { batch: Duration::from_micros(400), rounds: 25, commits: 7, places: 20, places_of_large: 5 };
    /// For a look.
    pub(crate) const QUICK: Effort =
        Effort { batch: Duration::from_micros(60), rounds: 7, commits: 3, places: 5, places_of_large: 1 };

    /// Returns in how many places buffers of `bytes` bytes are measured, which are kept until the last one.
    pub(crate) fn places_for(self, small: bool, bytes: usize) -> usize {
        const KEPT: usize = 512 << 20;
        if small { self.places } else { (KEPT / bytes.max(1)).clamp(1, self.places_of_large) }
    }

    /// Returns the effort for one of `places` places: together they take about as many rounds.
    pub(crate) fn of_a_place(self, places: usize) -> Effort {
        Effort { rounds: if places > 1 { self.rounds.div_ceil(places).max(3) } else { self.rounds }, ..self }
    }
}

/// Calls of a batch below which one call goes before it untimed. What one variant leaves in the caches its successor finds, and variants share different things with the one
/// before them: loops in C have their lists in common, compiled code has its own (a list of 350 KB, 0.1 to 0.2 of the time of a call).
const ALONE: u32 = 8;

/// Returns the nanoseconds of one call of each of the variants `0..n`, as the median of their batches. `run(v, times)` calls variant v
/// so many times.
pub(crate) fn interleaved(n: usize, effort: Effort, mut run: impl FnMut(usize, u32)) -> Vec<f64> {
    let mut repeats = vec![1u32; n];
    for (v, repeats) in repeats.iter_mut().enumerate() {
        run(v, 1);
        // Double until a batch is long enough to be timed; the calls also warm caches and branch predictors.
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

/// Returns the median of `samples`, which are sorted by it; NaN if there are none.
pub(crate) fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    match samples.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => samples[n / 2],
        n => (samples[n / 2 - 1] + samples[n / 2]) / 2.0,
    }
}

/// Time over places of the buffers: the middle one, and from where to where all lie but one in ten at either end, which is what else the machine
/// does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) low: f64,
    pub(crate) middle: f64,
    pub(crate) high: f64,
}

impl Spread {
    /// Of at least one time, which it sorts.
    pub(crate) fn of(times: &mut [f64]) -> Spread {
        let middle = median(times);
        let aside = times.len() / 10;
        let end = |i: usize| times.get(i).copied().unwrap_or(f64::NAN);
        Spread { low: end(aside), middle, high: end(times.len().saturating_sub(aside + 1)) }
    }
}

/// Returns the geometric mean of the positive numbers of `values`; NaN if there are none.
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
        assert_eq!(Spread::of(&mut twenty), Spread { low: 3.0, middle: 10.5, high: 18.0 });
        assert_eq!(Spread::of(&mut [7.0]), Spread { low: 7.0, middle: 7.0, high: 7.0 });
    }

    #[test]
    fn a_batch_of_few_calls_has_one_before_it() {
        let effort = Effort { batch: Duration::from_micros(1), rounds: 3, ..Effort::QUICK };
        let mut calls = 0;
        interleaved(2, effort, |_, n| {
            calls += n;
            std::thread::sleep(Duration::from_micros(50));
        });
        // Each variant twice to find how many make a batch: one; then in each of its three turns, untimed and timed.
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
