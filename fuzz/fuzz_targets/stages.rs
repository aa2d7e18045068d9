//! Fuzz target: evaluates the output of every stage of the compiler and compares it with the type
//! map. The datatypes are small and no machine code is generated, so many cases run per second.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::stages(data));
