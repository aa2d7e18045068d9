//! Creation of the objects of ddtc's engine with which calls move bytes. A type has a committed
//! type, which packs and unpacks and is made by the first call that needs it, and one handle per
//! reduction operation that was used with the type. The module `node::compiled` stores these
//! objects in the node, so that all type numbers of a node share them.
//!
//! The engine compiles a layout when enough bytes have gone through it in one direction. The bytes
//! of all types with the same layout count, because this interface has no commit call. A type may
//! never be used, be used once, or be made anew for every message. Types that are made anew have
//! only their layout in common. Calls that move piece by piece, such as the first call of a type, use
//! no layout (`by_pieces.rs`), so their bytes do not count.

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

/// Returns the committed type that packs and unpacks a node. Makes it if the node has none yet.
#[inline]
pub(crate) fn committed(node: &Node) -> Result<&Committed> {
    let known = &node.extra().compiled.committed;
    if let Some(committed) = known.get() {
        return Ok(committed);
    }
    // The committed type is made outside of a fork section, because that may take long. If two
    // threads make it at the same time, one of the two results is dropped.
    let made = engine().commit(node.datatype()?)?;
    Ok(known.get_or_init(|| made))
}

/// Returns the handle that applies the reduction `op` to a packed stream and to instances of a type
/// or, if `streams` is true, to two packed streams of that type.
///
/// Fails with [`Code::NotSupported`](crate::abi::Code::NotSupported) if `op` is not defined for a
/// type of the elements, and with other codes if the datatype cannot be made.
pub(crate) fn reduction(node: &Node, op: Op, streams: bool) -> Result<CommittedOperation> {
    let known = |list: &[Reduction]| {
        let found = list.iter().find(|r| (r.op, r.streams) == (op, streams));
        found.map(|r| r.applied.clone())
    };
    let list = &node.extra().compiled.reductions;
    if let Some(applied) = known(&list.lock()) {
        return Ok(applied);
    }
    // The handle is made without holding the lock of the list. Another thread may add the same
    // handle meanwhile, so the list is searched again before an entry is added.
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
