//! Exports that decode a datatype: envelope and contents in both forms of the calls, and the window
//! accessors of a proposal of 1996. A window accessor returns a part (window) of the constructor's
//! arguments.

use std::ffi::c_int;

use ddtc::internal::datatype::{CombinerKind, Constants, Datatype};
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;
use ddtc::internal::object::{self, window};

use crate::arguments::{Type, export, handle, out, output, to_c, tree};
use crate::guard::Outcome;

/// Checks that a datatype may be decoded by the calls without `_c`. A datatype that a large-count
/// constructor built is an error of class `Type`.
fn small(call: &'static str, datatype: &Datatype) -> Result<()> {
    if datatype.constructed().is_large_count() {
        let rule = "was built by a large-count constructor: ask with the _c form";
        let name = datatype.envelope().combiner.mpi_name();
        return Err(Error::new(ErrorClass::Type, call, "datatype", name, rule));
    }
    Ok(())
}

/// Returns `value` as a C `int`, or an error of class `ValueTooLarge` if it does not fit.
fn int(call: &'static str, argument: &'static str, value: i64) -> Result<c_int> {
    c_int::try_from(value)
        .map_err(|_| Error::new(ErrorClass::ValueTooLarge, call, argument, value, "must fit an int"))
}

export! {
    fn ddtc_type_get_envelope(
        datatype: Type, integers: *mut c_int, addresses: *mut c_int, datatypes: *mut c_int,
        combiner: *mut c_int,
    ) {
        const CALL: &str = "type_get_envelope";
        let places = (
            out(CALL, "num_integers", integers)?,
            out(CALL, "num_addresses", addresses)?,
            out(CALL, "num_datatypes", datatypes)?,
            out(CALL, "combiner", combiner)?,
        );
        let envelope = object::with(CALL, handle(datatype), |o| {
            small(CALL, o.datatype()).map(|()| o.datatype().envelope())
        })??;
        let integers = int(CALL, "num_integers", envelope.integers)?;
        let addresses = int(CALL, "num_addresses", envelope.addresses)?;
        let datatypes = int(CALL, "num_datatypes", envelope.datatypes)?;
        places.0.set(integers);
        places.1.set(addresses);
        places.2.set(datatypes);
        places.3.set(envelope.combiner.abi_value());
        Ok(())
    }

    fn ddtc_type_get_envelope_c(
        datatype: Type, integers: *mut i64, addresses: *mut i64, large_counts: *mut i64, datatypes: *mut i64,
        combiner: *mut c_int,
    ) {
        const CALL: &str = "type_get_envelope_c";
        let places = (
            out(CALL, "num_integers", integers)?,
            out(CALL, "num_addresses", addresses)?,
            out(CALL, "num_large_counts", large_counts)?,
            out(CALL, "num_datatypes", datatypes)?,
            out(CALL, "combiner", combiner)?,
        );
        let envelope = object::with(CALL, handle(datatype), |o| o.datatype().envelope())?;
        places.0.set(envelope.integers);
        places.1.set(envelope.addresses);
        places.2.set(envelope.large_counts);
        places.3.set(envelope.datatypes);
        places.4.set(envelope.combiner.abi_value());
        Ok(())
    }

    fn ddtc_type_get_contents(
        datatype: Type, max_integers: c_int, max_addresses: c_int, max_datatypes: c_int, integers: *mut c_int,
        addresses: *mut i64, datatypes: *mut Type,
    ) {
        const CALL: &str = "type_get_contents";
        let tree = tree(CALL, datatype)?;
        small(CALL, &tree)?;
        let max = [max_integers.into(), max_addresses.into(), 0, max_datatypes.into()];
        contents(CALL, &tree, max, integers, addresses, std::ptr::null_mut(), datatypes)
    }

    fn ddtc_type_get_contents_c(
        datatype: Type, max_integers: i64, max_addresses: i64, max_large_counts: i64, max_datatypes: i64,
        integers: *mut c_int, addresses: *mut i64, large_counts: *mut i64, datatypes: *mut Type,
    ) {
        const CALL: &str = "type_get_contents_c";
        let tree = tree(CALL, datatype)?;
        let max = [max_integers, max_addresses, max_large_counts, max_datatypes];
        contents(CALL, &tree, max, integers, addresses, large_counts, datatypes)
    }
}

/// Writes the contents of a datatype to the caller's arrays, for both forms of
/// `ddtc_type_get_contents`. `max` has the lengths of the four arrays. Each array is filled by one
/// copy, and afterwards a reference to each child datatype is created.
///
/// # Errors
/// Class `Type` for a named type, and class `Arg` if a length is negative or too small, or if an
/// array that gets entries is null. After these errors, nothing is written. Class `ValueTooLarge`
/// if an integer of the contents does not fit in an `int`, and class `NoMem` if there is no handle
/// left for a child. After these two errors, the first three arrays may have been written, but no
/// handle.
///
/// # Safety
/// Each array must be null or point to aligned room for as many entries as its maximum in `max`
/// says, and nothing else may access it during the call.
unsafe fn contents(
    call: &'static str,
    tree: &Datatype,
    max: [i64; 4],
    integers: *mut c_int,
    addresses: *mut i64,
    large_counts: *mut i64,
    datatypes: *mut Type,
) -> Outcome {
    let envelope = tree.envelope();
    if envelope.combiner == CombinerKind::Named {
        let rule = "a named predefined datatype has no contents";
        return Err(Error::new(ErrorClass::Type, call, "datatype", tree, rule).into());
    }
    let needed = [envelope.integers, envelope.addresses, envelope.large_counts, envelope.datatypes];
    let names = ["max_integers", "max_addresses", "max_large_counts", "max_datatypes"];
    for ((max, needed), name) in max.into_iter().zip(needed).zip(names) {
        if max < 0 {
            return Err(Error::new(ErrorClass::Arg, call, name, max, "must not be negative").into());
        }
        if max < needed {
            let rule = format!("must be at least the envelope's {needed}");
            return Err(Error::new(ErrorClass::Arg, call, name, max, rule).into());
        }
    }
    // SAFETY: the caller promises that each array is null or has room for its maximum, which the
    // loop above has found to be at least the length in `needed`, and that nothing else accesses
    // it.
    let (integers, addresses, large_counts, datatypes) = unsafe {
        (
            output(call, "array_of_integers", integers, (names[0], needed[0]))?,
            output(call, "array_of_addresses", addresses, (names[1], needed[1]))?,
            output(call, "array_of_large_counts", large_counts, (names[2], needed[2]))?,
            output(call, "array_of_datatypes", datatypes, (names[3], needed[3]))?,
        )
    };
    tree.contents_into_uninit(&Constants::ABI, integers, addresses, large_counts)?;
    let children = object::references(tree.constructed().combiner().children())?;
    for (place, child) in datatypes.iter_mut().zip(children) {
        place.write(to_c(child));
    }
    Ok(())
}

export! {
    fn ddtc_type_envelope(datatype: Type, count: *mut c_int, combiner: *mut c_int) {
        const CALL: &str = "type_envelope";
        let (count, combiner) = (out(CALL, "count", count)?, out(CALL, "combiner", combiner)?);
        let (n, early) = object::with(CALL, handle(datatype), |o| window::envelope(o.datatype()))??;
        count.set(n);
        combiner.set(early as c_int);
        Ok(())
    }

    fn ddtc_type_contents(
        datatype: Type, start: c_int, count: c_int, blocklengths: *mut c_int, stride: *mut i64,
        displacements: *mut i64, types: *mut Type,
    ) {
        const CALL: &str = "type_contents";
        let tree = tree(CALL, datatype)?;
        let window = window::window(&tree, start, count)?;
        let lengths = output(CALL, "array_blocklens", blocklengths, ("count", window.blocklengths.len() as i64))?;
        let places = output(CALL, "array_disps", displacements, ("count", window.displacements.len() as i64))?;
        let handles = output(CALL, "array_types", types, ("count", window.types.len() as i64))?;
        let stride = window.stride.map(|s| out(CALL, "stride", stride).map(|place| (place, s))).transpose()?;
        for &length in window.blocklengths {
            int(CALL, "array_blocklens", length)?;
        }
        let references = match window.combiner {
            // A basic type has one entry, which is the handle that was passed.
            window::Early::Basic => vec![handle(datatype)],
            _ => object::references(window.types.iter())?,
        };
        for (place, &length) in lengths.iter_mut().zip(window.blocklengths) {
            place.write(length as c_int);
        }
        places.write_copy_of_slice(window.displacements);
        for (place, reference) in handles.iter_mut().zip(references) {
            place.write(to_c(reference));
        }
        if let Some((place, stride)) = stride {
            place.set(stride);
        }
        Ok(())
    }
}
