//! Fuzz target: decodes datatypes of MPI libraries that return wrong envelopes and contents.
//! Decoding must end with an error or a datatype, and must release all handles.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ddtc::internal::fuzzing::targets::hostile(data));
