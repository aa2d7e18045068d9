//! Tests of `ddtc explain --gpu`. The numbers of bytes were worked out by hand.

use std::process::Output;

use crate::program;

fn explain(arguments: &[&str]) -> Output {
    program().args(["explain", "--gpu"]).args(arguments).output().unwrap()
}

/// Returns the part of the output that is about the GPU. The command must succeed, and must say
/// that nothing was run.
fn good(arguments: &[&str]) -> String {
    let output = explain(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let (sizes, rest) = text.split_once("\nin the memory of a GPU").unwrap_or_else(|| panic!("{text}"));
    assert!(sizes.contains("payload") && rest.contains("nothing was run"), "{text}");
    rest.to_owned()
}

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn kernels_and_bounds_are_shown() {
    // 100 doubles with 64 bytes between their beginnings. Each lies in a granule of its own, and in
    // a sector that it does not fill: 800 + 100 * 64 and 800 + 100 * 32 + 100 * 32 bytes. A plain
    // copy moves 1600 bytes, which is 0.22 of that.
    contains(
        &good(&["--count", "100", "resized(0, 64, double)"]),
        &[
            "kernel: ddtc_strided_8_0_32_pack and ddtc_strided_8_0_32_unpack\n",
            "alignment: words of up to 8 B\n",
            "  repeated for all 100 instance(s), 64 B apart\n",
            "grid: 1 block(s) of 256 threads in 1 launch(es)\n",
            "plain copy: moves 1600 B, twice the payload\n",
            "pack: moves 7200 B of device memory\n  reads 100 granule(s) of 64 B, writes 800 B\n",
            "bound: at most 0.22 of the speed of a plain copy\nunpack: moves 7200 B of device memory\n",
            "  reads 800 B, writes 100 sector(s) of 32 B, of which 100 are written in part and so read too\n",
        ],
    );
    // Rows of 96 bytes, 128 bytes apart, three in an instance of 1024 bytes. A row is six words of
    // 16 bytes, and 18 words are an instance. 1000 instances have 18000 words, for 71 blocks of 256
    // threads. Each row lies in two granules and fills three sectors.
    let rows = good(&["--count", "1000", "resized(0, 1024, hvector(3, 12, 128, double))"]);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/GPU.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(&rows), "docs/GPU.md must show the output of this command:\n{rows}");
    contains(
        &rows,
        &[
            "kernel: ddtc_strided_16_2_32_pack",
            "  3 iterations, 128 B apart\n  repeated for all 1000 instance(s), 1024 B apart\n",
            "grid: 71 block(s) of 256 threads in 1 launch(es)\n",
            "pack: moves 672000 B of device memory\n  reads 6000 granule(s) of 64 B, writes 288000 B\n  bound: at most 0.86 ",
            "unpack: moves 576000 B of device memory\n",
            "writes 9000 sector(s) of 32 B, of which 0 are written in part",
            "bound: at most 1.00 ",
        ],
    );
    // Three doubles in an instance, which are as far apart as the last one is from the first one of
    // the next instance.
    contains(
        &good(&["--count", "100", "resized(0, 48, hvector(3, 1, 16, double))"]),
        &["ddtc_strided_8_0_32_pack", "  3 iterations for each of 100 instance(s), 16 B apart\n"],
    );
    // Backwards: sums of 64 bits. 3 words of 4 bytes, of which a thread moves four.
    contains(
        &good(&["hvector(3, 1, -12, int)"]),
        &[
            "_4_1_64_pack",
            "  3 iterations, -12 B apart\n",
            "grid: 1 block(s) of 256 threads in 1 launch(es)\n",
        ],
    );
}

#[test]
fn what_needs_no_kernel_or_is_refused_is_said() {
    contains(
        &good(&["--count", "1000", "double"]),
        &[
            "kernel: none, because all instances are one run of bytes",
            "moves 16000 B of device memory\n  reads 125 granule(s)",
            "1.00",
        ],
    );
    contains(
        &good(&["contiguous(0, int)"]),
        &["kernel: none, because the instances have no bytes", "plain copy: moves 0 B"],
    );
    // Each instance of 2 GiB has a launch of its own.
    let huge = good(&["--count", "3", "hvector(2, 1, 4294967296, contiguous(1073741824, byte))"]);
    contains(&huge, &["kernel: ddtc_strided_16_", " in 3 launch(es)", "reads 100663296 granule(s)"]);
    // A list of too many blocks is refused, and its bytes are counted nevertheless.
    let long = good(&["struct([1, 1], [0, 8000000000], [hvector(300000000, 1, 16, double), int])"]);
    contains(&long, &["not supported: the datatype must have at most 268435456 blocks", "granule(s)"]);
    // A structure of several runs: its blocks are listed in a table in device memory.
    let structure = good(&["--count", "100", "resized(0, 24, struct([1, 2], [0, 8], [int, double]))"]);
    contains(
        &structure,
        &["kernel: ddtc_list_", "table: ", "repeated for all 100 instance(s), 24 B apart\n"],
    );
    // Overlapping blocks are packed, and not unpacked: bytes 0 to 16 are read.
    let twice = good(&["hvector(3, 1, 4, double)"]);
    contains(
        &twice,
        &["pack: moves 88 B of device memory\n  reads 1 granule(s) of 64 B, writes 24 B", "unpack: refused"],
    );
    for (arguments, part) in [
        (&["--unpack", "int"][..], "--unpack"),
        (&["--kind", "external32", "int"], "--kind"),
        (&["--count", "4611686018427387904", "double"], "count"),
    ] {
        let output = explain(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(part), "{error}");
    }
}

/// The command takes little time and prints little for datatypes that are huge, irregular or deep.
#[test]
fn what_is_large_is_explained_too() {
    for name in ["zero.struct", "children.10000", "dag.40", "deep.1000", "large.size_2_62", "indexed_1to8.S"]
    {
        let text = good(&[name]);
        assert!(text.len() < 10_000, "{name}: {text}");
    }
    contains(&good(&["--count", "10000", "resized(0, 2147483648, int)"]), &["more than 1000 launches"]);
    let far = good(&["--count", "1000000000000", "resized(0, 4294967296, int)"]);
    contains(&far, &["bytes touched: not counted"]);
    let woven = good(&["hvector(100000, 1, 40, hvector(100000, 1, 24, double))"]);
    contains(&woven, &["bytes touched: not counted"]);
}
