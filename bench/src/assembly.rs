//! The bound by a loop in assembly: compiled code in comparison with the fastest of several loops
//! that are written in x86-64 assembly for one layout each, and with the C loops.
//!
//! A row that compiled code moves in about the time of the best of these loops is bound by the
//! machine, so no change of the compiler would make it faster. Each loop in assembly consists of
//! the innermost loop of the layout with constant extents. The loops around it are written in C.
//! A call of compiled code reads three cache lines that a loop with constants does not read (see
//! `called.rs`), so the loops in assembly are timed with such reads too.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write as _;

use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::kind::Direction;
use ddtc::internal::target::Level;

use crate::bytes;
use crate::called::LINES;
use crate::compile;
use crate::csource::{Function, PRELUDE, Style};
use crate::hand::ByName;
use crate::layouts::Row;
use crate::loops::{Dim, Part};
use crate::measure::{Effort, geometric_mean};
use crate::native::{HandLoop, Subject, Tables};
use crate::places::over_places;
use crate::result::Column;

/// Largest ratio of the time of compiled code to that of the best loop at which a row counts as
/// bound by the machine.
const BOUND: f64 = 1.05;

/// Payload in bytes from which on loops with streaming stores are tried, and those with prefetches
/// of blocks at a stride. Shorter payloads stay in the caches, where both lose much.
const LONG: i64 = 256 << 10;

/// Number of blocks by which prefetches run ahead.
const AHEAD: i64 = 16;

/// Form of a loop in assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Loads and stores of at most this number of bytes: 64, 32 or 8.
    Moves(i64),
    /// As [`Form::Moves`], with a prefetch of the user's block that is [`AHEAD`] blocks away.
    Prefetch(i64),
    /// As [`Form::Moves`], with stores that bypass the caches.
    Streaming(i64),
    /// One `rep movsb` for each block.
    Repeat,
    /// Vectors of 64 B of the user's buffer, from which masks select the bytes of short blocks.
    Masks,
    /// As `Moves(64)`, but every other block, which begins in the middle of a cache line, is moved
    /// by 32 B first and last, so that no store crosses a line.
    Aligned,
    /// Gathers of 16 blocks of 4 B or 8 blocks of 8 B for packing, and scatters for unpacking.
    Gather,
}

impl Form {
    const ALL: [Form; 10] = [
        Form::Moves(64),
        Form::Moves(32),
        Form::Moves(8),
        Form::Prefetch(32),
        Form::Streaming(64),
        Form::Streaming(32),
        Form::Repeat,
        Form::Masks,
        Form::Aligned,
        Form::Gather,
    ];

    fn name(self) -> String {
        match self {
            Form::Moves(width) => format!("moves of {width} B"),
            Form::Prefetch(width) => format!("moves of {width} B with prefetches"),
            Form::Streaming(width) => format!("streaming stores of {width} B"),
            Form::Repeat => "rep movsb".into(),
            Form::Masks => "masks".into(),
            Form::Aligned => "stores within lines".into(),
            Form::Gather => "gathers".into(),
        }
    }

    /// Returns true if the form moves the bytes of `part` in both directions, and a processor with
    /// the extensions of `level` can run it. `payload` is the number of bytes of the whole layout.
    fn fits(self, part: &Part, level: Level, payload: i64) -> bool {
        let Some(bytes) = part.block.size().filter(|_| part.block.elem().is_some()) else { return false };
        let wide = |width| width <= if level == Level::Avx512 { 64 } else { 32 };
        match (self, part.dims.last()) {
            (Form::Moves(8), _) => bytes <= 64,
            (Form::Moves(width), _) => wide(width) && bytes >= width / 2,
            (Form::Prefetch(_), Some(Dim::Table { .. })) => bytes <= 4096,
            (Form::Prefetch(_), Some(_)) => payload >= LONG && bytes <= 4096,
            (Form::Streaming(width), Some(Dim::Stride { .. }) | None) => {
                let whole = |n: i64| n % width == 0;
                let strides =
                    part.dims.iter().all(|d| matches!(d, Dim::Stride { stride, .. } if whole(*stride)));
                wide(width) && payload >= LONG && whole(bytes) && whole(part.base) && strides
            }
            (Form::Repeat, _) => bytes >= 128,
            (Form::Masks, Some(&Dim::Stride { stride, .. })) => {
                let packed = [16, 32].contains(&(64 / stride.clamp(1, 64) * bytes));
                level == Level::Avx512 && stride > bytes && 64 % stride == 0 && packed
            }
            (Form::Aligned, Some(Dim::Stride { stride, .. })) => {
                level == Level::Avx512 && stride % 64 == 32 && bytes % 64 == 0 && bytes <= 1024
            }
            (Form::Gather, Some(Dim::Table { .. })) => level == Level::Avx512 && [4, 8].contains(&bytes),
            _ => false,
        }
    }
}

/// The registers of the assembly text: user pointer, packed pointer, counter, and, for layouts with
/// a table, the position in the table.
const OPERANDS: &str = r#": [a]"+r"(a), [q]"+r"(q), [n]"+r"(n), [p]"+r"(p) : : "memory", "cc", "rax", "rdx", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7"#;

/// A writer of the assembly text of one innermost loop.
struct Asm {
    text: String,
    direction: Direction,
    form: Form,
    bytes: i64,
}

impl Asm {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "        \"{line}\\n\"");
    }

    /// Writes loads and stores of one block, which begins at `user` in the user buffer and at
    /// `packed` bytes after the packed pointer. `user` is the text of an address with a place for
    /// the offset at its beginning.
    fn block(&mut self, user: &str, packed: i64) {
        let width = match self.form {
            Form::Moves(width) | Form::Prefetch(width) | Form::Streaming(width) => width,
            _ => 32,
        };
        let (mut at, mut moves) = (0, Vec::new());
        while at < self.bytes {
            let size = [64, 32, 16, 8, 4].into_iter().find(|&s| s <= width.min(self.bytes - at)).unwrap_or(4);
            moves.push((at, size));
            at += size;
        }
        self.pieces(&moves, user, packed);
    }

    /// Writes the given loads and stores of one block, each with its offset in the block and its
    /// size.
    fn pieces(&mut self, moves: &[(i64, i64)], user: &str, packed: i64) {
        // Four loads come before their four stores, as in a memcpy.
        for group in moves.chunks(4) {
            for store in [false, true] {
                for (i, &(at, size)) in group.iter().enumerate() {
                    let (register, name) = match size {
                        64 => ("vmovdqu64", format!("%%zmm{i}")),
                        32 => ("vmovdqu", format!("%%ymm{i}")),
                        16 => ("vmovdqu", format!("%%xmm{i}")),
                        8 => ("movq", format!("%%r{}", 8 + i)),
                        _ => ("movl", format!("%%r{}d", 8 + i)),
                    };
                    let own = format!("{at}{user}");
                    let other = format!("{}(%[q])", packed + at);
                    let (from, to) =
                        if self.direction == Direction::Pack { (own, other) } else { (other, own) };
                    let streams = store && matches!(self.form, Form::Streaming(w) if w == size);
                    let name_of = if streams { "vmovntdq" } else { register };
                    let line = if store {
                        format!("{name_of} {name}, {to}")
                    } else {
                        format!("{register} {from}, {name}")
                    };
                    self.line(&line);
                }
            }
        }
    }

    /// Writes the moves of `blocks` blocks, the first of which is the current one, and does not
    /// advance the pointers. `dim` is the innermost dimension.
    fn blocks(&mut self, dim: &Dim, blocks: i64, ahead: bool) {
        for k in 0..blocks {
            let hint = if self.direction == Direction::Pack { "prefetcht0" } else { "prefetchw" };
            match *dim {
                Dim::Stride { stride, .. } => {
                    if ahead {
                        self.line(&format!("{hint} {}(%[a])", (k + AHEAD) * stride));
                    }
                    if self.form == Form::Repeat {
                        self.repeat(&format!("leaq {}(%[a]), ", k * stride), k * self.bytes);
                    } else {
                        self.block(&format!("+{}(%[a])", k * stride), k * self.bytes);
                    }
                }
                Dim::Table { unit, .. } => {
                    if ahead {
                        self.line(&format!("movslq {}(%[p]), %%rax", 4 * (k + AHEAD)));
                        self.line(&format!("imulq ${unit}, %%rax, %%rax"));
                        self.line(&format!("{hint} (%[a],%%rax)"));
                    }
                    self.line(&format!("movslq {}(%[p]), %%rdx", 4 * k));
                    self.line(&format!("imulq ${unit}, %%rdx, %%rdx"));
                    if self.form == Form::Repeat {
                        self.repeat("leaq (%[a],%%rdx), ", k * self.bytes);
                    } else {
                        self.block("(%[a],%%rdx)", k * self.bytes);
                    }
                }
            }
        }
    }

    /// Writes a `rep movsb` of a block. `user` begins an instruction that computes its address.
    fn repeat(&mut self, user: &str, packed: i64) {
        let (own, other) = if self.direction == Direction::Pack { ("rsi", "rdi") } else { ("rdi", "rsi") };
        self.line(&format!("{user}%%{own}"));
        self.line(&format!("leaq {packed}(%[q]), %%{other}"));
        self.line(&format!("movl ${}, %%ecx", self.bytes));
        self.line("rep movsb");
    }

    /// Writes a loop of `times` iterations around `body`, which moves `blocks` blocks. Afterwards
    /// the pointers are at the block after the last one.
    fn around(&mut self, dim: &Dim, label: i64, times: i64, blocks: i64, body: impl Fn(&mut Asm)) {
        if times == 0 {
            return;
        }
        self.line(&format!("movq ${times}, %[n]"));
        self.line(".p2align 5");
        self.line(&format!("{label}:"));
        body(self);
        match *dim {
            Dim::Stride { stride, .. } => self.line(&format!("addq ${}, %[a]", blocks * stride)),
            Dim::Table { .. } => self.line(&format!("addq ${}, %[p]", 4 * blocks)),
        }
        self.line(&format!("addq ${}, %[q]", blocks * self.bytes));
        self.line("subq $1, %[n]");
        self.line(&format!("jnz {label}b"));
    }

    /// Writes the whole innermost loop of `trip` iterations.
    fn whole(&mut self, dim: &Dim, trip: i64) {
        let unroll = (512 / self.bytes).clamp(1, 8);
        let ahead = if matches!(self.form, Form::Prefetch(_)) { (trip - AHEAD).max(0) } else { 0 };
        self.around(dim, 1, ahead / unroll, unroll, |asm| asm.blocks(dim, unroll, true));
        let left = trip - ahead / unroll * unroll;
        match (self.form, dim) {
            (Form::Masks, &Dim::Stride { stride, .. }) => {
                let group = 64 / stride;
                self.masks(stride);
                self.around(dim, 2, left / group, group, |asm| asm.masked(group));
                self.form = Form::Moves(8);
                self.around(dim, 3, left % group, 1, |asm| asm.blocks(dim, 1, false));
            }
            (Form::Aligned, &Dim::Stride { stride, .. }) => {
                self.around(dim, 2, left / 2, 2, |asm| asm.aligned(stride));
                self.form = Form::Moves(32);
                self.around(dim, 3, left % 2, 1, |asm| asm.blocks(dim, 1, false));
            }
            (Form::Gather, &Dim::Table { unit, .. }) => {
                let group = 64 / self.bytes;
                self.around(dim, 2, left / group, group, |asm| asm.gathered(unit));
                self.form = Form::Moves(8);
                self.around(dim, 3, left % group, 1, |asm| asm.blocks(dim, 1, false));
            }
            _ => {
                self.around(dim, 2, left / unroll, unroll, |asm| asm.blocks(dim, unroll, false));
                self.around(dim, 3, left % unroll, 1, |asm| asm.blocks(dim, 1, false));
            }
        }
    }

    /// Writes the moves of two blocks, the first of which begins at a cache line.
    fn aligned(&mut self, stride: i64) {
        let lines = |from: i64, to: i64| (from..to).step_by(64).map(|at| (at, 64));
        let first: Vec<_> = lines(0, self.bytes).collect();
        let mut second = vec![(0, 32)];
        second.extend(lines(32, self.bytes - 32));
        second.push((self.bytes - 32, 32));
        self.pieces(&first, "+0(%[a])", 0);
        self.pieces(&second, &format!("+{stride}(%[a])"), self.bytes);
    }

    /// Sets the mask register k1 to the 4-byte words of the blocks in a vector of 64 B.
    fn masks(&mut self, stride: i64) {
        let mask =
            (0..16).filter(|word| 4 * word % stride < self.bytes).fold(0, |mask, word| mask | 1 << word);
        self.line(&format!("movl ${mask}, %%eax"));
        self.line("kmovw %%eax, %%k1");
    }

    /// Writes the moves of the `group` blocks in a vector of 64 B of the user buffer.
    fn masked(&mut self, group: i64) {
        let packed = if group * self.bytes == 32 { "%%ymm1" } else { "%%xmm1" };
        if self.direction == Direction::Pack {
            self.line("vmovdqu32 (%[a]), %%zmm0%{%%k1%}%{z%}");
            self.line("vpcompressd %%zmm0, %%zmm1%{%%k1%}%{z%}");
            self.line(&format!("vmovdqu {packed}, (%[q])"));
        } else {
            self.line(&format!("vmovdqu (%[q]), {packed}"));
            self.line("vpexpandd %%zmm1, %%zmm0%{%%k1%}%{z%}");
            self.line("vmovdqu32 %%zmm0, (%[a])%{%%k1%}");
        }
    }

    /// Writes the moves of 64 B in blocks whose places are entries of the table times `unit`, which
    /// is 4 or 8.
    fn gathered(&mut self, unit: i64) {
        let (load, suffix) = if self.bytes == 4 {
            ("vmovdqu32 (%[p]), %%zmm1", "dd")
        } else {
            ("vmovdqu (%[p]), %%ymm1", "dq")
        };
        let index = if self.bytes == 4 { "%%zmm1" } else { "%%ymm1" };
        self.line(load);
        self.line("kxnorw %%k0, %%k0, %%k1");
        if self.direction == Direction::Pack {
            self.line(&format!("vpgather{suffix} (%[a],{index},{unit}), %%zmm0%{{%%k1%}}"));
            self.line("vmovdqu32 %%zmm0, (%[q])");
        } else {
            self.line("vmovdqu32 (%[q]), %%zmm0");
            self.line(&format!("vpscatter{suffix} %%zmm0, (%[a],{index},{unit})%{{%%k1%}}"));
        }
    }
}

/// Returns the C source of a function that moves the bytes of `row` by loops in assembly.
fn function(
    row: &Row,
    tables: &[Vec<i64>],
    (id, i): (usize, usize),
    form: Form,
    direction: Direction,
) -> (String, Function) {
    let symbol = format!("a{id}_{i}_{}", direction.name());
    let mut source = format!(
        "/* {}, {} */\nvoid {symbol}(char *user, char *packed, const long *x, const int *const *t)\n{{\n  (void)x; (void)t;\n",
        row.name,
        form.name()
    );
    if let Form::Streaming(width) = form {
        let to = if direction == Direction::Pack { "packed" } else { "user" };
        let _ = writeln!(source, "  if ((unsigned long){to} % {width}) __builtin_trap();");
    }
    let mut offset = 0;
    for part in &row.loops.parts {
        let (outer, inner) = part.dims.split_at(part.dims.len().saturating_sub(1));
        let inner = inner.first().cloned().unwrap_or(Dim::Stride { trip: 1, stride: 0 });
        let _ = writeln!(source, "  {{\n    char *q = packed + {offset};");
        let mut place = format!("user + {}", part.base);
        for (d, dim) in outer.iter().enumerate() {
            let (trip, step) = match *dim {
                Dim::Stride { trip, stride } => (trip, format!("i{d} * {stride}")),
                Dim::Table { table, unit } => {
                    (tables[table].len() as i64, format!("(long)t[{table}][i{d}] * {unit}"))
                }
            };
            let _ = writeln!(source, "    for (long i{d} = 0; i{d} < {trip}; ++i{d})");
            let _ = write!(place, " + {step}");
        }
        let (trip, list) = match inner {
            Dim::Stride { trip, .. } => (trip, "0".into()),
            Dim::Table { table, .. } => (tables[table].len() as i64, format!("t[{table}]")),
        };
        let mut asm = Asm { text: String::new(), direction, form, bytes: part.block.size().unwrap_or(0) };
        asm.whole(&inner, trip);
        let more = match form {
            Form::Repeat => r#"", "rcx", "rsi", "rdi""#,
            Form::Masks | Form::Gather => r#"", "k1""#,
            _ => "\"",
        };
        let _ = writeln!(
            source,
            "    {{\n      char *a = {place};\n      const int *p = {list};\n      long n;\n      __asm__ volatile(\n{}        {OPERANDS}{more});\n    }}\n  }}",
            asm.text
        );
        offset += part.payload(tables);
    }
    // Streaming stores are ordered before what follows, as any function that uses them must do.
    let fence = if matches!(form, Form::Streaming(_)) { "sfence\\n" } else { "" };
    let _ = writeln!(source, "  __asm__ volatile(\"{fence} vzeroupper\" ::: \"memory\");\n}}\n");
    (source, Function { symbol, extents: Vec::new() })
}

/// The loops in assembly of a layout, with their forms.
type Loops = Vec<(Form, HandLoop)>;

/// Compiles the loops in assembly of the layouts `rows`, and returns them by the name of the
/// layout.
///
/// # Errors
/// Returns an error if there is no C compiler or the compiler refuses the source.
fn build(rows: &[Row], level: Level) -> Result<HashMap<String, Loops>, Box<dyn Error>> {
    let (mut source, mut made) = (String::from(PRELUDE), Vec::new());
    for (id, row) in rows.iter().enumerate() {
        let lists = row.loops.tables.iter().map(|text| ddtc::internal::corpus::list(text));
        let tables: Vec<Vec<i64>> = lists.collect::<Result<_, _>>()?;
        let payload = row.loops.payload(&tables);
        let fits = |form: &Form| row.loops.parts.iter().all(|part| form.fits(part, level, payload));
        for (i, form) in Form::ALL.into_iter().enumerate().filter(|(_, form)| fits(form)) {
            let functions = Direction::BOTH.map(|direction| {
                let (text, function) = function(row, &tables, (id, i), form, direction);
                source.push_str(&text);
                function
            });
            made.push((row, tables.clone(), form, functions));
        }
    }
    let library = compile::load(&source)?;
    let mut all: HashMap<String, Loops> = HashMap::new();
    for (row, tables, form, [pack, unpack]) in made {
        let symbols = [library.symbol(&pack)?, library.symbol(&unpack)?];
        let (span, payload) = (row.loops.span(&tables), row.loops.payload(&tables));
        let hand = HandLoop::new(symbols, Tables::new(&tables)?, span, payload);
        all.entry(row.name.clone()).or_default().push((form, hand));
    }
    Ok(all)
}

/// A way to move the bytes of a layout that is timed.
#[derive(Clone, Debug)]
enum Way {
    Compiled,
    /// A C loop.
    C(Style),
    /// A loop in assembly.
    Assembly(Form),
    /// A loop in assembly after as many reads of cache lines as a call of compiled code makes.
    Called(Form),
}

impl Way {
    fn name(&self) -> String {
        match self {
            Way::Compiled => "compiled".into(),
            Way::C(style) => format!("C loop {}", style.name()),
            Way::Assembly(form) => form.name(),
            Way::Called(form) => format!("{} after {LINES} lines", form.name()),
        }
    }

    /// Returns true for loops in assembly that are compared with compiled code. Compiled code uses
    /// streaming stores only if the program asks for them, so loops with such stores are recorded
    /// but not compared.
    fn is_rival(&self, called: bool) -> bool {
        match self {
            Way::Assembly(form) => !called && !matches!(form, Form::Streaming(_)),
            Way::Called(form) => called && !matches!(form, Form::Streaming(_)),
            _ => false,
        }
    }
}

/// Measures the layouts `rows`, prints a table and returns the record.
///
/// # Errors
/// Returns an error on a processor without AVX2, the errors of commits and of loops, or an error if
/// the bytes of a variant differ.
pub(crate) fn run(
    rows: &[Row],
    loops: &mut ByName,
    level: Level,
    quick: bool,
) -> Result<String, Box<dyn Error>> {
    if !matches!(level, Level::Avx2 | Level::Avx512) {
        return Err(format!("loops in assembly need a processor with AVX2, and the level is {level}").into());
    }
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let mut assembly = build(rows, level)?;
    let mut csv = String::from("layout,direction,payload_bytes,way,ns,compiled_over_it\n");
    println!("nanoseconds; `called` is the best loop in assembly after reads of {LINES} cache lines");
    print!(
        "{:22} {:>6} {:>9} {:>10} {:>10} {:>10}",
        "layout", "", "payload", "compiled", "C loop", "assembly"
    );
    println!(" {:>10} {:>8} {:>8}", "called", "over it", "over +3");
    let mut ratios = Vec::new();
    for row in rows {
        let (Some(hand), Some(own)) = (loops.remove(&row.name), assembly.remove(&row.name)) else {
            println!("{:22} has blocks for which there is no loop in assembly", row.name);
            continue;
        };
        let (mut subject, ways) = subject(row, hand, own, level).map_err(|e| format!("{}: {e}", row.name))?;
        let timed: Vec<usize> = (0..ways.len()).collect();
        let places = effort.places_for(row.name.ends_with(".S"), subject.bytes());
        let times = over_places(&mut subject, &timed, places, effort);
        for (direction, times) in Direction::BOTH.into_iter().zip(times) {
            let all: Vec<(&Way, f64)> = ways.iter().zip(times.iter().map(|t| t.middle)).collect();
            let compiled = all[0].1;
            for (way, ns) in &all {
                let (name, bytes) = (&row.name, subject.payload());
                let _ =
                    writeln!(csv, "{name},{direction},{bytes},{},{ns:.2},{:.3}", way.name(), compiled / ns);
            }
            let best = |chosen: &dyn Fn(&Way) -> bool| {
                let some = all.iter().filter(|(way, _)| chosen(way));
                some.min_by(|a, b| a.1.total_cmp(&b.1)).ok_or("no loop in assembly was timed")
            };
            let c = best(&|way| matches!(way, Way::C(_)))?.1;
            let (own, called) = (best(&|way| way.is_rival(false))?, best(&|way| way.is_rival(true))?);
            let over = compiled / called.1;
            print!("{:22} {:>6} {:>9}", row.name, direction.name(), subject.payload());
            print!(" {compiled:>10.2} {c:>10.2} {:>10.2} {:>10.2}", own.1, called.1);
            let verdict = if over <= BOUND { "bound" } else { "open" };
            println!(" {:>8.2} {over:>8.2}  {verdict}; {}", compiled / own.1, own.0.name());
            ratios.push(over);
        }
    }
    println!("geometric mean over the loops that are called so: {:.2}", geometric_mean(ratios));
    Ok(csv)
}

/// Returns the layout of `row` with all variants after a check of their bytes, and the ways that
/// are timed, in the order of the variants. The last variant is the reference interpreter, which is
/// not timed.
fn subject(
    row: &Row,
    hand: Vec<(Style, HandLoop)>,
    own: Loops,
    level: Level,
) -> Result<(Subject, Vec<Way>), Box<dyn Error>> {
    let engine = |mode| Engine::new(Config { mode, level, both_directions: true, ..Config::default() });
    let mut subject = Subject::new(&row.entry()?)?;
    subject.add_engine(Column::Compiled, &engine(Mode::Commit))?;
    let mut ways = vec![Way::Compiled];
    for (style, hand) in hand.into_iter().filter(|(style, _)| *style != Style::Runtime) {
        subject.add_loops(style.column(), hand)?;
        ways.push(Way::C(style));
    }
    for (form, hand) in own {
        subject.add_loops(Column::Constant, hand)?;
        subject.add_called(ways.len(), LINES);
        ways.extend([Way::Assembly(form), Way::Called(form)]);
    }
    subject.add_engine(Column::Interp, &engine(Mode::Off))?;
    bytes::check(&mut subject, Column::Interp)?;
    Ok((subject, ways))
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;
    use crate::layouts::{self, Sizes};

    #[test]
    fn every_loop_in_assembly_moves_the_bytes_of_its_datatype() {
        // The short rows have every form, and the reference interpreter is slow in a debug build.
        let mut rows = layouts::rows(Sizes::Corpus);
        rows.retain(|row| row.name.ends_with(".S"));
        for level in Level::available().filter(|level| level.arch().is_some()) {
            let mut assembly = build(&rows, level).unwrap();
            for row in &rows {
                let Some(own) = assembly.remove(&row.name) else { continue };
                subject(row, Vec::new(), own, level).unwrap_or_else(|e| panic!("{}: {e}", row.name));
            }
        }
    }
}
