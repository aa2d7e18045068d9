//! Types that are known by what their descriptions say.
//!
//! What is made of one stays for good, as many as there are places: convertors point to it. Its copy
//! of the description ([`StandIn`]) takes the place of the host's in such a convertor, so that our mover
//! finds what serves it without a look-up, and clones have it too.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use ddtc::committed::Committed;
use ddtc::datatype::Datatype;
use ddtc::kind::Direction;
use ddtc::object::runtime;
use ddtc::process::Mutex;
use ddtc_hosts::policy::Class;

use super::description::{Order, View, datatype};
use super::nearness::is_near;
use crate::atomic_ref::AtomicRef;
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
pub(crate) struct Described {
    /// Address of the [`StandIn`] of its description; 0 until it has one.
    stand_in: u64,
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
        let mut described = Described {
            stand_in: 0,
            entries: view.entries.into(),
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
    pub(crate) fn stand_in(&self) -> u64 {
        self.stand_in
    }

    /// Returns the type that a description in a convertor stands for; `None` if the description is
    /// not one of ours, whatever else the number is.
    #[inline]
    pub(crate) fn by_stand_in(description: u64) -> Option<&'static Described> {
        let distance = (description as usize).wrapping_sub(KNOWN.as_ptr().addr());
        if !distance.is_multiple_of(size_of::<StandIn>()) {
            return None;
        }
        KNOWN.get(distance / size_of::<StandIn>())?.described()
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

/// A description that takes the place of the host's in convertors, and the type that it belongs to.
///
/// All of them stand in one array, so that any word of a convertor can be compared with their
/// addresses ([`Described::by_stand_in`]): a convertor that Open MPI reused may hold anything there.
#[repr(C)]
struct StandIn {
    /// As the host's: entries that there is room for, those that are used, where they are. Written
    /// once, before a convertor points here.
    header: [AtomicU64; 3],
    /// The type, which is never given back. Null: there is none yet.
    described: AtomicRef<Described>,
}

impl StandIn {
    const fn new() -> StandIn {
        StandIn { header: [const { AtomicU64::new(0) }; 3], described: AtomicRef::none() }
    }

    #[inline]
    fn described(&self) -> Option<&'static Described> {
        self.described.load()
    }

    /// Lets this stand for a type, for good.
    fn publish(&'static self, mut described: Box<Described>) {
        // The host reads this and the entries by the numbers that convertors and the header hold.
        described.stand_in = std::ptr::from_ref(self).expose_provenance() as u64;
        let described: &'static Described = Box::leak(described);
        let n = described.entries.len() as u64;
        let entries = described.entries.as_ptr().expose_provenance() as u64;
        for (word, value) in self.header.iter().zip([n, n - 1, entries]) {
            word.store(value, Ordering::Relaxed);
        }
        self.described.store(Some(described));
    }
}

/// Places; so many of them are used.
const PLACES: usize = 1024;
const USED: usize = 512;
/// Places that are looked at.
const NEAR: usize = 32;

static KNOWN: [StandIn; PLACES] = [const { StandIn::new() }; PLACES];
/// How many there are; who puts one there holds it.
static MADE: Mutex<usize> = Mutex::new(0);

fn places(view: &View<'_>) -> impl Iterator<Item = &'static StandIn> {
    let first = (view.hash() >> 32) as usize;
    (first..first + NEAR).filter_map(|at| KNOWN.get(at % PLACES))
}

/// Looks a type up, without a lock.
pub(crate) fn find(wanted: &View<'_>) -> Option<&'static Described> {
    places(wanted).map_while(StandIn::described).find(|known| known.view().is(wanted))
}

pub(crate) fn all() -> impl Iterator<Item = &'static Described> {
    KNOWN.iter().filter_map(StandIn::described)
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
    let free = places(view).find(|place| place.described().is_none());
    // Another thread's may be there by now.
    if let Some(place) = free.filter(|_| find(view).is_none()) {
        place.publish(described);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_of_a_stand_in_is_a_description_of_ours() {
        let end = Entry { kind: crate::cuts::END, count: 1, extent: 0, ..Entry::default() };
        let view = View { bounds: [0; 5], entries: &[end] };
        make(&view, &[0; KINDS], Order::Blocks);
        let known = find(&view).unwrap();
        let at = known.stand_in();
        assert!(std::ptr::eq(Described::by_stand_in(at).unwrap(), known));
        let (start, each) = (KNOWN.as_ptr().addr() as u64, size_of::<StandIn>() as u64);
        for other in [0, 8, at + 1, at + 8, at - 8, start - each, start + each * PLACES as u64, u64::MAX] {
            assert!(Described::by_stand_in(other).is_none(), "{other:x}");
        }
        // What a convertor reads there is the description.
        let [room, used, entries] = std::array::from_fn(|i| {
            let place = &KNOWN[((at - start) / each) as usize];
            place.header[i].load(Ordering::Relaxed)
        });
        assert_eq!((room, used, entries), (1, 0, known.entries.as_ptr().addr() as u64));
    }
}
