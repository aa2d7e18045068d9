//! The Python module `ddtc._ddtc`: datatypes, commits, packing through the buffer protocol, and
//! packing in the memory of NVIDIA GPUs.
#![allow(missing_docs, unreachable_pub, reason = "the interface is Python's: ddtc/__init__.pyi")]

mod buffer;
mod cuda;
mod device;
mod dlpack;
mod mpi;
mod numpy;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use ddtc::internal::datatype::{Datatype as Tree, Named, Order};
use ddtc::internal::methods::*;
use ddtc::{Committed as Code, Error as Refusal, ErrorClass};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use buffer::{Memory, check_disjoint};
use cuda::CudaLayout;

pyo3::create_exception!(
    ddtc,
    Error,
    PyValueError,
    "The reason why a constructor, a commit or a call failed. It names the operation, the argument, its \
     value and the rule."
);

fn to_python_error(e: Refusal) -> PyErr {
    Error::new_err(e.to_string())
}

/// A derived datatype of MPI. A datatype is immutable. Two datatypes are equal if they were built
/// by the same constructors with the same arguments.
#[pyclass(module = "ddtc", frozen)]
#[derive(Clone)]
struct Datatype(Tree);

fn to_python(t: ddtc::Result<Tree>) -> PyResult<Datatype> {
    t.map(Datatype).map_err(to_python_error)
}

#[pymethods]
impl Datatype {
    /// Builds a datatype from its text notation, such as "vector(3, 1, 4, double)".
    #[new]
    fn new(text: &str) -> PyResult<Datatype> {
        to_python(text.parse())
    }

    /// Returns the named types by their names in MPI, without the prefix "MPI_".
    #[staticmethod]
    fn named_types(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let all = PyDict::new(py);
        for &named in Named::ALL {
            let name = named.mpi_name();
            all.set_item(name.strip_prefix("MPI_").unwrap_or(name), Datatype(Tree::named(named)))?;
        }
        Ok(all)
    }

    /// Builds `count` copies of a type, one after the other (MPI_Type_contiguous).
    #[staticmethod]
    fn contiguous(count: i64, oldtype: &Self) -> PyResult<Datatype> {
        to_python(Tree::contiguous(count, &oldtype.0))
    }

    /// Builds equally spaced blocks (MPI_Type_vector). The stride is in extents of the old type.
    #[staticmethod]
    fn vector(count: i64, blocklength: i64, stride: i64, oldtype: &Self) -> PyResult<Datatype> {
        to_python(Tree::vector(count, blocklength, stride, &oldtype.0))
    }

    /// Builds equally spaced blocks (MPI_Type_create_hvector). The stride is in bytes.
    #[staticmethod]
    fn hvector(count: i64, blocklength: i64, stride: i64, oldtype: &Self) -> PyResult<Datatype> {
        to_python(Tree::hvector(count, blocklength, stride, &oldtype.0))
    }

    /// Builds blocks of different lengths (MPI_Type_indexed). Displacements are in extents of the
    /// old type.
    #[staticmethod]
    fn indexed(blocklengths: Vec<i64>, displacements: Vec<i64>, oldtype: &Self) -> PyResult<Datatype> {
        to_python(Tree::indexed(&blocklengths, &displacements, &oldtype.0))
    }

    /// Builds blocks of different lengths (MPI_Type_create_hindexed). Displacements are in bytes.
    #[staticmethod]
    fn hindexed(blocklengths: Vec<i64>, displacements: Vec<i64>, oldtype: &Self) -> PyResult<Datatype> {
        to_python(Tree::hindexed(&blocklengths, &displacements, &oldtype.0))
    }

    /// Builds blocks of one length (MPI_Type_create_indexed_block). Displacements are in extents of
    /// the old type.
    #[staticmethod]
    fn indexed_block(blocklength: i64, displacements: Vec<i64>, oldtype: &Self) -> PyResult<Datatype> {
        to_python(Tree::indexed_block(blocklength, &displacements, &oldtype.0))
    }

    /// Builds blocks of one length (MPI_Type_create_hindexed_block). Displacements are in bytes.
    #[staticmethod]
    fn hindexed_block(blocklength: i64, displacements: Vec<i64>, oldtype: &Self) -> PyResult<Datatype> {
        to_python(Tree::hindexed_block(blocklength, &displacements, &oldtype.0))
    }

    /// Builds blocks of different types (MPI_Type_create_struct). Displacements are in bytes.
    #[staticmethod]
    fn r#struct(
        blocklengths: Vec<i64>,
        displacements: Vec<i64>,
        types: Vec<PyRef<'_, Datatype>>,
    ) -> PyResult<Datatype> {
        let types: Vec<Tree> = types.iter().map(|t| t.0.clone()).collect();
        to_python(Tree::structure(&blocklengths, &displacements, &types))
    }

    /// Builds a part of an array (MPI_Type_create_subarray). The order is "C" or "F".
    #[staticmethod]
    #[pyo3(signature = (sizes, subsizes, starts, oldtype, order = "C"))]
    fn subarray(
        sizes: Vec<i64>,
        subsizes: Vec<i64>,
        starts: Vec<i64>,
        oldtype: &Self,
        order: &str,
    ) -> PyResult<Datatype> {
        let order = match order {
            "C" => Order::C,
            "F" => Order::Fortran,
            other => return Err(Error::new_err(format!("subarray: order = '{other}': must be 'C' or 'F'"))),
        };
        to_python(Tree::subarray(&sizes, &subsizes, &starts, order, &oldtype.0))
    }

    /// Builds a type with the same data as `oldtype`, and with the given lower bound and extent in
    /// bytes (MPI_Type_create_resized).
    #[staticmethod]
    fn resized(lb: i64, extent: i64, oldtype: &Self) -> PyResult<Datatype> {
        to_python(Tree::resized(lb, extent, &oldtype.0))
    }

    /// Converts a datatype of mpi4py, from its envelope and contents. MPI must be initialized.
    #[staticmethod]
    fn from_mpi(datatype: &Bound<'_, PyAny>) -> PyResult<Datatype> {
        mpi::decoded(datatype).map(Datatype)
    }

    /// Converts a dtype of NumPy: numbers to MPI's types, records to structures with their padding,
    /// and strings to bytes.
    #[staticmethod]
    fn from_dtype(dtype: &Bound<'_, PyAny>) -> PyResult<Datatype> {
        numpy::from_dtype(dtype).map(Datatype)
    }

    /// Returns the layout of a strided array of NumPy. Displacement 0 is the first element of the
    /// array.
    #[staticmethod]
    fn from_array(array: &Bound<'_, PyAny>) -> PyResult<Datatype> {
        numpy::from_array(array).map(Datatype)
    }

    /// Number of bytes of a packed instance.
    #[getter]
    fn size(&self) -> i64 {
        self.0.size()
    }

    /// Lower bound in bytes.
    #[getter]
    fn lb(&self) -> i64 {
        self.0.lb()
    }

    /// Distance in bytes from an instance to the next.
    #[getter]
    fn extent(&self) -> i64 {
        self.0.extent()
    }

    /// Displacement in bytes of the first byte of data.
    #[getter]
    fn true_lb(&self) -> i64 {
        self.0.true_lb()
    }

    /// Distance in bytes from the first byte of data to the one after the last.
    #[getter]
    fn true_extent(&self) -> i64 {
        self.0.true_extent()
    }

    /// Compiles the datatype, or finds code that was compiled earlier for a datatype with an equal
    /// layout.
    fn commit(&self, py: Python<'_>) -> PyResult<Committed> {
        py.detach(|| ddtc::commit(&self.0)).map(Committed).map_err(to_python_error)
    }

    /// Draws the memory of `count` instances.
    #[pyo3(signature = (count = 1))]
    fn draw<'py>(&self, py: Python<'py>, count: u64) -> PyResult<Bound<'py, PyAny>> {
        py.import("ddtc._draw")?.call_method1("draw", (self.0.to_string(), count))
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Datatype('{}')", self.0)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Datatype>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.structural_hash().hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, (String,)) {
        (py.get_type::<Datatype>().into_any(), (self.0.to_string(),))
    }
}

/// A committed datatype, which packs and unpacks. Any number of threads may use it at the same
/// time.
#[pyclass(module = "ddtc", frozen)]
struct Committed(Code);

#[pymethods]
impl Committed {
    /// Datatype that was committed.
    #[getter]
    fn datatype(&self) -> Datatype {
        Datatype(self.0.datatype().clone())
    }

    /// Returns the number of packed bytes of `count` instances.
    #[pyo3(signature = (count = 1))]
    fn packed_size(&self, count: u64) -> PyResult<u64> {
        self.0.packed_size(count).map_err(to_python_error)
    }

    /// Packs `count` instances from `source` to the beginning of `target`, and returns the number
    /// of bytes written. Displacement 0 of the first instance is `origin` bytes after the first
    /// element of `source`. Other threads of Python run during the call. They must not write to
    /// `source` or access `target`.
    #[pyo3(signature = (source, target, count = 1, origin = 0))]
    fn pack(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        count: u64,
        origin: i64,
    ) -> PyResult<usize> {
        let (source, target) = (Memory::strided(source, "source")?, Memory::dense(target, "target", true)?);
        check_disjoint(&source, &target)?;
        let origin = source.origin(origin)?;
        // SAFETY: both buffers stay exported while `source` and `target` exist, the target is
        // writable, and they do not overlap. The documentation forbids other threads to use them
        // meanwhile.
        let (from, to) = unsafe { (source.bytes(), target.bytes_mut()) };
        py.detach(|| self.0.pack(from, origin, count, to)).map_err(to_python_error)
    }

    /// Packs `count` instances from `source`, and returns the packed bytes as a new object. The
    /// arguments and the rules for other threads are those of `pack`.
    #[pyo3(signature = (source, count = 1, origin = 0))]
    fn packed<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'_, PyAny>,
        count: u64,
        origin: i64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let source = Memory::strided(source, "source")?;
        let origin = source.origin(origin)?;
        let size = usize::try_from(self.packed_size(count)?)?;
        // Pack into no memory first. This writes nothing, and finds out whether `source` holds all
        // instances before memory is allocated for their packed bytes.
        // SAFETY: as below; the slice ends with this statement.
        let tried = self.0.pack(unsafe { source.bytes() }, origin, count, &mut []);
        if let Err(error) = tried
            && error.class() != ErrorClass::Truncate
        {
            return Err(to_python_error(error));
        }
        PyBytes::new_with(py, size, |target| {
            // SAFETY: the buffer stays exported while `source` exists, and the documentation
            // forbids other threads to write to it during the call. No other code has a reference
            // to the new target yet.
            let from = unsafe { source.bytes() };
            py.detach(|| self.0.pack(from, origin, count, target)).map(drop).map_err(to_python_error)
        })
    }

    /// Unpacks `count` instances from the beginning of `source` to `target`, and returns the number
    /// of bytes read. Displacement 0 of the first instance is `origin` bytes after the first
    /// element of `target`. Other threads of Python run during the call. They must not write to
    /// `source` or access `target`.
    #[pyo3(signature = (source, target, count = 1, origin = 0))]
    fn unpack(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        count: u64,
        origin: i64,
    ) -> PyResult<usize> {
        let (source, target) =
            (Memory::dense(source, "source", false)?, Memory::strided(target, "target")?.writable()?);
        check_disjoint(&source, &target)?;
        let origin = target.origin(origin)?;
        // SAFETY: both buffers stay exported while `source` and `target` exist, the target is
        // writable, and they do not overlap. The documentation forbids other threads to use them
        // meanwhile.
        let (from, to) = unsafe { (source.bytes(), target.bytes_mut()) };
        py.detach(|| self.0.unpack(from, origin, count, to)).map_err(to_python_error)
    }

    fn __repr__(&self) -> String {
        format!("Committed(Datatype('{}'))", self.0.datatype())
    }
}

#[pymodule]
fn _ddtc(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("Error", m.py().get_type::<Error>())?;
    m.add_class::<Datatype>()?;
    m.add_class::<Committed>()?;
    m.add_class::<CudaLayout>()
}
