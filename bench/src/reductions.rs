//! Reductions while unpacking, in comparison with a C loop with constant extents over the same
//! bytes.

use std::error::Error;
use std::fmt::Write as _;

use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine};
use ddtc::internal::exec::interp::reduce;
use ddtc::internal::kind::{Op, Operation};
use ddtc::internal::target::Level;

use crate::compile;
use crate::csource::Function;
use crate::measure::{Effort, interleaved};

/// A reduction into a layout with any number of elements, given as an operation and a datatype, and
/// the C loop that does the same.
struct Form {
    name: &'static str,
    op: Op,
    /// Size of an element in the packed stream, in bytes.
    element: i64,
    datatype: fn(i64) -> String,
    /// Returns the body of a C function that does the reduction for the given number of elements.
    /// The function has the arguments `user` and `packed`.
    c: fn(i64) -> String,
}

// Returns the body of a C function that adds `n` adjacent packed elements to elements in user
// memory that are `stride` elements apart.
fn loop_of(c_type: &str, n: i64, stride: i64) -> String {
    format!(
        "{c_type} *u = user, *p = packed; for (long i = 0; i < {n}; i++) u[i * {stride}] = p[i] + u[i * {stride}];"
    )
}

const FORMS: [Form; 8] = [
    Form {
        name: "sum of doubles",
        op: Op::Sum,
        element: 8,
        datatype: |n| format!("contiguous({n}, double)"),
        c: |n| loop_of("double", n, 1),
    },
    Form {
        name: "sum of doubles by 16 B",
        op: Op::Sum,
        element: 8,
        datatype: |n| format!("vector({n}, 1, 2, double)"),
        c: |n| loop_of("double", n, 2),
    },
    Form {
        name: "sum of doubles by 64 B",
        op: Op::Sum,
        element: 8,
        datatype: |n| format!("vector({n}, 1, 8, double)"),
        c: |n| loop_of("double", n, 8),
    },
    Form {
        name: "sum of floats by 16 B",
        op: Op::Sum,
        element: 4,
        datatype: |n| format!("vector({n}, 1, 4, float)"),
        c: |n| loop_of("float", n, 4),
    },
    Form {
        name: "sum of ints by 8 B",
        op: Op::Sum,
        element: 4,
        datatype: |n| format!("vector({n}, 1, 2, int)"),
        c: |n| loop_of("int", n, 2),
    },
    Form {
        name: "sum of 4 doubles by 64 B",
        op: Op::Sum,
        element: 8,
        datatype: |n| format!("vector({}, 4, 8, double)", n / 4),
        c: |n| {
            format!(
                "double *u = user, *p = packed; for (long i = 0; i < {}; i++) for (long k = 0; k < 4; k++) \
                 u[i * 8 + k] = p[i * 4 + k] + u[i * 8 + k];",
                n / 4
            )
        },
    },
    Form {
        name: "sum of 3 doubles by 40 B",
        op: Op::Sum,
        element: 8,
        datatype: |n| format!("vector({}, 3, 5, double)", n / 3),
        c: |n| {
            format!(
                "double *u = user, *p = packed; for (long i = 0; i < {}; i++) for (long k = 0; k < 3; k++) \
                 u[i * 5 + k] = p[i * 3 + k] + u[i * 5 + k];",
                n / 3
            )
        },
    },
    Form {
        name: "minloc of double and int",
        op: Op::Minloc,
        element: 12,
        datatype: |n| format!("contiguous({n}, double_int)"),
        c: |n| {
            format!(
                "struct pair {{ double v; int i; }} *u = user; \
                 struct __attribute__((packed)) {{ double v; int i; }} *p = packed; \
                 for (long k = 0; k < {n}; k++) {{ \
                 if (p[k].v < u[k].v) {{ u[k].v = p[k].v; u[k].i = p[k].i; }} \
                 else if (p[k].v == u[k].v && p[k].i < u[k].i) u[k].i = p[k].i; }}"
            )
        },
    },
];

/// Returns bytes of positive numbers of similar size: between 1 and 1.5 if they are read as floats,
/// between 2^-7 and 2^-3 as doubles, and below 2^30 as ints.
fn numbers(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|i| match i % 4 {
            3 => 0x3f,
            2 => 0x80 | ((i * 7 + seed) as u8 % 64),
            _ => (i * 31 + seed * 17 + i / 251) as u8,
        })
        .collect()
}

/// Measures all reductions in [`FORMS`], prints a table and returns the record.
///
/// # Errors
/// Returns the errors of commits and of the C compiler, or an error if the bytes of ddtc or of the
/// C loop differ from those of the reference interpreter.
pub(crate) fn run(level: Level, quick: bool) -> Result<String, Box<dyn Error>> {
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let engine = Engine::new(Config { level, both_directions: true, ..Config::default() });
    let mut csv = String::from("layout,payload_bytes,gb_per_s,of_c_loop\n");
    println!("reductions while unpacking: GB/s of payload, time over that of a C loop with constant extents");
    let sizes = [("2 KiB", 2 << 10), ("16 KiB", 16 << 10), ("256 KiB", 256 << 10), ("4 MiB", 4 << 20)];
    for (form, (size, bytes)) in FORMS.iter().flat_map(|form| sizes.map(|size| (form, size))) {
        // The number of elements is a multiple of 12, so that blocks of 3 and 4 elements are whole.
        // ddtc, the C loop and the reference interpreter start from the same bytes and must give
        // the same result.
        let n = bytes / form.element / 12 * 12;
        let name = format!("{} {size}", form.name);
        let t: Datatype = (form.datatype)(n).parse()?;
        let applied = engine.commit(&t)?.for_operation(Operation::Reduce(form.op))?;
        let packed = numbers(applied.packed_size(1)? as usize, 1);
        let before = numbers(t.true_ub() as usize, 2);
        let symbol = "reduce".to_owned();
        let source = format!("void {symbol}(void *user, void *packed) {{ {} }}\n", (form.c)(n));
        let function = Function { symbol, extents: Vec::new() };
        let c_loop = compile::load(&source)?.symbol(&function)?;
        let mut want = before.clone();
        reduce::unpack(form.op, &t, 1, &packed, &mut want, 0);
        let (mut ours, mut theirs) = (before.clone(), before.clone());
        applied.unpack(&packed, 0, 1, &mut ours)?;
        c_loop.reduce(&mut theirs, &packed, &t);
        for (who, got) in [("ddtc", &ours), ("the C loop", &theirs)] {
            if *got != want {
                return Err(format!("{name}: the bytes of {who} differ from the interpreter's").into());
            }
        }
        // ddtc and the C loop use the same buffers, since the time depends on the distance between
        // the addresses of the user buffer and the packed buffer. For sums the packed bytes are
        // zeros, so that the sums stay in their range however often they are computed.
        let packed = if form.op == Op::Sum { vec![0; packed.len()] } else { packed };
        let mut failed = None;
        let times = interleaved(2, effort, |v, times| {
            for _ in 0..times {
                match v {
                    0 => c_loop.reduce(&mut ours, &packed, &t),
                    _ => failed = applied.unpack(&packed, 0, 1, &mut ours).err().or(failed.take()),
                }
            }
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        let (speed, over) = (packed.len() as f64 / times[1], times[1] / times[0]);
        println!("{name:36} {speed:>8.2} {over:>8.2}");
        let _ = writeln!(csv, "{name},{},{speed:.3},{over:.3}", packed.len());
    }
    Ok(csv)
}
