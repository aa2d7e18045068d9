//! Sets the soname of the shared library to that of yaksa 0.2 and later, because programs that are
//! linked with yaksa name it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default() == "linux" {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libyaksa.so.0");
    }
}
