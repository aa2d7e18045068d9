//! Fuzz target: small datatypes, each compiled by one of the compilers in both directions, between
//! guard pages.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::kernels(data));
