//! The handles that a thread used last, with their objects: reading through them writes nothing shared.
//!
//! An entry holds a reference to its object. Whether the object still lives is a flag in it, set false when the handle is freed, so
//! an entry can be stale but never wrong. A handle gets an entry when it is looked up for the second time in a row among those that
//! share its place: a walk over many handles keeps nothing and costs a look-up in the table each. A thread drops its stale
//! entries when it frees the handle itself, when it looks up something that is not here, and when it ends: at most [`WAYS`] dead
//! objects per thread outlive their handles.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Object;
use super::handle::Handle;
use super::table::{Found, Table};

/// Entries per thread; a power of two.
const WAYS: usize = 16;

/// Handles that a thread remembers.
struct Recent {
    objects: [Option<Arc<Object>>; WAYS],
    /// The handle that was last looked up in vain, by place.
    missed: [Handle; WAYS],
    /// [`FREED`] when this thread last looked for stale entries.
    swept: u64,
}

/// Handles freed so far: where it stands still, no entry has become stale.
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

/// Calls `f` with the live object of `handle`.
#[inline]
pub(super) fn with<R>(table: &Table<Object>, handle: Handle, f: impl FnOnce(&Object) -> R) -> Option<R> {
    let mut f = Some(f);
    // No thread-local any more, in a destructor at the thread's end: every look-up is a miss.
    let hit = RECENT.try_with(|recent| {
        // Shared while `f` runs: a callback may come back here and read, or miss and not insert.
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
    // Dropped here, outside the borrow: dropping a datatype frees memory, which may be the embedder's code.
    drop(dead);
    Some(found)
}

/// Takes out stale entries, and gives `found` one.
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

/// Drops this thread's entry of a handle that was freed.
pub(super) fn forget(handle: Handle) {
    FREED.fetch_add(1, Relaxed);
    let entry = RECENT.try_with(|recent| {
        let mut recent = recent.try_borrow_mut().ok()?;
        let entry = &mut recent.objects[way(handle)];
        if entry.as_ref().is_some_and(|o| o.handle == handle) { entry.take() } else { None }
    });
    drop(entry);
}
