//! Communicators that the host has accepted, and what is known of them.
//!
//! The world and self are valid from their first acceptance to the end of the epoch. Others carry an attribute whose delete
//! callback forgets them, so that a freed communicator goes to the host, which raises what it would raise. What a communicator is - its size, this
//! rank, its neighbours - never changes, so it is asked of the host once.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use ddtc::process::is_inconsistent;

use crate::guard::guard;
use crate::host::{HandleWord, Host};
use crate::keyval::Keyval;
use crate::slots::{Entry, Table};

/// A communicator. Entries live forever; one is used again for another communicator when its own is gone.
pub(crate) struct Comm {
    /// The bound handle, 0 if none.
    handle: AtomicU64,
    /// Its size, and who this rank is in it.
    pub(crate) group: Fact,
    /// Its topology.
    pub(crate) near: Fact,
}

/// Two numbers that are asked of the host once.
pub(crate) struct Fact {
    /// Threads that ask at the same time write the same numbers.
    numbers: [AtomicU64; 2],
    known: AtomicU64,
}

impl Fact {
    const fn new() -> Fact {
        Fact { numbers: [const { AtomicU64::new(0) }; 2], known: AtomicU64::new(0) }
    }

    /// Returns the numbers; `ask` asks for them if nobody has, `None` leaves them unknown.
    #[inline]
    pub(crate) fn get(&self, ask: impl FnOnce() -> Option<[u64; 2]>) -> Option<[u64; 2]> {
        self.met().or_else(|| {
            let asked = ask()?;
            self.numbers.iter().zip(asked).for_each(|(number, asked)| number.store(asked, Ordering::Relaxed));
            self.known.store(1, Ordering::Release);
            Some(asked)
        })
    }

    /// Returns the numbers, if somebody has asked for them.
    #[inline]
    pub(crate) fn met(&self) -> Option<[u64; 2]> {
        let known = self.known.load(Ordering::Acquire) != 0;
        let [first, second] = &self.numbers;
        known.then(|| [first.load(Ordering::Relaxed), second.load(Ordering::Relaxed)])
    }

    fn forget(&self) {
        self.known.store(0, Ordering::Release);
    }
}

impl Entry for Comm {
    fn new() -> Comm {
        Comm::none()
    }

    fn handle(&self) -> &AtomicU64 {
        &self.handle
    }
}

impl Comm {
    const fn none() -> Comm {
        Comm { handle: AtomicU64::new(0), group: Fact::new(), near: Fact::new() }
    }

    /// For another communicator.
    fn forget(&self) {
        self.group.forget();
        self.near.forget();
    }
}

static WORLD: Comm = Comm::none();
static MYSELF: Comm = Comm::none();
static OTHERS: Table<Comm> = Table::new();
static KEYVAL: Keyval = Keyval::new();

/// Returns a communicator that the host has accepted.
#[inline]
pub(crate) fn find(host: &Host, comm: HandleWord) -> Option<&'static Comm> {
    let comm = comm & host.mask;
    let known =
        |named: &'static Comm| (comm != 0 && named.handle.load(Ordering::Acquire) == comm).then_some(named);
    if comm == host.world {
        known(&WORLD)
    } else if comm == host.myself {
        known(&MYSELF)
    } else {
        OTHERS.find(comm)
    }
}

/// Says whether the host has accepted a communicator.
#[inline]
pub(crate) fn accepted(host: &Host, comm: HandleWord) -> bool {
    find(host, comm).is_some()
}

/// Remembers a communicator that the host has just accepted.
pub(crate) fn accept(host: &Host, comm: HandleWord) -> Option<()> {
    let handle = comm & host.mask;
    if handle == host.world {
        WORLD.handle.store(handle, Ordering::Release);
    } else if handle == host.myself {
        MYSELF.handle.store(handle, Ordering::Release);
    } else if handle != 0 && !accepted(host, comm) {
        let make = || {
            let mut keyval = 0;
            // SAFETY: two callbacks of the standard's types, a number to write to.
            let code =
                unsafe { host.f.comm_create_keyval?(no_copy, delete, &raw mut keyval, std::ptr::null_mut()) };
            (code == 0).then_some(keyval)
        };
        let keyval = KEYVAL.get(make, |keyval| free_keyval(host, keyval))?;
        let entry = OTHERS.take();
        entry.forget();
        // Another thread that accepts it too finds it bound: there is one attribute, by which the entry ends.
        if !OTHERS.bind(entry, handle, true) {
            OTHERS.give_back(entry);
            return Some(());
        }
        let value = std::ptr::from_ref(entry).cast_mut().cast::<c_void>();
        // SAFETY: a communicator that the host has just accepted, and our keyval; the value is an entry, which lives forever.
        if unsafe { host.f.comm_set_attr?(comm, keyval, value) } != 0 {
            // Others may have found it meanwhile: it is nobody's again.
            OTHERS.unbind(entry);
            return None;
        }
    }
    Some(())
}

fn free_keyval(host: &Host, mut keyval: c_int) {
    if let Some(comm_free_keyval) = host.f.comm_free_keyval {
        // SAFETY: a keyval that we made.
        let _ = unsafe { comm_free_keyval(&raw mut keyval) };
    }
}

/// Ends the epoch.
pub(crate) fn end_epoch(host: &Host) {
    for named in [&WORLD, &MYSELF] {
        named.handle.store(0, Ordering::Release);
        named.forget();
    }
    // Their entries end when the host deletes their attributes.
    OTHERS.forget_all(|_| ());
    if let Some(keyval) = KEYVAL.take() {
        free_keyval(host, keyval);
    }
}

/// A duplicate of a communicator is asked of the host by itself.
unsafe extern "C-unwind" fn no_copy(
    _comm: HandleWord,
    _keyval: c_int,
    _extra: *mut c_void,
    _value: *mut c_void,
    _out: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the host gives a pointer to a flag (MPI 5.0, 7.7.2).
    unsafe { flag.write(0) };
    0
}

unsafe extern "C-unwind" fn delete(
    _comm: HandleWord,
    _keyval: c_int,
    value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    if is_inconsistent() {
        return 0;
    }
    guard(|| {
        // SAFETY: the value is an entry, as `accept` set it, and the host deletes an attribute once.
        if let Some(entry) = unsafe { value.cast::<Comm>().as_ref::<'static>() } {
            OTHERS.unbind(entry);
            OTHERS.give_back(entry);
        }
    });
    0
}
