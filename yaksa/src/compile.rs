//! Functions that make the committed type and the reduction handles of a type. A call that moves
//! bytes by ddtc's interpreter or by compiled code needs at least one of these objects. The
//! committed type packs and unpacks. Each reduction handle combines data by one reduction
//! operation. A committed type or a handle is made by the first call that needs it. The module
//! `node::compiled` stores it in the node, so that all type handles of the node share it.
//!
//! Yaksa's interface has no call that commits a type. Programs make types that they never use,
//! types that they use only once, and types that they make anew for every message. So the code of a
//! type is not compiled when the type is made, but only when its layout has been used enough.
//!
//! In ddtc, types that move the same bytes share one layout, and the code belongs to the layout. It
//! is compiled when enough bytes have been moved with the layout in one direction. The bytes of all
//! types that share the layout are counted together, because types that are made anew for every
//! message have only their layout in common. Calls that copy piece by piece, such as the first call
//! of a type, use no layout (`by_pieces.rs`), so their bytes do not count.

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

/// Returns the committed type of a node, which packs and unpacks its instances. Makes the committed
/// type if the node has none yet.
#[inline]
pub(crate) fn committed(node: &Node) -> Result<&Committed> {
    let known = &node.extra().compiled.committed;
    if let Some(committed) = known.get() {
        return Ok(committed);
    }
    // `get_or_init` runs its closure in a fork section: a fork of the process waits for the
    // closure, so that the child does not inherit a half-made value. Making a committed type may
    // take long, so it is made before `get_or_init` is called, and no fork waits for it. If two
    // threads make the committed type at the same time, one of the two results is dropped.
    let made = engine().commit(node.datatype()?)?;
    Ok(known.get_or_init(|| made))
}

/// Returns the handle that unpacks with the reduction `op`. It combines packed data with instances
/// of the type or, if `streams` is true, packed data with other packed data of the type.
///
/// Fails with [`Code::NotSupported`](crate::abi::Code::NotSupported) if `op` is not defined for the
/// basic type of one of the elements, and with other codes if the datatype of ddtc cannot be made.
pub(crate) fn reduction(node: &Node, op: Op, streams: bool) -> Result<CommittedOperation> {
    let known = |list: &[Reduction]| {
        let found = list.iter().find(|r| (r.op, r.streams) == (op, streams));
        found.map(|r| r.applied.clone())
    };
    let list = &node.extra().compiled.reductions;
    if let Some(applied) = known(&list.lock()) {
        return Ok(applied);
    }
    // The handle is made while the lock of the list is not held. Another thread may add an equal
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
