//! Parser of the text notation. It has an explicit stack, so the nesting of a text is limited by
//! the length of the text and not by the call stack.
//!
//! Errors show the line of the text with a caret. An error of a constructor keeps its class,
//! argument and rule, and the caret points to the argument in the text.

use std::collections::HashMap;
use std::str::FromStr;

use super::{ConstructorSyntax, ParameterKind, find_constructor};
use crate::datatype::{Combiner, Datatype, Distribution, Named, Order};
use crate::error::{Error, Result};
use crate::lexer::{Lexer, Notation, Token};

static NOTATION: Notation = Notation { name: "datatype text", comments: true, grouped_digits: true };

/// A constructor whose arguments are being read. The arguments are collected by kind, in order.
struct OpenCall {
    syntax: &'static ConstructorSyntax,
    at: usize,
    /// Index of the parameter to read next.
    next: usize,
    /// `Some` while a list of types is being read. The value is true if the list already has an
    /// element.
    list: Option<bool>,
    /// Byte offset at which each argument starts.
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
    /// A datatype comes next in the text.
    Type,
    /// All arguments have been read.
    Done,
}

struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    names: HashMap<&'a str, Datatype>,
}

impl<'a> Parser<'a> {
    fn number(&mut self) -> Result<i64> {
        self.lexer.signed()
    }

    fn number_or(&mut self, word: &str) -> Result<Option<i64>> {
        match self.lexer.token() {
            Token::Integer(_) => self.number().map(Some),
            _ if self.lexer.eat(word) => Ok(None),
            _ => self.lexer.wanted(format_args!("a number or `{word}`")),
        }
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.lexer.expect("[")?;
        let mut items = Vec::new();
        if self.lexer.eat("]") {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.more()? {
                return Ok(items);
            }
        }
    }

    /// Reads the token after an element of a list. Returns true if another element follows.
    fn more(&mut self) -> Result<bool> {
        if self.lexer.eat(",") {
            Ok(true)
        } else if self.lexer.eat("]") {
            Ok(false)
        } else {
            self.lexer.wanted("`,` or `]`")
        }
    }

    fn choice<T: Copy>(&mut self, choices: &[(&str, T)]) -> Result<T> {
        match choices.iter().find(|c| self.lexer.eat(c.0)) {
            Some(&(_, choice)) => Ok(choice),
            None => {
                let names: Vec<String> = choices.iter().map(|c| format!("`{}`", c.0)).collect();
                self.lexer.wanted(names.join(" or "))
            }
        }
    }

    /// Reads the prefix `parameter =` of an argument, if the argument has one. The parameter must
    /// be `name`, optionally with MPI's prefix `array_of_`.
    fn parameter_name(&mut self, name: &str) -> Result<()> {
        let mut after_name = self.lexer;
        let word = after_name.take().text();
        if !after_name.eat("=") {
            return Ok(());
        }
        if word.strip_prefix("array_of_").unwrap_or(word) != name {
            return Err(self.lexer.fault(self.lexer.start(), format_args!("this argument is `{name}`")));
        }
        self.lexer = after_name;
        Ok(())
    }

    /// Reads the arguments of a constructor until a datatype is needed or all have been read.
    fn advance(&mut self, call: &mut OpenCall) -> Result<Step> {
        loop {
            // The elements of a list of types are read by `datatype`. The tokens between the
            // elements and the end of the list are read here.
            if let Some(started) = call.list {
                if started {
                    if self.more()? {
                        return Ok(Step::Type);
                    }
                } else if !self.lexer.eat("]") {
                    call.list = Some(true);
                    return Ok(Step::Type);
                }
                call.list = None;
            }
            // The previous argument, if there was one, is complete. Read the next one, or the end
            // of the constructor.
            let Some(&(name, kind)) = call.syntax.parameters.get(call.next) else {
                self.lexer.expect(")")?;
                return Ok(Step::Done);
            };
            if call.next > 0 && !self.lexer.eat(",") {
                return self.lexer.wanted(format_args!("`,` and `{name}`"));
            }
            self.parameter_name(name)?;
            call.starts.push(self.lexer.start());
            call.next += 1;
            match kind {
                ParameterKind::Number => call.numbers.push(self.number()?),
                ParameterKind::Optional => call.optionals.push(self.number_or("undefined")?),
                ParameterKind::Numbers => call.arrays.push(self.list(Self::number)?),
                ParameterKind::Optionals => call.dargs = self.list(|p| p.number_or("default"))?,
                ParameterKind::Distributions => {
                    let choices = [
                        ("block", Distribution::Block),
                        ("cyclic", Distribution::Cyclic),
                        ("none", Distribution::None),
                    ];
                    call.distribs = self.list(|p| p.choice(&choices))?;
                }
                ParameterKind::Order => {
                    call.order = self.choice(&[("C", Order::C), ("Fortran", Order::Fortran)])?
                }
                ParameterKind::Type => return Ok(Step::Type),
                ParameterKind::Types => {
                    self.lexer.expect("[")?;
                    call.list = Some(false);
                }
            }
        }
    }

    /// Begins to read a datatype. Returns the datatype if it is a named type or a name that `let`
    /// has defined. For a constructor, pushes an open call onto the stack and returns `None`.
    fn start(&mut self, stack: &mut Vec<OpenCall>) -> Result<Option<Datatype>> {
        let at = self.lexer.start();
        let (Token::Word(word) | Token::Integer(word)) = self.lexer.token() else {
            return self.lexer.wanted("a datatype");
        };
        self.lexer.take();
        if let Some(syntax) = find_constructor(word) {
            self.lexer.expect("(")?;
            stack.push(OpenCall {
                syntax,
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
            None => Err(self.lexer.fault(at, "expected a datatype or constructor")),
        }
    }

    fn datatype(&mut self) -> Result<Datatype> {
        let mut stack = Vec::new();
        loop {
            // Each iteration reads a named type, a name that `let` has defined, or the beginning of
            // a constructor.
            let mut finished = self.start(&mut stack)?;
            loop {
                // Give the finished type to the constructor around it. This may complete that
                // constructor, which then is the finished type.
                let Some(call) = stack.last_mut() else {
                    if let Some(t) = finished {
                        return Ok(t);
                    }
                    return Err(Error::internal("datatype text", "a type neither finished nor open"));
                };
                call.types.extend(finished.take());
                match self.advance(call)? {
                    Step::Type => break,
                    Step::Done => {
                        if let Some(call) = stack.pop() {
                            finished = Some(self.build(call)?);
                        }
                    }
                }
            }
        }
    }

    fn build(&self, mut call: OpenCall) -> Result<Datatype> {
        let types = std::mem::take(&mut call.types);
        construct(&mut call, types).map_err(|e| {
            let at = argument_position(self.text, &call, e.argument());
            let rule = format!("{}\n{}", e.rule(), self.lexer.caret(at));
            Error::new(e.class(), e.operation().to_owned(), e.argument().to_owned(), e.value(), rule)
        })
    }

    fn parse_text(&mut self) -> Result<Datatype> {
        while self.lexer.eat("let") {
            let (at, token) = (self.lexer.start(), self.lexer.token());
            let known =
                |name| name == "let" || find_constructor(name).is_some() || Named::from_name(name).is_some();
            let plain = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            let name = match token {
                Token::Word(name) | Token::Integer(name) if plain(name) && !known(name) => name,
                _ => return self.lexer.wanted("a name that is not a datatype's or constructor's"),
            };
            self.lexer.take();
            self.lexer.expect("=")?;
            let t = self.datatype()?;
            self.lexer.expect(";")?;
            if self.names.insert(name, t).is_some() {
                return Err(self.lexer.fault(at, "this name is defined already"));
            }
        }
        let t = self.datatype()?;
        self.lexer.end()?;
        Ok(t)
    }
}

/// Calls the constructor with the arguments that were collected, whose number and kinds follow from
/// its parameters.
fn construct(call: &mut OpenCall, types: Vec<Datatype>) -> Result<Datatype> {
    // The arguments of each kind are taken in the order of the parameters. The defaults for missing
    // values are never used, because `advance` has read all arguments.
    let mut numbers = call.numbers.iter().copied();
    let mut number = || numbers.next().unwrap_or(0);
    let mut arrays = std::mem::take(&mut call.arrays).into_iter();
    let mut array = || arrays.next().unwrap_or_default().into();
    let mut optionals = call.optionals.iter().copied();
    let mut optional = || optionals.next().flatten();
    let name = call.syntax.name;
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
            order: call.order,
            oldtype: oldtype()?,
        },
        "darray" => Combiner::Darray {
            size: number(),
            rank: number(),
            gsizes: array(),
            distribs: std::mem::take(&mut call.distribs).into(),
            dargs: std::mem::take(&mut call.dargs).into(),
            psizes: array(),
            order: call.order,
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

/// Returns the byte offset in the text of `argument`, which an error names, such as
/// `displacements[2]`. If the constructor has no such parameter, returns the offset of the
/// constructor.
fn argument_position(text: &str, call: &OpenCall, argument: &str) -> usize {
    let (name, index) = match argument.split_once('[') {
        Some((name, rest)) => (name, rest.trim_end_matches(']').parse().unwrap_or(0)),
        None => (argument, 0usize),
    };
    let Some(parameter) = call.syntax.parameters.iter().position(|p| p.0 == name) else { return call.at };
    let mut lexer = Lexer::new(&NOTATION, text, call.starts[parameter]);
    if argument.ends_with(']') {
        lexer.take();
    }
    for _ in 0..index {
        while lexer.token() != Token::End && !lexer.eat(",") {
            lexer.take();
        }
    }
    lexer.start()
}

/// Reads the text notation.
///
/// # Errors
/// Returns an error that says what is wrong in the text, or which rule of a constructor is broken,
/// and shows the line of the text with a caret.
impl FromStr for Datatype {
    type Err = Error;

    fn from_str(text: &str) -> Result<Datatype> {
        Parser { text, lexer: Lexer::new(&NOTATION, text, 0), names: HashMap::new() }.parse_text()
    }
}
