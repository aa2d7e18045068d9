//! Types that the convertor hook knows only by Open MPI's descriptions of them.
//!
//! A [`Described`] is never freed, because convertors point to it; at most [`USED`] of them are
//! made. Each has a copy of the header of Open MPI's description, its [`HeaderCopy`]. In a
//! convertor that ddtc's mover serves, the address of the `HeaderCopy` replaces that of Open MPI's
//! description. So the mover finds the `Described` without a search, and a clone of the convertor
//! points to the `HeaderCopy` too.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use ddtc::internal::committed::Committed;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc::internal::object::runtime;
use ddtc::internal::process::Mutex;
use ddtc_hosts::policy::Class;

use super::description::{Order, View, datatype};
use super::nearness::is_near;
use crate::atomic_ref::AtomicRef;
use crate::counted::{self, Uses};
use crate::cuts::{Cuts, Entry, KINDS};
use crate::overhead_budget;
use crate::served::Served;
use crate::times::SHORT_BYTES;

/// Minimum number of packed bytes for which the hook examines or prepares a type. If a request has
/// at least this many bytes and its type is not in the table, the type is looked up by Open MPI's
/// description of it. Once the requests and staged messages of a type have together moved this many
/// bytes in one direction, the type is marked to be made ready. Making a type ready takes some ten
/// microseconds, and longer for a type with a list-like combiner.
pub(crate) const ENOUGH: u64 = 16 << 10;

/// Compiled code that packs or unpacks requests of a type in Open MPI's convertor hook, and the
/// places at which the pieces that this code packs may end.
#[derive(Clone, Copy)]
pub(crate) struct Way<'a> {
    pub(crate) direction: Direction,
    pub(crate) committed: &'a Committed,
    pub(crate) cuts: &'a Cuts,
}

impl Way<'_> {
    /// Returns the offset, in the packed bytes of a request, at which a piece of the request ends.
    /// The piece begins at offset `at`, its buffer has `length` bytes, and the whole request has
    /// `size` bytes. A piece that is packed ends at the end of an element, unless it is the last
    /// piece; it is empty if no element ends within the buffer.
    #[inline]
    pub(crate) fn end(&self, at: u64, length: u64, size: u64) -> u64 {
        let end = at.saturating_add(length).min(size);
        if self.direction == Direction::Pack && end < size { self.cuts.before(end).max(at) } else { end }
    }
}

/// A type that is known only by Open MPI's description of it. It is never freed, because convertors
/// point to it.
pub(crate) struct Described {
    /// Address of the type's [`HeaderCopy`]; 0 before [`HeaderCopy::publish`] has made one.
    header_copy: u64,
    entries: Box<[Entry]>,
    bounds: [i64; 5],
    /// Datatype of bytes with the layout of the type, committed in ddtc's engine. `None`: Open MPI
    /// packs and unpacks all requests of the type.
    committed: Option<Committed>,
    class: Class,
    pub(crate) served: Served,
    pub(crate) uses: Uses,
    /// Number of bytes in each direction that Open MPI moved, and that were found equal to the
    /// bytes that compiled code would have moved.
    equal_bytes: [AtomicU64; 2],
    /// True after a comparison has found that Open MPI and compiled code move different bytes of
    /// the type.
    spoilt: AtomicBool,
}

impl Described {
    /// Makes a `Described` from a view. `made`: a type of bytes of the same layout, and the places
    /// where elements of the description end; `None` if the description is not understood. If
    /// `made` is `None`, the layout is dense or the type cannot be compiled, Open MPI moves all
    /// requests of the type.
    fn new(view: &View<'_>, made: Option<(Datatype, Cuts)>) -> Described {
        let mut described = Described {
            header_copy: 0,
            entries: view.entries.into(),
            bounds: view.bounds,
            committed: None,
            class: Class::Dense,
            served: Served::new(),
            uses: Uses::new(),
            equal_bytes: [const { AtomicU64::new(0) }; 2],
            spoilt: AtomicBool::new(false),
        };
        if let Some((t, cuts)) = made
            && let Ok(committed) = runtime::engine().commit(&t)
            && described.served.keep(|| Some(cuts)).is_some()
        {
            described.class = Class::from_nest(committed.nest());
            if described.class == Class::StridedShort && is_near(committed.nest()) {
                described.served.keep_short();
            }
            counted::adopted(&committed);
            described.committed = Some(committed);
        }
        // The class is `Dense` in three cases: the layout is dense, the description was not
        // understood, or the type was not compiled.
        if described.class == Class::Dense {
            described.served.refuse();
        }
        described
    }

    fn view(&self) -> View<'_> {
        View { bounds: self.bounds, entries: &self.entries }
    }

    /// Returns the address of the type's [`HeaderCopy`]. In a convertor that ddtc's mover serves,
    /// it replaces the address of Open MPI's description.
    pub(crate) fn header_copy(&self) -> u64 {
        self.header_copy
    }

    /// Returns the type whose [`HeaderCopy`] is at the address `description`, a word that was read
    /// from a convertor. The word may have any value; `None` if it is not the address of a
    /// `HeaderCopy` in use.
    #[inline]
    pub(crate) fn by_header(description: u64) -> Option<&'static Described> {
        let distance = (description as usize).wrapping_sub(KNOWN.as_ptr().addr());
        if !distance.is_multiple_of(size_of::<HeaderCopy>()) {
            return None;
        }
        KNOWN.get(distance / size_of::<HeaderCopy>())?.described()
    }

    /// Returns the compiled code for requests of the type in this direction; `None` if Open MPI's
    /// mover must serve them.
    #[inline]
    pub(crate) fn way(&self, direction: Direction) -> Option<Way<'_>> {
        if self.spoilt.load(Ordering::Relaxed) {
            return None;
        }
        let (committed, cuts) = (self.committed.as_ref()?, self.served.by(direction)?);
        Some(Way { direction, committed, cuts })
    }

    /// Returns a lower bound of the nanoseconds that compiled code saves in moving this number of
    /// bytes. For structures and indexed types with short runs, that is one nanosecond for every
    /// [`SHORT_BYTES`] bytes. For all other types it is 0.
    pub(crate) fn spares(&self, bytes: u64) -> u64 {
        if matches!(self.class, Class::BlocksShort | Class::TableShort) { bytes / SHORT_BYTES } else { 0 }
    }

    /// Returns true if enough of the bytes that Open MPI moved in this direction were found equal
    /// to those of compiled code: as many as one instance has, and at least [`ENOUGH`].
    pub(crate) fn is_proven(&self, direction: Direction) -> bool {
        self.equal_bytes[direction as usize].load(Ordering::Relaxed) >= ENOUGH.max(self.bounds[0] as u64)
    }

    /// Counts bytes that Open MPI moved in this direction and that were found equal to those of
    /// compiled code.
    pub(crate) fn add_equal_bytes(&self, direction: Direction, bytes: u64) {
        self.equal_bytes[direction as usize].fetch_add(bytes, Ordering::Relaxed);
    }

    /// Records that Open MPI's bytes differ from those of compiled code. It is not known which of
    /// the two are wrong, so Open MPI moves all requests of the type from now on.
    #[cold]
    pub(crate) fn differs(&self) {
        self.served.refuse();
        if !self.spoilt.swap(true, Ordering::Relaxed) {
            DIFFERENT.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lets compiled code serve requests of the type, in each direction for which the type was
    /// queued because Open MPI's mover had moved enough of its bytes. The layout must be compiled
    /// already, or is compiled now, if the overhead budget allows that and, in mode `lazy`, enough
    /// bytes were moved.
    pub(crate) fn serve(&self) {
        let Some(committed) = &self.committed else { return };
        for (direction, moved) in Direction::BOTH.into_iter().zip(self.served.take()) {
            let Some(moved) = moved else { continue };
            if committed.settled(direction, 0)
                || overhead_budget::allows(0) && committed.settled(direction, moved)
            {
                committed.make_ranges(direction);
                // Before compiled code serves the type, the bytes of its first requests are
                // compared with those that Open MPI moves. For received bytes, compiled code packs
                // them again. So the kernels for packing are needed.
                committed.make_ranges(Direction::Pack);
                self.served.serve(direction);
            }
        }
    }
}

/// Number of types that are known only by Open MPI's descriptions and for which a comparison has
/// found that Open MPI and compiled code move different bytes.
static DIFFERENT: AtomicU32 = AtomicU32::new(0);

/// Returns the number of types that are known only by Open MPI's descriptions and for which a
/// comparison has found that Open MPI and compiled code move different bytes.
pub(crate) fn different() -> u32 {
    DIFFERENT.load(Ordering::Relaxed)
}

/// Copy of the header of Open MPI's description of a type, with a reference to that type.
/// Convertors that ddtc's mover serves point to the copy instead of to Open MPI's description.
///
/// All `HeaderCopy` values are elements of one array, [`KNOWN`]. So any word of a convertor can be
/// compared with their addresses ([`Described::by_header`]). That is needed because a convertor
/// that Open MPI reuses may hold any number in the place of the description's address.
#[repr(C)]
struct HeaderCopy {
    /// Header of a description, as Open MPI lays it out: number of entries allocated, number of
    /// entries used, address of the entries. It is written once, before a convertor points to this
    /// `HeaderCopy`.
    header: [AtomicU64; 3],
    /// The type, which is never freed. Null if this element of [`KNOWN`] is not in use.
    described: AtomicRef<Described>,
}

impl HeaderCopy {
    const fn new() -> HeaderCopy {
        HeaderCopy { header: [const { AtomicU64::new(0) }; 3], described: AtomicRef::none() }
    }

    #[inline]
    fn described(&self) -> Option<&'static Described> {
        self.described.load()
    }

    /// Makes this the `HeaderCopy` of a type, for as long as the process lives.
    fn publish(&'static self, mut described: Box<Described>) {
        // Open MPI reads the `HeaderCopy` and the entries by addresses that are stored as numbers,
        // in convertors and in the header. So the provenance of both is exposed.
        described.header_copy = std::ptr::from_ref(self).expose_provenance() as u64;
        let described: &'static Described = Box::leak(described);
        let n = described.entries.len() as u64;
        let entries = described.entries.as_ptr().expose_provenance() as u64;
        for (word, value) in self.header.iter().zip([n, n - 1, entries]) {
            word.store(value, Ordering::Relaxed);
        }
        self.described.store(Some(described));
    }
}

/// Number of elements of the hash table [`KNOWN`].
const PLACES: usize = 1024;
/// Maximum number of elements of [`KNOWN`] that are used.
const USED: usize = 512;
/// Number of successive elements of the hash table [`KNOWN`] that are searched for a type,
/// beginning at the element that the hash of the type's description gives.
const NEAR: usize = 32;

static KNOWN: [HeaderCopy; PLACES] = [const { HeaderCopy::new() }; PLACES];
/// Number of elements of [`KNOWN`] that are in use. A thread holds this lock while it fills an
/// element.
static MADE: Mutex<usize> = Mutex::new(0);

fn places(view: &View<'_>) -> impl Iterator<Item = &'static HeaderCopy> {
    let first = (view.hash() >> 32) as usize;
    (first..first + NEAR).filter_map(|at| KNOWN.get(at % PLACES))
}

/// Looks up a type by Open MPI's description of it, without a lock.
pub(crate) fn find(wanted: &View<'_>) -> Option<&'static Described> {
    places(wanted).map_while(HeaderCopy::described).find(|known| known.view().is(wanted))
}

pub(crate) fn all() -> impl Iterator<Item = &'static Described> {
    KNOWN.iter().filter_map(HeaderCopy::described)
}

/// Makes the [`Described`] of a description of Open MPI that is not known yet, unless [`USED`] of
/// them exist or all elements of [`KNOWN`] that may hold it are in use. If no type of bytes can be
/// made from the description, the `Described` is made nevertheless and leaves all requests to Open
/// MPI, so that the attempt is not repeated.
pub(crate) fn make(view: &View<'_>, sizes: &[u64; KINDS], order: Order) {
    if find(view).is_some() || *MADE.lock() >= USED {
        return;
    }
    let made = view.entries.split_last().and_then(|(_, entries)| {
        let cuts = Cuts::from_entries(entries, sizes, view.size())?;
        Some((datatype(view, sizes, order)?, cuts))
    });
    // Compiling takes long, so it is done without the lock.
    let described = Box::new(Described::new(view, made));
    let mut used = MADE.lock();
    let free = places(view).find(|place| place.described().is_none());
    // Another thread may have made the type in the meantime.
    if let Some(place) = free.filter(|_| find(view).is_none()) {
        place.publish(described);
        *used += 1;
    }
}

/// Adds the uses that were counted for each type to the type's row of the report, and counts from 0
/// again.
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
    fn only_the_address_of_a_header_is_a_description_of_ours() {
        let end = Entry { kind: crate::cuts::END, count: 1, extent: 0, ..Entry::default() };
        let view = View { bounds: [0; 5], entries: &[end] };
        make(&view, &[0; KINDS], Order::Blocks);
        let known = find(&view).unwrap();
        let at = known.header_copy();
        assert!(std::ptr::eq(Described::by_header(at).unwrap(), known));
        let (start, each) = (KNOWN.as_ptr().addr() as u64, size_of::<HeaderCopy>() as u64);
        for other in [0, 8, at + 1, at + 8, at - 8, start - each, start + each * PLACES as u64, u64::MAX] {
            assert!(Described::by_header(other).is_none(), "{other:x}");
        }
        // Open MPI reads the header of the description at this address if a convertor points to it.
        let [room, used, entries] = std::array::from_fn(|i| {
            let place = &KNOWN[((at - start) / each) as usize];
            place.header[i].load(Ordering::Relaxed)
        });
        assert_eq!((room, used, entries), (1, 0, known.entries.as_ptr().addr() as u64));
    }
}
