//! Operations on vectors of values, which an instruction set needs in order to combine the values
//! of several short blocks at once.

/// Operation of a reduction on whole vectors of values. Only instruction sets with registers of 64
/// bytes use this trait.
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code))]
pub(in crate::micro) trait Vector {
    /// Number of bytes of a value: 4 or 8.
    const SIZE: usize;

    /// Returns the vector of the combinations of each value of `new` with the value at the same
    /// place of `old`.
    fn combine(new: [u8; 64], old: [u8; 64]) -> [u8; 64];
}
