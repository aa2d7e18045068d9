//! Comparison of an MPI library's header with ddtc's table of its ABI. `ddtc tune` makes it before
//! it tests calls under a library that the developers of ddtc have not tried.
//!
//! The preload library infers the ABI of such a library from its symbols and its file name. If the
//! library had another ABI, calls would be decoded wrongly. The program that tests the calls is
//! compiled with the header of the library, so it prints the constants of that header.

use std::fmt::Write as _;
use std::mem::size_of;

use ddtc::internal::datatype::Named;
use ddtc::internal::datatype::contents::CombinerKind as K;
use ddtc_hosts::abi::{Abi, MPICH, OPEN_MPI, STANDARD};

/// What a constant must be.
#[derive(Debug)]
enum Wanted {
    Number(i64),
    /// A handle, which is as wide as the ABI's handles.
    Handle(u64),
    /// The address of the data object with this name.
    Symbol(String),
}

fn handle(value: u64, symbol: &str) -> Wanted {
    if symbol.is_empty() { Wanted::Handle(value) } else { Wanted::Symbol(symbol.to_owned()) }
}

/// Returns C expressions that are compared, each with what it must be in the ABI. They exist since
/// MPI 3.0.
fn constants(abi: &Abi) -> Vec<(&'static str, Wanted)> {
    let combiners = [
        ("MPI_COMBINER_NAMED", K::Named),
        ("MPI_COMBINER_DUP", K::Dup),
        ("MPI_COMBINER_CONTIGUOUS", K::Contiguous),
        ("MPI_COMBINER_VECTOR", K::Vector),
        ("MPI_COMBINER_HVECTOR", K::Hvector),
        ("MPI_COMBINER_INDEXED", K::Indexed),
        ("MPI_COMBINER_HINDEXED", K::Hindexed),
        ("MPI_COMBINER_INDEXED_BLOCK", K::IndexedBlock),
        ("MPI_COMBINER_HINDEXED_BLOCK", K::HindexedBlock),
        ("MPI_COMBINER_STRUCT", K::Struct),
        ("MPI_COMBINER_SUBARRAY", K::Subarray),
        ("MPI_COMBINER_DARRAY", K::Darray),
        ("MPI_COMBINER_RESIZED", K::Resized),
    ];
    let value = |kind| (-32768..32768).find(|&value| abi.combiner(value) == Some(kind)).map(i64::from);
    let combiners = combiners.into_iter().filter_map(|(name, kind)| Some((name, value(kind)?)));
    let numbers = [
        ("sizeof(MPI_Datatype)", abi.handle_bytes as i64),
        ("sizeof(MPI_Status)", abi.status_bytes as i64),
        ("offsetof(MPI_Status, MPI_SOURCE)", abi.status_source as i64),
        ("offsetof(MPI_Status, MPI_TAG)", (abi.status_source + size_of::<i32>()) as i64),
        ("offsetof(MPI_Status, MPI_ERROR)", abi.status_error as i64),
        ("MPI_STATUS_IGNORE", abi.status_ignore as i64),
        ("MPI_IN_PLACE", abi.in_place as i64),
        ("MPI_ERR_OTHER", abi.err_other.into()),
        ("MPI_ERR_TYPE", abi.err_type.into()),
        ("MPI_ERR_TRUNCATE", abi.err_truncate.into()),
        ("MPI_ERR_IN_STATUS", abi.err_in_status.into()),
        ("MPI_ERR_PENDING", abi.err_pending.into()),
        ("MPI_PROC_NULL", abi.proc_null.into()),
        ("MPI_ROOT", abi.root.into()),
        ("MPI_ANY_SOURCE", abi.any_source.into()),
        ("MPI_UNDEFINED", abi.constants.undefined.into()),
        ("MPI_ORDER_C", abi.constants.order_c.into()),
        ("MPI_ORDER_FORTRAN", abi.constants.order_fortran.into()),
    ];
    let handles = [
        ("MPI_COMM_WORLD", handle(abi.world, abi.world_symbol)),
        ("MPI_COMM_SELF", handle(abi.myself, abi.self_symbol)),
        ("MPI_COMM_NULL", handle(abi.comm_null, abi.comm_null_symbol)),
        ("MPI_DATATYPE_NULL", handle(abi.type_null, abi.type_null_symbol)),
        ("MPI_REQUEST_NULL", handle(abi.request_null, abi.request_null_symbol)),
        ("MPI_MESSAGE_NO_PROC", handle(abi.message_no_proc, abi.message_no_proc_symbol)),
    ];
    let numbers = numbers.into_iter().chain(combiners);
    numbers.map(|(name, value)| (name, Wanted::Number(value))).chain(handles).collect()
}

/// Returns the named types with what their handles must be in the ABI.
fn named(abi: &Abi) -> Vec<(&'static str, Wanted)> {
    let constants = abi.named().filter(|&(value, _)| value != 0);
    let constants = constants.map(|(value, named)| (named.mpi_name(), Wanted::Handle(value)));
    let symbols = abi.named_symbols();
    let symbols = symbols.map(|(name, named)| (named.mpi_name(), Wanted::Symbol(format!("ompi_mpi_{name}"))));
    constants.chain(symbols).collect()
}

/// Returns the text of a C header with the function `say_abi`. The function prints a line for each
/// constant that is compared: its name, its value, and the text for which the name stands in the
/// header of the MPI library. The fields are separated by tabs.
pub(super) fn header() -> String {
    let mut text = String::from(
        "#include <stddef.h>\n#define ABI_TEXT_(text) #text\n#define ABI_TEXT(name) ABI_TEXT_(name)\n\
         static void say_abi(void) {\n",
    );
    for (name, _) in constants(&STANDARD) {
        let _ = writeln!(
            text,
            "  say(\"abi %s\\t%lld\\t%s\", \"{name}\", (long long)(intptr_t)({name}), ABI_TEXT(({name})));"
        );
    }
    // MPI 3.0 has removed the first two types, and the header of Open MPI refuses their names.
    let types = Named::ALL.iter().map(|named| named.mpi_name());
    for name in types.filter(|name| !["MPI_LB", "MPI_UB"].contains(name)) {
        let _ = writeln!(
            text,
            "#ifdef {name}\n  say(\"abi {name}\\t%lld\\t%s\", (long long)(intptr_t)({name}), ABI_TEXT(({name})));\n#endif"
        );
    }
    text + "}\n"
}

/// Describes a constant that differs. `found` is its value in mpi.h, and the text for which its
/// name stands there.
fn in_words(abi: &Abi, name: &str, wanted: &Wanted, found: Option<(Option<i64>, String)>) -> String {
    let found = match (wanted, found) {
        (Wanted::Number(_), Some((Some(value), _))) => value.to_string(),
        (_, Some((_, text))) => text,
        (_, None) => "missing".to_owned(),
    };
    let wanted = match wanted {
        Wanted::Number(number) => number.to_string(),
        Wanted::Handle(handle) => format!("{handle:#x}"),
        Wanted::Symbol(symbol) => format!("the address of {symbol}"),
    };
    format!("{name} is {found} in mpi.h, and {wanted} in the {}", abi.name)
}

/// Returns the table of the ABI that the preload library reports by this number; `None` for any
/// other number.
pub(super) fn of_number(number: u32) -> Option<&'static Abi> {
    let of = |abi: &&Abi| abi.flavour as u32 + 1 == number;
    [&MPICH, &OPEN_MPI, &STANDARD].into_iter().find(of)
}

/// Returns the first constant that differs from the ABI in the lines that `say_abi` has printed,
/// or that is missing; `None` if the lines agree with the ABI.
pub(super) fn difference(abi: &Abi, lines: &[String]) -> Option<String> {
    let printed = |name: &str| {
        let fields = lines.iter().map(|line| line.split('\t').collect::<Vec<_>>());
        let found = fields.filter(|fields| fields.len() == 3 && fields[0] == name);
        found.map(|fields| (fields[1].parse::<i64>().ok(), fields[2].to_owned())).next()
    };
    let is_right = |wanted: &Wanted, (value, text): &(Option<i64>, String)| match wanted {
        Wanted::Number(number) => *value == Some(*number),
        Wanted::Handle(handle) => value.is_some_and(|value| value as u64 & abi.handle_mask == *handle),
        Wanted::Symbol(symbol) => {
            text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == symbol)
        }
    };
    for (name, wanted) in constants(abi) {
        match printed(name) {
            Some(value) if is_right(&wanted, &value) => {}
            found => return Some(in_words(abi, name, &wanted, found)),
        }
    }
    // A header need not have every named type, and may define one as `MPI_DATATYPE_NULL`.
    let null = handle(abi.type_null, abi.type_null_symbol);
    for (name, wanted) in named(abi) {
        let differs = |value: &(Option<i64>, String)| !is_right(&wanted, value) && !is_right(&null, value);
        if let Some(found) = printed(name).filter(differs) {
            return Some(in_words(abi, name, &wanted, Some(found)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use ddtc_hosts::abi::Flavour;

    #[test]
    fn each_difference_is_found() {
        for abi in [&MPICH, &OPEN_MPI, &STANDARD] {
            assert_eq!(of_number(abi.flavour as u32 + 1).map(|abi| abi.flavour), Some(abi.flavour));
            let line = |(name, wanted): &(&str, Wanted), by: i64| match wanted {
                Wanted::Number(value) => format!("{name}\t{}\ttext", value + by),
                // A handle of MPICH is printed as a signed integer.
                Wanted::Handle(value) if abi.flavour == Flavour::Mpich => {
                    format!("{name}\t{}\ttext", i64::from(*value as u32 as i32) + by)
                }
                Wanted::Handle(value) => format!("{name}\t{}\ttext", *value as i64 + by),
                Wanted::Symbol(symbol) => {
                    format!("{name}\t4711\t((T)(&({symbol}{})))", "_".repeat(by as usize))
                }
            };
            let all: Vec<_> = constants(abi).into_iter().chain(named(abi)).collect();
            let right: Vec<String> = all.iter().map(|constant| line(constant, 0)).collect();
            assert_eq!(difference(abi, &right), None, "{}", abi.name);
            for (i, constant) in all.iter().enumerate() {
                let mut wrong = right.clone();
                wrong[i] = line(constant, 1);
                let found = difference(abi, &wrong).unwrap_or_else(|| panic!("{constant:?}"));
                assert!(found.starts_with(constant.0), "{found}");
            }
            assert!(difference(abi, &right[1..]).is_some() && difference(abi, &[]).is_some());
        }
        assert!(of_number(0).is_none() && of_number(4).is_none());
    }
}
