//! Tests of code for machines other than this one: plans and code can be made for them, the
//! templates give the same bytes on every machine, and explaining such code does not load it into
//! memory.

use std::fmt::Write as _;

use ddtc::ErrorClass;
use ddtc::internal::code::emit::{Cranelift, Emitter, MAX_CODE, X64};
use ddtc::internal::corpus::{self, CorpusEntry};
use ddtc::internal::engine::{Config, Engine};
use ddtc::internal::kind::Direction;
use ddtc::internal::lower::Bytes;
use ddtc::internal::methods::*;
use ddtc::internal::nest::{LoopNest, Normal};
use ddtc::internal::plan::{Legal, Plan};
use ddtc::internal::target::{Accesses, Arch, Level, Target};
use ddtc::internal::{legalize, lower, normalize, schedule};
use xxhash_rust::xxh3::xxh3_64;

/// Returns all entries of the corpus of named datatypes.
fn entries() -> Vec<CorpusEntry> {
    corpus::application().into_iter().chain(corpus::corner()).collect()
}

fn normal(entry: &CorpusEntry) -> LoopNest<Normal> {
    let t = &entry.datatype;
    normalize::normalize(&lower::lower(t, Bytes).unwrap(), t.arguments()).unwrap().nest
}

/// Returns the legal plan of `nest`. Returns `None` if the schedule refuses to make a plan, so that
/// the nest is interpreted.
fn plan(
    nest: &LoopNest<Normal>,
    direction: Direction,
    target: Target,
    accesses: Accesses,
) -> Option<Plan<Legal>> {
    let plan = schedule::schedule(nest, direction, target).ok()?;
    let plan = legalize::legalize(&plan, accesses).unwrap();
    plan.verify().unwrap_or_else(|e| panic!("{e}\n{plan}"));
    Some(plan)
}

fn portable(arch: Arch) -> Target {
    Target::new(Level::Baseline).on(arch).unwrap()
}

/// Tests that Cranelift's back ends for other machines emit code for every plan of the corpus. Code
/// with a relocation would be refused by the emitter.
#[test]
fn every_plan_of_the_corpus_has_code_for_other_machines() {
    let machines = [
        (Target::new(Level::Neon), "aarch64-unknown-linux-gnu"),
        (portable(Arch::Aarch64), "aarch64-unknown-linux-gnu"),
        (portable(Arch::Other), "riscv64gc-unknown-linux-gnu"),
    ];
    let emitter = |triple: &str| Cranelift::for_triple(triple.parse().unwrap(), true).unwrap();
    let emitters = machines.map(|(target, triple)| (target, triple, [emitter(triple), emitter(triple)]));
    let (mut emitted, mut interpreted) = (0, 0);
    for entry in entries() {
        let nest = normal(&entry);
        for direction in Direction::BOTH {
            for (target, triple, [first, second]) in &emitters {
                let Some(plan) = plan(&nest, direction, *target, first.accesses()) else {
                    interpreted += 1;
                    continue;
                };
                let what = || format!("{direction} {}, {target} on {triple}", entry.name);
                let (code, alignment) =
                    first.code(&plan).unwrap_or_else(|e| panic!("{}: {e}\n{plan}", what()));
                assert!(!code.is_empty() && code.len() <= MAX_CODE, "{}: {} bytes", what(), code.len());
                // Instructions of AArch64 have 4 bytes, and instructions of RISC-V have 2 or 4
                // bytes.
                let words = if triple.starts_with("aarch64") { 4 } else { 2 };
                assert!(code.len().is_multiple_of(words) && alignment >= words as u32, "{}", what());
                assert!(second.code(&plan).unwrap() == (code, alignment), "{}: other bytes again", what());
                emitted += 1;
            }
        }
    }
    assert!(emitted > 20 * interpreted && interpreted > 0, "{emitted} plans, {interpreted} interpreted");
}

#[test]
fn a_back_end_that_is_not_compiled_in_is_named() {
    let refused = |triple: &str| Cranelift::for_triple(triple.parse().unwrap(), false).err().unwrap();
    for triple in ["s390x-unknown-linux-gnu", "wasm32-unknown-unknown"] {
        let e = refused(triple);
        assert_eq!(e.class(), ErrorClass::Unsupported);
        assert!(e.to_string().contains(triple) && e.to_string().contains("compiled in"), "{e}");
    }
}

/// Returns a text about the code that the templates make for a few corpus entries. It has one line
/// for each plan, with the number of bytes of the code and their hash.
fn templates() -> String {
    const ENTRIES: [&str; 8] = [
        "vec_8B.S",
        "struct_i_d_f3.S",
        "WRF_x_vec.S",
        "MILC_su3_zd.S",
        "LAMMPS_full.S",
        "indexed_1to8.S",
        "FFT2D_scatter.S",
        "transpose_1024x16B.L",
    ];
    let mut text =
        "# Code of templates: entry, direction, target, bytes, XXH3-64 of them. The same on every machine.\n\
        # DDTC_BLESS=1 cargo test --test foreign\n"
            .to_owned();
    let entries = entries();
    for name in ENTRIES {
        let entry = entries.iter().find(|e| e.name == name).unwrap_or_else(|| panic!("no entry {name}"));
        let nest = normal(entry);
        for direction in Direction::BOTH {
            for target in ["baseline", "avx2", "avx512", "avx512+vbmi"] {
                let target: Target = target.parse().unwrap();
                let target = target.on(Arch::X86_64).unwrap();
                let emitter = X64::new(target).unwrap();
                let plan = plan(&nest, direction, target, emitter.accesses());
                let code = plan.map(|plan| emitter.code(&plan).unwrap().0);
                let shown = code.map_or("interpreted".to_owned(), |code| {
                    format!("{} {:016x}", code.len(), xxh3_64(&code))
                });
                let _ = writeln!(text, "{name} {direction} {target} {shown}");
            }
        }
    }
    text
}

#[test]
fn templates_give_the_same_bytes_on_every_machine() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/templates.txt");
    let text = templates();
    assert_eq!(text, templates(), "twice");
    if std::env::var_os("DDTC_BLESS").is_some_and(|v| v == "1") {
        std::fs::write(path, &text).unwrap();
    }
    let known = std::fs::read_to_string(path).unwrap();
    for (known, made) in known.lines().zip(text.lines()) {
        assert_eq!(
            known, made,
            "tests/templates.txt (left): DDTC_BLESS=1 cargo test --test foreign rewrites it"
        );
    }
    assert_eq!(known.lines().count(), text.lines().count(), "lines of tests/templates.txt");
}

/// Tests that code for another architecture can be printed on this machine, as on a machine of that
/// architecture, and that nothing of the code is loaded into executable memory.
#[test]
fn explaining_another_machine_loads_nothing() {
    let t = "hvector(100, 1, 24, double)".parse().unwrap();
    let engine = Engine::new(Config { precompiled: false, ..Config::default() });
    let (mut run, mut shown) = (0, 0);
    let all = ["baseline", "avx2", "avx512", "avx512+vbmi", "neon"].map(|t| t.parse::<Target>().unwrap());
    for target in all.into_iter().chain([Arch::X86_64, Arch::Aarch64, Arch::Other].map(portable)) {
        for direction in Direction::BOTH {
            let before = engine.counters();
            let made = engine.explain(&t, direction, target).unwrap();
            let stages: Vec<&str> = made.stages.iter().map(|s| s.name).collect();
            let missing: Vec<&str> = made.missing.iter().map(|m| m.0).collect();
            assert_eq!(stages[..4], ["lower", "normalize", "schedule", "legalize"], "{target}");
            assert_eq!([&stages[4..], &missing[..]].concat(), ["emit", "load"], "{target}");
            assert_eq!(missing.contains(&"load"), !target.runs(), "{target}");
            assert_eq!(missing.contains(&"emit"), made.code.is_empty(), "{target}");
            assert_eq!(missing.contains(&"emit"), made.listing.code.is_empty(), "{target}");
            if target.runs() {
                run += 1;
            } else {
                let after = engine.counters();
                assert_eq!(
                    (before.code_bytes, before.emitted),
                    (after.code_bytes, after.emitted),
                    "{target}"
                );
            }
            if let Some(emitter) = X64::new(target) {
                let nest =
                    normalize::normalize(&lower::lower(&t, Bytes).unwrap(), t.arguments()).unwrap().nest;
                let plan = plan(&nest, direction, target, emitter.accesses()).unwrap();
                // On systems other than Unix, the engine does not use the templates for this
                // machine, because they follow the System V ABI. So the engine's code then differs
                // from the code of the templates.
                if !target.runs() || cfg!(unix) {
                    assert_eq!(made.code, emitter.code(&plan).unwrap().0, "{target}");
                    shown += 1;
                }
            }
        }
    }
    assert!(run >= 2 && shown >= 2, "{run} {shown}");
}
