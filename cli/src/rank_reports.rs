//! Folders for the files of ranks. Reads the reports that the ranks of an MPI program have written
//! as JSON files, and adds them up.

use std::io;
use std::path::Path;

use ddtc::internal::files::{self, TemporaryFolder};
use ddtc_hosts::report::{COUNTS, FORMAT, Report, TypeRow};
use serde_json::Value;

/// Beginning of the file names of complete reports. A rank writes its report to a file with another
/// name, and renames the file when the report is complete.
const RANK: &str = "rank";

/// File name that `ddtc` appends to a folder to get the value of `DDTC_REPORT`. The preload library
/// replaces `%r` by the rank and `%p` by the process id.
pub(crate) const NAME: &str = "rank%r-%p.json";

/// Returns a new folder for what the ranks read and write, whose name begins with `name`. It is
/// created in the working folder, which all nodes of a job can usually access. If that fails, it is
/// created among the temporary files.
///
/// # Errors
/// If a folder can be created in neither place.
pub(crate) fn folder_for_ranks(name: &str) -> io::Result<TemporaryFolder> {
    let here = std::env::current_dir().unwrap_or_default();
    files::private_folder(&here, name)
        .map(Into::into)
        .or_else(|_| files::temporary_folder(name.trim_start_matches('.')))
}

/// Returns the sum of the reports in a folder. For a file that cannot be read, the sum has a note.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn gather(folder: &Path) -> io::Result<Report> {
    let mut names = std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<String>>>()?;
    names.sort_unstable();
    let mut sum = Report::default();
    for name in &names {
        let what = if name.starts_with(RANK) {
            match files::read(&folder.join(name)).map_err(|e| e.to_string()).and_then(|text| read(&text)) {
                Ok(report) => {
                    add(&mut sum, report);
                    continue;
                }
                Err(why) => format!("{name} is not in the sum: {why}"),
            }
        } else {
            // A rank writes its report to a file with another name, and then renames the file. So a
            // file whose name does not begin with `RANK` was left by a rank that ended while it
            // wrote its report.
            format!(
                "a rank ended while it wrote a report ({name}), so that the sum has an older report of this rank, or none"
            )
        };
        merge(&mut sum.notes, [what]);
    }
    sum.sort_types();
    Ok(sum)
}

/// Reads a report from JSON.
///
/// # Errors
/// A description of the first fault in the text.
pub(crate) fn read(text: &str) -> Result<Report, String> {
    let value: Value = serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?;
    if number(&value, "ddtc_report")? != FORMAT {
        return Err(
            "it is of another version of ddtc: use the command and the preload library of one release"
                .to_owned(),
        );
    }
    let totals = value["totals"].as_object().ok_or("it has no totals")?;
    let totals = totals.keys().map(|name| Ok((name.clone().into(), number(&value["totals"], name)?)));
    let types = value["types"].as_array().ok_or("it has no types")?;
    Ok(Report {
        ranks: number(&value, "ranks")?,
        unfinished: number(&value, "unfinished")?,
        process: text_of(&value, "process")?,
        libraries: texts(&value, "libraries")?,
        modes: texts(&value, "modes")?,
        targets: texts(&value, "targets")?,
        totals: totals.collect::<Result<_, String>>()?,
        notes: texts(&value, "notes")?,
        types: types.iter().map(type_row).collect::<Result<_, String>>()?,
    })
}

fn type_row(value: &Value) -> Result<TypeRow, String> {
    let mut counts = [0; COUNTS.len()];
    for (count, name) in counts.iter_mut().zip(COUNTS) {
        *count = number(value, name)?;
    }
    let signed = |name: &str| value[name].as_i64().ok_or_else(|| format!("it has no number {name}"));
    Ok(TypeRow {
        name: text_of(value, "type")?,
        size: signed("size")?,
        true_extent: signed("true_extent")?,
        class: text_of(value, "class")?,
        hash: text_of(value, "hash")?,
        counts,
        schedules: texts(value, "schedules")?,
        timings: texts(value, "timings")?,
    })
}

fn number(value: &Value, name: &str) -> Result<u64, String> {
    value[name].as_u64().ok_or_else(|| format!("it has no number {name}"))
}

fn text_of(value: &Value, name: &str) -> Result<String, String> {
    Ok(value[name].as_str().ok_or_else(|| format!("it has no text {name}"))?.to_owned())
}

fn texts(value: &Value, name: &str) -> Result<Vec<String>, String> {
    let list = value[name].as_array().ok_or_else(|| format!("it has no list {name}"))?;
    let text =
        |item: &Value| Ok(item.as_str().ok_or_else(|| format!("it has no texts in {name}"))?.to_owned());
    list.iter().map(text).collect()
}

/// Maximum number of timings of a type that the report of a whole job keeps. Each rank times the
/// types that it uses, so a job with thousands of ranks would have thousands of timings for each
/// type.
const MAX_TIMINGS: usize = 64;

/// Adds the report of a rank to `sum`, the report of the whole job. A report has a row of counts
/// for each datatype. The counts of two rows are added if the rows have the same text and hash of
/// the datatype.
fn add(sum: &mut Report, report: Report) {
    sum.ranks += report.ranks;
    sum.unfinished += report.unfinished;
    merge(&mut sum.libraries, report.libraries);
    merge(&mut sum.modes, report.modes);
    merge(&mut sum.targets, report.targets);
    merge(&mut sum.notes, report.notes);
    for (name, n) in report.totals {
        match sum.totals.iter_mut().find(|(known, _)| *known == name) {
            Some((_, total)) => *total += n,
            None => sum.totals.push((name, n)),
        }
    }
    for row in report.types {
        match sum.types.iter_mut().find(|known| known.hash == row.hash && known.name == row.name) {
            Some(known) => {
                known.counts.iter_mut().zip(row.counts).for_each(|(sum, n)| *sum += n);
                merge(&mut known.schedules, row.schedules);
                merge(&mut known.timings, row.timings);
                known.timings.truncate(MAX_TIMINGS);
            }
            None => sum.types.push(row),
        }
    }
}

/// Appends each of `texts` that `list` does not contain yet.
fn merge(list: &mut Vec<String>, texts: impl IntoIterator<Item = String>) {
    for text in texts {
        if !list.contains(&text) {
            list.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(packs: u64) -> Report {
        Report {
            ranks: 1,
            unfinished: packs % 2,
            process: format!("rank 0 of 2, process {packs}"),
            libraries: vec!["MPICH Version: 5.0.2 (MPICH ABI)".into()],
            modes: vec!["lazy".into()],
            targets: vec!["avx2".into()],
            totals: vec![
                ("calls_converted".into(), packs),
                ("packs".into(), packs),
                (format!("bypassed_{packs}").into(), 3),
            ],
            notes: vec!["a \"note\"\n".into()],
            types: vec![TypeRow {
                name: "vector(34,10,64,double)".into(),
                size: 2720,
                true_extent: 16976,
                class: "strided-long".into(),
                hash: "01234567".into(),
                counts: [1, packs, 0, packs * 2720, 0, 1, 0, 0, 0],
                schedules: vec!["pack: strided<80>.avx2, 1 loops".into()],
                timings: vec![format!("messages from {packs} B")],
            }],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let report = report(7);
        let mut read = read(&report.json()).unwrap();
        // The members of an object in JSON have no order, so restore the order of the totals.
        read.totals.sort_by_key(|(name, _)| report.totals.iter().position(|(known, _)| known == name));
        assert_eq!(read, report);
    }

    #[test]
    fn reports_are_added_and_files_that_are_none_are_named() {
        let folder = files::temporary_folder("ddtc-gather").unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        assert!(gather(&folder).unwrap().text().starts_with("No rank has reported: "));
        write("rank0-7.json", &report(40).json());
        write("rank1-8.json", &report(3).json());
        let sum = gather(&folder).unwrap();
        assert_eq!((sum.ranks, sum.unfinished, sum.process.as_str()), (2, 1, ""));
        assert_eq!((sum.total("packs"), sum.total("bypassed_3")), (43, 3));
        assert_eq!(sum.libraries, report(1).libraries);
        assert_eq!(sum.notes, report(1).notes);
        let [row] = &sum.types[..] else { panic!("{sum:?}") };
        assert_eq!(row.counts, [2, 43, 0, 43 * 2720, 0, 2, 0, 0, 0]);
        assert_eq!((row.schedules.len(), row.timings.len()), (1, 2));
        assert!(sum.text().starts_with("ddtc converted 43 of 43 calls with derived datatypes.\n2 ranks: "));
        // The unfinished file of a killed rank and each malformed file cause one note each.
        write(".ddtc-0123.part", "{\"ddtc_re");
        write("rank2-9.json", "{\"ddtc_report\": 1,");
        write("rank3-9.json", &report(1).json().replace("\"ddtc_report\": 1", "\"ddtc_report\": 9"));
        write("rank4-9.json", &report(1).json().replace("\"packs\": 1", "\"packs\": -1"));
        let sum = gather(&folder).unwrap();
        assert_eq!((sum.ranks, sum.notes.len()), (2, 5), "{:?}", sum.notes);
        for note in [
            "a rank ended while it wrote a report (.ddtc-0123.part), so that",
            "rank2-9.json is not in the sum: it is not JSON: EOF",
            "rank3-9.json is not in the sum: it is of another version of ddtc",
            "rank4-9.json is not in the sum: it has no number packs",
        ] {
            assert!(sum.notes.iter().any(|line| line.starts_with(note)), "{:?}", sum.notes);
        }
    }
}
