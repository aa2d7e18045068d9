//! The host's datatypes as a source for `ddtc::decode`: envelopes, contents, bounds.
//!
//! The large-count forms are used at every node where the host has them. `contents` hands out new references of derived types,
//! which are freed; predefined ones (named, f90, value_index) never are.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU8, Ordering};

use ddtc::Result;
use ddtc::datatype::contents::{CombinerKind, Constants, Contents, Envelope};
use ddtc::datatype::{Datatype, Named};
use ddtc::decode::{Introspect, decode};
use ddtc_hosts::abi::Abi;
use ddtc_hosts::abi::queries::{done, refused};

use crate::decoding::CONSTRUCTOR;
use crate::host::{HandleWord, Host};
use crate::known::Description;

/// The host during one decoding.
///
/// Every handle that a method is given must be that of a type which the host has accepted and which
/// the program or this library holds, or one that `contents` has handed out and that was not
/// released.
pub(crate) struct Types {
    host: &'static Host,
    abi: &'static Abi,
    /// The type that is decoded.
    root: HandleWord,
    /// Arguments of constructors that were asked for, and that may be.
    asked: u64,
    allowed: u64,
    /// Contents of the root that were asked for before it is decoded.
    root_contents: Option<Contents<HandleWord>>,
    has_decoded: bool,
}

/// Kind of contents that the host gives, found once for the process when a type has one that is derived: threads may both look.
static CONTENTS: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const REFERENCES: u8 = 1;
const DUPLICATES: u8 = 2;

impl Types {
    /// For types of at most so many arguments of their constructors, all nodes together, as [`crate::candidates`] counts them.
    pub(crate) fn new(host: &'static Host, arguments: u64) -> Option<Types> {
        Some(Types {
            host,
            abi: host.abi?,
            root: 0,
            asked: 0,
            allowed: arguments,
            root_contents: None,
            has_decoded: false,
        })
    }

    /// Whether `contents` hands out the types themselves. Open MPI hands out duplicates: their handles say nothing about what is
    /// shared, and are given to other types once they are released.
    fn has_references(&mut self) -> bool {
        if CONTENTS.load(Ordering::Relaxed) == UNKNOWN {
            let before = (self.asked, std::mem::replace(&mut self.allowed, u64::MAX));
            let found = if self.hands_out_references() == Some(true) { REFERENCES } else { DUPLICATES };
            CONTENTS.store(found, Ordering::Relaxed);
            (self.asked, self.allowed) = before;
        }
        CONTENTS.load(Ordering::Relaxed) == REFERENCES
    }

    /// Returns the arguments that the type has at least, if it was refused because these are more than may be asked for.
    pub(crate) fn exceeded(&self) -> Option<u64> {
        (self.asked > self.allowed).then_some(self.asked)
    }

    /// Looks at the contents of a vector of a vector.
    fn hands_out_references(&mut self) -> Option<bool> {
        let f = &self.host.f;
        let (type_vector, type_free) = (f.type_vector?, f.type_free?);
        let (mut inner, mut outer): (HandleWord, HandleWord) = (0, 0);
        // SAFETY: a named type, arguments in range, a handle to write to; 8 bytes are room for a handle of 4.
        if unsafe { type_vector(3, 1, 2, self.host.handle(Named::Int)?, (&raw mut inner).cast()) } != 0 {
            return None;
        }
        // SAFETY: as above, with the type just made.
        let made = unsafe { type_vector(3, 1, 2, inner, (&raw mut outer).cast()) } == 0;
        let same = made.then(|| {
            let envelope = self.envelope(&outer).ok()?;
            let children = self.contents(&outer, &envelope).ok()?.datatypes;
            let same = children.iter().all(|child| child & self.host.mask == inner & self.host.mask);
            children.into_iter().for_each(|child| self.release(child));
            Some(same)
        });
        // SAFETY: types made above, freed once.
        unsafe {
            if made {
                let _ = type_free((&raw mut outer).cast());
            }
            let _ = type_free((&raw mut inner).cast());
        }
        same.flatten()
    }

    /// Returns the tree of a type, with the host's bounds at every node. `contents`: the type's own,
    /// if they were asked for before.
    pub(crate) fn decode(
        &mut self,
        handle: HandleWord,
        contents: Option<Contents<HandleWord>>,
    ) -> Result<Datatype> {
        (self.root, self.root_contents, self.has_decoded) = (handle & self.host.mask, contents, true);
        let decoded = decode(self, &handle);
        // If decoding failed before it took the contents, nobody has released their old types.
        for handle in self.root_contents.take().into_iter().flat_map(|contents| contents.datatypes) {
            self.release(handle);
        }
        decoded
    }

    /// Says whether [`Types::decode`] was called.
    pub(crate) fn has_decoded(&self) -> bool {
        self.has_decoded
    }

    /// Fills `description` with the contents of a derived type. On success the caller must release the old
    /// types that are derived.
    ///
    /// # Errors
    /// What the library says, and more arguments than may be asked for.
    pub(crate) fn describe(&mut self, handle: HandleWord, description: &mut Description) -> Result<()> {
        self.ask(description.envelope())?;
        let (integers, addresses, large_counts, datatypes) = description.arrays();
        // SAFETY: the host's functions, a type that is held (see [`Types`]), and arrays of the
        // lengths of its envelope.
        unsafe {
            let queries = self.host.queries(self.abi);
            queries.contents_into(handle, integers, addresses, large_counts, datatypes)
        }
    }

    /// Counts the arguments of a constructor that is asked for its contents.
    ///
    /// # Errors
    /// More arguments than may be asked for.
    fn ask(&mut self, envelope: &Envelope) -> Result<()> {
        let count = CONSTRUCTOR + envelope.arguments();
        self.asked = self.asked.saturating_add(count);
        if self.asked > self.allowed {
            return Err(refused("MPI_Type_get_contents", count, "more arguments than its uses pay for"));
        }
        Ok(())
    }

    /// Compares size and true bounds of a decoded type with the library's. Returns what differs.
    ///
    /// # Errors
    /// What the library says.
    pub(crate) fn difference(&self, handle: HandleWord, t: &Datatype) -> Result<Option<String>> {
        if let Some(size) = self.size(handle)?.filter(|&size| size != t.size()) {
            return Ok(Some(format!("MPI_Type_size is {size}, not {}", t.size())));
        }
        // The true bounds of nothing are read in several ways.
        let Some(type_true_extent) = self.host.f.type_true_extent.filter(|_| t.size() > 0) else {
            return Ok(None);
        };
        let (mut lb, mut extent) = (0isize, 0isize);
        // SAFETY: a type that is held (see [`Types`]), and numbers to write to.
        let code = unsafe { type_true_extent(handle, &raw mut lb, &raw mut extent) };
        done("MPI_Type_get_true_extent", code)?;
        let (theirs, ours) = ((lb as i64, extent as i64), (t.true_lb(), t.true_extent()));
        Ok((theirs != ours).then(|| {
            format!("MPI_Type_get_true_extent is {} {}, not {} {}", theirs.0, theirs.1, ours.0, ours.1)
        }))
    }

    /// Packed size in bytes as the host says; `None` if it cannot express it.
    fn size(&self, handle: HandleWord) -> Result<Option<i64>> {
        let f = &self.host.f;
        let mut size = 0i64;
        let code = match (f.type_size_c.or(f.type_size_x), f.type_size) {
            // SAFETY: a type that is held (see [`Types`]), and a number to write to.
            (Some(type_size), _) => unsafe { type_size(handle, &raw mut size) },
            (None, Some(type_size)) => {
                let mut small: c_int = 0;
                // SAFETY: as above.
                let code = unsafe { type_size(handle, &raw mut small) };
                size = i64::from(small);
                code
            }
            (None, None) => return Ok(None),
        };
        done("MPI_Type_size", code)?;
        Ok((size != i64::from(self.abi.constants.undefined)).then_some(size))
    }
}

impl Introspect for Types {
    type Handle = HandleWord;

    fn envelope(&mut self, handle: &HandleWord) -> Result<Envelope> {
        // SAFETY: the host's functions, and a type that is held (see [`Types`]).
        unsafe { self.host.queries(self.abi).envelope(*handle) }
    }

    fn contents(&mut self, handle: &HandleWord, envelope: &Envelope) -> Result<Contents<HandleWord>> {
        if matches!(envelope.combiner, CombinerKind::Named) {
            return Err(refused("MPI_Type_get_contents", "a named type", "has no contents"));
        }
        if handle & self.host.mask == self.root
            && let Some(contents) = self.root_contents.take()
        {
            return Ok(contents);
        }
        self.ask(envelope)?;
        // SAFETY: as above, with the envelope of the type.
        unsafe { self.host.queries(self.abi).contents(*handle, envelope) }
    }

    fn named(&mut self, handle: &HandleWord) -> Result<Named> {
        let handle = handle & self.host.mask;
        self.host.named(handle).ok_or_else(|| {
            refused("MPI_Type_get_envelope", format!("{handle:#x}"), "a named type unknown here")
        })
    }

    fn bounds(&mut self, handle: &HandleWord) -> Result<Option<(i64, i64)>> {
        let Some(type_extent) = self.host.f.type_extent else { return Ok(None) };
        let (mut lb, mut extent) = (0isize, 0isize);
        // SAFETY: a type that is held (see [`Types`]), and numbers to write to.
        done("MPI_Type_get_extent", unsafe { type_extent(*handle, &raw mut lb, &raw mut extent) })?;
        Ok(Some((lb as i64, extent as i64)))
    }

    fn identity(&mut self, handle: &HandleWord) -> Option<u64> {
        let handle = handle & self.host.mask;
        // Neither what holds all others nor a named type is shared. To ask the host takes two types more, and Intel MPI makes room for its fourth in 0.7 ms.
        let shared = handle != self.root && self.host.named(handle).is_none();
        // The type at the root holds all others while it is decoded, where they are not duplicates.
        (shared && self.has_references()).then_some(handle)
    }

    fn release(&mut self, handle: HandleWord) {
        if self.envelope(&handle).is_ok_and(|envelope| !envelope.combiner.is_predefined())
            && let Some(type_free) = self.host.f.type_free
        {
            let mut handle = handle;
            // SAFETY: a reference that `contents` made, given back once.
            let _ = unsafe { type_free((&raw mut handle).cast()) };
        }
    }

    fn constants(&self) -> Constants {
        self.abi.constants
    }
}
