//! Buffers that are not host memory: asked of a GPU runtime, if one is loaded. Objects that complete requests past this
//! library (`objects`) and libraries of collectives are noticed here too.
//!
//! A runtime may come into the process at any time. The number of loaded objects is read again when the coarse clock has moved on
//! (a few milliseconds): loading and starting a GPU runtime takes far longer than that, so no device memory can be older
//! than our knowledge of the runtime that gave it out. A small library that completes requests is loaded in less than that, so before one is
//! converted the number is read in any case. What objects refer to is read only then: that takes a millisecond (of a program with 40 objects, whose symbols
//! nobody has touched), which messages that are complete when their call returns need not pay.

use std::ffi::{CStr, c_int, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};

use ddtc::datatype::{Combiner, Datatype};

use crate::loader::{Opened, loaded_objects, loads};
use crate::objects;
use crate::slow_path::{GPU, OPAQUE_GPU, TYPED_COLLECTIVES, watch};

/// `cuPointerGetAttribute` and `hipPointerGetAttribute`: (result, attribute, address).
type Query = unsafe extern "C" fn(*mut c_void, c_int, u64) -> c_int;

/// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE` and `HIP_POINTER_ATTRIBUTE_MEMORY_TYPE`.
const MEMORY_TYPE: c_int = 2;
/// `CU_MEMORYTYPE_HOST`.
const CUDA_HOST: u32 = 1;

static CUDA: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static HIP: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// When the loaded objects were looked at.
static TICK: AtomicI64 = AtomicI64::new(-1);
/// Those of which the names are known, and those of which what they refer to is.
static NAMED: Looked = Looked::never();
static READ: Looked = Looked::never();

/// Numbers of loads and unloads at which the loaded objects were looked at.
struct Looked([AtomicU64; 2]);

impl Looked {
    const fn never() -> Looked {
        Looked([const { AtomicU64::new(0) }; 2])
    }

    /// Looks by `look` if anything was loaded or unloaded since. Known only when all is looked at: a thread that comes meanwhile looks too, and none waits, since
    /// a constructor may call.
    fn at(&self, (loads, unloads): (u64, u64), look: impl FnOnce(Vec<String>)) {
        let now = [loads, unloads];
        if self.0.iter().zip(now).any(|(known, now)| known.load(Ordering::Acquire) != now) {
            look(loaded_objects());
            self.0.iter().zip(now).for_each(|(known, now)| known.store(now, Ordering::Release));
        }
    }
}

/// Returns the coarse clock in nanoseconds.
#[inline]
fn clock() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a timespec to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    now.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec)
}

/// Says whether the clock has not moved on since GPU runtimes were looked for.
#[inline]
pub(crate) fn is_fresh() -> bool {
    TICK.load(Ordering::Acquire) == clock()
}

/// Looks for GPU runtimes if the clock has moved on.
#[inline]
pub(crate) fn refresh() {
    let tick = clock();
    if TICK.load(Ordering::Acquire) != tick {
        look(tick);
    }
}

/// Looks for objects that were loaded, whatever the clock says, and at what they refer to.
pub(crate) fn refresh_now() {
    let now = look(TICK.load(Ordering::Acquire));
    READ.at(now, |loaded| objects::look(&loaded, now.1));
}

/// Returns the numbers of loads and unloads.
#[cold]
fn look(tick: i64) -> (u64, u64) {
    let now = loads();
    NAMED.at(now, |loaded| loaded.iter().for_each(|object| name(object)));
    TICK.store(tick, Ordering::Release);
    now
}

/// Notes what the name of a loaded object tells.
fn name(object: &str) {
    let file = object.rsplit('/').next().unwrap_or("");
    if file.starts_with("libcuda.so") {
        learn(&CUDA, object, c"cuPointerGetAttribute");
    } else if file.starts_with("libamdhip64.so") {
        learn(&HIP, object, c"hipPointerGetAttribute");
    } else if file.starts_with("libze_loader.so") {
        // Level Zero tells about an address only within a context that we do not have. Without a device
        // it gives out no memory, so every address is host memory.
        if has_level_zero_device(Path::new("/dev")) {
            watch(OPAQUE_GPU);
        }
    } else if file.starts_with("libucc.so") || file.starts_with("libhcoll.so") {
        watch(TYPED_COLLECTIVES);
    }
}

/// Says whether a folder of devices has one that Level Zero may use: a render node, an accelerator, or
/// the GPU of the host under WSL. A folder that cannot be read counts as one with a device.
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
    // SAFETY: a function of that name in the runtime's library, whose type its manual gives.
    let query = unsafe { std::mem::transmute::<*mut c_void, Query>(query) };
    let mut kind = 0u32;
    // SAFETY: room for the 32-bit result; any address may be asked about.
    let code = unsafe { query((&raw mut kind).cast(), MEMORY_TYPE, address.addr() as u64) };
    (code == 0).then_some(kind)
}

/// Members of a type of absolute addresses that are asked about: those of a type with more are not taken for host memory.
const MEMBERS: usize = 16;

/// Says whether the loaded runtimes let us touch the buffer of a type: where its first byte is, or, of a type of absolute addresses, where each of its
/// members is, which may be in memory of several kinds.
pub(crate) fn has_host(buf: *const c_void, t: &Datatype) -> bool {
    if !buf.is_null() {
        return is_host(buf.wrapping_byte_offset(t.true_lb() as isize));
    }
    let mut found = Vec::new();
    members(t, 0, &mut found) && found.iter().all(|&at| is_host(std::ptr::without_provenance(at as usize)))
}

/// Addresses of the first bytes of what a type's constructors place by themselves; whether they are no more than [`MEMBERS`].
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

/// Says whether the loaded runtimes let us touch the memory at an address.
pub(crate) fn is_host(address: *const c_void) -> bool {
    // CUDA knows pinned host memory as host memory, HIP's numbers changed between releases: what it knows is left to the host.
    ask(&CUDA, address).is_none_or(|kind| kind == CUDA_HOST) && ask(&HIP, address).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_zero_has_a_device_by_its_node() {
        let dev = ddtc::files::temporary_folder("ddtc-dev").unwrap();
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
        // What is no folder cannot be read as one.
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
