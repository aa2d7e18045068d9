//! The types that a thread used last: reading their numbers and packing by them takes no lock and writes nothing shared.
//!
//! An entry of a derived type holds while no type has been freed since it was made; then it is made anew. So a number that was freed, by whomever, names
//! nothing here either. An entry of a type that was used keeps it alive until the thread puts another in its place or ends.

use std::cell::RefCell;
use std::sync::Arc;

use crate::abi::{Code, Result};
use crate::builtin;
use crate::node::{Facts, Node};
use crate::table;
use crate::used::Used;

/// Entries per thread; a power of two.
const WAYS: usize = 8;

struct Entry {
    number: u64,
    /// [`table::freed`] when this was known to hold.
    freed: u64,
    facts: Facts,
    /// None where only the numbers were asked for so far.
    node: Option<Arc<Node>>,
    used: Option<Arc<Used>>,
}

thread_local! {
    static RECENT: RefCell<[Option<Entry>; WAYS]> = const { RefCell::new([const { None }; WAYS]) };
}

#[inline]
fn way(number: u64) -> usize {
    number as usize % WAYS
}

impl Entry {
    #[inline]
    fn holds(&self, number: u64) -> bool {
        self.number == number && (number < builtin::TYPES || self.freed == table::freed())
    }
}

/// What `f` makes of the entry of a type, if there is one that holds.
#[inline]
fn known<R>(number: u64, f: impl FnOnce(&Entry) -> Option<R>) -> Option<R> {
    let found = RECENT.try_with(|recent| {
        // Shared while `f` runs: what comes here meanwhile can read, or misses.
        let recent = recent.try_borrow().ok()?;
        f(recent[way(number)].as_ref().filter(|entry| entry.holds(number))?)
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
    let (node, _) = look(number, false)?;
    f.map(|f| f(&node)).ok_or(Code::Internal)
}

/// Numbers about a type that lives.
#[inline]
pub(crate) fn facts(number: u64) -> Result<Facts> {
    if let Some(node) = builtin::node(number) {
        return Ok(node.facts);
    }
    match known(number, |entry| Some(entry.facts)) {
        Some(facts) => Ok(facts),
        None => look(number, false).map(|(node, _)| node.facts),
    }
}

/// A type that lives, and what is known of its use.
#[inline]
pub(crate) fn get(number: u64) -> Result<(Arc<Node>, Option<Arc<Used>>)> {
    if let Some(node) = builtin::node(number) {
        return Ok((Arc::clone(node), None));
    }
    match known(number, |entry| Some((entry.node.clone()?, entry.used.clone()))) {
        Some(found) => Ok(found),
        None => look(number, false),
    }
}

/// Calls `f` with what the calls of a type that lives have made.
#[inline]
pub(crate) fn with_used<R>(number: u64, f: impl FnOnce(&Used) -> Result<R>) -> Result<R> {
    let mut f = Some(f);
    let found = known(number, |entry| {
        let used = entry.used.as_deref()?;
        f.take().map(|f| f(used))
    });
    if let Some(result) = found {
        return result;
    }
    match (look(number, true)?, f) {
        ((_, Some(used)), Some(f)) => f(&used),
        _ => Err(Code::Internal),
    }
}

/// Gives a type a number, whose sizes and bounds this thread will ask for next.
pub(crate) fn insert(node: Arc<Node>, used: Option<Arc<Used>>) -> Result<u64> {
    let (freed, facts) = (table::freed(), node.facts);
    let number = table::insert(node, used)?;
    remember(Entry { number, freed, facts, node: None, used: None });
    Ok(number)
}

fn remember(entry: Entry) {
    // No thread-local any more, in a destructor at the thread's end: nothing is remembered.
    let old = RECENT.try_with(|recent| {
        let mut recent = recent.try_borrow_mut().ok()?;
        recent[way(entry.number)].replace(entry)
    });
    // Outside the borrow: what it frees may be large.
    drop(old);
}

/// Asks the table, and remembers what it said.
#[cold]
fn look(number: u64, use_it: bool) -> Result<(Arc<Node>, Option<Arc<Used>>)> {
    // Before the table is asked: what is freed afterwards makes the entry stale.
    let freed = table::freed();
    let (node, mut used) = table::get(number)?;
    if use_it && used.is_none() {
        used = Some(table::keep(number, Used::new(Arc::clone(&node))));
    }
    remember(Entry { number, freed, facts: node.facts, node: Some(Arc::clone(&node)), used: used.clone() });
    Ok((node, used))
}
