//! Draws memory in rows as characters, for terminals.

use std::fmt::Write as _;

use super::bins::{Bins, Cell};
use super::fold::{Fold, Line};
use super::map::Map;
use super::picture::{cut, facts, how, in_bytes, ruler_step};
use super::scene::Paint;

/// Maximum number of lines of memory in a picture of characters. If memory has more rows, several
/// rows share a line. There may be a few lines more than this maximum if rows without data are left
/// out: a line marks each such place, and the line before it may show fewer rows than the others.
const LINES: usize = 32;
/// Maximum number of characters by which one cell is drawn. A cell is a range of columns in one
/// line of the picture.
const MAX_CELL_WIDTH: usize = 4;
/// On a terminal that has only ASCII, packed bytes are drawn by these characters, from the first
/// packed byte to the last.
const ORDER: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// Capabilities of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terminal {
    /// Number of characters in a line.
    pub(crate) columns: usize,
    pub(crate) ascii: bool,
    pub(crate) colour: bool,
}

/// Returns a picture, with the title `name`, of the memory that `map` lists. Rows have `width`
/// bytes. If `width` is `None`, a width is chosen that shows the structure of the type.
pub(crate) fn write(map: &Map, name: &str, width: Option<u64>, terminal: Terminal) -> String {
    // Lay out the picture. A line consists of a margin, a bar and the cells. The margin of a line
    // has the displacement of the first byte that the line shows, or nothing if the line stands for
    // rows that are left out (`None`). All margins are as wide as the longest of these numbers. The
    // rest of the terminal's line, without its last character, is for the cells, each of which is
    // drawn by the same number of characters (`each`). The cells get at least 8 characters, even if
    // the lines are then too long for a narrow terminal.
    let fold = Fold::new(map, width, LINES);
    let starts: Vec<Option<String>> =
        (0..fold.lines.len()).map(|l| fold.memory(l).map(|(at, _)| (at + fold.from).to_string())).collect();
    let gutter = starts.iter().flatten().map(String::len).max().unwrap_or(1);
    let room = terminal.columns.saturating_sub(gutter + 3).max(8);
    let bins = Bins::new(map, &fold, room);
    let each = (room / bins.columns).clamp(1, MAX_CELL_WIDTH);

    // Write what stands above the rows: the title, the numbers of bytes, and the ruler.
    let mut out = format!("{}\n", cut(name, terminal.columns));
    wrapped(&mut out, &facts(map), terminal.columns);
    out.push('\n');
    out.push_str(&ruler(&fold, &bins, each, gutter, room));
    // Write the rows. A line that stands for rows without data says how many bytes are left out.
    // `starts` has a number for every other line, so the last arm is never taken.
    let bar = if terminal.ascii { '|' } else { '\u{2502}' };
    for (line, start) in starts.iter().enumerate() {
        match (start, fold.lines[line]) {
            (Some(start), _) => {
                let _ = write!(out, "{start:>gutter$} {bar}");
                let mut row = String::new();
                for column in 0..bins.columns {
                    row.push_str(&shown(map, &fold, &bins, (line, column), each, terminal));
                }
                let _ = writeln!(out, "{}", row.trim_end());
            }
            (None, Line::Break { rows }) => {
                let _ = writeln!(
                    out,
                    "{:>gutter$} ~ left out: {} without a byte",
                    "",
                    in_bytes(rows * fold.width)
                );
            }
            (None, Line::Rows { .. }) => {}
        }
    }
    // Write what stands below the rows: the bounds of the type, the length of the rows, and what
    // the characters and colours mean.
    out.push('\n');
    wrapped(&mut out, &bounds(map), terminal.columns);
    wrapped(&mut out, &how(map, &fold), terminal.columns);
    wrapped(&mut out, &legend(map, &fold, &bins, each, terminal), terminal.columns);
    out
}

/// Returns the ruler: a line of column offsets in bytes, each written above the cell that contains
/// this column.
fn ruler(fold: &Fold, bins: &Bins, each: usize, gutter: usize, room: usize) -> String {
    let widest = format!("+{}", fold.to).len() + 2;
    let shown = fold.to - fold.from;
    let chars = (bins.columns * each).min(room);
    let step = ruler_step(bins.width, shown, (chars / widest).max(1) as i128);
    let mut line = vec![b' '; gutter + 2 + chars + widest];
    for k in 0..=shown / step {
        let text = format!("+{}", fold.from + k * step);
        let at = gutter + 2 + (k * step / bins.width) as usize * each;
        if at + text.len() <= gutter + 2 + room {
            line[at..at + text.len()].copy_from_slice(text.as_bytes());
        }
    }
    format!("{}\n", String::from_utf8_lossy(&line).trim_end())
}

/// Returns the text that shows the cell at `column` of `line`: one character, `each` times.
fn shown(
    map: &Map,
    fold: &Fold,
    bins: &Bins,
    (line, column): (usize, usize),
    each: usize,
    terminal: Terminal,
) -> String {
    let cell = bins.cell(line, column);
    if cell.bytes == 0 {
        let from = fold.from + column as i128 * bins.width;
        let (start, stop) = fold.memory(line).unwrap_or((0, 0));
        let (low, high) = map.range;
        // The cell has no packed byte. It is drawn as a gap if at least a part of it lies between
        // the lowest and the highest bound of all instances, and otherwise as a space.
        let inside = start + from < high && stop - fold.width + from + bins.width > low;
        let gap = if terminal.ascii { '.' } else { '\u{b7}' };
        return (if inside { gap } else { ' ' }).to_string().repeat(each);
    }
    let t = cell.mean() / map.bytes.max(1) as f64;
    let share = cell.bytes as f64 / bins.memory(fold, line, column).max(1) as f64;
    let text = glyph(&cell, t, share, terminal).to_string().repeat(each);
    match terminal.colour {
        true => {
            let [r, g, b] = Paint::Scale(t).colour(false);
            format!("\u{1b}[38;2;{r};{g};{b}m{text}\u{1b}[0m")
        }
        false => text,
    }
}

fn glyph(cell: &Cell, t: f64, share: f64, terminal: Terminal) -> char {
    let step = |n: usize, x: f64| ((x * n as f64) as usize).min(n - 1);
    let shades = ['\u{2591}', '\u{2592}', '\u{2593}', '\u{2588}'];
    match (cell.shared, terminal.ascii) {
        (true, true) => '*',
        (true, false) => '\u{2573}',
        (false, true) => char::from(ORDER[step(ORDER.len(), t)]),
        // The colour already shows the position in the packed stream, so the shade can show which
        // share of the cell is packed.
        (false, false) if terminal.colour => shades[step(4, share)],
        (false, false) => shades[step(4, t)],
    }
}

fn bounds(map: &Map) -> String {
    let t = &map.datatype;
    let mut text = format!("lb {}, ub {}", t.lb(), t.ub());
    if t.size() > 0 {
        let _ = write!(text, ", true lb {}, true ub {}", t.true_lb(), t.true_ub());
    }
    if map.count > 1 {
        let _ = write!(text, "; an instance every {} B", t.extent());
    }
    text
}

fn legend(map: &Map, fold: &Fold, bins: &Bins, each: usize, terminal: Terminal) -> String {
    let rows =
        if fold.rows_per_line > 1 { format!(" of {} rows", fold.rows_per_line) } else { String::new() };
    let many = if each == 1 { "1 character".to_owned() } else { format!("{each} characters") };
    let mut text = format!("{many}: {} B{rows}; ", bins.width);
    text += match (terminal.ascii, terminal.colour) {
        (true, _) => "0 to z: from the first packed byte to the last; '.': not packed",
        (false, true) => {
            "from blue to yellow: from the first packed byte to the last; shade: share packed; \u{b7}: not packed"
        }
        (false, false) => {
            "from \u{2591} to \u{2588}: from the first packed byte to the last; \u{b7}: not packed"
        }
    };
    if !map.shared.is_empty() {
        text += if terminal.ascii { "; *: entries overlap" } else { "; \u{2573}: entries overlap" };
    }
    if !bins.exact {
        text += "; from samples";
    }
    text
}

/// Appends `text` in lines of at most `columns` characters, broken at spaces.
fn wrapped(out: &mut String, text: &str, columns: usize) {
    let mut used = 0;
    for word in text.split(' ') {
        let n = word.chars().count();
        if used > 0 && used + 1 + n > columns {
            out.push('\n');
            used = 0;
        }
        if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += n;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(t: &str, count: u64, columns: usize, ascii: bool) -> String {
        let map = Map::new(&ddtc::internal::corpus::datatype(t).unwrap(), count).unwrap();
        write(&map, t, None, Terminal { columns, ascii, colour: false })
    }

    #[test]
    fn a_struct_by_hand() {
        let t = "resized(0, 32, struct([1,1,3], [0,8,16], [int,double,float]))";
        let got = text(t, 1, 80, true);
        let row = got.lines().find(|l| l.starts_with("0 |")).unwrap();
        // Each byte is drawn as two characters. The row shows 4 packed bytes, a gap of 4 bytes, 20
        // packed bytes, and a gap of 4 bytes at the end of the extent. The 36 characters of `ORDER`
        // stand for positions among the 24 packed bytes. The middle of byte 3 is at
        // 3.5 / 24 * 36 = 5.25, so this byte is drawn with the character `5`.
        assert_eq!(row.len(), 3 + 64, "{got}");
        let at = |byte: usize| &row[3 + 2 * byte..][..2];
        assert_eq!(
            (at(0), at(3), at(4), at(7), at(27), at(28), at(31)),
            ("00", "55", "..", "..", "zz", "..", "..")
        );
        assert!(got.contains("lb 0, ub 32, true lb 0, true ub 28\n") && got.contains("+0  "), "{got}");
    }

    #[test]
    fn lines_are_no_longer_than_the_terminal() {
        for t in
            ["FFT2D_scatter.S", "indexed_1to8.S", "large.extent_1t", "overlap.vector", "zero.struct", "dag.2"]
        {
            let (datatype, count) = ddtc::internal::corpus::asked(t).unwrap();
            let map = Map::new(&datatype, count).unwrap();
            for columns in [40, 80, 132] {
                for ascii in [false, true] {
                    let text = write(&map, t, None, Terminal { columns, ascii, colour: false });
                    assert!(
                        text.lines().all(|l| l.chars().count() <= columns.max(60)),
                        "{t} {columns}\n{text}"
                    );
                    assert!(!ascii || text.is_ascii(), "{t}\n{text}");
                }
            }
        }
    }
}
