//! The calls of MPI that take counts: one row for both forms, from which the host's functions (`host`) and this library's own (`wrap`)
//! are made.
//!
//! A row has the names that are exported, in the form with `int` and in the one with `MPI_Count`; the fields of the host's functions; where the standard
//! has the call, what the policy calls it, what wraps it; and its arguments. A call without a type that is to be converted is the host's at once.

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
/// A datatype.
pub(crate) type Type = HandleWord;
/// A datatype that the call itself looks at, to know it afterwards.
pub(crate) type Met = HandleWord;
/// Datatypes, one after the other in the width of the host's handles.
pub(crate) type Types = *const c_void;
/// Displacements in bytes in both forms of a call.
pub(crate) type Aints = *const isize;
/// A rank or tag.
pub(crate) type Int = c_int;
/// `MPI_Offset`: a place in a file.
pub(crate) type Offset = i64;
/// `MPI_Aint`: a displacement in a window.
pub(crate) type Aint = isize;

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
            fn MPI_Pack, fn MPI_Pack_c: pack, pack_c, "5.2", Message, pack::pack
                (inbuf: In, incount: N, datatype: Met, outbuf: Out, outsize: N, position: Place, comm: Handle);
            fn MPI_Unpack, fn MPI_Unpack_c: unpack, unpack_c, "5.2", Message, pack::unpack
                (inbuf: In, insize: N, position: Place, outbuf: Out, outcount: N, datatype: Met, comm: Handle);
            fn MPI_Send, fn MPI_Send_c: send, send_c, "3.2.1", Message, blocking::send
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle);
            fn MPI_Ssend, fn MPI_Ssend_c: ssend, ssend_c, "3.4", Message, blocking::send
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle);
            fn MPI_Rsend, fn MPI_Rsend_c: rsend, rsend_c, "3.4", Message, blocking::send
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle);
            fn MPI_Bsend, fn MPI_Bsend_c: bsend, bsend_c, "3.4", Message, blocking::send
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle);
            fn MPI_Recv, fn MPI_Recv_c: recv, recv_c, "3.2.4", Message, blocking::recv
                (buf: Out, count: N, datatype: Type, source: Int, tag: Int, comm: Handle, status: Out);
            fn MPI_Mrecv, fn MPI_Mrecv_c: mrecv, mrecv_c, "3.8.3", Message, blocking::mrecv
                (buf: Out, count: N, datatype: Type, message: Out, status: Out);
            fn MPI_Sendrecv, fn MPI_Sendrecv_c: sendrecv, sendrecv_c, "3.10", Message, blocking::sendrecv
                (sendbuf: In, sendcount: N, sendtype: Type, dest: Int, sendtag: Int,
                 recvbuf: Out, recvcount: N, recvtype: Type, source: Int, recvtag: Int, comm: Handle, status: Out);
            fn MPI_Sendrecv_replace, fn MPI_Sendrecv_replace_c: sendrecv_replace, sendrecv_replace_c, "3.10", Message, blocking::sendrecv_replace
                (buf: Out, count: N, datatype: Type, dest: Int, sendtag: Int, source: Int, recvtag: Int, comm: Handle,
                 status: Out);
            fn MPI_Isend, fn MPI_Isend_c: isend, isend_c, "3.7.2", Message, nonblocking::isend
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle, request: Out);
            fn MPI_Issend, fn MPI_Issend_c: issend, issend_c, "3.7.2", Message, nonblocking::isend
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle, request: Out);
            fn MPI_Irsend, fn MPI_Irsend_c: irsend, irsend_c, "3.7.2", Message, nonblocking::isend
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle, request: Out);
            fn MPI_Ibsend, fn MPI_Ibsend_c: ibsend, ibsend_c, "3.7.2", Message, nonblocking::isend
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle, request: Out);
            fn MPI_Send_init, fn MPI_Send_init_c: send_init, send_init_c, "3.9", Message, nonblocking::send_init
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle, request: Out);
            fn MPI_Ssend_init, fn MPI_Ssend_init_c: ssend_init, ssend_init_c, "3.9", Message, nonblocking::send_init
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle, request: Out);
            fn MPI_Rsend_init, fn MPI_Rsend_init_c: rsend_init, rsend_init_c, "3.9", Message, nonblocking::send_init
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle, request: Out);
            fn MPI_Bsend_init, fn MPI_Bsend_init_c: bsend_init, bsend_init_c, "3.9", Message, nonblocking::send_init
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle, request: Out);
            fn MPI_Irecv, fn MPI_Irecv_c: irecv, irecv_c, "3.7.2", Message, nonblocking::irecv
                (buf: Out, count: N, datatype: Type, source: Int, tag: Int, comm: Handle, request: Out);
            fn MPI_Recv_init, fn MPI_Recv_init_c: recv_init, recv_init_c, "3.9", Message, nonblocking::recv_init
                (buf: Out, count: N, datatype: Type, source: Int, tag: Int, comm: Handle, request: Out);
            fn MPI_Imrecv, fn MPI_Imrecv_c: imrecv, imrecv_c, "3.8.3", Message, nonblocking::imrecv
                (buf: Out, count: N, datatype: Type, message: Out, request: Out);
            fn MPI_Isendrecv, fn MPI_Isendrecv_c: isendrecv, isendrecv_c, "3.10", Message, nonblocking::isendrecv
                (sendbuf: In, sendcount: N, sendtype: Type, dest: Int, sendtag: Int,
                 recvbuf: Out, recvcount: N, recvtype: Type, source: Int, recvtag: Int, comm: Handle, request: Out);
            fn MPI_Isendrecv_replace, fn MPI_Isendrecv_replace_c: isendrecv_replace, isendrecv_replace_c, "3.10", Message, nonblocking::isendrecv_replace
                (buf: Out, count: N, datatype: Type, dest: Int, sendtag: Int, source: Int, recvtag: Int, comm: Handle,
                 request: Out);
            fn MPI_Bcast, fn MPI_Bcast_c: bcast, bcast_c, "6.4", Bcast, rooted::bcast
                (buffer: Out, count: N, datatype: Type, root: Int, comm: Handle);
            fn MPI_Ibcast, fn MPI_Ibcast_c: ibcast, ibcast_c, "6.12.2", Bcast, rooted::ibcast
                (buffer: Out, count: N, datatype: Type, root: Int, comm: Handle, request: Out);
            fn MPI_Bcast_init, fn MPI_Bcast_init_c: bcast_init, bcast_init_c, "6.13.2", Bcast, rooted::bcast_init
                (buffer: Out, count: N, datatype: Type, root: Int, comm: Handle, info: Handle, request: Out);
            fn MPI_Gather, fn MPI_Gather_c: gather, gather_c, "6.5", Gather, rooted::gather
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type,
                 root: Int, comm: Handle);
            fn MPI_Igather, fn MPI_Igather_c: igather, igather_c, "6.12.3", Gather, rooted::igather
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type,
                 root: Int, comm: Handle, request: Out);
            fn MPI_Gather_init, fn MPI_Gather_init_c: gather_init, gather_init_c, "6.13.3", Gather, rooted::gather_init
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type,
                 root: Int, comm: Handle, info: Handle, request: Out);
            fn MPI_Gatherv, fn MPI_Gatherv_c: gatherv, gatherv_c, "6.5", Gather, rooted::gatherv
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcounts: Ns, displs: Displs, recvtype: Type,
                 root: Int, comm: Handle);
            fn MPI_Igatherv, fn MPI_Igatherv_c: igatherv, igatherv_c, "6.12.3", Gather, rooted::igatherv
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcounts: Ns, displs: Displs, recvtype: Type,
                 root: Int, comm: Handle, request: Out);
            fn MPI_Gatherv_init, fn MPI_Gatherv_init_c: gatherv_init, gatherv_init_c, "6.13.3", Gather, rooted::gatherv_init
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcounts: Ns, displs: Displs, recvtype: Type,
                 root: Int, comm: Handle, info: Handle, request: Out);
            fn MPI_Scatter, fn MPI_Scatter_c: scatter, scatter_c, "6.6", Scatter, rooted::scatter
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type,
                 root: Int, comm: Handle);
            fn MPI_Iscatter, fn MPI_Iscatter_c: iscatter, iscatter_c, "6.12.4", Scatter, rooted::iscatter
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type,
                 root: Int, comm: Handle, request: Out);
            fn MPI_Scatter_init, fn MPI_Scatter_init_c: scatter_init, scatter_init_c, "6.13.4", Scatter, rooted::scatter_init
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type,
                 root: Int, comm: Handle, info: Handle, request: Out);
            fn MPI_Scatterv, fn MPI_Scatterv_c: scatterv, scatterv_c, "6.6", Scatter, rooted::scatterv
                (sendbuf: In, sendcounts: Ns, displs: Displs, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type,
                 root: Int, comm: Handle);
            fn MPI_Iscatterv, fn MPI_Iscatterv_c: iscatterv, iscatterv_c, "6.12.4", Scatter, rooted::iscatterv
                (sendbuf: In, sendcounts: Ns, displs: Displs, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type,
                 root: Int, comm: Handle, request: Out);
            fn MPI_Scatterv_init, fn MPI_Scatterv_init_c: scatterv_init, scatterv_init_c, "6.13.4", Scatter, rooted::scatterv_init
                (sendbuf: In, sendcounts: Ns, displs: Displs, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type,
                 root: Int, comm: Handle, info: Handle, request: Out);
            fn MPI_Allgather, fn MPI_Allgather_c: allgather, allgather_c, "6.7", Allgather, all::allgather
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle);
            fn MPI_Iallgather, fn MPI_Iallgather_c: iallgather, iallgather_c, "6.12.5", Allgather, all::iallgather
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle, request: Out);
            fn MPI_Allgather_init, fn MPI_Allgather_init_c: allgather_init, allgather_init_c, "6.13.5", Allgather, all::allgather_init
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle, info: Handle, request: Out);
            fn MPI_Alltoall, fn MPI_Alltoall_c: alltoall, alltoall_c, "6.8", Alltoall, all::alltoall
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle);
            fn MPI_Ialltoall, fn MPI_Ialltoall_c: ialltoall, ialltoall_c, "6.12.6", Alltoall, all::ialltoall
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle, request: Out);
            fn MPI_Alltoall_init, fn MPI_Alltoall_init_c: alltoall_init, alltoall_init_c, "6.13.6", Alltoall, all::alltoall_init
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle, info: Handle, request: Out);
            fn MPI_Alltoallv, fn MPI_Alltoallv_c: alltoallv, alltoallv_c, "6.8", Alltoall, all::alltoallv
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtype: Type, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtype: Type, comm: Handle);
            fn MPI_Ialltoallv, fn MPI_Ialltoallv_c: ialltoallv, ialltoallv_c, "6.12.6", Alltoall, all::ialltoallv
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtype: Type, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtype: Type, comm: Handle, request: Out);
            fn MPI_Alltoallv_init, fn MPI_Alltoallv_init_c: alltoallv_init, alltoallv_init_c, "6.13.6", Alltoall, all::alltoallv_init
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtype: Type, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtype: Type, comm: Handle, info: Handle, request: Out);
            fn MPI_Alltoallw, fn MPI_Alltoallw_c: alltoallw, alltoallw_c, "6.8", Alltoallw, each::alltoallw
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtypes: Types, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtypes: Types, comm: Handle);
            fn MPI_Ialltoallw, fn MPI_Ialltoallw_c: ialltoallw, ialltoallw_c, "6.12.6", Alltoallw, each::ialltoallw
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtypes: Types, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtypes: Types, comm: Handle, request: Out);
            fn MPI_Alltoallw_init, fn MPI_Alltoallw_init_c: alltoallw_init, alltoallw_init_c, "6.13.6", Alltoallw, each::alltoallw_init
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtypes: Types, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtypes: Types, comm: Handle, info: Handle, request: Out);
            fn MPI_Neighbor_allgather, fn MPI_Neighbor_allgather_c: neighbor_allgather, neighbor_allgather_c, "8.6.1", Neighbor, neighbour::neighbor_allgather
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle);
            fn MPI_Ineighbor_allgather, fn MPI_Ineighbor_allgather_c: ineighbor_allgather, ineighbor_allgather_c, "8.7.1", Neighbor, neighbour::ineighbor_allgather
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle, request: Out);
            fn MPI_Neighbor_allgather_init, fn MPI_Neighbor_allgather_init_c: neighbor_allgather_init, neighbor_allgather_init_c, "8.8.1", Neighbor, neighbour::neighbor_allgather_init
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle, info: Handle, request: Out);
            fn MPI_Neighbor_allgatherv, fn MPI_Neighbor_allgatherv_c: neighbor_allgatherv, neighbor_allgatherv_c, "8.6.1", Neighbor, neighbour::neighbor_allgatherv
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcounts: Ns, displs: Displs, recvtype: Type, comm: Handle);
            fn MPI_Ineighbor_allgatherv, fn MPI_Ineighbor_allgatherv_c: ineighbor_allgatherv, ineighbor_allgatherv_c, "8.7.1", Neighbor, neighbour::ineighbor_allgatherv
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcounts: Ns, displs: Displs, recvtype: Type, comm: Handle, request: Out);
            fn MPI_Neighbor_allgatherv_init, fn MPI_Neighbor_allgatherv_init_c: neighbor_allgatherv_init, neighbor_allgatherv_init_c, "8.8.1", Neighbor, neighbour::neighbor_allgatherv_init
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcounts: Ns, displs: Displs, recvtype: Type, comm: Handle, info: Handle, request: Out);
            fn MPI_Neighbor_alltoall, fn MPI_Neighbor_alltoall_c: neighbor_alltoall, neighbor_alltoall_c, "8.6.2", Neighbor, neighbour::neighbor_alltoall
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle);
            fn MPI_Ineighbor_alltoall, fn MPI_Ineighbor_alltoall_c: ineighbor_alltoall, ineighbor_alltoall_c, "8.7.2", Neighbor, neighbour::ineighbor_alltoall
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle, request: Out);
            fn MPI_Neighbor_alltoall_init, fn MPI_Neighbor_alltoall_init_c: neighbor_alltoall_init, neighbor_alltoall_init_c, "8.8.2", Neighbor, neighbour::neighbor_alltoall_init
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle, info: Handle, request: Out);
            fn MPI_Neighbor_alltoallv, fn MPI_Neighbor_alltoallv_c: neighbor_alltoallv, neighbor_alltoallv_c, "8.6.2", Neighbor, neighbour::neighbor_alltoallv
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtype: Type, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtype: Type, comm: Handle);
            fn MPI_Ineighbor_alltoallv, fn MPI_Ineighbor_alltoallv_c: ineighbor_alltoallv, ineighbor_alltoallv_c, "8.7.2", Neighbor, neighbour::ineighbor_alltoallv
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtype: Type, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtype: Type, comm: Handle, request: Out);
            fn MPI_Neighbor_alltoallv_init, fn MPI_Neighbor_alltoallv_init_c: neighbor_alltoallv_init, neighbor_alltoallv_init_c, "8.8.2", Neighbor, neighbour::neighbor_alltoallv_init
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtype: Type, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtype: Type, comm: Handle, info: Handle, request: Out);
            fn MPI_Neighbor_alltoallw, fn MPI_Neighbor_alltoallw_c: neighbor_alltoallw, neighbor_alltoallw_c, "8.6.2", NeighborAlltoallw, each::neighbor_alltoallw
                (sendbuf: In, sendcounts: Ns, sdispls: Aints, sendtypes: Types, recvbuf: Out, recvcounts: Ns, rdispls: Aints,
                 recvtypes: Types, comm: Handle);
            fn MPI_Ineighbor_alltoallw, fn MPI_Ineighbor_alltoallw_c: ineighbor_alltoallw, ineighbor_alltoallw_c, "8.7.2", NeighborAlltoallw, each::ineighbor_alltoallw
                (sendbuf: In, sendcounts: Ns, sdispls: Aints, sendtypes: Types, recvbuf: Out, recvcounts: Ns, rdispls: Aints,
                 recvtypes: Types, comm: Handle, request: Out);
            fn MPI_Neighbor_alltoallw_init, fn MPI_Neighbor_alltoallw_init_c: neighbor_alltoallw_init, neighbor_alltoallw_init_c, "8.8.2", NeighborAlltoallw, each::neighbor_alltoallw_init
                (sendbuf: In, sendcounts: Ns, sdispls: Aints, sendtypes: Types, recvbuf: Out, recvcounts: Ns, rdispls: Aints,
                 recvtypes: Types, comm: Handle, info: Handle, request: Out);
            fn MPI_File_write, fn MPI_File_write_c: file_write, file_write_c, "14.4.3", FileWrite, files::write
                (fh: Handle, buf: In, count: N, datatype: Type, status: Out);
            fn MPI_File_write_all, fn MPI_File_write_all_c: file_write_all, file_write_all_c, "14.4.3", FileWrite, files::write
                (fh: Handle, buf: In, count: N, datatype: Type, status: Out);
            fn MPI_File_write_at, fn MPI_File_write_at_c: file_write_at, file_write_at_c, "14.4.2", FileWrite, files::write_at
                (fh: Handle, offset: Offset, buf: In, count: N, datatype: Type, status: Out);
            fn MPI_File_write_at_all, fn MPI_File_write_at_all_c: file_write_at_all, file_write_at_all_c, "14.4.2", FileWrite, files::write_at
                (fh: Handle, offset: Offset, buf: In, count: N, datatype: Type, status: Out);
            fn MPI_File_write_shared, fn MPI_File_write_shared_c: file_write_shared, file_write_shared_c, "14.4.4", FileWrite, files::write
                (fh: Handle, buf: In, count: N, datatype: Type, status: Out);
            fn MPI_File_write_ordered, fn MPI_File_write_ordered_c: file_write_ordered, file_write_ordered_c, "14.4.4", FileWrite, files::write
                (fh: Handle, buf: In, count: N, datatype: Type, status: Out);
            fn MPI_File_read, fn MPI_File_read_c: file_read, file_read_c, "14.4.3", FileRead, files::read
                (fh: Handle, buf: Out, count: N, datatype: Type, status: Out);
            fn MPI_File_read_all, fn MPI_File_read_all_c: file_read_all, file_read_all_c, "14.4.3", FileRead, files::read
                (fh: Handle, buf: Out, count: N, datatype: Type, status: Out);
            fn MPI_File_read_at, fn MPI_File_read_at_c: file_read_at, file_read_at_c, "14.4.2", FileRead, files::read_at
                (fh: Handle, offset: Offset, buf: Out, count: N, datatype: Type, status: Out);
            fn MPI_File_read_at_all, fn MPI_File_read_at_all_c: file_read_at_all, file_read_at_all_c, "14.4.2", FileRead, files::read_at
                (fh: Handle, offset: Offset, buf: Out, count: N, datatype: Type, status: Out);
            fn MPI_Put, fn MPI_Put_c: put, put_c, "12.3.1", Put, windows::put
                (origin: In, count: N, datatype: Type, target: Int, at: Aint, target_count: N, target_type: Handle, win: Handle);
            fn MPI_Rput, fn MPI_Rput_c: rput, rput_c, "12.3.5", Put, windows::rput
                (origin: In, count: N, datatype: Type, target: Int, at: Aint, target_count: N, target_type: Handle, win: Handle,
                 request: Out);
            fn MPI_Rget, fn MPI_Rget_c: rget, rget_c, "12.3.5", Get, windows::rget
                (origin: Out, count: N, datatype: Type, target: Int, at: Aint, target_count: N, target_type: Handle, win: Handle,
                 request: Out);
        }
    };
}
pub(crate) use counted_calls;
