//! Tests of the command `ddtc draw` as a user calls it: pictures in files, characters in a
//! terminal, errors, and the pictures that the documents show.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::program;

fn ddtc(arguments: &[&str]) -> Output {
    program().args(arguments).env("COLUMNS", "80").env("LC_ALL", "C.UTF-8").output().unwrap()
}

fn good(arguments: &[&str]) -> String {
    let output = ddtc(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn bad(arguments: &[&str]) -> String {
    let output = ddtc(arguments);
    assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?} must fail");
    String::from_utf8(output.stderr).unwrap()
}

/// Makes an empty folder for one test, and returns its path.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn pictures_go_to_files() {
    let folder = folder("draw-files");
    let (svg, dark) = (folder.join("a.svg"), folder.join("b.svg"));
    let t = "subarray([8,16], [4,6], [2,3], C, int)";
    assert_eq!(good(&["draw", t, "--count", "3", "-o", svg.to_str().unwrap()]), "");
    let text = std::fs::read_to_string(&svg).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let hovers: Vec<&str> =
        document.descendants().filter(|n| n.has_tag_name("title")).filter_map(|n| n.text()).collect();
    assert!(
        hovers.contains(&"block 5: displacement 716, 24 B (6 int), packed from byte 120 on"),
        "{hovers:?}"
    );
    assert_eq!(good(&["draw", t, "--dark", "-o", dark.to_str().unwrap()]), "");
    assert!(std::fs::read_to_string(&dark).unwrap().contains(".g { fill: #0d1117 }"));
    // `explain --svg` writes the same picture as `draw -o`, and replaces a file that exists
    // already.
    std::fs::write(&svg, "old").unwrap();
    assert!(good(&["explain", t, "--count", "3", "--svg", svg.to_str().unwrap()]).contains("normalize: "));
    assert_eq!(std::fs::read_to_string(&svg).unwrap(), text);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "nothing else is left");
}

#[test]
fn a_terminal_gets_characters() {
    let text = good(&["draw", "vector(4, 1, 4, int)", "--ascii"]);
    // The picture shows 16 bytes per row, and each byte takes four characters.
    let rows: Vec<&str> = text.lines().filter(|l| l.contains(" |")).collect();
    assert_eq!(rows.len(), 4, "{text}");
    assert!(rows[1].starts_with("16 |") && rows[1].ends_with(&".".repeat(48)), "{text}");
    assert!(text.contains("lb 0, ub 52, true lb 0, true ub 52") && text.contains("rows of 16 B"), "{text}");
    assert!(text.is_ascii() && !good(&["draw", "int"]).contains('\u{1b}'));
    let text = good(&["draw", "vector(4, 1, 4, int)", "--colour", "always"]);
    assert!(text.contains('\u{2588}') && text.contains("\u{1b}[38;2;"), "{text}");
    let text = good(&["draw", "vector(4, 1, 4, int)", "--width", "32", "--ascii"]);
    assert!(text.contains("rows of 32 B"), "{text}");
    assert!(good(&["draw", "large.size_2_62"]).lines().all(|l| l.chars().count() <= 80));
}

#[test]
fn errors_leave_nothing_behind() {
    let folder = folder("draw-errors");
    let path = |name: &str| folder.join(name).display().to_string();
    for (arguments, part) in [
        (&["draw", "int", "-o", &path("a.gif")][..], "must end in .svg"),
        (&["draw", "int", "-o", &path("missing/a.svg")], "missing/a.svg"),
        (&["draw", "inth", "-o", &path("a.svg")], "inth"),
        (&["draw", "int", "--width", "0"], "--width"),
        (&["draw", "int", "--ascii", "-o", &path("a.svg")], "--ascii"),
        (&["draw", "int", "--dark"], "--output"),
        (
            &["draw", "resized(0, 9000000000000000000, int)", "--count", "3", "-o", &path("a.svg")],
            "must fit 64 bits",
        ),
        (&["explain", "int", "--svg", &path("a.jpg")], "must end in .svg"),
    ] {
        let error = bad(arguments);
        assert!(error.contains(part) && !error.contains("panicked"), "{arguments:?}: {error}");
    }
    // The output file cannot be written, because there is a folder of the same name.
    std::fs::create_dir(folder.join("b.svg")).unwrap();
    assert!(bad(&["draw", "int", "-o", &path("b.svg")]).contains("b.svg"));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

/// Checks that a picture of the documents equals the picture that a command has just drawn. If
/// `DDTC_BLESS` is set, the new picture replaces the one of the documents first.
fn kept(path: &str, made: &Path, command: &str) {
    let path = root().join(path);
    let made = std::fs::read_to_string(made).unwrap();
    if std::env::var_os("DDTC_BLESS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == made, "{} is not what `{command}` draws: DDTC_BLESS=1 rewrites it", path.display());
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

#[test]
fn the_picture_of_the_documents_is_what_its_command_draws() {
    let index = std::fs::read_to_string(root().join("docs/README.md")).unwrap();
    assert!(index.contains("](pictures/subarray.svg)"), "docs/README.md shows it");
    let command =
        index.split('`').find(|code| code.starts_with("ddtc draw ")).expect("docs/README.md has the command");
    let (t, rest) = command["ddtc draw '".len()..].split_once('\'').unwrap();
    let count = rest.split_whitespace().nth(1).unwrap();
    let made = folder("draw-documents").join("subarray.svg");
    good(&["draw", t, "--count", count, "-o", made.to_str().unwrap()]);
    kept("docs/pictures/subarray.svg", &made, command);
}

#[test]
fn the_picture_of_the_readme_is_that_of_a_record() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains("](docs/pictures/overview.svg)"), "README.md shows it");
    // Find the benchmark record whose figures for MPI calls docs/PERFORMANCE.md shows. The file
    // names the record in a comment. The loops of the benchmark were recorded under the same name
    // together with the calls.
    let performance = std::fs::read_to_string(root().join("docs/PERFORMANCE.md")).unwrap();
    let calls = performance.split("<!-- break-even: ").nth(1).and_then(|t| t.split(' ').next()).unwrap();
    let record = calls.strip_suffix("-break-even").unwrap();
    // Find the benchmark record whose figures for applications docs/PERFORMANCE.md shows. The file
    // names this record in a comment, too.
    let applications =
        performance.split("<!-- applications: ").nth(1).and_then(|t| t.split(' ').next()).unwrap();
    let made = folder("draw-readme").join("overview.svg");
    let [stem, applications] = [record, applications].map(|stem| root().join(stem).display().to_string());
    good(&["bench", "--overview", &stem, "--applications", &applications, "--svg", made.to_str().unwrap()]);
    kept("docs/pictures/overview.svg", &made, "ddtc bench --overview");
    let refused = |more: &[&str]| bad(&[&["bench", "--overview", "/no/such"], more].concat());
    assert!(refused(&["--applications", &applications, "--svg", "x.svg"]).contains("/no/such.csv"));
    assert!(refused(&["--applications", &applications]).contains("--svg"));
    assert!(refused(&["--svg", "x.svg"]).contains("--applications"));
}
