//! Hosts whose envelopes and contents lie end in an error or a datatype, with every handle released.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::hostile(data));
