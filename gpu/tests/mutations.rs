//! Mutation tests, which check that the tests of kernels find faults. Each test puts a small fault
//! into the PTX text of a kernel. Either the interpreter of PTX must refuse the changed kernel, or
//! the comparison of the moved bytes must find a wrong byte.

mod calls;

use std::collections::HashMap;
use std::ops::Range;

use calls::interpreter::{Memory, Module};
use calls::{Call, displacements, mover, parse};
use ddtc::internal::kind::Direction;
use ddtc_gpu::kernel::Mover;
use ddtc_gpu::per_element::PerElement;

/// A change that makes the PTX text of a kernel wrong. It replaces the first occurrence of `from`
/// by `to`.
struct Mutation {
    name: &'static str,
    from: &'static str,
    to: &'static str,
}

/// Returns the mutation with the name `name` that replaces `from` by `to`.
const fn mutation(name: &'static str, from: &'static str, to: &'static str) -> Mutation {
    Mutation { name, from, to }
}

/// Changes that make a kernel wrong if it moves words of 8 bytes and computes at least one
/// division. They are applied to the kernels `strided`, `list` and `pieces`.
const MUTATIONS: [Mutation; 8] = [
    mutation("low instead of high half", "mul.hi.u32", "mul.lo.u32"),
    mutation("load without tail predicate", "@%p0 ld.global", "ld.global"),
    mutation("store without tail predicate", "@%p0 st.global", "st.global"),
    mutation("store of another width", "st.global.u64", "st.global.u32"),
    mutation("load of another width", "ld.global.u64", "ld.global.u16"),
    mutation("no user address", "ld.param.u64 %d0, [user]", "mov.u32 %r0, %tid.x"),
    mutation("thread instead of block", "%ctaid.x", "%tid.x"),
    mutation("sum of 32 bits for an address", "add.u64", "add.u32"),
];

/// Changes that make the kernel `strided` wrong. They are applied in addition to [`MUTATIONS`].
const STRIDED_MUTATIONS: [Mutation; 6] = [
    mutation("wrong number of threads", ", 256, ", ", 255, "),
    mutation("one word too many", "setp.lt.u32", "setp.le.u32"),
    mutation("multiplier as shift", "[shift1]", "[multiplier1]"),
    mutation("wrong step", "[step1]", "[stride]"),
    mutation("wrong width of the packed side", ", 8, %d", ", 4, %d"),
    mutation("unknown instruction", "add.u64", "xor.b64"),
];

/// Changes that make the kernel `list` wrong. They are applied in addition to [`MUTATIONS`].
const LIST_MUTATIONS: [Mutation; 9] = [
    mutation("wrong size of an entry of the table", ", 4, %d", ", 8, %d"),
    mutation("packed bytes as the table", "[table]", "[packed]"),
    mutation("another table that is written", "ld.global.nc.u32", "ld.global.nc.u64"),
    mutation("another divisor", "[multiplier_rows]", "[multiplier_length]"),
    mutation("another number of rows", "[rows]", "[length]"),
    mutation("a sum in place of a remainder", "sub.u32", "add.u32"),
    mutation("wrong width of a word in a block", "mov.u32 %r24, 8;", "mov.u32 %r24, 4;"),
    mutation("one word too many", "setp.lt.u32", "setp.le.u32"),
    mutation("wrong step", "[step1]", "[stride]"),
];

/// Changes that make the kernel `pieces` wrong. They are applied in addition to [`MUTATIONS`].
const PIECES_MUTATIONS: [Mutation; 14] = [
    mutation("wrong size of an entry of the table", ", 4, %d", ", 8, %d"),
    mutation("user memory as the table", "[table]", "[user]"),
    mutation("another divisor", "[multiplier_rows]", "[multiplier1]"),
    mutation("another number of rows", "[rows]", "[first]"),
    mutation("wrong step", "[step1]", "[stride]"),
    mutation("a range that begins late", "min.u32", "max.u32"),
    mutation("a range that ends late", "max.u32", "min.u32"),
    mutation("another position as the beginning", "[origin]", "[end]"),
    mutation("another number of bytes in an iteration", "[bytes]", "[end]"),
    mutation("a sum in place of a remainder", "sub.u32", "add.u32"),
    mutation("twice as many lanes", ", 15;", ", 31;"),
    mutation("half as many lanes", ", 15;", ", 7;"),
    mutation("groups that overlap", ", 16, ", ", 8, "),
    mutation("one word too many", "setp.lt.u32", "setp.le.u32"),
];

/// Changes that make the kernel `pieces` wrong if its table has offsets of 64 bits. They are
/// applied in addition to [`MUTATIONS`].
const FAR_MUTATIONS: [Mutation; 5] = [
    mutation("wrong size of an entry of the table", ", 4, %d", ", 8, %d"),
    mutation("another number of bytes in an iteration", "[bytes]", "[end]"),
    mutation("another position as the beginning", "[origin]", "[end]"),
    mutation("32 bits of a long sum", "mad.lo.u64", "mad.lo.u32"),
    mutation("one word too many", "setp.lt.u32", "setp.le.u32"),
];

/// Changes that make the kernel `tile` wrong. The last two are also in [`MUTATIONS`], which is not
/// applied to this kernel.
const TILE_MUTATIONS: [Mutation; 19] = [
    mutation("no barrier", "    bar.sync 0;\n", ""),
    mutation("a barrier that not all threads reach", "bar.sync 0;", "@%p0 bar.sync 0;"),
    mutation("another pitch at one place", ", 33, ", ", 32, "),
    mutation("shared memory that is too small", "tile[8448]", "tile[8192]"),
    mutation("no address of shared memory", ", tile;", ", 0;"),
    mutation("another width in shared memory", "st.shared.u64", "st.shared.u32"),
    mutation("a load from global memory in place of shared memory", "ld.shared.u64", "ld.global.u64"),
    mutation("store to shared memory without a predicate", "@%p4 st.shared", "st.shared"),
    mutation("another dimension of the grid", "%ctaid.y", "%ctaid.x"),
    mutation("another transpose of the batch", "%ctaid.z", "%ctaid.y"),
    mutation("too few columns", "[columns]", "[rows]"),
    mutation("too many rows", "[rows]", "[columns]"),
    mutation("another stride in user memory", "[user_y]", "[user_z]"),
    mutation("another stride in the packed stream", "[packed_x]", "[packed_z]"),
    mutation("another beginning of the range", "[begin]", "[bytes]"),
    mutation("another length of the range", "[bytes]", "[begin]"),
    mutation("a sum in place of a difference", "sub.u32", "add.u32"),
    mutation("thread instead of block", "%ctaid.x", "%tid.x"),
    mutation("sum of 32 bits for an address", "add.u64", "add.u32"),
];

/// Changes that make the kernel `per_element` wrong. They are applied in addition to [`MUTATIONS`],
/// except the first of those, which is a change of an instruction that this kernel does not have.
const PER_ELEMENT_MUTATIONS: [Mutation; 9] = [
    mutation("another number of elements", "[inner1]", "[inner2]"),
    mutation("another stride", "[stride1]", "[stride2]"),
    mutation("a sum in place of a remainder", "sub.u64", "add.u64"),
    mutation("a product in place of a quotient", "div.u32", "mul.lo.u32"),
    mutation("a quotient that is not set", "@%p1 div.u32", "@%p2 div.u32"),
    mutation("no division", "setp.lt.u64", "setp.ge.u64"),
    mutation("a limit that is too small", "4294967296", "0"),
    mutation("another width of an element", "mov.u32 %r12, 8;", "mov.u32 %r12, 4;"),
    mutation("one element too many", "setp.lt.u32", "setp.le.u32"),
];

/// Test case for mutations: a datatype, a number of instances, a range of packed bytes, and the
/// changes that are applied to the kernel that moves this range.
struct Mutated {
    text: String,
    count: u64,
    range: Range<u64>,
    kernel: &'static str,
    mutations: Vec<&'static Mutation>,
}

impl Mutated {
    /// Returns the layout of the test case.
    fn mover(&self) -> Box<dyn Mover> {
        let mover = mover(&parse(&self.text)).expect(&self.text);
        match self.kernel.starts_with("ddtc_per_element") {
            true => Box::new(PerElement::new(&*mover, mover.loops().unit()).expect(&self.text)),
            false => mover,
        }
    }
}

fn mutated() -> Vec<Mutated> {
    let all = |own: &'static [Mutation]| MUTATIONS.iter().chain(own).collect();
    vec![
        Mutated {
            text: "resized(0, 80, hvector(3, 1, 24, double))".to_owned(),
            count: 201,
            range: 0..201 * 24,
            kernel: "ddtc_strided_8_1_32_",
            mutations: all(&STRIDED_MUTATIONS),
        },
        Mutated {
            text:
                "resized(0, 4000, hvector(3, 1, 1320, hindexed_block(2, [600, 0, 320, 1000, 800], double)))"
                    .to_owned(),
            count: 29,
            range: 8..29 * 240 - 16,
            kernel: "ddtc_list_blocks_8_1_32_",
            mutations: all(&LIST_MUTATIONS),
        },
        Mutated {
            text: format!(
                "resized(0, 30000, hvector(2, 1, 14000, hindexed([{}], [{}], double)))",
                "1, 2, 140, 20, 500, 64, 65, 40, 250", "0, 16, 48, 2000, 2200, 7000, 8000, 10000, 10400"
            ),
            count: 2,
            range: 16..4 * 1082 * 8 - 119 * 8,
            kernel: "ddtc_pieces_8_1_32_",
            mutations: all(&PIECES_MUTATIONS),
        },
        Mutated {
            text: format!(
                "resized(0, 30000000000, hvector(2, 1, 14000000000, hindexed([{}], [{}], double)))",
                "1, 2, 140, 20, 64, 65, 40", "9000000000, 16, 48, 2000, 5000000000, 8000, 10400"
            ),
            count: 2,
            range: 1136..4 * 332 * 8 - 39 * 8,
            kernel: "ddtc_pieces_far_8_1_64_",
            mutations: all(&FAR_MUTATIONS),
        },
        Mutated {
            text: "resized(0, 20000, hvector(37, 1, 8, hvector(35, 1, 400, double)))".to_owned(),
            count: 2,
            range: 40..2 * 35 * 37 * 8 - 8,
            kernel: "ddtc_tile_8_",
            mutations: TILE_MUTATIONS.iter().collect(),
        },
        Mutated {
            text: "resized(0, 80, hvector(3, 1, 24, contiguous(2, double)))".to_owned(),
            count: 101,
            range: 8..101 * 48 - 8,
            kernel: "ddtc_per_element_8_2_",
            mutations: MUTATIONS[1..].iter().chain(&PER_ELEMENT_MUTATIONS).collect(),
        },
    ]
}

#[test]
fn mutations_are_found() {
    let mut missed = Vec::new();
    for case in mutated() {
        let (mover, places) = (case.mover(), displacements(&parse(&case.text), case.count));
        let Mutated { text, range, kernel, mutations, .. } = case;
        let call = Call::whole(&*mover, &places, range);
        let mut rules: HashMap<String, &str> = HashMap::new();
        for direction in Direction::BOTH {
            let printed = call.kernel(direction);
            assert!(printed.name.starts_with(kernel), "{}", printed.name);
            call.check(direction, Some(&printed.text)).unwrap_or_else(|e| panic!("{text}: {e}"));
            for Mutation { name, from, to } in &mutations {
                let changed = printed.text.replacen(from, to, 1);
                assert!(changed != printed.text, "{name}: {} has no {from}", printed.name);
                match call.check(direction, Some(&changed)) {
                    Err(found) => _ = rules.insert(found, name),
                    Ok(()) => missed.push(format!("{}: {name}", printed.name)),
                }
            }
        }
        assert!(rules.len() > mutations.len() / 2, "{rules:#?}");
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Returns all variations of the PTX text `text` that differ from it by one small change. An entry
/// of the result has a description of the change, and the changed text. A change leaves out one
/// instruction, leaves out the predicate of one instruction, or adds 8 to one constant. Adding less
/// than 8 might have no effect. For example, the constant may be an upper limit of positions, and
/// all positions are multiples of 8 bytes. The same positions would then be below the limit as
/// before.
fn changes(text: &str) -> Vec<(String, String)> {
    let (head, body) = text.split_once("{\n").expect("a body");
    let lines: Vec<&str> = body.lines().collect();
    let mut changes = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let instruction = line.trim();
        if instruction.starts_with('.') || matches!(instruction, "ret;" | "}") {
            continue;
        }
        let mut replaced = vec![String::new()];
        if let Some((_, unguarded)) = instruction.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
            replaced.push(unguarded.to_owned());
        }
        let words: Vec<&str> = instruction.trim_end_matches(';').split(' ').collect();
        for (at, word) in words.iter().enumerate() {
            if let Ok(constant) = word.trim_end_matches(',').parse::<u64>() {
                let mut words = words.clone();
                let comma = if word.ends_with(',') { "," } else { "" };
                let changed = format!("{}{comma}", constant + 8);
                words[at] = &changed;
                replaced.push(words.join(" ") + ";");
            }
        }
        for new in replaced {
            let mut lines = lines.clone();
            lines[i] = &new;
            changes.push((
                format!("{new:?} in place of {instruction:?}"),
                format!("{head}{{\n{}\n", lines.join("\n")),
            ));
        }
    }
    changes
}

/// Makes many changes to the kernels, one at a time, and checks that each of them is found. Each
/// instruction except `ret` is left out once, each predicate is left out once, and each constant is
/// changed once.
#[test]
fn changes_of_every_instruction_are_found() {
    let mut missed = Vec::new();
    // Leave out the kernel `per_element`. It has instructions that make no difference as long as
    // all numbers fit into 32 bits, which they do in every launch.
    for case in mutated().into_iter().filter(|case| !case.kernel.contains("per_element")) {
        let (mover, places) = (case.mover(), displacements(&parse(&case.text), case.count));
        let call = Call::whole(&*mover, &places, case.range);
        for direction in Direction::BOTH {
            let printed = call.kernel(direction);
            let changes = changes(&printed.text);
            assert!(changes.len() > 25, "{}", printed.name);
            for (what, changed) in changes {
                if call.check(direction, Some(&changed)).is_ok() {
                    missed.push(format!("{}: {what}", printed.name));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Checks mutations of kernels that [`mutated`] does not cover: kernels whose threads move several
/// words each, kernels with vector loads and stores, and kernels that compute offsets with 64 bits.
/// Each mutation must be found.
#[test]
fn mutations_of_other_shapes_are_found() {
    for (text, name, from, to) in [
        ("resized(0, 12, int)", "turns that overlap", ", 512;", ", 256;"),
        ("resized(0, 12, int)", "a turn that is left out", ", 768;", ", 512;"),
        ("resized(0, 48, contiguous(16, byte))", "halves exchanged", "{%d7, %d8}", "{%d8, %d7}"),
        ("hvector(3, 1, -24, double)", "32 bits of a long sum", "mad.lo.u64", "mad.lo.u32"),
        ("hvector(3, 1, -24, double)", "a register that is not set", "cvt.u64.u32 %d8", "cvt.u64.u32 %d6"),
    ] {
        let t = parse(text);
        let mover = mover(&t).expect(text);
        let places = displacements(&t, 2100);
        let range = 0..places.len() as u64;
        let call = Call::whole(&*mover, &places, range);
        let printed = call.kernel(Direction::Pack).text;
        call.check(Direction::Pack, Some(&printed)).unwrap();
        let changed = printed.replacen(from, to, 1);
        assert_ne!(changed, printed, "{name}: no {from} in\n{printed}");
        call.check(Direction::Pack, Some(&changed)).expect_err(name);
    }
}

/// Returns the text of a kernel whose threads read and write an array of 256 numbers in shared
/// memory. Each thread first writes its own number, and waits at a barrier. It then reads two
/// numbers, from the addresses in the registers `reads`. `%r3` has the address of its own number,
/// and `%r5` that of the next thread's number. If `barrier` is true, the thread waits at a second
/// barrier. Finally it overwrites its own number with the first number that it has read.
fn racing(reads: [&str; 2], barrier: bool) -> String {
    let mut text = String::from(
        ".version 7.0\n.target sm_70\n.address_size 64\n\n.visible .entry racing(\n    .param .u32 last\n)\n\
         .maxntid 256, 1, 1\n{\n    .reg .pred %p<1>;\n    .reg .b32 %r<8>;\n    .shared .align 16 .b8 numbers[1024];\n\
         ld.param.u32 %r0, [last];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, numbers;\n\
         mad.lo.u32 %r3, %r1, 4, %r2;\nadd.u32 %r4, %r1, 1;\nmin.u32 %r4, %r4, %r0;\n\
         mad.lo.u32 %r5, %r4, 4, %r2;\nsetp.le.u32 %p0, %r1, %r0;\n\
         @%p0 st.shared.u32 [%r3], %r1;\nbar.sync 0;\n",
    );
    for (i, address) in reads.iter().enumerate() {
        text += &format!("@%p0 ld.shared.u32 %r{}, [{address}];\n", 6 + i);
    }
    if barrier {
        text += "bar.sync 0;\n";
    }
    text + "@%p0 st.shared.u32 [%r3], %r6;\nret;\n}\n"
}

/// Checks that the interpreter finds a race in shared memory: a thread reads a number, and then
/// another thread writes this number without a barrier in between. Before the write, the second
/// thread may also read the number itself. The interpreter must still remember the read of the
/// first thread.
#[test]
fn races_with_earlier_readers_are_found() {
    let (own, next) = ("%r3", "%r5");
    for (reads, barrier, is_right) in [
        ([own, next], true, true),
        ([own, own], false, true),
        ([own, next], false, false),
        ([next, own], false, false),
    ] {
        let module = Module::parse(&racing(reads, barrier)).unwrap();
        let done = module.run(&mut Memory::default(), [1, 1, 1], 256, &[255u32.to_le_bytes().to_vec()]);
        assert_eq!(done.is_ok(), is_right, "{reads:?}: {done:?}");
        if let Err(found) = done {
            assert!(found.contains("without a barrier between them"), "{found}");
        }
    }
}
