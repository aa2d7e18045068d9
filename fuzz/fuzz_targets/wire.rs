//! Any bytes are read as a wire form or refused with an error; what was read is written and read as itself.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::wire(data));
