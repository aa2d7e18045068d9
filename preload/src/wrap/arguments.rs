//! The arguments of a call as values: what decides whether it is looked at, and what its count says afterwards.

use std::ffi::c_int;

use ddtc_hosts::policy::Call;

use super::collective::each;
use crate::counting;
use crate::deciding::{Looked, look};
use crate::host::Host;
use crate::signatures::{Handle, In, Types};
use crate::table::TypeEntry;
use crate::use_kind::UseKind;

/// An argument.
#[derive(Clone, Copy)]
pub(super) enum Argument {
    /// A buffer that is sent from.
    SendBuf(In),
    /// An array of one count per peer.
    Counts,
    /// A datatype.
    Type(Handle),
    /// A datatype that the call looks at by itself.
    PackType(Handle),
    /// A datatype for every peer.
    Types(Types),
    Root(c_int),
    Comm(Handle),
    /// Nothing that is looked at.
    Other,
}

/// Makes a value of an argument of a call, by its role.
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

/// Returns the object on which an error of a call is raised: the argument that is a communicator, a window or a file. A call without
/// one takes a message, and a message does not tell its communicator.
macro_rules! raised_on {
    ($host:ident, $argument:ident: Comm $($rest:tt)*) => { On::Comm($argument) };
    ($host:ident, $argument:ident: Win $($rest:tt)*) => { On::Win($argument) };
    ($host:ident, $argument:ident: File $($rest:tt)*) => { On::File($argument) };
    ($host:ident, $argument:ident: $other:ident, $($rest:tt)*) => { raised_on!($host, $($rest)*) };
    ($host:ident, $argument:ident: $other:ident) => { On::Comm($host.world) };
}
pub(super) use raised_on;

/// Returns the buffer that is sent, the types of both sides and the communicator, where every peer has a type: those are looked at with their peers.
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

/// Says whether a call is the host's by the handles of its types alone: [`crate::types::is_hosts`]. `$row`: its row of the table of calls.
macro_rules! is_hosts {
    ($host:ident, $row:ident, $($argument:ident: $role:ident),*) => {{
        #[allow(unused_mut, unused_variables, unused_assignments, reason = "not every call has types, or counts behind the last one")]
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
                const { $crate::use_kind::UseKind::of(&$row) },
                const { $crate::use_kind::CompletedBy::of(&$row) },
            );
    };
    (@look $host:ident, $row:ident, $hosts:ident, $count:ident, $argument:ident PackType) => {
        $hosts = $hosts && $crate::types::is_hosts($host, $argument, 0, const { $crate::use_kind::UseKind::of(&$row) }, None);
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

/// Results of looking up the types of a call.
#[derive(Clone, Copy)]
pub(super) struct ArgumentTypes {
    /// The handles of those that were looked up.
    handles: [Handle; 2],
    entries: [Option<&'static TypeEntry>; 2],
    wanted: bool,
}

impl ArgumentTypes {
    pub(super) const NONE: ArgumentTypes =
        ArgumentTypes { handles: [0; 2], entries: [None; 2], wanted: false };

    /// Of a call that finds its types itself.
    #[inline(always)]
    pub(super) fn of_itself(wanted: bool) -> ArgumentTypes {
        ArgumentTypes { wanted, ..ArgumentTypes::NONE }
    }

    /// Says whether some payload of a type may be converted in the call.
    #[inline(always)]
    pub(super) fn is_wanted(self) -> bool {
        self.wanted
    }

    /// Looks up a type, the first of the call or the second, of which the call uses `count` instances.
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
        // A message that is exchanged has the same type on both sides, most of the time.
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
            // The second use may have been the one that pays for decoding it.
            self.entries[0] = looked.entry;
        }
    }

    /// Returns the entries of the first and the second type.
    #[inline(always)]
    pub(super) fn entries(self) -> [Option<&'static TypeEntry>; 2] {
        self.entries
    }
}

/// Looks up the types that are arguments of a call. Each counts as used, as often as the number before it says. Written out argument by argument: in a
/// loop over values all of them would go by way of memory, in each call that is the host's.
macro_rules! looked {
    ($host:ident, $row:ident, $sendbuf:ident: SendBuf, $sendcounts:ident: Counts, $sdispls:ident: $s:ident, $sendtypes:ident: Types,
     $recvbuf:ident: RecvBuf, $recvcounts:ident: Counts, $rdispls:ident: $r:ident, $recvtypes:ident: Types, $comm:ident: Comm
     $(, $rest:ident: $role:ident)*) => {
        // SAFETY: the caller's arguments.
        unsafe {
            let used = const { $crate::use_kind::UseKind::of(&$row) };
            $crate::wrap::ArgumentTypes::of_itself(
                $crate::wrap::each::wanted($host, $row.call, used, $sendbuf, $sendtypes, $recvtypes, $comm)
            )
        }
    };
    ($host:ident, $row:ident, $($argument:ident: $role:ident),*) => {{
        #[allow(unused_mut, unused_variables, unused_assignments, reason = "not every call has types, or counts behind the last one")]
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
    // Arrays of numbers are not read here: an element is the least that is moved.
    (@look $host:ident, $row:ident, $looked:ident, $count:ident, $second:ident, $argument:ident Counts) => {
        #[allow(unused_assignments, reason = "as above")]
        {
            $count = 1;
        }
    };
    // Both sides are counted.
    (@look $host:ident, $row:ident, $looked:ident, $count:ident, $second:ident, $argument:ident Type) => {
        #[allow(unused_assignments, reason = "as above")]
        {
            let used = const { $crate::use_kind::UseKind::of(&$row) };
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

/// Returns the arguments that the count of a call looks at.
///
/// # Safety
/// They are the arguments of a call that the host has accepted.
#[cold]
pub(super) unsafe fn looked_at(
    host: &'static Host,
    call: Call,
    arguments: &[Argument],
) -> counting::Arguments {
    use Argument::{Comm, PackType, Root, Type};
    let types = match of_each_peer(arguments) {
        // How many peers there are is not asked of a communicator that may be a layer's.
        Some(_) if host.layers.take(call) => Vec::new(),
        // SAFETY: as the caller promises.
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
