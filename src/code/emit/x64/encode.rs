//! Encoding of instructions. Each instruction gets the form that the assembler GNU as chooses,
//! which is usually the shortest one. A test compares the two.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapters 2 and
//! 3.

use super::inst::{Inst, Label, Mask, Math, Mem, Operand, Piece, Reg, Vector, Vex, When, Width};
use crate::error::{Error, Result};

/// Returns the machine code of `list`, which has `labels` labels. A backward jump uses the short
/// form if this form reaches the label. A forward jump always uses the long form.
///
/// # Errors
/// Class `Intern` for faults of ddtc: a jump to a label that is not in the code or is too far away,
/// a label whose number is not below `labels`, or an operand of a kind that the instruction does
/// not accept.
pub(super) fn encode(list: &[Inst], labels: u32) -> Result<Vec<u8>> {
    let mut e = Encoder {
        bytes: Vec::with_capacity(list.len() * 6),
        places: vec![None; labels as usize],
        open: Vec::new(),
    };
    for inst in list {
        e.inst(inst)?;
    }
    // All labels are known now. Fill in the distances of the long jumps. A distance counts from the
    // end of the jump instruction.
    for (at, label) in std::mem::take(&mut e.open) {
        let target = e.label_offset(label).ok_or_else(|| wrong("jump to a label that is nowhere"))?;
        let distance = i32::try_from(target as i64 - (at as i64 + 4)).map_err(|_| wrong("jump too far"))?;
        e.bytes[at..at + 4].copy_from_slice(&distance.to_le_bytes());
    }
    Ok(e.bytes)
}

fn wrong(what: &'static str) -> Error {
    Error::internal("emit", what)
}

struct Encoder {
    bytes: Vec<u8>,
    /// Offset in the code of each label, by its number; none if the label has not been reached yet.
    places: Vec<Option<usize>>,
    /// Distances of jumps that are still to be filled in. Each is given by its offset in the code
    /// and the label that the jump leads to.
    open: Vec<(usize, Label)>,
}

/// Contents of the EVEX prefix, with which instructions on 512 bits begin.
#[derive(Clone, Copy)]
struct Evex {
    /// Opcode map, as the manual numbers it: 1 for opcodes that begin with 0F, 2 for 0F 38.
    map: u8,
    /// Whether words have 64 bits.
    wide: bool,
    /// Code of the legacy prefix that the EVEX prefix replaces: 1 for 66, 2 for F3.
    prefix: u8,
    /// Register in the field `vvvv`, which is the second of three operands. It is register 0 if the
    /// instruction has only two operands.
    source: Vector,
    mask: u8,
}

/// Operand that the r/m field of an instruction names.
#[derive(Clone, Copy)]
enum Rm {
    Reg(Reg),
    Mem(Mem),
}

impl Encoder {
    fn label_offset(&self, label: Label) -> Option<usize> {
        self.places.get(label.0 as usize).copied().flatten()
    }

    fn inst(&mut self, inst: &Inst) -> Result<()> {
        match *inst {
            Inst::Copy(d, s) => self.wide(&[0x89], s.0, Rm::Reg(d)),
            Inst::Set(d, k) => self.set(d, k),
            Inst::Load(d, m) => self.wide(&[0x8B], d.0, Rm::Mem(m)),
            Inst::Store(m, s) => self.wide(&[0x89], s.0, Rm::Mem(m)),
            Inst::LoadSigned(d, m) => self.wide(&[0x63], d.0, Rm::Mem(m)),
            Inst::Address(d, m) => self.wide(&[0x8D], d.0, Rm::Mem(m)),
            Inst::Math(op, d, Operand::Mem(m)) => self.wide(&[number(op) * 8 + 3], d.0, Rm::Mem(m)),
            Inst::Math(op, d, Operand::Imm(k)) if d == Reg::RAX && i8::try_from(k).is_err() => {
                self.bytes.extend([0x48, number(op) * 8 + 5]);
                self.bytes.extend(k.to_le_bytes());
            }
            Inst::Math(op, d, o) => self.math(op, Rm::Reg(d), o)?,
            Inst::MathAt(op, m, o) => self.math(op, Rm::Mem(m), o)?,
            Inst::Mul(d, Operand::Reg(s)) => self.wide(&[0x0F, 0xAF], d.0, Rm::Reg(s)),
            Inst::Mul(d, Operand::Mem(m)) => self.wide(&[0x0F, 0xAF], d.0, Rm::Mem(m)),
            Inst::Mul(_, Operand::Imm(_)) => return Err(wrong("product with a constant of two operands")),
            Inst::MulBy(d, s, k) => match i8::try_from(k) {
                Ok(short) => {
                    self.wide(&[0x6B], d.0, Rm::Reg(s));
                    self.bytes.push(short as u8);
                }
                Err(_) => {
                    self.wide(&[0x69], d.0, Rm::Reg(s));
                    self.bytes.extend(k.to_le_bytes());
                }
            },
            Inst::Take(piece, m) => self.piece(piece, m, true),
            Inst::Put(piece, m) => self.piece(piece, m, false),
            Inst::TakeLow(Vex(true), m) => self.vex(2, 0x7E, m),
            Inst::TakeLow(Vex(false), m) => {
                self.bytes.push(0xF3);
                self.narrow(&[0x0F, 0x7E], 0, Rm::Mem(m));
            }
            // Both instructions have `xmm0` as a second source. The field for that source contains
            // the inverted register number, so all its bits are ones. Instructions without a second
            // source have the same bits there, so `vex` needs no argument for it.
            Inst::TakeHigh(Vex(true), m) => self.vex(0, 0x16, m),
            Inst::JoinHigh(m) => self.vex(1, 0x6C, m),
            Inst::TakeHigh(Vex(false), m) => self.narrow(&[0x0F, 0x16], 0, Rm::Mem(m)),
            Inst::SetLow(v) => self.bytes.extend([0xC4, 0xE1, 0xF9, 0x6E, 0xC0 | v.0 << 3]),
            // The register `v` is both source and destination. The third byte contains the inverted
            // number of the source.
            Inst::SetHigh(v) => {
                self.bytes.extend([0xC4, 0xE3, 0xF9 ^ v.0 << 3, 0x22, 0xC0 | v.0 << 3, 1]);
            }
            Inst::Spread(width, v) => {
                let opcode = if width == Width::W4 { 0x31 } else { 0x32 };
                self.evex(Evex { map: 2, wide: false, prefix: 1, source: Vector(0), mask: 0 }, opcode, 0);
                self.bytes.push(0xC0 | v.0 << 3 | v.0);
            }
            Inst::PickTwo(width, v, m) => {
                let form = Evex { map: 2, wide: width == Width::W8, prefix: 1, source: v, mask: 0 };
                self.evex(form, 0x7E, m.base.0);
                self.memory(0, m, 64);
            }
            Inst::Pick(width, d, v) => {
                self.evex(Evex { map: 2, wide: width == Width::W8, prefix: 1, source: v, mask: 0 }, 0x36, 0);
                self.bytes.push(0xC0 | d.0 << 3);
            }
            Inst::SetMask(Mask(k)) => self.bytes.extend([0xC5, 0xF8, 0x92, 0xC0 | k << 3]),
            Inst::PutMasked(width, m, Mask(mask), v) => {
                let form = Evex { map: 1, wide: width == Width::W8, prefix: 2, source: Vector(0), mask };
                self.evex(form, 0x7F, m.base.0);
                self.memory(v.0, m, 64);
            }
            Inst::Jump(when, label) => self.jump(when, label),
            Inst::Here(label) => {
                let place = self.places.get_mut(label.0 as usize).ok_or_else(|| wrong("unknown label"))?;
                *place = Some(self.bytes.len());
            }
            Inst::Call(m, _) => self.narrow(&[0xFF], 2, Rm::Mem(m)),
            Inst::Push(r) => self.stack(0x50, r),
            Inst::Pop(r) => self.stack(0x58, r),
            Inst::ZeroUpper => self.bytes.extend([0xC5, 0xF8, 0x77]),
            Inst::Return => self.bytes.push(0xC3),
        }
        Ok(())
    }

    fn math(&mut self, op: Math, rm: Rm, o: Operand) -> Result<()> {
        match o {
            Operand::Reg(s) => self.wide(&[number(op) * 8 + 1], s.0, rm),
            Operand::Imm(k) => match i8::try_from(k) {
                Ok(short) => {
                    self.wide(&[0x83], number(op), rm);
                    self.bytes.push(short as u8);
                }
                Err(_) => {
                    self.wide(&[0x81], number(op), rm);
                    self.bytes.extend(k.to_le_bytes());
                }
            },
            Operand::Mem(_) => return Err(wrong("two operands in memory")),
        }
        Ok(())
    }

    fn set(&mut self, d: Reg, k: i64) {
        if let Ok(k) = u32::try_from(k) {
            if d.0 >= 8 {
                self.bytes.push(0x41);
            }
            self.bytes.push(0xB8 + (d.0 & 7));
            self.bytes.extend(k.to_le_bytes());
        } else if let Ok(k) = i32::try_from(k) {
            self.wide(&[0xC7], 0, Rm::Reg(d));
            self.bytes.extend(k.to_le_bytes());
        } else {
            self.set_long(d, k);
        }
    }

    fn set_long(&mut self, d: Reg, k: i64) {
        self.bytes.extend([0x48 | (d.0 >> 3), 0xB8 + (d.0 & 7)]);
        self.bytes.extend(k.to_le_bytes());
    }

    fn stack(&mut self, opcode: u8, r: Reg) {
        if r.0 >= 8 {
            self.bytes.push(0x41);
        }
        self.bytes.push(opcode + (r.0 & 7));
    }

    fn jump(&mut self, when: When, label: Label) {
        let (short, long): (u8, &[u8]) = match when {
            When::Always => (0xEB, &[0xE9]),
            When::Equal => (0x74, &[0x0F, 0x84]),
            When::NotEqual => (0x75, &[0x0F, 0x85]),
            When::Above => (0x77, &[0x0F, 0x87]),
        };
        let back = self.label_offset(label).map(|target| target as i64 - (self.bytes.len() as i64 + 2));
        if let Some(Ok(distance)) = back.map(i8::try_from) {
            self.bytes.extend([short, distance as u8]);
            return;
        }
        self.bytes.extend(long);
        self.open.push((self.bytes.len(), label));
        self.bytes.extend([0; 4]);
    }

    /// Encodes a load from memory into the register that `piece` stands for, or a store from that
    /// register.
    fn piece(&mut self, piece: Piece, m: Mem, load: bool) {
        let rm = Rm::Mem(m);
        match (piece, load) {
            (Piece::B1, true) => self.narrow(&[0x0F, 0xB6], 0, rm),
            (Piece::B1, false) => self.narrow(&[0x88], 0, rm),
            (Piece::B2, true) => self.narrow(&[0x0F, 0xB7], 0, rm),
            (Piece::B2, false) => {
                self.bytes.push(0x66);
                self.narrow(&[0x89], 0, rm);
            }
            (Piece::B4, true) => self.narrow(&[0x8B], 0, rm),
            (Piece::B4, false) => self.narrow(&[0x89], 0, rm),
            (Piece::B8, true) => self.wide(&[0x8B], 0, rm),
            (Piece::B8, false) => self.wide(&[0x89], 0, rm),
            (Piece::B16, _) => {
                self.bytes.push(0xF3);
                self.narrow(&[0x0F, if load { 0x6F } else { 0x7F }], 0, rm);
            }
            (Piece::B16Vex | Piece::B32, _) => {
                // In the VEX prefix, 4 stands for a vector of 256 bits and 0 for one of 128 bits,
                // and 2 stands for the legacy prefix F3.
                let last = if piece == Piece::B32 { 4 } else { 0 } | 2;
                self.vex(last, if load { 0x6F } else { 0x7F }, m);
            }
            (Piece::B64, _) => {
                let form = Evex { map: 1, wide: true, prefix: 2, source: Vector(0), mask: 0 };
                self.evex(form, if load { 0x6F } else { 0x7F }, m.base.0);
                self.memory(0, m, 64);
            }
        }
    }

    /// Encodes an AVX instruction of opcode map 0F on `xmm0` or `ymm0` and memory. The argument
    /// `last` contains the vector length and the legacy prefix in the form of the last byte of the
    /// VEX prefix. If the base register needs no extension bit, the short form of the prefix is
    /// used.
    fn vex(&mut self, last: u8, opcode: u8, m: Mem) {
        let last = 0x78 | last;
        if m.base.0 < 8 {
            self.bytes.extend([0xC5, 0x80 | last]);
        } else {
            self.bytes.extend([0xC4, 0xC1, last]);
        }
        self.bytes.push(opcode);
        self.memory(0, m, 1);
    }

    /// Encodes the prefix and opcode of an instruction on 512 bits. The caller appends the
    /// operands. `base` is the number of the general-purpose register that the r/m field names, or
    /// 0 if that field names a vector register.
    fn evex(&mut self, form: Evex, opcode: u8, base: u8) {
        // The fields for register numbers are inverted. All vector registers that ddtc uses have
        // numbers below 8, so their extension bits are the same.
        let first = (if base < 8 { 0xF0 } else { 0xD0 }) | form.map;
        let second = u8::from(form.wide) << 7 | (!form.source.0 & 15) << 3 | 4 | form.prefix;
        self.bytes.extend([0x62, first, second, 0x48 | form.mask, opcode]);
    }

    /// Encodes an instruction on 64-bit operands: the REX prefix with the W bit, the opcode and the
    /// operands.
    fn wide(&mut self, opcode: &[u8], reg: u8, rm: Rm) {
        self.bytes.push(0x48 | extension(reg, rm));
        self.bytes.extend(opcode);
        self.operands(reg, rm);
    }

    /// Encodes an instruction without the W bit of the REX prefix. There is a REX prefix only if
    /// the number of a register needs one.
    fn narrow(&mut self, opcode: &[u8], reg: u8, rm: Rm) {
        let extension = extension(reg, rm);
        if extension != 0 {
            self.bytes.push(0x40 | extension);
        }
        self.bytes.extend(opcode);
        self.operands(reg, rm);
    }

    fn operands(&mut self, reg: u8, rm: Rm) {
        match rm {
            Rm::Reg(r) => self.bytes.push(0xC0 | (reg & 7) << 3 | (r.0 & 7)),
            Rm::Mem(m) => self.memory(reg, m, 1),
        }
    }

    /// Encodes a memory operand. A displacement of one byte is a multiple of `unit` bytes, which is
    /// 64 with an EVEX prefix and otherwise 1.
    fn memory(&mut self, reg: u8, Mem { base, disp }: Mem, unit: i32) {
        // With `rbp` or `r13` as base register, there is no form without a displacement. With `rsp`
        // or `r12`, there is none without a SIB byte.
        let short = if disp % unit == 0 { i8::try_from(disp / unit).ok() } else { None };
        let mode = match short {
            Some(0) if base.0 & 7 != 5 => 0x00,
            Some(_) => 0x40,
            None => 0x80,
        };
        self.bytes.push(mode | (reg & 7) << 3 | (base.0 & 7));
        if base.0 & 7 == 4 {
            self.bytes.push(0x24);
        }
        match (mode, short) {
            (0x40, Some(short)) => self.bytes.push(short as u8),
            (0x80, _) => self.bytes.extend(disp.to_le_bytes()),
            _ => {}
        }
    }
}

/// Returns the extension bits of the REX prefix for a register and an operand.
fn extension(reg: u8, rm: Rm) -> u8 {
    let base = match rm {
        Rm::Reg(r) => r,
        Rm::Mem(m) => m.base,
    };
    (reg >> 3) << 2 | base.0 >> 3
}

/// Returns the number that the manual gives the operation `op` in the group of arithmetic
/// instructions.
fn number(op: Math) -> u8 {
    match op {
        Math::Add => 0,
        Math::And => 4,
        Math::Sub => 5,
        Math::Cmp => 7,
    }
}
