use std::collections::HashSet;

use super::*;
use crate::datatype::{Datatype, Named};
use crate::object;

/// Lock for tests that count how often the process has initialized the tool interface. Each of
/// these tests holds it, so that they run one after the other.
static ONE: Mutex<()> = Mutex::new(());

#[test]
fn names_are_unique_and_not_empty() {
    fn unique(names: impl Iterator<Item = &'static str>) {
        let mut seen = HashSet::new();
        for name in names {
            assert!(!name.is_empty() && seen.insert(name), "{name}");
        }
    }
    unique(ENUMERATIONS.iter().map(|e| e.name));
    for e in &ENUMERATIONS {
        assert!(!e.items.is_empty());
        unique(e.items.iter().copied());
    }
    unique(CONTROLS.iter().map(|c| c.name));
    unique(PERFORMANCE.iter().map(|p| p.name));
    unique(CATEGORIES.iter().map(|c| c.name));
    assert!(Mode::ALL.iter().map(|m| m.name()).eq(ENUMERATIONS[MODES].items.iter().copied()));
    assert!(Level::ALL.iter().map(|l| l.name()).eq(ENUMERATIONS[TARGETS].items.iter().copied()));
    for c in &CONTROLS {
        assert!(c.enumeration.is_none() || c.kind == Kind::Int, "{}", c.name);
    }
}

#[test]
fn every_variable_is_in_one_category() {
    let mut controls: Vec<i32> = CATEGORIES.iter().flat_map(Category::controls).collect();
    controls.sort_unstable();
    assert!(controls.into_iter().eq(0..CONTROLS.len() as i32));
    let mut performance: Vec<i32> = CATEGORIES.iter().flat_map(Category::performance).collect();
    performance.sort_unstable();
    assert!(performance.into_iter().eq(0..PERFORMANCE.len() as i32));
    assert_eq!(CATEGORIES[0].categories(), [1, 2, 3]);
}

#[test]
fn init_is_counted_and_the_last_finalize_frees() {
    let _one = ONE.lock();
    assert_eq!(finalize().unwrap_err().class(), ErrorClass::ToolNotInitialized);
    init();
    init();
    finalize().unwrap();
    let session = open_session().unwrap();
    let control = alloc_control(0).unwrap();
    finalize().unwrap();
    assert_eq!(open_session().unwrap_err().class(), ErrorClass::ToolNotInitialized);
    init();
    assert_eq!(close_session(session).unwrap_err().class(), ErrorClass::ToolInvalidSession);
    assert_eq!(free_control(control).unwrap_err().class(), ErrorClass::ToolInvalidHandle);
    finalize().unwrap();
}

#[test]
fn a_new_start_keeps_what_it_makes_while_another_ends() {
    let _one = ONE.lock();
    let work = || {
        for _ in 0..if cfg!(miri) { 20 } else { 1_000_000 } {
            init();
            let control = alloc_control(0).unwrap();
            let session = open_session().unwrap();
            close_session(session).unwrap();
            free_control(control).unwrap();
            finalize().unwrap();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    assert_eq!(finalize().unwrap_err().class(), ErrorClass::ToolNotInitialized);
}

#[test]
fn a_counter_counts_while_started() {
    // The commit comes before the lock, because a thread that holds the lock is in a fork section,
    // in which nothing is compiled.
    let h = object::create(Datatype::vector(3, 1, 2, &Datatype::named(Named::Int)).unwrap()).unwrap();
    object::commit(h).unwrap();
    let _one = ONE.lock();
    init();
    let index = |name| PERFORMANCE.iter().position(|p| p.name == name).unwrap() as i32;
    let session = open_session().unwrap();
    let calls = alloc_performance(session, index("ddtc_pack_calls")).unwrap();
    let other = alloc_performance(session, index("ddtc_pack_calls")).unwrap();
    let level = alloc_performance(session, index("ddtc_code_bytes")).unwrap();
    let pack = || {
        object::with("test", h, |o| {
            let committed = o.committed().unwrap().unwrap();
            committed.pack(&[7; 20], 0, 1, &mut [0; 12]).unwrap();
        })
        .unwrap();
    };
    let at_least = |handle, n| match read_performance(session, handle).unwrap() {
        // Other tests may pack at the same time.
        Value::Unsigned(v) => assert!(v >= n, "{v} < {n}"),
        other => panic!("{other:?}"),
    };
    pack();
    assert_eq!(read_performance(session, calls), Ok(Value::Unsigned(0)));
    start_performance(session, Target::One(calls)).unwrap();
    pack();
    pack();
    at_least(calls, 2);
    stop_performance(session, Target::All).unwrap();
    let stopped = read_performance(session, calls).unwrap();
    pack();
    assert_eq!(read_performance(session, calls), Ok(stopped.clone()));
    assert_eq!(read_performance(session, other), Ok(Value::Unsigned(0)));
    start_performance(session, Target::All).unwrap();
    pack();
    at_least(calls, 3);
    at_least(other, 1);
    stop_performance(session, Target::All).unwrap();
    write_performance(session, calls, &Value::Unsigned(1000)).unwrap();
    assert_eq!(read_reset_performance(session, calls), Ok(Value::Unsigned(1000)));
    assert_eq!(read_performance(session, calls), Ok(Value::Unsigned(0)));
    let class = |r: Result<()>| r.unwrap_err().class();
    assert_eq!(class(start_performance(session, Target::One(level))), ErrorClass::ToolNoStartStop);
    assert_eq!(class(reset_performance(session, Target::One(level))), ErrorClass::ToolNoWrite);
    let stranger = open_session().unwrap();
    assert_eq!(class(start_performance(stranger, Target::One(calls))), ErrorClass::ToolInvalidHandle);
    close_session(session).unwrap();
    assert_eq!(class(free_performance(stranger, calls)), ErrorClass::ToolInvalidHandle);
    object::free(h).unwrap();
    finalize().unwrap();
}

#[test]
fn controls_read_what_was_written() {
    for control in CONTROLS.iter().filter(|c| c.name != "ddtc_mode") {
        let was = read_control(control);
        write_control(control, &was).unwrap();
        assert_eq!(read_control(control), was, "{}", control.name);
        let wrong = if control.kind == Kind::Int { Value::Unsigned(1) } else { Value::Int(1) };
        assert_eq!(write_control(control, &wrong).unwrap_err().class(), ErrorClass::ToolInvalid);
        if control.enumeration.is_some() {
            for i in [-1, 4, i32::MAX] {
                assert!(write_control(control, &Value::Int(i)).is_err());
            }
        }
        assert_eq!(read_control(control), was, "{}", control.name);
    }
    assert!(report().contains("ddtc_pack_bytes"));
}
