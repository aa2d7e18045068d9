//! The soname of the shared library: that of yaksa 0.2 and later, which programs are linked to.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default() == "linux" {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libyaksa.so.0");
    }
}
