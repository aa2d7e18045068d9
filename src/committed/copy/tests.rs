use super::*;
use crate::datatype::Datatype;
use crate::engine::{Config, Engine, Mode};
use crate::exec::interp;
use crate::fuzzing::{self, Budget, Choices};
use crate::target::Level;

fn t(text: &str) -> Datatype {
    text.parse().unwrap()
}

fn fused_copy(direct: &LayoutCopy) -> &Arc<FusedCopy> {
    match &direct.0.way {
        Way::Copied(fused) => fused,
        Way::Combined { .. } => panic!("a reduction"),
    }
}

/// Returns the size in bytes of a user memory for `count` instances, and the index of displacement
/// 0 in it.
fn memory(t: &Datatype, count: u64) -> (usize, usize) {
    let last = (count as i64 - 1).max(0) * t.extent();
    let low = (t.true_lb() + last.min(0)).min(0);
    let high = (t.true_ub() + last.max(0)).max(0);
    ((high - low) as usize, (-low) as usize)
}

/// Copies `counts` instances and compares the result with packing and unpacking by the definition.
fn check(engine: &Engine, types: [&Datatype; 2], counts: [u64; 2]) -> LayoutCopy {
    let [from, to] = types.map(|t| engine.commit(t).unwrap());
    let direct = from.direct(&to).unwrap();
    let ((from_len, from_at), (to_len, to_at)) = (memory(types[0], counts[0]), memory(types[1], counts[1]));
    let source: Vec<u8> = (0..from_len).map(|i| (i * 7 + i / 251) as u8).collect();
    let mut stream = vec![0; (counts[0] * types[0].size() as u64) as usize];
    interp::pack(types[0], counts[0], &source, from_at, &mut stream).unwrap();
    let mut want = vec![0xa5; to_len];
    let mut got = want.clone();
    interp::unpack_range(types[1], counts[1], &stream, &mut want, to_at, 0).unwrap();
    // SAFETY: both packed streams have at least `stream.len()` bytes, and both memories have room
    // for all instances.
    unsafe {
        let (src, dst) = (source.as_ptr().wrapping_add(from_at), got.as_mut_ptr().wrapping_add(to_at));
        direct.bytes_raw(src, counts[0], dst, counts[1], stream.len() as u64).unwrap();
    }
    assert!(got == want, "{} {}\nto {} {}\n{}", counts[0], types[0], counts[1], types[1], direct.schedule());
    direct
}

#[test]
fn corpus_by_kernels() {
    for level in Level::available() {
        for native in [true, false] {
            let engine = Engine::new(Config { level, native, ..Config::default() });
            let entries = crate::corpus::application();
            for (i, from) in entries.iter().enumerate() {
                for to in [from, &entries[(i * 7 + 3) % entries.len()]] {
                    let (a, b) = (&from.datatype, &to.datatype);
                    if a.size() == 0 || b.size() == 0 || from.count * a.size() as u64 > 1 << 19 {
                        continue;
                    }
                    let counts = [from.count, (from.count * a.size() as u64).div_ceil(b.size() as u64)];
                    let direct = check(&engine, [a, b], counts);
                    if native && from.name == to.name {
                        assert!(direct.period().is_some(), "{}: {}", from.name, direct.schedule());
                    }
                }
            }
            let counters = engine.counters();
            assert_eq!((counters.fallbacks, counters.mismatches), (0, 0));
        }
    }
}

#[test]
fn random_pairs() {
    let engines: Vec<Engine> = Level::available()
        .flat_map(|level| {
            [true, false].map(|native| Engine::new(Config { level, native, ..Config::default() }))
        })
        .collect();
    let mut kernels = 0;
    for seed in 0..1000 {
        let mut choices = Choices::from_seed(seed);
        let from = fuzzing::datatype(&mut choices, &Budget::small());
        let to = fuzzing::datatype(&mut choices, &Budget::small());
        if from.size() == 0 || to.size() == 0 {
            continue;
        }
        let n = choices.below(4) + 1;
        let counts = [n, (n * from.size() as u64).div_ceil(to.size() as u64)];
        let engine = &engines[seed as usize % engines.len()];
        let direct = check(engine, [&from, &to], counts);
        kernels += usize::from(fused_copy(&direct).served().is_some_and(|tier| tier.kernel().is_some()));
    }
    assert!(kernels > 400, "{kernels} kernels");
}

#[test]
fn counts_and_signatures_are_checked() {
    let engine = Engine::new(Config::default());
    let commit = |text: &str| engine.commit(&t(text)).unwrap();
    let direct = commit("vector(3, 1, 2, int)").direct(&commit("contiguous(2, int)")).unwrap();
    let source: Vec<u8> = (0..20).collect();
    let mut target = [0xa5; 16];
    // The target has room for two of the three elements.
    let refused = direct.copy(&source, 0, 1, &mut target[..8], 0, 1).unwrap_err();
    assert_eq!((refused.class(), refused.argument()), (ErrorClass::Truncate, "to_count"), "{refused}");
    assert_eq!(target, [0xa5; 16]);
    assert_eq!(direct.copy(&source, 0, 1, &mut target, 0, 2).unwrap(), 12);
    assert_eq!(target, [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 0xa5, 0xa5, 0xa5, 0xa5]);
    let refused = direct.copy(&source[..19], 0, 1, &mut target, 0, 2).unwrap_err();
    assert_eq!(refused.class(), ErrorClass::Buffer, "{refused}");

    // The error names the first element that differs, even if that is in a later instance.
    let from = commit("struct([2, 1], [0, 8], [int, double])");
    let direct =
        from.direct(&commit("struct([2, 1, 2, 1], [0, 8, 16, 24], [int, double, int, long])")).unwrap();
    let source: Vec<u8> = (0..32).collect();
    let mut target = [0xa5; 32];
    assert_eq!(direct.copy(&source, 0, 1, &mut target, 0, 1).unwrap(), 16);
    let refused = direct.copy(&source, 0, 2, &mut target, 0, 1).unwrap_err();
    assert_eq!((refused.class(), refused.argument()), (ErrorClass::Type, "element"));
    assert!(refused.to_string().contains("5 (MPI_DOUBLE to MPI_LONG)"), "{refused}");
    // The difference is found quickly, even after 10^12 equal elements.
    let far =
        |last: &str| commit(&format!("struct([1, 1], [0, 0], [contiguous(1000000000000, int), {last}])"));
    let refused = far("char").direct(&far("short")).unwrap().bytes(1, 1).unwrap_err();
    assert!(refused.to_string().contains("1000000000000 (MPI_CHAR to MPI_SHORT)"), "{refused}");
    assert_eq!(
        commit("contiguous(0, int)").direct(&commit("contiguous(0, char)")).unwrap().bytes(u64::MAX, 3),
        Ok(0)
    );
    // `MPI_BYTE` matches any basic type.
    let direct = commit("double").direct(&commit("contiguous(8, byte)")).unwrap();
    assert_eq!(direct.copy(&source, 0, 1, &mut target, 0, 1).unwrap(), 8);
}

/// If the memories overlap, all data is read before any is written.
#[test]
fn overlapping_memories() {
    for mode in [Mode::Commit, Mode::Lazy, Mode::Interpret, Mode::Off] {
        let engine = Engine::new(Config { mode, ..Config::default() });
        let commit = |text: &str| engine.commit(&t(text)).unwrap();
        let (row, column) = (commit("contiguous(4, int)"), commit("vector(4, 1, 4, int)"));
        let matrix: Vec<u8> = (0..64).collect();
        for shift in [0, 3, 16, 20] {
            let mut memory = matrix.clone();
            memory.resize(96, 0);
            let mut want = memory.clone();
            let base = memory.as_mut_ptr();
            // SAFETY: the column occupies 52 bytes from byte 0 on, and the row 16 bytes from byte
            // `shift` on. Both lie within the 96 bytes of `memory`.
            unsafe { column.direct(&row).unwrap().copy_raw(base, 1, base.wrapping_add(shift), 1).unwrap() };
            for i in 0..4 {
                want[shift + 4 * i..][..4].copy_from_slice(&matrix[16 * i..][..4]);
            }
            assert_eq!(memory, want, "{mode:?}, row at {shift}");
        }
        // The spans overlap but no byte is shared: even elements are copied to odd ones.
        let mut memory = matrix.clone();
        let even = commit("vector(8, 1, 2, int)");
        let base = memory.as_mut_ptr();
        // SAFETY: the instances at both addresses lie within the 64 bytes of the matrix.
        unsafe { even.direct(&even).unwrap().copy_raw(base, 1, base.wrapping_add(4), 1).unwrap() };
        for i in 0..8 {
            assert_eq!(memory[8 * i + 4..8 * i + 8], matrix[8 * i..8 * i + 4], "{mode:?}");
        }
    }
}

/// The cache finds a pair while both layouts exist, and keeps neither of them alive.
#[test]
fn pairs_keep_no_layout() {
    let engine = Engine::new(Config { cache_bytes: 1 << 20, ..Config::default() });
    let commit = |text: &str| engine.commit(&t(text)).unwrap();
    let (a, b) = (commit("vector(3, 1, 2, int)"), commit("vector(3, 1, 5, int)"));
    let (first, again) = (a.direct(&b).unwrap(), a.direct(&b).unwrap());
    assert!(Arc::ptr_eq(fused_copy(&first), fused_copy(&again)));
    assert!(!Arc::ptr_eq(fused_copy(&first), fused_copy(&b.direct(&a).unwrap())));
    let layouts = [&a, &b].map(|committed| Arc::downgrade(&committed.0.layout));
    drop((first, again, a, b));
    // Other layouts displace both layouts, and the pair with them, from the cache.
    for i in 0..4000_i64 {
        let places: Vec<i64> = (0..32).map(|k| 100 * k + i % (k + 1)).collect();
        let t = Datatype::indexed_block(1 + i / 2000, &places, &t("int")).unwrap();
        let committed = engine.commit(&t).unwrap();
        committed.direct(&committed).unwrap();
    }
    assert!(layouts.iter().all(|layout| layout.strong_count() == 0));
    let counters = engine.counters();
    assert!(counters.cached_bytes <= 2 << 20, "{counters:?}");
}

/// Check mode counts no mismatch for correct copies, with and without overlapping entries in the
/// target.
#[test]
fn check_mode_compares() {
    let engine = Engine::new(Config { check: true, ..Config::default() });
    for (from, to) in
        [("vector(40, 1, 2, int)", "vector(20, 2, 3, int)"), ("vector(4, 3, 0, int)", "vector(4, 3, 1, int)")]
    {
        check(&engine, [&t(from), &t(to)], [3, 3]);
    }
    assert_eq!(engine.counters().mismatches, 0);
}

/// Tests a case that random types found: a loop that repeats the same entries on both sides, so
/// that its step is 0 on each side.
#[test]
fn entries_that_repeat_themselves() {
    for level in Level::available() {
        for native in [true, false] {
            let engine = Engine::new(Config { level, native, ..Config::default() });
            for text in [
                "hindexed_block(4, [1, 1, 0], indexed([1, 1, 1, 1], [1, 1, 0, 1400], packed))",
                "hvector(1, 5, 8192, hindexed_block(5, [1, 1, 2, 3, 4], indexed([1, 1, 1, 1], [-1592, -1528, -1463, -1400], packed)))",
            ] {
                check(&engine, [&t(text), &t(text)], [2, 2]);
            }
            assert_eq!(engine.counters().fallbacks, 0);
        }
    }
}

#[test]
fn sums_by_hand() {
    for mode in [Mode::Commit, Mode::Lazy, Mode::Off] {
        let engine = Engine::new(Config { mode, ..Config::default() });
        let commit = |text: &str| engine.commit(&t(text)).unwrap();
        let memory = |values: &[i32]| values.iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<u8>>();
        let sum = |from: &str, to: &str, source: &[i32], counts: [u64; 2], target: &[i32]| {
            let direct = commit(from).direct_reduce(&commit(to), Op::Sum).unwrap();
            let mut target = memory(target);
            direct.copy(&memory(source), 0, counts[0], &mut target, 0, counts[1]).unwrap();
            target.chunks(4).map(|v| i32::from_ne_bytes(v.try_into().unwrap())).collect::<Vec<i32>>()
        };
        assert_eq!(
            sum(
                "vector(3, 1, 2, int)",
                "vector(3, 1, 3, int)",
                &[1, 0, 2, 0, 3],
                [1, 1],
                &[10, 9, 9, 20, 9, 9, 30]
            ),
            [11, 9, 9, 22, 9, 9, 33]
        );
        // Three entries in the same place each add their own value.
        assert_eq!(
            sum("contiguous(3, int)", "hvector(3, 1, 0, int)", &[1, 2, 3, 4, 5, 6], [2, 2], &[10, 20]),
            [16, 35]
        );
        // Four rows of three entries lie in the same place, so each entry adds four values.
        let want = sum(
            "contiguous(12, int)",
            "vector(4, 3, 0, int)",
            &(1..=12).collect::<Vec<_>>(),
            [1, 1],
            &[0; 3],
        );
        assert_eq!(want, [1 + 4 + 7 + 10, 2 + 5 + 8 + 11, 3 + 6 + 9 + 12]);
        // The last value is not a whole joint period.
        assert_eq!(
            sum("int", "vector(2, 1, 2, int)", &[1, 2, 3], [3, 2], &[10; 6]),
            [11, 10, 12, 13, 10, 10]
        );
    }
    let commit = |text: &str| Engine::global().commit(&t(text)).unwrap();
    // The signature of the source is only a prefix of the signature of the target. The layouts
    // cannot be fused, and one instance goes through the buffer.
    let direct = commit("struct([1, 1], [0, 8], [int, double])")
        .direct_reduce(&commit("struct([1, 1, 1], [0, 8, 16], [int, double, float])"), Op::Sum)
        .unwrap();
    assert!(direct.schedule().contains("values of different classes"), "{}", direct.schedule());
    let (one, mut two) =
        ([[1, 0, 0, 0, 0, 0, 0, 0], 1.5_f64.to_ne_bytes()].concat(), [2, 0, 0, 0, 0, 0, 0, 0].to_vec());
    two.extend([2.25_f64.to_ne_bytes(), [7; 8]].concat());
    assert_eq!(direct.copy(&one, 0, 1, &mut two, 0, 1).unwrap(), 12);
    assert_eq!(two, [[3, 0, 0, 0, 0, 0, 0, 0], 3.75_f64.to_ne_bytes(), [7; 8]].concat());
    assert_eq!(
        direct.copy(&one.repeat(2), 0, 2, &mut two.repeat(2), 0, 2).unwrap_err().class(),
        ErrorClass::Type
    );
    let refused = commit("float").direct_reduce(&commit("float"), Op::Band).unwrap_err();
    assert_eq!((refused.class(), refused.argument()), (ErrorClass::Op, "element"), "{refused}");
    // `MPI_BYTE` matches every type. Six bytes end inside the second int. Without the check, the
    // copy would never end, because no whole value follows.
    let bytes = commit("byte").direct_reduce(&commit("int"), Op::Band).unwrap();
    let mut ints = [0xff; 8];
    let refused = bytes.copy(&[1; 6], 0, 6, &mut ints, 0, 2).unwrap_err();
    assert_eq!((refused.class(), refused.argument(), ints), (ErrorClass::Arg, "packed bytes", [0xff; 8]));
    assert_eq!(
        (bytes.copy(&[1; 4], 0, 4, &mut ints, 0, 2), ints),
        (Ok(4), [1, 1, 1, 1, 0xff, 0xff, 0xff, 0xff])
    );
    let refused = commit("int").direct_reduce(&commit("float"), Op::Sum).unwrap();
    assert_eq!(refused.copy(&[0; 4], 0, 1, &mut [0; 4], 0, 1).unwrap_err().class(), ErrorClass::Type);
}

#[test]
fn calls_are_counted() {
    let engine = Engine::new(Config::default());
    let int = engine.commit(&t("int")).unwrap();
    let direct = int.direct(&int).unwrap();
    let counting = calls::Counting::start();
    let before = calls::totals();
    let mut target = [0; 12];
    direct.copy(&[1; 12], 0, 3, &mut target, 0, 3).unwrap();
    let after = calls::totals();
    drop(counting);
    // Other tests may make copies at the same time, so the totals can be higher.
    assert!(after.copies > before.copies && after.copied >= before.copied + 12);
}
