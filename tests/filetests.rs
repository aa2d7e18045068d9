//! Filetests: input, and the text of the stage below it.
//!
//! Every file of `tests/filetests/<stage>/` is run by the test of that stage's name; `DDTC_BLESS=1` rewrites what is expected.
//! docs/TESTING.md describes the form. A file starts with directives, then come cases:
//!
//! ```text
//! ; test normalize
//! ; case dense copies fold
//! contiguous(4, int)
//! ; -->
//! nest normal size 16 extent 16
//! copy 16*count
//! ```

use std::fmt::Write;
use std::path::{Path, PathBuf};

use ddtc::datatype::Datatype;
use ddtc::emit::{self, Emitter};
use ddtc::fuzzing::check_datatype;
use ddtc::kind::Direction;
use ddtc::lower::Units;
use ddtc::nest::{LoopNest, Lowered, Normal, Visit};
use ddtc::plan::{Plan, Scheduled};
use ddtc::target::{Arch, Level, Target};
use ddtc::{legalize, lower, normalize, schedule};

/// What the directives of a file, or of one case, say.
#[derive(Clone)]
struct Settings {
    target: Target,
    directions: Vec<Direction>,
    /// Widest access in bytes, for legalize.
    widest: u32,
    counts: Vec<u64>,
    /// Emission by templates, not by Cranelift.
    templates: bool,
    /// Constructor arguments that normalize's budget is measured by, for inputs that are nests.
    arguments: u64,
}

struct Case {
    name: String,
    settings: Settings,
    input: String,
    /// Line numbers, from 0, of the first expected line and after the last.
    expected: std::ops::Range<usize>,
}

struct File {
    stage: String,
    lines: Vec<String>,
    cases: Vec<Case>,
}

fn number<T: std::str::FromStr>(word: &str, line: &str) -> T {
    word.parse().unwrap_or_else(|_| panic!("'{word}' in '{line}'"))
}

impl Settings {
    /// Takes a directive in; false for what is only a comment.
    fn directive(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.trim_start_matches(';').split_whitespace().collect();
        match words[..] {
            ["target", target] => self.target = target.parse().unwrap_or_else(|e| panic!("{line}: {e}")),
            ["direction", "pack"] => self.directions = vec![Direction::Pack],
            ["direction", "unpack"] => self.directions = vec![Direction::Unpack],
            ["direction", "both"] => self.directions = Direction::BOTH.to_vec(),
            ["widest", n] => self.widest = number(n, line),
            ["emitter", emitter] => {
                assert!(matches!(emitter, "cranelift" | "x64"), "{line}");
                self.templates = emitter == "x64";
            }
            ["arguments", n] => self.arguments = number(n, line),
            ["counts", ref counts @ ..] => self.counts = counts.iter().map(|n| number(n, line)).collect(),
            _ => return false,
        }
        true
    }
}

fn parse(text: &str) -> File {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut settings = Settings {
        target: Target::new(Level::Baseline),
        directions: vec![Direction::Pack],
        widest: 16,
        counts: vec![0, 1, 2, 3, 17],
        templates: false,
        arguments: 1000,
    };
    let stage = lines.first().and_then(|l| l.strip_prefix("; test ")).expect("first line: '; test STAGE'");
    let stage = stage.trim().to_owned();
    let mut cases: Vec<Case> = Vec::new();
    let mut arrow = false;
    for (i, line) in lines.iter().enumerate().skip(1) {
        if let Some(name) = line.strip_prefix("; case ") {
            let (name, settings) = (name.to_owned(), settings.clone());
            cases.push(Case { name, settings, input: String::new(), expected: i..i });
            arrow = false;
        } else if line.trim() == "; -->" {
            let case = cases.last_mut().expect("'; -->' before the first case");
            case.expected = i + 1..i + 1;
            arrow = true;
        } else if arrow {
            if let Some(case) = cases.last_mut() {
                case.expected.end = i + 1;
            }
        } else if line.starts_with(';') {
            cases.last_mut().map_or(&mut settings, |c| &mut c.settings).directive(line);
        } else if !line.trim().is_empty() {
            if cases.is_empty() {
                // A file of one case need not name it: what a failing check prints.
                let settings = settings.clone();
                cases.push(Case { name: "only".to_owned(), settings, input: String::new(), expected: i..i });
            }
            let input = &mut cases.last_mut().expect("just pushed").input;
            input.push_str(line);
            input.push('\n');
        }
    }
    assert!(!cases.is_empty(), "no case");
    for case in &mut cases {
        // Blank lines before the next case are not expected output.
        while case.expected.end > case.expected.start && lines[case.expected.end - 1].trim().is_empty() {
            case.expected.end -= 1;
        }
        if case.expected.start == case.expected.end && stage != "engines" {
            assert!(lines.iter().any(|l| l.trim() == "; -->"), "case {}: no '; -->'", case.name);
        }
    }
    File { stage, lines, cases }
}

/// The bytes that visits move: user offset of every packed byte in packed order.
fn bytes(visits: &[Visit]) -> Vec<(i64, i64)> {
    visits.iter().flat_map(|v| (0..v.n as i64).map(|i| (v.at.packed + i, v.at.user + i))).collect()
}

fn is_nest(input: &str) -> bool {
    input.trim_start().starts_with("nest")
}

fn lowered(input: &str) -> (LoopNest<Lowered>, Option<u64>) {
    if is_nest(input) {
        return (input.parse().unwrap_or_else(|e| panic!("{e}\n{input}")), None);
    }
    let t: Datatype = ddtc::corpus::datatype(input).unwrap_or_else(|e| panic!("{e}\n{input}"));
    (lower::lower(&t, Units::Bytes).unwrap(), Some(t.arguments()))
}

fn normal(case: &Case) -> (LoopNest<Normal>, i64) {
    if case.input.trim_start().starts_with("nest normal") {
        return (case.input.parse().unwrap_or_else(|e| panic!("{e}\n{}", case.input)), 0);
    }
    let (nest, arguments) = lowered(&case.input);
    nest.verify().unwrap_or_else(|e| panic!("{e}\n{nest}"));
    let made = normalize::normalize(&nest, arguments.unwrap_or(case.settings.arguments)).unwrap();
    let visits = |visit: &dyn Fn(u64, &mut Vec<Visit>)| {
        [0, 1, 3].map(|count| {
            // Large inputs are about decisions of later stages.
            let count = if nest.size() < 1 << 16 { count } else { 0 };
            let mut out = Vec::new();
            visit(count, &mut out);
            bytes(&out)
        })
    };
    // The rewrites must not change what moves, nor the order.
    let before = visits(&|count, out| nest.visit(count, |v| out.push(v)));
    let after = visits(&|count, out| made.nest.visit(count, |v| out.push(v)));
    for (before, after) in before.into_iter().zip(after) {
        let after: Vec<_> = after.into_iter().map(|(p, u)| (p, u + made.origin)).collect();
        assert!(before == after, "case {}: other bytes\n{nest}\n{}", case.name, made.nest);
    }
    (made.nest, made.origin)
}

fn each(case: &Case, one: impl Fn(Result<Plan<Scheduled>, schedule::Refusal>) -> String) -> String {
    let (nest, _) = normal(case);
    nest.verify().unwrap_or_else(|e| panic!("{e}\n{nest}"));
    let directions = case.settings.directions.iter();
    directions.map(|&d| one(schedule::schedule(&nest, d, case.settings.target))).collect()
}

/// The text that the stage makes of the input of `case`.
fn run(stage: &str, case: &Case) -> String {
    let refused = |r: schedule::Refusal| format!("walked: {}\n", r.reason);
    let widest = case.settings.widest;
    match stage {
        "lower" => {
            let (nest, _) = lowered(&case.input);
            nest.verify().unwrap_or_else(|e| panic!("{e}\n{nest}"));
            nest.to_string()
        }
        "normalize" => {
            let (nest, origin) = normal(case);
            nest.verify().unwrap_or_else(|e| panic!("{e}\n{nest}"));
            let mut text = nest.to_string();
            if origin != 0 {
                let _ = writeln!(text, "origin {origin}");
            }
            text
        }
        "schedule" => each(case, |plan| match plan {
            Ok(plan) => {
                plan.verify().unwrap_or_else(|e| panic!("{e}\n{plan}"));
                plan.to_string()
            }
            Err(r) => refused(r),
        }),
        "legalize" => each(case, |plan| match plan {
            Ok(plan) => {
                let legal = legalize::legalize(&plan, widest).unwrap();
                legal.verify().unwrap_or_else(|e| panic!("{e}\n{legal}"));
                legal.to_string()
            }
            Err(r) => refused(r),
        }),
        "emit" => each(case, |plan| match plan {
            Ok(plan) => {
                let legal = |widest| legalize::legalize(&plan, widest).unwrap();
                if case.settings.templates {
                    let target = plan.target().on(Arch::X86_64).unwrap();
                    let emitter = emit::X64::new(target).unwrap();
                    emitter.listing(&legal(emitter.widest_access())).unwrap().code
                } else {
                    let emitter = emit::Cranelift::for_host(true).unwrap();
                    emitter.listing(&legal(widest)).unwrap().ir
                }
            }
            Err(r) => refused(r),
        }),
        "engines" => {
            let t: Datatype =
                ddtc::corpus::datatype(&case.input).unwrap_or_else(|e| panic!("{e}\n{}", case.input));
            for &count in &case.settings.counts {
                for level in Level::available() {
                    check_datatype(&t, count, level).unwrap_or_else(|m| panic!("{count} of {t}: {m}"));
                }
            }
            String::new()
        }
        _ => panic!("no stage '{stage}'"),
    }
}

/// Lines of `want` and `got` with what differs marked: the longest common subsequence is kept.
fn diff(want: &[&str], got: &[&str]) -> String {
    let mut common = vec![vec![0; got.len() + 1]; want.len() + 1];
    for i in (0..want.len()).rev() {
        for j in (0..got.len()).rev() {
            common[i][j] = if want[i] == got[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, String::new());
    while i < want.len() || j < got.len() {
        if i < want.len() && j < got.len() && want[i] == got[j] {
            let _ = writeln!(out, "  {}", want[i]);
            (i, j) = (i + 1, j + 1);
        } else if j == got.len() || (i < want.len() && common[i + 1][j] >= common[i][j + 1]) {
            let _ = writeln!(out, "- {}", want[i]);
            i += 1;
        } else {
            let _ = writeln!(out, "+ {}", got[j]);
            j += 1;
        }
    }
    out
}

/// Runs one file; returns what is wrong with it. Rewrites it when `bless`.
fn file(path: &Path, stage: &str, bless: bool) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let file = parse(&text);
    assert_eq!(file.stage, stage, "{}: '; test' must name the folder", path.display());
    let mut wrong = String::new();
    let mut blessed: Vec<String> = Vec::new();
    let mut copied = 0;
    for case in &file.cases {
        let got = run(stage, case);
        let got: Vec<&str> = got.trim_end().lines().collect();
        let want: Vec<&str> = file.lines[case.expected.clone()].iter().map(String::as_str).collect();
        if got != want {
            let _ = writeln!(wrong, "{}: case {}\n{}", path.display(), case.name, diff(&want, &got));
        }
        blessed.extend_from_slice(&file.lines[copied..case.expected.start]);
        blessed.extend(got.iter().map(|l| (*l).to_owned()));
        copied = case.expected.end;
    }
    blessed.extend_from_slice(&file.lines[copied..]);
    if bless && !wrong.is_empty() {
        std::fs::write(path, blessed.join("\n") + "\n").unwrap();
        return String::new();
    }
    wrong
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests")
}

fn stage(name: &str) {
    let bless = std::env::var_os("DDTC_BLESS").is_some_and(|v| v == "1");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(root().join(name)).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no filetest of {name}");
    let mut wrong = String::new();
    for path in &paths {
        assert!(path.extension().is_some_and(|e| e == "ddt"), "{}: not a filetest", path.display());
        wrong += &file(path, name, bless);
    }
    assert!(
        wrong.is_empty(),
        "\n{wrong}'-' is expected, '+' is made. If it is right: DDTC_BLESS=1 cargo test --test filetests"
    );
}

#[test]
fn lower() {
    stage("lower");
}

#[test]
fn normalize() {
    stage("normalize");
}

#[test]
fn schedule() {
    stage("schedule");
}

#[test]
fn legalize() {
    stage("legalize");
}

#[test]
fn emit() {
    stage("emit");
}

#[test]
fn engines() {
    stage("engines");
}

#[test]
fn every_folder_is_run() {
    let mut folders: Vec<String> =
        std::fs::read_dir(root()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    folders.sort();
    assert_eq!(folders, ["emit", "engines", "legalize", "lower", "normalize", "schedule"]);
}

/// Every rewrite of the ordered list has its file.
#[test]
fn every_rewrite_has_a_filetest() {
    for rewrite in normalize::REWRITES {
        let path = root().join("normalize").join(format!("{rewrite}.ddt"));
        assert!(path.is_file(), "no {}", path.display());
    }
}

#[test]
fn a_failure_shows_the_difference() {
    let want = ["a", "b", "c"];
    let got = ["a", "x", "c", "d"];
    assert_eq!(diff(&want, &got), "  a\n- b\n+ x\n  c\n+ d\n");
    let file =
        parse("; test lower\n; case one\nint\n; -->\nnothing\n\n; case two\n; counts 3 4\nchar\n; -->\n");
    assert_eq!((file.cases.len(), file.cases[0].expected.clone()), (2, 4..5));
    assert_eq!((file.cases[1].expected.clone(), &file.cases[1].settings.counts[..]), (10..10, &[3, 4][..]));
}
