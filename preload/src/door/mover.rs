//! Our movers: what Open MPI calls, by a convertor, for the bytes of a request.
//!
//! A mover goes by `moved` alone, the packed bytes that were moved before, and the host's stack of loops stays as it was. So a piece may be of any
//! length and at any position, on clones and in restarted requests. Whatever reads the stack is given it anew ([`give_back`]). The type is looked up in the
//! table at each call, without a lock; one that is not found is the host's from then on.

use std::ffi::c_int;

use ddtc::kind::Direction;

use super::described::{Described, Way};
use super::functions::functions;
use super::host::{FAILED, Mover, Position, placer, proven};
use super::layout::{Convertor, Layout, layout};
use super::shadow::{Piece, agrees};
use crate::counted::{self, Uses};
use crate::guard::guard;
use crate::host::host;
use crate::slow_path::{SHADOW, watched_for};
use crate::spending;
use crate::table::{self, Found, TypeEntry};

/// Moves the bytes of buffers as the host's mover does: each as far as there are bytes, what is sent in whole elements. 1: all are moved; 0: there are more.
///
/// # Safety
/// `convertor` must be one of the host's, prepared for `way` and used by nobody else, with at least as many `buffers` as `n` says, all of them valid, and
/// `layout` what its memory is like.
pub(crate) unsafe fn advance(
    layout: &Layout,
    convertor: Convertor,
    way: Way<'_>,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    let (size, first, count, user, buffers_given) = unsafe {
        let word = |offset| convertor.word(offset);
        (word(layout.size), word(layout.moved), word(layout.count), word(layout.buffer), *n)
    };
    let (mut at, mut used) = (first, 0);
    while used < buffers_given && at < size {
        // SAFETY: one of the buffers.
        let buffer = unsafe { &mut *buffers.add(used as usize) };
        let end = way.end(at, buffer.iov_len as u64, size);
        if end > at {
            // SAFETY: [`Way::end`] returns no more than `size`, the packed bytes of the request,
            // and no more than the length of the buffer after `at`. So the range lies in the
            // request, and the buffer has room for it.
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
    // SAFETY: places to write to; the convertor is the caller's.
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

/// Moves a convertor to a position, which ends up at an element where it sends.
///
/// # Safety
/// As [`advance`]; `position` lies before the end.
pub(crate) unsafe fn place(layout: &Layout, convertor: Convertor, way: Way<'_>, position: *mut usize) {
    // SAFETY: as the caller promises.
    unsafe {
        if way.direction == Direction::Pack {
            *position = way.cuts.before(*position as u64) as usize;
        }
        convertor.put(layout.moved, *position as u64);
    }
}

/// Stores a mover, and what places a convertor where convertors have that.
///
/// # Safety
/// `convertor` must be one of the host's that nobody else uses, and `layout` what its memory is like.
#[inline]
unsafe fn stores(layout: &Layout, convertor: Convertor, mover: usize, placer: Position) {
    // SAFETY: as the caller promises.
    unsafe {
        convertor.put(layout.mover, mover as u64);
        if layout.placer != 0 {
            convertor.put(layout.placer, placer as usize as u64);
        }
    }
}

/// Gives a convertor back to the host's mover, with the stack that it would have there.
///
/// # Safety
/// `convertor` must be one of the host's that its generic mover would serve and nobody else uses,
/// and `layout` what its memory is like; `theirs` must be that mover, and `set_position` the
/// [`placer`].
pub(crate) unsafe fn give_back(layout: &Layout, convertor: Convertor, theirs: usize, set_position: Position) {
    // SAFETY: as the caller promises.
    unsafe {
        stores(layout, convertor, theirs, set_position);
        let (mut at, size) = (convertor.word(layout.moved) as usize, convertor.word(layout.size) as usize);
        // One without a stack has another position: it must be placed before it is used.
        if at < size {
            let mut start = 0;
            // From the beginning, where the host makes the stack anew.
            set_position(convertor, &raw mut start);
            if at > 0 {
                set_position(convertor, &raw mut at);
            }
        }
    }
}

/// Which of our movers one is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ours {
    /// Of a type that the table has.
    Known(Direction),
    /// Of one that is known by its description, which stands in the convertor.
    Described(Direction),
}

impl Ours {
    const ALL: [Ours; 4] = [
        Ours::Known(Direction::Pack),
        Ours::Known(Direction::Unpack),
        Ours::Described(Direction::Pack),
        Ours::Described(Direction::Unpack),
    ];

    /// Returns the mover of ours that serves a convertor, if one does.
    ///
    /// # Safety
    /// `convertor` must be one of the host's, and the layout proven.
    #[inline]
    pub(crate) unsafe fn of(convertor: Convertor) -> Option<Ours> {
        // SAFETY: as the caller promises.
        let mover = unsafe { convertor.word(layout().mover) };
        let ours = Ours::ALL.into_iter().find(|ours| mover == ours.mover() as usize as u64)?;
        // SAFETY: as the caller promises.
        unsafe { ours.kept(convertor) }.map(|_| ours)
    }

    /// Returns what this mover was stored for, or `None` if the convertor was used for something
    /// else since.
    ///
    /// Open MPI reuses convertors. A preparation for contiguous memory or for no bytes stores a type
    /// and its description, but no mover, and cleaning up leaves the mover too: ours stays in a
    /// convertor that it does not serve. Every function that finds our mover in a convertor, or is
    /// called as the mover, asks this before it believes anything else in the convertor.
    ///
    /// # Safety
    /// As [`Ours::of`].
    #[inline]
    pub(crate) unsafe fn kept(self, convertor: Convertor) -> Option<Kept> {
        let l = layout();
        // SAFETY: as the caller promises.
        let (flags, datatype, description) =
            unsafe { (convertor.flags(l), convertor.word(l.datatype), convertor.word(l.description)) };
        if flags & l.without_mover() != 0 {
            return None;
        }
        match self {
            Ours::Known(_) => {
                (description == datatype.wrapping_add(l.optimized.into())).then_some(Kept::Type(datatype))
            }
            Ours::Described(_) => Described::by_stand_in(description).map(Kept::Described),
        }
    }

    /// As the host stores it.
    #[inline]
    pub(crate) fn mover(self) -> Mover {
        match self {
            Ours::Known(Direction::Pack) => pack,
            Ours::Known(Direction::Unpack) => unpack,
            Ours::Described(Direction::Pack) => pack_described,
            Ours::Described(Direction::Unpack) => unpack_described,
        }
    }

    /// Stores it in a convertor, with what places that.
    ///
    /// # Safety
    /// `convertor` must be one of the host's that its generic mover would serve, of a type that this one can.
    #[inline]
    pub(crate) unsafe fn store(self, convertor: Convertor) {
        // SAFETY: as the caller promises.
        unsafe { stores(layout(), convertor, self.mover() as usize, self.placer()) }
    }

    /// What places the convertors that it is stored in, where convertors have that.
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

/// The type that a mover of ours was stored for.
#[derive(Clone, Copy)]
pub(crate) enum Kept {
    /// A type that the table has, by its handle.
    Type(u64),
    /// A type that is known by its description.
    Described(&'static Described),
}

/// Owner of a convertor of ours, whose uses these are.
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

    /// Nanoseconds that moving so many bytes saves at least.
    fn spares(self, bytes: u64) -> u64 {
        match self {
            Owner::Entry(entry) => entry.spares(bytes),
            Owner::Described(known) => known.spares(bytes),
        }
    }
}

/// Returns the owner of a convertor and its way, if `ours` serves the convertor and its type is
/// still ready.
///
/// # Safety
/// As [`Ours::of`]. The convertor's mover must be `ours`, or the host has called `ours` to move or
/// place it, for a request or a call that is under way.
#[inline]
pub(crate) unsafe fn way(convertor: Convertor, ours: Ours) -> Option<(Owner, Way<'static>)> {
    let direction = ours.direction();
    // SAFETY: as the caller promises.
    match unsafe { ours.kept(convertor) }? {
        Kept::Type(handle) => {
            let Found::Convert(entry) = table::find(handle) else { return None };
            let cuts = entry.served.by(direction)?;
            // SAFETY: the type lives as long as the request or call that moves or places the
            // convertor: Open MPI's requests hold a reference to their type (`retains` in the proof
            // has seen it), and the program holds the types of a call. The entry was found bound,
            // and what it holds is freed only by the attribute that Open MPI deletes with the last
            // reference.
            let committed = unsafe { entry.committed() }?;
            Some((Owner::Entry(entry), Way { direction, committed, cuts }))
        }
        Kept::Described(known) => Some((Owner::Described(known), known.way(direction)?)),
    }
}

/// # Safety
/// As Open MPI calls the mover of a convertor.
unsafe extern "C" fn pack(
    convertor: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { moves(Ours::Known(Direction::Pack), convertor, buffers, n, bytes) }
}

/// # Safety
/// As Open MPI calls the mover of a convertor.
unsafe extern "C" fn unpack(
    convertor: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { moves(Ours::Known(Direction::Unpack), convertor, buffers, n, bytes) }
}

/// # Safety
/// As Open MPI calls the mover of a convertor.
unsafe extern "C" fn pack_described(
    convertor: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { moves(Ours::Described(Direction::Pack), convertor, buffers, n, bytes) }
}

/// # Safety
/// As Open MPI calls the mover of a convertor.
unsafe extern "C" fn unpack_described(
    convertor: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { moves(Ours::Described(Direction::Unpack), convertor, buffers, n, bytes) }
}

/// Moves bytes as `ours` does, or lets the host's mover do so.
///
/// # Safety
/// As Open MPI calls the mover of a convertor, in which `ours` is that mover.
#[inline]
unsafe fn moves(
    ours: Ours,
    convertor: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: the host calls `ours`, as the caller promises. It is stored only where the layout is
    // proven; a clone has it from the convertor that it is a clone of.
    let Some((owner, way)) = (unsafe { way(convertor, ours) }) else {
        // SAFETY: as the caller promises.
        return unsafe { theirs(ours, convertor, buffers, n, bytes) };
    };
    // SAFETY: `way` has found that the convertor was prepared for it. The layout is proven, and
    // `buffers`, `n` and `bytes` are as the host's movers get them.
    let done = guard(|| unsafe {
        let done = if watched_for(SHADOW) {
            compared(ours, convertor, way, buffers, n, bytes)
        } else {
            advance(layout(), convertor, way, buffers, n, bytes)
        };
        if done == 1 {
            spending::saved(owner.spares(convertor.word(layout().size)));
        }
        counted::inside(owner.uses(), ours.direction(), *bytes as u64);
        done
    });
    done.unwrap_or(FAILED)
}

/// Moves a piece and compares it with the host's; one that differs is moved by the host again, as is all that comes after it.
///
/// # Safety
/// As [`advance`], for a convertor whose mover is ours.
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
    // SAFETY: as the caller promises.
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

/// Lets the host's mover go on: the type is not known any more, or the convertor is not ours.
///
/// # Safety
/// As [`moves`].
#[cold]
unsafe fn theirs(
    ours: Ours,
    convertor: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: [`proven`] returns 0, which is `None`, or the address of the host's mover.
    let theirs = unsafe { std::mem::transmute::<usize, Option<Mover>>(proven(ours.direction())) };
    let Some(theirs) = theirs else { return FAILED };
    // SAFETY: as the caller promises; once `leave` has returned the convertor is the host's.
    unsafe {
        leave(convertor, ours);
        theirs(convertor, buffers, n, bytes)
    }
}

/// Gives a convertor that `ours` serves back to the host for good, before the host reads its stack.
/// Does nothing to a convertor that `ours` does not serve.
///
/// # Safety
/// As [`way`]; nobody else uses the convertor.
#[cold]
pub(crate) unsafe fn leave(convertor: Convertor, ours: Ours) {
    let l = layout();
    // SAFETY: as the caller promises.
    let (Some(kept), Some(set_position)) = (unsafe { ours.kept(convertor) }, placer(l)) else { return };
    // SAFETY: our mover serves it, so it was prepared for the generic one, which [`proven`] returns:
    // ours is stored only after the door was opened. The description that is written is what the
    // host had written before ours took its place.
    unsafe {
        if let Kept::Described(_) = kept {
            convertor.put(l.description, convertor.word(l.datatype) + u64::from(l.optimized));
        }
        give_back(l, convertor, proven(ours.direction()), set_position);
    }
}

/// Places a convertor by `ours` if that serves it, else by the host's function.
///
/// # Safety
/// As Open MPI's `opal_convertor_set_position_nocheck`; and as [`way`].
pub(crate) unsafe fn position(ours: Ours, convertor: Convertor, at: *mut usize) -> c_int {
    let l = layout();
    // SAFETY: as the caller promises.
    unsafe {
        if let Some((_, way)) = way(convertor, ours) {
            place(l, convertor, way, at);
            return 0;
        }
        leave(convertor, ours);
        placer(l).map_or(FAILED, |theirs| theirs(convertor, at))
    }
}

/// # Safety
/// As Open MPI calls what places a convertor, which was stored beside the mover of that number.
unsafe extern "C" fn placed<const OURS: usize>(convertor: Convertor, at: *mut usize) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { position(Ours::ALL[OURS], convertor, at) }
}

#[cfg(test)]
mod tests {
    use super::super::layout::NO_GAPS;
    use super::*;

    /// A convertor as the library may leave it: these words of it, and flags.
    struct Words([u64; 32]);

    impl Words {
        fn new(ours: Ours, flags: u32, datatype: u64, description: u64) -> Words {
            let (mut words, l) = (Words([0; 32]), layout());
            let convertor = words.convertor();
            // SAFETY: all offsets of the layout lie within 256 bytes.
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
            // SAFETY: memory that is as long as a convertor, of which four words are read.
            unsafe { Ours::of(self.convertor()) }.is_some()
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
            for left in [l.bits.plain, NO_GAPS, NO_GAPS | l.bits.completed] {
                assert!(!Words::new(ours, fresh | left, datatype, theirs).is_ours());
            }
            for another in [0, 1, datatype, theirs + 8, u64::MAX] {
                assert!(!Words::new(ours, fresh, datatype, another).is_ours());
            }
            let mut another = Words::new(ours, fresh, datatype, theirs);
            // SAFETY: as in `Words::new`.
            unsafe { another.convertor().put(l.mover, 0x1234) };
            assert!(!another.is_ours());
        }
    }
}
