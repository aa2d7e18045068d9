//! Tests of packaging/release.sh, the script that makes the files of a release.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::install::{done, refused, script};
use crate::setup::scratch;

/// Checks packaging/release.sh. The script has no default for the three variables with the
/// addresses and the maintainer, contains no address itself, and prints no commands for publishing
/// unless all three variables are set.
#[test]
fn a_release_invents_no_address() {
    let release = script().parent().unwrap().join("release.sh");
    refused(&mut Command::new(&release), "--out DIR is needed");
    refused(Command::new(&release).args(["--out", "/tmp"]), "is there already");
    let text = fs::read_to_string(&release).unwrap();
    for variable in ["REPOSITORY", "MAINTAINER", "ARCHIVE_URL"] {
        assert!(text.contains(&format!("\n{variable}=${{{variable}-}}\n")), "{variable} is empty by default");
    }
    assert!(!text.contains("://"), "{text}");
    let (_, printed) = text.split_once("must say where, and by whom").unwrap();
    assert!(printed.trim_start_matches('"').trim_start().starts_with("exit\n"), "{printed}");
    assert!(!text.split_once("must say where").unwrap().0.contains("cargo publish"), "{text}");
}

/// Runs packaging/release.sh in a small repository of the test, in which the scripts that it calls
/// only record how they are called.
#[test]
fn a_version_is_released_once_and_into_the_folder_of_the_caller() {
    let folder = scratch("release");
    let tree = folder.join("tree");
    let packaging = tree.join("packaging");
    fs::create_dir_all(&packaging).unwrap();
    for name in ["machine.sh", "release.sh"] {
        fs::copy(script().parent().unwrap().join(name), packaging.join(name)).unwrap();
    }
    for name in ["archive.sh", "deb.sh", "prefixes.sh", "sbom.py", "sources.sh", "wheel.sh"] {
        let file = packaging.join(name);
        // The script in place of `sources.sh` also writes an archive of sources, since the recipes
        // get the checksum of this archive.
        let text = "#!/bin/sh\necho \"${0##*/} $1 ${DESTDIR-} ${INSTALL_BUILT-} $MAINTAINER.\" >> ../called\n\
                    [ -z \"$2\" ] || mkdir -p \"$2\"\n[ \"${0##*/}\" != sources.sh ] || echo sources > \"$2/ddtc-1.2.3-vendored.tar.xz\"\n";
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let git = |args: &[&str]| {
        let who = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
        done(Command::new("git").arg("-C").arg(&tree).args(who).args(args))
    };
    let commit = |file: &str, text: &str| {
        fs::write(tree.join(file), text).unwrap();
        git(&["add", "."]);
        git(&["commit", "--quiet", "--message", file]);
    };
    fs::create_dir(packaging.join("recipes")).unwrap();
    fs::copy(script().parent().unwrap().join("recipes/fill.sh"), packaging.join("recipes/fill.sh")).unwrap();
    for name in ["ddtc.eb.in", "recipe.yaml.in"] {
        let text = "@VERSION@ @RUST@ @SHA256@\n@ADDRESS@\n@LOCAL@\nhere\n@END@\n  homepage: @HOMEPAGE@\n";
        fs::write(packaging.join("recipes").join(name), text).unwrap();
    }
    git(&["init", "--quiet"]);
    let release = |out: &str| {
        let mut command = Command::new("tree/packaging/release.sh");
        command.current_dir(&folder).args(["--out", out]);
        command.env("DESTDIR", "/nowhere").env("INSTALL_BUILT", "/nowhere");
        command.envs([("REPOSITORY", "a b;c"), ("MAINTAINER", " \n"), ("ARCHIVE_URL", "ad|d&r\\ess")]);
        command
    };
    commit("Cargo.toml", "[workspace.package]\nversion = \"1.2.3\"\nrust-version = \"1.9\"\n");
    commit("CHANGELOG.md", "## 11.2.3 (today)\n\nother\n\n## 1.2.30\n\nother\n");
    // The script in place of `sbom.py` prints no notices.
    commit("THIRD-PARTY", "");
    commit("packaging/released", "# The last one.\n1.2.3 commit date\n");
    refused(&mut release("out"), "1.2.3 is released already");
    commit("packaging/released", "# The last one.\n1.2.30 commit date\n");
    refused(&mut release("out"), "no section for 1.2.3");
    commit("CHANGELOG.md", "## 11.2.3\n\nother\n\n## 1.2.3 (today)\n\nthis one\n\n## 1.2.2\n\nother\n");
    // Uncommitted changes are refused, and a step that fails leaves no folder.
    fs::write(tree.join("new"), "").unwrap();
    refused(&mut release("out"), "the working tree has changes");
    fs::remove_file(tree.join("new")).unwrap();
    commit("THIRD-PARTY", "of another version\n");
    refused(&mut release("out"), "THIRD-PARTY does not have the notices");
    commit("THIRD-PARTY", "");
    let wheel = packaging.join("wheel.sh");
    let text = fs::read_to_string(&wheel).unwrap();
    commit("packaging/wheel.sh", "#!/bin/sh\nexit 9\n");
    assert_eq!(release("out").output().unwrap().status.code(), Some(9));
    let left: BTreeSet<String> =
        fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(left, ["called", "tree"].map(str::to_owned).into());
    commit("packaging/wheel.sh", &text);
    fs::remove_file(folder.join("called")).unwrap();
    // The variable `MAINTAINER` has only blanks. It counts as missing, for the commands that
    // publish the release and for the Debian package.
    let said = done(&mut release("out"));
    assert!(said.contains("no commands to publish it") && !said.contains("git push"), "{said}");
    assert_eq!(fs::read_to_string(folder.join("out/notes.md")).unwrap().trim(), "this one");
    assert!(!tree.join("out").exists());
    let called = fs::read_to_string(folder.join("called")).unwrap();
    let list = format!("sbom.py {}", std::env::consts::ARCH);
    let steps = [
        "sbom.py --notices",
        "archive.sh --out",
        "prefixes.sh --out",
        "deb.sh --out",
        "wheel.sh --out",
        "sources.sh --out",
        &list,
    ];
    assert_eq!(called, steps.map(|step| format!("{step}   .\n")).concat());
    let sums = fs::read_to_string(folder.join("out/SHA256SUMS")).unwrap();
    let sum = sums.lines().find_map(|line| line.strip_suffix("  ddtc-1.2.3-vendored.tar.xz")).expect("a sum");
    for recipe in ["ddtc-1.2.3.eb", "recipe.yaml"] {
        assert_eq!(
            fs::read_to_string(folder.join("out").join(recipe)).unwrap(),
            format!("1.2.3 1.9 {sum}\nad|d&r\\ess/v1.2.3\n")
        );
    }
    // Without an address, the recipes expect the archive in their own folder. The repository is
    // their home page only if browsers can show it.
    let mut fill = Command::new("sh");
    fill.arg(packaging.join("recipes/fill.sh")).arg(folder.join("out"));
    done(fill.env("REPOSITORY", "https://example.org/ddtc").env_remove("ARCHIVE_URL"));
    let filled = fs::read_to_string(folder.join("out/recipe.yaml")).unwrap();
    assert_eq!(filled, format!("1.2.3 1.9 {sum}\nhere\n  homepage: https://example.org/ddtc\n"));
    refused(&mut release("out"), "out: is there already");
    // The printed commands quote the blank and the semicolon in the address, so that a shell reads
    // them as they are meant.
    let said = done(release("second").env("MAINTAINER", "A <a@b>"));
    let tag =
        format!("-m ddtc\\ 1.2.3 {} && git push a\\ b\\;c v1.2.3\n", git(&["rev-parse", "HEAD"]).trim());
    assert!(said.contains(&tag), "{said}");
    // The files of another machine are added to a release of the same commit, with new checksums.
    let merge = || {
        let mut command = Command::new(script().parent().unwrap().join("merge.sh"));
        command.current_dir(&folder).args(["second", "other"]);
        command
    };
    let shell = |text: &str| done(Command::new("sh").current_dir(&folder).args(["-c", text]));
    shell("cp -r second other");
    refused(&mut merge(), "second has all files of other");
    shell("cd other && echo new >'another machine' && sha256sum 'another machine' >>SHA256SUMS");
    assert_eq!(done(&mut merge()), "another machine\n");
    assert!(shell("cd second && sha256sum --check SHA256SUMS").contains("another machine: OK"));
    shell("echo others >other/notes.md");
    refused(&mut merge(), "other: not as SHA256SUMS says");
    shell("cd other && rm SHA256SUMS && sha256sum * >../sums && mv ../sums SHA256SUMS");
    refused(&mut merge(), "notes.md differs in the two folders");
    git(&["tag", "v1.2.3"]);
    refused(&mut release("third"), "the tag v1.2.3 exists already");
    fs::remove_dir_all(folder).unwrap();
}
