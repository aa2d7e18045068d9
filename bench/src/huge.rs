//! Huge packs, with payloads larger than every cache: by one thread and by two, with plain and with
//! streaming stores.
//!
//! The process is not pinned, since two threads need two cores. A second thread cannot make packing
//! faster by more than it makes memcpy faster. So memcpy of the payload is measured too, by one
//! thread and by two, for comparison.

use std::error::Error;
use std::fmt::Write as _;
use std::time::Duration;

use ddtc::internal::committed::Committed;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine};
use ddtc::internal::target::Level;

use crate::measure::{Effort, interleaved};

/// Returns layouts with a payload of `bytes`.
fn layouts(bytes: i64) -> [(&'static str, String); 3] {
    [
        ("64 B by 128", format!("hvector({}, 64, 128, char)", bytes / 64)),
        ("4 KiB by 8 KiB", format!("hvector({}, 4096, 8192, char)", bytes / 4096)),
        ("8 B by 16", format!("hvector({}, 1, 16, double)", bytes / 8)),
    ]
}

/// Fills `target` with the first bytes of `source` by memcpy. If `two` is true, two threads copy
/// one half each.
fn copy(target: &mut [u8], source: &[u8], two: bool) {
    let source = &source[..target.len()];
    if !two {
        return target.copy_from_slice(source);
    }
    let half = target.len() / 2;
    let (low, high) = target.split_at_mut(half);
    std::thread::scope(|scope| {
        scope.spawn(|| high.copy_from_slice(&source[half..]));
        low.copy_from_slice(&source[..half]);
    });
}

/// Measures all layouts, prints a table and returns the record.
///
/// # Errors
/// Returns the errors of commits, or an error if the bytes of two variants differ.
pub(crate) fn run(level: Level, quick: bool) -> Result<String, Box<dyn Error>> {
    let payload: usize = if quick { 8 << 20 } else { 256 << 20 };
    let rounds = if quick { 3 } else { 11 };
    let effort = Effort { batch: Duration::from_nanos(1), rounds, ..Effort::QUICK };
    let config = |threads, stream_bytes| Config {
        level,
        threads,
        stream_bytes,
        parallel_bytes: 1 << 20,
        ..Config::default()
    };
    // Four engines commit the same layout, one for each combination of one or two threads with
    // plain or streaming stores. The payload is above all thresholds, so the settings always take
    // effect.
    let engines = [
        ("pack", config(1, u64::MAX)),
        ("streamed", config(1, 1 << 20)),
        ("two threads", config(2, u64::MAX)),
        ("two threads, streamed", config(2, 1 << 20)),
    ]
    .map(|(name, config)| (name, Engine::new(config)));
    let source: Vec<u8> = (0..2 * payload).map(|i| (i / 61) as u8).collect();
    let mut target = vec![0u8; payload];
    let mut csv = String::from("layout,payload_bytes,variant,nanoseconds,gb_per_s\n");
    println!("{:16} {:24} {:>8} {:>14}", "layout", "variant", "GB/s", "over one pack");
    // Every engine must pack the same bytes as the first one. After that the four engines and the
    // two memcpys, by one thread and by two, take turns.
    for (name, text) in layouts(payload as i64) {
        let t: Datatype = text.parse()?;
        let kernels: Vec<Committed> =
            engines.iter().map(|(_, e)| e.commit(&t)).collect::<ddtc::Result<_>>()?;
        let mut expected = vec![0u8; payload];
        kernels[0].pack(&source, 0, 1, &mut expected)?;
        for (kernel, (variant, _)) in kernels.iter().zip(&engines) {
            target.fill(0);
            kernel.pack(&source, 0, 1, &mut target)?;
            if target != expected {
                return Err(format!("{name}, {variant}: the packed bytes differ").into());
            }
        }
        let mut failed = None;
        let times = interleaved(kernels.len() + 2, effort, |v, times| {
            for _ in 0..times {
                match kernels.get(v) {
                    Some(kernel) => failed = kernel.pack(&source, 0, 1, &mut target).err().or(failed.take()),
                    None => copy(&mut target, &source, v > kernels.len()),
                }
            }
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        let names = engines.iter().map(|(n, _)| *n).chain(["memcpy", "memcpy, two threads"]);
        for (variant, time) in names.zip(&times) {
            let rate = payload as f64 / time;
            println!("{name:16} {variant:24} {rate:>8.2} {:>14.2}", times[0] / time);
            let _ = writeln!(csv, "{name},{payload},\"{variant}\",{time:.0},{rate:.3}");
        }
    }
    Ok(csv)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_make_the_whole() {
        let source: Vec<u8> = (0..=100).collect();
        for two in [false, true] {
            let mut target = vec![0; 77];
            copy(&mut target, &source, two);
            assert!(target == source[..77]);
        }
    }

    #[test]
    fn layouts_have_the_payload() {
        for (_, text) in layouts(8 << 20) {
            let t: Datatype = text.parse().unwrap();
            assert_eq!((t.size(), t.true_ub() <= 16 << 20), (8 << 20, true));
        }
    }
}
