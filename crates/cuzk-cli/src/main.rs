//! The `cuzk` binary: Groth16 proofs over BLS12-381 from files, proved and verified.
//!
//! This file parses the command line, runs a command, and turns its outcome into the exit code.
//! A command returns what it prints, so that nothing is printed before everything else is done.
#![forbid(unsafe_code)]

mod args;
mod device;
mod devices;
mod environment;
mod exit;
mod inspect;
mod keys;
mod load;
mod logs;
mod memory;
mod output;
mod prepare;
mod progress;
mod prove;
mod report;
mod signals;
mod sizes;
mod synth;
mod synthetic;
mod timeline;
mod verify;

use std::process::ExitCode;

use crate::args::{Command, Invocation};
use crate::exit::{Exit, Failure};
use crate::report::Outcome;

fn main() -> ExitCode {
    let invocation = match args::parse() {
        Ok(invocation) => invocation,
        Err(exit) => return exit.into(),
    };
    exit::report_panics();
    let outcome = exit::catching_panics(|| {
        logs::start(&invocation.logs)?;
        environment::check()?;
        signals::install()?;
        run(&invocation)
    });
    let is_json = invocation.command.is_json();
    match outcome {
        Ok(outcome) => outcome.print(is_json),
        Err(failure) => failure.print(is_json),
    }
    .into()
}

fn run(invocation: &Invocation) -> Result<Outcome, Failure> {
    match &invocation.command {
        Command::Prove(args) => prove::run(args),
        Command::Prepare(args) => prepare::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Devices(args) => devices::run(args),
        Command::Synth(args) => synth::run(args),
        Command::Timeline(args) => timeline::run(args),
    }
}

/// The exit of a result that could not be printed: quietly where the reader has gone away.
fn after_printing(result: std::io::Result<()>, exit: Exit) -> Exit {
    match result {
        Ok(()) => exit,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => exit.or(Exit::Internal),
        Err(error) => {
            exit::say(&format!("cannot write the result: {error}"));
            exit.or(Exit::Internal)
        }
    }
}
