//! Fuzz target: all stages by evaluation against the type map, on small datatypes and without a
//! compile, so that many run per second.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::stages(data));
