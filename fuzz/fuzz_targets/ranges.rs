//! Fuzz target: any pieces of the packed stream, in any order, overlapping or not.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::ranges(data));
