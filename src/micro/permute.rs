//! Permutation: instances of one small layout, each within a vector of 64 bytes, moved by one permutation per vector.
//!
//! An array of structs, or any short blocks that repeat: load a vector, permute its bytes into packed order, store; unpack
//! the other way round through a mask. As many instances as fit share a vector. Loads and the last stores are masked too, so
//! nothing outside the instances is touched and no remainder is left to other code. Bytes are permuted with AVX-512 VBMI,
//! 4-byte words with AVX-512 or AVX2 (vectors of 32 bytes). NEON looks bytes up in tables, and only packs: it has no masks.
//!
//! Parts may have units, whose bytes end in reverse order. Where bytes are permuted, that is another table; words are shuffled inside
//! themselves once they are in their places.

pub(super) mod table;

use std::fmt;

use super::isa::{Code, Isa, Permuting, with_code, with_isa};
use super::{Argument, Call, Direction, Family, Micro, Role, TableIndex, Transform};
use crate::nest::{Offsets, Quantity};
use crate::target::{Level, Target};
use table::Table;
pub use table::{Function, Granule};

/// Instances of one small layout: instance `i` at `a + i * (user-step, its size)`, each moved as the parts of the permutation say, in order.
/// The variant is the granule, and whether units are reversed.
pub static FAMILY: Family = Family {
    name: "permute",
    directed: true,
    parameters: |_| &[Role::User, Role::Packed, Role::Iterations, Role::UserStep, Role::Permutation],
    variant: |number, f| {
        let (granule, swaps) = of_number(number);
        write!(f, ".{granule}{}", if swaps { ".swap" } else { "" })
    },
    transform: |number| if of_number(number).1 { Transform::Mirrored } else { Transform::Copied },
    address: |micro| {
        let function = function(of_number(micro.variant()), micro.direction(), micro.level());
        function.map_or(0, |function| function as usize)
    },
    check: |call| {
        let permutation = call.permutation();
        let made_for =
            (permutation.number(), permutation.level()) == (call.callee().variant(), call.callee().level());
        if !made_for || permutation.stride != call.step(Role::UserStep) {
            return Err("permutation made for another micro-kernel or step");
        }
        if call.callee().direction() == Direction::Unpack && !permutation.unpacks() {
            return Err("permutation that has no order for overlapping parts");
        }
        Ok(())
    },
    blocks: |call, f| {
        let permutation = call.permutation();
        let step = Offsets::new(call.step(Role::UserStep), permutation.size() as i64);
        for i in 0..call.number(Role::Iterations) as i64 {
            for part in permutation.parts.iter() {
                let at = Offsets::ZERO.step(step, i) + Offsets::new(part.user, part.packed as i64);
                // Blocks that are mirrored are units.
                let len = if permutation.swaps() { part.unit.into() } else { part.len };
                for k in 0..part.len / len {
                    f(at + Offsets::new((k * len) as i64, (k * len) as i64), len);
                }
            }
        }
    },
    takes: Family::nothing,
};

/// Returns the micro-kernel for instances of `permute`.
///
/// # Panics
/// To unpack, if the permutation has overlapping parts.
pub fn micro(permutation: &Permutation, direction: Direction) -> Micro {
    assert!(
        direction == Direction::Pack || permutation.unpacks(),
        "a mask has no order for overlapping parts"
    );
    Micro::new(&FAMILY, direction, permutation.level()).with_variant(permutation.number())
}

/// Returns the call that moves `n` instances of `permute`, which is table `table` of the plan.
///
/// # Panics
/// As [`micro`].
pub fn call(direction: Direction, n: Quantity, (permutation, table): (&Permutation, TableIndex)) -> Call {
    let arguments = [
        (Role::Iterations, Argument::Number(n)),
        (Role::UserStep, Argument::Step(permutation.stride)),
        (Role::Permutation, Argument::Table(table)),
    ];
    Call::new(micro(permutation, direction), arguments)
}

/// One contiguous part of an instance.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Part {
    /// Offset from the instance's address in the user's buffer, in bytes.
    pub user: i64,
    /// Offset from the instance's first packed byte, in bytes.
    pub packed: u64,
    /// Bytes, a multiple of the unit.
    pub len: u64,
    /// Bytes of the units whose bytes end in reverse order, a power of two; 1 where all stay as they are.
    pub unit: u8,
}

/// Reads from the number of a variant what is permuted, and whether units are reversed.
fn of_number(number: u8) -> (Granule, bool) {
    (if number & 1 == 0 { Granule::Byte } else { Granule::Word }, number & 2 != 0)
}

/// A layout as a permutation. Contexts hold its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    table: Table,
    parts: Box<[Part]>,
    stride: i64,
    granule: Granule,
    swaps: bool,
    level: Level,
    /// No byte of a vector is mapped twice, and the level stores under masks.
    unpacks: bool,
}

impl Permutation {
    /// Returns the permutation of instances made of `parts`, `stride` bytes apart; none where it has no code for `target`:
    /// a span of more than one vector, packed bytes that are not `0..size` in some order, or words that are not whole words of the user's
    /// vector; without masks also less than two instances in a vector.
    pub fn new(parts: &[Part], stride: i64, target: Target) -> Option<Permutation> {
        let level = target.level();
        let Permuting { vector, masked } = with_isa!(level, I => I::PERMUTATION)?;
        let granule = if target.permutes_bytes() { Granule::Byte } else { Granule::Word };
        let bytes = bytes_of(parts, vector)?;
        let lowest = *bytes.iter().min()?;
        let span = bytes.iter().max()?.checked_sub(lowest)?.checked_add(1)?;
        let (size, span) = (bytes.len() as u64, u64::try_from(span).ok().filter(|&s| s <= vector)?);
        let fits = |k: u64| stride > 0 && (k - 1) * stride as u64 + span <= vector && k * size <= vector;
        let instances = if stride >= span as i64 {
            (1..=vector).take_while(|&k| k == 1 || fits(k)).count() as u64
        } else {
            1
        };
        let unit = match granule {
            Granule::Byte => 1,
            Granule::Word => 4,
        };
        let none = [0; 64];
        let mut table = Table {
            pack: none,
            unpack: none,
            pack_within: none,
            unpack_within: none,
            mapped: 0,
            instances,
            size,
            lowest,
            span,
        };
        let swaps = parts.iter().any(|part| part.unit > 1);
        let mut disjoint = true;
        for i in 0..instances {
            for (k, word) in bytes.chunks(unit).enumerate() {
                // Bytes of the user's vector that the lane comes from: those of one lane, each once.
                let at = |user: &i64| (i as i64).wrapping_mul(stride).wrapping_add(user - lowest) as usize;
                let (lane, to) = (at(&word[0]) / unit, i as usize * size as usize / unit + k);
                let whole = word.iter().fold(0u8, |seen, user| seen | 1 << (at(user) % unit));
                let moved = word.iter().enumerate().any(|(k, user)| at(user) % unit != k);
                let torn = word.iter().any(|user| at(user) / unit != lane) || whole != (1u8 << unit) - 1;
                // Words are shuffled inside themselves only where units are reversed.
                if torn || moved && !swaps {
                    return None;
                }
                let bit = 1u64 << lane;
                disjoint &= table.mapped & bit == 0;
                table.mapped |= bit;
                put(&mut table.pack, to, lane, unit);
                put(&mut table.unpack, lane, to, unit);
                for (k, user) in word.iter().enumerate() {
                    let (packed, user) = (to * unit + k, at(user));
                    table.pack_within[packed] = (to * unit % 16 + user % unit) as u8;
                    table.unpack_within[user] = (lane * unit % 16 + k) as u8;
                }
            }
        }
        if !size.is_multiple_of(unit as u64) || !span.is_multiple_of(unit as u64) {
            return None;
        }
        // A vector that is read as it is must be worth more than one instance, and the gaps in it short.
        if !masked && instances == 1 {
            return None;
        }
        let unpacks = disjoint && masked;
        Some(Permutation { table, parts: parts.into(), stride, granule, swaps, level, unpacks })
    }

    /// Returns the bytes of one instance, packed.
    pub fn size(&self) -> u64 {
        self.table.size
    }

    /// Returns the instances that one vector moves.
    pub fn instances(&self) -> u64 {
        self.table.instances
    }

    /// Says whether it may be unpacked: a mask cannot write one byte twice, so overlapping parts have no order, and without masks there is none.
    pub fn unpacks(&self) -> bool {
        self.unpacks
    }

    /// Returns the unit that is permuted.
    pub fn granule(&self) -> Granule {
        self.granule
    }

    /// Says whether units are reversed.
    pub fn swaps(&self) -> bool {
        self.swaps
    }

    /// The number of the variant that moves it.
    fn number(&self) -> u8 {
        self.granule as u8 | u8::from(self.swaps) << 1
    }

    /// Returns the level of the code.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Returns the address of the table that the code is called with; valid while this does not move.
    pub fn as_ptr(&self) -> *const u8 {
        std::ptr::from_ref(&self.table).cast()
    }
}

impl fmt::Display for Permutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "permutation of")?;
        for part in &self.parts {
            write!(f, " {}:{}:{}", part.user, part.packed, part.len)?;
            if self.swaps {
                write!(f, "/{}", part.unit)?;
            }
        }
        write!(f, " every {}", self.stride)
    }
}

/// Writes a lane index: one byte for bytes, 4 bytes for words.
fn put(lanes: &mut [u8; 64], at: usize, value: usize, unit: usize) {
    // Little-endian, as the machines that run this are.
    lanes[at * unit] = value as u8;
}

/// User offset of every packed byte of an instance, if the parts are at most `limit` bytes of whole units and make exactly `0..size`.
fn bytes_of(parts: &[Part], limit: u64) -> Option<Vec<i64>> {
    let mut bytes: Vec<Option<i64>> = Vec::new();
    for part in parts {
        let unit = u64::from(part.unit);
        let end = part.packed.checked_add(part.len).filter(|&e| e <= limit)? as usize;
        if !unit.is_power_of_two() || !part.len.is_multiple_of(unit) {
            return None;
        }
        bytes.resize(bytes.len().max(end), None);
        for k in 0..part.len {
            let byte = &mut bytes[(part.packed + k) as usize];
            if byte.replace(part.user.checked_add((k ^ (unit - 1)) as i64)?).is_some() {
                return None;
            }
        }
    }
    bytes.into_iter().collect()
}

/// The meaning: the same bytes one by one.
///
/// # Safety
/// Every byte of every instance is valid on both sides; the sides do not overlap.
pub unsafe fn twin(
    direction: Direction,
    (user, packed): (*mut u8, *mut u8),
    n: u64,
    stride: i64,
    parts: &[Part],
) {
    let size: u64 = parts.iter().map(|p| p.len).sum();
    for i in 0..n {
        for part in parts {
            for k in 0..part.len {
                let from = (k ^ (u64::from(part.unit) - 1)) as i64;
                let u = user.wrapping_offset((i as i64 * stride + part.user + from) as isize);
                let p = packed.wrapping_add((i * size + part.packed + k) as usize);
                // SAFETY: byte `k` of a part of instance `i`.
                unsafe {
                    match direction {
                        Direction::Pack => p.write(u.read()),
                        Direction::Unpack => u.write(p.read()),
                    }
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod masked;

/// Returns the function for permutations of a granule, and whether units are reversed, at `level`; none where there is none.
pub fn function((granule, swaps): (Granule, bool), direction: Direction, level: Level) -> Option<Function> {
    with_code!(level, I => I::permute(granule, swaps, direction))
}

#[cfg(test)]
mod tests;
