//! Offsets of those fields of Open MPI's convertors and types that the convertor hook reads and
//! writes, for 64-bit builds of Open MPI without debugging.
//!
//! [`super::proof`] checks these offsets in every process before anything relies on them.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use ddtc_hosts::profile::convertor_layout;

/// Offsets in bytes of fields of Open MPI's structures, and bits of a convertor's flags.
/// `optimized` is an offset in a type; all other offsets are those of words in a convertor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Offset of the convertor's flags ([`Bits`]), a word of 32 bits.
    pub(crate) flags: u32,
    /// Offset of the number of packed bytes of all instances.
    pub(crate) size: u32,
    /// Offset of the number of packed bytes of all instances in the data representation of the
    /// process at the other end.
    pub(crate) size_there: u32,
    /// Offset of the address of the type.
    pub(crate) datatype: u32,
    /// Offset of the address of the header of that description of the type which the mover reads.
    pub(crate) description: u32,
    /// Offset of the number of instances.
    pub(crate) count: u32,
    /// Offset of the address of the program's buffer.
    pub(crate) buffer: u32,
    /// Offset of the address of the mover, which is the function that packs or unpacks.
    pub(crate) mover: u32,
    /// Offset of the address of the function that sets the convertor's position. The value 0 means
    /// that convertors of this release have no such field, and that one exported function sets the
    /// position of all convertors.
    pub(crate) placer: u32,
    /// Offset of the number of packed bytes that were packed or unpacked so far.
    pub(crate) moved: u32,
    /// Offset, in a type, of the header of the type's optimized description. Open MPI uses this
    /// description if no data representation is converted.
    pub(crate) optimized: u32,
    /// Bits of a convertor's flags.
    pub(crate) bits: Bits,
    /// Symbol names of Open MPI's generic movers for packing and unpacking. A build of Open MPI may
    /// hide these symbols.
    pub(crate) generic: [&'static str; 2],
}

/// Bits of the upper half of a convertor's flags. The lower half of the flags is copied from the
/// type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bits {
    pub(crate) receives: u32,
    pub(crate) sends: u32,
    /// Flag bit of a convertor: both ends of the message have the same data representation.
    pub(crate) homogeneous: u32,
    /// Flag bit `CONVERTOR_NO_OP` of a convertor: the bytes are one contiguous piece, for which
    /// Open MPI calls no mover.
    pub(crate) plain: u32,
    pub(crate) completed: u32,
    /// Flag bit of a convertor: the number of packed bytes at the other end is known.
    pub(crate) sized: u32,
}

/// Number of offsets in a [`Layout`]. [`Layout::planted`] takes an array of this many offsets.
#[cfg(debug_assertions)]
pub(crate) const OFFSETS: usize = 11;

/// Layout of Open MPI's releases 4.1 and 5.0.
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

/// Layout of Open MPI's release 6.0, taken from its header file. It fits 6.0.0rc2, the only build
/// that was run.
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

/// All layouts, by the numbers that [`convertor_layout`] returns.
static LAYOUTS: [Layout; 2] = [BEFORE_6, SINCE_6];
/// Index into [`LAYOUTS`] of the layout that this process uses.
static HERE: AtomicUsize = AtomicUsize::new(0);

/// Returns the layout that this process uses. From the beginning of the proof on it is the layout
/// that Open MPI's version suggests ([`take_for`]), and while the hook is enabled it is proven.
/// Before the proof it has no meaning.
#[inline]
pub(crate) fn layout() -> &'static Layout {
    let [before_6, since_6] = &LAYOUTS;
    if HERE.load(Ordering::Relaxed) == 0 { before_6 } else { since_6 }
}

/// Sets the layout of this process to the layout of Open MPI `version`. Returns false if no layout
/// of that version is known.
pub(crate) fn take_for(version: [u32; 3]) -> bool {
    let here = convertor_layout(version);
    HERE.store(here.unwrap_or(0), Ordering::Relaxed);
    here.is_some()
}

/// Number of bytes at the beginning of a convertor in which all fields of a [`Layout`] lie.
pub(crate) const WITHIN: u32 = 0x100;
/// Number of bytes at the beginning of Open MPI's structure of a type. All fields that the hook
/// reads lie in them.
pub(crate) const TYPE_WITHIN: u32 = 320;

/// Mask of those bits of a convertor's flags that are copied from the type.
pub(crate) const OF_TYPE: u32 = 0xffff;
/// Flag bit `OPAL_DATATYPE_FLAG_NO_GAPS`, which is copied from the type in all releases: the type
/// is contiguous, and its extent is its size. Open MPI also sets this bit in a convertor of no
/// bytes and in a convertor that was cleaned up.
pub(crate) const NO_GAPS: u32 = 0x20;

impl Layout {
    /// Returns the number of instances that Open MPI's function for copies from buffer to buffer
    /// takes from its argument. Before 6.0 the function takes only the lower 32 bits of the
    /// argument, and the upper half of the register may have any value.
    pub(crate) const fn instances(&self, count: usize) -> i64 {
        if self.placer == 0 { count as i32 as i64 } else { count as i64 }
    }

    /// Returns the upper half of the flags that Open MPI gives to a newly prepared convertor with a
    /// generic mover. Such a convertor is for host memory, without a checksum and without a
    /// conversion of data representations. No other convertor has exactly these bits.
    #[inline]
    pub(crate) const fn fresh(&self, sends: bool) -> u32 {
        let bits = &self.bits;
        bits.homogeneous | bits.sized | if sends { bits.sends } else { bits.receives }
    }

    /// Returns two flags. A convertor has at least one of them if its last preparation stored no
    /// mover, or if the convertor was cleaned up since. In both cases the word for the mover is
    /// that of an earlier request.
    #[inline]
    pub(crate) const fn without_mover(&self) -> u32 {
        self.bits.plain | NO_GAPS
    }

    /// Returns a layout with these offsets, which are given in the order of the fields. For tests.
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

/// Address of a convertor, the structure by which Open MPI packs or unpacks one message.
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
