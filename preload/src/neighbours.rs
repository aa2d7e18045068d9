//! The neighbours of a process in the topology of a communicator (MPI 5.0, 8.6).

use std::ffi::c_int;

use crate::host::{HandleWord, Host};
use crate::parts::Parts;

/// How many blocks a neighbourhood call sends and receives.
pub(crate) struct Neighbours {
    pub(crate) sources: i64,
    pub(crate) destinations: i64,
    /// Neighbours that are `MPI_PROC_NULL`, at the edges of a grid, where sources and destinations are the same: nobody writes their blocks, nobody
    /// reads them. Empty if there are none.
    absent: Vec<bool>,
}

impl Neighbours {
    /// What the host says of a communicator that is its own to be valid; `None`: it has no topology.
    pub(crate) fn of(host: &Host, comm: HandleWord) -> Option<Neighbours> {
        let (abi, f) = (host.abi?, &host.f);
        let [graph, cart, dist_graph] = abi.topologies;
        let mut topology = 0;
        // SAFETY: a communicator, numbers to write to.
        unsafe {
            if f.topo_test?(comm, &raw mut topology) != 0 {
                return None;
            }
            if topology == cart {
                let mut dims = 0;
                if f.cartdim_get?(comm, &raw mut dims) != 0 {
                    return None;
                }
                let mut absent = Vec::with_capacity(2 * usize::try_from(dims).ok()?);
                for dim in 0..dims {
                    let (mut down, mut up) = (0, 0);
                    if f.cart_shift?(comm, dim, 1, &raw mut down, &raw mut up) != 0 {
                        return None;
                    }
                    absent.extend([down == abi.proc_null, up == abi.proc_null]);
                }
                let n = absent.len() as i64;
                if !absent.contains(&true) {
                    absent.clear();
                }
                Some(Neighbours { sources: n, destinations: n, absent })
            } else if topology == graph {
                let (mut rank, mut n): (c_int, c_int) = (0, 0);
                if f.comm_rank?(comm, &raw mut rank) != 0
                    || f.graph_neighbors_count?(comm, rank, &raw mut n) != 0
                {
                    return None;
                }
                Some(Neighbours { sources: n.into(), destinations: n.into(), absent: Vec::new() })
            } else if topology == dist_graph {
                let (mut sources, mut destinations, mut weighted): (c_int, c_int, c_int) = (0, 0, 0);
                let code = f.dist_graph_neighbors_count?(
                    comm,
                    &raw mut sources,
                    &raw mut destinations,
                    &raw mut weighted,
                );
                let (sources, destinations) = (sources.into(), destinations.into());
                (code == 0).then_some(Neighbours { sources, destinations, absent: Vec::new() })
            } else {
                None
            }
        }
    }

    /// Whether the source and the destination of a block are processes.
    pub(crate) fn there(&self, i: usize) -> bool {
        self.absent.get(i) != Some(&true)
    }

    /// Equal parts for so many neighbours, without those of nobody.
    pub(crate) fn those_there(&self, blocks: i64, count: i64) -> Parts {
        let parts = Parts::Equal { blocks, count };
        if self.absent.is_empty() { parts } else { parts.only(|i| self.there(i)) }
    }
}
