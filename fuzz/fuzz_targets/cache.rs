//! Fuzz target: several threads commit, use and drop the same few datatypes, and the cache is too
//! small to hold all of their layouts.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::cache(data));
