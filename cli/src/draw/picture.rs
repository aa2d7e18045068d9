//! Makes the scene that shows memory in rows: a ruler, lines of memory, the packed bytes, bounds,
//! borders of instances, the path of packing, and a legend.
//!
//! The packed bytes are drawn as blocks or as cells. A block is a contiguous piece of packed bytes.
//! If there are too many blocks, each line is divided into cells of equal width instead, and a
//! square in each cell shows which share of its bytes is packed.

use super::bins::Bins;
use super::fold::{Fold, Line};
use super::frame::{Frame, PLOT, Part, parts};
use super::map::Map;
use super::marks;
use super::scene::{Anchor, Paint, Scene, Shape, breadth};

/// Maximum number of lines of memory in a picture. If memory has more rows, several rows share a
/// line. There may be a few lines more than this maximum if rows without data are left out: a line
/// marks each such place, and the line before it may show fewer rows than the others.
pub(crate) const LINES: usize = 44;
/// Maximum number of cells into which a line of the picture is divided.
const MAX_COLUMNS: usize = 72;
/// Maximum number of blocks that are drawn one by one. If there are more, the picture shows cells
/// instead of blocks.
const MAX_BLOCKS: usize = 1200;
/// Maximum average number of blocks in a line. If the average is larger, the picture shows cells
/// instead of blocks.
const MAX_BLOCKS_PER_LINE: usize = 180;
/// Maximum number of ranges of memory that the picture marks because several entries of the type
/// map share them.
const MAX_SHARED: usize = 400;
/// Upper bound of the number of shapes in a picture, which the tests check. It follows from the
/// limits above and those of the module `marks`.
#[cfg(test)]
pub(crate) const MAX_SHAPES: usize = 4200;

/// Font size of numbers and labels.
const SMALL: f64 = 10.5;
/// Font size of the line of facts that is placed below the title.
const PLAIN: f64 = 11.5;
/// The y coordinate at which the first line of memory begins.
const TOP: f64 = 86.0;

/// Returns a picture, with the title `name`, of the memory that `map` lists, in the rows that
/// `fold` chose.
pub(crate) fn scene(map: &Map, fold: &Fold, name: &str) -> Scene {
    // Draw the blocks one by one if three conditions hold: all blocks are listed, each line shows
    // only one row of memory, and there are at most `MAX_BLOCKS` blocks, and on average at most
    // `MAX_BLOCKS_PER_LINE` in a line. Otherwise draw cells, which show how many of their bytes are
    // packed.
    let count = fold.lines.len();
    let draws_each = map.listed
        && fold.rows_per_line == 1
        && map.pieces.len() <= MAX_BLOCKS.min(MAX_BLOCKS_PER_LINE * count);
    let blocks: Option<Vec<(usize, Part)>> = draws_each.then(|| {
        let numbered_parts = |(i, p): (usize, &super::map::Piece)| {
            parts(fold, p.at, p.end()).into_iter().map(move |part| (i, part))
        };
        map.pieces.iter().enumerate().flat_map(numbered_parts).collect()
    });
    // Choose the geometry. The fewer lines there are, the higher each line is. The left margin has
    // room for the longest displacement.
    let step = match (&blocks, count) {
        (Some(_), 0..=3) => 44.0,
        (Some(_), _) => (440.0 / count as f64).clamp(11.0, 32.0),
        (None, _) => PLOT / MAX_COLUMNS as f64,
    };
    let high = match blocks {
        Some(_) => (step * 0.8).min(30.0),
        None => step - 0.5,
    };
    let starts: Vec<String> =
        (0..count).filter_map(|l| fold.memory(l)).map(|(at, _)| (at + fold.from).to_string()).collect();
    let widest = starts.iter().map(|text| breadth(text, SMALL)).fold(40.0, f64::max);
    let frame = Frame { left: 16.0 + widest + 8.0, top: TOP, high, step, from: fold.from, to: fold.to };

    // The widest label determines the width of the picture, and the width determines how much of
    // the title fits.
    let mut scene = Scene::default();
    let labels = marks::labels(map, fold, &frame);
    let gutter = labels.iter().map(|l| breadth(&l.text, SMALL)).fold(60.0, f64::max);
    scene.width = (frame.right() + gutter + 40.0).ceil();
    let room = ((scene.width - 32.0) / (15.0 * 0.56)) as usize;
    scene.title = cut(name, 400);
    scene.words((16.0, 26.0), Anchor::Start, 15.0, Paint::Ink, &cut(name, room));
    let (facts, how) = (facts(map), how(map, fold));
    scene.words((16.0, 45.0), Anchor::Start, PLAIN, Paint::Pale, &facts);
    scene.description = format!("{facts}; {how}");

    // Draw from back to front: the ruler and the lines of memory, the blocks or cells, the borders
    // of instances and the path of packing, the numbers in the blocks, the bounds with their
    // labels, and the legend.
    ruler(&mut scene, map, fold, &frame);
    lines(&mut scene, map, fold, &frame);
    let mut numbers = Vec::new();
    let legend = match &blocks {
        Some(blocks) => {
            numbers = draw_blocks(&mut scene, map, fold, &frame, blocks);
            if map.blocks > 0 { format!("{how}; numbers: first packed byte of a block") } else { how.clone() }
        }
        None => {
            let bins = Bins::new(map, fold, MAX_COLUMNS);
            draw_cells(&mut scene, map, fold, &frame, &bins);
            let about = if bins.exact { "" } else { ", about" };
            let rows = if fold.rows_per_line > 1 {
                format!(" of {} rows", fold.rows_per_line)
            } else {
                String::new()
            };
            format!("{how}; a square: {} B{rows}, as large as the share that is packed{about}", bins.width)
        }
    };
    let instances = marks::instances(&mut scene, map, fold, &frame);
    let path = blocks.as_ref().is_some_and(|blocks| marks::path(&mut scene, fold, &frame, blocks));
    scene.shapes.append(&mut numbers);
    marks::bounds(&mut scene, map, fold, &frame);
    let bottom = marks::draw_labels(&mut scene, &frame, labels).max(frame.y(count));
    let y = bottom + 22.0;
    self::legend(&mut scene, map, (frame.left, y), &legend, path, &instances);
    scene.height = y + 62.0;
    scene
}

/// Returns `text` on one line and truncated to at most `max` characters. Characters other than
/// printable ASCII become question marks.
pub(crate) fn cut(text: &str, max: usize) -> String {
    // Use only the characters that every font and terminal has.
    let plain: String = text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' })
        .collect();
    match plain.chars().count() > max {
        true => format!("{} ...", plain.chars().take(max.saturating_sub(4)).collect::<String>()),
        false => plain,
    }
}

/// Returns a sentence that states the number of instances, the packed bytes, the size and the
/// extent.
pub(crate) fn facts(map: &Map) -> String {
    let t = &map.datatype;
    let many = if map.count == 1 { String::new() } else { format!("{} instances, ", map.count) };
    let blocks = if map.blocks == 1 { "1 block".to_owned() } else { format!("{} blocks", map.blocks) };
    let size = match map.bytes > 0 {
        true => format!("{} B in {blocks}", map.bytes),
        false => "no byte".to_owned(),
    };
    format!("{many}{size}; one: size {} B, extent {} B", t.size(), t.extent())
}

/// Describes the rows of a picture in words, such as `rows of 64 B`.
pub(crate) fn how(map: &Map, fold: &Fold) -> String {
    let mut text = match fold.lines.len() {
        1 => format!("one row of {} B", fold.width),
        _ => format!("rows of {} B", fold.width),
    };
    if (fold.from, fold.to) != (0, fold.width) {
        text += &format!(", of which bytes {} to {} are shown", fold.from, fold.to);
    }
    if !map.shared.is_empty() {
        text += "; entries overlap";
    }
    text
}

/// Returns the distance in bytes between the marks of a ruler that covers `shown` bytes. The
/// distance is `element` times a power of two. Of these distances, it is the smallest one that
/// gives at most `max_steps` steps.
pub(crate) fn ruler_step(element: i128, shown: i128, max_steps: i128) -> i128 {
    let mut step = element.max(1);
    while shown / step > max_steps {
        step *= 2;
    }
    step
}

fn ruler(scene: &mut Scene, map: &Map, fold: &Fold, frame: &Frame) {
    let shown = fold.to - fold.from;
    // Choose the distance between the marks so that their labels do not touch. The last column has
    // the longest label.
    let widest = breadth(&format!("+{}", fold.to), SMALL) + 14.0;
    let max_steps = ((PLOT / widest) as i128).clamp(1, 12);
    let step = ruler_step(map.element(), shown, max_steps);
    let y = frame.top - 8.0;
    scene.line(&[(frame.left, y), (frame.right(), y)], Paint::Pale, 0.8, false);
    for k in 0..=shown / step {
        let column = fold.from + k * step;
        let x = frame.x(column);
        scene.line(&[(x, y - 4.0), (x, y)], Paint::Pale, 0.8, false);
        let text = if column == 0 { "+0 B".to_owned() } else { format!("+{column}") };
        scene.words((x, y - 8.0), Anchor::Middle, SMALL, Paint::Pale, &text);
    }
}

fn lines(scene: &mut Scene, map: &Map, fold: &Fold, frame: &Frame) {
    let every = (13.0 / frame.step).ceil().max(1.0) as usize;
    let (low, high) = map.range;
    let mut labelled = None;
    for (line, kind) in fold.lines.iter().enumerate() {
        let y = frame.y(line);
        let Some((start, stop)) = fold.memory(line) else {
            let Line::Break { rows } = kind else { continue };
            let middle = y + frame.high / 2.0;
            // Draw a break, where rows without data are left out, as a zigzag line with a text that
            // says how many bytes are left out.
            let teeth = 36;
            let points: Vec<(f64, f64)> = (0..=teeth)
                .map(|i| {
                    let dy = if i % 2 == 0 { -2.0 } else { 2.0 };
                    (frame.left + PLOT * f64::from(i) / f64::from(teeth), middle + dy)
                })
                .collect();
            scene.line(&points, Paint::Pale, 0.8, false);
            let text = format!("left out: {} without a byte", in_bytes(rows * fold.width));
            let w = breadth(&text, SMALL) + 12.0;
            let x = frame.left + (PLOT - w) / 2.0;
            let high = frame.high.min(14.0);
            scene.rect((x, middle - high / 2.0), (w, high), Paint::Ground, String::new());
            let (size, at) = (SMALL.min(high), (frame.left + PLOT / 2.0, middle + high.min(SMALL) * 0.35));
            scene.words(at, Anchor::Middle, size, Paint::Pale, &text);
            labelled = None;
            continue;
        };
        // First draw the whole line as memory outside of the bounds. Over it draw the part of the
        // line that lies in `map.range` as a gap. The packed bytes are drawn on top of both later.
        scene.rect((frame.left, y), (PLOT, frame.high), Paint::Outside, String::new());
        let (lo, hi) = (low.max(start), high.min(stop));
        if lo < hi {
            let one = fold.row(lo) == fold.row(hi - 1);
            let (from, to) = match one {
                true => (fold.column(lo), fold.column(lo) + hi - lo),
                false => (0, fold.width),
            };
            let (x, w) = (frame.x(from), frame.x(to) - frame.x(from));
            let hover = format!("displacements {lo} to {}", hi - 1);
            scene.rect((x, y), (w, frame.high), Paint::Gap, hover);
        }
        if labelled.is_none_or(|last| line - last >= every) {
            let text = (start + fold.from).to_string();
            let at = (frame.left - 8.0, y + frame.high / 2.0 + 3.7);
            scene.words(at, Anchor::End, SMALL, Paint::Pale, &text);
            labelled = Some(line);
        }
    }
}

/// Returns a number of bytes with a unit, such as `1.0 TiB`.
pub(crate) fn in_bytes(n: i128) -> String {
    match u64::try_from(n) {
        Ok(n) => ddtc_bench::bytes_in_words(n),
        Err(_) => format!("{n} B"),
    }
}

/// Draws the blocks one by one. Returns the numbers to be written in the blocks. The caller adds
/// them to the scene after the path of packing, which is a line through the blocks, so that they
/// are drawn on top of this line.
fn draw_blocks(
    scene: &mut Scene,
    map: &Map,
    fold: &Fold,
    frame: &Frame,
    blocks: &[(usize, Part)],
) -> Vec<Shape> {
    let mut numbers = Vec::new();
    let last = (map.bytes - 1).max(1) as f64;
    for &(i, (line, from, to)) in blocks {
        let piece = map.pieces[i];
        // A block that continues in the next row has the same colour in both rows, because the
        // colour shows where the middle of the whole block lies in the packed stream.
        let t = (piece.packed as f64 + (piece.len - 1) as f64 / 2.0) / last;
        let paint = Paint::Scale(if map.blocks == 1 { 0.0 } else { t });
        let (x, w) = (frame.x(from), (frame.x(to) - frame.x(from)).max(1.5));
        // Leave a narrow space at the right end of the block. It separates two blocks that touch in
        // memory.
        let w = if w > 6.0 { w - 0.8 } else { w };
        let types = map.types(piece.packed, piece.len);
        let hover = format!(
            "block {i}: displacement {}, {} B ({types}), packed from byte {} on",
            piece.at, piece.len, piece.packed
        );
        scene.rect((x, frame.y(line)), (w, frame.high), paint, hover);
        let label = piece.packed.to_string();
        let whole =
            fold.column(piece.at) == from && fold.memory(line).is_some_and(|(start, _)| piece.at >= start);
        if whole && frame.high >= 12.0 && breadth(&label, SMALL) + 8.0 <= w {
            let at = (x + 4.0, frame.y(line) + frame.high / 2.0 + 3.7);
            let Paint::Scale(t) = paint else { continue };
            let (anchor, paint) = (Anchor::Start, Paint::OnScale(t));
            numbers.push(Shape::Words { x: at.0, y: at.1, anchor, size: SMALL, paint, text: label });
        }
    }
    for &(from, to) in map.shared.iter().take(MAX_SHARED) {
        for (line, from, to) in parts(fold, from, to).into_iter().take(LINES) {
            let (x, w) = (frame.x(from), (frame.x(to) - frame.x(from)).max(1.5));
            let y = frame.y(line) + frame.high - 4.0;
            let hover = "several entries share these bytes".to_owned();
            scene.rect((x, y), (w, 3.0), Paint::Ink, hover);
        }
    }
    numbers
}

fn draw_cells(scene: &mut Scene, map: &Map, fold: &Fold, frame: &Frame, bins: &Bins) {
    let last = (map.bytes - 1).max(1) as f64;
    for line in 0..fold.lines.len() {
        for column in 0..bins.columns {
            let cell = bins.cell(line, column);
            if cell.bytes == 0 {
                continue;
            }
            let from = fold.from + column as i128 * bins.width;
            let (x, right) = (frame.x(from), frame.x(from + bins.width));
            let (w, h) = (right - x, frame.high);
            let share = (cell.bytes as f64 / bins.memory(fold, line, column) as f64).min(1.0);
            // The area of the square shows which share of the cell's bytes is packed. Very small
            // shares are drawn larger, so that they can be seen.
            let side = share.sqrt().max(0.35);
            let (w, h) = ((w - 0.5) * side, h * side);
            let x = (x + right - 0.5 - w) / 2.0;
            let y = frame.y(line) + (frame.high - h) / 2.0;
            let (at, packed) = cell.first;
            let about = if bins.exact { "" } else { "about " };
            let mut hover = format!(
                "from displacement {at} on: {about}{} B in {} blocks ({}), first packed byte {packed}, mean {:.0}",
                cell.bytes,
                cell.blocks,
                map.types(packed, cell.bytes.min(64)),
                cell.mean()
            );
            if cell.shared {
                hover += "; entries overlap";
            }
            let outline = cell.shared.then_some(Paint::Ink);
            scene.shapes.push(Shape::Rect {
                x,
                y,
                w,
                h,
                fill: Paint::Scale(cell.mean() / last),
                outline,
                hover,
            });
        }
    }
}

fn legend(scene: &mut Scene, map: &Map, (left, y): (f64, f64), how: &str, path: bool, instances: &str) {
    let mut x = left;
    if map.bytes > 0 && map.blocks > 1 {
        let steps = 24;
        scene.words((x, y + 9.0), Anchor::Start, SMALL, Paint::Ink, "packed byte 0");
        x += breadth("packed byte 0", SMALL) + 6.0;
        for i in 0..steps {
            let t = f64::from(i) / f64::from(steps - 1);
            scene.rect((x + f64::from(i) * 6.0, y), (6.2, 11.0), Paint::Scale(t), String::new());
        }
        x += f64::from(steps) * 6.0 + 6.0;
        let text = (map.bytes - 1).to_string();
        scene.words((x, y + 9.0), Anchor::Start, SMALL, Paint::Ink, &text);
        x += breadth(&text, SMALL) + 22.0;
    }
    let mut swatch = |scene: &mut Scene, paint: Paint, text: &str| {
        scene.rect((x, y), (14.0, 11.0), paint, String::new());
        scene.words((x + 19.0, y + 9.0), Anchor::Start, SMALL, Paint::Ink, text);
        x += 19.0 + breadth(text, SMALL) + 20.0;
    };
    swatch(scene, Paint::Gap, "not packed");
    swatch(scene, Paint::Outside, "outside of the bounds");
    if !map.shared.is_empty() {
        swatch(scene, Paint::Ink, "bytes that entries share");
    }
    let mut notes = vec![how.to_owned()];
    if path {
        notes.push("line: the path of packing".to_owned());
    }
    if !instances.is_empty() {
        notes.push(instances.to_owned());
    }
    scene.words((left, y + 30.0), Anchor::Start, SMALL, Paint::Pale, &notes.join("; "));
}
