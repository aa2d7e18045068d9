//! Direct copies from layout to layout, compared with packing the whole message into a buffer and
//! unpacking it from there, and with packing and unpacking by pieces that stay in the cache.

use std::error::Error;
use std::fmt::Write as _;

use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine};
use ddtc::internal::exec::interp;
use ddtc::internal::methods::*;
use ddtc::internal::target::Level;

use crate::measure::{Effort, interleaved};

/// Size in bytes of the pieces in which a message is packed and unpacked for comparison. It is
/// chosen so that a piece and the memory that it comes from stay in the first-level cache.
const PIECE: usize = 16 << 10;

/// Returns the pairs of layouts between which bytes are copied. Each has a name, a source and a
/// target. Source and target are names of corpus entries or datatypes as text, with their counts.
fn pairs() -> Vec<(String, [(String, u64); 2])> {
    let named = |name: &str, from: &str, to: &str| {
        let side = |text: &str| {
            let (n, text) = text.split_once(" of ").unwrap_or(("1", text));
            (text.to_owned(), n.parse().unwrap_or(1))
        };
        (name.to_owned(), [side(from), side(to)])
    };
    let mut rows = vec![
        named("FFT2D_scatter.L to rows", "4 of FFT2D_scatter.L", "4 of FFT2D_gather.L"),
        named("FFT2D_scatter.L to itself", "4 of FFT2D_scatter.L", "4 of FFT2D_scatter.L"),
        named("LAMMPS_full.L to ghosts", "LAMMPS_full.L", "LAMMPS_full_rx.L"),
        named("LAMMPS_full.S to ghosts", "LAMMPS_full.S", "LAMMPS_full_rx.S"),
        named(
            "LAMMPS rows to a face",
            "indexed_block(3, @scale(@sample(4096, 8192, 5), 3), double)",
            "vector(64, 192, 256, double)",
        ),
        named("face_x.L to face_z.L", "face_x.L", "face_z.L"),
    ];
    for n in [1024_i64, 16384] {
        // The pair has `n` structs as its source and three arrays, one for each member, as its
        // target. In the packed stream of both, all ints come first, then all doubles, then all
        // floats.
        let members = |at: [i64; 3], step: [i64; 3]| {
            let strided =
                |k: i64, len: i64, t: &str| format!("hvector({n}, {len}, {}, {t})", step[k as usize]);
            let list = [strided(0, 1, "int"), strided(1, 1, "double"), strided(2, 3, "float")].join(", ");
            format!("struct([1, 1, 1], {at:?}, [{list}])")
        };
        let arrays = [0, 8 * n, 16 * n];
        rows.push((
            format!("{n} structs to arrays, by member"),
            [(members([0, 8, 16], [32; 3]), 1), (members(arrays, [4, 8, 12]), 1)],
        ));
        // The next pair also has `n` structs as its source and three arrays as its target. But in
        // the packed stream of both, all members of one struct come before those of the next one,
        // as when an array of structs is sent.
        let structs =
            format!("contiguous({n}, resized(0, 32, struct([1, 1, 3], [0, 8, 16], [int, double, float])))");
        let places: Vec<String> = (0..n)
            .flat_map(|i| [4 * i, arrays[1] + 8 * i, arrays[2] + 12 * i])
            .map(|p| p.to_string())
            .collect();
        let repeated = |words: &str| vec![words; n as usize].join(",");
        let soa = format!(
            "struct([{}], [{}], [{}])",
            repeated("1,1,3"),
            places.join(","),
            repeated("int,double,float")
        );
        rows.push((format!("{n} structs to arrays, struct by struct"), [(structs, 1), (soa, 1)]));
    }
    rows
}

/// Measures all pairs, prints a table and returns the record.
///
/// # Errors
/// Returns the errors of commits, or an error if the copied bytes differ from those that the
/// reference interpreter packs and unpacks.
pub(crate) fn run(level: Level, quick: bool) -> Result<String, Box<dyn Error>> {
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let engine = Engine::new(Config { level, both_directions: true, ..Config::default() });
    let mut csv =
        String::from("pair,payload_bytes,gb_per_s,pack_and_unpack_over_direct,pieces_over_direct\n");
    println!("\ndirect copy: GB/s; time of pack and unpack over it, whole and by pieces of 16 KiB");
    for (name, sides) in pairs() {
        let types = sides.each_ref().map(|(text, _)| ddtc::internal::corpus::asked(text).map(|(t, _)| t));
        let [Ok(a), Ok(b)] = &types else { return Err(format!("{name}: {types:?}").into()) };
        let counts = sides.each_ref().map(|(_, count)| *count);
        let (from, to) = (engine.commit(a)?, engine.commit(b)?);
        let direct = from.direct(&to)?;
        // Check the bytes first: the expected target is what the reference interpreter packs from
        // the source and unpacks into a copy of the target.
        let bytes = from.packed_size(counts[0])? as usize;
        let lengths = [span(a, counts[0]), span(b, counts[1]), bytes];
        let mut buffers = lengths.map(|len| vec![0u8; len + LINE]);
        let [source, target, stream] = buffers.each_mut().map(|buffer| aligned(buffer));
        source.iter_mut().zip(0_usize..).for_each(|(byte, i)| *byte = (i / 7) as u8);
        let mut want = target.to_vec();
        interp::pack(a, counts[0], source, 0, stream)?;
        interp::unpack(b, counts[1], stream, &mut want, 0)?;
        direct.copy(source, 0, counts[0], target, 0, counts[1])?;
        if *target != *want {
            return Err(format!("{name}: the copied bytes differ").into());
        }
        // Three ways to copy the bytes take turns: packing and unpacking the whole message, doing
        // so piece by piece, and the direct copy.
        let mut failed = None;
        let times = interleaved(3, effort, |v, times| {
            for _ in 0..times {
                let done = match v {
                    0 => from
                        .pack(source, 0, counts[0], stream)
                        .and_then(|_| to.unpack(stream, 0, counts[1], target)),
                    1 => (0..bytes).step_by(PIECE).try_fold(0, |_, at| {
                        let piece = &mut stream[..PIECE.min(bytes - at)];
                        from.pack_range(source, 0, counts[0], at as u64, piece)?;
                        to.unpack_range(piece, 0, counts[1], at as u64, target)
                    }),
                    _ => direct.copy(source, 0, counts[0], target, 0, counts[1]).map(|n| n as usize),
                };
                failed = done.err().or(failed.take());
            }
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        let (speed, whole, pieces) = (bytes as f64 / times[2], times[0] / times[2], times[1] / times[2]);
        println!("{name:40} {speed:>8.2} {whole:>8.2} {pieces:>8.2}  {}", direct.schedule());
        let _ = writeln!(csv, "{},{bytes},{speed:.3},{whole:.3},{pieces:.3}", name.replace(',', ""));
    }
    Ok(csv)
}

/// Returns the number of bytes of memory for `count` instances, none of which begins before
/// displacement 0.
fn span(t: &Datatype, count: u64) -> usize {
    (t.true_ub() + (count as i64 - 1) * t.extent()) as usize
}

/// Size of a cache line in bytes. All buffers begin at a cache line, since a transpose whose
/// buffers begin elsewhere takes twice the time.
const LINE: usize = 64;

/// Returns the part of `buffer` that begins at its first cache line.
fn aligned(buffer: &mut [u8]) -> &mut [u8] {
    let skipped = buffer.as_ptr().align_offset(LINE);
    let end = buffer.len() - LINE + skipped;
    &mut buffer[skipped..end]
}
