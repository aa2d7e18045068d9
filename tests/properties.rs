//! Properties of datatypes and stages over generated input.
//!
//! `DDTC_CASES` and `DDTC_SEED` lengthen and vary the random run; `ddtc check` is the same run with a progress bar.

use ddtc::datatype::Datatype;
use ddtc::fuzzing::{Budget, Choices, Failure, Oracle, check_random, datatype, instances};
use ddtc::target::Level;
use proptest::prelude::*;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |v| v.parse().unwrap_or_else(|e| panic!("{name}={v}: {e}")))
}

#[test]
fn random_datatypes() {
    let (cases, seed) = (setting("DDTC_CASES", 1000), setting("DDTC_SEED", 20_261_120));
    let summary = check_random(cases, seed, &mut |p| {
        if p.done % 10_000 == 0 {
            println!("{} of {}: {:?}", p.done, p.cases, p.summary);
        }
    })
    .unwrap_or_else(|failure| panic!("{failure}"));
    println!("{summary:?}");
    assert_eq!(summary.cases, cases);
}

/// Datatypes for proptest: its bytes are the choices, so it shrinks towards fewer and lower ones.
fn any_datatype() -> impl Strategy<Value = (Datatype, u64)> {
    proptest::collection::vec(any::<u8>(), 0..300).prop_map(|bytes| {
        let mut c = Choices::from_bytes(&bytes);
        let t = datatype(&mut c, &Budget::small());
        (t, instances(&mut c))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chosen_datatypes((t, count) in any_datatype()) {
        let levels = [Level::detect()];
        let mut cuts = Choices::from_seed(t.structural_hash() as u64);
        if let Err(mismatch) = Oracle::new(&levels).check(&t, count, &mut cuts) {
            panic!("{}", Failure::shrunk(&t, count, mismatch, &levels));
        }
    }
}
