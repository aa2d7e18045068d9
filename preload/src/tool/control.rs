//! Functions of `MPI_T` about control variables: the MPI library's variables, and those of ddtc's
//! engine.

use std::ffi::{c_char, c_int, c_void};

use ddtc::internal::tool::{CONTROLS, Control, read_control, write_control};

use super::{
    Shown, Source, constants, datatype, enumeration, index_of, is, member, put, ready, set, shown, source_at,
    string, take,
};
use crate::handles::{missing, set_handle};
use crate::host::Host;
use crate::types;

/// Returns ddtc's control variables that tools see: all variables of the engine except
/// `ddtc_report`, because in the preload library the environment alone determines where the report
/// is written.
pub(super) fn controls() -> impl Iterator<Item = &'static Control> {
    static ALL: [Control; CONTROLS.len()] = CONTROLS;
    ALL.iter().filter(|c| c.name != "ddtc_report")
}

/// Returns the list of control variables that tools see: the MPI library's and ddtc's.
pub(super) fn variables(host: &Host) -> Result<Vec<Source>, c_int> {
    static SHOWN: Shown = Shown::new();
    SHOWN.grown(host, host.f.cvar_get_num, controls().count())
}

/// Bytes whose addresses are the handles of ddtc's control variables. Their values are not used.
static HANDLES: [u8; CONTROLS.len()] = [0; CONTROLS.len()];

/// Returns ddtc's control variable that has this handle; `None` if the handle is the MPI library's.
fn ours(handle: *const c_void) -> Option<&'static Control> {
    controls().nth(member(&HANDLES, handle)?)
}

tool! {
    /// Returns the number of control variables, the MPI library's and ddtc's.
    fn MPI_T_cvar_get_num(host, num: *mut c_int) {
        let list = variables(host)?;
        if num.is_null() {
            return call!(host.cvar_get_num(num));
        }
        // SAFETY: `num` is the tool's place for the number.
        unsafe { set(num, list.len() as c_int) };
        Ok(0)
    }

    /// Returns the name, the type and the other properties of a control variable.
    fn MPI_T_cvar_get_info(host, index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity: *mut c_int,
        kind: *mut c_void, enumtype: *mut c_void, desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int,
        scope: *mut c_int) {
        let list = variables(host)?;
        let k = match source_at(&list, index) {
            Source::Host(i) => return call!(host.cvar_get_info(
                i, name, name_len, verbosity, kind, enumtype, desc, desc_len, bind, scope)),
            Source::Ours(k) => k,
        };
        let (control, tool) = (controls().nth(k).ok_or_else(|| missing(host))?, constants(host)?);
        // SAFETY: the pointers are the tool's places for results, and null for a result that the
        // tool does not want. A handle of an enumeration is a pointer in every ABI.
        unsafe {
            string(control.name, name, name_len);
            string(control.description, desc, desc_len);
            set(verbosity, if control.tuning { tool.verbosity_tuner_basic } else { tool.verbosity_user_basic });
            set(bind, tool.bind_no_object);
            set(scope, tool.scope_local);
            if !kind.is_null() {
                set_handle(host, kind, datatype(host, control.kind));
            }
            if !enumtype.is_null() {
                enumtype.cast::<*const c_void>().write(enumeration::handle(control.enumeration));
            }
        }
        Ok(0)
    }

    /// Finds the index of a control variable by its name.
    fn MPI_T_cvar_get_index(host, name: *const c_char, index: *mut c_int) {
        let list = variables(host)?;
        // SAFETY: `name` is the tool's, so it is null or a string.
        let ours = controls().position(|c| unsafe { is(name, c.name) });
        let found = ours.and_then(|k| index_of(&list, Source::Ours(k)));
        if let (Some(found), false) = (found, index.is_null()) {
            // SAFETY: `index` is not null, so it is the tool's place for the index.
            unsafe { set(index, found) };
            return Ok(0);
        }
        let code = call!(host.cvar_get_index(name, index))?;
        if code == 0 && !index.is_null() {
            // SAFETY: `index` is not null, and the MPI library has written the index there.
            unsafe { *index = shown(&list, *index) };
        }
        Ok(code)
    }

    /// Allocates a handle of a control variable.
    fn MPI_T_cvar_handle_alloc(host, index: c_int, object: *mut c_void, handle: *mut c_void, count: *mut c_int) {
        let list = variables(host)?;
        let k = match source_at(&list, index) {
            Source::Host(i) => return call!(host.cvar_handle_alloc(i, object, handle, count)),
            Source::Ours(k) => k,
        };
        let control = controls().nth(k).ok_or_else(|| missing(host))?;
        if handle.is_null() {
            return Ok(constants(host)?.err_invalid);
        }
        // SAFETY: `handle` is not null, so it is the tool's place for a handle, which is a pointer
        // in every ABI. `count` is null or the tool's place for the number of elements.
        unsafe {
            handle.cast::<*const u8>().write(&raw const HANDLES[k]);
            set(count, control.kind.count() as c_int);
        }
        Ok(0)
    }

    /// Frees a handle of a control variable.
    fn MPI_T_cvar_handle_free(host, handle: *mut c_void) {
        // SAFETY: `handle` is null or points to a handle of the tool, which is a pointer in every
        // ABI.
        let value = unsafe { handle.cast::<*mut c_void>().as_mut() };
        if let Some(value) = value.filter(|v| ours(**v).is_some()) {
            ready(host)?;
            *value = std::ptr::null_mut();
            return Ok(0);
        }
        call!(host.cvar_handle_free(handle))
    }

    /// Reads the value of a control variable.
    fn MPI_T_cvar_read(host, handle: *mut c_void, buffer: *mut c_void) {
        let Some(control) = ours(handle) else { return call!(host.cvar_read(handle, buffer)) };
        ready(host)?;
        types::configured();
        // SAFETY: `buffer` is the tool's: null, or with room for a value of the variable's type.
        let done = unsafe { put(&read_control(control), buffer) };
        Ok(if done { 0 } else { constants(host)?.err_invalid })
    }

    /// Writes the value of a control variable.
    fn MPI_T_cvar_write(host, handle: *mut c_void, buffer: *const c_void) {
        let Some(control) = ours(handle) else { return call!(host.cvar_write(handle, buffer)) };
        ready(host)?;
        types::configured();
        // SAFETY: `buffer` is the tool's: null, or with a value of the variable's type.
        let value = unsafe { take(control.kind, buffer) };
        let done = value.is_some_and(|v| write_control(control, &v).is_ok());
        Ok(if done { 0 } else { constants(host)?.err_invalid })
    }
}
