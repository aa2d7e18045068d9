//! Tests that the oracles of the tests catch faults. A fault is put into the output of a stage of
//! the compiler, one at a time, and the oracle of that stage must catch each fault.
//!
//! A fault changes a stride, trip count, length, offset, table entry or the order in the output of
//! the stage a little. Nests and plans are data: a faulty one is judged by evaluation, or refused
//! by its verifier. Machine code and contexts that are made from faulty data run in a child
//! process, because they can do anything: write a wrong byte, crash, or not end.

mod layouts;
mod nests;
mod plans;
mod reductions;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ddtc::internal::code::arena::Arena;
use ddtc::internal::code::emit::{self, Emitter as _, emit};
use ddtc::internal::code::kernel::{Context, Kernel, Text};
use ddtc::internal::code::load::load;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::exec::interp::external32;
use ddtc::internal::fuzzing::guard::{Edge, Rig, Subject};
use ddtc::internal::fuzzing::{Case, Choices};
use ddtc::internal::kind::{Direction, Kind, Operation};
use ddtc::internal::legalize::legalize;
use ddtc::internal::lower::{Bytes, Values, lower};
use ddtc::internal::methods::*;
use ddtc::internal::micro::{Argument, Role};
use ddtc::internal::nest::{self, LoopNest};
use ddtc::internal::normalize::{Normalized, normalize};
use ddtc::internal::plan::{self, Field, Legal, Operand, Plan, PlanOp};
use ddtc::internal::schedule::schedule;
use ddtc::internal::segments::{Runs, Segments};
use ddtc::internal::target::{Accesses, Level, Target};

use nests::{Faulty, meaning, nest_faults};
use plans::plan_faults;

/// Datatypes whose nests and plans together contain all kinds of nodes and operations.
const TYPES: &[&str] = &[
    // The plan of this type has straight-line moves in an unrolled loop over the instances.
    "resized(0, 400, hindexed([3, 7, 20], [0, 100, 300], char))",
    // The plan of this type is a loop around a call of a strided micro-kernel.
    "hvector(5, 1, 3000, vector(34, 10, 64, char))",
    // The nest of this type has loops of two nodes, over the instances and inside the type.
    "hvector(6, 1, 700, struct([1, 1], [0, 400], [vector(20, 1, 3, int), short]))",
    // The nest of this type is a table over one copy.
    "indexed_block(3, [0, 7, 31, 40, 52, 61, 80, 91, 100, 120, 131, 140, 152, 160, 171, 180, 195], int)",
    // The nest of this type is a table over another nest.
    "hindexed_block(1, [0, 1000, 2017, 2999], vector(20, 1, 3, int))",
    // This type has many irregular blocks.
    "hindexed([1, 8, 2, 9, 3, 10, 4, 11, 5, 12, 6, 13, 7, 1, 8, 2, 9, 3, 10, 4, 11, 5, 12, 6, 13, 7, 1, 8, 2, 9, 3, 10, 4, 11, 5, 12, 6, 13, 7, 1, 8, 2, 9, 3, 10, 4, 11, 5, 12, 6, 13, 7, 1, 8], [0, 11, 30, 42, 61, 74, 94, 108, 129, 144, 166, 182, 205, 222, 233, 251, 263, 282, 295, 315, 329, 350, 365, 387, 403, 426, 443, 454, 472, 484, 503, 516, 536, 550, 571, 586, 608, 624, 647, 664, 675, 693, 705, 724, 737, 757, 771, 792, 807, 829, 845, 868, 885, 896], char)",
    // This type has long rows, and its plan moves each row by a call.
    "hindexed([1000, 2000, 3001], [0, 5000, 9000], char)",
    // The plan of this type has a permutation pattern, on levels that have such patterns.
    "contiguous(40, resized(0, 32, struct([1, 1, 3], [0, 8, 16], [int, double, float])))",
    // This type has short blocks that lie near each other.
    "vector(19, 1, 2, double)",
    // This type transposes a matrix.
    "contiguous(32, resized(0, 16, vector(16, 1, 64, double_complex)))",
];

const COUNT: u64 = 2;

fn parse(text: &str) -> Datatype {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn normal(t: &Datatype) -> Normalized {
    normalize(&lower(t, Bytes).unwrap(), t.arguments()).unwrap()
}

/// Checks that `caught` returns true for each of the faults, and that there is at least one fault.
/// Returns the number of faults.
fn all_caught<T: Display>(text: &str, faults: Faulty<T>, mut caught: impl FnMut(&T) -> bool) -> usize {
    let n = faults.len();
    assert!(n > 0, "{text}: no fault to inject");
    for (what, faulty) in faults {
        assert!(caught(&faulty), "not caught: {what}\n{text}\n{faulty}");
    }
    n
}

fn nests_caught<P: nest::Phase>(text: &str, case: &Case, nest: &LoopNest<P>, moved: i64) -> usize {
    case.nest("sound", nest, moved).unwrap();
    let sound = meaning(nest);
    let mut faults = nest_faults(nest);
    let all = faults.len();
    faults.retain(|(_, faulty)| meaning(faulty) != sound);
    assert!(faults.len() * 10 > all * 6, "{text}: most faults change nothing");
    all_caught(text, faults, |faulty| faulty.verify().is_err() || case.nest("faulty", faulty, moved).is_err())
}

#[test]
fn lower_and_normalize() {
    let mut n = 0;
    for text in TYPES {
        let t = parse(text);
        let case = Case::new(&t, COUNT).unwrap();
        n += nests_caught(text, &case, &lower(&t, Bytes).unwrap(), 0);
        let Normalized { nest, origin, .. } = normal(&t);
        n += nests_caught(text, &case, &nest, origin);
        // The origin is part of the result of normalization, so a wrong origin must be caught as
        // well.
        assert!(case.nest("faulty", &nest, origin + 1).is_err(), "{text}");
    }
    assert!(n > 400, "{n} faults");
}

/// Tests that faults in descriptions of segments are caught. `Runs::new` makes each faulty
/// description from a nest with a fault. The segments of the sound nest are then listed by the
/// faulty description. Each description that differs from that of the sound nest must be caught.
#[test]
fn segments() {
    let (mut n, mut silent) = (0, 0);
    for text in TYPES {
        let t = parse(text);
        let case = Case::new(&t, COUNT).unwrap();
        let Normalized { nest, origin, .. } = normal(&t);
        let sound = Runs::new(&nest).unwrap();
        let judged = |runs: &Runs, origin| {
            let judge = || {
                case.segments(&Segments::new(&nest, runs, COUNT, origin).unwrap(), &mut Choices::from_seed(7))
            };
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(judge)).is_ok_and(|judged| judged.is_ok())
        };
        assert!(judged(&sound, origin) && !judged(&sound, origin + 1), "{text}");
        for (what, faulty) in nest_faults(&nest) {
            let Ok(runs) = Runs::new(&faulty) else { continue };
            if runs == sound {
                silent += 1;
                continue;
            }
            assert!(!judged(&runs, origin), "not caught: {what}\n{text}\n{nest}\n{sound:?}\n{runs:?}");
            n += 1;
        }
    }
    assert!(n > 20 && n + silent > 200, "{n} faults, {silent} without effect");
}

/// Calls `visit` with the sound plans of all types, for both directions and all targets that this
/// machine runs. The arguments of `visit` are the type's text, its case, the origin and the plan.
fn plans(mut visit: impl FnMut(&str, &Case, i64, Plan<plan::Scheduled>)) {
    for text in TYPES {
        let t = parse(text);
        let case = Case::new(&t, COUNT).unwrap();
        let Normalized { nest, origin, .. } = normal(&t);
        for direction in Direction::BOTH {
            for target in Target::available() {
                let plan = schedule(&nest, direction, target).unwrap();
                case.plan("sound", &plan, origin).unwrap();
                visit(text, &case, origin, plan);
            }
        }
    }
}

/// Returns true if a fault in a plan has no effect. When packing, bytes that the plan copies in
/// excess can be overwritten by a later copy, so a fault in a length may have no effect.
fn harmless<P: plan::Phase>(case: &Case, origin: i64, what: &str, faulty: &Plan<P>) -> bool {
    let length = what.starts_with("length") || what.starts_with("last row");
    faulty.direction() == Direction::Pack && length && case.plan("faulty", faulty, origin).is_ok()
}

#[test]
fn schedule_and_legalize() {
    let (mut n, mut made_up_for, mut permuted) = (0, 0, 0);
    plans(|text, case, origin, plan| {
        fn go<P: plan::Phase>(
            text: &str,
            case: &Case,
            origin: i64,
            plan: &Plan<P>,
            made_up_for: &mut usize,
        ) -> usize {
            let mut faults = plan_faults(plan);
            let all = faults.len();
            faults.retain(|(what, f)| f.verify().is_err() || !harmless(case, origin, what, f));
            *made_up_for += all - faults.len();
            all_caught(text, faults, |f| f.verify().is_err() || case.plan("faulty", f, origin).is_err())
        }
        n += go(text, case, origin, &plan, &mut made_up_for);
        let legal = legalize(&plan, 16).unwrap();
        case.plan("sound", &legal, origin).unwrap();
        n += go(text, case, origin, &legal, &mut made_up_for);
        if plan.target().includes(Level::Avx512) {
            let legal = legalize(&plan, Accesses { widest: 64, permutes: true }).unwrap();
            case.plan("sound", &legal, origin).unwrap();
            permuted += legal.ops().iter().filter(|op| matches!(op, PlanOp::Permute { .. })).count();
            n += go(text, case, origin, &legal, &mut made_up_for);
        }
    });
    assert!(permuted > 0 || !Level::detect().includes(Level::Avx512));
    assert!(n > 1500 && made_up_for * 20 < n, "{n} faults, {made_up_for} without effect");
}

/// Runs `f` in a child process. Returns true if `f` returned true, panicked, crashed, or did not
/// end within 20 seconds.
fn in_child(f: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child process runs only `f` and `_exit`. `f` takes no lock that another thread
    // may hold, except the locks of the allocator, which glibc makes usable after a fork. Unless
    // `f` panics, it prints nothing.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: `alarm` has no precondition; the path is a string that ends in NUL, and
            // `dup2` replaces only the child's standard error. A child that has not ended after 20
            // seconds is in an endless loop, which counts as a caught fault, too. The messages of a
            // crash are not needed, so they go to `/dev/null`.
            unsafe {
                libc::alarm(20);
                libc::dup2(libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY), 2);
            }
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_or(true);
            // SAFETY: `_exit` has no precondition.
            unsafe { libc::_exit(i32::from(caught)) }
        }
        pid => {
            assert!(pid > 0, "fork failed");
            let mut status = 0;
            // SAFETY: `status` is a local variable that is valid for writes during the call.
            assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
            !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != 0
        }
    }
}

/// Returns, for each byte that is written, the offset from which its last value came. `pairs`
/// contains the user offset and the packed offset of each byte that is moved, in order.
fn last(direction: Direction, pairs: impl Iterator<Item = (i64, i64)>) -> BTreeMap<i64, i64> {
    match direction {
        Direction::Pack => pairs.map(|(user, packed)| (packed, user)).collect(),
        Direction::Unpack => pairs.collect(),
    }
}

/// Runs `subject`, which may be faulty, in a child process. Returns true if the oracle catches a
/// fault in it.
fn run_caught(case: &Case, subject: Subject<'_>, direction: Direction, rig: &mut Rig) -> bool {
    in_child(|| {
        // A child process that ends early for any other reason counts as a caught fault as well. So
        // the caller must check that a sound subject is not caught.
        Edge::BOTH
            .into_iter()
            .any(|edge| case.guarded("faulty", subject, rig, direction, edge, None).is_err())
    })
}

#[test]
fn walk() {
    let mut rig = Rig::default();
    let mut n = 0;
    for text in TYPES {
        let t = parse(text);
        let case = Case::new(&t, COUNT).unwrap();
        let Normalized { nest, origin, .. } = normal(&t);
        for direction in Direction::BOTH {
            let mut caught = |nest: &LoopNest<nest::Normal>| {
                run_caught(&case, Subject::Nest(nest, origin, Level::detect()), direction, &mut rig)
            };
            assert!(!caught(&nest), "{text}");
            let mut faults = nest_faults(&nest);
            // A later assignment to the same byte may hide a fault, so compare only the last
            // assignment to each byte. And the interpreter of nests moves only bytes that lie in
            // the packed stream, so leave out assignments outside of it.
            let end = |nest: &LoopNest<nest::Normal>| {
                let inside = |m: &(i64, i64)| (0..case.packed_len() as i64).contains(&m.1);
                last(direction, meaning(nest).into_iter().filter(inside))
            };
            let sound = end(&nest);
            faults.retain(|(_, faulty)| faulty.verify().is_ok() && end(faulty) != sound);
            n += all_caught(text, faults, caught);
        }
    }
    assert!(n > 200, "{n} faults");
}

/// Returns the kernel of a plan. `change` can change the machine code before it is loaded.
fn kernel_of(plan: &Plan<Legal>, change: impl FnOnce(&mut Vec<u8>)) -> Kernel {
    let emitter = emit::Cranelift::for_host(true).unwrap();
    let mut code = emit(&emitter, plan).unwrap();
    let Text::New { bytes, .. } = &mut code.text else { panic!("new code") };
    change(bytes);
    load(code, &Arena::new(1 << 20), emitter.module_target()).unwrap()
}

fn kernel(plan: &Plan<Legal>) -> Kernel {
    kernel_of(plan, |_| {})
}

#[test]
fn emit_and_context() {
    let mut rig = Rig::default();
    let mut n = 0;
    plans(|text, case, origin, plan| {
        let legal = legalize(&plan, 16).unwrap();
        let direction = legal.direction();
        let sound = kernel(&legal);
        assert!(!run_caught(case, Subject::Kernel(&sound, origin), direction, &mut rig), "{text}");
        // Try only a few of the faults, since each fault needs a compile and a child process.
        let mut faults = plan_faults(&legal);
        faults.retain(|(what, f)| f.verify().is_ok() && !harmless(case, origin, what, f));
        let step = faults.len() / 6 + 1;
        let faults: Faulty<Plan<Legal>> = faults.into_iter().step_by(step).collect();
        n += all_caught(text, faults, |faulty| {
            let kernel = kernel(faulty);
            run_caught(case, Subject::Kernel(&kernel, origin), direction, &mut rig)
        });
    });
    assert!(n > 150, "{n} faults");
}

/// Returns true if the code of `op` reads `field` and the value of the field matters. A field that
/// is not an argument of a call is always taken to matter.
fn is_read(op: &PlanOp, field: Field) -> bool {
    let PlanOp::Call { call, .. } = op else { return true };
    let single = call.argument(Role::Iterations) == Some(Argument::Number(plan::Quantity::fixed(1)));
    match field {
        Field::Argument(Role::Length) => call.callee().made_for().is_none(),
        Field::Argument(Role::Iterations | Role::UserStep | Role::PackedStep) => !single,
        _ => true,
    }
}

/// All fields of an operation that can hold a constant.
const FIELDS: [Field; 20] = [
    Field::UserOffset,
    Field::PackedOffset,
    Field::Callee,
    Field::UserStep,
    Field::PackedStep,
    Field::Bytes,
    Field::Rows,
    Field::RowsEnd,
    Field::Limit,
    Field::Argument(Role::Iterations),
    Field::Argument(Role::UserStep),
    Field::Argument(Role::PackedStep),
    Field::Argument(Role::InnerIterations),
    Field::Argument(Role::InnerUserStep),
    Field::Argument(Role::InnerPackedStep),
    Field::Argument(Role::Length),
    Field::Argument(Role::UserOffsets),
    Field::Argument(Role::PackedOffsets),
    Field::Argument(Role::Lengths),
    Field::Argument(Role::Permutation),
];

/// Tests that faults in the words of a context are caught. The words are constants and addresses of
/// tables. The plans in this test are parametric, which means that their code takes all constants
/// from the context.
#[test]
fn context_words() {
    let mut rig = Rig::default();
    let mut n = 0;
    plans(|text, case, origin, plan| {
        let legal = legalize(&plan, 16).unwrap();
        if !legal.is_parametric() || matches!(legal.ops(), [.., PlanOp::Guard { .. }]) {
            return;
        }
        let sound = kernel(&legal);
        let context = Context::from_template(legal.template());
        let words: Vec<u64> = (0..context.len()).map(|i| context.word(i)).collect();
        for (i, op) in legal.ops().iter().enumerate() {
            for field in FIELDS.into_iter().filter(|&field| is_read(op, field)) {
                // Fields without a word in the context are skipped, such as an offset of zero.
                let Some(Operand::Word(word)) = legal.operands().get(i, field) else { continue };
                let mut words = words.clone();
                // Decrease the word and never increase it, since an increase may have no effect. If
                // the number of rows were one too high, the code would read memory after the end of
                // the table, where an empty block may lie. And bytes that are packed in excess are
                // overwritten by the bytes after them.
                let word = &mut words[word as usize];
                if *word == 0 {
                    continue;
                }
                *word = word.wrapping_sub(1);
                let faulty = Kernel::new(sound.shared_code(), Context::new(&words, legal.tables().to_vec()));
                let caught = run_caught(case, Subject::Kernel(&faulty, origin), legal.direction(), &mut rig);
                assert!(caught, "{text}: {field:?} of operation {i}\n{legal}");
                n += 1;
            }
        }
    });
    assert!(n > 30, "{n} faults");
}

/// Tests that a fault in the machine code is caught. The fault changes a constant in the code,
/// which is the distance of two moves.
#[test]
fn code_bytes() {
    let mut rig = Rig::default();
    let t = parse("resized(0, 80000, hindexed([4, 4], [0, 30583], char))");
    let case = Case::new(&t, COUNT).unwrap();
    let Normalized { nest, origin, .. } = normal(&t);
    for direction in Direction::BOTH {
        let legal = legalize(&schedule(&nest, direction, Target::new(Level::Baseline)).unwrap(), 16).unwrap();
        let sound = kernel(&legal);
        assert!(!run_caught(&case, Subject::Kernel(&sound, origin), direction, &mut rig));
        let mut found = false;
        let faulty = kernel_of(&legal, |bytes| {
            // On x86-64 the constant stands in the code as it is, once per copy of the loop's body.
            // Machines of other architectures may load the constant into a register in parts.
            for at in 0..bytes.len() - 1 {
                if bytes[at..at + 2] == 30583_u16.to_le_bytes() {
                    bytes[at] ^= 1;
                    found = true;
                }
            }
        });
        assert!(found || !cfg!(target_arch = "x86_64"), "the constant is not in the code");
        if found {
            assert!(run_caught(&case, Subject::Kernel(&faulty, origin), direction, &mut rig));
        }
    }
}

/// Tests that faults in plans of values, which convert to or from external32, are caught. They are
/// judged by the conversion of the reference interpreter, which is separate. A few faults can be
/// found only by the verifier.
#[test]
fn plans_of_values() {
    let kinds = Direction::BOTH.map(|direction| Kind { direction, operation: Operation::External32 });
    for text in [
        "resized(0, 40, struct([1, 3, 2], [0, 8, 24], [int, short, double]))",
        "hvector(4, 1, 300, vector(5, 3, 7, double))",
        "indexed_block(2, [0, 5, 9, 30, 33, 60, 100], int)",
    ] {
        let t = parse(text);
        let lowered = lower(&t, Values(Operation::External32)).unwrap();
        let Normalized { nest, origin, .. } = normalize(&lowered, t.arguments()).unwrap();
        let span = (t.true_ub() + (COUNT as i64 - 1) * t.extent()) as usize;
        let stream: Vec<u8> = (0..nest.size() as usize * COUNT as usize).map(|i| (i * 37) as u8).collect();
        let mut after = vec![0x55; span];
        external32::unpack(&t, COUNT, &stream, &mut after, 0).unwrap();
        let targets = ["baseline", "avx512+vbmi"].map(|target| target.parse::<Target>().unwrap());
        for (kind, target) in kinds.into_iter().flat_map(|kind| targets.map(|target| (kind, target))) {
            let plan = schedule(&nest, kind, target).unwrap();
            plan.verify().unwrap();
            let right = |plan: &Plan<_>| {
                let pack = kind.direction == Direction::Pack;
                let mut user = if pack { after.clone() } else { vec![0x55; span] };
                let mut packed = if pack { vec![0; stream.len()] } else { stream.clone() };
                plan.eval(COUNT, &mut user, origin as usize, &mut packed);
                user == after && packed == stream
            };
            assert!(right(&plan), "{text}\n{plan}");
            let faults = plan_faults(&plan);
            assert!(faults.len() >= 7, "{text}: {} faults", faults.len());
            for (what, faulty) in faults {
                let caught = faulty.verify().is_err()
                    || catch_unwind(AssertUnwindSafe(|| !right(&faulty))).unwrap_or(true);
                assert!(caught, "{text}: {what}\n{faulty}");
            }
            // The verifier must refuse a plan of bytes that calls the same micro-kernels, and a
            // plan of values with a move of bytes.
            let (ops, tables) = (plan.ops().to_vec(), plan.tables().to_vec());
            let bytes = Plan::<plan::Scheduled>::new(
                ops.clone(),
                plan.root(),
                tables.clone(),
                kind.direction,
                plan.target(),
            );
            assert!(bytes.verify().unwrap_err().to_string().contains("another operation"));
            let mut ops = ops;
            ops[0] = PlanOp::Move { at: nest::Offsets::ZERO, len: 4 };
            let moved = Plan::<plan::Scheduled>::new(ops, plan.root(), tables, kind, plan.target());
            assert!(moved.verify().unwrap_err().to_string().contains("move of bytes"));
        }
    }
}
