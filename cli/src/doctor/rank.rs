//! Runs under the launcher: this program as an MPI program, which takes the library by name instead of being linked with it.
//!
//! So a machine without a compiler can be examined, and whichever MPI there is. Functions are taken from the global scope, where the
//! preload library stands first, as it does for a program that is linked with MPI. Handles are words: MPICH's are the lower half of
//! one, Open MPI's are addresses of its objects, the standard ABI's are numbers.
#![allow(unsafe_code)] // The functions of an MPI library, loaded by name: there is no other way to call them.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::time::Instant;

use ddtc::internal::datatype::Named;

use ddtc_hosts::loaded::Loaded;

/// Begins each line that is meant for the parent: launchers and libraries write too.
pub(super) const MARK: &str = "ddtc-doctor ";
/// Instances that go to and fro: [`super::TYPE`].
pub(super) const COUNT: usize = 1024;
/// Bytes of an instance, and the runs in it.
const EXTENT: usize = 32;
const RUNS: [(c_int, c_int); 3] = [(0, 1), (2, 2), (5, 1)];
/// Round trips that are timed, and those before them.
const ROUNDS: usize = 400;
const WARM: usize = 50;

type Word = u64;
type Init = unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char) -> c_int;
type Nothing = unsafe extern "C" fn() -> c_int;
type Ask = unsafe extern "C" fn(Word, *mut c_int) -> c_int;
type Indexed = unsafe extern "C" fn(c_int, *const c_int, *const c_int, Word, *mut Word) -> c_int;
type Resized = unsafe extern "C" fn(Word, isize, isize, *mut Word) -> c_int;
type OfType = unsafe extern "C" fn(*mut Word) -> c_int;
type Send = unsafe extern "C" fn(*const c_void, c_int, Word, c_int, c_int, Word) -> c_int;
type Recv = unsafe extern "C" fn(*mut c_void, c_int, Word, c_int, c_int, Word, *mut c_void) -> c_int;

/// The address of a function, as a program that is linked with the library gets it.
fn address(mpi: &Loaded, name: &CStr) -> Result<*mut c_void, String> {
    let found = mpi.interposed(name);
    if found.is_null() { Err(format!("the library has no {}", name.to_string_lossy())) } else { Ok(found) }
}

/// The file of the loaded object that `MPI_Send` is in, and whether the preload library is loaded.
fn objects() -> (bool, Vec<String>) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut files: Vec<String> =
        maps.lines().filter_map(|l| Some(l.get(l.find('/')?..)?.to_owned())).collect();
    files.sort();
    files.dedup();
    let named = |f: &String, name: &str| f.rsplit('/').next().is_some_and(|n| n.starts_with(name));
    let mpi = |f: &&String| named(f, "libmpi.so") || named(f, "libmpi_abi.so") || named(f, "libmpich.so");
    (files.iter().any(|f| named(f, ddtc_hosts::library::NAME)), files.iter().filter(mpi).cloned().collect())
}

/// Loads the library and says what it is; nothing of MPI is initialized.
pub(super) fn load(library: &Path) -> Result<(), String> {
    let mpi = Loaded::open(library)?;
    let (preloaded, files) = objects();
    println!("{MARK}version {}", mpi.version()?);
    println!("{MARK}preloaded {preloaded}");
    for file in files {
        println!("{MARK}file {file}");
    }
    Ok(())
}

/// The byte that is sent at a place of round `round`.
fn byte(at: usize, round: usize) -> u8 {
    (at * 7 + round * 13 + at / 251) as u8
}

/// Whether a call went well.
fn good(name: &str, code: c_int) -> Result<(), String> {
    if code == 0 { Ok(()) } else { Err(format!("{name} returned {code}")) }
}

/// A function of the library by its name, of a type that is its declaration in mpi.h.
macro_rules! function {
    ($mpi:expr, $name:expr, $type:ty) => {{
        let address = address($mpi, $name)?;
        // SAFETY: the address of the function of that name; the type is its declaration in mpi.h of the three ABIs, with handles
        // and counts in registers as they are passed there (a handle of 32 bits is the lower half of its word).
        unsafe { std::mem::transmute::<*mut c_void, $type>(address) }
    }};
}

/// Runs the program: two ranks send a derived type to and fro; rank 0 says how long a message takes and whether every byte came.
pub(super) fn run(library: &Path) -> Result<(), String> {
    let mpi = Loaded::open(library)?;
    let abi = mpi.abi()?;
    let world = mpi.handle(abi.world, abi.world_symbol);
    let int = mpi.named(abi).into_iter().find(|&(named, _)| named == Named::Int).map(|(_, handle)| handle);
    let int = int.ok_or("the library has no MPI_INT")?;
    let init = function!(&mpi, c"MPI_Init", Init);
    let finalize = function!(&mpi, c"MPI_Finalize", Nothing);
    let (comm_rank, comm_size) =
        (function!(&mpi, c"MPI_Comm_rank", Ask), function!(&mpi, c"MPI_Comm_size", Ask));
    let indexed = function!(&mpi, c"MPI_Type_indexed", Indexed);
    let resized = function!(&mpi, c"MPI_Type_create_resized", Resized);
    let (commit, free) =
        (function!(&mpi, c"MPI_Type_commit", OfType), function!(&mpi, c"MPI_Type_free", OfType));
    let (send, recv) = (function!(&mpi, c"MPI_Send", Send), function!(&mpi, c"MPI_Recv", Recv));

    // SAFETY: MPI_Init takes null for both (MPI 5.0, 11.2.1); this is the first call of MPI in the process.
    good("MPI_Init", unsafe { init(std::ptr::null_mut(), std::ptr::null_mut()) })?;
    let (mut rank, mut size) = (0, 0);
    // SAFETY: MPI is initialized; the world is a handle of this ABI; numbers to write to.
    unsafe {
        good("MPI_Comm_rank", comm_rank(world, &raw mut rank))?;
        good("MPI_Comm_size", comm_size(world, &raw mut size))?;
    }
    if rank == 0 {
        println!("{MARK}size {size}");
    }
    if rank < 2 && size >= 2 {
        let (mut blocks, mut t): (Word, Word) = (0, 0);
        let (places, lengths) = (RUNS.map(|(place, _)| place), RUNS.map(|(_, length)| length));
        // SAFETY: arrays of three numbers that live during the call, a named type of this ABI, words to write handles to.
        unsafe {
            let code = indexed(3, lengths.as_ptr(), places.as_ptr(), int, &raw mut blocks);
            good("MPI_Type_indexed", code)?;
            good("MPI_Type_create_resized", resized(blocks, 0, EXTENT as isize, &raw mut t))?;
            good("MPI_Type_commit", commit(&raw mut t))?;
        }
        let (count, peer) = (COUNT as c_int, 1 - rank);
        to_and_fro(rank, |sending, user| {
            // SAFETY: the buffer holds COUNT instances of the type, whose extent and runs lie in EXTENT bytes; the status is
            // the address that means none; the peer makes the call that matches.
            let code = unsafe {
                if sending {
                    send(user.as_ptr().cast(), count, t, peer, 1, world)
                } else {
                    recv(user.as_mut_ptr().cast(), count, t, peer, 1, world, abi.status_ignore as *mut c_void)
                }
            };
            good(if sending { "MPI_Send" } else { "MPI_Recv" }, code)
        })?;
        // SAFETY: types of this process that nothing uses any more.
        unsafe {
            good("MPI_Type_free", free(&raw mut t))?;
            good("MPI_Type_free", free(&raw mut blocks))?;
        }
    }
    // SAFETY: initialized, and nothing is pending.
    good("MPI_Finalize", unsafe { finalize() })
}

/// Sends and receives in turn by `turn`, of all instances: rank 1 sends back what it got; in the first rounds rank 0 compares, then it measures.
fn to_and_fro(
    rank: c_int,
    mut turn: impl FnMut(bool, &mut [u8]) -> Result<(), String>,
) -> Result<(), String> {
    let mut user = vec![0u8; COUNT * EXTENT];
    let mut wrong = 0usize;
    let moved = |at: usize| {
        RUNS.iter().any(|&(p, n)| (p as usize * 4..(p + n) as usize * 4).contains(&(at % EXTENT)))
    };
    for round in 0..WARM {
        if rank == 0 {
            user.iter_mut().enumerate().for_each(|(at, b)| *b = byte(at, round));
            turn(true, &mut user)?;
            user.fill(0xa5);
            turn(false, &mut user)?;
            let right = |at: usize| if moved(at) { byte(at, round) } else { 0xa5 };
            wrong += user.iter().enumerate().filter(|&(at, &b)| b != right(at)).count();
        } else {
            turn(false, &mut user)?;
            turn(true, &mut user)?;
        }
    }
    let start = Instant::now();
    for _ in 0..ROUNDS {
        turn(rank == 0, &mut user)?;
        turn(rank != 0, &mut user)?;
    }
    let us = start.elapsed().as_secs_f64() * 1e6 / (2 * ROUNDS) as f64;
    if rank == 0 {
        println!("{MARK}us {us:.2}");
        println!("{MARK}wrong {wrong}");
    }
    Ok(())
}
