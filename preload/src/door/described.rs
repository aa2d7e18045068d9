//! Types that are known by what their descriptions say.
//!
//! What is made of one stays for good, as many as there are places: convertors point to it. Its copy of the description takes the place of the host's in such a
//! convertor, so that our mover finds what serves it without a look-up, and clones have it too.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use ddtc::committed::Committed;
use ddtc::datatype::Datatype;
use ddtc::kind::Direction;
use ddtc::object::runtime;
use ddtc::process::Mutex;
use ddtc_hosts::policy::Class;

use super::description::{Order, View, datatype};
use super::layout::{Convertor, layout};
use super::nearness::is_near;
use crate::counted::{self, Uses};
use crate::cuts::{Cuts, Entry, KINDS};
use crate::served::Served;
use crate::spending;

/// Bytes from which a request of a type that is not known is looked at.
pub(crate) const LOOKED_AT: u64 = 16 << 10;
/// Nanoseconds that compiling a layout takes.
pub(super) const COMPILE: u64 = 10_000;

/// How a type is moved.
#[derive(Clone, Copy)]
pub(crate) struct Way<'a> {
    pub(crate) direction: Direction,
    pub(crate) committed: &'a Committed,
    pub(crate) cuts: &'a Cuts,
}

impl Way<'_> {
    /// Where a piece ends that begins at `at`, if there is room for `length` bytes and the request has `size`.
    #[inline]
    pub(crate) fn end(&self, at: u64, length: u64, size: u64) -> u64 {
        let end = at.saturating_add(length).min(size);
        if self.direction == Direction::Pack && end < size { self.cuts.before(end).max(at) } else { end }
    }
}

/// A type by its description. It is never given back: convertors point to it.
#[repr(C)]
pub(crate) struct Described {
    /// As the host's: entries that there is room for, those that are used, where they are.
    header: [u64; 3],
    entries: Box<[Entry]>,
    bounds: [i64; 5],
    /// None: it is the host's for good.
    committed: Option<Committed>,
    class: Class,
    pub(crate) served: Served,
    pub(crate) uses: Uses,
    /// Bytes of each direction that the host moved and that were alike.
    alike: [AtomicU64; 2],
    /// It was not.
    spoilt: AtomicBool,
}

impl Described {
    /// Of a type of the same layout, if there is one, and where elements of the description end.
    fn of(view: &View<'_>, made: Option<(Datatype, Cuts)>) -> Described {
        let entries: Box<[Entry]> = view.entries.into();
        let n = entries.len() as u64;
        let mut described = Described {
            header: [n, n - 1, entries.as_ptr().addr() as u64],
            entries,
            bounds: view.bounds,
            committed: None,
            class: Class::Dense,
            served: Served::new(),
            uses: Uses::new(),
            alike: [const { AtomicU64::new(0) }; 2],
            spoilt: AtomicBool::new(false),
        };
        if let Some((t, cuts)) = made
            && let Ok(committed) = runtime::engine().commit(&t)
            && described.served.keep(|| Some(cuts)).is_some()
        {
            described.class = Class::of(committed.nest());
            if described.class == Class::StridedShort && is_near(committed.nest()) {
                described.served.keep_short();
            }
            counted::adopted(&committed);
            described.committed = Some(committed);
        }
        // Dense, or not understood.
        if described.class == Class::Dense {
            described.served.refuse();
        }
        described
    }

    fn view(&self) -> View<'_> {
        View { bounds: self.bounds, entries: &self.entries }
    }

    /// Returns the address that stands for the description of the host's in a convertor.
    pub(crate) fn stand_in(&'static self) -> u64 {
        self.header.as_ptr().addr() as u64
    }

    /// That of a convertor in which it stands.
    ///
    /// # Safety
    /// The convertor must be one in which one stands, with a mover that was stored beside it.
    #[inline]
    pub(crate) unsafe fn in_convertor(convertor: Convertor) -> Option<&'static Described> {
        // SAFETY: as the caller promises; it lives for good.
        unsafe { (convertor.word(layout().description) as *const Described).as_ref() }
    }

    /// How it is moved, if a mover of ours may serve it.
    #[inline]
    pub(crate) fn way(&self, direction: Direction) -> Option<Way<'_>> {
        if self.spoilt.load(Ordering::Relaxed) {
            return None;
        }
        let (committed, cuts) = (self.committed.as_ref()?, self.served.by(direction)?);
        Some(Way { direction, committed, cuts })
    }

    /// Nanoseconds that moving so many bytes saves at least.
    pub(crate) fn spares(&self, bytes: u64) -> u64 {
        if matches!(self.class, Class::BlocksShort | Class::TableShort) { bytes / 4 } else { 0 }
    }

    /// Whether what the host moved was alike for an instance and more.
    pub(crate) fn is_proven(&self, direction: Direction) -> bool {
        self.alike[direction as usize].load(Ordering::Relaxed) >= LOOKED_AT.max(self.bounds[0] as u64)
    }

    /// So many bytes were alike.
    pub(crate) fn was_alike(&self, direction: Direction, bytes: u64) {
        self.alike[direction as usize].fetch_add(bytes, Ordering::Relaxed);
    }

    /// It says something else than the host does, whoever is wrong: it is the host's for good.
    #[cold]
    pub(crate) fn differs(&self) {
        self.served.refuse();
        if !self.spoilt.swap(true, Ordering::Relaxed) {
            DIFFERENT.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Makes what serves the directions in which requests were the host's, if that was asked for and may be paid for.
    pub(crate) fn serve(&self) {
        let Some(committed) = &self.committed else { return };
        for (direction, moved) in Direction::BOTH.into_iter().zip(self.served.take()) {
            let Some(moved) = moved else { continue };
            if committed.settled(direction, 0)
                || spending::allows(COMPILE) && committed.settled(direction, moved)
            {
                committed.make_ranges(direction);
                // What is received is read back at first.
                committed.make_ranges(Direction::Pack);
                self.served.serve(direction);
            }
        }
    }
}

/// Types of which a first request differed from the host's.
static DIFFERENT: AtomicU32 = AtomicU32::new(0);

/// How many these are.
pub(crate) fn different() -> u32 {
    DIFFERENT.load(Ordering::Relaxed)
}

/// Places; so many of them are used.
const PLACES: usize = 1024;
const USED: usize = 512;
/// Places that are looked at.
const NEAR: usize = 32;

static KNOWN: [AtomicPtr<Described>; PLACES] = [const { AtomicPtr::new(std::ptr::null_mut()) }; PLACES];
/// How many there are; who puts one there holds it.
static MADE: Mutex<usize> = Mutex::new(0);

fn places(view: &View<'_>) -> impl Iterator<Item = &'static AtomicPtr<Described>> {
    let first = (view.hash() >> 32) as usize;
    (first..first + NEAR).filter_map(|at| KNOWN.get(at % PLACES))
}

/// Looks a type up, without a lock.
pub(crate) fn find(wanted: &View<'_>) -> Option<&'static Described> {
    for place in places(wanted) {
        // SAFETY: null, or what is kept for good.
        let known = unsafe { place.load(Ordering::Acquire).as_ref() }?;
        if known.view().is(wanted) {
            return Some(known);
        }
    }
    None
}

pub(crate) fn all() -> impl Iterator<Item = &'static Described> {
    // SAFETY: as in `find`.
    KNOWN.iter().filter_map(|place| unsafe { place.load(Ordering::Acquire).as_ref() })
}

/// Makes a type, once and for good. What cannot be made is known to be the host's.
pub(crate) fn make(view: &View<'_>, sizes: &[u64; KINDS], order: Order) {
    if find(view).is_some() || *MADE.lock() >= USED {
        return;
    }
    let made = view.entries.split_last().and_then(|(_, entries)| {
        let cuts = Cuts::of(entries, sizes, view.size())?;
        Some((datatype(view, sizes, order)?, cuts))
    });
    // What takes long is done without the lock.
    let described = Box::new(Described::of(view, made));
    let mut used = MADE.lock();
    let free = places(view).find(|place| place.load(Ordering::Acquire).is_null());
    // Another thread's may be there by now.
    if let Some(place) = free.filter(|_| find(view).is_none()) {
        place.store(Box::into_raw(described), Ordering::Release);
        *used += 1;
    }
}

/// Moves what was counted to the rows of types.
pub(crate) fn fold_all() {
    for known in all() {
        if let Some(committed) = &known.committed {
            known.uses.fold(committed);
        }
    }
}
