//! Handles of ddtc's performance variables, which tools allocate in sessions of the MPI library.
//!
//! Tools use sessions of the MPI library. When a tool allocates the first handle of one of ddtc's
//! variables in a session, a session of ddtc's engine is opened for that session. It is not opened
//! earlier, because the engine counts calls while one of its sessions is open. A handle is the
//! address of a byte in this file. A freed handle is given out again only after all other free
//! handles. No function that could call back into this file is called while the lock is held.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::AtomicU8;

use ddtc::ErrorClass;
use ddtc::internal::object::Handle;
use ddtc::internal::process::{Guard, Mutex, Once};
use ddtc::internal::tool::{alloc_performance, close_session, free_performance, open_session};

use super::member;

/// Maximum number of handles of ddtc's performance variables that exist at a time.
const MAX_HANDLES: usize = 1 << 16;
/// Bytes whose addresses are the handles. These bytes are never read or written. They are atomic so
/// that the compiler puts them into zeroed memory, which takes no space in the file of ddtc's
/// preload library.
static ADDRESSES: [AtomicU8; MAX_HANDLES] = [const { AtomicU8::new(0) }; MAX_HANDLES];

/// A live handle of a performance variable.
#[derive(Clone, Copy)]
struct PvarHandle {
    /// The MPI library's session in which the handle was made.
    host: usize,
    /// The engine's session that was opened for the MPI library's session.
    session: Handle,
    /// The engine's handle of the same variable in the engine's session.
    handle: Handle,
}

/// All live sessions of the MPI library, and all live handles of ddtc's performance variables.
struct Registry {
    /// The MPI library's sessions by their addresses, each with the engine's session if it has one.
    sessions: BTreeMap<usize, Option<Handle>>,
    /// Handles by the indices of their addresses in [`ADDRESSES`].
    handles: BTreeMap<usize, PvarHandle>,
    /// Index in [`ADDRESSES`] at which the search for a free handle begins.
    next: usize,
}

static REGISTRY: Mutex<Registry> =
    Mutex::new(Registry { sessions: BTreeMap::new(), handles: BTreeMap::new(), next: 0 });

fn registry() -> Guard<'static, Registry> {
    REGISTRY.lock()
}

/// Session of the MPI library that was taken out of the registry while the MPI library frees it.
pub(super) struct Closing {
    host: usize,
    session: Option<Handle>,
}

/// Enters a session that the MPI library has created into the registry.
pub(super) fn opened(host: *const c_void) {
    let old = registry().sessions.insert(host.addr(), None);
    // If the registry has a session at this address already, that session was freed without a call
    // that ddtc saw. So the engine's session for it is closed now.
    end(old.flatten());
}

/// Takes a session of the MPI library out of the registry before the MPI library frees it. Once it
/// is freed, the MPI library may give its address to a new session.
pub(super) fn closing(host: *const c_void) -> Option<Closing> {
    let session = registry().sessions.remove(&host.addr())?;
    Some(Closing { host: host.addr(), session })
}

impl Closing {
    /// Closes the engine's session after the MPI library has freed its own session.
    pub(super) fn done(self) {
        end(self.session);
    }

    /// Puts the session back into the registry after the MPI library has refused to free it.
    pub(super) fn back(self) {
        registry().sessions.entry(self.host).or_insert(self.session);
    }
}

/// Closes all sessions of the engine and frees their handles.
pub(super) fn close_all() {
    let sessions = std::mem::take(&mut registry().sessions);
    sessions.into_values().for_each(end);
}

/// Closes an engine's session, if there is one, and frees its handles.
fn end(session: Option<Handle>) {
    if let Some(session) = session {
        registry().handles.retain(|_, m| m.session != session);
        let _ = close_session(session);
    }
}

/// Returns true if a handle of a performance variable is one of ddtc's, and not of the MPI library.
pub(super) fn is_ours(handle: *const c_void) -> bool {
    member(&ADDRESSES, handle).is_some()
}

/// Returns the engine's session that was opened for a session of the MPI library; `None` if none
/// was opened.
pub(super) fn session(host: *const c_void) -> Option<Handle> {
    registry().sessions.get(&host.addr()).copied().flatten()
}

/// Allocates a handle of the engine's performance variable `index` in a session of the MPI library.
/// Fails if that session is not known, or if all handles are in use.
pub(super) fn alloc(host: *const c_void, index: usize) -> Result<*const c_void, ErrorClass> {
    static INIT: Once<()> = Once::new();
    INIT.get_or_init(ddtc::internal::tool::init);
    let class = |e: ddtc::Error| e.class();
    let mut registry = registry();
    let Registry { sessions, handles, next } = &mut *registry;
    let session = sessions.get_mut(&host.addr()).ok_or(ErrorClass::ToolInvalidSession)?;
    let start = *next;
    let mut places = (0..MAX_HANDLES).map(|k| (start + k) % MAX_HANDLES);
    let place = places.find(|p| !handles.contains_key(p)).ok_or(ErrorClass::ToolNotAccessible)?;
    let session = match *session {
        Some(session) => session,
        None => *session.insert(open_session().map_err(class)?),
    };
    let handle = alloc_performance(session, index as i32).map_err(class)?;
    handles.insert(place, PvarHandle { host: host.addr(), session, handle });
    *next = place + 1;
    Ok((&raw const ADDRESSES[place]).cast())
}

/// Returns the engine's session and the engine's handle for a session of the MPI library and a
/// handle of ddtc's. Fails if that session is not known, or if the handle is not live in that
/// session.
pub(super) fn find(host: *const c_void, handle: *const c_void) -> Result<(Handle, Handle), ErrorClass> {
    let registry = registry();
    let session = *registry.sessions.get(&host.addr()).ok_or(ErrorClass::ToolInvalidSession)?;
    let pvar = member(&ADDRESSES, handle).and_then(|place| registry.handles.get(&place));
    let pvar = pvar.filter(|m| m.host == host.addr() && Some(m.session) == session);
    pvar.map(|m| (m.session, m.handle)).ok_or(ErrorClass::ToolInvalidHandle)
}

/// Frees a handle of ddtc's in a session of the MPI library. Fails under the conditions of
/// [`find`].
pub(super) fn free(host: *const c_void, handle: *const c_void) -> Result<(), ErrorClass> {
    let (session, pvar) = find(host, handle)?;
    if let Some(place) = member(&ADDRESSES, handle) {
        registry().handles.remove(&place);
    }
    free_performance(session, pvar).map_err(|e| e.class())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_belong_to_live_sessions_and_come_back_last() {
        let (a, b) = (std::ptr::without_provenance(16), std::ptr::without_provenance(32));
        opened(a);
        opened(b);
        assert!(session(a).is_none());
        let first = alloc(a, 0).unwrap();
        assert!(is_ours(first) && !is_ours(a) && session(a).is_some());
        assert_eq!(find(b, first), Err(ErrorClass::ToolInvalidHandle));
        free(a, first).unwrap();
        assert_eq!(free(a, first), Err(ErrorClass::ToolInvalidHandle));
        let second = alloc(a, 0).unwrap();
        assert!(second != first);
        // In this test the MPI library first refuses to free the session, and then frees it. Before
        // `done` is called for the old session, a new session gets its address.
        closing(a).unwrap().back();
        assert!(find(a, second).is_ok());
        let old = closing(a).unwrap();
        assert_eq!(find(a, second), Err(ErrorClass::ToolInvalidSession));
        opened(a);
        let third = alloc(a, 0).unwrap();
        old.done();
        assert_eq!(find(a, second), Err(ErrorClass::ToolInvalidHandle));
        assert!(find(a, third).is_ok());
        // All `MAX_HANDLES` handles can be allocated, and no more.
        let all: Vec<_> = (1..MAX_HANDLES).map(|_| alloc(b, 0).unwrap()).collect();
        assert_eq!(alloc(b, 0), Err(ErrorClass::ToolNotAccessible));
        free(b, all[7]).unwrap();
        assert_eq!(alloc(b, 0), Ok(all[7]));
        close_all();
        assert_eq!(alloc(b, 0), Err(ErrorClass::ToolInvalidSession));
        assert_eq!(find(a, third), Err(ErrorClass::ToolInvalidSession));
        assert!(registry().handles.is_empty());
    }
}
