//! NVIDIA's driver library, `libcuda.so.1`, as far as packing needs it.
//!
//! The library is loaded when a layout is opened, and never before. It is never unloaded.
//!
//! Some functions exist in several versions. Each function is looked up by the name that one
//! version has in the library, such as `cuCtxPushCurrent_v2`, to which `cuda.h` maps the plain
//! name. So a newer driver, which may have more versions, serves as well.
#![allow(unsafe_code)] // Functions of another library, found by name: there is no other way to call them.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;

/// A context, module, function or stream of the driver; never dereferenced.
pub type Opaque = *mut c_void;

/// `CUDA_SUCCESS`.
const SUCCESS: c_int = 0;

/// Error codes of the driver that ddtc distinguishes (`CUresult` in cuda.h).
pub mod code {
    use std::ffi::c_int;

    /// `CUDA_ERROR_OUT_OF_MEMORY`.
    pub const OUT_OF_MEMORY: c_int = 2;
    /// `CUDA_ERROR_NO_DEVICE`.
    pub const NO_DEVICE: c_int = 100;
    /// `CUDA_ERROR_INVALID_DEVICE`.
    pub const INVALID_DEVICE: c_int = 101;
    /// Codes by which a driver refuses the text of a kernel: `CUDA_ERROR_INVALID_IMAGE`,
    /// `CUDA_ERROR_NO_BINARY_FOR_GPU`, `CUDA_ERROR_INVALID_PTX`,
    /// `CUDA_ERROR_JIT_COMPILER_NOT_FOUND`, `CUDA_ERROR_UNSUPPORTED_PTX_VERSION`,
    /// `CUDA_ERROR_JIT_COMPILATION_DISABLED`.
    pub const REFUSED: [c_int; 6] = [200, 209, 218, 221, 222, 223];
    /// Codes that concern the capture of streams, from `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` to
    /// `CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD`.
    pub const CAPTURE: std::ops::RangeInclusive<c_int> = 900..=908;
}

/// Attributes that are queried for an address (`CUpointer_attribute` in cuda.h): the context, the
/// kind of memory, the address for the device, whether the memory is managed, and the number of the
/// device.
const ATTRIBUTES: [c_int; 5] = [1, 2, 3, 8, 9];

/// What the driver knows about an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The context that the memory belongs to; null if it belongs to none.
    pub context: u64,
    /// Where the memory is.
    pub kind: MemoryKind,
    /// The address by which a kernel reaches the memory.
    pub device_address: u64,
    /// Whether the driver moves the memory between host and device.
    pub is_managed: bool,
    /// Number of the device.
    pub device: c_int,
}

/// Where memory is (`CUmemorytype` in cuda.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// Pinned host memory.
    Host,
    /// Device memory.
    Device,
    /// Memory that the driver does not know, or of another kind.
    Unknown,
}

/// Declares the structure of function pointers, and the function that fills it.
macro_rules! functions {
    ($($(#[$attribute:meta])* $field:ident = $name:literal: fn($($argument:ty),*);)*) => {
        /// The functions of the driver.
        #[derive(Clone, Copy)]
        struct Functions {
            $($(#[$attribute])* $field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Functions {
            /// Finds all functions, or returns the name of one that is missing.
            ///
            /// # Safety
            /// `scope` must be the handle of a library whose functions of these names have the
            /// types that cuda.h declares.
            unsafe fn find(scope: *mut c_void) -> std::result::Result<Functions, &'static CStr> {
                Ok(Functions {
                    $($field: {
                        // SAFETY: `scope` is a handle from `dlopen`, and the name is a C string.
                        let symbol = unsafe { libc::dlsym(scope, $name.as_ptr()) };
                        if symbol.is_null() {
                            return Err($name);
                        }
                        // SAFETY: not null, so the function of this name, which the caller says has
                        // the type that cuda.h declares, and that is the type of the field.
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
    launch = c"cuLaunchKernel": fn(Opaque, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Opaque, *mut *mut c_void, *mut *mut c_void);
    copy = c"cuMemcpyAsync": fn(u64, u64, usize, Opaque);
    stream_context = c"cuStreamGetCtx": fn(Opaque, *mut Opaque);
    pointer_attributes = c"cuPointerGetAttributes": fn(c_uint, *const c_int, *mut *mut c_void, u64);
    error_text = c"cuGetErrorString": fn(c_int, *mut *const c_char);
}

/// The driver, loaded and initialized.
#[derive(Clone, Copy)]
pub struct Driver(Functions);

/// Result of a call of the driver. An error is the code that the driver returned.
pub type Outcome<T = ()> = std::result::Result<T, c_int>;

fn outcome(code: c_int) -> Outcome {
    if code == SUCCESS { Ok(()) } else { Err(code) }
}

fn unsupported(operation: &'static str, value: &str, rule: &'static str) -> Error {
    Error::new(ErrorClass::Unsupported, operation, "driver", value, rule)
}

impl Driver {
    /// Loads and initializes the driver library of the system.
    ///
    /// # Errors
    /// Class `Unsupported` if there is no such library, if it lacks a function, or if it cannot be
    /// initialized, as where it finds no device; `NoMem` if there is no memory for that.
    /// `operation` is the call that is named.
    pub fn load(operation: &'static str) -> Result<Driver> {
        // SAFETY: libcuda.so.1 is the name of NVIDIA's driver library, and of nothing else.
        unsafe { Driver::load_from(operation, c"libcuda.so.1") }
    }

    /// Loads and initializes the library of this name.
    ///
    /// # Safety
    /// If there is such a library, its functions have the types that cuda.h declares.
    ///
    /// # Errors
    /// As [`Driver::load`].
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
        // SAFETY: the flags must be 0.
        match outcome(unsafe { (driver.0.init)(0) }) {
            Ok(()) => Ok(driver),
            // Whatever the reason, such as a library that does not fit the kernel module of the
            // system: no layout can be opened in this process, and the caller has to do without.
            Err(code) if code != code::OUT_OF_MEMORY => {
                Err(driver.error_of_class(ErrorClass::Unsupported, operation, "device", code))
            }
            Err(code) => Err(driver.error(operation, "device", code)),
        }
    }

    /// Returns the error for a code of the driver; `what` is the argument, or the part of the call,
    /// that the driver refused.
    pub fn error(&self, operation: &'static str, what: &'static str, code: c_int) -> Error {
        let class = match code {
            code::OUT_OF_MEMORY => ErrorClass::NoMem,
            code::INVALID_DEVICE => ErrorClass::Arg,
            _ if code == code::NO_DEVICE || code::REFUSED.contains(&code) => ErrorClass::Unsupported,
            _ => ErrorClass::Other,
        };
        self.error_of_class(class, operation, what, code)
    }

    /// Returns the error of this class for a code of the driver, with the text that the driver has
    /// for the code.
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
            // SAFETY: not null, so a C string of the driver, which lives as long as the library.
            true => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
            false => "an error without a text".to_owned(),
        };
        Error::new(class, operation, what, format!("CUDA error {code}"), format!("the driver says: {text}"))
    }

    /// Returns the device with this number.
    pub fn device(&self, number: c_int) -> Outcome<c_int> {
        let mut device = 0;
        // SAFETY: the result pointer is valid.
        outcome(unsafe { (self.0.device_get)(&raw mut device, number) })?;
        Ok(device)
    }

    /// Returns the primary context of a device, and retains it.
    pub fn retain_primary(&self, device: c_int) -> Outcome<Opaque> {
        let mut context = std::ptr::null_mut();
        // SAFETY: the result pointer is valid; any number may be passed as a device.
        outcome(unsafe { (self.0.primary_retain)(&raw mut context, device) })?;
        Ok(context)
    }

    /// Gives back the primary context of a device. The context must have been retained once more
    /// than it was released.
    pub fn release_primary(&self, device: c_int) -> Outcome {
        // SAFETY: any number may be passed as a device.
        outcome(unsafe { (self.0.primary_release)(device) })
    }

    /// Returns the current context of this thread; null if it has none.
    pub fn current(&self) -> Outcome<Opaque> {
        let mut context = std::ptr::null_mut();
        // SAFETY: the result pointer is valid.
        outcome(unsafe { (self.0.context_current)(&raw mut context) })?;
        Ok(context)
    }

    /// Makes a context the current one of this thread.
    ///
    /// # Safety
    /// `context` must be a context of the driver that was retained.
    pub unsafe fn push(&self, context: Opaque) -> Outcome {
        // SAFETY: as the caller promises.
        outcome(unsafe { (self.0.context_push)(context) })
    }

    /// Makes the context current again that was current before the last [`Driver::push`].
    pub fn pop(&self) -> Outcome {
        let mut context = std::ptr::null_mut();
        // SAFETY: the result pointer is valid.
        outcome(unsafe { (self.0.context_pop)(&raw mut context) })
    }

    /// Waits for all work of the current context.
    pub fn synchronize(&self) -> Outcome {
        // SAFETY: the function takes nothing.
        outcome(unsafe { (self.0.context_synchronize)() })
    }

    /// Compiles and loads the text of a module into the current context.
    pub fn load_module(&self, text: &CStr) -> Outcome<Opaque> {
        let mut module = std::ptr::null_mut();
        // SAFETY: the result pointer is valid, and the image is text that ends with NUL.
        outcome(unsafe { (self.0.module_load)(&raw mut module, text.as_ptr().cast()) })?;
        Ok(module)
    }

    /// Returns a kernel of a module.
    ///
    /// # Safety
    /// `module` must be loaded.
    pub unsafe fn kernel(&self, module: Opaque, name: &CStr) -> Outcome<Opaque> {
        let mut function = std::ptr::null_mut();
        // SAFETY: the result pointer is valid and the name a C string; the module is loaded, as the
        // caller promises.
        outcome(unsafe { (self.0.module_function)(&raw mut function, module, name.as_ptr()) })?;
        Ok(function)
    }

    /// Unloads a module from the current context.
    ///
    /// # Safety
    /// `module` must be loaded, and no kernel of it may run or be launched after that.
    pub unsafe fn unload(&self, module: Opaque) -> Outcome {
        // SAFETY: as the caller promises.
        outcome(unsafe { (self.0.module_unload)(module) })
    }

    /// Launches a kernel on a stream of the current context.
    ///
    /// # Safety
    /// `kernel` must be a kernel of a loaded module of this context, and `stream` a stream of the
    /// context. `parameters` must point to values of the kernel's parameters. The kernel must
    /// access only memory that is valid until it has run.
    pub unsafe fn launch(
        &self,
        kernel: Opaque,
        blocks: u32,
        threads: u32,
        stream: Opaque,
        parameters: &mut [*mut c_void],
    ) -> Outcome {
        let none = std::ptr::null_mut();
        // SAFETY: as the caller promises. The driver copies the parameters before it returns.
        outcome(unsafe {
            (self.0.launch)(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, parameters.as_mut_ptr(), none)
        })
    }

    /// Copies bytes in stream order.
    ///
    /// # Safety
    /// `stream` must be a stream of the current context. The bytes on both sides must be valid
    /// until the copy was made, and must not overlap.
    pub unsafe fn copy(&self, to: u64, from: u64, bytes: u64, stream: Opaque) -> Outcome {
        // SAFETY: as the caller promises.
        outcome(unsafe { (self.0.copy)(to, from, bytes as usize, stream) })
    }

    /// Returns the context of a stream.
    ///
    /// # Safety
    /// `stream` must be a stream that was not destroyed.
    pub unsafe fn stream_context(&self, stream: Opaque) -> Outcome<Opaque> {
        let mut context = std::ptr::null_mut();
        // SAFETY: the result pointer is valid, and so is the stream, as the caller promises.
        outcome(unsafe { (self.0.stream_context)(stream, &raw mut context) })?;
        Ok(context)
    }

    /// Returns what the driver knows about an address. The address may be any number, valid or not.
    pub fn address(&self, address: u64) -> Outcome<Address> {
        // Attributes have 4 or 8 bytes. Each has room for 8 bytes here, and the driver writes the
        // first 4 of them or all.
        let mut values = [0u64; ATTRIBUTES.len()];
        let mut places = values.each_mut().map(|value| std::ptr::from_mut(value).cast::<c_void>());
        let number = ATTRIBUTES.len() as c_uint;
        // SAFETY: both arrays have that many entries, and each place has room for its attribute.
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
