//! Data of the code of permutations: their C signature, what they permute, and the table that they read.

use std::fmt;

/// `(user, packed, n, user_stride, table)`: instance `i` of `n` lies at `user + i * user_stride` and at `packed + i * size`,
/// dense. `table` is [`super::Permutation::as_ptr`] of a permutation made for this stride.
pub type Function = unsafe extern "C" fn(*mut u8, *mut u8, u64, i64, *const u64);

/// Unit that a permutation's code permutes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Granule {
    /// Bytes, by `vpermb` or `tbl`.
    Byte = 0,
    /// Words of 4 bytes, by `vpermd`.
    Word = 1,
}

impl fmt::Display for Granule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Granule::Byte => "byte",
            Granule::Word => "word",
        })
    }
}

/// Table that the code reads. Lanes are bytes or words; masks have one bit per lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(in crate::micro) struct Table {
    /// For every lane of the packed side the lane of the user's vector that it comes from.
    pub(in crate::micro) pack: [u8; 64],
    /// For every lane of the user's vector the lane of the packed side that it comes from.
    pub(in crate::micro) unpack: [u8; 64],
    /// For every byte of the packed side, once its word is there, the place in the 16 bytes around it that it comes from: for words with units.
    pub(in crate::micro) pack_within: [u8; 64],
    /// Lanes inside the user's vector.
    pub(in crate::micro) unpack_within: [u8; 64],
    /// Lanes of the user's vector that are mapped when it is full.
    pub(in crate::micro) mapped: u64,
    /// Instances in a full vector.
    pub(in crate::micro) instances: u64,
    /// Packed bytes of an instance.
    pub(in crate::micro) size: u64,
    /// Bytes from the instance's address to its lowest mapped byte.
    pub(in crate::micro) lowest: i64,
    /// Bytes from the lowest to the end of the highest mapped byte of an instance.
    pub(in crate::micro) span: u64,
}
