//! Functions of `MPI_T` about categories: the MPI library's categories, and the category `ddtc`,
//! which has all of ddtc's variables.

use std::ffi::{c_char, c_int};

use super::control::{controls, variables};
use super::performance::{measured, measures};
use super::{Shown, Source, constants, index_of, is, own, set, shown, source_at, string};
use crate::host::Host;

const NAME: &str = "ddtc";

/// Returns the list of categories that tools see: the MPI library's and ddtc's.
fn categories(host: &Host) -> Result<Vec<Source>, c_int> {
    static SHOWN: Shown = Shown::new();
    SHOWN.grown(host, host.f.category_get_num, 1)
}

/// Returns the numbers of control variables, performance variables and categories in a category of
/// the MPI library.
fn sizes(host: &Host, index: c_int) -> Result<[c_int; 3], c_int> {
    let (text, length) = (std::ptr::null_mut::<c_char>(), std::ptr::null_mut::<c_int>());
    let mut n = [0; 3];
    let [cvars, pvars, inner] = &mut n;
    let code = call!(host.category_get_info(index, text, length, text, length, cvars, pvars, inner))?;
    if code == 0 { Ok(n) } else { Err(code) }
}

/// Replaces the MPI library's indices in an array by the indices of the same items that tools see.
/// `n` is the number of items in the category. If the category has grown since the MPI library
/// wrote the indices, the last of the `n` elements may hold values from before the call.
///
/// # Safety
/// `indices` must have room for `len` numbers. The MPI library must have written up to `n` of them.
unsafe fn show(list: &[Source], n: c_int, len: c_int, indices: *mut c_int) {
    for k in 0..n.min(len).max(0) as usize {
        // SAFETY: `k` is less than `n` and `len`, so the element lies in the array, as the caller
        // promises.
        unsafe { *indices.add(k) = shown(list, *indices.add(k)) };
    }
}

/// Writes the indices `all` of ddtc's items to a tool's array, as many as the array has room for.
/// Returns the error code of the tool's call.
///
/// # Safety
/// `indices` must be null or have room for `len` numbers.
unsafe fn members(host: &Host, all: &[c_int], len: c_int, indices: *mut c_int) -> Result<c_int, c_int> {
    let room =
        usize::try_from(len).map_err(|_| constants(host).map_or_else(|code| code, |t| t.err_invalid))?;
    let n = room.min(all.len());
    if n == 0 {
        return Ok(0);
    }
    if indices.is_null() {
        return Ok(constants(host)?.err_invalid);
    }
    // SAFETY: `indices` is not null and `n` is at most `len`, so the array has room, as the caller
    // promises.
    unsafe { std::ptr::copy_nonoverlapping(all.as_ptr(), indices, n) };
    Ok(0)
}

tool! {
    /// Returns the number of categories, the MPI library's and ddtc's.
    fn MPI_T_category_get_num(host, num: *mut c_int) {
        let list = categories(host)?;
        if num.is_null() {
            return call!(host.category_get_num(num));
        }
        // SAFETY: `num` is the tool's place for the number.
        unsafe { set(num, list.len() as c_int) };
        Ok(0)
    }

    /// Returns the name, the description and the numbers of items of a category.
    fn MPI_T_category_get_info(host, index: c_int, name: *mut c_char, name_len: *mut c_int, desc: *mut c_char,
        desc_len: *mut c_int, cvars: *mut c_int, pvars: *mut c_int, inner: *mut c_int) {
        let list = categories(host)?;
        if let Source::Host(i) = source_at(&list, index) {
            return call!(host.category_get_info(i, name, name_len, desc, desc_len, cvars, pvars, inner));
        }
        // SAFETY: the pointers are the tool's places for results, and null for a result that the
        // tool does not want.
        unsafe {
            string(NAME, name, name_len);
            string("The derived datatype compiler.", desc, desc_len);
            set(cvars, controls().count() as c_int);
            set(pvars, measures().count() as c_int);
            set(inner, 0);
        }
        Ok(0)
    }

    /// Finds the index of a category by its name.
    fn MPI_T_category_get_index(host, name: *const c_char, index: *mut c_int) {
        let list = categories(host)?;
        // SAFETY: `name` is the tool's, so it is null or a string.
        let found = index_of(&list, Source::Ours(0)).filter(|_| unsafe { is(name, NAME) });
        if let (Some(found), false) = (found, index.is_null()) {
            // SAFETY: `index` is not null, so it is the tool's place for the index.
            unsafe { set(index, found) };
            return Ok(0);
        }
        let code = call!(host.category_get_index(name, index))?;
        if code == 0 && !index.is_null() {
            // SAFETY: `index` is not null, and the MPI library has written the index there.
            unsafe { *index = shown(&list, *index) };
        }
        Ok(code)
    }

    /// Lists the control variables of a category.
    fn MPI_T_category_get_cvars(host, index: c_int, len: c_int, indices: *mut c_int) {
        let (list, variables) = (categories(host)?, variables(host)?);
        let Source::Host(i) = source_at(&list, index) else {
            // SAFETY: `indices` is the tool's array, which has room for `len` numbers.
            return unsafe { members(host, &own(&variables), len, indices) };
        };
        let code = call!(host.category_get_cvars(i, len, indices))?;
        if code == 0 {
            // SAFETY: `indices` is the tool's array, which has room for `len` numbers. The MPI
            // library has written as many numbers as the category has items, but no more than the
            // array has room for.
            unsafe { show(&variables, sizes(host, i)?[0], len, indices) };
        }
        Ok(code)
    }

    /// Lists the performance variables of a category.
    fn MPI_T_category_get_pvars(host, index: c_int, len: c_int, indices: *mut c_int) {
        let (list, measured) = (categories(host)?, measured(host)?);
        let Source::Host(i) = source_at(&list, index) else {
            // SAFETY: `indices` is the tool's array, which has room for `len` numbers.
            return unsafe { members(host, &own(&measured), len, indices) };
        };
        let code = call!(host.category_get_pvars(i, len, indices))?;
        if code == 0 {
            // SAFETY: `indices` is the tool's array, which has room for `len` numbers. The MPI
            // library has written as many numbers as the category has items, but no more than the
            // array has room for.
            unsafe { show(&measured, sizes(host, i)?[1], len, indices) };
        }
        Ok(code)
    }

    /// Lists the categories in a category.
    fn MPI_T_category_get_categories(host, index: c_int, len: c_int, indices: *mut c_int) {
        let list = categories(host)?;
        // SAFETY: `indices` is the tool's array, and nothing is written to it.
        let Source::Host(i) = source_at(&list, index) else { return unsafe { members(host, &[], len, indices) } };
        let code = call!(host.category_get_categories(i, len, indices))?;
        if code == 0 {
            // SAFETY: `indices` is the tool's array, which has room for `len` numbers. The MPI
            // library has written as many numbers as the category has items, but no more than the
            // array has room for.
            unsafe { show(&list, sizes(host, i)?[2], len, indices) };
        }
        Ok(code)
    }

    /// Returns the number of events of a category. The category `ddtc` has none.
    fn MPI_T_category_get_num_events(host, index: c_int, num: *mut c_int) {
        match source_at(&categories(host)?, index) {
            Source::Host(i) => call!(host.category_get_num_events(i, num)),
            Source::Ours(_) => {
                // SAFETY: `num` is null or the tool's place for the number.
                unsafe { set(num, 0) };
                Ok(0)
            }
        }
    }

    /// Lists the events of a category. The category `ddtc` has none.
    fn MPI_T_category_get_events(host, index: c_int, len: c_int, indices: *mut c_int) {
        match source_at(&categories(host)?, index) {
            Source::Host(i) => call!(host.category_get_events(i, len, indices)),
            // SAFETY: `indices` is the tool's array, and nothing is written to it.
            Source::Ours(_) => unsafe { members(host, &[], len, indices) },
        }
    }
}
