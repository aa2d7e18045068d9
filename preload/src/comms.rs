//! Communicators that the MPI library has accepted, and facts about them.
//!
//! `MPI_COMM_WORLD` and `MPI_COMM_SELF` have entries from the first call that the MPI library
//! accepts with them until the end of the epoch. Every other communicator gets an attribute when it
//! gets its entry. The delete callback of this attribute removes the entry when the communicator is
//! freed. So a call with a freed communicator is bypassed, and the MPI library raises its own
//! error. The size of a communicator, this process's rank and its neighbours never change, so ddtc
//! queries the MPI library for them once.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use ddtc::internal::process::is_inconsistent;

use crate::guard::guard;
use crate::host::{HandleWord, Host};
use crate::keyval::Keyval;
use crate::slots::{Entry, Table};

/// Entry of a communicator that the MPI library has accepted. Entries are never freed. When the
/// communicator is freed, its entry is used for another communicator.
pub(crate) struct Comm {
    /// Handle of the communicator; 0 if the entry is not in use.
    handle: AtomicU64,
    /// The [`Group`](crate::group::Group) of the communicator: this process's rank and the number
    /// of ranks.
    pub(crate) group: Fact,
    /// The [`Neighbours`](crate::neighbours::Neighbours) of this process in the topology of the
    /// communicator.
    pub(crate) near: Fact,
}

/// Fact about a communicator that fits into two words and for which the MPI library is queried
/// once.
pub(crate) struct Fact {
    /// Values of the two words. Threads that query the MPI library at the same time write equal
    /// values.
    numbers: [AtomicU64; 2],
    known: AtomicU64,
}

impl Fact {
    const fn new() -> Fact {
        Fact { numbers: [const { AtomicU64::new(0) }; 2], known: AtomicU64::new(0) }
    }

    /// Returns the two words of the fact. If they are not known yet, calls `ask` and keeps the
    /// words that `ask` returns. If `ask` returns `None`, the fact stays unknown.
    #[inline]
    pub(crate) fn get(&self, ask: impl FnOnce() -> Option<[u64; 2]>) -> Option<[u64; 2]> {
        self.cached().or_else(|| {
            let asked = ask()?;
            self.numbers.iter().zip(asked).for_each(|(number, asked)| number.store(asked, Ordering::Relaxed));
            self.known.store(1, Ordering::Release);
            Some(asked)
        })
    }

    /// Returns the two words of the fact if they are known already, otherwise `None`.
    #[inline]
    pub(crate) fn cached(&self) -> Option<[u64; 2]> {
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

    /// Forgets all facts of the entry, so that it can be used for another communicator.
    fn forget(&self) {
        self.group.forget();
        self.near.forget();
    }
}

static WORLD: Comm = Comm::none();
static MYSELF: Comm = Comm::none();
static OTHERS: Table<Comm> = Table::new();
static KEYVAL: Keyval = Keyval::new();

/// Returns the entry of a communicator that the MPI library has accepted; `None` for any other
/// communicator.
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

/// As [`find`], but asks the MPI library whether the entry is the attribute of this communicator.
/// If it is not, unbinds the entry and returns `None`.
///
/// The question is needed before anything goes by the facts of an entry. If a delete callback of
/// the program uses a communicator that is being freed, [`accept`] may bind an entry to it after
/// ddtc's attribute of it was deleted. MPI libraries do not delete an attribute that is set so
/// late, so that entry stays bound, and the next communicator may get the handle.
pub(crate) fn confirmed(host: &Host, comm: HandleWord) -> Option<&'static Comm> {
    let entry = find(host, comm)?;
    if std::ptr::eq(entry, &raw const WORLD) || std::ptr::eq(entry, &raw const MYSELF) {
        return Some(entry);
    }
    let (mut value, mut flag) = (std::ptr::null_mut::<Comm>(), 0);
    let code = match (KEYVAL.known(), host.f.comm_get_attr) {
        // SAFETY: the program passes the communicator to the present call, so it must be valid. The
        // keyval is of this epoch, and the pointers are to an attribute value and a flag that may
        // be written.
        (Some(keyval), Some(get)) => unsafe { get(comm, keyval, (&raw mut value).cast(), &raw mut flag) },
        _ => return None,
    };
    if code == 0 && flag != 0 && std::ptr::eq(value, entry) {
        return Some(entry);
    }
    // The entry is not given back, because other threads may have found it, and because its delete
    // callback, which gives it back, may still run.
    OTHERS.unbind(entry);
    None
}

/// Returns true if the MPI library is known to have accepted a communicator.
#[inline]
pub(crate) fn accepted(host: &Host, comm: HandleWord) -> bool {
    find(host, comm).is_some()
}

/// Makes an entry for a communicator that the MPI library has just accepted, unless it has one.
/// Returns `None` if the MPI library cannot give the communicator an attribute. Then the
/// communicator stays unknown.
pub(crate) fn accept(host: &Host, comm: HandleWord) -> Option<()> {
    let handle = comm & host.mask;
    if handle == host.world {
        WORLD.handle.store(handle, Ordering::Release);
    } else if handle == host.myself {
        MYSELF.handle.store(handle, Ordering::Release);
    } else if handle != 0 && !accepted(host, comm) {
        let make = || {
            let mut keyval = 0;
            // SAFETY: the two callbacks have the types that the MPI standard fixes, and `keyval` is
            // a number to write to.
            let code =
                unsafe { host.f.comm_create_keyval?(no_copy, delete, &raw mut keyval, std::ptr::null_mut()) };
            (code == 0).then_some(keyval)
        };
        let keyval = KEYVAL.get(make, |keyval| free_keyval(host, keyval))?;
        let comm_set_attr = host.f.comm_set_attr?;
        let entry = OTHERS.take();
        entry.forget();
        // If another thread has bound an entry to this communicator meanwhile, that entry stays and
        // this one is given back. A communicator has one attribute of this keyval, whose deletion
        // unbinds one entry.
        if !OTHERS.bind(entry, handle, true) {
            OTHERS.give_back(entry);
            return Some(());
        }
        let value = std::ptr::from_ref(entry).cast_mut().cast::<c_void>();
        // SAFETY: the MPI library has just accepted the communicator, and the keyval was made above
        // or by an earlier call. The value is an entry, which is never freed.
        if unsafe { comm_set_attr(comm, keyval, value) } != 0 {
            // Other threads may have found the entry meanwhile. So the entry is unbound but not
            // given back, and no other communicator uses it.
            OTHERS.unbind(entry);
            return None;
        }
    }
    Some(())
}

fn free_keyval(host: &Host, mut keyval: c_int) {
    if let Some(comm_free_keyval) = host.f.comm_free_keyval {
        // SAFETY: the keyval was made by `comm_create_keyval`, and `keyval` is a number to write
        // to.
        let _ = unsafe { comm_free_keyval(&raw mut keyval) };
    }
}

/// Forgets all communicators at the end of the epoch, after which handles have no meaning.
pub(crate) fn end_epoch(host: &Host) {
    forget_all();
    if let Some(keyval) = KEYVAL.take() {
        free_keyval(host, keyval);
    }
}

/// Called after the MPI library was finalized. Forgets what was learnt about communicators
/// meanwhile, without a call of the MPI library.
pub(crate) fn forget_after_end() {
    forget_all();
    let _ = KEYVAL.take();
}

fn forget_all() {
    for named in [&WORLD, &MYSELF] {
        named.handle.store(0, Ordering::Release);
        named.forget();
    }
    // The entries are not given back here. The delete callback gives them back when the MPI library
    // deletes the attributes.
    OTHERS.forget_all(|_| ());
}

/// Copy callback of the attribute, which gives the duplicate of a communicator no attribute. The
/// duplicate gets an entry of its own when the MPI library has accepted the duplicate in a call.
unsafe extern "C-unwind" fn no_copy(
    _comm: HandleWord,
    _keyval: c_int,
    _extra: *mut c_void,
    _value: *mut c_void,
    _out: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the MPI library gives a pointer to a flag (MPI 5.0, 7.7.2).
    unsafe { flag.write(0) };
    0
}

/// Delete callback of the attribute: unbinds the communicator's entry.
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
        // SAFETY: the value is an entry, as `accept` set it, and entries are never freed. The MPI
        // library deletes an attribute once, so the entry is given back once.
        if let Some(entry) = unsafe { value.cast::<Comm>().as_ref::<'static>() } {
            OTHERS.unbind(entry);
            OTHERS.give_back(entry);
        }
    });
    0
}
