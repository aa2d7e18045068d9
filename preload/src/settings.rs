//! Settings from the environment, read once, at the first call of a wrapper.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use ddtc::internal::engine::{Config, Mode};
use ddtc::internal::process::{Awaited, NO_TEXT, cut, said};
use ddtc::internal::target::Family;
use ddtc_hosts::variables::{RENAMED, explanation};

use crate::warn::warn;

/// Value of `DDTC_POLICY`: the rule that decides whether a buffer is converted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Value `measure`: the measured times of a layout and size class decide. Until there are
    /// measured times, the user's policy table decides, or the shipped table if the user has none.
    #[default]
    Measure,
    /// Value `table`: the user's policy table decides, or the shipped table if the user has none.
    Table,
    /// Value `all`: every layout that is not dense is converted, for any number of bytes.
    All,
    /// Value `none`: nothing is converted except the program's own packs and unpacks.
    Off,
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice, String> {
        match text {
            "measure" => Ok(Choice::Measure),
            "table" => Ok(Choice::Table),
            "all" => Ok(Choice::All),
            "none" => Ok(Choice::Off),
            other => Err(format!("'{other}': must be measure, table, all or none")),
        }
    }
}

/// Value of `DDTC_HOOK`: selects the code that packs and unpacks the bytes of requests inside Open
/// MPI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HookChoice {
    /// Value `off`: Open MPI's own code packs and unpacks.
    Off,
    /// Value `on`: compiled code in Open MPI's convertor hook packs and unpacks, if a test at run
    /// time has shown that the hook works with this Open MPI.
    #[default]
    On,
    /// Value `check`: as `On`, and each piece is also compared with the piece that Open MPI's own
    /// code makes.
    Check,
}

impl FromStr for HookChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<HookChoice, String> {
        match text {
            "off" => Ok(HookChoice::Off),
            "on" => Ok(HookChoice::On),
            "check" => Ok(HookChoice::Check),
            other => Err(format!("'{other}': must be off, on or check")),
        }
    }
}

/// Whole number that is the value of a variable.
struct Number<T>(T);

impl<T: FromStr> FromStr for Number<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Number<T>, String> {
        text.parse().map(Number).map_err(|_| format!("'{text}': must be a whole number without a unit"))
    }
}

/// Settings that the user asked for.
#[derive(Debug)]
pub(crate) struct Settings {
    /// `DDTC_MODE`, `DDTC_LAZY_THRESHOLD` and `DDTC_TARGET`: the configuration of the engine.
    pub(crate) config: Config,
    /// `DDTC_CHECK`: whether packed and unpacked bytes are compared with those of the interpreter
    /// and of the MPI library.
    pub(crate) check: bool,
    /// `DDTC_REPORT`: the file to which the report is written. `-` means standard error. The report
    /// is JSON if the name of the file ends in `.json`.
    pub(crate) report: Option<PathBuf>,
    /// `DDTC_RECORD`: the file to which the record is written, a corpus of the program's types with
    /// the counts of their uses.
    pub(crate) record: Option<PathBuf>,
    /// `DDTC_PERF_MAP`: whether the names of compiled code are written for the profiler `perf`.
    pub(crate) perf_map: bool,
    /// `DDTC_POLICY`: the rule that decides whether a buffer is converted.
    pub(crate) policy: Choice,
    /// `DDTC_UNPROVEN`: whether calls are converted that were not tried with this MPI library, or
    /// were wrong. Only for programs that try them.
    pub(crate) unproven: bool,
    /// `DDTC_PROFILE_CACHE`: whether measured times are kept in the profile cache for later runs of
    /// programs.
    pub(crate) profile_cache: bool,
    /// `DDTC_HOOK`: the code that packs and unpacks inside Open MPI.
    pub(crate) hook: HookChoice,
    /// `DDTC_STAGING_MIB`: the maximum number of bytes of all staging buffers together. The
    /// variable is in MiB, and this field is in bytes.
    pub(crate) staging_bytes: usize,
}

impl Settings {
    /// Returns true if conversions are counted, because the user has requested a report or a
    /// record.
    pub(crate) fn counting(&self) -> bool {
        self.report.is_some() || self.record.is_some()
    }
}

/// Returns the settings, which are read from the environment at the first call.
pub(crate) fn settings() -> &'static Settings {
    static SETTINGS: Awaited<Settings> = Awaited::new();
    SETTINGS.get_or_init(|| {
        let get = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        for (old, new) in RENAMED.into_iter().filter(|(old, _)| get(old).is_some()) {
            warn(format_args!("{}", explanation(old, new, get(new).is_some())));
        }
        read(&|name| by_either_name(&get, name))
    })
}

/// Returns the value of the environment variable `name`. If it is not set, returns the value of the
/// variable's old name, if the variable was renamed.
fn by_either_name(get: Get<'_>, name: &str) -> Option<OsString> {
    let old = || RENAMED.into_iter().find(|&(_, new)| new == name).and_then(|(old, _)| get(old));
    get(name).or_else(old)
}

/// Function that returns the value of an environment variable, if the variable is set and not
/// empty.
type Get<'a> = &'a dyn Fn(&str) -> Option<OsString>;

fn read(get: Get<'_>) -> Settings {
    // The default mode compiles types lazily, because a program may use a type only once.
    let mut config = Config { mode: Mode::Lazy, ..Config::default() };
    config.mode = parsed(get, "DDTC_MODE", config.mode);
    config.lazy_threshold = parsed(get, "DDTC_LAZY_THRESHOLD", Number(config.lazy_threshold)).0;
    let level = parsed(get, "DDTC_TARGET", config.level);
    if level.runs() {
        config.level = level;
    } else {
        warn(format_args!(
            "DDTC_TARGET={level}: must be a level that this machine runs; ignored, {} is used",
            config.level
        ));
    }
    let family = parsed(get, "DDTC_FAMILY", Family::host());
    Family::assume(family).unwrap_or_else(|error| warn(format_args!("DDTC_FAMILY: {error}; ignored")));
    Settings {
        config,
        check: flag(get, "DDTC_CHECK", false),
        report: get("DDTC_REPORT").map(PathBuf::from),
        record: get("DDTC_RECORD").map(PathBuf::from),
        perf_map: flag(get, "DDTC_PERF_MAP", false),
        profile_cache: flag(get, "DDTC_PROFILE_CACHE", true),
        policy: parsed(get, "DDTC_POLICY", Choice::default()),
        unproven: flag(get, "DDTC_UNPROVEN", false),
        hook: parsed(get, "DDTC_HOOK", HookChoice::default()),
        staging_bytes: parsed(get, "DDTC_STAGING_MIB", Number(512usize)).0.min(1 << 20) << 20,
    }
}

/// Returns the parsed value of an environment variable, or `default` if the variable is not set. If
/// the value is wrong, prints one line to warn of the value and returns `default`.
fn parsed<T: FromStr<Err: Display>>(get: Get<'_>, name: &str, default: T) -> T {
    let Some(text) = text(get, name) else { return default };
    text.parse().unwrap_or_else(|error: T::Err| {
        warn(format_args!("{name}: {}; ignored", said(&text, &error)));
        default
    })
}

/// Returns the value of an environment variable that must be text. If the value is not valid
/// Unicode, prints one line to warn of the value and returns `None`.
fn text(get: Get<'_>, name: &str) -> Option<String> {
    let refused = |value: OsString| warn(format_args!("{name}={}: {NO_TEXT}; ignored", cut(&value)));
    get(name)?.into_string().map_err(refused).ok()
}

/// Returns whether the value of an environment variable is `1` and not `0`, or `default` if the
/// variable is not set. If it has any other value, prints one line to warn of the value and returns
/// `default`.
fn flag(get: Get<'_>, name: &str, default: bool) -> bool {
    match text(get, name).as_deref() {
        None => default,
        Some("0") => false,
        Some("1") => true,
        Some(other) => {
            warn(format_args!("{name}={}: must be 0 or 1; ignored", cut(other.as_ref())));
            default
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ddtc::internal::target::Level;

    #[test]
    fn wrong_values_are_ignored() {
        let get = |name: &str| match name {
            "DDTC_MODE" => Some("fast".into()),
            "DDTC_TARGET" => Some("baseline".into()),
            "DDTC_CHECK" => Some("1".into()),
            "DDTC_PERF_MAP" => Some("yes".into()),
            _ => None,
        };
        let s = read(&get);
        assert_eq!((s.config.mode, s.config.level), (Mode::Lazy, Level::Baseline));
        assert!(s.check && !s.perf_map && s.report.is_none());
    }

    #[test]
    fn old_names_are_accepted_and_new_ones_win() {
        let get = |name: &str| match name {
            "DDTC_INSIDE" => Some("off".into()),
            "DDTC_BUFFERS" => Some("7".into()),
            "DDTC_STAGING_MIB" => Some("3".into()),
            "DDTC_REMEMBER" => Some("0".into()),
            _ => None,
        };
        let s = read(&|name| by_either_name(&get, name));
        assert_eq!((s.hook, s.staging_bytes, s.profile_cache), (HookChoice::Off, 3 << 20, false));
    }
}
