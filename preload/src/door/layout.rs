//! Where Open MPI 4.1 and 5.0 keep what is read and written of a convertor and of a type, on 64-bit machines without debugging.
//!
//! Facts that [`super::proof`] measures in every process before anything relies on them.

use std::ffi::c_void;

/// Offsets in bytes, of words of a convertor but for the last one.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Kind and state of the convertor: 32 bits.
    pub(crate) flags: u32,
    /// Packed bytes of all instances.
    pub(crate) size: u32,
    /// The type.
    pub(crate) datatype: u32,
    /// The description of the type that is used.
    pub(crate) description: u32,
    /// Instances.
    pub(crate) count: u32,
    /// The program's buffer.
    pub(crate) buffer: u32,
    /// The function that moves bytes.
    pub(crate) mover: u32,
    /// Packed bytes that are moved.
    pub(crate) moved: u32,
    /// In a type: the description that is used where nothing is converted.
    pub(crate) optimized: u32,
}

/// Fields of a layout.
pub(crate) const FIELDS: usize = 9;

/// That of 4.1 and 5.0.
pub(crate) const LAYOUT: Layout = Layout {
    flags: 0x14,
    size: 0x18,
    datatype: 0x28,
    description: 0x30,
    count: 0x38,
    buffer: 0x48,
    mover: 0x58,
    moved: 0x78,
    optimized: 168,
};

/// Bytes of a convertor in which all of these lie.
pub(crate) const WITHIN: u32 = 0x100;
/// Bytes of a type within which all that is read lies.
pub(crate) const TYPE_WITHIN: u32 = 320;

/// Bits of the flags: the lower half is the type's.
pub(crate) const OF_TYPE: u32 = 0xffff;
pub(crate) const RECEIVES: u32 = 0x0002_0000;
pub(crate) const SENDS: u32 = 0x0004_0000;
/// Both ends represent data alike.
pub(crate) const HOMOGENEOUS: u32 = 0x0008_0000;
/// Contiguous: the mover is not called.
pub(crate) const PLAIN: u32 = 0x0010_0000;
pub(crate) const COMPLETED: u32 = 0x0800_0000;
/// The size at the other end is known.
pub(crate) const SIZED: u32 = 0x2000_0000;

/// The upper half of the flags of a fresh convertor that the generic mover serves, and no other: host memory, no checksum, nothing converted.
pub(crate) const fn fresh(sends: bool) -> u32 {
    HOMOGENEOUS | SIZED | if sends { SENDS } else { RECEIVES }
}

/// A convertor of the host.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Convertor(pub(crate) *mut c_void);

impl Convertor {
    /// A word of it.
    ///
    /// # Safety
    /// It must be a convertor of the host, and the offset within its memory.
    #[inline]
    pub(crate) unsafe fn word(self, offset: u32) -> u64 {
        // SAFETY: as the caller promises.
        unsafe { self.0.byte_add(offset as usize).cast::<u64>().read_unaligned() }
    }

    /// # Safety
    /// As [`Convertor::word`]; nobody else uses the convertor now.
    #[inline]
    pub(crate) unsafe fn put(self, offset: u32, word: u64) {
        // SAFETY: as the caller promises.
        unsafe { self.0.byte_add(offset as usize).cast::<u64>().write_unaligned(word) }
    }

    /// # Safety
    /// As [`Convertor::word`].
    #[inline]
    pub(crate) unsafe fn flags(self, layout: &Layout) -> u32 {
        // SAFETY: as the caller promises.
        unsafe { self.0.byte_add(layout.flags as usize).cast::<u32>().read_unaligned() }
    }

    /// # Safety
    /// As [`Convertor::put`].
    #[inline]
    pub(crate) unsafe fn add_flags(self, layout: &Layout, flags: u32) {
        // SAFETY: as the caller promises.
        unsafe {
            self.set_flags(layout, self.flags(layout) | flags);
        }
    }

    /// # Safety
    /// As [`Convertor::put`].
    pub(crate) unsafe fn remove_flags(self, layout: &Layout, flags: u32) {
        // SAFETY: as the caller promises.
        unsafe {
            self.set_flags(layout, self.flags(layout) & !flags);
        }
    }

    #[inline]
    unsafe fn set_flags(self, layout: &Layout, flags: u32) {
        // SAFETY: as the callers promise.
        unsafe { self.0.byte_add(layout.flags as usize).cast::<u32>().write_unaligned(flags) }
    }
}
