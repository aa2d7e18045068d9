//! Neighbours of a process in the process topology of a communicator (MPI 5.0, 8.6).

use std::ffi::c_int;

use crate::comms::{self, Comm};
use crate::host::{HandleWord, Host};
use crate::parts::Parts;

/// Mask of a number of neighbours in the packed form of [`Neighbours`]. The number is an `int`.
const COUNT: u64 = c_int::MAX as u64;
/// Position of the number of destinations in the first word of the packed form of [`Neighbours`].
/// The number of sources is in the lowest bits of the same word.
const DESTINATIONS: u32 = 32;
/// Bit in the first word of the packed form of [`Neighbours`] that is set if `absent` is `None`.
const ABSENT_UNKNOWN: u64 = 1 << 63;

/// Numbers of blocks that a process receives and sends in a neighbourhood collective call.
#[derive(Clone, Copy)]
pub(crate) struct Neighbours {
    pub(crate) sources: i64,
    pub(crate) destinations: i64,
    /// Set of the blocks whose neighbour is `MPI_PROC_NULL`, so that no process reads or writes
    /// them: bit `i` is set if block `i` is such a block. `None` if there are more than 64 blocks
    /// in a Cartesian grid. Only the edges of a Cartesian grid have such blocks, and there the
    /// sources and the destinations are the same processes.
    absent: Option<u64>,
}

impl Neighbours {
    /// Returns the neighbours in a communicator that the MPI library has accepted before and whose
    /// entry was [confirmed](comms::confirmed) in this call. Queries the MPI library for them only
    /// at the first call for the communicator. Returns `None` if the communicator is not known or
    /// has no topology.
    pub(crate) fn known(host: &Host, comm: HandleWord) -> Option<Neighbours> {
        let near = &comms::find(host, comm)?.near;
        near.get(|| Neighbours::query(host, comm).map(Neighbours::numbers)).map(Neighbours::from)
    }

    /// Returns the neighbours in a communicator if the MPI library was queried for them before,
    /// otherwise `None`.
    #[inline]
    pub(crate) fn cached(comm: &Comm) -> Option<Neighbours> {
        comm.near.cached().map(Neighbours::from)
    }

    /// Returns the packed form of the neighbours: a word with both numbers of neighbours and the
    /// bit [`ABSENT_UNKNOWN`], and a word with the bits of `absent`.
    fn numbers(self) -> [u64; 2] {
        let unknown = if self.absent.is_none() { ABSENT_UNKNOWN } else { 0 };
        let counts = self.sources as u64 | (self.destinations as u64) << DESTINATIONS;
        [counts | unknown, self.absent.unwrap_or(0)]
    }

    /// Queries the MPI library for the neighbours in a communicator that it has accepted before, or
    /// that the program has passed to the present call. Returns `None` if the communicator has no
    /// topology, or if a query fails.
    pub(crate) fn query(host: &Host, comm: HandleWord) -> Option<Neighbours> {
        let (abi, f) = (host.abi?, &host.f);
        let [graph, cart, dist_graph] = abi.topologies;
        let mut topology = 0;
        // SAFETY: `comm` is a communicator that the program passes to the MPI library in the
        // present call. The other arguments are a rank, numbers that the MPI library has returned,
        // or local integers to write to.
        unsafe {
            if f.topo_test?(comm, &raw mut topology) != 0 {
                return None;
            }
            if topology == cart {
                let mut dims = 0;
                if f.cartdim_get?(comm, &raw mut dims) != 0 {
                    return None;
                }
                let mut absent = Some(0);
                for dim in 0..dims {
                    let (mut down, mut up) = (0, 0);
                    if f.cart_shift?(comm, dim, 1, &raw mut down, &raw mut up) != 0 {
                        return None;
                    }
                    let both = u64::from(down == abi.proc_null) | u64::from(up == abi.proc_null) << 1;
                    let place = 2 * dim.cast_unsigned();
                    absent = absent.zip(both.checked_shl(place)).map(|(absent, both)| absent | both);
                }
                let n = 2 * i64::from(dims);
                Some(Neighbours { sources: n, destinations: n, absent })
            } else if topology == graph {
                let (mut rank, mut n): (c_int, c_int) = (0, 0);
                if f.comm_rank?(comm, &raw mut rank) != 0
                    || f.graph_neighbors_count?(comm, rank, &raw mut n) != 0
                {
                    return None;
                }
                Some(Neighbours { sources: n.into(), destinations: n.into(), absent: Some(0) })
            } else if topology == dist_graph {
                let (mut sources, mut destinations, mut weighted): (c_int, c_int, c_int) = (0, 0, 0);
                let code = f.dist_graph_neighbors_count?(
                    comm,
                    &raw mut sources,
                    &raw mut destinations,
                    &raw mut weighted,
                );
                let (sources, destinations) = (sources.into(), destinations.into());
                (code == 0).then_some(Neighbours { sources, destinations, absent: Some(0) })
            } else {
                None
            }
        }
    }

    /// Returns true if ddtc knows for every block whether its neighbour is a process or
    /// `MPI_PROC_NULL`.
    pub(crate) fn knows_absent(&self) -> bool {
        self.absent.is_some()
    }

    /// Returns true if the neighbour of block `i` is a process and not `MPI_PROC_NULL`, both as the
    /// source and as the destination of the block. The result is meaningful only if
    /// [`Neighbours::knows_absent`] returns true.
    pub(crate) fn there(&self, i: usize) -> bool {
        let bit = self.absent.unwrap_or(0).checked_shr(i as u32).unwrap_or(0);
        bit & 1 == 0
    }

    /// Returns the parts of a buffer of `blocks` blocks with `count` elements each, without the
    /// blocks whose neighbour is `MPI_PROC_NULL`.
    pub(crate) fn those_there(&self, blocks: i64, count: i64) -> Parts {
        let parts = Parts::Equal { blocks, count };
        if self.absent == Some(0) { parts } else { parts.only(|i| self.there(i)) }
    }
}

impl From<[u64; 2]> for Neighbours {
    fn from([numbers, absent]: [u64; 2]) -> Neighbours {
        Neighbours {
            sources: (numbers & COUNT) as i64,
            destinations: (numbers >> DESTINATIONS & COUNT) as i64,
            absent: (numbers & ABSENT_UNKNOWN == 0).then_some(absent),
        }
    }
}
