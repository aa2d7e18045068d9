//! The lines of a corpus file, before any datatype is built.
//!
//! ```text
//! # A comment line; the lines directly above an entry are its comment, an empty line ends them.
//! NAME = COUNT of TYPE
//!     an indented line continues the one above
//!     bounds: LB EXTENT TRUE_LB TRUE_UB
//!     packed: 00 04 08
//! ```
//!
//! `COUNT of` may be left out and is 1 then. TYPE is the text notation of datatypes, in which a list may be generated
//! (`list.rs`), or one generated type (`types.rs`). `bounds` are of one instance, in bytes. `packed` are the bytes in
//! hexadecimal that packing COUNT instances gives from a user buffer whose byte at distance `i` from the origin has the
//! value `i mod 251` (never negative, also for negative `i`).

use std::borrow::Cow;

use crate::error::{Error, ErrorClass, Result};

/// One entry as written.
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

/// An error at `line`, counted from 1.
pub(super) fn fault(line: usize, value: &str, rule: impl Into<Cow<'static, str>>) -> Error {
    let shown: String = value.chars().take(60).collect();
    Error::new(ErrorClass::Arg, "corpus", format!("line {line}"), format!("'{shown}'"), rule)
}

/// All entries of a corpus file.
pub(super) fn parse(text: &str) -> Result<Vec<RawEntry>> {
    let mut entries: Vec<RawEntry> = Vec::new();
    let mut comment = String::new();
    let mut key = Key::Type;
    for (number, line) in text.lines().enumerate() {
        let (number, body) = (number + 1, line.trim());
        if body.is_empty() {
            comment.clear();
        } else if let Some(words) = body.strip_prefix('#') {
            if !comment.is_empty() {
                comment.push('\n');
            }
            comment.push_str(words.trim());
        } else if line.starts_with([' ', '\t']) {
            let entry = entries
                .last_mut()
                .ok_or_else(|| fault(number, line, "an indented line continues an entry"))?;
            key = continued(entry, key, number, body)?;
        } else {
            entries.push(first_line(std::mem::take(&mut comment), number, body)?);
            key = Key::Type;
        }
    }
    Ok(entries)
}

/// What an indented line without a key of its own continues.
#[derive(Clone, Copy)]
enum Key {
    Type,
    Bounds,
    Packed,
}

fn first_line(comment: String, line: usize, body: &str) -> Result<RawEntry> {
    let (name, value) = body
        .split_once('=')
        .ok_or_else(|| fault(line, body, "an entry is NAME = TYPE or NAME = COUNT of TYPE"))?;
    let name = name.trim();
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)) {
        return Err(fault(line, name, "a name has letters, digits, '_', '.' and '-' only"));
    }
    let value = value.trim();
    let (count, text) = match value.split_once(" of ") {
        Some((count, text)) if count.starts_with(|c: char| c.is_ascii_digit()) => {
            let count = count.trim().parse().map_err(|_| fault(line, count, "COUNT is a 64-bit number"))?;
            (count, text.trim())
        }
        _ => (1, value),
    };
    Ok(RawEntry { line, comment, name: name.into(), count, text: text.into(), bounds: None, packed: None })
}

fn continued(entry: &mut RawEntry, key: Key, line: usize, body: &str) -> Result<Key> {
    let (key, words) = if let Some(words) = body.strip_prefix("bounds:") {
        (Key::Bounds, words)
    } else if let Some(words) = body.strip_prefix("packed:") {
        (Key::Packed, words)
    } else {
        (key, body)
    };
    match key {
        Key::Type => {
            if !entry.text.is_empty() && !entry.text.ends_with(['(', '[']) {
                entry.text.push(' ');
            }
            entry.text.push_str(words);
        }
        Key::Bounds => {
            let rule = "bounds are four 64-bit numbers: lb, extent, true lb, true ub";
            let numbers: Option<Vec<i64>> = words.split_whitespace().map(|w| w.parse().ok()).collect();
            let four = numbers.and_then(|n| n.try_into().ok());
            entry.bounds = Some(four.ok_or_else(|| fault(line, words, rule))?);
        }
        Key::Packed => {
            let rule = "packed bytes are pairs of hexadecimal digits with spaces between";
            let packed = entry.packed.get_or_insert_default();
            for word in words.split_whitespace() {
                let digits = word.len() == 2 && word.bytes().all(|b| b.is_ascii_hexdigit());
                let byte = u8::from_str_radix(word, 16).ok().filter(|_| digits);
                packed.push(byte.ok_or_else(|| fault(line, word, rule))?);
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
    fn bad_lines_name_their_number() {
        for (text, line) in [
            ("\n  int", "line 2"),
            ("a", "line 1"),
            ("a b = int", "line 1"),
            ("a = 99999999999999999999 of int", "line 1"),
            ("a = int\n  bounds: 1 2 3", "line 2"),
            ("a = int\n  packed: 1", "line 2"),
            ("a = int\n  packed: 00\n  +1", "line 3"),
        ] {
            assert_eq!(parse(text).unwrap_err().argument(), line, "{text}");
        }
    }
}
