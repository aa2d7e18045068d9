//! Staging of a wrapped call: the work on its buffers before and after the MPI library's call.
//!
//! Before the call, every buffer of the program that is to be converted gets a staging buffer, and
//! the MPI library is given the staging buffer with a substitute datatype. For every other buffer
//! the MPI library is given the program's arguments. After the call, received bytes are unpacked.
//! While a blocking call is in the MPI library, [`crate::call_memory`] keeps its staging buffers. A
//! request keeps its staging buffers until it has completed ([`crate::requests`]).

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use ddtc::internal::kind::Direction;
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

/// Staging buffer from which the MPI library sends, or writes to a file.
enum Outgoing {
    /// Packed bytes that the MPI library is sending. They are kept alive, and not read here.
    Packed(Buffer),
    /// Message of a persistent send, which is packed again at every start, or bytes that are
    /// written to a file.
    Message(Box<Staging>),
    /// Parts of a send buffer of a collective call. They are packed in the call, or at every start
    /// if the call makes a persistent operation.
    Parts(Box<Staging>, Box<Parts>),
}

/// Staging buffer into which the MPI library receives, or reads from a file.
enum Incoming {
    /// Message, or bytes that are read from a file. The status of the call has the number of bytes
    /// that came.
    Message(Box<Staging>),
    /// Parts of a receive buffer of a collective call. A successful call fills all of them, so no
    /// status is needed. [`Own`] says which parts are in the buffer before the call, because of
    /// `MPI_IN_PLACE`.
    Parts(Box<Staging>, Box<Parts>, Own),
    /// Bytes that a get brings. A successful get brings all of them, so no status is needed. The
    /// get may be completed by a call that completes all operations of the window, before any call
    /// completes the get's request.
    Fetched(Arc<Fetched>),
}

/// Array that ddtc owns and passes to the MPI library as an argument of a call. The MPI library may
/// read the array until the operation of the call is complete.
#[allow(dead_code, reason = "owned until then, not read")]
pub(crate) enum Kept {
    Ints(Vec<c_int>),
    Longs(Vec<i64>),
    Words(Vec<u64>),
}

/// Time at which the buffers of an operation are packed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// In the call that makes the operation, because that call starts it.
    Call,
    /// At every start of a persistent operation.
    Start,
}

/// Staged buffers of one call. If the whole call is bypassed there are none, and then making,
/// moving and dropping this value costs next to nothing.
pub(crate) struct Staged {
    host: &'static Host,
    /// Maximum number of bytes that the call of the MPI library can carry in one message.
    max_bytes: i64,
    /// Kind of call that completes the messages of this call: the same call, or a later call.
    completed_by: CompletedBy,
    sends: SmallVec<[Outgoing; 1]>,
    receives: SmallVec<[Incoming; 1]>,
    kept: Vec<Kept>,
}

impl Staged {
    /// Makes a value without buffers, for a blocking call. `max_bytes`: maximum number of bytes
    /// that the call of the MPI library can carry in one message.
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

    /// Makes a value without buffers, for an operation that a later call completes. `max_bytes`: as
    /// in [`Staged::new`].
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

    /// Returns true if a message, or bytes from a file, are to be unpacked after the call. The
    /// number of bytes is then read from the call's status, so the call must be given one.
    pub(crate) fn receives(&self) -> bool {
        self.mark().is_some()
    }

    /// Returns true if the MPI library sends a buffer, or writes it to a file, from a staging
    /// buffer.
    pub(crate) fn packs(&self) -> bool {
        !self.sends.is_empty()
    }

    /// Returns true if anything is unpacked after the call.
    pub(crate) fn unpacks(&self) -> bool {
        !self.receives.is_empty()
    }

    /// Keeps an array that is an argument of the call, as long as the operation lives.
    pub(crate) fn keep(&mut self, array: Kept) {
        self.kept.push(array);
    }

    /// Takes the buffers and arrays out of use until the process ends. Called after a call whose
    /// result does not show whether its operation has ended, so that the MPI library may still use
    /// them.
    pub(crate) fn retire(self) {
        if !self.is_empty() {
            let bytes = self.capacity();
            retired::retire(self, bytes);
        }
    }

    /// Returns how many bytes of the limit on staging buffers these staging buffers take.
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

    /// Leaks the kept arrays of an operation whose completion ddtc will not see, because the MPI
    /// library may read the arrays until the completion.
    pub(crate) fn forget_arrays(&mut self) {
        std::mem::forget(std::mem::take(&mut self.kept));
    }

    /// Packs the buffer of a send if it is to be converted. Returns the arguments for the MPI
    /// library.
    ///
    /// # Safety
    /// As for `MPI_Send`: if the MPI library's own call would succeed, the buffer must be what
    /// `given` says.
    #[inline]
    pub(crate) unsafe fn send(&mut self, given: UserBuffer, peer: c_int) -> UserBuffer {
        let purpose = Purpose::Send(self.completed_by);
        // SAFETY: as the caller promises.
        let packed = unsafe { pack(self.host, given, peer, self.max_bytes, purpose) };
        let Some(packed) = packed else { return given };
        self.sends.push(Outgoing::Packed(packed.buffer));
        packed.replacement
    }

    /// Packs the origin of a put if it is to be converted. Returns the arguments for the MPI
    /// library.
    ///
    /// # Safety
    /// As for the put: if the MPI library's own call would succeed, the origin must be what `given`
    /// says.
    #[inline]
    pub(crate) unsafe fn origin(&mut self, given: UserBuffer, target: c_int) -> UserBuffer {
        // SAFETY: as the caller promises.
        let packed =
            unsafe { pack(self.host, given, target, self.max_bytes, Purpose::Put(self.completed_by)) };
        let Some(packed) = packed else { return given };
        self.sends.push(Outgoing::Packed(packed.buffer));
        packed.replacement
    }

    /// Stages the buffer of a get that makes a request, if the buffer is to be converted. The MPI
    /// library then writes the bytes that the get brings to the staging buffer. Returns the
    /// arguments for the MPI library.
    ///
    /// # Safety
    /// As for `MPI_Rget`.
    pub(crate) unsafe fn fetch(&mut self, given: UserBuffer, target: c_int, win: HandleWord) -> UserBuffer {
        // SAFETY: as the caller promises. An `Origin` is looked at only for messages and files, so
        // any value does for a get.
        let staging = unsafe {
            stage(
                self.host,
                given,
                Some(target),
                self.max_bytes,
                Origin::Matched,
                Purpose::Get,
                Direction::Unpack,
            )
        };
        let Some(staging) = staging else { return given };
        let replacement = staging.replacement();
        self.receives.push(Incoming::Fetched(Arc::new(Fetched::new(win, target, staging))));
        replacement
    }

    /// Returns the packed origin of a put; `None` if the put is bypassed. A put makes no request
    /// and returns before it is complete, so the packed origin must live longer than this value.
    pub(crate) fn into_packed(mut self) -> Option<Buffer> {
        match self.sends.pop() {
            Some(Outgoing::Packed(buffer)) => Some(buffer),
            _ => None,
        }
    }

    /// Returns the staging buffer of a get, if there is one.
    pub(crate) fn fetched(&self) -> Option<&Arc<Fetched>> {
        self.receives.iter().find_map(|incoming| match incoming {
            Incoming::Fetched(fetched) => Some(fetched),
            Incoming::Message(_) | Incoming::Parts(..) => None,
        })
    }

    /// Stages the buffer of a persistent send if the buffer is to be converted. [`Staged::fill`]
    /// packs it at every start. Returns the arguments for the MPI library.
    ///
    /// # Safety
    /// As for `MPI_Send_init`.
    #[inline]
    pub(crate) unsafe fn send_later(&mut self, given: UserBuffer, peer: c_int) -> UserBuffer {
        let purpose = Purpose::LaterSend;
        // SAFETY: as the caller promises. An `Origin` is looked at only for what is received, so
        // any value does for a send.
        let Some(staging) = (unsafe {
            stage(self.host, given, Some(peer), self.max_bytes, Origin::Matched, purpose, Direction::Pack)
        }) else {
            return given;
        };
        let replacement = staging.replacement();
        self.sends.push(Outgoing::Message(staging));
        replacement
    }

    /// Stages the buffer of a receive if the buffer is to be converted. Returns the arguments for
    /// the MPI library. `peer`: the sender's rank; none if the call does not name a single rank.
    ///
    /// # Safety
    /// As for `MPI_Recv`.
    #[inline]
    pub(crate) unsafe fn receive(
        &mut self,
        given: UserBuffer,
        peer: Option<c_int>,
        origin: Origin,
    ) -> UserBuffer {
        // SAFETY: as the caller promises.
        unsafe { self.expected(given, peer, origin, Purpose::Receive(self.completed_by)) }
    }

    /// Stages the buffer of a persistent receive if the buffer is to be converted. Returns the
    /// arguments for the MPI library.
    ///
    /// # Safety
    /// As for `MPI_Recv_init`.
    #[inline]
    pub(crate) unsafe fn receive_later(
        &mut self,
        given: UserBuffer,
        peer: c_int,
        origin: Origin,
    ) -> UserBuffer {
        // SAFETY: as the caller promises.
        unsafe { self.expected(given, Some(peer), origin, Purpose::LaterReceive) }
    }

    /// Stages the buffer of a receive for `purpose`, and marks the end of the staging buffer.
    ///
    /// # Safety
    /// As for `MPI_Recv` or, if `purpose` is [`Purpose::LaterReceive`], for `MPI_Recv_init`.
    #[inline]
    unsafe fn expected(
        &mut self,
        given: UserBuffer,
        peer: Option<c_int>,
        origin: Origin,
        purpose: Purpose,
    ) -> UserBuffer {
        // SAFETY: as the caller promises.
        let replacement = unsafe { self.received(given, peer, origin, purpose) };
        for incoming in &self.receives {
            if let Incoming::Message(staging) = incoming {
                // SAFETY: the staging buffers of this call were just made, and the MPI library has
                // not been given any of them yet.
                unsafe { staging.expect() };
            }
        }
        replacement
    }

    /// Stages the buffer of a receive as [`Staged::expected`] does, but does not mark the end of the
    /// staging buffer. The mark shows after an error whether a message has filled the staging
    /// buffer.
    ///
    /// # Safety
    /// As for `MPI_Recv`.
    #[inline]
    unsafe fn received(
        &mut self,
        given: UserBuffer,
        peer: Option<c_int>,
        origin: Origin,
        purpose: Purpose,
    ) -> UserBuffer {
        // SAFETY: as the caller promises.
        let Some(staging) =
            (unsafe { stage(self.host, given, peer, self.max_bytes, origin, purpose, Direction::Unpack) })
        else {
            return given;
        };
        let replacement = staging.replacement();
        self.receives.push(Incoming::Message(staging));
        replacement
    }

    /// Stages the buffer of an `MPI_Sendrecv_replace` if the buffer is to be converted, and packs
    /// it. The other message is received into the same staging buffer, over the bytes that are
    /// sent. Returns the arguments for the MPI library.
    ///
    /// # Safety
    /// As for `MPI_Sendrecv_replace`.
    #[inline]
    pub(crate) unsafe fn replace(&mut self, given: UserBuffer, origin: Origin) -> UserBuffer {
        // SAFETY: as the caller promises. The staging buffer was just made, and has room for the
        // message.
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

    /// Stages the parts of a buffer that this rank sends in a collective call, one after the other,
    /// if they are to be converted. If `moment` is [`Moment::Call`], also packs them. Returns the
    /// arguments for the MPI library, with a count of elements of the substitute datatype. Returns
    /// no arguments if the buffer is bypassed. `convert_below`: as in [`Purpose::Elements`].
    ///
    /// # Safety
    /// As for the collective call: if the MPI library's own call would succeed, the buffer must be
    /// what `given` says.
    pub(crate) unsafe fn send_parts(
        &mut self,
        call: Call,
        given: UserBuffer,
        parts: Parts,
        moment: Moment,
        convert_below: u64,
    ) -> Option<UserBuffer> {
        // SAFETY: as the caller promises.
        let staging = unsafe {
            stage_parts(self.host, call, given, &parts, convert_below, self.completed_by, Direction::Pack)?
        };
        let replacement = staging.replacement();
        if moment == Moment::Call {
            // SAFETY: as the caller promises. `stage_parts` has made the staging buffer with room
            // for all parts.
            unsafe { staging.move_parts(self.host, &parts, Direction::Pack) };
        }
        self.sends.push(Outgoing::Parts(staging, Box::new(parts)));
        Some(replacement)
    }

    /// Stages the parts of a buffer that this rank receives into in a collective call, if they are
    /// to be converted. Returns the arguments for the MPI library; no arguments if the buffer is
    /// bypassed. `own`: parts that are in the buffer before the call because of `MPI_IN_PLACE`;
    /// they are packed here if `moment` is [`Moment::Call`]. `convert_below`: as in
    /// [`Purpose::Elements`].
    ///
    /// # Safety
    /// As for the collective call.
    pub(crate) unsafe fn receive_parts(
        &mut self,
        call: Call,
        given: UserBuffer,
        parts: Parts,
        own: Own,
        moment: Moment,
        convert_below: u64,
    ) -> Option<UserBuffer> {
        // SAFETY: as the caller promises.
        let staging = unsafe {
            stage_parts(self.host, call, given, &parts, convert_below, self.completed_by, Direction::Unpack)?
        };
        let replacement = staging.replacement();
        if moment == Moment::Call {
            // SAFETY: as the caller promises. The MPI library has not been given the staging buffer
            // yet. The parts that are in place may be read, because the collective call itself
            // would read them.
            unsafe { staging.expect_parts(self.host, &parts, own) };
        }
        self.receives.push(Incoming::Parts(staging, Box::new(parts), own));
        Some(replacement)
    }

    /// Stages a buffer that is written to a file or read from it, if it is to be converted.
    ///
    /// # Safety
    /// As for [`stage`].
    unsafe fn of_file(&self, given: UserBuffer, call: Call) -> Option<Box<Staging>> {
        let purpose = Purpose::File { call, uncached: self.host.profile.uncached };
        let direction = if call == Call::FileWrite { Direction::Pack } else { Direction::Unpack };
        // SAFETY: as the caller promises.
        unsafe { stage(self.host, given, None, self.max_bytes, Origin::File, purpose, direction) }
    }

    /// Packs the buffer of a write to a file if it is to be converted. Returns the arguments for
    /// the MPI library.
    ///
    /// # Safety
    /// As for `MPI_File_write`: if the MPI library's own call would succeed, the buffer must be
    /// what `given` says.
    pub(crate) unsafe fn write(&mut self, given: UserBuffer) -> UserBuffer {
        // SAFETY: as the caller promises.
        let staging = unsafe { self.of_file(given, Call::FileWrite) };
        // SAFETY: as the caller promises.
        let Some(staging) = staging.filter(|staging| unsafe { staging.fill(self.host) }) else {
            return given;
        };
        let replacement = staging.replacement();
        self.sends.push(Outgoing::Message(staging));
        replacement
    }

    /// Stages the buffer of a read from a file if the buffer is to be converted and `there` returns
    /// true. `there` is given the number of bytes of the buffer, and says whether that many bytes
    /// lie before the end of the file. Returns the arguments for the MPI library.
    ///
    /// # Safety
    /// As for `MPI_File_read`.
    pub(crate) unsafe fn read(&mut self, given: UserBuffer, there: impl FnOnce(i64) -> bool) -> UserBuffer {
        // SAFETY: as the caller promises.
        let staging = unsafe { self.of_file(given, Call::FileRead) };
        let Some(staging) = staging.filter(|staging| there(staging.bytes())) else { return given };
        let replacement = staging.replacement();
        self.receives.push(Incoming::Message(staging));
        replacement
    }

    /// Forgets the handles of the types of all staged buffers, because the program may free these
    /// types from now on.
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

    /// Prepares the staging buffers at a start of a persistent operation. Packs everything that the
    /// operation sends, and the parts that are in place because of `MPI_IN_PLACE`. Marks the ends
    /// of the staging buffers into which messages and other parts come.
    ///
    /// # Safety
    /// The operation must be inactive, and the program's buffers must be ready to be sent.
    pub(crate) unsafe fn fill(&self) {
        // SAFETY: the program's buffers are ready, as the caller promises. The operation is
        // inactive, so the MPI library does not use the staging buffers.
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

    /// Unpacks the messages and parts that have come completely in an operation that the MPI
    /// library reports as an error. If a message is longer than its receive, its beginning is in
    /// the staging buffer, and without ddtc it would be in the program's buffer.
    ///
    /// # Safety
    /// The call or the start of the operation must have failed or may have failed, or the call must
    /// be about to run an error handler of the program. Every buffer of the program must be what
    /// the call said. The MPI library is allowed to write to the staging buffers meanwhile, because
    /// bytes that are copied then are as unfinished as they would be in the program's buffer.
    pub(crate) unsafe fn unpack_truncated(&self) {
        for incoming in &self.receives {
            // SAFETY: as the caller promises. Before the call the ends of messages and parts were
            // marked, or their bytes were written. Nothing is unpacked after reads from files.
            unsafe {
                match incoming {
                    Incoming::Message(staging) => staging.unpack_truncated(self.host),
                    Incoming::Parts(staging, parts, _) => staging.unpack_parts_that_came(self.host, parts),
                    Incoming::Fetched(_) => {}
                }
            }
        }
    }

    /// Unpacks the received bytes after the operation has completed. Returns the error if the MPI
    /// library would have refused a message because it ends inside a basic element.
    ///
    /// # Safety
    /// If a message was received or a file was read ([`Staged::receives`]), `status` must be that
    /// of a completed and successful receive or read into the staging buffer. Every buffer of the
    /// program must be what the call said.
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

    /// Returns the mark for the status of the call, which shows whether the MPI library has written
    /// the status; none if neither a message nor bytes of a file are received.
    pub(crate) fn mark(&self) -> Option<Mark> {
        self.receives.iter().find_map(|incoming| match incoming {
            Incoming::Message(staging) => Some(staging.mark()),
            Incoming::Parts(..) | Incoming::Fetched(_) => None,
        })
    }
}
