//! Layouts in device memory: opened for one device, packed and unpacked on streams, closed.
#![allow(unsafe_code)] // Calls the driver with addresses and streams of the caller.

use std::ffi::{CString, c_int, c_void};
use std::ops::Range;

use ddtc::Committed;
use ddtc::internal::committed::FIRST_PAGE;
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;

use crate::driver::{Driver, MemoryKind, Opaque, Outcome, code};
use crate::index::Chain;
use crate::ptx;
use crate::selection::{MAX_DIVISIONS, Selection, select};
use crate::strided::{Launch, Strided, THREADS};

#[cfg(target_endian = "big")]
compile_error!("the first four bytes of a number of 64 bits are taken for its lower half here");

/// Largest handle of a default stream. The default streams are the null stream, `CU_STREAM_LEGACY`
/// (1) and `CU_STREAM_PER_THREAD` (2) of cuda.h. They belong to the context that is current.
const LAST_DEFAULT_STREAM: usize = 2;

/// Number of parameters of a kernel, not counting the three parameters of each division.
const PLAIN_PARAMETERS: usize = 5;

/// Maximum number of parameters of a kernel.
const MAX_PARAMETERS: usize = PLAIN_PARAMETERS + 3 * MAX_DIVISIONS;

/// The kernels that move words of one width.
#[derive(Debug)]
struct Kernels {
    chain: Chain<u32, u64>,
    /// The module and its kernel for packing, followed by those for unpacking. The latter are
    /// missing if the mapped bytes of a single instance overlap, since then no number of instances
    /// can be unpacked.
    loaded: Vec<(Opaque, Opaque)>,
}

/// A committed layout that is open on a device.
///
/// It holds the primary context of the device, and the modules of its kernels, until it is closed.
/// A layout that is dropped without [`Layout::close`] keeps both for good, since only a caller who
/// can handle an error may wait for a device.
pub struct Layout {
    driver: Driver,
    device: c_int,
    context: Opaque,
    committed: Committed,
    selection: Selection,
    /// Kernels for each width of words up to the layout's unit. The index is the base-2 logarithm
    /// of the width in bytes.
    kernels: Vec<Kernels>,
    /// The process that opened the layout. The driver does not work in its children.
    process: u32,
}

// SAFETY: the driver's functions may be called by any thread, and nothing is changed after the
// layout was opened. The pointers are names of objects of the driver, which are not bound to a
// thread.
unsafe impl Send for Layout {}
// SAFETY: as for `Send`.
unsafe impl Sync for Layout {}

/// A context that is current until this value is dropped.
struct Current<'d>(Option<&'d Driver>);

impl Drop for Current<'_> {
    fn drop(&mut self) {
        if let Some(driver) = self.0 {
            // Nothing can be done about a failure here, and the next call of the driver shows it.
            let _ = driver.pop();
        }
    }
}

/// Makes a context current, unless it is already.
///
/// # Safety
/// `context` must be a context of the driver that was retained.
unsafe fn enter(driver: &Driver, context: Opaque) -> Outcome<Current<'_>> {
    if driver.current()? == context {
        return Ok(Current(None));
    }
    // SAFETY: as the caller promises.
    unsafe { driver.push(context)? };
    Ok(Current(Some(driver)))
}

/// Arguments of a call that moves packed bytes.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Whether to pack or to unpack.
    pub direction: Direction,
    /// Address of the user's buffer.
    pub user: u64,
    /// Number of instances.
    pub count: u64,
    /// Address of the first packed byte that is moved.
    pub packed: u64,
    /// The packed bytes to move, counted from the beginning of the stream.
    pub range: Range<u64>,
}

impl Layout {
    /// Opens a layout on the device of this number: chooses its kernels and loads them into the
    /// device's primary context. A capture of a stream of this context that is in progress may be
    /// lost.
    ///
    /// # Errors
    /// Class `Unsupported` if no kernel serves the layout, if there is no driver that works or no
    /// device, or if the driver refuses a kernel; `Arg` for a device that does not exist; `NoMem`
    /// if memory is short; `Other` for other errors of the driver. Nothing stays loaded, unless the
    /// driver also fails to unload it.
    pub fn open(operation: &'static str, committed: &Committed, device: c_int) -> Result<Box<Layout>> {
        let selection = select(operation, committed)?;
        let driver = Driver::load(operation)?;
        Layout::open_with(operation, driver, committed, selection, device)
    }

    /// Opens a layout like [`Layout::open`], with a driver that is already loaded.
    ///
    /// # Errors
    /// As [`Layout::open`].
    pub fn open_with(
        operation: &'static str,
        driver: Driver,
        committed: &Committed,
        selection: Selection,
        device: c_int,
    ) -> Result<Box<Layout>> {
        let said = |what| move |code| driver.error(operation, what, code);
        let device = driver.device(device).map_err(said("device"))?;
        let context = driver.retain_primary(device).map_err(said("device"))?;
        let (committed, process) = (committed.clone(), std::process::id());
        let mut layout =
            Box::new(Layout { driver, device, context, committed, selection, kernels: Vec::new(), process });
        match layout.load() {
            Ok(()) => Ok(layout),
            Err(code) => {
                let error = driver.error(operation, "kernel", code);
                // SAFETY: the context was retained above.
                if let Ok(_current) = unsafe { enter(&driver, layout.context) } {
                    layout.unload();
                }
                layout.release();
                Err(error)
            }
        }
    }

    /// Loads the kernels for all widths of words up to the layout's unit. Each transfer uses the
    /// largest width to which its addresses and the ends of its range are aligned.
    fn load(&mut self) -> Outcome {
        let Selection::Strided(strided) = &self.selection else { return Ok(()) };
        // SAFETY: the context was retained when the layout was made.
        let _current = unsafe { enter(&self.driver, self.context)? };
        let directions: &[Direction] = match strided.is_disjoint(1) {
            true => &[Direction::Pack, Direction::Unpack],
            false => &[Direction::Pack],
        };
        for width in (0..=strided.unit().ilog2()).map(|log| 1 << log) {
            self.kernels.push(Kernels { chain: strided.chain(width), loaded: Vec::new() });
            for &direction in directions {
                let shape = strided.shape(width);
                let text = CString::new(ptx::module(shape, direction)).expect("text without NUL");
                let name = CString::new(ptx::name(shape, direction)).expect("a name without NUL");
                let module = self.driver.load_module(&text)?;
                let loaded = &mut self.kernels.last_mut().expect("kernels of this width").loaded;
                loaded.push((module, std::ptr::null_mut()));
                // SAFETY: the module was just loaded.
                loaded.last_mut().expect("a module").1 = unsafe { self.driver.kernel(module, &name)? };
            }
        }
        Ok(())
    }

    /// Returns the alignment in bytes with which transfers move the widest words that the layout
    /// allows. It applies to the address of the first byte of data, to that of the packed bytes,
    /// and to both ends of the range. A larger alignment makes no difference.
    pub fn unit(&self) -> u32 {
        match &self.selection {
            Selection::Nothing | Selection::Run { .. } => 1,
            Selection::Strided(strided) => strided.unit(),
        }
    }

    /// Returns the committed datatype.
    pub fn committed(&self) -> &Committed {
        &self.committed
    }

    /// Submits a transfer to a stream. It allocates nothing and waits for nothing, so that the
    /// stream may be captured.
    ///
    /// # Safety
    /// `stream` must be a default stream or one that was not destroyed. All mapped bytes of the
    /// instances and the packed bytes of the range must be valid, and not be written by others,
    /// until the stream has done the work. The two sides must not overlap.
    ///
    /// # Errors
    /// Class `Buffer` for an address that is null, for one that is neither memory of the layout's
    /// device (of its primary context or of none) nor pinned host memory, for managed memory, and
    /// for pinned memory on both sides if all instances are one run of bytes; `Arg` for a stream of
    /// another context; `Unsupported` for unpacking instances that overlap; `Other` in the child of
    /// a fork; and the class of [`Driver::error`] if the driver fails. Nothing is written, unless
    /// the driver refuses the second or a later launch of a transfer that needs several.
    pub unsafe fn submit(&self, operation: &'static str, t: &Transfer, stream: Opaque) -> Result<()> {
        if t.range.is_empty() {
            return Ok(());
        }
        if std::process::id() != self.process {
            let rule = "must not be used in a child of the process that opened it";
            return Err(Error::new(ErrorClass::Other, operation, "layout", "opened before a fork", rule));
        }
        let said = |what| move |code| self.driver.error(operation, what, code);
        // SAFETY: the layout holds its context.
        let _current = unsafe { enter(&self.driver, self.context).map_err(said("context"))? };
        if stream.addr() > LAST_DEFAULT_STREAM {
            // SAFETY: the stream was not destroyed, as the caller promises.
            let context = unsafe { self.driver.stream_context(stream).map_err(said("stream"))? };
            if context != self.context {
                let rule = "must belong to the primary context of the layout's device";
                return Err(Error::new(ErrorClass::Arg, operation, "stream", format!("{stream:p}"), rule));
            }
        }
        match &self.selection {
            Selection::Nothing => Ok(()),
            Selection::Run { start } => {
                let (user, packed, kinds) = self.places(operation, t, *start)?;
                if kinds == [MemoryKind::Host; 2] {
                    let rule = "must be device memory if `user` is pinned host memory and all instances are one run of bytes: the driver's copy would make the caller wait";
                    let packed = format!("{:#x}", t.packed);
                    return Err(Error::new(ErrorClass::Buffer, operation, "packed", packed, rule));
                }
                let user = user.wrapping_add(*start as u64).wrapping_add(t.range.start);
                let (to, from) = match t.direction {
                    Direction::Pack => (packed, user),
                    Direction::Unpack => (user, packed),
                };
                let bytes = t.range.end - t.range.start;
                // SAFETY: the stream belongs to the current context. All instances are one run from
                // `start` on, so that packed byte `i` lies `i` bytes after it; the caller vouches
                // for the memory.
                unsafe { self.driver.copy(to, from, bytes, stream).map_err(said("copy")) }
            }
            Selection::Strided(strided) => {
                if t.direction == Direction::Unpack && !strided.is_disjoint(t.count) {
                    let rule = "must be so few that no byte is unpacked twice: threads have no order";
                    return Err(Error::new(ErrorClass::Unsupported, operation, "count", t.count, rule));
                }
                let (user, packed, _) = self.places(operation, t, strided.start())?;
                // SAFETY: as this function's caller promises.
                unsafe { self.launch(strided, t, (user, packed), stream).map_err(said("launch")) }
            }
        }
    }

    /// Launches the kernels of a transfer.
    ///
    /// # Safety
    /// As for [`Layout::submit`]. `stream` must be a stream of the current context.
    unsafe fn launch(
        &self,
        strided: &Strided,
        t: &Transfer,
        (user, packed): (u64, u64),
        stream: Opaque,
    ) -> Outcome {
        let width = strided.width(user, packed, &t.range);
        let kernels = &self.kernels[width.ilog2() as usize];
        let (_, kernel) = kernels.loaded[t.direction as usize];
        for launch in strided.launches(user, packed, t.range.clone(), width) {
            let mut values = values(&kernels.chain, &launch);
            let number = PLAIN_PARAMETERS + 3 * kernels.chain.divisions.len();
            let mut parameters = values.each_mut().map(|value| std::ptr::from_mut(value).cast::<c_void>());
            let parameters = &mut parameters[..number];
            // SAFETY: the kernel belongs to a module that is loaded until the layout is closed.
            // Each parameter has 4 or 8 bytes, the first ones of its value. The kernel accesses
            // words of the layout and of the packed bytes only, for which the caller vouches.
            unsafe { self.driver.launch(kernel, launch.blocks(width), THREADS, stream, parameters)? };
        }
        Ok(())
    }

    /// Returns the addresses by which the device reaches the buffer and the packed bytes, and the
    /// kinds of their memory in the same order.
    fn places(
        &self,
        operation: &'static str,
        t: &Transfer,
        start: i64,
    ) -> Result<(u64, u64, [MemoryKind; 2])> {
        let first = t.user.wrapping_add(start as u64);
        let (user, user_kind) = self.place(operation, "user", first)?;
        let (packed, packed_kind) = self.place(operation, "packed", t.packed)?;
        Ok((user.wrapping_sub(start as u64), packed, [user_kind, packed_kind]))
    }

    /// Returns the address by which the device reaches `address`, and the kind of memory there,
    /// which must be memory of the device or pinned host memory.
    fn place(
        &self,
        operation: &'static str,
        argument: &'static str,
        address: u64,
    ) -> Result<(u64, MemoryKind)> {
        let refused = |rule: &'static str| {
            Err(Error::new(ErrorClass::Buffer, operation, argument, format!("{address:#x}"), rule))
        };
        if address < FIRST_PAGE as u64 {
            return refused("must not be a null pointer");
        }
        let known =
            self.driver.address(address).map_err(|code| self.driver.error(operation, argument, code))?;
        match known.kind {
            _ if known.is_managed => {
                refused("must not be managed memory, which the driver may move meanwhile")
            }
            MemoryKind::Unknown => refused("must be device memory or pinned host memory"),
            MemoryKind::Host if known.device_address == 0 => {
                refused("must be pinned host memory that is mapped for the device")
            }
            MemoryKind::Host => Ok((known.device_address, known.kind)),
            MemoryKind::Device if known.device != self.device => {
                refused("must be memory of the layout's device")
            }
            // Memory of a pool and of mapped ranges belongs to no context.
            MemoryKind::Device if known.context != 0 && known.context != self.context.addr() as u64 => {
                refused("must be memory of the primary context of the layout's device")
            }
            MemoryKind::Device => Ok((address, known.kind)),
        }
    }

    /// Waits for the work of the context, and frees the kernels and the context. In a child of the
    /// process that opened the layout, only memory of the process is freed.
    ///
    /// # Errors
    /// Class `Other` while a stream of the context is captured: the layout stays open and is
    /// returned, and the capture may be lost. Faults of the work are not reported here, but at the
    /// caller's own synchronization.
    pub fn close(self: Box<Self>, operation: &'static str) -> std::result::Result<(), (Box<Layout>, Error)> {
        if std::process::id() != self.process {
            // The modules and the context belong to the parent process, so they are not freed here.
            return Ok(());
        }
        // SAFETY: the layout holds its context.
        let ended = unsafe { enter(&self.driver, self.context) }.and_then(|_current| {
            self.driver.synchronize()?;
            self.unload();
            Ok(())
        });
        match ended {
            Err(code) if code::CAPTURE.contains(&code) => {
                let error = self.driver.error(operation, "layout", code);
                Err((self, error))
            }
            // After any other error the context is gone or no longer works. Modules that are still
            // loaded are not unloaded, because their kernels may still run; they are freed together
            // with the context.
            Ok(()) | Err(_) => {
                self.release();
                Ok(())
            }
        }
    }

    /// Unloads the modules from the context, which must be current and have no work of the layout
    /// left. A module that cannot be unloaded goes with the context.
    fn unload(&self) {
        for (module, _) in self.kernels.iter().flat_map(|k| &k.loaded) {
            // SAFETY: the module was loaded into this context. No kernel of it runs, since the
            // context was synchronized or none was launched, and none is launched later, since the
            // layout ends here.
            let _ = unsafe { self.driver.unload(*module) };
        }
    }

    /// Gives the context back. If the driver fails, nothing can be done about it.
    fn release(&self) {
        let _ = self.driver.release_primary(self.device);
    }
}

/// Returns the values of a launch's parameters, in the order of [`ptx::module`].
fn values(chain: &Chain<u32, u64>, launch: &Launch) -> [u64; MAX_PARAMETERS] {
    let mut values = [0; MAX_PARAMETERS];
    let plain = [launch.user, launch.packed, u64::from(launch.first), u64::from(launch.words), chain.stride];
    values[..PLAIN_PARAMETERS].copy_from_slice(&plain);
    for (place, (divisor, step)) in values[PLAIN_PARAMETERS..].chunks_mut(3).zip(&chain.divisions) {
        place.copy_from_slice(&[u64::from(divisor.multiplier), u64::from(divisor.shift), *step]);
    }
    values
}
