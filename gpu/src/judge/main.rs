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
//! The target speeds (called "aims" in the output) depend on the name of the GPU: those of [`ROWS`]
//! hold for an H100, and on an H200 they are 0.08 lower. On any other GPU, the program prints
//! figures and compares them with nothing.
//!
//! The exit status is:
//!
//! * 0 if none of the following is the case, even if a transfer does not reach its target speed,
//! * 1 if a byte is wrong, or if the driver cannot be loaded or initialized, for example because
//!   there is no GPU; then nothing is measured,
//! * 2 if the copy kernel is so slow, compared with the driver's copy, that the figures mean
//!   nothing, or
//! * 3 if a later call of the driver failed or this program panicked.
//!
//! With the argument `--quick`, the program measures only with 4 KiB of packed bytes and with short
//! chains, and does not check the speed of the copy kernel. This serves to test the program itself.
#![deny(unsafe_code)]

mod card;
mod cuda;
mod elements;
mod kernels;
mod rows;
mod transfer;

use std::collections::BTreeSet;
use std::process::ExitCode;

use ddtc::Committed;
use ddtc::internal::corpus;
use ddtc::internal::datatype::{Datatype, TypeMap};
use ddtc::internal::error::{Error, ErrorClass};
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc_gpu::bound::Touched;
use ddtc_gpu::device::Layout;
use ddtc_gpu::driver::Driver;
use ddtc_gpu::kernel::Addresses;
use ddtc_gpu::selection::{Selection, all_kernels, select};

use card::{Card, driver_number, verdict};
use cuda::{CopyKernel, Cuda, Memory, Place, Rows, Stream};
use elements::Elements;
use rows::{Aim, ROWS, Row};
use transfer::{Buffers, Call, bounds};

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

/// Target speed on an H100 of packing into pinned host memory and of unpacking from there, as a
/// fraction of the speed at which the copy kernel copies the same number of bytes between the same
/// two memories.
const PINNED: f64 = 0.97;

/// Exit status of this program if a call of the driver failed or the program panicked.
const BROKEN: i32 = 3;

/// Maximum length, in bytes, of a buffer with unpacked data. A layout of [`ROWS`] is not measured
/// if its buffer would be longer, so that the program also runs on GPUs with little memory. At 64
/// MiB of packed bytes, this concerns only the rows `x face, 8 B` and `y face, 1 KiB`, whose
/// buffers would have 16 GiB and 8 GiB. The buffers of all other layouts have at most 1 GiB.
const MAX_MEASURED: u64 = 4 << 30;

fn pattern(i: usize) -> u8 {
    ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
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
    let (low, high) = bounds(t, count);
    (t.size() > 0 && high - low <= MAX_SPAN).then_some((low as i64, high as i64))
}

/// Packs and unpacks `count` instances of `t` by ddtc, and compares the moved bytes as
/// [`differences`] does. The packed bytes begin `skew` bytes after an aligned address. Adds the
/// names of the kernels that ran to `ran`.
///
/// Returns `None` without any check in these cases: ddtc does not support the layout in device
/// memory, the layout has no bytes, or the instances extend over more than [`MAX_SPAN`] bytes.
fn differences_of_layout(
    (cuda, stream): (&Cuda, Stream),
    (t, count): (&Datatype, u64),
    skew: u64,
    ran: &mut BTreeSet<String>,
) -> Option<Vec<String>> {
    let range = checked_bounds(t, count)?;
    let layout = open(t)?;
    let places = count * t.size() as u64;
    let mut run = |direction, buffers: Buffers<'_>| {
        Call::new(&layout, direction, buffers).submit(stream);
        let (user, packed) = buffers.addresses(t);
        if let Ok(Selection::Kernels(mover)) = select("judge", layout.committed()) {
            let addresses = Addresses { user, packed, table: 0 };
            let variant = mover.variant(&addresses, &(0..places));
            ran.insert(mover.kernel(variant, direction).name);
        }
    };
    let disjoint = layout.committed().nest().disjoint().holds(count);
    let wrong = differences((cuda, stream), (t, count), range, (skew, disjoint), &mut run);
    close(layout);
    Some(wrong)
}

/// Packs and unpacks `count` instances of the layout of a row by one thread for each basic element,
/// and compares the moved bytes as [`differences`] does. Returns `None` if no such kernel moves the
/// layout.
fn differences_of_elements(
    (cuda, stream): (&Cuda, Stream),
    (t, count): (&Datatype, u64),
) -> Option<Vec<String>> {
    let range = checked_bounds(t, count).expect("the bytes of a row are checked");
    let committed = ddtc::commit(t).expect("a layout");
    let elements = Elements::load(&committed)?;
    let mut run = |direction, buffers: Buffers<'_>| elements.submit(direction, buffers, stream);
    let disjoint = committed.nest().disjoint().holds(count);
    Some(differences((cuda, stream), (t, count), range, (0, disjoint), &mut run))
}

/// Packs `count` instances of `t` by a call of `submit`, unpacks them by another call, and compares
/// every byte of the destination buffers, including gaps and the [`MARGIN`] bytes after each
/// buffer, with the expected byte. The arguments of `submit` are the direction and the buffers.
/// `low` and `high` are the bounds that [`checked_bounds`] returns. The packed bytes begin `skew`
/// bytes after an aligned address. Unpacking is skipped if `disjoint` is false, which says that two
/// packed bytes may belong to the same byte of user memory. Returns one message for each direction
/// in which a byte is wrong.
fn differences(
    (cuda, stream): (&Cuda, Stream),
    (t, count): (&Datatype, u64),
    (low, high): (i64, i64),
    (skew, disjoint): (u64, bool),
    submit: &mut dyn FnMut(Direction, Buffers<'_>),
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
    let mut run = |direction, user: &Memory<'_>, packed: &Memory<'_>| {
        submit(direction, Buffers { count, user: (user, -low), packed: packed.place(skew) });
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
    stream: Stream,
    card: Card,
    chain: u32,
    repeats: usize,
}

impl Rig<'_> {
    fn time(&self, submit: &dyn Fn()) -> f64 {
        self.cuda.time(self.stream, self.chain, self.repeats, submit)
    }

    /// Measures how long a program waits for the work of one call of `submit`, in microseconds:
    /// from the call of `submit` until the stream has done the work. Unlike [`Rig::time`], this
    /// includes the time that the host processor takes to submit the work. The result is the median
    /// over `repeats` calls, after one that is discarded.
    fn time_with_calls(&self, submit: &dyn Fn()) -> f64 {
        let mut times: Vec<f64> = (0..=self.repeats)
            .map(|_| {
                let began = std::time::Instant::now();
                submit();
                self.cuda.wait(self.stream);
                began.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        times.remove(0);
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }

    fn copy_kernel(&self, copy: &CopyKernel, bytes: u64, from: &Memory<'_>, to: &Memory<'_>) -> f64 {
        self.time(&|| copy.submit(to, from, bytes, self.stream))
    }
}

/// Figures of a transfer in one direction.
#[derive(Clone, Copy)]
struct Figures {
    /// Speed of the transfer, as a fraction of the speed of the copy kernel.
    share: f64,
    /// Time of the copy kernel in microseconds.
    copied: f64,
    /// Time of the transfer in microseconds.
    took: f64,
}

/// Calls `measure`, which returns the time of the copy kernel and that of a transfer, and returns
/// the figures. If the speed of the transfer times `factor` is close to the target `aim`, calls
/// `measure` two more times, and returns the figures with the median speed.
fn figures(aim: Option<f64>, factor: f64, measure: &dyn Fn() -> (f64, f64)) -> Figures {
    let once = || {
        let (copied, took) = measure();
        Figures { share: copied / took, copied, took }
    };
    let mut all = vec![once()];
    if aim.is_some_and(|aim| (all[0].share * factor / aim - 1.0).abs() < CLOSE) {
        all.extend([once(), once()]);
        all.sort_by(|a, b| a.share.total_cmp(&b.share));
    }
    all[all.len() / 2]
}

/// Prints the figures of a transfer of `payload` bytes in one direction.
fn print(name: &str, direction: Direction, payload: u64, figures: Figures, verdict: &str) {
    let (text, Figures { share, copied, took }) = (direction.to_string(), figures);
    println!("{name:21} {text:6} {payload:9} B {took:9.2} us, copy {copied:8.2} us, r {share:.2}  {verdict}");
}

/// Returns whether speeds with `payload` packed bytes may have a target. Shorter transfers take
/// about as long as a launch without work.
fn has_aims(payload: u64) -> bool {
    payload > MIB / 2
}

/// Measures packing and unpacking of the layout `row` with about `payload` packed bytes, rounded to
/// whole instances, and prints the times. If the buffer with unpacked data would be longer than
/// [`MAX_MEASURED`], prints instead that the layout is left out. The speeds are compared with the
/// target speeds for 64 MiB if `with_bound` is true, and with those for 1 MiB otherwise. If there
/// are at most 512 KiB of packed bytes, or if there are no targets for the GPU, no speed is
/// compared with a target. If a speed is close to its target, it is measured three times, and the
/// median is compared. If the layout is one run of bytes in nested loops, also prints the time of
/// the kernel with one thread for each basic element, which has no target.
fn measure(rig: &Rig<'_>, copy: &CopyKernel, row: &Row, payload: u64, with_bound: bool) {
    let (t, count) = row.instances(payload);
    let payload = count * t.size() as u64;
    let span = bounds(&t, count).1 as u64;
    if span > MAX_MEASURED {
        println!("{:21} {payload:9} B left out: its buffer would have {span} bytes", row.name);
        return;
    }
    let layout = open(&t).expect("a row is served");
    let (user, packed) = (rig.cuda.filled(1, span), rig.cuda.filled(2, payload + 16));
    let other = rig.cuda.filled(3, payload + 16);
    let touched = || Touched::new(layout.committed(), count).expect("the layout of a row is regular");
    let bound = with_bound.then(|| touched().bytes(payload));
    let elements = Elements::load(layout.committed());
    let buffers = Buffers { count, user: (&user, 0), packed: packed.place(0) };
    for direction in Direction::BOTH {
        let call = Call::new(&layout, direction, buffers);
        // Factor that converts a measured speed from a fraction of the copy kernel's speed into a
        // fraction of the upper bound. It is 1 if there is no bound.
        let of_bound = bound.map_or(1.0, |bytes| bytes[direction as usize] as f64 / (2 * payload) as f64);
        let aim = match (has_aims(payload), with_bound) {
            (false, _) => None,
            (true, false) => row.warm[direction as usize].map(Aim::Copy),
            (true, true) => row.cold[direction as usize],
        };
        let (aim, factor, of) = match aim {
            Some(Aim::Bound(aim)) => (rig.card.aim(aim), of_bound, "the bound"),
            Some(Aim::Copy(aim)) => (rig.card.aim(aim), 1.0, "the copy kernel"),
            None => (None, 1.0, ""),
        };
        let figures = figures(aim, factor, &|| {
            (rig.copy_kernel(copy, payload, &packed, &other), rig.time(&|| call.submit(rig.stream)))
        });
        print(row.name, direction, payload, figures, &verdict(figures.share * factor, aim, of));
        if let Some(elements) = &elements {
            let each = rig.time(&|| elements.submit(direction, buffers, rig.stream));
            println!(
                "{:21} {:6} one thread per element {each:9.2} us, r {:.2}, {:.2} times ddtc's time",
                "",
                direction.to_string(),
                figures.copied / each,
                each / figures.took
            );
        }
    }
    today(rig, layout.committed(), &buffers);
    close(layout);
}

/// Measures two methods of packing the instances of a layout by the driver, without a kernel of
/// ddtc: one copy for each block and, if an instance is a single block, one 2-D copy. Prints two
/// times of each method: how long a program waits for it, which includes the submission of the
/// copies, and how long the GPU works if the copies were captured as a graph before. MPI libraries
/// submit copies anew for each message, so the first time is theirs. The times of ddtc's kernels
/// compare with the second; [`call_cost`] measures what submitting a kernel costs. If the driver
/// refuses the 2-D copy, prints the error code in place of its times.
fn today(rig: &Rig<'_>, committed: &Committed, buffers: &Buffers<'_>) {
    let (user, count) = (buffers.user.0, buffers.count);
    let (mut blocks, mut number) = (Vec::<(Place<'_>, Place<'_>, u64)>::new(), 0u64);
    committed.nest().visit(count, |block| {
        number += 1;
        if number <= MAX_COPIES {
            let from = user.place((committed.origin() as i64 + block.at.user) as u64);
            blocks.push((
                buffers.packed.memory.place(buffers.packed.at + block.at.packed as u64),
                from,
                block.n,
            ));
        }
    });
    let one = Rig { chain: 1, ..*rig };
    let copy = || {
        for &(to, from, bytes) in &blocks {
            rig.cuda.copy(to, from, bytes, rig.stream);
        }
    };
    let [waited, worked] = [one.time_with_calls(&copy), one.time(&copy)]
        .map(|measured| measured / blocks.len() as f64 * number as f64);
    let copies = format!(
        "a copy per block {waited:.1} us, as a graph {worked:.1} us (from {} of {number} blocks)",
        blocks.len()
    );
    let t = committed.datatype();
    if t.true_extent() != t.size() {
        println!("{:21} {copies}", "");
        return;
    }
    let rows = Rows::new(buffers.packed, user.place(0), (t.size() as u64, t.extent() as u64, count));
    // First make the 2-D copy once, without measuring its time, to see whether the driver accepts
    // it. The measurement makes the calls during a stream capture, and a refused call would end the
    // capture.
    let rows = match rig.cuda.try_copy_2d(&rows, rig.stream) {
        Ok(()) => {
            let copy = || rig.cuda.copy_2d(&rows, rig.stream);
            format!("{:.2} us, as a graph {:.2} us", rig.time_with_calls(&copy), rig.time(&copy))
        }
        Err(code) => format!("refused (CUDA error {code})"),
    };
    println!("{:21} {copies}, 2-D copy {rows}", "");
}

/// Measures how long the copy kernel and the driver's own copy (`cuMemcpyAsync`) take to copy
/// `bytes` bytes, and prints both times. Returns true if the first time divided by the second is at
/// most `1 + tolerance`.
fn is_valid(rig: &Rig<'_>, copy: &CopyKernel, bytes: u64, tolerance: f64) -> bool {
    let (from, to) = (rig.cuda.filled(0, bytes), rig.cuda.filled(0, bytes));
    // A GPU that has been idle raises its clocks only after some work, so copy for a while before
    // the first time that counts.
    for _ in 0..10 {
        let _ = rig.copy_kernel(copy, bytes, &from, &to);
    }
    let kernel = rig.copy_kernel(copy, bytes, &from, &to);
    let driver = rig.time(&|| rig.cuda.copy(to.place(0), from.place(0), bytes, rig.stream));
    println!("copy of {bytes} B: kernel {kernel:.2} us, cuMemcpyAsync {driver:.2} us");
    kernel <= driver * (1.0 + tolerance)
}

/// Measures how long it takes to pack from device memory into pinned host memory, and to unpack
/// from pinned host memory into device memory. For both directions, prints this time and the time
/// in which the copy kernel copies the same number of bytes between the same two memories. The
/// speeds have a target under the same conditions as those of [`measure`].
fn pinned(rig: &Rig<'_>, copy: &CopyKernel, payload: u64) {
    let layout = open(&"resized(0, 16, double)".parse().expect("a datatype")).expect("it is served");
    let (user, device) = (rig.cuda.filled(1, 2 * payload), rig.cuda.filled(2, payload));
    let host = rig.cuda.pinned(payload);
    let buffers = Buffers { count: payload / 8, user: (&user, 0), packed: host.place(0) };
    let aim = rig.card.aim_over_the_bus(PINNED).filter(|_| has_aims(payload));
    for direction in Direction::BOTH {
        let call = Call::new(&layout, direction, buffers);
        let (to, from) = if direction == Direction::Pack { (&host, &device) } else { (&device, &host) };
        let figures = figures(aim, 1.0, &|| {
            (rig.copy_kernel(copy, payload, from, to), rig.time(&|| call.submit(rig.stream)))
        });
        print("pinned memory", direction, payload, figures, &verdict(figures.share, aim, "the copy kernel"));
    }
    close(layout);
}

/// Measures how much time of the host processor it takes to submit work: once for a call of ddtc
/// that packs one instance, and once for a plain launch of the copy kernel. Prints both times,
/// which are wall-clock times from the call to its return. They do not include the work of the GPU.
/// Each time is the median of several rounds after a first one, in which the driver may still load
/// the kernel.
fn call_cost(rig: &Rig<'_>, copy: &CopyKernel) {
    let (from, to) = (rig.cuda.filled(0, 64), rig.cuda.filled(0, 64));
    let layout = open(&"resized(0, 16, double)".parse().expect("a datatype")).expect("it is served");
    let cost = |submit: &dyn Fn()| {
        const CALLS: u32 = 200;
        let round = |_: usize| {
            let began = std::time::Instant::now();
            (0..CALLS).for_each(|_| submit());
            let took = began.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS);
            rig.cuda.wait(rig.stream);
            took
        };
        let mut rounds: Vec<f64> = (0..=rig.repeats).map(round).skip(1).collect();
        rounds.sort_by(f64::total_cmp);
        rounds[rounds.len() / 2]
    };
    let buffers = Buffers { count: 1, user: (&from, 0), packed: to.place(0) };
    let call = Call::new(&layout, Direction::Pack, buffers);
    let launch = cost(&|| copy.submit(&to, &from, 16, rig.stream));
    let call = cost(&|| call.submit(rig.stream));
    let verdict = match (rig.card, call <= launch + 1.0) {
        (Card::Other, _) => "",
        (_, true) => ", aim 1 us more: reached",
        (_, false) => ", aim 1 us more: MISSED",
    };
    println!("processor time: launch {launch:.2} us, call {call:.2} us{verdict}");
    close(layout);
}

/// Checks every byte of three groups of layouts: those of [`ROWS`], the small datatypes of ddtc's
/// corpus, and the layouts of the module [`kernels`]. Every kernel moves at least one layout of the
/// last group, except the kernels `pieces_far`, whose layouts extend over more than 4 GiB. Prints a
/// message for each direction in which a layout has a wrong byte, and the number of kernels that
/// ran. Layouts of [`ROWS`] that are one run of bytes in nested loops are checked a second time, by
/// the kernel with one thread for each basic element. Returns the number of checks without a wrong
/// byte, and the number of checks with one.
fn judge_bytes(cuda: &Cuda, stream: Stream) -> (u32, u32) {
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
    let (name, version) = (cuda.name(), cuda.version());
    let proc = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let number = driver_number(&proc).unwrap_or("of unknown number");
    println!("{name}, driver {number} for CUDA {version}");
    let card = Card::named(&name);
    let stream = cuda.stream();
    let (right, wrong) = judge_bytes(&cuda, stream);
    println!("{right} checks of layouts are right, every byte, gaps and margins included");
    if wrong > 0 {
        println!("{wrong} checks found WRONG bytes, so that nothing is measured");
        return ExitCode::FAILURE;
    }
    println!("{}", card.rule());
    let (chain, repeats) = if quick { (2, 1) } else { (20, 9) };
    measure_all(&Rig { cuda: &cuda, stream, card, chain, repeats }, quick)
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
