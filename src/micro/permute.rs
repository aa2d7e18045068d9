//! Family `permute` of micro-kernels: moves instances of one small layout, each of which fits into
//! a vector of at most 64 bytes. One permutation moves the bytes of a whole vector to their places.
//!
//! This family serves arrays of structures and any short blocks that repeat. To pack, the code
//! loads a vector, permutes its bytes into packed order, and stores it; to unpack, it does the
//! reverse and stores through a mask. As many instances as fit share one vector. Loads and the last
//! stores are masked too, so nothing outside the instances is accessed and no remainder is left to
//! other code. Bytes are permuted with AVX-512 VBMI, words of 4 bytes with AVX-512 or with AVX2
//! (vectors of 32 bytes). The NEON code looks bytes up in tables. NEON has no masks, so its code
//! only packs, and reads vectors with the gaps between blocks.
//!
//! The contiguous parts of an instance may consist of units whose bytes are reversed. If the code
//! permutes bytes, the reversal only needs another table. If the code permutes words, the bytes
//! inside each word are shuffled after the words are in their places.

pub(super) mod table;

use std::fmt;

use super::isa::{Code, Isa, Permuting, with_code, with_isa};
use super::{Argument, Call, Direction, Family, Micro, Role, TableIndex, Transform};
use crate::nest::{Offsets, Quantity};
use crate::target::{Level, Target};
use table::Table;
pub use table::{Function, Granule};

/// Family that permutes the bytes or words of the instances of one small layout. Instance `i` lies
/// `i * user-step` bytes after the call's address in the user's buffer, and `i` times the size of
/// an instance after the call's address in the packed stream. The parts of each instance are moved
/// in the order in which the permutation lists them. The variant tells whether bytes or words are
/// permuted, and whether units of bytes are reversed.
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
                // If the bytes of units are reversed, each unit of a part is reported as a block of
                // its own.
                let len = if permutation.swaps() { part.unit.into() } else { part.len };
                for k in 0..part.len / len {
                    f(at + Offsets::new((k * len) as i64, (k * len) as i64), len);
                }
            }
        }
    },
    takes: Family::nothing,
};

/// Returns the micro-kernel that moves instances of a layout by `permutation`.
///
/// # Panics
/// If the direction is `Unpack` and the permutation cannot be unpacked ([`Permutation::unpacks`]).
pub fn micro(permutation: &Permutation, direction: Direction) -> Micro {
    assert!(
        direction == Direction::Pack || permutation.unpacks(),
        "a mask has no order for overlapping parts"
    );
    Micro::new(&FAMILY, direction, permutation.level()).with_variant(permutation.number())
}

/// Returns the call of a micro-kernel that moves `n` instances by `permutation`, which is the table
/// with the index `table` in the plan.
///
/// # Panics
/// If the direction is `Unpack` and the permutation cannot be unpacked ([`Permutation::unpacks`]).
pub fn call(direction: Direction, n: Quantity, (permutation, table): (&Permutation, TableIndex)) -> Call {
    let arguments = [
        (Role::Iterations, Argument::Number(n)),
        (Role::UserStep, Argument::Step(permutation.stride)),
        (Role::Permutation, Argument::Table(table)),
    ];
    Call::new(micro(permutation, direction), arguments)
}

/// One contiguous part of the bytes of an instance of the small layout that a permutation moves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Part {
    /// Offset in bytes from the address of the instance in the user's buffer.
    pub user: i64,
    /// Offset in bytes from the first packed byte of the instance.
    pub packed: u64,
    /// Number of bytes of the part, a multiple of `unit`.
    pub len: u64,
    /// Number of bytes of each unit, a power of two. The bytes of every unit are reversed; a unit
    /// of 1 byte stays as it is.
    pub unit: u8,
}

/// Decodes the variant number of a micro-kernel of this family: whether it permutes bytes or words
/// of 4 bytes (its granule), and whether it reverses the bytes of units, which are groups of two or
/// more bytes.
fn of_number(number: u8) -> (Granule, bool) {
    (if number & 1 == 0 { Granule::Byte } else { Granule::Word }, number & 2 != 0)
}

/// A small layout as a permutation of the bytes of a vector. The code of a plan finds the address
/// of the permutation's table in its context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    table: Table,
    parts: Box<[Part]>,
    stride: i64,
    granule: Granule,
    swaps: bool,
    level: Level,
    /// Whether the permutation can unpack: no byte of the user's vector belongs to two parts, and
    /// the level has masked stores.
    unpacks: bool,
}

impl Permutation {
    /// Returns the permutation that moves instances which consist of `parts` and lie `stride` bytes
    /// apart. Returns `None` if `target` has no code for this, which is so in each of these cases:
    /// * there are no bytes, the level has no permutations, or a part does not consist of whole
    ///   units whose size is a power of two;
    /// * the packed bytes of the parts are not `0..size` in some order, or they exceed a vector;
    /// * the bytes of an instance in user memory, with the gaps between them, exceed a vector;
    /// * words are permuted, but the packed bytes are not whole words of the user's vector;
    /// * words are permuted, but bytes change places inside a word although no part has units;
    /// * the level has no masked loads and stores, and a vector holds fewer than two instances.
    pub fn new(parts: &[Part], stride: i64, target: Target) -> Option<Permutation> {
        let level = target.level();
        let Permuting { vector, masked } = with_isa!(level, I => I::PERMUTATION)?;
        // List the user offset of every packed byte, and find how many instances fit into one
        // vector. Instances share a vector only if they do not interleave, that is if the stride
        // between instances is at least the span of an instance, from its lowest byte to its
        // highest.
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
        // Fill the table for all instances of a full vector, lane by lane. A lane is a byte or a
        // word of 4 bytes. For each lane of the packed side, the table has the index of the lane of
        // the user's vector from which it comes, and for each lane of the user's vector, the index
        // of the lane of the packed side.
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
                // The bytes of a lane (a byte or a word) of the packed side must be exactly the
                // bytes of one lane of the user's vector.
                let at = |user: &i64| (i as i64).wrapping_mul(stride).wrapping_add(user - lowest) as usize;
                let (lane, to) = (at(&word[0]) / unit, i as usize * size as usize / unit + k);
                let whole = word.iter().fold(0u8, |seen, user| seen | 1 << (at(user) % unit));
                let moved = word.iter().enumerate().any(|(k, user)| at(user) % unit != k);
                let torn = word.iter().any(|user| at(user) / unit != lane) || whole != (1u8 << unit) - 1;
                // The code shuffles the bytes inside words only if there are units whose bytes are
                // reversed.
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
        // Without masked loads, a vector is read together with the gaps between blocks. This pays
        // only if the vector holds more than one instance, and then the gaps are short.
        if !masked && instances == 1 {
            return None;
        }
        let unpacks = disjoint && masked;
        Some(Permutation { table, parts: parts.into(), stride, granule, swaps, level, unpacks })
    }

    /// Returns the number of packed bytes of one instance of the layout.
    pub fn size(&self) -> u64 {
        self.table.size
    }

    /// Returns the number of instances of the layout that one vector holds.
    pub fn instances(&self) -> u64 {
        self.table.instances
    }

    /// Returns true if the instances can be unpacked. Unpacking needs masked stores, and parts that
    /// do not overlap: a masked store writes all bytes at once, so overlapping parts have no order.
    pub fn unpacks(&self) -> bool {
        self.unpacks
    }

    /// Returns the unit of data that the code of this permutation moves: bytes or words of 4 bytes.
    pub fn granule(&self) -> Granule {
        self.granule
    }

    /// Returns true if the permutation reverses the bytes of units, which are groups of two or more
    /// bytes.
    pub fn swaps(&self) -> bool {
        self.swaps
    }

    /// Returns the variant number of the micro-kernel that moves instances by this permutation.
    fn number(&self) -> u8 {
        self.granule as u8 | u8::from(self.swaps) << 1
    }

    /// Returns the level of the code.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Returns the address of the permutation's table, which the code of the permutation gets as an
    /// argument. The address is valid as long as `self` is neither moved nor dropped.
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

/// Writes `value` as entry `at` of the table `lanes`. An entry takes 1 byte if bytes are permuted
/// and 4 bytes if words are permuted. All bytes of the entry except the first must be 0 already.
fn put(lanes: &mut [u8; 64], at: usize, value: usize, unit: usize) {
    // The first byte of an entry is the lowest one, because the machines that run this code are
    // little-endian.
    lanes[at * unit] = value as u8;
}

/// Returns the user offset of every packed byte of an instance. Returns `None` unless the parts
/// consist of whole units, have at most `limit` packed bytes together, and cover each of the packed
/// bytes `0..size` once.
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

/// Scalar reference of this family of micro-kernels, with which the tests compare them: copies the
/// bytes one by one.
///
/// # Safety
/// Every byte of every instance must be readable on the source side and writable on the destination
/// side. The sides must not overlap.
pub unsafe fn scalar_reference(
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
                // SAFETY: `u` and `p` are byte `k` of a part of instance `i` on both sides, which
                // the caller promises.
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

/// Returns the function for `level` that permutes bytes or words (`granule`), with or without units
/// whose bytes are reversed. Returns `None` if there is no such function.
pub fn function((granule, swaps): (Granule, bool), direction: Direction, level: Level) -> Option<Function> {
    with_code!(level, I => I::permute(granule, swaps, direction))
}

#[cfg(test)]
mod tests;
