//! Datatypes that grow level by level, with bounds on what committing them may take: time and
//! memory that are linear in the number of constructor arguments.
//!
//! If a budget inside the compiler forgets something that grows, such as the rows of a table, this
//! shows in two shapes: in chains, where every level adds a little to the level before, and in
//! DAGs, where every level doubles it. The levels are irregular, so that the compiler cannot
//! simplify them.

use std::fs;
use std::time::{Duration, Instant};

use super::case::{Check, Mismatch, ensure};
use super::choices::Choices;
use super::oracle::Oracle;
use super::random::Failure;
use crate::datatype::{Combiner, Datatype, Distribution, Named, Order};
use crate::engine::{Config, Engine};
use crate::error::Result;
use crate::target::Level;

/// Cost of a commit.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Number of constructor arguments of the datatype, summed over its DAG.
    pub arguments: u64,
    /// Time of the commit, including compilation.
    pub time: Duration,
    /// Bytes of the normal nest including its columns, which is the part that stays in memory.
    pub nest: u64,
    /// Maximum number of bytes by which the process grew during the commit, or zero if that was not
    /// measured.
    pub peak: u64,
}

impl Cost {
    /// Returns the maximum number of bytes of a normal nest for a type with this number of
    /// arguments.
    pub fn nest_bound(arguments: u64) -> u64 {
        48 * arguments + (64 << 10)
    }

    /// Returns the maximum number of bytes by which a commit may make the process grow. The
    /// lowered, the partly normalized and the normal nest and their tables may exist at the same
    /// time.
    pub fn peak_bound(arguments: u64) -> u64 {
        1024 * arguments + (32 << 20)
    }

    /// Returns the maximum time of a commit. It allows 20 s and 100 microseconds per argument, for
    /// debug builds on busy machines; a cost that is not linear exceeds it by orders of magnitude.
    pub fn time_bound(arguments: u64) -> Duration {
        Duration::from_secs(20)
            + Duration::from_micros(100).saturating_mul(arguments.try_into().unwrap_or(u32::MAX))
    }
}

/// Returns a datatype of up to `levels` nested levels. A level applies any constructor to the level
/// before, and then usually a struct with an irregular small member. In a chain, every level
/// contains the level before once. In a DAG it may contain that level several times, so the number
/// of leaves is exponential in the number of levels.
pub fn growing(c: &mut Choices<'_>, levels: u64) -> Datatype {
    let (levels, twice) = (1 + c.below(levels), c.chance(128));
    let mut t = Datatype::named(c.pick(&[Named::Int, Named::Char, Named::DoubleInt]));
    if c.chance(64) {
        let places: Vec<i64> = (0..1 + c.below(2000) as i64).map(|i| 9 * i + i % 7 % 3).collect();
        t = Datatype::hindexed_block(1, &places, &t).unwrap_or(t);
    }
    for level in 0..levels as i64 {
        // The growth ends when a size or bound does not fit in 64 bits.
        let Ok(next) = wrapped(c, &t, twice).and_then(|inner| next_to(c, &inner, level, twice)) else {
            break;
        };
        t = next;
    }
    t
}

/// Returns `t` inside one constructor, which contains it once or, if `twice` is true, sometimes
/// twice.
fn wrapped(c: &mut Choices<'_>, t: &Datatype, twice: bool) -> Result<Datatype> {
    let n = if twice { 1 + c.below(2) as i64 } else { 1 };
    let places: Vec<i64> = (0..n).map(|i| i * 3 + c.below(2) as i64).collect();
    let bytes: Vec<i64> = places.iter().map(|p| p.saturating_mul(t.extent())).collect();
    let ones = vec![1; n as usize];
    match c.below(14) {
        0 => Ok(t.dup()),
        1 => Datatype::contiguous(n, t),
        2 => Datatype::vector(n, 1, 2, t),
        3 => Datatype::hvector(n, 1, t.extent().saturating_mul(2), t),
        4 => Datatype::indexed(&ones, &places, t),
        5 => Datatype::hindexed(&ones, &bytes, t),
        6 => Datatype::indexed_block(1, &places, t),
        7 => Datatype::hindexed_block(1, &bytes, t),
        8 => Datatype::structure(&ones, &bytes, &vec![t.clone(); n as usize]),
        9 => Datatype::resized(t.lb(), t.extent().saturating_add(c.below(9) as i64), t),
        10 => Datatype::subarray(&[n + i64::from(twice)], &[n], &[0], Order::C, t),
        11 => Datatype::new(Combiner::Darray {
            size: 1,
            rank: 0,
            gsizes: [n].into(),
            distribs: [Distribution::Block].into(),
            dargs: [None].into(),
            psizes: [1].into(),
            order: Order::Fortran,
            oldtype: t.clone(),
        }),
        _ => Ok(t.clone()),
    }
}

/// Returns a struct of `t` with small members around it, at irregular displacements. If `twice` is
/// true, the struct may contain `t` several times.
fn next_to(c: &mut Choices<'_>, t: &Datatype, level: i64, twice: bool) -> Result<Datatype> {
    let leaf = Datatype::named(c.pick(&[Named::Char, Named::Short, Named::Double]));
    let gap = 1 + c.below(7) as i64;
    let odd = t.true_ub().checked_add(gap + level % 5).unwrap_or(t.true_ub());
    match (c.below(4), twice) {
        (0, false) => Datatype::structure(&[1, 1], &[0, 3], &[leaf, t.clone()]),
        (1, false) => Datatype::structure(&[1, 1], &[0, odd], &[t.clone(), leaf]),
        (2, false) => Datatype::structure(&[2, 1, 1], &[-9, 0, odd], &[leaf.clone(), t.clone(), leaf]),
        (0, true) => Datatype::structure(&[1, 1, 1], &[0, odd, 1], &[t.clone(), leaf, t.clone()]),
        (1, true) => Datatype::structure(&[1, 1], &[0, odd], &[t.clone(), t.clone()]),
        (2, true) => {
            // Several members over one shared child, at distances greater than the true upper bound
            // of that child.
            let n = 2 + c.below(3) as i64;
            let places: Vec<i64> = (0..n).map(|i| odd.saturating_mul(i).saturating_add(i * i)).collect();
            Datatype::structure(&vec![1; n as usize], &places, &vec![t.clone(); n as usize])
        }
        _ => Ok(t.clone()),
    }
}

/// Commits `t` to a new engine and compares the cost with the bounds. If `alone` is true, nothing
/// else allocates in this process. Only then the growth of the process is that of the commit, so
/// only then it is measured.
///
/// # Errors
/// A bound that is exceeded, a fault of the nest, a commit that fails, or, with `alone`, a growth
/// that cannot be measured.
pub fn check_growth(t: &Datatype, alone: bool) -> Check<Cost> {
    let level = Level::detect();
    let engine = Engine::new(Config { level, both_directions: true, ..Config::default() });
    let before = if alone { reset_peak()? } else { 0 };
    let start = Instant::now();
    let committed = engine.commit(t).map_err(Mismatch::error("commit"))?;
    let time = start.elapsed();
    let peak = if alone { resident("VmHWM:")?.saturating_sub(before) } else { 0 };
    let nest = committed.nest();
    nest.verify().map_err(Mismatch::error("normalize"))?;
    let cost = Cost { arguments: t.arguments(), time, nest: nest.bytes_stored() as u64, peak };
    let Cost { arguments, .. } = cost;
    let bound = |what: &'static str, ok: bool| ensure(ok, "growth", || format!("{what}: {cost:?}"));
    bound("bytes of the nest", cost.nest <= Cost::nest_bound(arguments))?;
    bound("growth of the process", peak <= Cost::peak_bound(arguments))?;
    bound("time of the commit", time <= Cost::time_bound(arguments))?;
    Ok(cost)
}

/// Checks `cases` growing datatypes: whether the cost of their commit is within the bounds, and
/// whether the right bytes are moved. Of large datatypes, only the bytes that the engines move are
/// checked. The same seed gives the same datatypes. Returns the number of arguments of all of them.
///
/// # Errors
/// The first failure, shrunk.
pub fn check_growths(cases: u64, seed: u64, alone: bool) -> std::result::Result<u64, Box<Failure>> {
    let levels: Vec<Level> = Level::available().collect();
    let mut oracle = Oracle::new(&levels);
    let mut arguments = 0;
    for case in 0..cases {
        let mut c = Choices::from_seed(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ case);
        let t = growing(&mut c, 150);
        let mut check = || {
            arguments += check_growth(&t, alone)?.arguments;
            if t.size().max(t.true_extent()) <= SMALL {
                return oracle.check(&t, 2, &mut c).map(drop);
            }
            oracle.check_large(&t, 1).map(drop)
        };
        check().map_err(|mismatch| {
            let mut failure = Failure::shrunk(&t, 1, mismatch, &levels);
            failure.origin = Some((seed, case));
            Box::new(failure)
        })?;
    }
    Ok(arguments)
}

/// Maximum size and true extent in bytes of a datatype for which [`check_growths`] evaluates the
/// output of every stage. For larger datatypes only the engines run.
const SMALL: i64 = 64 << 10;

/// Resets the peak of the process's resident memory (writing 5 to clear_refs does so, see proc(5))
/// and returns the number of bytes that are resident now.
fn reset_peak() -> Check<u64> {
    fs::write("/proc/self/clear_refs", "5").map_err(|e| {
        Mismatch::new("growth", format!("/proc/self/clear_refs: {e}: the peak of memory cannot be watched"))
    })?;
    resident("VmRSS:")
}

/// Returns the value of a line of /proc/self/status in bytes.
fn resident(line: &str) -> Check<u64> {
    let unread = || Mismatch::new("growth", format!("/proc/self/status has no {line}"));
    let status = fs::read_to_string("/proc/self/status").map_err(|_| unread())?;
    let line = status.lines().find_map(|l| l.strip_prefix(line)).ok_or_else(unread)?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().map_err(|_| unread())?;
    Ok(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_grows_is_paid() {
        check_growths(60, 1, false).unwrap_or_else(|failure| panic!("{failure}"));
    }
}
