//! Detection of buffers in device memory, by queries to a GPU runtime if one is loaded.
//!
//! This module also detects other loaded objects: libraries of collective calls, and, through the
//! module `objects`, objects that complete requests by calls that ddtc does not see.
//!
//! A GPU runtime may be loaded at any time. So the number of loaded objects is read again whenever
//! the coarse clock has advanced (every few milliseconds). Loading and starting a GPU runtime takes
//! far longer than one tick of that clock, so the runtime is known before it has allocated any
//! device memory.
//!
//! A small library that completes requests may be loaded within one tick of the coarse clock. So
//! before a call that makes a request is converted, the number of loaded objects is read even if
//! the clock has not advanced, and the references to functions in new objects are examined. The
//! same is done before one-sided operations and calls on files. Examining the references takes a
//! millisecond (for a program with 40 objects whose symbol tables were not read before). Calls
//! whose messages are complete when the call returns do not need this, so the references are not
//! examined for them.

use std::ffi::{CStr, c_int, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};

use ddtc::internal::datatype::{Combiner, Datatype};
use ddtc::internal::methods::*;

use crate::loader::{Opened, loaded_objects, loads};
use crate::objects;
use crate::slow_path::{GPU, OPAQUE_GPU, TYPED_COLLECTIVES, watch};

/// C type of `cuPointerGetAttribute` and `hipPointerGetAttribute`, with the parameters result,
/// attribute and address.
type Query = unsafe extern "C" fn(*mut c_void, c_int, u64) -> c_int;

/// Number of the attribute "kind of memory" in queries about an address:
/// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE` and `HIP_POINTER_ATTRIBUTE_MEMORY_TYPE`.
const MEMORY_TYPE: c_int = 2;
/// Kind of memory that CUDA returns for host memory: `CU_MEMORYTYPE_HOST`.
const CUDA_HOST: u32 = 1;

static CUDA: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static HIP: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Time of the last check of the loaded objects' names, by the coarse clock in nanoseconds; -1
/// before the first check.
static TICK: AtomicI64 = AtomicI64::new(-1);
/// Numbers of loaded and unloaded objects at the last check of the loaded objects' names.
static NAMED: Looked = Looked::never();
/// Numbers of loaded and unloaded objects at the last check of the loaded objects' references to
/// functions.
static READ: Looked = Looked::never();

/// Numbers of objects that had been loaded and unloaded when a check of the loaded objects was last
/// made.
struct Looked([AtomicU64; 2]);

impl Looked {
    const fn never() -> Looked {
        Looked([const { AtomicU64::new(0) }; 2])
    }

    /// Calls `look` with the loaded objects if any object was loaded or unloaded since the last
    /// check. The new numbers are stored only after `look` has returned, so a thread that calls
    /// this function meanwhile checks the objects too. No thread waits for another thread here,
    /// because the constructor of an object that is being loaded may call this function.
    fn when_changed(&self, (loads, unloads): (u64, u64), look: impl FnOnce(Vec<String>)) {
        let now = [loads, unloads];
        if self.0.iter().zip(now).any(|(known, now)| known.load(Ordering::Acquire) != now) {
            look(loaded_objects());
            self.0.iter().zip(now).for_each(|(known, now)| known.store(now, Ordering::Release));
        }
    }
}

/// Returns the monotonic coarse clock in nanoseconds.
#[inline]
fn clock() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a `timespec` that the call may write.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    now.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec)
}

/// Returns true if the coarse clock has not advanced since GPU runtimes were last searched for.
#[inline]
pub(crate) fn is_fresh() -> bool {
    TICK.load(Ordering::Acquire) == clock()
}

/// Searches for newly loaded GPU runtimes if the coarse clock has advanced since the last search.
#[inline]
pub(crate) fn refresh() {
    let tick = clock();
    if TICK.load(Ordering::Acquire) != tick {
        look(tick);
    }
}

/// Checks the file names of newly loaded objects and their references to functions, even if the
/// coarse clock has not advanced.
pub(crate) fn refresh_now() {
    let now = look(TICK.load(Ordering::Acquire));
    READ.when_changed(now, |loaded| objects::look(&loaded, now.1));
}

/// Checks the file names of newly loaded objects, and records `tick` as the time of the check.
/// Returns the numbers of objects that were loaded and unloaded so far.
#[cold]
fn look(tick: i64) -> (u64, u64) {
    let now = loads();
    NAMED.when_changed(now, |loaded| loaded.iter().for_each(|object| name(object)));
    TICK.store(tick, Ordering::Release);
    now
}

/// Recognizes a loaded object by its file name, and records its effect on conversions. The object
/// may be a GPU runtime that can be queried about addresses, a GPU runtime that cannot, or a
/// library of collective operations.
fn name(object: &str) {
    let file = object.rsplit('/').next().unwrap_or("");
    if file.starts_with("libcuda.so") {
        learn(&CUDA, object, c"cuPointerGetAttribute");
    } else if file.starts_with("libamdhip64.so") {
        learn(&HIP, object, c"hipPointerGetAttribute");
    } else if file.starts_with("libze_loader.so") {
        // Level Zero answers queries about an address only for a context, which ddtc does not have.
        // If there is no device, Level Zero allocates no device memory, so every address is host
        // memory.
        if has_level_zero_device(Path::new("/dev")) {
            watch(OPAQUE_GPU);
        }
    } else if file.starts_with("libucc.so") || file.starts_with("libhcoll.so") {
        watch(TYPED_COLLECTIVES);
    }
}

/// Returns true if the folder `dev` (`/dev`) has a device that Level Zero may use: a render node,
/// an accelerator, or under WSL the GPU of the Windows machine (`dxg`). If a subfolder of devices
/// exists and cannot be read, it is assumed to contain a device.
fn has_level_zero_device(dev: &Path) -> bool {
    let has = |folder: &str, prefix: &[u8]| match std::fs::read_dir(dev.join(folder)) {
        Ok(mut entries) => {
            entries.any(|entry| entry.map_or(true, |e| e.file_name().as_encoded_bytes().starts_with(prefix)))
        }
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    };
    has("dri", b"renderD") || has("accel", b"") || dev.join("dxg").exists()
}

fn learn(query: &AtomicPtr<c_void>, object: &str, name: &CStr) {
    let Some(runtime) = Opened::loaded(object) else { return };
    let found = runtime.symbol(name);
    if !found.is_null() {
        runtime.keep();
        query.store(found, Ordering::Release);
        watch(GPU);
    }
}

fn ask(query: &AtomicPtr<c_void>, address: *const c_void) -> Option<u32> {
    let query = query.load(Ordering::Acquire);
    if query.is_null() {
        return None;
    }
    // SAFETY: `query` is not null, so `learn` has stored the address of `cuPointerGetAttribute` or
    // `hipPointerGetAttribute`, whose type the manuals of CUDA and HIP give. Its library is kept
    // loaded.
    let query = unsafe { std::mem::transmute::<*mut c_void, Query>(query) };
    let mut kind = 0u32;
    // SAFETY: the result for the attribute `MEMORY_TYPE` is a 32-bit value, for which `kind` has
    // room. The functions accept any address and return an error for an address that they do not
    // know.
    let code = unsafe { query((&raw mut kind).cast(), MEMORY_TYPE, address.addr() as u64) };
    (code == 0).then_some(kind)
}

/// Maximum number of members of a type with absolute addresses for which the GPU runtimes are
/// queried. If the type has more members, its buffer is not assumed to be in host memory, and is
/// bypassed.
const MEMBERS: usize = 16;

/// Returns true if the loaded GPU runtimes report that the buffer of a type is in host memory. If
/// `buf` is not null, only the first byte of the buffer is looked up. If `buf` is null, the
/// displacements of the type are absolute addresses, and the first byte of each member must be in
/// host memory, because the members may be in memory of different kinds.
pub(crate) fn has_host(buf: *const c_void, t: &Datatype) -> bool {
    if !buf.is_null() {
        return is_host(buf.wrapping_byte_offset(t.true_lb() as isize));
    }
    let mut found = Vec::new();
    members(t, 0, &mut found) && found.iter().all(|&at| is_host(std::ptr::without_provenance(at as usize)))
}

/// Appends to `found` the address of the first byte of each member of a type at address `at`.
/// Members are the blocks that struct, hindexed and hindexed-block constructors place by byte
/// displacements, at any depth below one another and below dup, resized and contiguous
/// constructors. A contiguous constructor contributes the members of its first element only. A type
/// with any other constructor is a single member. Members without bytes are skipped. Returns false,
/// with `found` incomplete, as soon as there are more than [`MEMBERS`] members.
fn members(t: &Datatype, at: i64, found: &mut Vec<i64>) -> bool {
    let mut placed = |n: i64, displacement: i64, t: &Datatype| {
        n == 0 || t.size() == 0 || members(t, at.wrapping_add(displacement), found)
    };
    match t.combiner() {
        Combiner::Dup { oldtype }
        | Combiner::Resized { oldtype, .. }
        | Combiner::Contiguous { oldtype, .. } => placed(1, 0, oldtype),
        Combiner::Hindexed { blocklengths, displacements, oldtype, .. } => {
            blocklengths.iter().zip(displacements.iter()).all(|(&n, &d)| placed(n, d, oldtype))
        }
        Combiner::HindexedBlock { blocklength, displacements, oldtype } => {
            displacements.iter().all(|&d| placed(*blocklength, d, oldtype))
        }
        Combiner::Struct { blocklengths, displacements, types, .. } => {
            let mut members = blocklengths.iter().zip(displacements.iter()).zip(types.iter());
            members.all(|((&n, &d), t)| placed(n, d, t))
        }
        _ => {
            found.push(at.wrapping_add(t.true_lb()));
            found.len() <= MEMBERS
        }
    }
}

/// Returns true if the loaded GPU runtimes report that the memory at an address is host memory.
pub(crate) fn is_host(address: *const c_void) -> bool {
    // CUDA also knows some host memory (pinned memory), and reports it as host memory. HIP's
    // numbers for the kinds of memory changed between releases, so all memory that HIP knows is
    // treated as device memory, and calls with it are bypassed.
    ask(&CUDA, address).is_none_or(|kind| kind == CUDA_HOST) && ask(&HIP, address).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_zero_has_a_device_by_its_node() {
        let dev = ddtc::internal::files::temporary_folder("ddtc-dev").unwrap();
        assert!(!has_level_zero_device(&dev));
        std::fs::create_dir_all(dev.join("dri/by-path")).unwrap();
        std::fs::create_dir(dev.join("accel")).unwrap();
        std::fs::write(dev.join("dri/card0"), "").unwrap();
        assert!(!has_level_zero_device(&dev));
        for node in ["dri/renderD128", "accel/accel0", "dxg"] {
            std::fs::write(dev.join(node), "").unwrap();
            assert!(has_level_zero_device(&dev), "{node}");
            std::fs::remove_file(dev.join(node)).unwrap();
        }
        std::fs::remove_dir(dev.join("accel")).unwrap();
        // A file of this name exists and cannot be read as a folder, so it counts as a device.
        std::fs::write(dev.join("accel"), "").unwrap();
        assert!(has_level_zero_device(&dev));
    }

    #[test]
    fn members_of_absolute_types_are_told_apart() {
        let of = |text: &str| {
            let mut found = Vec::new();
            members(&text.parse().unwrap(), 0, &mut found).then_some(found)
        };
        assert_eq!(of("vector(3,1,2,int)"), Some(vec![0]));
        assert_eq!(
            of("struct([1,0,2],[70000,5,90000],[vector(3,1,2,int),int,hindexed([1,1],[8,800],double)])"),
            Some(vec![70000, 90008, 90800])
        );
        let blocks = |n: i64| {
            let list = (0..n).map(|i| (100_000 + 64 * i).to_string()).collect::<Vec<_>>().join(",");
            of(&format!("resized(0,8,hindexed_block(2,[{list}],int))")).map(|found| found.len())
        };
        assert_eq!((blocks(16), blocks(17)), (Some(16), None));
    }
}
