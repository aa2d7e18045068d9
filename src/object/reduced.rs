//! Reductions of the datatypes that handles name. The committed type for an operation is made by
//! the first call that needs it, and is kept.

use super::Object;
use crate::committed::{ByFunction, CommittedOperation};
use crate::error::Result;
use crate::kind::{Op, Operation};

/// Committed types for reductions that an object keeps, each with its operation. Most objects are
/// never used for reductions.
#[derive(Debug, Default)]
pub(super) struct Reductions {
    applied: Vec<(Op, CommittedOperation)>,
    by_function: Option<Option<ByFunction>>,
}

impl Object {
    /// Returns the committed type that combines the elements of the datatype by `op`, or none
    /// before the commit of the datatype.
    ///
    /// # Errors
    /// The errors of [`Object::committed`] and [`crate::Committed::for_operation`]. An error of
    /// class `Op` is about the first element for which `op` is not defined.
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
        // Another thread may have stored a committed type for `op` in the meantime. Then keep that
        // one.
        Ok(Some(known(reductions).unwrap_or_else(|| {
            reductions.applied.push((op, applied.clone()));
            applied
        })))
    }

    /// Returns the committed type that passes the elements of the datatype to a function of the
    /// caller. The outer option is none before the commit; the inner option is none for a datatype
    /// without elements.
    ///
    /// # Errors
    /// The errors of [`Object::committed`] and [`crate::Committed::by_function`].
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
