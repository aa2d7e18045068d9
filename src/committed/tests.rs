//! Check mode: what a wrong kernel did is found, counted and put right.

use super::Committed;
use crate::datatype::Datatype;
use crate::engine::{Config, Engine};

/// A committed `claimed` whose layout, and so its kernels, are those of `moved`.
fn forged(engine: &Engine, claimed: &str, moved: &str) -> Committed {
    let [claimed, moved] = [claimed, moved].map(|text| text.parse::<Datatype>().unwrap());
    assert_eq!((claimed.size(), claimed.true_ub()), (moved.size(), moved.true_ub()));
    let layout = engine.commit(&moved).unwrap().0.layout.clone();
    let placed = crate::cache::Placed { layout, origin: 0 };
    Committed::new(engine.clone(), claimed, placed)
}

#[test]
fn check_mode_finds_wrong_bytes_and_puts_them_right() {
    let user: Vec<u8> = (0..32).collect();
    // Bytes 0 and 8 to 10; the kernel moves 0, 1, 2 and 10.
    let (claimed, moved) = ("hindexed([1, 3], [0, 8], char)", "hindexed([3, 1], [0, 10], char)");
    for check in [false, true] {
        let engine = Engine::new(Config { check, ..Config::default() });
        let c = forged(&engine, claimed, moved);
        let (mut packed, mut back) = ([0; 4], [0; 11]);
        c.pack(&user, 0, 1, &mut packed).unwrap();
        assert_eq!(engine.counters().mismatches, u64::from(check));
        assert_eq!(packed, if check { [0, 8, 9, 10] } else { [0, 1, 2, 10] });
        c.unpack(&[1, 2, 3, 4], &mut back, 0, 1).unwrap();
        assert_eq!(engine.counters().mismatches, 2 * u64::from(check));
        // What was written beside the layout stays: nobody knows what was there.
        let want = if check { [1, 2, 3, 0, 0, 0, 0, 0, 2, 3, 4] } else { [1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 4] };
        assert_eq!(back, want);
    }
}

/// Where entries overlap the last one wins, so earlier ones differ from the stream rightly.
#[test]
fn check_mode_leaves_overlap_alone() {
    let engine = Engine::new(Config { check: true, ..Config::default() });
    for text in ["vector(4, 3, 2, char)", "resized(0, 1, contiguous(4, char))", "vector(4, 3, 0, char)"] {
        let t: Datatype = text.parse().unwrap();
        let c = engine.commit(&t).unwrap();
        let mut user = [0; 64];
        let stream: Vec<u8> = (1..=c.packed_size(3).unwrap() as u8).collect();
        c.unpack(&stream, &mut user, 0, 3).unwrap();
        assert_eq!(engine.counters().mismatches, 0, "{text}");
    }
}
