//! Parsing with an explicit stack: nesting is bounded by the text's length, not by the call stack.
//!
//! Errors show the text's line with a caret; those of constructors keep class, argument and rule, and the caret stands at
//! the argument.

use std::collections::HashMap;
use std::str::FromStr;

use super::{Form, Kind, form};
use crate::datatype::{Combiner, Datatype, Distribution, Named, Order};
use crate::error::{Error, ErrorClass, Result};

/// Characters of context that an error shows on each side of the caret.
const CONTEXT: usize = 60;

/// A constructor whose arguments are being read, collected by kind in order.
struct Frame {
    form: &'static Form,
    at: usize,
    /// Parameter to read next.
    next: usize,
    /// Inside a list of types, and whether it has an element yet.
    list: Option<bool>,
    /// Where each argument starts.
    starts: Vec<usize>,
    numbers: Vec<i64>,
    optionals: Vec<Option<i64>>,
    arrays: Vec<Vec<i64>>,
    dargs: Vec<Option<i64>>,
    distribs: Vec<Distribution>,
    order: Order,
    types: Vec<Datatype>,
}

enum Step {
    /// A datatype comes next.
    Type,
    /// All arguments are read.
    Done,
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
    names: HashMap<&'a str, Datatype>,
}

impl<'a> Parser<'a> {
    fn skip(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(&b) = bytes.get(self.position) {
            if b == b'#' {
                while bytes.get(self.position).is_some_and(|&b| b != b'\n') {
                    self.position += 1;
                }
            } else if b.is_ascii_whitespace() {
                self.position += 1;
            } else {
                break;
            }
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip();
        self.text.as_bytes().get(self.position).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.position += 1;
        }
        found
    }

    fn expect(&mut self, byte: u8, what: &str) -> Result<()> {
        if self.eat(byte) { Ok(()) } else { Err(self.wrong(self.position, &format!("expected {what}"))) }
    }

    /// A run of letters, digits and underscores; empty if something else comes.
    fn word(&mut self) -> &'a str {
        self.skip();
        let rest = &self.text[self.position..];
        let len = rest.bytes().position(|b| !(b.is_ascii_alphanumeric() || b == b'_')).unwrap_or(rest.len());
        self.position += len;
        &rest[..len]
    }

    fn wrong(&self, at: usize, message: &str) -> Error {
        Error::new(ErrorClass::Arg, "datatype text", "", "", format!("{message}\n{}", caret(self.text, at)))
    }

    fn number(&mut self) -> Result<i64> {
        self.skip();
        let at = self.position;
        let negative = self.eat(b'-');
        let digits = self.word();
        if digits.is_empty()
            || digits.starts_with('_')
            || !digits.bytes().all(|b| b.is_ascii_digit() || b == b'_')
        {
            return Err(self.wrong(at, "expected a number"));
        }
        let value = digits.bytes().filter(|&b| b != b'_').try_fold(0i64, |value, b| {
            let digit = i64::from(b - b'0');
            let value = value.checked_mul(10)?;
            if negative { value.checked_sub(digit) } else { value.checked_add(digit) }
        });
        value.ok_or_else(|| self.wrong(at, "the number does not fit in 64 bits"))
    }

    fn number_or(&mut self, word: &str) -> Result<Option<i64>> {
        self.skip();
        let at = self.position;
        if self.word() == word {
            return Ok(None);
        }
        self.position = at;
        if self.peek().is_some_and(|b| b == b'-' || b.is_ascii_digit()) {
            return self.number().map(Some);
        }
        Err(self.wrong(at, &format!("expected a number or `{word}`")))
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect(b'[', "`[`")?;
        let mut items = Vec::new();
        if self.eat(b']') {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.eat(b',') {
                self.expect(b']', "`,` or `]`")?;
                return Ok(items);
            }
        }
    }

    fn choice<T: Copy>(&mut self, choices: &[(&str, T)]) -> Result<T> {
        self.skip();
        let at = self.position;
        let word = self.word();
        choices.iter().find(|c| c.0 == word).map(|c| c.1).ok_or_else(|| {
            let names: Vec<String> = choices.iter().map(|c| format!("`{}`", c.0)).collect();
            self.wrong(at, &format!("expected {}", names.join(" or ")))
        })
    }

    /// Skips `parameter =` if it is there.
    fn parameter_name(&mut self, name: &str) -> Result<()> {
        self.skip();
        let at = self.position;
        let word = self.word();
        if word.is_empty() || !self.eat(b'=') {
            self.position = at;
            return Ok(());
        }
        if word.strip_prefix("array_of_").unwrap_or(word) != name {
            return Err(self.wrong(at, &format!("this argument is `{name}`, not `{word}`")));
        }
        Ok(())
    }

    /// Reads arguments until a datatype is needed or none is left.
    fn advance(&mut self, frame: &mut Frame) -> Result<Step> {
        loop {
            if let Some(started) = frame.list {
                if started {
                    if self.eat(b',') {
                        return Ok(Step::Type);
                    }
                    self.expect(b']', "`,` or `]`")?;
                } else if !self.eat(b']') {
                    frame.list = Some(true);
                    return Ok(Step::Type);
                }
                frame.list = None;
            }
            let Some(&(name, kind)) = frame.form.parameters.get(frame.next) else {
                self.expect(b')', "`)`")?;
                return Ok(Step::Done);
            };
            if frame.next > 0 {
                self.expect(b',', &format!("`,` and `{name}`"))?;
            }
            self.parameter_name(name)?;
            self.skip();
            frame.starts.push(self.position);
            frame.next += 1;
            match kind {
                Kind::Number => frame.numbers.push(self.number()?),
                Kind::Optional => frame.optionals.push(self.number_or("undefined")?),
                Kind::Numbers => frame.arrays.push(self.list(Self::number)?),
                Kind::Optionals => frame.dargs = self.list(|p| p.number_or("default"))?,
                Kind::Distributions => {
                    let choices = [
                        ("block", Distribution::Block),
                        ("cyclic", Distribution::Cyclic),
                        ("none", Distribution::None),
                    ];
                    frame.distribs = self.list(|p| p.choice(&choices))?;
                }
                Kind::Order => frame.order = self.choice(&[("C", Order::C), ("Fortran", Order::Fortran)])?,
                Kind::Type => return Ok(Step::Type),
                Kind::Types => {
                    self.expect(b'[', "`[`")?;
                    frame.list = Some(false);
                }
            }
        }
    }

    /// A named type or a name, or a constructor whose frame is pushed.
    fn start(&mut self, stack: &mut Vec<Frame>) -> Result<Option<Datatype>> {
        self.skip();
        let at = self.position;
        let word = self.word();
        if word.is_empty() {
            return Err(self.wrong(at, "expected a datatype"));
        }
        if let Some(form) = form(word) {
            self.expect(b'(', "`(`")?;
            stack.push(Frame {
                form,
                at,
                next: 0,
                list: None,
                starts: Vec::new(),
                numbers: Vec::new(),
                optionals: Vec::new(),
                arrays: Vec::new(),
                dargs: Vec::new(),
                distribs: Vec::new(),
                order: Order::C,
                types: Vec::new(),
            });
            return Ok(None);
        }
        if let Some(t) = self.names.get(word) {
            return Ok(Some(t.clone()));
        }
        match Named::from_name(word) {
            Some(named) => Ok(Some(Datatype::named(named))),
            None => Err(self.wrong(at, &format!("there is no datatype or constructor `{word}`"))),
        }
    }

    fn datatype(&mut self) -> Result<Datatype> {
        let mut stack = Vec::new();
        loop {
            let mut finished = self.start(&mut stack)?;
            loop {
                let Some(frame) = stack.last_mut() else {
                    if let Some(t) = finished {
                        return Ok(t);
                    }
                    return Err(Error::internal("datatype text", "a type neither finished nor open"));
                };
                frame.types.extend(finished.take());
                match self.advance(frame)? {
                    Step::Type => break,
                    Step::Done => {
                        if let Some(frame) = stack.pop() {
                            finished = Some(self.build(frame)?);
                        }
                    }
                }
            }
        }
    }

    fn build(&self, mut frame: Frame) -> Result<Datatype> {
        let types = std::mem::take(&mut frame.types);
        construct(&mut frame, types).map_err(|e| {
            let at = argument_position(self.text, &frame, e.argument());
            let rule = format!("{}\n{}", e.rule(), caret(self.text, at));
            Error::new(e.class(), e.operation().to_owned(), e.argument().to_owned(), e.value(), rule)
        })
    }

    fn whole(&mut self) -> Result<Datatype> {
        loop {
            self.skip();
            let at = self.position;
            if self.word() != "let" {
                self.position = at;
                break;
            }
            self.skip();
            let at = self.position;
            let name = self.word();
            if name.is_empty() || name == "let" || form(name).is_some() || Named::from_name(name).is_some() {
                return Err(self.wrong(at, "expected a name that is not a datatype's or constructor's"));
            }
            self.expect(b'=', "`=`")?;
            let t = self.datatype()?;
            self.expect(b';', "`;`")?;
            if self.names.insert(name, t).is_some() {
                return Err(self.wrong(at, &format!("`{name}` is defined twice")));
            }
        }
        let t = self.datatype()?;
        if self.peek().is_some() {
            return Err(self.wrong(self.position, "expected the end of the text"));
        }
        Ok(t)
    }
}

/// Calls the constructor; the form's parameters guarantee what was collected.
fn construct(frame: &mut Frame, types: Vec<Datatype>) -> Result<Datatype> {
    let mut numbers = frame.numbers.iter().copied();
    let mut number = || numbers.next().unwrap_or(0);
    let mut arrays = std::mem::take(&mut frame.arrays).into_iter();
    let mut array = || arrays.next().unwrap_or_default().into();
    let mut optionals = frame.optionals.iter().copied();
    let mut optional = || optionals.next().flatten();
    let name = frame.form.name;
    if name.starts_with("struct") {
        return Datatype::new(Combiner::Struct {
            blocklengths: array(),
            displacements: array(),
            types: types.into(),
            legacy: name != "struct",
        });
    }
    let mut types = types.into_iter();
    let mut oldtype =
        || types.next().ok_or_else(|| Error::internal("datatype text", "a constructor without its datatype"));
    let combiner = match name {
        "dup" => Combiner::Dup { oldtype: oldtype()? },
        "contiguous" => Combiner::Contiguous { count: number(), oldtype: oldtype()? },
        "vector" => {
            Combiner::Vector { count: number(), blocklength: number(), stride: number(), oldtype: oldtype()? }
        }
        "hvector" | "hvector_integer" => Combiner::Hvector {
            count: number(),
            blocklength: number(),
            stride: number(),
            oldtype: oldtype()?,
            legacy: name != "hvector",
        },
        "indexed" => Combiner::Indexed { blocklengths: array(), displacements: array(), oldtype: oldtype()? },
        "hindexed" | "hindexed_integer" => Combiner::Hindexed {
            blocklengths: array(),
            displacements: array(),
            oldtype: oldtype()?,
            legacy: name != "hindexed",
        },
        "indexed_block" => {
            Combiner::IndexedBlock { blocklength: number(), displacements: array(), oldtype: oldtype()? }
        }
        "hindexed_block" => {
            Combiner::HindexedBlock { blocklength: number(), displacements: array(), oldtype: oldtype()? }
        }
        "subarray" => Combiner::Subarray {
            sizes: array(),
            subsizes: array(),
            starts: array(),
            order: frame.order,
            oldtype: oldtype()?,
        },
        "darray" => Combiner::Darray {
            size: number(),
            rank: number(),
            gsizes: array(),
            distribs: std::mem::take(&mut frame.distribs).into(),
            dargs: std::mem::take(&mut frame.dargs).into(),
            psizes: array(),
            order: frame.order,
            oldtype: oldtype()?,
        },
        "f90_real" => Combiner::F90Real { p: optional(), r: optional() },
        "f90_complex" => Combiner::F90Complex { p: optional(), r: optional() },
        "f90_integer" => Combiner::F90Integer { r: number() },
        "resized" => Combiner::Resized { lb: number(), extent: number(), oldtype: oldtype()? },
        "bounds" => Combiner::Bounds { lb: number(), extent: number(), oldtype: oldtype()? },
        "value_index" => Combiner::ValueIndex { value: oldtype()?, index: oldtype()? },
        _ => return Err(Error::internal("datatype text", format!("no rule builds {name}"))),
    };
    Datatype::new(combiner)
}

/// Where the argument that an error names, such as `displacements[2]`, stands in the text.
fn argument_position(text: &str, frame: &Frame, argument: &str) -> usize {
    let (name, index) = match argument.split_once('[') {
        Some((name, rest)) => (name, rest.trim_end_matches(']').parse().unwrap_or(0)),
        None => (argument, 0usize),
    };
    let Some(parameter) = frame.form.parameters.iter().position(|p| p.0 == name) else { return frame.at };
    let start = frame.starts[parameter];
    let commas = text[start..].bytes().enumerate().filter(|b| b.1 == b',').map(|b| b.0);
    match index.checked_sub(1) {
        None if argument.ends_with(']') => start + 1,
        None => start,
        Some(n) => commas.clone().nth(n).map_or(start, |comma| {
            let after = start + comma + 1;
            after + text[after..].bytes().take_while(u8::is_ascii_whitespace).count()
        }),
    }
}

/// The line of `text` around byte `at`, indented, and a line with a caret below that byte.
fn caret(text: &str, at: usize) -> String {
    let line_start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let line_end = text[at..].find('\n').map_or(text.len(), |n| at + n);
    let before: Vec<char> = text[line_start..at].chars().collect();
    let after: Vec<char> = text[at..line_end].chars().collect();
    let cut = before.len().saturating_sub(CONTEXT);
    let mut shown = String::from(if cut > 0 { "..." } else { "" });
    let printable = |c: &char| if c.is_control() { ' ' } else { *c };
    shown.extend(before[cut..].iter().map(printable));
    let column = shown.chars().count();
    shown.extend(after.iter().take(CONTEXT).map(printable));
    if after.len() > CONTEXT {
        shown.push_str("...");
    }
    format!("  {shown}\n  {}^", " ".repeat(column))
}

/// Reads the text notation.
///
/// # Errors
/// What was expected, or the broken rule of a constructor, with the text and a caret.
impl FromStr for Datatype {
    type Err = Error;

    fn from_str(text: &str) -> Result<Datatype> {
        Parser { text, position: 0, names: HashMap::new() }.whole()
    }
}
