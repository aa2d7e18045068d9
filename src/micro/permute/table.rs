//! Data of the code that moves instances by permutations: the C signature of this code, what it
//! permutes, and the table that it reads.

use std::fmt;

/// C signature of the functions that move instances by a permutation, with the parameters `(user,
/// packed, n, user_stride, table)`. Instance `i` of the `n` instances lies at `user + i *
/// user_stride` in user memory and, without gaps, at `packed + i * size` in the packed stream.
/// `table` is [`super::Permutation::as_ptr`] of a permutation that is made for this stride.
pub type Function = unsafe extern "C" fn(*mut u8, *mut u8, u64, i64, *const u64);

/// Unit of data that the code of a permutation moves: bytes or words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Granule {
    /// Bytes, permuted by `vpermb` or `tbl`.
    Byte = 0,
    /// Words of 4 bytes, permuted by `vpermd`.
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

/// Table that the code of a permutation reads. Lanes are the bytes or words that are permuted;
/// masks have one bit per lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(in crate::micro) struct Table {
    /// For every lane (byte or word) of the packed side, the lane of the user's vector from which
    /// it comes.
    pub(in crate::micro) pack: [u8; 64],
    /// For every lane (byte or word) of the user's vector, the lane of the packed side from which
    /// it comes.
    pub(in crate::micro) unpack: [u8; 64],
    /// Second step of packing, after words have been moved to their places: byte `i` of the packed
    /// side is taken from the byte with the index `pack_within[i]` of the 16 aligned bytes in which
    /// byte `i` lies. This table is used if words are permuted and the bytes of units are reversed.
    pub(in crate::micro) pack_within: [u8; 64],
    /// Second step of unpacking, after words have been moved to their places: byte `i` of the
    /// user's vector is taken from the byte with the index `unpack_within[i]` of the 16 aligned
    /// bytes in which byte `i` lies. This table is used if words are permuted and the bytes of
    /// units are reversed.
    pub(in crate::micro) unpack_within: [u8; 64],
    /// Mask of the lanes of a full vector of the user's buffer that belong to an instance, and not
    /// to a gap.
    pub(in crate::micro) mapped: u64,
    /// Number of instances in a full vector.
    pub(in crate::micro) instances: u64,
    /// Number of packed bytes of an instance.
    pub(in crate::micro) size: u64,
    /// Distance in bytes from the address of an instance to its lowest byte that is moved.
    pub(in crate::micro) lowest: i64,
    /// Number of bytes from the lowest byte of an instance that is moved to the end of the highest
    /// one.
    pub(in crate::micro) span: u64,
}
