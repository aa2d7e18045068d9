//! Version of ddtc's preload library, in a symbol that `ddtc doctor` reads from the library's file
//! without loading it.

const TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// Version of the preload library, as a string with a terminating zero byte.
// SAFETY: no other object defines a symbol of this name. ddtc has chosen the name for itself, and
// it is not the name of a function of MPI.
#[unsafe(no_mangle)]
pub static DDTC_PRELOAD_VERSION: [u8; TEXT.len()] = {
    let mut bytes = [0; TEXT.len()];
    let mut i = 0;
    while i < bytes.len() {
        bytes[i] = TEXT.as_bytes()[i];
        i += 1;
    }
    bytes
};
