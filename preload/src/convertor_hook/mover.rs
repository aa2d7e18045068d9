//! ddtc's movers: functions that Open MPI calls through a convertor to pack or unpack the bytes of
//! a request.
//!
//! ddtc's movers take the position of a request only from the convertor's field `moved`, the number
//! of bytes that were packed or unpacked before. They leave Open MPI's stack of loops in the
//! convertor unchanged. So a piece may have any length and any position, also on clones of
//! convertors and in restarted requests. Before Open MPI reads the stack, the stack is made again
//! for the convertor's position ([`give_back`]). Each call of a mover looks up the type without a
//! lock, in the table of decoded types or by the `HeaderCopy` to which the convertor points. If the
//! type is not found, Open MPI's mover packs or unpacks the rest of the request.

use std::ffi::c_int;

use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;

use super::described::{Described, Way};
use super::functions::functions;
use super::host::{FAILED, Mover, Position, placer, proven};
use super::layout::{Convertor, Layout, layout};
use super::shadow::{Piece, agrees};
use crate::counted::{self, Uses};
use crate::guard::guard;
use crate::host::host;
use crate::overhead_budget;
use crate::slow_path::{SHADOW, watched_for};
use crate::table::{self, Found, TypeEntry};

/// Packs or unpacks the next bytes of a request by compiled code, as Open MPI's mover does by its
/// own loops: fills or empties each buffer as far as the request has bytes. When packing, ends each
/// piece at the end of an element. Returns 1 if all bytes of the request are packed or unpacked
/// then, else 0. Sets `n` to the number of buffers that were used, and `bytes` to the number of
/// bytes that were packed or unpacked.
///
/// # Safety
/// `convertor` must be a convertor of Open MPI, prepared for the type and direction of `way` and
/// used by no other thread, and `layout` the layout of its memory. `buffers` must have at least
/// `*n` buffers, all of them valid, and `n` and `bytes` must be writable.
pub(crate) unsafe fn advance(
    layout: &Layout,
    convertor: Convertor,
    way: Way<'_>,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: the caller promises a convertor of this layout, and that `n` can be read.
    let (size, first, count, user, buffers_given) = unsafe {
        let word = |offset| convertor.word(offset);
        (word(layout.size), word(layout.moved), word(layout.count), word(layout.buffer), *n)
    };
    let (mut at, mut used) = (first, 0);
    while used < buffers_given && at < size {
        // SAFETY: `used` is less than `buffers_given`, the number of buffers that the caller
        // promises.
        let buffer = unsafe { &mut *buffers.add(used as usize) };
        let end = way.end(at, buffer.iov_len as u64, size);
        if end > at {
            // SAFETY: [`Way::end`] returns at most `size`, the packed bytes of the request, and at
            // most `at` plus the length of the buffer. So the range `at..end` lies in the request,
            // and the buffer has room for it.
            unsafe {
                way.committed.range_made(
                    way.direction,
                    user as *mut u8,
                    count,
                    buffer.iov_base.cast(),
                    at..end,
                );
            }
        }
        buffer.iov_len = (end - at) as usize;
        at = end;
        used += 1;
    }
    // SAFETY: the caller promises that `n` and `bytes` can be written, and that no other thread
    // uses the convertor.
    unsafe {
        *n = used;
        *bytes = (at - first) as usize;
        convertor.put(layout.moved, at);
        if at == size {
            convertor.add_flags(layout, layout.bits.completed);
            return 1;
        }
    }
    0
}

/// Sets the position of a convertor. If the convertor packs, the position is first rounded down to
/// the end of an element, and `position` is set to the rounded value.
///
/// # Safety
/// As for [`advance`]. `*position` must be less than the packed bytes of the request.
pub(crate) unsafe fn set_position(layout: &Layout, convertor: Convertor, way: Way<'_>, position: *mut usize) {
    // SAFETY: the caller promises a convertor of this layout that no other thread uses.
    unsafe {
        if way.direction == Direction::Pack {
            *position = way.cuts.before(*position as u64) as usize;
        }
        convertor.put(layout.moved, *position as u64);
    }
}

/// Stores the address of a mover in a convertor. If convertors of this release of Open MPI have a
/// field for the function that sets the convertor's position, stores `placer` there.
///
/// # Safety
/// `convertor` must be a convertor of Open MPI that no other thread uses, and `layout` the layout
/// of its memory.
#[inline]
unsafe fn stores(layout: &Layout, convertor: Convertor, mover: usize, placer: Position) {
    // SAFETY: the caller promises a convertor of this layout that no other thread uses.
    unsafe {
        convertor.put(layout.mover, mover as u64);
        if layout.placer != 0 {
            convertor.put(layout.placer, placer as usize as u64);
        }
    }
}

/// Gives a convertor back to Open MPI's mover, after ddtc's mover has served it. Makes Open MPI's
/// stack of loops in the convertor again, as Open MPI's mover expects the stack at the convertor's
/// position.
///
/// # Safety
/// `convertor` must be a convertor of Open MPI that Open MPI's generic mover would serve and that
/// no other thread uses, and `layout` the layout of its memory. `theirs` must be the address of the
/// generic mover, and `set_position` the function that [`placer`] returns.
pub(crate) unsafe fn give_back(layout: &Layout, convertor: Convertor, theirs: usize, set_position: Position) {
    // SAFETY: the caller promises a convertor of this layout, and Open MPI's functions for it.
    unsafe {
        stores(layout, convertor, theirs, set_position);
        let (mut at, size) = (convertor.word(layout.moved) as usize, convertor.word(layout.size) as usize);
        // A clone that was made without a stack has `usize::MAX` as its position. It gets no stack
        // here, because Open MPI must set the position of the clone anyway before using it.
        if at < size {
            let mut start = 0;
            // The first call sets position 0, for which Open MPI makes the stack anew. The second
            // call advances the stack from position 0 to `at`.
            set_position(convertor, &raw mut start);
            if at > 0 {
                set_position(convertor, &raw mut at);
            }
        }
    }
}

/// One of ddtc's four movers: for packing or unpacking, and for one of two kinds of types.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ours {
    /// Mover for types that are in the table of decoded types.
    Known(Direction),
    /// Mover for types that are known only by Open MPI's description of them. The convertor points
    /// to the `HeaderCopy` of the type instead of to the description.
    Described(Direction),
}

impl Ours {
    const ALL: [Ours; 4] = [
        Ours::Known(Direction::Pack),
        Ours::Known(Direction::Unpack),
        Ours::Described(Direction::Pack),
        Ours::Described(Direction::Unpack),
    ];

    /// Returns the mover of ddtc that serves a convertor; `None` if Open MPI's own code serves it.
    ///
    /// # Safety
    /// `convertor` must be a convertor of Open MPI, and the layout must be proven.
    #[inline]
    pub(crate) unsafe fn serving(convertor: Convertor) -> Option<Ours> {
        // SAFETY: the caller promises a convertor of Open MPI and a proven layout.
        let mover = unsafe { convertor.word(layout().mover) };
        let ours = Ours::ALL.into_iter().find(|ours| mover == ours.mover() as usize as u64)?;
        // SAFETY: the contract of `kept` is this function's.
        unsafe { ours.kept(convertor) }.map(|_| ours)
    }

    /// Returns the type for which this mover was stored in a convertor; `None` if the convertor was
    /// used for something else since.
    ///
    /// Open MPI reuses convertors. If a convertor is prepared for contiguous memory or for no
    /// bytes, Open MPI stores a type and its description in the convertor, but no mover. Cleaning
    /// up a convertor leaves the mover in it too. So ddtc's mover may stay in a convertor that it
    /// does not serve. Every function that finds ddtc's mover in a convertor, or is called as that
    /// mover, calls `kept` before it relies on anything else in the convertor.
    ///
    /// # Safety
    /// As for [`Ours::serving`].
    #[inline]
    pub(crate) unsafe fn kept(self, convertor: Convertor) -> Option<Kept> {
        let l = layout();
        // SAFETY: the caller promises a convertor of Open MPI and a proven layout.
        let (flags, datatype, description) =
            unsafe { (convertor.flags(l), convertor.word(l.datatype), convertor.word(l.description)) };
        if flags & l.without_mover() != 0 {
            return None;
        }
        match self {
            Ours::Known(_) => {
                (description == datatype.wrapping_add(l.optimized.into())).then_some(Kept::Type(datatype))
            }
            Ours::Described(_) => Described::by_header(description).map(Kept::Described),
        }
    }

    /// Returns the function of this mover, whose address is stored in convertors.
    #[inline]
    pub(crate) fn mover(self) -> Mover {
        match self {
            Ours::Known(Direction::Pack) => pack,
            Ours::Known(Direction::Unpack) => unpack,
            Ours::Described(Direction::Pack) => pack_described,
            Ours::Described(Direction::Unpack) => unpack_described,
        }
    }

    /// Stores this mover in a convertor. If convertors of this release of Open MPI have a field for
    /// the function that sets the convertor's position, stores ddtc's function there.
    ///
    /// # Safety
    /// `convertor` must be a convertor of Open MPI that Open MPI's generic mover would serve, and
    /// whose type this mover can serve. The layout must be proven. No other thread may use the
    /// convertor.
    #[inline]
    pub(crate) unsafe fn store(self, convertor: Convertor) {
        // SAFETY: the caller promises a convertor of the proven layout that no other thread uses.
        unsafe { stores(layout(), convertor, self.mover() as usize, self.placer()) }
    }

    /// Returns ddtc's function that sets the position of a convertor with this mover. It is stored
    /// only in convertors that have a field for such a function, which depends on the release of
    /// Open MPI.
    #[inline]
    fn placer(self) -> Position {
        match self {
            Ours::Known(Direction::Pack) => placed::<0>,
            Ours::Known(Direction::Unpack) => placed::<1>,
            Ours::Described(Direction::Pack) => placed::<2>,
            Ours::Described(Direction::Unpack) => placed::<3>,
        }
    }

    fn direction(self) -> Direction {
        match self {
            Ours::Known(direction) | Ours::Described(direction) => direction,
        }
    }
}

/// Type for which a mover of ddtc was stored in a convertor.
#[derive(Clone, Copy)]
pub(crate) enum Kept {
    /// Handle of a type that was in the table of decoded types when the mover was stored.
    Type(u64),
    /// A type that is known only by Open MPI's description of it.
    Described(&'static Described),
}

/// Type of a convertor's request. The bytes that ddtc's mover packs or unpacks for the convertor
/// are counted for this type.
#[derive(Clone, Copy)]
pub(crate) enum Owner {
    Entry(&'static TypeEntry),
    Described(&'static Described),
}

impl Owner {
    fn uses(self) -> &'static Uses {
        match self {
            Owner::Entry(entry) => &entry.uses,
            Owner::Described(known) => &known.uses,
        }
    }

    /// Returns the minimum number of nanoseconds that are saved if compiled code packs or unpacks
    /// this number of bytes instead of Open MPI.
    fn spares(self, bytes: u64) -> u64 {
        match self {
            Owner::Entry(entry) => entry.spares(bytes),
            Owner::Described(known) => known.spares(bytes),
        }
    }
}

/// Returns the type for which a convertor's bytes are counted, and the compiled code that packs or
/// unpacks them; `None` if `ours` does not serve the convertor, or if the type is not ready any
/// more.
///
/// # Safety
/// As for [`Ours::serving`]. The convertor's mover must be `ours`, or Open MPI must have called
/// `ours` to move bytes or to set the position, for a request or a call that is under way.
#[inline]
pub(crate) unsafe fn way(convertor: Convertor, ours: Ours) -> Option<(Owner, Way<'static>)> {
    let direction = ours.direction();
    // SAFETY: the caller of this function keeps the contract of `kept`.
    match unsafe { ours.kept(convertor) }? {
        Kept::Type(handle) => {
            let Found::Convert(entry) = table::find(handle) else { return None };
            let cuts = entry.served.by(direction)?;
            // SAFETY: the type lives as long as the request or call that uses the convertor. Open
            // MPI's requests hold a reference to their type (the check `retains` in the proof has
            // seen that), and the program holds the types of a call. The entry was found by the
            // type's handle, and what the entry owns is freed only by the attribute that Open MPI
            // deletes with the last reference to the type.
            let committed = unsafe { entry.committed() }?;
            Some((Owner::Entry(entry), Way { direction, committed, cuts }))
        }
        Kept::Described(known) => Some((Owner::Described(known), known.way(direction)?)),
    }
}

/// Packs for a convertor whose type is in the table of decoded types ([`Ours::Known`]).
///
/// # Safety
/// As for the mover of a convertor that Open MPI calls.
unsafe extern "C" fn pack(
    convertor: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: the caller keeps the contract of `moves`, because this function is the mover of the
    // `Ours` that is passed.
    unsafe { moves(Ours::Known(Direction::Pack), convertor, buffers, n, bytes) }
}

/// Unpacks for a convertor whose type is in the table of decoded types ([`Ours::Known`]).
///
/// # Safety
/// As for the mover of a convertor that Open MPI calls.
unsafe extern "C" fn unpack(
    convertor: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: the caller keeps the contract of `moves`, because this function is the mover of the
    // `Ours` that is passed.
    unsafe { moves(Ours::Known(Direction::Unpack), convertor, buffers, n, bytes) }
}

/// Packs for a convertor whose type is known only by Open MPI's description of it
/// ([`Ours::Described`]).
///
/// # Safety
/// As for the mover of a convertor that Open MPI calls.
unsafe extern "C" fn pack_described(
    convertor: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: the caller keeps the contract of `moves`, because this function is the mover of the
    // `Ours` that is passed.
    unsafe { moves(Ours::Described(Direction::Pack), convertor, buffers, n, bytes) }
}

/// Unpacks for a convertor whose type is known only by Open MPI's description of it
/// ([`Ours::Described`]).
///
/// # Safety
/// As for the mover of a convertor that Open MPI calls.
unsafe extern "C" fn unpack_described(
    convertor: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: the caller keeps the contract of `moves`, because this function is the mover of the
    // `Ours` that is passed.
    unsafe { moves(Ours::Described(Direction::Unpack), convertor, buffers, n, bytes) }
}

/// Packs or unpacks the next bytes of a convertor by compiled code if `ours` serves the convertor
/// and its type is ready, else by Open MPI's mover. Returns 1 if all bytes of the convertor's
/// request are packed or unpacked then, 0 if not, or an error code of Open MPI.
///
/// # Safety
/// Open MPI must call `ours` as the mover of the convertor, with the arguments that it passes to
/// movers.
#[inline]
unsafe fn moves(
    ours: Ours,
    convertor: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: Open MPI calls `ours`, as the caller promises. `ours` is stored in a convertor only
    // if the layout is proven, and a clone of the convertor has `ours` from the original.
    let Some((owner, way)) = (unsafe { way(convertor, ours) }) else {
        // SAFETY: the caller of this function keeps the contract of `theirs`.
        return unsafe { theirs(ours, convertor, buffers, n, bytes) };
    };
    // SAFETY: `way` has found that the convertor was prepared for this type and direction. The
    // layout is proven, and `buffers`, `n` and `bytes` are the arguments that Open MPI passes to
    // its movers.
    let done = guard(|| unsafe {
        let done = if watched_for(SHADOW) {
            compared(ours, convertor, way, buffers, n, bytes)
        } else {
            advance(layout(), convertor, way, buffers, n, bytes)
        };
        if done == 1 {
            overhead_budget::saved(owner.spares(convertor.word(layout().size)));
        }
        counted::inside(owner.uses(), ours.direction(), *bytes as u64);
        done
    });
    done.unwrap_or(FAILED)
}

/// Packs or unpacks a piece as [`advance`] does, and compares its packed bytes with those that Open
/// MPI's own mover packs from the program's buffer. If they differ, Open MPI's mover packs or
/// unpacks this piece again and then the rest of the request.
///
/// # Safety
/// As for [`advance`]. The convertor's mover must be `ours`, and the layout proven.
#[cold]
unsafe fn compared(
    ours: Ours,
    convertor: Convertor,
    way: Way<'_>,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    let l = layout();
    // SAFETY: the caller promises a convertor of the proven layout that no other thread uses, and
    // `*n` valid buffers. `*n` and the lengths of the buffers are restored before Open MPI's mover
    // gets them.
    unsafe {
        let (first, all) = (convertor.word(l.moved), *n);
        let buffers = std::slice::from_raw_parts_mut(buffers, all as usize);
        let given: Vec<usize> = buffers.iter().map(|buffer| buffer.iov_len).collect();
        let done = advance(l, convertor, way, buffers.as_mut_ptr(), n, bytes);
        let (Some(host), Some(functions)) = (host(), functions()) else { return done };
        let (direction, moved) = (way.direction, buffers.get(..*n as usize).unwrap_or_default());
        #[cfg(debug_assertions)]
        super::planted::spoil(convertor, way, first, moved);
        let piece = Piece { direction, first, buffers: moved, given: &given };
        if agrees(host, functions, convertor, way.committed.datatype(), &piece) {
            return done;
        }
        for (buffer, given) in buffers.iter_mut().zip(given) {
            buffer.iov_len = given;
        }
        *n = all;
        convertor.put(l.moved, first);
        convertor.remove_flags(l, l.bits.completed);
        theirs(ours, convertor, buffers.as_mut_ptr(), n, bytes)
    }
}

/// Continues the request with Open MPI's mover. Called if the type is not ready any more, or if
/// `ours` does not serve the convertor.
///
/// # Safety
/// As for [`moves`].
#[cold]
unsafe fn theirs(
    ours: Ours,
    convertor: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: [`proven`] returns 0, which is `None`, or the address of Open MPI's mover.
    let theirs = unsafe { std::mem::transmute::<usize, Option<Mover>>(proven(ours.direction())) };
    let Some(theirs) = theirs else { return FAILED };
    // SAFETY: Open MPI calls `ours` for this convertor, as the caller promises. After `leave` the
    // convertor is in the state that Open MPI's own mover expects, and so are the buffers.
    unsafe {
        leave(convertor, ours);
        theirs(convertor, buffers, n, bytes)
    }
}

/// Gives a convertor that `ours` serves back to Open MPI's mover, which then serves it until the
/// convertor is prepared again. Called before Open MPI reads the convertor's stack of loops. Does
/// nothing to a convertor that `ours` does not serve.
///
/// # Safety
/// As for [`way`]. No other thread may use the convertor.
#[cold]
pub(crate) unsafe fn leave(convertor: Convertor, ours: Ours) {
    let l = layout();
    // SAFETY: the caller of this function keeps the contract of `kept`.
    let (Some(kept), Some(set_position)) = (unsafe { ours.kept(convertor) }, placer(l)) else { return };
    // SAFETY: `ours` serves the convertor, so the convertor was prepared for the generic mover,
    // which [`proven`] returns, because `ours` is stored only after the hook was enabled. The
    // address of the description that is written is the one that Open MPI had written before the
    // address of the `HeaderCopy` replaced it.
    unsafe {
        if let Kept::Described(_) = kept {
            convertor.put(l.description, convertor.word(l.datatype) + u64::from(l.optimized));
        }
        give_back(l, convertor, proven(ours.direction()), set_position);
    }
}

/// Sets the position of a convertor to `*at`. Writes only the convertor's field `moved` if `ours`
/// serves the convertor and its type is ready; otherwise calls Open MPI's function.
///
/// # Safety
/// As for Open MPI's `opal_convertor_set_position_nocheck`, and as for [`way`].
pub(crate) unsafe fn position(ours: Ours, convertor: Convertor, at: *mut usize) -> c_int {
    let l = layout();
    // SAFETY: the caller keeps the contracts of `way`, of `leave` and of Open MPI's function. After
    // `leave` the convertor is in the state that Open MPI's function expects.
    unsafe {
        if let Some((_, way)) = way(convertor, ours) {
            set_position(l, convertor, way, at);
            return 0;
        }
        leave(convertor, ours);
        placer(l).map_or(FAILED, |theirs| theirs(convertor, at))
    }
}

/// Sets the position of a convertor. Open MPI calls this function through the convertor, in which
/// it was stored together with the mover `Ours::ALL[OURS]`.
///
/// # Safety
/// As for the function in a convertor that Open MPI calls to set the position.
unsafe extern "C" fn placed<const OURS: usize>(convertor: Convertor, at: *mut usize) -> c_int {
    // SAFETY: the caller keeps the contract of `position`, because the convertor's mover is
    // `Ours::ALL[OURS]`, which was stored together with this function.
    unsafe { position(Ours::ALL[OURS], convertor, at) }
}

#[cfg(test)]
mod tests {
    use super::super::layout::NO_GAPS;
    use super::*;

    /// Memory of a convertor, in a state in which Open MPI may leave it. Only the words and flags
    /// that ddtc's movers read have values.
    struct Words([u64; 32]);

    impl Words {
        fn new(ours: Ours, flags: u32, datatype: u64, description: u64) -> Words {
            let (mut words, l) = (Words([0; 32]), layout());
            let convertor = words.convertor();
            // SAFETY: all offsets of the layout lie within these 256 bytes.
            unsafe {
                convertor.put(l.mover, ours.mover() as usize as u64);
                convertor.put(l.datatype, datatype);
                convertor.put(l.description, description);
                convertor.add_flags(l, flags);
            }
            words
        }

        fn convertor(&mut self) -> Convertor {
            Convertor(self.0.as_mut_ptr().cast())
        }

        fn is_ours(&mut self) -> bool {
            // SAFETY: the memory is 256 bytes long, and all words that are read lie in these bytes.
            unsafe { Ours::serving(self.convertor()) }.is_some()
        }
    }

    #[test]
    fn a_mover_of_ours_is_believed_only_with_its_flags_and_description() {
        let (l, datatype) = (layout(), 0x7000_0000_1000);
        let theirs = datatype + u64::from(l.optimized);
        let fresh = l.fresh(true);
        for ours in Ours::ALL {
            let is_known = matches!(ours, Ours::Known(_));
            assert_eq!(Words::new(ours, fresh, datatype, theirs).is_ours(), is_known);
            for flags in [l.bits.plain, NO_GAPS, NO_GAPS | l.bits.completed] {
                assert!(!Words::new(ours, fresh | flags, datatype, theirs).is_ours());
            }
            for another in [0, 1, datatype, theirs + 8, u64::MAX] {
                assert!(!Words::new(ours, fresh, datatype, another).is_ours());
            }
            let mut another = Words::new(ours, fresh, datatype, theirs);
            // SAFETY: all offsets of the layout lie within the 256 bytes of `Words`.
            unsafe { another.convertor().put(l.mover, 0x1234) };
            assert!(!another.is_ours());
        }
    }
}
