//! Build script of the package `ddtc-e2e`: it sets `cfg(e2e)` when the package's tests are
//! compiled.

fn main() {
    println!("cargo::rustc-cfg=e2e");
    println!("cargo::rerun-if-changed=build.rs");
}
