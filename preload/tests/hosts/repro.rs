//! Programs that once failed because of the preload library. Each must behave as without it, with
//! the same output and the same exit status. The table of programs and MPI libraries is
//! `repro.txt`.
//!
//! | Variable | Meaning |
//! |---|---|
//! | `DDTC_REPRO` | names of programs: only their rows run |
//! | `DDTC_ROTATION` | number of the first row; rows from it on run for [`ROTATION`] seconds |

use std::fs;
use std::path::PathBuf;

use crate::setup::{Host, Run, library, lossy, scratch, sorted};

/// Total time of the rows that run under `DDTC_ROTATION`, in seconds, by the column `seconds` of
/// the table.
const ROTATION: u32 = 240;

/// Columns of the table that stand for MPI libraries.
const LIBRARIES: [(&str, Host); 4] =
    [("mpich", Host::Mpich), ("impi", Host::Intel), ("openmpi4", Host::OpenMpi4), ("openmpi", Host::OpenMpi)];

/// Settings of the preload library: a name and the environment variables.
const SETTINGS: [(&str, &[(&str, &str)]); 4] = [
    ("as shipped", &[]),
    ("converting all", &EAGER),
    ("converting all, checked", &[EAGER[0], EAGER[1], EAGER[2], ("DDTC_CHECK", "1")]),
    ("nothing inside", &[("DDTC_HOOK", "off")]),
];

/// Converts everything from the first call on, through staging buffers between inaccessible pages.
const EAGER: [(&str, &str); 3] = [("DDTC_POLICY", "all"), ("DDTC_LAZY_THRESHOLD", "0"), ("DDTC_FENCES", "1")];

/// Whether a program behaves under an MPI library as it does without the preload library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Alike,
    /// The program does not behave alike yet. The row's column `limit` names the known limit.
    Open,
    /// The program does not apply to the library.
    Other,
}

/// A row of the table.
struct Row {
    program: &'static str,
    arguments: Vec<&'static str>,
    /// Number of ranks, or `None` for a process without a launcher.
    ranks: Option<u32>,
    /// True if the ranks go on when one dies. The launcher's exit status then says that one died.
    tolerant: bool,
    runs: u32,
    seconds: u32,
    /// One verdict for each of [`LIBRARIES`].
    verdicts: Vec<Verdict>,
}

impl Row {
    fn from_line(line: &'static str) -> Row {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [program, arguments, ranks, runs, seconds, verdicts @ .., limit] = &columns[..] else {
            panic!("{line}")
        };
        let verdicts: Vec<Verdict> = verdicts
            .iter()
            .map(|verdict| match *verdict {
                "yes" => Verdict::Alike,
                "open" => Verdict::Open,
                "no" => Verdict::Other,
                _ => panic!("yes, open or no: {line}"),
            })
            .collect();
        assert_eq!(verdicts.len(), LIBRARIES.len(), "{line}");
        assert_eq!(verdicts.contains(&Verdict::Open), !limit.is_empty(), "what is open has a limit: {line}");
        let row = Row {
            program,
            arguments: arguments.split_whitespace().collect(),
            ranks: ranks.split(' ').next().filter(|n| *n != "alone").map(|n| n.parse().expect("ranks")),
            tolerant: ranks.ends_with(" tolerant"),
            runs: runs.parse().expect("runs"),
            seconds: seconds.parse().expect("seconds"),
            verdicts,
        };
        assert!((1..=ROTATION).contains(&row.seconds), "{line}");
        row
    }

    /// Returns a run of the program under an MPI library, in an environment without other settings
    /// of ddtc.
    fn run(&self, host: Host, preloaded: bool, settings: &[(&str, &str)]) -> Run {
        let folder = scratch("repro");
        // With `-rdynamic`, functions that the program defines take the place of those of the C
        // library, also for the preload library.
        let program = host.compile(self.program, &["-rdynamic", "-Wl,--as-needed", "-ldl"]);
        let mut run = match self.ranks {
            Some(ranks) if self.tolerant => host.tolerant_ranks(ranks, "env"),
            Some(ranks) => host.ranks(ranks, "env"),
            None => host.run("env"),
        };
        for name in ["DDTC_FENCES", "DDTC_LAZY_THRESHOLD", "DDTC_POLICY", "DDTC_PROFILE_CACHE"] {
            run.command.env_remove(name);
        }
        // Neither the user's policy nor measurements of an earlier program may have an effect.
        run = run.env("XDG_CONFIG_HOME", folder.join("config")).env("XDG_CACHE_HOME", folder.join("cache"));
        let mut paths = vec![host.root().join("lib")];
        let arguments: Vec<PathBuf> =
            self.arguments.iter().map(|word| argument(word, host, &folder, &mut paths)).collect();
        run = run.env("LD_LIBRARY_PATH", std::env::join_paths(&paths).unwrap());
        if preloaded {
            run = run.arg(format!("LD_PRELOAD={}", library().display()));
        }
        for (name, value) in settings {
            run = run.arg(format!("{name}={value}"));
        }
        run = run.arg(program);
        arguments.iter().fold(run, |run, argument| run.arg(argument))
    }
}

/// Returns the argument that a word of the table stands for. Folders of further MPI libraries are
/// added to `paths`.
fn argument(word: &str, host: Host, folder: &std::path::Path, paths: &mut Vec<PathBuf>) -> PathBuf {
    let Some(inner) = word.strip_prefix('{').and_then(|word| word.strip_suffix('}')) else {
        return PathBuf::from(word);
    };
    if inner == "file" {
        return folder.join("file");
    }
    let (of, name) = inner.split_once(':').expect("{file} or {library:NAME}");
    let named = LIBRARIES.iter().find(|(library, _)| *library == of).map(|(_, host)| *host);
    let of = if of == "own" { host } else { named.expect("a library") };
    let path = of.root().join("lib");
    if !paths.contains(&path) {
        paths.push(path);
    }
    of.compile(name, &["-shared", "-fPIC"])
}

/// Runs a program, and returns its exit status with its output, and the text on standard error. The
/// lines are sorted, because ranks may print in any order.
fn behaviour(run: Run) -> (String, String) {
    let out = run.output();
    let behaviour = format!("{}\n{}", out.status, sorted(&lossy(&out.stdout)));
    (behaviour, lossy(&out.stderr))
}

/// Runs a row under one library, and returns the settings in which the program did not behave as
/// the table says.
fn differences(row: &Row, library: &str, host: Host, verdict: Verdict) -> Vec<String> {
    let what = format!("{} {} under {library}", row.program, row.arguments.join(" "));
    let (expected, errors) = behaviour(row.run(host, false, &[]));
    if !row.tolerant && !expected.starts_with("exit status: 0\n") {
        return vec![format!("{what} fails without the preload library: {expected}\n{errors}")];
    }
    let mut found = Vec::new();
    for (setting, variables) in SETTINGS {
        for run in 1..=row.runs {
            let (seen, errors) = behaviour(row.run(host, true, variables));
            if seen != expected {
                found.push(format!(
                    "{what}, {setting}, run {run}\n  expected {expected}\n  got {seen}\n{errors}"
                ));
                break;
            }
        }
    }
    match verdict {
        Verdict::Open if found.is_empty() && row.runs == 1 => {
            vec![format!("{what} behaves alike: the table and docs/PRELOAD.md call it open")]
        }
        Verdict::Open => {
            let differ = found.len();
            println!("{what}: open, {differ} of {} settings differ", SETTINGS.len());
            Vec::new()
        }
        _ => {
            println!("{what}: {}", if found.is_empty() { "alike" } else { "DIFFERS" });
            found
        }
    }
}

/// Returns the rows that the environment selects: all of them unless it names programs or a
/// rotation.
fn chosen(rows: Vec<Row>) -> Vec<Row> {
    if let Ok(names) = std::env::var("DDTC_REPRO") {
        return rows.into_iter().filter(|row| names.split(' ').any(|name| name == row.program)).collect();
    }
    let Ok(number) = std::env::var("DDTC_ROTATION") else { return rows };
    let first = number.parse::<usize>().expect("DDTC_ROTATION is a number") % rows.len();
    let mut rows = rows;
    rows.rotate_left(first);
    let mut seconds = 0;
    rows.into_iter()
        .take_while(|row| {
            seconds += row.seconds;
            seconds <= ROTATION
        })
        .collect()
}

#[test]
fn programs_behave_as_without_the_preload_library() {
    let table = include_str!("repro.txt");
    let rows = table.lines().filter(|line| !line.starts_with('#')).map(Row::from_line).collect();
    let rows = chosen(rows);
    assert!(!rows.is_empty(), "no row of repro.txt is asked for");
    let mut wrong = Vec::new();
    for row in &rows {
        for ((library, host), verdict) in LIBRARIES.into_iter().zip(&row.verdicts) {
            if *verdict != Verdict::Other {
                wrong.extend(differences(row, library, host, *verdict));
            }
        }
    }
    let _ = fs::remove_dir_all(scratch("repro"));
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
