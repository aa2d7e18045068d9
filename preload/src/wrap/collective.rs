//! Wrappers of collective calls. Each rank converts its own side of a call, whatever the other
//! ranks do.
//!
//! A collective call is blocking, nonblocking or persistent ([`When`]). For all three kinds the
//! same buffers are staged before the operation and unpacked after it, so the macro `collective!`
//! creates three functions from one body. Reductions are not converted, because their operations
//! depend on the type. `MPI_Allgatherv` is not converted, because MPICH's ring algorithm cuts the
//! data by the extent of the receive type.

pub(super) mod all;
pub(super) mod each;
pub(super) mod neighbour;
pub(super) mod rooted;

use std::ffi::c_int;

use ddtc::internal::count::Count;
use ddtc_hosts::policy::Call;
use ddtc_hosts::tried::Kind;

use crate::bindings::covered;
use crate::call_memory::start;
use crate::eligible;
use crate::forms::Forms;
use crate::group::{Group, Role, learn};
use crate::host::{HandleWord, Host};
use crate::numbers::{KeptVector, Vector};
use crate::parts::{Own, Parts, in_place};
use crate::requests::{self, Operation};
use crate::signatures::{Handle, In, Out};
use crate::staged::{Moment, Staged};
use crate::user_buffer::UserBuffer;

/// Kind of a collective call, with the address of its request if the call makes a request.
#[derive(Clone, Copy)]
enum When {
    Blocking,
    /// The call is nonblocking and starts the operation.
    Once(Out),
    /// The call makes a persistent request, and later calls start the operation.
    Persistent(Out),
}

/// A collective call of this rank, with the buffers that are staged for it.
struct Collective {
    host: &'static Host,
    call: Call,
    comm: HandleWord,
    when: When,
    wanted: bool,
    /// Facts about the ranks of the call and this rank among them; `None` if the call is bypassed.
    group: Option<Group>,
    staged: Staged,
    /// Size of a part, in bytes, below which one side of the call is converted whatever the policy
    /// says, because the other side is converted. 0 while the other side is not converted.
    convert_below: u64,
    /// True if the MPI library is called in the form with `MPI_Count`, even if the program has used
    /// the form with `int`.
    widened: bool,
}

impl Collective {
    /// Returns the state of a collective call at its beginning, before anything is staged. If
    /// `wanted` is false, the policy converts no type of the call in calls of this kind. Then the
    /// call is bypassed, and the MPI library is not queried.
    fn new(host: &'static Host, call: Call, comm: HandleWord, when: When, wanted: bool) -> Collective {
        let group = if wanted { Group::for_call(host, comm, call) } else { None };
        let group = group.filter(|_| match when {
            When::Blocking => true,
            // `covered` also examines Fortran bindings that were loaded since its last call.
            When::Once(request) => !request.is_null() && covered(host),
            When::Persistent(request) => {
                !request.is_null() && eligible::kinds(host).has(Kind::Persistent) && covered(host)
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
            convert_below: 0,
            widened: false,
        }
    }

    /// Returns the group of the call. For a bypassed call, the MPI library is queried for the group
    /// if the arrays of the call must be narrowed to `int`, because the length of the arrays
    /// depends on the group. Returns `None` for all other bypassed calls.
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

    /// Returns the part of the receive buffer that holds data of the program before the call. This
    /// is the rank's own part if `sendbuf` is `MPI_IN_PLACE`, and nothing otherwise.
    fn own_part(&self, sendbuf: In) -> Own {
        match self.group {
            Some(group) if in_place(self.host, sendbuf) => Own::Part(group.own() as usize),
            _ => Own::Nothing,
        }
    }

    /// Stages the send buffer `given`, which consists of `parts`. Returns the buffer for the MPI
    /// library; `None` if the MPI library gets the program's buffer.
    ///
    /// # Safety
    /// The arguments must be those of the program's collective call.
    unsafe fn send(&mut self, given: UserBuffer, parts: Parts) -> Option<UserBuffer> {
        if in_place(self.host, given.buf) {
            return None;
        }
        let moment = self.moment();
        // SAFETY: the arguments are those of the program's call, as the caller promises.
        unsafe { self.staged.send_parts(self.call, given, parts, moment, self.convert_below) }
    }

    /// Stages the receive buffer `given`, which consists of `parts`. The part `own` holds data of
    /// the program before the call. Returns the buffer for the MPI library; `None` if the MPI
    /// library gets the program's buffer.
    ///
    /// # Safety
    /// The arguments must be those of the program's collective call.
    unsafe fn receive(&mut self, given: UserBuffer, parts: Parts, own: Own) -> Option<UserBuffer> {
        if in_place(self.host, given.buf) {
            return None;
        }
        let moment = self.moment();
        // SAFETY: the arguments are those of the program's call, as the caller promises.
        unsafe { self.staged.receive_parts(self.call, given, parts, own, moment, self.convert_below) }
    }

    /// Stages both sides of a call in which this rank sends and receives, and returns the buffers
    /// for the MPI library. If only one side is converted, tries to convert the other side too, now
    /// with `convert_below` set. This pays because the MPI library moves the data faster if both
    /// buffers are contiguous than if one of them has gaps.
    fn both(
        &mut self,
        (s, r): (UserBuffer, UserBuffer),
        mut send: impl FnMut(&mut Collective, UserBuffer) -> UserBuffer,
        mut receive: impl FnMut(&mut Collective, UserBuffer) -> UserBuffer,
    ) -> (UserBuffer, UserBuffer) {
        let (mut sent, mut received) = (send(self, s), receive(self, r));
        self.convert_below = self.host.profile.costs.max_paired_part;
        match (self.staged.packs(), self.staged.unpacks()) {
            _ if self.convert_below == 0 => {}
            (true, false) => received = receive(self, r),
            (false, true) => sent = send(self, s),
            _ => {}
        }
        (sent, received)
    }

    /// Stages a send buffer of `blocks` equal parts, and returns the buffer for the MPI library.
    ///
    /// # Safety
    /// The arguments must be those of the program's collective call.
    unsafe fn send_equal(&mut self, given: UserBuffer, blocks: i64) -> UserBuffer {
        let parts = Parts::Equal { blocks, count: given.count };
        // SAFETY: the arguments are those of the program's call, as the caller promises.
        unsafe { self.send(given, parts) }.unwrap_or(given)
    }

    /// Stages a receive buffer of `blocks` equal parts, and returns the buffer for the MPI library.
    ///
    /// # Safety
    /// The arguments must be those of the program's collective call.
    unsafe fn receive_equal(&mut self, given: UserBuffer, blocks: i64, own: Own) -> UserBuffer {
        let parts = Parts::Equal { blocks, count: given.count };
        // SAFETY: the arguments are those of the program's call, as the caller promises.
        unsafe { self.receive(given, parts, own) }.unwrap_or(given)
    }

    /// Stages a send buffer whose parts have counts and displacements of their own. Returns the
    /// buffer for the MPI library, which reads part `i` only if `there(i)` is true. If the buffer
    /// is staged, replaces the displacements in `vector` by the displacements in the staging
    /// buffer.
    ///
    /// # Safety
    /// As for [`Collective::send`], the arguments must be those of the program's collective call.
    /// The arrays of `vector` must have an element for each part.
    unsafe fn send_vector<N: Count>(
        &mut self,
        given: UserBuffer,
        vector: &mut Vector<N>,
        there: impl Fn(usize) -> bool,
    ) -> UserBuffer {
        // SAFETY: the arrays have an element for each part, as the caller promises.
        let Some(parts) = (unsafe { vector.parts() }) else { return given };
        let places = vector.closed_up(&parts);
        // SAFETY: the arguments are those of the program's call, as the caller promises.
        let Some(replacement) = (unsafe { self.send(given, parts.only(there)) }) else { return given };
        vector.displs = places;
        replacement
    }

    /// Stages a receive buffer whose parts have counts and displacements of their own. Returns the
    /// buffer for the MPI library, which writes part `i` only if `there(i)` is true. If the buffer
    /// is staged, replaces the displacements in `vector` by the displacements in the staging
    /// buffer.
    ///
    /// # Safety
    /// As for [`Collective::receive`], the arguments must be those of the program's collective
    /// call. The arrays of `vector` must have an element for each part.
    unsafe fn receive_vector<N: Count>(
        &mut self,
        given: UserBuffer,
        vector: &mut Vector<N>,
        own: Own,
        there: impl Fn(usize) -> bool,
    ) -> UserBuffer {
        // SAFETY: the arrays have an element for each part, as the caller promises.
        let Some(parts) = (unsafe { vector.parts() }) else { return given };
        let places = vector.closed_up(&parts);
        // SAFETY: the arguments are those of the program's call, as the caller promises.
        let Some(replacement) = (unsafe { self.receive(given, parts.only(there), own) }) else {
            return given;
        };
        vector.displs = places;
        replacement
    }

    /// Returns the addresses of the arrays for the MPI library. Unless the arrays are the program's
    /// own, moves them into the staged call first, where they live as long as the operation.
    fn kept<N: Count>(&mut self, vector: Vector<N>) -> KeptVector {
        vector.kept_by(&mut self.staged)
    }

    /// Runs the MPI library's function. If the call is blocking, unpacks its receive buffers
    /// afterwards. Otherwise keeps the operation under its request. If the call has succeeded,
    /// records that the MPI library has accepted the communicator.
    ///
    /// # Safety
    /// `call` must call the MPI library's function with the buffers and arrays that were staged.
    unsafe fn run(mut self, call: impl FnOnce() -> c_int) -> c_int {
        // SAFETY: `call` uses the staged buffers, as the caller promises. `request` is the
        // program's argument. If it is null, the call is bypassed: nothing but arrays is staged,
        // and `forget_arrays` removes them from `self.staged`.
        let code = unsafe {
            match self.when {
                When::Blocking => self.staged.collective(call),
                When::Once(request) | When::Persistent(request) => {
                    if request.is_null() || (self.group.is_none() && !covered(self.host)) {
                        // The call is bypassed, so nothing but arrays is staged. ddtc may not see
                        // the completion of the operation, so the arrays are never freed. If there
                        // is a group, buffers may be staged, and `new` has found that ddtc will see
                        // their completion.
                        self.staged.forget_arrays();
                    }
                    let make =
                        if self.moment() == Moment::Call { Operation::once } else { Operation::persistent };
                    start(self.host, (request, self.comm), self.staged, make, call)
                }
            }
        };
        if code == 0 && self.wanted {
            learn(self.host, self.comm, self.call);
        }
        code
    }
}

/// The MPI library's function for a collective call, by the kind of the call: `B` for blocking
/// calls, `O` for nonblocking and `P` for persistent ones, each in both forms. It has the last
/// arguments of the program too, which only some kinds have: the request, and the info object
/// before it.
#[derive(Clone, Copy)]
enum Functions<B, O, P> {
    Blocking(B),
    Once(O, Out),
    Persistent(P, Handle, Out),
}

impl<S0: Copy, L0: Copy, S1: Copy, L1: Copy, S2: Copy, L2: Copy>
    Functions<Forms<S0, L0>, Forms<S1, L1>, Forms<S2, L2>>
{
    /// Returns what [`Forms`] says of the call, without the functions, and the kind of the call.
    fn facts(&self) -> (Forms<(), ()>, When) {
        match self {
            Functions::Blocking(forms) => (forms.facts(), When::Blocking),
            Functions::Once(forms, request) => (forms.facts(), When::Once(*request)),
            Functions::Persistent(forms, _, request) => (forms.facts(), When::Persistent(*request)),
        }
    }
}

/// Defines the blocking, the nonblocking and the persistent form of the wrapper of a collective
/// call.
///
/// The input of the macro has these rows: the documentation, the names of the three forms, the
/// arguments before the communicator with their roles, a body that stages the buffers, and after
/// `=>` the arguments for the MPI library, as `forward!` takes them. The macro adds the
/// communicator to the arguments. For the nonblocking and persistent forms it also adds the
/// request, and for the persistent form the info object before the request.
///
/// The body is compiled once for all three forms, in the function `any` of a module with the name
/// of the blocking form. Three copies of it would be a tenth of the preload library.
macro_rules! collective {
    (@function ($($type:ty),*) ($($after:ty),*)) => { unsafe extern "C-unwind" fn($($type,)* Handle, $($after),*) -> c_int };
    (@forms ($($kind:ident),*) $after:tt) => {
        Forms<collective!(@function ($(argument!(c_int, $kind)),*) $after), collective!(@function ($(argument!(i64, $kind)),*) $after)>
    };
    (@one $(#[$doc:meta])* $module:ident $name:ident ($($argument:ident: $kind:ident),*) ($($after:ident: $after_kind:ident),*) $functions:ident) => {
        $(#[$doc])*
        #[inline]
        pub(in super::super) unsafe fn $name<N: Count>(
            host: &'static Host,
            forms: collective!(@forms ($($kind),*) ($($after_kind),*)),
            $($argument: argument!(N, $kind),)*
            comm: Handle,
            $($after: $after_kind),*
        ) -> c_int {
            // SAFETY: the arguments are the program's, unchanged.
            unsafe { $module::any(host, Functions::$functions(forms, $($after),*), $($argument,)* comm) }
        }
    };
    ($(#[$doc:meta])* $now:ident $once:ident $init:ident ($($argument:ident: $kind:ident),*)
     |$host:ident, $forms:ident, $call:ident, $comm:ident| {$($body:tt)*} => $($given:tt)*) => {
        mod $now {
            use super::*;

            $(#[$doc])*
            #[inline(never)]
            pub(super) unsafe fn any<N: Count>(
                $host: &'static Host,
                functions: Functions<
                    collective!(@forms ($($kind),*) ()),
                    collective!(@forms ($($kind),*) (Out)),
                    collective!(@forms ($($kind),*) (Handle, Out)),
                >,
                $($argument: argument!(N, $kind),)*
                $comm: Handle,
            ) -> c_int {
                let ($forms, when) = functions.facts();
                let mut $call = Collective::new($host, $forms.call, $comm, when, $forms.wanted);
                // SAFETY: the arguments are those of the program's call. The MPI library gets them
                // unchanged, except for buffers and arrays that the body has staged.
                unsafe {
                    $($body)*
                    let large = N::LARGE || $call.widened;
                    $call.run(|| match functions {
                        Functions::Blocking(forms) => forward!(@sized large, forms, $host, $($given)* ($comm)),
                        Functions::Once(forms, request) => forward!(@sized large, forms, $host, $($given)* ($comm)(request)),
                        Functions::Persistent(forms, info, request) => {
                            forward!(@sized large, forms, $host, $($given)* ($comm)(info)(request))
                        }
                    })
                }
            }
        }
        collective! { @one $(#[$doc])* $now $now ($($argument: $kind),*) () Blocking }
        collective! { @one $(#[$doc])* $now $once ($($argument: $kind),*) (request: Out) Once }
        collective! { @one $(#[$doc])* $now $init ($($argument: $kind),*) (info: Handle, request: Out) Persistent }
    };
}
use collective;
