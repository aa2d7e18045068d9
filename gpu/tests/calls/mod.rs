//! Calls that pack or unpack by a printed kernel. The interpreter of PTX runs the kernel on sparse
//! memory, and the bytes that it moves are compared with the type map.
//!
//! In each case, user memory consists of the mapped bytes of the datatype and of nothing else.
//! Packed memory consists of the bytes of the range that is moved. The table of a layout is a third
//! piece of memory. So the interpreter refuses a kernel that accesses a gap, a packed byte before
//! or after the range, or an entry before or after the table.

#[allow(dead_code, reason = "the stand-in uses the rest")]
#[path = "../interpreter/mod.rs"]
mod interpreter;

use std::collections::BTreeMap;
use std::ops::Range;

use ddtc::internal::datatype::{Datatype, TypeMap};
use ddtc::internal::kind::Direction;
use ddtc_gpu::kernel::{Addresses, Kernel, Mover, THREADS, launches};
use ddtc_gpu::selection::{Selection, select};

use interpreter::{Memory, Module};

/// Value of each byte that no kernel has written yet.
const POISON: u8 = 0xa5;

/// Base addresses of the user's buffer and of the packed bytes, and address of the table. A case
/// may add a small offset to one of the first two addresses, to test another alignment.
pub(crate) const USER: u64 = 1 << 40;
pub(crate) const PACKED: u64 = 0x7000_0000_0000;
const TABLE: u64 = 0x6000_0000_0000;

fn pattern(i: u64) -> u8 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Returns the layout of `t` for kernels, or `None` if no kernel moves the bytes of `t`.
pub(crate) fn mover(t: &Datatype) -> Option<Box<dyn Mover>> {
    match select("test", &ddtc::commit(t).unwrap()) {
        Ok(Selection::Kernels(mover)) => Some(mover),
        Ok(Selection::Nothing | Selection::Run { .. }) | Err(_) => None,
    }
}

/// Returns the displacement of every packed byte of `count` instances, from the type map.
pub(crate) fn displacements(t: &Datatype, count: u64) -> Vec<i64> {
    TypeMap::instances(t, count)
        .flat_map(|(named, at)| (0..named.size()).map(move |byte| at + byte))
        .collect()
}

/// Arguments of one call that packs or unpacks: the layout, the displacements of its packed bytes,
/// the addresses of both sides, and the range of packed bytes that is moved.
pub(crate) struct Call<'s> {
    pub(crate) mover: &'s dyn Mover,
    pub(crate) places: &'s [i64],
    pub(crate) user: u64,
    pub(crate) packed: u64,
    pub(crate) range: Range<u64>,
}

impl Call<'_> {
    pub(crate) fn addresses(&self) -> Addresses {
        Addresses { user: self.user, packed: self.packed, table: TABLE }
    }

    pub(crate) fn variant(&self) -> usize {
        self.mover.variant(&self.addresses(), &self.range)
    }

    /// Returns the kernel that makes the call in the direction `direction`.
    pub(crate) fn kernel(&self, direction: Direction) -> Kernel {
        self.mover.kernel(self.variant(), direction)
    }

    /// Returns user memory that consists of the mapped bytes of the instances. The mapped byte that
    /// belongs to packed byte `i` gets the value `value(i)`.
    fn user_memory(&self, value: impl Fn(u64) -> u8) -> Memory {
        let mut bytes = BTreeMap::new();
        for (i, &at) in self.places.iter().enumerate() {
            bytes.insert(self.user.wrapping_add(at as u64), value(i as u64));
        }
        let (mut memory, mut run, mut start) = (Memory::default(), Vec::new(), 0);
        for (&at, &byte) in &bytes {
            if !run.is_empty() && at != start + run.len() as u64 {
                memory.add(start, std::mem::take(&mut run));
            }
            if run.is_empty() {
                start = at;
            }
            run.push(byte);
        }
        memory.add(start, run);
        memory
    }

    /// Moves the bytes of the call with the kernel whose PTX text is `text`, or with the kernel
    /// that ddtc prints if `text` is `None`. Then compares user memory, the packed bytes and the
    /// table with what they should contain. Returns a message if the interpreter refuses the kernel
    /// or if a byte is wrong.
    pub(crate) fn check(&self, direction: Direction, text: Option<&str>) -> Result<(), String> {
        let printed = self.kernel(direction).text;
        let module = Module::parse(text.unwrap_or(&printed))?;
        let len = self.range.end - self.range.start;
        // One byte of user memory may belong to several packed bytes. So the value of a byte
        // depends on its place in user memory, not on its position in the packed stream.
        let place = |i: u64| pattern(self.places[i as usize] as u64 ^ 0x5555);
        let packed: Vec<u8> = match direction {
            Direction::Pack => vec![POISON; len as usize],
            Direction::Unpack => (0..len).map(pattern).collect(),
        };
        let mut memory = match direction {
            Direction::Pack => self.user_memory(place),
            Direction::Unpack => self.user_memory(|_| POISON),
        };
        memory.add(self.packed, packed);
        let table: Vec<u8> = self.mover.table().iter().flat_map(|entry| entry.to_le_bytes()).collect();
        if !table.is_empty() {
            memory.add(TABLE, table.clone());
        }
        for launch in launches(self.mover, self.variant(), self.addresses(), self.range.clone()) {
            let sizes = module.parameters();
            let values = launch.parameters.values();
            assert_eq!(values.len(), sizes.len(), "one value for each parameter");
            let bytes = values.iter().zip(sizes).map(|(v, &size)| v.to_le_bytes()[..size as usize].to_vec());
            module.run(&mut memory, launch.blocks, THREADS, &bytes.collect::<Vec<_>>())?;
        }
        if !table.is_empty() && memory.bytes(TABLE, table.len() as u64)? != table {
            return Err("the table has changed".to_owned());
        }
        for i in 0..self.places.len() as u64 {
            let at = self.user.wrapping_add(self.places[i as usize] as u64);
            let inside = self.range.contains(&i);
            let user = memory.bytes(at, 1)?[0];
            let expected = match (direction, inside) {
                (Direction::Pack, _) => place(i),
                (Direction::Unpack, true) => pattern(i - self.range.start),
                (Direction::Unpack, false) => POISON,
            };
            if user != expected {
                return Err(format!("byte {i} is {user:#x} in user memory, not {expected:#x}"));
            }
            if inside && direction == Direction::Pack {
                let byte = memory.bytes(self.packed + (i - self.range.start), 1)?[0];
                if byte != expected {
                    return Err(format!("packed byte {i} is {byte:#x}, not {expected:#x}"));
                }
            }
        }
        Ok(())
    }
}

/// Returns the datatype with the text `text`.
pub(crate) fn parse(text: &str) -> Datatype {
    text.parse().unwrap()
}
