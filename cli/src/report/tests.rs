//! Tests of `ddtc report` on folders of findings, which the tests create in the form that `ddtc
//! check --mpi` writes. Some of the folders are complete, and some are damaged.

use std::path::Path;

use ddtc::internal::files::TemporaryFolder;

use super::record::Record;
use super::{page, write};

/// Creates an empty folder for one test.
fn folder() -> TemporaryFolder {
    ddtc::internal::files::temporary_folder("ddtc-report").unwrap()
}

fn put(folder: &Path, files: &[(&str, &str)]) {
    files.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).unwrap());
}

const FINDING: &str = r#"{"fingerprint": "a1", "class": "bug", "check": "pack", "datatype": "vector(2, 1, -1, int)",
 "rule": {"section": "5.1.2", "text": "in type-map order"}, "original": "dup(vector(2, 1, -1, int))", "count": 2, "constructors": 1,
 "expected": "04 05", "got": ["05", 4], "program": "a1.c", "confirmed": true, "seed": 7, "case": 41, "seconds": 1.25, "later": {"x": 1}}"#;

#[test]
fn a_finding_is_on_the_page_and_in_the_document() {
    let folder = folder();
    let run = r#"{"library": {"name": "MPICH", "version": "5.0.2"}, "seed": 7, "cases": 1234567, "seconds": 2.5, "rate": 20000.4, "jobs": 2,
        "workers": {"died": 1, "hung": 0}, "coverage": {"vector": 1200, "darray": 0}, "found": {"bug": 1}}"#;
    let program = "#include <mpi.h>\nint main(void) { return 1 < 2 && \"</script>\"[0]; }\n";
    put(&folder, &[("findings.jsonl", &FINDING.replace('\n', " ")), ("run.json", run), ("a1.c", program)]);
    let written = write(&folder).unwrap();
    assert_eq!((written.findings, written.notes), (1, vec![]));
    let page = std::fs::read_to_string(&written.html).unwrap();
    for part in [
        "<title>Datatypes of MPICH 5.0.2</title>",
        "<b>1\u{202f}234\u{202f}567</b>",
        "<b>20\u{202f}000</b>",
        "data-class=\"bug\" data-check=\"pack\" data-section=\"5.1.2\"",
        "<code>vector(2, 1, -1, int)</code>",
        "<dd>[&quot;05&quot;,4]</dd>",
        "<dd>dup(vector(2, 1, -1, int))</dd>",
        "return 1 &lt; 2 &amp;&amp; &quot;&lt;/script&gt;&quot;[0];",
        "<figure><svg ",
        "2 features, of which 1 were never tried",
        "<td class=\"number\">never</td>",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    let document: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&written.json).unwrap()).unwrap();
    assert_eq!(document["run"]["cases"], 1_234_567);
    assert_eq!(document["findings"][0]["later"]["x"], 1, "what this program does not know is kept");
    assert_eq!(document["findings"][0]["source"], program);
}

/// A number that the records lack is not shown as 0, because 0 could be the recorded number.
#[test]
fn numbers_that_were_not_recorded_are_not_zero() {
    let folder = folder();
    let finding = |extra: &str| {
        format!(
            r#"{{"fingerprint": "a", "class": "bug", "check": "pack", "datatype": "int", "count": 1{extra}}}"#
        )
    };
    let page = |lines: &str| {
        put(&folder, &[("findings.jsonl", lines)]);
        page::write(&Record::read(&folder).unwrap())
    };
    let recorded = page(&finding(r#", "constructors": 0, "seed": 0, "case": 0, "seconds": 0"#));
    assert!(recorded.contains(r#"<td class="number" data-title="Constructors">0</td>"#), "{recorded}");
    assert!(recorded.contains("<dd>0, 0</dd>") && !recorded.contains(">not recorded<"), "{recorded}");
    let missing = page(&finding(""));
    for (key, title) in [("constructors", "Constructors"), ("case", "Case"), ("seconds", "Found after")] {
        let cell = format!(r#"<td class="number" data-title="{title}">not recorded</td>"#);
        assert!(
            missing.contains(&cell) && missing.contains(&format!(" data-{key}=\"\"")),
            "{key}\n{missing}"
        );
    }
    assert!(!missing.contains("Seed, case"), "{missing}");
}

/// If files of a run's folder are missing or damaged, the folder is read as far as possible. This
/// happens, for example, if the run was killed or its disk was full. In this test, `run.json` and a
/// C program are missing, and some lines of `findings.jsonl` are not findings.
#[test]
fn what_is_torn_is_named_and_the_rest_is_shown() {
    let folder = folder();
    let whole = FINDING.replace('\n', " ");
    let lines = format!("{whole}\n\n{}\n[1]\n{}", whole.replace("\"bug\"", "7"), &whole[..99]);
    put(&folder, &[("findings.jsonl", &lines)]);
    let record = Record::read(&folder).unwrap();
    assert_eq!(record.findings.len(), 1);
    let starts = [
        "there is no run.json",
        "the program a1.c is not in the folder",
        "line 3 of findings.jsonl was left out: invalid type: integer `7`",
        "line 4 of findings.jsonl was left out: a finding must be an object",
        "line 5 of findings.jsonl was left out: EOF",
    ];
    assert_eq!(record.notes.len(), starts.len(), "{:?}", record.notes);
    for (note, start) in record.notes.iter().zip(starts) {
        assert!(note.starts_with(start), "{note}\n{start}");
        assert!(page::write(&record).contains(start), "{start}");
    }
}

#[test]
fn a_folder_without_a_hunt_is_refused() {
    let error = write(&folder()).unwrap_err().to_string();
    assert!(error.contains("has neither findings.jsonl nor run.json: name a folder"), "{error}");
    assert!(write(Path::new("/nonexistent/ddtc")).unwrap_err().to_string().contains("/nonexistent/ddtc"));
}

/// The records of findings may be malicious. Any text in them, such as the name of the library or a
/// datatype, is shown as text and is never markup. No file outside of the folder is read.
#[test]
fn nothing_on_the_page_is_taken_for_markup() {
    let folder = folder();
    let evil = "</td><script>alert('x')</script>\"'<img src=x onerror=y>\u{1}";
    let object = serde_json::json!({
        "fingerprint": evil, "class": evil, "check": evil, "datatype": evil, "original": evil, "expected": evil, "got": evil,
        "rule": {"section": evil, "text": evil}, "program": "../../etc/passwd",
        "library": {"name": evil, "version": evil, "path": evil, "flavour": evil},
    });
    let run = serde_json::json!({"coverage": {evil: 3}, "seed": evil, "workers": {"died": evil}});
    put(&folder, &[("findings.jsonl", &object.to_string()), ("run.json", &run.to_string())]);
    let record = Record::read(&folder).unwrap();
    assert_eq!(record.notes, ["the program '../../etc/passwd' is not the name of a C file in the folder"]);
    let page = page::write(&record);
    assert_eq!(page.matches("<script>").count(), 1, "its own");
    assert!(!page.contains("<img") && !page.contains('\u{1}') && !page.contains("alert('x')"), "{page}");
    assert!(page.contains("no picture: "), "a datatype that cannot be read");
    // A link in the folder leads outside of it.
    std::os::unix::fs::symlink("/etc/hostname", folder.join("a.c")).unwrap();
    let object = FINDING.replace('\n', " ").replace("a1.c", "a.c");
    put(&folder, &[("findings.jsonl", &object)]);
    assert!(Record::read(&folder).unwrap().findings[0].source.is_none());
}
