//! Committed datatypes, whose methods pack and unpack.
//!
//! A committed datatype is immutable and shared. Once its kernel exists, a pack or unpack of whole
//! instances takes no lock and allocates nothing, with four exceptions: a call that is split over
//! threads; a call in check mode; the first call that a thread makes while calls are counted; and a
//! call that stores past the caches, if its loops are nested so deeply that the interpreter's stack
//! does not fit in an array of 16 entries.
//!
//! The slice methods check that the true bounds of all instances lie inside the slice. The raw
//! methods leave that to the caller, as MPI does.
#![allow(unsafe_code)] // Raw methods pass what the caller promises on to kernels and to `Buffers`.

#[cfg(feature = "copies")]
mod copy;
mod definition;
#[cfg(any(test, feature = "internal"))]
mod made;
mod one_run;
#[cfg(feature = "operations")]
mod operation;
mod parallel;
mod ranges;
#[cfg(any(test, feature = "internal"))]
mod raw_calls;
#[cfg(any(test, feature = "internal"))]
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

#[cfg(feature = "copies")]
pub use copy::LayoutCopy;
use definition::Call;
use one_run::Run;
#[cfg(feature = "operations")]
pub use operation::CommittedOperation;
#[cfg(any(test, feature = "internal"))]
pub use raw_calls::{RawCalls, RawCopyCalls, RawOperationCalls};
#[cfg(any(test, feature = "internal"))]
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
    /// Entry points of the kernels of `layout`, one per direction, that a call may enter at once.
    /// An entry point is null until the commit, or a later call through this value or a clone,
    /// finds the kernel. It stays null if calls need more than the kernel (check mode, several
    /// threads, stores that bypass the caches). Besides the entry points, the hot path reads only
    /// `run`, `origin` and, for a run of bytes, `small`.
    entry_points: [AtomicPtr<u64>; 2],
    origin: isize,
    /// The size in bytes of a datatype with small bounds, as the function [`small`] defines them,
    /// else 0.
    small: u32,
    /// Whether the mode compiles layouts and calls need nothing but a kernel ([`kernel_suffices`]).
    plain: bool,
    /// Which numbers of instances are moved by one copy, without a kernel. It is [`Run::None`] if
    /// `plain` is false or `small` is 0.
    run: Run,
    datatype: Datatype,
    layout: Arc<CompiledLayout>,
    engine: Engine,
}

// A program may hold millions of committed types, so this assertion limits the number of bytes that
// each of them takes.
const _: () = assert!(size_of::<Inner>() <= 56);

/// Lowest address, in bytes, at which data may lie: nothing is mapped below it. If data seem to lie
/// below this address, a program has passed a null buffer together with displacements that are not
/// addresses.
pub const FIRST_PAGE: usize = 4096;

/// Upper limit (exclusive) of the addresses and origins to which the fast checks apply. The sum of
/// such an address and the span of 2^31 - 1 instances with small bounds is below 2^63.
const PLAIN: usize = 1 << 62;

/// Returns the size in bytes of a datatype with small bounds, and 0 for any other datatype.
///
/// Bounds are small under two conditions. The true lower bound and the extent are not negative, so
/// that no instance has an entry below displacement 0 of the first instance. The extent, the true
/// upper bound and the size are at most 2^31 - 1, so that 2^31 - 1 instances end less than 2^62
/// bytes after displacement 0.
fn small(t: &Datatype) -> u32 {
    const MAX: i64 = i32::MAX as i64;
    let plain = t.true_lb() >= 0 && t.true_ub() <= MAX && (0..=MAX).contains(&t.extent());
    // The bounds do not limit the size: entries that overlap can have more bytes than their span.
    if plain && t.size() <= MAX { t.size() as u32 } else { 0 }
}

/// Returns true if a call needs nothing but the kernel: under `config`, calls are not compared with
/// the definition, not split among threads, and do not store past the caches.
fn kernel_suffices(config: &Config) -> bool {
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
    /// Returns a clone, and counts a commit and a cache hit, as [`Engine::commit`] would for an
    /// equal datatype.
    #[must_use]
    pub(crate) fn again(&self) -> Committed {
        self.0.engine.found(&self.0.layout);
        self.clone()
    }

    fn new(engine: Engine, datatype: Datatype, placed: PlacedLayout) -> Committed {
        let PlacedLayout { layout, origin } = placed;
        let small = small(&datatype);
        let config = engine.config();
        let plain = matches!(config.mode, Mode::Commit | Mode::Lazy) && kernel_suffices(config);
        let committed = Committed(Arc::new(Inner {
            entry_points: Default::default(),
            origin: origin as isize,
            small,
            plain,
            run: if plain && small != 0 { Run::from_nest(layout.nest()) } else { Run::None },
            datatype,
            layout,
            engine,
        }));
        for d in Direction::BOTH {
            committed.0.publish_kernel(d, committed.0.layout.served(d));
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

    /// Returns the hash of the normal nest. Equal nests have equal hashes in all processes that run
    /// the same build of the library.
    pub(crate) fn layout_hash(&self) -> u64 {
        self.0.layout.hash()
    }

    /// Returns a hash of the layout that does not depend on distances of 64 KiB and more. Types of
    /// absolute addresses differ in such distances from one allocation or run to the next, and have
    /// the same hash nevertheless. If the nest has no such hash, returns
    /// [`Committed::layout_hash`].
    ///
    /// Layouts with equal hashes may move different bytes. The hash selects measurements of similar
    /// layouts; it does not identify a layout.
    pub(crate) fn near_hash(&self) -> u64 {
        self.0.layout.near_hash().unwrap_or_else(|| self.layout_hash())
    }

    /// Returns the number of bytes to add to the buffer address of a call to get the user address
    /// for the kernel.
    pub(crate) fn origin(&self) -> isize {
        self.0.origin
    }

    /// Returns the kernel of `direction`, and compiles it now if the mode compiles at all. Returns
    /// none if the layout is interpreted.
    ///
    /// The user address for the kernel is the buffer address plus [`Committed::origin`].
    pub(crate) fn kernel(&self, direction: Direction) -> Option<&Arc<Kernel>> {
        self.0.served(direction, None).and_then(Tier::kernel)
    }

    /// Returns true if it has been decided how calls of `direction` are served. This is always the
    /// case outside of [`Mode::Lazy`], and for types whose field `run` is [`Run::Any`]. No type is
    /// `Run::Any` if calls are checked, may be split over threads, or may store past the caches.
    ///
    /// For all other types in [`Mode::Lazy`], this method counts `bytes` bytes, as a call that
    /// moves these bytes would, until the decision has been made. The call that reaches
    /// [`Config::lazy_threshold`](crate::engine::Config::lazy_threshold) compiles the layout, and
    /// from then on the answer is true. This method does not wait: while another thread compiles the
    /// layout, the answer is false. A caller that can move bytes in another way, such as through the
    /// MPI library, uses that way as long as the answer is false.
    pub(crate) fn settled(&self, direction: Direction, bytes: u64) -> bool {
        if self.0.run == Run::Any {
            return true;
        }
        let layout = &self.0.layout;
        if self.0.engine.config().mode == Mode::Lazy && layout.served(direction).is_none() {
            let _ = self.0.served(direction, Some(bytes));
        }
        self.0.engine.config().mode != Mode::Lazy || layout.served(direction).is_some()
    }

    /// Returns one line that describes how calls of `direction` are served.
    ///
    /// If the layout has a kernel, the line describes the kernel, although some calls do not use it:
    /// a single run of bytes is copied, and neither calls that are split over threads nor calls that
    /// store past the caches run the kernel as a whole. In the modes that never compile, the line
    /// says "not compiled yet", although
    /// calls in [`Mode::Off`] follow the type map.
    pub(crate) fn schedule(&self, direction: Direction) -> String {
        match self.0.layout.served(direction) {
            None if self.0.run == Run::Any => "a run of bytes: copied".to_owned(),
            None => "not compiled yet: interpreted".to_owned(),
            Some(Tier::Kernel { schedule, .. }) => schedule.to_string(),
            Some(Tier::Interpreted { reason, .. }) => format!("interpreted: {reason}"),
        }
    }

    /// Returns true if `self` and `other` use the same layout, and so the same kernels.
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
    /// Class `Count` if the number does not fit in 63 bits.
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
                "count times the size of the datatype must fit in 63 bits",
            )
        })
    }

    /// Returns the number of packed bytes of `count` instances at address `buffer`, if a fast check
    /// shows that the whole span of these instances lies in the address space above [`FIRST_PAGE`].
    ///
    /// A result of none does not mean that the span is wrong. The caller must then call
    /// [`Committed::packed_size`] and check the span itself.
    #[inline]
    pub(crate) fn plain_size(&self, buffer: usize, count: u64) -> Option<u64> {
        let plain = self.0.small != 0
            && count <= i32::MAX as u64
            && buffer.wrapping_sub(FIRST_PAGE) < PLAIN - FIRST_PAGE;
        // This product is below 2^62, since both factors are below 2^31.
        plain.then(|| u64::from(self.0.small) * count)
    }

    /// Packs `count` instances from `user` to `packed` (MPI 5.0, 5.2, `MPI_Pack`, without a
    /// position).
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
        // SAFETY: the caller has promised what the calls in this block require.
        unsafe { self.0.run(Direction::Pack, user.cast_mut(), packed, count) }
    }

    /// Unpacks `count` instances from `packed` to `user` (MPI 5.0, 5.2, `MPI_Unpack`, without a
    /// position).
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
        // SAFETY: the caller has promised what the calls in this block require.
        unsafe { self.0.run(Direction::Unpack, user, packed.cast_mut(), count) }
    }

    /// Moves `count` instances in `direction` if calls are not being counted, and if one copy
    /// suffices (the field `run`) or the entry point of their kernel is published in this value.
    /// Returns true if it moved them. If it returns false, it has moved nothing, and the caller
    /// must use [`Committed::pack_raw`] or [`Committed::unpack_raw`] instead.
    ///
    /// A kernel can exist without being published in this value, if it was compiled for another
    /// value with the same layout. The next [`Committed::pack_raw`] or [`Committed::unpack_raw`] in
    /// the direction of the kernel publishes it here.
    ///
    /// This method does not compile, allocate or panic.
    ///
    /// # Safety
    /// The promises of [`Committed::pack_raw`] or [`Committed::unpack_raw`] must hold.
    #[inline]
    pub(crate) unsafe fn try_raw(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
    ) -> bool {
        // SAFETY: the caller has promised what the calls in this block require.
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
    /// Class `Truncate` if `dst` is too short, and class `Buffer` if an instance has bytes outside
    /// of `src`; this error names the bound that lies outside. Class `Count` if the packed size of
    /// all instances does not fit in 63 bits. Nothing is written after an error.
    pub fn pack(&self, src: &[u8], origin: usize, count: u64, dst: &mut [u8]) -> Result<usize> {
        let n = self.whole("pack", ("src", src.len()), origin, count, ("dst", dst.len()))?;
        // SAFETY: `whole` has checked that all instances lie inside `src` and the packed bytes
        // inside `dst`. The borrows keep the two apart.
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
        // SAFETY: `whole` has checked that all instances lie inside `dst` and the packed bytes
        // inside `src`. The borrows keep the two apart.
        unsafe { self.unpack_raw(src.as_ptr(), count, dst.as_mut_ptr().wrapping_add(origin)) };
        Ok(n)
    }

    /// Returns true if a fast check shows that all instances lie inside a slice of `len` bytes with
    /// displacement 0 at `origin`. If this method returns false, the instances may still lie
    /// inside; [`Committed::span`] then decides.
    #[inline]
    fn plainly_inside(&self, len: usize, origin: usize, count: u64) -> bool {
        let t = &self.0.datatype;
        let plain = self.0.small != 0 && origin < PLAIN && (1..=i32::MAX as u64).contains(&count);
        // The bounds are small and the origin is below 2^62, so this sum is below 2^63. The true
        // lower bound and the extent are not negative, so nothing lies before the origin.
        plain && (count - 1) * t.extent() as u64 + t.true_ub() as u64 + origin as u64 <= len as u64
    }

    /// Checks both slices of a call of `count` whole instances and returns the packed size in
    /// bytes.
    ///
    /// # Errors
    /// Returns class `Buffer` if an instance leaves the user slice, `Count` if the packed size
    /// overflows, and `Truncate` if the packed slice is too short.
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

    /// Checks that the true bounds of all instances lie inside a slice of `len` bytes with
    /// displacement 0 at index `origin`. Instances without bytes may lie anywhere.
    ///
    /// # Errors
    /// Returns class `Buffer` if the instances begin before the slice or end after it.
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
                "must be larger by at least {0}, because {count} instances begin {0} bytes before `{name}`",
                -lo
            );
            return Err(Error::new(ErrorClass::Buffer, operation, "origin", origin, rule));
        }
        if hi > len as i128 {
            let rule = format!(
                "must be at least {hi}, because the true upper bound of {count} instances is this byte of `{name}`"
            );
            return Err(Error::new(ErrorClass::Buffer, operation, format!("{name}.len()"), len, rule));
        }
        Ok(())
    }
}

impl Inner {
    /// Publishes the entry point of the kernel in `served`, so that later calls enter the kernel at
    /// once. Does nothing if there is no kernel, or if calls need more than the kernel.
    fn publish_kernel(&self, direction: Direction, served: Option<&Tier>) {
        if let Some(kernel) = served.and_then(Tier::kernel)
            && kernel_suffices(self.engine.config())
        {
            self.entry_points[direction as usize].store(kernel.entry_point().as_ptr(), Release);
        }
    }

    /// Returns how a call of `bytes` bytes in `direction` is served, after compiling and publishing
    /// the kernel if the mode says so. Returns none if nothing has been decided.
    fn served(&self, direction: Direction, bytes: Option<u64>) -> Option<&Tier> {
        let served = self.engine.serve_call(&self.layout, direction, bytes);
        self.publish_kernel(direction, served);
        served
    }

    /// Counts a call and moves `count` whole instances.
    ///
    /// # Safety
    /// The promises of [`Committed::pack_raw`] or [`Committed::unpack_raw`] must hold.
    #[inline]
    unsafe fn run(&self, direction: Direction, user: *mut u8, packed: *mut u8, count: u64) {
        if calls::counting() {
            calls::count(direction.into(), (self.datatype.size() as u64).saturating_mul(count));
        }
        // SAFETY: the caller has promised what the calls in this block require.
        unsafe {
            if !self.run_at_hand(direction, user, packed, count) {
                self.run_slow(direction, user, packed, count);
            }
        }
    }

    /// Moves `count` instances by one copy if they are a run of bytes, or else by the kernel whose
    /// entry point is published. Returns false, with nothing moved, if neither is possible.
    ///
    /// # Safety
    /// The promises of [`Inner::run`] must hold.
    #[inline(always)]
    unsafe fn run_at_hand(&self, direction: Direction, user: *mut u8, packed: *mut u8, count: u64) -> bool {
        if self.run.covers(count) {
            let user = user.wrapping_offset(self.origin);
            let (src, dst) = match direction {
                Direction::Pack => (user, packed),
                Direction::Unpack => (packed, user),
            };
            // SAFETY: `run` covers `count`, so the instances are one run of `small * count` bytes
            // on both sides. The caller promises that these bytes can be read and written and do
            // not overlap.
            unsafe { run::copy(dst, src, self.small as usize * count as usize) };
            return true;
        }
        let Some(entry) = EntryPoint::from_ptr(self.entry_points[direction as usize].load(Acquire)) else {
            return false;
        };
        // SAFETY: `publish_kernel` stored the entry point of a kernel of `layout`. A layout keeps
        // its kernels once they are decided, and `self` keeps the layout, so the kernel is still
        // alive. It was made for the nest of this datatype, which begins at `origin`. The memory is
        // as the caller promises.
        unsafe { entry.call(user.wrapping_offset(self.origin), packed, count) };
        true
    }

    /// Calls [`Inner::run`] without inlining it, for callers that rarely move whole instances.
    ///
    /// # Safety
    /// The promises of [`Inner::run`] must hold.
    #[inline(never)]
    unsafe fn run_whole(&self, direction: Direction, user: *mut u8, packed: *mut u8, count: u64) {
        // SAFETY: the caller has promised what the calls in this block require.
        unsafe { self.run(direction, user, packed, count) }
    }

    /// Moves `count` whole instances in any mode and configuration, and compares the result with
    /// the definition in check mode.
    ///
    /// # Safety
    /// The promises of [`Inner::run`] must hold.
    #[cold]
    unsafe fn run_slow(&self, direction: Direction, user: *mut u8, packed: *mut u8, count: u64) {
        let bytes = (self.datatype.size() as u64).saturating_mul(count);
        if bytes == 0 {
            return;
        }
        // This may compile the layout. The result determines which executor moves the bytes, and
        // the choice of executor is logged.
        let served = self.served(direction, Some(bytes));
        let by = |by| tracing::trace!(target: "ddtc", %direction, bytes, by, "call");
        let call = Call { direction, user, packed, count, range: 0..bytes };
        // SAFETY: every executor gets this layout or datatype and the memory for which the caller
        // has made the promises. The kernel was made for the nest of the layout, which begins at
        // `origin`. `run_parallel` is called only after `splits` has returned true. `bytes` is the
        // packed size: the caller promises that the packed bytes exist, so the multiplication above
        // has not saturated.
        unsafe {
            match served.and_then(Tier::kernel) {
                Some(_) if self.splits(direction, count, bytes) => {
                    by("threads");
                    self.run_parallel(direction, user, packed, count, bytes);
                }
                Some(_) if self.streams(direction, bytes) => {
                    by("stream");
                    self.interpret(direction, user, packed, count, 0..bytes);
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
                    self.engine.interpret_whole(&self.layout, &memory.streaming(streams), count);
                }
                // The scheduler refused the nest or a stage failed. The nest is interpreted, except
                // for those parts of the nest that have kernels of their own.
                None => {
                    by("walk");
                    self.interpret(direction, user, packed, count, 0..bytes);
                }
            }
            if self.engine.config().check {
                self.compare(&call);
            }
        }
    }

    /// Moves the packed bytes `range` by interpreting the nest, with kernels for whole iterations
    /// if the mode compiles. If the bytes are to be stored past the caches, the interpreter moves
    /// all of them.
    ///
    /// # Safety
    /// `packed` must be the address that packed byte 0 has or would have, and `range` must lie
    /// inside the packed stream. The mapped bytes inside the range must be readable on the side
    /// that is read and writable on the other side, and the two sides must not overlap. During the
    /// call, nothing else may write to the bytes that are read or access those that are written.
    unsafe fn interpret(
        &self,
        direction: Direction,
        user: *mut u8,
        packed: *mut u8,
        count: u64,
        range: Range<u64>,
    ) {
        // SAFETY: the caller has promised what the calls in this block require.
        let memory = unsafe { self.buffers(direction, user, packed) };
        if self.streams(direction, range.end - range.start) {
            self.engine.interpret(&self.layout, &memory.streaming(true), count, range);
        } else {
            self.engine.range(&self.layout, &memory, count, range);
        }
    }

    /// Returns the handle for both sides of a call. `packed` is the address that packed byte 0 has
    /// or would have.
    ///
    /// # Safety
    /// The handle may be used only to move blocks of this nest. The blocks that are moved must be
    /// readable on the side that is read and writable on the other side, and the two sides must not
    /// overlap. While the handle is used, nothing else may write to the bytes that are read or
    /// access those that are written.
    #[inline(always)]
    unsafe fn buffers(&self, direction: Direction, user: *mut u8, packed: *mut u8) -> Buffers {
        let level = self.engine.config().level;
        // SAFETY: the caller has promised what `Buffers::new` requires of the memory and of the use
        // of the handle. This machine runs `level`, since it is the level of an engine and
        // `Engine::new` replaces any other.
        unsafe { Buffers::new(user.wrapping_offset(self.origin), packed, direction, level) }
    }

    /// Returns true if a call of `bytes` bytes is to store past the caches. Only packing does so,
    /// and only if it moves at least the configured number of bytes. For a call that is split over
    /// threads, `bytes` is the length of the piece of one thread.
    ///
    /// The interpreter of nests makes these stores. For calls of this size it is as fast as a
    /// kernel, and no second kernel needs to be compiled. Even so, the interpreter uses ordinary
    /// stores for blocks at listed offsets and for data that it moves in steps of less than 4 KiB.
    /// Calls in [`Mode::Off`] never store past the caches.
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
