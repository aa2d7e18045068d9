//! C source of the hand-written loops: three styles and two directions of each layout.
//!
//! Invariant: each function is what a C programmer would write for this one layout, and nothing
//! else. It consists of nested loops in the order of the packed bytes, with restrict pointers whose
//! values are known only at run time, and with index arrays for layouts for which a program would
//! use some. All other numbers are constants, except that in the run-time style they are variables,
//! which are read once before the loops.

use std::fmt::Write as _;

use ddtc::internal::datatype::c::literal;
use ddtc::internal::kind::Direction;

use crate::layouts::Row;
use crate::loops::{Block, Dim, Part};
use crate::result::Column;

/// Style in which the loops are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Style {
    /// Assignments of elements. All extents are constants.
    Constant,
    /// Assignments of elements. All extents are known only at run time.
    Runtime,
    /// One `memcpy` of constant length for each block, or for each member of a structure, in loops
    /// of constant extents. If blocks have unequal lengths, a table has the lengths.
    Memcpy,
}

impl Style {
    /// All styles.
    pub(crate) const ALL: [Style; 3] = [Style::Constant, Style::Runtime, Style::Memcpy];

    /// Returns the short name of the style, as it stands in the names of C functions.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Style::Constant => "const",
            Style::Runtime => "runtime",
            Style::Memcpy => "memcpy",
        }
    }

    /// Returns the column of the results for the times of this style.
    pub(crate) fn column(self) -> Column {
        match self {
            Style::Constant => Column::Constant,
            Style::Runtime => Column::Runtime,
            Style::Memcpy => Column::Blocks,
        }
    }
}

/// A C function with the loops of one layout: its name in the shared library, and the numbers that
/// it is called with.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) symbol: String,
    /// Extents that the function reads at run time, in the order in which its source reads them.
    /// Functions of the styles with constant extents read none.
    pub(crate) extents: Vec<i64>,
}

/// Beginning of each source file.
pub(crate) const PRELUDE: &str = "#include <stddef.h>\n#include <string.h>\n\n";

/// Returns the C source of the loops of `row` in one style and direction, with the name of the
/// function and the extents with which it is called. `tables` has the contents of the index arrays
/// of the row.
pub(crate) fn function(
    row: &Row,
    tables: &[Vec<i64>],
    id: usize,
    style: Style,
    direction: Direction,
) -> (String, Function) {
    let symbol = format!("h{id}_{}_{}", style.name(), direction.name());
    let mut writer =
        Writer { style, direction, types: String::new(), extents: Vec::new(), body: String::new() };
    // The body has one loop nest for each part. While the body is written, the types and extents
    // that it needs are collected, because they come before the body in the source.
    let mut offset = 0;
    for (k, part) in row.loops.parts.iter().enumerate() {
        writer.part(part, tables, offset, &format!("{symbol}_{k}"));
        offset += part.payload(tables);
    }
    let (user, packed) = match direction {
        Direction::Pack => ("const char", "char"),
        Direction::Unpack => ("char", "const char"),
    };
    let mut source = format!("/* {} */\n{}", row.name, writer.types);
    let _ = writeln!(
        source,
        "void {symbol}({user} *restrict user, {packed} *restrict packed, const long *restrict x, \
         const int *const *restrict t)\n{{\n  (void)x; (void)t;"
    );
    for i in 0..row.loops.tables.len() {
        let _ = writeln!(source, "  const int *restrict t{i} = t[{i}];");
    }
    for i in 0..writer.extents.len() {
        let _ = writeln!(source, "  const long x{i} = x[{i}];");
    }
    source.push_str(&writer.body);
    source.push_str("}\n\n");
    (source, Function { symbol, extents: writer.extents })
}

struct Writer {
    style: Style,
    direction: Direction,
    types: String,
    extents: Vec<i64>,
    body: String,
}

impl Writer {
    /// Returns the C text that stands for a number of the layout: in the run-time style a variable
    /// that the function reads once, and otherwise a literal.
    fn number(&mut self, value: i64) -> String {
        if self.style == Style::Runtime {
            self.extents.push(value);
            format!("x{}", self.extents.len() - 1)
        } else {
            literal(value)
        }
    }

    /// Returns the C types of the two pointers that the loops move, one over the user buffer and
    /// one over the packed buffer, and the number of bytes in one step of the user pointer. For
    /// structures, both types are declared, with assertions about the layout of the first one.
    fn pointees(&mut self, part: &Part, prefix: &str) -> (String, String, i64) {
        match (&part.block, part.block.elem()) {
            _ if self.style == Style::Memcpy => ("char".into(), "char".into(), 1),
            (_, Some(elem)) => (elem.c_name().into(), elem.c_name().into(), elem.size()),
            (Block::Fields(fields), None) => {
                let mut members = String::new();
                for (i, (_, elem, n)) in fields.iter().enumerate() {
                    let _ = write!(members, " {} f{i}[{n}];", elem.c_name());
                }
                let stride = match part.dims.last() {
                    Some(Dim::Stride { stride, .. }) => *stride,
                    _ => fields.iter().map(|(offset, elem, n)| offset + elem.size() * n).max().unwrap_or(0),
                };
                let _ = write!(
                    self.types,
                    "typedef struct {{{members} }} {prefix}_u;\n\
                     typedef struct __attribute__((packed)) {{{members} }} {prefix}_p;\n\
                     _Static_assert(sizeof({prefix}_u) == {stride}, \"padding\");\n"
                );
                for (i, (offset, ..)) in fields.iter().enumerate() {
                    let _ = writeln!(
                        self.types,
                        "_Static_assert(offsetof({prefix}_u, f{i}) == {offset}, \"padding\");"
                    );
                }
                (format!("{prefix}_u"), format!("{prefix}_p"), stride)
            }
            _ => unreachable!("every other block has an element"),
        }
    }

    // Writes the C loop nest of one part of a layout. In the C text, `s` is the start of the part
    // in the user buffer, and `q` moves through the packed buffer.
    fn part(&mut self, part: &Part, tables: &[Vec<i64>], packed_offset: i64, prefix: &str) {
        let (user, packed, unit) = self.pointees(part, prefix);
        let (user_const, packed_const) = match self.direction {
            Direction::Pack => ("const ", ""),
            Direction::Unpack => ("", "const "),
        };
        let base = self.number(part.base);
        let at = self.number(packed_offset);
        let _ = writeln!(
            self.body,
            "  {{\n    {user_const}{user} *s = ({user_const}{user} *)(user + {base});\n    \
             {packed_const}{packed} *q = ({packed_const}{packed} *)(packed + {at});"
        );
        let mut place = String::from("s");
        let mut indent = String::from("    ");
        // Each dimension opens a loop and adds a term to the place of the block: a multiple of its
        // stride, or an entry of its table.
        for (d, dim) in part.dims.iter().enumerate() {
            let trip = match *dim {
                Dim::Stride { trip, .. } => trip,
                Dim::Table { table, .. } => tables[table].len() as i64,
            };
            let trip = self.number(trip);
            let _ = writeln!(self.body, "{indent}for (long i{d} = 0; i{d} < {trip}; ++i{d}) {{");
            indent.push_str("  ");
            match *dim {
                Dim::Stride { stride, .. } => {
                    let stride = self.number(stride / unit);
                    let _ = write!(place, " + i{d} * {stride}");
                }
                Dim::Table { table, unit: bytes } => {
                    let _ = write!(place, " + (long)t{table}[i{d}] * {}", bytes / unit);
                }
            }
        }
        self.block(part, tables, &format!("{user_const}{user} *a"), &place, &indent);
        for _ in &part.dims {
            indent.truncate(indent.len() - 2);
            let _ = writeln!(self.body, "{indent}}}");
        }
        self.body.push_str("  }\n");
    }

    /// Writes the body of the innermost loop, which copies one block and advances the packed
    /// pointer.
    fn block(&mut self, part: &Part, tables: &[Vec<i64>], declare: &str, place: &str, indent: &str) {
        let pack = self.direction == Direction::Pack;
        let assign = |i: &str| {
            let (a, q) = (format!("a{i}"), format!("q{i}"));
            if pack { format!("{q} = {a};") } else { format!("{a} = {q};") }
        };
        let copy = |a: &str, q: &str, n: &str| {
            if pack { format!("memcpy({q}, {a}, {n});") } else { format!("memcpy({a}, {q}, {n});") }
        };
        let bytes = part.block.size().unwrap_or(0);
        // Blocks of elements and of structure members have constant lengths. Blocks of unequal
        // lengths need another loop over the tables of lengths and displacements.
        let lines: Vec<String> = match (&part.block, self.style) {
            (Block::Elements { .. }, Style::Memcpy) => {
                vec![
                    format!("{declare} = {place};"),
                    copy("a", "q", &bytes.to_string()),
                    format!("q += {bytes};"),
                ]
            }
            (Block::Elements { n, .. }, _) => {
                let n = self.number(*n);
                vec![
                    format!("{declare} = {place};"),
                    format!("for (long k = 0; k < {n}; ++k) {}", assign("[k]")),
                    format!("q += {n};"),
                ]
            }
            (Block::Fields(fields), Style::Memcpy) => {
                let mut at = 0;
                let mut lines = vec![format!("{declare} = {place};")];
                for (offset, elem, n) in fields {
                    let bytes = elem.size() * n;
                    lines.push(copy(&format!("a + {offset}"), &format!("q + {at}"), &bytes.to_string()));
                    at += bytes;
                }
                lines.push(format!("q += {at};"));
                lines
            }
            (Block::Fields(fields), _) => {
                let mut lines = vec![format!("{declare} = {place};")];
                for (i, (.., n)) in fields.iter().enumerate() {
                    lines.push(format!("for (int k = 0; k < {n}; ++k) {}", assign(&format!("->f{i}[k]"))));
                }
                lines.push("q += 1;".into());
                lines
            }
            (Block::Ragged { elem, lengths, displacements }, style) => {
                let blocks = self.number(tables[*lengths].len() as i64);
                let (size, t) = (elem.size(), displacements);
                let mut lines = vec![format!("for (long b = 0; b < {blocks}; ++b) {{")];
                if style == Style::Memcpy {
                    lines.push(format!("  const size_t n = (size_t)t{lengths}[b] * {size};"));
                    lines.push(format!("  {declare} = {place} + (long)t{t}[b] * {size};"));
                    lines.push(format!("  {}", copy("a", "q", "n")));
                } else {
                    lines.push(format!("  const int n = t{lengths}[b];"));
                    lines.push(format!("  {declare} = {place} + t{t}[b];"));
                    lines.push(format!("  for (int k = 0; k < n; ++k) {}", assign("[k]")));
                }
                lines.push("  q += n;".into());
                lines.push("}".into());
                lines
            }
        };
        for line in lines {
            let _ = writeln!(self.body, "{indent}{line}");
        }
    }
}
