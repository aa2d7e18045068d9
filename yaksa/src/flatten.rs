//! Types between processes: the wire form of a tree, which says its magic number, version and length before anything else.

use std::ffi::{c_int, c_void};

use ddtc::Datatype;
use ddtc::internal::methods::*;

use crate::abi::{Code, Result, export, out, require};
use crate::startup::running;
use crate::{convert, received, recent};

/// First bytes of a form ([`Datatype::to_wire`]).
const MAGIC: [u8; 4] = *b"ddtw";
/// Bytes in which a form says what it is and how long.
const START: usize = 16;

/// The form of a type, which callers carry in a length that is an `int`.
fn fits(length: usize) -> Result<usize> {
    if length <= c_int::MAX as usize { Ok(length) } else { Err(Code::NotSupported) }
}

/// The form at `form`, of the length that it says it has.
///
/// # Safety
/// `form` must point to a form, or to 16 bytes that do not say that they are one.
unsafe fn form<'a>(form: *const u8) -> Result<&'a [u8]> {
    require(!form.is_null())?;
    // SAFETY: the caller vouches for these; four first, so that as little as can be is read of what is no form.
    let magic = unsafe { form.cast::<[u8; 4]>().read_unaligned() };
    require(magic == MAGIC)?;
    // SAFETY: as above.
    let start = unsafe { form.cast::<[u8; START]>().read_unaligned() };
    let length = start.last_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let length = usize::try_from(length).ok().filter(|&n| n >= START).ok_or(Code::Internal)?;
    // SAFETY: the caller vouches for the form whose length this is; a checksum is looked at before anything is made of it.
    Ok(unsafe { std::slice::from_raw_parts(form, fits(length)?) })
}

export! {
    fn yaksa_flatten_size(number: u64, size: *mut usize) {
        let size = out(size)?;
        running()?;
        size.set(fits(recent::get(number)?.datatype()?.wire_size()?)?);
        Ok(())
    }

    fn yaksa_flatten(number: u64, flattened: *mut c_void) {
        require(!flattened.is_null())?;
        running()?;
        let form = recent::get(number)?.datatype()?.to_wire()?;
        fits(form.len())?;
        // The caller has as much room as `yaksa_flatten_size` told for this type.
        std::ptr::copy_nonoverlapping(form.as_ptr(), flattened.cast(), form.len());
        Ok(())
    }

    fn yaksa_unflatten(number: *mut u64, flattened: *const c_void) {
        let number = out(number)?;
        running()?;
        let form = form(flattened.cast())?;
        let node = match received::find(form) {
            Some(node) => node,
            None => {
                let t = Datatype::from_wire(form)?;
                if t.size() == 0 && t.extent() == 0 && t.lb() == 0 {
                    number.set(0);
                    return Ok(());
                }
                let node = convert::node(&t)?;
                received::keep(form, &node);
                node
            }
        };
        number.set(recent::insert(node)?);
        Ok(())
    }
}
