//! Access to the MPI library's datatypes for `ddtc::internal::decode`: envelopes, contents, bounds.
//!
//! At every node of a type's tree of constructors, the large-count functions are used if the MPI
//! library has them. Each derived type that `contents` returns is a new reference, which must be
//! freed. Predefined types (named, f90 and value_index types) must never be freed.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU8, Ordering};

use ddtc::Result;
use ddtc::internal::datatype::contents::{CombinerKind, Constants, Contents, Envelope};
use ddtc::internal::datatype::{Datatype, Named};
use ddtc::internal::decode::{Introspect, decode};
use ddtc::internal::methods::*;
use ddtc_hosts::abi::Abi;
use ddtc_hosts::abi::queries::{done, refused};

use crate::host::{HandleWord, Host};
use crate::known::Description;
use crate::worth::CONSTRUCTOR;

/// Access to the MPI library's datatypes while one datatype is decoded.
///
/// Every handle that is passed to a method must be the handle of a type that the MPI library has
/// accepted and that the program or this library holds, or a handle that `contents` has returned
/// and that was not released yet.
pub(crate) struct Types {
    host: &'static Host,
    abi: &'static Abi,
    /// Masked handle of the type that is decoded; 0 before [`Types::decode`] is called.
    root: HandleWord,
    /// Number of arguments of all constructors whose contents were to be queried so far. Each
    /// constructor counts as [`CONSTRUCTOR`] additional arguments.
    asked: u64,
    /// Maximum of [`Types::asked`]. If there are more arguments, decoding fails.
    allowed: u64,
    /// Contents of the decoded type itself, if they were queried before [`Types::decode`] was
    /// called.
    root_contents: Option<Contents<HandleWord>>,
}

/// Way in which the MPI library returns the derived old types in the contents of a type:
/// [`UNKNOWN`], [`REFERENCES`] (the old types themselves) or [`DUPLICATES`]. The way is determined
/// once in a process, when a decoded type first has a derived old type. Two threads may determine
/// it at once, with equal results.
static CONTENTS: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const REFERENCES: u8 = 1;
const DUPLICATES: u8 = 2;

impl Types {
    /// Prepares decoding a type. Decoding fails if the constructors at all nodes together have more
    /// than `arguments` arguments, counted as in [`crate::worth`]. Returns `None` if the ABI of the
    /// MPI library is unknown.
    pub(crate) fn new(host: &'static Host, arguments: u64) -> Option<Types> {
        Some(Types { host, abi: host.abi?, root: 0, asked: 0, allowed: arguments, root_contents: None })
    }

    /// Returns true if `contents` returns references to the old types themselves, so that equal
    /// handles mean a shared subtree. Open MPI returns duplicates: their handles do not show what
    /// is shared, and after they are released other types may get the same handles.
    fn has_references(&mut self) -> bool {
        if CONTENTS.load(Ordering::Relaxed) == UNKNOWN {
            let before = (self.asked, std::mem::replace(&mut self.allowed, u64::MAX));
            let found = if self.hands_out_references() == Some(true) { REFERENCES } else { DUPLICATES };
            CONTENTS.store(found, Ordering::Relaxed);
            (self.asked, self.allowed) = before;
        }
        CONTENTS.load(Ordering::Relaxed) == REFERENCES
    }

    /// If decoding was refused because the constructors have more arguments than the maximum,
    /// returns the number of arguments that were counted until then. The type has at least as many.
    pub(crate) fn exceeded(&self) -> Option<u64> {
        (self.asked > self.allowed).then_some(self.asked)
    }

    /// Makes a vector type whose old type is another vector type, and compares the old type's
    /// handle in its contents with the inner type's handle. Returns true if the handles are equal;
    /// `None` if a call of the MPI library fails.
    fn hands_out_references(&mut self) -> Option<bool> {
        let f = &self.host.f;
        let (type_vector, type_free) = (f.type_vector?, f.type_free?);
        let (mut inner, mut outer): (HandleWord, HandleWord) = (0, 0);
        // SAFETY: the old type is a named type, the other arguments are in range, and the new
        // handle is written to 8 bytes, which is room for handles of 4 bytes too.
        if unsafe { type_vector(3, 1, 2, self.host.handle(Named::Int)?, (&raw mut inner).cast()) } != 0 {
            return None;
        }
        // SAFETY: the old type was made by the call above, the other arguments are in range, and
        // the new handle is written to 8 bytes, which is room for handles of 4 bytes too.
        let made = unsafe { type_vector(3, 1, 2, inner, (&raw mut outer).cast()) } == 0;
        let same = made.then(|| {
            let envelope = self.envelope(&outer).ok()?;
            let children = self.contents(&outer, &envelope).ok()?.datatypes;
            let same = children.iter().all(|child| child & self.host.mask == inner & self.host.mask);
            children.into_iter().for_each(|child| self.release(child));
            Some(same)
        });
        // SAFETY: the types were made above and are freed once; `outer` only if it was made.
        unsafe {
            if made {
                let _ = type_free((&raw mut outer).cast());
            }
            let _ = type_free((&raw mut inner).cast());
        }
        same.flatten()
    }

    /// Returns the tree of constructors of a type, with the MPI library's bounds at every node.
    /// `contents`: the contents of the type itself, if they were queried before.
    pub(crate) fn decode(
        &mut self,
        handle: HandleWord,
        contents: Option<Contents<HandleWord>>,
    ) -> Result<Datatype> {
        (self.root, self.root_contents) = (handle & self.host.mask, contents);
        let decoded = decode(self, &handle);
        // If decoding failed before it took the given contents, nobody has released the old types
        // in them.
        for handle in self.root_contents.take().into_iter().flat_map(|contents| contents.datatypes) {
            self.release(handle);
        }
        decoded
    }

    /// Writes the contents of a derived type into `description`. After success the caller must
    /// release the old types that are derived.
    ///
    /// # Errors
    /// The errors of the MPI library, and an error if there are more arguments than the maximum.
    pub(crate) fn describe(&mut self, handle: HandleWord, description: &mut Description) -> Result<()> {
        self.ask(description.envelope())?;
        let (integers, addresses, large_counts, datatypes) = description.arrays();
        // SAFETY: the functions are the MPI library's, the caller holds the type (see [`Types`]),
        // and each array is as long as the envelope of the type says.
        unsafe {
            let queries = self.host.queries(self.abi);
            queries.contents_into(handle, integers, addresses, large_counts, datatypes)
        }
    }

    /// Adds the arguments of a constructor whose contents are about to be queried to the number of
    /// arguments of the type.
    ///
    /// # Errors
    /// An error if the type now has more arguments than the maximum.
    fn ask(&mut self, envelope: &Envelope) -> Result<()> {
        let count = CONSTRUCTOR + envelope.arguments();
        self.asked = self.asked.saturating_add(count);
        if self.asked > self.allowed {
            return Err(refused("MPI_Type_get_contents", count, "more arguments than its uses justify"));
        }
        Ok(())
    }

    /// Compares the size and the true bounds of a decoded type with those that the MPI library
    /// returns for its handle. Returns a text that names the first difference, or `None` if there
    /// is none.
    ///
    /// # Errors
    /// Errors of the MPI library.
    pub(crate) fn difference(&self, handle: HandleWord, t: &Datatype) -> Result<Option<String>> {
        if let Some(size) = self.size(handle)?.filter(|&size| size != t.size()) {
            return Ok(Some(format!("MPI_Type_size is {size}, not {}", t.size())));
        }
        // MPI libraries interpret the true bounds of empty types differently, so these are not
        // compared.
        let Some(type_true_extent) = self.host.f.type_true_extent.filter(|_| t.size() > 0) else {
            return Ok(None);
        };
        let (mut lb, mut extent) = (0isize, 0isize);
        // SAFETY: the caller holds the type (see [`Types`]), and both numbers may be written.
        let code = unsafe { type_true_extent(handle, &raw mut lb, &raw mut extent) };
        done("MPI_Type_get_true_extent", code)?;
        let (theirs, ours) = ((lb as i64, extent as i64), (t.true_lb(), t.true_extent()));
        Ok((theirs != ours).then(|| {
            format!("MPI_Type_get_true_extent is {} {}, not {} {}", theirs.0, theirs.1, ours.0, ours.1)
        }))
    }

    /// Returns the size of a type in bytes, as the MPI library reports it. Returns `None` if the
    /// MPI library has no function for that, or if the size does not fit the type of the function's
    /// result.
    fn size(&self, handle: HandleWord) -> Result<Option<i64>> {
        let f = &self.host.f;
        let mut size = 0i64;
        let code = match (f.type_size_c.or(f.type_size_x), f.type_size) {
            // SAFETY: the caller holds the type (see [`Types`]), and the number may be written.
            (Some(type_size), _) => unsafe { type_size(handle, &raw mut size) },
            (None, Some(type_size)) => {
                let mut small: c_int = 0;
                // SAFETY: the caller holds the type (see [`Types`]), and the number may be written.
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
        // SAFETY: the functions are the MPI library's, and the caller holds the type (see
        // [`Types`]).
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
        // SAFETY: the functions are the MPI library's, the caller holds the type (see [`Types`]),
        // and `envelope` is what the library returned for that type.
        unsafe { self.host.queries(self.abi).contents(*handle, envelope) }
    }

    fn named(&mut self, handle: &HandleWord) -> Result<Named> {
        let handle = handle & self.host.mask;
        self.host.named(handle).ok_or_else(|| {
            refused("MPI_Type_get_envelope", format!("{handle:#x}"), "a named type that ddtc does not know")
        })
    }

    fn bounds(&mut self, handle: &HandleWord) -> Result<Option<(i64, i64)>> {
        let Some(type_extent) = self.host.f.type_extent else { return Ok(None) };
        let (mut lb, mut extent) = (0isize, 0isize);
        // SAFETY: the caller holds the type (see [`Types`]), and both numbers may be written.
        done("MPI_Type_get_extent", unsafe { type_extent(*handle, &raw mut lb, &raw mut extent) })?;
        Ok(Some((lb as i64, extent as i64)))
    }

    fn identity(&mut self, handle: &HandleWord) -> Option<u64> {
        let handle = handle & self.host.mask;
        // The root contains all other nodes, so it cannot be a shared subtree, and a named type
        // needs no sharing. Both are excluded before `has_references` is called, because that call
        // makes two more types, and Intel MPI needs 0.7 ms to make room for its fourth type.
        let shared = handle != self.root && self.host.named(handle).is_none();
        // If the contents have references to the old types, the root keeps all other nodes alive
        // while it is decoded. So the MPI library gives none of their handles to another type.
        (shared && self.has_references()).then_some(handle)
    }

    fn release(&mut self, handle: HandleWord) {
        if self.envelope(&handle).is_ok_and(|envelope| !envelope.combiner.is_predefined())
            && let Some(type_free) = self.host.f.type_free
        {
            let mut handle = handle;
            // SAFETY: the handle is a reference that `contents` returned, and it is freed once.
            let _ = unsafe { type_free((&raw mut handle).cast()) };
        }
    }

    fn constants(&self) -> Constants {
        self.abi.constants
    }
}
