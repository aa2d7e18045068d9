//! Vectors of values: what an instruction set needs of an operation in order to combine several
//! short blocks at once.

/// An operation on vectors of values. Only instruction sets with registers of 64 bytes use it.
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code))]
pub(in crate::micro) trait Vector {
    /// Number of bytes of a value: 4 or 8.
    const SIZE: usize;

    /// Returns the combinations of all values of one vector with those of the other.
    fn combine(new: [u8; 64], old: [u8; 64]) -> [u8; 64];
}
