//! Writes `report.html`. The page can be read without its script, which sorts and filters the rows.
//! All text that comes from outside is escaped.

use std::fmt::Write as _;

use serde_json::Value;

use super::record::{Finding, Record, shown};

/// Columns of the table: name in the URL fragment, title, and whether values are sorted as numbers.
const HEADS: [(&str, &str, bool); 8] = [
    ("class", "Class", false),
    ("check", "Check", false),
    ("section", "Section", false),
    ("constructors", "Constructors", true),
    ("count", "Count", true),
    ("confirmed", "Confirmed", false),
    ("case", "Case", true),
    ("seconds", "Found after", true),
];

/// Known classes of findings and their meaning. Other classes are shown without a meaning.
const CLASSES: [(&str, &str); 3] = [
    ("bug", "contradicts the standard"),
    ("quality", "not required by the standard, but expected of a good library"),
    ("open", "the standard leaves it open"),
];

/// Maximum number of findings on a page that have a picture. Nobody looks at a thousand findings
/// one by one.
const MAX_PICTURES: usize = 400;

/// Returns the text of the HTML page for `record`.
pub(super) fn write(record: &Record) -> String {
    let library = record.library();
    let name = match format!("{} {}", library.name, library.version).trim() {
        "" => "an MPI library".to_owned(),
        name => name.to_owned(),
    };
    let mut out = String::with_capacity(1 << 16);
    let title = escaped(&name);
    // The Content-Security-Policy forbids the browser to load anything, whatever the text of a
    // finding contains.
    let _ = writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Datatypes of {title}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n<h1>Datatypes of {title}</h1>",
        include_str!("page.css")
    );
    let place = [&library.path, &library.flavour].map(|part| escaped(part));
    if !place[0].is_empty() {
        let _ = writeln!(out, "<p class=\"path\">{}</p>", place.join(" "));
    }
    notes(&mut out, record);
    summary(&mut out, record);
    table(&mut out, record);
    coverage(&mut out, &record.run);
    let _ = writeln!(out, "</main>\n<script>\n{}</script>\n</body>\n</html>", include_str!("page.js"));
    out
}

fn notes(out: &mut String, record: &Record) {
    out.push_str("<p id=\"trouble\" class=\"note\" role=\"alert\" hidden></p>\n");
    for note in record.notes.iter().take(100) {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escaped(note));
    }
    if record.notes.len() > 100 {
        let _ =
            writeln!(out, "<p class=\"note\">{} notes more are in report.json</p>", record.notes.len() - 100);
    }
}

/// Writes the summary of the run: findings by class, cases, time and workers.
fn summary(out: &mut String, record: &Record) {
    let mut facts: Vec<(String, String)> = Vec::new();
    for (class, meaning) in CLASSES {
        let n = record.findings.iter().filter(|f| f.class == class).count();
        facts.push((class.to_owned(), format!("<b class=\"is-{class}\">{n}</b> <span>{meaning}</span>")));
    }
    let run = &record.run;
    let mut plain = |title: &str, value: String| {
        if !value.is_empty() {
            facts.push((title.to_owned(), format!("<b>{}</b>", escaped(&value))));
        }
    };
    plain("cases", run.get("cases").map_or_else(String::new, grouped));
    let number = |key: &str| run.get(key).and_then(Value::as_f64);
    plain("seconds", number("seconds").map_or_else(String::new, |s| format!("{s:.1}")));
    plain(
        "cases a second",
        number("rate").map_or_else(String::new, |r| grouped(&Value::from(r.round() as i64))),
    );
    plain("jobs", run.get("jobs").map_or_else(String::new, shown));
    plain("seed", run.get("seed").map_or_else(String::new, shown));
    for (key, title) in [("died", "workers that died"), ("hung", "workers that hung")] {
        plain(title, run.pointer(&format!("/workers/{key}")).map_or_else(String::new, shown));
    }
    out.push_str("<dl class=\"facts\">\n");
    for (title, value) in facts {
        let _ = writeln!(out, "<div><dt>{}</dt><dd>{value}</dd></div>", escaped(&title));
    }
    out.push_str("</dl>\n");
}

/// Returns a whole number with its digits in groups of three; other values as they are.
fn grouped(value: &Value) -> String {
    let Some(n) = value.as_u64() else { return shown(value) };
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

fn table(out: &mut String, record: &Record) {
    out.push_str("<h2>Findings</h2>\n");
    if record.findings.is_empty() {
        out.push_str("<p>Nothing was found.</p>\n");
        return;
    }
    // A form filters the findings by class, check and text. It is hidden until the script shows it.
    let choices = |field: fn(&Finding) -> &str| {
        let mut values: Vec<&str> = record.findings.iter().map(field).collect();
        values.sort_unstable();
        values.dedup();
        let options: String =
            values.iter().map(|v| format!("<option value=\"{0}\">{0}</option>", escaped(v))).collect();
        format!("<option value=\"\">all</option>{options}")
    };
    let _ = writeln!(
        out,
        "<form id=\"filters\" hidden>\n<label>Class <select name=\"class\">{}</select></label>\n\
         <label>Check <select name=\"check\">{}</select></label>\n\
         <label>Contains <input name=\"text\" type=\"search\" placeholder=\"vector\"></label>\n\
         <button type=\"button\" id=\"toggle\">Open all</button>\n<output id=\"number\"></output>\n</form>",
        choices(|f| &f.class),
        choices(|f| &f.check)
    );
    out.push_str("<div class=\"wide\"><table id=\"findings\">\n<thead><tr>");
    for (key, title, numeric) in HEADS {
        let kind = if numeric { " class=\"number\"" } else { "" };
        let _ = write!(out, "<th scope=\"col\" data-key=\"{key}\"{kind}>{title}</th>");
    }
    out.push_str("</tr></thead>\n");
    for (i, finding) in record.findings.iter().enumerate() {
        row(out, finding, i < MAX_PICTURES);
    }
    out.push_str("</table></div>\n");
}

fn row(out: &mut String, f: &Finding, drawn: bool) {
    let number = |recorded: Option<u64>| recorded.map_or_else(String::new, |n| n.to_string());
    let confirmed = match f.confirmed {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not run",
    };
    let values: [String; 8] = [
        f.class.clone(),
        f.check.clone(),
        f.rule.section.clone(),
        number(f.constructors),
        f.count.to_string(),
        confirmed.to_owned(),
        number(f.case),
        f.seconds.map_or_else(String::new, |s| format!("{s:.1} s")),
    ];
    // The values are also attributes of the row, by which the script sorts and filters. An
    // attribute is empty if its value was not recorded.
    let _ = write!(out, "<tbody class=\"finding\" id=\"f-{}\"", escaped(&f.fingerprint));
    for ((key, _, numeric), text) in HEADS.iter().zip(&values) {
        let value = match f.seconds {
            Some(seconds) if *key == "seconds" => seconds.to_string(),
            _ => text.clone(),
        };
        let _ = write!(out, " data-{key}=\"{}\"", escaped(&value));
        debug_assert!(!numeric || value.is_empty() || value.parse::<f64>().is_ok());
    }
    // A finding has two rows of the table. The first one has a cell for each column. The second one
    // has the datatype, and a click on it opens the details.
    out.push_str(">\n<tr>");
    for ((key, title, numeric), text) in HEADS.iter().zip(&values) {
        let text = if *numeric && text.is_empty() { "not recorded".to_owned() } else { escaped(text) };
        let known = CLASSES.iter().any(|(class, _)| *class == f.class);
        let _ = match (*key, numeric) {
            ("class", _) if known => write!(out, "<td><span class=\"tag is-{text}\">{text}</span></td>"),
            ("class", _) => write!(out, "<td><span class=\"tag\">{text}</span></td>"),
            // The style sheet shows the title in windows that are too narrow for columns.
            (_, true) => write!(out, "<td class=\"number\" data-title=\"{title}\">{text}</td>"),
            (_, false) => write!(out, "<td data-title=\"{title}\">{text}</td>"),
        };
    }
    let _ = write!(
        out,
        "</tr>\n<tr><td colspan=\"{}\"><details><summary><code>{}</code></summary>\n",
        HEADS.len(),
        escaped(&f.datatype)
    );
    details(out, f, drawn);
    out.push_str("</details></td></tr>\n</tbody>\n");
}

fn details(out: &mut String, f: &Finding, drawn: bool) {
    out.push_str("<dl class=\"details\">\n");
    let mut part = |title: &str, text: &str| {
        if !text.is_empty() {
            let _ = writeln!(out, "<dt>{title}</dt><dd>{}</dd>", escaped(text));
        }
    };
    part("Expected", &f.expected());
    part("Got", &f.got());
    part("Rule", format!("{} {}", f.rule.section, f.rule.text).trim());
    part("Shrunk from", f.original.as_deref().filter(|original| *original != f.datatype).unwrap_or_default());
    if let (Some(seed), Some(case)) = (f.seed, f.case) {
        part("Seed, case", &format!("{seed}, {case}"));
    }
    part("Fingerprint", &f.fingerprint);
    out.push_str("</dl>\n");
    if drawn {
        match picture(f) {
            Ok(svg) => {
                let _ = writeln!(out, "<figure>{svg}</figure>");
            }
            Err(error) => {
                let _ = writeln!(out, "<p class=\"note\">no picture: {}</p>", escaped(&error));
            }
        }
    }
    if let (Some(name), Some(source)) = (&f.program, &f.source) {
        let (name, source) = (escaped(name), escaped(source));
        let _ = writeln!(
            out,
            "<details class=\"program\"><summary>{name}</summary><pre><code>{source}</code></pre></details>"
        );
    }
}

/// Returns an SVG picture of the memory of the finding's datatype, with as many instances as the
/// finding has. Returns an error text if the datatype cannot be read or drawn.
fn picture(f: &Finding) -> Result<String, String> {
    let t = f.datatype.parse::<ddtc::internal::datatype::Datatype>().map_err(|e| e.to_string())?;
    crate::draw::svg(&t, f.count, &f.datatype).map_err(|e| e.to_string())
}

/// Writes how often each feature of datatypes was tested, and marks the features that were never
/// tested.
fn coverage(out: &mut String, run: &Value) {
    let Some(Value::Object(features)) = run.get("coverage") else { return };
    if features.is_empty() {
        return;
    }
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let max_count = features.values().map(count).max().unwrap_or(0).max(1);
    out.push_str("<h2>Coverage</h2>\n");
    let never = features.values().filter(|v| count(v) == 0).count();
    let _ = writeln!(out, "<p>{} features, of which {never} were never tried.</p>", features.len());
    out.push_str("<table id=\"coverage\">\n<thead><tr><th scope=\"col\">Feature</th><th scope=\"col\" class=\"number\">Cases</th><th></th></tr></thead>\n<tbody>\n");
    for (feature, value) in features {
        let n = count(value);
        // The scale of the bars is logarithmic: some features are in every case, and some in one
        // case of a million.
        let width = if n == 0 { 0.0 } else { 2.0 + 98.0 * (n as f64).ln_1p() / (max_count as f64).ln_1p() };
        let never = if n == 0 { " class=\"never\"" } else { "" };
        let shown = if n == 0 { "never".to_owned() } else { grouped(value) };
        let _ = writeln!(
            out,
            "<tr{never}><td>{}</td><td class=\"number\">{shown}</td><td class=\"bar\"><i style=\"width:{width:.1}%\"></i></td></tr>",
            escaped(feature)
        );
    }
    out.push_str("</tbody></table>\n");
}

/// Escapes text for HTML, including values of attributes. Control characters are replaced, because
/// HTML does not allow them. Line breaks and tabs are kept.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
