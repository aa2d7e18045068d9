//! Arguments of a wrapped call, which macros distinguish by their roles. The types are looked up to
//! decide whether the call is bypassed. The arguments are also gathered, so that the call can be
//! counted for the report after it has returned.

use std::ffi::c_int;

use ddtc_hosts::policy::Call;

use super::collective::each;
use crate::counting;
use crate::deciding::{Looked, look};
use crate::host::Host;
use crate::signatures::{Handle, In, Types};
use crate::table::TypeEntry;
use crate::use_kind::UseKind;

/// One argument of a call, with its value if the count of calls for the report uses the value.
#[derive(Clone, Copy)]
pub(super) enum Argument {
    /// A buffer that is sent from.
    SendBuf(In),
    /// An array of one count per peer.
    Counts,
    /// A datatype.
    Type(Handle),
    /// A datatype of `MPI_Pack` or `MPI_Unpack`, which the wrapper of the call looks up itself.
    PackType(Handle),
    /// An array of one datatype per peer.
    Types(Types),
    Root(c_int),
    Comm(Handle),
    /// Any other argument, whose value is not used.
    Other,
}

/// Makes an [`Argument`] from an argument of a call and the argument's role.
macro_rules! value {
    ($value:ident SendBuf) => {
        $crate::wrap::arguments::Argument::SendBuf($value)
    };
    ($value:ident Counts) => {
        $crate::wrap::arguments::Argument::Counts
    };
    ($value:ident Type) => {
        $crate::wrap::arguments::Argument::Type($value)
    };
    ($value:ident PackType) => {
        $crate::wrap::arguments::Argument::PackType($value)
    };
    ($value:ident Types) => {
        $crate::wrap::arguments::Argument::Types($value)
    };
    ($value:ident Root) => {
        $crate::wrap::arguments::Argument::Root($value)
    };
    ($value:ident Comm) => {
        $crate::wrap::arguments::Argument::Comm($value)
    };
    ($value:ident $other:ident) => {
        $crate::wrap::arguments::Argument::Other
    };
}
pub(super) use value;

/// Returns the object on which an error of a call is raised: the argument that is a communicator, a
/// window or a file. A call without such an argument takes a message handle, from which its
/// communicator cannot be found; errors of the call are raised on the world's communicator.
macro_rules! raised_on {
    ($host:ident, $argument:ident: Comm $($rest:tt)*) => { On::Comm($argument) };
    ($host:ident, $argument:ident: Win $($rest:tt)*) => { On::Win($argument) };
    ($host:ident, $argument:ident: File $($rest:tt)*) => { On::File($argument) };
    ($host:ident, $argument:ident: $other:ident, $($rest:tt)*) => { raised_on!($host, $($rest)*) };
    ($host:ident, $argument:ident: $other:ident) => { On::Comm($host.world) };
}
pub(super) use raised_on;

/// Returns the send buffer, the types of both sides and the communicator of a call in which every
/// peer has a type of its own; `None` for any other call. The number of types in the arrays is
/// known only from the communicator.
#[inline(always)]
fn of_each_peer(arguments: &[Argument]) -> Option<(In, Types, Types, Handle)> {
    use Argument::{Comm, Counts, SendBuf, Types};
    match *arguments {
        [SendBuf(sent), Counts, _, Types(sendtypes), _, Counts, _, Types(recvtypes), Comm(comm), ..] => {
            Some((sent, sendtypes, recvtypes, comm))
        }
        _ => None,
    }
}

/// Returns true if the call is bypassed because of the handles and counts of its types alone, by
/// [`crate::types::is_hosts`]. `$row` is the call's row in the table of calls.
macro_rules! is_hosts {
    ($host:ident, $row:ident, $($argument:ident: $role:ident),*) => {{
        #[allow(unused_mut, unused_variables, unused_assignments, reason = "not every call has types, or counts after the last one")]
        let (mut hosts, mut count) = (true, 0);
        $(is_hosts!(@look $host, $row, hosts, count, $argument $role);)*
        hosts
    }};
    (@look $host:ident, $row:ident, $hosts:ident, $count:ident, $argument:ident Count) => {
        #[allow(unused_assignments, reason = "as above")]
        {
            $count = $argument.wide();
        }
    };
    (@look $host:ident, $row:ident, $hosts:ident, $count:ident, $argument:ident Type) => {
        $hosts = $hosts
            && $crate::types::is_hosts(
                $host,
                $argument,
                $count,
                const { $crate::use_kind::UseKind::from_call(&$row) },
                const { $crate::use_kind::CompletedBy::from_call(&$row) },
            );
    };
    (@look $host:ident, $row:ident, $hosts:ident, $count:ident, $argument:ident PackType) => {
        $hosts = $hosts && $crate::types::is_hosts($host, $argument, 0, const { $crate::use_kind::UseKind::from_call(&$row) }, None);
    };
    (@look $host:ident, $row:ident, $hosts:ident, $count:ident, $argument:ident Types) => {
        #[allow(unused_assignments, reason = "as above")]
        {
            $hosts = false;
        }
    };
    (@look $($other:tt)*) => {};
}
pub(super) use is_hosts;

/// Result of looking up the types of a call.
#[derive(Clone, Copy)]
pub(super) struct ArgumentTypes {
    /// Handles of the call's first and second type, if they were looked up.
    handles: [Handle; 2],
    entries: [Option<&'static TypeEntry>; 2],
    /// True if some payload of one of the types may be converted in the call.
    wanted: bool,
}

impl ArgumentTypes {
    pub(super) const NONE: ArgumentTypes =
        ArgumentTypes { handles: [0; 2], entries: [None; 2], wanted: false };

    /// Makes the result for a call whose wrapper itself looks up the types.
    #[inline(always)]
    pub(super) fn of_itself(wanted: bool) -> ArgumentTypes {
        ArgumentTypes { wanted, ..ArgumentTypes::NONE }
    }

    /// Returns true if some payload of one of the types may be converted in the call.
    #[inline(always)]
    pub(super) fn is_wanted(self) -> bool {
        self.wanted
    }

    /// Looks up the first type of the call, or the second if `second` is true. The call uses
    /// `count` instances of it.
    #[inline(always)]
    pub(super) fn look(
        &mut self,
        host: &'static Host,
        second: bool,
        datatype: Handle,
        count: i64,
        call: Call,
        used: UseKind,
    ) {
        // An exchange of messages usually has the same type on both sides. Then the result of the
        // first look-up is used for both.
        let is_same = second && datatype == self.handles[0];
        let looked = match self.entries[0] {
            Some(entry) if is_same && call == Call::Message && used != UseKind::Persistent => {
                Looked { entry: Some(entry), is_wanted: self.wanted }
            }
            _ => look(host, datatype, count, call, used),
        };
        self.handles[usize::from(second)] = datatype;
        self.entries[usize::from(second)] = looked.entry;
        self.wanted |= looked.is_wanted;
        if is_same {
            // The second look-up has counted another use of the same type. If decoding pays from
            // that use on, the type was decoded and has a new entry, which the first side needs
            // too.
            self.entries[0] = looked.entry;
        }
    }

    /// Returns the entries of the first and the second type.
    #[inline(always)]
    pub(super) fn entries(self) -> [Option<&'static TypeEntry>; 2] {
        self.entries
    }
}

/// Looks up the types that are arguments of a call. Each look-up counts a use of the type, with the
/// number of instances that the count argument before the type gives. The macro writes out one step
/// for each argument. A loop over an array would cost more, because all arguments of every bypassed
/// call would then go through memory.
macro_rules! looked {
    ($host:ident, $row:ident, $sendbuf:ident: SendBuf, $sendcounts:ident: Counts, $sdispls:ident: $s:ident, $sendtypes:ident: Types,
     $recvbuf:ident: RecvBuf, $recvcounts:ident: Counts, $rdispls:ident: $r:ident, $recvtypes:ident: Types, $comm:ident: Comm
     $(, $rest:ident: $role:ident)*) => {
        // SAFETY: the arguments are those of the program's call.
        unsafe {
            let used = const { $crate::use_kind::UseKind::from_call(&$row) };
            $crate::wrap::ArgumentTypes::of_itself(
                $crate::wrap::each::wanted($host, $row.call, used, $sendbuf, $sendtypes, $recvtypes, $comm)
            )
        }
    };
    ($host:ident, $row:ident, $($argument:ident: $role:ident),*) => {{
        #[allow(unused_mut, unused_variables, unused_assignments, reason = "not every call has types, or counts after the last one")]
        let (mut looked, mut count, mut second) = ($crate::wrap::ArgumentTypes::NONE, 1, false);
        $(looked!(@look $host, $row, looked, count, second, $argument $role);)*
        looked
    }};
    (@look $host:ident, $row:ident, $looked:ident, $count:ident, $second:ident, $argument:ident Count) => {
        #[allow(unused_assignments, reason = "as above")]
        {
            $count = $argument.wide();
        }
    };
    // Arrays of counts are not read here. Instead one instance of each type is counted, the minimum
    // that the call moves.
    (@look $host:ident, $row:ident, $looked:ident, $count:ident, $second:ident, $argument:ident Counts) => {
        #[allow(unused_assignments, reason = "as above")]
        {
            $count = 1;
        }
    };
    // Each of the two sides of a call counts as a use of its type.
    (@look $host:ident, $row:ident, $looked:ident, $count:ident, $second:ident, $argument:ident Type) => {
        #[allow(unused_assignments, reason = "as above")]
        {
            let used = const { $crate::use_kind::UseKind::from_call(&$row) };
            $looked.look($host, $second, $argument, $count, $row.call, used);
            $second = true;
        }
    };
    (@look $host:ident, $row:ident, $looked:ident, $count:ident, $second:ident, $argument:ident PackType) => {
        $looked = $crate::wrap::ArgumentTypes::of_itself(true);
    };
    (@look $($other:tt)*) => {};
}
pub(super) use looked;

/// Gathers the arguments that are needed to count a call for the report.
///
/// # Safety
/// `arguments` must be the arguments of a call that the MPI library has accepted.
#[cold]
pub(super) unsafe fn looked_at(
    host: &'static Host,
    call: Call,
    arguments: &[Argument],
) -> counting::Arguments {
    use Argument::{Comm, PackType, Root, Type};
    let types = match of_each_peer(arguments) {
        // The communicator may be one that a PMPI layer has made, so the MPI library is not asked
        // for the number of its peers.
        Some(_) if host.layers.take(call) => Vec::new(),
        // SAFETY: the MPI library has accepted these arguments, as the caller promises.
        Some((sent, sendtypes, recvtypes, comm)) => unsafe {
            each::types(host, call, sent, sendtypes, recvtypes, comm)
        },
        None => {
            let types = arguments.iter().filter_map(|&argument| match argument {
                Type(datatype) | PackType(datatype) => Some(datatype),
                _ => None,
            });
            types.collect()
        }
    };
    counting::Arguments {
        call,
        always: arguments.iter().any(|argument| matches!(argument, PackType(_))),
        root: arguments
            .iter()
            .find_map(|&argument| if let Root(root) = argument { Some(root) } else { None }),
        comm: arguments
            .iter()
            .find_map(|&argument| if let Comm(comm) = argument { Some(comm) } else { None }),
        types,
    }
}
