//! Functions that read documents and sources for the tests of documents, and that rewrite generated
//! text in documents if `DDTC_BLESS=1`.

use std::path::{Path, PathBuf};

/// Returns the root folder of the workspace, whichever member of the workspace compiles this
/// module.
pub(crate) fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().find(|folder| folder.join("Cargo.lock").is_file()).expect("the workspace")
}

/// Returns the text of a file. `path` is relative to the root of the workspace.
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Returns the paths, from the root of the workspace, of all Markdown files that are tested.
pub(crate) fn documents() -> Vec<String> {
    let mut found = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(str::to_owned).to_vec();
    for folder in ["docs", "benches", "packaging", "python", "tests"] {
        found.extend(files(folder, "md"));
    }
    found
}

/// Returns all files with the given extension in a folder and its subfolders. The paths are
/// relative to the root of the workspace, and sorted.
pub(crate) fn files(folder: &str, extension: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::from(folder)];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap_or_else(|e| panic!("{folder:?}: {e}")) {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// A fenced block of a Markdown document.
pub(crate) struct Block {
    /// The text after the opening fence, which says what the block contains.
    pub(crate) tag: String,
    /// The lines between the two fences, each with its end of line.
    pub(crate) text: String,
    /// Line number of the opening fence in the document, counted from 1.
    pub(crate) line: usize,
}

/// Returns the fenced blocks of a document, in the order of the document.
pub(crate) fn blocks(document: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (i, line) in document.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(tag), None) => {
                open = Some(Block { tag: tag.to_owned(), text: String::new(), line: i + 1 });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (None, Some(block)) => block.text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a fence is not closed");
    found
}

/// Returns the document with new texts in some of its fenced blocks. Each entry of `texts` has the
/// line number of a block's opening fence and the block's new text.
pub(crate) fn with_blocks(document: &str, texts: &[(usize, String)]) -> String {
    let mut out = String::new();
    let mut skip = false;
    for (i, line) in document.lines().enumerate() {
        if line.starts_with("```") {
            skip = false;
        }
        if !skip {
            out += &format!("{line}\n");
        }
        if let Some((_, text)) = texts.iter().find(|(at, _)| *at == i + 1) {
            out += text;
            skip = true;
        }
    }
    out
}

/// Checks that the document at `path` has the text `wanted`. If it has another text and
/// `DDTC_BLESS=1`, the function writes `wanted` to the document; otherwise it panics and shows the
/// differences.
pub(crate) fn hold(path: &str, wanted: &str) {
    let found = read(path);
    if found == wanted {
        return;
    }
    if std::env::var("DDTC_BLESS").is_ok_and(|v| v == "1") {
        // Other tests may be reading the document at the same time, so the file is replaced in one
        // step.
        let draft = root().join(format!("{path}.draft"));
        std::fs::write(&draft, wanted).unwrap();
        std::fs::rename(draft, root().join(path)).unwrap();
        return;
    }
    let mut difference = String::new();
    for i in 0..found.lines().count().max(wanted.lines().count()) {
        let (a, b) = (found.lines().nth(i), wanted.lines().nth(i));
        if a != b {
            for (sign, line) in [('-', a), ('+', b)] {
                if let Some(line) = line {
                    difference += &format!("{:4} {sign} {line}\n", i + 1);
                }
            }
            if difference.len() > 4000 {
                break;
            }
        }
    }
    panic!("{path} is not what the sources say (DDTC_BLESS=1 rewrites it):\n{difference}");
}

/// Returns the words in backquotes of a document, except for those inside fenced blocks.
pub(crate) fn quoted(document: &str) -> Vec<String> {
    let mut prose = String::new();
    let mut fenced = false;
    for line in document.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            prose += line;
            prose.push('\n');
        }
    }
    prose.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
