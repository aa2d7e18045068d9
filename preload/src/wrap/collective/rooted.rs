//! Wrappers of collective calls with a root.

use std::ffi::c_int;

use ddtc::internal::count::Count;
use ddtc::internal::process::Awaited;
use ddtc_hosts::profile::WireForm;

use super::{Collective, Functions, When, collective};
use crate::forms::{Form, Forms, forward};
use crate::group::{Group, Role};
use crate::handles::too_large;
use crate::host::Host;
use crate::numbers::Vector;
use crate::parts::Own;
use crate::signatures::{Handle, Out, argument};
use crate::user_buffer::UserBuffer;

collective! {
    /// # Safety
    /// The arguments must be valid for `MPI_Bcast` (MPI 5.0, 6.4) or for its nonblocking or
    /// persistent form.
    bcast ibcast bcast_init (buffer: SendRecvBuf, count: Count, datatype: Type, root: Root)
    |host, forms, call, comm| {
        let g = UserBuffer { buf: buffer, count: count.wide(), datatype, entry: forms.entries[0] };
        let g = match call.role(root) {
            // The tree algorithms of MPICH and Intel MPI cut a broadcast into pieces by the type
            // that the local rank has passed. So the call is bypassed if these algorithms may cut
            // it into pieces.
            _ if call.pipelined() => g,
            Some(Role::Root) => call.send_equal(g, 1),
            Some(Role::Other) => call.receive_equal(g, 1, Own::Nothing),
            _ => g,
        };
    } => (g.buf)[g.count](g.datatype)(root)
}

collective! {
    /// # Safety
    /// The arguments must be valid for `MPI_Gather` (MPI 5.0, 6.5) or for its nonblocking or
    /// persistent form.
    gather igather gather_init
    (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type, root: Root)
    |host, forms, call, comm| {
        let mut s = UserBuffer { buf: sendbuf.cast_mut(), count: sendcount.wide(), datatype: sendtype, entry: forms.entries[0] };
        let mut r = UserBuffer { buf: recvbuf, count: recvcount.wide(), datatype: recvtype, entry: forms.entries[1] };
        if let Some((group, role)) = call.part(root, s, r) {
            if group.takes_part(role) {
                s = call.send_equal(s, 1);
            }
            if role == Role::Root {
                let own = call.own_part(sendbuf);
                r = call.receive_equal(r, group.blocks, own);
            }
        }
    } => (s.buf)[s.count](s.datatype)(r.buf)[r.count](r.datatype)(root)
}

collective! {
    /// # Safety
    /// The arguments must be valid for `MPI_Scatter` (MPI 5.0, 6.6) or for its nonblocking or
    /// persistent form.
    scatter iscatter scatter_init
    (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type, root: Root)
    |host, forms, call, comm| {
        let mut s = UserBuffer { buf: sendbuf.cast_mut(), count: sendcount.wide(), datatype: sendtype, entry: forms.entries[0] };
        let mut r = UserBuffer { buf: recvbuf, count: recvcount.wide(), datatype: recvtype, entry: forms.entries[1] };
        if let Some((group, role)) = call.part(root, s, r) {
            if role == Role::Root {
                s = call.send_equal(s, group.blocks);
            }
            if group.takes_part(role) {
                r = call.receive_equal(r, 1, Own::Nothing);
            }
        }
    } => (s.buf)[s.count](s.datatype)(r.buf)[r.count](r.datatype)(root)
}

collective! {
    /// # Safety
    /// The arguments must be valid for `MPI_Gatherv` (MPI 5.0, 6.5) or for its nonblocking or
    /// persistent form. The arrays of counts and displacements are read at the root alone.
    gatherv igatherv gatherv_init
    (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcounts: Counts, displs: Displs, recvtype: Type, root: Root)
    |host, forms, call, comm| {
        let mut s = UserBuffer { buf: sendbuf.cast_mut(), count: sendcount.wide(), datatype: sendtype, entry: forms.entries[0] };
        let mut r = UserBuffer { buf: recvbuf, count: 0, datatype: recvtype, entry: forms.entries[1] };
        let blocks = at_root(host, call.known::<N, _, _>(&forms), root);
        let Some(mut vector) = Vector::from_arrays(&forms, recvcounts, displs, blocks) else {
            return too_large(host, forms.on);
        };
        if let Some((group, role)) = call.part(root, s, r) {
            if group.takes_part(role) {
                s = call.send_equal(s, 1);
            }
            if role == Role::Root {
                let own = call.own_part(sendbuf);
                r = call.receive_vector(r, &mut vector, own, |_| true);
            }
        }
        let vector = call.kept(vector);
    } => (s.buf)[s.count](s.datatype)(r.buf){vector.counts}{vector.displs}(r.datatype)(root)
}

collective! {
    /// # Safety
    /// The arguments must be valid for `MPI_Scatterv` (MPI 5.0, 6.6) or for its nonblocking or
    /// persistent form. The arrays of counts and displacements are read at the root alone.
    scatterv iscatterv scatterv_init
    (sendbuf: SendBuf, sendcounts: Counts, displs: Displs, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type, root: Root)
    |host, forms, call, comm| {
        let mut s = UserBuffer { buf: sendbuf.cast_mut(), count: 0, datatype: sendtype, entry: forms.entries[0] };
        let mut r = UserBuffer { buf: recvbuf, count: recvcount.wide(), datatype: recvtype, entry: forms.entries[1] };
        let blocks = at_root(host, call.known::<N, _, _>(&forms), root);
        let Some(mut vector) = Vector::from_arrays(&forms, sendcounts, displs, blocks) else {
            return too_large(host, forms.on);
        };
        if let Some((group, role)) = call.part(root, s, r) {
            if role == Role::Root {
                s = call.send_vector(s, &mut vector, |_| true);
            }
            if group.takes_part(role) {
                r = call.receive_equal(r, 1, Own::Nothing);
            }
        }
        let vector = call.kept(vector);
    } => (s.buf){vector.counts}{vector.displs}(s.datatype)(r.buf)[r.count](r.datatype)(root)
}

impl Collective {
    /// Returns the group of a call with the root `root`, and the role of this rank, if this rank
    /// may convert its side. The root may not convert its side if it sends from the buffer into
    /// which it receives. Its call is bypassed, so that the MPI library raises the error.
    fn part(&self, root: c_int, s: UserBuffer, r: UserBuffer) -> Option<(Group, Role)> {
        let (group, role) = (self.group?, self.role(root)?);
        (role != Role::Root || s.buf != r.buf).then_some((group, role))
    }

    /// Returns true if the MPI library may cut this broadcast into pieces whose lengths depend on
    /// the datatype that the local rank has passed. MPICH and Intel MPI do so in their tree
    /// algorithms for nonblocking and persistent broadcasts, if the length of the pieces is set by
    /// an environment variable or in a file of algorithms.
    fn pipelined(&self) -> bool {
        !matches!(self.when, When::Blocking)
            && matches!(self.host.profile.wire_form, WireForm::Segments { .. })
            && tree_pieces()
    }
}

/// Returns true if the environment has a variable that may set the length of the pieces of
/// nonblocking broadcasts, directly or in a file. The environment is read once.
fn tree_pieces() -> bool {
    static SET: Awaited<bool> = Awaited::new();
    let names = || std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let sets_pieces = |name: &str| {
        name.ends_with("_IBCAST_TREE_PIPELINE_CHUNK_SIZE")
            || name.ends_with("_COLL_SELECTION_TUNING_JSON_FILE")
    };
    *SET.get_or_init(|| names().any(|name| sets_pieces(&name)))
}

/// Returns the number of elements of the arrays of counts and displacements at the root. Returns 0
/// at all other ranks, where these arrays are not significant.
fn at_root(host: &Host, group: Option<Group>, root: c_int) -> i64 {
    group.filter(|g| g.role(host, root) == Some(Role::Root)).map_or(0, |g| g.blocks)
}
