//! Tests that load compiled code, run it as a kernel, and drop it.

use std::sync::Arc;

use cranelift_codegen::Context as Compiler;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{
    AbiParam, BlockArg, Function, InstBuilder, MemFlagsData, Signature, condcodes::IntCC, types::I64,
};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};

use super::{CompiledCode, Context, Kernel, Text};
use crate::code::arena::Arena;
use crate::code::load::load;
use crate::column::Column;
use crate::error::ErrorClass;
use crate::micro::{Table, TableIndex};
use crate::plan::{Template, Word};

/// Returns a Cranelift target for this machine, with optimization turned off so that compiling is
/// fast.
fn host() -> OwnedTargetIsa {
    let mut flags = settings::builder();
    flags.set("opt_level", "none").unwrap();
    cranelift_native::builder().unwrap().finish(settings::Flags::new(flags)).unwrap()
}

/// Returns machine code of a loop with `count` iterations. Each iteration copies 8 bytes from
/// `user` to `packed`, then adds word 0 of the context to `user` and 8 to `packed`.
fn strided_pack(isa: &OwnedTargetIsa) -> Vec<u8> {
    let mut signature = Signature::new(isa.default_call_conv());
    signature.params.extend([AbiParam::new(I64); 4]);
    let mut compiler = Compiler::for_function(Function::with_name_signature(Default::default(), signature));
    let mut control = cranelift_frontend::FunctionBuilderContext::new();
    let mut b = cranelift_frontend::FunctionBuilder::new(&mut compiler.func, &mut control);
    let [entry, head, body, exit] = [(); 4].map(|()| b.create_block());
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let [user, packed, count, context] = [0, 1, 2, 3].map(|i| b.block_params(entry)[i]);
    let stride = b.ins().load(I64, MemFlagsData::trusted(), context, 0);
    b.ins().jump(head, &[user, packed, count].map(BlockArg::from));
    let [user, packed, count] = [(); 3].map(|()| b.append_block_param(head, I64));
    b.switch_to_block(head);
    let more = b.ins().icmp_imm_s(IntCC::NotEqual, count, 0);
    b.ins().brif(more, body, &[], exit, &[]);
    b.switch_to_block(body);
    let value = b.ins().load(I64, MemFlagsData::trusted(), user, 0);
    b.ins().store(MemFlagsData::trusted(), value, packed, 0);
    let user = b.ins().iadd(user, stride);
    let packed = b.ins().iadd_imm_s(packed, 8);
    let count = b.ins().iadd_imm_s(count, -1);
    b.ins().jump(head, &[user, packed, count].map(BlockArg::from));
    b.switch_to_block(exit);
    b.ins().return_(&[]);
    b.seal_all_blocks();
    b.finalize(isa.frontend_config());
    let code = compiler.compile(&**isa, &mut ControlPlane::default()).unwrap();
    assert!(code.buffer.relocs().is_empty());
    code.code_buffer().to_vec()
}

fn code(bytes: Vec<u8>, words: &[i64]) -> CompiledCode {
    let words = words.iter().map(|&k| Word::Constant(k)).collect();
    CompiledCode {
        text: Text::New { bytes, alignment: 16 },
        shape: None,
        context: Template { words, tables: Vec::new() },
    }
}

fn check(kernel: &Kernel) {
    let mut user: Vec<u8> = (0..100).collect();
    let mut packed = [0u8; 40];
    // SAFETY: the code reads five blocks of 8 bytes that are 20 bytes apart, which lie within the
    // 100 bytes of `user`, and writes 40 bytes to `packed`, which has as many. The two do not
    // overlap.
    unsafe { kernel.call(user.as_mut_ptr(), packed.as_mut_ptr(), 5) };
    let expected: Vec<u8> = (0..5).flat_map(|i| (0..8).map(move |k| 20 * i + k)).collect();
    assert_eq!(packed.as_slice(), expected);
}

#[test]
fn compiled_code_runs_from_either_source_of_memory() {
    let isa = host();
    let bytes = strided_pack(&isa);
    for arena in [Arena::new(1 << 20), Arena::without_memfd(1 << 20)] {
        let kernel = load(code(bytes.clone(), &[20]), &arena, Some(&isa)).unwrap();
        assert_eq!(kernel.code(), bytes);
        check(&kernel);
        assert_eq!(arena.usage().live, 1);
        drop(kernel);
        assert_eq!(arena.usage().live, 0);
    }
}

#[test]
fn a_full_arena_keeps_its_error_class() {
    let isa = host();
    let error = load(code(vec![0; 500], &[]), &Arena::new(256), Some(&isa)).unwrap_err();
    assert_eq!((error.class(), error.argument()), (ErrorClass::NoMem, "limit"));
}

#[test]
fn no_code_is_an_error() {
    assert!(load(code(Vec::new(), &[]), &Arena::new(1 << 20), Some(&host())).is_err());
}

#[test]
fn a_context_keeps_its_tables() {
    let column: Column = vec![1, 2, 3].into();
    let words = vec![Word::Table(TableIndex::new(0)), Word::Constant(7)];
    let context = Context::from_template(Template { words, tables: vec![Table::Column(column)] });
    assert_eq!(context.bytes(), 64 + 12);
    assert_eq!((context.len(), context.word(1)), (2, 7));
    // SAFETY: word 0 is the address of the column, which has entries of 4 bytes and which the
    // context owns.
    let first = unsafe { *(context.word(0) as *const i32) };
    assert_eq!(first, 1);
}

/// [`Kernel::shared`] finds the column of a kernel that has the same entries as a given column, and
/// finds nothing for a column with other entries.
#[test]
fn equal_columns_are_kept_once() {
    let columns: [Column; 2] = [vec![1, 2, 3].into(), vec![4, 5].into()];
    let tables = columns.iter().map(|column| Table::Column(column.clone())).collect();
    let (isa, words) = (host(), (0..2).map(|place| Word::Table(TableIndex::new(place))).collect());
    let template = Template { words, tables };
    let compiled = CompiledCode { context: template, ..code(strided_pack(&isa), &[]) };
    let kernel = load(compiled, &Arena::new(1 << 20), Some(&isa)).unwrap();
    for column in &columns {
        let again: Column = column.iter().collect::<Vec<_>>().into();
        assert_eq!(kernel.shared(&again).map(|own| own.as_ptr()), Some(column.as_ptr()));
    }
    assert_eq!(kernel.shared(&vec![1, 2].into()), None);
}

#[test]
fn the_last_user_of_a_kernel_may_be_another_thread() {
    let isa = host();
    let arena = Arena::new(1 << 20);
    let kernel = Arc::new(load(code(strided_pack(&isa), &[20]), &arena, Some(&isa)).unwrap());
    let users: Vec<_> =
        (0..4).map(|_| Arc::clone(&kernel)).map(|k| std::thread::spawn(move || check(&k))).collect();
    drop(kernel);
    users.into_iter().for_each(|t| t.join().unwrap());
    assert_eq!(arena.usage().live, 0);
}
