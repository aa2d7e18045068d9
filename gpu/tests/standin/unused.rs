//! Functions of the stand-in that ddtc does not call. Only tests and the benchmark program `judge`
//! call them. Tests can make calls of `cuMemcpy2DAsync_v2` fail, but not calls of the other
//! functions of this file.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};

use super::*;

fn allocate(kind: Kind, place: *mut u64, bytes: usize) -> c_int {
    free_call(|state| {
        let context = current(state)?;
        let at = state.allocate(kind, context, bytes);
        // SAFETY: the caller does what cuda.h requires.
        unsafe { set(place, at) }
    })
}

/// Allocates `bytes` bytes of device memory, and copies as many bytes from host memory to it. The
/// memory belongs to the test, which never frees it.
#[unsafe(no_mangle)]
unsafe extern "C" fn standin_memory(address: *mut u64, from: *const c_void, bytes: usize) -> c_int {
    free_call(|state| {
        let context = current(state)?;
        let at = state.allocate(Kind::Device, context, bytes);
        state.allocations.get_mut(&at).expect("the allocation").is_of_test = true;
        // SAFETY: the caller passes the address of at least `bytes` bytes of host memory.
        unsafe { upload(state, at, from, bytes) }?;
        // SAFETY: the caller does what cuda.h requires.
        unsafe { set(address, at) }
    })
}

/// Copies `bytes` bytes from host memory to device memory. The bytes have arrived when the call
/// returns.
#[unsafe(no_mangle)]
unsafe extern "C" fn standin_upload(to: u64, from: *const c_void, bytes: usize) -> c_int {
    free_call(|state| {
        state.work_all()?;
        // SAFETY: the caller passes the address of at least `bytes` bytes of host memory.
        unsafe { upload(state, to, from, bytes) }
    })
}

/// Allocates device memory from a memory pool. Such memory belongs to no context.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAllocAsync(address: *mut u64, bytes: usize, _stream: Opaque) -> c_int {
    allocate(Kind::Pool, address, bytes)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAllocManaged(address: *mut u64, bytes: usize, _flags: c_uint) -> c_int {
    allocate(Kind::Managed, address, bytes)
}

/// Allocates pinned host memory, and returns its host address. In the stand-in, the device address
/// of the memory differs from its host address.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemHostAlloc(address: *mut Opaque, bytes: usize, _flags: c_uint) -> c_int {
    free_call(|state| {
        let context = current(state)?;
        let at = state.allocate(Kind::Pinned, context, bytes);
        let host = state.allocations[&at].host;
        // SAFETY: the caller does what cuda.h requires.
        unsafe { set(address, opaque(host)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemHostGetDevicePointer_v2(address: *mut u64, host: Opaque, _flags: c_uint) -> c_int {
    free_call(|state| {
        let (at, _) = state.find(number(host)).ok_or(INVALID_VALUE)?;
        // SAFETY: the caller does what cuda.h requires.
        unsafe { set(address, at) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemFreeHost(host: Opaque) -> c_int {
    free_call(|state| {
        state.work_all()?;
        let (at, allocation) = state.find(number(host)).ok_or(INVALID_VALUE)?;
        state.free(Kind::Pinned, allocation.context, at)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) -> c_int {
    free_call(|state| {
        state.work_all()?;
        let from = state.memory.bytes(from, bytes as u64).map_err(|_| INVALID_VALUE)?;
        // SAFETY: the caller does what cuda.h requires.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.cast(), bytes) };
        Ok(())
    })
}

/// Fills device memory with a value. As after `cuMemcpyHtoD_v2`, launching a kernel is a fault
/// until a later call has waited.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemsetD8_v2(to: u64, value: u8, bytes: usize) -> c_int {
    free_call(|state| {
        state.work_all()?;
        state.arriving = true;
        if state.is_idle {
            return allocated(state, to, bytes);
        }
        state.memory.bytes_mut(to, bytes as u64).map_err(|_| INVALID_VALUE)?.fill(value);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxCreate_v2(context: *mut Opaque, _flags: c_uint, device: c_int) -> c_int {
    free_call(|state| {
        let id = state.create_context(device);
        push(id);
        // SAFETY: the caller does what cuda.h requires.
        unsafe { set(context, opaque(id)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxReset_v2(device: c_int) -> c_int {
    free_call(|state| {
        let context = state.primaries.get(device as usize).ok_or(INVALID_DEVICE)?.0;
        state.destroy(context);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreate(stream: *mut Opaque, _flags: c_uint) -> c_int {
    free_call(|state| {
        let context = current(state)?;
        let id = state.create_stream(context);
        // SAFETY: the caller does what cuda.h requires.
        unsafe { set(stream, opaque(id)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamBeginCapture_v2(stream: Opaque, _mode: c_uint) -> c_int {
    free_call(|state| {
        state.streams.get_mut(&number(stream)).ok_or(INVALID_HANDLE)?.capture = Some(number(stream));
        Ok(())
    })
}

/// Ends the capture of the stream `stream`. The stand-in has no graphs. The captured work stays
/// with the stream, and the handle of the stream serves as the handle of the graph.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamEndCapture(stream: Opaque, graph: *mut Opaque) -> c_int {
    // SAFETY: the caller does what cuda.h requires.
    unsafe { graph.write(stream) };
    // SAFETY: any number may be passed as a stream.
    unsafe { standin_end_capture(stream) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphInstantiateWithFlags(
    executable: *mut Opaque,
    graph: Opaque,
    _flags: u64,
) -> c_int {
    // SAFETY: the caller does what cuda.h requires.
    unsafe { executable.write(graph) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphLaunch(executable: Opaque, _stream: Opaque) -> c_int {
    // SAFETY: any number may be passed as a stream.
    unsafe { standin_replay(executable) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphExecDestroy(executable: Opaque) -> c_int {
    free_call(|state| {
        state.streams.get_mut(&number(executable)).ok_or(INVALID_HANDLE)?.captured.clear();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphDestroy(_graph: Opaque) -> c_int {
    0
}

/// Stores one millisecond as the time between any two events, since the stand-in measures no time.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventElapsedTime(milliseconds: *mut f32, _from: Opaque, _to: Opaque) -> c_int {
    // SAFETY: the caller does what cuda.h requires.
    unsafe { milliseconds.write(1.0) };
    0
}

/// Stores the value of the environment variable `STANDIN_NAME` as the name of the device, or
/// "a stand-in" if the variable is not set.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, len: c_int, _device: c_int) -> c_int {
    let set = std::env::var("STANDIN_NAME").unwrap_or_else(|_| "a stand-in".to_owned());
    let text = CString::new(set).expect("a name without NUL");
    if len < text.count_bytes() as c_int + 1 {
        return INVALID_VALUE;
    }
    // SAFETY: cuda.h requires that `name` has room for `len` bytes.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), name, text.count_bytes() + 1) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    // SAFETY: the caller does what cuda.h requires.
    unsafe { version.write(12040) };
    0
}

/// The structure `CUDA_MEMCPY2D` of cuda.h, which describes a copy of `height` rows of `width`
/// bytes. The seven fields of the source, and those of the destination, are combined into arrays.
#[repr(C)]
struct Copy2d {
    from: [u64; 7],
    to: [u64; 7],
    width: u64,
    height: u64,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpy2DAsync_v2(copy: *const Copy2d, stream: Opaque) -> c_int {
    // SAFETY: the caller does what cuda.h requires.
    let Copy2d { from, to, width, height } = unsafe { copy.read() };
    // The source and the destination have seven fields each: the offset in a row, the number of the
    // first row, the kind of memory, the host address, the device address, an array, and the
    // distance between rows (the pitch). The stand-in supports only device memory, which has the
    // kind 2.
    let place = |[x, y, kind, _, device, _, pitch]: [u64; 7]| {
        (kind as u32 == 2).then_some((device + y * pitch + x, pitch))
    };
    call("cuMemcpy2DAsync_v2", |state| {
        let (Some((from, from_pitch)), Some((to, to_pitch))) = (place(from), place(to)) else {
            return Err(state.fault("a 2-D copy of host memory", INVALID_VALUE));
        };
        let rows = if state.is_idle { height.min(1) } else { height };
        (0..rows).try_for_each(|row| {
            let (to, from) = (to + row * to_pitch, from + row * from_pitch);
            submit(state, stream, Work::Copy { to, from, bytes: width })
        })
    })
}

/// Ends the capture that began on the stream `stream`, for all streams that take part in it. The
/// captured work is kept, and each later call of `standin_replay` submits it.
#[unsafe(no_mangle)]
unsafe extern "C" fn standin_end_capture(stream: Opaque) -> c_int {
    free_call(|state| {
        let ended = capture_of(state, number(stream)).ok_or(INVALID_HANDLE)?;
        state.streams.values_mut().filter(|s| s.capture == Some(ended)).for_each(|s| s.capture = None);
        Ok(())
    })
}

/// Submits the work that was captured on the stream `stream`, as the launch of a graph would do.
#[unsafe(no_mangle)]
unsafe extern "C" fn standin_replay(stream: Opaque) -> c_int {
    free_call(|state| {
        let stream = state.streams.get(&number(stream)).ok_or(INVALID_HANDLE)?;
        let again: Vec<_> = stream.captured.iter().map(|work| (stream.context, work.clone())).collect();
        state.pending.extend(again);
        Ok(())
    })
}

/// Makes one later call of a driver function fail with the error code `code`. The call that fails
/// is the one after the next `n` calls, so that 0 means the next call. A negative `n` cancels an
/// earlier request. Calls that `standin_calls` does not count are not counted here either.
#[unsafe(no_mangle)]
unsafe extern "C" fn standin_fail(n: i64, code: c_int) -> c_int {
    free_call(|state| {
        state.fail = (n >= 0).then(|| (state.calls + n as u64, code));
        Ok(())
    })
}

/// Returns the number of calls of driver functions so far. Functions that only tests and the
/// benchmark program `judge` call are not counted, with the exception of `cuMemcpy2DAsync_v2`.
#[unsafe(no_mangle)]
unsafe extern "C" fn standin_calls() -> u64 {
    let mut calls = 0;
    free_call(|state| {
        calls = state.calls;
        Ok(())
    });
    calls
}

/// Returns the number of resources that the program holds: loaded modules, events that were not
/// destroyed, references to primary contexts, and allocations of `cuMemAlloc_v2` that were not
/// freed.
#[unsafe(no_mangle)]
unsafe extern "C" fn standin_held() -> u64 {
    let mut held = 0;
    free_call(|state| {
        let retained: u64 = state.primaries.iter().map(|p| p.1).sum();
        let allocated =
            state.allocations.values().filter(|a| a.kind == Kind::Device && !a.is_of_test).count();
        held = (state.modules.len() + state.events.len() + allocated) as u64 + retained;
        Ok(())
    });
    held
}

/// Returns the number of times that the stream `then` was made to wait for the stream `first` by an
/// event.
#[unsafe(no_mangle)]
unsafe extern "C" fn standin_ordered(first: Opaque, then: Opaque) -> u64 {
    let mut found = 0;
    free_call(|state| {
        let wanted = (number(first), number(then));
        found = state.orders.iter().filter(|&&order| order == wanted).count() as u64;
        Ok(())
    });
    found
}

/// Returns the name of the driver function whose call failed last because of [`standin_fail`].
/// Returns null if no call has failed for this reason since the last call of `standin_failed_call`.
#[unsafe(no_mangle)]
unsafe extern "C" fn standin_failed_call() -> *const c_char {
    let mut name = std::ptr::null();
    free_call(|state| {
        name = state.failed.take().map_or(std::ptr::null(), |name| name.into_raw().cast_const());
        Ok(())
    });
    name
}

/// Frees all resources that [`standin_held`] counts. A test calls this function after it has used
/// [`standin_fail`] on calls that should have freed these resources.
#[unsafe(no_mangle)]
unsafe extern "C" fn standin_forget() -> c_int {
    free_call(|state| {
        state.modules.clear();
        state.events.clear();
        state.primaries.iter_mut().for_each(|p| p.1 = 0);
        state.allocations.retain(|_, a| a.kind != Kind::Device || a.is_of_test);
        Ok(())
    })
}

/// Does all pending work, prints the faults that have been found so far, and returns their number.
#[unsafe(no_mangle)]
unsafe extern "C" fn standin_faults() -> u64 {
    let mut number = 0;
    free_call(|state| {
        let _ = state.work_all();
        for fault in &state.faults {
            eprintln!("stand-in: {fault}");
        }
        number = state.faults.len() as u64;
        Ok(())
    });
    number
}
