//! Handles of our performance variables, by the host's sessions.
//!
//! A session is the host's; it has a session of the engine from its first handle of ours on, because calls are counted while one is
//! registry. A handle is the address of a byte here: a freed one comes back only after all others. Nothing is called with the lock held
//! that could come back.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::AtomicU8;

use ddtc::ErrorClass;
use ddtc::object::Handle;
use ddtc::process::{Guard, Mutex, Once};
use ddtc::tool::{alloc_performance, close_session, free_performance, open_session};

use super::member;

/// Handles that can live at once.
const MOST: usize = 1 << 16;
/// Never read or written: their addresses are the handles. Atomic so that they take no room in the file.
static ADDRESSES: [AtomicU8; MOST] = [const { AtomicU8::new(0) }; MOST];

/// A handle of a performance variable that lives: the session it was made in, the host's and ours, and the engine's handle.
#[derive(Clone, Copy)]
struct PvarHandle {
    host: usize,
    session: Handle,
    handle: Handle,
}

/// All sessions and handles that live.
struct Registry {
    /// The host's live sessions, with ours if they have one.
    sessions: BTreeMap<usize, Option<Handle>>,
    handles: BTreeMap<usize, PvarHandle>,
    next: usize,
}

static REGISTRY: Mutex<Registry> =
    Mutex::new(Registry { sessions: BTreeMap::new(), handles: BTreeMap::new(), next: 0 });

fn registry() -> Guard<'static, Registry> {
    REGISTRY.lock()
}

/// Our session behind one of the host's, while the host frees its own.
pub(super) struct Closing {
    host: usize,
    session: Option<Handle>,
}

/// The host has made a session.
pub(super) fn opened(host: *const c_void) {
    let old = registry().sessions.insert(host.addr(), None);
    // One that the host ended past us.
    end(old.flatten());
}

/// Takes a session out before the host frees it and may give its address out again.
pub(super) fn closing(host: *const c_void) -> Option<Closing> {
    let session = registry().sessions.remove(&host.addr())?;
    Some(Closing { host: host.addr(), session })
}

impl Closing {
    /// The host has freed it.
    pub(super) fn done(self) {
        end(self.session);
    }

    /// The host has refused.
    pub(super) fn back(self) {
        registry().sessions.entry(self.host).or_insert(self.session);
    }
}

/// Ends all sessions.
pub(super) fn close_all() {
    let sessions = std::mem::take(&mut registry().sessions);
    sessions.into_values().for_each(end);
}

fn end(session: Option<Handle>) {
    if let Some(session) = session {
        registry().handles.retain(|_, m| m.session != session);
        let _ = close_session(session);
    }
}

/// Says whether a handle of a performance variable is ours.
pub(super) fn is_ours(handle: *const c_void) -> bool {
    member(&ADDRESSES, handle).is_some()
}

/// Returns our session behind a session of the host's, if it has one.
pub(super) fn session(host: *const c_void) -> Option<Handle> {
    registry().sessions.get(&host.addr()).copied().flatten()
}

/// Returns a new handle of the engine's variable `index`.
pub(super) fn alloc(host: *const c_void, index: usize) -> Result<*const c_void, ErrorClass> {
    static INIT: Once<()> = Once::new();
    INIT.get_or_init(ddtc::tool::init);
    let class = |e: ddtc::Error| e.class();
    let mut registry = registry();
    let Registry { sessions, handles, next } = &mut *registry;
    let session = sessions.get_mut(&host.addr()).ok_or(ErrorClass::ToolInvalidSession)?;
    let start = *next;
    let mut places = (0..MOST).map(|k| (start + k) % MOST);
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

/// Returns the engine's session and handle.
pub(super) fn find(host: *const c_void, handle: *const c_void) -> Result<(Handle, Handle), ErrorClass> {
    let registry = registry();
    let session = *registry.sessions.get(&host.addr()).ok_or(ErrorClass::ToolInvalidSession)?;
    let pvar = member(&ADDRESSES, handle).and_then(|place| registry.handles.get(&place));
    let pvar = pvar.filter(|m| m.host == host.addr() && Some(m.session) == session);
    pvar.map(|m| (m.session, m.handle)).ok_or(ErrorClass::ToolInvalidHandle)
}

/// Gives a handle back.
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
        // The host refuses, then frees; the address is a new session's while it does.
        closing(a).unwrap().back();
        assert!(find(a, second).is_ok());
        let old = closing(a).unwrap();
        assert_eq!(find(a, second), Err(ErrorClass::ToolInvalidSession));
        opened(a);
        let third = alloc(a, 0).unwrap();
        old.done();
        assert_eq!(find(a, second), Err(ErrorClass::ToolInvalidHandle));
        assert!(find(a, third).is_ok());
        // As many as there are places, and no more.
        let all: Vec<_> = (1..MOST).map(|_| alloc(b, 0).unwrap()).collect();
        assert_eq!(alloc(b, 0), Err(ErrorClass::ToolNotAccessible));
        free(b, all[7]).unwrap();
        assert_eq!(alloc(b, 0), Ok(all[7]));
        close_all();
        assert_eq!(alloc(b, 0), Err(ErrorClass::ToolInvalidSession));
        assert_eq!(find(a, third), Err(ErrorClass::ToolInvalidSession));
        assert!(registry().handles.is_empty());
    }
}
