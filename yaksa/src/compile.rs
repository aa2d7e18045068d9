//! What packs, unpacks and reduces a type, made by the first call that moves bytes by it and kept on its node.
//!
//! The engine compiles a layout once enough bytes went through it in one direction, whichever types they came by: an interface without a commit gives types
//! that are never used, used once, or made anew for every message, and what they share is the layout.

use ddtc::committed::{Committed, CommittedOperation};
use ddtc::kind::{Op, Operation};
use ddtc::process::Once;
use ddtc::{Config, Engine, Mode};

use crate::abi::Result;
use crate::node::{Node, Reduction};
use crate::reshape;

static ENGINE: Once<Engine> = Once::new();

fn engine() -> &'static Engine {
    ENGINE.get_or_init(|| Engine::new(Config { mode: Mode::Lazy, ..Config::default() }))
}

/// What packs and unpacks a type.
#[inline]
pub(crate) fn committed(node: &Node) -> Result<&Committed> {
    let known = &node.extra().compiled.committed;
    if let Some(committed) = known.get() {
        return Ok(committed);
    }
    // Made outside of a section: it may take long, and making it twice does no harm.
    let made = engine().commit(node.datatype()?)?;
    Ok(known.get_or_init(|| made))
}

/// What combines a packed stream with instances of a type, or with another stream if `streams`.
pub(crate) fn reduction(node: &Node, op: Op, streams: bool) -> Result<CommittedOperation> {
    let known = |list: &[Reduction]| {
        let found = list.iter().find(|r| (r.op, r.streams) == (op, streams));
        found.map(|r| r.applied.clone())
    };
    let list = &node.extra().compiled.reductions;
    if let Some(applied) = known(&list.lock()) {
        return Ok(applied);
    }
    let t = node.datatype()?;
    let t = if streams { reshape::stream(t)? } else { reshape::parts(t)? };
    t.check_reduction(op)?;
    let applied = engine().commit(&t)?.for_operation(Operation::Reduce(op))?;
    let mut list = list.lock();
    if known(&list).is_none() {
        list.push(Reduction { op, streams, applied: applied.clone() });
    }
    Ok(applied)
}
