//! Reads the folder that `ddtc check --mpi` wrote: `findings.jsonl`, which has one object per line,
//! and `run.json`, which describes the run. The contents are not trusted.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::{Value, json};

/// Maximum size in bytes of `findings.jsonl` and of `run.json`. A file of this size has about a
/// hundred thousand findings.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// Maximum size in bytes of a C program that is read. The generated programs have a few thousand
/// bytes.
const MAX_PROGRAM_BYTES: u64 = 1 << 20;

/// The MPI library that was checked.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(super) struct Library {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) path: String,
    /// Name of the ABI of the library, that is, of the form of its handles and of `MPI_Status`.
    pub(super) flavour: String,
}

/// Rule of the MPI standard that a finding is about. Records have its name, or, if an older version
/// of `ddtc check` wrote them, its section and text.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Rule {
    name: String,
    pub(super) section: String,
    pub(super) text: String,
}

/// A finding: one cause of differences from the expected behaviour, represented by its smallest
/// case. Records that older versions of `ddtc check` wrote, records that were converted, and
/// findings that were written by hand have fewer fields. A field that is missing in the file is
/// empty.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Finding {
    pub(super) fingerprint: String,
    /// Class of the finding: `bug`, `quality` or `open`.
    pub(super) class: String,
    pub(super) check: String,
    /// One or two words that say what differs.
    #[serde(default)]
    kind: String,
    /// The shrunk datatype in text notation.
    pub(super) datatype: String,
    #[serde(default)]
    pub(super) library: Library,
    #[serde(default)]
    pub(super) rule: Rule,
    /// The datatype as it was generated, in text notation.
    #[serde(default)]
    pub(super) original: Option<String>,
    /// Number of instances of the datatype.
    #[serde(default)]
    pub(super) count: u64,
    /// Number of constructors in the shrunk datatype. A predefined type has none.
    #[serde(default)]
    pub(super) constructors: Option<u64>,
    #[serde(default)]
    expected: Value,
    #[serde(default)]
    got: Value,
    /// File name of a C program that shows the difference. The file is in the same folder as the
    /// records.
    #[serde(default)]
    pub(super) program: Option<String>,
    /// Whether the C program showed the difference, too, when it was run. `None` if it was not run.
    #[serde(default)]
    pub(super) confirmed: Option<bool>,
    #[serde(default)]
    pub(super) seed: Option<u64>,
    #[serde(default)]
    pub(super) case: Option<u64>,
    /// Time of the finding, in seconds from the beginning of the run.
    #[serde(default)]
    pub(super) seconds: Option<f64>,
    /// Text of the C program, read from its file.
    #[serde(skip)]
    pub(super) source: Option<String>,
}

impl Finding {
    /// Adds the section and the text of the rule of MPI that the record names. Returns false if the
    /// record names no rule, or a rule that is not known.
    fn complete_rule(&mut self) -> bool {
        let check = self.check.parse::<ddtc_hunt::Check>().ok();
        let Some(rule) = check.and_then(|check| ddtc_hunt::rule(&self.rule.name, check, &self.kind)) else {
            return false;
        };
        self.rule.section = rule.section.to_owned();
        self.rule.text = rule.text.to_owned();
        true
    }

    pub(super) fn expected(&self) -> String {
        shown(&self.expected)
    }

    pub(super) fn got(&self) -> String {
        shown(&self.got)
    }
}

/// Returns a JSON value as text for people: a string without quotes, and null as an empty text.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Contents of a folder that `ddtc check --mpi` wrote.
#[derive(Debug)]
pub(super) struct Record {
    /// Contents of `run.json`; null if there is none.
    pub(super) run: Value,
    pub(super) findings: Vec<Finding>,
    /// The objects from which `findings` were read, including fields that this program does not
    /// know.
    raw: Vec<Value>,
    pub(super) notes: Vec<String>,
}

impl Record {
    /// Reads `folder`. Contents that cannot be understood are left out, and cause a note.
    ///
    /// # Errors
    /// If neither `findings.jsonl` nor `run.json` exists, or one of them cannot be read or is too
    /// long.
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
            Some(Ok(_)) => record.notes.push("run.json is not an object".to_owned()),
            Some(Err(error)) => record.notes.push(format!("run.json: {error}")),
            None => record.notes.push("there is no run.json: the run did not finish".to_owned()),
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
        // Require an object. Without this check, serde would also accept an array that has the
        // values of the fields in order.
        if !raw.is_object() {
            return Err(serde_json::Error::custom("a finding must be an object"));
        }
        let mut finding = Finding::deserialize(&raw)?;
        if finding.complete_rule() {
            let Rule { name, section, text } = &finding.rule;
            raw["rule"] = json!({ "name": name, "section": section, "text": text });
        }
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

    /// Returns the contents as one object, including the texts of the programs.
    pub(super) fn document(&self) -> Value {
        json!({ "run": self.run, "findings": self.raw, "notes": self.notes })
    }

    /// Returns the library that `run.json` names, or else that of the first finding.
    pub(super) fn library(&self) -> Library {
        let own = self.run.get("library").and_then(|l| Library::deserialize(l).ok());
        own.or_else(|| self.findings.first().map(|f| f.library.clone())).unwrap_or_default()
    }
}

/// Returns the text of a file of at most `max_bytes` bytes; `None` if there is no such file.
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
    // Replace invalid UTF-8 instead of failing: if the disk was full during the run, the last line
    // may end inside a character.
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Returns the text of the C program `name` in the folder. Because the contents of records are not
/// trusted, a path to another folder and a link are errors.
fn program(folder: &Path, name: &str) -> Result<String, String> {
    let plain = Path::new(name).file_name().is_some_and(|own| own == name) && name.ends_with(".c");
    if !plain {
        return Err(format!("the program '{name}' is not the name of a C file in the folder"));
    }
    let path = folder.join(name);
    let regular = std::fs::symlink_metadata(&path).is_ok_and(|m| m.is_file());
    let found = if regular { text(&path, MAX_PROGRAM_BYTES)? } else { None };
    found.ok_or_else(|| format!("the program {name} is not in the folder"))
}
