//! Lists where the packed bytes of a datatype's instances lie in memory, as input for drawing them.
//!
//! The list consists of [`Piece`]s, in packed order. If the instances have at most [`MAX_LISTED`]
//! contiguous blocks, each block is a piece. If they have more, the packed stream is divided into
//! [`SAMPLES`] ranges, and each range is a piece. If the bytes of such a range are not contiguous
//! in memory, one byte, found by a query of [`Segments`], represents the whole range. So time and
//! memory are bounded for any type, and the lengths of the pieces still add up to the number of
//! packed bytes.

use ddtc::internal::datatype::{Datatype, TypeMap};
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::methods::*;
use ddtc::internal::segments::{Segment, Segments};

/// Maximum number of contiguous blocks that are listed one by one, each as a [`Piece`]. The packed
/// stream of a type with more blocks is divided into [`SAMPLES`] ranges instead.
const MAX_LISTED: u64 = 1 << 20;
/// Number of ranges into which the packed stream is divided if there are more than [`MAX_LISTED`]
/// contiguous blocks. Each range is one [`Piece`].
const SAMPLES: u64 = 1 << 17;
/// Maximum number of entries of the type map that are read to name the basic types of a block, for
/// the text that appears when the pointer rests on the block.
const MAX_ENTRIES: usize = 64;
/// Maximum number of arguments of a datatype whose type map is searched for the basic types of a
/// single block. The arguments are the numbers and the child types of all its constructors.
/// Skipping to the block in the type map takes time linear in their number.
const MAX_ARGUMENTS: u64 = 4096;

/// A part of the packed stream and its place in memory. Displacements, lengths and positions are in
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Displacement of the piece's first byte if `exact` is true. Otherwise the displacement of one
    /// byte of the piece, which represents the whole piece in the picture.
    pub(crate) at: i128,
    /// Number of packed bytes in the piece.
    pub(crate) len: i128,
    /// Position of the piece's first byte in the packed stream.
    pub(crate) packed: i128,
    /// Number of contiguous blocks of memory that end in the piece. A block that lies in several
    /// pieces is counted only in its last one. The number is 1 unless the packed stream was divided
    /// into ranges.
    pub(crate) blocks: u64,
    /// Whether the bytes of the piece are contiguous in memory, from displacement `at` on.
    pub(crate) exact: bool,
}

impl Piece {
    /// Returns the displacement after the last byte of the piece. If the bytes of the piece are not
    /// contiguous in memory, the piece counts as the single byte at displacement `at`, and the
    /// result is `at + 1`.
    pub(crate) fn end(&self) -> i128 {
        self.at + if self.exact { self.len } else { 1 }
    }
}

/// Places in memory of the packed bytes of `count` instances of a datatype.
pub(crate) struct Map {
    pub(crate) datatype: Datatype,
    pub(crate) count: u64,
    /// Number of packed bytes of all instances.
    pub(crate) bytes: i128,
    /// Number of contiguous blocks of all instances.
    pub(crate) blocks: u64,
    /// Parts of the packed stream with their places in memory, in packed order. Their lengths add
    /// up to `bytes`.
    pub(crate) pieces: Vec<Piece>,
    /// Whether each piece is a contiguous block. Otherwise the packed stream was divided into
    /// ranges, and each piece is a range.
    pub(crate) listed: bool,
    /// Ranges of memory that several entries of the type map share, in ascending order. A range is
    /// a pair: its first displacement, and the displacement after its last byte. Empty if `listed`
    /// is false.
    pub(crate) shared: Vec<(i128, i128)>,
    /// Range of memory that the picture must show. It extends from the lowest to the highest of the
    /// bounds and true bounds of all instances. The pair is its first displacement, and the
    /// displacement after its last byte.
    pub(crate) range: (i128, i128),
    /// Names and sizes of the datatype's basic types.
    basics: Vec<(&'static str, i128)>,
}

impl Map {
    /// Lists the memory of `count` instances of `t`.
    ///
    /// # Errors
    /// If the number of packed bytes of `count` instances does not fit in 63 bits, or if a
    /// displacement does not fit in 64 bits.
    pub(crate) fn new(t: &Datatype, count: u64) -> ddtc::Result<Map> {
        let committed = Engine::new(Config { mode: Mode::Interpret, ..Config::default() }).commit(t)?;
        let segments = committed.segments(count)?;
        let listed = segments.len() <= MAX_LISTED;
        let pieces = if listed { list(&segments)? } else { sample(&segments)? };
        let shared = if listed { shared(&pieces) } else { Vec::new() };
        let (mut low, mut high) = (i128::from(t.lb().min(t.ub())), i128::from(t.lb().max(t.ub())));
        if t.size() > 0 {
            (low, high) = (low.min(t.true_lb().into()), high.max(t.true_ub().into()));
        }
        let last = i128::from(t.extent()) * i128::from(count.saturating_sub(1));
        let range = (low + last.min(0), high + last.max(0));
        let (bytes, blocks) = (segments.bytes().into(), segments.len());
        let basics = basics(t);
        Ok(Map { datatype: t.clone(), count, bytes, blocks, pieces, listed, shared, range, basics })
    }

    /// Describes the basic types of packed bytes `[packed, packed + len)`, such as `double, 3
    /// float`. If finding them would take too long, names basic types of the whole datatype
    /// instead.
    pub(crate) fn types(&self, packed: i128, len: i128) -> String {
        let all = &self.basics;
        let size = all.first().map_or(1, |(_, size)| *size);
        if let [(name, _)] = &all[..] {
            return times((len / size).max(1), name);
        }
        if self.datatype.arguments() > MAX_ARGUMENTS {
            let names: Vec<&str> = all.iter().take(6).map(|(name, _)| *name).collect();
            return format!("some of {}", names.join(", "));
        }
        let mut map = TypeMap::instances(&self.datatype, self.count);
        let mut left = len + map.skip_bytes(packed as u64) as i128;
        let mut runs: Vec<(&str, i128)> = Vec::new();
        for (basic, _) in map.by_ref().take(MAX_ENTRIES) {
            if left <= 0 {
                break;
            }
            left -= i128::from(basic.size());
            match runs.last_mut() {
                Some((name, n)) if *name == basic.text_name() => *n += 1,
                _ => runs.push((basic.text_name(), 1)),
            }
        }
        let more = if left > 0 || runs.len() > 6 { ", ..." } else { "" };
        let runs: Vec<String> = runs.iter().take(6).map(|(name, n)| times(*n, name)).collect();
        format!("{}{more}", runs.join(", "))
    }

    /// Returns the size in bytes of the smallest basic type, or 1 if there is none. When the length
    /// of a row is chosen, columns are counted in units of this size. In SVG pictures, it is also
    /// the unit of the distance between the marks of the ruler.
    pub(crate) fn element(&self) -> i128 {
        self.basics.iter().map(|(_, size)| *size).filter(|size| *size > 0).min().unwrap_or(1)
    }
}

fn times(n: i128, name: &str) -> String {
    if n == 1 { name.to_owned() } else { format!("{n} {name}") }
}

/// Returns the names and sizes of the basic types in the first 20 000 nodes of `t`, each once. A
/// pair type is replaced by the basic types of its two parts.
fn basics(t: &Datatype) -> Vec<(&'static str, i128)> {
    let mut all = Vec::new();
    for part in t.nodes().take(20_000).filter_map(Datatype::basic).flat_map(|named| named.parts()) {
        let one = (part.0.text_name(), i128::from(part.0.size()));
        if one.1 > 0 && !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

fn list(segments: &Segments<'_>) -> ddtc::Result<Vec<Piece>> {
    let mut packed = 0;
    let piece = |segment: ddtc::Result<Segment>| {
        let segment = segment?;
        let len = i128::from(segment.len);
        packed += len;
        Ok(Piece { at: segment.at.into(), len, packed: packed - len, blocks: 1, exact: true })
    };
    segments.cursor(0).map(piece).collect()
}

fn sample(segments: &Segments<'_>) -> ddtc::Result<Vec<Piece>> {
    let bytes = u128::from(segments.bytes());
    let cut = |k: u64| (bytes * u128::from(k) / u128::from(SAMPLES)) as u64;
    let (mut pieces, mut seen) = (Vec::with_capacity(SAMPLES as usize), 0);
    for k in 0..SAMPLES {
        let (from, to) = (cut(k), cut(k + 1));
        // Choose a byte at a pseudorandom place in the range. This byte represents the whole range
        // if the bytes of the range are not contiguous in memory. If it were, for example, the
        // first byte of every range, the chosen bytes would be at equal distances in the packed
        // stream. A stride of the type could coincide with this distance, and the picture would
        // show only some of the blocks.
        let place = from + mix(k) % (to - from);
        let (first, within) = segments.find(from)?;
        let (last, _) = segments.find(to)?;
        let exact = segments.start((first + 1).min(segments.len()))? >= to;
        let (at, within) = if exact { (from, within) } else { (place, segments.find(place)?.1) };
        let mut one = [Segment::default()];
        segments.fill(segments.find(at)?.0, &mut one)?;
        let len = i128::from(to - from);
        let at = i128::from(one[0].at) + i128::from(within);
        pieces.push(Piece { at, len, packed: from.into(), blocks: last - seen, exact });
        seen = last;
    }
    Ok(pieces)
}

/// Returns a pseudorandom number that depends only on `k`, so that equal types give equal pictures.
/// The function is the finalizer of splitmix64.
fn mix(k: u64) -> u64 {
    let k = (k ^ k >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let k = (k ^ k >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    k ^ k >> 31
}

/// Returns the maximal ranges that are covered by more than one of `pieces`, in ascending order.
fn shared(pieces: &[Piece]) -> Vec<(i128, i128)> {
    let mut ranges: Vec<(i128, i128)> = pieces.iter().map(|p| (p.at, p.end())).collect();
    if !ranges.is_sorted() {
        ranges.sort_unstable();
    }
    let mut all: Vec<(i128, i128)> = Vec::new();
    let mut reached = i128::MIN;
    for (from, to) in ranges {
        let end = to.min(reached);
        if from < end {
            match all.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(end),
                _ => all.push((from, end)),
            }
        }
        reached = reached.max(to);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str, count: u64) -> Map {
        Map::new(&ddtc::internal::corpus::datatype(text).unwrap(), count).unwrap()
    }

    #[test]
    fn pieces_ranges_and_types_by_hand() {
        let m = map("resized(0, 32, struct([1,1,3], [0,8,16], [int,double,float]))", 2);
        let pieces: Vec<_> = m.pieces.iter().map(|p| (p.at, p.len, p.packed)).collect();
        assert_eq!(pieces, [(0, 4, 0), (8, 20, 4), (32, 4, 24), (40, 20, 28)]);
        assert_eq!((m.bytes, m.blocks, m.range, m.element()), (48, 4, (0, 64), 4));
        assert_eq!(m.types(0, 4), "int");
        assert_eq!(m.types(4, 20), "double, 3 float");
        assert_eq!(m.types(28, 20), "double, 3 float");
        assert_eq!(m.types(6, 4), "double");
        assert_eq!(map("vector(3, 2, 4, int)", 1).types(8, 8), "2 int");
        let m = map("resized(-8, 4, hindexed([1,1], [0,-100], int))", 3);
        assert_eq!(m.range, (-100, 12));
    }

    #[test]
    fn shared_bytes_by_hand() {
        assert_eq!(map("hvector(3, 1, 2, int)", 1).shared, [(2, 6)]);
        assert_eq!(map("hindexed([2,1,1], [0,4,20], int)", 1).shared, [(4, 8)]);
        assert_eq!(map("hindexed([1,4,1], [0,0,12], int)", 1).shared, [(0, 4), (12, 16)]);
        assert!(map("vector(100, 3, 5, int)", 7).shared.is_empty());
    }

    #[test]
    fn samples_hold_all_bytes_and_lie_in_the_type() {
        // 2^31 blocks of one byte each.
        let m = map("vector(2147483648, 1, 2, byte)", 1);
        assert!(!m.listed && m.pieces.len() == SAMPLES as usize);
        assert_eq!(m.pieces.iter().map(|p| p.len).sum::<i128>(), m.bytes);
        assert!(m.pieces.iter().map(|p| p.blocks).sum::<u64>() <= m.blocks);
        for (p, next) in m.pieces.iter().zip(&m.pieces[1..]) {
            assert!(p.at % 2 == 0 && p.at < next.at && p.packed + p.len == next.packed);
            assert!(p.at / 2 >= p.packed && p.at / 2 < next.packed);
        }
        // One long block, and so many short blocks that the packed stream is divided into ranges.
        // The ranges inside of the long block are contiguous in memory, which `exact` shows.
        let m = map(
            "hindexed([1,1], [0,100000000], struct([1,1],[0,8000000],[vector(2000000, 1, 2, short),contiguous(8000000, byte)]))",
            1,
        );
        let exact: i128 = m.pieces.iter().filter(|p| p.exact).map(|p| p.len).sum();
        assert!(!m.listed && exact > 15_990_000 && exact <= 16_000_000, "{exact}");
        assert_eq!(m.pieces.iter().map(|p| p.len).sum::<i128>(), 24_000_000);
    }
}
