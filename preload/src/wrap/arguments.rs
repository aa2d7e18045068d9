//! The arguments of a call as values: what decides whether it is looked at, and what its count says afterwards.

use std::ffi::c_int;

use ddtc_hosts::policy::Call;

use super::collective::each;
use crate::counting;
use crate::host::Host;
use crate::signatures::{Handle, In, Types};

/// An argument.
#[derive(Clone, Copy)]
pub(super) enum Argument {
    /// A buffer that is read.
    In(In),
    /// An array of them.
    Counts,
    /// A datatype.
    Type(Handle),
    /// A datatype that the call looks at by itself.
    Met(Handle),
    /// A datatype for every peer.
    Types(Types),
    Root(c_int),
    Comm(Handle),
    /// Nothing that is looked at.
    Other,
}

/// An argument of a row of `signatures` as a value, by its name and its kind.
macro_rules! value {
    ($value:ident root: Int) => {
        $crate::wrap::arguments::Argument::Root($value)
    };
    ($value:ident comm: Handle) => {
        $crate::wrap::arguments::Argument::Comm($value)
    };
    ($value:ident $name:ident: In) => {
        $crate::wrap::arguments::Argument::In($value)
    };
    ($value:ident $name:ident: Ns) => {
        $crate::wrap::arguments::Argument::Counts
    };
    ($value:ident $name:ident: Type) => {
        $crate::wrap::arguments::Argument::Type($value)
    };
    ($value:ident $name:ident: Met) => {
        $crate::wrap::arguments::Argument::Met($value)
    };
    ($value:ident $name:ident: Types) => {
        $crate::wrap::arguments::Argument::Types($value)
    };
    ($value:ident $name:ident: $other:ident) => {
        $crate::wrap::arguments::Argument::Other
    };
}
pub(super) use value;

/// Returns the buffer that is sent, the types of both sides and the communicator, where every peer has a type: those are looked at with their peers.
#[inline(always)]
fn of_each_peer(arguments: &[Argument]) -> Option<(In, Types, Types, Handle)> {
    use Argument::{Comm, Counts, In, Types};
    match *arguments {
        [In(sent), Counts, _, Types(sendtypes), _, Counts, _, Types(recvtypes), Comm(comm), ..] => {
            Some((sent, sendtypes, recvtypes, comm))
        }
        _ => None,
    }
}

/// Says whether a call is the host's by the handles of its types alone: [`crate::types::is_hosts`].
macro_rules! is_hosts {
    ($host:ident, $call:ident, $name:expr, $($argument:ident: $kind:ident),*) => {{
        #[allow(unused_mut, unused_variables, unused_assignments, reason = "not every call has types, or counts behind the last one")]
        let (mut hosts, mut count) = (true, 0);
        $(is_hosts!(@look $host, $call, $name, hosts, count, $argument $kind);)*
        hosts
    }};
    (@look $host:ident, $call:ident, $name:expr, $hosts:ident, $count:ident, $argument:ident N) => {
        #[allow(unused_assignments, reason = "as above")]
        {
            $count = $argument.wide();
        }
    };
    (@look $host:ident, $call:ident, $name:expr, $hosts:ident, $count:ident, $argument:ident Type) => {
        $hosts = $hosts
            && $crate::types::is_hosts($host, $argument, $count, const { UseKind::of($name) }, const { CompletedBy::of(Call::$call, $name) });
    };
    (@look $host:ident, $call:ident, $name:expr, $hosts:ident, $count:ident, $argument:ident Met) => {
        $hosts = $hosts && $crate::types::is_hosts($host, $argument, 0, const { UseKind::of($name) }, None);
    };
    (@look $host:ident, $call:ident, $name:expr, $hosts:ident, $count:ident, $argument:ident Types) => {
        #[allow(unused_assignments, reason = "as above")]
        {
            $hosts = false;
        }
    };
    (@look $($other:tt)*) => {};
}
pub(super) use is_hosts;

/// Says whether the policy converts a type that is an argument of a call. Each counts as used, as often as the number before it says. Written out argument by argument: in a
/// loop over values all of them would go by way of memory, in each call that is the host's.
macro_rules! wanted {
    ($host:ident, $call:ident, $used:expr, $sendbuf:ident: In, $sendcounts:ident: Ns, $sdispls:ident: $s:ident, $sendtypes:ident: Types,
     $recvbuf:ident: Out, $recvcounts:ident: Ns, $rdispls:ident: $r:ident, $recvtypes:ident: Types, $comm:ident: Handle
     $(, $rest:ident: $kind:ident)*) => {
        // SAFETY: the caller's arguments.
        unsafe { $crate::wrap::each::wanted($host, Call::$call, $used, $sendbuf, $sendtypes, $recvtypes, $comm) }
    };
    ($host:ident, $call:ident, $used:expr, $($argument:ident: $kind:ident),*) => {{
        #[allow(unused_mut, unused_variables, unused_assignments, reason = "not every call has types, or counts behind the last one")]
        let (mut wanted, mut count) = (false, 1);
        $(wanted!(@look $host, $call, $used, wanted, count, $argument $kind);)*
        wanted
    }};
    (@look $host:ident, $call:ident, $used:expr, $wanted:ident, $count:ident, $argument:ident N) => {
        #[allow(unused_assignments, reason = "as above")]
        {
            $count = $argument.wide();
        }
    };
    // Arrays of numbers are not read here: an element is the least that is moved.
    (@look $host:ident, $call:ident, $used:expr, $wanted:ident, $count:ident, $argument:ident Ns) => {
        #[allow(unused_assignments, reason = "as above")]
        {
            $count = 1;
        }
    };
    // Both sides are counted.
    (@look $host:ident, $call:ident, $used:expr, $wanted:ident, $count:ident, $argument:ident Type) => {
        $wanted |= $crate::types::wanted($host, $argument, $count, Call::$call, $used);
    };
    (@look $host:ident, $call:ident, $used:expr, $wanted:ident, $count:ident, $argument:ident Met) => {
        $wanted = true;
    };
    (@look $($other:tt)*) => {};
}
pub(super) use wanted;

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
    use Argument::{Comm, Met, Root, Type};
    let types = match of_each_peer(arguments) {
        // How many peers there are is not asked of a communicator that may be a layer's.
        Some(_) if host.layers.take(call) => Vec::new(),
        // SAFETY: as the caller promises.
        Some((sent, sendtypes, recvtypes, comm)) => unsafe {
            each::types(host, call, sent, sendtypes, recvtypes, comm)
        },
        None => {
            let types = arguments.iter().filter_map(|&argument| match argument {
                Type(datatype) | Met(datatype) => Some(datatype),
                _ => None,
            });
            types.collect()
        }
    };
    counting::Arguments {
        call,
        always: arguments.iter().any(|argument| matches!(argument, Met(_))),
        root: arguments
            .iter()
            .find_map(|&argument| if let Root(root) = argument { Some(root) } else { None }),
        comm: arguments
            .iter()
            .find_map(|&argument| if let Comm(comm) = argument { Some(comm) } else { None }),
        types,
    }
}
