//! Bounds: a small model of how fast a layout can be moved on this machine. It is a yardstick,
//! printed next to the measured times.
//!
//! The model has three limits, and the one that takes the most time is the bound. Their rates are
//! measured at the start of the benchmark by plain copies and reads, without datatypes.
//! * **Memory**: whole cache lines are transferred. On the user side these are all lines that are
//!   touched, and on the packed side the bytes of the payload. Bytes that are written are also read
//!   before and written back afterwards. The rate is that of a memcpy with the same footprint.
//! * **Accesses**: a load or store moves at most 32 bytes of the user side. The number of accesses
//!   is the smaller of two numbers: that of the pieces if each block is cut into pieces of 32
//!   bytes, and that of the aligned 32-byte pieces of memory that are touched. The rate is that of
//!   a memcpy within the first-level cache.
//! * **Addresses**: if more pages are touched than the processor's TLB holds, each page costs a
//!   look-up of its address. The rate is the additional time of reading one byte from every page,
//!   compared with reading as many bytes from few pages.
//!
//! The model ignores the order of accesses. A layout that changes pages or lines more often than
//! necessary is slower than its bound for that reason. The model also leaves out the cost of a
//! call, so it says little about payloads of a few lines. If cache misses overlap better than those
//! of a copy of the same footprint, code can be faster than the bound.

use std::hint::black_box;

use ddtc::internal::corpus::CorpusEntry;
use ddtc::internal::exec::interp;
use ddtc::internal::kind::Direction;

use crate::measure::{Effort, interleaved};

/// Size of a cache line in bytes.
const LINE: i64 = 64;
/// Maximum number of bytes that the model counts as one load or store.
const ACCESS: i64 = 32;
/// Size of a page in bytes.
const PAGE: i64 = 4096;
/// Number of pages whose addresses the processor's TLB holds (second level: 1536 to 3072 entries on
/// current x86-64 and aarch64 server cores).
const PAGES_KNOWN: u64 = 1536;

/// The memory that a layout touches on the user side, over all instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footprint {
    /// Number of bytes moved.
    payload: u64,
    /// Number of different cache lines.
    lines: u64,
    /// Number of loads or stores of at most [`ACCESS`] bytes each that the model counts for the
    /// user side.
    accesses: u64,
    /// Number of different pages.
    pages: u64,
}

/// A set of small integers.
struct Bits(Vec<u64>);

impl Bits {
    fn new(len: i64) -> Bits {
        Bits(vec![0; (len / 64 + 1) as usize])
    }

    fn insert(&mut self, from: i64, to: i64) {
        (from..=to).for_each(|i| self.0[(i / 64) as usize] |= 1 << (i % 64));
    }

    fn len(&self) -> u64 {
        self.0.iter().map(|w| u64::from(w.count_ones())).sum()
    }
}

impl Footprint {
    /// Returns the footprint of `entry` in a buffer that starts at a page boundary. `low` and
    /// `high` are the span of the entry, from [`CorpusEntry::span`].
    ///
    /// # Errors
    /// Class `ValueTooLarge` if an instance has displacements that do not fit in 64 bits.
    pub(crate) fn from_entry(entry: &CorpusEntry, (low, high): (i64, i64)) -> ddtc::Result<Footprint> {
        let span = high - low;
        let mut lines = Bits::new(span / LINE + 1);
        let mut granules = Bits::new(span / ACCESS + 1);
        let mut pages = Bits::new(span / PAGE + 1);
        let mut pieces = 0;
        let mut block = |from: i64, to: i64| {
            if to <= from {
                return;
            }
            pieces += (to - from + ACCESS - 1) / ACCESS;
            lines.insert(from / LINE, (to - 1) / LINE);
            granules.insert(from / ACCESS, (to - 1) / ACCESS);
            pages.insert(from / PAGE, (to - 1) / PAGE);
        };
        // Entries of the type map that follow each other directly in memory are joined to one
        // block.
        let (mut from, mut to) = (0, 0);
        interp::for_each(&entry.datatype, entry.count, &mut |at, len, _| {
            let at = at - low;
            if at != to {
                block(from, to);
                from = at;
            }
            to = at + len as i64;
        })?;
        block(from, to);
        Ok(Footprint {
            payload: entry.payload().unwrap_or(0),
            lines: lines.len(),
            accesses: granules.len().min(pieces as u64),
            pages: pages.len(),
        })
    }
}

/// Returns the number of bytes that are transferred on the user side if the stream of `entry` is
/// moved in pieces of `piece` bytes. Nothing is assumed to stay in the cache from one piece to the
/// next, so a cache line counts once for each piece that touches it. An element belongs to the
/// piece in which its first byte lies.
///
/// # Errors
/// Class `ValueTooLarge` if an instance has displacements that do not fit in 64 bits.
pub(crate) fn lines_by_pieces(entry: &CorpusEntry, piece: usize) -> ddtc::Result<u64> {
    let (mut lines, mut touched, mut at) = (0, Vec::new(), 0);
    let mut close = |touched: &mut Vec<i64>| {
        touched.sort_unstable();
        touched.dedup();
        lines += touched.len();
        touched.clear();
    };
    interp::for_each(&entry.datatype, entry.count, &mut |from, len, _| {
        touched.extend(from.div_euclid(LINE)..=(from + len as i64 - 1).div_euclid(LINE));
        let piece_of = |at: usize| at / piece;
        if piece_of(at) != piece_of(at + len) {
            close(&mut touched);
        } else if touched.len() > 1 << 20 {
            // Neighbouring elements are mostly on the same cache line, so removing duplicates keeps
            // the list short.
            touched.sort_unstable();
            touched.dedup();
        }
        at += len;
    })?;
    close(&mut touched);
    Ok(lines as u64 * LINE as u64)
}

/// The rates of this machine.
#[derive(Clone, Debug)]
pub(crate) struct Roof {
    /// One pair for each memcpy that was measured, in ascending order of size: the number of bytes
    /// of its source and target together, and its nanoseconds for each byte that was transferred.
    memory: Vec<(f64, f64)>,
    /// Nanoseconds of one load and one store of [`ACCESS`] bytes that the first-level cache holds.
    access: f64,
    /// Nanoseconds of one look-up of a page that the TLB does not hold.
    page: f64,
}

/// Returns the number of bytes transferred if `read` bytes are copied to `written` bytes elsewhere:
/// the destination is read before it is written, and written back.
fn traffic(read: f64, written: f64) -> f64 {
    read + 2.0 * written
}

impl Roof {
    /// Measures how fast this machine transfers cache lines, accesses its first-level cache and
    /// looks up pages. `largest` is the largest footprint in bytes for which a bound will be asked.
    pub(crate) fn measure(effort: Effort, largest: u64) -> Roof {
        let top = largest.clamp(1 << 16, 512 << 20).next_power_of_two() as usize / 2;
        let (source, mut target) = (vec![1u8; top], vec![2u8; top]);
        let sizes: Vec<usize> =
            std::iter::successors(Some(4096), |n| Some(n * 2)).take_while(|n| *n <= top).collect();
        let times = interleaved(sizes.len(), effort, |i, times| {
            for _ in 0..times {
                target[..sizes[i]].copy_from_slice(black_box(&source[..sizes[i]]));
                black_box(&mut target);
            }
        });
        let per_byte = |(&n, &t): (&usize, &f64)| (2.0 * n as f64, t / traffic(n as f64, n as f64));
        let memory: Vec<(f64, f64)> = sizes.iter().zip(&times).map(per_byte).collect();
        // The fastest of the copies that stay in the first-level cache gives the time of an access:
        // one load and one store for each piece.
        let small = sizes.iter().zip(&times).take_while(|(n, _)| **n <= 16 << 10);
        let access = small.map(|(&n, t)| t / (n as f64 / ACCESS as f64)).fold(f64::INFINITY, f64::min);
        Roof { memory, access, page: page(&source, effort) }
    }

    /// Returns the nanoseconds per transferred byte for a footprint of `footprint` bytes: the rate
    /// of the largest measured copy whose footprint is not larger, or of the smallest copy if there
    /// is none.
    fn per_byte(&self, footprint: f64) -> f64 {
        let fitting = self.memory.iter().rev().find(|(f, _)| *f <= footprint);
        fitting.or(self.memory.first()).map_or(0.0, |m| m.1)
    }

    /// Returns the minimum number of nanoseconds that the model predicts for moving a layout with
    /// this footprint in `direction`.
    pub(crate) fn bound(&self, footprint: &Footprint, direction: Direction) -> f64 {
        let user = (footprint.lines * LINE as u64) as f64;
        let packed = footprint.payload as f64;
        let moved = match direction {
            Direction::Pack => traffic(user, packed),
            Direction::Unpack => traffic(packed, user),
        };
        let memory = moved * self.per_byte(user + packed);
        let accesses = footprint.accesses as f64 * self.access;
        let unknown = if footprint.pages > PAGES_KNOWN { footprint.pages } else { 0 };
        memory.max(accesses).max(unknown as f64 * self.page)
    }
}

/// Returns the nanoseconds of one look-up of a page that the TLB does not hold. Single bytes are
/// read at a distance of one page and one cache line, and for comparison as many bytes that lie in
/// few pages. The result is the difference of these times for each byte. Returns 0 if `memory` has
/// room for fewer than `4 * PAGES_KNOWN` such bytes, which are too few to measure it.
fn page(memory: &[u8], effort: Effort) -> f64 {
    // One line of each page, at a different offset within each page, so that the lines do not all
    // fall into the same set of a cache.
    let step = (PAGE + LINE) as usize;
    let pages = memory.len() / step;
    if (pages as u64) < 4 * PAGES_KNOWN {
        return 0.0;
    }
    let near = memory.len().min(pages * LINE as usize);
    let times = interleaved(2, effort, |v, times| {
        for _ in 0..times {
            let (bytes, step) = if v == 0 { (memory, step) } else { (&memory[..near], LINE as usize) };
            black_box(bytes.iter().step_by(step).fold(0u8, |sum, b| sum.wrapping_add(*b)));
        }
    });
    ((times[0] - times[1]) / pages as f64).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ddtc::internal::corpus::{Size, datatype};

    fn footprint(text: &str, count: u64) -> Footprint {
        let datatype = datatype(text).unwrap();
        let text = text.to_owned();
        let (name, comment) = (String::new(), String::new());
        let entry = CorpusEntry {
            name,
            size: Size::Other,
            text,
            datatype,
            count,
            comment,
            bounds: None,
            expected: None,
        };
        let span = entry.span().unwrap();
        Footprint::from_entry(&entry, span).unwrap()
    }

    #[test]
    fn footprints_by_hand() {
        // Eight blocks of 8 bytes at a distance of 16 bytes: two lines, four aligned pieces of 32
        // bytes, one page.
        let f = footprint("vector(8, 1, 2, double)", 1);
        assert_eq!(f, Footprint { payload: 64, lines: 2, accesses: 4, pages: 1 });
        // Blocks of 100 bytes on different pages need two lines and four accesses each.
        let f = footprint("hvector(3, 100, 8192, char)", 1);
        assert_eq!(f, Footprint { payload: 300, lines: 6, accesses: 12, pages: 3 });
        // Elements that follow each other directly make one block, even across instances.
        let f = footprint("contiguous(16, double)", 64);
        assert_eq!(f, Footprint { payload: 8192, lines: 128, accesses: 256, pages: 2 });
    }

    #[test]
    fn lines_of_pieces_by_hand() {
        let entry = |text: &str| CorpusEntry {
            name: String::new(),
            size: Size::Other,
            text: text.to_owned(),
            datatype: datatype(text).unwrap(),
            count: 1,
            comment: String::new(),
            bounds: None,
            expected: None,
        };
        // The columns of an 8 x 8 matrix, one after the other. Each column touches eight lines. If
        // every column is a piece of its own, each line is transferred eight times, and if all
        // columns are in one piece, once.
        let columns = entry("hvector(8, 1, 8, vector(8, 1, 8, double))");
        assert_eq!(lines_by_pieces(&columns, 64), Ok(8 * 8 * 64));
        assert_eq!(lines_by_pieces(&columns, 512), Ok(8 * 64));
        assert_eq!(lines_by_pieces(&entry("contiguous(64, double)"), 128), Ok(512));
    }

    #[test]
    fn the_slowest_limit_counts() {
        let roof = Roof { memory: vec![(1024.0, 0.5), (65536.0, 1.0)], access: 100.0, page: 1e6 };
        let mut f = Footprint { payload: 64, lines: 2, accesses: 4, pages: 1 };
        assert_eq!(roof.bound(&f, Direction::Pack), 400.0);
        f.accesses = 0;
        assert_eq!(roof.bound(&f, Direction::Pack), (128.0 + 2.0 * 64.0) * 0.5);
        assert_eq!(roof.bound(&f, Direction::Unpack), (64.0 + 2.0 * 128.0) * 0.5);
        f.pages = PAGES_KNOWN + 1;
        assert_eq!(roof.bound(&f, Direction::Pack), (PAGES_KNOWN + 1) as f64 * 1e6);
        // A footprint that is larger than all measured copies gets the rate of the largest of them.
        assert_eq!(roof.per_byte(1e9), 1.0);
    }

    #[test]
    fn rates_are_measured() {
        let effort = Effort { batch: std::time::Duration::from_micros(1), rounds: 1, ..Effort::QUICK };
        let roof = Roof::measure(effort, 1 << 16);
        assert_eq!(roof.memory.len(), 4);
        assert!(roof.memory.iter().all(|m| m.1 > 0.0) && roof.access.is_finite());
    }
}
