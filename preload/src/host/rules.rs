//! Rules that hold for single MPI libraries alone, by their family.

use ddtc_hosts::policy::Family;

use super::Host;

/// Bytes of a page.
const PAGE: i64 = 4096;

impl Host {
    /// Says whether it may cut a message into segments and refuse one that ends inside an element of the receiver's type.
    pub(crate) fn cuts_segments(&self) -> bool {
        matches!(self.family, Family::Mpich | Family::Intel)
    }

    /// Says whether a message that is longer than the receive may overwrite what is behind it where both ends are contiguous: so in Open MPI's ob1, as
    /// read in 4.1.8, 5.0.10 and main, and seen in 5.0.11.
    pub(crate) fn overruns(&self) -> bool {
        self.family == Family::OpenMpi
    }

    /// Says whether the status of `MPI_Isendrecv` and `MPI_Isendrecv_replace` says what was received: in MPICH 5.0.2 and Intel MPI 2021.18 it is empty.
    pub(crate) fn tells_exchanges(&self) -> bool {
        !matches!(self.family, Family::Mpich | Family::Intel)
    }

    /// Says whether persistent collective calls of derived types are right on the host itself: Intel MPI 2021.18 brings wrong bytes or fails.
    pub(crate) fn persistent_collectives(&self) -> bool {
        self.family != Family::Intel
    }

    /// Says whether it takes this many bytes of contiguous memory past the system's cache: Intel MPI does so with whole pages to a place in a file that is a
    /// multiple of a page, and then takes a hundred times as long as for types with gaps.
    pub(crate) fn passes_the_cache(&self, bytes: i64) -> bool {
        self.family == Family::Intel && bytes % PAGE == 0
    }

    /// Returns the bytes of a part below which packing it gains where what comes back for it is staged anyway, in the same call. MPICH gains while the parts stay in a cache
    /// (5.0.2, Zen 3, rows of 2 to 12 KiB: 0.55 of the time without for 256 KiB, 0.75 for 1 MiB, 1.2 and 1.35 for 4 and 9 MiB), Intel MPI throughout (0.2 to 0.45).
    pub(crate) fn gains_beside(&self) -> u64 {
        match self.family {
            Family::Mpich => 2 << 20,
            Family::Intel => u64::MAX,
            // Open MPI moves them inside.
            Family::OpenMpi | Family::Other => 0,
        }
    }
}
