//! Wrappers of those functions of NVIDIA's driver library, `libcuda.so.1`, that ddtc calls to pack
//! and unpack in device memory.
//!
//! The driver library is loaded when a layout is opened, not when a program starts. It is never
//! unloaded.
//!
//! Some functions of the driver exist in several versions, and each version has its own name in the
//! library, such as `cuCtxPushCurrent_v2`. (`cuda.h` maps the plain name, `cuCtxPushCurrent`, to
//! one of them.) ddtc looks up each function by the name of one version. So ddtc also works with a
//! newer driver that has further versions of a function.
#![allow(unsafe_code)] // Functions that `dlsym` finds can only be called in unsafe code.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;

/// Handle of a context, module, function or stream of the driver. ddtc never dereferences this
/// pointer.
pub type Opaque = *mut c_void;

/// Handle of the legacy default stream (`CU_STREAM_LEGACY` in cuda.h).
const LEGACY_STREAM: Opaque = std::ptr::without_provenance_mut(1);

/// Result code `CUDA_SUCCESS` of the driver (cuda.h): the call succeeded.
const SUCCESS: c_int = 0;

/// `CU_STREAM_CAPTURE_STATUS_NONE` in cuda.h: a stream is not being captured.
const CAPTURE_STATUS_NONE: c_int = 0;

/// `CU_EVENT_DISABLE_TIMING` in cuda.h. An event with this flag records no time. It only orders
/// work.
const EVENT_DISABLE_TIMING: c_uint = 2;

/// Error codes of the driver (`CUresult` in cuda.h) that ddtc treats differently from all others.
pub mod code {
    use std::ffi::c_int;

    /// `CUDA_ERROR_OUT_OF_MEMORY`.
    pub const OUT_OF_MEMORY: c_int = 2;
    /// `CUDA_ERROR_NO_DEVICE`.
    pub const NO_DEVICE: c_int = 100;
    /// `CUDA_ERROR_INVALID_DEVICE`.
    pub const INVALID_DEVICE: c_int = 101;
    /// Error codes that the driver returns if it refuses the text of a kernel:
    /// `CUDA_ERROR_INVALID_IMAGE`, `CUDA_ERROR_NO_BINARY_FOR_GPU`, `CUDA_ERROR_INVALID_PTX`,
    /// `CUDA_ERROR_JIT_COMPILER_NOT_FOUND`, `CUDA_ERROR_UNSUPPORTED_PTX_VERSION`,
    /// `CUDA_ERROR_JIT_COMPILATION_DISABLED`.
    pub const REFUSED: [c_int; 6] = [200, 209, 218, 221, 222, 223];
    /// Error codes that concern the capture of a stream: all codes from
    /// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` to `CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD`.
    pub const CAPTURE: std::ops::RangeInclusive<c_int> = 900..=908;
}

/// Attributes (`CUpointer_attribute` in cuda.h) that ddtc asks the driver for, to learn about the
/// memory at an address:
///
/// * 1: the context that the memory belongs to,
/// * 2: the kind of the memory,
/// * 3: the address by which a kernel reaches the memory,
/// * 8: whether the memory is managed memory, and
/// * 9: the number of the device that the memory belongs to.
const ATTRIBUTES: [c_int; 5] = [1, 2, 3, 8, 9];

/// Properties of the memory at an address, as the driver reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Handle of the context that the memory belongs to, or 0 if the memory belongs to no context.
    pub context: u64,
    /// Kind of the memory, such as host memory or device memory.
    pub kind: MemoryKind,
    /// Device address of the memory, which kernels use. For pinned host memory, it may differ from
    /// the host address.
    pub device_address: u64,
    /// Whether the memory is managed memory, which the driver moves between host and device.
    pub is_managed: bool,
    /// Number of the device that the memory belongs to.
    pub device: c_int,
}

/// Kind of the memory that an address belongs to (`CUmemorytype` in cuda.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// Pinned host memory.
    Host,
    /// Device memory.
    Device,
    /// Memory of another kind, or memory that the driver does not know, such as pageable host
    /// memory.
    Unknown,
}

/// Declares the structure `Functions` and its constructor `Functions::find`. `Functions` has a
/// pointer to each function of the driver library that ddtc calls.
macro_rules! functions {
    ($($(#[$attribute:meta])* $field:ident = $name:literal: fn($($argument:ty),*);)*) => {
        /// Pointers to the functions of the driver that ddtc calls.
        #[derive(Clone, Copy)]
        struct Functions {
            $($(#[$attribute])* $field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Functions {
            /// Looks up all functions in the library with the handle `scope`. If the library lacks
            /// a function, returns the name of the missing function as the error.
            ///
            /// # Safety
            /// `scope` must be the handle of a loaded library. Each function of the library that
            /// has one of the names in this macro must have the type that cuda.h declares for the
            /// name.
            unsafe fn find(scope: *mut c_void) -> std::result::Result<Functions, &'static CStr> {
                Ok(Functions {
                    $($field: {
                        // SAFETY: `scope` is a handle from `dlopen`, and the name is a C string.
                        let symbol = unsafe { libc::dlsym(scope, $name.as_ptr()) };
                        if symbol.is_null() {
                            return Err($name);
                        }
                        // SAFETY: `symbol` is not null, so it is the address of the function of
                        // this name. The caller promises that the function has the type that cuda.h
                        // declares, and the field has the same type.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> c_int>(symbol)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    init = c"cuInit": fn(c_uint);
    device_get = c"cuDeviceGet": fn(*mut c_int, c_int);
    primary_retain = c"cuDevicePrimaryCtxRetain": fn(*mut Opaque, c_int);
    primary_release = c"cuDevicePrimaryCtxRelease_v2": fn(c_int);
    context_current = c"cuCtxGetCurrent": fn(*mut Opaque);
    context_push = c"cuCtxPushCurrent_v2": fn(Opaque);
    context_pop = c"cuCtxPopCurrent_v2": fn(*mut Opaque);
    context_synchronize = c"cuCtxSynchronize": fn();
    module_load = c"cuModuleLoadData": fn(*mut Opaque, *const c_void);
    module_function = c"cuModuleGetFunction": fn(*mut Opaque, Opaque, *const c_char);
    module_unload = c"cuModuleUnload": fn(Opaque);
    memory_allocate = c"cuMemAlloc_v2": fn(*mut u64, usize);
    memory_free = c"cuMemFree_v2": fn(u64);
    memory_upload = c"cuMemcpyHtoD_v2": fn(u64, *const c_void, usize);
    stream_synchronize = c"cuStreamSynchronize": fn(Opaque);
    launch = c"cuLaunchKernel": fn(Opaque, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Opaque, *mut *mut c_void, *mut *mut c_void);
    copy = c"cuMemcpyAsync": fn(u64, u64, usize, Opaque);
    stream_context = c"cuStreamGetCtx": fn(Opaque, *mut Opaque);
    stream_capture = c"cuStreamGetCaptureInfo_v2": fn(Opaque, *mut c_int, *mut u64, *mut Opaque, *mut *const Opaque, *mut usize);
    stream_wait = c"cuStreamWaitEvent": fn(Opaque, Opaque, c_uint);
    event_create = c"cuEventCreate": fn(*mut Opaque, c_uint);
    event_record = c"cuEventRecord": fn(Opaque, Opaque);
    event_destroy = c"cuEventDestroy_v2": fn(Opaque);
    pointer_attributes = c"cuPointerGetAttributes": fn(c_uint, *const c_int, *mut *mut c_void, u64);
    error_text = c"cuGetErrorString": fn(c_int, *mut *const c_char);
}

/// The driver library, after it was loaded and initialized.
#[derive(Clone, Copy)]
pub struct Driver(Functions);

/// Result of a call of the driver. The error is the driver's error code.
pub type Outcome<T = ()> = std::result::Result<T, c_int>;

fn outcome(code: c_int) -> Outcome {
    if code == SUCCESS { Ok(()) } else { Err(code) }
}

fn unsupported(operation: &'static str, value: &str, rule: &'static str) -> Error {
    Error::new(ErrorClass::Unsupported, operation, "driver", value, rule)
}

impl Driver {
    /// Loads `libcuda.so.1`, NVIDIA's driver library, and initializes it. Errors name `operation`
    /// as the call that failed.
    ///
    /// # Errors
    /// The class of the error is `NoMem` if the driver has too little memory to initialize itself.
    /// The class is `Unsupported` if there is no such library, if the library lacks a function, or
    /// if its initialization fails for another reason, for example because the driver finds no
    /// device.
    pub fn load(operation: &'static str) -> Result<Driver> {
        // SAFETY: libcuda.so.1 is the name of NVIDIA's driver library, and of no other library.
        unsafe { Driver::load_from(operation, c"libcuda.so.1") }
    }

    /// Loads the library `name` in place of `libcuda.so.1`, and initializes it. Errors name
    /// `operation` as the call that failed.
    ///
    /// # Safety
    /// If a library of this name exists, its functions must have the types that cuda.h declares.
    ///
    /// # Errors
    /// The errors are those of [`Driver::load`].
    pub unsafe fn load_from(operation: &'static str, name: &CStr) -> Result<Driver> {
        // SAFETY: `name` is a C string. The constructors of the library run, as they do in every
        // program that uses CUDA.
        let scope = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if scope.is_null() {
            let rule = "must be installed, as NVIDIA's driver library, to pack in device memory";
            return Err(unsupported(operation, &name.to_string_lossy(), rule));
        }
        // SAFETY: the handle was returned by `dlopen`; the types are those of cuda.h, as the caller
        // promises.
        let driver = match unsafe { Functions::find(scope) } {
            Ok(functions) => Driver(functions),
            Err(missing) => {
                let rule = "must be a function of the driver library: the driver is too old";
                return Err(unsupported(operation, &missing.to_string_lossy(), rule));
            }
        };
        // SAFETY: cuda.h requires only that the flags, which are the argument, are 0.
        match outcome(unsafe { (driver.0.init)(0) }) {
            Ok(()) => Ok(driver),
            // The initialization failed for a reason other than a lack of memory. For example, the
            // library may not fit NVIDIA's kernel module, which the operating system has loaded.
            // Whatever the reason is, ddtc cannot open layouts in this process, so the caller needs
            // another way to pack in device memory. This is why the class of the error is
            // `Unsupported` for every code except `OUT_OF_MEMORY`.
            Err(code) if code != code::OUT_OF_MEMORY => {
                Err(driver.error_of_class(ErrorClass::Unsupported, operation, "device", code))
            }
            Err(code) => Err(driver.error(operation, "device", code)),
        }
    }

    /// Converts the driver's error code `code` into an error of ddtc. `operation` names the failed
    /// call of ddtc, and `what` names the argument or the step of this call that the driver
    /// refused.
    pub fn error(&self, operation: &'static str, what: &'static str, code: c_int) -> Error {
        let class = match code {
            code::OUT_OF_MEMORY => ErrorClass::NoMem,
            code::INVALID_DEVICE => ErrorClass::Arg,
            _ if code == code::NO_DEVICE || code::REFUSED.contains(&code) => ErrorClass::Unsupported,
            _ => ErrorClass::Other,
        };
        self.error_of_class(class, operation, what, code)
    }

    /// Returns an error of the class `class` for the error code `code` of the driver. The error's
    /// message contains the driver's own description of the code.
    fn error_of_class(
        &self,
        class: ErrorClass,
        operation: &'static str,
        what: &'static str,
        code: c_int,
    ) -> Error {
        let mut text = std::ptr::null();
        // SAFETY: the result pointer is valid. The driver writes null to it, or the address of a
        // string that is never freed.
        let known = unsafe { (self.0.error_text)(code, &raw mut text) } == SUCCESS && !text.is_null();
        let text = match known {
            // SAFETY: the pointer is not null, so it points to a C string of the driver, which
            // lives as long as the library.
            true => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
            false => "an error without a text".to_owned(),
        };
        Error::new(class, operation, what, format!("CUDA error {code}"), format!("the driver says: {text}"))
    }

    /// Returns the driver's handle of the device with the number `number`.
    pub fn device(&self, number: c_int) -> Outcome<c_int> {
        let mut device = 0;
        // SAFETY: the result pointer is valid.
        outcome(unsafe { (self.0.device_get)(&raw mut device, number) })?;
        Ok(device)
    }

    /// Retains the primary context of a device, and returns the context. It stays retained until
    /// [`Driver::release_primary`] is called.
    pub fn retain_primary(&self, device: c_int) -> Outcome<Opaque> {
        let mut context = std::ptr::null_mut();
        // SAFETY: the result pointer is valid; any number may be passed as a device.
        outcome(unsafe { (self.0.primary_retain)(&raw mut context, device) })?;
        Ok(context)
    }

    /// Undoes one call of [`Driver::retain_primary`] for the device `device`. There must be a call
    /// of [`Driver::retain_primary`] for this device that was not undone yet.
    pub fn release_primary(&self, device: c_int) -> Outcome {
        // SAFETY: any number may be passed as a device.
        outcome(unsafe { (self.0.primary_release)(device) })
    }

    /// Returns the current context of this thread, or null if it has none.
    pub fn current(&self) -> Outcome<Opaque> {
        let mut context = std::ptr::null_mut();
        // SAFETY: the result pointer is valid.
        outcome(unsafe { (self.0.context_current)(&raw mut context) })?;
        Ok(context)
    }

    /// Makes `context` the current context of this thread. [`Driver::pop`] undoes this.
    ///
    /// # Safety
    /// `context` must be the handle of a context of the driver. The caller must have retained this
    /// context.
    pub unsafe fn push(&self, context: Opaque) -> Outcome {
        // SAFETY: as the caller promises.
        outcome(unsafe { (self.0.context_push)(context) })
    }

    /// Undoes the last call of [`Driver::push`] in this thread. The context that was current before
    /// that call becomes current again.
    pub fn pop(&self) -> Outcome {
        let mut context = std::ptr::null_mut();
        // SAFETY: the result pointer is valid.
        outcome(unsafe { (self.0.context_pop)(&raw mut context) })
    }

    /// Waits until the device has done all work that was submitted to the current context.
    pub fn synchronize(&self) -> Outcome {
        // SAFETY: the function has no arguments.
        outcome(unsafe { (self.0.context_synchronize)() })
    }

    /// Compiles the PTX text of a module, loads the compiled module into the current context, and
    /// returns its handle.
    pub fn load_module(&self, text: &CStr) -> Outcome<Opaque> {
        let mut module = std::ptr::null_mut();
        // SAFETY: the result pointer is valid, and the image is text that ends with NUL.
        outcome(unsafe { (self.0.module_load)(&raw mut module, text.as_ptr().cast()) })?;
        Ok(module)
    }

    /// Returns the handle of the kernel `name` in the module `module`.
    ///
    /// # Safety
    /// `module` must be the handle of a loaded module.
    pub unsafe fn kernel(&self, module: Opaque, name: &CStr) -> Outcome<Opaque> {
        let mut function = std::ptr::null_mut();
        // SAFETY: the result pointer is valid and the name a C string; the module is loaded, as the
        // caller promises.
        outcome(unsafe { (self.0.module_function)(&raw mut function, module, name.as_ptr()) })?;
        Ok(function)
    }

    /// Unloads the module `module` from the current context.
    ///
    /// # Safety
    /// `module` must be loaded. No kernel of the module may be running, and none may be launched
    /// after this call.
    pub unsafe fn unload(&self, module: Opaque) -> Outcome {
        // SAFETY: as the caller promises.
        outcome(unsafe { (self.0.module_unload)(module) })
    }

    /// Allocates `bytes` bytes of device memory in the current context, and returns their address.
    /// The number of bytes must not be 0.
    pub fn allocate(&self, bytes: usize) -> Outcome<u64> {
        let mut address = 0;
        // SAFETY: the result pointer is valid.
        outcome(unsafe { (self.0.memory_allocate)(&raw mut address, bytes) })?;
        Ok(address)
    }

    /// Frees the device memory at `address`.
    ///
    /// # Safety
    /// [`Driver::allocate`] must have returned `address`. The context that was current during that
    /// call must be current now. The memory must not have been freed, and nothing may use it any
    /// more.
    pub unsafe fn free(&self, address: u64) -> Outcome {
        // SAFETY: as the caller promises.
        outcome(unsafe { (self.0.memory_free)(address) })
    }

    /// Copies `words` from host memory to the device memory at `address`, and waits until the words
    /// have arrived. The copy runs on the legacy default stream. So the copy waits for earlier work
    /// of all streams that synchronize with the legacy default stream.
    ///
    /// # Safety
    /// `address` must be the address of device memory that belongs to the current context and has
    /// room for all of `words`.
    pub unsafe fn upload(&self, address: u64, words: &[u32]) -> Outcome {
        // SAFETY: `words` has `size_of_val(words)` bytes, and the device memory has room for them,
        // as the caller promises.
        outcome(unsafe { (self.0.memory_upload)(address, words.as_ptr().cast(), size_of_val(words)) })?;
        // A copy from pageable host memory may return before the last bytes have arrived in device
        // memory. Later work on a stream that does not synchronize with the default stream could
        // then read old bytes. So wait for the default stream.
        // SAFETY: `LEGACY_STREAM` is a handle of a default stream, which always exists.
        outcome(unsafe { (self.0.stream_synchronize)(LEGACY_STREAM) })
    }

    /// Submits a launch of `kernel` to `stream`. The grid has `x`, `y` and `z` blocks in its three
    /// dimensions, and each block has `threads` threads in one dimension.
    ///
    /// # Safety
    /// `kernel` must belong to a module that is loaded into the current context, and `stream` must
    /// be a stream of the same context. Each entry of `parameters` must point to the value of one
    /// parameter of the kernel. The kernel may access only memory that stays valid until the kernel
    /// has finished.
    pub unsafe fn launch(
        &self,
        kernel: Opaque,
        [x, y, z]: [u32; 3],
        threads: u32,
        stream: Opaque,
        parameters: &mut [*mut c_void],
    ) -> Outcome {
        let none = std::ptr::null_mut();
        // SAFETY: as the caller promises. The driver copies the parameters before it returns.
        outcome(unsafe {
            (self.0.launch)(kernel, x, y, z, threads, 1, 1, 0, stream, parameters.as_mut_ptr(), none)
        })
    }

    /// Submits a copy of `bytes` bytes from the address `from` to the address `to`. The driver
    /// makes the copy after all work that was submitted to the stream earlier, and before all work
    /// that is submitted to the stream later.
    ///
    /// # Safety
    /// `stream` must be a stream of the current context. The bytes at both addresses must stay
    /// valid until the copy is done, and the source must not overlap the destination.
    pub unsafe fn copy(&self, to: u64, from: u64, bytes: u64, stream: Opaque) -> Outcome {
        // SAFETY: as the caller promises.
        outcome(unsafe { (self.0.copy)(to, from, bytes as usize, stream) })
    }

    /// Returns the context that a stream belongs to.
    ///
    /// # Safety
    /// `stream` must not be the handle of a destroyed stream.
    pub unsafe fn stream_context(&self, stream: Opaque) -> Outcome<Opaque> {
        let mut context = std::ptr::null_mut();
        // SAFETY: the result pointer is valid, and so is the stream, as the caller promises.
        outcome(unsafe { (self.0.stream_context)(stream, &raw mut context) })?;
        Ok(context)
    }

    /// Returns the driver's number of the capture that records the work of the stream `stream` into
    /// a graph, or `None` if the stream is not being captured. All streams that take part in a
    /// capture have the same number, and no other capture of the process has it. If the capture has
    /// become invalid but has not been ended yet, the result is `Some`, and the number means
    /// nothing. The driver returns an error for the legacy default stream if a stream that
    /// synchronizes with it is being captured. The call never disturbs a capture.
    ///
    /// # Safety
    /// `stream` must be a stream of the current context.
    pub unsafe fn capture(&self, stream: Opaque) -> Outcome<Option<u64>> {
        let (mut status, mut number) = (CAPTURE_STATUS_NONE, 0);
        // SAFETY: the stream is valid, as the caller promises, and so are the pointers to the
        // status and the number. The driver permits null for the other results, which are the graph
        // and the work on which the next work of the stream will depend.
        outcome(unsafe {
            let (graph, nodes, length) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
            (self.0.stream_capture)(stream, &raw mut status, &raw mut number, graph, nodes, length)
        })?;
        Ok((status != CAPTURE_STATUS_NONE).then_some(number))
    }

    /// Makes later work of the stream `then` wait for earlier work of the stream `first`. Earlier
    /// work was submitted before this call, and later work is submitted after it. The calling
    /// thread does not wait.
    ///
    /// # Safety
    /// `first` and `then` must be streams of the current context.
    pub unsafe fn order(&self, first: Opaque, then: Opaque) -> Outcome {
        let mut event = std::ptr::null_mut();
        // SAFETY: the result pointer is valid.
        outcome(unsafe { (self.0.event_create)(&raw mut event, EVENT_DISABLE_TIMING) })?;
        // SAFETY: the event was just created in the current context, to which both streams belong.
        let ordered = outcome(unsafe { (self.0.event_record)(event, first) })
            // SAFETY: the event and both streams belong to the current context. The third argument
            // has no flags, as cuda.h requires.
            .and_then(|()| outcome(unsafe { (self.0.stream_wait)(then, event, 0) }));
        // SAFETY: no other code has the handle of the event. The driver frees the event after the
        // event has been reached.
        let destroyed = outcome(unsafe { (self.0.event_destroy)(event) });
        ordered.and(destroyed)
    }

    /// Asks the driver for the properties of the memory at `address`. The address may be any
    /// number, even one at which there is no memory.
    pub fn address(&self, address: u64) -> Outcome<Address> {
        // Each attribute has an entry of 8 bytes in `values`. If an attribute has fewer than 8
        // bytes, the driver writes only the first bytes of its entry, and the others stay 0.
        let mut values = [0u64; ATTRIBUTES.len()];
        let mut places = values.each_mut().map(|value| std::ptr::from_mut(value).cast::<c_void>());
        let number = ATTRIBUTES.len() as c_uint;
        // SAFETY: both arrays have `number` entries, and each entry of `places` points to enough
        // room for its attribute.
        let code =
            unsafe { (self.0.pointer_attributes)(number, ATTRIBUTES.as_ptr(), places.as_mut_ptr(), address) };
        outcome(code)?;
        let [context, kind, device_address, managed, device] = values;
        let kind = match kind {
            1 => MemoryKind::Host,
            2 => MemoryKind::Device,
            _ => MemoryKind::Unknown,
        };
        Ok(Address {
            context,
            kind,
            device_address,
            is_managed: managed & 0xff != 0,
            device: device as c_int,
        })
    }
}
