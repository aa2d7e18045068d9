//! Registry of the MPI libraries in the process, which finds the MPI library to which a call of a
//! wrapper must go.
//!
//! A process nearly always has one MPI library. The pointer [`HOST`] to ddtc's record of that
//! library (a `Host`) then serves every call. While several MPI libraries are loaded, or none is in
//! use, the pointer is null, and each call searches for the MPI library of its caller. Only calls
//! to the MPI library that was found first are converted. Calls to any other MPI library are passed
//! on unchanged. A library with an unknown ABI never counts as the first one, because it may be a
//! wrapper (MPItrampoline) that calls another MPI library in the same process.
//!
//! A library with the standard ABI may be such a wrapper too, and nothing distinguishes it from an
//! MPI library. A wrapper initializes its MPI library while it is initialized itself. So a library
//! with the standard ABI is left waiting until it is initialized. If another MPI library was
//! found first by then, the waiting one is a wrapper around that library.
//!
//! The registry keeps no MPI library loaded, because a plugin may load its own MPI library,
//! finalize it and unload it. Records of MPI libraries are never freed. If the first MPI library is
//! unloaded and a copy of it is loaded later, the copy gets its own record, even if it lies at the
//! same addresses.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use ddtc::internal::process::{Awaited, Mutex, is_inconsistent, when_inconsistent};
use ddtc_hosts::abi::Flavour;

use super::Host;
use crate::atomic_ref::AtomicRef;
use crate::guard::end_by_panics;
use crate::loader::{Opened, loaded_objects, loads};
use crate::overhead_budget;
use crate::reserve;
use crate::scopes::{Place, find_scope};
use crate::slow_path::unwatch_all;
use crate::users::World;

/// Points to the record in [`FIRST`] while all calls go to the MPI library that was found first,
/// else null. Only these two values are ever written, each by one function. So the compiler can
/// represent the pointer by a flag, and put the addresses of the record's fields into the
/// instructions.
static HOST: AtomicPtr<Host> = AtomicPtr::new(std::ptr::null_mut());
/// Record of an MPI library other than the one that was found first, while all calls go to that
/// other library; else null.
static OTHER: AtomicRef<Host> = AtomicRef::none();

/// Record of the MPI library to which an inconsistent child process (see [`is_inconsistent`])
/// passes its calls on unchanged. Null until the first call of the child.
static HANDING_ON: AtomicRef<Host> = AtomicRef::none();

/// Record of the first MPI library with a known ABI that was found, the only one whose calls are
/// converted. The comments of this module call it the MPI library that was found first.
static FIRST: First = First { made: Awaited::new(), host: UnsafeCell::new(MaybeUninit::uninit()) };
/// True once the MPI library that was found first is known to have been unloaded.
static FIRST_IS_GONE: AtomicBool = AtomicBool::new(false);
/// Records of all other MPI libraries that were found, whose calls are passed on unchanged. Some of
/// these libraries may be unloaded by now.
static OTHERS: Mutex<Vec<&'static Host>> = Mutex::new(Vec::new());

/// Records of MPI libraries with the standard ABI that are not initialized yet, while no MPI
/// library counts as the first one. No record of these libraries is in [`FIRST`] or [`OTHERS`].
static WAITING: Mutex<Vec<&'static Host>> = Mutex::new(Vec::new());

/// Number of objects that the process had unloaded when the last user (the world or a session) of
/// the first MPI library was finalized; [`IN_USE`] while that library has users or never had one.
static UNLOADS: AtomicU64 = AtomicU64::new(IN_USE);
const IN_USE: u64 = u64::MAX;

/// Record of an MPI library in static memory, which is made once. The memory is static so that the
/// address of the record is a constant in the machine code.
struct First {
    made: Awaited<()>,
    host: UnsafeCell<MaybeUninit<Host>>,
}

// SAFETY: `host` is written before `made` is set, by the one thread that runs the closure of
// `made.get_or_init`, and only read after `made` is set. `Host` is `Sync` (the type of `OTHER`
// requires that), so all threads may use shared references to it.
unsafe impl Sync for First {}

impl First {
    fn get(&'static self) -> Option<&'static Host> {
        self.made.get()?;
        // SAFETY: `made` is set, so the record in `host` was written.
        Some(unsafe { self.get_unchecked() })
    }

    /// # Safety
    /// `made` must be set.
    #[inline]
    unsafe fn get_unchecked(&'static self) -> &'static Host {
        // SAFETY: the caller promises that `made` is set, so the record in `host` was written, and
        // nothing writes it again.
        unsafe { (*self.host.get()).assume_init_ref() }
    }

    /// Keeps `host` as the record, if there is none yet.
    fn set(&'static self, host: Host) {
        self.made.get_or_init(|| {
            // SAFETY: `made` is not set, so no reference to the record exists, and only this thread
            // is in the closure of `made.get_or_init`.
            unsafe { (*self.host.get()).write(host) };
        });
    }
}

/// Returns the MPI library to which the current call must go; `None` while no MPI library is
/// loaded.
#[inline]
pub(crate) fn host() -> Option<&'static Host> {
    known().or_else(other_or_of_caller)
}

/// Returns the MPI library that was found first; `None` if calls may go to another MPI library.
#[inline]
pub(crate) fn known() -> Option<&'static Host> {
    // SAFETY: `HOST` is null, or the address of the record in `FIRST`, which was made before the
    // address was stored with `Release` and is never changed or freed.
    unsafe { HOST.load(Ordering::Acquire).as_ref() }
}

/// Returns the MPI library to which all calls go, if that is not the one that was found first;
/// otherwise the MPI library of the object that called the wrapper.
#[cold]
fn other_or_of_caller() -> Option<&'static Host> {
    if is_inconsistent() {
        return handing_on();
    }
    // If no wrapper has seen the initialization of MPI, the current call is one of the first calls
    // after the initialization, so the clock of the overhead budget starts now.
    overhead_budget::begin();
    OTHER.load().or_else(host_of_caller)
}

/// Arranges that all later calls are passed on to the MPI library unchanged. The fork handler calls
/// this in a child process that was forked while another thread was in a fork section
/// ([`ddtc::internal::process`]). This child must not read anything that threads of its parent may
/// have locked or half changed.
fn hand_on() {
    not_all_are_for_first();
    OTHER.store(None);
    unwatch_all();
}

/// Returns the record of the MPI library to which an inconsistent child process passes its calls on
/// unchanged. The child makes the record in its first call. That takes locks of the loader and of
/// the allocator, both of which glibc makes usable in a child.
fn handing_on() -> Option<&'static Host> {
    HANDING_ON.load().or_else(|| {
        let made: &'static Host =
            Box::leak(Box::new(Host::in_scope(&find_scope(c"PMPI_Type_commit")?, false)));
        // The search for the MPI library has set flags that make calls take the long path, so the
        // flags are cleared again.
        unwatch_all();
        HANDING_ON.store(Some(made));
        Some(made)
    })
}

/// Records that all calls go to the MPI library that was found first.
#[inline(never)]
fn all_are_for_first() {
    HOST.store(FIRST.host.get().cast(), Ordering::Release);
}

/// Records that calls may go to an MPI library other than the one that was found first.
#[inline(never)]
fn not_all_are_for_first() {
    HOST.store(std::ptr::null_mut(), Ordering::Release);
}

/// Records the MPI library to which all calls go. `None`: calls may go to several MPI libraries, or
/// to one that is not known. The caller must hold the lock of [`OTHERS`], so that two threads do
/// not write [`HOST`] and [`OTHER`] at the same time.
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

/// Returns the MPI library of the object that called the wrapper. Also records whether all calls go
/// to this MPI library, which is so if it is in use and no other known MPI library is loaded.
#[cold]
pub(crate) fn host_of_caller() -> Option<&'static Host> {
    if is_inconsistent() {
        return handing_on();
    }
    // The reserve of memory must exist before anything is allocated, because it serves allocations
    // for which the system has no memory.
    reserve::set_aside();
    let host = described(&find_scope(c"PMPI_Type_commit")?, false);
    loop {
        let others = OTHERS.lock().clone();
        let first = FIRST.get().filter(|_| !first_is_gone());
        // `is_loaded` calls the loader, which may have to wait for a thread that is loading an
        // object. That thread may in turn wait for the lock of `OTHERS`. So `OTHERS` is not locked
        // here, and the result is used only if no MPI library was added to `OTHERS` meanwhile.
        let is_other = |known: &&Host| !std::ptr::eq(*known, host) && known.place.is_loaded();
        let is_only = host.is_in_use()
            && !is_waiting(host)
            && !first.into_iter().chain(others.iter().copied()).any(|known| is_other(&known));
        let known = OTHERS.lock();
        if known.len() == others.len() {
            set_only(is_only.then_some(host));
            return Some(host);
        }
    }
}

/// Returns the record of the MPI library that is found in a scope, and makes the record if there is
/// none yet. `is_up` is true if the MPI library is known to be initialized.
fn described(scope: &Opened, is_up: bool) -> &'static Host {
    end_by_panics();
    static HAND_ON: fn() = hand_on;
    when_inconsistent(&HAND_ON);
    let place = Place::from_scope(scope);
    let known = || OTHERS.lock().iter().copied().find(|other| other.place == place);
    if let Some(known) = known() {
        return known;
    }
    let waiting = WAITING.lock().iter().copied().find(|waiting| waiting.place == place);
    if let Some(waiting) = waiting {
        // While the wrapper of the initialization runs, the library has a user. Without one, a
        // world that is up was initialized by a function that ddtc does not see.
        if waiting.users.any() || !waiting.world_is_up() {
            return waiting;
        }
        WAITING.lock().retain(|other| !std::ptr::eq(*other, waiting));
    }
    let mut unconvertible = None;
    if FIRST.get().is_none() {
        let host = Host::in_scope(scope, true);
        // A library with an unknown ABI may be a wrapper around the library whose calls are
        // converted, as MPItrampoline is.
        match host.abi {
            Some(abi) if abi.flavour == Flavour::Standard && !is_up && !host.world_is_up() => {
                let made: &'static Host = Box::leak(Box::new(host));
                WAITING.lock().push(made);
                return made;
            }
            Some(_) => FIRST.set(host),
            None => unconvertible = Some(host),
        }
    }
    if let Some(first) = FIRST.get().filter(|_| !first_is_gone()) {
        let here = first.place == place;
        if if here { first.is_another_copy() } else { !first.place.is_loaded() } {
            FIRST_IS_GONE.store(true, Ordering::Release);
        } else if here {
            return first;
        }
    }
    let made: &'static Host =
        Box::leak(Box::new(unconvertible.unwrap_or_else(|| Host::in_scope(scope, false))));
    // Another thread may have added a record of this MPI library meanwhile.
    known().unwrap_or_else(|| {
        OTHERS.lock().push(made);
        made
    })
}

fn is_waiting(host: &Host) -> bool {
    WAITING.lock().iter().any(|waiting| std::ptr::eq(*waiting, host))
}

/// Called when an MPI library was initialized for a user (the world or a session). Returns the
/// record that serves the library from now on. It is a new record if the library was waiting for
/// its initialization. The library then counts as the first one, unless another library does so.
pub(crate) fn initialized(host: &'static Host) -> &'static Host {
    // A record that is not found was waiting. Another thread may have replaced it already, because
    // it has initialized the library for another user at the same time.
    if OTHERS.lock().iter().copied().chain(FIRST.get()).any(|found| std::ptr::eq(found, host)) {
        return host;
    }
    let Some(scope) = find_scope(c"PMPI_Type_commit") else { return host };
    // A wrapper may have bound its calls directly to its MPI library, so that ddtc has not seen how
    // it initialized that library.
    if FIRST.get().is_none()
        && let Some(scope) = initialized_other(host)
    {
        described(&scope, true);
    }
    WAITING.lock().retain(|waiting| !std::ptr::eq(*waiting, host));
    described(&scope, true)
}

/// Returns the scope of an MPI library other than `host` whose world is initialized; `None` if no
/// such library is loaded.
fn initialized_other(host: &Host) -> Option<Opened> {
    let scopes = loaded_objects().into_iter().filter_map(|object| Opened::loaded(&object));
    let mut others = scopes.filter(|scope| {
        !scope.symbol(c"PMPI_Type_commit").is_null() && Place::from_scope(scope) != host.place
    });
    others.find(|scope| Host::in_scope(scope, false).world_is_up())
}

/// Returns the versions of all MPI libraries other than the one that was found first.
pub(crate) fn others() -> Vec<&'static str> {
    OTHERS.lock().iter().map(|other| other.version.as_str()).collect()
}

/// Returns true if the MPI library that was found first is known to have been unloaded.
pub(crate) fn first_is_gone() -> bool {
    FIRST_IS_GONE.load(Ordering::Acquire)
}

impl Host {
    /// Returns true if the MPI library that now lies at the place of the first one may be another
    /// copy, loaded after the first one was unloaded. There are three cases. ddtc has seen the
    /// initialization of the world, and the library reports that the world is not initialized. ddtc
    /// has seen the finalization of the world, and the library reports that the world is not
    /// finalized. ddtc has seen neither, and objects were unloaded since the last user of the first
    /// library was finalized.
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

    /// Records that the MPI library has a user (the world or a session) again.
    pub(crate) fn used(&self) {
        if FIRST.get().is_some_and(|first| std::ptr::eq(first, self)) {
            UNLOADS.store(IN_USE, Ordering::Release);
        }
    }

    /// Records that the last user of the MPI library has gone, so that the program may unload the
    /// library.
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
