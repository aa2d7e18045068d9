//! The table of functions that take a request, a status or a message (`ddtc_hosts::mpi_functions`),
//! against the headers of the MPI libraries and the names that the preload library exports; and a
//! program that asks about its requests by a function that is not wrapped.

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

/// Returns the text of all headers in a folder and the folders in it, without comments and
/// directives.
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
            // What follows is another declaration.
            all.push(';');
        }
    }
    all
}

fn words(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Returns name, result and parameters of all functions of MPI.
fn declarations(headers: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    headers.split([';', '{', '}']).filter_map(|declaration| {
        let (before, after) = declaration.split_once('(')?;
        let name = words(before).next_back()?;
        let is_mpis = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        let result = before.trim_end().strip_suffix(name).unwrap_or_default();
        (is_mpis && !before.contains("typedef")).then_some((name, result, after))
    })
}

/// Returns the functions whose parameters or result are of one of [`TYPES`], and those that have a row.
fn functions(headers: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (name, result, after) in declarations(headers) {
        if words(result).chain(words(after)).any(|word| TYPES.contains(&word)) || find(name).is_some() {
            found.insert(name.to_owned());
        }
    }
    found
}

/// Returns the functions of every library with headers; Intel's wheel has none.
fn declared() -> BTreeMap<String, Host> {
    let mut all = BTreeMap::new();
    for host in HEADERS {
        let found = functions(&headers(&host.root().join("include")));
        for name in ["MPI_Wait", "PMPI_Irecv", "MPI_Get_count", "MPI_Mprobe", "MPI_Request_c2f"] {
            assert!(found.contains(name), "{host:?}: {name} is not among {found:?}");
        }
        let (least, extension) = match host {
            Host::Mpich => (500, "QMPIX_Request_is_complete"),
            Host::OpenMpi => (200, "PMPIX_Comm_iagree"),
            _ => (200, "MPIX_Bcast_init"),
        };
        assert!(found.len() > least && found.contains(extension), "{host:?}: {found:?}");
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

/// A function that nobody has thought about could complete a converted request unseen.
#[test]
fn every_function_that_takes_a_request_a_status_or_a_message_has_a_row() {
    let declared = declared();
    let unknown: Vec<_> = declared.iter().filter(|(name, _)| find(name).is_none()).collect();
    assert!(unknown.is_empty(), "hosts/src/mpi_functions.rs has no row for {unknown:?}");
    // Extensions of other releases have rows too; the standard's functions are all declared here.
    let known: BTreeSet<&str> = declared.keys().filter_map(|name| find(name)).map(|f| f.name).collect();
    for function in mpi_functions::all().filter(|function| function.name.starts_with("MPI_")) {
        assert!(known.contains(function.name), "no header declares {}", function.name);
    }
}

/// Returns the role's word in a C declaration, and whether the parameter is a pointer or an array.
fn c_type(role: Role) -> (&'static str, bool) {
    match role {
        Role::SendBuf | Role::RecvBuf | Role::SendRecvBuf | Role::PackedIn | Role::PackedOut => {
            ("void", true)
        }
        Role::Count | Role::Size | Role::TargetCount => ("int", false),
        Role::Counts | Role::Displs | Role::Position => ("int", true),
        Role::Root | Role::Peer | Role::Target | Role::Tag => ("int", false),
        Role::ByteDispls => ("MPI_Aint", true),
        Role::Displacement => ("MPI_Aint", false),
        Role::Offset => ("MPI_Offset", false),
        Role::Type | Role::PackType | Role::TargetType => ("MPI_Datatype", false),
        Role::Types => ("MPI_Datatype", true),
        Role::Comm => ("MPI_Comm", false),
        Role::Win => ("MPI_Win", false),
        Role::File => ("MPI_File", false),
        Role::Info => ("MPI_Info", false),
        Role::Message => ("MPI_Message", true),
        Role::Request => ("MPI_Request", true),
        Role::Status => ("MPI_Status", true),
    }
}

/// A wrong role would hand a wrong argument on.
#[test]
fn roles_of_arguments_are_those_of_the_headers() {
    for host in HEADERS {
        let headers = headers(&host.root().join("include"));
        let declared: BTreeMap<&str, &str> =
            declarations(&headers).map(|(name, _, parameters)| (name, parameters)).collect();
        let mut compared = 0;
        for call in COUNTED_CALLS {
            // Open MPI 4.1 lacks the newer ones.
            let Some(parameters) = declared.get(call.name) else { continue };
            let parameters = parameters.split(')').next().unwrap();
            let found: Vec<(&str, bool)> = parameters
                .split(',')
                .map(|p| (words(p).find(|&w| w != "const").unwrap(), p.contains(['*', '['])))
                .collect();
            let expected: Vec<(&str, bool)> = call.arguments.iter().map(|&role| c_type(role)).collect();
            assert_eq!(found, expected, "{}({parameters}) of {host:?}", call.name);
            compared += 1;
        }
        let least = if host == Host::OpenMpi4 { 50 } else { COUNTED_CALLS.len() };
        assert!(compared >= least, "{host:?}: {compared} of {}", COUNTED_CALLS.len());
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

/// `MPIX_Request_is_complete` cannot unpack what a receive has staged, so programs that refer to it
/// have no request converted.
#[test]
fn requests_that_are_asked_about_unseen_are_not_converted() {
    let host = Host::Mpich;
    for asked in ["MPIX_Request_is_complete", "PMPIX_Request_is_complete"] {
        let program = host.compile("asked", &[&format!("-DASKED={asked}")]);
        let folder = scratch(&format!("asked-{asked}"));
        for round in 0..10 {
            let run = host.ranks(2, &program).preload().env("DDTC_POLICY", "all");
            let (text, errors) = run.env("DDTC_REPORT", folder.join("report%r")).text();
            assert_eq!(text.matches("wrong 0\n").count(), 2, "{asked}, run {round}: {text}{errors}");
            let said = reports(&folder, 2);
            // Blocking sends of rank 0 are converted, and nothing that has a request.
            let moved = said.iter().map(|said| (said["messages_packed"], said["messages_unpacked"]));
            assert_eq!(moved.collect::<Vec<_>>(), [(60, 0), (0, 0)], "{asked}: {said:?}");
            assert!(said.iter().all(|said| said["left_unseen_completion"] > 20), "{asked}: {said:?}");
            let why = format!("note nonblocking calls are this host's: the program refers to {asked}\n");
            for rank in 0..2 {
                let report = fs::read_to_string(folder.join(format!("report{rank}"))).unwrap();
                assert!(report.contains(&why), "{report}");
            }
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
