//! The engine's part of a type that calls move bytes by: the committed type that packs and unpacks it, made by the first such call, and a handle for each
//! operation that it was reduced by. `node/compiled.rs` holds both on the node, so that all numbers of a node share them.
//!
//! The engine compiles a layout once enough bytes went through it in one direction, whichever types they came by: an interface without a commit gives types
//! that are never used, used once, or made anew for every message, and what they share is the layout.

use ddtc::internal::committed::{Committed, CommittedOperation};
use ddtc::internal::kind::{Op, Operation};
use ddtc::internal::methods::*;
use ddtc::internal::process::Once;
use ddtc::{Config, Engine, Mode};

use crate::abi::Result;
use crate::node::{Node, Reduction};
use crate::reshape;

static ENGINE: Once<Engine> = Once::new();

fn engine() -> &'static Engine {
    ENGINE.get_or_init(|| Engine::new(Config { mode: Mode::Lazy, ..Config::default() }))
}

/// Returns the committed type that packs and unpacks a node.
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

/// Returns the handle that combines a packed stream with instances of a type, or with another stream if `streams`.
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
