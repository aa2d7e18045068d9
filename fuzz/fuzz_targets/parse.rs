//! Fuzz target: parses any text as a datatype. The text may be refused with an error. If it is
//! accepted, the datatype is printed, and parsing the printed text must give an equal datatype.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::parse(data));
