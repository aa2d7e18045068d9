//! Cache of the handles that a thread used last, with their objects. A look-up that hits this cache
//! writes nothing that threads share.
//!
//! An entry holds a reference to its object. The object contains a flag that becomes false when the
//! handle is freed. So an entry can be stale, but it is never used for a wrong object. A handle
//! gets an entry when it misses twice in a row among the handles that share its place. A program
//! that goes through many handles therefore keeps none of them, and pays one look-up in the table
//! for each. A thread drops stale entries when it frees their handle itself, when it misses, and
//! when it ends. So at most [`WAYS`] freed objects for each thread exist longer than their handles.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Object;
use super::handle::Handle;
use super::table::{Found, Table};
use crate::process::is_inconsistent;

/// Number of entries of a thread, a power of two.
const WAYS: usize = 16;

/// The handles that a thread remembers.
struct Recent {
    objects: [Option<Arc<Object>>; WAYS],
    /// For each place in the cache, the last live handle that was looked up there and had no entry.
    missed: [Handle; WAYS],
    /// Value of [`FREED`] when this thread last removed stale entries.
    swept: u64,
}

impl Drop for Recent {
    fn drop(&mut self) {
        // The last reference to an object frees memory under locks. In a marked child, threads that
        // it does not have may hold them.
        if is_inconsistent() {
            self.objects.iter_mut().for_each(|entry| std::mem::forget(entry.take()));
        }
    }
}

/// Number of handles that have been freed. As long as it does not change, no entry becomes stale.
static FREED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static RECENT: RefCell<Recent> = const {
        RefCell::new(Recent { objects: [const { None }; WAYS], missed: [Handle::ZERO; WAYS], swept: 0 })
    };
}

#[inline]
fn way(handle: Handle) -> usize {
    handle.index() as usize % WAYS
}

/// Calls `f` with the object of `handle` if the object is live, and returns the result of `f`.
#[inline]
pub(super) fn with<R>(table: &Table<Object>, handle: Handle, f: impl FnOnce(&Object) -> R) -> Option<R> {
    let mut f = Some(f);
    // In destructors at the end of a thread, the thread-local variable may not exist any more. Then
    // each look-up is a miss.
    let hit = RECENT.try_with(|recent| {
        // While `f` runs, the cell stays borrowed. So a callback inside `f` may look up handles in
        // this cache, but if it misses, it cannot add an entry.
        let recent = recent.try_borrow().ok()?;
        match &recent.objects[way(handle)] {
            Some(object) if object.handle == handle && object.is_live() => f.take().map(|f| f(object)),
            _ => None,
        }
    });
    match (hit, f) {
        (Ok(Some(result)), _) => Some(result),
        (_, Some(f)) => miss(table, handle).map(|object| f(&object)),
        (_, None) => None,
    }
}

fn miss(table: &Table<Object>, handle: Handle) -> Option<Found<Object>> {
    let found = table.get(handle)?;
    let dead = RECENT.try_with(|recent| {
        let mut recent = recent.try_borrow_mut().ok()?;
        let again = std::mem::replace(&mut recent.missed[way(handle)], handle) == handle;
        let sweep = again || recent.swept != FREED.load(Relaxed);
        sweep.then(|| renew(&mut recent, again.then_some(&found)))
    });
    // Drop the removed entries here, after the borrow of the cell. Dropping a datatype frees
    // memory, and the allocator may be code of the program.
    drop(dead);
    Some(found)
}

/// Removes all stale entries of the cache, and adds an entry for the object `found` if it is given.
/// Returns the removed entries, for the caller to drop.
#[cold]
fn renew(recent: &mut Recent, found: Option<&Found<Object>>) -> [Option<Arc<Object>>; WAYS] {
    recent.swept = FREED.load(Relaxed);
    let mut dead = [const { None }; WAYS];
    for (entry, dead) in recent.objects.iter_mut().zip(&mut dead) {
        if entry.as_ref().is_some_and(|o| !o.is_live()) {
            *dead = entry.take();
        }
    }
    if let Some(object) = found {
        let way = way(object.handle);
        dead[way] = recent.objects[way].replace(Arc::clone(object)).or(dead[way].take());
    }
    dead
}

/// Drops the entry of this thread for a handle that was freed, and makes other threads look for
/// stale entries at their next miss.
pub(super) fn forget(handle: Handle) {
    FREED.fetch_add(1, Relaxed);
    let entry = RECENT.try_with(|recent| {
        let mut recent = recent.try_borrow_mut().ok()?;
        let entry = &mut recent.objects[way(handle)];
        if entry.as_ref().is_some_and(|o| o.handle == handle) { entry.take() } else { None }
    });
    drop(entry);
}
