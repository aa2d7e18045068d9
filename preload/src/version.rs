//! Version of this library, in a symbol that `ddtc doctor` reads from the file without loading it.

const TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// The version as a string with a final zero byte.
// SAFETY: no other object defines a symbol of this name, which this library has chosen for itself
// and which is no function of MPI.
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
