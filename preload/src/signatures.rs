//! The calls of MPI that take counts: one row for both forms, from which the host's functions (`host`) and this library's own (`wrap`)
//! are made.
//!
//! A row has the host's function in the form with `int` and in the one with `MPI_Count`, the names that are exported, what the policy calls the
//! call, what wraps it, and its arguments. A call without a type that is to be converted is the host's at once.

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
            pack pack_c MPI_Pack MPI_Pack_c "5.2" Message pack::pack
                (inbuf: In, incount: N, datatype: Met, outbuf: Out, outsize: N, position: Place, comm: Handle);
            unpack unpack_c MPI_Unpack MPI_Unpack_c "5.2" Message pack::unpack
                (inbuf: In, insize: N, position: Place, outbuf: Out, outcount: N, datatype: Met, comm: Handle);
            send send_c MPI_Send MPI_Send_c "3.2.1" Message blocking::send
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle);
            ssend ssend_c MPI_Ssend MPI_Ssend_c "3.4" Message blocking::send
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle);
            rsend rsend_c MPI_Rsend MPI_Rsend_c "3.4" Message blocking::send
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle);
            bsend bsend_c MPI_Bsend MPI_Bsend_c "3.4" Message blocking::send
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle);
            recv recv_c MPI_Recv MPI_Recv_c "3.2.4" Message blocking::recv
                (buf: Out, count: N, datatype: Type, source: Int, tag: Int, comm: Handle, status: Out);
            mrecv mrecv_c MPI_Mrecv MPI_Mrecv_c "3.8.3" Message blocking::mrecv
                (buf: Out, count: N, datatype: Type, message: Out, status: Out);
            sendrecv sendrecv_c MPI_Sendrecv MPI_Sendrecv_c "3.10" Message blocking::sendrecv
                (sendbuf: In, sendcount: N, sendtype: Type, dest: Int, sendtag: Int,
                 recvbuf: Out, recvcount: N, recvtype: Type, source: Int, recvtag: Int, comm: Handle, status: Out);
            sendrecv_replace sendrecv_replace_c MPI_Sendrecv_replace MPI_Sendrecv_replace_c "3.10" Message blocking::sendrecv_replace
                (buf: Out, count: N, datatype: Type, dest: Int, sendtag: Int, source: Int, recvtag: Int, comm: Handle,
                 status: Out);
            isend isend_c MPI_Isend MPI_Isend_c "3.7.2" Message nonblocking::isend
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle, request: Out);
            issend issend_c MPI_Issend MPI_Issend_c "3.7.2" Message nonblocking::isend
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle, request: Out);
            irsend irsend_c MPI_Irsend MPI_Irsend_c "3.7.2" Message nonblocking::isend
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle, request: Out);
            ibsend ibsend_c MPI_Ibsend MPI_Ibsend_c "3.7.2" Message nonblocking::isend
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle, request: Out);
            send_init send_init_c MPI_Send_init MPI_Send_init_c "3.9" Message nonblocking::send_init
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle, request: Out);
            ssend_init ssend_init_c MPI_Ssend_init MPI_Ssend_init_c "3.9" Message nonblocking::send_init
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle, request: Out);
            rsend_init rsend_init_c MPI_Rsend_init MPI_Rsend_init_c "3.9" Message nonblocking::send_init
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle, request: Out);
            bsend_init bsend_init_c MPI_Bsend_init MPI_Bsend_init_c "3.9" Message nonblocking::send_init
                (buf: In, count: N, datatype: Type, dest: Int, tag: Int, comm: Handle, request: Out);
            irecv irecv_c MPI_Irecv MPI_Irecv_c "3.7.2" Message nonblocking::irecv
                (buf: Out, count: N, datatype: Type, source: Int, tag: Int, comm: Handle, request: Out);
            recv_init recv_init_c MPI_Recv_init MPI_Recv_init_c "3.9" Message nonblocking::recv_init
                (buf: Out, count: N, datatype: Type, source: Int, tag: Int, comm: Handle, request: Out);
            imrecv imrecv_c MPI_Imrecv MPI_Imrecv_c "3.8.3" Message nonblocking::imrecv
                (buf: Out, count: N, datatype: Type, message: Out, request: Out);
            isendrecv isendrecv_c MPI_Isendrecv MPI_Isendrecv_c "3.10" Message nonblocking::isendrecv
                (sendbuf: In, sendcount: N, sendtype: Type, dest: Int, sendtag: Int,
                 recvbuf: Out, recvcount: N, recvtype: Type, source: Int, recvtag: Int, comm: Handle, request: Out);
            isendrecv_replace isendrecv_replace_c MPI_Isendrecv_replace MPI_Isendrecv_replace_c "3.10" Message nonblocking::isendrecv_replace
                (buf: Out, count: N, datatype: Type, dest: Int, sendtag: Int, source: Int, recvtag: Int, comm: Handle,
                 request: Out);
            bcast bcast_c MPI_Bcast MPI_Bcast_c "6.4" Bcast rooted::bcast
                (buffer: Out, count: N, datatype: Type, root: Int, comm: Handle);
            ibcast ibcast_c MPI_Ibcast MPI_Ibcast_c "6.12.2" Bcast rooted::ibcast
                (buffer: Out, count: N, datatype: Type, root: Int, comm: Handle, request: Out);
            bcast_init bcast_init_c MPI_Bcast_init MPI_Bcast_init_c "6.13.2" Bcast rooted::bcast_init
                (buffer: Out, count: N, datatype: Type, root: Int, comm: Handle, info: Handle, request: Out);
            gather gather_c MPI_Gather MPI_Gather_c "6.5" Gather rooted::gather
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type,
                 root: Int, comm: Handle);
            igather igather_c MPI_Igather MPI_Igather_c "6.12.3" Gather rooted::igather
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type,
                 root: Int, comm: Handle, request: Out);
            gather_init gather_init_c MPI_Gather_init MPI_Gather_init_c "6.13.3" Gather rooted::gather_init
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type,
                 root: Int, comm: Handle, info: Handle, request: Out);
            gatherv gatherv_c MPI_Gatherv MPI_Gatherv_c "6.5" Gather rooted::gatherv
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcounts: Ns, displs: Displs, recvtype: Type,
                 root: Int, comm: Handle);
            igatherv igatherv_c MPI_Igatherv MPI_Igatherv_c "6.12.3" Gather rooted::igatherv
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcounts: Ns, displs: Displs, recvtype: Type,
                 root: Int, comm: Handle, request: Out);
            gatherv_init gatherv_init_c MPI_Gatherv_init MPI_Gatherv_init_c "6.13.3" Gather rooted::gatherv_init
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcounts: Ns, displs: Displs, recvtype: Type,
                 root: Int, comm: Handle, info: Handle, request: Out);
            scatter scatter_c MPI_Scatter MPI_Scatter_c "6.6" Scatter rooted::scatter
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type,
                 root: Int, comm: Handle);
            iscatter iscatter_c MPI_Iscatter MPI_Iscatter_c "6.12.4" Scatter rooted::iscatter
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type,
                 root: Int, comm: Handle, request: Out);
            scatter_init scatter_init_c MPI_Scatter_init MPI_Scatter_init_c "6.13.4" Scatter rooted::scatter_init
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type,
                 root: Int, comm: Handle, info: Handle, request: Out);
            scatterv scatterv_c MPI_Scatterv MPI_Scatterv_c "6.6" Scatter rooted::scatterv
                (sendbuf: In, sendcounts: Ns, displs: Displs, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type,
                 root: Int, comm: Handle);
            iscatterv iscatterv_c MPI_Iscatterv MPI_Iscatterv_c "6.12.4" Scatter rooted::iscatterv
                (sendbuf: In, sendcounts: Ns, displs: Displs, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type,
                 root: Int, comm: Handle, request: Out);
            scatterv_init scatterv_init_c MPI_Scatterv_init MPI_Scatterv_init_c "6.13.4" Scatter rooted::scatterv_init
                (sendbuf: In, sendcounts: Ns, displs: Displs, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type,
                 root: Int, comm: Handle, info: Handle, request: Out);
            allgather allgather_c MPI_Allgather MPI_Allgather_c "6.7" Allgather all::allgather
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle);
            iallgather iallgather_c MPI_Iallgather MPI_Iallgather_c "6.12.5" Allgather all::iallgather
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle, request: Out);
            allgather_init allgather_init_c MPI_Allgather_init MPI_Allgather_init_c "6.13.5" Allgather all::allgather_init
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle, info: Handle, request: Out);
            alltoall alltoall_c MPI_Alltoall MPI_Alltoall_c "6.8" Alltoall all::alltoall
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle);
            ialltoall ialltoall_c MPI_Ialltoall MPI_Ialltoall_c "6.12.6" Alltoall all::ialltoall
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle, request: Out);
            alltoall_init alltoall_init_c MPI_Alltoall_init MPI_Alltoall_init_c "6.13.6" Alltoall all::alltoall_init
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle, info: Handle, request: Out);
            alltoallv alltoallv_c MPI_Alltoallv MPI_Alltoallv_c "6.8" Alltoall all::alltoallv
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtype: Type, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtype: Type, comm: Handle);
            ialltoallv ialltoallv_c MPI_Ialltoallv MPI_Ialltoallv_c "6.12.6" Alltoall all::ialltoallv
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtype: Type, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtype: Type, comm: Handle, request: Out);
            alltoallv_init alltoallv_init_c MPI_Alltoallv_init MPI_Alltoallv_init_c "6.13.6" Alltoall all::alltoallv_init
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtype: Type, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtype: Type, comm: Handle, info: Handle, request: Out);
            alltoallw alltoallw_c MPI_Alltoallw MPI_Alltoallw_c "6.8" Alltoallw each::alltoallw
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtypes: Types, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtypes: Types, comm: Handle);
            ialltoallw ialltoallw_c MPI_Ialltoallw MPI_Ialltoallw_c "6.12.6" Alltoallw each::ialltoallw
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtypes: Types, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtypes: Types, comm: Handle, request: Out);
            alltoallw_init alltoallw_init_c MPI_Alltoallw_init MPI_Alltoallw_init_c "6.13.6" Alltoallw each::alltoallw_init
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtypes: Types, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtypes: Types, comm: Handle, info: Handle, request: Out);
            neighbor_allgather neighbor_allgather_c MPI_Neighbor_allgather MPI_Neighbor_allgather_c "8.6.1" Neighbor neighbour::neighbor_allgather
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle);
            ineighbor_allgather ineighbor_allgather_c MPI_Ineighbor_allgather MPI_Ineighbor_allgather_c "8.7.1" Neighbor neighbour::ineighbor_allgather
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle, request: Out);
            neighbor_allgather_init neighbor_allgather_init_c MPI_Neighbor_allgather_init MPI_Neighbor_allgather_init_c "8.8.1" Neighbor neighbour::neighbor_allgather_init
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle, info: Handle, request: Out);
            neighbor_allgatherv neighbor_allgatherv_c MPI_Neighbor_allgatherv MPI_Neighbor_allgatherv_c "8.6.1" Neighbor neighbour::neighbor_allgatherv
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcounts: Ns, displs: Displs, recvtype: Type, comm: Handle);
            ineighbor_allgatherv ineighbor_allgatherv_c MPI_Ineighbor_allgatherv MPI_Ineighbor_allgatherv_c "8.7.1" Neighbor neighbour::ineighbor_allgatherv
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcounts: Ns, displs: Displs, recvtype: Type, comm: Handle, request: Out);
            neighbor_allgatherv_init neighbor_allgatherv_init_c MPI_Neighbor_allgatherv_init MPI_Neighbor_allgatherv_init_c "8.8.1" Neighbor neighbour::neighbor_allgatherv_init
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcounts: Ns, displs: Displs, recvtype: Type, comm: Handle, info: Handle, request: Out);
            neighbor_alltoall neighbor_alltoall_c MPI_Neighbor_alltoall MPI_Neighbor_alltoall_c "8.6.2" Neighbor neighbour::neighbor_alltoall
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle);
            ineighbor_alltoall ineighbor_alltoall_c MPI_Ineighbor_alltoall MPI_Ineighbor_alltoall_c "8.7.2" Neighbor neighbour::ineighbor_alltoall
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle, request: Out);
            neighbor_alltoall_init neighbor_alltoall_init_c MPI_Neighbor_alltoall_init MPI_Neighbor_alltoall_init_c "8.8.2" Neighbor neighbour::neighbor_alltoall_init
                (sendbuf: In, sendcount: N, sendtype: Type, recvbuf: Out, recvcount: N, recvtype: Type, comm: Handle, info: Handle, request: Out);
            neighbor_alltoallv neighbor_alltoallv_c MPI_Neighbor_alltoallv MPI_Neighbor_alltoallv_c "8.6.2" Neighbor neighbour::neighbor_alltoallv
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtype: Type, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtype: Type, comm: Handle);
            ineighbor_alltoallv ineighbor_alltoallv_c MPI_Ineighbor_alltoallv MPI_Ineighbor_alltoallv_c "8.7.2" Neighbor neighbour::ineighbor_alltoallv
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtype: Type, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtype: Type, comm: Handle, request: Out);
            neighbor_alltoallv_init neighbor_alltoallv_init_c MPI_Neighbor_alltoallv_init MPI_Neighbor_alltoallv_init_c "8.8.2" Neighbor neighbour::neighbor_alltoallv_init
                (sendbuf: In, sendcounts: Ns, sdispls: Displs, sendtype: Type, recvbuf: Out, recvcounts: Ns, rdispls: Displs,
                 recvtype: Type, comm: Handle, info: Handle, request: Out);
            neighbor_alltoallw neighbor_alltoallw_c MPI_Neighbor_alltoallw MPI_Neighbor_alltoallw_c "8.6.2" NeighborAlltoallw each::neighbor_alltoallw
                (sendbuf: In, sendcounts: Ns, sdispls: Aints, sendtypes: Types, recvbuf: Out, recvcounts: Ns, rdispls: Aints,
                 recvtypes: Types, comm: Handle);
            ineighbor_alltoallw ineighbor_alltoallw_c MPI_Ineighbor_alltoallw MPI_Ineighbor_alltoallw_c "8.7.2" NeighborAlltoallw each::ineighbor_alltoallw
                (sendbuf: In, sendcounts: Ns, sdispls: Aints, sendtypes: Types, recvbuf: Out, recvcounts: Ns, rdispls: Aints,
                 recvtypes: Types, comm: Handle, request: Out);
            neighbor_alltoallw_init neighbor_alltoallw_init_c MPI_Neighbor_alltoallw_init MPI_Neighbor_alltoallw_init_c "8.8.2" NeighborAlltoallw each::neighbor_alltoallw_init
                (sendbuf: In, sendcounts: Ns, sdispls: Aints, sendtypes: Types, recvbuf: Out, recvcounts: Ns, rdispls: Aints,
                 recvtypes: Types, comm: Handle, info: Handle, request: Out);
            file_write file_write_c MPI_File_write MPI_File_write_c "14.4.3" FileWrite files::write
                (fh: Handle, buf: In, count: N, datatype: Type, status: Out);
            file_write_all file_write_all_c MPI_File_write_all MPI_File_write_all_c "14.4.3" FileWrite files::write
                (fh: Handle, buf: In, count: N, datatype: Type, status: Out);
            file_write_at file_write_at_c MPI_File_write_at MPI_File_write_at_c "14.4.2" FileWrite files::write_at
                (fh: Handle, offset: Offset, buf: In, count: N, datatype: Type, status: Out);
            file_write_at_all file_write_at_all_c MPI_File_write_at_all MPI_File_write_at_all_c "14.4.2" FileWrite files::write_at
                (fh: Handle, offset: Offset, buf: In, count: N, datatype: Type, status: Out);
            file_write_shared file_write_shared_c MPI_File_write_shared MPI_File_write_shared_c "14.4.4" FileWrite files::write
                (fh: Handle, buf: In, count: N, datatype: Type, status: Out);
            file_write_ordered file_write_ordered_c MPI_File_write_ordered MPI_File_write_ordered_c "14.4.4" FileWrite files::write
                (fh: Handle, buf: In, count: N, datatype: Type, status: Out);
            file_read file_read_c MPI_File_read MPI_File_read_c "14.4.3" FileRead files::read
                (fh: Handle, buf: Out, count: N, datatype: Type, status: Out);
            file_read_all file_read_all_c MPI_File_read_all MPI_File_read_all_c "14.4.3" FileRead files::read
                (fh: Handle, buf: Out, count: N, datatype: Type, status: Out);
            file_read_at file_read_at_c MPI_File_read_at MPI_File_read_at_c "14.4.2" FileRead files::read_at
                (fh: Handle, offset: Offset, buf: Out, count: N, datatype: Type, status: Out);
            file_read_at_all file_read_at_all_c MPI_File_read_at_all MPI_File_read_at_all_c "14.4.2" FileRead files::read_at
                (fh: Handle, offset: Offset, buf: Out, count: N, datatype: Type, status: Out);
            put put_c MPI_Put MPI_Put_c "12.3.1" Put windows::put
                (origin: In, count: N, datatype: Type, target: Int, at: Aint, target_count: N, target_type: Handle, win: Handle);
            rput rput_c MPI_Rput MPI_Rput_c "12.3.5" Put windows::rput
                (origin: In, count: N, datatype: Type, target: Int, at: Aint, target_count: N, target_type: Handle, win: Handle,
                 request: Out);
            rget rget_c MPI_Rget MPI_Rget_c "12.3.5" Get windows::rget
                (origin: Out, count: N, datatype: Type, target: Int, at: Aint, target_count: N, target_type: Handle, win: Handle,
                 request: Out);
        }
    };
}
pub(crate) use counted_calls;
