//! Fuzz target: MPI libraries that return wrong envelopes and contents. Decoding must end with an
//! error or a datatype, and release all handles.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::hostile(data));
