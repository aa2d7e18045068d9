//! Sparse global memory. It consists of regions of bytes at arbitrary addresses. There is no memory
//! between the regions.

use std::collections::{BTreeMap, HashMap};

/// Sparse global memory. For each byte that the running grid has written, it also has the number of
/// the thread that wrote the byte.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    regions: BTreeMap<u64, Vec<u8>>,
    writers: HashMap<u64, u64>,
}

impl Memory {
    /// Adds a region, which must not overlap another region. An access must lie within a single
    /// region. So bytes that one access may touch together must be added as one region, not as
    /// adjacent regions.
    pub(crate) fn add(&mut self, address: u64, bytes: Vec<u8>) {
        let end = address + bytes.len() as u64;
        let clash =
            self.regions.range(..end).next_back().is_some_and(|(at, old)| at + old.len() as u64 > address);
        assert!(!clash && !bytes.is_empty(), "regions must be disjoint and have bytes");
        self.regions.insert(address, bytes);
    }

    /// Removes the region that begins at the address `address`.
    pub(crate) fn remove(&mut self, address: u64) {
        self.regions.remove(&address);
    }

    /// Returns the first address and the length of the region that contains the byte at the address
    /// `address`. Returns `None` if no region contains this byte.
    pub(crate) fn region(&self, address: u64) -> Option<(u64, u64)> {
        let (&at, bytes) = self.regions.range(..=address).next_back()?;
        (address - at < bytes.len() as u64).then_some((at, bytes.len() as u64))
    }

    /// Returns the `len` bytes at the address `address`. Returns a message if they do not lie in
    /// one region.
    pub(crate) fn bytes(&self, address: u64, len: u64) -> Result<&[u8], String> {
        let missing = || format!("{len} bytes at {address:#x} lie in no region");
        let (at, size) = self.region(address).ok_or_else(missing)?;
        let from = address - at;
        if len > size - from {
            return Err(missing());
        }
        Ok(&self.regions[&at][from as usize..(from + len) as usize])
    }

    /// Returns the `len` bytes at the address `address`, so that the caller can write them. Returns
    /// a message if they do not lie in one region.
    pub(crate) fn bytes_mut(&mut self, address: u64, len: u64) -> Result<&mut [u8], String> {
        self.bytes(address, len)?;
        let (at, _) = self.region(address).expect("the range was found");
        let from = (address - at) as usize;
        Ok(&mut self.regions.get_mut(&at).expect("a region")[from..from + len as usize])
    }

    /// Forgets which thread wrote which byte. The interpreter calls this function before it runs a
    /// grid.
    pub(super) fn begin(&mut self) {
        self.writers.clear();
    }

    pub(super) fn load(&self, address: u64, width: u64) -> Result<u64, String> {
        let mut value = [0; 8];
        value[..width as usize].copy_from_slice(self.bytes(address, width)?);
        Ok(u64::from_le_bytes(value))
    }

    /// Loads a value as `ld.global.nc` does, through the cache for read-only data. Returns an error
    /// if a thread of the running grid has written one of its bytes.
    pub(super) fn load_constant(&self, address: u64, width: u64) -> Result<u64, String> {
        if (address..address + width).any(|byte| self.writers.contains_key(&byte)) {
            return Err(format!("the constant at {address:#x} was written"));
        }
        self.load(address, width)
    }

    pub(super) fn store(&mut self, address: u64, width: u64, value: u64, thread: u64) -> Result<(), String> {
        self.bytes_mut(address, width)?.copy_from_slice(&value.to_le_bytes()[..width as usize]);
        for byte in address..address + width {
            if let Some(other) = self.writers.insert(byte, thread).filter(|other| *other != thread) {
                return Err(format!("threads {other} and {thread} write the byte at {byte:#x}"));
            }
        }
        Ok(())
    }
}
