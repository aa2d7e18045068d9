//! The application layouts: for each name and size the datatype in text and the loops a programmer would write.
//!
//! Facts of the access patterns of DDTBench (Schneider, Gerstenberger, Hoefler: "Micro-applications for communication
//! data access patterns and MPI datatypes", EuroMPI 2012) and of common synthetic layouts. `corpus/application.ddt` is
//! the rendering of [`rows`]; a test compares them. Size M lies between S and L and is measured on request only.

use ddtc::corpus::CorpusEntry;

use crate::loops::{Block, Dim, Elem, Loops, Part};
use Elem::{Double, Float};

/// One layout at one size.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Name with the suffix of its size.
    pub(crate) name: String,
    /// Describes the layout, with its parameters.
    pub(crate) comment: String,
    /// Instances.
    pub(crate) count: i64,
    /// The datatype in the notation of the corpus.
    pub(crate) text: String,
    /// Loops that move the same bytes in the same order.
    pub(crate) loops: Loops,
}

impl Row {
    /// The row as text of a corpus file.
    fn render(&self) -> String {
        let count = if self.count == 1 { String::new() } else { format!("{} of ", self.count) };
        format!("# {}\n{} = {count}{}\n", self.comment, self.name, self.text)
    }

    /// Returns the row as an entry.
    ///
    /// # Errors
    /// If the text is wrong, which a test excludes.
    pub(crate) fn entry(&self) -> ddtc::Result<CorpusEntry> {
        let rule = "must be one entry";
        let entry = ddtc::corpus::parse(&self.render())?.pop();
        entry.ok_or_else(|| ddtc::Error::new(ddtc::ErrorClass::Intern, "layouts", "row", &self.name, rule))
    }
}

/// Which sizes of a layout are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// S and L: the rows of the corpus.
    Corpus,
    /// S, M and L.
    Sweep,
}

/// A layout's parameters at S, M and L.
struct Sized3<P>(P, P, P);

/// Collects rows; knows the sizes that are wanted.
struct Rows {
    sizes: Sizes,
    rows: Vec<Row>,
}

/// Result of a layout's function for its parameters.
struct Made {
    comment: String,
    count: i64,
    text: String,
    loops: Loops,
}

impl Rows {
    fn add<P: Copy>(&mut self, name: &str, Sized3(s, m, l): Sized3<P>, make: impl Fn(P) -> Made) {
        for (suffix, parameters) in [("S", s), ("M", m), ("L", l)] {
            if suffix != "M" || self.sizes == Sizes::Sweep {
                let Made { comment, count, text, loops } = make(parameters);
                self.rows.push(Row { name: format!("{name}.{suffix}"), comment, count, text, loops });
            }
        }
    }
}

/// Places the arrays of one struct behind each other, each at a cache line of its own.
#[derive(Default)]
struct Arrays {
    end: i64,
}

impl Arrays {
    fn place(&mut self, bytes: i64) -> i64 {
        let base = (self.end + 63) / 64 * 64;
        self.end = base + bytes;
        base
    }
}

/// A struct of one block per member, one member per line.
fn structure(members: &[(i64, String)]) -> String {
    let places: Vec<String> = members.iter().map(|(place, _)| place.to_string()).collect();
    let types: Vec<&str> = members.iter().map(|(_, t)| t.as_str()).collect();
    let (ones, places, types) =
        (vec!["1"; members.len()].join(","), places.join(","), types.join(",\n     "));
    format!("struct(\n    [{ones}],\n    [{places}],\n    [{types}])")
}

/// Returns all rows, in the order of the corpus.
pub(crate) fn rows(sizes: Sizes) -> Vec<Row> {
    let mut rows = Rows { sizes, rows: Vec::new() };
    wrf(&mut rows);
    grids(&mut rows);
    fft(&mut rows);
    particles(&mut rows);
    synthetic(&mut rows);
    rows.rows
}

/// The text of `corpus/application.ddt`.
#[cfg(test)]
fn render() -> String {
    let mut out = String::from(
        "# Application layouts at sizes S and L. Generated from bench/src/layouts.rs: change them there, then run\n\
         # the tests of the ddtc binary with DDTC_BLESS=1. The syntax of this file is described in src/corpus/syntax.rs.\n",
    );
    for row in rows(Sizes::Corpus) {
        out.push('\n');
        out.push_str(&row.render());
    }
    out
}

/// (ims, ime, jms, jme, is, ie, js, je) of one WRF patch.
type Patch = [i64; 8];

/// WRF halo exchange: four 2-D, three 3-D and two 4-D float arrays in one struct.
fn wrf(rows: &mut Rows) {
    let y: Sized3<Patch> = Sized3(
        [4, 22, 4, 27, 8, 18, 11, 13],
        [0, 25, 19, 56, 5, 20, 26, 28],
        [-4, 27, 34, 85, 1, 23, 41, 43],
    );
    let x: Sized3<Patch> = Sized3(
        [4, 22, 4, 27, 13, 15, 8, 23],
        [0, 25, 19, 56, 15, 17, 23, 52],
        [-4, 27, 34, 85, 18, 20, 38, 81],
    );
    let copy = |s: &Sized3<Patch>| Sized3(s.0, s.1, s.2);
    rows.add("WRF_x_vec", copy(&x), |p| halo(p, false));
    rows.add("WRF_x_sa", x, |p| halo(p, true));
    rows.add("WRF_y_vec", copy(&y), |p| halo(p, false));
    rows.add("WRF_y_sa", y, |p| halo(p, true));
}

fn halo(patch: Patch, subarrays: bool) -> Made {
    let [ims, ime, jms, jme, is, ie, js, je] = patch;
    let (d1, d2, d3, d4) = (ime - ims + 1, 65, jme - jms + 1, 2);
    let (s1, s2, s3) = (ie - is + 1, 65, je - js + 1);
    let (i, j) = (is - ims, js - jms);
    let (row, plane, slab) = (4 * d1, 4 * d1 * d2, 4 * d1 * d2 * d3);
    let mut arrays = Arrays::default();
    let mut members = Vec::new();
    let mut parts = Vec::new();
    for dimensions in [2, 2, 2, 2, 3, 3, 3, 4, 4] {
        let cube = format!("hvector({s3}, 1, {plane}, vector({s2}, {s1}, {d1}, float))");
        let (bytes, first, vector, subarray, dims) = match dimensions {
            2 => (
                row * d3,
                4 * i + row * j,
                format!("vector({s3}, {s1}, {d1}, float)"),
                format!("subarray([{d3},{d1}], [{s3},{s1}], [{j},{i}], C, float)"),
                vec![(s3, row)],
            ),
            3 => (
                slab,
                4 * i + plane * j,
                cube,
                format!("subarray([{d3},{d2},{d1}], [{s3},{s2},{s1}], [{j},0,{i}], C, float)"),
                vec![(s3, plane), (s2, row)],
            ),
            _ => (
                slab * d4,
                4 * i + plane * j + slab,
                format!("hvector(1, 1, {slab}, {cube})"),
                format!("subarray([{d4},{d3},{d2},{d1}], [1,{s3},{s2},{s1}], [1,{j},0,{i}], C, float)"),
                vec![(1, slab), (s3, plane), (s2, row)],
            ),
        };
        let base = arrays.place(bytes);
        members.push(if subarrays { (base, subarray) } else { (base + first, vector) });
        parts.push(Part::strided(base + first, &dims, Float, s1));
    }
    let how = if subarrays { "subarrays" } else { "vectors" };
    Made {
        comment: format!("WRF halo by {how}: (ims,ime,jms,jme,is,ie,js,je) = {patch:?}"),
        count: 1,
        text: structure(&members),
        loops: Loops { parts, tables: Vec::new() },
    }
}

/// Lattices and grids of fixed stride: MILC, NAS LU, NAS MG.
fn grids(rows: &mut Rows) {
    rows.add("MILC_su3_zd", Sized3([8; 4], [12; 4], [16; 4]), |[x, y, z, t]| {
        let (block, stride, half) = (x * y / 2, x * y * z / 2, 24 * x * y * z * t / 2);
        let site = "contiguous(6, float)";
        Made {
            comment: format!("MILC su3, z down: lattice (X,Y,Z,T) = ({x},{y},{z},{t}), both parities"),
            count: 1,
            text: format!("hvector(2, 1, {half}, vector({t}, {block}, {stride}, {site}))"),
            loops: Loops::one(0, &[(2, half), (t, 24 * stride)], Float, 6 * block),
        }
    });
    rows.add("NAS_LU_x", Sized3(12, 128, 1020), |nx| Made {
        comment: format!("NAS LU, x face: nx = {nx}"),
        count: 1,
        text: format!("contiguous({}, double)", 5 * nx),
        loops: Loops::one(0, &[], Double, 5 * nx),
    });
    rows.add("NAS_LU_y", Sized3(12, 128, 1020), |nx| Made {
        comment: format!("NAS LU, y face: nx = ny = {nx}"),
        count: 1,
        text: format!("vector({nx}, 1, {}, contiguous(5, double))", nx + 2),
        loops: Loops::one(0, &[(nx, 40 * (nx + 2))], Double, 5),
    });
    let grid = || Sized3([34, 18, 18], [130, 66, 66], [514, 258, 258]);
    rows.add("NAS_MG_x", grid(), |[d1, d2, d3]| Made {
        comment: format!("NAS MG, x face of a {d1} x {d2} x {d3} grid"),
        count: 1,
        text: format!("hvector({}, 1, {}, vector({}, 1, {d1}, double))", d3 - 2, 8 * d1 * d2, d2 - 2),
        loops: Loops::one(0, &[(d3 - 2, 8 * d1 * d2), (d2 - 2, 8 * d1)], Double, 1),
    });
    rows.add("NAS_MG_y", grid(), |[d1, d2, d3]| Made {
        comment: format!("NAS MG, y face of a {d1} x {d2} x {d3} grid"),
        count: 1,
        text: format!("vector({}, {}, {}, double)", d3 - 2, d1 - 2, d1 * d2),
        loops: Loops::one(0, &[(d3 - 2, 8 * d1 * d2)], Double, d1 - 2),
    });
    rows.add("NAS_MG_z", grid(), |[d1, d2, d3]| Made {
        comment: format!("NAS MG, z face of a {d1} x {d2} x {d3} grid"),
        count: 1,
        text: format!("vector({}, {}, {d1}, double)", d2 - 2, d1 - 2),
        loops: Loops::one(0, &[(d2 - 2, 8 * d1)], Double, d1 - 2),
    });
}

/// The two sides of the FFT's transpose, and a column type.
fn fft(rows: &mut Rows) {
    let complex = "contiguous(2, double)";
    let sizes = || Sized3((256, 4), (512, 4), (1536, 4));
    rows.add("FFT2D_gather", sizes(), |(n, p)| {
        let q = n / p;
        Made {
            comment: format!("2-D FFT, {n} x {n} complex over {p} ranks: a block of rows by column blocks"),
            count: p,
            text: format!("resized(0, {}, vector({q}, {q}, {n}, {complex}))", 16 * q),
            loops: Loops::one(0, &[(p, 16 * q), (q, 16 * n)], Double, 2 * q),
        }
    });
    rows.add("FFT2D_scatter", sizes(), |(n, p)| {
        let q = n / p;
        Made {
            comment: format!("2-D FFT, {n} x {n} complex over {p} ranks: the same block transposed"),
            count: p,
            text: format!("contiguous({q}, resized(0, 16, vector({q}, 1, {n}, {complex})))"),
            loops: Loops::one(0, &[(p, 16 * q), (q, 16), (q, 16 * n)], Double, 2),
        }
    });
    rows.add("transpose_1024x16B", Sized3(64, 256, 1024), |columns| Made {
        comment: format!("{columns} columns of a matrix of 1024 rows by {columns} columns of 16 B"),
        count: columns,
        text: format!("resized(0, 16, vector(1024, 1, {columns}, {complex}))"),
        loops: Loops::one(0, &[(columns, 16), (1024, 16 * columns)], Double, 2),
    });
}

/// Index lists: LAMMPS, SPECFEM3D.
fn particles(rows: &mut Rows) {
    let full = || Sized3((1907, 1662, 11), (2700, 2340, 12), (3534, 3062, 13));
    rows.add("LAMMPS_full", full(), |p| atoms(p, 5));
    rows.add("LAMMPS_atomic", Sized3((1217, 114, 21), (2400, 180, 22), (4084, 243, 23)), |p| atoms(p, 3));
    rows.add("LAMMPS_full_rx", full(), |(m, n, _)| {
        let mut arrays = Arrays::default();
        let mut members = Vec::new();
        let mut parts = Vec::new();
        for width in [3, 1, 1, 1, 1, 1] {
            let first = arrays.place(8 * width * (m + n)) + 8 * width * m;
            members.push((first, format!("contiguous({}, double)", width * n)));
            parts.push(Part::strided(first, &[], Double, width * n));
        }
        Made {
            comment: format!("LAMMPS full, receive side: {n} ghost atoms behind {m} own ones"),
            count: 1,
            text: structure(&members),
            loops: Loops { parts, tables: Vec::new() },
        }
    });
    rows.add(
        "SPECFEM3D_oc",
        Sized3((493, 3697, 31), (1500, 20_000, 32), (3225, 88_881, 33)),
        |(n, m, seed)| {
            let list = format!("@sample({n}, {m}, {seed})");
            Made {
                comment: format!("SPECFEM3D outer core: {n} of {m} points"),
                count: 1,
                text: format!("indexed_block(1, {list}, float)"),
                loops: Loops { parts: vec![Part::listed(0, 0, Float, 1)], tables: vec![list] },
            }
        },
    );
    let points = Sized3(
        [1957, 39_929, 245, 1225, 41],
        [5000, 200_000, 1000, 10_000, 43],
        [11_797, 834_917, 3009, 51_153, 45],
    );
    rows.add("SPECFEM3D_cm", points, |[n, m, n2, m2, seed]| {
        let lists = [format!("@sample({n}, {m}, {seed})"), format!("@sample({n2}, {m2}, {})", seed + 1)];
        let mut arrays = Arrays::default();
        let places = [arrays.place(12 * m), arrays.place(12 * m2)];
        let member = |i: usize| (places[i], format!("indexed_block(3, @scale({}, 3), float)", lists[i]));
        Made {
            comment: format!("SPECFEM3D crust and mantle: {n} of {m} and {n2} of {m2} points of 3 floats"),
            count: 1,
            text: structure(&[member(0), member(1)]),
            loops: Loops {
                parts: vec![Part::listed(places[0], 0, Float, 3), Part::listed(places[1], 1, Float, 3)],
                tables: lists.into(),
            },
        }
    });
    rows.add("SPECFEM3D_mt", Sized3(5600, 6600, 7600), |d3| Made {
        comment: format!("SPECFEM3D material: {d3} blocks of 3 floats at twice their distance"),
        count: 1,
        text: format!("vector({d3}, 1, 2, contiguous(3, float))"),
        loops: Loops::one(0, &[(d3, 24)], Float, 3),
    });
}

/// LAMMPS, send side: positions and `scalars` further arrays of n random atoms of m.
fn atoms((m, n, seed): (i64, i64, i64), scalars: usize) -> Made {
    let list = format!("@sample({n}, {m}, {seed})");
    let mut arrays = Arrays::default();
    let x = arrays.place(24 * m);
    let mut members = vec![(x, format!("indexed_block(3, @scale({list}, 3), double)"))];
    let mut parts = vec![Part::listed(x, 0, Double, 3)];
    for _ in 0..scalars {
        let base = arrays.place(8 * m);
        members.push((base, format!("indexed_block(1, {list}, double)")));
        parts.push(Part::listed(base, 0, Double, 1));
    }
    Made {
        comment: format!("LAMMPS, send side: positions and {scalars} scalars of {n} of {m} atoms"),
        count: 1,
        text: structure(&members),
        loops: Loops { parts, tables: vec![list] },
    }
}

/// Common synthetic layouts.
fn synthetic(rows: &mut Rows) {
    for bytes in [8, 16, 64, 256, 4096] {
        rows.add(&format!("vec_{bytes}B"), Sized3(16, 256, 4096), |kib| {
            let n = kib * 1024 / bytes;
            Made {
                comment: format!("{n} blocks of {bytes} B at twice their distance, {kib} KiB"),
                count: 1,
                text: format!("vector({n}, {}, {}, double)", bytes / 8, bytes / 4),
                loops: Loops::one(0, &[(n, 2 * bytes)], Double, bytes / 8),
            }
        });
    }
    rows.add("idxblk_8B", Sized3((1000, 51), (10_000, 52), (100_000, 53)), |(n, seed)| {
        let list = format!("@sum(@uniform({n}, 2, 6, {seed}))");
        Made {
            comment: format!("{n} doubles at increasing places, 2 to 6 apart"),
            count: 1,
            text: format!("indexed_block(1, {list}, double)"),
            loops: Loops { parts: vec![Part::listed(0, 0, Double, 1)], tables: vec![list] },
        }
    });
    rows.add("indexed_1to8", Sized3((1000, 61), (10_000, 63), (100_000, 65)), |(n, seed)| {
        let lengths = format!("@uniform({n}, 1, 8, {seed})");
        let displacements = format!("@sum({lengths}, @uniform({n}, 1, 8, {}))", seed + 1);
        let block = Block::Ragged { elem: Double, lengths: 0, displacements: 1 };
        Made {
            comment: format!("{n} blocks of 1 to 8 doubles with gaps of 1 to 8"),
            count: 1,
            text: format!("indexed({lengths}, {displacements}, double)"),
            loops: Loops {
                parts: vec![Part { base: 0, dims: Vec::new(), block }],
                tables: vec![lengths, displacements],
            },
        }
    });
    let cube = || Sized3(64, 128, 256);
    rows.add("face_x", cube(), |n| face(n, [n, n, 1]));
    rows.add("face_y", cube(), |n| face(n, [n, 1, n]));
    rows.add("face_z", cube(), |n| face(n, [1, n, n]));
    rows.add("struct_i_d_f3", Sized3(128, 8192, 262_144), |n| {
        let fields = vec![(0, Elem::Int, 1), (8, Double, 1), (16, Float, 3)];
        let part =
            Part { base: 0, dims: vec![Dim::Stride { trip: n, stride: 32 }], block: Block::Fields(fields) };
        Made {
            comment: format!("{n} structs of int, double, float[3]"),
            count: n,
            text: "resized(0, 32, struct([1,1,3], [0,8,16], [int,double,float]))".into(),
            loops: Loops { parts: vec![part], tables: Vec::new() },
        }
    });
    rows.add("darray_cyc", Sized3((128, 8), (512, 16), (2048, 64)), |(n, b)| {
        let pairs = n / b / 2;
        let (row, band) = (8 * n, 16 * b);
        Made {
            comment: format!("rank 1 of a 2 x 2 grid's share of a {n} x {n} matrix, cyclic in blocks of {b}"),
            count: 1,
            text: format!("darray(4, 1, [{n},{n}], [cyclic,cyclic], [{b},{b}], [2,2], C, double)"),
            loops: Loops::one(8 * b, &[(pairs, 2 * b * row), (b, row), (pairs, band)], Double, b),
        }
    });
}

/// The last but one layer of an n^3 cube in the dimension where `sub` is 1.
fn face(n: i64, sub: [i64; 3]) -> Made {
    let start = sub.map(|s| if s == 1 { n - 2 } else { 0 });
    let strides = [8 * n * n, 8 * n, 8];
    let base = (0..3).map(|d| start[d] * strides[d]).sum();
    let (dims, block) = match sub {
        [_, _, 1] => (vec![(n, strides[0]), (n, strides[1])], 1),
        [_, 1, _] => (vec![(n, strides[0])], n),
        _ => (vec![(n, strides[1])], n),
    };
    Made {
        comment: format!("one layer {sub:?} of a cube of {n}^3 doubles"),
        count: 1,
        text: format!("subarray([{n},{n},{n}], {sub:?}, {start:?}, C, double)"),
        loops: Loops::one(base, &dims, Double, block),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_corpus_is_what_the_layouts_say() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/application.ddt");
        let made = render();
        if std::env::var_os("DDTC_BLESS").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let file = std::fs::read_to_string(&path).unwrap();
        let line = made.lines().zip(file.lines()).position(|(a, b)| a != b);
        assert!(
            made == file,
            "corpus/application.ddt differs from line {line:?} on: DDTC_BLESS=1 rewrites it"
        );
    }

    #[test]
    fn there_are_31_layouts_at_each_size() {
        let names: HashSet<String> = rows(Sizes::Sweep).into_iter().map(|r| r.name).collect();
        assert_eq!(names.len(), 93);
        for size in [".S", ".M", ".L"] {
            assert_eq!(names.iter().filter(|n| n.ends_with(size)).count(), 31);
        }
        assert_eq!(rows(Sizes::Corpus).len(), 62);
    }
}
