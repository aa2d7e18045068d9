//! Types that a program makes anew for every step. The measured gain from converting the first
//! types decides whether the later types are converted.

use std::collections::HashMap;
use std::fs;

use crate::setup::{Host, reports, same, scratch, sorted};

const HOSTS: [Host; 3] = [Host::Mpich, Host::Intel, Host::OpenMpi];

/// The types that a job makes one after another: their kind, as `alike.c` names it, their number
/// (`steps`), and the number of messages in either direction for each type (`uses`).
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

/// Runs a job with and without the preload library, asserts that the output is the same, and
/// returns the numbers of each rank's report. `hook` is the value of `DDTC_HOOK`.
fn reported(host: Host, types: Types, hook: &str) -> Vec<HashMap<String, u64>> {
    runs(host, types, hook, 1).pop().unwrap()
}

/// Does what [`reported`] does for `runs` jobs one after another that share one profile cache, and
/// returns the reports of each job.
fn runs(host: Host, types: Types, hook: &str, runs: usize) -> Vec<Vec<HashMap<String, u64>>> {
    let Types { kind, steps, uses } = types;
    let program = host.compile("alike", &[]);
    let run = || host.ranks(2, &program).arg(steps.to_string()).arg(uses.to_string()).arg(kind);
    let bare = sorted(&run().text().0);
    assert_eq!(bare.matches("wrong 0").count(), 2, "{host:?}\n{bare}");
    let folder = scratch(&format!("alike-{host:?}-{kind}-{uses}-{hook}"));
    let said = (0..runs).map(|_| {
        let mut preloaded = run().preload().env("DDTC_POLICY", "measure").env("DDTC_HOOK", hook);
        preloaded.command.env_remove("DDTC_LAZY_THRESHOLD").env_remove("DDTC_FENCES");
        let preloaded = preloaded.env("DDTC_PROFILE_CACHE", "1").env("XDG_CACHE_HOME", &folder);
        let preloaded = preloaded.env("DDTC_REPORT", folder.join("report%r.json"));
        same(&format!("{host:?}"), &sorted(&preloaded.text().0), &bare);
        reports(&folder, 2)
    });
    let said = said.collect();
    fs::remove_dir_all(folder).unwrap();
    said
}

#[test]
fn lists_that_are_new_each_step_are_converted_as_those_before_them() {
    // Each type is used for 20 messages in each direction, of 20,000 bytes each.
    for host in HOSTS {
        for hook in ["off", "on"] {
            for said in reported(host, Types::lists(200, 20), hook) {
                let moved = ["packs", "unpacks", "hook_pieces_packed", "hook_pieces_unpacked"];
                // About half of the messages are converted; without the history of similar types
                // only the last message of each type would be. Under Open MPI the machine and the
                // build decide whether decoding a type pays, so that nothing may be converted
                // there.
                assert!(
                    moved.iter().any(|name| said[*name] > 0) || host == Host::OpenMpi,
                    "{host:?} {said:?}"
                );
                assert_eq!((said["fallbacks"], said["panics"]), (0, 0), "{host:?} {said:?}");
                // The hook must not search the descriptions of Open MPI for a type that the program
                // committed visibly, however long the type waits until it is decoded. It finds at
                // most one type by its description: the substitute datatype of packed messages.
                assert!(said["hook_types_unseen"] <= 1, "{host:?} {said:?}");
            }
        }
    }
}

#[test]
fn types_that_are_used_once_are_bypassed() {
    for host in HOSTS {
        for said in reported(host, Types::lists(400, 1), "on") {
            // A few types are decoded, since all types together have moved many bytes.
            assert!(said["commits"] <= 20, "{host:?} {said:?}");
            assert!(said["packs"] + said["unpacks"] <= 20, "{host:?} {said:?}");
        }
    }
}

#[test]
fn panels_that_are_used_once_are_decoded_once() {
    // The first type of a similarity class is decoded, because nothing is known of similar types
    // yet. Each type is used once in either direction and gets the class of its first use.
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
