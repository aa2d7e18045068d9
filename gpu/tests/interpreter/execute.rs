//! Execution of a kernel: runs the threads of a grid, one thread after the other.

use super::memory::Memory;
use super::parse::{Instruction, Kind, Module, Operand};

impl Module {
    /// Runs the kernel with `blocks` blocks of `threads` threads. `parameters` has the bytes of the
    /// value of each parameter. Returns a message if the interpreter refuses the run.
    pub(crate) fn run(
        &self,
        memory: &mut Memory,
        blocks: u32,
        threads: u32,
        parameters: &[Vec<u8>],
    ) -> Result<(), String> {
        let sizes: Vec<u64> = parameters.iter().map(|p| p.len() as u64).collect();
        if sizes != self.parameters {
            return Err(format!("parameters of {sizes:?} bytes, where {:?} are declared", self.parameters));
        }
        if threads == 0 || threads > self.max_threads || blocks == 0 {
            return Err(format!("a grid of {blocks} blocks of {threads} threads"));
        }
        memory.begin();
        for block in 0..blocks {
            for thread in 0..threads {
                let number = u64::from(block) * u64::from(threads) + u64::from(thread);
                let registers = vec![None; self.registers.len()];
                let mut thread = Thread { module: self, registers, block, thread, number, parameters };
                for instruction in &self.instructions {
                    thread.step(instruction, memory).map_err(|e| {
                        format!("{e}: thread {} of block {block}: {}", thread.thread, instruction.text)
                    })?;
                }
            }
        }
        Ok(())
    }
}

struct Thread<'m> {
    module: &'m Module,
    /// Values of the registers. A register that was not set yet has the value `None`.
    registers: Vec<Option<u64>>,
    block: u32,
    thread: u32,
    number: u64,
    parameters: &'m [Vec<u8>],
}

impl Thread<'_> {
    fn register(&self, r: usize) -> Result<u64, String> {
        self.registers[r].ok_or_else(|| "a register was not set".to_owned())
    }

    fn value(&self, operand: &Operand) -> Result<u64, String> {
        match operand {
            Operand::Register(r) | Operand::Address(r) => self.register(*r),
            Operand::Constant(value) => Ok(*value),
            Operand::ThreadX => Ok(u64::from(self.thread)),
            Operand::BlockX => Ok(u64::from(self.block)),
            Operand::Parameter(p) => {
                let mut value = [0; 8];
                let bytes = &self.parameters[*p];
                value[..bytes.len()].copy_from_slice(bytes);
                Ok(u64::from_le_bytes(value))
            }
            Operand::Pair(..) => Err("a vector is no value".to_owned()),
        }
    }

    /// Sets the register `operand` to the lowest bits of `value`. The number of these bits is the
    /// number of bits that the register has.
    fn set(&mut self, operand: &Operand, value: u64) -> Result<(), String> {
        let Operand::Register(r) = *operand else { return Err("a result without a register".to_owned()) };
        self.registers[r] = Some(match self.module.registers[r] {
            Kind::Predicate => value & 1,
            Kind::B32 => value & 0xffff_ffff,
            Kind::B64 => value,
        });
        Ok(())
    }

    fn step(&mut self, i: &Instruction, memory: &mut Memory) -> Result<(), String> {
        if let Some(guard) = i.guard
            && self.register(guard)? == 0
        {
            return Ok(());
        }
        if i.opcode == "ret" {
            return Ok(());
        }
        if i.opcode.starts_with("ld.global") {
            return self.load(i, memory);
        }
        if i.opcode.starts_with("st.global") {
            return self.store(i, memory);
        }
        let sources: Vec<u64> = i.operands[1..].iter().map(|o| self.value(o)).collect::<Result<_, _>>()?;
        let result = match (i.opcode.as_str(), &sources[..]) {
            ("ld.param.u32" | "ld.param.u64" | "mov.u32" | "cvta.to.global.u64" | "cvt.u64.u32", [a]) => *a,
            ("add.u32" | "add.u64", [a, b]) => a.wrapping_add(*b),
            ("mul.lo.u32" | "mul.lo.u64", [a, b]) => a.wrapping_mul(*b),
            ("mul.hi.u32", [a, b]) => (a * b) >> 32,
            ("shr.u32", [_, by]) if *by >= 32 => return Err(format!("a shift by {by} bits")),
            ("shr.u32", [a, by]) => a >> by,
            ("mad.lo.u32" | "mad.lo.u64" | "mad.wide.u32", [a, b, c]) => a.wrapping_mul(*b).wrapping_add(*c),
            ("setp.lt.u32", [a, b]) => u64::from(a < b),
            ("setp.le.u32", [a, b]) => u64::from(a <= b),
            _ => return Err("not known".to_owned()),
        };
        self.set(&i.operands[0], result)
    }

    /// Returns the width, in bytes, of each value that the load or store `i` accesses, and the
    /// address of the access. Returns an error if the address is not a multiple of the total width
    /// of all values.
    fn width_and_address(&self, i: &Instruction, address: &Operand) -> Result<(u64, u64), String> {
        let bits: u64 = i.opcode.rsplit(".u").next().and_then(|b| b.parse().ok()).ok_or("no width")?;
        let whole = if i.opcode.contains(".v2.") { 2 * bits / 8 } else { bits / 8 };
        let address = self.value(address)?;
        if address % whole != 0 {
            return Err(format!("{address:#x} is no multiple of {whole}"));
        }
        Ok((bits / 8, address))
    }

    fn load(&mut self, i: &Instruction, memory: &Memory) -> Result<(), String> {
        let (width, address) = self.width_and_address(i, &i.operands[1])?;
        match i.operands[0] {
            Operand::Pair(low, high) => {
                self.set(&Operand::Register(low), memory.load(address, width)?)?;
                self.set(&Operand::Register(high), memory.load(address + width, width)?)
            }
            ref operand => self.set(operand, memory.load(address, width)?),
        }
    }

    fn store(&self, i: &Instruction, memory: &mut Memory) -> Result<(), String> {
        let (width, address) = self.width_and_address(i, &i.operands[0])?;
        match i.operands[1] {
            Operand::Pair(low, high) => {
                memory.store(address, width, self.register(low)?, self.number)?;
                memory.store(address + width, width, self.register(high)?, self.number)
            }
            ref operand => memory.store(address, width, self.value(operand)?, self.number),
        }
    }
}
