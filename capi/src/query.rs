//! Size, bounds, names, addresses, elements.

use std::ffi::{c_char, c_int, c_void};

use ddtc::object::{self, MAX_NAME};

use crate::arguments::{Number, Type, UNDEFINED, bytes, export, handle, natural, out};

macro_rules! queries {
    ($($size:ident $extent:ident $true_extent:ident $elements:ident $count:ident $n:ty, $a:ty;)*) => {export! {$(
        fn $size(datatype: Type, size: *mut $n) {
            const CALL: &str = "type_size";
            let size = out(CALL, "size", size)?;
            let value = object::with(CALL, handle(datatype), |o| o.datatype().size())?;
            size.set(<$n>::narrow(value));
            Ok(())
        }

        fn $extent(datatype: Type, lb: *mut $a, extent: *mut $a) {
            const CALL: &str = "type_get_extent";
            let (lb, extent) = (out(CALL, "lb", lb)?, out(CALL, "extent", extent)?);
            let (l, e) = object::with(CALL, handle(datatype), |o| {
                (o.datatype().lb(), o.datatype().extent())
            })?;
            lb.set(<$a>::narrow(l));
            extent.set(<$a>::narrow(e));
            Ok(())
        }

        fn $true_extent(datatype: Type, lb: *mut $a, extent: *mut $a) {
            const CALL: &str = "type_get_true_extent";
            let (lb, extent) = (out(CALL, "true_lb", lb)?, out(CALL, "true_extent", extent)?);
            let (l, e) = object::with(CALL, handle(datatype), |o| {
                (o.datatype().true_lb(), o.datatype().true_extent())
            })?;
            lb.set(<$a>::narrow(l));
            extent.set(<$a>::narrow(e));
            Ok(())
        }

        fn $elements(datatype: Type, bytes: i64, count: *mut $n) {
            const CALL: &str = "get_elements";
            let count = out(CALL, "count", count)?;
            let bytes = natural(CALL, "bytes", bytes)?;
            let found = object::with(CALL, handle(datatype), |o| object::elements(o.datatype(), bytes))?;
            count.set(<$n>::narrow(found.unwrap_or(i64::from(UNDEFINED))));
            Ok(())
        }

        fn $count(datatype: Type, bytes: i64, count: *mut $n) {
            const CALL: &str = "get_count";
            let count = out(CALL, "count", count)?;
            let bytes = natural(CALL, "bytes", bytes)? as i64;
            let size = object::with(CALL, handle(datatype), |o| o.datatype().size())?;
            let whole = match size {
                0 => (bytes == 0).then_some(0),
                _ => (bytes % size == 0).then_some(bytes / size),
            };
            count.set(<$n>::narrow(whole.unwrap_or(i64::from(UNDEFINED))));
            Ok(())
        }
    )*}};
}
queries! {
    ddtc_type_size ddtc_type_get_extent ddtc_type_get_true_extent ddtc_get_elements ddtc_get_count c_int, i64;
    ddtc_type_size_c ddtc_type_get_extent_c ddtc_type_get_true_extent_c ddtc_get_elements_c ddtc_get_count_c i64, i64;
    ddtc_type_size_x ddtc_type_get_extent_x ddtc_type_get_true_extent_x ddtc_get_elements_x ddtc_get_count_x i64, i64;
}

export! {
    fn ddtc_elements_size(datatype: Type, elements: i64, bytes: *mut i64) {
        const CALL: &str = "elements_size";
        let bytes = out(CALL, "bytes", bytes)?;
        bytes.set(object::with(CALL, handle(datatype), |o| object::elements_size(o.datatype(), elements))??);
        Ok(())
    }

    fn ddtc_type_set_name(datatype: Type, name: *const c_char) {
        Ok(object::set_name(handle(datatype), bytes("type_set_name", "type_name", name)?)?)
    }

    fn ddtc_type_get_name(datatype: Type, name: *mut c_char, resultlen: *mut c_int) {
        const CALL: &str = "type_get_name";
        let (place, resultlen) = (out(CALL, "type_name", name)?, out(CALL, "resultlen", resultlen)?);
        let known = object::name(handle(datatype))?;
        let known = &known[..known.len().min(MAX_NAME)];
        place.write_bytes(known, true);
        resultlen.set(known.len() as c_int);
        Ok(())
    }

    fn ddtc_type_print(datatype: Type, text: *mut c_char, length: *mut i64) {
        const CALL: &str = "type_print";
        let length = out(CALL, "length", length)?;
        let room = natural(CALL, "length", length.get())? as usize;
        let datatype = object::datatype(CALL, handle(datatype))?;
        let known = datatype.to_string();
        if room > 0 && !text.is_null() {
            let n = known.len().min(room - 1);
            out(CALL, "text", text)?.write_bytes(&known.as_bytes()[..n], true);
        }
        length.set(known.len() as i64 + 1);
        Ok(())
    }

    fn ddtc_get_address(location: *const c_void, address: *mut i64) {
        out("get_address", "address", address)?.set(location.addr() as i64);
        Ok(())
    }
}

/// See `ddtc_aint_add` in ddtc.h.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ddtc_aint_add(base: i64, displacement: i64) -> i64 {
    base.wrapping_add(displacement)
}

/// See `ddtc_aint_diff` in ddtc.h.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ddtc_aint_diff(a: i64, b: i64) -> i64 {
    a.wrapping_sub(b)
}
