//! Tests of wire forms of all datatypes of the corpus: a datatype that was written and read again
//! has the same envelopes and contents in all of its nodes, and finds the same kernel.

use ddtc::internal::corpus;
use ddtc::internal::datatype::{Constants, Datatype};
use ddtc::internal::engine::{Config, Engine};
use ddtc::internal::methods::*;

fn entries() -> impl Iterator<Item = (String, Datatype)> {
    let decoded = [
        "bounds(-8, 64, struct([1, 2], [0, 8], [char, bounds(0, 16, hvector(2, 1, 5, int))]))",
        "value_index(short, uint64_t)",
    ];
    let decoded = decoded.map(|text| (text.to_owned(), text.parse().unwrap()));
    let entries = corpus::application().into_iter().chain(corpus::corner());
    entries.map(|e| (e.name, e.datatype)).chain(decoded)
}

#[test]
fn envelopes_and_contents_come_back() {
    for (name, t) in entries() {
        let back = Datatype::from_wire(&t.to_wire().unwrap()).unwrap();
        assert_eq!(back, t, "{name}");
        let mut compared = 0;
        for (a, b) in t.nodes().zip(back.nodes()) {
            assert_eq!(a.envelope(), b.envelope(), "{name}");
            assert_eq!(a.contents(&Constants::OWN).ok(), b.contents(&Constants::OWN).ok(), "{name}");
            assert_eq!(
                (a.lb(), a.ub(), a.true_lb(), a.true_ub()),
                (b.lb(), b.ub(), b.true_lb(), b.true_ub()),
                "{name}"
            );
            compared += 1;
        }
        assert_eq!((compared, back.nodes().count()), (t.nodes().count(), compared), "{name}");
    }
}

#[test]
fn what_comes_back_finds_the_kernel() {
    let engine = Engine::new(Config { both_directions: true, ..Config::default() });
    for (name, t) in entries() {
        // Keep the committed type, because the cache may evict layouts that nothing holds.
        let kept = engine.commit(&t).unwrap();
        let before = engine.counters();
        let again = engine.commit(&Datatype::from_wire(&t.to_wire().unwrap()).unwrap()).unwrap();
        let after = engine.counters();
        assert_eq!(after.compiles, before.compiles, "{name}");
        assert_eq!(after.cache.type_hits, before.cache.type_hits + 1, "{name}");
        assert_eq!(again.packed_size(3), kept.packed_size(3), "{name}");
    }
}
