//! `DDTC_INSIDE=check`: each piece that our movers moved is compared with what the host's own sender makes of the program's buffer.
//!
//! Beside every request of ours goes a convertor of the host's, its shadow, that sends from the same buffer. What is sent must be what the shadow sends, cut where
//! it cuts. What was received is read back by it: nothing that it writes reaches the program, and gaps are never touched. It follows piece by piece; where a
//! request is placed, it comes from the beginning. Where bytes differ the interpreter says whose fault that is.

use std::collections::HashMap;

use ddtc::datatype::Datatype;
use ddtc::exec::interp;
use ddtc::kind::Direction;
use ddtc::process::{Lazy, Mutex};
use ddtc_hosts::faults;

use super::functions::{Functions, Own};
use super::layout::{Convertor, layout};
use crate::check::{CHECKS, Difference};
use crate::host::Host;

/// Requests that have a shadow at the same time; beyond that all come from the beginning.
const MOST: usize = 64;
/// Bytes that a shadow sends at a time on its way to a position.
const STEP: u64 = 64 << 10;

/// What a request is of: its type, its instances, its buffer, its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Request {
    datatype: u64,
    /// Hash of the type's constructors. The handle of a freed type may be given to another type,
    /// whose description does not fit the stack of the old shadow.
    constructors: u128,
    count: u64,
    buffer: u64,
    size: u64,
}

/// The host's convertor beside one of ours.
struct Shadow {
    own: Own,
    of: Request,
    /// Packed bytes that it has sent: whole elements.
    at: u64,
    /// Where the request stands.
    end: u64,
    /// What was received of an element that is not whole: the last bytes before `end`.
    rest: Vec<u8>,
}

static SHADOWS: Lazy<Mutex<HashMap<usize, Shadow>>> = Lazy::new(Mutex::default);

/// A piece that was just moved: where it began, the buffers that were used, and how long they had been.
pub(crate) struct Piece<'a> {
    pub(crate) direction: Direction,
    pub(crate) first: u64,
    pub(crate) buffers: &'a [libc::iovec],
    pub(crate) given: &'a [usize],
}

impl Piece<'_> {
    /// Its bytes.
    ///
    /// # Safety
    /// The buffers must be valid.
    unsafe fn bytes(&self) -> Vec<u8> {
        let parts = self.buffers.iter().filter(|b| b.iov_len > 0);
        // SAFETY: as the caller promises.
        parts
            .flat_map(|b| unsafe { std::slice::from_raw_parts(b.iov_base.cast::<u8>(), b.iov_len) })
            .copied()
            .collect()
    }
}

impl Shadow {
    /// One that stands at a position, or at the last end of an element before it.
    ///
    /// # Safety
    /// `of` must be what a request of the host's is of that may be sent or received now.
    unsafe fn at(functions: &Functions, of: Request, position: u64) -> Option<Shadow> {
        let own = Own::new(functions, Direction::Pack)?;
        // SAFETY: as the caller promises.
        unsafe {
            let count = usize::try_from(of.count).ok()?;
            functions.prepare(&own, Direction::Pack, of.datatype, count, of.buffer as *const u8).ok()?;
        }
        let mut shadow = Shadow { own, of, at: 0, end: position, rest: Vec::new() };
        let mut room = vec![0; STEP.min(position) as usize];
        while shadow.at < position {
            let length = (position - shadow.at).min(STEP) as usize;
            // SAFETY: as the caller promises.
            let [sent] = unsafe { shadow.sends(functions, &mut room, [length]) };
            if sent == 0 {
                break;
            }
        }
        Some(shadow)
    }

    /// Sends into buffers of these lengths, which lie behind each other: how long they then are.
    ///
    /// # Safety
    /// The program's buffer must be readable.
    unsafe fn sends<const N: usize>(
        &mut self,
        functions: &Functions,
        room: &mut [u8],
        lengths: [usize; N],
    ) -> [usize; N] {
        let mut sent = lengths;
        // SAFETY: as the caller promises.
        unsafe { self.sends_all(functions, room, &mut sent) };
        sent
    }

    /// The same of any number of buffers.
    ///
    /// # Safety
    /// As [`Shadow::sends`].
    unsafe fn sends_all(&mut self, functions: &Functions, room: &mut [u8], lengths: &mut [usize]) {
        let (mut buffers, mut left): (Vec<libc::iovec>, _) = (Vec::new(), room);
        for length in &mut *lengths {
            let (part, more) = left.split_at_mut((*length).min(left.len()));
            buffers.push(libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() });
            left = more;
        }
        let (mut n, mut bytes) = (buffers.len() as u32, 0);
        // SAFETY: a prepared convertor that is not complete, buffers that are there; the program's buffer is readable, as the caller promises.
        unsafe {
            let sends = functions.by[Direction::Pack as usize];
            sends(self.own.convertor(), buffers.as_mut_ptr(), &raw mut n, &raw mut bytes);
        }
        for (i, length) in lengths.iter_mut().enumerate() {
            *length = if i < n as usize { buffers[i].iov_len } else { 0 };
        }
        self.at += bytes as u64;
    }

    /// Sends the piece too: what differs.
    ///
    /// # Safety
    /// As [`Shadow::sends`]; the piece is valid.
    unsafe fn follows_sent(&mut self, functions: &Functions, piece: &Piece<'_>) -> Option<Differs> {
        // SAFETY: as the caller promises.
        let ours = unsafe { piece.bytes() };
        let (mut room, mut lengths) = (vec![0; piece.given.iter().sum()], piece.given.to_vec());
        // SAFETY: as the caller promises.
        unsafe { self.sends_all(functions, &mut room, &mut lengths) };
        self.end = self.at;
        let mut theirs = Vec::new();
        let mut from = 0;
        for (&length, &given) in lengths.iter().zip(piece.given) {
            theirs.extend_from_slice(&room[from..from + length]);
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

    /// Reads back what was received: what differs from what came.
    ///
    /// # Safety
    /// As [`Shadow::follows_sent`].
    unsafe fn follows_received(&mut self, functions: &Functions, piece: &Piece<'_>) -> Option<Differs> {
        // SAFETY: as the caller promises.
        let came = unsafe { piece.bytes() };
        let end = piece.first + came.len() as u64;
        let mut read = vec![0; (end - self.at) as usize];
        let length = read.len();
        // What came before and lies behind `at`; fewer bytes where a request was placed inside an element: those before are not known.
        let mut known = std::mem::take(&mut self.rest);
        known.extend_from_slice(&came);
        let before = self.at;
        // SAFETY: as the caller promises.
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

/// What differs.
enum Differs {
    /// Where the buffers end.
    Lengths { ours: Vec<usize>, theirs: Vec<usize> },
    /// Bytes from a position of the stream on: those that we sent, or that came.
    Bytes { first: u64, ours: Vec<u8>, theirs: Vec<u8> },
}

impl Differs {
    fn text(&self) -> String {
        match self {
            Differs::Lengths { ours, theirs } => {
                format!("inside, buffers hold {ours:?} bytes, the host's {theirs:?}")
            }
            Differs::Bytes { first, ours, theirs } => {
                let different = ours.iter().zip(theirs).filter(|(a, b)| a != b).count();
                let show = |bytes: &[u8]| format!("{:02x?}", &bytes[..bytes.len().min(16)]);
                let (ours, theirs) = (show(ours), show(theirs));
                format!("inside, {different} bytes of a piece, first at {first}: {ours}, the host's {theirs}")
            }
        }
    }
}

fn compared(first: u64, ours: &[u8], theirs: &[u8]) -> Option<Differs> {
    let at = ours.iter().zip(theirs).position(|(a, b)| a != b)?;
    let (ours, theirs) = (ours[at..].to_vec(), theirs[at..].to_vec());
    Some(Differs::Bytes { first: first + at as u64, ours, theirs })
}

/// Whether bytes of the stream from `first` on are what the type map says of the program's buffer.
///
/// # Safety
/// The buffer must be readable.
unsafe fn is_defined(t: &Datatype, of: Request, first: u64, bytes: &[u8]) -> bool {
    let Ok(segments) = interp::segments(t, of.count, first..first + bytes.len() as u64) else { return false };
    let mut left = bytes;
    segments.into_iter().all(|(displacement, length)| {
        let Some((here, rest)) = left.split_at_checked(length as usize) else { return false };
        left = rest;
        let place = (of.buffer as *const u8).wrapping_offset(displacement as isize);
        // SAFETY: a piece of the type map, which is readable, as the caller promises.
        here == unsafe { std::slice::from_raw_parts(place, here.len()) }
    })
}

/// Whether a piece is what the host's sender makes of the buffer, or what it should make of it; a difference is counted and said.
///
/// # Safety
/// `convertor` must be one of ours whose mover has just moved the piece, of a type `t` that lives.
pub(crate) unsafe fn agrees(
    host: &'static Host,
    functions: &Functions,
    convertor: Convertor,
    t: &Datatype,
    piece: &Piece<'_>,
) -> bool {
    CHECKS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    // SAFETY: as the caller promises.
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
    // SAFETY: as the caller promises.
    let shadow = kept.or_else(|| unsafe { Shadow::at(functions, of, piece.first) });
    let Some(mut shadow) = shadow else { return true };
    // SAFETY: as the caller promises.
    let found = unsafe {
        match piece.direction {
            Direction::Pack => shadow.follows_sent(functions, piece),
            Direction::Unpack => shadow.follows_received(functions, piece),
        }
    };
    if shadow.end < of.size {
        let mut shadows = SHADOWS.lock();
        if shadows.len() >= MOST {
            shadows.clear();
        }
        shadows.insert(key, shadow);
    }
    let Some(differs) = found else { return true };
    let difference = Difference { host, datatype: t, count: of.count, direction: piece.direction };
    let defined = match &differs {
        Differs::Lengths { .. } => false,
        // SAFETY: as the caller promises.
        Differs::Bytes { first, ours, .. } => unsafe { is_defined(t, of, *first, ours) },
    };
    let what = || differs.text();
    if defined {
        difference.is_theirs(faults::of(host.library, t), what)
    } else {
        difference.is_ours(what)
    }
    defined
}
