//! Writes a scene as SVG. Unless the caller asks for a light or dark background, the colours follow
//! the preference of the viewer of the file.

use ddtc_bench::svg::Document;

use super::scene::{Anchor, Colour, Paint, Scene, Shape};

/// Roles whose colour on a dark background differs from that on a light background, each with its
/// CSS class.
const ROLES: [(Paint, &str); 6] = [
    (Paint::Ground, "g"),
    (Paint::Ink, "i"),
    (Paint::Pale, "p"),
    (Paint::Gap, "m"),
    (Paint::Outside, "o"),
    (Paint::Bound, "b"),
];

/// Returns `scene` as an SVG document. If `ground` is given, the colours are always those for a
/// light (`false`) or dark (`true`) background. Otherwise they follow the preference of the viewer.
pub(crate) fn write(scene: &Scene, ground: Option<bool>) -> String {
    // Write the style sheet. Unless the background is fixed, the style sheet also has the colours
    // for a dark background, in a media query that the viewer of the file evaluates.
    let (w, h) = (number(scene.width), number(scene.height));
    let font = "role=\"img\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\"";
    let mut out = Document::new(&w, &h, font);
    out.describe(&scene.title, &scene.description);
    let mut rules = styles(ground.unwrap_or(false));
    if ground.is_none() {
        rules += &format!("@media (prefers-color-scheme: dark) {{\n{}}}\n", styles(true));
    }
    out.styles(&rules);
    out.element("rect", format_args!("class=\"g\" width=\"{w}\" height=\"{h}\""));
    // Write the background and then the shapes in order, so that later shapes cover earlier ones.
    // Lines and words ignore the pointer, so that a rectangle that they cover still shows its hover
    // text.
    for shape in &scene.shapes {
        match shape {
            Shape::Rect { x, y, w, h, fill, outline, hover } => {
                let inset = if outline.is_some() { 0.6 } else { 0.0 };
                let (x, y, w, h) = (x + inset, y + inset, w - 2.0 * inset, h - 2.0 * inset);
                let place = [x, y, w.max(0.1), h.max(0.1)].map(number);
                let [x, y, w, h] = &place;
                let looks = match outline {
                    None => fill_of(*fill),
                    Some(line) => {
                        let fill = hex(fill.colour(false));
                        format!("fill=\"{fill}\" {} stroke-width=\"1.2\"", stroke_of(*line))
                    }
                };
                let place = format!("x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" {looks}");
                out.titled("rect", place, hover);
            }
            Shape::Line { points, paint, width, dashed } => {
                let points: Vec<String> =
                    points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect();
                let dashes = if *dashed { " stroke-dasharray=\"3 2.5\"" } else { "" };
                let line = format!(
                    "points=\"{}\" fill=\"none\" {} stroke-width=\"{}\" stroke-linejoin=\"round\"{dashes} pointer-events=\"none\"",
                    points.join(" "),
                    stroke_of(*paint),
                    number(*width)
                );
                out.element("polyline", line);
            }
            Shape::Words { x, y, anchor, size, paint, text } => {
                let anchor = match anchor {
                    Anchor::Start => "",
                    Anchor::Middle => " text-anchor=\"middle\"",
                    Anchor::End => " text-anchor=\"end\"",
                };
                let place = format!(
                    "x=\"{}\" y=\"{}\"{anchor} font-size=\"{}\" {} pointer-events=\"none\"",
                    number(*x),
                    number(*y),
                    number(*size),
                    fill_of(*paint)
                );
                out.text("text", place, text);
            }
        }
    }
    out.finish()
}

/// Returns the style sheet for a light or dark background. Each role has one class for fills and
/// one for lines; CSS variables would be shorter, but some viewers do not know them.
fn styles(dark: bool) -> String {
    let rule = |(paint, class): (Paint, &str)| {
        let colour = hex(paint.colour(dark));
        format!(".{class} {{ fill: {colour} }} .{class}l {{ stroke: {colour} }}\n")
    };
    ROLES.into_iter().map(rule).collect()
}

fn class(paint: Paint) -> Option<&'static str> {
    ROLES.iter().find(|(role, _)| *role == paint).map(|(_, class)| *class)
}

fn fill_of(paint: Paint) -> String {
    match class(paint) {
        Some(class) => format!("class=\"{class}\""),
        None => format!("fill=\"{}\"", hex(paint.colour(false))),
    }
}

fn stroke_of(paint: Paint) -> String {
    match class(paint) {
        Some(class) => format!("class=\"{class}l\""),
        None => format!("stroke=\"{}\"", hex(paint.colour(false))),
    }
}

fn hex([r, g, b]: Colour) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Returns a coordinate with at most two decimals, which is finer than any screen.
fn number(x: f64) -> String {
    let text = format!("{x:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_by_hand() {
        let mut scene =
            Scene { width: 20.0, height: 10.0, title: "a < b & \"c\"".into(), ..Scene::default() };
        scene.rect((1.0, 2.0), (3.0, 4.5), Paint::Scale(0.0), "x > y".into());
        scene.rect((1.0, 2.0), (3.0, 4.0), Paint::Gap, String::new());
        scene.line(&[(0.0, 0.0), (1.005, 2.0)], Paint::Ink, 1.0, true);
        scene.words((1.0, 9.0), Anchor::End, 11.0, Paint::Pale, "1 & 2");
        let text = write(&scene, None);
        for part in [
            "<title>a &lt; b &amp; &quot;c&quot;</title>",
            "<rect x=\"1\" y=\"2\" width=\"3\" height=\"4.5\" fill=\"#3e3fc4\"><title>x &gt; y</title></rect>",
            "<rect x=\"1\" y=\"2\" width=\"3\" height=\"4\" class=\"m\"/>",
            "<polyline points=\"0,0 1,2\" fill=\"none\" class=\"il\" stroke-width=\"1\" stroke-linejoin=\"round\" \
             stroke-dasharray=\"3 2.5\" pointer-events=\"none\"/>",
            "<text x=\"1\" y=\"9\" text-anchor=\"end\" font-size=\"11\" class=\"p\" pointer-events=\"none\">1 &amp; 2</text>",
            "@media (prefers-color-scheme: dark)",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let dark = write(&scene, Some(true));
        assert!(!dark.contains("@media") && dark.contains(".g { fill: #0d1117 }"), "{dark}");
        assert!(roxmltree::Document::parse(&text).is_ok() && roxmltree::Document::parse(&dark).is_ok());
    }
}
