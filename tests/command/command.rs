//! Tests of the command `ddtc`, each of which runs the program as a user does.

mod cli;
mod draw;
mod gpu;
mod preload;

use std::process::Command;

/// Returns a call of `ddtc` as it is built in a checkout, with all subcommands.
fn program() -> Command {
    through_runner(env!("CARGO_BIN_EXE_ddtc"))
}

/// Returns a call of `ddtc` as it is installed, with the subcommands for users of MPI programs.
fn installed() -> Command {
    through_runner(env!("CARGO_BIN_EXE_ddtc-installed"))
}

/// Returns a call of `program`. If cargo has a runner for the target, such as an emulator, the call
/// goes through the runner, because this machine may not be able to run the program itself.
fn through_runner(program: &'static str) -> Command {
    let target = std::env::consts::ARCH.to_uppercase();
    let runner = std::env::var(format!("CARGO_TARGET_{target}_UNKNOWN_LINUX_GNU_RUNNER")).unwrap_or_default();
    let mut words = runner.split_whitespace().chain([program]);
    let mut command = Command::new(words.next().unwrap_or(program));
    command.args(words);
    command
}
