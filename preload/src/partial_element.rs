//! Messages that end inside a basic element.
//!
//! No correct program sends one (MPI 5.0, 3.3.1), and hosts differ in what they make of it. A converted message arrives as packed
//! bytes, of which the host takes any number, so what it would say of the program's own type is said here, by what bare hosts do:
//!
//! * Open MPI takes all bytes and succeeds;
//! * MPICH refuses: `MPI_ERR_TYPE`, and only whole elements are received. It does so where a message comes in one piece, and takes all
//!   bytes of longer ones, from a length that is its transport's: here all are refused;
//! * Intel MPI refuses types of one basic type, `MPI_ERR_TRUNCATE`, and `MPI_ERR_TYPE` of matched messages; others it takes.
//!
//! The library's profile says which of these it does ([`PartialElement`]).

use std::ffi::{c_int, c_void};

use ddtc::datatype::{Combiner, Datatype};
use ddtc::object::elements;
use ddtc_hosts::abi::Abi;
use ddtc_hosts::profile::PartialElement;

use crate::host::{HandleWord, Host};
use crate::status;

/// A message that the host would have refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefusedMessage {
    /// The class of the error.
    pub(crate) class: c_int,
    /// Where it is raised.
    comm: HandleWord,
}

/// Origin of a receive, for its errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// On a communicator.
    Named(HandleWord),
    /// Of a message that was matched before: no communicator is named.
    Matched,
    /// From a file, which may end anywhere.
    File,
}

/// Longest basic element: `MPI_COMPLEX32`.
const LONGEST: u64 = 32;

/// How many of `bytes` packed bytes, fewer than one instance has, are whole elements.
fn whole(t: &Datatype, bytes: u64) -> u64 {
    let mut ends = (0..LONGEST).map_while(|k| bytes.checked_sub(k));
    ends.find(|&n| elements(t, n).is_some()).unwrap_or(bytes)
}

/// Whether Intel MPI knows one basic type for all elements: it looks at the members of a structure, not into them.
fn of_one_type(t: &Datatype) -> bool {
    let mut node = t;
    loop {
        if let Some(simpler) = node.expansion() {
            node = simpler;
            continue;
        }
        node = match node.combiner() {
            Combiner::Named(named) => return named.pieces().len() == 1,
            Combiner::Struct { types, .. } => {
                let Some((first, rest)) = types.split_first() else { return false };
                if !rest.iter().all(|other| other == first) {
                    return false;
                }
                first
            }
            combiner => match combiner.children().next() {
                Some(child) => child,
                None => return false,
            },
        };
    }
}

/// The error class of the host for a type, if it refuses.
fn class(rule: PartialElement, abi: &Abi, t: &Datatype, origin: Origin) -> Option<c_int> {
    match (rule, origin) {
        (_, Origin::File) | (PartialElement::Received, _) => None,
        (PartialElement::Refused, _) => Some(abi.err_type),
        (PartialElement::RefusedOfOneType, Origin::Matched) => of_one_type(t).then_some(abi.err_type),
        (PartialElement::RefusedOfOneType, Origin::Named(_)) => of_one_type(t).then_some(abi.err_truncate),
    }
}

/// Examines the end of a message: how many bytes of its last instance are to be unpacked, and the error if the host would have
/// refused it, with which the status says what was received.
///
/// # Safety
/// `at` must point to the status of the receive.
#[cold]
pub(crate) unsafe fn examine(
    host: &Host,
    t: &Datatype,
    bytes: u64,
    before: u64,
    origin: Origin,
    at: *mut c_void,
) -> (u64, Option<RefusedMessage>) {
    let (taken, rule) = (whole(t, bytes), host.profile.partial_element);
    let refused = host.abi.filter(|_| taken < bytes).and_then(|abi| class(rule, abi, t, origin));
    let Some(class) = refused else { return (bytes, None) };
    let comm = match origin {
        Origin::Named(comm) => {
            // SAFETY: as the caller promises.
            unsafe { status::set_bytes(host, at, before + taken) };
            comm
        }
        Origin::Matched if host.profile.forgets_communicator => host.world,
        Origin::Matched | Origin::File => host.myself,
    };
    (taken, Some(RefusedMessage { class, comm }))
}

impl RefusedMessage {
    /// Returns the error of a request that is no persistent one, whose communicator the library may have forgotten by then.
    pub(crate) fn of_request(self, host: &Host) -> RefusedMessage {
        let forgotten = host.profile.forgets_communicator;
        RefusedMessage { comm: if forgotten { host.world } else { self.comm }, ..self }
    }

    /// Raises the error of a call about this message alone, and gives its code.
    pub(crate) fn raise(self, host: &Host) -> c_int {
        raise(host, self.comm, self.class)
    }
}

/// Raises the error of a call about several messages, of which the statuses say more.
pub(crate) fn raise_in_status(host: &Host, abi: &Abi) -> c_int {
    raise(host, if host.profile.forgets_communicator { host.world } else { host.myself }, abi.err_in_status)
}

fn raise(host: &Host, comm: HandleWord, class: c_int) -> c_int {
    if let Some(raise) = host.f.comm_call_errhandler {
        // SAFETY: `comm` is a communicator of the host's own, or the one that the program named in
        // the receive. The program may have freed that one since it made the request. Only MPICH
        // and its relatives refuse messages ([`class`]). Their handles are numbers of places in
        // memory that is kept until finalization. The call finds there the communicator, a freed
        // one, which it refuses, or a newer one.
        unsafe { raise(comm, class) };
    }
    class
}

#[cfg(test)]
mod tests {
    use super::*;
    use ddtc_hosts::abi::{MPICH, OPEN_MPI};

    #[test]
    fn ends_of_messages() {
        let t: Datatype = "struct([1,1,3],[0,8,16],[int,double,float])".parse().unwrap();
        for (bytes, taken) in [(0, 0), (1, 0), (4, 4), (5, 4), (11, 4), (12, 12), (15, 12), (23, 20)] {
            assert_eq!(whole(&t, bytes), taken, "{bytes}");
        }
        let wide: Datatype = "vector(2,1,2,complex32)".parse().unwrap();
        assert_eq!((whole(&wide, 31), whole(&wide, 63)), (0, 32));
    }

    #[test]
    fn hosts_refuse_what_they_refuse_bare() {
        for (text, one) in [
            ("vector(4,1,2,int)", true),
            ("struct([1,1],[0,8],[int,int])", true),
            ("struct([1,1],[0,8],[int,float])", false),
            ("struct([1,1],[0,24],[vector(2,1,2,int),int])", false),
            ("vector(3,1,2,double_int)", false),
            ("vector(3,1,2,c_double_complex)", true),
            ("subarray([8,8],[4,4],[0,0],C,double)", true),
        ] {
            let t: Datatype = text.parse().unwrap();
            assert_eq!(of_one_type(&t), one, "{text}");
            let of = |rule, origin| class(rule, &MPICH, &t, origin);
            assert_eq!(of(PartialElement::Refused, Origin::Named(1)), Some(3));
            assert_eq!(of(PartialElement::Refused, Origin::Matched), Some(3));
            assert_eq!(of(PartialElement::RefusedOfOneType, Origin::Named(1)), one.then_some(14));
            assert_eq!(of(PartialElement::RefusedOfOneType, Origin::Matched), one.then_some(3));
            assert_eq!(class(PartialElement::Received, &OPEN_MPI, &t, Origin::Matched), None);
        }
    }
}
