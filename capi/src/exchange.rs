//! Exports for datatypes that processes exchange: the wire form of a datatype, and comparison and
//! hashes of type signatures.

use std::ffi::{c_int, c_void};

use ddtc::internal::datatype::{self, Datatype, Match};
use ddtc::internal::error::{Error, ErrorClass};
use ddtc::internal::methods::*;
use ddtc::internal::object;

use crate::arguments::{Type, export, input, out, output, to_c, tree};

export! {
    fn ddtc_type_wire_size(datatype: Type, size: *mut i64) {
        const CALL: &str = "type_wire_size";
        let size = out(CALL, "size", size)?;
        size.set(tree(CALL, datatype)?.wire_size()? as i64);
        Ok(())
    }

    fn ddtc_type_to_wire(datatype: Type, wire: *mut c_void, room: i64, size: *mut i64) {
        const CALL: &str = "type_to_wire";
        let size = out(CALL, "size", size)?;
        let form = tree(CALL, datatype)?.to_wire()?;
        let bytes = form.len() as i64;
        if room < bytes {
            let rule = format!("must be at least the {bytes} bytes of the form");
            return Err(Error::new(ErrorClass::Truncate, CALL, "room", room, rule).into());
        }
        output(CALL, "wire", wire.cast::<u8>(), ("room", bytes))?.write_copy_of_slice(&form);
        size.set(bytes);
        Ok(())
    }

    fn ddtc_type_from_wire(wire: *const c_void, size: i64, newtype: *mut Type) {
        const CALL: &str = "type_from_wire";
        let newtype = out(CALL, "newtype", newtype)?;
        let form = input(CALL, "wire", wire.cast::<u8>(), ("size", size))?;
        newtype.set(to_c(object::create(Datatype::from_wire(form)?)?));
        Ok(())
    }

    fn ddtc_signature_compare(
        count1: i64, type1: Type, count2: i64, type2: Type, result: *mut c_int, index: *mut i64,
    ) {
        const CALL: &str = "signature_compare";
        let (result, index) = (out(CALL, "result", result)?, out(CALL, "index", index)?);
        let (type1, type2) = (tree(CALL, type1)?, tree(CALL, type2)?);
        let (code, at) = match datatype::compare_signatures(count1, &type1, count2, &type2)? {
            Match::Equal => (0, -1),
            Match::FirstIsPrefix => (1, -1),
            Match::SecondIsPrefix => (2, -1),
            Match::Mismatch { index } => (3, index),
            Match::Unknown { index } => (4, index),
        };
        result.set(code);
        index.set(at);
        Ok(())
    }

    fn ddtc_signature_hash(count: i64, datatype: Type, elements: i64, hash: *mut u64) {
        const CALL: &str = "signature_hash";
        let hash = out(CALL, "hash", hash)?;
        hash.set(datatype::signature_hash(count, &tree(CALL, datatype)?, elements)?);
        Ok(())
    }
}
