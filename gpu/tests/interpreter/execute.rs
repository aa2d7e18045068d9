//! Executes a kernel. The blocks of the grid run one after the other. In a block, the threads run
//! one after the other up to the next barrier.

use super::memory::Memory;
use super::parse::{Instruction, Kind, Module, Operand};
use super::shared::Shared;

impl Module {
    /// Runs the kernel on the memory `memory`. `blocks` has the number of blocks in each dimension
    /// of the grid, and each block has `threads` threads. `parameters` has the bytes of each
    /// parameter. Returns a message if the kernel does something that the interpreter does not
    /// permit.
    pub(crate) fn run(
        &self,
        memory: &mut Memory,
        blocks: [u32; 3],
        threads: u32,
        parameters: &[Vec<u8>],
    ) -> Result<(), String> {
        let sizes: Vec<u64> = parameters.iter().map(|p| p.len() as u64).collect();
        if sizes != self.parameters {
            return Err(format!("parameters of {sizes:?} bytes, where {:?} are declared", self.parameters));
        }
        let [x, y, z] = blocks;
        // CUDA permits at most 65535 blocks in the second and in the third dimension of a grid.
        if threads == 0 || threads > self.max_threads || blocks.contains(&0) || y > 65535 || z > 65535 {
            return Err(format!("a grid of {blocks:?} blocks of {threads} threads"));
        }
        memory.begin();
        let mut number = 0;
        for block in (0..z).flat_map(|z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z]))) {
            let threads = (0..threads).map(|thread| {
                number += 1;
                let registers = vec![None; self.registers.len()];
                Thread { module: self, registers, block, thread, number: number - 1, parameters }
            });
            self.run_block(memory, threads.collect())?;
        }
        Ok(())
    }

    /// Runs the threads of one block, from barrier to barrier.
    fn run_block(&self, memory: &mut Memory, mut threads: Vec<Thread<'_>>) -> Result<(), String> {
        let mut shared = Shared::new(self.shared);
        let mut parts = self.instructions.split_inclusive(|i| i.opcode == "bar.sync");
        parts.try_for_each(|part| {
            for thread in &mut threads {
                for instruction in part {
                    thread.step(instruction, memory, &mut shared).map_err(|e| {
                        format!(
                            "{e}: thread {} of block {:?}: {}",
                            thread.thread, thread.block, instruction.text
                        )
                    })?;
                }
            }
            shared.barrier();
            Ok(())
        })
    }
}

struct Thread<'m> {
    module: &'m Module,
    /// Values of the registers. The entry of a register that was not set yet is `None`.
    registers: Vec<Option<u64>>,
    block: [u32; 3],
    thread: u32,
    /// Number of the thread, which is unique in the grid.
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
            Operand::Block(dimension) => Ok(u64::from(self.block[*dimension])),
            Operand::Parameter(p) => {
                let mut value = [0; 8];
                let bytes = &self.parameters[*p];
                value[..bytes.len()].copy_from_slice(bytes);
                Ok(u64::from_le_bytes(value))
            }
            Operand::Pair(..) => Err("a vector is no value".to_owned()),
        }
    }

    /// Sets the register `operand` to `value`, truncated to the number of bits of the register.
    fn set(&mut self, operand: &Operand, value: u64) -> Result<(), String> {
        let Operand::Register(r) = *operand else { return Err("a result without a register".to_owned()) };
        self.registers[r] = Some(match self.module.registers[r] {
            Kind::Predicate => value & 1,
            Kind::B32 => value & 0xffff_ffff,
            Kind::B64 => value,
        });
        Ok(())
    }

    fn step(&mut self, i: &Instruction, memory: &mut Memory, shared: &mut Shared) -> Result<(), String> {
        if let Some(guard) = i.guard
            && self.register(guard)? == 0
        {
            // The thread skips this instruction. It must not skip a barrier, at which all threads
            // of the block have to arrive.
            return if i.opcode == "bar.sync" { Err("a barrier is not reached".to_owned()) } else { Ok(()) };
        }
        if i.opcode == "ret" || i.opcode == "bar.sync" {
            return Ok(());
        }
        if i.opcode.starts_with("ld.global.nc") {
            return self.load(i, |address, width, _| memory.load_constant(address, width));
        }
        if i.opcode.starts_with("ld.global") {
            return self.load(i, |address, width, _| memory.load(address, width));
        }
        if i.opcode.starts_with("ld.shared") {
            return self.load(i, |address, width, thread| shared.load(address, width, thread));
        }
        if i.opcode.starts_with("st.global") {
            return self.store(i, |at, width, value, thread| memory.store(at, width, value, thread));
        }
        if i.opcode.starts_with("st.shared") {
            return self.store(i, |at, width, value, thread| shared.store(at, width, value, thread));
        }
        if let ("mov.b64", [to, Operand::Pair(low, high)]) = (i.opcode.as_str(), &i.operands[..]) {
            return self.set(to, self.register(*low)? | self.register(*high)? << 32);
        }
        let sources: Vec<u64> = i.operands[1..].iter().map(|o| self.value(o)).collect::<Result<_, _>>()?;
        let result = match (i.opcode.as_str(), &sources[..]) {
            (
                "ld.param.u32" | "ld.param.u64" | "mov.u32" | "cvta.to.global.u64" | "cvt.u64.u32"
                | "cvt.u32.u64",
                [a],
            ) => *a,
            ("add.u32" | "add.u64", [a, b]) => a.wrapping_add(*b),
            ("sub.u32" | "sub.u64", [a, b]) => a.wrapping_sub(*b),
            ("min.u32", [a, b]) => *a.min(b),
            ("max.u32", [a, b]) => *a.max(b),
            ("and.b32" | "and.pred", [a, b]) => a & b,
            ("mul.lo.u32" | "mul.lo.u64", [a, b]) => a.wrapping_mul(*b),
            ("div.u32" | "div.u64", [_, 0]) => return Err("a division by zero".to_owned()),
            ("div.u32" | "div.u64", [a, b]) => a / b,
            ("or.b64", [a, b]) => a | b,
            ("mul.hi.u32", [a, b]) => (a * b) >> 32,
            ("shr.u32", [_, by]) if *by >= 32 => return Err(format!("a shift by {by} bits")),
            ("shr.u32", [a, by]) => a >> by,
            ("mad.lo.u32" | "mad.lo.u64" | "mad.wide.u32", [a, b, c]) => a.wrapping_mul(*b).wrapping_add(*c),
            ("setp.lt.u32" | "setp.lt.u64", [a, b]) => u64::from(a < b),
            ("setp.le.u32", [a, b]) => u64::from(a <= b),
            ("setp.ge.u64", [a, b]) => u64::from(a >= b),
            _ => return Err("not known".to_owned()),
        };
        self.set(&i.operands[0], result)
    }

    /// Returns the width in bytes of each value that the load or store `i` accesses, and the
    /// address of the access. Returns an error if the address is not a multiple of the total width
    /// of the access. For a vector of two values, the total width is twice the width of a value.
    fn width_and_address(&self, i: &Instruction, address: &Operand) -> Result<(u64, u64), String> {
        let bits: u64 = i.opcode.rsplit(".u").next().and_then(|b| b.parse().ok()).ok_or("no width")?;
        let whole = if i.opcode.contains(".v2.") { 2 * bits / 8 } else { bits / 8 };
        let address = self.value(address)?;
        if address % whole != 0 {
            return Err(format!("{address:#x} is no multiple of {whole}"));
        }
        Ok((bits / 8, address))
    }

    /// Executes the load `i`. The arguments of `read` are the address, the width in bytes and the
    /// number of the thread. `read` returns the value at this address.
    fn load(
        &mut self,
        i: &Instruction,
        mut read: impl FnMut(u64, u64, u64) -> Result<u64, String>,
    ) -> Result<(), String> {
        let (width, address) = self.width_and_address(i, &i.operands[1])?;
        match i.operands[0] {
            Operand::Pair(low, high) => {
                self.set(&Operand::Register(low), read(address, width, self.number)?)?;
                self.set(&Operand::Register(high), read(address + width, width, self.number)?)
            }
            ref operand => self.set(operand, read(address, width, self.number)?),
        }
    }

    /// Executes the store `i`. The arguments of `write` are the address, the width in bytes, the
    /// value and the number of the thread. `write` writes the value to this address.
    fn store(
        &self,
        i: &Instruction,
        mut write: impl FnMut(u64, u64, u64, u64) -> Result<(), String>,
    ) -> Result<(), String> {
        let (width, address) = self.width_and_address(i, &i.operands[0])?;
        match i.operands[1] {
            Operand::Pair(low, high) => {
                write(address, width, self.register(low)?, self.number)?;
                write(address + width, width, self.register(high)?, self.number)
            }
            ref operand => write(address, width, self.value(operand)?, self.number),
        }
    }
}
