//! Which MPI libraries the process has, and for which of them a call is.
//!
//! A process nearly always has one MPI library, and a pointer to its description tells every call
//! so. While there are several, or none is in use, the pointer is null, and each call looks for the
//! library of its caller. Only calls for the library that was found first are converted; calls for
//! another one are handed on.
//!
//! No library is kept loaded: a plugin may bring its own, finalize it and unload it. Descriptions
//! are never freed. A copy that is loaded later has a description of its own, even where it lies at
//! the same addresses.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use ddtc::process::{Awaited, Mutex, is_inconsistent, when_inconsistent};

use super::Host;
use crate::atomic_ref::AtomicRef;
use crate::guard::end_by_panics;
use crate::loader::{Opened, loads};
use crate::reserve;
use crate::scopes::{Place, find_scope};
use crate::slow_path::unwatch_all;
use crate::spending;
use crate::users::World;

/// Points to [`FIRST`] while all calls are for the library that was found first, else null. Only these
/// two values are ever written, each at one place: so the linked code needs no more than a flag, and
/// has the addresses of the description's fields in its instructions.
static HOST: AtomicPtr<Host> = AtomicPtr::new(std::ptr::null_mut());
/// The description of another library while all calls are for that, else null.
static OTHER: AtomicRef<Host> = AtomicRef::none();

/// A description by which an inconsistent child hands calls on. Null until its first call.
static HANDING_ON: AtomicRef<Host> = AtomicRef::none();

/// The description of the library that was found first, whose calls alone are converted.
static FIRST: First = First { made: Awaited::new(), host: UnsafeCell::new(MaybeUninit::uninit()) };
/// The first library was unloaded.
static FIRST_IS_GONE: AtomicBool = AtomicBool::new(false);
/// Descriptions of other libraries, loaded or not, for which calls are handed on.
static OTHERS: Mutex<Vec<&'static Host>> = Mutex::new(Vec::new());

/// How often objects had been unloaded when the first library had its last user; [`IN_USE`] while
/// it has users.
static UNLOADS: AtomicU64 = AtomicU64::new(IN_USE);
const IN_USE: u64 = u64::MAX;

/// A description that is made once, in static memory.
struct First {
    made: Awaited<()>,
    host: UnsafeCell<MaybeUninit<Host>>,
}

// SAFETY: the memory is written before `made` is set, by the one thread that makes the value, and only
// read afterwards; a description may be read by any thread.
unsafe impl Sync for First {}

impl First {
    fn get(&'static self) -> Option<&'static Host> {
        self.made.get()?;
        // SAFETY: it is made.
        Some(unsafe { self.get_unchecked() })
    }

    /// # Safety
    /// The description must be made.
    #[inline]
    unsafe fn get_unchecked(&'static self) -> &'static Host {
        // SAFETY: as the caller promises; nobody writes it any more.
        unsafe { (*self.host.get()).assume_init_ref() }
    }

    fn get_or_init(&'static self, make: impl FnOnce() -> Host) -> &'static Host {
        self.made.get_or_init(|| {
            end_by_panics();
            let host = make();
            // A callback of `make` that forked may have made it before, in the child.
            if self.made.get().is_none() {
                // SAFETY: nobody reads it before it is made, and no other thread makes it.
                unsafe { (*self.host.get()).write(host) };
            }
        });
        // SAFETY: it is made.
        unsafe { self.get_unchecked() }
    }
}

/// Returns the library that a call is for; `None` while no MPI library is loaded.
#[inline]
pub(crate) fn host() -> Option<&'static Host> {
    known().or_else(other_or_of_caller)
}

/// Returns the library that was found first, if all calls are for it.
#[inline]
pub(crate) fn known() -> Option<&'static Host> {
    // SAFETY: null, or the description, which was made before the pointer was written.
    unsafe { HOST.load(Ordering::Acquire).as_ref() }
}

/// Returns the library that all calls are for, or else that of the caller.
#[cold]
fn other_or_of_caller() -> Option<&'static Host> {
    if is_inconsistent() {
        return handing_on();
    }
    // Where the initialization was not seen, this is one of the first calls after it.
    spending::begin();
    OTHER.load().or_else(host_of_caller)
}

/// Has all calls handed on from now on: this process is the child of a fork in the middle of a
/// section, so it must not look at anything that threads of its parent may have locked or half
/// changed. The fork handler calls this.
fn hand_on() {
    not_all_are_for_first();
    OTHER.store(None);
    unwatch_all();
}

/// Returns the description of the MPI library by which an inconsistent child hands its calls on. The
/// child makes it at its first call, which takes locks of the loader and of the allocator: glibc makes
/// both usable in a child.
fn handing_on() -> Option<&'static Host> {
    HANDING_ON.load().or_else(|| {
        let made: &'static Host =
            Box::leak(Box::new(Host::in_scope(&find_scope(c"PMPI_Type_commit")?, false)));
        // The search has noted what calls are watched for.
        unwatch_all();
        HANDING_ON.store(Some(made));
        Some(made)
    })
}

/// Notes that all calls are for the library that was found first.
#[inline(never)]
fn all_are_for_first() {
    HOST.store(FIRST.host.get().cast(), Ordering::Release);
}

/// Notes that calls may be for another library than the one that was found first.
#[inline(never)]
fn not_all_are_for_first() {
    HOST.store(std::ptr::null_mut(), Ordering::Release);
}

/// Notes for which library all calls are, if for one. [`OTHERS`] must be locked, so that two threads
/// do not write at once.
fn set_only(only: Option<&'static Host>) {
    let is_first = |only: &&Host| FIRST.get().is_some_and(|first| std::ptr::eq(first, *only));
    let other = only.filter(|only| !is_first(only));
    OTHER.store(other);
    if only.is_some_and(|only| is_first(&only)) {
        all_are_for_first();
    } else {
        not_all_are_for_first();
    }
}

/// Returns the library of the object that called the wrapper, and notes whether all calls are for
/// it.
#[cold]
pub(crate) fn host_of_caller() -> Option<&'static Host> {
    if is_inconsistent() {
        return handing_on();
    }
    // Before anything is allocated.
    reserve::set_aside();
    let host = described(&find_scope(c"PMPI_Type_commit")?);
    loop {
        let others = OTHERS.lock().clone();
        let first = FIRST.get().filter(|_| !first_is_gone());
        // Not under the lock, which a thread that loads an object may wait for.
        let is_other = |known: &&Host| !std::ptr::eq(*known, host) && known.place.is_loaded();
        let is_only = host.is_in_use()
            && !first.into_iter().chain(others.iter().copied()).any(|known| is_other(&known));
        let known = OTHERS.lock();
        if known.len() == others.len() {
            set_only(is_only.then_some(host));
            return Some(host);
        }
    }
}

/// Returns the description of the library that is found in a scope, made now if there is none.
fn described(scope: &Opened) -> &'static Host {
    let first = FIRST.get_or_init(|| Host::in_scope(scope, true));
    static HAND_ON: fn() = hand_on;
    when_inconsistent(&HAND_ON);
    let place = Place::of(scope);
    if !first_is_gone() {
        let here = first.place == place;
        if if here { first.is_another_copy() } else { !first.place.is_loaded() } {
            FIRST_IS_GONE.store(true, Ordering::Release);
        } else if here {
            return first;
        }
    }
    let known = || OTHERS.lock().iter().copied().find(|other| other.place == place);
    if let Some(known) = known() {
        return known;
    }
    let made: &'static Host = Box::leak(Box::new(Host::in_scope(scope, false)));
    // Another thread may have made one meanwhile.
    known().unwrap_or_else(|| {
        OTHERS.lock().push(made);
        made
    })
}

/// Returns the versions of the libraries for which calls were handed on.
pub(crate) fn others() -> Vec<&'static str> {
    OTHERS.lock().iter().map(|other| other.version.as_str()).collect()
}

/// Returns whether the library that was found first was unloaded.
pub(crate) fn first_is_gone() -> bool {
    FIRST_IS_GONE.load(Ordering::Acquire)
}

impl Host {
    /// Returns whether the first library is another copy of the one that was described, or may be:
    /// the world that was up is not, the one that was finalized is not, or objects were unloaded
    /// since the last session was finalized.
    fn is_another_copy(&self) -> bool {
        let (up, down) = self.initialized_and_finalized();
        match self.users.world() {
            World::Up => !up,
            World::Finalized => !down,
            World::Unseen => {
                let unloads = UNLOADS.load(Ordering::Acquire);
                unloads != IN_USE && unloads != loads().1
            }
        }
    }

    /// Notes that the library has a user again.
    pub(crate) fn used(&self) {
        if FIRST.get().is_some_and(|first| std::ptr::eq(first, self)) {
            UNLOADS.store(IN_USE, Ordering::Release);
        }
    }

    /// Notes that the library has no user any more: it may be unloaded.
    pub(crate) fn unused(&self) {
        if is_inconsistent() {
            return;
        }
        if FIRST.get().is_some_and(|first| std::ptr::eq(first, self)) {
            UNLOADS.store(loads().1, Ordering::Release);
        }
        let _others = OTHERS.lock();
        if [known(), OTHER.load()].iter().flatten().any(|only| std::ptr::eq(*only, self)) {
            set_only(None);
        }
    }
}
