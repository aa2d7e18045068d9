//! How packed bytes are sent to a rank that may not convert them.
//!
//! As `MPI_PACKED`, which matches any type, wherever that holds. MPICH and its relatives cut a long message into segments where single
//! copy cannot be used (between two groups, between processes that may not read each other's memory), and refuse one that ends
//! inside an element of the receiver's type: "a datatype whose signature does not match" (MPICH 5.0.2). Segments of a type end with its
//! elements, and segments of bytes at multiples of 16. So there a type whose elements may lie across such a place goes as its dense stand-in: the same
//! elements one after the other, which the host knows to be contiguous.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

use ddtc::datatype::signature::Signature;
use ddtc::datatype::{Datatype, Named};
use ddtc_hosts::profile::WireForm;

use crate::element_type::ElementType;
use crate::gapped::has_wide_elements;
use crate::guard::guard;
use crate::host::{HandleWord, Host};
use crate::own_types::{self, OwnType};

/// Elements of a type up to which a stand-in is made.
const MOST: usize = 4096;
/// Instances that a stand-in has at most: so many that its end is aligned as its elements are.
const INSTANCES: u16 = 16;

const UNKNOWN: u64 = 0;
const BYTES: u64 = 1;
const HOST: u64 = 2;

/// Stands for a type when its packed bytes are sent: found out at the first send.
pub(crate) struct WireType(AtomicU64);

/// Decoded word of a [`WireType`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Bytes.
    Bytes,
    /// A stand-in, perhaps of several instances.
    Own(OwnType),
    /// Nothing: the message is the host's.
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

    /// Returns elements and type by which a message of `count` instances is sent that the library may cut; `None`: it is the host's.
    pub(crate) fn message(&self, host: &Host, t: &Datatype, count: i64) -> Option<(i64, HandleWord)> {
        match self.form(host, t) {
            Form::Bytes => Some((count.checked_mul(t.size())?, host.packed)),
            Form::Own(own) if count % own.instances() == 0 => Some((count / own.instances(), own.handle())),
            Form::Own(_) | Form::Host => None,
        }
    }

    /// Returns the parts of a stand-in with a gap, which is cut only where a receiver that does not convert can join what it gets: a type and its bytes;
    /// `joined`: bytes of the widest element that a receiver can join. `None`: the message is the host's. The word of the type keeps both, as that of a stand-in keeps its instances.
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

    /// Returns a type that one instance is sent as in a collective call.
    pub(crate) fn element(&self, host: &Host, t: &Datatype) -> Option<HandleWord> {
        match self.form(host, t) {
            Form::Bytes => own_types::of_bytes(host, t.size()),
            Form::Own(own) if own.instances() == 1 => Some(own.handle()),
            Form::Own(_) | Form::Host => None,
        }
    }
}

/// The elements of one instance in packed order.
enum Elements {
    /// Wherever a segment of bytes ends, an element ends.
    Aligned,
    /// Not so: these, by runs.
    Ragged(Vec<(Named, c_int)>),
    /// Not so, and too many.
    Many,
}

impl Elements {
    /// `multiple`: bytes of which the length of each segment of bytes is a multiple.
    fn of(t: &Datatype, multiple: i64) -> Elements {
        let size = |named: Named| named.pieces().iter().map(|&(_, bytes)| bytes).sum::<i64>();
        // Nothing lies across a place that its size divides, if what is before it has that alignment too.
        let fits = |at: i64, bytes: i64| multiple % bytes == 0 && at % bytes == 0 && t.size() % bytes == 0;
        let mut map = t.type_map();
        let Some((first, _)) = map.next() else { return Elements::Aligned };
        let one = size(first);
        if fits(0, one) && Signature::of(first).repeat(t.size() / one).hash() == t.signature().hash() {
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

/// A committed type of these elements one after the other, of as many instances as make its extent their size: only then is it contiguous
/// for the host.
fn own_type(host: &Host, t: &Datatype, elements: &[(Named, c_int)]) -> Option<OwnType> {
    let key = t.signature().hash();
    if let Some(known) = own_types::known(key) {
        return Some(known);
    }
    let mut instances = 1u16;
    while instances <= INSTANCES {
        let made = dense(host, &elements.repeat(instances.into()))?;
        let (mut lb, mut extent) = (0isize, 0isize);
        // SAFETY: a type that we made, numbers to write to.
        let code = unsafe { host.f.type_extent?(made, &raw mut lb, &raw mut extent) };
        if code == 0 && extent as i64 == i64::from(instances) * t.size() {
            let committed = own_types::commit(host, made)?;
            return own_types::keep(host, key, OwnType::new(committed.handle(), instances));
        }
        own_types::free(host, made);
        instances *= 2;
    }
    None
}

/// A structure of runs without gaps.
fn dense(host: &Host, runs: &[(Named, c_int)]) -> Option<HandleWord> {
    let (mut of, mut places, mut at) = (Vec::new(), Vec::new(), 0isize);
    for &(named, n) in runs {
        of.push((host.handle(named)?, n));
        places.push(at);
        at += n as isize * named.pieces().iter().map(|&(_, bytes)| bytes as isize).sum::<isize>();
    }
    own_types::structure(host, &of, &places)
}
