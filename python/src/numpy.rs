//! Converts dtypes and strided arrays of NumPy. This module is not linked with NumPy. It reads the
//! attributes of NumPy's objects by their names.

use ddtc::internal::datatype::{Datatype, Named};
use ddtc::internal::methods::*;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::to_python_error;

/// Maximum depth of records within records. NumPy's own limit is lower.
const MAX_DEPTH: usize = 64;

/// Converts a dtype.
///
/// # Errors
/// If the dtype contains Python objects or values of an unknown kind, if its byte order is not that
/// of this machine, or if records and arrays in it nest deeper than `MAX_DEPTH`. Text, dates, raw
/// bytes and half-precision numbers, which have no MPI type either, are packed as bytes.
pub fn from_dtype(dtype: &Bound<'_, PyAny>) -> PyResult<Datatype> {
    // Let NumPy convert anything that is not a dtype, such as the name of a dtype.
    let dtype = match dtype.hasattr("itemsize")? && dtype.hasattr("kind")? {
        true => dtype.clone(),
        false => dtype.py().import("numpy")?.call_method1("dtype", (dtype,))?,
    };
    element(&dtype, MAX_DEPTH)
}

fn element(dtype: &Bound<'_, PyAny>, depth: usize) -> PyResult<Datatype> {
    if depth == 0 {
        return Err(PyTypeError::new_err(format!(
            "from_dtype: records must not nest deeper than {MAX_DEPTH}"
        )));
    }
    let size: i64 = dtype.getattr("itemsize")?.extract()?;
    let subdtype = dtype.getattr("subdtype")?;
    if !subdtype.is_none() {
        let (base, shape): (Bound<'_, PyAny>, Vec<i64>) = subdtype.extract()?;
        let mut t = element(&base, depth - 1)?;
        for &n in shape.iter().rev() {
            t = Datatype::contiguous(n, &t).map_err(to_python_error)?;
        }
        return Ok(t);
    }
    let names = dtype.getattr("names")?;
    if !names.is_none() {
        let fields = dtype.getattr("fields")?;
        let (mut types, mut displacements) = (Vec::new(), Vec::new());
        for name in names.extract::<Vec<String>>()? {
            let field = fields.get_item(name)?;
            types.push(element(&field.get_item(0)?, depth - 1)?);
            displacements.push(field.get_item(1)?.extract::<i64>()?);
        }
        let ones = vec![1; types.len()];
        let record = Datatype::structure(&ones, &displacements, &types).map_err(to_python_error)?;
        // The extent of a record includes the padding at its end.
        return Datatype::resized(0, size, &record).map_err(to_python_error);
    }
    if !dtype.getattr("isnative")?.extract::<bool>()? {
        return Err(PyTypeError::new_err(format!(
            "from_dtype: {dtype}: must have this machine's byte order"
        )));
    }
    let kind: String = dtype.getattr("kind")?.extract()?;
    let named = match (kind.as_str(), size) {
        ("b", 1) => Named::CBool,
        ("i", 1) => Named::Int8,
        ("i", 2) => Named::Int16,
        ("i", 4) => Named::Int32,
        ("i", 8) => Named::Int64,
        ("u", 1) => Named::Uint8,
        ("u", 2) => Named::Uint16,
        ("u", 4) => Named::Uint32,
        ("u", 8) => Named::Uint64,
        ("f", 4) => Named::Float,
        ("f", 8) => Named::Double,
        ("f", 16) => Named::LongDouble,
        ("c", 8) => Named::CFloatComplex,
        ("c", 16) => Named::CDoubleComplex,
        ("c", 32) => Named::CLongDoubleComplex,
        // MPI has no type for text, raw bytes, dates and half precision, so their bytes are packed.
        ("S" | "U" | "V" | "M" | "m" | "f", _) => {
            return Datatype::contiguous(size, &Datatype::named(Named::Byte)).map_err(to_python_error);
        }
        _ => {
            let rule = "must be numbers, text, dates, raw bytes or records of these: objects of Python are addresses";
            return Err(PyTypeError::new_err(format!("from_dtype: {dtype}: {rule}")));
        }
    };
    Ok(Datatype::named(named))
}

/// Returns the layout of an array. Displacement 0 is the first element of the array.
///
/// # Errors
/// As for [`from_dtype`]; also if the object has no shape, strides or dtype.
pub fn from_array(array: &Bound<'_, PyAny>) -> PyResult<Datatype> {
    let part = |name: &str| {
        array.getattr(name).map_err(|_| {
            PyTypeError::new_err(format!(
                "from_array: must be a NumPy array, which has {name}, shape, strides and dtype"
            ))
        })
    };
    let (shape, strides): (Vec<i64>, Vec<i64>) = (part("shape")?.extract()?, part("strides")?.extract()?);
    let mut t = from_dtype(&part("dtype")?)?;
    // In the packed stream the index of the last dimension varies fastest, so this dimension is the
    // innermost constructor.
    for (&n, &stride) in shape.iter().zip(&strides).rev() {
        t = Datatype::hvector(n, 1, stride, &t).map_err(to_python_error)?;
    }
    Ok(t)
}
