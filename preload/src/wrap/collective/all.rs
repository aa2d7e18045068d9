//! Wrappers of collective calls in which every rank sends to all ranks or receives from all ranks.

use std::ffi::c_int;

use super::{Collective, Functions, collective};
use ddtc::internal::count::Count;

use crate::forms::{Form, Forms, forward};
use crate::group::Group;
use crate::handles::too_large;
use crate::host::Host;
use crate::numbers::Vector;
use crate::parts::{Own, in_place};
use crate::signatures::{Handle, Out, argument};
use crate::user_buffer::UserBuffer;

collective! {
    /// # Safety
    /// As `MPI_Allgather` (MPI 5.0, 6.7), and its nonblocking and persistent forms.
    allgather iallgather allgather_init
    (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type)
    |host, forms, call, comm| {
        let mut s = UserBuffer { buf: sendbuf.cast_mut(), count: sendcount.wide(), datatype: sendtype, entry: forms.entries[0] };
        let mut r = UserBuffer { buf: recvbuf, count: recvcount.wide(), datatype: recvtype, entry: forms.entries[1] };
        if let Some(group) = call.apart(s, r) {
            let own = call.own_part(sendbuf);
            s = call.send_equal(s, 1);
            r = call.receive_equal(r, group.blocks, own);
        }
    } => (s.buf)[s.count](s.datatype)(r.buf)[r.count](r.datatype)
}

collective! {
    /// # Safety
    /// As `MPI_Alltoall` (MPI 5.0, 6.8), and its nonblocking and persistent forms.
    alltoall ialltoall alltoall_init
    (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type)
    |host, forms, call, comm| {
        let mut s = UserBuffer { buf: sendbuf.cast_mut(), count: sendcount.wide(), datatype: sendtype, entry: forms.entries[0] };
        let mut r = UserBuffer { buf: recvbuf, count: recvcount.wide(), datatype: recvtype, entry: forms.entries[1] };
        if let Some(group) = call.apart(s, r) {
            let own = if in_place(host, s.buf) { Own::All } else { Own::Nothing };
            (s, r) = call.both(
                (s, r),
                |call, s| call.send_equal(s, group.blocks),
                |call, r| call.receive_equal(r, group.blocks, own),
            );
        }
    } => (s.buf)[s.count](s.datatype)(r.buf)[r.count](r.datatype)
}

collective! {
    /// # Safety
    /// As `MPI_Alltoallv` (MPI 5.0, 6.8), and its nonblocking and persistent forms.
    alltoallv ialltoallv alltoallv_init
    (sendbuf: SendBuf, sendcounts: Counts, sdispls: Displs, sendtype: Type, recvbuf: RecvBuf, recvcounts: Counts, rdispls: Displs, recvtype: Type)
    |host, forms, call, comm| {
        let mut s = UserBuffer { buf: sendbuf.cast_mut(), count: 0, datatype: sendtype, entry: forms.entries[0] };
        let mut r = UserBuffer { buf: recvbuf, count: 0, datatype: recvtype, entry: forms.entries[1] };
        let blocks = call.known::<N, _, _>(&forms).map_or(0, |g| g.blocks);
        // With `MPI_IN_PLACE`, the send side has neither counts nor displacements.
        let sent = if in_place(host, sendbuf) { 0 } else { blocks };
        let vectors =
            (Vector::from_arrays(&forms, sendcounts, sdispls, sent), Vector::from_arrays(&forms, recvcounts, rdispls, blocks));
        let (Some(mut out), Some(mut into)) = vectors else { return too_large(host, forms.on) };
        if call.apart(s, r).is_some() {
            let own = if in_place(host, sendbuf) { Own::All } else { Own::Nothing };
            (s, r) = call.both(
                (s, r),
                |call, s| call.send_vector(s, &mut out, |_| true),
                |call, r| call.receive_vector(r, &mut into, own, |_| true),
            );
        }
        let (out, into) = (call.kept(out), call.kept(into));
    } => (s.buf){out.counts}{out.displs}(s.datatype)(r.buf){into.counts}{into.displs}(r.datatype)
}

impl Collective {
    /// Returns the group of the call if this rank may convert the call. If the call sends from the
    /// buffer into which it receives, returns `None`, so that the call is bypassed and the MPI
    /// library raises its error.
    pub(super) fn apart(&self, s: UserBuffer, r: UserBuffer) -> Option<Group> {
        self.group.filter(|_| s.buf != r.buf)
    }
}
