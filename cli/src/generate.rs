//! `ddtc generate --prefix DIR`: writes the files that are generated from the program and installed
//! with it.
//!
//! The manual pages and the shell completions are generated from the description of the command
//! line. The shipped policy is written as a file that a user may copy and change. The subcommand is
//! hidden; packaging/install.sh and packagers call it.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Command};
use clap_complete::Shell;
use ddtc_hosts::policy::{Family, Library};
use ddtc_hosts::profile::Profile;

/// Arguments of `ddtc generate`.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Folder in which share/man, share/ddtc and the folders of the shells are created
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,
}

/// MPI libraries with which the shipped policy tables were measured.
const MEASURED: [(Family, [u32; 3]); 3] =
    [(Family::Mpich, [5, 0, 2]), (Family::Intel, [2021, 18, 1]), (Family::OpenMpi, [5, 0, 11])];

/// For each shell, the folder below the prefix in which the shell looks for completions, and the
/// name of the file with the completions of `ddtc`.
const SHELLS: [(Shell, &str, &str); 3] = [
    (Shell::Bash, "share/bash-completion/completions", "ddtc"),
    (Shell::Zsh, "share/zsh/site-functions", "_ddtc"),
    (Shell::Fish, "share/fish/vendor_completions.d", "ddtc.fish"),
];

/// Runs the subcommand `ddtc generate`.
///
/// # Errors
/// If a folder or file cannot be created.
pub(crate) fn run(args: &Args, mut command: Command) -> Result<(), Box<dyn Error>> {
    let folder = |name: &str| -> Result<PathBuf, String> {
        let path = args.prefix.join(name);
        fs::create_dir_all(&path).map_err(|e| format!("--prefix: {}: {e}", path.display()))?;
        Ok(path)
    };
    clap_mangen::generate_to(command.clone(), folder("share/man/man1")?)?;
    for (shell, place, name) in SHELLS {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command, "ddtc", &mut text);
        write(&folder(place)?.join(name), &text)?;
    }
    write(&folder("share/ddtc")?.join("policy"), policy().as_bytes())
}

fn write(path: &Path, text: &[u8]) -> Result<(), Box<dyn Error>> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()).into())
}

/// Returns the shipped policy tables in the form that the preload library reads.
fn policy() -> String {
    let mut text = String::from(
        "# The tables that the preload library has built in, for a copy in $XDG_CONFIG_HOME/ddtc/policy or ~/.config/ddtc/policy.\n\
         # Per library and layout class the payloads in bytes that are converted. `ddtc tune` measures one for this machine.\n",
    );
    for (family, version) in MEASURED {
        let library = Library::new(family, version);
        let _ = write!(text, "\nlibrary {library}\n{}", Profile::find(&library).shipped_policy());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use ddtc_hosts::policy::Policy;

    #[test]
    fn the_policy_reads_back() {
        let text = policy();
        for (family, version) in MEASURED {
            let library = Library::new(family, version);
            let read = Policy::parse(&text, &library.to_string()).unwrap();
            assert_eq!(read, Some(Profile::find(&library).shipped_policy()), "{library}");
        }
    }
}
