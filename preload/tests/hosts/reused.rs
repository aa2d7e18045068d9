//! Tests of the convertor hook of Open MPI with convertors that serve one request after another.
//! The hook must not rely on state that an earlier request left in a convertor.

use crate::setup::{Host, Run, library};
use crate::strangers::disguised;

const HOSTS: [Host; 2] = [Host::OpenMpi, Host::OpenMpi4];

const FLAGS: [&str; 2] = ["-Wno-unused-function", "-ldl"];

/// Asserts that a run of the program `reused` made `trials` trials, in which the hook served
/// `served` convertors that were used again, and that no trial gave a wrong result.
fn holds(run: Run, trials: u32, served: u32, what: &str) {
    let (text, errors) = run.env("DDTC_POLICY", "none").text();
    let expected = format!("trials {trials}, served again {served}, wrong 0");
    assert_eq!(text.trim(), expected, "{what}\n{errors}");
}

#[test]
fn convertors_that_are_used_again_do_what_the_host_does() {
    for host in HOSTS {
        let program = host.compile("reused", &FLAGS);
        for inside in ["on", "check"] {
            let run = host.run(&program).preload().env("DDTC_HOOK", inside);
            holds(run, 4368, 1024, &format!("{host:?} {inside}"));
        }
    }
}

/// Checks the convertor hook with convertors of Open MPI 6.0. This release is not built here. The
/// library `since6.c` implements its convertors on top of those of the installed release.
#[test]
fn convertors_of_6_0_that_are_used_again_do_what_the_host_does() {
    for host in HOSTS {
        let replacement = host.compile("since6", &["-shared", "-fPIC", "-ldl"]);
        let program = host.compile("reused", &["-DSINCE_6", FLAGS[0], FLAGS[1]]);
        let loaded = [library(), disguised(host, "6.0.0"), replacement.clone()];
        let loaded = loaded.map(|library| library.display().to_string()).join(":");
        let run = host.run(&program).env("LD_PRELOAD", &loaded).env("DDTC_REPLACEMENT", &replacement);
        holds(run, 3344, 768, &format!("{host:?}"));
    }
}

/// Checks a program that redistributes arrays between ranks. Its requests alternate between
/// contiguous and other types, and it frees the types soon, so that convertors and types are used
/// again.
#[test]
fn arrays_are_redistributed_by_types_that_are_made_anew() {
    for host in HOSTS {
        let program = host.compile("redistributions", &[]);
        for (mode, policy) in [("unseen", "table"), ("seen", "all")] {
            for seed in ["1", "2"] {
                let run = host.ranks(2, &program).preload().env("DDTC_POLICY", policy);
                let (text, errors) = run.arg("600").arg(seed).arg(mode).text();
                assert_eq!(text.trim(), "wrong 0", "{host:?} {mode} {seed}\n{errors}");
            }
        }
    }
}
