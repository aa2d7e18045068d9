//! Printer of kernels as PTX text. PTX is the assembly language that NVIDIA's driver compiles.
//!
//! The text is written for version 7.0 of PTX and for GPUs from `sm_70` on. PTX is forward
//! compatible, so later drivers and GPUs accept the text too. Each module that is printed has one
//! kernel.

use std::fmt::Write;

use ddtc::internal::kind::Direction;

use crate::index::{Arithmetic, Chain, Divisor, offset_32, offset_64};
use crate::strided::{Shape, THREADS, words_per_thread};

/// Returns the name of the kernel that has the shape `shape` and moves bytes in the direction
/// `direction`.
pub fn name(shape: Shape, direction: Direction) -> String {
    let Shape { width, divisions, wide } = shape;
    let sums = if wide { 64 } else { 32 };
    let direction = match direction {
        Direction::Pack => "pack",
        Direction::Unpack => "unpack",
    };
    format!("ddtc_strided_{width}_{divisions}_{sums}_{direction}")
}

/// Returns the PTX text of a module with one kernel, which has the shape `shape` and moves bytes in
/// the direction `direction`.
///
/// The parameters of the kernel are, in this order: the address in user memory (64 bits), the
/// address of the packed bytes (64 bits), the index of the first word (32 bits), the number of
/// words (32 bits), and the stride of the innermost loop. After these, each division has three
/// parameters: its multiplier (32 bits), its shift (32 bits) and its step. The stride and the steps
/// have 64 bits if the sums of the kernel have 64 bits, and 32 bits otherwise.
pub fn module(shape: Shape, direction: Direction) -> String {
    let mut printer = Printer::default();
    let step = if shape.wide { Type::Long } else { Type::Word };
    let user = printer.parameter("user", Type::Long);
    let packed = printer.parameter("packed", Type::Long);
    let user = printer.global(user);
    let packed = printer.global(packed);
    let first = printer.parameter("first", Type::Word);
    let words = printer.parameter("words", Type::Word);
    let stride = printer.parameter("stride", step);
    let divisions: Vec<(Divisor<Register>, Register)> = (1..=shape.divisions)
        .map(|i| {
            let multiplier = printer.parameter(&format!("multiplier{i}"), Type::Word);
            let shift = printer.parameter(&format!("shift{i}"), Type::Word);
            (Divisor { multiplier, shift }, printer.parameter(&format!("step{i}"), step))
        })
        .collect();
    let chain = Chain { stride, divisions };
    // A thread moves one word in each turn, and has `turns` turns. In every turn, neighbouring
    // threads move neighbouring words of the packed stream.
    let turns = words_per_thread(shape.width);
    let index = printer.thread_index(THREADS * turns);
    let places: Vec<Place> = (0..turns)
        .map(|turn| {
            let index = if turn == 0 { index } else { printer.add_constant(index, turn * THREADS) };
            let inside = printer.is_less(index, words);
            let word = printer.add(index, first);
            let offset = match shape.wide {
                true => offset_64(&mut printer, word, &chain),
                false => offset_32(&mut printer, word, &chain),
            };
            let user = printer.add_long(user, offset);
            let packed = printer.address(index, shape.width, packed);
            Place { inside, user, packed }
        })
        .collect();
    // All loads of a thread come before the first store of the thread, so that the latencies of the
    // loads overlap.
    let loaded: Vec<Vec<Register>> = places
        .iter()
        .map(|place| {
            let from = if direction == Direction::Pack { place.user } else { place.packed };
            printer.load(shape.width, place.inside, from)
        })
        .collect();
    for (place, values) in places.iter().zip(&loaded) {
        let to = if direction == Direction::Pack { place.packed } else { place.user };
        printer.store(shape.width, place.inside, to, values);
    }
    printer.finish(&name(shape, direction))
}

/// Registers with the two addresses of one word that a thread moves.
struct Place {
    /// Register with a predicate. It is true if the word belongs to the launch, and false if the
    /// word comes after the last word of the launch.
    inside: Register,
    user: Register,
    packed: Register,
}

/// Type of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Predicate,
    Word,
    Long,
}

impl Type {
    /// Returns the prefix of the names of registers that have this type, and the name of this type
    /// in a declaration of registers.
    fn declared(self) -> (&'static str, &'static str) {
        match self {
            Type::Predicate => ("%p", "pred"),
            Type::Word => ("%r", "b32"),
            Type::Long => ("%d", "b64"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Register {
    of: Type,
    number: usize,
}

impl std::fmt::Display for Register {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.of.declared().0, self.number)
    }
}

/// Printer of the instructions of one kernel. Every result gets a new register.
#[derive(Default)]
struct Printer {
    parameters: Vec<String>,
    body: String,
    used: [usize; 3],
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

    fn parameter(&mut self, name: &str, of: Type) -> Register {
        let bits = if of == Type::Long { 64 } else { 32 };
        self.parameters.push(format!("    .param .u{bits} {name}"));
        self.instruction(of, &format!("ld.param.u{bits}"), &format!("[{name}]"))
    }

    fn global(&mut self, address: Register) -> Register {
        self.instruction(Type::Long, "cvta.to.global.u64", &address.to_string())
    }

    /// Returns a register with the index of the first word of a thread. The index is the number of
    /// the thread's block times `block`, plus the number of the thread in its block. `block` is the
    /// number of words that one block of threads moves.
    fn thread_index(&mut self, block: u32) -> Register {
        let in_grid = self.instruction(Type::Word, "mov.u32", "%ctaid.x");
        let in_block = self.instruction(Type::Word, "mov.u32", "%tid.x");
        self.instruction(Type::Word, "mad.lo.u32", &format!("{in_grid}, {block}, {in_block}"))
    }

    fn add_constant(&mut self, a: Register, constant: u32) -> Register {
        self.instruction(Type::Word, "add.u32", &format!("{a}, {constant}"))
    }

    fn add(&mut self, a: Register, b: Register) -> Register {
        self.instruction(Type::Word, "add.u32", &format!("{a}, {b}"))
    }

    fn add_long(&mut self, a: Register, b: Register) -> Register {
        self.instruction(Type::Long, "add.u64", &format!("{a}, {b}"))
    }

    fn is_less(&mut self, a: Register, b: Register) -> Register {
        self.instruction(Type::Predicate, "setp.lt.u32", &format!("{a}, {b}"))
    }

    /// Returns a register with the address of the word that has the index `index` in an array of
    /// words of `width` bytes. The array begins at the address `base`.
    fn address(&mut self, index: Register, width: u32, base: Register) -> Register {
        self.instruction(Type::Long, "mad.wide.u32", &format!("{index}, {width}, {base}"))
    }

    /// Returns new registers for the value of a word of `width` bytes: two registers of 64 bits if
    /// the word has 16 bytes, and one register if it has fewer.
    fn data(&mut self, width: u32) -> Vec<Register> {
        let of = if width >= 8 { Type::Long } else { Type::Word };
        (0..width.div_ceil(8)).map(|_| self.register(of)).collect()
    }

    fn load(&mut self, width: u32, inside: Register, from: Register) -> Vec<Register> {
        let values = self.data(width);
        let (suffix, list) = operand(width, &values);
        writeln!(self.body, "    @{inside} ld.global{suffix} {list}, [{from}];").expect("a string");
        values
    }

    fn store(&mut self, width: u32, inside: Register, to: Register, values: &[Register]) {
        let (suffix, list) = operand(width, values);
        writeln!(self.body, "    @{inside} st.global{suffix} [{to}], {list};").expect("a string");
    }

    fn finish(self, name: &str) -> String {
        let mut text = ".version 7.0\n.target sm_70\n.address_size 64\n\n".to_owned();
        let parameters = self.parameters.join(",\n");
        write!(text, ".visible .entry {name}(\n{parameters}\n)\n.maxntid {THREADS}, 1, 1\n{{\n")
            .expect("a string");
        for of in [Type::Predicate, Type::Word, Type::Long] {
            let (prefix, declared) = of.declared();
            writeln!(text, "    .reg .{declared} {prefix}<{}>;", self.used[of as usize]).expect("a string");
        }
        text + &self.body + "    ret;\n}\n"
    }
}

/// Returns the suffix of a load or store instruction that accesses a word of `width` bytes, and the
/// operand of the instruction that names the registers `values`.
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

    fn multiply_long(&mut self, a: Register, b: Register) -> Register {
        self.instruction(Type::Long, "mul.lo.u64", &format!("{a}, {b}"))
    }

    fn multiply_add_long(&mut self, a: Register, b: Register, c: Register) -> Register {
        self.instruction(Type::Long, "mad.lo.u64", &format!("{a}, {b}, {c}"))
    }
}
