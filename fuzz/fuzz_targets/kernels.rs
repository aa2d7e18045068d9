//! Fuzz target: compiles small datatypes, each by one of the code generators and in both
//! directions, and runs the code in memory between guard pages.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::kernels(data));
