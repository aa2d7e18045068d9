//! Converts datatypes of mpi4py, by asking mpi4py for their envelopes and contents.

use std::collections::HashMap;

use ddtc::internal::datatype::contents::{CombinerKind, Constants, Contents, Envelope};
use ddtc::internal::datatype::{Datatype, Named};
use ddtc::internal::decode::{Introspect, decode};
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;
use pyo3::prelude::*;

use crate::to_python_error;

/// Access to the module mpi4py for [`decode`], which asks mpi4py for the envelope and the contents
/// of each datatype. It also has three kinds of values of the MPI library that mpi4py uses: the
/// handles of named types, the values of combiners, and the values of other constants.
struct Mpi4py<'py> {
    named: HashMap<usize, Named>,
    combiners: HashMap<i32, CombinerKind>,
    constants: Constants,
    /// Exception that a call of mpi4py has raised. It is raised again, unchanged, when decoding
    /// ends.
    error: Option<PyErr>,
    py: Python<'py>,
}

/// Converts a datatype of mpi4py.
///
/// # Errors
/// If the object is not a datatype of mpi4py, MPI is not initialized, or the type cannot be
/// decoded.
pub fn decoded(datatype: &Bound<'_, PyAny>) -> PyResult<Datatype> {
    let py = datatype.py();
    let mpi = py.import("mpi4py.MPI")?;
    if !datatype.is_instance(&mpi.getattr("Datatype")?)? {
        let found = datatype.get_type().name()?;
        return Err(pyo3::exceptions::PyTypeError::new_err(format!(
            "from_mpi: must be an mpi4py.MPI.Datatype, not {found}"
        )));
    }
    // Collect the handles of named types, the values of combiners, and the other constants. All of
    // these depend on the MPI library.
    let number = |name: &str| mpi.getattr(name)?.extract::<i32>();
    let mut named = HashMap::new();
    for &n in Named::ALL {
        let name = n.mpi_name();
        // Older versions of mpi4py lack some names.
        if let Ok(handle) = mpi.getattr(name.strip_prefix("MPI_").unwrap_or(name)) {
            named.entry(handle.getattr("handle")?.extract()?).or_insert(n);
        }
    }
    // For a named type that the MPI library does not have, mpi4py has the handle of
    // MPI_DATATYPE_NULL. Remove this handle from the named types.
    named.remove(&mpi.getattr("DATATYPE_NULL")?.getattr("handle")?.extract()?);
    let mut combiners = HashMap::new();
    for kind in CombinerKind::all() {
        if let Ok(value) = number(kind.mpi_name().trim_start_matches("MPI_")) {
            combiners.entry(value).or_insert(kind);
        }
    }
    let constants = Constants {
        order_c: number("ORDER_C")?,
        order_fortran: number("ORDER_FORTRAN")?,
        distribute_block: number("DISTRIBUTE_BLOCK")?,
        distribute_cyclic: number("DISTRIBUTE_CYCLIC")?,
        distribute_none: number("DISTRIBUTE_NONE")?,
        distribute_dflt_darg: number("DISTRIBUTE_DFLT_DARG")?,
        undefined: number("UNDEFINED")?,
    };
    let mut mpi4py = Mpi4py { named, combiners, constants, error: None, py };
    decode(&mut mpi4py, &Handle::new(datatype.clone().unbind()))
        .map_err(|e| mpi4py.error.take().unwrap_or_else(|| to_python_error(e)))
}

impl Mpi4py<'_> {
    fn keep_error<T>(&mut self, outcome: PyResult<T>) -> Result<T> {
        outcome.map_err(|e| {
            let text = e.to_string();
            self.error = Some(e);
            Error::new(ErrorClass::Other, "from_mpi", "datatype", text, "must be decoded by mpi4py")
        })
    }
}

/// A datatype object of mpi4py, in an `Arc`, which can be cloned without the interpreter's lock.
type Handle = std::sync::Arc<Py<PyAny>>;

impl Introspect for Mpi4py<'_> {
    type Handle = Handle;

    fn envelope(&mut self, handle: &Handle) -> Result<Envelope> {
        let found = handle
            .bind(self.py)
            .call_method0("Get_envelope")
            .and_then(|e| e.extract::<(i64, i64, i64, i64, i32)>());
        let (integers, addresses, large_counts, datatypes, combiner) = self.keep_error(found)?;
        let Some(&combiner) = self.combiners.get(&combiner) else {
            let rule = "must be a combiner of MPI 5.0";
            return Err(Error::new(ErrorClass::Type, "from_mpi", "combiner", combiner, rule));
        };
        Ok(Envelope { combiner, integers, addresses, large_counts, datatypes })
    }

    fn contents(&mut self, handle: &Handle, _envelope: &Envelope) -> Result<Contents<Handle>> {
        let found = handle.bind(self.py).call_method0("Get_contents");
        let found = found.and_then(|c| c.extract::<(Vec<i32>, Vec<i64>, Vec<i64>, Vec<Py<PyAny>>)>());
        let (integers, addresses, large_counts, datatypes) = self.keep_error(found)?;
        let datatypes = datatypes.into_iter().map(Handle::new).collect();
        Ok(Contents { integers, addresses, large_counts, datatypes })
    }

    fn named(&mut self, handle: &Handle) -> Result<Named> {
        let word = handle.bind(self.py).getattr("handle").and_then(|h| h.extract::<usize>());
        let word = self.keep_error(word)?;
        self.named.get(&word).copied().ok_or_else(|| {
            let rule = "must be a named type that ddtc and mpi4py know";
            Error::new(ErrorClass::Type, "from_mpi", "handle", format!("{word:#x}"), rule)
        })
    }

    fn bounds(&mut self, handle: &Handle) -> Result<Option<(i64, i64)>> {
        let found = handle.bind(self.py).call_method0("Get_extent").and_then(|e| e.extract());
        self.keep_error(found).map(Some)
    }

    fn release(&mut self, handle: Handle) {
        let handle = handle.bind(self.py);
        let predefined = handle.getattr("is_predefined").and_then(|p| p.is_truthy()).unwrap_or(true);
        if !predefined {
            // An error is ignored, because there is nobody to report it to. Its only consequence is
            // that the handle stays allocated.
            let _ = handle.call_method0("Free");
        }
    }

    fn constants(&self) -> Constants {
        self.constants
    }
}
