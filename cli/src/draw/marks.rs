//! Draws marks on the memory of a picture: bounds with their labels, borders of instances, and the
//! path of packing, which is a line with arrows through the blocks in packed order.

use super::fold::{Fold, Line};
use super::frame::{Frame, Part};
use super::map::Map;
use super::scene::{Anchor, Paint, Scene};

/// Maximum number of parts of blocks through which the path of packing is drawn. The path is a line
/// with arrows through the blocks in packed order. A block has one part in each row that it covers.
/// If all blocks together have more parts, no path is drawn.
const MAX_PATH_BLOCKS: usize = 64;
/// Number of instances, counted from the first one, around which a border may be drawn. Of the
/// instances after these, only the last one may have a border.
const MAX_INSTANCES: u64 = 8;
/// Minimum distance between two labels, from base line to base line, in units of the picture.
const SPACING: f64 = 13.0;
/// Font size of labels.
const SIZE: f64 = 10.5;

/// Text to the right of a line of memory, which names the bounds or the instance there.
pub(crate) struct Label {
    /// The y coordinate of the middle of the line of memory to which the label belongs.
    y: f64,
    paint: Paint,
    pub(crate) text: String,
}

/// A bound of the datatype, such as `lb`. Each bound is a place between two bytes. A lower bound is
/// drawn at the beginning of the byte after it, and an upper bound at the end of the byte before
/// it.
struct Mark {
    name: &'static str,
    at: i128,
    upper: bool,
    dashed: bool,
}

impl Mark {
    fn byte(&self) -> i128 {
        self.at - i128::from(self.upper)
    }

    /// Returns the line and the column where the bound is drawn.
    fn line_and_column(&self, fold: &Fold) -> (usize, i128) {
        let line = fold.line(self.byte()).min(fold.lines.len().saturating_sub(1));
        (line, fold.column(self.byte()) + i128::from(self.upper))
    }
}

fn marks(map: &Map) -> Vec<Mark> {
    let t = &map.datatype;
    let mark = |name, at: i64, upper, dashed| Mark { name, at: at.into(), upper, dashed };
    // If the extent is 0 or negative, the byte before the upper bound does not lie between the
    // bounds. So the upper bound is drawn like a lower one, at the beginning of the byte after it.
    let mut all = vec![mark("lb", t.lb(), false, false), mark("ub", t.ub(), t.ub() > t.lb(), false)];
    if t.size() > 0 {
        all.extend([mark("true lb", t.true_lb(), false, true), mark("true ub", t.true_ub(), true, true)]);
    }
    all
}

/// Returns the labels of bounds and instances, sorted by line and column. Bounds at the same place
/// share a label.
pub(crate) fn labels(map: &Map, fold: &Fold, frame: &Frame) -> Vec<Label> {
    let mut all: Vec<(usize, i128, Label)> = Vec::new();
    for mark in marks(map) {
        let (line, column) = mark.line_and_column(fold);
        let y = frame.y(line) + frame.high / 2.0;
        match all.iter_mut().find(|(l, c, _)| (*l, *c) == (line, column)) {
            Some((.., label)) => {
                label.text.insert_str(label.text.rfind(" = ").unwrap_or(0), &format!(" = {}", mark.name))
            }
            None => {
                let text = format!("{} = {}", mark.name, mark.at);
                all.push((line, column, Label { y, paint: Paint::Bound, text }));
            }
        }
    }
    if map.count > 1 && map.datatype.extent() != 0 {
        for k in shown(map.count) {
            let at = i128::from(map.datatype.lb()) + i128::from(k) * i128::from(map.datatype.extent());
            let line = fold.line(at).min(fold.lines.len().saturating_sub(1));
            // Instance 0 has no label. If a line shows several rows, label an instance only if it
            // begins in another line than the instance before it.
            let before = fold.line(at - i128::from(map.datatype.extent()));
            if k == 0 || (fold.rows_per_line > 1 && before == line) {
                continue;
            }
            let y = frame.y(line) + frame.high / 2.0;
            let text = format!("instance {k} at {at}");
            all.push((line, fold.column(at), Label { y, paint: Paint::Ink, text }));
        }
    }
    all.sort_by_key(|(line, column, _)| (*line, *column));
    all.into_iter().map(|(.., label)| label).collect()
}

/// Returns the instances that may have borders: the first [`MAX_INSTANCES`] and the last.
fn shown(count: u64) -> impl Iterator<Item = u64> {
    (0..count.min(MAX_INSTANCES)).chain((count > MAX_INSTANCES).then(|| count - 1))
}

/// Draws `labels` without overlap, each as near to its line as possible. Returns the y coordinate
/// at which they end.
pub(crate) fn draw_labels(scene: &mut Scene, frame: &Frame, labels: Vec<Label>) -> f64 {
    let mut places: Vec<f64> = labels.iter().map(|label| label.y).collect();
    for i in 1..places.len() {
        places[i] = places[i].max(places[i - 1] + SPACING);
    }
    // Labels without free space between them form a group. All labels of a group except the first
    // may have been pushed down. Move the whole group up by half of the distance by which its last
    // label was pushed, or less if the label above the group is in the way. So the first labels of
    // a group are about as far above their lines as the last labels are below theirs.
    let mut end = places.len();
    while end > 0 {
        let mut start = end - 1;
        while start > 0 && places[start] - places[start - 1] < SPACING + 0.1 {
            start -= 1;
        }
        let pushed = places[end - 1] - labels[end - 1].y;
        let free =
            if start == 0 { places[0] - frame.top } else { places[start] - places[start - 1] - SPACING };
        let up = (pushed / 2.0).min(free.max(0.0));
        places[start..end].iter_mut().for_each(|y| *y -= up);
        end = start;
    }
    let x = frame.right() + 20.0;
    for (label, &y) in labels.iter().zip(&places) {
        let points = [(frame.right() + 3.0, label.y), (frame.right() + 8.0, label.y), (x - 4.0, y)];
        scene.line(&points, label.paint, 0.8, false);
        scene.words((x, y + 3.7), Anchor::Start, SIZE, label.paint, &label.text);
    }
    places.last().map_or(0.0, |y| y + SPACING)
}

/// Draws brackets at the bounds of the first instance, and dashed lines at its true bounds.
pub(crate) fn bounds(scene: &mut Scene, map: &Map, fold: &Fold, frame: &Frame) {
    for mark in marks(map) {
        let (line, column) = mark.line_and_column(fold);
        if !matches!(fold.lines.get(line), Some(Line::Rows { .. })) {
            continue;
        }
        let (x, y) = (frame.x(column), frame.y(line));
        let (top, bottom) = (y - 2.5, y + frame.high + 2.5);
        let serif = x + if mark.upper { -5.0 } else { 5.0 };
        if mark.dashed {
            scene.line(&[(x, top), (x, bottom)], Paint::Bound, 1.6, true);
        } else {
            scene.line(&[(serif, top), (x, top), (x, bottom), (serif, bottom)], Paint::Bound, 1.8, false);
        }
    }
}

/// Draws borders of instances. Returns their description for the legend, or an empty text if none
/// was drawn.
pub(crate) fn instances(scene: &mut Scene, map: &Map, fold: &Fold, frame: &Frame) -> String {
    let (t, count) = (&map.datatype, map.count);
    if count < 2 || t.extent() == 0 {
        return String::new();
    }
    let tall = fold.rows_per_line == 1;
    let mut drawn = 0;
    for k in shown(count) {
        let offset = i128::from(k) * i128::from(t.extent());
        let (low, high) = (i128::from(t.lb().min(t.ub())) + offset, i128::from(t.lb().max(t.ub())) + offset);
        let (first, last) = (fold.line(low), fold.line(high - 1).min(fold.lines.len().saturating_sub(1)));
        let (from, to) = match tall {
            true => (frame.x(fold.column(low)), frame.x(fold.column(high - 1) + 1)),
            false => (frame.left, frame.right()),
        };
        if fold.memory(first).is_none() || (first == last && !tall) || (first == last && to - from < 2.0) {
            continue;
        }
        let pad = 1.2;
        let (top, bottom) = (frame.y(first) - pad, frame.y(last) + frame.high + pad);
        let points = if first == last {
            vec![(from, top), (to, top), (to, bottom), (from, bottom), (from, top)]
        } else {
            // The border begins inside the first row and ends inside the last one, so it is a
            // polygon with eight corners.
            let (below, above) = (frame.y(first) + frame.high + pad, frame.y(last) - pad);
            let (left, right) = (frame.left, frame.right());
            vec![
                (from, top),
                (right, top),
                (right, above),
                (to, above),
                (to, bottom),
                (left, bottom),
                (left, below),
                (from, below),
                (from, top),
            ]
        };
        scene.line(&points, Paint::Ink, 0.9, true);
        drawn += 1;
    }
    match (drawn, count > MAX_INSTANCES + 1) {
        (0, _) => String::new(),
        (_, true) => format!("dashed: some of instances 0 to {} and the last", MAX_INSTANCES - 1),
        (_, false) => "dashed: instances".to_owned(),
    }
}

/// Draws the path of packing: a line with arrows through the blocks in packed order. A block has
/// one part in each row that it covers, and `blocks` has an entry for each part. Draws nothing and
/// returns false if there are less than two parts or more than [`MAX_PATH_BLOCKS`].
pub(crate) fn path(scene: &mut Scene, fold: &Fold, frame: &Frame, blocks: &[(usize, Part)]) -> bool {
    if blocks.len() < 2 || blocks.len() > MAX_PATH_BLOCKS || fold.lines.is_empty() {
        return false;
    }
    // Let the line cross each block near its lower border, so that it passes below the number that
    // is written in the middle of the block.
    let points: Vec<(f64, f64)> = blocks
        .iter()
        .map(|(_, (line, from, to))| {
            ((frame.x(*from) + frame.x(*to)) / 2.0, frame.y(*line) + frame.high * 0.86)
        })
        .collect();
    scene.line(&points, Paint::Ink, 0.9, false);
    for (i, pair) in points.windows(2).enumerate() {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let length = (x1 - x0).hypot(y1 - y0);
        if length < 14.0 || (i + 2 < points.len() && blocks.len() > 32) {
            continue;
        }
        let (dx, dy) = ((x1 - x0) / length, (y1 - y0) / length);
        let wing = |side: f64| (x1 - 6.0 * dx - 3.0 * side * dy, y1 - 6.0 * dy + 3.0 * side * dx);
        scene.line(&[wing(1.0), (x1, y1), wing(-1.0)], Paint::Ink, 1.1, false);
    }
    if let Some(&(x, y)) = points.first() {
        scene.rect((x - 2.5, y - 2.5), (5.0, 5.0), Paint::Ink, "packing begins here".to_owned());
    }
    true
}
