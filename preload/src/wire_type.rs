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

/// Maximum number of basic elements in a dense equivalent that is not a repetition of shorter ones.
/// A type with more elements needs a period of at most this many: its elements must be a repetition
/// of its first ones.
const MAX_ELEMENTS: usize = 4096;
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
enum SentForm {
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

    fn form(&self, host: &Host, t: &Datatype) -> SentForm {
        let WireForm::Segments { multiple, .. } = host.profile.wire_form else { return SentForm::Bytes };
        let known = self.0.load(Ordering::Acquire);
        let known = if known == UNKNOWN { self.find(host, t, multiple) } else { known };
        match known {
            BYTES => SentForm::Bytes,
            HOST => SentForm::Host,
            own => SentForm::Own(OwnType::from_word(own)),
        }
    }

    #[cold]
    fn find(&self, host: &Host, t: &Datatype, multiple: i64) -> u64 {
        let found = match Elements::examine(t, multiple) {
            Elements::Aligned => BYTES,
            Elements::Many => HOST,
            Elements::Ragged { period, periods } => {
                guard(|| own_type(host, t, &period, periods)).flatten().map_or(HOST, OwnType::word)
            }
        };
        self.0.store(found, Ordering::Release);
        found
    }

    /// Returns the number of elements and the datatype for a message of `count` instances that the
    /// MPI library may cut into segments; `None` if the message is bypassed.
    pub(crate) fn message(&self, host: &Host, t: &Datatype, count: i64) -> Option<(i64, HandleWord)> {
        match self.form(host, t) {
            SentForm::Bytes => Some((count.checked_mul(t.size())?, host.packed)),
            SentForm::Own(own) if count % own.instances() == 0 => {
                Some((count / own.instances(), own.handle()))
            }
            SentForm::Own(_) | SentForm::Host => None,
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
            SentForm::Bytes => own_types::of_bytes(host, t.size()),
            SentForm::Own(own) if own.instances() == 1 => Some(own.handle()),
            SentForm::Own(_) | SentForm::Host => None,
        }
    }
}

/// Result of the test whether a segment of bytes may end inside an element of a type.
enum Elements {
    /// A segment of bytes never ends inside an element of the type.
    Aligned,
    /// A segment may end inside an element of the type. The elements of one instance are `periods`
    /// repetitions of the elements of `period`, which are in packed order, as runs of one basic
    /// type. A type of at most [`MAX_ELEMENTS`] elements has one period.
    Ragged { period: Vec<(Named, c_int)>, periods: i64 },
    /// The type has more than [`MAX_ELEMENTS`] elements, and they are no repetition of at most
    /// [`MAX_ELEMENTS`]. Whether a segment may end inside one of the elements is not examined.
    Many,
}

impl Elements {
    /// Tests whether a segment of bytes may end inside an element of a type. `multiple`: the length
    /// of each segment is a multiple of this many bytes.
    fn examine(t: &Datatype, multiple: i64) -> Elements {
        let size = |named: Named| named.pieces().iter().map(|&(_, bytes)| bytes).sum::<i64>();
        // Returns true if no element of `bytes` bytes at offset `at` of a period lies across the
        // end of a segment, in any period of any instance. That is so if the element's size divides
        // `multiple`, the offset, and the size of a period.
        let fits = |at: i64, bytes: i64, period: i64| [multiple, at, period].iter().all(|n| n % bytes == 0);
        let mut map = t.type_map();
        let Some((first, _)) = map.next() else { return Elements::Aligned };
        let (one, all) = (size(first), t.signature());
        if fits(0, one, t.size()) && Signature::from_named(first).repeat(t.size() / one).hash() == all.hash()
        {
            return Elements::Aligned;
        }
        let is_long = all.length() > MAX_ELEMENTS as i64;
        let (mut period, mut at, mut begun) = (Vec::<(Named, c_int)>::new(), 0, Signature::EMPTY);
        let mut places = Vec::new();
        for (i, (named, _)) in t.type_map().enumerate() {
            if i >= MAX_ELEMENTS {
                return Elements::Many;
            }
            places.push((at, size(named)));
            at += size(named);
            match period.last_mut() {
                Some((last, n)) if *last == named => *n += 1,
                _ => period.push((named, 1)),
            }
            // A long type is examined no further once its first elements are found to be a period.
            if is_long {
                begun = begun.then(&Signature::from_named(named));
                if all.length() % begun.length() == 0
                    && begun.repeat(all.length() / begun.length()).hash() == all.hash()
                {
                    break;
                }
            }
        }
        if places.iter().all(|&(place, bytes)| fits(place, bytes, at)) {
            return Elements::Aligned;
        }
        Elements::Ragged { period, periods: t.size() / at }
    }
}

/// Returns a committed type that is the dense equivalent of one or several instances of `t`, each
/// of which consists of `periods` repetitions of the basic elements `period`.
///
/// It is made of structures of the smallest number of periods, out of 1, 2, 4 and so on up to
/// [`INSTANCES`], with which the extent of the structure is equal to its size. Only then does the
/// MPI library treat the type as contiguous. The number of instances is the smallest for which
/// whole structures suffice. Returns `None` if there is no such number of periods, or if a call of
/// the MPI library failed.
fn own_type(host: &Host, t: &Datatype, period: &[(Named, c_int)], periods: i64) -> Option<OwnType> {
    let key = t.signature().hash();
    if let Some(known) = own_types::known(key) {
        return Some(known);
    }
    let type_extent = host.f.type_extent?;
    let powers = || (0..=INSTANCES.ilog2()).map(|k| 1i64 << k);
    for together in powers() {
        let made = dense(host, &period.repeat(together as usize))?;
        let (mut lb, mut extent) = (0isize, 0isize);
        // SAFETY: `made` is a type that was just made; `lb` and `extent` are numbers to write to.
        let code = unsafe { type_extent(made, &raw mut lb, &raw mut extent) };
        if code == 0 && extent as i64 == together * (t.size() / periods) {
            let instances = powers().find(|instances| instances * periods % together == 0)?;
            let made = own_types::repeated(host, made, instances * periods / together)?;
            let committed = own_types::commit(host, made)?;
            return own_types::keep(host, key, OwnType::new(committed.handle(), instances as u16));
        }
        own_types::free(host, made);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_types_have_a_period_if_their_elements_repeat() {
        let found = |text: &str| match Elements::examine(&text.parse().unwrap(), 16) {
            Elements::Ragged { period, periods } => {
                let runs: Vec<String> =
                    period.iter().map(|(named, n)| format!("{n} {}", named.text_name())).collect();
                format!("{periods} of {}", runs.join(", "))
            }
            Elements::Aligned => "aligned".to_owned(),
            Elements::Many => "many".to_owned(),
        };
        let mixed = "struct([1,1,3],[0,8,16],[int,double,float])";
        assert_eq!(found(mixed), "1 of 1 int, 1 double, 3 float");
        // Up to 4096 elements, all elements are in one period, in which neighbours of one type form
        // a run.
        assert!(
            found(&format!("contiguous(819,{mixed})")).starts_with("1 of 1 int, 1 double, 3 float, 1 int")
        );
        assert_eq!(found(&format!("contiguous(820,{mixed})")), "820 of 1 int, 1 double, 3 float");
        assert_eq!(found(&format!("contiguous(2731,{mixed})")), "2731 of 1 int, 1 double, 3 float");
        // Elements of a period that fit in every period fit in the type.
        assert_eq!(found("contiguous(3000,struct([2,1],[0,8],[int,double]))"), "aligned");
        // The whole size of these elements is a multiple of 8 bytes, but that of a period is not.
        assert_eq!(found("contiguous(3000,struct([1,1],[0,8],[double,int]))"), "3000 of 1 double, 1 int");
        let tail = format!("struct([1,1],[0,200000],[contiguous(2731,{mixed}),char])");
        assert_eq!(found(&tail), "many");
    }
}
