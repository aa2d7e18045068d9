//! Tests of an engine's cache of layouts: which datatypes share a layout, which layouts are evicted
//! and when, that one compile serves many threads, and that no thread waits for a compile in lazy
//! mode.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::exec::interp;
use ddtc::internal::fuzzing::Case;
use ddtc::internal::fuzzing::guard::Rig;
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

fn parse(text: &str) -> Datatype {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Returns the datatype with number `i`. Datatypes with different numbers have different layouts,
/// because their distances and extents differ.
fn numbered(i: i64) -> Datatype {
    parse(&format!("resized(0, {}, hindexed([3, 5], [0, {}], char))", 200_000 + i, 100 + i))
}

fn check(engine: &Engine, t: &Datatype) {
    let c = engine.commit(t).unwrap();
    let case = Case::new(t, 2).unwrap();
    case.committed("cache", &c, &mut Rig::default()).unwrap_or_else(|m| panic!("{t}: {m}"));
}

#[test]
fn three_ways_to_share() {
    let engine = Engine::default();
    let kernel =
        |text: &str| Arc::clone(engine.commit(&parse(text)).unwrap().kernel(Direction::Pack).unwrap());
    let a = kernel("resized(0, 999, hindexed([3, 5], [0, 100], char))");
    // Build the same constructor tree again. The cache finds the layout of this tree by its
    // structural hash.
    let b = kernel("resized(0, 999, hindexed([3, 5], [0, 100], char))");
    // These two trees differ from the first one and have the same layout: `c` is made by another
    // constructor, and `d` lies at another displacement. The cache finds the layout by the normal
    // nest of each tree.
    let c = kernel("resized(0, 999, struct([3, 1], [0, 100], [byte, contiguous(5, char)]))");
    let d = kernel("resized(-7, 999, hindexed([3, 5], [500, 600], char))");
    assert!([&b, &c, &d].iter().all(|k| Arc::ptr_eq(&a, k)));
    let counters = engine.counters();
    let cache = counters.cache;
    assert_eq!((cache.type_hits, cache.nest_hits, cache.misses), (1, 2, 1));
    assert_eq!((counters.compiles, counters.emitted, counters.commits), (1, 1, 4));
    // Three layouts that differ only in their strides have plans of one shape. They share machine
    // code, but each layout has its own context, which is the table from which the code reads the
    // strides.
    let engine = Engine::new(Config { precompiled: false, ..Config::default() });
    for stride in [1000, 2000, 3000] {
        check(&engine, &parse(&format!("hvector(3, 1, {}, vector(200, 3, {stride}, int))", stride * 1000)));
    }
    let counters = engine.counters();
    assert_eq!((counters.compiles, counters.emitted, counters.fallbacks), (6, 2, 0));
}

#[test]
fn what_is_committed_is_kept_and_the_rest_is_bounded() {
    for mode in [Mode::Interpret, Mode::Lazy, Mode::Commit] {
        let capacity = 64 << 10;
        let engine = Engine::new(Config { mode, cache_bytes: capacity, ..Config::default() });
        let live: Vec<_> = (0..20).map(|i| engine.commit(&numbered(i)).unwrap()).collect();
        for i in 20..2000 {
            drop(engine.commit(&numbered(i)).unwrap());
        }
        let counters = engine.counters();
        assert!(counters.cache.evictions > 1000, "{mode}: {counters:?}");
        assert!(counters.cached_bytes < 2 * capacity as u64, "{mode}: {counters:?}");
        // The cache did not drop the layouts that committed types still hold. So committing the
        // same datatypes again finds the same layouts.
        for (i, c) in live.iter().enumerate() {
            assert!(engine.commit(&numbered(i as i64)).unwrap().shares_layout(c), "{mode} {i}");
        }
        assert_eq!(engine.counters().cache.type_hits, counters.cache.type_hits + 20, "{mode}");
        // The cache dropped layouts 20 to 39. They are compiled again and move the right bytes.
        for i in 20..40 {
            check(&engine, &numbered(i));
        }
    }
}

/// Returns an engine whose cache has a capacity of `capacity` bytes. The engine compiles nothing,
/// so the cache holds only layouts. The cache charges the same size for the layouts of all
/// [`numbered`] types.
fn small(capacity: usize) -> Engine {
    Engine::new(Config { mode: Mode::Interpret, cache_bytes: capacity, ..Config::default() })
}

/// Tests that each layout that was made is either still cached or counted as evicted. Nothing is
/// evicted while the capacity suffices. When the layouts exceed the capacity, about a quarter of
/// them is evicted at once.
#[test]
fn evictions_are_counted() {
    let occupied = |capacity: usize, n: i64| {
        let engine = small(capacity);
        (0..n).for_each(|i| drop(engine.commit(&numbered(i)).unwrap()));
        let c = engine.counters();
        assert_eq!(c.cache.evictions, c.cache.misses - c.cached_layouts, "{c:?}");
        assert_eq!(c.cache.misses, n as u64);
        (c.cached_bytes as usize, c.cache.evictions)
    };
    let (all, none) = occupied(usize::MAX, 40);
    assert_eq!(none, 0);
    assert_eq!(occupied(all, 40), (all, 0));
    let (left, evictions) = occupied(all - 1, 40);
    assert!(left <= all - all / 4 && left > all * 5 / 8, "{left} of {all}");
    // All layouts have the same size, so the eviction drops a quarter of 40 layouts, or one layout
    // more because of the one that exceeded the capacity.
    assert!((10..=11).contains(&evictions), "{evictions}");
}

/// Tests that the least recently used layout is evicted first. A commit counts as a use of a layout
/// whether it finds the layout by its constructor tree or by its normal nest.
#[test]
fn what_was_used_last_stays() {
    let all = {
        let engine = small(usize::MAX);
        (0..40).for_each(|i| drop(engine.commit(&numbered(i)).unwrap()));
        engine.counters().cached_bytes as usize
    };
    // Returns a datatype with the same layout as `numbered(i)`, made by another constructor tree.
    let otherwise = |i: i64| {
        let distance = 100 + i;
        parse(&format!(
            "resized(0, {}, struct([3, 1], [0, {distance}], [byte, contiguous(5, char)]))",
            200_000 + i
        ))
    };
    let engine = small(all - 1);
    (0..39).for_each(|i| drop(engine.commit(&numbered(i)).unwrap()));
    let before = engine.counters().cache;
    assert_eq!(before.evictions, 0);
    drop(engine.commit(&numbered(0)).unwrap());
    drop(engine.commit(&otherwise(1)).unwrap());
    let used = engine.counters().cache;
    assert_eq!((used.type_hits, used.nest_hits), (before.type_hits + 1, before.nest_hits + 1));
    drop(engine.commit(&numbered(39)).unwrap());
    assert!(engine.counters().cache.evictions > 0);
    let known = |i: i64| {
        let before = engine.counters().cache.misses;
        drop(engine.commit(&numbered(i)).unwrap());
        engine.counters().cache.misses == before
    };
    assert!(known(0) && known(1) && known(38) && known(39));
    assert!(!known(2));
}

/// Tests that the cache keeps the last 64 constructor trees of each layout.
#[test]
fn constructor_trees_are_cached() {
    let engine = small(usize::MAX);
    let tree_at =
        |i: i64| Datatype::resized(0, 1 << 20, &Datatype::hindexed(&[1], &[i * 64], &numbered(0)).unwrap());
    let live = engine.commit(&tree_at(0).unwrap()).unwrap();
    let by_tree = |i: i64| {
        let before = engine.counters().cache;
        assert!(engine.commit(&tree_at(i).unwrap()).unwrap().shares_layout(&live));
        engine.counters().cache.type_hits - before.type_hits
    };
    assert!((1..64).all(|i| by_tree(i) == 0));
    assert_eq!(by_tree(0), 1);
    assert_eq!((by_tree(64), by_tree(1), by_tree(64)), (0, 1, 1));
    assert_eq!(by_tree(0), 0);
}

/// Tests that code that nobody needs is dropped when executable memory runs out. That includes code
/// of layouts that were all in use when the cache last looked for layouts to evict, and code that
/// is kept only because a later plan may have the same shape.
#[test]
fn what_nobody_needs_makes_way_for_code() {
    let engine = Engine::new(Config { cache_bytes: 64 << 10, arena_bytes: 8 << 10, ..Config::default() });
    let live: Vec<_> = (0..400).map(|i| engine.commit(&numbered(i)).unwrap()).collect();
    let full = engine.counters();
    assert!(full.cached_bytes > 128 << 10 && full.fallbacks > 300, "{full:?}");
    drop(live);
    drop(engine.commit(&numbered(1000)).unwrap());
    assert_eq!(engine.counters().fallbacks, full.fallbacks);
    // Commit structures of eight members. Three of the six inner members are loops around a call,
    // and each choice of these three members gives a plan of a different shape. All layouts have
    // the same size.
    let engine = Engine::new(Config { arena_bytes: 3 << 10, ..Config::default() });
    let choices: Vec<u32> = (0..64_u32).filter(|loops| loops.count_ones() == 3).collect();
    for &loops in &choices {
        let member = |i: u32| match i {
            1..=6 if loops & 1 << (i - 1) != 0 => {
                format!("hvector(3, 1, 100000, vector(200, {}, 40, int))", i + 1)
            }
            _ => format!("vector(200, {}, 40, int)", i + 1),
        };
        let list = |f: &dyn Fn(u32) -> String| (0..8).map(f).collect::<Vec<_>>().join(", ");
        let (ones, places) = (list(&|_| "1".to_owned()), list(&|i| (i * 1_000_000).to_string()));
        drop(engine.commit(&parse(&format!("struct([{ones}], [{places}], [{}])", list(&member)))).unwrap());
    }
    let counters = engine.counters();
    assert_eq!((counters.fallbacks, counters.emitted), (0, choices.len() as u64), "{counters:?}");
    assert!(counters.cache.evictions > 0, "{counters:?}");
}

/// Tests that memory stays bounded if a program describes a structure by absolute addresses, and so
/// commits a new tree of a known layout each time. This must hold whether or not a committed type
/// holds the layout.
#[test]
fn many_trees_of_one_layout_are_bounded() {
    for hold in [false, true] {
        let capacity = 64 << 10;
        let engine = Engine::new(Config { cache_bytes: capacity, ..Config::default() });
        let t = numbered(0);
        let tree_at = |i: i64| {
            Datatype::resized(0, 1 << 20, &Datatype::hindexed(&[1], &[i * 64], &t).unwrap()).unwrap()
        };
        let first = hold.then(|| engine.commit(&tree_at(0)).unwrap());
        for i in 1..20_000 {
            let c = engine.commit(&tree_at(i)).unwrap();
            assert!(first.as_ref().is_none_or(|first| first.shares_layout(&c)));
        }
        let counters = engine.counters();
        assert!(counters.cached_bytes < 2 * capacity as u64, "held {hold}: {counters:?}");
        assert!(counters.compiles < 100, "held {hold}: {counters:?}");
    }
}

#[test]
fn no_capacity_and_no_memory_still_work() {
    let engine = Engine::new(Config { cache_bytes: 0, ..Config::default() });
    for i in 0..50 {
        check(&engine, &numbered(i));
    }
    assert!(engine.counters().cached_layouts <= 1, "{:?}", engine.counters());
    // The executable memory of this engine has space for only a few kernels. The remaining layouts
    // are interpreted and counted as fallbacks, and still move the right bytes.
    let engine = Engine::new(Config { arena_bytes: 8 << 10, ..Config::default() });
    let live: Vec<_> = (0..60).map(|i| engine.commit(&numbered(i)).unwrap()).collect();
    let fallbacks = engine.counters().fallbacks;
    assert!(fallbacks > 20 && fallbacks < 60, "{fallbacks} fallbacks");
    for (i, c) in live.iter().enumerate() {
        let case = Case::new(&numbered(i as i64), 3).unwrap();
        case.committed("cache", c, &mut Rig::default()).unwrap_or_else(|m| panic!("{m}"));
    }
    // The cache has space for all layouts, but the executable memory has none for their code.
    // Layouts that nobody holds any more are dropped to make space.
    drop(live);
    let before = engine.counters().fallbacks;
    for i in 1000..1100 {
        check(&engine, &numbered(i));
    }
    assert_eq!(engine.counters().fallbacks, before, "memory that was given back is used again");
}

/// Subscriber of `tracing` that blocks a thread after the stage `schedule` until the test sends to
/// `go`.
struct Gate {
    reached: Sender<()>,
    go: std::sync::Mutex<Receiver<()>>,
}

/// Subscriber of `tracing` that enables all events and does nothing. The tests make it the default
/// of the process, because `tracing` caches which call sites have subscribers. Without this
/// default, the first event of another test could cache "nobody is interested" just before a
/// [`Gate`] is set.
struct Listening;

impl Subscriber for Listening {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn gate() -> (Gate, Receiver<()>, Sender<()>) {
    static LISTENING: std::sync::Once = std::sync::Once::new();
    LISTENING.call_once(|| tracing::subscriber::set_global_default(Listening).unwrap());
    let (reached, wait) = channel();
    let (resume, go) = channel();
    (Gate { reached, go: go.into() }, wait, resume)
}

/// Visitor of the fields of an event. Its flag becomes true if the event has `stage = "schedule"`.
struct IsSchedule(bool);

impl tracing::field::Visit for IsSchedule {
    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        self.0 |= field.name() == "stage" && value == "schedule";
    }
    fn record_debug(&mut self, _: &tracing::field::Field, _: &dyn std::fmt::Debug) {}
}

impl Subscriber for Gate {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut found = IsSchedule(false);
        event.record(&mut found);
        if found.0 {
            self.reached.send(()).unwrap();
            self.go.lock().unwrap().recv().unwrap();
        }
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

const SOON: Duration = Duration::from_secs(60);

#[test]
fn two_threads_committing_one_layout_compile_it_once() {
    let engine = Engine::default();
    let t = numbered(7);
    std::thread::scope(|scope| {
        let (gate, reached, go) = gate();
        let first = scope.spawn(|| tracing::subscriber::with_default(gate, || engine.commit(&t).unwrap()));
        reached.recv_timeout(SOON).unwrap();
        // At this point the first thread is in the middle of its compile. A second thread commits
        // the same type; it finds the layout in the cache and waits for the result of the compile.
        let (done, is_done) = channel();
        let engine = &engine;
        let second = scope.spawn(move || {
            let c = engine.commit(&numbered(7)).unwrap();
            done.send(()).unwrap();
            c
        });
        assert!(is_done.recv_timeout(Duration::from_millis(50)).is_err(), "nothing to return yet");
        go.send(()).unwrap();
        let (first, second) = (first.join().unwrap(), second.join().unwrap());
        assert!(Arc::ptr_eq(first.kernel(Direction::Pack).unwrap(), second.kernel(Direction::Pack).unwrap()));
    });
    assert_eq!(engine.counters().compiles, 1);
}

#[test]
fn lazily_one_call_compiles_and_nobody_waits() {
    let engine = Engine::new(Config { mode: Mode::Lazy, lazy_threshold: 1000, ..Config::default() });
    let t = numbered(9);
    let c = engine.commit(&t).unwrap();
    let user: Vec<u8> = (0..4_100_000).map(|i| (i % 251) as u8).collect();
    let mut want = [0; 160];
    interp::pack(&t, 20, &user, 0, &mut want).unwrap();
    let pack = || {
        let mut got = [0; 160];
        c.pack(&user, 0, 20, &mut got).unwrap();
        assert_eq!(got, want);
    };
    (0..6).for_each(|_| pack());
    assert_eq!(engine.counters().compiles, 0, "below the threshold");
    std::thread::scope(|scope| {
        let (gate, reached, go) = gate();
        let crossing = scope.spawn(|| {
            tracing::subscriber::with_default(gate, || {
                for _ in 0..10 {
                    pack();
                }
            });
        });
        reached.recv_timeout(SOON).unwrap();
        // At this point one thread is compiling the layout. Three other threads pack with the same
        // layout and do not wait for the compile: however often they call, the nest is interpreted.
        let (done, is_done) = channel();
        for _ in 0..3 {
            let (pack, done) = (&pack, done.clone());
            scope.spawn(move || {
                (0..10).for_each(|_| pack());
                done.send(()).unwrap();
            });
        }
        for _ in 0..3 {
            is_done.recv_timeout(SOON).expect("an interpreting thread waits for the compile");
        }
        assert_eq!(c.schedule(Direction::Pack), "not compiled yet: interpreted");
        go.send(()).unwrap();
        crossing.join().unwrap();
    });
    pack();
    assert_eq!(engine.counters().compiles, 1);
    assert!(!c.schedule(Direction::Pack).starts_with("not compiled"));
}

/// Tests that the lazy threshold counts the bytes that a layout moves for all of its datatypes
/// together. A threshold of 0 is reached by the first byte.
#[test]
fn the_lazy_threshold_is_a_layouts() {
    let user = [7u8; 64];
    let pack = |c: &ddtc::internal::committed::Committed| c.pack(&user, 0, 1, &mut [0; 16]).unwrap();
    let engine = Engine::new(Config { mode: Mode::Lazy, lazy_threshold: 48, ..Config::default() });
    let one = engine.commit(&"vector(4, 1, 2, int)".parse().unwrap()).unwrap();
    let other = engine.commit(&"hvector(4, 1, 8, int)".parse().unwrap()).unwrap();
    assert!(one.shares_layout(&other));
    pack(&one);
    pack(&other);
    assert_eq!(engine.counters().compiles, 0, "below the threshold");
    pack(&one);
    assert_eq!(engine.counters().compiles, 1);
    let engine = Engine::new(Config { mode: Mode::Lazy, lazy_threshold: 0, ..Config::default() });
    pack(&engine.commit(&"vector(4, 1, 2, int)".parse().unwrap()).unwrap());
    assert_eq!(engine.counters().compiles, 1);
}

/// Tests that a compile for one direction of a layout and of its parts does not keep the other
/// direction from being compiled.
#[test]
fn lazy_directions_are_compiled_by_their_own_calls() {
    let t = parse("hvector(16, 1, 4896, hvector(16, 1, 272, double))");
    for first in Direction::BOTH {
        let c = Engine::new(Config { mode: Mode::Lazy, ..Config::default() }).commit(&t).unwrap();
        let (mut user, mut packed) = (vec![1; 100_000], vec![2; t.size() as usize]);
        let second = Direction::BOTH.into_iter().find(|d| *d != first).unwrap();
        for direction in [first, second] {
            for _ in 0..2 * c.engine().config().lazy_threshold / t.size() as u64 {
                match direction {
                    Direction::Pack => c.pack(&user, 0, 1, &mut packed).unwrap(),
                    Direction::Unpack => c.unpack(&packed, 0, 1, &mut user).unwrap(),
                };
            }
        }
        assert_eq!(c.engine().counters().compiles, 2, "{} and {}", c.schedule(first), c.schedule(second));
    }
}
