//! Calls that move bytes: packing, messages to oneself, collective and one-sided calls on `MPI_COMM_SELF`.

use std::ffi::{c_int, c_void};
use std::ops::{Deref, DerefMut};

use ddtc_hosts::fenced::Fenced;

use super::{Answer, Handle, Library, absent};

/// Bytes before and after what a datatype maps, which nobody may write.
const GUARD: usize = 64;

/// Bytes of the heap, or of pages between inaccessible ones.
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

/// Memory for some instances: everything from the lowest mapped byte to the highest, guards on both sides, and displacement 0 on a
/// multiple of 16.
#[derive(Debug)]
pub(crate) struct Area {
    bytes: Bytes,
    /// Index of the lowest mapped byte, and its displacement.
    start: usize,
    low: i64,
    span: usize,
}

impl Area {
    /// Memory for displacements from `low` to `high`, all bytes `fill`.
    pub(crate) fn new(low: i64, high: i64, fill: u8) -> Area {
        let span = usize::try_from(high - low).unwrap_or(0);
        let bytes = Bytes::Heap(vec![fill; span + 2 * GUARD + 16]);
        // Displacement 0 is at `address + start - low`, which is to be a multiple of 16.
        let address = bytes.as_ptr().addr() as i64;
        let past = (address + GUARD as i64 - low).rem_euclid(16);
        let start = GUARD + ((16 - past) % 16) as usize;
        Area { bytes, start, low, span }
    }

    /// Makes an area between inaccessible pages, with so many accessible bytes at least before and after; `behind` says at which of the two
    /// sides there are no more than the multiple of 16 asks for. On the heap where the system gives no pages.
    pub(crate) fn fenced(low: i64, high: i64, fill: u8, slack: [usize; 2], behind: bool) -> Area {
        let span = usize::try_from(high - low).unwrap_or(0);
        let [before, after] = slack;
        let Some(pages) = Fenced::new(before + span + after + 16) else { return Area::new(low, high, fill) };
        let mut bytes = Bytes::Fenced(pages);
        bytes.fill(fill);
        let first = if behind { bytes.len() - after - span } else { before };
        let past = (bytes.as_ptr().addr() as i64 + first as i64 - low).rem_euclid(16) as usize;
        let start = if behind { first - past } else { first + (16 - past) % 16 };
        Area { bytes, start, low, span }
    }

    /// Returns the bytes from the lowest displacement to the highest.
    pub(crate) fn data(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.span]
    }

    /// As [`Area::data`], to be written.
    pub(crate) fn data_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.span]
    }

    /// Returns all bytes, guards too.
    pub(crate) fn all(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the guards, before and after.
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

/// Answer of a receive about its message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// `MPI_Get_count` of the datatype received; none is `MPI_UNDEFINED`.
    pub(crate) count: Option<i64>,
    pub(crate) status: Status,
}

/// Room for any library's status.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status([u8; 64]);

fn int(call: &'static str, n: usize) -> Answer<c_int> {
    c_int::try_from(n).map_err(|_| absent(call))
}

/// All calls: a datatype is committed, an area holds all that `count` instances of it map, and a stream is as long as its slice.
impl Library {
    /// `MPI_Pack` at `position`, which moves on.
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
        // SAFETY: as for all calls here.
        let code =
            unsafe { pack(area.read(), n, t.0, stream.as_mut_ptr().cast(), room, &raw mut at, self.myself) };
        self.done(CALL, code)?;
        *position = usize::try_from(at).unwrap_or(usize::MAX);
        Ok(())
    }

    /// `MPI_Unpack` at `position`, which moves on.
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
        // SAFETY: as for all calls here.
        let code =
            unsafe { unpack(stream.as_ptr().cast(), room, &raw mut at, area.write(), n, t.0, self.myself) };
        self.done(CALL, code)?;
        *position = usize::try_from(at).unwrap_or(usize::MAX);
        Ok(())
    }

    /// `MPI_Pack_size`.
    pub(crate) fn pack_size(&self, count: u64, t: Handle) -> Answer<i64> {
        const CALL: &str = "MPI_Pack_size";
        let pack_size = self.f.pack_size.ok_or(absent(CALL))?;
        let mut size: c_int = 0;
        // SAFETY: a datatype, and a number to write to.
        self.done(CALL, unsafe { pack_size(int(CALL, count as usize)?, t.0, self.myself, &raw mut size) })?;
        Ok(i64::from(size))
    }

    /// `MPI_Pack_external_size` in external32.
    pub(crate) fn external_size(&self, count: u64, t: Handle) -> Answer<i64> {
        const CALL: &str = "MPI_Pack_external_size";
        let external_size = self.f.pack_external_size.ok_or(absent(CALL))?;
        let mut size = 0isize;
        let n = int(CALL, count as usize)?;
        // SAFETY: a C string, a datatype, and a number to write to.
        self.done(CALL, unsafe { external_size(c"external32".as_ptr(), n, t.0, &raw mut size) })?;
        Ok(size as i64)
    }

    /// `MPI_Pack_external` in external32 from the start of `stream`; returns the position after it.
    pub(crate) fn pack_external(&self, area: &Area, count: u64, t: Handle, stream: &mut [u8]) -> Answer<i64> {
        const CALL: &str = "MPI_Pack_external";
        let pack = self.f.pack_external.ok_or(absent(CALL))?;
        let (n, room, mut at) = (int(CALL, count as usize)?, stream.len() as isize, 0isize);
        let (name, stream) = (c"external32".as_ptr(), stream.as_mut_ptr().cast());
        // SAFETY: as for all calls here.
        self.done(CALL, unsafe { pack(name, area.read(), n, t.0, stream, room, &raw mut at) })?;
        Ok(at as i64)
    }

    /// Unpacks from external32: the reverse of [`Library::pack_external`].
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
        // SAFETY: as for all calls here.
        self.done(CALL, unsafe { unpack(name, stream, room, &raw mut at, area.write(), n, t.0) })?;
        Ok(at as i64)
    }

    /// `MPI_Sendrecv` with oneself: `from` goes out as one datatype and comes in as another.
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
        // SAFETY: as for all calls here; the status has room for any library's.
        let code = unsafe {
            sendrecv(from.read(), sent, out.0, 0, 7, to.write(), room, into.0, 0, 7, self.myself, at)
        };
        self.done(CALL, code)?;
        self.received(status, into)
    }

    /// Sends and receives by `MPI_Isend`, `MPI_Recv` and `MPI_Wait`.
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
        // SAFETY: as for all calls here; what is sent outlives the wait.
        unsafe {
            self.done(CALL, isend(from.read(), sent, out.0, 0, 7, self.myself, (&raw mut request).cast()))?;
            let code = recv(to.write(), room, into.0, 0, 7, self.myself, at);
            let waited = wait((&raw mut request).cast(), (&raw mut ignored).cast());
            self.done("MPI_Recv", code)?;
            self.done("MPI_Wait", waited)?;
        }
        self.received(status, into)
    }

    /// Sends a message to oneself that is longer than the receive, which was posted before it or comes behind it: the error class of the receive, and
    /// what the status says of it.
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
        // SAFETY: as for all calls here, but that the message does not fit: an error, and nothing is written beyond `to`. Areas outlive the waits.
        let code = unsafe {
            if posted {
                self.done("MPI_Irecv", irecv(to.write(), room, into.0, 0, 7, self.myself, word))?;
                let code = send(from.read(), sent, out.0, 0, 7, self.myself);
                let waited = wait(word, at);
                // Some tell the sender of it, who is the receiver.
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

    /// The class of a message that does not fit.
    pub(crate) fn truncate_class(&self) -> c_int {
        // MPICH's own ABI has it one lower than the others.
        if self.abi.name == ddtc_hosts::abi::MPICH.name { 14 } else { 15 }
    }

    fn received(&self, status: Status, t: Handle) -> Answer<Received> {
        let get_count = self.f.get_count.ok_or(absent("MPI_Get_count"))?;
        let at: *const c_void = (&raw const status).cast();
        let mut count = 0;
        // SAFETY: a status that a receive has written, a datatype, and a number to write to.
        self.done("MPI_Get_count", unsafe { get_count(at, t.0, &raw mut count) })?;
        Ok(Received { count: self.known(count.into()), status })
    }

    fn known(&self, n: i64) -> Option<i64> {
        (n != i64::from(self.abi.constants.undefined)).then_some(n)
    }

    /// `MPI_Get_elements` of what was received as `t`, and `MPI_Get_elements_x` where the library has it; none is `MPI_UNDEFINED`.
    pub(crate) fn elements(
        &self,
        received: &Received,
        t: Handle,
    ) -> Answer<(Option<i64>, Option<Option<i64>>)> {
        let get_elements = self.f.get_elements.ok_or(absent("MPI_Get_elements"))?;
        let at: *const c_void = (&raw const received.status).cast();
        let (mut elements, mut elements_x) = (0, 0i64);
        // SAFETY: as above.
        self.done("MPI_Get_elements", unsafe { get_elements(at, t.0, &raw mut elements) })?;
        let large = match self.f.get_elements_x {
            None => None,
            Some(get) => {
                // SAFETY: as above.
                self.done("MPI_Get_elements_x", unsafe { get(at, t.0, &raw mut elements_x) })?;
                Some(self.known(elements_x))
            }
        };
        Ok((self.known(elements.into()), large))
    }

    /// `from` to `to` over `MPI_COMM_SELF` by the collective call of that number, below [`Library::COLLECTIVES`].
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
        // SAFETY: as for all calls here; the communicator has one process, so arrays have one entry.
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

    /// One-sided between an origin and a window that is the whole of `target`'s area, whose displacement 0 is the window's byte `-low`, so that
    /// the target's datatype may map bytes before it. `MPI_Accumulate` adds by `MPI_SUM`.
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
        // SAFETY: an area has guards behind what it spans.
        let base = unsafe { target.bytes.as_mut_ptr().add(at) }.cast::<c_void>();
        let mut window = 0u64;
        let win: *mut c_void = (&raw mut window).cast();
        // SAFETY: as for all calls here; the window is freed before the area goes.
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
