//! Table of the wrapped functions that have two forms, one with counts of type `int` and one with
//! counts of type `MPI_Count`.
//!
//! Each function has one row. The wrappers of both forms, the declarations of the MPI library's
//! functions, and the rules for both forms are generated from the row. A row has, in this order:
//!
//! 1. the names that are exported: the form whose counts are `int`, and the form with `MPI_Count`;
//! 2. the names of both forms as fields of the structures of function pointers;
//! 3. the section of MPI 5.0 that defines the function;
//! 4. the [`Call`], which is the kind of call that policies decide about;
//! 5. the [`Completion`], which is the kind of call that completes the operation;
//! 6. the function of the preload library that carries out the call;
//! 7. the arguments, each with a name and a [`Role`].
//!
//! [`Call::is_collective`] returns true for the calls that policies treat as collective; calls on
//! files are not among them. The roles determine in which direction data moves and on which object
//! errors are raised.

use crate::policy::Call;

/// Direction in which a function moves the caller's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataDirection {
    /// From the caller's buffer to another process, a file or packed bytes.
    Send,
    /// To the caller's buffer from another process, a file or packed bytes.
    Receive,
    /// From one buffer of the caller and to another one, or only one of the two, depending on the
    /// rank.
    Both,
    /// The function has no buffer of the caller.
    Neither,
}

/// Role of an argument, which determines its C type. The form with `MPI_Count` has other types than
/// the form with `int`. There the arguments `Count`, `Size` and `TargetCount`, the number to which
/// `Position` points, and the elements of `Counts` have the type `MPI_Count`. The elements of
/// `Displs` have the type `MPI_Aint`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A buffer that is sent from.
    SendBuf,
    /// A buffer that is received into.
    RecvBuf,
    /// A buffer that is sent from and received into, or one of the two, depending on the rank.
    SendRecvBuf,
    /// Packed bytes that are read.
    PackedIn,
    /// Packed bytes that are written.
    PackedOut,
    /// Number of elements of the datatype argument that follows.
    Count,
    /// Number of elements for each peer.
    Counts,
    /// Displacement for each peer, in extents of the datatype or in bytes.
    Displs,
    /// Displacement for each peer in bytes, of type `MPI_Aint` in both forms.
    ByteDispls,
    /// Size of packed bytes, in bytes.
    Size,
    /// Position in packed bytes, in bytes, which is read and written.
    Position,
    /// A datatype. The wrapper looks the datatype up, to find out whether its buffer is converted,
    /// before it runs the function that carries out the call.
    Type,
    /// Datatype of a pack or unpack. The function that carries out the call looks the datatype up.
    PackType,
    /// A datatype for each peer.
    Types,
    /// Number of elements of the target's datatype.
    TargetCount,
    /// Datatype of the target, which is never converted.
    TargetType,
    /// Rank of the root.
    Root,
    /// Rank that a message goes to or comes from.
    Peer,
    /// Rank of the target.
    Target,
    /// Tag.
    Tag,
    /// Communicator, on which errors are raised.
    Comm,
    /// Window, on which errors are raised.
    Win,
    /// File, on which errors are raised.
    File,
    /// Info object.
    Info,
    /// Message handle. A message handle does not show its communicator, so the error for a count
    /// that is too large is raised on `MPI_COMM_WORLD`.
    Message,
    /// Request that is made.
    Request,
    /// Status that is written.
    Status,
    /// Offset in a file, in elementary datatypes of the view.
    Offset,
    /// Displacement in a window, in displacement units of the window.
    Displacement,
}

/// Completion of an operation: the call after whose return the caller may use its buffers again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The call itself, which blocks.
    ThisCall,
    /// A later call that completes the request of the operation.
    ItsRequest,
    /// A later call that completes the persistent request of the operation. Each start of the
    /// request begins the operation anew.
    Persistent,
    /// The call that ends the epoch of the window.
    Epoch,
}

/// A row of the table of functions, with only those columns from which rules are derived.
#[derive(Clone, Copy, Debug)]
pub struct CountedCall {
    /// Name of the form whose counts are `int`.
    pub name: &'static str,
    /// Kind of call, for which policies have rows of their own.
    pub call: Call,
    /// Completion of the operation.
    pub completion: Completion,
    /// Roles of the arguments, in order.
    pub arguments: &'static [Role],
}

impl CountedCall {
    /// Returns the direction in which the call moves the caller's data.
    pub const fn direction(&self) -> DataDirection {
        let (mut sends, mut receives, mut i) = (false, false, 0);
        // A `const` function cannot use iterators.
        while i < self.arguments.len() {
            sends |= matches!(self.arguments[i], Role::SendBuf | Role::SendRecvBuf);
            receives |= matches!(self.arguments[i], Role::RecvBuf | Role::SendRecvBuf);
            i += 1;
        }
        match (sends, receives) {
            (true, true) => DataDirection::Both,
            (true, false) => DataDirection::Send,
            (false, true) => DataDirection::Receive,
            (false, false) => DataDirection::Neither,
        }
    }

    /// Returns true if the call is a pack or unpack, which moves nothing between processes.
    pub const fn packs(&self) -> bool {
        let mut i = 0;
        while i < self.arguments.len() {
            if matches!(self.arguments[i], Role::PackType) {
                return true;
            }
            i += 1;
        }
        false
    }
}

/// Passes all rows of the table to the macro `$then`.
#[macro_export]
macro_rules! for_each_counted_call {
    ($then:ident) => {
        $then! {
            fn MPI_Pack, fn MPI_Pack_c: pack, pack_c, "5.2", Message ThisCall pack::pack
                (inbuf: SendBuf, incount: Count, datatype: PackType, outbuf: PackedOut, outsize: Size, position: Position,
                 comm: Comm);
            fn MPI_Unpack, fn MPI_Unpack_c: unpack, unpack_c, "5.2", Message ThisCall pack::unpack
                (inbuf: PackedIn, insize: Size, position: Position, outbuf: RecvBuf, outcount: Count, datatype: PackType,
                 comm: Comm);
            fn MPI_Send, fn MPI_Send_c: send, send_c, "3.2.1", Message ThisCall blocking::send
                (buf: SendBuf, count: Count, datatype: Type, dest: Peer, tag: Tag, comm: Comm);
            fn MPI_Ssend, fn MPI_Ssend_c: ssend, ssend_c, "3.4", Message ThisCall blocking::send
                (buf: SendBuf, count: Count, datatype: Type, dest: Peer, tag: Tag, comm: Comm);
            fn MPI_Rsend, fn MPI_Rsend_c: rsend, rsend_c, "3.4", Message ThisCall blocking::send
                (buf: SendBuf, count: Count, datatype: Type, dest: Peer, tag: Tag, comm: Comm);
            fn MPI_Bsend, fn MPI_Bsend_c: bsend, bsend_c, "3.4", Message ThisCall blocking::send
                (buf: SendBuf, count: Count, datatype: Type, dest: Peer, tag: Tag, comm: Comm);
            fn MPI_Recv, fn MPI_Recv_c: recv, recv_c, "3.2.4", Message ThisCall blocking::recv
                (buf: RecvBuf, count: Count, datatype: Type, source: Peer, tag: Tag, comm: Comm, status: Status);
            fn MPI_Mrecv, fn MPI_Mrecv_c: mrecv, mrecv_c, "3.8.3", Message ThisCall blocking::mrecv
                (buf: RecvBuf, count: Count, datatype: Type, message: Message, status: Status);
            fn MPI_Sendrecv, fn MPI_Sendrecv_c: sendrecv, sendrecv_c, "3.10", Message ThisCall blocking::sendrecv
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, dest: Peer, sendtag: Tag, recvbuf: RecvBuf,
                 recvcount: Count, recvtype: Type, source: Peer, recvtag: Tag, comm: Comm, status: Status);
            fn MPI_Sendrecv_replace, fn MPI_Sendrecv_replace_c: sendrecv_replace, sendrecv_replace_c, "3.10", Message ThisCall blocking::sendrecv_replace
                (buf: SendRecvBuf, count: Count, datatype: Type, dest: Peer, sendtag: Tag, source: Peer, recvtag: Tag,
                 comm: Comm, status: Status);
            fn MPI_Isend, fn MPI_Isend_c: isend, isend_c, "3.7.2", Message ItsRequest nonblocking::isend
                (buf: SendBuf, count: Count, datatype: Type, dest: Peer, tag: Tag, comm: Comm, request: Request);
            fn MPI_Issend, fn MPI_Issend_c: issend, issend_c, "3.7.2", Message ItsRequest nonblocking::isend
                (buf: SendBuf, count: Count, datatype: Type, dest: Peer, tag: Tag, comm: Comm, request: Request);
            fn MPI_Irsend, fn MPI_Irsend_c: irsend, irsend_c, "3.7.2", Message ItsRequest nonblocking::isend
                (buf: SendBuf, count: Count, datatype: Type, dest: Peer, tag: Tag, comm: Comm, request: Request);
            fn MPI_Ibsend, fn MPI_Ibsend_c: ibsend, ibsend_c, "3.7.2", Message ItsRequest nonblocking::isend
                (buf: SendBuf, count: Count, datatype: Type, dest: Peer, tag: Tag, comm: Comm, request: Request);
            fn MPI_Send_init, fn MPI_Send_init_c: send_init, send_init_c, "3.9", Message Persistent nonblocking::send_init
                (buf: SendBuf, count: Count, datatype: Type, dest: Peer, tag: Tag, comm: Comm, request: Request);
            fn MPI_Ssend_init, fn MPI_Ssend_init_c: ssend_init, ssend_init_c, "3.9", Message Persistent nonblocking::send_init
                (buf: SendBuf, count: Count, datatype: Type, dest: Peer, tag: Tag, comm: Comm, request: Request);
            fn MPI_Rsend_init, fn MPI_Rsend_init_c: rsend_init, rsend_init_c, "3.9", Message Persistent nonblocking::send_init
                (buf: SendBuf, count: Count, datatype: Type, dest: Peer, tag: Tag, comm: Comm, request: Request);
            fn MPI_Bsend_init, fn MPI_Bsend_init_c: bsend_init, bsend_init_c, "3.9", Message Persistent nonblocking::send_init
                (buf: SendBuf, count: Count, datatype: Type, dest: Peer, tag: Tag, comm: Comm, request: Request);
            fn MPI_Irecv, fn MPI_Irecv_c: irecv, irecv_c, "3.7.2", Message ItsRequest nonblocking::irecv
                (buf: RecvBuf, count: Count, datatype: Type, source: Peer, tag: Tag, comm: Comm, request: Request);
            fn MPI_Recv_init, fn MPI_Recv_init_c: recv_init, recv_init_c, "3.9", Message Persistent nonblocking::recv_init
                (buf: RecvBuf, count: Count, datatype: Type, source: Peer, tag: Tag, comm: Comm, request: Request);
            fn MPI_Imrecv, fn MPI_Imrecv_c: imrecv, imrecv_c, "3.8.3", Message ItsRequest nonblocking::imrecv
                (buf: RecvBuf, count: Count, datatype: Type, message: Message, request: Request);
            fn MPI_Isendrecv, fn MPI_Isendrecv_c: isendrecv, isendrecv_c, "3.10", Message ItsRequest nonblocking::isendrecv
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, dest: Peer, sendtag: Tag, recvbuf: RecvBuf,
                 recvcount: Count, recvtype: Type, source: Peer, recvtag: Tag, comm: Comm, request: Request);
            fn MPI_Isendrecv_replace, fn MPI_Isendrecv_replace_c: isendrecv_replace, isendrecv_replace_c, "3.10", Message ItsRequest nonblocking::isendrecv_replace
                (buf: SendRecvBuf, count: Count, datatype: Type, dest: Peer, sendtag: Tag, source: Peer, recvtag: Tag,
                 comm: Comm, request: Request);
            fn MPI_Bcast, fn MPI_Bcast_c: bcast, bcast_c, "6.4", Bcast ThisCall rooted::bcast
                (buffer: SendRecvBuf, count: Count, datatype: Type, root: Root, comm: Comm);
            fn MPI_Ibcast, fn MPI_Ibcast_c: ibcast, ibcast_c, "6.12.2", Bcast ItsRequest rooted::ibcast
                (buffer: SendRecvBuf, count: Count, datatype: Type, root: Root, comm: Comm, request: Request);
            fn MPI_Bcast_init, fn MPI_Bcast_init_c: bcast_init, bcast_init_c, "6.13.2", Bcast Persistent rooted::bcast_init
                (buffer: SendRecvBuf, count: Count, datatype: Type, root: Root, comm: Comm, info: Info, request: Request);
            fn MPI_Gather, fn MPI_Gather_c: gather, gather_c, "6.5", Gather ThisCall rooted::gather
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type,
                 root: Root, comm: Comm);
            fn MPI_Igather, fn MPI_Igather_c: igather, igather_c, "6.12.3", Gather ItsRequest rooted::igather
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type,
                 root: Root, comm: Comm, request: Request);
            fn MPI_Gather_init, fn MPI_Gather_init_c: gather_init, gather_init_c, "6.13.3", Gather Persistent rooted::gather_init
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type,
                 root: Root, comm: Comm, info: Info, request: Request);
            fn MPI_Gatherv, fn MPI_Gatherv_c: gatherv, gatherv_c, "6.5", Gather ThisCall rooted::gatherv
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcounts: Counts, displs: Displs,
                 recvtype: Type, root: Root, comm: Comm);
            fn MPI_Igatherv, fn MPI_Igatherv_c: igatherv, igatherv_c, "6.12.3", Gather ItsRequest rooted::igatherv
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcounts: Counts, displs: Displs,
                 recvtype: Type, root: Root, comm: Comm, request: Request);
            fn MPI_Gatherv_init, fn MPI_Gatherv_init_c: gatherv_init, gatherv_init_c, "6.13.3", Gather Persistent rooted::gatherv_init
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcounts: Counts, displs: Displs,
                 recvtype: Type, root: Root, comm: Comm, info: Info, request: Request);
            fn MPI_Scatter, fn MPI_Scatter_c: scatter, scatter_c, "6.6", Scatter ThisCall rooted::scatter
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type,
                 root: Root, comm: Comm);
            fn MPI_Iscatter, fn MPI_Iscatter_c: iscatter, iscatter_c, "6.12.4", Scatter ItsRequest rooted::iscatter
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type,
                 root: Root, comm: Comm, request: Request);
            fn MPI_Scatter_init, fn MPI_Scatter_init_c: scatter_init, scatter_init_c, "6.13.4", Scatter Persistent rooted::scatter_init
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type,
                 root: Root, comm: Comm, info: Info, request: Request);
            fn MPI_Scatterv, fn MPI_Scatterv_c: scatterv, scatterv_c, "6.6", Scatter ThisCall rooted::scatterv
                (sendbuf: SendBuf, sendcounts: Counts, displs: Displs, sendtype: Type, recvbuf: RecvBuf, recvcount: Count,
                 recvtype: Type, root: Root, comm: Comm);
            fn MPI_Iscatterv, fn MPI_Iscatterv_c: iscatterv, iscatterv_c, "6.12.4", Scatter ItsRequest rooted::iscatterv
                (sendbuf: SendBuf, sendcounts: Counts, displs: Displs, sendtype: Type, recvbuf: RecvBuf, recvcount: Count,
                 recvtype: Type, root: Root, comm: Comm, request: Request);
            fn MPI_Scatterv_init, fn MPI_Scatterv_init_c: scatterv_init, scatterv_init_c, "6.13.4", Scatter Persistent rooted::scatterv_init
                (sendbuf: SendBuf, sendcounts: Counts, displs: Displs, sendtype: Type, recvbuf: RecvBuf, recvcount: Count,
                 recvtype: Type, root: Root, comm: Comm, info: Info, request: Request);
            fn MPI_Allgather, fn MPI_Allgather_c: allgather, allgather_c, "6.7", Allgather ThisCall all::allgather
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type,
                 comm: Comm);
            fn MPI_Iallgather, fn MPI_Iallgather_c: iallgather, iallgather_c, "6.12.5", Allgather ItsRequest all::iallgather
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type,
                 comm: Comm, request: Request);
            fn MPI_Allgather_init, fn MPI_Allgather_init_c: allgather_init, allgather_init_c, "6.13.5", Allgather Persistent all::allgather_init
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type,
                 comm: Comm, info: Info, request: Request);
            fn MPI_Alltoall, fn MPI_Alltoall_c: alltoall, alltoall_c, "6.8", Alltoall ThisCall all::alltoall
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type,
                 comm: Comm);
            fn MPI_Ialltoall, fn MPI_Ialltoall_c: ialltoall, ialltoall_c, "6.12.6", Alltoall ItsRequest all::ialltoall
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type,
                 comm: Comm, request: Request);
            fn MPI_Alltoall_init, fn MPI_Alltoall_init_c: alltoall_init, alltoall_init_c, "6.13.6", Alltoall Persistent all::alltoall_init
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type,
                 comm: Comm, info: Info, request: Request);
            fn MPI_Alltoallv, fn MPI_Alltoallv_c: alltoallv, alltoallv_c, "6.8", Alltoall ThisCall all::alltoallv
                (sendbuf: SendBuf, sendcounts: Counts, sdispls: Displs, sendtype: Type, recvbuf: RecvBuf, recvcounts: Counts,
                 rdispls: Displs, recvtype: Type, comm: Comm);
            fn MPI_Ialltoallv, fn MPI_Ialltoallv_c: ialltoallv, ialltoallv_c, "6.12.6", Alltoall ItsRequest all::ialltoallv
                (sendbuf: SendBuf, sendcounts: Counts, sdispls: Displs, sendtype: Type, recvbuf: RecvBuf, recvcounts: Counts,
                 rdispls: Displs, recvtype: Type, comm: Comm, request: Request);
            fn MPI_Alltoallv_init, fn MPI_Alltoallv_init_c: alltoallv_init, alltoallv_init_c, "6.13.6", Alltoall Persistent all::alltoallv_init
                (sendbuf: SendBuf, sendcounts: Counts, sdispls: Displs, sendtype: Type, recvbuf: RecvBuf, recvcounts: Counts,
                 rdispls: Displs, recvtype: Type, comm: Comm, info: Info, request: Request);
            fn MPI_Alltoallw, fn MPI_Alltoallw_c: alltoallw, alltoallw_c, "6.8", Alltoallw ThisCall each::alltoallw
                (sendbuf: SendBuf, sendcounts: Counts, sdispls: Displs, sendtypes: Types, recvbuf: RecvBuf,
                 recvcounts: Counts, rdispls: Displs, recvtypes: Types, comm: Comm);
            fn MPI_Ialltoallw, fn MPI_Ialltoallw_c: ialltoallw, ialltoallw_c, "6.12.6", Alltoallw ItsRequest each::ialltoallw
                (sendbuf: SendBuf, sendcounts: Counts, sdispls: Displs, sendtypes: Types, recvbuf: RecvBuf,
                 recvcounts: Counts, rdispls: Displs, recvtypes: Types, comm: Comm, request: Request);
            fn MPI_Alltoallw_init, fn MPI_Alltoallw_init_c: alltoallw_init, alltoallw_init_c, "6.13.6", Alltoallw Persistent each::alltoallw_init
                (sendbuf: SendBuf, sendcounts: Counts, sdispls: Displs, sendtypes: Types, recvbuf: RecvBuf,
                 recvcounts: Counts, rdispls: Displs, recvtypes: Types, comm: Comm, info: Info, request: Request);
            fn MPI_Neighbor_allgather, fn MPI_Neighbor_allgather_c: neighbor_allgather, neighbor_allgather_c, "8.6.1", Neighbor ThisCall neighbour::neighbor_allgather
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type,
                 comm: Comm);
            fn MPI_Ineighbor_allgather, fn MPI_Ineighbor_allgather_c: ineighbor_allgather, ineighbor_allgather_c, "8.7.1", Neighbor ItsRequest neighbour::ineighbor_allgather
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type,
                 comm: Comm, request: Request);
            fn MPI_Neighbor_allgather_init, fn MPI_Neighbor_allgather_init_c: neighbor_allgather_init, neighbor_allgather_init_c, "8.8.1", Neighbor Persistent neighbour::neighbor_allgather_init
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type,
                 comm: Comm, info: Info, request: Request);
            fn MPI_Neighbor_allgatherv, fn MPI_Neighbor_allgatherv_c: neighbor_allgatherv, neighbor_allgatherv_c, "8.6.1", Neighbor ThisCall neighbour::neighbor_allgatherv
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcounts: Counts, displs: Displs,
                 recvtype: Type, comm: Comm);
            fn MPI_Ineighbor_allgatherv, fn MPI_Ineighbor_allgatherv_c: ineighbor_allgatherv, ineighbor_allgatherv_c, "8.7.1", Neighbor ItsRequest neighbour::ineighbor_allgatherv
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcounts: Counts, displs: Displs,
                 recvtype: Type, comm: Comm, request: Request);
            fn MPI_Neighbor_allgatherv_init, fn MPI_Neighbor_allgatherv_init_c: neighbor_allgatherv_init, neighbor_allgatherv_init_c, "8.8.1", Neighbor Persistent neighbour::neighbor_allgatherv_init
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcounts: Counts, displs: Displs,
                 recvtype: Type, comm: Comm, info: Info, request: Request);
            fn MPI_Neighbor_alltoall, fn MPI_Neighbor_alltoall_c: neighbor_alltoall, neighbor_alltoall_c, "8.6.2", Neighbor ThisCall neighbour::neighbor_alltoall
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type,
                 comm: Comm);
            fn MPI_Ineighbor_alltoall, fn MPI_Ineighbor_alltoall_c: ineighbor_alltoall, ineighbor_alltoall_c, "8.7.2", Neighbor ItsRequest neighbour::ineighbor_alltoall
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type,
                 comm: Comm, request: Request);
            fn MPI_Neighbor_alltoall_init, fn MPI_Neighbor_alltoall_init_c: neighbor_alltoall_init, neighbor_alltoall_init_c, "8.8.2", Neighbor Persistent neighbour::neighbor_alltoall_init
                (sendbuf: SendBuf, sendcount: Count, sendtype: Type, recvbuf: RecvBuf, recvcount: Count, recvtype: Type,
                 comm: Comm, info: Info, request: Request);
            fn MPI_Neighbor_alltoallv, fn MPI_Neighbor_alltoallv_c: neighbor_alltoallv, neighbor_alltoallv_c, "8.6.2", Neighbor ThisCall neighbour::neighbor_alltoallv
                (sendbuf: SendBuf, sendcounts: Counts, sdispls: Displs, sendtype: Type, recvbuf: RecvBuf, recvcounts: Counts,
                 rdispls: Displs, recvtype: Type, comm: Comm);
            fn MPI_Ineighbor_alltoallv, fn MPI_Ineighbor_alltoallv_c: ineighbor_alltoallv, ineighbor_alltoallv_c, "8.7.2", Neighbor ItsRequest neighbour::ineighbor_alltoallv
                (sendbuf: SendBuf, sendcounts: Counts, sdispls: Displs, sendtype: Type, recvbuf: RecvBuf, recvcounts: Counts,
                 rdispls: Displs, recvtype: Type, comm: Comm, request: Request);
            fn MPI_Neighbor_alltoallv_init, fn MPI_Neighbor_alltoallv_init_c: neighbor_alltoallv_init, neighbor_alltoallv_init_c, "8.8.2", Neighbor Persistent neighbour::neighbor_alltoallv_init
                (sendbuf: SendBuf, sendcounts: Counts, sdispls: Displs, sendtype: Type, recvbuf: RecvBuf, recvcounts: Counts,
                 rdispls: Displs, recvtype: Type, comm: Comm, info: Info, request: Request);
            fn MPI_Neighbor_alltoallw, fn MPI_Neighbor_alltoallw_c: neighbor_alltoallw, neighbor_alltoallw_c, "8.6.2", NeighborAlltoallw ThisCall each::neighbor_alltoallw
                (sendbuf: SendBuf, sendcounts: Counts, sdispls: ByteDispls, sendtypes: Types, recvbuf: RecvBuf,
                 recvcounts: Counts, rdispls: ByteDispls, recvtypes: Types, comm: Comm);
            fn MPI_Ineighbor_alltoallw, fn MPI_Ineighbor_alltoallw_c: ineighbor_alltoallw, ineighbor_alltoallw_c, "8.7.2", NeighborAlltoallw ItsRequest each::ineighbor_alltoallw
                (sendbuf: SendBuf, sendcounts: Counts, sdispls: ByteDispls, sendtypes: Types, recvbuf: RecvBuf,
                 recvcounts: Counts, rdispls: ByteDispls, recvtypes: Types, comm: Comm, request: Request);
            fn MPI_Neighbor_alltoallw_init, fn MPI_Neighbor_alltoallw_init_c: neighbor_alltoallw_init, neighbor_alltoallw_init_c, "8.8.2", NeighborAlltoallw Persistent each::neighbor_alltoallw_init
                (sendbuf: SendBuf, sendcounts: Counts, sdispls: ByteDispls, sendtypes: Types, recvbuf: RecvBuf,
                 recvcounts: Counts, rdispls: ByteDispls, recvtypes: Types, comm: Comm, info: Info, request: Request);
            fn MPI_File_write, fn MPI_File_write_c: file_write, file_write_c, "14.4.3", FileWrite ThisCall files::write
                (fh: File, buf: SendBuf, count: Count, datatype: Type, status: Status);
            fn MPI_File_write_all, fn MPI_File_write_all_c: file_write_all, file_write_all_c, "14.4.3", FileWrite ThisCall files::write
                (fh: File, buf: SendBuf, count: Count, datatype: Type, status: Status);
            fn MPI_File_write_at, fn MPI_File_write_at_c: file_write_at, file_write_at_c, "14.4.2", FileWrite ThisCall files::write_at
                (fh: File, offset: Offset, buf: SendBuf, count: Count, datatype: Type, status: Status);
            fn MPI_File_write_at_all, fn MPI_File_write_at_all_c: file_write_at_all, file_write_at_all_c, "14.4.2", FileWrite ThisCall files::write_at
                (fh: File, offset: Offset, buf: SendBuf, count: Count, datatype: Type, status: Status);
            fn MPI_File_write_shared, fn MPI_File_write_shared_c: file_write_shared, file_write_shared_c, "14.4.4", FileWrite ThisCall files::write
                (fh: File, buf: SendBuf, count: Count, datatype: Type, status: Status);
            fn MPI_File_write_ordered, fn MPI_File_write_ordered_c: file_write_ordered, file_write_ordered_c, "14.4.4", FileWrite ThisCall files::write
                (fh: File, buf: SendBuf, count: Count, datatype: Type, status: Status);
            fn MPI_File_read, fn MPI_File_read_c: file_read, file_read_c, "14.4.3", FileRead ThisCall files::read
                (fh: File, buf: RecvBuf, count: Count, datatype: Type, status: Status);
            fn MPI_File_read_all, fn MPI_File_read_all_c: file_read_all, file_read_all_c, "14.4.3", FileRead ThisCall files::read
                (fh: File, buf: RecvBuf, count: Count, datatype: Type, status: Status);
            fn MPI_File_read_at, fn MPI_File_read_at_c: file_read_at, file_read_at_c, "14.4.2", FileRead ThisCall files::read_at
                (fh: File, offset: Offset, buf: RecvBuf, count: Count, datatype: Type, status: Status);
            fn MPI_File_read_at_all, fn MPI_File_read_at_all_c: file_read_at_all, file_read_at_all_c, "14.4.2", FileRead ThisCall files::read_at
                (fh: File, offset: Offset, buf: RecvBuf, count: Count, datatype: Type, status: Status);
            fn MPI_Put, fn MPI_Put_c: put, put_c, "12.3.1", Put Epoch windows::put
                (origin: SendBuf, count: Count, datatype: Type, target: Target, at: Displacement, target_count: TargetCount,
                 target_type: TargetType, win: Win);
            fn MPI_Rput, fn MPI_Rput_c: rput, rput_c, "12.3.5", Put ItsRequest windows::rput
                (origin: SendBuf, count: Count, datatype: Type, target: Target, at: Displacement, target_count: TargetCount,
                 target_type: TargetType, win: Win, request: Request);
            fn MPI_Rget, fn MPI_Rget_c: rget, rget_c, "12.3.5", Get ItsRequest windows::rget
                (origin: RecvBuf, count: Count, datatype: Type, target: Target, at: Displacement, target_count: TargetCount,
                 target_type: TargetType, win: Win, request: Request);
        }
    };
}

macro_rules! columns {
    ($(fn $name:ident, fn $large:ident: $s:ident, $l:ident, $section:literal, $call:ident $completion:ident $file:ident::$by:ident
       ($($argument:ident: $role:ident),*);)*) => {
        /// All rows of the table, in its order, with the columns from which rules are derived.
        pub const COUNTED_CALLS: &[CountedCall] = &[$(CountedCall {
            name: stringify!($name),
            call: Call::$call,
            completion: Completion::$completion,
            arguments: &[$(Role::$role),*],
        }),*];
    };
}

for_each_counted_call! { columns }

#[cfg(test)]
mod tests {
    use super::*;

    /// Every function has as many counts, and as many datatypes, as it has buffers of the program.
    #[test]
    fn buffers_have_counts_and_datatypes() {
        for row in COUNTED_CALLS {
            let name = row.name;
            let number = |among: &[Role]| row.arguments.iter().filter(|&role| among.contains(role)).count();
            let buffers = number(&[Role::SendBuf, Role::RecvBuf, Role::SendRecvBuf]);
            assert!(buffers > 0, "{name}");
            assert_eq!(number(&[Role::Count, Role::Counts]), buffers, "{name}");
            assert_eq!(number(&[Role::Type, Role::PackType, Role::Types]), buffers, "{name}");
            assert!(number(&[Role::Comm, Role::Win, Role::File]) <= 1, "{name}");
        }
    }

    #[test]
    fn what_completes_an_operation_agrees_with_its_arguments() {
        for row in COUNTED_CALLS {
            let name = row.name;
            let has = |role| row.arguments.contains(&role);
            let makes_request = matches!(row.completion, Completion::ItsRequest | Completion::Persistent);
            assert_eq!(has(Role::Request), makes_request, "{name}");
            assert!(!(has(Role::Status) && makes_request), "{name}");
            assert_eq!(row.completion == Completion::Epoch, name == "MPI_Put", "{name}");
        }
    }

    #[test]
    fn directions_by_hand() {
        let direction_of =
            |name: &str| COUNTED_CALLS.iter().find(|row| row.name == name).unwrap().direction();
        for (name, direction) in [
            ("MPI_Pack", DataDirection::Send),
            ("MPI_Unpack", DataDirection::Receive),
            ("MPI_Ibsend", DataDirection::Send),
            ("MPI_Imrecv", DataDirection::Receive),
            ("MPI_Sendrecv", DataDirection::Both),
            ("MPI_Isendrecv_replace", DataDirection::Both),
            ("MPI_Bcast", DataDirection::Both),
            ("MPI_Alltoallw_init", DataDirection::Both),
            ("MPI_File_read_at_all", DataDirection::Receive),
            ("MPI_Rput", DataDirection::Send),
            ("MPI_Rget", DataDirection::Receive),
        ] {
            assert_eq!(direction_of(name), direction, "{name}");
        }
    }
}
