//! Fuzz target: reads any bytes as the wire form of a datatype. The bytes may be refused with an
//! error. If they are accepted, the datatype is written as a wire form again, and reading that form
//! must give an equal datatype.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::wire(data));
