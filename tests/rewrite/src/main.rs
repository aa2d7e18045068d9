//! Checks that a commit changes only comments and documentation.
//!
//! The program compares the tokens of every file that differs between two versions of the tree.
//! Comments, whitespace and documentation are not tokens, but all string literals are. For each
//! file whose tokens differ, the program prints the first difference.

mod tokens;

use std::process::{Command, ExitCode};

use tokens::{Language, Token};

const USAGE: &str = "\
usage: cargo run -q -p ddtc-rewrite -- [FROM [TO]] [-- PATH..]

Compares the tokens of the files that differ between two versions of the tree.

  no commit     the working tree with HEAD; files that git does not track yet are not seen
  one commit    that commit with its first parent
  two commits   the second with the first

Exit status: 0 if all files that could be compared have the same tokens, 1 if any differ, 2 if there was nothing to compare or git failed.";

/// Runs git with `arguments` and returns its standard output.
fn git(arguments: &[&str]) -> Result<Vec<u8>, String> {
    let output = Command::new("git").args(arguments).output().map_err(|e| format!("git: {e}"))?;
    if !output.status.success() {
        return Err(format!(
            "git {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    Ok(output.stdout)
}

/// Returns the text of the file `path` in a commit, or in the working tree if `commit` is `None`.
fn read(commit: Option<&str>, path: &str) -> Result<String, String> {
    let bytes = match commit {
        Some(commit) => git(&["show", &format!("{commit}:{path}")])?,
        None => std::fs::read(path).map_err(|e| format!("{path}: {e}"))?,
    };
    String::from_utf8(bytes).map_err(|e| format!("{path}: {e}"))
}

/// Result of the comparison of two versions of one file.
enum Outcome {
    Same,
    /// The file was not compared, because this program has no lexer for its language.
    NotCompared,
    /// The tokens differ. The text describes the first difference, as the report shows it.
    Differs(String),
}

/// Compares the tokens of two versions of the file `path`.
fn compare(path: &str, before: &str, after: &str) -> Result<Outcome, String> {
    let Some(language) = Language::of_file(path, after) else { return Ok(Outcome::NotCompared) };
    let lex = |text: &str| language.tokens(text).map_err(|e| format!("{path}: {e}"));
    let (before, after) = (lex(before)?, lex(after)?);
    let Some(i) = (0..before.len().max(after.len())).find(|&i| {
        let text = |tokens: &[Token]| tokens.get(i).map(|token| token.text.clone());
        text(&before) != text(&after)
    }) else {
        return Ok(Outcome::Same);
    };
    let show = |tokens: &[Token]| match tokens.get(i) {
        Some(Token { text, line }) => format!("line {line}: {text}"),
        None => "end of file".to_owned(),
    };
    let note = if language == Language::Shell { " (lines as `bash --pretty-print` counts them)" } else { "" };
    Ok(Outcome::Differs(format!("{path}{note}\n  before  {}\n  after   {}", show(&before), show(&after))))
}

/// Compares all files that changed between the versions that `arguments` name. Returns true if no
/// file has tokens that differ.
fn run(arguments: &[String]) -> Result<bool, String> {
    let end = arguments.iter().position(|a| a == "--").unwrap_or(arguments.len());
    let commits: Vec<&str> = arguments[..end].iter().map(String::as_str).collect();
    let paths = arguments.get(end + 1..).unwrap_or_default();
    if commits.iter().any(|a| a.starts_with('-')) {
        return Err(USAGE.to_owned());
    }
    let (from, to) = match commits[..] {
        [] => ("HEAD".to_owned(), None),
        [commit] => (format!("{commit}^"), Some(commit)),
        [from, to] => (from.to_owned(), Some(to)),
        _ => return Err(USAGE.to_owned()),
    };
    // Paths on the command line are relative to the current folder, but the paths that git prints
    // are relative to the root of the repository. So change to the root after git has listed the
    // files.
    let mut diff = vec!["diff", "--name-status", "--no-renames", "-z", &from];
    diff.extend(to);
    diff.push("--");
    diff.extend(paths.iter().map(String::as_str));
    let listed = String::from_utf8(git(&diff)?).map_err(|e| format!("names of files: {e}"))?;
    let root = String::from_utf8(git(&["rev-parse", "--show-toplevel"])?).map_err(|e| e.to_string())?;
    std::env::set_current_dir(root.trim_end()).map_err(|e| format!("{root}: {e}"))?;

    let (mut same, mut differ, mut not_compared) = (0, 0, 0);
    let mut fields = listed.split_terminator('\0');
    while let (Some(status), Some(path)) = (fields.next(), fields.next()) {
        let outcome = match status {
            "A" | "D" => {
                let text = if status == "A" { read(to, path) } else { read(Some(&from), path) };
                match Language::of_file(path, &text.unwrap_or_default()) {
                    None => Outcome::NotCompared,
                    Some(_) if status == "A" => Outcome::Differs(format!("{path} is new")),
                    Some(_) => Outcome::Differs(format!("{path} is deleted")),
                }
            }
            // A file whose text cannot be read or lexed is reported and counts as different.
            _ => read(Some(&from), path)
                .and_then(|before| compare(path, &before, &read(to, path)?))
                .unwrap_or_else(Outcome::Differs),
        };
        match outcome {
            Outcome::Same => same += 1,
            Outcome::NotCompared => {
                println!("not compared: {path}");
                not_compared += 1;
            }
            Outcome::Differs(report) => {
                println!("differs: {report}");
                differ += 1;
            }
        }
    }
    println!("{same} files with the same tokens, {differ} that differ, {not_compared} not compared");
    if same + differ + not_compared == 0 {
        return Err("no file changed between these versions".to_owned());
    }
    Ok(differ == 0)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the report on two versions of a file. The report is empty if the tokens are the
    /// same.
    fn report(path: &str, before: &str, after: &str) -> String {
        match compare(path, before, after) {
            Ok(Outcome::Same) => String::new(),
            Ok(Outcome::Differs(report)) => report,
            Ok(Outcome::NotCompared) => "not compared".to_owned(),
            Err(message) => message,
        }
    }

    fn same(path: &str, before: &str, after: &str) {
        assert_eq!(report(path, before, after), "", "{path}");
    }

    fn differ(path: &str, before: &str, after: &str) {
        assert!(report(path, before, after).contains("before"), "{path}: {before:?} and {after:?}");
    }

    #[test]
    fn comments_of_rust_are_no_tokens() {
        let before = "//! Old.\n/// Old `fn`.\n#[inline]\nfn a() -> u8 { // old\n    1 /* old */ + 2\n}\n";
        let after = "//! New,\n//! longer.\n\n#[doc = \"New.\"]\n#[inline]\nfn a() -> u8 {\n    /* new /* nested */ */\n    1 + 2 // new\n}\n";
        same("a.rs", before, after);
        same("a.rs", "/** Old. */ fn a() {}", "#![doc = r\"New.\"]\nfn a() {}");
        same("a.rs", "macro!(/// old\n a);", "macro!(\n a // new\n);");
    }

    #[test]
    fn code_of_rust_is_tokens() {
        let before = "// c\nfn a() {\n    f(\"// x\", 1);\n}\n";
        let found = report("a.rs", before, "// other\n\nfn a() {\n    f(\"// y\", 1);\n}\n");
        assert_eq!(found, "a.rs\n  before  line 3: \"// x\"\n  after   line 4: \"// y\"");
        let end = report("a.rs", "fn a() {}", "fn a() {} fn b() {}");
        assert_eq!(end, "a.rs\n  before  end of file\n  after   line 1: fn");
        differ("a.rs", "a && b", "a & & b");
        differ("a.rs", "fn a() {}", "#[inline] fn a() {}");
        differ("a.rs", "#[doc(hidden)] fn a() {}", "fn a() {}");
        // This attribute takes the documentation from another file. Examples in that file are run as
        // doctests, so a change of the attribute is a change of code and must be found.
        differ("a.rs", "#![doc = include_str!(\"README.md\")]", "");
        differ("a.rs", "f(1) // g(2)", "f(1)\ng(2)");
        differ("a.rs", "r#\"a // b\"#", "r#\"a\"#");
        assert!(report("a.rs", "fn a() {", "fn a() {").contains("Rust"));
    }

    #[test]
    fn comments_of_c_are_no_tokens() {
        let before =
            "/* old */\n#define A(x) (x) // old\nint a = 1; /* old\n   old */ char *s = \"/* s */\";\n";
        let after = "#define A(x) (x)\n// new \\\n   new\nint a = /* new */ 1;\nchar *s = \"/* s */\";\n";
        for path in ["a.c", "a.h", "a.cpp"] {
            same(path, before, after);
        }
        differ("a.c", "char *s = \"// a\";", "char *s = \"// b\";");
        differ("a.c", "char c = '\"'; // a\nint d;", "char c = '\"'; // a\nint e;");
        differ("a.c", "#define A 1\nint a;", "#define A 1 int a;");
        differ("a.c", "#define A(x) 1", "#define A (x) 1");
        differ("a.c", "a - -b", "a -- b");
        differ("a.c", "// a \\\nint b;\n", "// a\nint b;\n");
    }

    #[test]
    fn comments_of_other_languages_are_no_tokens() {
        same("a.f90", "! old\nprint *, 'it''s ! s' ! old\n", "print *, 'it''s ! s'\n\n! new\n");
        differ("a.f90", "print *, 'a ! b'\n", "print *, 'a'\n");
        differ("a.f90", "a = 1 // 'b'\n", "a = 1\n");
        differ("a.f90", "!$omp parallel\n", "! parallel\n");

        same(
            "a.py",
            "\"\"\"Old.\"\"\"\ndef a():  # old\n    return '# s'\n",
            "def a():\n    'New.'\n\n    return '# s'\n",
        );
        differ("a.py", "a = '# s'\n", "a = '# t'\n");
        differ("a.py", "if a:\n    b()\nc()\n", "if a:\n    b()\n    c()\n");
        // If a program prints its own documentation, users see the text. So it is compared.
        differ("a.py", "\"\"\"Old.\"\"\"\nprint(__doc__)\n", "\"\"\"New.\"\"\"\nprint(__doc__)\n");

        let script = "#!/bin/sh\n# old\ncat <<EOF # old\n# text\nEOF\necho \"$# ${a#b} # s\"\n";
        same("run", script, &script.replace("# old", "# new").replace("echo", "\n# new\necho"));
        differ("run", script, &script.replace("# text", "# other"));
        differ("a.sh", "echo '# s'\n", "echo '# t'\n");

        same("a.toml", "# old\na = 1 # old\n[b]\nc = \"# s\"\n", "a = 1\n# new\n[b]\nc = \"# s\"\n");
        differ("a.toml", "[b]\nc = \"# s\"\n", "[b]\nc = \"# t\"\n");
    }

    #[test]
    fn what_has_no_lexer_is_said_to_be_not_compared() {
        assert_eq!(report("a.md", "Old.", "New."), "not compared");
        assert_eq!(report("a.txt", "# old", "# new"), "not compared");
    }
}
