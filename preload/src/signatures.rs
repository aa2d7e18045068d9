//! The calls of MPI that take counts: one row for both forms, from which the host's functions (`host`) and this library's own (`wrap`)
//! are made.
//!
//! A row has the host's function in the form with `int` and in the one with `MPI_Count`, the names that are exported, the arguments,
//! and what wraps the call.

use std::ffi::{c_int, c_void};

/// A handle of the host as an argument of a call, whichever ABI the host has: 4 or 8 bytes wide. Bits above its width are not
/// defined; `Host::mask` clears them.
pub(crate) type HandleWord = u64;
/// A buffer that is read.
pub(crate) type In = *const c_void;
/// A buffer, handle or status that is written.
pub(crate) type Out = *mut c_void;
/// A handle.
pub(crate) type Handle = HandleWord;
/// A rank or tag.
pub(crate) type Int = c_int;

/// An array of displacements in the form whose counts are `N`: `int`, or `MPI_Aint`, which is as wide as `MPI_Count` on the targets of
/// this library.
pub(crate) type Displs<N> = *const N;

/// The type of an argument in the form whose counts are `$n`: `N` is a count, `Place` points to one, `Ns` to many, `Displs` to as many
/// displacements.
macro_rules! argument {
    ($n:ty, N) => { $n };
    ($n:ty, Place) => { *mut $n };
    ($n:ty, Ns) => { *const $n };
    ($n:ty, Displs) => { $crate::signatures::Displs<$n> };
    ($n:ty, $other:ident) => { $crate::signatures::$other };
}
pub(crate) use argument;

/// Gives the table to another macro.
macro_rules! counted_calls {
    ($then:ident) => {
        $then! {
            pack pack_c MPI_Pack MPI_Pack_c "5.2" pack::pack
                (inbuf: In, incount: N, datatype: Handle, outbuf: Out, outsize: N, position: Place, comm: Handle);
            unpack unpack_c MPI_Unpack MPI_Unpack_c "5.2" pack::unpack
                (inbuf: In, insize: N, position: Place, outbuf: Out, outcount: N, datatype: Handle, comm: Handle);
            send send_c MPI_Send MPI_Send_c "3.2.1" blocking::send
                (buf: In, count: N, datatype: Handle, dest: Int, tag: Int, comm: Handle);
            ssend ssend_c MPI_Ssend MPI_Ssend_c "3.4" blocking::send
                (buf: In, count: N, datatype: Handle, dest: Int, tag: Int, comm: Handle);
            rsend rsend_c MPI_Rsend MPI_Rsend_c "3.4" blocking::send
                (buf: In, count: N, datatype: Handle, dest: Int, tag: Int, comm: Handle);
            recv recv_c MPI_Recv MPI_Recv_c "3.2.4" blocking::recv
                (buf: Out, count: N, datatype: Handle, source: Int, tag: Int, comm: Handle, status: Out);
            mrecv mrecv_c MPI_Mrecv MPI_Mrecv_c "3.8.3" blocking::mrecv
                (buf: Out, count: N, datatype: Handle, message: Out, status: Out);
            sendrecv sendrecv_c MPI_Sendrecv MPI_Sendrecv_c "3.10" blocking::sendrecv
                (sendbuf: In, sendcount: N, sendtype: Handle, dest: Int, sendtag: Int,
                 recvbuf: Out, recvcount: N, recvtype: Handle, source: Int, recvtag: Int, comm: Handle, status: Out);
            sendrecv_replace sendrecv_replace_c MPI_Sendrecv_replace MPI_Sendrecv_replace_c "3.10" blocking::sendrecv_replace
                (buf: Out, count: N, datatype: Handle, dest: Int, sendtag: Int, source: Int, recvtag: Int, comm: Handle,
                 status: Out);
            isend isend_c MPI_Isend MPI_Isend_c "3.7.2" nonblocking::isend
                (buf: In, count: N, datatype: Handle, dest: Int, tag: Int, comm: Handle, request: Out);
            issend issend_c MPI_Issend MPI_Issend_c "3.7.2" nonblocking::isend
                (buf: In, count: N, datatype: Handle, dest: Int, tag: Int, comm: Handle, request: Out);
            irsend irsend_c MPI_Irsend MPI_Irsend_c "3.7.2" nonblocking::isend
                (buf: In, count: N, datatype: Handle, dest: Int, tag: Int, comm: Handle, request: Out);
            send_init send_init_c MPI_Send_init MPI_Send_init_c "3.9" nonblocking::send_init
                (buf: In, count: N, datatype: Handle, dest: Int, tag: Int, comm: Handle, request: Out);
            ssend_init ssend_init_c MPI_Ssend_init MPI_Ssend_init_c "3.9" nonblocking::send_init
                (buf: In, count: N, datatype: Handle, dest: Int, tag: Int, comm: Handle, request: Out);
            rsend_init rsend_init_c MPI_Rsend_init MPI_Rsend_init_c "3.9" nonblocking::send_init
                (buf: In, count: N, datatype: Handle, dest: Int, tag: Int, comm: Handle, request: Out);
            irecv irecv_c MPI_Irecv MPI_Irecv_c "3.7.2" nonblocking::irecv
                (buf: Out, count: N, datatype: Handle, source: Int, tag: Int, comm: Handle, request: Out);
            recv_init recv_init_c MPI_Recv_init MPI_Recv_init_c "3.9" nonblocking::recv_init
                (buf: Out, count: N, datatype: Handle, source: Int, tag: Int, comm: Handle, request: Out);
            imrecv imrecv_c MPI_Imrecv MPI_Imrecv_c "3.8.3" nonblocking::imrecv
                (buf: Out, count: N, datatype: Handle, message: Out, request: Out);
            bcast bcast_c MPI_Bcast MPI_Bcast_c "6.4" collective::bcast
                (buffer: Out, count: N, datatype: Handle, root: Int, comm: Handle);
            gather gather_c MPI_Gather MPI_Gather_c "6.5" collective::gather
                (sendbuf: In, sendcount: N, sendtype: Handle, recvbuf: Out, recvcount: N, recvtype: Handle, root: Int, comm: Handle);
            gatherv gatherv_c MPI_Gatherv MPI_Gatherv_c "6.5" collective::gatherv
                (sendbuf: In, sendcount: N, sendtype: Handle, recvbuf: Out, recvcounts: Ns, displs: Displs, recvtype: Handle,
                 root: Int, comm: Handle);
            scatter scatter_c MPI_Scatter MPI_Scatter_c "6.6" collective::scatter
                (sendbuf: In, sendcount: N, sendtype: Handle, recvbuf: Out, recvcount: N, recvtype: Handle, root: Int, comm: Handle);
            scatterv scatterv_c MPI_Scatterv MPI_Scatterv_c "6.6" collective::scatterv
                (sendbuf: In, sendcounts: Ns, displs: Displs, sendtype: Handle, recvbuf: Out, recvcount: N, recvtype: Handle,
                 root: Int, comm: Handle);
            allgather allgather_c MPI_Allgather MPI_Allgather_c "6.7" collective::allgather
                (sendbuf: In, sendcount: N, sendtype: Handle, recvbuf: Out, recvcount: N, recvtype: Handle, comm: Handle);
            alltoall alltoall_c MPI_Alltoall MPI_Alltoall_c "6.8" collective::alltoall
                (sendbuf: In, sendcount: N, sendtype: Handle, recvbuf: Out, recvcount: N, recvtype: Handle, comm: Handle);
            alltoallv alltoallv_c MPI_Alltoallv MPI_Alltoallv_c "6.8" collective::alltoallv
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtype: Handle, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtype: Handle, comm: Handle);
        }
    };
}
pub(crate) use counted_calls;
