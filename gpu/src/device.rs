//! Layouts of committed datatypes for packing and unpacking in device memory. A layout is opened on
//! one device. Each call that packs or unpacks submits work to a CUDA stream, and this work moves
//! the bytes. At the end, the layout is closed.
#![allow(unsafe_code)] // This module passes addresses and streams of the caller to the driver.

use std::ffi::{CString, c_int, c_void};
use std::ops::Range;

use ddtc::Committed;
use ddtc::internal::committed::FIRST_PAGE;
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;

use crate::driver::{Driver, MemoryKind, Opaque, Outcome, code};
use crate::kernel::{Addresses, MAX_PARAMETERS, Mover, THREADS, launches};
use crate::selection::{Selection, select};

#[cfg(target_endian = "big")]
compile_error!("the first four bytes of a number of 64 bits are taken for its lower half here");

/// Largest handle of a default stream. The default streams are the null stream (0),
/// `CU_STREAM_LEGACY` (1) and `CU_STREAM_PER_THREAD` (2) of cuda.h. A default stream belongs to
/// whichever context is current.
const LAST_DEFAULT_STREAM: usize = 2;

/// The loaded kernels of one variant ([`Mover::variants`]): first the kernel for packing, then the
/// kernel for unpacking. A variant usually stands for one width of words. Each entry is a pair of a
/// module and the kernel in this module. The kernel for unpacking is missing if two packed bytes of
/// a single instance may belong to the same byte of user memory. Such a layout cannot be unpacked,
/// whatever the number of instances is.
type Kernels = Vec<(Opaque, Opaque)>;

/// The layout of a committed datatype, opened on one device.
///
/// Until the layout is closed, it retains the primary context of the device, keeps the modules of
/// its kernels loaded, and keeps its table in device memory. If the layout is dropped without a
/// call of [`Layout::close`], the context stays retained, and the kernels and the table stay
/// loaded. `drop` frees nothing, because it would first have to wait for the device. That wait can
/// fail, and `drop` cannot return an error.
pub struct Layout {
    driver: Driver,
    device: c_int,
    context: Opaque,
    committed: Committed,
    selection: Selection,
    /// The loaded kernels. The list has one entry for each variant ([`Mover::variants`]): usually
    /// one for each width of the words that a kernel moves. It is empty if the layout needs no
    /// kernel.
    kernels: Vec<Kernels>,
    /// Address of the layout's table in device memory, or 0 if the layout has no table.
    table: u64,
    /// Id of the process that opened the layout. The driver does not work in children of this
    /// process.
    process: u32,
}

// SAFETY: any thread may call the driver's functions, and a layout does not change after it was
// opened. Its pointers are handles of objects of the driver, and these objects are not bound to a
// thread.
unsafe impl Send for Layout {}
// SAFETY: the reasons are the same as for `Send`.
unsafe impl Sync for Layout {}

/// Guard that keeps a context current until it is dropped. It contains the driver if the context
/// was pushed and must be popped when the guard is dropped. It contains `None` if the context was
/// current already.
struct Current<'d>(Option<&'d Driver>);

impl Drop for Current<'_> {
    fn drop(&mut self) {
        if let Some(driver) = self.0 {
            // Ignore a failure of this call, because `drop` can neither repair it nor return an
            // error.
            let _ = driver.pop();
        }
    }
}

/// Makes the context `context` current in this thread, unless it is current already. When the
/// returned guard is dropped, the context that was current before becomes current again.
unsafe fn enter(driver: &Driver, context: Opaque) -> Outcome<Current<'_>> {
    if driver.current()? == context {
        return Ok(Current(None));
    }
    // SAFETY: as the caller promises.
    unsafe { driver.push(context)? };
    Ok(Current(Some(driver)))
}

/// Arguments of one call of [`Layout::submit`], which packs or unpacks.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Whether the call packs or unpacks.
    pub direction: Direction,
    /// Address of the user's buffer.
    pub user: u64,
    /// Number of instances of the layout's datatype in the user's buffer.
    pub count: u64,
    /// Address of the packed byte at the position `range.start`, which is the first packed byte
    /// that is moved.
    pub packed: u64,
    /// The packed bytes to move. Positions are counted in bytes from the beginning of the packed
    /// stream of all `count` instances.
    pub range: Range<u64>,
}

impl Layout {
    /// Opens the layout `committed` on the device with the number `device`. Chooses the kernels of
    /// the layout and loads them into the primary context of the device. If the layout has a table,
    /// copies the table to device memory. If a stream of this context is being captured into a
    /// graph, this call may invalidate the capture.
    ///
    /// # Errors
    /// The class of the error depends on what is wrong:
    ///
    /// * `Unsupported`: there is no working driver, there is no device, or the driver refuses the
    ///   text of a kernel.
    /// * `Unsupported`: neither a kernel nor a plain copy by the driver can move the layout.
    /// * `Arg`: no device has this number.
    /// * `NoMem`: memory is short.
    /// * `Other`: the driver fails for any other reason.
    ///
    /// After an error, no kernel stays loaded and no memory stays allocated, unless the driver also
    /// fails to unload the kernel or to free the memory.
    pub fn open(operation: &'static str, committed: &Committed, device: c_int) -> Result<Box<Layout>> {
        // Load the driver first, so that a long list of blocks is not made in vain if there is no
        // driver.
        let driver = Driver::load(operation)?;
        let selection = select(operation, committed)?;
        Layout::open_with(operation, driver, committed, selection, device)
    }

    /// Opens a layout as [`Layout::open`] does, but with a driver that is already loaded and with a
    /// selection that was already made.
    ///
    /// # Errors
    /// The errors are those of [`Layout::open`].
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
        let mut layout = Box::new(Layout {
            driver,
            device,
            context,
            committed,
            selection,
            kernels: Vec::new(),
            table: 0,
            process,
        });
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

    /// Copies the table of the layout to device memory, and loads the kernels of all variants
    /// ([`Mover::variants`]). Which variant a transfer uses depends on its addresses and its range.
    fn load(&mut self) -> Outcome {
        let Selection::Kernels(mover) = &self.selection else { return Ok(()) };
        // SAFETY: the context was retained when the layout was made.
        let _current = unsafe { enter(&self.driver, self.context)? };
        let table = mover.table();
        if !table.is_empty() {
            self.table = self.driver.allocate(size_of_val(table))?;
            // SAFETY: the memory was just allocated, with room for the table.
            unsafe { self.driver.upload(self.table, table)? };
        }
        let directions: &[Direction] = match mover.loops().is_disjoint(1) {
            true => &[Direction::Pack, Direction::Unpack],
            false => &[Direction::Pack],
        };
        for variant in 0..mover.variants() {
            self.kernels.push(Kernels::new());
            for &direction in directions {
                let kernel = mover.kernel(variant, direction);
                let text = CString::new(kernel.text).expect("text without NUL");
                let name = CString::new(kernel.name).expect("a name without NUL");
                let module = self.driver.load_module(&text)?;
                let loaded = self.kernels.last_mut().expect("kernels of this variant");
                loaded.push((module, std::ptr::null_mut()));
                // SAFETY: the module was just loaded.
                loaded.last_mut().expect("a module").1 = unsafe { self.driver.kernel(module, &name)? };
            }
        }
        Ok(())
    }

    /// Returns the alignment, in bytes, that a transfer needs to move the widest words that the
    /// layout allows. The transfer moves words of this width only if the address of the first byte
    /// of data in user memory, the address of the packed bytes, and both ends of the range are
    /// multiples of the alignment. A larger alignment makes no difference.
    pub fn unit(&self) -> u32 {
        match &self.selection {
            Selection::Nothing | Selection::Run { .. } => 1,
            Selection::Kernels(mover) => mover.loops().unit(),
        }
    }

    /// Returns the committed datatype of the layout.
    pub fn committed(&self) -> &Committed {
        &self.committed
    }

    /// Submits the transfer `t` to a stream. The call allocates nothing and waits for nothing, so
    /// it is also permitted while the stream is being captured.
    ///
    /// # Safety
    /// `stream` must not be the handle of a destroyed stream. Until the stream has done the work,
    /// all bytes of user memory that belong to the instances, and the packed bytes of the range,
    /// must be valid, and no other code may write them. User memory must not overlap the packed
    /// bytes.
    ///
    /// # Errors
    /// The class of the error depends on what is wrong:
    ///
    /// * `Buffer`: an address is null or lies in managed memory.
    /// * `Buffer`: an address lies neither in device memory nor in pinned host memory that the
    ///   device can reach.
    /// * `Buffer`: an address lies in memory of another device, or in device memory that belongs to
    ///   a context other than the primary context of the layout's device. Device memory that
    ///   belongs to no context is accepted.
    /// * `Buffer`: all instances are one run of bytes, and both addresses lie in pinned host
    ///   memory. ddtc lets the driver copy such a run, and a copy between two host buffers would
    ///   make the caller wait.
    /// * `Arg`: the stream belongs to a context other than the primary context of the layout's
    ///   device.
    /// * `Unsupported`: the instances overlap or may overlap, and the transfer unpacks.
    /// * `Other`: the calling process is a child of the process that opened the layout.
    /// * If the driver fails, the class is that of [`Driver::error`].
    ///
    /// A transfer that returns an error has written nothing, with one exception. Some transfers
    /// need several launches: for example, long transfers, and transfers that cross the end of an
    /// instance, or of an iteration of a loop, that has more than 1 GiB. If the driver refuses the
    /// second or a later launch, the launches before it write their bytes.
    pub unsafe fn submit(&self, operation: &'static str, t: &Transfer, stream: Opaque) -> Result<()> {
        if t.range.is_empty() {
            return Ok(());
        }
        self.check_process(operation)?;
        let said = |what| move |code| self.driver.error(operation, what, code);
        // SAFETY: the layout holds its context.
        let _current = unsafe { enter(&self.driver, self.context).map_err(said("context"))? };
        // SAFETY: the stream was not destroyed, as the caller promises.
        unsafe { self.check_stream(operation, "stream", stream)? };
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
                // SAFETY: the stream belongs to the current context. All instances together are one
                // contiguous run, which begins `start` bytes after the address of the user's
                // buffer, and packed byte `i` is byte `i` of this run. The caller promises that the
                // memory is valid.
                unsafe { self.driver.copy(to, from, bytes, stream).map_err(said("copy")) }
            }
            Selection::Kernels(mover) => {
                if t.direction == Direction::Unpack && !mover.loops().is_disjoint(t.count) {
                    let rule = "must be so few that no byte is unpacked twice: threads have no order";
                    return Err(Error::new(ErrorClass::Unsupported, operation, "count", t.count, rule));
                }
                let (user, packed, _) = self.places(operation, t, mover.loops().start())?;
                let addresses = Addresses { user, packed, table: self.table };
                // SAFETY: the caller of this function promises what `launch` requires.
                unsafe { self.launch(&**mover, t, addresses, stream).map_err(said("launch")) }
            }
        }
    }

    /// Checks that a stream is a default stream or a stream of the layout's context. This context
    /// must be current. The error contains `argument` as the name of the wrong argument.
    ///
    /// # Safety
    /// `stream` must not be the handle of a destroyed stream.
    unsafe fn check_stream(
        &self,
        operation: &'static str,
        argument: &'static str,
        stream: Opaque,
    ) -> Result<()> {
        if stream.addr() > LAST_DEFAULT_STREAM {
            // SAFETY: the stream was not destroyed, as the caller promises.
            let context = unsafe { self.driver.stream_context(stream) }
                .map_err(|code| self.driver.error(operation, argument, code))?;
            if context != self.context {
                let rule = "must belong to the primary context of the layout's device";
                return Err(Error::new(ErrorClass::Arg, operation, argument, format!("{stream:p}"), rule));
            }
        }
        Ok(())
    }

    /// Makes later work of the stream `then` wait for earlier work of the stream `first`. Earlier
    /// work was submitted before this call, and later work is submitted after it. The calling
    /// thread does not wait. Does nothing if both are the same stream. An error that concerns
    /// `first` contains `argument` as the name of the wrong argument.
    ///
    /// # Safety
    /// Neither `first` nor `then` may be the handle of a destroyed stream.
    ///
    /// # Errors
    /// The class of the error depends on what is wrong:
    ///
    /// * `Arg`: one of the streams belongs to a context other than the primary context of the
    ///   layout's device.
    /// * `Arg`: one of the streams is being captured into a graph, and the other stream does not
    ///   take part in the same capture. A wait would either make captures invalid, or make `then`
    ///   take part in the capture of `first`.
    /// * `Other`: the calling process is a child of the process that opened the layout.
    /// * If a call of the driver fails, the class is that of [`Driver::error`]. Only in this case,
    ///   a capture may become invalid.
    pub unsafe fn order(
        &self,
        operation: &'static str,
        argument: &'static str,
        first: Opaque,
        then: Opaque,
    ) -> Result<()> {
        // The null stream (0) and `CU_STREAM_LEGACY` (1) are two handles of the same stream.
        if first.addr().max(1) == then.addr().max(1) {
            return Ok(());
        }
        self.check_process(operation)?;
        // SAFETY: the layout holds its context.
        let _current = unsafe { enter(&self.driver, self.context) }
            .map_err(|code| self.driver.error(operation, "context", code))?;
        // SAFETY: as the caller promises.
        unsafe {
            self.check_stream(operation, argument, first)?;
            self.check_stream(operation, "stream", then)?;
            let said = |what| move |code| self.driver.error(operation, what, code);
            let first_capture = self.driver.capture(first).map_err(said(argument))?;
            let then_capture = self.driver.capture(then).map_err(said("stream"))?;
            if first_capture == then_capture {
                return self.driver.order(first, then).map_err(said(argument));
            }
            let value = format!("a buffer of stream {first:p}");
            let rule = "must name no stream, or a stream of the same capture, if that stream or `stream` is captured into a graph";
            Err(Error::new(ErrorClass::Arg, operation, argument, value, rule))
        }
    }

    /// Returns an error if another process opened the layout. That process is an ancestor of this
    /// one, and the driver does not know its handles in this process.
    fn check_process(&self, operation: &'static str) -> Result<()> {
        if std::process::id() == self.process {
            return Ok(());
        }
        let rule = "must have been opened by this process: a child of that process can only close it";
        let value = format!("one that process {} opened", self.process);
        Err(Error::new(ErrorClass::Other, operation, "layout", value, rule))
    }

    /// Submits the launches of the kernel that together make the transfer `t`. `addresses` has the
    /// device addresses of the user's buffer, of the packed bytes, and of the table.
    ///
    /// # Safety
    /// The caller must do what [`Layout::submit`] requires. In addition, `stream` must be a stream
    /// of the current context.
    unsafe fn launch(
        &self,
        mover: &dyn Mover,
        t: &Transfer,
        addresses: Addresses,
        stream: Opaque,
    ) -> Outcome {
        let variant = mover.variant(&addresses, &t.range);
        let (_, kernel) = self.kernels[variant][t.direction as usize];
        for mut launch in launches(mover, variant, addresses, t.range.clone()) {
            let mut pointers = [std::ptr::null_mut::<c_void>(); MAX_PARAMETERS];
            let values = launch.parameters.values_mut();
            let pointers = &mut pointers[..values.len()];
            for (pointer, value) in pointers.iter_mut().zip(values) {
                *pointer = std::ptr::from_mut(value).cast();
            }
            // SAFETY: the kernel belongs to a module that is loaded until the layout is closed.
            // Each parameter has 4 or 8 bytes, which are the first bytes of its value in `launch`.
            // The kernel accesses only bytes of the layout, packed bytes, and the layout's table.
            // The caller promises that the bytes of the layout and the packed bytes are valid. The
            // table stays in device memory until the layout is closed.
            unsafe { self.driver.launch(kernel, launch.blocks, THREADS, stream, pointers)? };
        }
        Ok(())
    }

    /// Checks that the device can access both buffers of the transfer `t`. Returns the device
    /// address of the user's buffer, the device address of the packed bytes, and the kinds of
    /// memory of these two buffers in the same order. In the user's buffer, only the layout's first
    /// byte is checked, which lies `start` bytes after the address of the buffer.
    fn places(
        &self,
        operation: &'static str,
        t: &Transfer,
        start: i64,
    ) -> Result<(u64, u64, [MemoryKind; 2])> {
        let first = t.user.wrapping_add(start as u64);
        let (user, user_kind) = self.device_address(operation, "user", first)?;
        let (packed, packed_kind) = self.device_address(operation, "packed", t.packed)?;
        Ok((user.wrapping_sub(start as u64), packed, [user_kind, packed_kind]))
    }

    /// Returns the device address of the memory at `address`, and the kind of this memory. Returns
    /// an error unless the memory is memory of the layout's device or pinned host memory. Also
    /// refuses managed memory, device memory that belongs to a context other than the layout's, and
    /// pinned host memory that is not mapped for the device. The error contains `argument` as the
    /// name of the wrong argument.
    fn device_address(
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
            // Memory from a memory pool belongs to no context, and neither does memory that is
            // mapped into a range of addresses. For such memory the driver reports 0 as the
            // context, so accept 0.
            MemoryKind::Device if known.context != 0 && known.context != self.context.addr() as u64 => {
                refused("must be memory of the primary context of the layout's device")
            }
            MemoryKind::Device => Ok((address, known.kind)),
        }
    }

    /// Waits for all work of the layout's context, unloads the kernels, frees the table, and
    /// releases the context. In a child of the process that opened the layout, this call frees only
    /// host memory of the child.
    ///
    /// # Errors
    /// The class of the error is `Other` if a stream of the context is being captured. The layout
    /// then stays open and is returned with the error, and the capture may have become invalid. If
    /// a kernel or a copy that was submitted before has failed, this function does not report it.
    /// The caller's own synchronization reports it.
    pub fn close(self: Box<Self>, operation: &'static str) -> std::result::Result<(), (Box<Layout>, Error)> {
        if std::process::id() != self.process {
            // The modules, the table and the context belong to the parent process, so the child
            // must not free them.
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
            // If `ended` is `Ok`, `unload` was called above. If it is an error, the context is
            // destroyed or no longer works. (An error that concerns a stream capture was handled
            // above.) Then the kernels stay loaded and the table stays allocated, because a kernel
            // may still run and read the table. The driver frees the kernels and the table together
            // with the context.
            Ok(()) | Err(_) => {
                self.release();
                Ok(())
            }
        }
    }

    /// Unloads all modules of the layout from the context, and frees its table. The context must be
    /// current, and no work of the layout may be pending or running. If the driver fails to unload
    /// a module or to free the table, the module or the table stays until the context is destroyed.
    fn unload(&self) {
        if self.table != 0 {
            // SAFETY: the table was allocated in this context, and is freed only here. No kernel of
            // the layout runs, because the context was synchronized or no kernel was launched. No
            // kernel is launched later, because the layout ends here.
            let _ = unsafe { self.driver.free(self.table) };
        }
        for (module, _) in self.kernels.iter().flatten() {
            // SAFETY: the module was loaded into this context. None of its kernels runs, because
            // the context was synchronized or no kernel was launched. None is launched later,
            // because the layout ends here.
            let _ = unsafe { self.driver.unload(*module) };
        }
    }

    /// Releases the context, which the layout has retained. A failure is ignored, because nothing
    /// can be done about it.
    fn release(&self) {
        let _ = self.driver.release_primary(self.device);
    }
}
