//! Executable memory for kernels. The code of a kernel lies in a slot, and each slot is freed
//! separately.
//!
//! Slots are parts of segments. A segment is a memfd that is mapped twice: once readable and
//! writable, once readable and executable. So no page is ever writable and executable at once, and
//! placing a kernel costs no `mprotect`. Segments are added on demand. A freed slot goes to the
//! free list of its size class.
//!
//! The system may refuse to make a segment, for example because seccomp or a mount option forbids a
//! memfd or its execution. From then on the arena makes no segment any more. A slot that does not
//! reuse memory of an earlier segment then gets anonymous pages of its own, which are written first
//! and then made executable by one `mprotect`.
//!
//! Invariants:
//! * A slot has one owner: a [`Draft`] while the code is written, and a [`Slot`] afterwards.
//! * A forked child shares the mappings of a memfd with its parent. A fork therefore **seals**
//!   every segment in both processes: memory of a sealed segment is never handed out again, and
//!   both processes place their next kernels in new memfds.
//!
//! Each segment records the value that the counter of forks ([`forks`]) had when the segment was
//! made. The segment is sealed if the counter has a different value now.
#![allow(unsafe_code)] // Maps pages and hands out addresses in them.

mod pages;

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::error::{Error, ErrorClass, Result};
use crate::process::{Guard, Mutex, forks};

use pages::{Mapping, Segment, clean_data_cache, invalidate_instruction_cache, page, system_error};

/// Minimum size and alignment of a slot, in bytes: one cache line.
const LINE: usize = 64;
/// Minimum size of the first segment of an arena, in bytes. It holds about 300 kernels of usual
/// size.
const FIRST_SEGMENT: usize = 64 << 10;
/// Maximum size of a segment in bytes. Each new segment is twice as large as the one before, up to
/// this size. Only a segment for a slot that needs more than that is larger: it has the size of the
/// slot.
const LARGEST_SEGMENT: usize = 2 << 20;
/// Maximum alignment of a slot, in bytes. The pages of all supported machines are at least this
/// large.
const LARGEST_ALIGNMENT: u64 = 4096;

/// Counters of one arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of slots that were handed out and are not yet returned.
    pub live: usize,
    /// Number of bytes that count towards the limit of the arena. They are the pages of slots with
    /// pages of their own, and all bytes ever handed out from segments that still exist, including
    /// those of slots that are free again.
    pub charged: usize,
    /// Number of mapped segments, including sealed ones.
    pub segments: usize,
    /// Number of mapped segments that a fork has sealed.
    pub sealed: usize,
    /// Number of slots that were given pages of their own since the arena was made.
    pub own_pages: u64,
}

/// State of all arenas of the process, under one lock. A compilation usually holds the lock for
/// tens of nanoseconds, and longer if a segment or pages must be mapped.
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

/// An allocator of executable memory with an upper bound on its size. Clones share the memory. All
/// memory of the arena is unmapped when the last clone and the last slot are gone. Some is unmapped
/// earlier: pages that belong to a single slot together with that slot, and a sealed segment once
/// none of its slots is in use.
#[derive(Clone, Debug)]
pub struct Arena {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    id: u64,
}

impl Arena {
    /// Returns an arena whose slots take at most `limit_bytes` bytes in total. Nothing is mapped
    /// before the first slot is allocated.
    pub fn new(limit_bytes: usize) -> Arena {
        Arena::with_source(limit_bytes, true)
    }

    /// Returns an arena like [`Arena::new`], but one that behaves as on a machine that refuses
    /// `memfd_create`: every slot has pages of its own.
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

    /// Returns a writable slot of `len` bytes whose address is a multiple of `alignment` bytes.
    ///
    /// # Errors
    /// Class `NoMem` if the limit is reached or the system has no memory to map. Class `Arg` if
    /// `len` is zero or larger than half of `isize::MAX`, or if `alignment` is not a power of two
    /// or is larger than 4096.
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

    /// Returns the current counters of the arena.
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
        // Every slot holds a reference to the handle, so no slot exists any more. The next
        // statement releases the lock at its end. The memory is unmapped by the `drop` after it, so
        // without the lock.
        let state = lock().arenas.remove(&self.id);
        drop(state);
    }
}

/// A slot while its code is written. A draft gives its user the address for writing only, which is
/// not executable.
#[derive(Debug)]
pub struct Draft {
    slot: Slot,
}

impl Draft {
    /// Returns the address to write the code to. As many bytes as were passed to
    /// [`Arena::allocate`] may be written there, until the draft is sealed or dropped.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.slot.address.write.as_ptr()
    }

    /// Copies `code` to the start of the slot.
    ///
    /// # Panics
    /// Panics if `code` is longer than the slot.
    pub fn write(&mut self, code: &[u8]) {
        assert!(code.len() <= self.slot.len, "code longer than its slot");
        // SAFETY: `copy_nonoverlapping` needs `code.len()` readable bytes, which the slice `code`
        // has, and as many writable ones at the destination. The slot has `len` of these, and the
        // assertion above shows that `code` is no longer. The ranges do not overlap, because no
        // safe reference into a draft exists outside of it.
        unsafe { ptr::copy_nonoverlapping(code.as_ptr(), self.as_mut_ptr(), code.len()) }
    }

    /// Makes the written bytes executable.
    ///
    /// # Errors
    /// Class `NoMem` if the system refuses to make the pages executable. Class `Other` if the
    /// instruction cache or the pipelines of other threads cannot be flushed.
    pub fn seal(self) -> Result<Slot> {
        let Slot { address, len, size, .. } = self.slot;
        // SAFETY: the `len` bytes at `write` are mapped readable and writable as long as
        // `self.slot` lives.
        unsafe { clean_data_cache(address.write.as_ptr(), len) };
        if address.segment.is_none() {
            // SAFETY: `segment` is none, so the pages at `write` are a mapping of this slot alone.
            // `mprotect` rounds `size` up to whole pages, and `State::cut` mapped that many. A
            // draft is consumed here, so its address must not be used for writing any more.
            let status = unsafe {
                libc::mprotect(address.write.as_ptr().cast(), size, libc::PROT_READ | libc::PROT_EXEC)
            };
            if status != 0 {
                return Err(system_error("mprotect"));
            }
        }
        // SAFETY: the `len` bytes at `execute` are mapped readable as long as `self.slot` lives.
        // They are the bytes that were written through `write`: `execute` is the second mapping of
        // the same memory, or the same address after the `mprotect`.
        unsafe { invalidate_instruction_cache(address.execute.as_ptr(), len) };
        let code = address.execute.as_ptr().cast::<c_void>().cast_const();
        // The next two calls do what is left: `clear_cache` flushes the instruction cache on
        // riscv64, and `pipeline_flush_mt` the pipelines of other threads.
        // SAFETY: `code` is mapped for `len` bytes, and the call only maintains caches.
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

/// A slot with sealed code. Dropping it returns the memory to the arena.
#[derive(Debug)]
pub struct Slot {
    address: SlotAddress,
    /// Number of bytes that the caller of [`Arena::allocate`] asked for.
    len: usize,
    /// Number of bytes that the slot occupies, which is its size class ([`size_class`]).
    size: usize,
    handle: Arc<Handle>,
}

impl Slot {
    /// Returns the address of the first instruction.
    pub fn address(&self) -> NonNull<u8> {
        self.address.execute
    }

    /// Returns the bytes of the code, read through the executable mapping.
    pub fn code(&self) -> &[u8] {
        // SAFETY: `execute` is not null and is mapped readable for `len` bytes as long as the slot
        // lives, `len` is at most `isize::MAX / 2` (`Arena::allocate`), and new pages are zeroed,
        // so all bytes are initialized. A shared `Slot` is sealed, and sealed code is never
        // written.
        unsafe { std::slice::from_raw_parts(self.address.execute.as_ptr(), self.len) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let emptied = lock().state(self.handle.id).release(&self.address, self.size);
        drop(emptied);
    }
}

// SAFETY: the addresses are of mappings that belong to the whole process. A draft is written only
// through `&mut self`, and a sealed slot is only read.
unsafe impl Send for Slot {}
// SAFETY: no method writes through a shared slot or a shared draft, so threads that share a value
// only read.
unsafe impl Sync for Slot {}

/// The two addresses of a slot: code is written through one mapping and executed through the other.
/// The two are equal if the slot has pages of its own.
#[derive(Clone, Copy, Debug)]
struct SlotAddress {
    /// The segment that contains the slot; none for a slot with pages of its own.
    segment: Option<u64>,
    write: NonNull<u8>,
    execute: NonNull<u8>,
}

impl SlotAddress {
    fn new(id: u64, segment: &Segment, offset: usize) -> SlotAddress {
        let (write, execute) = segment.addresses(offset);
        SlotAddress { segment: Some(id), write, execute }
    }
}

/// Returns the number of bytes that a slot for `len` bytes of code occupies, its size class. For up
/// to 1 KiB of code, this is the next multiple of the alignment or of a cache line, whichever is
/// larger. For longer code, there are four size classes between a power of two and the next one, or
/// fewer if the alignment is larger than the distance between two of these classes.
fn size_class(len: usize, alignment: usize) -> usize {
    let unit = LINE.max(alignment);
    let step = (len.next_power_of_two() / 8).max(unit);
    len.next_multiple_of(if len <= 1024 { unit } else { step })
}

/// Memory of one arena. A state is accessed only under the lock of the registry, except when it is
/// dropped.
#[derive(Debug, Default)]
struct State {
    limit: usize,
    memfd: bool,
    own_pages: u64,
    /// Value of the counter of forks ([`forks`]) at the last call of [`State::notice_forks`].
    forks: u64,
    charged: usize,
    live: usize,
    segments: BTreeMap<u64, Segment>,
    /// Number of the segment in which new slots are placed; none before the first segment and after
    /// a fork.
    current: Option<u64>,
    next_segment: u64,
    next_len: usize,
    /// Free slots by size class. A slot is given by the number of its segment and its offset in
    /// that segment.
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

    /// Returns a free slot of exactly this size class, or none.
    fn reuse(&mut self, size: usize, alignment: usize) -> Option<SlotAddress> {
        let list = self.free.get_mut(&size)?;
        // All offsets are multiples of a cache line, which suffices for nearly all slots. A larger
        // alignment is rare, so the list is searched for an offset that has it.
        let at = list.iter().rposition(|&(_, offset)| offset % alignment == 0)?;
        let (id, offset) = list.swap_remove(at);
        let segment = self.segments.get_mut(&id)?;
        segment.live += 1;
        Some(SlotAddress::new(id, segment, offset))
    }

    /// Returns a slot in memory that was not handed out before.
    fn cut(&mut self, size: usize, alignment: usize) -> Result<SlotAddress> {
        if self.memfd {
            match self.cut_segment(size, alignment) {
                Ok(address) => return Ok(address),
                Err(e) if e.argument() == "limit" => return Err(e),
                // If a segment was refused once, do not try again: the system call would be wasted
                // for every later slot.
                Err(_) => self.memfd = false,
            }
        }
        let len = size.next_multiple_of(page());
        self.charge(len)?;
        // From here on the slot owns the pages. When the slot is dropped, `release` turns the pages
        // into a `Mapping` again, which unmaps them.
        let start = Mapping::own(len).inspect_err(|_| self.charged -= len)?.into_start();
        self.own_pages += 1;
        Ok(SlotAddress { segment: None, write: start, execute: start })
    }

    fn cut_segment(&mut self, size: usize, alignment: usize) -> Result<SlotAddress> {
        // Take the slot from the current segment if that segment has room and is not sealed. Bytes
        // that are skipped for the alignment count towards the limit, too.
        if let Some(id) = self.current {
            let segment = &self.segments[&id];
            let offset = segment.used.next_multiple_of(alignment);
            if !segment.is_sealed() && offset + size <= segment.len() {
                self.charge(offset + size - segment.used)?;
                let segment = self.segments.get_mut(&id).expect("just seen");
                segment.used = offset + size;
                segment.live += 1;
                return Ok(SlotAddress::new(id, segment, offset));
            }
        }
        // A new segment is needed. Charge the slot against the limit before the segment is mapped,
        // and take the charge back if the system refuses to map the segment.
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
        Ok(SlotAddress::new(id, segment, 0))
    }

    /// Unmaps the sealed segments that have no live slot. Such segments were already empty when
    /// they were sealed; a segment that still had slots then is unmapped by `release` with its last
    /// slot. The segments are unmapped while the lock is held, which is acceptable because this is
    /// rarely needed.
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

    /// Takes back a slot. Returns memory that is no longer needed, if there is any; the caller
    /// drops it after it has released the lock, which unmaps the memory.
    fn release(&mut self, address: &SlotAddress, size: usize) -> Option<Emptied> {
        self.live -= 1;
        let Some(id) = address.segment else {
            let len = size.next_multiple_of(page());
            self.charged -= len;
            // SAFETY: `segment` is none, so `cut` made a mapping of `len` bytes (computed there
            // from the same size class) and gave it up with `into_start`. The slot that had the
            // pages is being dropped, and nobody else may use them.
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

    /// Forgets the free slots and the current segment if the process has forked since the last call
    /// of this function. Parent and child both see the memory of these segments, so it must not be
    /// written again. The sizes of new segments start again at [`FIRST_SEGMENT`].
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

/// Memory whose last slot is gone. Dropping it unmaps the memory.
enum Emptied {
    Own(#[expect(dead_code, reason = "held to be dropped")] Mapping),
    Segment(#[expect(dead_code, reason = "held to be dropped")] Segment),
}

#[cfg(test)]
mod tests;
