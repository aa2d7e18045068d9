//! Sets `cfg(e2e)` for the tests of this member.

fn main() {
    println!("cargo::rustc-cfg=e2e");
    println!("cargo::rerun-if-changed=build.rs");
}
