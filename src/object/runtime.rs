//! The engine that commits go to: one per configuration, replaced when the configuration changes.
//!
//! Types committed before a change keep the engine that they have; its counters stay in the sums. A commit finds the engine without a
//! lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use arc_swap::ArcSwapOption;

use crate::engine::{Config, Counters, Engine, Mode};
use crate::error::{Error, ErrorClass, Result};
use crate::process::{Guard, Mutex};

struct State {
    config: Option<Config>,
    engine: Option<Engine>,
    /// Earlier engines that committed types still hold.
    retired: Vec<Engine>,
    /// Counters of those that none holds any more.
    gone: Counters,
}

/// [`State::engine`], to be read. Written under the lock.
static ENGINE: ArcSwapOption<Engine> = ArcSwapOption::const_empty();

/// The mode of [`State::config`], `UNKNOWN` while nobody has set that or committed by it. Written under the lock.
static MODE: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = u8::MAX;

static STATE: Mutex<State> =
    Mutex::new(State { config: None, engine: None, retired: Vec::new(), gone: Counters::ZERO });

fn state() -> Guard<'static, State> {
    // Every update is one assignment of a finished value.
    STATE.lock()
}

/// Returns the engine for the next commit, made at first use.
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

/// The configuration of the next commit, whose mode is known from now on.
fn configuration(state: &mut State) -> &Config {
    let config = state.config.get_or_insert_default();
    MODE.store(config.mode as u8, Ordering::Relaxed);
    config
}

/// Returns the mode of the next commit. Makes no engine: a program whose types all stay the host's needs none.
pub fn mode() -> Mode {
    known_mode().unwrap_or_else(|| configuration(&mut state()).mode)
}

/// Returns the mode of the next commit, if its configuration is known; costs a load.
#[inline]
pub fn known_mode() -> Option<Mode> {
    // By its value: a table of them is one more line of the cache.
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
/// What `change` says; class `Arg` for a CPU level that this machine does not run. Nothing is changed then.
pub fn configure(change: impl FnOnce(&mut Config) -> Result<()>) -> Result<()> {
    let mut state = state();
    let mut config = state.config.get_or_insert_default().clone();
    change(&mut config)?;
    if !config.level.runs() {
        let rule = "is a level that this machine does not run";
        return Err(Error::new(ErrorClass::Arg, "config", "target", config.level, rule));
    }
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
    // Outside the lock: an engine's end gives memory back.
    drop(free);
    Ok(())
}

/// Counters of all engines so far.
pub fn counters() -> Counters {
    let state = state();
    let engines = state.retired.iter().chain(&state.engine);
    engines.fold(state.gone, |sum, engine| sum.plus(&engine.counters()))
}
