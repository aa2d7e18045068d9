//! Parses the PTX text of a module with one kernel.

use std::collections::HashMap;

/// Kind of a register, as its declaration states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Predicate,
    B32,
    B64,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Register(usize),
    Pair(usize, usize),
    /// Address of a load or store, such as `[%d1]`. The number is the index of the register.
    Address(usize),
    /// Parameter of the kernel, such as `[name]`. The number is the index of the parameter.
    Parameter(usize),
    Constant(u64),
    /// The special register `%tid.x`.
    ThreadX,
    /// The special register `%ctaid.x`, `%ctaid.y` or `%ctaid.z`. The number is the dimension, 0, 1
    /// or 2.
    Block(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Instruction {
    pub(super) guard: Option<usize>,
    pub(super) opcode: String,
    pub(super) operands: Vec<Operand>,
    pub(super) text: String,
}

/// A module with one kernel.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    pub(super) name: String,
    /// Size of each parameter in bytes.
    pub(super) parameters: Vec<u64>,
    pub(super) max_threads: u32,
    pub(super) registers: Vec<Kind>,
    /// Number of bytes of the array in shared memory, or 0 if the kernel declares no such array.
    pub(super) shared: u64,
    pub(super) instructions: Vec<Instruction>,
}

impl Module {
    /// Returns the name of the kernel.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the size of each parameter in bytes.
    pub(crate) fn parameters(&self) -> &[u64] {
        &self.parameters
    }

    /// Parses the text of a module. Returns a message if the text contains anything that the
    /// interpreter does not know.
    pub(crate) fn parse(text: &str) -> Result<Module, String> {
        let text = text.trim_start();
        let text = directive(text, ".version 7.0\n")?;
        let text = directive(text, ".target sm_70\n")?;
        let text = directive(text, ".address_size 64\n")?.trim_start();
        let text = directive(text, ".visible .entry ")?;
        let (name, text) = text.split_once('(').ok_or("no list of parameters")?;
        let (list, text) = text.split_once(')').ok_or("the list of parameters has no end")?;
        let mut names = HashMap::new();
        let mut parameters = Vec::new();
        for parameter in list.split(',') {
            let words: Vec<&str> = parameter.split_whitespace().collect();
            let (size, name) = match words[..] {
                [".param", ".u32", name] => (4, name),
                [".param", ".u64", name] => (8, name),
                _ => return Err(format!("not a parameter: {parameter}")),
            };
            if names.insert(name.to_owned(), parameters.len()).is_some() {
                return Err(format!("two parameters {name}"));
            }
            parameters.push(size);
        }
        let text = directive(text.trim_start(), ".maxntid ")?;
        let (threads, text) = text.split_once(", 1, 1\n{\n").ok_or("not a block in one dimension")?;
        let body = text.trim_end().strip_suffix('}').ok_or("the kernel has no end")?;
        let max_threads = threads.parse().map_err(|e| format!("{threads}: {e}"))?;
        let mut reader = Reader { names, registers: HashMap::new(), kinds: Vec::new(), shared: None };
        let mut instructions = Vec::new();
        for statement in body.split(';').map(str::trim).filter(|s| !s.is_empty()) {
            if let Some(declaration) = statement.strip_prefix(".reg ") {
                reader.declare(declaration)?;
            } else if let Some(declaration) = statement.strip_prefix(".shared ") {
                reader.declare_shared(declaration)?;
            } else {
                instructions.push(reader.instruction(statement)?);
            }
        }
        if instructions.last().is_none_or(|last| last.opcode != "ret" || last.guard.is_some()) {
            return Err("the kernel does not end with ret".to_owned());
        }
        let name = name.trim().to_owned();
        let shared = reader.shared.map_or(0, |(_, bytes)| bytes);
        Ok(Module { name, parameters, max_threads, registers: reader.kinds, shared, instructions })
    }
}

fn directive<'t>(text: &'t str, wanted: &str) -> Result<&'t str, String> {
    text.strip_prefix(wanted).ok_or_else(|| {
        format!("{} expected, not: {}", wanted.trim(), text.lines().next().unwrap_or_default())
    })
}

struct Reader {
    names: HashMap<String, usize>,
    registers: HashMap<String, usize>,
    kinds: Vec<Kind>,
    /// Name and number of bytes of the array in shared memory, if it was declared.
    shared: Option<(String, u64)>,
}

impl Reader {
    /// Reads the declaration of the only array in shared memory. For example, `.align 16 .b8 t[64]`
    /// declares an array of 64 bytes with the name `t`.
    fn declare_shared(&mut self, declaration: &str) -> Result<(), String> {
        let refused = || format!("not a declaration: .shared {declaration}");
        let array = declaration.strip_prefix(".align 16 .b8 ").ok_or_else(refused)?;
        let (name, bytes) = array.strip_suffix(']').and_then(|a| a.split_once('[')).ok_or_else(refused)?;
        let bytes: u64 = bytes.parse().map_err(|_| refused())?;
        if self.shared.is_some() || bytes == 0 || bytes > 48 << 10 {
            return Err(refused());
        }
        self.shared = Some((name.to_owned(), bytes));
        Ok(())
    }

    /// Adds the registers of a declaration. For example, `.b32 %r<7>` declares the registers `%r0`
    /// to `%r6`.
    fn declare(&mut self, declaration: &str) -> Result<(), String> {
        let refused = || format!("not a declaration: .reg {declaration}");
        let (kind, rest) = declaration.split_once(' ').ok_or_else(refused)?;
        let kind = match kind {
            ".pred" => Kind::Predicate,
            ".b32" => Kind::B32,
            ".b64" => Kind::B64,
            _ => return Err(refused()),
        };
        let (prefix, number) = rest.strip_suffix('>').and_then(|r| r.split_once('<')).ok_or_else(refused)?;
        let number: usize = number.parse().map_err(|_| refused())?;
        for i in 0..number {
            if self.registers.insert(format!("{prefix}{i}"), self.kinds.len()).is_some() {
                return Err(format!("{prefix}{i} is declared twice"));
            }
            self.kinds.push(kind);
        }
        Ok(())
    }

    fn register(&self, name: &str) -> Result<usize, String> {
        self.registers.get(name).copied().ok_or_else(|| format!("{name} is not declared"))
    }

    fn operand(&self, text: &str) -> Result<Operand, String> {
        let text = text.trim();
        if let Some(pair) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
            let (low, high) = pair.split_once(',').ok_or("a vector has two registers")?;
            return Ok(Operand::Pair(self.register(low.trim())?, self.register(high.trim())?));
        }
        if let Some(inside) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            return match self.names.get(inside) {
                Some(&parameter) => Ok(Operand::Parameter(parameter)),
                None => Ok(Operand::Address(self.register(inside)?)),
            };
        }
        match text {
            "%tid.x" => Ok(Operand::ThreadX),
            "%ctaid.x" => Ok(Operand::Block(0)),
            "%ctaid.y" => Ok(Operand::Block(1)),
            "%ctaid.z" => Ok(Operand::Block(2)),
            _ if self.shared.as_ref().is_some_and(|(name, _)| name == text) => {
                Ok(Operand::Constant(super::shared::BASE))
            }
            _ if text.starts_with('%') => Ok(Operand::Register(self.register(text)?)),
            _ => text.parse().map(Operand::Constant).map_err(|e| format!("{text}: {e}")),
        }
    }

    fn instruction(&self, statement: &str) -> Result<Instruction, String> {
        let (guard, rest) = match statement.strip_prefix('@') {
            Some(rest) => {
                let (name, rest) = rest.split_once(' ').ok_or("a guard without an instruction")?;
                let guard = self.register(name)?;
                if self.kinds[guard] != Kind::Predicate {
                    return Err(format!("{name} is no predicate: {statement}"));
                }
                (Some(guard), rest.trim())
            }
            None => (None, statement),
        };
        let (opcode, list) = rest.split_once(' ').unwrap_or((rest, ""));
        // Split the list of operands at commas. Do not split at a comma inside of braces: it
        // separates the two registers of a vector operand.
        let (mut operands, mut depth, mut from) = (Vec::new(), 0, 0);
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    operands.push(self.operand(&list[from..at])?);
                    from = at + 1;
                }
                _ => {}
            }
        }
        if !list.is_empty() {
            operands.push(self.operand(&list[from..])?);
        }
        let instruction =
            Instruction { guard, opcode: opcode.to_owned(), operands, text: statement.to_owned() };
        self.check(&instruction)?;
        Ok(instruction)
    }

    /// Checks that the interpreter supports the instruction `i`, and that the number and the kinds
    /// of its operands are right. So `Thread::step` executes only instructions in a form that it
    /// supports.
    fn check(&self, i: &Instruction) -> Result<(), String> {
        use Kind::{B32, B64, Predicate};
        let kinds: &[Kind] = match i.opcode.as_str() {
            "ld.param.u32" | "mov.u32" => &[B32],
            "ld.param.u64" => &[B64],
            "cvta.to.global.u64" => &[B64, B64],
            "add.u32" | "sub.u32" | "min.u32" | "max.u32" | "mul.lo.u32" | "mul.hi.u32" | "shr.u32"
            | "div.u32" | "and.b32" => &[B32, B32, B32],
            "mad.lo.u32" => &[B32, B32, B32, B32],
            "add.u64" | "sub.u64" | "mul.lo.u64" | "div.u64" | "or.b64" => &[B64, B64, B64],
            "mad.lo.u64" => &[B64, B64, B64, B64],
            "mad.wide.u32" => &[B64, B32, B32, B64],
            "cvt.u64.u32" => &[B64, B32],
            "cvt.u32.u64" => &[B32, B64],
            "setp.lt.u32" | "setp.le.u32" => &[Predicate, B32, B32],
            "setp.lt.u64" | "setp.ge.u64" => &[Predicate, B64, B64],
            "and.pred" => &[Predicate, Predicate, Predicate],
            "ret" => &[],
            "bar.sync" => {
                let [Operand::Constant(0)] = i.operands[..] else {
                    return Err(format!("not known: {}", i.text));
                };
                return Ok(());
            }
            "ld.global.nc.u32" => return self.access(i, 0, Some(B32), B64),
            "mov.b64" => {
                let fits = matches!(i.operands[..], [Operand::Register(to), Operand::Pair(low, high)]
                    if [to, low, high].map(|r| self.kinds[r]) == [B64, B32, B32]);
                return if fits { Ok(()) } else { Err(format!("operands of: {}", i.text)) };
            }
            opcode => {
                let (load, rest) = match (opcode.strip_prefix("ld."), opcode.strip_prefix("st.")) {
                    (Some(rest), _) => (true, rest),
                    (_, Some(rest)) => (false, rest),
                    _ => return Err(format!("not known: {}", i.text)),
                };
                // An address in shared memory has 32 bits.
                let (address, width) = match (rest.strip_prefix("global."), rest.strip_prefix("shared.")) {
                    (Some(width), _) => (B64, width),
                    (_, Some(width)) => (B32, width),
                    _ => return Err(format!("not known: {}", i.text)),
                };
                let value = match width {
                    "u8" | "u16" | "u32" => Some(B32),
                    "u64" => Some(B64),
                    "v2.u64" => None,
                    _ => return Err(format!("not known: {}", i.text)),
                };
                return self.access(i, usize::from(!load), value, address);
            }
        };
        // A `ret` with a predicate would end only some of the threads. The interpreter does not
        // support this.
        if i.opcode == "ret" && i.guard.is_some() {
            return Err(format!("not known: {}", i.text));
        }
        let sources = i.operands.get(1..).unwrap_or_default();
        let from_outside = match i.opcode.as_str() {
            "ld.param.u32" | "ld.param.u64" => match sources {
                [Operand::Parameter(_)] => 1,
                _ => 0,
            },
            "mov.u32" => match sources {
                [Operand::ThreadX | Operand::Block(_) | Operand::Constant(_)] => 1,
                _ => 0,
            },
            _ => 0,
        };
        let rest = &i.operands[..i.operands.len() - from_outside];
        let fits = rest.len() == kinds.len()
            && rest.iter().zip(kinds).enumerate().all(|(at, (operand, kind))| match operand {
                Operand::Register(r) => self.kinds[*r] == *kind,
                // Any operand except the first, which is the result, may be a constant.
                Operand::Constant(_) => at > 0 && *kind != Predicate,
                _ => false,
            });
        let needs = usize::from(matches!(i.opcode.as_str(), "ld.param.u32" | "ld.param.u64" | "mov.u32"));
        if fits && from_outside == needs { Ok(()) } else { Err(format!("operands of: {}", i.text)) }
    }

    /// Checks the operands of the load or store `i`. The operand with the index `value` is the
    /// value that is loaded or stored. It must be a register of the kind `kind`, or a pair of
    /// 64-bit registers if `kind` is `None`. The other operand is the address, and must be a
    /// register in brackets. This register must have the kind `address`.
    fn access(&self, i: &Instruction, value: usize, kind: Option<Kind>, address: Kind) -> Result<(), String> {
        let refused = || format!("operands of: {}", i.text);
        let [_, _] = i.operands[..] else { return Err(refused()) };
        let address_fits = matches!(i.operands[1 - value], Operand::Address(r) if self.kinds[r] == address);
        let value_fits = match (&i.operands[value], kind) {
            (Operand::Register(r), Some(kind)) => self.kinds[*r] == kind,
            (Operand::Pair(a, b), None) => a != b && [a, b].into_iter().all(|r| self.kinds[*r] == Kind::B64),
            _ => false,
        };
        if address_fits && value_fits { Ok(()) } else { Err(refused()) }
    }
}
