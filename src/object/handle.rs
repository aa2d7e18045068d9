//! Handles: 64 bits that name an object. The handle of a named datatype has the value that the
//! standard ABI of MPI 5.0 defines for it, if the ABI defines one.
//!
//! The predefined handles of the ABI are below 4096. A handle of any other object has a tag for the
//! kind of object in its top byte, followed by a generation and a slot. On x86-64 such a value is
//! not a canonical address, so a program that uses it as a pointer faults at once.

use std::fmt;

use crate::datatype::Named;

/// Tag of datatypes.
pub(crate) const DATATYPE_TAG: u8 = 0xd1;
/// First handle after those that the ABI reserves for predefined objects. It is also the first
/// Fortran INTEGER of a derived type.
pub(crate) const FIRST_DERIVED: u64 = 4096;

/// Name of an object. A handle is plain bits: only the table of the object's kind knows whether an
/// object of that name is live.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(u64);

impl Handle {
    /// `MPI_DATATYPE_NULL`.
    pub const NULL: Handle = Handle(0x200);
    /// The handle whose bits are all zero, as those of a null pointer. It names no object.
    pub const ZERO: Handle = Handle(0);

    /// Returns the handle with these bits.
    #[inline]
    pub fn from_bits(bits: u64) -> Handle {
        Handle(bits)
    }

    /// Returns the bits of the handle.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Returns the handle of slot `index`, in a table of kind `tag`, during the life `generation`
    /// of the slot. Only the lower 24 bits of the generation are used.
    pub(crate) fn derived(tag: u8, generation: u32, index: u32) -> Handle {
        Handle(u64::from(tag) << 56 | u64::from(generation & 0xff_ffff) << 32 | u64::from(index))
    }

    pub(crate) fn tag(self) -> u8 {
        (self.0 >> 56) as u8
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32 & 0xff_ffff
    }

    #[inline]
    pub(crate) fn index(self) -> u32 {
        self.0 as u32
    }

    /// Returns the handle of a named type. It is the value of the ABI, except for `MPI_LB` and
    /// `MPI_UB`, which the ABI does not have.
    pub fn of_named(named: Named) -> Handle {
        Handle(u64::from(VALUES[named as usize]))
    }

    /// Returns the named type whose handle this is, or none.
    #[inline]
    pub fn named(self) -> Option<Named> {
        match self.0 {
            0x200..0x300 => BY_VALUE[(self.0 - 0x200) as usize],
            LB => Some(Named::Lb),
            UB => Some(Named::Ub),
            _ => None,
        }
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.named() {
            Some(named) => f.write_str(named.mpi_name()),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Handles of `MPI_LB` and `MPI_UB`, which the ABI does not have. They are larger than the ABI's
/// handles, which have ten bits, and smaller than [`FIRST_DERIVED`].
const LB: u64 = 0xf00;
const UB: u64 = 0xf01;

/// Returns the handle of a named type, from the values of predefined handles in appendix A of MPI
/// 5.0.
const fn value(named: Named) -> u16 {
    match named {
        Named::Aint => 0x201,
        Named::Count => 0x202,
        Named::Offset => 0x203,
        Named::Packed => 0x207,
        Named::Short => 0x208,
        Named::Int => 0x209,
        Named::Long => 0x20a,
        Named::LongLong => 0x20b,
        Named::UnsignedShort => 0x20c,
        Named::Unsigned => 0x20d,
        Named::UnsignedLong => 0x20e,
        Named::UnsignedLongLong => 0x20f,
        Named::Float => 0x210,
        Named::CFloatComplex => 0x212,
        Named::CxxFloatComplex => 0x213,
        Named::Double => 0x214,
        Named::CDoubleComplex => 0x216,
        Named::CxxDoubleComplex => 0x217,
        Named::Logical => 0x218,
        Named::Integer => 0x219,
        Named::Real => 0x21a,
        Named::Complex => 0x21b,
        Named::DoublePrecision => 0x21c,
        Named::DoubleComplex => 0x21d,
        Named::Character => 0x21e,
        Named::LongDouble => 0x220,
        Named::CLongDoubleComplex => 0x224,
        Named::CxxLongDoubleComplex => 0x225,
        Named::FloatInt => 0x228,
        Named::DoubleInt => 0x229,
        Named::LongInt => 0x22a,
        Named::TwoInt => 0x22b,
        Named::ShortInt => 0x22c,
        Named::LongDoubleInt => 0x22d,
        Named::TwoReal => 0x230,
        Named::TwoDoublePrecision => 0x231,
        Named::TwoInteger => 0x232,
        Named::CBool => 0x238,
        Named::CxxBool => 0x239,
        Named::Wchar => 0x23c,
        Named::Int8 => 0x240,
        Named::Uint8 => 0x241,
        Named::Char => 0x243,
        Named::SignedChar => 0x244,
        Named::UnsignedChar => 0x245,
        Named::Byte => 0x247,
        Named::Int16 => 0x248,
        Named::Uint16 => 0x249,
        Named::Int32 => 0x250,
        Named::Uint32 => 0x251,
        Named::Int64 => 0x258,
        Named::Uint64 => 0x259,
        Named::Logical1 => 0x2c0,
        Named::Integer1 => 0x2c1,
        Named::Logical2 => 0x2c8,
        Named::Integer2 => 0x2c9,
        Named::Real2 => 0x2ca,
        Named::Logical4 => 0x2d0,
        Named::Integer4 => 0x2d1,
        Named::Real4 => 0x2d2,
        Named::Complex4 => 0x2d3,
        Named::Logical8 => 0x2d8,
        Named::Integer8 => 0x2d9,
        Named::Real8 => 0x2da,
        Named::Complex8 => 0x2db,
        Named::Logical16 => 0x2e0,
        Named::Integer16 => 0x2e1,
        Named::Real16 => 0x2e2,
        Named::Complex16 => 0x2e3,
        Named::Complex32 => 0x2eb,
        Named::Lb => LB as u16,
        Named::Ub => UB as u16,
    }
}

static VALUES: [u16; Named::ALL.len()] = {
    let mut values = [0; Named::ALL.len()];
    let mut i = 0;
    while i < values.len() {
        values[i] = value(Named::ALL[i]);
        i += 1;
    }
    values
};

static BY_VALUE: [Option<Named>; 256] = {
    let mut table = [None; 256];
    let mut i = 0;
    while i < Named::ALL.len() {
        let v = value(Named::ALL[i]) as usize;
        if v < 0x300 {
            table[v - 0x200] = Some(Named::ALL[i]);
        }
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_name_their_types() {
        for &named in Named::ALL {
            let handle = Handle::of_named(named);
            assert_eq!(handle.named(), Some(named));
            assert!(handle.bits() < FIRST_DERIVED && handle != Handle::NULL);
        }
        assert_eq!(Handle::NULL.named(), None);
        assert_eq!(Handle::of_named(Named::Int).bits(), 0x209);
        let h = Handle::derived(DATATYPE_TAG, 0x12_3456, 77);
        assert_eq!((h.tag(), h.generation(), h.index(), h.named()), (DATATYPE_TAG, 0x12_3456, 77, None));
    }
}
