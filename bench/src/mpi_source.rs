//! The layouts as C source for programs that use an MPI library: functions that build the
//! datatypes, and the loops that a programmer would write instead.

use std::error::Error;
use std::fmt::Write as _;

use ddtc::internal::corpus::CorpusEntry;
use ddtc::internal::datatype::c::{HostBounds, constructors};
use ddtc::internal::kind::Direction;

use crate::csource::{self, Style};
use crate::layouts::Row;

/// The numbers by which a C program describes a layout: the number of instances, the range of bytes
/// that they span around the buffer's address, and the number of packed bytes.
pub(crate) struct Numbers {
    pub(crate) count: i32,
    pub(crate) low: i64,
    pub(crate) high: i64,
    pub(crate) payload: u64,
}

/// Appends the C function `make_ID`, which builds the datatype of `entry`, to `out`. Returns the
/// other numbers of the layout.
///
/// # Errors
/// Returns an error if the layout has no bytes or does not fit the `int` arguments of `MPI_Pack`.
pub(crate) fn maker(id: usize, entry: &CorpusEntry, out: &mut String) -> Result<Numbers, Box<dyn Error>> {
    let payload = entry.payload().filter(|&n| n > 0 && i32::try_from(n).is_ok());
    let (Some(payload), Some((low, high)), Ok(count)) = (payload, entry.span(), i32::try_from(entry.count))
    else {
        return Err(format!("{} has no bytes, or more than an int of MPI_Pack says", entry.name).into());
    };
    let _ = writeln!(out, "static MPI_Datatype make_{id}(void) {{");
    let root = constructors(&entry.datatype, HostBounds::Resized, out);
    let _ = writeln!(out, "    return {root};\n}}");
    // The range is extended to contain offset 0, so that the address that is passed to MPI is
    // neither before the buffer nor after its end.
    Ok(Numbers { count, low: low.min(0), high: high.max(0), payload })
}

/// Returns the text of `layouts.h` for `tests/runtime/bench`. For each row it has a C function that
/// builds the datatype, and the loops by assignment and by `memcpy` in both directions. A table of
/// all rows follows.
///
/// # Errors
/// Returns an error if a layout has no bytes or does not fit the `int` arguments of `MPI_Pack`, or
/// if the text of one of its index lists is wrong.
pub(crate) fn with_loops(rows: &[Row]) -> Result<String, Box<dyn Error>> {
    let mut out = String::from(csource::PRELUDE);
    let mut table = String::new();
    for (id, row) in rows.iter().enumerate() {
        let Numbers { count, low, high, payload } = maker(id, &row.entry()?, &mut out)?;
        let lists: Vec<Vec<i64>> = row
            .loops
            .tables
            .iter()
            .map(|text| ddtc::internal::corpus::list(text))
            .collect::<Result<_, _>>()?;
        for (i, list) in lists.iter().enumerate() {
            let numbers: Vec<String> = list.iter().map(i64::to_string).collect();
            let _ = writeln!(out, "static const int table_{id}_{i}[] = {{{}}};", numbers.join(", "));
        }
        // The C array of pointers to index lists has one entry more than there are lists, since a
        // row may have no list and C has no empty arrays.
        let names: String = (0..lists.len()).map(|i| format!("table_{id}_{i}, ")).collect();
        let _ = writeln!(out, "static const int *const tables_{id}[] = {{{names}NULL}};");
        let mut loops = Vec::new();
        for style in [Style::Constant, Style::Memcpy] {
            for direction in Direction::BOTH {
                let (source, function) = csource::function(row, &lists, id, style, direction);
                out.push_str(&source);
                loops.push(function.symbol);
            }
        }
        let [pack, unpack, block_pack, block_unpack] = &loops[..] else {
            unreachable!("two styles, two directions")
        };
        let _ = writeln!(
            table,
            "    {{\"{}\", make_{id}, {count}, {low}, {high}, {payload}, {{{pack}, {block_pack}}}, {{{unpack}, {block_unpack}}}, \
             tables_{id}}},",
            row.name
        );
    }
    let _ = writeln!(out, "static const struct layout layouts[] = {{\n{table}}};");
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layouts::{self, Sizes};

    #[test]
    fn every_row_has_a_maker_its_loops_and_a_line_of_the_table() {
        let rows = layouts::rows(Sizes::Corpus);
        let text = with_loops(&rows).unwrap();
        for (id, row) in rows.iter().enumerate() {
            assert_eq!(text.matches(&format!("MPI_Datatype make_{id}(void) {{")).count(), 1);
            assert_eq!(text.matches(&format!("    {{\"{}\", make_{id}, ", row.name)).count(), 1);
            for (style, direction) in [("const", "pack"), ("memcpy", "unpack")] {
                assert_eq!(text.matches(&format!("void h{id}_{style}_{direction}(")).count(), 1);
            }
        }
    }

    #[test]
    fn what_an_int_does_not_count_is_refused() {
        let huge = ddtc::internal::corpus::parse("huge = 4 of contiguous(1000000000, int)\n").unwrap();
        assert!(maker(0, &huge[0], &mut String::new()).is_err());
    }
}
