//! Wrappers of collective calls: each rank converts its own side, whatever the other ranks do.
//!
//! A collective call is blocking, nonblocking or persistent ([`When`]). All three kinds stage the
//! same buffers before the operation and unpack the same buffers after it, so one body makes the
//! three functions (`collective!`). Reductions are not converted, because their operations see the
//! type. `MPI_Allgatherv` is not converted, because MPICH's ring algorithm cuts the data by the
//! extent of the receive type.

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

/// Kind of a collective call, with the address of its request if it makes one.
#[derive(Clone, Copy)]
enum When {
    Blocking,
    /// Nonblocking: this call starts the operation.
    Once(Out),
    /// Persistent: later calls start the operation.
    Persistent(Out),
}

/// A collective call of this rank, with the buffers that are staged for it.
struct Collective {
    host: &'static Host,
    call: Call,
    comm: HandleWord,
    when: When,
    wanted: bool,
    /// Ranks of the call; `None` if the call is bypassed.
    group: Option<Group>,
    staged: Staged,
    /// Bytes below which a part is converted whatever the policy says, because the other side of
    /// the call is converted; 0 while the other side is not.
    beside: u64,
    /// The MPI library is called in the form with `MPI_Count`, whichever form the program has used.
    widened: bool,
}

impl Collective {
    /// Begins a call. If `wanted` is false, no type of the call is converted in such calls; then
    /// the call is bypassed and the MPI library is asked nothing.
    fn new(host: &'static Host, call: Call, comm: HandleWord, when: When, wanted: bool) -> Collective {
        let group = if wanted { Group::of(host, comm, call) } else { None };
        let group = group.filter(|_| match when {
            When::Blocking => true,
            // `covered` looks for Fortran bindings that were loaded since the last look.
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

    /// Returns the group of the call. The MPI library is asked for the group of a bypassed call too
    /// if the arrays of the call must be narrowed, because their length depends on the group.
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

    /// Returns the part of the receive buffer that holds data before the call: this rank's own part
    /// if `sendbuf` is `MPI_IN_PLACE`, else nothing.
    fn own_part(&self, sendbuf: In) -> Own {
        match self.group {
            Some(group) if in_place(self.host, sendbuf) => Own::Part(group.own() as usize),
            _ => Own::Nothing,
        }
    }

    /// Stages a send buffer of these parts. Returns the buffer for the MPI library; `None` if the
    /// program's buffer stays.
    ///
    /// # Safety
    /// The arguments must be those of the program's collective call.
    unsafe fn send(&mut self, given: UserBuffer, parts: Parts) -> Option<UserBuffer> {
        if in_place(self.host, given.buf) {
            return None;
        }
        let moment = self.moment();
        // SAFETY: the arguments are those of the program's call, as the caller promises.
        unsafe { self.staged.send_parts(self.call, given, parts, moment, self.beside) }
    }

    /// Stages a receive buffer of these parts, of which `own` holds data before the call. Returns
    /// the buffer for the MPI library; `None` if the program's buffer stays.
    ///
    /// # Safety
    /// The arguments must be those of the program's collective call.
    unsafe fn receive(&mut self, given: UserBuffer, parts: Parts, own: Own) -> Option<UserBuffer> {
        if in_place(self.host, given.buf) {
            return None;
        }
        let moment = self.moment();
        // SAFETY: the arguments are those of the program's call, as the caller promises.
        unsafe { self.staged.receive_parts(self.call, given, parts, own, moment, self.beside) }
    }

    /// Stages both sides of a call in which this rank sends and receives, and returns the buffers
    /// for the MPI library. If only one side is converted, the other side is tried again with
    /// `beside` set: if both buffers are contiguous, the MPI library moves them in a faster way,
    /// which it does not use if one of them has gaps.
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

    /// Stages a send buffer of `blocks` equal parts, and returns the buffer for the MPI library.
    ///
    /// # Safety
    /// As [`Collective::send`].
    unsafe fn send_equal(&mut self, given: UserBuffer, blocks: i64) -> UserBuffer {
        let parts = Parts::Equal { blocks, count: given.count };
        // SAFETY: the arguments are those of the program's call, as the caller promises.
        unsafe { self.send(given, parts) }.unwrap_or(given)
    }

    /// Stages a receive buffer of `blocks` equal parts, and returns the buffer for the MPI library.
    ///
    /// # Safety
    /// As [`Collective::receive`].
    unsafe fn receive_equal(&mut self, given: UserBuffer, blocks: i64, own: Own) -> UserBuffer {
        let parts = Parts::Equal { blocks, count: given.count };
        // SAFETY: the arguments are those of the program's call, as the caller promises.
        unsafe { self.receive(given, parts, own) }.unwrap_or(given)
    }

    /// Stages a send buffer whose parts have counts and displacements of their own, and returns the
    /// buffer for the MPI library. The MPI library reads part `i` only if `there(i)` is true. If
    /// the buffer is staged, the displacements in `vector` become those in the staging buffer.
    ///
    /// # Safety
    /// As [`Collective::send`]; the arrays of `vector` must have an element for each part.
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

    /// Stages a receive buffer whose parts have counts and displacements of their own, and returns
    /// the buffer for the MPI library. The MPI library writes part `i` only if `there(i)` is true.
    /// If the buffer is staged, the displacements in `vector` become those in the staging buffer.
    ///
    /// # Safety
    /// As [`Collective::receive`]; the arrays of `vector` must have an element for each part.
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

    /// Moves the arrays for the MPI library to where they live as long as the operation.
    fn kept<N: Count>(&mut self, vector: Vector<N>) -> KeptVector {
        vector.kept_by(&mut self.staged)
    }

    /// Runs the MPI library's function. Afterwards unpacks a blocking call, or keeps the operation
    /// under its request, and notes that the MPI library has accepted the communicator.
    ///
    /// # Safety
    /// `call` must call the MPI library's function with the buffers and arrays that were staged.
    unsafe fn run(mut self, call: impl FnOnce() -> c_int) -> c_int {
        // SAFETY: `call` uses the staged buffers, as the caller promises. The request is the
        // program's argument. If it is null, the call is bypassed, and nothing is staged after
        // `forget_arrays`.
        let code = unsafe {
            match self.when {
                When::Blocking => self.staged.collective(call),
                When::Once(request) | When::Persistent(request) => {
                    if request.is_null() || !covered(self.host) {
                        // The call is bypassed, so nothing but arrays is staged. The completion of
                        // the operation may not be seen, so the arrays are never freed.
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

/// Makes the blocking, the nonblocking and the persistent form of a collective call.
///
/// The rows give the documentation, the three names, the arguments before the communicator with
/// their roles, a body that stages the buffers, and after `=>` the arguments for the MPI library as
/// `forward!` takes them. The macro adds the communicator, and after it the info object and the
/// request of the forms that have them.
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
            // SAFETY: the arguments are those of the program's call. The MPI library gets them
            // unchanged, except for buffers and arrays that the body has staged.
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
