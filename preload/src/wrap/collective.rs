//! Collective calls: a rank converts its own side, whatever the others do.
//!
//! Not here: reductions, whose operations see the type, and `MPI_Allgatherv`, where MPICH's ring cuts by the extent of the receive type.

use std::ffi::c_int;

use crate::forms::{Form, Forms, Length, forward};
use crate::group::{Group, Role, learn};
use crate::handles::too_large;
use crate::host::{HandleWord, Host};
use crate::messages::Given;
use crate::numbers::Vector;
use crate::parts::{Own, Part, Parts, in_place};
use crate::signatures::{Displs, Handle, In, Int, Out};
use crate::staged::Staged;

type BcastFn<N> = unsafe extern "C" fn(Out, N, Handle, Int, Handle) -> c_int;
type RootedFn<N> = unsafe extern "C" fn(In, N, Handle, Out, N, Handle, Int, Handle) -> c_int;
type GathervFn<N> =
    unsafe extern "C" fn(In, N, Handle, Out, *const N, Displs<N>, Handle, Int, Handle) -> c_int;
type ScattervFn<N> =
    unsafe extern "C" fn(In, *const N, Displs<N>, Handle, Out, N, Handle, Int, Handle) -> c_int;
type AllFn<N> = unsafe extern "C" fn(In, N, Handle, Out, N, Handle, Handle) -> c_int;
type AllvFn<N> =
    unsafe extern "C" fn(In, *const N, Displs<N>, Handle, Out, *const N, Displs<N>, Handle, Handle) -> c_int;

/// A collective call of this rank.
struct Collective {
    host: &'static Host,
    comm: HandleWord,
    /// None: the call is the host's.
    group: Option<Group>,
    staged: Staged,
    /// What is unpacked afterwards.
    received: Received,
}

/// The parts of a staged receive buffer.
enum Received {
    Nothing,
    Equal { blocks: i64, count: i64 },
    Own(Vec<Part>),
}

impl Collective {
    fn new(host: &'static Host, comm: HandleWord) -> Collective {
        let group = Group::of(host, comm);
        Collective { host, comm, group, staged: Staged::new(host, i64::MAX), received: Received::Nothing }
    }

    fn role(&self, root: c_int) -> Option<Role> {
        self.group?.role(self.host, root)
    }

    /// What is in place of a receive buffer: the part of this rank, if its send buffer says so.
    fn own_part(&self, sendbuf: In) -> Own {
        match self.group {
            Some(group) if in_place(self.host, sendbuf) => Own::Part(group.own() as usize),
            _ => Own::Nothing,
        }
    }

    /// Before a call that sends `blocks` equal parts.
    ///
    /// # Safety
    /// As the call.
    unsafe fn send(&mut self, given: Given, blocks: i64) -> Given {
        if in_place(self.host, given.buf) {
            return given;
        }
        let parts = Parts::Equal { blocks, count: given.count };
        // SAFETY: as the caller promises.
        unsafe { self.staged.send_parts(given, parts) }.unwrap_or(given)
    }

    /// Before a call that receives `blocks` equal parts.
    ///
    /// # Safety
    /// As the call.
    unsafe fn receive(&mut self, given: Given, blocks: i64, own: Own) -> Given {
        if in_place(self.host, given.buf) {
            return given;
        }
        let count = given.count;
        // SAFETY: as the caller promises.
        let instead = unsafe { self.staged.receive_parts(given, Parts::Equal { blocks, count }, own) };
        let Some(instead) = instead else { return given };
        self.received = Received::Equal { blocks, count };
        instead
    }

    /// Before a call that sends parts of their own length and place: what the host is given, its displacements with it.
    ///
    /// # Safety
    /// As the call.
    unsafe fn send_vector<N: Length>(&mut self, given: Given, vector: &mut Vector<N>) -> Given {
        if in_place(self.host, given.buf) {
            return given;
        }
        // SAFETY: as the caller promises.
        let Some(parts) = (unsafe { vector.parts() }) else { return given };
        // SAFETY: as above.
        let Some(instead) = (unsafe { self.staged.send_parts(given, Parts::Own(&parts)) }) else {
            return given;
        };
        vector.close_up(&parts);
        instead
    }

    /// Before a call that receives such parts.
    ///
    /// # Safety
    /// As the call.
    unsafe fn receive_vector<N: Length>(&mut self, given: Given, vector: &mut Vector<N>, own: Own) -> Given {
        // SAFETY: as the caller promises.
        let Some(parts) = (unsafe { vector.parts() }) else { return given };
        // SAFETY: as above.
        let instead = unsafe { self.staged.receive_parts(given, Parts::Own(&parts), own) };
        let Some(instead) = instead else { return given };
        vector.close_up(&parts);
        self.received = Received::Own(parts);
        instead
    }

    /// After the host's call.
    ///
    /// # Safety
    /// As the call, which gave this code.
    unsafe fn after(self, code: c_int) -> c_int {
        if code != 0 {
            return code;
        }
        // SAFETY: as the caller promises.
        unsafe {
            match &self.received {
                Received::Nothing => {}
                &Received::Equal { blocks, count } => {
                    self.staged.unpack_parts(Parts::Equal { blocks, count });
                }
                Received::Own(parts) => self.staged.unpack_parts(Parts::Own(parts)),
            }
        }
        learn(self.host, self.comm);
        code
    }
}

/// # Safety
/// As `MPI_Bcast` (MPI 5.0, 6.4).
pub(super) unsafe fn bcast<N: Length>(
    host: &'static Host,
    forms: Forms<BcastFn<c_int>, BcastFn<i64>>,
    buffer: Out,
    count: N,
    datatype: Handle,
    root: Int,
    comm: Handle,
) -> c_int {
    let mut call = Collective::new(host, comm);
    let given = Given { buf: buffer, count: count.wide(), datatype };
    // SAFETY: the caller's arguments.
    unsafe {
        let g = match call.role(root) {
            Some(Role::Root) => call.send(given, 1),
            Some(Role::Other) => call.receive(given, 1, Own::Nothing),
            Some(Role::Absent) | None => given,
        };
        let code = forward!(N, forms, host, comm, (g.buf)[g.count](g.datatype)(root)(comm));
        call.after(code)
    }
}

/// # Safety
/// As `MPI_Gather` (MPI 5.0, 6.5).
pub(super) unsafe fn gather<N: Length>(
    host: &'static Host,
    forms: Forms<RootedFn<c_int>, RootedFn<i64>>,
    sendbuf: In,
    sendcount: N,
    sendtype: Handle,
    recvbuf: Out,
    recvcount: N,
    recvtype: Handle,
    root: Int,
    comm: Handle,
) -> c_int {
    let s = Given { buf: sendbuf.cast_mut(), count: sendcount.wide(), datatype: sendtype };
    let r = Given { buf: recvbuf, count: recvcount.wide(), datatype: recvtype };
    // SAFETY: the caller's arguments.
    unsafe {
        rooted::<N>(host, forms, s, r, root, comm, |call, group, role, s, r| {
            let out = if group.takes_part(role) { call.send(s, 1) } else { s };
            let own = call.own_part(sendbuf);
            let into = if role == Role::Root { call.receive(r, group.blocks, own) } else { r };
            (out, into)
        })
    }
}

/// # Safety
/// As `MPI_Scatter` (MPI 5.0, 6.6).
pub(super) unsafe fn scatter<N: Length>(
    host: &'static Host,
    forms: Forms<RootedFn<c_int>, RootedFn<i64>>,
    sendbuf: In,
    sendcount: N,
    sendtype: Handle,
    recvbuf: Out,
    recvcount: N,
    recvtype: Handle,
    root: Int,
    comm: Handle,
) -> c_int {
    let s = Given { buf: sendbuf.cast_mut(), count: sendcount.wide(), datatype: sendtype };
    let r = Given { buf: recvbuf, count: recvcount.wide(), datatype: recvtype };
    // SAFETY: the caller's arguments.
    unsafe {
        rooted::<N>(host, forms, s, r, root, comm, |call, group, role, s, r| {
            let out = if role == Role::Root { call.send(s, group.blocks) } else { s };
            let into = if group.takes_part(role) { call.receive(r, 1, Own::Nothing) } else { r };
            (out, into)
        })
    }
}

/// A call with a root and equal parts, whose sides `stage` stages.
///
/// # Safety
/// As `MPI_Gather` and `MPI_Scatter`.
unsafe fn rooted<N: Length>(
    host: &'static Host,
    forms: Forms<RootedFn<c_int>, RootedFn<i64>>,
    s: Given,
    r: Given,
    root: Int,
    comm: Handle,
    stage: impl FnOnce(&mut Collective, Group, Role, Given, Given) -> (Given, Given),
) -> c_int {
    let mut call = Collective::new(host, comm);
    let (s, r) = match (call.group, call.role(root)) {
        (Some(group), Some(role)) if role != Role::Root || s.buf != r.buf => {
            stage(&mut call, group, role, s, r)
        }
        _ => (s, r),
    };
    // SAFETY: the caller's arguments.
    unsafe {
        let code = forward!(
            N,
            forms,
            host,
            comm,
            (s.buf)[s.count](s.datatype)(r.buf)[r.count](r.datatype)(root)(comm)
        );
        call.after(code)
    }
}

/// # Safety
/// As `MPI_Allgather` (MPI 5.0, 6.7).
pub(super) unsafe fn allgather<N: Length>(
    host: &'static Host,
    forms: Forms<AllFn<c_int>, AllFn<i64>>,
    sendbuf: In,
    sendcount: N,
    sendtype: Handle,
    recvbuf: Out,
    recvcount: N,
    recvtype: Handle,
    comm: Handle,
) -> c_int {
    let s = Given { buf: sendbuf.cast_mut(), count: sendcount.wide(), datatype: sendtype };
    let r = Given { buf: recvbuf, count: recvcount.wide(), datatype: recvtype };
    // SAFETY: the caller's arguments.
    unsafe { all::<N>(host, forms, s, r, comm, |group| (1, Own::Part(group.own() as usize))) }
}

/// # Safety
/// As `MPI_Alltoall` (MPI 5.0, 6.8).
pub(super) unsafe fn alltoall<N: Length>(
    host: &'static Host,
    forms: Forms<AllFn<c_int>, AllFn<i64>>,
    sendbuf: In,
    sendcount: N,
    sendtype: Handle,
    recvbuf: Out,
    recvcount: N,
    recvtype: Handle,
    comm: Handle,
) -> c_int {
    let s = Given { buf: sendbuf.cast_mut(), count: sendcount.wide(), datatype: sendtype };
    let r = Given { buf: recvbuf, count: recvcount.wide(), datatype: recvtype };
    // SAFETY: the caller's arguments.
    unsafe { all::<N>(host, forms, s, r, comm, |group| (group.blocks, Own::All)) }
}

/// A call without a root and with equal parts: how many a rank sends, and what of its receive buffer is in place if its send buffer says so.
///
/// # Safety
/// As `MPI_Allgather` and `MPI_Alltoall`.
unsafe fn all<N: Length>(
    host: &'static Host,
    forms: Forms<AllFn<c_int>, AllFn<i64>>,
    mut s: Given,
    mut r: Given,
    comm: Handle,
    sides: impl FnOnce(Group) -> (i64, Own),
) -> c_int {
    let mut call = Collective::new(host, comm);
    // SAFETY: the caller's arguments.
    unsafe {
        if let Some(group) = call.group
            && s.buf != r.buf
        {
            let (blocks, own) = sides(group);
            let own = if in_place(host, s.buf) { own } else { Own::Nothing };
            s = call.send(s, blocks);
            r = call.receive(r, group.blocks, own);
        }
        let code =
            forward!(N, forms, host, comm, (s.buf)[s.count](s.datatype)(r.buf)[r.count](r.datatype)(comm));
        call.after(code)
    }
}

/// # Safety
/// As `MPI_Gatherv` (MPI 5.0, 6.5).
pub(super) unsafe fn gatherv<N: Length>(
    host: &'static Host,
    forms: Forms<GathervFn<c_int>, GathervFn<i64>>,
    sendbuf: In,
    sendcount: N,
    sendtype: Handle,
    recvbuf: Out,
    recvcounts: *const N,
    displs: Displs<N>,
    recvtype: Handle,
    root: Int,
    comm: Handle,
) -> c_int {
    let mut call = Collective::new(host, comm);
    let mut s = Given { buf: sendbuf.cast_mut(), count: sendcount.wide(), datatype: sendtype };
    let mut r = Given { buf: recvbuf, count: 0, datatype: recvtype };
    // SAFETY: the caller's arguments; the arrays are read at the root alone.
    unsafe {
        let blocks = if call.group.is_some() || forms.narrows::<N>() { at_root(host, comm, root) } else { 0 };
        let Some(mut vector) = Vector::of(&forms, recvcounts, displs, blocks) else {
            return too_large(host, comm);
        };
        if let (Some(group), Some(role)) = (call.group, call.role(root))
            && !(role == Role::Root && sendbuf.addr() == recvbuf.addr())
        {
            if group.takes_part(role) {
                s = call.send(s, 1);
            }
            if role == Role::Root {
                let own = call.own_part(sendbuf);
                r = call.receive_vector(r, &mut vector, own);
            }
        }
        let Vector { counts, displs, .. } = &vector;
        let code = match forms.choose::<N>(host, comm, &[s.count]) {
            Ok(Form::Small(f)) => f(
                s.buf,
                s.count as c_int,
                s.datatype,
                r.buf,
                counts.small(),
                displs.small(),
                r.datatype,
                root,
                comm,
            ),
            Ok(Form::Large(f)) => {
                f(s.buf, s.count, s.datatype, r.buf, counts.large(), displs.large(), r.datatype, root, comm)
            }
            Err(code) => code,
        };
        call.after(code)
    }
}

/// # Safety
/// As `MPI_Scatterv` (MPI 5.0, 6.6).
pub(super) unsafe fn scatterv<N: Length>(
    host: &'static Host,
    forms: Forms<ScattervFn<c_int>, ScattervFn<i64>>,
    sendbuf: In,
    sendcounts: *const N,
    displs: Displs<N>,
    sendtype: Handle,
    recvbuf: Out,
    recvcount: N,
    recvtype: Handle,
    root: Int,
    comm: Handle,
) -> c_int {
    let mut call = Collective::new(host, comm);
    let mut s = Given { buf: sendbuf.cast_mut(), count: 0, datatype: sendtype };
    let mut r = Given { buf: recvbuf, count: recvcount.wide(), datatype: recvtype };
    // SAFETY: the caller's arguments; the arrays are read at the root alone.
    unsafe {
        let blocks = if call.group.is_some() || forms.narrows::<N>() { at_root(host, comm, root) } else { 0 };
        let Some(mut vector) = Vector::of(&forms, sendcounts, displs, blocks) else {
            return too_large(host, comm);
        };
        if let (Some(group), Some(role)) = (call.group, call.role(root))
            && !(role == Role::Root && sendbuf.addr() == recvbuf.addr())
        {
            if role == Role::Root {
                s = call.send_vector(s, &mut vector);
            }
            if group.takes_part(role) {
                r = call.receive(r, 1, Own::Nothing);
            }
        }
        let Vector { counts, displs, .. } = &vector;
        let code = match forms.choose::<N>(host, comm, &[r.count]) {
            Ok(Form::Small(f)) => f(
                s.buf,
                counts.small(),
                displs.small(),
                s.datatype,
                r.buf,
                r.count as c_int,
                r.datatype,
                root,
                comm,
            ),
            Ok(Form::Large(f)) => {
                f(s.buf, counts.large(), displs.large(), s.datatype, r.buf, r.count, r.datatype, root, comm)
            }
            Err(code) => code,
        };
        call.after(code)
    }
}

/// # Safety
/// As `MPI_Alltoallv` (MPI 5.0, 6.8).
pub(super) unsafe fn alltoallv<N: Length>(
    host: &'static Host,
    forms: Forms<AllvFn<c_int>, AllvFn<i64>>,
    sendbuf: In,
    sendcounts: *const N,
    sdispls: Displs<N>,
    sendtype: Handle,
    recvbuf: Out,
    recvcounts: *const N,
    rdispls: Displs<N>,
    recvtype: Handle,
    comm: Handle,
) -> c_int {
    let mut call = Collective::new(host, comm);
    let mut s = Given { buf: sendbuf.cast_mut(), count: 0, datatype: sendtype };
    let mut r = Given { buf: recvbuf, count: 0, datatype: recvtype };
    // SAFETY: the caller's arguments.
    unsafe {
        let asked = call.group.is_some() || forms.narrows::<N>();
        let group = if asked { Group::ask(host, comm) } else { None };
        let blocks = group.map_or(0, |g| g.blocks);
        // What is sent in place has neither counts nor displacements.
        let sent = if in_place(host, sendbuf) { 0 } else { blocks };
        let vectors =
            (Vector::of(&forms, sendcounts, sdispls, sent), Vector::of(&forms, recvcounts, rdispls, blocks));
        let (Some(mut out), Some(mut into)) = vectors else { return too_large(host, comm) };
        if call.group.is_some() && sendbuf.addr() != recvbuf.addr() {
            s = call.send_vector(s, &mut out);
            let own = if in_place(host, sendbuf) { Own::All } else { Own::Nothing };
            r = call.receive_vector(r, &mut into, own);
        }
        let code = match forms.choose::<N>(host, comm, &[]) {
            Ok(Form::Small(f)) => f(
                s.buf,
                out.counts.small(),
                out.displs.small(),
                s.datatype,
                r.buf,
                into.counts.small(),
                into.displs.small(),
                r.datatype,
                comm,
            ),
            Ok(Form::Large(f)) => f(
                s.buf,
                out.counts.large(),
                out.displs.large(),
                s.datatype,
                r.buf,
                into.counts.large(),
                into.displs.large(),
                r.datatype,
                comm,
            ),
            Err(code) => code,
        };
        call.after(code)
    }
}

/// Parts that the root's arrays have; none elsewhere, where they mean nothing.
fn at_root(host: &'static Host, comm: HandleWord, root: c_int) -> i64 {
    Group::ask(host, comm).filter(|g| g.role(host, root) == Some(Role::Root)).map_or(0, |g| g.blocks)
}
