//! A scene as SVG. Colours follow the viewer's preference for light or dark.

use std::fmt::Write as _;

use super::scene::{Anchor, Colour, Paint, Scene, Shape};

/// The roles that have another colour on a dark ground, and their classes.
const ROLES: [(Paint, &str); 6] = [
    (Paint::Ground, "g"),
    (Paint::Ink, "i"),
    (Paint::Pale, "p"),
    (Paint::Gap, "m"),
    (Paint::Outside, "o"),
    (Paint::Bound, "b"),
];

/// `scene` as a document. `ground` fixes light (`false`) or dark colours.
pub(crate) fn write(scene: &Scene, ground: Option<bool>) -> String {
    let mut out = String::new();
    let (w, h) = (number(scene.width), number(scene.height));
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\" \
         font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">"
    );
    let (title, description) = (escaped(&scene.title), escaped(&scene.description));
    let _ = writeln!(out, "<title>{title}</title>\n<desc>{description}</desc>\n<style>");
    styles(&mut out, ground.unwrap_or(false));
    if ground.is_none() {
        out.push_str("@media (prefers-color-scheme: dark) {\n");
        styles(&mut out, true);
        out.push_str("}\n");
    }
    let _ = writeln!(out, "</style>\n<rect class=\"g\" width=\"{w}\" height=\"{h}\"/>");
    for shape in &scene.shapes {
        match shape {
            Shape::Rect { x, y, w, h, fill, outline, hover } => {
                let inset = if outline.is_some() { 0.6 } else { 0.0 };
                let (x, y, w, h) = (x + inset, y + inset, w - 2.0 * inset, h - 2.0 * inset);
                let place = [x, y, w.max(0.1), h.max(0.1)].map(number);
                let [x, y, w, h] = &place;
                let _ = write!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" ");
                match outline {
                    None => out.push_str(&fill_of(*fill)),
                    Some(line) => {
                        let fill = hex(fill.colour(false));
                        let _ = write!(out, "fill=\"{fill}\" {} stroke-width=\"1.2\"", stroke_of(*line));
                    }
                }
                match hover.is_empty() {
                    true => out.push_str("/>\n"),
                    false => {
                        let _ = writeln!(out, "><title>{}</title></rect>", escaped(hover));
                    }
                }
            }
            Shape::Line { points, paint, width, dashed } => {
                let points: Vec<String> =
                    points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect();
                let dashes = if *dashed { " stroke-dasharray=\"3 2.5\"" } else { "" };
                let _ = writeln!(
                    out,
                    "<polyline points=\"{}\" fill=\"none\" {} stroke-width=\"{}\" stroke-linejoin=\"round\"{dashes} \
                     pointer-events=\"none\"/>",
                    points.join(" "),
                    stroke_of(*paint),
                    number(*width)
                );
            }
            Shape::Words { x, y, anchor, size, paint, text } => {
                let anchor = match anchor {
                    Anchor::Start => "",
                    Anchor::Middle => " text-anchor=\"middle\"",
                    Anchor::End => " text-anchor=\"end\"",
                };
                let _ = writeln!(
                    out,
                    "<text x=\"{}\" y=\"{}\"{anchor} font-size=\"{}\" {} pointer-events=\"none\">{}</text>",
                    number(*x),
                    number(*y),
                    number(*size),
                    fill_of(*paint),
                    escaped(text)
                );
            }
        }
    }
    out.push_str("</svg>\n");
    out
}

/// One class for what is filled and one for what is drawn with a line: viewers without variables understand it too.
fn styles(out: &mut String, dark: bool) {
    for (paint, class) in ROLES {
        let colour = hex(paint.colour(dark));
        let _ = writeln!(out, ".{class} {{ fill: {colour} }} .{class}l {{ stroke: {colour} }}");
    }
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

/// A hundredth of a unit is finer than any screen.
fn number(x: f64) -> String {
    let text = format!("{x:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escaped(text: &str) -> String {
    // XML has no control characters.
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
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
