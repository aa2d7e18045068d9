//! The MPI program that `ddtc doctor` launches. It is the command `ddtc` itself, which loads the
//! MPI library by name instead of being linked with it.
//!
//! Therefore `ddtc doctor` works on a machine without a compiler, and with any MPI. Functions are
//! looked up in the global scope, in which the preload library comes first, as it does for a
//! program that is linked with MPI. Handles are 64-bit words: those of MPICH use the lower half,
//! those of Open MPI are addresses of its objects, and those of the standard ABI are numbers.
#![allow(unsafe_code)] // The functions of an MPI library, loaded by name: there is no other way to call them.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::time::Instant;

use ddtc::internal::datatype::Named;

use ddtc_hosts::loaded::Loaded;

/// Beginning of the lines that a rank prints for `ddtc doctor`. Lines without it, which launchers
/// and libraries may print, are ignored.
pub(super) const MARK: &str = "ddtc-doctor ";
/// Number of instances of [`super::TYPE`] in a message.
pub(super) const COUNT: usize = 1024;
/// Extent of [`super::TYPE`] in bytes.
const EXTENT: usize = 32;
/// Runs of [`super::TYPE`]: displacement and length, both in elements of `int`.
const RUNS: [(c_int, c_int); 3] = [(0, 1), (2, 2), (5, 1)];
/// Number of round trips that are timed.
const ROUNDS: usize = 400;
/// Number of round trips that are made first and not timed. The bytes that arrive in them are
/// compared with the expected bytes.
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

/// Returns the address of the MPI function `name`. It is the address to which a program that is
/// linked with the MPI library would be bound: if a preloaded library defines a function of this
/// name, it is the address of that function.
fn address(mpi: &Loaded, name: &CStr) -> Result<*mut c_void, String> {
    let found = mpi.interposed(name);
    if found.is_null() { Err(format!("the library has no {}", name.to_string_lossy())) } else { Ok(found) }
}

/// Returns whether the preload library is loaded into this process, and the files of the MPI
/// libraries that are loaded.
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

/// Loads the MPI library, and prints its version and its file. MPI is not initialized.
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

/// Returns the byte that round `round` sends at index `at` of the buffer.
fn byte(at: usize, round: usize) -> u8 {
    (at * 7 + round * 13 + at / 251) as u8
}

/// Returns an error if a call of MPI has failed.
fn good(name: &str, code: c_int) -> Result<(), String> {
    if code == 0 { Ok(()) } else { Err(format!("{name} returned {code}")) }
}

/// Looks up a function of the library by its name. The type must be that of its declaration in
/// mpi.h.
macro_rules! function {
    ($mpi:expr, $name:expr, $type:ty) => {{
        let address = address($mpi, $name)?;
        // SAFETY: this is the address of the function of that name. The type matches its
        // declaration in the mpi.h of all three ABIs: handles and counts are passed in registers,
        // and a handle of 32 bits is the lower half of its word.
        unsafe { std::mem::transmute::<*mut c_void, $type>(address) }
    }};
}

/// Runs the MPI program: two ranks exchange messages of a derived type. Rank 0 prints how long a
/// message takes and how many bytes were wrong.
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

    // All functions have been found. Initialize MPI, and learn which rank this process is.

    // SAFETY: both arguments of MPI_Init may be null (MPI 5.0, 11.2.1), and MPI was not initialized
    // before. The only functions of MPI that may have been called are MPI_Get_library_version and
    // MPI_Abi_get_version, which may be called at any time.
    good("MPI_Init", unsafe { init(std::ptr::null_mut(), std::ptr::null_mut()) })?;
    let (mut rank, mut size) = (0, 0);
    // SAFETY: MPI is initialized, `world` is a handle of this ABI, and the results are integers
    // that live during the calls.
    unsafe {
        good("MPI_Comm_rank", comm_rank(world, &raw mut rank))?;
        good("MPI_Comm_size", comm_size(world, &raw mut size))?;
    }
    if rank == 0 {
        println!("{MARK}size {size}");
    }
    // Ranks 0 and 1 build the type of `RUNS` and exchange messages of it; other ranks have nothing
    // to do.
    if rank < 2 && size >= 2 {
        let (mut blocks, mut t): (Word, Word) = (0, 0);
        let (places, lengths) = (RUNS.map(|(place, _)| place), RUNS.map(|(_, length)| length));
        // SAFETY: the arrays have three elements and live during the calls, `int` is a named type
        // of this ABI, and handles are written to words.
        unsafe {
            let code = indexed(3, lengths.as_ptr(), places.as_ptr(), int, &raw mut blocks);
            good("MPI_Type_indexed", code)?;
            good("MPI_Type_create_resized", resized(blocks, 0, EXTENT as isize, &raw mut t))?;
            good("MPI_Type_commit", commit(&raw mut t))?;
        }
        let (count, peer) = (COUNT as c_int, 1 - rank);
        to_and_fro(rank, |sending, user| {
            // SAFETY: the buffer holds COUNT instances of the type, each of which lies within
            // EXTENT bytes. The status is the address that stands for no status in this ABI. The
            // peer makes the matching call.
            let code = unsafe {
                if sending {
                    send(user.as_ptr().cast(), count, t, peer, 1, world)
                } else {
                    recv(user.as_mut_ptr().cast(), count, t, peer, 1, world, abi.status_ignore as *mut c_void)
                }
            };
            good(if sending { "MPI_Send" } else { "MPI_Recv" }, code)
        })?;
        // SAFETY: both types were created above, and no operation uses them any more.
        unsafe {
            good("MPI_Type_free", free(&raw mut t))?;
            good("MPI_Type_free", free(&raw mut blocks))?;
        }
    }
    // SAFETY: MPI is initialized, and no operation is pending.
    good("MPI_Finalize", unsafe { finalize() })
}

/// Exchanges messages by calls of `turn`, which sends if its first argument is true and receives
/// otherwise. Rank 1 sends back what it received. Rank 0 compares the bytes of the first [`WARM`]
/// rounds, and measures the time of the next [`ROUNDS`].
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
