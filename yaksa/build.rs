//! Sets the soname of the shared library to `libyaksa.so.0`, the soname of yaksa 0.2 and later.
//! Programs that are linked with yaksa contain this name, and the loader finds the library by it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default() == "linux" {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libyaksa.so.0");
    }
}
