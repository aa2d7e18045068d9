//! The command as a user types it.

mod cli;
mod draw;
mod preload;

use std::process::Command;

/// The program of a checkout, which has all subcommands.
fn program() -> Command {
    through_runner(env!("CARGO_BIN_EXE_ddtc"))
}

/// The program that is installed.
fn installed() -> Command {
    through_runner(env!("CARGO_BIN_EXE_ddtc-installed"))
}

/// A program, by way of cargo's runner of the target where there is one: this machine may not run it itself.
fn through_runner(program: &'static str) -> Command {
    let target = std::env::consts::ARCH.to_uppercase();
    let runner = std::env::var(format!("CARGO_TARGET_{target}_UNKNOWN_LINUX_GNU_RUNNER")).unwrap_or_default();
    let mut words = runner.split_whitespace().chain([program]);
    let mut command = Command::new(words.next().unwrap_or(program));
    command.args(words);
    command
}
