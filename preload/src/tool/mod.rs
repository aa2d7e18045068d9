//! Tool variables: the host's control variables, performance variables and categories, then ours.
//!
//! A tool sees the host's variables first. Hosts add variables while they initialize, and an index that was given out must stay, so
//! what is shown is a list that only grows: the host's as they were at the first look, ours, then what the host has added since.
//! Handles of ours are addresses in this library; all others are the host's. Nothing is shown before the host's own interface is
//! initialized, its error comes first, and nothing of ours under a host that is not known.
#![allow(non_snake_case, reason = "the names of MPI")]

use std::ffi::{CStr, c_char, c_int, c_void};

use ddtc::datatype::Named;
use ddtc::process::Mutex;
use ddtc::tool::{Kind, Value};
use ddtc_hosts::abi::{Abi, Tool};

use crate::handles::missing;
use crate::host::{HandleWord, Host};

/// A thing that is shown: the host's of this index, or ours.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Host(c_int),
    Ours(usize),
}

/// Variables that are shown, in order.
struct Shown(Mutex<Vec<Source>>);

impl Shown {
    const fn new() -> Shown {
        Shown(Mutex::new(Vec::new()))
    }

    /// The list, grown to what the host has now, with `ours` of ours.
    fn grown(&self, host: &Host, count: Option<Count>, ours: usize) -> Result<Vec<Source>, c_int> {
        let n = number(host, count)?;
        if host.abi.is_none() {
            // Nothing of ours, and what is listed may be another library's.
            return Ok((0..n).map(Source::Host).collect());
        }
        let mut list = self.0.lock();
        let first = list.is_empty();
        let known = list.iter().filter(|s| matches!(s, Source::Host(_))).count() as c_int;
        list.extend((known..n).map(Source::Host));
        if first {
            list.extend((0..ours).map(Source::Ours));
        }
        Ok(list.clone())
    }
}

type Count = unsafe extern "C-unwind" fn(*mut c_int) -> c_int;

/// How many of something the host has; its error while its interface is not initialized.
fn number(host: &Host, count: Option<Count>) -> Result<c_int, c_int> {
    let Some(count) = count else { return Err(missing(host)) };
    let mut n = 0;
    // SAFETY: a number to write to.
    let code = unsafe { count(&raw mut n) };
    if code == 0 { Ok(n) } else { Err(code) }
}

/// The host's error if its interface is not initialized.
fn ready(host: &Host) -> Result<(), c_int> {
    number(host, host.f.cvar_get_num).map(|_| ())
}

/// Returns the variable of an index; an index that shows nothing is one that the host does not have either.
fn at(list: &[Source], index: c_int) -> Source {
    let beyond = list.iter().filter(|s| matches!(s, Source::Host(_))).count() as c_int;
    let place = usize::try_from(index).map(|i| list.get(i).copied());
    place.map_or(Source::Host(index), |found| found.unwrap_or(Source::Host(beyond)))
}

/// Where a thing is shown.
fn place(list: &[Source], source: Source) -> Option<c_int> {
    list.iter().position(|s| *s == source).map(|i| i as c_int)
}

/// Where the host's thing is shown.
fn shown(list: &[Source], index: c_int) -> c_int {
    place(list, Source::Host(index)).unwrap_or(index)
}

/// Where ours are shown.
fn own(list: &[Source]) -> Vec<c_int> {
    let places = list.iter().enumerate().filter(|(_, s)| matches!(s, Source::Ours(_)));
    places.map(|(i, _)| i as c_int).collect()
}

/// Which of `handles` an address is.
fn member<T>(handles: &'static [T], handle: *const c_void) -> Option<usize> {
    let offset = handle.addr().checked_sub(handles.as_ptr().addr())?;
    let index = offset.checked_div(size_of::<T>())?;
    (index < handles.len()).then_some(index)
}

/// Whether a name of the caller's is this one.
///
/// # Safety
/// `name` must be null or a string.
unsafe fn is(name: *const c_char, known: &str) -> bool {
    // SAFETY: as the caller promises.
    !name.is_null() && unsafe { CStr::from_ptr(name) }.to_bytes() == known.as_bytes()
}

/// Writes a result that may not be wanted.
///
/// # Safety
/// `to` must be null or writable.
unsafe fn set(to: *mut c_int, value: c_int) {
    if !to.is_null() {
        // SAFETY: as the caller promises.
        unsafe { to.write(value) };
    }
}

/// A string by MPI_T's convention: cut to the buffer, the full length and one returned.
///
/// # Safety
/// `length` must be null or writable, and `buffer` null or of that length.
unsafe fn string(text: &str, buffer: *mut c_char, length: *mut c_int) {
    if length.is_null() {
        return;
    }
    // SAFETY: as the caller promises; no more than the buffer has is written.
    unsafe {
        let room = usize::try_from(*length).unwrap_or(0);
        if room > 0 && !buffer.is_null() {
            let n = text.len().min(room - 1);
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, n);
            buffer.add(n).write(0);
        }
        length.write(text.len() as c_int + 1);
    }
}

/// Writes a value; whether there is a place for it.
///
/// # Safety
/// `buffer` must be null or have room for a value of the variable's type.
unsafe fn put(value: &Value, buffer: *mut c_void) -> bool {
    if buffer.is_null() {
        return false;
    }
    // SAFETY: as the caller promises.
    unsafe {
        match *value {
            Value::Int(i) => buffer.cast::<c_int>().write_unaligned(i),
            Value::Unsigned(u) => buffer.cast::<u64>().write_unaligned(u),
            Value::Double(d) => buffer.cast::<f64>().write_unaligned(d),
            Value::Text(_) => return false,
        }
    }
    true
}

/// Reads a value.
///
/// # Safety
/// `buffer` must be null or hold a value of the type.
unsafe fn take(kind: Kind, buffer: *const c_void) -> Option<Value> {
    if buffer.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    unsafe {
        match kind {
            Kind::Int => Some(Value::Int(buffer.cast::<c_int>().read_unaligned())),
            Kind::Uint64 | Kind::UnsignedLongLong => {
                Some(Value::Unsigned(buffer.cast::<u64>().read_unaligned()))
            }
            Kind::Double => Some(Value::Double(buffer.cast::<f64>().read_unaligned())),
            Kind::Char(_) => None,
        }
    }
}

/// The host's handle of a variable's type.
fn datatype(host: &Host, kind: Kind) -> HandleWord {
    let named = match kind {
        Kind::Int => Named::Int,
        Kind::Uint64 => Named::Uint64,
        Kind::UnsignedLongLong => Named::UnsignedLongLong,
        Kind::Double => Named::Double,
        Kind::Char(_) => Named::Char,
    };
    host.handle(named).unwrap_or(host.type_null)
}

fn constants(host: &Host) -> Result<&'static Tool, c_int> {
    let abi: Option<&'static Abi> = host.abi;
    abi.map(|a| &a.tool).ok_or_else(|| missing(host))
}

macro_rules! tool {
    ($($(#[$doc:meta])* fn $name:ident($host:ident $(, $arg:ident: $type:ty)*) $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As the function of MPI 5.0, chapter 15, of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($arg: $type),*) -> c_int {
            let Some($host) = $crate::host::host() else { return $crate::handles::NO_HOST };
            let run = || -> Result<c_int, c_int> { $body };
            $crate::guard::guard(run).unwrap_or(Err($crate::handles::NO_HOST)).unwrap_or_else(|code| code)
        }
    )*};
}

/// Calls a function of the host.
macro_rules! call {
    ($host:ident.$f:ident($($arg:expr),*)) => {
        match $host.next.$f {
            // SAFETY: the caller's arguments, an index replaced by the host's own, or places of
            // this library for the results.
            Some(f) => Ok(unsafe { f($($arg),*) }),
            None => Err($crate::handles::missing($host)),
        }
    };
}

// After the macros that they use.
mod category;
mod control;
mod enumeration;
mod performance;
mod pvar_handles;

tool! {
    /// Ends the host's interface, and with its last user ours.
    fn MPI_T_finalize(host) {
        let code = call!(host.t_finalize())?;
        if code == 0 && ready(host).is_err() {
            pvar_handles::close_all();
        }
        Ok(code)
    }
}
