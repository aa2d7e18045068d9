//! Emission through Cranelift, for every target whose back end is compiled in.
//!
//! A micro-kernel is called by `call_indirect`, with an address from a context word. The code must
//! not have relocations, so code with a relocation is an error. The option `opt_level=none`
//! compiles faster, and its code for these loops is better than what the optimizer makes of them
//! (docs/PERFORMANCE.md). Each thread reuses its Cranelift contexts. Cranelift runs under
//! `catch_unwind`, because a panic inside it must not end the program.

mod loops;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cranelift_codegen::Context as ClifContext;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Function, InstBuilder, MemFlagsData, SigRef, Signature, Type, Value, types,
};
use cranelift_codegen::isa::{self, CallConv, OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use target_lexicon::Triple;

use super::{Emitter, Listing};
use crate::code::kernel::ModuleTarget;
use crate::error::{Error, ErrorClass, Result};
use crate::kind::Direction;
use crate::micro::{Argument, Call, Role};
use crate::plan::{Body, Field, Legal, Offsets, Operand, Operands, Plan, PlanOp, Quantity};
use crate::target::Accesses;

/// Emitter through Cranelift, for one target.
pub struct Cranelift {
    isa: OwnedTargetIsa,
}

impl Cranelift {
    /// Returns an emitter for this machine with the flags that ddtc uses. If `verifier` is true,
    /// Cranelift verifies its input. This function takes about 80 us.
    ///
    /// # Errors
    /// Class `Intern` if Cranelift does not support this machine.
    pub fn for_host(verifier: bool) -> Result<Cranelift> {
        Cranelift::from_builder(cranelift_native::builder().map_err(failed)?, verifier)
    }

    /// Returns an emitter for any machine of `triple`. Its code uses only instructions that all
    /// such machines have.
    ///
    /// # Errors
    /// Class `Unsupported` if the back end of Cranelift for the architecture is not compiled in.
    /// The libraries and the command have only the back end of their own architecture, the tests
    /// have a few more (see Cargo.toml). Class `Intern` if Cranelift refuses the flags.
    pub fn for_triple(triple: Triple, verifier: bool) -> Result<Cranelift> {
        let builder = isa::lookup(triple.clone()).map_err(|_| {
            let rule = "must be an architecture whose back end of Cranelift is compiled in";
            Error::new(ErrorClass::Unsupported, "emit", "triple", &triple, rule)
        })?;
        Cranelift::from_builder(builder, verifier)
    }

    fn from_builder(builder: isa::Builder, verifier: bool) -> Result<Cranelift> {
        let mut flags = settings::builder();
        let pairs = [
            ("opt_level", "none"),
            ("regalloc_algorithm", "backtracking"),
            ("is_pic", "false"),
            ("enable_verifier", if verifier { "true" } else { "false" }),
            ("unwind_info", "false"),
            ("enable_alias_analysis", "false"),
            ("enable_probestack", "false"),
        ];
        for (name, value) in pairs {
            flags.set(name, value).map_err(failed)?;
        }
        let isa = builder.finish(settings::Flags::new(flags)).map_err(failed)?;
        Ok(Cranelift { isa })
    }
}

fn failed(e: impl std::fmt::Display) -> Error {
    Error::internal("emit", format!("no code generation for this machine: {e}"))
}

thread_local! {
    static CONTEXTS: RefCell<Option<(ClifContext, FunctionBuilderContext)>> = const { RefCell::new(None) };
}

impl Emitter for Cranelift {
    fn accesses(&self) -> Accesses {
        // Without its vector extension, riscv64 has no type of 16 bytes.
        if matches!(self.isa.triple().architecture, target_lexicon::Architecture::Riscv64(_)) {
            8.into()
        } else {
            16.into()
        }
    }

    /// Returns the machine code of `plan` and its alignment in bytes.
    ///
    /// # Errors
    /// Class `Intern` if the plan breaks a rule, or if Cranelift refuses it, panics, or asks for a
    /// relocation.
    fn code(&self, plan: &Plan<Legal>) -> Result<(Vec<u8>, u32)> {
        with_compiled(plan, &*self.isa, false, |clif| {
            let Some(code) = clif.compiled_code() else { return Err(Error::internal("emit", "no code")) };
            if !code.buffer.relocs().is_empty() {
                return Err(Error::internal("emit", "the code has a relocation"));
            }
            Ok((code.code_buffer().to_vec(), code.buffer.alignment))
        })
    }

    /// Returns the intermediate representation of Cranelift and its own listing of the machine
    /// code.
    fn listing(&self, plan: &Plan<Legal>) -> Result<Listing> {
        with_compiled(plan, &*self.isa, true, |clif| {
            let code = clif.compiled_code().and_then(|c| c.vcode.clone()).unwrap_or_default();
            Ok(Listing { ir: clif.func.display().to_string(), code, ..Listing::default() })
        })
    }

    fn module_target(&self) -> Option<&ModuleTarget> {
        Some(&self.isa)
    }
}

fn with_compiled<T>(
    plan: &Plan<Legal>,
    isa: &dyn TargetIsa,
    want_listing: bool,
    then: impl FnOnce(&ClifContext) -> Result<T>,
) -> Result<T> {
    CONTEXTS.with(|cell| {
        // Take both contexts out of the cell while they are used. If Cranelift panics, the contexts
        // may be half built. They are then dropped instead of being put back.
        let (mut clif, mut frontend) =
            cell.take().unwrap_or_else(|| (ClifContext::new(), FunctionBuilderContext::new()));
        clif.clear();
        clif.set_disasm(want_listing);
        let compiled = catch_unwind(AssertUnwindSafe(|| {
            build(plan, isa, &mut clif.func, &mut frontend)?;
            clif.compile(isa, &mut ControlPlane::default())
                .map_err(|e| Error::internal("emit", format!("Cranelift: {:?}", e.inner)))?;
            Ok(())
        }));
        match compiled {
            Ok(done) => {
                let out = done.and_then(|()| then(&clif));
                *cell.borrow_mut() = Some((clif, frontend));
                out
            }
            Err(_) => Err(Error::internal("emit", "panic inside Cranelift")),
        }
    })
}

fn build(
    plan: &Plan<Legal>,
    isa: &dyn TargetIsa,
    func: &mut Function,
    frontend: &mut FunctionBuilderContext,
) -> Result<()> {
    let conv = isa.default_call_conv();
    func.signature = signature(4, conv);
    let mut b = FunctionBuilder::new(func, frontend);
    let block = b.create_block();
    b.append_block_params_for_function_params(block);
    b.switch_to_block(block);
    let [user, packed, count, context] = *b.block_params(block) else {
        return Err(Error::internal("emit", "kernel signature"));
    };
    let operands = plan.operands();
    let mut e = Builder { plan, operands, b, count, context, conv, signatures: [None; 9] };
    let entry = Pointers { user, packed };
    e.body(plan.root(), entry, Offsets::ZERO)?;
    e.b.ins().return_(&[]);
    e.b.seal_all_blocks();
    e.b.finalize(isa.frontend_config());
    Ok(())
}

/// Returns the signature of a function with `n` arguments of 64 bits and no result.
fn signature(n: usize, conv: CallConv) -> Signature {
    let mut s = Signature::new(conv);
    s.params.extend(std::iter::repeat_n(AbiParam::new(types::I64), n));
    s
}

/// The two addresses that the emitted code works on: one in the user's buffer, one on the packed
/// side.
#[derive(Clone, Copy)]
struct Pointers {
    user: Value,
    packed: Value,
}

struct Builder<'a, 'f> {
    plan: &'a Plan<Legal>,
    operands: Operands<'a>,
    b: FunctionBuilder<'f>,
    count: Value,
    context: Value,
    conv: CallConv,
    /// Signatures of micro-kernels, by number of parameters. A signature is declared when it is
    /// first used.
    signatures: [Option<SigRef>; 9],
}

impl Builder<'_, '_> {
    fn body(&mut self, body: Body, base: Pointers, at: Offsets) -> Result<()> {
        body.range().try_for_each(|i| self.op(i, base, at))
    }

    /// Emits operation `i` of the plan for an iteration that is at offset `at` from `base`.
    fn op(&mut self, i: usize, base: Pointers, at: Offsets) -> Result<()> {
        let plan = self.plan;
        let op = &plan.ops()[i];
        if let PlanOp::Move { len, .. } = op {
            return self.access(i, *len, base, at + op.offsets());
        }
        let start = self.placed(i, op.offsets(), base, at)?;
        match op {
            PlanOp::Move { .. } => Ok(()),
            PlanOp::Permute { .. } => {
                Err(Error::internal("emit", "permutation that Cranelift does not write"))
            }
            PlanOp::Loop { trip, step, unroll, body, .. } => {
                if self.operands.parametric() {
                    self.parametric_loop(i, start, (*trip, *step), *body)
                } else {
                    self.counted_loop(start, *trip, *step, *unroll, *body)
                }
            }
            PlanOp::Table { table, body, .. } => self.table_loop(i, start, *table, *body),
            PlanOp::Guard { then, otherwise, .. } => {
                let limit = self.value(i, Field::Limit)?;
                let within = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, self.count, limit);
                let (fast, slow, done) =
                    (self.b.create_block(), self.b.create_block(), self.b.create_block());
                self.b.ins().brif(within, fast, &[], slow, &[]);
                for (block, body) in [(fast, then), (slow, otherwise)] {
                    self.b.switch_to_block(block);
                    self.body(*body, start, Offsets::ZERO)?;
                    self.b.ins().jump(done, &[]);
                }
                self.b.switch_to_block(done);
                Ok(())
            }
            PlanOp::Call { call, .. } => self.call(i, start, call),
        }
    }

    /// Emits a call of a micro-kernel, with its arguments in the order of its parameters.
    fn call(&mut self, i: usize, start: Pointers, call: &Call) -> Result<()> {
        let parameters = call.callee().parameters();
        let mut arguments = Vec::with_capacity(parameters.len());
        for &role in parameters {
            arguments.push(match role {
                Role::User => start.user,
                Role::Packed => start.packed,
                role => match call.argument(role) {
                    Some(Argument::Number(n)) => self.number(i, Field::Argument(role), n)?,
                    _ => self.value(i, Field::Argument(role))?,
                },
            });
        }
        let signatures = self.signatures.get_mut(arguments.len());
        let known = signatures.ok_or_else(|| Error::internal("emit", "call of too many parameters"))?;
        let signature = match known {
            Some(signature) => *signature,
            None => *known.insert(self.b.import_signature(signature(arguments.len(), self.conv))),
        };
        let callee = self.value(i, Field::Callee)?;
        self.b.ins().call_indirect(signature, callee, &arguments);
        Ok(())
    }

    /// Emits one load and one store of `len` bytes for operation `i`.
    fn access(&mut self, i: usize, len: u32, base: Pointers, at: Offsets) -> Result<()> {
        let ty = access_type(len)?;
        let (user, u) = match self.operands.get(i, Field::UserOffset) {
            Some(Operand::Word(index)) => {
                let k = self.word(index);
                (self.b.ins().iadd(base.user, k), 0)
            }
            _ => self.reach(base.user, at.user),
        };
        let (packed, p) = self.reach(base.packed, at.packed);
        // The accesses do not trap, because the caller of the kernel guarantees that the buffers
        // are valid. They may be unaligned.
        let flags = MemFlagsData::new().with_notrap();
        match self.plan.direction() {
            Direction::Pack => {
                let v = self.b.ins().load(ty, flags, user, u);
                self.b.ins().store(flags, v, packed, p);
            }
            Direction::Unpack => {
                let v = self.b.ins().load(ty, flags, packed, p);
                self.b.ins().store(flags, v, user, u);
            }
        }
        Ok(())
    }

    /// Returns an address and a 32-bit displacement whose sum is `base + offset`. If the offset
    /// does not fit into 32 bits, it is added to the address and the displacement is zero.
    fn reach(&mut self, base: Value, offset: i64) -> (Value, i32) {
        match i32::try_from(offset) {
            Ok(small) => (base, small),
            Err(_) => (self.b.ins().iadd_imm_s(base, offset), 0),
        }
    }

    /// Returns the pointers at which operation `i` starts. The operation has the offset `own`
    /// inside an iteration, and the iteration is at offset `at` from `base`.
    fn placed(&mut self, i: usize, own: Offsets, base: Pointers, at: Offsets) -> Result<Pointers> {
        if !self.operands.parametric() {
            return Ok(self.moved(base, at + own));
        }
        // This plan is parametric: its constants are context words, so `own` is not used.
        // Parametric plans are not unrolled, so `at` is zero.
        let mut add = |v, field| match self.operands.get(i, field) {
            Some(Operand::Word(index)) => {
                let k = self.word(index);
                self.b.ins().iadd(v, k)
            }
            _ => v,
        };
        Ok(Pointers {
            user: add(base.user, Field::UserOffset),
            packed: add(base.packed, Field::PackedOffset),
        })
    }

    fn moved(&mut self, base: Pointers, at: Offsets) -> Pointers {
        let mut add = |v, k| if k == 0 { v } else { self.b.ins().iadd_imm_s(v, k) };
        Pointers { user: add(base.user, at.user), packed: add(base.packed, at.packed) }
    }

    fn constant(&mut self, k: i64) -> Value {
        self.b.ins().iconst(types::I64, k)
    }

    /// Returns the constant `field` of operation `i`. It is an immediate value in the code, or is
    /// loaded from the context.
    fn value(&mut self, i: usize, field: Field) -> Result<Value> {
        match self.operands.get(i, field) {
            Some(Operand::Immediate(k)) => Ok(self.constant(k)),
            Some(Operand::Word(index)) => Ok(self.word(index)),
            None => Err(Error::internal("emit", format!("operation {i} has no {field:?}"))),
        }
    }

    /// Returns the number `n` of operation `i`. If `n` stands for a number per instance, it is
    /// multiplied by the instance count.
    fn number(&mut self, i: usize, field: Field, n: Quantity) -> Result<Value> {
        if n == Quantity::counted(1) && !self.operands.parametric() {
            return Ok(self.count);
        }
        let k = self.value(i, field)?;
        Ok(if n.per_count { self.b.ins().imul(k, self.count) } else { k })
    }

    /// Returns context word `index`.
    fn word(&mut self, index: u32) -> Value {
        self.b.ins().load(types::I64, MemFlagsData::trusted(), self.context, 8 * index as i32)
    }
}

fn access_type(len: u32) -> Result<Type> {
    Ok(match len {
        1 => types::I8,
        2 => types::I16,
        4 => types::I32,
        8 => types::I64,
        16 => types::I8X16,
        _ => return Err(Error::internal("emit", format!("access of {len} bytes"))),
    })
}
