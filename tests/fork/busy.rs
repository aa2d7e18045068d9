//! Tests of a process that forks while its threads commit, free, set attributes, pack and read
//! counters. Each child process must be able to continue with all of these operations.
//!
//! The environment variable `DDTC_FORKS` is the number of forks.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};

use ddtc::internal::calls::{self, Counting};
use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::exec::interp;
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc::internal::object::{self, Callbacks, Handle, runtime};
use ddtc::internal::{datatype::Named, tool};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::alone;
use crate::child::{HANG_TIMEOUT, Step};

/// Returns the datatype with number `i`. If `i` is divisible by 3, the layout of the datatype has
/// machine code of its own. Among the datatypes with remainder 1, and among those with remainder 2,
/// layouts whose plans have one shape share code.
fn numbered(i: i64) -> Datatype {
    let text = match i % 3 {
        0 => format!("struct([1, 3, 2], [0, {}, {}], [char, short, int])", 8 + i % 700, 1000 + i % 1500),
        1 => format!(
            "resized(0, {}, hindexed([3, 5, 9], [0, {}, 1200], char))",
            3000 + i % 900,
            100 + i % 1000
        ),
        _ => format!("hvector(3, 1, {}, vector(4, 3, 7, int))", 500 + i % 400),
    };
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Returns true if the committed type of `handle` packs the bytes that the type map gives, and if
/// it unpacks these bytes as the type map says.
fn right(handle: Handle) -> bool {
    let run = || -> ddtc::Result<bool> {
        object::with("test", handle, |o| {
            let Some(committed) = o.committed()? else { return Ok(false) };
            let t = committed.datatype();
            let user: Vec<u8> = (0..t.extent() + t.true_ub()).map(|i| (i % 251) as u8).collect();
            let size = committed.packed_size(2)? as usize;
            let (mut packed, mut expected) = (vec![0; size], vec![0; size]);
            committed.pack(&user, 0, 2, &mut packed)?;
            interp::pack(t, 2, &user, 0, &mut expected)?;
            let (mut back, mut wanted) = (vec![0; user.len()], vec![0; user.len()]);
            committed.unpack(&packed, 0, 2, &mut back)?;
            interp::unpack(t, 2, &expected, &mut wanted, 0)?;
            Ok(packed == expected && back == wanted)
        })?
    };
    run().unwrap_or(false)
}

struct Copied;

impl Callbacks for Copied {
    fn copy(&self, _: Handle, _: i32, value: usize) -> Result<Option<usize>, i32> {
        Ok(Some(value))
    }
    fn delete(&self, _: Handle, _: i32, _: usize) -> Result<(), i32> {
        Ok(())
    }
}

/// Runs through the life of one datatype, with everything that a program may do with a datatype,
/// and counts its steps in `step`. Returns true if all results were right.
fn life(i: i64, keyval: i32, step: &AtomicU32) -> bool {
    let next = || step.fetch_add(1, Relaxed);
    let t = object::create(numbered(i)).unwrap();
    next(); // Step 1 commits the type.
    object::commit(t).unwrap();
    next(); // Step 2 packs and unpacks.
    let mut good = right(t);
    next(); // Step 3 sets an attribute and a name, and converts to an integer.
    object::set_attribute(t, keyval, 7).unwrap();
    object::set_name(t, b"name").unwrap();
    let integer = object::to_integer(t).unwrap();
    good &= object::from_integer(integer) == Ok(t);
    next(); // Step 4 duplicates the type.
    let d = object::dup(t).unwrap();
    good &= object::get_attribute(d, keyval) == Ok(Some(7)) && object::name(t).unwrap() == b"name";
    next(); // Step 5 frees the type.
    object::free(t).unwrap();
    next(); // Step 6 uses the duplicate.
    good &= right(d);
    object::delete_attribute(d, keyval).unwrap();
    object::free(d).unwrap();
    next(); // Step 7 creates a keyval and frees it.
    let own = object::create_keyval(Box::new(Copied)).unwrap();
    object::free_keyval(own).unwrap();
    good
}

/// Runs all operations of the library that do not belong to a single datatype, and counts its steps
/// in `step`. Returns true if all results were right.
fn other_operations(step: &AtomicU32) -> bool {
    let next = || step.fetch_add(1, Relaxed);
    next(); // Step 8 reads counters and the report, and configures the library.
    let report = tool::report();
    let totals = calls::totals();
    runtime::configure(|_| Ok(())).unwrap();
    next(); // Step 9 reads a variable of the tool interface.
    tool::init();
    let session = tool::open_session().unwrap();
    let meter = tool::alloc_performance(session, 0).unwrap();
    let value = tool::read_performance(session, meter);
    tool::close_session(session).unwrap();
    tool::finalize().unwrap();
    next(); // Step 10 uses predefined types, an F90 type, and the default engine.
    let pair = object::create(Datatype::f90_integer(9).unwrap()).unwrap();
    object::commit(pair).unwrap();
    let named = right(Handle::of_named(Named::DoubleInt));
    let global = ddtc::commit(&numbered(5)).is_ok();
    report.contains("ddtc_commits") && totals.calls[0] > 0 && value.is_ok() && named && global
}

fn configured() {
    // Configure the default engine to use Cranelift, whose compiles take longest, and a small
    // cache, which evicts layouts all the time.
    runtime::configure(|c| {
        (c.native, c.precompiled, c.both_directions, c.cache_bytes) = (false, false, true, 50_000);
        Ok(())
    })
    .unwrap();
}

#[test]
fn children_of_busy_threads_go_on_with_everything() {
    let _alone = alone();
    let forks: i64 = std::env::var("DDTC_FORKS").map_or(1000, |n| n.parse().expect("DDTC_FORKS: a number"));
    configured();
    let _counting = Counting::start();
    let keyval = object::create_keyval(Box::new(Copied)).unwrap();
    let (stop, step, unseen) = (AtomicBool::new(false), Step::new(), AtomicU32::new(0));
    // The numbers of the types that two threads are committing at present. A child process commits
    // the same types.
    let current = [const { AtomicI64::new(0) }; 2];
    let mut faults = Vec::new();
    std::thread::scope(|scope| {
        for (n, current) in current.iter().enumerate() {
            let (stop, unseen) = (&stop, &unseen);
            scope.spawn(move || {
                let mut i = n as i64;
                while !stop.load(Relaxed) {
                    i += 2;
                    current.store(i, Relaxed);
                    assert!(life(i, keyval, unseen), "type {i}");
                }
            });
        }
        scope.spawn(|| {
            // Run through the life of one type first, so that `other_operations` finds counters
            // that are not 0.
            assert!(life(1, keyval, &unseen));
            let mut i = 0;
            while !stop.load(Relaxed) {
                i += 1;
                assert!(other_operations(&unseen));
                if i % 16 == 0 {
                    configured();
                }
                // Make a kernel from templates in a separate engine, and drop this engine at the
                // end of the round.
                let engine = Engine::new(Config::default());
                assert!(engine.commit(&numbered(i)).unwrap().kernel(Direction::Pack).is_some());
                // Start a thread that ends soon.
                scope.spawn(|| assert!(life(0, keyval, &AtomicU32::new(0))));
            }
        });
        for i in 0..forks {
            let child = |step: &AtomicU32| {
                current.iter().all(|c| life(c.load(Relaxed), keyval, step)) && {
                    step.store(0, Relaxed);
                    life(1_000_000 + i, keyval, step) && other_operations(step)
                }
            };
            if let Err(fault) = step.run(child) {
                faults.push(format!("fork {i}: {fault}"));
                // A fault may take minutes, because a child may hang. So stop after three faults.
                if faults.len() == 3 {
                    break;
                }
            }
        }
        stop.store(true, Relaxed);
    });
    assert!(faults.is_empty(), "{faults:#?}");
    object::free_keyval(keyval).unwrap();
}

/// Subscriber of `tracing` that blocks a thread in the middle of a compile, after the stage
/// `schedule`, until the test sends to `go` or closes the channel.
struct PauseAfterSchedule {
    reached: Sender<()>,
    go: Mutex<Receiver<()>>,
}

struct Stage(bool);

impl tracing::field::Visit for Stage {
    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        self.0 |= field.name() == "stage" && value == "schedule";
    }
    fn record_debug(&mut self, _: &tracing::field::Field, _: &dyn std::fmt::Debug) {}
}

impl Subscriber for PauseAfterSchedule {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut stage = Stage(false);
        event.record(&mut stage);
        if stage.0 && self.reached.send(()).is_ok() {
            let _ = self.go.lock().unwrap().recv();
        }
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Tests a fork during a compile of another thread: the fork does not wait for the compile, and the
/// child process compiles the layout itself.
#[test]
fn a_child_compiles_what_another_thread_was_compiling() {
    let _alone = alone();
    let (engine, step) = (Engine::new(Config { both_directions: true, ..Config::default() }), Step::new());
    let (reached, is_reached) = channel();
    let (resume, go) = channel();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let subscriber = PauseAfterSchedule { reached, go: go.into() };
            tracing::subscriber::with_default(subscriber, || engine.commit(&numbered(3)).unwrap())
        });
        is_reached.recv_timeout(HANG_TIMEOUT).unwrap();
        let done = step.run(|_| {
            let committed = engine.commit(&numbered(3)).unwrap();
            committed.kernel(Direction::Pack).is_some() && committed.kernel(Direction::Unpack).is_some()
        });
        drop((resume, is_reached));
        let committed = first.join().unwrap();
        assert_eq!(done, Ok(()));
        assert!(committed.kernel(Direction::Pack).is_some());
        assert_eq!(engine.counters().compiles, 2, "once per direction in the parent");
    });
}

/// Tests a fork during a compile in lazy mode ([`Mode::Lazy`]), in which a layout is compiled once
/// its calls have moved enough bytes. The call that reaches the threshold compiles. The child
/// process inherits the number of bytes that were counted, so its next call must compile.
#[test]
fn a_child_compiles_what_a_call_of_another_thread_was_compiling() {
    let _alone = alone();
    let config = Config { mode: Mode::Lazy, lazy_threshold: 1000, ..Config::default() };
    let (engine, step) = (Engine::new(config), Step::new());
    let committed = engine.commit(&numbered(3)).unwrap();
    let instances = 2 * 1000 / committed.packed_size(1).unwrap();
    let pack = |count: u64| {
        let memory = vec![1; committed.datatype().extent() as usize * count as usize + 4096];
        let mut packed = vec![0; committed.packed_size(count).unwrap() as usize];
        committed.pack(&memory, 0, count, &mut packed).unwrap();
    };
    let (reached, is_reached) = channel();
    let (resume, go) = channel();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let subscriber = PauseAfterSchedule { reached, go: go.into() };
            tracing::subscriber::with_default(subscriber, || pack(instances));
        });
        is_reached.recv_timeout(HANG_TIMEOUT).unwrap();
        // Calls of other threads do not wait for the compile, and do not start another compile.
        pack(1);
        assert_eq!(engine.counters().compiles, 0);
        let done = step.run(|_| {
            pack(1);
            engine.counters().compiles == 1
        });
        drop((resume, is_reached));
        first.join().unwrap();
        assert_eq!(done, Ok(()));
        assert_eq!(engine.counters().compiles, 1);
    });
}
