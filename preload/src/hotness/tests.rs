//! Tests of the counters of types that are not decoded.

use super::*;
use CompletedBy::{LaterCall, SameCall};

// All checks are in one test, because the slots are global and one check forgets all of them.
#[test]
fn slots_are_of_the_types_that_have_them() {
    a_handle_is_known_from_its_commit_to_its_end();
    uses_pass_while_nothing_can_come_of_them();
    messages_like_a_bypassed_one_pass_in_its_back_off();
    a_used_type_is_known_as_one();
}

/// Forgets a handle as the wrapper of `MPI_Type_free` does.
fn free(handle: u64) {
    if !forget(handle) {
        forget_other(handle);
    }
}

fn a_handle_is_known_from_its_commit_to_its_end() {
    assert!(!has(0) && !has(77));
    record(77);
    assert!(has(77) && !may_be_dying(77));
    forget(76);
    assert!(has(77) && !may_be_dying(77));
    free(77);
    assert!(!has(77) && may_be_dying(77));
    // Types whose handles have the same hash do not take each other's slot.
    let mut same = (1..1 << 20).filter(|&h| std::ptr::eq(home(h), home(77)) && h != 77);
    let [other, third] = [(); 2].map(|()| same.next().expect("few slots"));
    record(77);
    record(other);
    record(third);
    let like = Like { count: 5, by: SameCall };
    start_back_off(other, like);
    assert!([77, other, third].into_iter().all(has));
    assert!(!passes_in_back_off(77, Some(like)) && !passes_in_back_off(other, Some(like)));
    free(other);
    assert!(has(77) && !has(other) && has(third));
    free(77);
    record(third);
    assert!(has(third) && !has(77) && !has(other));
    free(third);
    assert!(!has(third));
    record(77);
    record(other);
    forget_all();
    assert!(!has(77) && !has(other));
}

fn uses_pass_while_nothing_can_come_of_them() {
    let handle = 1 << 40;
    record(handle);
    let slot = home(handle);
    let passed = |slot: &Slot, cost, spent, until| {
        slot.start_back_off(cost, spent, until);
        while passes_in_back_off(handle, None) {}
        slot.end_back_off()
    };
    // Each use costs 10. After the first use, the back-off lets no use pass. After ten uses the
    // back-off lets nine uses pass, the number of uses before the last one. If the next decision is
    // due at a cost of 140, it lets only 4 uses pass, for the 40 that are left. If that cost is
    // exceeded already, it lets none pass.
    assert_eq!([passed(slot, 10, 10, 1 << 30), passed(slot, 10, 100, 1 << 30)], [0, 9]);
    assert_eq!([passed(slot, 10, 100, 140), passed(slot, 10, 100, 90)], [4, 0]);
    assert_eq!(passed(slot, 1, u64::MAX / 2, u64::MAX), USES_LEFT);
    slot.start_back_off(10, 40, 1 << 30);
    assert_eq!(
        (0..4).map(|_| passes_in_back_off(handle, None)).collect::<Vec<_>>(),
        [true, true, true, false]
    );
    // Two uses have passed when the back-off is ended early by `Slot::end_back_off`.
    slot.start_back_off(10, 100, 1 << 30);
    assert!(
        passes_in_back_off(handle, None)
            && passes_in_back_off(handle, None)
            && slot.end_back_off() == 2
            && !passes_in_back_off(handle, None)
            && slot.end_back_off() == 0
    );
    slot.start_back_off(10, 100, 1 << 30);
    record(handle);
    assert!(!passes_in_back_off(handle, None));
    slot.start_back_off(10, 100, 1 << 30);
    free(handle);
    assert!(!passes_in_back_off(handle, None) && !passes_in_back_off(0, None));
}

fn messages_like_a_bypassed_one_pass_in_its_back_off() {
    let handle = 1 << 41;
    record(handle);
    let [now, later, others] =
        [Like { count: 5, by: SameCall }, Like { count: 5, by: LaterCall }, Like { count: 6, by: SameCall }];
    start_back_off(handle, now);
    let passed = |like: Like| {
        (0..2 * BACK_OFF_MESSAGES).filter(|_| passes_in_back_off(handle, Some(like))).count() as u64
    };
    assert!(!passes_in_back_off(handle, None));
    assert_eq!([passed(others), passed(now)], [0, BACK_OFF_MESSAGES]);
    // A message that a later call completes costs more to convert, so it passes in a back-off for
    // messages that their own call completes, but not the other way round.
    start_back_off(handle, now);
    assert_eq!(passed(later), BACK_OFF_MESSAGES);
    start_back_off(handle, later);
    assert_eq!([passed(now), passed(later)], [0, BACK_OFF_MESSAGES]);
    // The bytes of the messages that pass in a back-off are added to the bytes that the type has
    // moved, when the next back-off starts and when `count_and_end_back_off` is called. 10 messages
    // pass in the first back-off, and 3 in the second. Each has 5 elements of 8 bytes.
    let slot = home(handle);
    slot.count_and_end_back_off(handle);
    slot.moved.store(0, Relaxed);
    slot.size.store(8, Relaxed);
    for uses in [10, 3] {
        start_back_off(handle, now);
        assert!((0..uses).all(|_| passes_in_back_off(handle, Some(now))));
    }
    assert_eq!(slot.moved.load(Relaxed), 400);
    slot.count_and_end_back_off(handle);
    assert_eq!(slot.moved.load(Relaxed), 520);
    // `end_back_off` ends the back-off of the type with this handle, and of no other type.
    start_back_off(handle, now);
    end_back_off(handle + 1);
    assert!(passes_in_back_off(handle, Some(now)));
    end_back_off(handle);
    assert_eq!(passed(now), 0);
    // A newly committed type that gets the handle of an old type has no back-off.
    start_back_off(handle, now);
    record(handle);
    assert_eq!(passed(now), 0);
    for like in [
        Like { count: 0, by: LaterCall },
        Like { count: 1 << 31, by: LaterCall },
        Like { count: -1, by: SameCall },
    ] {
        start_back_off(handle, like);
        assert_eq!(passed(like), 0);
    }
    free(handle);
    start_back_off(handle, now);
    assert_eq!(passed(now), 0);
}

fn a_used_type_is_known_as_one() {
    let handle = 1 << 42;
    record(handle);
    let slot = home(handle);
    assert!(!is_used(handle) && slot.next.load(Relaxed) == worth::DECODE);
    slot.start_back_off(10, 100, 1 << 30);
    assert!(passes_in_back_off(handle, None) && is_used(handle) && slot.end_back_off() == 1);
    slot.size.store(8, Relaxed);
    assert!(is_used(handle));
    // The next decision about the type is made when its uses have cost twice as much as now.
    slot.spent.store(4000, Relaxed);
    assert_eq!((slot.look_later(), slot.next.load(Relaxed)), (8000, 8000));
    free(handle);
    assert!(!is_used(handle) && !is_used(0));
}
