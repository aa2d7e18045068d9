//! Reductions through handles: what serves an operation, kept from the first call that asks for it.

use super::Object;
use crate::committed::{ByFunction, CommittedOperation};
use crate::error::Result;
use crate::kind::{Op, Operation};

/// Reductions that an object keeps. Most objects are never reduced.
#[derive(Debug, Default)]
pub(super) struct Reductions {
    applied: Vec<(Op, CommittedOperation)>,
    by_function: Option<Option<ByFunction>>,
}

impl Object {
    /// Returns the handle that combines its elements by `op`; none before commit.
    ///
    /// # Errors
    /// As [`Object::committed`]; class `Op` for the first element that `op` is not defined for.
    pub fn reduced(&self, op: Op) -> Result<Option<CommittedOperation>> {
        let Some(committed) = self.committed()? else { return Ok(None) };
        let known =
            |r: &Reductions| r.applied.iter().find(|known| known.0 == op).map(|known| known.1.clone());
        if let Some(applied) = self.extras.lock().as_ref().and_then(|extras| known(&extras.reductions)) {
            return Ok(Some(applied));
        }
        let applied = committed.for_operation(Operation::Reduce(op))?;
        let mut extras = self.extras.lock();
        let reductions = &mut extras.get_or_insert_default().reductions;
        // Another thread may have been as far.
        Ok(Some(known(reductions).unwrap_or_else(|| {
            reductions.applied.push((op, applied.clone()));
            applied
        })))
    }

    /// Returns the handle that hands its elements to a function; none before commit, and none inside for a type without elements.
    ///
    /// # Errors
    /// As [`Object::committed`] and [`crate::Committed::by_function`].
    pub fn by_function(&self) -> Result<Option<Option<ByFunction>>> {
        let Some(committed) = self.committed()? else { return Ok(None) };
        let known = self.extras.lock().as_ref().and_then(|extras| extras.reductions.by_function.clone());
        if known.is_some() {
            return Ok(known);
        }
        let made = committed.by_function()?;
        self.extras.lock().get_or_insert_default().reductions.by_function = Some(made.clone());
        Ok(Some(made))
    }
}
