//! Ranks of a collective call, their roles, and whether this rank may convert its side of the call.
//!
//! Each rank decides separately: the other ranks may convert or not, or run without this library.
//! MPI libraries choose their algorithms by count and type size. So a converted buffer goes as the
//! same count of a substitute datatype of the same size (`own_types`), and all ranks choose the
//! same algorithm. If an MPI library is known to choose by the local type itself, the call is
//! bypassed.

use std::ffi::c_int;

use ddtc::process::Awaited;
use ddtc_hosts::policy::Call;

use crate::comms::{self, Comm};
use crate::gpu;
use crate::guard::guard;
use crate::host::{HandleWord, Host};
use crate::policy::policy;
use crate::reentrancy::Inside;
use crate::slow_path::{TYPED_COLLECTIVES, watched_for};

/// Facts about the communicator of a collective call.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    /// This process's rank.
    rank: c_int,
    /// Number of ranks that blocks go to and come from: the size of the communicator, or of the
    /// remote group of an intercommunicator.
    pub(crate) blocks: i64,
    /// The communicator is an intercommunicator.
    inter: bool,
}

/// Role of a rank in a call with a root.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The root. On an intracommunicator it also sends to itself or receives from itself.
    Root,
    /// Another rank, which the root sends to or receives from.
    Other,
    /// Another rank of the root's group on an intercommunicator, which sends and receives nothing.
    Absent,
}

impl Group {
    /// Returns the group of a call that this rank may convert; `None` if the call is bypassed.
    pub(crate) fn of(host: &'static Host, comm: HandleWord, call: Call) -> Option<Group> {
        if host.abi.is_none() || !policy(host).any(call) {
            return None;
        }
        let known = comms::find(host, comm)?;
        gpu::refresh();
        if watched_for(TYPED_COLLECTIVES) || !one_node(host) {
            return None;
        }
        let asked = || Group::ask(host, comm).map(|group| group.numbers());
        known.group.get(asked).map(Group::from)
    }

    /// Returns the group of a communicator, if the MPI library was asked for it before.
    #[inline]
    pub(crate) fn met(comm: &Comm) -> Option<Group> {
        comm.group.met().map(Group::from)
    }

    /// Asks the MPI library for the group of a communicator; `None` if it does not answer.
    pub(crate) fn ask(host: &'static Host, comm: HandleWord) -> Option<Group> {
        let (mut rank, mut size, mut inter) = (0, 0, 0);
        // SAFETY: `comm` is the communicator of the program's call, which the program must pass
        // valid, and the other arguments are numbers to write to.
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

    /// Returns the packed form: a word with the rank in its lower and `inter` in its upper half,
    /// and the number of blocks.
    fn numbers(self) -> [u64; 2] {
        [u64::from(self.inter) << 32 | u64::from(self.rank as u32), self.blocks as u64]
    }

    /// Returns the role of this rank in a call with this root; `None` if the MPI library would
    /// refuse the root.
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

    /// Returns true if a rank of this role sends to the root or receives from it: every rank of an
    /// intracommunicator, and on an intercommunicator every rank of the group that is not the
    /// root's.
    pub(crate) fn takes_part(&self, role: Role) -> bool {
        role == Role::Other || role == Role::Root && !self.inter
    }

    /// Returns the index of this rank's own block.
    pub(crate) fn own(&self) -> i64 {
        i64::from(self.rank)
    }
}

impl From<[u64; 2]> for Group {
    fn from([rank, blocks]: [u64; 2]) -> Group {
        Group { rank: rank as u32 as c_int, inter: rank >> 32 != 0, blocks: blocks as i64 }
    }
}

/// Notes the communicator of a collective call that the MPI library has carried out, because the
/// communicator is known to be valid then.
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

/// Returns true if all ranks of the job are on this machine, or if collective calls across nodes
/// were tried with this MPI library. Reads the variables of Open MPI, the only library with which
/// they were not tried.
fn one_node(host: &Host) -> bool {
    static ONE: Awaited<bool> = Awaited::new();
    *ONE.get_or_init(|| {
        if host.profile.several_nodes {
            return true;
        }
        let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
        match (number("OMPI_COMM_WORLD_SIZE"), number("OMPI_COMM_WORLD_LOCAL_SIZE")) {
            (Some(size), Some(here)) => size == here,
            // A process without these variables was started without a launcher, so it is alone.
            (size, _) => size.is_none_or(|size| size == 1),
        }
    })
}
