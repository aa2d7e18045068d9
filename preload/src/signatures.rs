//! C types of the arguments of MPI functions. They are named by the roles that the table of calls
//! (`ddtc_hosts::counted_calls`) gives to the arguments.

use std::ffi::{c_int, c_void};

/// A handle of the MPI library as an argument of a call, in the same form for every ABI. Handles
/// are 4 or 8 bytes wide, depending on the ABI. The bits above that width are undefined and must be
/// cleared with `Host::mask`.
pub(crate) type HandleWord = u64;
/// A buffer that the call reads.
pub(crate) type In = *const c_void;
/// A buffer, handle or status that the call may write.
pub(crate) type Out = *mut c_void;
/// A handle that the call reads.
pub(crate) type Handle = HandleWord;
/// A rank, a root or a tag.
pub(crate) type Int = c_int;
/// `MPI_Offset`: a position in a file.
pub(crate) type Offset = i64;
/// `MPI_Aint`: a displacement in a window.
pub(crate) type Displacement = isize;

/// An array of datatypes, each as wide as the MPI library's handles.
pub(crate) type Types = *const c_void;
/// An array of displacements in bytes. The elements are `MPI_Aint` in the small form of a call,
/// whose counts are `int`, and in the large form, whose counts are `MPI_Count`.
pub(crate) type ByteDispls = *const isize;
/// An array of displacements of a call whose counts are `N`. In the small form of the call, `N` is
/// `int`. In the large form the displacements are `MPI_Aint`, and `N` is `MPI_Count`. Both are
/// equally wide on the targets of ddtc.
pub(crate) type Displs<N> = *const N;

/// Expands to the C type of an argument with the given role, in that form of the call whose counts
/// are `$n`.
macro_rules! argument {
    ($n:ty, Count) => { $n };
    ($n:ty, Size) => { $n };
    ($n:ty, TargetCount) => { $n };
    ($n:ty, Position) => { *mut $n };
    ($n:ty, Counts) => { *const $n };
    ($n:ty, Displs) => { $crate::signatures::Displs<$n> };
    ($n:ty, SendBuf) => { $crate::signatures::In };
    ($n:ty, PackedIn) => { $crate::signatures::In };
    ($n:ty, RecvBuf) => { $crate::signatures::Out };
    ($n:ty, SendRecvBuf) => { $crate::signatures::Out };
    ($n:ty, PackedOut) => { $crate::signatures::Out };
    ($n:ty, Message) => { $crate::signatures::Out };
    ($n:ty, Request) => { $crate::signatures::Out };
    ($n:ty, Status) => { $crate::signatures::Out };
    ($n:ty, Type) => { $crate::signatures::Handle };
    ($n:ty, PackType) => { $crate::signatures::Handle };
    ($n:ty, TargetType) => { $crate::signatures::Handle };
    ($n:ty, Comm) => { $crate::signatures::Handle };
    ($n:ty, Win) => { $crate::signatures::Handle };
    ($n:ty, File) => { $crate::signatures::Handle };
    ($n:ty, Info) => { $crate::signatures::Handle };
    ($n:ty, Root) => { $crate::signatures::Int };
    ($n:ty, Peer) => { $crate::signatures::Int };
    ($n:ty, Target) => { $crate::signatures::Int };
    ($n:ty, Tag) => { $crate::signatures::Int };
    ($n:ty, Types) => { $crate::signatures::Types };
    ($n:ty, ByteDispls) => { $crate::signatures::ByteDispls };
    ($n:ty, Offset) => { $crate::signatures::Offset };
    ($n:ty, Displacement) => { $crate::signatures::Displacement };
}
pub(crate) use argument;
