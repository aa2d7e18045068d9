//! Tests of collective calls and of long messages in jobs where all ranks, some ranks or no ranks
//! have the preload library.

use std::fs;
use std::path::PathBuf;

use crate::messages::{on_some, reports};
use crate::setup::{Host, Run, library, scratch};

const HOSTS: [Host; 4] = [Host::Mpich, Host::MpichStandard, Host::Intel, Host::OpenMpi];

fn compiled(host: Host, name: &str) -> PathBuf {
    // These flags leave out of the program the calls for which the MPI library's own algorithms
    // give wrong results.
    let flags: &[&str] = match host {
        Host::OpenMpi | Host::OpenMpi4 => &["-DCONFUSES_PAIRS"],
        Host::Intel | Host::IntelStandard => &["-DCUTS_SEGMENTS", "-DCONFUSES_PAIRS", "-DMODES_TRIED=2"],
        Host::Mpich | Host::MpichStandard => &["-DCUTS_SEGMENTS"],
    };
    host.compile(name, flags)
}

fn right(what: &str, run: Run) {
    let (text, errors) = run.text();
    assert_eq!(text.lines().next(), Some("wrong 0"), "{what}\n{text}\n{errors}");
}

/// Runs the programs `collectives` and `neighbours`, which make `calls` random collective calls, on
/// `ranks` ranks. Each program runs under the unmodified MPI library, with the preload library on
/// all ranks, and with the preload library on every other rank. The calls are blocking, nonblocking
/// and persistent. The first program calls functions over all ranks of a communicator, the second
/// program functions over the neighbours of a topology.
fn collectives(host: Host, ranks: u32, calls: &str, variables: &[(&str, &str)]) {
    for name in ["collectives", "neighbours"] {
        random_calls(host, name, ranks, calls, variables);
    }
}

fn random_calls(host: Host, name: &str, ranks: u32, calls: &str, variables: &[(&str, &str)]) {
    let program = compiled(host, name);
    let folder = scratch(&format!("{name}-{host:?}-{ranks}-{}", variables.len()));
    let seed = ranks.to_string();
    let arguments = |run: Run| {
        let run = variables.iter().fold(run, |run, (name, value)| run.env(name, value));
        run.arg(calls).arg(&seed).arg("2000")
    };
    let what = format!("{host:?}, {name}, {ranks} ranks, {variables:?}");
    right(&format!("{what}, unmodified"), arguments(host.ranks(ranks, &program)));
    let all = host.ranks(ranks, &program).preload().env("DDTC_POLICY", "all");
    right(&format!("{what}, all"), arguments(all.env("DDTC_REPORT", folder.join("report%r.json"))));
    let mut moved = 0;
    for said in reports(&folder, ranks) {
        moved += said["messages_packed"] + said["messages_unpacked"];
        assert_eq!(
            (said["fallbacks"], said["panics"], said["messages_over_staging_limit"]),
            (0, 0, 0),
            "{said:?}"
        );
    }
    assert!(moved > u64::from(ranks) * calls.parse::<u64>().unwrap() / 3, "{what}: {moved}");
    for parity in 0..2 {
        let some = on_some(host, ranks, &program, parity).env("DDTC_POLICY", "all");
        right(&format!("{what}, ranks {parity} of 2"), arguments(some));
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn collectives_of_few_ranks_are_right_whoever_converts() {
    for host in HOSTS {
        for ranks in [2, 3, 4] {
            collectives(host, ranks, "100", &[]);
        }
    }
}

#[test]
fn collectives_of_many_ranks_are_right_whoever_converts() {
    for host in [Host::Mpich, Host::Intel, Host::OpenMpi] {
        collectives(host, 8, "60", &[]);
        collectives(host, 16, "30", &[]);
        collectives(host, 33, "12", &[]);
    }
}

#[test]
fn collectives_are_right_by_every_algorithm() {
    // Each of the first three variables in the list below makes MPICH send messages between ranks
    // of one machine over a network. `OVER_TCP` selects libfabric over TCP as this network. Without
    // the name of a network module MPICH would use UCX, over which ddtc converts no message.
    const OVER_TCP: [(&str, &str); 2] = [("MPIR_CVAR_CH4_NETMOD", "ofi"), ("FI_PROVIDER", "tcp")];
    for variable in [
        ("MPIR_CVAR_NOLOCAL", "1"),
        ("MPIR_CVAR_ODD_EVEN_CLIQUES", "1"),
        ("MPIR_CVAR_NUM_CLIQUES", "2"),
        ("MPIR_CVAR_CH4_CMA_ENABLE", "0"),
    ] {
        let variables = [&[variable][..], &OVER_TCP].concat();
        collectives(Host::Mpich, 4, "100", &variables);
    }
    // The values of these variables are numbers of algorithms in the component `tuned` of Open MPI
    // 5. For broadcasts, the values stand for the algorithms chain, pipeline, binary tree, binomial
    // tree, and scatter with allgather. All of them send messages in segments.
    for algorithm in ["2", "3", "5", "6", "8"] {
        let variables = [
            ("OMPI_MCA_coll_tuned_use_dynamic_rules", "1"),
            ("OMPI_MCA_coll_tuned_bcast_algorithm", algorithm),
            ("OMPI_MCA_coll_tuned_bcast_algorithm_segmentsize", "8192"),
            ("OMPI_MCA_coll_tuned_gather_algorithm", "2"),
            ("OMPI_MCA_coll_tuned_scatter_algorithm", "2"),
            ("OMPI_MCA_coll_tuned_allgather_algorithm", "3"),
            ("OMPI_MCA_coll_tuned_alltoall_algorithm", "3"),
        ];
        collectives(Host::OpenMpi, 4, "80", &variables);
    }
}

/// Checks that collective calls are converted only as a policy table in the user's configuration
/// folder says. The table of this test permits broadcasts alone.
#[test]
fn collectives_follow_the_table() {
    let (host, ranks) = (Host::Mpich, 4);
    let folder = scratch("collectives-table");
    fs::create_dir_all(folder.join("ddtc")).unwrap();
    fs::write(folder.join("ddtc/policy"), "library mpich-5.0.2\nbcast blocks-short 64-\n").unwrap();
    let run = host.ranks(ranks, compiled(host, "collectives")).preload().env("XDG_CONFIG_HOME", &folder);
    let run = run.env("DDTC_REPORT", folder.join("report%r.json")).arg("100").arg("1").arg("2000");
    let (text, errors) = run.text();
    assert_eq!(text.lines().next(), Some("wrong 0"), "{text}\n{errors}");
    let made = text.lines().find_map(|line| line.strip_prefix("bcast ")?.parse::<u64>().ok()).unwrap();
    let moved =
        reports(&folder, ranks).iter().map(|r| r["messages_packed"] + r["messages_unpacked"]).sum::<u64>();
    // A persistent broadcast is started twice, so it may count twice in the number of converted
    // messages.
    assert!(0 < moved && moved <= 2 * made * u64::from(ranks), "{moved} of {made} broadcasts\n{text}");
    fs::remove_dir_all(folder).unwrap();
}

/// Checks the minimum length in a policy table for Open MPI. A call is converted only if a single
/// instance of its datatype is at least as long as the table says, however many instances the call
/// has. The reason is that Open MPI gets a substitute datatype in place of the program's datatype,
/// and the substitute datatype has a gap for each instance.
#[test]
fn short_instances_are_left_to_open_mpi() {
    let host = Host::OpenMpi;
    let folder = scratch("collectives-instances");
    fs::create_dir_all(folder.join("ddtc")).unwrap();
    for (min_bytes, converted) in [("16", true), ("64", false)] {
        let table = format!("library openmpi-5.0.11\nbcast blocks-short {min_bytes}-\n");
        fs::write(folder.join("ddtc/policy"), table).unwrap();
        let run = host.ranks(2, compiled(host, "collectives")).preload().env("XDG_CONFIG_HOME", &folder);
        let run = run.env("DDTC_REPORT", folder.join("report%r.json")).arg("60").arg("1").arg("2000");
        right(&format!("from {min_bytes} bytes"), run);
        // One structure, which is an instance of the program's datatype, has 24 bytes. Calls are
        // therefore converted with a minimum of 16 bytes and not with a minimum of 64 bytes.
        let moved =
            |r: &std::collections::HashMap<String, u64>| r["messages_packed"] + r["messages_unpacked"] > 0;
        assert_eq!(reports(&folder, 2).iter().any(moved), converted, "{min_bytes}");
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Checks that Open MPI's collective calls are converted only if it is known that all ranks are on
/// one node. A launcher other than Open MPI's, such as Slurm's, sets no variables of Open MPI.
#[test]
fn collectives_of_open_mpi_are_converted_on_one_node() {
    let host = Host::OpenMpi;
    let (program, folder) = (compiled(host, "collectives"), scratch("collectives-nodes"));
    let without = "-uOMPI_COMM_WORLD_SIZE -uOMPI_COMM_WORLD_LOCAL_SIZE";
    let tasks = format!("{without} SLURM_STEP_NUM_TASKS=2");
    for (variables, converted) in [
        ("".to_owned(), true),
        ("OMPI_COMM_WORLD_LOCAL_SIZE=1".to_owned(), false),
        (without.to_owned(), false),
        (format!("{tasks} SLURM_STEP_NUM_NODES=1"), true),
        (format!("{tasks} SLURM_STEP_NUM_NODES=2"), false),
    ] {
        let run = host.ranks(2, "env").preload().env("DDTC_POLICY", "all").env("DDTC_HOOK", "off");
        let run = variables.split_whitespace().fold(run, |run, variable| run.arg(variable)).arg(&program);
        let run = run.env("DDTC_REPORT", folder.join("report%r.json")).arg("40").arg("1").arg("500");
        right(&variables, run);
        for said in reports(&folder, 2) {
            assert_eq!(said["messages_packed"] + said["messages_unpacked"] > 0, converted, "{variables}");
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Checks that no collective call is converted if UCC is loaded, which is a library that chooses
/// the algorithm of a collective call by the local datatype. The preload library must notice UCC
/// before it converts the first call, and not because of that call.
#[test]
fn collectives_are_the_hosts_where_another_library_chooses_by_the_type() {
    let host = Host::OpenMpi;
    let folder = scratch("collectives-ucc");
    let other = folder.join("libucc.so.1");
    fs::copy(host.compile("empty", &["-shared", "-fPIC"]), &other).unwrap();
    let both = format!("{}:{}", library().display(), other.display());
    let run = host.ranks(2, compiled(host, "collectives")).env("LD_PRELOAD", both).env("DDTC_POLICY", "all");
    right("beside UCC", run.env("DDTC_REPORT", folder.join("report%r.json")).arg("40").arg("1").arg("500"));
    for said in reports(&folder, 2) {
        assert_eq!((said["messages_packed"], said["messages_unpacked"]), (0, 0), "{said:?}");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn long_messages_are_never_cut_inside_an_element() {
    for host in HOSTS {
        let program = compiled(host, "segments");
        for (name, value) in [("DDTC_NOTHING", "1"), ("MPIR_CVAR_CH4_CMA_ENABLE", "0")] {
            right(&format!("{host:?} unmodified"), host.ranks(2, &program).env(name, value));
            for policy in ["all", "table"] {
                for parity in 0..2 {
                    let run = on_some(host, 2, &program, parity).env("DDTC_POLICY", policy).env(name, value);
                    right(&format!("{host:?} {name} {policy}, rank {parity} alone"), run);
                }
                let run = host.ranks(2, &program).preload().env("DDTC_POLICY", policy).env(name, value);
                right(&format!("{host:?} {name} {policy}"), run);
            }
        }
    }
}
