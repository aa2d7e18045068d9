//! Tests of which crates cargo compiles, read from cargo's unit graphs. `cargo test`, together with
//! the builds that tests start, must compile each crate once. The exceptions are the libraries
//! `ddtc`, `ddtc-gpu` and `ddtc-hosts`, which are compiled twice, and Cranelift on machines for
//! which ddtc has no templates.

#[path = "../preload/tests/hosts/build.rs"]
mod build;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// One way to compile a target. The first part is a hash of the target's package, mode, platform,
/// features and profile, and of the same data of its dependencies. The second part is the set of
/// its features.
type Variant = (String, BTreeSet<String>);

/// Returns `NAME@VERSION` for a package identifier of cargo. The identifier lacks the name if the
/// package's folder has the same name.
fn package(id: &str) -> String {
    let (place, package) = id.rsplit_once('#').unwrap();
    if package.contains('@') {
        package.to_owned()
    } else {
        format!("{}@{package}", place.rsplit('/').next().unwrap())
    }
}

#[test]
fn packages_have_their_names_wherever_they_are() {
    for id in [
        "path+file:///home/src#ddtc@0.1.1",
        "path+file:///home/ddtc#0.1.1",
        "registry+https://host/index#ddtc@0.1.1",
    ] {
        assert_eq!(package(id), "ddtc@0.1.1", "{id}");
    }
}

/// Returns the units that a call of cargo compiles in mode `build`, by package and target. Units
/// that are compiled as tests, or are only checked, have other modes and are left out.
fn units(arguments: &[&str]) -> BTreeMap<String, BTreeSet<Variant>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments);
    cargo.args(["--offline", "--locked", "--unit-graph", "-Z", "unstable-options"]);
    // The option `--unit-graph` is not stable yet. The variable `RUSTC_BOOTSTRAP` lets a stable
    // cargo accept it.
    let output = cargo.env("RUSTC_BOOTSTRAP", "1").output().expect("cargo");
    assert!(output.status.success(), "{cargo:?}: {}", String::from_utf8_lossy(&output.stderr));
    let graph: Value = serde_json::from_slice(&output.stdout).expect("a unit graph");
    let units = graph["units"].as_array().expect("units");
    let mut known = vec![None; units.len()];
    let mut found: BTreeMap<String, BTreeSet<Variant>> = BTreeMap::new();
    for (i, unit) in units.iter().enumerate() {
        if unit["mode"] == "build" {
            let package = package(unit["pkg_id"].as_str().unwrap());
            let name = format!("{package} {} {}", unit["target"]["name"], unit["target"]["kind"][0]);
            let features =
                unit["features"].as_array().unwrap().iter().map(|f| f.as_str().unwrap().to_owned());
            found.entry(name).or_default().insert((variant(units, i, &mut known), features.collect()));
        }
    }
    found
}

fn variant(units: &[Value], i: usize, known: &mut Vec<Option<String>>) -> String {
    if let Some(text) = &known[i] {
        return text.clone();
    }
    let unit = &units[i];
    // The profiles `test` and `dev` have the same settings, so the name of the profile is removed
    // before the comparison.
    let mut profile = unit["profile"].clone();
    profile.as_object_mut().unwrap().remove("name");
    let dependencies: BTreeSet<String> = unit["dependencies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| variant(units, d["index"].as_u64().unwrap() as usize, known))
        .collect();
    let own = ["pkg_id", "mode", "platform", "features"].map(|name| unit[name].to_string());
    let text = format!("{own:?} {} {profile} {dependencies:?}", unit["target"]["name"]);
    // At this point the text contains the whole tree of dependencies, so only its hash is kept.
    let text = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(text.as_bytes()));
    known[i] = Some(text.clone());
    text
}

#[test]
fn each_crate_is_compiled_once() {
    // Collect the units of the fast tier, which is `cargo test`. Then collect the units of the
    // package `ddtc-e2e` and of the packages that tests build. All of these calls use the same
    // target folder.
    let mut all = units(&["test", "--no-run"]);
    let tested = all.clone();
    let mut calls = vec![vec!["test", "--no-run", "--package", "ddtc-e2e"]];
    calls
        .extend(build::BUILDS.map(|(package, options)| [&["build", "--package", package], options].concat()));
    for call in calls {
        for (name, variants) in units(&call) {
            all.entry(name).or_default().extend(variants);
        }
    }
    assert!(tested.len() > 100 && all.len() > tested.len(), "{} and {} targets", tested.len(), all.len());
    let several: Vec<_> = all.iter().filter(|(_, variants)| variants.len() > 1).collect();
    // The library `ddtc` is compiled once for the tests and the command, and once for the libraries
    // that are installed. `ddtc-gpu` and `ddtc-hosts` depend on `ddtc`, so they are compiled twice
    // as well.
    let ours = ["ddtc", "ddtc-gpu", "ddtc-hosts"].map(|package| {
        format!("{package}@{} \"{}\" \"lib\"", env!("CARGO_PKG_VERSION"), package.replace('-', "_"))
    });
    // On machines for which ddtc has no templates, the libraries contain Cranelift, with the back
    // end of that machine alone. Tests have those of other machines, too.
    let may = |name: &String| {
        ours.contains(name) || (cfg!(not(target_arch = "x86_64")) && name.starts_with("cranelift-"))
    };
    assert!(several.iter().all(|(name, _)| may(name)), "compiled more than once: {several:#?}");
    for name in &ours {
        let libraries = &all[name];
        assert_eq!(libraries.len(), 2, "{name}: {libraries:#?}");
        assert!(tested[name].is_subset(libraries));
    }
}

/// Tests that the packages that are built to be run contain no back end of Cranelift for another
/// architecture. On x86-64, where the emitter uses templates, the libraries contain no Cranelift at
/// all.
#[test]
fn what_is_installed_is_lean() {
    for (package, options) in build::BUILDS {
        let features_of = |prefix: &str, found: &BTreeMap<String, BTreeSet<Variant>>| {
            let features = found.iter().filter(|(name, _)| name.starts_with(prefix));
            features.flat_map(|(_, variants)| variants.clone()).flat_map(|v| v.1).collect::<BTreeSet<_>>()
        };
        let found = units(&["build", "--package", package]);
        let cranelift = features_of("cranelift-codegen@", &found);
        assert!(["arm64", "riscv64"].iter().all(|back_end| !cranelift.contains(*back_end)), "{package}");
        if package != "ddtc-cli" && cfg!(target_arch = "x86_64") {
            assert!(cranelift.is_empty(), "{package} has Cranelift");
        }
        let for_tests =
            features_of("cranelift-codegen@", &units(&[&["build", "--package", package], options].concat()));
        assert_eq!(for_tests.contains("riscv64"), package == "ddtc-cli", "tests ask for the same as others");
    }
}

/// Tests that every library that is shipped contains Cranelift on aarch64. Without it, the crate
/// `ddtc` does not compile there, since it has no templates for that architecture. A workspace that
/// is compiled as a whole would not show it, since one member then brings the feature for all.
#[test]
fn what_is_shipped_has_an_emitter_on_aarch64() {
    for package in ["ddtc-capi", "ddtc-preload", "ddtc-python", "ddtc-yaksa"] {
        let found = units(&["build", "--package", package, "--target", "aarch64-unknown-linux-gnu"]);
        assert!(found.keys().any(|name| name.starts_with("cranelift-codegen@")), "{package}");
    }
}

/// Tests that each set of cargo features brings only the packages that it needs. The command that
/// is built in a checkout contains Cranelift; on x86-64, the command that is shipped does not.
#[test]
fn features_bring_their_packages() {
    let has = |arguments: &[&str], package: &str| {
        let found = units(&[&["build", "--package"], arguments].concat());
        found.keys().any(|name| name.starts_with(&format!("{package}@")))
    };
    for (features, cranelift, arithmetic) in [
        (&["--no-default-features"][..], false, false),
        (&["--no-default-features", "--features", "copies"], false, false),
        (&["--no-default-features", "--features", "operations"], false, true),
        (&["--no-default-features", "--features", "internal"], false, true),
        (&["--no-default-features", "--features", "cranelift"], true, false),
        (&[], true, true),
    ] {
        let build = [&["ddtc"], features].concat();
        assert_eq!(has(&build, "cranelift-codegen"), cranelift, "{features:?}");
        assert_eq!(has(&build, "rustc_apfloat"), arithmetic, "{features:?}");
    }
    assert!(has(&["ddtc-cli"], "cranelift-codegen"), "the command of a checkout has both emitters");
    let shipped = |features: &str| has(&["ddtc-cli", "--no-default-features", features], "cranelift-codegen");
    assert!(shipped("--features=cranelift") && !shipped("--features="));
    for script in ["install.sh", "wheel.sh"] {
        let path = format!("{}/packaging/{script}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains("--no-default-features --features"), "{script}");
    }
}

/// Tests that only Cargo.lock pins versions of dependencies. If the manifest pinned them, programs
/// that depend on ddtc could not use a newer release of a dependency in which a fault is fixed.
#[test]
fn the_manifest_pins_no_foreign_crate() {
    let manifest = include_str!("../Cargo.toml");
    let pinned: Vec<&str> = manifest.lines().filter(|line| line.contains("\"=")).collect();
    assert!(pinned.is_empty(), "{pinned:#?}");
    assert!(manifest.contains("\ncranelift-codegen = { version = \"0.135"), "the dependencies are looked at");
}

/// Tests that release builds unwind after a panic instead of aborting. They must, because C++
/// exceptions of the program pass through the wrappers of the preload library.
#[test]
fn what_is_shipped_unwinds() {
    let manifest = include_str!("../Cargo.toml");
    let profile = |name: &str| {
        let begin = format!("[profile.{name}]\n");
        let section = manifest.split_once(&begin).expect("a profile").1;
        section.split("\n[").next().expect("its lines").lines().collect::<Vec<_>>()
    };
    assert!(profile("release").contains(&"panic = \"unwind\""));
    assert!(profile("dist").contains(&"inherits = \"release\""));
    let others: Vec<&str> = manifest.lines().filter(|line| line.starts_with("panic")).collect();
    assert_eq!(others, ["panic = \"unwind\""]);
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/packaging")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "sh") {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(!text.contains("panic="), "{} changes how panics end", path.display());
        }
    }
}
