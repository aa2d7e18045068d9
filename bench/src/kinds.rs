//! Packing and unpacking in external32, which converts values instead of only moving bytes. The
//! time is compared with that of the native pack or unpack of the same layout, and with that of
//! memcpy of the payload.

use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;

use ddtc::internal::datatype::{Datatype, Named};
use ddtc::internal::engine::{Config, Engine};
use ddtc::internal::exec::interp::external32;
use ddtc::internal::kind::{Direction, Operation};
use ddtc::internal::methods::*;
use ddtc::internal::target::Level;

use crate::measure::{Effort, interleaved};

/// Returns layouts with about 16 KiB, 256 KiB and 4 MiB of packed bytes.
pub(super) fn layouts() -> Vec<(String, String)> {
    let sizes = [("16 KiB", 16 << 10), ("256 KiB", 256 << 10), ("4 MiB", 4 << 20)];
    type Form = (&'static str, fn(i64) -> String);
    let forms: [Form; 10] = [
        ("doubles", |n| format!("contiguous({}, double)", n / 8)),
        ("floats", |n| format!("contiguous({}, float)", n / 4)),
        ("doubles by 16 B", |n| format!("vector({}, 1, 2, double)", n / 8)),
        ("floats by 16 B", |n| format!("vector({}, 1, 4, float)", n / 4)),
        ("shorts by 16 B", |n| format!("vector({}, 1, 8, short)", n / 2)),
        ("4 doubles by 64 B", |n| format!("vector({}, 4, 8, double)", n / 32)),
        ("structs", |n| {
            format!(
                "contiguous({}, resized(0, 32, struct([1, 1, 3], [0, 8, 16], [int, double, float])))",
                n / 24
            )
        }),
        ("wide structs", |n| {
            format!(
                "contiguous({}, resized(0, 128, struct([1, 1, 3], [0, 64, 100], [int, double, float])))",
                n / 24
            )
        }),
        ("longs", |n| format!("contiguous({}, long)", n / 8)),
        ("long doubles", |n| format!("contiguous({}, long_double)", n / 16)),
    ];
    let rows =
        forms.iter().flat_map(|(name, form)| sizes.map(|(size, n)| (format!("{name}, {size}"), form(n))));
    rows.collect()
}

/// Returns user memory for `t` with values that external32 can represent, without NaNs and
/// infinities. For long doubles, the values are between 1 and 2. For other types, each 8 bytes are
/// an integer below 2^24.
pub(super) fn values(t: &Datatype) -> Vec<u8> {
    let long_doubles = t.type_map().next().is_some_and(|(basic, _)| basic == Named::LongDouble);
    let byte = |i: usize| match (long_doubles, i % 16) {
        (true, 8) => 0xff,
        (true, 9) => 0x3f,
        (true, 10..) => 0,
        (true, 7) => 0x80 | (i / 61) as u8,
        (false, k) if k % 8 > 2 => 0,
        _ => (i / 61) as u8,
    };
    (0..t.true_ub() as usize).map(byte).collect()
}

/// Measures all layouts, prints a table and returns the record.
///
/// # Errors
/// Returns the errors of commits, or an error if bytes differ from those of the reference
/// interpreter.
pub(crate) fn run(level: Level, quick: bool) -> Result<String, Box<dyn Error>> {
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let engine = Engine::new(Config { level, both_directions: true, ..Config::default() });
    let mut csv = String::from("layout,direction,payload_bytes,gb_per_s,of_native,of_memcpy\n");
    println!(
        "external32: GB/s of native payload, time over that of the native call, of memcpy of the payload"
    );
    for (name, text) in layouts() {
        let t: Datatype = text.parse()?;
        let committed = engine.commit(&t)?;
        let applied = committed.for_operation(Operation::External32)?;
        let payload = committed.packed_size(1)? as usize;
        // Both directions are checked against the reference interpreter first. The stream without
        // conversion is packed here as well, since the unpack without conversion reads it when it
        // is measured.
        let mut user = values(&t);
        let (mut native, mut external) = (vec![0u8; payload], vec![0u8; applied.packed_size(1)? as usize]);
        applied.pack(&user, 0, 1, &mut external)?;
        if external32::pack(&t, 1, &user, 0) != (external.clone(), Ok(())) {
            return Err(format!("{name}: the packed bytes differ").into());
        }
        committed.pack(&user, 0, 1, &mut native)?;
        let mut wanted = user.clone();
        let fit = external32::unpack(&t, 1, &external, &mut wanted, 0);
        applied.unpack(&external, 0, 1, &mut user)?;
        if fit.is_err() || user != wanted {
            return Err(format!("{name}: the unpacked bytes differ").into());
        }
        let (source, mut target) = (native.clone(), vec![0u8; payload]);
        // Three calls take turns: memcpy of the payload, the pack or unpack without conversion, and
        // the one in external32.
        for direction in Direction::BOTH {
            let mut failed = None;
            let times = interleaved(3, effort, |v, times| {
                for _ in 0..times {
                    let done = match (v, direction) {
                        (0, _) => {
                            target.copy_from_slice(black_box(&source));
                            Ok(0)
                        }
                        (1, Direction::Pack) => committed.pack(&user, 0, 1, &mut native),
                        (1, Direction::Unpack) => committed.unpack(&native, 0, 1, &mut user),
                        (_, Direction::Pack) => applied.pack(&user, 0, 1, &mut external),
                        (_, Direction::Unpack) => applied.unpack(&external, 0, 1, &mut user),
                    };
                    failed = done.err().or(failed.take());
                }
            });
            if let Some(error) = failed {
                return Err(error.into());
            }
            let (speed, native, memcpy) =
                (payload as f64 / times[2], times[2] / times[1], times[2] / times[0]);
            println!("{name:26} {:>6} {speed:>8.2} {native:>8.2} {memcpy:>8.2}", direction.name());
            let name = name.replace(',', "");
            let _ = writeln!(csv, "{name},{direction},{payload},{speed:.3},{native:.3},{memcpy:.3}");
        }
    }
    Ok(csv)
}
