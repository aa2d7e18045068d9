//! Tests of datatypes of absolute addresses, which programs use with `MPI_BOTTOM`. The preload
//! library converts these types from their first use on, and the results are compared with those of
//! the unmodified MPI library.

use std::fs;

use crate::setup::{Host, on_some, report, reports, same, scratch, sorted};

const HOSTS: [Host; 3] = [Host::Mpich, Host::Intel, Host::OpenMpi];

#[test]
fn types_of_absolute_addresses_are_served() {
    for host in HOSTS {
        let program = host.compile("bottom", &[]);
        let unmodified = sorted(&host.ranks(2, &program).text().0);
        assert_eq!(unmodified.matches("wrong 0").count(), 2, "{host:?}\n{unmodified}");
        let folder = scratch(&format!("bottom-{host:?}"));
        // The test counts messages that are packed into staging buffers. The convertor hook is off,
        // because it would compile kernels before messages need them and so change the counts.
        let run = host.ranks(2, &program).preload().env("DDTC_POLICY", "all").env("DDTC_HOOK", "off");
        let (text, _) = run.env("DDTC_REPORT", folder.join("report%r.json")).text();
        same(&format!("{host:?}"), &sorted(&text), &unmodified);
        for said in reports(&folder, 2) {
            assert!(said["packs"] > 100 && said["unpacks"] > 70, "{host:?} {said:?}");
            assert!(!said.contains_key("bypassed_null_buffer"), "{host:?} {said:?}");
            // The preload library decodes at least 80 types, which have the same layouts but differ
            // in the addresses of their objects. Types of one layout must share compiled code
            // whatever their addresses are, so at most 16 kernels are compiled.
            assert!(said["commits"] >= 80 && said["compiles"] <= 16, "{host:?} {said:?}");
            assert_eq!((said["fallbacks"], said["panics"]), (0, 0), "{host:?} {said:?}");
        }
        fs::remove_dir_all(folder).unwrap();
        // Each of the following runs must print the same as the unmodified MPI library. In the
        // first two runs only the ranks of one parity have the preload library, so that they
        // exchange messages with ranks that do not have it. Further runs use the interpreter of
        // nests instead of compiled code, compile types when they are committed, and compare with
        // the packing of the MPI library (`DDTC_CHECK`).
        for parity in [0, 1] {
            let text = on_some(host, 2, &program, parity).env("DDTC_POLICY", "all").text().0;
            same(&format!("{host:?} ranks of parity {parity}"), &sorted(&text), &unmodified);
        }
        for (name, value) in [("DDTC_CHECK", "1"), ("DDTC_MODE", "interpret"), ("DDTC_MODE", "commit")] {
            let run = host.ranks(2, &program).preload().env("DDTC_POLICY", "all").env(name, value);
            let (text, errors) = run.text();
            same(&format!("{host:?} {name}={value}\n{errors}"), &sorted(&text), &unmodified);
        }
    }
}

/// Checks a program that allocates sets of objects anew, so that each set has a separate datatype.
/// Under MPICH and Intel MPI, a type is compiled only after calls have moved a threshold of 80 KiB,
/// and the messages of one set have together only 48 KiB in each direction. Nevertheless messages
/// must be converted, because ddtc counts the bytes of all sets together. Under Open MPI the
/// threshold is 0.
#[test]
fn objects_that_are_allocated_anew_share_what_they_moved() {
    for host in HOSTS {
        let program = host.compile("bottom", &[]);
        let unmodified = sorted(&host.ranks(2, &program).arg("fresh").arg("40").text().0);
        assert_eq!(unmodified.matches("wrong 0").count(), 2, "{host:?}\n{unmodified}");
        let folder = scratch(&format!("fresh-{host:?}"));
        let run = host.ranks(2, &program).arg("fresh").arg("40").preload().env("DDTC_POLICY", "all");
        let mut run = run.env("DDTC_HOOK", "off").env("DDTC_REPORT", folder.join("report%r.json"));
        // Open MPI itself moves these messages so fast that with the usual threshold none of the
        // types is worth being decoded. There, the types are compiled at their first use.
        if host != Host::OpenMpi {
            run.command.env_remove("DDTC_LAZY_THRESHOLD");
        }
        same(&format!("{host:?}"), &sorted(&run.text().0), &unmodified);
        for said in reports(&folder, 2) {
            // The program sends 20 messages of 2.4 KiB in either direction for each of 40 sets of
            // objects.
            assert!(said["packs"] > 100 && said["unpacks"] > 100, "{host:?} {said:?}");
            assert_eq!((said["fallbacks"], said["panics"]), (0, 0), "{host:?} {said:?}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}

/// Checks calls that are wrong or end the program. Three kinds of calls (pack, send and receive)
/// pass a null buffer with a type whose displacements are relative to the buffer. Another kind
/// passes a type of absolute addresses at which no memory is mapped. The last kind uses a type that
/// was freed. The program must end as it does without the preload library, with the same exit
/// status or the same error class.
#[test]
fn calls_that_end_a_program_end_it_as_they_do_bare() {
    for host in HOSTS {
        let program = host.compile("bottom", &[]);
        for kind in ["unmapped", "pack", "send", "receive", "freed"] {
            // This call is not tried under Open MPI. The handle of a freed type is a pointer there,
            // to memory that must not be read.
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
            let unmodified = said(host.run(&program));
            for mode in ["lazy", "commit"] {
                let run = host.run(&program).preload().env("DDTC_POLICY", "all").env("DDTC_MODE", mode);
                assert_eq!(said(run), unmodified, "{host:?} {kind} {mode}");
            }
        }
    }
}

/// Checks a program that makes a type for each of its objects and uses each type once. All types
/// have the same layout, which is compiled once for packing and once for unpacking if the threshold
/// of bytes is 0. If the threshold is 80,000 bytes, nothing is compiled.
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
        // In mode `commit` the preload library compiles each type when the program commits it, and
        // converts every call, however much time the compilation has taken.
        let all = run("commit", "80000");
        let calls = ["commits", "packs", "unpacks"].map(|name| all[name]);
        assert_eq!(calls, [800, 400, 400], "{host:?} {all:?}");
        fs::remove_dir_all(folder).unwrap();
    }
}
