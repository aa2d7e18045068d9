//! Packing in pieces: how close the speed of moving ranges of the packed stream, in order or
//! shuffled, comes to that of moving the whole message.

use std::error::Error;
use std::fmt::Write as _;

use ddtc::internal::committed::Committed;
use ddtc::internal::corpus::CorpusEntry;
use ddtc::internal::engine::{Config, Engine};
use ddtc::internal::fuzzing::Choices;
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc::internal::target::Level;

use crate::bound::lines_by_pieces;
use crate::measure::{Effort, geometric_mean, interleaved};
use crate::native::Subject;

/// Sizes of a piece in bytes.
const PIECES: [usize; 2] = [64 << 10, 4 << 10];

/// Buffers for all instances of one datatype, with the committed datatype that moves the bytes
/// between them.
struct Buffers {
    committed: Committed,
    count: u64,
    /// Index in `user` of displacement 0.
    origin: usize,
    user: Vec<u8>,
    packed: Vec<u8>,
}

impl Buffers {
    fn whole(&mut self, direction: Direction) -> ddtc::Result<()> {
        let Buffers { committed, count, origin, user, packed } = self;
        match direction {
            Direction::Pack => committed.pack(user, *origin, *count, packed).map(drop),
            Direction::Unpack => committed.unpack(packed, *origin, *count, user).map(drop),
        }
    }

    fn pieces(&mut self, direction: Direction, piece: usize, starts: &[usize]) -> ddtc::Result<()> {
        let Buffers { committed, count, origin, user, packed } = self;
        for &start in starts {
            let end = (start + piece).min(packed.len());
            let (stream, offset) = (&mut packed[start..end], start as u64);
            match direction {
                Direction::Pack => committed.pack_range(user, *origin, *count, offset, stream)?,
                Direction::Unpack => committed.unpack_range(stream, *origin, *count, offset, user)?,
            };
        }
        Ok(())
    }
}

/// Returns the offsets at which the pieces of a stream of `len` bytes start if each has `piece`
/// bytes, in order or shuffled.
fn starts(len: usize, piece: usize, shuffled: bool) -> Vec<usize> {
    let mut starts: Vec<usize> = (0..len).step_by(piece).collect();
    if shuffled {
        let mut c = Choices::from_seed(len as u64);
        for i in (1..starts.len()).rev() {
            starts.swap(i, c.below(i as u64 + 1) as usize);
        }
    }
    starts
}

/// A way to move a message in pieces: the size of a piece in bytes, and whether the pieces are
/// shuffled instead of in the order of the stream.
type Way = (usize, bool);

/// Moves a message in pieces several times and compares the bytes each time. Some code is compiled
/// only after it was needed several times, and the number of repetitions is large enough for that.
fn verify(
    b: &mut Buffers,
    direction: Direction,
    (piece, starts): (usize, &[usize]),
    expected: &[u8],
) -> Result<(), Box<dyn Error>> {
    for _ in 0..(1 << 20 >> expected.len().ilog2().min(20)) + 2 {
        match direction {
            Direction::Pack => b.packed.fill(0),
            Direction::Unpack => b.user.fill(0),
        }
        b.pieces(direction, piece, starts)?;
        if direction == Direction::Unpack {
            b.packed.fill(0);
            b.whole(Direction::Pack)?;
        }
        if b.packed != expected {
            return Err(format!("{direction} by pieces of {piece}: bytes differ").into());
        }
    }
    Ok(())
}

/// Returns the nanoseconds of moving the whole message at once, followed by those of each way to
/// move it in pieces.
fn measure(
    b: &mut Buffers,
    direction: Direction,
    (ways, orders): (&[Way], &[Vec<usize>]),
    effort: Effort,
) -> ddtc::Result<Vec<f64>> {
    let mut failed = None;
    let times = interleaved(ways.len() + 1, effort, |v, times| {
        for _ in 0..times {
            let done = match v.checked_sub(1) {
                None => b.whole(direction),
                Some(way) => b.pieces(direction, ways[way].0, &orders[way]),
            };
            failed = done.err().or(failed.take());
        }
    });
    failed.map_or(Ok(times), Err)
}

/// Returns buffers for all instances of `entry`, which have `payload` packed bytes. The bytes that
/// are moved lie between the offsets `low` and `high` of the user side.
fn buffers(
    engine: &Engine,
    entry: &CorpusEntry,
    (low, high): (i64, i64),
    payload: usize,
) -> ddtc::Result<Buffers> {
    let low = low.min(0);
    Ok(Buffers {
        committed: engine.commit(&entry.datatype)?,
        count: entry.count,
        origin: -low as usize,
        user: (0..(high.max(0) - low) as usize).map(|i| (i / 61 * 7) as u8).collect(),
        packed: vec![0; payload],
    })
}

fn print_header(ways: &[Way]) {
    println!("bandwidth of pieces over that of the whole message (nanoseconds that a piece adds)");
    println!(
        "of a transpose [the part of it that the lines which the pieces touch leave, if none stays cached]"
    );
    print!("{:22} {:>6} {:>9}", "layout", "", "payload");
    ways.iter().for_each(|(p, s)| {
        print!(" {:>16}", format!("{} KiB{}", p >> 10, if *s { ", shuffled" } else { "" }))
    });
    println!();
}

/// Measures the entries whose payload has at least two pieces of the smaller size in [`PIECES`],
/// prints a table, and returns the record: the bandwidth of pieces relative to that of the whole
/// message.
///
/// # Errors
/// Returns the errors of commits, or an error if bytes differ from those of the whole message.
pub(crate) fn run<'e>(
    entries: impl Iterator<Item = &'e CorpusEntry>,
    level: Level,
    quick: bool,
) -> Result<String, Box<dyn Error>> {
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let engine = Engine::new(Config { level, both_directions: true, ..Config::default() });
    let ways: Vec<Way> = PIECES.iter().flat_map(|&p| [(p, false), (p, true)]).collect();
    let mut csv = String::from(
        "layout,direction,payload_bytes,piece_bytes,order,of_whole,added_ns_per_piece,of_lines\n",
    );
    print_header(&ways);
    let mut all: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
    let mut bounded = all.clone();
    for entry in entries {
        let Ok((span, payload)) = Subject::fits(entry) else { continue };
        if payload < 2 * PIECES[1] {
            continue;
        }
        let mut b = buffers(&engine, entry, span, payload)?;
        b.whole(Direction::Pack)?;
        let (expected, before) = (b.packed.clone(), b.user.clone());
        // `travels` returns the number of bytes that are transferred if no cache line stays in the
        // cache from one piece to the next: the lines of the user side that each piece touches, and
        // the payload on the packed side.
        let travels = |piece| Ok::<_, ddtc::Error>((lines_by_pieces(entry, piece)? + payload as u64) as f64);
        let whole = travels(payload)?;
        let left: Vec<f64> =
            ways.iter().map(|&(piece, _)| Ok(whole / travels(piece)?)).collect::<ddtc::Result<_>>()?;
        // For each direction, all ways to move the message in pieces are checked first. Then they
        // are measured in turn with moving the whole message.
        for direction in Direction::BOTH {
            let transposed = b.committed.schedule(direction).contains("transpose");
            let orders: Vec<Vec<usize>> = ways.iter().map(|&(p, s)| starts(payload, p, s)).collect();
            for (&(piece, _), starts) in ways.iter().zip(&orders) {
                verify(&mut b, direction, (piece, starts), &expected)
                    .map_err(|error| format!("{}: {error}", entry.name))?;
            }
            b.user.clone_from(&before);
            let times = measure(&mut b, direction, (&ways, &orders), effort)?;
            print!("{:22} {:>6} {payload:>9}", entry.name, direction.name());
            // A piece of a transpose transfers whole cache lines of which it uses only a part. So
            // for transposes a number in brackets shows the ratio that is expected if no line stays
            // in the cache. Only payloads of 1 MiB and more count in the closing means, for which
            // the ratios of transposes are divided by the number in brackets.
            for (way, &(piece, shuffled)) in ways.iter().enumerate() {
                let (ratio, n) = (times[0] / times[way + 1], orders[way].len());
                let added = (times[way + 1] - times[0]) / n as f64;
                let bound = if transposed { format!(" [{:.2}]", left[way]) } else { String::new() };
                print!(" {:>16}", format!("{ratio:.2} ({added:.0}){bound}"));
                if payload >= 1 << 20 {
                    let (means, value) =
                        if transposed { (&mut bounded, ratio / left[way]) } else { (&mut all, ratio) };
                    means[way].push(value);
                }
                let order = if shuffled { "shuffled" } else { "in order" };
                let _ = writeln!(
                    csv,
                    "{},{direction},{payload},{piece},{order},{ratio:.3},{added:.1},{:.3}",
                    entry.name, left[way]
                );
            }
            println!();
        }
    }
    for (name, means) in [("mean, 1 MiB, others", all), ("mean, transp./lines", bounded)] {
        print!("{name:22} {:>6} {:>9}", "", "");
        means.into_iter().for_each(|ratios| print!(" {:>16.2}", geometric_mean(ratios)));
        println!();
    }
    Ok(csv)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_comes_once() {
        let mut some = starts(100, 7, true);
        assert_ne!(some, starts(100, 7, false));
        some.sort_unstable();
        assert_eq!(some, starts(100, 7, false));
    }
}
