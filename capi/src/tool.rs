//! Exports for the tool information interface (MPI 5.0, 15.3). The exports convert buffers, strings
//! and codes. The variables are in `ddtc::internal::tool`.
//!
//! Strings are returned by the convention of that section. At most `n - 1` bytes of a string and a
//! NUL are written, where `n` is the length argument on entry. On return the length argument is the
//! full length plus one. If the buffer is null or `n` is 0, only the length is returned. If the
//! length argument is null, nothing is returned. Results that the caller does not want may be null
//! in most functions.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;

use ddtc::internal::datatype::Named;
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;
use ddtc::internal::object::Handle;
use ddtc::internal::tool::{
    self, CATEGORIES, CONTROLS, Category, Control, ENUMERATIONS, Enumeration, Kind, PERFORMANCE, Performance,
    Target, Value,
};

use crate::arguments::{Out, Type, export, handle, out, output, text, to_c};

/// Handles of sessions, variables and enumerations: pointers that are never dereferenced.
type Opaque = *mut c_void;

/// `MPI_T_PVAR_ALL_HANDLES` of the standard ABI, which stands for all handles of a session.
const ALL_HANDLES: u64 = 1;
/// `MPI_T_BIND_NO_OBJECT`, the binding of all variables, because no variable belongs to an object
/// of MPI.
const NO_OBJECT: c_int = 1;
/// `MPI_T_SCOPE_LOCAL`, the scope of control variables, because setting one is a local operation.
const SCOPE_LOCAL: c_int = 3;
/// `MPI_T_VERBOSITY_USER_BASIC`, the level of variables for users.
const USER_BASIC: c_int = 0x09;
/// `MPI_T_VERBOSITY_TUNER_BASIC`, the level of control variables for tuning.
const TUNER_BASIC: c_int = 0x11;
/// Handle of enumeration 0. The handle of enumeration `i` is this value plus `i`.
const ENUMERATION: u64 = 0xd5 << 56 | 1;

/// Writes a result, unless its address is null because the caller does not want it.
///
/// # Safety
/// `place` must be null or valid for a write of a `T`. It need not be aligned.
unsafe fn set<T>(place: *mut T, value: T) {
    if let Some(place) = NonNull::new(place) {
        // SAFETY: the address is not null, so the caller promises that it is valid for this write,
        // which needs no alignment.
        unsafe { place.write_unaligned(value) };
    }
}

/// Writes a string by the convention of the tool interface (MPI 5.0, 15.3.3). The documentation of
/// this module describes the convention.
///
/// # Safety
/// `length` must be null or valid for a read and a write. `buffer` must be null or have room for
/// `*length` bytes.
unsafe fn string(known: &str, buffer: *mut c_char, length: *mut c_int) {
    // SAFETY: the caller promises that `length`, if it is not null, can be read and written, and
    // that `buffer`, if it is not null, has room for `*length` bytes. `write_bytes` writes at most
    // `room - 1` bytes and a NUL, and the static text `known` does not overlap the buffer.
    unsafe {
        if length.is_null() {
            return;
        }
        let room = usize::try_from(length.read_unaligned()).unwrap_or(0);
        if room > 0
            && let Ok(buffer) = out("t_string", "name", buffer)
        {
            let n = known.len().min(room - 1);
            buffer.write_bytes(&known.as_bytes()[..n], true);
        }
        length.write_unaligned(known.len() as c_int + 1);
    }
}

/// Returns an error of class `ToolInvalid`.
fn invalid(
    call: &'static str,
    argument: &'static str,
    value: impl std::fmt::Display,
    rule: &'static str,
) -> Error {
    Error::new(ErrorClass::ToolInvalid, call, argument, value, rule)
}

/// Returns the address of a result that must not be null. A null pointer is an error of class
/// `ToolInvalid`, which the tool interface has instead of `Arg`.
///
/// # Safety
/// `pointer` must be null, or valid for the reads and writes of a `T` for which the result is used.
unsafe fn required_out<T>(call: &'static str, argument: &'static str, pointer: *mut T) -> Result<Out<T>> {
    // SAFETY: the condition of `out` is the one that the caller of this function promises.
    unsafe { out(call, argument, pointer) }
        .map_err(|_| invalid(call, argument, "NULL", "must not be a null pointer"))
}

/// Returns the text of a name, or an error of class `ToolInvalid` if it is null or not UTF-8.
///
/// # Safety
/// `pointer` must be null or a NUL-terminated string that lives and does not change for as long as
/// the result is used.
unsafe fn name<'a>(call: &'static str, pointer: *const c_char) -> Result<&'a str> {
    // SAFETY: the condition of `text` is the one that the caller of this function promises.
    unsafe { text(call, "name", pointer) }.map_err(|e| invalid(call, "name", e.value(), "must be a string"))
}

fn unknown(call: &'static str, name: &str) -> Error {
    Error::new(
        ErrorClass::ToolInvalidName,
        call,
        "name",
        name,
        "must be a name of this kind that the tool interface has",
    )
}

/// Returns the handle of the MPI datatype of a variable's values in the buffers of calls. `kind` is
/// the kind of the variable.
fn datatype(kind: Kind) -> Type {
    to_c(Handle::of_named(match kind {
        Kind::Int => Named::Int,
        Kind::Uint64 => Named::Uint64,
        Kind::UnsignedLongLong => Named::UnsignedLongLong,
        Kind::Double => Named::Double,
        Kind::Char(_) => Named::Char,
    }))
}

/// Returns the handle of an enumeration, or a null handle if there is none.
fn enumeration(index: Option<usize>) -> Opaque {
    index.map_or(std::ptr::null_mut(), |i| to_c(Handle::from_bits(ENUMERATION + i as u64)))
}

/// Returns the enumeration of a handle, or an error of class `ToolInvalidHandle`.
fn enumeration_of(call: &'static str, opaque: Opaque) -> Result<&'static Enumeration> {
    tool::ready(call)?;
    let index = handle(opaque).bits().checked_sub(ENUMERATION);
    index.and_then(|i| ENUMERATIONS.get(i as usize)).ok_or_else(|| {
        let rule = "must be the handle of an enumeration";
        Error::new(ErrorClass::ToolInvalidHandle, call, "enumtype", handle(opaque), rule)
    })
}

/// Writes the value of a variable to a buffer. A null buffer is an error of class `ToolInvalid`.
///
/// # Safety
/// `buffer` must be null or have room for as many elements of the variable's type as the variable's
/// count says. The count of a text includes the NUL.
unsafe fn write(call: &'static str, value: &Value, buffer: *mut c_void) -> Result<()> {
    // SAFETY: the caller promises that `buffer` is null, which is refused first, or has room for
    // the variable's type and count. `set` and `write_bytes` need no alignment, and text with its
    // NUL fits the variable's count.
    unsafe {
        required_out(call, "buf", buffer)?;
        match value {
            Value::Int(i) => set(buffer.cast(), *i),
            Value::Unsigned(u) => set(buffer.cast(), *u),
            Value::Double(d) => set(buffer.cast(), *d),
            Value::Text(t) => {
                required_out(call, "buf", buffer.cast::<c_char>())?.write_bytes(t.as_bytes(), true)
            }
        }
    }
    Ok(())
}

/// Returns the value of a variable that a buffer contains.
///
/// # Errors
/// Class `ToolInvalid` if `buffer` is null, or if text has no NUL within the variable's count or is
/// not UTF-8.
///
/// # Safety
/// `buffer` must be null or hold an initialized value of the variable's type. Text must end with a
/// NUL or have as many bytes as the variable's count.
unsafe fn read(call: &'static str, kind: Kind, buffer: *const c_void) -> Result<Value> {
    // SAFETY: the caller promises that `buffer` is null, which is refused first, or holds an
    // initialized value of the variable's type. The reads need no alignment. Text is read up to its
    // NUL and within the variable's count `n`, so the slice of `end` bytes has been read before.
    unsafe {
        required_out(call, "buf", buffer.cast_mut())?;
        Ok(match kind {
            Kind::Int => Value::Int(buffer.cast::<i32>().read_unaligned()),
            Kind::Uint64 | Kind::UnsignedLongLong => Value::Unsigned(buffer.cast::<u64>().read_unaligned()),
            Kind::Double => Value::Double(buffer.cast::<f64>().read_unaligned()),
            Kind::Char(n) => {
                let at = buffer.cast::<u8>();
                let Some(end) = (0..n).find(|&i| at.add(i).read() == 0) else {
                    return Err(invalid(
                        call,
                        "buf",
                        "no NUL",
                        "must be a string that fits the variable's count",
                    ));
                };
                let bytes = std::slice::from_raw_parts(at, end);
                let text = std::str::from_utf8(bytes);
                Value::Text(
                    text.map_err(|_| invalid(call, "buf", "not UTF-8", "must be UTF-8 text"))?.to_owned(),
                )
            }
        })
    }
}

export! {
    fn ddtc_t_init_thread(_required: c_int, provided: *mut c_int) {
        tool::init();
        // 4096 is the value of MPI_THREAD_MULTIPLE. The calls are thread-safe, whatever level the
        // caller requires.
        set(provided, 4096);
        Ok(())
    }

    fn ddtc_t_finalize() {
        Ok(tool::finalize()?)
    }

    fn ddtc_t_enum_get_info(enumtype: Opaque, num: *mut c_int, name: *mut c_char, name_len: *mut c_int) {
        let e = enumeration_of("t_enum_get_info", enumtype)?;
        set(num, e.items.len() as c_int);
        string(e.name, name, name_len);
        Ok(())
    }

    fn ddtc_t_enum_get_item(
        enumtype: Opaque, index: c_int, value: *mut c_int, name: *mut c_char, name_len: *mut c_int,
    ) {
        const CALL: &str = "t_enum_get_item";
        let e = enumeration_of(CALL, enumtype)?;
        let item = tool::item(CALL, e.items, index)?;
        set(value, index);
        string(item, name, name_len);
        Ok(())
    }

    fn ddtc_t_cvar_get_num(num: *mut c_int) {
        tool::ready("t_cvar_get_num")?;
        set(num, CONTROLS.len() as c_int);
        Ok(())
    }

    fn ddtc_t_cvar_get_info(
        index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity: *mut c_int, kind: *mut Type,
        enumtype: *mut Opaque, desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int, scope: *mut c_int,
    ) {
        const CALL: &str = "t_cvar_get_info";
        tool::ready(CALL)?;
        let c: &Control = tool::item(CALL, &CONTROLS, index)?;
        string(c.name, name, name_len);
        set(verbosity, if c.tuning { TUNER_BASIC } else { USER_BASIC });
        set(kind, datatype(c.kind));
        set(enumtype, enumeration(c.enumeration));
        string(c.description, desc, desc_len);
        set(bind, NO_OBJECT);
        set(scope, SCOPE_LOCAL);
        Ok(())
    }

    fn ddtc_t_cvar_get_index(variable: *const c_char, index: *mut c_int) {
        const CALL: &str = "t_cvar_get_index";
        tool::ready(CALL)?;
        let (variable, index) = (name(CALL, variable)?, required_out(CALL, "cvar_index", index)?);
        let found = CONTROLS.iter().position(|c| c.name == variable).ok_or_else(|| unknown(CALL, variable))?;
        index.set(found as c_int);
        Ok(())
    }

    fn ddtc_t_cvar_handle_alloc(index: c_int, _object: *mut c_void, cvar: *mut Opaque, count: *mut c_int) {
        const CALL: &str = "t_cvar_handle_alloc";
        tool::ready(CALL)?;
        let cvar = required_out(CALL, "handle", cvar)?;
        let found: &Control = tool::item(CALL, &CONTROLS, index)?;
        cvar.set(to_c(tool::alloc_control(index)?));
        set(count, found.kind.count() as c_int);
        Ok(())
    }

    fn ddtc_t_cvar_handle_free(cvar: *mut Opaque) {
        let cvar = required_out("t_cvar_handle_free", "handle", cvar)?;
        tool::free_control(handle(cvar.get()))?;
        cvar.set(std::ptr::null_mut());
        Ok(())
    }

    fn ddtc_t_cvar_read(cvar: Opaque, buffer: *mut c_void) {
        const CALL: &str = "t_cvar_read";
        let control = tool::control_of(CALL, handle(cvar))?;
        Ok(write(CALL, &tool::read_control(control), buffer)?)
    }

    fn ddtc_t_cvar_write(cvar: Opaque, buffer: *const c_void) {
        const CALL: &str = "t_cvar_write";
        let control = tool::control_of(CALL, handle(cvar))?;
        Ok(tool::write_control(control, &read(CALL, control.kind, buffer)?)?)
    }

    fn ddtc_t_pvar_get_num(num: *mut c_int) {
        tool::ready("t_pvar_get_num")?;
        set(num, PERFORMANCE.len() as c_int);
        Ok(())
    }

    fn ddtc_t_pvar_get_info(
        index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity: *mut c_int, class: *mut c_int,
        kind: *mut Type, enumtype: *mut Opaque, desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int,
        readonly: *mut c_int, continuous: *mut c_int, atomic: *mut c_int,
    ) {
        const CALL: &str = "t_pvar_get_info";
        tool::ready(CALL)?;
        let p: &Performance = tool::item(CALL, &PERFORMANCE, index)?;
        string(p.name, name, name_len);
        set(verbosity, USER_BASIC);
        set(class, p.class as c_int);
        set(kind, datatype(p.kind()));
        set(enumtype, enumeration(None));
        string(p.description, desc, desc_len);
        set(bind, NO_OBJECT);
        set(readonly, c_int::from(p.is_continuous()));
        set(continuous, c_int::from(p.is_continuous()));
        set(atomic, c_int::from(!p.is_continuous()));
        Ok(())
    }

    fn ddtc_t_pvar_get_index(variable: *const c_char, class: c_int, index: *mut c_int) {
        const CALL: &str = "t_pvar_get_index";
        tool::ready(CALL)?;
        let (variable, index) = (name(CALL, variable)?, required_out(CALL, "pvar_index", index)?);
        let found = PERFORMANCE.iter().position(|p| p.name == variable && p.class as c_int == class);
        index.set(found.ok_or_else(|| unknown(CALL, variable))? as c_int);
        Ok(())
    }

    fn ddtc_t_pvar_session_create(session: *mut Opaque) {
        const CALL: &str = "t_pvar_session_create";
        tool::ready(CALL)?;
        let session = required_out(CALL, "session", session)?;
        session.set(to_c(tool::open_session()?));
        Ok(())
    }

    fn ddtc_t_pvar_session_free(session: *mut Opaque) {
        let session = required_out("t_pvar_session_free", "session", session)?;
        tool::close_session(handle(session.get()))?;
        session.set(std::ptr::null_mut());
        Ok(())
    }

    fn ddtc_t_pvar_handle_alloc(
        session: Opaque, index: c_int, _object: *mut c_void, pvar: *mut Opaque, count: *mut c_int,
    ) {
        let pvar = required_out("t_pvar_handle_alloc", "handle", pvar)?;
        pvar.set(to_c(tool::alloc_performance(handle(session), index)?));
        set(count, 1);
        Ok(())
    }

    fn ddtc_t_pvar_handle_free(session: Opaque, pvar: *mut Opaque) {
        let pvar = required_out("t_pvar_handle_free", "handle", pvar)?;
        tool::free_performance(handle(session), handle(pvar.get()))?;
        pvar.set(std::ptr::null_mut());
        Ok(())
    }

    fn ddtc_t_pvar_start(session: Opaque, pvar: Opaque) {
        Ok(tool::start_performance(handle(session), target(pvar))?)
    }

    fn ddtc_t_pvar_stop(session: Opaque, pvar: Opaque) {
        Ok(tool::stop_performance(handle(session), target(pvar))?)
    }

    fn ddtc_t_pvar_reset(session: Opaque, pvar: Opaque) {
        Ok(tool::reset_performance(handle(session), target(pvar))?)
    }

    fn ddtc_t_pvar_read(session: Opaque, pvar: Opaque, buffer: *mut c_void) {
        let value = tool::read_performance(handle(session), handle(pvar))?;
        Ok(write("t_pvar_read", &value, buffer)?)
    }

    fn ddtc_t_pvar_readreset(session: Opaque, pvar: Opaque, buffer: *mut c_void) {
        const CALL: &str = "t_pvar_readreset";
        required_out(CALL, "buf", buffer)?;
        let value = tool::read_reset_performance(handle(session), handle(pvar))?;
        Ok(write(CALL, &value, buffer)?)
    }

    fn ddtc_t_pvar_write(session: Opaque, pvar: Opaque, buffer: *const c_void) {
        const CALL: &str = "t_pvar_write";
        let variable = tool::performance_of(CALL, handle(session), handle(pvar))?;
        let value = read(CALL, variable.kind(), buffer)?;
        Ok(tool::write_performance(handle(session), handle(pvar), &value)?)
    }

    fn ddtc_t_category_get_num(num: *mut c_int) {
        tool::ready("t_category_get_num")?;
        set(num, CATEGORIES.len() as c_int);
        Ok(())
    }

    fn ddtc_t_category_get_info(
        index: c_int, name: *mut c_char, name_len: *mut c_int, desc: *mut c_char, desc_len: *mut c_int,
        num_cvars: *mut c_int, num_pvars: *mut c_int, num_categories: *mut c_int,
    ) {
        let c = category("t_category_get_info", index)?;
        string(c.name, name, name_len);
        string(c.description, desc, desc_len);
        set(num_cvars, c.controls().len() as c_int);
        set(num_pvars, c.performance().len() as c_int);
        set(num_categories, c.categories().len() as c_int);
        Ok(())
    }

    fn ddtc_t_category_get_index(category: *const c_char, index: *mut c_int) {
        const CALL: &str = "t_category_get_index";
        tool::ready(CALL)?;
        let (wanted, index) = (name(CALL, category)?, required_out(CALL, "cat_index", index)?);
        let found = CATEGORIES.iter().position(|c| c.name == wanted).ok_or_else(|| unknown(CALL, wanted))?;
        index.set(found as c_int);
        Ok(())
    }

    fn ddtc_t_category_get_num_events(index: c_int, num: *mut c_int) {
        category("t_category_get_num_events", index)?;
        set(num, 0);
        Ok(())
    }

    fn ddtc_t_category_get_cvars(index: c_int, len: c_int, indices: *mut c_int) {
        const CALL: &str = "t_category_get_cvars";
        members(CALL, category(CALL, index)?.controls(), len, indices)
    }

    fn ddtc_t_category_get_pvars(index: c_int, len: c_int, indices: *mut c_int) {
        const CALL: &str = "t_category_get_pvars";
        members(CALL, category(CALL, index)?.performance(), len, indices)
    }

    fn ddtc_t_category_get_events(index: c_int, len: c_int, indices: *mut c_int) {
        const CALL: &str = "t_category_get_events";
        category(CALL, index)?;
        members(CALL, Vec::new(), len, indices)
    }

    fn ddtc_t_category_get_categories(index: c_int, len: c_int, indices: *mut c_int) {
        const CALL: &str = "t_category_get_categories";
        members(CALL, category(CALL, index)?.categories(), len, indices)
    }

    fn ddtc_t_category_changed(update_number: *mut c_int) {
        tool::ready("t_category_changed")?;
        // No variable or category is added after the start, so the number never changes.
        set(update_number, 1);
        Ok(())
    }

    fn ddtc_t_report() {
        Ok(tool::write_report().map_err(|e| Error::new(ErrorClass::Other, "t_report", "ddtc_report", e, "must be writable"))?)
    }
}

/// Returns the meaning of the argument `pvar`: one handle, or all handles of a session.
fn target(pvar: Opaque) -> Target {
    if handle(pvar).bits() == ALL_HANDLES { Target::All } else { Target::One(handle(pvar)) }
}

/// Returns the category of an index, or an error of class `ToolInvalidIndex`.
fn category(call: &'static str, index: c_int) -> Result<&'static Category> {
    tool::ready(call)?;
    tool::item(call, &CATEGORIES, index)
}

/// Writes the indices of the members of a category. If there are more than `len` members, writes
/// only the first `len` indices.
///
/// # Errors
/// Class `ToolInvalid` if `len` is negative, or if there are indices to write and `indices` is null
/// or not aligned.
///
/// # Safety
/// `indices` must be null or have aligned room for `len` entries, which nothing else accesses
/// during the call.
unsafe fn members(
    call: &'static str,
    all: Vec<i32>,
    len: c_int,
    indices: *mut c_int,
) -> crate::guard::Outcome {
    let room = usize::try_from(len).map_err(|_| invalid(call, "len", len, "must not be negative"))?;
    let n = room.min(all.len());
    // SAFETY: the caller promises that `indices` is null or has room for `len` entries, which
    // nothing else accesses. `n` is at most `len`.
    unsafe { output(call, "indices", indices, ("len", n as i64)) }
        .map_err(|e| invalid(call, "indices", e.value(), "must point to len integers"))?
        .write_copy_of_slice(&all[..n]);
    Ok(())
}

/// Exports for events and their sources. ddtc has neither, so no index, name or handle is valid.
mod events {
    use super::{Opaque, export, invalid, name, set, tool, unknown};
    use ddtc::internal::error::{Error, ErrorClass, Result};
    use ddtc::internal::methods::ErrorMethods as _;
    use std::ffi::{c_char, c_int, c_void};

    /// Returns an error of class `ToolInvalidIndex`, since no index is valid.
    fn none(call: &'static str, index: c_int) -> Result<()> {
        tool::ready(call)?;
        tool::item::<()>(call, &[], index)?;
        Ok(())
    }

    /// Returns an error of class `ToolInvalidHandle`, since no handle is valid.
    fn no_handle(call: &'static str, argument: &'static str, handle: Opaque) -> Result<()> {
        tool::ready(call)?;
        let rule = "there are no events, so no handles of events";
        Err(Error::new(ErrorClass::ToolInvalidHandle, call, argument, format_args!("{handle:p}"), rule))
    }

    export! {
        fn ddtc_t_event_get_num(num: *mut c_int) {
            tool::ready("t_event_get_num")?;
            set(num, 0);
            Ok(())
        }

        fn ddtc_t_event_get_info(
            index: c_int, _name: *mut c_char, _name_len: *mut c_int, _verbosity: *mut c_int,
            _types: *mut Opaque, _displacements: *mut isize, _num_elements: *mut c_int,
            _enumtype: *mut Opaque, _info: *mut Opaque, _desc: *mut c_char, _desc_len: *mut c_int,
            _bind: *mut c_int,
        ) {
            Ok(none("t_event_get_info", index)?)
        }

        fn ddtc_t_event_get_index(event: *const c_char, _index: *mut c_int) {
            const CALL: &str = "t_event_get_index";
            tool::ready(CALL)?;
            Err(unknown(CALL, name(CALL, event)?).into())
        }

        fn ddtc_t_event_handle_alloc(index: c_int, _object: *mut c_void, _info: Opaque, _registration: *mut Opaque) {
            Ok(none("t_event_handle_alloc", index)?)
        }

        fn ddtc_t_event_handle_free(registration: Opaque, _user_data: *mut c_void, _callback: usize) {
            Ok(no_handle("t_event_handle_free", "event_registration", registration)?)
        }

        fn ddtc_t_event_handle_get_info(registration: Opaque, _info: *mut Opaque) {
            Ok(no_handle("t_event_handle_get_info", "event_registration", registration)?)
        }

        fn ddtc_t_event_handle_set_info(registration: Opaque, _info: Opaque) {
            Ok(no_handle("t_event_handle_set_info", "event_registration", registration)?)
        }

        fn ddtc_t_event_register_callback(
            registration: Opaque, _safety: c_int, _info: Opaque, _user_data: *mut c_void, _callback: usize,
        ) {
            Ok(no_handle("t_event_register_callback", "event_registration", registration)?)
        }

        fn ddtc_t_event_callback_get_info(registration: Opaque, _safety: c_int, _info: *mut Opaque) {
            Ok(no_handle("t_event_callback_get_info", "event_registration", registration)?)
        }

        fn ddtc_t_event_callback_set_info(registration: Opaque, _safety: c_int, _info: Opaque) {
            Ok(no_handle("t_event_callback_set_info", "event_registration", registration)?)
        }

        fn ddtc_t_event_set_dropped_handler(registration: Opaque, _callback: usize) {
            Ok(no_handle("t_event_set_dropped_handler", "event_registration", registration)?)
        }

        fn ddtc_t_event_read(instance: Opaque, _element: c_int, _buffer: *mut c_void) {
            Ok(no_handle("t_event_read", "event_instance", instance)?)
        }

        fn ddtc_t_event_copy(instance: Opaque, _buffer: *mut c_void) {
            Ok(no_handle("t_event_copy", "event_instance", instance)?)
        }

        fn ddtc_t_event_get_timestamp(instance: Opaque, _timestamp: *mut i64) {
            Ok(no_handle("t_event_get_timestamp", "event_instance", instance)?)
        }

        fn ddtc_t_event_get_source(instance: Opaque, _source: *mut c_int) {
            Ok(no_handle("t_event_get_source", "event_instance", instance)?)
        }

        fn ddtc_t_source_get_num(num: *mut c_int) {
            tool::ready("t_source_get_num")?;
            set(num, 0);
            Ok(())
        }

        fn ddtc_t_source_get_info(
            index: c_int, _name: *mut c_char, _name_len: *mut c_int, _desc: *mut c_char, _desc_len: *mut c_int,
            _ordering: *mut c_int, _ticks_per_second: *mut i64, _max_ticks: *mut i64, _info: *mut Opaque,
        ) {
            Ok(none("t_source_get_info", index)?)
        }

        fn ddtc_t_source_get_timestamp(index: c_int, timestamp: *mut i64) {
            if timestamp.is_null() {
                return Err(invalid("t_source_get_timestamp", "timestamp", "NULL", "must not be a null pointer").into());
            }
            Ok(none("t_source_get_timestamp", index)?)
        }
    }
}
