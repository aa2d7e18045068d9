use super::encode::encode;
use crate::kind::Direction;
use crate::micro::strided;
use crate::target::Level;

use super::inst::{Inst, Label, Mask, Math, Mem, Operand, Piece, Reg, Vector, Vex, When, Width};

/// Displacements and constants at the limits of every encoding.
const NUMBERS: [i32; 13] =
    [0, 1, -1, 64, 127, -128, 128, -129, 127 * 64, -128 * 64, 128 * 64, i32::MAX, i32::MIN];
const PIECES: [Piece; 8] =
    [Piece::B1, Piece::B2, Piece::B4, Piece::B8, Piece::B16, Piece::B16Vex, Piece::B32, Piece::B64];
const MATH: [Math; 4] = [Math::Add, Math::Sub, Math::And, Math::Cmp];

fn registers() -> impl Iterator<Item = Reg> {
    (0..16).map(Reg)
}

/// Returns instructions for the tests: every form of every instruction, with every register and
/// with constants of every width.
fn everything() -> Vec<Inst> {
    let mut list = vec![Inst::ZeroUpper, Inst::Return];
    let memory = || registers().flat_map(|base| NUMBERS.map(|disp| Mem { base, disp }));
    for r in registers() {
        list.extend([Inst::Push(r), Inst::Pop(r)]);
        for k in NUMBERS {
            list.push(Inst::Set(r, i64::from(k)));
            list.push(Inst::MulBy(r, Reg(15 - r.0), k));
            list.extend(MATH.map(|op| Inst::Math(op, r, Operand::Imm(k))));
        }
        list.extend([i64::MIN, i64::MAX, 1 << 31, 1 << 32, -(1 << 33)].map(|k| Inst::Set(r, k)));
        for s in registers() {
            list.extend([Inst::Copy(r, s), Inst::Mul(r, Operand::Reg(s))]);
            list.extend(MATH.map(|op| Inst::Math(op, r, Operand::Reg(s))));
        }
        for m in memory() {
            list.extend([
                Inst::Load(r, m),
                Inst::Store(m, r),
                Inst::LoadSigned(r, m),
                Inst::Address(r, m),
                Inst::Mul(r, Operand::Mem(m)),
            ]);
            for op in MATH {
                list.extend([Inst::Math(op, r, Operand::Mem(m)), Inst::MathAt(op, m, Operand::Reg(r))]);
            }
        }
    }
    let micro = strided::micro(8, Direction::Pack, Level::Baseline);
    for m in memory() {
        list.push(Inst::Call(m, micro));
        list.extend([true, false].map(Vex).iter().flat_map(|&v| [Inst::TakeLow(v, m), Inst::TakeHigh(v, m)]));
        list.push(Inst::JoinHigh(m));
        list.extend(PIECES.iter().flat_map(|&p| [Inst::Take(p, m), Inst::Put(p, m)]));
        for k in NUMBERS {
            list.extend(MATH.map(|op| Inst::MathAt(op, m, Operand::Imm(k))));
        }
    }
    // Vector registers for constants, and their masks.
    for number in 1..8 {
        let (v, k) = (Vector(number), Mask(number));
        list.extend([Inst::SetLow(v), Inst::SetHigh(v), Inst::SetMask(k)]);
        for width in [Width::W4, Width::W8] {
            list.push(Inst::Spread(width, v));
            list.extend([0, 1, 7].map(|to| Inst::Pick(width, Vector(to), v)));
            list.extend(memory().map(|m| Inst::PickTwo(width, v, m)));
            list.extend(memory().map(|m| Inst::PutMasked(width, m, k, Vector(8 - number))));
        }
    }
    // Jumps in both directions, over distances that a short jump reaches and over longer ones.
    let whens = [When::Always, When::Equal, When::NotEqual, When::Above];
    for (i, when) in whens.into_iter().enumerate() {
        let (near, far, ahead) = (Label(3 * i as u32), Label(3 * i as u32 + 1), Label(3 * i as u32 + 2));
        list.extend([Inst::Here(far), Inst::Jump(when, ahead)]);
        list.extend([Inst::Set(Reg::RAX, i64::MAX); 20]);
        list.extend([Inst::Here(near), Inst::Jump(when, near), Inst::Jump(when, far), Inst::Here(ahead)]);
    }
    list
}

/// Every form of an instruction has an encoding. This test runs on any machine. Whether the
/// encodings are right is checked by `gnu_as_agrees_on_every_form`, which runs only on x86-64.
#[test]
fn every_form_has_a_code() {
    assert!(encode(&everything(), 12).is_ok_and(|code| code.len() > everything().len()));
}

/// GNU as accepts the printed form of every instruction, and assembles it to the same bytes as
/// `encode`.
#[cfg(target_arch = "x86_64")]
#[test]
fn gnu_as_agrees_on_every_form() {
    use std::fmt::Write as _;
    use std::process::Command;

    let list = everything();
    let code = encode(&list, 12).unwrap();
    let mut text = String::from(".intel_syntax noprefix\n");
    let mut known = Vec::new();
    for inst in &list {
        match inst {
            Inst::Here(label) => known.push(*label),
            // `encode` always uses the long form for a forward jump. Force GNU as to do the same;
            // it would choose the short form where that suffices.
            Inst::Jump(_, label) if !known.contains(label) => text.push_str("{disp32} "),
            _ => {}
        }
        writeln!(text, "{inst}").unwrap();
    }
    let folder = std::env::temp_dir().join(format!("ddtc-as-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| folder.join(name);
    std::fs::write(file("all.s"), &text).unwrap();
    let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
        let output = Command::new(program).args(arguments).output();
        let output =
            output.unwrap_or_else(|e| panic!("{program}: {e}; a C compiler with binutils is needed"));
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run("cc", &["-c".as_ref(), file("all.s").as_ref(), "-o".as_ref(), file("all.o").as_ref()]);
    let to_binary = ["-O", "binary", "-j", ".text"].map(std::ffi::OsStr::new);
    run("objcopy", &[&to_binary[..], &[file("all.o").as_ref(), file("all.bin").as_ref()]].concat());
    let theirs = std::fs::read(file("all.bin")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    if let Some(at) = (0..code.len().max(theirs.len())).find(|&i| code.get(i) != theirs.get(i)) {
        let before = (0..list.len()).take_while(|&n| encode(&list[..n], 12).is_ok_and(|c| c.len() <= at));
        let inst = &list[before.last().unwrap_or(0)];
        let window = |bytes: &[u8]| bytes[at.saturating_sub(8)..(at + 8).min(bytes.len())].to_vec();
        panic!("'{inst}': ours {:02x?}, theirs {:02x?}", window(&code), window(&theirs));
    }
}

#[test]
fn faults_are_errors() {
    assert!(encode(&[Inst::Jump(When::Always, Label(0))], 1).is_err());
    assert!(encode(&[Inst::Here(Label(1))], 1).is_err());
    let m = Mem { base: Reg::RAX, disp: 0 };
    assert!(encode(&[Inst::MathAt(Math::Add, m, Operand::Mem(m))], 0).is_err());
    assert!(encode(&[Inst::Mul(Reg::RAX, Operand::Imm(2))], 0).is_err());
}
