//! A wrapped call: buffers staged before it, the host's call, what follows after it.
//!
//! Before the call every buffer of the program that is to be converted gets one that stands for it; the host is given that with the
//! packed type, or what the program gave. After it what was received is unpacked. A blocking call is one function
//! ([`Staged::receiving`]); a request keeps its buffers until it has completed (`requests`).

use std::ffi::{c_int, c_void};

use smallvec::SmallVec;

use crate::host::Host;
use crate::messages::{Given, Staging, Use, pack, stage};
use crate::partial_element::{Origin, RefusedMessage};
use crate::parts::{Own, Parts, stage_parts};
use crate::pool::Buffer;
use crate::status::{Status, mark};

/// A buffer that is sent.
enum Outgoing {
    /// Packed bytes that the host is sending; kept, not read.
    Packed(#[allow(dead_code, reason = "owned until the host has sent it")] Buffer),
    /// Packed anew at every start.
    Repacked(Staging),
}

/// The staged buffers of one call, none where all is the host's.
pub(crate) struct Staged {
    host: &'static Host,
    /// Most bytes of a message.
    most: i64,
    sends: SmallVec<[Outgoing; 1]>,
    receives: SmallVec<[Staging; 1]>,
}

impl Staged {
    /// Nothing staged yet. `most`: bytes that the host's call can carry in one message.
    #[inline]
    pub(crate) fn new(host: &'static Host, most: i64) -> Staged {
        Staged { host, most, sends: SmallVec::new(), receives: SmallVec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sends.is_empty() && self.receives.is_empty()
    }

    /// Whether anything is unpacked afterwards, which needs a status.
    pub(crate) fn receives(&self) -> bool {
        !self.receives.is_empty()
    }

    /// Before a send: packs the buffer if it is to be converted. What the host is given.
    ///
    /// # Safety
    /// As `MPI_Send`: if the host would succeed, the buffer is what is given.
    #[inline]
    pub(crate) unsafe fn send(&mut self, given: Given, peer: c_int) -> Given {
        // SAFETY: as the caller promises.
        let packed = unsafe { pack(self.host, given, peer, self.most) };
        let Some(packed) = packed else { return given };
        self.sends.push(Outgoing::Packed(packed.buffer));
        packed.instead
    }

    /// Before a persistent send is made: the same, packed at every start by [`Staged::fill`].
    ///
    /// # Safety
    /// As `MPI_Send_init`.
    #[inline]
    pub(crate) unsafe fn send_later(&mut self, given: Given, peer: c_int) -> Given {
        // SAFETY: as the caller promises; an origin is for what is received.
        let Some(staging) =
            (unsafe { stage(self.host, given, Some(peer), self.most, Origin::Matched, Use::Send) })
        else {
            return given;
        };
        let instead = staging.instead();
        self.sends.push(Outgoing::Repacked(staging));
        instead
    }

    /// Before a receive. `peer`: none where no one rank is named.
    ///
    /// # Safety
    /// As `MPI_Recv`.
    #[inline]
    pub(crate) unsafe fn receive(&mut self, given: Given, peer: Option<c_int>, origin: Origin) -> Given {
        // SAFETY: as the caller promises.
        unsafe { self.received(given, peer, origin, Use::Receive) }
    }

    /// # Safety
    /// As `MPI_Recv`.
    #[inline]
    unsafe fn received(&mut self, given: Given, peer: Option<c_int>, origin: Origin, used: Use) -> Given {
        // SAFETY: as the caller promises.
        let Some(staging) = (unsafe { stage(self.host, given, peer, self.most, origin, used) }) else {
            return given;
        };
        let instead = staging.instead();
        self.receives.push(staging);
        instead
    }

    /// Before an exchange in place: what is sent stands where the answer is received.
    ///
    /// # Safety
    /// As `MPI_Sendrecv_replace`.
    #[inline]
    pub(crate) unsafe fn replace(&mut self, given: Given, origin: Origin) -> Given {
        // SAFETY: as the caller promises.
        unsafe {
            let instead = self.received(given, None, origin, Use::Send);
            self.receives.iter().for_each(|staging| staging.fill(self.host));
            instead
        }
    }

    /// Before a collective call: packs what this rank sends, `parts` of its buffer one after the other. What the host is given, as
    /// elements of the type's twin.
    ///
    /// # Safety
    /// As the call: if the host would succeed, the buffer is what is given.
    pub(crate) unsafe fn send_parts(&mut self, given: Given, parts: Parts<'_>) -> Option<Given> {
        // SAFETY: as the caller promises.
        let staging = unsafe { stage_parts(self.host, given, parts)? };
        let instead = staging.instead();
        // SAFETY: as above; the buffer has room for all parts.
        unsafe { staging.fill_parts(self.host, parts) };
        self.sends.push(Outgoing::Repacked(staging));
        Some(instead)
    }

    /// Before a collective call: a buffer for what this rank receives in `parts` of its own. `own`: the part that `MPI_IN_PLACE` says is
    /// there already.
    ///
    /// # Safety
    /// As the call.
    pub(crate) unsafe fn receive_parts(&mut self, given: Given, parts: Parts<'_>, own: Own) -> Option<Given> {
        // SAFETY: as the caller promises.
        let staging = unsafe { stage_parts(self.host, given, parts)? };
        let instead = staging.instead();
        // SAFETY: as above; what is in place is the program's to be read.
        unsafe {
            match own {
                Own::Nothing => {}
                Own::Part(i) => staging.fill_part(self.host, parts, i),
                Own::All => staging.fill_parts(self.host, parts),
            }
        }
        self.receives.push(staging);
        Some(instead)
    }

    /// After a collective call that the host has carried out: unpacks all parts.
    ///
    /// # Safety
    /// As the call; `parts` must be those that were staged.
    pub(crate) unsafe fn unpack_parts(&self, parts: Parts<'_>) {
        for staging in &self.receives {
            // SAFETY: as the caller promises.
            unsafe { staging.unpack_parts(self.host, parts) };
        }
    }

    /// From now on the types' handles may be freed.
    pub(crate) fn without_handles(mut self) -> Staged {
        self.receives.iter_mut().for_each(Staging::forget_handle);
        for outgoing in &mut self.sends {
            if let Outgoing::Repacked(staging) = outgoing {
                staging.forget_handle();
            }
        }
        self
    }

    /// At a start of a persistent operation: packs what it sends.
    ///
    /// # Safety
    /// The program's buffers must be ready to be sent.
    pub(crate) unsafe fn fill(&self) {
        for outgoing in &self.sends {
            if let Outgoing::Repacked(staging) = outgoing {
                // SAFETY: as the caller promises.
                unsafe { staging.fill(self.host) };
            }
        }
    }

    /// After a message was received: unpacks it. The error if the host would have refused its end.
    ///
    /// # Safety
    /// `status` must be that of a completed and successful receive into the staged buffer, which is the only one, and the program's buffer
    /// must be what the receive said.
    pub(crate) unsafe fn unpack(&self, status: *mut c_void) -> Option<RefusedMessage> {
        // SAFETY: as the caller promises.
        self.receives.first().and_then(|staging| unsafe { staging.unpack(self.host, status) })
    }

    /// Runs a receiving call with a status that can be read, and unpacks after its success.
    ///
    /// # Safety
    /// `status` must be null, the host's mark for none, or a status; `call` must be a receive into the staged buffer.
    pub(crate) unsafe fn receiving(
        self,
        status: *mut c_void,
        call: impl FnOnce(*mut c_void) -> c_int,
    ) -> c_int {
        let Some(abi) = self.host.abi.filter(|_| self.receives()) else { return call(status) };
        if status.is_null() && abi.status_ignore != 0 {
            // An error, and the host's to raise.
            return call(status);
        }
        let mut own = Status::new();
        let status = own.unless(abi, status);
        // SAFETY: a status, the user's or ours.
        let marked = unsafe { mark(abi, status) };
        let code = call(status);
        // SAFETY: the same status; if the receive has succeeded it is its.
        let refused =
            unsafe { if marked.written(abi, status) && code == 0 { self.unpack(status) } else { None } };
        refused.map_or(code, |refused| refused.raise(self.host))
    }
}
