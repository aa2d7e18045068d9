//! Calls in which every peer has a type of its own.
//!
//! A part that is converted gets a buffer, a place and a type of its own; the others stay the program's, and so do the bases of both buffers, by
//! which a host judges what it refuses.

use std::ffi::{c_int, c_void};

use ddtc::count::Count;
use ddtc_hosts::policy::Call;

use super::{Collective, When, collective};
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
    /// As `MPI_Alltoallw` (MPI 5.0, 6.8) and its kin.
    alltoallw ialltoallw alltoallw_init
    (sendbuf: SendBuf, sendcounts: Counts, sdispls: Displs, sendtypes: Types, recvbuf: RecvBuf, recvcounts: Counts, rdispls: Displs, recvtypes: Types)
    |host, forms, call, comm| {
        let local = in_place(host, sendbuf);
        let blocks = call.known::<N, _, _>(&forms).map_or(0, |g| g.blocks);
        // What is sent in place has neither counts nor displacements.
        let sent = if local { 0 } else { blocks };
        let vectors =
            (Vector::of(&forms, sendcounts, sdispls, sent), Vector::of(&forms, recvcounts, rdispls, blocks));
        let (Some(mut out), Some(mut into)) = vectors else { return too_large(host, forms.on) };
        let (mut s_types, mut r_types, mut s_base, mut r_base) = (sendtypes, recvtypes, sendbuf, recvbuf);
        // Places in an `int` do not reach a buffer of ours.
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
    /// As `MPI_Neighbor_alltoallw` (MPI 5.0, 8.6.2) and its kin.
    neighbor_alltoallw ineighbor_alltoallw neighbor_alltoallw_init
    (sendbuf: SendBuf, sendcounts: Counts, sdispls: ByteDispls, sendtypes: Types, recvbuf: RecvBuf, recvcounts: Counts, rdispls: ByteDispls, recvtypes: Types)
    |host, forms, call, comm| {
        let all = call.near(forms.narrows::<N>());
        let (sources, destinations) = all.as_ref().map_or((0, 0), |near| (near.sources, near.destinations));
        let counts = (Numbers::of(&forms, sendcounts, destinations), Numbers::of(&forms, recvcounts, sources));
        let (Some(out), Some(into)) = counts else { return too_large(host, forms.on) };
        let (mut s_types, mut r_types, mut s_places, mut r_places) = (sendtypes, recvtypes, sdispls, rdispls);
        let (mut s_base, mut r_base) = (sendbuf, recvbuf);
        let has_places = !sdispls.is_null() && !rdispls.is_null();
        if let Some(near) = all.filter(|near| near.told_apart() && call.group.is_some() && has_places) {
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

/// Says whether the policy converts a type of a call, or that is not known: then the call looks by itself.
///
/// # Safety
/// As the call.
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
    let peers = host.abi.zip(comms::find(host, comm)).and_then(|(abi, comm)| {
        let (destinations, sources) = match call {
            Call::NeighborAlltoallw => Neighbours::met(comm).map(|near| (near.destinations, near.sources))?,
            _ => Group::met(comm).map(|group| (group.blocks, group.blocks))?,
        };
        Some((abi, destinations, sources))
    });
    let Some((abi, destinations, sources)) = peers else { return policy(host).any(call) };
    // The library refuses them.
    if recvtypes.is_null() || sendtypes.is_null() && !in_place(host, sendbuf) {
        return false;
    }
    // All are looked at, though one is enough: each is used.
    let any = |types: Types, n: i64| {
        let mut last = None;
        (0..n as usize).fold(false, |found, i| {
            // SAFETY: an array of as many handles, as the caller promises.
            let datatype = unsafe { handle_at(host, types.byte_add(i * abi.handle_bytes)) };
            // Most arrays have one type throughout.
            let new = last.replace(datatype) != Some(datatype);
            new && look(host, datatype, 1, call, used).is_wanted || found
        })
    };
    let into = any(recvtypes, sources);
    !in_place(host, sendbuf) && any(sendtypes, destinations) || into
}

/// Returns the types of a call that the host has carried out, each once in a row.
///
/// # Safety
/// As the call.
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
        Call::NeighborAlltoallw => Neighbours::of(host, comm).map(|near| (near.destinations, near.sources)),
        _ => Group::ask(host, comm).map(|group| (group.blocks, group.blocks)),
    };
    let (Some((destinations, sources)), Some(abi)) = (peers, host.abi) else { return Vec::new() };
    let destinations = if in_place(host, sendbuf) { 0 } else { destinations };
    let sides = [(sendtypes, destinations), (recvtypes, sources)];
    let all = sides.into_iter().flat_map(|(types, n)| {
        // SAFETY: an array of as many handles, as the caller promises.
        (0..n as usize).map(move |i| unsafe { handle_at(host, types.byte_add(i * abi.handle_bytes)) })
    });
    let mut all: Vec<Handle> = all.collect();
    all.dedup();
    all
}

/// One side of such a call.
struct Peers<N> {
    base: *const c_void,
    counts: *const N,
    types: Types,
    peers: i64,
}

/// Arguments for the host for a side of which something is converted.
struct Replacement {
    /// The program's, or where that is null a buffer of ours: with bytes at their start the host would refuse a null buffer.
    base: *const c_void,
    /// Bytes from the base.
    displs: Vec<i64>,
    /// Types in the width of the host.
    types: Vec<u64>,
}

impl Replacement {
    /// The base of a side.
    fn base(side: &Option<Replacement>, given: *const c_void) -> *const c_void {
        side.as_ref().map_or(given, |replacement| replacement.base)
    }
}

impl Collective {
    /// Before the call: packs what goes to each peer that is `there`, if it is to be converted. `place`: bytes from the base to a part.
    ///
    /// # Safety
    /// As the call; the arrays have as many elements as there are peers.
    unsafe fn send_each<N: Count>(
        &mut self,
        side: &Peers<N>,
        place: impl Fn(usize) -> i64,
        there: impl Fn(usize) -> bool,
    ) -> Option<Replacement> {
        // SAFETY: as the caller promises.
        unsafe {
            self.each(side, place, |call, i, given| {
                let parts = Parts::Equal { blocks: 1, count: given.count };
                if there(i) { call.send(given, parts) } else { None }
            })
        }
    }

    /// Before the call: a buffer for what comes from each peer that is `there`.
    ///
    /// # Safety
    /// As [`Collective::send_each`].
    unsafe fn receive_each<N: Count>(
        &mut self,
        side: &Peers<N>,
        place: impl Fn(usize) -> i64,
        there: impl Fn(usize) -> bool,
    ) -> Option<Replacement> {
        // SAFETY: as the caller promises.
        unsafe {
            self.each(side, place, |call, i, given| {
                let parts = Parts::Equal { blocks: 1, count: given.count };
                if there(i) { call.receive(given, parts, Own::Nothing) } else { None }
            })
        }
    }

    unsafe fn each<N: Count>(
        &mut self,
        side: &Peers<N>,
        place: impl Fn(usize) -> i64,
        mut stage: impl FnMut(&mut Collective, usize, UserBuffer) -> Option<UserBuffer>,
    ) -> Option<Replacement> {
        let (host, n) = (self.host, usize::try_from(side.peers).ok()?);
        // The library refuses null arrays.
        if side.counts.is_null() || side.types.is_null() {
            return None;
        }
        let bytes = host.abi?.handle_bytes;
        let mut replacement: Option<Replacement> = None;
        for i in 0..n {
            // SAFETY: arrays of as many elements, as the caller promises.
            let (count, datatype) =
                unsafe { ((*side.counts.add(i)).wide(), handle_at(host, side.types.byte_add(i * bytes))) };
            // Who the peers are may have been asked only now.
            let entry = look(host, datatype, count, self.call, UseKind::Call).entry;
            let buf = side.base.wrapping_byte_offset(place(i) as isize).cast_mut();
            let Some(g) = stage(self, i, UserBuffer { buf, count, datatype, entry }) else { continue };
            let replacement = replacement.get_or_insert_with(|| {
                let mut types = vec![0u64; (n * bytes).div_ceil(8)];
                // SAFETY: that many bytes of handles, and room for them.
                unsafe { types.as_mut_ptr().cast::<u8>().copy_from(side.types.cast(), n * bytes) };
                let base = if side.base.is_null() { g.buf.cast_const() } else { side.base };
                let moved = (base.addr() as i64).wrapping_sub(side.base.addr() as i64);
                Replacement { base, displs: (0..n).map(|i| place(i).wrapping_sub(moved)).collect(), types }
            });
            replacement.displs[i] = (g.buf.addr() as i64).wrapping_sub(replacement.base.addr() as i64);
            // SAFETY: a place of the array.
            unsafe {
                set_handle(host, replacement.types.as_mut_ptr().byte_add(i * bytes).cast(), g.datatype)
            };
        }
        replacement
    }

    /// Types for the host, which live as long as the operation.
    fn types(&mut self, replacement: &mut Option<Replacement>, given: Types) -> Types {
        let Some(replacement) = replacement else { return given };
        let types = std::mem::take(&mut replacement.types);
        let at = types.as_ptr().cast();
        self.staged.keep(Kept::Words(types));
        at
    }

    /// Places for the host, the same.
    fn places(&mut self, replacement: Option<Replacement>, given: *const isize) -> *const isize {
        let Some(replacement) = replacement else { return given };
        let at = replacement.displs.as_ptr().cast();
        self.staged.keep(Kept::Longs(replacement.displs));
        at
    }
}
