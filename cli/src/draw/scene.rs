//! A picture independent of its format: rectangles, lines and words, with colours given by their
//! role.

/// Role of a colour. [`Paint::colour`] has the colour for a light and for a dark background.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Paint {
    /// Background of the picture.
    Ground,
    /// Words and marks.
    Ink,
    /// Words and marks that are less important.
    Pale,
    /// Memory within the bounds that is not packed.
    Gap,
    /// Memory outside of the bounds.
    Outside,
    /// Marks and labels of bounds.
    Bound,
    /// Packed bytes whose mean position in the packed stream is this number, from 0 for the first
    /// byte to 1 for the last. Each position has its own colour.
    Scale(f64),
    /// Words that are written on packed bytes. If the colour of these bytes is `Scale(t)`, that of
    /// the words is `OnScale(t)`, which is light on a dark colour and dark on a light one.
    OnScale(f64),
}

/// Red, green, blue.
pub(crate) type Colour = [u8; 3];

/// Colours of packed bytes at five positions in the packed stream. Colours between them are
/// interpolated. Lightness increases from the first position to the last, so that the scale can be
/// read without distinguishing hues, for example by colour-blind people. Both the first and the
/// last colour stand out from a white and from a black background.
const SCALE: [(f64, Colour); 5] = [
    (0.0, [62, 63, 196]),
    (0.25, [138, 62, 190]),
    (0.5, [203, 78, 138]),
    (0.75, [236, 122, 82]),
    (1.0, [247, 190, 62]),
];

impl Paint {
    /// Returns the colour of this role on a light or dark background.
    pub(crate) fn colour(self, dark: bool) -> Colour {
        match (self, dark) {
            (Paint::Ground, false) => [255, 255, 255],
            (Paint::Ground, true) => [13, 17, 23],
            (Paint::Ink, false) => [31, 35, 40],
            (Paint::Ink, true) => [230, 237, 243],
            (Paint::Pale, false) => [101, 109, 118],
            (Paint::Pale, true) => [145, 152, 161],
            (Paint::Gap, false) => [222, 227, 233],
            (Paint::Gap, true) => [45, 51, 60],
            (Paint::Outside, false) => [246, 248, 250],
            (Paint::Outside, true) => [20, 25, 32],
            (Paint::Bound, false) => [0, 112, 96],
            (Paint::Bound, true) => [64, 208, 180],
            (Paint::Scale(t), _) => scale(t),
            (Paint::OnScale(t), _) => {
                if t < 0.5 {
                    [255, 255, 255]
                } else {
                    [20, 20, 20]
                }
            }
        }
    }
}

/// Returns the colour of the scale at position `t`. A position below 0 counts as 0, one above 1 as
/// 1, and one that is not finite as 0.
fn scale(t: f64) -> Colour {
    let t = if t.is_finite() { t.clamp(0.0, 1.0) } else { 0.0 };
    let i = SCALE.iter().take(SCALE.len() - 1).rposition(|(at, _)| *at <= t).unwrap_or(0);
    let ((low, from), (high, to)) = (SCALE[i], SCALE[i + 1]);
    let part = (t - low) / (high - low);
    std::array::from_fn(|i| {
        (f64::from(from[i]) + (f64::from(to[i]) - f64::from(from[i])) * part).round() as u8
    })
}

/// Which part of a text (start, middle or end) lies at the x coordinate of [`Shape::Words`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// One shape. Later shapes cover earlier ones, and y increases downwards.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Rect {
        x: f64,
        y: f64,
        w: f64,
        h: f64,
        fill: Paint,
        /// Colour of a line that is drawn inside of the rectangle, along its edges; `None` if there
        /// is no such line.
        outline: Option<Paint>,
        /// Text that appears when the pointer rests on the rectangle.
        hover: String,
    },
    Line {
        points: Vec<(f64, f64)>,
        paint: Paint,
        width: f64,
        dashed: bool,
    },
    /// Words in ASCII; `y` is their base line.
    Words {
        x: f64,
        y: f64,
        anchor: Anchor,
        size: f64,
        paint: Paint,
        text: String,
    },
}

/// A picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scene {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Title and description of the picture, for people who cannot see it.
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) shapes: Vec<Shape>,
}

impl Scene {
    pub(crate) fn rect(&mut self, (x, y): (f64, f64), (w, h): (f64, f64), fill: Paint, hover: String) {
        self.shapes.push(Shape::Rect { x, y, w, h, fill, outline: None, hover });
    }

    pub(crate) fn line(&mut self, points: &[(f64, f64)], paint: Paint, width: f64, dashed: bool) {
        self.shapes.push(Shape::Line { points: points.to_vec(), paint, width, dashed });
    }

    pub(crate) fn words(&mut self, (x, y): (f64, f64), anchor: Anchor, size: f64, paint: Paint, text: &str) {
        let text = text.to_owned();
        self.shapes.push(Shape::Words { x, y, anchor, size, paint, text });
    }
}

/// Returns the approximate width of `text` in a font of `size`.
pub(crate) fn breadth(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.56
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance, WCAG 2.
    fn luminance(c: Colour) -> f64 {
        let part = |v: u8| {
            let v = f64::from(v) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(c[0]) + 0.7152 * part(c[1]) + 0.0722 * part(c[2])
    }

    fn contrast(a: Colour, b: Colour) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn the_scale_rises_in_lightness_and_stands_out() {
        let steps: Vec<f64> = (0..=20).map(|i| luminance(scale(f64::from(i) / 20.0))).collect();
        assert!(steps.is_sorted_by(|a, b| a < b), "{steps:?}");
        for t in [0.0, 0.3, 0.6, 1.0] {
            for dark in [false, true] {
                let colour = Paint::Scale(t).colour(dark);
                assert!(contrast(colour, Paint::Ground.colour(dark)) > 1.6, "{t} {dark}");
                assert!(contrast(colour, Paint::OnScale(t).colour(dark)) > 3.8, "{t} {dark}");
            }
        }
        for dark in [false, true] {
            for paint in [Paint::Ink, Paint::Pale, Paint::Bound] {
                assert!(contrast(paint.colour(dark), Paint::Ground.colour(dark)) > 4.5, "{paint:?}");
            }
        }
        assert_eq!((scale(0.0), scale(1.0), scale(f64::NAN)), (SCALE[0].1, SCALE[4].1, SCALE[0].1));
    }
}
