//! Properties of each MPI library that the preload library depends on: the form in which packed
//! bytes travel, the message lengths at which protocols change, the treatment of errors, and the
//! costs with and without a conversion. Which calls are converted is in [`crate::tried`].
//!
//! A [`Profile`] holds for one family of libraries from one release on, up to the next profile of
//! that family. A library that has no profile here belongs to [`Family::Other`], under which only
//! `MPI_Pack` and `MPI_Unpack` are converted.

use crate::abi::Flavour;
use crate::policy::{Class, Family, Library, Policy};

/// Form in which packed bytes are sent to a rank that possibly does not convert its end of the
/// message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireForm {
    /// Packed bytes are sent as `MPI_PACKED`, which matches every type.
    Packed,
    /// Packed bytes are sent as `MPI_PACKED` if no element of the receiver's type can lie across
    /// the end of a segment. Otherwise they are sent as a dense equivalent: a type with the same
    /// elements one after the other, which the library recognizes as contiguous. The reason is that
    /// the library cuts long messages into segments and refuses a segment that ends inside an
    /// element.
    Segments {
        /// Maximum length in bytes of a message that the library never cuts.
        whole: i64,
        /// Number of bytes of which the length of each segment is a multiple, if the message is
        /// sent as bytes.
        multiple: i64,
    },
    /// Packed bytes are sent as a type of two runs with a gap between them, of bytes or of wider
    /// basic elements. The gap prevents a fast path of the library: if a message is contiguous on
    /// both sides, the library copies all bytes that were sent, so a message longer than the
    /// receive overwrites the memory after the receive buffer. Open MPI's component ob1 does that,
    /// according to its sources of 4.1.8, 5.0.10 and main; it was observed in 5.0.11.
    Gap {
        /// Size in bytes of the widest basic element that a receiver can join from two pieces of a
        /// message.
        joined: i64,
    },
}

/// Treatment of a received message that ends inside a basic element. No correct program sends such
/// a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartialElement {
    /// All bytes are received.
    Received,
    /// The message is refused with `MPI_ERR_TYPE`.
    Refused,
    /// The message is refused only if all elements of the receiver's type are of one basic type.
    /// The error is `MPI_ERR_TYPE` for a matched receive (`MPI_Mrecv`, `MPI_Imrecv`), else
    /// `MPI_ERR_TRUNCATE`.
    RefusedOfOneType,
    /// The message is refused with `MPI_ERR_TYPE`, but only if all elements of the receiver's type
    /// are of one basic type. The status reports all bytes that were received.
    ReportedOfOneType,
}

/// Costs of messages that differ between libraries: thresholds in bytes, and times in nanoseconds
/// on one side of a message. With these the preload library corrects the packing times that it
/// measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Minimum length in bytes of a message of a derived type that the library moves run by run,
    /// with a single copy between the processes; `u64::MAX` if it moves no message in this way.
    /// MPICH 5.0.2 on Zen 4: messages of 8 KiB in blocks of 4, 40 and 128 B take 61, 112 and 34 us,
    /// and 9 us if MPICH itself packs them first.
    pub rendezvous: u64,
    /// Minimum length in bytes of a message that the library moves in one of two ways: by a single
    /// copy, or in pieces, where one rank packs a piece while the other unpacks the piece before
    /// it. `u64::MAX` if the library does neither. For such messages only half of the measured
    /// packing time counts, with the exceptions of `direct_runs` and `short_run`. Open MPI 5.0.11
    /// on Zen 4: 43 KB in runs of 68 B take 12 us, and 15 us if they are packed first. On Zen 3: 4
    /// KiB in runs of 8 B take 1.2 us, and 1.4 us if they are packed first; 8 KiB in runs of 128 B
    /// take 1.5 us and 1.7 us.
    pub in_pieces: u64,
    /// Like `in_pieces`, but for types that are lists of blocks. In a message, the library takes
    /// longer for such blocks than its measured packing time suggests. Open MPI 5.0.11 on Zen 3: a
    /// round trip of SPECFEM3D_oc with 7.6 KB takes 9 us if it is packed first, and 23 us if it is
    /// not; with 12.9 KB it takes 15 us and 40 us.
    pub in_pieces_lists: u64,
    /// Minimum length in bytes of a message that the library moves by a single copy, from the
    /// layout of the sender to that of the receiver, if the message has at most `direct_runs` runs.
    /// Not used if `direct_runs` is 0.
    pub direct_from: u64,
    /// Maximum number of runs of a message from `direct_from` bytes on that the library moves by a
    /// single copy, from the layout of the sender to that of the receiver; 0 if it moves none in
    /// this way or if that is not known. The packing time says nothing about such a message; its
    /// cost is half a copy on each side, and the time of its runs. MPICH
    /// 4.3.2 on Zen 3, there and back: 96 KiB of MILC in 32 runs of 3 KiB take 16 us unconverted
    /// and 22 us converted, although `MPI_Pack` takes 22 us and a kernel 3 us. The limit is the
    /// maximum number of pieces of one system call, `IOV_MAX`.
    pub direct_runs: u64,
    /// Minimum length in bytes of a message for which `short_run` and `long_run` hold. Shorter
    /// messages of MPICH 4.2 and 4.3 fit into one cell of 16 KiB in shared memory, so they are
    /// packed whole.
    pub runs_from: u64,
    /// Minimum time in nanoseconds that the library needs for a run of less than 32 B in a message;
    /// 0 if it is not known. Intel MPI 2021.18.1 on Zen 4: messages of 2 to 128 KiB take longer
    /// than a message of their packed bytes. The additional time is 10 to 14 ns for each run of 4
    /// B, 6 to 8 ns for each run of 8 B, and 20 ns for each run of 40 B. MPICH 4.3.2 on Zen 3: a
    /// message of 64 KiB or 1 MiB, a vector of doubles, takes 13 to 28 ns for each double, half of
    /// it on each side, although its `MPI_Pack` takes 0.9 ns for each.
    ///
    /// If `direct_runs` is not 0, this is the time of a call that moves one or several runs
    /// ([`crate::pieces::bytes_per_call`]), except in messages that the library copies from layout
    /// to layout. MPICH 4.3.2 on an Intel Xeon (family 6, model 167, 2026-11-30), both sides
    /// together: WRF_x of 174 KB, in runs of 12 B under several loops, takes 3.4 ns for each run. A
    /// vector of doubles takes 11 ns for each double.
    pub short_run: u64,
    /// Like `short_run`, but for a run of 32 B or more. Without this value, the preload library
    /// concluded in every third job under Intel MPI that converting WRF_y with 63 KB (runs of 100 B
    /// and more) gains nothing. The reason is that `MPI_Pack` takes 4.3 us and the conversion 4.0
    /// us. But unconverted messages of WRF_y take twice as long as converted ones (Emerald Rapids).
    /// MPICH 4.3.2 on Zen 3, there and back: WRF_y with 90 KB, in some 800 runs of 100 B and more,
    /// takes 55 to 65 us, which is 16 to 19 ns for each run on each side, without the copy.
    pub long_run: u64,
    /// Whether a short packing time in memory suffices to conclude that a conversion of messages
    /// gains nothing. It does not suffice under Intel MPI, which sends derived types in pieces and
    /// takes longer for that than for packing. Intel MPI 2021.18.1 on Zen 4: a message of 128 KiB,
    /// a face of elements of 8 B, takes 597 us, and 196 us if it is packed by hand.
    pub packing_time_suffices: bool,
    /// Limit in bytes for the part of one rank in a collective call of which the policy converts
    /// only one direction. If the part is smaller than the limit, the other direction is converted
    /// too; 0 if it never is.
    ///
    /// MPICH 5.0.2 gains as long as the parts stay in a cache: with rows of 2 to 12 KiB on Zen 3,
    /// the converted calls take 0.55 of the unconverted time for parts of 256 KiB, 0.75 for 1 MiB,
    /// 1.2 for 4 MiB and 1.35 for 9 MiB. Intel MPI gains at all sizes (0.2 to 0.45). In Open MPI,
    /// compiled code moves such parts inside the library.
    pub max_paired_part: u64,
    /// Minimum length in bytes of a contiguous run that the library copies faster than the C
    /// library does; `i64::MAX` if it never is faster. Intel MPI 2021.18.1 on Zen 3: for 256 KiB,
    /// its `MPI_Pack` takes 5.4 us and `memcpy` 6.4 us.
    pub own_runs: i64,
    /// Whether compiled code can move the bytes of messages inside the library, without staging
    /// buffers.
    pub moves_inside: bool,
}

/// Properties of the releases of one family of MPI libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Family of the library.
    pub family: Family,
    /// First release for which the profile holds.
    pub from: [u32; 3],
    /// Whether calls are converted by staging buffers. This is false if compiled code moves the
    /// bytes inside the library and staging gains nothing in addition. Open MPI 4.1.8 on Zen 5:
    /// DDTBench takes 0.64 of the time of the unmodified library with compiled code inside alone,
    /// and 0.67 with staging added. Open MPI 6.0 has a faster datatype engine: with the policy of
    /// 5.0, staging made 25 of 68 rows slower (6.0.0a1, Zen 5).
    pub stages: bool,
    /// Whether collective calls of ranks on several nodes are converted. Under Open MPI they are
    /// not, because nothing is known of them: the unmodified Open MPI 5.0.11 fails the matrix's
    /// program of collective calls on 8 ranks if they are on two hosts (2026-11-30). Its collective
    /// component for several nodes (HAN) cuts segments according to the type.
    pub several_nodes: bool,
    /// Whether the status of `MPI_Isendrecv` and `MPI_Isendrecv_replace` describes the received
    /// message. In MPICH 5.0.2 and Intel MPI 2021.18 it is empty.
    pub fills_exchange_status: bool,
    /// Form of packed bytes in messages.
    pub wire_form: WireForm,
    /// Treatment of messages that end inside an element, with transports other than libfabric.
    pub partial_element: PartialElement,
    /// Treatment of messages that end inside an element and come through libfabric.
    pub partial_element_over_libfabric: PartialElement,
    /// Whether the library raises errors of matched receives and of completed requests on
    /// `MPI_COMM_WORLD`, because it no longer knows the communicator of the message.
    pub forgets_communicator: bool,
    /// Block size in bytes of file accesses that bypass the cache of the operating system. A
    /// contiguous access does so if its length and offset are multiples of this number; 0 if no
    /// access does. Intel MPI takes a hundred times as long for such an access as for a type with
    /// gaps. The preload library tests only the length.
    pub uncached: i64,
    /// Costs of messages.
    pub costs: Costs,
    /// Name of the library's table in policy.txt, which several profiles may share.
    pub policy: &'static str,
    /// Payload in bytes at which the use of the table for messages ends for most layout classes.
    /// Messages with this payload or more are converted by the table only for structures and lists
    /// of short blocks ([`Class::BlocksShort`], [`Class::TableShort`]), and for other classes only
    /// if measured times show a gain. `u64::MAX` if there is no such limit.
    pub table_ends: u64,
}

/// Profile of all other libraries.
pub const OTHER: Profile = Profile {
    family: Family::Other,
    from: [0; 3],
    stages: true,
    several_nodes: true,
    fills_exchange_status: true,
    wire_form: WireForm::Packed,
    partial_element: PartialElement::Received,
    partial_element_over_libfabric: PartialElement::Received,
    forgets_communicator: false,
    uncached: 0,
    costs: Costs {
        rendezvous: u64::MAX,
        in_pieces: u64::MAX,
        in_pieces_lists: u64::MAX,
        direct_from: u64::MAX,
        direct_runs: 0,
        runs_from: 0,
        short_run: 0,
        long_run: 0,
        packing_time_suffices: true,
        max_paired_part: 0,
        own_runs: i64::MAX,
        moves_inside: false,
    },
    policy: "other",
    table_ends: u64::MAX,
};

/// Rule by which MPICH and the libraries derived from it cut messages: a message of up to 4 KiB is
/// never cut, and the length of a segment of bytes is a multiple of 16 (MPICH 5.0.2).
const SEGMENTS: WireForm = WireForm::Segments { whole: 4096, multiple: 16 };

/// Profile of MPICH, except for the releases of [`MPICH_4_2`].
pub const MPICH: Profile = Profile {
    family: Family::Mpich,
    fills_exchange_status: false,
    wire_form: SEGMENTS,
    partial_element: PartialElement::Refused,
    partial_element_over_libfabric: PartialElement::Refused,
    costs: Costs { rendezvous: 9 << 10, max_paired_part: 2 << 20, ..OTHER.costs },
    policy: "mpich",
    ..OTHER
};

/// Profile of MPICH from 4.2 to before 5.0. MPICH 4.2 and 4.3 pack messages of less than 16 KiB
/// whole. They copy messages of 64 KiB and more directly from the layout of the sender to that of
/// the receiver if they have at most 1024 runs, at a small cost for each run. They move all other
/// messages in pieces ([`crate::pieces`]).
///
/// MPICH 4.3.2 on Zen 3, round trip: 256 KiB in rows of 2 KiB take 33 us, and 76 us if they are
/// packed by hand; 96 KiB in rows of 3 KiB take 15 us, and 71 us if packed by hand. Lists of short
/// blocks take longer if they are not packed: 91 KB of SPECFEM3D_mt take 207 us, and 24 us if
/// packed by hand; 196 KB of LAMMPS_full take 539 us, and 75 us if packed by hand.
pub const MPICH_4_2: Profile = Profile {
    costs: Costs {
        rendezvous: u64::MAX,
        in_pieces: 16 << 10,
        in_pieces_lists: 16 << 10,
        direct_from: 64 << 10,
        direct_runs: 1024,
        runs_from: 16 << 10,
        short_run: 6,
        long_run: 16,
        ..MPICH.costs
    },
    table_ends: 64 << 10,
    ..MPICH
};

/// Profile of Intel MPI.
pub const INTEL: Profile = Profile {
    family: Family::Intel,
    fills_exchange_status: false,
    wire_form: SEGMENTS,
    partial_element: PartialElement::RefusedOfOneType,
    partial_element_over_libfabric: PartialElement::ReportedOfOneType,
    forgets_communicator: true,
    uncached: 4096,
    costs: Costs {
        short_run: 6,
        long_run: 20,
        packing_time_suffices: false,
        max_paired_part: u64::MAX,
        own_runs: 128 << 10,
        ..OTHER.costs
    },
    policy: "intel",
    ..OTHER
};

/// Profile of Open MPI.
pub const OPEN_MPI: Profile = Profile {
    family: Family::OpenMpi,
    several_nodes: false,
    wire_form: WireForm::Gap { joined: 16 },
    costs: Costs { in_pieces: 4 << 10, in_pieces_lists: 16 << 10, moves_inside: true, ..OTHER.costs },
    policy: "openmpi",
    ..OTHER
};

/// Profile of a library of no known family with the ABI of MPICH. It treats messages as
/// MPICH's profile does, and file accesses as Intel MPI's does ([`Profile::uncached`]). The other
/// precautions of Intel MPI are not taken over.
pub const UNKNOWN_OF_MPICHS_ABI: Profile =
    Profile { family: Family::Other, uncached: INTEL.uncached, costs: OTHER.costs, ..MPICH };

/// Profile of a library of no known family with the ABI of Open MPI. It has all precautions of Open
/// MPI, and no compiled code runs inside the library.
pub const UNKNOWN_OF_OPEN_MPIS_ABI: Profile =
    Profile { family: Family::Other, costs: OTHER.costs, ..OPEN_MPI };

/// All profiles. Within a family, they are in ascending order of their first releases.
pub static PROFILES: [Profile; 8] = [
    MPICH,
    Profile { from: [4, 2, 0], ..MPICH_4_2 },
    Profile { from: [5, 0, 0], ..MPICH },
    INTEL,
    Profile { stages: false, ..OPEN_MPI },
    Profile { from: [5, 0, 0], ..OPEN_MPI },
    Profile { from: [6, 0, 0], stages: false, ..OPEN_MPI },
    OTHER,
];

/// Returns the number of the layout that convertors have in a release of Open MPI, as
/// `preload/src/convertor_hook/layout.rs` counts layouts; `None` if the layout is not known. A
/// convertor is the part of Open MPI that packs and unpacks messages.
pub fn convertor_layout(version: [u32; 3]) -> Option<usize> {
    match version {
        [4, 1, _] | [5, 0, _] => Some(0),
        [6, _, _] => Some(1),
        _ => None,
    }
}

impl Profile {
    /// Sentence for the user of a library under which nothing is staged and no message is moved
    /// inside the library.
    pub const NOTHING_MOVES: &str = "only MPI_Pack and MPI_Unpack: this release was not tried, and of releases like it ddtc converts no messages";

    /// Returns true if compiled code can move the bytes of messages inside this library.
    pub fn moves_inside(library: &Library) -> bool {
        Profile::find(library).costs.moves_inside && convertor_layout(library.version).is_some()
    }

    /// Returns the shipped policy for the library, without the payloads that
    /// [`Profile::table_ends`] excludes.
    pub fn shipped_policy(&self) -> Policy {
        let policy = Policy::shipped(self.policy);
        if self.table_ends == u64::MAX {
            return policy;
        }
        let below = !Policy::from(self.table_ends);
        let long = Class::ALL.into_iter().filter(|c| !matches!(c, Class::BlocksShort | Class::TableShort));
        long.fold(policy, |policy, class| policy.with(class, policy.set(class) & below))
    }

    /// Returns the profile under which the calls of a library that was not tried are converted: the
    /// profile of its family, or of its ABI if the library is of no known family. Returns `None`
    /// for a library of no known family with the standard ABI. Such libraries cut messages in
    /// different ways, so no form of packed bytes is right under all of them.
    pub fn find_untried(library: &Library, flavour: Flavour) -> Option<&'static Profile> {
        match (library.family, flavour) {
            (Family::Other, Flavour::Mpich) => Some(&UNKNOWN_OF_MPICHS_ABI),
            (Family::Other, Flavour::OpenMpi) => Some(&UNKNOWN_OF_OPEN_MPIS_ABI),
            (Family::Other, Flavour::Standard) => None,
            _ => Some(Profile::find(library)),
        }
    }

    /// Returns the profile of a library.
    pub fn find(library: &Library) -> &'static Profile {
        let holds = |p: &&Profile| p.family == library.family && p.from <= library.version;
        // Each family has a profile that begins at release 0, as a test ensures, so a profile is
        // always found.
        PROFILES.iter().rev().find(holds).unwrap_or(&PROFILES[PROFILES.len() - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_move_only_inside_the_releases_of_open_mpi_whose_convertors_are_known() {
        let moves = |family, version| Profile::moves_inside(&Library::new(family, version));
        for (version, is_known) in [([4, 1, 4], true), ([5, 0, 7], true), ([6, 0, 0], true)]
            .into_iter()
            .chain([([3, 1, 6], false), ([4, 0, 7], false), ([5, 1, 0], false), ([7, 0, 0], false)])
        {
            assert_eq!(moves(Family::OpenMpi, version), is_known, "{version:?}");
            assert!(!moves(Family::Mpich, version), "{version:?}");
        }
    }

    #[test]
    fn every_family_begins_at_release_0_and_goes_up() {
        for family in [Family::Mpich, Family::Intel, Family::OpenMpi, Family::Other] {
            let from: Vec<_> = PROFILES.iter().filter(|p| p.family == family).map(|p| p.from).collect();
            assert!(from[0] == [0; 3] && from.is_sorted_by(|a, b| a < b), "{family:?}: {from:?}");
            assert_eq!(Profile::find(&Library::new(family, [0; 3])).policy, family.name());
        }
    }
}
