//! Reductions through handles (MPI 5.0, 6.9): reduce_local, unpacking with an operation, and operations of the caller's own.

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

/// `ddtc_user_function` and `ddtc_user_function_c`.
type Small = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut Type);
type Large = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i64, *mut Type);

#[derive(Clone, Copy)]
enum Function {
    Small(Small),
    Large(Large),
}

impl Function {
    /// Calls it with `n` instances of `datatype`, in pieces that its count holds, the one `extent` bytes from the other.
    ///
    /// # Safety
    /// Both are so many instances, apart from each other; the function keeps to them.
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
            // SAFETY: as the caller promises; arguments by reference, as MPI passes them.
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

struct Own {
    function: Function,
    commute: bool,
}

static OPS: Mutex<Numbered<Own>> = Mutex::new(Numbered::new(FIRST_HANDLE));

fn ops() -> Guard<'static, Numbered<Own>> {
    OPS.lock()
}

/// `MPI_OP_NULL`.
const NULL: i32 = 0x20;

fn refuse(call: &'static str, op: i32, rule: &'static str) -> Error {
    let rule = if op == NULL { "is MPI_OP_NULL" } else { rule };
    Error::new(ErrorClass::Op, call, "op", format_args!("{op:#x}"), rule)
}

/// An operation of MPI's, or of the caller's own.
enum Asked {
    Predefined(Op),
    Own(Function),
}

fn asked(call: &'static str, op: Type) -> Result<Asked> {
    if let Some(op) = Op::from_abi(op.addr() as u64) {
        return Ok(Asked::Predefined(op));
    }
    let found = ops().get(number(op)).map(|own| own.function);
    found.map(Asked::Own).ok_or_else(|| refuse(call, number(op), "is no operation, or was freed"))
}

/// One of MPI's operations.
pub(crate) fn predefined(call: &'static str, op: Type) -> Result<Op> {
    Op::from_abi(op.addr() as u64).ok_or_else(|| refuse(call, number(op), "is no predefined operation"))
}

/// # Safety
/// As of `ddtc_reduce_local`.
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
                // SAFETY: the caller promises that all instances at both addresses are valid, do
                // not overlap, and are not used by others during the call.
                unsafe { applied.combine_raw(inbuf.cast(), count, inoutbuf.cast()) }
            }
            Asked::Own(function) => {
                o.committed()?.ok_or_else(|| uncommitted(CALL, t))?;
                if count > 0 {
                    // SAFETY: the same; the function is called with the caller's own arguments.
                    unsafe { function.call(inbuf, inoutbuf, count, t.extent(), datatype) };
                }
                Ok(())
            }
        }
    })??)
}

/// # Safety
/// As of `ddtc_unpack_reduce`.
unsafe fn unpack_reduce<N: Count>(
    packed: *const c_void,
    size: N,
    position: *mut N,
    (user, count): (*mut c_void, N),
    datatype: Type,
    op: Type,
) -> Outcome {
    const CALL: &str = "unpack_reduce";
    // SAFETY: as the caller promises.
    let position = unsafe { out(CALL, "position", position)? };
    let count = natural(CALL, "outcount", count.wide())?;
    let asked = asked(CALL, op)?;
    let (at, size) = (position.get().wide(), size.wide());
    let end = object::with(CALL, handle(datatype), |o: &Object| -> Result<i64> {
        let t = o.datatype();
        let committed = o.committed()?.ok_or_else(|| uncommitted(CALL, t))?;
        let bytes = committed.packed_size(count)?;
        if (at | size) < 0 || bytes as i64 > size - at {
            return Err(bad_position(CALL, (at, size, bytes), "insize"));
        }
        // What is wrong with the operation is told whatever the count.
        let (applied, own) = match asked {
            Asked::Predefined(op) => (o.reduced(op)?, None),
            Asked::Own(function) => (None, o.by_function()?.flatten().map(|by| (function, by))),
        };
        if bytes == 0 {
            return Ok(at);
        }
        if packed.is_null() {
            return Err(null(CALL, "inbuf"));
        }
        check_span(CALL, t, user, count)?;
        let from = packed.cast::<u8>().wrapping_add(at as usize);
        // SAFETY: the caller promises that all instances at `user` can be read and written, and
        // that `size` bytes at `packed`, which do not overlap them, can be read. `bytes` bytes lie
        // there after the position. Nothing else uses the instances during the call.
        unsafe {
            if let Some(applied) = applied {
                applied.range_raw(Direction::Unpack, user.cast(), count, from.cast_mut(), 0..bytes)?;
            } else if let Some((function, by)) = own {
                let element = by.element();
                let datatype = to_c(object::Handle::of_named(element));
                // Rows of so many elements, of which the function changes the user's.
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

/// Makes an operation of a function.
fn create_op(function: Function, commute: c_int, op: &Out<Type>) -> Outcome {
    let made = ops().insert("op_create", Own { function, commute: commute != 0 })?;
    op.set(pointer(made));
    Ok(())
}

/// Whether there is a function.
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
        // SAFETY: the caller passes a function of this type.
        create_op(Function::Small(unsafe { transmute::<*mut c_void, Small>(function) }), commute, &op)
    }

    fn ddtc_op_create_c(function: *mut c_void, commute: c_int, op: *mut Type) {
        let op = out("op_create", "op", op)?;
        given(function)?;
        // SAFETY: the caller passes a function of this type.
        create_op(Function::Large(unsafe { transmute::<*mut c_void, Large>(function) }), commute, &op)
    }
}

export! {
    fn ddtc_op_free(op: *mut Type) {
        const CALL: &str = "op_free";
        let op = out(CALL, "op", op)?;
        let freed = number(op.get());
        if Op::from_abi(op.get().addr() as u64).is_some() {
            return Err(refuse(CALL, freed, "is predefined").into());
        }
        ops().remove(freed).ok_or_else(|| refuse(CALL, freed, "is no operation, or was freed"))?;
        op.set(pointer(NULL));
        Ok(())
    }

    fn ddtc_op_commutative(op: Type, commute: *mut c_int) {
        const CALL: &str = "op_commutative";
        let commute = out(CALL, "commute", commute)?;
        let commutes = match Op::from_abi(op.addr() as u64) {
            // The last one wins with the one, the first with the other.
            Some(op) => !matches!(op, Op::Replace | Op::NoOp),
            None => {
                let known = ops().get(number(op)).map(|own| own.commute);
                known.ok_or_else(|| refuse(CALL, number(op), "is no operation, or was freed"))?
            }
        };
        commute.set(c_int::from(commutes));
        Ok(())
    }
}
