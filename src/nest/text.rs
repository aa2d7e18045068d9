//! Text form of nests (grammar in docs/IR.md): printed by `ddtc explain`, read back by filetests.
//!
//! A body that several nodes share is written once as `let bN = { .. }`, so the text is as small as the nest. Columns of more
//! than 40 rows are elided when displayed; such a text cannot be read back.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use super::{At, Body, LoopNest, Node, Phase, Trip, Unit};
use crate::column::Column;
use crate::datatype::Named;
use crate::error::{Error, ErrorClass, Result};

/// Rows of a column that `Display` shows in full.
const SHOWN_ROWS: usize = 40;

impl<P: Phase> fmt::Display for LoopNest<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "nest {} size {} extent {}", P::NAME, self.size(), self.extent())?;
        // Bodies used more than once get a name, in the order they stand.
        let mut uses: HashMap<Body, u32> = HashMap::new();
        for body in self.nodes().iter().filter_map(Node::body) {
            *uses.entry(body).or_default() += 1;
        }
        let mut shared: Vec<Body> =
            uses.into_iter().filter(|&(b, n)| n > 1 && b.len > 0).map(|(b, _)| b).collect();
        // A lone leaf is shorter than its name.
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

impl<P: Phase> LoopNest<P> {
    fn print(
        &self,
        f: &mut fmt::Formatter<'_>,
        body: Body,
        names: &HashMap<Body, usize>,
        indent: usize,
    ) -> fmt::Result {
        let mut stack: Vec<&[Node]> = vec![self.body(body)];
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

/// A node without its body.
struct Head<'a>(&'a Node);

impl fmt::Display for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Node::Loop { trip, step, .. } => write!(f, "loop {trip} step {} {}", step.user, step.packed)?,
            Node::Table { displacements, packed, .. } => {
                f.write_str("table [")?;
                rows(f, displacements.len(), |f, i| write!(f, "{}", displacements.get(i)))?;
                write!(f, "] packed {packed}")?;
            }
            Node::Blocks { user, packed, len, .. } => {
                f.write_str("blocks [")?;
                rows(f, len.len(), |f, i| write!(f, "{}:{}:{}", user.get(i), packed.get(i), len.get(i)))?;
                f.write_str("]")?;
            }
            Node::Copy { n, unit, .. } => {
                write!(f, "copy {n}")?;
                match unit {
                    Unit::Byte => {}
                    Unit::Basic(named) => write!(f, " unit {}", named.text_name())?,
                    Unit::External32(named) => write!(f, " unit {} external32", named.text_name())?,
                }
            }
        }
        let at = self.0.at();
        if at != At::ZERO { write!(f, " at {} {}", at.user, at.packed) } else { Ok(()) }
    }
}

fn rows(
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

impl<P: Phase> FromStr for LoopNest<P> {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Parser { words: words(text), next: 0, nodes: Vec::new(), named: HashMap::new() }.nest()
    }
}

fn words(text: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(text.len() * 2);
    for line in text.lines() {
        for c in line.split('#').next().unwrap_or("").chars() {
            if "[]{}=:".contains(c) {
                spaced.extend([' ', c, ' ']);
            } else {
                spaced.push(c);
            }
        }
        spaced.push(' ');
    }
    spaced.split_whitespace().map(str::to_owned).collect()
}

struct Parser {
    words: Vec<String>,
    next: usize,
    nodes: Vec<Node>,
    named: HashMap<String, Body>,
}

impl Parser {
    fn error<T>(&self, rule: &'static str) -> Result<T> {
        let word = self.words.get(self.next).map_or("end of text", String::as_str);
        Err(Error::new(ErrorClass::Arg, "nest text", format!("word {}", self.next + 1), word, rule))
    }

    fn peek(&self) -> &str {
        self.words.get(self.next).map_or("", String::as_str)
    }

    fn eat(&mut self, word: &str) -> bool {
        let hit = self.peek() == word;
        self.next += usize::from(hit);
        hit
    }

    fn expect(&mut self, word: &'static str) -> Result<()> {
        if self.eat(word) { Ok(()) } else { self.error(word) }
    }

    fn number<T: FromStr>(&mut self) -> Result<T> {
        match self.peek().parse() {
            Ok(n) => {
                self.next += 1;
                Ok(n)
            }
            Err(_) => self.error("must be an integer in range"),
        }
    }

    fn trip(&mut self) -> Result<Trip> {
        let word = self.peek().to_owned();
        let trip = if word == "count" {
            Some(Trip::counted(1))
        } else if let Some(k) = word.strip_suffix("*count") {
            k.parse().ok().map(Trip::counted)
        } else {
            word.parse().ok().map(Trip::fixed)
        };
        match trip {
            Some(t) => {
                self.next += 1;
                Ok(t)
            }
            None => self.error("must be k, count or k*count"),
        }
    }

    fn nest<P: Phase>(&mut self) -> Result<LoopNest<P>> {
        self.expect("nest")?;
        if !self.eat(P::NAME) {
            return self.error("is another phase than expected");
        }
        self.expect("size")?;
        let size = self.number()?;
        self.expect("extent")?;
        let extent = self.number()?;
        while self.eat("let") {
            let name = self.peek().to_owned();
            self.next += 1;
            self.expect("=")?;
            self.expect("{")?;
            let body = self.body("}")?;
            self.named.insert(name, body);
        }
        let root = if self.eat("nothing") { Body::default() } else { self.body("")? };
        Ok(LoopNest::new(std::mem::take(&mut self.nodes), root, size, extent))
    }

    /// Nodes up to `close` (or the end of the text), nested bodies on an explicit stack.
    fn body(&mut self, close: &str) -> Result<Body> {
        // Lists under construction; all but the last wait for the body of their last node.
        let mut lists: Vec<Vec<Node>> = vec![Vec::new()];
        loop {
            let done = if lists.len() > 1 { self.eat("}") } else { self.eat(close) };
            if done || self.next >= self.words.len() {
                let Some(list) = lists.pop() else { return self.error("unbalanced braces") };
                let body = Body { start: self.nodes.len() as u32, len: list.len() as u32 };
                self.nodes.extend(list);
                let Some(outer) = lists.last_mut() else { return Ok(body) };
                match outer.last_mut() {
                    Some(Node::Loop { body: slot, .. } | Node::Table { body: slot, .. }) => *slot = body,
                    _ => return self.error("unbalanced braces"),
                }
                continue;
            }
            let mut node = self.head()?;
            let mut open = false;
            if let Node::Loop { body, .. } | Node::Table { body, .. } = &mut node {
                if let Some(&b) = self.named.get(self.peek()) {
                    self.next += 1;
                    *body = b;
                } else {
                    self.expect("{")?;
                    open = true;
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

    fn head(&mut self) -> Result<Node> {
        let mut node = if self.eat("loop") {
            let trip = self.trip()?;
            self.expect("step")?;
            let step = At::new(self.number()?, self.number()?);
            Node::Loop { at: At::ZERO, trip, step, body: Body::default() }
        } else if self.eat("table") {
            self.expect("[")?;
            let mut rows = Vec::new();
            while !self.eat("]") {
                rows.push(self.number()?);
            }
            self.expect("packed")?;
            let packed = self.number()?;
            Node::Table { at: At::ZERO, displacements: rows.into(), packed, body: Body::default() }
        } else if self.eat("blocks") {
            self.expect("[")?;
            let mut columns = [Vec::new(), Vec::new(), Vec::new()];
            while !self.eat("]") {
                for (i, column) in columns.iter_mut().enumerate() {
                    if i > 0 {
                        self.expect(":")?;
                    }
                    column.push(self.number()?);
                }
            }
            let [user, packed, len] = columns.map(Column::from);
            Node::Blocks { at: At::ZERO, user, packed, len }
        } else if self.eat("copy") {
            let n = self.trip()?;
            let mut unit = Unit::Byte;
            if self.eat("unit") {
                let name = self.peek().to_owned();
                let Some(named) = Named::from_name(&name) else {
                    return self.error("must name a basic type");
                };
                self.next += 1;
                unit = if self.eat("external32") { Unit::External32(named) } else { Unit::Basic(named) };
            }
            Node::Copy { at: At::ZERO, n, unit }
        } else {
            return self.error("must be loop, table, blocks or copy");
        };
        if self.eat("at") {
            *node.at_mut() = At::new(self.number()?, self.number()?);
        }
        Ok(node)
    }
}
