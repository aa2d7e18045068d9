//! Test that neither the arena, which holds executable memory, nor the process grows if 200,000
//! kernels are loaded and dropped. The test has a process of its own, so that other tests do not
//! change the resident memory.

use cranelift_codegen::settings::{self, Configurable};
use ddtc::internal::code::arena::Arena;
use ddtc::internal::code::kernel::{CompiledCode, Text};
use ddtc::internal::code::load::load;
use ddtc::internal::micro::{Table, TableIndex};
use ddtc::internal::plan::{Template, Word};

/// Returns the resident memory of this process in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn kernels_leave_nothing_behind() {
    let mut flags = settings::builder();
    flags.set("opt_level", "none").unwrap();
    let isa = cranelift_native::builder().unwrap().finish(settings::Flags::new(flags)).unwrap();
    let arena = Arena::new(1 << 20);
    let mut baseline = (arena.usage(), 0);
    for i in 0..200_000usize {
        // The machine code is never run, so its bytes do not matter.
        let table = Table::Column(vec![i as i64; 10].into());
        let words = vec![Word::Constant(i as i64), Word::Table(TableIndex::new(0))];
        let code = CompiledCode {
            text: Text::New { bytes: vec![0xcc; 100 + i % 400], alignment: 16 },
            shape: None,
            context: Template { words, tables: vec![table] },
        };
        drop(load(code, &arena, Some(&isa)).unwrap());
        if i == 20_000 {
            baseline = (arena.usage(), resident());
        }
    }
    assert_eq!(arena.usage(), baseline.0);
    let grown = resident().saturating_sub(baseline.1);
    assert!(grown < 1024, "resident memory grew by {grown} KiB over 180,000 kernels");
}
