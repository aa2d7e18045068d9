//! Executable memory: where kernels live, one slot each, freed one by one.
//!
//! One memfd is mapped twice, readable and writable here, readable and executable there, so no page is ever writable and
//! executable at once and no `mprotect` is paid per kernel. Segments grow on demand; a freed slot goes to the free list of
//! its size class. Where a memfd is refused (seccomp, a mount without execution) every slot gets its own anonymous pages,
//! written first and then made executable by one `mprotect`.
//!
//! Invariants:
//! * a slot has one owner, [`Draft`] while it is written and [`Slot`] once it runs;
//! * a memfd mapping is shared with a forked child, so a fork **seals** every segment on both sides: a sealed slot is never
//!   given out again, and the next kernel of either process goes to a memfd of its own.
//!
//! What is sealed is told by the number of forks ([`forks`]): a segment is of the number at which it was made.
#![allow(unsafe_code)] // Mapping pages and handing out addresses in them is what this room is for.

mod pages;

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::error::{Error, ErrorClass, Result};
use crate::process::{Guard, Mutex, forks};

use pages::{Mapping, Segment, clean_data_cache, invalidate_instruction_cache, page, system_error};

/// Smallest slot and alignment of every slot, in bytes: one cache line.
const LINE: usize = 64;
/// First segment of an arena in bytes: some 300 kernels of usual size.
const FIRST_SEGMENT: usize = 64 << 10;
/// Segments double up to this size in bytes.
const LARGEST_SEGMENT: usize = 2 << 20;
/// Largest alignment that a slot can be given, in bytes; the pages of any supported machine are at least this large.
const LARGEST_ALIGNMENT: u64 = 4096;

/// Figures of one arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Slots given out and not yet returned.
    pub live: usize,
    /// Bytes charged against the limit: everything ever given out from segments that still exist, free slots included.
    pub charged: usize,
    /// Segments that are mapped, sealed ones included.
    pub segments: usize,
    /// Segments that a fork has sealed.
    pub sealed: usize,
    /// Slots that were given pages of their own, because the system refused a memfd; since the arena was made.
    pub own_pages: u64,
}

/// All arenas of the process, under one lock: it is held for tens of nanoseconds per compile.
#[derive(Debug)]
struct Registry {
    next: u64,
    arenas: BTreeMap<u64, State>,
}

impl Registry {
    fn state(&mut self, id: u64) -> &mut State {
        let state = self.arenas.get_mut(&id).expect("an arena lives as long as its handle");
        state.notice_forks();
        state
    }
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { next: 0, arenas: BTreeMap::new() });

fn lock() -> Guard<'static, Registry> {
    REGISTRY.lock()
}

/// A piece of executable memory that grows up to a limit. Cloning shares it; it is unmapped with its last slot.
#[derive(Clone, Debug)]
pub struct Arena {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    id: u64,
}

impl Arena {
    /// Returns an arena of at most `limit_bytes` bytes of slots. Nothing is mapped before the first slot.
    pub fn new(limit_bytes: usize) -> Arena {
        Arena::with_source(limit_bytes, true)
    }

    /// As [`Arena::new`], but as on a machine that refuses `memfd_create`: every slot has pages of its own.
    pub fn without_memfd(limit_bytes: usize) -> Arena {
        Arena::with_source(limit_bytes, false)
    }

    fn with_source(limit: usize, memfd: bool) -> Arena {
        let mut registry = lock();
        let id = registry.next;
        registry.next += 1;
        registry.arenas.insert(id, State { limit, memfd, ..State::default() });
        Arena { handle: Arc::new(Handle { id }) }
    }

    /// Returns a slot of `len` bytes at a multiple of `alignment` bytes, to be written.
    ///
    /// # Errors
    /// `NoMem` when the limit is reached or the system has no memory to map; `Arg` for an empty slot or an alignment that
    /// is not a power of two up to 4096.
    pub fn allocate(&self, len: usize, alignment: u64) -> Result<Draft> {
        if len == 0 || len > isize::MAX as usize / 2 {
            return Err(Error::new(
                ErrorClass::Arg,
                "arena",
                "len",
                len,
                "must be at least 1 and addressable",
            ));
        }
        if !alignment.is_power_of_two() || alignment > LARGEST_ALIGNMENT {
            return Err(Error::new(
                ErrorClass::Arg,
                "arena",
                "alignment",
                alignment,
                "must be a power of two up to 4096",
            ));
        }
        let size = size_class(len, alignment as usize);
        let address = lock().state(self.handle.id).allocate(size, alignment as usize)?;
        Ok(Draft { slot: Slot { address, len, size, handle: Arc::clone(&self.handle) } })
    }

    /// Figures of this moment.
    pub fn usage(&self) -> Usage {
        let mut registry = lock();
        let state = registry.state(self.handle.id);
        Usage {
            live: state.live,
            charged: state.charged,
            segments: state.segments.len(),
            sealed: state.segments.values().filter(|s| s.is_sealed()).count(),
            own_pages: state.own_pages,
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Every slot holds the handle, so none is left. Unmapping happens after the lock is released.
        let state = lock().arenas.remove(&self.id);
        drop(state);
    }
}

/// A slot that is being written: not executable through the address it shows.
#[derive(Debug)]
pub struct Draft {
    slot: Slot,
}

impl Draft {
    /// Returns the address to write the code to; `len` bytes are valid until the draft is sealed or dropped.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.slot.address.write.as_ptr()
    }

    /// Copies `code` to the start of the slot.
    ///
    /// # Panics
    /// If `code` is longer than the slot.
    pub fn write(&mut self, code: &[u8]) {
        assert!(code.len() <= self.slot.len, "code longer than its slot");
        // SAFETY: the slot has at least `code.len()` writable bytes that only this draft hands out.
        unsafe { ptr::copy_nonoverlapping(code.as_ptr(), self.as_mut_ptr(), code.len()) }
    }

    /// Makes the written bytes executable.
    ///
    /// # Errors
    /// `NoMem` when the system refuses executable pages.
    pub fn seal(self) -> Result<Slot> {
        let Slot { address, len, size, .. } = self.slot;
        // SAFETY: the slot's bytes, which are mapped as long as it is, to be read and written.
        unsafe { clean_data_cache(address.write.as_ptr(), len) };
        if address.segment.is_none() {
            // SAFETY: the pages at `write` are this slot's own mapping of `size` bytes; nobody else holds an address in it.
            let status = unsafe {
                libc::mprotect(address.write.as_ptr().cast(), size, libc::PROT_READ | libc::PROT_EXEC)
            };
            if status != 0 {
                return Err(system_error("mprotect"));
            }
        }
        // SAFETY: the same bytes by the other mapping, to be read and executed.
        unsafe { invalidate_instruction_cache(address.execute.as_ptr(), len) };
        let code = address.execute.as_ptr().cast::<c_void>().cast_const();
        // For riscv64, and for the pipelines of other threads.
        // SAFETY: `code` is mapped for `len` bytes; the call only maintains caches.
        unsafe { wasmtime_internal_jit_icache_coherence::clear_cache(code, len) }
            .and_then(|()| wasmtime_internal_jit_icache_coherence::pipeline_flush_mt())
            .map_err(|e| {
                Error::new(
                    ErrorClass::Other,
                    "arena",
                    "instruction cache",
                    e,
                    "must be flushed after writing",
                )
            })?;
        Ok(self.slot)
    }
}

/// A slot that holds sealed code; returned to its arena on drop.
#[derive(Debug)]
pub struct Slot {
    address: SlotAddress,
    /// Bytes asked for.
    len: usize,
    /// Bytes occupied.
    size: usize,
    handle: Arc<Handle>,
}

impl Slot {
    /// Returns the address of the first instruction.
    pub fn address(&self) -> NonNull<u8> {
        self.address.execute
    }

    /// Returns the bytes of the code, as the processor sees them.
    pub fn code(&self) -> &[u8] {
        // SAFETY: `execute` is mapped readable for `len` bytes as long as the slot lives, and sealed code is never written.
        unsafe { std::slice::from_raw_parts(self.address.execute.as_ptr(), self.len) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let emptied = lock().state(self.handle.id).release(&self.address, self.size);
        drop(emptied);
    }
}

// SAFETY: the addresses are of process-wide mappings; a draft is written through `&mut`, a slot only read.
unsafe impl Send for Slot {}
// SAFETY: as above: nothing is written through a shared slot.
unsafe impl Sync for Slot {}

/// The two addresses of a slot: one mapping is written through, the other one runs. They are equal for pages of its own.
#[derive(Clone, Copy, Debug)]
struct SlotAddress {
    /// The segment it was cut from; none for pages of its own.
    segment: Option<u64>,
    write: NonNull<u8>,
    execute: NonNull<u8>,
}

impl SlotAddress {
    fn at(id: u64, segment: &Segment, offset: usize) -> SlotAddress {
        let (write, execute) = segment.at(offset);
        SlotAddress { segment: Some(id), write, execute }
    }
}

/// Bytes that a slot of `len` bytes occupies: whole lines up to 1 KiB, then four classes per doubling.
fn size_class(len: usize, alignment: usize) -> usize {
    let unit = LINE.max(alignment);
    let step = (len.next_power_of_two() / 8).max(unit);
    len.next_multiple_of(if len <= 1024 { unit } else { step })
}

/// Memory that one arena owns. Reached only under the lock of the registry.
#[derive(Debug, Default)]
struct State {
    limit: usize,
    memfd: bool,
    own_pages: u64,
    /// Number of forks when free lists were last looked through.
    forks: u64,
    charged: usize,
    live: usize,
    segments: BTreeMap<u64, Segment>,
    /// The segment that new slots are cut from.
    current: Option<u64>,
    next_segment: u64,
    next_len: usize,
    /// Free slots by size: segment and offset.
    free: BTreeMap<usize, Vec<(u64, usize)>>,
}

impl State {
    fn allocate(&mut self, size: usize, alignment: usize) -> Result<SlotAddress> {
        let address = match self.reuse(size, alignment) {
            Some(address) => address,
            None => self.cut(size, alignment)?,
        };
        self.live += 1;
        Ok(address)
    }

    /// A free slot of exactly this class.
    fn reuse(&mut self, size: usize, alignment: usize) -> Option<SlotAddress> {
        let list = self.free.get_mut(&size)?;
        // Offsets are line-aligned; a larger alignment is rare enough to be searched for.
        let at = list.iter().rposition(|&(_, offset)| offset % alignment == 0)?;
        let (id, offset) = list.swap_remove(at);
        let segment = self.segments.get_mut(&id)?;
        segment.live += 1;
        Some(SlotAddress::at(id, segment, offset))
    }

    /// A slot that was never given out.
    fn cut(&mut self, size: usize, alignment: usize) -> Result<SlotAddress> {
        if self.memfd {
            match self.cut_segment(size, alignment) {
                Ok(address) => return Ok(address),
                Err(e) if e.argument() == "limit" => return Err(e),
                // Refused once is refused for good: no system call is wasted on the next slot.
                Err(_) => self.memfd = false,
            }
        }
        let len = size.next_multiple_of(page());
        self.charge(len)?;
        // The slot owns the pages; `release` takes them back.
        let start = Mapping::own(len).inspect_err(|_| self.charged -= len)?.into_start();
        self.own_pages += 1;
        Ok(SlotAddress { segment: None, write: start, execute: start })
    }

    fn cut_segment(&mut self, size: usize, alignment: usize) -> Result<SlotAddress> {
        if let Some(id) = self.current {
            let segment = &self.segments[&id];
            let offset = segment.used.next_multiple_of(alignment);
            if !segment.is_sealed() && offset + size <= segment.len() {
                self.charge(offset + size - segment.used)?;
                let segment = self.segments.get_mut(&id).expect("just seen");
                segment.used = offset + size;
                segment.live += 1;
                return Ok(SlotAddress::at(id, segment, offset));
            }
        }
        self.sweep();
        self.charge(size)?;
        let wanted = self.next_len.max(FIRST_SEGMENT);
        let len = wanted.max(size).next_multiple_of(page());
        let segment = Segment::new(len).inspect_err(|_| self.charged -= size)?;
        self.next_len = (wanted * 2).min(LARGEST_SEGMENT);
        let id = self.next_segment;
        self.next_segment += 1;
        self.current = Some(id);
        let segment = self.segments.entry(id).or_insert(segment);
        segment.used = size;
        segment.live = 1;
        Ok(SlotAddress::at(id, segment, 0))
    }

    /// Unmaps sealed segments that were empty when they were sealed. Rare, so under the lock.
    fn sweep(&mut self) {
        let charged = &mut self.charged;
        self.segments.retain(|_, segment| {
            let keep = !segment.is_sealed() || segment.live > 0;
            if !keep {
                *charged -= segment.used;
            }
            keep
        });
    }

    fn charge(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.limit.saturating_sub(self.charged) {
            return Err(Error::new(
                ErrorClass::NoMem,
                "arena",
                "limit",
                self.limit,
                "executable memory is used up",
            ));
        }
        self.charged += bytes;
        Ok(())
    }

    /// Takes a slot back; returns what is to be unmapped once the lock is released.
    fn release(&mut self, address: &SlotAddress, size: usize) -> Option<Emptied> {
        self.live -= 1;
        let Some(id) = address.segment else {
            let len = size.next_multiple_of(page());
            self.charged -= len;
            // SAFETY: `cut` gave up pages of this length; the slot that had them is being dropped.
            return Some(Emptied::Own(unsafe { Mapping::from_start(address.write, len) }));
        };
        let segment = self.segments.get_mut(&id).expect("a segment lives as long as its slots");
        segment.live -= 1;
        if !segment.is_sealed() {
            let offset = segment.offset(address.write);
            self.free.entry(size).or_default().push((id, offset));
            return None;
        }
        if segment.live > 0 {
            return None;
        }
        self.charged -= segment.used;
        self.segments.remove(&id).map(Emptied::Segment)
    }

    /// After a fork: nothing that both processes see is written again, so its free slots are forgotten.
    fn notice_forks(&mut self) {
        let forks = forks();
        if self.forks != forks {
            self.forks = forks;
            self.free.clear();
            self.current = None;
            self.next_len = 0;
        }
    }
}

/// Memory whose last slot is gone; unmapped on drop.
enum Emptied {
    Own(#[expect(dead_code, reason = "held to be dropped")] Mapping),
    Segment(#[expect(dead_code, reason = "held to be dropped")] Segment),
}

#[cfg(test)]
mod tests;
