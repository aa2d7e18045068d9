//! Open MPI's functions that the proof and the reading of descriptions call, and convertors of this
//! library's own.

use std::ffi::{c_int, c_void};

use ddtc::kind::Direction;
use ddtc::process::{Awaited, Mutex};

use super::host::{self, Mover, PREPARE_FOR_RECV, PREPARE_FOR_SEND, Position, Prepare, called, placer};
use super::layout::{Convertor, Layout, WITHIN};
use crate::cuts::{Cuts, Entry, KINDS};
use crate::loader::object_of;
use crate::scopes::behind;

/// Function that makes a convertor. Arguments: architecture, mode.
type Create = unsafe extern "C" fn(i32, i32) -> *mut c_void;
/// Function that clones a convertor. Arguments: source, destination, whether the stack is cloned
/// too.
type Clone = unsafe extern "C" fn(Convertor, Convertor, i32) -> c_int;

/// Offset, in Open MPI's structure of a class, of the number of bytes of the class's objects.
/// Before it are the name, the parent, two functions, two numbers and two arrays.
const CLASS_BYTES: usize = 56;
/// Maximum bytes of a convertor. A longer one is not the structure that [`Layout`] describes.
const MOST: usize = 1024;
/// Maximum number of entries of a description whose elements are read.
const LONGEST: u64 = 1 << 22;

/// Functions and facts of Open MPI.
pub(crate) struct Functions {
    create: Create,
    pub(crate) prepare: [Prepare; 2],
    pub(crate) set_position: Position,
    /// Functions that pack and unpack, in this order: they call a convertor's mover.
    pub(crate) by: [Mover; 2],
    pub(crate) clone: Clone,
    /// Addresses of the generic movers, found by their names; 0 if these symbols are hidden.
    pub(crate) generic: [usize; 2],
    architecture: i32,
    sizes: [u64; KINDS],
}

macro_rules! function {
    ($name:literal, $type:ty) => {{
        let found = behind($name);
        // SAFETY: null becomes `None`. Any other address is that of Open MPI's function of that
        // name, which has this type in Open MPI's headers.
        unsafe { std::mem::transmute::<*mut c_void, Option<$type>>(found) }
            .ok_or(concat!("there is no ", $name))
    }};
}

/// Result of the proof, which a process makes at most once. None: the proof has failed, and the
/// hook stays disabled.
pub(super) static FOUND: Awaited<Option<Functions>> = Awaited::new();

/// Returns Open MPI's functions, if the proof has succeeded.
pub(crate) fn functions() -> Option<&'static Functions> {
    FOUND.get().and_then(Option::as_ref)
}

impl Functions {
    /// Looks up the functions and reads the facts.
    ///
    /// # Errors
    /// A text that says which function or fact is missing or different.
    pub(crate) fn find(layout: &Layout) -> Result<Functions, &'static str> {
        let there = "a function of convertors is missing";
        let (architecture, sizes) = (behind("opal_local_arch"), behind("opal_datatype_local_sizes"));
        let class = behind("opal_convertor_t_class");
        if architecture.is_null() || sizes.is_null() || class.is_null() {
            return Err("a fact about datatypes is hidden");
        }
        // SAFETY: the symbols of these names in Open MPI are a number of 32 bits, an array with the
        // sizes of all basic types, and a class. All are at least as long as the part that is read.
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

    /// Returns the bytes of each basic type, by its kind.
    pub(crate) fn sizes(&self) -> &[u64; KINDS] {
        &self.sizes
    }

    /// Returns true if the object file `object` has all the functions, so that no tool has replaced
    /// one of them.
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

    /// Prepares a convertor by Open MPI's own function.
    ///
    /// # Safety
    /// `datatype` must be a committed type of Open MPI.
    pub(crate) unsafe fn prepare(
        &self,
        own: &Own,
        direction: Direction,
        datatype: u64,
        count: usize,
        buffer: *const u8,
    ) -> Result<(), &'static str> {
        // SAFETY: the caller promises a committed type, and nobody else uses the convertor of an
        // [`Own`]. Open MPI stores the buffer's address and does not read or write the buffer.
        let code = unsafe {
            let prepare = self.prepare[direction as usize];
            prepare(own.convertor(), datatype as *const c_void, count, buffer.cast())
        };
        if code == 0 { Ok(()) } else { Err("a convertor was not prepared") }
    }

    /// Returns where the elements of a type's description end, if Open MPI agrees: a convertor is
    /// set to about `asked` positions, and Open MPI must round each down to the expected end of an
    /// element. `None` if one position differs, or if the description is not understood.
    ///
    /// # Safety
    /// `datatype` must be a committed type of Open MPI, of `size` bytes, and `layout` the layout of
    /// its memory.
    pub(crate) unsafe fn cuts(&self, layout: &Layout, datatype: u64, size: u64, asked: u64) -> Option<Cuts> {
        // SAFETY: the caller promises that the header of the type's description is at this offset:
        // number of entries allocated, number of entries used, address of the entries.
        let [room, used, entries] = unsafe { *((datatype + u64::from(layout.optimized)) as *const [u64; 3]) };
        if used == 0 || used > room || used > LONGEST || entries % 8 != 0 || entries == 0 {
            return None;
        }
        // SAFETY: the description has `used` entries at this address, and the type owns them.
        let entries = unsafe { std::slice::from_raw_parts(entries as *const Entry, used as usize) };
        let cuts = Cuts::of(entries, &self.sizes, size)?;
        let own = Own::new(self, Direction::Pack)?;
        // SAFETY: the caller promises a committed type.
        unsafe { self.prepare(&own, Direction::Pack, datatype, 1, std::ptr::from_ref(&own).cast()) }.ok()?;
        // The positions are about evenly spaced, and the last one is `size - 1`. Open MPI counts
        // entries from the first one, so a position in a long description takes long, and fewer are
        // tried there. Before each position the convertor is sent back to the beginning: when
        // 5.0.11 was asked to go on from the middle of an element, the heap was corrupted.
        let asked = if used > MANY { 2 } else { asked };
        let step = (size / asked).max(1);
        let ends_alike = (1..size).step_by(step as usize).chain([size - 1]).all(|position| {
            let (mut start, mut theirs) = (0, position as usize);
            // SAFETY: the convertor was prepared above, and both positions lie within its bytes.
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

/// Number of entries of a description above which only 3 positions are tried.
const MANY: u64 = 256;

/// Addresses of convertors of this library's own that are not in use, for each direction. A
/// convertor is used for one direction only, and never freed, because Open MPI has no function that
/// frees a convertor or resets it.
static FREE: [Mutex<Vec<usize>>; 2] = [const { Mutex::new(Vec::new()) }; 2];

/// A convertor of this library's own, and its direction.
pub(crate) struct Own(Convertor, Direction);

// SAFETY: Open MPI stores nothing about threads in a convertor, and an `Own` has one user at a
// time.
unsafe impl Send for Own {}

impl Own {
    pub(crate) fn new(functions: &Functions, direction: Direction) -> Option<Own> {
        let free = FREE[direction as usize].lock().pop();
        let convertor = match free {
            Some(address) => address as *mut c_void,
            // SAFETY: Open MPI's function makes a convertor for an architecture, here that of this
            // process, which was read from Open MPI's `opal_local_arch`.
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

/// Disables the hook and forgets this library's convertors and the addresses that were looked up in
/// [`host`], because Open MPI has no user any more and may be unloaded. [`FOUND`] keeps its
/// functions: if Open MPI gets a user again, the hook is enabled without another proof.
pub(crate) fn close() {
    host::close();
    // The convertors are not freed: their memory may be gone with the library.
    FREE.iter().for_each(|free| free.lock().clear());
}
