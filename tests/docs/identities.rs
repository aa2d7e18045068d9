//! Tests of constructor identities: the datatypes in one block of docs/records/identities.md have
//! the same meaning. So they must have one normal form and share a layout.

use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::exec::interp;
use ddtc::internal::lower::Bytes;
use ddtc::internal::methods::*;
use ddtc::internal::nest::{LoopNest, Normal};
use ddtc::internal::{lower, normalize};

use crate::text::{blocks, read};

/// Returns the groups of equal datatypes in docs/records/identities.md: for each block, its line
/// number and the texts of its datatypes.
fn groups() -> Vec<(usize, Vec<String>)> {
    let found: Vec<_> = blocks(&read("docs/records/identities.md"))
        .into_iter()
        .filter(|b| b.tag == "identity")
        .map(|b| (b.line, b.text.lines().map(str::to_owned).collect()))
        .collect();
    assert!(found.len() >= 8, "docs/records/identities.md lists the identities");
    found
}

/// Returns the places of all bytes of three instances of `t`, in packing order. Each place is the
/// displacement from the first of these bytes.
fn bytes(t: &Datatype) -> Vec<i64> {
    let mut found = Vec::new();
    interp::for_each(t, 3, &mut |at, len, _| found.extend((at..).take(len))).unwrap();
    let first = found.first().copied().unwrap_or(0);
    found.iter().map(|at| at - first).collect()
}

fn normal(t: &Datatype) -> LoopNest<Normal> {
    let lowered = lower::lower(t, Bytes).unwrap();
    normalize::normalize(&lowered, t.arguments()).unwrap().nest
}

#[test]
fn equal_maps_give_equal_normal_forms() {
    for (line, texts) in groups() {
        let types: Vec<Datatype> =
            texts.iter().map(|t| t.parse().unwrap_or_else(|e| panic!("{t}: {e}"))).collect();
        let (first, rest) = types.split_first().unwrap();
        assert!(!rest.is_empty(), "docs/records/identities.md:{line}: an identity needs two sides");
        let (map, nest) = (bytes(first), normal(first));
        // The engine compiles nothing, because this test checks only which layouts are shared.
        let engine = Engine::new(Config { mode: Mode::Interpret, ..Config::default() });
        let committed = engine.commit(first).unwrap();
        for (t, text) in rest.iter().zip(&texts[1..]) {
            assert_eq!(
                bytes(t),
                map,
                "docs/records/identities.md:{line}: {text} is another map than {}",
                texts[0]
            );
            assert_eq!(
                normal(t),
                nest,
                "docs/records/identities.md:{line}: {text}\n{}\nis not\n{nest}",
                normal(t)
            );
            assert!(
                engine.commit(t).unwrap().shares_layout(&committed),
                "docs/records/identities.md:{line}: {text}"
            );
        }
        assert_eq!(engine.counters().cache.misses, 1, "docs/records/identities.md:{line}");
    }
}

/// Tests that datatypes have different normal forms if their type maps differ, even in one byte or
/// one place.
#[test]
fn different_maps_give_different_normal_forms() {
    let types: Vec<Datatype> = groups().iter().flat_map(|(_, g)| g).map(|t| t.parse().unwrap()).collect();
    let keys: Vec<_> = types.iter().map(|t| (bytes(t), t.size(), normal(t))).collect();
    for a in &keys {
        for b in &keys {
            assert_eq!((&a.0, a.1) == (&b.0, b.1), a.2 == b.2, "{}\n{}", a.2, b.2);
        }
    }
}
