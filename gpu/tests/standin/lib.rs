//! Stand-in for NVIDIA's driver library, which replaces `libcuda.so.1` in tests. It checks the
//! arguments and the order of the calls that ddtc makes, and runs kernels in an interpreter of PTX
//! on the CPU.
//!
//! The stand-in does submitted work as late as a real driver may: only when a call waits for this
//! work. Device addresses begin at 0x7f0000000000, where a process usually has no memory. So host
//! code that accesses device memory directly usually crashes.
//!
//! The stand-in records faults. A fault is a mistake of the caller that a real driver is not
//! required to survive. The caller must not, for example,
//!
//! * unload a module or free memory while work is pending,
//! * launch a kernel before copied bytes are known to have arrived in device memory,
//! * launch a kernel of an unloaded module,
//! * submit work to a stream of a context that is not current, or
//! * launch a kernel that the interpreter refuses.
//!
//! A copy between two host buffers is a fault too, because a real driver would make the caller
//! wait. The function `standin_faults` prints the faults and returns their number.
#![allow(clippy::missing_safety_doc)] // cuda.h says what a caller of each function must do.

#[path = "../interpreter/mod.rs"]
mod interpreter;
mod state;
mod unused;

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use state::{Kind, Outcome, State, Work, call, free_call, number, pop, push, top};

type Opaque = *mut c_void;

const INVALID_VALUE: c_int = 1;
const OUT_OF_MEMORY: c_int = 2;
const INVALID_DEVICE: c_int = 101;
const INVALID_CONTEXT: c_int = 201;
const INVALID_PTX: c_int = 218;
const INVALID_HANDLE: c_int = 400;
const NOT_FOUND: c_int = 500;
const CONTEXT_IS_DESTROYED: c_int = 709;
const CAPTURE_UNSUPPORTED: c_int = 900;
const CAPTURE_MERGE: c_int = 902;
const CAPTURE_ISOLATION: c_int = 905;
const CAPTURE_IMPLICIT: c_int = 906;

/// Maximum number of bytes in one allocation by `cuMemAlloc_v2`. A larger allocation fails as if
/// the device had too little memory, unless the stand-in is idle.
const DEVICE_MEMORY: usize = 1 << 24;

fn opaque(number: u64) -> Opaque {
    std::ptr::without_provenance_mut(number as usize)
}

/// Writes `value` to `place`, where the caller of a driver function expects a result. If `place` is
/// null, returns an error code instead.
///
/// # Safety
/// `place` must be null or a valid pointer.
unsafe fn set<T>(place: *mut T, value: T) -> Outcome {
    if place.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: `place` is not null, so it is a valid pointer, as the caller promises.
    unsafe { place.write(value) };
    Ok(())
}

/// Returns the number of the context that is current in this thread. Returns an error code if no
/// context is current, or if the current context was destroyed.
fn current(state: &State) -> Result<u64, c_int> {
    let context = top().ok_or(INVALID_CONTEXT)?;
    if state.contexts.get(&context).is_some_and(|c| c.alive) {
        Ok(context)
    } else {
        Err(CONTEXT_IS_DESTROYED)
    }
}

/// Returns the number of the context that the stream `stream` belongs to. This must be the current
/// context: work on a stream of another context is a fault. A default stream (handle 0, 1 or 2)
/// belongs to the current context.
fn context_of(state: &mut State, stream: Opaque) -> Result<u64, c_int> {
    let current = current(state)?;
    if number(stream) <= 2 {
        return Ok(current);
    }
    let context = state.streams.get(&number(stream)).ok_or(INVALID_HANDLE)?.context;
    if context != current {
        return Err(state.fault("work on a stream of another context", INVALID_HANDLE));
    }
    Ok(context)
}

fn submit(state: &mut State, stream: Opaque, work: Work) -> Outcome {
    let context = context_of(state, stream)?;
    if state.is_idle {
        return Ok(());
    }
    match capture_of(state, number(stream)) {
        Some(first) => state.streams.get_mut(&first).expect("a stream").captured.push(work),
        None => state.pending.push((context, work)),
    }
    Ok(())
}

/// Returns an error code unless the `bytes` bytes at `address` lie in one allocation.
fn allocated(state: &State, address: u64, bytes: usize) -> Outcome {
    let fits = |(at, a): (u64, &state::Allocation)| {
        state.find(address + bytes as u64 - 1).is_some_and(|(last, b)| std::ptr::eq(a, b) && last >= at)
    };
    if state.find(address).is_some_and(fits) { Ok(()) } else { Err(INVALID_VALUE) }
}

/// Copies `bytes` bytes from host memory to device memory. If the stand-in is idle, only checks
/// that there is memory for the bytes.
///
/// # Safety
/// `from` must point to at least `bytes` readable bytes.
unsafe fn upload(state: &mut State, to: u64, from: *const c_void, bytes: usize) -> Outcome {
    if state.is_idle {
        return allocated(state, to, bytes);
    }
    // SAFETY: as the caller promises.
    let from = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) };
    state.memory.bytes_mut(to, bytes as u64).map_err(|_| INVALID_VALUE)?.copy_from_slice(from);
    Ok(())
}

fn not_in_capture(state: &State) -> Outcome {
    let captures = state.streams.values().any(|s| s.capture.is_some());
    if captures { Err(CAPTURE_UNSUPPORTED) } else { Ok(()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuInit(flags: c_uint) -> c_int {
    call("cuInit", |state| {
        state.initialized = true;
        if flags == 0 { Ok(()) } else { Err(INVALID_VALUE) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int {
    call("cuDeviceGet", |state| {
        if !(0..state.primaries.len() as c_int).contains(&ordinal) {
            return Err(INVALID_DEVICE);
        }
        // SAFETY: the caller does what cuda.h requires.
        unsafe { set(device, ordinal) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut Opaque, device: c_int) -> c_int {
    call("cuDevicePrimaryCtxRetain", |state| {
        let primary = state.primary(device).ok_or(INVALID_DEVICE)?;
        // SAFETY: the caller does what cuda.h requires.
        unsafe { set(context, opaque(primary)) }?;
        state.primaries[device as usize].1 += 1;
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> c_int {
    call("cuDevicePrimaryCtxRelease_v2", |state| {
        let Some((_, retained)) = state.primaries.get_mut(device as usize) else {
            return Err(INVALID_DEVICE);
        };
        if *retained == 0 {
            return Err(state.fault("a context that is not retained is released", INVALID_CONTEXT));
        }
        *retained -= 1;
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetCurrent(context: *mut Opaque) -> c_int {
    // SAFETY: the caller does what cuda.h requires.
    call("cuCtxGetCurrent", |_| unsafe { set(context, opaque(top().unwrap_or(0))) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxPushCurrent_v2(context: Opaque) -> c_int {
    call("cuCtxPushCurrent_v2", |state| {
        let known = state.contexts.get(&number(context)).ok_or(INVALID_CONTEXT)?;
        if !known.alive {
            return Err(CONTEXT_IS_DESTROYED);
        }
        push(number(context));
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxPopCurrent_v2(context: *mut Opaque) -> c_int {
    call("cuCtxPopCurrent_v2", |_| {
        let popped = pop().ok_or(INVALID_CONTEXT)?;
        // SAFETY: the caller does what cuda.h requires.
        unsafe { set(context, opaque(popped)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxSynchronize() -> c_int {
    call("cuCtxSynchronize", |state| {
        let context = current(state)?;
        not_in_capture(state)?;
        state.work(context)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadData(module: *mut Opaque, image: *const c_void) -> c_int {
    call("cuModuleLoadData", |state| {
        let context = current(state)?;
        not_in_capture(state)?;
        // SAFETY: cuda.h requires that an image with PTX text ends with NUL.
        let text = unsafe { CStr::from_ptr(image.cast::<c_char>()) }.to_str().map_err(|_| INVALID_PTX)?;
        let loaded = match interpreter::Module::parse(text) {
            Ok(loaded) => loaded,
            Err(why) => return Err(state.fault(&why, INVALID_PTX)),
        };
        let id = state.id();
        state.modules.insert(id, (context, loaded));
        // SAFETY: the caller does what cuda.h requires.
        unsafe { set(module, opaque(id)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(
    function: *mut Opaque,
    module: Opaque,
    name: *const c_char,
) -> c_int {
    call("cuModuleGetFunction", |state| {
        let (_, loaded) = state.modules.get(&number(module)).ok_or(INVALID_HANDLE)?;
        // SAFETY: the caller does what cuda.h requires.
        let name = unsafe { CStr::from_ptr(name) };
        if loaded.name().as_bytes() != name.to_bytes() {
            return Err(NOT_FOUND);
        }
        let id = state.id();
        state.functions.insert(id, number(module));
        // SAFETY: the caller does what cuda.h requires.
        unsafe { set(function, opaque(id)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleUnload(module: Opaque) -> c_int {
    call("cuModuleUnload", |state| {
        let context = current(state)?;
        let used = state.pending.iter().any(|(_, work)| work.module() == Some(number(module)));
        if used {
            return Err(state.fault("a module is unloaded with work pending", INVALID_HANDLE));
        }
        match state.modules.remove(&number(module)) {
            Some((of, _)) if of == context => Ok(()),
            _ => Err(state.fault("a module of another context, or none, is unloaded", INVALID_HANDLE)),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernel(
    function: Opaque,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: Opaque,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> c_int {
    call("cuLaunchKernel", |state| {
        let context = current(state)?;
        let module = state.functions.get(&number(function)).copied().ok_or(INVALID_HANDLE)?;
        let Some((of, loaded)) = state.modules.get(&module) else {
            return Err(state.fault("a kernel of an unloaded module is launched", INVALID_HANDLE));
        };
        if *of != context {
            return Err(state.fault("a kernel of another context is launched", INVALID_HANDLE));
        }
        let blocks = [grid_x, grid_y, grid_z];
        let fits = !blocks.contains(&0) && grid_y <= 65535 && grid_z <= 65535;
        let one = [block_y, block_z] == [1; 2];
        if !fits || !one || block_x == 0 || block_x > 1024 || shared != 0 || !extra.is_null() {
            return Err(state.fault("a grid of another form", INVALID_VALUE));
        }
        if state.arriving {
            return Err(state.fault("a kernel is launched before an upload has ended", INVALID_VALUE));
        }
        let values = loaded.parameters().iter().enumerate().map(|(i, &size)| {
            // SAFETY: cuda.h requires one pointer for each parameter of the kernel, to at least as
            // many bytes as the parameter has.
            unsafe { std::slice::from_raw_parts((*parameters.add(i)).cast::<u8>(), size as usize).to_vec() }
        });
        let parameters = values.collect();
        submit(state, stream, Work::Launch { module, blocks, threads: block_x, parameters })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> c_int {
    call("cuMemAlloc_v2", |state| {
        let context = current(state)?;
        not_in_capture(state)?;
        state.is_idle |= state.idles && bytes > DEVICE_MEMORY;
        match bytes {
            0 => Err(state.fault("an allocation without bytes", INVALID_VALUE)),
            _ if bytes > DEVICE_MEMORY && !state.is_idle => Err(OUT_OF_MEMORY),
            _ => {
                let at = state.allocate(Kind::Device, context, bytes);
                // SAFETY: the caller does what cuda.h requires.
                unsafe { set(address, at) }
            }
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemFree_v2(address: u64) -> c_int {
    call("cuMemFree_v2", |state| {
        let context = current(state)?;
        if state.pending.iter().any(|(of, _)| *of == context) {
            return Err(state.fault("memory is freed with work pending", INVALID_VALUE));
        }
        state.free(Kind::Device, context, address)
    })
}

/// Copies bytes from host memory to device memory. As with a real driver, the caller cannot rely on
/// the bytes having arrived when this call returns. Launching a kernel is a fault until a later
/// call has waited for a stream or for the context.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) -> c_int {
    call("cuMemcpyHtoD_v2", |state| {
        current(state)?;
        not_in_capture(state)?;
        state.work_all()?;
        state.arriving = true;
        // SAFETY: the caller does what cuda.h requires.
        unsafe { upload(state, to, from, bytes) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamSynchronize(stream: Opaque) -> c_int {
    call("cuStreamSynchronize", |state| {
        context_of(state, stream)?;
        state.work_all()
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: Opaque) -> c_int {
    call("cuMemcpyAsync", |state| {
        if state.is_pinned(to) && state.is_pinned(from) {
            return Err(state.fault("a copy between two host buffers", INVALID_VALUE));
        }
        submit(state, stream, Work::Copy { to, from, bytes: bytes as u64 })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamGetCtx(stream: Opaque, context: *mut Opaque) -> c_int {
    call("cuStreamGetCtx", |state| {
        let of = state.streams.get(&number(stream)).ok_or(INVALID_HANDLE)?.context;
        // SAFETY: the caller does what cuda.h requires.
        unsafe { set(context, opaque(of)) }
    })
}

/// Reports whether a stream is being captured, and the number of the capture. As with a real
/// driver, the number is only written if the stream is being captured. All streams of the stand-in
/// are taken to synchronize with the legacy default stream, so the call fails for that stream
/// during any capture. ddtc passes null for the other results.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamGetCaptureInfo_v2(
    stream: Opaque,
    status: *mut c_int,
    capture: *mut u64,
    graph: *mut Opaque,
    nodes: *mut *const Opaque,
    length: *mut usize,
) -> c_int {
    call("cuStreamGetCaptureInfo_v2", |state| {
        context_of(state, stream)?;
        if !graph.is_null() || !nodes.is_null() || !length.is_null() {
            return Err(state.fault("a question about the graph of a capture", INVALID_VALUE));
        }
        if number(stream) <= 1 && state.streams.values().any(|s| s.capture.is_some()) {
            return Err(CAPTURE_IMPLICIT);
        }
        let of = capture_of(state, number(stream));
        // SAFETY: the caller does what cuda.h requires.
        unsafe { set(status, c_int::from(of.is_some())) }?;
        // SAFETY: as above.
        of.map_or(Ok(()), |of| unsafe { set(capture, of) })
    })
}

/// Returns the number of the capture that the stream with the number `stream` takes part in, or
/// `None` if the stream is not being captured.
fn capture_of(state: &State, stream: u64) -> Option<u64> {
    state.streams.get(&stream)?.capture
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuPointerGetAttributes(
    n: c_uint,
    attributes: *const c_int,
    data: *mut *mut c_void,
    address: u64,
) -> c_int {
    call("cuPointerGetAttributes", |state| {
        let found = state.find(address);
        for i in 0..n as usize {
            // SAFETY: cuda.h requires that both arrays have `n` entries.
            let (attribute, place) = unsafe { (*attributes.add(i), *data.add(i)) };
            let kind = found.as_ref().map(|(_, a)| a.kind);
            let (value, bytes) = match attribute {
                1 => (found.as_ref().map_or(0, |(_, a)| a.context), 8),
                2 => (kind.map_or(0, |k| if k == Kind::Pinned { 1 } else { 2 }), 4),
                3 => (found.as_ref().map_or(0, |(at, _)| *at), 8),
                8 => (u64::from(kind == Some(Kind::Managed)), 4),
                9 => (found.as_ref().map_or(-2i32 as u32 as u64, |(_, a)| a.device as u64), 4),
                _ => return Err(INVALID_VALUE),
            };
            // SAFETY: cuda.h requires that `place` points to at least as many bytes as the
            // attribute has.
            unsafe { std::ptr::copy_nonoverlapping(value.to_le_bytes().as_ptr(), place.cast(), bytes) };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(code: c_int, text: *mut *const c_char) -> c_int {
    let known = if code == OUT_OF_MEMORY { c"out of memory" } else { c"an error of the stand-in" };
    // SAFETY: the caller does what cuda.h requires.
    unsafe { text.write(known.as_ptr()) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventCreate(event: *mut Opaque, _flags: c_uint) -> c_int {
    call("cuEventCreate", |state| {
        let id = state.id();
        state.events.insert(id, None);
        // SAFETY: the caller does what cuda.h requires.
        unsafe { set(event, opaque(id)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventRecord(event: Opaque, stream: Opaque) -> c_int {
    call("cuEventRecord", |state| {
        context_of(state, stream)?;
        *state.events.get_mut(&number(event)).ok_or(INVALID_HANDLE)? = Some(number(stream));
        Ok(())
    })
}

/// Makes a stream wait for the stream on which an event was recorded. As with a real driver, a
/// stream that is not being captured joins the capture of the stream for which it waits. A wait of
/// a captured stream for a stream outside of its capture is a fault, because with a real driver it
/// makes captures invalid.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamWaitEvent(stream: Opaque, event: Opaque, flags: c_uint) -> c_int {
    call("cuStreamWaitEvent", |state| {
        context_of(state, stream)?;
        let recorded = state.events.get(&number(event)).copied().ok_or(INVALID_HANDLE)?;
        let Some(first) = recorded.filter(|_| flags == 0) else {
            return Err(state.fault("a wait for an event that was not recorded", INVALID_VALUE));
        };
        let then = number(stream);
        match (capture_of(state, first), capture_of(state, then)) {
            (None, Some(_)) => {
                return Err(state.fault("a capture waits for other work", CAPTURE_ISOLATION));
            }
            (Some(capture), Some(other)) if capture != other => {
                return Err(state.fault("a wait merges two captures", CAPTURE_MERGE));
            }
            (Some(capture), None) => {
                state.streams.get_mut(&then).ok_or(CAPTURE_IMPLICIT)?.capture = Some(capture);
            }
            _ => {}
        }
        state.orders.push((first, then));
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventDestroy_v2(event: Opaque) -> c_int {
    call("cuEventDestroy_v2", |state| {
        state.events.remove(&number(event)).map(drop).ok_or(INVALID_HANDLE)
    })
}
