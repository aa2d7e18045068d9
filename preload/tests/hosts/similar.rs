//! Tests of programs that make new datatypes in every step. The preload library measures what it
//! gains from converting the first types, and this gain decides whether it converts the later
//! types.

use std::collections::HashMap;
use std::fs;

use crate::setup::{Host, reports, same, scratch, sorted};

const HOSTS: [Host; 3] = [Host::Mpich, Host::Intel, Host::OpenMpi];

/// The datatypes that the C program `similar` makes one after another: their kind (`list`, `panel`
/// or `dense`), their number (`steps`), and the number of messages that are sent in either
/// direction for each type (`uses`).
#[derive(Clone, Copy)]
struct Types {
    kind: &'static str,
    steps: u32,
    uses: u32,
}

impl Types {
    const fn lists(steps: u32, uses: u32) -> Types {
        Types { kind: "list", steps, uses }
    }
}

/// Runs the program `similar` on two ranks, without and with the preload library, asserts that the
/// output is the same, and returns the counters in the report of each rank. `hook` is the value of
/// `DDTC_HOOK`.
fn reported(host: Host, types: Types, hook: &str) -> Vec<HashMap<String, u64>> {
    runs(host, types, hook, 1).pop().unwrap()
}

/// Runs the program `similar` with the preload library `runs` times, one run after another with one
/// profile cache. Asserts that the output is that of a run without the preload library, and returns
/// the reports of all ranks for each run.
fn runs(host: Host, types: Types, hook: &str, runs: usize) -> Vec<Vec<HashMap<String, u64>>> {
    let Types { kind, steps, uses } = types;
    let program = host.compile("similar", &[]);
    let run = || host.ranks(2, &program).arg(steps.to_string()).arg(uses.to_string()).arg(kind);
    let unmodified = sorted(&run().text().0);
    assert_eq!(unmodified.matches("wrong 0").count(), 2, "{host:?}\n{unmodified}");
    let folder = scratch(&format!("similar-{host:?}-{kind}-{uses}-{hook}"));
    let said = (0..runs).map(|_| {
        let mut preloaded = run().preload().env("DDTC_POLICY", "measure").env("DDTC_HOOK", hook);
        preloaded.command.env_remove("DDTC_LAZY_THRESHOLD").env_remove("DDTC_FENCES");
        let preloaded = preloaded.env("DDTC_PROFILE_CACHE", "1").env("XDG_CACHE_HOME", &folder);
        let preloaded = preloaded.env("DDTC_REPORT", folder.join("report%r.json"));
        same(&format!("{host:?}"), &sorted(&preloaded.text().0), &unmodified);
        reports(&folder, 2)
    });
    let said = said.collect();
    fs::remove_dir_all(folder).unwrap();
    said
}

#[test]
fn lists_that_are_new_each_step_are_converted_as_those_before_them() {
    // Each of the 200 types is used for 20 messages in each direction. A message has 20,000 bytes.
    for host in HOSTS {
        for hook in ["off", "on"] {
            for said in reported(host, Types::lists(200, 20), hook) {
                let moved = ["packs", "unpacks", "hook_pieces_packed", "hook_pieces_unpacked"];
                // About half of the messages are converted. If the preload library kept no history
                // of similar types, it would convert only the last message of each type. Under Open
                // MPI the machine and the build decide whether decoding a type pays, so it may be
                // that no message is converted there.
                assert!(
                    moved.iter().any(|name| said[*name] > 0) || host == Host::OpenMpi,
                    "{host:?} {said:?}"
                );
                assert_eq!((said["fallbacks"], said["panics"]), (0, 0), "{host:?} {said:?}");
                // The convertor hook finds types that the program committed visibly by their
                // handles. It must not search the descriptions of Open MPI for such a type, however
                // long the type waits until it is decoded. The hook finds at most one type by its
                // description: the substitute datatype of packed messages.
                assert!(said["hook_types_unseen"] <= 1, "{host:?} {said:?}");
            }
        }
    }
}

#[test]
fn types_that_are_used_once_are_bypassed() {
    for host in HOSTS {
        for said in reported(host, Types::lists(400, 1), "on") {
            // Each of the 400 types is used for one message in each direction. A few of the types
            // are decoded nevertheless, since all types together have moved many bytes.
            assert!(said["commits"] <= 20, "{host:?} {said:?}");
            assert!(said["packs"] + said["unpacks"] <= 20, "{host:?} {said:?}");
        }
    }
}

#[test]
fn panels_that_are_used_once_are_decoded_once() {
    // The preload library decodes the first type of a similarity class, because nothing is known of
    // similar types yet. Each type is used once in either direction, and is assigned to the class
    // of its first use.
    for (host, kind) in HOSTS.into_iter().flat_map(|host| ["panel", "dense"].map(|kind| (host, kind))) {
        for said in reported(host, Types { kind, steps: 100, uses: 1 }, "off") {
            assert!(said["commits"] <= 4, "{host:?} {kind} {said:?}");
        }
    }
}

#[test]
fn runs_that_gain_nothing_stop_looking() {
    for host in HOSTS {
        let looked = runs(host, Types::lists(400, 1), "on", 7);
        for rank in 0..2 {
            let looked: Vec<u64> = looked.iter().map(|ranks| ranks[rank]["commits"]).collect();
            assert!(looked[0] <= 20 && looked[6] == 0, "{host:?} {looked:?}");
        }
    }
}
