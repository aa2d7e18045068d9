//! Pages from the system: anonymous ones, and one memfd mapped twice.

use std::io;
use std::ptr::{self, NonNull};

use crate::error::{Error, ErrorClass, Result};
use crate::process::{forks, without_sigxfsz};

/// One mapping, and the right to its pages; unmapped on drop. Whoever hands out addresses in it
/// keeps it until nobody uses them.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `len` bytes of `fd` (or anonymous memory for -1) with `protection`.
    fn new(len: usize, protection: i32, fd: i32) -> Result<Mapping> {
        let flags = if fd < 0 { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS } else { libc::MAP_SHARED };
        // SAFETY: no address is asked for, so no mapping in use can be replaced.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, fd, 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Mapping { start, len }),
            _ => Err(system_error("mmap")),
        }
    }
}

impl Mapping {
    /// New pages to write to, of nobody else.
    pub(super) fn own(len: usize) -> Result<Mapping> {
        Mapping::new(len, libc::PROT_READ | libc::PROT_WRITE, -1)
    }

    /// Gives the pages up to the holder of the address.
    pub(super) fn into_start(self) -> NonNull<u8> {
        let start = self.start;
        std::mem::forget(self);
        start
    }

    /// Takes back what [`Mapping::into_start`] gave up.
    ///
    /// # Safety
    /// `start` must come from a mapping of `len` bytes, and nobody may use the pages any more.
    pub(super) unsafe fn from_start(start: NonNull<u8>, len: usize) -> Mapping {
        Mapping { start, len }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `start` and `len` are of a mapping that `new` made, or that `from_start` was
        // promised. This value alone has the right to its pages, and its owner drops it only when
        // nobody uses them.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// One memfd, mapped twice.
#[derive(Debug)]
pub(super) struct Segment {
    write: Mapping,
    execute: Mapping,
    /// Bytes given out so far, from the start.
    pub(super) used: usize,
    /// Slots given out and not returned.
    pub(super) live: usize,
    /// Number of forks before it was made.
    forks: u64,
}

impl Segment {
    pub(super) fn new(len: usize) -> Result<Segment> {
        // First: a fork meanwhile shares what is made here.
        let forks = forks();
        let fd = memfd(len)?;
        let write = Mapping::new(len, libc::PROT_READ | libc::PROT_WRITE, fd.0)?;
        let execute = Mapping::new(len, libc::PROT_READ | libc::PROT_EXEC, fd.0)?;
        Ok(Segment { write, execute, used: 0, live: 0, forks })
    }

    /// Says whether it is shared with a forked process: never written, never given out again.
    pub(super) fn is_sealed(&self) -> bool {
        self.forks != forks()
    }

    /// Addresses of the byte at `offset`: to write, to execute.
    pub(super) fn at(&self, offset: usize) -> (NonNull<u8>, NonNull<u8>) {
        assert!(offset < self.write.len, "a slot lies in its segment");
        // SAFETY: `offset` lies inside both mappings, which have the same length.
        unsafe { (self.write.start.add(offset), self.execute.start.add(offset)) }
    }

    /// Bytes mapped.
    pub(super) fn len(&self) -> usize {
        self.write.len
    }

    /// Offset of a slot by its address to write.
    pub(super) fn offset(&self, write: NonNull<u8>) -> usize {
        write.as_ptr() as usize - self.write.start.as_ptr() as usize
    }
}

/// A file descriptor; closed on drop. The mappings keep the memory alive.
struct Descriptor(i32);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor was opened by `memfd` and is owned here.
        unsafe { libc::close(self.0) };
    }
}

fn memfd(len: usize) -> Result<Descriptor> {
    /// Ask for executable pages where `vm.memfd_noexec` would take them away (Linux 6.3); unknown to older kernels.
    const MFD_EXEC: u32 = 0x10;
    let create = |flags: u32| {
        // SAFETY: the name is a valid C string; the call returns a descriptor or -1.
        unsafe { libc::memfd_create(c"ddtc".as_ptr(), flags) }
    };
    let mut fd = create(libc::MFD_CLOEXEC | MFD_EXEC);
    if fd < 0 {
        fd = create(libc::MFD_CLOEXEC);
    }
    if fd < 0 {
        return Err(system_error("memfd_create"));
    }
    let fd = Descriptor(fd);
    // Past the limit on file sizes this is an error like any other.
    without_sigxfsz(|| {
        // SAFETY: the descriptor is open and owned here.
        let status = unsafe { libc::ftruncate(fd.0, len as libc::off_t) };
        if status == 0 { Ok(()) } else { Err(system_error("ftruncate")) }
    })?;
    Ok(fd)
}

pub(super) fn system_error(call: &'static str) -> Error {
    let error = io::Error::last_os_error();
    Error::new(ErrorClass::NoMem, "arena", call, &error, "must give executable memory").because(error)
}

pub(super) fn page() -> usize {
    // SAFETY: no precondition.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Completes the data side before the instruction side is invalidated. Only aarch64 may need it (CTR_EL0.IDC = 0).
///
/// # Safety
/// The `len` bytes from `start` on must be mapped and readable.
pub(super) unsafe fn clean_data_cache(start: *mut u8, len: usize) {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: each line has one of the caller's bytes and lies within that byte's page, so it is
    // readable, as `dc cvau` needs. It is cleaned to the point of unification, which changes no
    // value. Then a barrier.
    unsafe {
        for line in lines(start, len, 16) {
            std::arch::asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags));
        }
        std::arch::asm!("dsb ish", options(nostack, preserves_flags));
    }
    let _ = (start, len);
}

/// Invalidates the instruction side. By the machine's lines: wasmtime's function takes steps of 64 bytes, which leaves every
/// other line stale where lines have 32 (as those of QEMU's `max`).
///
/// # Safety
/// The `len` bytes from `start` on must be mapped and readable.
pub(super) unsafe fn invalidate_instruction_cache(start: *const u8, len: usize) {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as in `clean_data_cache`, each line is readable; its cached copy as instructions is
    // forgotten, which changes no value. Then barriers.
    unsafe {
        for line in lines(start, len, 0) {
            std::arch::asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags));
        }
        std::arch::asm!("dsb ish", "isb", options(nostack, preserves_flags));
    }
    let _ = (start, len);
}

/// Addresses of the cache lines of `len` bytes; the line length stands at bit `field` of CTR_EL0, as a power of two of words of
/// 4 bytes.
#[cfg(target_arch = "aarch64")]
fn lines(start: *const u8, len: usize, field: u32) -> impl Iterator<Item = usize> {
    let types: u64;
    // SAFETY: reads a register that programs may read.
    unsafe { std::arch::asm!("mrs {}, ctr_el0", out(reg) types, options(nomem, nostack, preserves_flags)) };
    let line = 4 << (types >> field & 15);
    let start = start as usize;
    (start & !(line - 1)..start + len).step_by(line)
}
