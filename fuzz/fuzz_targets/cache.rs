//! Fuzz target: threads that commit, use and drop the same few datatypes, in a cache too small for
//! them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::cache(data));
