//! Tests of misplaced types: datatypes whose bytes an MPI library moves from or to other places
//! than the standard defines. ddtc leaves such types to the MPI library, so that a program that
//! uses a misplaced type at both ends of a transfer is as right as without ddtc. `repro.txt` lists
//! runs of the same program, `misplaced`, under every setting.

use std::collections::HashMap;
use std::fs;

use crate::setup::{Host, report, reports, scratch};

const HOSTS: [Host; 4] = [Host::Mpich, Host::Intel, Host::OpenMpi, Host::OpenMpi4];

/// Runs the program `misplaced`, which must find nothing wrong, on two ranks with the preload
/// library, and returns the reports of both ranks.
fn right(host: Host, flags: &[&str], args: [&str; 2], way: &[(&str, &str)]) -> Vec<HashMap<String, u64>> {
    let what = format!("{host:?} {args:?} {way:?}");
    let program = host.compile("misplaced", &[flags, &["-ldl"]].concat());
    let folder = scratch(&format!("misplaced-{host:?}-{}", args[0]));
    let run = host
        .ranks(2, program)
        .arg(args[0])
        .arg(args[1])
        .preload()
        .env("DDTC_REPORT", folder.join("report%r.json"));
    let run = way.iter().fold(run, |run, (name, value)| run.env(name, value));
    let (text, errors) = run.text();
    assert_eq!(text.trim(), "wrong 0", "{what}\n{errors}");
    let said = reports(&folder, 2);
    fs::remove_dir_all(folder).unwrap();
    for said in &said {
        assert_eq!((said["panics"], said["faults_of_ddtc"]), (0, 0), "{what} {said:?}");
    }
    said
}

#[test]
fn types_of_known_faults_are_not_converted() {
    for (host, kind, types) in [(Host::Intel, "darray", 2), (Host::Mpich, "negative", 1)] {
        for said in right(host, &[], [kind, "20"], &[("DDTC_POLICY", "all")]) {
            let converted = said["messages_packed"] + said["messages_unpacked"] + said["packs"];
            assert_eq!((said["types_misplaced"], converted), (types, 0), "{host:?} {said:?}");
        }
    }
}

/// Checks a type that is misplaced and that ddtc's table of known faults lacks. Before the preload
/// library converts a message of the type, it measures times for the type. The bytes that are
/// packed for this show that the MPI library moves other places, so the type must not be converted.
#[test]
fn a_type_that_is_packed_otherwise_is_not_converted_any_more() {
    for host in HOSTS {
        let way = [("DDTC_POLICY", "measure"), ("DDTC_LAZY_THRESHOLD", "0")];
        for said in right(host, &["-DPLANTED", "-rdynamic"], ["planted", "20"], &way) {
            let converted = said["messages_packed"] + said["messages_unpacked"];
            let inside = said["hook_bytes_packed"] + said["hook_bytes_unpacked"];
            assert_eq!((said["types_misplaced"], converted, inside), (1, 0, 0), "{host:?} {said:?}");
        }
    }
}

/// Checks that a run with `DDTC_CHECK` survives an MPI library that unpacks beyond the instances of
/// a type. The check lets the library unpack into memory of its own and reports the difference.
/// Open MPI 4.1 is left out, since no messages are converted there and nothing would be checked.
#[test]
fn a_check_survives_a_library_that_unpacks_elsewhere() {
    for host in HOSTS.into_iter().filter(|&host| host != Host::OpenMpi4) {
        let program = host.compile("misplaced", &["-DPLANTED", "-rdynamic", "-ldl"]);
        let folder = scratch(&format!("misplaced-checked-{host:?}"));
        let run = host.run(program).arg("planted").arg("3").preload().env("DDTC_POLICY", "all");
        let run =
            run.env("DDTC_CHECK", "1").env("DDTC_HOOK", "off").env("DDTC_REPORT", folder.join("report.json"));
        let (text, errors) = run.text();
        assert_eq!(text.trim(), "wrong 0", "{host:?}\n{errors}");
        let said = report(&fs::read_to_string(folder.join("report.json")).unwrap());
        fs::remove_dir_all(folder).unwrap();
        // Each of the 3 rounds packs and unpacks two messages. One of these messages is received by
        // a later call and is not compared.
        let found = (said["faults_of_ddtc"], said["other_differences_of_mpi"]);
        assert!(found.0 == 0 && found.1 >= 3, "{host:?} {said:?}\n{errors}");
        let packed = "4004 bytes; packed byte 0 is that of displacement 4 instead of displacement 0";
        let unpacked = "8008 bytes; at displacement 0 is nothing instead of packed byte 0";
        for what in [
            "unpack of 1 instances: the MPI library",
            "check: pack of 1 instances: the MPI library",
            packed,
            unpacked,
        ] {
            assert!(errors.contains(what), "{host:?} {what}\n{errors}");
        }
    }
}

#[test]
fn the_report_names_them() {
    let program = Host::Intel.compile("misplaced", &["-ldl"]);
    let folder = scratch("misplaced-named");
    let run = Host::Intel.run(program).arg("darray").arg("3").preload().env("DDTC_POLICY", "all");
    run.env("DDTC_REPORT", folder.join("report.json")).text();
    let text = fs::read_to_string(folder.join("report.json")).unwrap();
    fs::remove_dir_all(folder).unwrap();
    let said = report(&text);
    assert_eq!((said["types_bypassed"], said["types_misplaced"]), (2, 2), "{text}");
    let fault = "Intel MPI places the rows of blocks of a cyclic dimension of MPI_Type_create_darray wrongly";
    let named =
        format!("\"type bypassed: {fault}: darray(4,0,[128,2],[cyclic,block],[2,default],[2,2],C,int)\"");
    assert!(text.contains(&named), "{text}");
}
