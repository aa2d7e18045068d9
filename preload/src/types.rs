//! Connection between ddtc's compiled types and the MPI library's datatypes. Each decoded datatype
//! gets an attribute, whose value is the type's entry in [`crate::table`].
//!
//! This is the caching design of the 1996 discussion about `MPI_Type_dup`. The copy callback of the
//! attribute lets a duplicate share the compiled type. The delete callback retires the entry when
//! the datatype is gone, whether the program or the MPI library released it last. The callbacks
//! make no MPI call, and take only locks that are never held across an MPI call. They are functions
//! of ddtc, which is never unloaded, so the MPI library may run them as late as it likes. The
//! keyval is made anew in every epoch. An epoch lasts from the first initialization of MPI (of the
//! world or of a session) to the finalization of the last user of MPI, when all handles lose their
//! meaning.

use std::ffi::{c_int, c_void};

use ddtc::internal::committed::Committed;
use ddtc::internal::datatype::contents::{Contents, Envelope};
use ddtc::internal::decode::Introspect;
use ddtc::internal::engine::{Engine, Mode};
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc::internal::object::runtime;
use ddtc::internal::process::{Mutex, Once, is_inconsistent};
use ddtc_hosts::policy;

use crate::counted;
use crate::guard::guard;
use crate::hooks::{adopted, fold_all};
use crate::host::{HandleWord, Host};
use crate::hotness::{self, Like};
use crate::introspect::Types;
use crate::keyval::Keyval;
use crate::known::{self, Description};
use crate::overhead_budget;
use crate::policy::Rules;
use crate::reentrancy::Inside;
use crate::reserve;
use crate::settings::settings;
use crate::table::{self, Found, TypeEntry};
use crate::use_kind::{CompletedBy, UseKind};
use crate::wrong_map;

/// Returns the engine for the next commit. The engine has the configuration of the environment,
/// until a tool changes the configuration through the tool variables.
pub(crate) fn engine() -> Engine {
    configured();
    runtime::engine()
}

/// At the first call, sets the configuration of later commits to that of the environment. A change
/// that a tool makes later stays, because later calls do nothing.
pub(crate) fn configured() {
    static ONCE: Once<()> = Once::new();
    // The settings are read before the `Once` is entered. A fork of the process waits until a
    // running closure of a `Once` has ended. Code for which a fork waits must not wait for an
    // `Awaited` value such as the settings.
    let settings = settings();
    ONCE.get_or_init(|| {
        // A configuration is refused for a CPU level that the machine does not run, which the
        // settings never contain, and for a wrong number of threads, which they leave at 1. So this
        // cannot fail.
        let _ = runtime::configure(|config| {
            *config = settings.config.clone();
            Ok(())
        });
    });
}

/// Returns the mode of the engine for later commits.
#[inline]
pub(crate) fn mode() -> Mode {
    #[cold]
    fn first() -> Mode {
        configured();
        runtime::mode()
    }
    // `known_mode` returns `None` until the environment has been read.
    runtime::known_mode().unwrap_or_else(first)
}

/// Handles a datatype that the MPI library has committed, or was seen to accept as committed. In
/// mode `lazy`, or if a PMPI layer takes messages, the handle is only recorded in the hotness
/// counters, which count the uses of the datatype. Otherwise [`adopt`] decodes the datatype now,
/// and compiles it if the mode requires that. In mode `off`, `adopt` does nothing.
pub(crate) fn committed(host: &'static Host, datatype: HandleWord) {
    let handle = datatype & host.mask;
    if [0, host.type_null].contains(&handle) {
        return;
    }
    // If a PMPI layer takes messages, the handle may be known to the layer alone, so the MPI
    // library is not queried about it here. The type is decoded when a call that no layer takes
    // uses the type.
    if mode() == Mode::Lazy || host.layers.take(policy::Call::Message) {
        // A decoded type that is committed again is recorded again in the hotness counters. The
        // counters do not count its uses, because calls look for a decoded type before they look
        // for a recorded one.
        hotness::record(handle);
    } else if matches!(table::find(handle), Found::Unknown) {
        adopt(host, datatype, u64::MAX);
    }
}

/// Returns true if a buffer of a call is bypassed because of the handle and the count of its type
/// alone. That is so if the type is a named type, or if this use passes in the back-off of the type
/// ([`hotness::passes_in_back_off`]). The use of a type by a persistent request never passes in a
/// back-off, because one persistent request stands for many uses. `completed_by` is the kind of
/// call that completes the message, or `None` if the call transfers no message.
#[inline(always)]
pub(crate) fn is_hosts(
    host: &Host,
    datatype: HandleWord,
    count: i64,
    used: UseKind,
    completed_by: Option<CompletedBy>,
) -> bool {
    let handle = datatype & host.mask;
    let like = completed_by.map(|by| Like { count, by });
    host.is_named(handle) || !matches!(used, UseKind::Persistent) && hotness::passes_in_back_off(handle, like)
}

static KEYVAL: Keyval = Keyval::new();

/// Begins an epoch for datatypes: makes the keyval, before the program makes keyvals of its own.
/// MPICH gives it a smaller handle than theirs then, unless the program has made keyvals before the
/// initialization. It keeps the attributes of a type sorted by the handles of their keyvals, but
/// inserts a new attribute after the first one with a larger handle, without looking whether the
/// type has the attribute already (5.0.1, `MPIR_Type_set_attr_impl`). So if ddtc's handle were
/// larger, an attribute that the program sets twice would be in the list twice.
pub(crate) fn begin_epoch(host: &Host) {
    if mode() != Mode::Off {
        let _ = keyval(host);
    }
}

fn keyval(host: &Host) -> Option<c_int> {
    let make = || {
        let mut keyval = 0;
        // SAFETY: `copy` and `delete` have the signatures of the standard's callbacks, `keyval` is
        // a number that may be written, and the extra state may be null because the callbacks do
        // not read it.
        let code = unsafe { host.f.type_create_keyval?(copy, delete, &raw mut keyval, std::ptr::null_mut()) };
        (code == 0).then_some(keyval)
    };
    KEYVAL.get(make, |keyval| free_keyval(host, keyval))
}

fn free_keyval(host: &Host, mut keyval: c_int) {
    if let Some(type_free_keyval) = host.f.type_free_keyval {
        // SAFETY: the keyval was made by `keyval` in this epoch. It is freed only once, because it
        // was taken out of `KEYVAL` or was never stored there.
        let _ = unsafe { type_free_keyval(&raw mut keyval) };
    }
}

/// Copy callback of the attribute, which the MPI library runs in `MPI_Type_dup`. Gives the
/// duplicate an entry of its own that shares the compiled type. The entry is bound later, when the
/// duplicate's handle is known.
unsafe extern "C-unwind" fn copy(
    _old: HandleWord,
    _keyval: c_int,
    _extra: *mut c_void,
    value: *mut c_void,
    out: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // If the flag is 0, the MPI library does not copy the attribute. The flag becomes 1 below if
    // everything succeeds.
    // SAFETY: the MPI library passes a pointer to a flag that may be written (MPI 5.0, 7.7.4).
    unsafe { flag.write(0) };
    if is_inconsistent() {
        return 0;
    }
    guard(|| {
        // SAFETY: the value is an entry, because only `attach` and this function set the attribute.
        // The old datatype lives during this callback, so its entry is not retired meanwhile.
        let (committed, rules) = unsafe {
            let old = &*value.cast::<TypeEntry>();
            (old.committed().cloned(), old.rules())
        };
        let entry = table::entry(committed, rules);
        // SAFETY: the MPI library passes pointers to an attribute value and to a flag, which may be
        // written (MPI 5.0, 7.7.4).
        unsafe {
            out.cast::<*const TypeEntry>().write(entry);
            flag.write(1);
        }
    });
    0
}

/// Delete callback of the attribute, which the MPI library runs when the datatype is gone. Retires
/// the datatype's entry.
unsafe extern "C-unwind" fn delete(
    _t: HandleWord,
    _keyval: c_int,
    value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    if is_inconsistent() {
        return 0;
    }
    guard(|| {
        // SAFETY: the value is an entry, because only `attach` and `copy` set the attribute, and
        // entries are never freed.
        if let Some(entry) = unsafe { value.cast::<TypeEntry>().as_ref::<'static>() } {
            // SAFETY: the datatype is gone, and the MPI library runs this callback once for its
            // attribute, so nobody else uses the entry and it is retired once.
            unsafe { table::retire(entry) };
        }
    });
    0
}

/// Handles of the types that threads are decoding now, at most one for each thread. If a second
/// thread needs to decode the same type, it leaves the decoding to the first thread. In a child of
/// a fork that lacks the first thread, the type stays bypassed.
static ADOPTING: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Right of one thread to decode the type with this handle. While the value lives, the handle is in
/// [`ADOPTING`].
struct Claim(u64);

impl Claim {
    fn take(handle: u64) -> Option<Claim> {
        let mut adopting = ADOPTING.lock();
        let is_free = !adopting.contains(&handle);
        if is_free {
            adopting.push(handle);
        }
        // A `Claim` must not be made if the handle is not free, because its drop would take the
        // lock again and would remove the handle that another thread has claimed.
        is_free.then(|| Claim(handle))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        ADOPTING.lock().retain(|&handle| handle != self.0);
    }
}

/// Decodes a type that the MPI library has accepted as committed and binds an entry to its handle.
/// Also compiles the type if the engine's mode requires that. Leaves the type undecoded if its
/// constructors have more than `arguments` arguments, as [`crate::worth`] counts them. If anything
/// fails, the type is bypassed.
#[cold]
pub(crate) fn adopt(host: &'static Host, datatype: HandleWord, arguments: u64) {
    let handle = datatype & host.mask;
    if mode() == Mode::Off
        || host.abi.is_none()
        || [0, host.type_null].contains(&handle)
        || reserve::is_short()
    {
        return;
    }
    let _inside = match Inside::enter() {
        Some(inside) => inside,
        // This thread is in an MPI call that ddtc itself has made, and the MPI library has called
        // back into a wrapper. So the type is not a type of the program.
        None => return,
    };
    guard(|| {
        if let Some(_claim) = Claim::take(handle)
            && matches!(table::find(handle), Found::Unknown)
            && overhead_budget::on(|| attach(host, datatype, handle, arguments)).is_some()
        {
            hotness::decoded(handle);
        }
    });
}

/// Decodes a type, or finds the compiled type of an equal datatype. Attaches an entry for it to the
/// datatype as an attribute, and binds the entry to the handle. Returns `None` if the type is
/// predefined, already had an entry or has too many arguments, or if a call of the MPI library
/// failed.
fn attach(host: &'static Host, datatype: HandleWord, handle: u64, arguments: u64) -> Option<()> {
    let mut types = Types::new(host, arguments)?;
    let envelope = types.envelope(&datatype).ok()?;
    if envelope.combiner.is_predefined() {
        table::bind(table::entry(None, Rules::NONE), handle);
        return None;
    }
    let keyval = keyval(host)?;
    // A duplicate of a decoded type has got an entry from the copy callback already, even if the
    // duplicate was made by a call that no wrapper has seen.
    let (mut value, mut flag) = (std::ptr::null_mut::<TypeEntry>(), 0);
    // SAFETY: the MPI library has accepted the type as committed, the keyval is of this epoch, and
    // the pointers are to an attribute value and a flag that may be written.
    let code = unsafe { host.f.type_get_attr?(datatype, keyval, (&raw mut value).cast(), &raw mut flag) };
    let value = if code == 0 && flag != 0 { value } else { std::ptr::null_mut() };
    // SAFETY: the pointer is null or the attribute's value. Only the code below and `copy` set that
    // attribute, both to an entry, and entries are never freed.
    if let Some(entry) = unsafe { value.as_ref::<'static>() } {
        // SAFETY: the type has the entry as its attribute, and the program holds the type during
        // this call, so the entry is not retired.
        if let Some(committed) = unsafe { entry.committed() } {
            counted::adopted(committed);
        }
        table::bind(entry, handle);
        adopted(host, entry, handle);
        return None;
    }
    let committed = commit(host, &mut types, datatype, envelope);
    if let Some(arguments) = types.exceeded() {
        hotness::costs_more(handle, arguments);
        return None;
    }
    let is_decoded = committed.is_some();
    let (similar, moved) = hotness::class(handle).unzip();
    let rules = committed.as_ref().map_or(Rules::NONE, |c| Rules::new(host, c, similar));
    if let Some((similar, committed)) = similar.zip(committed.as_ref()) {
        let is_new = Direction::BOTH.into_iter().all(|direction| !committed.settled(direction, 0));
        similar.decoded(is_new);
    }
    let entry = table::entry(committed, rules);
    entry.moves(moved.unwrap_or(0));
    // SAFETY: the MPI library has accepted the type as committed, the keyval is of this epoch, and
    // the value is an entry, which is never freed.
    let code = unsafe {
        host.f.type_set_attr?(datatype, keyval, std::ptr::from_ref(entry).cast_mut().cast::<c_void>())
    };
    if !is_decoded || code != 0 {
        counted::TYPES_BYPASSED.add();
    }
    if code != 0 {
        // SAFETY: the entry was not bound to a handle and did not become the attribute of the type,
        // so this thread alone knows the entry.
        unsafe { table::retire(entry) };
        return None;
    }
    table::bind(entry, handle);
    adopted(host, entry, handle);
    Some(())
}

/// Returns the compiled type of a derived datatype. If a compiled type is kept for equal envelope,
/// contents and bounds, returns that one, otherwise a new one. Returns `None` if the datatype is
/// bypassed, or if its constructors have more arguments than the maximum ([`Types::exceeded`]).
fn commit(host: &Host, types: &mut Types, datatype: HandleWord, envelope: Envelope) -> Option<Committed> {
    let committed = if Description::has_room(&envelope) {
        commit_short(host, types, datatype, envelope)
    } else {
        commit_new(host, types, datatype, None)
    };
    match committed {
        Ok(committed) => {
            counted::adopted(committed.as_ref()?);
            committed
        }
        Err(error) => {
            if types.exceeded().is_none() {
                counted::refused(&error);
            }
            None
        }
    }
}

/// As [`commit`], for a type whose arguments fit into a [`Description`]. Returns `Ok(None)` if the
/// MPI library copies bytes at other places than those of the type map.
fn commit_short(
    host: &Host,
    types: &mut Types,
    datatype: HandleWord,
    envelope: Envelope,
) -> ddtc::Result<Option<Committed>> {
    let mut description = Description::new(envelope, types.bounds(&datatype)?);
    types.describe(datatype, &mut description)?;
    let are_named = description.datatypes().iter().all(|old| host.named(old & host.mask).is_some());
    if !are_named {
        return commit_new(host, types, datatype, Some(description.contents()));
    }
    if let Some(committed) = known::find(&description, &engine())
        && !wrong_map::packs_differently(committed.datatype())
    {
        return Ok(Some(committed.again()));
    }
    let committed = commit_new(host, types, datatype, Some(description.contents()))?;
    if let Some(committed) = &committed {
        known::keep(&description, committed.clone());
    }
    Ok(committed)
}

/// Decodes and compiles a type for which no equal compiled type is kept. `contents` are the
/// contents of the type if the MPI library was queried for them already. Returns `Ok(None)` if the
/// MPI library copies bytes at other places than those of the type map.
fn commit_new(
    host: &Host,
    types: &mut Types,
    datatype: HandleWord,
    contents: Option<Contents<HandleWord>>,
) -> ddtc::Result<Option<Committed>> {
    let t = types.decode(datatype, contents)?;
    if wrong_map::is_wrong(host, types, datatype, &t)? {
        return Ok(None);
    }
    engine().commit(&t).map(Some)
}

/// Ends the epoch for datatypes: unbinds all handles, adds the counts of the convertor hook to
/// those of the process, and frees the keyval. Must be called before the MPI library's own
/// finalization.
pub(crate) fn end_epoch(host: &Host) {
    table::forget_all();
    fold_all(host);
    hotness::forget_all();
    known::forget_all();
    if let Some(keyval) = KEYVAL.take() {
        free_keyval(host, keyval);
    }
}

/// Called after the MPI library was finalized. Forgets what was learnt about datatypes meanwhile,
/// in delete callbacks of the program. Makes no call of the MPI library, because handles and
/// keyvals have no meaning any more.
pub(crate) fn forget_after_end() {
    table::forget_all();
    hotness::forget_all();
    known::forget_all();
    let _ = KEYVAL.take();
}
