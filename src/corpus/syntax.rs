//! Syntax of a corpus file: splits it into entries, whose datatypes are not built yet.
//!
//! ```text
//! # A comment line; the lines directly above an entry are its comment, an empty line ends them.
//! NAME = COUNT of TYPE
//!     an indented line continues the one above
//!     bounds: LB EXTENT TRUE_LB TRUE_UB
//!     packed: 00 04 08
//! ```
//!
//! `COUNT of` may be left out; COUNT is then 1. TYPE is the text notation of datatypes, in which
//! lists may be generated (`list.rs`), or one generated type (`types.rs`). `bounds` are those of
//! one instance, in bytes. `packed` are the bytes, in hexadecimal, of packing COUNT instances from
//! a user buffer whose byte at distance `i` from the origin has the value `i mod 251` (never
//! negative, even for negative `i`).

use crate::error::Result;
use crate::lexer::{Lexer, Notation, Token};

pub(super) static NOTATION: Notation = Notation { name: "corpus", comments: false, grouped_digits: false };

/// One entry as it stands in the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RawEntry {
    pub(super) line: usize,
    pub(super) comment: String,
    pub(super) name: String,
    pub(super) count: u64,
    pub(super) text: String,
    pub(super) bounds: Option<[i64; 4]>,
    pub(super) packed: Option<Vec<u8>>,
}

/// Returns all entries of a corpus file, or an error with line and column.
pub(super) fn parse(text: &str) -> Result<Vec<RawEntry>> {
    let mut entries: Vec<RawEntry> = Vec::new();
    let mut comment = String::new();
    let (mut key, mut start) = (Key::Type, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let lexer = Lexer::new(&NOTATION, &text[..start + line.trim_end().len()], start);
        start += line.len();
        let body = line.trim();
        if body.is_empty() {
            comment.clear();
        } else if let Some(words) = body.strip_prefix('#') {
            if !comment.is_empty() {
                comment.push('\n');
            }
            comment.push_str(words.trim());
        } else if line.starts_with([' ', '\t']) {
            match entries.last_mut() {
                Some(entry) => key = continued(entry, key, lexer)?,
                None => return lexer.wanted("an entry before what continues one"),
            }
        } else {
            entries.push(first_line(std::mem::take(&mut comment), number + 1, lexer)?);
            key = Key::Type;
        }
    }
    Ok(entries)
}

/// Part of an entry. An indented line that does not begin with a key (`bounds:` or `packed:`)
/// continues the part of the line before it.
#[derive(Clone, Copy)]
enum Key {
    Type,
    Bounds,
    Packed,
}

/// Returns the entry that begins with the line of `lexer`.
fn first_line(comment: String, line: usize, mut lexer: Lexer<'_>) -> Result<RawEntry> {
    let name = lexer.token().text();
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)) {
        return lexer.wanted("a name of letters, digits, '_', '.' and '-'");
    }
    lexer.take();
    lexer.expect("=")?;
    let value = lexer.rest();
    let (count, text) = match value.split_once(" of ") {
        Some((count, text)) if count.starts_with(|c: char| c.is_ascii_digit()) => {
            let n = lexer.unsigned()?;
            if lexer.token() != Token::Word("of") {
                return lexer.wanted("`of`");
            }
            (n, text.trim())
        }
        _ => (1, value),
    };
    Ok(RawEntry { line, comment, name: name.into(), count, text: text.into(), bounds: None, packed: None })
}

/// Adds an indented line to `entry`, and returns the part of the entry that the line belongs to.
/// This is `key`, the part of the line before, unless the line begins with `bounds:` or `packed:`.
fn continued(entry: &mut RawEntry, key: Key, mut lexer: Lexer<'_>) -> Result<Key> {
    let body = lexer.rest();
    let (key, named) = match body {
        _ if body.starts_with("bounds:") => (Key::Bounds, true),
        _ if body.starts_with("packed:") => (Key::Packed, true),
        _ => (key, false),
    };
    if named {
        lexer.take();
        lexer.take();
    }
    match key {
        Key::Type => {
            if !entry.text.is_empty() && !entry.text.ends_with(['(', '[']) {
                entry.text.push(' ');
            }
            entry.text.push_str(body);
        }
        Key::Bounds => {
            entry.bounds = Some([lexer.signed()?, lexer.signed()?, lexer.signed()?, lexer.signed()?]);
            lexer.end()?;
        }
        Key::Packed => {
            let packed = entry.packed.get_or_insert_default();
            while lexer.token() != Token::End {
                let word = lexer.token().text();
                let digits = word.len() == 2 && word.bytes().all(|b| b.is_ascii_hexdigit());
                match u8::from_str_radix(word, 16) {
                    Ok(byte) if digits => packed.push(byte),
                    _ => return lexer.wanted("two hexadecimal digits"),
                }
                lexer.take();
            }
        }
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_with_everything() {
        let text = "# lost\n\n# two\n# lines\na.S = 3 of struct(\n    [1, 2],\n    [int])\n    bounds: -4 8 0 4\n    packed: 00 fb\n      0A\nb = int\n";
        let entries = parse(text).unwrap();
        let a = RawEntry {
            line: 5,
            comment: "two\nlines".into(),
            name: "a.S".into(),
            count: 3,
            text: "struct([1, 2], [int])".into(),
            bounds: Some([-4, 8, 0, 4]),
            packed: Some(vec![0x00, 0xfb, 0x0a]),
        };
        let b = RawEntry {
            line: 11,
            comment: String::new(),
            name: "b".into(),
            count: 1,
            text: "int".into(),
            bounds: None,
            packed: None,
        };
        assert_eq!(entries, [a, b]);
    }

    #[test]
    fn bad_lines_name_their_place() {
        for (text, place) in [
            ("\n  int", "line 2, column 3"),
            ("a", "line 1, column 2"),
            ("a b = int", "line 1, column 3"),
            ("a = 99999999999999999999 of int", "line 1, column 5"),
            ("a = 3 x of int", "line 1, column 7"),
            ("a = int\n  bounds: 1 2 3", "line 2, column 16"),
            ("a = int\n  packed: 1", "line 2, column 11"),
            ("a = int\n  packed: 00\r\n  +1", "line 3, column 3"),
        ] {
            assert_eq!(parse(text).unwrap_err().argument(), place, "{text}");
        }
    }
}
