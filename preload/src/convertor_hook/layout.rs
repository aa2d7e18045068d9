//! Offsets at which Open MPI keeps the fields of a convertor and of a type that the hook reads and
//! writes, for 64-bit builds of Open MPI without debugging.
//!
//! [`super::proof`] checks these offsets in every process before anything relies on them.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Offsets in bytes, and bits of the flags. All offsets are of words of a convertor, except
/// `optimized`, which is an offset in a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Kind and state of the convertor: 32 bits.
    pub(crate) flags: u32,
    /// Packed bytes of all instances.
    pub(crate) size: u32,
    /// Packed bytes of all instances in the representation of the process at the other end.
    pub(crate) size_there: u32,
    /// Address of the type.
    pub(crate) datatype: u32,
    /// Address of the description of the type that the mover uses.
    pub(crate) description: u32,
    /// Number of instances.
    pub(crate) count: u32,
    /// Address of the program's buffer.
    pub(crate) buffer: u32,
    /// Address of the mover, the function that moves bytes.
    pub(crate) mover: u32,
    /// Address of the function that sets the convertor's position; 0: convertors of this release
    /// have no such field, and one exported function sets the position of all of them.
    pub(crate) placer: u32,
    /// Number of packed bytes that were moved so far.
    pub(crate) moved: u32,
    /// In a type: the optimized description, which is used if no representation is converted.
    pub(crate) optimized: u32,
    /// Bits of the flags.
    pub(crate) bits: Bits,
    /// Names of the generic movers for packing and unpacking. The library may hide these symbols.
    pub(crate) generic: [&'static str; 2],
}

/// Bits of a convertor's flags. The lower half of the flags is copied from the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bits {
    pub(crate) receives: u32,
    pub(crate) sends: u32,
    /// Both ends represent data alike.
    pub(crate) homogeneous: u32,
    /// `CONVERTOR_NO_OP`: one contiguous piece, for which the library calls no mover.
    pub(crate) plain: u32,
    pub(crate) completed: u32,
    /// The number of packed bytes at the other end is known.
    pub(crate) sized: u32,
}

/// Number of offsets in a [`Layout`].
#[cfg(debug_assertions)]
pub(crate) const OFFSETS: usize = 11;

/// Layout of releases 4.1 and 5.0.
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

/// Layout of release 6.0, taken from its header. No build of 6.0 has been run yet.
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
/// Index into [`LAYOUTS`] of the layout of this process.
static HERE: AtomicUsize = AtomicUsize::new(0);

/// Returns the layout of this process: before the proof the one that its version suggests, and
/// while the hook is enabled the proven one.
#[inline]
pub(crate) fn layout() -> &'static Layout {
    let [before_6, since_6] = &LAYOUTS;
    if HERE.load(Ordering::Relaxed) == 0 { before_6 } else { since_6 }
}

/// Sets the layout of this process to that of Open MPI `version`. Returns false if no layout of
/// that version is known.
pub(crate) fn take_for(version: [u32; 3]) -> bool {
    let here = match version {
        [4, 1, _] | [5, 0, _] => 0,
        [6, _, _] => 1,
        _ => return false,
    };
    HERE.store(here, Ordering::Relaxed);
    true
}

/// Length in bytes of the beginning of a convertor that contains all fields of a [`Layout`].
pub(crate) const WITHIN: u32 = 0x100;
/// Length in bytes of the beginning of a type that contains everything that is read of a type.
pub(crate) const TYPE_WITHIN: u32 = 320;

/// Bits of a convertor's flags that are copied from the type.
pub(crate) const OF_TYPE: u32 = 0xffff;
/// `OPAL_DATATYPE_FLAG_NO_GAPS`, one of the type's bits in all releases: the type is contiguous,
/// and its extent is its size. Open MPI also sets this bit in a convertor of no bytes and in one
/// that was cleaned up.
pub(crate) const NO_GAPS: u32 = 0x20;

impl Layout {
    /// Returns the number of instances that Open MPI's function for copies reads from its argument.
    /// Before 6.0 the function takes 32 bits, and the upper half of the register may hold anything.
    pub(crate) const fn instances(&self, count: usize) -> i64 {
        if self.placer == 0 { count as i32 as i64 } else { count as i64 }
    }

    /// Returns the upper half of the flags of a newly prepared convertor that the generic mover
    /// serves: host memory, no checksum, no conversion of representations. No other convertor has
    /// exactly these bits.
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

    /// Returns a layout with other offsets, given in the order of the fields. For tests.
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

/// A convertor of Open MPI, by its address.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Convertor(pub(crate) *mut c_void);

impl Convertor {
    /// Reads the 64-bit word at an offset.
    ///
    /// # Safety
    /// The address must be that of a convertor of Open MPI, and the word at `offset` must lie in
    /// the convertor's memory.
    #[inline]
    pub(crate) unsafe fn word(self, offset: u32) -> u64 {
        // SAFETY: the caller promises that the word lies in the memory of a convertor.
        unsafe { self.0.byte_add(offset as usize).cast::<u64>().read_unaligned() }
    }

    /// Writes the 64-bit word at an offset.
    ///
    /// # Safety
    /// As for [`Convertor::word`]. No other thread may use the convertor during this call.
    #[inline]
    pub(crate) unsafe fn put(self, offset: u32, word: u64) {
        // SAFETY: the caller promises that the word lies in the memory of a convertor that no other
        // thread uses.
        unsafe { self.0.byte_add(offset as usize).cast::<u64>().write_unaligned(word) }
    }

    /// Reads the flags.
    ///
    /// # Safety
    /// As for [`Convertor::word`], with the offset `layout.flags`.
    #[inline]
    pub(crate) unsafe fn flags(self, layout: &Layout) -> u32 {
        // SAFETY: the caller promises that the flags lie in the memory of a convertor.
        unsafe { self.0.byte_add(layout.flags as usize).cast::<u32>().read_unaligned() }
    }

    /// Sets these bits of the flags.
    ///
    /// # Safety
    /// As for [`Convertor::put`], with the offset `layout.flags`.
    #[inline]
    pub(crate) unsafe fn add_flags(self, layout: &Layout, flags: u32) {
        // SAFETY: the contracts of `flags` and `set_flags` are this function's.
        unsafe {
            self.set_flags(layout, self.flags(layout) | flags);
        }
    }

    /// Clears these bits of the flags.
    ///
    /// # Safety
    /// As for [`Convertor::put`], with the offset `layout.flags`.
    pub(crate) unsafe fn remove_flags(self, layout: &Layout, flags: u32) {
        // SAFETY: the contracts of `flags` and `set_flags` are this function's.
        unsafe {
            self.set_flags(layout, self.flags(layout) & !flags);
        }
    }

    /// Writes the flags.
    ///
    /// # Safety
    /// As for [`Convertor::put`], with the offset `layout.flags`.
    #[inline]
    unsafe fn set_flags(self, layout: &Layout, flags: u32) {
        // SAFETY: the caller promises that the flags lie in the memory of a convertor that no other
        // thread uses.
        unsafe { self.0.byte_add(layout.flags as usize).cast::<u32>().write_unaligned(flags) }
    }
}
