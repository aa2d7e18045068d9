//! Tool variables: the host's control variables and categories, then ours.
//!
//! A tool sees the host's variables first. Hosts add variables while they initialize, and an index that was given out must stay, so
//! what is shown is a list that only grows: the host's as they were at the first look, ours, then what the host has added since.
//! Handles of ours are addresses in this library; all others are the host's. Performance variables and enumerations are the host's
//! alone. Nothing is shown before the host's own interface is initialized: its error comes first.
#![allow(non_snake_case, reason = "the names of MPI")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use ddtc::datatype::Named;
use ddtc::tool::{CONTROLS, Control, Kind, Value, read_control, write_control};

use crate::abi::Abi;
use crate::guard::guard;
use crate::host::{Host, host};
use crate::requests::set_handle;
use crate::types;
use crate::wrap::{NO_HOST, missing};

/// Our control variables: those of the engine.
fn controls() -> impl Iterator<Item = &'static Control> {
    CONTROLS.iter().filter(|c| c.name != "ddtc_report")
}

/// A thing that is shown: the host's of this index, or ours.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Host(c_int),
    Ours(usize),
}

/// What is shown, in order.
struct Shown(Mutex<Vec<Source>>);

static VARIABLES: Shown = Shown(Mutex::new(Vec::new()));
static CATEGORIES: Shown = Shown(Mutex::new(Vec::new()));

impl Shown {
    /// The list, grown to the `n` things that the host has now, with `ours` of ours.
    fn grown(&self, n: c_int, ours: usize) -> Vec<Source> {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = list.is_empty();
        let known = list.iter().filter(|s| matches!(s, Source::Host(_))).count() as c_int;
        list.extend((known..n).map(Source::Host));
        if first {
            list.extend((0..ours).map(Source::Ours));
        }
        list.clone()
    }
}

fn variables(host: &Host) -> Result<Vec<Source>, c_int> {
    Ok(VARIABLES.grown(number(host, host.f.cvar_get_num)?, controls().count()))
}

fn categories(host: &Host) -> Result<Vec<Source>, c_int> {
    Ok(CATEGORIES.grown(number(host, host.f.category_get_num)?, 1))
}

fn number(host: &Host, f: Option<unsafe extern "C" fn(*mut c_int) -> c_int>) -> Result<c_int, c_int> {
    let (Some(f), true) = (f, host.abi.is_some()) else { return Err(missing(host)) };
    let mut n = 0;
    // SAFETY: a number to write to.
    let code = unsafe { f(&raw mut n) };
    if code == 0 { Ok(n) } else { Err(code) }
}

/// What an index shows; an index that shows nothing is one that the host does not have either.
fn at(list: &[Source], index: c_int) -> Source {
    let beyond = list.iter().filter(|s| matches!(s, Source::Host(_))).count() as c_int;
    let place = usize::try_from(index).map(|i| list.get(i).copied());
    place.map_or(Source::Host(index), |found| found.unwrap_or(Source::Host(beyond)))
}

/// Where the host's thing is shown.
fn place(list: &[Source], index: c_int) -> c_int {
    list.iter().position(|s| *s == Source::Host(index)).map_or(index, |i| i as c_int)
}

/// Our variables' handles: the addresses of these bytes.
static HANDLES: [u8; CONTROLS.len()] = [0; CONTROLS.len()];

fn ours(handle: *const c_void) -> Option<&'static Control> {
    controls().nth(handle.addr().checked_sub(HANDLES.as_ptr().addr()).filter(|&k| k < HANDLES.len())?)
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

fn abi(host: &Host) -> Result<&'static Abi, c_int> {
    host.abi.ok_or_else(|| missing(host))
}

macro_rules! tool {
    ($($(#[$doc:meta])* fn $name:ident($host:ident, $($arg:ident: $type:ty),*) $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As the function of MPI 5.0, chapter 15, of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> c_int {
            let Some($host) = host() else { return NO_HOST };
            let run = || -> Result<c_int, c_int> { $body };
            guard(run).unwrap_or(Err(NO_HOST)).unwrap_or_else(|code| code)
        }
    )*};
}

/// Calls a function of the host.
macro_rules! call {
    ($host:ident.$f:ident($($arg:expr),*)) => {
        match $host.f.$f {
            // SAFETY: the caller's arguments, an index replaced by the host's own.
            Some(f) => Ok(unsafe { f($($arg),*) }),
            None => Err(missing($host)),
        }
    };
}

tool! {
    /// The host's variables and ours.
    fn MPI_T_cvar_get_num(host, num: *mut c_int) {
        let list = variables(host)?;
        if num.is_null() {
            return call!(host.cvar_get_num(num));
        }
        // SAFETY: a place for the number.
        unsafe { set(num, list.len() as c_int) };
        Ok(0)
    }

    /// A variable.
    fn MPI_T_cvar_get_info(host, index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity: *mut c_int,
        datatype: *mut c_void, enumtype: *mut c_void, desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int,
        scope: *mut c_int) {
        let list = variables(host)?;
        let k = match at(&list, index) {
            Source::Host(i) => return call!(host.cvar_get_info(
                i, name, name_len, verbosity, datatype, enumtype, desc, desc_len, bind, scope)),
            Source::Ours(k) => k,
        };
        let (control, [user, tuner, no_object, local, _]) =
            (controls().nth(k).ok_or_else(|| missing(host))?, abi(host)?.tool);
        let named = match control.kind {
            Kind::Int => Named::Int,
            Kind::Uint64 => Named::Uint64,
            Kind::UnsignedLongLong => Named::UnsignedLongLong,
            Kind::Double => Named::Double,
            Kind::Char(_) => Named::Char,
        };
        // SAFETY: the caller's places for results, null where not wanted.
        unsafe {
            string(control.name, name, name_len);
            string(control.description, desc, desc_len);
            set(verbosity, if control.tuning { tuner } else { user });
            set(bind, no_object);
            set(scope, local);
            if !datatype.is_null() {
                set_handle(host, datatype, host.handle(named).unwrap_or(host.type_null));
            }
            if !enumtype.is_null() {
                // MPI_T_ENUM_NULL of every ABI.
                enumtype.cast::<*mut c_void>().write(std::ptr::null_mut());
            }
        }
        Ok(0)
    }

    /// The index of a name.
    fn MPI_T_cvar_get_index(host, name: *const c_char, index: *mut c_int) {
        let list = variables(host)?;
        // SAFETY: null or a string of the caller's.
        let text = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
        let ours = text.and_then(|t| controls().position(|c| c.name.as_bytes() == t.to_bytes()));
        let found = ours.and_then(|k| list.iter().position(|s| *s == Source::Ours(k)));
        if let (Some(found), false) = (found, index.is_null()) {
            // SAFETY: a place for the index.
            unsafe { set(index, found as c_int) };
            return Ok(0);
        }
        let code = call!(host.cvar_get_index(name, index))?;
        if code == 0 && !index.is_null() {
            // SAFETY: the host has written it.
            unsafe { *index = place(&list, *index) };
        }
        Ok(code)
    }

    /// A handle of a variable.
    fn MPI_T_cvar_handle_alloc(host, index: c_int, object: *mut c_void, handle: *mut c_void, count: *mut c_int) {
        let list = variables(host)?;
        let k = match at(&list, index) {
            Source::Host(i) => return call!(host.cvar_handle_alloc(i, object, handle, count)),
            Source::Ours(k) => k,
        };
        let control = controls().nth(k).ok_or_else(|| missing(host))?;
        if handle.is_null() {
            return Ok(abi(host)?.tool[4]);
        }
        // SAFETY: places for the results.
        unsafe {
            handle.cast::<*const u8>().write(&raw const HANDLES[k]);
            set(count, control.kind.count() as c_int);
        }
        Ok(0)
    }

    /// Gives a handle back.
    fn MPI_T_cvar_handle_free(host, handle: *mut c_void) {
        // SAFETY: null or a handle of the caller's, a pointer in every ABI.
        let value = unsafe { handle.cast::<*mut c_void>().as_mut() };
        if let Some(value) = value.filter(|v| ours(**v).is_some()) {
            variables(host)?;
            *value = std::ptr::null_mut();
            return Ok(0);
        }
        call!(host.cvar_handle_free(handle))
    }

    /// The value of a variable.
    fn MPI_T_cvar_read(host, handle: *mut c_void, buffer: *mut c_void) {
        let Some(control) = ours(handle) else { return call!(host.cvar_read(handle, buffer)) };
        variables(host)?;
        types::configured();
        if buffer.is_null() {
            return Ok(abi(host)?.tool[4]);
        }
        // SAFETY: room for a value of the variable's type.
        unsafe {
            match read_control(control) {
                Value::Int(i) => buffer.cast::<c_int>().write(i),
                Value::Unsigned(u) => buffer.cast::<u64>().write(u),
                Value::Double(d) => buffer.cast::<f64>().write(d),
                Value::Text(_) => return Err(missing(host)),
            }
        }
        Ok(0)
    }

    /// Another value.
    fn MPI_T_cvar_write(host, handle: *mut c_void, buffer: *const c_void) {
        let Some(control) = ours(handle) else { return call!(host.cvar_write(handle, buffer)) };
        variables(host)?;
        types::configured();
        let invalid = abi(host)?.tool[4];
        if buffer.is_null() {
            return Ok(invalid);
        }
        // SAFETY: a value of the variable's type.
        let value = unsafe {
            match control.kind {
                Kind::Int => Value::Int(buffer.cast::<c_int>().read()),
                Kind::Uint64 | Kind::UnsignedLongLong => Value::Unsigned(buffer.cast::<u64>().read()),
                Kind::Double => Value::Double(buffer.cast::<f64>().read()),
                Kind::Char(_) => return Ok(invalid),
            }
        };
        Ok(if write_control(control, &value).is_ok() { 0 } else { invalid })
    }

    /// The host's categories and ours.
    fn MPI_T_category_get_num(host, num: *mut c_int) {
        let list = categories(host)?;
        if num.is_null() {
            return call!(host.category_get_num(num));
        }
        // SAFETY: a place for the number.
        unsafe { set(num, list.len() as c_int) };
        Ok(0)
    }

    /// A category.
    fn MPI_T_category_get_info(host, index: c_int, name: *mut c_char, name_len: *mut c_int, desc: *mut c_char,
        desc_len: *mut c_int, cvars: *mut c_int, pvars: *mut c_int, inner: *mut c_int) {
        let list = categories(host)?;
        if let Source::Host(i) = at(&list, index) {
            return call!(host.category_get_info(i, name, name_len, desc, desc_len, cvars, pvars, inner));
        }
        // SAFETY: the caller's places for results, null where not wanted.
        unsafe {
            string("ddtc", name, name_len);
            string("The derived datatype compiler.", desc, desc_len);
            set(cvars, controls().count() as c_int);
            set(pvars, 0);
            set(inner, 0);
        }
        Ok(0)
    }

    /// The index of a name.
    fn MPI_T_category_get_index(host, name: *const c_char, index: *mut c_int) {
        let list = categories(host)?;
        // SAFETY: null or a string of the caller's.
        let found = !name.is_null() && unsafe { CStr::from_ptr(name) } == c"ddtc";
        let place_of_ours = list.iter().position(|s| matches!(s, Source::Ours(_)));
        if let (true, Some(i), false) = (found, place_of_ours, index.is_null()) {
            // SAFETY: a place for the index.
            unsafe { set(index, i as c_int) };
            return Ok(0);
        }
        let code = call!(host.category_get_index(name, index))?;
        if code == 0 && !index.is_null() {
            // SAFETY: the host has written it.
            unsafe { *index = place(&list, *index) };
        }
        Ok(code)
    }

    /// The variables of a category.
    fn MPI_T_category_get_cvars(host, index: c_int, len: c_int, indices: *mut c_int) {
        let (list, shown) = (categories(host)?, variables(host)?);
        if let Source::Host(i) = at(&list, index) {
            let code = call!(host.category_get_cvars(i, len, indices))?;
            let (null, mut n) = (std::ptr::null_mut(), 0);
            if code == 0 {
                call!(host.category_get_info(i, null, null.cast(), null, null.cast(), &raw mut n, null.cast(), null.cast()))?;
            }
            for k in 0..n.min(len).max(0) as usize {
                // SAFETY: the host has written so many.
                unsafe { *indices.add(k) = place(&shown, *indices.add(k)) };
            }
            return Ok(code);
        }
        let own = shown.iter().enumerate().filter(|(_, s)| matches!(s, Source::Ours(_)));
        for (k, (i, _)) in own.take(len.max(0) as usize).enumerate() {
            // SAFETY: room for that many.
            unsafe { indices.add(k).write(i as c_int) };
        }
        Ok(0)
    }

    /// The performance variables of a category.
    fn MPI_T_category_get_pvars(host, index: c_int, len: c_int, indices: *mut c_int) {
        match at(&categories(host)?, index) {
            Source::Host(i) => call!(host.category_get_pvars(i, len, indices)),
            Source::Ours(_) => Ok(0),
        }
    }

    /// The categories of a category.
    fn MPI_T_category_get_categories(host, index: c_int, len: c_int, indices: *mut c_int) {
        let list = categories(host)?;
        let Source::Host(i) = at(&list, index) else { return Ok(0) };
        let code = call!(host.category_get_categories(i, len, indices))?;
        let (null, mut n) = (std::ptr::null_mut(), 0);
        if code == 0 {
            call!(host.category_get_info(i, null, null.cast(), null, null.cast(), null.cast(), null.cast(), &raw mut n))?;
        }
        for k in 0..n.min(len).max(0) as usize {
            // SAFETY: the host has written so many.
            unsafe { *indices.add(k) = place(&list, *indices.add(k)) };
        }
        Ok(code)
    }

    /// The number of events of a category.
    fn MPI_T_category_get_num_events(host, index: c_int, num: *mut c_int) {
        match at(&categories(host)?, index) {
            Source::Host(i) => call!(host.category_get_num_events(i, num)),
            Source::Ours(_) => {
                // SAFETY: a place for the number.
                unsafe { set(num, 0) };
                Ok(0)
            }
        }
    }

    /// The events of a category.
    fn MPI_T_category_get_events(host, index: c_int, len: c_int, indices: *mut c_int) {
        match at(&categories(host)?, index) {
            Source::Host(i) => call!(host.category_get_events(i, len, indices)),
            Source::Ours(_) => Ok(0),
        }
    }
}
