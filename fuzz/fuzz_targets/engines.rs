//! Every stage and every engine against the type map: compiled, walked, whole and in ranges, between guard pages.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::engines(data));
