//! Wrappers of collective calls among the neighbours of a process topology.

use std::ffi::c_int;

use super::{Collective, Functions, collective};
use ddtc::internal::count::Count;

use crate::forms::{Form, Forms, forward};
use crate::handles::too_large;
use crate::host::Host;
use crate::neighbours::Neighbours;
use crate::numbers::Vector;
use crate::parts::Own;
use crate::signatures::{Handle, Out, argument};
use crate::user_buffer::UserBuffer;

collective! {
    /// # Safety
    /// The arguments must be valid for `MPI_Neighbor_allgather` (MPI 5.0, 8.6.1) or for its
    /// nonblocking or persistent form.
    neighbor_allgather ineighbor_allgather neighbor_allgather_init
    (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type)
    |host, forms, call, comm| {
        let mut s = UserBuffer { buf: sendbuf.cast_mut(), count: sendcount.wide(), datatype: sendtype, entry: forms.entries[0] };
        let mut r = UserBuffer { buf: recvbuf, count: recvcount.wide(), datatype: recvtype, entry: forms.entries[1] };
        if let Some(near) = call.neighbours(s, r) {
            s = call.send_equal(s, 1);
            r = call.receive_near(r, &near);
        }
    } => (s.buf)[s.count](s.datatype)(r.buf)[r.count](r.datatype)
}

collective! {
    /// # Safety
    /// The arguments must be valid for `MPI_Neighbor_alltoall` (MPI 5.0, 8.6.2) or for its
    /// nonblocking or persistent form.
    neighbor_alltoall ineighbor_alltoall neighbor_alltoall_init
    (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type)
    |host, forms, call, comm| {
        let mut s = UserBuffer { buf: sendbuf.cast_mut(), count: sendcount.wide(), datatype: sendtype, entry: forms.entries[0] };
        let mut r = UserBuffer { buf: recvbuf, count: recvcount.wide(), datatype: recvtype, entry: forms.entries[1] };
        if let Some(near) = call.neighbours(s, r) {
            s = call.send_near(s, &near);
            r = call.receive_near(r, &near);
        }
    } => (s.buf)[s.count](s.datatype)(r.buf)[r.count](r.datatype)
}

collective! {
    /// # Safety
    /// The arguments must be valid for `MPI_Neighbor_allgatherv` (MPI 5.0, 8.6.1) or for its
    /// nonblocking or persistent form.
    neighbor_allgatherv ineighbor_allgatherv neighbor_allgatherv_init
    (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcounts: Counts, displs: Displs, recvtype: Type)
    |host, forms, call, comm| {
        let mut s = UserBuffer { buf: sendbuf.cast_mut(), count: sendcount.wide(), datatype: sendtype, entry: forms.entries[0] };
        let mut r = UserBuffer { buf: recvbuf, count: 0, datatype: recvtype, entry: forms.entries[1] };
        let all = call.near(forms.narrows::<N>());
        let sources = all.as_ref().map_or(0, |near| near.sources);
        let Some(mut vector) = Vector::from_arrays(&forms, recvcounts, displs, sources) else {
            return too_large(host, forms.on);
        };
        if let Some(near) = all.filter(|near| near.knows_absent() && call.apart(s, r).is_some()) {
            s = call.send_equal(s, 1);
            r = call.receive_vector(r, &mut vector, Own::Nothing, |i| near.there(i));
        }
        let vector = call.kept(vector);
    } => (s.buf)[s.count](s.datatype)(r.buf){vector.counts}{vector.displs}(r.datatype)
}

collective! {
    /// # Safety
    /// The arguments must be valid for `MPI_Neighbor_alltoallv` (MPI 5.0, 8.6.2) or for its
    /// nonblocking or persistent form.
    neighbor_alltoallv ineighbor_alltoallv neighbor_alltoallv_init
    (sendbuf: SendBuf, sendcounts: Counts, sdispls: Displs, sendtype: Type, recvbuf: RecvBuf, recvcounts: Counts, rdispls: Displs, recvtype: Type)
    |host, forms, call, comm| {
        let mut s = UserBuffer { buf: sendbuf.cast_mut(), count: 0, datatype: sendtype, entry: forms.entries[0] };
        let mut r = UserBuffer { buf: recvbuf, count: 0, datatype: recvtype, entry: forms.entries[1] };
        let all = call.near(forms.narrows::<N>());
        let (sources, destinations) = all.as_ref().map_or((0, 0), |near| (near.sources, near.destinations));
        let vectors = (
            Vector::from_arrays(&forms, sendcounts, sdispls, destinations),
            Vector::from_arrays(&forms, recvcounts, rdispls, sources),
        );
        let (Some(mut out), Some(mut into)) = vectors else { return too_large(host, forms.on) };
        if let Some(near) = all.filter(|near| near.knows_absent() && call.apart(s, r).is_some()) {
            s = call.send_vector(s, &mut out, |i| near.there(i));
            r = call.receive_vector(r, &mut into, Own::Nothing, |i| near.there(i));
        }
        let (out, into) = (call.kept(out), call.kept(into));
    } => (s.buf){out.counts}{out.displs}(s.datatype)(r.buf){into.counts}{into.displs}(r.datatype)
}

impl Collective {
    /// Returns the neighbours of this rank if this rank may convert the call. If `narrowed` is
    /// true, the arrays of the call must be narrowed to `int` for the MPI library. Then the
    /// neighbours are returned for a bypassed call too, because the length of the arrays depends on
    /// the number of neighbours.
    pub(super) fn near(&self, narrowed: bool) -> Option<Neighbours> {
        match self.group {
            Some(_) => Neighbours::known(self.host, self.comm),
            None if narrowed => Neighbours::query(self.host, self.comm),
            None => None,
        }
    }

    /// Returns the neighbours of this rank if this rank may convert the call. For that, `s` and `r`
    /// must be different buffers, and it must be known which neighbours are processes.
    fn neighbours(&self, s: UserBuffer, r: UserBuffer) -> Option<Neighbours> {
        self.apart(s, r)?;
        self.near(false).filter(Neighbours::knows_absent)
    }

    /// Stages a receive buffer that has an equal part for every source, and returns the buffer for
    /// the MPI library. Parts of sources that are `MPI_PROC_NULL` are left out.
    ///
    /// # Safety
    /// The arguments must be those of the program's collective call.
    unsafe fn receive_near(&mut self, given: UserBuffer, near: &Neighbours) -> UserBuffer {
        let parts = near.those_there(near.sources, given.count);
        // SAFETY: the arguments are those of the program's call, as the caller promises.
        unsafe { self.receive(given, parts, Own::Nothing) }.unwrap_or(given)
    }

    /// Stages a send buffer that has an equal part for every destination, and returns the buffer
    /// for the MPI library. Parts of destinations that are `MPI_PROC_NULL` are left out.
    ///
    /// # Safety
    /// The arguments must be those of the program's collective call.
    unsafe fn send_near(&mut self, given: UserBuffer, near: &Neighbours) -> UserBuffer {
        let parts = near.those_there(near.destinations, given.count);
        // SAFETY: the arguments are those of the program's call, as the caller promises.
        unsafe { self.send(given, parts) }.unwrap_or(given)
    }
}
