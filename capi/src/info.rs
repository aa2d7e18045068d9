//! Exports for info objects (MPI 5.0, chapter 10). An info object is a list of pairs, each of a key
//! and a value, in the order in which the keys were first set.
//!
//! The library takes no hints, so an info object only keeps what the program stores in it.
//! `MPI_INFO_ENV` exists and is empty, because no MPI started this process.

use std::ffi::{c_char, c_int};

use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;
use ddtc::internal::process::{Guard, Mutex};

use crate::arguments::{Type, bytes, export, out};
use crate::numbered::{FIRST_HANDLE, Numbered, number, pointer};

/// `MPI_INFO_NULL` of the standard ABI.
const NULL: i32 = 0x130;
/// `MPI_INFO_ENV` of the standard ABI.
const ENV: i32 = 0x131;
/// Maximum number of bytes of a key: `MPI_MAX_INFO_KEY` of the standard ABI without the terminating
/// NUL.
const MAX_KEY: usize = 255;
/// Maximum number of bytes of a value: `MPI_MAX_INFO_VAL` of the standard ABI without the
/// terminating NUL.
const MAX_VALUE: usize = 1023;

/// Keys and values of one info object.
type Entries = Vec<(Box<[u8]>, Box<[u8]>)>;

/// All info objects of the program. `MPI_INFO_ENV` is not among them.
static INFOS: Mutex<Numbered<Entries>> = Mutex::new(Numbered::new(FIRST_HANDLE));

fn infos() -> Guard<'static, Numbered<Entries>> {
    INFOS.lock()
}

fn refuse(call: &'static str, info: i32) -> Error {
    let rule = match info {
        NULL => "must not be MPI_INFO_NULL",
        ENV => "must not be MPI_INFO_ENV, which cannot be changed or freed",
        _ => "must be an info object that was not freed",
    };
    Error::new(ErrorClass::Info, call, "info", format_args!("{info:#x}"), rule)
}

/// Calls `f` with the pairs of `info`, and `f` may change them. Fails with class `Info` if the
/// handle names no info object or names `MPI_INFO_ENV`.
fn change<R>(call: &'static str, info: Type, f: impl FnOnce(&mut Entries) -> R) -> Result<R> {
    infos().get(number(info)).map(f).ok_or_else(|| refuse(call, number(info)))
}

/// Calls `f` with the pairs of `info`. `MPI_INFO_ENV` has no pairs. Fails with class `Info` if the
/// handle names no info object.
fn read<R>(call: &'static str, info: Type, f: impl FnOnce(&Entries) -> R) -> Result<R> {
    if number(info) == ENV { Ok(f(&Entries::new())) } else { change(call, info, |entries| f(entries)) }
}

/// Returns the bytes of a string. The string must have at most `most` bytes, and at least one byte
/// if `class` is `InfoKey`.
///
/// # Errors
/// Class `Arg` if `string` is null, and `class` if its length is not allowed.
///
/// # Safety
/// `string` must be null or a NUL-terminated string that lives and does not change for as long as
/// the result is used.
unsafe fn short<'a>(
    call: &'static str,
    argument: &'static str,
    string: *const c_char,
    most: usize,
    class: ErrorClass,
) -> Result<&'a [u8]> {
    // SAFETY: the conditions of `bytes` are those that the caller of this function promises.
    let bytes = unsafe { bytes(call, argument, string)? };
    if bytes.len() > most || (bytes.is_empty() && class == ErrorClass::InfoKey) {
        let rule = format!("must have 1 to {most} bytes; only a value may be empty");
        return Err(Error::new(class, call, argument, format_args!("{} bytes", bytes.len()), rule));
    }
    Ok(bytes)
}

/// Returns the bytes of a key, with the errors of [`short`].
///
/// # Safety
/// The conditions are those of [`short`].
unsafe fn key<'a>(call: &'static str, string: *const c_char) -> Result<&'a [u8]> {
    // SAFETY: the conditions of `short` are those that the caller of this function promises.
    unsafe { short(call, "key", string, MAX_KEY, ErrorClass::InfoKey) }
}

export! {
    fn ddtc_info_create(info: *mut Type) {
        let info = out("info_create", "info", info)?;
        info.set(pointer(infos().insert("info_create", Entries::new())?));
        Ok(())
    }

    fn ddtc_info_dup(info: Type, newinfo: *mut Type) {
        let newinfo = out("info_dup", "newinfo", newinfo)?;
        let copy = read("info_dup", info, Clone::clone)?;
        newinfo.set(pointer(infos().insert("info_dup", copy)?));
        Ok(())
    }

    fn ddtc_info_free(info: *mut Type) {
        let info = out("info_free", "info", info)?;
        let gone = infos().remove(number(info.get()));
        gone.map(drop).ok_or_else(|| refuse("info_free", number(info.get())))?;
        info.set(pointer(NULL));
        Ok(())
    }

    fn ddtc_info_set(info: Type, key_: *const c_char, value: *const c_char) {
        const CALL: &str = "info_set";
        let key = key(CALL, key_)?;
        let value = short(CALL, "value", value, MAX_VALUE, ErrorClass::InfoValue)?;
        change(CALL, info, |entries| match entries.iter_mut().find(|(k, _)| **k == *key) {
            Some((_, old)) => *old = value.into(),
            None => entries.push((key.into(), value.into())),
        })?;
        Ok(())
    }

    fn ddtc_info_delete(info: Type, key_: *const c_char) {
        const CALL: &str = "info_delete";
        let key = key(CALL, key_)?;
        let found = change(CALL, info, |entries| {
            entries.iter().position(|(k, _)| **k == *key).map(|i| entries.remove(i))
        })?;
        found.map(drop).ok_or_else(|| {
            let key = String::from_utf8_lossy(key);
            Error::new(ErrorClass::InfoNoKey, CALL, "key", key, "must be a key of the info object").into()
        })
    }

    fn ddtc_info_get_string(info: Type, key_: *const c_char, buflen: *mut c_int, value: *mut c_char, flag: *mut c_int) {
        const CALL: &str = "info_get_string";
        let key = key(CALL, key_)?;
        let (buflen, flag) = (out(CALL, "buflen", buflen)?, out(CALL, "flag", flag)?);
        let room = buflen.get();
        if room < 0 {
            return Err(Error::new(ErrorClass::Arg, CALL, "buflen", room, "must not be negative").into());
        }
        let place = if room > 0 { Some(out(CALL, "value", value)?) } else { None };
        let known = read(CALL, info, |entries| {
            entries.iter().find(|(k, _)| **k == *key).map(|(_, known)| known.clone())
        })?;
        if let Some(known) = &known {
            if let Some(place) = place {
                place.write_bytes(&known[..known.len().min(room as usize - 1)], true);
            }
            buflen.set(known.len() as c_int + 1);
        }
        flag.set(c_int::from(known.is_some()));
        Ok(())
    }

    fn ddtc_info_get_nkeys(info: Type, nkeys: *mut c_int) {
        let nkeys = out("info_get_nkeys", "nkeys", nkeys)?;
        nkeys.set(read("info_get_nkeys", info, Vec::len)? as c_int);
        Ok(())
    }

    fn ddtc_info_get_nthkey(info: Type, n: c_int, key: *mut c_char) {
        const CALL: &str = "info_get_nthkey";
        let key = out(CALL, "key", key)?;
        let known = read(CALL, info, |entries| {
            let entry = usize::try_from(n).ok().and_then(|n| entries.get(n));
            entry.map(|(k, _)| k.clone()).ok_or(entries.len())
        })?;
        match known {
            Ok(known) => key.write_bytes(&known, true),
            Err(keys) => {
                let rule = format!("must be at least 0 and less than the number of keys, which is {keys}");
                return Err(Error::new(ErrorClass::Arg, CALL, "n", n, rule).into());
            }
        }
        Ok(())
    }
}
