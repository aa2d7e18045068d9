//! A wrapped call: buffers staged before it, the host's call, what follows after it.
//!
//! Before the call every buffer of the program that is to be converted gets one that stands for it; the host is given that with the
//! packed type, or what the program gave. After it what was received is unpacked. While a blocking call is in the host, its
//! buffers are kept by `held`; a request keeps its buffers until it has completed (`requests`).

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use ddtc::kind::Direction;
use ddtc_hosts::policy::Call;
use smallvec::SmallVec;

use crate::decision::Purpose;
use crate::host::{HandleWord, Host};
use crate::messages::{Staging, pack, stage};
use crate::partial_element::{Origin, RefusedMessage};
use crate::parts::{Own, Parts, stage_parts};
use crate::pool::Buffer;
use crate::retired;
use crate::status::Mark;
use crate::use_kind::CompletedBy;
use crate::user_buffer::UserBuffer;
use crate::windows::Fetched;

/// A buffer that is sent.
enum Outgoing {
    /// Packed bytes that the host is sending; kept, not read.
    Packed(Buffer),
    /// A message, packed anew at every start.
    Message(Box<Staging>),
    /// Parts of a buffer, the same.
    Parts(Box<Staging>, Box<Parts>),
}

/// A buffer that is received into.
enum Incoming {
    /// A message, of which its status tells how much came.
    Message(Box<Staging>),
    /// Parts of a buffer, all of which come; some are there before.
    Parts(Box<Staging>, Box<Parts>, Own),
    /// Bytes that a get brings, all of it; a call that completes it may come before the request's.
    Fetched(Arc<Fetched>),
}

/// Arrays that a host may read until the operation is complete.
#[allow(dead_code, reason = "owned until then, not read")]
pub(crate) enum Kept {
    Ints(Vec<c_int>),
    Longs(Vec<i64>),
    Words(Vec<u64>),
}

/// When an operation's buffers are packed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Now: it is started by this call.
    Call,
    /// At every start of a persistent operation.
    Start,
}

/// The staged buffers of one call, none where all is the host's: then making, moving and dropping it costs next to nothing.
pub(crate) struct Staged {
    host: &'static Host,
    /// Most bytes of a message.
    max_bytes: i64,
    /// Which call completes its messages.
    completed_by: CompletedBy,
    sends: SmallVec<[Outgoing; 1]>,
    receives: SmallVec<[Incoming; 1]>,
    kept: Vec<Kept>,
}

impl Staged {
    /// Nothing staged yet. `max_bytes`: bytes that the host's call can carry in one message.
    #[inline]
    pub(crate) fn new(host: &'static Host, max_bytes: i64) -> Staged {
        let completed_by = CompletedBy::SameCall;
        Staged {
            host,
            max_bytes,
            completed_by,
            sends: SmallVec::new(),
            receives: SmallVec::new(),
            kept: Vec::new(),
        }
    }

    /// Returns the same for an operation that a later call completes.
    #[inline]
    pub(crate) fn of_a_request(host: &'static Host, max_bytes: i64) -> Staged {
        Staged { completed_by: CompletedBy::LaterCall, ..Staged::new(host, max_bytes) }
    }

    pub(crate) fn host(&self) -> &'static Host {
        self.host
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sends.is_empty() && self.receives.is_empty() && self.kept.is_empty()
    }

    /// Says whether a message is unpacked afterwards, which needs a status.
    pub(crate) fn receives(&self) -> bool {
        self.mark().is_some()
    }

    /// Says whether anything is packed for the call.
    pub(crate) fn packs(&self) -> bool {
        !self.sends.is_empty()
    }

    /// Says whether anything is unpacked afterwards.
    pub(crate) fn unpacks(&self) -> bool {
        !self.receives.is_empty()
    }

    /// Arrays that live as long as the operation.
    pub(crate) fn keep(&mut self, array: Kept) {
        self.kept.push(array);
    }

    /// After a call that has said nothing about the end of its operation: the MPI library may still
    /// use the buffers and arrays, so that they are never used again.
    pub(crate) fn retire(self) {
        if !self.is_empty() {
            let bytes = self.capacity();
            retired::retire(self, bytes);
        }
    }

    /// Returns the bytes that its buffers count for.
    fn capacity(&self) -> usize {
        let sends = self.sends.iter().map(|outgoing| match outgoing {
            Outgoing::Packed(buffer) => buffer.capacity(),
            Outgoing::Message(staging) | Outgoing::Parts(staging, _) => staging.capacity(),
        });
        let receives = self.receives.iter().map(|incoming| match incoming {
            Incoming::Message(staging) | Incoming::Parts(staging, ..) => staging.capacity(),
            Incoming::Fetched(fetched) => fetched.capacity(),
        });
        sends.sum::<usize>() + receives.sum::<usize>()
    }

    /// For an operation whose completion nobody will see: its arrays live on.
    pub(crate) fn forget_arrays(&mut self) {
        std::mem::forget(std::mem::take(&mut self.kept));
    }

    /// Before a send: packs the buffer if it is to be converted. What the host is given.
    ///
    /// # Safety
    /// As `MPI_Send`: if the host would succeed, the buffer is what is given.
    #[inline]
    pub(crate) unsafe fn send(&mut self, given: UserBuffer, peer: c_int) -> UserBuffer {
        let purpose = Purpose::Send(self.completed_by);
        // SAFETY: as the caller promises.
        let packed = unsafe { pack(self.host, given, peer, self.max_bytes, purpose) };
        let Some(packed) = packed else { return given };
        self.sends.push(Outgoing::Packed(packed.buffer));
        packed.replacement
    }

    /// Before a put: packs its origin if it is to be converted. What the host is given.
    ///
    /// # Safety
    /// As the call: if the host would succeed, the origin is what is given.
    #[inline]
    pub(crate) unsafe fn origin(&mut self, given: UserBuffer, target: c_int) -> UserBuffer {
        // SAFETY: as the caller promises.
        let packed =
            unsafe { pack(self.host, given, target, self.max_bytes, Purpose::Put(self.completed_by)) };
        let Some(packed) = packed else { return given };
        self.sends.push(Outgoing::Packed(packed.buffer));
        packed.replacement
    }

    /// Before a get that makes a request: a buffer for what it brings.
    ///
    /// # Safety
    /// As `MPI_Rget`.
    pub(crate) unsafe fn fetch(&mut self, given: UserBuffer, target: c_int, win: HandleWord) -> UserBuffer {
        // SAFETY: as the caller promises; an origin is for what comes by message.
        let staging =
            unsafe { stage(self.host, given, Some(target), self.max_bytes, Origin::Matched, Purpose::Get) };
        let Some(staging) = staging else { return given };
        let replacement = staging.replacement();
        self.receives.push(Incoming::Fetched(Arc::new(Fetched::new(win, target, staging))));
        replacement
    }

    /// Returns the packed origin, for a call that is complete later than it returns and makes no request.
    pub(crate) fn into_packed(mut self) -> Option<Buffer> {
        match self.sends.pop() {
            Some(Outgoing::Packed(buffer)) => Some(buffer),
            _ => None,
        }
    }

    /// Returns the bytes that a get brings.
    pub(crate) fn fetched(&self) -> Option<&Arc<Fetched>> {
        self.receives.iter().find_map(|incoming| match incoming {
            Incoming::Fetched(fetched) => Some(fetched),
            Incoming::Message(_) | Incoming::Parts(..) => None,
        })
    }

    /// Before a persistent send is made: the same, packed at every start by [`Staged::fill`].
    ///
    /// # Safety
    /// As `MPI_Send_init`.
    #[inline]
    pub(crate) unsafe fn send_later(&mut self, given: UserBuffer, peer: c_int) -> UserBuffer {
        let purpose = Purpose::Send(self.completed_by);
        // SAFETY: as the caller promises; an origin is for what is received.
        let Some(staging) =
            (unsafe { stage(self.host, given, Some(peer), self.max_bytes, Origin::Matched, purpose) })
        else {
            return given;
        };
        let replacement = staging.replacement();
        self.sends.push(Outgoing::Message(staging));
        replacement
    }

    /// Before a receive. `peer`: none where no one rank is named.
    ///
    /// # Safety
    /// As `MPI_Recv`.
    #[inline]
    pub(crate) unsafe fn receive(
        &mut self,
        given: UserBuffer,
        peer: Option<c_int>,
        origin: Origin,
    ) -> UserBuffer {
        // SAFETY: as the caller promises.
        let replacement = unsafe { self.received(given, peer, origin, Purpose::Receive(self.completed_by)) };
        for incoming in &self.receives {
            if let Incoming::Message(staging) = incoming {
                // SAFETY: the buffer was made above, and the host has not been given it.
                unsafe { staging.expect() };
            }
        }
        replacement
    }

    /// # Safety
    /// As `MPI_Recv`.
    #[inline]
    unsafe fn received(
        &mut self,
        given: UserBuffer,
        peer: Option<c_int>,
        origin: Origin,
        purpose: Purpose,
    ) -> UserBuffer {
        // SAFETY: as the caller promises.
        let Some(staging) = (unsafe { stage(self.host, given, peer, self.max_bytes, origin, purpose) })
        else {
            return given;
        };
        let replacement = staging.replacement();
        self.receives.push(Incoming::Message(staging));
        replacement
    }

    /// Before an exchange in place: what is sent stands where the answer is received.
    ///
    /// # Safety
    /// As `MPI_Sendrecv_replace`.
    #[inline]
    pub(crate) unsafe fn replace(&mut self, given: UserBuffer, origin: Origin) -> UserBuffer {
        // SAFETY: as the caller promises.
        unsafe {
            let replacement = self.received(given, None, origin, Purpose::Send(self.completed_by));
            for incoming in &self.receives {
                if let Incoming::Message(staging) = incoming {
                    let _ = staging.fill(self.host);
                }
            }
            replacement
        }
    }

    /// Before a collective call: packs what this rank sends, `parts` of its buffer one after the other. What the host is given, as
    /// elements of the type's stand-in. `beside`: as in [`Purpose::Elements`].
    ///
    /// # Safety
    /// As the call: if the host would succeed, the buffer is what is given.
    pub(crate) unsafe fn send_parts(
        &mut self,
        call: Call,
        given: UserBuffer,
        parts: Parts,
        moment: Moment,
        beside: u64,
    ) -> Option<UserBuffer> {
        // SAFETY: as the caller promises.
        let staging = unsafe { stage_parts(self.host, call, given, &parts, beside, self.completed_by)? };
        let replacement = staging.replacement();
        if moment == Moment::Call {
            // SAFETY: as above; `stage_parts` made the buffer for all parts.
            unsafe { staging.move_parts(self.host, &parts, Direction::Pack) };
        }
        self.sends.push(Outgoing::Parts(staging, Box::new(parts)));
        Some(replacement)
    }

    /// Before a collective call: a buffer for what this rank receives in `parts` of its own. `own`: what
    /// `MPI_IN_PLACE` says is there already. `beside`: as in [`Purpose::Elements`].
    ///
    /// # Safety
    /// As the call.
    pub(crate) unsafe fn receive_parts(
        &mut self,
        call: Call,
        given: UserBuffer,
        parts: Parts,
        own: Own,
        moment: Moment,
        beside: u64,
    ) -> Option<UserBuffer> {
        // SAFETY: as the caller promises.
        let staging = unsafe { stage_parts(self.host, call, given, &parts, beside, self.completed_by)? };
        let replacement = staging.replacement();
        if moment == Moment::Call {
            // SAFETY: as above; what is in place is the program's to be read.
            unsafe { staging.expect_parts(self.host, &parts, own) };
        }
        self.receives.push(Incoming::Parts(staging, Box::new(parts), own));
        Some(replacement)
    }

    /// Stages a buffer that is written to a file or read from it, if it is to be converted.
    ///
    /// # Safety
    /// As [`stage`].
    unsafe fn of_file(&self, given: UserBuffer, call: Call) -> Option<Box<Staging>> {
        let purpose = Purpose::File { call, uncached: self.host.profile.uncached };
        // SAFETY: as the caller promises.
        unsafe { stage(self.host, given, None, self.max_bytes, Origin::File, purpose) }
    }

    /// Before a write to a file: packs the buffer if it is to be converted. What the host is given.
    ///
    /// # Safety
    /// As `MPI_File_write`: if the host would succeed, the buffer is what is given.
    pub(crate) unsafe fn write(&mut self, given: UserBuffer) -> UserBuffer {
        // SAFETY: as the caller promises.
        let staging = unsafe { self.of_file(given, Call::FileWrite) };
        // SAFETY: as above.
        let Some(staging) = staging.filter(|staging| unsafe { staging.fill(self.host) }) else {
            return given;
        };
        let replacement = staging.replacement();
        self.sends.push(Outgoing::Message(staging));
        replacement
    }

    /// Before a read from a file, if `there` says that so many bytes are before its end.
    ///
    /// # Safety
    /// As `MPI_File_read`.
    pub(crate) unsafe fn read(&mut self, given: UserBuffer, there: impl FnOnce(i64) -> bool) -> UserBuffer {
        // SAFETY: as the caller promises.
        let staging = unsafe { self.of_file(given, Call::FileRead) };
        let Some(staging) = staging.filter(|staging| there(staging.bytes())) else { return given };
        let replacement = staging.replacement();
        self.receives.push(Incoming::Message(staging));
        replacement
    }

    /// From now on the types' handles may be freed.
    pub(crate) fn forget_handles(&mut self) {
        for incoming in &mut self.receives {
            if let Incoming::Message(staging) | Incoming::Parts(staging, ..) = incoming {
                staging.forget_handle();
            }
        }
        for outgoing in &mut self.sends {
            if let Outgoing::Message(staging) | Outgoing::Parts(staging, _) = outgoing {
                staging.forget_handle();
            }
        }
    }

    /// At a start of a persistent operation: packs what it sends, and what is in place.
    ///
    /// # Safety
    /// The program's buffers must be ready to be sent.
    pub(crate) unsafe fn fill(&self) {
        // SAFETY: as the caller promises.
        unsafe {
            for outgoing in &self.sends {
                match outgoing {
                    Outgoing::Packed(_) => {}
                    Outgoing::Message(staging) => {
                        let _ = staging.fill(self.host);
                    }
                    Outgoing::Parts(staging, parts) => staging.move_parts(self.host, parts, Direction::Pack),
                }
            }
            for incoming in &self.receives {
                match incoming {
                    Incoming::Message(staging) => staging.expect(),
                    Incoming::Parts(staging, parts, own) => staging.expect_parts(self.host, parts, *own),
                    Incoming::Fetched(_) => {}
                }
            }
        }
    }

    /// After an operation that the host calls an error: a message that was longer than the receive is in its buffer all the same, and so it is in the
    /// program's on the bare host.
    ///
    /// # Safety
    /// The call must have failed, or be about to run an error handler of the program; every program's buffer must
    /// be what the call said. The library may still write to the staging buffers: bytes that are copied
    /// meanwhile are as unfinished as they would be in the program's buffer.
    pub(crate) unsafe fn unpack_truncated(&self) {
        for incoming in &self.receives {
            // SAFETY: as the caller promises; what is received was expected.
            unsafe {
                match incoming {
                    Incoming::Message(staging) => staging.unpack_truncated(self.host),
                    Incoming::Parts(staging, parts, _) => staging.unpack_parts_that_came(self.host, parts),
                    Incoming::Fetched(_) => {}
                }
            }
        }
    }

    /// After the operation has completed: unpacks what came. The error if the host would have refused a message's end.
    ///
    /// # Safety
    /// If anything is a message ([`Staged::receives`]), `status` must be that of a completed and successful receive into it; every program's
    /// buffer must be what the call said.
    pub(crate) unsafe fn unpack(&self, status: *mut c_void) -> Option<RefusedMessage> {
        let mut refused = None;
        for incoming in &self.receives {
            // SAFETY: as the caller promises.
            unsafe {
                match incoming {
                    Incoming::Message(staging) => refused = staging.unpack(self.host, status),
                    Incoming::Parts(staging, parts, _) => {
                        staging.move_parts(self.host, parts, Direction::Unpack);
                    }
                    Incoming::Fetched(fetched) => fetched.unpack(self.host),
                }
            }
        }
        refused
    }

    /// How the status of what is received is marked; `None`: no message is, and nothing from a file.
    pub(crate) fn mark(&self) -> Option<Mark> {
        self.receives.iter().find_map(|incoming| match incoming {
            Incoming::Message(staging) => Some(staging.mark()),
            Incoming::Parts(..) | Incoming::Fetched(_) => None,
        })
    }
}
