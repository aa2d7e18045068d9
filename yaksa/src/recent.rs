//! Cache of the types that a thread used last. Each thread has one. With it, the thread can read
//! the size and bounds of these types, and pack with them, without taking a lock or writing to
//! shared memory. The cache also has a few vacant slots of the table that maps type handles to
//! types (`table.rs`). While the cache has such slots, no lock is needed to give a new type its
//! handle.
//!
//! An entry belongs to a type handle, which contains the generation of a slot in the table. The
//! entry is valid as long as the slot still has this generation. When any thread frees the handle,
//! the generation of the slot changes, so no cache finds the handle any more. An entry that was
//! made for packing, and not only to read the size and bounds of its type, keeps the type alive
//! until the thread replaces the entry, frees the type handle itself, or ends.

use std::cell::RefCell;

use ddtc::internal::process::is_inconsistent;

use crate::abi::{Code, Result};
use crate::builtin;
use crate::node::{Facts, Node, Ref};
use crate::table::{self, Slot, Vacant};

/// Number of types in the cache of a thread, which is a power of two.
const WAYS: usize = 8;

/// Cached type: a derived type that the thread made or looked up.
struct Entry {
    number: u64,
    slot: &'static Slot,
    facts: Facts,
    /// The type itself; `None` if the thread has needed only the size, the bounds or the number of
    /// pieces of the type.
    node: Option<Ref>,
}

/// Cache of one thread: types that the thread used last, and vacant slots of the table of types.
struct Local {
    entries: [Option<Entry>; WAYS],
    vacant: Vec<Vacant>,
}

impl Drop for Local {
    fn drop(&mut self) {
        // The table has a lock, and the last reference to a type frees memory under locks. In a
        // marked child, threads that it does not have may hold them.
        if is_inconsistent() {
            self.entries.iter_mut().for_each(|entry| std::mem::forget(entry.take()));
        } else if !self.vacant.is_empty() {
            table::put_back(self.vacant.drain(..));
        }
    }
}

thread_local! {
    static LOCAL: RefCell<Local> =
        const { RefCell::new(Local { entries: [const { None }; WAYS], vacant: Vec::new() }) };
}

/// Returns the index of the only entry of the cache that may belong to a type handle.
#[inline]
fn way(number: u64) -> usize {
    number as usize % WAYS
}

impl Entry {
    /// Returns true if this is the entry of the type handle `number`, and no thread has freed that
    /// handle.
    #[inline]
    fn holds(&self, number: u64) -> bool {
        self.number == number && self.slot.still(number)
    }
}

/// Calls `f` with this thread's cache entry for a type handle and returns the result; `None` if
/// there is no valid entry.
#[inline]
fn known<R>(number: u64, f: impl FnOnce(&Entry) -> Option<R>) -> Option<R> {
    let found = LOCAL.try_with(|local| {
        // The cache is borrowed while `f` runs. If the same thread calls the library again
        // meanwhile, the inner call can read the cache, too. An inner call that would have to write
        // to the cache works without the cache.
        let local = local.try_borrow().ok()?;
        f(local.entries[way(number)].as_ref().filter(|entry| entry.holds(number))?)
    });
    found.ok().flatten()
}

/// Calls `f` with the type that a handle names, and returns the result. Fails with
/// [`Code::Internal`] if the handle names no type.
#[inline]
pub(crate) fn with_node<R>(number: u64, f: impl FnOnce(&Node) -> R) -> Result<R> {
    if let Some(node) = builtin::node(number) {
        return Ok(f(node));
    }
    let mut f = Some(f);
    if let Some(result) = known(number, |entry| {
        let node = entry.node.as_deref()?;
        f.take().map(|f| f(node))
    }) {
        return Ok(result);
    }
    look(number, f.ok_or(Code::Internal)?)
}

/// Looks up a derived type in the table of all types, calls `f` with it, adds the type to this
/// thread's cache, and returns the result of `f`. Fails with [`Code::Internal`] if the handle names
/// no derived type.
#[cold]
fn look<R>(number: u64, f: impl FnOnce(&Node) -> R) -> Result<R> {
    let slot = table::find(number).ok_or(Code::Internal)?;
    let node = table::get(number)?;
    let result = f(&node);
    store(Entry { number, slot, facts: node.facts, node: Some(node) });
    Ok(result)
}

/// Calls `f` with the size and bounds of the type that a handle names, and returns the result.
/// Fails with [`Code::Internal`] if the handle names no type.
#[inline]
pub(crate) fn with_facts<R>(number: u64, f: impl FnOnce(&Facts) -> R) -> Result<R> {
    if let Some(node) = builtin::node(number) {
        return Ok(f(&node.facts));
    }
    let mut f = Some(f);
    if let Some(result) = known(number, |entry| f.take().map(|f| f(&entry.facts))) {
        return Ok(result);
    }
    let facts = look_facts(number)?;
    f.map(|f| f(&facts)).ok_or(Code::Internal)
}

/// Returns the size and bounds of the type that a handle names. Fails with [`Code::Internal`] if
/// the handle names no type.
#[inline]
pub(crate) fn facts(number: u64) -> Result<Facts> {
    with_facts(number, |facts| *facts)
}

/// Looks up a derived type in the table of all types, stores its size and bounds in this thread's
/// cache, and returns them. Fails with [`Code::Internal`] if the handle names no derived type.
#[cold]
fn look_facts(number: u64) -> Result<Facts> {
    let slot = table::find(number).ok_or(Code::Internal)?;
    let facts = table::with(number, |node| node.facts)?;
    store(Entry { number, slot, facts, node: None });
    Ok(facts)
}

/// Returns a reference to the type that a handle names. Fails with [`Code::Internal`] if the handle
/// names no type.
#[inline]
pub(crate) fn get(number: u64) -> Result<Ref> {
    if let Some(node) = builtin::node(number) {
        return Ok(Ref::clone(node));
    }
    match known(number, |entry| entry.node.clone()) {
        Some(node) => Ok(node),
        None => table::get(number),
    }
}

/// Returns a new handle for a type. Stores the size and bounds of the type in this thread's cache,
/// because callers ask for them next.
#[inline]
pub(crate) fn insert(node: Ref) -> Result<u64> {
    let facts = node.facts;
    let mut node = Some(node);
    let made = LOCAL.try_with(|local| {
        let mut local = local.try_borrow_mut().ok()?;
        if local.vacant.is_empty() {
            table::restock(&mut local.vacant).ok()?;
        }
        let number = table::fill(local.vacant.pop()?, node.take()?).ok()?;
        let entry = Entry { number, slot: table::find(number)?, facts, node: None };
        Some((number, local.put(entry)))
    });
    match (made, node) {
        (Ok(Some((number, _old))), _) => Ok(number),
        (_, Some(node)) => {
            // The cache of this thread cannot be used: its destructor has run, or it is borrowed,
            // or there was no memory for vacant slots. So a vacant slot is taken from the table.
            // `restock` always gives a batch of slots: one is filled, and the others are returned
            // to the table.
            let mut one = Vec::new();
            table::restock(&mut one)?;
            let number = table::fill(one.pop().ok_or(Code::OutOfMem)?, node);
            table::put_back(one.drain(..));
            number
        }
        _ => Err(Code::Internal),
    }
}

/// Frees the handle of a derived type. Fails with [`Code::Internal`] if the handle names no derived
/// type.
#[inline]
pub(crate) fn remove(number: u64) -> Result<()> {
    let (dead, mut vacant) = table::remove(number)?;
    // The slot of the freed handle is vacant now. The thread adds it to its own list of vacant
    // slots. If this list has its maximum length, the thread first makes room: it returns half of
    // the slots in the list to the table. The thread cannot add the slot if its cache has been
    // destroyed or is borrowed, or if the list has no room, as in a thread that has not made a type
    // yet. Then the slot is returned to the table after the cache has been tried.
    let old = LOCAL.try_with(|local| {
        let mut local = local.try_borrow_mut().ok()?;
        let old = local.entries[way(number)].as_mut().filter(|entry| entry.number == number);
        let old = old.and_then(|entry| entry.node.take());
        if local.vacant.len() >= table::STOCK {
            table::put_back(local.vacant.drain(..table::STOCK / 2));
        }
        if local.vacant.len() < local.vacant.capacity() {
            local.vacant.extend(vacant.take());
        }
        old
    });
    if vacant.is_some() {
        table::put_back(vacant.into_iter());
    }
    // `dead` is the reference of the table to the freed type, and `old` is that of the cache. Both
    // are dropped only here, after the lock of the table and the borrow of the cache have been
    // released, since dropping a deeply nested type takes long.
    drop((dead, old));
    Ok(())
}

impl Local {
    /// Stores an entry in the cache, in place of the previous entry at the same index. Returns the
    /// type of the previous entry, so that the caller can drop it after the borrow of the cache has
    /// ended.
    #[inline]
    fn put(&mut self, entry: Entry) -> Option<Ref> {
        let place = &mut self.entries[way(entry.number)];
        let old = place.as_mut().and_then(|old| old.node.take());
        *place = Some(entry);
        old
    }
}

/// Stores an entry in this thread's cache. Does nothing if the cache is borrowed or the thread has
/// already destroyed it.
fn store(entry: Entry) {
    // `try_with` fails after the destructor of the thread-local variable has run. No entry is
    // stored then.
    let old = LOCAL.try_with(|local| local.try_borrow_mut().ok()?.put(entry));
    // The type of the previous entry is dropped only here, after the borrow has ended, since
    // dropping a deeply nested type takes long.
    drop(old);
}
