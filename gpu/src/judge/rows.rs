//! The layouts that the judge measures, and the speeds that transfers of these layouts should reach
//! (their aims).

/// A layout that the judge measures, with the aims of its transfers. An aim is the share of the
/// speed of a reference that a transfer should reach. `None` in place of an aim means that the
/// speed is printed but compared with no aim.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// One instance of the layout, in the text form of datatypes.
    pub(crate) datatype: &'static str,
    /// The aims at 1 MiB, first for packing and then for unpacking. They are shares of the speed of
    /// the copy kernel.
    pub(crate) warm: [Option<f64>; 2],
    /// The aims at 64 MiB, first for packing and then for unpacking.
    pub(crate) cold: [Option<Aim>; 2],
}

/// Aim of a transfer. A reference has a certain speed, and the transfer should reach a share of it.
#[derive(Clone, Copy)]
pub(crate) enum Aim {
    /// Share of the upper bound of the transfer's speed. For each transfer, device memory has to
    /// move a certain number of bytes ([`Touched::bytes`](ddtc_gpu::bound::Touched::bytes)). The
    /// upper bound is the speed of a transfer for which device memory moves these bytes as fast as
    /// it moves the bytes of the copy kernel.
    Bound(f64),
    /// The transfer should reach this share of the speed of a plain copy of the same number of
    /// packed bytes by the copy kernel.
    Copy(f64),
}

const fn row(
    name: &'static str,
    datatype: &'static str,
    warm: [Option<f64>; 2],
    cold: [Option<Aim>; 2],
) -> Row {
    Row { name, datatype, warm, cold }
}

const NEST: Option<Aim> = Some(Aim::Bound(0.92));
const SHORT: Option<Aim> = Some(Aim::Bound(0.85));
const WARM: [Option<f64>; 2] = [Some(0.90), Some(0.80)];

/// All rows that the judge measures. The kernel `strided` serves the layout of each row.
pub(crate) const ROWS: [Row; 12] = [
    row("8 B, stride 16", "resized(0, 16, double)", WARM, [NEST, SHORT]),
    row("8 B, stride 64", "resized(0, 64, double)", [Some(0.72), Some(0.55)], [NEST, SHORT]),
    row("24 B, stride 40", "resized(0, 40, contiguous(3, double))", WARM, [NEST, SHORT]),
    row("32 B, stride 64", "resized(0, 64, contiguous(4, double))", WARM, [NEST, Some(Aim::Copy(0.80))]),
    row("48 B, stride 96", "resized(0, 96, contiguous(6, double))", [None; 2], [None; 2]),
    row("64 B, stride 128", "resized(0, 128, contiguous(8, double))", WARM, [NEST, Some(Aim::Copy(0.80))]),
    row("128 B, stride 256", "resized(0, 256, contiguous(16, double))", WARM, [NEST, Some(Aim::Copy(0.92))]),
    row("256 B, stride 512", "resized(0, 512, contiguous(32, double))", WARM, [NEST, Some(Aim::Copy(0.92))]),
    row(
        "4 KiB, stride 8 KiB",
        "resized(0, 8192, contiguous(512, double))",
        WARM,
        [NEST, Some(Aim::Copy(0.92))],
    ),
    row(
        "four loops, 24 B",
        "resized(0, 24576, hvector(4, 1, 6144, hvector(4, 1, 768, hvector(4, 1, 96, contiguous(3, double)))))",
        [Some(0.84), Some(0.80)],
        [NEST, SHORT],
    ),
    row(
        "x face, 8 B",
        "resized(0, 131072, hvector(64, 1, 1024, double))",
        [Some(0.72), Some(0.55)],
        [None; 2],
    ),
    row("1001 B, stride 1003", "resized(0, 1003, contiguous(1001, byte))", [None; 2], [None; 2]),
];
