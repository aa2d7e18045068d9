//! Pages from the operating system: anonymous pages, and memfds that are mapped twice.

use std::io;
use std::ptr::{self, NonNull};

use crate::error::{Error, ErrorClass, Result};
use crate::process::{forks, without_sigxfsz};

/// A mapping of pages, which is removed on drop. An owner that hands out addresses in the mapping
/// keeps the mapping until nobody uses these addresses any more.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process and not to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `len` bytes of the file descriptor `fd`, or of anonymous memory if `fd` is negative,
    /// with the given `protection`.
    fn new(len: usize, protection: i32, fd: i32) -> Result<Mapping> {
        let flags = if fd < 0 { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS } else { libc::MAP_SHARED };
        // SAFETY: the address is null and `MAP_FIXED` is not set, so the system chooses a free
        // range and replaces no mapping in use.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, fd, 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Mapping { start, len }),
            _ => Err(system_error("mmap")),
        }
    }
}

impl Mapping {
    /// Returns new writable pages that no other process shares.
    pub(super) fn own(len: usize) -> Result<Mapping> {
        Mapping::new(len, libc::PROT_READ | libc::PROT_WRITE, -1)
    }

    /// Gives up the ownership of the pages without unmapping them. From here on the holder of the
    /// returned address owns the pages.
    pub(super) fn into_start(self) -> NonNull<u8> {
        let start = self.start;
        std::mem::forget(self);
        start
    }

    /// Returns the mapping that [`Mapping::into_start`] gave up.
    ///
    /// # Safety
    /// `start` must come from [`Mapping::into_start`] of a mapping of `len` bytes, which no other
    /// `Mapping` owns. Nobody may use the pages after the returned mapping is dropped.
    pub(super) unsafe fn from_start(start: NonNull<u8>, len: usize) -> Mapping {
        Mapping { start, len }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `start` and `len` belong to a mapping that `new` made or that the caller of
        // `from_start` vouched for. Only this value owns the pages, and its owner drops it only
        // when nobody uses them.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// A memfd that is mapped twice.
#[derive(Debug)]
pub(super) struct Segment {
    write: Mapping,
    execute: Mapping,
    /// Number of bytes handed out so far. They are the first bytes of the segment.
    pub(super) used: usize,
    /// Number of slots that were handed out and are not yet returned.
    pub(super) live: usize,
    /// Value of the counter [`forks`] before the segment was made.
    forks: u64,
}

impl Segment {
    pub(super) fn new(len: usize) -> Result<Segment> {
        // Read the counter of forks before the memory is mapped. If a fork happens after this line,
        // the new process may share the segment, and the older value of the counter makes the
        // segment count as shared.
        let forks = forks();
        let fd = memfd(len)?;
        let write = Mapping::new(len, libc::PROT_READ | libc::PROT_WRITE, fd.0)?;
        let execute = Mapping::new(len, libc::PROT_READ | libc::PROT_EXEC, fd.0)?;
        Ok(Segment { write, execute, used: 0, live: 0, forks })
    }

    /// Returns true if a forked process may share the segment. The memory of such a segment is
    /// never handed out again. It is written only through drafts that were handed out before the
    /// fork.
    pub(super) fn is_sealed(&self) -> bool {
        self.forks != forks()
    }

    /// Returns the addresses of the byte at `offset`: one for writing, one for execution.
    pub(super) fn addresses(&self, offset: usize) -> (NonNull<u8>, NonNull<u8>) {
        assert!(offset < self.write.len, "a slot lies in its segment");
        // SAFETY: the assertion shows that `offset` lies inside the first mapping, and both have
        // the same length (`Segment::new`), so both sums stay inside their mappings.
        unsafe { (self.write.start.add(offset), self.execute.start.add(offset)) }
    }

    /// Returns the number of mapped bytes.
    pub(super) fn len(&self) -> usize {
        self.write.len
    }

    /// Returns the offset of the slot whose address for writing is `write`.
    pub(super) fn offset(&self, write: NonNull<u8>) -> usize {
        write.as_ptr() as usize - self.write.start.as_ptr() as usize
    }
}

/// A file descriptor, which is closed on drop. Mappings of the file keep its memory alive.
struct Descriptor(i32);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: `memfd` opened the descriptor, and only this value owns it.
        unsafe { libc::close(self.0) };
    }
}

fn memfd(len: usize) -> Result<Descriptor> {
    /// Flag that asks for executable pages. Since Linux 6.3, the setting `vm.memfd_noexec` may
    /// forbid them without this flag. Older kernels refuse the flag.
    const MFD_EXEC: u32 = 0x10;
    let create = |flags: u32| {
        // SAFETY: the name is a valid C string. The call returns a descriptor or -1.
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
    // If the file would exceed the limit on file sizes, `ftruncate` also raises a signal that ends
    // the process. `without_sigxfsz` prevents this, so that only the error remains.
    without_sigxfsz(|| {
        // SAFETY: `fd` is an open descriptor that this function owns.
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
    // SAFETY: `sysconf` has no precondition.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Writes `len` bytes back from the data cache as far as instruction fetches need it, before the
/// instruction cache is invalidated. Of the supported architectures only aarch64 may need this (if
/// `CTR_EL0.IDC` is 0); on others the function does nothing.
///
/// # Safety
/// The `len` bytes from `start` must be mapped and readable.
pub(super) unsafe fn clean_data_cache(start: *mut u8, len: usize) {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: each line contains one of the bytes that the caller vouches for and lies within the
    // page of that byte, so it is readable, as `dc cvau` needs. The instruction cleans the line to
    // the point of unification, which changes no value. A barrier follows.
    unsafe {
        for line in lines(start, len, 16) {
            std::arch::asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags));
        }
        std::arch::asm!("dsb ish", options(nostack, preserves_flags));
    }
    let _ = (start, len);
}

/// Invalidates `len` bytes in the instruction cache on aarch64; on other architectures the function
/// does nothing. The code steps through the bytes by the length of a cache line of this machine.
/// The function `clear_cache` of wasmtime takes steps of 64 bytes, which leaves every other line
/// stale on machines with lines of 32 bytes, such as the `max` processor of QEMU.
///
/// # Safety
/// The `len` bytes from `start` must be mapped and readable.
pub(super) unsafe fn invalidate_instruction_cache(start: *const u8, len: usize) {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: each line is readable, as in `clean_data_cache`. Its cached copy as instructions is
    // dropped, which changes no value. Barriers follow.
    unsafe {
        for line in lines(start, len, 0) {
            std::arch::asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags));
        }
        std::arch::asm!("dsb ish", "isb", options(nostack, preserves_flags));
    }
    let _ = (start, len);
}

/// Returns the addresses of the cache lines that contain the `len` bytes from `start`. The register
/// `CTR_EL0` contains the line length at bit `field`, as the binary logarithm of its number of
/// 4-byte words.
#[cfg(target_arch = "aarch64")]
fn lines(start: *const u8, len: usize, field: u32) -> impl Iterator<Item = usize> {
    let types: u64;
    // SAFETY: the instruction reads a register that programs may read.
    unsafe { std::arch::asm!("mrs {}, ctr_el0", out(reg) types, options(nomem, nostack, preserves_flags)) };
    let line = 4 << (types >> field & 15);
    let start = start as usize;
    (start & !(line - 1)..start + len).step_by(line)
}
