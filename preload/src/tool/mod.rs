//! MPI's tool information interface (`MPI_T`): the MPI library's control variables, performance
//! variables and categories, with ddtc's own added.
//!
//! MPI libraries add variables while they initialize, and an index that a tool was given must stay
//! valid. So items are only appended to the lists that tools see. A list begins with the items that
//! the MPI library has when the list is first used. ddtc's items follow, and then the items that
//! the MPI library adds later.
//!
//! Handles of ddtc's items are addresses of bytes in the preload library; all other handles are the
//! MPI library's. Before the MPI library's own `MPI_T` interface is initialized, every function
//! returns the MPI library's error. If the MPI library's ABI is not known, no item of ddtc's is
//! shown.
#![allow(non_snake_case, reason = "the names of MPI")]

use std::ffi::{CStr, c_char, c_int, c_void};

use ddtc::internal::datatype::Named;
use ddtc::internal::process::Mutex;
use ddtc::internal::tool::{Kind, Value};
use ddtc_hosts::abi::{Abi, Tool};

use crate::handles::missing;
use crate::host::{HandleWord, Host};

/// Origin of an item in a list that tools see: the MPI library or ddtc, with the item's index
/// there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Host(c_int),
    Ours(usize),
}

/// List of the items of one kind (control variables, performance variables or categories) that
/// tools see, in the order of their indices.
struct Shown(Mutex<Vec<Source>>);

impl Shown {
    const fn new() -> Shown {
        Shown(Mutex::new(Vec::new()))
    }

    /// Returns the list of items that tools see, after appending the items that the MPI library has
    /// added. `count`: the MPI library's function that returns the number of its items. When the
    /// list is first used, `ours` items of ddtc's are appended too.
    fn grown(&self, host: &Host, count: Option<Count>, ours: usize) -> Result<Vec<Source>, c_int> {
        let n = number(host, count)?;
        if host.abi.is_none() {
            // No item of ddtc's is shown under an MPI library whose ABI is not known, and the
            // stored list may be that of another MPI library in this process.
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

/// Returns the number of the MPI library's items, which the MPI library's function `count` reports.
/// Returns the MPI library's error if its `MPI_T` interface is not initialized.
fn number(host: &Host, count: Option<Count>) -> Result<c_int, c_int> {
    let Some(count) = count else { return Err(missing(host)) };
    let mut n = 0;
    // SAFETY: `n` is a number to write to, the only argument of the function.
    let code = unsafe { count(&raw mut n) };
    if code == 0 { Ok(n) } else { Err(code) }
}

/// Returns the MPI library's error if its `MPI_T` interface is not initialized.
fn ready(host: &Host) -> Result<(), c_int> {
    number(host, host.f.cvar_get_num).map(|_| ())
}

/// Returns the origin of the item at an index of a list. For an index beyond the list, returns an
/// index that the MPI library does not have either, so that the MPI library raises the error.
fn source_at(list: &[Source], index: c_int) -> Source {
    let beyond = list.iter().filter(|s| matches!(s, Source::Host(_))).count() as c_int;
    let place = usize::try_from(index).map(|i| list.get(i).copied());
    place.map_or(Source::Host(index), |found| found.unwrap_or(Source::Host(beyond)))
}

/// Returns the index of an item in a list.
fn index_of(list: &[Source], source: Source) -> Option<c_int> {
    list.iter().position(|s| *s == source).map(|i| i as c_int)
}

/// Returns the index in a list of the item that has this index in the MPI library. If the list does
/// not have the item, returns the MPI library's index.
fn shown(list: &[Source], index: c_int) -> c_int {
    index_of(list, Source::Host(index)).unwrap_or(index)
}

/// Returns the indices of ddtc's items in a list.
fn own(list: &[Source]) -> Vec<c_int> {
    let places = list.iter().enumerate().filter(|(_, s)| matches!(s, Source::Ours(_)));
    places.map(|(i, _)| i as c_int).collect()
}

/// Returns the index in `handles` of the element that lies at an address.
fn member<T>(handles: &'static [T], handle: *const c_void) -> Option<usize> {
    let offset = handle.addr().checked_sub(handles.as_ptr().addr())?;
    let index = offset.checked_div(size_of::<T>())?;
    (index < handles.len()).then_some(index)
}

/// Returns true if a name that the tool has passed is equal to `known`.
///
/// # Safety
/// `name` must be null or a string.
unsafe fn is(name: *const c_char, known: &str) -> bool {
    // SAFETY: a name that is not null is a string, as the caller promises.
    !name.is_null() && unsafe { CStr::from_ptr(name) }.to_bytes() == known.as_bytes()
}

/// Writes a result of a tool's call to the address `to`, which is null if the tool does not want
/// it.
///
/// # Safety
/// `to` must be null or writable.
unsafe fn set(to: *mut c_int, value: c_int) {
    if !to.is_null() {
        // SAFETY: `to` is not null, so it is writable, as the caller promises.
        unsafe { to.write(value) };
    }
}

/// Writes a string by `MPI_T`'s convention: the string is cut to the buffer's size, and `length`
/// becomes the full length of the string plus one for the terminating null character.
///
/// # Safety
/// `length` must be null or point to the number of characters of `buffer`. `buffer` must be null or
/// writable for that many characters.
unsafe fn string(text: &str, buffer: *mut c_char, length: *mut c_int) {
    if length.is_null() {
        return;
    }
    // SAFETY: `length` is not null, so it points to the size of the buffer, as the caller promises.
    // At most `room` characters are written, which is that size.
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

/// Writes the value of a variable to a tool's buffer. Returns false if `buffer` is null, or if the
/// value is a text. No variable that tools can see has a text as its value.
///
/// # Safety
/// `buffer` must be null or have room for a value of the variable's type.
unsafe fn put(value: &Value, buffer: *mut c_void) -> bool {
    if buffer.is_null() {
        return false;
    }
    // SAFETY: the buffer is not null, so it has room for the value, as the caller promises.
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

/// Reads a value of type `kind` from a tool's buffer; `None` if `buffer` is null or the type is a
/// text.
///
/// # Safety
/// `buffer` must be null or hold a value of the type.
unsafe fn take(kind: Kind, buffer: *const c_void) -> Option<Value> {
    if buffer.is_null() {
        return None;
    }
    // SAFETY: the buffer is not null, so it holds a value of the type, as the caller promises.
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

/// Returns the MPI library's handle of the datatype of a variable's values.
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

/// Exports functions of `MPI_T`. The body of a function returns the error code of the call, and may
/// return early with an error code in `Err`. A panic in the body becomes an error code.
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

/// Calls the MPI library's function, or a PMPI layer's if the layer has the function, and gives the
/// error code that the function returns in `Ok`. Gives an error code in `Err` if there is no such
/// function.
macro_rules! call {
    ($host:ident.$f:ident($($arg:expr),*)) => {
        match $host.next.$f {
            // SAFETY: the arguments are those of the tool's call, except that the MPI library's own
            // index may replace an index, or this library's variables may replace the places for
            // the results.
            Some(f) => Ok(unsafe { f($($arg),*) }),
            None => Err($crate::handles::missing($host)),
        }
    };
}

// These modules use the macros above, so the modules must come after the macros.
mod category;
mod control;
mod enumeration;
mod performance;
mod pvar_handles;

tool! {
    /// Finalizes the MPI library's `MPI_T` interface. If the caller was the last user of the
    /// interface, frees all handles of ddtc's performance variables.
    fn MPI_T_finalize(host) {
        let code = call!(host.t_finalize())?;
        if code == 0 && ready(host).is_err() {
            pvar_handles::close_all();
        }
        Ok(code)
    }
}
