//! The benchmark program `judge` (`ddtc-gpu-judge`). On a GPU, it first checks that the kernels of
//! ddtc move every byte to the right place, and then measures how fast they are.
//!
//! The table [`ROWS`] has a layout in each row. The program packs and unpacks each of these layouts
//! with 16 KiB, 1 MiB and 64 MiB of packed bytes. Alternating with these transfers, it times a copy
//! kernel, which copies the same number of contiguous bytes. The program also times two methods of
//! today's MPI libraries. The first method makes one copy by the driver for each block. The second
//! method makes a single 2-D copy. It is timed only if an instance of the layout is one contiguous
//! block. Layouts that are one run of bytes in nested loops are also moved by a kernel with one
//! thread for each basic element, as in the MPI library MPICH. There is no target for its speed. To
//! measure a time on the device, the program captures a chain of calls as a CUDA graph and replays
//! the graph several times. The time of a call is the median over the replays, divided by the
//! number of calls in the chain.
//!
//! The exit status is:
//!
//! * 0 if none of the following is the case, even if a transfer does not reach its target speed
//!   (called "aim" in the output),
//! * 1 if a byte is wrong, or if the driver cannot be loaded or initialized, for example because
//!   there is no GPU; then nothing is measured,
//! * 2 if the copy kernel is so slow, compared with the driver's copy, that the figures mean
//!   nothing, or
//! * 3 if a later call of the driver failed or this program panicked.
//!
//! With the argument `--quick`, the program measures only with 4 KiB of packed bytes and with short
//! chains, and does not check the speed of the copy kernel. This serves to test the program itself.
#![deny(unsafe_code)]

mod cuda;
mod elements;
mod kernels;
mod rows;

use std::collections::BTreeSet;
use std::process::ExitCode;

use ddtc::Committed;
use ddtc::internal::corpus;
use ddtc::internal::datatype::{Datatype, TypeMap};
use ddtc::internal::error::{Error, ErrorClass};
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc_gpu::bound::Touched;
use ddtc_gpu::device::{Layout, Transfer};
use ddtc_gpu::driver::{Driver, Opaque};
use ddtc_gpu::kernel::Addresses;
use ddtc_gpu::selection::{Selection, all_kernels, select};

use cuda::{CopyKernel, Cuda, Memory, Rows};
use elements::Elements;
use rows::{Aim, ROWS, Row};

/// Number of bytes that are allocated after the end of each buffer. Kernels must not change these
/// bytes, and the program checks this.
const MARGIN: usize = 64;

/// Value with which the destination of a transfer is filled before a kernel writes to it.
const POISON: u8 = 0xa5;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Maximum number of copies that are timed for the method in which the driver makes one copy for
/// each block. If a layout has more blocks, the time for all of them is extrapolated from these
/// copies.
const MAX_COPIES: u64 = 500;

/// Maximum span of a layout whose bytes are checked: the number of bytes of user memory over which
/// its instances extend. Layouts with a larger span are not checked.
const MAX_SPAN: i128 = 8 << 20;

/// Threshold for the relative difference between a measured speed and its target. If the difference
/// is smaller, the speed is measured two more times.
const CLOSE: f64 = 0.02;

/// Exit status of this program if a call of the driver failed or the program panicked.
const BROKEN: i32 = 3;

/// Maximum length, in bytes, of a buffer with unpacked data. A layout of [`ROWS`] is not measured
/// if its buffer would be longer, since a copy of the buffer is also allocated in host memory. At
/// 64 MiB of packed bytes, this concerns only the rows `x face, 8 B` and `y face, 1 KiB`, whose
/// buffers would have 16 GiB and 8 GiB. The buffers of all other layouts have at most 1 GiB.
const MAX_MEASURED: u64 = 4 << 30;

fn pattern(i: usize) -> u8 {
    ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Submits the packing or unpacking of `count` instances of `layout` to a stream. `user` is the
/// address of the user's buffer, and `packed` is the address of the packed bytes.
fn submit(layout: &Layout, direction: Direction, (user, count): (u64, u64), packed: u64, stream: Opaque) {
    let range = 0..layout.committed().packed_size(count).expect("a size");
    let transfer = Transfer { direction, user, count, packed, range };
    layout::submit(layout, &transfer, stream);
}

/// Contains the unsafe call of [`Layout::submit`]. Only this module and the module `cuda` of this
/// program may contain unsafe code.
mod layout {
    #![allow(unsafe_code)] // `Layout::submit` is unsafe, because it takes addresses.

    use super::{Layout, Opaque, Transfer};

    pub(super) fn submit(layout: &Layout, transfer: &Transfer, stream: Opaque) {
        // SAFETY: the callers pass buffers that hold all instances, and wait for the stream before
        // they free the buffers. Streams are never destroyed.
        let done = unsafe { layout.submit("judge", transfer, stream) };
        done.unwrap_or_else(|e| panic!("{e}"));
    }
}

fn open(t: &Datatype) -> Option<Box<Layout>> {
    let committed = ddtc::commit(t).expect("a layout");
    let opened = Layout::open("judge", &committed, 0);
    // A layout that ddtc does not support in device memory is skipped. In this case the error has
    // the class `Unsupported` and names the argument `committed`. Any other error, such as a lack
    // of memory for the list of the layout's blocks, ends this program.
    let is_skipped = |e: &Error| e.class() == ErrorClass::Unsupported && e.argument() == "committed";
    opened.inspect_err(|e| assert!(is_skipped(e), "{e}")).ok()
}

fn close(layout: Box<Layout>) {
    layout.close("judge").map_err(|(_, e)| e).expect("a layout is closed");
}

/// Compares the bytes `found` with the bytes `expected`. Returns `None` if all are equal. Otherwise
/// returns a message that describes the first wrong byte and has the number of further wrong bytes.
/// `what` is the name of the buffer in this message.
fn difference(what: &str, found: &[u8], expected: &[u8]) -> Option<String> {
    let mut wrong = (0..expected.len()).filter(|&i| found[i] != expected[i]);
    let first = wrong.next()?;
    let (is, must, more) = (found[first], expected[first], wrong.count());
    Some(format!("{what}: byte {first} is {is:#04x} and must be {must:#04x}, {more} more bytes are wrong"))
}

/// Returns the displacements of the lowest byte of `count` instances of `t` and of the byte after
/// the highest one. Returns `None` if the layout has no bytes, or if the instances extend over more
/// than [`MAX_SPAN`] bytes, so that their bytes are not checked.
fn checked_bounds(t: &Datatype, count: u64) -> Option<(i64, i64)> {
    let last = i128::from(t.extent()) * (i128::from(count) - 1);
    let (low, high) = (i128::from(t.true_lb()) + last.min(0), i128::from(t.true_ub()) + last.max(0));
    (t.size() > 0 && high - low <= MAX_SPAN).then_some((low as i64, high as i64))
}

/// Packs and unpacks `count` instances of `t` by ddtc, and compares the moved bytes as
/// [`differences`] does. The packed bytes begin `skew` bytes after an aligned address. Adds the
/// names of the kernels that ran to `ran`.
///
/// Returns `None` without any check in these cases: ddtc does not support the layout in device
/// memory, the layout has no bytes, or the instances extend over more than [`MAX_SPAN`] bytes.
fn differences_of_layout(
    (cuda, stream): (&Cuda, Opaque),
    (t, count): (&Datatype, u64),
    skew: u64,
    ran: &mut BTreeSet<String>,
) -> Option<Vec<String>> {
    let bounds = checked_bounds(t, count)?;
    let layout = open(t)?;
    let places = count * t.size() as u64;
    let mut run = |direction, user, packed| {
        submit(&layout, direction, (user, count), packed, stream);
        if let Ok(Selection::Kernels(mover)) = select("judge", layout.committed()) {
            let addresses = Addresses { user, packed, table: 0 };
            let variant = mover.variant(&addresses, &(0..places));
            ran.insert(mover.kernel(variant, direction).name);
        }
    };
    let disjoint = layout.committed().nest().disjoint().holds(count);
    let wrong = differences((cuda, stream), (t, count), bounds, (skew, disjoint), &mut run);
    close(layout);
    Some(wrong)
}

/// Packs and unpacks `count` instances of the layout of a row by one thread for each basic element,
/// and compares the moved bytes as [`differences`] does. Returns `None` if no such kernel moves the
/// layout.
fn differences_of_elements(
    (cuda, stream): (&Cuda, Opaque),
    (t, count): (&Datatype, u64),
) -> Option<Vec<String>> {
    let bounds = checked_bounds(t, count).expect("the bytes of a row are checked");
    let committed = ddtc::commit(t).expect("a layout");
    let elements = Elements::load(&committed)?;
    let bytes = count * t.size() as u64;
    let mut run = |direction, user, packed| elements.submit(direction, (user, packed), bytes, stream);
    let disjoint = committed.nest().disjoint().holds(count);
    Some(differences((cuda, stream), (t, count), bounds, (0, disjoint), &mut run))
}

/// Packs `count` instances of `t` by a call of `submit`, unpacks them by another call, and compares
/// every byte of the destination buffers, including gaps and the [`MARGIN`] bytes after each
/// buffer, with the expected byte. The arguments of `submit` are the direction, the address of the
/// user's buffer, and the address of the packed bytes. `low` and `high` are the bounds that
/// [`checked_bounds`] returns. The packed bytes begin `skew` bytes after an aligned address.
/// Unpacking is skipped if `disjoint` is false, which says that two packed bytes may belong to the
/// same byte of user memory. Returns one message for each direction in which a byte is wrong.
fn differences(
    (cuda, stream): (&Cuda, Opaque),
    (t, count): (&Datatype, u64),
    (low, high): (i64, i64),
    (skew, disjoint): (u64, bool),
    submit: &mut dyn FnMut(Direction, u64, u64),
) -> Vec<String> {
    let span = (high - low) as usize;
    let user: Vec<u8> = (0..span + MARGIN).map(pattern).collect();
    let places: Vec<usize> = TypeMap::instances(t, count)
        .flat_map(|(named, at)| (0..named.size()).map(move |byte| (at + byte - low) as usize))
        .collect();
    let begin = skew as usize;
    let mut streamed = vec![POISON; begin + places.len() + MARGIN];
    let mut unpacked = vec![POISON; user.len()];
    let (from, packed) = (cuda.memory(&user), cuda.memory(&streamed));
    let back = cuda.memory(&unpacked);
    for (i, &at) in places.iter().enumerate() {
        streamed[begin + i] = user[at];
        unpacked[at] = user[at];
    }
    let origin = |memory: &Memory<'_>| memory.address.wrapping_sub(low as u64);
    let mut run = |direction, user: &Memory<'_>, packed: &Memory<'_>| {
        submit(direction, origin(user), packed.address + skew);
        cuda.wait(stream);
    };
    let mut wrong = Vec::new();
    run(Direction::Pack, &from, &packed);
    wrong.extend(difference("packed", &cuda.bytes(&packed, streamed.len()), &streamed));
    if disjoint {
        // Unpack the expected packed bytes, not those that packing has produced. So a fault of
        // packing is not reported again as a fault of unpacking.
        let right = cuda.memory(&streamed);
        run(Direction::Unpack, &back, &right);
        wrong.extend(difference("unpacked", &cuda.bytes(&back, unpacked.len()), &unpacked));
    }
    wrong
}

/// Settings that all measurements of one run of this program share.
struct Rig<'c> {
    cuda: &'c Cuda,
    stream: Opaque,
    chain: u32,
    repeats: usize,
}

impl Rig<'_> {
    fn time(&self, submit: &dyn Fn()) -> f64 {
        self.cuda.time(self.stream, self.chain, self.repeats, submit)
    }

    fn copy_kernel(&self, copy: &CopyKernel, bytes: u64, from: &Memory<'_>, to: &Memory<'_>) -> f64 {
        self.time(&|| copy.submit(to, from, bytes, self.stream))
    }
}

/// Measures packing and unpacking of the layout `row` with about `payload` packed bytes, rounded to
/// whole instances, and prints the times. If the buffer with unpacked data would be longer than
/// [`MAX_MEASURED`], prints instead that the layout is left out. The speeds are compared with the
/// target speeds for 64 MiB if `with_bound` is true, and with those for 1 MiB otherwise. If there
/// are at most 512 KiB of packed bytes, no speed is compared with a target. If a speed is close to
/// its target, it is measured three times, and the median is compared. If the layout is one run of
/// bytes in nested loops, also prints the time of the kernel with one thread for each basic
/// element, which has no target.
fn measure(rig: &Rig<'_>, copy: &CopyKernel, row: &Row, payload: u64, with_bound: bool) {
    let (t, count) = row.instances(payload);
    let payload = count * t.size() as u64;
    let span = t.true_ub() as u64 + t.extent() as u64 * (count - 1);
    if span > MAX_MEASURED {
        println!("{:20} {payload:9} B left out: its buffer would have {span} bytes", row.name);
        return;
    }
    let span = span as usize;
    let layout = open(&t).expect("a row is served");
    let (user, packed) = (rig.cuda.memory(&vec![1; span]), rig.cuda.memory(&vec![2; payload as usize + 16]));
    let other = rig.cuda.memory(&vec![3; payload as usize + 16]);
    let touched = || Touched::new(layout.committed(), count).expect("the layout of a row is regular");
    let bound = with_bound.then(|| touched().bytes(payload));
    let elements = Elements::load(layout.committed());
    for direction in Direction::BOTH {
        let measured = || {
            let copied = rig.copy_kernel(copy, payload, &packed, &other);
            let took =
                rig.time(&|| submit(&layout, direction, (user.address, count), packed.address, rig.stream));
            (copied / took, copied, took)
        };
        // Factor that converts a measured speed from a fraction of the copy kernel's speed into a
        // fraction of the upper bound. It is 1 if there is no bound.
        let of_bound = bound.map_or(1.0, |bytes| bytes[direction as usize] as f64 / (2 * payload) as f64);
        let aim = match (with_bound, payload > MIB / 2) {
            (_, false) => None,
            (false, true) => row.warm[direction as usize].map(|aim| (aim, 1.0, "the copy kernel")),
            (true, true) => row.cold[direction as usize].map(|aim| match aim {
                Aim::Bound(aim) => (aim, of_bound, "the bound"),
                Aim::Copy(aim) => (aim, 1.0, "the copy kernel"),
            }),
        };
        let mut all = vec![measured()];
        if aim.is_some_and(|(aim, factor, _)| (all[0].0 * factor / aim - 1.0).abs() < CLOSE) {
            all.extend([measured(), measured()]);
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        let (share, copied, took) = all[all.len() / 2];
        let verdict = aim.map_or(String::new(), |(aim, factor, of)| {
            let share = share * factor;
            let reached = if share >= aim { "reached" } else { "MISSED" };
            format!("{share:.2} of {of}, aim {aim:.2}: {reached}")
        });
        let (name, text) = (row.name, direction.to_string());
        println!(
            "{name:20} {text:6} {payload:9} B {took:9.2} us, copy {copied:8.2} us, r {share:.2}  {verdict}"
        );
        if let Some(elements) = &elements {
            let each =
                rig.time(&|| elements.submit(direction, (user.address, packed.address), payload, rig.stream));
            println!(
                "{:20} {text:6} one thread per element {each:9.2} us, r {:.2}, {:.2} times ddtc's time",
                "",
                copied / each,
                each / took
            );
        }
    }
    today(rig, layout.committed(), count, user.address, packed.address);
    close(layout);
}

/// Measures two methods of packing `count` instances of a layout by the driver, without a kernel of
/// ddtc: one copy for each block and, if an instance is a single block, one 2-D copy. Prints both
/// times. If the driver refuses the 2-D copy, prints the error code in place of the time.
fn today(rig: &Rig<'_>, committed: &Committed, count: u64, user: u64, packed: u64) {
    let (mut blocks, mut number) = (Vec::new(), 0u64);
    committed.nest().visit(count, |block| {
        number += 1;
        if number <= MAX_COPIES {
            let from = user.wrapping_add_signed(committed.origin() as i64 + block.at.user);
            blocks.push((packed + block.at.packed as u64, from, block.n));
        }
    });
    let one = Rig { chain: 1, ..*rig };
    let each = one.time(&|| {
        for &(to, from, bytes) in &blocks {
            rig.cuda.copy(to, from, bytes, rig.stream);
        }
    });
    let all = each / blocks.len() as f64 * number as f64;
    let copies = format!("a copy per block {all:.1} us (from {} of {number} blocks)", blocks.len());
    let t = committed.datatype();
    if t.true_extent() != t.size() {
        println!("{:20} {copies}", "");
        return;
    }
    let rows = Rows::new(packed, user, (t.size() as u64, t.extent() as u64, count));
    // First make the 2-D copy once, without measuring its time, to see whether the driver accepts
    // it. The measurement makes the calls during a stream capture, and a refused call would end the
    // capture.
    let rows = match rig.cuda.try_copy_2d(&rows, rig.stream) {
        Ok(()) => format!("{:.2} us", rig.time(&|| rig.cuda.copy_2d(&rows, rig.stream))),
        Err(code) => format!("refused (CUDA error {code})"),
    };
    println!("{:20} {copies}, 2-D copy {rows}", "");
}

/// Measures how long the copy kernel and the driver's own copy (`cuMemcpyAsync`) take to copy
/// `bytes` bytes, and prints both times. Returns true if the first time divided by the second is at
/// most `1 + tolerance`.
fn is_valid(rig: &Rig<'_>, copy: &CopyKernel, bytes: u64, tolerance: f64) -> bool {
    let memory = vec![0u8; bytes as usize];
    let (from, to) = (rig.cuda.memory(&memory), rig.cuda.memory(&memory));
    let kernel = rig.copy_kernel(copy, bytes, &from, &to);
    let driver = rig.time(&|| rig.cuda.copy(to.address, from.address, bytes, rig.stream));
    println!("copy of {bytes} B: kernel {kernel:.2} us, cuMemcpyAsync {driver:.2} us");
    kernel <= driver * (1.0 + tolerance)
}

/// Measures how long it takes to pack from device memory into pinned host memory, and to unpack
/// from pinned host memory into device memory. For both directions, prints this time and the time
/// in which the copy kernel copies the same number of bytes between the same two memories.
fn pinned(rig: &Rig<'_>, copy: &CopyKernel, payload: u64) {
    let layout = open(&"resized(0, 16, double)".parse().expect("a datatype")).expect("it is served");
    let (user, device) =
        (rig.cuda.memory(&vec![1; 2 * payload as usize]), rig.cuda.memory(&vec![2; payload as usize]));
    let host = rig.cuda.pinned(payload);
    for direction in Direction::BOTH {
        let (to, from) = if direction == Direction::Pack { (&host, &device) } else { (&device, &host) };
        let copied = rig.time(&|| copy.submit(to, from, payload, rig.stream));
        let count = payload / 8;
        let took = rig.time(&|| submit(&layout, direction, (user.address, count), host.known(), rig.stream));
        let share = copied / took;
        let verdict = if share >= 0.97 { "reached" } else { "MISSED" };
        let direction = direction.to_string();
        println!(
            "pinned memory        {direction:6} {payload:9} B {took:9.2} us, copy {copied:8.2} us, r {share:.2}, aim 0.97: {verdict}"
        );
    }
    close(layout);
}

/// Measures how much time of the host processor it takes to submit work: once for a call of ddtc
/// that packs one instance, and once for a plain launch of the copy kernel. Prints both times,
/// which are wall-clock times from the call to its return. They do not include the work of the GPU.
fn call_cost(rig: &Rig<'_>, copy: &CopyKernel) {
    let (from, to) = (rig.cuda.memory(&[0; 64]), rig.cuda.memory(&[0; 64]));
    let layout = open(&"resized(0, 16, double)".parse().expect("a datatype")).expect("it is served");
    let cost = |submit: &dyn Fn()| {
        const CALLS: u32 = 200;
        let began = std::time::Instant::now();
        (0..CALLS).for_each(|_| submit());
        let took = began.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS);
        rig.cuda.wait(rig.stream);
        took
    };
    let call = || submit(&layout, Direction::Pack, (from.address, 1), to.address, rig.stream);
    let (launch, call) = (cost(&|| copy.submit(&to, &from, 16, rig.stream)), cost(&call));
    let verdict = if call <= launch + 1.0 { "reached" } else { "MISSED" };
    println!("processor time: launch {launch:.2} us, call {call:.2} us, aim 1 us more: {verdict}");
    close(layout);
}

/// Checks every byte of three groups of layouts: those of [`ROWS`], the small datatypes of ddtc's
/// corpus, and the layouts of the module [`kernels`]. Every kernel moves at least one layout of the
/// last group, except the kernels `pieces_far`, whose layouts extend over more than 4 GiB. Prints a
/// message for each direction in which a layout has a wrong byte, and the number of kernels that
/// ran. Layouts of [`ROWS`] that are one run of bytes in nested loops are checked a second time, by
/// the kernel with one thread for each basic element. Returns the number of checks without a wrong
/// byte, and the number of checks with one.
fn judge_bytes(cuda: &Cuda, stream: Opaque) -> (u32, u32) {
    let (mut right, mut wrong, mut ran) = (0, 0, BTreeSet::new());
    let mut judge = |name: &str, t: &Datatype, count, skew, differences: Option<Vec<String>>| {
        let Some(differences) = differences else { return };
        for difference in &differences {
            println!("WRONG: {name}: {t}, {count} instances, skew {skew}, {difference}");
        }
        *if differences.is_empty() { &mut right } else { &mut wrong } += 1;
    };
    let mut by_ddtc =
        |t: &Datatype, count, skew| differences_of_layout((cuda, stream), (t, count), skew, &mut ran);
    for row in &ROWS {
        let (t, count) = row.compared();
        judge(row.name, &t, count, 0, by_ddtc(&t, count, 0));
        let name = format!("{}, one thread per element", row.name);
        judge(&name, &t, count, 0, differences_of_elements((cuda, stream), (&t, count)));
    }
    for entry in corpus::application().into_iter().chain(corpus::corner()) {
        let t = &entry.datatype;
        if t.size() < 64 << 10 {
            judge(&entry.name, t, 3, 0, by_ddtc(t, 3, 0));
        }
    }
    for (t, count) in kernels::layouts() {
        for skew in kernels::SKEWS {
            judge("layout of a kernel", &t, count, skew, by_ddtc(&t, count, skew));
        }
    }
    let all: BTreeSet<String> = all_kernels().into_iter().map(|kernel| kernel.name).collect();
    println!("{} of {} kernels ran", ran.len(), all.len());
    for name in all.difference(&ran).filter(|name| !name.contains("far")) {
        println!("kernel {name} did not run");
    }
    (right, wrong)
}

fn main() -> ExitCode {
    // End the program as soon as a panic begins, before the stack is unwound. Unwinding would free
    // device memory. If a call of the driver has failed, freeing would fail too, and this second
    // panic would abort the program without the exit status `BROKEN`.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("ddtc-gpu-judge: {panic}");
        std::process::exit(BROKEN);
    }));
    let quick = std::env::args().any(|a| a == "--quick");
    let cuda = match Cuda::load() {
        Ok(cuda) => cuda,
        Err(why) => {
            eprintln!("ddtc-gpu-judge: {why}");
            return ExitCode::FAILURE;
        }
    };
    // `Cuda::load` does not initialize the driver, but `Driver::load` does.
    if let Err(error) = Driver::load("judge") {
        eprintln!("ddtc-gpu-judge: {error}");
        return ExitCode::FAILURE;
    }
    cuda.enter();
    println!("{}", cuda.describe());
    let stream = cuda.stream();
    let (right, wrong) = judge_bytes(&cuda, stream);
    println!("{right} checks of layouts are right, every byte, gaps and margins included");
    if wrong > 0 {
        println!("{wrong} checks found WRONG bytes, so that nothing is measured");
        return ExitCode::FAILURE;
    }
    measure_all(
        &Rig { cuda: &cuda, stream, chain: if quick { 2 } else { 20 }, repeats: if quick { 1 } else { 9 } },
        quick,
    )
}

/// Makes all measurements, and returns the exit status of the program.
fn measure_all(rig: &Rig<'_>, quick: bool) -> ExitCode {
    let copy = CopyKernel::load();
    let valid = quick || (is_valid(rig, &copy, 64 * MIB, 0.05) & is_valid(rig, &copy, MIB, 0.12));
    call_cost(rig, &copy);
    let sizes: &[(u64, bool)] =
        if quick { &[(4 * KIB, false)] } else { &[(16 * KIB, false), (MIB, false), (64 * MIB, true)] };
    for &(payload, with_bound) in sizes {
        for row in &ROWS {
            measure(rig, &copy, row, payload, with_bound);
        }
        pinned(rig, &copy, payload);
    }
    if valid {
        return ExitCode::SUCCESS;
    }
    println!("VOID: the copy kernel is too slow, compared with the driver's copy");
    ExitCode::from(2)
}
