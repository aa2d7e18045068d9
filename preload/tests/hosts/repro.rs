//! Test of programs that once failed because of the preload library. Each program must behave with
//! the preload library as without it, with the same output and the same exit status. The table of
//! programs and MPI libraries is `repro.txt`. These environment variables select what runs:
//!
//! | Variable | Meaning |
//! |---|---|
//! | `DDTC_REPRO` | names of programs: only their rows run |
//! | `DDTC_ROTATION` | number of the first row; rows from it on run for [`ROTATION`] seconds |

use std::fs;
use std::path::PathBuf;

use crate::setup::{Host, Run, library, lossy, scratch, sorted};

/// Maximum number of seconds that the rows which run under `DDTC_ROTATION` take together, by the
/// column `seconds` of the table `repro.txt`.
const ROTATION: u32 = 240;

/// The columns of the table `repro.txt` that stand for MPI libraries, in their order.
const LIBRARIES: [(&str, Host); 4] =
    [("mpich", Host::Mpich), ("impi", Host::Intel), ("openmpi4", Host::OpenMpi4), ("openmpi", Host::OpenMpi)];

/// The settings of the preload library under which each program runs: a name and the environment
/// variables.
const SETTINGS: [(&str, &[(&str, &str)]); 4] = [
    ("as shipped", &[]),
    ("converting all", &EAGER),
    ("converting all, checked", &[EAGER[0], EAGER[1], EAGER[2], ("DDTC_CHECK", "1")]),
    ("nothing inside", &[("DDTC_HOOK", "off")]),
];

/// These variables make the preload library convert everything from the first call on. Staging
/// buffers lie between inaccessible pages.
const EAGER: [(&str, &str); 3] = [("DDTC_POLICY", "all"), ("DDTC_LAZY_THRESHOLD", "0"), ("DDTC_FENCES", "1")];

/// Whether a program behaves with the preload library as it does without it, under one MPI library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    /// The program does not behave yet as it does without the preload library. The column `limit`
    /// of its row names the known limit.
    Open,
    /// The program is not run under this MPI library, because the library lacks what the program
    /// needs or fails without ddtc.
    Other,
}

/// A row of the table `repro.txt`: a program, its arguments, and how it is run.
struct Row {
    program: &'static str,
    arguments: Vec<&'static str>,
    /// Number of ranks, or `None` if the program runs as one process without a launcher.
    ranks: Option<u32>,
    /// True if the other ranks go on when one rank dies. The exit status of the launcher then says
    /// that a rank died.
    tolerant: bool,
    runs: u32,
    seconds: u32,
    /// One verdict for each of [`LIBRARIES`], in the same order.
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
                "yes" => Verdict::Same,
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

    /// Returns a run of the row's program under an MPI library. The environment has no settings of
    /// ddtc except `settings`.
    fn run(&self, host: Host, preloaded: bool, settings: &[(&str, &str)]) -> Run {
        let folder = scratch("repro");
        // The flag `-rdynamic` exports the functions of the program. If the program defines a
        // function of the C library, its function takes the place of the original, for the preload
        // library too.
        let program = host.compile(self.program, &["-rdynamic", "-Wl,--as-needed", "-ldl"]);
        let mut run = match self.ranks {
            Some(ranks) if self.tolerant => host.tolerant_ranks(ranks, "env"),
            Some(ranks) => host.ranks(ranks, "env"),
            None => host.run("env"),
        };
        for name in ["DDTC_FENCES", "DDTC_LAZY_THRESHOLD", "DDTC_POLICY", "DDTC_PROFILE_CACHE"] {
            run.command.env_remove(name);
        }
        // These folders are empty, so that neither a policy table of the user nor measurements of
        // an earlier program have an effect.
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

/// Returns the argument of the program that `word` of the table stands for. If the argument is a
/// library for another MPI library, the folder of that MPI library is added to `paths`.
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

/// Runs a program. Returns its exit status together with its output, and the text on standard
/// error. The lines of the output are sorted, because ranks may print in any order.
fn behaviour(run: Run) -> (String, String) {
    let out = run.output();
    let behaviour = format!("{}\n{}", out.status, sorted(&lossy(&out.stdout)));
    (behaviour, lossy(&out.stderr))
}

/// Runs the program of a row under one MPI library, without the preload library and under each of
/// [`SETTINGS`]. Returns a description of each setting in which the program did not behave as the
/// table says.
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
            println!("{what}: {}", if found.is_empty() { "same" } else { "DIFFERS" });
            found
        }
    }
}

/// Returns the rows of the table that the environment selects: those of the programs in
/// `DDTC_REPRO`, or those from the row `DDTC_ROTATION` on, or all rows if neither variable is set.
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
