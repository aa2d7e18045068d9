//! The users of an MPI library in this process: the world, from `MPI_Init` to `MPI_Finalize`, and
//! each open session.
//!
//! The epoch ends with the last user, and no sooner: until then another thread may use types,
//! requests and keyvals of the epoch. A world whose initialization was not seen, because a tool has
//! called `PMPI_Init`, counts if the library says that it is up when the first session is opened.
//! Sessions that were opened unseen do not count.

use std::time::{Duration, Instant};

use ddtc::process::Mutex;

use crate::reentrancy::is_inside;

/// One user of MPI.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    World,
    Session,
}

/// State of the world as far as it was seen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum World {
    /// Nothing, or its initialization is not done.
    Unseen,
    /// It was initialized.
    Up,
    /// It was finalized.
    Finalized,
}

/// The users of one MPI library.
pub(crate) struct Users(Mutex<State>);

struct State {
    seen: World,
    /// `MPI_Init` was called, and `MPI_Finalize` was not.
    world: bool,
    /// `MPI_Finalize` was called, so no internal call may use the world's communicators.
    world_closed: bool,
    /// Sessions that are open.
    sessions: usize,
    /// The last user goes: whoever comes now waits until the epoch has ended.
    ending: bool,
    /// Threads in an internal call that uses the world's communicators.
    internal: usize,
}

/// Longest time to wait for another thread that ends the epoch, or makes an internal call. Both
/// take at most some milliseconds, unless the other thread is gone: in a child of a fork, or ended
/// in the middle.
const PATIENCE: Duration = Duration::from_secs(5);

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

    /// Waits until `is_done` is true of the state. A thread that is in an internal call waits for
    /// nobody.
    fn wait(&self, is_done: impl Fn(&State) -> bool) {
        let start = Instant::now();
        while !is_done(&self.0.lock()) && !is_inside() && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// A user is about to come: before the library's own initialization, so that no epoch ends
    /// meanwhile. `up`: the library says that the world is up.
    pub(crate) fn come(&self, user: User, up: bool) {
        self.wait(|state| !state.ending);
        if up && self.0.lock().sessions == 0 {
            self.add(User::World);
        }
        self.add(user);
    }

    pub(crate) fn add(&self, user: User) {
        let mut state = self.0.lock();
        match user {
            User::World => (state.world, state.world_closed) = (true, false),
            User::Session => state.sessions += 1,
        }
    }

    /// A user is about to go. Returns whether it is the last one, whose epoch ends.
    pub(crate) fn go(&self, user: User) -> bool {
        let mut state = self.0.lock();
        match user {
            User::World => state.world = false,
            User::Session => state.sessions = state.sessions.saturating_sub(1),
        }
        let last = !state.world && state.sessions == 0;
        state.ending |= last;
        last
    }

    /// Waits until no internal call uses the world's communicators, and lets none begin.
    pub(crate) fn close_world(&self) {
        self.0.lock().world_closed = true;
        self.wait(|state| state.internal == 0);
    }

    /// Begins an internal call that uses the world's communicators, unless the world is closed.
    pub(crate) fn internal(&self) -> Option<Internal<'_>> {
        let mut state = self.0.lock();
        (!state.world_closed).then(|| {
            state.internal += 1;
            Internal(self)
        })
    }

    /// The epoch has ended: whoever comes now begins another one.
    pub(crate) fn ended(&self) {
        self.0.lock().ending = false;
    }

    /// The world was initialized or finalized.
    pub(crate) fn saw(&self, world: World) {
        self.0.lock().seen = world;
    }

    /// Returns the state of the world as far as it was seen.
    pub(crate) fn world(&self) -> World {
        self.0.lock().seen
    }

    /// Returns whether there is any user.
    pub(crate) fn any(&self) -> bool {
        let state = self.0.lock();
        state.world || state.sessions > 0
    }

    /// The initialization failed.
    pub(crate) fn failed(&self, user: User) {
        let mut state = self.0.lock();
        match user {
            User::World => state.world = false,
            User::Session => state.sessions = state.sessions.saturating_sub(1),
        }
    }
}

/// An internal call that uses the world's communicators.
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
        // The world is up though nobody has seen its initialization.
        users.come(Session, true);
        assert!(!ended(users.go(Session)));
        assert!(ended(users.go(World)));
        // An initialization that failed leaves no user, and a finalization that was not expected
        // takes none.
        users.come(Session, false);
        users.come(Session, false);
        users.failed(Session);
        assert!(ended(users.go(Session)) && ended(users.go(Session)));
        // A session while the world goes up or down is no world.
        users.come(Session, false);
        users.come(Session, true);
        assert!(!ended(users.go(Session)) && ended(users.go(Session)));
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
