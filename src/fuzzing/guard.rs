//! Memory that tells: buffers between inaccessible pages, whole pages of gaps made inaccessible too, and a crash that names
//! the datatype it happened on.
//!
//! A kernel may read a gap byte only between two mapped bytes less than 4096 bytes apart, and may never write one. So a page on
//! which no byte is mapped may be touched in neither direction, and it is not accessible during a run.
#![allow(unsafe_code)] // Protects pages, hands raw buffers to kernels, and writes from a signal handler.

use std::cell::Cell;
use std::ops::Range;
use std::ptr;
use std::sync::{Once, OnceLock};

use crate::code::kernel::Kernel;
use crate::committed::{Committed, CommittedOperation, LayoutCopy};
use crate::exec::walk;
use crate::kind::Direction;
use crate::micro::Buffers;
use crate::nest::{LoopNest, Normal};
use crate::target::Level;

/// Returns the bytes of a page of this system.
pub(super) fn page() -> usize {
    static PAGE: OnceLock<usize> = OnceLock::new();
    *PAGE.get_or_init(|| {
        // SAFETY: no precondition.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).unwrap_or(4096).max(4096)
    })
}

/// Accessible pages with an inaccessible page on either side.
struct Pages {
    start: *mut u8,
    len: usize,
}

impl Pages {
    fn new(len: usize) -> Pages {
        let len = len.next_multiple_of(page()).max(page());
        // SAFETY: new memory; its middle is then made accessible.
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

    /// Returns the pages, at least `len` bytes long.
    fn grown(&mut self, len: usize) -> &mut Pages {
        if len > self.len {
            *self = Pages::new(len);
        }
        self
    }

    /// Address of `len` bytes that begin or end at an edge.
    fn edge(&self, len: usize, edge: Edge) -> *mut u8 {
        assert!(len <= self.len);
        match edge {
            Edge::Front => self.start,
            // SAFETY: inside the mapping.
            Edge::Back => unsafe { self.start.add(self.len - len) },
        }
    }

    /// Makes the pages of `holes` inaccessible, or accessible again.
    fn protect(&self, holes: &[Range<usize>], open: bool) {
        let access = if open { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_NONE };
        for hole in holes {
            debug_assert!(hole.end <= self.len && hole.start.is_multiple_of(page()));
            // SAFETY: whole pages of this mapping.
            let done = unsafe { libc::mprotect(self.start.add(hole.start).cast(), hole.len(), access) };
            assert_eq!(done, 0, "mprotect of a hole");
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the whole mapping made by `new`.
        unsafe { libc::munmap(self.start.sub(page()).cast(), self.len + 2 * page()) };
    }
}

/// Which inaccessible page a buffer touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The one before it.
    Front,
    /// The one after it.
    Back,
}

impl Edge {
    /// Both.
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

/// Mover of bytes under test.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// A committed datatype, in both directions and by ranges.
    Committed(&'a Committed),
    /// A committed datatype under a leaf operation, in the same way. All values must fit.
    Applied(&'a CommittedOperation),
    /// A kernel and the user offset that is not in its code: whole calls in the direction that it was made for.
    Kernel(&'a Kernel, i64),
    /// The walker on a nest and the user offset that is not in it.
    Walk(&'a LoopNest<Normal>, i64, Level),
}

impl Subject<'_> {
    /// Returns the CPU level that it was made for, if it says.
    pub fn level(self) -> Option<Level> {
        match self {
            Subject::Committed(c) => Some(c.engine().config().level),
            Subject::Applied(a) => Some(a.committed().engine().config().level),
            Subject::Kernel(..) => None,
            Subject::Walk(_, _, level) => Some(level),
        }
    }

    /// # Safety
    /// As for [`Committed::range_raw`], with the whole stream for no range.
    unsafe fn run(
        self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Option<Range<u64>>,
    ) {
        // SAFETY: as the caller promises, in every arm.
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
                (Subject::Walk(nest, moved, level), range) => {
                    let packed = packed.wrapping_sub(range.as_ref().map_or(0, |range| range.start as usize));
                    let user = user.wrapping_offset(moved as isize);
                    let memory = Buffers::new(user, packed, direction, level);
                    match range {
                        Some(range) => walk::walk(nest, &memory, count, range),
                        None => walk::whole(nest, &memory, count),
                    }
                }
            }
        }
    }
}

/// Buffers and numbers of one run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Pack or unpack.
    pub direction: Direction,
    /// Number of instances.
    pub count: u64,
    /// The user bytes from the first to after the last mapped byte.
    pub user: &'a [u8],
    /// Displacement of `user[0]`.
    pub low: i64,
    /// Which of these bytes are mapped.
    pub mapped: &'a [bool],
    /// The packed bytes.
    pub packed: &'a [u8],
    /// Pieces of the packed stream in the order in which they are moved; none for one call of the whole.
    pub pieces: Option<&'a [Range<usize>]>,
    /// Where the buffers lie.
    pub edge: Edge,
}

/// Memory of a copy from layout to layout.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The bytes from the first to after the last mapped byte.
    pub bytes: &'a [u8],
    /// Displacement of the first of them.
    pub low: i64,
    /// Which of them are mapped.
    pub mapped: &'a [bool],
    /// Number of instances.
    pub count: u64,
}

impl Pages {
    /// Puts `side` at an edge and makes its whole pages of gaps inaccessible; returns the address of displacement 0 of instance 0, and the gaps.
    fn put(&mut self, side: &Side<'_>, edge: Edge) -> (*mut u8, Vec<Range<usize>>) {
        let start = self.grown(side.bytes.len()).edge(side.bytes.len(), edge);
        // SAFETY: so many accessible bytes from `start`.
        unsafe { ptr::copy_nonoverlapping(side.bytes.as_ptr(), start, side.bytes.len()) };
        let holes = holes(start.addr() - self.start.addr(), side.mapped);
        self.protect(&holes, false);
        (start.wrapping_offset(-side.low as isize), holes)
    }
}

impl Rig {
    /// Copies the first `bytes` bytes of the stream from `source` to `target` and returns the bytes of that afterwards. Both are guarded as in
    /// [`Rig::run`].
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
        // SAFETY: both memories have all mapped bytes of their instances, none of them on a protected page, and are apart.
        unsafe { direct.bytes_raw(from, source.count, to, target.count, bytes) }.expect("a buffer");
        self.user.protect(&from_holes, true);
        self.packed.protect(&to_holes, true);
        let start = to.wrapping_offset(target.low as isize);
        // SAFETY: accessible again.
        unsafe { std::slice::from_raw_parts(start, target.bytes.len()) }.to_vec()
    }

    /// Moves the bytes of `run` with `subject` and returns the user and packed bytes afterwards.
    ///
    /// A byte touched outside the buffers or on a page without mapped bytes ends the process by a signal, after a note on
    /// what [`noted`] was given.
    pub fn run(&mut self, subject: Subject<'_>, run: &Run<'_>) -> (Vec<u8>, Vec<u8>) {
        let user = self.user.grown(run.user.len());
        let start = user.edge(run.user.len(), run.edge);
        // SAFETY: `run.user.len()` accessible bytes from `start`.
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
        // SAFETY: as above; accessible again.
        let user = unsafe { std::slice::from_raw_parts(start, run.user.len()) }.to_vec();
        (user, packed)
    }

    /// One call, its packed bytes alone between the guards.
    fn piece(
        &mut self,
        subject: Subject<'_>,
        run: &Run<'_>,
        user: *mut u8,
        range: Option<Range<usize>>,
        bytes: &mut [u8],
    ) {
        let packed = self.packed.grown(bytes.len()).edge(bytes.len(), run.edge);
        // SAFETY: `packed` has `bytes.len()` accessible bytes. Every mapped byte of the instances lies in the user buffer,
        // none of them on a protected page, by the type map that `mapped` was made from; if the code under test disagrees,
        // it meets inaccessible memory, which is the point.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), packed, bytes.len());
            let range = range.map(|r| r.start as u64..r.end as u64);
            subject.run(run.direction, user, run.count, packed, range);
            ptr::copy_nonoverlapping(packed, bytes.as_mut_ptr(), bytes.len());
        }
    }
}

/// Copies the first `bytes` bytes of the stream between two memories, each from its first to after its last mapped byte, with the displacement of the first and the
/// number of instances.
pub(super) fn copied(
    direct: &LayoutCopy,
    source: (&[u8], i64, u64),
    target: (&mut [u8], i64, u64),
    bytes: u64,
) {
    let from = source.0.as_ptr().wrapping_offset(-source.1 as isize);
    let to = target.0.as_mut_ptr().wrapping_offset(-target.1 as isize);
    // SAFETY: both have all mapped bytes of their instances, and borrows keep them apart.
    unsafe { direct.bytes_raw(from, source.2, to, target.2, bytes) }.expect("a buffer");
}

/// Runs of whole pages, as offsets in the mapping, on which none of the bytes that start at offset `start` is mapped.
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
    /// Text that a crash of this thread prints: address and length.
    static NOTE: Cell<(*const u8, usize)> = const { Cell::new((ptr::null(), 0)) };
}

/// Runs `f`; a crash inside it prints `note` on standard error before the process ends.
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

/// Prints the note, then lets the handler that was there before see the same fault again.
extern "C" fn on_crash(signal: i32) {
    let (note, len) = NOTE.get();
    // SAFETY: `write` and `sigaction` may be called from a handler; the note is alive while it is set.
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

fn install_handler() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: a zeroed sigaction is a valid one; the handler calls only what a handler may.
        let before = SIGNALS.map(|signal| unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, ptr::null(), &mut before);
            before
        });
        if BEFORE.set(before).is_err() {
            return;
        }
        for signal in SIGNALS {
            // SAFETY: as above.
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
