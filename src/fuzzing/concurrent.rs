//! Threads that use one engine at the same time: each thread commits, packs, unpacks and drops
//! datatypes, and copies from one to another. A stream of choices decides what each thread does
//! next.
//!
//! The cache is smaller than what the threads use, so layouts are dropped and compiled again often.
//! The result of every call is checked.

use super::case::{Case, Check, Mismatch};
use super::choices::Choices;
use super::direct;
use super::generate::{Budget, datatype};
use super::guard::noted;
use crate::committed::Committed;
use crate::engine::{Config, Engine, Mode};
use crate::target::Level;

const THREADS: usize = 3;
/// Upper bound, exclusive, of the number of operations of one thread.
const STEPS: u64 = 24;

/// Runs a few threads on one engine.
///
/// # Errors
/// A call whose bytes differ from the definition, a panic, or a fallback to the interpreter of
/// nests.
pub fn check_cache(c: &mut Choices<'_>) -> Result<(), Mismatch> {
    let cases: Vec<Case> = (0..1 + c.below(6))
        .map(|_| {
            let t = datatype(c, &Budget::small());
            Case::new(&t, c.below(3))
        })
        .collect::<Check<_>>()?;
    let config = Config {
        mode: c.pick(&[Mode::Commit, Mode::Lazy]),
        level: c.pick(&Level::available().collect::<Vec<_>>()),
        precompiled: c.chance(128),
        lazy_threshold: c.below(2000),
        cache_bytes: c.below(20_000) as usize,
        ..Config::default()
    };
    let engine = Engine::new(config);
    let seeds: Vec<u64> = (0..THREADS).map(|_| c.word()).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = seeds
            .into_iter()
            .map(|seed| {
                let (engine, cases) = (&engine, &cases);
                scope.spawn(move || work(engine, cases, Choices::from_seed(seed)))
            })
            .collect();
        let panicked = |_| Mismatch::new("cache", "a thread panicked");
        threads.into_iter().try_for_each(|t| t.join().map_err(panicked)?)
    })?;
    match engine.counters().fallbacks {
        0 => Ok(()),
        n => Err(Mismatch::new("cache", format!("{n} compiles failed"))),
    }
}

/// Work of one thread: commits one of the cases at a time and checks it, sometimes with a copy to
/// another case.
fn work(engine: &Engine, cases: &[Case], mut c: Choices<'_>) -> Check {
    // Committed types that the thread keeps for a while, each with the index of its case.
    let mut held: Vec<(usize, Committed)> = Vec::new();
    for _ in 0..c.below(STEPS) {
        let i = c.below(cases.len() as u64) as usize;
        let known = held.iter().find(|(k, _)| *k == i).map(|(_, committed)| committed.clone());
        let committed = match known {
            Some(committed) => committed,
            None => engine.commit(cases[i].datatype()).map_err(Mismatch::error("commit"))?,
        };
        noted(&cases[i].datatype().to_string(), || cases[i].slices(&committed))?;
        if c.chance(96) {
            let j = c.below(cases.len() as u64) as usize;
            let to = engine.commit(cases[j].datatype()).map_err(Mismatch::error("commit"))?;
            direct::copies((&cases[i], &committed), (&cases[j], &to))?;
        }
        match c.below(3) {
            0 => held.push((i, committed)),
            1 => held.retain(|(k, _)| *k != i),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_a_small_cache() {
        for seed in 0..40 {
            check_cache(&mut Choices::from_seed(seed)).unwrap_or_else(|m| panic!("seed {seed}: {m}"));
        }
    }
}
