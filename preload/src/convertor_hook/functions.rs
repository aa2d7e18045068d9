//! The functions of Open MPI that the proof ([`super::proof`]) and the reading of Open MPI's
//! descriptions of types call, and ddtc's own convertors for these calls.

use std::ffi::{c_int, c_void};

use ddtc::internal::kind::Direction;
use ddtc::internal::process::{Awaited, Mutex};

use super::host::{self, Mover, PREPARE_FOR_RECV, PREPARE_FOR_SEND, Position, Prepare, called, placer};
use super::layout::{Convertor, Layout, WITHIN};
use crate::cuts::{Cuts, Entry, KINDS};
use crate::loader::object_of;
use crate::scopes::after_ours;

/// Type of Open MPI's function that makes a convertor. Arguments: architecture, mode.
type Create = unsafe extern "C" fn(i32, i32) -> *mut c_void;
/// Type of Open MPI's function that clones a convertor. Arguments: source, destination, whether the
/// stack of the convertor is cloned too.
type Clone = unsafe extern "C" fn(Convertor, Convertor, i32) -> c_int;

/// Offset, in Open MPI's structure of a class, of the number of bytes of an object of the class.
/// Before this offset are the name, the parent, two functions, two numbers and two arrays.
const CLASS_BYTES: usize = 56;
/// Maximum number of bytes of a convertor of Open MPI. A longer convertor is not the structure that
/// [`Layout`] describes.
const MAX_CONVERTOR_BYTES: usize = 1024;
/// Maximum number of entries in Open MPI's description of a type. The elements of a longer
/// description are not read.
const MAX_DESCRIPTION_ENTRIES: u64 = 1 << 22;

/// Functions of Open MPI for convertors, and facts about its basic types.
pub(crate) struct Functions {
    create: Create,
    pub(crate) prepare: [Prepare; 2],
    pub(crate) set_position: Position,
    /// Open MPI's functions that pack and unpack, in this order. They call the mover of a
    /// convertor.
    pub(crate) by: [Mover; 2],
    pub(crate) clone: Clone,
    /// Addresses of Open MPI's generic movers for packing and unpacking, found by their names; 0 if
    /// these symbols are hidden.
    pub(crate) generic: [usize; 2],
    architecture: i32,
    sizes: [u64; KINDS],
}

macro_rules! function {
    ($name:literal, $type:ty) => {{
        let found = after_ours($name);
        // SAFETY: a null address becomes `None`. Any other address is that of Open MPI's function
        // of that name, which has this type in Open MPI's headers.
        unsafe { std::mem::transmute::<*mut c_void, Option<$type>>(found) }
            .ok_or(concat!("there is no ", $name))
    }};
}

/// Result of the proof that the convertor hook works with this Open MPI. A process makes the proof
/// at most once. The value is `None` if the proof has failed, and the hook then stays disabled.
pub(super) static FOUND: Awaited<Option<Functions>> = Awaited::new();

/// Returns Open MPI's functions if the proof of the convertor hook has succeeded, otherwise `None`.
pub(crate) fn functions() -> Option<&'static Functions> {
    FOUND.get().and_then(Option::as_ref)
}

impl Functions {
    /// Looks up the functions by their names, and reads the facts about Open MPI's basic types.
    ///
    /// # Errors
    /// The error is a text that names the function or fact which is missing or different from the
    /// expected one.
    pub(crate) fn find(layout: &Layout) -> Result<Functions, &'static str> {
        let there = "a function of convertors is missing";
        let (architecture, sizes) = (after_ours("opal_local_arch"), after_ours("opal_datatype_local_sizes"));
        let class = after_ours("opal_convertor_t_class");
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
        if !(WITHIN as usize..=MAX_CONVERTOR_BYTES).contains(&bytes) {
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
            generic: layout.generic.map(|name| after_ours(name).addr()),
            architecture,
            sizes,
        })
    }

    /// Returns the bytes of each basic type, by its kind.
    pub(crate) fn sizes(&self) -> &[u64; KINDS] {
        &self.sizes
    }

    /// Returns true if all the functions lie in the object file `object`. If a tool has replaced a
    /// function, that function lies in another object file.
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

    /// Prepares a convertor of ddtc for a pack or unpack, by Open MPI's own function.
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
        // SAFETY: the caller promises a committed type. An [`Own`] has one user at a time, so
        // nobody else uses its convertor. Open MPI stores the buffer's address and does not read or
        // write the buffer.
        let code = unsafe {
            let prepare = self.prepare[direction as usize];
            prepare(own.convertor(), datatype as *const c_void, count, buffer.cast())
        };
        if code == 0 { Ok(()) } else { Err("a convertor was not prepared") }
    }

    /// Returns the places where the elements of Open MPI's description of a type end, after a test
    /// that Open MPI uses the same places. For the test, a convertor is set to about `asked`
    /// positions, one after the other, and Open MPI must round each position down to the end of an
    /// element that was read from the description. Returns `None` if Open MPI rounds one position
    /// differently, or if the description is not understood.
    ///
    /// # Safety
    /// `datatype` must be a committed type of Open MPI, of `size` bytes, and `layout` the layout of
    /// its memory.
    pub(crate) unsafe fn cuts(&self, layout: &Layout, datatype: u64, size: u64, asked: u64) -> Option<Cuts> {
        // SAFETY: the caller promises the layout of the type, so the header of Open MPI's
        // description of the type is at this offset. The header consists of three words: number of
        // entries allocated, number of entries used, address of the entries.
        let [room, used, entries] = unsafe { *((datatype + u64::from(layout.optimized)) as *const [u64; 3]) };
        if used == 0 || used > room || used > MAX_DESCRIPTION_ENTRIES || entries % 8 != 0 || entries == 0 {
            return None;
        }
        // SAFETY: Open MPI's description has `used` entries at this address. They live as long as
        // the type, which owns them.
        let entries = unsafe { std::slice::from_raw_parts(entries as *const Entry, used as usize) };
        let cuts = Cuts::from_entries(entries, &self.sizes, size)?;
        let own = Own::new(self, Direction::Pack)?;
        // SAFETY: the caller promises a committed type.
        unsafe { self.prepare(&own, Direction::Pack, datatype, 1, std::ptr::from_ref(&own).cast()) }.ok()?;
        // The tested positions are about evenly spaced, and the last one is `size - 1`. To find a
        // position, Open MPI counts the entries of the description from the first entry on. That
        // takes long in a long description, so fewer positions are tested there. Before each test
        // the convertor is set back to position 0, because Open MPI 5.0.11 corrupted the heap when
        // it was set to a later position from the middle of an element.
        let asked = if used > MAX_ENTRIES_FOR_ALL_TESTS { 2 } else { asked };
        let step = (size / asked).max(1);
        let ends_agree = (1..size).step_by(step as usize).chain([size - 1]).all(|position| {
            let (mut start, mut theirs) = (0, position as usize);
            // SAFETY: the convertor was prepared above, and both positions lie within its packed
            // bytes.
            unsafe {
                (self.set_position)(own.convertor(), &raw mut start);
                if position > 0 {
                    (self.set_position)(own.convertor(), &raw mut theirs);
                }
            }
            theirs as u64 == cuts.before(position)
        });
        ends_agree.then_some(cuts)
    }
}

/// Number of entries in Open MPI's description of a type above which [`Functions::cuts`] tests only
/// 3 positions.
const MAX_ENTRIES_FOR_ALL_TESTS: u64 = 256;

/// Addresses of ddtc's own convertors that are not in use, for each direction. A convertor is used
/// for one direction only. It is never freed, because Open MPI has no function that frees or resets
/// a convertor.
static FREE: [Mutex<Vec<usize>>; 2] = [const { Mutex::new(Vec::new()) }; 2];

/// A convertor that ddtc has made for its own use, and the direction for which it is used.
pub(crate) struct Own(Convertor, Direction);

// SAFETY: Open MPI stores nothing about threads in a convertor, and an `Own` has one user at a
// time.
unsafe impl Send for Own {}

impl Own {
    pub(crate) fn new(functions: &Functions, direction: Direction) -> Option<Own> {
        let free = FREE[direction as usize].lock().pop();
        let convertor = match free {
            Some(address) => address as *mut c_void,
            // SAFETY: Open MPI's function makes a convertor for an architecture. The given
            // architecture is that of this process, because it was read from Open MPI's
            // `opal_local_arch`.
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

/// Disables the convertor hook and forgets ddtc's own convertors and the addresses that were looked
/// up in [`host`]. Called when Open MPI has no user (the world or a session) any more, because it
/// may then be unloaded. [`FOUND`] keeps the functions of Open MPI: if Open MPI gets a user again,
/// the hook is enabled without another proof.
pub(crate) fn disable_and_forget() {
    host::disable_and_forget();
    // The convertors are not freed, because their memory may be gone if Open MPI was unloaded.
    FREE.iter().for_each(|free| free.lock().clear());
}
