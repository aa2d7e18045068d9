//! The code of the benchmark that needs unsafe Rust: shared libraries, buffers over which C loops
//! and kernels run, and pinning.
//!
//! Three invariants hold. A [`Symbol`] keeps its library loaded. The buffers of a [`Subject`] hold
//! every byte of the span for which they were made, so code that touches only bytes of that span
//! may run over them. Raw pointers do not leave this file.
#![allow(unsafe_code)] // Loops from shared libraries and kernels take raw pointers.

use std::error::Error;
use std::ffi::{CStr, CString, c_char, c_int, c_long, c_void};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ddtc::internal::committed::Committed;
use ddtc::internal::corpus::CorpusEntry;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::Engine;
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;

use crate::csource::Function;
use crate::result::Column;

/// A loaded shared library.
#[derive(Debug)]
pub(crate) struct Library {
    handle: *mut c_void,
}

impl Library {
    /// Loads the library at `path`.
    ///
    /// # Errors
    /// Returns the loader's message.
    pub(crate) fn open(path: &Path) -> Result<Rc<Library>, Box<dyn Error>> {
        let name = CString::new(path.to_str().ok_or("the library's path is not UTF-8")?)?;
        // SAFETY: `name` is a string that ends with a null byte. `compile::load` made the library
        // from loops only, so loading it runs no constructors.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() { Err(loader_error().into()) } else { Ok(Rc::new(Library { handle })) }
    }

    /// Returns the loop function `function` of this library.
    ///
    /// # Errors
    /// Returns the loader's message if there is no such symbol, or an error if an extent does not
    /// fit a C long.
    pub(crate) fn symbol(self: &Rc<Library>, function: &Function) -> Result<Symbol, Box<dyn Error>> {
        let name = CString::new(function.symbol.as_str())?;
        // SAFETY: the handle came from dlopen and is open as long as `self` lives, and `name` is a
        // string that ends with a null byte.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        if address.is_null() {
            return Err(loader_error().into());
        }
        // SAFETY: `address` is not null, as just checked. It is the address of a function from
        // `csource::function` or `assembly::function`, which declare all functions with the C type
        // of `LoopFn`, or of the function `reduce` of `reductions`, which takes the first two of
        // these arguments and ignores the others, as the C calling conventions of Linux permit.
        let entry = unsafe { std::mem::transmute::<*mut c_void, LoopFn>(address) };
        let extents = function.extents.iter().map(|&v| c_long::try_from(v)).collect::<Result<_, _>>()?;
        Ok(Symbol { entry, extents, library: Rc::clone(self) })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle came from dlopen and is closed only here. Each `Symbol` holds an `Rc`
        // of this library, so none is left.
        unsafe { libc::dlclose(self.handle) };
    }
}

fn loader_error() -> String {
    // SAFETY: dlerror returns null or a string that ends with a null byte and is valid until this
    // thread's next call of the loader. The string is copied below without another call of the
    // loader.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() { None } else { Some(CStr::from_ptr(text as *const c_char)) }
    };
    text.map_or_else(|| "the loader failed without a word".into(), |t| t.to_string_lossy().into_owned())
}

type LoopFn = unsafe extern "C" fn(*mut u8, *mut u8, *const c_long, *const *const c_int);

/// A C function of hand-written loops, with the extents that it reads as arguments.
#[derive(Clone, Debug)]
pub(crate) struct Symbol {
    entry: LoopFn,
    extents: Vec<c_long>,
    /// Keeps the code of `entry` loaded.
    #[expect(dead_code, reason = "held for its drop only")]
    library: Rc<Library>,
}

impl Symbol {
    /// Runs the loops once.
    ///
    /// # Safety
    /// * `user` must be the origin of a buffer in which every byte of the layout from which the
    ///   function was made may be read and, for unpacking, written.
    /// * `packed` must point to as many bytes as the layout's payload, which may be read and, for
    ///   packing, written.
    /// * The two buffers must not overlap.
    /// * `tables` must be those of the layout.
    #[inline]
    pub(crate) unsafe fn call(&self, user: *mut u8, packed: *mut u8, tables: &Tables) {
        // SAFETY: the function touches only the bytes and tables for which the caller vouches.
        // `extents` has as many numbers as the function's source reads, since both came from one
        // `Function`. `self.library` keeps the code loaded.
        unsafe { (self.entry)(user, packed, self.extents.as_ptr(), tables.pointers.as_ptr()) }
    }
}

impl Symbol {
    /// Runs a loop that combines the packed bytes of one instance of `t` with those in user memory.
    ///
    /// # Panics
    /// Panics if a slice does not hold all bytes of the instance.
    pub(crate) fn reduce(&self, user: &mut [u8], packed: &[u8], t: &Datatype) {
        assert!(t.true_lb() >= 0 && t.true_ub() as usize <= user.len() && t.size() as usize <= packed.len());
        let no_tables = Tables { pointers: Vec::new(), data: Vec::new() };
        // SAFETY: `reductions` writes its loops over the bytes of one instance of `t`, which both
        // slices hold, as just checked. They only read `packed`. The slices do not overlap, since
        // `user` is borrowed mutably. The loops use no tables.
        unsafe { self.call(user.as_mut_ptr(), packed.as_ptr().cast_mut(), &no_tables) }
    }
}

/// Index arrays in the form in which the C functions take them.
#[derive(Debug)]
pub(crate) struct Tables {
    pointers: Vec<*const c_int>,
    /// The memory to which `pointers` point. It is never changed.
    #[expect(dead_code, reason = "owns what the pointers point to")]
    data: Vec<Box<[c_int]>>,
}

impl Tables {
    /// Copies `lists` into index arrays.
    ///
    /// # Errors
    /// Returns an error if an index does not fit C's int.
    pub(crate) fn new(lists: &[Vec<i64>]) -> Result<Tables, Box<dyn Error>> {
        let narrow =
            |list: &Vec<i64>| list.iter().map(|&v| c_int::try_from(v)).collect::<Result<Box<[c_int]>, _>>();
        let data: Vec<Box<[c_int]>> = lists.iter().map(narrow).collect::<Result<_, _>>()?;
        Ok(Tables { pointers: data.iter().map(|list| list.as_ptr()).collect(), data })
    }
}

/// The hand-written loops of one layout in one style.
#[derive(Debug)]
pub(crate) struct HandLoop {
    /// The functions for packing and for unpacking.
    symbols: [Symbol; 2],
    tables: Tables,
    span: Option<(i64, i64)>,
    payload: i64,
}

impl HandLoop {
    /// Returns the loops that consist of a function for packing and one for unpacking. `span` and
    /// `payload` must be those of the bytes that the functions touch.
    pub(crate) fn new(
        symbols: [Symbol; 2],
        tables: Tables,
        span: Option<(i64, i64)>,
        payload: i64,
    ) -> HandLoop {
        HandLoop { symbols, tables, span, payload }
    }
}

/// Memory of a fixed length, with its first byte at a chosen offset within a page, and with guard
/// bytes on both sides.
#[derive(Debug)]
pub(crate) struct Region {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

const PAGE: usize = 4096;
const LINE: usize = 64;
const GUARD: usize = 256;
const GUARD_BYTE: u8 = 0x6b;
const FRESH_BYTE: u8 = 0x17;

impl Region {
    /// Returns memory whose first byte is `phase` bytes after a page boundary (modulo the page
    /// size). All bytes are written, so that each page has memory of its own: pages that were never
    /// written all share one page of zeros, which any cache holds.
    pub(crate) fn new(len: usize, phase: i64) -> Region {
        let mut memory = vec![FRESH_BYTE; len + 2 * (PAGE + GUARD)];
        let after_guard = memory.as_ptr() as usize + GUARD;
        let wanted = phase.rem_euclid(PAGE as i64) as usize;
        let start = GUARD + (wanted + PAGE - after_guard % PAGE) % PAGE;
        memory[start - GUARD..start].fill(GUARD_BYTE);
        memory[start + len..start + len + GUARD].fill(GUARD_BYTE);
        Region { memory, start, len }
    }

    /// Returns the bytes without the guards.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    /// Returns the bytes without the guards, for writing.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }

    /// Returns true if no guard byte was changed.
    pub(crate) fn intact(&self) -> bool {
        let end = self.start + self.len;
        let guards = self.memory[self.start - GUARD..self.start].iter().chain(&self.memory[end..end + GUARD]);
        guards.copied().all(|b| b == GUARD_BYTE)
    }
}

/// One of the ways to move the bytes of a [`Subject`], which is a layout with its buffers.
#[derive(Debug)]
enum Variant {
    Engine(Committed),
    Hand(HandLoop),
    /// The hand-written loops of another variant, given by its index, called each time after all of
    /// these flags were read.
    Called(usize, Vec<Flag>),
    Memcpy,
}

/// A word in a cache line of its own. A [`Variant::Called`] calls its loops only if the word is 0,
/// which it always is, so the processor must read it before each call.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Flag(AtomicU64);

/// A layout, with buffers for it and the variants that move its bytes.
#[derive(Debug)]
pub(crate) struct Subject {
    datatype: Datatype,
    count: u64,
    span: (i64, i64),
    payload: usize,
    user: Region,
    packed: Region,
    variants: Vec<(Column, Variant)>,
}

/// Maximum number of bytes that the user buffer of a layout spans, and maximum payload. Layouts
/// that exceed one of them are not measured.
const MAX_SPAN: i64 = 1 << 30;

impl Subject {
    /// Returns the span and the payload of `entry`.
    ///
    /// # Errors
    /// Returns an error if either is larger than 1 GiB or cannot be computed.
    pub(crate) fn fits(entry: &CorpusEntry) -> Result<((i64, i64), usize), &'static str> {
        let short = |(low, high): &(i64, i64)| high.checked_sub(*low).is_some_and(|n| n <= MAX_SPAN);
        let span = entry.span().filter(short).ok_or("it spans more than 1 GiB")?;
        let payload = entry.payload().filter(|&n| n <= MAX_SPAN as u64).ok_or("its payload is over 1 GiB")?;
        Ok((span, payload as usize))
    }

    /// Returns a subject with buffers for `entry` and without variants.
    ///
    /// # Errors
    /// The errors of [`Subject::fits`].
    pub(crate) fn new(entry: &CorpusEntry) -> Result<Subject, Box<dyn Error>> {
        let (span, payload) = Subject::fits(entry)?;
        let (low, high) = span;
        Ok(Subject {
            datatype: entry.datatype.clone(),
            count: entry.count,
            span,
            payload,
            user: Region::new((high - low) as usize, low),
            packed: Region::new(payload, 0),
            variants: Vec::new(),
        })
    }

    /// Replaces both buffers by the `i`th pair of new ones. The new buffers are other memory and
    /// begin at other cache lines within a page, but at the same offset within a cache line as the
    /// first ones. Returns the previous buffers. The caller must keep these, so that no later
    /// buffer gets their memory.
    pub(crate) fn relocate(&mut self, i: usize) -> (Region, Region) {
        // Both factors are odd, so 64 places use all 64 lines of a page, in a different order for
        // each buffer.
        let line = |factor: usize| (i * factor % (PAGE / LINE) * LINE) as i64;
        let user = Region::new(self.user.len, self.span.0 + line(37));
        let packed = Region::new(self.packed.len, line(23));
        (std::mem::replace(&mut self.user, user), std::mem::replace(&mut self.packed, packed))
    }

    /// Commits the datatype to `engine`, and adds moving the bytes by the result as a variant.
    /// Returns one line that says how the datatype is moved.
    ///
    /// # Errors
    /// Those of [`Engine::commit`]: class `NoMem` if there is not enough memory for the layout. Any
    /// other error is a fault of ddtc.
    pub(crate) fn add_engine(&mut self, column: Column, engine: &Engine) -> ddtc::Result<String> {
        let committed = engine.commit(&self.datatype)?;
        let [pack, unpack] = Direction::BOTH.map(|direction| committed.schedule(direction));
        self.variants.push((column, Variant::Engine(committed)));
        Ok(if pack == unpack { pack } else { format!("pack {pack}; unpack {unpack}") })
    }

    /// Adds hand-written loops as a variant.
    ///
    /// # Errors
    /// Returns an error if the loops span other memory or move another number of bytes than the
    /// datatype.
    pub(crate) fn add_loops(&mut self, column: Column, hand: HandLoop) -> Result<(), Box<dyn Error>> {
        if hand.span.unwrap_or((0, 0)) != self.span || hand.payload != self.payload as i64 {
            let (own, other) = (self.span, hand.span);
            return Err(format!(
                "loops span {other:?} and move {} bytes, the datatype {own:?} and {}",
                hand.payload, self.payload
            )
            .into());
        }
        self.variants.push((column, Variant::Hand(hand)));
        Ok(())
    }

    /// Adds a variant that reads `lines` cache lines of its own and then calls the loops of the
    /// variant with index `of`.
    pub(crate) fn add_called(&mut self, of: usize, lines: usize) {
        let flags = (0..lines).map(|_| Flag::default()).collect();
        self.variants.push((self.variants[of].0, Variant::Called(of, flags)));
    }

    /// Adds a memcpy between the starts of both buffers as a variant. It copies as many bytes as
    /// the payload has. If entries of the type map repeat, the payload may be longer than the user
    /// buffer. Then only as many bytes are copied as the user buffer has.
    pub(crate) fn add_memcpy(&mut self) {
        self.variants.push((Column::Memcpy, Variant::Memcpy));
    }

    /// Returns the column of the results that belongs to each variant, in the order of the
    /// variants.
    pub(crate) fn columns(&self) -> Vec<Column> {
        self.variants.iter().map(|(column, _)| *column).collect()
    }

    /// Returns the number of bytes of the payload.
    pub(crate) fn payload(&self) -> usize {
        self.payload
    }

    /// Returns the number of bytes of both buffers together.
    pub(crate) fn bytes(&self) -> usize {
        self.user.len + self.packed.len
    }

    /// Returns the user buffer and the packed buffer.
    pub(crate) fn buffers(&mut self) -> (&mut Region, &mut Region) {
        (&mut self.user, &mut self.packed)
    }

    /// Moves all instances `repeats` times by the variant with index `v` in [`Subject::columns`].
    ///
    /// The loop that repeats is directly around the innermost call, so that the time of one
    /// repetition is about what a call costs a program.
    #[inline(never)]
    pub(crate) fn run(&mut self, v: usize, direction: Direction, repeats: u32) {
        let (low, count, bytes) = (self.span.0, self.count, self.payload.min(self.user.len));
        let first = self.user.bytes_mut().as_mut_ptr();
        let user = first.wrapping_offset(-(low as isize));
        let packed = self.packed.bytes_mut().as_mut_ptr();
        match (&self.variants[v].1, direction) {
            (Variant::Engine(committed), Direction::Pack) => repeat(repeats, user, |user| {
                // SAFETY: `committed` was made from the datatype of this subject. `user` is the
                // origin of `count` instances of it: all of their mapped bytes, which begin at
                // `low` relative to the origin, are in the user region. The packed region has as
                // many bytes as their payload. The two regions are different allocations.
                unsafe { committed.pack_raw(user, count, packed) }
            }),
            (Variant::Engine(committed), Direction::Unpack) => repeat(repeats, user, |user| {
                // SAFETY: as for packing. Both regions may be written.
                unsafe { committed.unpack_raw(packed, count, user) }
            }),
            (Variant::Hand(hand), _) => repeat(repeats, user, |user| {
                // SAFETY: as for packing. `add_loops` checked that the loops have the span and the
                // payload of the datatype. The tables were made together with the loops.
                unsafe { hand.symbols[direction as usize].call(user, packed, &hand.tables) }
            }),
            (Variant::Called(of, flags), _) => repeat(repeats, user, |user| {
                if let Variant::Hand(hand) = &self.variants[*of].1
                    && flags.iter().all(|flag| flag.0.load(Relaxed) == 0)
                {
                    // SAFETY: as for packing. Variant `of` is `Hand`, and `add_loops` checked its
                    // loops.
                    unsafe { hand.symbols[direction as usize].call(user, packed, &hand.tables) }
                }
            }),
            (Variant::Memcpy, Direction::Pack) => repeat(repeats, first, |first| {
                // SAFETY: `bytes` is at most the length of either region, and the regions are
                // different allocations.
                unsafe { std::ptr::copy_nonoverlapping(first, packed, bytes) }
            }),
            (Variant::Memcpy, Direction::Unpack) => repeat(repeats, first, |first| {
                // SAFETY: as for packing: `bytes` is at most the length of either region, and the
                // regions are different allocations.
                unsafe { std::ptr::copy_nonoverlapping(packed, first, bytes) }
            }),
        }
    }
}

/// Calls `run` with `user`, `repeats` times. `black_box` prevents the compiler from using knowledge
/// of `user` from one call in the next.
#[inline(always)]
fn repeat(repeats: u32, user: *mut u8, run: impl Fn(*mut u8)) {
    for _ in 0..repeats {
        run(std::hint::black_box(user));
    }
}

/// Pins the calling thread to the last core on which it may run. Returns that core, or `None` if
/// this is not permitted.
pub(crate) fn pin() -> Option<usize> {
    // SAFETY: `cpu_set_t` is a plain bit set, for which all zeros is a valid value. Both system
    // calls get the true size of `set`, and 0 stands for the calling thread. `core` is below
    // CPU_SETSIZE, so CPU_ISSET and CPU_SET stay within the set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return None;
        }
        let core = (0..libc::CPU_SETSIZE as usize).rev().find(|&core| libc::CPU_ISSET(core, &set))?;
        libc::CPU_ZERO(&mut set);
        libc::CPU_SET(core, &mut set);
        (libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0).then_some(core)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_of_a_buffer_is_its_own() {
        // A region of 1 MiB gets its memory directly from the system, as pages of zeros.
        let region = Region::new(1 << 20, 5);
        assert!(region.bytes().iter().all(|&b| b == FRESH_BYTE) && region.intact());
        assert_eq!(region.bytes().as_ptr() as usize % PAGE, 5);
    }

    #[test]
    fn places_differ_and_are_aligned_alike() {
        let entry = ddtc::internal::corpus::parse("# a\na = resized(0, 64, vector(2, 1, 2, int))\n")
            .unwrap()
            .remove(0);
        let mut subject = Subject::new(&entry).unwrap();
        let start = |region: &Region| region.bytes().as_ptr() as usize;
        let mut kept = Vec::new();
        let mut lines = std::collections::HashSet::new();
        for i in 1..=PAGE / LINE {
            kept.push(subject.relocate(i));
            let (user, packed) = subject.buffers();
            assert!(start(user) % LINE == 0 && start(packed) % LINE == 0);
            lines.insert((start(user) % PAGE, start(packed) % PAGE));
        }
        assert_eq!(lines.len(), PAGE / LINE);
    }
}
