//! Transports between the ranks of a job, as far as the environment of a process shows them.
//!
//! The version of an MPI library does not say how its messages travel, but calls may be right with
//! one transport and wrong with another ([`crate::tried`]). A job chooses the transport when it
//! starts: ranks on one machine can share memory, and all others use a network module, which
//! variables can choose. The transports are distinguished by the module and not by the network that
//! it uses, because the module handles datatypes, and the network only moves bytes.

use crate::policy::{Family, Library};

/// Way in which messages between ranks travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Memory that all ranks of the job share.
    Shared,
    /// libfabric, which MPICH and Intel MPI call OFI.
    Libfabric,
    /// UCX, which MPICH can use as its network module.
    Ucx,
}

impl Transport {
    /// All transports that are distinguished.
    pub const ALL: [Transport; 3] = [Transport::Shared, Transport::Libfabric, Transport::Ucx];

    /// Returns the transports that a library has, by its version text.
    pub fn all_of(version: &str) -> impl Iterator<Item = Transport> {
        let (is_intels, device) =
            (Library::from_version_text(version).family == Family::Intel, Device::from_version_text(version));
        let is_there = move |transport: &Transport| {
            let has = |module| device.as_ref().is_some_and(|device| device.modules.contains(&module));
            match transport {
                Transport::Shared => is_intels || device.as_ref().is_some_and(|device| device.has_memory),
                Transport::Libfabric => is_intels || has("ofi"),
                Transport::Ucx => has("ucx"),
            }
        };
        Transport::ALL.into_iter().filter(is_there)
    }

    /// Returns the name of the transport in prose.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Shared => "shared memory",
            Transport::Libfabric => "libfabric",
            Transport::Ucx => "UCX",
        }
    }

    /// Returns true if a run of the matrix of MPI libraries used this transport. `word` is the
    /// entry of the run in the column of transports. The result is valid for MPICH and Intel MPI
    /// only, which the matrix runs over libfabric unless the word is `shared`, `ucx` or
    /// `ucx-shared`.
    pub fn is_of(self, word: &str) -> bool {
        match self {
            Transport::Shared => word == "shared",
            Transport::Libfabric => matches!(word, "tcp" | "nodes"),
            Transport::Ucx => matches!(word, "ucx" | "ucx-shared"),
        }
    }
}

/// The device ch4 of an MPICH, as the version text of the library describes it
/// ([`crate::abi::queries::version`]).
struct Device<'a> {
    /// Network modules, of which the first is used if no variable chooses another.
    modules: Vec<&'a str>,
    /// True if the library was built with support for memory that the ranks of one machine share.
    has_memory: bool,
}

impl Device<'_> {
    /// Returns the device of MPICH; `None` for another device or library.
    fn from_version_text(version: &str) -> Option<Device<'_>> {
        let (_, device) = version.split_once(", device ch4:")?;
        let has_memory = !device.ends_with(NO_SHARED_MEMORY);
        let modules = device.trim_end_matches(NO_SHARED_MEMORY).split(',').collect();
        (Library::from_version_text(version).family == Family::Mpich)
            .then_some(Device { modules, has_memory })
    }
}

/// Transports of a process. `None` stands for a transport that could not be determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transports {
    /// Transport between the ranks that were started together.
    pub inside: Option<Transport>,
    /// Transport to processes of other jobs: those that this process spawns, those that have
    /// spawned it, and those to which it is connected.
    pub beyond: Option<Transport>,
}

impl Transports {
    /// Value for a process whose transports could not be determined.
    pub const UNKNOWN: Transports = Transports { inside: None, beyond: None };

    /// Returns the transports of a process under an MPI library with the version text `version`
    /// ([`crate::abi::queries::version`]). `variable` returns the value of a variable of the
    /// environment.
    pub fn determine(version: &str, variable: impl Fn(&str) -> Option<String>) -> Transports {
        let (shares, beyond) =
            match (Library::from_version_text(version).family, Device::from_version_text(version)) {
                (_, Some(device)) => (device.has_memory, mpichs_module(&device, &variable)),
                // Since version 2019, libfabric is the only network of Intel MPI. By default, ranks
                // on one machine use shared memory.
                (Family::Intel, _) => match variable("I_MPI_FABRICS").as_deref() {
                    None | Some("" | "shm:ofi" | "shm") => {
                        (!is_set(variable("I_MPI_SHM").as_deref(), false), Some(Transport::Libfabric))
                    }
                    Some("ofi") => (false, Some(Transport::Libfabric)),
                    Some(_) => return Transports::UNKNOWN,
                },
                _ => return Transports::UNKNOWN,
            };
        let shares = shares && shares_memory(&variable);
        let inside = if shares && is_on_one_machine(&variable) { Some(Transport::Shared) } else { beyond };
        Transports { inside, beyond }
    }
}

/// Prefixes of MPICH's control variables.
const PREFIXES: [&str; 3] = ["MPIR_CVAR_", "MPIR_PARAM_", "MPICH_"];

/// Returns the value of a control variable of MPICH. Each variable has three names, which differ in
/// their prefixes. The first name that is set counts, in the order of `PREFIXES`.
fn control(name: &str, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    PREFIXES.iter().find_map(|prefix| variable(&format!("{prefix}{name}")))
}

/// Returns true if a variable is set and its value means yes (if `yes` is true) or no (if `yes` is
/// false). An empty value, `0`, `no`, `off`, `false` and `disable` mean no; all others mean yes.
fn is_set(value: Option<&str>, yes: bool) -> bool {
    value.is_some_and(|value| {
        let no = ["", "0", "no", "off", "false", "disable"];
        no.contains(&value.trim().to_ascii_lowercase().as_str()) != yes
    })
}

/// Returns the network module of MPICH: the one that a variable chooses, else the first of the
/// device.
fn mpichs_module(device: &Device<'_>, variable: impl Fn(&str) -> Option<String>) -> Option<Transport> {
    let chosen = control("CH4_NETMOD", variable).filter(|module| !module.is_empty());
    match chosen.as_deref().or(device.modules.first().copied())?.trim() {
        "ofi" => Some(Transport::Libfabric),
        "ucx" => Some(Transport::Ucx),
        _ => None,
    }
}

/// Returns true if no control variable of MPICH keeps the ranks on one machine from using shared
/// memory. Intel MPI has these variables too.
fn shares_memory(variable: impl Fn(&str) -> Option<String>) -> bool {
    let names = ["NOLOCAL", "NO_LOCAL", "ODD_EVEN_CLIQUES", "EVEN_ODD_CLIQUES"];
    let takes = |name: &&str| is_set(control(name, &variable).as_deref(), true);
    // By default there is one clique, which contains all ranks of a machine.
    let cliques = control("NUM_CLIQUES", &variable).is_some_and(|number| number.trim() != "1");
    !names.iter().any(takes) && !cliques
}

/// End of the version text of an MPICH that was built without shared memory between ranks.
pub(crate) const NO_SHARED_MEMORY: &str = ", without shared memory";

/// Returns true if the environment shows that all ranks that were started together run on one
/// machine. There are three cases:
///
/// 1. The launcher Hydra (of MPICH and Intel MPI) sets the number of all ranks and the number of
///    local ranks. The numbers must be equal.
/// 2. The number of local ranks is not set. A job of one rank is on one machine. A job of several
///    ranks is on one machine if the variables of Slurm show a step on one node. The step must have
///    as many tasks as the job has ranks, and must not be part of a heterogeneous job.
/// 3. The number of all ranks is not set. The process is the only rank of its job if no launcher
///    has started it.
fn is_on_one_machine(variable: impl Fn(&str) -> Option<String>) -> bool {
    let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
    let launched = ["PMI_RANK", "PMIX_RANK", "SLURM_PROCID"].iter().any(|name| variable(name).is_some());
    match (number("PMI_SIZE"), number("MPI_LOCALNRANKS")) {
        (Some(size), Some(here)) => size == here,
        (Some(size), None) => {
            let is_step =
                number("SLURM_STEP_NUM_TASKS") == Some(size) && variable("SLURM_HET_SIZE").is_none();
            size == 1 || is_step && number("SLURM_STEP_NUM_NODES") == Some(1)
        }
        (None, _) => !launched,
    }
}

/// Beginnings of the names of variables by which MPI libraries and network libraries choose how
/// messages travel: MPICH and Cray MPICH, HPE MPI (`MPI_`), MVAPICH, ParaStation MPI, Intel MPI,
/// Open MPI, UCX, libfabric, PSM, HCOLL and UCC. Each beginning stands for all variables of a
/// library, because each of them may choose a protocol.
const CHOOSING: [&str; 15] = [
    "MPIR_CVAR_",
    "MPIR_PARAM_",
    "MPICH_",
    "MPI_",
    "MV2_",
    "MVP_",
    "PSP_",
    "I_MPI_",
    "OMPI_MCA_",
    "UCX_",
    "FI_",
    "PSM2_",
    "PSM3_",
    "HCOLL_",
    "UCC_",
];
/// Beginnings of the names of those variables in [`CHOOSING`] that do not choose how messages
/// travel: launchers set them, or they only say where something is.
const LAUNCHERS: [&str; 18] = [
    "MV2_COMM_",
    "MVP_COMM_",
    "I_MPI_HYDRA",
    "I_MPI_MPIRUN",
    "I_MPI_INFO",
    "I_MPI_PIN",
    "I_MPI_PM",
    "I_MPI_ROOT",
    "OMPI_MCA_ess",
    "OMPI_MCA_orte",
    "OMPI_MCA_prte",
    "OMPI_MCA_pmix",
    "OMPI_MCA_plm",
    "OMPI_MCA_ras",
    "OMPI_MCA_rmaps",
    "OMPI_MCA_hwloc",
    "OMPI_MCA_initial_wdir",
    "OMPI_MCA_num_procs",
];
/// Parts of the names of variables that differ between ranks, nodes or jobs, in capital letters.
const PER_JOB: [&str; 8] =
    ["RANK", "JOBID", "JOB_ID", "NODEID", "NODE_ID", "HOSTNAME", "TMPDIR", "NODES_IN_JOB"];

/// Returns true if a variable of this name belongs to the key of a proof. If a variable is in the
/// key without need, this costs a permission at most. If one is missing, this can cost a wrong
/// byte. So only those are left out that differ between ranks, or between jobs that are otherwise
/// equal.
fn chooses(name: &str) -> bool {
    let starts = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    let capitals = name.to_ascii_uppercase();
    starts(&CHOOSING) && !starts(&LAUNCHERS) && !PER_JOB.iter().any(|part| capitals.contains(part))
}

/// Returns the transport of a job in words: its name, and the variables among `variables` that
/// choose how messages travel.
pub fn in_words(transport: Option<Transport>, variables: &[(String, String)]) -> String {
    let set = variables.iter().filter(|(name, _)| chooses(name));
    let mut set: Vec<String> = set.map(|(name, value)| format!(" {name}={value}")).collect();
    set.sort();
    transport.map_or("not known", Transport::name).to_owned() + &set.concat()
}

/// Returns the number of nodes on which the `ranks` ranks of `MPI_COMM_WORLD` run, according to the
/// variables that launchers set. Returns `None` if the variables do not show the number, or if
/// those of two launchers contradict each other. Variables with another number of ranks are
/// ignored, because they belong to another job, which has started this one.
pub fn nodes(ranks: u32, variable: impl Fn(&str) -> Option<String>) -> Option<u32> {
    if ranks == 1 {
        return Some(1);
    }
    let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
    // Variables with the number of all ranks and with the number of ranks on this node: Hydra, Open
    // MPI, MVAPICH.
    let rank_variables = [
        ("PMI_SIZE", "MPI_LOCALNRANKS"),
        ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
        ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE"),
    ];
    let here =
        rank_variables.iter().filter(|(all, _)| number(all) == Some(ranks)).filter_map(|(_, n)| number(n));
    let is_step = number("SLURM_STEP_NUM_TASKS") == Some(ranks) && variable("SLURM_HET_SIZE").is_none();
    let nodes = number("SLURM_STEP_NUM_NODES").filter(|&nodes| is_step && nodes > 0);
    // For each launcher whose variables are set: whether the job runs on one node.
    let one: Vec<bool> = here.map(|n| n == ranks).chain(nodes.map(|n| n == 1)).collect();
    match (one.contains(&true), one.contains(&false)) {
        (true, false) => Some(1),
        (false, true) => nodes,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MPICH: &str = "MPICH Version: 5.0.2, device ch4:ucx,ofi";
    const INTEL: &str = "Intel(R) MPI Library 2021.18 for Linux* OS";

    fn transports(version: &str, variables: &str) -> [Option<Transport>; 2] {
        let set: Vec<_> = variables.split_whitespace().map(|set| set.split_once('=').unwrap()).collect();
        let value = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        let Transports { inside, beyond } = Transports::determine(version, value);
        [inside, beyond]
    }

    #[test]
    fn the_transport_of_a_job_is_what_its_variables_say() {
        use Transport::{Libfabric, Shared, Ucx};
        const FOUR: &str = "PMI_RANK=0 PMI_SIZE=4 MPI_LOCALNRANKS=4";
        let table: &[(&str, &str, Option<Transport>, Option<Transport>)] = &[
            (MPICH, FOUR, Some(Shared), Some(Ucx)),
            (MPICH, "", Some(Shared), Some(Ucx)),
            (MPICH, "PMI_RANK=0 PMI_SIZE=4 MPI_LOCALNRANKS=2", Some(Ucx), Some(Ucx)),
            (MPICH, "PMI_RANK=0 PMI_SIZE=4", Some(Ucx), Some(Ucx)),
            (MPICH, "PMIX_RANK=0", Some(Ucx), Some(Ucx)),
            (MPICH, "PMIX_RANK=0 SLURM_STEP_NUM_NODES=1", Some(Ucx), Some(Ucx)),
            (MPICH, "SLURM_PROCID=0 SLURM_NPROCS=4", Some(Ucx), Some(Ucx)),
            (MPICH, "PMI_SIZE=4 SLURM_STEP_NUM_NODES=1 SLURM_STEP_NUM_TASKS=4", Some(Shared), Some(Ucx)),
            (MPICH, "PMI_SIZE=4 SLURM_STEP_NUM_NODES=1 SLURM_STEP_NUM_TASKS=1", Some(Ucx), Some(Ucx)),
            (MPICH, "PMI_SIZE=4 SLURM_STEP_NUM_NODES=2 SLURM_STEP_NUM_TASKS=4", Some(Ucx), Some(Ucx)),
            (
                MPICH,
                "PMI_SIZE=4 SLURM_STEP_NUM_NODES=1 SLURM_STEP_NUM_TASKS=4 SLURM_HET_SIZE=2",
                Some(Ucx),
                Some(Ucx),
            ),
            (MPICH, "MPIR_CVAR_NOLOCAL=1", Some(Ucx), Some(Ucx)),
            (MPICH, "MPICH_NOLOCAL=yes", Some(Ucx), Some(Ucx)),
            (MPICH, "MPIR_CVAR_NO_LOCAL=1", Some(Ucx), Some(Ucx)),
            (MPICH, "MPIR_CVAR_NOLOCAL=Off", Some(Shared), Some(Ucx)),
            (MPICH, "MPIR_CVAR_NOLOCAL=0", Some(Shared), Some(Ucx)),
            (MPICH, "MPIR_CVAR_NOLOCAL=0 MPICH_NOLOCAL=1", Some(Shared), Some(Ucx)),
            (MPICH, "MPIR_CVAR_ODD_EVEN_CLIQUES=1", Some(Ucx), Some(Ucx)),
            (MPICH, "MPIR_CVAR_NUM_CLIQUES=2", Some(Ucx), Some(Ucx)),
            (MPICH, "MPIR_CVAR_CH4_NETMOD=ofi", Some(Shared), Some(Libfabric)),
            (MPICH, "MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1", Some(Libfabric), Some(Libfabric)),
            (MPICH, "MPIR_CVAR_CH4_NETMOD=other MPIR_CVAR_NOLOCAL=1", None, None),
            (
                "MPICH Version: 5.0.2, device ch4:ofi, without shared memory",
                "",
                Some(Libfabric),
                Some(Libfabric),
            ),
            ("MPICH Version: 3.4.1, device ch3:nemesis", "", None, None),
            ("MPICH Version: 3.4.1", "MPIR_CVAR_NOLOCAL=1", None, None),
            (INTEL, FOUR, Some(Shared), Some(Libfabric)),
            (INTEL, "I_MPI_SHM=off", Some(Libfabric), Some(Libfabric)),
            (INTEL, "I_MPI_SHM=icx MPIR_CVAR_NOLOCAL=0", Some(Shared), Some(Libfabric)),
            (INTEL, "MPIR_CVAR_NOLOCAL=1", Some(Libfabric), Some(Libfabric)),
            (INTEL, "I_MPI_FABRICS=ofi", Some(Libfabric), Some(Libfabric)),
            (INTEL, "I_MPI_FABRICS=shm:ofi PMI_SIZE=4 MPI_LOCALNRANKS=1", Some(Libfabric), Some(Libfabric)),
            (INTEL, "I_MPI_FABRICS=tmi", None, None),
            ("Open MPI v5.0.11", "", None, None),
            ("MVAPICH Version: 4.0", "", None, None),
        ];
        let all = |version| Transport::all_of(version).collect::<Vec<_>>();
        assert_eq!(all(MPICH), [Shared, Libfabric, Ucx]);
        assert_eq!(all("MPICH Version: 5.0.2, device ch4:ofi, without shared memory"), [Libfabric]);
        assert_eq!(all(INTEL), [Shared, Libfabric]);
        for version in ["Open MPI v5.0.11", "MPICH Version: 3.4.1, device ch3:nemesis"] {
            assert_eq!(all(version), [], "{version}");
        }
        for &(version, variables, inside, beyond) in table {
            assert_eq!(transports(version, variables), [inside, beyond], "{version}: {variables}");
        }
    }
    #[test]
    fn nodes_are_counted_only_by_variables_of_the_job() {
        let counted = |ranks, variables: &str| {
            let set: Vec<_> = variables.split_whitespace().map(|v| v.split_once('=').unwrap()).collect();
            nodes(ranks, |name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
        };
        assert_eq!(counted(1, "PMI_SIZE=4 MPI_LOCALNRANKS=2"), Some(1));
        assert_eq!(counted(4, "PMI_SIZE=4 MPI_LOCALNRANKS=4"), Some(1));
        assert_eq!(counted(4, "PMI_SIZE=4 MPI_LOCALNRANKS=2"), None);
        assert_eq!(counted(4, "PMI_SIZE=2 MPI_LOCALNRANKS=2"), None, "variables of another job");
        assert_eq!(counted(4, ""), None);
        assert_eq!(counted(2, "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2"), Some(1));
        assert_eq!(counted(2, "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=1"), None);
        assert_eq!(counted(4, "SLURM_STEP_NUM_TASKS=4 SLURM_STEP_NUM_NODES=2"), Some(2));
        assert_eq!(counted(4, "SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=2"), None);
        assert_eq!(counted(4, "SLURM_STEP_NUM_TASKS=4 SLURM_STEP_NUM_NODES=2 SLURM_HET_SIZE=2"), None);
        let variables = "PMI_SIZE=4 MPI_LOCALNRANKS=2 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_NUM_NODES=1";
        assert_eq!(counted(4, variables), None, "the two disagree");
        let variables = "PMI_SIZE=4 MPI_LOCALNRANKS=4 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_NUM_NODES=2";
        assert_eq!(counted(4, variables), None, "the two disagree the other way round");
        let variables = "PMI_SIZE=4 MPI_LOCALNRANKS=4 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_NUM_NODES=1";
        assert_eq!(counted(4, variables), Some(1));
        let variables = "PMI_SIZE=4 MPI_LOCALNRANKS=2 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_NUM_NODES=2";
        assert_eq!(counted(4, variables), Some(2));
        let variables = "PMI_SIZE=2 MPI_LOCALNRANKS=2 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=1";
        assert_eq!(counted(2, variables), None, "Hydra and Open MPI disagree");
    }

    #[test]
    fn a_transport_in_words_has_the_variables_that_choose_it() {
        let set = ["UCX_TLS=tcp", "HOME=/", "MPICH_NOLOCAL=1", "XMPICH_NOLOCAL=1", "FI_PROVIDER=tcp"];
        let set: Vec<_> = set
            .iter()
            .map(|v| v.split_once('=').map(|(n, v)| (n.to_owned(), v.to_owned())).unwrap())
            .collect();
        let words = "libfabric FI_PROVIDER=tcp MPICH_NOLOCAL=1 UCX_TLS=tcp";
        assert_eq!(in_words(Some(Transport::Libfabric), &set), words);
        assert_eq!(in_words(None, &[]), "not known");
        for name in [
            "MPIR_CVAR_CH4_SHM_POSIX_EAGER",
            "MPIR_PARAM_EAGER",
            "MPICH_SMP_SINGLE_COPY_MODE",
            "MV2_SMP_USE_CMA",
            "MVP_IBA_EAGER_THRESHOLD",
            "PSP_ONDEMAND",
            "I_MPI_SHM_CELL_FWD_SIZE",
            "OMPI_MCA_btl_vader_single_copy_mechanism",
            "MPI_SHARED_NEIGHBORHOOD",
            "PSM2_MQ_RNDV_SHM_SZ",
            "PSM3_RDMA",
            "HCOLL_ENABLE_MCAST_ALL",
            "UCC_TLS",
        ] {
            assert!(chooses(name), "{name}");
        }
        for name in [
            "MPIR_CVAR_CH3_INTERFACE_HOSTNAME",
            "MV2_COMM_WORLD_LOCAL_RANK",
            "MV2_NUM_NODES_IN_JOB",
            "PSP_SMP_NODE_ID",
            "I_MPI_HYDRA_UUID",
            "I_MPI_MPIRUN",
            "OMPI_MCA_ess_base_vpid",
            "OMPI_MCA_orte_hnp_uri",
            "PMI_RANK",
            "MPI_LOCALRANKID",
            "MPI_LOCALNRANKS",
        ] {
            assert!(!chooses(name), "{name}");
        }
    }
}
