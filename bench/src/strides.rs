//! A grid of layouts, with blocks of many lengths at many strides, in small and in large numbers.
//! It shows what individual layouts hide.
//!
//! Layouts of applications have only the lengths and strides that occur in the applications. The
//! grid shows how fast micro-kernels are at other lengths and strides, in comparison with a C loop
//! with the same constants.

use crate::layouts::Row;
use crate::loops::{Elem, Loops};

/// Lengths of a block in bytes: lengths of basic types, of vector registers and of one or several
/// cache lines, and lengths between these.
const LENGTHS: [i64; 16] = [4, 8, 12, 16, 24, 32, 48, 64, 72, 100, 128, 256, 320, 512, 1024, 2048];
/// Numbers of blocks: few, about as many as fit the first-level cache, and more.
const BLOCKS: [i64; 3] = [24, 256, 2048];

/// Returns the strides in bytes at which blocks of `len` bytes are measured: near ones, about two
/// and three times the length, and far ones up to more than a page.
fn strides(len: i64) -> Vec<i64> {
    let mut strides = vec![len + 8, 2 * len, 3 * len + 8, 264, 520, 1032, 4104];
    strides.retain(|&stride| stride > len);
    strides.sort_unstable();
    strides.dedup();
    strides
}

/// Returns the layouts of the grid.
pub(crate) fn rows() -> Vec<Row> {
    let grid = LENGTHS.into_iter().flat_map(|len| strides(len).into_iter().map(move |stride| (len, stride)));
    grid.flat_map(|(len, stride)| BLOCKS.map(|blocks| row(len, stride, blocks))).collect()
}

fn row(len: i64, stride: i64, blocks: i64) -> Row {
    let (elem, name) = if len % 8 == 0 { (Elem::Double, "double") } else { (Elem::Float, "float") };
    let elements = len / elem.size();
    Row {
        name: format!("{len}B_by_{stride}.{blocks}"),
        comment: format!("{blocks} blocks of {len} B by {stride} B"),
        count: 1,
        text: format!("hvector({blocks}, {elements}, {stride}, {name})"),
        loops: Loops::one(0, &[(blocks, stride)], elem, elements),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn strides_leave_gaps_of_whole_elements() {
        let rows = rows();
        assert_eq!(rows.iter().map(|row| &row.name).collect::<HashSet<_>>().len(), rows.len());
        for len in LENGTHS {
            let elem = if len % 8 == 0 { 8 } else { 4 };
            assert!(strides(len).iter().all(|stride| stride > &len && stride % elem == 0), "{len}");
        }
    }

    #[test]
    fn a_row_by_hand() {
        let row = row(12, 264, 24);
        let entry = row.entry().unwrap();
        assert_eq!((entry.datatype.size(), entry.datatype.extent()), (24 * 12, 23 * 264 + 12));
        assert_eq!(row.loops.span(&[]), Some((0, 23 * 264 + 12)));
    }
}
