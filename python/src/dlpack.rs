//! Structures of DLPack, by which libraries for arrays exchange buffers (dlpack.h, version 1).
//!
//! The library that owns an array exports it as a capsule of Python, which owns a structure of
//! DLPack. ddtc only reads the structure. A consumer that takes over the structure would rename the
//! capsule. ddtc does not, so the destructor of the capsule releases the structure.

use std::ffi::{CStr, c_void};

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// `kDLCPU`: host memory.
pub const CPU: i32 = 1;
/// `kDLCUDA`: memory of an NVIDIA GPU.
pub const CUDA: i32 = 2;
/// `kDLCUDAHost`: pinned host memory.
pub const CUDA_HOST: i32 = 3;
/// `kDLCUDAManaged`: managed memory.
pub const CUDA_MANAGED: i32 = 13;

/// Version of DLPack that ddtc asks the library of an array for. A structure of a later minor
/// version has the same fields.
pub const VERSION: (u32, u32) = (1, 0);

/// `DLPACK_FLAG_BITMASK_READ_ONLY`: the buffer must not be written.
const READ_ONLY: u64 = 1;
/// `DLPACK_FLAG_BITMASK_IS_COPIED`: the buffer is a copy of the array.
const IS_COPIED: u64 = 2;

const NAME: &CStr = c"dltensor";
const VERSIONED_NAME: &CStr = c"dltensor_versioned";

/// The C structure `DLDevice`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Device {
    kind: i32,
    number: i32,
}

/// The C structure `DLDataType`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// The C structure `DLTensor`.
#[repr(C)]
struct RawTensor {
    data: *mut c_void,
    device: Device,
    dimensions: i32,
    datatype: DataType,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// The fields of the C structure `DLManagedTensorVersioned` that ddtc reads. `major` and `minor`
/// are the first fields in every version of DLPack.
#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: *mut c_void,
    flags: u64,
    tensor: RawTensor,
}

/// Description of a buffer, read from a structure of DLPack.
pub struct Tensor {
    /// Address of the first element.
    pub address: u64,
    /// Kind of the device, such as [`CUDA`], and the number of the device.
    pub device: (i32, i32),
    /// Length of an element in bits.
    pub bits: u64,
    /// Number of elements in each dimension.
    pub shape: Vec<i64>,
    /// Strides in elements, or `None` for an array in the order of C without gaps.
    pub strides: Option<Vec<i64>>,
    /// Whether the buffer must not be written.
    pub is_read_only: bool,
    /// Whether the library that owns the array has exported a copy of it.
    pub is_copied: bool,
}

/// Returns the kind of the device on which an object with `__dlpack_device__` has its elements, such
/// as [`CUDA`], and the number of the device.
pub fn device(object: &Bound<'_, PyAny>) -> PyResult<(i32, i32)> {
    // Extract the kind as a number. In some libraries it is an `IntEnum`.
    object.call_method0("__dlpack_device__")?.extract()
}

/// Returns true if an object has its elements in the memory of a device, so that the host cannot
/// access them. Objects that have `__cuda_array_interface__` and not `__dlpack_device__` are
/// assumed to be on a device.
pub fn is_on_device(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.hasattr("__dlpack_device__")? {
        let (kind, _) = device(object)?;
        return Ok(kind != CPU && kind != CUDA_HOST);
    }
    object.hasattr("__cuda_array_interface__")
}

/// Reads the structure that a capsule of `__dlpack__` owns. Returns an error text if the object is
/// no such capsule, was consumed already, or has a major version different from 1.
pub fn tensor(object: &Bound<'_, PyAny>) -> Result<Tensor, &'static str> {
    const NO_CAPSULE: &str = "its __dlpack__ must return a capsule of DLPack that nobody has consumed";
    let capsule = object.cast::<PyCapsule>().map_err(|_| NO_CAPSULE)?;
    if capsule.is_valid_checked(Some(VERSIONED_NAME)) {
        let pointer = capsule.pointer_checked(Some(VERSIONED_NAME)).map_err(|_| NO_CAPSULE)?;
        let pointer = pointer.cast::<Versioned>().as_ptr();
        // SAFETY: DLPack requires that a capsule of this name owns such a structure, whose first
        // field is the major version, whatever that version is.
        if unsafe { (*pointer).major } != VERSION.0 {
            return Err("its __dlpack__ must return a structure of version 1 of DLPack");
        }
        // SAFETY: the structure has major version 1, so it has all of these fields.
        let (flags, raw) = unsafe { ((*pointer).flags, &(*pointer).tensor) };
        return Ok(read(raw, flags));
    }
    let pointer = capsule.pointer_checked(Some(NAME)).map_err(|_| NO_CAPSULE)?;
    // SAFETY: DLPack requires that a capsule of this name owns a `DLManagedTensor`, whose first
    // field is the `DLTensor`.
    let raw = unsafe { &*pointer.cast::<RawTensor>().as_ptr() };
    Ok(read(raw, 0))
}

fn read(raw: &RawTensor, flags: u64) -> Tensor {
    let dimensions = usize::try_from(raw.dimensions).unwrap_or(0);
    let list = |pointer: *const i64| {
        // SAFETY: DLPack requires as many numbers as there are dimensions.
        (0..dimensions).map(|i| unsafe { *pointer.add(i) }).collect::<Vec<i64>>()
    };
    Tensor {
        address: (raw.data.addr() as u64).wrapping_add(raw.byte_offset),
        device: (raw.device.kind, raw.device.number),
        bits: u64::from(raw.datatype.bits) * u64::from(raw.datatype.lanes),
        shape: if raw.shape.is_null() { Vec::new() } else { list(raw.shape) },
        strides: (!raw.strides.is_null()).then(|| list(raw.strides)),
        is_read_only: flags & READ_ONLY != 0,
        is_copied: flags & IS_COPIED != 0,
    }
}
