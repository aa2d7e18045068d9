//! Committed datatypes: what packs and unpacks.
//!
//! Immutable and shared. Packing takes no lock and allocates nothing once its kernel exists. The slice methods check the true
//! bounds of all instances; the raw methods leave that to the caller, as MPI does.
#![allow(unsafe_code)] // The raw-pointer surface: it hands the caller's promise to kernels and to the walker's memory handle.

mod copy;
mod definition;
mod made;
mod one_run;
mod operation;
mod parallel;
mod ranges;
mod raw_calls;
mod reduced;
mod segments;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Release},
};

use crate::calls;
use crate::code::kernel::{EntryPoint, Kernel};
use crate::datatype::Datatype;
use crate::engine::{Config, Engine, Mode};
use crate::error::{Error, ErrorClass, Result};
use crate::kind::Direction;
use crate::layout::{CompiledLayout, PlacedLayout, Tier};
use crate::micro::{Buffers, run};
use crate::nest::{LoopNest, Normal};

pub use copy::LayoutCopy;
use definition::Call;
use one_run::Run;
pub use operation::CommittedOperation;
pub use raw_calls::{RawCalls, RawCopyCalls, RawOperationCalls};
pub use reduced::ByFunction;

/// A committed datatype, which packs and unpacks. Clones share it and keep its code alive.
///
/// ```
/// use ddtc::Datatype;
///
/// let column = ddtc::commit(&Datatype::vector(4, 1, 8, &Datatype::of::<u8>())?)?;
/// let matrix: Vec<u8> = (0..32).collect();
/// let (mut packed, mut copy) = ([0; 4], [0; 32]);
/// column.pack(&matrix, 5, 1, &mut packed)?;
/// column.unpack(&packed, 5, 1, &mut copy)?;
/// assert_eq!((packed, copy[13]), ([5, 13, 21, 29], 13));
/// # Ok::<(), ddtc::Error>(())
/// ```
#[derive(Clone)]
pub struct Committed(Arc<Inner>);

struct Inner {
    /// Entry points of the kernels of `layout` that calls may go to at once; null while there is none, and where calls need more than the kernel
    /// (check mode, several threads, streaming). The hot path reads nothing else but `origin` and `small`.
    entry_points: [AtomicPtr<u64>; 2],
    origin: isize,
    /// The size in bytes of a datatype whose bounds are plain ([`Committed::plain_size`]), else 0.
    small: u32,
    /// Whether calls go to kernels and need nothing more ([`plainly`]).
    plain: bool,
    /// Which calls are a copy, without kernel or table: none unless that holds and the size is plain.
    run: Run,
    datatype: Datatype,
    layout: Arc<CompiledLayout>,
    engine: Engine,
}

/// A program may hold millions of committed types: what one takes is kept in sight.
const _: () = assert!(size_of::<Inner>() <= 56);

/// Nothing is ever mapped below this address: data there come from a null buffer with relative displacements.
pub const FIRST_PAGE: usize = 4096;

/// Addresses below this one are plain: added to plain bounds, they do not leave 64 bits.
const PLAIN: usize = 1 << 62;

/// The size of a plain datatype: no entry below displacement 0 in any instance, and nothing that 2^31 instances could take out
/// of 62 bits.
fn small(t: &Datatype) -> u32 {
    const MOST: i64 = i32::MAX as i64;
    let plain = t.true_lb() >= 0 && t.true_ub() <= MOST && (0..=MOST).contains(&t.extent());
    // Overlapping entries may have a size beyond their span.
    if plain && t.size() <= MOST { t.size() as u32 } else { 0 }
}

/// Whether all calls of a direction are one call of a kernel: nothing is compared, split among threads, or stored past the caches.
fn plainly(config: &Config) -> bool {
    !config.check && config.threads <= 1 && config.stream_bytes == u64::MAX
}

impl fmt::Debug for Committed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committed")
            .field("datatype", &format_args!("{}", self.0.datatype))
            .field("origin", &self.0.origin)
            .field("pack", &self.schedule(Direction::Pack))
            .field("unpack", &self.schedule(Direction::Unpack))
            .finish()
    }
}

impl Engine {
    /// Commits a datatype, compiling it when the engine's [`Mode`] says so (MPI 5.0, 5.1.9,
    /// `MPI_Type_commit`). The result packs and unpacks instances of the datatype.
    ///
    /// ```
    /// use ddtc::{Config, Datatype, Engine};
    ///
    /// let engine = Engine::new(Config::default());
    /// let column = engine.commit(&Datatype::vector(4, 1, 8, &Datatype::of::<f64>())?)?;
    /// assert_eq!(column.packed_size(10)?, 320);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// Class `NoMem` if there is not enough memory for the layout. Any other error is a fault in
    /// ddtc itself while the datatype is lowered, normalized or verified. A datatype that cannot be
    /// compiled is interpreted, and the failure is counted.
    pub fn commit(&self, t: &Datatype) -> Result<Committed> {
        Ok(Committed::new(self.clone(), t.clone(), self.layout(t)?))
    }
}

impl Committed {
    /// Returns a clone, and counts a commit and a cache hit as [`Engine::commit`] of an equal datatype would.
    #[must_use]
    pub(crate) fn again(&self) -> Committed {
        self.0.engine.found(&self.0.layout);
        self.clone()
    }

    fn new(engine: Engine, datatype: Datatype, placed: PlacedLayout) -> Committed {
        let PlacedLayout { layout, origin } = placed;
        let small = small(&datatype);
        let config = engine.config();
        let plain = matches!(config.mode, Mode::Commit | Mode::Lazy) && plainly(config);
        let committed = Committed(Arc::new(Inner {
            entry_points: Default::default(),
            origin: origin as isize,
            small,
            plain,
            run: if plain && small != 0 { Run::of(layout.nest()) } else { Run::None },
            datatype,
            layout,
            engine,
        }));
        for d in Direction::BOTH {
            committed.0.go_by_kernel(d, committed.0.layout.served(d));
        }
        committed
    }

    /// Returns the datatype that was committed.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let column = Datatype::vector(4, 1, 8, &Datatype::of::<f64>())?;
    /// assert_eq!(ddtc::commit(&column)?.datatype(), &column);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    #[inline]
    pub fn datatype(&self) -> &Datatype {
        &self.0.datatype
    }

    /// Returns the engine that committed this datatype.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let column = ddtc::commit(&Datatype::vector(4, 1, 8, &Datatype::of::<u8>())?)?;
    /// let other = column.engine().commit(&Datatype::of::<f32>())?;
    /// assert_eq!(other.packed_size(1)?, 4);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// Returns the canonical loop nest of the layout, at origin 0.
    pub(crate) fn nest(&self) -> &LoopNest<Normal> {
        self.0.layout.nest()
    }

    /// Returns a hash of the layout: equal for equal nests, in every process of one build.
    pub(crate) fn layout_hash(&self) -> u64 {
        self.0.layout.hash()
    }

    /// Returns a hash of what the layout is wherever its objects lie: equal for layouts that differ only in distances of 64 KiB and more, as types of
    /// absolute addresses do from one allocation or run to the next; [`Committed::layout_hash`] where there are none. For what is learnt of a layout, not for what it is.
    pub(crate) fn near_hash(&self) -> u64 {
        self.0.layout.near_hash().unwrap_or_else(|| self.layout_hash())
    }

    /// User offset in bytes between the buffer address of a call and the address that kernels work on.
    pub(crate) fn origin(&self) -> isize {
        self.0.origin
    }

    /// Returns the kernel of `direction`, compiled now if the mode compiles; none where the layout is walked.
    ///
    /// Its entry is to be called with the buffer address moved by [`Committed::origin`].
    pub(crate) fn kernel(&self, direction: Direction) -> Option<&Arc<Kernel>> {
        self.0.served(direction, u64::MAX).and_then(Tier::kernel)
    }

    /// Says whether it is settled how calls of `direction` are served. In [`Mode::Lazy`] this counts `bytes` bytes as a call of them does: once all calls have
    /// moved [`Config::lazy_threshold`](crate::engine::Config::lazy_threshold) bytes the layout is compiled, and it is settled; a run of bytes is at once. A caller who has another way to move bytes goes it until then.
    pub(crate) fn settled(&self, direction: Direction, bytes: u64) -> bool {
        if self.0.run == Run::Any {
            return true;
        }
        let layout = &self.0.layout;
        if self.0.engine.config().mode == Mode::Lazy && layout.served(direction).is_none() {
            let _ = self.0.served(direction, bytes);
        }
        self.0.engine.config().mode != Mode::Lazy || layout.served(direction).is_some()
    }

    /// One line on how `direction` is served.
    pub(crate) fn schedule(&self, direction: Direction) -> String {
        match self.0.layout.served(direction) {
            None if self.0.run == Run::Any => "a run of bytes: copied".to_owned(),
            None => "not compiled yet: walked".to_owned(),
            Some(Tier::Kernel { schedule, .. }) => schedule.to_string(),
            Some(Tier::Walk { reason, .. }) => format!("walked: {reason}"),
        }
    }

    /// Says whether both use one layout, and so one set of kernels.
    pub(crate) fn shares_layout(&self, other: &Committed) -> bool {
        Arc::ptr_eq(&self.0.layout, &other.0.layout)
    }

    /// Returns the number of packed bytes of `count` instances.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let column = ddtc::commit(&Datatype::vector(4, 1, 8, &Datatype::of::<u8>())?)?;
    /// assert_eq!(column.packed_size(10)?, 40);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the number does not fit in 63 bits.
    #[inline]
    pub fn packed_size(&self, count: u64) -> Result<u64> {
        if self.0.small != 0 && count <= i32::MAX as u64 {
            return Ok(u64::from(self.0.small) * count);
        }
        let bytes = u128::from(count) * self.0.datatype.size() as u128;
        u64::try_from(bytes).ok().filter(|&b| b <= i64::MAX as u64).ok_or_else(|| {
            Error::new(
                ErrorClass::Count,
                "pack",
                "count",
                count,
                "count times the size of the datatype overflows",
            )
        })
    }

    /// Packed bytes of `count` instances at address `buffer`, where what is kept here shows at once that their whole span lies
    /// in the address space above its first page. None says nothing: ask [`Committed::packed_size`], and check the span.
    #[inline]
    pub(crate) fn plain_size(&self, buffer: usize, count: u64) -> Option<u64> {
        let plain = self.0.small != 0
            && count <= i32::MAX as u64
            && buffer.wrapping_sub(FIRST_PAGE) < PLAIN - FIRST_PAGE;
        // Below 2^62.
        plain.then(|| u64::from(self.0.small) * count)
    }

    /// Packs `count` instances from `user` to `packed` (MPI 5.0, 5.2, `MPI_Pack`, without a position).
    ///
    /// `user` is a buffer address in the sense of MPI: the address of displacement 0 of the first
    /// instance, or null if the displacements are absolute addresses.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let column = ddtc::commit(&Datatype::vector(4, 1, 8, &Datatype::of::<u8>())?)?;
    /// let matrix: Vec<u8> = (0..32).collect();
    /// let mut packed = [0; 4];
    /// // SAFETY: the column lies inside `matrix` and has 4 bytes.
    /// unsafe { column.pack_raw(matrix.as_ptr(), 1, packed.as_mut_ptr()) };
    /// assert_eq!(packed, [0, 8, 16, 24]);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Safety
    /// All bytes that the `count` instances contain must be readable, and
    /// [`Committed::packed_size`] bytes at `packed` must be writable. The two memory areas must not
    /// overlap. During the call, nothing else may write to the instances or access the packed
    /// bytes.
    #[inline]
    pub unsafe fn pack_raw(&self, user: *const u8, count: u64, packed: *mut u8) {
        // SAFETY: as the caller promises.
        unsafe { self.0.run(Direction::Pack, user.cast_mut(), packed, count) }
    }

    /// Unpacks `count` instances from `packed` to `user` (MPI 5.0, 5.2, `MPI_Unpack`, without a position).
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let column = ddtc::commit(&Datatype::vector(4, 1, 8, &Datatype::of::<u8>())?)?;
    /// let mut matrix = [0; 32];
    /// // SAFETY: the column lies inside `matrix` and has 4 bytes.
    /// unsafe { column.unpack_raw([1, 2, 3, 4].as_ptr(), 1, matrix.as_mut_ptr()) };
    /// assert_eq!((matrix[0], matrix[8], matrix[16], matrix[24]), (1, 2, 3, 4));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Safety
    /// As for [`Committed::pack_raw`], with reading and writing exchanged.
    #[inline]
    pub unsafe fn unpack_raw(&self, packed: *const u8, count: u64, user: *mut u8) {
        // SAFETY: as the caller promises.
        unsafe { self.0.run(Direction::Unpack, user, packed.cast_mut(), count) }
    }

    /// Moves as [`Committed::pack_raw`] or [`Committed::unpack_raw`] do if the kernel is at hand and nobody counts, and says whether it did; else nothing is moved,
    /// and those are to be called. It neither compiles nor allocates, and cannot panic.
    ///
    /// # Safety
    /// As [`Committed::pack_raw`] and [`Committed::unpack_raw`].
    #[inline]
    pub(crate) unsafe fn try_raw(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
    ) -> bool {
        // SAFETY: as the caller promises.
        !calls::counting() && unsafe { self.0.run_at_hand(direction, user, packed, count) }
    }

    /// Packs `count` instances from `src` into `dst`. The argument `origin` is the index in `src`
    /// of displacement 0 of the first instance.
    ///
    /// Returns the number of bytes written, which is [`Committed::packed_size`].
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let column = ddtc::commit(&Datatype::vector(4, 1, 8, &Datatype::of::<u8>())?)?;
    /// let matrix: Vec<u8> = (0..32).collect();
    /// let mut packed = [0; 4];
    /// // Column 2: displacement 0 is at index 2.
    /// assert_eq!(column.pack(&matrix, 2, 1, &mut packed)?, 4);
    /// assert_eq!(packed, [2, 10, 18, 26]);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `dst` is too short, or if an instance has bytes outside of `src`. In the latter case the
    /// error names the bound that lies outside. Nothing is written after an error.
    pub fn pack(&self, src: &[u8], origin: usize, count: u64, dst: &mut [u8]) -> Result<usize> {
        let n = self.whole("pack", ("src", src.len()), origin, count, ("dst", dst.len()))?;
        // SAFETY: all instances lie inside `src` and the packed bytes inside `dst`, as just checked; the borrows keep
        // them apart.
        unsafe { self.pack_raw(src.as_ptr().wrapping_add(origin), count, dst.as_mut_ptr()) };
        Ok(n)
    }

    /// Unpacks `count` instances from `src` into `dst`. The argument `origin` is the index in `dst`
    /// of displacement 0 of the first instance.
    ///
    /// Returns the number of bytes read. Bytes of `dst` between the data are not changed.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let column = ddtc::commit(&Datatype::vector(4, 1, 8, &Datatype::of::<u8>())?)?;
    /// let mut matrix = [0; 32];
    /// assert_eq!(column.unpack(&[1, 2, 3, 4], 2, 1, &mut matrix)?, 4);
    /// assert_eq!((matrix[2], matrix[10], matrix[18], matrix[26]), (1, 2, 3, 4));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Committed::pack`], with `src` and `dst` exchanged.
    pub fn unpack(&self, src: &[u8], origin: usize, count: u64, dst: &mut [u8]) -> Result<usize> {
        let n = self.whole("unpack", ("dst", dst.len()), origin, count, ("src", src.len()))?;
        // SAFETY: as in `pack`, with the sides exchanged.
        unsafe { self.unpack_raw(src.as_ptr(), count, dst.as_mut_ptr().wrapping_add(origin)) };
        Ok(n)
    }

    /// Whether what is kept here shows at once that all instances lie inside a slice of `len` bytes with displacement 0 at `origin`. False says
    /// nothing: ask [`Committed::span`].
    #[inline]
    fn plainly_inside(&self, len: usize, origin: usize, count: u64) -> bool {
        let t = &self.0.datatype;
        let plain = self.0.small != 0 && origin < PLAIN && (1..=i32::MAX as u64).contains(&count);
        // Below 2^63, and nothing lies before the origin.
        plain && (count - 1) * t.extent() as u64 + t.true_ub() as u64 + origin as u64 <= len as u64
    }

    /// Checks both sides of a whole pack or unpack and returns the packed size.
    #[inline]
    fn whole(
        &self,
        operation: &'static str,
        user: (&'static str, usize),
        origin: usize,
        count: u64,
        packed: (&'static str, usize),
    ) -> Result<usize> {
        if !self.plainly_inside(user.1, origin, count) {
            self.span(operation, user, origin, count)?;
        }
        let n = self.packed_size(count)?;
        if n > packed.1 as u64 {
            let rule = format!("must hold the {n} packed bytes of {count} instances");
            return Err(Error::new(
                ErrorClass::Truncate,
                operation,
                format!("{}.len()", packed.0),
                packed.1,
                rule,
            ));
        }
        Ok(n as usize)
    }

    /// Checks that the true bounds of all instances lie inside a slice of `len` bytes with displacement 0 at `origin`.
    #[inline(never)]
    fn span(
        &self,
        operation: &'static str,
        (name, len): (&'static str, usize),
        origin: usize,
        count: u64,
    ) -> Result<()> {
        let t = &self.0.datatype;
        if count == 0 || t.size() == 0 {
            return Ok(());
        }
        let last = (i128::from(count) - 1) * i128::from(t.extent());
        let lo = i128::from(t.true_lb()) + last.min(0) + origin as i128;
        let hi = i128::from(t.true_ub()) + last.max(0) + origin as i128;
        if lo < 0 {
            let rule = format!(
                "{count} instances start {} bytes before `{name}`: origin must be at least that larger",
                -lo
            );
            return Err(Error::new(ErrorClass::Buffer, operation, "origin", origin, rule));
        }
        if hi > len as i128 {
            let rule = format!("the true upper bound of {count} instances is byte {hi} of `{name}`");
            return Err(Error::new(ErrorClass::Buffer, operation, format!("{name}.len()"), len, rule));
        }
        Ok(())
    }
}

impl Inner {
    /// Lets calls go to the kernel that the layout has, unless they need more.
    fn go_by_kernel(&self, direction: Direction, served: Option<&Tier>) {
        if let Some(kernel) = served.and_then(Tier::kernel)
            && plainly(self.engine.config())
        {
            self.entry_points[direction as usize].store(kernel.entry_point().as_ptr(), Release);
        }
    }

    /// How a call of `bytes` bytes in `direction` is served, compiled first if the mode says so; none where nothing is decided.
    fn served(&self, direction: Direction, bytes: u64) -> Option<&Tier> {
        let served = self.engine.serve_call(&self.layout, direction, bytes);
        self.go_by_kernel(direction, served);
        served
    }

    /// # Safety
    /// As [`Committed::pack_raw`] or [`Committed::unpack_raw`].
    #[inline]
    unsafe fn run(&self, direction: Direction, user: *mut u8, packed: *mut u8, count: u64) {
        if calls::counting() {
            calls::count(direction.into(), (self.datatype.size() as u64).saturating_mul(count));
        }
        // SAFETY: as the caller promises.
        unsafe {
            if !self.run_at_hand(direction, user, packed, count) {
                self.run_slow(direction, user, packed, count);
            }
        }
    }

    /// Moves a run of bytes, or by the kernel that calls go to; whether there is either.
    ///
    /// # Safety
    /// As [`Inner::run`].
    #[inline(always)]
    unsafe fn run_at_hand(&self, direction: Direction, user: *mut u8, packed: *mut u8, count: u64) -> bool {
        if self.run.is_of(count) {
            let user = user.wrapping_offset(self.origin);
            let (src, dst) = match direction {
                Direction::Pack => (user, packed),
                Direction::Unpack => (packed, user),
            };
            // SAFETY: `count` instances are so many bytes on either side, one behind the other, and their memory is as the caller promises.
            unsafe { run::copy(dst, src, self.small as usize * count as usize) };
            return true;
        }
        let Some(entry) = EntryPoint::from_ptr(self.entry_points[direction as usize].load(Acquire)) else {
            return false;
        };
        // SAFETY: the entry point of the kernel that `layout` has decided on for good (`go_by_kernel`), which lives as long as `self`; it
        // was made for this datatype's nest, and `origin` is what that nest leaves out.
        unsafe { entry.call(user.wrapping_offset(self.origin), packed, count) };
        true
    }

    /// [`Inner::run`] for those who seldom call it.
    ///
    /// # Safety
    /// As [`Inner::run`].
    #[inline(never)]
    unsafe fn run_whole(&self, direction: Direction, user: *mut u8, packed: *mut u8, count: u64) {
        // SAFETY: as the caller promises.
        unsafe { self.run(direction, user, packed, count) }
    }

    /// # Safety
    /// As [`Inner::run`].
    #[cold]
    unsafe fn run_slow(&self, direction: Direction, user: *mut u8, packed: *mut u8, count: u64) {
        let bytes = (self.datatype.size() as u64).saturating_mul(count);
        if bytes == 0 {
            return;
        }
        let served = self.served(direction, bytes);
        let by = |by| tracing::trace!(target: "ddtc", %direction, bytes, by, "call");
        let call = Call { direction, user, packed, count, range: 0..bytes };
        // SAFETY: as the caller promises.
        unsafe {
            match served.and_then(Tier::kernel) {
                Some(_) if self.splits(direction, count, bytes) => {
                    by("threads");
                    self.run_parallel(direction, user, packed, count, bytes);
                }
                Some(_) if self.streams(direction, bytes) => {
                    by("stream");
                    self.walk(direction, user, packed, count, 0..bytes);
                }
                Some(kernel) => {
                    by("kernel");
                    kernel.call(user.wrapping_offset(self.origin), packed, count);
                }
                None if self.engine.config().mode == Mode::Off => {
                    by("definition");
                    self.define(&call);
                }
                None if served.is_none() => {
                    by("walk");
                    let memory = self.buffers(direction, user, packed);
                    let streams = self.streams(direction, bytes);
                    self.engine.walk_whole(&self.layout, &memory.streaming(streams), count);
                }
                // By kernels of its parts.
                None => {
                    by("walk");
                    self.walk(direction, user, packed, count, 0..bytes);
                }
            }
            if self.engine.config().check {
                self.compare(&call);
            }
        }
    }

    /// # Safety
    /// The mapped bytes inside the range must be valid on both sides, with `packed` the address of packed byte 0.
    unsafe fn walk(
        &self,
        direction: Direction,
        user: *mut u8,
        packed: *mut u8,
        count: u64,
        range: Range<u64>,
    ) {
        // SAFETY: as the caller promises.
        let memory = unsafe { self.buffers(direction, user, packed) };
        if self.streams(direction, range.end - range.start) {
            self.engine.walk(&self.layout, &memory.streaming(true), count, range);
        } else {
            self.engine.range(&self.layout, &memory, count, range);
        }
    }

    /// The two sides of a call, with `packed` the address of packed byte 0.
    ///
    /// # Safety
    /// Only blocks of this nest are moved, which are valid as for [`Inner::walk`].
    #[inline(always)]
    unsafe fn buffers(&self, direction: Direction, user: *mut u8, packed: *mut u8) -> Buffers {
        let level = self.engine.config().level;
        // SAFETY: as the caller promises.
        unsafe { Buffers::new(user.wrapping_offset(self.origin), packed, direction, level) }
    }

    /// Whether a call of `bytes` bytes stores past the caches. The walker does: it moves as many bytes a call as the kernel, and
    /// code is not made twice.
    fn streams(&self, direction: Direction, bytes: u64) -> bool {
        direction == Direction::Pack && bytes >= self.engine.config().stream_bytes
    }
}

const _: () = {
    const fn shared<T: Send + Sync + Clone>() {}
    shared::<Committed>();
};

#[cfg(test)]
mod tests;
