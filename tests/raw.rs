//! Test of `Committed::try_raw`, which moves instances only if one copy or a kernel that exists
//! already can move them, and otherwise does nothing. The test has a process of its own, because
//! `try_raw` also does nothing while calls are counted.

use ddtc::internal::committed::Committed;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::exec::interp;
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;

fn bytes(seed: usize) -> Vec<u8> {
    (0..8192).map(|i| (i * 31 + i / 7 + seed) as u8).collect()
}

#[test]
fn what_is_at_hand_moves_at_once_and_nothing_else_does() {
    let source = bytes(3);
    let moved = |t: &Committed, direction: Direction| {
        let (mut user, mut packed) = (source.clone(), bytes(4));
        // SAFETY: two instances of each type that this test commits lie within the first 200 bytes
        // of `user`, and their packed bytes within the first 200 bytes of `packed`. Both are local
        // vectors of 8192 bytes, so they are valid for reads and writes, do not overlap, and
        // nothing else accesses them during the call.
        let done = unsafe { t.try_raw(direction, user.as_mut_ptr(), 2, packed.as_mut_ptr()) };
        (done, user, packed)
    };
    for text in ["vector(3, 1, 2, double)", "contiguous(5, double)"] {
        let datatype: Datatype = text.parse().unwrap();
        let commit = |mode| Engine::new(Config { mode, ..Config::default() }).commit(&datatype).unwrap();
        let compiled = commit(Mode::Commit);
        let n = 2 * datatype.size() as usize;
        for direction in Direction::BOTH {
            compiled.kernel(direction);
            let (done, user, packed) = moved(&compiled, direction);
            let (mut wanted_user, mut wanted_packed) = (source.clone(), bytes(4));
            match direction {
                Direction::Pack => interp::pack(&datatype, 2, &source, 0, &mut wanted_packed[..n]).unwrap(),
                Direction::Unpack => {
                    interp::unpack(&datatype, 2, &wanted_packed[..n], &mut wanted_user, 0).unwrap();
                }
            };
            assert!(done && user == wanted_user && packed == wanted_packed, "{text} {direction}");
            assert_eq!(
                moved(&commit(Mode::Off), direction),
                (false, source.clone(), bytes(4)),
                "{text} {direction}"
            );
        }
        let counting = ddtc::internal::calls::Counting::start();
        assert_eq!(moved(&compiled, Direction::Pack), (false, source.clone(), bytes(4)), "{text}");
        drop(counting);
    }
}
