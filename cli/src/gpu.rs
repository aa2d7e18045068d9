//! `ddtc explain --gpu`: shows how a datatype would be packed and unpacked in the memory of a GPU,
//! and how fast that can be at best. Everything is computed, so no GPU is needed.

use std::error::Error;
use std::fmt::Write as _;

use ddtc::Committed;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::kind::Direction;
use ddtc_gpu::bound::{GRANULE, SECTOR, Touched};
use ddtc_gpu::kernel::{Addresses, Mover, THREADS, launches};
use ddtc_gpu::selection::{Selection, select};

/// Maximum number of kernel launches that are counted for the output. If packing needs more, the
/// output says only that there are more.
const MAX_LAUNCHES: usize = 1000;

/// Returns the text that `ddtc explain --gpu` prints for `count` instances of `t`.
///
/// # Errors
/// If the datatype cannot be committed, or the number of packed bytes of all instances does not fit
/// in 63 bits.
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
        Ok(Selection::Kernels(mover)) => text += &kernels(mover.as_ref(), count, payload),
        Err(refusal) => {
            let _ = writeln!(text, "not supported: the datatype {}", refusal.rule());
        }
    }
    let unpacks = match &selection {
        Ok(Selection::Kernels(mover)) => mover.loops().is_disjoint(count),
        _ => true,
    };
    text += &bound(&committed, count, payload, unpacks);
    Ok(text)
}

/// Describes the kernels that move the `payload` packed bytes of `count` instances. The description
/// assumes that the user's buffer and the packed buffer both begin at multiples of 16 B.
fn kernels(mover: &dyn Mover, count: u64, payload: u64) -> String {
    let mut text = String::new();
    let addresses = Addresses { user: 0, packed: 0, table: 0 };
    let variant = mover.variant(&addresses, &(0..payload));
    let names = Direction::BOTH.map(|direction| mover.kernel(variant, direction).name);
    let _ = writeln!(text, "kernel: {} and {}", names[0], names[1]);
    let _ = writeln!(text, "alignment: words of up to {} B", mover.loops().unit());
    let table = size_of_val(mover.table());
    if table > 0 {
        let _ = writeln!(text, "table: {table} B in device memory");
    }
    let loops = mover.loops().list();
    let _ = writeln!(text, "loops, the innermost first");
    for (i, one) in loops.iter().enumerate() {
        let trip = if i + 1 < loops.len() {
            format!("{} iterations", one.trip)
        } else if one.trip == 1 {
            format!("repeated for all {count} instance(s)")
        } else {
            // This loop iterates over a part of the datatype and also over the instances: the first
            // iteration for an instance follows the last one for the instance before it, at the
            // same distance.
            format!("{} iterations for each of {count} instance(s)", one.trip)
        };
        let _ = writeln!(text, "  {trip}, {} B apart", one.stride);
    }
    let grids: Vec<u64> = launches(mover, variant, addresses, 0..payload)
        .take(MAX_LAUNCHES + 1)
        .map(|launch| launch.blocks.iter().map(|&n| u64::from(n)).product())
        .collect();
    let _ = if grids.len() > MAX_LAUNCHES {
        writeln!(text, "grid: more than {MAX_LAUNCHES} launches of blocks of {THREADS} threads")
    } else {
        let blocks: u64 = grids.iter().sum();
        writeln!(text, "grid: {blocks} block(s) of {THREADS} threads in {} launch(es)", grids.len())
    };
    text
}

/// Describes how many bytes are read from and written to device memory, and the upper bound of the
/// speed that follows from these numbers. `unpacks` is false if ddtc refuses to unpack `count`
/// instances. The reason for this is that two packed bytes may belong to the same byte of user
/// memory.
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
