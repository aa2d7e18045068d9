//! The C program of a finding: plain MPI calls that show the finding, print what was expected and
//! what the library did, and exit with status 1.
//!
//! A program has the constructors of the datatype, the expected results according to the
//! definition, and a call of a check function of `finding.h`. A program either includes that file
//! or contains the necessary parts of it. In the second case it can be sent to people who have no
//! other file.

use std::fmt::Write;

use ddtc::internal::datatype::c::{self, HostBounds};
use ddtc::internal::datatype::{Combiner, Constants, Datatype, Named};
use ddtc::internal::exec::interp;
use ddtc::internal::fuzzing::rebuilt;
use ddtc::internal::methods::*;

use crate::compare::{RECEIVE_SIZES, values};
use crate::difference::{Check, Difference};
use crate::library::MISUSES;
use crate::subject::{Map, is_predefined};
use alone::{FINDING_H, INCLUDE};

mod alone;
mod walk;

pub use alone::{alone, shared};

/// Numbers that stand for MPI's constants in the contents of a datatype, since the values of these
/// constants differ between libraries. [`NAMES`] has the names of the constants in the same order.
const CONSTANTS: Constants = Constants {
    order_c: i32::MIN,
    order_fortran: i32::MIN + 1,
    distribute_block: i32::MIN + 2,
    distribute_cyclic: i32::MIN + 3,
    distribute_none: i32::MIN + 4,
    distribute_dflt_darg: i32::MIN + 5,
    undefined: i32::MIN + 6,
};
const NAMES: [&str; 7] = [
    "MPI_ORDER_C",
    "MPI_ORDER_FORTRAN",
    "MPI_DISTRIBUTE_BLOCK",
    "MPI_DISTRIBUTE_CYCLIC",
    "MPI_DISTRIBUTE_NONE",
    "MPI_DISTRIBUTE_DFLT_DARG",
    "MPI_UNDEFINED",
];

/// Returns the program of a shrunk difference as a single file. `title` is the comment at the head
/// of the program. Returns none if no program can be written for the difference.
pub(crate) fn program(d: &Difference, title: &str) -> Option<String> {
    Some(alone(&case(d, title)?, FINDING_H))
}

/// Returns the program, as a single file, for a call with a forbidden argument. `which` is the
/// index of the call in [`MISUSES`].
pub(crate) fn of_misuse(which: usize, title: &str) -> String {
    let mut out = head(title, "misuse");
    checks(&mut out, &format!("check_refused({});", MISUSES[which].call));
    alone(&out, FINDING_H)
}

/// Returns the beginning of a program.
fn head(title: &str, check: &str) -> String {
    let check = check.to_uppercase();
    format!("{title}#define CHECK_{check}\n{INCLUDE}\n")
}

/// Writes the function that makes the check.
fn checks(out: &mut String, call: &str) {
    let _ = write!(out, "\nstatic void check(MPI_Datatype t)\n{{\n    {call}\n}}\n");
}

/// Returns the text of a C program that shows a difference. The program includes `finding.h`.
/// Returns none if a datatype does not parse, is too large to be touched, or has a stream in
/// external32 that is too long for a program.
fn case(d: &Difference, title: &str) -> Option<String> {
    let flagged = |text: &str| {
        let t: Datatype = text.parse().ok()?;
        if !d.large {
            return Some(t);
        }
        rebuilt(&t, &mut |_, combiner| Some(Datatype::new(combiner).ok()?.with_large_count()))
    };
    // In the program, the head is followed by the function that builds the datatype and, for checks
    // that move bytes, by the function that enumerates its type map.
    let (plain, judged) = (flagged(&d.datatype)?, flagged(&d.judged)?);
    let mut out = head(title, d.check.name());
    let moves = !matches!(d.check, Check::Bounds | Check::Decode | Check::Attributes);
    let handles = build(&mut out, &plain, moves, d.check == Check::Commit);
    if moves {
        walk::write_walk(&mut out, &plain, d.count)?;
    }
    // The check itself is one call of a function of `finding.h`. The arguments of that call select
    // the difference that the program must show.
    let (name, n, kind) = (d.check.name(), d.count, d.kind.as_str());
    let call = match d.check {
        Check::Bounds => bounds(kind, &judged),
        Check::Decode => decode(&plain, &judged, kind == "synonym"),
        Check::Attributes => "check_attributes(t);".to_owned(),
        Check::Unpack | Check::Messages => format!("check_{name}(t, {n});"),
        Check::Pack => {
            let what = match kind {
                "format" => "FORMAT",
                "padding" => "PADDING",
                _ => "ROUND_TRIP",
            };
            format!("check_pack(t, {n}, {what});")
        }
        Check::Elements => {
            let numbers = kind.contains("count") || kind.contains("elements");
            format!("check_elements(t, {n}, {});", if numbers { "NUMBERS" } else { "BYTES" })
        }
        Check::External32 => {
            external32(&mut out, &judged, n)?;
            format!("check_external32(t, {n}, values, external, sizeof external);")
        }
        Check::Collectives => {
            let map = Map::new(&judged, n)?;
            let named = map.entries.first()?.2;
            let sum = matches!(named, Named::Int | Named::Int64 | Named::Short | Named::Long)
                && map.entries.iter().all(|e| e.2 == named && e.0 % named.alignment() == 0);
            format!("check_collectives(t, {n}, {});", if sum { "SUMS" } else { "MOVES" })
        }
        Check::Commit => format!("check_commit(t, {n}, {handles});"),
        Check::Truncation => {
            let what = match kind {
                "unnoticed" | "class" => "CLASS",
                "beyond" | "gap" => "APART",
                _ => "WRITTEN",
            };
            let sizes = RECEIVE_SIZES.map(|size| size.to_string()).join(", ");
            format!("check_truncation(t, {}, (long[]){{{sizes}}}, {what});", RECEIVE_SIZES.len())
        }
    };
    checks(&mut out, &call);
    Some(out)
}

/// Writes the C function that builds the datatype. Returns the number of handles that the datatype
/// has in that function. If `moves` is true, the C function also records the bounds that the
/// library gives the nodes. If `orphan` is true, also writes a C function that frees the parts of
/// the datatype after it was built.
fn build(out: &mut String, t: &Datatype, moves: bool, orphan: bool) -> usize {
    let mut calls = String::new();
    let root = c::constructors(t, HostBounds::Omitted, &mut calls);
    let checked: String = calls
        .lines()
        .map(|line| match line.strip_suffix(");") {
            Some(call) => format!("    CALL({}));\n", call.trim_start()),
            None => format!("{line}\n"),
        })
        .collect();
    let bounds = if moves { walk::record_bounds(t) } else { String::new() };
    let _ = write!(out, "\nstatic MPI_Datatype build(void)\n{{\n{checked}{bounds}    return {root};\n}}\n");
    let made: Vec<&str> = calls.lines().filter_map(|l| l.strip_prefix("    MPI_Datatype t")).collect();
    if orphan {
        let names = made.iter().filter_map(|l| l.strip_suffix(';')).map(|n| format!("t{n}"));
        // Fortran kind types and value-index pairs are predefined and must not be freed, so the
        // parts of a datatype that contains one of them are not freed.
        let derived = !t.nodes().any(|n| n.basic().is_none() && is_predefined(n));
        let frees: String = names
            .filter(|n| *n != root && derived)
            .map(|n| format!("    CALL(MPI_Type_free(&{n}));\n"))
            .collect();
        let _ =
            write!(out, "\nstatic MPI_Datatype orphaned(void)\n{{\n{checked}{frees}    return {root};\n}}\n");
    }
    made.len().max(1)
}

/// Returns the C call that checks the size or the bounds of the datatype, depending on the kind of
/// the difference.
fn bounds(kind: &str, judged: &Datatype) -> String {
    // The root of the tree `judged` may be a node that MPI does not have, which only carries the
    // bounds that the library returned. `defined` is the datatype without that node. Its bounds are
    // those of the definition, which the program expects.
    let defined = judged.constructed();
    match kind {
        "size" => format!("check_size(t, {});", c::literal(defined.size())),
        _ if kind.starts_with("size-in-int") => "check_large_size(t);".to_owned(),
        _ if kind.starts_with("bounds") => {
            format!("check_bounds(t, {}, {});", c::literal(defined.lb()), c::literal(defined.extent()))
        }
        _ if kind.starts_with("true-bounds") => {
            format!(
                "check_true_bounds(t, {}, {});",
                c::literal(judged.true_lb()),
                c::literal(judged.true_extent())
            )
        }
        _ => "check_calls(t);".to_owned(),
    }
}

/// Returns the C structure with the expected envelope and contents, followed by the call of the
/// function that checks them. If `synonyms` is true, the structure also has the names of the named
/// types that the contents must have.
fn decode(plain: &Datatype, judged: &Datatype, synonyms: bool) -> String {
    // The envelope consists of the combiner and the lengths of the lists of arguments.
    let envelope = plain.envelope();
    let mut fields = vec![
        format!(".combiner = {}", envelope.combiner.mpi_name()),
        format!(
            ".lengths = {{{}, {}, {}, {}}}",
            envelope.integers, envelope.addresses, envelope.large_counts, envelope.datatypes
        ),
    ];
    let mut field = |name: &str, c: &str, values: Vec<String>| {
        if !values.is_empty() {
            fields.push(format!(".{name} = ({c}[]){{{}}}", values.join(", ")));
        }
    };
    let numbers = |values: &[i64]| values.iter().map(|&v| c::literal(v)).collect();
    if let Ok(contents) = plain.contents(&CONSTANTS) {
        // The values in `CONSTANTS` are negative. All other integers in the contents of these
        // constructors are not negative, so they cannot be taken for one of these values.
        let has_constants = matches!(
            plain.combiner(),
            Combiner::Subarray { .. }
                | Combiner::Darray { .. }
                | Combiner::F90Real { .. }
                | Combiner::F90Complex { .. }
        );
        let named = |&i: &i32| match NAMES.get(i.wrapping_sub(i32::MIN) as usize) {
            Some(name) if has_constants => (*name).to_owned(),
            _ => i.to_string(),
        };
        field("integers", "int", contents.integers.iter().map(named).collect());
        field("addresses", "MPI_Aint", numbers(&contents.addresses));
        field("counts", "MPI_Count", numbers(&contents.large_counts));
    }
    // In the program, the datatypes among the contents are described by their combiners, their
    // sizes, and the bounds that the library gives them.
    let judged = judged.constructed();
    let children = plain.combiner().children().zip(judged.combiner().children()).map(|(p, j)| {
        let combiner = p.envelope().combiner.mpi_name();
        format!(
            "{{{combiner}, {}, {}, {}}}",
            c::literal(j.size()),
            c::literal(j.lb()),
            c::literal(j.extent())
        )
    });
    field("parts", "struct part", children.collect());
    if synonyms {
        let named = plain.combiner().children().map(|p| match p.combiner() {
            Combiner::Named(n) => n.mpi_name().to_owned(),
            _ => "MPI_DATATYPE_NULL".to_owned(),
        });
        field("named", "MPI_Datatype", named.collect());
    }
    let fields: String = fields.into_iter().map(|field| format!("        {field},\n")).collect();
    format!("struct contents want = {{\n{fields}    }};\n    check_decode(t, want);")
}

/// Maximum length in bytes of a stream that is written into a program.
const WRITTEN: usize = 1 << 14;

// Writes two C arrays with the values of all instances, stored without gaps: one in the native
// representation and one in external32. Returns none if the datatype is too large, a value does not
// fit external32, or a stream is too long.
fn external32(out: &mut String, judged: &Datatype, count: u64) -> Option<()> {
    let map = Map::new(judged, count)?;
    let mut stream = Vec::new();
    for (i, &(.., named)) in map.entries.iter().enumerate() {
        stream.extend(values::value(named, i));
    }
    let mut memory = vec![0; (map.high - map.low) as usize];
    let mut next = 0;
    for &(at, len, _) in &map.entries {
        memory[(at - map.low) as usize..][..len].copy_from_slice(&stream[next..next + len]);
        next += len;
    }
    let (external, fit) = interp::external32::pack(judged, count, &memory, (-map.low) as usize);
    if fit.is_err() || external.len() > WRITTEN || stream.len() > WRITTEN {
        return None;
    }
    let list = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:#04x}")).collect::<Vec<_>>().join(", ");
    let _ = writeln!(out, "\n/* Values one after the other, and in external32. */");
    let _ = writeln!(out, "static const unsigned char values[] = {{{}}};", list(&stream));
    let _ = writeln!(out, "static const unsigned char external[] = {{{}}};", list(&external));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(t: &str) -> String {
        let t = t.parse().unwrap();
        decode(&t, &t, false)
    }

    /// The values of MPI's constants, such as `MPI_ORDER_C`, differ between libraries, so a program
    /// must use their names.
    #[test]
    fn contents_name_the_constants_of_mpi() {
        for (t, integers) in [
            ("subarray([4],[2],[1],Fortran,int)", "1, 4, 2, 1, MPI_ORDER_FORTRAN"),
            (
                "darray(2,0,[8],[cyclic],[default],[2],C,int)",
                "2, 0, 1, 8, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_DFLT_DARG, 2, MPI_ORDER_C",
            ),
            ("f90_real(6,undefined)", "6, MPI_UNDEFINED"),
            // The contents of a vector have none of MPI's constants, so a number that equals one of
            // the values in `CONSTANTS` is an ordinary number here.
            ("vector(2,1,-2147483648,byte)", "2, 1, -2147483648"),
        ] {
            let text = decoded(t);
            assert!(text.contains(&format!(".integers = (int[]){{{integers}}},")), "{text}");
        }
    }
}
