//! Tests that the tables of MPI libraries in docs/LIBRARIES.md and README.md agree with
//! `hosts/src/tried.txt`, which lists the MPI libraries under which the tests were run.

use std::fmt::Write as _;

use crate::text::{hold, read};

const KINDS: [&str; 7] =
    ["messages", "exchanges", "collectives", "neighbors", "persistent", "windows", "files"];

/// The families of MPI libraries. Each entry has the word that `hosts/src/tried.txt` uses, and the
/// name that the documents use.
const FAMILIES: [(&str, &str); 3] = [("mpich", "MPICH"), ("intel", "Intel MPI"), ("openmpi", "Open MPI")];

/// A line of `hosts/src/tried.txt`: a run of the test matrix under one release of an MPI library.
struct Run {
    /// Index in [`FAMILIES`] of the family that the MPI library belongs to.
    family: usize,
    version: Vec<u32>,
    device: String,
    transport: String,
    date: String,
    verdicts: Vec<String>,
}

fn runs() -> Vec<Run> {
    let parse = |line: &str| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let [family, release, device, transport, date, verdicts @ ..] = &words[..] else { panic!("{line}") };
        Run {
            family: FAMILIES.iter().position(|(word, _)| word == family).expect("a family"),
            version: release.split('.').map(|part| part.parse().unwrap()).collect(),
            device: device.clone(),
            transport: transport.clone(),
            date: date.clone(),
            verdicts: verdicts.to_vec(),
        }
    };
    read("hosts/src/tried.txt").lines().filter(|line| !line.starts_with('#')).map(parse).collect()
}

/// The series under which nothing is staged, as `PROFILES` in `hosts/src/profile.rs` has them. Each
/// entry has the index of the family in [`FAMILIES`].
const ONLY_INSIDE: [(usize, [u32; 2]); 2] = [(2, [4, 1]), (2, [6, 0])];

/// Returns true if messages gain only inside the MPI library that was run.
fn gains_only_inside(run: &Run) -> bool {
    ONLY_INSIDE.iter().any(|(family, series)| run.family == *family && run.version.starts_with(series))
}

/// Returns the names of the series under which messages gain only inside the library.
fn only_inside(runs: &[Run]) -> String {
    let mut names: Vec<String> = Vec::new();
    for run in runs.iter().filter(|run| gains_only_inside(run)) {
        let name = format!("{} {}", FAMILIES[run.family].1, numbers(&run.version[..2]));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

/// Returns the names of the releases that were run over one of `transports`, and whose messages
/// were right in all runs over these transports. Runs of MPICH with the device ch3 are left out,
/// because they say nothing about the usual builds.
fn right_over(runs: &[Run], transports: &[&str]) -> String {
    let over = |run: &&Run| {
        transports.contains(&run.transport.as_str())
            && !gains_only_inside(run)
            && !run.device.starts_with("ch3")
    };
    let mut names = Vec::new();
    for (family, (_, name)) in FAMILIES.iter().enumerate() {
        let of_family = || runs.iter().filter(over).filter(|run| run.family == family);
        let is_right = |version: &[u32]| {
            let mut of_release = of_family().filter(|run| run.version.starts_with(version));
            of_release.all(|run| run.verdicts[0] == "right")
        };
        let mut releases: Vec<String> = Vec::new();
        for run in of_family().filter(|run| is_right(&run.version)) {
            // If several releases of a series, such as 4.1, were run and were right in all runs,
            // list the series in place of its releases.
            let series = &run.version[..2];
            let is_series = is_right(series)
                && of_family().any(|other| other.version.starts_with(series) && other.version != run.version);
            let release = numbers(if is_series { series } else { &run.version });
            if !releases.contains(&release) {
                releases.push(release);
            }
        }
        if !releases.is_empty() {
            names.push(format!("{name} {}", releases.join(", ")));
        }
    }
    names.join("; ")
}

fn numbers(version: &[u32]) -> String {
    let words: Vec<String> = version.iter().map(u32::to_string).collect();
    words.join(".")
}

/// Returns the document with `text` between the marks that enclose its generated part `name`.
fn with(document: &str, name: &str, text: &str) -> String {
    let (from, to) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (head, rest) = document.split_once(&from).unwrap_or_else(|| panic!("no mark {name}"));
    let (_, tail) = rest.split_once(&to).unwrap_or_else(|| panic!("no end of {name}"));
    format!("{head}{from}{text}{to}{tail}")
}

#[test]
fn tables_of_libraries_are_those_that_were_tried() {
    let runs = runs();
    let mut table = format!("| Library | device | transport | run | {} |\n", KINDS.join(" | "));
    table += "|---|---|---|---|---|---|---|---|---|---|---|\n";
    for run in &runs {
        let _ = writeln!(
            table,
            "| {} {} | {} | {} | {} | {} |",
            FAMILIES[run.family].1,
            numbers(&run.version),
            run.device.trim_matches('-'),
            run.transport,
            run.date,
            run.verdicts.join(" | ")
        );
    }
    hold("docs/LIBRARIES.md", &with(&read("docs/LIBRARIES.md"), "libraries", &table));
    let rows = format!(
        "| MPI library | What gains |\n|---|---|\n\
         | {} | messages between ranks of one machine, `MPI_Pack` and `MPI_Unpack` |\n\
         | {} | messages between machines too, with MPICH if its network module is libfabric |\n\
         | {} | `MPI_Pack` and `MPI_Unpack`; messages only inside the library |\n\
         | other releases, and other libraries of these ABIs such as Cray MPICH | `MPI_Pack` and `MPI_Unpack`; after [`ddtc tune`](docs/LIBRARIES.md#proofs) messages too |\n",
        right_over(&runs, &["shared"]),
        right_over(&runs, &["tcp", "nodes"]),
        only_inside(&runs)
    );
    hold("README.md", &with(&read("README.md"), "libraries", &rows));
}
