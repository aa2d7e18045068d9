//! Where Open MPI keeps what is read and written of a convertor and of a type, on 64-bit machines without debugging.
//!
//! Facts that [`super::proof`] measures in every process before anything relies on them.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Offsets in bytes, of words of a convertor but for the last one, and bits of its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Kind and state of the convertor: 32 bits.
    pub(crate) flags: u32,
    /// Packed bytes of all instances.
    pub(crate) size: u32,
    /// Those at the other end.
    pub(crate) size_there: u32,
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
    /// The function that places it; 0: convertors have none, and all are placed by one that is exported.
    pub(crate) placer: u32,
    /// Packed bytes that are moved.
    pub(crate) moved: u32,
    /// In a type: the description that is used where nothing is converted.
    pub(crate) optimized: u32,
    /// Bits of the flags.
    pub(crate) bits: Bits,
    /// The names of the generic movers, which may be hidden.
    pub(crate) generic: [&'static str; 2],
}

/// Bits of the flags, whose lower half is the type's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bits {
    pub(crate) receives: u32,
    pub(crate) sends: u32,
    /// Both ends represent data alike.
    pub(crate) homogeneous: u32,
    /// `CONVERTOR_NO_OP`: one contiguous piece, for which the library calls no mover.
    pub(crate) plain: u32,
    pub(crate) completed: u32,
    /// The size at the other end is known.
    pub(crate) sized: u32,
}

/// Offsets of a layout.
#[cfg(debug_assertions)]
pub(crate) const OFFSETS: usize = 11;

/// That of 4.1 and 5.0.
const BEFORE_6: Layout = Layout {
    flags: 0x14,
    size: 0x18,
    size_there: 0x20,
    datatype: 0x28,
    description: 0x30,
    count: 0x38,
    buffer: 0x48,
    mover: 0x58,
    placer: 0,
    moved: 0x78,
    optimized: 168,
    bits: Bits {
        receives: 0x0002_0000,
        sends: 0x0004_0000,
        homogeneous: 0x0008_0000,
        plain: 0x0010_0000,
        completed: 0x0800_0000,
        sized: 0x2000_0000,
    },
    generic: ["opal_generic_simple_pack", "opal_generic_simple_unpack"],
};

/// That of 6.0, by its header: nobody has run one yet.
const SINCE_6: Layout = Layout {
    flags: 0x70,
    size: 0x50,
    size_there: 0x28,
    datatype: 0x10,
    description: 0x18,
    count: 0x20,
    buffer: 0x58,
    mover: 0x38,
    placer: 0x88,
    moved: 0x40,
    optimized: 168,
    bits: Bits {
        receives: 0x0040_0000,
        sends: 0x0080_0000,
        homogeneous: 0x0100_0000,
        plain: 0x0200_0000,
        completed: 0x0400_0000,
        sized: 0x0800_0000,
    },
    generic: ["opal_generic_inlined_pack", "opal_generic_inlined_unpack"],
};

static LAYOUTS: [Layout; 2] = [BEFORE_6, SINCE_6];
/// Which of them this process has.
static HERE: AtomicUsize = AtomicUsize::new(0);

/// Returns the layout of this process: what it is taken for before the proof, what it is behind an open door.
#[inline]
pub(crate) fn layout() -> &'static Layout {
    let [before_6, since_6] = &LAYOUTS;
    if HERE.load(Ordering::Relaxed) == 0 { before_6 } else { since_6 }
}

/// Takes this process for one of a version; false: the layout of that is not known.
pub(crate) fn take_for(version: [u32; 3]) -> bool {
    let here = match version {
        [4, 1, _] | [5, 0, _] => 0,
        [6, _, _] => 1,
        _ => return false,
    };
    HERE.store(here, Ordering::Relaxed);
    true
}

/// Bytes of a convertor in which all of these lie.
pub(crate) const WITHIN: u32 = 0x100;
/// Bytes of a type within which all that is read lies.
pub(crate) const TYPE_WITHIN: u32 = 320;

/// Bits of the flags that are the type's.
pub(crate) const OF_TYPE: u32 = 0xffff;
/// `OPAL_DATATYPE_FLAG_NO_GAPS`, one of the type's bits in all releases: contiguous, with an extent
/// that is the size. Open MPI also sets it in a convertor of no bytes and in one that was cleaned up.
pub(crate) const NO_GAPS: u32 = 0x20;

impl Layout {
    /// Instances of a copy as the host means them: half a register before 6.0, whatever the other half holds.
    pub(crate) const fn instances(&self, count: usize) -> i64 {
        if self.placer == 0 { count as i32 as i64 } else { count as i64 }
    }

    /// The upper half of the flags of a fresh convertor that the generic mover serves, and no other: host memory, no checksum, nothing converted.
    #[inline]
    pub(crate) const fn fresh(&self, sends: bool) -> u32 {
        let bits = &self.bits;
        bits.homogeneous | bits.sized | if sends { bits.sends } else { bits.receives }
    }

    /// Returns the flags of which a convertor has at least one if its last preparation stored no
    /// mover, or if it was cleaned up since. Its word for the mover is then of an earlier request.
    #[inline]
    pub(crate) const fn without_mover(&self) -> u32 {
        self.bits.plain | NO_GAPS
    }

    /// One of other offsets, in the order of the fields.
    #[cfg(debug_assertions)]
    pub(crate) const fn planted(offsets: [u32; OFFSETS]) -> Layout {
        let [flags, size, size_there, datatype, description, count, buffer, mover, placer, moved, optimized] =
            offsets;
        let Layout { bits, generic, .. } = if placer == 0 { BEFORE_6 } else { SINCE_6 };
        Layout {
            flags,
            size,
            size_there,
            datatype,
            description,
            count,
            buffer,
            mover,
            placer,
            moved,
            optimized,
            bits,
            generic,
        }
    }
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

    /// # Safety
    /// As [`Convertor::put`].
    #[inline]
    unsafe fn set_flags(self, layout: &Layout, flags: u32) {
        // SAFETY: as the caller promises.
        unsafe { self.0.byte_add(layout.flags as usize).cast::<u32>().write_unaligned(flags) }
    }
}
