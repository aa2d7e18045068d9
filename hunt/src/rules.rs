//! The rules of MPI 5.0 by which differences between a library and the standard are judged, in our
//! own words and with their sections.
//!
//! Records of findings have only the name of a rule. A change of the words here changes every
//! document when it is rendered again, and needs no new run of the fuzzer.

use crate::difference::Check;
use crate::library::MISUSES;

/// A rule of the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Section number in MPI 5.0.
    pub section: &'static str,
    /// One or more full sentences.
    pub text: &'static str,
}

/// Name of the rule that legal calls succeed. The section that `rule` gives for it depends on the
/// call.
const LEGAL: &str = "legal";

/// Name, section of MPI 5.0 and text of each rule.
const RULES: [(&str, &str, &str); 22] = [
    (
        "size",
        "5.1.5",
        "The size of a datatype is the sum of the sizes of the entries of its type map. A function returns \
         MPI_UNDEFINED if its result cannot represent the size.",
    ),
    (
        "bounds",
        "5.1.6",
        "The bounds of a datatype follow from the entries of its type map and from lower-bound and upper-bound \
         markers. MPI_Type_create_resized, MPI_Type_create_subarray and MPI_Type_create_darray set these markers.",
    ),
    (
        "true-bounds",
        "5.1.8",
        "The true lower bound and the true extent are determined by the entries of the type map alone. \
         Lower-bound and upper-bound markers and alignment do not count.",
    ),
    (
        "empty-true-bounds",
        "5.1.8",
        "The true bounds are defined by the entries of the type map. The standard does not say what they are if \
         the type map has no entries.",
    ),
    (
        "envelope",
        "5.1.13",
        "The envelope of a datatype names the constructor that made it, and the numbers of integers, addresses, \
         large counts and datatypes among the arguments of that call.",
    ),
    (
        "contents",
        "5.1.13",
        "The contents of a datatype are the arguments of the constructor call that made it.",
    ),
    (
        "packed",
        "5.2",
        "Values that are packed and then unpacked, or sent and received, are unchanged. The type maps on the two \
         sides say where in memory the values are.",
    ),
    (
        "format",
        "5.2",
        "A program uses the contents of a packed buffer only by unpacking them. The library chooses the bytes in \
         the buffer, and also the bytes that hold no value.",
    ),
    (
        "gap",
        "3.2.4",
        "A receive modifies only the locations of the elements that it receives. Unpacking and collective calls \
         have the same effect on their receive buffers.",
    ),
    (
        "position",
        "5.2",
        "Packing advances the position by the number of bytes that it wrote. Unpacking the same values advances \
         it by the same number.",
    ),
    (
        "pack-size",
        "5.2",
        "MPI_Pack_size returns an upper bound of the number of bytes by which MPI_Pack advances the position.",
    ),
    (
        "elements",
        "5.1.11",
        "MPI_Get_elements returns the number of basic elements that were received. MPI_Get_count returns the \
         number of whole instances of the datatype, or MPI_UNDEFINED if the message does not consist of whole \
         instances.",
    ),
    (
        "pairs",
        "5.1.11",
        "MPI_Get_elements returns the number of basic elements that were received. The standard can be read so \
         that a value with an index, such as MPI_DOUBLE_INT, is one basic element, or two.",
    ),
    (
        "external32",
        "14.5.2",
        "Every value has exactly one representation in external32. It is big-endian, and its size is that of the \
         standard's table.",
    ),
    (
        "attributes",
        "7.7.4",
        "MPI_Type_dup calls the copy callback of each attribute once. Deleting an attribute, or freeing a \
         datatype that has it, calls the delete callback once.",
    ),
    (
        "message",
        "3.3.1",
        "The type signatures of the two sides of the transfer are equal, so every value is moved from its place \
         in the sender's type map to its place in the receiver's type map.",
    ),
    (
        "commit",
        "5.1.9",
        "A committed datatype keeps its meaning if it is committed again, and if datatypes from which it was \
         built are freed. Other datatypes have no influence on it.",
    ),
    (
        "name",
        "7.8",
        "MPI_Type_get_name returns the name that was set last. A datatype without a name has the empty string as \
         its name.",
    ),
    (
        "beyond",
        "3.2.4",
        "A message that does not fit into the receive buffer is an overflow error. The standard mandates no \
         behavior for such a program, but advises implementors never to overwrite memory outside the receive \
         buffer.",
    ),
    (
        "truncated",
        "3.2.4",
        "A message that does not fit into the receive buffer is an overflow error, whose class is \
         MPI_ERR_TRUNCATE. The standard does not require a library to report errors.",
    ),
    (
        "handler",
        "9.3",
        "The error handler is MPI_ERRORS_RETURN, which returns an error code and does not end the process.",
    ),
    (LEGAL, "5.1", "All arguments are legal, so every call returns MPI_SUCCESS."),
];

/// Returns the rule with the given name, or none if no rule has this name. `check` and `kind` are
/// those of the difference that is judged by the rule. They matter only for the rule that legal
/// calls succeed, whose section depends on the call.
#[must_use]
pub fn rule(name: &str, check: Check, kind: &str) -> Option<Rule> {
    if let Some(call) = name.strip_prefix("misuse.") {
        let misuse = MISUSES.iter().find(|m| m.name == call)?;
        return Some(Rule { section: misuse.section, text: misuse.rule });
    }
    let &(_, section, text) = RULES.iter().find(|r| r.0 == name)?;
    let section = if name == LEGAL { legal(check, kind) } else { section };
    Some(Rule { section, text })
}

/// Returns the section of MPI 5.0 for the rule that legal calls succeed. If `kind` names a refused
/// call for which a section is listed here, returns that section. Otherwise returns the section
/// about the calls of `check`.
fn legal(check: Check, kind: &str) -> &'static str {
    let refused = kind.strip_prefix("refused-").map(|call| call.trim_end_matches("_c"));
    match refused {
        Some("type_create_subarray") => "5.1.3",
        Some("type_create_darray") => "5.1.4",
        Some("type_create_resized") => "5.1.7",
        Some("type_dup") => "5.1.10",
        Some("type_commit" | "type_free") => "5.1.9",
        Some(
            "type_contiguous"
            | "type_vector"
            | "type_create_hvector"
            | "type_indexed"
            | "type_create_hindexed"
            | "type_create_indexed_block"
            | "type_create_hindexed_block"
            | "type_create_struct",
        ) => "5.1.2",
        _ => match check {
            Check::Bounds => "5.1.5 to 5.1.8",
            Check::Pack | Check::Unpack => "5.2",
            Check::Decode => "5.1.13",
            Check::Elements => "5.1.11",
            Check::External32 => "5.3",
            Check::Attributes => "7.7.4",
            Check::Messages | Check::Truncation => "3.2",
            Check::Collectives => "6 and 12",
            Check::Commit => "5.1.9",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts of the rules go into bug reports as they are, so they must be full sentences.
    #[test]
    fn rules_are_full_sentences() {
        let own = RULES.iter().map(|r| (r.0, r.2));
        let texts: Vec<(&str, &str)> = own.chain(MISUSES.iter().map(|m| (m.name, m.rule))).collect();
        for (name, text) in texts {
            let first = text.chars().next().unwrap();
            assert!(first.is_uppercase() && text.ends_with('.') && !text.contains("  "), "{name}: {text}");
        }
    }

    #[test]
    fn the_section_of_a_legal_call_is_that_of_the_call() {
        let section = |check, kind| rule(LEGAL, check, kind).unwrap().section;
        assert_eq!(section(Check::Bounds, "refused-type_create_darray_c"), "5.1.4");
        assert_eq!(section(Check::External32, "dies"), "5.3");
        assert_eq!(rule("misuse.darray-rank-outside", Check::Commit, "misuse").unwrap().section, "5.1.4");
        assert_eq!(rule("no such rule", Check::Pack, "packed"), None);
    }
}
