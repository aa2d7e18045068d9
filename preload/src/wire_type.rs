//! Substitute datatypes for packed bytes that are sent to a rank that may not convert them.
//!
//! Packed bytes are sent as `MPI_PACKED`, which matches any type, if the MPI library allows it.
//! MPICH and its relatives do not always allow it. They cut a long message into segments if they
//! cannot use single copy (between two groups, or between processes that may not read each other's
//! memory). MPICH refuses a segment that ends inside an element of the receiver's type: "a datatype
//! whose signature does not match" (MPICH 5.0.2). Segments of a derived type end at ends of its
//! elements, but segments of bytes end at multiples of 16. So if elements of a type may lie across
//! a multiple of 16, a message of the type is sent as its dense equivalent: the same elements one
//! after the other, which the MPI library knows to be contiguous.
//!
//! Under Open MPI this module also finds the basic type from which a substitute datatype with a gap
//! is made ([`crate::gapped`]).

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

use ddtc::internal::datatype::signature::Signature;
use ddtc::internal::datatype::{Datatype, Named};
use ddtc::internal::methods::*;
use ddtc_hosts::profile::WireForm;

use crate::element_type::ElementType;
use crate::gapped::has_wide_elements;
use crate::guard::guard;
use crate::host::{HandleWord, Host};
use crate::own_types::{self, OwnType};

/// Maximum number of basic elements in a type for which a dense equivalent is made.
const MOST: usize = 4096;
/// Maximum number of instances of the program's type that a dense equivalent consists of. The size
/// of 16 instances is a multiple of every alignment of up to 16 bytes, so the MPI library adds no
/// padding at their end.
const INSTANCES: u16 = 16;

// Values of the word of a `WireType` that are not the word of an `OwnType`. The word of an
// `OwnType` is larger, because its upper bits are a number of instances that is not 0.
const UNKNOWN: u64 = 0;
const BYTES: u64 = 1;
const HOST: u64 = 2;

/// Form in which packed bytes of a type are sent, encoded in one word. The form is determined when
/// the type is first sent.
pub(crate) struct WireType(AtomicU64);

/// Form of the packed bytes of a type, decoded from the word of a [`WireType`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Bytes, because no segment of bytes ends inside an element of the type, or because the
    /// profile of the MPI library has another wire form than [`WireForm::Segments`].
    Bytes,
    /// A dense equivalent of one or several instances of the type.
    Own(OwnType),
    /// No form: messages of the type are bypassed.
    Host,
}

impl WireType {
    pub(crate) const fn new() -> WireType {
        WireType(AtomicU64::new(UNKNOWN))
    }

    pub(crate) fn reset(&self) {
        self.0.store(UNKNOWN, Ordering::Relaxed);
    }

    fn form(&self, host: &Host, t: &Datatype) -> Form {
        let WireForm::Segments { multiple, .. } = host.profile.wire_form else { return Form::Bytes };
        let known = self.0.load(Ordering::Acquire);
        let known = if known == UNKNOWN { self.find(host, t, multiple) } else { known };
        match known {
            BYTES => Form::Bytes,
            HOST => Form::Host,
            own => Form::Own(OwnType::from_word(own)),
        }
    }

    #[cold]
    fn find(&self, host: &Host, t: &Datatype, multiple: i64) -> u64 {
        let found = match Elements::of(t, multiple) {
            Elements::Aligned => BYTES,
            Elements::Many => HOST,
            Elements::Ragged(elements) => {
                guard(|| own_type(host, t, &elements)).flatten().map_or(HOST, OwnType::word)
            }
        };
        self.0.store(found, Ordering::Release);
        found
    }

    /// Returns the number of elements and the datatype for a message of `count` instances that the
    /// MPI library may cut into segments; `None` if the message is bypassed.
    pub(crate) fn message(&self, host: &Host, t: &Datatype, count: i64) -> Option<(i64, HandleWord)> {
        match self.form(host, t) {
            Form::Bytes => Some((count.checked_mul(t.size())?, host.packed)),
            Form::Own(own) if count % own.instances() == 0 => Some((count / own.instances(), own.handle())),
            Form::Own(_) | Form::Host => None,
        }
    }

    /// Returns the handle of the basic type from which a substitute datatype with a gap is made,
    /// and the size of the basic type in bytes; `None` if the message is bypassed. The MPI library
    /// cuts a message only between elements of the basic type, so that a receiver that does not
    /// convert can join the pieces. `joined`: bytes of the widest element that such a receiver can
    /// join from two pieces. The word of the [`WireType`] keeps the handle and the size, in the
    /// form of an [`OwnType`] whose number of instances is the size.
    pub(crate) fn pieces(
        &self,
        host: &Host,
        t: &Datatype,
        basic: &ElementType,
        joined: i64,
    ) -> Option<(HandleWord, i64)> {
        let known = match self.0.load(Ordering::Acquire) {
            UNKNOWN => {
                let wide = || basic.elements(host, t, t.size()).map(|(n, named)| (named, t.size() / n));
                let found = if has_wide_elements(t, joined) { wide() } else { Some((host.byte, 1)) };
                let found = found.map_or(HOST, |(named, bytes)| OwnType::new(named, bytes as u16).word());
                self.0.store(found, Ordering::Release);
                found
            }
            known => known,
        };
        let element = OwnType::from_word(known);
        (known != HOST).then(|| (element.handle(), element.instances()))
    }

    /// Returns the datatype that replaces one instance in a collective call; `None` if no dense
    /// equivalent of a single instance can be made, so that the buffer is bypassed.
    pub(crate) fn element(&self, host: &Host, t: &Datatype) -> Option<HandleWord> {
        match self.form(host, t) {
            Form::Bytes => own_types::of_bytes(host, t.size()),
            Form::Own(own) if own.instances() == 1 => Some(own.handle()),
            Form::Own(_) | Form::Host => None,
        }
    }
}

/// Result of the test whether a segment of bytes may end inside an element of a type.
enum Elements {
    /// A segment of bytes never ends inside an element of the type.
    Aligned,
    /// A segment may end inside an element of the type. The field has the elements of one instance
    /// in packed order, as runs of one basic type.
    Ragged(Vec<(Named, c_int)>),
    /// The type has more than [`MOST`] elements, and they are not all of one basic type that is
    /// never cut. Whether a segment may end inside one of the elements is not examined.
    Many,
}

impl Elements {
    /// Tests whether a segment of bytes may end inside an element of a type. `multiple`: the length
    /// of each segment is a multiple of this many bytes.
    fn of(t: &Datatype, multiple: i64) -> Elements {
        let size = |named: Named| named.pieces().iter().map(|&(_, bytes)| bytes).sum::<i64>();
        // Returns true if no element of `bytes` bytes at offset `at` of an instance lies across the
        // end of a segment, in any instance. That is so if the element's size divides `multiple`,
        // the offset and the size of an instance.
        let fits = |at: i64, bytes: i64| multiple % bytes == 0 && at % bytes == 0 && t.size() % bytes == 0;
        let mut map = t.type_map();
        let Some((first, _)) = map.next() else { return Elements::Aligned };
        let one = size(first);
        if fits(0, one) && Signature::from_named(first).repeat(t.size() / one).hash() == t.signature().hash()
        {
            return Elements::Aligned;
        }
        let (mut runs, mut at, mut aligned): (Vec<(Named, c_int)>, i64, bool) = (Vec::new(), 0, true);
        for (i, (named, _)) in t.type_map().enumerate() {
            if i >= MOST {
                return Elements::Many;
            }
            let bytes = size(named);
            aligned &= fits(at, bytes);
            at += bytes;
            match runs.last_mut() {
                Some((last, n)) if *last == named => *n += 1,
                _ => runs.push((named, 1)),
            }
        }
        if aligned { Elements::Aligned } else { Elements::Ragged(runs) }
    }
}

/// Returns a committed type that is the dense equivalent of one or several instances of `t`, with
/// the basic elements `elements` in each. The number of instances is the smallest of 1, 2, 4 and so
/// on up to [`INSTANCES`] with which the extent of the type is equal to its size. Only then does
/// the MPI library treat the type as contiguous. Returns `None` if there is no such number, or if a
/// call of the MPI library failed.
fn own_type(host: &Host, t: &Datatype, elements: &[(Named, c_int)]) -> Option<OwnType> {
    let key = t.signature().hash();
    if let Some(known) = own_types::known(key) {
        return Some(known);
    }
    let type_extent = host.f.type_extent?;
    let mut instances = 1u16;
    while instances <= INSTANCES {
        let made = dense(host, &elements.repeat(instances.into()))?;
        let (mut lb, mut extent) = (0isize, 0isize);
        // SAFETY: `made` is a type that was just made; `lb` and `extent` are numbers to write to.
        let code = unsafe { type_extent(made, &raw mut lb, &raw mut extent) };
        if code == 0 && extent as i64 == i64::from(instances) * t.size() {
            let committed = own_types::commit(host, made)?;
            return own_types::keep(host, key, OwnType::new(committed.handle(), instances));
        }
        own_types::free(host, made);
        instances *= 2;
    }
    None
}

/// Makes a struct type from runs of basic elements, without gaps between the runs.
fn dense(host: &Host, runs: &[(Named, c_int)]) -> Option<HandleWord> {
    let (mut of, mut places, mut at) = (Vec::new(), Vec::new(), 0isize);
    for &(named, n) in runs {
        of.push((host.handle(named)?, n));
        places.push(at);
        at += n as isize * named.pieces().iter().map(|&(_, bytes)| bytes as isize).sum::<isize>();
    }
    own_types::structure(host, &of, &places)
}
