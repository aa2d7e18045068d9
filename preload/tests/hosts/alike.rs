//! Types that are made anew for every step: what the first ones gained decides about the ones behind them.

use std::collections::HashMap;
use std::fs;

use crate::setup::{Host, reports, same, scratch, sorted};

const HOSTS: [Host; 3] = [Host::Mpich, Host::Intel, Host::OpenMpi];

/// So many types of so many messages each, with what bare ranks print; the report of each rank.
fn reported(host: Host, steps: u32, uses: u32, inside: &str) -> Vec<HashMap<String, u64>> {
    runs(host, steps, uses, inside, 1).pop().unwrap()
}

/// So many runs one after another, each of which knows what the ones before it have kept.
fn runs(host: Host, steps: u32, uses: u32, inside: &str, runs: usize) -> Vec<Vec<HashMap<String, u64>>> {
    let program = host.compile("alike", &[]);
    let run = || host.ranks(2, &program).arg(steps.to_string()).arg(uses.to_string());
    let bare = sorted(&run().text().0);
    assert_eq!(bare.matches("wrong 0").count(), 2, "{host:?}\n{bare}");
    let folder = scratch(&format!("alike-{host:?}-{uses}-{inside}"));
    let said = (0..runs).map(|_| {
        let mut preloaded = run().preload().env("DDTC_POLICY", "measure").env("DDTC_HOOK", inside);
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
    // 20 messages each way, of 20,000 bytes.
    for host in HOSTS {
        for inside in ["off", "on"] {
            for said in reported(host, 200, 20, inside) {
                let moved = ["packs", "unpacks", "hook_pieces_packed", "hook_pieces_unpacked"];
                // Some half of the messages, and of a type alone the last one. Under Open MPI it is a matter of this machine and of the build whether decoding pays.
                assert!(
                    moved.iter().any(|name| said[*name] > 0) || host == Host::OpenMpi,
                    "{host:?} {said:?}"
                );
                assert_eq!((said["fallbacks"], said["panics"]), (0, 0), "{host:?} {said:?}");
                // What the program shows is not looked for in the host's descriptions, however long it waits to be decoded; what stands for a packed message is.
                assert!(said["hook_types_unseen"] <= 1, "{host:?} {said:?}");
            }
        }
    }
}

#[test]
fn lists_that_are_used_once_are_the_hosts() {
    for host in HOSTS {
        for said in reported(host, 400, 1, "on") {
            // There and back. A few are looked at, since all together have moved much.
            assert!(said["commits"] <= 20, "{host:?} {said:?}");
            assert!(said["packs"] + said["unpacks"] <= 20, "{host:?} {said:?}");
        }
    }
}

#[test]
fn runs_that_gain_nothing_stop_looking() {
    for host in HOSTS {
        let looked = runs(host, 400, 1, "on", 7);
        for rank in 0..2 {
            let looked: Vec<u64> = looked.iter().map(|ranks| ranks[rank]["commits"]).collect();
            assert!(looked[0] <= 20 && looked[6] == 0, "{host:?} {looked:?}");
        }
    }
}
