//! The pieces by hand: pieces.h and pieces.f90.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Texts by name; each begins with a line `//: NAME` or `!: NAME`.
pub(super) struct Pieces {
    texts: BTreeMap<&'static str, String>,
    taken: RefCell<BTreeSet<&'static str>>,
}

impl Pieces {
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

    /// The piece of that name, if there is one.
    pub(super) fn take(&self, name: &str) -> Option<&str> {
        let (name, text) = self.texts.get_key_value(name)?;
        self.taken.borrow_mut().insert(name);
        Some(text)
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.take(name).unwrap_or_else(|| panic!("no piece {name}"))
    }

    /// The pieces that nothing asked for.
    pub(super) fn left(&self) -> Vec<&'static str> {
        self.texts.keys().copied().filter(|n| !self.taken.borrow().contains(n)).collect()
    }
}
