//! The fuzz targets: what each does with its bytes. `fuzz/` and the test that replays its regressions call these.

use std::cell::RefCell;

use super::{
    Budget, Choices, Compilers, Failure, Oracle, check_cache, check_growth, check_hostile, check_stages,
    check_text, check_wire, datatype, growing, instances,
};
use crate::target::Level;

/// Runs one input of a target: panics on a finding.
pub type Target = fn(&[u8]);

/// Name and function of every target.
pub const TARGETS: [(&str, Target); 8] = [
    ("parse", parse),
    ("hostile", hostile),
    ("engines", engines),
    ("stages", stages),
    ("kernels", kernels),
    ("ranges", ranges),
    ("cache", cache),
    ("wire", wire),
];

thread_local! {
    static ORACLE: RefCell<Oracle> = RefCell::new(Oracle::new(&levels()));
    static COMPILERS: RefCell<Compilers> = RefCell::default();
}

fn levels() -> Vec<Level> {
    Level::available().collect()
}

/// Any text is read or refused with an error; what was read prints as text that reads the same.
pub fn parse(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        check_text(text).unwrap_or_else(|mismatch| panic!("{mismatch}"));
    }
}

/// Hosts whose envelopes and contents lie end in an error or a datatype, in bounded time, with every handle released. Honest ones whose
/// types grow by chains and DAGs are committed in time and memory that is linear in the arguments.
pub fn hostile(data: &[u8]) {
    let mut c = Choices::from_bytes(data);
    let checked = match c.chance(64) {
        // A fuzzer's process has nothing else to do, so what it grows by is the commit's.
        true => check_growth(&growing(&mut c, 200), cfg!(fuzzing)).map(drop),
        false => check_hostile(&mut c),
    };
    checked.unwrap_or_else(|mismatch| panic!("{mismatch}"));
}

/// Every stage and every engine against the type map: compiled, walked, whole and in ranges, between guard pages.
pub fn engines(data: &[u8]) {
    let mut c = Choices::from_bytes(data);
    let t = datatype(&mut c, &Budget::small());
    let count = instances(&mut c);
    if let Err(mismatch) = ORACLE.with_borrow_mut(|oracle| oracle.check(&t, count, &mut c)) {
        panic!("{}", Failure::shrunk(&t, count, mismatch, &levels()));
    }
}

/// Cases that an input of [`stages`] and of [`kernels`] stands for: itself, and others that differ from it in one byte, the same ones every time. A fuzzer
/// spends three times as long on what it learns of an input as such a case takes.
const CASES: [u64; 2] = [16, 4];

fn neighbours(data: &[u8], cases: u64, case: impl Fn(&[u8])) {
    case(data);
    let mut bytes = data.to_vec();
    let hash =
        data.iter().fold(0, |hash: u64, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut c = Choices::from_seed(hash);
    for _ in 1..if data.is_empty() { 1 } else { cases } {
        let at = c.below(data.len() as u64) as usize;
        let old = std::mem::replace(&mut bytes[at], c.byte());
        case(&bytes);
        bytes[at] = old;
    }
}

/// Small datatypes through the stages, by evaluation against the type map: nothing is compiled, so there are many.
pub fn stages(data: &[u8]) {
    neighbours(data, CASES[0], |data| {
        let mut c = Choices::from_bytes(data);
        let t = datatype(&mut c, &Budget::tiny());
        let count = instances(&mut c).min(3);
        check_stages(&t, count, &mut c).unwrap_or_else(|mismatch| panic!("{count} of {t}\n{mismatch}"));
    });
}

/// Small datatypes compiled by one compiler, in both directions, whole and in two pieces, between guard pages.
pub fn kernels(data: &[u8]) {
    neighbours(data, CASES[1], |data| {
        let mut c = Choices::from_bytes(data);
        let budget = if c.chance(64) { Budget::small() } else { Budget::tiny() };
        let t = datatype(&mut c, &budget);
        let count = instances(&mut c).min(17);
        let checked = COMPILERS.with_borrow_mut(|compilers| compilers.check(&t, count, &mut c));
        checked.unwrap_or_else(|mismatch| panic!("{count} of {t}\n{mismatch}"));
    });
}

/// Any pieces of the packed stream, in any order, overlapping or not.
pub fn ranges(data: &[u8]) {
    let mut c = Choices::from_bytes(data);
    let t = datatype(&mut c, &Budget::default());
    let count = instances(&mut c).min(3);
    let checked = ORACLE.with_borrow_mut(|oracle| oracle.check_ranges(&t, count, &mut c));
    checked.unwrap_or_else(|mismatch| panic!("{count} of {t}\n{mismatch}"));
}

/// Threads that commit, use and drop the same few datatypes in a cache too small for them.
pub fn cache(data: &[u8]) {
    check_cache(&mut Choices::from_bytes(data)).unwrap_or_else(|mismatch| panic!("{mismatch}"));
}

/// Any bytes, changed forms and random datatypes: read or refused, and what was read is written and read as itself.
pub fn wire(data: &[u8]) {
    check_wire(data).unwrap_or_else(|mismatch| panic!("{mismatch}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_takes_any_bytes() {
        for (name, target) in TARGETS {
            for seed in 0..60 {
                let mut c = Choices::from_seed(seed);
                let data: Vec<u8> = (0..c.below(300)).map(|_| c.byte()).collect();
                println!("{name} {data:?}");
                target(&data);
            }
        }
    }
}
