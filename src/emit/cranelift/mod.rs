//! Emission through Cranelift, for every target that it has.
//!
//! Calls of micro-kernels are `iconst` and `call_indirect`: a relocation is an error. `opt_level=none` is faster to compile and better
//! code than what the optimizer makes of these loops (docs/PERFORMANCE.md). Contexts are reused per thread; Cranelift runs
//! under `catch_unwind`, because a panic in there must not take the program down.

mod loops;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cranelift_codegen::Context as ClifContext;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Function, InstBuilder, MemFlagsData, SigRef, Signature, Type, Value, types,
};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use super::{CompiledCode, Emitter, Listing, MAX_CODE, context};
use crate::error::{Error, Result};
use crate::kind::Direction;
use crate::plan::{Arg, At, Body, Legal, Op, Plan, Trip, WORDS, Word};

/// The emitter through Cranelift.
pub struct Cranelift {
    isa: OwnedTargetIsa,
}

impl Cranelift {
    /// An emitter for this machine with the flags that ddtc uses; it verifies Cranelift's input if `verifier` says so. Takes 80 us.
    ///
    /// # Errors
    /// When Cranelift does not support the machine.
    pub fn for_host(verifier: bool) -> Result<Cranelift> {
        let failed = |e: String| Error::internal("emit", format!("no code generation for this machine: {e}"));
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
            flags.set(name, value).map_err(|e| failed(e.to_string()))?;
        }
        let isa = cranelift_native::builder().map_err(|e| failed(e.to_owned()))?;
        let isa = isa.finish(settings::Flags::new(flags)).map_err(|e| failed(e.to_string()))?;
        Ok(Cranelift { isa })
    }
}

thread_local! {
    static CONTEXTS: RefCell<Option<(ClifContext, FunctionBuilderContext)>> = const { RefCell::new(None) };
}

impl Emitter for Cranelift {
    fn widest_access(&self) -> u32 {
        // riscv64 without the vector extension has no 16-byte type.
        if matches!(self.isa.triple().architecture, target_lexicon::Architecture::Riscv64(_)) {
            8
        } else {
            16
        }
    }

    /// `Intern` when Cranelift refuses, panics, or asks for a relocation.
    fn emit(&self, plan: &Plan<Legal>) -> Result<CompiledCode> {
        let context = context(plan);
        let (bytes, alignment) = with_compiled(plan, &*self.isa, false, |clif| {
            let Some(code) = clif.compiled_code() else { return Err(Error::internal("emit", "no code")) };
            if !code.buffer.relocs().is_empty() {
                return Err(Error::internal("emit", "the code has a relocation"));
            }
            if code.code_buffer().len() > MAX_CODE {
                return Err(Error::internal("emit", "the code is larger than a kernel may be"));
            }
            Ok((code.code_buffer().to_vec(), code.buffer.alignment))
        })?;
        Ok(CompiledCode { bytes, alignment, context })
    }

    /// Cranelift's IR and its own listing of the machine code.
    fn listing(&self, plan: &Plan<Legal>) -> Result<Listing> {
        with_compiled(plan, &*self.isa, true, |clif| {
            let code = clif.compiled_code().and_then(|c| c.vcode.clone()).unwrap_or_default();
            Ok(Listing { ir: clif.func.display().to_string(), code })
        })
    }

    fn module_target(&self) -> Option<&OwnedTargetIsa> {
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
        // Taken out for the duration: whatever a panic leaves half-built is thrown away with it.
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
    let parametric = plan.is_parametric();
    let mut e = Builder { plan, b, count, context, conv, parametric, micro: [None; 9] };
    let entry = Pointers { user, packed };
    e.body(plan.root(), entry, At::ZERO)?;
    e.b.ins().return_(&[]);
    e.b.seal_all_blocks();
    e.b.finalize(isa.frontend_config());
    Ok(())
}

/// `n` 64-bit arguments and no result.
fn signature(n: usize, conv: CallConv) -> Signature {
    let mut s = Signature::new(conv);
    s.params.extend(std::iter::repeat_n(AbiParam::new(types::I64), n));
    s
}

/// The two addresses that code works on.
#[derive(Clone, Copy)]
struct Pointers {
    user: Value,
    packed: Value,
}

struct Builder<'a, 'f> {
    plan: &'a Plan<Legal>,
    b: FunctionBuilder<'f>,
    count: Value,
    context: Value,
    conv: CallConv,
    /// Whether constants are context words.
    parametric: bool,
    /// The signatures of micro-kernels by number of arguments, declared on first use.
    micro: [Option<SigRef>; 9],
}

impl Builder<'_, '_> {
    fn body(&mut self, body: Body, base: Pointers, at: At) -> Result<()> {
        body.range().try_for_each(|i| self.op(i, base, at))
    }

    /// Emits operation `i` of the plan inside an iteration that is `at` from `base`.
    fn op(&mut self, i: usize, base: Pointers, at: At) -> Result<()> {
        let plan = self.plan;
        let op = &plan.ops()[i];
        if let Op::Move { len, .. } = op {
            return self.access(*len, base, at + op.at());
        }
        let start = self.placed(i, op.at(), base, at);
        match op {
            Op::Move { .. } => Ok(()),
            Op::Loop { trip, step, unroll, body, .. } => {
                if self.parametric {
                    self.parametric_loop(i, start, trip.per_count, *body)
                } else {
                    self.counted_loop(start, *trip, *step, *unroll, *body)
                }
            }
            Op::Table { slot, packed, body, .. } => self.table_loop(i, start, *slot, *packed, *body),
            Op::Guard { limit, then, otherwise } => {
                let limit = self.value(i, Word::Trip, *limit as i64);
                let within = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, self.count, limit);
                let (fast, slow, done) =
                    (self.b.create_block(), self.b.create_block(), self.b.create_block());
                self.b.ins().brif(within, fast, &[], slow, &[]);
                for (block, body) in [(fast, then), (slow, otherwise)] {
                    self.b.switch_to_block(block);
                    self.body(*body, start, At::ZERO)?;
                    self.b.ins().jump(done, &[]);
                }
                self.b.switch_to_block(done);
                Ok(())
            }
            _ => {
                let (micro, args) = plan.call(i).ok_or_else(|| Error::internal("emit", "no call"))?;
                let args: Vec<Value> = args.iter().map(|&arg| self.argument(i, start, arg)).collect();
                self.call(micro.address(), &args);
                Ok(())
            }
        }
    }

    fn argument(&mut self, i: usize, start: Pointers, arg: Arg) -> Value {
        match arg {
            Arg::User => start.user,
            Arg::Packed => start.packed,
            Arg::Value(word, k) => self.value(i, word, k),
            Arg::Trip(word, trip) => self.trip(i, word, trip),
            Arg::Table(word, slot) => self.table(i, word, slot),
        }
    }

    /// One load and one store.
    fn access(&mut self, len: u32, base: Pointers, at: At) -> Result<()> {
        let ty = access_type(len)?;
        let (user, u) = self.reach(base.user, at.user);
        let (packed, p) = self.reach(base.packed, at.packed);
        // Accesses are inside buffers that the caller vouches for: they do not trap; they may be unaligned.
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

    /// `base + offset` as an address and a 32-bit displacement.
    fn reach(&mut self, base: Value, offset: i64) -> (Value, i32) {
        match i32::try_from(offset) {
            Ok(small) => (base, small),
            Err(_) => (self.b.ins().iadd_imm_s(base, offset), 0),
        }
    }

    /// Where operation `i` starts: its own offset `own` inside an iteration that is `at` from `base`.
    fn placed(&mut self, i: usize, own: At, base: Pointers, at: At) -> Pointers {
        if !self.parametric {
            return self.moved(base, at + own);
        }
        // Parametric plans are not unrolled, so `at` is zero and the offset is the operation's own word.
        let mut add = |v, word, k| {
            if k == 0 {
                return v;
            }
            let k = self.word(i as u32 * WORDS + word as u32);
            self.b.ins().iadd(v, k)
        };
        Pointers {
            user: add(base.user, Word::AtUser, own.user),
            packed: add(base.packed, Word::AtPacked, own.packed),
        }
    }

    fn moved(&mut self, base: Pointers, at: At) -> Pointers {
        let mut add = |v, k| if k == 0 { v } else { self.b.ins().iadd_imm_s(v, k) };
        Pointers { user: add(base.user, at.user), packed: add(base.packed, at.packed) }
    }

    fn constant(&mut self, k: i64) -> Value {
        self.b.ins().iconst(types::I64, k)
    }

    /// A constant of operation `i`: a context word if the plan is parametric, else `k` itself.
    fn value(&mut self, i: usize, word: Word, k: i64) -> Value {
        if self.parametric { self.word(i as u32 * WORDS + word as u32) } else { self.constant(k) }
    }

    /// A trip of operation `i`, times the instance count where it carries that.
    fn trip(&mut self, i: usize, word: Word, trip: Trip) -> Value {
        if trip == Trip::counted(1) && !self.parametric {
            return self.count;
        }
        let k = self.value(i, word, trip.k as i64);
        if trip.per_count { self.b.ins().imul(k, self.count) } else { k }
    }

    /// The address of the column in `slot`, as used by operation `i`.
    fn table(&mut self, i: usize, word: Word, slot: u32) -> Value {
        if self.parametric { self.word(i as u32 * WORDS + word as u32) } else { self.word(slot) }
    }

    /// Context word `index`.
    fn word(&mut self, index: u32) -> Value {
        self.b.ins().load(types::I64, MemFlagsData::trusted(), self.context, 8 * index as i32)
    }

    fn rows(&self, slot: u32) -> Result<i64> {
        let column = self.plan.columns().get(slot as usize);
        column.map(|c| c.len() as i64).ok_or_else(|| Error::internal("emit", "slot without a column"))
    }

    /// Calls the function at `address` with 64-bit arguments.
    fn call(&mut self, address: usize, args: &[Value]) {
        let conv = self.conv;
        let sig = match self.micro[args.len()] {
            Some(sig) => sig,
            None => *self.micro[args.len()].insert(self.b.import_signature(signature(args.len(), conv))),
        };
        let callee = self.constant(address as i64);
        self.b.ins().call_indirect(sig, callee, args);
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
