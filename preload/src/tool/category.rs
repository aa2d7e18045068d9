//! Categories: the host's, then one of ours that holds all our variables.

use std::ffi::{c_char, c_int};

use super::control::{controls, variables};
use super::performance::{measured, measures};
use super::{Shown, Source, at, constants, is, own, place, set, shown, string};
use crate::host::Host;

const NAME: &str = "ddtc";

fn categories(host: &Host) -> Result<Vec<Source>, c_int> {
    static SHOWN: Shown = Shown::new();
    SHOWN.grown(host, host.f.category_get_num, 1)
}

/// Numbers of control variables, performance variables and categories in a category of the host.
fn sizes(host: &Host, index: c_int) -> Result<[c_int; 3], c_int> {
    let (text, length) = (std::ptr::null_mut::<c_char>(), std::ptr::null_mut::<c_int>());
    let mut n = [0; 3];
    let [cvars, pvars, inner] = &mut n;
    let code = call!(host.category_get_info(index, text, length, text, length, cvars, pvars, inner))?;
    if code == 0 { Ok(n) } else { Err(code) }
}

/// Turns the host's indices into shown ones. If the category has grown since the host wrote them,
/// the last of `n` may be what the caller's array held before.
///
/// # Safety
/// `indices` must have room for `len` numbers, of which the host has written up to `n`.
unsafe fn show(list: &[Source], n: c_int, len: c_int, indices: *mut c_int) {
    for k in 0..n.min(len).max(0) as usize {
        // SAFETY: as the caller promises.
        unsafe { *indices.add(k) = shown(list, *indices.add(k)) };
    }
}

/// As many members of ours as there is room for.
///
/// # Safety
/// `indices` must be null or have room for `len`.
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
    // SAFETY: as the caller promises.
    unsafe { std::ptr::copy_nonoverlapping(all.as_ptr(), indices, n) };
    Ok(0)
}

tool! {
    /// The host's categories and ours.
    fn MPI_T_category_get_num(host, num: *mut c_int) {
        let list = categories(host)?;
        if num.is_null() {
            return call!(host.category_get_num(num));
        }
        // SAFETY: a place for the number.
        unsafe { set(num, list.len() as c_int) };
        Ok(0)
    }

    /// A category.
    fn MPI_T_category_get_info(host, index: c_int, name: *mut c_char, name_len: *mut c_int, desc: *mut c_char,
        desc_len: *mut c_int, cvars: *mut c_int, pvars: *mut c_int, inner: *mut c_int) {
        let list = categories(host)?;
        if let Source::Host(i) = at(&list, index) {
            return call!(host.category_get_info(i, name, name_len, desc, desc_len, cvars, pvars, inner));
        }
        // SAFETY: the caller's places for results, null where not wanted.
        unsafe {
            string(NAME, name, name_len);
            string("The derived datatype compiler.", desc, desc_len);
            set(cvars, controls().count() as c_int);
            set(pvars, measures().count() as c_int);
            set(inner, 0);
        }
        Ok(0)
    }

    /// The index of a name.
    fn MPI_T_category_get_index(host, name: *const c_char, index: *mut c_int) {
        let list = categories(host)?;
        // SAFETY: null or a string of the caller's.
        let found = place(&list, Source::Ours(0)).filter(|_| unsafe { is(name, NAME) });
        if let (Some(found), false) = (found, index.is_null()) {
            // SAFETY: a place for the index.
            unsafe { set(index, found) };
            return Ok(0);
        }
        let code = call!(host.category_get_index(name, index))?;
        if code == 0 && !index.is_null() {
            // SAFETY: the host has written it.
            unsafe { *index = shown(&list, *index) };
        }
        Ok(code)
    }

    /// The control variables of a category.
    fn MPI_T_category_get_cvars(host, index: c_int, len: c_int, indices: *mut c_int) {
        let (list, variables) = (categories(host)?, variables(host)?);
        let Source::Host(i) = at(&list, index) else {
            // SAFETY: the caller's array.
            return unsafe { members(host, &own(&variables), len, indices) };
        };
        let code = call!(host.category_get_cvars(i, len, indices))?;
        if code == 0 {
            // SAFETY: the host has written as many as the category has, as far as there is room.
            unsafe { show(&variables, sizes(host, i)?[0], len, indices) };
        }
        Ok(code)
    }

    /// The performance variables of a category.
    fn MPI_T_category_get_pvars(host, index: c_int, len: c_int, indices: *mut c_int) {
        let (list, measured) = (categories(host)?, measured(host)?);
        let Source::Host(i) = at(&list, index) else {
            // SAFETY: the caller's array.
            return unsafe { members(host, &own(&measured), len, indices) };
        };
        let code = call!(host.category_get_pvars(i, len, indices))?;
        if code == 0 {
            // SAFETY: the host has written as many as the category has, as far as there is room.
            unsafe { show(&measured, sizes(host, i)?[1], len, indices) };
        }
        Ok(code)
    }

    /// The categories of a category.
    fn MPI_T_category_get_categories(host, index: c_int, len: c_int, indices: *mut c_int) {
        let list = categories(host)?;
        // SAFETY: the caller's array.
        let Source::Host(i) = at(&list, index) else { return unsafe { members(host, &[], len, indices) } };
        let code = call!(host.category_get_categories(i, len, indices))?;
        if code == 0 {
            // SAFETY: the host has written as many as the category has, as far as there is room.
            unsafe { show(&list, sizes(host, i)?[2], len, indices) };
        }
        Ok(code)
    }

    /// The number of events of a category.
    fn MPI_T_category_get_num_events(host, index: c_int, num: *mut c_int) {
        match at(&categories(host)?, index) {
            Source::Host(i) => call!(host.category_get_num_events(i, num)),
            Source::Ours(_) => {
                // SAFETY: a place for the number.
                unsafe { set(num, 0) };
                Ok(0)
            }
        }
    }

    /// The events of a category.
    fn MPI_T_category_get_events(host, index: c_int, len: c_int, indices: *mut c_int) {
        match at(&categories(host)?, index) {
            Source::Host(i) => call!(host.category_get_events(i, len, indices)),
            // SAFETY: the caller's array.
            Source::Ours(_) => unsafe { members(host, &[], len, indices) },
        }
    }
}
