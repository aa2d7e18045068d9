//! Fuzz target: any bytes are read as a wire form, or refused with an error. What was read is
//! written as a form that reads as the same datatype.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::wire(data));
