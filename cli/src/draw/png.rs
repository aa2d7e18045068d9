//! A scene as pixels: rectangles and lines filled by the share of each pixel that they cover, letters as lines.

use super::letters;
use super::scene::{Anchor, Colour, Paint, Scene, Shape};

/// Pixels a unit.
const SCALE: f64 = 2.0;
/// Lengths of dashes and of what is between them, in units.
const DASH: (f64, f64) = (3.0, 2.5);

/// An image of 8 bits a channel.
struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

/// `scene` on a light or dark ground, as a file in PNG.
///
/// # Errors
/// What the encoder refuses.
pub(crate) fn write(scene: &Scene, dark: bool) -> Result<Vec<u8>, png::EncodingError> {
    let canvas = draw(scene, dark);
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, canvas.width as u32, canvas.height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.add_itxt_chunk("Title".into(), scene.title.clone())?;
    encoder.write_header()?.write_image_data(&canvas.pixels)?;
    Ok(file)
}

fn draw(scene: &Scene, dark: bool) -> Canvas {
    let (width, height) = ((scene.width * SCALE).ceil() as usize, (scene.height * SCALE).ceil() as usize);
    let ground = Paint::Ground.colour(dark);
    let mut canvas = Canvas { width, height, pixels: ground.repeat(width * height) };
    for shape in &scene.shapes {
        match shape {
            Shape::Rect { x, y, w, h, fill, outline, .. } => {
                canvas.fill((*x, *y), (*w, *h), fill.colour(dark));
                if let Some(paint) = outline {
                    let (t, colour) = (1.2_f64.min(*w).min(*h), paint.colour(dark));
                    canvas.fill((*x, *y), (*w, t), colour);
                    canvas.fill((*x, y + h - t), (*w, t), colour);
                    canvas.fill((*x, *y), (t, *h), colour);
                    canvas.fill((x + w - t, *y), (t, *h), colour);
                }
            }
            Shape::Line { points, paint, width, dashed } => {
                let colour = paint.colour(dark);
                match dashed {
                    false => canvas.line(points, *width, colour),
                    true => dashes(points).iter().for_each(|dash| canvas.line(dash, *width, colour)),
                }
            }
            Shape::Words { x, y, anchor, size, paint, text } => {
                let part = match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => 0.5,
                    Anchor::End => 1.0,
                };
                let x = x - part * letters::breadth(text, *size);
                for line in letters::lines(text, *size, (x, *y)) {
                    canvas.line(&line, 0.085 * size, paint.colour(dark));
                }
            }
        }
    }
    canvas
}

/// The dashes along `points`.
fn dashes(points: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    let mut all = Vec::new();
    let (mut on, mut left) = (true, DASH.0);
    for pair in points.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let length = (x1 - x0).hypot(y1 - y0);
        let at = |d: f64| (x0 + (x1 - x0) * d / length, y0 + (y1 - y0) * d / length);
        let mut done = 0.0;
        while length - done > 1e-6 {
            let next = (done + left).min(length);
            if on {
                all.push(vec![at(done), at(next)]);
            }
            left -= next - done;
            // Below what a float adds up exactly: a rest of nothing would never end.
            if left < 1e-6 {
                on = !on;
                left = if on { DASH.0 } else { DASH.1 };
            }
            done = next;
        }
    }
    all
}

impl Canvas {
    /// Lays `colour` over the pixel, `share` of it.
    fn blend(&mut self, x: usize, y: usize, colour: Colour, share: f64) {
        let at = 3 * (y * self.width + x);
        for (old, new) in self.pixels[at..at + 3].iter_mut().zip(colour) {
            *old = (f64::from(*old) + (f64::from(new) - f64::from(*old)) * share).round() as u8;
        }
    }

    /// Pixels from `from` to `to`, in units, cut to `most`.
    fn pixels(from: f64, to: f64, most: usize) -> std::ops::Range<usize> {
        let low = (from.max(0.0).floor() as usize).min(most);
        low..(to.max(0.0).ceil() as usize).clamp(low, most)
    }

    /// Fills the rectangle at `x`, `y`, in units.
    fn fill(&mut self, (x, y): (f64, f64), (w, h): (f64, f64), colour: Colour) {
        let (left, right) = (x * SCALE, (x + w) * SCALE);
        let (top, bottom) = (y * SCALE, (y + h) * SCALE);
        let covered =
            |lo: f64, hi: f64, i: usize| (hi.min(i as f64 + 1.0) - lo.max(i as f64)).clamp(0.0, 1.0);
        for j in Canvas::pixels(top, bottom, self.height) {
            for i in Canvas::pixels(left, right, self.width) {
                self.blend(i, j, colour, covered(left, right, i) * covered(top, bottom, j));
            }
        }
    }

    /// Draws the line through `points`, with round ends; all in units.
    fn line(&mut self, points: &[(f64, f64)], width: f64, colour: Colour) {
        let r = width * SCALE / 2.0;
        for pair in points.windows(2) {
            let [(x0, y0), (x1, y1)] = [pair[0], pair[1]].map(|(x, y)| (x * SCALE, y * SCALE));
            let (dx, dy) = (x1 - x0, y1 - y0);
            let square = (dx * dx + dy * dy).max(1e-9);
            let reach = r + 1.0;
            for j in Canvas::pixels(y0.min(y1) - reach, y0.max(y1) + reach, self.height) {
                // Of a long slanted line, only the pixels near it.
                let (cy, mut lo, mut hi) = (j as f64 + 0.5, x0.min(x1) - reach, x0.max(x1) + reach);
                if dy.abs() > 1e-9 {
                    let near = [cy - reach, cy + reach].map(|y| x0 + dx * ((y - y0) / dy).clamp(0.0, 1.0));
                    (lo, hi) = (lo.max(near[0].min(near[1]) - reach), hi.min(near[0].max(near[1]) + reach));
                }
                for i in Canvas::pixels(lo, hi, self.width) {
                    let cx = i as f64 + 0.5;
                    let t = (((cx - x0) * dx + (cy - y0) * dy) / square).clamp(0.0, 1.0);
                    let distance = (cx - x0 - t * dx).hypot(cy - y0 - t * dy);
                    let share = (r + 0.5 - distance).clamp(0.0, (2.0 * r).min(1.0));
                    if share > 0.0 {
                        self.blend(i, j, colour, share);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INK: Colour = [0, 0, 0];

    fn canvas() -> Canvas {
        Canvas { width: 8, height: 8, pixels: vec![255; 3 * 64] }
    }

    fn grey(c: &Canvas, x: usize, y: usize) -> u8 {
        c.pixels[3 * (8 * y + x)]
    }

    #[test]
    fn a_rectangle_covers_shares_of_pixels() {
        let mut c = canvas();
        c.fill((1.0, 1.0), (1.25, 1.0), INK);
        let row: Vec<u8> = (0..8).map(|x| grey(&c, x, 2)).collect();
        assert_eq!(row, [255, 255, 0, 0, 128, 255, 255, 255]);
        assert_eq!((grey(&c, 2, 1), grey(&c, 2, 4)), (255, 255));
        // What is outside is cut.
        c.fill((-5.0, -5.0), (100.0, 100.0), INK);
        assert!(c.pixels.iter().all(|p| *p == 0));
    }

    #[test]
    fn lines_are_as_wide_as_told() {
        let mut c = canvas();
        c.line(&[(0.0, 2.0), (4.0, 2.0)], 1.0, INK);
        let column: Vec<u8> = (0..8).map(|y| grey(&c, 4, y)).collect();
        assert_eq!(column, [255, 255, 255, 0, 0, 255, 255, 255]);
        let steep: Vec<Vec<(f64, f64)>> = dashes(&[(0.0, 0.0), (0.0, 7.0)]);
        assert_eq!(steep, [[(0.0, 0.0), (0.0, 3.0)], [(0.0, 5.5), (0.0, 7.0)]]);
        let mut c = canvas();
        c.line(&[(0.0, 0.0), (4.0, 4.0)], 1.0, INK);
        assert!((0..8).all(|i| grey(&c, i, i) == 0) && grey(&c, 7, 0) == 255 && grey(&c, 0, 7) == 255);
    }

    #[test]
    fn files_read_back() {
        let mut scene = Scene { width: 30.0, height: 20.0, title: "t".into(), ..Scene::default() };
        scene.rect((10.0, 5.0), (5.0, 5.0), Paint::Scale(0.0), String::new());
        scene.words((2.0, 18.0), Anchor::Start, 10.0, Paint::Ink, "ab");
        let file = write(&scene, true).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (60, 40));
        let at = |x: usize, y: usize| &pixels[3 * (60 * y + x)..][..3];
        assert_eq!(at(0, 0), Paint::Ground.colour(true));
        assert_eq!(at(25, 15), Paint::Scale(0.0).colour(true));
    }
}
