//! Finds the tokens of a source file, without comments, whitespace and documentation.

use std::io::Write;
use std::process::{Command, Stdio};

use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};

/// A token of a file. For shell and TOML, it is one line of a canonical form of the file.
pub(crate) struct Token {
    pub(crate) text: String,
    /// Line of the token in the file, from 1. For shell and TOML, the line in the canonical form.
    pub(crate) line: usize,
}

/// Languages of source files whose tokens can be compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    C,
    Fortran,
    Python,
    Shell,
    Toml,
}

impl Language {
    /// Returns the language of a file. The extension of the file determines it, or the first line
    /// of the text if the file has no extension.
    pub(crate) fn of_file(path: &str, text: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        Some(match name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("rs") => Self::Rust,
            Some("c" | "h" | "cpp") => Self::C,
            Some("f90") => Self::Fortran,
            Some("py" | "pyi") => Self::Python,
            Some("sh") => Self::Shell,
            Some("toml") => Self::Toml,
            None if text.starts_with("#!") => {
                let first = text.lines().next().unwrap_or_default();
                if first.ends_with("sh") {
                    Self::Shell
                } else if first.contains("python") {
                    Self::Python
                } else {
                    return None;
                }
            }
            _ => return None,
        })
    }

    /// Returns the tokens of a text in this language, or a message if the text cannot be lexed.
    pub(crate) fn tokens(self, text: &str) -> Result<Vec<Token>, String> {
        match self {
            Self::Rust => {
                let stream = text
                    .parse::<TokenStream>()
                    .map_err(|e| format!("no tokens of Rust from line {} on: {e}", e.span().start().line))?;
                let mut found = Vec::new();
                rust(stream, &mut found);
                Ok(found)
            }
            Self::C | Self::Fortran => Ok(c_or_fortran(text, self == Self::Fortran)),
            Self::Python => {
                let printed = filtered("python3", &["-c", PYTHON], text)?;
                let token = |line: &str| {
                    let (number, text) = line.split_once(' ')?;
                    Some(Token { text: text.to_owned(), line: number.parse().ok()? })
                };
                printed.lines().map(|l| token(l).ok_or_else(|| format!("python3 printed {l}"))).collect()
            }
            Self::Shell => Ok(lines(&filtered("bash", &["--pretty-print", "/dev/stdin"], text)?)),
            Self::Toml => Ok(lines(&filtered("python3", &["-c", TOML], text)?)),
        }
    }
}

/// Python program that prints the line and the text of each token of a Python file. A string that
/// is a statement of its own is documentation and is left out. If the file uses `__doc__`, its
/// documentation is part of its output and is kept.
const PYTHON: &str = r#"
import io, sys, tokenize
text = sys.stdin.read()
marks = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in (tokenize.COMMENT, tokenize.NL)]
for i, t in enumerate(tokens):
    alone = t.type == tokenize.STRING and (i == 0 or tokens[i - 1].type in marks) and tokens[i + 1].type == tokenize.NEWLINE
    after = i > 0 and t.type == tokenize.NEWLINE and tokens[i - 1].type == tokenize.STRING and (i == 1 or tokens[i - 2].type in marks)
    if "__doc__" in text or not (alone or after):
        print(t.start[0], tokenize.tok_name[t.type] if t.type in marks else repr(t.string))
"#;

/// Python program that prints each value of a TOML file with the path of the value.
const TOML: &str = r#"
import sys, tomllib
def walk(path, value):
    if isinstance(value, dict):
        print(path, "{}")
        for name in value:
            walk(f"{path}.{name}", value[name])
    else:
        print(path, repr(value))
walk("", tomllib.loads(sys.stdin.read()))
"#;

/// Runs a program with `text` as its standard input, and returns its standard output.
fn filtered(program: &str, arguments: &[&str], text: &str) -> Result<String, String> {
    let failed = |e: std::io::Error| format!("{program}: {e}");
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut input = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        // Write the text in a separate thread, because the program may print before it has read
        // everything.
        scope.spawn(move || input.write_all(text.as_bytes()));
        child.wait_with_output()
    });
    let output = output.map_err(failed)?;
    if !output.status.success() {
        return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    String::from_utf8(output.stdout).map_err(|e| format!("{program}: {e}"))
}

/// Returns the lines of a text that are not blank, each as one token.
fn lines(text: &str) -> Vec<Token> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(i, line)| Token { text: line.to_owned(), line: i + 1 }).collect()
}

/// Appends the tokens of a stream to `found`. Attributes `doc` are left out: doc comments have
/// become such attributes in the stream.
fn rust(stream: TokenStream, found: &mut Vec<Token>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let is =
        |i: usize, wanted: char| matches!(trees.get(i), Some(TokenTree::Punct(p)) if p.as_char() == wanted);
    let mut i = 0;
    while i < trees.len() {
        // Skip an attribute `#[doc = "..."]` or `#![doc = "..."]`.
        if is(i, '#') {
            let group = if is(i + 1, '!') { i + 2 } else { i + 1 };
            if matches!(trees.get(group), Some(TokenTree::Group(g)) if is_documentation(g)) {
                i = group + 1;
                continue;
            }
        }
        let line = trees[i].span().start().line;
        match &trees[i] {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                found.push(Token { text: open.to_owned(), line });
                rust(group.stream(), found);
                found.push(Token { text: close.to_owned(), line: group.span_close().start().line });
            }
            TokenTree::Punct(_) => {
                // Join all characters of an operator into one token, so that `&&` is different from
                // `& &`.
                let mut text = String::new();
                while let Some(TokenTree::Punct(punct)) = trees.get(i) {
                    text.push(punct.as_char());
                    i += 1;
                    if punct.spacing() == Spacing::Alone {
                        break;
                    }
                }
                found.push(Token { text, line });
                continue;
            }
            other => found.push(Token { text: other.to_string(), line }),
        }
        i += 1;
    }
}

/// Returns true if `group` is the group in brackets of an attribute `#[doc = "..."]`. If a macro
/// makes the text of the attribute, the result is false, so that the attribute is compared.
fn is_documentation(group: &Group) -> bool {
    let trees: Vec<TokenTree> = group.stream().into_iter().collect();
    let [TokenTree::Ident(name), TokenTree::Punct(equals), TokenTree::Literal(text)] = &trees[..] else {
        return false;
    };
    let text = text.to_string();
    name == "doc" && equals.as_char() == '=' && (text.starts_with('"') || text.starts_with('r'))
}

/// Operators of more than one character in C, C++ and Fortran. If one operator begins with another
/// operator of the list, the longer one comes first.
const OPERATORS: [&str; 30] = [
    "<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=",
    "/=", "%=", "&=", "|=", "^=", "##", "::", "**", "=>", "//", "(/", "/)", "!$",
];

/// Returns the tokens of a text in C, C++ or free-form Fortran. Two kinds of line ends are tokens:
/// the end of a preprocessor directive, and the end of a line of Fortran that has any other token.
fn c_or_fortran(text: &str, is_fortran: bool) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::new();
    let (mut i, mut line) = (0, 1);
    // `is_first` is true if the next token is the first one of its line. `in_directive` is true if
    // the line belongs to a directive of the preprocessor.
    let (mut is_first, mut in_directive) = (true, false);
    while let Some(c) = text[i..].chars().next() {
        let rest = &text[i..];
        let length = if rest.starts_with("\\\n") && !is_fortran {
            2
        } else if rest.starts_with("//") && !is_fortran {
            to_end_of_line(rest)
        } else if rest.starts_with("/*") && !is_fortran {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if c == '!' && is_fortran && !rest.starts_with("!$") {
            rest.find('\n').unwrap_or(rest.len())
        } else if c == '\n' {
            let continues = found.last().is_none_or(|t| t.text == "\n" || t.text == "&");
            if in_directive || is_fortran && !continues {
                found.push(Token { text: "\n".to_owned(), line });
            }
            (is_first, in_directive) = (true, false);
            1
        } else if c.is_whitespace() {
            c.len_utf8()
        } else {
            let length = if c == '"' || c == '\'' {
                quoted(rest, c, !is_fortran)
            } else if is_word(c) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else {
                OPERATORS.iter().find(|o| rest.starts_with(**o)).map_or(c.len_utf8(), |o| o.len())
            };
            in_directive |= is_first && c == '#' && !is_fortran;
            is_first = false;
            // In a directive such as `#define A (x)`, the space before the parenthesis matters.
            let space =
                if in_directive && c == '(' && text[..i].ends_with(char::is_whitespace) { " " } else { "" };
            found.push(Token { text: format!("{space}{}", &rest[..length]), line });
            length
        };
        line += rest[..length].matches('\n').count();
        i += length;
    }
    found
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the length of a comment that reaches to the end of its line. A backslash at the end of
/// the line continues the comment on the next line.
fn to_end_of_line(text: &str) -> usize {
    let mut ends = text.match_indices('\n').map(|(at, _)| at);
    ends.find(|&at| !text[..at].ends_with('\\')).unwrap_or(text.len())
}

/// Returns the length of a literal at the start of `text`, which begins and ends with `quote`.
fn quoted(text: &str, quote: char, has_escapes: bool) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' && has_escapes {
            escaped = true;
        } else if c == quote {
            return at + c.len_utf8();
        }
    }
    text.len()
}
