//! The application layouts: for each name and size, the datatype as text and the loops that a
//! programmer would write.
//!
//! The layouts have the access patterns of DDTBench (Schneider, Gerstenberger, Hoefler:
//! "Micro-applications for communication data access patterns and MPI datatypes", EuroMPI 2012) and
//! those of common synthetic layouts. `corpus/application.ddt` is the text of [`rows`] at sizes S
//! and L, which a test checks. A sweep has every layout at each payload of [`PAYLOADS`] that is
//! possible for the layout.

use ddtc::internal::corpus::CorpusEntry;
use ddtc::internal::methods::*;

use crate::loops::{Block, Dim, Elem, Loops, Part};
use Elem::{Double, Float};

/// One layout at one size.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Name, with the suffix of the size.
    pub(crate) name: String,
    /// Description of the layout, with its parameters.
    pub(crate) comment: String,
    /// Number of instances.
    pub(crate) count: i64,
    /// The datatype as text, in the notation of corpus files.
    pub(crate) text: String,
    /// Hand-written loops that move the same bytes as the datatype, in the same order.
    pub(crate) loops: Loops,
}

impl Row {
    /// Returns the row as text of a corpus file.
    fn render(&self) -> String {
        let count = if self.count == 1 { String::new() } else { format!("{} of ", self.count) };
        format!("# {}\n{} = {count}{}\n", self.comment, self.name, self.text)
    }

    /// Returns true if the payload of the row is between half of `payload` bytes and twice as much,
    /// and if the row spans at most [`MAX_SPAN`] bytes.
    fn is_about(&self, payload: i64) -> bool {
        let Ok(entry) = self.entry() else { return false };
        let (t, count) = (&entry.datatype, entry.count as i64);
        let bytes = t.size().saturating_mul(count);
        let span = t.true_extent().saturating_add(t.extent().saturating_mul(count - 1));
        (payload / 2..=2 * payload).contains(&bytes) && span <= MAX_SPAN
    }

    /// Returns the row as a corpus entry.
    ///
    /// # Errors
    /// Those of `corpus::parse`, or class `Intern` if the text has no entry. A test excludes both.
    pub(crate) fn entry(&self) -> ddtc::Result<CorpusEntry> {
        let rule = "must be one entry";
        let entry = ddtc::internal::corpus::parse(&self.render())?.pop();
        entry.ok_or_else(|| ddtc::Error::new(ddtc::ErrorClass::Intern, "layouts", "row", &self.name, rule))
    }
}

/// The sizes at which [`rows`] returns each layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// Sizes S and L, which are the rows of the corpus.
    Corpus,
    /// The payloads of [`PAYLOADS`].
    Sweep,
}

/// Payloads of a sweep in bytes, with the suffixes of their names: from 256 B to 16 MiB, each four
/// times the previous one.
pub(crate) const PAYLOADS: [(i64, &str); 9] = [
    (256, "256B"),
    (1 << 10, "1KiB"),
    (4 << 10, "4KiB"),
    (16 << 10, "16KiB"),
    (64 << 10, "64KiB"),
    (256 << 10, "256KiB"),
    (1 << 20, "1MiB"),
    (4 << 20, "4MiB"),
    (16 << 20, "16MiB"),
];

/// Maximum number of bytes of user memory that a row of a sweep spans.
const MAX_SPAN: i64 = 256 << 20;

/// The parameters that determine a layout at one size: for sizes S and L, and as a function that
/// returns them for about a given payload in bytes. The row for a payload is dropped if its real
/// payload is less than half or more than twice the wanted one, or if it spans more than
/// [`MAX_SPAN`] bytes.
struct Parameters<P> {
    s: P,
    l: P,
    at: fn(i64) -> P,
}

/// Collects the rows of all layouts at the wanted sizes.
struct Rows {
    sizes: Sizes,
    rows: Vec<Row>,
}

/// The parts of a [`Row`] except for its name, as the function that describes a layout makes them
/// from the parameters of one size.
struct Made {
    comment: String,
    count: i64,
    text: String,
    loops: Loops,
}

impl Rows {
    fn add<P>(&mut self, name: &str, parameters: Parameters<P>, make: impl Fn(P) -> Made) {
        let row = |suffix: &str, parameters: P| {
            let Made { comment, count, text, loops } = make(parameters);
            Row { name: format!("{name}.{suffix}"), comment, count, text, loops }
        };
        let Parameters { s, l, at } = parameters;
        match self.sizes {
            Sizes::Corpus => self.rows.extend([row("S", s), row("L", l)]),
            Sizes::Sweep => {
                let rows = PAYLOADS.into_iter().map(|(payload, suffix)| (payload, row(suffix, at(payload))));
                self.rows.extend(rows.filter(|(payload, row)| row.is_about(*payload)).map(|(_, row)| row));
            }
        }
    }
}

/// Places arrays one after the other in the memory that one struct datatype describes. Each array
/// begins at a cache line.
#[derive(Default)]
struct Arrays {
    end: i64,
}

impl Arrays {
    /// Places the next array, which has `bytes` bytes, and returns the displacement of its first
    /// byte.
    fn append(&mut self, bytes: i64) -> i64 {
        let base = (self.end + 63) / 64 * 64;
        self.end = base + bytes;
        base
    }
}

/// Returns the text of a struct datatype with one block for each of `members`, which are pairs of a
/// displacement and a type. Each member is written on a line of its own.
fn structure(members: &[(i64, String)]) -> String {
    let places: Vec<String> = members.iter().map(|(place, _)| place.to_string()).collect();
    let types: Vec<&str> = members.iter().map(|(_, t)| t.as_str()).collect();
    let (ones, places, types) =
        (vec!["1"; members.len()].join(","), places.join(","), types.join(",\n     "));
    format!("struct(\n    [{ones}],\n    [{places}],\n    [{types}])")
}

/// Returns the rows of all application layouts at the sizes `sizes`, in the order of the corpus.
pub(crate) fn rows(sizes: Sizes) -> Vec<Row> {
    let mut rows = Rows { sizes, rows: Vec::new() };
    wrf(&mut rows);
    grids(&mut rows);
    fft(&mut rows);
    particles(&mut rows);
    synthetic(&mut rows);
    rows.rows
}

/// Returns the text of `corpus/application.ddt`.
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

/// The bounds (ims, ime, jms, jme, is, ie, js, je) of one WRF patch.
type Patch = [i64; 8];

/// Adds the WRF halo exchange: four 2-D, three 3-D and two 4-D float arrays in one struct.
fn wrf(rows: &mut Rows) {
    let y = || Parameters {
        s: [4, 22, 4, 27, 8, 18, 11, 13],
        l: [-4, 27, 34, 85, 1, 23, 41, 43],
        at: |payload| {
            let n = halo_columns(payload);
            [0, n + 8, 0, n + 8, 4, n + 3, 4, 6]
        },
    };
    let x = || Parameters {
        s: [4, 22, 4, 27, 13, 15, 8, 23],
        l: [-4, 27, 34, 85, 18, 20, 38, 81],
        at: |payload| {
            let n = halo_columns(payload);
            [0, n + 8, 0, n + 8, 4, 6, 4, n + 3]
        },
    };
    rows.add("WRF_x_vec", x(), |p| halo(p, false));
    rows.add("WRF_x_sa", x(), |p| halo(p, true));
    rows.add("WRF_y_vec", y(), |p| halo(p, false));
    rows.add("WRF_y_sa", y(), |p| halo(p, true));
}

/// Returns the length of a halo in points if it is three points wide and has about `payload` bytes.
/// The halo is taken from four 2-D arrays and from five arrays with 65 levels. Each point is a
/// float of 4 bytes.
fn halo_columns(payload: i64) -> i64 {
    (payload / (4 * 3 * (4 + 5 * 65))).max(1)
}

/// Returns the integer that is nearest to the root of `x` of the given degree, but at least 1.
fn root(x: i64, degree: f64) -> i64 {
    (x as f64).powf(1.0 / degree).round().max(1.0) as i64
}

/// Returns the number of elements of `bytes` bytes each that fit in `payload` bytes, but at least
/// 1.
fn number(payload: i64, bytes: i64) -> i64 {
    (payload / bytes).max(1)
}

// Returns the halo of one WRF patch, as subarrays or as vectors. The loops are the same in both
// cases.
fn halo(patch: Patch, subarrays: bool) -> Made {
    let [ims, ime, jms, jme, is, ie, js, je] = patch;
    let (d1, d2, d3, d4) = (ime - ims + 1, 65, jme - jms + 1, 2);
    let (s1, s2, s3) = (ie - is + 1, 65, je - js + 1);
    let (i, j) = (is - ims, js - jms);
    let (row, plane, slab) = (4 * d1, 4 * d1 * d2, 4 * d1 * d2 * d3);
    let mut arrays = Arrays::default();
    let mut members = Vec::new();
    let mut parts = Vec::new();
    // Each of the nine arrays begins at a cache line. A subarray is placed at the beginning of its
    // array, since the datatype itself contains the start of the halo. A vector is placed at the
    // first point of the halo.
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
        let base = arrays.append(bytes);
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

/// Adds lattices and grids with fixed strides: MILC, NAS LU and NAS MG.
fn grids(rows: &mut Rows) {
    // MILC: all lattice sites of one parity (the even or the odd ones) come before those of the
    // other. Within a parity, the sites of one z plane form a block in each of the `t` time slices.
    // Both parities are sent.
    rows.add(
        "MILC_su3_zd",
        Parameters { s: [8; 4], l: [16; 4], at: |payload| [2 * root(payload / 192, 3.0); 4] },
        |[x, y, z, t]| {
            let (block, stride, half) = (x * y / 2, x * y * z / 2, 24 * x * y * z * t / 2);
            let site = "contiguous(6, float)";
            Made {
                comment: format!("MILC su3, z down: lattice (X,Y,Z,T) = ({x},{y},{z},{t}), both parities"),
                count: 1,
                text: format!("hvector(2, 1, {half}, vector({t}, {block}, {stride}, {site}))"),
                loops: Loops::one(0, &[(2, half), (t, 24 * stride)], Float, 6 * block),
            }
        },
    );
    // NAS LU: points of 5 doubles. The x face is contiguous, and the y face has one point in each
    // row.
    rows.add("NAS_LU_x", Parameters { s: 12, l: 1020, at: |payload| number(payload, 40) }, |nx| Made {
        comment: format!("NAS LU, x face: nx = {nx}"),
        count: 1,
        text: format!("contiguous({}, double)", 5 * nx),
        loops: Loops::one(0, &[], Double, 5 * nx),
    });
    rows.add("NAS_LU_y", Parameters { s: 12, l: 1020, at: |payload| number(payload, 40) }, |nx| Made {
        comment: format!("NAS LU, y face: nx = ny = {nx}"),
        count: 1,
        text: format!("vector({nx}, 1, {}, contiguous(5, double))", nx + 2),
        loops: Loops::one(0, &[(nx, 40 * (nx + 2))], Double, 5),
    });
    // NAS MG: faces of a grid without their edges. Each row of the x face has one point, and the
    // rows of the other faces are contiguous.
    let grid = |at| Parameters { s: [34, 18, 18], l: [514, 258, 258], at };
    rows.add("NAS_MG_x", grid(|payload| box_of(root(payload / 8, 2.0))), |[d1, d2, d3]| Made {
        comment: format!("NAS MG, x face of a {d1} x {d2} x {d3} grid"),
        count: 1,
        text: format!("hvector({}, 1, {}, vector({}, 1, {d1}, double))", d3 - 2, 8 * d1 * d2, d2 - 2),
        loops: Loops::one(0, &[(d3 - 2, 8 * d1 * d2), (d2 - 2, 8 * d1)], Double, 1),
    });
    rows.add("NAS_MG_y", grid(|payload| box_of(root(payload / 16, 2.0))), |[d1, d2, d3]| Made {
        comment: format!("NAS MG, y face of a {d1} x {d2} x {d3} grid"),
        count: 1,
        text: format!("vector({}, {}, {}, double)", d3 - 2, d1 - 2, d1 * d2),
        loops: Loops::one(0, &[(d3 - 2, 8 * d1 * d2)], Double, d1 - 2),
    });
    rows.add("NAS_MG_z", grid(|payload| box_of(root(payload / 16, 2.0))), |[d1, d2, d3]| Made {
        comment: format!("NAS MG, z face of a {d1} x {d2} x {d3} grid"),
        count: 1,
        text: format!("vector({}, {}, {d1}, double)", d2 - 2, d1 - 2),
        loops: Loops::one(0, &[(d2 - 2, 8 * d1)], Double, d1 - 2),
    });
}

/// Returns the dimensions of a NAS MG grid whose faces have, without their edges, `n` by `n` or `2
/// n` by `n` points.
fn box_of(n: i64) -> [i64; 3] {
    [2 * n + 2, n + 2, n + 2]
}

/// Adds the two sides of the transpose in a 2-D FFT, and a column type.
fn fft(rows: &mut Rows) {
    let complex = "contiguous(2, double)";
    let sizes = || Parameters { s: (256, 4), l: (1536, 4), at: |payload| (4 * root(payload / 64, 2.0), 4) };
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
    let columns = Parameters { s: 64, l: 1024, at: |payload| number(payload, 16 << 10) };
    rows.add("transpose_1024x16B", columns, |columns| Made {
        comment: format!("{columns} columns of a matrix of 1024 rows by {columns} columns of 16 B"),
        count: columns,
        text: format!("resized(0, 16, vector(1024, 1, {columns}, {complex}))"),
        loops: Loops::one(0, &[(columns, 16), (1024, 16 * columns)], Double, 2),
    });
}

/// Adds layouts with index lists: LAMMPS and SPECFEM3D.
fn particles(rows: &mut Rows) {
    // LAMMPS: the send side takes the atoms of an index list from several arrays. The receive side
    // writes them to the end of each array, where the ghost atoms are.
    let full = || Parameters {
        s: (1907, 1662, 11),
        l: (3534, 3062, 13),
        at: |payload| (number(payload, 64) * 8 / 7 + 1, number(payload, 64), 14),
    };
    rows.add("LAMMPS_full", full(), |p| atoms(p, 5));
    let atomic = Parameters {
        s: (1217, 114, 21),
        l: (4084, 243, 23),
        at: |payload| (12 * number(payload, 48), number(payload, 48), 24),
    };
    rows.add("LAMMPS_atomic", atomic, |p| atoms(p, 3));
    rows.add("LAMMPS_full_rx", full(), |(m, n, _)| {
        let mut arrays = Arrays::default();
        let mut members = Vec::new();
        let mut parts = Vec::new();
        for width in [3, 1, 1, 1, 1, 1] {
            let first = arrays.append(8 * width * (m + n)) + 8 * width * m;
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
    // SPECFEM3D: points from index lists, with 1 float or 3 floats each, and points at a fixed
    // stride.
    let outer = Parameters {
        s: (493, 3697, 31),
        l: (3225, 88_881, 33),
        at: |payload| (number(payload, 4), 12 * number(payload, 4), 34),
    };
    rows.add("SPECFEM3D_oc", outer, |(n, m, seed)| {
        let list = format!("@sample({n}, {m}, {seed})");
        Made {
            comment: format!("SPECFEM3D outer core: {n} of {m} points"),
            count: 1,
            text: format!("indexed_block(1, {list}, float)"),
            loops: Loops { parts: vec![Part::listed(0, 0, Float, 1)], tables: vec![list] },
        }
    });
    let points = Parameters {
        s: [1957, 39_929, 245, 1225, 41],
        l: [11_797, 834_917, 3009, 51_153, 45],
        at: |payload| {
            let n = number(payload, 15);
            [n, 40 * n, n / 4 + 1, 4 * n + 16, 47]
        },
    };
    rows.add("SPECFEM3D_cm", points, |[n, m, n2, m2, seed]| {
        let lists = [format!("@sample({n}, {m}, {seed})"), format!("@sample({n2}, {m2}, {})", seed + 1)];
        let mut arrays = Arrays::default();
        let places = [arrays.append(12 * m), arrays.append(12 * m2)];
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
    let blocks = Parameters { s: 5600, l: 7600, at: |payload| number(payload, 12) };
    rows.add("SPECFEM3D_mt", blocks, |d3| Made {
        comment: format!("SPECFEM3D material: {d3} blocks of 3 floats at twice their distance"),
        count: 1,
        text: format!("vector({d3}, 1, 2, contiguous(3, float))"),
        loops: Loops::one(0, &[(d3, 24)], Float, 3),
    });
}

/// Returns the send side of LAMMPS: the positions and `scalars` further arrays of `n` random atoms
/// out of `m`.
fn atoms((m, n, seed): (i64, i64, i64), scalars: usize) -> Made {
    let list = format!("@sample({n}, {m}, {seed})");
    let mut arrays = Arrays::default();
    let x = arrays.append(24 * m);
    let mut members = vec![(x, format!("indexed_block(3, @scale({list}, 3), double)"))];
    let mut parts = vec![Part::listed(x, 0, Double, 3)];
    for _ in 0..scalars {
        let base = arrays.append(8 * m);
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

/// Adds vectors with blocks of 8 bytes to 4 KiB, and the rows of a plane without the ghost points
/// at their ends.
fn vectors(rows: &mut Rows) {
    for bytes in [8, 16, 64, 256, 4096] {
        let payloads = Parameters { s: 16 << 10, l: 4096 << 10, at: |payload| payload };
        rows.add(&format!("vec_{bytes}B"), payloads, |payload| {
            let n = number(payload, bytes);
            Made {
                comment: format!("{n} blocks of {bytes} B at twice their distance, {} KiB", payload / 1024),
                count: 1,
                text: format!("vector({n}, {}, {}, double)", bytes / 8, bytes / 4),
                loops: Loops::one(0, &[(n, 2 * bytes)], Double, bytes / 8),
            }
        });
    }
    // As in many programs, the length of the rows of this plane (328 or 1000 bytes) is not a
    // multiple of a cache line. So the rows begin at different offsets within a line.
    for bytes in [328, 1000] {
        let payloads = Parameters { s: 8 << 10, l: 512 << 10, at: |payload| payload };
        rows.add(&format!("rows_{bytes}B"), payloads, |payload| {
            let n = number(payload, bytes);
            Made {
                comment: format!("{n} rows of a plane without their ghosts, {bytes} B of {} B", bytes + 16),
                count: 1,
                text: format!("vector({n}, {}, {}, double)", bytes / 8, bytes / 8 + 2),
                loops: Loops::one(0, &[(n, bytes + 16)], Double, bytes / 8),
            }
        });
    }
}

/// Adds common synthetic layouts.
fn synthetic(rows: &mut Rows) {
    vectors(rows);
    // Blocks at places that an index list gives: first of equal lengths, then of random lengths.
    let places = Parameters { s: (1000, 51), l: (100_000, 53), at: |payload| (number(payload, 8), 54) };
    rows.add("idxblk_8B", places, |(n, seed)| {
        let list = format!("@sum(@uniform({n}, 2, 6, {seed}))");
        Made {
            comment: format!("{n} doubles at increasing places, 2 to 6 apart"),
            count: 1,
            text: format!("indexed_block(1, {list}, double)"),
            loops: Loops { parts: vec![Part::listed(0, 0, Double, 1)], tables: vec![list] },
        }
    });
    let ragged = Parameters { s: (1000, 61), l: (100_000, 65), at: |payload| (number(payload, 36), 67) };
    rows.add("indexed_1to8", ragged, |(n, seed)| {
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
    // Faces of a cube, an array of structures with padding, and a block-cyclic part of a matrix.
    let cube = || Parameters { s: 64, l: 256, at: |payload| root(payload / 8, 2.0).max(2) };
    rows.add("face_x", cube(), |n| face(n, [n, n, 1]));
    rows.add("face_y", cube(), |n| face(n, [n, 1, n]));
    rows.add("face_z", cube(), |n| face(n, [1, n, n]));
    let structs = Parameters { s: 128, l: 262_144, at: |payload| number(payload, 24) };
    rows.add("struct_i_d_f3", structs, |n| {
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
    let cyclic = Parameters {
        s: (128, 8),
        l: (2048, 64),
        at: |payload| {
            let b = if payload < 64 << 10 { 4 } else { 32 };
            (2 * b * (root(payload / 2, 2.0) / (2 * b)).max(1), b)
        },
    };
    rows.add("darray_cyc", cyclic, |(n, b)| {
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

/// Returns the layer next to the last one of an n x n x n cube of doubles, in the dimension in
/// which `sub` is 1.
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
    fn there_are_33_layouts_at_both_sizes_and_over_payloads() {
        let corpus = rows(Sizes::Corpus);
        assert_eq!(corpus.len(), 66);
        let families = |rows: &[Row]| -> HashSet<String> {
            rows.iter().filter_map(|r| Some(r.name.rsplit_once('.')?.0.to_owned())).collect()
        };
        let sweep = rows(Sizes::Sweep);
        assert_eq!(families(&sweep), families(&corpus));
        // Each of the payloads has rows, and each name occurs only once.
        for (_, suffix) in PAYLOADS {
            let of =
                sweep.iter().filter(|r| r.name.rsplit_once('.').is_some_and(|(_, s)| s == suffix)).count();
            assert!((17..=33).contains(&of), "{of} rows of {suffix}");
        }
        assert_eq!(sweep.iter().map(|r| &r.name).collect::<HashSet<_>>().len(), sweep.len());
    }
}
