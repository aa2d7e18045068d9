//! Prints kernels as PTX text. PTX is the assembly language that NVIDIA's driver compiles.
//!
//! The text declares version 7.0 of PTX and the target `sm_70`. PTX is forward compatible, so later
//! drivers and GPUs accept the text too. Each printed module has one kernel.
//!
//! The printer handles only single instructions, parameters and registers. The modules of the
//! kernels ([`strided`](crate::strided), [`list`](crate::list), [`pieces`](crate::pieces),
//! [`tile`](crate::tile) and [`per_element`](crate::per_element)) call it to print what a kernel
//! does.

use std::fmt::Write;

use ddtc::internal::kind::Direction;

use crate::index::{Arithmetic, Chain, Divisor, Split, offset_32, offset_64};
use crate::kernel::{Kernel, THREADS};

/// Type of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Predicate,
    Word,
    Long,
}

impl Type {
    /// Returns the prefix of the names of registers of this type, and the name of the type as a
    /// `.reg` declaration contains it.
    fn declared(self) -> (&'static str, &'static str) {
        match self {
            Type::Predicate => ("%p", "pred"),
            Type::Word => ("%r", "b32"),
            Type::Long => ("%d", "b64"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Register {
    of: Type,
    number: usize,
}

impl std::fmt::Display for Register {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.of.declared().0, self.number)
    }
}

/// PTX state space in which a load or a store accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// Global memory: device memory or pinned host memory.
    Global,
    /// Shared memory, which the threads of a block share.
    Shared,
}

impl Space {
    fn name(self) -> &'static str {
        match self {
            Space::Global => "global",
            Space::Shared => "shared",
        }
    }
}

/// Printer of the instructions of one kernel. Every instruction writes its result to a new
/// register, except the two of [`Printer::split_long`] that compute a quotient in two ways.
#[derive(Default)]
pub(crate) struct Printer {
    parameters: Vec<String>,
    variables: String,
    body: String,
    used: [usize; 3],
}

/// Returns the last word of the names of kernels for this direction.
pub(crate) fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Pack => "pack",
        Direction::Unpack => "unpack",
    }
}

impl Printer {
    fn register(&mut self, of: Type) -> Register {
        let used = &mut self.used[of as usize];
        *used += 1;
        Register { of, number: *used - 1 }
    }

    /// Prints the instruction `operation RESULT, operands;`, where `RESULT` is a new register of
    /// the type `of`. Returns this register.
    fn instruction(&mut self, of: Type, operation: &str, operands: &str) -> Register {
        let result = self.register(of);
        writeln!(self.body, "    {operation} {result}, {operands};").expect("a string");
        result
    }

    /// Declares the next parameter of the kernel, and returns a register with its value.
    pub(crate) fn parameter(&mut self, name: &str, of: Type) -> Register {
        let bits = if of == Type::Long { 64 } else { 32 };
        self.parameters.push(format!("    .param .u{bits} {name}"));
        self.instruction(of, &format!("ld.param.u{bits}"), &format!("[{name}]"))
    }

    /// Declares the next parameter of the kernel, which is an address. Returns a register with this
    /// address, converted to an address in global memory.
    pub(crate) fn global(&mut self, name: &str) -> Register {
        let address = self.parameter(name, Type::Long);
        self.instruction(Type::Long, "cvta.to.global.u64", &address.to_string())
    }

    /// Declares two parameters of 32 bits that represent a divisor: a multiplier and a shift. The
    /// names of the parameters end with `suffix`.
    fn divisor(&mut self, suffix: &str) -> Divisor<Register> {
        let multiplier = self.parameter(&format!("multiplier{suffix}"), Type::Word);
        let shift = self.parameter(&format!("shift{suffix}"), Type::Word);
        Divisor { multiplier, shift }
    }

    /// Declares three parameters of 32 bits for a division with remainder: the multiplier and the
    /// shift that represent the divisor, and the divisor as a plain number. `name` is the name of
    /// the third parameter.
    pub(crate) fn split(&mut self, name: &str) -> Split<Register> {
        let divisor = self.divisor(&format!("_{name}"));
        Split { divisor, number: self.parameter(name, Type::Word) }
    }

    /// Declares the parameters from which a thread computes offsets in nested loops ([`Chain`]).
    /// The first parameter is the stride of the innermost loop. Three parameters follow for each of
    /// the `divisions` other loops: the multiplier of the loop's divisor (32 bits), the shift of
    /// this divisor (32 bits), and the step of the loop. The stride and the steps have 64 bits if
    /// `wide` is true, and 32 bits otherwise.
    pub(crate) fn chain(&mut self, divisions: usize, wide: bool) -> Chain<Register, Register> {
        let step = if wide { Type::Long } else { Type::Word };
        let stride = self.parameter("stride", step);
        let divisions = (1..=divisions)
            .map(|i| (self.divisor(&i.to_string()), self.parameter(&format!("step{i}"), step)))
            .collect();
        Chain { stride, divisions }
    }

    /// Returns a register with the offset in user memory of the item with the index `index` in the
    /// nested loops `chain`. The item is a word for the kernel `strided`, and an iteration of the
    /// innermost loop for `list` and `pieces`. The printed instructions compute the offset with 64
    /// bits if `wide` is true, and with 32 bits otherwise.
    pub(crate) fn offset(
        &mut self,
        index: Register,
        chain: &Chain<Register, Register>,
        wide: bool,
    ) -> Register {
        if wide { offset_64(self, index, chain) } else { offset_32(self, index, chain) }
    }

    /// Returns a register with the sum of the offset `inside` and the offset in user memory of an
    /// iteration of the innermost loop of `chain`. The offset of the iteration is computed with 64
    /// bits if `wide` is true, and with 32 bits otherwise. `inside` and the sum have 64 bits.
    pub(crate) fn offset_in_iteration(
        &mut self,
        (iteration, inside): (Register, Register),
        chain: &Chain<Register, Register>,
        wide: bool,
    ) -> Register {
        let iteration = self.offset(iteration, chain, wide);
        self.add_long(iteration, inside)
    }

    /// Returns a register with the value of the special register `name`, such as `%tid.x`.
    pub(crate) fn special(&mut self, name: &str) -> Register {
        self.instruction(Type::Word, "mov.u32", name)
    }

    /// Returns a register with `a * b + c`, where `b` is a constant.
    pub(crate) fn scale(&mut self, a: Register, b: u32, c: Register) -> Register {
        self.instruction(Type::Word, "mad.lo.u32", &format!("{a}, {b}, {c}"))
    }

    pub(crate) fn add_constant(&mut self, a: Register, constant: u32) -> Register {
        let suffix = if a.of == Type::Long { "u64" } else { "u32" };
        self.instruction(a.of, &format!("add.{suffix}"), &format!("{a}, {constant}"))
    }

    pub(crate) fn multiply_constant(&mut self, a: Register, constant: u32) -> Register {
        self.instruction(Type::Word, "mul.lo.u32", &format!("{a}, {constant}"))
    }

    pub(crate) fn shift_right_constant(&mut self, a: Register, by: u32) -> Register {
        self.instruction(Type::Word, "shr.u32", &format!("{a}, {by}"))
    }

    /// Returns a register with the bitwise AND of `a` and `mask`.
    pub(crate) fn mask(&mut self, a: Register, mask: u32) -> Register {
        self.instruction(Type::Word, "and.b32", &format!("{a}, {mask}"))
    }

    pub(crate) fn is_less(&mut self, a: Register, b: Register) -> Register {
        self.instruction(Type::Predicate, "setp.lt.u32", &format!("{a}, {b}"))
    }

    /// Returns a predicate that is true if both `a` and `b` are true.
    pub(crate) fn both(&mut self, a: Register, b: Register) -> Register {
        self.instruction(Type::Predicate, "and.pred", &format!("{a}, {b}"))
    }

    /// Returns two registers with the quotient and the remainder of the division `a / by` of
    /// unsigned values of 64 bits.
    ///
    /// PTX has an instruction for this division, but a GPU needs many steps for it. If both values
    /// fit into 32 bits, the printed instructions divide with 32 bits, which is faster. NVIDIA's
    /// compiler does the same: libNVVM 12.9 translates a division of 64 bits to the same test of
    /// the upper halves, and to a branch where predicates are printed here.
    pub(crate) fn split_long(&mut self, a: Register, by: Register) -> (Register, Register) {
        let bits = self.instruction(Type::Long, "or.b64", &format!("{a}, {by}"));
        let limit = format!("{bits}, {}", 1u64 << 32);
        let is_short = self.instruction(Type::Predicate, "setp.lt.u64", &limit);
        let is_long = self.instruction(Type::Predicate, "setp.ge.u64", &limit);
        let [low, low_by] =
            [a, by].map(|long| self.instruction(Type::Word, "cvt.u32.u64", &long.to_string()));
        let (short, quotient) = (self.register(Type::Word), self.register(Type::Long));
        for (condition, instruction) in [
            (is_short, format!("div.u32 {short}, {low}, {low_by}")),
            (is_short, format!("cvt.u64.u32 {quotient}, {short}")),
            (is_long, format!("div.u64 {quotient}, {a}, {by}")),
        ] {
            writeln!(self.body, "    @{condition} {instruction};").expect("a string");
        }
        let whole = self.multiply_long(quotient, by);
        (quotient, self.instruction(Type::Long, "sub.u64", &format!("{a}, {whole}")))
    }

    /// Returns a register with the address of entry `index` of an array. The array begins at the
    /// address `base`, and its entries have `width` bytes each.
    pub(crate) fn address(&mut self, index: Register, width: u32, base: Register) -> Register {
        self.instruction(Type::Long, "mad.wide.u32", &format!("{index}, {width}, {base}"))
    }

    /// Loads the 32-bit entry with the index `index` from the table at the address `table`, and
    /// returns a register with the entry. No thread writes to the table while the kernel runs, so
    /// the load may go through the cache for read-only data (`ld.global.nc`).
    pub(crate) fn entry(&mut self, table: Register, index: Register) -> Register {
        let address = self.address(index, 4, table);
        self.instruction(Type::Word, "ld.global.nc.u32", &format!("[{address}]"))
    }

    /// Declares an array of `bytes` bytes with the name `name` in shared memory. Returns a register
    /// with the address of the array in shared memory.
    pub(crate) fn shared(&mut self, name: &str, bytes: u32) -> Register {
        writeln!(self.variables, "    .shared .align 16 .b8 {name}[{bytes}];").expect("a string");
        self.instruction(Type::Word, "mov.u32", name)
    }

    /// Prints a barrier, at which every thread of a block waits until all threads of the block have
    /// reached it.
    pub(crate) fn barrier(&mut self) {
        self.body += "    bar.sync 0;\n";
    }

    /// Returns new registers for the value of a word of `width` bytes: two registers of 64 bits if
    /// the word has 16 bytes, and one register if it has fewer.
    fn data(&mut self, width: u32) -> Vec<Register> {
        let of = if width >= 8 { Type::Long } else { Type::Word };
        (0..width.div_ceil(8)).map(|_| self.register(of)).collect()
    }

    /// Prints a load of a word of `width` bytes from the address `from`. A thread executes the load
    /// only if the predicate `inside` is true. Returns the registers with the value of the word.
    pub(crate) fn load(
        &mut self,
        space: Space,
        width: u32,
        inside: Register,
        from: Register,
    ) -> Vec<Register> {
        let values = self.data(width);
        let (suffix, list) = operand(width, &values);
        let space = space.name();
        writeln!(self.body, "    @{inside} ld.{space}{suffix} {list}, [{from}];").expect("a string");
        values
    }

    /// Prints a store to the address `to`. It stores a word of `width` bytes, whose value is in the
    /// registers `values`. A thread executes the store only if the predicate `inside` is true.
    pub(crate) fn store(
        &mut self,
        space: Space,
        width: u32,
        inside: Register,
        to: Register,
        values: &[Register],
    ) {
        let (suffix, list) = operand(width, values);
        let space = space.name();
        writeln!(self.body, "    @{inside} st.{space}{suffix} [{to}], {list};").expect("a string");
    }

    /// Prints loads and stores that move the words `words`, each of `width` bytes, in the direction
    /// `direction`. All loads of a thread come before its first store, so that the latencies of the
    /// loads overlap.
    pub(crate) fn move_words(&mut self, width: u32, direction: Direction, words: &[Word]) {
        let loaded: Vec<Vec<Register>> = words
            .iter()
            .map(|word| {
                let from = if direction == Direction::Pack { word.user } else { word.packed };
                self.load(Space::Global, width, word.inside, from)
            })
            .collect();
        for (word, values) in words.iter().zip(&loaded) {
            let to = if direction == Direction::Pack { word.packed } else { word.user };
            self.store(Space::Global, width, word.inside, to, values);
        }
    }

    /// Returns the kernel with the name `name` that consists of the printed instructions.
    pub(crate) fn finish(self, name: String) -> Kernel {
        let mut text = ".version 7.0\n.target sm_70\n.address_size 64\n\n".to_owned();
        let parameters = self.parameters.join(",\n");
        write!(text, ".visible .entry {name}(\n{parameters}\n)\n.maxntid {THREADS}, 1, 1\n{{\n")
            .expect("a string");
        for of in [Type::Predicate, Type::Word, Type::Long] {
            let (prefix, declared) = of.declared();
            writeln!(text, "    .reg .{declared} {prefix}<{}>;", self.used[of as usize]).expect("a string");
        }
        let text = text + &self.variables + &self.body + "    ret;\n}\n";
        Kernel { name, text }
    }
}

/// Registers that describe one word that a thread moves: its two addresses, and whether the launch
/// moves it at all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    /// Predicate register that is true if the launch moves the word, and false otherwise.
    pub(crate) inside: Register,
    /// Register with the address of the word in user memory.
    pub(crate) user: Register,
    /// Register with the address of the word in the packed bytes.
    pub(crate) packed: Register,
}

/// Returns the suffix of a load or store instruction for a word of `width` bytes, and the text of
/// its register operand. `values` are the registers with the value of the word. Two registers
/// become a vector operand, such as `{%d7, %d8}`.
fn operand(width: u32, values: &[Register]) -> (String, String) {
    match values {
        [low, high] => (".v2.u64".to_owned(), format!("{{{low}, {high}}}")),
        [value] => (format!(".u{}", width * 8), value.to_string()),
        _ => unreachable!("a word has one register or two"),
    }
}

impl Arithmetic for Printer {
    type Word = Register;
    type Long = Register;

    fn constant(&mut self, value: u32) -> Register {
        self.instruction(Type::Word, "mov.u32", &value.to_string())
    }

    fn add(&mut self, a: Register, b: Register) -> Register {
        self.instruction(Type::Word, "add.u32", &format!("{a}, {b}"))
    }

    fn subtract(&mut self, a: Register, b: Register) -> Register {
        self.instruction(Type::Word, "sub.u32", &format!("{a}, {b}"))
    }

    fn minimum(&mut self, a: Register, b: Register) -> Register {
        self.instruction(Type::Word, "min.u32", &format!("{a}, {b}"))
    }

    fn maximum(&mut self, a: Register, b: Register) -> Register {
        self.instruction(Type::Word, "max.u32", &format!("{a}, {b}"))
    }

    fn multiply_high(&mut self, a: Register, b: Register) -> Register {
        self.instruction(Type::Word, "mul.hi.u32", &format!("{a}, {b}"))
    }

    fn shift_right(&mut self, a: Register, by: Register) -> Register {
        self.instruction(Type::Word, "shr.u32", &format!("{a}, {by}"))
    }

    fn multiply(&mut self, a: Register, b: Register) -> Register {
        self.instruction(Type::Word, "mul.lo.u32", &format!("{a}, {b}"))
    }

    fn multiply_add(&mut self, a: Register, b: Register, c: Register) -> Register {
        self.instruction(Type::Word, "mad.lo.u32", &format!("{a}, {b}, {c}"))
    }

    fn widen(&mut self, a: Register) -> Register {
        self.instruction(Type::Long, "cvt.u64.u32", &a.to_string())
    }

    fn join(&mut self, low: Register, high: Register) -> Register {
        self.instruction(Type::Long, "mov.b64", &format!("{{{low}, {high}}}"))
    }

    fn add_long(&mut self, a: Register, b: Register) -> Register {
        self.instruction(Type::Long, "add.u64", &format!("{a}, {b}"))
    }

    fn multiply_long(&mut self, a: Register, b: Register) -> Register {
        self.instruction(Type::Long, "mul.lo.u64", &format!("{a}, {b}"))
    }

    fn multiply_add_long(&mut self, a: Register, b: Register, c: Register) -> Register {
        self.instruction(Type::Long, "mad.lo.u64", &format!("{a}, {b}, {c}"))
    }
}
