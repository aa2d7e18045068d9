//! Text form of nests, printed by `ddtc explain` and read back by filetests. docs/IR.md has the
//! grammar.
//!
//! A body that several nodes share is written once as `let bN = { .. }`, so the length of the text
//! is proportional to the size of the nest. `Display` leaves out the rest of a column after 40
//! rows; such a text cannot be read back.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use super::{Body, Leaf, LoopNest, Node, Offsets, Phase, Quantity, Side};
use crate::column::Column;
use crate::error::{Error, Result};
use crate::lexer::{Lexer, Notation, Token};

/// Maximum number of rows of a column that `Display` shows. It leaves out all further rows.
const SHOWN_ROWS: usize = 40;

impl<P: Phase, L: Leaf, S: Side> fmt::Display for LoopNest<P, L, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if S::NAME.is_empty() { "" } else { " " };
        writeln!(f, "nest {}{side}{} size {} extent {}", P::NAME, S::NAME, self.size(), self.extent())?;
        // A body that is used more than once gets a name with a number. The numbers follow the
        // order of the bodies in the nest's vector of nodes.
        let mut uses: HashMap<Body, u32> = HashMap::new();
        for body in self.nodes().iter().filter_map(Node::body) {
            *uses.entry(body).or_default() += 1;
        }
        let mut shared: Vec<Body> =
            uses.into_iter().filter(|&(b, n)| n > 1 && b.len > 0).map(|(b, _)| b).collect();
        // A body of a single leaf gets no name, because the leaf is shorter than a name would be.
        shared.retain(|&b| b.len > 1 || self.body(b)[0].body().is_some());
        shared.sort();
        let names: HashMap<Body, usize> = shared.iter().enumerate().map(|(i, &b)| (b, i)).collect();
        for (i, &body) in shared.iter().enumerate() {
            writeln!(f, "let b{i} = {{")?;
            self.print(f, body, &names, 1)?;
            writeln!(f, "}}")?;
        }
        if self.root().len == 0 { writeln!(f, "nothing") } else { self.print(f, self.root(), &names, 0) }
    }
}

impl<P: Phase, L: Leaf, S: Side> LoopNest<P, L, S> {
    fn print(
        &self,
        f: &mut fmt::Formatter<'_>,
        body: Body,
        names: &HashMap<Body, usize>,
        indent: usize,
    ) -> fmt::Result {
        let mut stack: Vec<&[Node<L>]> = vec![self.body(body)];
        while let Some(nodes) = stack.last_mut() {
            let Some((node, rest)) = nodes.split_first() else {
                stack.pop();
                if !stack.is_empty() {
                    writeln!(f, "{:w$}}}", "", w = 2 * (indent + stack.len() - 1))?;
                }
                continue;
            };
            *nodes = rest;
            let level = indent + stack.len() - 1;
            write!(f, "{:w$}{}", "", Head(node), w = 2 * level)?;
            match node.body() {
                Some(b) => match names.get(&b) {
                    Some(i) => writeln!(f, " b{i}")?,
                    None => {
                        writeln!(f, " {{")?;
                        stack.push(self.body(b));
                    }
                },
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

/// The text of a node without its body.
struct Head<'a, L>(&'a Node<L>);

impl<L: Leaf> fmt::Display for Head<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Node::Loop { trip, step, .. } => write!(f, "loop {trip} step {} {}", step.user, step.packed)?,
            Node::Table { displacements, packed, .. } => {
                f.write_str("table [")?;
                write_rows(f, displacements.len(), |f, i| write!(f, "{}", displacements.get(i)))?;
                write!(f, "] packed {packed}")?;
            }
            Node::Blocks { user, packed, len, unit, .. } => {
                f.write_str("blocks [")?;
                write_rows(f, len.len(), |f, i| {
                    write!(f, "{}:{}:{}", user.get(i), packed.get(i), len.get(i))
                })?;
                f.write_str("]")?;
                write_unit(f, *unit)?;
            }
            Node::Copy { n, unit, .. } => {
                write!(f, "copy {n}")?;
                write_unit(f, *unit)?;
            }
        }
        let at = self.0.offsets();
        if at != Offsets::ZERO { write!(f, " at {} {}", at.user, at.packed) } else { Ok(()) }
    }
}

/// Writes the unit of a leaf, unless it is bytes.
fn write_unit(f: &mut fmt::Formatter<'_>, unit: impl Leaf) -> fmt::Result {
    let unit = unit.to_string();
    if unit.is_empty() { Ok(()) } else { write!(f, " of {unit}") }
}

fn write_rows(
    f: &mut fmt::Formatter<'_>,
    n: usize,
    row: impl Fn(&mut fmt::Formatter<'_>, usize) -> fmt::Result,
) -> fmt::Result {
    for i in 0..n.min(SHOWN_ROWS) {
        if i > 0 {
            f.write_str(" ")?;
        }
        row(f, i)?;
    }
    if n > SHOWN_ROWS { write!(f, " ... {} rows", n) } else { Ok(()) }
}

impl<P: Phase, L: Leaf, S: Side> FromStr for LoopNest<P, L, S> {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Parser { lexer: Lexer::new(&NOTATION, text, 0), nodes: Vec::new(), named: HashMap::new() }.nest()
    }
}

static NOTATION: Notation = Notation { name: "nest text", comments: true, grouped_digits: false };

struct Parser<'a, L> {
    lexer: Lexer<'a>,
    nodes: Vec<Node<L>>,
    named: HashMap<&'a str, Body>,
}

impl<L: Leaf> Parser<'_, L> {
    fn trip(&mut self) -> Result<Quantity> {
        let k = match self.lexer.token() {
            Token::Integer(_) => return self.lexer.unsigned().map(Quantity::fixed),
            Token::Word("count") => Some(1),
            Token::Word(word) => word.strip_suffix("*count").and_then(|k| k.parse().ok()),
            _ => None,
        };
        match k {
            Some(k) => {
                self.lexer.take();
                Ok(Quantity::counted(k))
            }
            None => self.lexer.wanted("k, `count` or k*count"),
        }
    }

    fn offsets(&mut self) -> Result<Offsets> {
        Ok(Offsets::new(self.lexer.signed()?, self.lexer.signed()?))
    }

    fn nest<P: Phase, S: Side>(&mut self) -> Result<LoopNest<P, L, S>> {
        self.lexer.expect("nest")?;
        self.lexer.expect(P::NAME)?;
        if !S::NAME.is_empty() {
            self.lexer.expect(S::NAME)?;
        }
        self.lexer.expect("size")?;
        let size = self.lexer.signed()?;
        self.lexer.expect("extent")?;
        let extent = self.lexer.signed()?;
        while self.lexer.eat("let") {
            let Token::Word(name) = self.lexer.token() else { return self.lexer.wanted("a name") };
            self.lexer.take();
            self.lexer.expect("=")?;
            self.lexer.expect("{")?;
            let body = self.body("}")?;
            self.named.insert(name, body);
        }
        let root = if self.lexer.eat("nothing") { Body::default() } else { self.body("")? };
        self.lexer.end()?;
        Ok(LoopNest::new(std::mem::take(&mut self.nodes), root, size, extent))
    }

    /// Parses nodes up to `close`, or up to the end of the text if `close` is empty. Nested bodies
    /// are on an explicit stack.
    fn body(&mut self, close: &str) -> Result<Body> {
        // Lists under construction, the innermost last. In every list except the innermost, the
        // last node still has no body; the next list will become its body.
        let mut lists: Vec<Vec<Node<L>>> = vec![Vec::new()];
        loop {
            let close = if lists.len() > 1 { "}" } else { close };
            // At the end of a list, its nodes move to the vector, and the list becomes the body of
            // the last node in the list around it. The outermost list is the result.
            let end = self.lexer.token() == Token::End;
            if end && !close.is_empty() {
                return self.lexer.wanted("`}`");
            }
            if end || self.lexer.eat(close) {
                let Some(list) = lists.pop() else { return Err(unbalanced()) };
                let body = Body { start: self.nodes.len() as u32, len: list.len() as u32 };
                self.nodes.extend(list);
                let Some(outer) = lists.last_mut() else { return Ok(body) };
                match outer.last_mut() {
                    Some(Node::Loop { body: slot, .. } | Node::Table { body: slot, .. }) => *slot = body,
                    _ => return Err(unbalanced()),
                }
                continue;
            }
            // Otherwise a node follows. If it is a loop or table, it is followed either by the name
            // of a shared body or by `{`, which begins a list for its body.
            let mut node = self.head()?;
            let mut open = false;
            if let Node::Loop { body, .. } | Node::Table { body, .. } = &mut node {
                if let Some(&b) = self.named.get(self.lexer.token().text()) {
                    self.lexer.take();
                    *body = b;
                } else if self.lexer.eat("{") {
                    open = true;
                } else {
                    return self.lexer.wanted("`{` or the name of a body");
                }
            }
            if let Some(list) = lists.last_mut() {
                list.push(node);
            }
            if open {
                lists.push(Vec::new());
            }
        }
    }

    /// Parses the unit of a leaf, which is a byte if nothing is written.
    fn unit(&mut self) -> Result<L> {
        let of = self.lexer.eat("of");
        match L::from_text(if of { self.lexer.token().text() } else { "" }) {
            Some(unit) => {
                if of {
                    self.lexer.take();
                }
                Ok(unit)
            }
            None => self.lexer.wanted("a leaf of the nest's kind"),
        }
    }

    fn head(&mut self) -> Result<Node<L>> {
        let mut node = if self.lexer.eat("loop") {
            let trip = self.trip()?;
            self.lexer.expect("step")?;
            let step = self.offsets()?;
            Node::Loop { at: Offsets::ZERO, trip, step, body: Body::default() }
        } else if self.lexer.eat("table") {
            self.lexer.expect("[")?;
            let mut rows = Vec::new();
            while !self.lexer.eat("]") {
                rows.push(self.lexer.signed()?);
            }
            self.lexer.expect("packed")?;
            let packed = self.lexer.signed()?;
            Node::Table { at: Offsets::ZERO, displacements: rows.into(), packed, body: Body::default() }
        } else if self.lexer.eat("blocks") {
            self.lexer.expect("[")?;
            let mut columns = [Vec::new(), Vec::new(), Vec::new()];
            while !self.lexer.eat("]") {
                for (i, column) in columns.iter_mut().enumerate() {
                    if i > 0 {
                        self.lexer.expect(":")?;
                    }
                    column.push(self.lexer.signed()?);
                }
            }
            let [user, packed, len] = columns.map(Column::from);
            Node::Blocks { at: Offsets::ZERO, user, packed, len, unit: self.unit()? }
        } else if self.lexer.eat("copy") {
            let n = self.trip()?;
            Node::Copy { at: Offsets::ZERO, n, unit: self.unit()? }
        } else {
            return self.lexer.wanted("`loop`, `table`, `blocks` or `copy`");
        };
        if self.lexer.eat("at") {
            *node.at_mut() = self.offsets()?;
        }
        Ok(node)
    }
}

/// Returns the error for a list of nodes that is not the body of any node. There is no such list,
/// since a list is begun only after the node that it belongs to has been added.
fn unbalanced() -> Error {
    Error::internal("nest text", "a list of nodes belongs to no node")
}

#[cfg(test)]
mod tests {
    use super::super::Lowered;
    use super::*;
    use crate::error::ErrorClass;

    #[test]
    fn errors_have_a_place_and_what_was_expected() {
        for (text, place, found, rule) in [
            ("", "line 1, column 1", "the end of the text", "expected `nest`"),
            ("nest normal size 0 extent 0", "line 1, column 6", "'normal'", "expected `lowered`"),
            ("nest lowered size x extent 0", "line 1, column 19", "'x'", "expected a number"),
            (
                "nest lowered size 1 extent 1\nloop 2 step 1 1 {\ncopy 1",
                "line 3, column 7",
                "the end of the text",
                "expected `}`",
            ),
            (
                "nest lowered size 1 extent 1\nlet b0 = { copy 1",
                "line 2, column 18",
                "the end of the text",
                "expected `}`",
            ),
            (
                "nest lowered size 1 extent 1\nloop 2 step 1 1 b0",
                "line 2, column 17",
                "'b0'",
                "expected `{` or the name",
            ),
            (
                "nest lowered size 1 extent 1\ncopy -1",
                "line 2, column 6",
                "'-1'",
                "expected a number that is not negative",
            ),
            (
                "nest lowered size 1 extent 1\ncopy 2*counts",
                "line 2, column 6",
                "'2*counts'",
                "expected k, `count` or k*count",
            ),
            (
                "nest lowered size 1 extent 1\nmove 1",
                "line 2, column 1",
                "'move'",
                "expected `loop`, `table`",
            ),
            (
                "nest lowered size 1 extent 1\ncopy 1 of swap4",
                "line 2, column 11",
                "'swap4'",
                "expected a leaf of the nest's kind",
            ),
            (
                "nest lowered size 1 extent 1\nnothing at all",
                "line 2, column 9",
                "'at'",
                "expected the end of the text",
            ),
            (
                "nest lowered size 1 extent 1\ntable [1 2",
                "line 2, column 11",
                "the end of the text",
                "expected a number",
            ),
        ] {
            let e = text.parse::<LoopNest<Lowered>>().unwrap_err();
            assert_eq!((e.argument(), e.value(), e.class()), (place, found, ErrorClass::Arg), "{text}");
            assert!(e.rule().starts_with(rule) && e.rule().ends_with('^'), "{text}: {e}");
        }
    }
}
