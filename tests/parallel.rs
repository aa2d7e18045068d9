//! Tests of calls that several threads serve, and of non-temporal stores. Such calls must move the
//! same bytes as one thread does, however a call is split, and must be split as expected.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread::ThreadId;

use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::exec::interp;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The part of a call that one thread moves, as an event of the library's log describes this part.
#[derive(Clone, Debug, Default)]
struct Piece {
    from: Option<u64>,
    to: Option<u64>,
    thread: Option<ThreadId>,
    /// The way in which a whole call was served, such as `kernel`. The field is set only for events
    /// about whole calls.
    by: Option<String>,
}

impl Visit for Piece {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "from" => self.from = Some(value),
            "to" => self.to = Some(value),
            _ => {}
        }
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "by" {
            self.by = Some(value.to_owned());
        }
    }
    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

static HEARD: Mutex<Vec<Piece>> = Mutex::new(Vec::new());

/// Subscriber of `tracing` that records the events of all threads in `HEARD`.
struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut piece = Piece { thread: Some(std::thread::current().id()), ..Piece::default() };
        event.record(&mut piece);
        if piece.from.is_some() || piece.by.is_some() {
            HEARD.lock().unwrap().push(piece);
        }
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Returns a guard that only one test at a time can hold, because events of all tests of the
/// process are recorded together.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| tracing::subscriber::set_global_default(Listener).unwrap());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns what was recorded since the last call of this function: the parts of calls that threads
/// moved, and the ways in which whole calls were served.
fn heard() -> (Vec<Piece>, Vec<String>) {
    let heard = std::mem::take(&mut *HEARD.lock().unwrap());
    let (calls, pieces): (Vec<Piece>, Vec<Piece>) = heard.into_iter().partition(|p| p.by.is_some());
    (pieces, calls.into_iter().filter_map(|p| p.by).collect())
}

/// Runs `call` and returns the ranges of the packed stream into which it was split, in ascending
/// order. Checks that a thread of its own moved each range. The result is empty if the call was not
/// split.
fn pieces(call: impl FnOnce()) -> Vec<(u64, u64)> {
    heard();
    call();
    let heard = heard().0;
    let threads: HashSet<ThreadId> = heard.iter().filter_map(|p| p.thread).collect();
    assert_eq!(threads.len(), heard.len(), "{heard:?}");
    let mut ranges: Vec<(u64, u64)> = heard.iter().map(|p| (p.from.unwrap(), p.to.unwrap())).collect();
    ranges.sort_unstable();
    ranges
}

/// Returns user memory for `count` instances of `t`, beginning at displacement 0 of the first
/// instance.
fn user(t: &Datatype, count: u64) -> Vec<u8> {
    let len = ((count as i64 - 1) * t.extent() + t.true_ub()) as usize;
    (0..len).map(|i| (i % 253) as u8).collect()
}

#[test]
fn pieces_make_the_whole() {
    let _alone = alone();
    let types = [
        "vector(1000, 3, 7, double)",
        "hvector(20, 3000, 5000, char)",
        "contiguous(5000, int)",
        "resized(0, 32, struct([1, 1, 3], [0, 8, 16], [int, double, float]))",
        "resized(0, 16, vector(64, 1, 64, double_complex))",
        // The blocks of this type overlap, so an unpack stays on one thread.
        "vector(1000, 3, 2, double)",
    ];
    for text in types {
        let t: Datatype = text.parse().unwrap();
        for (threads, stream_bytes) in [(2, u64::MAX), (3, u64::MAX), (8, 1 << 10), (1, 1 << 10)] {
            let config = Config { threads, parallel_bytes: 1 << 10, stream_bytes, ..Config::default() };
            let engine = Engine::new(config);
            let c = engine.commit(&t).unwrap();
            let count = 64;
            let n = c.packed_size(count).unwrap() as usize;
            let user = user(&t, count);
            let (mut got, mut want) = (vec![0; n], vec![0; n]);
            c.pack(&user, 0, count, &mut got).unwrap();
            interp::pack(&t, count, &user, 0, &mut want).unwrap();
            assert!(got == want, "pack {text} on {threads} threads");
            let (mut got, mut want) = (vec![0xAA; user.len()], vec![0xAA; user.len()]);
            let stream: Vec<u8> = (0..n).map(|i| (i % 241) as u8).collect();
            c.unpack(&stream, 0, count, &mut got).unwrap();
            interp::unpack(&t, count, &stream, &mut want, 0).unwrap();
            assert!(got == want, "unpack {text} on {threads} threads");
        }
    }
}

/// Packs and unpacks `count` instances, and returns the ranges into which each of the two calls was
/// split.
fn splits(engine: &Engine, text: &str, count: u64) -> [Vec<(u64, u64)>; 2] {
    let t: Datatype = text.parse().unwrap();
    let c = engine.commit(&t).unwrap();
    let mut user = user(&t, count);
    let mut packed = vec![0; c.packed_size(count).unwrap() as usize];
    let pack = pieces(|| assert_eq!(c.pack(&user, 0, count, &mut packed), Ok(packed.len())));
    let unpack = pieces(|| assert_eq!(c.unpack(&packed, 0, count, &mut user), Ok(packed.len())));
    [pack, unpack]
}

#[test]
fn a_call_is_split_over_as_many_threads_as_asked() {
    let _alone = alone();
    let engine = |threads| Engine::new(Config { threads, parallel_bytes: 1 << 10, ..Config::default() });
    // The packed stream has 3000 bytes. Ranges end at multiples of 64 bytes, except for the last
    // range, which ends with the stream.
    let text = "vector(100, 3, 7, char)";
    let split = |threads, count| splits(&engine(threads), text, count);
    let both = |ranges: &[(u64, u64)]| [ranges.to_vec(), ranges.to_vec()];
    assert_eq!(split(1, 10), both(&[]));
    assert_eq!(split(2, 10), both(&[(0, 1536), (1536, 3000)]));
    assert_eq!(split(3, 10), both(&[(0, 1024), (1024, 2048), (2048, 3000)]));
    // The stream now has 1200 bytes. They can be split into only 19 ranges of up to 64 bytes, so no
    // more than 19 of the 40 threads take part.
    let lines: Vec<(u64, u64)> = (0..19).map(|i| (64 * i, 1200.min(64 * i + 64))).collect();
    assert_eq!(split(40, 4), both(&lines));
    // A call is split if it moves at least `parallel_bytes` bytes, which is 1024 in this test.
    let bytes = |n: u64| splits(&engine(2), "resized(0, 2, char)", n);
    assert_eq!(bytes(1023), both(&[]));
    assert_eq!(bytes(1024), both(&[(0, 512), (512, 1024)]));
    // By default no call is split, however many bytes it moves.
    let one = Engine::new(Config { parallel_bytes: 0, ..Config::default() });
    assert_eq!(splits(&one, text, 1000), both(&[]));
    assert_eq!((Config::default().threads, Config::default().stream_bytes), (1, u64::MAX));
    let long = Engine::new(Config { threads: 2, ..Config::default() });
    assert_eq!(splits(&long, text, 1000), both(&[]));
}

#[test]
fn an_unpack_with_overlap_is_not_split() {
    let _alone = alone();
    let engine = Engine::new(Config { threads: 2, parallel_bytes: 0, ..Config::default() });
    let split = |text: &str, count: u64| splits(&engine, text, count).map(|pieces| pieces.len());
    assert_eq!(split("vector(100, 3, 2, double)", 3), [2, 0]);
    assert_eq!(split("vector(100, 2, 2, double)", 3), [2, 2]);
    // The instances of this type are columns of a matrix with four columns. Four instances do not
    // overlap. A fifth instance overlaps the first one, since it is the same column from the second
    // row on.
    let columns = "resized(0, 4, vector(50, 1, 4, int))";
    assert_eq!(split(columns, 4), [2, 2]);
    assert_eq!(split(columns, 5), [2, 0]);
}

/// Tests that the calling thread moves all parts of a call if the system cannot start another
/// thread. The test starts a process of its own, because no more threads can be started in it
/// afterwards.
#[test]
fn no_thread_to_be_had() {
    const NAME: &str = "no_thread_to_be_had";
    const CHILD: &str = "DDTC_TEST_WITHOUT_THREADS";
    if std::env::var_os(CHILD).is_none() {
        let exe = std::env::current_exe().unwrap();
        let run = std::process::Command::new(exe).args(["--exact", NAME]).env(CHILD, "1").output().unwrap();
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        assert!(run.status.success() && said.contains("1 passed"), "{said}{run:?}");
        return;
    }
    let _alone = alone();
    let engine = Engine::new(Config { threads: 3, parallel_bytes: 0, ..Config::default() });
    let t: Datatype = "vector(100, 3, 7, char)".parse().unwrap();
    let c = engine.commit(&t).unwrap();
    let (user, mut want, mut got) = (user(&t, 10), vec![0; 3000], vec![0; 3000]);
    interp::pack(&t, 10, &user, 0, &mut want).unwrap();
    // Limit the address space to 64 MiB more than is in use, which is enough for the stacks of some
    // threads. Then start threads until no more can be started. These threads never end, since a
    // new thread could use the stack of a thread that has ended.
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split_whitespace().next().unwrap().parse().unwrap();
    // SAFETY: `sysconf` has no precondition.
    let max = pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64 + (64 << 20);
    let limit = libc::rlimit { rlim_cur: max, rlim_max: max };
    // SAFETY: `limit` is a valid `rlimit` that outlives the call, and `setrlimit` only reads it.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
    let sleep = || loop {
        std::thread::park();
    };
    let threads = (0..1000).take_while(|_| std::thread::Builder::new().spawn(sleep).is_ok()).count();
    assert!(threads < 1000, "the limit is not kept");
    heard();
    c.pack(&user, 0, 10, &mut got).unwrap();
    let heard = heard().0;
    let here = Some(std::thread::current().id());
    assert!(heard.len() == 3 && heard.iter().all(|p| p.thread == here), "{heard:?}");
    assert!(got == want);
}

/// Tests in which way calls are served under several configurations. A call that goes directly to
/// its kernel records no event, so its way is an empty text.
#[test]
fn calls_are_served_as_configured() {
    let _alone = alone();
    let t: Datatype = "resized(0, 2, contiguous(1, char))".parse().unwrap();
    let served = |config: Config, count: u64| {
        let c = Engine::new(config).commit(&t).unwrap();
        let (mut user, mut packed) = (vec![7; 2 * count as usize], vec![0; count as usize]);
        heard();
        c.pack(&user, 0, count, &mut packed).unwrap();
        let pack = heard().1.concat();
        assert!(packed.iter().all(|&b| b == 7));
        c.unpack(&packed, 0, count, &mut user).unwrap();
        [pack, heard().1.concat()]
    };
    let config = Config { both_directions: true, ..Config::default() };
    let mode = |mode| Config { mode, ..config.clone() };
    assert_eq!(served(config.clone(), 100), ["", ""]);
    assert_eq!(served(mode(Mode::Off), 100), ["definition", "definition"]);
    assert_eq!(served(mode(Mode::Interpret), 100), ["walk", "walk"]);
    assert_eq!(served(mode(Mode::Lazy), 100), ["walk", "walk"]);
    assert_eq!(served(Config { check: true, ..config.clone() }, 100), ["kernel", "kernel"]);
    // Unpacking stores nothing to the packed stream, so it is never served by non-temporal stores.
    let streamed = Config { stream_bytes: 100, ..config.clone() };
    assert_eq!(served(streamed.clone(), 99), ["kernel", "kernel"]);
    assert_eq!(served(streamed, 100), ["stream", "kernel"]);
    let threads = Config { threads: 2, parallel_bytes: 100, ..config };
    assert_eq!(served(threads.clone(), 99), ["kernel", "kernel"]);
    assert_eq!(served(threads, 100), ["threads", "threads"]);
}

/// Tests that a range that is the whole packed stream is served by the kernel, like any call for
/// the whole stream. For other ranges no event about a whole call is recorded.
#[test]
fn a_whole_range_is_a_call() {
    let _alone = alone();
    let t: Datatype = "resized(0, 2, contiguous(1, char))".parse().unwrap();
    let c = Engine::new(Config { check: true, ..Config::default() }).commit(&t).unwrap();
    let by = |offset: u64, room: usize| {
        heard();
        c.pack_range(&[0; 20], 0, 10, offset, &mut vec![0; room]).unwrap();
        heard().1.concat()
    };
    assert_eq!(by(0, 10), "kernel");
    assert_eq!(by(0, 11), "kernel");
    assert_eq!(by(0, 9), "");
    assert_eq!(by(1, 10), "");
}

/// Tests that an engine limits the number of threads, and that a short call starts only as many as
/// it has pieces of 64 bytes.
#[test]
fn threads_are_limited() {
    let _alone = alone();
    let engine = Engine::new(Config { threads: usize::MAX, parallel_bytes: 1 << 10, ..Config::default() });
    assert_eq!(engine.config().threads, 1024);
    let c = engine.commit(&"vector(512, 1, 2, double)".parse().unwrap()).unwrap();
    let (user, mut packed) = (vec![1; 8192], vec![0; 4096]);
    let made = pieces(|| _ = c.pack(&user, 0, 1, &mut packed).unwrap());
    assert_eq!(made, (0..64).map(|i| (64 * i, 64 * i + 64)).collect::<Vec<_>>());
}
