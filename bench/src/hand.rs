//! The hand-written loops of a set of layouts, compiled and loaded.

use std::collections::HashMap;
use std::error::Error;

use ddtc::internal::kind::Direction;

use crate::compile;
use crate::csource::{self, Style};
use crate::layouts::Row;
use crate::native::{HandLoop, Tables};

/// The hand-written loops of layouts: for each name of a layout, one entry for each style.
pub(crate) type ByName = HashMap<String, Vec<(Style, HandLoop)>>;

/// Compiles the hand-written loops of the layouts `rows` and returns them by the name of the
/// layout, one for each of [`Style::ALL`].
///
/// # Errors
/// Returns an error if there is no C compiler or the compiler refuses the source, or if the text of
/// an index list of a layout is wrong.
pub(crate) fn build(rows: &[Row]) -> Result<ByName, Box<dyn Error>> {
    // All functions of all rows go into one source, which is compiled once.
    let mut source = String::from(csource::PRELUDE);
    let mut made = Vec::new();
    for (id, row) in rows.iter().enumerate() {
        let tables: Vec<Vec<i64>> = row
            .loops
            .tables
            .iter()
            .map(|text| ddtc::internal::corpus::list(text))
            .collect::<Result<_, _>>()?;
        let mut functions = Vec::new();
        for style in Style::ALL {
            functions.push(Direction::BOTH.map(|direction| {
                let (text, function) = csource::function(row, &tables, id, style, direction);
                source.push_str(&text);
                function
            }));
        }
        made.push((row, tables, functions));
    }
    let library = compile::load(&source)?;
    let mut all = HashMap::new();
    for (row, tables, functions) in made {
        let mut loops = Vec::new();
        for (style, [pack, unpack]) in Style::ALL.into_iter().zip(functions) {
            let symbols = [library.symbol(&pack)?, library.symbol(&unpack)?];
            let (span, payload) = (row.loops.span(&tables), row.loops.payload(&tables));
            loops.push((style, HandLoop::new(symbols, Tables::new(&tables)?, span, payload)));
        }
        all.insert(row.name.clone(), loops);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use ddtc::internal::engine::{Config, Engine, Mode};

    use super::*;
    use crate::bytes;
    use crate::layouts::{self, Sizes};
    use crate::native::Subject;
    use crate::result::Column;
    use crate::strides;

    #[test]
    fn every_hand_loop_moves_the_bytes_of_its_datatype() {
        let off = Engine::new(Config { mode: Mode::Off, ..Config::default() });
        let mut rows = layouts::rows(Sizes::Sweep);
        // All layouts of the grid of strides have the same form, so every 11th of them is
        // sufficient.
        rows.extend(strides::rows().into_iter().step_by(11));
        let mut loops = build(&rows).unwrap();
        for row in &rows {
            let entry = row.entry().unwrap();
            let mut subject = Subject::new(&entry).unwrap();
            for (style, hand) in loops.remove(&row.name).unwrap() {
                subject.add_loops(style.column(), hand).unwrap_or_else(|e| panic!("{}: {e}", row.name));
            }
            subject.add_engine(Column::Interp, &off).unwrap();
            bytes::check(&mut subject, Column::Interp).unwrap_or_else(|e| panic!("{}: {e}", row.name));
        }
    }

    #[test]
    fn the_check_of_bytes_finds_a_wrong_order() {
        let off = Engine::new(Config { mode: Mode::Off, ..Config::default() });
        let mut rows = layouts::rows(Sizes::Corpus);
        rows.retain(|r| r.name == "NAS_MG_x.S");
        // If these two nested loops are exchanged, the C code moves the same bytes in another
        // order. Span and payload of the loops stay equal, so only the check of bytes can find this
        // fault.
        rows[0].loops.parts[0].dims.swap(0, 1);
        let mut subject = Subject::new(&rows[0].entry().unwrap()).unwrap();
        let (style, hand) = build(&rows).unwrap().remove("NAS_MG_x.S").unwrap().swap_remove(0);
        subject.add_loops(style.column(), hand).unwrap();
        subject.add_engine(Column::Interp, &off).unwrap();
        let fault = bytes::check(&mut subject, Column::Interp).unwrap_err();
        assert!(fault.starts_with("loop_const pack: packed byte 8 is"), "{fault}");
    }

    #[test]
    fn loops_over_other_memory_are_refused() {
        let mut rows = layouts::rows(Sizes::Corpus);
        rows.retain(|r| r.name == "vec_8B.S");
        let mut subject = Subject::new(&rows[0].entry().unwrap()).unwrap();
        rows[0].loops.parts[0].base = 8;
        let (style, hand) = build(&rows).unwrap().remove("vec_8B.S").unwrap().swap_remove(0);
        assert!(subject.add_loops(style.column(), hand).is_err());
    }
}
