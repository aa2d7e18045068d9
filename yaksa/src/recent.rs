//! Cache of each thread. It has the types that the thread used last, so that the thread can read
//! their properties and pack with them without taking a lock or writing to shared memory. The cache
//! also has a few vacant slots of the table of types. While these slots last, a new type gets its
//! number without a lock.
//!
//! An entry is valid as long as the slot of its type has the same generation. So a number that any
//! thread has freed names nothing in this cache either. If a type was used, and not only its
//! properties were read, its entry keeps the type alive until the thread replaces the entry, frees
//! that number itself, or ends.

use std::cell::RefCell;

use crate::abi::{Code, Result};
use crate::builtin;
use crate::node::{Facts, Node, Ref};
use crate::table::{self, Slot, Vacant};

/// Number of entries per thread, which is a power of two.
const WAYS: usize = 8;

/// Derived type that the thread made or looked up.
struct Entry {
    number: u64,
    slot: &'static Slot,
    facts: Facts,
    /// The type; `None` if only its properties were needed so far.
    node: Option<Ref>,
}

/// Cache of one thread.
struct Local {
    entries: [Option<Entry>; WAYS],
    vacant: Vec<Vacant>,
}

impl Drop for Local {
    fn drop(&mut self) {
        table::put_back(self.vacant.drain(..));
    }
}

thread_local! {
    static LOCAL: RefCell<Local> =
        const { RefCell::new(Local { entries: [const { None }; WAYS], vacant: Vec::new() }) };
}

/// Returns the index of the only entry in which a number may be.
#[inline]
fn way(number: u64) -> usize {
    number as usize % WAYS
}

impl Entry {
    /// Returns true if this is the entry of `number`, and `number` has not been freed.
    #[inline]
    fn holds(&self, number: u64) -> bool {
        self.number == number && self.slot.still(number)
    }
}

/// Returns the result of `f` for the entry of a type; `None` if there is no valid entry.
#[inline]
fn known<R>(number: u64, f: impl FnOnce(&Entry) -> Option<R>) -> Option<R> {
    let found = LOCAL.try_with(|local| {
        // The cache is borrowed while `f` runs. A call that the same thread makes meanwhile can
        // read the cache too. If that call has to write to the cache, it does its work without the
        // cache.
        let local = local.try_borrow().ok()?;
        f(local.entries[way(number)].as_ref().filter(|entry| entry.holds(number))?)
    });
    found.ok().flatten()
}

/// Returns the result of `f` for the type with a number. Fails with [`Code::Internal`] if the
/// number names no type.
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

/// Returns the result of `f` for a derived type that is looked up in the table of types, and
/// adds the type to this thread's list of recent types.
#[cold]
fn look<R>(number: u64, f: impl FnOnce(&Node) -> R) -> Result<R> {
    let slot = table::find(number).ok_or(Code::Internal)?;
    let node = table::get(number)?;
    let result = f(&node);
    store(Entry { number, slot, facts: node.facts, node: Some(node) });
    Ok(result)
}

/// Returns the result of `f` for the properties of a type. Fails with [`Code::Internal`] if the
/// number names no type.
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

/// Returns the properties of a type. Fails with [`Code::Internal`] if the number names no type.
#[inline]
pub(crate) fn facts(number: u64) -> Result<Facts> {
    with_facts(number, |facts| *facts)
}

/// Returns the properties of a derived type, which is looked up in the table, and makes an entry.
#[cold]
fn look_facts(number: u64) -> Result<Facts> {
    let slot = table::find(number).ok_or(Code::Internal)?;
    let facts = table::with(number, |node| node.facts)?;
    store(Entry { number, slot, facts, node: None });
    Ok(facts)
}

/// Returns a reference to the type with a number. Fails with [`Code::Internal`] if the number names
/// no type.
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

/// Returns a new number for a type. The properties of the type become an entry, because callers ask
/// for them next.
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
            // or there was no memory for vacant slots. So the slot comes from the table, and the
            // remaining slots go back there.
            let mut one = Vec::new();
            table::restock(&mut one)?;
            let number = table::fill(one.pop().ok_or(Code::OutOfMem)?, node);
            table::put_back(one.drain(..));
            number
        }
        _ => Err(Code::Internal),
    }
}

/// Frees the number of a derived type. Fails with [`Code::Internal`] if the number names no derived
/// type.
#[inline]
pub(crate) fn remove(number: u64) -> Result<()> {
    let (dead, mut vacant) = table::remove(number)?;
    // The slot is vacant now, and the thread keeps it if there is room in its list. A list that has
    // reached its maximum gives half of its slots back to the table first. If the thread cannot
    // keep the slot, it goes back to the table too.
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
    // Both types are dropped after the lock and the borrow have been released, since dropping a
    // large tree takes long.
    drop((dead, old));
    Ok(())
}

impl Local {
    /// Puts an entry in its place. Returns the type of the entry that was there, which the caller
    /// drops.
    #[inline]
    fn put(&mut self, entry: Entry) -> Option<Ref> {
        let place = &mut self.entries[way(entry.number)];
        let old = place.as_mut().and_then(|old| old.node.take());
        *place = Some(entry);
        old
    }
}

/// Stores an entry if the cache of the thread can be used.
fn store(entry: Entry) {
    // After the destructor of the thread-local variable has run, no entry is made.
    let old = LOCAL.try_with(|local| local.try_borrow_mut().ok()?.put(entry));
    // The old type is dropped after the borrow has ended, since dropping a large tree takes long.
    drop(old);
}
