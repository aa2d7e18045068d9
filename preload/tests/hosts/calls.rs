//! Tests of `ddtc_hosts::mpi_functions`, which is the table of the functions that take a request, a
//! status or a message. The table is compared with the headers of the MPI libraries and with the
//! names that the preload library exports. A further test runs a program that asks about its
//! requests by a function that the preload library does not wrap.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use ddtc_hosts::counted_calls::{COUNTED_CALLS, Role};
use ddtc_hosts::mpi_functions::{self, Handling, find};

use crate::setup::{Host, library, lossy, reports, scratch};

const HEADERS: [Host; 3] = [Host::Mpich, Host::OpenMpi, Host::OpenMpi4];
const PREFIXES: [&str; 5] = ["MPI_", "MPIX_", "PMPI_", "PMPIX_", "QMPI"];
const TYPES: [&str; 4] = ["MPI_Request", "MPI_Status", "MPI_F08_status", "MPI_Message"];

/// Returns the text of all headers in a folder and its subfolders, without comments and
/// preprocessor directives.
fn headers(folder: &Path) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all += &headers(&path);
        } else if path.extension().is_some_and(|extension| extension == "h") {
            let text = lossy(&fs::read(&path).unwrap()).replace("\\\n", " ");
            let mut parts = text.split("/*");
            let mut plain = parts.next().unwrap_or_default().to_owned();
            plain.extend(parts.map(|part| part.split_once("*/").map_or("", |(_, rest)| rest)));
            let lines = plain.lines().map(|line| line.split("//").next().unwrap_or_default());
            for line in lines.filter(|line| !line.trim_start().starts_with('#')) {
                all.extend([line, "\n"]);
            }
            // The semicolon separates the last declaration of this header from the first
            // declaration of the next one.
            all.push(';');
        }
    }
    all
}

fn words(text: &str) -> impl DoubleEndedIterator<Item = &str> + Clone {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Returns the name, the result and the parameters of each function in the text `headers` whose
/// name begins with one of [`PREFIXES`].
fn declarations(headers: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    headers.split([';', '{', '}']).filter_map(|declaration| {
        let (before, after) = declaration.split_once('(')?;
        let name = words(before).next_back()?;
        let is_mpis = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        let result = before.trim_end().strip_suffix(name).unwrap_or_default();
        (is_mpis && !before.contains("typedef")).then_some((name, result, after))
    })
}

/// Returns the names of the functions in the text `headers` that have a parameter or a result of
/// one of [`TYPES`], and of those that have a row in the table of MPI functions.
fn functions(headers: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (name, result, after) in declarations(headers) {
        if words(result).chain(words(after)).any(|word| TYPES.contains(&word)) || find(name).is_some() {
            found.insert(name.to_owned());
        }
    }
    found
}

/// Returns the functions that the headers of MPICH, Open MPI 5.0 or Open MPI 4.1 declare and that
/// [`functions`] selects, each with one of the libraries that declare it. Intel MPI is missing
/// because its wheel has no headers.
fn declared() -> BTreeMap<String, Host> {
    let mut all = BTreeMap::new();
    for host in HEADERS {
        let found = functions(&headers(&host.root().join("include")));
        for name in ["MPI_Wait", "PMPI_Irecv", "MPI_Get_count", "MPI_Mprobe", "MPI_Request_c2f"] {
            assert!(found.contains(name), "{host:?}: {name} is not among {found:?}");
        }
        let (minimum, extension) = match host {
            Host::Mpich => (500, "QMPIX_Request_is_complete"),
            Host::OpenMpi => (200, "PMPIX_Comm_iagree"),
            _ => (200, "MPIX_Bcast_init"),
        };
        assert!(found.len() > minimum && found.contains(extension), "{host:?}: {found:?}");
        all.extend(found.into_iter().map(|name| (name, host)));
    }
    all
}

#[test]
fn declarations_are_read() {
    let text =
        "extern \"C\" { struct X { int a; }; int MPI_Wait(MPI_Request *r, MPI_Status *s) ATTRIBUTE(1,2);
        typedef int (MPI_Query)(void *x, MPI_Status *s); MPI_Request PMPI_Request_f2c(MPI_Fint r);
        int MPI_Abort(MPI_Comm comm, int code); DECLSPEC int MPI_Get_count(const MPI_Status\n*s); }
        int MPI_Waits(MPI_Requests r);";
    let expected = ["MPI_Get_count", "MPI_Wait", "PMPI_Request_f2c"];
    assert_eq!(functions(text), expected.map(str::to_owned).into());
}

/// Checks that the table of MPI functions has a row for every declared function that takes a
/// request, a status or a message. A function without a row could complete a converted request
/// without being seen by the preload library.
#[test]
fn every_function_that_takes_a_request_a_status_or_a_message_has_a_row() {
    let declared = declared();
    let unknown: Vec<_> = declared.iter().filter(|(name, _)| find(name).is_none()).collect();
    assert!(unknown.is_empty(), "hosts/src/mpi_functions.rs has no row for {unknown:?}");
    // The table also has rows for extensions that only other releases of the MPI libraries have.
    // Every function of the MPI standard in the table, however, must be declared by one of these
    // headers.
    let known: BTreeSet<&str> = declared.keys().filter_map(|name| find(name)).map(|f| f.name).collect();
    for function in mpi_functions::all().filter(|function| function.name.starts_with("MPI_")) {
        assert!(known.contains(function.name), "no header declares {}", function.name);
    }
}

/// Returns what the C declaration of a parameter must have if the parameter has the role `role`:
/// whether the parameter is constant, its type, whether it is a pointer or an array, and a list of
/// words, one of which must occur in the name of the parameter. If `large` is true, the declaration
/// is that of the function with `MPI_Count` arguments.
fn parameter(role: Role, large: bool) -> (bool, &'static str, bool, &'static [&'static str]) {
    let count = if large { "MPI_Count" } else { "int" };
    match role {
        Role::SendBuf | Role::PackedIn => (true, "void", true, &["buf", "addr"]),
        Role::RecvBuf | Role::SendRecvBuf | Role::PackedOut => (false, "void", true, &["buf", "addr"]),
        Role::Count => (false, count, false, &["count"]),
        // `target_cout` is a spelling error for `target_count` in one declaration of Open MPI's
        // header, so both words are permitted.
        Role::TargetCount => (false, count, false, &["target_count", "target_cout"]),
        Role::Size => (false, count, false, &["size"]),
        Role::Counts => (true, count, true, &["counts"]),
        Role::Displs => (true, if large { "MPI_Aint" } else { "int" }, true, &["displs"]),
        Role::Position => (false, count, true, &["position"]),
        Role::Root => (false, "int", false, &["root"]),
        Role::Peer => (false, "int", false, &["dest", "source"]),
        Role::Target => (false, "int", false, &["target_rank"]),
        Role::Tag => (false, "int", false, &["tag"]),
        Role::ByteDispls => (true, "MPI_Aint", true, &["displs"]),
        Role::Displacement => (false, "MPI_Aint", false, &["target_disp"]),
        Role::Offset => (false, "MPI_Offset", false, &["offset"]),
        Role::Type | Role::PackType => (false, "MPI_Datatype", false, &["type"]),
        Role::TargetType => (false, "MPI_Datatype", false, &["target_datatype"]),
        Role::Types => (true, "MPI_Datatype", true, &["types"]),
        Role::Comm => (false, "MPI_Comm", false, &["comm"]),
        Role::Win => (false, "MPI_Win", false, &["win"]),
        Role::File => (false, "MPI_File", false, &["fh"]),
        Role::Info => (false, "MPI_Info", false, &["info"]),
        Role::Message => (false, "MPI_Message", true, &["message"]),
        Role::Request => (false, "MPI_Request", true, &["request"]),
        Role::Status => (false, "MPI_Status", true, &["status"]),
    }
}

/// Checks the table of functions that have a form with `int` and one with `MPI_Count`: the role of
/// each argument must agree with the declaration in the headers. With a wrong role, the preload
/// library would pass a wrong argument on to the MPI library.
#[test]
fn roles_of_arguments_are_those_of_the_headers() {
    for host in HEADERS {
        let headers = headers(&host.root().join("include"));
        let declared: BTreeMap<&str, &str> =
            declarations(&headers).map(|(name, _, parameters)| (name, parameters)).collect();
        let mut compared = 0;
        for call in COUNTED_CALLS {
            for (name, large) in [(call.name.to_owned(), false), (format!("{}_c", call.name), true)] {
                // Open MPI lacks some of these functions, which are skipped.
                let Some(parameters) = declared.get(name.as_str()) else { continue };
                let parameters: Vec<&str> = parameters.split(')').next().unwrap().split(',').collect();
                assert_eq!(parameters.len(), call.arguments.len(), "{name} of {host:?}");
                for (text, &role) in parameters.into_iter().zip(call.arguments) {
                    let (is_constant, c_type, is_pointer, names) = parameter(role, large);
                    let mut found = words(text);
                    let constant = found.clone().any(|word| word == "const");
                    let of_type = found.find(|&word| word != "const").unwrap();
                    let found = (constant, of_type, text.contains(['*', '[']));
                    assert_eq!(
                        found,
                        (is_constant, c_type, is_pointer),
                        "{text}: {role:?}, {name} of {host:?}"
                    );
                    let own = words(text).next_back().unwrap();
                    assert!(
                        names.iter().any(|name| own.contains(name)),
                        "{text}: {role:?}, {name} of {host:?}"
                    );
                }
                compared += 1;
            }
        }
        let minimum = match host {
            Host::Mpich => 2 * COUNTED_CALLS.len(),
            Host::OpenMpi => COUNTED_CALLS.len(),
            _ => 50,
        };
        assert!(compared >= minimum, "{host:?}: {compared} of {}", 2 * COUNTED_CALLS.len());
    }
}

#[test]
fn wrapped_functions_are_exported_and_the_others_are_not() {
    let mut nm = Command::new("nm");
    let out = nm.args(["-D", "--defined-only"]).arg(library()).output().expect("nm (Debian: binutils)");
    let text = lossy(&out.stdout);
    let exported: BTreeSet<&str> = text.lines().filter_map(|line| line.split_whitespace().last()).collect();
    for (name, host) in declared().iter().filter(|(name, _)| name.starts_with("MPI")) {
        let wrapped = find(name).is_some_and(|function| function.handling == Handling::Wrapped);
        assert_eq!(
            exported.contains(name.as_str()),
            wrapped,
            "{name}, which the headers of {host:?} declare"
        );
    }
}

/// Checks a program that refers to `MPIX_Request_is_complete`. This function cannot unpack a
/// receive whose bytes are in a staging buffer, so the preload library must not convert requests in
/// such a program.
#[test]
fn requests_that_are_asked_about_unseen_are_not_converted() {
    let host = Host::Mpich;
    for asked in ["MPIX_Request_is_complete", "PMPIX_Request_is_complete"] {
        let program = host.compile("asked", &[&format!("-DASKED={asked}")]);
        let folder = scratch(&format!("asked-{asked}"));
        for round in 0..10 {
            let run = host.ranks(2, &program).preload().env("DDTC_POLICY", "all");
            let (text, errors) = run.env("DDTC_REPORT", folder.join("report%r.json")).text();
            assert_eq!(text.matches("wrong 0\n").count(), 2, "{asked}, run {round}: {text}{errors}");
            let said = reports(&folder, 2);
            // The 60 blocking sends of rank 0 are converted. No call that has a request is
            // converted on either rank.
            let moved = said.iter().map(|said| (said["messages_packed"], said["messages_unpacked"]));
            assert_eq!(moved.collect::<Vec<_>>(), [(60, 0), (0, 0)], "{asked}: {said:?}");
            assert!(said.iter().all(|said| said["bypassed_unseen_completion"] > 20), "{asked}: {said:?}");
            let why = format!("\"nonblocking calls are bypassed: the program refers to {asked}\"");
            for rank in 0..2 {
                let report = fs::read_to_string(folder.join(format!("report{rank}.json"))).unwrap();
                assert!(report.contains(&why), "{report}");
            }
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
