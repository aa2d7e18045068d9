//! Tests of PMPI layers, which are libraries that define functions of MPI in front of an MPI
//! library. A layer must see the same calls with the preload library as without it. ddtc does not
//! convert calls that a layer takes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::clients::{compile, manifest, tool};
use crate::doctor::{bin, doctor, finds, said};
use crate::setup::{Host, Run, library, report, reports, scratch, sorted, sources};

const HOSTS: [Host; 3] = [Host::Mpich, Host::Intel, Host::OpenMpi];

/// Number of calls that a layer has seen, by the name of the function.
type Calls = BTreeMap<String, u64>;

/// Returns the functions that the header of an MPI library declares, with their parameters. Each
/// parameter is a pair of its whole declaration and its name, for example `(MPI_Send, [(const void
/// *buf, buf), ..])`.
fn prototypes(host: Host) -> Vec<(String, Vec<(String, String)>)> {
    let folder = scratch(&format!("prototypes-{host:?}"));
    let source = folder.join("all.c");
    fs::write(&source, "#include <mpi.h>\n").unwrap();
    let out = Command::new(host.compiler()).arg("-E").arg(&source).output().unwrap();
    assert!(out.status.success(), "{host:?}");
    fs::remove_dir_all(folder).unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let mut found = BTreeMap::new();
    for (at, _) in text.match_indices("int PMPI_") {
        // Skip a match in which `int` is only the end of a longer word, which is the name of
        // another type, such as `MPI_Fint`.
        if text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &text[at + "int P".len()..];
        let (name, rest) = rest.split_once('(').unwrap();
        let (parameters, _) = rest.split_once(')').unwrap();
        let parameters = parameters.split_whitespace().collect::<Vec<_>>().join(" ");
        if parameters.contains(['(', '.']) {
            // Skip MPI_Pcontrol, which takes any number of arguments.
            continue;
        }
        let parameters = parameters.split(',').map(str::trim).filter(|p| !p.is_empty() && *p != "void");
        let named = parameters.enumerate().map(|(i, parameter)| {
            let declared = parameter.split('[').next().unwrap().trim();
            match declared.rfind(|c: char| !c.is_alphanumeric() && c != '_') {
                Some(before) => (parameter.to_owned(), declared[before + 1..].to_owned()),
                // In the header of Open MPI 4.1 some parameters have a type but no name, so they
                // get one here.
                None => (format!("{parameter} unnamed{i}"), format!("unnamed{i}")),
            }
        });
        found.insert(name.trim().to_owned(), named.collect());
    }
    assert!(found.len() > 300, "{host:?}: {} functions", found.len());
    found.into_iter().collect()
}

/// Writes the C source of a layer into `file`. The layer counts the calls of all MPI functions for
/// whose names `has` returns true. In `MPI_Finalize`, each rank writes the counts to the file
/// `$LAYER_COUNTS.RANK`.
fn counting_layer(host: Host, file: &Path, has: impl Fn(&str) -> bool) {
    let mut text = "#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n".to_owned();
    text +=
        "struct count { const char *name; long calls; struct count *next; };\nstatic struct count *all;\n";
    // The layer increments each counter atomically, since threads of the MPI library may call MPI
    // functions at the same time as the program.
    text += "static void one_more(struct count *c) { __atomic_fetch_add(&c->calls, 1, __ATOMIC_RELAXED); }\n";
    for (name, parameters) in prototypes(host) {
        if !has(&name) || name == "MPI_Finalize" {
            continue;
        }
        let declared = parameters.iter().map(|(all, _)| all.as_str()).collect::<Vec<_>>().join(", ");
        let declared = if declared.is_empty() { "void".to_owned() } else { declared };
        let arguments = parameters.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", ");
        text += &format!(
            "static struct count of_{name} = {{\"{name}\"}};\n\
             __attribute__((constructor)) static void list_{name}(void) {{ of_{name}.next = all; all = &of_{name}; }}\n\
             int (P{name})({declared});\n\
             int ({name})({declared}) {{ one_more(&of_{name}); return (P{name})({arguments}); }}\n"
        );
    }
    text += "int MPI_Finalize(void) {\n  int rank;\n  char name[4096];\n  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);\n\
             snprintf(name, sizeof name, \"%s.%d\", getenv(\"LAYER_COUNTS\"), rank);\n  int code = PMPI_Finalize();\n\
             FILE *file = fopen(name, \"w\");\n\
             for (struct count *c = all; c; c = c->next) if (c->calls) fprintf(file, \"%s %ld\\n\", c->name, c->calls);\n\
             fprintf(file, \"MPI_Finalize 1\\n\");\n  fclose(file);\n  return code;\n}\n";
    fs::write(file, text).unwrap();
}

/// The way in which a program gets its PMPI layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The PMPI layer is loaded by LD_PRELOAD, after the preload library.
    After,
    /// The PMPI layer is loaded by LD_PRELOAD, before the preload library.
    Before,
    /// The program is linked with the PMPI layer, which is a shared library.
    Shared,
    /// The program is linked with the PMPI layer, which is an archive and so becomes a part of the
    /// program.
    Archive,
    /// The layer comes with a plugin that the program loads with RTLD_LOCAL. The MPI library is
    /// loaded together with the plugin.
    Local,
}

impl Way {
    const ALL: [Way; 5] = [Way::After, Way::Before, Way::Shared, Way::Archive, Way::Local];

    /// Returns true if the preload library sees calls before the layer does and passes them on to
    /// the layer.
    fn hands_on(self) -> bool {
        !matches!(self, Way::Before | Way::Archive)
    }
}

/// A C program of the folder tests/c together with a PMPI layer.
struct Layered {
    host: Host,
    way: Way,
    folder: PathBuf,
    /// The layer as a shared library.
    layer: PathBuf,
    program: PathBuf,
}

impl Layered {
    fn new(host: Host, way: Way, name: &str, layer: &Path) -> Layered {
        let stem = layer.file_stem().unwrap().to_string_lossy();
        let folder = scratch(&format!("layered-{host:?}-{way:?}-{name}-{stem}"));
        let source = sources().join(format!("{name}.c"));
        let shared = folder.join("liblayer.so");
        let compiler = || {
            let mut compiler = Command::new(host.compiler());
            compiler.args(["-O1", "-g", "-w", "-fPIC"]).current_dir(&folder);
            compiler
        };
        compile(compiler().args(["-shared", "-o"]).arg(&shared).arg(layer));
        let program = folder.join(name);
        let mut link = compiler();
        let (rpath, layer_first) = (format!("-Wl,-rpath,{}", folder.display()), "-Wl,--no-as-needed");
        match way {
            Way::After | Way::Before => compile(link.arg("-o").arg(&program).arg(&source)),
            Way::Shared => compile(
                link.arg("-o").arg(&program).arg(&source).args([layer_first, "liblayer.so"]).arg(rpath),
            ),
            Way::Archive => {
                compile(compiler().args(["-c", "-o", "layer.o"]).arg(layer));
                compile(Command::new("ar").args(["rcs", "liblayer.a", "layer.o"]).current_dir(&folder));
                compile(link.arg("-o").arg(&program).arg(&source).arg("liblayer.a"));
            }
            Way::Local => {
                link.args(["-shared", "-DPLUGIN", "-o", "libplugin.so"]).arg(&source);
                compile(link.args([layer_first, "liblayer.so"]).arg(rpath));
                let loader = sources().join("plugged.c");
                compile(Command::new("cc").arg("-o").arg(&program).arg(loader).arg("-ldl"));
            }
        }
        Layered { host, way, folder, layer: shared, program }
    }

    /// Returns a run of the program with its layer on `ranks` ranks, with the preload library if
    /// `preloaded` is true.
    fn run(&self, ranks: u32, preloaded: bool) -> Run {
        let ours = preloaded.then(library);
        let loaded = match self.way {
            Way::After => ours.into_iter().chain([self.layer.clone()]).collect(),
            Way::Before => [self.layer.clone()].into_iter().chain(ours).collect(),
            _ => Vec::from_iter(ours),
        };
        let loaded: Vec<String> = loaded.iter().map(|library| library.display().to_string()).collect();
        // The launcher's own processes need no layer. The launcher therefore starts `env`, which
        // sets LD_PRELOAD for the program on each rank.
        let run = self.host.ranks(ranks, "env").arg(format!("LD_PRELOAD={}", loaded.join(":")));
        let run = run.arg(&self.program).env("DDTC_POLICY", "all").env("DDTC_HOOK", "off");
        let run = run.env("DDTC_REPORT", self.folder.join("report%r.json"));
        let run = run.env("LAYER_COUNTS", self.folder.join("counts"));
        if self.way == Way::Local { run.arg(self.folder.join("libplugin.so")) } else { run }
    }

    /// Returns the text of the report of rank 0.
    fn report(&self) -> String {
        fs::read_to_string(self.folder.join("report0.json")).unwrap()
    }

    /// Runs the program `layered` on two ranks and returns, for each rank, the calls that the
    /// counting layer has seen. `groups` selects the groups of functions that the program calls.
    fn counted(&self, groups: &str, preloaded: bool) -> [Calls; 2] {
        let run = self.run(2, preloaded).arg(groups).arg(self.folder.join("file"));
        let (text, errors) = run.text();
        assert_eq!(text.trim(), "wrong 0", "{:?} {:?}\n{errors}", self.host, self.way);
        [0, 1].map(|rank| {
            let name = self.folder.join(format!("counts.{rank}"));
            let text = fs::read_to_string(&name).unwrap();
            fs::remove_file(name).unwrap();
            let line =
                |line: &str| line.split_once(' ').map(|(name, n)| (name.to_owned(), n.parse().unwrap()));
            text.lines().filter_map(line).collect()
        })
    }

    fn end(self) {
        fs::remove_dir_all(self.folder).unwrap();
    }
}

/// Returns the path of `NAME.c` in the folder tests/c, which is the source of a layer.
fn source(name: &str) -> PathBuf {
    sources().join(format!("{name}.c"))
}

#[test]
fn a_layer_that_splits_the_world_is_heeded() {
    for host in HOSTS {
        for way in [Way::After, Way::Shared, Way::Archive] {
            let program = Layered::new(host, way, "halved", &source("split"));
            let (unmodified, _) = program.run(4, false).text();
            for rank in 0..2 {
                let line = format!("rank {rank} of 2: wrong by alltoall 0, by broadcast 0, by message 0\n");
                assert_eq!(unmodified.matches(&line).count(), 2, "{host:?} {way:?}\n{unmodified}");
            }
            assert_eq!(unmodified.matches(": 30 sends seen").count(), 2, "{host:?} {way:?}\n{unmodified}");
            for lines in ["all", "measure"] {
                let (text, errors) = program.run(4, true).env("DDTC_POLICY", lines).text();
                assert_eq!(sorted(&text), sorted(&unmodified), "{host:?} {way:?}\n{errors}");
            }
            if way.hands_on() {
                let text = program.report();
                let note = "\"messages are not converted: the PMPI layer ";
                assert!(text.contains(note) && text.contains("liblayer.so has MPI_"), "{host:?}\n{text}");
                assert_eq!(report(&text)["bypassed_pmpi_layer"], 90, "{host:?}\n{text}");
            }
            program.end();
        }
    }
}

#[test]
fn every_call_reaches_a_layer_that_has_all_functions() {
    for host in HOSTS {
        let folder = scratch(&format!("layers-all-{host:?}"));
        let all = folder.join("all.c");
        counting_layer(host, &all, |_| true);
        for way in Way::ALL {
            let program = Layered::new(host, way, "layered", &all);
            let unmodified = program.counted("mfwp", false);
            assert!(
                unmodified[0]["MPI_Put"] == 20 && unmodified[1]["MPI_Pack"] == 20,
                "{host:?} {way:?} {unmodified:?}"
            );
            assert_eq!(program.counted("mfwp", true), unmodified, "{host:?} {way:?}");
            if way.hands_on() {
                for said in reports(&program.folder, 2) {
                    let moved = ["messages_packed", "messages_unpacked", "packs", "unpacks"];
                    assert!(moved.iter().all(|name| said[*name] == 0), "{host:?} {way:?} {said:?}");
                    assert!(said["bypassed_pmpi_layer"] > 100 && said["panics"] == 0, "{host:?} {said:?}");
                }
                let text = program.report();
                for group in ["messages", "files", "windows", "pack"] {
                    let note = format!("\"{group} are not converted: the PMPI layer ");
                    assert!(text.contains(&note), "{host:?} {way:?}\n{text}");
                }
            } else {
                // A layer that comes before the preload library, or that is part of the program,
                // takes all calls. The preload library then sees no call, so that there may be no
                // report.
                let text = fs::read_to_string(program.folder.join("report0.json")).unwrap_or_default();
                assert!(!text.contains("are not converted"), "{host:?} {way:?}\n{text}");
            }
            program.end();
        }
        fs::remove_dir_all(folder).unwrap();
    }
}

/// Checks that a layer that has only the functions of some groups takes the calls of these groups,
/// while calls of the other groups are still converted.
#[test]
fn what_no_layer_has_is_converted() {
    let is_file = |name: &str| name.starts_with("MPI_File_");
    let is_window = |name: &str| name.starts_with("MPI_Win_") || ["MPI_Put", "MPI_Rput"].contains(&name);
    let is_pack = |name: &str| ["MPI_Pack", "MPI_Unpack", "MPI_Pack_size"].contains(&name);
    let is_send = |name: &str| ["MPI_Send", "MPI_Comm_rank"].contains(&name);
    type Has<'a> = &'a dyn Fn(&str) -> bool;
    // Each row has the name of a layer, the functions that the layer has, and the group of the
    // program's calls that the layer takes, which is empty if it takes none. The first layer has
    // functions for initialization only. The second layer has functions for initialization and for
    // files, as Darshan does.
    let layers: [(&str, Has<'_>, &str); 5] = [
        ("starts", &|name| ["MPI_Init", "MPI_Init_thread"].contains(&name), ""),
        ("io", &|name| is_file(name) || name == "MPI_Init", "f"),
        ("one_sided", &is_window, "w"),
        ("packing", &is_pack, "p"),
        ("sends", &is_send, "m"),
    ];
    for host in HOSTS {
        let folder = scratch(&format!("layers-groups-{host:?}"));
        for (name, has, taken) in layers {
            let file = folder.join(format!("{name}.c"));
            counting_layer(host, &file, has);
            let program = Layered::new(host, Way::After, "layered", &file);
            for group in ["m", "f", "w", "p"] {
                let unmodified = program.counted(group, false);
                assert_eq!(program.counted(group, true), unmodified, "{host:?} {name} {group}");
                let [first, _] = reports(&program.folder, 2).try_into().unwrap();
                let converted = first["messages_packed"] + first["packs"] > 10;
                assert_eq!(converted, group != taken, "{host:?} {name} {group} {first:?}");
                assert_eq!(
                    first.contains_key("bypassed_pmpi_layer"),
                    group == taken,
                    "{host:?} {name} {first:?}"
                );
            }
            program.end();
        }
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn calls_that_a_layer_makes_by_mpi_names_are_handed_on() {
    for host in HOSTS {
        for way in Way::ALL {
            let program = Layered::new(host, way, "layered", &source("relay"));
            for groups in ["m", "mp"] {
                let run = program.run(2, true).arg(groups).arg("none");
                assert_eq!(run.text().0.trim(), "wrong 0", "{host:?} {way:?}");
            }
            let said = report(&program.report());
            assert_eq!(said["messages_packed"] > 0, !way.hands_on(), "{host:?} {way:?} {said:?}");
            // This layer has no functions for packing, so the program's calls of `MPI_Pack` are
            // converted.
            assert!(said["packs"] > 10 && said["panics"] == 0, "{host:?} {way:?} {said:?}");
            program.end();
        }
    }
}

/// Checks the convertor hook in a program with a PMPI layer. The hook works inside Open MPI, below
/// every layer. The layer takes the calls that commit types, so the hook finds the types by their
/// descriptions.
#[test]
fn bytes_move_inside_open_mpi_below_a_layer() {
    for host in [Host::OpenMpi, Host::OpenMpi4] {
        let folder = scratch(&format!("layers-inside-{host:?}"));
        let all = folder.join("all.c");
        counting_layer(host, &all, |_| true);
        let program = Layered::new(host, Way::After, "layered", &all);
        let run = program.run(2, true).arg("mw").arg("none").env("DDTC_HOOK", "on");
        assert_eq!(run.text().0.trim(), "wrong 0", "{host:?}");
        for said in reports(&program.folder, 2) {
            assert!(said["hook_types_unseen"] > 0 && said["panics"] == 0, "{host:?} {said:?}");
            assert!(said["hook_bytes_packed"] > 1 << 20, "{host:?} {said:?}");
            assert!(said["hook_bytes_unpacked"] > 1 << 20, "{host:?} {said:?}");
            assert_eq!(said["messages_packed"], 0, "{host:?} {said:?}");
        }
        program.end();
        fs::remove_dir_all(folder).unwrap();
    }
}

/// Checks Fortran programs with a layer of C functions, with a layer of Fortran functions, and with
/// both. A program must print the same with the preload library as without it, and the layers must
/// see the same calls.
#[test]
fn layers_of_fortran_programs_see_all_calls() {
    tool("gfortran", "gfortran");
    for (host, flags) in [(Host::Intel, &["-DHANDLES_ONLY"][..]), (Host::OpenMpi, &[])] {
        let folder = scratch(&format!("layers-fortran-{host:?}"));
        let shared = |file: &str, source: &Path, flags: &[&str]| {
            let mut compiler = Command::new(host.compiler());
            compiler.args(["-w", "-shared", "-fPIC"]).args(flags).arg("-o").arg(folder.join(file));
            compile(compiler.arg(source));
            folder.join(file)
        };
        let bindings = shared("libbindings.so", &source("bypass"), flags);
        let fortran_layer = shared("libfortranlayer.so", &source("fortranlayer"), &[]);
        let counts = folder.join("all.c");
        counting_layer(host, &counts, |_| true);
        let c_layer = shared("libclayer.so", &counts, &[]);
        let own = (host == Host::Intel).then(|| host.root().join("lib/libmpifort.so.12"));
        for name in ["packer", "ways"] {
            // The program `ways` starts requests. The bindings in the style of Open MPI that are
            // compiled here (`bypass.c`) have no functions for requests, so this program is skipped
            // under Open MPI.
            if name == "ways" && host == Host::OpenMpi {
                continue;
            }
            let program = folder.join(name);
            let mut fortran = Command::new("gfortran");
            fortran.arg("-o").arg(&program).arg(manifest(&format!("tests/fortran/{name}.f90")));
            fortran.arg(&bindings).args(&own).arg("-Wl,-rpath").arg(&folder);
            compile(fortran.args(["-Wl,--allow-shlib-undefined", "-fallow-argument-mismatch"]));
            for layers in [vec![&c_layer], vec![&fortran_layer], vec![&c_layer, &fortran_layer]] {
                let run = |ours: Option<PathBuf>| {
                    let loaded = ours.iter().chain(layers.iter().copied());
                    let loaded: Vec<String> = loaded.map(|library| library.display().to_string()).collect();
                    let run = host.run("env").arg(format!("LD_PRELOAD={}", loaded.join(":"))).arg(&program);
                    let run = run.env("LAYER_COUNTS", folder.join("counts")).env("DDTC_POLICY", "all");
                    let (text, _) = run.env("DDTC_REPORT", folder.join("report.json")).text();
                    assert!(text.contains("wrong 0"), "{host:?} {name}\n{text}");
                    let counts = fs::read_to_string(folder.join("counts.0")).unwrap_or_default();
                    let _ = fs::remove_file(folder.join("counts.0"));
                    // The program calls functions that test for completion in a loop, any number of
                    // times, so the counts of these functions are not compared.
                    let is_fixed = |line: &&str| !line.contains("Test") && !line.contains("status");
                    (text, counts.lines().filter(is_fixed).collect::<Vec<_>>().join("\n"))
                };
                let unmodified = run(None);
                assert_eq!(run(Some(library())), unmodified, "{host:?} {name} {layers:?}");
                let said = report(&fs::read_to_string(folder.join("report.json")).unwrap());
                // The layer of Fortran functions has no functions for messages. The messages of the
                // program `ways` are therefore converted unless the program also has the layer of C
                // functions. The program `packer` sends no messages, and one of the layers always
                // takes its packs.
                let converted = name == "ways" && !layers.contains(&&c_layer);
                let moved = said["packs"] + said["messages_packed"];
                assert_eq!(moved > 0, converted, "{host:?} {name} {layers:?} {said:?}");
            }
        }
        fs::remove_dir_all(folder).unwrap();
    }
}

/// Checks what `ddtc doctor` prints about a layer that the dynamic loader finds after the preload
/// library, and about a layer that it finds before the preload library. The command must call only
/// the latter a problem.
#[test]
fn layers_are_named_by_the_doctor() {
    let host = Host::Mpich;
    let folder = scratch("layers-doctor");
    let files = folder.join("io.c");
    counting_layer(host, &files, |name| name.starts_with("MPI_File_"));
    let here = |program: &Layered| {
        let mut command = doctor(&bin(host));
        command.env("LD_LIBRARY_PATH", host.root().join("lib")).arg("--program").arg(&program.program);
        command
    };
    let preloads = |first: &Path, second: &Path| format!("{}:{}", first.display(), second.display());
    let shared = Layered::new(host, Way::Shared, "layered", &files);
    let line = "liblayer.so has MPI_File_close and ";
    let reason = "gets these calls, so ddtc converts no calls of these groups: files";
    let (well, text) = said(&mut here(&shared));
    assert!(well && text.contains(line) && text.contains(reason), "{text}");
    let after = Layered::new(host, Way::After, "layered", &files);
    let (well, text) = said(&mut here(&after));
    assert!(well && !text.contains("PMPI layer"), "{text}");
    let (well, text) = said(here(&after).env("LD_PRELOAD", preloads(&library(), &after.layer)));
    assert!(well && text.contains(line) && text.contains(reason), "{text}");
    let hides = "before the preload library, which does not see these calls";
    let text = finds(
        here(&after).env("LD_PRELOAD", preloads(&after.layer, &library())),
        hides,
        "name the preload library first in LD_PRELOAD",
    );
    assert!(text.contains("liblayer.so takes MPI_File_close and "), "{text}");
    let archive = Layered::new(host, Way::Archive, "layered", &files);
    finds(&mut here(&archive), hides, "link the layer as a shared library");
    shared.end();
    after.end();
    archive.end();
    fs::remove_dir_all(folder).unwrap();
}
