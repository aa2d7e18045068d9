//! The program that a checkout of the sources builds: `cargo run --release -- bench`.
#![deny(unsafe_code)]

fn main() -> std::process::ExitCode {
    ddtc_cli::checkout()
}
