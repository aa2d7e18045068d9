//! Ties our compiled types to the host's, by an attribute on the type.
//!
//! This is the caching design of the 1996 thread on `MPI_Type_dup`: the attribute's copy callback shares the compiled type with a
//! duplicate, its delete callback ends it with the type, however the program or the host lets go of it. The callbacks make
//! no MPI call and take only locks that are never held across one; they are functions of this library, which is never unloaded,
//! so the host may run them as late as it likes. The keyval is made anew in every epoch: from an initialization of MPI (world or
//! first session) to its end, when all handle values lose their meaning.

use std::ffi::{c_int, c_void};

use ddtc::committed::Committed;
use ddtc::datatype::contents::{Contents, Envelope};
use ddtc::decode::Introspect;
use ddtc::engine::{Engine, Mode};
use ddtc::object::runtime;
use ddtc::process::{Mutex, Once, is_inconsistent};
use ddtc_hosts::policy;

use crate::candidates::{self, Like};
use crate::counted;
use crate::decoding;
use crate::guard::guard;
use crate::hooks::{adopted, fold_all};
use crate::host::{HandleWord, Host};
use crate::introspect::Types;
use crate::keyval::Keyval;
use crate::known::{self, Description};
use crate::policy::Rules;
use crate::prospect;
use crate::reentrancy::Inside;
use crate::reserve;
use crate::settings::settings;
use crate::spending;
use crate::table::{self, Found, TypeEntry};
use crate::use_kind::{CompletedBy, UseKind};
use crate::wrong_map;

/// Returns the engine for the next commit: of the environment's configuration, until a tool changes it.
pub(crate) fn engine() -> Engine {
    configured();
    runtime::engine()
}

/// The configuration of later commits is that of the environment, unless a tool has changed it.
pub(crate) fn configured() {
    static ONCE: Once<()> = Once::new();
    // First: they are read from outside.
    let settings = settings();
    ONCE.get_or_init(|| {
        // The level is one that the machine has: the settings have looked.
        let _ = runtime::configure(|config| {
            *config = settings.config.clone();
            Ok(())
        });
    });
}

/// The mode of later commits.
#[inline]
pub(crate) fn mode() -> Mode {
    #[cold]
    fn first() -> Mode {
        configured();
        runtime::mode()
    }
    // It is not known before the environment was read.
    runtime::known_mode().unwrap_or_else(first)
}

/// The host has committed a type, or was seen to accept it as committed: in mode `lazy` it is noted, in others it is decoded and compiled.
pub(crate) fn committed(host: &'static Host, datatype: HandleWord) {
    let handle = datatype & host.mask;
    if [0, host.type_null].contains(&handle) {
        return;
    }
    // Nothing is asked about a type that may be a layer's: it is looked at when a call that no
    // layer takes uses it.
    if mode() == Mode::Lazy || host.layers.take(policy::Call::Message) {
        // Of one that is decoded, which may be committed again, nobody asks there.
        candidates::note(handle);
    } else if matches!(table::find(handle), Found::Unknown) {
        adopt(host, datatype, u64::MAX);
    }
}

/// Says whether a call is the host's by the handle of its type and a count alone: it is a named one, or one of which this use passes. `used`: a persistent request is as
/// many uses. `completed_by`: of a message.
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
    host.is_named(handle) || !matches!(used, UseKind::Persistent) && candidates::passes(handle, like)
}

static KEYVAL: Keyval = Keyval::new();

fn keyval(host: &Host) -> Option<c_int> {
    let make = || {
        let mut keyval = 0;
        // SAFETY: two callbacks of the standard's types, a number to write to.
        let code = unsafe { host.f.type_create_keyval?(copy, delete, &raw mut keyval, std::ptr::null_mut()) };
        (code == 0).then_some(keyval)
    };
    KEYVAL.get(make, |keyval| free_keyval(host, keyval))
}

fn free_keyval(host: &Host, mut keyval: c_int) {
    if let Some(type_free_keyval) = host.f.type_free_keyval {
        // SAFETY: a keyval that we made.
        let _ = unsafe { type_free_keyval(&raw mut keyval) };
    }
}

/// `MPI_Type_dup` copies the compiled type: a new entry that shares it, bound to the new handle when that is known.
unsafe extern "C-unwind" fn copy(
    _old: HandleWord,
    _keyval: c_int,
    _extra: *mut c_void,
    value: *mut c_void,
    out: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // Nothing is copied unless all that follows succeeds.
    // SAFETY: the host gives a pointer to a flag (MPI 5.0, 7.7.4).
    unsafe { flag.write(0) };
    if is_inconsistent() {
        return 0;
    }
    guard(|| {
        // SAFETY: the value is an entry, as `attach` or this function set it; the old type lives during this call, and with it the entry.
        let (committed, rules) = unsafe {
            let old = &*value.cast::<TypeEntry>();
            (old.committed().cloned(), old.rules())
        };
        let entry = table::entry(committed, rules);
        // SAFETY: the host gives a pointer to an attribute value and one to a flag (MPI 5.0, 7.7.4).
        unsafe {
            out.cast::<*const TypeEntry>().write(entry);
            flag.write(1);
        }
    });
    0
}

/// The type is gone.
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
        // SAFETY: the value is an entry, as `attach` or `copy` set it, and the host deletes an attribute once.
        if let Some(entry) = unsafe { value.cast::<TypeEntry>().as_ref::<'static>() } {
            // SAFETY: the host deletes the attribute of a type that is gone, and once, so the entry is this call's.
            unsafe { table::retire(entry) };
        }
    });
    0
}

/// Handles that a thread is adopting, at most one per thread: the others leave them to it, and a child without that thread leaves them to the host.
static ADOPTING: Mutex<Vec<u64>> = Mutex::new(Vec::new());

struct Claim(u64);

impl Claim {
    fn take(handle: u64) -> Option<Claim> {
        let mut adopting = ADOPTING.lock();
        let is_free = !adopting.contains(&handle);
        if is_free {
            adopting.push(handle);
        }
        // A claim that is made only to be dropped would take the lock again, and the handle from its owner.
        is_free.then(|| Claim(handle))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        ADOPTING.lock().retain(|&handle| handle != self.0);
    }
}

/// Decodes a type that the host has accepted as committed, if its constructors have at most so many arguments, and binds it to its handle; compiles it as the
/// mode says. Whatever goes wrong leaves the type to the host.
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
        // The host calls MPI functions inside our own calls: its types are not the program's.
        None => return,
    };
    guard(|| {
        if let Some(_claim) = Claim::take(handle)
            && matches!(table::find(handle), Found::Unknown)
        {
            let once = spending::forgiven();
            let (attached, nanos) = spending::timed(|| attach(host, datatype, handle, arguments));
            let nanos = nanos.saturating_sub(spending::forgiven() - once);
            // A type that was found says nothing of what decoding costs.
            if let Some(Attached::Decoded { arguments }) = attached {
                decoding::took(arguments, nanos);
                if let Some((kin, _)) = candidates::alike(handle) {
                    kin.decoded(nanos);
                }
            }
            if attached.is_some() {
                candidates::decoded(handle);
            }
        }
    });
}

/// How a type got its entry.
enum Attached {
    /// Its tree was decoded; its constructors have `arguments` arguments, or 0 if that failed.
    Decoded { arguments: u64 },
    /// Its tree was not decoded: an equal type was known, or the library did not say its contents.
    Found,
}

/// Decodes a type, or finds an equal one, and ties an entry to it by an attribute. Returns `None` if the
/// type is predefined, already had an entry, or has too many arguments, or if a call of the library failed.
fn attach(host: &'static Host, datatype: HandleWord, handle: u64, arguments: u64) -> Option<Attached> {
    let mut types = Types::new(host, arguments)?;
    let envelope = types.envelope(&datatype).ok()?;
    if envelope.combiner.is_predefined() {
        table::bind(table::entry(None, Rules::NONE), handle);
        return None;
    }
    let keyval = keyval(host)?;
    // A duplicate made where we did not see it brings its entry along.
    let (mut value, mut flag) = (std::ptr::null_mut::<TypeEntry>(), 0);
    // SAFETY: a valid type and keyval; pointers to an attribute value and a flag.
    let code = unsafe { host.f.type_get_attr?(datatype, keyval, (&raw mut value).cast(), &raw mut flag) };
    let value = if code == 0 && flag != 0 { value } else { std::ptr::null_mut() };
    // SAFETY: null, or the attribute's value, which is an entry, as below or in `copy`.
    if let Some(entry) = unsafe { value.as_ref::<'static>() } {
        // SAFETY: the type has the entry as its attribute, and the program holds the type.
        if let Some(committed) = unsafe { entry.committed() } {
            counted::adopted(committed);
        }
        table::bind(entry, handle);
        adopted(host, entry, handle);
        return None;
    }
    let committed = commit(host, &mut types, datatype, envelope);
    if let Some(arguments) = types.exceeded() {
        candidates::costs_more(handle, arguments);
        return None;
    }
    if committed.is_none() {
        counted::TYPES_BYPASSED.add();
    }
    let alike = candidates::alike(handle);
    let rules = committed.as_ref().map_or(Rules::NONE, |c| Rules::of(host, c, alike.map(|(kin, _)| kin)));
    let arguments = committed.as_ref().map_or(0, |c| c.datatype().arguments());
    let attached = if types.has_decoded() { Attached::Decoded { arguments } } else { Attached::Found };
    if let Some(committed) = &committed {
        prospect::found(committed.datatype(), rules.prospect());
    }
    let entry = table::entry(committed, rules);
    entry.moves(alike.map_or(0, |(_, moved)| moved));
    // SAFETY: a valid type and keyval; the value is an entry, which lives forever.
    let code = unsafe {
        host.f.type_set_attr?(datatype, keyval, std::ptr::from_ref(entry).cast_mut().cast::<c_void>())
    };
    if code != 0 {
        // SAFETY: it was not bound, and the type has not got it.
        unsafe { table::retire(entry) };
        return None;
    }
    table::bind(entry, handle);
    adopted(host, entry, handle);
    Some(attached)
}

/// Returns the committed type of a derived type: the one that is kept if envelope, contents and bounds are
/// equal, otherwise a new one. Returns `None` if the type is left to the library.
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

/// As [`commit`], of a type with few arguments. `None`: the library moves other places than the tree
/// of the type says.
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

/// As [`commit_short`], of a type that is not known. `contents`: its own, if they were asked for.
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

/// Ends the epoch: all handles are unbound, the keyval is given back. Before the host's own finalization.
pub(crate) fn end_epoch(host: &Host) {
    table::forget_all();
    fold_all(host);
    candidates::forget_all();
    known::forget_all();
    if let Some(keyval) = KEYVAL.take() {
        free_keyval(host, keyval);
    }
}
