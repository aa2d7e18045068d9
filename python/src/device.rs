//! Buffers of Python's objects for calls that move bytes in device memory.
//!
//! Three kinds of objects are accepted: objects with `__dlpack__`, objects with
//! `__cuda_array_interface__`, and objects with the buffer protocol, whose memory must be pinned.
//! Nothing is copied, and all rules are checked before any bytes are moved. The driver is asked
//! whether host memory is pinned, and whether memory belongs to the right device
//! ([`ddtc_gpu::device`]). At that time, the stream of the call may already wait for other streams
//! that have work on the buffers, even if the call then fails.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::Error;
use crate::buffer::Memory;
use crate::dlpack;

/// Lowest version of `__cuda_array_interface__` that is accepted: the first one with the key
/// `stream`.
const VERSION: i64 = 3;

/// Handle of the legacy default stream, `CU_STREAM_LEGACY`. The driver accepts 0 for the same
/// stream, but `__dlpack__` and `__cuda_array_interface__` do not.
const LEGACY_STREAM: u64 = 1;

/// How a call of a layout uses one of its device buffers.
#[derive(Clone, Copy)]
pub struct Use {
    /// Name of the called method.
    pub call: &'static str,
    /// Name of the argument.
    pub name: &'static str,
    /// Whether the call writes to the buffer.
    pub write: bool,
    /// Number of the device on which the layout is open.
    pub device: i32,
    /// Handle of the stream on which the call works.
    pub stream: u64,
}

impl Use {
    /// Returns the error for an argument that breaks `rule`. `value` describes the argument.
    pub fn refused(&self, value: impl std::fmt::Display, rule: &str) -> PyErr {
        Error::new_err(format!("{}: {} = {value}: {rule}", self.call, self.name))
    }
}

/// The memory of an object, and what keeps it in place until the work is submitted.
pub struct DeviceMemory<'py> {
    /// Address of the first byte.
    pub address: u64,
    /// Number of bytes.
    pub len: u64,
    /// Handle of a stream whose work on the memory may not have ended; `None` if the object names
    /// no such stream. The call must make its own stream wait for this work.
    pub stream: Option<u64>,
    _owner: Owner<'py>,
}

/// What keeps the memory of an object in place. It must not be dropped before the work is
/// submitted.
enum Owner<'py> {
    Host(#[allow(dead_code, reason = "its drop ends the export of the buffer")] Memory),
    Object(#[allow(dead_code, reason = "its drop ends the export of the array")] Bound<'py, PyAny>),
}

impl<'py> DeviceMemory<'py> {
    /// Returns the memory of `object`.
    ///
    /// # Errors
    /// `TypeError` if the object has no buffer of any kind. Otherwise `ddtc.Error` names the
    /// argument and the rule: the array must be dense, must not have a mask, must be writable if
    /// the call writes to it, and must not be managed memory or memory of another device.
    pub fn new(object: &Bound<'py, PyAny>, usage: Use) -> PyResult<DeviceMemory<'py>> {
        let is_host = if object.hasattr("__dlpack_device__")? {
            let (kind, number) = dlpack::device(object)?;
            check_device(usage, kind, number)?;
            if kind != dlpack::CPU {
                return from_dlpack(object, usage, kind);
            }
            true
        } else {
            false
        };
        if object.hasattr("__cuda_array_interface__")? {
            return from_interface(object, usage);
        }
        // The object is in host memory. Try the buffer protocol first, which arrays of NumPy have,
        // whatever their dtype is. Arrays of other libraries in pinned memory may not have it; they
        // are read through DLPack.
        match Memory::dense(object, usage.name, usage.write) {
            Ok(memory) => Ok(DeviceMemory {
                address: memory.address(),
                len: memory.len() as u64,
                stream: None,
                _owner: Owner::Host(memory),
            }),
            Err(error) if error.is_instance_of::<PyTypeError>(object.py()) && is_host => {
                from_dlpack(object, usage, dlpack::CPU)
            }
            Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => {
                let found = object.get_type().name()?;
                Err(PyTypeError::new_err(format!(
                    "{}: {} must have __dlpack__, __cuda_array_interface__ or the buffer protocol, and is a {found}",
                    usage.call, usage.name
                )))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns true if the two buffers have a byte in common.
    pub fn overlaps(&self, other: &DeviceMemory<'_>) -> bool {
        let end = |memory: &DeviceMemory<'_>| memory.address.saturating_add(memory.len);
        self.len > 0 && other.len > 0 && self.address < end(other) && other.address < end(self)
    }
}

fn check_device(usage: Use, kind: i32, number: i32) -> PyResult<()> {
    match kind {
        dlpack::CUDA if number == usage.device => Ok(()),
        dlpack::CUDA => {
            let rule = format!("must be on device {}, on which the layout is open", usage.device);
            Err(usage.refused(format_args!("an array on device {number}"), &rule))
        }
        dlpack::CPU | dlpack::CUDA_HOST => Ok(()),
        dlpack::CUDA_MANAGED => {
            Err(usage.refused("managed memory", "must not be memory that the driver may move meanwhile"))
        }
        _ => {
            let value = format!("an array on a device of DLPack's kind {kind}");
            Err(usage.refused(value, "must be in the memory of an NVIDIA GPU, or in pinned host memory"))
        }
    }
}

/// Returns the memory of an object with the method `__dlpack__`. The method gets the stream on which
/// ddtc will use the array. The library that owns the array must make this stream wait for pending
/// work that writes the array.
fn from_dlpack<'py>(object: &Bound<'py, PyAny>, usage: Use, kind: i32) -> PyResult<DeviceMemory<'py>> {
    let py = object.py();
    let arguments = PyDict::new(py);
    if kind == dlpack::CUDA {
        arguments.set_item("stream", usage.stream.max(LEGACY_STREAM))?;
    }
    arguments.set_item("max_version", dlpack::VERSION)?;
    let export = || object.call_method("__dlpack__", (), Some(&arguments));
    let capsule = match export() {
        // Before version 1 of DLPack there was no argument `max_version`.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            arguments.del_item("max_version")?;
            export()?
        }
        exported => exported?,
    };
    let found = object.get_type().name()?;
    let tensor = dlpack::tensor(&capsule).map_err(|rule| usage.refused(format_args!("a {found}"), rule))?;
    check_device(usage, tensor.device.0, tensor.device.1)?;
    if tensor.is_copied {
        return Err(usage.refused(format_args!("a {found}"), "must be exported by __dlpack__ without a copy"));
    }
    if tensor.bits % 8 != 0 {
        let rule = "must have elements of whole bytes";
        return Err(usage.refused(format_args!("elements of {} bits", tensor.bits), rule));
    }
    let bytes = tensor.bits / 8;
    let strides = tensor
        .strides
        .map(|strides| strides.into_iter().map(|s| i128::from(s) * i128::from(bytes)).collect::<Vec<_>>());
    let len = dense_len(usage, &tensor.shape, strides.as_deref(), bytes)?;
    check_writable(usage, tensor.is_read_only)?;
    Ok(DeviceMemory { address: tensor.address, len, stream: None, _owner: Owner::Object(capsule) })
}

/// Returns the memory of an object with `__cuda_array_interface__`.
fn from_interface<'py>(object: &Bound<'py, PyAny>, usage: Use) -> PyResult<DeviceMemory<'py>> {
    let interface = object.getattr("__cuda_array_interface__")?;
    let bad = |key: &str, rule: &str| {
        usage.refused(format_args!("an array whose __cuda_array_interface__ has no valid '{key}'"), rule)
    };
    let interface = interface.cast::<PyDict>().map_err(|_| bad("version", "must be a dictionary"))?;
    let part = |key: &str| Ok::<_, PyErr>(interface.get_item(key)?.filter(|value| !value.is_none()));
    let version = part("version")?.and_then(|v| v.extract::<i64>().ok());
    if version.is_none_or(|version| version < VERSION) {
        let value = format!("version {} of __cuda_array_interface__", version.unwrap_or(0));
        return Err(usage.refused(value, "must be at least version 3, which has the key 'stream'"));
    }
    if part("mask")?.is_some() {
        return Err(usage.refused("an array with a mask", "must have no mask"));
    }
    let shape = part("shape")?.and_then(|shape| shape.extract::<Vec<i64>>().ok());
    let shape = shape.ok_or_else(|| bad("shape", "must be a tuple of numbers"))?;
    let bytes = part("typestr")?.and_then(|text| element_bytes(&text.extract::<String>().ok()?));
    let bytes = bytes.ok_or_else(|| bad("typestr", "must be numbers, booleans, text or raw bytes"))?;
    let strides = match part("strides")? {
        None => None,
        Some(strides) => {
            let strides = strides.extract::<Vec<i64>>();
            let strides = strides.map_err(|_| bad("strides", "must be None or a tuple of numbers"))?;
            Some(strides.into_iter().map(i128::from).collect::<Vec<_>>())
        }
    };
    let data = part("data")?.and_then(|data| data.extract::<(u64, bool)>().ok());
    let (address, read_only) = data.ok_or_else(|| bad("data", "must be an address and a flag"))?;
    let len = dense_len(usage, &shape, strides.as_deref(), bytes)?;
    check_writable(usage, read_only)?;
    let stream = match part("stream")? {
        None => None,
        Some(stream) => {
            let stream = stream.extract::<u64>().ok().filter(|&stream| stream != 0);
            Some(stream.ok_or_else(|| bad("stream", "must be None or a number that is not 0"))?)
        }
    };
    Ok(DeviceMemory { address, len, stream, _owner: Owner::Object(object.clone()) })
}

/// Returns the number of bytes of an element from `typestr`, its description in
/// `__cuda_array_interface__`, such as `<f8`. Returns `None` for objects of Python, bit fields, and
/// anything unknown.
fn element_bytes(typestr: &str) -> Option<u64> {
    let rest = typestr.strip_prefix(['<', '>', '|', '='])?;
    let (kind, number) = rest.split_at_checked(1)?;
    let number: u64 = number.parse().ok()?;
    match kind {
        "b" | "i" | "u" | "f" | "c" | "m" | "M" | "S" | "V" => Some(number),
        // For text in Unicode, the number counts characters, which have 4 bytes each.
        "U" => number.checked_mul(4),
        _ => None,
    }
}

fn check_writable(usage: Use, read_only: bool) -> PyResult<()> {
    if usage.write && read_only {
        return Err(usage.refused("a read-only array", "must be writable"));
    }
    Ok(())
}

/// Returns the number of bytes of an array, which must have no gaps between its elements. The order
/// of the elements may be that of C or of Fortran. The strides are in bytes. Without strides, the
/// array is in the order of C.
///
/// # Errors
/// If the array has gaps, if its size does not fit in 63 bits, or if the number of strides differs
/// from the number of dimensions.
fn dense_len(usage: Use, shape: &[i64], strides: Option<&[i128]>, bytes: u64) -> PyResult<u64> {
    let describe = || format!("an array of shape {shape:?}");
    let product = shape.iter().try_fold(bytes, |len, &n| len.checked_mul(u64::try_from(n).ok()?));
    let Some(len) = product.filter(|&len| len <= i64::MAX as u64) else {
        return Err(usage.refused(describe(), "must have sizes whose product fits in 63 bits"));
    };
    let Some(strides) = strides.filter(|_| len > 0) else { return Ok(len) };
    if strides.len() != shape.len() {
        return Err(usage.refused(describe(), "must have one stride for each dimension"));
    }
    let is_dense = |from_last: bool| {
        let mut expected = i128::from(bytes);
        (0..shape.len()).all(|i| {
            let i = if from_last { shape.len() - 1 - i } else { i };
            // The stride of a dimension of one element is never used.
            let fits = shape[i] == 1 || strides[i] == expected;
            expected *= i128::from(shape[i]);
            fits
        })
    };
    if is_dense(true) || is_dense(false) {
        return Ok(len);
    }
    let value = format!("{} with strides of {strides:?} B", describe());
    Err(usage.refused(value, "must be contiguous, and the datatype can describe a part of it"))
}

/// Returns the handle of a stream: a number, or an object with the method `__cuda_stream__`, which
/// returns a version and the handle.
///
/// # Errors
/// `TypeError` if the object is neither, and `ddtc.Error` if the number is negative.
pub fn stream_handle(call: &str, stream: &Bound<'_, PyAny>) -> PyResult<u64> {
    let number = if stream.hasattr("__cuda_stream__")? {
        let pair = stream.call_method0("__cuda_stream__")?;
        pair.cast::<PyTuple>()?.get_item(1)?
    } else {
        stream.clone()
    };
    match number.extract::<i128>() {
        Ok(handle) => u64::try_from(handle).map_err(|_| {
            Error::new_err(format!("{call}: stream = {handle}: must be a handle, which is not negative"))
        }),
        Err(_) => {
            let found = stream.get_type().name()?;
            Err(PyTypeError::new_err(format!(
                "{call}: stream must be the number of a handle or an object with __cuda_stream__, and is a {found}"
            )))
        }
    }
}
