//! Fuzz target: any text is parsed, or refused with an error. What was parsed is printed as a text
//! that parses to the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::parse(data));
