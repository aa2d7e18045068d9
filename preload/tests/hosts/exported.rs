//! Test of the names that the preload library exports: the functions with which it interposes those
//! of the MPI library, and a few names of ddtc itself, which begin with `ddtc_` or `DDTC_`.

use std::process::Command;

use crate::setup::{library, lossy};

#[test]
fn only_functions_of_mpi_are_exported_and_none_imported() {
    let names = |args: &[&str]| {
        let out =
            Command::new("nm").args(args).arg(library()).output().expect("nm is needed: install binutils");
        let mut names: Vec<String> = lossy(&out.stdout)
            .lines()
            .filter_map(|line| line.split_whitespace().last().map(str::to_owned))
            .collect();
        names.sort();
        names
    };
    let mut expected: Vec<String> = [
        "MPI_Abort",
        "MPI_Finalize",
        "MPI_Init",
        "MPI_Init_thread",
        "MPI_Pack",
        "MPI_Pack_c",
        "MPI_Session_finalize",
        "MPI_Session_init",
        "MPI_Type_commit",
        "MPI_Type_dup",
        "MPI_Type_free",
        "MPI_Unpack",
        "MPI_Unpack_c",
    ]
    .map(str::to_owned)
    .into();
    // The preload library also interposes functions of Open MPI that other parts of Open MPI call
    // (docs/CALLS.md, "Inside Open MPI").
    let inside = ["prepare_for_recv", "prepare_for_send", "raw", "set_position_nocheck"];
    expected.extend(inside.map(|name| format!("opal_convertor_{name}")));
    expected.extend(["commit", "copy_content_same_ddt"].map(|name| format!("opal_datatype_{name}")));
    // These functions are called by the program with which `ddtc tune` proves that an MPI library
    // is right.
    expected.extend(["conversions", "proof_key"].map(|name| format!("ddtc_{name}")));
    // With these functions a test plants faults and counts look-ups of types. The preload library
    // exports them only in builds with debug assertions.
    if cfg!(debug_assertions) {
        expected.extend(["hook_refuses", "hook_spoils", "type_lookups"].map(|name| format!("ddtc_{name}")));
    }
    let counted = [
        "Send",
        "Ssend",
        "Rsend",
        "Bsend",
        "Recv",
        "Sendrecv",
        "Sendrecv_replace",
        "Mrecv",
        "Isend",
        "Issend",
        "Irsend",
        "Ibsend",
        "Irecv",
        "Imrecv",
        "Send_init",
        "Ssend_init",
        "Rsend_init",
        "Bsend_init",
        "Recv_init",
        "Isendrecv",
        "Isendrecv_replace",
    ];
    expected.extend(counted.iter().flat_map(|n| [format!("MPI_{n}"), format!("MPI_{n}_c")]));
    let all = [
        "bcast",
        "gather",
        "gatherv",
        "scatter",
        "scatterv",
        "allgather",
        "alltoall",
        "alltoallv",
        "alltoallw",
    ];
    let near =
        ["allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"].map(|n| format!("neighbor_{n}"));
    for n in all.map(String::from).into_iter().chain(near) {
        let capital = format!("{}{}", n[..1].to_uppercase(), &n[1..]);
        for form in ["", "_c"] {
            let kinds = [format!("{capital}{form}"), format!("I{n}{form}"), format!("{capital}_init{form}")];
            expected.extend(kinds.map(|kind| format!("MPI_{kind}")));
        }
    }
    let files = [
        "write",
        "write_all",
        "write_at",
        "write_at_all",
        "write_shared",
        "write_ordered",
        "read",
        "read_all",
        "read_at",
        "read_at_all",
    ];
    expected.extend(files.iter().flat_map(|n| [format!("MPI_File_{n}"), format!("MPI_File_{n}_c")]));
    expected.extend(["open", "close", "set_view"].map(|n| format!("MPI_File_{n}")));
    expected.extend(
        ["spawn", "spawn_multiple", "accept", "connect", "join", "disconnect"]
            .map(|n| format!("MPI_Comm_{n}")),
    );
    expected.push("MPI_Intercomm_create".to_owned());
    let windows = ["Put", "Rput", "Rget"];
    expected.extend(windows.iter().flat_map(|n| [format!("MPI_{n}"), format!("MPI_{n}_c")]));
    let ending = [
        "fence",
        "flush",
        "flush_local",
        "flush_all",
        "flush_local_all",
        "unlock",
        "unlock_all",
        "complete",
        "free",
    ];
    expected.extend(ending.map(|n| format!("MPI_Win_{n}")));
    let completing = [
        "Start",
        "Startall",
        "Wait",
        "Test",
        "Waitany",
        "Testany",
        "Waitall",
        "Testall",
        "Waitsome",
        "Testsome",
        "Request_get_status",
        "Request_get_status_any",
        "Request_get_status_all",
        "Request_get_status_some",
        "Request_free",
    ];
    expected.extend(completing.iter().map(|n| format!("MPI_{n}")));
    expected.extend(["Psend_init", "Precv_init"].map(|n| format!("MPI_{n}")));
    let makers =
        ["Comm_create", "Win_create", "File_create", "Session_create"].map(|n| format!("MPI_{n}_errhandler"));
    expected.extend(makers);
    expected.push("MPI_Errhandler_create".to_owned());
    let tool = [
        "cvar_get_num",
        "cvar_get_info",
        "cvar_get_index",
        "cvar_handle_alloc",
        "cvar_handle_free",
        "cvar_read",
        "cvar_write",
        "enum_get_info",
        "enum_get_item",
        "pvar_get_num",
        "pvar_get_info",
        "pvar_get_index",
        "pvar_session_create",
        "pvar_session_free",
        "pvar_handle_alloc",
        "pvar_handle_free",
        "pvar_start",
        "pvar_stop",
        "pvar_read",
        "pvar_write",
        "pvar_reset",
        "pvar_readreset",
        "finalize",
        "category_get_num",
        "category_get_info",
        "category_get_index",
        "category_get_cvars",
        "category_get_pvars",
        "category_get_categories",
        "category_get_num_events",
        "category_get_events",
    ];
    expected.extend(tool.iter().map(|n| format!("MPI_T_{n}")));
    let lifetime = ["abort", "init", "init_thread", "session_init", "finalize", "session_finalize"];
    for name in lifetime.into_iter().chain(["pack", "unpack"]) {
        for spelling in ["", "_", "__", "_f08_"] {
            expected.push(format!("mpi_{name}{spelling}"));
        }
        expected.push(format!("MPI_{}", name.to_uppercase()));
    }
    expected.extend(["commit", "free"].map(|name| format!("mpi_type_{name}_f08_")));
    expected.push("DDTC_PRELOAD_VERSION".to_owned());
    expected.sort();
    assert_eq!(names(&["-D", "--defined-only"]), expected);
    let imported = names(&["-D", "--undefined-only"]);
    let mpi: Vec<_> = imported.iter().filter(|n| n.to_lowercase().contains("mpi_")).collect();
    assert!(mpi.is_empty(), "{mpi:?}");
}
