//! The fuzz targets: functions that check one input, given as bytes. The folder `fuzz/` and the
//! test that repeats earlier findings call them.

use std::cell::RefCell;

use super::{
    Budget, Choices, Compilers, Failure, Oracle, check_cache, check_growth, check_hostile, check_stages,
    check_text, check_wire, datatype, growing, instances,
};
use crate::target::Level;

/// Function that runs one input of a target and panics if it finds a fault.
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

/// Checks that any text is read or refused with an error, and that what was read prints as text
/// that can be read again.
pub fn parse(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        check_text(text).unwrap_or_else(|mismatch| panic!("{mismatch}"));
    }
}

/// Checks that decoding ends, with an error or with a datatype, in bounded time and with every
/// handle released, if the MPI library answers wrongly. For some inputs, instead checks that types
/// which grow by chains and DAGs are committed in time and memory that is linear in their
/// arguments.
pub fn hostile(data: &[u8]) {
    let mut c = Choices::from_bytes(data);
    let checked = match c.chance(64) {
        // The process of a fuzzer (`cfg!(fuzzing)`) does nothing else at the same time. So only the
        // commit makes it grow, and its growth can be measured.
        true => check_growth(&growing(&mut c, 200), cfg!(fuzzing)).map(drop),
        false => check_hostile(&mut c),
    };
    checked.unwrap_or_else(|mismatch| panic!("{mismatch}"));
}

/// Checks every stage and every engine against the type map: compiled and interpreted, whole and in
/// ranges, between inaccessible pages.
pub fn engines(data: &[u8]) {
    let mut c = Choices::from_bytes(data);
    let t = datatype(&mut c, &Budget::small());
    let count = instances(&mut c);
    if let Err(mismatch) = ORACLE.with_borrow_mut(|oracle| oracle.check(&t, count, &mut c)) {
        panic!("{}", Failure::shrunk(&t, count, mismatch, &levels()));
    }
}

/// Number of cases for each input of [`stages`] and of [`kernels`]: the input itself, and others
/// that differ from it in one byte and are the same every time. One input stands for several cases
/// because the fuzzer's own work for an input takes three times as long as one case.
const CASES: [u64; 2] = [16, 4];

/// Calls `case` with the input and with `cases - 1` inputs that each differ from it in one byte.
/// The hash of the input determines them. An empty input has no neighbours.
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

/// Checks the stages on small datatypes by evaluation against the type map. Nothing is compiled, so
/// there are many cases.
pub fn stages(data: &[u8]) {
    neighbours(data, CASES[0], |data| {
        let mut c = Choices::from_bytes(data);
        let t = datatype(&mut c, &Budget::tiny());
        let count = instances(&mut c).min(3);
        check_stages(&t, count, &mut c).unwrap_or_else(|mismatch| panic!("{count} of {t}\n{mismatch}"));
    });
}

/// Checks small datatypes, each compiled by one engine, in both directions, whole and sometimes in
/// two pieces, between inaccessible pages.
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

/// Checks that pieces of the packed stream are moved correctly, in any order, overlapping or not.
pub fn ranges(data: &[u8]) {
    let mut c = Choices::from_bytes(data);
    let t = datatype(&mut c, &Budget::default());
    let count = instances(&mut c).min(3);
    let checked = ORACLE.with_borrow_mut(|oracle| oracle.check_ranges(&t, count, &mut c));
    checked.unwrap_or_else(|mismatch| panic!("{count} of {t}\n{mismatch}"));
}

/// Checks threads that commit, use and drop the same few datatypes with a cache that is too small
/// for them.
pub fn cache(data: &[u8]) {
    check_cache(&mut Choices::from_bytes(data)).unwrap_or_else(|mismatch| panic!("{mismatch}"));
}

/// Checks wire forms: any bytes, changed forms and random datatypes are read or refused, and what
/// was read is written and read back as itself.
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
