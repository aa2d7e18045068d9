//! The program of a checkout: `cargo run --release -- bench`.
#![deny(unsafe_code)]

fn main() -> std::process::ExitCode {
    ddtc_cli::checkout()
}
