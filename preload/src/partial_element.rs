//! Messages that end inside a basic element.
//!
//! No correct program sends such a message (MPI 5.0, 3.3.1), and MPI libraries treat it
//! differently. A converted message arrives as packed bytes, of which the MPI library accepts any
//! number. So this module says what the MPI library would say of the program's own type, by what
//! unmodified MPI libraries do:
//!
//! * Open MPI receives all bytes and succeeds.
//! * MPICH refuses the message with `MPI_ERR_TYPE`, and only whole elements are received. It does
//!   so if the message comes in one piece. Of longer messages, from a length that depends on its
//!   transport, it receives all bytes; this module refuses those too.
//! * Intel MPI refuses the message if all elements of the receiver's type are of one basic type:
//!   with `MPI_ERR_TRUNCATE`, or with `MPI_ERR_TYPE` if the message was matched before. Otherwise
//!   it receives all bytes.
//!
//! The profile of the MPI library says which of these it does ([`PartialElement`]).

use std::ffi::{c_int, c_void};

use ddtc::datatype::{Combiner, Datatype};
use ddtc::object::elements;
use ddtc_hosts::abi::Abi;
use ddtc_hosts::profile::PartialElement;

use crate::host::{HandleWord, Host};
use crate::status;

/// Error of a message that the MPI library would have refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefusedMessage {
    /// Class of the error.
    pub(crate) class: c_int,
    /// Communicator on which the error is raised.
    comm: HandleWord,
}

/// Origin of received bytes, on which their errors depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Message that is received on this communicator.
    Named(HandleWord),
    /// Message that was matched before: the receive names no communicator.
    Matched,
    /// File. The bytes that are read may end anywhere.
    File,
}

/// Bytes of the longest basic element, `MPI_COMPLEX32`.
const LONGEST: u64 = 32;

/// Returns how many of the first `bytes` packed bytes of an instance belong to whole elements.
/// `bytes` is less than the size of an instance.
fn whole(t: &Datatype, bytes: u64) -> u64 {
    let mut ends = (0..LONGEST).map_while(|k| bytes.checked_sub(k));
    ends.find(|&n| elements(t, n).is_some()).unwrap_or(bytes)
}

/// Returns true if Intel MPI knows that all elements of a type are of one basic type. It compares
/// the members of a structure with each other, and does not look into members that differ.
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

/// Returns the class of the error that an MPI library of this rule raises for a receive of type
/// `t`; none if it refuses nothing.
fn class(rule: PartialElement, abi: &Abi, t: &Datatype, origin: Origin) -> Option<c_int> {
    match (rule, origin) {
        (_, Origin::File) | (PartialElement::Received, _) => None,
        (PartialElement::Refused, _) => Some(abi.err_type),
        (PartialElement::RefusedOfOneType, Origin::Matched) => of_one_type(t).then_some(abi.err_type),
        (PartialElement::RefusedOfOneType, Origin::Named(_)) => of_one_type(t).then_some(abi.err_truncate),
    }
}

/// Examines the end of a message that ends inside an instance. Returns how many bytes of that
/// instance are to be unpacked, and the error if the MPI library would have refused the message.
///
/// `bytes`: received bytes of the last instance. `before`: bytes of the instances before it. If a
/// message that is received on a communicator is refused, the number of bytes in its status is set
/// to that of the whole elements.
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
            // SAFETY: `at` points to the status of the receive, as the caller promises.
            unsafe { status::set_bytes(host, at, before + taken) };
            comm
        }
        Origin::Matched if host.profile.forgets_communicator => host.world,
        Origin::Matched | Origin::File => host.myself,
    };
    (taken, Some(RefusedMessage { class, comm }))
}

impl RefusedMessage {
    /// Returns the error for a request that is not persistent. An MPI library that may have
    /// forgotten the communicator of such a request raises its error on the communicator of the
    /// world.
    pub(crate) fn of_request(self, host: &Host) -> RefusedMessage {
        let forgotten = host.profile.forgets_communicator;
        RefusedMessage { comm: if forgotten { host.world } else { self.comm }, ..self }
    }

    /// Raises the error in a call about this message alone, and returns its code.
    pub(crate) fn raise(self, host: &Host) -> c_int {
        raise(host, self.comm, self.class)
    }
}

/// Raises the error of a call about several messages, whose statuses have the error of each.
/// Returns its code.
pub(crate) fn raise_in_status(host: &Host, abi: &Abi) -> c_int {
    raise(host, if host.profile.forgets_communicator { host.world } else { host.myself }, abi.err_in_status)
}

fn raise(host: &Host, comm: HandleWord, class: c_int) -> c_int {
    if let Some(raise) = host.f.comm_call_errhandler {
        // SAFETY: `comm` is a communicator that the MPI library has defined itself, or the one that
        // the program named in the receive. The program may have freed the latter since it made the
        // request. Only MPICH and its relatives refuse messages ([`class`]). Their handles are
        // numbers of places in memory that is kept until finalization. So the call finds there the
        // communicator, a freed one, which it refuses (MPICH 5.0.2 raises `MPI_ERR_COMM` on
        // `MPI_COMM_SELF`), or a newer one.
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
