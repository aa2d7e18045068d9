//! How long a part of a message takes the host and our kernel to pack, and what that says of the message.

use ddtc_hosts::profile::Costs;

/// Most bytes of a buffer that are packed to time it, if that is an instance or more.
pub(crate) const PART: u64 = 64 << 10;
/// Nanoseconds that a run takes on either side in messages that are moved run by run (`Costs::rendezvous`, MPICH): 4 to 8 for one of a few bytes, 240 to 340 for one of 40 B to 2 KiB (Zen 3 and 4).
const RENDEZVOUS_RUN: u64 = 240;
const RENDEZVOUS_SHORT_RUN: u64 = 4;
/// Nanoseconds more than its packing that a short run takes in such messages where one rank alone converts: 14 to 21 of WRF_x, 22 to 28 of NAS_MG_x (Zen 3).
const ONE_SIDED_RUN: u64 = 14;
/// Bytes below which a run is short. A message of short runs that is moved run by run takes up to four times as long if only one rank converts it
/// (MPICH 5.0.2, Zen 3, there and back in us: WRF_x of 174 KB 174 unmodified, 160 to 200 converted, 595 to 770 converted by one rank; NAS_MG_x of 128 KiB 225, 233
/// and 941). So both ranks must convert it or neither, and the decision depends on the layout alone.
const SHORT_RUN: u64 = 32;
/// Bytes of a cache line.
const LINE: u64 = 64;
/// Messages of short runs that fill more than [`CACHE`] with their lines are not converted if a run takes
/// at least this many times its own bytes of memory, of which no more than a cache line counts. Packing
/// is then bound by memory, whoever packs. WRF_x has runs of 12 B, each in a line of its own
/// (64 / 12 = 5), and gains in any size; NAS_MG_x has runs of 8 B (64 / 8 = 8). Their kernels take 4 to
/// 7 and 10 to 28 times as long as a copy of the packed bytes (Zen 3).
const TOUCHED: u64 = 8;
/// Bytes of a second-level cache: 512 KiB in Zen 1 to 3, 1 to 2 MiB in later servers. NAS_MG_x of 32 KiB
/// touches 256 KiB and gains 5 to 18 % (Zen 3, and Emerald Rapids in November 2026). NAS_MG_x of 128 KiB
/// touches 1 MiB; if both ranks convert it, it takes 1.03 of its unmodified time on Zen 3, and 1.3 to 1.5 on
/// Emerald Rapids. If the constant is too large such messages lose that much; if it is too small, messages
/// like the first lose what they could gain.
const CACHE: u64 = 512 << 10;
/// Nanoseconds that staging a message costs beside its bytes: a buffer, a stand-in, a status.
const STAGING: u64 = 100;

/// Returns the nanoseconds that a packed message of so many bytes takes longer than one that is moved inside, on one side (Open MPI 5.0.11, Zen 3: 115 of 64 B, 165 of
/// 4 KiB, 550 of 16 KiB).
pub(crate) fn staging(bytes: u64) -> u64 {
    STAGING + bytes / 32
}

/// Times as much as it is in a message that packing in memory shows compiled code to be faster (Open MPI 5.0.11, Zen 3: 4 KiB in runs of 8 B 300 ns, in a message 70 on
/// either side).
pub(crate) const PACKED_SLOWER: u64 = 4;

/// Nanoseconds that it costs more where a later call completes the message, which looks for it by its request (480 B: under MPICH sends 280 and receives 160, under Intel MPI
/// 150 and 190; Zen 3).
pub(crate) const LATER: u64 = 250;

/// Runs of bytes of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Runs {
    /// Bytes on average; 0: not known.
    bytes: u64,
    /// They lie where a list says.
    listed: bool,
    /// A kernel touches much more memory than their bytes ([`TOUCHED`]).
    apart: bool,
}

impl Runs {
    const LISTED: u64 = 1 << 31;
    const APART: u64 = 1 << 30;

    /// Runs of so many bytes, each in so many bytes of memory on average.
    pub(crate) fn new(bytes: u64, listed: bool, memory: u64) -> Runs {
        let apart = memory.min(LINE) >= bytes.saturating_mul(TOUCHED);
        Runs { bytes: bytes.min(Runs::APART - 1), listed, apart: apart && bytes > 0 }
    }

    /// From a word of 32 bits, as [`Runs::word`] makes it.
    pub(crate) fn from_word(word: u64) -> Runs {
        Runs { bytes: word % Runs::APART, listed: word & Runs::LISTED != 0, apart: word & Runs::APART != 0 }
    }

    pub(crate) fn word(self) -> u64 {
        let bit = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        self.bytes | bit(self.listed, Runs::LISTED) | bit(self.apart, Runs::APART)
    }

    /// Returns whether messages of `bytes` bytes gain by a conversion, if both ranks must decide the
    /// same: if the runs are short and the library moves them run by run. None for all other messages,
    /// about which each rank decides by its own times.
    #[inline]
    pub(crate) fn gain_on_both_ranks(self, costs: &Costs, bytes: u64) -> Option<bool> {
        (bytes >= costs.rendezvous && self.are_short()).then(|| {
            let touched = (bytes / self.bytes).saturating_mul(LINE);
            self.listed || !self.apart || touched <= CACHE
        })
    }

    #[inline]
    fn are_short(self) -> bool {
        (1..SHORT_RUN).contains(&self.bytes)
    }

    /// Says whether hosts move them by the same ways, for all that is known: short ones and long ones, in steps and by lists; short ones near each other and
    /// apart.
    pub(crate) fn are_like(self, others: Runs) -> bool {
        let unknown = |runs: Runs| runs.bytes == 0;
        unknown(self)
            || unknown(others)
            || self.are_short() == others.are_short()
                && self.listed == others.listed
                && (!self.are_short() || self.apart == others.apart)
    }
}

/// Nanoseconds that a part of a message takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// Bytes of the part.
    pub(crate) bytes: u32,
    /// The host packs it.
    pub(crate) host: u32,
    /// Our kernel does.
    pub(crate) ours: u32,
    /// Its packed bytes are copied once more.
    pub(crate) copy: u32,
}

impl Times {
    /// Says whether messages of `bytes` bytes in such runs gain by a conversion, beyond 10 %.
    pub(crate) fn gains(self, costs: &Costs, bytes: u64, runs: Runs) -> bool {
        let (host, converted) = self.sides(costs, bytes, runs);
        self.gain_on_both_ranks(costs, bytes, runs).unwrap_or(converted * 10 < host * 9)
    }

    /// As [`Runs::gain_on_both_ranks`], of messages of `bytes` bytes, or of the part that was timed if that is
    /// longer.
    fn gain_on_both_ranks(self, costs: &Costs, bytes: u64, runs: Runs) -> Option<bool> {
        runs.gain_on_both_ranks(costs, bytes.max(self.bytes.into()))
    }

    /// Returns the nanoseconds that a conversion of such a message saves on one side.
    pub(crate) fn saves(self, costs: &Costs, bytes: u64, runs: Runs) -> u32 {
        let (host, converted) = self.sides(costs, bytes, runs);
        let all = host.saturating_sub(converted).saturating_mul(bytes) / u64::from(self.bytes).max(1);
        // What ranks must agree on is the same for every kind of call.
        let least = if self.gain_on_both_ranks(costs, bytes, runs) == Some(true) { LATER } else { 0 };
        u32::try_from(all.max(least)).unwrap_or(u32::MAX)
    }

    /// Returns the nanoseconds that are at stake with such a message where the other rank converts what it sends: what [`Times::saves`] says, or, of what both must say the same,
    /// what it takes longer if one does not. So much may go into its type.
    pub(crate) fn stake(self, costs: &Costs, bytes: u64, runs: Runs) -> u32 {
        let one_sided = match self.gain_on_both_ranks(costs, bytes, runs) {
            Some(true) => u32::try_from(bytes / runs.bytes * ONE_SIDED_RUN).unwrap_or(u32::MAX),
            _ => 0,
        };
        self.saves(costs, bytes, runs).max(one_sided)
    }

    /// Returns the time of the host for the part, and that of a conversion, on one side.
    fn sides(self, costs: &Costs, bytes: u64, runs: Runs) -> (u64, u64) {
        let Times { bytes: part, host, ours, copy } = self;
        let [host, ours, copy, part] = [host, ours, copy, part].map(u64::from);
        let in_pieces = if runs.listed { costs.in_pieces_lists } else { costs.in_pieces };
        let host = if bytes >= in_pieces {
            // What goes from layout to layout, a conversion packs, copies and unpacks.
            host / 2
        } else if part >= costs.rendezvous && runs.bytes > 0 {
            // Which it does for each run by itself.
            let all = part / runs.bytes;
            host.max(all * if runs.are_short() { RENDEZVOUS_SHORT_RUN } else { RENDEZVOUS_RUN })
        } else if runs.are_short() {
            host.max(part / runs.bytes * costs.short_run)
        } else {
            host
        };
        // A packed message is copied once more on either side, or once in all.
        let copy = if bytes >= costs.rendezvous { copy / 2 } else { copy };
        let staging = copy + STAGING * part / bytes.max(part).max(1);
        (host, ours + staging)
    }

    /// Says of messages of `bytes` bytes whether our kernel is as slow as the host, and that slow: a quarter of a nanosecond a byte or more, unless that tells nothing of messages.
    /// Of messages of which both ranks must say the same, that they do not gain.
    pub(crate) fn loses(self, costs: &Costs, bytes: u64, runs: Runs) -> bool {
        if !costs.packing_tells {
            return false;
        }
        if let Some(gains) = self.gain_on_both_ranks(costs, bytes, runs) {
            return !gains;
        }
        let [host, ours, copy] = [self.host, self.ours, self.copy].map(u64::from);
        // Where packing is fast a host that takes long takes it elsewhere: the table knows.
        ours >= u64::from(self.bytes / 4) && (ours + copy) * 10 >= host * 9
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ddtc_hosts::profile;

    const MPICH: Costs = profile::MPICH.costs;
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
            assert!(Runs::from_word(runs.word()) == *runs && u32::try_from(runs.word()).is_ok());
        }
        let [unknown, short, _, long, _] = all.map(|[strided, _]| strided);
        assert!(
            unknown.are_like(long)
                && !short.are_like(long)
                && !short.are_like(Runs::new(31, false, 600))
                && short.are_like(Runs::new(7, false, 600))
        );
        assert!(!short.are_like(Runs::new(8, true, 600)));
        // 12 B in a line of their own, and 8 B; 8 B every 24.
        let [wrf, mg, near] = [(12, 600), (8, 1040), (8, 24)]
            .map(|(bytes, memory)| Runs::new(bytes, false, memory).gain_on_both_ranks(&MPICH, 1 << 20));
        assert_eq!((wrf, mg, near), (Some(true), Some(false), Some(true)));
        // 8 B in a line of their own, as long as all lines fit into the cache.
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
        // Short blocks by a slow loop; long ones that are as fast as a copy; small ones that staging eats.
        assert!(gains(&MPICH, 12288, 8000, 1200, 400));
        assert!(!gains(&MPICH, 1 << 20, 50_000, 49_000, 48_000));
        assert!(!gains(&INTEL, 480, 60, 40, 10));
        // What Open MPI copies once must be slower by far.
        assert!(gains(&INTEL, 65536, 8000, 5000, 1000) && !gains(&OPEN_MPI, 65536, 8000, 5000, 1000));
        assert!(gains(&OPEN_MPI, 2048, 8000, 5000, 1000) && !gains(&OPEN_MPI, 8192, 8000, 5000, 1000));
        // Of lists from 16 KiB up.
        let times = Times { bytes: 8192, host: 8000, ours: 5000, copy: 1000 };
        let list = |bytes| times.gains(&OPEN_MPI, bytes, Runs::new(16384, true, 0));
        assert!(list(8192) && !list(16384));
        // What MPICH moves run by run.
        let times = Times { bytes: 16320, host: 1200, ours: 1300, copy: 300 };
        assert!(times.gains(&MPICH, 16320, strided(40)) && !times.gains(&MPICH, 16320, strided(4080)));
        assert!(!times.gains(&INTEL, 16320, strided(40)));
        // In one copy between processes: NAS_MG_y and NAS_MG_z of DDTBench, of 256 KiB and 1 MiB (Zen 3).
        let far = Times { bytes: 262_144, host: 24_066, ours: 18_806, copy: 13_416 };
        let near = Times { bytes: 1 << 20, host: 62_000, ours: 57_000, copy: 54_000 };
        assert!(far.gains(&MPICH, 262_144, strided(2048)) && !far.gains(&INTEL, 262_144, strided(2048)));
        assert!(!near.gains(&MPICH, 1 << 20, strided(4096)));
        // What Intel moves run by run too, if they are short; of runs of no known length that says nothing.
        assert!(times.gains(&INTEL, 16320, strided(8)) && !times.gains(&INTEL, 16320, strided(0)));
        // Elements far from each other take any loop as long.
        let far = Times { bytes: 65536, host: 90_000, ours: 88_000, copy: 3000 };
        assert!(
            far.loses(&MPICH, 65536, strided(0))
                && far.loses(&OPEN_MPI, 65536, strided(8))
                && !far.loses(&INTEL, 65536, strided(8))
        );
    }

    #[test]
    fn ranks_agree_where_that_counts() {
        // Times of WRF_x of 174 KB as ranks and hours had them, and of NAS_MG_x of 128 KiB (Zen 3).
        let wrf = [
            (31_850, 37_810, 5570),
            (54_282, 46_928, 6583),
            (63_147, 48_760, 10_198),
            (123_290, 43_921, 13_525),
        ];
        for (host, ours, copy) in wrf {
            let times = Times { bytes: 173_712, host, ours, copy };
            assert!(times.gains(&MPICH, 131_072, strided(12)) && !times.loses(&MPICH, 131_072, strided(12)));
            assert!(u64::from(times.saves(&MPICH, 131_072, strided(12))) >= LATER);
            assert_eq!(times.stake(&MPICH, 131_072, strided(12)), 152_908);
        }
        for (host, ours, copy) in
            [(76_974, 69_300, 4469), (357_137, 146_534, 6322), (69_921, 54_232, 5381), (72_596, 51_195, 6993)]
        {
            let times = Times { bytes: 131_072, host, ours, copy };
            assert!(!times.gains(&MPICH, 131_072, strided(8)) && times.loses(&MPICH, 131_072, strided(8)));
            assert_eq!(times.stake(&MPICH, 131_072, strided(8)), times.saves(&MPICH, 131_072, strided(8)));
        }
        // Lists, in the cache or not (SPECFEM3D_cm of 178 KB).
        let lists = Runs::new(12, true, 600);
        for (host, ours, copy) in [(62_236, 47_388, 7624), (174_275, 86_672, 9728), (182_110, 140_771, 9047)]
        {
            let times = Times { bytes: 177_672, host, ours, copy };
            assert!(times.gains(&MPICH, 131_072, lists) && !times.loses(&MPICH, 131_072, lists));
        }
    }
}
