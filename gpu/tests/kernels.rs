//! Tests of the printed kernels. An interpreter of PTX runs the kernels on sparse memory, and the
//! bytes that they move are compared with the type map.
//!
//! In each case, user memory consists of the mapped bytes of the datatype and of nothing else.
//! Packed memory consists of the bytes of the range that is moved. So the interpreter refuses a
//! kernel that accesses a gap, or a packed byte before or after the range.

#[allow(dead_code, reason = "the stand-in uses the rest")]
mod interpreter;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use ddtc::internal::corpus;
use ddtc::internal::datatype::{Datatype, TypeMap};
use ddtc::internal::fuzzing::{Budget, Choices, datatype};
use ddtc::internal::kind::Direction;
use ddtc_gpu::index::{Chain, Values, offset_32, offset_64};
use ddtc_gpu::ptx;
use ddtc_gpu::selection::{Selection, select};
use ddtc_gpu::strided::{Launch, Shape, Strided, THREADS};

use interpreter::{Memory, Module};

/// Maximum number of packed bytes in one case of [`check`].
const MAX_BYTES: u64 = 8 << 10;

/// Value of each byte that no kernel has written yet.
const POISON: u8 = 0xa5;

/// Base addresses of the user's buffer and of the packed bytes. A case may add a small offset to
/// one of these addresses, to test another alignment.
const USER: u64 = 1 << 40;
const PACKED: u64 = 0x7000_0000_0000;

fn pattern(i: u64) -> u8 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn strided(t: &Datatype) -> Option<Strided> {
    match select("test", &ddtc::commit(t).unwrap()) {
        Ok(Selection::Strided(strided)) => Some(strided),
        Ok(Selection::Nothing | Selection::Run { .. }) | Err(_) => None,
    }
}

/// Returns the displacement of every packed byte of `count` instances, from the type map.
fn displacements(t: &Datatype, count: u64) -> Vec<i64> {
    TypeMap::instances(t, count)
        .flat_map(|(named, at)| (0..named.size()).map(move |byte| at + byte))
        .collect()
}

/// Returns the value of each parameter of a launch as bytes. The parameters have the order in which
/// `ptx::module` declares them.
fn parameters(strided: &Strided, shape: Shape, launch: &Launch) -> Vec<Vec<u8>> {
    let chain = strided.chain(shape.width);
    let step = |value: u64| match shape.wide {
        true => value.to_le_bytes().to_vec(),
        false => (value as u32).to_le_bytes().to_vec(),
    };
    let mut list = vec![
        launch.user.to_le_bytes().to_vec(),
        launch.packed.to_le_bytes().to_vec(),
        launch.first.to_le_bytes().to_vec(),
        launch.words.to_le_bytes().to_vec(),
        step(chain.stride),
    ];
    for (divisor, value) in chain.divisions {
        list.extend([
            divisor.multiplier.to_le_bytes().to_vec(),
            divisor.shift.to_le_bytes().to_vec(),
            step(value),
        ]);
    }
    list
}

/// Arguments of one call that packs or unpacks: the layout, the displacements of its packed bytes,
/// the addresses of both sides, and the range of packed bytes that is moved.
struct Call<'s> {
    strided: &'s Strided,
    places: &'s [i64],
    user: u64,
    packed: u64,
    range: Range<u64>,
}

impl Call<'_> {
    /// Returns the width, in bytes, of the words in which the call moves its bytes.
    fn width(&self) -> u32 {
        self.strided.width(self.user, self.packed, &self.range)
    }

    /// Returns user memory that consists of the mapped bytes of the instances. The mapped byte that
    /// belongs to packed byte `i` gets the value `value(i)`.
    fn user_memory(&self, value: impl Fn(u64) -> u8) -> Memory {
        let mut bytes = BTreeMap::new();
        for (i, &at) in self.places.iter().enumerate() {
            bytes.insert(self.user.wrapping_add(at as u64), value(i as u64));
        }
        let (mut memory, mut run, mut start) = (Memory::default(), Vec::new(), 0);
        for (&at, &byte) in &bytes {
            if !run.is_empty() && at != start + run.len() as u64 {
                memory.add(start, std::mem::take(&mut run));
            }
            if run.is_empty() {
                start = at;
            }
            run.push(byte);
        }
        memory.add(start, run);
        memory
    }

    /// Moves the bytes of the call with the kernel whose PTX text is `text`, or with the kernel
    /// that ddtc prints if `text` is `None`. Then compares user memory and the packed bytes with
    /// what they should contain. Returns a message if the interpreter refuses the kernel or if a
    /// byte is wrong.
    fn check(&self, direction: Direction, text: Option<&str>) -> Result<(), String> {
        let shape = self.strided.shape(self.width());
        let printed = ptx::module(shape, direction);
        let module = Module::parse(text.unwrap_or(&printed))?;
        let len = self.range.end - self.range.start;
        // One byte of user memory may belong to several packed bytes. So the value of a byte
        // depends on its place in user memory, not on its position in the packed stream.
        let place = |i: u64| pattern(self.places[i as usize] as u64 ^ 0x5555);
        let packed: Vec<u8> = match direction {
            Direction::Pack => vec![POISON; len as usize],
            Direction::Unpack => (0..len).map(pattern).collect(),
        };
        let mut memory = match direction {
            Direction::Pack => self.user_memory(place),
            Direction::Unpack => self.user_memory(|_| POISON),
        };
        memory.add(self.packed, packed);
        let launches = self.strided.launches(self.user, self.packed, self.range.clone(), shape.width);
        for launch in launches {
            let parameters = parameters(self.strided, shape, &launch);
            module.run(&mut memory, launch.blocks(shape.width), THREADS, &parameters)?;
        }
        for i in 0..self.places.len() as u64 {
            let at = self.user.wrapping_add(self.places[i as usize] as u64);
            let inside = self.range.contains(&i);
            let user = memory.bytes(at, 1)?[0];
            let expected = match (direction, inside) {
                (Direction::Pack, _) => place(i),
                (Direction::Unpack, true) => pattern(i - self.range.start),
                (Direction::Unpack, false) => POISON,
            };
            if user != expected {
                return Err(format!("byte {i} is {user:#x} in user memory, not {expected:#x}"));
            }
            if inside && direction == Direction::Pack {
                let byte = memory.bytes(self.packed + (i - self.range.start), 1)?[0];
                if byte != expected {
                    return Err(format!("packed byte {i} is {byte:#x}, not {expected:#x}"));
                }
            }
        }
        Ok(())
    }
}

/// What the cases of one test have covered: the number of layouts, the number of calls that
/// unpacked, and the shapes of the kernels. A shape is given by the width of words in bytes, the
/// number of divisions, and whether sums have 64 bits.
#[derive(Default)]
struct Seen {
    layouts: u32,
    unpacked: u32,
    shapes: BTreeSet<(u32, usize, bool)>,
}

/// Returns a number of instances of `t`, from 1 to 5, whose packed bytes are at most [`MAX_BYTES`].
fn instances(t: &Datatype) -> u64 {
    (MAX_BYTES / t.size() as u64).clamp(1, 5)
}

/// Packs and unpacks instances of `t` by the kernel and checks the moved bytes, with four choices
/// of the range and of the addresses of the two buffers:
///
/// * All packed bytes, where both addresses are aligned to the layout's unit.
/// * A part of the packed bytes, where both addresses are aligned.
/// * All packed bytes, where the address in user memory lies `skew` bytes after an aligned address.
/// * A part of the packed bytes, where the packed address lies `skew` bytes after an aligned one.
///
/// Datatypes that are too large, have no bytes, or are not served by the kernel are skipped.
fn check(t: &Datatype, seen: &mut Seen, skew: u64) {
    if t.size() == 0 || t.size() as u64 > MAX_BYTES {
        return;
    }
    let Some(strided) = strided(t) else { return };
    let count = instances(t);
    let places = displacements(t, count);
    let total = places.len() as u64;
    seen.layouts += 1;
    // If the user's buffer begins at the address `aligned`, the address of the layout's first byte
    // is aligned, whatever the displacement of this byte is.
    let aligned = USER.wrapping_sub(strided.start() as u64);
    let part = total / 3..total - total / 5;
    let unit = u64::from(strided.unit());
    let in_units = part.start / unit * unit..part.end / unit * unit;
    for (user, packed, range) in [
        (aligned, PACKED, 0..total),
        (aligned, PACKED + unit * 3, in_units),
        (aligned + skew, PACKED, 0..total),
        (aligned, PACKED + skew, part),
    ] {
        let call = Call { strided: &strided, places: &places, user, packed, range };
        if call.range.is_empty() {
            continue;
        }
        let shape = strided.shape(call.width());
        seen.shapes.insert((shape.width, shape.divisions, shape.wide));
        let failed = |e| panic!("{t}, {count} instances, {:?} at {user:#x}, {packed:#x}: {e}", call.range);
        call.check(Direction::Pack, None).unwrap_or_else(failed);
        if strided.is_disjoint(count) {
            seen.unpacked += 1;
            call.check(Direction::Unpack, None).unwrap_or_else(failed);
        }
    }
}

/// Checks every datatype of the corpus that the kernel serves, if the datatype is small enough to
/// be interpreted.
#[test]
fn the_corpus() {
    let mut seen = Seen::default();
    for (i, entry) in corpus::application().into_iter().chain(corpus::corner()).enumerate() {
        check(&entry.datatype, &mut seen, 1 << (i % 4));
    }
    assert!(seen.layouts > 20 && seen.unpacked > 40, "{} layouts, {} unpacked", seen.layouts, seen.unpacked);
}

/// Checks random datatypes. Datatypes that the kernel does not serve are skipped.
#[test]
fn random_types() {
    let mut seen = Seen::default();
    for seed in 0..1000 {
        let mut choices = Choices::from_seed(seed);
        let t = datatype(&mut choices, &Budget::small());
        check(&t, &mut seen, 1 << (seed % 5));
    }
    assert!(
        seen.layouts > 100 && seen.unpacked > 150,
        "{} layouts, {} unpacked",
        seen.layouts,
        seen.unpacked
    );
}

/// Returns a random datatype that consists of a run of bytes in a chain of up to three nested
/// loops. Every loop leaves gaps between its iterations, and may have a negative stride.
fn chain(c: &mut Choices<'_>) -> Datatype {
    let byte = Datatype::of::<u8>();
    let unit = 1 << c.below(5);
    let run = unit * c.pick(&[1, 1, 1, 2, 3, 4, 7]);
    let mut t = Datatype::contiguous(run, &byte).unwrap();
    let mut span = run;
    for _ in 0..c.below(4) {
        let trip = c.pick(&[2, 3, 5, 8, 13]);
        let stride = span + unit * c.pick(&[1, 1, 3, 6]);
        let backwards = if c.chance(40) { -1 } else { 1 };
        t = Datatype::hvector(trip, 1, stride * backwards, &t).unwrap();
        span = stride * trip;
        if t.size() > 4000 {
            break;
        }
    }
    Datatype::resized(0, span + unit * c.pick(&[0, 1, 5]), &t).unwrap()
}

/// Checks random chains of nested loops. Together these chains must cover all widths of words, each
/// number of divisions from 0 to 4, sums of 32 bits, and sums of 64 bits.
#[test]
fn chains_of_loops() {
    let mut seen = Seen::default();
    for seed in 0..200 {
        check(&chain(&mut Choices::from_seed(seed)), &mut seen, 1 << (seed % 5));
    }
    for width in [16, 8, 4, 2, 1] {
        for wide in [false, true] {
            assert!(seen.shapes.iter().any(|s| s.0 == width && s.2 == wide), "{width} bytes, wide: {wide}");
        }
    }
    for divisions in 0..=4 {
        assert!(seen.shapes.iter().any(|s| s.1 == divisions), "{divisions} divisions");
    }
    assert!(seen.layouts > 100, "{} layouts", seen.layouts);
}

fn parse(text: &str) -> Datatype {
    text.parse().unwrap()
}

/// Checks layouts whose instances together span more than 4 GiB. For some of these layouts the
/// kernel has sums of 32 bits, and for the others it needs sums of 64 bits.
#[test]
fn extents_beyond_4_gib() {
    let mut seen = Seen::default();
    for text in [
        "hvector(5, 1, 2147483648, vector(3, 1, 2, double))",
        "hvector(5, 1, 2147483656, vector(3, 1, 2, double))",
        "hvector(3, 1, 4294967296, double)",
        "hvector(3, 1, 4294967304, hvector(2, 1, 1073741824, double))",
        "hvector(3, 1, -6000000000, hvector(2, 1, 24, double))",
        "hvector(7, 1, 1000000000, hvector(2, 3, 40, int))",
        "resized(0, 3000000000, hvector(4, 1, 24, double))",
        "resized(0, 1500000000, hvector(4, 1, 24, double))",
    ] {
        check(&parse(text), &mut seen, 4);
    }
    assert_eq!(seen.layouts, 8);
    assert!(seen.shapes.iter().any(|s| s.2) && seen.shapes.iter().any(|s| !s.2), "{:?}", seen.shapes);
}

/// Checks transfers whose number of words is just below, at or just above the number of words that
/// one block of threads moves, and some other numbers. This is done for every width of words.
#[test]
fn tails() {
    for (text, width) in [
        ("resized(0, 48, contiguous(16, byte))", 16),
        ("resized(0, 24, double)", 8),
        ("resized(0, 12, int)", 4),
        ("resized(0, 6, short)", 2),
        ("resized(0, 3, byte)", 1),
    ] {
        let t = parse(text);
        let strided = strided(&t).expect(text);
        let block = u64::from(THREADS * ddtc_gpu::strided::words_per_thread(width));
        for words in [1, 2, 255, 256, 257, block - 1, block, block + 1, block + 256, 2 * block] {
            let places = displacements(&t, words);
            let range = 0..places.len() as u64;
            let call = Call { strided: &strided, places: &places, user: USER, packed: PACKED, range };
            assert_eq!(call.width(), width);
            for direction in Direction::BOTH {
                call.check(direction, None).unwrap_or_else(|e| panic!("{words} of {text}: {e}"));
            }
        }
    }
}

/// A call whose offsets do not fit into 32 bits is split into several launches. Each launch must
/// begin where the launch before it ends. The index arithmetic of the kernels must agree with plain
/// divisions.
#[test]
fn launches_of_huge_calls() {
    let t = parse("resized(0, 64, hvector(2, 3, 20, int))");
    let strided = strided(&t).unwrap();
    let count: u64 = 900_000_000;
    let bytes = 24 * count;
    let mut next = 8;
    let mut launches = 0;
    for launch in strided.launches(USER, PACKED, 8..bytes - 4, 4) {
        launches += 1;
        assert_eq!(launch.packed, PACKED + next - 8);
        assert!(launch.words <= 1 << 30 && launch.words > 0);
        let narrow = strided.chain(4);
        let divisions = narrow.divisions.iter().map(|&(divisor, step)| (divisor, step as u32)).collect();
        let narrow = Chain { stride: narrow.stride as u32, divisions };
        for i in [0, 1, 7, launch.words / 2, launch.words - 1] {
            let word = launch.first + i;
            let byte = next + u64::from(i) * 4;
            let (instance, inside) = (byte / 24, byte % 24);
            let expected = USER + instance * 64 + inside / 12 * 20 + inside % 12;
            assert_eq!(launch.user + offset_32(&mut Values, word, &narrow), expected, "byte {byte}");
            assert_eq!(launch.user.wrapping_add(offset_64(&mut Values, word, &strided.chain(4))), expected);
        }
        next += u64::from(launch.words) * 4;
    }
    assert_eq!(next, bytes - 4);
    assert!(launches >= 13, "{launches}");
}

/// A layout that no kernel serves is refused, and the error names the rule that the layout breaks.
#[test]
fn refusals() {
    for (text, rule) in [
        ("indexed([1, 2, 1], [0, 3, 7], double)", "lists of blocks"),
        ("struct([1, 1], [0, 8], [int, double])", "lists of blocks"),
        (
            "hvector(2,1,999,hvector(2,1,400,hvector(2,1,100,hvector(2,1,40,hvector(2,1,16,double)))))",
            "at most 5 loops",
        ),
        ("resized(0, 1800000000, contiguous(1500000000, byte))", "at most 1 GiB"),
    ] {
        let error = select("test", &ddtc::commit(&parse(text)).unwrap()).unwrap_err();
        assert!(error.to_string().contains(rule), "{text}: {error}");
    }
    let overlapping = strided(&parse("resized(0, 4, double)")).unwrap();
    assert!(!overlapping.is_disjoint(2));
}

/// A change of the PTX text of a kernel. It replaces the first occurrence of `from` by `to`.
struct Mutation {
    name: &'static str,
    from: &'static str,
    to: &'static str,
}

/// Changes that make two kernels wrong: the kernel that packs words of 8 bytes in two nested loops,
/// and the kernel that unpacks them. The tests must find each change in each of the kernels.
const MUTATIONS: [Mutation; 14] = [
    Mutation { name: "wrong number of threads", from: ", 256, ", to: ", 255, " },
    Mutation { name: "low instead of high half", from: "mul.hi.u32", to: "mul.lo.u32" },
    Mutation { name: "load without tail predicate", from: "@%p0 ld.global", to: "ld.global" },
    Mutation { name: "store without tail predicate", from: "@%p0 st.global", to: "st.global" },
    Mutation { name: "one word too many", from: "setp.lt.u32", to: "setp.le.u32" },
    Mutation { name: "store of another width", from: "st.global.u64", to: "st.global.u32" },
    Mutation { name: "load of another width", from: "ld.global.u64", to: "ld.global.u16" },
    Mutation { name: "multiplier as shift", from: "[shift1]", to: "[multiplier1]" },
    Mutation { name: "wrong step", from: "[step1]", to: "[stride]" },
    Mutation { name: "wrong width of the packed side", from: ", 8, %d", to: ", 4, %d" },
    Mutation { name: "no user address", from: "ld.param.u64 %d0, [user]", to: "mov.u32 %r0, %tid.x" },
    Mutation { name: "thread instead of block", from: "%ctaid.x", to: "%tid.x" },
    Mutation { name: "unknown instruction", from: "add.u64", to: "sub.u64" },
    Mutation { name: "sum of 32 bits for an address", from: "add.u64", to: "add.u32" },
];

#[test]
fn mutations_are_found() {
    let t = parse("resized(0, 80, hvector(3, 1, 24, double))");
    let strided = strided(&t).unwrap();
    let places = displacements(&t, 201);
    let range = 0..places.len() as u64;
    let call = Call { strided: &strided, places: &places, user: USER, packed: PACKED, range };
    let shape = strided.shape(call.width());
    assert_eq!(shape, Shape { width: 8, divisions: 1, wide: false });
    let mut rules: HashMap<String, &str> = HashMap::new();
    for direction in Direction::BOTH {
        let printed = ptx::module(shape, direction);
        call.check(direction, Some(&printed)).unwrap();
        for Mutation { name, from, to } in &MUTATIONS {
            let changed = printed.replacen(from, to, 1);
            assert_ne!(changed, printed, "{name}: the kernel has no {from}");
            let found = call.check(direction, Some(&changed)).expect_err(name);
            rules.insert(found, name);
        }
    }
    assert!(rules.len() > MUTATIONS.len() / 2, "{rules:#?}");
}

/// Changes kernels of other shapes than the kernels of [`MUTATIONS`], and checks that each change
/// is found. A change concerns kernels whose threads move several words, kernels with vector loads
/// and stores, or kernels with sums of 64 bits.
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
        let strided = strided(&t).expect(text);
        let places = displacements(&t, 2100);
        let range = 0..places.len() as u64;
        let user = USER.wrapping_sub(strided.start() as u64);
        let call = Call { strided: &strided, places: &places, user, packed: PACKED, range };
        let printed = ptx::module(strided.shape(call.width()), Direction::Pack);
        call.check(Direction::Pack, Some(&printed)).unwrap();
        let changed = printed.replacen(from, to, 1);
        assert_ne!(changed, printed, "{name}: no {from} in\n{printed}");
        call.check(Direction::Pack, Some(&changed)).expect_err(name);
    }
}
