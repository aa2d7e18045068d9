//! Error handlers (MPI 5.0, 9.3): what ddtc_mpi.h and the Fortran module do with an error.
//!
//! There is one handler in force for communicators, and with them for everything that is no file, and one for files. A handler
//! lives while the program holds a reference or it is in force. Handlers run with no lock held.

use std::ffi::{c_int, c_void};
use std::mem::transmute;

use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;
use ddtc::internal::process::{Guard, Mutex};

use crate::arguments::{Type, export, out};
use crate::numbered::{FIRST_HANDLE, Numbered, number, pointer};

const NULL: i32 = 0x140;
const ARE_FATAL: i32 = 0x141;
const RETURN: i32 = 0x143;

/// `DDTC_ERRHANDLER_FORTRAN` of ddtc.h: added to the kind of object.
const FORTRAN: c_int = 8;

/// `MPI_Comm_errhandler_function` and its kin: a handle and a code by reference, and nothing more from here.
type InC = unsafe extern "C" fn(*mut Type, *mut c_int, ...);
/// An error handler's function that takes a Fortran handle.
type InFortran = unsafe extern "C" fn(*mut c_int, *mut c_int);

struct Handler {
    /// Of the objects that it is for, and the calling convention.
    kind: c_int,
    function: usize,
    /// References that the program has not freed.
    held: u32,
    /// Whether it is in force.
    in_force: bool,
}

struct State {
    handlers: Numbered<Handler>,
    /// For communicators, for files.
    in_force: [i32; 2],
}

static STATE: Mutex<State> =
    Mutex::new(State { handlers: Numbered::new(FIRST_HANDLE), in_force: [ARE_FATAL, RETURN] });

fn state() -> Guard<'static, State> {
    STATE.lock()
}

fn is_predefined(handler: i32) -> bool {
    (ARE_FATAL..=RETURN).contains(&handler)
}

fn refuse(call: &'static str, handler: i32, rule: &'static str) -> Error {
    let rule = if handler == NULL { "is MPI_ERRHANDLER_NULL" } else { rule };
    Error::new(ErrorClass::Errhandler, call, "errhandler", format_args!("{handler:#x}"), rule)
}

/// The place of the handler in force for objects of a kind.
fn place(call: &'static str, kind: c_int) -> Result<usize> {
    let rule = "must be that of communicators or files: there are no other objects with error handlers";
    let place = usize::try_from(kind).ok().filter(|&k| k < 2);
    place.ok_or_else(|| Error::new(ErrorClass::Arg, call, "kind", kind, rule))
}

impl State {
    /// Counts a reference of the program more or less; a handler without any use goes.
    fn hold(&mut self, call: &'static str, handler: i32, more: bool) -> Result<()> {
        if is_predefined(handler) {
            return Ok(());
        }
        let known = self.handlers.get(handler).filter(|h| more || h.held > 0);
        let known = known.ok_or_else(|| refuse(call, handler, "is no error handler, or was freed"))?;
        known.held = if more { known.held.saturating_add(1) } else { known.held - 1 };
        if known.held == 0 && !known.in_force {
            self.handlers.remove(handler);
        }
        Ok(())
    }

    fn put(&mut self, call: &'static str, kind: c_int, handler: i32) -> Result<()> {
        let place = place(call, kind)?;
        if !is_predefined(handler) {
            let rule = "is no error handler for such objects, or was freed";
            let known = self.handlers.get(handler).filter(|h| h.held > 0 && h.kind & !FORTRAN == kind);
            known.ok_or_else(|| refuse(call, handler, rule))?.in_force = true;
        }
        let old = std::mem::replace(&mut self.in_force[place], handler);
        if old != handler
            && let Some(known) = self.handlers.get(old)
        {
            known.in_force = false;
            if known.held == 0 {
                self.handlers.remove(old);
            }
        }
        Ok(())
    }
}

/// Whether errors return, and its opposite, where nothing but that is asked (`DDTC_MPI_ERRORS_RETURN`).
pub(crate) fn set_returning(returning: bool) -> Result<()> {
    state().put("mpi", 0, if returning { RETURN } else { ARE_FATAL })
}

pub(crate) fn returning() -> bool {
    let handler = state().in_force[0];
    handler == RETURN || !is_predefined(handler)
}

export! {
    fn ddtc_errhandler_create(kind: c_int, function: *mut c_void, errhandler: *mut Type) {
        const CALL: &str = "errhandler_create";
        let errhandler = out(CALL, "errhandler", errhandler)?;
        out(CALL, "function", function)?;
        if !(0..4).contains(&(kind & !FORTRAN)) {
            return Err(Error::new(ErrorClass::Arg, CALL, "kind", kind, "must be a DDTC_ERRHANDLER_ constant").into());
        }
        let handler = Handler { kind, function: function.expose_provenance(), held: 1, in_force: false };
        errhandler.set(pointer(state().handlers.insert(CALL, handler)?));
        Ok(())
    }

    fn ddtc_errhandler_free(errhandler: *mut Type) {
        let errhandler = out("errhandler_free", "errhandler", errhandler)?;
        state().hold("errhandler_free", number(errhandler.get()), false)?;
        errhandler.set(pointer(NULL));
        Ok(())
    }

    fn ddtc_errhandler_set(kind: c_int, errhandler: Type) {
        Ok(state().put("errhandler_set", kind, number(errhandler))?)
    }

    fn ddtc_errhandler_get(kind: c_int, errhandler: *mut Type) {
        const CALL: &str = "errhandler_get";
        let errhandler = out(CALL, "errhandler", errhandler)?;
        let mut state = state();
        let handler = state.in_force[place(CALL, kind)?];
        state.hold(CALL, handler, true)?;
        errhandler.set(pointer(handler));
        Ok(())
    }

    fn ddtc_errhandler_call(kind: c_int, object: Type, code: c_int, fatal: *mut c_int) {
        const CALL: &str = "errhandler_call";
        let fatal = out(CALL, "fatal", fatal)?;
        let (handler, known) = {
            let mut state = state();
            let handler = state.in_force[place(CALL, kind)?];
            (handler, state.handlers.get(handler).map(|h| (h.kind, h.function)))
        };
        fatal.set(c_int::from(is_predefined(handler) && handler != RETURN));
        if let Some((kind, function)) = known {
            let function: *const () = std::ptr::with_exposed_provenance(function);
            let mut code = code;
            if kind & FORTRAN != 0 {
                let mut object = number(object);
                // SAFETY: the program gave this procedure for this purpose; the places are ours.
                unsafe { transmute::<*const (), InFortran>(function)(&mut object, &mut code) };
            } else {
                let mut object = object;
                // SAFETY: as above, a function.
                unsafe { transmute::<*const (), InC>(function)(&mut object, &mut code) };
            }
        }
        Ok(())
    }
}
