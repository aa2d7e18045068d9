//! A finding as a C program: plain MPI calls that show it, with what was expected and got, and status 1.
//!
//! The texts of `program/` are put together with the constructors of the datatype and what the definition says of it.

use std::fmt::Write;

use ddtc::datatype::c::{self, HostBounds};
use ddtc::datatype::{Combiner, Datatype, Named};
use ddtc::fuzzing::rebuilt;
use ddtc::interp;
use ddtc_hosts::abi::{Abi, MPICH, OPEN_MPI, STANDARD};

use crate::compare::{ROOMS, values};
use crate::difference::{Check, Difference};
use crate::library::MISUSES;
use crate::subject::{Map, is_predefined};

mod walk;

const PRELUDE: &str = include_str!("program/prelude.c");
const MAIN: &str = include_str!("program/main.c");

/// The ABI of a name.
fn abi(flavour: &str) -> &'static Abi {
    [&MPICH, &OPEN_MPI, &STANDARD].into_iter().find(|a| a.name == flavour).unwrap_or(&MPICH)
}

/// The program of a shrunk difference in a library of that flavour; `title` are lines for its head.
pub(crate) fn program(d: &Difference, flavour: &str, title: &str) -> Option<String> {
    let flagged = |text: &str| {
        let t: Datatype = text.parse().ok()?;
        if !d.large {
            return Some(t);
        }
        rebuilt(&t, &mut |_, combiner| Some(Datatype::new(combiner).ok()?.with_large_count()))
    };
    let (plain, judged) = (flagged(&d.datatype)?, flagged(&d.judged)?);
    let mut out = format!("/*\n{title} */\n{PRELUDE}");
    let moves = !matches!(d.check, Check::Bounds | Check::Decode | Check::Attributes);
    if moves {
        walk::walk(&mut out, &plain, d.count)?;
    }
    build(&mut out, &plain, moves, d.check == Check::Commit);
    let body = match d.check {
        Check::Bounds => {
            bounds(&mut out, d, &judged);
            include_str!("program/bounds.c")
        }
        Check::Decode => {
            decode(&mut out, &plain, &judged, flavour, d.kind == "synonym")?;
            include_str!("program/decode.c")
        }
        Check::Pack => {
            let flags = [("CHECK_FORMAT", d.kind == "format"), ("CHECK_PADDING", d.kind == "padding")];
            flags.iter().for_each(|(name, on)| define(&mut out, name, u8::from(*on)));
            include_str!("program/pack.c")
        }
        Check::Unpack => include_str!("program/unpack.c"),
        Check::Elements => {
            let bytes = !d.kind.contains("count") && !d.kind.contains("elements");
            define(&mut out, "CHECK_BYTES", u8::from(bytes));
            define(&mut out, "CHECK_COUNTS", u8::from(!bytes));
            include_str!("program/elements.c")
        }
        Check::External32 => {
            external32(&mut out, &judged, d.count)?;
            include_str!("program/external32.c")
        }
        Check::Attributes => include_str!("program/attributes.c"),
        Check::Messages => include_str!("program/messages.c"),
        Check::Collectives => {
            let map = Map::new(&judged, d.count)?;
            let named = map.entries.first()?.2;
            let sum = matches!(named, Named::Int | Named::Int64 | Named::Short | Named::Long)
                && map.entries.iter().all(|e| e.2 == named && e.0 % named.alignment() == 0);
            define(&mut out, "SUM", u8::from(sum));
            include_str!("program/collectives.c")
        }
        Check::Commit => include_str!("program/commit.c"),
        Check::Truncation => {
            let rooms: Vec<String> = ROOMS.iter().map(ToString::to_string).collect();
            define(&mut out, "ROOMS", format!("{{{}}}", rooms.join(", ")));
            let apart = matches!(d.kind.as_str(), "beyond" | "gap");
            define(&mut out, "CHECK_CONTIGUOUS", u8::from(!apart));
            define(&mut out, "CHECK_CLASS", u8::from(matches!(d.kind.as_str(), "unnoticed" | "class")));
            include_str!("program/truncation.c")
        }
    };
    define(&mut out, "COMMIT", u8::from(!matches!(d.check, Check::Bounds | Check::Decode)));
    define(&mut out, "MAP", if moves { "instances(COUNT)" } else { "(void)0" });
    out += body;
    out += MAIN;
    Some(out)
}

/// The program of a misuse that was taken.
pub(crate) fn of_misuse(which: usize, title: &str) -> String {
    let call = MISUSES[which].call;
    format!("/*\n{title} */\n{PRELUDE}\n#define MISUSE {call}\n{}", include_str!("program/misuse.c"))
}

fn define(out: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "#define {name} {value}");
}

/// A number as C has it, in parentheses where it needs them.
fn number(n: i64) -> String {
    if n < 0 { format!("({})", c::literal(n)) } else { c::literal(n) }
}

/// The function that builds the datatype, and one that frees its parts on the way. If it `moves` bytes, the bounds of its nodes are told.
fn build(out: &mut String, t: &Datatype, moves: bool, orphan: bool) {
    let mut calls = String::new();
    let root = c::constructors(t, HostBounds::Omitted, &mut calls);
    let checked: String = calls
        .lines()
        .map(|line| match line.strip_suffix(");") {
            Some(call) => format!("    CALL({}));\n", call.trim_start()),
            None => format!("{line}\n"),
        })
        .collect();
    let told = if moves { walk::told(t) } else { String::new() };
    let _ = write!(out, "\nstatic MPI_Datatype build(void)\n{{\n{checked}{told}    return {root};\n}}\n");
    if orphan {
        let made: Vec<&str> = calls.lines().filter_map(|l| l.strip_prefix("    MPI_Datatype t")).collect();
        let names = made.iter().filter_map(|l| l.strip_suffix(';')).map(|n| format!("t{n}"));
        // F90 types and pairs are predefined: who has one frees nothing.
        let derived = !t.nodes().any(|n| n.basic().is_none() && is_predefined(n));
        let frees: String = names
            .filter(|n| *n != root && derived)
            .map(|n| format!("    CALL(MPI_Type_free(&{n}));\n"))
            .collect();
        let _ =
            write!(out, "\nstatic MPI_Datatype orphaned(void)\n{{\n{checked}{frees}    return {root};\n}}\n");
        define(out, "NODES", made.len().max(1));
    }
}

fn bounds(out: &mut String, d: &Difference, judged: &Datatype) {
    // Bounds by the definition are those below the library's own.
    let defined = judged.constructed();
    let all = d.kind == "dies" || d.kind == "hangs" || d.kind.starts_with("refused");
    let on = |kinds: &[&str]| {
        u8::from(!all && kinds.iter().any(|k| d.kind.starts_with(k) && (*k != "size" || d.kind == "size")))
    };
    out.push('\n');
    define(out, "CHECK_SIZE", on(&["size"]));
    define(out, "CHECK_SMALL_SIZE", on(&["size-in-int"]));
    define(out, "CHECK_BOUNDS", on(&["bounds"]));
    define(out, "CHECK_TRUE_BOUNDS", on(&["true-bounds"]));
    define(out, "WANT_SIZE", number(defined.size()));
    define(out, "WANT_LB", number(defined.lb()));
    define(out, "WANT_EXTENT", number(defined.extent()));
    define(out, "WANT_TRUE_LB", number(judged.true_lb()));
    define(out, "WANT_TRUE_EXTENT", number(judged.true_extent()));
}

fn decode(
    out: &mut String,
    plain: &Datatype,
    judged: &Datatype,
    flavour: &str,
    synonyms: bool,
) -> Option<()> {
    let (envelope, abi) = (plain.envelope(), abi(flavour));
    let large = abi.flavour != ddtc_hosts::abi::Flavour::OpenMpi;
    out.push('\n');
    define(out, "WANT_COMBINER", envelope.combiner.mpi_name());
    define(out, "WANT_INTEGERS", envelope.integers);
    define(out, "WANT_ADDRESSES", envelope.addresses);
    define(out, "WANT_COUNTS", envelope.large_counts);
    define(out, "WANT_TYPES", envelope.datatypes);
    define(out, "SYNONYMS", u8::from(synonyms));
    if large {
        define(out, "LENGTH_TYPE", "MPI_Count");
        define(out, "ENVELOPE(t, n, c)", "CALL(MPI_Type_get_envelope_c(t, &n[0], &n[1], &n[2], &n[3], c))");
        let contents = "CALL(MPI_Type_get_contents_c(t, n[0], n[1], n[2], n[3], i, a, l, d))";
        define(out, "CONTENTS(t, n, i, a, l, d)", contents);
    } else {
        define(out, "LENGTH_TYPE", "int");
        define(out, "ENVELOPE(t, n, c)", "CALL(MPI_Type_get_envelope(t, &n[0], &n[1], &n[3], c))");
        let contents = "((void)l, CALL2(MPI_Type_get_contents(t, n[0], n[1], n[3], i, a, d)))";
        define(out, "CALL2(call)", "(call)");
        define(out, "CONTENTS(t, n, i, a, l, d)", contents);
    }
    let contents = plain.contents(&abi.constants).ok();
    let list = |values: Vec<String>| if values.is_empty() { "0".to_owned() } else { values.join(", ") };
    let numbers = |values: &[i64]| list(values.iter().map(|&v| number(v)).collect());
    let (integers, addresses, counts) = contents.map_or_else(Default::default, |c| {
        let integers: Vec<i64> = c.integers.iter().map(|&i| i.into()).collect();
        (integers, c.addresses, c.large_counts)
    });
    let _ = writeln!(out, "static const int want_integers[] = {{{}}};", numbers(&integers));
    let _ = writeln!(out, "static const MPI_Aint want_addresses[] = {{{}}};", numbers(&addresses));
    let _ = writeln!(out, "static const MPI_Count want_counts[] = {{{}}};", numbers(&counts));
    let judged = judged.constructed();
    let children: Vec<String> = plain
        .combiner()
        .children()
        .zip(judged.combiner().children())
        .map(|(p, j)| {
            let combiner = p.envelope().combiner.mpi_name();
            format!("{{{combiner}, {}, {}, {}}}", number(j.size()), number(j.lb()), number(j.extent()))
        })
        .collect();
    let children = if children.is_empty() { "{0, 0, 0, 0}".to_owned() } else { children.join(", ") };
    let _ = writeln!(out, "static const long long want_types[][4] = {{{children}}};");
    let named = plain.combiner().children().map(|p| match p.combiner() {
        Combiner::Named(n) => n.mpi_name(),
        _ => "MPI_DATATYPE_NULL",
    });
    let named: Vec<&str> = named.collect();
    let named = if named.is_empty() { "MPI_DATATYPE_NULL".to_owned() } else { named.join(", ") };
    let _ = writeln!(out, "#define want_named ((MPI_Datatype[]){{{named}}})");
    Some(())
}

/// Longest stream in external32 that is written out.
const WRITTEN: usize = 1 << 14;

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
    define(out, "EXTERNAL", external.len());
    Some(())
}
