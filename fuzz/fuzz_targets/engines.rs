//! Fuzz target: compares all stages of the compiler, and all executors, with the type map. Compiled
//! code and the interpreter of nests move datatypes, as a whole and in ranges, in memory between
//! guard pages.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::engines(data));
