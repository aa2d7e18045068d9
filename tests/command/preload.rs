//! Tests of the command `ddtc preload`: its process ends in the same way as the command that it
//! runs.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::program;

/// Makes a folder for one test, with an empty file in the place of the preload library. The dynamic
/// loader reports that the file is not a library, and continues.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("preload-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("library.so"), "").unwrap();
    folder
}

fn preload(folder: &std::path::Path, report: bool, command: &[&str]) -> Command {
    let mut ddtc = program();
    ddtc.args(["preload", "--library"]).arg(folder.join("library.so"));
    if report {
        ddtc.arg("--report").arg(folder.join("report"));
    }
    ddtc.arg("--").args(command);
    ddtc
}

/// Runs a shell script under `ddtc preload`, and checks that a report was written if and only if it
/// was asked for.
fn run(folder: &std::path::Path, report: bool, script: &str) -> Output {
    let output = preload(folder, report, &["sh", "-c", script]).output().unwrap();
    assert_eq!(folder.join("report").exists(), report, "{script}");
    let _ = std::fs::remove_file(folder.join("report"));
    // Apart from the file `library.so`, the folder is empty again.
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1, "{script}");
    output
}

#[test]
fn it_ends_with_the_commands_status() {
    let folder = folder("status");
    for report in [false, true] {
        for status in [0, 1, 7, 255] {
            let output = run(&folder, report, &format!("echo said; exit {status}"));
            assert_eq!(output.status.code(), Some(status), "report: {report}");
            assert_eq!(output.stdout, b"said\n");
        }
    }
}

#[test]
fn it_ends_by_the_commands_signal() {
    let folder = folder("signal");
    for report in [false, true] {
        // Try signals that end the shell. Signals that `nohup` or a shell may make its children
        // ignore are left out.
        for signal in [6, 9, 11, 12, 15] {
            let output = run(&folder, report, &format!("ulimit -c 0; kill -{signal} $$"));
            assert_eq!(output.status.signal(), Some(signal), "report: {report}: {output:?}");
        }
    }
}

#[test]
fn a_command_that_is_not_started_gives_what_env_gives() {
    let folder = folder("unstarted");
    let library = folder.join("library.so");
    for report in [false, true] {
        for (command, status) in [("/no/such/command", 127), (library.to_str().unwrap(), 126)] {
            let output = preload(&folder, report, &[command]).output().unwrap();
            assert_eq!(output.status.code(), Some(status), "{command}");
            assert!(String::from_utf8_lossy(&output.stderr).contains(command), "{output:?}");
        }
    }
}

#[test]
fn without_a_report_the_process_is_the_commands() {
    let folder = folder("process");
    let child = preload(&folder, false, &["sh", "-c", "echo $$"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let process = child.id();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), process.to_string());
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_command_runs() {
    let folder = folder("refused");
    std::fs::create_dir(folder.join("report")).unwrap();
    let ran = folder.join("ran");
    let output = preload(&folder, true, &["touch", ran.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("report: must be a regular file"), "{output:?}");
    assert!(!ran.exists());
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
}

/// Tests a report whose file cannot be written any more when the command has ended.
#[test]
fn a_report_that_is_not_saved_leaves_the_status_and_the_reports_of_the_ranks() {
    let folder = folder("unsaved");
    let script = format!("mkdir {}; exit 7", folder.join("report").display());
    let output = preload(&folder, true, &["sh", "-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    let (_, left) = said.trim_end().split_once("the reports of the ranks are left in ").expect(&said);
    assert!(std::path::Path::new(left).is_dir(), "{said}");
}
