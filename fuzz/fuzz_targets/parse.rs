//! Any text is read or refused with an error; what was read prints as text that reads the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::parse(data));
