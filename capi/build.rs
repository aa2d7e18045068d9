//! Sets the soname of the shared library on Linux. While the major version is 0, every minor
//! version has its own ABI, so the suffix of the soname is `0.MINOR`. Later the suffix is the major
//! version.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let env = |name| std::env::var(name).unwrap_or_default();
    if env("CARGO_CFG_TARGET_OS") == "linux" {
        let (major, minor) = (env("CARGO_PKG_VERSION_MAJOR"), env("CARGO_PKG_VERSION_MINOR"));
        let suffix = if major == "0" { format!("0.{minor}") } else { major };
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libddtc.so.{suffix}");
    }
}
