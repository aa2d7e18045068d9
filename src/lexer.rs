//! Words, integers and punctuation: what the parsers of datatypes, nests and corpora read their texts by.
//!
//! A token is a punctuation mark or a longest run of other characters without white space; a run of digits, perhaps after a `-`, is an
//! integer and any other one a word. Nothing is copied and no token is kept, so a text costs its length in time and nothing in memory.
//! Invariant: every error names line and column, what stood there and what was expected, and shows the line with a caret below.

use std::fmt::Display;

use crate::error::{Error, ErrorClass, Result};

/// Characters that an error shows of a line on each side of the caret, and of what stands there.
const CONTEXT: usize = 60;

/// Characters that are tokens by themselves.
const PUNCTUATION: &[u8] = b"()[]{}=,:;@";

/// Differences between the text forms.
#[derive(Debug)]
pub struct Notation {
    /// Name of the text in errors.
    pub name: &'static str,
    /// Whether `#` starts a comment that ends with its line.
    pub comments: bool,
    /// Whether `_` may stand between and behind the digits of an integer.
    pub grouped_digits: bool,
}

/// A piece of text, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// Any run of characters that is no integer.
    Word(&'a str),
    /// Digits, perhaps after a `-`.
    Integer(&'a str),
    /// One of `()[]{}=,:;@`.
    Punctuation(&'a str),
    /// The end of the text.
    End,
}

impl<'a> Token<'a> {
    /// Returns the characters of the token; empty at the end.
    pub fn text(self) -> &'a str {
        match self {
            Token::Word(text) | Token::Integer(text) | Token::Punctuation(text) => text,
            Token::End => "",
        }
    }
}

/// A text with the place of the next token.
#[derive(Clone, Copy, Debug)]
pub struct Lexer<'a> {
    notation: &'static Notation,
    text: &'a str,
    token: Token<'a>,
    /// Where the next token starts, in bytes.
    start: usize,
    /// Where the token before it ended.
    after: usize,
}

impl<'a> Lexer<'a> {
    /// Reads `text` from byte `start` on.
    pub fn new(notation: &'static Notation, text: &'a str, start: usize) -> Lexer<'a> {
        let mut lexer = Lexer { notation, text, token: Token::End, start, after: start };
        lexer.scan();
        lexer
    }

    /// Finds the token behind `after`.
    fn scan(&mut self) {
        let bytes = self.text.as_bytes();
        let comments = self.notation.comments;
        let until = |start: usize, end: &dyn Fn(u8) -> bool| {
            bytes[start..].iter().position(|&b| end(b)).map_or(bytes.len(), |n| start + n)
        };
        let mut start = self.after;
        loop {
            start = until(start, &|b| !b.is_ascii_whitespace());
            if !(comments && bytes.get(start) == Some(&b'#')) {
                break;
            }
            start = until(start, &|b| b == b'\n');
        }
        self.start = start;
        let ends = |b: u8| b.is_ascii_whitespace() || PUNCTUATION.contains(&b) || (comments && b == b'#');
        self.token = match bytes.get(start) {
            None => Token::End,
            Some(b) if PUNCTUATION.contains(b) => Token::Punctuation(&self.text[start..=start]),
            Some(_) => {
                let run = &self.text[start..until(start, &ends)];
                if self.is_integer(run) { Token::Integer(run) } else { Token::Word(run) }
            }
        };
    }

    fn is_integer(&self, run: &str) -> bool {
        let digits = run.strip_prefix('-').unwrap_or(run);
        let group = |b: u8| self.notation.grouped_digits && b == b'_';
        digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.bytes().all(|b| b.is_ascii_digit() || group(b))
    }

    /// Returns the next token.
    pub fn token(&self) -> Token<'a> {
        self.token
    }

    /// Returns the text from the next token on.
    pub fn rest(&self) -> &'a str {
        &self.text[self.start..]
    }

    /// Returns where the next token starts, in bytes of the text.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Returns where the token before the next one ended, in bytes of the text.
    pub fn after(&self) -> usize {
        self.after
    }

    /// Gives the next token and goes on to the one behind it.
    pub fn take(&mut self) -> Token<'a> {
        let token = self.token;
        self.after = self.start + token.text().len();
        self.scan();
        token
    }

    /// Takes the next token if it is written as `text`.
    pub fn eat(&mut self, text: &str) -> bool {
        let found = self.token != Token::End && self.token.text() == text;
        if found {
            self.take();
        }
        found
    }

    /// Takes a token that must be written as `text`.
    ///
    /// # Errors
    /// If another one stands there.
    pub fn expect(&mut self, text: &str) -> Result<()> {
        if self.eat(text) { Ok(()) } else { self.wanted(format_args!("`{text}`")) }
    }

    /// Makes sure that nothing is left.
    ///
    /// # Errors
    /// If there is another token.
    pub fn end(&self) -> Result<()> {
        if self.token == Token::End { Ok(()) } else { self.wanted("the end of the text") }
    }

    /// Takes an integer.
    ///
    /// # Errors
    /// If something else stands there, or the integer does not fit.
    pub fn signed(&mut self) -> Result<i64> {
        let value = self.integer("a number")?;
        let value = i64::try_from(value).map_err(|_| self.too_large())?;
        self.take();
        Ok(value)
    }

    /// Takes an integer that is not negative.
    ///
    /// # Errors
    /// If something else stands there, or the integer does not fit.
    pub fn unsigned(&mut self) -> Result<u64> {
        let what = "a number that is not negative";
        let value = self.integer(what)?;
        if value < 0 {
            return self.wanted(what);
        }
        let value = u64::try_from(value).map_err(|_| self.too_large())?;
        self.take();
        Ok(value)
    }

    fn integer(&self, what: &str) -> Result<i128> {
        let Token::Integer(text) = self.token else { return self.wanted(what) };
        let digits = text.bytes().filter(u8::is_ascii_digit).map(|b| i128::from(b - b'0'));
        let value = digits.fold(0i128, |value, digit| value.saturating_mul(10).saturating_add(digit));
        Ok(if text.starts_with('-') { -value } else { value })
    }

    fn too_large(&self) -> Error {
        self.fault(self.start, "the number does not fit in 64 bits")
    }

    /// Returns the error that `what` was expected where the next token stands.
    ///
    /// # Errors
    /// Always.
    pub fn wanted<T>(&self, what: impl Display) -> Result<T> {
        Err(self.fault(self.start, format!("expected {what}")))
    }

    /// Returns an error of class `Arg` about what stands at byte `at`.
    pub fn fault(&self, at: usize, rule: impl Display) -> Error {
        let found = Lexer::new(self.notation, self.text, at).token;
        let found = match found {
            Token::End => "the end of the text".to_owned(),
            _ => format!("'{}'", printable(found.text(), CONTEXT)),
        };
        let before = &self.text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        let rule = format!("{rule}\n{}", self.caret(at));
        Error::new(ErrorClass::Arg, self.notation.name, format!("line {line}, column {column}"), found, rule)
    }

    /// Returns the line around byte `at`, indented, and a line with a caret below that byte.
    pub fn caret(&self, at: usize) -> String {
        let (before, after) = self.text.split_at(at);
        let before: Vec<char> = before.rsplit('\n').next().unwrap_or("").chars().collect();
        let cut = before.len().saturating_sub(CONTEXT);
        let mut line = String::from(if cut > 0 { "..." } else { "" });
        line += &printable(&before[cut..].iter().collect::<String>(), CONTEXT);
        let column = line.chars().count();
        line += &printable(after.split('\n').next().unwrap_or(""), CONTEXT);
        format!("  {line}\n  {}^", " ".repeat(column))
    }
}

/// At most `max_chars` characters of `text`, each of which can be printed.
fn printable(text: &str, max_chars: usize) -> String {
    let mut shown: String =
        text.chars().take(max_chars).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(max_chars).is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    static PLAIN: Notation = Notation { name: "plain", comments: false, grouped_digits: false };
    static RICH: Notation = Notation { name: "rich", comments: true, grouped_digits: true };

    fn tokens(notation: &'static Notation, text: &'static str) -> Vec<Token<'static>> {
        let mut lexer = Lexer::new(notation, text, 0);
        let mut tokens = Vec::new();
        while lexer.token() != Token::End {
            tokens.push(lexer.take());
        }
        assert_eq!((lexer.take(), lexer.after()), (Token::End, text.len()));
        tokens
    }

    #[test]
    fn runs_are_words_or_integers() {
        use Token::{Integer, Punctuation, Word};
        assert_eq!(
            tokens(&PLAIN, " a-1(-1,2x :- 1_0"),
            [
                Word("a-1"),
                Punctuation("("),
                Integer("-1"),
                Punctuation(","),
                Word("2x"),
                Punctuation(":"),
                Word("-"),
                Word("1_0"),
            ]
        );
        assert_eq!(
            tokens(&RICH, "1_0#é\n--1 gr\u{fc}n\u{a0}2"),
            [Integer("1_0"), Word("--1"), Word("grün\u{a0}2")]
        );
        assert_eq!(tokens(&PLAIN, "1#2"), [Word("1#2")]);
        assert_eq!(tokens(&RICH, "# only"), []);
    }

    #[test]
    fn integers_have_64_bits() {
        let signed = |text| Lexer::new(&RICH, text, 0).signed();
        let unsigned = |text| Lexer::new(&RICH, text, 0).unsigned();
        assert_eq!(signed("-9223372036854775808"), Ok(i64::MIN));
        assert_eq!(unsigned("18446744073709551615"), Ok(u64::MAX));
        let long = "9".repeat(1000);
        for (result, rule) in [
            (signed("9223372036854775808").map(drop), "does not fit in 64 bits"),
            (unsigned(&long).map(drop), "does not fit in 64 bits"),
            (unsigned("-1").map(drop), "expected a number that is not negative"),
            (unsigned("x").map(drop), "expected a number that is not negative"),
            (signed("").map(drop), "expected a number"),
        ] {
            let error = result.unwrap_err();
            assert!(error.rule().contains(rule) && error.to_string().len() < 400, "{error}");
        }
    }

    #[test]
    fn errors_have_a_place_and_what_stands_there() {
        let mut lexer = Lexer::new(&RICH, "a #\n é b", 0);
        lexer.take();
        lexer.take();
        let error = lexer.expect("=").unwrap_err();
        assert_eq!(error.to_string(), "rich: line 2, column 4 = 'b': expected `=`\n   é b\n     ^");
        lexer.take();
        let error = lexer.expect("=").unwrap_err();
        assert_eq!((error.argument(), error.value()), ("line 2, column 5", "the end of the text"));
        assert!(lexer.end().is_ok() && !lexer.eat(""));
    }
}
