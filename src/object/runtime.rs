//! The engine that commits use. There is one for each configuration, and it is replaced when the
//! configuration changes.
//!
//! Types that were committed before a change keep their engine, and [`counters`] still includes the
//! counters of that engine. Once the engine exists, a commit finds it without a lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use arc_swap::ArcSwapOption;

use crate::engine::{Config, Counters, Engine, MAX_THREADS, Mode};
use crate::error::{Error, ErrorClass, Result};
use crate::process::{Guard, Mutex};

struct State {
    config: Option<Config>,
    engine: Option<Engine>,
    /// Earlier engines that committed types still hold.
    retired: Vec<Engine>,
    /// Sum of the counters of earlier engines that no committed type holds any more.
    gone: Counters,
}

/// Copy of [`State::engine`] for reading without a lock. It is written under the lock.
static ENGINE: ArcSwapOption<Engine> = ArcSwapOption::const_empty();

/// Mode of [`State::config`], or `UNKNOWN` until the configuration is set or its mode is first
/// needed. It is written under the lock.
static MODE: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = u8::MAX;

static STATE: Mutex<State> =
    Mutex::new(State { config: None, engine: None, retired: Vec::new(), gone: Counters::ZERO });

fn state() -> Guard<'static, State> {
    // Every update assigns finished values, so the state is whole even if a holder of the lock
    // panics.
    STATE.lock()
}

/// Returns the engine for the next commit. It is made when it is first needed.
pub fn engine() -> Engine {
    if let Some(engine) = &*ENGINE.load() {
        return Engine::clone(engine);
    }
    let mut state = state();
    if let Some(engine) = &state.engine {
        return engine.clone();
    }
    let engine = Engine::new(configuration(&mut state).clone());
    state.engine = Some(engine.clone());
    ENGINE.store(Some(Arc::new(engine.clone())));
    engine
}

/// Returns the configuration of the next commit. From this call on its mode is known to
/// [`known_mode`].
fn configuration(state: &mut State) -> &Config {
    let config = state.config.get_or_insert_default();
    MODE.store(config.mode as u8, Ordering::Relaxed);
    config
}

/// Returns the mode of the next commit. This makes no engine, because a program whose types are all
/// left to the MPI library needs none.
pub fn mode() -> Mode {
    known_mode().unwrap_or_else(|| configuration(&mut state()).mode)
}

/// Returns the mode of the next commit if its configuration is known. This takes one load.
#[inline]
pub fn known_mode() -> Option<Mode> {
    // This is a `match` on the value and not a look-up in a table of modes, because such a table
    // would need another cache line.
    const { assert!(Mode::Off as u8 == 0 && Mode::Commit as u8 == 3) }
    match MODE.load(Ordering::Relaxed) {
        0 => Some(Mode::Off),
        1 => Some(Mode::Interpret),
        2 => Some(Mode::Lazy),
        3 => Some(Mode::Commit),
        _ => None,
    }
}

/// Returns the configuration of later commits.
pub fn config() -> Config {
    state().config.get_or_insert_default().clone()
}

/// Changes the configuration of later commits.
///
/// # Errors
/// The errors of `change`; class `Arg` for a CPU level that this machine does not run, or for a
/// number of threads that is not 1 to 1024. If there is an error, the configuration does not
/// change.
pub fn configure(change: impl FnOnce(&mut Config) -> Result<()>) -> Result<()> {
    let mut state = state();
    let mut config = state.config.get_or_insert_default().clone();
    change(&mut config)?;
    if !config.level.runs() {
        let rule = "is a level that this machine does not run";
        return Err(Error::new(ErrorClass::Arg, "config", "target", config.level, rule));
    }
    if !(1..=MAX_THREADS).contains(&config.threads) {
        let rule = format!("must be 1 to {MAX_THREADS}");
        return Err(Error::new(ErrorClass::Arg, "configure", "threads", config.threads, rule));
    }
    // The new configuration is valid. The next commit will make a new engine, and the old one
    // retires. Engines that no type holds any more are removed, and their counters stay in the sum.
    MODE.store(config.mode as u8, Ordering::Relaxed);
    state.config = Some(config);
    ENGINE.store(None);
    let old = state.engine.take();
    state.retired.extend(old);
    let retired = std::mem::take(&mut state.retired);
    let (held, free): (Vec<_>, Vec<_>) = retired.into_iter().partition(|e| e.holders() > 1);
    for engine in &free {
        state.gone = state.gone.plus(&engine.counters().history());
    }
    state.retired = held;
    drop(state);
    // The lock was released before the engines are dropped, because dropping an engine frees its
    // memory.
    drop(free);
    Ok(())
}

/// Returns the sum of the counters of all engines so far.
pub fn counters() -> Counters {
    let state = state();
    let engines = state.retired.iter().chain(&state.engine);
    engines.fold(state.gone, |sum, engine| sum.plus(&engine.counters()))
}
