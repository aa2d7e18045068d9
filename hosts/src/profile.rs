//! The preload library's knowledge of each MPI library, as data: in what form packed bytes travel, where
//! protocols change, how errors are treated and what a conversion costs. Which calls are converted is in
//! [`crate::tried`].
//!
//! A [`Profile`] holds for one family of libraries from one release on, up to the next profile of that
//! family. A library that is not here is of [`Family::Other`], under which nothing is converted but
//! `MPI_Pack` and `MPI_Unpack`.

use crate::abi::Flavour;
use crate::policy::{Class, Family, Library, Policy};

/// Form in which packed bytes are sent to a rank that may not convert them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireForm {
    /// As `MPI_PACKED`, which matches every type.
    Packed,
    /// As `MPI_PACKED` where no element of the receiver's type can lie across the end of a segment,
    /// else as a dense equivalent: the same elements one after the other, which the library knows to
    /// be contiguous. The library cuts long messages into segments and refuses one that ends inside an
    /// element.
    Segments {
        /// Maximum bytes of a message that is never cut.
        whole: i64,
        /// If a message is sent as bytes, the length of each segment is a multiple of this many bytes.
        multiple: i64,
    },
    /// As a type of two runs with a hole between them, of bytes or of wider basic elements. If a message
    /// is contiguous on both sides, the library copies all bytes that were sent, so a message longer than
    /// the receive overwrites the memory behind the receive buffer. Open MPI's ob1 does that: its sources
    /// of 4.1.8, 5.0.10 and main say so, and it was seen in 5.0.11.
    Gap {
        /// Bytes of the widest basic element that a receiver can join from two pieces of a message.
        joined: i64,
    },
}

/// Treatment of a message that ends inside a basic element, which no correct program sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartialElement {
    /// All bytes are received.
    Received,
    /// The message is refused with `MPI_ERR_TYPE`.
    Refused,
    /// The message is refused with `MPI_ERR_TRUNCATE`, or with `MPI_ERR_TYPE` if it was matched before,
    /// and only if all elements of the receiver's type are of one basic type.
    RefusedOfOneType,
    /// The message is refused with `MPI_ERR_TYPE`, and only if all elements of the receiver's type are of
    /// one basic type. The status reports all bytes that came.
    ReportedOfOneType,
}

/// Costs of messages that differ between libraries: thresholds in bytes, and times in nanoseconds on one
/// side. The preload library corrects the times that it measures for packing by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Bytes from which a message of a derived type is moved run by run, by one copy between the
    /// processes; `u64::MAX`: none is. MPICH 5.0.2, Zen 4: 8 KiB in blocks of 4, 40 and 128 B take 61,
    /// 112 and 34 us, packed by MPICH itself 9.
    pub rendezvous: u64,
    /// Minimum bytes of a message that the library moves in pieces, of which one rank packs one while the
    /// other unpacks the one before, or by a single copy; `u64::MAX`: it does neither. From there on only
    /// half of the measured packing time counts. Open MPI 5.0.11: 43 KB in runs of 68 B take 12 us, packed
    /// 15 (Zen 4); 4 KiB in runs of 8 B 1.2 and 1.4, 8 KiB in runs of 128 B 1.5 and 1.7 (Zen 3).
    pub in_pieces: u64,
    /// As `in_pieces`, for types that are lists of blocks. In a message the library needs longer for their
    /// blocks than its measured packing time suggests. Open MPI 5.0.11, Zen 3: a round trip of
    /// SPECFEM3D_oc with 7.6 and 12.9 KB takes 9 and 15 us if it is packed first, and 23 and 40 us if it is
    /// not.
    pub in_pieces_lists: u64,
    /// Minimum time that a run of less than 32 B takes in a message; 0: not known. Intel MPI 2021.18.1: messages of
    /// 2 to 128 KiB in runs of 4, 8 and 40 B take 10 to 14, 6 to 8 and 20 ns a run more than their
    /// packed bytes do (Zen 4).
    pub short_run: u64,
    /// As `short_run`, for a run of 32 B and more. Without it, WRF_y of 63 KB (runs of 100 B and more) was
    /// held to gain nothing in every third job, because `MPI_Pack` takes Intel MPI 4.3 us and the
    /// conversion 4.0; its messages take twice as long as converted ones (Emerald Rapids).
    pub long_run: u64,
    /// Whether a short packing time in memory is enough to conclude that a conversion of messages gains
    /// nothing. It is not under Intel MPI, which sends derived types in pieces and takes longer for that than
    /// for packing (2021.18.1, Zen 4: a face of 8 B elements, 128 KiB, 597 us, packed by hand 196).
    pub packing_tells: bool,
    /// Size of a part, in bytes, below which one direction of a collective call gains by packing because
    /// the other direction is staged anyway; 0: never. MPICH 5.0.2 gains while the parts stay in a cache (Zen
    /// 3, rows of 2 to 12 KiB: 0.55 of the time without for 256 KiB, 0.75 for 1 MiB, 1.2 and 1.35 for 4
    /// and 9 MiB), Intel MPI throughout (0.2 to 0.45). Open MPI moves such parts inside.
    pub gains_beside: u64,
    /// Bytes from which the library copies one run faster than the C library; `i64::MAX`: never. Intel
    /// MPI 2021.18.1: 256 KiB take its `MPI_Pack` 5.4 us, `memcpy` 6.4 (Zen 3).
    pub own_runs: i64,
    /// Whether compiled code can move messages inside the library, where nothing is staged.
    pub moves_inside: bool,
}

/// Holds what is known of an MPI library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Family of the library.
    pub family: Family,
    /// First release that the profile holds for.
    pub from: [u32; 3],
    /// Whether calls are converted by staging buffers. False if compiled code moves the bytes inside the
    /// library and staging gains nothing more. Open MPI 4.1.8: DDTBench takes 0.64 of the unmodified
    /// library's time by compiled code inside alone, 0.67 with staging added (Zen 5).
    pub stages: bool,
    /// Whether collective calls of ranks on several nodes were tried. Not with Open MPI, whose
    /// collectives across nodes (HAN) cut segments by the type.
    pub several_nodes: bool,
    /// Whether the status of `MPI_Isendrecv` and `MPI_Isendrecv_replace` says what was received. In MPICH
    /// 5.0.2 and Intel MPI 2021.18 it is empty.
    pub tells_exchanges: bool,
    /// Form of packed bytes in messages.
    pub wire_form: WireForm,
    /// Treatment of messages that end inside an element. Over libfabric it may differ.
    pub partial_element: PartialElement,
    /// Treatment of messages that end inside an element and come through libfabric.
    pub partial_element_over_libfabric: PartialElement,
    /// Whether errors of matched receives and of requests are raised on the communicator of the world,
    /// because the library has forgotten theirs.
    pub forgets_communicator: bool,
    /// Contiguous accesses to a file whose length and offset are multiples of this many bytes bypass the
    /// system's cache; 0: none do. Intel MPI takes a hundred times as long for such an access as for a type
    /// with gaps. The preload library tests only the length.
    pub uncached: i64,
    /// Costs of messages.
    pub costs: Costs,
    /// Name of its table in policy.txt, which several profiles may share.
    pub policy: &'static str,
    /// From this payload in bytes on, the table converts only structures and lists of short blocks; other
    /// messages are converted if their times say so. `u64::MAX`: no limit.
    pub table_ends: u64,
}

/// Any other library.
pub const OTHER: Profile = Profile {
    family: Family::Other,
    from: [0; 3],
    stages: true,
    several_nodes: true,
    tells_exchanges: true,
    wire_form: WireForm::Packed,
    partial_element: PartialElement::Received,
    partial_element_over_libfabric: PartialElement::Received,
    forgets_communicator: false,
    uncached: 0,
    costs: Costs {
        rendezvous: u64::MAX,
        in_pieces: u64::MAX,
        in_pieces_lists: u64::MAX,
        short_run: 0,
        long_run: 0,
        packing_tells: true,
        gains_beside: 0,
        own_runs: i64::MAX,
        moves_inside: false,
    },
    policy: "other",
    table_ends: u64::MAX,
};

/// How MPICH and its relatives cut messages: a message of up to 4 KiB is never cut, and segments of bytes
/// are multiples of 16 long (MPICH 5.0.2).
const SEGMENTS: WireForm = WireForm::Segments { whole: 4096, multiple: 16 };

/// MPICH.
pub const MPICH: Profile = Profile {
    family: Family::Mpich,
    tells_exchanges: false,
    wire_form: SEGMENTS,
    partial_element: PartialElement::Refused,
    partial_element_over_libfabric: PartialElement::Refused,
    costs: Costs { rendezvous: 9 << 10, gains_beside: 2 << 20, ..OTHER.costs },
    policy: "mpich",
    ..OTHER
};

/// MPICH 4.2 and 4.3, which copy messages of 64 KiB and more directly from layout to layout, at a small
/// cost for each run. 4.3.2, Zen 3, there and back: 256 KiB in rows of 2 KiB take 33 us, 96 KiB in rows of
/// 3 KiB 15 us, packed by hand 76 and 71. Lists of short blocks take longer there: 91 KB of SPECFEM3D_mt
/// 207 us and 196 KB of LAMMPS_full 539, packed by hand 24 and 75.
pub const MPICH_4_2: Profile = Profile {
    costs: Costs { rendezvous: u64::MAX, in_pieces: 64 << 10, short_run: 6, ..MPICH.costs },
    table_ends: 64 << 10,
    ..MPICH
};

/// Intel MPI.
pub const INTEL: Profile = Profile {
    family: Family::Intel,
    tells_exchanges: false,
    wire_form: SEGMENTS,
    partial_element: PartialElement::RefusedOfOneType,
    partial_element_over_libfabric: PartialElement::ReportedOfOneType,
    forgets_communicator: true,
    uncached: 4096,
    costs: Costs {
        short_run: 6,
        long_run: 20,
        packing_tells: false,
        gains_beside: u64::MAX,
        own_runs: 128 << 10,
        ..OTHER.costs
    },
    policy: "intel",
    ..OTHER
};

/// Open MPI.
pub const OPEN_MPI: Profile = Profile {
    family: Family::OpenMpi,
    several_nodes: false,
    wire_form: WireForm::Gap { joined: 16 },
    costs: Costs { in_pieces: 4 << 10, in_pieces_lists: 16 << 10, moves_inside: true, ..OTHER.costs },
    policy: "openmpi",
    ..OTHER
};

/// A library of no known family with the ABI of MPICH: with all precautions of MPICH and of Intel MPI.
pub const UNKNOWN_OF_MPICHS_ABI: Profile =
    Profile { family: Family::Other, uncached: INTEL.uncached, costs: OTHER.costs, ..MPICH };

/// A library of no known family with the ABI of Open MPI: with all precautions of Open MPI, and without
/// compiled code inside.
pub const UNKNOWN_OF_OPEN_MPIS_ABI: Profile =
    Profile { family: Family::Other, costs: OTHER.costs, ..OPEN_MPI };

/// All profiles; within a family in ascending order of release.
pub static PROFILES: [Profile; 7] = [
    MPICH,
    Profile { from: [4, 2, 0], ..MPICH_4_2 },
    Profile { from: [5, 0, 0], ..MPICH },
    INTEL,
    Profile { stages: false, ..OPEN_MPI },
    Profile { from: [5, 0, 0], ..OPEN_MPI },
    OTHER,
];

impl Profile {
    /// Returns what the shipped policy converts under the library.
    pub fn shipped_policy(&self) -> Policy {
        let policy = Policy::shipped(self.policy);
        if self.table_ends == u64::MAX {
            return policy;
        }
        let below = !Policy::from(self.table_ends);
        let long = Class::ALL.into_iter().filter(|c| !matches!(c, Class::BlocksShort | Class::TableShort));
        long.fold(policy, |policy, class| policy.with(class, policy.set(class) & below))
    }

    /// Returns the profile by which a library is converted that was not tried: that of its family, or for
    /// a library of no known family that of its ABI. `None` under the standard ABI, whose libraries cut
    /// messages in different ways: no form of packed bytes is right under all of them.
    pub fn of_untried(library: &Library, flavour: Flavour) -> Option<&'static Profile> {
        match (library.family, flavour) {
            (Family::Other, Flavour::Mpich) => Some(&UNKNOWN_OF_MPICHS_ABI),
            (Family::Other, Flavour::OpenMpi) => Some(&UNKNOWN_OF_OPEN_MPIS_ABI),
            (Family::Other, Flavour::Standard) => None,
            _ => Some(Profile::of(library)),
        }
    }

    /// Returns the profile of a library.
    pub fn of(library: &Library) -> &'static Profile {
        let holds = |p: &&Profile| p.family == library.family && p.from <= library.version;
        // Each family has a profile from release 0 on, as a test says.
        PROFILES.iter().rev().find(holds).unwrap_or(&PROFILES[PROFILES.len() - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_begins_at_release_0_and_goes_up() {
        for family in [Family::Mpich, Family::Intel, Family::OpenMpi, Family::Other] {
            let from: Vec<_> = PROFILES.iter().filter(|p| p.family == family).map(|p| p.from).collect();
            assert!(from[0] == [0; 3] && from.is_sorted_by(|a, b| a < b), "{family:?}: {from:?}");
            assert_eq!(Profile::of(&Library::new(family, [0; 3])).policy, family.name());
        }
    }
}
