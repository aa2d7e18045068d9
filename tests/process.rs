//! Tests of the library's effects on the whole process: fork, memory over many commits, bounds on
//! the memory of one commit, absolute addresses, and threads.
//!
//! The tests of this file run one at a time, because they measure the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ddtc::internal::corpus;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::error::ErrorClass;
use ddtc::internal::exec::interp;
use ddtc::internal::fuzzing::guard::Rig;
use ddtc::internal::fuzzing::{Case, Choices, check_growth, growing, pattern, seeds};
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;

/// Allocator that counts allocated bytes, and that can make large allocations of one thread fail.
struct Counting;

/// Number of bytes that the process has allocated and not yet freed.
static HEAP: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Three numbers for this thread: the bytes that it has allocated minus those that it has
    /// freed, the maximum of this difference, and the number of its allocations.
    static MINE: Cell<(isize, isize, u64)> = const { Cell::new((0, 0, 0)) };
    /// Number of large allocations of this thread that still succeed before one fails. The value is
    /// `None` if no allocation is to fail.
    static UNTIL_REFUSED: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Size in bytes from which an allocation counts as large. Only memory that grows with the datatype
/// is allocated in such sizes.
const LARGE: usize = 1 << 20;

fn refused(size: usize) -> bool {
    let left = UNTIL_REFUSED.get().filter(|_| size >= LARGE);
    left.is_some_and(|n| {
        UNTIL_REFUSED.set(n.checked_sub(1));
        n == 0
    })
}

fn count(grown: isize) {
    HEAP.fetch_add(grown as usize, Relaxed);
    let (now, peak, calls) = MINE.get();
    let now = now + grown;
    MINE.set((now, peak.max(now), calls + u64::from(grown > 0)));
}

// SAFETY: each method passes its arguments unchanged to `System`, which is a correct allocator. Or
// `alloc` and `realloc` return null without any effect, which the trait allows. Counting does not
// allocate and does not panic.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refused(layout.size()) {
            return std::ptr::null_mut();
        }
        count(layout.size() as isize);
        // SAFETY: the caller promises a layout of non-zero size, which `System.alloc` requires.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller promises that `ptr` is a block of this allocator with this layout. All
        // blocks come from `System`.
        unsafe { System.dealloc(ptr, layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new: usize) -> *mut u8 {
        if refused(new) {
            return std::ptr::null_mut();
        }
        // The old and the new block may exist at the same time, so count the new block before the
        // old one is subtracted.
        count(new as isize);
        count(-(layout.size() as isize));
        // SAFETY: the caller promises that `ptr` is a block of this allocator with this layout, and
        // that `new` is not zero and a valid size. All blocks come from `System`.
        unsafe { System.realloc(ptr, layout, new) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `f` and returns four values: the result of `f`, the maximum number of bytes that `f` had
/// allocated on this thread at one time, the number of bytes that it kept, and the number of its
/// allocations.
fn allocated<T>(f: impl FnOnce() -> T) -> (T, usize, usize, u64) {
    let (before, _, calls) = MINE.get();
    MINE.set((before, before, calls));
    let out = f();
    let (now, peak, after) = MINE.get();
    (out, (peak - before).max(0) as usize, (now - before).max(0) as usize, after - calls)
}

fn parse(text: &str) -> Datatype {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Returns the datatype with number `i`. The layouts of one third of these datatypes have machine
/// code of their own. In each of the other two thirds, layouts whose plans have one shape share
/// code.
fn numbered(i: i64) -> Datatype {
    match i % 3 {
        0 => parse(&format!("resized(0, {}, hindexed([3, 5], [0, {}], char))", 20_000 + i, 100 + i % 7000)),
        1 => parse(&format!("hvector(3, 1, {}, vector(40, 3, 7, int))", 4000 + i)),
        _ => parse(&format!(
            "hindexed_block(2, [0, 31, 77, {}, 5, 300, 411, 1009, 640, 801, 902, 1203, 1304, 1405, 1506, 1607, 1708], int)",
            2000 + i
        )),
    }
}

/// Commits the datatypes whose numbers `types` lists. Returns true if all of them pack and unpack
/// the right bytes.
fn right(engine: &Engine, types: impl Iterator<Item = i64>, rig: &mut Rig) -> bool {
    types.into_iter().all(|i| {
        let t = numbered(i);
        let committed = engine.commit(&t);
        let case = Case::new(&t, 2);
        matches!((committed, case), (Ok(c), Ok(case)) if case.committed("fork", &c, rig).is_ok())
    })
}

#[test]
fn fork_compiles_and_frees_on_both_sides() {
    let _alone = alone();
    // The capacity of the cache is small, so that most layouts are evicted and compiled again.
    let engine = Engine::new(Config { cache_bytes: 30_000, both_directions: true, ..Config::default() });
    let mut rig = Rig::default();
    let live: Vec<_> = (0..30)
        .map(|i| (engine.commit(&numbered(i)).unwrap(), Case::new(&numbered(i), 3).unwrap()))
        .collect();
    let side = |rig: &mut Rig, own: i64| {
        // Check four groups of datatypes, twice: types that were compiled before the fork, new
        // types that both processes commit, new types that only this process commits, and old types
        // again.
        (0..2).all(|_| {
            live.iter().all(|(c, case)| case.committed("fork", c, rig).is_ok())
                && right(&engine, 100..140, rig)
                && right(&engine, own..own + 40, rig)
                && right(&engine, 0..30, rig)
        }) && engine.counters().fallbacks == 0
    };
    assert!(right(&engine, 0..60, &mut rig));
    // SAFETY: no other thread uses an engine, because `alone` is held. The child runs only `side`,
    // prints nothing, catches panics, and exits through `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        // SAFETY: `alarm` has no precondition. A child that has not finished after a minute is in a
        // deadlock.
        unsafe { libc::alarm(60) };
        let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| side(&mut rig, 10_000)));
        // SAFETY: `_exit` has no precondition.
        unsafe { libc::_exit(i32::from(!matches!(good, Ok(true)))) }
    }
    let parent = side(&mut rig, 20_000);
    let mut status = 0;
    // SAFETY: `status` is a local variable that is valid for writes during the call.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert!(parent && status == 0, "parent {parent}, status of the child {status:#x}");
}

/// Returns the resident memory of this process in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    // SAFETY: `sysconf` has no precondition.
    pages * usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap()
}

#[test]
fn many_commits_and_drops_do_not_grow() {
    let _alone = alone();
    let engine = Engine::new(Config { cache_bytes: 1 << 20, ..Config::default() });
    let commit = |i: i64| drop(engine.commit(&numbered(i)).unwrap());
    // In each round, half of the commits are of new layouts, and the other half of known layouts.
    let round = |from: i64, to: i64| (from..to).for_each(|i| commit(if i % 2 == 0 { i } else { i % 100 }));
    round(0, 40_000);
    let (counters, rss, heap) = (engine.counters(), resident(), HEAP.load(Relaxed));
    round(40_000, 200_000);
    let after = engine.counters();
    assert_eq!((after.commits, after.fallbacks), (200_000, 0));
    assert!(after.compiles > 100_000, "{after:?}");
    let grown = |now: usize, before: usize| now.saturating_sub(before);
    assert!(
        after.cached_bytes <= 1 << 20 && after.code_bytes <= counters.code_bytes + (64 << 10),
        "{counters:?}\n{after:?}"
    );
    assert!(
        grown(HEAP.load(Relaxed), heap) < 512 << 10,
        "heap grew by {} bytes",
        grown(HEAP.load(Relaxed), heap)
    );
    assert!(grown(resident(), rss) < 4 << 20, "resident memory grew by {} bytes", grown(resident(), rss));
}

#[test]
fn one_commit_takes_bounded_memory() {
    let _alone = alone();
    let indexed = |n: i64| {
        let lengths: Vec<i64> = (0..n).map(|i| 1 + i % 5).collect();
        let at: Vec<i64> = (0..n).map(|i| i * 7 + i * i % 3).collect();
        Datatype::indexed(&lengths, &at, &parse("int")).unwrap()
    };
    let types = [
        ("DAG of 40 levels", corpus::datatype("@dag(40)").unwrap()),
        ("depth 1000", corpus::datatype("@displaced(1000, 8)").unwrap()),
        ("depth 100,000", corpus::datatype("@displaced(100000, 8)").unwrap()),
        ("10^4 different children", corpus::datatype("@children(10000)").unwrap()),
        ("chain of 20,000", corpus::datatype("@chain(20000)").unwrap()),
        ("chain of 100,000", corpus::datatype("@chain(100000)").unwrap()),
        ("tangle of 20 levels", corpus::datatype("@tangle(20)").unwrap()),
        ("tangle of 58 levels", corpus::datatype("@tangle(58)").unwrap()),
        ("10^4 members of 1000 rows", corpus::datatype("@wide(10000, 1000)").unwrap()),
        ("10^6 members of 1000 rows", corpus::datatype("@wide(1000000, 1000)").unwrap()),
        ("10 members of 10^5 rows", corpus::datatype("@wide(10, 100000)").unwrap()),
        ("all constructors, 20,000 deep", corpus::datatype("@deep(20000)").unwrap()),
        ("10^6 blocks", indexed(1_000_000)),
        (
            "10^6 equal blocks",
            corpus::datatype("indexed(@fill(1000000, 1), @sum(@uniform(1000000, 2, 6, 91)), int)").unwrap(),
        ),
    ];
    for (name, t) in types {
        let engine = Engine::new(Config { both_directions: true, ..Config::default() });
        let (committed, peak, kept, _) = allocated(|| engine.commit(&t).unwrap());
        // During a commit, tables of nodes need at most 192 bytes per argument of the datatype.
        // After the commit, at most 24 bytes per argument remain, which is 48 per block with its
        // length and its displacement. One megabyte is added for memory that does not grow with the
        // datatype, such as the memory that the code generator needs whatever it compiles.
        let (max_peak, max_kept) = (192 * t.arguments() + (1 << 20), 48 * t.arguments() / 2 + (1 << 20));
        println!("{name}: {peak} bytes at most, {kept} for good, {} arguments", t.arguments());
        assert!(peak as u64 <= max_peak, "{name}: {peak} bytes at most, {} arguments", t.arguments());
        assert!(kept as u64 <= max_kept, "{name}: {kept} bytes for good, {} arguments", t.arguments());
        assert!(committed.packed_size(1).unwrap() > 0);
        assert_eq!(engine.counters().fallbacks, 0, "{name}");
    }
}

/// Tests the bounds on the memory of a commit for random chains and DAGs of all constructors, with
/// irregular members.
#[test]
fn random_growth_takes_bounded_memory() {
    let _alone = alone();
    for seed in 0..300 {
        let t = growing(&mut Choices::from_seed(seed), 400);
        let engine = Engine::new(Config { both_directions: true, ..Config::default() });
        let (_, peak, kept, _) = allocated(|| engine.commit(&t).unwrap());
        let arguments = t.arguments();
        assert!(
            peak as u64 <= 192 * arguments + (2 << 20),
            "seed {seed}: {peak} at most, {arguments} arguments"
        );
        assert!(
            kept as u64 <= 48 * arguments + (1 << 20),
            "seed {seed}: {kept} for good, {arguments} arguments"
        );
        check_growth(&t, true).unwrap_or_else(|m| panic!("seed {seed}: {m}"));
    }
}

/// Tests that writing and reading a wire form fail with class `NoMem` if memory is refused. Writing
/// fails whichever of its large allocations is refused. Reading fails if its first or its third
/// large allocation is refused: each of these two is the first allocation for one of the two tables
/// of the datatype.
#[test]
fn wire_forms_without_memory_are_errors() {
    let _alone = alone();
    let t = corpus::datatype("indexed(@fill(1000000, 300), @sum(@uniform(1000000, 2, 6, 91)), int)").unwrap();
    let form = t.to_wire().unwrap();
    for refused in [0, 2] {
        UNTIL_REFUSED.set(Some(refused));
        let read = Datatype::from_wire(&form);
        assert_eq!(UNTIL_REFUSED.take(), None);
        assert_eq!(read.unwrap_err().class(), ErrorClass::NoMem);
    }
    let wide = corpus::datatype("@children(300000)").unwrap();
    let mut refusals = 0;
    loop {
        UNTIL_REFUSED.set(Some(refusals));
        let written = wide.to_wire();
        match UNTIL_REFUSED.take() {
            None => assert_eq!(written.unwrap_err().class(), ErrorClass::NoMem),
            Some(_) => break assert!(written.is_ok()),
        }
        refusals += 1;
    }
    assert!(refusals > 3, "{refusals}");
}

/// Tests commits for which memory that grows with the number of arguments is refused. Such a commit
/// returns an error of class `NoMem`, or succeeds without a kernel. The process is not aborted.
#[test]
fn memory_that_is_refused_is_an_error() {
    let _alone = alone();
    let indexed = "indexed(@fill(1000000, 1), @sum(@uniform(1000000, 2, 6, 91)), int)";
    for text in ["@wide(300000, 10)", "@wide(3, 1000000)", indexed] {
        let t = corpus::datatype(text).unwrap();
        let (mut refusals, mut interpreted) = (0, 0);
        // Commit the type again and again. In each round a later large allocation fails. The last
        // round is the first one in which no allocation fails.
        for n in 0.. {
            let engine = Engine::new(Config { both_directions: true, ..Config::default() });
            UNTIL_REFUSED.set(Some(n));
            let committed = engine.commit(&t);
            let all = UNTIL_REFUSED.take().is_some();
            match committed {
                Err(e) => assert_eq!(e.class(), ErrorClass::NoMem, "{text}, {n}: {e}"),
                Ok(c) => {
                    assert_eq!(c.packed_size(1).unwrap(), t.size() as u64);
                    interpreted += u32::from(c.kernel(Direction::Pack).is_none());
                }
            }
            if all {
                break;
            }
            refusals += 1;
        }
        println!("{text}: {refusals} large allocations, {interpreted} without a kernel");
        assert!(refusals > 0, "{text}: {refusals} large allocations");
    }
}

/// Tests that reading a wire form needs memory in proportion to the length of the form. The worst
/// case are the dimensions of a darray: each dimension takes five bytes in the form and becomes
/// several nodes.
#[test]
fn wire_forms_are_read_in_bounded_memory() {
    let _alone = alone();
    let chain = (0..100_000).fold(parse("int"), |t, _| t.dup());
    let dimensions = |n: usize| format!("{:?}", vec![2; n]);
    let (n, one) = (60, vec![1; 60]);
    let cyclic = vec!["cyclic"; n].join(",");
    let darray = format!("darray(1, 0, {}, [{cyclic}], {one:?}, {one:?}, C, int)", dimensions(n));
    let arrays = format!("subarray({}, {one:?}, {one:?}, Fortran, int)", dimensions(n));
    // Each dimension of this darray expands to two loops, the rest of a block, and a structure that
    // contains these.
    let all = |value: &str| format!("[{}]", vec![value; 16].join(","));
    let worst =
        format!("darray(65536, 0, {}, {}, {}, {}, C, char)", all("14"), all("cyclic"), all("3"), all("2"));
    let worst: Vec<Datatype> = (0..300).map(|_| parse(&worst)).collect();
    let worst = Datatype::structure(&vec![1; 300], &vec![0; 300], &worst).unwrap();
    let mut types = vec![chain, parse(&darray), parse(&arrays), worst];
    types.extend(
        ["@wide(100000, 100)", "@deep(20000)", "@children(10000)"].map(|t| corpus::datatype(t).unwrap()),
    );
    types.extend((0..100).map(|seed| growing(&mut Choices::from_seed(seed), 400)));
    for t in types {
        let form = t.to_wire().unwrap();
        let (back, peak, kept, _) = allocated(|| Datatype::from_wire(&form).unwrap());
        assert!(
            peak <= 256 * form.len() + 4096,
            "{peak} at most, {kept} kept, {} of {:.200}",
            form.len(),
            t.to_string()
        );
        println!("{} bytes: {peak} at most, {:.1} a byte", form.len(), peak as f64 / form.len() as f64);
        assert_eq!(back.arguments(), t.arguments());
        // A form in which a length or a count was changed, with a checksum that fits the change,
        // must not lead to a large allocation.
        let mut lie = form;
        let (end, at) = (lie.len() - 8, lie.len() - 9);
        lie[at] ^= 0x41;
        let checksum = xxhash_rust::xxh3::xxh3_64(&lie[..end]);
        lie[end..].copy_from_slice(&checksum.to_le_bytes());
        let (refused, peak, kept, _) = allocated(|| Datatype::from_wire(&lie).map(drop));
        assert!(peak <= 256 * lie.len() + 4096 && kept < 1024, "{refused:?}: {peak} at most, {kept} kept");
    }
}

#[test]
fn packing_allocates_nothing() {
    let _alone = alone();
    for (mode, text) in [
        (Mode::Commit, "vector(34, 10, 64, double)"),
        (Mode::Commit, "struct([1, 1, 3], [0, 8, 16], [int, double, float])"),
        (Mode::Commit, "hindexed([1000, 2000, 3001], [0, 5000, 9000], char)"),
        (Mode::Interpret, "hvector(5, 2, 100, vector(3, 2, 4, int))"),
        (Mode::Interpret, "hindexed([3, 1, 2], [100, 4, 57], int)"),
    ] {
        let engine = Engine::new(Config { mode, both_directions: true, ..Config::default() });
        let t = parse(text);
        let c = engine.commit(&t).unwrap();
        let (mut user, mut packed) = (vec![1; 100_000], vec![0; t.size() as usize * 4]);
        let ((), _, _, calls) = allocated(|| {
            for _ in 0..3 {
                c.pack(&user, 0, 4, &mut packed).unwrap();
                c.unpack(&packed, 0, 4, &mut user).unwrap();
            }
        });
        assert_eq!(calls, 0, "{mode} {text}");
        // Calls for ranges of the packed stream do not allocate either. The first of these calls is
        // an exception: it allocates the table for the kernels of the layout's parts.
        c.pack_range(&user, 0, 4, 5, &mut packed[5..40]).unwrap();
        let ((), _, _, calls) = allocated(|| {
            c.pack_range(&user, 0, 4, 5, &mut packed[5..40]).unwrap();
            c.unpack_range(&packed[7..50], 0, 4, 7, &mut user).unwrap();
        });
        assert_eq!(calls, 0, "ranges of {mode} {text}");
    }
}

/// Tests types of absolute addresses, as programs use them with `MPI_BOTTOM`: the buffer is null,
/// and the displacements of the type are addresses (MPI 5.0, 5.1.12).
#[test]
fn absolute_addresses_with_a_null_buffer() {
    let _alone = alone();
    let mut first: Vec<u8> = (0..4000).map(|i| pattern(seeds::USER, i)).collect();
    let mut second: Vec<u8> = (0..400).map(|i| pattern(seeds::BEFORE, i)).collect();
    let at = [first.as_mut_ptr() as i64 + 8, second.as_mut_ptr() as i64];
    let rows = parse("vector(20, 3, 25, int)");
    let t = Datatype::structure(&[1, 30], &at, &[rows, parse("double")]).unwrap();
    for mode in Mode::ALL {
        let engine = Engine::new(Config { mode, lazy_threshold: 1, ..Config::default() });
        let c = engine.commit(&t).unwrap();
        let mut want = Vec::new();
        interp::for_each(&t, 1, &mut |address, len, _| {
            // SAFETY: the datatype lists `len` bytes at `address` inside `first` or `second`. These
            // two vectors are alive and are not written during the copy.
            want.extend_from_slice(unsafe { std::slice::from_raw_parts(address as *const u8, len) });
        })
        .unwrap();
        let mut packed = vec![0; want.len()];
        // SAFETY: all bytes of the instance lie in `first` and `second`. `packed` is another vector
        // and has the packed size of one instance. Nothing else accesses the three buffers during
        // the call.
        unsafe { c.pack_raw(std::ptr::null(), 1, packed.as_mut_ptr()) };
        assert_eq!(packed, want, "{mode}");
        let (kept_first, kept_second) = (first.clone(), second.clone());
        let flipped: Vec<u8> = want.iter().map(|b| !b).collect();
        // SAFETY: all bytes of the instance lie in `first` and `second`, which are mutable and
        // whose addresses were taken as `*mut`. `flipped` is another vector, with the packed size.
        // Nothing else accesses the three vectors during the call.
        unsafe { c.unpack_raw(flipped.as_ptr(), 1, std::ptr::null_mut()) };
        // SAFETY: the buffers are those of the first call of `pack_raw`: the bytes of the instance
        // lie in `first` and `second`, and `packed` has the packed size of one instance.
        unsafe { c.pack_raw(std::ptr::null(), 1, packed.as_mut_ptr()) };
        assert_eq!(packed, flipped, "{mode}");
        assert_eq!((&first[..8], &second[240..]), (&kept_first[..8], &kept_second[240..]), "{mode}: gaps");
        (first.copy_from_slice(&kept_first), second.copy_from_slice(&kept_second)).0
    }
}

#[test]
fn one_committed_type_on_many_threads() {
    let _alone = alone();
    for mode in [Mode::Interpret, Mode::Lazy, Mode::Commit] {
        let engine = Engine::new(Config { mode, lazy_threshold: 5000, ..Config::default() });
        for text in ["hvector(5, 2, 100, vector(3, 2, 4, int))", "indexed([1, 2, 3], [0, 4, 9], double)"] {
            let t = parse(text);
            let c = engine.commit(&t).unwrap();
            let case = Case::new(&t, 4).unwrap();
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let mut rig = Rig::default();
                        for i in 0..50 {
                            case.committed("threads", &c, &mut rig).unwrap_or_else(|m| panic!("{m}"));
                            let cut = i * case.packed_len() / 50;
                            let pieces = [cut..case.packed_len(), 0..cut];
                            case.ranges(&c, &mut rig, &pieces, ddtc::internal::fuzzing::guard::Edge::Back)
                                .unwrap_or_else(|m| panic!("{m}"));
                        }
                    });
                }
            });
            let compiles = if mode == Mode::Interpret { "not compiled" } else { "" };
            assert!(c.schedule(Direction::Pack).starts_with(compiles));
        }
    }
}
