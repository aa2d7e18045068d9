//! A writer of SVG. It writes elements one after the other, and later elements cover earlier ones.
//! Charts and pictures of layouts consist of rectangles, lines and text, for which no drawing
//! library is needed.

use std::fmt::{Display, Write as _};

/// A document that is being written.
#[derive(Debug)]
pub struct Document(String);

impl Document {
    /// Returns a new document of `width` by `height` units, whose root element has additional
    /// `attributes`.
    pub fn new(width: impl Display, height: impl Display, attributes: impl Display) -> Document {
        Document(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" {attributes}>\n"
        ))
    }

    /// Adds an element without contents.
    pub fn element(&mut self, name: &str, attributes: impl Display) {
        let _ = writeln!(self.0, "<{name} {attributes}/>");
    }

    /// Adds an element that contains `text`.
    pub fn text(&mut self, name: &str, attributes: impl Display, text: &str) {
        let _ = writeln!(self.0, "<{name} {attributes}>{}</{name}>", escaped(text));
    }

    /// Adds an SVG element. A viewer shows `title` while the pointer rests on it. If `title` is
    /// empty, the viewer shows nothing.
    pub fn titled(&mut self, name: &str, attributes: impl Display, title: &str) {
        if title.is_empty() {
            return self.element(name, attributes);
        }
        let _ = writeln!(self.0, "<{name} {attributes}><title>{}</title></{name}>", escaped(title));
    }

    /// Adds a title and a description of the document, for readers who do not see it.
    pub fn describe(&mut self, title: &str, description: &str) {
        let (title, description) = (escaped(title), escaped(description));
        let _ = writeln!(self.0, "<title>{title}</title>\n<desc>{description}</desc>");
    }

    /// Adds CSS rules to the document. `rules` has one rule on each line.
    pub fn styles(&mut self, rules: &str) {
        let _ = writeln!(self.0, "<style>\n{rules}</style>");
    }

    /// Adds a group with `attributes` that contains the elements which `inside` adds.
    pub fn group(&mut self, attributes: impl Display, inside: impl FnOnce(&mut Document)) {
        let _ = write!(self.0, "<g {attributes}>");
        inside(self);
        self.0.push_str("</g>\n");
    }

    /// Returns the text of the document.
    pub fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

/// Returns `text` with the characters escaped that have a meaning in XML.
fn escaped(text: &str) -> String {
    // XML permits no control characters, so they become spaces.
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_by_hand() {
        let mut document = Document::new(20, 10, "role=\"img\"");
        document.describe("a < b", "c & \"d\"");
        document.group("fill=\"red\"", |inside| inside.titled("rect", "width=\"1\"", "x > y"));
        document.titled("rect", "width=\"2\"", "");
        document.text("text", "x=\"1\"", "1\t2");
        let want = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"20\" height=\"10\" viewBox=\"0 0 20 10\" role=\"img\">\n\
                    <title>a &lt; b</title>\n<desc>c &amp; &quot;d&quot;</desc>\n\
                    <g fill=\"red\"><rect width=\"1\"><title>x &gt; y</title></rect>\n</g>\n\
                    <rect width=\"2\"/>\n<text x=\"1\">1 2</text>\n</svg>\n";
        assert_eq!(document.finish(), want);
    }
}
