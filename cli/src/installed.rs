//! The program that packaging/install.sh and the wheel install as `ddtc`.
#![deny(unsafe_code)]

fn main() -> std::process::ExitCode {
    ddtc_cli::installed()
}
