//! `ddtc explain --gpu`: shows how a datatype would be packed and unpacked in the memory of a GPU,
//! and how fast that can be at best. Everything is computed, so no GPU is needed.

use std::error::Error;
use std::fmt::Write as _;

use ddtc::Committed;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::kind::Direction;
use ddtc_gpu::bound::{GRANULE, SECTOR, Touched};
use ddtc_gpu::ptx;
use ddtc_gpu::selection::{Selection, select};
use ddtc_gpu::strided::{Strided, THREADS, words_per_thread};

/// Maximum number of launches of one call that are counted. If a call needs more, only this is
/// said.
const MAX_LAUNCHES: usize = 1000;

/// Returns the text that `ddtc explain --gpu` prints for `count` instances of `t`.
///
/// # Errors
/// If the datatype cannot be committed, or the packed bytes of the instances do not fit in 63 bits.
pub(crate) fn explained(t: &Datatype, count: u64) -> Result<String, Box<dyn Error>> {
    let committed = Engine::new(Config { mode: Mode::Interpret, ..Config::default() }).commit(t)?;
    let payload = committed.packed_size(count)?;
    let mut text = String::from(
        "in the memory of a GPU (computed from the datatype: no GPU is needed, and nothing was run)\n",
    );
    let selection = select("explain", &committed);
    match &selection {
        Ok(Selection::Nothing) => text += "kernel: none, because the instances have no bytes\n",
        Ok(Selection::Run { .. }) => {
            text += "kernel: none, because all instances are one run of bytes, which the driver copies\n";
        }
        Ok(Selection::Strided(strided)) => text += &kernel(strided, count, payload),
        Err(refusal) => {
            let _ = writeln!(text, "not supported: the datatype {}", refusal.rule());
        }
    }
    let unpacks = match &selection {
        Ok(Selection::Strided(strided)) => strided.is_disjoint(count),
        _ => true,
    };
    text += &bound(&committed, count, payload, unpacks);
    Ok(text)
}

/// Describes the kernel that moves the `payload` packed bytes of `count` instances, if the buffers
/// are aligned to the widest words that the layout allows.
fn kernel(strided: &Strided, count: u64, payload: u64) -> String {
    let mut text = String::new();
    let width = strided.width(0, 0, &(0..payload));
    let shape = strided.shape(width);
    let names = Direction::BOTH.map(|direction| ptx::name(shape, direction));
    let _ = writeln!(text, "kernel: {} and {}", names[0], names[1]);
    let sums = if shape.wide { 64 } else { 32 };
    let _ = writeln!(text, "words: {width} B, if both buffers begin at multiples of 16 B");
    let _ = writeln!(text, "index arithmetic: {} division(s), sums of {sums} bits", shape.divisions);
    let loops = strided.word_loops(width);
    let _ = writeln!(text, "loops over words, the innermost first");
    for (i, one) in loops.iter().enumerate() {
        let trip = if i + 1 == loops.len() {
            format!("repeated for all {count} instance(s)")
        } else {
            format!("{} iterations", one.trip)
        };
        let _ = writeln!(text, "  {trip}, {} B apart", one.stride);
    }
    let launches: Vec<u64> = strided
        .launches(0, 0, 0..payload, width)
        .take(MAX_LAUNCHES + 1)
        .map(|launch| u64::from(launch.blocks(width)))
        .collect();
    let words = words_per_thread(width);
    let _ = if launches.len() > MAX_LAUNCHES {
        writeln!(text, "grid: more than {MAX_LAUNCHES} launches of blocks of {THREADS} threads")
    } else {
        let blocks: u64 = launches.iter().sum();
        writeln!(
            text,
            "grid: {blocks} block(s) of {THREADS} threads in {} launch(es), {words} word(s) for each thread",
            launches.len()
        )
    };
    text
}

/// Describes the bytes that device memory moves, and the bound that follows from them. `unpacks` is
/// false if unpacking is refused because two packed bytes may belong to the same byte.
fn bound(committed: &Committed, count: u64, payload: u64, unpacks: bool) -> String {
    let Some(touched) = Touched::new(committed, count) else {
        return "bytes touched: not counted, because the layout is too irregular, or its addresses do not fit in 64 bits\n".to_owned();
    };
    let [packing, unpacking] = touched.bytes(payload);
    let [pack, unpack] = touched.shares(payload);
    let Touched { granules, sectors, partial } = touched;
    let mut text = format!("plain copy: moves {} B, twice the payload\n", payload.saturating_mul(2));
    let _ = writeln!(text, "pack: moves {packing} B of device memory");
    let _ = writeln!(text, "  reads {granules} granule(s) of {GRANULE} B, writes {payload} B");
    let _ = writeln!(text, "  bound: at most {pack:.2} of the speed of a plain copy");
    if !unpacks {
        text += "unpack: refused, because two packed bytes may belong to the same byte of user memory\n";
        return text;
    }
    let _ = writeln!(text, "unpack: moves {unpacking} B of device memory");
    let _ = writeln!(
        text,
        "  reads {payload} B, writes {sectors} sector(s) of {SECTOR} B, of which {partial} are written in part and so read too"
    );
    let _ = writeln!(text, "  bound: at most {unpack:.2} of the speed of a plain copy");
    text +=
        "The bounds are those of a model, for bytes that are not in the cache of the GPU (docs/GPU.md).\n";
    text
}
