//! Tests of the command `ddtc`: what a user types, what is printed, and how errors end.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::{installed, program};

fn ddtc(arguments: &[&str]) -> Output {
    program().args(arguments).output().unwrap()
}

/// Returns the standard output of a call of the command. The call must succeed.
fn good(arguments: &[&str]) -> String {
    let output = ddtc(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the standard error of a call of the command. The call must fail.
fn bad(arguments: &[&str]) -> String {
    let output = ddtc(arguments);
    assert!(!output.status.success(), "{arguments:?} must fail");
    assert!(output.stdout.is_empty() || !output.stderr.is_empty(), "{arguments:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!error.contains("panicked"), "{arguments:?}: {error}");
    error
}

const VERBS: [&str; 16] = [
    "explain",
    "lower",
    "refine",
    "normalize",
    "schedule",
    "legalize",
    "emit",
    "bench",
    "check",
    "corpus",
    "doctor",
    "draw",
    "report",
    "segments",
    "tune",
    "wire",
];

#[test]
fn without_a_verb_there_is_help() {
    let text = good(&[]);
    for verb in VERBS {
        assert!(text.contains(&format!("  {verb} ")), "{verb}\n{text}");
    }
}

/// Tests that the installed program has only the subcommands for users of MPI programs, and that
/// its help says where the remaining subcommands are.
#[test]
fn the_installed_program_has_fewer_verbs() {
    let run = |arguments: &[&str]| installed().args(arguments).output().unwrap();
    let text = String::from_utf8(run(&["--help"]).stdout).unwrap();
    let (_, list) = text.split_once("Commands:\n").unwrap();
    let (list, after) = list.split_once("\n\n").unwrap();
    let listed = list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let listed: Vec<&str> = listed.filter(|verb| !verb.is_empty()).collect();
    assert_eq!(listed, ["explain", "check", "draw", "report", "preload", "doctor", "tune", "help"], "{text}");
    assert!(after.contains("cargo run --release -- --help"), "{text}");
    for verb in ["bench", "lower", "corpus", "segments", "wire"] {
        let out = run(&[verb]);
        assert!(out.status.code() == Some(2) && out.stdout.is_empty(), "{verb}: {out:?}");
        assert!(String::from_utf8_lossy(&out.stderr).contains(verb), "{out:?}");
    }
    // A subcommand that exists in the installed program and in that of a checkout gives the same
    // output in both.
    let t = ["explain", "vector(3, 1, 2, int)"];
    let texts = [run(&t).stdout, ddtc(&t).stdout].map(|text| String::from_utf8(text).unwrap());
    let stages = texts.map(|text| text.lines().filter(|l| !l.contains("us")).count());
    assert!(stages[0] > 10 && stages[0] == stages[1], "{stages:?}");
    assert_eq!(run(&["--version"]).stdout, ddtc(&["--version"]).stdout);
}

/// Tests that `ddtc check` first prints an estimate if checking a type takes long. A type whose
/// instances span too much memory to be copied as a whole is checked by ranges. If memory is short,
/// the type is not checked: an error says so, and the process is not aborted.
#[test]
fn checks_of_large_types_say_what_they_take() {
    let small = ddtc(&["check", "vector(3, 2, 4, int)"]);
    assert!(small.status.success() && small.stderr.is_empty(), "{small:?}");
    let large = ddtc(&["check", "contiguous(210000000, int)", "--count", "1"]);
    let said = [large.stdout, large.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(large.status.success() && said[0].contains("ranges of the packed stream"), "{said:?}");
    assert!(said[1].contains("span more than 256 MiB") && said[1].lines().count() == 1, "{said:?}");
    let short = bad(&["check", "hvector(100000000, 100000, 0, double)", "--count", "1"]);
    assert!(short.contains("basic elements") && short.contains("more than this process can get"), "{short}");
    assert_eq!(short.lines().count(), 2, "{short}");
    // This type is checked by ranges, and each of its elements is on a page of its own. Three
    // copies of these pages take 4.9 GB, and the limit is 4 GB of address space.
    let program = program();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "ulimit -v 4000000; exec \"$@\"", "sh"])
        .arg(program.get_program())
        .args(program.get_args());
    let short = shell.args(["check", "hvector(400000, 1, 4096, double)", "--count", "1"]).output().unwrap();
    let said = String::from_utf8(short.stderr).unwrap();
    assert!(
        !short.status.success()
            && said.contains("up to 47")
            && said.contains("more than this process can get"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 2, "{said}");
    let estimated = ddtc(&["check", "contiguous(500000, int)", "--count", "1"]);
    let said = String::from_utf8(estimated.stderr).unwrap();
    assert!(estimated.status.success() && said.starts_with("1 instances: 500000 basic elements"), "{said}");
}

#[test]
fn the_help_of_every_verb_has_an_example() {
    for verb in VERBS {
        let text = good(&[verb, "--help"]);
        assert!(text.contains("Example") && text.contains("ddtc "), "{verb}\n{text}");
    }
    assert!(good(&["--help"]).contains("Examples:"));
    // The program is called `ddtc`, which differs from the name of its package.
    assert_eq!(good(&["--version"]), format!("ddtc {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_small_stack_is_enough() {
    // Run the command with a stack limit of 64 KiB for the first thread. The limit must not matter,
    // because the shells of some clusters set it to next to nothing.
    for verb in ["explain", "lower", "emit", "draw", "segments"] {
        let script = format!("ulimit -s 64; exec \"$@\" {verb} 'subarray([8,8],[4,4],[0,0],C,double)'");
        let program = program();
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, "sh"]).arg(program.get_program()).args(program.get_args());
        let output = shell.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !output.stdout.is_empty(), "{verb}: {}\n{error}", output.status);
    }
}

#[test]
fn segments_are_listed() {
    let rows = |text: &str| -> Vec<Vec<i64>> {
        let numbers = |line: &str| line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        text.lines().skip(1).map(numbers).collect()
    };
    let text = good(&["segments", "vector(3, 1, 2, int)", "--count", "2"]);
    assert!(text.starts_with("5 segments, 24 B\n"), "{text}");
    let all = [[0, 0, 0, 4], [1, 4, 8, 4], [2, 8, 16, 8], [3, 16, 28, 4], [4, 20, 36, 4]];
    assert_eq!(rows(&text), all);
    let some = good(&["segments", "vector(3, 1, 2, int)", "--count", "2", "--from", "1", "--limit", "2"]);
    assert_eq!(rows(&some), [&all[1][..], &all[2], &[2]]);
    // The command finds a few segments quickly, however many segments there are before them.
    let text = good(&["segments", "@dag(40)", "--from", "500000000000", "--limit", "2"]);
    assert_eq!(rows(&text).len(), 3);
    assert!(good(&["segments", "contiguous(0, int)"]).starts_with("0 segments"));
    for (arguments, part) in [
        (&["segments", "int", "--from", "2"][..], "index = 2: must not lie past the 1 segments"),
        (&["segments", "vector(3, 1, 2, int)", "--count", "9000000000000000000"], "count"),
        (&["segments", "resized(0, 9000000000000000000, int)", "--count", "3"], "must fit 64 bits"),
        (&["segments", "int", "--count=-1"], "--count"),
    ] {
        let error = bad(arguments);
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn explain_shows_every_stage() {
    let text = good(&["explain", "--count", "3", "vector(count=34, blocklength=10, stride=64, double)"]);
    for part in [
        "3 instance(s)",
        "payload 8.0 KiB",
        "datatype",
        "lower: ",
        "normalize: ",
        "schedule: ",
        "legalize: ",
        "emit: ",
        "load: ",
        "code for pack",
        "a commit runs no code generator",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let text = good(&["explain", "struct([1, 1], [0, 100], [int, double])"]);
    assert!(text.contains("code for pack") && !text.contains("a commit runs no code generator"), "{text}");
    let text = good(&["explain", "--unpack", "--clif", "struct_i_d_f3.S"]);
    assert!(
        text.contains("128 instance(s)") && text.contains("Cranelift IR") && text.contains("code for unpack"),
        "{text}"
    );
}

#[test]
fn explain_takes_what_is_large_or_empty() {
    for name in ["zero.struct", "children.10000", "dag.40", "deep.1000", "large.size_2_62", "indexed_1to8.S"]
    {
        let text = good(&["explain", name]);
        assert!(text.len() < 200_000, "{name}: {} bytes", text.len());
    }
}

#[test]
fn one_stage_is_printed_alone() {
    let t = "vector(3, 2, 4, int)";
    assert!(good(&["lower", t]).starts_with("nest lowered"));
    assert!(good(&["normalize", t]).starts_with("nest normal"));
    assert!(good(&["schedule", t]).starts_with("plan scheduled pack"));
    assert!(good(&["legalize", "--unpack", t]).starts_with("plan legal unpack"));
    assert!(good(&["emit", t]).contains("ret"));
    let texts: Vec<String> = ["pack", "unpack"]
        .map(|d| if d == "pack" { good(&["schedule", t]) } else { good(&["schedule", "--unpack", t]) })
        .into();
    assert_ne!(texts[0], texts[1]);
}

#[test]
fn copies_are_explained() {
    let (from, to) = ("vector(6, 1, 2, int)", "copy:vector(4, 1, 3, int)");
    let text = good(&["explain", "--target", "avx2", "--kind", to, from]);
    let stages: Vec<&str> = text.lines().filter_map(|l| l.split_once(": ")).map(|(name, _)| name).collect();
    let wanted = ["lower", "normalize", "lower", "normalize", "refine", "normalize", "schedule", "legalize"];
    let shown: Vec<&str> = stages.into_iter().filter(|name| wanted.contains(name)).collect();
    assert_eq!(shown[..wanted.len()], wanted, "{text}");
    // The stages of a direct copy, which goes from one layout to another without a packed stream,
    // can be printed one by one. They show the nest that was made from both layouts.
    let nest = good(&["refine", "--kind", to, from]);
    assert!(nest.starts_with("nest lowered layout size 48 extent 88\n"), "{nest}");
    assert!(good(&["normalize", "--kind", to, from]).starts_with("nest normal layout"));
    // The command takes entries of the corpus by name. Copying a matrix by columns to a matrix by
    // rows is a transpose, and the plan must use a micro-kernel for transposes.
    let plan = good(&["schedule", "--target", "avx2", "--kind", "copy:FFT2D_gather.S", "FFT2D_scatter.S"]);
    assert!(plan.contains("transpose<16>.avx2"), "{plan}");
    assert!(
        good(&["explain", "--kind", "copy:int", "contiguous(0, int)"])
            .contains("through a buffer: nothing is moved")
    );
    assert!(bad(&["refine", from]).contains("--kind: must be copy:TYPE"));
    assert!(bad(&["explain", "--kind", "copy", from]).contains("a colon and the datatype"));
    assert!(bad(&["explain", "--kind", "copy:in", from]).contains("'in'"));
    assert!(bad(&["explain", "--unpack", "--kind", to, from]).contains("--unpack"));
}

#[test]
fn reductions_are_explained() {
    let text = good(&["explain", "--target", "avx2", "--kind", "sum:double", "vector(100, 1, 3, double)"]);
    assert!(text.contains("reduce.sum.float8.avx2"), "{text}");
    let error = bad(&["explain", "--kind", "sum:double", "struct([1, 1], [0, 8], [double, int])"]);
    assert!(error.contains("element = 1 ") && error.contains("MPI_INT"), "{error}");
    assert!(bad(&["explain", "--kind", "sum", "char"]).contains("element = 0 "));
    assert!(bad(&["explain", "--kind", "sum:real", "double"]).contains("MPI_REAL"));
    assert!(bad(&["explain", "--kind", "sum:reel", "double"]).contains("'reel'"));
    assert!(bad(&["explain", "--kind", "external32:int", "int"]).contains("only a reduction"));
}

#[test]
fn wire_forms_go_to_files_and_back() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join("cli.ddtw").display().to_string();
    let t = "struct([1,2],[0,8],[int,resized(-4,8,int)])";
    let said = good(&["wire", t, "-o", &file]);
    assert!(said.contains(" bytes, 3 nodes, 10 arguments, hash "), "{said}");
    let back = good(&["wire", "--read", &file]);
    let tree = |text: &str| text.trim().parse::<ddtc::internal::datatype::Datatype>().unwrap();
    assert_eq!(tree(&back), tree(t));
    assert!(good(&["wire", "indexed_1to8.L"]).contains(" bytes, "));
    std::fs::write(&file, "ddtw").unwrap();
    assert!(bad(&["wire", "--read", &file]).contains("cli.ddtw: from_wire: byte 4 = the end"));
    assert!(bad(&["wire", "--read", "/nowhere/at/all"]).contains("/nowhere/at/all"));
    assert!(bad(&["wire", t, "-o", "/nowhere/at/all"]).contains("/nowhere/at/all"));
    bad(&["wire"]);
}

#[test]
fn levels_are_chosen_by_option_and_environment() {
    assert!(good(&["schedule", "--level", "baseline", "vec_64B.S"]).contains("baseline"));
    let with = |level: &str| {
        let mut command = program();
        command.args(["schedule", "vec_64B.S"]).env("DDTC_TARGET", level).output().unwrap()
    };
    assert!(String::from_utf8_lossy(&with("baseline").stdout).contains("baseline"));
    let output = with("mmx");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("must be baseline, avx2, avx512 or neon"));
    let targets = "must be baseline, avx2, avx512, avx512+vbmi or neon";
    for option in ["--level", "--target"] {
        assert!(bad(&["schedule", option, "mmx", "int"]).contains(targets));
    }
}

/// Returns the name of each target, and whether this machine has the target's architecture.
fn targets() -> impl Iterator<Item = (&'static str, bool)> {
    let own = |arch| std::env::consts::ARCH == arch;
    let x86 = ["avx2", "avx512", "avx512+vbmi"].map(|target| (target, own("x86_64")));
    x86.into_iter().chain([("neon", own("aarch64")), ("baseline", true)])
}

#[test]
fn plans_of_every_target_are_printed_on_any_machine() {
    for (target, _) in targets() {
        for verb in ["schedule", "legalize"] {
            for option in ["--target", "--level"] {
                let text = good(&[verb, option, target, "hvector(100, 1, 24, double)"]);
                let first = format!("{verb} pack {target}\n").replace("schedule", "plan scheduled");
                assert!(text.starts_with(&first.replace("legalize", "plan legal")), "{target}: {text}");
            }
        }
    }
    // Plans use the vector registers of the chosen target, whatever registers this machine has, and
    // only the extensions of the instruction set that the target names.
    let moves = |target| good(&["legalize", "--target", target, "vector(2, 10, 12, double)"]);
    assert!(moves("avx512").contains("move 64") && moves("neon").contains("move 16"), "{}", moves("avx512"));
    let structs = |target| {
        good(&["schedule", "--target", target, "resized(0, 8, struct([1, 1], [0, 5], [int, char]))"])
    };
    assert!(structs("avx512+vbmi").contains("call permute.byte.pack.avx512"));
    assert!(!structs("avx512").contains("call permute.byte"));
}

#[test]
fn code_is_shown_where_there_is_an_emitter_and_otherwise_it_says_why() {
    let t = "hvector(100, 1, 24, double)";
    for (target, own) in targets() {
        let explained = good(&["explain", "--target", target, t]);
        assert!(explained.contains("\nlegalize: "), "{explained}");
        let line = |stage: &str| {
            let start = format!("{stage}: ");
            explained
                .lines()
                .find(|l| l.starts_with(&start))
                .unwrap_or_else(|| panic!("{stage}: {explained}"))
        };
        if target == "neon" && !own {
            let why = "Cranelift writes code for this machine alone, which does not run neon";
            assert_eq!(line("emit"), format!("emit: not shown: {why}"));
            assert!(!explained.contains("code for pack"), "{explained}");
            let error = bad(&["emit", "--target", target, t]);
            assert_eq!(error, format!("error: stage emit is not shown for neon: {why}\n"));
        } else {
            assert!(good(&["emit", "--target", target, t]).contains("ret"), "{target}");
            assert!(explained.contains("code for pack: "), "{explained}");
        }
        if !own {
            assert_eq!(line("load"), format!("load: not shown: this machine does not run {target}"));
        }
        // A nest that is interpreted has no machine code on any machine.
        let interpreted = good(&["explain", "--target", target, "children.10000"]);
        assert!(
            interpreted.contains("\ninterpreted: ") && !interpreted.contains("not shown"),
            "{interpreted}"
        );
        // Templates of machine code exist for x86-64 only. The option `--clif` asks for the code of
        // Cranelift.
        let clif = good(&["explain", "--clif", "--target", target, t]);
        assert_eq!(clif.contains("Cranelift IR"), !line("load").contains("not shown"), "{clif}");
    }
}

#[test]
fn what_runs_code_refuses_what_this_machine_does_not_run() {
    let foreign = if std::env::consts::ARCH == "aarch64" { "avx2" } else { "neon" };
    for arguments in [
        &["bench", "--quick", "--level", foreign, "vec_8B.S"][..],
        &["bench", "--commit", "--level", foreign],
    ] {
        let error = bad(arguments);
        assert!(
            error.starts_with(&format!(
                "error: target: level = {foreign}: must be a level that this machine runs: its highest is "
            )),
            "{error}"
        );
    }
    let output = program().args(["explain", "vec_8B.S"]).env("DDTC_TARGET", foreign).output().unwrap();
    assert!(
        !output.status.success()
            && String::from_utf8_lossy(&output.stderr).contains("must be a level that this machine runs")
    );
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    let error = bad(&["explain", "vector(3, -1, 2, int)"]);
    assert!(error.contains("blocklength") && error.contains("-1"), "{error}");
    let error = bad(&["explain", "vector(3, 1, 2, inth)"]);
    assert!(error.contains("inth") && error.contains('^'), "{error}");
    let error = bad(&["explain", "nothing.S"]);
    assert!(error.contains("nothing.S") && error.contains("ddtc corpus"), "{error}");
    assert!(bad(&["explain"]).contains("TYPE"));
    assert!(bad(&["frobnicate"]).contains("frobnicate"));
    assert!(bad(&["bench", "no_such_layout"]).contains("no layout is called 'no_such_layout'"));
    assert!(bad(&["bench", "--break-even", "--library", "/nonexistent.so"]).contains("/nonexistent.so"));
    assert!(bad(&["bench", "--library", "x.so"]).contains("--break-even"));
    assert!(bad(&["bench", "--mpicc", "mpicc"]).contains("--segments"));
    assert!(bad(&["bench", "--segments", "--mpicc", "/nonexistent/mpicc"]).contains("--mpicc"));
    assert!(bad(&["bench", "--corpus", "/nonexistent/x.ddt"]).contains("/nonexistent/x.ddt"));
    assert!(bad(&["corpus", "no_such_entry"]).contains("no_such_entry"));
}

#[test]
fn check_says_what_it_did() {
    let text = good(&["check", "--cases", "20", "--seed", "5"]);
    assert!(text.starts_with("20 random datatypes of seed 5") && text.contains("no difference"), "{text}");
    assert_eq!(text, good(&["check", "--cases", "20", "--seed", "5"]));
    assert!(good(&["check", "vector(3, 2, 4, int)"]).contains("no difference"));
    assert!(good(&["check", "overlap.vector"]).contains("no difference"));
    assert!(bad(&["check", "vector(3, 2, 4, inth)"]).contains("inth"));
}

#[test]
fn the_corpus_is_listed_and_printed() {
    let list = good(&["corpus"]);
    assert!(list.contains("WRF_x_vec.L") && list.contains("overlap.vector"), "{list}");
    assert_eq!(good(&["corpus", "vec_8B"]).lines().count(), 2);
    let text = good(&["corpus", "--text", "indexed_1to8.S"]);
    assert!(text.contains("@uniform"));
    let expanded = good(&["corpus", "--text", "--expand", "indexed_1to8.S"]);
    assert!(!expanded.contains('@') && expanded.contains("indexed_1to8.S = indexed(["));
}

/// Makes a directory for one test in cargo's target directory, and returns its path.
fn scratch(name: &str) -> std::path::PathBuf {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

#[test]
fn bench_measures_layouts_types_and_files() {
    let directory = scratch("cli-bench");
    let (csv, svg) = (directory.join("out.csv"), directory.join("out.svg"));
    let (csv_name, svg_name) = (csv.to_str().unwrap(), svg.to_str().unwrap());
    let names = ["vec_64B.S", "LAMMPS_atomic.S", "resized(0, 64, vector(3, 1, 2, int))"];
    let mut arguments = vec!["bench", "--quick", "--csv", csv_name, "--svg", svg_name];
    arguments.extend(names);
    let text = good(&arguments);
    assert!(
        text.contains("machine: ") && text.contains("vec_64B.S") && text.contains("geometric mean"),
        "{text}"
    );
    let record = std::fs::read_to_string(&csv).unwrap();
    let lines: Vec<&str> = record.lines().filter(|l| !l.starts_with('#')).collect();
    assert_eq!(lines.len(), 1 + 2 * names.len(), "{record}");
    assert!(lines.iter().any(|l| l.starts_with("vec_64B.S,16384,pack,")), "{record}");
    assert!(record.contains("\n\"resized(0, 64, vector(3, 1, 2, int))\",12,unpack,"), "{record}");
    assert!(std::fs::read_to_string(&svg).unwrap().ends_with("</svg>\n"));

    let own = directory.join("own.ddt");
    std::fs::write(&own, "# mine\nmine = 2 of vector(5, 1, 2, short)\n").unwrap();
    assert!(good(&["bench", "--quick", "--corpus", own.to_str().unwrap()]).contains("mine"));
}

#[test]
fn bench_times_commits() {
    let text = good(&["bench", "--segments", "--quick"]);
    assert!(text.contains("\nvector ") && text.contains("\n40 loops "), "{text}");
    let text = good(&["bench", "--commit", "--quick"]);
    for case in [
        "first in a process",
        "new code: 2 loops, pack",
        "new layout: 2 loops, pack",
        "3 loops",
        "equal layout again",
        "a million blocks",
    ] {
        assert!(text.contains(case), "{case}\n{text}");
    }
}

#[test]
fn a_missing_compiler_is_an_error_that_says_what_to_do() {
    let mut command = program();
    let output =
        command.args(["bench", "--quick", "vec_8B.S"]).env("CC", "no-such-compiler").output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && error.contains("no-such-compiler") && error.contains("install"),
        "{error}"
    );
}

#[test]
fn a_missing_valgrind_is_an_error_that_says_what_to_do() {
    let mut command = program();
    let output =
        command.args(["bench", "--instructions"]).env("PATH", scratch("cli-empty")).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("valgrind") && error.contains("install"), "{error}");
}

#[test]
fn recording_asks_for_the_source_tree() {
    let mut command = program();
    let output =
        command.args(["bench", "--record", "vec_8B.S"]).current_dir(scratch("cli-record")).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("benches/record"));
}

#[test]
fn a_folder_without_a_hunt_has_no_report() {
    let message = bad(&["report", env!("CARGO_TARGET_TMPDIR")]);
    assert!(message.contains("has neither findings.jsonl nor run.json"), "{message}");
}

/// Tests how programs of docs/findings, which share the file `finding.h`, are printed. `ddtc report
/// --program` prints such a program as one file that stands alone, and `tests/findings.sh` turns
/// that file into the short program again.
#[test]
fn a_published_program_is_printed_standing_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in ["mpich-5.0.2/external32.dies.mixed", "openmpi-5.0.11/truncation.unnoticed"] {
        let path = root.join(format!("docs/findings/{name}.c"));
        let program = std::fs::read_to_string(&path).unwrap();
        let alone = good(&["report", "--program", path.to_str().unwrap()]);
        assert!(
            program.contains("#include \"../finding.h\"\n") && !program.contains("int main("),
            "{program}"
        );
        assert!(!alone.contains("#include \"") && alone.contains("\n#include <mpi.h>\n"), "{alone}");
        assert!(alone.contains("\nint main(") && alone.matches("static void check_").count() == 1, "{alone}");
        let mut script = Command::new("sh");
        script
            .arg(root.join("tests/findings.sh"))
            .arg("--short")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut script = script.spawn().unwrap();
        script.stdin.take().unwrap().write_all(alone.as_bytes()).unwrap();
        let output = script.wait_with_output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), program, "{name}");
        // A program that stands alone already is printed unchanged by `ddtc report --program`.
        let copy = scratch("report-alone").join("alone.c");
        std::fs::write(&copy, &alone).unwrap();
        assert_eq!(good(&["report", "--program", copy.to_str().unwrap()]), alone);
        // A short program cannot be printed if the file `finding.h` is missing.
        std::fs::write(&copy, program).unwrap();
        assert!(bad(&["report", "--program", copy.to_str().unwrap()]).contains("finding.h"));
    }
    assert!(bad(&["report"]).contains("--program"));
    assert!(bad(&["report", "DIR", "--program", "FILE.c"]).contains("cannot be used with"));
}

/// The documents of docs/findings and the comments at the head of the programs are what their
/// records render to. `DDTC_BLESS=1` renders them.
#[test]
fn the_documents_of_findings_are_rendered_from_their_records() {
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/findings");
    let copy = scratch("report-findings");
    let _ = std::fs::remove_dir_all(&copy);
    let mut copied = Vec::new();
    for folder in [published.clone()].into_iter().chain(folders(&published)) {
        let inside = folder.strip_prefix(&published).unwrap();
        std::fs::create_dir_all(copy.join(inside)).unwrap();
        for file in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = inside.join(file.file_name().unwrap());
            // Documents are left out, so that one that is not rendered any more is noticed.
            let is_rendered = inside.as_os_str().is_empty() && name != Path::new("README.md");
            if file.is_file() {
                copied.push(name.clone());
            }
            if file.is_file() && !(is_rendered && name.extension().is_some_and(|e| e == "md")) {
                std::fs::copy(&file, copy.join(&name)).unwrap();
            }
        }
    }
    if std::env::var_os("DDTC_BLESS").is_some() {
        good(&["report", "--findings", published.to_str().unwrap()]);
    }
    let output = good(&["report", "--findings", copy.to_str().unwrap()]);
    assert_eq!(output.lines().count(), folders(&published).len() + 1, "{output}");
    assert!(output.trim_end().ends_with("differences.md"), "{output}");
    assert!(copied.len() > 250, "{}", copied.len());
    for name in copied {
        let (now, then) = (std::fs::read(published.join(&name)).unwrap(), std::fs::read(copy.join(&name)));
        let how = "DDTC_BLESS=1 renders it";
        assert!(then.is_ok_and(|then| then == now), "docs/findings/{}: {how}", name.display());
    }
    // A folder without records, a record that cannot be read, and a program without a head are
    // named, and a record is not taken for another one.
    let empty = scratch("report-no-findings");
    let message = bad(&["report", "--findings", empty.to_str().unwrap()]);
    assert!(message.contains("findings.jsonl") && message.contains("name the folder above"), "{message}");
    let name = "mpich-5.0.2/external32.dies.mixed.c";
    std::fs::write(copy.join(name), "int main(void) { return 0; }\n").unwrap();
    let message = bad(&["report", "--findings", copy.to_str().unwrap()]);
    assert!(message.contains(name) && message.contains("no comment at its head"), "{message}");
    std::fs::write(copy.join("mpich-5.0.2/findings.jsonl"), "{}\n").unwrap();
    let message = bad(&["report", "--findings", copy.to_str().unwrap()]);
    assert!(message.contains("findings.jsonl, line 1: missing field"), "{message}");
}

/// Returns the folders in a folder.
fn folders(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

/// Tests that standard output that cannot be written is an error, and that no error is reported if
/// the reader of a pipe has ended.
#[test]
fn standard_output_that_fails_is_an_error() {
    for arguments in
        [&["explain", "int"][..], &["draw", "int"], &["corpus"], &["wire", "int"], &["check", "int"]]
    {
        let run = |stdout: Stdio| {
            program()
                .args(arguments)
                .stdout(stdout)
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
                .wait_with_output()
        };
        let full = run(std::fs::File::options().write(true).open("/dev/full").unwrap().into()).unwrap();
        let said = String::from_utf8(full.stderr).unwrap();
        assert_eq!(full.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.starts_with("error: standard output: No space left"), "{arguments:?}: {said}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed = run(writer.into()).unwrap();
        assert!(closed.status.success() && closed.stderr.is_empty(), "{arguments:?}: {closed:?}");
    }
}

/// Tests that a run of the fuzzer leaves the user's own files alone, whatever their names.
#[test]
fn a_library_that_cannot_be_checked_leaves_the_folder_as_it_was() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check-mpi");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let own = ["probe.c", "probe", "abi.h", "worker-0.case", "worker-0.stderr"];
    for name in own {
        std::fs::write(folder.join(name), name).unwrap();
    }
    let mut command = program();
    command.args(["check", "--mpi", "/no/such/lib.so", "--jobs", "1", "--out", "."]).current_dir(&folder);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/lib.so"), "{output:?}");
    for name in own {
        assert_eq!(std::fs::read_to_string(folder.join(name)).unwrap(), name);
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), own.len());
}
