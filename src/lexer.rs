//! Lexer for the text forms of datatypes, nests and corpora: splits a text into words, integers and
//! punctuation.
//!
//! A token is a punctuation mark, or a run, as long as possible, of other characters without white
//! space. A run of digits, optionally after a `-`, is an integer, and any other run is a word.
//! Nothing is copied and no token is kept, so reading a text takes time linear in its length and no
//! memory.
//!
//! Invariant: every error names the line and the column, the text found there and what was
//! expected, and shows the line with a caret below it.

use std::fmt::Display;

use crate::error::{Error, ErrorClass, Result};

/// Maximum number of characters that an error shows of a line before the caret, of the same line
/// from the caret on, and of the text found at the caret.
const CONTEXT: usize = 60;

/// Characters that are tokens by themselves.
const PUNCTUATION: &[u8] = b"()[]{}=,:;@";

/// Properties in which the text forms of datatypes, nests and corpora differ.
#[derive(Debug)]
pub struct Notation {
    /// Name of the text form in error messages.
    pub name: &'static str,
    /// Whether `#` starts a comment that extends to the end of the line.
    pub comments: bool,
    /// Whether an integer may contain `_` after its first digit.
    pub grouped_digits: bool,
}

/// A token, as it is written in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A run of characters that is not an integer.
    Word(&'a str),
    /// Digits, optionally after a `-`.
    Integer(&'a str),
    /// One of `()[]{}=,:;@`.
    Punctuation(&'a str),
    /// The end of the text.
    End,
}

impl<'a> Token<'a> {
    /// Returns the characters of the token. Those of [`Token::End`] are none.
    pub fn text(self) -> &'a str {
        match self {
            Token::Word(text) | Token::Integer(text) | Token::Punctuation(text) => text,
            Token::End => "",
        }
    }
}

/// A text together with its next token.
#[derive(Clone, Copy, Debug)]
pub struct Lexer<'a> {
    notation: &'static Notation,
    text: &'a str,
    token: Token<'a>,
    /// Byte offset at which the next token starts.
    start: usize,
    /// Byte offset at which the previous token ended.
    after: usize,
}

impl<'a> Lexer<'a> {
    /// Returns a lexer that reads `text` from byte `start` on.
    pub fn new(notation: &'static Notation, text: &'a str, start: usize) -> Lexer<'a> {
        let mut lexer = Lexer { notation, text, token: Token::End, start, after: start };
        lexer.scan();
        lexer
    }

    /// Skips white space and comments from the byte offset `after` on, and makes the token that
    /// follows them the next token.
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

    /// Returns the next token and leaves it in place.
    pub fn token(&self) -> Token<'a> {
        self.token
    }

    /// Returns the text from the next token on.
    pub fn rest(&self) -> &'a str {
        &self.text[self.start..]
    }

    /// Returns the byte offset at which the next token starts.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Returns the byte offset at which the previous token ended.
    pub fn after(&self) -> usize {
        self.after
    }

    /// Takes the next token out of the text and returns it.
    pub fn take(&mut self) -> Token<'a> {
        let token = self.token;
        self.after = self.start + token.text().len();
        self.scan();
        token
    }

    /// Takes the next token if its text is `text`, and returns whether it did.
    pub fn eat(&mut self, text: &str) -> bool {
        let found = self.token != Token::End && self.token.text() == text;
        if found {
            self.take();
        }
        found
    }

    /// Takes the next token, whose text must be `text`.
    ///
    /// # Errors
    /// Returns an error if the next token is a different one.
    pub fn expect(&mut self, text: &str) -> Result<()> {
        if self.eat(text) { Ok(()) } else { self.wanted(format_args!("`{text}`")) }
    }

    /// Checks that the text has no more tokens.
    ///
    /// # Errors
    /// Returns an error if there is another token.
    pub fn end(&self) -> Result<()> {
        if self.token == Token::End { Ok(()) } else { self.wanted("the end of the text") }
    }

    /// Takes the next token, which must be an integer.
    ///
    /// # Errors
    /// Returns an error if the next token is not an integer or does not fit in an `i64`.
    pub fn signed(&mut self) -> Result<i64> {
        let value = self.integer("a number")?;
        let value = i64::try_from(value).map_err(|_| self.too_large())?;
        self.take();
        Ok(value)
    }

    /// Takes the next token, which must be an integer that is not negative.
    ///
    /// # Errors
    /// Returns an error if the next token is not an integer, is negative or does not fit in a
    /// `u64`.
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

    /// Returns an error which says that `what` was expected in place of the next token.
    ///
    /// # Errors
    /// Always returns an error.
    pub fn wanted<T>(&self, what: impl Display) -> Result<T> {
        Err(self.fault(self.start, format!("expected {what}")))
    }

    /// Returns an error of class `Arg` about the text at byte `at`. It shows that text, its line
    /// and column, `rule`, and the line with a caret.
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

    /// Returns the line that contains byte `at`, indented, and a second line with a caret below
    /// that byte. At most [`CONTEXT`] characters are shown on each side of the byte.
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

/// Returns the first `max_chars` characters of `text`, with control characters replaced by spaces,
/// and `...` if there are more.
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
