//! Wrappers of collective calls in which every peer has a type of its own: `MPI_Alltoallw` and
//! `MPI_Neighbor_alltoallw`.
//!
//! ddtc decides separately about the part of each peer. A converted part gets a staging buffer, a
//! displacement to that buffer and a substitute datatype. For all other parts the MPI library gets
//! the program's arguments. The base addresses of both buffers stay the program's too, because the
//! MPI library checks its arguments by them.

use std::ffi::{c_int, c_void};

use ddtc::internal::count::Count;
use ddtc_hosts::policy::Call;

use super::{Collective, Functions, collective};
use crate::comms;
use crate::deciding::look;
use crate::forms::{Form, Forms, forward};
use crate::group::Group;
use crate::handles::{handle_at, set_handle, too_large};
use crate::host::Host;
use crate::neighbours::Neighbours;
use crate::numbers::{Numbers, Vector};
use crate::parts::{Own, Parts, in_place};
use crate::policy::policy;
use crate::signatures::{Handle, In, Out, Types, argument};
use crate::staged::Kept;
use crate::use_kind::UseKind;
use crate::user_buffer::UserBuffer;

collective! {
    /// # Safety
    /// As `MPI_Alltoallw` (MPI 5.0, 6.8), and its nonblocking and persistent forms.
    alltoallw ialltoallw alltoallw_init
    (sendbuf: SendBuf, sendcounts: Counts, sdispls: Displs, sendtypes: Types, recvbuf: RecvBuf, recvcounts: Counts, rdispls: Displs, recvtypes: Types)
    |host, forms, call, comm| {
        let local = in_place(host, sendbuf);
        let blocks = call.known::<N, _, _>(&forms).map_or(0, |g| g.blocks);
        // With `MPI_IN_PLACE`, the send side has neither counts nor displacements.
        let sent = if local { 0 } else { blocks };
        let vectors =
            (Vector::from_arrays(&forms, sendcounts, sdispls, sent), Vector::from_arrays(&forms, recvcounts, rdispls, blocks));
        let (Some(mut out), Some(mut into)) = vectors else { return too_large(host, forms.on) };
        let (mut s_types, mut r_types, mut s_base, mut r_base) = (sendtypes, recvtypes, sendbuf, recvbuf);
        // A displacement of type `int` does not reach from the program's buffer to a staging
        // buffer. So a part is converted only if the MPI library has the large form of the call,
        // whose displacements have 64 bits.
        let has_places = !sdispls.is_null() && !rdispls.is_null();
        if call.group.is_some() && !local && forms.large.is_some() && has_places {
            let s = Peers { base: sendbuf, counts: sendcounts, types: sendtypes, peers: blocks };
            let r = Peers { base: recvbuf, counts: recvcounts, types: recvtypes, peers: blocks };
            let mut s = call.send_each(&s, |i| (*sdispls.add(i)).wide(), |_| true);
            let mut r = call.receive_each(&r, |i| (*rdispls.add(i)).wide(), |_| true);
            if s.is_some() || r.is_some() {
                call.widened = true;
                (s_base, r_base) = (Replacement::base(&s, sendbuf), Replacement::base(&r, recvbuf).cast_mut());
                (s_types, r_types) = (call.types(&mut s, sendtypes), call.types(&mut r, recvtypes));
                out.widen(s.map(|s| s.displs));
                into.widen(r.map(|r| r.displs));
            }
        }
        let (out, into) = (call.kept(out), call.kept(into));
    } => (s_base){out.counts}{out.displs}(s_types)(r_base){into.counts}{into.displs}(r_types)
}

collective! {
    /// # Safety
    /// As `MPI_Neighbor_alltoallw` (MPI 5.0, 8.6.2), and its nonblocking and persistent forms.
    neighbor_alltoallw ineighbor_alltoallw neighbor_alltoallw_init
    (sendbuf: SendBuf, sendcounts: Counts, sdispls: ByteDispls, sendtypes: Types, recvbuf: RecvBuf, recvcounts: Counts, rdispls: ByteDispls, recvtypes: Types)
    |host, forms, call, comm| {
        let all = call.near(forms.narrows::<N>());
        let (sources, destinations) = all.as_ref().map_or((0, 0), |near| (near.sources, near.destinations));
        let counts = (Numbers::from_array(&forms, sendcounts, destinations), Numbers::from_array(&forms, recvcounts, sources));
        let (Some(out), Some(into)) = counts else { return too_large(host, forms.on) };
        let (mut s_types, mut r_types, mut s_places, mut r_places) = (sendtypes, recvtypes, sdispls, rdispls);
        let (mut s_base, mut r_base) = (sendbuf, recvbuf);
        let has_places = !sdispls.is_null() && !rdispls.is_null();
        if let Some(near) = all.filter(|near| near.knows_absent() && call.group.is_some() && has_places) {
            let s = Peers { base: sendbuf, counts: sendcounts, types: sendtypes, peers: destinations };
            let r = Peers { base: recvbuf, counts: recvcounts, types: recvtypes, peers: sources };
            let mut s = call.send_each(&s, |i| *sdispls.add(i) as i64, |i| near.there(i));
            let mut r = call.receive_each(&r, |i| *rdispls.add(i) as i64, |i| near.there(i));
            (s_base, r_base) = (Replacement::base(&s, sendbuf), Replacement::base(&r, recvbuf).cast_mut());
            (s_types, r_types) = (call.types(&mut s, sendtypes), call.types(&mut r, recvtypes));
            (s_places, r_places) = (call.places(s, sdispls), call.places(r, rdispls));
        }
        let (out, into) = (out.kept_by(&mut call.staged), into.kept_by(&mut call.staged));
    } => (s_base){out}(s_places)(s_types)(r_base){into}(r_places)(r_types)
}

/// Returns true if some payload of one of the call's types may be converted in calls of this kind.
/// The lengths of the arrays of types come from the communicator. If these lengths are not known
/// yet, returns true if the policy converts any type in calls of this kind; then the wrapper looks
/// the types up.
///
/// # Safety
/// The arguments must be those of the program's call.
#[inline]
pub(in super::super) unsafe fn wanted(
    host: &'static Host,
    call: Call,
    used: UseKind,
    sendbuf: In,
    sendtypes: Types,
    recvtypes: Types,
    comm: Handle,
) -> bool {
    let peers = host.abi.zip(comms::confirmed(host, comm)).and_then(|(abi, comm)| {
        let (destinations, sources) = match call {
            Call::NeighborAlltoallw => {
                Neighbours::cached(comm).map(|near| (near.destinations, near.sources))?
            }
            _ => Group::cached(comm).map(|group| (group.blocks, group.blocks))?,
        };
        Some((abi, destinations, sources))
    });
    let Some((abi, destinations, sources)) = peers else { return policy(host).any(call) };
    // The MPI library refuses null arrays, so such a call is bypassed.
    if recvtypes.is_null() || sendtypes.is_null() && !in_place(host, sendbuf) {
        return false;
    }
    // For the result it would suffice to find one type that may be converted. But the search does
    // not end there, because each look-up counts a use of the type.
    let any = |types: Types, n: i64| {
        let mut last = None;
        (0..n as usize).fold(false, |found, i| {
            // SAFETY: the array is the program's and not null, and has a handle for each of `n`
            // peers of the communicator.
            let datatype = unsafe { handle_at(host, types.byte_add(i * abi.handle_bytes)) };
            // In most arrays all types are equal. To save look-ups, only a handle that differs from
            // its predecessor is looked up.
            let new = last.replace(datatype) != Some(datatype);
            new && look(host, datatype, 1, call, used).is_wanted || found
        })
    };
    let into = any(recvtypes, sources);
    !in_place(host, sendbuf) && any(sendtypes, destinations) || into
}

/// Returns the types of both sides of a call that the MPI library has carried out. A type that is
/// equal to its predecessor is left out.
///
/// # Safety
/// The arguments must be those of the call that the MPI library has carried out.
#[cold]
pub(in super::super) unsafe fn types(
    host: &'static Host,
    call: Call,
    sendbuf: In,
    sendtypes: Types,
    recvtypes: Types,
    comm: Handle,
) -> Vec<Handle> {
    let peers = match call {
        Call::NeighborAlltoallw => {
            Neighbours::query(host, comm).map(|near| (near.destinations, near.sources))
        }
        _ => Group::ask(host, comm).map(|group| (group.blocks, group.blocks)),
    };
    let (Some((destinations, sources)), Some(abi)) = (peers, host.abi) else { return Vec::new() };
    let destinations = if in_place(host, sendbuf) { 0 } else { destinations };
    let sides = [(sendtypes, destinations), (recvtypes, sources)];
    let all = sides.into_iter().flat_map(|(types, n)| {
        // SAFETY: the MPI library has accepted the array, which has a handle for each of `n` peers
        // of the communicator.
        (0..n as usize).map(move |i| unsafe { handle_at(host, types.byte_add(i * abi.handle_bytes)) })
    });
    let mut all: Vec<Handle> = all.collect();
    all.dedup();
    all
}

/// One side of a call in which every peer has a type of its own: the program's arguments, and the
/// number of peers.
struct Peers<N> {
    base: *const c_void,
    counts: *const N,
    types: Types,
    peers: i64,
}

/// Arguments for the MPI library that replace those of one side of the call, if some part of the
/// side is converted.
struct Replacement {
    /// The program's base address, or the first staging buffer if the program's address is null.
    /// The MPI library would refuse a null base address here, because the substitute datatypes have
    /// bytes at displacement 0.
    base: *const c_void,
    /// Displacements of the parts from `base`, in bytes.
    displs: Vec<i64>,
    /// Handles of the types, one after the other, in the width of the MPI library's handles. The
    /// words only provide aligned memory.
    types: Vec<u64>,
}

impl Replacement {
    /// Returns the base address for one side of the call: that of the replacement if there is one,
    /// else `given`, the program's.
    fn base(side: &Option<Replacement>, given: *const c_void) -> *const c_void {
        side.as_ref().map_or(given, |replacement| replacement.base)
    }
}

impl Collective {
    /// Packs the part for each peer, if the part is to be converted. Peer `i` is considered only if
    /// `there(i)` is true. `place(i)` is the displacement of the part of peer `i` from the base
    /// address, in bytes. Returns `None` if no part is converted.
    ///
    /// # Safety
    /// The arguments must be those of the program's call, whose arrays have an element for each
    /// peer.
    unsafe fn send_each<N: Count>(
        &mut self,
        side: &Peers<N>,
        place: impl Fn(usize) -> i64,
        there: impl Fn(usize) -> bool,
    ) -> Option<Replacement> {
        // SAFETY: the arguments are those of the program's call, as the caller promises.
        unsafe {
            self.stage_each(side, place, |call, i, given| {
                let parts = Parts::Equal { blocks: 1, count: given.count };
                if there(i) { call.send(given, parts) } else { None }
            })
        }
    }

    /// Makes a staging buffer for the part from each peer, if the part is to be converted. The
    /// arguments are as in [`Collective::send_each`]. Returns `None` if no part is converted.
    ///
    /// # Safety
    /// As [`Collective::send_each`].
    unsafe fn receive_each<N: Count>(
        &mut self,
        side: &Peers<N>,
        place: impl Fn(usize) -> i64,
        there: impl Fn(usize) -> bool,
    ) -> Option<Replacement> {
        // SAFETY: the arguments are those of the program's call, as the caller promises.
        unsafe {
            self.stage_each(side, place, |call, i, given| {
                let parts = Parts::Equal { blocks: 1, count: given.count };
                if there(i) { call.receive(given, parts, Own::Nothing) } else { None }
            })
        }
    }

    /// Calls `stage` for the part of each peer, and gathers the staging buffers that `stage`
    /// returns into one [`Replacement`]; `None` if `stage` returns no staging buffer.
    ///
    /// # Safety
    /// As [`Collective::send_each`].
    unsafe fn stage_each<N: Count>(
        &mut self,
        side: &Peers<N>,
        place: impl Fn(usize) -> i64,
        mut stage: impl FnMut(&mut Collective, usize, UserBuffer) -> Option<UserBuffer>,
    ) -> Option<Replacement> {
        let (host, n) = (self.host, usize::try_from(side.peers).ok()?);
        // The MPI library refuses null arrays, so such a call is bypassed.
        if side.counts.is_null() || side.types.is_null() {
            return None;
        }
        let bytes = host.abi?.handle_bytes;
        let mut replacement: Option<Replacement> = None;
        for i in 0..n {
            // SAFETY: the arrays are not null, and have an element for each of `n` peers, as the
            // caller promises.
            let (count, datatype) =
                unsafe { ((*side.counts.add(i)).wide(), handle_at(host, side.types.byte_add(i * bytes))) };
            // The type is looked up here although `wanted` may have looked it up: if the number of
            // peers was not known to `wanted`, no type was looked up there.
            let entry = look(host, datatype, count, self.call, UseKind::Call).entry;
            let buf = side.base.wrapping_byte_offset(place(i) as isize).cast_mut();
            let Some(g) = stage(self, i, UserBuffer { buf, count, datatype, entry }) else { continue };
            let replacement = replacement.get_or_insert_with(|| {
                let mut types = vec![0u64; (n * bytes).div_ceil(8)];
                // SAFETY: the program's array has `n` handles of `bytes` bytes each, as the caller
                // promises, and `types` was made for at least that many bytes.
                unsafe { types.as_mut_ptr().cast::<u8>().copy_from(side.types.cast(), n * bytes) };
                let base = if side.base.is_null() { g.buf.cast_const() } else { side.base };
                let moved = (base.addr() as i64).wrapping_sub(side.base.addr() as i64);
                Replacement { base, displs: (0..n).map(|i| place(i).wrapping_sub(moved)).collect(), types }
            });
            replacement.displs[i] = (g.buf.addr() as i64).wrapping_sub(replacement.base.addr() as i64);
            // SAFETY: `i` is less than `n`, and `types` has room for `n` handles of `bytes` bytes.
            unsafe {
                set_handle(host, replacement.types.as_mut_ptr().byte_add(i * bytes).cast(), g.datatype)
            };
        }
        replacement
    }

    /// Returns the array of types for the MPI library: that of the replacement, which is kept as
    /// long as the operation lives, or the program's array `given` if there is no replacement.
    fn types(&mut self, replacement: &mut Option<Replacement>, given: Types) -> Types {
        let Some(replacement) = replacement else { return given };
        let types = std::mem::take(&mut replacement.types);
        let at = types.as_ptr().cast();
        self.staged.keep(Kept::Words(types));
        at
    }

    /// Returns the array of displacements for the MPI library: that of the replacement, which is
    /// kept as long as the operation lives, or the program's array `given` if there is no
    /// replacement.
    fn places(&mut self, replacement: Option<Replacement>, given: *const isize) -> *const isize {
        let Some(replacement) = replacement else { return given };
        let at = replacement.displs.as_ptr().cast();
        self.staged.keep(Kept::Longs(replacement.displs));
        at
    }
}
