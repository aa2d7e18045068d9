//! The `ddtc bench` of an optimized build, for `cargo bench`. Arguments after `--` are passed on:
//! `cargo bench --bench layouts -- --quick vec_8B`.

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    // Cargo adds `--bench` to the arguments of every benchmark.
    let arguments = std::env::args_os().skip(1).filter(|a| a != "--bench");
    let status = Command::new(env!("CARGO_BIN_EXE_ddtc")).arg("bench").args(arguments).status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{}: {error}", env!("CARGO_BIN_EXE_ddtc"));
            ExitCode::FAILURE
        }
    }
}
