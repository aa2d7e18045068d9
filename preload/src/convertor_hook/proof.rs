//! Proof that Open MPI's structures of convertors and types have the layout of [`super::layout`].
//! Each process makes the proof before anything relies on that layout.
//!
//! First, convertors of known types are prepared in both directions, and the words at the offsets
//! are compared with the arguments of the preparation. Then Open MPI's mover moves bytes through
//! one convertor and ddtc's mover through another, in pieces of odd lengths and from odd positions.
//! Both movers must leave equal bytes, lengths, results, flags and positions. If any check fails,
//! the hook stays disabled.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use ddtc::internal::committed::Committed;
use ddtc::internal::datatype::Named;
use ddtc::internal::engine::Engine;
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc::internal::object::runtime;

use super::described::Way;
use super::description::{Order, datatype, view};
use super::functions::{Functions, Own};
use super::host::{COPY, Copy, called};
#[cfg(debug_assertions)]
use super::layout::OFFSETS;
use super::layout::{Convertor, Layout, NO_GAPS, OF_TYPE, TYPE_WITHIN, WITHIN};
use super::mover::{advance, give_back, set_position};
use crate::host::{HandleWord, Host};
use crate::introspect::Types;
use crate::loader::object_of;

type Holds<T = ()> = Result<T, &'static str>;

fn holds(what: bool, otherwise: &'static str) -> Holds {
    if what { Ok(()) } else { Err(otherwise) }
}

/// A type of Open MPI that the proof has made. It is freed when this value is dropped.
struct Made {
    host: &'static Host,
    handle: HandleWord,
}

impl Made {
    fn by(host: &'static Host, make: impl FnOnce(*mut HandleWord) -> Option<c_int>) -> Holds<Made> {
        let mut handle = 0;
        let made = make(&raw mut handle) == Some(0) && handle != 0;
        holds(made, "a type was not made")?;
        let made = Made { host, handle };
        // SAFETY: the handle is that of a type that was just made, and is not committed yet.
        let code = host.f.type_commit.map(|f| unsafe { f((&raw mut handle).cast()) });
        holds(code == Some(0) && handle == made.handle, "a type was not committed")?;
        Ok(made)
    }

    fn vector(host: &'static Host, [count, length, stride]: [c_int; 3], of: HandleWord) -> Holds<Made> {
        // SAFETY: `of` is a handle of a type of Open MPI, the arguments are in range, and `t` is
        // the address of a handle that can be written.
        Made::by(host, |t| host.f.type_vector.map(|f| unsafe { f(count, length, stride, of, t.cast()) }))
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(type_free) = self.host.f.type_free {
            // SAFETY: the type was made by `Made::by`, and is freed only here.
            let _ = unsafe { type_free((&raw mut self.handle).cast()) };
        }
    }
}

/// A type of Open MPI that the proof examines, and ddtc's compiled code for the same type.
struct Subject {
    made: Made,
    committed: Committed,
    size: u64,
}

impl Subject {
    /// Decodes and compiles a type with an engine that only the proof uses. The engine of the
    /// process is not used, because the report takes the costs of that engine as those of the
    /// program's types.
    fn compile(host: &'static Host, engine: &Engine, made: Made) -> Holds<Subject> {
        let mut types = Types::new(host, u64::MAX).ok_or("the ABI is not known")?;
        let t = types.decode(made.handle, None).map_err(|_| "a type was not decoded")?;
        let committed = engine.commit(&t).map_err(|_| "a type was not compiled")?;
        Ok(Subject { made, size: t.size() as u64, committed })
    }

    fn handle(&self) -> u64 {
        self.made.handle
    }

    /// Returns the number of bytes of memory from displacement 0 to the end of `count` instances.
    fn span(&self, count: u64) -> usize {
        let t = self.committed.datatype();
        (t.true_ub() + t.extent() * count as i64) as usize
    }
}

/// A layout of Open MPI's structures that is being proven.
struct Proof<'a> {
    functions: &'a Functions,
    layout: Layout,
    /// Address of the mover that Open MPI stores for non-contiguous types, in each direction.
    generic: [Option<u64>; 2],
}

/// Facts about Open MPI that the proof has found.
pub(crate) struct Proven {
    /// Addresses of Open MPI's generic movers, one for each direction.
    pub(crate) generic: [usize; 2],
    /// Meaning of the two counts of an element of Open MPI's descriptions of types; none if
    /// descriptions are not understood.
    pub(crate) order: Option<Order>,
}

/// Proves a layout of Open MPI's structures. The error is a text that says which fact did not hold.
pub(crate) fn prove(host: &'static Host, functions: &Functions, layout: Layout) -> Holds<Proven> {
    let words = [
        layout.flags,
        layout.size,
        layout.size_there,
        layout.datatype,
        layout.description,
        layout.count,
        layout.buffer,
        layout.mover,
        layout.placer,
        layout.moved,
    ];
    let inside = words.iter().all(|&at| at + 16 <= WITHIN) && layout.optimized + 24 <= TYPE_WITHIN;
    holds(inside, "an offset lies outside")?;
    holds(layout.size != layout.size_there, "the sizes at both ends have one offset")?;
    let int = host.handle(Named::Int).ok_or("there is no MPI_INT")?;
    let engine = Engine::new(runtime::engine().config().clone());
    let gapped = Subject::compile(host, &engine, Made::vector(host, [3, 2, 5], int)?)?;
    let mixed = Subject::compile(host, &engine, structure(host)?)?;
    // The instances of `looped` have elements of several sizes, so its description has a loop.
    let looped = Subject::compile(host, &engine, Made::vector(host, [4, 1, 2], mixed.handle())?)?;
    let dense = Made::vector(host, [1, 4, 4], int)?;
    holds((gapped.size, mixed.size, looped.size) == (24, 21, 84), "types have other sizes")?;
    retains(host, int)?;
    let mut proof = Proof { functions, layout, generic: [None; 2] };
    let subjects = [&gapped, &mixed, &looped];
    for direction in Direction::BOTH {
        proof.prepares(direction, &subjects, dense.handle)?;
        proof.calls(direction, &gapped)?;
    }
    let [Some(sends), Some(receives)] = proof.generic else { return Err("no mover is stored") };
    holds(sends != receives, "one mover both sends and receives")?;
    for subject in subjects {
        copies(subject)?;
        // SAFETY: the type is committed, has this size and lives as long as `subject`. `prepares`
        // has found the offset of its description.
        let cuts = unsafe { functions.cuts(&proof.layout, subject.handle(), subject.size, u64::MAX) };
        let cuts = cuts.ok_or("the description of a type does not have the expected form")?;
        for direction in Direction::BOTH {
            let way = Way { direction, committed: &subject.committed, cuts: &cuts };
            proof.moves(subject, way)?;
            proof.clones(subject, way)?;
            proof.goes_back(subject, way)?;
        }
    }
    let order = order(host, functions, &engine, &subjects)?;
    Ok(Proven { generic: [sends as usize, receives as usize], order })
}

/// Returns the [`Order`] in which Open MPI's descriptions hold an element's two counts. Read in
/// that order, the description of each subject, and that of a type with other bounds, must mean the
/// same layout as the decoded type. Returns `None` if no order satisfies this.
fn order(
    host: &'static Host,
    functions: &Functions,
    engine: &Engine,
    subjects: &[&Subject],
) -> Holds<Option<Order>> {
    let Some(mixed) = subjects.get(1) else { return Ok(None) };
    let resized = Made::by(host, |t| {
        // SAFETY: `mixed` is a type of Open MPI, and `t` is the address of a handle that can be
        // written.
        host.f.type_create_resized.map(|f| unsafe { f(mixed.handle(), -24, 96, t.cast()) })
    })?;
    let resized = Subject::compile(host, engine, resized)?;
    let says = |subject: &Subject, order| {
        let t = subject.committed.datatype();
        // SAFETY: the type is a committed type of Open MPI that lives as long as `subject`.
        // `prepares` has found the offset of its description.
        let view = unsafe { view(subject.handle()) };
        let view = view.filter(|v| v.bounds == [t.size(), t.true_lb(), t.true_ub(), t.lb(), t.ub()]);
        let described = view.and_then(|view| datatype(&view, functions.sizes(), order));
        let described = described.and_then(|t| engine.commit(&t).ok());
        described.is_some_and(|described| described.shares_layout(&subject.committed))
    };
    let mut orders = Order::BOTH.into_iter();
    Ok(orders.find(|&order| subjects.iter().chain([&&resized]).all(|subject| says(subject, order))))
}

/// Checks that Open MPI deletes an attribute of a type only with the last reference to the type,
/// and that a request holds a reference to its type. So the value of a type's attribute exists
/// while a request of the type moves bytes.
fn retains(host: &'static Host, int: HandleWord) -> Holds {
    static DELETED: AtomicU32 = AtomicU32::new(0);
    unsafe extern "C-unwind" fn copy(
        _: HandleWord,
        _: c_int,
        _: *mut c_void,
        _: *mut c_void,
        _: *mut c_void,
        _: *mut c_int,
    ) -> c_int {
        0
    }
    unsafe extern "C-unwind" fn delete(_: HandleWord, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
        DELETED.fetch_add(1, Relaxed);
        0
    }
    let f = &host.f;
    let (Some(create), Some(free), Some(set)) = (f.type_create_keyval, f.type_free_keyval, f.type_set_attr)
    else {
        return Err("a function of attributes is missing");
    };
    let (Some(recv_init), Some(request_free)) = (host.counted.recv_init, f.request_free) else {
        return Err("a function of requests is missing");
    };
    let (mut keyval, mut request, mut memory) = (0, 0u64, [0u8; 64]);
    let made = Made::vector(host, [3, 2, 5], int)?;
    // SAFETY: the callbacks have the types of the MPI standard, and all results can be written.
    // `made` is a committed type, `memory` holds an instance of it, and the request is never
    // started.
    let (there, gone) = unsafe {
        let null = std::ptr::null_mut();
        holds(create(copy, delete, &raw mut keyval, null) == 0, "there is no keyval")?;
        let is_set = set(made.handle, keyval, null) == 0;
        let buffer = memory.as_mut_ptr().cast();
        let asked = recv_init(buffer, 1, made.handle, 0, 0, host.myself, (&raw mut request).cast()) == 0;
        let before = DELETED.load(Relaxed);
        // Dropping `made` frees the type, as a call of `MPI_Type_free` by the program does. Then
        // only the request still holds a reference to the type.
        drop(made);
        let there = is_set && asked && DELETED.load(Relaxed) == before;
        let freed = asked && request_free((&raw mut request).cast()) == 0;
        let _ = free(&raw mut keyval);
        (there, freed && DELETED.load(Relaxed) == before + 1)
    };
    holds(there, "a type that a request has is gone")?;
    holds(gone, "a type is not gone with its last request")
}

/// Checks Open MPI's function that copies instances of a type between two buffers: it reads from
/// its last argument, writes to the argument before it, and leaves the bytes that packing and
/// unpacking would leave.
fn copies(subject: &Subject) -> Holds {
    let copy = called!(COPY, Copy).ok_or("a function that copies is missing")?;
    let (from, mut to) = (pattern(subject.span(COUNT)), vec![0x5a; subject.span(COUNT)]);
    let (mut packed, mut expected) = (vec![0; (subject.size * COUNT) as usize], to.clone());
    let moved = subject.committed.pack(&from, 0, COUNT, &mut packed).is_ok()
        && subject.committed.unpack(&packed, 0, COUNT, &mut expected).is_ok();
    // SAFETY: the type is committed, and both buffers have memory for `COUNT` instances.
    let code = unsafe {
        let (to, from) = (to.as_mut_ptr().cast(), from.as_ptr().cast_mut().cast());
        copy(subject.handle() as *const c_void, COUNT as usize, to, from)
    };
    holds(moved && code == 0 && to == expected, "a copy leaves other bytes")
}

/// Makes the type `{int, 2 doubles, char}` with gaps. The first gap lies before the `int`.
fn structure(host: &'static Host) -> Holds<Made> {
    let named = [Named::Int, Named::Double, Named::Char].map(|named| host.handle(named));
    let [Some(int), Some(double), Some(char)] = named else { return Err("a named type is missing") };
    let (lengths, places, types) = ([1, 2, 1], [4isize, 16, 40], [int, double, char]);
    let (lengths, places, types) = (lengths.as_ptr(), places.as_ptr(), types.as_ptr());
    Made::by(host, |t| {
        // SAFETY: each array has three elements, and `t` is the address of a handle that can be
        // written.
        host.f.type_create_struct.map(|f| unsafe { f(3, lengths, places, types.cast(), t.cast()) })
    })
}

/// Returns the bytes that a buffer of the proof holds before they are moved. Each byte differs from
/// its neighbours.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 37 + i / 251 + 11) as u8).collect()
}

/// Lengths of the pieces in which the proof moves bytes. Most are odd, and one is 40 bytes long.
const PIECES: [usize; 7] = [5, 17, 1, 40, 2, 23, 9];

impl Proof<'_> {
    fn own(&self, direction: Direction) -> Holds<Own> {
        Own::new(self.functions, direction).ok_or("a convertor was not made")
    }

    /// Returns the 64-bit word at an offset of a convertor.
    fn word(&self, own: &Own, offset: u32) -> u64 {
        // SAFETY: a convertor of Open MPI has at least [`WITHIN`] bytes, as `Functions::find` has
        // checked, and `prove` has found that all offsets lie within these.
        unsafe { own.convertor().word(offset) }
    }

    fn flags(&self, own: &Own) -> u32 {
        // SAFETY: as for `word`, the offset of the flags lies within the convertor.
        unsafe { own.convertor().flags(&self.layout) }
    }

    /// Checks that a convertor which Open MPI has prepared holds, at the expected offsets, the
    /// arguments of the preparation or values that follow from them. Does so for several types,
    /// counts and buffers. Also checks the flags of convertors that no mover serves, and finds the
    /// generic mover.
    fn prepares(&mut self, direction: Direction, subjects: &[&Subject], dense: u64) -> Holds {
        let (own, l) = (self.own(direction)?, self.layout);
        let memory = [0u8; 64];
        for (i, subject) in subjects.iter().enumerate() {
            for count in [7 + 6 * i as u64, 1009] {
                let buffer = memory.as_ptr().wrapping_add(5 * i + count as usize % 3);
                // SAFETY: the type is a committed type of Open MPI.
                unsafe {
                    self.functions.prepare(&own, direction, subject.handle(), count as usize, buffer)?;
                }
                let all = subject.size * count;
                let found = [l.size, l.size_there, l.datatype, l.description, l.count, l.buffer, l.moved];
                let expected = [
                    all,
                    all,
                    subject.handle(),
                    subject.handle() + u64::from(l.optimized),
                    count,
                    buffer.addr() as u64,
                    0,
                ];
                for (offset, expected) in found.into_iter().zip(expected) {
                    holds(
                        self.word(&own, offset) == expected,
                        "a word of a convertor has an unexpected value",
                    )?;
                }
                let flags = self.flags(&own) & !OF_TYPE;
                holds(
                    flags == l.fresh(direction == Direction::Pack),
                    "the flags of a convertor are unexpected",
                )?;
                holds(self.flags(&own) & NO_GAPS == 0, "a type with gaps has none")?;
                let mover = self.word(&own, l.mover);
                let known = *self.generic[direction as usize].get_or_insert(mover);
                holds(mover == known && mover != 0, "a non-contiguous type has another mover")?;
                let placer = self.functions.set_position as usize as u64;
                holds(
                    l.placer == 0 || self.word(&own, l.placer) == placer,
                    "another function sets the position of convertors",
                )?;
            }
        }
        let mover = self.generic[direction as usize].unwrap_or(0);
        let named = self.functions.generic[direction as usize] as u64;
        holds(named == 0 || named == mover, "the mover is not the generic one")?;
        let object = object_of(mover as *const _);
        holds(self.functions.are_of(&object), "the mover is another library's")?;
        // SAFETY: the type is a committed type of Open MPI.
        unsafe { self.functions.prepare(&own, direction, dense, 3, memory.as_ptr())? };
        let kind = l.fresh(direction == Direction::Pack) & !l.bits.sized | l.bits.plain;
        let flags = self.flags(&own);
        let is_dense = flags & !OF_TYPE & !l.bits.sized == kind && flags & NO_GAPS != 0;
        holds(is_dense, "the flags for types without gaps are unexpected")?;
        // A convertor that is prepared for no bytes keeps the mover of an earlier request. Only its
        // flags show that the mover does not serve it.
        let other = subjects.first().map_or(dense, |subject| subject.handle());
        for datatype in [dense, other] {
            // SAFETY: the type is a committed type of Open MPI, and no bytes are to be moved.
            unsafe { self.functions.prepare(&own, direction, datatype, 0, memory.as_ptr())? };
            let flags = self.flags(&own);
            let is_over = flags & l.bits.completed != 0 && flags & NO_GAPS != 0;
            holds(is_over, "the flags for types without bytes are unexpected")?;
        }
        Ok(())
    }

    /// Checks that Open MPI calls the function whose address is stored as a convertor's mover, and
    /// passes it the convertor and buffers that Open MPI was given.
    fn calls(&self, direction: Direction, subject: &Subject) -> Holds {
        const ANSWER: c_int = 0x0dd7;
        unsafe extern "C" fn witness(
            convertor: Convertor,
            buffers: *mut libc::iovec,
            n: *mut u32,
            bytes: *mut usize,
        ) -> c_int {
            // SAFETY: Open MPI's function gets valid addresses from `calls` and passes them on.
            unsafe {
                *bytes = convertor.0.addr() ^ buffers.addr();
                *n += 1;
            }
            ANSWER
        }
        let (own, mut memory) = (self.own(direction)?, vec![0u8; subject.span(3)]);
        // SAFETY: the type is committed, and `memory` has room for three instances. `prepares` has
        // found the offset at which the convertor's mover is replaced. `witness` has the type of a
        // mover.
        let found = unsafe {
            self.functions.prepare(&own, direction, subject.handle(), 3, memory.as_mut_ptr())?;
            own.convertor().put(self.layout.mover, (witness as *const ()).addr() as u64);
            let mut buffer = libc::iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: 8 };
            let (mut n, mut bytes, buffers) = (1u32, 0usize, &raw mut buffer);
            let answer =
                self.functions.by[direction as usize](own.convertor(), buffers, &raw mut n, &raw mut bytes);
            (answer, n, bytes ^ own.convertor().0.addr() == buffers.addr())
        };
        holds(found == (ANSWER, 2, true), "another function is called")
    }

    /// Prepares a convertor for [`COUNT`] instances in `memory`.
    fn prepared(&self, subject: &Subject, way: Way<'_>, memory: &mut [u8]) -> Holds<Own> {
        let own = self.own(way.direction)?;
        // SAFETY: the type is committed and lives as long as `subject`.
        unsafe {
            self.functions.prepare(&own, way.direction, subject.handle(), COUNT as usize, memory.as_ptr())?;
        }
        Ok(own)
    }

    /// Makes one call of Open MPI's mover, or of ddtc's if `ours` is true. The buffers of the call
    /// have these lengths and lie one after the other in `packed`.
    fn step(&self, own: &Own, way: Way<'_>, ours: bool, packed: &mut [u8], lengths: &[usize]) -> Holds<Step> {
        let mut at = 0;
        let mut buffers: Vec<libc::iovec> = Vec::new();
        for &length in lengths {
            let room = packed.get_mut(at..at + length).ok_or("a buffer is too short")?;
            buffers.push(libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: length });
            at += length;
        }
        let (mut n, mut bytes, list) = (buffers.len() as u32, usize::MAX, buffers.as_mut_ptr());
        // SAFETY: the convertor is prepared and not complete, its instances lie in memory that the
        // caller keeps, and the buffers lie in `packed`.
        let result = unsafe {
            if ours {
                advance(&self.layout, own.convertor(), way, list, &raw mut n, &raw mut bytes)
            } else {
                self.functions.by[way.direction as usize](own.convertor(), list, &raw mut n, &raw mut bytes)
            }
        };
        let lengths = buffers.iter().take(n as usize).map(|buffer| buffer.iov_len).collect();
        let (moved, flags) = (self.word(own, self.layout.moved), self.flags(own));
        Ok(Step { result, n, bytes, lengths, moved, flags })
    }

    /// Sets the position of a convertor by Open MPI's function, or by ddtc's if `ours` is true.
    /// Returns the position that this function has chosen.
    fn set_position(&self, own: &Own, way: Way<'_>, ours: bool, position: usize) -> usize {
        let mut position = position;
        // SAFETY: the convertor is prepared and not complete, and the position lies within its
        // bytes.
        unsafe {
            if ours {
                set_position(&self.layout, own.convertor(), way, &raw mut position);
            } else {
                (self.functions.set_position)(own.convertor(), &raw mut position);
            }
        }
        position
    }

    /// Checks that Open MPI's mover and ddtc's leave equal results after calls with equal
    /// arguments.
    fn moves(&self, subject: &Subject, way: Way<'_>) -> Holds {
        let total = (subject.size * COUNT) as usize;
        let places = [None, Some(1), Some(total / 2 + 3), Some(7), Some(total - 1), Some(total / 3)];
        for (round, from) in places.into_iter().enumerate() {
            let sends = way.direction == Direction::Pack;
            let memory = if sends { pattern(subject.span(COUNT)) } else { vec![0x5a; subject.span(COUNT)] };
            let stream = if sends { vec![0xa5; total + 256] } else { pattern(total + 256) };
            let (mut users, mut streams) = ([memory.clone(), memory], [stream.clone(), stream]);
            let [theirs, ours] = &mut users;
            let convertors = [self.prepared(subject, way, theirs)?, self.prepared(subject, way, ours)?];
            let mut at = [0usize; 2];
            if let Some(from) = from {
                at = [false, true]
                    .map(|ours| self.set_position(&convertors[usize::from(ours)], way, ours, from));
                holds(at[0] == at[1], "a position differs from the expected one")?;
                holds(
                    self.word(&convertors[0], self.layout.moved) == at[0] as u64,
                    "the position in a convertor differs from the expected one",
                )?;
            }
            for turn in 0..400 {
                let piece = PIECES[(turn + round) % PIECES.len()];
                let lengths = if turn % 3 == 2 { vec![piece, 3, piece + 1] } else { vec![piece] };
                let [host, own] = &convertors;
                let theirs = self.step(host, way, false, &mut streams[0][at[0]..], &lengths)?;
                // The number of bytes that Open MPI has counted is checked before ddtc's mover is
                // called, because ddtc's mover would write its own number at this offset even if
                // the offset were wrong.
                holds(
                    theirs.moved == (at[0] + theirs.bytes) as u64,
                    "the count of bytes in a convertor is unexpected",
                )?;
                let ours = self.step(own, way, true, &mut streams[1][at[1]..], &lengths)?;
                holds(theirs == ours, "ddtc's mover and the MPI library's end at different places")?;
                at = [at[0] + theirs.bytes; 2];
                if theirs.result != 0 {
                    break;
                }
                if turn == 4 {
                    let to = total * 2 / 5 + round;
                    at = [false, true].map(|ours| {
                        let own = &convertors[usize::from(ours)];
                        // The position is set to 0 first, as in `give_back`.
                        self.set_position(own, way, ours, 0);
                        self.set_position(own, way, ours, to)
                    });
                    holds(at[0] == at[1], "a position differs from the expected one")?;
                }
            }
            holds(at[0] == total, "bytes are left")?;
            holds(
                self.flags(&convertors[0]) & self.layout.bits.completed != 0,
                "a convertor is not complete",
            )?;
            holds(
                users[0] == users[1] && streams[0] == streams[1],
                "ddtc's mover and the MPI library's leave different bytes",
            )?;
        }
        Ok(())
    }

    /// Checks that a clone of a convertor has the mover of its original, and that ddtc's mover
    /// continues in the clone from the position that is set there.
    fn clones(&self, subject: &Subject, way: Way<'_>) -> Holds {
        let (total, l) = ((subject.size * COUNT) as usize, &self.layout);
        let sends = way.direction == Direction::Pack;
        let mut memory = if sends { pattern(subject.span(COUNT)) } else { vec![0; subject.span(COUNT)] };
        let mut stream = if sends { vec![0; 2 * total] } else { pattern(2 * total) };
        let (first, second) = (self.prepared(subject, way, &mut memory)?, self.own(way.direction)?);
        let step = self.step(&first, way, true, &mut stream, &[total / 2])?;
        // SAFETY: both are convertors of Open MPI, and the first is prepared.
        let code = unsafe { (self.functions.clone)(first.convertor(), second.convertor(), 0) };
        holds(code == 0, "a convertor was not cloned")?;
        let same = [l.size, l.datatype, l.description, l.count, l.buffer, l.mover, l.placer];
        let same = same.into_iter().all(|offset| self.word(&first, offset) == self.word(&second, offset));
        holds(same && self.flags(&first) == self.flags(&second), "a clone differs from its original")?;
        holds(self.word(&second, l.moved) == u64::MAX, "a clone without a stack has a position")?;
        let at = self.set_position(&second, way, true, step.bytes);
        holds(at == step.bytes, "a position differs from the expected one")?;
        let rest =
            self.step(&second, way, true, stream.get_mut(at..).ok_or("a step is too long")?, &[total])?;
        holds(rest.result == 1 && at + rest.bytes == total, "a clone leaves bytes")?;
        self.whole(subject, way, &memory, &stream)
    }

    /// Checks that Open MPI's mover continues correctly with a convertor that ddtc's mover has
    /// advanced and that was then given back to Open MPI's mover.
    fn goes_back(&self, subject: &Subject, way: Way<'_>) -> Holds {
        let total = (subject.size * COUNT) as usize;
        let sends = way.direction == Direction::Pack;
        for part in [total / 2 + 1, 9, total - 2] {
            let mut memory = if sends { pattern(subject.span(COUNT)) } else { vec![0; subject.span(COUNT)] };
            let mut stream = if sends { vec![0; 2 * total] } else { pattern(2 * total) };
            let own = self.prepared(subject, way, &mut memory)?;
            let step = self.step(&own, way, true, &mut stream, &[part])?;
            let generic = self.generic[way.direction as usize].ok_or("no mover is stored")?;
            // SAFETY: the convertor is prepared, nobody else uses it, and `generic` and
            // `set_position` are Open MPI's functions for it.
            unsafe {
                give_back(&self.layout, own.convertor(), generic as usize, self.functions.set_position);
            }
            let at = step.bytes;
            let rest =
                self.step(&own, way, false, stream.get_mut(at..).ok_or("a step is too long")?, &[total])?;
            holds(rest.result == 1 && at + rest.bytes == total, "the MPI library leaves bytes")?;
            self.whole(subject, way, &memory, &stream)?;
        }
        Ok(())
    }

    /// Checks that all bytes of [`COUNT`] instances were moved between `memory` and `stream`.
    fn whole(&self, subject: &Subject, way: Way<'_>, memory: &[u8], stream: &[u8]) -> Holds {
        let total = (subject.size * COUNT) as usize;
        let mut packed = vec![0; total];
        let expected = stream.get(..total).ok_or("a stream is too short")?;
        let packs = way.committed.pack(memory, 0, COUNT, &mut packed).is_ok();
        holds(packs && packed == expected, "other bytes were moved")
    }
}

/// Number of instances that each convertor of the proof packs or unpacks.
const COUNT: u64 = 3;

/// Results of one call of a mover. The proof compares the results of Open MPI's mover with those of
/// ddtc's mover.
#[derive(PartialEq, Eq)]
struct Step {
    result: c_int,
    n: u32,
    bytes: usize,
    lengths: Vec<usize>,
    moved: u64,
    flags: u32,
}

/// For tests: makes the proof of a layout with these offsets, given in the order of the fields of
/// [`Layout`]. Returns the reason why the proof refuses the layout; null if it succeeds.
///
/// # Safety
/// `offsets` must point to [`OFFSETS`] numbers, and MPI must be initialized.
#[cfg(debug_assertions)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ddtc_hook_refuses(offsets: *const [u32; OFFSETS]) -> *const std::ffi::c_char {
    let (Some(host), Some(_inside)) = (crate::host::host(), crate::reentrancy::Inside::enter()) else {
        return c"no MPI library".as_ptr();
    };
    // SAFETY: the caller promises [`OFFSETS`] numbers.
    let layout = Layout::planted(unsafe { *offsets });
    let proof = crate::guard::guard(|| prove(host, &Functions::find(&layout)?, layout).map(|_| ()));
    match proof.unwrap_or(Err("a panic")) {
        Ok(()) => std::ptr::null(),
        Err(why) => std::ffi::CString::new(why).unwrap_or_default().into_raw(),
    }
}
