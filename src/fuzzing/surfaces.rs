//! Checks of the parsers of texts: any text is read or refused, and what was read prints as text
//! that can be read again.

use super::case::{Check, Mismatch, ensure};
use super::panics::caught;
use crate::corpus;
use crate::datatype::Datatype;
use crate::nest::{LoopNest, Lowered, Normal, Phase};

/// Maximum length of a text in bytes. Longer texts would take time and find nothing more.
const MAX_TEXT: usize = 4 << 10;

/// Checks `text` as a datatype, as a corpus, and as a nest of either phase.
///
/// # Errors
/// The first property that does not hold, or a panic of a parser.
pub fn check_text(text: &str) -> Result<(), Mismatch> {
    if text.len() > MAX_TEXT {
        return Ok(());
    }
    caught(|| {
        datatype(text)?;
        nest::<Lowered>(text)?;
        nest::<Normal>(text)?;
        // A corpus with generated lists may ask for millions of rows in a few words, so it is not
        // read here. The corpus has tests for such lists.
        if !text.contains('@') {
            drop(corpus::parse(text));
        }
        Ok(())
    })
    .unwrap_or_else(|panic| Err(Mismatch::new("text", format!("panic: {panic}\n{text}"))))
}

/// Checks that a datatype that was read reads back as the same one from both forms of its text.
fn datatype(text: &str) -> Check {
    let Ok(t) = text.parse::<Datatype>() else { return Ok(()) };
    for printed in [t.to_string(), format!("{t:#}")] {
        let again = printed.parse::<Datatype>();
        let again = again.map_err(|e| Mismatch::new("text", format!("{e}\nreading back\n{printed}")))?;
        ensure(again == t, "text", || format!("another datatype was read back from\n{printed}"))?;
    }
    Ok(())
}

/// Reads `text` as a nest. If it can be read and passes the verifier, it must print as text that
/// reads back as a nest that passes too. Texts with elided columns are skipped.
fn nest<P: Phase>(text: &str) -> Check {
    let Ok(nest) = text.parse::<LoopNest<P>>() else { return Ok(()) };
    let printed = nest.to_string();
    if nest.verify().is_err() || printed.contains(" ... ") {
        return Ok(());
    }
    let again = printed.parse::<LoopNest<P>>();
    let again = again.map_err(|e| Mismatch::new("text", format!("{e}\nreading back\n{printed}")))?;
    ensure(again.verify().is_ok(), "text", || format!("a broken nest was read back from\n{printed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_read_back() {
        for text in [
            "vector(3, 1, 2, int)",
            "",
            "struct([1],[0],[int",
            "let t0 = int; dup(t0)",
            "((((",
            "hindexed([1],[9],f90_real(6,30))",
            "nest normal size 4 extent 4\ncopy 4*count",
            "nest lowered size 4 extent 4\nlet b0 = { copy 4 }\nloop count step 4 4 b0",
            "nest lowered size 4 extent 4\nloop count step 4 4 {",
            "nest normal size -1 extent 9\ncopy 18446744073709551615*count at 1 1",
            "a = int\nb = vector(1,2",
        ] {
            check_text(text).unwrap_or_else(|m| panic!("{m}"));
        }
    }

    #[test]
    fn every_prefix_and_every_changed_byte() {
        let texts = [
            "let t0 = struct([1,1],[0,8],[int,double]); indexed([1,-2],[3,4],dup(t0))",
            "nest lowered size 12 extent 64\nlet b0 = {\n  copy 4 unit int external32\n}\nloop count step 64 12 {\n  table [0 40 100] packed 4 b0\n}",
        ];
        for text in texts {
            for i in 0..text.len() {
                check_text(&text[..i]).unwrap_or_else(|m| panic!("{m}"));
                for byte in [b'0', b'-', b'}', b'[', b'z', b' ', b'9'] {
                    let mut bytes = text.as_bytes().to_vec();
                    bytes[i] = byte;
                    check_text(std::str::from_utf8(&bytes).unwrap()).unwrap_or_else(|m| panic!("{m}"));
                }
            }
        }
    }
}
