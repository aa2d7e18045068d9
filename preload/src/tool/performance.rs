//! Functions of `MPI_T` about performance variables, which are those of the MPI library and those
//! of ddtc's engine. Tools use both kinds in sessions of the MPI library.

use std::ffi::{c_char, c_int, c_void};

use ddtc::ErrorClass;
use ddtc::internal::object::Handle;
use ddtc::internal::tool::{
    Class, PERFORMANCE, Performance, Target, performance_of, read_performance, read_reset_performance,
    reset_performance, start_performance, stop_performance, write_performance,
};
use ddtc_hosts::abi::Tool;

use super::{
    Shown, Source, constants, datatype, enumeration, index_of, is, put, pvar_handles, ready, set, shown,
    source_at, string, take,
};
use crate::handles::{missing, set_handle};
use crate::host::Host;

/// Returns the performance variables that ddtc shows to tools, each with its index in the engine.
/// These are the engine's variables that messages and packing may change.
pub(super) fn measures() -> impl Iterator<Item = (usize, &'static Performance)> {
    static ALL: [Performance; PERFORMANCE.len()] = PERFORMANCE;
    ALL.iter().enumerate().filter(|(_, p)| p.of_messages)
}

/// Returns the list of the performance variables that tools see.
pub(super) fn measured(host: &Host) -> Result<Vec<Source>, c_int> {
    static SHOWN: Shown = Shown::new();
    SHOWN.grown(host, host.f.pvar_get_num, measures().count())
}

/// Returns the constant that stands for a class of performance variables in the MPI library's ABI.
fn class(tool: &Tool, class: Class) -> c_int {
    let [level, counter, aggregate, timer] = tool.pvar_classes;
    match class {
        Class::Level => level,
        Class::Counter => counter,
        Class::Aggregate => aggregate,
        Class::Timer => timer,
    }
}

/// Returns the error code of the MPI library that corresponds to an error class of the engine.
fn code(host: &Host, class: ErrorClass) -> c_int {
    let tool = match constants(host) {
        Ok(tool) => tool,
        Err(code) => return code,
    };
    match class {
        ErrorClass::ToolInvalid => tool.err_invalid,
        ErrorClass::ToolInvalidIndex => tool.err_invalid_index,
        ErrorClass::ToolInvalidSession => tool.err_invalid_session,
        ErrorClass::ToolInvalidHandle => tool.err_invalid_handle,
        ErrorClass::ToolNoWrite => tool.err_pvar_no_write,
        ErrorClass::ToolNoStartStop => tool.err_pvar_no_startstop,
        _ => tool.err_out_of_handles,
    }
}

fn done(host: &Host, result: ddtc::Result<()>) -> c_int {
    result.map_or_else(|e| code(host, e.class()), |()| 0)
}

/// Returns the engine's session and the engine's handle that correspond to a session of the MPI
/// library and a handle of ddtc.
fn find(host: &Host, session: *const c_void, handle: *const c_void) -> Result<(Handle, Handle), c_int> {
    ready(host)?;
    pvar_handles::find(session, handle).map_err(|class| code(host, class))
}

/// Returns true if a handle is `MPI_T_PVAR_ALL_HANDLES`.
fn is_all(host: &Host, handle: *const c_void) -> bool {
    let Ok(tool) = constants(host) else { return false };
    let all = match tool.pvar_all_handles_symbol {
        "" => Some(tool.pvar_all_handles),
        // SAFETY: `data` returns null or the address of the MPI library's constant of this name.
        // The constant is a handle, which is as wide as a pointer.
        symbol => unsafe { (host.data(symbol) as *const usize).as_ref() }.copied(),
    };
    all == Some(handle.addr())
}

type Change = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void) -> c_int;

/// Starts, stops or resets a handle: a handle of ddtc by calling `ours`, and any other handle by
/// calling `theirs`. If the handle stands for all handles of a session (`MPI_T_PVAR_ALL_HANDLES`),
/// calls both functions and returns the result of the MPI library. Handles of ddtc that cannot be
/// changed are skipped in this case.
fn change(
    host: &Host,
    session: *mut c_void,
    handle: *mut c_void,
    theirs: Option<Change>,
    ours: fn(Handle, Target) -> ddtc::Result<()>,
) -> Result<c_int, c_int> {
    if pvar_handles::is_ours(handle) {
        let (session, handle) = find(host, session, handle)?;
        return Ok(done(host, ours(session, Target::One(handle))));
    }
    let Some(theirs) = theirs else { return Err(missing(host)) };
    // SAFETY: the arguments are those of the tool's call, unchanged.
    let answer = unsafe { theirs(session, handle) };
    if is_all(host, handle)
        && let Some(session) = pvar_handles::session(session)
        && ready(host).is_ok()
    {
        // This fails only if another thread is freeing the session.
        let _ = ours(session, Target::All);
    }
    Ok(answer)
}

tool! {
    /// Returns the number of performance variables that tools see, both the MPI library's and
    /// ddtc's.
    fn MPI_T_pvar_get_num(host, num: *mut c_int) {
        let list = measured(host)?;
        if num.is_null() {
            return call!(host.pvar_get_num(num));
        }
        // SAFETY: `num` is not null, so it points to the tool's memory for the number.
        unsafe { set(num, list.len() as c_int) };
        Ok(0)
    }

    /// Describes a variable.
    fn MPI_T_pvar_get_info(host, index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity: *mut c_int,
        var_class: *mut c_int, kind: *mut c_void, enumtype: *mut c_void, desc: *mut c_char, desc_len: *mut c_int,
        bind: *mut c_int, readonly: *mut c_int, continuous: *mut c_int, atomic: *mut c_int) {
        let list = measured(host)?;
        let k = match source_at(&list, index) {
            Source::Host(i) => return call!(host.pvar_get_info(
                i, name, name_len, verbosity, var_class, kind, enumtype, desc, desc_len, bind, readonly, continuous,
                atomic)),
            Source::Ours(k) => k,
        };
        let ((_, variable), tool) = (measures().nth(k).ok_or_else(|| missing(host))?, constants(host)?);
        let fixed = variable.is_continuous();
        // SAFETY: each pointer is an argument of the tool. It is null if the tool does not want the
        // result, and otherwise points to writable memory for the result. A handle of an
        // enumeration is a pointer in every ABI.
        unsafe {
            string(variable.name, name, name_len);
            string(variable.description, desc, desc_len);
            set(verbosity, tool.verbosity_user_basic);
            set(var_class, class(tool, variable.class));
            set(bind, tool.bind_no_object);
            set(readonly, c_int::from(fixed));
            set(continuous, c_int::from(fixed));
            set(atomic, c_int::from(!fixed));
            if !kind.is_null() {
                set_handle(host, kind, datatype(host, variable.kind()));
            }
            if !enumtype.is_null() {
                enumtype.cast::<*const c_void>().write(enumeration::handle(None));
            }
        }
        Ok(0)
    }

    /// Finds the index of a variable by its name and class.
    fn MPI_T_pvar_get_index(host, name: *const c_char, var_class: c_int, index: *mut c_int) {
        let list = measured(host)?;
        // SAFETY: `name` is an argument of the tool, so it is null or a string.
        let ours = measures().position(|(_, p)| unsafe { is(name, p.name) }
            && constants(host).is_ok_and(|tool| class(tool, p.class) == var_class));
        let found = ours.and_then(|k| index_of(&list, Source::Ours(k)));
        if let (Some(found), false) = (found, index.is_null()) {
            // SAFETY: `index` is not null, so it points to the tool's memory for the index.
            unsafe { set(index, found) };
            return Ok(0);
        }
        let code = call!(host.pvar_get_index(name, var_class, index))?;
        if code == 0 && !index.is_null() {
            // SAFETY: `index` is not null, and the MPI library has written the index there.
            unsafe { *index = shown(&list, *index) };
        }
        Ok(code)
    }

    /// Creates a session of the MPI library.
    fn MPI_T_pvar_session_create(host, session: *mut c_void) {
        let code = call!(host.pvar_session_create(session))?;
        if code == 0 && !session.is_null() && host.abi.is_some() {
            // SAFETY: `session` is not null, and the MPI library has written a session there. A
            // session is a pointer in every ABI.
            pvar_handles::opened(unsafe { *session.cast::<*mut c_void>() });
        }
        Ok(code)
    }

    /// Frees a session with all its handles.
    fn MPI_T_pvar_session_free(host, session: *mut c_void) {
        // SAFETY: `session` is null or points to a session of the tool. A session is a pointer in
        // every ABI.
        let closing = unsafe { session.cast::<*mut c_void>().as_ref() }.and_then(|s| pvar_handles::closing(*s));
        let code = call!(host.pvar_session_free(session));
        match (closing, &code) {
            (Some(closing), Ok(0)) => closing.done(),
            (Some(closing), _) => closing.back(),
            (None, _) => {}
        }
        code
    }

    /// Allocates a handle of a variable.
    fn MPI_T_pvar_handle_alloc(host, session: *mut c_void, index: c_int, object: *mut c_void, handle: *mut c_void,
        count: *mut c_int) {
        let list = measured(host)?;
        let k = match source_at(&list, index) {
            Source::Host(i) => return call!(host.pvar_handle_alloc(session, i, object, handle, count)),
            Source::Ours(k) => k,
        };
        let (index, variable) = measures().nth(k).ok_or_else(|| missing(host))?;
        if handle.is_null() {
            return Ok(constants(host)?.err_invalid);
        }
        let made = pvar_handles::alloc(session, index).map_err(|class| code(host, class))?;
        // SAFETY: `handle` is not null, so it points to the tool's memory for a handle, which is a
        // pointer in every ABI. `count` is null or points to the tool's memory for the number of
        // elements.
        unsafe {
            handle.cast::<*const c_void>().write(made);
            set(count, variable.kind().count() as c_int);
        }
        Ok(0)
    }

    /// Frees a handle.
    fn MPI_T_pvar_handle_free(host, session: *mut c_void, handle: *mut c_void) {
        // SAFETY: `handle` is null or points to a handle of the tool. A handle is a pointer in
        // every ABI.
        let value = unsafe { handle.cast::<*mut c_void>().as_mut() };
        if let Some(value) = value.filter(|v| pvar_handles::is_ours(**v)) {
            ready(host)?;
            pvar_handles::free(session, *value).map_err(|class| code(host, class))?;
            *value = std::ptr::null_mut();
            return Ok(0);
        }
        call!(host.pvar_handle_free(session, handle))
    }

    /// Starts the counter of a handle. The counter goes on from its present value.
    fn MPI_T_pvar_start(host, session: *mut c_void, handle: *mut c_void) {
        change(host, session, handle, host.f.pvar_start, start_performance)
    }

    /// Stops the counter of a handle. The counter keeps its value.
    fn MPI_T_pvar_stop(host, session: *mut c_void, handle: *mut c_void) {
        change(host, session, handle, host.f.pvar_stop, stop_performance)
    }

    /// Sets the counter of a handle to zero.
    fn MPI_T_pvar_reset(host, session: *mut c_void, handle: *mut c_void) {
        change(host, session, handle, host.f.pvar_reset, reset_performance)
    }

    /// Reads the value of a variable.
    fn MPI_T_pvar_read(host, session: *mut c_void, handle: *mut c_void, buffer: *mut c_void) {
        if !pvar_handles::is_ours(handle) {
            return call!(host.pvar_read(session, handle, buffer));
        }
        let (session, handle) = find(host, session, handle)?;
        let value = read_performance(session, handle).map_err(|e| code(host, e.class()))?;
        // SAFETY: `buffer` is an argument of the tool. It is null or has room for a value of the
        // variable's type.
        let written = unsafe { put(&value, buffer) };
        Ok(if written { 0 } else { constants(host)?.err_invalid })
    }

    /// Reads the value of a variable, and sets the counter of the handle to zero.
    fn MPI_T_pvar_readreset(host, session: *mut c_void, handle: *mut c_void, buffer: *mut c_void) {
        if !pvar_handles::is_ours(handle) {
            return call!(host.pvar_readreset(session, handle, buffer));
        }
        let (session, handle) = find(host, session, handle)?;
        if buffer.is_null() {
            return Ok(constants(host)?.err_invalid);
        }
        let value = read_reset_performance(session, handle).map_err(|e| code(host, e.class()))?;
        // SAFETY: `buffer` is an argument of the tool and not null, so it has room for a value of
        // the variable's type.
        let written = unsafe { put(&value, buffer) };
        Ok(if written { 0 } else { constants(host)?.err_invalid })
    }

    /// Writes the value of a variable.
    fn MPI_T_pvar_write(host, session: *mut c_void, handle: *mut c_void, buffer: *const c_void) {
        if !pvar_handles::is_ours(handle) {
            return call!(host.pvar_write(session, handle, buffer));
        }
        let (session, handle) = find(host, session, handle)?;
        let variable = performance_of("t_pvar_write", session, handle).map_err(|e| code(host, e.class()))?;
        // SAFETY: `buffer` is an argument of the tool. It is null or contains a value of the
        // variable's type.
        let Some(value) = (unsafe { take(variable.kind(), buffer) }) else {
            return Ok(constants(host)?.err_invalid);
        };
        Ok(done(host, write_performance(session, handle, &value)))
    }
}
