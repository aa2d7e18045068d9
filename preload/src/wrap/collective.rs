//! Collective calls: a rank converts its own side, whatever the others do.
//!
//! A call is blocking, nonblocking or persistent ([`When`]); what is staged before it and unpacked after it is the same, so one body makes all
//! three (`collective!`). Not here: reductions, whose operations see the type, and `MPI_Allgatherv`, where MPICH's ring cuts by the extent of the
//! receive type.

pub(super) mod all;
pub(super) mod each;
pub(super) mod neighbour;
pub(super) mod rooted;

use std::ffi::c_int;

use ddtc::count::Count;
use ddtc_hosts::policy::Call;

use crate::bindings::covered;
use crate::forms::Forms;
use crate::group::{Group, Role, learn};
use crate::held::start;
use crate::host::{HandleWord, Host};
use crate::numbers::{KeptVector, Vector};
use crate::parts::{Own, Parts, in_place};
use crate::requests::{self, Operation};
use crate::signatures::{In, Out};
use crate::staged::{Moment, Staged};
use crate::user_buffer::UserBuffer;

/// When a call's operation is started, and where its request goes.
#[derive(Clone, Copy)]
enum When {
    Blocking,
    /// Once, by this call.
    Once(Out),
    /// By starts.
    Persistent(Out),
}

/// A collective call of this rank.
struct Collective {
    host: &'static Host,
    call: Call,
    comm: HandleWord,
    when: When,
    wanted: bool,
    /// None: the call is the host's.
    group: Option<Group>,
    staged: Staged,
    /// Bytes below which a part is converted because what goes the other way is.
    beside: u64,
    /// The host is asked in the large form whichever the program has used.
    widened: bool,
}

impl Collective {
    /// `wanted`: whether one of its types is to be converted in such calls; otherwise nothing is asked.
    fn new(host: &'static Host, call: Call, comm: HandleWord, when: When, wanted: bool) -> Collective {
        let group = if wanted { Group::of(host, comm, call) } else { None };
        let group = group.filter(|_| match when {
            When::Blocking => true,
            // Bindings that were loaded meanwhile are known now.
            When::Once(request) => !request.is_null() && covered(host),
            When::Persistent(request) => {
                !request.is_null() && host.profile.persistent_collectives && covered(host)
            }
        });
        if group.is_some() {
            requests::drain(host);
        }
        Collective {
            host,
            call,
            comm,
            when,
            wanted,
            group,
            staged: match when {
                When::Blocking => Staged::new(host, i64::MAX),
                When::Once(_) | When::Persistent(_) => Staged::of_a_request(host, i64::MAX),
            },
            beside: 0,
            widened: false,
        }
    }

    /// The group, asked also where the call is the host's but its arrays must be narrowed for it.
    fn known<N: Count, S: Copy, L: Copy>(&self, forms: &Forms<S, L>) -> Option<Group> {
        match self.group {
            None if forms.narrows::<N>() => Group::ask(self.host, self.comm),
            group => group,
        }
    }

    fn role(&self, root: c_int) -> Option<Role> {
        self.group?.role(self.host, root)
    }

    fn moment(&self) -> Moment {
        if let When::Persistent(_) = self.when { Moment::Start } else { Moment::Call }
    }

    /// Returns the part of a receive buffer that is in place: that of this rank, if its send buffer says so.
    fn own_part(&self, sendbuf: In) -> Own {
        match self.group {
            Some(group) if in_place(self.host, sendbuf) => Own::Part(group.own() as usize),
            _ => Own::Nothing,
        }
    }

    /// Before a call that sends these parts. What the host is given.
    ///
    /// # Safety
    /// As the call.
    unsafe fn send(&mut self, given: UserBuffer, parts: Parts) -> Option<UserBuffer> {
        if in_place(self.host, given.buf) {
            return None;
        }
        let moment = self.moment();
        // SAFETY: as the caller promises.
        unsafe { self.staged.send_parts(self.call, given, parts, moment, self.beside) }
    }

    /// Before a call that receives these parts.
    ///
    /// # Safety
    /// As the call.
    unsafe fn receive(&mut self, given: UserBuffer, parts: Parts, own: Own) -> Option<UserBuffer> {
        if in_place(self.host, given.buf) {
            return None;
        }
        let moment = self.moment();
        // SAFETY: as the caller promises.
        unsafe { self.staged.receive_parts(self.call, given, parts, own, moment, self.beside) }
    }

    /// Before a call in which this rank sends and receives. One side that is converted takes the other along: a host that finds both lying together takes its way
    /// for that, and moves both element by element if one does not.
    fn both(
        &mut self,
        (s, r): (UserBuffer, UserBuffer),
        mut send: impl FnMut(&mut Collective, UserBuffer) -> UserBuffer,
        mut receive: impl FnMut(&mut Collective, UserBuffer) -> UserBuffer,
    ) -> (UserBuffer, UserBuffer) {
        let (mut sent, mut received) = (send(self, s), receive(self, r));
        self.beside = self.host.profile.costs.gains_beside;
        match (self.staged.packs(), self.staged.unpacks()) {
            _ if self.beside == 0 => {}
            (true, false) => received = receive(self, r),
            (false, true) => sent = send(self, s),
            _ => {}
        }
        (sent, received)
    }

    /// Before a call that sends `blocks` equal parts.
    ///
    /// # Safety
    /// As the call.
    unsafe fn send_equal(&mut self, given: UserBuffer, blocks: i64) -> UserBuffer {
        let parts = Parts::Equal { blocks, count: given.count };
        // SAFETY: as the caller promises.
        unsafe { self.send(given, parts) }.unwrap_or(given)
    }

    /// Before a call that receives `blocks` equal parts.
    ///
    /// # Safety
    /// As the call.
    unsafe fn receive_equal(&mut self, given: UserBuffer, blocks: i64, own: Own) -> UserBuffer {
        let parts = Parts::Equal { blocks, count: given.count };
        // SAFETY: as the caller promises.
        unsafe { self.receive(given, parts, own) }.unwrap_or(given)
    }

    /// Before a call that sends parts of their own length and place, of which the host reads those that `there` says: what the host is given, its
    /// displacements with it.
    ///
    /// # Safety
    /// As the call.
    unsafe fn send_vector<N: Count>(
        &mut self,
        given: UserBuffer,
        vector: &mut Vector<N>,
        there: impl Fn(usize) -> bool,
    ) -> UserBuffer {
        // SAFETY: as the caller promises.
        let Some(parts) = (unsafe { vector.parts() }) else { return given };
        let places = vector.closed_up(&parts);
        // SAFETY: as above.
        let Some(replacement) = (unsafe { self.send(given, parts.only(there)) }) else { return given };
        vector.displs = places;
        replacement
    }

    /// Before a call that receives such parts, of which the host writes those that `there` says.
    ///
    /// # Safety
    /// As the call.
    unsafe fn receive_vector<N: Count>(
        &mut self,
        given: UserBuffer,
        vector: &mut Vector<N>,
        own: Own,
        there: impl Fn(usize) -> bool,
    ) -> UserBuffer {
        // SAFETY: as the caller promises.
        let Some(parts) = (unsafe { vector.parts() }) else { return given };
        let places = vector.closed_up(&parts);
        // SAFETY: as above.
        let Some(replacement) = (unsafe { self.receive(given, parts.only(there), own) }) else {
            return given;
        };
        vector.displs = places;
        replacement
    }

    /// Arrays for the host, where they live as long as the operation.
    fn kept<N: Count>(&mut self, vector: Vector<N>) -> KeptVector {
        vector.kept_by(&mut self.staged)
    }

    /// The host's call, and what follows it.
    ///
    /// # Safety
    /// `call` must be that of the host with what was staged.
    unsafe fn run(mut self, call: impl FnOnce() -> c_int) -> c_int {
        // SAFETY: as the caller promises.
        let code = unsafe {
            match self.when {
                When::Blocking => self.staged.collective(call),
                When::Once(request) | When::Persistent(request) => {
                    if request.is_null() || !covered(self.host) {
                        // Nothing but arrays is staged.
                        self.staged.forget_arrays();
                    }
                    let make =
                        if self.moment() == Moment::Call { Operation::once } else { Operation::persistent };
                    start(self.host, request, self.staged, make, call)
                }
            }
        };
        if code == 0 && self.wanted {
            learn(self.host, self.comm, self.call);
        }
        code
    }
}

/// A collective call in its three kinds: what is staged, and what the host is given but for the communicator and what follows it.
macro_rules! collective {
    (@one $(#[$doc:meta])* $name:ident ($($argument:ident: $kind:ident),*) ($($after:ident: $after_kind:ident),*) $when:expr;
     |$host:ident, $forms:ident, $call:ident, $comm:ident| {$($body:tt)*} ($($given:tt)*)) => {
        $(#[$doc])*
        pub(in super::super) unsafe fn $name<N: Count>(
            $host: &'static Host,
            $forms: Forms<
                unsafe extern "C-unwind" fn($(argument!(c_int, $kind),)* Handle, $($after_kind),*) -> c_int,
                unsafe extern "C-unwind" fn($(argument!(i64, $kind),)* Handle, $($after_kind),*) -> c_int,
            >,
            $($argument: argument!(N, $kind),)*
            $comm: Handle,
            $($after: $after_kind),*
        ) -> c_int {
            let mut $call = Collective::new($host, $forms.call, $comm, $when, $forms.wanted);
            // SAFETY: the caller's arguments.
            unsafe {
                $($body)*
                let large = N::LARGE || $call.widened;
                $call.run(|| forward!(@sized large, $forms, $host, $($given)* ($comm) $(($after))*))
            }
        }
    };
    ($(#[$doc:meta])* $now:ident $once:ident $init:ident ($($argument:ident: $kind:ident),*)
     |$host:ident, $forms:ident, $call:ident, $comm:ident| $body:tt => $($given:tt)*) => {
        collective! { @one $(#[$doc])* $now ($($argument: $kind),*) () When::Blocking;
            |$host, $forms, $call, $comm| $body ($($given)*) }
        collective! { @one $(#[$doc])* $once ($($argument: $kind),*) (request: Out) When::Once(request);
            |$host, $forms, $call, $comm| $body ($($given)*) }
        collective! { @one $(#[$doc])* $init ($($argument: $kind),*) (info: Handle, request: Out) When::Persistent(request);
            |$host, $forms, $call, $comm| $body ($($given)*) }
    };
}
use collective;
