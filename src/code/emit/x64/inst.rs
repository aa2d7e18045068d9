//! The x86-64 instructions that kernels need, as data. They are printed in the Intel syntax of GNU
//! as, and `encode.rs` encodes them.

use std::fmt;

use crate::micro::Micro;

/// A general-purpose register with its 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reg(pub(super) u8);

impl Reg {
    pub(super) const RAX: Reg = Reg(0);
    pub(super) const RCX: Reg = Reg(1);
    pub(super) const RDX: Reg = Reg(2);
    pub(super) const RBX: Reg = Reg(3);
    pub(super) const RSP: Reg = Reg(4);
    pub(super) const RBP: Reg = Reg(5);
    pub(super) const RSI: Reg = Reg(6);
    pub(super) const RDI: Reg = Reg(7);
    pub(super) const R8: Reg = Reg(8);
    pub(super) const R9: Reg = Reg(9);
    pub(super) const R10: Reg = Reg(10);
    pub(super) const R11: Reg = Reg(11);
    pub(super) const R12: Reg = Reg(12);
    pub(super) const R13: Reg = Reg(13);
    pub(super) const R14: Reg = Reg(14);
    pub(super) const R15: Reg = Reg(15);

    /// Returns true if a function must restore the register before it returns (System V ABI).
    pub(super) fn is_callee_saved(self) -> bool {
        matches!(self, Reg::RBX | Reg::RBP | Reg::R12 | Reg::R13 | Reg::R14 | Reg::R15)
    }
}

/// Memory at the address in a register plus a displacement in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mem {
    pub(super) base: Reg,
    pub(super) disp: i32,
}

/// Second operand of arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operand {
    Reg(Reg),
    Mem(Mem),
    Imm(i32),
}

/// Size of an access, and the register that the bytes go through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Piece {
    /// 1 byte, through `al`.
    B1,
    /// 2 bytes, through `ax`.
    B2,
    /// 4 bytes, through `eax`.
    B4,
    /// 8 bytes, through `rax`.
    B8,
    /// 16 bytes, through `xmm0`, by an SSE2 instruction.
    B16,
    /// 16 bytes, through `xmm0`, by an AVX instruction, which clears the upper part of the
    /// register.
    B16Vex,
    /// 32 bytes, through `ymm0`.
    B32,
    /// 64 bytes, through `zmm0`.
    B64,
}

/// Number of a vector register. Register 0 carries the bytes that are moved; constants are in the
/// other registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Vector(pub(super) u8);

/// Number of a mask register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mask(pub(super) u8);

/// Size in bytes of the words that are permuted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Width {
    W4,
    W8,
}

/// Whether an instruction has the encoding of AVX.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Vex(pub(super) bool);

/// Arithmetic on 64 bits: `first = first op second`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Math {
    Add,
    Sub,
    And,
    /// Sets only the flags.
    Cmp,
}

/// Condition under which a jump is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum When {
    Always,
    Equal,
    NotEqual,
    /// The unsigned comparison resulted in "above".
    Above,
}

/// Number of a place in the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Label(pub(super) u32);

/// One instruction, or a label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Inst {
    /// Copies the second register to the first.
    Copy(Reg, Reg),
    /// Sets a register to a constant.
    Set(Reg, i64),
    Load(Reg, Mem),
    Store(Mem, Reg),
    /// Loads 4 bytes with sign extension.
    LoadSigned(Reg, Mem),
    /// Computes the address of the memory, without an access.
    Address(Reg, Mem),
    Math(Math, Reg, Operand),
    /// Arithmetic on memory. The second operand is a register or a constant.
    MathAt(Math, Mem, Operand),
    /// `first *= second`. The second operand is a register or memory.
    Mul(Reg, Operand),
    /// `first = second * third`.
    MulBy(Reg, Reg, i32),
    /// Loads as many bytes as the piece has into the register that the piece goes through.
    Take(Piece, Mem),
    /// Stores as many bytes as the piece has from the register that the piece goes through.
    Put(Piece, Mem),
    /// Loads 8 bytes into the lower half of `xmm0` and clears the upper half. The instruction
    /// belongs to AVX or SSE2.
    TakeLow(Vex, Mem),
    /// Loads 8 bytes into the upper half of `xmm0`. The instruction belongs to AVX or SSE.
    TakeHigh(Vex, Mem),
    /// Loads 8 bytes into the upper half of `xmm0`. The AVX instruction reads 16 bytes, of which it
    /// uses the first 8.
    JoinHigh(Mem),
    /// Copies `rax` to the lower half of a 128-bit register and clears the upper half.
    SetLow(Vector),
    /// Copies `rax` to the upper half of a 128-bit register.
    SetHigh(Vector),
    /// Extends the lowest bytes of a register with zeros to words of the given width. There are as
    /// many words as fit into 64 bytes, and they replace the contents of the same register.
    Spread(Width, Vector),
    /// Fills `zmm0` with words that are chosen from the old words of `zmm0` and from 64 bytes in
    /// memory. The register contains the index of each word.
    PickTwo(Width, Vector, Mem),
    /// Fills the first register with words that are chosen from `zmm0`. The second register
    /// contains the index of each word.
    Pick(Width, Vector, Vector),
    /// Copies the lower 16 bits of `eax` to a mask register.
    SetMask(Mask),
    /// Stores those words of a register whose bits in the mask register are set.
    PutMasked(Width, Mem, Mask, Vector),
    Jump(When, Label),
    Here(Label),
    /// Calls the micro-kernel whose address lies in memory at the operand.
    Call(Mem, Micro),
    Push(Reg),
    Pop(Reg),
    /// Clears the upper parts of all vector registers, as code that uses SSE instructions expects
    /// after a return.
    ZeroUpper,
    Return,
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 16] = [
            "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
            "r14", "r15",
        ];
        f.write_str(NAMES[usize::from(self.0 & 15)])
    }
}

impl fmt::Display for Mem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.disp {
            0 => write!(f, "[{}]", self.base),
            disp => write!(f, "[{}{disp:+}]", self.base),
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Reg(r) => r.fmt(f),
            Operand::Mem(m) => m.fmt(f),
            Operand::Imm(k) => k.fmt(f),
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "L{}", self.0)
    }
}

impl Math {
    fn name(self) -> &'static str {
        match self {
            Math::Add => "add",
            Math::Sub => "sub",
            Math::And => "and",
            Math::Cmp => "cmp",
        }
    }
}

impl Width {
    /// Returns the letter that stands for this width in names of instructions: `d` or `q`.
    fn letter(self) -> char {
        match self {
            Width::W4 => 'd',
            Width::W8 => 'q',
        }
    }
}

impl fmt::Display for Inst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Inst::Copy(d, s) => write!(f, "mov {d}, {s}"),
            // Writing the lower 32 bits of a register clears the upper ones, so `mov eax, 1` is the
            // short form of `mov rax, 1`.
            Inst::Set(d, k) if u32::try_from(*k).is_ok() => match d.0 {
                0..8 => write!(f, "mov e{}, {k}", &d.to_string()[1..]),
                _ => write!(f, "mov {d}d, {k}"),
            },
            Inst::Set(d, k) if i32::try_from(*k).is_ok() => write!(f, "mov {d}, {k}"),
            Inst::Set(d, k) => write!(f, "movabs {d}, {k}"),
            Inst::Load(d, m) => write!(f, "mov {d}, {m}"),
            Inst::Store(m, s) => write!(f, "mov {m}, {s}"),
            Inst::LoadSigned(d, m) => write!(f, "movsxd {d}, dword ptr {m}"),
            Inst::Address(d, m) => write!(f, "lea {d}, {m}"),
            Inst::Math(op, d, o) => write!(f, "{} {d}, {o}", op.name()),
            Inst::MathAt(op, m, o) => write!(f, "{} qword ptr {m}, {o}", op.name()),
            Inst::Mul(d, o) => write!(f, "imul {d}, {o}"),
            Inst::MulBy(d, s, k) => write!(f, "imul {d}, {s}, {k}"),
            Inst::Take(piece, m) => match piece {
                Piece::B1 => write!(f, "movzx eax, byte ptr {m}"),
                Piece::B2 => write!(f, "movzx eax, word ptr {m}"),
                Piece::B4 => write!(f, "mov eax, {m}"),
                Piece::B8 => write!(f, "mov rax, {m}"),
                Piece::B16 => write!(f, "movdqu xmm0, {m}"),
                Piece::B16Vex => write!(f, "vmovdqu xmm0, {m}"),
                Piece::B32 => write!(f, "vmovdqu ymm0, {m}"),
                Piece::B64 => write!(f, "vmovdqu64 zmm0, {m}"),
            },
            Inst::Put(piece, m) => match piece {
                Piece::B1 => write!(f, "mov {m}, al"),
                Piece::B2 => write!(f, "mov {m}, ax"),
                Piece::B4 => write!(f, "mov {m}, eax"),
                Piece::B8 => write!(f, "mov {m}, rax"),
                Piece::B16 => write!(f, "movdqu {m}, xmm0"),
                Piece::B16Vex => write!(f, "vmovdqu {m}, xmm0"),
                Piece::B32 => write!(f, "vmovdqu {m}, ymm0"),
                Piece::B64 => write!(f, "vmovdqu64 {m}, zmm0"),
            },
            Inst::TakeLow(Vex(true), m) => write!(f, "vmovq xmm0, {m}"),
            Inst::TakeLow(Vex(false), m) => write!(f, "movq xmm0, {m}"),
            Inst::TakeHigh(Vex(true), m) => write!(f, "vmovhps xmm0, xmm0, {m}"),
            Inst::JoinHigh(m) => write!(f, "vpunpcklqdq xmm0, xmm0, {m}"),
            Inst::TakeHigh(Vex(false), m) => write!(f, "movhps xmm0, {m}"),
            Inst::SetLow(v) => write!(f, "vmovq xmm{}, rax", v.0),
            Inst::SetHigh(v) => write!(f, "vpinsrq xmm{0}, xmm{0}, rax, 1", v.0),
            Inst::Spread(Width::W4, v) => write!(f, "vpmovzxbd zmm{0}, xmm{0}", v.0),
            Inst::Spread(Width::W8, v) => write!(f, "vpmovzxbq zmm{0}, xmm{0}", v.0),
            Inst::PickTwo(width, v, m) => write!(f, "vpermt2{} zmm0, zmm{}, {m}", width.letter(), v.0),
            Inst::Pick(width, d, v) => write!(f, "vperm{} zmm{}, zmm{}, zmm0", width.letter(), d.0, v.0),
            Inst::SetMask(k) => write!(f, "kmovw k{}, eax", k.0),
            Inst::PutMasked(Width::W4, m, k, v) => write!(f, "vmovdqu32 {m}{{k{}}}, zmm{}", k.0, v.0),
            Inst::PutMasked(Width::W8, m, k, v) => write!(f, "vmovdqu64 {m}{{k{}}}, zmm{}", k.0, v.0),
            Inst::Jump(when, label) => match when {
                When::Always => write!(f, "jmp {label}"),
                When::Equal => write!(f, "je {label}"),
                When::NotEqual => write!(f, "jne {label}"),
                When::Above => write!(f, "ja {label}"),
            },
            Inst::Here(label) => write!(f, "{label}:"),
            Inst::Call(m, micro) => write!(f, "call qword ptr {m} # {micro}"),
            Inst::Push(r) => write!(f, "push {r}"),
            Inst::Pop(r) => write!(f, "pop {r}"),
            Inst::ZeroUpper => f.write_str("vzeroupper"),
            Inst::Return => f.write_str("ret"),
        }
    }
}
