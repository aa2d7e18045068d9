//! The tables of MPI libraries in docs/LIBRARIES.md, README.md, docs/GUIDE.md and docs/PRELOAD.md are those of `hosts/src/tried.txt`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::text::{hold, read};

const KINDS: [&str; 7] =
    ["messages", "exchanges", "collectives", "neighbors", "persistent", "windows", "files"];

/// Family as its order and its name in prose.
const FAMILIES: [(&str, &str); 3] = [("mpich", "MPICH"), ("intel", "Intel MPI"), ("openmpi", "Open MPI")];

/// A release of a library: its family's place in [`FAMILIES`], and its numbers.
type Release = (usize, Vec<u32>);

/// What all runs of a release say.
#[derive(Default)]
struct Runs {
    transports: Vec<String>,
    devices: Vec<String>,
    date: String,
    /// The worst word of each kind over all runs.
    verdicts: [String; 7],
}

fn runs() -> BTreeMap<Release, Runs> {
    let mut found: BTreeMap<Release, Runs> = BTreeMap::new();
    for line in read("hosts/src/tried.txt").lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [family, release, device, transport, date, ref verdicts @ ..] = words[..] else {
            panic!("{line}")
        };
        let family = FAMILIES.iter().position(|(word, _)| *word == family).expect("a family");
        let numbers = release.split('.').map(|part| part.parse().unwrap()).collect();
        let runs = found.entry((family, numbers)).or_default();
        runs.transports.push(transport.to_owned());
        if device != "-" && !runs.devices.contains(&device.to_owned()) {
            runs.devices.push(device.to_owned());
        }
        runs.date = runs.date.clone().max(date.to_owned());
        let rank =
            |word: &str| ["", "absent", "right", "untried", "fault", "wrong"].iter().position(|w| *w == word);
        for (worst, word) in runs.verdicts.iter_mut().zip(verdicts) {
            if rank(word) > rank(worst) {
                (*word).clone_into(worst);
            }
        }
    }
    found
}

fn numbers(version: &[u32]) -> String {
    let words: Vec<String> = version.iter().map(u32::to_string).collect();
    words.join(".")
}

/// Replaces what stands between the marks of a generated part.
fn with(document: &str, name: &str, text: &str) -> String {
    let (from, to) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (head, rest) = document.split_once(&from).unwrap_or_else(|| panic!("no mark {name}"));
    let (_, tail) = rest.split_once(&to).unwrap_or_else(|| panic!("no end of {name}"));
    format!("{head}{from}{text}{to}{tail}")
}

#[test]
fn tables_of_libraries_are_those_that_were_tried() {
    let mut table = format!("| Library | device, transports | last run | {} |\n", KINDS.join(" | "));
    table += "|---|---|---|---|---|---|---|---|---|---|\n";
    let all = runs();
    for ((family, version), runs) in &all {
        let devices =
            if runs.devices.is_empty() { String::new() } else { format!("{}: ", runs.devices.join(", ")) };
        let _ = writeln!(
            table,
            "| {} {} | {devices}{} | {} | {} |",
            FAMILIES[*family].1,
            numbers(version),
            runs.transports.join(", "),
            runs.date,
            runs.verdicts.join(" | ")
        );
    }
    hold("docs/LIBRARIES.md", &with(&read("docs/LIBRARIES.md"), "libraries", &table));
    // A series of which several releases were run and all were right stands for all of its releases.
    let is_right = |runs: &Runs| runs.verdicts[0] == "right";
    let mut names = Vec::new();
    for (family, (_, name)) in FAMILIES.iter().enumerate() {
        let mut releases: Vec<String> = Vec::new();
        for ((_, version), _) in all.iter().filter(|((f, _), runs)| *f == family && is_right(runs)) {
            let mut series = all.iter().filter(|((f, other), _)| *f == family && other[..2] == version[..2]);
            let is_series = series.clone().count() > 1 && series.all(|(_, runs)| is_right(runs));
            let release = numbers(&version[..if is_series { 2 } else { 3 }]);
            if !releases.contains(&release) {
                releases.push(release);
            }
        }
        names.push(format!("{name} {}", releases.join(", ")));
    }
    let row = format!("| {} | messages, `MPI_Pack` and `MPI_Unpack` |\n", names.join("; "));
    let readme = read("README.md");
    let old = readme.lines().find(|line| line.starts_with("| MPICH ")).expect("the row of what is converted");
    hold("README.md", &readme.replace(&format!("{old}\n"), &row));
}
