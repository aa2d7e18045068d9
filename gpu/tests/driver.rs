//! Tests of `ddtc_gpu::device::Layout` on a stand-in for NVIDIA's driver library (`tests/standin`).
//! The stand-in checks the driver calls that ddtc makes, and runs kernels in an interpreter of PTX.
//!
//! All tests of this process share one stand-in, so only one test at a time may use it.

#[path = "standin/build.rs"]
mod build;

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use build::standin as built;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::error::{ErrorClass, Result};
use ddtc::internal::kind::Direction;
use ddtc_gpu::device::{Layout, Transfer};
use ddtc_gpu::driver::Driver;
use ddtc_gpu::selection::select;

type Opaque = *mut c_void;

static TURN: Mutex<()> = Mutex::new(());

const NONE: Opaque = std::ptr::null_mut();

/// Declares wrappers of functions of the stand-in. Each wrapper looks up the function with its own
/// name in the library of the stand-in, and calls this function.
macro_rules! standin {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(
            #[allow(non_snake_case)]
            fn $name($($argument: $type),*) -> $result {
                let name = CString::new(stringify!($name)).unwrap();
                // SAFETY: the handle is that of the stand-in, and the name is a C string.
                let symbol = unsafe { libc::dlsym(scope(), name.as_ptr()) };
                assert!(!symbol.is_null(), "{name:?}");
                // SAFETY: the stand-in has a function of this name with this type, and each test
                // passes the arguments that cuda.h asks for.
                unsafe {
                    std::mem::transmute::<Opaque, unsafe extern "C" fn($($type),*) -> $result>(symbol)($($argument),*)
                }
            }
        )*
    };
}

standin! {
    standin_memory(address: *mut u64, from: *const u8, bytes: usize) -> c_int;
    standin_upload(to: u64, from: *const u8, bytes: usize) -> c_int;
    cuMemAllocAsync(address: *mut u64, bytes: usize, stream: Opaque) -> c_int;
    cuMemAllocManaged(address: *mut u64, bytes: usize, flags: c_uint) -> c_int;
    cuMemHostAlloc(address: *mut u64, bytes: usize, flags: c_uint) -> c_int;
    cuMemcpyDtoH_v2(to: *mut u8, from: u64, bytes: usize) -> c_int;
    cuCtxCreate_v2(context: *mut Opaque, flags: c_uint, device: c_int) -> c_int;
    cuCtxGetCurrent(context: *mut Opaque) -> c_int;
    cuCtxPushCurrent_v2(context: Opaque) -> c_int;
    cuCtxPopCurrent_v2(context: *mut Opaque) -> c_int;
    cuDevicePrimaryCtxRetain(context: *mut Opaque, device: c_int) -> c_int;
    cuDevicePrimaryCtxRelease_v2(device: c_int) -> c_int;
    cuDevicePrimaryCtxReset_v2(device: c_int) -> c_int;
    cuStreamCreate(stream: *mut Opaque, flags: c_uint) -> c_int;
    cuStreamBeginCapture_v2(stream: Opaque, mode: c_uint) -> c_int;
    cuStreamWaitEvent(stream: Opaque, event: Opaque, flags: c_uint) -> c_int;
    cuEventCreate(event: *mut Opaque, flags: c_uint) -> c_int;
    cuEventRecord(event: Opaque, stream: Opaque) -> c_int;
    cuEventDestroy_v2(event: Opaque) -> c_int;
    standin_end_capture(stream: Opaque) -> c_int;
    standin_replay(stream: Opaque) -> c_int;
    standin_fail(n: i64, code: c_int) -> c_int;
    standin_calls() -> u64;
    standin_failed_call() -> *const c_char;
    standin_forget() -> c_int;
    standin_held() -> u64;
    standin_ordered(first: Opaque, then: Opaque) -> u64;
    standin_faults() -> u64;
}

/// Returns the path of the library file of the stand-in. The first call builds this file.
fn library() -> CString {
    static FILE: LazyLock<CString> = LazyLock::new(|| {
        let file = built(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("standin"));
        CString::new(file.to_str().unwrap()).unwrap()
    });
    FILE.clone()
}

fn scope() -> Opaque {
    // SAFETY: the name is a C string. The library is never closed.
    let scope = unsafe { libc::dlopen(library().as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!scope.is_null());
    scope
}

fn driver() -> Result<Driver> {
    // SAFETY: the functions of the stand-in have the types of cuda.h.
    unsafe { Driver::load_from("test", &library()) }
}

/// Guard that gives a test the exclusive right to use the stand-in. The function `turn` creates the
/// guard, and also makes the primary context of device 0 current. A program that uses the CUDA
/// runtime has this current context too.
struct Turn(MutexGuard<'static, ()>);

fn turn() -> Turn {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    driver().unwrap();
    let mut context = NONE;
    assert_eq!(cuDevicePrimaryCtxRetain(&raw mut context, 0), 0);
    assert_eq!(cuCtxPushCurrent_v2(context), 0);
    Turn(turn)
}

impl Turn {
    /// Checks that the test has cleaned up, and then gives up the exclusive right to use the
    /// stand-in. A context must still be current. No module may be loaded, no allocation of ddtc
    /// may be left, no primary context may be retained except by this guard, and the stand-in must
    /// have found no fault.
    fn end(self) {
        let mut context = NONE;
        assert_eq!(cuCtxPopCurrent_v2(&raw mut context), 0);
        assert_eq!(cuDevicePrimaryCtxRelease_v2(0), 0);
        assert_eq!((standin_held(), standin_faults()), (0, 0), "held, faults");
        drop(self.0);
    }
}

fn open(text: &str) -> Result<Box<Layout>> {
    let committed = ddtc::commit(&text.parse::<Datatype>().unwrap())?;
    Layout::open_with("test", driver()?, &committed, select("test", &committed)?, 0)
}

fn close(layout: Box<Layout>) {
    layout.close("test").map_err(|(_, e)| e).unwrap();
}

fn memory(bytes: &[u8]) -> u64 {
    let mut address = 0;
    assert_eq!(standin_memory(&raw mut address, bytes.as_ptr(), bytes.len()), 0);
    address
}

fn bytes(address: u64, n: usize) -> Vec<u8> {
    let mut bytes = vec![0; n];
    assert_eq!(cuMemcpyDtoH_v2(bytes.as_mut_ptr(), address, n), 0);
    bytes
}

fn submit(
    layout: &Layout,
    direction: Direction,
    user: u64,
    count: u64,
    packed: u64,
    stream: Opaque,
) -> Result<()> {
    let range = 0..layout.committed().packed_size(count).unwrap();
    let transfer = Transfer { direction, user, count, packed, range };
    // SAFETY: the addresses are those of the stand-in, which checks what is done with them.
    unsafe { layout.submit("test", &transfer, stream) }
}

fn sample(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + i / 256) as u8).collect()
}

/// Packs and unpacks `count` instances of the datatype `text` in device memory of the stand-in, and
/// compares the results with those of packing and unpacking on the CPU.
fn there_and_back(text: &str, count: u64) {
    let layout = open(text).unwrap();
    let t = layout.committed();
    let span = (t.datatype().true_ub() + t.datatype().extent() * (count as i64 - 1)).max(0) as usize + 64;
    let user = sample(span);
    let mut expected = vec![0; t.packed_size(count).unwrap() as usize];
    t.pack(&user, 0, count, &mut expected).unwrap();
    let (there, packed, back) =
        (memory(&user), memory(&vec![0; expected.len().max(1)]), memory(&vec![0x11; span]));
    submit(&layout, Direction::Pack, there, count, packed, NONE).unwrap();
    submit(&layout, Direction::Unpack, back, count, packed, NONE).unwrap();
    assert_eq!(bytes(packed, expected.len()), expected, "{text}");
    let mut unpacked = vec![0x11; span];
    t.unpack(&expected, 0, count, &mut unpacked).unwrap();
    assert_eq!(bytes(back, span), unpacked, "{text}");
    close(layout);
}

/// Datatype of two blocks of equal lengths at irregular offsets. The kernel `list` moves it, so its
/// layout has a table in device memory.
const LIST: &str = "resized(0, 32, hindexed_block(1, [16, 0], double))";

/// Returns a datatype of 300 blocks of 8 to 56 bytes. The kernel `list` would need a table with
/// more entries than are permitted for it, so the kernel `pieces` moves this datatype.
fn irregular() -> String {
    let lengths: Vec<String> = (0..300).map(|i| (1 + i % 7).to_string()).collect();
    let places: Vec<String> = (0..300).map(|i| (i * 64).to_string()).collect();
    format!("hindexed([{}], [{}], double)", lengths.join(", "), places.join(", "))
}

#[test]
fn kernels_and_copies_move_bytes() {
    let turn = turn();
    there_and_back(LIST, 50);
    there_and_back("resized(0, 24, struct([1, 2], [0, 8], [int, double]))", 20);
    there_and_back(&irregular(), 2);
    there_and_back("resized(0, 8, vector(40, 1, 50, double))", 45);
    there_and_back("resized(0, 80, hvector(3, 1, 24, double))", 50);
    there_and_back("resized(0, 33, vector(3, 1, 2, byte))", 20);
    there_and_back("contiguous(7, int)", 9);
    there_and_back("contiguous(0, int)", 9);
    turn.end();
}

/// Checks transfers whose range begins and ends at various packed bytes. The address `packed` of
/// such a transfer is the address of the first byte of its range.
#[test]
fn ranges_begin_anywhere() {
    let turn = turn();
    for text in ["resized(0, 80, hvector(3, 1, 24, double))", "contiguous(24, byte)"] {
        let layout = open(text).unwrap();
        let user = sample(8 * 80);
        let mut expected = vec![0; 8 * 24];
        layout.committed().pack(&user, 0, 8, &mut expected).unwrap();
        let (user, packed) = (memory(&user), memory(&[0; 8 * 24]));
        for range in [0..24, 16..17, 5..190, 48..192, 7..7] {
            let len = (range.end - range.start) as usize;
            let transfer = Transfer {
                direction: Direction::Pack,
                user,
                count: 8,
                packed: packed + 3,
                range: range.clone(),
            };
            // SAFETY: as in `submit`.
            unsafe { layout.submit("test", &transfer, NONE) }.unwrap();
            assert_eq!(
                bytes(packed + 3, len),
                expected[range.start as usize..range.end as usize],
                "{range:?}"
            );
        }
        close(layout);
    }
    turn.end();
}

/// Packs `count` instances of the datatype `text` from `user` on the CPU, and returns the packed
/// bytes.
fn packed_bytes(text: &str, user: &[u8], count: u64) -> Vec<u8> {
    let committed = ddtc::commit(&text.parse::<Datatype>().unwrap()).unwrap();
    let mut packed = vec![0; committed.packed_size(count).unwrap() as usize];
    committed.pack(user, 0, count, &mut packed).unwrap();
    packed
}

/// Checks that a transfer can be submitted to a stream that is being captured. The bytes are moved
/// only when the capture is replayed.
#[test]
fn streams_are_captured() {
    let turn = turn();
    for (text, count) in [("resized(0, 16, double)", 4), (LIST, 2)] {
        let layout = open(text).unwrap();
        let (user, packed) = (memory(&sample(64)), memory(&[0; 32]));
        let mut stream = NONE;
        assert_eq!(cuStreamCreate(&raw mut stream, 0), 0);
        assert_eq!(cuStreamBeginCapture_v2(stream, 0), 0);
        submit(&layout, Direction::Pack, user, count, packed, stream).unwrap();
        // While the stream is being captured, closing the layout returns an error, and the layout
        // stays open.
        let (layout, error) = layout.close("test").map(|()| "closed").unwrap_err();
        assert!(error.to_string().contains("CUDA error 900"), "{error}");
        assert_eq!(standin_end_capture(stream), 0);
        assert_eq!(bytes(packed, 32), [0; 32]);
        assert_eq!(standin_replay(stream), 0);
        assert_eq!(bytes(packed, 32), packed_bytes(text, &sample(64), count));
        close(layout);
    }
    turn.end();
}

/// Checks that closing a layout first waits for its pending work, and only then unloads the kernels
/// and frees the table.
#[test]
fn close_waits_for_the_work() {
    let turn = turn();
    for (text, count) in [("resized(0, 16, double)", 4), (LIST, 2)] {
        let layout = open(text).unwrap();
        let (user, packed) = (memory(&sample(64)), memory(&[0; 32]));
        submit(&layout, Direction::Pack, user, count, packed, NONE).unwrap();
        close(layout);
        assert_eq!(bytes(packed, 32), packed_bytes(text, &sample(64), count));
    }
    turn.end();
}

/// Packs into memory of a memory pool and into pinned host memory. Memory of a pool belongs to no
/// context. In the stand-in, the device address of pinned host memory differs from its host
/// address.
#[test]
fn pools_and_pinned_memory_are_served() {
    let turn = turn();
    let layout = open("resized(0, 16, double)").unwrap();
    let (user, mut pool, mut host) = (memory(&sample(64)), 0, 0);
    assert_eq!(cuMemAllocAsync(&raw mut pool, 32, NONE), 0);
    assert_eq!(cuMemHostAlloc(&raw mut host, 32, 0), 0);
    submit(&layout, Direction::Pack, user, 4, pool, NONE).unwrap();
    submit(&layout, Direction::Pack, user, 4, host, NONE).unwrap();
    close(layout);
    let expected: Vec<u8> = sample(64).chunks(16).flat_map(|c| c[..8].to_vec()).collect();
    assert_eq!(bytes(pool, 32), expected);
    let host = std::ptr::with_exposed_provenance::<u8>(host as usize);
    // SAFETY: the stand-in has allocated 32 bytes at this address, and never frees them.
    assert_eq!(unsafe { std::slice::from_raw_parts(host, 32) }, expected);
    turn.end();
}

/// Checks transfers whose buffers are both pinned host memory. If a kernel moves the bytes of the
/// layout, ddtc accepts the transfer. If the layout is contiguous, ddtc refuses the transfer. The
/// driver would have to copy the bytes, and a copy between two host buffers would make the caller
/// wait.
#[test]
fn pinned_memory_on_both_sides_needs_a_kernel() {
    let turn = turn();
    let (mut user, mut packed) = (0, 0);
    assert_eq!(cuMemHostAlloc(&raw mut user, 64, 0), 0);
    assert_eq!(cuMemHostAlloc(&raw mut packed, 32, 0), 0);
    let device = memory(&sample(64));
    let host = |address: u64, n: usize| {
        let host = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
        // SAFETY: the stand-in has allocated at least `n` bytes at this address, and never frees
        // them. No other reference allows a write to these bytes while the slice is used.
        unsafe { std::slice::from_raw_parts_mut(host, n) }
    };
    let layout = open("contiguous(8, byte)").unwrap();
    for direction in Direction::BOTH {
        let error = submit(&layout, direction, user, 4, packed, NONE).unwrap_err();
        assert_eq!((error.class(), error.argument()), (ErrorClass::Buffer, "packed"), "{error}");
        assert!(error.to_string().contains("must be device memory if `user` is pinned"), "{error}");
    }
    submit(&layout, Direction::Pack, device, 4, packed, NONE).unwrap();
    submit(&layout, Direction::Unpack, user, 4, device + 32, NONE).unwrap();
    close(layout);
    assert_eq!((&*host(packed, 32), &*host(user, 32)), (&sample(64)[..32], &sample(64)[32..]));
    host(user, 64).copy_from_slice(&sample(64));
    let layout = open("resized(0, 16, double)").unwrap();
    submit(&layout, Direction::Pack, user, 4, packed, NONE).unwrap();
    close(layout);
    let expected: Vec<u8> = sample(64).chunks(16).flat_map(|c| c[..8].to_vec()).collect();
    assert_eq!(host(packed, 32), expected);
    turn.end();
}

/// Checks that a transfer with a wrong argument returns an error that names this argument, and
/// moves no bytes.
#[test]
fn wrong_arguments_are_named() {
    let turn = turn();
    let layout = open("resized(0, 16, double)").unwrap();
    let (user, packed, mut managed) = (memory(&sample(64)), memory(&[0; 32]), 0);
    assert_eq!(cuMemAllocManaged(&raw mut managed, 64, 0), 0);
    let pageable = [0u8; 64].as_ptr().addr() as u64;
    let mut other = NONE;
    assert_eq!(cuCtxCreate_v2(&raw mut other, 0, 0), 0);
    let (foreign, mut stream) = (memory(&sample(64)), NONE);
    assert_eq!(cuStreamCreate(&raw mut stream, 0), 0);
    let mut popped = NONE;
    assert_eq!(cuCtxPopCurrent_v2(&raw mut popped), 0);
    let mut second = NONE;
    assert_eq!(cuDevicePrimaryCtxRetain(&raw mut second, 1), 0);
    assert_eq!(cuCtxPushCurrent_v2(second), 0);
    let elsewhere = memory(&sample(64));
    for (user, packed, stream, class, argument, rule) in [
        (0, packed, NONE, ErrorClass::Buffer, "user", "null"),
        (user, 0, NONE, ErrorClass::Buffer, "packed", "null"),
        (managed, packed, NONE, ErrorClass::Buffer, "user", "managed"),
        (user, pageable, NONE, ErrorClass::Buffer, "packed", "device memory or pinned"),
        (foreign, packed, NONE, ErrorClass::Buffer, "user", "primary context"),
        (user, elsewhere, NONE, ErrorClass::Buffer, "packed", "layout's device"),
        (user, packed, stream, ErrorClass::Arg, "stream", "primary context"),
    ] {
        let error = submit(&layout, Direction::Pack, user, 4, packed, stream).unwrap_err();
        assert_eq!((error.class(), error.argument()), (class, argument), "{error}");
        assert!(error.to_string().contains(rule), "{error}");
        // The failed call has made the layout's context current and then restored the caller's
        // context, which is `second`.
        let mut now = NONE;
        assert_eq!((cuCtxGetCurrent(&raw mut now), now), (0, second));
    }
    assert_eq!(bytes(packed, 32), [0; 32]);
    submit(&layout, Direction::Pack, user, 4, packed, NONE).unwrap();
    assert_eq!(cuCtxPopCurrent_v2(&raw mut popped), 0);
    assert_eq!(cuDevicePrimaryCtxRelease_v2(1), 0);
    let overlapping = open("resized(0, 4, double)").unwrap();
    submit(&overlapping, Direction::Pack, user, 4, packed, NONE).unwrap();
    let error = submit(&overlapping, Direction::Unpack, user, 4, packed, NONE).unwrap_err();
    assert_eq!((error.class(), error.argument()), (ErrorClass::Unsupported, "count"), "{error}");
    close(overlapping);
    close(layout);
    turn.end();
}

/// Functions of the driver that ddtc calls to close a layout. If one of them fails while a layout
/// is closed, modules may stay loaded, tables allocated, and contexts retained. ddtc reports no
/// error, unless `cuCtxGetCurrent`, `cuCtxPushCurrent_v2` or `cuCtxSynchronize` returns a code that
/// concerns a stream capture.
const FREE: [&str; 7] = [
    "cuCtxGetCurrent",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuCtxSynchronize",
    "cuModuleUnload",
    "cuMemFree_v2",
    "cuDevicePrimaryCtxRelease_v2",
];

/// Checks how ddtc handles a failure of any single call of the driver. The test opens a layout,
/// packs with it and closes it, in a thread without a current context, and counts the calls of the
/// driver. Then it repeats these steps once for each counted call, and makes this one call fail.
///
/// If the failed call belongs to opening the layout or to packing, ddtc must return an error. The
/// only exception is `cuCtxPopCurrent_v2`, which restores the caller's context. If ddtc returns no
/// error, all packed bytes must be right. Afterwards no module may be loaded, no table allocated
/// and no context retained, unless the call that failed is one of [`FREE`]. The test does all this
/// for a layout without a table and for one with a table.
#[test]
fn every_call_fails_in_turn() {
    for (text, count) in [("resized(0, 16, double)", 4), (LIST, 2)] {
        every_call_of_a_layout_fails_in_turn(text, count);
    }
}

fn every_call_of_a_layout_fails_in_turn(text: &str, count: u64) {
    let turn = turn();
    let (user, packed) = (memory(&sample(64)), memory(&[0; 32]));
    let (mut stream, mut context) = (NONE, NONE);
    assert_eq!(cuStreamCreate(&raw mut stream, 0), 0);
    assert_eq!(cuCtxPopCurrent_v2(&raw mut context), 0);
    let expected = packed_bytes(text, &sample(64), count);
    // Number of driver calls that the stand-in had counted just before the layout was closed.
    let closing = std::cell::Cell::new(0);
    let run = || -> Result<()> {
        let layout = open(text)?;
        let done = submit(&layout, Direction::Pack, user, count, packed, stream);
        closing.set(standin_calls());
        close(layout);
        done
    };
    let before = standin_calls();
    run().unwrap();
    let calls = standin_calls() - before;
    assert!(calls > 20, "{calls}");
    for n in 0..calls {
        let held = standin_held();
        assert_eq!(standin_upload(packed, [0; 32].as_ptr(), 32), 0);
        let failed = standin_calls() + n;
        assert_eq!(standin_fail(n as i64, 2), 0);
        let done = run();
        assert_eq!(standin_fail(-1, 0), 0);
        // SAFETY: the stand-in returns a C string that it does not free.
        let name = unsafe { CStr::from_ptr(standin_failed_call()) }.to_str().unwrap();
        let frees = FREE.contains(&name);
        match done {
            Err(error) => {
                assert_eq!(error.class(), ErrorClass::NoMem, "{name}: {error}");
                assert!(error.to_string().contains("out of memory"), "{name}: {error}");
            }
            Ok(()) => {
                let is_closing = failed >= closing.get();
                let may_fail = if is_closing { frees } else { name == "cuCtxPopCurrent_v2" };
                assert!(may_fail, "{name} failed, and no error came back");
                assert_eq!(bytes(packed, 32), expected, "{name} failed");
            }
        }
        let left = standin_held() - held;
        assert!(left == 0 || frees, "{name} failed, and {left} stayed");
        let mut now = NONE;
        assert_eq!(cuCtxGetCurrent(&raw mut now), 0);
        assert_eq!(now.is_null(), name != "cuCtxPopCurrent_v2", "{name}");
        if !now.is_null() {
            assert_eq!(cuCtxPopCurrent_v2(&raw mut now), 0);
        }
    }
    assert_eq!(standin_faults(), 0);
    assert_eq!(standin_forget(), 0);
    drop(turn);
}

/// Checks the class of the error if the driver cannot load a kernel. The class is `Unsupported` if
/// the driver refuses the text of the kernel (codes 200 and 222), `NoMem` if memory is short (2),
/// and `Other` for another code (999). In each case no module may stay loaded.
#[test]
fn refused_kernels_are_told_apart() {
    let turn = turn();
    for (code, class) in [
        (200, ErrorClass::Unsupported),
        (222, ErrorClass::Unsupported),
        (2, ErrorClass::NoMem),
        (999, ErrorClass::Other),
    ] {
        let mut refused = 0;
        for n in 0..8 {
            assert_eq!(standin_fail(n, code), 0);
            let opened = open("resized(0, 16, double)");
            assert_eq!(standin_fail(-1, 0), 0);
            // SAFETY: the stand-in returns a C string that it does not free.
            let name = unsafe { CStr::from_ptr(standin_failed_call()) };
            if name == c"cuModuleLoadData" {
                let error = opened.map(|_| "opened").unwrap_err();
                assert_eq!((error.class(), error.argument()), (class, "kernel"), "{error}");
                refused += 1;
            }
        }
        assert!(refused >= 2, "{refused}");
    }
    turn.end();
}

/// Checks the class of the error if `cuInit` fails when the driver is loaded. The class is `NoMem`
/// if the driver reports a lack of memory (code 2), and `Unsupported` for any other code.
#[test]
fn a_driver_that_cannot_be_initialized_does_not_serve() {
    let turn = turn();
    for (code, class) in [
        (2, ErrorClass::NoMem),
        (3, ErrorClass::Unsupported),
        (100, ErrorClass::Unsupported),
        (101, ErrorClass::Unsupported),
        (803, ErrorClass::Unsupported),
        (999, ErrorClass::Unsupported),
    ] {
        assert_eq!(standin_fail(0, code), 0);
        let error = driver().map(|_| "loaded").unwrap_err();
        assert_eq!(standin_fail(-1, 0), 0);
        assert_eq!((error.class(), error.argument()), (class, "device"), "{error}");
        assert!(error.to_string().contains(&format!("CUDA error {code}")), "{error}");
    }
    turn.end();
}

/// Checks that a stream is not made to wait for another one if only one of them is being captured,
/// if they take part in two captures, or if the capture forbids work on the legacy default stream.
/// The captures must go on. The stand-in reports a fault if a captured stream is made to wait for
/// work outside of its capture. Streams of the same capture may wait for each other.
#[test]
fn captures_are_kept_apart() {
    let turn = turn();
    let layout = open("resized(0, 16, double)").unwrap();
    let (mut captured, mut other, mut event) = (NONE, NONE, NONE);
    assert_eq!(cuStreamCreate(&raw mut captured, 1), 0);
    assert_eq!(cuStreamCreate(&raw mut other, 1), 0);
    let legacy: Opaque = std::ptr::without_provenance_mut(1);
    assert_eq!(cuStreamBeginCapture_v2(captured, 0), 0);
    // SAFETY: the streams are those of the stand-in, or default streams.
    let order = |first, then| unsafe { layout.order("test", "user", first, then) };
    let refused = |first, then, argument, text| {
        let error = order(first, then).unwrap_err();
        assert!(error.argument() == argument && error.to_string().contains(text), "{error}");
    };
    refused(other, captured, "user", "a stream of the same capture");
    refused(captured, other, "user", "a stream of the same capture");
    refused(legacy, captured, "user", "CUDA error 906");
    refused(captured, legacy, "stream", "CUDA error 906");
    assert_eq!(cuStreamBeginCapture_v2(other, 0), 0);
    refused(other, captured, "user", "a stream of the same capture");
    refused(captured, other, "user", "a stream of the same capture");
    assert_eq!(standin_end_capture(other), 0);
    // The stream `other` joins the capture of `captured` by waiting for it. Work that is submitted
    // to `other` then belongs to this capture.
    assert_eq!((cuEventCreate(&raw mut event, 0), cuEventRecord(event, captured)), (0, 0));
    assert_eq!((cuStreamWaitEvent(other, event, 0), cuEventDestroy_v2(event)), (0, 0));
    let (user, packed) = (memory(&sample(64)), memory(&[0; 32]));
    order(captured, other).unwrap();
    submit(&layout, Direction::Pack, user, 4, packed, other).unwrap();
    order(other, captured).unwrap();
    assert_eq!(standin_end_capture(captured), 0);
    assert_eq!(bytes(packed, 32), [0; 32]);
    assert_eq!(standin_replay(captured), 0);
    assert_eq!(bytes(packed, 32), packed_bytes("resized(0, 16, double)", &sample(64), 4));
    close(layout);
    turn.end();
}

/// Checks `Layout::order`, which makes one stream wait for another one. The function creates an
/// event, and destroys the event even if another call of the driver fails. The two handles of the
/// legacy default stream, 0 and 1, mean the same stream. A stream of another context is refused.
#[test]
fn streams_wait_for_streams() {
    let turn = turn();
    let layout = open("resized(0, 16, double)").unwrap();
    let (mut first, mut then, mut foreign, mut context) = (NONE, NONE, NONE, NONE);
    assert_eq!(cuStreamCreate(&raw mut first, 1), 0);
    assert_eq!(cuStreamCreate(&raw mut then, 1), 0);
    assert_eq!(cuCtxCreate_v2(&raw mut context, 0, 0), 0);
    assert_eq!(cuStreamCreate(&raw mut foreign, 1), 0);
    assert_eq!(cuCtxPopCurrent_v2(&raw mut context), 0);
    // SAFETY: the streams are those of the stand-in, or default streams.
    let order = |first, then| unsafe { layout.order("test", "user", first, then) };
    order(first, then).unwrap();
    assert_eq!((standin_ordered(first, then), standin_ordered(then, first)), (1, 0));
    let legacy: Opaque = std::ptr::without_provenance_mut(1);
    let calls = standin_calls();
    order(legacy, NONE).unwrap();
    order(then, then).unwrap();
    assert_eq!(standin_calls(), calls);
    order(legacy, then).unwrap();
    assert_eq!(standin_ordered(legacy, then), 1);
    for (error, argument) in
        [(order(foreign, then).unwrap_err(), "user"), (order(then, foreign).unwrap_err(), "stream")]
    {
        assert_eq!((error.class(), error.argument()), (ErrorClass::Arg, argument), "{error}");
    }
    let held = standin_held();
    for n in 0..9 {
        assert_eq!(standin_fail(n, 999), 0);
        let error = order(first, then).unwrap_err();
        assert_eq!(standin_fail(-1, 0), 0);
        assert_eq!(error.class(), ErrorClass::Other, "{error}");
        // SAFETY: the stand-in returns a C string that it does not free.
        let name = unsafe { CStr::from_ptr(standin_failed_call()) };
        let left = u64::from(name == c"cuEventDestroy_v2");
        assert_eq!(standin_held() - held, left, "{name:?}");
    }
    close(layout);
    assert_eq!((standin_forget(), cuDevicePrimaryCtxRetain(&raw mut context, 0)), (0, 0));
    turn.end();
}

/// Resets the primary context, which destroys the kernels of an open layout. After the reset, a
/// transfer with the layout must return an error, and closing the layout must still succeed.
#[test]
fn a_destroyed_context_is_an_error() {
    let turn = turn();
    let layout = open("resized(0, 16, double)").unwrap();
    let (user, packed) = (memory(&sample(64)), memory(&[0; 32]));
    assert_eq!(cuDevicePrimaryCtxReset_v2(0), 0);
    let mut popped = NONE;
    assert_eq!(cuCtxPopCurrent_v2(&raw mut popped), 0);
    let error = submit(&layout, Direction::Pack, user, 4, packed, NONE).unwrap_err();
    assert_eq!((error.class(), error.argument()), (ErrorClass::Other, "context"), "{error}");
    close(layout);
    assert_eq!(cuDevicePrimaryCtxRelease_v2(0), 0);
    assert_eq!((standin_held(), standin_faults()), (0, 0));
    drop(turn);
}

/// Runs the benchmark program `judge` with the argument `--quick` on the stand-in for the driver.
/// Sets the environment variables `variables` for the program. Returns its exit status, standard
/// output and standard error.
fn judge(variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    judge_with(&["--quick"], variables)
}

/// Does what [`judge`] does, but passes the arguments `arguments` in place of `--quick`.
fn judge_with(arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let folder = library();
    let folder = Path::new(folder.to_str().unwrap()).parent().unwrap();
    let mut judge = Command::new(env!("CARGO_BIN_EXE_ddtc-gpu-judge"));
    judge.args(arguments).env("LD_LIBRARY_PATH", folder).envs(variables.iter().copied());
    let output = judge.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Checks that the benchmark program `judge` finds wrong bytes. It must name every layout that has
/// a wrong byte, measure nothing, and end with exit status 1. To make bytes wrong, the stand-in
/// changes the first byte that a kernel has written. It does so for three of the kernels that the
/// program runs. The program first packs and unpacks a layout by ddtc, and then packs and unpacks
/// it by one thread for each element. So the first kernel packs the first layout, the fourth kernel
/// unpacks this layout by one thread for each element, and the sixth kernel unpacks the second
/// layout. (`STANDIN_SPOILS=0,3,5` counts the kernels from 0.)
#[test]
fn the_judge_finds_wrong_bytes() {
    let (status, said, error) = judge(&[("STANDIN_SPOILS", "0,3,5")]);
    assert_eq!(status, Some(1), "{said}{error}");
    let wrong: Vec<_> = said.lines().filter_map(|l| l.strip_prefix("WRONG: ")).collect();
    let [first, by_element, second] = wrong[..] else { panic!("{said}{error}") };
    for (line, name, what) in [
        (first, "8 B, stride 16:", " packed: "),
        (by_element, "8 B, stride 16, one thread per element:", " unpacked: "),
        (second, "8 B, stride 64:", " unpacked: "),
    ] {
        assert!(line.starts_with(name) && line.contains(what), "{line}");
        assert!(line.contains("byte 0 is 0x80 and must be 0x00, 0 more bytes are wrong"), "{line}");
    }
    assert!(said.ends_with("3 checks found WRONG bytes, so that nothing is measured\n"), "{said}");
}

/// Checks that the benchmark program `judge` ends with exit status 1 if the driver cannot be
/// initialized, and with exit status 3 if a later call of the driver fails.
#[test]
fn the_judge_reports_failed_calls() {
    for (call, expected, text) in [
        ("cuInit", 1, "the driver says"),
        ("cuModuleLoadData", 3, "CUDA error 1"),
        ("cuLaunchKernel", 3, "CUDA error 1"),
    ] {
        let (status, said, error) = judge(&[("STANDIN_REFUSES", call)]);
        assert_eq!(status, Some(expected), "{call}: {said}{error}");
        assert!(error.starts_with("ddtc-gpu-judge: ") && error.contains(text), "{call}: {error}");
    }
}

/// Checks that the benchmark program `judge` reports a 2-D copy that the driver refuses, and goes
/// on with the other measurements.
#[test]
fn the_judge_goes_on_after_a_refused_copy() {
    let (status, said, error) = judge(&[("STANDIN_REFUSES", "cuMemcpy2DAsync_v2")]);
    assert_eq!(status, Some(0), "{said}{error}");
    assert!(said.matches("2-D copy refused (CUDA error 1)\n").count() > 5, "{said}");
    assert!(said.contains("1001 B, stride 1003"), "{said}");
}

/// Checks that the benchmark program `judge` runs to its end on the stand-in, and finds every byte
/// right. Without a GPU, nothing more can be tested, since the stand-in measures no time.
#[test]
fn the_judge_runs() {
    let (status, said, error) = judge(&[]);
    assert_eq!(status, Some(0), "{said}{error}");
    let right = said
        .lines()
        .find_map(|l| l.strip_suffix(" checks of layouts are right, every byte, gaps and margins included"));
    assert!(right.is_some_and(|n| n.parse::<u32>().unwrap() > 20), "{said}");
    // One layout in each row: 8-byte elements, a run of several elements, a transpose, and single
    // bytes. Below them are the figures of one thread for each element. A structure has none.
    let lines: Vec<&str> = said.lines().collect();
    for (name, has_figure) in [
        ("8 B, stride 64 ", true),
        ("128 B, stride 256 ", true),
        ("transpose of 8 B ", true),
        ("1001 B, stride 1003 ", true),
        ("structure, 20 of 24 B", false),
    ] {
        for direction in Direction::BOTH.map(|direction| format!(" {direction} ")) {
            let of_row = |l: &&str| l.starts_with(name) && l.contains(&direction);
            let at = lines.iter().position(of_row).unwrap_or_else(|| panic!("{name}{direction}: {said}"));
            let next = lines[at + 1];
            let is_figure = next.contains(&direction) && next.contains("one thread per element");
            assert_eq!(is_figure, has_figure, "{name}: {next}");
        }
    }
    assert!(said.contains("370 of 410 kernels ran\n") && !said.contains("did not run"), "{said}");
    assert!(lines[0].starts_with("a stand-in, driver ") && lines[0].ends_with(" for CUDA 12.4"), "{said}");
    // There are no targets for this device.
    assert!(said.contains("only figures follow") && !said.contains(", aim "), "{said}");
}

/// Runs the benchmark program `judge` without `--quick`, with the layouts and sizes that it
/// measures on a GPU. From the first large buffer on, the stand-in is idle: it checks the calls of
/// the driver, but runs no kernels, and memory has no bytes. So this test reaches all that the
/// program does on the host at full size, such as committing a datatype with four million blocks
/// and counting the granules that the blocks touch.
///
/// As the stand-in takes all transfers to last equally long, every target is reached. On an H200
/// the targets are 0.08 lower than those for an H100, such as 0.84 in place of 0.92, but 0.97 for
/// pinned memory on both.
#[test]
fn the_judge_runs_at_full_size() {
    let (status, said, error) = judge_with(&[], &[("STANDIN_IDLES", "1"), ("STANDIN_NAME", "NVIDIA H200")]);
    assert_eq!(status, Some(0), "{said}{error}");
    assert!(said.starts_with("NVIDIA H200, driver "), "{said}");
    assert!(
        said.contains("\nThe aims of speeds are 0.08 lower than those for an H100, but for pinned memory.\n"),
        "{said}"
    );
    assert!(said.contains(" us, aim 1 us more: "), "{said}");
    let has = |parts: &[&str]| {
        let found = said.lines().any(|l| parts.iter().all(|part| l.contains(part)));
        assert!(found, "{parts:?}: {said}");
    };
    // 22 rows in both directions and pinned memory, at three sizes, without two rows at 64 MiB.
    assert_eq!(said.lines().filter(|l| l.contains(" us, copy ")).count(), 2 * (3 * 23 - 2), "{said}");
    for name in ["x face, 8 B", "y face, 1 KiB"] {
        has(&[name, " 67108864 B left out: its buffer would have "]);
    }
    has(&["16 B, ascending", " pack ", " 67108864 B ", " of the bound, aim 0.84: reached"]);
    has(&["16 B, shuffled", " unpack ", " 67108864 B "]);
    has(&["z face, 16 KiB", " pack ", " 1048576 B ", " of the copy kernel, aim 0.82: reached"]);
    has(&["pinned memory", " unpack ", " 67108864 B ", " of the copy kernel, aim 0.97: reached"]);
    // There are no targets at 16 KiB.
    assert!(!said.lines().any(|l| l.contains(" 16384 B ") && l.contains("aim")), "{said}");
    // The processor time is a real time, of which this test knows nothing.
    assert_eq!(said.matches("MISSED").count(), said.matches("more: MISSED").count(), "{said}");
}

/// Checks that loading the driver library returns an error if the library does not exist or lacks a
/// function, and that the error says which of these is the case.
#[test]
fn drivers_that_do_not_serve_are_refused() {
    let load = |name: &CStr| {
        // SAFETY: no library has the first name, and the library with the second name has none of
        // the driver's functions.
        let error = unsafe { Driver::load_from("test", name) }.map(|_| ()).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Unsupported);
        error.to_string()
    };
    assert!(load(c"libcuda-of-nobody.so.1").contains("must be installed"));
    assert!(load(c"libc.so.6").contains("cuInit"));
}
