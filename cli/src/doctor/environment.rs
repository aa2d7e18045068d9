//! Examines the environment variables of the preload library, and finds values that it would
//! ignore.

use std::ffi::OsString;
use std::path::Path;

use ddtc::internal::engine::Mode;
use ddtc::internal::process::{NO_TEXT, cut, said};
use ddtc::internal::target::{Family, Level};
use ddtc_hosts::variables::{RENAMED, explanation};

use super::Findings;

/// Check of the value of an environment variable. The error says what is wrong with the value.
type Rule = fn(&str) -> Result<(), String>;

/// The variables of docs/SETTINGS.md, each with the check of its value.
pub(super) const VARIABLES: [(&str, Rule); 13] = [
    ("DDTC_MODE", |v| v.parse::<Mode>().map(drop).map_err(|e| e.to_string())),
    ("DDTC_LAZY_THRESHOLD", |v| {
        v.parse::<u64>().map(drop).map_err(|_| "must be a whole number of bytes, without a unit".into())
    }),
    ("DDTC_TARGET", target),
    ("DDTC_FAMILY", family),
    ("DDTC_REPORT", file),
    ("DDTC_RECORD", file),
    ("DDTC_CHECK", flag),
    ("DDTC_POLICY", |v| one_of(v, &["measure", "table", "all", "none"])),
    ("DDTC_UNPROVEN", flag),
    ("DDTC_PROFILE_CACHE", flag),
    ("DDTC_HOOK", |v| one_of(v, &["on", "off", "check"])),
    ("DDTC_STAGING_MIB", |v| {
        v.parse::<usize>().map(drop).map_err(|_| "must be a whole number of MiB, without a unit".into())
    }),
    ("DDTC_PERF_MAP", flag),
];

fn one_of(value: &str, allowed: &[&str]) -> Result<(), String> {
    if allowed.contains(&value) { Ok(()) } else { Err(format!("must be one of {}", allowed.join(", "))) }
}

fn flag(value: &str) -> Result<(), String> {
    one_of(value, &["0", "1"])
}

fn target(value: &str) -> Result<(), String> {
    let level: Level = value.parse().map_err(|e: ddtc::Error| e.to_string())?;
    let highest = Level::detect();
    if level.runs() {
        Ok(())
    } else {
        Err(format!("must be a level that this machine runs: its highest is {highest}"))
    }
}

fn family(value: &str) -> Result<(), String> {
    let family: Family = value.parse().map_err(|e: ddtc::Error| e.to_string())?;
    if family.runs() {
        Ok(())
    } else {
        Err("must be a family whose instructions this machine has".to_owned())
    }
}

fn file(value: &str) -> Result<(), String> {
    if value == "-" {
        return Ok(());
    }
    let parent = Path::new(value).parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match std::fs::metadata(parent) {
        Ok(m) if m.is_dir() => Ok(()),
        _ => Err(format!("the folder {} does not exist", parent.display())),
    }
}

/// Reports the variables that are set, and adds a problem for each that the preload library would
/// ignore.
pub(super) fn look(findings: &mut Findings, variables: &[(OsString, OsString)]) {
    let mut seen = false;
    for (name, value) in variables {
        if !name.as_encoded_bytes().starts_with(b"DDTC_") || value.is_empty() {
            continue;
        }
        // The name begins with `DDTC_`. If it is the old name of a variable, which is still
        // accepted, the value is checked by the rule of the new name.
        seen = true;
        let (name, shown) = (cut(name), cut(value));
        findings.add_lines("environment", &format!("{name}={shown}"));
        let renamed = RENAMED.into_iter().find(|(old, _)| *old == name);
        if let Some((old, new)) = renamed {
            let is_new_set = variables.iter().any(|(name, value)| name == new && !value.is_empty());
            findings.add_lines("", &explanation(old, new, is_new_set));
        }
        let now = renamed.map_or(name.as_str(), |(_, new)| new);
        let known = VARIABLES.iter().find(|(known, _)| *known == now);
        // File names may be any bytes. Other values must be text.
        let text = match value.to_str() {
            Some(text) => Ok(text),
            None if ["DDTC_REPORT", "DDTC_RECORD"].contains(&name.as_str()) => continue,
            None => Err(NO_TEXT.to_owned()),
        };
        let judged = |rule: &Rule| text.and_then(|text| rule(text).map_err(|wrong| said(text, &wrong)));
        match known.map(|(_, rule)| judged(rule)) {
            Some(Ok(())) => {}
            Some(Err(rule)) => findings.add_problem(
                &format!("{name}={shown}: {rule}; the preload library ignores it"),
                &format!("unset {name}, or give it a value that docs/SETTINGS.md allows"),
            ),
            None => findings.add_problem(
                &format!("{name}: no such variable of ddtc, so it has no effect"),
                &format!(
                    "correct the name or unset it: the variables of ddtc are {}",
                    VARIABLES.map(|(n, _)| n).join(", ")
                ),
            ),
        }
    }
    if !seen {
        findings.add_lines("environment", "no variable of ddtc is set");
    }
    let value = |wanted: &str| {
        let found = variables.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.to_string_lossy().into_owned()).unwrap_or_default()
    };
    // `LD_PRELOAD` and `LD_LIBRARY_PATH` decide which libraries a program gets. Report their
    // entries, and which of these do not exist.
    let preloads = value("LD_PRELOAD");
    for entry in preloads.split([':', ' ']).filter(|e| !e.is_empty()) {
        findings.add_lines("environment", &format!("LD_PRELOAD has {entry}"));
        if entry.contains('/') && !Path::new(entry).exists() {
            findings.add_problem(
                &format!("LD_PRELOAD names {entry}, which does not exist"),
                "remove it from LD_PRELOAD",
            );
        }
    }
    for folder in value("LD_LIBRARY_PATH").split(':').filter(|e| !e.is_empty()) {
        findings.add_lines("environment", &format!("LD_LIBRARY_PATH has {folder}"));
        if !Path::new(folder).is_dir() {
            findings.add_lines("environment", &format!("  {folder} is not a folder"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_are_those_of_the_document() {
        let document =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/SETTINGS.md")).unwrap();
        let table = document.split("\n## Environment\n").nth(1).unwrap().split("\n## ").next().unwrap();
        let rows = table.lines().filter_map(|l| l.strip_prefix("| `"));
        let mut listed: Vec<&str> = rows.filter_map(|l| l.split(['`', '=']).next()).collect();
        let mut known = VARIABLES.map(|(name, _)| name).to_vec();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(known, listed, "those that `ddtc doctor` checks (left) and of docs/SETTINGS.md (right)");
    }

    #[test]
    fn odd_values_are_named() {
        let check = |name: &str, value: &str| {
            let mut findings = Findings::default();
            look(&mut findings, &[(name.into(), value.into())]);
            findings.problems.len()
        };
        for (name, good, bad) in [
            ("DDTC_MODE", "lazy", "fast"),
            ("DDTC_LAZY_THRESHOLD", "0", "64K"),
            ("DDTC_TARGET", "baseline", "sse9"),
            ("DDTC_FAMILY", "other", "zen9"),
            ("DDTC_REPORT", "-", "/no/such/folder/report"),
            ("DDTC_RECORD", "/tmp/record", "/no/such/folder/record"),
            ("DDTC_CHECK", "1", "yes"),
            ("DDTC_POLICY", "all", "some"),
            ("DDTC_PROFILE_CACHE", "0", "no"),
            ("DDTC_HOOK", "off", "yes"),
            ("DDTC_STAGING_MIB", "64", "64M"),
            ("DDTC_PERF_MAP", "0", "true"),
            ("LD_PRELOAD", "libm.so.6", "/no/such/library.so"),
            ("OTHER", "", "x"),
        ] {
            assert_eq!(check(name, good), 0, "{name}={good}");
            assert_eq!(check(name, bad), usize::from(name != "OTHER"), "{name}={bad}");
        }
        assert_eq!(check("DDTC_REPROT", "-"), 1);
        assert_eq!((check("DDTC_INSIDE", "check"), check("DDTC_INSIDE", "yes")), (0, 1));
    }

    #[test]
    fn old_names_are_explained() {
        let mut findings = Findings::default();
        look(&mut findings, &[("DDTC_BUFFERS".into(), "64".into())]);
        let said = "DDTC_BUFFERS is the old name of DDTC_STAGING_MIB, and is accepted until version 0.5";
        assert!(findings.text.contains(said) && findings.problems.is_empty(), "{}", findings.text);
    }

    #[test]
    fn values_that_are_no_text_or_without_end_are_named_and_cut() {
        use std::os::unix::ffi::OsStringExt as _;
        let look_at = |name: &str, value: OsString| {
            let mut findings = Findings::default();
            look(&mut findings, &[(name.into(), value)]);
            findings
        };
        let long = "x".repeat(100_000);
        for name in VARIABLES.map(|(name, _)| name) {
            let found = look_at(name, long.clone().into());
            let said: usize =
                found.problems.iter().map(|(a, b)| a.len() + b.len()).sum::<usize>() + found.text.len();
            assert!(said < 1000, "{name}: {said} bytes are said");
            assert!(found.text.contains("... (100000 bytes)"), "{name}: {}", found.text);
        }
        let found = look_at("DDTC_MODE", OsString::from_vec(b"commit\xff".to_vec()));
        assert!(found.problems[0].0.contains("must be text in UTF-8"), "{:?}", found.problems);
        assert!(look_at("DDTC_REPORT", OsString::from_vec(b"/tmp/r\xff".to_vec())).problems.is_empty());
    }
}
