//! Leaf operations on values: the layout that is asked for, and what runs where there is no kernel.

use std::ops::Range;

use super::Engine;
use crate::datatype::{Datatype, Named, TypeMap};
use crate::error::{Error, ErrorClass, Result};
use crate::exec::apply::{self, Unfit};
use crate::exec::interp::external32;
pub(crate) use crate::exec::interp::external32::Place;
use crate::kind::{Direction, Kind, Op, Operation};
use crate::layout::{CompiledLayout, PlacedLayout};
use crate::lower::{Leaves, Values};
use crate::micro::Buffers;
use crate::micro::buffers::Element;
use crate::nest::{Leaf, Value};

impl Engine {
    /// Returns the layout of `t` for the values that `operation` is about, compiled by the first call that a kernel serves.
    ///
    /// # Errors
    /// As [`Engine::layout`]; a packed size beyond 63 bits.
    pub(crate) fn values(&self, t: &Datatype, operation: Operation) -> Result<PlacedLayout<Value>> {
        self.placed(t, operation, Values(operation))
    }

    /// Does what the operation of `layout`, which is that of `t`, does to the values in the packed bytes `range` of `count` instances, without
    /// a kernel.
    ///
    /// # Errors
    /// Class `Conversion` for the first value that the other side cannot hold: those before it are done.
    pub(crate) fn apply(
        &self,
        t: &Datatype,
        layout: &CompiledLayout<Value>,
        memory: &Buffers,
        count: u64,
        range: Range<u64>,
    ) -> Result<()> {
        let operation = layout.operation();
        let kind = Kind { direction: memory.direction(), operation };
        apply::apply(layout.nest(), operation, memory, count, range)
            .map_err(|unfit| refused(t, layout.nest().size(), kind, unfit))
    }

    /// Returns the oracle: the values of a packed range of instances of `t`, of which one has `size` bytes in external32, by the definition of the type map.
    pub(crate) fn places<'t>(
        &self,
        t: &'t Datatype,
        size: i64,
        range: Range<u64>,
    ) -> impl Iterator<Item = Place> + use<'t> {
        external32::places(t, size as u64, range)
    }

    /// Returns the error for a value that does not fit, as a call should return it.
    pub(crate) fn unfit(&self, direction: Direction, place: &Place) -> Error {
        let entry = (place.basic, i128::from(place.displacement));
        unfit(direction, place.element as i128, Some(entry), external32::UNFIT)
    }
}

impl Engine {
    /// Combines `count` instances of the layout on the packed side of `memory` with the user's.
    ///
    /// # Errors
    /// Only faults of ddtc.
    pub(crate) fn combine(
        &self,
        layout: &CompiledLayout<Value>,
        op: Op,
        memory: &Buffers,
        count: u64,
    ) -> Result<()> {
        apply::combine(layout.nest(), op, memory, count)
            .map_err(|unfit| Error::internal("reduce", unfit.rule))
    }

    /// Hands the values of a range to `f`, as arrays of elements.
    ///
    /// # Errors
    /// Only faults of ddtc.
    pub(crate) fn hand_on(
        &self,
        layout: &CompiledLayout<Value>,
        element: Element,
        memory: &Buffers,
        count: u64,
        f: &mut dyn FnMut(*const u8, *mut u8, u64),
    ) -> Result<()> {
        apply::hand_on(layout.nest(), element, memory, count, f)
            .map_err(|unfit| Error::internal("reduce", unfit.rule))
    }
}

/// The error for a value of `t`, of which an instance has `size` packed bytes, that does not fit.
#[cold]
fn refused(t: &Datatype, size: i64, kind: Kind, Unfit { at, rule }: Unfit) -> Error {
    let (instance, mut left) = (at.packed / size, at.packed % size);
    // Of one instance, and no more of it than was converted.
    let before = t.type_map().take_while(|&(basic, _)| {
        let values = Values(kind.operation).basic_leaves(basic);
        left -= values.iter().map(|(_, n, value)| value.packed() * *n as i64).sum::<i64>();
        left >= 0
    });
    let before = before.count();
    let element = i128::from(instance) * i128::from(t.signature().length()) + before as i128;
    let entry = TypeMap::new(t).nth(before).map(|(basic, displacement)| {
        (basic, i128::from(instance) * i128::from(t.extent()) + i128::from(displacement))
    });
    unfit(kind.direction, element, entry, rule)
}

/// The error for a value of basic element `element`, whose type and displacement `entry` has.
fn unfit(direction: Direction, element: i128, entry: Option<(Named, i128)>, rule: &'static str) -> Error {
    let value = match entry {
        Some((basic, displacement)) => format!("{element} ({basic:?} at displacement {displacement})"),
        None => element.to_string(),
    };
    Error::new(ErrorClass::Conversion, direction.name(), "element", value, rule)
}
