//! Messages that end inside a basic element.
//!
//! No correct program sends a message that ends inside a basic element of the receiver's type (MPI
//! 5.0, 3.3.1), and MPI libraries treat it differently. A converted message arrives as packed
//! bytes, and the MPI library accepts any number of packed bytes. So this module finds out how the
//! MPI library would have treated the message if it had received the program's own type. The rules
//! are those that unmodified MPI libraries were seen to follow:
//!
//! * Open MPI receives all bytes and succeeds.
//! * MPICH refuses the message with `MPI_ERR_TYPE` and receives only the whole elements, if the
//!   message comes in one piece. If a message is longer than a limit that depends on the transport,
//!   MPICH receives all its bytes. This module refuses these longer messages too.
//! * Intel MPI refuses the message if all elements of the receiver's type are of one basic type.
//!   The error is `MPI_ERR_TRUNCATE`, or `MPI_ERR_TYPE` if the message was matched before. Through
//!   libfabric the error is always `MPI_ERR_TYPE`, and the status reports all bytes. If the
//!   elements are of several basic types, Intel MPI receives all bytes.
//!
//! [`Host::partial_element`] is the rule that the MPI library follows with the transport of the
//! job. If some ranks of the job share memory and others use libfabric, it is the rule of
//! libfabric.

use std::ffi::{c_int, c_void};

use ddtc::internal::datatype::{Combiner, Datatype};
use ddtc::internal::methods::*;
use ddtc::internal::object::elements;
use ddtc_hosts::abi::Abi;
use ddtc_hosts::profile::PartialElement;

use crate::host::{HandleWord, Host};
use crate::status;

/// Error of a received message that the MPI library would have refused if ddtc had not converted
/// it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefusedMessage {
    /// Error class (`MPI_ERR_TYPE` or `MPI_ERR_TRUNCATE`) of the refused message.
    pub(crate) class: c_int,
    /// Communicator on which the error of the refused message is raised.
    comm: HandleWord,
}

/// Origin of received bytes. If they end inside a basic element, the error depends on this origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A message whose receive names this communicator.
    Named(HandleWord),
    /// A message that was matched before (`MPI_Mprobe`), so that its receive names no communicator.
    Matched,
    /// A file. The bytes that are read from a file may end anywhere, and this is no error.
    File,
}

/// Number of bytes of the longest basic element, `MPI_COMPLEX32`.
const MAX_ELEMENT_BYTES: u64 = 32;

/// Returns how many of the first `bytes` packed bytes of an instance of `t` belong to whole basic
/// elements. `bytes` must be less than the size of an instance.
fn whole(t: &Datatype, bytes: u64) -> u64 {
    let mut ends = (0..MAX_ELEMENT_BYTES).map_while(|k| bytes.checked_sub(k));
    ends.find(|&n| elements(t, n).is_some()).unwrap_or(bytes)
}

/// Returns true if Intel MPI treats all elements of a type as elements of one basic type. Intel MPI
/// compares the members of a structure with each other. If two members are different types, it does
/// not find out whether their elements are of one basic type.
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

/// Returns the class of the error that an MPI library with the rule `rule` raises for a receive
/// with the type `t`, if the received bytes end inside a basic element. Returns `None` if the MPI
/// library refuses no such message.
fn class(rule: PartialElement, abi: &Abi, t: &Datatype, origin: Origin) -> Option<c_int> {
    match (rule, origin) {
        (_, Origin::File) | (PartialElement::Received, _) => None,
        (PartialElement::Refused, _) => Some(abi.err_type),
        (PartialElement::ReportedOfOneType, _) | (PartialElement::RefusedOfOneType, Origin::Matched) => {
            of_one_type(t).then_some(abi.err_type)
        }
        (PartialElement::RefusedOfOneType, Origin::Named(_)) => of_one_type(t).then_some(abi.err_truncate),
    }
}

/// Examines the end of a message that ends inside an instance of the type `t`. Returns how many
/// bytes of that instance must be unpacked, and the error if the MPI library would have refused the
/// message.
///
/// `bytes` is the number of received bytes of the last instance, and `before` the number of bytes
/// of the instances before it. If the refused message was received on a named communicator, the
/// number of bytes in its status is set to that of the whole elements, unless the MPI library
/// reports all bytes.
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
    let (taken, rule) = (whole(t, bytes), host.partial_element);
    let refused = host.abi.filter(|_| taken < bytes).and_then(|abi| class(rule, abi, t, origin));
    let Some(class) = refused else { return (bytes, None) };
    let comm = match origin {
        Origin::Named(comm) => {
            if rule != PartialElement::ReportedOfOneType {
                // SAFETY: `at` points to the status of the receive, as the caller promises.
                unsafe { status::set_bytes(host, at, before + taken) };
            }
            comm
        }
        Origin::Matched if host.profile.forgets_communicator => host.world,
        Origin::Matched | Origin::File => host.myself,
    };
    (taken, Some(RefusedMessage { class, comm }))
}

impl RefusedMessage {
    /// Returns the error as it is raised for a request that is not persistent. Some MPI libraries
    /// may have forgotten the communicator of a completed request. They raise the error on
    /// `MPI_COMM_WORLD`.
    pub(crate) fn of_request(self, host: &Host) -> RefusedMessage {
        let forgotten = host.profile.forgets_communicator;
        RefusedMessage { comm: if forgotten { host.world } else { self.comm }, ..self }
    }

    /// Raises the error in a blocking receive of this message, or in a call that completes or
    /// reports on at most one request. Returns the error class.
    pub(crate) fn raise(self, host: &Host) -> c_int {
        raise(host, self.comm, self.class)
    }
}

/// Raises `MPI_ERR_IN_STATUS` in a call on several requests, and returns it. The errors of the
/// single messages must be in their statuses already.
pub(crate) fn raise_in_status(host: &Host, abi: &Abi) -> c_int {
    raise(host, if host.profile.forgets_communicator { host.world } else { host.myself }, abi.err_in_status)
}

fn raise(host: &Host, comm: HandleWord, class: c_int) -> c_int {
    if let Some(raise) = host.f.comm_call_errhandler {
        // SAFETY: `comm` is a predefined communicator, or the communicator that the program named
        // in the receive. The program may have freed the named communicator since it made the
        // request. Only MPICH and libraries derived from it refuse messages ([`class`]). Their
        // handles are numbers of places in memory that is kept until finalization. So the call
        // finds at that place the named communicator, a freed communicator, which the call refuses
        // (MPICH 5.0.2 raises `MPI_ERR_COMM` on `MPI_COMM_SELF`), or a newer communicator.
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
    fn hosts_refuse_what_they_refuse_unmodified() {
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
            assert_eq!(of(PartialElement::ReportedOfOneType, Origin::Named(1)), one.then_some(3));
            assert_eq!(class(PartialElement::Received, &OPEN_MPI, &t, Origin::Matched), None);
        }
    }
}
