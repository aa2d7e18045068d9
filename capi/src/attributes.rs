//! Exports for keyvals and attributes (MPI 5.0, 7.7.4), whose callbacks are C functions or Fortran
//! procedures.

use std::ffi::{c_int, c_void};
use std::mem::transmute;

use ddtc::internal::object::{self, Callbacks, Handle};

use crate::arguments::{Type, export, handle, out, to_c};
use crate::fortran;

/// A copy callback in C: `MPI_Type_copy_attr_function`.
type Copy =
    unsafe extern "C" fn(Type, c_int, *mut c_void, *mut c_void, *mut *mut c_void, *mut c_int) -> c_int;
/// A delete callback in C: `MPI_Type_delete_attr_function`.
type Delete = unsafe extern "C" fn(Type, c_int, *mut c_void, *mut c_void) -> c_int;
/// A copy callback in Fortran: `SUBROUTINE COPY(OLDTYPE, KEYVAL, EXTRA_STATE, VALUE_IN, VALUE_OUT,
/// FLAG, IERROR)`.
type FortranCopy = unsafe extern "C" fn(
    *const c_int,
    *const c_int,
    *const isize,
    *const isize,
    *mut isize,
    *mut c_int,
    *mut c_int,
);
/// A delete callback in Fortran: `SUBROUTINE DELETE(DATATYPE, KEYVAL, VALUE, EXTRA_STATE, IERROR)`.
type FortranDelete = unsafe extern "C" fn(*const c_int, *const c_int, *const isize, *const isize, *mut c_int);

/// A callback argument: one of the ABI's two constants 0 and 1, or a function.
#[derive(Clone, Copy)]
enum Choice<F> {
    /// `MPI_TYPE_NULL_COPY_FN` or `MPI_TYPE_NULL_DELETE_FN`. As a copy callback it does not copy
    /// the attribute. As a delete callback it does nothing.
    Null,
    /// `MPI_TYPE_DUP_FN`. As a copy callback it copies the attribute with the same value. As a
    /// delete callback it does nothing.
    Dup,
    Call(F),
}

/// Returns the callback that an argument with the value `bits` stands for. `function` converts an
/// address into a function pointer, and is called only if `bits` is neither 0 nor 1.
fn choice<F>(bits: usize, function: impl FnOnce(*const ()) -> F) -> Choice<F> {
    match bits {
        0 => Choice::Null,
        1 => Choice::Dup,
        _ => Choice::Call(function(std::ptr::with_exposed_provenance(bits))),
    }
}

/// Callbacks in C. `extra` is the address `extra_state`, stored as a number. The address belongs to
/// the program, and the library only passes it back to the program.
struct InC {
    copy: Choice<Copy>,
    delete: Choice<Delete>,
    extra: usize,
}

/// Returns the address that was stored as the number `bits`.
fn pointer(bits: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(bits)
}

impl Callbacks for InC {
    fn copy(&self, old: Handle, keyval: i32, value: usize) -> Result<Option<usize>, i32> {
        match self.copy {
            Choice::Null => Ok(None),
            Choice::Dup => Ok(Some(value)),
            Choice::Call(copy) => {
                let (mut new, mut flag) = (std::ptr::null_mut(), 0);
                // SAFETY: the program passed `copy` as a function of type `Copy` to
                // `ddtc_type_create_keyval`, to be called with these arguments. `new` and `flag`
                // are local variables that live until after the call.
                let code = unsafe {
                    copy(to_c(old), keyval, pointer(self.extra), pointer(value), &mut new, &mut flag)
                };
                if code != 0 { Err(code) } else { Ok((flag != 0).then_some(new.expose_provenance())) }
            }
        }
    }

    fn delete(&self, datatype: Handle, keyval: i32, value: usize) -> Result<(), i32> {
        let Choice::Call(delete) = self.delete else { return Ok(()) };
        // SAFETY: the program passed `delete` as a function of type `Delete` to
        // `ddtc_type_create_keyval`, to be called with these arguments.
        match unsafe { delete(to_c(datatype), keyval, pointer(value), pointer(self.extra)) } {
            0 => Ok(()),
            code => Err(code),
        }
    }
}

/// Callbacks in Fortran. `extra` is the value of `EXTRA_STATE` and not an address.
struct InFortran {
    copy: Choice<FortranCopy>,
    delete: Choice<FortranDelete>,
    extra: isize,
}

impl Callbacks for InFortran {
    fn copy(&self, old: Handle, keyval: i32, value: usize) -> Result<Option<usize>, i32> {
        match self.copy {
            Choice::Null => Ok(None),
            Choice::Dup => Ok(Some(value)),
            Choice::Call(copy) => {
                let old = object::to_integer(old).map_err(|e| e.class() as i32)?;
                let (value, mut new, mut flag, mut code) = (value as isize, 0, fortran::logical(false), 0);
                // SAFETY: the program passed `copy` as a procedure of this interface to
                // `ddtc_type_create_keyval_f`, to be called with these arguments. All references
                // are to local variables and a field of `self`, which live until after the call.
                unsafe { copy(&old, &keyval, &self.extra, &value, &mut new, &mut flag, &mut code) };
                if code != 0 { Err(code) } else { Ok(fortran::truth(flag).then_some(new as usize)) }
            }
        }
    }

    fn delete(&self, datatype: Handle, keyval: i32, value: usize) -> Result<(), i32> {
        let Choice::Call(delete) = self.delete else { return Ok(()) };
        let datatype = object::to_integer(datatype).map_err(|e| e.class() as i32)?;
        let (value, mut code) = (value as isize, 0);
        // SAFETY: the program passed `delete` as a procedure of this interface to
        // `ddtc_type_create_keyval_f`, to be called with these arguments. All references are to
        // local variables and a field of `self`, which live until after the call.
        unsafe { delete(&datatype, &keyval, &value, &self.extra, &mut code) };
        if code != 0 { Err(code) } else { Ok(()) }
    }
}

export! {
    fn ddtc_type_create_keyval(copy: usize, delete: usize, keyval: *mut c_int, extra: *mut c_void) {
        let keyval = out("type_create_keyval", "type_keyval", keyval)?;
        let callbacks = InC {
            // SAFETY: `choice` passes on only an address that is none of the ABI's constants 0 and
            // 1. ddtc.h demands that it is a function of type `Copy`, whose pointers have this
            // size.
            copy: choice(copy, |f| unsafe { transmute::<*const (), Copy>(f) }),
            // SAFETY: as for `copy`, and ddtc.h demands that the function has the type `Delete`.
            delete: choice(delete, |f| unsafe { transmute::<*const (), Delete>(f) }),
            extra: extra.expose_provenance(),
        };
        keyval.set(object::create_keyval(Box::new(callbacks))?);
        Ok(())
    }

    fn ddtc_type_create_keyval_f(copy: usize, delete: usize, keyval: *mut c_int, extra: *const isize) {
        let keyval = out("type_create_keyval", "type_keyval", keyval)?;
        let callbacks = InFortran {
            // SAFETY: `choice` passes on only an address that is none of the ABI's constants 0 and
            // 1. ddtc.h demands that it is a Fortran procedure with the interface of `FortranCopy`,
            // whose pointers have this size.
            copy: choice(copy, |f| unsafe { transmute::<*const (), FortranCopy>(f) }),
            // SAFETY: as for `copy`, and ddtc.h demands the interface of `FortranDelete`.
            delete: choice(delete, |f| unsafe { transmute::<*const (), FortranDelete>(f) }),
            extra: out("type_create_keyval", "extra_state", extra.cast_mut())?.get(),
        };
        keyval.set(object::create_keyval(Box::new(callbacks))?);
        Ok(())
    }

    fn ddtc_type_free_keyval(keyval: *mut c_int) {
        let keyval = out("type_free_keyval", "type_keyval", keyval)?;
        object::free_keyval(keyval.get())?;
        // The value 0 is MPI_KEYVAL_INVALID.
        keyval.set(0);
        Ok(())
    }

    fn ddtc_type_set_attr(datatype: Type, keyval: c_int, value: *mut c_void) {
        object::set_attribute(handle(datatype), keyval, value.expose_provenance())
    }

    fn ddtc_type_get_attr(datatype: Type, keyval: c_int, value: *mut c_void, flag: *mut c_int) {
        const CALL: &str = "type_get_attr";
        let (value, flag) = (out(CALL, "attribute_val", value.cast::<*mut c_void>())?, out(CALL, "flag", flag)?);
        let known = object::get_attribute(handle(datatype), keyval)?;
        if let Some(bits) = known {
            value.set(pointer(bits));
        }
        flag.set(c_int::from(known.is_some()));
        Ok(())
    }

    fn ddtc_type_delete_attr(datatype: Type, keyval: c_int) {
        object::delete_attribute(handle(datatype), keyval)
    }
}
