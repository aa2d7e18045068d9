//! Everything of the bench that leaves safe Rust: shared libraries, buffers that C loops and kernels run over, pinning.
//!
//! Invariants: a [`Symbol`] keeps its library loaded; the buffers of a [`Subject`] hold every byte of
//! the span that they were made for, so that whatever moves no byte outside of that span may run over
//! them. Raw pointers do not leave this file.
#![allow(unsafe_code)] // Code from a shared library and kernels take raw pointers; there is no other way to call them.

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
    /// With the loader's own words.
    pub(crate) fn open(path: &Path) -> Result<Rc<Library>, Box<dyn Error>> {
        let name = CString::new(path.to_str().ok_or("the library's path is not UTF-8")?)?;
        // SAFETY: `name` is a string with an end. The library is one that `compile::load` made: it has no constructors.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() { Err(loader_error().into()) } else { Ok(Rc::new(Library { handle })) }
    }

    /// Returns the loop function `function` of this library.
    ///
    /// # Errors
    /// If there is no such symbol.
    pub(crate) fn symbol(self: &Rc<Library>, function: &Function) -> Result<Symbol, Box<dyn Error>> {
        let name = CString::new(function.symbol.as_str())?;
        // SAFETY: the handle is open as long as `self` lives; `name` is a string with an end.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        if address.is_null() {
            return Err(loader_error().into());
        }
        // SAFETY: `csource::function` declares every symbol with just this type, and `address` is not null.
        let entry = unsafe { std::mem::transmute::<*mut c_void, LoopFn>(address) };
        let extents = function.extents.iter().map(|&v| c_long::try_from(v)).collect::<Result<_, _>>()?;
        Ok(Symbol { entry, extents, library: Rc::clone(self) })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle came from dlopen, and no Symbol is left: each holds an Rc of this library.
        unsafe { libc::dlclose(self.handle) };
    }
}

fn loader_error() -> String {
    // SAFETY: dlerror gives null or a string with an end, valid until this thread's next call of the loader.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() { None } else { Some(CStr::from_ptr(text as *const c_char)) }
    };
    text.map_or_else(|| "the loader failed without a word".into(), |t| t.to_string_lossy().into_owned())
}

type LoopFn = unsafe extern "C" fn(*mut u8, *mut u8, *const c_long, *const *const c_int);

/// A loop function with the extents that it reads.
#[derive(Clone, Debug)]
pub(crate) struct Symbol {
    entry: LoopFn,
    extents: Vec<c_long>,
    /// Keeps `entry` loaded.
    #[expect(dead_code, reason = "held for its drop only")]
    library: Rc<Library>,
}

impl Symbol {
    /// Runs the loops once.
    ///
    /// # Safety
    /// `user` is the origin of a buffer in which every byte of the layout that the function was made from may be read (and
    /// for unpack written); `packed` holds its payload likewise; the two do not overlap; `tables` are those of the layout.
    #[inline]
    pub(crate) unsafe fn call(&self, user: *mut u8, packed: *mut u8, tables: &Tables) {
        // SAFETY: the function touches what the caller vouches for; `extents` are as many as its source reads.
        unsafe { (self.entry)(user, packed, self.extents.as_ptr(), tables.pointers.as_ptr()) }
    }
}

impl Symbol {
    /// Runs a loop that combines the packed bytes of one instance of `t` with those in user memory.
    ///
    /// # Panics
    /// If a slice does not hold all bytes of the instance.
    pub(crate) fn reduce(&self, user: &mut [u8], packed: &[u8], t: &Datatype) {
        assert!(t.true_lb() >= 0 && t.true_ub() as usize <= user.len() && t.size() as usize <= packed.len());
        let no_tables = Tables { pointers: Vec::new(), data: Vec::new() };
        // SAFETY: `reductions` writes its loops over the bytes of one instance, which the slices hold, as just checked; it only reads `packed`.
        unsafe { self.call(user.as_mut_ptr(), packed.as_ptr().cast_mut(), &no_tables) }
    }
}

/// Index arrays as the C functions take them.
#[derive(Debug)]
pub(crate) struct Tables {
    pointers: Vec<*const c_int>,
    /// Memory that `pointers` point to; never changed.
    #[expect(dead_code, reason = "owns what the pointers point to")]
    data: Vec<Box<[c_int]>>,
}

impl Tables {
    /// Copies `lists` into index arrays.
    ///
    /// # Errors
    /// If an index does not fit C's int.
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
    /// Pack, unpack.
    symbols: [Symbol; 2],
    tables: Tables,
    span: Option<(i64, i64)>,
    payload: i64,
}

impl HandLoop {
    /// Joins both directions. `span` and `payload` are those of the loops: what the functions touch.
    pub(crate) fn new(
        symbols: [Symbol; 2],
        tables: Tables,
        span: Option<(i64, i64)>,
        payload: i64,
    ) -> HandLoop {
        HandLoop { symbols, tables, span, payload }
    }
}

/// Memory of a fixed length with its first byte at a wanted place within a page, and guard bytes on both sides.
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
    /// Returns the bytes of which the first lies `phase` bytes behind a page boundary (modulo the page). All of them are written, so that each page is
    /// memory of its own: pages that nobody has written are one page of zeros, which any cache holds.
    pub(crate) fn new(len: usize, phase: i64) -> Region {
        let mut memory = vec![FRESH_BYTE; len + 2 * (PAGE + GUARD)];
        let after_guard = memory.as_ptr() as usize + GUARD;
        let wanted = phase.rem_euclid(PAGE as i64) as usize;
        let start = GUARD + (wanted + PAGE - after_guard % PAGE) % PAGE;
        memory[start - GUARD..start].fill(GUARD_BYTE);
        memory[start + len..start + len + GUARD].fill(GUARD_BYTE);
        Region { memory, start, len }
    }

    /// Returns the bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    /// Returns the bytes.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }

    /// Says whether no guard byte was changed.
    pub(crate) fn intact(&self) -> bool {
        let end = self.start + self.len;
        let guards = self.memory[self.start - GUARD..self.start].iter().chain(&self.memory[end..end + GUARD]);
        guards.copied().all(|b| b == GUARD_BYTE)
    }
}

/// Something that moves the bytes of a subject.
#[derive(Debug)]
enum Variant {
    Engine(Committed),
    Hand(HandLoop),
    /// The loops of another variant, once these lines were read.
    Called(usize, Vec<Flag>),
    Memcpy,
}

/// A word in a cache line of its own, which forbids what it precedes unless it is 0.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Flag(AtomicU64);

/// A layout with buffers for it and the variants that move it.
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

/// Longest span of a user buffer that is measured.
const MAX_SPAN: i64 = 1 << 30;

impl Subject {
    /// Span and payload of `entry`.
    ///
    /// # Errors
    /// If either is over 1 GiB.
    pub(crate) fn fits(entry: &CorpusEntry) -> Result<((i64, i64), usize), &'static str> {
        let short = |(low, high): &(i64, i64)| high.checked_sub(*low).is_some_and(|n| n <= MAX_SPAN);
        let span = entry.span().filter(short).ok_or("it spans more than 1 GiB")?;
        let payload = entry.payload().filter(|&n| n <= MAX_SPAN as u64).ok_or("its payload is over 1 GiB")?;
        Ok((span, payload as usize))
    }

    /// Buffers for `entry`, and no variants.
    ///
    /// # Errors
    /// As [`Subject::fits`].
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

    /// Moves to buffers at other places, the `i`th: other memory, which begins at other lines of a page, each as well aligned as the first. Returns
    /// the buffers that were used so far. While they are kept, none of their memory is used again.
    pub(crate) fn place(&mut self, i: usize) -> (Region, Region) {
        // Both factors are odd: 64 places have 64 lines of a page, in another order for either buffer.
        let line = |factor: usize| (i * factor % (PAGE / LINE) * LINE) as i64;
        let user = Region::new(self.user.len, self.span.0 + line(37));
        let packed = Region::new(self.packed.len, line(23));
        (std::mem::replace(&mut self.user, user), std::mem::replace(&mut self.packed, packed))
    }

    /// Adds what `engine` makes of the datatype; returns how it is served, in one line.
    ///
    /// # Errors
    /// If the commit fails.
    pub(crate) fn add_engine(&mut self, column: Column, engine: &Engine) -> ddtc::Result<String> {
        let committed = engine.commit(&self.datatype)?;
        let [pack, unpack] = Direction::BOTH.map(|direction| committed.schedule(direction));
        self.variants.push((column, Variant::Engine(committed)));
        Ok(if pack == unpack { pack } else { format!("pack {pack}; unpack {unpack}") })
    }

    /// Adds hand-written loops.
    ///
    /// # Errors
    /// If they touch other memory or move another number of bytes than the datatype.
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

    /// Adds the loops of variant `of`, called as a function is that looks at `lines` cache lines of its own first.
    pub(crate) fn add_called(&mut self, of: usize, lines: usize) {
        let flags = (0..lines).map(|_| Flag::default()).collect();
        self.variants.push((self.variants[of].0, Variant::Called(of, flags)));
    }

    /// Adds memcpy of the payload, between the starts of both buffers (of the shorter one's length if entries repeat).
    pub(crate) fn add_memcpy(&mut self) {
        self.variants.push((Column::Memcpy, Variant::Memcpy));
    }

    /// Returns the columns of the variants, in order.
    pub(crate) fn columns(&self) -> Vec<Column> {
        self.variants.iter().map(|(column, _)| *column).collect()
    }

    /// Returns the bytes of the payload.
    pub(crate) fn payload(&self) -> usize {
        self.payload
    }

    /// Returns the bytes of both buffers.
    pub(crate) fn bytes(&self) -> usize {
        self.user.len + self.packed.len
    }

    /// Both buffers: user, packed.
    pub(crate) fn buffers(&mut self) -> (&mut Region, &mut Region) {
        (&mut self.user, &mut self.packed)
    }

    /// Moves all instances `repeats` times, by the variant of index `v` in [`Subject::columns`].
    ///
    /// The loop is around the innermost call, so that a lone call costs what it costs a caller and little more.
    #[inline(never)]
    pub(crate) fn run(&mut self, v: usize, direction: Direction, repeats: u32) {
        let (low, count, bytes) = (self.span.0, self.count, self.payload.min(self.user.len));
        let first = self.user.bytes_mut().as_mut_ptr();
        let user = first.wrapping_offset(-(low as isize));
        let packed = self.packed.bytes_mut().as_mut_ptr();
        match (&self.variants[v].1, direction) {
            (Variant::Engine(committed), Direction::Pack) => repeat(repeats, user, |user| {
                // SAFETY: the kernels were committed from this very datatype. `user` is the origin of `count` instances
                // of it: all of their mapped bytes, from `low` on relative to the origin, lie in the user region, and the
                // packed region has as many bytes as their payload. The two regions are different allocations.
                unsafe { committed.pack_raw(user, count, packed) }
            }),
            (Variant::Engine(committed), Direction::Unpack) => repeat(repeats, user, |user| {
                // SAFETY: as for pack.
                unsafe { committed.unpack_raw(packed, count, user) }
            }),
            (Variant::Hand(hand), _) => repeat(repeats, user, |user| {
                // SAFETY: as for pack: `add_loops` made sure that the loops touch the same bytes as the datatype.
                unsafe { hand.symbols[direction as usize].call(user, packed, &hand.tables) }
            }),
            (Variant::Called(of, flags), _) => repeat(repeats, user, |user| {
                if let Variant::Hand(hand) = &self.variants[*of].1
                    && flags.iter().all(|flag| flag.0.load(Relaxed) == 0)
                {
                    // SAFETY: as for pack: `add_loops` looked at those loops.
                    unsafe { hand.symbols[direction as usize].call(user, packed, &hand.tables) }
                }
            }),
            (Variant::Memcpy, Direction::Pack) => repeat(repeats, first, |first| {
                // SAFETY: `bytes` is at most the length of either region, which are different allocations.
                unsafe { std::ptr::copy_nonoverlapping(first, packed, bytes) }
            }),
            (Variant::Memcpy, Direction::Unpack) => repeat(repeats, first, |first| {
                // SAFETY: as for pack.
                unsafe { std::ptr::copy_nonoverlapping(packed, first, bytes) }
            }),
        }
    }
}

/// Calls `run` with `user`, `repeats` times; the compiler may not look through `user` from call to call.
#[inline(always)]
fn repeat(repeats: u32, user: *mut u8, run: impl Fn(*mut u8)) {
    for _ in 0..repeats {
        run(std::hint::black_box(user));
    }
}

/// Pins the calling thread to the last core that it may run on; returns that core, or `None` where this is not allowed.
pub(crate) fn pin() -> Option<usize> {
    // SAFETY: `set` is a plain bit set, for which all zeros is a value; both calls get its true size; 0 is this thread.
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
        // Long enough for memory that comes from the system as zeros.
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
            kept.push(subject.place(i));
            let (user, packed) = subject.buffers();
            assert!(start(user) % LINE == 0 && start(packed) % LINE == 0);
            lines.insert((start(user) % PAGE, start(packed) % PAGE));
        }
        assert_eq!(lines.len(), PAGE / LINE);
    }
}
