//! Tests with very deep datatypes, with many arguments and with much sharing of nodes. Work must
//! stay linear in the size of the datatype, and no function may recurse on the stack.

use ddtc::internal::datatype::{Datatype, Named};
use ddtc::internal::methods::*;

fn int() -> Datatype {
    Datatype::named(Named::Int)
}

/// Runs `f` in a thread with a stack of 256 KiB, so that recursion over the depth of a type would
/// overflow the stack.
fn on_a_small_stack(f: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(256 << 10).spawn(f).unwrap().join().unwrap();
}

fn chain(depth: usize) -> Datatype {
    let mut t = int();
    for i in 0..depth {
        t = match i % 3 {
            0 => Datatype::contiguous(1, &t).unwrap(),
            1 => t.dup(),
            _ => Datatype::structure(&[1, 0], &[0, 8], &[t, int()]).unwrap(),
        };
    }
    t
}

/// Returns a datatype after `steps` steps of `T' = struct(T, int, T)`. Each step doubles the number
/// of elements.
fn doubling(steps: usize) -> Datatype {
    let mut t = int();
    for _ in 0..steps {
        let extent = t.extent();
        t = Datatype::structure(&[1, 1, 1], &[0, extent, extent + 4], &[t.clone(), int(), t]).unwrap();
    }
    t
}

#[test]
fn a_million_levels() {
    on_a_small_stack(|| {
        let t = chain(1_000_000);
        assert_eq!((t.size(), t.extent(), t.depth()), (4, 4, 1_000_000));
        assert_eq!(t.signature(), int().signature());
        assert_eq!(t.nodes().count(), 1_000_001);
        assert!(t.arguments() > 2_000_000);
        let again = chain(1_000_000);
        assert_eq!(t.structural_hash(), again.structural_hash());
        assert_eq!(t, again);
        let mut map = t.type_map();
        assert_eq!((map.next(), map.next()), (Some((Named::Int, 0)), None));
        drop((t, again));
        let t = chain(200_000);
        let parsed: Datatype = t.to_string().parse().unwrap();
        assert_eq!(parsed, t);
    });
}

#[test]
fn a_dag_of_two_to_the_forty_nodes() {
    on_a_small_stack(|| {
        let t = doubling(40);
        assert_eq!(t.signature().length(), (1 << 41) - 1);
        assert_eq!(t.size(), 4 * ((1 << 41) - 1));
        assert_eq!(t.nodes().count(), 41);
        assert_eq!(t.arguments(), 400);
        let again = doubling(40);
        assert_eq!(t, again);
        assert_ne!(t, doubling(39));
        let text = t.to_string();
        assert!(text.len() < 10_000, "{}", text.len());
        let parsed: Datatype = text.parse().unwrap();
        assert_eq!(parsed, t);
        // Look up the entry in the middle of the packed stream: it is the integer between the two
        // halves.
        let half = doubling(39);
        let mut map = t.type_map();
        assert_eq!(map.skip_bytes(half.size() as u64 + 1), 1);
        assert_eq!(map.next(), Some((Named::Int, half.extent())));
        assert_eq!(map.skip_bytes(half.size() as u64 - 4), 0);
        assert_eq!(map.next(), Some((Named::Int, t.extent() - 4)));
        assert_eq!(map.next(), None);
        // The printed text repeats short subtrees instead of naming them, so the type that is
        // parsed from it has a few more nodes.
        assert!(parsed.nodes().count() < 120);
    });
}

#[test]
fn a_million_blocks() {
    let lengths: Vec<i64> = (0..1_000_000).map(|i| i % 5).collect();
    let displacements: Vec<i64> = (0..1_000_000).map(|i| i * 7).collect();
    let t = Datatype::indexed(&lengths, &displacements, &int()).unwrap();
    assert_eq!(t.size(), 8_000_000);
    assert_eq!(t.lb(), 28);
    assert_eq!(t.arguments(), 2_000_002);
    let parsed: Datatype = t.to_string().parse().unwrap();
    assert_eq!(parsed, t);
}

#[test]
fn large_count_flag_is_no_part_of_equality() {
    let t = doubling(3);
    let large = t.clone().with_large_count();
    assert!(large.is_large_count() && !t.is_large_count());
    assert_eq!(large, t);
    assert_eq!(large.structural_hash(), t.structural_hash());
    assert!(!large.dup().is_large_count());
    assert!(!int().with_large_count().is_large_count());
    drop(t);
    assert_eq!(large.size(), 60);
}

#[test]
fn threads() {
    fn shared<T: Send + Sync + Clone>(_: &T) {}
    shared(&int());
}

#[test]
fn ten_thousand_different_members() {
    let types: Vec<Datatype> = (1..=10_000).map(|i| Datatype::vector(2, 1, i, &int()).unwrap()).collect();
    let displacements: Vec<i64> = (0..10_000).map(|i| i * 100_000).collect();
    let t = Datatype::structure(&vec![1; 10_000], &displacements, &types).unwrap();
    assert_eq!((t.size(), t.nodes().count()), (80_000, 10_002));
    let parsed: Datatype = t.to_string().parse().unwrap();
    assert_eq!(parsed, t);
}

/// Tests that several threads can drop shared chains of nodes at the same time. Each node must be
/// dropped once, and no stack may overflow.
#[test]
fn shared_chains_dropped_by_many_threads() {
    for _ in 0..20 {
        let t = chain(20_000);
        let owners: Vec<Datatype> = t.nodes().step_by(100).cloned().collect();
        let large: Vec<Datatype> = owners.iter().map(|t| t.clone().with_large_count()).collect();
        drop(t);
        std::thread::scope(|scope| {
            for k in 0..4 {
                let mine: Vec<Datatype> = owners.iter().chain(&large).skip(k).step_by(4).cloned().collect();
                let run = move || drop(mine);
                std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, run).unwrap();
            }
        });
    }
}

#[test]
fn a_million_members() {
    let n = 1_000_000;
    let t =
        Datatype::structure(&vec![1; n], &(0..n as i64).map(|i| i * 4).collect::<Vec<_>>(), &vec![int(); n])
            .unwrap();
    assert_eq!(t.signature(), Datatype::contiguous(n as i64, &int()).unwrap().signature());
    assert_eq!(t.nodes().count(), 2);
}

#[test]
fn wire_forms_of_deep_shared_and_long_types() {
    on_a_small_stack(|| {
        let deep = chain(300_000);
        let form = deep.to_wire().unwrap();
        assert!(form.len() < 10 * 300_000, "{}", form.len());
        assert_eq!(Datatype::from_wire(&form), Ok(deep));
        let dag = doubling(40);
        let form = dag.to_wire().unwrap();
        assert!(form.len() < 40 * 60, "{}", form.len());
        assert_eq!(Datatype::from_wire(&form).unwrap().nodes().count(), 41);
    });
    // The type has 100,000 blocks at displacements below 2^31. In the wire form of the type, each
    // block takes one byte for its length and four bytes for its displacement.
    let places: Vec<i64> = (0..100_000).map(|i| i * 21_000 + i % 7).collect();
    let lengths: Vec<i64> = (0..100_000).map(|i| 1 + i % 9).collect();
    let t = Datatype::hindexed(&lengths, &places, &int()).unwrap();
    let form = t.to_wire().unwrap();
    assert_eq!(Datatype::from_wire(&form), Ok(t));
    assert!(form.len() < 5 * 100_000 + 200, "{}", form.len());
}
