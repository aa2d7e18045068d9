//! Calls that move bytes: packing, messages from the process to itself, and collective and
//! one-sided calls on `MPI_COMM_SELF`.

use std::ffi::{c_int, c_void};
use std::ops::{Deref, DerefMut};

use ddtc_hosts::fenced::Fenced;

use super::{Answer, Handle, Library, absent};

/// Number of guard bytes on each side of the bytes that a datatype maps. No call may write them.
const GUARD: usize = 64;

/// Bytes on the heap, or on accessible pages between inaccessible pages.
#[derive(Debug)]
enum Bytes {
    Heap(Vec<u8>),
    Fenced(Fenced),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Heap(bytes) => bytes,
            Bytes::Fenced(pages) => pages,
        }
    }
}

impl DerefMut for Bytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Bytes::Heap(bytes) => bytes,
            Bytes::Fenced(pages) => pages,
        }
    }
}

/// Memory for some instances of a datatype. It consists of the bytes from the lowest mapped byte to
/// the highest, with guards on both sides. Displacement 0 has an address that is a multiple of 16.
#[derive(Debug)]
pub(crate) struct Area {
    bytes: Bytes,
    /// Index of the lowest mapped byte in `bytes`, and the displacement of that byte.
    start: usize,
    low: i64,
    span: usize,
}

impl Area {
    /// Returns memory for the displacements from `low` to `high`, in which all bytes are `fill`.
    pub(crate) fn new(low: i64, high: i64, fill: u8) -> Area {
        let span = usize::try_from(high - low).unwrap_or(0);
        let bytes = Bytes::Heap(vec![fill; span + 2 * GUARD + 16]);
        // Displacement 0 is at `address + start - low`, which must be a multiple of 16.
        let address = bytes.as_ptr().addr() as i64;
        let past = (address + GUARD as i64 - low).rem_euclid(16);
        let start = GUARD + ((16 - past) % 16) as usize;
        Area { bytes, start, low, span }
    }

    /// Returns memory between inaccessible pages, with at least `slack` accessible bytes before and
    /// after the displacements from `low` to `high`.
    ///
    /// One inaccessible page is as close as possible: the page after the memory if `after_end` is
    /// true, or the page before it otherwise. Its distance from the displacements is the slack plus
    /// at most 15 bytes, which may be needed to align displacement 0 to 16 bytes. If the system
    /// gives no pages, returns memory on the heap, as [`Area::new`] does.
    pub(crate) fn fenced(low: i64, high: i64, fill: u8, slack: [usize; 2], after_end: bool) -> Area {
        let span = usize::try_from(high - low).unwrap_or(0);
        let [before, after] = slack;
        let Some(pages) = Fenced::new(before + span + after + 16) else { return Area::new(low, high, fill) };
        let mut bytes = Bytes::Fenced(pages);
        bytes.fill(fill);
        let first = if after_end { bytes.len() - after - span } else { before };
        let past = (bytes.as_ptr().addr() as i64 + first as i64 - low).rem_euclid(16) as usize;
        let start = if after_end { first - past } else { first + (16 - past) % 16 };
        Area { bytes, start, low, span }
    }

    /// Returns the bytes of the area without the guards, from the lowest displacement to the
    /// highest.
    pub(crate) fn data(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.span]
    }

    /// Returns the bytes of [`Area::data`] for writing.
    pub(crate) fn data_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.span]
    }

    /// Returns all bytes of the area, including the guard bytes before and after the data.
    pub(crate) fn all(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the guards before and after the data.
    pub(crate) fn guards(&self) -> [&[u8]; 2] {
        [&self.bytes[..self.start], &self.bytes[self.start + self.span..]]
    }

    fn read(&self) -> *const c_void {
        self.bytes.as_ptr().wrapping_add(self.start).wrapping_offset((-self.low) as isize).cast()
    }

    fn write(&mut self) -> *mut c_void {
        self.bytes.as_mut_ptr().wrapping_add(self.start).wrapping_offset((-self.low) as isize).cast()
    }
}

/// Status of a receive, and the count that the library computes from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// Result of `MPI_Get_count` for the datatype of the receive. None stands for `MPI_UNDEFINED`.
    pub(crate) count: Option<i64>,
    pub(crate) status: Status,
}

/// Memory that is large enough for the status of a receive (`MPI_Status`) of any MPI library.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status([u8; 64]);

fn int(call: &'static str, n: usize) -> Answer<c_int> {
    c_int::try_from(n).map_err(|_| absent(call))
}

/// The calls that move bytes. The callers guarantee that every datatype is committed, and that an
/// area holds all bytes that `count` instances of its datatype map. The number of packed bytes, or
/// of bytes for them, is the length of the slice `stream`.
impl Library {
    /// Calls `MPI_Pack` at `position`, and sets `position` to the place after the packed bytes.
    pub(crate) fn pack(
        &self,
        area: &Area,
        count: u64,
        t: Handle,
        stream: &mut [u8],
        position: &mut usize,
    ) -> Answer<()> {
        const CALL: &str = "MPI_Pack";
        let pack = self.f.pack.ok_or(absent(CALL))?;
        let mut at = int(CALL, *position)?;
        let (n, room) = (int(CALL, count as usize)?, int(CALL, stream.len())?);
        // SAFETY: as for all calls of this `impl`: `pack` is the library's function with its C
        // type, `t` is a committed datatype, `area` holds all bytes that `n` instances map,
        // `stream` has `room` bytes, and `at` is an integer to which the call may write.
        let code =
            unsafe { pack(area.read(), n, t.0, stream.as_mut_ptr().cast(), room, &raw mut at, self.myself) };
        self.done(CALL, code)?;
        *position = usize::try_from(at).unwrap_or(usize::MAX);
        Ok(())
    }

    /// Calls `MPI_Unpack` at `position`, and sets `position` to the place after the bytes that were
    /// read.
    pub(crate) fn unpack(
        &self,
        stream: &[u8],
        position: &mut usize,
        area: &mut Area,
        count: u64,
        t: Handle,
    ) -> Answer<()> {
        const CALL: &str = "MPI_Unpack";
        let unpack = self.f.unpack.ok_or(absent(CALL))?;
        let mut at = int(CALL, *position)?;
        let (n, room) = (int(CALL, count as usize)?, int(CALL, stream.len())?);
        // SAFETY: as for all calls of this `impl`: `unpack` is the library's function with its C
        // type, `t` is a committed datatype, `area` holds all bytes that `n` instances map,
        // `stream` has `room` bytes, and `at` is an integer to which the call may write.
        let code =
            unsafe { unpack(stream.as_ptr().cast(), room, &raw mut at, area.write(), n, t.0, self.myself) };
        self.done(CALL, code)?;
        *position = usize::try_from(at).unwrap_or(usize::MAX);
        Ok(())
    }

    /// Returns the size in bytes that `MPI_Pack_size` gives.
    pub(crate) fn pack_size(&self, count: u64, t: Handle) -> Answer<i64> {
        const CALL: &str = "MPI_Pack_size";
        let pack_size = self.f.pack_size.ok_or(absent(CALL))?;
        let mut size: c_int = 0;
        // SAFETY: `pack_size` is the library's function with its C type, `t` is a datatype of this
        // library, and `size` is a number to which the call may write.
        self.done(CALL, unsafe { pack_size(int(CALL, count as usize)?, t.0, self.myself, &raw mut size) })?;
        Ok(i64::from(size))
    }

    /// Returns the size in bytes that `MPI_Pack_external_size` gives for external32.
    pub(crate) fn external_size(&self, count: u64, t: Handle) -> Answer<i64> {
        const CALL: &str = "MPI_Pack_external_size";
        let external_size = self.f.pack_external_size.ok_or(absent(CALL))?;
        let mut size = 0isize;
        let n = int(CALL, count as usize)?;
        // SAFETY: `external_size` is the library's function with its C type, the name is a C
        // string, `t` is a datatype of this library, and `size` is a number to which the call may
        // write.
        self.done(CALL, unsafe { external_size(c"external32".as_ptr(), n, t.0, &raw mut size) })?;
        Ok(size as i64)
    }

    /// Packs in external32 with `MPI_Pack_external` to the start of `stream`, and returns the
    /// position after the packed bytes.
    pub(crate) fn pack_external(&self, area: &Area, count: u64, t: Handle, stream: &mut [u8]) -> Answer<i64> {
        const CALL: &str = "MPI_Pack_external";
        let pack = self.f.pack_external.ok_or(absent(CALL))?;
        let (n, room, mut at) = (int(CALL, count as usize)?, stream.len() as isize, 0isize);
        let (name, stream) = (c"external32".as_ptr(), stream.as_mut_ptr().cast());
        // SAFETY: as for all calls of this `impl`: `pack` is the library's function with its C
        // type, the name is a C string, `t` is a committed datatype, `area` holds all bytes that
        // `n` instances map, `stream` has `room` bytes, and `at` is a number to which the call may
        // write.
        self.done(CALL, unsafe { pack(name, area.read(), n, t.0, stream, room, &raw mut at) })?;
        Ok(at as i64)
    }

    /// Unpacks from external32 with `MPI_Unpack_external`, and returns the position after the bytes
    /// that were read.
    pub(crate) fn unpack_external(
        &self,
        stream: &[u8],
        area: &mut Area,
        count: u64,
        t: Handle,
    ) -> Answer<i64> {
        const CALL: &str = "MPI_Unpack_external";
        let unpack = self.f.unpack_external.ok_or(absent(CALL))?;
        let (n, room, mut at) = (int(CALL, count as usize)?, stream.len() as isize, 0isize);
        let (name, stream) = (c"external32".as_ptr(), stream.as_ptr().cast());
        // SAFETY: as for all calls of this `impl`: `unpack` is the library's function with its C
        // type, the name is a C string, `t` is a committed datatype, `area` holds all bytes that
        // `n` instances map, `stream` has `room` bytes, and `at` is a number to which the call may
        // write.
        self.done(CALL, unsafe { unpack(name, stream, room, &raw mut at, area.write(), n, t.0) })?;
        Ok(at as i64)
    }

    /// Sends a message from the process to itself with `MPI_Sendrecv`. The bytes of the area `from`
    /// are sent with the datatype `out`, and received into the area `to` with the datatype `into`.
    pub(crate) fn exchange(
        &self,
        (from, sent, out): (&Area, u64, Handle),
        (to, room, into): (&mut Area, u64, Handle),
    ) -> Answer<Received> {
        const CALL: &str = "MPI_Sendrecv";
        let sendrecv = self.f.sendrecv.ok_or(absent(CALL))?;
        let (sent, room) = (int(CALL, sent as usize)?, int(CALL, room as usize)?);
        let mut status = Status([0; 64]);
        let at: *mut c_void = (&raw mut status).cast();
        // SAFETY: as for all calls of this `impl`: `sendrecv` is the library's function with its C
        // type, both datatypes are committed, the areas hold all bytes that their instances map and
        // are different memory, and `at` points to memory for the status of any library.
        let code = unsafe {
            sendrecv(from.read(), sent, out.0, 0, 7, to.write(), room, into.0, 0, 7, self.myself, at)
        };
        self.done(CALL, code)?;
        self.received(status, into)
    }

    /// Sends a message from the process to itself with `MPI_Isend`, `MPI_Recv` and `MPI_Wait`.
    pub(crate) fn send_and_receive(
        &self,
        (from, sent, out): (&Area, u64, Handle),
        (to, room, into): (&mut Area, u64, Handle),
    ) -> Answer<Received> {
        const CALL: &str = "MPI_Isend";
        let (isend, recv, wait) = (self.f.isend, self.f.recv, self.f.wait);
        let (Some(isend), Some(recv), Some(wait)) = (isend, recv, wait) else { return Err(absent(CALL)) };
        let (sent, room) = (int(CALL, sent as usize)?, int(CALL, room as usize)?);
        let (mut request, mut status, mut ignored) = (0u64, Status([0; 64]), Status([0; 64]));
        let at: *mut c_void = (&raw mut status).cast();
        // SAFETY: as for all calls of this `impl`: the functions are the library's with their C
        // types, both datatypes are committed, and the areas hold all bytes that their instances
        // map. `request` has room for a request, `status` and `ignored` for the status of any
        // library, and `from` outlives the wait.
        unsafe {
            self.done(CALL, isend(from.read(), sent, out.0, 0, 7, self.myself, (&raw mut request).cast()))?;
            let code = recv(to.write(), room, into.0, 0, 7, self.myself, at);
            let waited = wait((&raw mut request).cast(), (&raw mut ignored).cast());
            self.done("MPI_Recv", code)?;
            self.done("MPI_Wait", waited)?;
        }
        self.received(status, into)
    }

    /// Sends a message from the process to itself that is longer than the receive. Returns the
    /// error class of the receive, or 0 if it reports success. The receive is posted before the
    /// send if `posted` is true, and after it otherwise.
    pub(crate) fn truncated(
        &self,
        posted: bool,
        (from, sent, out): (&Area, u64, Handle),
        (to, room, into): (&mut Area, u64, Handle),
    ) -> Answer<c_int> {
        const CALL: &str = "MPI_Isend";
        let (isend, send, recv, irecv, wait) =
            (self.f.isend, self.f.send, self.f.recv, self.f.irecv, self.f.wait);
        let (Some(isend), Some(send), Some(recv), Some(irecv), Some(wait)) = (isend, send, recv, irecv, wait)
        else {
            return Err(absent(CALL));
        };
        let (sent, room) = (int(CALL, sent as usize)?, int(CALL, room as usize)?);
        let (mut request, mut status) = (0u64, Status([0; 64]));
        let (word, at): (*mut c_void, *mut c_void) = ((&raw mut request).cast(), (&raw mut status).cast());
        // SAFETY: as for all calls of this `impl`: the functions are the library's with their C
        // types, both datatypes are committed, the areas hold all bytes that their instances map,
        // and there is room for a request and a status. Only the message does not fit, which is an
        // error in MPI and permits no write outside of what `to` maps. Both areas outlive the
        // waits.
        let code = unsafe {
            if posted {
                self.done("MPI_Irecv", irecv(to.write(), room, into.0, 0, 7, self.myself, word))?;
                let code = send(from.read(), sent, out.0, 0, 7, self.myself);
                let waited = wait(word, at);
                // Some libraries report the truncation to the sender. Here the sender is the same
                // process, so the error of the send counts if the receive reports none.
                if waited == 0 { code } else { waited }
            } else {
                self.done(CALL, isend(from.read(), sent, out.0, 0, 7, self.myself, word))?;
                let code = recv(to.write(), room, into.0, 0, 7, self.myself, at);
                wait(word, (&raw mut status).cast());
                code
            }
        };
        Ok(if code == 0 { 0 } else { self.class(code) })
    }

    /// Returns the library's value of `MPI_ERR_TRUNCATE`, the error class for a message that does
    /// not fit.
    pub(crate) fn truncate_class(&self) -> c_int {
        // In MPICH's own ABI the class has the number 14, in the other two ABIs 15.
        if self.abi.name == ddtc_hosts::abi::MPICH.name { 14 } else { 15 }
    }

    // Returns the status of a receive with the datatype `t`, and the count from `MPI_Get_count`.
    fn received(&self, status: Status, t: Handle) -> Answer<Received> {
        let get_count = self.f.get_count.ok_or(absent("MPI_Get_count"))?;
        let at: *const c_void = (&raw const status).cast();
        let mut count = 0;
        // SAFETY: `get_count` is the library's function with its C type, `at` points to a status
        // that a receive has written, `t` is a datatype of this library, and `count` is a number to
        // which the call may write.
        self.done("MPI_Get_count", unsafe { get_count(at, t.0, &raw mut count) })?;
        Ok(Received { count: self.known(count.into()), status })
    }

    fn known(&self, n: i64) -> Option<i64> {
        (n != i64::from(self.abi.constants.undefined)).then_some(n)
    }

    /// Returns the result of `MPI_Get_elements` for a message that was received with the datatype
    /// `t`, and the result of `MPI_Get_elements_x` if the library has that function. Inside each
    /// result, none stands for `MPI_UNDEFINED`.
    pub(crate) fn elements(
        &self,
        received: &Received,
        t: Handle,
    ) -> Answer<(Option<i64>, Option<Option<i64>>)> {
        let get_elements = self.f.get_elements.ok_or(absent("MPI_Get_elements"))?;
        let at: *const c_void = (&raw const received.status).cast();
        let (mut elements, mut elements_x) = (0, 0i64);
        // SAFETY: `get_elements` is the library's function with its C type, `at` points to a status
        // that a receive has written, `t` is a datatype of this library, and `elements` is a number
        // to which the call may write.
        self.done("MPI_Get_elements", unsafe { get_elements(at, t.0, &raw mut elements) })?;
        let large = match self.f.get_elements_x {
            None => None,
            Some(get) => {
                // SAFETY: as above, for a number of 64 bits.
                self.done("MPI_Get_elements_x", unsafe { get(at, t.0, &raw mut elements_x) })?;
                Some(self.known(elements_x))
            }
        };
        Ok((self.known(elements.into()), large))
    }

    /// Moves `from` to `to` over `MPI_COMM_SELF` with the collective call that has the index
    /// `which` in [`Library::COLLECTIVES`].
    pub(crate) fn collective(
        &self,
        which: usize,
        (from, sent, out): (&Area, u64, Handle),
        (to, room, into): (&mut Area, u64, Handle),
    ) -> Answer<()> {
        let call = Library::COLLECTIVES[which];
        let f = &self.f;
        let (n, m) = (int(call, sent as usize)?, int(call, room as usize)?);
        let (from, to, comm) = (from.read(), to.write(), self.myself);
        // SAFETY: as for all calls of this `impl`: each function is the library's with its C type,
        // both datatypes are committed, and the areas hold all bytes that their instances map. The
        // communicator has one process, so arrays have one entry. An array of handles may be read
        // as one handle in the width of the ABI.
        let code = unsafe {
            match which {
                0 => f.allgather.ok_or(absent(call))?(from, n, out.0, to, m, into.0, comm),
                1 => f.gather.ok_or(absent(call))?(from, n, out.0, to, m, into.0, 0, comm),
                2 => f.scatter.ok_or(absent(call))?(from, n, out.0, to, m, into.0, 0, comm),
                _ => {
                    let zero: c_int = 0;
                    let (outs, ins) = ([out.0], [into.0]);
                    f.alltoallw.ok_or(absent(call))?(
                        from,
                        &raw const n,
                        &raw const zero,
                        outs.as_ptr().cast(),
                        to,
                        &raw const m,
                        &raw const zero,
                        ins.as_ptr().cast(),
                        comm,
                    )
                }
            }
        };
        self.done(call, code)
    }

    /// Names of the collective calls.
    pub(crate) const COLLECTIVES: [&str; 4] = ["MPI_Allgather", "MPI_Gather", "MPI_Scatter", "MPI_Alltoallw"];
    /// Names of the one-sided calls.
    pub(crate) const ONE_SIDED: [&str; 3] = ["MPI_Put", "MPI_Get", "MPI_Accumulate"];

    /// Makes the one-sided call with the index `which` in [`Library::ONE_SIDED`] between an origin
    /// and a window. The window covers all data of `target`'s area. The target displacement is
    /// `-low` bytes, which is where displacement 0 of the area is. So the target's datatype may map
    /// bytes before that place. `MPI_Accumulate` uses the operation `MPI_SUM`.
    pub(crate) fn one_sided(
        &self,
        which: usize,
        (origin, n, out): (&mut Area, u64, Handle),
        (target, m, into): (&mut Area, u64, Handle),
    ) -> Answer<()> {
        let call = Library::ONE_SIDED[which];
        let f = &self.f;
        let (Some(create), Some(free), Some(fence)) = (f.win_create, f.win_free, f.win_fence) else {
            return Err(absent("MPI_Win_create"));
        };
        let (n, m) = (int(call, n as usize)?, int(call, m as usize)?);
        let (at, span) = (target.start, target.span.max(1));
        let disp = -target.low as isize;
        // SAFETY: `at` is the index of the first data byte, and the guards after the data make it
        // an index within `bytes`.
        let base = unsafe { target.bytes.as_mut_ptr().add(at) }.cast::<c_void>();
        let mut window = 0u64;
        let win: *mut c_void = (&raw mut window).cast();
        // SAFETY: as for all calls of this `impl`: each function is the library's with its C type,
        // both datatypes are committed, and the areas hold all bytes that their instances map. The
        // window covers `span` bytes from `base` on, of which all are in the area: an empty span
        // counts as 1, and there are guards after it. The window is freed before the area is
        // dropped, unless a function is missing, which ends the calls early and leaves the window
        // to the worker process.
        unsafe {
            self.done("MPI_Win_create", create(base, span as isize, 1, self.info_null, self.myself, win))?;
            let window = window & self.abi.handle_mask;
            if let Some(set) = f.win_set_errhandler {
                set(window, self.errors_return);
            }
            let opened = fence(0, window);
            let code = match which {
                0 => f.put.ok_or(absent(call))?(origin.read(), n, out.0, 0, disp, m, into.0, window),
                1 => f.get.ok_or(absent(call))?(origin.write(), n, out.0, 0, disp, m, into.0, window),
                _ => f.accumulate.ok_or(absent(call))?(
                    origin.read(),
                    n,
                    out.0,
                    0,
                    disp,
                    m,
                    into.0,
                    self.op_sum,
                    window,
                ),
            };
            let closed = fence(0, window);
            let freed = free(win);
            self.done("MPI_Win_fence", opened)?;
            self.done(call, code)?;
            self.done("MPI_Win_fence", closed)?;
            self.done("MPI_Win_free", freed)
        }
    }
}
