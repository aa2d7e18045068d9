//! Test that the files in packaging/generated, which are installed with the command, are those that
//! belong to it.
//!
//! The manual pages and the shell completions are generated from the description of the command
//! line. The shipped policy is a file that a user may copy and change. All of them are in the
//! sources, so that neither the command nor an installation has to make them, not even for another
//! machine. `DDTC_BLESS=1` writes them anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use clap_complete::Shell;
use ddtc_hosts::policy::{Family, Library, Policy};
use ddtc_hosts::profile::Profile;

/// Folder with the files, in which each has the path that it gets below the prefix.
const GENERATED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/generated");

/// MPI libraries with which the shipped policy tables were measured.
const MEASURED: [(Family, [u32; 3]); 3] =
    [(Family::Mpich, [5, 0, 2]), (Family::Intel, [2021, 18, 1]), (Family::OpenMpi, [5, 0, 11])];

/// For each shell, the path of the file in which the shell looks for the completions of `ddtc`.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "share/bash-completion/completions/ddtc"),
    (Shell::Zsh, "share/zsh/site-functions/_ddtc"),
    (Shell::Fish, "share/fish/vendor_completions.d/ddtc.fish"),
];

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

/// Returns the text of each file, by its path.
fn generated() -> BTreeMap<String, String> {
    let mut files = BTreeMap::from([("share/ddtc/policy".to_owned(), policy())]);
    let mut command = crate::command::<crate::Installed>();
    let mut shown = command.clone().disable_help_subcommand(true);
    shown.build();
    pages(&shown, &mut files);
    for (shell, path) in SHELLS {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command, "ddtc", &mut text);
        files.insert(path.to_owned(), String::from_utf8(text).unwrap());
    }
    files
}

/// Adds the manual pages of a command and of the subcommands that its help shows.
fn pages(command: &clap::Command, files: &mut BTreeMap<String, String>) {
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text).unwrap();
    files.insert(format!("share/man/man1/{}", page.get_filename()), String::from_utf8(text).unwrap());
    for subcommand in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        pages(subcommand, files);
    }
}

/// Returns the text of each file in the folder `at`, by its path below `root`.
fn there(root: &Path, at: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(at).into_iter().flatten().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            there(root, &entry.path(), files);
        } else {
            let path = entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            files.insert(path, fs::read_to_string(entry.path()).unwrap());
        }
    }
}

#[test]
fn installed_files_are_those_of_the_command() {
    let (root, wanted) = (Path::new(GENERATED), generated());
    if std::env::var_os("DDTC_BLESS").is_some() {
        let _ = fs::remove_dir_all(root);
        for (path, text) in &wanted {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
    }
    let mut found = BTreeMap::new();
    there(root, root, &mut found);
    for path in wanted.keys().chain(found.keys()) {
        assert!(
            found.get(path) == wanted.get(path),
            "packaging/generated/{path} is not what the command and the policy tables say: \
             DDTC_BLESS=1 cargo test -p ddtc-cli --lib generate"
        );
    }
}

#[test]
fn the_policy_reads_back() {
    let text = policy();
    for (family, version) in MEASURED {
        let library = Library::new(family, version);
        let read = Policy::parse(&text, &library.to_string()).unwrap();
        assert_eq!(read, Some(Profile::find(&library).shipped_policy()), "{library}");
    }
}
