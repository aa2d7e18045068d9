//! The class `CudaLayout`: packing and unpacking in the memory of NVIDIA GPUs.

use std::ops::Range;
use std::ptr::without_provenance_mut;

use ddtc::internal::kind::Direction;
use ddtc_gpu::device::{Layout, Transfer};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::device::{DeviceMemory, Use, stream_handle};
use crate::{Committed, Datatype, Error, to_python_error};

/// Layout on an NVIDIA GPU: a committed datatype whose kernels are loaded on the GPU. The layout
/// packs and unpacks device memory by work that it submits to a stream. Any number of threads may
/// use the layout at the same time, until it is closed. A layout that is never closed keeps its
/// kernels loaded until the process ends.
#[pyclass(module = "ddtc")]
pub struct CudaLayout {
    /// The layout whose kernels are loaded on the device, or `None` after it was closed.
    layout: Option<Box<Layout>>,
    datatype: Datatype,
    device: i32,
}

/// Arguments of a call that moves bytes.
struct Call<'a, 'py> {
    name: &'static str,
    direction: Direction,
    user: &'a Bound<'py, PyAny>,
    packed: &'a Bound<'py, PyAny>,
    count: u64,
    /// Distance in bytes from the first byte of `user` to displacement 0 of the first instance.
    origin: i64,
    /// First packed byte to move, for `pack_range` and `unpack_range`. `pack` and `unpack`, which
    /// move all packed bytes, have `None`.
    offset: Option<u64>,
    stream: &'a Bound<'py, PyAny>,
}

#[pymethods]
impl CudaLayout {
    /// Opens a committed datatype on the device with the number `device`. Chooses the kernels and
    /// loads them. Open and close layouts while no stream of the device is captured into a graph.
    #[new]
    #[pyo3(signature = (committed, device = 0))]
    fn new(py: Python<'_>, committed: &Committed, device: i32) -> PyResult<CudaLayout> {
        let opened = py.detach(|| Layout::open("CudaLayout", &committed.0, device));
        let layout = Some(opened.map_err(to_python_error)?);
        Ok(CudaLayout { layout, datatype: Datatype(committed.0.datatype().clone()), device })
    }

    /// Datatype of the layout.
    #[getter]
    fn datatype(&self) -> Datatype {
        self.datatype.clone()
    }

    /// Number of the device.
    #[getter]
    fn device(&self) -> i32 {
        self.device
    }

    /// Whether the layout was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.layout.is_none()
    }

    /// Alignment in bytes at which a transfer moves the widest words that the layout allows. It
    /// does so if the first byte of data in user memory, the first packed byte, and both ends of
    /// the range have this alignment. A call accepts any other alignment too.
    #[getter]
    fn unit(&self) -> PyResult<u32> {
        Ok(self.open("unit")?.unit())
    }

    /// Submits to `stream` the packing of `count` instances from `user` to the beginning of
    /// `packed`. Returns the number of packed bytes, and does not wait until the bytes are moved.
    /// Both buffers and the layout must stay until the stream has done the work.
    #[pyo3(signature = (user, packed, count = 1, origin = 0, *, stream))]
    fn pack(
        &self,
        py: Python<'_>,
        user: &Bound<'_, PyAny>,
        packed: &Bound<'_, PyAny>,
        count: u64,
        origin: i64,
        stream: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let (name, direction) = ("pack", Direction::Pack);
        self.submit(py, &Call { name, direction, user, packed, count, origin, offset: None, stream })
    }

    /// Submits to `stream` the unpacking of `count` instances from the beginning of `packed` to
    /// `user`. Returns the number of packed bytes. The rules are those of `pack`.
    #[pyo3(signature = (packed, user, count = 1, origin = 0, *, stream))]
    fn unpack(
        &self,
        py: Python<'_>,
        packed: &Bound<'_, PyAny>,
        user: &Bound<'_, PyAny>,
        count: u64,
        origin: i64,
        stream: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let (name, direction) = ("unpack", Direction::Unpack);
        self.submit(py, &Call { name, direction, user, packed, count, origin, offset: None, stream })
    }

    /// Submits to `stream` the packing of a range of the packed bytes of `count` instances. Returns
    /// the number of bytes in the range. The range begins at the packed byte `offset` and is as
    /// long as `packed`, or shorter if there are fewer bytes from `offset` on. The other rules are
    /// those of `pack`.
    #[pyo3(signature = (user, packed, offset, count = 1, origin = 0, *, stream))]
    #[allow(clippy::too_many_arguments, reason = "as in Python")]
    fn pack_range(
        &self,
        py: Python<'_>,
        user: &Bound<'_, PyAny>,
        packed: &Bound<'_, PyAny>,
        offset: u64,
        count: u64,
        origin: i64,
        stream: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let (name, direction, offset) = ("pack_range", Direction::Pack, Some(offset));
        self.submit(py, &Call { name, direction, user, packed, count, origin, offset, stream })
    }

    /// Submits to `stream` the unpacking of a range of the packed bytes of `count` instances.
    /// Returns the number of bytes in the range. The range begins at the packed byte `offset` and
    /// is as long as `packed`, or shorter if there are fewer bytes from `offset` on. The other
    /// rules are those of `pack`.
    #[pyo3(signature = (packed, user, offset, count = 1, origin = 0, *, stream))]
    #[allow(clippy::too_many_arguments, reason = "as in Python")]
    fn unpack_range(
        &self,
        py: Python<'_>,
        packed: &Bound<'_, PyAny>,
        user: &Bound<'_, PyAny>,
        offset: u64,
        count: u64,
        origin: i64,
        stream: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let (name, direction, offset) = ("unpack_range", Direction::Unpack, Some(offset));
        self.submit(py, &Call { name, direction, user, packed, count, origin, offset, stream })
    }

    /// Waits for all work on the device, and unloads the kernels. Does nothing if the layout is
    /// closed. If a stream of the device is being captured into a graph, raises an error, and the
    /// layout stays open.
    fn close(slf: &Bound<'_, Self>) -> PyResult<()> {
        let mut this = slf.try_borrow_mut().map_err(|_| {
            Error::new_err("close: layout = one in use: must not be closed during a call of another thread")
        })?;
        let Some(layout) = this.layout.take() else { return Ok(()) };
        slf.py().detach(|| layout.close("close")).map_err(|(layout, error)| {
            this.layout = Some(layout);
            to_python_error(error)
        })
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(slf: &Bound<'_, Self>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        // Nothing is done with an exception of the body of `with`: Python raises it again after
        // this function has closed the layout.
        let _ = exception;
        CudaLayout::close(slf)
    }

    fn __repr__(&self) -> String {
        let closed = if self.layout.is_none() { ", closed" } else { "" };
        format!("CudaLayout({}, device={}{closed})", self.datatype.__repr__(), self.device)
    }
}

impl CudaLayout {
    fn open(&self, call: &str) -> PyResult<&Layout> {
        let closed = || Error::new_err(format!("{call}: layout = a closed one: must be open"));
        self.layout.as_deref().ok_or_else(closed)
    }

    /// Checks the arguments of a call, and submits its work.
    fn submit(&self, py: Python<'_>, call: &Call<'_, '_>) -> PyResult<u64> {
        let layout = self.open(call.name)?;
        let stream = stream_handle(call.name, call.stream)?;
        let usage = |name, write| Use { call: call.name, name, write, device: self.device, stream };
        let unpacks = call.direction == Direction::Unpack;
        let (user_use, packed_use) = (usage("user", unpacks), usage("packed", !unpacks));
        let user = DeviceMemory::new(call.user, user_use)?;
        let packed = DeviceMemory::new(call.packed, packed_use)?;
        let range = self.range(call, packed_use, packed.len)?;
        let moved = range.end - range.start;
        if moved == 0 {
            return Ok(0);
        }
        self.check_user(call, user_use, user.len)?;
        if user.overlaps(&packed) {
            return Err(packed_use.refused(format_args!("{:#x}", packed.address), "must not overlap `user`"));
        }
        let transfer = Transfer {
            direction: call.direction,
            user: user.address.wrapping_add_signed(call.origin),
            count: call.count,
            packed: packed.address,
            range,
        };
        let first = [("user", user.stream), ("packed", packed.stream)];
        let name = call.name;
        let submitted = py.detach(|| {
            let handle = |stream: u64| without_provenance_mut(stream as usize);
            for (argument, first) in first {
                if let Some(first) = first {
                    // SAFETY: the caller and the object with the array pass streams that were not
                    // destroyed.
                    unsafe { layout.order(name, argument, handle(first), handle(stream))? };
                }
            }
            // SAFETY: the caller passes a stream that was not destroyed, and keeps the buffers
            // until the stream has done the work, as the documentation requires. All instances lie
            // inside `user` and the range inside `packed`, and the two do not overlap.
            unsafe { layout.submit(name, &transfer, handle(stream)) }
        });
        submitted.map(|()| moved).map_err(to_python_error)
    }

    /// Returns the range of the packed stream that a call moves. `len` is the number of bytes of
    /// the buffer that holds packed bytes.
    fn range(&self, call: &Call<'_, '_>, packed: Use, len: u64) -> PyResult<Range<u64>> {
        let layout = self.open(call.name)?;
        let (name, count) = (call.name, call.count);
        let total = layout.committed().packed_size(count).map_err(to_python_error)?;
        let Some(offset) = call.offset else {
            if len < total {
                let rule = format!("must have the {total} packed bytes of {count} instances");
                return Err(packed.refused(format_args!("{len} bytes"), &rule));
            }
            return Ok(0..total);
        };
        if offset > total {
            return Err(Error::new_err(format!(
                "{name}: offset = {offset}: must be from 0 to the {total} packed bytes of {count} instances"
            )));
        }
        Ok(offset..offset + len.min(total - offset))
    }

    /// Checks that all bytes of the instances lie inside a buffer of `len` bytes.
    fn check_user(&self, call: &Call<'_, '_>, user: Use, len: u64) -> PyResult<()> {
        let (t, origin, count) = (&self.datatype.0, call.origin, call.count);
        let last = (i128::from(count) - 1) * i128::from(t.extent());
        let low = i128::from(t.true_lb()) + last.min(0) + i128::from(origin);
        let high = i128::from(t.true_ub()) + last.max(0) + i128::from(origin);
        if low < 0 {
            return Err(Error::new_err(format!(
                "{}: origin = {origin}: must be larger by at least {}, because {count} instances would begin \
                 before `user`",
                call.name, -low
            )));
        }
        if high > i128::from(len) {
            let rule = format!("must have at least {high} bytes, because {count} instances end there");
            return Err(user.refused(format_args!("{len} bytes"), &rule));
        }
        Ok(())
    }
}
