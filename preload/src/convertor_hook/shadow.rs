//! Comparison of each piece that ddtc's movers have packed or unpacked with the bytes that Open
//! MPI's own mover packs from the program's buffer (`DDTC_HOOK=check`).
//!
//! Each request that ddtc's mover serves gets a second convertor, its *shadow*. The shadow is
//! prepared to send from the program's buffer of the request, and Open MPI's mover serves the
//! shadow. A piece that ddtc has packed must be equal to the piece that the shadow packs, and both
//! must end at the same position. After ddtc has unpacked a piece, the shadow packs it again, and
//! the result must be equal to the received bytes. The shadow always packs, so the comparison
//! writes nothing to the program's buffer, and never reads or writes gaps. The shadow advances with
//! the request, piece by piece. If the request is set to another position, a new shadow packs from
//! the beginning up to that position. If bytes differ, the interpreter decides whether Open MPI or
//! ddtc is wrong.

use std::collections::HashMap;

use ddtc::internal::datatype::Datatype;
use ddtc::internal::exec::interp;
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc::internal::process::{Lazy, Mutex};
use ddtc_hosts::faults;

use super::functions::{Functions, Own};
use super::layout::{Convertor, layout};
use crate::check::{CHECKS, Difference};
use crate::host::Host;

/// Maximum number of requests that have a shadow at the same time. If a further request needs a
/// shadow, all old shadows are dropped. The requests of the dropped shadows get new ones, which
/// pack from the beginning of the request again.
const MAX_SHADOWS: usize = 64;
/// Maximum number of bytes that a new shadow packs in one call, until it has reached the position
/// of its request.
const STEP: u64 = 64 << 10;

/// Identity of a request: its type, number of instances, buffer and number of packed bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Request {
    datatype: u64,
    /// Hash of the type's constructors, because Open MPI may give the handle of a freed type to
    /// another type. The stack of loops in an old shadow does not fit the description of the new
    /// type.
    constructors: u128,
    count: u64,
    buffer: u64,
    size: u64,
}

/// Second convertor of a request. Open MPI's mover serves this convertor, while ddtc's mover serves
/// the request's own convertor.
struct Shadow {
    own: Own,
    of: Request,
    /// Number of packed bytes of the request that the shadow has packed. It packs only whole
    /// elements.
    at: u64,
    /// Position of the request in its packed bytes, after the last piece that was compared.
    end: u64,
    /// Last received bytes before `end` that belong to an incomplete element. They are compared
    /// when the rest of the element has arrived.
    rest: Vec<u8>,
}

static SHADOWS: Lazy<Mutex<HashMap<usize, Shadow>>> = Lazy::new(Mutex::default);

/// A piece of a request that ddtc's mover has just packed or unpacked: the position of its first
/// packed byte, the buffers that were used, and the lengths that all buffers had before the call.
pub(crate) struct Piece<'a> {
    pub(crate) direction: Direction,
    pub(crate) first: u64,
    pub(crate) buffers: &'a [libc::iovec],
    pub(crate) given: &'a [usize],
}

impl Piece<'_> {
    /// Returns a copy of the packed bytes of the piece.
    ///
    /// # Safety
    /// The buffers must be valid.
    unsafe fn bytes(&self) -> Vec<u8> {
        let parts = self.buffers.iter().filter(|b| b.iov_len > 0);
        // SAFETY: the caller promises valid buffers, and only buffers with a length other than 0
        // are read.
        parts
            .flat_map(|b| unsafe { std::slice::from_raw_parts(b.iov_base.cast::<u8>(), b.iov_len) })
            .copied()
            .collect()
    }
}

impl Shadow {
    /// Returns a new shadow of a request. The shadow has already packed the bytes before
    /// `position`. If `position` lies inside an element, the shadow has packed only the bytes
    /// before this element. Returns `None` if Open MPI cannot make or prepare the convertor.
    ///
    /// # Safety
    /// `of` must identify a request of Open MPI that may be sent or received now.
    unsafe fn new(functions: &Functions, of: Request, position: u64) -> Option<Shadow> {
        let own = Own::new(functions, Direction::Pack)?;
        // SAFETY: the caller promises a request of Open MPI, whose type is committed.
        unsafe {
            let count = usize::try_from(of.count).ok()?;
            functions.prepare(&own, Direction::Pack, of.datatype, count, of.buffer as *const u8).ok()?;
        }
        let mut shadow = Shadow { own, of, at: 0, end: position, rest: Vec::new() };
        let mut memory = vec![0; STEP.min(position) as usize];
        while shadow.at < position {
            let length = (position - shadow.at).min(STEP) as usize;
            // SAFETY: the caller promises a request whose buffer can be read.
            let [sent] = unsafe { shadow.sends(functions, &mut memory, [length]) };
            if sent == 0 {
                break;
            }
        }
        Some(shadow)
    }

    /// Lets the shadow pack the next bytes of the request into buffers of these lengths, which lie
    /// one after the other in `memory`. Returns the number of bytes that were packed into each
    /// buffer.
    ///
    /// # Safety
    /// The program's buffer must be readable.
    unsafe fn sends<const N: usize>(
        &mut self,
        functions: &Functions,
        memory: &mut [u8],
        lengths: [usize; N],
    ) -> [usize; N] {
        let mut sent = lengths;
        // SAFETY: the contract of `sends_all` is this function's.
        unsafe { self.sends_all(functions, memory, &mut sent) };
        sent
    }

    /// Lets the shadow pack the next bytes of the request into any number of buffers of these
    /// lengths, which lie one after the other in `memory`. Sets each length to the number of bytes
    /// that were packed into the buffer.
    ///
    /// # Safety
    /// As for [`Shadow::sends`].
    unsafe fn sends_all(&mut self, functions: &Functions, memory: &mut [u8], lengths: &mut [usize]) {
        let (mut buffers, mut left): (Vec<libc::iovec>, _) = (Vec::new(), memory);
        for length in &mut *lengths {
            let (part, more) = left.split_at_mut((*length).min(left.len()));
            buffers.push(libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() });
            left = more;
        }
        let (mut n, mut bytes) = (buffers.len() as u32, 0);
        // SAFETY: the convertor is prepared and not complete, each buffer is a part of `memory`,
        // and the caller promises that the program's buffer is readable.
        unsafe {
            let sends = functions.by[Direction::Pack as usize];
            sends(self.own.convertor(), buffers.as_mut_ptr(), &raw mut n, &raw mut bytes);
        }
        for (i, length) in lengths.iter_mut().enumerate() {
            *length = if i < n as usize { buffers[i].iov_len } else { 0 };
        }
        self.at += bytes as u64;
    }

    /// Lets the shadow pack the piece that ddtc's mover has packed. Returns the difference between
    /// the two results, if there is one.
    ///
    /// # Safety
    /// As for [`Shadow::sends`]. The buffers of the piece must be valid.
    unsafe fn follows_sent(&mut self, functions: &Functions, piece: &Piece<'_>) -> Option<Differs> {
        // SAFETY: the caller promises valid buffers.
        let ours = unsafe { piece.bytes() };
        let (mut memory, mut lengths) = (vec![0; piece.given.iter().sum()], piece.given.to_vec());
        // SAFETY: the caller promises that the program's buffer is readable.
        unsafe { self.sends_all(functions, &mut memory, &mut lengths) };
        self.end = self.at;
        let mut theirs = Vec::new();
        let mut from = 0;
        for (&length, &given) in lengths.iter().zip(piece.given) {
            theirs.extend_from_slice(&memory[from..from + length]);
            from += given;
        }
        let lengths: Vec<usize> = lengths.into_iter().take_while(|&length| length > 0).collect();
        let used: Vec<usize> =
            piece.buffers.iter().map(|b| b.iov_len).take_while(|&length| length > 0).collect();
        if lengths != used {
            return Some(Differs::Lengths { ours: used, theirs: lengths });
        }
        compared(piece.first, &ours, &theirs)
    }

    /// Lets the shadow pack the piece that ddtc's mover has unpacked to the program's buffer.
    /// Returns the difference between the result and the received bytes, if there is one.
    ///
    /// # Safety
    /// As for [`Shadow::follows_sent`].
    unsafe fn follows_received(&mut self, functions: &Functions, piece: &Piece<'_>) -> Option<Differs> {
        // SAFETY: the caller promises valid buffers.
        let came = unsafe { piece.bytes() };
        let end = piece.first + came.len() as u64;
        let mut read = vec![0; (end - self.at) as usize];
        let length = read.len();
        // `known` has the received bytes from position `at` on, as far as they are known. If the
        // request was set to a position inside an element, the bytes of that element before the
        // position are not known.
        let mut known = std::mem::take(&mut self.rest);
        known.extend_from_slice(&came);
        let before = self.at;
        // SAFETY: the caller promises that the program's buffer is readable.
        let [sent] = unsafe { self.sends(functions, &mut read, [length]) };
        let from = end - known.len() as u64;
        let skipped = from.saturating_sub(before).min(sent as u64) as usize;
        let whole = (sent - skipped).min(known.len());
        let differs = compared(from.max(before), &known[..whole], &read[skipped..skipped + whole]);
        self.rest = known.split_off(whole);
        self.end = end;
        differs
    }
}

/// A difference between ddtc's mover and the shadow.
enum Differs {
    /// The movers of ddtc and Open MPI have filled the buffers of a piece to different lengths.
    Lengths { ours: Vec<usize>, theirs: Vec<usize> },
    /// The bytes differ from position `first` of the packed stream on. `ours` are the bytes that
    /// ddtc's mover has packed, or that were received; `theirs` are those that the shadow has
    /// packed.
    Bytes { first: u64, ours: Vec<u8>, theirs: Vec<u8> },
}

impl Differs {
    fn text(&self) -> String {
        match self {
            Differs::Lengths { ours, theirs } => {
                format!("inside, buffers hold {ours:?} bytes, the MPI library's {theirs:?}")
            }
            Differs::Bytes { first, ours, theirs } => {
                let different = ours.iter().zip(theirs).filter(|(a, b)| a != b).count();
                let show = |bytes: &[u8]| format!("{:02x?}", &bytes[..bytes.len().min(16)]);
                let (ours, theirs) = (show(ours), show(theirs));
                format!(
                    "inside, {different} bytes of a piece, first at {first}: {ours}, the MPI library's {theirs}"
                )
            }
        }
    }
}

fn compared(first: u64, ours: &[u8], theirs: &[u8]) -> Option<Differs> {
    let at = ours.iter().zip(theirs).position(|(a, b)| a != b)?;
    let (ours, theirs) = (ours[at..].to_vec(), theirs[at..].to_vec());
    Some(Differs::Bytes { first: first + at as u64, ours, theirs })
}

/// Returns true if `bytes`, which begin at position `first` of the packed stream, are equal to the
/// bytes in the program's buffer at the places that the type map gives for these positions.
///
/// # Safety
/// The program's buffer must be readable.
unsafe fn is_defined(t: &Datatype, of: Request, first: u64, bytes: &[u8]) -> bool {
    let Ok(segments) = interp::segments(t, of.count, first..first + bytes.len() as u64) else { return false };
    let mut left = bytes;
    segments.into_iter().all(|(displacement, length)| {
        let Some((here, rest)) = left.split_at_checked(length as usize) else { return false };
        left = rest;
        let place = (of.buffer as *const u8).wrapping_offset(displacement as isize);
        // SAFETY: the place is a run of the type map in the program's buffer, which is readable, as
        // the caller promises.
        here == unsafe { std::slice::from_raw_parts(place, here.len()) }
    })
}

/// Returns true if the packed bytes of a piece are equal to those that Open MPI's mover packs from
/// the program's buffer, or are right by the definition of the type. Returns true too if no shadow
/// can be made. Counts and reports a difference from Open MPI's mover.
///
/// # Safety
/// `convertor` must be a convertor of Open MPI whose mover is ddtc's and has just moved the piece.
/// `t` must be its type, and the type must live during the call.
pub(crate) unsafe fn agrees(
    host: &'static Host,
    functions: &Functions,
    convertor: Convertor,
    t: &Datatype,
    piece: &Piece<'_>,
) -> bool {
    CHECKS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    // SAFETY: the caller promises a convertor of Open MPI, and ddtc's mover is stored only after
    // the layout of convertors was proven.
    let of = unsafe {
        let (l, word) = (layout(), |offset| convertor.word(offset));
        Request {
            datatype: word(l.datatype),
            constructors: t.structural_hash(),
            count: word(l.count),
            buffer: word(l.buffer),
            size: word(l.size),
        }
    };
    let key = convertor.0.addr();
    let kept = SHADOWS.lock().remove(&key).filter(|shadow| shadow.of == of && shadow.end == piece.first);
    // SAFETY: `of` identifies the convertor's request. The request is under way, because Open MPI
    // has called the convertor's mover.
    let shadow = kept.or_else(|| unsafe { Shadow::new(functions, of, piece.first) });
    let Some(mut shadow) = shadow else { return true };
    // SAFETY: the request is under way, so its buffer is readable, and the caller promises that the
    // piece was just moved, so its buffers are valid.
    let found = unsafe {
        match piece.direction {
            Direction::Pack => shadow.follows_sent(functions, piece),
            Direction::Unpack => shadow.follows_received(functions, piece),
        }
    };
    if shadow.end < of.size {
        let mut shadows = SHADOWS.lock();
        if shadows.len() >= MAX_SHADOWS {
            shadows.clear();
        }
        shadows.insert(key, shadow);
    }
    let Some(differs) = found else { return true };
    let difference = Difference { host, datatype: t, count: of.count, direction: piece.direction };
    let defined = match &differs {
        Differs::Lengths { .. } => false,
        // SAFETY: the request is under way, so its buffer is readable.
        Differs::Bytes { first, ours, .. } => unsafe { is_defined(t, of, *first, ours) },
    };
    let what = || differs.text();
    if defined {
        difference.is_theirs(faults::find(host.library, t), what)
    } else {
        difference.is_ours(what)
    }
    defined
}
