//! The handles that a thread used last, with their objects: reading through them takes no lock and writes nothing shared.
//!
//! An entry holds a reference to its object. Whether the object still lives is a flag in it, set false when the handle is freed, so
//! an entry can be stale but never wrong. A thread drops a stale entry when it frees the handle itself, when it looks up
//! something that is not here, and when it ends: at most [`WAYS`] dead objects per thread outlive their handles.

use std::cell::RefCell;
use std::sync::Arc;

use super::Object;
use super::handle::Handle;
use super::table::Table;

/// Entries per thread; a power of two.
const WAYS: usize = 16;

thread_local! {
    static RECENT: RefCell<[Option<Arc<Object>>; WAYS]> = const { RefCell::new([const { None }; WAYS]) };
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
        match &recent[way(handle)] {
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

#[cold]
fn miss(table: &Table<Object>, handle: Handle) -> Option<Arc<Object>> {
    let object = table.get(handle)?;
    let mut dead: [Option<Arc<Object>>; WAYS] = [const { None }; WAYS];
    let _ = RECENT.try_with(|recent| {
        if let Ok(mut recent) = recent.try_borrow_mut() {
            for (entry, dead) in recent.iter_mut().zip(&mut dead) {
                if entry.as_ref().is_some_and(|o| !o.is_live()) {
                    *dead = entry.take();
                }
            }
            dead[way(handle)] = recent[way(handle)].replace(Arc::clone(&object)).or(dead[way(handle)].take());
        }
    });
    // Dropped here, outside the borrow: dropping a datatype frees memory, which may be the embedder's code.
    drop(dead);
    Some(object)
}

/// Drops this thread's entry of a handle that was freed.
pub(super) fn forget(handle: Handle) {
    let entry = RECENT.try_with(|recent| {
        let mut recent = recent.try_borrow_mut().ok()?;
        let entry = &mut recent[way(handle)];
        if entry.as_ref().is_some_and(|o| o.handle == handle) { entry.take() } else { None }
    });
    drop(entry);
}
