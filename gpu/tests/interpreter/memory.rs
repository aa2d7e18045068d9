//! Sparse memory: regions of bytes at any address. Nothing between them exists.

use std::collections::{BTreeMap, HashMap};

/// Regions of bytes, and for each byte the thread of the running grid that wrote it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    regions: BTreeMap<u64, Vec<u8>>,
    writers: HashMap<u64, u64>,
}

impl Memory {
    /// Adds a region, which must not overlap another one. An access must lie within one region, so
    /// memory that is accessed as a whole must not be added as two regions that touch.
    pub(crate) fn add(&mut self, address: u64, bytes: Vec<u8>) {
        let end = address + bytes.len() as u64;
        let clash =
            self.regions.range(..end).next_back().is_some_and(|(at, old)| at + old.len() as u64 > address);
        assert!(!clash && !bytes.is_empty(), "regions must be disjoint and have bytes");
        self.regions.insert(address, bytes);
    }

    /// Removes the region that begins at `address`.
    pub(crate) fn remove(&mut self, address: u64) {
        self.regions.remove(&address);
    }

    /// Returns the first address and the length of the region that has the byte at `address`.
    pub(crate) fn region(&self, address: u64) -> Option<(u64, u64)> {
        let (&at, bytes) = self.regions.range(..=address).next_back()?;
        (address - at < bytes.len() as u64).then_some((at, bytes.len() as u64))
    }

    /// Returns the bytes of a range.
    pub(crate) fn bytes(&self, address: u64, len: u64) -> Result<&[u8], String> {
        let missing = || format!("{len} bytes at {address:#x} lie in no region");
        let (at, size) = self.region(address).ok_or_else(missing)?;
        let from = address - at;
        if len > size - from {
            return Err(missing());
        }
        Ok(&self.regions[&at][from as usize..(from + len) as usize])
    }

    /// Returns the bytes of a range for writing.
    pub(crate) fn bytes_mut(&mut self, address: u64, len: u64) -> Result<&mut [u8], String> {
        self.bytes(address, len)?;
        let (at, _) = self.region(address).expect("the range was found");
        let from = (address - at) as usize;
        Ok(&mut self.regions.get_mut(&at).expect("a region")[from..from + len as usize])
    }

    /// Forgets which thread wrote which byte, because another grid begins.
    pub(super) fn begin(&mut self) {
        self.writers.clear();
    }

    pub(super) fn load(&self, address: u64, width: u64) -> Result<u64, String> {
        let mut value = [0; 8];
        value[..width as usize].copy_from_slice(self.bytes(address, width)?);
        Ok(u64::from_le_bytes(value))
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
