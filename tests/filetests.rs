//! Runs the filetests: files with input for a stage of the compiler and with the text that the
//! stage must make of this input.
//!
//! Each file `tests/filetests/STAGE/NAME.ddt` is a test of its own, `STAGE/NAME`, so that a test
//! that fails does not hide others. `DDTC_BLESS=1` rewrites the expected texts. docs/TESTING.md
//! describes the format of the files. A file starts with directives, and cases follow:
//!
//! ```text
//! ; test normalize
//! ; case dense copies fold
//! contiguous(4, int)
//! ; -->
//! nest normal size 16 extent 16
//! copy 16*count
//! ```

use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::IsTerminal;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ddtc::internal::code::emit::{self, Emitter};
use ddtc::internal::datatype::Datatype;
use ddtc::internal::fuzzing::check_datatype;
use ddtc::internal::kind::{Direction, Kind, Operation};
use ddtc::internal::lower::{Bytes, Leaves, Values};
use ddtc::internal::methods::*;
use ddtc::internal::nest::{Byte, Leaf, LoopNest, Lowered, Normal, Visit};
use ddtc::internal::plan::{Plan, Scheduled};
use ddtc::internal::refine::{self, Refined};
use ddtc::internal::schedule::Planned;
use ddtc::internal::target::{Arch, Level, Target};
use ddtc::internal::{legalize, lower, normalize, schedule};
use libtest_mimic::{Arguments, ColorSetting, Trial};
use similar::{ChangeTag, TextDiff};

/// The folders of `tests/filetests`. All but one are named after stages of the compiler. The cases
/// in `engines` go through all stages.
const STAGES: [&str; 7] = ["emit", "engines", "legalize", "lower", "normalize", "refine", "schedule"];

/// Settings that the directives of a filetest, or of one of its cases, make.
#[derive(Clone)]
struct Settings {
    target: Target,
    directions: Vec<Direction>,
    /// Maximum width of a memory access in bytes, for the stage `legalize`.
    widest: u32,
    counts: Vec<u64>,
    /// Whether templates, and not Cranelift, make the machine code.
    templates: bool,
    /// Number of constructor arguments from which normalization computes its budget. It is used
    /// only for inputs that are nests, since a datatype has this number itself.
    arguments: u64,
    /// Operation that is applied to values on their way, such as conversion to external32.
    operation: Operation,
    /// Text of the datatype to whose layout the bytes are copied directly. If it is empty, the
    /// bytes are copied to a packed stream.
    to: String,
}

struct Case {
    name: String,
    settings: Settings,
    input: String,
    /// Numbers of the expected lines in the file, from 0: from the first expected line to the one
    /// after the last. The field is `None` if the case has no line `; -->`.
    expected: Option<Range<usize>>,
}

struct File {
    lines: Vec<String>,
    cases: Vec<Case>,
}

fn number<T: std::str::FromStr>(word: &str, line: &str) -> T {
    word.parse().unwrap_or_else(|_| panic!("'{word}' in '{line}'"))
}

impl Settings {
    /// Applies the directive on a line. If the line is not a directive, it may be a comment: it
    /// counts as a comment if it is empty, or if it has more than two words and the words after the
    /// first are not all numbers. Any other line gives an error, because it may be a misspelled
    /// directive.
    fn directive(&mut self, line: &str) -> Result<(), String> {
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
            ["operation", operation] => {
                self.operation = operation.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
            }
            ["to", ref text @ ..] if !text.is_empty() => self.to = text.join(" "),
            [_, ref rest @ ..] if rest.len() < 2 || rest.iter().all(|word| word.parse::<f64>().is_ok()) => {
                return Err(format!("'{line}' is no directive, and too short for a comment"));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Parses the text of a filetest into its cases. `stage` is the name of the folder of the file.
fn parse(text: &str, stage: &str) -> Result<File, String> {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut settings = Settings {
        target: Target::new(Level::Baseline),
        directions: vec![Direction::Pack],
        widest: 16,
        counts: vec![0, 1, 2, 3, 17],
        templates: false,
        arguments: 1000,
        operation: Operation::Bytes,
        to: String::new(),
    };
    if lines.first().map(|l| l.trim()) != Some(&format!("; test {stage}")) {
        return Err(format!("the first line must be '; test {stage}', after the folder"));
    }
    let new = |name: &str, settings: &Settings| Case {
        name: name.to_owned(),
        settings: settings.clone(),
        input: String::new(),
        expected: None,
    };
    let mut cases: Vec<Case> = Vec::new();
    for (i, line) in lines.iter().enumerate().skip(1) {
        if let Some(name) = line.strip_prefix("; case ") {
            cases.push(new(name, &settings));
        } else if line.trim() == "; -->" {
            let case = cases.last_mut().ok_or("'; -->' before the first case")?;
            case.expected = Some(i + 1..i + 1);
        } else if let Some(expected) = cases.last_mut().and_then(|c| c.expected.as_mut()) {
            // Blank lines between the expected output and the next case are not part of the output.
            if !line.trim().is_empty() {
                expected.end = i + 1;
            }
        } else if line.starts_with(';') {
            cases.last_mut().map_or(&mut settings, |c| &mut c.settings).directive(line)?;
        } else if !line.trim().is_empty() {
            if cases.is_empty() {
                // A file with a single case need not give it a name. The case is then called
                // "only".
                cases.push(new("only", &settings));
            }
            let input = &mut cases.last_mut().expect("just pushed").input;
            input.push_str(line);
            input.push('\n');
        }
    }
    if cases.is_empty() {
        return Err("no case".to_owned());
    }
    Ok(File { lines, cases })
}

/// Returns the packed offset and the user offset of each unit that `visits` move, in order.
fn units<L: Leaf>(visits: &[Visit<L>]) -> Vec<(i64, i64)> {
    let unit = |v: &Visit<L>, i| {
        let at = v.at + v.unit.span(i);
        (at.packed, at.user)
    };
    visits.iter().flat_map(|v| (0..v.n as i64).map(move |i| unit(v, i))).collect()
}

fn is_nest(input: &str) -> bool {
    input.trim_start().starts_with("nest")
}

fn lowered<V: Leaves>(input: &str, leaves: V) -> (LoopNest<Lowered, V::Leaf>, Option<u64>) {
    if is_nest(input) {
        return (input.parse().unwrap_or_else(|e| panic!("{e}\n{input}")), None);
    }
    let t: Datatype = ddtc::internal::corpus::datatype(input).unwrap_or_else(|e| panic!("{e}\n{input}"));
    (lower::lower(&t, leaves).unwrap(), Some(t.arguments()))
}

/// A function that appends the visits of the leaves of a nest to a list, for a given number of
/// instances.
type Visits<'a, L> = &'a dyn Fn(u64, &mut Vec<Visit<L>>);

fn normal<V: Leaves>(case: &Case, leaves: V) -> (LoopNest<Normal, V::Leaf>, i64) {
    if case.input.trim_start().starts_with("nest normal") {
        return (case.input.parse().unwrap_or_else(|e| panic!("{e}\n{}", case.input)), 0);
    }
    let (nest, arguments) = lowered(&case.input, leaves);
    nest.verify().unwrap_or_else(|e| panic!("{e}\n{nest}"));
    let made = normalize::normalize(&nest, arguments.unwrap_or(case.settings.arguments)).unwrap();
    let visits = |visit: Visits<'_, V::Leaf>| {
        [0, 1, 3].map(|count| {
            // Inputs of 64 KiB or more test only decisions of later stages, so their leaves are not
            // visited.
            let count = if nest.size() < 1 << 16 { count } else { 0 };
            let mut out = Vec::new();
            visit(count, &mut out);
            units(&out)
        })
    };
    // The rewrites of normalization must change neither which units are moved nor their order.
    let before = visits(&|count, out| nest.visit(count, |v| out.push(v)));
    let after = visits(&|count, out| made.nest.visit(count, |v| out.push(v)));
    for (before, after) in before.into_iter().zip(after) {
        let after: Vec<_> = after.into_iter().map(|(p, u)| (p, u + made.origin)).collect();
        assert!(before == after, "case {}: other units\n{nest}\n{}", case.name, made.nest);
    }
    (made.nest, made.origin)
}

/// Returns the nest that copies bytes from the layout of a case's input directly to the layout of
/// its directive `to`.
fn fused(case: &Case) -> Result<Refined<Byte>, refine::Refusal> {
    let (from, _) = normal(case, Bytes);
    let to = Case {
        input: case.settings.to.clone(),
        expected: None,
        name: case.name.clone(),
        settings: case.settings.clone(),
    };
    let refined = refine::refine(&from, &normal(&to, Bytes).0).unwrap();
    if let Ok(refined) = &refined {
        refined.nest.verify().unwrap_or_else(|e| panic!("{e}\n{}", refined.nest));
    }
    refined
}

fn for_each_plan(case: &Case, one: impl Fn(Result<Plan<Scheduled>, schedule::Refusal>) -> String) -> String {
    if !case.settings.to.is_empty() {
        let Ok(refined) = fused(case) else { return "through a buffer\n".to_owned() };
        let nest = normalize::normalize(&refined.nest, case.settings.arguments).unwrap().nest;
        nest.verify().unwrap_or_else(|e| panic!("{e}\n{nest}"));
        let directions = case.settings.directions.iter();
        return directions.map(|&d| one(schedule::schedule(&nest, d, case.settings.target))).collect();
    }
    match case.settings.operation {
        Operation::Bytes => each_of(case, Bytes, one),
        operation => each_of(case, Values(operation), one),
    }
}

fn each_of<V: Leaves<Leaf: Planned>>(
    case: &Case,
    leaves: V,
    one: impl Fn(Result<Plan<Scheduled>, schedule::Refusal>) -> String,
) -> String {
    let (nest, _) = normal(case, leaves);
    nest.verify().unwrap_or_else(|e| panic!("{e}\n{nest}"));
    let Settings { operation, target, .. } = case.settings;
    let kinds = case.settings.directions.iter().map(|&direction| Kind { direction, operation });
    kinds.map(|kind| one(schedule::schedule(&nest, kind, target))).collect()
}

/// Returns the text of the nest that `stage`, which is `lower` or `normalize`, makes of a case's
/// input.
fn nest<V: Leaves>(stage: &str, case: &Case, leaves: V) -> String {
    if stage == "lower" {
        let (nest, _) = lowered(&case.input, leaves);
        nest.verify().unwrap_or_else(|e| panic!("{e}\n{nest}"));
        return nest.to_string();
    }
    let (nest, origin) = normal(case, leaves);
    nest.verify().unwrap_or_else(|e| panic!("{e}\n{nest}"));
    let mut text = nest.to_string();
    if origin != 0 {
        let _ = writeln!(text, "origin {origin}");
    }
    text
}

/// Returns the emitter that makes x86-64 code from templates, for `target`.
fn x64(target: Target) -> emit::X64 {
    emit::X64::new(target.on(Arch::X86_64).unwrap()).unwrap()
}

/// Returns the text that the stage of the compiler with this name makes of the input of `case`.
fn run(stage: &str, case: &Case) -> String {
    let refused = |r: schedule::Refusal| format!("interpreted: {}\n", r.reason);
    let widest = case.settings.widest;
    // Each nest and each plan is verified before it is printed. Stages from `schedule` on print a
    // plan or its code for each direction of the case, or the reason why there is none. The cases
    // of `engines` go through all oracles and print nothing.
    match stage {
        "lower" | "normalize" => match case.settings.operation {
            Operation::Bytes => nest(stage, case, Bytes),
            operation => nest(stage, case, Values(operation)),
        },
        "refine" => match fused(case) {
            Ok(Refined { nest, period, still }) => {
                format!("{nest}period {period}{}\n", if still { ", still" } else { "" })
            }
            Err(refusal) => format!("through a buffer: {}\n", refusal.reason),
        },
        "schedule" => for_each_plan(case, |plan| match plan {
            Ok(plan) => {
                plan.verify().unwrap_or_else(|e| panic!("{e}\n{plan}"));
                plan.to_string()
            }
            Err(r) => refused(r),
        }),
        "legalize" => for_each_plan(case, |plan| match plan {
            Ok(plan) => {
                let x64 = case.settings.templates.then(|| x64(plan.target()));
                let accesses = x64.map_or(widest.into(), |x64| x64.accesses());
                let legal = legalize::legalize(&plan, accesses).unwrap();
                legal.verify().unwrap_or_else(|e| panic!("{e}\n{legal}"));
                legal.to_string()
            }
            Err(r) => refused(r),
        }),
        "emit" => for_each_plan(case, |plan| match plan {
            Ok(plan) => {
                if case.settings.templates {
                    let emitter = x64(plan.target());
                    emitter.listing(&legalize::legalize(&plan, emitter.accesses()).unwrap()).unwrap().code
                } else {
                    let emitter = emit::Cranelift::for_host(true).unwrap();
                    emitter.listing(&legalize::legalize(&plan, widest).unwrap()).unwrap().ir
                }
            }
            Err(r) => refused(r),
        }),
        "engines" => {
            let t: Datatype = ddtc::internal::corpus::datatype(&case.input)
                .unwrap_or_else(|e| panic!("{e}\n{}", case.input));
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

/// Returns the lines of `want` and `got` as one text. Lines that only `want` has are marked by `-`,
/// and lines that only `got` has are marked by `+`.
fn diff(want: &[String], got: &[String], color: bool) -> String {
    let [want, got] = [want, got].map(|text| text.iter().map(String::as_str).collect::<Vec<_>>());
    let mut out = String::new();
    for change in TextDiff::from_slices(&want, &got).iter_all_changes() {
        let (mark, escape) = match change.tag() {
            ChangeTag::Equal => (' ', ""),
            ChangeTag::Delete => ('-', "\x1b[31m"),
            ChangeTag::Insert => ('+', "\x1b[32m"),
        };
        let (on, off) = if color && !escape.is_empty() { (escape, "\x1b[0m") } else { ("", "") };
        let _ = writeln!(out, "{on}{mark} {}{off}", change.value());
    }
    out
}

thread_local! {
    /// While this thread runs a case: the message of the last panic, or an empty text. Otherwise
    /// none.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Installs a panic hook that puts the message of a panic inside a case into the report of the
/// case's test. Panics outside of cases are printed as usual.
fn collect_panics() {
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANIC.with_borrow_mut(|panic| match panic {
            None => others(info),
            Some(message) => {
                *message = info.to_string();
                let trace = Backtrace::capture();
                if trace.status() == BacktraceStatus::Captured {
                    let _ = write!(message, "\n{trace}");
                }
            }
        });
    }));
}

/// Runs a case and returns the text that the stage makes of it, or the message of a panic.
fn outcome(stage: &str, case: &Case) -> Result<String, String> {
    if case.expected.is_none() && stage != "engines" {
        return Err("no '; -->'\n".to_owned());
    }
    PANIC.set(Some(String::new()));
    let made = catch_unwind(AssertUnwindSafe(|| run(stage, case)));
    let message = PANIC.take().unwrap_or_default();
    made.map_err(|_| message + "\n")
}

/// Settings of the test runner: what it does with differences, and whether its reports are
/// coloured.
#[derive(Clone, Copy)]
struct Report {
    /// Whether to rewrite the expected texts instead of comparing with them.
    bless: bool,
    color: bool,
}

/// Runs all cases of one filetest. The error shows all cases that fail. If the expected texts are
/// rewritten, a case that panics keeps its expected text.
fn file(path: &Path, stage: &str, report: Report) -> Result<(), String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|e| format!("{shown}: {e}"))?;
    let file = parse(&text, stage).map_err(|e| format!("{shown}: {e}"))?;
    // Run the cases in order and collect two texts: `wrong` describes the cases that fail, and
    // `blessed` is the file with the expected lines replaced by what the stage made. `copied` is
    // the number of lines of the file that `blessed` covers so far.
    let (mut wrong, mut differs, mut blessed, mut copied) = (String::new(), false, Vec::new(), 0);
    for case in &file.cases {
        let expected = case.expected.clone().unwrap_or(copied..copied);
        let want = &file.lines[expected.clone()];
        blessed.extend_from_slice(&file.lines[copied..expected.start]);
        copied = expected.end;
        match outcome(stage, case) {
            Ok(got) => {
                let got: Vec<String> = got.trim_end().lines().map(str::to_owned).collect();
                if got != want {
                    differs = true;
                    if !report.bless {
                        let difference = diff(want, &got, report.color);
                        let _ = writeln!(wrong, "{shown}: case {}\n{difference}", case.name);
                    }
                }
                blessed.extend(got);
            }
            Err(message) => {
                blessed.extend_from_slice(want);
                let _ = writeln!(wrong, "{shown}: case {}\n{message}", case.name);
            }
        }
    }
    blessed.extend_from_slice(&file.lines[copied..]);
    if report.bless && differs {
        std::fs::write(path, blessed.join("\n") + "\n").map_err(|e| format!("{shown}: {e}"))?;
    } else if differs {
        wrong += "'-' is expected, '+' is made. If it is right: DDTC_BLESS=1 cargo test --test filetests";
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests")
}

/// Returns the sorted names of the entries of a folder, or an empty set if the folder cannot be
/// read.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

/// The path of a filetest, and the name of its stage.
type Found = (PathBuf, &'static str);

/// Returns the tests of all folders in `root`: one test for each file, and one test that fails for
/// each folder that is missing or empty or that belongs to no stage.
fn trials(root: &Path) -> Vec<(String, Result<Found, String>)> {
    let mut trials = Vec::new();
    let folders = names(root);
    for unknown in folders.iter().filter(|f| !STAGES.contains(&f.as_str())) {
        trials.push((unknown.clone(), Err(format!("{}: no stage", root.join(unknown).display()))));
    }
    for stage in STAGES {
        let folder = root.join(stage);
        let files = names(&folder);
        if files.is_empty() {
            trials.push((stage.to_owned(), Err(format!("{}: no filetest", folder.display()))));
        }
        for name in files {
            let path = folder.join(&name);
            trials.push(match name.strip_suffix(".ddt") {
                Some(name) => (format!("{stage}/{name}"), Ok((path, stage))),
                None => (format!("{stage}/{name}"), Err(format!("{}: not a filetest", path.display()))),
            });
        }
    }
    trials
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    collect_panics();
    let report = Report {
        bless: std::env::var_os("DDTC_BLESS").is_some_and(|v| v == "1"),
        color: match arguments.color {
            Some(ColorSetting::Always) => true,
            Some(ColorSetting::Never) => false,
            _ => std::io::stdout().is_terminal(),
        },
    };
    let mut tests: Vec<Trial> = trials(&root())
        .into_iter()
        .map(|(name, found)| {
            Trial::test(name, move || {
                let (path, stage) = found?;
                Ok(file(&path, stage, report)?)
            })
        })
        .collect();
    // Each rewrite of normalization must have a filetest of its own name. A test for each rewrite
    // checks this.
    for rewrite in normalize::REWRITES {
        tests.push(Trial::test(format!("rewrites/{rewrite}"), move || {
            let path = root().join("normalize").join(format!("{rewrite}.ddt"));
            if path.is_file() { Ok(()) } else { Err(format!("no {}", path.display()).into()) }
        }));
    }
    for (name, test) in runner::TESTS {
        tests.push(Trial::test(format!("runner/{name}"), move || {
            test();
            Ok(())
        }));
    }
    libtest_mimic::run(&arguments, tests).exit_code()
}

/// Tests of the test runner itself.
mod runner {
    use super::*;

    pub(super) const TESTS: [(&str, fn()); 5] = [
        ("a_failure_shows_the_difference", a_failure_shows_the_difference),
        ("cases_have_lines_and_settings", cases_have_lines_and_settings),
        ("a_folder_without_a_file_fails", a_folder_without_a_file_fails),
        ("every_failing_case_is_shown", every_failing_case_is_shown),
        ("blessing_keeps_what_panics", blessing_keeps_what_panics),
    ];

    const PLAIN: Report = Report { bless: false, color: false };

    /// Makes an empty folder for one test, and returns its path.
    fn folder(name: &str) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("filetests").join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn a_failure_shows_the_difference() {
        let lines = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let diff = |want, got, color| diff(&lines(want), &lines(got), color);
        assert_eq!(diff("a b c", "a x c d", false), "  a\n- b\n+ x\n  c\n+ d\n");
        assert_eq!(diff("a b", "a", true), "  a\n\x1b[31m- b\x1b[0m\n");
    }

    fn cases_have_lines_and_settings() {
        let text = "; test lower\n; case one\nint\n; -->\nnothing\n\n; case two\n; counts 3 4\nchar\n; -->\n";
        let file = parse(text, "lower").unwrap();
        assert_eq!((file.cases.len(), file.cases[0].expected.clone()), (2, Some(4..5)));
        assert_eq!(
            (file.cases[1].expected.clone(), &file.cases[1].settings.counts[..]),
            (Some(10..10), &[3, 4][..])
        );
        for (text, wrong) in [
            ("", "first line"),
            ("; test emit\nint\n", "first line"),
            ("; test lower\n; What is only a comment\n", "no case"),
            ("; test lower\n; -->\n", "before the first case"),
            ("; test lower\n; tarket avx2\nint\n", "no directive"),
            ("; test lower\n; cuonts 0 1 2\nint\n", "no directive"),
        ] {
            let e = parse(text, "lower").err().unwrap_or_else(|| panic!("{text:?} passes"));
            assert!(e.contains(wrong), "{e}");
        }
    }

    fn a_folder_without_a_file_fails() {
        let root = folder("folders");
        for stage in ["emit", "lower", "normalized"] {
            std::fs::create_dir(root.join(stage)).unwrap();
        }
        std::fs::write(root.join("lower/one.ddt"), "").unwrap();
        std::fs::write(root.join("lower/two.txt"), "").unwrap();
        let trials = trials(&root);
        let (right, wrong): (Vec<_>, Vec<_>) = trials.iter().partition(|(_, found)| found.is_ok());
        let names = |list: Vec<&(String, _)>| list.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(right), ["lower/one"]);
        let missing = ["engines", "legalize", "normalize", "refine", "schedule"];
        assert_eq!(
            names(wrong),
            [&["normalized", "emit"], &missing[..2], &["lower/two.txt"], &missing[2..]].concat()
        );
    }

    /// Text of a filetest with four cases, of which only the first is right.
    const FOUR: &str = "; test lower\n; case right\nint\n; -->\n\
        nest lowered size 4 extent 4\nloop count step 4 4 {\n  copy 4\n}\n\n\
        ; case other\nint\n; -->\nnest\n\n; case nonsense\nwords\n; -->\nkept\n\n; case open\nint\n";

    fn every_failing_case_is_shown() {
        let path = folder("cases").join("four.ddt");
        std::fs::write(&path, FOUR).unwrap();
        let e = file(&path, "lower", PLAIN).unwrap_err();
        assert!(!e.contains("case right"), "{e}");
        assert!(e.contains("case other\n- nest\n+ nest lowered size 4 extent 4\n"), "{e}");
        assert!(
            e.contains("case nonsense\npanicked at ")
                && e.contains("'words': expected a datatype or constructor"),
            "{e}"
        );
        assert!(e.contains("case open\nno '; -->'\n") && e.contains("DDTC_BLESS=1"), "{e}");
    }

    fn blessing_keeps_what_panics() {
        let path = folder("blessed").join("four.ddt");
        std::fs::write(&path, FOUR).unwrap();
        let e = file(&path, "lower", Report { bless: true, ..PLAIN }).unwrap_err();
        assert!(e.contains("case nonsense") && e.contains("case open") && !e.contains("case other"), "{e}");
        let right = &FOUR[FOUR.find("nest lowered").unwrap()..FOUR.find("\n\n").unwrap()];
        let blessed = std::fs::read_to_string(&path).unwrap();
        assert_eq!(blessed, FOUR.replace("\nnest\n", &format!("\n{right}\n")));
    }
}
