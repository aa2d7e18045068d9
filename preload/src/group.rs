//! Who takes part in a collective call, and whether this rank may convert its side of it.
//!
//! A rank decides for itself: the others may convert or not, or have no library. Its side goes as the same count of a stand-in of its type
//! (`own_types`), so all ranks choose one algorithm. Where a host was seen to choose by the local type itself, the call is its own.

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

/// A communicator in a collective call.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    /// This rank.
    rank: c_int,
    /// Ranks that blocks go to and come from: those of the communicator, or of its remote group.
    pub(crate) blocks: i64,
    /// Between two groups.
    inter: bool,
}

/// Role of a rank in a call with a root.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The root, which takes part in its own call if it is not between groups.
    Root,
    /// Another rank of a group that the root sends to or receives from.
    Other,
    /// A rank of the root's group that has no part.
    Absent,
}

impl Group {
    /// Returns the group of a call that this rank may convert; `None`: the call is the host's.
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

    /// That of a communicator in whose calls it was asked for before.
    #[inline]
    pub(crate) fn met(comm: &Comm) -> Option<Group> {
        comm.group.met().map(Group::from)
    }

    /// Asks the host about a communicator.
    pub(crate) fn ask(host: &'static Host, comm: HandleWord) -> Option<Group> {
        let (mut rank, mut size, mut inter) = (0, 0, 0);
        // SAFETY: a communicator, which is the program's to be valid; numbers to write to.
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

    /// As two numbers: this rank, with whether there are two groups, and the blocks.
    fn numbers(self) -> [u64; 2] {
        [u64::from(self.inter) << 32 | u64::from(self.rank as u32), self.blocks as u64]
    }

    /// Returns the role of this rank in a call with this root; `None` if the host would refuse it.
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

    /// Says whether a rank of this role sends to the root or receives from it: all of one group, all but the root between two.
    pub(crate) fn takes_part(&self, role: Role) -> bool {
        role == Role::Other || role == Role::Root && !self.inter
    }

    /// Returns the place of this rank's own block.
    pub(crate) fn own(&self) -> i64 {
        i64::from(self.rank)
    }
}

impl From<[u64; 2]> for Group {
    fn from([rank, blocks]: [u64; 2]) -> Group {
        Group { rank: rank as u32 as c_int, inter: rank >> 32 != 0, blocks: blocks as i64 }
    }
}

/// After the host has carried out a collective call: its communicator is valid.
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

/// Whether all ranks of the job are on this machine, as far as that matters: where collective calls across nodes were not tried.
fn one_node(host: &Host) -> bool {
    static ONE: Awaited<bool> = Awaited::new();
    *ONE.get_or_init(|| {
        if host.profile.several_nodes {
            return true;
        }
        let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
        match (number("OMPI_COMM_WORLD_SIZE"), number("OMPI_COMM_WORLD_LOCAL_SIZE")) {
            (Some(size), Some(here)) => size == here,
            // Started without a launcher: alone.
            (size, _) => size.is_none_or(|size| size == 1),
        }
    })
}
