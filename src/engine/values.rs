//! Layouts whose leaves are values under a leaf operation, and the executor that serves calls for
//! which there is no kernel.

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
    /// Returns the layout of `t` whose leaves are the values that `operation` works on. This method
    /// compiles nothing. A later call compiles the layout if the mode says so.
    ///
    /// # Errors
    /// Returns the errors of [`Engine::layout`], an error if the packed size of an instance is too
    /// large, and an error that names the first element that `operation` is not defined for.
    pub(crate) fn values(&self, t: &Datatype, operation: Operation) -> Result<PlacedLayout<Value>> {
        self.placed(t, operation, Values(operation))
    }

    /// Applies the operation of `layout` to the values in the packed bytes `range` of `count`
    /// instances, without a kernel. `layout` must be the layout of `t`, because errors name
    /// elements of `t`.
    ///
    /// # Errors
    /// Returns class `Conversion` for the first value that the other side cannot hold. The values
    /// before it have been moved.
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

    /// Returns the values in a packed range of instances of `t` in external32, according to the
    /// definition of the type map. One instance has `size` packed bytes. Check mode compares
    /// conversions with these values.
    pub(crate) fn places<'t>(
        &self,
        t: &'t Datatype,
        size: i64,
        range: Range<u64>,
    ) -> impl Iterator<Item = Place> + use<'t> {
        external32::places(t, size as u64, range)
    }

    /// Returns the error of a call in `direction` that refuses the value at `place` because the
    /// other side cannot hold it.
    pub(crate) fn unfit(&self, direction: Direction, place: &Place) -> Error {
        let entry = (place.basic, i128::from(place.displacement));
        unfit(direction, place.element as i128, Some(entry), external32::UNFIT)
    }
}

impl Engine {
    /// Applies `op` to each value of `count` instances on the packed side of `memory` and the
    /// corresponding value on the user side, and writes the result to the user side. Both sides
    /// have the layout `layout`.
    ///
    /// # Errors
    /// Returns only errors that are faults of ddtc.
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

    /// Calls `f(packed elements, user elements, number of elements)` for the values of `count`
    /// instances. The values are passed as arrays whose elements have the form `element`.
    ///
    /// # Errors
    /// Returns only errors that are faults of ddtc.
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

/// Returns the error for a value of `t` that does not fit. An instance of `t` has `size` packed
/// bytes. The error names the value by its number among the basic elements of all instances.
#[cold]
fn refused(t: &Datatype, size: i64, kind: Kind, Unfit { at, rule }: Unfit) -> Error {
    let (instance, mut left) = (at.packed / size, at.packed % size);
    // Count the basic elements that come before the value in its own instance: those whose packed
    // bytes all lie before the value. A multiplication counts the elements of earlier instances.
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

/// Returns the error for a value in the basic element with number `element`. `entry` has the basic
/// type and the displacement of the element, if they are known.
fn unfit(direction: Direction, element: i128, entry: Option<(Named, i128)>, rule: &'static str) -> Error {
    let value = match entry {
        Some((basic, displacement)) => format!("{element} ({basic:?} at displacement {displacement})"),
        None => element.to_string(),
    };
    Error::new(ErrorClass::Conversion, direction.name(), "element", value, rule)
}
