//! Functions of Open MPI for the proof and for reading descriptions, and convertors of our own.

use std::ffi::{c_int, c_void};

use ddtc::kind::Direction;
use ddtc::process::{Awaited, Mutex};

use super::host::{self, Mover, PREPARE_FOR_RECV, PREPARE_FOR_SEND, Position, Prepare, called, placer};
use super::layout::{Convertor, Layout, WITHIN};
use crate::cuts::{Cuts, Entry, KINDS};
use crate::loader::object_of;
use crate::scopes::behind;

/// Architecture, mode; a new convertor.
type Create = unsafe extern "C" fn(i32, i32) -> *mut c_void;
/// Source, destination, whether with its stack.
type Clone = unsafe extern "C" fn(Convertor, Convertor, i32) -> c_int;

/// Where a class says how many bytes its objects have, behind its name, its parent, two functions, two numbers and two arrays.
const CLASS_BYTES: usize = 56;
/// Bytes that a convertor has at most: more, and it is another.
const MOST: usize = 1024;
/// Entries of a description that are read.
const LONGEST: u64 = 1 << 22;

/// Functions and facts of the host.
pub(crate) struct Functions {
    create: Create,
    pub(crate) prepare: [Prepare; 2],
    pub(crate) set_position: Position,
    /// Pack and unpack: they call a convertor's mover.
    pub(crate) by: [Mover; 2],
    pub(crate) clone: Clone,
    /// The generic movers by their names, 0 where these are hidden.
    pub(crate) generic: [usize; 2],
    architecture: i32,
    sizes: [u64; KINDS],
}

macro_rules! function {
    ($name:literal, $type:ty) => {{
        let found = behind($name);
        // SAFETY: null is none, and any other address the host's function of that name, of which Open MPI's headers say the type.
        unsafe { std::mem::transmute::<*mut c_void, Option<$type>>(found) }.ok_or(concat!("there is no ", $name))
    }};
}

/// Functions of the host, if the door may open.
pub(super) static FOUND: Awaited<Option<Functions>> = Awaited::new();

/// Those of an open door.
pub(crate) fn functions() -> Option<&'static Functions> {
    FOUND.get().and_then(Option::as_ref)
}

impl Functions {
    /// Those of the host.
    pub(crate) fn find(layout: &Layout) -> Result<Functions, &'static str> {
        let there = "a function of convertors is missing";
        let (architecture, sizes) = (behind("opal_local_arch"), behind("opal_datatype_local_sizes"));
        let class = behind("opal_convertor_t_class");
        if architecture.is_null() || sizes.is_null() || class.is_null() {
            return Err("a fact about datatypes is hidden");
        }
        // SAFETY: data of the host's by their names: a number, sizes of all basic types, a class,
        // which are at least as long as what is read.
        let (architecture, sizes, bytes) = unsafe {
            (
                *architecture.cast::<i32>(),
                *sizes.cast::<[u64; KINDS]>(),
                *class.byte_add(CLASS_BYTES).cast::<usize>(),
            )
        };
        if !(WITHIN as usize..=MOST).contains(&bytes) {
            return Err("convertors have another size");
        }
        Ok(Functions {
            create: function!("opal_convertor_create", Create)?,
            prepare: [
                called!(PREPARE_FOR_SEND, Prepare).ok_or(there)?,
                called!(PREPARE_FOR_RECV, Prepare).ok_or(there)?,
            ],
            set_position: placer(layout).ok_or(there)?,
            by: [function!("opal_convertor_pack", Mover)?, function!("opal_convertor_unpack", Mover)?],
            clone: function!("opal_convertor_clone", Clone)?,
            generic: layout.generic.map(|name| behind(name).addr()),
            architecture,
            sizes,
        })
    }

    /// Bytes of the basic types, by their kinds.
    pub(crate) fn sizes(&self) -> &[u64; KINDS] {
        &self.sizes
    }

    /// Whether a file has all the functions: no tool stands before one of them.
    pub(crate) fn are_of(&self, object: &str) -> bool {
        let functions = [
            self.create as *const c_void,
            self.prepare[0] as *const c_void,
            self.prepare[1] as *const c_void,
            self.set_position as *const c_void,
            self.by[0] as *const c_void,
            self.by[1] as *const c_void,
            self.clone as *const c_void,
        ];
        functions.into_iter().all(|function| object_of(function) == object)
    }

    /// Prepares a convertor by the host's own function.
    ///
    /// # Safety
    /// `datatype` must be a committed type of the host.
    pub(crate) unsafe fn prepare(
        &self,
        own: &Own,
        direction: Direction,
        datatype: u64,
        count: usize,
        buffer: *const u8,
    ) -> Result<(), &'static str> {
        // SAFETY: as the caller promises; the convertor is nobody else's. The buffer is kept, not touched.
        let code = unsafe {
            let prepare = self.prepare[direction as usize];
            prepare(own.convertor(), datatype as *const c_void, count, buffer.cast())
        };
        if code == 0 { Ok(()) } else { Err("a convertor was not prepared") }
    }

    /// Where the elements of a type's description end, as the host itself ends them wherever it was asked.
    ///
    /// # Safety
    /// `datatype` must be a committed type of the host, of `size` bytes, and `layout` what its memory is like.
    pub(crate) unsafe fn cuts(&self, layout: &Layout, datatype: u64, size: u64, asked: u64) -> Option<Cuts> {
        // SAFETY: as the caller promises: how many entries there is room for, how many there are, where they are.
        let [room, used, entries] = unsafe { *((datatype + u64::from(layout.optimized)) as *const [u64; 3]) };
        if used == 0 || used > room || used > LONGEST || entries % 8 != 0 || entries == 0 {
            return None;
        }
        // SAFETY: as many entries as it has.
        let entries = unsafe { std::slice::from_raw_parts(entries as *const Entry, used as usize) };
        let cuts = Cuts::of(entries, &self.sizes, size)?;
        let own = Own::new(self, Direction::Pack)?;
        // SAFETY: as the caller promises.
        unsafe { self.prepare(&own, Direction::Pack, datatype, 1, std::ptr::from_ref(&own).cast()) }.ok()?;
        // Up to so many positions, the last one too; few where each takes long, since the host counts entries from the first. It is sent back there:
        // where 5.0.11 was asked to go on from amid an element, the heap was corrupted.
        let asked = if used > MANY { 2 } else { asked };
        let step = (size / asked).max(1);
        let ends_alike = (1..size).step_by(step as usize).chain([size - 1]).all(|position| {
            let (mut start, mut theirs) = (0, position as usize);
            // SAFETY: a prepared convertor; positions inside its bytes.
            unsafe {
                (self.set_position)(own.convertor(), &raw mut start);
                if position > 0 {
                    (self.set_position)(own.convertor(), &raw mut theirs);
                }
            }
            theirs as u64 == cuts.before(position)
        });
        ends_alike.then_some(cuts)
    }
}

/// Entries of a description from which few positions are asked for.
const MANY: u64 = 256;

/// Convertors of our own that are not used now, of each direction, which they keep: the host has no function that frees one or makes it new.
static FREE: [Mutex<Vec<usize>>; 2] = [const { Mutex::new(Vec::new()) }; 2];

/// A convertor of our own.
pub(crate) struct Own(Convertor, Direction);

// SAFETY: the host keeps nothing about threads in a convertor, and one of our own has one user at a time.
unsafe impl Send for Own {}

impl Own {
    pub(crate) fn new(functions: &Functions, direction: Direction) -> Option<Own> {
        let free = FREE[direction as usize].lock().pop();
        let convertor = match free {
            Some(address) => address as *mut c_void,
            // SAFETY: a function of the host that makes one for its own architecture.
            None => unsafe { (functions.create)(functions.architecture, 0) },
        };
        if convertor.is_null() { None } else { Some(Own(Convertor(convertor), direction)) }
    }

    pub(crate) fn convertor(&self) -> Convertor {
        self.0
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        FREE[self.1 as usize].lock().push(self.0.0.addr());
    }
}

/// Shuts the door and forgets the library's functions and convertors, because the library has no
/// user any more and may be unloaded.
pub(crate) fn close() {
    host::close();
    // Nobody frees them: they may be gone with the library.
    FREE.iter().for_each(|free| free.lock().clear());
}
