//! Times that the MPI library and our kernel take to pack a part of a message. These times and the
//! runs of the layout decide whether a conversion of the message gains.

use ddtc_hosts::profile::Costs;

/// Number of bytes in short runs that an MPI library takes about a nanosecond or longer to pack.
/// Measured: 0.2 to 3 ns for a byte in short runs, and 0.1 ns for a byte in long runs (machine not
/// recorded). If the number is too small, types are decoded too early.
pub(crate) const SHORT_BYTES: u64 = 4;
/// Number of uninterrupted rounds that one timing needs. The minimum of each time over the rounds
/// counts, so all rounds but one may be slow for a reason that the system does not report.
pub(crate) const ROUNDS: u64 = 3;
/// Maximum number of bytes of a buffer that are packed to measure packing times. Only whole
/// instances are packed. The first instance is packed even if it is longer than this maximum.
pub(crate) const PART: u64 = 64 << 10;
/// Minimum nanoseconds that a run of 32 B and more takes on each of the two sides of a message that
/// the MPI library moves run by run (`Costs::rendezvous`, MPICH). Measured: 240 to 340 for runs of
/// 40 B to 2 KiB (Zen 3 and 4).
const RENDEZVOUS_RUN: u64 = 240;
/// Minimum nanoseconds that a run of less than 32 B takes on each side in addition to its packing,
/// in a message that the MPI library moves run by run. Measured: 14 to 28 if one rank converts the
/// message and the other does not (Zen 3), and 30 if neither rank converts the message (lists and
/// vectors of 20 KB in runs of 4 B, Emerald Rapids). If the constant is too small, types of such
/// short runs are decoded later than would pay.
const RENDEZVOUS_SHORT_RUN: u64 = 14;
/// Length in bytes below which a run is short. A message of short runs that the MPI library moves
/// run by run takes up to four times as long if only one of the two ranks converts it. So both
/// ranks must convert the message or neither. The decision depends on the layout alone, and not on
/// measured times, which differ between ranks. Times there and back under MPICH 5.0.2 on Zen 3:
/// WRF_x of 174 KB takes 174 us unmodified, 160 to 200 us converted by both ranks and 595 to 770 us
/// converted by one rank. NAS_MG_x of 128 KiB takes 225 us unmodified, 233 us converted by both
/// ranks and 941 us converted by one rank.
const SHORT_RUN: u64 = 32;
/// Length in bytes of a cache line.
const LINE: u64 = 64;
/// Size in bytes that is assumed for the second-level cache. It is 512 KiB in Zen 1 to 3, and 1 to
/// 2 MiB in later servers. If each short run lies in a cache line of its own, memory bounds how
/// fast the runs are moved. The MPI library moves them on both ranks at the same time, but a
/// conversion packs on one rank first and unpacks on the other afterwards, so it can take longer.
/// So if both ranks must decide alike, a message of such runs is not converted if one cache line
/// for each run makes more than this size. It is converted at any size if the runs are those of a
/// list or lie under one loop, because the MPI library then needs a call for each run. It moves
/// many runs of several nested loops by one call.
///
/// NAS_MG_x of 32 KiB touches 256 KiB and gains 5 to 18 % (Zen 3, and Emerald Rapids in November
/// 2026). NAS_MG_x of 128 KiB touches 1 MiB. If both ranks convert this message, it takes 1.03 of
/// its unmodified time on Zen 3, and 1.3 to 1.5 on Emerald Rapids. WRF_x of 174 KB touches 904 KiB
/// and takes 0.92 to 1.15 on Zen 3, and 1.5 on an Intel Xeon (family 6, model 167). A vector of 174
/// KB in runs of 8 or 12 B takes 0.46 to 0.80 there, if the runs are 128 to 1024 B apart
/// (2026-11-30). If the constant is too large, messages that touch more than the cache holds lose
/// time as NAS_MG_x of 128 KiB does. If the constant is too small, messages such as NAS_MG_x of 32
/// KiB lose their gain.
const CACHE: u64 = 512 << 10;
/// Nanoseconds that staging a message costs in addition to the copy of its bytes. They are spent on
/// getting a staging buffer, a substitute datatype and a status.
const STAGING: u64 = 100;

/// Returns the nanoseconds that staging a message of `bytes` bytes takes longer on one side than
/// moving its bytes by compiled code inside the MPI library. Measured with Open MPI 5.0.11 on Zen
/// 3: 115 ns for 64 B, 165 ns for 4 KiB and 550 ns for 16 KiB.
pub(crate) fn staging(bytes: u64) -> u64 {
    STAGING + bytes / 32
}

/// Nanoseconds that the conversion of a message costs in addition if a later call completes the
/// message, because the later call has to find the message by its request. For a message of 480 B
/// this takes 280 ns for a send and 160 ns for a receive under MPICH, and 150 ns for a send and 190
/// ns for a receive under Intel MPI (Zen 3).
pub(crate) const LATER: u64 = 250;

/// Summary of the runs of a layout, which are its contiguous pieces in user memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Runs {
    /// Mean length of a run in bytes; 0 if it is not known.
    bytes: u64,
    /// True if the displacements of the runs are those of a list, false if they are regular steps.
    listed: bool,
    /// True if the runs are short and lie apart under several loops: the mean number of bytes of
    /// user memory for each run, gaps included, is at least that of a cache line.
    apart: bool,
    /// Mean number of bytes that the MPI library moves with one call, if it moves a message in
    /// pieces ([`ddtc_hosts::pieces::bytes_per_call`]). It is rounded down to five binary digits. 0
    /// if the number is not known; each run then counts as one call.
    per_call: u64,
}

impl Runs {
    const LISTED: u64 = 1 << 31;
    const APART: u64 = 1 << 30;
    /// Maximum mean length in bytes. The number of longer runs is overestimated, but at 1 MiB and
    /// more a copy of a run takes much longer than the additional cost of the run.
    const MAX_BYTES: u64 = (1 << 20) - 1;

    /// Returns the summary of runs that have a mean length of `bytes` bytes. `memory` is the mean
    /// number of bytes of user memory for each run, gaps included. The summary says that each call
    /// moves one run, until [`Runs::with_bytes_per_call`] sets another number.
    pub(crate) fn new(bytes: u64, listed: bool, memory: u64) -> Runs {
        let runs = Runs { bytes: bytes.min(Runs::MAX_BYTES), listed, apart: false, per_call: 0 };
        Runs { apart: runs.are_short() && memory >= LINE, ..runs }
    }

    /// Returns the same summary for runs under at most one loop besides that over the instances.
    pub(crate) fn under_one_loop(self) -> Runs {
        Runs { apart: false, ..self }
    }

    /// Returns the same summary, but with `number` bytes in each call.
    pub(crate) fn with_bytes_per_call(self, number: u64) -> Runs {
        Runs { per_call: from_short_float(short_float(number)), ..self }
    }

    /// Returns the summary of runs from a word of 32 bits that [`Runs::word`] has returned.
    pub(crate) fn from_word(word: u64) -> Runs {
        Runs {
            bytes: word & Runs::MAX_BYTES,
            listed: word & Runs::LISTED != 0,
            apart: word & Runs::APART != 0,
            per_call: from_short_float(word / (Runs::MAX_BYTES + 1) % SHORT_FLOATS),
        }
    }

    /// Returns the summary as a word of 32 bits. The word 0 stands for runs of unknown length.
    pub(crate) fn word(self) -> u64 {
        let bit = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        let per_call = short_float(self.per_call) * (Runs::MAX_BYTES + 1);
        self.bytes | per_call | bit(self.listed, Runs::LISTED) | bit(self.apart, Runs::APART)
    }

    /// Returns whether messages of `bytes` bytes in these runs gain by a conversion, if both ranks
    /// must decide alike. They must if the runs are short and the MPI library moves the messages
    /// run by run. Returns `None` for all other messages, because each rank decides about those by
    /// its own times.
    #[inline]
    pub(crate) fn gain_on_both_ranks(self, costs: &Costs, bytes: u64) -> Option<bool> {
        (bytes >= costs.rendezvous && self.are_short()).then(|| {
            let touched = (bytes / self.bytes).saturating_mul(LINE);
            self.listed || !self.apart || touched <= CACHE
        })
    }

    /// Returns the minimum nanoseconds that the conversion of a message of `bytes` bytes saves. The
    /// message must be in short runs, and the MPI library must move it run by run.
    pub(crate) fn saving(self, bytes: u64) -> u64 {
        bytes / self.bytes.max(1) * RENDEZVOUS_SHORT_RUN
    }

    /// Returns the message length in bytes from which the MPI library moves messages in these runs
    /// in pieces or by a single copy.
    fn in_pieces(self, costs: &Costs) -> u64 {
        if self.listed { costs.in_pieces_lists } else { costs.in_pieces }
    }

    /// Returns whether the MPI library copies a message of `bytes` bytes in these runs from layout
    /// to layout.
    fn are_direct(self, costs: &Costs, bytes: u64) -> bool {
        bytes >= costs.direct_from && bytes.div_ceil(self.bytes.max(1)) <= costs.direct_runs
    }

    /// Returns true if the MPI library moves the runs by one call each, or nearly so, in a message
    /// that it moves in pieces.
    fn is_moved_alone(self) -> bool {
        self.per_call < 2 * self.bytes
    }

    #[inline]
    fn are_short(self) -> bool {
        (1..SHORT_RUN).contains(&self.bytes)
    }

    /// Returns true if, as far as is known, MPI libraries move these runs and the runs `others` by
    /// the same methods. The methods differ between short and long runs, between runs at regular
    /// steps and runs of a list, between short runs near each other and short runs that lie apart,
    /// and between one run and several runs in a call. Runs of unknown length count as similar to
    /// all other runs.
    pub(crate) fn are_like(self, others: Runs) -> bool {
        let unknown = |runs: Runs| runs.bytes == 0;
        unknown(self)
            || unknown(others)
            || self.are_short() == others.are_short()
                && self.listed == others.listed
                && self.apart == others.apart
                && self.is_moved_alone() == others.is_moved_alone()
    }
}

/// Number of values that [`short_float`] returns.
const SHORT_FLOATS: u64 = 1 << 10;

/// Returns a number in ten bits: the five highest binary digits, and the number of further digits.
fn short_float(number: u64) -> u64 {
    let further = number.max(16).ilog2() - 4;
    // From 16 on, the highest digit is 1 and is not stored. It carries into the number of further
    // digits, which is thus stored plus 1.
    (number >> further) + u64::from(further) * 16
}

/// Returns the number that [`short_float`] has stored, with zeros as further digits.
fn from_short_float(short: u64) -> u64 {
    match (short / 16, short % 16) {
        (0, number) => number,
        (further, digits) => (16 + digits) << (further - 1),
    }
}

/// Returns true if `ours` nanoseconds are less than `theirs` by more than a tenth. A smaller
/// difference may be an error of the measurement.
pub(crate) fn is_faster(ours: u64, theirs: u64) -> bool {
    ours.saturating_mul(10) < theirs.saturating_mul(9)
}

/// Nanoseconds that the MPI library and our kernel take to pack a part of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// Packed bytes of the part that was timed.
    pub(crate) bytes: u32,
    /// Nanoseconds in which the MPI library packs the part.
    pub(crate) host: u32,
    /// Nanoseconds in which our kernel packs the part.
    pub(crate) ours: u32,
    /// Nanoseconds that a copy of the packed bytes of the part takes.
    pub(crate) copy: u32,
}

impl Times {
    /// Returns true if messages of `bytes` bytes in these runs gain by a conversion. If both ranks
    /// must decide alike, the layout alone decides. Otherwise the conversion must be faster than
    /// the MPI library ([`is_faster`]).
    pub(crate) fn gains(self, costs: &Costs, bytes: u64, runs: Runs) -> bool {
        let (host, converted) = self.sides(costs, bytes, runs);
        self.gain_on_both_ranks(costs, bytes, runs).unwrap_or(is_faster(converted, host))
    }

    /// Returns what [`Runs::gain_on_both_ranks`] returns for messages of `bytes` bytes. If the part
    /// that was timed is longer than `bytes`, its length is used instead.
    fn gain_on_both_ranks(self, costs: &Costs, bytes: u64, runs: Runs) -> Option<bool> {
        runs.gain_on_both_ranks(costs, bytes.max(self.bytes.into()))
    }

    /// Returns the nanoseconds that a conversion of a message of `bytes` bytes in these runs saves
    /// on one side.
    pub(crate) fn saves(self, costs: &Costs, bytes: u64, runs: Runs) -> u32 {
        let (host, converted) = self.sides(costs, bytes, runs);
        let all = host.saturating_sub(converted).saturating_mul(bytes) / u64::from(self.bytes).max(1);
        // If both ranks must convert the message, the message may still be completed by a later
        // call on one of them, which costs `LATER` more. With `LATER` as the minimum, the message
        // gains in that case too.
        let minimum = if self.gain_on_both_ranks(costs, bytes, runs) == Some(true) { LATER } else { 0 };
        u32::try_from(all.max(minimum)).unwrap_or(u32::MAX)
    }

    /// Returns the minimum nanoseconds that the MPI library needs on one side for the runs of the
    /// timed part, if the part belongs to a message of `bytes` bytes; 0 if none is known.
    ///
    /// If `direct_runs` is not 0, the library moves messages that are not copied from layout to
    /// layout in pieces, with calls that each move several runs as fast as `MPI_Pack` does. So the
    /// calls are counted in place of the runs.
    fn minimum(self, costs: &Costs, bytes: u64, runs: Runs) -> u64 {
        if bytes < costs.runs_from {
            return 0;
        }
        let are_in_calls = costs.direct_runs > 0 && !runs.are_direct(costs, bytes);
        let number = match runs.per_call {
            per_call @ 1.. if are_in_calls => u64::from(self.bytes) / per_call,
            _ => self.runs(runs),
        };
        number * if runs.are_short() { costs.short_run } else { costs.long_run }
    }

    /// Returns the number of runs in the timed part; 0 if their length is not known.
    fn runs(self, runs: Runs) -> u64 {
        u64::from(self.bytes).checked_div(runs.bytes).unwrap_or(0)
    }

    /// Returns two times for the timed part of a message of `bytes` bytes, both on one side of the
    /// message: the time of the MPI library, and the time of a conversion.
    fn sides(self, costs: &Costs, bytes: u64, runs: Runs) -> (u64, u64) {
        let [host, ours, copy, part] = [self.host, self.ours, self.copy, self.bytes].map(u64::from);
        let minimum = self.minimum(costs, bytes, runs);
        let is_in_pieces = bytes >= runs.in_pieces(costs);
        let is_direct = runs.are_direct(costs, bytes);
        // A packed message is copied once on each side. From the rendezvous limit on, there is only
        // a single copy between the two sides, and half of its time counts on this side. The same
        // holds for a message that the MPI library copies from layout to layout, converted or not.
        let copy = if bytes >= costs.rendezvous || is_direct { copy / 2 } else { copy };
        let host = if is_direct {
            copy + minimum
        } else if is_in_pieces {
            // The MPI library moves the message in overlapping pieces or by a single copy from
            // layout to layout, so only half of its packing time counts. A conversion packs, copies
            // and unpacks, so its whole time counts.
            minimum.max(host / 2)
        } else if part >= costs.rendezvous {
            // The MPI library moves each run separately, and each run takes a minimum time.
            host.max(self.runs(runs) * if runs.are_short() { RENDEZVOUS_SHORT_RUN } else { RENDEZVOUS_RUN })
        } else {
            host.max(minimum)
        };
        let staging = copy + STAGING * part / bytes.max(part).max(1);
        (host, ours + staging)
    }

    /// Returns true if messages of `bytes` bytes are found not to gain by a conversion. If both
    /// ranks must decide alike, the layout alone decides. For all other messages two conditions
    /// must hold: our kernel takes a quarter of a nanosecond a byte or more, and our kernel and the
    /// copy of the packed bytes together are not faster than the MPI library ([`is_faster`]), which
    /// packs at least as long as it needs for the runs.
    /// Returns false if short packing times do not show how long the MPI library's messages take
    /// (`Costs::packing_time_suffices`).
    pub(crate) fn loses(self, costs: &Costs, bytes: u64, runs: Runs) -> bool {
        if !costs.packing_time_suffices {
            return false;
        }
        if let Some(gains) = self.gain_on_both_ranks(costs, bytes, runs) {
            return !gains;
        }
        let [host, ours, copy] = [self.host, self.ours, self.copy].map(u64::from);
        // If our kernel packs faster than a quarter of a nanosecond a byte and a message takes long
        // nevertheless, the MPI library spends the time on something other than packing. The policy
        // table was measured with messages, so the table decides about this message.
        ours >= u64::from(self.bytes) / SHORT_BYTES
            && !is_faster(ours + copy, host.max(self.minimum(costs, bytes, runs)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ddtc_hosts::profile;

    const MPICH: Costs = profile::MPICH.costs;
    const MPICH_4_2: Costs = profile::MPICH_4_2.costs;
    const INTEL: Costs = profile::INTEL.costs;
    const OPEN_MPI: Costs = profile::OPEN_MPI.costs;

    fn strided(bytes: u64) -> Runs {
        Runs::new(bytes, false, 600)
    }

    #[test]
    fn runs_are_a_word() {
        let all =
            [0, 8, 31, 32, u64::MAX].map(|bytes| [false, true].map(|listed| Runs::new(bytes, listed, 600)));
        for runs in all.as_flattened() {
            for runs in
                [0, 1, 15, 16, 17, 130, 16384, u64::MAX].map(|number| runs.with_bytes_per_call(number))
            {
                assert!(Runs::from_word(runs.word()) == runs && u32::try_from(runs.word()).is_ok());
            }
        }
        let [unknown, short, _, long, _] = all.map(|[strided, _]| strided);
        assert!(
            unknown.are_like(long)
                && !short.are_like(long)
                && !short.are_like(Runs::new(31, false, 63))
                && short.are_like(Runs::new(31, false, 64))
        );
        assert!(!short.are_like(Runs::new(8, true, 600)) && !short.are_like(short.with_bytes_per_call(16)));
        assert!(short.with_bytes_per_call(16).are_like(short.with_bytes_per_call(130)));
        assert!(short.with_bytes_per_call(8).are_like(short));
        for number in [0, 1, 15, 16, 31, 32, 100, 780, 8000, u64::MAX] {
            let kept = from_short_float(short_float(number));
            assert!(kept <= number && number - kept <= number / 16 && short_float(number) < SHORT_FLOATS);
        }
        // WRF_x has runs of 12 B and NAS_MG_x runs of 8 B under several loops, each run in a cache
        // line of its own. The third layout is a vector of runs that lie as those of NAS_MG_x do.
        // The fourth has runs of 8 B, one in every 24 B.
        let [wrf, mg, near] = [(12, 600), (8, 1040), (8, 24)].map(|(b, memory)| Runs::new(b, false, memory));
        let gains = [wrf, mg, mg.under_one_loop(), near].map(|runs| runs.gain_on_both_ranks(&MPICH, 1 << 20));
        assert_eq!(gains, [Some(false), Some(false), Some(true), Some(true)]);
        // Runs of 8 B in cache lines of their own gain as long as all the lines fit into the cache.
        let in_lines = |bytes| Runs::new(8, false, 1040).gain_on_both_ranks(&MPICH, bytes);
        assert_eq!([64 << 10, (64 << 10) + 8].map(in_lines), [Some(true), Some(false)]);
        assert_eq!(Runs::new(8, true, 1040).gain_on_both_ranks(&MPICH, 1 << 20), Some(true));
        assert_eq!(Runs::new(40, false, 1040).gain_on_both_ranks(&MPICH, 9216), None);
        assert_eq!(Runs::new(8, false, 1040).gain_on_both_ranks(&MPICH, 9215), None);
        assert_eq!(Runs::new(8, false, 1040).gain_on_both_ranks(&INTEL, 1 << 20), None);
    }

    #[test]
    fn what_gains_beyond_staging_is_converted() {
        let gains = |costs, bytes: u32, host, ours, copy| {
            Times { bytes, host, ours, copy }.gains(costs, u64::from(bytes), strided(16384))
        };
        // Messages of short blocks that the MPI library packs by a slow loop gain. Messages of long
        // blocks that it packs as fast as a copy do not gain. Nor do small messages, because
        // staging costs more than they could gain.
        assert!(gains(&MPICH, 12288, 8000, 1200, 400));
        assert!(!gains(&MPICH, 1 << 20, 50_000, 49_000, 48_000));
        assert!(!gains(&INTEL, 480, 60, 40, 10));
        // Messages that Open MPI moves in pieces or by one copy gain only if its packing is slower
        // by far.
        assert!(gains(&INTEL, 65536, 8000, 5000, 1000) && !gains(&OPEN_MPI, 65536, 8000, 5000, 1000));
        assert!(gains(&OPEN_MPI, 2048, 8000, 5000, 1000) && !gains(&OPEN_MPI, 8192, 8000, 5000, 1000));
        // If a type is a list of blocks, Open MPI moves its messages in pieces or by one copy only
        // if they have 16 KiB or more.
        let times = Times { bytes: 8192, host: 8000, ours: 5000, copy: 1000 };
        let list = |bytes| times.gains(&OPEN_MPI, bytes, Runs::new(16384, true, 0));
        assert!(list(8192) && !list(16384));
        // Messages that MPICH moves run by run gain if the runs are short enough that their number
        // counts.
        let times = Times { bytes: 16320, host: 1200, ours: 1300, copy: 300 };
        assert!(times.gains(&MPICH, 16320, strided(40)) && !times.gains(&MPICH, 16320, strided(4080)));
        // Messages that Intel MPI sends in pieces also gain if their runs are short enough.
        assert!(times.gains(&INTEL, 16320, strided(40)) && !times.gains(&INTEL, 16320, strided(4080)));
        // `far` and `near` are times of messages that MPICH moves by one copy between processes:
        // NAS_MG_y and NAS_MG_z of DDTBench, of 256 KiB and 1 MiB (Zen 3).
        let far = Times { bytes: 262_144, host: 24_066, ours: 18_806, copy: 13_416 };
        let near = Times { bytes: 1 << 20, host: 62_000, ours: 57_000, copy: 54_000 };
        assert!(far.gains(&MPICH, 262_144, strided(2048)) && !far.gains(&INTEL, 262_144, strided(2048)));
        assert!(!near.gains(&MPICH, 1 << 20, strided(4096)));
        // Messages in short runs gain under Intel MPI. For runs of unknown length the number of
        // runs is not known, so only the packing times count.
        assert!(times.gains(&INTEL, 16320, strided(8)) && !times.gains(&INTEL, 16320, strided(0)));
        // MPICH 4.2 and 4.3 pack 1 MiB in runs of 8 B in 112 us, but need 1.8 ms for a message of
        // it: they move it in pieces, with a call for each block (Zen 3). A block of this vector is
        // one run. A block of NAS_MG_x is a row of 128 runs.
        let dense = Times { bytes: 1 << 20, host: 111_728, ours: 73_748, copy: 33_573 };
        let runs = Runs::new(8, false, 16);
        assert!(dense.gains(&MPICH_4_2, 1 << 20, runs));
        assert!(!dense.gains(&MPICH_4_2, 1 << 20, runs.with_bytes_per_call(700)));
        // From 64 KiB on they copy up to 1024 runs from layout to layout, which is as fast as
        // copying packed bytes if the runs are long (MILC).
        let milc = Times { bytes: 98304, host: 21_641, ours: 2885, copy: 2395 };
        assert!(
            !milc.gains(&MPICH_4_2, 98304, strided(3072)) && milc.gains(&MPICH_4_2, 65535, strided(3072))
        );
        assert!(milc.gains(&MPICH_4_2, 98304, strided(100).with_bytes_per_call(10_000)));
        // A list counts its runs even if they lie apart, and what they cost speaks against a loss
        // too (lists of runs of 4 B and of 12 B).
        let apart = Times { bytes: 65536, host: 60_000, ours: 55_000, copy: 2400 };
        assert!(apart.gains(&MPICH_4_2, 65536, Runs::new(4, true, 600)));
        let list = Times { bytes: 177_672, host: 70_000, ours: 65_000, copy: 9000 };
        assert!(!list.loses(&MPICH_4_2, 131_072, Runs::new(12, true, 600)));
        assert!(list.loses(&MPICH_4_2, 16383, Runs::new(12, true, 600)));
        let packed = Times { bytes: 12900, host: 3747, ours: 3600, copy: 271 };
        assert!(!packed.gains(&MPICH_4_2, 12900, Runs::new(4, true, 600)));
        // Lists of 26 KB take MPICH 4.3.2 30 us in a message, but only 2 us in `MPI_Pack` (Intel
        // Xeon, model 167). WRF_x of 174 KB takes 50 us, and 72 us converted.
        let short = Times { bytes: 26_424, host: 2103, ours: 1373, copy: 211 };
        assert!(short.saves(&MPICH_4_2, 16384, Runs::new(12, true, 600)) > 7000);
        let wrf = Times { bytes: 173_712, host: 61_460, ours: 37_638, copy: 3366 };
        assert!(!wrf.gains(&MPICH_4_2, 131_072, strided(12).with_bytes_per_call(190)));
        // The MPI library and a kernel take equally long for elements that lie far from each other,
        // so a conversion loses. Under Intel MPI the packing times do not show whether messages
        // lose, so no message counts as losing there.
        let far = Times { bytes: 65536, host: 90_000, ours: 88_000, copy: 3000 };
        assert!(
            far.loses(&MPICH, 65536, strided(0))
                && far.loses(&OPEN_MPI, 65536, strided(8))
                && !far.loses(&INTEL, 65536, strided(8))
        );
    }

    #[test]
    fn ranks_agree_where_that_counts() {
        // Times of WRF_x of 174 KB, which differ between ranks and between hours (Zen 3). A vector
        // with the same runs and times is converted, because MPICH needs a call for each run. WRF_x
        // is not, because MPICH moves many of its runs by one call. The times further below are
        // those of NAS_MG_x of 128 KiB (Zen 3).
        let vector = strided(12).under_one_loop();
        let wrf = [
            (31_850, 37_810, 5570),
            (54_282, 46_928, 6583),
            (63_147, 48_760, 10_198),
            (123_290, 43_921, 13_525),
        ];
        for (host, ours, copy) in wrf {
            let times = Times { bytes: 173_712, host, ours, copy };
            assert!(times.gains(&MPICH, 131_072, vector) && !times.loses(&MPICH, 131_072, vector));
            assert!(u64::from(times.saves(&MPICH, 131_072, vector)) >= LATER);
            assert!(!times.gains(&MPICH, 131_072, strided(12)) && times.loses(&MPICH, 131_072, strided(12)));
        }
        for (host, ours, copy) in
            [(76_974, 69_300, 4469), (357_137, 146_534, 6322), (69_921, 54_232, 5381), (72_596, 51_195, 6993)]
        {
            let times = Times { bytes: 131_072, host, ours, copy };
            assert!(!times.gains(&MPICH, 131_072, strided(8)) && times.loses(&MPICH, 131_072, strided(8)));
        }
        // Messages of types that are lists of blocks gain whether they fit into the cache or not
        // (SPECFEM3D_cm of 178 KB).
        let lists = Runs::new(12, true, 600);
        for (host, ours, copy) in [(62_236, 47_388, 7624), (174_275, 86_672, 9728), (182_110, 140_771, 9047)]
        {
            let times = Times { bytes: 177_672, host, ours, copy };
            assert!(times.gains(&MPICH, 131_072, lists) && !times.loses(&MPICH, 131_072, lists));
        }
    }
}
