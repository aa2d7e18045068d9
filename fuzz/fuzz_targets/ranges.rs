//! Fuzz target: moves any pieces of the packed stream, in any order, whether or not the pieces
//! overlap.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::ranges(data));
