//! Vectors of values: what an instruction set asks of an operation to combine several short blocks at once.

/// Combines vectors of values. Only instruction sets with registers of 64 bytes ask.
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code))]
pub(in crate::micro) trait Vector {
    /// Bytes of a value: 4 or 8.
    const SIZE: usize;

    /// Every value of one vector with that of the other.
    fn combine(new: [u8; 64], old: [u8; 64]) -> [u8; 64];
}
