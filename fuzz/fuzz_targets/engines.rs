//! Fuzz target: all stages and executors against the type map. Datatypes are moved by compiled code
//! and by the interpreter of nests, whole and in ranges, between guard pages.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::engines(data));
