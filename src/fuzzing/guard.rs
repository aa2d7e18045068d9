//! Memory that detects wrong accesses: buffers between inaccessible pages, with the pages inside
//! gaps made inaccessible too, and a signal handler that names the datatype for which the process
//! crashed.
//!
//! A kernel may read a byte of a gap only between two mapped bytes that are less than 4096 bytes
//! apart, and may never write one. So a page without a mapped byte may be accessed neither by a
//! pack nor by an unpack, and it is inaccessible during a run.
#![allow(unsafe_code)] // Protects pages, hands raw buffers to kernels, and writes from a signal handler.

use std::cell::Cell;
use std::ops::Range;
use std::ptr;
use std::sync::{Once, OnceLock};

use crate::code::kernel::Kernel;
use crate::committed::{Committed, CommittedOperation, LayoutCopy};
use crate::exec::nest_interpreter;
use crate::kind::Direction;
use crate::micro::Buffers;
use crate::nest::{LoopNest, Normal};
use crate::target::Level;

/// Returns the number of bytes of a page of this system.
pub(super) fn page() -> usize {
    static PAGE: OnceLock<usize> = OnceLock::new();
    *PAGE.get_or_init(|| {
        // SAFETY: `sysconf` has no precondition.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).unwrap_or(4096).max(4096)
    })
}

/// Accessible pages of memory, with one inaccessible page before them and one after them.
struct Pages {
    start: *mut u8,
    len: usize,
}

impl Pages {
    fn new(len: usize) -> Pages {
        let len = len.next_multiple_of(page()).max(page());
        // SAFETY: `mmap` chooses the address, so the mapping of `len + 2 * page()` bytes is new
        // memory that nothing else uses. `start` lies one page after its beginning, so it is
        // aligned to a page, and `len` is a multiple of the page size: `mprotect` changes only
        // pages of this mapping.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let all = libc::mmap(ptr::null_mut(), len + 2 * page(), libc::PROT_NONE, flags, -1, 0);
            assert_ne!(all, libc::MAP_FAILED, "no memory for guarded pages");
            let start = all.cast::<u8>().add(page());
            let access = libc::PROT_READ | libc::PROT_WRITE;
            assert_eq!(libc::mprotect(start.cast(), len, access), 0, "mprotect");
            Pages { start, len }
        }
    }

    /// Returns pages that have at least `len` bytes: these pages, or new ones that replace them if
    /// they are too few.
    fn grown(&mut self, len: usize) -> &mut Pages {
        if len > self.len {
            *self = Pages::new(len);
        }
        self
    }

    /// Returns the address of `len` bytes that begin at the front edge or end at the back edge of
    /// the pages.
    fn edge(&self, len: usize, edge: Edge) -> *mut u8 {
        assert!(len <= self.len);
        match edge {
            Edge::Front => self.start,
            // SAFETY: `len <= self.len` was checked above, so the address lies inside the mapping.
            Edge::Back => unsafe { self.start.add(self.len - len) },
        }
    }

    /// Makes the pages of `holes` accessible if `open` is true, otherwise inaccessible.
    fn protect(&self, holes: &[Range<usize>], open: bool) {
        let access = if open { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_NONE };
        for hole in holes {
            debug_assert!(hole.end <= self.len && hole.start.is_multiple_of(page()));
            // SAFETY: each hole consists of whole pages of this mapping, since `holes` gives only
            // such ranges and the assertion above checks it in debug builds. While a hole is
            // inaccessible no reference to its bytes exists.
            let done = unsafe { libc::mprotect(self.start.add(hole.start).cast(), hole.len(), access) };
            assert_eq!(done, 0, "mprotect of a hole");
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping that `new` made: `len` bytes with a page before and a
        // page after them. Nothing refers to it, since its owner is dropped.
        unsafe { libc::munmap(self.start.sub(page()).cast(), self.len + 2 * page()) };
    }
}

/// Edge of the buffer that lies next to an inaccessible page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The front edge: the inaccessible page is before the buffer.
    Front,
    /// The back edge: the inaccessible page is after the buffer.
    Back,
}

impl Edge {
    /// Both edges.
    pub const BOTH: [Edge; 2] = [Edge::Front, Edge::Back];
}

/// A user buffer and a packed buffer between inaccessible pages.
pub struct Rig {
    user: Pages,
    packed: Pages,
}

impl Default for Rig {
    fn default() -> Self {
        install_handler();
        Rig { user: Pages::new(64 << 10), packed: Pages::new(64 << 10) }
    }
}

/// What moves the bytes in a test.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// A committed datatype, in both directions and by ranges.
    Committed(&'a Committed),
    /// A committed datatype under a leaf operation, in both directions and by ranges. All values
    /// must fit.
    Applied(&'a CommittedOperation),
    /// A kernel, and the user offset that is added to the address of the user buffer, because the
    /// code does not contain it. The kernel is run by whole calls in the direction for which it was
    /// made.
    Kernel(&'a Kernel, i64),
    /// A nest that the interpreter of nests moves, the user offset that is added to the address of
    /// the user buffer because the nest does not contain it, and the level of the micro-kernels.
    Nest(&'a LoopNest<Normal>, i64, Level),
}

impl Subject<'_> {
    /// Returns the CPU level for which the subject was made. Returns none for a kernel, since a
    /// kernel does not record its level.
    pub fn level(self) -> Option<Level> {
        match self {
            Subject::Committed(c) => Some(c.engine().config().level),
            Subject::Applied(a) => Some(a.committed().engine().config().level),
            Subject::Kernel(..) => None,
            Subject::Nest(_, _, level) => Some(level),
        }
    }

    /// Moves the packed bytes `range` of `count` instances, or all of them if it is none. `packed`
    /// is the address of the first byte of the range.
    ///
    /// # Safety
    /// For every byte of the range or stream, the byte at its displacement from `user` must be
    /// readable to pack and writable to unpack, and that at `packed` writable to pack and readable
    /// to unpack. For a reduction, the bytes at `user` must be readable too. The two sides must not
    /// overlap, and nobody else may access the destination or write the source during the call. For
    /// a kernel, `range` must be none and `direction` that of the kernel. The level of an
    /// interpreted nest must be one that this machine runs.
    unsafe fn run(
        self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Option<Range<u64>>,
    ) {
        // SAFETY: every arm passes on the addresses, the number of instances and the range, for
        // which the caller promises what the called function asks for. In the arm of the
        // interpreter, `packed` is moved back by the start of the range, so that it is the address
        // of packed byte 0; only bytes of the range are accessed.
        unsafe {
            match (self, range) {
                (Subject::Committed(c), Some(range)) => c.range_raw(direction, user, count, packed, range),
                (Subject::Committed(c), None) if direction == Direction::Pack => {
                    c.pack_raw(user, count, packed);
                }
                (Subject::Committed(c), None) => c.unpack_raw(packed, count, user),
                (Subject::Applied(a), range) => {
                    let range = range.unwrap_or(0..a.nest().size() as u64 * count);
                    a.range_raw(direction, user, count, packed, range).expect("values that fit");
                }
                (Subject::Kernel(k, moved), _) => k.call(user.wrapping_offset(moved as isize), packed, count),
                (Subject::Nest(nest, moved, level), range) => {
                    let packed = packed.wrapping_sub(range.as_ref().map_or(0, |range| range.start as usize));
                    let user = user.wrapping_offset(moved as isize);
                    let memory = Buffers::new(user, packed, direction, level);
                    match range {
                        Some(range) => nest_interpreter::interpret(nest, &memory, count, range),
                        None => nest_interpreter::interpret_whole(nest, &memory, count),
                    }
                }
            }
        }
    }
}

/// Contents of the buffers for one pack or unpack by a [`Subject`], and how it is done.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Pack or unpack.
    pub direction: Direction,
    /// Number of instances.
    pub count: u64,
    /// Bytes of user memory from the first mapped byte to the last one.
    pub user: &'a [u8],
    /// Displacement of `user[0]`.
    pub low: i64,
    /// For each byte of `user`, whether it is mapped.
    pub mapped: &'a [bool],
    /// Bytes of the packed stream.
    pub packed: &'a [u8],
    /// Pieces of the packed stream in the order in which they are moved, or none for one call for
    /// the whole stream.
    pub pieces: Option<&'a [Range<usize>]>,
    /// Edge of the buffers that lies next to an inaccessible page.
    pub edge: Edge,
}

/// Memory of one side of a copy from layout to layout.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Bytes from the first mapped byte to the last one.
    pub bytes: &'a [u8],
    /// Displacement of `bytes[0]`.
    pub low: i64,
    /// For each byte of `bytes`, whether it is mapped.
    pub mapped: &'a [bool],
    /// Number of instances.
    pub count: u64,
}

impl Pages {
    /// Copies the bytes of `side` to an edge and makes the whole pages without mapped bytes
    /// inaccessible. Returns the address of displacement 0 of instance 0, and these pages.
    fn put(&mut self, side: &Side<'_>, edge: Edge) -> (*mut u8, Vec<Range<usize>>) {
        let start = self.grown(side.bytes.len()).edge(side.bytes.len(), edge);
        // SAFETY: `edge` has checked that `side.bytes.len()` accessible bytes begin at `start`.
        // They are in a mapping of this object, so they do not overlap the slice.
        unsafe { ptr::copy_nonoverlapping(side.bytes.as_ptr(), start, side.bytes.len()) };
        let holes = holes(start.addr() - self.start.addr(), side.mapped);
        self.protect(&holes, false);
        (start.wrapping_offset(-side.low as isize), holes)
    }
}

impl Rig {
    /// Copies the first `bytes` bytes of the stream from `source` to `target`, and returns the
    /// bytes of the target afterwards. Both are guarded as in [`Rig::run`].
    pub fn copy(
        &mut self,
        direct: &LayoutCopy,
        source: Side<'_>,
        target: Side<'_>,
        bytes: u64,
        edge: Edge,
    ) -> Vec<u8> {
        let (from, from_holes) = self.user.put(&source, edge);
        let (to, to_holes) = self.packed.put(&target, edge);
        // SAFETY: both memories have all mapped bytes of their instances, none of which lies on a
        // page that `put` has made inaccessible. They are in two mappings, so they do not overlap,
        // and nobody else has their addresses.
        unsafe { direct.bytes_raw(from, source.count, to, target.count, bytes) }.expect("a buffer");
        self.user.protect(&from_holes, true);
        self.packed.protect(&to_holes, true);
        let start = to.wrapping_offset(target.low as isize);
        // SAFETY: `start` is the address at which `put` has stored as many bytes. All of their
        // pages are accessible again, and `self` is borrowed.
        unsafe { std::slice::from_raw_parts(start, target.bytes.len()) }.to_vec()
    }

    /// Moves the bytes of `run` by `subject`, and returns the bytes of the user and the packed side
    /// afterwards.
    ///
    /// An access to a page without mapped bytes, or past the edge of a buffer at which the
    /// inaccessible page lies, ends the process by a signal. The signal handler first prints the
    /// text that [`noted`] was given.
    pub fn run(&mut self, subject: Subject<'_>, run: &Run<'_>) -> (Vec<u8>, Vec<u8>) {
        let user = self.user.grown(run.user.len());
        let start = user.edge(run.user.len(), run.edge);
        // SAFETY: `edge` has checked that `run.user.len()` accessible bytes begin at `start`. They
        // are in a mapping of this object, so they do not overlap the slice.
        unsafe { ptr::copy_nonoverlapping(run.user.as_ptr(), start, run.user.len()) };
        let holes = holes(start.addr() - user.start.addr(), run.mapped);
        user.protect(&holes, false);
        let buffer = start.wrapping_offset(-run.low as isize);
        let mut packed = run.packed.to_vec();
        match run.pieces {
            None => self.piece(subject, run, buffer, None, &mut packed),
            Some(pieces) => {
                for piece in pieces {
                    self.piece(subject, run, buffer, Some(piece.clone()), &mut packed[piece.clone()]);
                }
            }
        }
        self.user.protect(&holes, true);
        // SAFETY: `run.user.len()` bytes begin at `start`, as above, and all of their pages are
        // accessible again.
        let user = unsafe { std::slice::from_raw_parts(start, run.user.len()) }.to_vec();
        (user, packed)
    }

    /// Moves one range of the packed stream, or all of it, by one call. The packed bytes of the
    /// range lie alone between the inaccessible pages.
    fn piece(
        &mut self,
        subject: Subject<'_>,
        run: &Run<'_>,
        user: *mut u8,
        range: Option<Range<usize>>,
        bytes: &mut [u8],
    ) {
        let packed = self.packed.grown(bytes.len()).edge(bytes.len(), run.edge);
        // SAFETY: `edge` has checked that `packed` has `bytes.len()` accessible bytes; they do not
        // overlap the slice. For the call: every mapped byte of the instances lies in the user
        // buffer and none on an inaccessible page, according to the type map from which `mapped`
        // was made, and `packed` has the bytes of the range. If the code under test disagrees, it
        // meets inaccessible memory, which is the purpose of this test.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), packed, bytes.len());
            let range = range.map(|r| r.start as u64..r.end as u64);
            subject.run(run.direction, user, run.count, packed, range);
            ptr::copy_nonoverlapping(packed, bytes.as_mut_ptr(), bytes.len());
        }
    }
}

/// Copies the first `bytes` bytes of the stream from one memory to another. Each memory is given by
/// its bytes from the first mapped byte to the last one, the displacement of the first of them, and
/// the number of instances.
pub(super) fn copied(
    direct: &LayoutCopy,
    source: (&[u8], i64, u64),
    target: (&mut [u8], i64, u64),
    bytes: u64,
) {
    let from = source.0.as_ptr().wrapping_offset(-source.1 as isize);
    let to = target.0.as_mut_ptr().wrapping_offset(-target.1 as isize);
    // SAFETY: both slices have all mapped bytes of their instances, relative to displacement 0, and
    // they do not overlap, since one of them is borrowed mutably.
    unsafe { direct.bytes_raw(from, source.2, to, target.2, bytes) }.expect("a buffer");
}

/// Returns the ranges of whole pages, as offsets in the memory of a buffer, that contain no byte of
/// the type map. `mapped` has, for each byte from offset `start` on, whether the type map contains
/// it.
fn holes(start: usize, mapped: &[bool]) -> Vec<Range<usize>> {
    let mut holes: Vec<Range<usize>> = Vec::new();
    let first = start.next_multiple_of(page());
    let last = (start + mapped.len()) / page() * page();
    for at in (first..last).step_by(page()) {
        if mapped[at - start..at - start + page()].iter().any(|&m| m) {
            continue;
        }
        match holes.last_mut() {
            Some(hole) if hole.end == at => hole.end += page(),
            _ => holes.push(at..at + page()),
        }
    }
    holes
}

thread_local! {
    /// Address and length of the text that a crash of this thread prints.
    static NOTE: Cell<(*const u8, usize)> = const { Cell::new((ptr::null(), 0)) };
}

/// Runs `f`. If it crashes, the signal handler prints `note` on standard error before the process
/// ends.
pub fn noted<T>(note: &str, f: impl FnOnce() -> T) -> T {
    struct Restore((*const u8, usize));
    impl Drop for Restore {
        fn drop(&mut self) {
            NOTE.set(self.0);
        }
    }
    let _restore = Restore(NOTE.replace((note.as_ptr(), note.len())));
    f()
}

const SIGNALS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];
static BEFORE: OnceLock<[libc::sigaction; 5]> = OnceLock::new();

/// Signal handler: prints the note of the crashed thread, and then restores the signal handler that
/// was installed before this one. When this handler returns, the instruction faults again and
/// reaches the earlier handler.
extern "C" fn on_crash(signal: i32) {
    let (note, len) = NOTE.get();
    // SAFETY: `write`, `sigaction` and `signal` may be called in a signal handler. The text of the
    // note is alive while it is set, because `noted` resets it before the text can be dropped. The
    // array of old handlers is not changed after it was set.
    unsafe {
        if len > 0 {
            for (text, len) in [(c"crash while checking:\n".as_ptr().cast(), 22), (note, len)] {
                libc::write(2, text.cast(), len);
            }
            NOTE.set((ptr::null(), 0));
        }
        let at = SIGNALS.iter().position(|&s| s == signal);
        match (at, BEFORE.get()) {
            (Some(i), Some(before)) => libc::sigaction(signal, &before[i], ptr::null_mut()),
            _ => libc::signal(signal, libc::SIG_DFL) as i32,
        };
    }
}

/// Installs the signal handler, once per process, and stores the handlers that were there before.
fn install_handler() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: a `sigaction` consists of integers and an optional pointer, so zeros are a valid
        // value. The call writes only to `before`.
        let before = SIGNALS.map(|signal| unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, ptr::null(), &mut before);
            before
        });
        if BEFORE.set(before).is_err() {
            return;
        }
        for signal in SIGNALS {
            // SAFETY: as above. The handler has the signature that is expected without SA_SIGINFO,
            // it lives as long as the process, and it calls only functions that a signal handler
            // may call.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = on_crash as extern "C" fn(i32) as usize;
                action.sa_flags = libc::SA_ONSTACK;
                libc::sigaction(signal, &action, ptr::null_mut());
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_whole_pages_without_mapped_bytes() {
        let p = page();
        let mut mapped = vec![false; 4 * p];
        mapped[0] = true;
        mapped[4 * p - 1] = true;
        assert_eq!(holes(0, &mapped), std::slice::from_ref(&(p..3 * p)));
        assert_eq!(holes(p - 1, &mapped), std::slice::from_ref(&(p..4 * p)));
        mapped[2 * p] = true;
        assert_eq!(holes(0, &mapped), std::slice::from_ref(&(p..2 * p)));
        assert_eq!(holes(0, &[]), []);
        assert_eq!(holes(5, &[false; 10]), []);
    }
}
