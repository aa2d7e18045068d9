//! Test harness for kernels. It runs the kernel of a transfer in the interpreter of PTX, on sparse
//! memory, and compares the moved bytes with MPI's type map.
//!
//! The memory of a test case has three groups of bytes: the bytes of user memory to which the
//! datatype refers, the packed bytes of the range that is moved, and the table of the layout, if it
//! has one. There is no other memory. So the interpreter refuses a kernel that accesses a gap in
//! user memory, a packed byte before or after the range, or memory before or after the table.

#[allow(dead_code, reason = "the stand-in uses the rest")]
#[path = "../interpreter/mod.rs"]
pub(crate) mod interpreter;

use std::collections::BTreeMap;
use std::ops::Range;

use ddtc::internal::datatype::{Datatype, TypeMap};
use ddtc::internal::kind::Direction;
use ddtc_gpu::kernel::{Addresses, Kernel, Mover, THREADS, launches};
use ddtc_gpu::selection::{Selection, select};

use interpreter::{Memory, Module};

/// Value with which the destination is filled before a kernel writes to it.
const POISON: u8 = 0xa5;

/// Base addresses of the three groups of bytes: the user's buffer, the packed bytes, and the table
/// of the layout. A test case may add a small offset to one of the first two, to test another
/// alignment.
pub(crate) const USER: u64 = 1 << 40;
pub(crate) const PACKED: u64 = 0x7000_0000_0000;
const TABLE: u64 = 0x6000_0000_0000;

fn pattern(i: u64) -> u8 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Returns the layout of the datatype `t` if a kernel moves the bytes of `t`, and `None` otherwise.
pub(crate) fn mover(t: &Datatype) -> Option<Box<dyn Mover>> {
    match select("test", &ddtc::commit(t).unwrap()) {
        Ok(Selection::Kernels(mover)) => Some(mover),
        Ok(Selection::Nothing | Selection::Run { .. }) | Err(_) => None,
    }
}

/// Returns, for every packed byte of `count` instances, the displacement of this byte in user
/// memory according to the type map.
pub(crate) fn displacements(t: &Datatype, count: u64) -> Vec<i64> {
    TypeMap::instances(t, count)
        .flat_map(|(named, at)| (0..named.size()).map(move |byte| at + byte))
        .collect()
}

/// Arguments of a transfer: the layout, the displacements in user memory of its packed bytes, the
/// addresses of the user's buffer and of the packed bytes, and the range of packed bytes that is
/// moved.
pub(crate) struct Call<'s> {
    pub(crate) mover: &'s dyn Mover,
    /// Displacements in user memory of consecutive packed bytes, which include all bytes of
    /// `range`. In the interpreter, user memory consists only of the bytes at these displacements.
    /// So the interpreter finds an access to any other byte of user memory.
    pub(crate) places: &'s [i64],
    /// Position in the packed stream of the first byte of `places`.
    pub(crate) from: u64,
    pub(crate) user: u64,
    pub(crate) packed: u64,
    pub(crate) range: Range<u64>,
}

impl<'s> Call<'s> {
    /// Returns the call that moves the packed bytes `range`. The sequence `places` must begin with
    /// the first byte of the packed stream. The first byte of the layout lies at the address
    /// [`USER`], and the first packed byte of the range at [`PACKED`].
    pub(crate) fn whole(mover: &'s dyn Mover, places: &'s [i64], range: Range<u64>) -> Call<'s> {
        let user = USER.wrapping_sub(mover.loops().start() as u64);
        Call { mover, places, from: 0, user, packed: PACKED, range }
    }

    pub(crate) fn addresses(&self) -> Addresses {
        Addresses { user: self.user, packed: self.packed, table: TABLE }
    }

    pub(crate) fn variant(&self) -> usize {
        self.mover.variant(&self.addresses(), &self.range)
    }

    /// Returns the kernel that ddtc would launch for this transfer in the direction `direction`.
    pub(crate) fn kernel(&self, direction: Direction) -> Kernel {
        self.mover.kernel(self.variant(), direction)
    }

    /// Returns sparse memory that consists only of the bytes of user memory at the displacements in
    /// `places`. The byte that belongs to entry `i` of `places` has the value `value(i)`.
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

    /// Runs the transfer in the interpreter, and compares user memory, the packed bytes and the
    /// table with the expected contents. `text` is the PTX text of the kernel that is run. If it is
    /// `None`, the kernel that ddtc prints is run. Returns a message if the interpreter refuses the
    /// kernel or if a byte is wrong.
    pub(crate) fn check(&self, direction: Direction, text: Option<&str>) -> Result<(), String> {
        let printed = self.kernel(direction).text;
        let module = Module::parse(text.unwrap_or(&printed))?;
        let len = self.range.end - self.range.start;
        // Test pattern of user memory when packing. The value of a byte is computed from its
        // displacement in user memory, not from its position in the packed stream, because one byte
        // of user memory may belong to several packed bytes.
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
            let position = self.from + i;
            let inside = self.range.contains(&position);
            let user = memory.bytes(at, 1)?[0];
            let expected = match (direction, inside) {
                (Direction::Pack, _) => place(i),
                (Direction::Unpack, true) => pattern(position - self.range.start),
                (Direction::Unpack, false) => POISON,
            };
            if user != expected {
                return Err(format!("byte {position} is {user:#x} in user memory, not {expected:#x}"));
            }
            if inside && direction == Direction::Pack {
                let byte = memory.bytes(self.packed + (position - self.range.start), 1)?[0];
                if byte != expected {
                    return Err(format!("packed byte {position} is {byte:#x}, not {expected:#x}"));
                }
            }
        }
        Ok(())
    }
}

/// Parses the description `text` of a datatype.
pub(crate) fn parse(text: &str) -> Datatype {
    text.parse().unwrap()
}
