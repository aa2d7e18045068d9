//! The folder of a hunt: findings as they were written, one object a line, and what the run was. Nothing in it is trusted.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

/// Most bytes of a file that is read: a hundred thousand findings.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// Most bytes of a program: those that are written have some thousand.
const MAX_PROGRAM_BYTES: u64 = 1 << 20;

/// A library that was asked.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(super) struct Library {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) path: String,
    /// Whose handles and status it has.
    pub(super) flavour: String,
}

/// Rule of the standard.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Rule {
    pub(super) section: String,
    pub(super) text: String,
}

/// One cause, by its smallest case. Fields that are not there are empty: an older hunt had fewer.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Finding {
    pub(super) fingerprint: String,
    /// `bug`, `quality` or `open`.
    pub(super) class: String,
    pub(super) check: String,
    /// In text notation, shrunk.
    pub(super) datatype: String,
    #[serde(default)]
    pub(super) library: Library,
    #[serde(default)]
    pub(super) rule: Rule,
    /// In text notation, as it was generated.
    #[serde(default)]
    pub(super) original: Option<String>,
    /// Instances.
    #[serde(default)]
    pub(super) count: u64,
    #[serde(default)]
    pub(super) constructors: u64,
    #[serde(default)]
    expected: Value,
    #[serde(default)]
    got: Value,
    /// Name of the C program in the folder.
    #[serde(default)]
    pub(super) program: Option<String>,
    /// Whether the program showed it too; none where it was not run.
    #[serde(default)]
    pub(super) confirmed: Option<bool>,
    #[serde(default)]
    pub(super) seed: u64,
    #[serde(default)]
    pub(super) case: u64,
    /// From the beginning of the run.
    #[serde(default)]
    pub(super) seconds: f64,
    /// Text of the program; filled in from its file.
    #[serde(skip)]
    pub(super) source: Option<String>,
}

impl Finding {
    pub(super) fn expected(&self) -> String {
        shown(&self.expected)
    }

    pub(super) fn got(&self) -> String {
        shown(&self.got)
    }
}

/// Returns a value as people read it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Everything in the folder.
#[derive(Debug)]
pub(super) struct Record {
    /// `run.json`, as it is; null where there is none.
    pub(super) run: Value,
    pub(super) findings: Vec<Finding>,
    /// The objects that findings were read from, with fields that this program does not know.
    raw: Vec<Value>,
    pub(super) notes: Vec<String>,
}

impl Record {
    /// Reads `folder`.
    ///
    /// # Errors
    /// Neither file is there; one cannot be read or is too long. What is in them and cannot be understood becomes a note.
    pub(super) fn read(folder: &Path) -> Result<Record, String> {
        let (lines, run) = (
            text(&folder.join("findings.jsonl"), MAX_FILE_BYTES)?,
            text(&folder.join("run.json"), MAX_FILE_BYTES)?,
        );
        if lines.is_none() && run.is_none() {
            let at = folder.display();
            return Err(format!(
                "{at} has neither findings.jsonl nor run.json: name a folder that `ddtc check --mpi` wrote"
            ));
        }
        let mut record =
            Record { run: Value::Null, findings: Vec::new(), raw: Vec::new(), notes: Vec::new() };
        match run.as_deref().map(serde_json::from_str::<Value>) {
            Some(Ok(run)) if run.is_object() => record.run = run,
            Some(Ok(_)) => record.notes.push("run.json is no object".to_owned()),
            Some(Err(error)) => record.notes.push(format!("run.json: {error}")),
            None => record.notes.push("there is no run.json: the run has not come to its end".to_owned()),
        }
        for (number, line) in (1..).zip(lines.unwrap_or_default().lines()) {
            if line.trim().is_empty() {
                continue;
            }
            if let Err(error) = record.line(folder, line) {
                record.notes.push(format!("line {number} of findings.jsonl was left out: {error}"));
            }
        }
        Ok(record)
    }

    fn line(&mut self, folder: &Path, line: &str) -> Result<(), serde_json::Error> {
        let mut raw: Value = serde_json::from_str(line)?;
        let mut finding = Finding::deserialize(&raw)?;
        if let Some(name) = &finding.program {
            match program(folder, name) {
                Ok(source) => finding.source = Some(source),
                Err(error) => self.notes.push(error),
            }
        }
        if let (Some(object), Some(source)) = (raw.as_object_mut(), &finding.source) {
            object.insert("source".to_owned(), json!(source));
        }
        self.findings.push(finding);
        self.raw.push(raw);
        Ok(())
    }

    /// Returns all of it as one object, the programs' texts included.
    pub(super) fn document(&self) -> Value {
        json!({ "run": self.run, "findings": self.raw, "notes": self.notes })
    }

    /// Returns the library of the run, or that of its findings.
    pub(super) fn library(&self) -> Library {
        let own = self.run.get("library").and_then(|l| Library::deserialize(l).ok());
        own.or_else(|| self.findings.first().map(|f| f.library.clone())).unwrap_or_default()
    }
}

/// A file's text; none where there is no file.
fn text(path: &Path, max_bytes: u64) -> Result<Option<String>, String> {
    let named = |e: std::io::Error| format!("{}: {e}", path.display());
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.map_err(named)?,
    };
    let mut bytes = Vec::new();
    let read = file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(named)?;
    if read as u64 > max_bytes {
        return Err(format!("{}: longer than {max_bytes} bytes", path.display()));
    }
    // A line that a full disk cut may end inside a letter.
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// A program in the folder itself: a finding does not choose other files.
fn program(folder: &Path, name: &str) -> Result<String, String> {
    let plain = Path::new(name).file_name().is_some_and(|own| own == name) && name.ends_with(".c");
    if !plain {
        return Err(format!("the program '{name}' is no name of a C file in the folder"));
    }
    let path = folder.join(name);
    let regular = std::fs::symlink_metadata(&path).is_ok_and(|m| m.is_file());
    let found = if regular { text(&path, MAX_PROGRAM_BYTES)? } else { None };
    found.ok_or_else(|| format!("the program {name} is not in the folder"))
}
