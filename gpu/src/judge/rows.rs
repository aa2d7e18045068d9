//! The layouts that the benchmark program `judge` measures, and the target speeds of packing and
//! unpacking them. The output of the program calls a target speed an "aim".

use ddtc::internal::corpus::SplitMix64;
use ddtc::internal::datatype::Datatype;

use Layout::{Instances, Irregular, Places, Transpose};

/// A layout that the benchmark program `judge` measures, with the target speeds of packing and
/// unpacking. A target speed is a fraction of a reference speed. If a target speed is `None`, the
/// measured speed is printed without a comparison.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    layout: Layout,
    /// Target speeds with 1 MiB of packed bytes, first for packing and then for unpacking. They are
    /// fractions of the speed of the copy kernel.
    pub(crate) warm: [Option<f64>; 2],
    /// Target speeds with 64 MiB of packed bytes, first for packing and then for unpacking.
    pub(crate) cold: [Option<Aim>; 2],
}

/// Description of the datatype that is measured. For `Instances`, the number of packed bytes
/// determines only the number of instances. For all other variants, the size of the datatype
/// depends on the number of packed bytes.
#[derive(Clone, Copy)]
enum Layout {
    /// Many instances of the datatype that this text describes.
    Instances(&'static str),
    /// One instance with blocks of 16 bytes, with gaps of 8 to 32 bytes between them. The blocks
    /// are packed in the order of their addresses, or in a random order if `shuffled` is true.
    Places { shuffled: bool },
    /// One instance with blocks of 8 to 512 bytes, with gaps of 8 to 64 bytes between them.
    Irregular,
    /// The columns of a matrix that is stored by rows, so that packing transposes the matrix. The
    /// elements have the datatype `element`, and an instance is one column. The matrix is square,
    /// or has 10 more columns than rows if `odd` is true.
    Transpose { element: &'static str, odd: bool },
}

/// Target speed of a transfer, as a fraction of a reference speed.
#[derive(Clone, Copy)]
pub(crate) enum Aim {
    /// Fraction of the upper bound of the transfer's speed. The bound assumes that device memory
    /// moves as many bytes in a second as it does for the copy kernel.
    /// [`Touched::bytes`](ddtc_gpu::bound::Touched::bytes) is the number of bytes that device
    /// memory has to move for the transfer.
    Bound(f64),
    /// Fraction of the speed at which the copy kernel copies the same number of contiguous bytes.
    Copy(f64),
}

const fn row(name: &'static str, layout: Layout, warm: [Option<f64>; 2], cold: [Option<Aim>; 2]) -> Row {
    Row { name, layout, warm, cold }
}

const NEST: Option<Aim> = Some(Aim::Bound(0.92));
const SHORT: Option<Aim> = Some(Aim::Bound(0.85));
const WARM: [Option<f64>; 2] = [Some(0.90), Some(0.80)];
const LIST: [Option<f64>; 2] = [Some(0.84), Some(0.80)];
const FACE: [Option<f64>; 2] = [Some(0.72), Some(0.55)];
const TRANSPOSE: [Option<f64>; 2] = [Some(0.90), Some(0.90)];
const SQUARE: Option<Aim> = Some(Aim::Copy(0.90));

/// All layouts that the benchmark program `judge` measures. The kernel `strided` moves the first
/// fourteen of them, and the kernels `list`, `pieces` and `tile` move the others. The target speeds
/// are for an H100. They are up to a tenth below the speeds that a prototype in CUDA C++ reached
/// there on 2026-11-28.
pub(crate) const ROWS: [Row; 22] = [
    row("8 B, stride 16", Instances("resized(0, 16, double)"), WARM, [NEST, SHORT]),
    row("8 B, stride 64", Instances("resized(0, 64, double)"), FACE, [NEST, SHORT]),
    row("24 B, stride 40", Instances("resized(0, 40, contiguous(3, double))"), WARM, [NEST, SHORT]),
    row(
        "32 B, stride 64",
        Instances("resized(0, 64, contiguous(4, double))"),
        WARM,
        [NEST, Some(Aim::Copy(0.80))],
    ),
    row("48 B, stride 96", Instances("resized(0, 96, contiguous(6, double))"), [None; 2], [None; 2]),
    row(
        "64 B, stride 128",
        Instances("resized(0, 128, contiguous(8, double))"),
        WARM,
        [NEST, Some(Aim::Copy(0.80))],
    ),
    row(
        "128 B, stride 256",
        Instances("resized(0, 256, contiguous(16, double))"),
        WARM,
        [NEST, Some(Aim::Copy(0.92))],
    ),
    row(
        "256 B, stride 512",
        Instances("resized(0, 512, contiguous(32, double))"),
        WARM,
        [NEST, Some(Aim::Copy(0.92))],
    ),
    row(
        "4 KiB, stride 8 KiB",
        Instances("resized(0, 8192, contiguous(512, double))"),
        WARM,
        [NEST, Some(Aim::Copy(0.92))],
    ),
    row(
        "four loops, 24 B",
        Instances(
            "resized(0, 24576, hvector(4, 1, 6144, hvector(4, 1, 768, hvector(4, 1, 96, contiguous(3, double)))))",
        ),
        LIST,
        [NEST, SHORT],
    ),
    row("x face, 8 B", Instances("resized(0, 131072, hvector(64, 1, 1024, double))"), FACE, [None; 2]),
    row("y face, 1 KiB", Instances("resized(0, 131072, contiguous(128, double))"), WARM, [None; 2]),
    row(
        "z face, 16 KiB",
        Instances("resized(0, 131072, contiguous(2048, double))"),
        WARM,
        [NEST, Some(Aim::Copy(0.92))],
    ),
    row("1001 B, stride 1003", Instances("resized(0, 1003, contiguous(1001, byte))"), [None; 2], [None; 2]),
    row(
        "structure, 20 of 24 B",
        Instances("resized(0, 24, struct([1, 2], [0, 8], [int, double]))"),
        LIST,
        [NEST, Some(Aim::Bound(0.82))],
    ),
    row("16 B, ascending", Places { shuffled: false }, LIST, [NEST, Some(Aim::Bound(0.78))]),
    row("16 B, shuffled", Places { shuffled: true }, [None; 2], [None; 2]),
    row("8 to 512 B", Irregular, LIST, [None, Some(Aim::Bound(0.70))]),
    row("transpose of 4 B", Transpose { element: "int", odd: false }, TRANSPOSE, [SQUARE; 2]),
    row("transpose of 8 B", Transpose { element: "double", odd: false }, TRANSPOSE, [SQUARE; 2]),
    row("transpose of 16 B", Transpose { element: "double_complex", odd: false }, TRANSPOSE, [SQUARE; 2]),
    row(
        "odd transpose of 8 B",
        Transpose { element: "double", odd: true },
        [Some(0.72), Some(0.90)],
        [Some(Aim::Copy(0.72)), Some(Aim::Copy(0.90))],
    ),
];

impl Row {
    /// Returns a datatype, and the number of its instances that together have about `payload`
    /// packed bytes. The datatype has at least one byte.
    pub(crate) fn instances(&self, payload: u64) -> (Datatype, u64) {
        // Random lengths and distances are multiples of 8 bytes. The seed is fixed, so that every
        // run of the program measures the same layouts.
        let mut random = SplitMix64::new(1);
        let mut pick = |n: i64| random.below(n as u64) as i64;
        let byte = Datatype::of::<u8>();
        match self.layout {
            Instances(text) => {
                let t: Datatype = text.parse().expect("a datatype");
                let count = (payload / t.size() as u64).max(1);
                (t, count)
            }
            Places { shuffled } => {
                let mut at = 0;
                let mut places: Vec<i64> = (0..(payload / 16).max(2))
                    .map(|_| {
                        at += 24 + 8 * pick(4);
                        at
                    })
                    .collect();
                if shuffled {
                    (1..places.len()).rev().for_each(|i| places.swap(i, pick(i as i64 + 1) as usize));
                }
                (Datatype::hindexed_block(16, &places, &byte).expect("a datatype"), 1)
            }
            Irregular => {
                let (mut at, mut bytes, mut lengths, mut places) = (0, 0, Vec::new(), Vec::new());
                while bytes < payload as i64 || lengths.len() < 2 {
                    let length = 8 + 8 * pick(64);
                    places.push(at);
                    lengths.push(length);
                    bytes += length;
                    at += length + 8 + 8 * pick(8);
                }
                (Datatype::hindexed(&lengths, &places, &byte).expect("a datatype"), 1)
            }
            Transpose { element, odd } => {
                let element: Datatype = element.parse().expect("a datatype");
                let side = (payload / element.size() as u64).isqrt() as i64;
                let (rows, columns) = if odd { (side - 5, side + 5) } else { (side, side) };
                let column = Datatype::hvector(rows, 1, columns * element.size(), &element);
                let column = column.and_then(|t| Datatype::resized(0, element.size(), &t));
                (column.expect("a datatype"), columns as u64)
            }
        }
    }

    /// Returns a datatype and a number of instances for the check that every byte is right.
    pub(crate) fn compared(&self) -> (Datatype, u64) {
        match self.layout {
            Instances(_) => (self.instances(1).0, 5),
            // With 64 KiB of packed bytes, the layouts have enough blocks or elements to be moved
            // by the kernels `pieces` and `tile`.
            _ => self.instances(64 << 10),
        }
    }
}
