//! The description of the machine on which a recorded number was measured. All of it is read from
//! the running system or known at compile time.

use std::fmt;
use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::compile;

/// The properties of a machine that measured times depend on, as text.
#[derive(Clone, Debug)]
pub struct Machine {
    cpu: String,
    family: String,
    caches: String,
    flags: String,
    memory: String,
    huge_pages: String,
    governor: Option<String>,
    load: String,
    kernel: String,
    compiler: String,
    /// The core to which the process is pinned, if it could be pinned.
    pub core: Option<usize>,
    build: &'static str,
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

// Returns the value in the first line of `text` that has this key. `text` has the format of
// `/proc/cpuinfo`: each line has a key, a colon and a value.
fn cpuinfo(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    })
}

// Returns the names and sizes of the caches of the first core, as text.
fn caches() -> String {
    let mut words = Vec::new();
    for index in 0..8 {
        let file = |name: &str| read(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}"));
        if let (Some(level), Some(kind), Some(size)) = (file("level"), file("type"), file("size")) {
            let letter = match kind.as_str() {
                "Data" => "d",
                "Instruction" => "i",
                _ => "",
            };
            words.push(format!("L{level}{letter} {size}"));
        }
    }
    if words.is_empty() { "unknown".into() } else { words.join(" ") }
}

impl Machine {
    /// Reads the description of this machine. `core` is the core to which the process was pinned.
    pub fn read(core: Option<usize>) -> Machine {
        let info = read("/proc/cpuinfo").unwrap_or_default();
        let value = |key: &str| cpuinfo(&info, key).unwrap_or_else(|| "?".into());
        let all = value("flags");
        let wanted = [
            "ssse3", "sse4_2", "avx", "avx2", "bmi2", "fma", "avx512f", "avx512bw", "avx512vl", "erms",
            "fsrm",
        ];
        let flags: Vec<&str> =
            wanted.into_iter().filter(|w| all.split_whitespace().any(|f| f == *w)).collect();
        let memory = read("/proc/meminfo").and_then(|text| cpuinfo(&text, "MemTotal"));
        let huge_pages = read("/sys/kernel/mm/transparent_hugepage/enabled");
        let chosen = |text: String| text.split(['[', ']']).nth(1).map(str::to_owned).unwrap_or(text);
        Machine {
            cpu: value("model name"),
            family: [value("cpu family"), value("model"), value("stepping")].join("-"),
            caches: caches(),
            flags: flags.join(" "),
            memory: memory.unwrap_or_else(|| "?".into()),
            huge_pages: huge_pages.map_or_else(|| "?".into(), chosen),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            // The load of the machine before the benchmark does anything. If it is above 0, other
            // work disturbs the measurement.
            load: read("/proc/loadavg")
                .and_then(|t| t.split(' ').next().map(str::to_owned))
                .unwrap_or_default(),
            kernel: read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "?".into()),
            compiler: compile::compiler_version().unwrap_or_else(|_| "no C compiler".into()),
            core,
            build: if cfg!(debug_assertions) { "debug" } else { "optimized" },
        }
    }

    /// Returns a short name for the folder of records: model name, family, model number and
    /// stepping.
    pub fn slug(&self) -> String {
        let words = self.cpu.replace("(R)", " ").replace("(TM)", " ");
        let words =
            words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty() && *w != "CPU");
        let name: Vec<String> = words.map(str::to_ascii_lowercase).collect();
        format!("{}-{}", name.join("-"), self.family)
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (family-model-stepping {}); caches {}; flags {}; memory {}; huge pages {}; ",
            self.cpu, self.family, self.caches, self.flags, self.memory, self.huge_pages
        )?;
        if let Some(governor) = &self.governor {
            write!(f, "governor {governor}; ")?;
        }
        write!(f, "load {}; ", self.load)?;
        match self.core {
            Some(core) => write!(f, "pinned to core {core}; ")?,
            None => f.write_str("not pinned; ")?,
        }
        let flags = compile::C_FLAGS.join(" ");
        write!(
            f,
            "kernel {}; {} {flags}; ddtc {} ({})",
            self.kernel,
            self.compiler,
            env!("CARGO_PKG_VERSION"),
            self.build
        )
    }
}

/// Returns today's date (UTC) as year-month-day.
pub fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (year, month, day) = civil((seconds / 86_400) as i64);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Returns year, month and day of the Gregorian calendar, `days` days after 1970-01-01 (Hinnant,
/// "chrono-compatible date algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let (era, day_of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

/// Returns the commit of the source tree in the current directory, followed by `+` if tracked files
/// have changes. Returns `unknown` outside of a source tree.
pub fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|o| o.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    match git(&["rev-parse", "--short=10", "HEAD"]) {
        Some(hash) => {
            let changed =
                git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|s| !s.is_empty());
            if changed { format!("{hash}+") } else { hash }
        }
        None => "unknown".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_by_hand() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_454), (2026, 1, 1));
    }

    #[test]
    fn the_slug_is_a_file_name() {
        let slug = Machine::read(None).slug();
        assert!(
            slug.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '?'),
            "{slug}"
        );
    }
}
