//! Sentences about findings: what a program does, what goes wrong, and why the standard leaves a
//! matter open. They depend only on what the record of a finding has, so every document can be
//! rendered again from the records of a run.

use crate::cause::AFTER_OTHERS;
use crate::difference::Check;
use crate::finding::Finding;
use crate::library::MISUSES;

/// Returns the names of the MPI functions that the C program for a check calls, as a list for use
/// in a sentence.
fn calls(check: Check) -> &'static str {
    match check {
        Check::Bounds => "MPI_Type_size, MPI_Type_get_extent and MPI_Type_get_true_extent",
        Check::Pack => "MPI_Pack_size, MPI_Pack and MPI_Unpack",
        Check::Unpack => "MPI_Pack and MPI_Unpack",
        Check::Decode => "MPI_Type_get_envelope and MPI_Type_get_contents",
        Check::Elements => "MPI_Sendrecv, MPI_Get_count and MPI_Get_elements",
        Check::External32 => "MPI_Pack_external_size, MPI_Pack_external and MPI_Unpack_external",
        Check::Attributes => "MPI_Type_dup, MPI_Type_set_attr and MPI_Type_delete_attr",
        Check::Messages => "MPI_Sendrecv, MPI_Isend and MPI_Recv",
        Check::Collectives => "MPI_Allgather, MPI_Gather, MPI_Scatter, MPI_Alltoallw, MPI_Put and MPI_Get",
        Check::Commit => "MPI_Type_commit, MPI_Type_dup, MPI_Type_free and MPI_Pack",
        Check::Truncation => "MPI_Isend, MPI_Send, MPI_Recv and MPI_Irecv",
    }
}

/// Returns one sentence that could be the subject of a bug report.
pub(crate) fn summary(f: &Finding) -> String {
    let (kind, calls) = (f.kind.trim_end_matches(AFTER_OTHERS), calls(f.check));
    if let Some(call) = kind.strip_prefix("refused-") {
        // The kind has the name of the refused call, in lower case and without the prefix `MPI_`.
        let (first, rest) = call.split_at(call.len().min(1));
        return format!("MPI_{}{rest} refuses legal arguments.", first.to_uppercase());
    }
    let sentence = match kind {
        "dies" => return format!("The process ends during legal calls of {calls}."),
        "hangs" => return format!("Legal calls of {calls} do not return."),
        "aborts" => "A receive that is too short for its message ends the process.",
        "size" | "size-in-int" => "The size of the datatype is wrong.",
        "bounds" => "MPI_Type_get_extent gives wrong bounds.",
        "bounds-of-nothing" => "The bounds of a datatype without entries differ.",
        "bounds-zero-blocks" => "The bounds of a datatype with blocks of length zero differ.",
        "bounds-empty-members" => "The bounds of a datatype with members of size zero differ.",
        "bounds-epsilon" => "The extent of a datatype is padded differently.",
        "bounds-markers" => "The bounds differ if some members have markers and others do not.",
        "true-bounds" => "MPI_Type_get_true_extent gives wrong bounds.",
        "true-bounds-of-nothing" => "The true bounds of a datatype without entries differ.",
        "envelope" | "combiner" => "MPI_Type_get_envelope gives a wrong envelope.",
        "contents" | "child" => "MPI_Type_get_contents gives wrong contents.",
        "synonym" => "MPI_Type_get_contents gives an equivalent datatype instead of the one that was used.",
        "packed" | "packed-at-position" => "MPI_Pack packs wrong values.",
        "format" => "The packed format is not the sequence of the values' bytes.",
        "padding" => "MPI_Pack does not keep the padding bytes of a long double.",
        "pack-size" => "MPI_Pack_size gives less than MPI_Pack needs.",
        "position" => "The position after packing or unpacking is wrong.",
        "unpacked" => "MPI_Unpack stores wrong values.",
        "gap" | "outside" => "Bytes are overwritten that belong to no entry of the type map.",
        "count" | "count-of-whole" => "MPI_Get_count gives a wrong number.",
        "elements" => "MPI_Get_elements gives a wrong number.",
        "elements-of-pairs" => "MPI_Get_elements counts a value with an index differently.",
        "received" | "sent" | "sent-to-itself" => "A message arrives with wrong values.",
        "external-size" => "MPI_Pack_external_size gives a wrong size.",
        "external-length" => "MPI_Pack_external writes a wrong number of bytes.",
        "external-bytes" => "MPI_Pack_external writes wrong bytes.",
        "external-unpacked" => "MPI_Unpack_external stores wrong values.",
        "allgather" => "MPI_Allgather moves wrong values.",
        "gather" => "MPI_Gather moves wrong values.",
        "scatter" => "MPI_Scatter moves wrong values.",
        "alltoallw" => "MPI_Alltoallw moves wrong values.",
        "put" => "MPI_Put moves wrong values.",
        "get" => "MPI_Get moves wrong values.",
        "accumulate" => "MPI_Accumulate with MPI_SUM gives wrong sums.",
        "copy-callbacks" | "delete-callbacks" | "free-callbacks" => {
            "The callbacks of attributes are called the wrong number of times."
        }
        "copied-attribute" => "A duplicate has wrong attributes.",
        "duplicate" => "A duplicate has another size or other bounds than the original.",
        "fresh-name" => "A new datatype has a name.",
        "name" => "MPI_Type_get_name does not give the name that was set.",
        "packed-without-parts" => "A datatype packs wrong values after its parts were freed.",
        "packed-duplicate" => "A duplicate packs wrong values after the original was freed.",
        "packed-among-many" => "A datatype packs wrong values while many others are live.",
        "beyond" | "beyond-contiguous" => "A receive writes outside its buffer if the message is too long.",
        "unnoticed" => "A receive that is too short for its message reports no error.",
        "class" => "A receive that is too short for its message reports an error of another class.",
        "misuse" => "A call with a forbidden argument does not return an error.",
        "ddtc" => "Compiled code of ddtc packs wrong bytes. This is a fault of ddtc.",
        _ => return format!("{calls} give another result than the definition."),
    };
    sentence.to_owned()
}

/// Returns one or more sentences that say what the program of a finding does, beginning with "It".
pub(crate) fn action(f: &Finding) -> String {
    let kind = f.kind.trim_end_matches(AFTER_OTHERS);
    if let Some(call) = f.rule.name.strip_prefix("misuse.") {
        let call = MISUSES.iter().find(|m| m.name == call).map_or("", |m| m.call);
        return format!("It sets the error handler MPI_ERRORS_RETURN and makes the forbidden call `{call}`.");
    }
    let built = if f.fingerprint.contains(".large") {
        "It builds the datatype with constructors that take large counts, such as MPI_Type_contiguous_c"
    } else {
        "It builds the datatype"
    };
    let committed = if matches!(f.check, Check::Bounds | Check::Decode) { "" } else { ", commits it" };
    format!("{built}{committed} and {}.", steps(f, kind))
}

/// Returns what the program does with the datatype. The text is the rest of a sentence after "It
/// builds the datatype, commits it and", without the full stop. For checks that commit no datatype,
/// the sentence has no "commits it".
fn steps(f: &Finding, kind: &str) -> String {
    let n = match f.count {
        1 => "one instance".to_owned(),
        n => format!("{n} instances"),
    };
    match (f.check, kind) {
        (Check::Bounds, "size") => "calls MPI_Type_size_x".to_owned(),
        (Check::Bounds, "size-in-int") => "calls MPI_Type_size, whose result is an int".to_owned(),
        (Check::Bounds, k) if k.starts_with("bounds") => "calls MPI_Type_get_extent".to_owned(),
        (Check::Bounds, k) if k.starts_with("true-bounds") => "calls MPI_Type_get_true_extent".to_owned(),
        (Check::Bounds, _) => {
            "calls MPI_Type_size_x, MPI_Type_get_extent, MPI_Type_get_true_extent and MPI_Type_size"
                .to_owned()
        }
        (Check::Pack, "format") => format!(
            "packs {n} with MPI_Pack and compares the packed bytes with those in memory, in the order of the type \
             map"
        ),
        (Check::Pack, "padding") => {
            format!(
                "packs {n} with MPI_Pack and compares all packed bytes, also padding, with those in memory"
            )
        }
        (Check::Pack, _) => format!(
            "packs {n} with MPI_Pack, unpacks them with MPI_Unpack, and compares the memory with the type map. Then \
             it does the same with a second copy in the same packed buffer"
        ),
        (Check::Unpack, _) => format!(
            "packs values that are stored without gaps, unpacks them with MPI_Unpack into {n} of the datatype, and \
             compares the memory with the type map"
        ),
        (Check::Decode, _) => {
            "compares the results of MPI_Type_get_envelope and MPI_Type_get_contents, or of their \
                               large-count versions, with the arguments of the constructor"
                .to_owned()
        }
        (Check::Elements, "count" | "elements" | "elements-of-pairs") => format!(
            "receives messages from itself into {n} of the datatype: none, one, half, all but one and all of the \
             basic elements. After each message it compares the results of MPI_Get_count and MPI_Get_elements"
        ),
        (Check::Elements, _) => format!(
            "receives messages from itself into {n} of the datatype: none, one, half, all but one and all of the \
             basic elements. After each message it calls MPI_Get_count and MPI_Get_elements, and compares the memory \
             with the type map"
        ),
        (Check::External32, _) => format!(
            "compares the results of MPI_Pack_external_size and MPI_Pack_external for {n} with the external32 stream \
             of the same values. Then it unpacks that stream with MPI_Unpack_external and compares the memory with \
             the type map"
        ),
        (Check::Attributes, _) => {
            "gives it three attributes, duplicates it, and counts the calls of copy and delete \
                                   callbacks while attributes are deleted and the duplicate is freed"
                .to_owned()
        }
        (Check::Messages, _) => format!(
            "sends {n} to itself: from the datatype into memory without gaps, from such memory into the datatype, and \
             from the datatype into the datatype. It compares all bytes with the type map"
        ),
        (Check::Collectives, _) => format!(
            "moves {n} on one process with MPI_Allgather, MPI_Gather, MPI_Scatter, MPI_Alltoallw, MPI_Put and \
             MPI_Get, between the datatype and memory without gaps. It compares all bytes with the type map"
        ),
        (Check::Commit, "fresh-name" | "name") => {
            "compares its name before and after a call of MPI_Type_set_name".to_owned()
        }
        (Check::Commit, _) => format!(
            "packs {n} with MPI_Pack after committing it a second time, after freeing its parts, with a duplicate \
             after freeing the original, and while a thousand other datatypes are live. It compares the packed \
             bytes with those in memory"
        ),
        (Check::Truncation, kind) => overflow(kind),
    }
}

/// Returns what a program of the check `truncation` does, as the rest of a sentence that begins
/// with "It builds the datatype, commits it and" (see [`steps`]).
fn overflow(kind: &str) -> String {
    format!(
        "sends itself messages that are longer than the receive buffer, which has room for one instance to 160 \
         KiB. The receive is posted before or after the send, and the error handler is MPI_ERRORS_RETURN. The \
         program compares {}",
        match kind {
            "unnoticed" | "class" => "the error class of the receive with MPI_ERR_TRUNCATE",
            _ => "the memory inside and around the receive buffer with what was there before",
        }
    )
}

/// Returns why a difference is not a bug. The text is empty for differences that are bugs.
pub(crate) fn why_open(f: &Finding) -> &'static str {
    match f.kind.trim_end_matches(AFTER_OTHERS) {
        "bounds-of-nothing" => {
            "The definition of the bounds takes a minimum and a maximum over the entries of the type map and the \
             markers, and does not say what they are if there are neither. In ddtc all bounds of an empty type map \
             are 0."
        }
        "bounds-zero-blocks" => {
            "A block of length zero adds no entry to the type map. The standard does not say whether the \
             displacement of such a block, or a marker in it, counts as a bound nevertheless. In ddtc it does not."
        }
        "bounds-empty-members" => {
            "A member without entries adds nothing to the type map. The standard does not say whether its bounds, or \
             the place at which it stands, count nevertheless. In ddtc only its markers count."
        }
        "bounds-epsilon" => {
            "The standard adds an epsilon to the upper bound of a datatype without markers, so that the extent is a \
             multiple of an alignment. Libraries read differently which constructors this concerns and which \
             alignment it is. In ddtc every constructor pads to the strictest alignment of its entries."
        }
        "bounds-markers" => {
            "The standard can be read so that, if one member has a lower-bound or upper-bound marker, markers alone \
             are the bounds, or so that members without markers count, too. In ddtc markers alone are the bounds."
        }
        "true-bounds-of-nothing" => {
            "The standard does not say what the true bounds of an empty type map are. In ddtc they are 0."
        }
        "elements-of-pairs" => {
            "The standard can be read so that a value with an index, such as MPI_DOUBLE_INT, is one basic element, \
             because it is a predefined datatype, or two, because it is described as a structure. In ddtc it is one."
        }
        "format" => {
            "The packed format belongs to the library. The values are right when the library unpacks them again."
        }
        "padding" => {
            "The padding bytes of an x87 long double hold no value, so the standard does not say that packing keeps \
             them. A program that compares packed bytes or whole memory sees the difference."
        }
        "synonym" => {
            "The datatype that the library returns has the same size, the same bounds and the same meaning."
        }
        "misuse" => "The standard does not require a library to detect forbidden arguments.",
        "unnoticed" | "class" => "The standard does not require a library to report errors of a program.",
        "hangs" => "The standard does not say how long a call may take. The datatype is very large.",
        kind if kind.starts_with("refused-") => {
            "A library may refuse a datatype whose numbers do not fit into its own representation."
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::Class;
    use crate::finding::{About, RuleName};

    fn finding(check: Check, kind: &str) -> Finding {
        Finding {
            fingerprint: format!("{check}.{kind}"),
            class: Class::Bug,
            check,
            kind: kind.to_owned(),
            library: About::default(),
            rule: RuleName { name: "legal".to_owned() },
            datatype: "int".to_owned(),
            original: None,
            count: 2,
            constructors: 0,
            expected: String::new(),
            got: String::new(),
            effects: Default::default(),
            program: None,
            confirmed: None,
            seed: None,
            case: None,
            seconds: 0.0,
            elsewhere: Vec::new(),
        }
    }

    #[test]
    fn sentences_are_whole_for_every_check_and_kind() {
        for check in Check::ALL {
            for kind in ["dies", "hangs", "refused-type_create_darray", "bounds", "name", "format", "no kind"]
            {
                let f = finding(check, kind);
                for text in [summary(&f), action(&f)] {
                    let first = text.chars().next().unwrap();
                    assert!(first.is_uppercase() && text.ends_with('.'), "{check} {kind}: {text}");
                    assert!(!text.contains("  ") && !text.contains(".."), "{check} {kind}: {text}");
                }
            }
        }
        assert_eq!(
            summary(&finding(Check::Bounds, "refused-type_create_darray")),
            "MPI_Type_create_darray refuses legal arguments."
        );
        assert_eq!(
            action(&finding(Check::Bounds, "true-bounds")),
            "It builds the datatype and calls MPI_Type_get_true_extent."
        );
        assert!(
            action(&finding(Check::Unpack, "unpacked"))
                .starts_with("It builds the datatype, commits it and packs")
        );
    }
}
