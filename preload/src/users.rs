//! The users of an MPI library in this process: the world, from `MPI_Init` to `MPI_Finalize`, and
//! each open session.
//!
//! An epoch lasts from the arrival of the first user until the last user is gone. It must not end
//! earlier, because until then another thread may use types, requests and keyvals of the epoch. If
//! a tool has called `PMPI_Init`, ddtc has not seen the initialization of the world. The world then
//! counts as a user if the MPI library reports it as initialized when the first session is opened.
//! Sessions that were opened by `PMPI_Session_init` are not seen and do not count.

use std::time::{Duration, Instant};

use ddtc::internal::process::Mutex;

use crate::reentrancy::is_inside;

/// One user of MPI.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    World,
    Session,
}

/// State of the world, according to the initializations and finalizations that ddtc has seen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum World {
    /// ddtc has seen no initialization that returned with success.
    Unseen,
    /// The world was initialized.
    Up,
    /// The world was finalized.
    Finalized,
}

/// The users of one MPI library.
pub(crate) struct Users(Mutex<State>);

struct State {
    seen: World,
    /// True if the world is a user: its initialization has begun, and its finalization has not.
    world: bool,
    /// True once `MPI_Finalize` was called. From then on no call of ddtc's own may use the world's
    /// communicators.
    world_closed: bool,
    /// Number of open sessions.
    sessions: usize,
    /// True while the epoch is being ended after the last user was removed, and again while what
    /// was learnt during the finalization is forgotten. New users wait meanwhile.
    ending: bool,
    /// Number of ddtc's own calls under way that use the world's communicators (internal calls).
    internal: usize,
}

impl State {
    /// Sets `ending` and returns true if there is no user.
    fn end_if_unused(&mut self) -> bool {
        let unused = !self.world && self.sessions == 0;
        self.ending |= unused;
        unused
    }
}

/// Maximum time to wait for another thread that is ending the epoch or is in an internal call (a
/// call of ddtc's own). The thread normally needs some milliseconds at most. But it may be gone,
/// because this process is a child of a fork and does not have the thread, or because the thread
/// has ended meanwhile.
const MAX_WAIT: Duration = Duration::from_secs(5);

impl Users {
    pub(crate) const fn new() -> Users {
        let (world, world_closed, ending) = (false, false, false);
        Users(Mutex::new(State {
            seen: World::Unseen,
            world,
            world_closed,
            sessions: 0,
            ending,
            internal: 0,
        }))
    }

    /// Waits until `is_done` returns true for the state, at most [`MAX_WAIT`]. A thread that is
    /// itself in a call of ddtc's own does not wait.
    fn wait(&self, is_done: impl Fn(&State) -> bool) {
        let start = Instant::now();
        while !is_done(&self.0.lock()) && !is_inside() && start.elapsed() < MAX_WAIT {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Adds a user. If an epoch is just ending, waits for its end first. Called before the MPI
    /// library is initialized for the user, so that no epoch ends during the initialization. `up`
    /// is true if the MPI library reports the world as initialized and not finalized; if there is
    /// no session yet and `MPI_Finalize` was not called, the world is then added as a user too.
    pub(crate) fn come(&self, user: User, up: bool) {
        self.wait(|state| !state.ending);
        let world_is_unseen = || {
            let state = self.0.lock();
            state.sessions == 0 && !state.world_closed
        };
        if up && world_is_unseen() {
            self.add(User::World);
        }
        self.add(user);
    }

    /// Adds a user without waiting for the end of an epoch. Called within [`Users::come`], and to
    /// add the user again after the finalization for that user has failed.
    pub(crate) fn add(&self, user: User) {
        let mut state = self.0.lock();
        match user {
            User::World => (state.world, state.world_closed) = (true, false),
            User::Session => state.sessions += 1,
        }
    }

    /// Removes a user. Called before the MPI library is finalized for that user. Returns true if it
    /// was the last user, so that the epoch ends.
    pub(crate) fn go(&self, user: User) -> bool {
        let mut state = self.0.lock();
        match user {
            User::World => state.world = false,
            User::Session => state.sessions = state.sessions.saturating_sub(1),
        }
        state.end_if_unused()
    }

    /// Returns true if there is no user. New users then wait until [`Users::ended`] is called.
    /// Called after the finalization for the last user, because a callback of the program may have
    /// opened a session meanwhile.
    pub(crate) fn are_gone(&self) -> bool {
        self.0.lock().end_if_unused()
    }

    /// Forbids further calls of ddtc's own that use the world's communicators, and waits until
    /// those that are under way have returned.
    pub(crate) fn close_world(&self) {
        self.0.lock().world_closed = true;
        self.wait(|state| state.internal == 0);
    }

    /// Begins a call of ddtc's own that uses the world's communicators. Returns `None` if
    /// `MPI_Finalize` was called. The call ends when the returned value is dropped.
    pub(crate) fn internal(&self) -> Option<Internal<'_>> {
        let mut state = self.0.lock();
        (!state.world_closed).then(|| {
            state.internal += 1;
            Internal(self)
        })
    }

    /// Lets new users come again, which begin a new epoch.
    pub(crate) fn ended(&self) {
        self.0.lock().ending = false;
    }

    /// Records that the world was initialized or finalized.
    pub(crate) fn saw(&self, world: World) {
        self.0.lock().seen = world;
    }

    /// Returns the state of the world, according to the initializations and finalizations that ddtc
    /// has seen.
    pub(crate) fn world(&self) -> World {
        self.0.lock().seen
    }

    /// Returns true if there is any user.
    pub(crate) fn any(&self) -> bool {
        let state = self.0.lock();
        state.world || state.sessions > 0
    }

    /// Removes a user whose initialization has failed.
    pub(crate) fn failed(&self, user: User) {
        let mut state = self.0.lock();
        match user {
            User::World => state.world = false,
            User::Session => state.sessions = state.sessions.saturating_sub(1),
        }
    }
}

/// Guard of a call of ddtc's own that uses the world's communicators. The call is under way until
/// the guard is dropped.
pub(crate) struct Internal<'a>(&'a Users);

impl Drop for Internal<'_> {
    fn drop(&mut self) {
        self.0.0.lock().internal -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::User::{Session, World};
    use super::*;

    #[test]
    fn the_epoch_ends_with_the_last_user() {
        let users = Users::new();
        let ended = |last: bool| {
            users.ended();
            last
        };
        users.come(World, false);
        users.come(Session, true);
        users.come(Session, true);
        assert!(!ended(users.go(Session)));
        assert!(!ended(users.go(World)));
        assert!(ended(users.go(Session)));
        // The world is initialized although its initialization was not seen.
        users.come(Session, true);
        assert!(!ended(users.go(Session)));
        assert!(ended(users.go(World)));
        // A failed initialization leaves no user, and a finalization without a user removes none.
        users.come(Session, false);
        users.come(Session, false);
        users.failed(Session);
        assert!(ended(users.go(Session)) && ended(users.go(Session)));
        // If another session is open already, an initialized world is not added as a user.
        users.come(Session, false);
        users.come(Session, true);
        assert!(!ended(users.go(Session)) && ended(users.go(Session)));
        // A callback of `MPI_Finalize` opens a session. The world is still initialized then, but is
        // no user any more.
        users.come(World, false);
        assert!(ended(users.go(World)));
        users.close_world();
        users.come(Session, true);
        assert!(!users.are_gone());
        assert!(ended(users.go(Session)) && ended(users.are_gone()));
    }

    #[test]
    fn who_comes_waits_until_the_epoch_has_ended() {
        let users = Users::new();
        users.come(Session, false);
        assert!(users.go(Session));
        std::thread::scope(|scope| {
            let other = scope.spawn(|| users.come(Session, false));
            std::thread::sleep(Duration::from_millis(20));
            assert!(!other.is_finished() && users.0.lock().sessions == 0);
            users.ended();
            other.join().unwrap();
        });
        assert_eq!(users.0.lock().sessions, 1);
    }
}
