//! Types of absolute addresses with `MPI_BOTTOM`: served, judged against the bare host, at the first use of each type.

use std::fs;

use crate::setup::{Host, on_some, report, reports, same, scratch, sorted};

const HOSTS: [Host; 3] = [Host::Mpich, Host::Intel, Host::OpenMpi];

#[test]
fn types_of_absolute_addresses_are_served() {
    for host in HOSTS {
        let program = host.compile("bottom", &[]);
        let bare = sorted(&host.ranks(2, &program).text().0);
        assert_eq!(bare.matches("wrong 0").count(), 2, "{host:?}\n{bare}");
        let folder = scratch(&format!("bottom-{host:?}"));
        // Counted is what is staged; inside a host kernels are made ahead.
        let run = host.ranks(2, &program).preload().env("DDTC_POLICY", "all").env("DDTC_HOOK", "off");
        let (text, _) = run.env("DDTC_REPORT", folder.join("report%r.json")).text();
        same(&format!("{host:?}"), &sorted(&text), &bare);
        for said in reports(&folder, 2) {
            assert!(said["packs"] > 100 && said["unpacks"] > 70, "{host:?} {said:?}");
            assert!(!said.contains_key("bypassed_null_buffer"), "{host:?} {said:?}");
            // 2 layouts in 6 places: what is at another address is not compiled again.
            assert!(said["commits"] >= 80 && said["compiles"] <= 16, "{host:?} {said:?}");
            assert_eq!((said["fallbacks"], said["panics"]), (0, 0), "{host:?} {said:?}");
        }
        fs::remove_dir_all(folder).unwrap();
        // To and from ranks that do not convert; by the interpreter; compared with the host's own packing.
        for parity in [0, 1] {
            let text = on_some(host, 2, &program, parity).env("DDTC_POLICY", "all").text().0;
            same(&format!("{host:?} ranks of parity {parity}"), &sorted(&text), &bare);
        }
        for (name, value) in [("DDTC_CHECK", "1"), ("DDTC_MODE", "interpret"), ("DDTC_MODE", "commit")] {
            let run = host.ranks(2, &program).preload().env("DDTC_POLICY", "all").env(name, value);
            let (text, errors) = run.text();
            same(&format!("{host:?} {name}={value}\n{errors}"), &sorted(&text), &bare);
        }
    }
}

/// Objects that a program allocates anew, of which none moves enough to be compiled by itself: what the others moved counts.
#[test]
fn objects_that_are_allocated_anew_share_what_they_moved() {
    for host in HOSTS {
        let program = host.compile("bottom", &[]);
        let bare = sorted(&host.ranks(2, &program).arg("fresh").arg("40").text().0);
        assert_eq!(bare.matches("wrong 0").count(), 2, "{host:?}\n{bare}");
        let folder = scratch(&format!("fresh-{host:?}"));
        let run = host.ranks(2, &program).arg("fresh").arg("40").preload().env("DDTC_POLICY", "all");
        let run = run.env("DDTC_HOOK", "off").env("DDTC_REPORT", folder.join("report%r.json"));
        same(&format!("{host:?}"), &sorted(&run.text().0), &bare);
        for said in reports(&folder, 2) {
            // 20 messages of 2.5 KB for each set, 80 KiB for the first layouts; how many are converted is a matter of the time spent.
            assert!(said["packs"] > 100 && said["unpacks"] > 100, "{host:?} {said:?}");
            assert_eq!((said["fallbacks"], said["panics"]), (0, 0), "{host:?} {said:?}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}

/// A null buffer of a type without addresses, a type where nothing is mapped, one that was freed: the host's own end, by signal or error class.
#[test]
fn calls_that_end_a_program_end_it_as_they_do_bare() {
    for host in HOSTS {
        let program = host.compile("bottom", &[]);
        for kind in ["unmapped", "pack", "send", "receive", "freed"] {
            // A freed handle of Open MPI's is a pointer to what nobody may read.
            if kind == "freed" && host == Host::OpenMpi {
                continue;
            }
            let said = |run: crate::setup::Run| {
                let out = run.arg(kind).output();
                (
                    out.status.code(),
                    crate::setup::lossy(&out.stdout).lines().find(|l| l.contains("class")).map(str::to_owned),
                )
            };
            let bare = said(host.run(&program));
            for mode in ["lazy", "commit"] {
                let run = host.run(&program).preload().env("DDTC_POLICY", "all").env("DDTC_MODE", mode);
                assert_eq!(said(run), bare, "{host:?} {kind} {mode}");
            }
        }
    }
}

/// A rank that makes a type for each of its objects compiles the layout once, and pays nothing where it uses each once.
#[test]
fn a_type_used_once_is_not_decoded() {
    for host in HOSTS {
        let folder = scratch(&format!("once-{host:?}"));
        let file = folder.join("report.json");
        let run = |mode: &str, threshold: &str| {
            let program = host.compile("bypassed", &[]);
            let run = host.run(program).arg("addresses").arg("400").preload().env("DDTC_POLICY", "all");
            run.env("DDTC_MODE", mode).env("DDTC_LAZY_THRESHOLD", threshold).env("DDTC_REPORT", &file).text();
            report(&fs::read_to_string(&file).unwrap())
        };
        let once = run("lazy", "80000");
        assert!(once["commits"] <= 2 && once["compiles"] == 0, "{host:?} {once:?}");
        assert_eq!(once["bypassed_used_too_little"], 400, "{host:?} {once:?}");
        let at_once = run("lazy", "0");
        assert_eq!((at_once["commits"], at_once["compiles"]), (800, 2), "{host:?} {at_once:?}");
        // Who asks for that pays for every commit, and has every call converted, whatever that has cost.
        let all = run("commit", "80000");
        let calls = ["commits", "packs", "unpacks"].map(|name| all[name]);
        assert_eq!(calls, [800, 400, 400], "{host:?} {all:?}");
        fs::remove_dir_all(folder).unwrap();
    }
}
