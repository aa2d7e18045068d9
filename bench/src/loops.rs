//! Descriptions of the loops that a programmer would write instead of using a datatype. The C
//! sources are made from them.
//!
//! Invariant: a description shares nothing with the datatype of its layout except the parameters.
//! So if both move the same bytes, both are right.

/// Type of the elements that the loops assign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elem {
    Int,
    Float,
    Double,
}

impl Elem {
    /// Returns the name of the type in C.
    pub(crate) fn c_name(self) -> &'static str {
        match self {
            Elem::Int => "int",
            Elem::Float => "float",
            Elem::Double => "double",
        }
    }

    /// Returns the size of the type in bytes.
    pub(crate) fn size(self) -> i64 {
        match self {
            Elem::Int | Elem::Float => 4,
            Elem::Double => 8,
        }
    }
}

/// One loop around a block.
#[derive(Clone, Debug)]
pub(crate) enum Dim {
    /// A loop of `trip` iterations. From one iteration to the next, the place in the user buffer
    /// advances by `stride` bytes.
    Stride { trip: i64, stride: i64 },
    /// A loop with one iteration for each entry of the table with index `table`. In an iteration,
    /// the place in the user buffer is the entry times `unit` bytes.
    Table { table: usize, unit: i64 },
}

/// The bytes that the body of the innermost loop copies.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    /// `n` adjacent elements.
    Elements { elem: Elem, n: i64 },
    /// The members of a C struct without its padding: offset in bytes, element type, and number of
    /// elements.
    Fields(Vec<(i64, Elem, i64)>),
    /// Blocks of unequal lengths. Block i has `lengths[i]` elements and begins at element
    /// `displacements[i]`. The fields hold the indices of the two tables.
    Ragged { elem: Elem, lengths: usize, displacements: usize },
}

/// One loop nest: the loops `dims` from the outermost to the innermost around `block`, which begins
/// `base` bytes after the origin of the user buffer.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) base: i64,
    pub(crate) dims: Vec<Dim>,
    pub(crate) block: Block,
}

/// The hand-written loops of a layout: loop nests that run one after the other, in the order of the
/// packed bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loops {
    pub(crate) parts: Vec<Part>,
    /// The index arrays that the loops read, as text in the list notation of the corpus.
    pub(crate) tables: Vec<String>,
}

impl Block {
    /// Returns the number of bytes in a block, or `None` if blocks have different sizes.
    pub(crate) fn size(&self) -> Option<i64> {
        match self {
            Block::Elements { elem, n } => Some(elem.size() * n),
            Block::Fields(fields) => Some(fields.iter().map(|(_, elem, n)| elem.size() * n).sum()),
            Block::Ragged { .. } => None,
        }
    }

    /// Returns the element type of the pointer that moves over the user buffer, or `None` for
    /// structures.
    pub(crate) fn elem(&self) -> Option<Elem> {
        match self {
            Block::Elements { elem, .. } | Block::Ragged { elem, .. } => Some(*elem),
            Block::Fields(_) => None,
        }
    }
}

impl Part {
    /// Returns the offset of the first byte that this part touches and that of the end of the last
    /// one, as [`Loops::span`] does for all parts.
    fn span(&self, tables: &[Vec<i64>]) -> Option<(i64, i64)> {
        let (mut low, mut high) = (self.base, self.base);
        for dim in &self.dims {
            let (min, max) = match *dim {
                Dim::Stride { trip, stride } if trip > 0 => {
                    (0.min((trip - 1) * stride), 0.max((trip - 1) * stride))
                }
                Dim::Stride { .. } => return None,
                Dim::Table { table, unit } => {
                    (tables[table].iter().min()? * unit, tables[table].iter().max()? * unit)
                }
            };
            (low, high) = (low + min, high + max);
        }
        let (first, end) = match &self.block {
            Block::Elements { elem, n } => (0, elem.size() * n),
            Block::Fields(fields) => {
                (fields.iter().map(|f| f.0).min()?, fields.iter().map(|f| f.0 + f.1.size() * f.2).max()?)
            }
            Block::Ragged { elem, lengths, displacements } => {
                let ends = tables[*displacements].iter().zip(&tables[*lengths]).map(|(d, l)| d + l);
                (tables[*displacements].iter().min()? * elem.size(), ends.max()? * elem.size())
            }
        };
        Some((low + first, high + end))
    }

    /// Returns the number of bytes that this part packs, given the tables of its layout.
    pub(crate) fn payload(&self, tables: &[Vec<i64>]) -> i64 {
        let trips: i64 = self
            .dims
            .iter()
            .map(|dim| match *dim {
                Dim::Stride { trip, .. } => trip,
                Dim::Table { table, .. } => tables[table].len() as i64,
            })
            .product();
        match &self.block {
            Block::Ragged { elem, lengths, .. } => trips * elem.size() * tables[*lengths].iter().sum::<i64>(),
            block => trips * block.size().unwrap_or(0),
        }
    }
}

impl Loops {
    /// Returns the offset of the first byte that the loops touch and that of the end of the last
    /// one, relative to the origin, or `None` if they touch none.
    pub(crate) fn span(&self, tables: &[Vec<i64>]) -> Option<(i64, i64)> {
        let spans = self.parts.iter().filter_map(|part| part.span(tables));
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Returns the number of bytes that all parts pack.
    pub(crate) fn payload(&self, tables: &[Vec<i64>]) -> i64 {
        self.parts.iter().map(|part| part.payload(tables)).sum()
    }

    /// Returns one loop nest without tables.
    pub(crate) fn one(base: i64, dims: &[(i64, i64)], elem: Elem, n: i64) -> Loops {
        Loops { parts: vec![Part::strided(base, dims, elem, n)], tables: Vec::new() }
    }
}

impl Part {
    /// Returns a part that copies blocks of `n` elements in nested loops. `dims` has the number of
    /// iterations and the stride in bytes of each loop, from the outermost to the innermost.
    pub(crate) fn strided(base: i64, dims: &[(i64, i64)], elem: Elem, n: i64) -> Part {
        let dims = dims.iter().map(|&(trip, stride)| Dim::Stride { trip, stride }).collect();
        Part { base, dims, block: Block::Elements { elem, n } }
    }

    /// Returns a part that copies blocks of `n` elements, one for each entry of the table with
    /// index `table`. An entry is the offset of its block in units of `n` elements.
    pub(crate) fn listed(base: i64, table: usize, elem: Elem, n: i64) -> Part {
        let unit = elem.size() * n;
        Part { base, dims: vec![Dim::Table { table, unit }], block: Block::Elements { elem, n } }
    }
}
