//! Exports for reductions through handles (MPI 5.0, 6.9): `MPI_Reduce_local`, unpacking with an
//! operation, and operations that the program creates.

use std::ffi::{c_int, c_void};
use std::mem::transmute;

use ddtc::internal::count::Count;
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::kind::{Direction, Op};
use ddtc::internal::methods::*;
use ddtc::internal::object::{self, Object};
use ddtc::internal::process::{Guard, Mutex};

use crate::arguments::{Out, Type, export, handle, natural, or_undefined, out, to_c};
use crate::guard::Outcome;
use crate::numbered::{FIRST_HANDLE, Numbered, number, pointer};
use crate::pack::{bad_position, check_span, null, uncommitted};

/// An operation's function with a count of type `int`: `ddtc_user_function` of ddtc.h.
type Small = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut Type);
/// An operation's function with a count of type `MPI_Count`: `ddtc_user_c_function` of ddtc.h.
type Large = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i64, *mut Type);

/// The function of an operation that the program created. The two variants differ in the type of
/// the function's count.
#[derive(Clone, Copy)]
enum Function {
    Small(Small),
    Large(Large),
}

impl Function {
    /// Combines `n` instances of `datatype` at `new` with those at `old` by calling the function.
    /// Neighbouring instances are `extent` bytes apart. If `n` does not fit in the function's
    /// count, the function is called several times.
    ///
    /// # Safety
    /// `n` instances at `new` must be readable, and `n` instances at `old` readable and writable,
    /// and the two must not overlap. During the call, nothing else may write to the instances at
    /// `new` or access those at `old`. The function must access only the instances that it is
    /// passed.
    unsafe fn call(self, new: *const c_void, old: *mut c_void, n: u64, extent: i64, datatype: Type) {
        let most = match self {
            Function::Small(_) => c_int::MAX as u64,
            Function::Large(_) => i64::MAX as u64,
        };
        let mut first = 0;
        while first < n {
            let (m, mut datatype) = (most.min(n - first), datatype);
            let at = (first as isize).wrapping_mul(extent as isize);
            let (new, old) = (new.cast_mut().wrapping_byte_offset(at), old.wrapping_byte_offset(at));
            // SAFETY: the program created the operation with a function of this type. It gets `m`
            // of the instances that the caller promises, and `m` is at most `most`, so the count is
            // not truncated. Count and datatype are local variables, passed by reference as in MPI.
            unsafe {
                match self {
                    Function::Small(f) => f(new, old, &mut (m as c_int), &mut datatype),
                    Function::Large(f) => f(new, old, &mut (m as i64), &mut datatype),
                }
            }
            first += m;
        }
    }
}

/// An operation that the program created.
struct Own {
    function: Function,
    /// True if the program declared the operation to be commutative.
    commute: bool,
}

/// All operations that the program created and has not freed.
static OPS: Mutex<Numbered<Own>> = Mutex::new(Numbered::new(FIRST_HANDLE));

fn ops() -> Guard<'static, Numbered<Own>> {
    OPS.lock()
}

/// `MPI_OP_NULL` of the standard ABI.
const NULL: i32 = 0x20;

fn refuse(call: &'static str, op: i32, rule: &'static str) -> Error {
    let rule = if op == NULL { "must not be MPI_OP_NULL" } else { rule };
    Error::new(ErrorClass::Op, call, "op", format_args!("{op:#x}"), rule)
}

/// The operation that a handle names: a predefined one of MPI, or one that the program created.
enum Asked {
    Predefined(Op),
    Own(Function),
}

/// Returns the operation that a handle names, or an error of class `Op` if it names none.
fn asked(call: &'static str, op: Type) -> Result<Asked> {
    if let Some(op) = Op::from_abi(op.addr() as u64) {
        return Ok(Asked::Predefined(op));
    }
    let found = ops().get(number(op)).map(|own| own.function);
    found.map(Asked::Own).ok_or_else(|| refuse(call, number(op), "must be an operation that was not freed"))
}

/// Returns the predefined operation that a handle names, or an error of class `Op` for any other
/// handle.
pub(crate) fn predefined(call: &'static str, op: Type) -> Result<Op> {
    Op::from_abi(op.addr() as u64).ok_or_else(|| refuse(call, number(op), "must be a predefined operation"))
}

/// Combines the instances at `inbuf` with those at `inoutbuf`, for both forms of
/// `ddtc_reduce_local`.
///
/// # Safety
/// All instances at `inbuf` must be readable, all instances at `inoutbuf` readable and writable,
/// and the two must not overlap. During the call, nothing else may write to the instances at
/// `inbuf` or access those at `inoutbuf`. The function of an operation that the program created
/// must satisfy the contract of ddtc.h.
unsafe fn reduce_local<N: Count>(
    inbuf: *const c_void,
    inoutbuf: *mut c_void,
    count: N,
    datatype: Type,
    op: Type,
) -> Outcome {
    const CALL: &str = "reduce_local";
    let count = natural(CALL, "count", count.wide())?;
    let asked = asked(CALL, op)?;
    Ok(object::with(CALL, handle(datatype), |o| -> Result<()> {
        let t = o.datatype();
        match asked {
            Asked::Predefined(op) => {
                let applied = o.reduced(op)?.ok_or_else(|| uncommitted(CALL, t))?;
                if applied.packed_size(count)? == 0 {
                    return Ok(());
                }
                check_span(CALL, t, inbuf, count)?;
                check_span(CALL, t, inoutbuf, count)?;
                // SAFETY: the caller promises that all instances at both addresses are readable and
                // those at `inoutbuf` writable, that they do not overlap, and that nothing else
                // interferes during the call. Both spans lie in the address space, as just checked.
                unsafe { applied.combine_raw(inbuf.cast(), count, inoutbuf.cast()) }
            }
            Asked::Own(function) => {
                o.committed()?.ok_or_else(|| uncommitted(CALL, t))?;
                if count > 0 {
                    // SAFETY: the caller promises that `count` instances at both addresses can be
                    // accessed without overlap and without interference, and that the function
                    // accesses only these. The function gets the caller's own arguments.
                    unsafe { function.call(inbuf, inoutbuf, count, t.extent(), datatype) };
                }
                Ok(())
            }
        }
    })??)
}

/// Combines packed data with the instances at `user`, for both forms of `ddtc_unpack_reduce`, and
/// advances the position.
///
/// # Safety
/// `position` must be null or valid for a read and a write. `packed` must be null or have `size`
/// readable bytes, and all instances at `user` must be readable and writable and must not overlap
/// these bytes. During the call, nothing else may write to these bytes or access the instances. The
/// function of an operation that the program created must satisfy the contract of ddtc.h.
unsafe fn unpack_reduce<N: Count>(
    packed: *const c_void,
    size: N,
    position: *mut N,
    (user, count): (*mut c_void, N),
    datatype: Type,
    op: Type,
) -> Outcome {
    const CALL: &str = "unpack_reduce";
    // SAFETY: the caller promises that `position` is null or valid for the read and the write for
    // which it is used.
    let position = unsafe { out(CALL, "position", position)? };
    let count = natural(CALL, "outcount", count.wide())?;
    let asked = asked(CALL, op)?;
    let (at, size) = (position.get().wide(), size.wide());
    let end = object::with(CALL, handle(datatype), |o: &Object| -> Result<i64> {
        let t = o.datatype();
        let committed = o.committed()?.ok_or_else(|| uncommitted(CALL, t))?;
        let bytes = committed.packed_size(count)?;
        // The packed bytes must lie between the position and the end of the buffer. The position is
        // checked even if the buffer is empty or the count is 0.
        if (at | size) < 0 || bytes as i64 > size - at {
            return Err(bad_position(CALL, (at, size, bytes), "insize"));
        }
        // The operation is looked up even if there is nothing to combine. So an operation that is
        // not defined for the datatype is an error for every count.
        let (applied, own) = match asked {
            Asked::Predefined(op) => (o.reduced(op)?, None),
            Asked::Own(function) => (None, o.by_function()?.flatten().map(|by| (function, by))),
        };
        if bytes == 0 {
            return Ok(at);
        }
        // From here on there are bytes to combine, so the packed buffer and the span of the
        // instances are checked before the data are accessed.
        if packed.is_null() {
            return Err(null(CALL, "inbuf"));
        }
        check_span(CALL, t, user, count)?;
        let from = packed.cast::<u8>().wrapping_add(at as usize);
        // SAFETY: the caller promises that all instances at `user` can be read and written, that
        // `size` bytes at `packed`, which is not null, can be read and do not overlap them, and
        // that nothing else interferes. `bytes` bytes lie there after the position, as checked
        // above, and they are the whole stream of `count` instances. The program's function gets
        // arrays of `n` elements that `unpack_raw` passes, and accesses only these until it
        // returns.
        unsafe {
            if let Some(applied) = applied {
                applied.range_raw(Direction::Unpack, user.cast(), count, from.cast_mut(), 0..bytes)?;
            } else if let Some((function, by)) = own {
                let element = by.element();
                let datatype = to_c(object::Handle::of_named(element));
                // Each call of the function gets two arrays of `n` elements. The function changes
                // the elements of `old`. These lie in user memory, or are copied back to user
                // memory.
                by.unpack_raw(from, count, user.cast(), &mut |new, old, n| {
                    function.call(new.cast(), old.cast(), n, element.extent(), datatype);
                })?;
            }
        }
        Ok(at + bytes as i64)
    })??;
    position.set(or_undefined(Some(end)));
    Ok(())
}

/// Creates an operation from a function and writes its handle to `op`.
fn create_op(function: Function, commute: c_int, op: &Out<Type>) -> Outcome {
    let made = ops().insert("op_create", Own { function, commute: commute != 0 })?;
    op.set(pointer(made));
    Ok(())
}

/// Checks that the function of an operation is not null. A null pointer is an error of class `Arg`.
fn given(function: *mut c_void) -> Result<()> {
    match function.is_null() {
        true => Err(Error::new(ErrorClass::Arg, "op_create", "function", "NULL", "must be a function")),
        false => Ok(()),
    }
}

export! {
    fn ddtc_reduce_local(
        inbuf: *const c_void, inoutbuf: *mut c_void, count: c_int, datatype: Type, op: Type,
    ) {
        reduce_local(inbuf, inoutbuf, count, datatype, op)
    }

    fn ddtc_reduce_local_c(
        inbuf: *const c_void, inoutbuf: *mut c_void, count: i64, datatype: Type, op: Type,
    ) {
        reduce_local(inbuf, inoutbuf, count, datatype, op)
    }

    fn ddtc_unpack_reduce(
        inbuf: *const c_void, insize: c_int, position: *mut c_int, outbuf: *mut c_void, outcount: c_int,
        datatype: Type, op: Type,
    ) {
        unpack_reduce(inbuf, insize, position, (outbuf, outcount), datatype, op)
    }

    fn ddtc_unpack_reduce_c(
        inbuf: *const c_void, insize: i64, position: *mut i64, outbuf: *mut c_void, outcount: i64,
        datatype: Type, op: Type,
    ) {
        unpack_reduce(inbuf, insize, position, (outbuf, outcount), datatype, op)
    }

    fn ddtc_op_create(function: *mut c_void, commute: c_int, op: *mut Type) {
        let op = out("op_create", "op", op)?;
        given(function)?;
        // SAFETY: the address is not null, as just checked, and ddtc.h demands that it is a
        // function of type `Small`. Function pointers have the size of data pointers on all targets
        // of ddtc.
        create_op(Function::Small(unsafe { transmute::<*mut c_void, Small>(function) }), commute, &op)
    }

    fn ddtc_op_create_c(function: *mut c_void, commute: c_int, op: *mut Type) {
        let op = out("op_create", "op", op)?;
        given(function)?;
        // SAFETY: the address is not null, as just checked, and ddtc.h demands that it is a
        // function of type `Large`. Function pointers have the size of data pointers on all targets
        // of ddtc.
        create_op(Function::Large(unsafe { transmute::<*mut c_void, Large>(function) }), commute, &op)
    }
}

export! {
    fn ddtc_op_free(op: *mut Type) {
        const CALL: &str = "op_free";
        let op = out(CALL, "op", op)?;
        let freed = number(op.get());
        if Op::from_abi(op.get().addr() as u64).is_some() {
            return Err(refuse(CALL, freed, "must not be predefined: such an operation cannot be freed").into());
        }
        ops().remove(freed).ok_or_else(|| refuse(CALL, freed, "must be an operation that was not freed"))?;
        op.set(pointer(NULL));
        Ok(())
    }

    fn ddtc_op_commutative(op: Type, commute: *mut c_int) {
        const CALL: &str = "op_commutative";
        let commute = out(CALL, "commute", commute)?;
        let commutes = match Op::from_abi(op.addr() as u64) {
            // `Replace` always returns the new one of the two operands, and `NoOp` the old one, so
            // the order of the operands matters. All other predefined operations are commutative.
            Some(op) => !matches!(op, Op::Replace | Op::NoOp),
            None => {
                let known = ops().get(number(op)).map(|own| own.commute);
                known.ok_or_else(|| refuse(CALL, number(op), "must be an operation that was not freed"))?
            }
        };
        commute.set(c_int::from(commutes));
        Ok(())
    }
}
