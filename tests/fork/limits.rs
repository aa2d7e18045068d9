//! Tests of limits that a system can set on a process. A commit must work under each of these
//! limits, with what the limit allows, such as the interpreter in place of compiled code.
//!
//! Each test runs in a child process, since a lowered limit would stay for the tests after it.

use std::io::Write;
use std::mem::MaybeUninit;
use std::os::fd::FromRawFd;

use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine};
use ddtc::internal::exec::interp;
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc::internal::process::without_sigxfsz;
use ddtc::internal::tool;

use crate::alone;
use crate::child::Step;

type Resource = libc::__rlimit_resource_t;

fn limit(what: Resource, to: u64) {
    let limit = libc::rlimit { rlim_cur: to, rlim_max: to };
    // SAFETY: `limit` is a valid `rlimit` that outlives the call, which only reads it.
    assert_eq!(unsafe { libc::setrlimit(what, &raw const limit) }, 0);
}

/// Returns the datatype with number `i`. The layouts of datatypes with different numbers share no
/// code.
fn odd(i: i64) -> Datatype {
    let text = format!("struct([1, 3, 2], [0, {}, {}], [char, short, int])", 8 + 2 * i, 1000 + 4 * i);
    text.parse().unwrap()
}

fn engine() -> Engine {
    Engine::new(Config { both_directions: true, precompiled: false, ..Config::default() })
}

/// Commits a new datatype with number `i`, and returns true if it packs and unpacks the right
/// bytes.
fn right(engine: &Engine, i: i64) -> bool {
    let t = odd(i);
    let committed = engine.commit(&t).unwrap();
    let user: Vec<u8> = (0..t.true_ub()).map(|i| (i % 251) as u8).collect();
    let (mut packed, mut expected) = (vec![0; t.size() as usize], vec![0; t.size() as usize]);
    let (mut back, mut wanted) = (vec![0; user.len()], vec![0; user.len()]);
    committed.pack(&user, 0, 1, &mut packed).unwrap();
    committed.unpack(&packed, 0, 1, &mut back).unwrap();
    interp::pack(&t, 1, &user, 0, &mut expected).unwrap();
    interp::unpack(&t, 1, &expected, &mut wanted, 0).unwrap();
    packed == expected && back == wanted
}

/// Returns true if the layout of the datatype with number `i` has a kernel for packing.
fn compiled(engine: &Engine, i: i64) -> bool {
    engine.commit(&odd(i)).unwrap().kernel(Direction::Pack).is_some()
}

#[test]
fn a_limit_on_file_sizes_leaves_anonymous_pages() {
    let _alone = alone();
    let seen = Step::new().run(|_| {
        limit(libc::RLIMIT_FSIZE, 0);
        let engine = engine();
        let good = (0..20).all(|i| right(&engine, i) && compiled(&engine, i));
        let c = engine.counters();
        good && c.own_pages == c.emitted && c.own_pages > 0 && c.fallbacks == 0
    });
    assert_eq!(seen, Ok(()));
}

/// Tests a limit on file sizes under which the first segment of the executable memory fits, but not
/// the second one. Code in the first segment must stay usable.
#[test]
fn a_limit_on_file_sizes_in_the_middle() {
    let _alone = alone();
    let seen = Step::new().run(|_| {
        limit(libc::RLIMIT_FSIZE, 64 << 10);
        let engine = engine();
        let mut kept = Vec::new();
        let good = (0..1000).all(|i| {
            kept.push(engine.commit(&odd(i)).unwrap());
            right(&engine, i) && compiled(&engine, i)
        });
        let c = engine.counters();
        good && right(&engine, 0) && c.own_pages > 0 && c.own_pages < c.emitted && c.fallbacks == 0
    });
    assert_eq!(seen, Ok(()));
}

/// Tests commits while another thread lowers and raises the limit on file sizes all the time.
#[test]
fn a_limit_on_file_sizes_that_changes_meanwhile() {
    let _alone = alone();
    let seen = Step::new().run(|_| {
        let set = |to: u64| {
            let limit = libc::rlimit { rlim_cur: to, rlim_max: libc::RLIM_INFINITY };
            // SAFETY: `limit` is a valid `rlimit` that outlives the call, which only reads it.
            unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
        };
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    set(0);
                    set(libc::RLIM_INFINITY);
                }
            });
            // Each engine opens a segment of executable memory of its own. So the limit at the time
            // of its commit affects each engine.
            let good = (0..500).all(|i| right(&engine(), i));
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            good
        })
    });
    assert_eq!(seen, Ok(()));
}

#[test]
fn the_report_does_not_end_the_process() {
    let _alone = alone();
    let path = format!("{}/limits-{}.report", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    tool::init();
    let report = tool::CONTROLS.iter().find(|c| c.name == "ddtc_report").unwrap();
    let seen = Step::new().run(|_| {
        tool::write_control(report, &tool::Value::Text(path.clone())).unwrap();
        let before = tool::write_report().is_ok();
        limit(libc::RLIMIT_FSIZE, 16);
        before && tool::write_report().is_err()
    });
    tool::finalize().unwrap();
    assert_eq!(seen, Ok(()));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn no_file_descriptor_leaves_anonymous_pages() {
    let _alone = alone();
    let seen = Step::new().run(|_| {
        limit(libc::RLIMIT_NOFILE, 0);
        let engine = engine();
        let good = (0..20).all(|i| right(&engine, i) && compiled(&engine, i));
        good && engine.counters().own_pages == engine.counters().emitted
    });
    assert_eq!(seen, Ok(()));
}

/// Tests that datatypes are interpreted if no page of memory can be mapped.
#[test]
fn no_address_space_leaves_the_walker() {
    let _alone = alone();
    let seen = Step::new().run(|_| {
        let engine = engine();
        // Give the heap what it will need before the address space is limited.
        // SAFETY: `mallopt` has no precondition; both settings are valid.
        unsafe {
            libc::mallopt(libc::M_MMAP_MAX, 0);
            libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        }
        drop(vec![0u8; 8 << 20]);
        limit(libc::RLIMIT_AS, 1 << 20);
        let good = right(&engine, 1) && !compiled(&engine, 1);
        let c = engine.counters();
        good && c.fallbacks == 2 && c.own_pages == 0
    });
    assert_eq!(seen, Ok(()));
}

/// Makes the system call `call` fail from now on in this process. If `bits` is 0, the call always
/// fails. Otherwise it fails if its third argument has one of these bits.
fn refuse(call: libc::c_long, bits: u32) {
    let op = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    // The filter reads a structure `seccomp_data`. In this structure, the number of the system call
    // is at offset 0, and the low half of the third argument is at offset 32.
    let mut filter = [
        op(load, 0, 0, 0),
        op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 3, call as u32),
        op(load, 0, 0, 32),
        op(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0, 1, bits),
        op(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        op(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    if bits == 0 {
        // The call is to fail always, so replace the test of the argument by a jump to the failure.
        filter[3] = op(libc::BPF_JMP | libc::BPF_JA, 0, 0, 0);
    }
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: `program` and the filter that it points to are local, and are only read by the second
    // call. Both calls affect only this process.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

#[test]
fn a_filter_on_memfd_leaves_anonymous_pages() {
    let _alone = alone();
    let seen = Step::new().run(|_| {
        refuse(libc::SYS_memfd_create, 0);
        let engine = engine();
        let good = (0..20).all(|i| right(&engine, i) && compiled(&engine, i));
        good && engine.counters().own_pages == engine.counters().emitted
    });
    assert_eq!(seen, Ok(()));
}

/// Tests that datatypes are interpreted if a filter of system calls forbids `mmap` and `mprotect`
/// to make memory executable.
#[test]
fn a_filter_on_executable_memory_leaves_the_walker() {
    let _alone = alone();
    let seen = Step::new().run(|_| {
        let executable = libc::PROT_EXEC as u32;
        refuse(libc::SYS_mmap, executable);
        refuse(libc::SYS_mprotect, executable);
        let engine = engine();
        let good = right(&engine, 1) && !compiled(&engine, 1);
        good && engine.counters().fallbacks == 2
    });
    assert_eq!(seen, Ok(()));
}

/// Tests that `without_sigxfsz` changes nothing that the program has set for the signal SIGXFSZ:
/// neither the signal's action, nor its mask, nor whether it is pending.
#[test]
fn the_signal_of_the_program_is_untouched() {
    let _alone = alone();
    let state = || {
        let mut sets = [MaybeUninit::<libc::sigset_t>::zeroed(); 2];
        // SAFETY: both sets are local and writable. The null pointer asks `pthread_sigmask` to
        // change nothing, and both sets were zeroed and then written before `sigismember` reads
        // them.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), sets[0].as_mut_ptr());
            libc::sigpending(sets[1].as_mut_ptr());
            sets.map(|s| libc::sigismember(s.as_ptr(), libc::SIGXFSZ) == 1)
        }
    };
    let grow = || {
        // SAFETY: the name ends in NUL. The new descriptor is owned by nobody else, so the file may
        // close it.
        let mut file = unsafe { std::fs::File::from_raw_fd(libc::memfd_create(c"test".as_ptr(), 0)) };
        without_sigxfsz(|| (file.set_len(4096), file.write(b"text")).0.and(file.write(b"text").map(drop)))
    };
    let block = || {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: `set` is local, was zeroed, which is the empty set, and outlives both calls.
        unsafe {
            libc::sigaddset(set.as_mut_ptr(), libc::SIGXFSZ);
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
        }
    };
    let seen = Step::new().run(|step| {
        let next = || step.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let free = grow().is_ok() && state() == [false, false];
        limit(libc::RLIMIT_FSIZE, 0);
        next(); // Step 1: the signal has its default action.
        let default = grow().is_err() && state() == [false, false];
        next(); // Step 2: the program blocks the signal.
        block();
        let blocked = grow().is_err() && state() == [true, false];
        next(); // Step 3: the signal is blocked and pending.
        // SAFETY: `raise` has no precondition. The signal is blocked, so it only becomes pending.
        unsafe { libc::raise(libc::SIGXFSZ) };
        let pending = grow().is_err() && state() == [true, true];
        free && default && blocked && pending
    });
    assert_eq!(seen, Ok(()));
}
