//! Wrappers of those functions of NVIDIA's driver that the benchmark program `judge` calls
//! directly, without the library `ddtc_gpu`. They deal with memory, copies, streams, events, and
//! CUDA graphs.
#![allow(unsafe_code)] // Functions that `dlsym` finds can only be called in unsafe code.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::marker::PhantomData;

use ddtc::internal::kind::Direction;
use ddtc_gpu::driver::{Driver, Opaque};
use ddtc_gpu::kernel::{Kernel, THREADS};
use ddtc_gpu::strided::Shape;

/// The structure `CUDA_MEMCPY2D` of cuda.h, which describes a 2-D copy.
#[repr(C)]
struct Copy2d {
    from_x: usize,
    from_y: usize,
    from_kind: c_uint,
    from_host: *const c_void,
    from_device: u64,
    from_array: Opaque,
    from_pitch: usize,
    to_x: usize,
    to_y: usize,
    to_kind: c_uint,
    to_host: *mut c_void,
    to_device: u64,
    to_array: Opaque,
    to_pitch: usize,
    width: usize,
    height: usize,
}

/// The constant `CU_MEMORYTYPE_DEVICE` of cuda.h.
const DEVICE: c_uint = 2;

/// Arguments of a 2-D copy, which copies rows of bytes from device memory to device memory. The
/// memory cannot be freed while this value exists.
pub(crate) struct Rows<'m>(Copy2d, PhantomData<Place<'m>>);

impl<'m> Rows<'m> {
    /// Describes a copy of `rows` rows of `width` bytes from the place `from` to the place `to`. At
    /// `from`, the rows begin `pitch` bytes apart. At `to`, each row directly follows the row
    /// before it. There must be at least one row. Panics unless all rows lie in the memory of the
    /// places.
    pub(crate) fn new(to: Place<'m>, from: Place<'m>, (width, pitch, rows): (u64, u64, u64)) -> Rows<'m> {
        let none = std::ptr::null_mut::<c_void>();
        let copy = Copy2d {
            from_x: 0,
            from_y: 0,
            from_kind: DEVICE,
            from_host: none,
            from_device: from.address(pitch * (rows - 1) + width),
            from_array: none,
            from_pitch: pitch as usize,
            to_x: 0,
            to_y: 0,
            to_kind: DEVICE,
            to_host: none,
            to_device: to.address(width * rows),
            to_array: none,
            to_pitch: width as usize,
            width: width as usize,
            height: rows as usize,
        };
        Rows(copy, PhantomData)
    }
}

/// Declares the structure `Cuda`. For each listed function of the driver library, it has a pointer
/// to the function and a method that calls it. The method panics with the driver's error code if
/// the function fails.
macro_rules! functions {
    ($($name:ident = $symbol:literal ($($argument:ident: $type:ty),*);)*) => {
        /// Pointers to functions of the driver library. The functions are looked up once, by
        /// `Cuda::load`.
        pub(crate) struct Cuda {
            $($name: unsafe extern "C" fn($($type),*) -> c_int,)*
        }

        impl Cuda {
            /// Loads the driver library and looks up the functions in it. Returns a message if the
            /// library or one of the functions is missing.
            pub(crate) fn load() -> Result<Cuda, String> {
                // SAFETY: the name is a C string. It is the name of NVIDIA's driver library.
                let scope = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
                if scope.is_null() {
                    return Err("there is no libcuda.so.1".to_owned());
                }
                Ok(Cuda {
                    $($name: {
                        // SAFETY: the handle is that of a loaded library, and the name a C string.
                        let symbol = unsafe { libc::dlsym(scope, $symbol.as_ptr()) };
                        if symbol.is_null() {
                            return Err(format!("{:?} is missing: the driver is too old", $symbol));
                        }
                        // SAFETY: `symbol` is not null, so it is the address of the function of
                        // this name, which has the type that cuda.h declares.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> c_int>(symbol)
                        }
                    },)*
                })
            }

            $(
                /// Calls the function of the driver library for which this method is declared.
                /// Panics with the driver's error code if the function fails.
                ///
                /// # Safety
                /// The caller must do what cuda.h requires of a caller of this function of the
                /// driver.
                unsafe fn $name(&self, $($argument: $type),*) {
                    // SAFETY: as the caller promises.
                    let code = unsafe { (self.$name)($($argument),*) };
                    assert!(code == 0, "{:?} returns {code}", $symbol);
                }
            )*
        }
    };
}

functions! {
    cu_name = c"cuDeviceGetName"(name: *mut c_char, len: c_int, device: c_int);
    cu_version = c"cuDriverGetVersion"(version: *mut c_int);
    cu_retain = c"cuDevicePrimaryCtxRetain"(context: *mut Opaque, device: c_int);
    cu_push = c"cuCtxPushCurrent_v2"(context: Opaque);
    cu_alloc = c"cuMemAlloc_v2"(address: *mut u64, bytes: usize);
    cu_pin = c"cuMemHostAlloc"(address: *mut *mut c_void, bytes: usize, flags: c_uint);
    cu_pinned_address = c"cuMemHostGetDevicePointer_v2"(address: *mut u64, host: *mut c_void, flags: c_uint);
    cu_unpin = c"cuMemFreeHost"(host: *mut c_void);
    cu_free = c"cuMemFree_v2"(address: u64);
    cu_fill = c"cuMemsetD8_v2"(address: u64, value: u8, bytes: usize);
    cu_finish = c"cuCtxSynchronize"();
    cu_up = c"cuMemcpyHtoD_v2"(to: u64, from: *const c_void, bytes: usize);
    cu_down = c"cuMemcpyDtoH_v2"(to: *mut c_void, from: u64, bytes: usize);
    cu_copy = c"cuMemcpyAsync"(to: u64, from: u64, bytes: usize, stream: Opaque);
    cu_copy_2d = c"cuMemcpy2DAsync_v2"(copy: *const Copy2d, stream: Opaque);
    cu_stream = c"cuStreamCreate"(stream: *mut Opaque, flags: c_uint);
    cu_wait = c"cuStreamSynchronize"(stream: Opaque);
    cu_begin = c"cuStreamBeginCapture_v2"(stream: Opaque, mode: c_uint);
    cu_end = c"cuStreamEndCapture"(stream: Opaque, graph: *mut Opaque);
    cu_make = c"cuGraphInstantiateWithFlags"(executable: *mut Opaque, graph: Opaque, flags: u64);
    cu_graph = c"cuGraphLaunch"(executable: Opaque, stream: Opaque);
    cu_drop_executable = c"cuGraphExecDestroy"(executable: Opaque);
    cu_drop_graph = c"cuGraphDestroy"(graph: Opaque);
    cu_event = c"cuEventCreate"(event: *mut Opaque, flags: c_uint);
    cu_record = c"cuEventRecord"(event: Opaque, stream: Opaque);
    cu_elapsed = c"cuEventElapsedTime"(milliseconds: *mut f32, from: Opaque, to: Opaque);
}

/// The null stream. A copy from host memory may return before the last bytes have arrived in device
/// memory, and the stream on which this program submits its work does not synchronize with the null
/// stream. So after such a copy, this program waits for the null stream.
const DEFAULT: Stream = Stream(std::ptr::null_mut());

/// A kernel that this program loads and launches itself, not by a layout of the library `ddtc_gpu`.
pub(crate) struct LoadedKernel {
    driver: Driver,
    kernel: Opaque,
}

impl LoadedKernel {
    /// Loads `kernel` into the current context. The kernel is never unloaded.
    pub(crate) fn load(kernel: Kernel) -> LoadedKernel {
        let text = CString::new(kernel.text).expect("text without NUL");
        let name = CString::new(kernel.name).expect("a name without NUL");
        let driver = Driver::load("judge").unwrap_or_else(|e| panic!("{e}"));
        let module =
            driver.load_module(&text).unwrap_or_else(|code| panic!("cuModuleLoadData returns {code}"));
        // SAFETY: the module was just loaded.
        let kernel = unsafe { driver.kernel(module, &name) };
        LoadedKernel {
            driver,
            kernel: kernel.unwrap_or_else(|code| panic!("cuModuleGetFunction returns {code}")),
        }
    }

    /// Submits a launch with `blocks` blocks of [`THREADS`] threads to a stream. `values` has the
    /// values of the kernel's parameters.
    ///
    /// # Safety
    /// `values` must have a value for each parameter of the kernel. With these values, the kernel
    /// may access only memory that stays valid until the stream has done the work.
    pub(crate) unsafe fn submit(&self, blocks: [u32; 3], values: &mut [u64], stream: Stream) {
        let mut parameters: Vec<*mut c_void> =
            values.iter_mut().map(|value| std::ptr::from_mut(value).cast()).collect();
        // SAFETY: the kernel is never unloaded, and streams are never destroyed. Each parameter of
        // the kernel has 4 or 8 bytes, which are the first bytes of its value in `values`. The
        // caller promises the rest.
        let done = unsafe { self.driver.launch(self.kernel, blocks, THREADS, stream.0, &mut parameters) };
        done.unwrap_or_else(|code| panic!("cuLaunchKernel returns {code}"));
    }
}

/// A kernel that copies contiguous bytes in words of 16 bytes. It is a kernel `strided` with a
/// single loop: a loop over words without gaps between them. Its threads need no division to
/// compute offsets.
pub(crate) struct CopyKernel(LoadedKernel);

impl CopyKernel {
    /// Loads the copy kernel into the current context. The kernel is never unloaded.
    pub(crate) fn load() -> CopyKernel {
        let shape = Shape { width: 16, divisions: 0, wide: false };
        CopyKernel(LoadedKernel::load(shape.kernel(Direction::Pack)))
    }

    /// Submits a launch that copies `bytes` bytes, rounded up to a multiple of 16, from the
    /// beginning of the memory `from` to the beginning of the memory `to`. Panics unless both have
    /// this number of bytes.
    pub(crate) fn submit(&self, to: &Memory<'_>, from: &Memory<'_>, bytes: u64, stream: Stream) {
        let words = bytes.div_ceil(16);
        let [to, from] = [to, from].map(|memory| memory.place(0).address(16 * words));
        // Values of the kernel's parameters, in this order: the address in user memory (here the
        // source), the address of the packed bytes (here the destination), the index of the first
        // word, the number of words, and the stride in bytes.
        let mut values = [from, to, 0, words, 16];
        // SAFETY: the kernel has these five parameters, and both memories have all words.
        unsafe { self.0.submit([(words as u32).div_ceil(THREADS), 1, 1], &mut values, stream) };
    }
}

/// A stream, which is never destroyed.
#[derive(Clone, Copy)]
pub(crate) struct Stream(Opaque);

impl Stream {
    /// Returns the driver's handle of the stream.
    pub(crate) fn handle(self) -> Opaque {
        self.0
    }
}

/// An allocation of device memory or of pinned host memory. Dropping this value waits for all work
/// and then frees the memory.
pub(crate) struct Memory<'c> {
    cuda: &'c Cuda,
    /// Device address of the memory, which kernels use.
    address: u64,
    /// Host address of the memory if it is pinned host memory, and null otherwise.
    host: *mut c_void,
    bytes: u64,
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated by `Cuda::allocate` or `Cuda::pinned`. Nothing uses it
        // any more: all work is done, and no stream is captured here.
        unsafe {
            self.cuda.cu_finish();
            match self.host.is_null() {
                true => self.cuda.cu_free(self.address),
                false => self.cuda.cu_unpin(self.host),
            }
        }
    }
}

/// A byte in an allocation, from which on a transfer reads or writes.
#[derive(Clone, Copy)]
pub(crate) struct Place<'m> {
    pub(crate) memory: &'m Memory<'m>,
    /// Offset of the byte from the beginning of the allocation.
    pub(crate) at: u64,
}

impl Place<'_> {
    /// Returns the device address of the place. Panics unless the allocation has `bytes` bytes from
    /// there on.
    pub(crate) fn address(self, bytes: u64) -> u64 {
        let left = self.memory.bytes.checked_sub(self.at);
        assert!(left.is_some_and(|left| bytes <= left), "the memory has all bytes");
        self.memory.address + self.at
    }
}

impl Memory<'_> {
    /// Returns the address that a program would pass to ddtc for this memory: the host address of
    /// pinned host memory, and the device address of device memory.
    pub(crate) fn known(&self) -> u64 {
        if self.host.is_null() { self.address } else { self.host.addr() as u64 }
    }

    /// Returns the device address of the memory.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Returns the number of bytes of the memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the place of the byte with the offset `at`.
    pub(crate) fn place(&self, at: u64) -> Place<'_> {
        Place { memory: self, at }
    }
}

impl Cuda {
    /// Retains the primary context of device 0 and makes it current in this thread. The context
    /// stays retained and current until the program ends.
    pub(crate) fn enter(&self) {
        let mut context = std::ptr::null_mut();
        // SAFETY: the result pointer is valid, and the context is never released.
        unsafe {
            self.cu_retain(&raw mut context, 0);
            self.cu_push(context);
        }
    }

    /// Returns the name of the GPU.
    pub(crate) fn name(&self) -> String {
        let mut name: [c_char; 100] = [0; 100];
        // SAFETY: the name has room for 100 bytes with the NUL that the driver writes.
        unsafe {
            self.cu_name(name.as_mut_ptr(), 100, 0);
            CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()
        }
    }

    /// Returns the version of CUDA that the driver supports, such as "13.0".
    pub(crate) fn version(&self) -> String {
        let mut version = 0;
        // SAFETY: the result pointer is valid.
        unsafe { self.cu_version(&raw mut version) };
        format!("{}.{}", version / 1000, version % 1000 / 10)
    }

    /// Allocates `bytes` bytes of device memory.
    fn allocate(&self, bytes: u64) -> Memory<'_> {
        let mut address = 0;
        // SAFETY: the result pointer is valid.
        unsafe { self.cu_alloc(&raw mut address, bytes as usize) };
        Memory { cuda: self, address, host: std::ptr::null_mut(), bytes }
    }

    /// Allocates device memory that is as long as `bytes`, and copies `bytes` to it.
    pub(crate) fn memory(&self, bytes: &[u8]) -> Memory<'_> {
        let memory = self.allocate(bytes.len() as u64);
        // SAFETY: the memory is as long as the bytes.
        unsafe { self.cu_up(memory.address, bytes.as_ptr().cast(), bytes.len()) };
        self.wait(DEFAULT);
        memory
    }

    /// Allocates `bytes` bytes of device memory, each of which gets the value `value`. No host
    /// memory is needed, however long the memory is.
    pub(crate) fn filled(&self, value: u8, bytes: u64) -> Memory<'_> {
        let memory = self.allocate(bytes);
        // SAFETY: the memory has this number of bytes.
        unsafe { self.cu_fill(memory.address, value, bytes as usize) };
        self.wait(DEFAULT);
        memory
    }

    /// Allocates `bytes` bytes of pinned host memory.
    pub(crate) fn pinned(&self, bytes: u64) -> Memory<'_> {
        let (mut host, mut address) = (std::ptr::null_mut(), 0);
        // SAFETY: the result pointers are valid, and the memory was just allocated.
        unsafe {
            self.cu_pin(&raw mut host, bytes as usize, 0);
            self.cu_pinned_address(&raw mut address, host, 0);
        }
        Memory { cuda: self, address, host, bytes }
    }

    /// Copies the first `n` bytes of `memory` to host memory, and returns them.
    pub(crate) fn bytes(&self, memory: &Memory<'_>, n: usize) -> Vec<u8> {
        let mut bytes = vec![0u8; n];
        let from = memory.place(0).address(n as u64);
        // SAFETY: the array and the memory have `n` bytes.
        unsafe { self.cu_down(bytes.as_mut_ptr().cast(), from, n) };
        bytes
    }

    /// Creates a stream that does not synchronize with the null stream, and returns this stream.
    pub(crate) fn stream(&self) -> Stream {
        let mut stream = std::ptr::null_mut();
        // SAFETY: the result pointer is valid. 1 is CU_STREAM_NON_BLOCKING.
        unsafe { self.cu_stream(&raw mut stream, 1) };
        Stream(stream)
    }

    /// Waits until all work that was submitted to the stream is done.
    pub(crate) fn wait(&self, stream: Stream) {
        // SAFETY: a `Stream` is a default stream, or was returned by the method `stream`.
        unsafe { self.cu_wait(stream.0) };
    }

    /// Submits a copy of `bytes` bytes from the place `from` to the place `to`. Panics unless the
    /// memory of both places has all bytes.
    pub(crate) fn copy(&self, to: Place<'_>, from: Place<'_>, bytes: u64, stream: Stream) {
        // SAFETY: the memory of both places has all bytes.
        unsafe { self.cu_copy(to.address(bytes), from.address(bytes), bytes as usize, stream.0) };
    }

    /// Makes a 2-D copy and waits until it is done. If the driver refuses the copy, returns the
    /// driver's error code.
    pub(crate) fn try_copy_2d(&self, rows: &Rows<'_>, stream: Stream) -> Result<(), c_int> {
        // SAFETY: the driver reads the structure before it returns. All rows lie in memory, which
        // cannot be freed while `rows` exists.
        let code = unsafe { (self.cu_copy_2d)(&raw const rows.0, stream.0) };
        self.wait(stream);
        if code == 0 { Ok(()) } else { Err(code) }
    }

    /// Submits a 2-D copy to a stream.
    pub(crate) fn copy_2d(&self, rows: &Rows<'_>, stream: Stream) {
        // SAFETY: the driver reads the structure before it returns. All rows lie in memory, which
        // is freed only after all work is done.
        unsafe { self.cu_copy_2d(&raw const rows.0, stream.0) };
    }

    /// Measures the time that the GPU takes for the work of one call of `submit`, in microseconds.
    /// Captures `chain` calls of `submit` as one CUDA graph, and replays this graph `repeats + 1`
    /// times. The first replay is discarded. The result is the median over the other replays,
    /// divided by `chain`.
    pub(crate) fn time(&self, stream: Stream, chain: u32, repeats: usize, submit: &dyn Fn()) -> f64 {
        let (mut graph, mut executable) = (std::ptr::null_mut(), std::ptr::null_mut());
        let stream = stream.0;
        let (mut begin, mut end) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: all pointers are valid. 2 is CU_STREAM_CAPTURE_MODE_RELAXED. The graph is
        // destroyed after the stream was waited for.
        unsafe {
            self.cu_event(&raw mut begin, 0);
            self.cu_event(&raw mut end, 0);
            self.cu_begin(stream, 2);
            (0..chain).for_each(|_| submit());
            self.cu_end(stream, &raw mut graph);
            self.cu_make(&raw mut executable, graph, 0);
            let mut times: Vec<f64> = (0..=repeats)
                .map(|_| {
                    self.cu_record(begin, stream);
                    self.cu_graph(executable, stream);
                    self.cu_record(end, stream);
                    self.cu_wait(stream);
                    let mut milliseconds = 0.0f32;
                    self.cu_elapsed(&raw mut milliseconds, begin, end);
                    f64::from(milliseconds) * 1000.0 / f64::from(chain)
                })
                .collect();
            self.cu_drop_executable(executable);
            self.cu_drop_graph(graph);
            times.remove(0);
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        }
    }
}
