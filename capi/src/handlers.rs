//! Exports for error handlers (MPI 5.0, 9.3). An error handler decides what ddtc_mpi.h and the
//! Fortran module do with an error.
//!
//! Two error handlers are in force at any time: one for files, and one for communicators and
//! everything else. A handler lives as long as the program holds a reference to it, and also while
//! it is in force. No lock is held while a handler runs.

use std::ffi::{c_int, c_void};
use std::mem::transmute;

use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;
use ddtc::internal::process::{Guard, Mutex};

use crate::arguments::{Type, export, out};
use crate::numbered::{FIRST_HANDLE, Numbered, number, pointer};

/// `MPI_ERRHANDLER_NULL` of the standard ABI.
const NULL: i32 = 0x140;
/// `MPI_ERRORS_ARE_FATAL` of the standard ABI, the first predefined handler. `MPI_ERRORS_ABORT`
/// follows it.
const ARE_FATAL: i32 = 0x141;
/// `MPI_ERRORS_RETURN` of the standard ABI, the last predefined handler.
const RETURN: i32 = 0x143;

/// `DDTC_ERRHANDLER_FORTRAN` of ddtc.h. This value is added to the kind of object if the handler is
/// a Fortran procedure.
const FORTRAN: c_int = 8;

/// An error handler's function in C: `MPI_Comm_errhandler_function` or the corresponding type for
/// another kind of object. The function gets a handle and a code by reference. This library passes
/// no further arguments.
type InC = unsafe extern "C" fn(*mut Type, *mut c_int, ...);
/// An error handler's procedure in Fortran. The procedure gets a handle and a code as INTEGERs by
/// reference.
type InFortran = unsafe extern "C" fn(*mut c_int, *mut c_int);

/// An error handler that the program created.
struct Handler {
    /// Kind of the objects for which the handler was created, plus [`FORTRAN`] for a procedure.
    kind: c_int,
    /// Address of the function, stored as a number.
    function: usize,
    /// Number of references that the program holds.
    references: u32,
    /// True while the handler is in force.
    in_force: bool,
}

/// All error handlers that the program created and that still live, and the numbers of the error
/// handlers in force.
struct State {
    handlers: Numbered<Handler>,
    /// Numbers of the two handlers in force: the handler for communicators, and the handler for
    /// files.
    in_force: [i32; 2],
}

static STATE: Mutex<State> =
    Mutex::new(State { handlers: Numbered::new(FIRST_HANDLE), in_force: [ARE_FATAL, RETURN] });

fn state() -> Guard<'static, State> {
    STATE.lock()
}

/// Returns true for `MPI_ERRORS_ARE_FATAL`, `MPI_ERRORS_ABORT` and `MPI_ERRORS_RETURN`.
fn is_predefined(handler: i32) -> bool {
    (ARE_FATAL..=RETURN).contains(&handler)
}

fn refuse(call: &'static str, handler: i32, rule: &'static str) -> Error {
    let rule = if handler == NULL { "must not be MPI_ERRHANDLER_NULL" } else { rule };
    Error::new(ErrorClass::Errhandler, call, "errhandler", format_args!("{handler:#x}"), rule)
}

/// Returns the index in [`State::in_force`] for objects of a kind, or an error of class `Arg` for a
/// kind other than communicators and files.
fn in_force_index(call: &'static str, kind: c_int) -> Result<usize> {
    let rule = "must be that of communicators or files: there are no other objects with error handlers";
    let index = usize::try_from(kind).ok().filter(|&k| k < 2);
    index.ok_or_else(|| Error::new(ErrorClass::Arg, call, "kind", kind, rule))
}

impl State {
    /// Adds a reference of the program to a handler if `more` is true, otherwise removes a
    /// reference. If a handler then has no references and is not in force, it is dropped.
    /// Predefined handlers are not counted.
    ///
    /// # Errors
    /// Class `Errhandler` if there is no such handler, or if the program has no reference to
    /// remove.
    fn hold(&mut self, call: &'static str, handler: i32, more: bool) -> Result<()> {
        if is_predefined(handler) {
            return Ok(());
        }
        let known = self.handlers.get(handler).filter(|h| more || h.references > 0);
        let known =
            known.ok_or_else(|| refuse(call, handler, "must be an error handler that was not freed"))?;
        known.references = if more { known.references.saturating_add(1) } else { known.references - 1 };
        if known.references == 0 && !known.in_force {
            self.handlers.remove(handler);
        }
        Ok(())
    }

    /// Puts `handler` in force for objects of a kind. The handler that it replaces is dropped if
    /// the program holds no reference to it.
    ///
    /// # Errors
    /// Class `Arg` for a kind other than communicators and files. Class `Errhandler` if there is no
    /// such handler, if it was freed, or if it was created for another kind. After an error, the
    /// handler in force stays the same.
    fn put(&mut self, call: &'static str, kind: c_int, handler: i32) -> Result<()> {
        let index = in_force_index(call, kind)?;
        if !is_predefined(handler) {
            let rule = "must be an error handler for such objects that was not freed";
            let known = self.handlers.get(handler).filter(|h| h.references > 0 && h.kind & !FORTRAN == kind);
            known.ok_or_else(|| refuse(call, handler, rule))?.in_force = true;
        }
        let old = std::mem::replace(&mut self.in_force[index], handler);
        if old != handler
            && let Some(known) = self.handlers.get(old)
        {
            known.in_force = false;
            if known.references == 0 {
                self.handlers.remove(old);
            }
        }
        Ok(())
    }
}

/// Puts `MPI_ERRORS_RETURN` in force for communicators if `returning` is true, otherwise
/// `MPI_ERRORS_ARE_FATAL`. The setting `DDTC_MPI_ERRORS_RETURN`, which has only these two values,
/// uses this function.
pub(crate) fn set_returning(returning: bool) -> Result<()> {
    state().put("mpi", 0, if returning { RETURN } else { ARE_FATAL })
}

/// Returns true if an error of a communicator is returned to the caller or passed to a handler of
/// the program, and false if it ends the program.
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
        let handler = Handler { kind, function: function.expose_provenance(), references: 1, in_force: false };
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
        let handler = state.in_force[in_force_index(CALL, kind)?];
        state.hold(CALL, handler, true)?;
        errhandler.set(pointer(handler));
        Ok(())
    }

    fn ddtc_errhandler_call(kind: c_int, object: Type, code: c_int, fatal: *mut c_int) {
        const CALL: &str = "errhandler_call";
        let fatal = out(CALL, "fatal", fatal)?;
        let (handler, known) = {
            let mut state = state();
            let handler = state.in_force[in_force_index(CALL, kind)?];
            (handler, state.handlers.get(handler).map(|h| (h.kind, h.function)))
        };
        fatal.set(c_int::from(is_predefined(handler) && handler != RETURN));
        if let Some((kind, function)) = known {
            let function: *const () = std::ptr::with_exposed_provenance(function);
            let mut code = code;
            if kind & FORTRAN != 0 {
                let mut object = number(object);
                // SAFETY: the number is the address that the program passed, with
                // DDTC_ERRHANDLER_FORTRAN in the kind, as a procedure with two INTEGERs, which is
                // the type `InFortran`. Both references are to local variables that live until
                // after the call. The lock of the state was released above.
                unsafe { transmute::<*const (), InFortran>(function)(&mut object, &mut code) };
            } else {
                let mut object = object;
                // SAFETY: the number is the address that the program passed, without
                // DDTC_ERRHANDLER_FORTRAN, as an error handler's function, which has the type
                // `InC`. Both references are to local variables that live until after the call. The
                // lock of the state was released above.
                unsafe { transmute::<*const (), InC>(function)(&mut object, &mut code) };
            }
        }
        Ok(())
    }
}
