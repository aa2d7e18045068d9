//! Ranks of a collective call, their roles, and the decision whether this rank may convert its side
//! of the call.
//!
//! Each rank decides separately, because other ranks may decide differently or run without ddtc.
//! All ranks must nevertheless choose the same algorithm, and MPI libraries choose it by the count
//! and the size of the type. So a converted buffer is passed with its count unchanged and with a
//! substitute datatype of the same size (`own_types`). If an MPI library is known to choose the
//! algorithm by other properties of the local type, the call is bypassed.

use std::ffi::c_int;

use ddtc::internal::process::Awaited;
use ddtc_hosts::policy::Call;

use crate::comms::{self, Comm};
use crate::gpu;
use crate::guard::guard;
use crate::host::{HandleWord, Host};
use crate::policy::policy;
use crate::reentrancy::Inside;
use crate::slow_path::{TYPED_COLLECTIVES, watched_for};

/// Rank of this process and size of the communicator of a collective call.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    /// This process's rank.
    rank: c_int,
    /// Number of ranks with which this rank exchanges blocks: the size of the communicator, or for
    /// an intercommunicator the size of its remote group.
    pub(crate) blocks: i64,
    /// True if the communicator is an intercommunicator.
    inter: bool,
}

/// Role of a rank in a collective call that has a root, such as `MPI_Gather`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The root. On an intracommunicator the root also sends to itself or receives from itself.
    Root,
    /// Rank other than the root, to which the root sends or from which it receives.
    Other,
    /// Rank other than the root, in the root's group of an intercommunicator. It sends and receives
    /// nothing.
    Absent,
}

impl Group {
    /// Returns the [`Group`] of a collective call if this rank may convert the call; `None` if the
    /// call must be bypassed.
    pub(crate) fn for_call(host: &'static Host, comm: HandleWord, call: Call) -> Option<Group> {
        if host.abi.is_none() || !policy(host).any(call) {
            return None;
        }
        let known = comms::confirmed(host, comm)?;
        gpu::refresh();
        if watched_for(TYPED_COLLECTIVES) || !one_node(host) {
            return None;
        }
        let asked = || Group::ask(host, comm).map(|group| group.numbers());
        known.group.get(asked).map(Group::from)
    }

    /// Returns the [`Group`] of a communicator, if the values were read from the MPI library
    /// before.
    #[inline]
    pub(crate) fn cached(comm: &Comm) -> Option<Group> {
        comm.group.cached().map(Group::from)
    }

    /// Reads the [`Group`] of a communicator from the MPI library; returns `None` if that fails.
    pub(crate) fn ask(host: &'static Host, comm: HandleWord) -> Option<Group> {
        let (mut rank, mut size, mut inter) = (0, 0, 0);
        // SAFETY: `comm` is the communicator of the program's call, which the program must pass
        // valid. The other arguments are pointers to local integers.
        unsafe {
            if host.f.comm_test_inter?(comm, &raw mut inter) != 0
                || host.f.comm_rank?(comm, &raw mut rank) != 0
                || inter == 0 && host.f.comm_size?(comm, &raw mut size) != 0
                || inter != 0 && host.f.comm_remote_size?(comm, &raw mut size) != 0
            {
                return None;
            }
        }
        Some(Group { rank, blocks: i64::from(size), inter: inter != 0 })
    }

    /// Returns the group as two words. The first word has the rank in its lower half and `inter` in
    /// its upper half, and the second word is the number of blocks.
    fn numbers(self) -> [u64; 2] {
        [u64::from(self.inter) << 32 | u64::from(self.rank as u32), self.blocks as u64]
    }

    /// Returns the role of this rank in a collective call with the argument `root`; `None` if
    /// `root` is not valid, so that the MPI library would refuse the call.
    pub(crate) fn role(&self, host: &Host, root: c_int) -> Option<Role> {
        let abi = host.abi?;
        let known = (0..self.blocks).contains(&i64::from(root));
        match self.inter {
            false if known => Some(if root == self.rank { Role::Root } else { Role::Other }),
            true if root == abi.root => Some(Role::Root),
            true if root == abi.proc_null => Some(Role::Absent),
            true if known => Some(Role::Other),
            _ => None,
        }
    }

    /// Returns true if a rank of this role sends to the root or receives from it. On an
    /// intracommunicator every rank does so, and on an intercommunicator every rank of the group to
    /// which the root does not belong.
    pub(crate) fn takes_part(&self, role: Role) -> bool {
        role == Role::Other || role == Role::Root && !self.inter
    }

    /// Returns the index of this rank's own block in a buffer with one block for each rank.
    pub(crate) fn own(&self) -> i64 {
        i64::from(self.rank)
    }
}

impl From<[u64; 2]> for Group {
    fn from([rank, blocks]: [u64; 2]) -> Group {
        Group { rank: rank as u32 as c_int, inter: rank >> 32 != 0, blocks: blocks as i64 }
    }
}

/// Enters the communicator of a collective call into the table of known communicators. Called after
/// the MPI library has carried out the call, because the communicator is known to be valid then.
#[cold]
pub(crate) fn learn(host: &'static Host, comm: HandleWord, call: Call) {
    if host.abi.is_some()
        && policy(host).any(call)
        && !comms::accepted(host, comm)
        && let Some(_inside) = Inside::enter()
    {
        guard(|| comms::accept(host, comm));
    }
}

/// Returns true if all ranks of the job are known to be on one node, or if collective calls between
/// several nodes are converted under this MPI library. Open MPI is the only MPI library under which
/// they are not: the unmodified library fails the test of such calls, so conversion could not be
/// compared with it.
fn one_node(host: &Host) -> bool {
    static ONE: Awaited<bool> = Awaited::new();
    host.profile.several_nodes || *ONE.get_or_init(|| host.with_world(|| host.nodes()).flatten() == Some(1))
}
