//! Memory of a thread: the types that it used last, so that reading their numbers and packing by them takes no lock and writes nothing
//! shared, and a few vacant slots, so that a new type finds one the same way.
//!
//! An entry holds as long as the slot of its type is in the same life; so a number that was freed, by whomever, names nothing here either. An entry of a
//! type that was used keeps it alive until the thread puts another in its place, frees that number itself, or ends.

use std::cell::RefCell;

use crate::abi::{Code, Result};
use crate::builtin;
use crate::node::{Facts, Node, Ref};
use crate::table::{self, Slot, Vacant};

/// Entries per thread; a power of two.
const WAYS: usize = 8;

/// A derived type that the thread used.
struct Entry {
    number: u64,
    slot: &'static Slot,
    facts: Facts,
    /// None where only the numbers were asked for so far.
    node: Option<Ref>,
}

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

#[inline]
fn way(number: u64) -> usize {
    number as usize % WAYS
}

impl Entry {
    #[inline]
    fn holds(&self, number: u64) -> bool {
        self.number == number && self.slot.still(number)
    }
}

/// Returns the result of `f` for the entry of a type, if there is one that holds.
#[inline]
fn known<R>(number: u64, f: impl FnOnce(&Entry) -> Option<R>) -> Option<R> {
    let found = LOCAL.try_with(|local| {
        // Shared while `f` runs: what comes here meanwhile can read, or misses.
        let local = local.try_borrow().ok()?;
        f(local.entries[way(number)].as_ref().filter(|entry| entry.holds(number))?)
    });
    found.ok().flatten()
}

/// Calls `f` with a type that lives.
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

/// Asks the table, and remembers what it said.
#[cold]
fn look<R>(number: u64, f: impl FnOnce(&Node) -> R) -> Result<R> {
    let slot = table::find(number).ok_or(Code::Internal)?;
    let node = table::get(number)?;
    let result = f(&node);
    remember(Entry { number, slot, facts: node.facts, node: Some(node) });
    Ok(result)
}

/// Returns the result of `f` for the numbers about a type that lives.
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

/// Numbers about a type that lives.
#[inline]
pub(crate) fn facts(number: u64) -> Result<Facts> {
    with_facts(number, |facts| *facts)
}

#[cold]
fn look_facts(number: u64) -> Result<Facts> {
    let slot = table::find(number).ok_or(Code::Internal)?;
    let facts = table::with(number, |node| node.facts)?;
    remember(Entry { number, slot, facts, node: None });
    Ok(facts)
}

/// Returns a type that lives.
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

/// Gives a type a number, whose sizes and bounds this thread will ask for next.
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
            // No thread-local any more, in a destructor at the thread's end; or no memory.
            let mut one = Vec::new();
            table::restock(&mut one)?;
            let number = table::fill(one.pop().ok_or(Code::OutOfMem)?, node);
            table::put_back(one.drain(..));
            number
        }
        _ => Err(Code::Internal),
    }
}

/// Ends the life of a number.
#[inline]
pub(crate) fn remove(number: u64) -> Result<()> {
    let (dead, mut vacant) = table::remove(number)?;
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
    // Outside of lock and borrow: a tree may be large.
    drop((dead, old));
    Ok(())
}

impl Local {
    /// Puts an entry in its place; what was there is the caller's to drop.
    #[inline]
    fn put(&mut self, entry: Entry) -> Option<Ref> {
        let place = &mut self.entries[way(entry.number)];
        let old = place.as_mut().and_then(|old| old.node.take());
        *place = Some(entry);
        old
    }
}

fn remember(entry: Entry) {
    // Where there is no thread-local any more nothing is remembered.
    let old = LOCAL.try_with(|local| local.try_borrow_mut().ok()?.put(entry));
    // Outside the borrow: what it frees may be large.
    drop(old);
}
