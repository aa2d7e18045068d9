//! Parser for pieces.h and pieces.f90, which contain the handwritten parts (pieces) of the
//! generated files.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The pieces of one file by their names. A line `//: NAME` or `!: NAME` precedes each piece.
pub(super) struct Pieces {
    texts: BTreeMap<&'static str, String>,
    taken: RefCell<BTreeSet<&'static str>>,
}

impl Pieces {
    /// Returns the pieces of `file`. A line that begins with `mark` has the name of the piece after
    /// it. Lines before the first name are ignored.
    pub(super) fn parse(file: &'static str, mark: &str) -> Pieces {
        let mut texts = BTreeMap::<_, String>::new();
        let mut name = None;
        for line in file.lines() {
            if let Some(next) = line.strip_prefix(mark) {
                assert!(texts.insert(next.trim(), String::new()).is_none(), "two pieces {next}");
                name = Some(next.trim());
            } else if let Some(name) = name {
                let text = texts.get_mut(name).expect("the piece");
                text.push_str(line);
                text.push('\n');
            }
        }
        Pieces { texts, taken: RefCell::default() }
    }

    /// Returns the text of the piece called `name`, and marks the piece as used. Returns none if
    /// there is no such piece.
    pub(super) fn take(&self, name: &str) -> Option<&str> {
        let (name, text) = self.texts.get_key_value(name)?;
        self.taken.borrow_mut().insert(name);
        Some(text)
    }

    /// Returns the text of the piece called `name`, and marks the piece as used. Panics if there is
    /// no such piece.
    pub(super) fn text(&self, name: &str) -> &str {
        self.take(name).unwrap_or_else(|| panic!("no piece {name}"))
    }

    /// Returns the names of the pieces that were never used.
    pub(super) fn left(&self) -> Vec<&'static str> {
        self.texts.keys().copied().filter(|n| !self.taken.borrow().contains(n)).collect()
    }
}
